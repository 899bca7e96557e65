/* example.c: parse_single_example and parse_example: features of Examples as parts.
 *
 * Both are one: a batch of B Examples; a single one gives the parts without the batch's dim. Fixed
 * features go straight to their place; those that differ in length are counted first (found in all
 * Examples of the batch), then copied into parts of exactly that size. Order of parts:
 * features.h. */
#include "base/size.h"
#include "codec/features.h"

#include <stdlib.h>

typedef struct {
    sn_data_call *c;
    const sn_features *features;
    const snug_text *examples;
    int64_t n;       /* Examples */
    bool single;     /* no dim for them */
    sn_found *found; /* [n][features] */
} batch;

static sn_found *found_at(const batch *b, int64_t example, int feature) {
    return &b->found[example * b->features->n + feature];
}

static size_t element_bytes(const sn_feature *f) {
    return f->dtype == SNUG_F32 ? 4 : f->dtype == SNUG_I64 ? 8 : sizeof(snug_text);
}

static snug_status wrong(const sn_feature *f, const sn_found *x, snug_error *err) {
    static const char *const names[] = {"floats", "texts", "integers"};
#define KIND(t) names[(t) == SNUG_F32 ? 0 : (t) == SNUG_OPAQUE ? 1 : 2]
    const int n = (int)f->name_bytes;
    if (!x->there)
        return sn_fail(err, SNUG_E_DATA,
                       "feature '%.*s' is missing in an Example; give it a default value", n,
                       f->name);
    if (x->dtype != f->dtype)
        return sn_fail(err, SNUG_E_DATA, "feature '%.*s' holds %s in an Example, not %s", n,
                       f->name, KIND(x->dtype), KIND(f->dtype));
#undef KIND
    return sn_fail(err, SNUG_E_DATA,
                   "feature '%.*s' has %lld values in an Example, its shape has %lld elements%s", n,
                   f->name, (long long)x->n, (long long)f->count,
                   f->kind == SN_FEATURE_SEQUENCE ? " a step" : "");
}

/* Whether an Example has what a feature wants. */
static snug_status check_found(const sn_feature *f, const sn_found *x, snug_error *err) {
    if (!x->there)
        return f->kind != SN_FEATURE_FIXED || f->n_default > 0 ? SNUG_OK : wrong(f, x, err);
    const bool fits = f->kind == SN_FEATURE_VAR     ? true
                      : f->kind == SN_FEATURE_FIXED ? x->n == f->count
                                                    : x->n % f->count == 0;
    return x->dtype == f->dtype && fits ? SNUG_OK : wrong(f, x, err);
}

static snug_status find_all(batch *b, snug_error *err) {
    for (int64_t i = 0; i < b->n; i++) {
        SNUG_TRY(sn_features_find(b->features, &b->examples[i], found_at(b, i, 0), err));
        for (int k = 0; k < b->features->n; k++)
            SNUG_TRY(check_found(&b->features->feature[k], found_at(b, i, k), err));
    }
    return SNUG_OK;
}

/* --- values ----------------------------------------------------------------------------------- */
/* n values of the default from element `first` of the shape on. */
static void put_default(const sn_feature *f, int64_t n, void *to) {
    const size_t size = element_bytes(f);
    if (f->n_default == 0) {
        memset(to, 0, (size_t)n * size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)to + (size_t)i * size,
               (const char *)f->values +
                   (f->n_default > 1 ? (size_t)i % (size_t)f->n_default : 0) * size,
               size);
}

/* The values of every Example, each padded to `row` elements (row < 0: as they are, one after
 * another), into `to`. */
static void put_values(const batch *b, int k, int64_t row, char *to) {
    const sn_feature *f = &b->features->feature[k];
    for (int64_t i = 0; i < b->n; i++) {
        const sn_found *x = found_at(b, i, k);
        const int64_t there = x->there ? x->n : 0;
        if (there > 0)
            sn_found_copy(x, to);
        to += (size_t)there * element_bytes(f);
        if (there < row) {
            put_default(f, row - there, to);
            to += (size_t)(row - there) * element_bytes(f);
        }
    }
}

