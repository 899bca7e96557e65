/* ops_text.c: tf.strings on parts of texts: one text at a time through a `make` function that is
 * asked twice: how long is it, then what is it. */
#include "base/real.h"
#include "base/size.h"
#include "codec/data_ops.h"
#include "codec/regex.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a text for a text ------------------------------------------------------------------------ */
/* The bytes of result i; `to` NULL: only how many. */
typedef size_t (*make_text)(void *ctx, int64_t i, char *to);

static snug_status make_texts(sn_data_call *c, const snug_type *shape, make_text make, void *ctx,
                              snug_error *err) {
    int64_t n = 1;
    for (int k = 0; k < shape->rank; k++)
        n *= shape->dims[k];
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        if (!sn_size_add(bytes, make(ctx, i, NULL), &bytes))
            return sn_fail(err, SNUG_E_OVERFLOW, "texts exceed the address space");
    char *room;
    SNUG_TRY(sn_texts_create(c->engine, shape, bytes, &c->out[0], &room, err));
    snug_text *out = c->out[0].data;
    for (int64_t i = 0; i < n; i++) {
        out[i] = (snug_text){room, make(ctx, i, room)};
        room += out[i].bytes;
    }
    c->n_out = 1;
    return SNUG_OK;
}

static size_t put(char *to, const char *from, size_t n) {
    if (to && n > 0)
        memcpy(to, from, n);
    return n;
}

typedef struct {
    const snug_text *in;
    int low, high, change; /* bytes of [low, high] get change added */
} change_case;

static size_t make_case(void *ctx, int64_t i, char *to) {
    const change_case *m = ctx;
    const snug_text *t = &m->in[i];
    for (size_t k = 0; to && k < t->bytes; k++) {
        const int b = (unsigned char)t->data[k];
        to[k] = (char)(b >= m->low && b <= m->high ? b + m->change : b);
    }
    return t->bytes;
}

static snug_status change(sn_data_call *c, change_case m, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    if (sn_data_text(c->op, "encoding").bytes > 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "tf.strings.lower and upper change ASCII letters alone in Snug; leave "
                       "encoding out");
    m.in = sn_texts_of(&c->in[0]);
    return make_texts(c, &c->in[0].type, make_case, &m, err);
}

snug_status sn_data_lower(sn_data_call *c, snug_error *err) {
    return change(c, (change_case){.low = 'A', .high = 'Z', .change = 32}, err);
}

snug_status sn_data_upper(sn_data_call *c, snug_error *err) {
    return change(c, (change_case){.low = 'a', .high = 'z', .change = -32}, err);
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t make_stripped(void *ctx, int64_t i, char *to) {
    const snug_text *t = (const snug_text *)ctx + i;
    size_t first = 0, end = t->bytes;
    while (first < end && is_space(t->data[first]))
        first++;
    while (end > first && is_space(t->data[end - 1]))
        end--;
    return put(to, t->data + first, end - first);
}

snug_status sn_data_strip(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    return make_texts(c, &c->in[0].type, make_stripped, c->in[0].data, err);
}

/* --- parts of texts --------------------------------------------------------------------------- */
static bool starts_character(char c) {
    return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t count_units(const snug_text *t, bool utf8) {
    size_t n = 0;
    for (size_t i = 0; i < t->bytes; i++)
        n += !utf8 || starts_character(t->data[i]);
    return n;
}

/* The byte at which unit n starts. */
static size_t byte_of(const snug_text *t, size_t n, bool utf8) {
    if (!utf8)
        return n < t->bytes ? n : t->bytes;
    size_t i = 0;
    for (; i < t->bytes; i++)
        if (starts_character(t->data[i]) && n-- == 0)
            break;
    return i;
}

static bool in_characters(const snug_data_op *op) {
    const snug_text unit = sn_data_text(op, "unit");
    return unit.bytes == 9 && memcmp(unit.data, "UTF8_CHAR", 9) == 0;
}

snug_status sn_data_length(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    snug_type type = c->in[0].type;
    type.dtype = SNUG_I32;
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    const bool utf8 = in_characters(c->op);
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++)
        ((int32_t *)c->out[0].data)[i] = (int32_t)count_units(&sn_texts_of(&c->in[0])[i], utf8);
    c->n_out = 1;
    return SNUG_OK;
}

typedef struct {
    const snug_text *in;
    int64_t first, n;
    bool utf8;
} piece;

static size_t make_piece(void *ctx, int64_t i, char *to) {
    const piece *m = ctx;
    const snug_text *t = &m->in[i];
    const int64_t units = (int64_t)count_units(t, m->utf8),
                  first = m->first < 0 ? m->first + units : m->first;
    const int64_t end = m->n > units - first ? units : first + m->n;
    const size_t from = byte_of(t, (size_t)first, m->utf8), past = byte_of(t, (size_t)end, m->utf8);
    return put(to, t->data + from, past - from);
}

snug_status sn_data_substr(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    piece m = {sn_texts_of(&c->in[0]), sn_data_int(c->op, "pos"), sn_data_int(c->op, "len"),
               in_characters(c->op)};
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++) {
        const int64_t n = (int64_t)count_units(&m.in[i], m.utf8);
        if (m.first > n || m.first < -n)
            return sn_fail(err, SNUG_E_INVALID,
                           "tf.strings.substr: pos %lld is out of range for text %lld of length "
                           "%lld",
                           (long long)m.first, (long long)i, (long long)n);
    }
    m.n = m.n < 0 ? 0 : m.n;
    return make_texts(c, &c->in[0].type, make_piece, &m, err);
}

