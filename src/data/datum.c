/* datum.c: parts of elements: counted bytes from the engine's pool, the caller's, or a slice of
 * either.
 *
 *     [ keeper, 64 bytes | data ... ]                 numbers
 *     [ keeper | snug_text, ... | bytes of the texts ] texts
 *
 * Invariants:
 * 1. A keeper's bytes live while its count is above 0; the last to drop it gives them back, on
 *    whatever thread.
 * 2. A datum that fails to be made is not written. */
#include "data/stage.h"

#include "base/size.h"
#include "memory/pool.h"

#include <inttypes.h>
#include <string.h>

struct snug_keeper {
    _Atomic uint32_t holds;
    snug_engine *engine;
    size_t taken;               /* from the pool, this header with it */
    void (*release)(void *ctx); /* of borrowed bytes */
    void *ctx;
    const void *own; /* borrowed bytes that are the engine's: they count; NULL: none are */
};

enum { KEEPER_BYTES = 64 };
_Static_assert(sizeof(struct snug_keeper) <= KEEPER_BYTES, "data stay aligned behind a keeper");

static snug_status create_keeper(snug_engine *e, size_t bytes, struct snug_keeper **out,
                                 snug_error *err) {
    size_t all, taken;
    void *block;
    if (!sn_size_add(bytes, KEEPER_BYTES, &all))
        return sn_fail(err, SNUG_E_OVERFLOW, "an element of %zu bytes exceeds the address space",
                       bytes);
    SNUG_TRY(sn_pool_take(e, all, &block, &taken, err));
    struct snug_keeper *k = block;
    *k = (struct snug_keeper){.engine = e, .taken = taken};
    atomic_store_explicit(&k->holds, 1, memory_order_relaxed);
    *out = k;
    return SNUG_OK;
}

snug_status snug_datum_create(snug_engine *engine, const snug_type *type, snug_datum *out,
                              snug_error *err) {
    if (!engine || !type || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_datum_create: an argument is NULL");
    size_t bytes = 0;
    struct snug_keeper *k;
    SNUG_TRY(sn_type_check(type, false, err));
    SNUG_TRY(snug_type_bytes(type, &bytes, err));
    SNUG_TRY(create_keeper(engine, bytes, &k, err));
    *out = (snug_datum){.type = *type, .data = (char *)k + KEEPER_BYTES, .bytes = bytes, .keep = k};
    return SNUG_OK;
}

static snug_status sum_texts(const snug_text *texts, size_t n, size_t *bytes, snug_error *err) {
    bool fits = sn_size_mul(n, sizeof *texts, bytes);
    for (size_t i = 0; fits && i < n; i++)
        fits = sn_size_add(*bytes, texts[i].bytes, bytes);
    if (fits)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_OVERFLOW, "%zu texts exceed the address space", n);
}

snug_status snug_datum_texts(snug_engine *engine, const snug_type *shape, const snug_text *texts,
                             snug_datum *out, snug_error *err) {
    SNUG_NEEDS(err, texts);
    if (!engine || !shape || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_datum_texts: an argument is NULL");
    snug_type as_bytes = *shape;
    size_t n = 0, bytes = 0;
    struct snug_keeper *k;
    as_bytes.dtype = SNUG_U8;
    SNUG_TRY(sn_type_check(&as_bytes, false, err));
    SNUG_TRY(snug_type_bytes(&as_bytes, &n, err));
    SNUG_TRY(sum_texts(texts, n, &bytes, err));
    SNUG_TRY(create_keeper(engine, bytes, &k, err));
    snug_text *to = (snug_text *)(void *)((char *)k + KEEPER_BYTES);
    char *at = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        to[i] = (snug_text){at, texts[i].bytes};
        if (texts[i].bytes > 0)
            memcpy(at, texts[i].data, texts[i].bytes);
        at += texts[i].bytes;
    }
    *out = (snug_datum){.type = *shape, .is_text = 1, .data = to, .bytes = bytes, .keep = k};
    out->type.dtype = SNUG_OPAQUE;
    return SNUG_OK;
}