/* Texts that point elsewhere get bytes of their own. */
static snug_status own_texts(snug_engine *e, const snug_type *type, const snug_text *texts,
                             snug_datum *out, snug_error *err) {
    size_t n = 1, bytes = 0;
    for (int i = 0; i < type->rank; i++)
        n *= (size_t)type->dims[i];
    for (size_t i = 0; i < n; i++)
        bytes += texts[i].bytes;
    char *room;
    SNUG_TRY(sn_texts_create(e, type, bytes, out, &room, err));
    snug_text *own = out->data;
    for (size_t i = 0; i < n; i++) {
        if (texts[i].bytes > 0)
            memcpy(room, texts[i].data, texts[i].bytes);
        own[i] = (snug_text){room, texts[i].bytes};
        room += texts[i].bytes;
    }
    return SNUG_OK;
}

/* A part of this type: the values of feature k. */
static snug_status add_part(const batch *b, int k, const snug_type *type, int64_t row,
                            snug_error *err) {
    sn_data_call *c = b->c;
    snug_datum *out = &c->out[c->n_out];
    if (type->dtype != SNUG_OPAQUE) {
        SNUG_TRY(snug_datum_create(c->engine, type, out, err));
        put_values(b, k, row, out->data);
        c->n_out++;
        return SNUG_OK;
    }
    size_t n = sizeof(snug_text);
    for (int i = 0; i < type->rank; i++)
        if (!sn_size_mul(n, (size_t)type->dims[i], &n))
            return sn_fail(err, SNUG_E_OVERFLOW, "a batch of texts exceeds the address space");
    snug_datum borrowed;
    SNUG_TRY(sn_scratch(c->engine, n, &borrowed, err));
    put_values(b, k, row, borrowed.data);
    const snug_status status = own_texts(c->engine, type, borrowed.data, out, err);
    snug_datum_drop(&borrowed);
    c->n_out += status == SNUG_OK;
    return status;
}

static snug_type with_dim(int64_t dim, const snug_type *rest) {
    snug_type t = {.dtype = rest->dtype, .rank = rest->rank + 1, .dims = {dim}};
    memcpy(t.dims + 1, rest->dims, (size_t)rest->rank * sizeof *t.dims);
    return t;
}

static snug_status add_fixed(const batch *b, int k, snug_error *err) {
    const sn_feature *f = &b->features->feature[k];
    const snug_type type = b->single ? f->shape : with_dim(b->n, &f->shape);
    return add_part(b, k, &type, f->count, err);
}

static snug_status add_sequence(const batch *b, int k, snug_error *err) {
    const sn_feature *f = &b->features->feature[k];
    int64_t longest = 0;
    for (int64_t i = 0; i < b->n; i++)
        longest = found_at(b, i, k)->n > longest ? found_at(b, i, k)->n : longest;
    const snug_type steps = with_dim(longest / f->count, &f->shape);
    const snug_type type = b->single ? steps : with_dim(b->n, &steps);
    return add_part(b, k, &type, longest, err);
}

/* Indices, values, shape of a sparse tensor. */
static snug_status add_var(const batch *b, int k, snug_error *err) {
    sn_data_call *c = b->c;
    const int rank = b->single ? 1 : 2;
    int64_t n = 0, longest = 0;
    for (int64_t i = 0; i < b->n; i++) {
        n += found_at(b, i, k)->n;
        longest = found_at(b, i, k)->n > longest ? found_at(b, i, k)->n : longest;
    }
    const snug_type places = {.dtype = SNUG_I64, .rank = 2, .dims = {n, rank}},
                    values = {.dtype = b->features->feature[k].dtype, .rank = 1, .dims = {n}},
                    shape = {.dtype = SNUG_I64, .rank = 1, .dims = {rank}};
    SNUG_TRY(snug_datum_create(c->engine, &places, &c->out[c->n_out], err));
    int64_t *at = c->out[c->n_out++].data;
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t j = 0; j < found_at(b, i, k)->n; j++) {
            if (!b->single)
                *at++ = i;
            *at++ = j;
        }
    SNUG_TRY(add_part(b, k, &values, -1, err));
    SNUG_TRY(snug_datum_create(c->engine, &shape, &c->out[c->n_out], err));
    at = c->out[c->n_out++].data;
    at[0] = b->single ? longest : b->n;
    if (!b->single)
        at[1] = longest;
    return SNUG_OK;
}

