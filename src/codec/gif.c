/* gif.c: GIF pictures as RGB: frames laid over one another as tf.io.decode_gif gives them, or the
 * first alone.
 *
 * A frame's pixels are codes of growing length (LZW). A code stands for the string of an earlier
 * one and one more byte, so that a table of (earlier code, byte) is all the memory there is. Every
 * code and every position is checked: damaged files give a message, and a frame that ends early
 * keeps what stood there before. */
#include "codec/picture.h"

#include <string.h>

#define MAX_FRAMES 4096

typedef struct {
    const sn_picture_source *s;
    size_t at;
    unsigned char colours[2][256][3]; /* of all frames, of one */
    int64_t w, h;
    int transparent; /* of the next frame; -1: none */
} reader;

typedef struct {
    int64_t x, y, w, h;
    bool interlaced;
    unsigned char (*colours)[3];
    unsigned char *canvas; /* RGB of the whole picture */
    int64_t row, column, pass;
} frame;

static snug_status bad(const reader *r, const char *why, snug_error *err) {
    return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                      "cannot decode %s as GIF at byte %zu: %s", r->s->name,
                      r->at < r->s->n ? r->at : r->s->n, why);
}

static bool has(const reader *r, size_t n) {
    return r->s->n - r->at >= n;
}

static int64_t word_at(const reader *r, size_t at) {
    return r->s->bytes[at] | r->s->bytes[at + 1] << 8;
}

/* A table of 2^(bits + 1) colours, if the flags say that there is one. */
static bool read_colours(reader *r, int which, int flags) {
    const size_t n = (size_t)2 << (flags & 7);
    if (!(flags & 0x80))
        return true;
    if (!has(r, 3 * n))
        return false;
    memset(r->colours[which], 0, sizeof r->colours[which]);
    memcpy(r->colours[which], r->s->bytes + r->at, 3 * n);
    r->at += 3 * n;
    return true;
}

/* Behind blocks of at most 255 bytes, up to the empty one. */
static bool skip_blocks(reader *r) {
    while (has(r, 1)) {
        const size_t n = r->s->bytes[r->at++];
        if (n == 0)
            return true;
        if (!has(r, n))
            return false;
        r->at += n;
    }
    return false;
}

/* --- pixels ----------------------------------------------------------------------------------- */
/* Rows of an interlaced frame come in four passes. */
static void next_row(frame *f) {
    static const int64_t first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    f->column = 0;
    if (!f->interlaced) {
        f->row++;
        return;
    }
    f->row += step[f->pass];
    while (f->row >= f->h && f->pass < 3)
        f->row = first[++f->pass];
}

static void put_pixel(const reader *r, frame *f, int index) {
    const int64_t x = f->x + f->column, y = f->y + f->row;
    if (f->row < f->h && x < r->w && y < r->h && index != r->transparent)
        memcpy(f->canvas + 3 * (y * r->w + x), f->colours[index], 3);
    if (++f->column >= f->w)
        next_row(f);
}

typedef struct {
    uint16_t before[4096];
    unsigned char last[4096], first[4096];
    int clear, n, bits; /* codes from clear on are special; n so far */
} lzw;

static void reset(lzw *z, int size) {
    z->clear = 1 << size;
    z->n = z->clear + 2;
    z->bits = size + 1;
    for (int i = 0; i < z->clear; i++) {
        z->first[i] = z->last[i] = (unsigned char)i;
        z->before[i] = 0;
    }
}

static void add_code(lzw *z, int before, unsigned char byte) {
    if (z->n >= 4096)
        return;
    z->before[z->n] = (uint16_t)before;
    z->last[z->n] = byte;
    z->first[z->n] = z->first[before];
    z->n++;
    if (z->n == 1 << z->bits && z->bits < 12)
        z->bits++;
}

/* The string of a code, which is made from its end. */
static void put_string(const reader *r, frame *f, const lzw *z, int code) {
    unsigned char stack[4096];
    int n = 0;
    for (; code >= z->clear && n < 4095; code = z->before[code])
        stack[n++] = z->last[code];
    stack[n++] = z->last[code];
    while (n > 0)
        put_pixel(r, f, stack[--n]);
}

/* Bits of the blocks, lowest first; -1: there are no more. */
typedef struct {
    uint32_t bits;
    int n;
    size_t left; /* of the block */
} bit_reader;

static int next_code(reader *r, bit_reader *b, int n) {
    while (b->n < n) {
        if (b->left == 0) {
            if (!has(r, 1) || r->s->bytes[r->at] == 0)
                return -1;
            b->left = r->s->bytes[r->at++];
        }
        if (!has(r, 1))
            return -1;
        b->bits |= (uint32_t)r->s->bytes[r->at++] << b->n;
        b->n += 8;
        b->left--;
    }
    const int code = (int)(b->bits & ((1u << n) - 1));
    b->bits >>= n;
    b->n -= n;
    return code;
}

