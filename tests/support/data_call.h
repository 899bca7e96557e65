/* data_call.h: functions on files, texts and pictures (snug/data_ops.h), called by name.
 *
 *     snug_datum picture;
 *     expect_ok(sn_data_on_text(e, "tf.io.decode_image", bytes, n, &picture, &err), &err);
 *     snug_datum_drop(&picture); */
#ifndef SN_TESTS_DATA_CALL_H
#define SN_TESTS_DATA_CALL_H

#include "support/support.h"

#include <snug/data_ops.h>

typedef struct {
    const char *name, *value;
} sn_attr_text;

/* Fails the test where it cannot be made. */
snug_data_op *sn_data_make(snug_engine *e, const char *name, const sn_attr_text *attrs, int n);
/* A text that lives as long as the test does. */
snug_datum sn_lent(snug_text *t);
/* A function without attributes that gives one thing. */
snug_status sn_data_call(snug_engine *e, const char *name, const snug_datum *in, int n_in,
                         snug_datum *out, snug_error *err);
snug_status sn_data_on_text(snug_engine *e, const char *name, const void *bytes, size_t n,
                            snug_datum *out, snug_error *err);
snug_status sn_data_read(snug_engine *e, const char *path, snug_datum *out, snug_error *err);
/* 31 bits, for bytes that are damaged in the same way each time. */
uint64_t sn_next_random(uint64_t *seed);

#endif
