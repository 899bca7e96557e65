/* shape_norm.c: shape rules of normalisations and of what works on rows: the last axis is the
 * channels (C), everything before it are rows. Statistics of batch normalisation are [C], those of
 * layer normalisation and the losses of cross-entropies have the rows' shape. */
#include "op/rules.h"

static snug_status want_channels(const sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    return sn_want_rank(d, 0, 1, SNUG_MAX_RANK, err);
}

static snug_status want_alike(const sn_opdesc *d, int i, snug_type *t, snug_error *err) {
    SNUG_TRY(sn_want_dtype_of(d, i, 0, err));
    return sn_want_dims(d, i, t, err);
}

/* Input i has the shape of the rows of t and input 0's dtype, or f32 beside halves; t learns
 * extents. */
static snug_status want_rows(const sn_opdesc *d, int i, snug_type *t, snug_error *err) {
    snug_type rows = sn_type_rows(t);
    SNUG_TRY(sn_want_beside(d, i, 0, err));
    SNUG_TRY(sn_want_dims(d, i, &rows, err));
    for (int k = 0; k < rows.rank; k++)
        t->dims[k] = rows.dims[k];
    return SNUG_OK;
}

static snug_status two_outputs(sn_opdesc *d, snug_type t) {
    d->n_out = 2;
    d->out[0] = t;
    d->out[1] = t;
    return SNUG_OK;
}

/* --- batch normalisation ---------------------------------------------------------------------- */
/* Sums are f64 whatever x is: a batch in pieces then gives the same mean to the last bit of f32. */
snug_status sn_shape_moments(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(want_channels(d, err));
    return two_outputs(d, sn_type_channels(&d->in[0], SNUG_F64));
}

snug_status sn_shape_normalise(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(want_channels(d, err));
    SNUG_TRY(sn_want_vectors(d, 1, 4, &t, err));
    return sn_one_output(d, t);
}

/* Vectors of the channels alone: (mean, variance, gamma, beta[, bias]). */
snug_status sn_shape_normalise_line(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 1, 1, err));
    SNUG_TRY(sn_want_vectors(d, 1, d->n_in - 1, &t, err));
    return sn_one_output(d, (snug_type){.dtype = t.dtype, .rank = 2, .dims = {2, t.dims[0]}});
}

snug_status sn_shape_normalise_sums(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(want_channels(d, err));
    SNUG_TRY(want_alike(d, 1, &t, err));
    SNUG_TRY(sn_want_vectors(d, 2, 2, &t, err));
    return two_outputs(d, sn_type_channels(&t, sn_dtype_sums(t.dtype)));
}

snug_status sn_shape_channel_affine(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(want_channels(d, err));
    SNUG_TRY(want_alike(d, 1, &t, err));
    SNUG_TRY(sn_want_vectors(d, 2, 3, &t, err));
    return sn_one_output(d, t);
}

/* --- layer normalisation ---------------------------------------------------------------------- */
snug_status sn_shape_layernorm(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(want_channels(d, err));
    SNUG_TRY(sn_want_vectors(d, 1, 2, &t, err));
    d->n_out = 3;
    d->out[0] = t;
    d->out[1] = sn_type_rows(&t);
    d->out[1].dtype = sn_dtype_sums(t.dtype);
    d->out[2] = d->out[1];
    return SNUG_OK;
}

/* Inputs 0 and 1 are dy and x; `first` and the one behind it are mean and rstd, with the rows'
 * shape. */
static snug_status want_layernorm_parts(const sn_opdesc *d, int first, snug_type *t,
                                        snug_error *err) {
    SNUG_TRY(want_channels(d, err));
    SNUG_TRY(want_alike(d, 1, t, err));
    SNUG_TRY(want_rows(d, first, t, err));
    return want_rows(d, first + 1, t, err);
}

snug_status sn_shape_layernorm_dx(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(want_layernorm_parts(d, 3, &t, err));
    SNUG_TRY(sn_want_vectors(d, 2, 1, &t, err));
    return sn_one_output(d, t);
}

snug_status sn_shape_layernorm_sums(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(want_layernorm_parts(d, 2, &t, err));
    return two_outputs(d, sn_type_channels(&t, sn_dtype_sums(t.dtype)));
}

/* --- cross-entropies -------------------------------------------------------------------------- */
snug_status sn_shape_softmax_xent(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_flag(d, "unit", d->attrs.xent.unit, err));
    SNUG_TRY(want_channels(d, err));
    SNUG_TRY(want_alike(d, 1, &t, err));
    return sn_one_output(d, sn_type_rows(&t));
}

snug_status sn_shape_softmax_xent_grad(sn_opdesc *d, snug_error *err) {
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_flag(d, "unit", d->attrs.xent.unit, err));
    SNUG_TRY(want_channels(d, err));
    SNUG_TRY(want_alike(d, 1, &t, err));
    SNUG_TRY(want_rows(d, 2, &t, err));
    return sn_one_output(d, t);
}

/* Input 1 are class numbers, one per row of the logits. */
static snug_status want_labels(const sn_opdesc *d, snug_type *rows, snug_error *err) {
    SNUG_TRY(want_channels(d, err));
    SNUG_TRY(sn_want_index(d, 1, err));
    *rows = sn_type_rows(&d->in[0]);
    return sn_want_dims(d, 1, rows, err);
}

snug_status sn_shape_sparse_xent(sn_opdesc *d, snug_error *err) {
    snug_type rows;
    SNUG_TRY(want_labels(d, &rows, err));
    return sn_one_output(d, rows);
}

snug_status sn_shape_sparse_xent_grad(sn_opdesc *d, snug_error *err) {
    snug_type rows, t = d->in[0];
    SNUG_TRY(want_labels(d, &rows, err));
    for (int k = 0; k < rows.rank; k++)
        t.dims[k] = rows.dims[k];
    SNUG_TRY(want_rows(d, 2, &t, err));
    return sn_one_output(d, t);
}
