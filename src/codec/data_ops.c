/* data_ops.c: the table of data_ops.def: finding rows, attributes, calls.
 *
 * 1. A signature is a text; only what a function asks for is looked up in it.
 * 2. Attributes are copied into the op's zone when it is made; a call changes nothing of the op. */
#include "codec/data_ops.h"

#include "base/real.h"
#include "base/size.h"
#include "tensor/type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sn_data_row rows[] = {
#define SNUG_DATA_OP(run, spec, prepare, names, signature, about)                                  \
    {{names, signature, about}, sn_data_##run, sn_spec_##spec, sn_prepare_##prepare},
#include "codec/data_ops.def"
#undef SNUG_DATA_OP
};
#define N_ROWS ((int)(sizeof rows / sizeof *rows))

int snug_data_op_count(void) {
    return N_ROWS;
}

const snug_data_op_info *snug_data_op_at(int i) {
    return i >= 0 && i < N_ROWS ? &rows[i].info : NULL;
}

/* Whether `word` is one of the words of text. */
static bool has_word(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; *at; at += *at == ' ') {
        const size_t here = strcspn(at, " ");
        if (here == n && strncmp(at, word, n) == 0)
            return true;
        at += here;
    }
    return false;
}

int snug_data_op_find(const char *name, int *i) {
    if (!name)
        return 0;
    for (int k = 0; k < N_ROWS; k++)
        if (has_word(rows[k].info.names, name)) {
            *i = k;
            return 1;
        }
    return 0;
}

const char *sn_data_name(const snug_data_op *op, char *text, size_t size) {
    snprintf(text, size, "%.*s", (int)strcspn(op->row->info.names, " "), op->row->info.names);
    return text;
}

/* --- the signature ---------------------------------------------------------------------------- */
/* The entry of this name, and its place; NULL: there is none. */
static const char *find_entry(const char *signature, const char *name, int *place) {
    const size_t n = strlen(name);
    int i = 0;
    for (const char *at = signature; *at; i++) {
        if (strncmp(at, name, n) == 0 && at[n] == ':') {
            *place = i;
            return at + n + 1;
        }
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    return NULL;
}

/* The value given, or the default of the signature; data NULL: None. */
static snug_text value_of(const snug_data_op *op, const char *name) {
    int place;
    const char *entry = find_entry(op->row->info.signature, name, &place);
    if (!entry || place >= SN_DATA_MAX_ARGS)
        return (snug_text){NULL, 0};
    if (op->attr[place])
        return *op->attr[place];
    if (entry[1] != '=')
        return (snug_text){NULL, 0};
    const size_t n = strcspn(entry + 2, " ");
    return n == 4 && strncmp(entry + 2, "None", 4) == 0 ? (snug_text){NULL, 0}
                                                        : (snug_text){entry + 2, n};
}

double sn_data_number(const snug_data_op *op, const char *name) {
    const snug_text t = value_of(op, name);
    double v = 0;
    const char *end;
    return t.data && sn_real_parse(t.data, &end, &v) ? v : 0;
}

int sn_data_ints(const snug_data_op *op, const char *name, int64_t *out, int max) {
    const snug_text t = value_of(op, name);
    if (!t.data)
        return 0;
    const char *at = t.data + (*t.data == '[');
    int n = 0;
    while (n < max && at < t.data + t.bytes && *at != ']') {
        char *end;
        const long long v = strtoll(at, &end, 10);
        if (end == at)
            break;
        out[n++] = v;
        at = end + strspn(end, ", ");
    }
    return n;
}

int64_t sn_data_int(const snug_data_op *op, const char *name) {
    int64_t v = 0;
    return sn_data_ints(op, name, &v, 1) == 1 ? v : 0;
}

bool sn_data_bool(const snug_data_op *op, const char *name) {
    const snug_text t = value_of(op, name);
    return t.data && t.bytes == 4 && memcmp(t.data, "True", 4) == 0;
}

snug_text sn_data_text(const snug_data_op *op, const char *name) {
    return value_of(op, name);
}

snug_status sn_data_dtype(const snug_data_op *op, const char *name, snug_dtype *out,
                          snug_error *err) {
    const snug_text t = value_of(op, name);
    if (t.data && t.bytes == 6 && memcmp(t.data, "string", t.bytes) == 0) {
        *out = SNUG_OPAQUE;
        return SNUG_OK;
    }
    if (t.data && sn_dtype_of_word(t.data, t.bytes, out))
        return SNUG_OK;
    char me[64];
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "%s: Snug has no dtype '%.*s'; float32 and integers of up to 32 bits exist",
                   sn_data_name(op, me, sizeof me), (int)t.bytes, t.data ? t.data : "");
}

