/* move.c: rows that move elements without looking at them: identity (and reshape), assign, fill,
 * broadcast_to, transpose, concat, slice, slice_grad, pad. Only the bytes of an element matter.
 *
 * All but the flat copies are one strided copy: a walk over an index space with strides for the
 * destination (operand 0) and the source (operand 1). Where the source's dense axis is not the
 * destination's, the copy goes in square tiles, so that both sides are read and written by whole
 * cache lines. */
#include "kernels/cpu/loops.h"
#include "tensor/feed.h"

#include <string.h>

#define TILE 32

/* Calls do(1, uint8_t), do(2, uint16_t), ... */
#define SIZE_MAP(X) X(1, uint8_t) X(2, uint16_t) X(4, uint32_t) X(8, uint64_t)

/* --- strided copies --------------------------------------------------------------------------- */
/* tile_SIZE: one tile: `across` runs along the source's dense axis, `n` along the destination's.
 * It turns in a buffer, so that rows which are powers of two apart do not fight for the same
 * lines of the cache. */
#define COPY_ROW(size, M)                                                                          \
    static void copy_##size(const sn_call *c, const sn_walk *w, const int64_t *at, int64_t n) {    \
        const int64_t to_step = sn_walk_step(w, 0), from_step = sn_walk_step(w, 1);                \
        const M *from = (const M *)c->in[0].data + at[1];                                          \
        M *to = (M *)c->out[0].data + at[0];                                                       \
        if (to_step == 1 && from_step == 1) {                                                      \
            memcpy(to, from, (size_t)n * sizeof(M));                                               \
        } else if (to_step == 1 && from_step == 0) {                                               \
            const M v = from[0];                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = v;                                                                         \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i * to_step] = from[i * from_step];                                             \
        }                                                                                          \
    }                                                                                              \
    static void tile_##size(const void *src, void *dst, const int64_t *steps, int64_t across,      \
                            int64_t n) {                                                           \
        const M *from = src;                                                                       \
        M *to = dst, turned[TILE][TILE];                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < across; j++)                                                   \
                turned[j][i] = from[i * steps[1] + j];                                             \
        for (int64_t j = 0; j < across; j++)                                                       \
            memcpy(to + j * steps[0], turned[j], (size_t)n * sizeof(M));                           \
    }
SIZE_MAP(COPY_ROW)

typedef void (*tile_copy)(const void *src, void *dst, const int64_t *steps, int64_t across,
                          int64_t n);

static sn_row row_of(size_t size) {
    return size == 1 ? copy_1 : size == 2 ? copy_2 : size == 4 ? copy_4 : copy_8;
}

static tile_copy tile_of(size_t size) {
    return size == 1 ? tile_1 : size == 2 ? tile_2 : size == 4 ? tile_4 : tile_8;
}

/* The axis along which the source is dense, when the innermost one is not; -1: no use for tiles. */
static int tile_axis(const sn_walk *w) {
    if (sn_walk_step(w, 0) != 1 || sn_walk_step(w, 1) <= 1)
        return -1;
    for (int k = 0; k < w->rank - 1; k++)
        if (w->stride[1][k] == 1)
            return k;
    return -1;
}

/* Tiles of one pair (outer index, strip of the source's dense axis): all of the innermost axis. */
static void copy_strip(const sn_walk *w, const sn_call *c, int axis, int64_t outer, int64_t first) {
    const size_t size = snug_dtype_bytes(c->out[0].type.dtype);
    const tile_copy tile = tile_of(size);
    const int last = w->rank - 1;
    const int64_t steps[2] = {w->stride[0][axis], w->stride[1][last]};
    int64_t to = first * steps[0], from = first;
    for (int k = last - 1; k >= 0; k--) {
        if (k == axis)
            continue;
        to += outer % w->dims[k] * w->stride[0][k];
        from += outer % w->dims[k] * w->stride[1][k];
        outer /= w->dims[k];
    }
    const int64_t across = sn_min_i64(TILE, w->dims[axis] - first);
    for (int64_t i = 0; i < w->dims[last]; i += TILE)
        tile((const char *)c->in[0].data + (size_t)(from + i * steps[1]) * size,
             (char *)c->out[0].data + (size_t)(to + i) * size, steps, across,
             sn_min_i64(TILE, w->dims[last] - i));
}

