/* ops_tensor.c: tf.io.serialize_tensor and parse_tensor: numbers and texts as TensorProto.
 *
 * TensorProto{dtype 1, tensor_shape 2, tensor_content 4, float_val 5, double_val 6, int_val 7,
 * string_val 8, int64_val 10, bool_val 11}; TensorShapeProto{dim 2{size 1}}. serialize_tensor
 * writes tensor_content: the elements, or for texts their lengths and then their bytes. Others
 * write lists of values, of which the last stands for all that are missing. */
#include "base/size.h"
#include "codec/data_ops.h"
#include "codec/protobuf.h"
#include "tensor/feed.h"

#include <string.h>

/* DataType of TensorFlow. */
static const struct {
    int number;
    snug_dtype dtype;
} kinds[] = {{1, SNUG_F32}, {2, SNUG_F64},   {3, SNUG_I32},   {4, SNUG_U8},   {6, SNUG_I8},
             {9, SNUG_I64}, {10, SNUG_BOOL}, {14, SNUG_BF16}, {19, SNUG_F16}, {7, SNUG_OPAQUE},
             {5, SNUG_I16}, {17, SNUG_U16},  {22, SNUG_U32}};

static int number_of(snug_dtype dtype) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].dtype == dtype)
            return kinds[i].number;
    return 0;
}

