/* feed.c: feeds: the check in front of every fill, and feeds over the caller's memory and the
 * caller's function. (Recipes: recipe.c. Files: room model.)
 *
 * Invariants:
 * 1. A feed's fill function is asked only for rows that exist, with a view of exactly those rows'
 *    shape.
 * 2. The caller's function always sees a view of the feed's own dtype. Where the reader's elements
 *    are as large or larger, its rows are made at the end of the reader's view and converted from
 *    there; where they are smaller, in a buffer on the ledger, made by sn_feed_prepare (at the
 *    latest by the first such fill) and kept. */
#include "tensor/feed.h"

#include <inttypes.h>
#include <string.h>

const snug_type *snug_feed_type(const snug_feed *feed) {
    return feed ? &feed->type : NULL;
}

snug_status sn_feed_create(snug_engine *e, const snug_type *type, void *ctx, snug_feed_fill_fn fill,
                           void (*release)(void *ctx), snug_feed **out, snug_error *err) {
    SNUG_TRY(sn_type_check(type, false, err));
    if (type->rank < 1 || type->dtype == SNUG_OPAQUE) {
        char text[192];
        return sn_fail(err, SNUG_E_SHAPE,
                       "a feed has rows of numbers, but its type is %s; give it a leading axis",
                       snug_type_print(type, text, sizeof text));
    }
    void *p;
    SNUG_TRY(sn_alloc(e, SN_MEM_INPUT, sizeof(snug_feed), &p, err));
    snug_feed *feed = p;
    *feed = (snug_feed){.engine = e, .type = *type, .ctx = ctx, .fill = fill, .release = release};
    *out = feed;
    return SNUG_OK;
}

void snug_feed_destroy(snug_feed *feed) {
    if (!feed)
        return;
    if (feed->release)
        feed->release(feed->ctx);
    sn_free(feed->engine, SN_MEM_INPUT, feed, sizeof *feed);
}

snug_status sn_feed_prepare(snug_feed *feed, snug_dtype to, snug_error *err) {
    return feed->prepare ? feed->prepare(feed->ctx, to, err) : SNUG_OK;
}

static snug_status check_view(const snug_feed *feed, int64_t n_rows, const snug_view *dst,
                              snug_error *err) {
    snug_type want = feed->type;
    want.dims[0] = n_rows;
    want.dtype = dst->type.dtype;
    if (!sn_dims_equal(&want, &dst->type)) {
        char a[192], b[192];
        return sn_fail(err, SNUG_E_SHAPE, "%" PRId64 " rows of the feed are %s, the view is %s",
                       n_rows, snug_type_print(&want, a, sizeof a),
                       snug_type_print(&dst->type, b, sizeof b));
    }
    size_t need;
    SNUG_TRY(snug_type_bytes(&dst->type, &need, err));
    if (!dst->data || dst->bytes < need)
        return sn_fail(err, SNUG_E_INVALID, "the rows need %zu bytes, the view has %zu", need,
                       dst->data ? dst->bytes : 0);
    return SNUG_OK;
}

snug_status snug_feed_fill(snug_feed *feed, int64_t first_row, int64_t n_rows, const snug_view *dst,
                           snug_error *err) {
    if (!feed || !dst)
        return sn_fail(err, SNUG_E_INVALID, "snug_feed_fill: feed and dst must not be NULL");
    const int64_t rows = feed->type.dims[0];
    if (first_row < 0 || n_rows < 0 || first_row > rows || n_rows > rows - first_row)
        return sn_fail(err, SNUG_E_INVALID,
                       "rows %" PRId64 " and %" PRId64
                       " more are asked of a feed that has %" PRId64,
                       first_row, n_rows, rows);
    SNUG_TRY(check_view(feed, n_rows, dst, err));
    if (n_rows == 0)
        return SNUG_OK;
    SNUG_TRY(sn_feed_prepare(feed, dst->type.dtype, err));
    return feed->fill(feed->ctx, first_row, n_rows, dst, err);
}

/* --- the caller's memory ---------------------------------------------------------------------- */

