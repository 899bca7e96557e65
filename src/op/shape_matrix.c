/* shape_matrix.c: shape rules of matrix products, convolutions and pooling.
 *
 * Images are [N,H,W,C]; kernels of convolutions [kh,kw,C/groups,O]; pad is top, bottom, left,
 * right. What a kernel relies on is checked here: positive strides, dilations, groups and kernels,
 * channels that divide, a window that fits the padded image at least once. */
#include "op/rules.h"

#include "base/size.h"

/* --- matmul ----------------------------------------------------------------------------------- */
/* Extents of the last two axes as the product sees them. */
typedef struct {
    int64_t rows, cols;
} matrix;

static matrix matrix_of(const snug_type *t, bool transposed) {
    const int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
    return transposed ? (matrix){cols, rows} : (matrix){rows, cols};
}

/* Extents [from, to) as one. */
static int64_t folded(const snug_type *t, int64_t from, int64_t to) {
    int64_t n = 1;
    for (int64_t k = from; k < to; k++)
        n = n < 0 || t->dims[k] < 0 ? -1 : n * t->dims[k];
    return n;
}

/* b as matrices; with fold_b its first axes are the rows of a single one, the others its
 * columns. */
static snug_type matrices_of_b(const sn_opdesc *d) {
    const int64_t rows = d->attrs.matmul.fold_b;
    const snug_type *b = &d->in[1];
    if (rows == 0)
        return *b;
    return (snug_type){
        .dtype = b->dtype, .rank = 2, .dims = {folded(b, 0, rows), folded(b, rows, b->rank)}};
}

static snug_type batch_of(const snug_type *t) {
    snug_type batch = *t;
    batch.rank -= 2;
    return batch;
}

static snug_status check_matmul(const sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_flag(d, "trans_a", d->attrs.matmul.trans_a, err));
    SNUG_TRY(sn_want_flag(d, "trans_b", d->attrs.matmul.trans_b, err));
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_beside(d, 1, 0, err));
    SNUG_TRY(sn_want_wide(d, 0, d->attrs.matmul.wide, err));
    SNUG_TRY(sn_want_rank(d, 0, 2, SNUG_MAX_RANK, err));
    SNUG_TRY(sn_want_rank(d, 1, 2, SNUG_MAX_RANK, err));
    const int64_t rows = d->attrs.matmul.fold_b;
    if (rows < 0 || rows >= d->in[1].rank || (rows > 0 && d->attrs.matmul.trans_a))
        return sn_fail(err, SNUG_E_SHAPE,
                       "matmul: fold_b=%lld of %s; some axes must be left for the columns, and a "
                       "must not be transposed",
                       (long long)rows, sn_type_text(&d->in[1]).s);
    return SNUG_OK;
}

snug_status sn_shape_matmul(sn_opdesc *d, snug_error *err) {
    const sn_attrs_matmul *at = &d->attrs.matmul;
    SNUG_TRY(check_matmul(d, err));
    const snug_type weight = matrices_of_b(d);
    const matrix a = matrix_of(&d->in[0], at->trans_a != 0),
                 b = matrix_of(&weight, at->trans_b != 0);
    if (!sn_dim_fits(a.cols, b.rows))
        return sn_fail(err, SNUG_E_SHAPE,
                       "matmul: %s%s times %s%s: the inner extents %lld and %lld must be equal",
                       sn_type_text(&d->in[0]).s, at->trans_a ? " transposed" : "",
                       sn_type_text(&d->in[1]).s, at->trans_b ? " transposed" : "",
                       (long long)a.cols, (long long)b.rows);
    snug_type out;
    const snug_type batch_a = batch_of(&d->in[0]), batch_b = batch_of(&weight);
    const snug_status status = sn_type_broadcast(d, &batch_a, &batch_b, &out, err);
    if (status != SNUG_OK)
        return sn_fail_in(err, status, "leading axes of %s and %s", sn_type_text(&d->in[0]).s,
                          sn_type_text(&d->in[1]).s);
    out.dims[out.rank] = a.rows;
    out.dims[out.rank + 1] = b.cols;
    out.rank += 2;
    out.dtype = sn_wide_dtype(d, 0, at->wide);
    if (d->n_in == 3)
        SNUG_TRY(sn_want_vectors(d, 2, 1, &out, err));
    return sn_one_output(d, out);
}

