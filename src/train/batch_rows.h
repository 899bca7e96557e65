/* batch_rows.h: which rows of a feed a batch is made of. A binding asks for rows of the batch; they
 * come from a part of the feed, in order or in the order of a permutation that is evaluated, not
 * stored. */
#ifndef SN_TRAIN_BATCH_ROWS_H
#define SN_TRAIN_BATCH_ROWS_H

#include "tensor/feed.h"

typedef struct {
    snug_feed *feed;
    int64_t first, n; /* the part: rows [first, first + n) */
    bool shuffle;
    uint64_t key;  /* of the permutation of this epoch */
    int64_t start; /* position of the batch's first row in the part */
} sn_rows;

/* Row of the feed at a position of the part. */
int64_t sn_rows_at(const sn_rows *r, int64_t position);
/* A snug_feed_fill_fn with a sn_rows as ctx: rows [first, first + n) of the batch. Runs of
 * neighbours are one request. */
snug_status sn_rows_fill(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                         snug_error *err);
/* The recipe whose elements the rows from `first` on are, in order; false: they are of none. */
bool sn_rows_recipe(void *ctx, int64_t first, sn_recipe *out, uint64_t *element);
/* Whether rows of the feed can be rows of `wanted` (dims[0] is the batch): same extents, a trailing
 * 1 more or less allowed, and no float where integers are wanted. `what` is "x" or "y". */
SNUG_CHECKED snug_status sn_rows_check(const snug_feed *feed, const snug_type *wanted,
                                       const char *what, snug_error *err);
/* The first label of the batch's n rows outside [0, n_classes); false when there is none or rows
 * are too wide to look at. */
bool sn_rows_bad_label(const sn_rows *r, int64_t n, int64_t n_classes, int64_t *row,
                       int64_t *label);

#endif
