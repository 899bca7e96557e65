/* shape_map.c: shape rules of operators that work element by element: sources, unary, pairs,
 * broadcasting, and the state rows. Outputs have the dims of the inputs, with what any of the
 * inputs knows of an extent. */
#include "op/rules.h"

#include "base/rng.h"

/* --- sources ---------------------------------------------------------------------------------- */
snug_status sn_shape_fill(sn_opdesc *d, snug_error *err) {
    const sn_attrs_fill *a = &d->attrs.fill;
    SNUG_TRY(sn_want_extents(d, "dims", &a->dims, err));
    return sn_one_output(d, sn_type_of((snug_dtype)a->dtype, &a->dims));
}

snug_status sn_shape_random(sn_opdesc *d, snug_error *err) {
    const sn_attrs_random *a = &d->attrs.random;
    SNUG_TRY(sn_want_extents(d, "dims", &a->dims, err));
    const snug_type t = sn_type_of((snug_dtype)a->dtype, &a->dims);
    if (a->kind < SN_RANDOM_UNIFORM || a->kind > SN_RANDOM_TRUNCATED)
        return sn_fail(err, SNUG_E_INVALID,
                       "random: kind=%lld; 0 is uniform, 1 normal, 2 truncated normal",
                       (long long)a->kind);
    if (!sn_dtype_is_float(t.dtype))
        return sn_fail(err, SNUG_E_SHAPE,
                       "random: dtype=%s; random numbers are of a float type; cast them after",
                       snug_dtype_name(t.dtype));
    return sn_one_output(d, t);
}

/* --- one input -------------------------------------------------------------------------------- */
snug_status sn_shape_same(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_plain(d, 0, err));
    return sn_one_output(d, d->in[0]);
}

snug_status sn_shape_same_number(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_number(d, 0, err));
    return sn_one_output(d, d->in[0]);
}

snug_status sn_shape_same_float(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    return sn_one_output(d, d->in[0]);
}

snug_status sn_shape_float_test(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_shape_same_float(d, err));
    d->out[0].dtype = SNUG_BOOL;
    return SNUG_OK;
}

snug_status sn_shape_same_bool(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_bool(d, 0, err));
    return sn_one_output(d, d->in[0]);
}

snug_status sn_shape_same_rows(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 1, SNUG_MAX_RANK, err));
    return sn_one_output(d, d->in[0]);
}

snug_status sn_shape_cast(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_plain(d, 0, err));
    snug_type t = d->in[0];
    t.dtype = (snug_dtype)d->attrs.dtype.dtype;
    return sn_one_output(d, t);
}

/* --- inputs of one type ----------------------------------------------------------------------- */
/* All inputs have the type of input 0; *out is that, as far as any of them knows it. */
static snug_status all_alike(const sn_opdesc *d, snug_type *out, snug_error *err) {
    snug_type t = d->in[0];
    for (int i = 1; i < d->n_in; i++) {
        SNUG_TRY(sn_want_dtype_of(d, i, 0, err));
        SNUG_TRY(sn_want_dims(d, i, &t, err));
    }
    *out = t;
    return SNUG_OK;
}

snug_status sn_shape_same_pair(sn_opdesc *d, snug_error *err) {
    snug_type t;
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(all_alike(d, &t, err));
    return sn_one_output(d, t);
}

snug_status sn_shape_rows_pair(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_rank(d, 0, 1, SNUG_MAX_RANK, err));
    return sn_shape_same_pair(d, err);
}

/* --- broadcasting ----------------------------------------------------------------------------- */
static snug_status broadcast_pair(sn_opdesc *d, snug_error *err) {
    snug_type t;
    SNUG_TRY(sn_want_dtype_of(d, 1, 0, err));
    SNUG_TRY(sn_type_broadcast(d, &d->in[0], &d->in[1], &t, err));
    return sn_one_output(d, t);
}

snug_status sn_shape_broadcast(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_number(d, 0, err));
    return broadcast_pair(d, err);
}

snug_status sn_shape_broadcast_float(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    return broadcast_pair(d, err);
}

snug_status sn_shape_broadcast_bool(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_bool(d, 0, err));
    return broadcast_pair(d, err);
}

/* Equality has no order: truth values may be compared too. */
snug_status sn_shape_compare_any(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(broadcast_pair(d, err));
    d->out[0].dtype = SNUG_BOOL;
    return SNUG_OK;
}

snug_status sn_shape_compare(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_number(d, 0, err));
    SNUG_TRY(broadcast_pair(d, err));
    d->out[0].dtype = SNUG_BOOL;
    return SNUG_OK;
}

snug_status sn_shape_select(sn_opdesc *d, snug_error *err) {
    snug_type t;
    SNUG_TRY(sn_want_bool(d, 0, err));
    SNUG_TRY(sn_want_plain(d, 1, err));
    SNUG_TRY(sn_want_dtype_of(d, 2, 1, err));
    SNUG_TRY(sn_type_broadcast(d, &d->in[1], &d->in[2], &t, err));
    SNUG_TRY(sn_type_broadcast(d, &t, &d->in[0], &t, err));
    return sn_one_output(d, t);
}

