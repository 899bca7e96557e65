/* batch.h: what batch and padded_batch share. */
#ifndef SN_DATA_BATCH_H
#define SN_DATA_BATCH_H

#include "data/stage.h"

/* First in the ctx of both. */
typedef struct {
    int64_t size;
    bool drop_remainder;
    bool fixed; /* batch: elements of one shape, numbers only */
} sn_batch;

/* Elements that wait to become rows: n times their parts. */
typedef struct {
    snug_datum *parts;
    size_t cap;
    int64_t n;
} sn_gathering;

/* Moves the element's parts. */
SNUG_CHECKED snug_status sn_gathering_add(snug_engine *e, sn_gathering *g, snug_element *from,
                                          snug_error *err);
void sn_gathering_clear(snug_engine *e, sn_gathering *g, int n_parts);
/* `count` of them, from `first` on each step-th, as rows of arrays. */
typedef struct {
    int64_t first, step, count;
} sn_row_span;
SNUG_CHECKED snug_status sn_gathering_join(snug_engine *e, const sn_gathering *g, int n_parts,
                                           sn_row_span rows, snug_element *out, snug_error *err);
/* Of a row's type with another axis in front; of rank 8 already: as it is. */
snug_type sn_type_with_rows(const snug_type *row, int64_t n);
/* Up to `size` elements of the stage before; SNUG_E_END when there was none. */
SNUG_CHECKED snug_status sn_gather_elements(sn_cursor *c, int64_t size, sn_gathering *g,
                                            snug_error *err);
snug_status sn_batch_seek(sn_cursor *c, int64_t n, int64_t *done, snug_error *err);
int64_t sn_batch_cardinality(int64_t n, int64_t size, bool drop_remainder);
/* Whether the stage is a plain batch, and of how many rows. */
bool sn_stage_is_batch(const snug_dataset *d, int64_t *size);

#endif
