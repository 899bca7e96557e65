/* shape.c: the questions shape rules ask (rules.h). Every failure names the operator, what it got
 * and what would fit; an unknown extent (-1, in templates) is never a reason to fail. */
#include "op/rules.h"

#include "base/size.h"

sn_text sn_type_text(const snug_type *t) {
    sn_text text;
    snug_type_print(t, text.s, sizeof text.s);
    return text;
}

/* --- dtypes ----------------------------------------------------------------------------------- */
static snug_status want(const sn_opdesc *d, int i, bool ok, const char *what, snug_error *err) {
    if (ok)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "%s: input %d is %s; it must be %s; cast it first",
                   sn_op_name(d), i, sn_type_text(&d->in[i]).s, what);
}

snug_status sn_want_float(const sn_opdesc *d, int i, snug_error *err) {
    return want(d, i, sn_dtype_is_float(d->in[i].dtype), "of a float type", err);
}

snug_status sn_want_number(const sn_opdesc *d, int i, snug_error *err) {
    return want(d, i, sn_dtype_is_number(d->in[i].dtype), "of a float or integer type", err);
}

snug_status sn_want_bool(const sn_opdesc *d, int i, snug_error *err) {
    return want(d, i, d->in[i].dtype == SNUG_BOOL, "bool", err);
}

snug_status sn_want_index(const sn_opdesc *d, int i, snug_error *err) {
    return want(d, i, d->in[i].dtype == SNUG_I32 || d->in[i].dtype == SNUG_I64, "i32 or i64", err);
}

snug_status sn_want_plain(const sn_opdesc *d, int i, snug_error *err) {
    if (d->in[i].dtype != SNUG_OPAQUE)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE,
                   "%s: input %d is %s; opaque values go only to the operators made for them",
                   sn_op_name(d), i, sn_type_text(&d->in[i]).s);
}

snug_status sn_want_dtype_of(const sn_opdesc *d, int i, int like, snug_error *err) {
    if (d->in[i].dtype == d->in[like].dtype)
        return SNUG_OK;
    return sn_fail_by(err, SNUG_E_SHAPE, SNUG_CAUSE_DTYPES,
                      "%s: input %d is %s and input %d is %s; they must have one dtype; cast one",
                      sn_op_name(d), like, sn_type_text(&d->in[like]).s, i,
                      sn_type_text(&d->in[i]).s);
}

snug_status sn_want_beside(const sn_opdesc *d, int i, int like, snug_error *err) {
    if (d->in[i].dtype == SNUG_F32 && sn_dtype_is_half(d->in[like].dtype))
        return SNUG_OK;
    return sn_want_dtype_of(d, i, like, err);
}

snug_status sn_want_below(const sn_opdesc *d, int i, int like, snug_error *err) {
    if (d->in[like].dtype == SNUG_F32 && sn_dtype_is_half(d->in[i].dtype))
        return SNUG_OK;
    return sn_want_dtype_of(d, i, like, err);
}

snug_status sn_want_wide(const sn_opdesc *d, int i, int64_t wide, snug_error *err) {
    SNUG_TRY(sn_want_flag(d, "wide", wide, err));
    if (!wide || sn_dtype_is_half(d->in[i].dtype))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "%s: wide=1 of %s; results of halves alone can be wider",
                   sn_op_name(d), sn_type_text(&d->in[i]).s);
}

/* --- extents ---------------------------------------------------------------------------------- */
snug_status sn_want_rank(const sn_opdesc *d, int i, int min, int max, snug_error *err) {
    const int rank = d->in[i].rank;
    if (rank >= min && rank <= max)
        return SNUG_OK;
    if (min == max)
        return sn_fail(err, SNUG_E_SHAPE, "%s: input %d is %s; it must have %d axes", sn_op_name(d),
                       i, sn_type_text(&d->in[i]).s, min);
    return sn_fail(err, SNUG_E_SHAPE, "%s: input %d is %s; it must have %d to %d axes",
                   sn_op_name(d), i, sn_type_text(&d->in[i]).s, min, max);
}

snug_status sn_want_dims(const sn_opdesc *d, int i, snug_type *wanted, snug_error *err) {
    const snug_type *t = &d->in[i];
    bool ok = t->rank == wanted->rank;
    for (int k = 0; ok && k < t->rank; k++)
        ok = sn_dim_fits(t->dims[k], wanted->dims[k]);
    if (!ok) {
        snug_type fit = *wanted;
        fit.dtype = t->dtype;
        return sn_fail(err, SNUG_E_SHAPE,
                       "%s: input 0 is %s and input %d is %s; to fit it must be %s", sn_op_name(d),
                       sn_type_text(&d->in[0]).s, i, sn_type_text(t).s, sn_type_text(&fit).s);
    }
    for (int k = 0; k < t->rank; k++)
        wanted->dims[k] = sn_dim_merge(wanted->dims[k], t->dims[k]);
    return SNUG_OK;
}

