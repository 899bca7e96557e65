/* cuda_conv.h: convolutions on the GPU: the plain kernels, and what goes on around an engine.
 * Geometry is kernels/cpu/conv.h's; filters are [kh, kw, C / groups, O] wherever a caller sees
 * them. */
#ifndef SN_KERNELS_CUDA_CUDA_CONV_H
#define SN_KERNELS_CUDA_CUDA_CONV_H

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/lib.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* C leaves them out */
extern "C" {
#include "kernels/cpu/conv.h"
}
#pragma GCC diagnostic pop

/* Of x and dy, or of what is like them: floats of all sizes. Beside halves the filter, the bias and
 * the gradients of both may be f32. */
typedef struct {
    snug_dtype dtype, w, bias; /* w, bias: or dw, db */
} sn_conv_types;

static inline sn_conv_types sn_conv_types_of(const snug_type *x, const snug_type *w,
                                             const snug_type *bias) {
    return sn_conv_types{x->dtype, w->dtype, bias ? bias->dtype : w->dtype};
}
static inline sn_conv_types sn_conv_types_of_desc(const sn_opdesc *d, sn_dnn_kind kind) {
    if (kind == SN_DNN_DW)
        return sn_conv_types_of(&d->in[0], &d->out[0], d->n_out > 1 ? &d->out[1] : NULL);
    return sn_conv_types_of(&d->in[0], &d->in[1], d->n_in > 2 ? &d->in[2] : NULL);
}
static inline sn_conv_types sn_conv_types_of_call(const sn_call *c, sn_dnn_kind kind) {
    const snug_type *second = kind == SN_DNN_DW && c->n_out > 1  ? &c->out[1].type
                              : kind != SN_DNN_DW && c->n_in > 2 ? &c->in[2].type
                                                                 : NULL;
    const snug_type *w = kind == SN_DNN_DW ? &c->out[0].type : &c->in[1].type;
    return sn_conv_types_of(&c->in[0].type, w, second);
}

/* Memory of a call. */
typedef struct {
    sn_conv_types types;
    const void *x, *w, *dy, *bias, *scale; /* those the operator reads */
    void *y, *dx, *dw, *db;                /* those it writes; db may be NULL */
    bool accumulate;                       /* dw, db */
} sn_cuda_conv;

/* A forward call's bias may be a line: scale, then shift. */
static inline void sn_conv_split_line(const sn_call *k, sn_cuda_conv *o) {
    if (k->n_in <= SN_CONV_BIAS || k->in[SN_CONV_BIAS].type.rank != 2)
        return;
    o->scale = o->bias;
    o->bias = (const char *)o->bias + k->in[SN_CONV_BIAS].bytes / 2;
}

/* Elements of the filters; and of the sums over pixels: those of dw, and behind them of db. */
static inline int64_t sn_conv_weights(const sn_conv *v) {
    return v->kh * v->kw * (v->C / v->groups) * v->O;
}
static inline int64_t sn_conv_sums(const sn_conv *v) {
    return sn_conv_weights(v) + (v->bias ? v->O : 0);
}

/* --- one convolution, by whichever kernel suits ----------------------------------------------- */
typedef struct {
    char impl[40];
    size_t bytes; /* scratch */
    double efficiency;
} sn_conv_choice;

typedef struct sn_conv_step sn_conv_step;

void sn_conv_choose(const sn_gpu *g, const sn_conv *v, sn_dnn_kind kind, const sn_conv_types *t,
                    sn_conv_choice *out);
/* *out is NULL for kernels that need no preparation. */
snug_status sn_conv_make(sn_gpu *g, const sn_conv *v, sn_dnn_kind kind, const sn_conv_types *t,
                         const char *impl, sn_conv_step **out, snug_error *err);
void sn_conv_drop(sn_gpu *g, sn_conv_step *step);
snug_status sn_conv_run(const sn_cuda_call *c, const sn_conv_step *step, const sn_conv *v,
                        sn_dnn_kind kind, const sn_cuda_conv *o, void *scratch, snug_error *err);

/* --- plain: any stride, dilation, groups ------------------------------------------------------ */
void sn_conv_plain(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o);
void sn_conv_plain_dx(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o);
/* Also db. */
size_t sn_conv_plain_dw_bytes(const sn_gpu *g, const sn_conv *v, snug_dtype dtype);
void sn_conv_plain_dw(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o,
                      void *scratch);

