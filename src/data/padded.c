/* padded.c: batches of elements of different extents: each is padded to the longest, or to what was
 * asked.
 *
 * Invariants:
 * 1. An extent that was asked for is a limit: an element beyond it is SNUG_E_SHAPE. */
#include "data/batch.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    sn_batch batch;
    snug_spec shapes;                  /* of rows; -1: the longest */
    snug_datum values[SNUG_MAX_PARTS]; /* held; data NULL: 0 or "" */
} padding;

/* The row that every element of the column fits into. */
static snug_status find_row(const padding *p, const sn_gathering *g, int n_parts, int part,
                            snug_type *out, snug_error *err) {
    char a[192], b[192];
    snug_type row = g->parts[part].type;
    const snug_type *asked = &p->shapes.type[part];
    for (int64_t i = 0; i < g->n; i++) {
        const snug_type *t = &g->parts[i * n_parts + part].type;
        bool fits = t->rank == row.rank && (asked->rank < 0 || asked->rank == t->rank);
        for (int k = 0; fits && k < t->rank; k++) {
            const int64_t most = asked->rank < 0 ? -1 : asked->dims[k];
            fits = most < 0 || t->dims[k] <= most;
            if (t->dims[k] > row.dims[k])
                row.dims[k] = t->dims[k];
        }
        if (!fits)
            return sn_fail(err, SNUG_E_SHAPE,
                           "part %d of an element is %s, which does not fit the padded shape %s",
                           part, snug_type_print(t, a, sizeof a),
                           asked->rank < 0 ? "of the first" : snug_type_print(asked, b, sizeof b));
    }
    for (int k = 0; k < asked->rank; k++)
        if (asked->dims[k] >= 0)
            row.dims[k] = asked->dims[k];
    *out = row;
    return SNUG_OK;
}

/* Copies an array into the corner of a larger one, whose units are `unit` bytes. */
static void copy_corner(const snug_type *from, const char *src, const snug_type *to, char *dst,
                        size_t unit) {
    if (from->rank == 0) {
        memcpy(dst, src, unit);
        return;
    }
    snug_type inner_from = {.rank = from->rank - 1}, inner_to = {.rank = to->rank - 1};
    memcpy(inner_from.dims, from->dims + 1, (size_t)inner_from.rank * sizeof *from->dims);
    memcpy(inner_to.dims, to->dims + 1, (size_t)inner_to.rank * sizeof *to->dims);
    const size_t step_from = (size_t)sn_type_count(&inner_from) * unit;
    const size_t step_to = (size_t)sn_type_count(&inner_to) * unit;
    if (step_from == step_to) {
        memcpy(dst, src, (size_t)from->dims[0] * step_from);
        return;
    }
    for (int64_t i = 0; i < from->dims[0] && step_from > 0; i++)
        copy_corner(&inner_from, src + (size_t)i * step_from, &inner_to, dst + (size_t)i * step_to,
                    unit);
}