/* --- windows ---------------------------------------------------------------------------------- */
/* One spatial axis of a window operator. */
typedef struct {
    int64_t extent, kernel, stride, dilation, before, after;
} window;

/* How many times the window fits; -1 when an extent is unknown. The attributes are below 2^31. */
static snug_status count_windows(const sn_opdesc *d, const char *axis, window w, int64_t *out,
                                 snug_error *err) {
    *out = -1;
    if (w.extent < 0 || w.kernel < 0)
        return SNUG_OK;
    int64_t padded, covered = 0;
    bool fits = sn_i64_add(w.extent, w.before + w.after, &padded);
    if (w.kernel > 0)
        fits = fits && sn_i64_mul(w.kernel - 1, w.dilation, &covered) &&
               sn_i64_add(covered, 1, &covered);
    if (!fits)
        return sn_fail(err, SNUG_E_OVERFLOW,
                       "%s: the padded %s or its kernel exceeds the address space", sn_op_name(d),
                       axis);
    if (w.kernel < 1 || covered > padded)
        return sn_fail(
            err, SNUG_E_SHAPE,
            "%s: along the %s a kernel of %lld (dilation %lld: %lld) does not fit the input of "
            "%lld padded to %lld; use a smaller kernel or more padding",
            sn_op_name(d), axis, (long long)w.kernel, (long long)w.dilation, (long long)covered,
            (long long)w.extent, (long long)padded);
    *out = (padded - covered) / w.stride + 1;
    return SNUG_OK;
}

/* stride, pad and dilation: the members all window families share, by pointers. */
typedef struct {
    const int64_t *stride, *pad, *dilation;
} geometry;

static const int64_t no_dilation[2] = {1, 1};

static snug_status check_geometry(const sn_opdesc *d, geometry g, snug_error *err) {
    SNUG_TRY(sn_want_range(d, "stride", g.stride, 2, 1, err));
    SNUG_TRY(sn_want_range(d, "pad", g.pad, 4, 0, err));
    return sn_want_range(d, "dilation", g.dilation, 2, 1, err);
}

/* Output height and width for an image of [.., size[0], size[1], ..]. */
static snug_status count_both(const sn_opdesc *d, geometry g, const int64_t *size,
                              const int64_t *kernel, int64_t *out, snug_error *err) {
    static const char *const names[2] = {"height", "width"};
    for (int k = 0; k < 2; k++) {
        const window w = {size[k],       kernel[k],    g.stride[k],
                          g.dilation[k], g.pad[2 * k], g.pad[2 * k + 1]};
        SNUG_TRY(count_windows(d, names[k], w, &out[k], err));
    }
    return SNUG_OK;
}

/* Padding below the kernel and an image with elements: no window lies wholly in the padding. */
static snug_status check_pool(const sn_opdesc *d, geometry g, const int64_t *kernel,
                              const int64_t *size, snug_error *err) {
    SNUG_TRY(check_geometry(d, g, err));
    SNUG_TRY(sn_want_range(d, "kernel", kernel, 2, 1, err));
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 4, 4, err));
    for (int k = 0; k < 4; k++) {
        if (g.pad[k] >= kernel[k / 2])
            return sn_fail(err, SNUG_E_SHAPE,
                           "%s: padding of %lld for a kernel of %lld; it must be smaller",
                           sn_op_name(d), (long long)g.pad[k], (long long)kernel[k / 2]);
    }
    if (size[0] == 0 || size[1] == 0)
        return sn_fail(err, SNUG_E_SHAPE, "%s: an image of %lld x %lld has nothing to pool",
                       sn_op_name(d), (long long)size[0], (long long)size[1]);
    return SNUG_OK;
}

