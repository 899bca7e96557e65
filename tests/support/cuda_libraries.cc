/* cuda_libraries.cc: what poses as cuBLASLt and cuDNN in the emulated plug-in, where the card says
 * that they are there: every question has an answer, kept as library.cu keeps them, and nothing
 * runs. So plans that name their kernels are made here, and questions can be counted and starved.
 * Otherwise they are missing. */
#include "kernels/cuda/lib.h"

#include "cuda_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t bytes_in(const char *variable) {
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : 0;
}

/* Of the environment: what others hold of it, and what its first guard takes. */
static sn_emulated_card make_card(void) {
    sn_emulated_card c = {(size_t)1 << 30, (size_t)264 << 20, 0, 1, 0, 0, 0, -1};
    c.others_bytes = bytes_in("SNUG_EMULATED_OTHERS");
    c.guard_bytes = bytes_in("SNUG_EMULATED_GUARD");
    return c;
}

extern "C" SNUG_API sn_emulated_card *sn_emulated_world(void) {
    static sn_emulated_card card = make_card();
    return &card;
}

thread_local bool sn_emulated_entered;

typedef struct {
    const char *title, *impl, *absent;
    sn_answers answers;
} library;

static library blas = {"cuBLASLt", SN_BY_BLAS "emulated", SN_BY_BLAS SN_IMPL_ABSENT, {}},
               dnn = {"cuDNN", SN_BY_DNN "emulated", SN_BY_DNN SN_IMPL_ABSENT, {}};

static snug_status missing(const library *l, snug_error *err) {
    return sn_fail(err, SNUG_E_UNSUPPORTED, "the emulator has no %s", l->title);
}

static snug_status ask(const sn_gpu *g, void *table, const void *what, sn_choice *out,
                       snug_error *err) {
    const library *l = (const library *)table;
    sn_emulated_card *card = sn_emulated_world();
    (void)g, (void)what;
    card->n_asked++;
    if (!sn_emulated_entered)
        return sn_fail(err, SNUG_E_INTERNAL, "%s is asked by a thread without a context", l->title);
    if (card->n_starved > 0) {
        card->n_starved--;
        return sn_fail(err, SNUG_E_MEMORY, "%s has no memory here", l->title);
    }
    if (card->fails_asked) {
        card->lost = true;
        return sn_fail(err, SNUG_E_DEVICE, "the card failed while %s was asked", l->title);
    }
    snprintf(out->impl, sizeof out->impl, "%s", l->impl);
    return SNUG_OK;
}

static snug_status choose(const sn_gpu *g, library *l, const sn_answer_key *key, sn_choice *out,
                          snug_error *err) {
    if (!sn_emulated_world()->has_libraries)
        return sn_choice_absent(g, l->absent, missing(l, err), out);
    return sn_answers_get(g, &l->answers, key, ask, l, NULL, out, err);
}

static void tell_version(char *text, size_t size) {
    if (size > 0)
        snprintf(text, size, "%s", sn_emulated_world()->has_libraries ? "0.0.0" : "");
}

/* --- cuBLASLt -------------------------------------------------------------------------------- */
void sn_blas_version(const sn_gpu *g, char *text, size_t size) {
    (void)g;
    tell_version(text, size);
}
void sn_blas_close(sn_gpu *g) {
    (void)g;
    memset(&blas.answers, 0, sizeof blas.answers);
}
snug_status sn_blas_choose(const sn_gpu *g, const sn_blas_product *p, sn_choice *out,
                           snug_error *err) {
    const sn_answer_key key = {{p->batch, p->M, p->N, p->K, p->trans_a, p->trans_b}};
    return choose(g, &blas, &key, out, err);
}
snug_status sn_blas_make(sn_gpu *g, const sn_blas_product *p, const char *impl, sn_blas_plan **out,
                         snug_error *err) {
    (void)g, (void)p, (void)impl, (void)out;
    return missing(&blas, err);
}
void sn_blas_drop(sn_gpu *g, sn_blas_plan *plan) {
    (void)g, (void)plan;
}
size_t sn_blas_workspace(const sn_blas_plan *plan) {
    (void)plan;
    return 0;
}
snug_status sn_blas_run(const sn_gpu *g, const sn_blas_plan *plan, const sn_blas_operands *o,
                        cudaStream_t stream, snug_error *err) {
    (void)g, (void)plan, (void)o, (void)stream;
    return missing(&blas, err);
}

/* --- cuDNN ----------------------------------------------------------------------------------- */
void sn_dnn_version(const sn_gpu *g, char *text, size_t size) {
    (void)g;
    tell_version(text, size);
}
void sn_dnn_close(sn_gpu *g) {
    (void)g;
    memset(&dnn.answers, 0, sizeof dnn.answers);
}
snug_status sn_dnn_choose(const sn_gpu *g, const sn_dnn_conv *v, sn_choice *out, snug_error *err) {
    const sn_answer_key key = {{(int64_t)v->kind, v->N, v->H, v->W, v->C, v->kh, v->kw, v->O}};
    return choose(g, &dnn, &key, out, err);
}
snug_status sn_dnn_make(sn_gpu *g, const sn_dnn_conv *v, const char *impl, sn_dnn_plan **out,
                        snug_error *err) {
    (void)g, (void)v, (void)impl, (void)out;
    return missing(&dnn, err);
}
void sn_dnn_drop(sn_gpu *g, sn_dnn_plan *plan) {
    (void)g, (void)plan;
}
size_t sn_dnn_workspace(const sn_dnn_plan *plan) {
    (void)plan;
    return 0;
}
bool sn_dnn_takes_bias(const sn_dnn_plan *plan) {
    (void)plan;
    return false;
}
bool sn_dnn_takes_relu(const sn_dnn_plan *plan) {
    (void)plan;
    return false;
}
snug_status sn_dnn_run(const sn_gpu *g, const sn_dnn_plan *plan, const sn_dnn_operands *o,
                       cudaStream_t stream, snug_error *err) {
    (void)g, (void)plan, (void)o, (void)stream;
    return missing(&dnn, err);
}
