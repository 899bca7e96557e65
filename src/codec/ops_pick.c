/* ops_pick.c: parts of text parts: x[key], and x == y element by element. What tensors of numbers
 * have in the function table; map functions need them for names of files. */
#include "codec/data_ops.h"

#include <stdlib.h>
#include <string.h>

/* --- x[key] ----------------------------------------------------------------------------------- */
/* One axis of a key: an index, or start:stop:step. */
typedef struct {
    int64_t start, n, step;
    bool keeps; /* the axis stays */
} line;

static snug_status bad_key(const char *key, const snug_type *type, snug_error *err) {
    return sn_fail(err, SNUG_E_INVALID, "[%s] is no index into texts of %d axes", key, type->rank);
}

/* Up to three numbers between colons; given[i]: number i stands there. */
static int read_numbers(const char **at, int64_t v[3], bool given[3]) {
    int n = 0;
    for (;; n++) {
        char *end;
        const long long value = strtoll(*at, &end, 10);
        given[n] = end != *at;
        v[n] = value;
        *at = end;
        if (**at != ':' || n == 2)
            return n;
        (*at)++;
    }
}

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

/* "2", "-1", "1:", "::-1"; 0: it is none, or out of range. */
static int read_line(const char **at, int64_t extent, line *out) {
    int64_t v[3] = {0, 0, 1};
    bool given[3] = {false, false, false};
    const int colons = read_numbers(at, v, given);
    if (colons == 0) {
        const int64_t i = v[0] < 0 ? v[0] + extent : v[0];
        *out = (line){.start = i, .n = 1, .step = 1};
        return given[0] && i >= 0 && i < extent;
    }
    const int64_t step = given[2] ? v[2] : 1;
    if (step == 0)
        return 0;
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
    for (int i = 0; i < 2; i++)
        v[i] = clamp(v[i] < 0 ? v[i] + extent : v[i], low, high);
    const int64_t start = given[0] ? v[0] : step < 0 ? high : 0;
    const int64_t stop = given[1] ? v[1] : step < 0 ? -1 : extent;
    const int64_t span = step < 0 ? start - stop : stop - start, size = step < 0 ? -step : step;
    *out = (line){
        .start = start, .n = span <= 0 ? 0 : (span + size - 1) / size, .step = step, .keeps = true};
    return 1;
}

static snug_status read_key(const char *key, const snug_type *type, line *lines, snug_error *err) {
    const char *at = key;
    for (int i = 0; i < type->rank; i++) {
        lines[i] = (line){.n = type->dims[i], .step = 1, .keeps = true};
        if (*at && !read_line(&at, type->dims[i], &lines[i]))
            return bad_key(key, type, err);
        if (*at == ',')
            at++;
    }
    return *at ? bad_key(key, type, err) : SNUG_OK;
}

/* Places in x of the result's texts, in order. */
static void walk(const snug_type *type, const line *lines, int axis, int64_t base, int64_t **to) {
    if (axis == type->rank) {
        *(*to)++ = base;
        return;
    }
    for (int64_t i = 0; i < lines[axis].n; i++)
        walk(type, lines, axis + 1,
             base * type->dims[axis] + lines[axis].start + i * lines[axis].step, to);
}

static snug_status pick(sn_data_call *c, const snug_type *shape, const int64_t *places, int64_t n,
                        snug_error *err) {
    const snug_text *from = sn_texts_of(&c->in[0]);
    snug_datum list;
    SNUG_TRY(sn_scratch(c->engine, (size_t)n * sizeof *from + 1, &list, err));
    snug_text *texts = list.data;
    for (int64_t i = 0; i < n; i++)
        texts[i] = from[places[i]];
    const snug_status status = snug_datum_texts(c->engine, shape, texts, &c->out[0], err);
    snug_datum_drop(&list);
    c->n_out = status == SNUG_OK;
    return status;
}