/* The pooling of a convolution's results: kernel, stride, pad in eight words. results: height and
 * width, pooled afterwards. */
static snug_status count_pooled(const sn_opdesc *d, const int64_t *pool, int64_t *results,
                                snug_error *err) {
    const geometry g = {pool + 2, pool + 4, no_dilation};
    const int64_t size[2] = {results[0], results[1]};
    SNUG_TRY(check_pool(d, g, pool, size, err));
    return count_both(d, g, size, pool, results, err);
}

/* --- convolution ------------------------------------------------------------------------------ */
static snug_status check_conv(const sn_opdesc *d, geometry g, int64_t groups, snug_error *err) {
    SNUG_TRY(check_geometry(d, g, err));
    SNUG_TRY(sn_want_range(d, "groups", &groups, 1, 1, err));
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_beside(d, 1, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 4, 4, err));
    return sn_want_rank(d, 1, 4, 4, err);
}

static snug_status check_groups(const sn_opdesc *d, int64_t channels, int64_t groups,
                                snug_error *err) {
    if (channels < 0 || channels % groups == 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "%s: %lld channels do not divide into %lld groups",
                   sn_op_name(d), (long long)channels, (long long)groups);
}

/* Input 2 as [2, O]: a scale and a shift for each output channel. */
static snug_status want_line(const sn_opdesc *d, snug_type *out, snug_error *err) {
    snug_type line = {.dtype = out->dtype, .rank = 2, .dims = {2, out->dims[3]}};
    SNUG_TRY(sn_want_beside(d, 2, 0, err));
    SNUG_TRY(sn_want_dims(d, 2, &line, err));
    out->dims[3] = line.dims[1];
    return SNUG_OK;
}

snug_status sn_shape_conv2d(sn_opdesc *d, snug_error *err) {
    const sn_attrs_conv *a = &d->attrs.conv;
    const geometry g = {a->stride, a->pad, a->dilation};
    SNUG_TRY(check_conv(d, g, a->groups, err));
    const snug_type *x = &d->in[0], *w = &d->in[1];
    SNUG_TRY(check_groups(d, x->dims[3], a->groups, err));
    SNUG_TRY(check_groups(d, w->dims[3], a->groups, err));
    const int64_t per_group = x->dims[3] < 0 ? -1 : x->dims[3] / a->groups;
    if (!sn_dim_fits(per_group, w->dims[2]))
        return sn_fail(err, SNUG_E_SHAPE,
                       "conv2d: input %s in %lld groups and kernel %s; the kernel must have %lld "
                       "input channels",
                       sn_type_text(x).s, (long long)a->groups, sn_type_text(w).s,
                       (long long)per_group);
    snug_type out = {.dtype = x->dtype, .rank = 4, .dims = {x->dims[0], -1, -1, w->dims[3]}};
    SNUG_TRY(count_both(d, g, &x->dims[1], w->dims, &out.dims[1], err));
    if (d->n_in == 3 && d->in[2].rank == 2)
        SNUG_TRY(want_line(d, &out, err));
    else if (d->n_in == 3)
        SNUG_TRY(sn_want_vectors(d, 2, 1, &out, err));
    return sn_one_output(d, out);
}

/* dy must be what a convolution of an image of this size gives. */
static snug_status check_dy(const sn_opdesc *d, int i, const int64_t *windows, const int64_t *size,
                            snug_error *err) {
    const int64_t *dims = d->in[i].dims;
    if (sn_dim_fits(dims[1], windows[0]) && sn_dim_fits(dims[2], windows[1]))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE,
                   "%s: input %d is %s; an image of %lld x %lld gives %lld x %lld windows",
                   sn_op_name(d), i, sn_type_text(&d->in[i]).s, (long long)size[0],
                   (long long)size[1], (long long)windows[0], (long long)windows[1]);
}