static void fill_units(char *to, size_t bytes, const void *value, size_t unit) {
    if (!value) {
        memset(to, 0, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at += unit)
        memcpy(to + at, value, unit);
}

/* Rows of units: numbers, or texts that are copied afterwards. */
static void pad_rows(const padding *p, const sn_gathering *g, int n_parts, int part,
                     const snug_type *row, char *to, size_t unit) {
    const size_t row_bytes = (size_t)sn_type_count(row) * unit;
    fill_units(to, row_bytes * (size_t)g->n, p->values[part].data, unit);
    for (int64_t i = 0; i < g->n; i++) {
        const snug_datum *d = &g->parts[i * n_parts + part];
        if (sn_type_count(&d->type) > 0)
            copy_corner(&d->type, d->data, row, to + (size_t)i * row_bytes, unit);
    }
}

static snug_status pad_part(snug_engine *e, const padding *p, const sn_gathering *g, int n_parts,
                            int part, snug_datum *out, snug_error *err) {
    snug_type row;
    SNUG_TRY(find_row(p, g, n_parts, part, &row, err));
    if (row.rank >= SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_SHAPE, "part %d has rank %d already", part, row.rank);
    const snug_type type = sn_type_with_rows(&row, g->n);
    if (!g->parts[part].is_text) {
        SNUG_TRY(snug_datum_create(e, &type, out, err));
        pad_rows(p, g, n_parts, part, &row, out->data, snug_dtype_bytes(row.dtype));
        return SNUG_OK;
    }
    snug_type as_texts = type;
    snug_datum texts;
    as_texts.dtype = SNUG_U8;
    if (as_texts.rank < SNUG_MAX_RANK)
        as_texts.dims[as_texts.rank++] = (int64_t)sizeof(snug_text);
    SNUG_TRY(snug_datum_create(e, &as_texts, &texts, err));
    pad_rows(p, g, n_parts, part, &row, texts.data, sizeof(snug_text));
    const snug_status status = snug_datum_texts(e, &type, texts.data, out, err);
    snug_datum_drop(&texts);
    return status;
}

static snug_status next_padded(sn_cursor *c, snug_element *out, snug_error *err) {
    const padding *p = c->stage->ctx;
    snug_engine *e = c->stage->engine;
    const int n_parts = c->stage->spec.n;
    sn_gathering g = {0};
    snug_status status = sn_gather_elements(c, p->batch.size, &g, err);
    if (status == SNUG_OK && g.n < p->batch.size && p->batch.drop_remainder)
        status = sn_end(err);
    out->n = 0;
    for (int i = 0; i < n_parts && status == SNUG_OK; i++) {
        status = pad_part(e, p, &g, n_parts, i, &out->part[i], err);
        out->n += status == SNUG_OK;
    }
    if (status != SNUG_OK)
        snug_element_drop(out);
    sn_gathering_clear(e, &g, n_parts);
    return status;
}

static void release_padded(snug_dataset *d) {
    padding *p = d->ctx;
    for (int i = 0; i < SNUG_MAX_PARTS; i++)
        snug_datum_drop(&p->values[i]);
}

static const sn_stage_class padded_class = {
    .name = "padded batch", .next = next_padded, .seek = sn_batch_seek, .release = release_padded};

static snug_status take_values(const snug_dataset *d, padding *p, const snug_padding *o,
                               snug_error *err) {
    char a[192];
    for (int i = 0; o->values && i < d->spec.n; i++) {
        const snug_datum *v = &o->values[i];
        const snug_type *t = &d->spec.type[i];
        if (!v->data)
            continue;
        if (!v->is_text != !d->spec.is_text[i] || (!v->is_text && v->type.dtype != t->dtype) ||
            sn_type_count(&v->type) != 1)
            return sn_fail(err, SNUG_E_INVALID, "part %d is padded with %s; give one %s", i,
                           snug_type_print(&v->type, a, sizeof a),
                           d->spec.is_text[i] ? "text" : snug_dtype_name(t->dtype));
        p->values[i] = *v;
        snug_datum_hold(v);
    }
    return SNUG_OK;
}

/* Shapes asked for, or the longest of all. */
static snug_status take_shapes(snug_dataset *d, padding *p, const snug_padding *o,
                               snug_error *err) {
    p->shapes = d->spec;
    for (int i = 0; i < d->spec.n; i++) {
        snug_type *t = &p->shapes.type[i];
        if (!o->shapes)
            continue;
        if (t->rank >= 0 && o->shapes[i].rank != t->rank)
            return sn_fail(err, SNUG_E_SHAPE, "part %d has rank %d, its padded shape rank %d", i,
                           t->rank, o->shapes[i].rank);
        t->rank = o->shapes[i].rank;
        memcpy(t->dims, o->shapes[i].dims, sizeof t->dims);
    }
    for (int i = 0; i < d->spec.n; i++)
        d->spec.type[i] =
            sn_type_with_rows(&p->shapes.type[i], p->batch.drop_remainder ? p->batch.size : -1);
    return SNUG_OK;
}

snug_status snug_dataset_padded_batch(snug_dataset *d, const snug_padding *o, snug_dataset **out,
                                      snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    if (!o || o->size < 1) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID, "a batch of %" PRId64 " elements; give at least 1",
                       o ? o->size : 0);
    }
    SNUG_TRY(sn_stage_after(&padded_class, d, sizeof(padding), &made, err));
    padding *p = made->ctx;
    p->batch = (sn_batch){.size = o->size, .drop_remainder = o->drop_remainder != 0};
    snug_status status = take_values(made, p, o, err);
    if (status == SNUG_OK)
        status = take_shapes(made, p, o, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(made);
        return status;
    }
    made->cardinality = sn_batch_cardinality(d->cardinality, o->size, o->drop_remainder != 0);
    *out = made;
    return SNUG_OK;
}
