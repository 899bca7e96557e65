/* csv.c: tf.io.decode_csv: one part per column. The columns' types and defaults are the attribute
 * record_defaults, a line each: "DTYPE DEFAULT" with DEFAULT "-" where a value is required (texts:
 * x and hexadecimal bytes). Fields follow RFC 4180: quoted ones may hold delimiters, line ends and,
 * doubled, quotes. */
#include "base/size.h"
#include "codec/data_ops.h"
#include "codec/number.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    snug_dtype dtype; /* F32, F64, I32, I64, OPAQUE */
    bool required;
    int64_t place; /* of the field in a record */
    union {
        char bytes[8];
        snug_text text;
    } value; /* where the field is empty */
} column;

typedef struct {
    int n;
    column column[SNUG_MAX_PARTS];
    char delimiter;
    bool quotes;
    snug_text missing; /* that stands for an empty field */
} csv_options;

/* --- the attributes --------------------------------------------------------------------------- */
static bool parse_kind(const snug_text *word, snug_dtype *out) {
    static const struct {
        const char *name;
        snug_dtype dtype;
    } known[] = {{"f32", SNUG_F32},
                 {"f64", SNUG_F64},
                 {"i32", SNUG_I32},
                 {"i64", SNUG_I64},
                 {"text", SNUG_OPAQUE}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == word->bytes &&
            memcmp(known[i].name, word->data, word->bytes) == 0) {
            *out = known[i].dtype;
            return true;
        }
    return false;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

static snug_status parse_text(sn_zone *z, const snug_text *word, snug_text *out, snug_error *err) {
    void *memory;
    const size_t n = word->bytes / 2;
    SNUG_TRY(sn_zone_alloc(z, n + 1, &memory, err));
    char *to = memory;
    for (size_t i = 0; i < n; i++)
        to[i] = (char)(hex_digit(word->data[1 + 2 * i]) * 16 + hex_digit(word->data[2 + 2 * i]));
    *out = (snug_text){to, word->bytes > 0 ? (word->bytes - 1) / 2 : 0};
    return SNUG_OK;
}

static snug_status parse_column(sn_zone *z, const char *line, column *c, snug_error *err) {
    const size_t n = strcspn(line, "\n"), space = strcspn(line, " \n");
    const snug_text kind = {line, space};
    const snug_text value = {line + space + (space < n), n - space - (space < n)};
    bool fits = parse_kind(&kind, &c->dtype) && value.bytes > 0;
    c->required = fits && value.bytes == 1 && *value.data == '-';
    if (fits && !c->required && c->dtype == SNUG_OPAQUE && *value.data == 'x')
        return parse_text(z, &value, &c->value.text, err);
    if (fits && !c->required)
        fits = c->dtype != SNUG_OPAQUE && sn_number_parse(&value, c->dtype, c->value.bytes);
    return fits ? SNUG_OK
                : sn_fail(err, SNUG_E_INVALID, "record_defaults: '%.*s' is not \"DTYPE DEFAULT\"",
                          (int)n, line);
}

static snug_status parse_places(const snug_data_op *op, csv_options *o, snug_error *err) {
    int64_t places[SNUG_MAX_PARTS];
    const int n = sn_data_ints(op, "select_cols", places, SNUG_MAX_PARTS);
    for (int i = 0; i < o->n; i++)
        o->column[i].place = n > 0 ? places[i < n ? i : 0] : i;
    for (int i = 0; n > 0 && i < o->n; i++)
        if (n != o->n || places[i] < 0 || (i > 0 && places[i] <= places[i - 1]))
            return sn_fail(err, SNUG_E_INVALID,
                           "select_cols: %d places for %d columns; they must grow", n, o->n);
    return SNUG_OK;
}

snug_status sn_prepare_csv(snug_data_op *op, snug_error *err) {
    const snug_text lines = sn_data_text(op, "record_defaults"),
                    by = sn_data_text(op, "field_delim");
    void *memory;
    SNUG_TRY(sn_zone_alloc(op->zone, sizeof(csv_options), &memory, err));
    csv_options *o = memory;
    if (!lines.data || lines.bytes == 0 || by.bytes != 1)
        return sn_fail(err, SNUG_E_INVALID,
                       "tf.io.decode_csv: it needs record_defaults and a delimiter of one byte");
    for (const char *at = lines.data; at < lines.data + lines.bytes; at += strcspn(at, "\n") + 1) {
        if (o->n == SNUG_MAX_PARTS)
            return sn_fail(err, SNUG_E_UNSUPPORTED, "tf.io.decode_csv: more than %d columns",
                           SNUG_MAX_PARTS);
        SNUG_TRY(parse_column(op->zone, at, &o->column[o->n], err));
        o->n++;
    }
    o->delimiter = by.data[0];
    o->quotes = sn_data_bool(op, "use_quote_delim");
    o->missing = sn_data_text(op, "na_value");
    op->prepared = o;
    return parse_places(op, o, err);
}

/* --- fields ----------------------------------------------------------------------------------- */
/* The field at *at, which is set behind its delimiter (NULL: it was the last). Quoted ones are
 * copied into room with single quotes. False: a quote that does not end. */
static bool next_field(const csv_options *o, const char **at, const char *end, char **room,
                       snug_text *out) {
    const char *p = *at;
    if (!o->quotes || p == end || *p != '"') {
        const char *stop = memchr(p, o->delimiter, (size_t)(end - p));
        *out = (snug_text){p, (size_t)((stop ? stop : end) - p)};
        *at = stop ? stop + 1 : NULL;
        return !o->quotes || !memchr(out->data, '"', out->bytes);
    }
    char *to = *room;
    for (p++; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++) {
        p += *p == '"';
        *to++ = *p;
    }
    if (p == end || (p + 1 < end && p[1] != o->delimiter))
        return false;
    *out = (snug_text){*room, (size_t)(to - *room)};
    *room = to;
    *at = p + 1 < end ? p + 2 : NULL;
    return true;
}

typedef struct {
    sn_data_call *c;
    const csv_options *o;
    snug_datum room, texts; /* of unquoted fields; of [columns][records] */
    snug_datum numbers[SNUG_MAX_PARTS];
} csv_run;

static bool is_missing(const csv_options *o, const snug_text *t) {
    return t->bytes == 0 ||
           (t->bytes == o->missing.bytes && memcmp(t->data, o->missing.data, t->bytes) == 0);
}

static snug_status put_field(csv_run *r, int k, int64_t i, const snug_text *t, snug_error *err) {
    const column *c = &r->o->column[k];
    const int64_t n = sn_datum_count(&r->c->in[0]);
    const bool missing = is_missing(r->o, t);
    if (missing && c->required)
        return sn_fail(err, SNUG_E_DATA,
                       "tf.io.decode_csv: field %lld is required but missing in "
                       "record %lld",
                       (long long)c->place, (long long)i);
    if (c->dtype == SNUG_OPAQUE) {
        ((snug_text *)r->texts.data)[k * n + i] = missing ? c->value.text : *t;
        return SNUG_OK;
    }
    const size_t size = snug_dtype_bytes(c->dtype);
    char *to = (char *)r->numbers[k].data + (size_t)i * size;
    if (missing)
        memcpy(to, c->value.bytes, size);
    else if (!sn_number_parse(t, c->dtype, to))
        return sn_fail(err, SNUG_E_DATA,
                       "tf.io.decode_csv: field %lld in record %lld is no %s: '%.*s'",
                       (long long)c->place, (long long)i, snug_dtype_name(c->dtype),
                       (int)(t->bytes < 64 ? t->bytes : 64), t->data);
    return SNUG_OK;
}

static snug_status split_record(csv_run *r, int64_t i, char **room, snug_error *err) {
    const snug_text *text = &sn_texts_of(&r->c->in[0])[i];
    const char *at = text->data, *end = at + text->bytes;
    const bool all = r->o->column[r->o->n - 1].place == r->o->n - 1 &&
                     !sn_data_text(r->c->op, "select_cols").data;
    int k = 0;
    int64_t place = 0;
    for (; at; place++) {
        snug_text field;
        if (!next_field(r->o, &at, end, room, &field))
            return sn_fail(err, SNUG_E_DATA,
                           "tf.io.decode_csv: field %lld in record %lld: a quote without its end",
                           (long long)place, (long long)i);
        if (k < r->o->n && r->o->column[k].place == place)
            SNUG_TRY(put_field(r, k++, i, &field, err));
    }
    if (k < r->o->n || (all && place > r->o->n))
        return sn_fail(err, SNUG_E_DATA,
                       "tf.io.decode_csv: %d fields are expected, record %lld "
                       "has %lld",
                       r->o->n, (long long)i, (long long)place);
    return SNUG_OK;
}

static snug_status run_csv(csv_run *r, snug_error *err) {
    sn_data_call *c = r->c;
    const int64_t n = sn_datum_count(&c->in[0]);
    size_t bytes = 0, texts;
    for (int64_t i = 0; i < n; i++)
        bytes += sn_texts_of(&c->in[0])[i].bytes;
    if (!sn_size_mul((size_t)n * (size_t)r->o->n, sizeof(snug_text), &texts))
        return sn_fail(err, SNUG_E_OVERFLOW, "tf.io.decode_csv: too many fields");
    SNUG_TRY(sn_scratch(c->engine, bytes, &r->room, err));
    SNUG_TRY(sn_scratch(c->engine, texts, &r->texts, err));
    snug_type type = c->in[0].type;
    for (int k = 0; k < r->o->n; k++) {
        type.dtype = r->o->column[k].dtype;
        if (type.dtype != SNUG_OPAQUE)
            SNUG_TRY(snug_datum_create(c->engine, &type, &r->numbers[k], err));
    }
    char *room = r->room.data;
    for (int64_t i = 0; i < n; i++)
        SNUG_TRY(split_record(r, i, &room, err));
    type.dtype = SNUG_OPAQUE;
    for (int k = 0; k < r->o->n; k++)
        if (r->o->column[k].dtype == SNUG_OPAQUE)
            SNUG_TRY(snug_datum_texts(c->engine, &type, (snug_text *)r->texts.data + k * n,
                                      &r->numbers[k], err));
    return SNUG_OK;
}

snug_status sn_data_decode_csv(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    csv_run r = {.c = c, .o = c->op->prepared};
    if (r.o->n > c->max)
        return sn_fail(err, SNUG_E_INVALID, "tf.io.decode_csv gives %d parts, there is room for %d",
                       r.o->n, c->max);
    const snug_status status = run_csv(&r, err);
    snug_datum_drop(&r.room);
    snug_datum_drop(&r.texts);
    for (int k = 0; k < r.o->n; k++)
        if (status == SNUG_OK)
            c->out[k] = r.numbers[k];
        else
            snug_datum_drop(&r.numbers[k]);
    c->n_out = status == SNUG_OK ? r.o->n : 0;
    return status;
}

snug_status sn_spec_csv(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                        snug_error *err) {
    (void)err;
    const csv_options *o = op->prepared;
    for (int k = 0; k < o->n; k++) {
        out->type[k] = in->type[0];
        out->type[k].dtype = o->column[k].dtype;
        out->is_text[k] = o->column[k].dtype == SNUG_OPAQUE;
    }
    out->n = o->n;
    return SNUG_OK;
}