/* Height and width of what a convolution of an image of this size gives, pooled unless pool is
 * NULL. */
static snug_status count_results(const sn_opdesc *d, geometry g, const int64_t *size,
                                 const int64_t *kernel, const int64_t *pool, int64_t *out,
                                 snug_error *err) {
    SNUG_TRY(count_both(d, g, size, kernel, out, err));
    return pool ? count_pooled(d, pool, out, err) : SNUG_OK;
}

/* pool: NULL, or that of the family that begins like conv_dx. */
static snug_status shape_dx(sn_opdesc *d, const int64_t *pool, snug_error *err) {
    const sn_attrs_conv_dx *a = &d->attrs.conv_dx;
    const geometry g = {a->stride, a->pad, a->dilation};
    SNUG_TRY(check_conv(d, g, a->groups, err));
    SNUG_TRY(sn_want_range(d, "input", a->input, 2, -1, err));
    const snug_type *dy = &d->in[0], *w = &d->in[1];
    SNUG_TRY(check_groups(d, w->dims[3], a->groups, err));
    if (!sn_dim_fits(dy->dims[3], w->dims[3]))
        return sn_fail(err, SNUG_E_SHAPE,
                       "%s: gradient %s and kernel %s; their last extents must be equal",
                       sn_op_name(d), sn_type_text(dy).s, sn_type_text(w).s);
    int64_t windows[2], channels = -1;
    SNUG_TRY(count_results(d, g, a->input, w->dims, pool, windows, err));
    SNUG_TRY(check_dy(d, 0, windows, a->input, err));
    if (w->dims[2] >= 0 && !sn_i64_mul(w->dims[2], a->groups, &channels))
        return sn_fail(err, SNUG_E_OVERFLOW,
                       "%s: %lld groups of %lld channels exceed the address space", sn_op_name(d),
                       (long long)a->groups, (long long)w->dims[2]);
    const snug_type dx = {
        .dtype = dy->dtype, .rank = 4, .dims = {dy->dims[0], a->input[0], a->input[1], channels}};
    return sn_one_output(d, dx);
}

snug_status sn_shape_conv2d_dx(sn_opdesc *d, snug_error *err) {
    return shape_dx(d, NULL, err);
}

/* pool: NULL, or that of the family that begins like conv_dw. */
static snug_status shape_dw(sn_opdesc *d, const int64_t *pool, snug_error *err) {
    const sn_attrs_conv_dw *a = &d->attrs.conv_dw;
    const geometry g = {a->stride, a->pad, a->dilation};
    SNUG_TRY(check_conv(d, g, a->groups, err));
    SNUG_TRY(sn_want_range(d, "kernel", a->kernel, 2, 1, err));
    SNUG_TRY(sn_want_flag(d, "bias", a->bias, err));
    SNUG_TRY(sn_want_wide(d, 0, a->wide, err));
    const snug_type *x = &d->in[0], *dy = &d->in[1];
    SNUG_TRY(check_groups(d, x->dims[3], a->groups, err));
    SNUG_TRY(check_groups(d, dy->dims[3], a->groups, err));
    if (!sn_dim_fits(x->dims[0], dy->dims[0]))
        return sn_fail(err, SNUG_E_SHAPE,
                       "%s: input %s and gradient %s; their first extents must be equal",
                       sn_op_name(d), sn_type_text(x).s, sn_type_text(dy).s);
    int64_t windows[2];
    SNUG_TRY(count_results(d, g, &x->dims[1], a->kernel, pool, windows, err));
    SNUG_TRY(check_dy(d, 1, windows, &x->dims[1], err));
    const int64_t per_group = x->dims[3] < 0 ? -1 : x->dims[3] / a->groups;
    d->n_out = a->bias ? 2 : 1;
    d->out[0] = (snug_type){.dtype = sn_wide_dtype(d, 0, a->wide),
                            .rank = 4,
                            .dims = {a->kernel[0], a->kernel[1], per_group, dy->dims[3]}};
    if (a->bias)
        d->out[1] = sn_type_channels(dy, d->out[0].dtype);
    return SNUG_OK;
}