snug_status sn_want_vectors(const sn_opdesc *d, int first, int n, snug_type *like,
                            snug_error *err) {
    for (int i = first; i < first + n; i++) {
        snug_type vector = sn_type_channels(like, d->in[0].dtype);
        SNUG_TRY(sn_want_beside(d, i, 0, err));
        SNUG_TRY(sn_want_dims(d, i, &vector, err));
        like->dims[like->rank - 1] = vector.dims[0];
    }
    return SNUG_OK;
}

snug_status sn_want_axis(const sn_opdesc *d, int64_t axis, int rank, snug_error *err) {
    if (axis >= 0 && axis < rank)
        return SNUG_OK;
    if (rank == 0)
        return sn_fail(err, SNUG_E_SHAPE, "%s: axis %lld of a scalar; a scalar has no axes",
                       sn_op_name(d), (long long)axis);
    return sn_fail(err, SNUG_E_SHAPE, "%s: axis %lld of %s; axes count from 0 to %d", sn_op_name(d),
                   (long long)axis, d->n_in > 0 ? sn_type_text(&d->in[0]).s : "the output",
                   rank - 1);
}

/* --- attributes ------------------------------------------------------------------------------- */
snug_status sn_want_flag(const sn_opdesc *d, const char *name, int64_t value, snug_error *err) {
    if (value == 0 || value == 1)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s: %s=%lld; it must be 0 or 1", sn_op_name(d), name,
                   (long long)value);
}

snug_status sn_want_range(const sn_opdesc *d, const char *name, const int64_t *v, int n,
                          int64_t min, snug_error *err) {
    for (int i = 0; i < n; i++) {
        if (v[i] < min || v[i] > INT32_MAX)
            return sn_fail(err, SNUG_E_INVALID, "%s: %s has the value %lld; it must be %lld to %d",
                           sn_op_name(d), name, (long long)v[i], (long long)min, INT32_MAX);
    }
    return SNUG_OK;
}

snug_status sn_want_extents(const sn_opdesc *d, const char *name, const sn_list *list,
                            snug_error *err) {
    for (int k = 0; k < list->n; k++) {
        if (list->v[k] < -1)
            return sn_fail(err, SNUG_E_INVALID,
                           "%s: %s has the extent %lld; extents are >= 0, or -1 for unknown",
                           sn_op_name(d), name, (long long)list->v[k]);
    }
    return SNUG_OK;
}

/* --- types from types ------------------------------------------------------------------------- */
snug_type sn_type_of(snug_dtype dtype, const sn_list *dims) {
    snug_type t = {.dtype = dtype, .rank = (int)dims->n};
    for (int k = 0; k < t.rank; k++)
        t.dims[k] = dims->v[k];
    return t;
}

snug_type sn_type_rows(const snug_type *t) {
    snug_type rows = *t;
    rows.rank--;
    rows.dims[rows.rank] = 0;
    return rows;
}

snug_type sn_type_channels(const snug_type *t, snug_dtype dtype) {
    return (snug_type){.dtype = dtype, .rank = 1, .dims = {t->dims[t->rank - 1]}};
}

/* An unknown extent against 1 stays unknown, against n > 1 it can only be n (or 1): n. */
static bool broadcast_dim(int64_t a, int64_t b, int64_t *out) {
    if (a != b && a > -1 && b > -1 && a != 1 && b != 1)
        return false;
    *out = a == 1 || (a < 0 && b != 1) ? b : a;
    return true;
}

snug_status sn_type_broadcast(const sn_opdesc *d, const snug_type *a, const snug_type *b,
                              snug_type *out, snug_error *err) {
    snug_type r = {.dtype = a->dtype, .rank = a->rank > b->rank ? a->rank : b->rank};
    for (int k = 0; k < r.rank; k++) {
        const int at_a = k - (r.rank - a->rank), at_b = k - (r.rank - b->rank);
        const int64_t dim_a = at_a < 0 ? 1 : a->dims[at_a], dim_b = at_b < 0 ? 1 : b->dims[at_b];
        if (!broadcast_dim(dim_a, dim_b, &r.dims[k]))
            return sn_fail(err, SNUG_E_SHAPE,
                           "%s: %s and %s do not broadcast: axis %d has %lld and %lld; they must "
                           "be equal or one 1",
                           sn_op_name(d), sn_type_text(a).s, sn_type_text(b).s, k, (long long)dim_a,
                           (long long)dim_b);
    }
    *out = r;
    return SNUG_OK;
}
