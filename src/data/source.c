/* source.c: where elements begin: arrays in memory (rows, or whole as one element), feeds, ranges
 * of numbers, and the caller's own generators.
 *
 * Invariants:
 * 1. Rows of arrays are slices: counted, not copied until a batch is assembled.
 * 2. Feeds read through windows of their own, so one thread at a time fills from them. */
#include "data/stage.h"

#include "base/size.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

static void drop_first_axis(snug_type *t) {
    t->rank--;
    memmove(t->dims, t->dims + 1, (size_t)t->rank * sizeof *t->dims);
}

/* Sources that count: their cursor is `given`. */
static snug_status next_by_index(sn_cursor *c, snug_element *out, snug_error *err) {
    if (c->given >= c->stage->cardinality)
        return sn_end(err);
    return c->stage->kind->at(c->stage, c->given, out, err);
}

static snug_status seek_by_index(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    (void)err;
    const int64_t left = c->stage->cardinality - c->given;
    *done = n < left ? n : left;
    return SNUG_OK;
}

static snug_status draw_by_index(sn_cursor *c, int64_t *index, int64_t n, int64_t *done,
                                 snug_error *err) {
    SNUG_TRY(seek_by_index(c, n, done, err));
    for (int64_t i = 0; i < *done; i++)
        index[i] = c->given + i;
    return SNUG_OK;
}

/* --- arrays in memory ------------------------------------------------------------------------- */
static snug_status element_at(const snug_dataset *d, int64_t index, snug_element *out,
                              snug_error *err) {
    (void)err, (void)index;
    const snug_element *whole = d->ctx;
    for (int i = 0; i < whole->n; i++) {
        out->part[i] = whole->part[i];
        snug_datum_hold(&out->part[i]);
    }
    out->n = whole->n;
    return SNUG_OK;
}

static snug_status row_at(const snug_dataset *d, int64_t index, snug_element *out,
                          snug_error *err) {
    (void)err;
    const snug_element *whole = d->ctx;
    for (int i = 0; i < whole->n; i++)
        out->part[i] = sn_datum_row(&whole->part[i], index);
    out->n = whole->n;
    return SNUG_OK;
}

static snug_status check_rows_fit(const snug_dataset *d, const sn_target *to, snug_error *err) {
    char a[192], b[192];
    bool fits = to->n == d->spec.n;
    for (int i = 0; fits && i < to->n; i++)
        if (to->part[i].data &&
            (d->spec.is_text[i] || !sn_dims_equal(&d->spec.type[i], &to->part[i].type)))
            return sn_fail(err, SNUG_E_SHAPE, "rows of part %d are %s, the batch's %s", i,
                           snug_type_print(&d->spec.type[i], a, sizeof a),
                           snug_type_print(&to->part[i].type, b, sizeof b));
    return fits ? SNUG_OK
                : sn_fail(err, SNUG_E_SHAPE, "elements have %d parts, the batch has %d", d->spec.n,
                          to->n);
}

/* Far rows are asked of memory some rows ahead: a shuffled gather waits for nothing else. */
enum { ROWS_AHEAD = 8 };

static snug_status gather_rows(const snug_dataset *d, const int64_t *index, int64_t n,
                               const sn_target *to, int64_t first, snug_error *err) {
    const snug_element *whole = d->ctx;
    SNUG_TRY(check_rows_fit(d, to, err));
    for (int p = 0; p < to->n; p++) {
        if (!to->part[p].data)
            continue;
        const char *from = whole->part[p].data;
        char *at = to->part[p].data + (size_t)first * to->part[p].row_bytes;
        const snug_dtype have = whole->part[p].type.dtype, want = to->part[p].type.dtype;
        const size_t count = (size_t)sn_type_count(&to->part[p].type);
        const size_t row_bytes = count * snug_dtype_bytes(have);
        for (int64_t i = 0; i < n; i++, at += to->part[p].row_bytes) {
            const char *row = from + (size_t)index[i] * row_bytes;
            if (i + ROWS_AHEAD < n)
                for (size_t b = 0; b < row_bytes && b < 512; b += 64)
                    __builtin_prefetch(from + (size_t)index[i + ROWS_AHEAD] * row_bytes + b);
            if (have == want)
                memcpy(at, row, row_bytes);
            else
                SNUG_TRY(sn_convert(have, row, want, at, count, err));
        }
    }
    return SNUG_OK;
}

enum { RUN = 256 };