/* --- making one ------------------------------------------------------------------------------- */
/* Whether the text is a value of the kind; S is anything. */
static bool is_value(char kind, const snug_text *t) {
    const char *end;
    double v;
    if (kind == 'B')
        return (t->bytes == 4 && memcmp(t->data, "True", 4) == 0) ||
               (t->bytes == 5 && memcmp(t->data, "False", 5) == 0);
    if (kind == 'N')
        return sn_real_parse(t->data, &end, &v) && end == t->data + t->bytes;
    if (kind == 'I')
        return t->bytes > 0 && strspn(t->data, "[]0123456789-+, ") == t->bytes;
    return true;
}

static snug_status take_attr(snug_data_op *op, const snug_data_attr *a, snug_error *err) {
    char me[64];
    int place = 0;
    const char *entry = find_entry(op->row->info.signature, a->name, &place);
    if (!entry || *entry == 'X' || *entry == 'V' || place >= SN_DATA_MAX_ARGS)
        return sn_fail(err, SNUG_E_INVALID, "%s has no attribute '%s'; it takes: %s",
                       sn_data_name(op, me, sizeof me), a->name, op->row->info.signature);
    void *memory;
    SNUG_TRY(sn_zone_alloc(op->zone, sizeof(snug_text) + a->value.bytes + 1, &memory, err));
    snug_text *t = memory;
    char *bytes = (char *)memory + sizeof *t;
    if (a->value.bytes > 0)
        memcpy(bytes, a->value.data, a->value.bytes);
    *t = (snug_text){bytes, a->value.bytes};
    if (!is_value(*entry, t))
        return sn_fail(err, SNUG_E_INVALID, "%s: %s='%s' is no value of kind %c",
                       sn_data_name(op, me, sizeof me), a->name, bytes, *entry);
    op->attr[place] = t;
    return SNUG_OK;
}

snug_status snug_data_op_create(snug_engine *engine, const char *name, const snug_data_attr *attrs,
                                int n_attrs, snug_data_op **out, snug_error *err) {
    SNUG_NEEDS(err, name);
    int row;
    if (!snug_data_op_find(name, &row))
        return sn_fail(err, SNUG_E_INVALID, "there is no function '%s' on files and texts", name);
    sn_zone *zone;
    SNUG_TRY(sn_zone_create_for(engine, SN_MEM_INPUT, 1024, &zone, err));
    void *memory;
    snug_status status = sn_zone_alloc(zone, sizeof(snug_data_op), &memory, err);
    snug_data_op *op = status == SNUG_OK ? memory : NULL;
    if (op)
        *op = (snug_data_op){.engine = engine, .row = &rows[row], .zone = zone};
    for (int i = 0; status == SNUG_OK && i < n_attrs; i++)
        status = take_attr(op, &attrs[i], err);
    if (status == SNUG_OK && op->row->prepare)
        status = op->row->prepare(op, err);
    if (status != SNUG_OK) {
        sn_zone_destroy(zone);
        return status;
    }
    *out = op;
    return SNUG_OK;
}

void snug_data_op_destroy(snug_data_op *op) {
    if (op)
        sn_zone_destroy(op->zone);
}

/* --- using it --------------------------------------------------------------------------------- */
static snug_status check_inputs(const snug_data_op *op, int n_in, snug_error *err) {
    int wanted = 0;
    bool several = false;
    for (const char *at = op->row->info.signature; *at; at += *at == ' ') {
        const char kind = at[strcspn(at, ":") + 1];
        several = several || kind == 'V';
        wanted += kind == 'X' || kind == 'V';
        at += strcspn(at, " ");
    }
    char me[64];
    if (n_in == wanted || (several && n_in >= wanted))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s takes %d parts, not %d: %s",
                   sn_data_name(op, me, sizeof me), wanted, n_in, op->row->info.signature);
}

