/* blobs.c: points around three centres, by a fixed little generator, and a model for them. */
#include "support/blobs.h"

#include <string.h>

void blobs_begin(snug_engine *e, blobs *b) {
    snug_error err;
    uint32_t s = 12345;
    for (int i = 0; i < BLOB_ROWS; i++) {
        b->y[i] = i % BLOB_CLASSES;
        for (int k = 0; k < BLOB_DIM; k++) {
            s = s * 1664525u + 1013904223u;
            b->x[i][k] = (float)((double)(s >> 8) / 16777216.0 - 0.5) + (b->y[i] == k ? 1.5f : 0);
        }
    }
    expect_ok(snug_feed_from_memory(e, &(snug_type){SNUG_F32, 2, {BLOB_ROWS, BLOB_DIM}}, b->x, NULL,
                                    NULL, &b->fx, &err),
              &err);
    expect_ok(snug_feed_from_memory(e, &(snug_type){SNUG_I32, 1, {BLOB_ROWS}}, b->y, NULL, NULL,
                                    &b->fy, &err),
              &err);
}

void blobs_end(blobs *b) {
    snug_feed_destroy(b->fx);
    snug_feed_destroy(b->fy);
}

snug_status make_mlp(snug_engine *e, const char *optimizer, snug_model **out, snug_error *err) {
    snug_model *m;
    SNUG_TRY(snug_model_create(e, "mlp", &(snug_type){SNUG_F32, 1, {BLOB_DIM}}, &m, err));
    snug_status status = snug_model_add(m, "Dense", "units=8 activation=relu", err);
    if (status == SNUG_OK)
        status = snug_model_add(m, "Dense", "units=3 activation=softmax name=head", err);
    if (status == SNUG_OK)
        status = snug_model_compile(m,
                                    &(snug_compile){.optimizer = optimizer,
                                                    .loss = "sparse_categorical_crossentropy",
                                                    .metrics = "accuracy"},
                                    err);
    if (status == SNUG_OK)
        *out = m;
    else
        snug_model_destroy(m);
    return status;
}

snug_model *mlp(snug_engine *e) {
    snug_error err;
    snug_model *m;
    expect_ok(make_mlp(e, "adam:lr=0.02", &m, &err), &err);
    return m;
}

size_t copy_weights(snug_model *m, float *out) {
    snug_error err;
    size_t n = 0;
    for (size_t i = 0; i < snug_model_n_weights(m); i++) {
        snug_view v;
        expect_ok(snug_model_weight(m, i, NULL, &v, &err), &err);
        memcpy(out + n, v.data, v.bytes);
        n += v.bytes / sizeof *out;
    }
    return n;
}

bool same_weights(snug_model *m, const float *before) {
    float now[MAX_WEIGHTS];
    const size_t n = copy_weights(m, now);
    return memcmp(now, before, n * sizeof *now) == 0;
}

static snug_status count_begin(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    counter *c = ctx;
    assert_int_equal(p->epoch, c->begins);
    if (c->begins++ == 0)
        c->begin_requests = sn_fault_memory_requests(c->engine);
    return SNUG_OK;
}

static snug_status count_step(void *ctx, const snug_progress *p, snug_error *err) {
    counter *c = ctx;
    assert_true(p->step >= 1 && p->step <= p->n_steps);
    c->requests = sn_fault_memory_requests(c->engine);
    if (c->steps++ == 0)
        c->first_requests = c->requests;
    c->last_value = p->values[0];
    return c->steps == c->stop_after ? sn_fail(err, SNUG_E_INTERRUPTED, "enough") : SNUG_OK;
}

static snug_status count_end(void *ctx, const snug_progress *p, snug_error *err) {
    (void)err;
    counter *c = ctx;
    c->ends++;
    c->validations += p->has_validation;
    return SNUG_OK;
}

snug_callback counting(counter *c) {
    return (snug_callback){.ctx = c,
                           .on_epoch_begin = count_begin,
                           .on_step_end = count_step,
                           .on_epoch_end = count_end};
}
