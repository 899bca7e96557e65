/* pass.h: one walk over a part of the data, batch by batch: what fit, evaluate and predict have in
 * common.
 *
 *     sn_pass pass;
 *     sn_pass_init(&pass, model, SN_STEP_EVALUATE, &part, err);  // plans full batch and remainder
 *     sn_model_prepare(model, err);                              // for all passes at once
 *     for (int64_t k = 0; k < pass.n_steps; k++)
 *         sn_pass_step(&pass, k, 0, err);                        // allocates nothing
 *     sn_pass_clear(&pass); */
#ifndef SN_TRAIN_PASS_H
#define SN_TRAIN_PASS_H

#include "train/model.h"
#include "train/stream.h"

/* Which rows: [first, first + n) of the feeds (no y in predict), in batches. */
typedef struct {
    snug_data data;
    const char *class_weight; /* or NULL */
    int64_t first, n, batch;
    sn_stream *stream; /* of a dataset, or NULL; lent */
} sn_part_of_data;
/* The feeds of one x and y, and a weight where there is one, as data; lends from them. */
typedef struct {
    snug_feed *x, *y, *weight;
} sn_plain_data;
snug_data sn_plain_as_data(const sn_plain_data *plain);
/* All rows of data. */
sn_part_of_data sn_whole_data(const snug_data *data, int64_t batch);
sn_part_of_data sn_stream_part(sn_stream *stream);

typedef struct {
    int (*asked)(void *ctx); /* may be NULL */
    void *ctx;
} sn_interrupt;

typedef struct {
    snug_model *model;
    sn_step_mode mode;
    sn_model_step *steps[2];        /* full batch and remainder; NULL: there is none */
    sn_model_step *adding_steps[2]; /* TRAIN: of steps between two updates */
    sn_batch_rows rows;
    uint32_t n_x, n_y, n_w;
    int64_t n; /* rows of the part */
    int64_t batch, n_steps;
    sn_stream *stream;             /* where the batches come from one by one, or NULL */
    int64_t first_row, rows_given; /* of the newest step, and with it */
    sn_weighting weighting;
    sn_interrupt interrupt;
    sn_model_step *now; /* of the newest step */
    int64_t now_rows;
    int64_t step;  /* its number, and */
    int64_t ahead; /* that of the step whose rows came while it ran; -1: none did */
    double *sums;  /* over the examples seen: the loss, then the sums of each metric */
    size_t n_sums;
    int64_t n_seen;
} sn_pass;

/* Checks the data against the model and plans the steps; the pass must not move afterwards. A batch
 * above n is n. After an error there is nothing to clear. */
SNUG_CHECKED snug_status sn_pass_init(sn_pass *p, snug_model *m, sn_step_mode mode,
                                      const sn_part_of_data *part, snug_error *err);
/* Whether there is a step k to try; of a stream of unknown length there always is. */
bool sn_pass_has(const sn_pass *p, int64_t k);
/* Runs step k. SNUG_E_END: the stream had no batch for it. TRAIN: with these keys for dropout. */
SNUG_CHECKED snug_status sn_pass_step(sn_pass *p, int64_t k, uint64_t dropout_key, snug_error *err);
/* Nothing was seen, and nothing came ahead. */
void sn_pass_restart(sn_pass *p);
/* Adds the loss and metrics of the newest step. */
void sn_pass_add(sn_pass *p);
/* Loss and metrics of what was seen; NaN where nothing was. */
void sn_pass_means(const sn_pass *p, double *out);
/* A pass of zeros is legal. */
void sn_pass_clear(sn_pass *p);
/* In an order that the key decides; every input in the same one. */
void sn_pass_shuffle(sn_pass *p, uint64_t key);
/* Names the values, which are the model's. */
void sn_progress_name_values(snug_progress *progress, const snug_model *m);

#endif