snug_status sn_shape_conv2d_dw(sn_opdesc *d, snug_error *err) {
    return shape_dw(d, NULL, err);
}

/* --- pooling ---------------------------------------------------------------------------------- */
snug_status sn_shape_avgpool(sn_opdesc *d, snug_error *err) {
    const sn_attrs_pool *a = &d->attrs.pool;
    const geometry g = {a->stride, a->pad, no_dilation};
    const int64_t *size = &d->in[0].dims[1];
    SNUG_TRY(check_pool(d, g, a->kernel, size, err));
    snug_type out = d->in[0];
    SNUG_TRY(count_both(d, g, size, a->kernel, &out.dims[1], err));
    return sn_one_output(d, out);
}

snug_status sn_shape_maxpool(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_shape_avgpool(d, err));
    d->n_out = 2;
    d->out[1] = d->out[0];
    d->out[1].dtype = SNUG_OPAQUE;
    return SNUG_OK;
}

/* Input i is the code a pooling made beside a result with the dims of `y`; merges what it knows
 * into y. */
static snug_status check_code(const sn_opdesc *d, int i, snug_type *y, snug_error *err) {
    if (d->in[i].dtype != SNUG_OPAQUE)
        return sn_fail(err, SNUG_E_SHAPE,
                       "%s: input %d is %s; it must be the opaque second output of the pooling",
                       sn_op_name(d), i, sn_type_text(&d->in[i]).s);
    return sn_want_dims(d, i, y, err);
}

snug_status sn_shape_avgpool_grad(sn_opdesc *d, snug_error *err) {
    const sn_attrs_pool_grad *a = &d->attrs.pool_grad;
    const geometry g = {a->stride, a->pad, no_dilation};
    int64_t windows[2];
    SNUG_TRY(sn_want_range(d, "input", a->input, 2, -1, err));
    SNUG_TRY(check_pool(d, g, a->kernel, a->input, err));
    SNUG_TRY(count_both(d, g, a->input, a->kernel, windows, err));
    SNUG_TRY(check_dy(d, 0, windows, a->input, err));
    snug_type dx = d->in[0];
    dx.dims[1] = a->input[0];
    dx.dims[2] = a->input[1];
    return sn_one_output(d, dx);
}

snug_status sn_shape_pool_grad(sn_opdesc *d, snug_error *err) {
    snug_type y = d->in[0];
    SNUG_TRY(sn_shape_avgpool_grad(d, err));
    SNUG_TRY(check_code(d, 1, &y, err));
    d->out[0].dims[0] = y.dims[0];
    d->out[0].dims[3] = y.dims[3];
    return SNUG_OK;
}

snug_status sn_shape_maxpool_pick(sn_opdesc *d, snug_error *err) {
    const sn_attrs_pool_grad *a = &d->attrs.pool_grad;
    const geometry g = {a->stride, a->pad, no_dilation};
    SNUG_TRY(sn_want_range(d, "input", a->input, 2, -1, err));
    SNUG_TRY(check_pool(d, g, a->kernel, &d->in[0].dims[1], err));
    snug_type y = d->in[0];
    if (!sn_dim_fits(y.dims[1], a->input[0]) || !sn_dim_fits(y.dims[2], a->input[1]))
        return sn_fail(err, SNUG_E_SHAPE,
                       "maxpool_pick: input 0 is %s; input=%lld,%lld says its height and width",
                       sn_type_text(&d->in[0]).s, (long long)a->input[0], (long long)a->input[1]);
    SNUG_TRY(count_both(d, g, &d->in[0].dims[1], a->kernel, &y.dims[1], err));
    SNUG_TRY(check_code(d, 1, &y, err));
    return sn_one_output(d, y);
}

