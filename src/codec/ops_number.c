/* ops_number.c: texts that become numbers and numbers that become texts: to_number, as_string,
 * decode_raw, buckets of hashes, crosses of features. */
#include "base/real.h"
#include "base/size.h"
#include "codec/data_ops.h"
#include "codec/fingerprint.h"
#include "codec/number.h"
#include "tensor/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one number ------------------------------------------------------------------------------- */
static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool parse_integer(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    *out = v;
    return end != text && *end == 0 && errno == 0;
}

bool sn_number_parse(const snug_text *t, snug_dtype dtype, void *to) {
    char text[128];
    const char *at = t->data, *end = at + t->bytes;
    while (at < end && is_space(*at))
        at++;
    while (end > at && is_space(end[-1]))
        end--;
    const size_t n = (size_t)(end - at);
    if (n == 0 || n >= sizeof text)
        return false;
    memcpy(text, at, n);
    text[n] = 0;
    int64_t whole;
    double v;
    const char *stop;
    if (dtype == SNUG_I32 || dtype == SNUG_I64) {
        if (!parse_integer(text, &whole) || (dtype == SNUG_I32 && whole != (int32_t)whole))
            return false;
        if (dtype == SNUG_I64)
            memcpy(to, &whole, 8);
        else
            memcpy(to, &(int32_t){(int32_t)whole}, 4);
        return true;
    }
    const char *number = text + (text[0] == '+');
    if (!sn_real_parse(number, &stop, &v) || stop != text + n)
        return false;
    if (dtype == SNUG_F64)
        memcpy(to, &v, 8);
    else
        memcpy(to, &(float){(float)v}, 4);
    return true;
}

/* --- rows ------------------------------------------------------------------------------------- */
snug_status sn_data_to_number(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    snug_type type = c->in[0].type;
    SNUG_TRY(sn_data_dtype(c->op, "out_type", &type.dtype, err));
    if (type.dtype != SNUG_F32 && type.dtype != SNUG_F64 && type.dtype != SNUG_I32 &&
        type.dtype != SNUG_I64)
        return sn_fail(err, SNUG_E_INVALID,
                       "tf.strings.to_number gives float32, float64, int32 or int64");
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    const size_t size = snug_dtype_bytes(type.dtype);
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++) {
        const snug_text *t = &sn_texts_of(&c->in[0])[i];
        if (sn_number_parse(t, type.dtype, (char *)c->out[0].data + (size_t)i * size))
            continue;
        snug_datum_drop(&c->out[0]);
        return sn_fail(err, SNUG_E_DATA, "tf.strings.to_number: '%.*s' is no %s",
                       (int)(t->bytes < 64 ? t->bytes : 64), t->data, snug_dtype_name(type.dtype));
    }
    c->n_out = 1;
    return SNUG_OK;
}

/* The dtype of the attribute, the shape of the input. */
static snug_status spec_dtype(const snug_data_op *op, const char *attr, const snug_spec *in,
                              snug_spec *out, snug_error *err) {
    out->n = 1;
    out->type[0] = in->type[0];
    SNUG_TRY(sn_data_dtype(op, attr, &out->type[0].dtype, err));
    return SNUG_OK;
}

snug_status sn_spec_to_number(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                              snug_error *err) {
    return spec_dtype(op, "out_type", in, out, err);
}

/* --- as_string -------------------------------------------------------------------------------- */
typedef struct {
    int precision, width;
    bool scientific, shortest;
    char fill;
} number_style;

/* Numbers come without a width; it is filled up here, as printf would. */
static size_t pad(char *text, size_t n, size_t size, const number_style *s) {
    const size_t width = s->width < 0 ? 0 : (size_t)s->width;
    if (width <= n || width >= size)
        return n;
    const size_t more = width - n;
    if (s->fill == '-') {
        memset(text + n, ' ', more);
        return width;
    }
    const size_t sign = s->fill == '0' && (text[0] == '-' || text[0] == '+');
    memmove(text + sign + more, text + sign, n - sign);
    memset(text + sign, s->fill == '0' ? '0' : ' ', more);
    return width;
}

