/* streams.h: datasets as text: "0 1 2", "[0,1] [2,3]", "(0,'a')", for tests of pipelines. */
#ifndef SN_TEST_STREAMS_H
#define SN_TEST_STREAMS_H

#include "support/support.h"

#include <snug/dataset.h>

enum { STREAM_TEXT_BYTES = 1 << 16 };

/* One element; returns text. */
char *sn_element_text(const snug_element *e, char *text, size_t size);
/* All elements of a dataset (dropped), which must end. Lent until the next call. */
const char *sn_stream_text(snug_dataset *d);
/* The next n of an iterator, or as many as there are. */
const char *sn_next_text(snug_iterator *it, int64_t n);

snug_dataset *sn_range_of(snug_engine *e, int64_t n);
/* Functions on i64 numbers: x + add, with workers that count their opens; NULL spec. */
typedef struct {
    int64_t add;
    int64_t fails_at; /* fails where x is this */
    int64_t sleep_us; /* a random time up to this for each element */
    int keeps_even;   /* as a filter: true for even numbers */
} sn_adder;
snug_mapper sn_adder_mapper(const sn_adder *a);

/* Pipelines of every stage, for sweeps: the same stream whatever the knobs are. *out NULL: there is
 * no pipeline of that number. */
typedef struct {
    int workers;        /* of maps */
    int64_t depth;      /* of prefetches */
    const char *folder; /* for caches in files and what spills */
} sn_knobs;
snug_status sn_pipeline(snug_engine *e, int which, const sn_knobs *k, snug_dataset **out,
                        snug_error *err);

#endif
