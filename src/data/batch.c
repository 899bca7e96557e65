/* batch.c: elements to rows of arrays, and back (unbatch).
 *
 * Invariants:
 * 1. Rows are written once, in their place: by the source itself where it has rows in memory
 * (fill), else from the element that a stage gave.
 * 2. Numbers of one shape, known before, take the short way (fixed); others are batched by what the
 *    first element of the batch is.
 * 3. An array that turns out too small (a batch of "all there are") grows by doubling. */
#include "data/batch.h"

#include "base/size.h"

#include <inttypes.h>
#include <string.h>

/* Rows of an array before it is known that they come. */
enum { FIRST_ROWS = 1024 };

/* One where none should be left: only the end is asked for. */
static int64_t rows_at_first(const sn_cursor *c, int64_t size) {
    const int64_t known = c->stage->before[0]->cardinality;
    const int64_t most = known >= 0 ? known : size <= FIRST_ROWS * 8 ? size : FIRST_ROWS;
    if (known >= 0 && c->before[0]->given >= known)
        return 1;
    return size < most ? size : most;
}

snug_type sn_type_with_rows(const snug_type *row, int64_t n) {
    snug_type t = {.dtype = row->dtype, .rank = row->rank + 1};
    if (row->rank < 0 || row->rank >= SNUG_MAX_RANK)
        return *row;
    t.dims[0] = n;
    memcpy(t.dims + 1, row->dims, (size_t)row->rank * sizeof *row->dims);
    return t;
}

static snug_status check_rank(const snug_type *row, int part, snug_error *err) {
    if (row->rank < SNUG_MAX_RANK)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE, "part %d has rank %d already; a batch would have %d", part,
                   row->rank, row->rank + 1);
}

static snug_status fail_batch(snug_status status, int64_t rows, snug_error *err) {
    return sn_fail_in(err, status, "a batch of %" PRId64 " rows", rows);
}

