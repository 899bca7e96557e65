/* pass.h: one walk over a part of the data, batch by batch: what fit, evaluate and predict have in
 * common.
 *
 *     sn_pass pass;
 *     sn_pass_init(&pass, model, SN_STEP_EVALUATE, &part, err);  // plans full batch and remainder
 *     sn_model_prepare(model, err);                              // for all passes at once
 *     for (int64_t k = 0; k < pass.n_steps; k++)
 *         sn_pass_step(&pass, k, 0, err);                        // allocates nothing
 *     sn_pass_clear(&pass);
 */
#ifndef SN_TRAIN_PASS_H
#define SN_TRAIN_PASS_H

#include "train/model.h"

/* Which rows: [first, first + n) of x and y (NULL in predict), in batches. */
typedef struct {
    snug_feed *x, *y;
    int64_t first, n, batch;
} sn_part_of_data;

typedef struct {
    int (*asked)(void *ctx); /* may be NULL */
    void *ctx;
} sn_interrupt;

typedef struct {
    snug_model *model;
    sn_step_mode mode;
    sn_model_step *steps[2];        /* full batch and remainder; NULL: there is none */
    sn_model_step *adding_steps[2]; /* TRAIN: of steps between two updates */
    sn_rows x, y;
    int64_t batch, n_steps;
    sn_interrupt interrupt;
    sn_model_step *now; /* of the newest step */
    int64_t now_rows;
    double *sums; /* over the examples seen: the loss, then the sums of each metric */
    size_t n_sums;
    int64_t n_seen;
} sn_pass;

/* Checks the data against the model and plans the steps; the pass must not move afterwards. A batch
 * above n is n. After an error there is nothing to clear. */
SNUG_CHECKED snug_status sn_pass_init(sn_pass *p, snug_model *m, sn_step_mode mode,
                                      const sn_part_of_data *part, snug_error *err);
/* Runs step k. TRAIN: with these keys for dropout. */
SNUG_CHECKED snug_status sn_pass_step(sn_pass *p, int64_t k, uint64_t dropout_key, snug_error *err);
/* Nothing was seen. */
void sn_pass_restart(sn_pass *p);
/* Adds the loss and metrics of the newest step. */
void sn_pass_add(sn_pass *p);
/* Loss and metrics of what was seen; NaN where nothing was. */
void sn_pass_means(const sn_pass *p, double *out);
/* A pass of zeros is legal. */
void sn_pass_clear(sn_pass *p);
static inline int sn_model_n_values(const snug_model *m) {
    return 1 + m->n_metrics;
}

#endif
