/* fill.c: batches straight into the caller's buffers (snug_iterator_fill). A plain batch as last
 * stage writes rows there itself; behind a prefetch they were assembled already and are copied. */
#include "data/batch.h"
#include "data/iterator.h"

#include <inttypes.h>
#include <string.h>

static snug_status check_views(const snug_dataset *d, const snug_view *views, int n, int64_t room,
                               snug_error *err) {
    if (n != d->spec.n)
        return sn_fail(err, SNUG_E_SHAPE, "%d buffers for elements of %d parts", n, d->spec.n);
    for (int i = 0; i < n; i++)
        if (views[i].type.rank < 1 || views[i].type.dims[0] != room || d->spec.is_text[i])
            return sn_fail(err, SNUG_E_SHAPE,
                           "buffer %d has no rows, others than buffer 0, or is for texts", i);
    return SNUG_OK;
}

static void make_target(const snug_view *views, int n, sn_target *to) {
    to->n = n;
    for (int i = 0; i < n; i++) {
        snug_type row = views[i].type;
        row.rank--;
        memmove(row.dims, row.dims + 1, (size_t)row.rank * sizeof *row.dims);
        to->part[i].data = views[i].data;
        to->part[i].type = row;
        to->part[i].row_bytes = (size_t)sn_type_count(&row) * snug_dtype_bytes(row.dtype);
    }
}

/* The batch's own rows, written once. */
static snug_status fill_rows(sn_cursor *batch, const sn_target *to, int64_t room, int64_t *rows,
                             snug_error *err) {
    const sn_batch *b = batch->stage->ctx;
    int64_t n = 0;
    if (b->size > room)
        return sn_fail(err, SNUG_E_SHAPE, "batches have %" PRId64 " rows, the buffers %" PRId64,
                       b->size, room);
    SNUG_TRY(sn_cursor_fill(batch->before[0], to, 0, b->size, &n, err));
    if (n < b->size && b->drop_remainder)
        n = 0;
    batch->given += n > 0;
    *rows = n;
    return SNUG_OK;
}

static snug_status copy_rows(const snug_element *e, const sn_target *to, int64_t room,
                             int64_t *rows, snug_error *err) {
    for (int i = 0; i < e->n; i++) {
        const snug_datum *d = &e->part[i];
        const int64_t n = d->type.rank > 0 ? d->type.dims[0] : -1;
        if (n < 0 || n > room || (i > 0 && n != *rows))
            return sn_fail(err, SNUG_E_SHAPE, "a batch of %" PRId64 " rows for %" PRId64, n, room);
        *rows = n;
        snug_type as_row = to->part[i].type, have = d->type;
        have.rank--;
        memmove(have.dims, have.dims + 1, (size_t)have.rank * sizeof *have.dims);
        have.dtype = as_row.dtype;
        if (!sn_type_equal(&as_row, &have))
            return sn_fail(err, SNUG_E_SHAPE, "rows of part %d have another shape than the buffer",
                           i);
        const size_t count = (size_t)(n * sn_type_count(&as_row));
        SNUG_TRY(sn_convert(d->type.dtype, d->data, as_row.dtype, to->part[i].data, count, err));
    }
    return SNUG_OK;
}

snug_status snug_iterator_fill(snug_iterator *it, const snug_view *views, int n, int64_t *rows,
                               snug_error *err) {
    if (!it || !views || !rows || n < 1)
        return sn_fail(err, SNUG_E_INVALID, "snug_iterator_fill: an argument is NULL");
    SNUG_TRY(sn_iterator_begin(it, err));
    const snug_dataset *d = it->root->stage;
    const int64_t room = views[0].type.rank > 0 ? views[0].type.dims[0] : 0;
    int64_t size;
    sn_target to;
    SNUG_TRY(check_views(d, views, n, room, err));
    make_target(views, n, &to);
    if (sn_stage_is_batch(d, &size) && sn_spec_is_fixed(&d->before[0]->spec))
        return fill_rows(it->cursor, &to, room, rows, err);
    snug_element e;
    snug_status status = sn_cursor_next(it->cursor, &e, err);
    if (status == SNUG_E_END) {
        *rows = 0;
        return SNUG_OK;
    }
    SNUG_TRY(status);
    status = copy_rows(&e, &to, room, rows, err);
    snug_element_drop(&e);
    return status;
}