/* Arrays of `rows` rows for the parts of types; parts with texts are left out. */
static snug_status make_arrays(const sn_cursor *c, const snug_spec *s, int64_t rows,
                               snug_element *out, sn_target *to, snug_error *err) {
    snug_status status = SNUG_OK;
    out->n = 0;
    to->n = s->n;
    for (int i = 0; i < s->n && status == SNUG_OK; i++) {
        out->part[i] = (snug_datum){0};
        out->n = i + 1;
        to->part[i].type = s->type[i];
        status = check_rank(&s->type[i], i, err);
        if (status != SNUG_OK || s->is_text[i])
            continue;
        const snug_type type = sn_type_with_rows(&s->type[i], rows);
        status = snug_datum_create(c->stage->engine, &type, &out->part[i], err);
        if (status != SNUG_OK)
            status = fail_batch(status, rows, err);
        to->part[i].data = out->part[i].data;
        to->part[i].row_bytes = rows > 0 ? out->part[i].bytes / (size_t)rows : 0;
    }
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

/* Twice the rows, up to `most`; those there are kept. */
static snug_status double_arrays(const sn_cursor *c, const snug_spec *s, int64_t most,
                                 int64_t *rows, snug_element *out, sn_target *to, snug_error *err) {
    snug_element grown;
    sn_target wider;
    const int64_t more = *rows > most / 2 ? most : *rows * 2;
    SNUG_TRY(make_arrays(c, s, more, &grown, &wider, err));
    for (int i = 0; i < s->n; i++)
        if (!s->is_text[i])
            memcpy(grown.part[i].data, out->part[i].data, out->part[i].bytes);
    snug_element_drop(out);
    sn_element_move(out, &grown);
    *to = wider;
    *rows = more;
    return SNUG_OK;
}

/* All rows are full: one more, where there is one, and room for as many more; else *got is 0. */
static snug_status grow_arrays(sn_cursor *c, int64_t most, int64_t *rows, snug_element *out,
                               sn_target *to, int64_t *got, snug_error *err) {
    const int64_t n = *rows;
    snug_element next;
    *got = 0;
    snug_status status = sn_cursor_next(c->before[0], &next, err);
    if (status == SNUG_E_END)
        return SNUG_OK;
    SNUG_TRY(status);
    status = double_arrays(c, &c->stage->before[0]->spec, most, rows, out, to, err);
    if (status == SNUG_OK)
        status = sn_target_put_all(to, n, &next, err);
    snug_element_drop(&next);
    *got = status == SNUG_OK;
    return status;
}

static void cut_rows(snug_element *out, int64_t n) {
    for (int i = 0; i < out->n; i++) {
        snug_datum *d = &out->part[i];
        if (d->is_text || d->type.dims[0] == n)
            continue;
        d->bytes = d->bytes / (size_t)d->type.dims[0] * (size_t)n;
        d->type.dims[0] = n;
    }
}

static snug_status next_fixed(sn_cursor *c, snug_element *out, snug_error *err) {
    const sn_batch *b = c->stage->ctx;
    const snug_spec *s = &c->stage->before[0]->spec;
    sn_target to;
    int64_t rows = rows_at_first(c, b->size), n = 0, got;
    SNUG_TRY(make_arrays(c, s, rows, out, &to, err));
    snug_status status = SNUG_OK;
    while (n < b->size) {
        if (n == rows)
            status = grow_arrays(c, b->size, &rows, out, &to, &got, err);
        else
            status = sn_cursor_fill(c->before[0], &to, n, rows - n, &got, err);
        if (status != SNUG_OK || got == 0)
            break;
        n += got;
    }
    if (status == SNUG_OK && (n == 0 || (n < b->size && b->drop_remainder)))
        status = sn_end(err);
    if (status == SNUG_OK)
        cut_rows(out, n);
    else
        snug_element_drop(out);
    return status;
}

/* --- by the first element --------------------------------------------------------------------- */
snug_status sn_gathering_add(snug_engine *e, sn_gathering *g, snug_element *from, snug_error *err) {
    const size_t n = (size_t)g->n * (size_t)from->n;
    SNUG_TRY(
        sn_grow(e, SN_MEM_INPUT, &g->parts, sizeof *g->parts, &g->cap, n + (size_t)from->n, err));
    memcpy(g->parts + n, from->part, (size_t)from->n * sizeof *from->part);
    g->n++;
    from->n = 0;
    return SNUG_OK;
}

void sn_gathering_clear(snug_engine *e, sn_gathering *g, int n_parts) {
    for (int64_t i = 0; i < g->n * n_parts; i++)
        snug_datum_drop(&g->parts[i]);
    sn_free(e, SN_MEM_INPUT, g->parts, g->cap * sizeof *g->parts);
    *g = (sn_gathering){0};
}

static snug_status check_same_shape(const snug_datum *d, const snug_datum *first, int part,
                                    snug_error *err) {
    char a[192], b[192];
    if (sn_dims_equal(&d->type, &first->type))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_SHAPE,
                   "part %d of an element is %s, but the first of the batch was %s; bring elements "
                   "to one shape, or use padded_batch",
                   part, snug_type_print(&d->type, a, sizeof a),
                   snug_type_print(&first->type, b, sizeof b));
}

/* Which parts become one array. */
typedef struct {
    const sn_gathering *all;
    int n_parts, part;
    sn_row_span rows;
} column;

static const snug_datum *cell(const column *c, int64_t i) {
    return &c->all->parts[(c->rows.first + i * c->rows.step) * c->n_parts + c->part];
}

/* Texts of all rows, one after another. */
static snug_status join_texts(snug_engine *e, const column *c, snug_datum *out, snug_error *err) {
    const snug_datum *first = cell(c, 0);
    const snug_type type = sn_type_with_rows(&first->type, c->rows.count);
    const size_t in_row = (size_t)sn_type_count(&first->type), n = in_row * (size_t)c->rows.count;
    void *block;
    SNUG_TRY(sn_alloc(e, SN_MEM_INPUT, n * sizeof(snug_text), &block, err));
    snug_text *all = block;
    snug_status status = SNUG_OK;
    for (int64_t i = 0; i < c->rows.count && status == SNUG_OK; i++) {
        status = check_same_shape(cell(c, i), first, c->part, err);
        if (status == SNUG_OK && in_row > 0)
            memcpy(all + (size_t)i * in_row, cell(c, i)->data, in_row * sizeof *all);
    }
    if (status == SNUG_OK)
        status = snug_datum_texts(e, &type, all, out, err);
    sn_free(e, SN_MEM_INPUT, all, n * sizeof *all);
    return status;
}

