/* fold.c: a call on a few whole numbers that are there, such as tf.shape(x)[0] * 2, is computed at
 * once, without the recording: on a graph of its own, by the naive executor. What depends on it as
 * a setting (the shape of a reshape) is then known in traces too, and no run is needed for it.
 *
 * 1. Only tensors with bytes of up to MAX_ELEMENTS whole numbers or truth values go in, and only
 * such come out; anything else is recorded as usual.
 * 2. Random functions are never computed here: a trace draws anew at each call. */
#include "eager/eager_call.h"

#include "exec/exec.h"

#include <stdio.h>
#include <string.h>

#define MAX_ELEMENTS 8
#define MAX_TENSORS  8

typedef struct sn_fold {
    snug_tensor *tensor[MAX_TENSORS]; /* inputs of the graph */
    int n;
} sn_fold;

/* --- what is small ---------------------------------------------------------------------------- */
static bool is_small(const snug_type *t) {
    int64_t n = 1;
    if (t->dtype != SNUG_I32 && t->dtype != SNUG_I64 && t->dtype != SNUG_BOOL)
        return false;
    for (int k = 0; k < t->rank; k++)
        n = t->dims[k] <= MAX_ELEMENTS ? n * t->dims[k] : MAX_ELEMENTS + 1;
    return n <= MAX_ELEMENTS;
}

/* Counts tensors; false where one is not small or has no bytes, or where floats are asked for. */
static bool are_small(const snug_argument *a, int *n) {
    if (a->kind == SNUG_ARG_DTYPE)
        return !sn_dtype_is_float(a->dtype);
    if (a->kind == SNUG_ARG_TENSOR) {
        ++*n;
        return is_small(snug_tensor_type(a->tensor)) && snug_tensor_is_ready(a->tensor);
    }
    for (int i = 0; a->kind == SNUG_ARG_LIST && i < a->list.n; i++)
        if (!are_small(&a->list.items[i], n))
            return false;
    return true;
}

/* What makes multiples of extents of extents: of a trace for any size these are known, too.
 * Products of two of them may not fit their dtype: they are recorded. */
static bool keeps_extents(unsigned traits, int n_open) {
    return traits & (SNUG_FUNCTION_EXTENTS | (n_open == 1 ? SNUG_FUNCTION_SCALES : 0u));
}

static bool has_open(const snug_argument *a) {
    bool any = a->kind == SNUG_ARG_TENSOR && snug_tensor_is_open(a->tensor);
    for (int i = 0; a->kind == SNUG_ARG_LIST && i < a->list.n && !any; i++)
        any = has_open(&a->list.items[i]);
    return any;
}

bool sn_eager_is_small(const sn_eager_call *c) {
    int n = 0;
    for (int i = 0; i < c->f.n_args; i++)
        if (!are_small(&c->f.arg[i], &n))
            return false;
    int n_open = 0;
    for (int i = 0; n > 0 && snug_is_tracing(c->r.r) && i < c->f.n_args; i++)
        n_open += has_open(&c->f.arg[i]);
    if (n_open > 0 && !keeps_extents(c->f.traits, n_open))
        return false;
    return n > 0 && n <= MAX_TENSORS &&
           !(c->f.traits & (SNUG_FUNCTION_DRAWS | SNUG_FUNCTION_SEEDED));
}

/* --- the graph -------------------------------------------------------------------------------- */
static sn_value use(sn_fn_call *f, const snug_argument *a) {
    sn_eager_call *const c = (sn_eager_call *)f;
    sn_fold *const fold = c->fold;
    sn_value v = SN_NO_VALUE;
    char name[16];
    snprintf(name, sizeof name, "x%d", fold->n);
    if (fold->n == MAX_TENSORS)
        sn_fn_refuse(f, SNUG_E_INTERNAL, "more than %d tensors", MAX_TENSORS);
    else if (sn_graph_input(f->b->graph, name, sn_eager_type(a), &v, &f->b->error) == SNUG_OK)
        fold->tensor[fold->n++] = a->tensor;
    return v;
}

