/* function.c: a row of the table of functions called on recorded tensors: lists become tensors and
 * tensors that stand for settings are read before the recording is touched; then the row's build
 * function appends to it.
 *
 * 1. Between sn_record_begin and sn_record_end nothing but the build function runs.
 * 2. A failed call leaves the recording and *n_out as they were. */
#include "eager/eager_call.h"
#include "memory/numbers.h"
#include "tensor/feed.h"

#include <assert.h>
#include <string.h>

/* --- lists of numbers become tensors ---------------------------------------------------------- */
typedef struct {
    snug_type type;
    bool real, truth, wide, tensors, ragged;
    int depth; /* of the first leaf; -1 before it */
} list_shape;

static void measure(const snug_argument *a, int depth, list_shape *s) {
    if (a->kind != SNUG_ARG_LIST) {
        s->ragged = s->ragged || (s->depth >= 0 && s->depth != depth);
        s->depth = depth;
        s->tensors = s->tensors || a->kind == SNUG_ARG_TENSOR;
        s->real = s->real || a->kind == SNUG_ARG_REAL;
        s->truth = s->truth && a->kind == SNUG_ARG_BOOL;
        s->wide = s->wide || (a->kind == SNUG_ARG_INTEGER &&
                              (a->integer > INT32_MAX || a->integer < INT32_MIN));
        s->ragged = s->ragged || a->kind == SNUG_ARG_NONE || a->kind > SNUG_ARG_BOOL;
        return;
    }
    if (depth >= SNUG_MAX_RANK) {
        s->ragged = true;
        return;
    }
    if (s->type.rank <= depth) {
        s->type.rank = depth + 1;
        s->type.dims[depth] = a->list.n;
    }
    s->ragged = s->ragged || s->type.dims[depth] != a->list.n;
    for (int i = 0; i < a->list.n; i++)
        measure(&a->list.items[i], depth + 1, s);
}

/* One number to a dtype that has a place for each. */
static void convert(snug_dtype from, const void *src, snug_dtype to, void *dst) {
    const snug_status status = sn_convert(from, src, to, dst, 1, NULL);
    assert(status == SNUG_OK);
    (void)status;
}

static char *put(const snug_argument *a, snug_dtype dtype, char *to) {
    if (a->kind == SNUG_ARG_LIST) {
        for (int i = 0; i < a->list.n; i++)
            to = put(&a->list.items[i], dtype, to);
        return to;
    }
    const double real = a->kind == SNUG_ARG_REAL ? a->real : (double)a->integer;
    const int64_t whole = a->kind == SNUG_ARG_REAL ? (int64_t)a->real : a->integer;
    if (sn_dtype_is_float(dtype))
        convert(SNUG_F64, &real, dtype, to);
    else if (dtype == SNUG_BOOL)
        *to = whole != 0;
    else
        memcpy(to, &whole, snug_dtype_bytes(dtype)); /* little endian: the low bytes */
    return to + snug_dtype_bytes(dtype);
}

/* like: the dtype of the other tensors, or SNUG_N_DTYPES. */
static snug_status list_tensor(sn_eager_call *c, snug_argument *a, snug_dtype like,
                               snug_error *err) {
    list_shape s = {.depth = -1, .truth = true};
    measure(a, 0, &s);
    if (s.tensors)
        return SNUG_OK; /* stacked in the recording */
    if (s.ragged)
        return sn_fail(err, SNUG_E_INVALID, "%.*s: a list is not of one shape, or holds no numbers",
                       (int)strcspn(c->f.names, " "), c->f.names);
    const bool empty = s.depth < 0;
    s.type.dtype = s.real || empty ? SNUG_F32 : s.truth ? SNUG_BOOL : s.wide ? SNUG_I64 : SNUG_I32;
    const bool takes = like != SNUG_N_DTYPES && (empty || sn_dtype_is_float(like) || !s.real) &&
                       (like != SNUG_BOOL || s.truth);
    s.type.dtype = takes ? like : s.type.dtype;
    void *data;
    snug_tensor *made;
    if (c->n_made == SN_EAGER_MAX_MADE)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "more than %d lists", SN_EAGER_MAX_MADE);
    SNUG_TRY(snug_tensor_fresh(c->r.r, &s.type, &made, &data, err));
    c->made[c->n_made++] = made;
    put(a, s.type.dtype, data);
    *a = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = made};
    return SNUG_OK;
}

