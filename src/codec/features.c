/* features.c: reading the attribute "features", and finding features in the bytes of an Example.
 *
 * Example{features 1}; Features{map feature 1}: entries {key 1, value 2}; Feature is one of
 * bytes_list 1, float_list 2, int64_list 3; each a list `value` 1, numbers packed or one by one.
 * Nothing is copied: an Example is walked once, and every length is checked (protobuf.h). */
#include "codec/features.h"

#include "base/real.h"
#include "base/size.h"

#include <stdlib.h>

/* --- the attribute ---------------------------------------------------------------------------- */
static snug_status bad_line(const char *line, snug_error *err) {
    return sn_fail(err, SNUG_E_INVALID,
                   "features: '%.*s' is not \"KIND DTYPE SHAPE DEFAULT NAME\" (fixed, var or "
                   "sequence; f32, i64 or text; [2,3]; - or values)",
                   (int)strcspn(line, "\n"), line);
}

/* The word at *at, which is set behind it and its space. */
static snug_text next_word(const char **at) {
    const size_t n = strcspn(*at, " \n");
    const snug_text word = {*at, n};
    *at += n;
    *at += **at == ' ';
    return word;
}

static bool is_word(const snug_text *word, const char *text) {
    return word->bytes == strlen(text) && memcmp(word->data, text, word->bytes) == 0;
}

static bool parse_kind(const snug_text *word, sn_feature_kind *out) {
    static const char *const names[] = {"fixed", "var", "sequence"};
    for (int i = 0; i < 3; i++)
        if (is_word(word, names[i])) {
            *out = (sn_feature_kind)i;
            return true;
        }
    return false;
}

static bool parse_feature_dtype(const snug_text *word, snug_dtype *out) {
    *out = is_word(word, "f32") ? SNUG_F32 : is_word(word, "i64") ? SNUG_I64 : SNUG_OPAQUE;
    return *out != SNUG_OPAQUE || is_word(word, "text");
}