static bool knows(const sn_fn_call *f, const snug_argument *a, bool *zero) {
    snug_view v;
    (void)f;
    if (a->kind != SNUG_ARG_TENSOR || snug_tensor_pin(a->tensor, &v, NULL) != SNUG_OK)
        return false;
    const size_t bytes = snug_dtype_bytes(v.type.dtype);
    const int64_t n = sn_type_count(&v.type), none = 0;
    for (int64_t i = 0; i < n && !*zero; i++)
        *zero = memcmp((const char *)v.data + (size_t)i * bytes, &none, bytes) == 0;
    snug_tensor_unpin(a->tensor);
    return true;
}

/* No keys: what draws is not computed here. */
static const sn_fn_door folding = {.use = use, .type = sn_eager_type, .knows = knows};

static snug_status fill_input(void *ctx, int64_t first, int64_t n, const snug_view *to,
                              snug_error *err) {
    (void)first, (void)n;
    return snug_tensor_read(ctx, to->data, to->bytes, err);
}

/* Memory for the results, which are named; false when one is of another kind. */
static snug_status make_outputs(sn_eager_call *c, snug_tensor **given, snug_view *views, bool *fits,
                                snug_error *err) {
    sn_graph *const g = c->r.b.graph;
    for (int i = 0; i < c->f.n_out; i++) {
        char name[16];
        *fits = sn_value_ok(c->f.out[i]); /* else an argument is missing: recording says so */
        if (!*fits)
            return SNUG_OK;
        const snug_type t = *sn_graph_type(g, c->f.out[i]);
        *fits = c->f.n_out <= MAX_TENSORS && is_small(&t);
        if (!*fits)
            return SNUG_OK;
        snprintf(name, sizeof name, "y%d", i);
        SNUG_TRY(sn_graph_output(g, name, c->f.out[i], err));
        views[i].type = t;
        SNUG_TRY(snug_type_bytes(&t, &views[i].bytes, err));
        SNUG_TRY(snug_tensor_fresh(c->r.r, &t, &given[i], &views[i].data, err));
    }
    return SNUG_OK;
}

static snug_status run(sn_eager_call *c, snug_view *views, snug_error *err) {
    sn_input_binding inputs[MAX_TENSORS];
    memset(inputs, 0, sizeof inputs);
    for (int i = 0; i < c->fold->n; i++)
        inputs[i] = (sn_input_binding){.ctx = c->fold->tensor[i], .fill = fill_input};
    const sn_naive_options o = {.inputs = inputs, .outputs = views};
    return sn_naive_run(sn_graph_engine(c->r.b.graph), c->r.b.graph, NULL, &o, err);
}

static snug_status fold_on(sn_eager_call *c, sn_fn build, snug_tensor **given, bool *done,
                           snug_error *err) {
    snug_view views[MAX_TENSORS];
    bool fits = true;
    c->f.b = &c->r.b;
    c->f.door = &folding;
    memset(c->f.out, 0xff, sizeof c->f.out);
    build(&c->f);
    SNUG_TRY(sn_builder_done(&c->r.b, err));
    if (c->f.known) {
        *done = true;
        return SNUG_OK;
    }
    for (int i = 0; i < MAX_TENSORS; i++)
        given[i] = NULL;
    snug_status status = make_outputs(c, given, views, &fits, err);
    if (status == SNUG_OK && fits)
        status = run(c, views, err);
    *done = status == SNUG_OK && fits;
    for (int i = 0; !*done && i < MAX_TENSORS; i++)
        snug_tensor_drop(given[i]);
    return status;
}

snug_status sn_eager_fold(sn_eager_call *c, sn_fn build, snug_tensor **given, bool *done,
                          snug_error *err) {
    sn_fold fold = {.n = 0};
    sn_graph *g;
    *done = false;
    SNUG_TRY(sn_graph_create(snug_recorder_engine(c->r.r), &g, err));
    c->fold = &fold;
    c->r.b = sn_builder_on(g);
    const snug_status status = fold_on(c, build, given, done, err);
    c->fold = NULL;
    if (!*done) {
        c->f.n_out = 1;
        c->f.known = NULL;
    }
    sn_graph_destroy(g);
    return status;
}