typedef struct {
    const sn_walk *w;
    const sn_call *c;
    int axis;
    int64_t strips;
} tile_loop;

static void copy_strips(const void *ctx, int64_t first, int64_t end) {
    const tile_loop *l = ctx;
    for (int64_t u = first; u < end; u++)
        copy_strip(l->w, l->c, l->axis, u / l->strips, u % l->strips * TILE);
}

static void copy_tiles(const sn_walk *w, const sn_call *c, int axis) {
    int64_t count = 1;
    for (int k = 0; k < w->rank; k++)
        count *= w->dims[k];
    if (count == 0)
        return;
    const int64_t strips = sn_ceil_div(w->dims[axis], TILE);
    const int64_t outer = count / w->dims[axis] / w->dims[w->rank - 1];
    const tile_loop loop = {w, c, axis, strips};
    sn_parallel(c, count, outer * strips, copy_strips, &loop);
}

/* A copy from `from` to `to` over w; views start at the walk's first element. */
typedef void (*copier)(const sn_call *c, const snug_view *to, const snug_view *from, sn_walk w);

static void copy_plain(const sn_call *c, const snug_view *to, const snug_view *from, sn_walk w) {
    sn_call part = *c;
    part.out = to;
    part.in = from;
    sn_walk_elements(&w, &part, row_of(snug_dtype_bytes(to->type.dtype)));
}

static void copy_fast(const sn_call *c, const snug_view *to, const snug_view *from, sn_walk w) {
    sn_call part = *c;
    part.out = to;
    part.in = from;
    sn_walk_merge(&w);
    const int axis = tile_axis(&w);
    if (axis >= 0)
        copy_tiles(&w, &part, axis);
    else
        sn_walk_run(&w, &part, row_of(snug_dtype_bytes(to->type.dtype)));
}

static snug_view shifted(const snug_view *v, int64_t elements) {
    snug_view s = *v;
    s.data = (char *)v->data + elements * (int64_t)snug_dtype_bytes(v->type.dtype);
    return s;
}

/* --- flat: copies and constants --------------------------------------------------------------- */
typedef struct {
    char *to;
    const char *from;
    int64_t bytes;
} flat_loop;

enum { LINE = 64 };

static void copy_lines(const void *ctx, int64_t first, int64_t end) {
    const flat_loop *l = ctx;
    memcpy(l->to + first * LINE, l->from + first * LINE,
           (size_t)(sn_min_i64(end * LINE, l->bytes) - first * LINE));
}

static void copy_flat(const sn_call *c, const snug_view *from) {
    const int64_t bytes = (int64_t)snug_dtype_bytes(from->type.dtype) * sn_type_count(&from->type);
    const flat_loop loop = {c->out[0].data, from->data, bytes};
    if (c->out[0].data != from->data)
        sn_parallel(c, bytes / 4, sn_ceil_div(bytes, LINE), copy_lines, &loop);
}

static snug_status run_identity(const sn_call *c, snug_error *err) {
    (void)err;
    copy_flat(c, &c->in[0]);
    return SNUG_OK;
}

static snug_status run_assign(const sn_call *c, snug_error *err) {
    (void)err;
    copy_flat(c, &c->in[1]);
    return SNUG_OK;
}

/* The element that holds `value`; integers saturate, NaN gives 0 there. */
static snug_status element_of(const sn_call *c, double value, uint64_t *element, snug_error *err) {
    const snug_dtype dtype = c->out[0].type.dtype;
    const double limit = sn_dtype_largest(dtype);
    const double low = sn_dtype_counts(dtype) ? 0 : dtype == SNUG_I64 ? -0x1p63 : -limit - 1;
    const double in_range = value > limit ? limit : value < low ? low : value == value ? value : 0;
    const float single = (float)value;
    const SN_HALF half = (SN_HALF)value;
    const int64_t whole = (int64_t)in_range;
    const uint8_t truth = value != 0;
    *element = 0;
    if (dtype == SNUG_F32)
        memcpy(element, &single, sizeof single);
    else if (dtype == SNUG_F64)
        memcpy(element, &value, sizeof value);
    else if (dtype == SNUG_F16)
        memcpy(element, &half, sizeof half);
    else if (dtype == SNUG_BF16)
        return sn_convert(SNUG_F32, &single, dtype, element, 1, err);
    else if (dtype == SNUG_BOOL)
        memcpy(element, &truth, sizeof truth);
    else if (sn_dtype_is_int(dtype))
        memcpy(element, &whole, snug_dtype_bytes(dtype)); /* little endian: the low bytes */
    else
        return sn_no_kernel(dtype, err);
    return SNUG_OK;
}