static snug_status read_pixels(reader *r, frame *f, lzw *z, snug_error *err) {
    if (!has(r, 1) || r->s->bytes[r->at] < 1 || r->s->bytes[r->at] > 8)
        return bad(r, "codes of an impossible length", err);
    const int size = r->s->bytes[r->at++];
    bit_reader b = {0};
    int before = -1;
    reset(z, size);
    for (int code; (code = next_code(r, &b, z->bits)) >= 0 && code != z->clear + 1;) {
        if (code == z->clear) {
            reset(z, size);
            before = -1;
            continue;
        }
        if (code > z->n || (before < 0 && code >= z->clear) || (code == z->n && z->n >= 4096))
            return bad(r, "a code that stands for nothing", err);
        if (before >= 0)
            add_code(z, before, z->first[code == z->n ? before : code]);
        if (code >= z->n)
            return bad(r, "a code that stands for nothing", err);
        put_string(r, f, z, code);
        before = code;
    }
    if (!has(r, 1))
        return bad(r, "the file is truncated", err);
    r->at += b.left < r->s->n - r->at ? b.left : r->s->n - r->at;
    return skip_blocks(r) ? SNUG_OK : bad(r, "the file is truncated", err);
}

/* --- frames ----------------------------------------------------------------------------------- */
/* Up to the next frame; false at the end. Remembers the transparent colour. */
static bool find_frame(reader *r) {
    r->transparent = -1;
    while (has(r, 1)) {
        const int kind = r->s->bytes[r->at++];
        if (kind == 0x2c)
            return has(r, 9);
        if (kind != 0x21 || !has(r, 1))
            return false;
        const int label = r->s->bytes[r->at++];
        if (label == 0xf9 && has(r, 6) && r->s->bytes[r->at + 1] & 1)
            r->transparent = r->s->bytes[r->at + 4];
        if (!skip_blocks(r))
            return false;
    }
    return false;
}

static snug_status read_frame(reader *r, unsigned char *canvas, lzw *z, snug_error *err) {
    const unsigned char *b = r->s->bytes + r->at;
    const int flags = b[8];
    frame f = {.x = word_at(r, r->at), .y = word_at(r, r->at + 2), .canvas = canvas};
    f.w = word_at(r, r->at + 4);
    f.h = word_at(r, r->at + 6);
    f.interlaced = flags & 0x40;
    r->at += 9;
    if (!read_colours(r, 1, flags))
        return bad(r, "the file is truncated", err);
    f.colours = r->colours[flags & 0x80 ? 1 : 0];
    if (f.w == 0 || f.h == 0)
        return bad(r, "a frame without pixels", err);
    return read_pixels(r, &f, z, err);
}

static snug_status count_frames(const reader *start, int64_t *n, snug_error *err) {
    reader r = *start;
    for (*n = 0; find_frame(&r); ++*n) {
        const int flags = r.s->bytes[r.at + 8];
        r.at += 9;
        if (*n >= MAX_FRAMES || !read_colours(&r, 1, flags) || !has(&r, 1))
            return bad(&r, "the file is truncated, or has too many frames", err);
        r.at++;
        if (!skip_blocks(&r))
            return bad(&r, "the file is truncated", err);
    }
    return *n > 0 ? SNUG_OK : bad(&r, "it has no frame", err);
}

static snug_status read_frames(reader *r, int64_t n, unsigned char *to, lzw *z, snug_error *err) {
    const size_t size = (size_t)(r->w * r->h * 3);
    memset(to, 0, size);
    for (int64_t i = 0; i < n; i++, to += size) {
        if (i > 0)
            memcpy(to, to - size, size);
        if (!find_frame(r))
            return bad(r, "a frame is missing", err);
        SNUG_TRY(read_frame(r, to, z, err));
    }
    return SNUG_OK;
}

static snug_status create_frames(snug_engine *e, const reader *r, int64_t n, bool all,
                                 snug_datum *out, snug_error *err) {
    const int64_t extents[3] = {r->h, r->w, 3};
    SNUG_TRY(sn_picture_check(r->s, extents, err));
    if (r->h * r->w > SN_MAX_PIXELS / n)
        return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                          "%s: %lld frames of %lld x %lld pixels exceed %lld", r->s->name,
                          (long long)n, (long long)r->w, (long long)r->h, (long long)SN_MAX_PIXELS);
    SNUG_TRY(sn_picture_ask(e, r->s, n > 1 ? "several frames" : NULL, extents,
                            (size_t)(n * r->h * r->w) * 3, err));
    snug_type type = {.dtype = SNUG_U8, .rank = 4, .dims = {n, r->h, r->w, 3}};
    if (!all)
        type = (snug_type){.dtype = SNUG_U8, .rank = 3, .dims = {r->h, r->w, 3}};
    return snug_datum_create(e, &type, out, err);
}

snug_status sn_gif_read(snug_engine *e, const sn_picture_source *s, const sn_picture_options *o,
                        snug_datum *out, snug_error *err) {
    reader r = {.s = s, .at = 13};
    int64_t n = 0;
    if (s->n < 13 || sn_picture_guess(s->bytes, s->n) != SN_PICTURE_GIF)
        return sn_fail_by(err, SNUG_E_FORMAT, SNUG_CAUSE_MEDIA,
                          "%s is no GIF picture: it does not start with GIF8", s->name);
    r.w = word_at(&r, 6);
    r.h = word_at(&r, 8);
    if (!read_colours(&r, 0, s->bytes[10]))
        return bad(&r, "the file is truncated", err);
    SNUG_TRY(count_frames(&r, &n, err));
    n = o->all_frames ? n : 1;
    snug_datum picture, table;
    SNUG_TRY(sn_scratch(e, sizeof(lzw), &table, err));
    snug_status status = create_frames(e, &r, n, o->all_frames, &picture, err);
    if (status == SNUG_OK) {
        status = read_frames(&r, n, picture.data, table.data, err);
        if (status == SNUG_OK)
            *out = picture;
        else
            snug_datum_drop(&picture);
    }
    snug_datum_drop(&table);
    return status;
}
