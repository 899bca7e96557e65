/* stream.h: batches of a dataset as the data of a pass: one feed per part, which gives the rows of
 * the batch that is there now.
 *
 *     sn_stream *s;
 *     sn_stream_create(model, dataset, SN_STEP_TRAIN, &s, err);    // the first batch is there
 *     sn_stream_data(s);                                           // x, y and weights as feeds
 *     while (sn_stream_next(s, &rows, err) == SNUG_OK) ...         // SNUG_E_END after the last
 *     sn_stream_restart(s, err);                                   // the next epoch
 *     sn_stream_destroy(s);
 *
 * Parts of an element are the model's inputs, its outputs' targets, and weights of examples: none,
 * one, or one for each output. */
#ifndef SN_TRAIN_STREAM_H
#define SN_TRAIN_STREAM_H

#include "train/model.h"

#include <snug/dataset.h>

typedef struct sn_stream sn_stream;

/* Asks for the first batch: its rows are the batch of the pass. With a budget of the process and no
 * limit on pipelines, they get what they need and some to run ahead (sn_streams_book). beside: one
 * that is there already, or NULL. */
SNUG_CHECKED snug_status sn_stream_create(snug_model *m, snug_dataset *d, sn_step_mode mode,
                                          const sn_stream *beside, sn_stream **out,
                                          snug_error *err);
/* The limit on pipelines for these (b or both may be NULL), as large as the larger of them needs,
 * or as both together where they are at work at the same time. */
void sn_streams_book(const sn_stream *a, const sn_stream *b, bool together);
/* Makes do with less, where it can: *done. First with nothing made ahead of who asks, then with no
 * batch at all but rows that go straight into a step. Book again; sn_stream_data may be others. */
SNUG_CHECKED snug_status sn_stream_shrink(sn_stream *s, const snug_model *m, bool *done,
                                          snug_error *err);
/* All is planned: batches may be made ahead, from now on. NULL is legal. */
void sn_stream_start(const sn_stream *s);
/* Adds to the refusal of a step what the pipeline beside it takes; returns status. NULL is
 * legal. */
snug_status sn_stream_explain(const sn_stream *s, snug_status status, snug_error *err);
/* The first batch is asked for again when it is wanted. Feeds stay. */
SNUG_CHECKED snug_status sn_stream_put_back(sn_stream *s, snug_error *err);
void sn_stream_destroy(sn_stream *s); /* NULL is legal */
const snug_data *sn_stream_data(const sn_stream *s);
int64_t sn_stream_batch(const sn_stream *s);
/* Rows of the whole dataset where they are known, else -1. */
int64_t sn_stream_rows(const sn_stream *s);
int64_t sn_stream_steps(const sn_stream *s); /* batches; -1: not known */
void sn_stream_set_interrupt(sn_stream *s, int (*asked)(void *ctx), void *ctx);
/* The next batch, lent to the feeds until the next call. */
SNUG_CHECKED snug_status sn_stream_next(sn_stream *s, int64_t *rows, snug_error *err);
/* Whether batches may be asked for while a step runs: not of code of the caller's thread, which may
 * run the model itself. */
bool sn_stream_may_look(const sn_stream *s);
/* The batch after the one that is lent: the feeds give its rows until look_back; false where there
 * is none, or none yet: sn_stream_next says why. *rows gets how many. */
bool sn_stream_look(sn_stream *s, int64_t *rows);
void sn_stream_look_back(sn_stream *s);
SNUG_CHECKED snug_status sn_stream_restart(sn_stream *s, snug_error *err);
double sn_stream_wait_seconds(const sn_stream *s); /* for batches, all epochs */

#endif