/* The whole output becomes one element. */
static snug_status fill_output(const sn_call *c, double value, copier copy, snug_error *err) {
    uint64_t element;
    SNUG_TRY(element_of(c, value, &element, err));
    const snug_view from = {&element, sizeof element, {.dtype = c->out[0].type.dtype}};
    sn_walk w = sn_walk_over(&c->out[0].type);
    sn_walk_add_broadcast(&w, &from.type);
    copy(c, &c->out[0], &from, w);
    return SNUG_OK;
}

static snug_status reference_fill(const sn_call *c, snug_error *err) {
    return fill_output(c, c->param[0].real, copy_plain, err);
}

static snug_status run_fill(const sn_call *c, snug_error *err) {
    return fill_output(c, c->param[0].real, copy_fast, err);
}

/* --- broadcast_to, transpose, concat ---------------------------------------------------------- */
static void broadcast_by(const sn_call *c, copier copy) {
    sn_walk w = sn_walk_over(&c->out[0].type);
    sn_walk_add_broadcast(&w, &c->in[0].type);
    copy(c, &c->out[0], &c->in[0], w);
}

static void transpose_by(const sn_call *c, copier copy) {
    int64_t dense[SNUG_MAX_RANK] = {0};
    sn_walk w = sn_walk_over(&c->out[0].type);
    sn_dense_strides(&c->in[0].type, dense);
    for (int k = 0; k < w.rank; k++)
        w.stride[1][k] = dense[c->attrs->perm.perm.v[k]];
    w.n = 2;
    copy(c, &c->out[0], &c->in[0], w);
}

/* Source dense, destination a part of the output that starts at element `at` with these strides. */
static void copy_into(const sn_call *c, int input, const int64_t *stride, int64_t at, copier copy) {
    sn_walk w = sn_walk_over(&c->in[input].type);
    const snug_view to = shifted(&c->out[0], at);
    memcpy(w.stride[1], w.stride[0], sizeof w.stride[1]);
    memcpy(w.stride[0], stride, sizeof w.stride[0]);
    w.n = 2;
    copy(c, &to, &c->in[input], w);
}

static void concat_by(const sn_call *c, copier copy) {
    const int64_t axis = c->attrs->axis.axis;
    int64_t dense[SNUG_MAX_RANK] = {0}, at = 0;
    sn_dense_strides(&c->out[0].type, dense);
    for (int i = 0; i < c->n_in; i++) {
        copy_into(c, i, dense, at, copy);
        at += c->in[i].type.dims[axis] * dense[axis];
    }
}

/* --- slice, slice_grad, pad ------------------------------------------------------------------- */
/* A slice: `part` has the extents of what is taken from `whole`, every strides-th element. */
typedef struct {
    const snug_type *whole, *part;
    const sn_list *strides;
} cut;

/* Where that lies in the whole, in elements. */
typedef struct {
    int64_t stride[SNUG_MAX_RANK], at;
} region;

static snug_status locate(const sn_call *c, const cut *s, region *out, snug_error *err) {
    region r = {{0}, 0};
    int64_t dense[SNUG_MAX_RANK] = {0};
    sn_dense_strides(s->whole, dense);
    for (int k = 0; k < s->whole->rank; k++) {
        const int64_t by = s->strides->n > 0 ? s->strides->v[k] : 1;
        const int64_t start = c->param[k].key, n = s->part->dims[k], extent = s->whole->dims[k];
        const int64_t reach = n > 0 ? (n - 1) * by : 0; /* from the first to the last */
        const int64_t low = reach < 0 ? -reach : 0;
        const int64_t high = n > 0 ? extent - 1 - (reach > 0 ? reach : 0) : extent;
        if (start < low || start > high)
            return sn_fail(err, SNUG_E_INVALID,
                           "%lld elements %lld apart from %lld on leave axis %d of extent "
                           "%lld; start at %lld to %lld",
                           (long long)n, (long long)by, (long long)start, k, (long long)extent,
                           (long long)low, (long long)high);
        r.stride[k] = by * dense[k];
        r.at += start * dense[k];
    }
    *out = r;
    return SNUG_OK;
}

