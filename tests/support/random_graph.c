/* random_graph.c: a pool of values; each step picks a maker from a table and adds what it builds to
 * the pool. Newer values are picked more often, so that graphs are deep as well as wide. */
#include "support/random_graph.h"

#include <stdio.h>

enum { MAX_POOL = 48000, MAX_VARS = 8000 };

typedef struct {
    sn_builder b;
    snug_dtype dtype;
    bool smooth;
    uint64_t state;
    sn_value pool[MAX_POOL];
    int n_pool;
    sn_var vars[MAX_VARS];
    int n_vars;
    sn_value total; /* a sum of means of values on the way: keeps most nodes needed */
} maker;

static uint32_t draw(maker *m, uint32_t below) {
    m->state = m->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((m->state >> 33) % below);
}

static void keep(maker *m, sn_value v) {
    if (sn_value_ok(v) && m->n_pool < MAX_POOL)
        m->pool[m->n_pool++] = v;
}

static const snug_type *type_of(const maker *m, sn_value v) {
    return sn_graph_type(m->b.graph, v);
}

static bool alive(const maker *m) {
    return m->b.error.code == SNUG_OK;
}

/* Mostly one of the newest eight, sometimes any. */
static sn_value pick(maker *m) {
    const int recent = m->n_pool < 8 ? m->n_pool : 8;
    if (draw(m, 4) > 0)
        return m->pool[m->n_pool - 1 - (int)draw(m, (uint32_t)recent)];
    return m->pool[draw(m, (uint32_t)m->n_pool)];
}

/* A value of the same type, if a few tries find one; else x. */
static sn_value pick_like(maker *m, sn_value x) {
    for (int i = 0; i < 8; i++) {
        const sn_value v = pick(m);
        if (sn_type_equal(type_of(m, v), type_of(m, x)))
            return v;
    }
    return x;
}

static sn_value add_variable(maker *m, const snug_type *type) {
    char name[32];
    sn_value v = SN_NO_VALUE;
    const uint32_t home = sn_graph_n_vars(m->b.graph);
    snprintf(name, sizeof name, "v%u", home);
    const sn_variable var = {
        .name = name,
        .type = *type,
        .home = home,
        .trainable = true,
        .init = {.kind = SN_RECIPE_UNIFORM, .key = home + 1, .a = -0.5, .b = 0.5}};
    if (alive(m) && m->n_vars < MAX_VARS &&
        sn_graph_variable(m->b.graph, &var, &v, &m->b.error) == SNUG_OK)
        m->vars[m->n_vars++] = (sn_var){home};
    return v;
}

/* A version of a variable of this type: the newest, rarely the first; else a new variable. */
static sn_value variable_like(maker *m, const snug_type *type) {
    for (int i = 0; i < 6 && m->n_vars > 0; i++) {
        const sn_var v = m->vars[draw(m, (uint32_t)m->n_vars)];
        const sn_variable *var = sn_graph_var_at(m->b.graph, v);
        if (sn_type_equal(&var->type, type))
            return draw(m, 8) == 0 ? var->first : var->last;
    }
    return add_variable(m, type);
}

static snug_type vector_type(const maker *m, int64_t n) {
    return (snug_type){.dtype = m->dtype, .rank = 1, .dims = {n}};
}

static int64_t channels_of(const maker *m, sn_value x) {
    const snug_type *t = type_of(m, x);
    return t->dims[t->rank - 1];
}

static void make_unary(maker *m) {
    static const sn_op ops[] = {SN_OP_relu, SN_OP_tanh, SN_OP_sigmoid,
                                SN_OP_neg,  SN_OP_abs,  SN_OP_softmax};
    const sn_value x = pick(m);
    keep(m, sn_build(&m->b, ops[draw(m, 6)], NULL, &x, 1));
}

static void make_binary(maker *m) {
    static const sn_op ops[] = {SN_OP_add, SN_OP_sub, SN_OP_mul, SN_OP_maximum};
    const sn_value x = pick(m);
    const sn_value in[2] = {x, draw(m, 6) == 0 ? x : pick_like(m, x)};
    keep(m, sn_build(&m->b, ops[draw(m, 4)], NULL, in, 2));
}

static void make_gradient(maker *m) {
    static const sn_op ops[] = {SN_OP_relu_grad, SN_OP_tanh_grad, SN_OP_sigmoid_grad,
                                SN_OP_softmax_grad};
    const sn_value x = pick(m);
    const sn_value in[2] = {x, pick_like(m, x)};
    keep(m, sn_build(&m->b, ops[m->smooth ? 1 + draw(m, 3) : draw(m, 4)], NULL, in, 2));
}

