/* packed.c: elements as bytes (packed.h).
 *
 *     u32 parts, then for each:
 *         u8 dtype, u8 rank, u8 is_text, u8 0, i64 dims[rank], u64 bytes, data
 *     data of texts: u64 length of each, then their bytes
 *
 * In this machine's byte order: such files are read by the process or the machine that wrote them.
 *
 * Invariants:
 * 1. Reading trusts no number: each is checked against the bytes that are left. */
#include "data/packed.h"

#include "base/size.h"

#include <string.h>

static size_t head_bytes(const snug_datum *d) {
    return 4 + (size_t)d->type.rank * sizeof(int64_t) + sizeof(uint64_t);
}

/* Of a part's data as they are written. */
static size_t data_bytes(const snug_datum *d) {
    if (!d->is_text)
        return d->bytes;
    const int64_t n = sn_type_count(&d->type);
    size_t bytes = (size_t)n * sizeof(uint64_t);
    for (int64_t i = 0; i < n; i++)
        bytes += ((const snug_text *)d->data)[i].bytes;
    return bytes;
}

snug_status sn_packed_bytes(const snug_element *e, size_t *bytes, snug_error *err) {
    size_t n = sizeof(uint32_t);
    bool fits = true;
    for (int i = 0; i < e->n; i++)
        fits = fits && sn_size_add(n, head_bytes(&e->part[i]), &n) &&
               sn_size_add(n, data_bytes(&e->part[i]), &n);
    if (!fits)
        return sn_fail(err, SNUG_E_OVERFLOW, "an element exceeds the address space");
    *bytes = n;
    return SNUG_OK;
}

static unsigned char *put(unsigned char *to, const void *from, size_t n) {
    if (n > 0)
        memcpy(to, from, n);
    return to + n;
}

static unsigned char *put_texts(unsigned char *to, const snug_datum *d) {
    const snug_text *texts = d->data;
    const int64_t n = sn_type_count(&d->type);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t length = texts[i].bytes;
        to = put(to, &length, sizeof length);
    }
    for (int64_t i = 0; i < n; i++)
        to = put(to, texts[i].data, texts[i].bytes);
    return to;
}

void sn_packed_write(const snug_element *e, unsigned char *to) {
    const uint32_t n = (uint32_t)e->n;
    to = put(to, &n, sizeof n);
    for (int i = 0; i < e->n; i++) {
        const snug_datum *d = &e->part[i];
        const unsigned char head[4] = {(unsigned char)d->type.dtype, (unsigned char)d->type.rank,
                                       d->is_text != 0, 0};
        const uint64_t bytes = data_bytes(d);
        to = put(to, head, sizeof head);
        to = put(to, d->type.dims, (size_t)d->type.rank * sizeof *d->type.dims);
        to = put(to, &bytes, sizeof bytes);
        to = d->is_text ? put_texts(to, d) : put(to, d->data, d->bytes);
    }
}

/* --- back ------------------------------------------------------------------------------------- */
typedef struct {
    const unsigned char *at;
    size_t left;
} reader;

static bool get(reader *r, void *to, size_t n) {
    if (n > r->left)
        return false;
    if (n > 0)
        memcpy(to, r->at, n);
    r->at += n;
    r->left -= n;
    return true;
}

/* Lengths first: their sum must be what is there. */
static snug_status read_texts(snug_engine *e, const snug_type *type, reader part, snug_datum *out,
                              snug_error *err) {
    snug_type as_bytes = *type;
    size_t n = 0, all = 0;
    void *block;
    as_bytes.dtype = SNUG_U8;
    SNUG_TRY(snug_type_bytes(&as_bytes, &n, err));
    if (n > part.left / sizeof(uint64_t))
        return sn_fail(err, SNUG_E_FORMAT, "a stored element has %zu texts in %zu bytes", n,
                       part.left);
    SNUG_TRY(sn_alloc(e, SN_MEM_INPUT, n * sizeof(snug_text), &block, err));
    snug_text *texts = block;
    reader lengths = {part.at, n * sizeof(uint64_t)};
    const char *at = (const char *)part.at + lengths.left;
    bool fits = true;
    for (size_t i = 0; i < n && fits; i++) {
        uint64_t length = 0;
        get(&lengths, &length, sizeof length);
        texts[i] = (snug_text){at + all, length};
        fits = sn_size_add(all, length, &all) && all <= part.left - n * sizeof length;
    }
    const snug_status status =
        fits ? snug_datum_texts(e, type, texts, out, err)
             : sn_fail(err, SNUG_E_FORMAT, "texts of a stored element exceed its bytes");
    sn_free(e, SN_MEM_INPUT, texts, n * sizeof *texts);
    return status;
}

static snug_status read_part(snug_engine *e, reader *r, snug_datum *out, snug_error *err) {
    unsigned char head[4] = {0};
    uint64_t bytes = 0;
    snug_type type = {0};
    bool there = get(r, head, sizeof head) && head[1] <= SNUG_MAX_RANK;
    type.dtype = (snug_dtype)head[0];
    type.rank = there ? head[1] : 0;
    there = there && get(r, type.dims, (size_t)type.rank * sizeof *type.dims) &&
            get(r, &bytes, sizeof bytes) && bytes <= r->left;
    if (!there)
        return sn_fail(err, SNUG_E_FORMAT, "a stored element is cut short");
    SNUG_TRY(sn_type_check(&type, false, err));
    const reader part = {r->at, bytes};
    if (head[2]) {
        SNUG_TRY(read_texts(e, &type, part, out, err));
    } else {
        size_t need = 0;
        SNUG_TRY(snug_type_bytes(&type, &need, err));
        if (need != bytes)
            return sn_fail(err, SNUG_E_FORMAT, "a stored element has %zu bytes of %zu",
                           (size_t)bytes, need);
        SNUG_TRY(snug_datum_create(e, &type, out, err));
        memcpy(out->data, part.at, need);
    }
    r->at += bytes;
    r->left -= bytes;
    return SNUG_OK;
}

snug_status sn_packed_read(snug_engine *engine, const unsigned char *from, size_t n,
                           snug_element *out, snug_error *err) {
    reader r = {from, n};
    uint32_t parts = 0;
    snug_status status = SNUG_OK;
    out->n = 0;
    if (!get(&r, &parts, sizeof parts) || parts > SNUG_MAX_PARTS)
        return sn_fail(err, SNUG_E_FORMAT, "a stored element has %u parts", parts);
    for (uint32_t i = 0; i < parts && status == SNUG_OK; i++) {
        status = read_part(engine, &r, &out->part[i], err);
        out->n += status == SNUG_OK;
    }
    if (status == SNUG_OK && r.left > 0)
        status = sn_fail(err, SNUG_E_FORMAT, "a stored element has %zu bytes too many", r.left);
    if (status != SNUG_OK)
        snug_element_drop(out);
    return status;
}
