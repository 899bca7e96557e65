/* bmp.c: BMP pictures without compression: 8 bits of grey, 24 bits of blue, green, red, or 32 with
 * alpha, as tf.io.decode_bmp takes them. Rows are padded to four bytes, the lowest first unless the
 * height is negative. */
#include "codec/picture.h"

#include <string.h>

static int64_t read_32(const unsigned char *p) {
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                     (uint32_t)p[3] << 24);
}

static snug_status bad(const sn_picture_source *s, size_t at, const char *why, snug_error *err) {
    return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                      "cannot decode %s as BMP at byte %zu: %s", s->name, at, why);
}

static void copy_row(const unsigned char *from, int64_t n, int64_t c, unsigned char *to) {
    if (c == 1) {
        memcpy(to, from, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++, from += c, to += c) {
        to[0] = from[2];
        to[1] = from[1];
        to[2] = from[0];
        if (c == 4)
            to[3] = from[3];
    }
}

snug_status sn_bmp_read(snug_engine *e, const sn_picture_source *s, const sn_picture_options *o,
                        snug_datum *out, snug_error *err) {
    if (s->n < 34 || s->bytes[0] != 'B' || s->bytes[1] != 'M')
        return bad(s, s->n < 34 ? s->n : 0, "it has no header of a BMP picture", err);
    const int64_t first = read_32(s->bytes + 10), w = read_32(s->bytes + 18),
                  h = read_32(s->bytes + 22), packed = read_32(s->bytes + 30);
    const int64_t bits = s->bytes[28] | s->bytes[29] << 8, c = bits / 8;
    if ((bits != 8 && bits != 24 && bits != 32) || (packed != 0 && packed != 3))
        return bad(s, 28, "only 8, 24 and 32 bits without compression are decoded", err);
    if (o->channels != 0 && o->channels != c)
        return sn_fail(err, SNUG_E_INVALID, "%s has %lld channels, not %d", s->name, (long long)c,
                       o->channels);
    const int64_t extents[3] = {h < 0 ? -h : h, w, c};
    SNUG_TRY(sn_picture_check(s, extents, err));
    if (first < 34)
        return bad(s, 10, "its header is damaged", err);
    const int64_t row = (w * c + 3) / 4 * 4;
    if (first + row * (extents[0] - 1) + w * c > (int64_t)s->n)
        return bad(s, s->n, "the file is truncated", err);
    SNUG_TRY(sn_picture_ask(e, s, NULL, extents, (size_t)(extents[0] * w * c), err));
    SNUG_TRY(sn_picture_create(e, s, extents, out, err));
    for (int64_t i = 0; i < extents[0]; i++)
        copy_row(s->bytes + first + row * (h < 0 ? i : h - 1 - i), w, c,
                 (unsigned char *)out->data + i * w * c);
    return SNUG_OK;
}