/* --- one filter per channel (conv_depthwise.cu) ----------------------------------------------- */
bool sn_depthwise_takes(const sn_conv *v, snug_dtype dtype);
/* Addresses are multiples of 16 bytes. */
void sn_conv_depthwise(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o);
void sn_conv_depthwise_dx(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o);
/* Also db. */
size_t sn_conv_depthwise_dw_bytes(const sn_conv *v);
void sn_conv_depthwise_dw(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o,
                          void *scratch);

/* --- 3 x 3 filters of 3 channels, forward, halves on tensor cores (conv_pool_half.cu) --------- */
bool sn_conv_first_takes(const sn_gpu *g, const sn_conv *v, snug_dtype dtype);
void sn_conv_first(const sn_cuda_call *c, const sn_conv *v, const sn_cuda_conv *o);

/* --- around an engine ------------------------------------------------------------------------- */
/* out[column] (+)= the sum of x[rows][columns] over its rows, in a fixed order. */
size_t sn_column_sums_bytes(int64_t rows, int64_t columns);
void sn_column_sums(const sn_cuda_call *c, const float *x, int64_t rows, int64_t columns, bool add,
                    float *out, void *scratch);
/* y = act(scale y + bias) over [pixels][channels]; scale and bias may be NULL. */
void sn_conv_finish(const sn_cuda_call *c, float *y, int64_t pixels, int64_t channels,
                    const float *scale, const float *bias, int act);
/* The same where x and y are of halves; the others may be f32, and bias.data NULL. */
void sn_column_sums_of(const sn_cuda_call *c, sn_mixed_line x, int64_t rows, int64_t columns,
                       bool add, sn_mixed_line out, void *scratch);
void sn_conv_finish_of(const sn_cuda_call *c, sn_mixed_line y, int64_t pixels, int64_t channels,
                       sn_mixed_line bias, int act);

/* A filter as an engine has it: [O][kh + more rows][kw + more columns][C], zeros where `first` of
 * the rows or columns, or those behind, are not the filter's own. */
typedef struct {
    int64_t kh, kw, C, O; /* the filter's own */
    int64_t high, wide;   /* the engine's */
    int64_t top, left;    /* where the filter lies in it */
} sn_turned;
/* scale: of the O outputs, or NULL. Behind the filter lie O zeros, for who needs a bias. */
void sn_filter_turn(const sn_cuda_call *c, const sn_turned *t, const float *w, const float *scale,
                    float *out);
/* Of the convolution that gives dx: [C][kh][kw][O], places in reverse, and C zeros behind. */
void sn_filter_reverse(const sn_cuda_call *c, const sn_turned *t, const float *w, float *out);
void sn_filter_return(const sn_cuda_call *c, const sn_turned *t, const float *from, bool add,
                      float *w);
/* The same for filters that the engine has as halves; data that are NULL are not there. What stands
 * for the zeros lies at `behind`: the bias, where there is one. */
void sn_filter_turn_to(const sn_cuda_call *c, const sn_turned *t, sn_mixed_line w,
                       sn_mixed_line scale, sn_mixed_line bias, sn_mixed_line out, void *behind);
void sn_filter_reverse_to(const sn_cuda_call *c, const sn_turned *t, sn_mixed_line w,
                          sn_mixed_line out, void *behind);
void sn_filter_return_from(const sn_cuda_call *c, const sn_turned *t, sn_mixed_line from, bool add,
                           sn_mixed_line w);

/* --- the weight gradient as products of a turned input (conv_turned.cu) ----------------------- */
bool sn_turned_dw_takes(const sn_gpu *g, const sn_conv *v);
size_t sn_turned_dw_bytes(const sn_gpu *g, const sn_conv *v);
typedef struct sn_turned_dw sn_turned_dw;
snug_status sn_turned_dw_make(sn_gpu *g, const sn_conv *v, sn_turned_dw **out, snug_error *err);
void sn_turned_dw_drop(sn_gpu *g, sn_turned_dw *plan);
snug_status sn_turned_dw_run(const sn_cuda_call *c, const sn_turned_dw *plan, const sn_conv *v,
                             const sn_cuda_conv *o, void *scratch, snug_error *err);

/* --- the weight gradient of few input channels as a product of patches (conv_patches.cu) ------ */
bool sn_patches_dw_takes(const sn_gpu *g, const sn_conv *v);
/* 0: the library has no such product. */
size_t sn_patches_dw_bytes(const sn_gpu *g, const sn_conv *v);
snug_status sn_patches_dw_make(sn_gpu *g, const sn_conv *v, sn_blas_plan **out, snug_error *err);
snug_status sn_patches_dw_run(const sn_cuda_call *c, const sn_blas_plan *plan, const sn_conv *v,
                              const sn_cuda_conv *o, void *scratch, snug_error *err);

#endif