static cut slice_of(const sn_call *c) {
    return (cut){&c->in[0].type, &c->out[0].type, &c->attrs->slice.strides};
}

static cut slice_grad_of(const sn_call *c) {
    return (cut){&c->out[0].type, &c->in[0].type, &c->attrs->slice_grad.strides};
}

static snug_status check_slice(const sn_call *c, snug_error *err) {
    const cut s = slice_of(c);
    region r;
    return locate(c, &s, &r, err);
}

static snug_status check_slice_grad(const sn_call *c, snug_error *err) {
    const cut s = slice_grad_of(c);
    region r;
    return locate(c, &s, &r, err);
}

static snug_status slice_by(const sn_call *c, copier copy, snug_error *err) {
    const cut s = slice_of(c);
    sn_walk w = sn_walk_over(&c->out[0].type);
    region r;
    SNUG_TRY(locate(c, &s, &r, err));
    const snug_view from = shifted(&c->in[0], r.at);
    memcpy(w.stride[1], r.stride, sizeof r.stride);
    w.n = 2;
    copy(c, &c->out[0], &from, w);
    return SNUG_OK;
}

static snug_status slice_grad_by(const sn_call *c, copier copy, snug_error *err) {
    const cut s = slice_grad_of(c);
    region r;
    SNUG_TRY(locate(c, &s, &r, err));
    SNUG_TRY(fill_output(c, 0, copy, err));
    copy_into(c, 0, r.stride, r.at, copy);
    return SNUG_OK;
}

static snug_status pad_by(const sn_call *c, copier copy, snug_error *err) {
    int64_t dense[SNUG_MAX_RANK] = {0}, at = 0;
    sn_dense_strides(&c->out[0].type, dense);
    for (int k = 0; k < c->out[0].type.rank; k++)
        at += c->attrs->pad.before.v[k] * dense[k];
    SNUG_TRY(fill_output(c, c->param[0].real, copy, err));
    if (sn_type_count(&c->in[0].type) > 0)
        copy_into(c, 0, dense, at, copy);
    return SNUG_OK;
}

/* --- families --------------------------------------------------------------------------------- */
#define MOVES(name)                                                                                \
    static snug_status reference_##name(const sn_call *c, snug_error *err) {                       \
        (void)err;                                                                                 \
        name##_by(c, copy_plain);                                                                  \
        return SNUG_OK;                                                                            \
    }                                                                                              \
    static snug_status run_##name(const sn_call *c, snug_error *err) {                             \
        (void)err;                                                                                 \
        name##_by(c, copy_fast);                                                                   \
        return SNUG_OK;                                                                            \
    }
#define MOVES_OR_FAILS(name)                                                                       \
    static snug_status reference_##name(const sn_call *c, snug_error *err) {                       \
        return name##_by(c, copy_plain, err);                                                      \
    }                                                                                              \
    static snug_status run_##name(const sn_call *c, snug_error *err) {                             \
        return name##_by(c, copy_fast, err);                                                       \
    }

MOVES(broadcast)
MOVES(transpose)
MOVES(concat)
MOVES_OR_FAILS(slice)
MOVES_OR_FAILS(slice_grad)
MOVES_OR_FAILS(pad)

SN_CPU_FAMILY(identity, .reference = run_identity, .run = run_identity,
              .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(assign, .reference = run_assign, .run = run_assign, .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(fill, .reference = reference_fill, .run = run_fill, .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(broadcast_to, .reference = reference_broadcast, .run = run_broadcast,
              .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(transpose, .reference = reference_transpose, .run = run_transpose,
              .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(concat, .reference = reference_concat, .run = run_concat,
              .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(slice, .reference = reference_slice, .run = run_slice, .check = check_slice,
              .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(slice_grad, .reference = reference_slice_grad, .run = run_slice_grad,
              .check = check_slice_grad, .takes_stored = SN_STORED_DTYPES)
SN_CPU_FAMILY(pad, .reference = reference_pad, .run = run_pad, .takes_stored = SN_STORED_DTYPES)