static void make_broadcast(maker *m) {
    const sn_value x = pick(m);
    const snug_type row = vector_type(m, channels_of(m, x));
    keep(m, sn_build_add(&m->b, variable_like(m, &row), x));
}

static void make_reshape(maker *m) {
    const sn_value x = pick(m);
    const snug_type *t = type_of(m, x);
    const int64_t flipped[2] = {t->dims[1], t->dims[0]};
    if (draw(m, 2) == 0)
        keep(m, sn_build_reshape(&m->b, x, flipped, 2));
    else
        keep(m, sn_build_identity(&m->b, x));
}

/* [r, 2 c] as [2 r, c], or back: axes merged, as of examples and steps of a sequence. */
static void make_merge(maker *m) {
    const sn_value x = pick(m);
    const snug_type *t = type_of(m, x);
    const bool up = draw(m, 2) == 0;
    const int64_t r = t->dims[0], c = t->dims[1];
    if (up ? r % 2 != 0 : c % 2 != 0)
        return;
    const int64_t dims[2] = {up ? r / 2 : 2 * r, up ? 2 * c : c / 2};
    keep(m, sn_build_reshape(&m->b, x, dims, 2));
}

static void make_transpose(maker *m) {
    static const int perm[2] = {1, 0};
    keep(m, sn_build_transpose(&m->b, pick(m), perm));
}

/* A sum that is used again, spread over the rows it came from. */
static void make_reduction(maker *m) {
    const sn_value x = pick(m);
    const sn_value mean = sn_build_mean(&m->b, x, 1u << draw(m, 2), true);
    if (!alive(m))
        return;
    const snug_type like = *type_of(m, x);
    if (draw(m, 2) == 0)
        keep(m, sn_build_sub(&m->b, x, mean));
    else
        keep(m, sn_build_broadcast_to(&m->b, mean, &like));
}

static void make_matmul(maker *m) {
    const sn_value x = pick(m);
    const int64_t k = channels_of(m, x), n = 1 + draw(m, 12);
    const snug_type w = {.dtype = m->dtype, .rank = 2, .dims = {k, n}};
    const snug_type bias = vector_type(m, n);
    const bool biased = draw(m, 2) == 0;
    const sn_value kernel = variable_like(m, &w);
    const sn_value shift = biased ? variable_like(m, &bias) : SN_NO_VALUE;
    keep(m, sn_build_tanh(&m->b, sn_build_matmul(&m->b, x, kernel, shift)));
}

/* The gradient of a product: x^T y, which accumulates when split. */
static void make_matmul_t(maker *m) {
    const sn_value x = pick(m);
    keep(m, sn_build_tanh(&m->b, sn_build_matmul_t(&m->b, x, pick_like(m, x), true, false)));
}

static void make_layernorm(maker *m) {
    const sn_value x = pick(m);
    const snug_type row = vector_type(m, channels_of(m, x));
    sn_value outs[SN_MAX_OUT];
    sn_attrs a;
    sn_attrs_default(SN_OP_layernorm, &a);
    a.epsilon.epsilon = sn_build_param(&m->b, "", 1e-3).i;
    const sn_value in[3] = {x, variable_like(m, &row), variable_like(m, &row)};
    sn_build_all(&m->b, SN_OP_layernorm, &a, in, 3, outs);
    if (!alive(m))
        return;
    keep(m, outs[0]);
    if (draw(m, 3) == 0) { /* otherwise outputs 1 and 2 have no reader */
        const snug_type *t = type_of(m, x);
        const int64_t column[2] = {t->dims[0], 1};
        keep(m, sn_build_mul(&m->b, x,
                             sn_build_tanh(&m->b, sn_build_reshape(&m->b, outs[1], column, 2))));
    }
}

static void make_moments(maker *m) {
    const sn_value x = pick(m);
    const int64_t rows = type_of(m, x)->dims[0], n = channels_of(m, x);
    const int64_t shape[2] = {1, n};
    sn_value outs[SN_MAX_OUT];
    if (rows == 0)
        return;
    sn_build_all(&m->b, SN_OP_moments, NULL, &x, 1, outs);
    const sn_value mean =
        sn_build_cast(&m->b, sn_build_affine(&m->b, outs[0], 1.0 / (double)rows, 0.0), m->dtype);
    keep(m, sn_build_sub(&m->b, x, sn_build_reshape(&m->b, mean, shape, 2)));
}

static void make_concat(maker *m) {
    const sn_value x = pick(m);
    const sn_value in[2] = {x, pick_like(m, x)};
    sn_attrs a;
    sn_attrs_default(SN_OP_concat, &a);
    a.axis.axis = (int64_t)draw(m, 2);
    if (sn_type_count(type_of(m, x)) <= 500)
        keep(m, sn_build(&m->b, SN_OP_concat, &a, in, 2));
}

