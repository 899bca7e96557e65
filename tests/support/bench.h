/* bench.h: an engine with a recorder, for tests of recorded code.
 *
 *     bench b = open_bench(state);     // of an engine_test
 *     ...
 *     snug_recorder_destroy(b.r); */
#ifndef SN_TESTS_BENCH_H
#define SN_TESTS_BENCH_H

#include "support/support.h"

#include <snug/record.h>

typedef struct {
    snug_engine *e;
    snug_recorder *r;
    snug_error err;
} bench;

static inline bench open_bench(void **state) {
    bench b = {.e = *state};
    expect_ok(snug_recorder_create(b.e, &b.r, &b.err), &b.err);
    return b;
}

#endif