/* --- convolution and pooling at once ---------------------------------------------------------- */
snug_status sn_shape_conv2d_pool(sn_opdesc *d, snug_error *err) {
    const sn_attrs_conv_pool *a = &d->attrs.conv_pool;
    SNUG_TRY(sn_want_flag(d, "codes", a->codes, err));
    if (a->act != SN_ACT_none && a->act != SN_ACT_relu)
        return sn_fail(err, SNUG_E_SHAPE,
                       "conv2d_pool: its activation is none or relu; codes know no other slope");
    SNUG_TRY(sn_shape_conv2d(d, err)); /* conv_pool begins like conv */
    SNUG_TRY(count_pooled(d, a->pool, &d->out[0].dims[1], err));
    d->n_out = a->codes ? 2 : 1;
    d->out[1] = d->out[0];
    d->out[1].dtype = SNUG_OPAQUE;
    return SNUG_OK;
}

snug_status sn_shape_conv2d_pool_dx(sn_opdesc *d, snug_error *err) {
    snug_type dy = d->in[0];
    SNUG_TRY(shape_dx(d, d->attrs.conv_pool_dx.pool, err));
    return check_code(d, 2, &dy, err);
}

snug_status sn_shape_conv2d_pool_dw(sn_opdesc *d, snug_error *err) {
    snug_type dy = d->in[1];
    SNUG_TRY(shape_dw(d, d->attrs.conv_pool_dw.pool, err));
    return check_code(d, 2, &dy, err);
}

/* --- factors of matrices ---------------------------------------------------------------------- */
static snug_status want_matrices(const sn_opdesc *d, snug_error *err) {
    for (int i = 0; i < d->n_in; i++) {
        SNUG_TRY(sn_want_float(d, i, err));
        SNUG_TRY(sn_want_rank(d, i, 2, SNUG_MAX_RANK, err));
    }
    return SNUG_OK;
}

static int64_t rows_of(const snug_type *t) {
    return t->dims[t->rank - 2];
}

static int64_t columns_of(const snug_type *t) {
    return t->dims[t->rank - 1];
}

static snug_type matrices_like(const snug_type *t, int64_t rows, int64_t columns) {
    snug_type m = *t;
    m.dims[t->rank - 2] = rows;
    m.dims[t->rank - 1] = columns;
    return m;
}

/* Unknown (-1) where one of them is. */
static int64_t shorter_of(const snug_type *t) {
    return rows_of(t) < columns_of(t) ? rows_of(t) : columns_of(t);
}

static snug_status want_square(const sn_opdesc *d, snug_error *err) {
    const snug_type *t = &d->in[0];
    SNUG_TRY(want_matrices(d, err));
    if (rows_of(t) >= 0 && columns_of(t) >= 0 && rows_of(t) != columns_of(t))
        return sn_fail(err, SNUG_E_SHAPE, "%s: %s is not a square matrix", sn_ops[d->op].name,
                       sn_type_text(t).s);
    return SNUG_OK;
}

/* A number for each matrix. */
static snug_type number_each(const snug_type *t) {
    snug_type each = *t;
    each.rank -= 2;
    return each;
}

/* Values [..., n] and vectors as columns [..., n, n]. */
snug_status sn_shape_eigh(sn_opdesc *d, snug_error *err) {
    const snug_type t = d->in[0];
    SNUG_TRY(want_square(d, err));
    d->n_out = 2;
    d->out[0] = sn_type_rows(&t);
    d->out[1] = t;
    return SNUG_OK;
}

/* Values [..., k]; u [..., m, k] and v' [..., k, n], or square ones. */
snug_status sn_shape_svd(sn_opdesc *d, snug_error *err) {
    const snug_type t = d->in[0];
    SNUG_TRY(want_matrices(d, err));
    SNUG_TRY(sn_want_flag(d, "vectors", d->attrs.svd.vectors, err));
    SNUG_TRY(sn_want_flag(d, "whole", d->attrs.svd.whole, err));
    const int64_t k = shorter_of(&t), m = rows_of(&t), n = columns_of(&t);
    const bool whole = d->attrs.svd.whole;
    const snug_type values = matrices_like(&t, k, k);
    d->n_out = d->attrs.svd.vectors ? 3 : 1;
    d->out[0] = sn_type_rows(&values);
    d->out[1] = matrices_like(&t, m, whole ? m : k);
    d->out[2] = matrices_like(&t, whole ? n : k, n);
    return SNUG_OK;
}

