/* slice.c: whether an operator can run on slices of its operands. All of them must be cut along one
 * of its ways, at the same rows of the label; what does not carry the label is whole, and as an
 * output a sum over it. */
#include "op/op.h"

typedef struct {
    int64_t first, n; /* rows of the label; n < 0: no operand has said it yet */
    uint32_t sums;
} label_rows;

static bool fits(const sn_axis_ref *ref, const sn_slice *s, label_rows *rows) {
    if (s->rows < 0)
        return ref->axis < 0;
    if (ref->axis != s->axis || ref->outer != 1 || ref->inner < 1)
        return false;
    if (rows->n < 0) {
        rows->first = s->first / ref->inner;
        rows->n = s->rows / ref->inner;
    }
    return s->first == rows->first * ref->inner && s->rows == rows->n * ref->inner;
}

static bool find_way(const sn_opdesc *d, const sn_slice *slices, sn_cut *out) {
    sn_ways ways; /* large: only what is added to it is written */
    ways.n = 0;
    sn_op_ways(d, &ways);
    for (const sn_way *way = ways.way; way < ways.way + ways.n; way++) {
        label_rows rows = {.n = -1};
        bool ok = true;
        for (int k = 0; ok && k < d->n_in + d->n_out; k++) {
            ok = fits(k < d->n_in ? &way->in[k] : &way->out[k - d->n_in], &slices[k], &rows);
            if (k >= d->n_in && slices[k].rows < 0)
                rows.sums |= 1u << (k - d->n_in);
        }
        if (ok && (rows.sums == 0 || way->sum)) {
            *out = (sn_cut){rows.first, rows.n, way->extent, rows.sums};
            return true;
        }
    }
    return false;
}

bool sn_op_slice(sn_opdesc *d, const sn_slice *slices, sn_cut *out) {
    sn_cut cut = {0, 1, 1, 0};
    bool sliced = false;
    for (int k = 0; k < d->n_in + d->n_out; k++)
        sliced = sliced || slices[k].rows >= 0;
    if (sliced && !find_way(d, slices, &cut))
        return false;
    for (int k = 0; k < d->n_in + d->n_out; k++)
        if (slices[k].rows >= 0)
            (k < d->n_in ? &d->in[k] : &d->out[k - d->n_in])->dims[slices[k].axis] = slices[k].rows;
    *out = cut;
    return true;
}