static void make_slice(maker *m) {
    const sn_value x = pick(m);
    const snug_type *t = type_of(m, x);
    sn_attrs a;
    sn_attrs_default(SN_OP_slice, &a);
    a.slice.sizes = (sn_list){
        2,
        {1 + (int64_t)draw(m, (uint32_t)t->dims[0]), 1 + (int64_t)draw(m, (uint32_t)t->dims[1])}};
    a.slice.strides = (sn_list){2, {1, 1}};
    for (int k = 0; k < 8; k++)
        a.slice.start[k] = sn_build_key(&m->b, "", 0).i;
    keep(m, sn_build(&m->b, SN_OP_slice, &a, &x, 1));
}

static void make_fill(maker *m) {
    const snug_type t = {
        .dtype = m->dtype, .rank = 2, .dims = {1 + (int64_t)draw(m, 8), 1 + (int64_t)draw(m, 16)}};
    sn_attrs a;
    if (draw(m, 2) == 0) {
        keep(m, sn_build_fill(&m->b, &t, 0.25));
        return;
    }
    sn_attrs_default(SN_OP_random, &a);
    a.random.dims = (sn_list){2, {t.dims[0], t.dims[1]}};
    a.random.dtype = m->dtype;
    a.random.key = sn_build_key(&m->b, "", (int64_t)draw(m, 1000)).i;
    a.random.low = sn_build_param(&m->b, "", -1.0).i;
    a.random.high = sn_build_param(&m->b, "", 1.0).i;
    keep(m, sn_build(&m->b, SN_OP_random, &a, NULL, 0));
}

static void make_dropout(maker *m) {
    const sn_value x = pick(m);
    sn_attrs a;
    sn_attrs_default(SN_OP_dropout, &a);
    a.dropout.rate = sn_build_param(&m->b, "", 0.25).i;
    a.dropout.key = sn_build_key(&m->b, "", (int64_t)draw(m, 1000)).i;
    keep(m, sn_build_tanh(&m->b, sn_build(&m->b, SN_OP_dropout, &a, &x, 1)));
}

static void make_check(maker *m) {
    keep(m, sn_build_check_finite(&m->b, sn_build_tanh(&m->b, pick(m))));
}

/* An update of a variable by a value of its type; each variable at most twice. */
static void make_update(maker *m) {
    static const sn_op ops[] = {SN_OP_assign, SN_OP_assign_add, SN_OP_sgd};
    const sn_value x = sn_build_tanh(&m->b, pick(m));
    if (!alive(m))
        return;
    const snug_type type = *type_of(m, x);
    (void)variable_like(m, &type);
    for (int i = 0; i < m->n_vars && alive(m); i++) {
        const sn_variable *var = sn_graph_var_at(m->b.graph, m->vars[i]);
        const sn_op op = ops[draw(m, 3)];
        sn_attrs a;
        if (!sn_type_equal(&var->type, &type) ||
            sn_graph_value_at(m->b.graph, var->last)->version > 1)
            continue;
        sn_attrs_default(op, &a);
        if (op == SN_OP_sgd) {
            a.sgd.rate = sn_build_param(&m->b, "", 0.01).i;
            a.sgd.momentum = sn_build_param(&m->b, "", 0.0).i;
        }
        const sn_value in[2] = {var->last, x};
        const sn_value next = sn_build(&m->b, op, &a, in, 2);
        if (draw(m, 3) == 0)
            keep(m, sn_build_tanh(&m->b, next));
        return;
    }
}

static void make_vector_update(maker *m) {
    static const sn_op ops[] = {SN_OP_assign, SN_OP_assign_add};
    const sn_value x = pick(m);
    const snug_type row = vector_type(m, channels_of(m, x));
    const sn_value sum = sn_build_tanh(&m->b, sn_build_sum(&m->b, x, 1u, false));
    if (!alive(m))
        return;
    for (int i = 0; i < m->n_vars; i++) {
        const sn_variable *var = sn_graph_var_at(m->b.graph, m->vars[i]);
        if (!sn_type_equal(&var->type, &row) ||
            sn_graph_value_at(m->b.graph, var->last)->version > 1)
            continue;
        const sn_value in[2] = {var->last, sum};
        (void)sn_build(&m->b, ops[draw(m, 2)], NULL, in, 2);
        return;
    }
}