/* --- tensors that are settings are read ------------------------------------------------------- */
static snug_argument element(const snug_view *v, int64_t i) {
    const snug_dtype dtype = v->type.dtype;
    const char *const at = (const char *)v->data + (size_t)i * snug_dtype_bytes(dtype);
    snug_argument a = {.kind = sn_dtype_is_float(dtype) ? SNUG_ARG_REAL : SNUG_ARG_INTEGER};
    if (a.kind == SNUG_ARG_REAL)
        convert(dtype, at, SNUG_F64, &a.real);
    else
        convert(dtype, at, SNUG_I64, &a.integer);
    return a;
}

static snug_status read_setting(sn_eager_call *c, snug_argument *a, snug_error *err) {
    snug_view v;
    snug_tensor *const t = a->tensor;
    SNUG_TRY(snug_tensor_pin(t, &v, err));
    const int64_t n = sn_type_count(&v.type);
    const bool fits = n <= SN_FN_MAX_ITEMS - c->f.n_items;
    if (fits && v.type.rank == 0) {
        *a = element(&v, 0);
    } else if (fits) {
        snug_argument *const items = c->f.items + c->f.n_items;
        for (int64_t i = 0; i < n; i++)
            c->f.items[c->f.n_items++] = element(&v, i);
        *a = (snug_argument){.kind = SNUG_ARG_LIST};
        a->list.items = items;
        a->list.n = (int)n;
    }
    snug_tensor_unpin(t);
    return fits ? SNUG_OK
                : sn_fail(err, SNUG_E_UNSUPPORTED,
                          "%.*s: a setting of %lld elements is read from a tensor; at most %d are",
                          (int)strcspn(c->f.names, " "), c->f.names, (long long)n, SN_FN_MAX_ITEMS);
}

/* --- truth values become places --------------------------------------------------------------- */
static bool is_set(const snug_view *v, int64_t i) {
    const size_t bytes = snug_dtype_bytes(v->type.dtype);
    const char *const at = (const char *)v->data + (size_t)i * bytes;
    if (sn_dtype_is_float(v->type.dtype)) {
        const snug_argument a = element(v, i);
        return a.real != 0;
    }
    for (size_t k = 0; k < bytes; k++)
        if (at[k])
            return true;
    return false;
}

/* int64 [n, rank]: the index of each element that is set, in their order. */
static snug_status places_of(sn_eager_call *c, const snug_view *v, snug_tensor **out,
                             snug_error *err) {
    const int64_t count = sn_type_count(&v->type);
    const int rank = v->type.rank;
    int64_t n = 0;
    void *data;
    for (int64_t i = 0; i < count; i++)
        n += is_set(v, i);
    SNUG_TRY(snug_tensor_fresh(c->r.r, &(snug_type){SNUG_I64, 2, {n, rank}}, out, &data, err));
    int64_t *to = data;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        if (!is_set(v, i))
            continue;
        for (int k = rank - 1; k >= 0; k--) {
            to[k] = rest % v->type.dims[k];
            rest /= v->type.dims[k];
        }
        to += rank;
    }
    return SNUG_OK;
}

static snug_status read_places(sn_eager_call *c, snug_argument *a, snug_error *err) {
    snug_view v;
    snug_tensor *places;
    if (a->kind == SNUG_ARG_LIST)
        SNUG_TRY(list_tensor(c, a, SNUG_N_DTYPES, err));
    if (a->kind != SNUG_ARG_TENSOR || c->n_made == SN_EAGER_MAX_MADE)
        return sn_fail(err, SNUG_E_INVALID, "%.*s: it needs a tensor of truth values",
                       (int)strcspn(c->f.names, " "), c->f.names);
    snug_tensor *const t = a->tensor;
    SNUG_TRY(snug_tensor_pin(t, &v, err));
    const snug_status status = places_of(c, &v, &places, err);
    snug_tensor_unpin(t);
    SNUG_TRY(status);
    c->made[c->n_made++] = places;
    *a = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = places};
    return SNUG_OK;
}

/* --- values that decide shapes ---------------------------------------------------------------- */
static void read_largest(sn_eager_call *c, const snug_view *v) {
    for (int64_t i = 0; i < sn_type_count(&v->type); i++) {
        const int64_t n = element(v, i).integer;
        c->f.largest = n > c->f.largest ? n : c->f.largest;
    }
}