/* --- writing ---------------------------------------------------------------------------------- */
static size_t varint_bytes(uint64_t v) {
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static char *put_varint(char *to, uint64_t v) {
    for (; v >= 0x80; v >>= 7)
        *to++ = (char)(v | 0x80);
    *to++ = (char)v;
    return to;
}

/* A size of 0 is not written. */
static size_t dim_bytes(int64_t dim) {
    return dim > 0 ? 1 + varint_bytes((uint64_t)dim) : 0;
}

static size_t shape_bytes(const snug_type *t) {
    size_t n = 0;
    for (int i = 0; i < t->rank; i++)
        n += 1 + varint_bytes(dim_bytes(t->dims[i])) + dim_bytes(t->dims[i]);
    return n;
}

static char *put_shape(char *to, const snug_type *t) {
    *to++ = 2 << 3 | SN_WIRE_BYTES;
    to = put_varint(to, shape_bytes(t));
    for (int i = 0; i < t->rank; i++) {
        *to++ = 2 << 3 | SN_WIRE_BYTES;
        to = put_varint(to, dim_bytes(t->dims[i]));
        if (t->dims[i] > 0) {
            *to++ = 1 << 3 | SN_WIRE_VARINT;
            to = put_varint(to, (uint64_t)t->dims[i]);
        }
    }
    return to;
}

/* Numbers are one field of bytes, texts a field each. */
static size_t content_bytes(const snug_datum *d) {
    const size_t all = (size_t)sn_datum_count(d) * snug_dtype_bytes(d->type.dtype);
    size_t n = 0;
    if (!d->is_text)
        return all > 0 ? 1 + varint_bytes(all) + all : 0;
    for (int64_t i = 0; i < sn_datum_count(d); i++)
        n += 1 + varint_bytes(sn_texts_of(d)[i].bytes) + sn_texts_of(d)[i].bytes;
    return n;
}

static char *put_bytes(char *to, int field, const void *bytes, size_t n) {
    *to++ = (char)(field << 3 | SN_WIRE_BYTES);
    to = put_varint(to, n);
    if (n > 0)
        memcpy(to, bytes, n);
    return to + n;
}

static char *put_content(char *to, const snug_datum *d) {
    if (!d->is_text)
        return put_bytes(to, 4, d->data,
                         (size_t)sn_datum_count(d) * snug_dtype_bytes(d->type.dtype));
    for (int64_t i = 0; i < sn_datum_count(d); i++)
        to = put_bytes(to, 8, sn_texts_of(d)[i].data, sn_texts_of(d)[i].bytes);
    return to;
}

snug_status sn_data_serialize_tensor(sn_data_call *c, snug_error *err) {
    const snug_datum *d = &c->in[0];
    const snug_type scalar = {.dtype = SNUG_OPAQUE, .rank = 0};
    const size_t content = content_bytes(d), shape = shape_bytes(&d->type);
    const int kind = number_of(d->is_text ? SNUG_OPAQUE : d->type.dtype);
    char *room;
    SNUG_TRY(
        sn_texts_create(c->engine, &scalar,
                        2 + 1 + varint_bytes(shape) + shape + 1 + varint_bytes(content) + content,
                        &c->out[0], &room, err));
    char *to = room;
    *to++ = 1 << 3 | SN_WIRE_VARINT;
    *to++ = (char)kind;
    to = put_shape(to, &d->type);
    if (content > 0)
        to = put_content(to, d);
    *(snug_text *)c->out[0].data = (snug_text){room, (size_t)(to - room)};
    c->n_out = 1;
    return SNUG_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */
typedef struct {
    snug_type type;
    int64_t count;
    sn_proto all;     /* the whole message, for lists of values */
    sn_proto content; /* at NULL: none */
} tensor_proto;

static bool read_dim(sn_proto p, int64_t *out) {
    sn_proto_field f;
    *out = 0;
    while (sn_proto_next(&p, &f))
        if (f.number == 1 && f.wire == SN_WIRE_VARINT)
            *out = (int64_t)f.value;
    return p.at == p.end && *out >= 0;
}

static bool read_shape(sn_proto p, tensor_proto *t) {
    sn_proto_field f;
    t->type.rank = 0;
    t->count = 1;
    while (sn_proto_next(&p, &f))
        if (f.number == 2 && f.wire == SN_WIRE_BYTES) {
            int64_t dim;
            if (t->type.rank >= SNUG_MAX_RANK || !read_dim(f.bytes, &dim) ||
                !sn_i64_mul(t->count, dim, &t->count))
                return false;
            t->type.dims[t->type.rank++] = dim;
        }
    return p.at == p.end;
}

static bool read_head(const snug_text *text, tensor_proto *t) {
    const unsigned char *first = (const unsigned char *)text->data;
    sn_proto p = {first, first + text->bytes};
    sn_proto_field f;
    bool whole = true, known = false;
    *t = (tensor_proto){.count = 1, .all = p};
    while (whole && sn_proto_next(&p, &f)) {
        for (size_t i = 0; f.number == 1 && i < sizeof kinds / sizeof *kinds; i++)
            if (f.wire == SN_WIRE_VARINT && (uint64_t)kinds[i].number == f.value) {
                t->type.dtype = kinds[i].dtype;
                known = true;
            }
        if (f.number == 2 && f.wire == SN_WIRE_BYTES)
            whole = read_shape(f.bytes, t);
        if (f.number == 4 && f.wire == SN_WIRE_BYTES)
            t->content = f.bytes;
    }
    return whole && known && p.at == p.end;
}

/* The next value of the lists, of any of which numbers come as VARINT, 32 or 64 bits. */
typedef struct {
    sn_proto p, packed;
    uint32_t number, wire; /* of the packed ones */
} value_reader;

static bool next_value(value_reader *r, uint32_t *number, uint64_t *value, sn_proto *bytes) {
    sn_proto_field f;
    for (;;) {
        *number = r->number;
        if (r->packed.at < r->packed.end) {
            const size_t n = r->number == 5 ? 4 : 8;
            return r->number == 5 || r->number == 6 ? sn_proto_fixed(&r->packed, n, value)
                                                    : sn_proto_varint(&r->packed, value);
        }
        if (!sn_proto_next(&r->p, &f))
            return false;
        *number = r->number = f.number;
        *value = f.value;
        *bytes = f.bytes;
        const bool list = (f.number >= 5 && f.number <= 8) || f.number == 10 || f.number == 11;
        if (list && f.wire == SN_WIRE_BYTES && f.number != 8)
            r->packed = f.bytes;
        else if (list)
            return true;
    }
}

static snug_status put_value(snug_dtype dtype, uint32_t number, uint64_t value, void *to) {
    float f;
    double d;
    const uint32_t low = (uint32_t)value;
    const int64_t whole = (int64_t)value;
    memcpy(&f, &low, sizeof f);
    memcpy(&d, &value, sizeof d);
    if (number == 5)
        return sn_convert(SNUG_F32, &f, dtype, to, 1, NULL);
    if (number == 6)
        return sn_convert(SNUG_F64, &d, dtype, to, 1, NULL);
    if (dtype == SNUG_BOOL) {
        *(unsigned char *)to = value != 0;
        return SNUG_OK;
    }
    return sn_convert(SNUG_I64, &whole, dtype, to, 1, NULL);
}

/* Values of lists; the last one stands for those missing. */
static bool read_numbers(const tensor_proto *t, char *to) {
    const size_t size = snug_dtype_bytes(t->type.dtype);
    value_reader r = {.p = t->all};
    uint32_t number;
    uint64_t value = 0;
    sn_proto bytes = {NULL, NULL};
    int64_t i = 0;
    while (i < t->count && next_value(&r, &number, &value, &bytes)) {
        if (put_value(t->type.dtype, number, value, to + (size_t)i * size) != SNUG_OK)
            return false;
        i++;
    }
    for (; i > 0 && i < t->count; i++)
        memcpy(to + (size_t)i * size, to + (size_t)(i - 1) * size, size);
    if (i == 0)
        memset(to, 0, (size_t)t->count * size);
    return true;
}

static snug_status parse_numbers(sn_data_call *c, const tensor_proto *t, snug_error *err) {
    size_t bytes;
    SNUG_TRY(snug_type_bytes(&t->type, &bytes, err));
    const bool content = t->content.at != NULL;
    if (content && (size_t)(t->content.end - t->content.at) != bytes)
        return sn_fail(err, SNUG_E_FORMAT,
                       "tf.io.parse_tensor: %zu bytes of elements are there, the shape has %zu",
                       (size_t)(t->content.end - t->content.at), bytes);
    if (!content && bytes / 64 > (size_t)(t->all.end - t->all.at) + (1u << 20))
        return sn_fail(err, SNUG_E_FORMAT, "tf.io.parse_tensor: %zu bytes stand for %zu",
                       (size_t)(t->all.end - t->all.at), bytes);
    SNUG_TRY(snug_datum_create(c->engine, &t->type, &c->out[0], err));
    if (content)
        memcpy(c->out[0].data, t->content.at, bytes);
    else if (!read_numbers(t, c->out[0].data)) {
        snug_datum_drop(&c->out[0]);
        return sn_fail(err, SNUG_E_FORMAT, "tf.io.parse_tensor: a value does not fit its dtype");
    }
    c->n_out = 1;
    return SNUG_OK;
}

/* Texts point into the message; false: their lengths do not add up. */
static bool find_texts(const tensor_proto *t, snug_text *texts) {
    if (!t->content.at) {
        value_reader r = {.p = t->all};
        uint32_t number;
        uint64_t value;
        sn_proto bytes = {NULL, NULL};
        int64_t i = 0;
        while (i < t->count && next_value(&r, &number, &value, &bytes))
            if (number == 8)
                texts[i++] = (snug_text){(const char *)bytes.at, (size_t)(bytes.end - bytes.at)};
        for (; i < t->count; i++)
            texts[i] = i > 0 ? texts[i - 1] : (snug_text){"", 0};
        return true;
    }
    sn_proto p = t->content;
    uint64_t n;
    for (int64_t i = 0; i < t->count; i++) {
        if (!sn_proto_varint(&p, &n))
            return false;
        texts[i].bytes = n;
    }
    for (int64_t i = 0; i < t->count; i++) {
        if (texts[i].bytes > (size_t)(p.end - p.at))
            return false;
        texts[i].data = (const char *)p.at;
        p.at += texts[i].bytes;
    }
    return p.at == p.end;
}

static snug_status parse_texts(sn_data_call *c, const tensor_proto *t, snug_error *err) {
    size_t bytes;
    snug_datum found;
    if ((uint64_t)t->count > (uint64_t)(t->all.end - t->all.at) + 1 ||
        !sn_size_mul((size_t)t->count, sizeof(snug_text), &bytes))
        return sn_fail(err, SNUG_E_FORMAT, "tf.io.parse_tensor: %lld texts in %zu bytes",
                       (long long)t->count, (size_t)(t->all.end - t->all.at));
    SNUG_TRY(sn_scratch(c->engine, bytes, &found, err));
    snug_status status =
        find_texts(t, found.data)
            ? snug_datum_texts(c->engine, &t->type, found.data, &c->out[0], err)
            : sn_fail(err, SNUG_E_FORMAT, "tf.io.parse_tensor: lengths of texts do not add up");
    snug_datum_drop(&found);
    c->n_out = status == SNUG_OK;
    return status;
}

snug_status sn_data_parse_tensor(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    snug_dtype wanted;
    tensor_proto t;
    SNUG_TRY(sn_data_dtype(c->op, "out_type", &wanted, err));
    const snug_text *text = sn_texts_of(&c->in[0]);
    if (sn_datum_count(&c->in[0]) != 1 || !read_head(text, &t))
        return sn_fail(err, SNUG_E_FORMAT,
                       "tf.io.parse_tensor: a text of %zu bytes is no tensor of a known dtype",
                       sn_datum_count(&c->in[0]) > 0 ? text->bytes : 0);
    if (t.type.dtype != wanted)
        return sn_fail(err, SNUG_E_DATA, "tf.io.parse_tensor: it holds %s, not %s",
                       t.type.dtype == SNUG_OPAQUE ? "text" : snug_dtype_name(t.type.dtype),
                       wanted == SNUG_OPAQUE ? "text" : snug_dtype_name(wanted));
    return wanted == SNUG_OPAQUE ? parse_texts(c, &t, err) : parse_numbers(c, &t, err);
}

snug_status sn_spec_parse_tensor(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                                 snug_error *err) {
    (void)in;
    out->n = 1;
    out->type[0].rank = -1;
    SNUG_TRY(sn_data_dtype(op, "out_type", &out->type[0].dtype, err));
    out->is_text[0] = out->type[0].dtype == SNUG_OPAQUE;
    return SNUG_OK;
}