/* The next rows by index, through the kind's gather. */
static snug_status fill_by_index(sn_cursor *c, const sn_target *to, int64_t first, int64_t n,
                                 int64_t *done, snug_error *err) {
    int64_t index[RUN];
    const int64_t left = c->stage->cardinality - c->given, all = n < left ? n : left;
    for (int64_t i = 0, k; i < all; i += k) {
        k = all - i < RUN ? all - i : RUN;
        for (int64_t j = 0; j < k; j++)
            index[j] = c->given + i + j;
        SNUG_TRY(sn_stage_gather(c->stage, index, k, to, first + i, err));
    }
    *done = all;
    return SNUG_OK;
}

static void release_element(snug_dataset *d) {
    snug_element_drop(d->ctx);
}

static const sn_stage_class element_class = {.name = "element",
                                             .next = next_by_index,
                                             .seek = seek_by_index,
                                             .draw = draw_by_index,
                                             .release = release_element,
                                             .at = element_at};
static const sn_stage_class rows_class = {.name = "rows",
                                          .next = next_by_index,
                                          .seek = seek_by_index,
                                          .draw = draw_by_index,
                                          .fill = fill_by_index,
                                          .release = release_element,
                                          .at = row_at,
                                          .gather = gather_rows};

static snug_status check_slices(const snug_element *e, int64_t *rows, snug_error *err) {
    for (int i = 0; i < e->n; i++) {
        const snug_type *t = &e->part[i].type;
        if (t->rank < 1)
            return sn_fail(err, SNUG_E_SHAPE,
                           "part %d is a single number, it has no rows; give arrays with a leading "
                           "axis, or take it whole",
                           i);
        if (i > 0 && t->dims[0] != *rows)
            return sn_fail(err, SNUG_E_SHAPE,
                           "part %d has %" PRId64 " rows, part 0 has %" PRId64
                           "; each element needs one of each",
                           i, t->dims[0], *rows);
        *rows = t->dims[0];
    }
    return SNUG_OK;
}

snug_status snug_dataset_from_element(snug_engine *engine, const snug_element *element, int slices,
                                      snug_dataset **out, snug_error *err) {
    if (!engine || !element || !out || element->n < 1 || element->n > SNUG_MAX_PARTS)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_dataset_from_element: an argument is NULL, or the element has not 1 "
                       "to %d parts",
                       SNUG_MAX_PARTS);
    int64_t rows = 1;
    snug_dataset *d = NULL;
    if (slices)
        SNUG_TRY(check_slices(element, &rows, err));
    SNUG_TRY(sn_stage_create(slices ? &rows_class : &element_class, engine, NULL, 0, &d, err));
    const snug_status status = sn_stage_ctx(d, sizeof *element, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    snug_element *whole = d->ctx;
    whole->n = d->spec.n = element->n;
    for (int i = 0; i < element->n; i++) {
        whole->part[i] = element->part[i];
        snug_datum_hold(&whole->part[i]);
        d->spec.type[i] = element->part[i].type;
        d->spec.is_text[i] = element->part[i].is_text;
        if (slices)
            drop_first_axis(&d->spec.type[i]);
    }
    d->cardinality = rows;
    d->random = true;
    *out = d;
    return SNUG_OK;
}

/* --- feeds ------------------------------------------------------------------------------------ */
typedef struct {
    pthread_mutex_t mutex;
    snug_feed *feeds[SNUG_MAX_PARTS];
} feed_source;

/* Rows of part p with these indices; neighbours are one request. Under the mutex. */
static snug_status fill_part(feed_source *s, int p, const int64_t *index, int64_t n,
                             const sn_target *to, int64_t first, snug_error *err) {
    for (int64_t i = 0, run; i < n; i += run) {
        snug_view view = {.type = *snug_feed_type(s->feeds[p])};
        for (run = 1; i + run < n && index[i + run] == index[i] + run;)
            run++;
        view.type.dtype = to->part[p].type.dtype;
        view.type.dims[0] = run;
        view.bytes = (size_t)run * to->part[p].row_bytes;
        view.data = to->part[p].data + (size_t)(first + i) * to->part[p].row_bytes;
        SNUG_TRY(snug_feed_fill(s->feeds[p], index[i], run, &view, err));
    }
    return SNUG_OK;
}

