/* window.c: windows over the stream: batches that overlap.
 *
 * Invariants:
 * 1. Elements that a later window needs are kept, as references; nothing else is.
 * 2. Without drop_remainder there is a window for each multiple of shift that an element is at. */
#include "data/batch.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    sn_gathering kept; /* from the first element of the next window on */
    int64_t to_skip;   /* elements before that one which did not come yet */
    bool ended;
} windowing;

static snug_status open_window(sn_cursor *c, snug_error *err) {
    return sn_cursor_ctx(c, sizeof(windowing), err);
}

static void close_window(sn_cursor *c) {
    windowing *w = c->ctx;
    sn_gathering_clear(c->stage->engine, &w->kept, c->stage->spec.n);
}

static int64_t span(const snug_window *o) {
    return (o->size - 1) * o->stride + 1;
}

static snug_status keep_more(sn_cursor *c, windowing *w, int64_t want, snug_error *err) {
    if (w->to_skip > 0) {
        int64_t done;
        SNUG_TRY(sn_cursor_seek(c->before[0], w->to_skip, &done, err));
        w->to_skip -= done;
        w->ended = w->to_skip > 0;
    }
    if (w->ended || w->kept.n >= want)
        return SNUG_OK;
    const snug_status status = sn_gather_elements(c, want, &w->kept, err);
    w->ended = status == SNUG_E_END || (status == SNUG_OK && w->kept.n < want);
    return w->ended ? SNUG_OK : status;
}

static void drop_first(sn_cursor *c, windowing *w, int64_t n) {
    const int parts = c->stage->spec.n;
    const int64_t there = n < w->kept.n ? n : w->kept.n;
    for (int64_t i = 0; i < there * parts; i++)
        snug_datum_drop(&w->kept.parts[i]);
    memmove(w->kept.parts, w->kept.parts + there * parts,
            (size_t)((w->kept.n - there) * parts) * sizeof *w->kept.parts);
    w->kept.n -= there;
    w->to_skip = n - there;
}

static snug_status next_window(sn_cursor *c, snug_element *out, snug_error *err) {
    const snug_window *o = c->stage->ctx;
    windowing *w = c->ctx;
    SNUG_TRY(keep_more(c, w, span(o), err));
    const bool whole = w->kept.n >= span(o);
    if (w->kept.n == 0 || (!whole && o->drop_remainder))
        return sn_end(err);
    const int64_t count = whole ? o->size : (w->kept.n - 1) / o->stride + 1;
    SNUG_TRY(sn_gathering_join(c->stage->engine, &w->kept, c->stage->spec.n,
                               (sn_row_span){0, o->stride, count}, out, err));
    drop_first(c, w, o->shift);
    return SNUG_OK;
}

static const sn_stage_class window_class = {
    .name = "window", .open = open_window, .next = next_window, .close = close_window};

static int64_t count_windows(int64_t n, const snug_window *o) {
    if (n < 0)
        return n;
    if (!o->drop_remainder)
        return n == 0 ? 0 : (n - 1) / o->shift + 1;
    return n < span(o) ? 0 : (n - span(o)) / o->shift + 1;
}

snug_status snug_dataset_window(snug_dataset *d, const snug_window *o, snug_dataset **out,
                                snug_error *err) {
    SNUG_TRY(sn_stage_wants(d, out, err));
    snug_dataset *made = NULL;
    snug_window w = o ? *o : (snug_window){0};
    w.shift = w.shift == 0 ? w.size : w.shift;
    w.stride = w.stride == 0 ? 1 : w.stride;
    if (w.size < 1 || w.shift < 1 || w.stride < 1 || w.size > INT64_MAX / 2 / w.stride) {
        snug_dataset_drop(d);
        return sn_fail(err, SNUG_E_INVALID,
                       "a window of %" PRId64 " elements, shift %" PRId64 ", stride %" PRId64
                       "; each must be at least 1",
                       w.size, w.shift, w.stride);
    }
    SNUG_TRY(sn_stage_after(&window_class, d, sizeof w, &made, err));
    *(snug_window *)made->ctx = w;
    for (int i = 0; i < made->spec.n; i++)
        made->spec.type[i] = sn_type_with_rows(&d->spec.type[i], w.drop_remainder ? w.size : -1);
    made->cardinality = count_windows(d->cardinality, &w);
    *out = made;
    return SNUG_OK;
}