/* --- rows ------------------------------------------------------------------------------------- */
static snug_status add_all(batch *b, snug_error *err) {
    static snug_status (*const add[])(const batch *, int, snug_error *) = {add_fixed, add_var,
                                                                           add_sequence};
    SNUG_TRY(find_all(b, err));
    for (int k = 0; k < b->features->n; k++)
        SNUG_TRY(add[b->features->feature[k].kind](b, k, err));
    return SNUG_OK;
}

#define FEW_FOUND 64 /* of one Example these lie on the stack */

static snug_status parse(sn_data_call *c, bool single, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    const sn_features *f = c->op->prepared;
    batch b = {.c = c, .features = f, .examples = c->in[0].data, .single = single};
    b.n = sn_datum_count(&c->in[0]);
    if (single ? b.n != 1 : c->in[0].type.rank != 1)
        return sn_fail(err, SNUG_E_SHAPE, "%s",
                       single ? "tf.io.parse_single_example takes one text"
                              : "tf.io.parse_example takes a list of texts");
    if (f->n_out > c->max)
        return sn_fail(err, SNUG_E_INVALID, "the features give %d parts, there is room for %d",
                       f->n_out, c->max);
    sn_found few[FEW_FOUND];
    snug_datum many = {.data = NULL};
    size_t n;
    if (!sn_size_mul((size_t)b.n, (size_t)f->n, &n) || !sn_size_mul(n, sizeof(sn_found), &n))
        return sn_fail(err, SNUG_E_OVERFLOW, "a batch of Examples exceeds the address space");
    if (n > sizeof few)
        SNUG_TRY(sn_scratch(c->engine, n, &many, err));
    b.found = n > sizeof few ? many.data : few;
    const snug_status status = add_all(&b, err);
    if (many.data)
        snug_datum_drop(&many);
    while (status != SNUG_OK && c->n_out > 0)
        snug_datum_drop(&c->out[--c->n_out]);
    return status;
}

snug_status sn_data_parse_single_example(sn_data_call *c, snug_error *err) {
    return parse(c, true, err);
}

snug_status sn_data_parse_example(sn_data_call *c, snug_error *err) {
    return parse(c, false, err);
}

/* --- specs ------------------------------------------------------------------------------------ */
static void add_type(snug_spec *out, snug_type type) {
    out->is_text[out->n] = type.dtype == SNUG_OPAQUE;
    out->type[out->n++] = type;
}

static snug_status spec_of(const snug_data_op *op, int64_t n, bool single, snug_spec *out) {
    const sn_features *features = op->prepared;
    const int64_t rank = single ? 1 : 2;
    for (int k = 0; k < features->n; k++) {
        const sn_feature *f = &features->feature[k];
        const snug_type steps = with_dim(-1, &f->shape);
        if (f->kind == SN_FEATURE_VAR) {
            add_type(out, (snug_type){.dtype = SNUG_I64, .rank = 2, .dims = {-1, rank}});
            add_type(out, (snug_type){.dtype = f->dtype, .rank = 1, .dims = {-1}});
            add_type(out, (snug_type){.dtype = SNUG_I64, .rank = 1, .dims = {rank}});
        } else {
            const snug_type *one = f->kind == SN_FEATURE_SEQUENCE ? &steps : &f->shape;
            add_type(out, single ? *one : with_dim(n, one));
        }
    }
    return SNUG_OK;
}

snug_status sn_spec_features(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                             snug_error *err) {
    (void)in;
    (void)err;
    return spec_of(op, 1, true, out);
}

snug_status sn_spec_features_batch(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                                   snug_error *err) {
    (void)err;
    return spec_of(op, in->type[0].rank == 1 ? in->type[0].dims[0] : -1, false, out);
}