static snug_status join_numbers(snug_engine *e, const column *c, snug_datum *out, snug_error *err) {
    const snug_datum *first = cell(c, 0);
    const snug_type type = sn_type_with_rows(&first->type, c->rows.count);
    const snug_status made = snug_datum_create(e, &type, out, err);
    if (made != SNUG_OK)
        return fail_batch(made, c->rows.count, err);
    for (int64_t i = 0; i < c->rows.count; i++) {
        const snug_status status = check_same_shape(cell(c, i), first, c->part, err);
        if (status != SNUG_OK) {
            snug_datum_drop(out);
            return status;
        }
        memcpy((char *)out->data + (size_t)i * first->bytes, cell(c, i)->data, first->bytes);
    }
    return SNUG_OK;
}

snug_status sn_gathering_join(snug_engine *e, const sn_gathering *g, int n_parts, sn_row_span rows,
                              snug_element *out, snug_error *err) {
    snug_status status = SNUG_OK;
    out->n = 0;
    for (int p = 0; p < n_parts && status == SNUG_OK; p++) {
        const column c = {g, n_parts, p, rows};
        status = check_rank(&cell(&c, 0)->type, p, err);
        if (status == SNUG_OK)
            status = (cell(&c, 0)->is_text ? join_texts : join_numbers)(e, &c, &out->part[p], err);
        out->n += status == SNUG_OK;
    }
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

snug_status sn_gather_elements(sn_cursor *c, int64_t size, sn_gathering *g, snug_error *err) {
    const int n_parts = c->stage->before[0]->spec.n;
    while (g->n < size) {
        snug_element e;
        snug_status status = sn_cursor_next(c->before[0], &e, err);
        if (status == SNUG_E_END)
            return g->n > 0 ? SNUG_OK : status;
        if (status == SNUG_OK && e.n != n_parts)
            status = sn_fail(err, SNUG_E_SHAPE, "an element has %d parts, but the dataset %d", e.n,
                             n_parts);
        if (status == SNUG_OK)
            status = sn_gathering_add(c->stage->engine, g, &e, err);
        if (status != SNUG_OK) {
            snug_element_drop(&e);
            return status;
        }
    }
    return SNUG_OK;
}

static snug_status next_gathered(sn_cursor *c, snug_element *out, snug_error *err) {
    const sn_batch *b = c->stage->ctx;
    const int n_parts = c->stage->before[0]->spec.n;
    sn_gathering g = {0};
    snug_status status = sn_gather_elements(c, b->size, &g, err);
    if (status == SNUG_OK && g.n < b->size && b->drop_remainder)
        status = sn_end(err);
    if (status == SNUG_OK)
        status =
            sn_gathering_join(c->stage->engine, &g, n_parts, (sn_row_span){0, 1, g.n}, out, err);
    sn_gathering_clear(c->stage->engine, &g, n_parts);
    return status;
}

static snug_status next_batch(sn_cursor *c, snug_element *out, snug_error *err) {
    const sn_batch *b = c->stage->ctx;
    return b->fixed ? next_fixed(c, out, err) : next_gathered(c, out, err);
}

snug_status sn_batch_seek(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    const sn_batch *b = c->stage->ctx;
    int64_t rows, got;
    if (!sn_i64_mul(n, b->size, &rows))
        rows = INT64_MAX;
    SNUG_TRY(sn_cursor_seek(c->before[0], rows, &got, err));
    *done = got / b->size + (got % b->size != 0 && !b->drop_remainder);
    return SNUG_OK;
}

static const sn_stage_class batch_class = {
    .name = "batch", .next = next_batch, .seek = sn_batch_seek};

bool sn_stage_is_batch(const snug_dataset *d, int64_t *size) {
    if (d->kind != &batch_class)
        return false;
    *size = ((const sn_batch *)d->ctx)->size;
    return true;
}

int64_t sn_batch_cardinality(int64_t n, int64_t size, bool drop_remainder) {
    return n < 0 ? n : n / size + (n % size != 0 && !drop_remainder);
}

snug_status snug_dataset_batch(snug_dataset *d, int64_t size, int drop_remainder,
                               snug_dataset **out, snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    if (size < 1) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID, "a batch of %" PRId64 " elements; give at least 1",
                       size);
    }
    SNUG_TRY(sn_stage_after(&batch_class, d, sizeof(sn_batch), &made, err));
    *(sn_batch *)made->ctx = (sn_batch){size, drop_remainder != 0, sn_spec_is_fixed(&d->spec)};
    for (int i = 0; i < made->spec.n; i++)
        made->spec.type[i] = sn_type_with_rows(&d->spec.type[i], drop_remainder ? size : -1);
    made->cardinality = sn_batch_cardinality(d->cardinality, size, drop_remainder);
    *out = made;
    return SNUG_OK;
}

