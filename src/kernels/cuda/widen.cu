/* widen.cu: operands of halves as f32 in scratch (widen.h): copies of inputs, outputs, then what
 * the row's own kernels need. */
#include "kernels/cuda/widen.h"

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/lib.h"

static size_t wide_bytes(const snug_type *t) {
    const size_t bytes = (size_t)sn_cuda_count(t, 0, t->rank) * sizeof(float);
    return sn_dtype_is_half(t->dtype) ? (bytes + 255) / 256 * 256 : 0;
}

static void widen(snug_type *t) {
    t->dtype = sn_dtype_is_half(t->dtype) ? SNUG_F32 : t->dtype;
}

snug_status sn_widened_describe(const sn_gpu *g, const sn_opdesc *d, sn_cuda_describe describe,
                                sn_variant *out, snug_error *err) {
    sn_opdesc wide = *d;
    size_t bytes = 0;
    bool f64 = false, half = false;
    for (int i = 0; i < d->n_in + d->n_out; i++) {
        snug_type *t = i < d->n_in ? &wide.in[i] : &wide.out[i - d->n_in];
        bytes += wide_bytes(t);
        f64 = f64 || t->dtype == SNUG_F64;
        half = half || sn_dtype_is_half(t->dtype);
        widen(t);
    }
    if (f64 && half)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "no GPU kernel of halves beside f64");
    if (describe)
        SNUG_TRY(describe(g, &wide, out, err));
    out->workspace_bytes += bytes;
    return SNUG_OK;
}

struct convert_f {
    sn_mixed_line from, to;
    __device__ void operator()(int64_t i) const { to.put(i, from[i]); }
};
void sn_convert_to(const sn_cuda_call *c, const snug_view *from, snug_dtype dtype, void *to) {
    sn_each(c, sn_cuda_elements(from), convert_f{{from->data, from->type.dtype}, {to, dtype}});
}

/* Where the two are not one. */
static void copy(const sn_cuda_call *c, const snug_view *from, const snug_view *to) {
    if (from->data != to->data)
        sn_convert_to(c, from, to->type.dtype, to->data);
}

/* The same elements at *at, which moves behind them; what is of no halves stays. */
static snug_view wide_view(const snug_view *v, char **at) {
    snug_view w = *v;
    if (!sn_dtype_is_half(v->type.dtype))
        return w;
    w.data = *at;
    w.bytes = (size_t)sn_cuda_elements(v) * sizeof(float);
    *at += wide_bytes(&v->type);
    widen(&w.type);
    return w;
}

snug_status sn_widened_run(const sn_cuda_call *c, sn_cuda_run run, snug_error *err) {
    const sn_call *k = c->call;
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    char *at = (char *)k->workspace;
    for (int i = 0; i < k->n_in; i++)
        in[i] = wide_view(&k->in[i], &at);
    for (int i = 0; i < k->n_out; i++)
        out[i] = wide_view(&k->out[i], &at);
    const size_t bytes = (size_t)(at - (char *)k->workspace);
    SNUG_TRY(sn_scratch_check(k, bytes, err));
    sn_call inner = *k;
    inner.in = in;
    inner.out = out;
    inner.workspace = at;
    inner.workspace_bytes -= bytes;
    const sn_cuda_call call = {c->gpu, c->stream, &inner, c->refused};
    for (int i = 0; i < k->n_in; i++)
        copy(c, &k->in[i], &in[i]);
    for (int i = 0; i < k->n_out && k->accumulate; i++)
        copy(c, &k->out[i], &out[i]);
    SNUG_TRY(run(&call, err));
    for (int i = 0; i < k->n_out; i++)
        copy(c, &out[i], &k->out[i]);
    return SNUG_OK;
}
