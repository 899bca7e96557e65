/* cuda_libraries.cc: what poses as cuBLASLt and cuDNN in the emulated plug-in, where the card says
 * that they are there: every question has an answer, kept as library.cu keeps them, and products
 * and convolutions are made by loops, sums in f32. So plans that name their kernels are made here,
 * what own kernels do around them is run, and questions can be counted and starved. Otherwise they
 * are missing. */
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/lib.h"

#include "cuda_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

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
struct sn_blas_plan {
    sn_blas_product p;
};
snug_status sn_blas_make(sn_gpu *g, const sn_blas_product *p, const char *impl, sn_blas_plan **out,
                         snug_error *err) {
    (void)g, (void)impl;
    if (!sn_emulated_world()->has_libraries)
        return missing(&blas, err);
    *out = new sn_blas_plan{*p};
    return SNUG_OK;
}
void sn_blas_drop(sn_gpu *g, sn_blas_plan *plan) {
    (void)g;
    delete plan;
}
size_t sn_blas_workspace(const sn_blas_plan *plan) {
    (void)plan;
    return 0;
}

static sn_mixed_line line_of(const void *data, snug_dtype dtype) {
    return sn_mixed_line{(void *)data, dtype};
}

static float dot(const sn_blas_product &p, sn_mixed_line a, sn_mixed_line b, const int64_t at[3]) {
    const int64_t m = at[1], n = at[2];
    float sum = 0;
    for (int64_t k = 0; k < p.K; k++)
        sum += a[at[0] * p.a_step + (p.trans_a ? k * p.a_pitch + m : m * p.a_pitch + k)] *
               b[at[0] * p.b_step + (p.trans_b ? n * p.b_pitch + k : k * p.b_pitch + n)];
    return sum;
}

snug_status sn_blas_run(const sn_gpu *g, const sn_blas_plan *plan, const sn_blas_operands *o,
                        cudaStream_t stream, snug_error *err) {
    (void)g, (void)stream, (void)err;
    const sn_blas_product &p = plan->p;
    const sn_mixed_line a = line_of(o->a, p.dtype), b = line_of(o->b, p.dtype),
                        bias = line_of(o->bias, p.out), c = line_of(o->c, p.out);
    for (int64_t i = 0; i < p.batch * p.M * p.N; i++) {
        const int64_t at[3] = {i / (p.M * p.N), i / p.N % p.M, i % p.N};
        const int64_t to = at[0] * p.c_step + at[1] * p.c_pitch + at[2];
        float sum = dot(p, a, b, at) + (o->add ? c[to] : 0) + (p.bias ? bias[at[2]] : 0);
        c.put(to, p.relu && sum < 0 ? 0 : sum);
    }
    return SNUG_OK;
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
struct sn_dnn_plan {
    sn_dnn_conv v;
    bool bias, relu;
};
/* An engine adds the bias where outputs are even in number, and takes relu where it does. */
snug_status sn_dnn_make(sn_gpu *g, const sn_dnn_conv *v, const char *impl, sn_dnn_plan **out,
                        snug_error *err) {
    (void)g, (void)impl;
    if (!sn_emulated_world()->has_libraries)
        return missing(&dnn, err);
    const bool bias = v->bias && v->O % 2 == 0;
    *out = new sn_dnn_plan{*v, bias, bias && v->relu};
    return SNUG_OK;
}
void sn_dnn_drop(sn_gpu *g, sn_dnn_plan *plan) {
    (void)g;
    delete plan;
}
size_t sn_dnn_workspace(const sn_dnn_plan *plan) {
    (void)plan;
    return 0;
}
bool sn_dnn_takes_bias(const sn_dnn_plan *plan) {
    return plan->bias;
}
bool sn_dnn_takes_relu(const sn_dnn_plan *plan) {
    return plan->relu;
}

/* Calls f with an element of x, of w and of y for every product there is. */
template <class F> static void each_product(const sn_dnn_conv &v, F f) {
    for (int64_t i = 0; i < v.N * v.oh * v.ow * v.O; i++) {
        const int64_t o = i % v.O, column = i / v.O % v.ow, row = i / v.O / v.ow % v.oh;
        const int64_t n = i / v.O / v.ow / v.oh;
        for (int64_t k = 0; k < v.kh * v.kw * v.C; k++) {
            const int64_t c = k % v.C, q = k / v.C % v.kw, p = k / v.C / v.kw;
            const int64_t r = row * v.stride[0] - v.pad[0] + p * v.dilation[0],
                          s = column * v.stride[1] - v.pad[2] + q * v.dilation[1];
            if (r >= 0 && r < v.H && s >= 0 && s < v.W)
                f(((n * v.H + r) * v.W + s) * v.C + c, ((o * v.kh + p) * v.kw + q) * v.C + c, i);
        }
    }
}

snug_status sn_dnn_run(const sn_gpu *g, const sn_dnn_plan *plan, const sn_dnn_operands *o,
                       cudaStream_t stream, snug_error *err) {
    (void)g, (void)stream, (void)err;
    const sn_dnn_conv &v = plan->v;
    const sn_mixed_line x = line_of(o->x, v.dtype), w = line_of(o->w, v.dtype),
                        y = line_of(o->y, v.dtype), bias = line_of(o->bias, v.dtype);
    const int64_t counts[] = {v.N * v.oh * v.ow * v.O, v.N * v.H * v.W * v.C,
                              v.O * v.kh * v.kw * v.C};
    const sn_mixed_line to = v.kind == SN_DNN_FORWARD ? y : v.kind == SN_DNN_DX ? x : w;
    std::vector<float> sums((size_t)counts[v.kind], 0.0f);
    each_product(v, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
        if (v.kind == SN_DNN_FORWARD)
            sums[(size_t)at_y] += x[at_x] * w[at_w];
        else if (v.kind == SN_DNN_DX)
            sums[(size_t)at_x] += y[at_y] * w[at_w];
        else
            sums[(size_t)at_w] += y[at_y] * x[at_x];
    });
    for (int64_t i = 0; i < counts[v.kind]; i++) {
        const float sum = sums[(size_t)i] + (plan->bias ? bias[i % v.O] : 0);
        to.put(i, plan->relu && sum < 0 ? 0 : sum);
    }
    return SNUG_OK;
}