snug_status sn_data_text_item(sn_data_call *c, snug_error *err) {
    line lines[SNUG_MAX_RANK];
    snug_type shape = {.dtype = SNUG_OPAQUE};
    SNUG_TRY(sn_data_want_text(c, 0, err));
    const snug_type *type = &c->in[0].type;
    SNUG_TRY(read_key(sn_data_text(c->op, "key").data, type, lines, err));
    int64_t n = 1;
    for (int i = 0; i < type->rank; i++) {
        n *= lines[i].n;
        if (lines[i].keeps)
            shape.dims[shape.rank++] = lines[i].n;
    }
    snug_datum places;
    SNUG_TRY(sn_scratch(c->engine, (size_t)n * sizeof(int64_t) + 1, &places, err));
    int64_t *to = places.data;
    walk(type, lines, 0, 0, &to);
    const snug_status status = pick(c, &shape, places.data, n, err);
    snug_datum_drop(&places);
    return status;
}

snug_status sn_spec_text_item(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                              snug_error *err) {
    (void)err;
    const char *at = sn_data_text(op, "key").data;
    out->n = 1;
    out->is_text[0] = 1;
    out->type[0] = (snug_type){.dtype = SNUG_OPAQUE, .rank = in->type[0].rank < 0 ? -1 : 0};
    for (int i = 0; i < in->type[0].rank; i++) {
        line l = {.n = in->type[0].dims[i], .keeps = true};
        const bool vague = l.n < 0;
        if (*at)
            (void)read_line(&at, vague ? 1 << 20 : l.n, &l);
        if (*at == ',')
            at++;
        if (l.keeps)
            out->type[0].dims[out->type[0].rank++] = vague ? -1 : l.n;
    }
    return SNUG_OK;
}

/* --- x == y ----------------------------------------------------------------------------------- */
static bool broadcast(const snug_type *a, const snug_type *b, snug_type *out) {
    *out = (snug_type){.dtype = SNUG_BOOL, .rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < out->rank; i++) {
        const int ia = i - (out->rank - a->rank), ib = i - (out->rank - b->rank);
        const int64_t x = ia < 0 ? 1 : a->dims[ia], y = ib < 0 ? 1 : b->dims[ib];
        if (x != y && x != 1 && y != 1 && x >= 0 && y >= 0)
            return false;
        out->dims[i] = x == 1 ? y : x;
    }
    return true;
}

/* The place in a part of element i of the result. */
static int64_t place_in(const snug_type *part, const snug_type *all, int64_t i) {
    int64_t place = 0, stride = 1;
    for (int k = all->rank - 1; k >= 0; k--) {
        const int own = k - (all->rank - part->rank);
        const int64_t at = i % all->dims[k];
        i /= all->dims[k];
        if (own >= 0) {
            place += (part->dims[own] == 1 ? 0 : at) * stride;
            stride *= part->dims[own];
        }
    }
    return place;
}

snug_status sn_data_text_equal(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    SNUG_TRY(sn_data_want_text(c, 1, err));
    snug_type shape;
    if (!broadcast(&c->in[0].type, &c->in[1].type, &shape))
        return sn_fail(err, SNUG_E_SHAPE, "texts of shapes that do not fit are compared");
    SNUG_TRY(snug_datum_create(c->engine, &shape, &c->out[0], err));
    const snug_text *x = sn_texts_of(&c->in[0]), *y = sn_texts_of(&c->in[1]);
    unsigned char *to = c->out[0].data;
    for (int64_t i = 0; i < sn_datum_count(&c->out[0]); i++) {
        const snug_text *a = &x[place_in(&c->in[0].type, &shape, i)];
        const snug_text *b = &y[place_in(&c->in[1].type, &shape, i)];
        to[i] = a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
    }
    c->n_out = 1;
    return SNUG_OK;
}

snug_status sn_spec_text_equal(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                               snug_error *err) {
    (void)op;
    out->n = 1;
    out->is_text[0] = 0;
    if (in->type[0].rank < 0 || in->type[1].rank < 0) {
        out->type[0] = (snug_type){.dtype = SNUG_BOOL, .rank = -1};
        return SNUG_OK;
    }
    if (!broadcast(&in->type[0], &in->type[1], &out->type[0]))
        return sn_fail(err, SNUG_E_SHAPE, "texts of shapes that do not fit are compared");
    return SNUG_OK;
}