snug_status snug_datum_borrow(snug_engine *engine, const snug_view *view,
                              void (*release)(void *ctx), void *ctx, snug_datum *out,
                              snug_error *err) {
    if (!engine || !view || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_datum_borrow: an argument is NULL");
    size_t bytes = 0;
    struct snug_keeper *k;
    SNUG_TRY(sn_type_check(&view->type, false, err));
    SNUG_TRY(snug_type_bytes(&view->type, &bytes, err));
    if (bytes > view->bytes || (!view->data && bytes > 0))
        return sn_fail(err, SNUG_E_SHAPE, "%zu bytes are lent for an array of %zu", view->bytes,
                       bytes);
    SNUG_TRY(create_keeper(engine, 0, &k, err));
    k->release = release;
    k->ctx = ctx;
    *out = (snug_datum){.type = view->type, .data = view->data, .bytes = bytes, .keep = k};
    return SNUG_OK;
}

void snug_datum_hold(const snug_datum *datum) {
    if (!datum)
        return;
    if (datum->keep)
        atomic_fetch_add_explicit(&datum->keep->holds, 1, memory_order_relaxed);
}

void snug_datum_drop(snug_datum *datum) {
    if (!datum)
        return;
    struct snug_keeper *k = datum->keep;
    datum->keep = NULL;
    datum->data = NULL;
    if (!k || atomic_fetch_sub_explicit(&k->holds, 1, memory_order_acq_rel) > 1)
        return;
    if (k->release)
        k->release(k->ctx);
    sn_pool_give(k->engine, k, k->taken);
}

void snug_element_drop(snug_element *element) {
    if (!element)
        return;
    for (int i = 0; i < element->n; i++)
        snug_datum_drop(&element->part[i]);
    element->n = 0;
}

void sn_element_move(snug_element *to, snug_element *from) {
    to->n = from->n;
    to->index = from->index;
    memcpy(to->part, from->part, (size_t)from->n * sizeof *to->part);
    from->n = 0;
}

snug_datum sn_datum_row(const snug_datum *d, int64_t i) {
    snug_datum row = *d;
    row.type.rank--;
    memmove(row.type.dims, d->type.dims + 1, (size_t)row.type.rank * sizeof *row.type.dims);
    const int64_t n = sn_type_count(&row.type);
    if (d->is_text) {
        row.data = (snug_text *)d->data + i * n;
        row.bytes = (size_t)n * sizeof(snug_text);
        for (int64_t k = 0; k < n; k++)
            row.bytes += ((snug_text *)row.data)[k].bytes;
    } else {
        row.bytes = (size_t)n * snug_dtype_bytes(row.type.dtype);
        row.data = (char *)d->data + (size_t)i * row.bytes;
    }
    snug_datum_hold(&row);
    return row;
}

void sn_datum_is_own(snug_datum *borrowed) {
    borrowed->keep->own = borrowed->data;
}

int64_t sn_element_bytes(const snug_element *e) {
    int64_t sum = 0;
    for (int i = 0; i < e->n; i++) {
        const struct snug_keeper *k = e->part[i].keep;
        const char *own = !k ? NULL : k->release ? k->own : (const char *)k + KEEPER_BYTES;
        if (own && (const char *)e->part[i].data == own)
            sum += (int64_t)e->part[i].bytes;
    }
    return sum;
}

/* --- targets ---------------------------------------------------------------------------------- */
static snug_status fail_shape(const sn_target *to, int part, const snug_datum *d, snug_error *err) {
    char a[192], b[192];
    return sn_fail(err, SNUG_E_SHAPE,
                   "part %d of an element is %s%s, but the batch has rows of %s; bring elements to "
                   "one shape, or use padded_batch",
                   part, d->is_text ? "text " : "", snug_type_print(&d->type, a, sizeof a),
                   snug_type_print(&to->part[part].type, b, sizeof b));
}

snug_status sn_target_put(const sn_target *to, int part, int64_t i, const snug_datum *d,
                          snug_error *err) {
    const snug_type *type = &to->part[part].type;
    char *at = to->part[part].data + (size_t)i * to->part[part].row_bytes;
    if (d->is_text || !sn_dims_equal(type, &d->type))
        return fail_shape(to, part, d, err);
    if (d->type.dtype == type->dtype) {
        memcpy(at, d->data, d->bytes);
        return SNUG_OK;
    }
    return sn_convert(d->type.dtype, d->data, type->dtype, at, (size_t)sn_type_count(type), err);
}

snug_status sn_target_put_all(const sn_target *to, int64_t i, const snug_element *e,
                              snug_error *err) {
    if (e->n != to->n)
        return sn_fail(err, SNUG_E_SHAPE, "an element has %d parts, but the batch has %d", e->n,
                       to->n);
    for (int p = 0; p < e->n; p++)
        if (to->part[p].data)
            SNUG_TRY(sn_target_put(to, p, i, &e->part[p], err));
    return SNUG_OK;
}

/* --- specs ------------------------------------------------------------------------------------ */
bool sn_spec_is_fixed(const snug_spec *s) {
    bool fixed = true;
    for (int i = 0; i < s->n; i++)
        fixed = fixed && !s->is_text[i] && s->type[i].rank >= 0 && sn_type_known(&s->type[i]);
    return fixed;
}

snug_status sn_spec_merge(snug_spec *s, const snug_spec *other, const char *who, snug_error *err) {
    if (s->n != other->n)
        return sn_fail(err, SNUG_E_SHAPE, "%s: elements of %d parts and of %d", who, s->n,
                       other->n);
    for (int i = 0; i < s->n; i++) {
        snug_type *a = &s->type[i];
        const snug_type *b = &other->type[i];
        if (s->is_text[i] != other->is_text[i] || (!s->is_text[i] && a->dtype != b->dtype))
            return sn_fail(err, SNUG_E_SHAPE, "%s: part %d is %s in one and %s in another", who, i,
                           s->is_text[i] ? "text" : snug_dtype_name(a->dtype),
                           other->is_text[i] ? "text" : snug_dtype_name(b->dtype));
        if (a->rank != b->rank)
            a->rank = -1;
        for (int k = 0; k < a->rank; k++)
            if (a->dims[k] != b->dims[k])
                a->dims[k] = -1;
    }
    return SNUG_OK;
}

static bool fits_spec(const snug_spec *s, int i, const snug_datum *d) {
    const snug_type *t = &s->type[i];
    bool fits = !s->is_text[i] == !d->is_text && (d->is_text || t->dtype == d->type.dtype);
    fits = fits && (t->rank < 0 || t->rank == d->type.rank);
    for (int k = 0; fits && k < t->rank; k++)
        fits = t->dims[k] < 0 || t->dims[k] == d->type.dims[k];
    return fits;
}

snug_status sn_spec_check(const snug_spec *s, const snug_element *e, const char *who,
                          snug_error *err) {
    char a[192], b[192];
    if (s->n != e->n)
        return sn_fail(err, SNUG_E_SHAPE, "%s gave element %" PRId64 " with %d parts, not %d", who,
                       e->index, e->n, s->n);
    for (int i = 0; i < s->n; i++)
        if (!fits_spec(s, i, &e->part[i]))
            return sn_fail(err, SNUG_E_SHAPE,
                           "%s gave element %" PRId64 " with %s%s as part %d; %s%s was promised",
                           who, e->index, e->part[i].is_text ? "text " : "",
                           snug_type_print(&e->part[i].type, a, sizeof a), i,
                           s->is_text[i] ? "text " : "",
                           s->type[i].rank < 0 ? snug_dtype_name(s->type[i].dtype)
                                               : snug_type_print(&s->type[i], b, sizeof b));
    return SNUG_OK;
}