/* By their bits: -0 is not 0, and a NaN is itself. */
static snug_status number_values(const sn_eager_call *c, const snug_view *v, void *const *at,
                                 int64_t *found, snug_error *err) {
    const size_t bytes = snug_dtype_bytes(v->type.dtype);
    sn_numbers seen = {.engine = snug_recorder_engine(c->r.r), .category = SN_MEM_OTHER};
    int64_t *const which = at[1], *const counts = at[2];
    snug_status status = SNUG_OK;
    for (int64_t i = 0; status == SNUG_OK && i < sn_type_count(&v->type); i++) {
        const char *const one = (const char *)v->data + (size_t)i * bytes;
        uint64_t bits = 0;
        uint32_t k;
        memcpy(&bits, one, bytes);
        if (!sn_numbers_find(&seen, bits, &k)) {
            status = sn_numbers_reserve(&seen, err);
            if (status != SNUG_OK)
                break;
            k = (uint32_t)(*found)++;
            sn_numbers_put(&seen, bits, k);
            memcpy((char *)at[0] + (size_t)k * bytes, one, bytes);
            counts[k] = 0;
        }
        which[i] = k;
        counts[k]++;
    }
    sn_numbers_clear(&seen);
    return status;
}

/* Each value once, in the order they come; which of them element i is; how often each comes. */
static snug_status find_unique(sn_eager_call *c, const snug_view *v, snug_error *err) {
    const int64_t n = sn_type_count(&v->type);
    const snug_type places = {SNUG_I64, 1, {n}};
    snug_tensor *each[3];
    void *at[3];
    int64_t found = 0;
    for (int k = 0; k < 3; k++) {
        const snug_type t = {k ? SNUG_I64 : v->type.dtype, 1, {n}};
        if (c->n_made == SN_EAGER_MAX_MADE)
            return sn_fail(err, SNUG_E_UNSUPPORTED, "more than %d lists", SN_EAGER_MAX_MADE);
        SNUG_TRY(snug_tensor_fresh(c->r.r, k ? &places : &t, &each[k], &at[k], err));
        c->made[c->n_made++] = each[k];
    }
    SNUG_TRY(number_values(c, v, at, &found, err));
    for (int k = 0; k < 3; k += 2) { /* as many as there are */
        SNUG_TRY(snug_tensor_rows(each[k], 0, found, &each[k], err));
        c->made[c->n_made++] = each[k];
    }
    for (int k = 0; k < 3; k++)
        c->f.unique[k] = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = each[k]};
    return SNUG_OK;
}

static snug_status read_values(sn_eager_call *c, char kind, snug_argument *a, snug_error *err) {
    snug_view v;
    snug_status status = SNUG_OK;
    if (a->kind == SNUG_ARG_LIST)
        SNUG_TRY(list_tensor(c, a, SNUG_N_DTYPES, err));
    if (a->kind != SNUG_ARG_TENSOR || (kind == 'M' && snug_tensor_is_traced(a->tensor)))
        return SNUG_OK;
    if (kind == 'M' && !sn_dtype_is_int(snug_tensor_type(a->tensor)->dtype))
        return SNUG_OK;
    snug_tensor *const t = a->tensor;
    SNUG_TRY(snug_tensor_pin(t, &v, err));
    if (kind == 'M')
        read_largest(c, &v);
    else
        status = find_unique(c, &v, err);
    snug_tensor_unpin(t);
    return status;
}

/* A copy of a list whose items may be changed. */
static snug_status own_items(sn_eager_call *c, snug_argument *a, snug_argument **out,
                             snug_error *err) {
    if (a->list.n > SN_FN_MAX_ITEMS - c->f.n_items)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%.*s: a list of %d items; at most %d are possible",
                       (int)strcspn(c->f.names, " "), c->f.names, a->list.n, SN_FN_MAX_ITEMS);
    *out = c->f.items + c->f.n_items;
    memcpy(*out, a->list.items, (size_t)a->list.n * sizeof **out);
    c->f.n_items += a->list.n;
    a->list.items = *out;
    return SNUG_OK;
}

static bool holds(const snug_argument *a, snug_argument_kind kind) {
    for (int i = 0; a->kind == SNUG_ARG_LIST && i < a->list.n; i++)
        if (a->list.items[i].kind == kind)
            return true;
    return false;
}

static snug_status read_settings(sn_eager_call *c, snug_argument *a, snug_error *err) {
    if (a->kind == SNUG_ARG_TENSOR)
        return read_setting(c, a, err);
    if (!holds(a, SNUG_ARG_TENSOR) && !holds(a, SNUG_ARG_LIST))
        return SNUG_OK;
    snug_argument *items;
    SNUG_TRY(own_items(c, a, &items, err));
    for (int i = 0; i < a->list.n; i++)
        SNUG_TRY(read_settings(c, &items[i], err));
    return SNUG_OK;
}