static snug_status gather_feeds(const snug_dataset *d, const int64_t *index, int64_t n,
                                const sn_target *to, int64_t first, snug_error *err) {
    feed_source *s = d->ctx;
    SNUG_TRY(check_rows_fit(d, to, err));
    snug_status status = SNUG_OK;
    pthread_mutex_lock(&s->mutex);
    for (int p = 0; p < to->n && status == SNUG_OK; p++)
        if (to->part[p].data)
            status = fill_part(s, p, index, n, to, first, err);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static snug_status feeds_at(const snug_dataset *d, int64_t index, snug_element *out,
                            snug_error *err) {
    sn_target to = {.n = d->spec.n};
    snug_status status = SNUG_OK;
    out->n = 0;
    for (int p = 0; p < d->spec.n && status == SNUG_OK; p++) {
        status = snug_datum_create(d->engine, &d->spec.type[p], &out->part[p], err);
        if (status != SNUG_OK)
            break;
        out->n++;
        to.part[p].data = out->part[p].data;
        to.part[p].row_bytes = out->part[p].bytes;
        to.part[p].type = d->spec.type[p];
    }
    if (status == SNUG_OK)
        status = gather_feeds(d, &index, 1, &to, 0, err);
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

static void release_feeds(snug_dataset *d) {
    feed_source *s = d->ctx;
    for (int i = 0; i < d->spec.n; i++)
        snug_feed_destroy(s->feeds[i]);
    pthread_mutex_destroy(&s->mutex);
}

static const sn_stage_class feeds_class = {.name = "feeds",
                                           .next = next_by_index,
                                           .seek = seek_by_index,
                                           .draw = draw_by_index,
                                           .fill = fill_by_index,
                                           .release = release_feeds,
                                           .at = feeds_at,
                                           .gather = gather_feeds};

static snug_status check_feeds(snug_feed *const *feeds, int n, snug_error *err) {
    for (int i = 0; i < n; i++) {
        if (!feeds[i])
            return sn_fail(err, SNUG_E_INVALID, "feed %d is NULL", i);
        const int64_t a = snug_feed_type(feeds[0])->dims[0], b = snug_feed_type(feeds[i])->dims[0];
        if (a != b)
            return sn_fail(err, SNUG_E_DATA,
                           "feed %d has %" PRId64 " rows, feed 0 has %" PRId64
                           "; each element needs one of each",
                           i, b, a);
    }
    return SNUG_OK;
}

static snug_status create_feeds(snug_engine *e, snug_feed *const *feeds, int n, snug_dataset **out,
                                snug_error *err) {
    snug_dataset *d = NULL;
    SNUG_TRY(check_feeds(feeds, n, err));
    SNUG_TRY(sn_stage_create(&feeds_class, e, NULL, 0, &d, err));
    snug_status status = sn_stage_ctx(d, sizeof(feed_source), err);
    feed_source *s = d->ctx;
    if (status == SNUG_OK && pthread_mutex_init(&s->mutex, NULL) != 0) {
        sn_free(e, SN_MEM_INPUT, d->ctx, d->n_ctx);
        d->ctx = NULL;
        d->n_ctx = 0;
        status = sn_fail(err, SNUG_E_MEMORY, "the system has no mutex for a dataset; free memory");
    }
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    for (int i = 0; i < n; i++) {
        s->feeds[i] = feeds[i];
        d->spec.type[i] = *snug_feed_type(feeds[i]);
        drop_first_axis(&d->spec.type[i]);
    }
    d->spec.n = n;
    d->cardinality = snug_feed_type(feeds[0])->dims[0];
    d->random = true;
    *out = d;
    return SNUG_OK;
}

snug_status snug_dataset_from_feeds(snug_engine *engine, snug_feed *const *feeds, int n,
                                    snug_dataset **out, snug_error *err) {
    if (!engine || !feeds || !out || n < 1 || n > SNUG_MAX_PARTS)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_dataset_from_feeds: an argument is NULL, or not 1 to %d feeds",
                       SNUG_MAX_PARTS);
    const snug_status status = create_feeds(engine, feeds, n, out, err);
    for (int i = 0; status != SNUG_OK && i < n; i++)
        snug_feed_destroy(feeds[i]);
    return status;
}

/* --- ranges ----------------------------------------------------------------------------------- */
typedef struct {
    int64_t start, step;
} range;

static snug_status range_at(const snug_dataset *d, int64_t index, snug_element *out,
                            snug_error *err) {
    const range *r = d->ctx;
    SNUG_TRY(snug_datum_create(d->engine, &d->spec.type[0], &out->part[0], err));
    /* Unsigned: the last number is in range, what is in between may wrap. */
    const uint64_t value = (uint64_t)r->start + (uint64_t)index * (uint64_t)r->step;
    memcpy(out->part[0].data, &value, sizeof value);
    out->n = 1;
    return SNUG_OK;
}

static const sn_stage_class range_class = {.name = "range",
                                           .next = next_by_index,
                                           .seek = seek_by_index,
                                           .draw = draw_by_index,
                                           .at = range_at};

/* How many numbers there are; up to 2^64 - 1, more than a cardinality can say. */
static uint64_t count_range(int64_t start, int64_t stop, int64_t step) {
    if (step > 0)
        return stop > start ? ((uint64_t)stop - (uint64_t)start - 1) / (uint64_t)step + 1 : 0;
    return stop < start ? ((uint64_t)start - (uint64_t)stop - 1) / (0 - (uint64_t)step) + 1 : 0;
}

snug_status snug_dataset_range(snug_engine *engine, int64_t start, int64_t stop, int64_t step,
                               snug_dataset **out, snug_error *err) {
    if (!engine || !out || step == 0)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_dataset_range: an argument is NULL, or step is 0");
    const uint64_t n = count_range(start, stop, step);
    snug_dataset *d = NULL;
    SNUG_TRY(sn_stage_create(&range_class, engine, NULL, 0, &d, err));
    const snug_status status = sn_stage_ctx(d, sizeof(range), err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    *(range *)d->ctx = (range){start, step};
    d->spec.n = 1;
    d->spec.type[0] = (snug_type){.dtype = SNUG_I64};
    d->cardinality = n > INT64_MAX ? INT64_MAX : (int64_t)n;
    d->random = true;
    *out = d;
    return SNUG_OK;
}

/* --- generators ------------------------------------------------------------------------------- */
typedef struct {
    void *cursor;
    bool opened, ended;
} generation;

/* Opened by the first element asked for: who makes an iterator asks for nothing yet. */
static snug_status open_generator(sn_cursor *c, snug_error *err) {
    return sn_cursor_ctx(c, sizeof(generation), err);
}

static snug_status next_generated(sn_cursor *c, snug_element *out, snug_error *err) {
    const snug_generator *g = c->stage->ctx;
    generation *now = c->ctx;
    if (now->ended)
        return sn_end(err);
    if (!now->opened)
        SNUG_TRY(g->open(g->ctx, &now->cursor, err));
    now->opened = true;
    out->n = 0;
    snug_status status = g->next(now->cursor, out, err);
    now->ended = status == SNUG_E_END;
    if (status != SNUG_OK)
        return status;
    out->index = c->given;
    status = sn_spec_check(&c->stage->spec, out, "the generator", err);
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

static void close_generator(sn_cursor *c) {
    const snug_generator *g = c->stage->ctx;
    generation *now = c->ctx;
    if (now->opened && g->close)
        g->close(now->cursor);
}

static snug_status generated_at(const snug_dataset *d, int64_t index, snug_element *out,
                                snug_error *err) {
    const snug_generator *g = d->ctx;
    out->n = 0;
    SNUG_TRY(g->at(g->ctx, index, out, err));
    out->index = index;
    const snug_status status = sn_spec_check(&d->spec, out, "the source", err);
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}

static void release_generator(snug_dataset *d) {
    const snug_generator *g = d->ctx;
    if (g->release)
        g->release(g->ctx);
}

static const sn_stage_class generator_class = {.name = "generator",
                                               .open = open_generator,
                                               .next = next_generated,
                                               .close = close_generator,
                                               .release = release_generator,
                                               .at = generated_at};
/* With random access next is not needed. */
static const sn_stage_class indexed_class = {.name = "generator",
                                             .next = next_by_index,
                                             .seek = seek_by_index,
                                             .draw = draw_by_index,
                                             .release = release_generator,
                                             .at = generated_at};

snug_status snug_dataset_from_generator(snug_engine *engine, const snug_generator *generator,
                                        snug_dataset **out, snug_error *err) {
    if (!engine || !generator || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_dataset_from_generator: an argument is NULL");
    const bool indexed = generator->at && generator->cardinality >= 0;
    if (!indexed && (!generator->open || !generator->next))
        return sn_fail(err, SNUG_E_INVALID,
                       "a generator needs open and next, or at and a number of elements");
    if (generator->spec.n < 0 || generator->spec.n > SNUG_MAX_PARTS)
        return sn_fail(err, SNUG_E_INVALID, "a generator of %d parts; there may be %d",
                       generator->spec.n, SNUG_MAX_PARTS);
    snug_dataset *d = NULL;
    SNUG_TRY(
        sn_stage_create(indexed ? &indexed_class : &generator_class, engine, NULL, 0, &d, err));
    const snug_status status = sn_stage_ctx(d, sizeof *generator, err);
    if (status != SNUG_OK) {
        snug_dataset_drop(d);
        return status;
    }
    *(snug_generator *)d->ctx = *generator;
    d->spec = generator->spec;
    d->cardinality = generator->cardinality;
    d->serial = generator->serial;
    d->random = indexed && !generator->serial;
    *out = d;
    return SNUG_OK;
}
