/* own.cu: walks as launches hand them to kernels (own.h), and flat copies. */
#include "kernels/cuda/own.h"

void sn_cuda_dense(const snug_type *t, int64_t *stride) {
    int64_t step = 1;
    for (int k = t->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= t->dims[k];
    }
}

sn_cuda_walk sn_cuda_walk_over(const snug_type *t) {
    sn_cuda_walk w = {};
    w.rank = t->rank;
    w.n = 1;
    for (int k = 0; k < t->rank; k++)
        w.dims[k] = t->dims[k];
    sn_cuda_dense(t, w.stride[0]);
    return w;
}

void sn_cuda_walk_broadcast(sn_cuda_walk *w, const snug_type *t) {
    int64_t dense[SNUG_MAX_RANK] = {0};
    int64_t *stride = w->stride[w->n++];
    const int missing = w->rank - t->rank;
    sn_cuda_dense(t, dense);
    for (int k = 0; k < w->rank; k++)
        stride[k] = k < missing || t->dims[k - missing] == 1 ? 0 : dense[k - missing];
}

/* Whether every operand steps over the last axis of m as if it were more of the next one. */
static bool joins(const sn_cuda_walk *m, const sn_cuda_walk *w, int k) {
    for (int i = 0; i < m->n; i++)
        if (m->stride[i][m->rank - 1] != w->stride[i][k] * w->dims[k])
            return false;
    return true;
}

void sn_cuda_walk_merge(sn_cuda_walk *w) {
    sn_cuda_walk m = {};
    m.n = w->n;
    for (int k = 0; k < w->rank; k++) {
        if (w->dims[k] == 1)
            continue;
        const bool joined = m.rank > 0 && joins(&m, w, k);
        const int at = joined ? m.rank - 1 : m.rank++;
        m.dims[at] = joined ? m.dims[at] * w->dims[k] : w->dims[k];
        for (int i = 0; i < m.n; i++)
            m.stride[i][at] = w->stride[i][k];
    }
    if (m.rank == 0) {
        m.rank = 1;
        m.dims[0] = 1;
    }
    *w = m;
}

sn_steps sn_cuda_steps(const sn_cuda_walk *w) {
    sn_steps s = {};
    s.rank = w->rank > 0 ? w->rank : 1;
    s.count = 1;
    s.dim[0] = sn_divisor_of(1);
    for (int k = 0; k < w->rank; k++) {
        s.dim[k] = sn_divisor_of(w->dims[k]);
        s.count *= w->dims[k];
    }
    memcpy(s.stride, w->stride, sizeof s.stride);
    return s;
}

sn_cuda_place sn_cuda_place_of(const sn_call *c) {
    const snug_type *t = &c->out[0].type;
    sn_cuda_place p = {sn_divisor_of(1), 0, 1};
    if (t->rank == 0)
        return p;
    const int64_t inner = sn_cuda_count(t, c->axis + 1, t->rank);
    p.length = sn_divisor_of(t->dims[c->axis] * inner);
    p.start = c->first * inner;
    p.pitch = c->full * inner;
    return p;
}

/* --- flat copies ------------------------------------------------------------------------------ */
template <class W> struct copy_words {
    W *to;
    const W *from;
    __device__ void operator()(int64_t i) const { to[i] = from[i]; }
};

template <class W>
static void copy_as(const sn_cuda_call *c, void *to, const void *from, int64_t bytes) {
    sn_each(c, bytes / (int64_t)sizeof(W), copy_words<W>{(W *)to, (const W *)from});
}

void sn_cuda_copy(const sn_cuda_call *c, void *to, const void *from, int64_t bytes) {
    const uintptr_t both = (uintptr_t)to | (uintptr_t)from;
    if (to == from)
        return;
    int64_t done = 0;
    if (both % 16 == 0)
        copy_as<int4>(c, to, from, done = bytes / 16 * 16);
    else if (both % 4 == 0)
        copy_as<int32_t>(c, to, from, done = bytes / 4 * 4);
    copy_as<uint8_t>(c, (char *)to + done, (const char *)from + done, bytes - done);
}
