/* example_write.c: the bytes of an Example (features.c says how they lie): every message is
 * measured first, because its length stands before it. */
#include <snug/data_files.h>

#include "base/size.h"
#include "codec/data_ops.h"

#include <string.h>

static size_t varint_bytes(uint64_t v) {
    size_t n = 1;
    while (v >= 0x80) {
        v >>= 7;
        n++;
    }
    return n;
}

static char *put_varint(char *to, uint64_t v) {
    while (v >= 0x80) {
        *to++ = (char)(v | 0x80);
        v >>= 7;
    }
    *to++ = (char)v;
    return to;
}

/* A field of bytes: its tag, its length, itself. All tags here are below 128. */
static size_t field_bytes(size_t n) {
    return 1 + varint_bytes(n) + n;
}

static char *put_head(char *to, int field, size_t n) {
    *to++ = (char)(field << 3 | 2);
    return put_varint(to, n);
}

/* The values, packed in one field or a field each; of a list without values there is none. */
static size_t values_bytes(const snug_feature *f) {
    size_t n = 0;
    if (f->dtype == SNUG_F32)
        n = 4 * (size_t)f->n;
    for (int64_t i = 0; i < f->n; i++)
        if (f->dtype == SNUG_I64)
            n += varint_bytes((uint64_t)((const int64_t *)f->values)[i]);
        else if (f->dtype == SNUG_OPAQUE)
            n += field_bytes(((const snug_text *)f->values)[i].bytes);
    return n;
}

static size_t list_bytes(const snug_feature *f) {
    const size_t n = values_bytes(f);
    return f->dtype == SNUG_OPAQUE || f->n == 0 ? n : field_bytes(n);
}

static char *put_list(char *to, const snug_feature *f) {
    if (f->dtype == SNUG_OPAQUE) {
        for (int64_t i = 0; i < f->n; i++) {
            const snug_text *t = &((const snug_text *)f->values)[i];
            to = put_head(to, 1, t->bytes);
            if (t->bytes > 0)
                memcpy(to, t->data, t->bytes);
            to += t->bytes;
        }
        return to;
    }
    if (f->n > 0)
        to = put_head(to, 1, values_bytes(f));
    if (f->dtype == SNUG_F32 && f->n > 0)
        memcpy(to, f->values, 4 * (size_t)f->n);
    if (f->dtype == SNUG_F32)
        return to + 4 * (size_t)f->n;
    for (int64_t i = 0; i < f->n; i++)
        to = put_varint(to, (uint64_t)((const int64_t *)f->values)[i]);
    return to;
}

/* {key 1, value 2 {list}} */
static size_t entry_bytes(const snug_feature *f) {
    return field_bytes(strlen(f->name)) + field_bytes(field_bytes(list_bytes(f)));
}

static char *put_entry(char *to, const snug_feature *f) {
    const size_t n = strlen(f->name), list = list_bytes(f);
    const int kind = f->dtype == SNUG_OPAQUE ? 1 : f->dtype == SNUG_F32 ? 2 : 3;
    to = put_head(to, 1, entry_bytes(f));
    to = put_head(to, 1, n);
    memcpy(to, f->name, n);
    to = put_head(to + n, 2, field_bytes(list));
    return put_list(put_head(to, kind, list), f);
}

snug_status snug_example_encode(snug_engine *engine, const snug_feature *features, int n,
                                snug_datum *out, snug_error *err) {
    SNUG_NEEDS(err, (features || n == 0) && n >= 0 && out);
    const snug_type scalar = {.dtype = SNUG_OPAQUE, .rank = 0};
    size_t all = 0;
    for (int i = 0; i < n; i++) {
        const snug_feature *f = &features[i];
        if (!f->name || f->n < 0 || (f->n > 0 && !f->values) ||
            (f->dtype != SNUG_F32 && f->dtype != SNUG_I64 && f->dtype != SNUG_OPAQUE))
            return sn_fail(err, SNUG_E_INVALID,
                           "feature %d: an Example holds float32, int64 and texts", i);
        if (!sn_size_add(all, field_bytes(entry_bytes(f)), &all))
            return sn_fail(err, SNUG_E_OVERFLOW, "an Example exceeds the address space");
    }
    char *room;
    snug_datum d;
    SNUG_TRY(sn_texts_create(engine, &scalar, field_bytes(all), &d, &room, err));
    char *to = put_head(room, 1, all);
    for (int i = 0; i < n; i++)
        to = put_entry(to, &features[i]);
    *(snug_text *)d.data = (snug_text){room, (size_t)(to - room)};
    *out = d;
    return SNUG_OK;
}