static bool parse_shape(const snug_text *word, sn_feature *f) {
    const char *at = word->data, *end = at + word->bytes;
    f->shape = (snug_type){.dtype = f->dtype, .rank = 0};
    f->count = 1;
    if (at == end || *at++ != '[')
        return false;
    while (at < end && *at != ']') {
        char *behind;
        const long long v = strtoll(at, &behind, 10);
        if (behind == at || v < 0 || f->shape.rank >= SNUG_MAX_RANK - 1 ||
            !sn_i64_mul(f->count, v, &f->count))
            return false;
        f->shape.dims[f->shape.rank++] = v;
        at = behind + (*behind == ',');
    }
    return at + 1 == end && f->count < (int64_t)1 << 40;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "x6162": bytes; *at is set behind them. */
static snug_status parse_hex(sn_zone *z, const char **at, snug_text *out, snug_error *err) {
    const char *digits = *at + 1;
    size_t n = 0;
    while (hex_digit(digits[n]) >= 0)
        n++;
    void *bytes;
    SNUG_TRY(sn_zone_alloc(z, n / 2 + 1, &bytes, err));
    for (size_t i = 0; i < n / 2; i++)
        ((char *)bytes)[i] = (char)(hex_digit(digits[2 * i]) * 16 + hex_digit(digits[2 * i + 1]));
    *out = (snug_text){bytes, n / 2};
    *at = digits + n;
    return **at == ',' || **at == ' ' || **at == 0 ? SNUG_OK : bad_line(*at, err);
}

static snug_status parse_value(sn_zone *z, sn_feature *f, void *values, const char **at,
                               snug_error *err) {
    const int64_t i = f->n_default;
    if (f->dtype == SNUG_OPAQUE)
        return **at == 'x' ? parse_hex(z, at, (snug_text *)values + i, err) : bad_line(*at, err);
    double v;
    char *end;
    if (f->dtype == SNUG_I64) {
        ((int64_t *)values)[i] = strtoll(*at, &end, 10);
        if (end == *at)
            return bad_line(*at, err);
        *at = end;
        return SNUG_OK;
    }
    if (!sn_real_parse(*at, at, &v))
        return bad_line(*at, err);
    ((float *)values)[i] = (float)v;
    return SNUG_OK;
}

static snug_status parse_default(sn_zone *z, const snug_text *word, sn_feature *f,
                                 snug_error *err) {
    if (is_word(word, "-"))
        return SNUG_OK;
    size_t n = 1;
    for (size_t i = 0; i < word->bytes; i++)
        n += word->data[i] == ',';
    void *values;
    SNUG_TRY(sn_zone_alloc(z, n * sizeof(snug_text), &values, err));
    for (const char *at = word->data; at < word->data + word->bytes; at += *at == ',') {
        SNUG_TRY(parse_value(z, f, values, &at, err));
        f->n_default++;
        if (*at != ',' && at < word->data + word->bytes)
            return bad_line(word->data, err);
    }
    f->values = values;
    if (f->n_default != 1 && f->n_default != f->count)
        return sn_fail(err, SNUG_E_INVALID,
                       "features: %lld default values for a shape of %lld elements; give one or "
                       "all",
                       (long long)f->n_default, (long long)f->count);
    return SNUG_OK;
}

static snug_status parse_line(sn_zone *z, const char *line, sn_feature *f, snug_error *err) {
    const char *at = line;
    const snug_text kind = next_word(&at), dtype = next_word(&at), shape = next_word(&at),
                    value = next_word(&at);
    f->name = at;
    f->name_bytes = strcspn(at, "\n");
    if (!parse_kind(&kind, &f->kind) || !parse_feature_dtype(&dtype, &f->dtype) ||
        !parse_shape(&shape, f) || value.bytes == 0)
        return bad_line(line, err);
    if (f->kind == SN_FEATURE_SEQUENCE && f->count == 0)
        return bad_line(line, err);
    return parse_default(z, &value, f, err);
}

snug_status sn_prepare_features(snug_data_op *op, snug_error *err) {
    const snug_text text = sn_data_text(op, "features");
    if (!text.data || text.bytes == 0 || memchr(text.data, 0, text.bytes))
        return sn_fail(err, SNUG_E_INVALID, "parse_example: features are missing");
    int n = 1;
    for (size_t i = 0; i + 1 < text.bytes; i++)
        n += text.data[i] == '\n';
    void *memory, *list;
    SNUG_TRY(sn_zone_alloc(op->zone, sizeof(sn_features), &memory, err));
    SNUG_TRY(sn_zone_alloc(op->zone, (size_t)n * sizeof(sn_feature), &list, err));
    sn_features *f = memory;
    *f = (sn_features){.n = n, .feature = list};
    const char *line = text.data;
    for (int i = 0; i < n; i++) {
        SNUG_TRY(parse_line(op->zone, line, &f->feature[i], err));
        f->n_out += f->feature[i].kind == SN_FEATURE_VAR ? 3 : 1;
        line += strcspn(line, "\n") + 1;
    }
    if (f->n_out > SNUG_MAX_PARTS)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "the features give %d parts; an element holds %d",
                       f->n_out, SNUG_MAX_PARTS);
    op->prepared = f;
    return SNUG_OK;
}

/* --- an Example ------------------------------------------------------------------------------- */
/* Values of a list, or -1: damaged. */
static int64_t count_values(const sn_found *found) {
    sn_proto p = found->list;
    sn_proto_field f;
    int64_t n = 0;
    while (sn_proto_next(&p, &f)) {
        if (f.number != 1)
            continue;
        const bool packed = f.wire == SN_WIRE_BYTES && found->dtype != SNUG_OPAQUE;
        if (packed && found->dtype == SNUG_F32) {
            if ((f.bytes.end - f.bytes.at) % 4 != 0)
                return -1;
            n += (f.bytes.end - f.bytes.at) / 4;
        } else if (packed) {
            uint64_t v;
            while (f.bytes.at < f.bytes.end) {
                if (!sn_proto_varint(&f.bytes, &v))
                    return -1;
                n++;
            }
        } else {
            const uint32_t wire = found->dtype == SNUG_OPAQUE ? SN_WIRE_BYTES
                                  : found->dtype == SNUG_F32  ? SN_WIRE_32
                                                              : SN_WIRE_VARINT;
            if (f.wire != wire)
                return -1;
            n++;
        }
    }
    return p.at == p.end ? n : -1;
}