static size_t print_real(double v, const number_style *s, char *text, size_t size) {
    const char kind = s->scientific ? 'e' : s->shortest ? 'g' : 'f';
    const int precision = s->precision < 0 ? 6 : s->precision;
    const int n = sn_print(text, size,
                           kind == 'e'   ? "%.*e"
                           : kind == 'g' ? "%.*g"
                                         : "%.*f",
                           precision, sn_shown(v));
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

static size_t print_number(const snug_datum *d, int64_t i, const number_style *s, char *text,
                           size_t size) {
    const void *at = (const char *)d->data + (size_t)i * snug_dtype_bytes(d->type.dtype);
    double v = 0;
    int64_t whole = 0;
    size_t n;
    if (d->type.dtype == SNUG_BOOL)
        n = (size_t)snprintf(text, size, "%s", *(const char *)at ? "true" : "false");
    else if (sn_dtype_is_float(d->type.dtype))
        n = sn_convert(d->type.dtype, at, SNUG_F64, &v, 1, NULL) == SNUG_OK
                ? print_real(v, s, text, size)
                : 0;
    else
        n = sn_convert(d->type.dtype, at, SNUG_I64, &whole, 1, NULL) == SNUG_OK
                ? (size_t)snprintf(text, size, "%" PRId64, whole)
                : 0;
    return pad(text, n, size, s);
}

snug_status sn_data_as_string(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_number(c, 0, err));
    const snug_text fill = sn_data_text(c->op, "fill");
    const number_style s = {(int)sn_data_int(c->op, "precision"), (int)sn_data_int(c->op, "width"),
                            sn_data_bool(c->op, "scientific"), sn_data_bool(c->op, "shortest"),
                            fill.bytes > 0 ? fill.data[0] : ' '};
    char text[512];
    if (s.precision > 100 || s.width > 400)
        return sn_fail(err, SNUG_E_INVALID, "tf.strings.as_string: at most 100 digits, width 400");
    const int64_t n = sn_datum_count(&c->in[0]);
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        bytes += print_number(&c->in[0], i, &s, text, sizeof text);
    char *room;
    SNUG_TRY(sn_texts_create(c->engine, &c->in[0].type, bytes, &c->out[0], &room, err));
    for (int64_t i = 0; i < n; i++) {
        const size_t here = print_number(&c->in[0], i, &s, text, sizeof text);
        memcpy(room, text, here);
        ((snug_text *)c->out[0].data)[i] = (snug_text){room, here};
        room += here;
    }
    c->n_out = 1;
    return SNUG_OK;
}

/* --- decode_raw ------------------------------------------------------------------------------- */
static void swap_bytes(char *at, size_t n, size_t size) {
    for (size_t i = 0; i < n; i++, at += size)
        for (size_t k = 0; k < size / 2; k++) {
            const char b = at[k];
            at[k] = at[size - 1 - k];
            at[size - 1 - k] = b;
        }
}

snug_status sn_data_decode_raw(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    snug_type type = c->in[0].type;
    const snug_text *in = sn_texts_of(&c->in[0]);
    SNUG_TRY(sn_data_dtype(c->op, "out_type", &type.dtype, err));
    const size_t size = snug_dtype_bytes(type.dtype), n = (size_t)sn_datum_count(&c->in[0]);
    const int64_t fixed = sn_data_int(c->op, "fixed_length");
    const size_t bytes = fixed > 0 ? (size_t)fixed : n > 0 ? in[0].bytes : 0;
    if (type.rank >= SNUG_MAX_RANK || size == 0 || bytes % size != 0)
        return sn_fail(err, SNUG_E_DATA, "tf.io.decode_raw: %zu bytes are no whole number of %s",
                       bytes, size == 0 ? "texts" : snug_dtype_name(type.dtype));
    for (size_t i = 1; i < n; i++)
        if (fixed <= 0 && in[i].bytes != bytes)
            return sn_fail(err, SNUG_E_DATA,
                           "tf.io.decode_raw: text 0 has %zu bytes, text %zu has %zu", bytes, i,
                           in[i].bytes);
    type.dims[type.rank++] = (int64_t)(bytes / size);
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    char *to = c->out[0].data;
    for (size_t i = 0; i < n; i++, to += bytes) {
        const size_t there = in[i].bytes < bytes ? in[i].bytes : bytes;
        memcpy(to, in[i].data, there);
        memset(to + there, 0, bytes - there);
        if (!sn_data_bool(c->op, "little_endian"))
            swap_bytes(to, bytes / size, size);
    }
    c->n_out = 1;
    return SNUG_OK;
}