snug_status snug_data_op_spec(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                              snug_error *err) {
    SNUG_NEEDS(err, op && in && out);
    SNUG_TRY(check_inputs(op, in->n, err));
    snug_spec result = {.n = 0};
    SNUG_TRY(op->row->spec(op, in, &result, err));
    *out = result;
    return SNUG_OK;
}

snug_status snug_data_op_call(const snug_data_op *op, uint64_t key, const snug_datum *in, int n_in,
                              snug_datum *out, int max, int *n_out, snug_error *err) {
    SNUG_NEEDS(err, op && (in || n_in == 0));
    SNUG_TRY(check_inputs(op, n_in, err));
    if (max < 1 && op->row->spec != sn_spec_nothing) /* those of several parts look themselves */
        return sn_fail(err, SNUG_E_INVALID, "there is no room for a result");
    sn_data_call c = {.op = op, .engine = op->engine, .n_in = n_in, .in = in, .key = key};
    c.out = out;
    c.max = max;
    SNUG_TRY(op->row->run(&c, err));
    *n_out = c.n_out;
    return SNUG_OK;
}

/* --- parts ------------------------------------------------------------------------------------ */
int64_t sn_datum_count(const snug_datum *d) {
    int64_t n = 1;
    for (int i = 0; i < d->type.rank; i++)
        n *= d->type.dims[i];
    return n;
}

static snug_status want(const sn_data_call *c, int i, bool text, snug_error *err) {
    char me[64], type[192];
    if (!c->in[i].is_text == !text)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s: part %d is %s%s, not %s",
                   sn_data_name(c->op, me, sizeof me), i, c->in[i].is_text ? "text" : "",
                   c->in[i].is_text ? "" : snug_type_print(&c->in[i].type, type, sizeof type),
                   text ? "text" : "numbers");
}

snug_status sn_data_want_text(const sn_data_call *c, int i, snug_error *err) {
    return want(c, i, true, err);
}

snug_status sn_data_want_number(const sn_data_call *c, int i, snug_error *err) {
    return want(c, i, false, err);
}

snug_status sn_scratch(snug_engine *e, size_t bytes, snug_datum *out, snug_error *err) {
    if (bytes > INT64_MAX)
        return sn_fail(err, SNUG_E_OVERFLOW, "%zu bytes exceed the address space", bytes);
    const snug_type type = {.dtype = SNUG_U8, .rank = 1, .dims = {(int64_t)bytes}};
    return snug_datum_create(e, &type, out, err);
}

snug_status sn_texts_create(snug_engine *e, const snug_type *shape, size_t bytes, snug_datum *out,
                            char **room, snug_error *err) {
    size_t n = 1, all;
    for (int i = 0; i < shape->rank; i++)
        if (!sn_size_mul(n, (size_t)shape->dims[i], &n))
            return sn_fail(err, SNUG_E_OVERFLOW, "too many texts");
    if (!sn_size_mul(n, sizeof(snug_text), &n) || !sn_size_add(n, bytes, &all))
        return sn_fail(err, SNUG_E_OVERFLOW, "texts exceed the address space");
    snug_datum d;
    SNUG_TRY(sn_scratch(e, all, &d, err));
    d.type = *shape;
    d.type.dtype = SNUG_OPAQUE;
    d.is_text = 1;
    *room = (char *)d.data + n;
    *out = d;
    return SNUG_OK;
}

/* --- where a text came from ------------------------------------------------------------------- */
static const char origin_mark[8] = {0, 's', 'n', 'f', 'i', 'l', 'e', 1};

void sn_origin_put(char *room, const char *path) {
    memcpy(room, origin_mark, sizeof origin_mark);
    snprintf(room + sizeof origin_mark, SN_ORIGIN_ROOM - sizeof origin_mark, "%s", path);
}

const char *sn_origin_print(const snug_datum *d, const snug_text *t, char *text, size_t size) {
    const char *first = d->data, *end = first + d->bytes, *mark = t->data + t->bytes;
    if (t->data > first && mark < end && (size_t)(end - mark) >= SN_ORIGIN_ROOM &&
        memcmp(mark, origin_mark, sizeof origin_mark) == 0)
        snprintf(text, size, "'%s' (%zu bytes)", mark + sizeof origin_mark, t->bytes);
    else
        snprintf(text, size, "the text (%zu bytes)", t->bytes);
    return text;
}