snug_status snug_feed_from_memory(snug_engine *engine, const snug_type *type, const void *data,
                                  void (*release)(void *ctx), void *ctx, snug_feed **out,
                                  snug_error *err) {
    if (!engine || !type || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_feed_from_memory: engine, type and out must not be NULL");
    size_t bytes;
    SNUG_TRY(snug_type_bytes(type, &bytes, err));
    sn_source *source;
    const size_t element = snug_dtype_bytes(type->dtype);
    SNUG_TRY(sn_source_from_memory(engine, data, type->dtype, element ? bytes / element : 0,
                                   &source, err));
    const sn_recipe all = sn_source_recipe(source, 0);
    const snug_status status = sn_feed_from_recipe(engine, type, &all, out, err);
    if (status == SNUG_OK)
        sn_source_give(source, release, ctx);
    sn_source_drop(source);
    return status;
}

/* --- the caller's function -------------------------------------------------------------------- */

/* Enough for the call to be cheap beside the conversion, little beside any budget. */
enum { BUFFER_BYTES = 64 * 1024 };

typedef struct {
    snug_engine *engine;
    snug_type type;
    snug_feed_fill_fn fill;
    void (*release)(void *ctx);
    void *ctx;
    size_t row_bytes;
    void *buffer; /* whole rows; NULL until a reader wants smaller elements */
    size_t buffer_bytes;
} callback_feed;

static bool needs_buffer(const callback_feed *c, snug_dtype to) {
    return snug_dtype_bytes(to) < snug_dtype_bytes(c->type.dtype);
}

static snug_status callback_prepare(void *ctx, snug_dtype to, snug_error *err) {
    callback_feed *c = ctx;
    if (c->buffer || !needs_buffer(c, to))
        return SNUG_OK;
    const size_t rows =
        c->row_bytes > 0 && c->row_bytes < BUFFER_BYTES ? BUFFER_BYTES / c->row_bytes : 1;
    const size_t bytes = rows * c->row_bytes;
    SNUG_TRY(sn_alloc(c->engine, SN_MEM_INPUT, bytes, &c->buffer, err));
    c->buffer_bytes = bytes;
    return SNUG_OK;
}

/* Rows [first, first + n) in the feed's dtype at `raw`, then converted to dst. */
static snug_status fill_through(const callback_feed *c, int64_t first, int64_t n, void *raw,
                                const snug_view *dst, snug_error *err) {
    snug_view view = {.data = raw, .bytes = (size_t)n * c->row_bytes, .type = c->type};
    view.type.dims[0] = n;
    SNUG_TRY(c->fill(c->ctx, first, n, &view, err));
    return sn_convert(c->type.dtype, raw, dst->type.dtype, dst->data,
                      (size_t)sn_type_count(&view.type), err);
}

/* In pieces as large as the buffer. */
static snug_status fill_narrower(const callback_feed *c, int64_t first_row, int64_t n_rows,
                                 const snug_view *dst, snug_error *err) {
    const int64_t most = c->row_bytes > 0 ? (int64_t)(c->buffer_bytes / c->row_bytes) : n_rows;
    const size_t dst_row_bytes = dst->bytes / (size_t)n_rows;
    snug_view piece = *dst;
    for (int64_t done = 0; done < n_rows; done += most) {
        const int64_t n = n_rows - done < most ? n_rows - done : most;
        piece.data = (char *)dst->data + (size_t)done * dst_row_bytes;
        SNUG_TRY(fill_through(c, first_row + done, n, c->buffer, &piece, err));
    }
    return SNUG_OK;
}

static snug_status callback_fill(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                                 snug_error *err) {
    const callback_feed *c = ctx;
    if (dst->type.dtype == c->type.dtype)
        return c->fill(c->ctx, first_row, n_rows, dst, err);
    snug_view exact = *dst;
    SNUG_TRY(snug_type_bytes(&dst->type, &exact.bytes, err));
    if (needs_buffer(c, dst->type.dtype))
        return fill_narrower(c, first_row, n_rows, &exact, err);
    char *end = (char *)dst->data + exact.bytes;
    return fill_through(c, first_row, n_rows, end - (size_t)n_rows * c->row_bytes, &exact, err);
}

static void callback_release(void *ctx) {
    callback_feed *c = ctx;
    if (c->release)
        c->release(c->ctx);
    sn_free(c->engine, SN_MEM_INPUT, c->buffer, c->buffer_bytes);
    sn_free(c->engine, SN_MEM_INPUT, c, sizeof *c);
}

snug_status snug_feed_from_callback(snug_engine *engine, const snug_type *type,
                                    snug_feed_fill_fn fill, void (*release)(void *ctx), void *ctx,
                                    snug_feed **out, snug_error *err) {
    if (!engine || !type || !fill || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_feed_from_callback: engine, type, fill and out must not be NULL");
    SNUG_TRY(sn_type_check(type, false, err));
    void *p;
    SNUG_TRY(sn_alloc(engine, SN_MEM_INPUT, sizeof(callback_feed), &p, err));
    callback_feed *c = p;
    *c = (callback_feed){
        .engine = engine,
        .type = *type,
        .fill = fill,
        .release = release,
        .ctx = ctx,
        .row_bytes = type->rank > 0
                         ? (size_t)sn_type_span(type, 1, type->rank) * snug_dtype_bytes(type->dtype)
                         : 0,
    };
    const snug_status status =
        sn_feed_create(engine, type, c, callback_fill, callback_release, out, err);
    if (status == SNUG_OK)
        (*out)->prepare = callback_prepare;
    else
        sn_free(engine, SN_MEM_INPUT, c, sizeof *c);
    return status;
}