static void copy_packed(const sn_found *found, sn_proto bytes, char **to) {
    if (found->dtype == SNUG_F32) {
        const size_t n = (size_t)(bytes.end - bytes.at);
        memcpy(*to, bytes.at, n);
        *to += n;
        return;
    }
    uint64_t v;
    while (bytes.at < bytes.end && sn_proto_varint(&bytes, &v)) {
        memcpy(*to, &v, sizeof v);
        *to += sizeof v;
    }
}

void sn_found_copy(const sn_found *found, void *to) {
    sn_proto p = found->list;
    sn_proto_field f;
    char *at = to;
    while (sn_proto_next(&p, &f)) {
        if (f.number != 1)
            continue;
        if (found->dtype == SNUG_OPAQUE) {
            const snug_text t = {(const char *)f.bytes.at, (size_t)(f.bytes.end - f.bytes.at)};
            memcpy(at, &t, sizeof t);
            at += sizeof t;
        } else if (f.wire == SN_WIRE_BYTES) {
            copy_packed(found, f.bytes, &at);
        } else {
            const size_t n = found->dtype == SNUG_F32 ? 4 : 8;
            memcpy(at, &f.value, n); /* little-endian, as the file */
            at += n;
        }
    }
}

/* The feature wanted under a name; equal names may be wanted twice, so that it goes on from i. */
static int wanted(const sn_features *f, const sn_proto *key, int i) {
    const size_t n = (size_t)(key->end - key->at);
    for (; i < f->n; i++)
        if (f->feature[i].name_bytes == n && memcmp(f->feature[i].name, key->at, n) == 0)
            return i;
    return -1;
}

/* One of the three lists of a Feature; none: a feature without values. */
static bool find_list(sn_proto value, sn_found *out) {
    static const snug_dtype dtypes[] = {SNUG_OPAQUE, SNUG_F32, SNUG_I64};
    sn_proto_field f;
    *out = (sn_found){.there = false};
    while (sn_proto_next(&value, &f))
        if (f.number >= 1 && f.number <= 3 && f.wire == SN_WIRE_BYTES)
            *out = (sn_found){.there = true, .dtype = dtypes[f.number - 1], .list = f.bytes};
    if (value.at != value.end)
        return false;
    out->n = out->there ? count_values(out) : 0;
    return out->n >= 0;
}

static bool take_entry(const sn_features *f, sn_proto entry, sn_found *found) {
    sn_proto key = {entry.at, entry.at}, value = key;
    sn_proto_field field;
    while (sn_proto_next(&entry, &field))
        if (field.wire == SN_WIRE_BYTES) {
            key = field.number == 1 ? field.bytes : key;
            value = field.number == 2 ? field.bytes : value;
        }
    if (entry.at != entry.end)
        return false;
    for (int i = wanted(f, &key, 0); i >= 0; i = wanted(f, &key, i + 1))
        if (!find_list(value, &found[i]))
            return false;
    return true;
}

snug_status sn_features_find(const sn_features *f, const snug_text *example, sn_found *found,
                             snug_error *err) {
    const unsigned char *first = (const unsigned char *)example->data;
    sn_proto p = {first, first + example->bytes};
    sn_proto_field field, entry;
    memset(found, 0, (size_t)f->n * sizeof *found);
    bool whole = true;
    while (whole && sn_proto_next(&p, &field)) {
        if (field.number != 1 || field.wire != SN_WIRE_BYTES)
            continue;
        sn_proto features = field.bytes;
        while (whole && sn_proto_next(&features, &entry))
            if (entry.number == 1 && entry.wire == SN_WIRE_BYTES)
                whole = take_entry(f, entry.bytes, found);
        whole = whole && features.at == features.end;
    }
    if (whole && p.at == p.end)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_FORMAT,
                   "a text of %zu bytes is no Example: damaged near byte %zu; was it written as "
                   "one, and is the file's compression stated?",
                   example->bytes, (size_t)(p.at - first));
}