snug_status sn_shape_broadcast_to(sn_opdesc *d, snug_error *err) {
    const sn_list *dims = &d->attrs.shape.dims;
    snug_type t;
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(sn_want_extents(d, "dims", dims, err));
    const snug_type wanted = sn_type_of(d->in[0].dtype, dims);
    SNUG_TRY(sn_type_broadcast(d, &wanted, &d->in[0], &t, err));
    bool grew = t.rank != wanted.rank;
    for (int k = 0; k < wanted.rank && !grew; k++)
        grew = wanted.dims[k] >= 0 && t.dims[k] != wanted.dims[k];
    if (grew)
        return sn_fail(err, SNUG_E_SHAPE,
                       "broadcast_to: %s does not broadcast to %s; its extents must be 1 or equal",
                       sn_type_text(&d->in[0]).s, sn_type_text(&wanted).s);
    return sn_one_output(d, t);
}

/* --- state: variables first, outputs are their next versions ---------------------------------- */
/* What comes behind the variables are gradients, which may be halves where those are f32. */
static snug_status next_versions(sn_opdesc *d, int n_vars, snug_error *err) {
    snug_type t = d->in[0];
    for (int i = 1; i < d->n_in; i++) {
        SNUG_TRY(i < n_vars ? sn_want_dtype_of(d, i, 0, err) : sn_want_below(d, i, 0, err));
        SNUG_TRY(sn_want_dims(d, i, &t, err));
    }
    d->n_out = n_vars;
    for (int i = 0; i < n_vars; i++)
        d->out[i] = t;
    return SNUG_OK;
}

static snug_status next_version(sn_opdesc *d, snug_error *err) {
    snug_type t;
    SNUG_TRY(all_alike(d, &t, err));
    return sn_one_output(d, t);
}

snug_status sn_shape_assign(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_plain(d, 0, err));
    return next_version(d, err);
}

snug_status sn_shape_assign_number(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_number(d, 0, err));
    return next_version(d, err);
}

snug_status sn_shape_update1(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    return next_versions(d, 1, err);
}

static snug_status check_nesterov(const sn_opdesc *d, snug_error *err) {
    return sn_want_flag(d, "nesterov", d->attrs.sgd.nesterov, err);
}

snug_status sn_shape_sgd(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(check_nesterov(d, err));
    return sn_shape_update1(d, err);
}

snug_status sn_shape_sgd_momentum(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(check_nesterov(d, err));
    return next_versions(d, 2, err);
}

snug_status sn_shape_update2(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    return next_versions(d, 2, err);
}

snug_status sn_shape_update3(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    return next_versions(d, 3, err);
}

snug_status sn_shape_update4(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    return next_versions(d, 4, err);
}

/* (w, m, v, x, dy): x and dy have rows of their own. The next versions, without the gradient. */
static snug_status dense_versions(sn_opdesc *d, snug_error *err) {
    sn_opdesc head = *d;
    head.n_in = 3;
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_flag(d, "gradient", d->attrs.matmul_adam.gradient, err));
    SNUG_TRY(sn_want_rank(d, 0, 2, 2, err));
    for (int i = 3; i < 5; i++) {
        SNUG_TRY(sn_want_below(d, i, 0, err));
        SNUG_TRY(sn_want_dtype_of(d, i, 3, err));
        SNUG_TRY(sn_want_rank(d, i, 2, 2, err));
    }
    const snug_type *w = &d->in[0], *x = &d->in[3], *dy = &d->in[4];
    if (!sn_dim_fits(x->dims[0], dy->dims[0]) || !sn_dim_fits(x->dims[1], w->dims[0]) ||
        !sn_dim_fits(dy->dims[1], w->dims[1]))
        return sn_fail(err, SNUG_E_SHAPE,
                       "matmul_adam: %s transposed times %s is no gradient of %s",
                       sn_type_text(x).s, sn_type_text(dy).s, sn_type_text(w).s);
    SNUG_TRY(next_versions(&head, 3, err));
    d->n_out = head.n_out;
    for (int k = 0; k < head.n_out; k++)
        d->out[k] = head.out[k];
    return SNUG_OK;
}

static void add_gradient(sn_opdesc *d) {
    if (d->attrs.matmul_adam.gradient)
        d->out[d->n_out++] = d->out[0];
}

snug_status sn_shape_matmul_adam(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(dense_versions(d, err));
    add_gradient(d);
    return SNUG_OK;
}

/* With dx, like x. */
snug_status sn_shape_matmul_adam_dx(sn_opdesc *d, snug_error *err) {
    SNUG_TRY(dense_versions(d, err));
    d->out[d->n_out++] = d->in[3];
    add_gradient(d);
    return SNUG_OK;
}

/* (w, v, g), with the average gradient behind v where centered, then the momentum where there is
 * one, and the squares behind g where they are given. */
snug_status sn_shape_rmsprop(sn_opdesc *d, snug_error *err) {
    const int64_t centered = d->attrs.rmsprop.centered, squares = d->attrs.rmsprop.squares;
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_flag(d, "centered", centered, err));
    SNUG_TRY(sn_want_flag(d, "squares", squares, err));
    const int least = 3 + (int)centered + (int)squares;
    if (d->n_in < least || d->n_in > least + 1)
        return sn_fail(
            err, SNUG_E_INVALID,
            "rmsprop: with centered=%lld and squares=%lld it has %d or %d inputs, not %d",
            (long long)centered, (long long)squares, least, least + 1, d->n_in);
    return next_versions(d, d->n_in - 1 - (int)squares, err);
}