/* --- the other way ---------------------------------------------------------------------------- */
typedef struct {
    snug_element batch;
    int64_t row, rows;
} unbatching;

static snug_status open_unbatch(sn_cursor *c, snug_error *err) {
    return sn_cursor_ctx(c, sizeof(unbatching), err);
}

static snug_status count_rows(const snug_element *e, int64_t *rows, snug_error *err) {
    for (int i = 0; i < e->n; i++) {
        const snug_type *t = &e->part[i].type;
        if (t->rank < 1)
            return sn_fail(err, SNUG_E_SHAPE, "unbatch: part %d has no rows", i);
        if (i > 0 && t->dims[0] != *rows)
            return sn_fail(err, SNUG_E_SHAPE,
                           "unbatch: part %d has %" PRId64 " rows, part 0 has %" PRId64, i,
                           t->dims[0], *rows);
        *rows = t->dims[0];
    }
    return SNUG_OK;
}

static snug_status next_row(sn_cursor *c, snug_element *out, snug_error *err) {
    unbatching *u = c->ctx;
    while (u->row == u->rows) {
        snug_element_drop(&u->batch);
        u->row = u->rows = 0;
        SNUG_TRY(sn_cursor_next(c->before[0], &u->batch, err));
        SNUG_TRY(count_rows(&u->batch, &u->rows, err));
    }
    for (int i = 0; i < u->batch.n; i++)
        out->part[i] = sn_datum_row(&u->batch.part[i], u->row);
    out->n = u->batch.n;
    u->row++;
    return SNUG_OK;
}

static void close_unbatch(sn_cursor *c) {
    snug_element_drop(&((unbatching *)c->ctx)->batch);
}

static const sn_stage_class unbatch_class = {
    .name = "unbatch", .open = open_unbatch, .next = next_row, .close = close_unbatch};

snug_status snug_dataset_unbatch(snug_dataset *d, snug_dataset **out, snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    int64_t rows = -1;
    snug_status status = SNUG_OK;
    for (int i = 0; d && i < d->spec.n && status == SNUG_OK; i++) {
        if (d->spec.type[i].rank == 0)
            status = sn_fail(err, SNUG_E_SHAPE, "unbatch: part %d has no rows", i);
        if (d->spec.type[i].rank > 0 && d->spec.type[i].dims[0] >= 0)
            rows = d->spec.type[i].dims[0];
    }
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    SNUG_TRY(sn_stage_after(&unbatch_class, d, 0, &made, err));
    for (int i = 0; i < made->spec.n; i++) {
        snug_type *t = &made->spec.type[i];
        if (t->rank < 1)
            continue;
        t->rank--;
        memmove(t->dims, t->dims + 1, (size_t)t->rank * sizeof *t->dims);
    }
    if (made->cardinality > 0 &&
        (rows < 0 || !sn_i64_mul(rows, made->cardinality, &made->cardinality)))
        made->cardinality = SNUG_UNKNOWN;
    *out = made;
    return SNUG_OK;
}