static snug_status list_tensors(sn_eager_call *c, snug_argument *a, snug_dtype like,
                                snug_error *err) {
    snug_argument *items;
    if (!holds(a, SNUG_ARG_LIST))
        return SNUG_OK;
    SNUG_TRY(own_items(c, a, &items, err));
    for (int i = 0; i < a->list.n; i++)
        if (items[i].kind == SNUG_ARG_LIST)
            SNUG_TRY(list_tensor(c, &items[i], like, err));
    return SNUG_OK;
}

/* --- a call ----------------------------------------------------------------------------------- */
static const char *next_kind(const char *at, char *kind) {
    while (*at && *at != ':')
        at++;
    *kind = *at ? at[1] : 0;
    while (*at && *at != ' ')
        at++;
    return *at ? at + 1 : at;
}

static snug_dtype dtype_in(const snug_argument *a) {
    if (a->kind == SNUG_ARG_TENSOR)
        return snug_tensor_type(a->tensor)->dtype;
    for (int i = 0; a->kind == SNUG_ARG_LIST && i < a->list.n; i++)
        if (dtype_in(&a->list.items[i]) != SNUG_N_DTYPES)
            return dtype_in(&a->list.items[i]);
    return SNUG_N_DTYPES;
}

/* Of the first tensor among those that share a dtype. */
static snug_dtype shared_dtype(const sn_eager_call *c) {
    const char *at = c->f.signature;
    snug_dtype found = SNUG_N_DTYPES;
    char kind;
    for (int i = 0; i < c->f.n_args && found == SNUG_N_DTYPES; i++) {
        at = next_kind(at, &kind);
        if (kind == 'T' || kind == 'V')
            found = dtype_in(&c->f.arg[i]);
    }
    return found;
}

static snug_status prepare_one(sn_eager_call *c, char kind, snug_argument *a, snug_error *err) {
    if (kind == 'I' || kind == 'N' || kind == 'B')
        return read_settings(c, a, err);
    const bool chooses = c->f.n_args > 2 && c->f.arg[1].kind != SNUG_ARG_NONE && a == &c->f.own[0];
    if (kind == 'W' && !chooses)
        return read_places(c, a, err);
    if (kind == 'M' || kind == 'Q')
        return read_values(c, kind, a, err);
    if (a->kind != SNUG_ARG_LIST)
        return SNUG_OK;
    if (kind == 'V')
        return list_tensors(c, a, shared_dtype(c), err);
    if (kind == 'T' || kind == 'O' || kind == 'W')
        return list_tensor(c, a, kind == 'T' ? shared_dtype(c) : SNUG_N_DTYPES, err);
    return SNUG_OK;
}

static snug_status prepare(sn_eager_call *c, snug_error *err) {
    const char *at = c->f.signature;
    for (int i = 0; i < c->f.n_args; i++) {
        char kind;
        at = next_kind(at, &kind);
        const snug_argument_kind has = c->f.arg[i].kind;
        const bool plain = has != SNUG_ARG_LIST &&
                           (has != SNUG_ARG_TENSOR || kind == 'T' || kind == 'O' || kind == 'V');
        if (plain)
            continue;
        if (c->f.arg != c->f.own) {
            memcpy(c->f.own, c->f.arg, (size_t)c->f.n_args * sizeof *c->f.own);
            c->f.arg = c->f.own;
        }
        SNUG_TRY(prepare_one(c, kind, &c->f.own[i], err));
    }
    return SNUG_OK;
}

/* What the function knows without a run. */
static snug_status give_known(const sn_eager_call *c, snug_tensor **out, snug_error *err) {
    void *data;
    SNUG_TRY(snug_tensor_fresh(c->r.r, &c->f.known_type, out, &data, err));
    const int64_t n = sn_type_count(&c->f.known_type);
    char *at = data;
    for (int64_t i = 0; i < n && c->f.known_type.dtype == SNUG_I32; i++)
        if (c->f.known[i] > INT32_MAX) {
            snug_tensor_drop(*out);
            return sn_fail(err, SNUG_E_UNSUPPORTED, "%lld does not fit into int32",
                           (long long)c->f.known[i]);
        }
    for (int64_t i = 0; i < n; i++)
        at = put(&(snug_argument){.kind = SNUG_ARG_INTEGER, .integer = c->f.known[i]},
                 c->f.known_type.dtype, at);
    return SNUG_OK;
}