snug_status sn_spec_decode_raw(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                               snug_error *err) {
    SNUG_TRY(spec_dtype(op, "out_type", in, out, err));
    const int64_t fixed = sn_data_int(op, "fixed_length");
    const size_t size = snug_dtype_bytes(out->type[0].dtype);
    if (out->type[0].rank >= 0 && out->type[0].rank < SNUG_MAX_RANK)
        out->type[0].dims[out->type[0].rank++] = fixed > 0 && size > 0 ? fixed / (int64_t)size : -1;
    return SNUG_OK;
}

/* --- hashes ----------------------------------------------------------------------------------- */
/* Buckets by the fast hash, or with a key by the strong one. */
static snug_status hash_texts(sn_data_call *c, const uint64_t *key, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    const int64_t buckets = sn_data_int(c->op, "num_buckets");
    snug_type type = c->in[0].type;
    type.dtype = SNUG_I64;
    if (buckets < 1)
        return sn_fail(err, SNUG_E_INVALID, "tf.strings.to_hash_bucket_%s: %lld buckets",
                       key ? "strong" : "fast", (long long)buckets);
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++) {
        const snug_text *t = &sn_texts_of(&c->in[0])[i];
        const uint64_t hash = key ? sn_fingerprint_keyed(key, t->data, t->bytes)
                                  : sn_fingerprint64(t->data, t->bytes);
        ((int64_t *)c->out[0].data)[i] = (int64_t)(hash % (uint64_t)buckets);
    }
    c->n_out = 1;
    return SNUG_OK;
}

snug_status sn_data_hash_bucket(sn_data_call *c, snug_error *err) {
    return hash_texts(c, NULL, err);
}

snug_status sn_data_hash_strong(sn_data_call *c, snug_error *err) {
    int64_t given[2];
    if (sn_data_ints(c->op, "key", given, 2) != 2)
        return sn_fail(err, SNUG_E_INVALID,
                       "tf.strings.to_hash_bucket_strong: a key has two numbers");
    return hash_texts(c, (const uint64_t[2]){(uint64_t)given[0], (uint64_t)given[1]}, err);
}

/* What an element of a column is in a cross: a whole number itself, a text its hash. */
static uint64_t feature(const snug_datum *column, int64_t i) {
    if (column->type.dtype == SNUG_I64)
        return (uint64_t)((const int64_t *)column->data)[i];
    const snug_text *t = &sn_texts_of(column)[i];
    return sn_fingerprint64(t->data, t->bytes);
}

snug_status sn_data_hash_cross(sn_data_call *c, snug_error *err) {
    static const uint64_t key = 0xDECAFCAFFE; /* TensorFlow's own */
    const int64_t buckets = sn_data_int(c->op, "num_buckets");
    snug_type type = c->in[0].type;
    if (buckets < 1)
        return sn_fail(err, SNUG_E_INVALID, "HashedCrossing: %lld bins", (long long)buckets);
    for (int k = 0; k < c->n_in; k++) {
        const snug_type *t = &c->in[k].type;
        if (t->rank != type.rank ||
            memcmp(t->dims, type.dims, (size_t)t->rank * sizeof *t->dims) != 0)
            return sn_fail(err, SNUG_E_SHAPE, "HashedCrossing: input %d has another shape", k);
        if (t->dtype != SNUG_I64)
            SNUG_TRY(sn_data_want_text(c, k, err));
    }
    type.dtype = SNUG_I64;
    SNUG_TRY(snug_datum_create(c->engine, &type, &c->out[0], err));
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++) {
        uint64_t hash = key;
        for (int k = 0; k < c->n_in; k++)
            hash = sn_fingerprint_pair(hash, feature(&c->in[k], i));
        ((int64_t *)c->out[0].data)[i] = (int64_t)(hash % (uint64_t)buckets);
    }
    c->n_out = 1;
    return SNUG_OK;
}