/*  how often, what */
static const struct {
    int weight;
    void (*make)(maker *m);
} makers[] = {
    {10, make_unary},   {10, make_binary},       {4, make_gradient},  {4, make_broadcast},
    {5, make_reshape},  {2, make_transpose},     {5, make_reduction}, {6, make_matmul},
    {2, make_matmul_t}, {3, make_layernorm},     {3, make_moments},   {2, make_concat},
    {2, make_slice},    {2, make_fill},          {2, make_dropout},   {2, make_check},
    {4, make_update},   {2, make_vector_update}, {4, make_merge},
};

static void count_in(maker *m, sn_value v) {
    const sn_value mean = sn_build_mean(&m->b, v, 0, false);
    m->total = sn_value_ok(m->total) ? sn_build_add(&m->b, m->total, mean) : mean;
}

static void make_one(maker *m) {
    int total = 0;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        total += makers[i].weight;
    int at = (int)draw(m, (uint32_t)total);
    size_t i = 0;
    while (at >= makers[i].weight)
        at -= makers[i++].weight;
    makers[i].make(m);
    if (alive(m) && draw(m, 5) == 0)
        count_in(m, m->pool[m->n_pool - 1]);
}

static void add_inputs(maker *m) {
    const int n = 1 + (int)draw(m, 3);
    const int64_t rows = 1 + (int64_t)draw(m, 8);
    for (int i = 0; i < n && alive(m); i++) {
        char name[16];
        sn_value v;
        const snug_type t = {
            .dtype = m->dtype, .rank = 2, .dims = {rows, 1 + (int64_t)draw(m, 16)}};
        snprintf(name, sizeof name, "x%d", i);
        if (sn_graph_input(m->b.graph, name, &t, &v, &m->b.error) == SNUG_OK)
            keep(m, v);
    }
}

static void add_outputs(maker *m) {
    if (sn_value_ok(m->total))
        (void)!sn_graph_output(m->b.graph, "total", m->total, &m->b.error);
    const int n = 1 + (int)draw(m, 4);
    for (int i = 0; i < n && alive(m); i++) {
        char name[16];
        const sn_value v = i == 0 ? m->pool[m->n_pool - 1] : m->pool[draw(m, (uint32_t)m->n_pool)];
        snprintf(name, sizeof name, "y%d", i);
        (void)!sn_graph_output(m->b.graph, name, v, &m->b.error);
    }
    if (m->n_vars > 0 && draw(m, 3) == 0 && alive(m)) {
        const sn_variable *var = sn_graph_var_at(m->b.graph, m->vars[draw(m, (uint32_t)m->n_vars)]);
        const sn_value version = draw(m, 2) == 0 ? var->first : var->last;
        (void)!sn_graph_output(m->b.graph, "version", version, &m->b.error);
    }
}

static snug_status make_graph(snug_engine *e, uint64_t seed, int n_nodes, bool smooth,
                              sn_graph **out, snug_error *err) {
    static maker shared; /* large; tests are single threaded */
    maker *m = &shared;
    sn_graph *g;
    SNUG_TRY(sn_graph_create(e, &g, err));
    *m = (maker){.b = sn_builder_on(g),
                 .dtype = smooth ? SNUG_F64 : SNUG_F32,
                 .smooth = smooth,
                 .total = SN_NO_VALUE,
                 .state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    (void)draw(m, 2);
    add_inputs(m);
    while (alive(m) && sn_graph_n_nodes(g) < (uint32_t)n_nodes && m->n_pool < MAX_POOL)
        make_one(m);
    add_outputs(m);
    const snug_status st = sn_builder_done(&m->b, err);
    if (st != SNUG_OK) {
        sn_graph_destroy(g);
        return st;
    }
    *out = g;
    return SNUG_OK;
}

snug_status sn_random_graph(snug_engine *e, uint64_t seed, int n_nodes, sn_graph **out,
                            snug_error *err) {
    return make_graph(e, seed, n_nodes, false, out, err);
}

snug_status sn_random_smooth_graph(snug_engine *e, uint64_t seed, int n_nodes, sn_graph **out,
                                   snug_error *err) {
    return make_graph(e, seed, n_nodes, true, out, err);
}

snug_status sn_random_fill_input(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                                 snug_error *err) {
    const uint64_t *key = ctx;
    (void)n_rows;
    const size_t n = (size_t)sn_type_count(&dst->type);
    const int64_t row = dst->type.rank > 0 ? sn_type_span(&dst->type, 1, dst->type.rank) : 1;
    const bool whole = sn_dtype_is_int(dst->type.dtype) || dst->type.dtype == SNUG_BOOL;
    const sn_recipe r = {.kind = whole ? SN_RECIPE_LABELS : SN_RECIPE_UNIFORM,
                         .key = *key,
                         .a = 0.5,
                         .b = whole ? 2 : 1.5};
    return sn_recipe_fill(&r, (uint64_t)(first_row * row), n, dst->type.dtype, dst->data, err);
}