/* --- joins ------------------------------------------------------------------------------------ */
typedef struct {
    const snug_datum *in;
    int n;
    snug_text by;
} joined;

static size_t make_joined(void *ctx, int64_t i, char *to) {
    const joined *m = ctx;
    size_t n = 0;
    for (int k = 0; k < m->n; k++) {
        const snug_text *t = &sn_texts_of(&m->in[k])[m->in[k].type.rank == 0 ? 0 : i];
        if (k > 0)
            n += put(to ? to + n : NULL, m->by.data, m->by.bytes);
        n += put(to ? to + n : NULL, t->data, t->bytes);
    }
    return n;
}

snug_status sn_data_join(sn_data_call *c, snug_error *err) {
    snug_type shape = {.dtype = SNUG_OPAQUE, .rank = 0};
    for (int i = 0; i < c->n_in; i++) {
        SNUG_TRY(sn_data_want_text(c, i, err));
        const snug_type *t = &c->in[i].type;
        if (t->rank > 0 && shape.rank > 0 &&
            (t->rank != shape.rank ||
             memcmp(t->dims, shape.dims, (size_t)t->rank * sizeof *t->dims) != 0))
            return sn_fail(err, SNUG_E_SHAPE,
                           "tf.strings.join: part %d has another shape than those before it", i);
        if (t->rank > 0)
            shape = *t;
    }
    joined m = {c->in, c->n_in, sn_data_text(c->op, "separator")};
    return make_texts(c, &shape, make_joined, &m, err);
}

typedef struct {
    const snug_text *in;
    int64_t n, inner; /* texts along the axis, and their distance */
    snug_text by;
} reduced;

static size_t make_reduced(void *ctx, int64_t i, char *to) {
    const reduced *m = ctx;
    const int64_t first = i / m->inner * m->inner * m->n + i % m->inner;
    size_t n = 0;
    for (int64_t k = 0; k < m->n; k++) {
        const snug_text *t = &m->in[first + k * m->inner];
        if (k > 0)
            n += put(to ? to + n : NULL, m->by.data, m->by.bytes);
        n += put(to ? to + n : NULL, t->data, t->bytes);
    }
    return n;
}

/* The shape of reduce_join, and how the axis lies; axis None: all texts are one axis. */
static snug_status reduce_shape(const snug_data_op *op, const snug_type *in, snug_type *out,
                                int *axis, snug_error *err) {
    const bool keep = sn_data_bool(op, "keepdims");
    int64_t given;
    *axis = -1;
    *out = (snug_type){.dtype = SNUG_OPAQUE, .rank = keep ? in->rank : 0};
    for (int i = 0; i < out->rank; i++)
        out->dims[i] = 1;
    if (sn_data_ints(op, "axis", &given, 1) == 0)
        return SNUG_OK;
    const int64_t at = given < 0 ? given + in->rank : given;
    if (at < 0 || at >= in->rank)
        return sn_fail(err, SNUG_E_SHAPE, "tf.strings.reduce_join: axis %lld of %d",
                       (long long)given, in->rank);
    *axis = (int)at;
    *out = *in;
    out->dims[at] = 1;
    if (keep)
        return SNUG_OK;
    out->rank--;
    memmove(out->dims + at, out->dims + at + 1, (size_t)(out->rank - at) * sizeof *out->dims);
    return SNUG_OK;
}