/* q [..., m, k] and r [..., k, n], where k is m for whole ones. */
snug_status sn_shape_qr(sn_opdesc *d, snug_error *err) {
    const snug_type t = d->in[0];
    SNUG_TRY(want_matrices(d, err));
    SNUG_TRY(sn_want_flag(d, "whole", d->attrs.qr.whole, err));
    const int64_t k = d->attrs.qr.whole ? rows_of(&t) : shorter_of(&t);
    d->n_out = 2;
    d->out[0] = matrices_like(&t, rows_of(&t), k);
    d->out[1] = matrices_like(&t, k, columns_of(&t));
    return SNUG_OK;
}

static snug_status want_right_sides(const sn_opdesc *d, snug_error *err) {
    const snug_type *a = &d->in[0], *b = &d->in[1];
    bool fits = a->dtype == b->dtype && a->rank == b->rank;
    for (int k = 0; k < a->rank - 1 && fits; k++)
        fits = a->dims[k] < 0 || b->dims[k] < 0 || a->dims[k] == b->dims[k];
    if (!fits)
        return sn_fail(err, SNUG_E_SHAPE,
                       "%s: the right sides %s do not have the rows of the matrices %s",
                       sn_ops[d->op].name, sn_type_text(b).s, sn_type_text(a).s);
    return SNUG_OK;
}

/* [..., m, n] and [..., m, k] give [..., n, k]. */
snug_status sn_shape_lstsq(sn_opdesc *d, snug_error *err) {
    const snug_type a = d->in[0], b = d->in[1];
    SNUG_TRY(want_matrices(d, err));
    SNUG_TRY(want_right_sides(d, err));
    return sn_one_output(d, matrices_like(&a, columns_of(&a), columns_of(&b)));
}

/* Both factors [..., n, n], places of rows [..., n], and the sign of each determinant. */
snug_status sn_shape_lu(sn_opdesc *d, snug_error *err) {
    const snug_type t = d->in[0];
    SNUG_TRY(want_square(d, err));
    d->n_out = 3;
    d->out[0] = t;
    d->out[1] = sn_type_rows(&t);
    d->out[1].dtype = SNUG_I32;
    d->out[2] = number_each(&t);
    return SNUG_OK;
}

snug_status sn_shape_cholesky(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(want_square(d, err));
    return sn_one_output(d, d->in[0]);
}

/* [..., n, n] and [..., n, k] give [..., n, k]; of whole matrices also whether there is one. */
snug_status sn_shape_solve(sn_opdesc *d, snug_error *err) {
    const sn_attrs_solve *s = &d->attrs.solve;
    const snug_type a = d->in[0], b = d->in[1];
    SNUG_TRY(want_square(d, err));
    SNUG_TRY(want_right_sides(d, err));
    SNUG_TRY(sn_want_flag(d, "lower", s->lower, err));
    SNUG_TRY(sn_want_flag(d, "upper", s->upper, err));
    SNUG_TRY(sn_want_flag(d, "adjoint", s->adjoint, err));
    SNUG_TRY(sn_want_flag(d, "unit", s->unit, err));
    if ((s->lower && s->upper) || (s->unit && !s->lower && !s->upper))
        return sn_fail(err, SNUG_E_INVALID,
                       "solve: lower=%d upper=%d unit=%d; a matrix has one triangle or none, and "
                       "only a triangle may have a diagonal of ones",
                       (int)s->lower, (int)s->upper, (int)s->unit);
    d->n_out = s->lower || s->upper ? 1 : 2;
    d->out[0] = b;
    d->out[1] = number_each(&a);
    return SNUG_OK;
}
