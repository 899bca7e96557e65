/* shape_index.c: shape and axis rules of gather_nd, scatter_nd and band.
 *
 * x is [b..., e1..ek, inner...], indices [b..., n..., k], what is gathered [b..., n..., inner...]:
 * the first `batch` axes belong together, the last axis of the indices holds one position per
 * indexed axis. */
#include "op/rules.h"

static bool fits(const snug_type *x, const snug_type *indices, int64_t batch) {
    const int64_t k = indices->rank > 0 ? indices->dims[indices->rank - 1] : -1;
    bool ok = batch >= 0 && batch < indices->rank && k >= 1 && batch + k <= x->rank;
    for (int i = 0; ok && i < batch; i++)
        ok = sn_dim_fits(x->dims[i], indices->dims[i]);
    return ok;
}

static snug_status gathered_type(const sn_opdesc *d, const snug_type *x, const snug_type *indices,
                                 int64_t batch, snug_type *out, snug_error *err) {
    if (!fits(x, indices, batch))
        return sn_fail(err, SNUG_E_SHAPE,
                       "%s: indices %s with batch=%lld do not fit %s; they need the same first "
                       "axes and as last extent how many axes they index",
                       sn_op_name(d), sn_type_text(indices).s, (long long)batch, sn_type_text(x).s);
    const int64_t k = indices->dims[indices->rank - 1];
    const int rank = indices->rank - 1 + x->rank - (int)batch - (int)k;
    if (rank > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_SHAPE, "%s: the result would have %d axes; the most is %d",
                       sn_op_name(d), rank, SNUG_MAX_RANK);
    snug_type t = {.dtype = x->dtype};
    for (int i = 0; i < indices->rank - 1; i++)
        t.dims[t.rank++] =
            i < batch ? sn_dim_merge(indices->dims[i], x->dims[i]) : indices->dims[i];
    for (int i = (int)(batch + k); i < x->rank; i++)
        t.dims[t.rank++] = x->dims[i];
    *out = t;
    return SNUG_OK;
}

snug_status sn_shape_gather_nd(sn_opdesc *d, snug_error *err) {
    snug_type t;
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(sn_want_index(d, 1, err));
    SNUG_TRY(gathered_type(d, &d->in[0], &d->in[1], d->attrs.batch.batch, &t, err));
    return sn_one_output(d, t);
}

snug_status sn_shape_scatter_nd(sn_opdesc *d, snug_error *err) {
    const sn_attrs_scatter_nd *a = &d->attrs.scatter_nd;
    snug_type updates;
    SNUG_TRY(sn_want_index(d, 0, err));
    SNUG_TRY(sn_want_number(d, 1, err));
    SNUG_TRY(sn_want_extents(d, "dims", &a->dims, err));
    snug_type t = sn_type_of(d->in[1].dtype, &a->dims);
    SNUG_TRY(gathered_type(d, &t, &d->in[0], a->batch, &updates, err));
    SNUG_TRY(sn_want_dims(d, 1, &updates, err));
    const int moved = t.rank - updates.rank;
    for (int i = 0; i < t.rank; i++) {
        if (i < a->batch)
            t.dims[i] = updates.dims[i];
        else if (i - moved >= d->in[0].rank - 1)
            t.dims[i] = updates.dims[i - moved];
    }
    return sn_one_output(d, t);
}

snug_status sn_shape_band(sn_opdesc *d, snug_error *err) {
    const sn_attrs_band *a = &d->attrs.band;
    SNUG_TRY(sn_want_plain(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 2, SNUG_MAX_RANK, err));
    if (a->low > INT32_MAX || a->low < INT32_MIN || a->high > INT32_MAX || a->high < INT32_MIN)
        return sn_fail(err, SNUG_E_INVALID, "band: low=%lld high=%lld must lie within 2^31",
                       (long long)a->low, (long long)a->high);
    return sn_one_output(d, d->in[0]);
}

/* --- axes ------------------------------------------------------------------------------------- */
/* Which operands of the row are the indexed value, the indices and what is gathered. */
typedef struct {
    const snug_type *x, *indices, *gathered;
    sn_axis_ref *(*ref)(sn_way *way, int operand);
    bool sum; /* a cut along the indices gives partial sums */
} index_row;

enum { INDEXED, INDICES, GATHERED };

static sn_axis_ref *ref_gather(sn_way *way, int operand) {
    return operand == GATHERED ? &way->out[0] : &way->in[operand];
}

static sn_axis_ref *ref_scatter(sn_way *way, int operand) {
    return operand == INDEXED ? &way->out[0] : &way->in[operand - 1];
}

static void index_ways(const index_row *r, int batch, sn_ways *ways) {
    const int n_index = r->indices->rank - 1, k = (int)r->indices->dims[n_index];
    for (int i = 0; i < n_index; i++) {
        sn_way *way = sn_way_add(ways, r->indices->dims[i]);
        sn_carry(r->ref(way, INDICES), i);
        sn_carry(r->ref(way, GATHERED), i);
        if (i < batch)
            sn_carry(r->ref(way, INDEXED), i);
        else
            way->sum = r->sum;
    }
    for (int i = batch + k; i < r->x->rank; i++) {
        sn_way *way = sn_way_add(ways, r->x->dims[i]);
        sn_carry(r->ref(way, INDEXED), i);
        sn_carry(r->ref(way, GATHERED), n_index + i - batch - k);
    }
}

void sn_axes_gather_nd(const sn_opdesc *d, sn_ways *ways) {
    const index_row r = {&d->in[0], &d->in[1], &d->out[0], ref_gather, false};
    index_ways(&r, (int)d->attrs.batch.batch, ways);
}

void sn_axes_scatter_nd(const sn_opdesc *d, sn_ways *ways) {
    const index_row r = {&d->out[0], &d->in[0], &d->in[1], ref_scatter, true};
    index_ways(&r, (int)d->attrs.scatter_nd.batch, ways);
}

/* The last two axes are a matrix in which positions count. */
void sn_axes_matrices(const sn_opdesc *d, sn_ways *ways) {
    for (int k = 0; k < d->in[0].rank - 2; k++) {
        sn_way *way = sn_way_add(ways, d->in[0].dims[k]);
        for (int i = 0; i < d->n_in; i++)
            sn_carry(&way->in[i], k);
        for (int i = 0; i < d->n_out; i++)
            sn_carry(&way->out[i], k);
    }
}