/* --- what a row asks for while it is recorded ------------------------------------------------- */
static sn_record_call *record_of(sn_fn_call *f) {
    return &((sn_eager_call *)f)->r;
}

const snug_type *sn_eager_type(const snug_argument *a) {
    return snug_tensor_type(a->tensor);
}

static sn_value use(sn_fn_call *f, const snug_argument *a) {
    return sn_record_use(record_of(f), a->tensor);
}

static int64_t draw(sn_fn_call *f) {
    return sn_record_draw(record_of(f));
}

static int64_t draw_seeded(sn_fn_call *f, int64_t seed) {
    return sn_record_seeded(record_of(f), f->names, seed);
}

static const sn_fn_door recording = {
    .use = use, .type = sn_eager_type, .draw = draw, .draw_seeded = draw_seeded};

/* Recorded tensors know all of their extents: -1 is for shapes of files. */
static bool is_known(const sn_eager_call *c, sn_value v) {
    const snug_type *t = sn_graph_type(c->r.b.graph, v);
    for (int k = 0; k < t->rank; k++)
        if (t->dims[k] < 0)
            return false;
    return true;
}

static snug_status record(sn_eager_call *c, sn_fn build, snug_tensor **given, int max,
                          snug_error *err) {
    sn_fn_call *const f = &c->f;
    SNUG_TRY(sn_record_begin(c->r.r, &c->r, err));
    f->b = &c->r.b;
    f->door = &recording;
    memset(f->out, 0xff, (size_t)max * sizeof *f->out);
    build(f);
    if (f->n_out > max)
        sn_fn_refuse(f, SNUG_E_UNSUPPORTED, "%d results; at most %d are possible", f->n_out, max);
    for (int i = 0; !f->known && i < f->n_out && !sn_fn_failed(f); i++) {
        if (!sn_value_ok(f->out[i]))
            sn_fn_refuse(f, SNUG_E_INVALID, "an argument is missing");
        else if (!is_known(c, f->out[i]))
            sn_fn_refuse(f, SNUG_E_SHAPE, "an extent is negative");
        else
            given[i] = sn_record_give(&c->r, sn_fn_result(f, i));
    }
    return sn_record_end(&c->r, err);
}

static snug_status call_row(snug_recorder *r, int function, const snug_argument *args, int n_args,
                            bool folds, snug_tensor **outputs, int max, int *n_out,
                            snug_error *err) {
    const sn_fn_row *const row = sn_function_row(function);
    snug_tensor *given[SN_FN_MAX_OUT];
    sn_eager_call c;
    if (n_args > SN_FN_MAX_ARGS)
        return sn_fail(err, SNUG_E_INVALID, "%d arguments; at most %d", n_args, SN_FN_MAX_ARGS);
    sn_fn_begin(&c.f, row, args, n_args);
    c.r.r = r;
    c.fold = NULL;
    c.n_made = 0;
    snug_status status = prepare(&c, err);
    bool done = false;
    if (status == SNUG_OK && folds && sn_eager_is_small(&c))
        status = sn_eager_fold(&c, row->build, given, &done, err);
    if (status == SNUG_OK && !done)
        status = record(&c, row->build, given, max < SN_FN_MAX_OUT ? max : SN_FN_MAX_OUT, err);
    if (status == SNUG_OK && c.f.known)
        status = give_known(&c, &given[0], err);
    for (int i = 0; i < c.n_made; i++)
        snug_tensor_drop(c.made[i]);
    sn_fn_end(&c.f, snug_recorder_engine(r));
    if (status != SNUG_OK)
        return status;
    memcpy(outputs, given, (size_t)c.f.n_out * sizeof *given);
    *n_out = c.f.n_out;
    return SNUG_OK;
}

snug_status snug_function_call(snug_recorder *r, int function, const snug_argument *args,
                               int n_args, snug_tensor **outputs, int max, int *n_out,
                               snug_error *err) {
    SNUG_NEEDS(err, r && (args || n_args == 0) && (outputs || max == 0) && max >= 0 && n_out &&
                        function >= 0 && function < snug_function_count());
    return call_row(r, function, args, n_args, true, outputs, max, n_out, err);
}

snug_status sn_function_record(snug_recorder *r, int function, const snug_argument *args,
                               int n_args, snug_tensor **outputs, int max, int *n_out,
                               snug_error *err) {
    return call_row(r, function, args, n_args, false, outputs, max, n_out, err);
}