snug_status sn_data_reduce_join(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    const snug_type *in = &c->in[0].type;
    snug_type shape;
    int axis;
    SNUG_TRY(reduce_shape(c->op, in, &shape, &axis, err));
    reduced m = {sn_texts_of(&c->in[0]), sn_datum_count(&c->in[0]), 1,
                 sn_data_text(c->op, "separator")};
    if (axis >= 0) {
        m.n = in->dims[axis];
        for (int i = axis + 1; i < in->rank; i++)
            m.inner *= in->dims[i];
    }
    return make_texts(c, &shape, make_reduced, &m, err);
}

snug_status sn_spec_reduce_join(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                                snug_error *err) {
    int axis;
    out->n = 1;
    out->is_text[0] = 1;
    if (in->type[0].rank >= 0)
        return reduce_shape(op, &in->type[0], &out->type[0], &axis, err);
    out->type[0] = (snug_type){.dtype = SNUG_OPAQUE, .rank = -1};
    return SNUG_OK;
}

/* --- split ------------------------------------------------------------------------------------ */
/* The next word of a text, as Python's str.split gives them. `left`: splits still allowed. False:
 * there are no more. */
static bool next_word(snug_text *rest, const snug_text *by, int64_t left, snug_text *out) {
    if (!rest->data)
        return false;
    const char *at = rest->data, *end = at + rest->bytes;
    const bool spaces = by->bytes == 0;
    while (spaces && at < end && is_space(*at))
        at++;
    if (spaces && at == end)
        return false;
    const char *stop = at;
    if (left == 0)
        stop = NULL;
    else if (spaces)
        while (stop < end && !is_space(*stop))
            stop++;
    else
        stop = memmem(at, (size_t)(end - at), by->data, by->bytes);
    if (spaces && stop == end)
        stop = NULL;
    *out = (snug_text){at, (size_t)((stop ? stop : end) - at)};
    const char *next = stop ? stop + (spaces ? 1 : by->bytes) : NULL;
    *rest = (snug_text){next, next ? (size_t)(end - next) : 0};
    return true;
}

static int64_t split_text(const snug_text *text, const snug_text *by, int64_t most,
                          snug_text *out) {
    snug_text rest = *text, word;
    int64_t n = 0;
    while (next_word(&rest, by, most < 0 ? -1 : most - n, &word)) {
        if (out)
            out[n] = word;
        n++;
    }
    return n;
}

snug_status sn_data_split(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    const snug_text by = sn_data_text(c->op, "sep"), *in = sn_texts_of(&c->in[0]);
    const int64_t most = sn_data_int(c->op, "maxsplit"), n_in = sn_datum_count(&c->in[0]);
    snug_type shape = c->in[0].type;
    int64_t n = 0;
    size_t bytes = 0;
    for (int64_t i = 0; i < n_in; i++) {
        const int64_t here = split_text(&in[i], &by, most, NULL);
        if (i > 0 && here != n)
            return sn_fail(err, SNUG_E_UNSUPPORTED,
                           "tf.strings.split: text 0 has %lld words, text %lld has %lld; Snug has "
                           "no ragged tensors: split one text at a time, in map",
                           (long long)n, (long long)i, (long long)here);
        n = here;
        bytes += in[i].bytes;
    }
    if (shape.rank >= SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_SHAPE, "tf.strings.split: too many axes");
    shape.dims[shape.rank++] = n;
    char *room;
    SNUG_TRY(sn_texts_create(c->engine, &shape, bytes, &c->out[0], &room, err));
    snug_text *out = c->out[0].data;
    for (int64_t i = 0; i < n_in; i++, out += n) {
        (void)split_text(&in[i], &by, most, out);
        for (int64_t k = 0; k < n; k++) {
            put(room, out[k].data, out[k].bytes);
            out[k].data = room;
            room += out[k].bytes;
        }
    }
    c->n_out = 1;
    return SNUG_OK;
}

snug_status sn_spec_split(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                          snug_error *err) {
    (void)op;
    (void)err;
    out->n = 1;
    out->is_text[0] = 1;
    out->type[0] = in->type[0];
    out->type[0].dtype = SNUG_OPAQUE;
    if (in->type[0].rank >= 0 && in->type[0].rank < SNUG_MAX_RANK)
        out->type[0].dims[out->type[0].rank++] = -1;
    return SNUG_OK;
}
