/* blobs.h: a little data set with a model that learns it, and a callback that counts.
 *
 *     blobs b;
 *     blobs_begin(engine, &b);
 *     snug_fit(mlp(engine), &(snug_fit_options){.x = b.fx, .y = b.fy}, NULL, &err);
 *     blobs_end(&b); */
#ifndef SUPPORT_BLOBS_H
#define SUPPORT_BLOBS_H

#include "support/support.h"
#include "train/model.h"

enum { BLOB_ROWS = 70, BLOB_DIM = 4, BLOB_CLASSES = 3 };
#define MAX_WEIGHTS 256 /* of mlp() */

typedef struct {
    float x[BLOB_ROWS][BLOB_DIM];
    int32_t y[BLOB_ROWS];
    snug_feed *fx, *fy;
} blobs;

void blobs_begin(snug_engine *e, blobs *b);
void blobs_end(blobs *b);

snug_status make_mlp(snug_engine *e, const char *optimizer, snug_model **out, snug_error *err);
snug_model *mlp(snug_engine *e);
/* All weights, one behind the other. */
size_t copy_weights(snug_model *m, float *out);
bool same_weights(snug_model *m, const float *before);

/* What counting() has seen. */
typedef struct {
    int begins, steps, ends, validations, stop_after;
    double last_value;
    int64_t begin_requests;           /* of memory, before the first step, */
    int64_t first_requests, requests; /* after it and after the last */
    snug_engine *engine;
} counter;

snug_callback counting(counter *c);

#endif
