/* test_graph.c: rules of the graph: ids and versions, errors that change nothing, the text form,
 * templates, the checker. */
#include "support/support.h"
#include "support/text.h"

#include "graph/build.h"
#include "graph/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const snug_type matrix = {.dtype = SNUG_F32, .rank = 2, .dims = {4, 3}};
static const snug_type weights = {.dtype = SNUG_F32, .rank = 2, .dims = {3, 2}};
static const snug_type vector = {.dtype = SNUG_F32, .rank = 1, .dims = {2}};

static char *print_graph(const sn_graph *g) {
    snug_error err;
    sn_test_text t = {0};
    const snug_writer w = sn_test_text_writer(&t);
    expect_ok(sn_graph_print(g, &w, &err), &err);
    return t.data;
}

/* Graph, input x, variables w and b. */
typedef struct {
    sn_graph *g;
    sn_value x, w, b;
} fixture;

static snug_status make_fixture(snug_engine *e, fixture *f, snug_error *err) {
    SNUG_TRY(sn_graph_create(e, &f->g, err));
    snug_status status = sn_graph_set_owner(f->g, "dense", err);
    if (status == SNUG_OK)
        status = sn_graph_input(f->g, "x", &matrix, &f->x, err);
    if (status == SNUG_OK)
        status = sn_graph_variable(f->g,
                                   &(sn_variable){.name = "dense/kernel",
                                                  .type = weights,
                                                  .home = 0,
                                                  .trainable = true,
                                                  .init = {SN_RECIPE_UNIFORM, 7, -0.1, 0.1}},
                                   &f->w, err);
    if (status == SNUG_OK)
        status = sn_graph_variable(
            f->g, &(sn_variable){.name = "dense/bias", .type = vector, .home = 1, .slot = true},
            &f->b, err);
    if (status != SNUG_OK)
        sn_graph_destroy(f->g);
    return status;
}

static fixture begin(void **state) {
    snug_error err;
    fixture f;
    expect_ok(make_fixture(*state, &f, &err), &err);
    return f;
}

/* The call fails with this status and text and leaves the printed graph as it was. */
#define expect_refused(f, call, status, piece)                                                     \
    do {                                                                                           \
        char *before = print_graph((f)->g);                                                        \
        expect_status((call), (status), &err);                                                     \
        expect_text(err.text, (piece));                                                            \
        char *after = print_graph((f)->g);                                                         \
        assert_string_equal(before, after);                                                        \
        free(before);                                                                              \
        free(after);                                                                               \
    } while (0)

/* --- building --- */

static void test_graph_numbers_values_in_order(void **state) {
    fixture f = begin(state);
    sn_builder b = sn_builder_on(f.g);
    const sn_value y = sn_build_matmul(&b, f.x, f.w, f.b);
    const sn_value z = sn_build_relu(&b, y);
    expect_ok(sn_builder_done(&b, &b.error), &b.error);
    assert_int_equal(f.x.i, 0);
    assert_int_equal(f.b.i, 2);
    assert_int_equal(y.i, 3);
    assert_int_equal(z.i, 4);
    assert_int_equal(sn_graph_n_nodes(f.g), 2);
    const sn_value_info *info = sn_graph_value_at(f.g, z);
    assert_int_equal(info->kind, SN_VALUE_OUTPUT);
    assert_int_equal(info->node.i, 1);
    assert_int_equal(info->var, -1);
    assert_int_equal(info->type.dims[1], 2);
    assert_string_equal(sn_graph_owner_name(f.g, sn_graph_node_at(f.g, (sn_node){1})->owner),
                        "dense");
    assert_true(sn_graph_bytes(f.g) >= sizeof(sn_graph));
    sn_graph_destroy(f.g);
}

static void test_graph_refuses_names_twice(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_value v = SN_NO_VALUE;
    expect_ok(sn_graph_output(f.g, "y", f.x, &err), &err);
    expect_refused(&f, sn_graph_input(f.g, "x", &matrix, &v, &err), SNUG_E_INVALID, "'x'");
    expect_refused(&f, sn_graph_output(f.g, "y", f.w, &err), SNUG_E_INVALID, "'y'");
    expect_refused(
        &f,
        sn_graph_variable(f.g, &(sn_variable){.name = "dense/bias", .type = vector, .home = 5}, &v,
                          &err),
        SNUG_E_INVALID, "dense/bias");
    expect_refused(&f,
                   sn_graph_variable(
                       f.g, &(sn_variable){.name = "other", .type = vector, .home = 1}, &v, &err),
                   SNUG_E_INVALID, "home 1");
    expect_refused(&f, sn_graph_input(f.g, "a b", &matrix, &v, &err), SNUG_E_INVALID, "blank");
    sn_value named;
    const char *const none[] = {
        "a\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xfc\x80\x80\x80", "b\xc3"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        expect_refused(&f, sn_graph_input(f.g, none[i], &matrix, &v, &err), SNUG_E_INVALID,
                       "UTF-8");
    assert_int_equal(
        sn_graph_input(f.g, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", &matrix, &named, &err),
        SNUG_OK);
    expect_refused(&f, sn_graph_input(f.g, "", &matrix, &v, &err), SNUG_E_INVALID, "name");
    assert_false(sn_value_ok(v));
    sn_graph_destroy(f.g);
}

static void test_graph_node_refuses_what_is_not_there(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_value out[SN_MAX_OUT] = {SN_NO_VALUE};
    const sn_value missing[2] = {f.x, {77}};
    expect_refused(&f, sn_graph_node(f.g, SN_OP_add, NULL, missing, 2, out, NULL, &err),
                   SNUG_E_INVALID, "77");
    expect_refused(&f, sn_graph_node(f.g, SN_OP_add, NULL, missing, 1, out, NULL, &err),
                   SNUG_E_INVALID, "add");
    expect_refused(&f, sn_graph_node(f.g, SN_N_OPS, NULL, missing, 1, out, NULL, &err),
                   SNUG_E_INVALID, "table");
    const sn_value misfit[2] = {f.x, f.x};
    expect_refused(&f, sn_graph_node(f.g, SN_OP_matmul, NULL, misfit, 2, out, NULL, &err),
                   SNUG_E_SHAPE, "matmul");
    assert_false(sn_value_ok(out[0]));
    sn_graph_destroy(f.g);
}

static void test_graph_params_must_exist_and_fit_the_field(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_value out[SN_MAX_OUT];
    sn_param real, key;
    sn_attrs a;
    sn_attrs_default(SN_OP_dropout, &a);
    expect_refused(&f, sn_graph_node(f.g, SN_OP_dropout, &a, &f.x, 1, out, NULL, &err),
                   SNUG_E_INVALID, "rate is not given");
    expect_ok(sn_graph_param(f.g,
                             &(sn_param_info){.name = "rate", .kind = SN_PARAM_REAL, .real = 0.5},
                             &real, &err),
              &err);
    expect_ok(sn_graph_param(f.g, &(sn_param_info){.kind = SN_PARAM_KEY, .key = -9}, &key, &err),
              &err);
    a.dropout.rate = real.i;
    a.dropout.key = real.i;
    expect_refused(&f, sn_graph_node(f.g, SN_OP_dropout, &a, &f.x, 1, out, NULL, &err),
                   SNUG_E_INVALID, "integer");
    a.dropout.key = key.i;
    expect_ok(sn_graph_node(f.g, SN_OP_dropout, &a, &f.x, 1, out, NULL, &err), &err);
    sn_graph_destroy(f.g);
}

static void test_graph_named_param_is_one_slot(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_param first, again;
    const sn_param_info rate = {.name = "lr", .kind = SN_PARAM_REAL, .real = 0.5};
    expect_ok(sn_graph_param(f.g, &rate, &first, &err), &err);
    expect_ok(sn_graph_param(f.g, &rate, &again, &err), &err);
    assert_int_equal(first.i, again.i);
    expect_refused(
        &f,
        sn_graph_param(f.g, &(sn_param_info){.name = "lr", .kind = SN_PARAM_REAL, .real = 0.25},
                       &again, &err),
        SNUG_E_INVALID, "lr");
    sn_graph_destroy(f.g);
}

static void test_graph_finds_by_name_or_lists_what_there_is(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_value v;
    uint32_t i = 9;
    sn_param p;
    expect_ok(sn_graph_input(f.g, "labels", &vector, &v, &err), &err);
    expect_ok(sn_graph_find_input(f.g, "labels", &i, &err), &err);
    assert_int_equal(i, 1);
    expect_status(sn_graph_find_input(f.g, "z", &i, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "x, labels");
    expect_status(sn_graph_find_output(f.g, "z", &i, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "none");
    expect_status(sn_graph_find_param(f.g, "lr", &p, &err), SNUG_E_INVALID, &err);
    sn_graph_destroy(f.g);
}

/* --- versions --- */

static void test_graph_state_makes_versions_in_one_chain(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_value out[SN_MAX_OUT];
    const sn_value first[2] = {f.w, f.w}, not_variable[2] = {f.x, f.x};
    expect_ok(sn_graph_node(f.g, SN_OP_assign_add, NULL, first, 2, out, NULL, &err), &err);
    const sn_value second = out[0];
    assert_int_equal(sn_graph_value_at(f.g, second)->version, 1);
    assert_int_equal(sn_graph_value_at(f.g, second)->var, 0);
    assert_int_equal(sn_graph_var_at(f.g, (sn_var){0})->last.i, second.i);
    expect_refused(&f, sn_graph_node(f.g, SN_OP_assign, NULL, first, 2, out, NULL, &err),
                   SNUG_E_INVALID, "newest is 1");
    expect_refused(&f, sn_graph_node(f.g, SN_OP_assign, NULL, not_variable, 2, out, NULL, &err),
                   SNUG_E_INVALID, "not a variable");
    const sn_value next[2] = {second, f.w}; /* the old version may still be read */
    expect_ok(sn_graph_node(f.g, SN_OP_assign, NULL, next, 2, out, NULL, &err), &err);
    assert_int_equal(sn_graph_value_at(f.g, out[0])->version, 2);
    expect_ok(sn_graph_check(f.g, false, &err), &err);
    sn_graph_destroy(f.g);
}

static void test_graph_state_refuses_one_variable_twice(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_value out[SN_MAX_OUT];
    sn_param p;
    expect_ok(sn_graph_param(f.g, &(sn_param_info){.kind = SN_PARAM_REAL}, &p, &err), &err);
    const sn_value in[3] = {f.w, f.w, f.w};
    sn_attrs a;
    sn_attrs_default(SN_OP_sgd_momentum, &a);
    a.sgd.rate = a.sgd.momentum = p.i;
    expect_refused(&f, sn_graph_node(f.g, SN_OP_sgd_momentum, &a, in, 3, out, NULL, &err),
                   SNUG_E_INVALID, "same variable");
    sn_graph_destroy(f.g);
}

/* --- long graphs --- */

/* A chain; node i adds i to what node i - 1 makes. */
static void append_chain(sn_graph *g, sn_value x, uint32_t n) {
    snug_error err;
    sn_builder b = sn_builder_on(g);
    while (sn_graph_n_nodes(g) < n)
        x = sn_build_affine(&b, x, 2, sn_graph_n_nodes(g));
    expect_ok(sn_builder_done(&b, &err), &err);
}

static void expect_chain(const sn_graph *g, uint32_t n) {
    assert_int_equal(sn_graph_n_nodes(g), n);
    for (uint32_t i = 0; i < n; i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        const sn_param shift = {(uint32_t)node->attrs.affine.shift};
        assert_true(sn_graph_param_at(g, shift)->real == i);
        assert_int_equal(sn_graph_value_at(g, node->out[0])->node.i, i);
        assert_int_equal(sn_graph_type(g, node->out[0])->rank, 2);
    }
}

/* Pages double, then lie in the zone; a graph that is cleared begins anew with what it has. */
static void test_long_graphs_keep_what_was_appended(void **state) {
    enum { LONG = 20000, SHORT = 5000 };
    fixture f = begin(state);
    snug_error err;
    const snug_type type = *sn_graph_type(f.g, f.x);
    append_chain(f.g, f.x, SHORT);
    const sn_graph_mark mark = sn_graph_mark_now(f.g);
    append_chain(f.g, sn_graph_node_at(f.g, (sn_node){SHORT - 1})->out[0], LONG);
    expect_chain(f.g, LONG);
    sn_graph_go_back(f.g, &mark);
    expect_chain(f.g, SHORT);
    for (int round = 0; round < 2; round++) {
        const uint32_t n = round == 0 ? LONG : SHORT;
        sn_value x;
        expect_ok(sn_graph_clear(f.g, &err), &err);
        expect_ok(sn_graph_input(f.g, "x", &type, &x, &err), &err);
        append_chain(f.g, x, n);
        expect_chain(f.g, n);
    }
    sn_graph_destroy(f.g);
}

/* --- builder --- */

static void test_builder_keeps_the_first_error_and_names_the_layer(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_builder b = sn_builder_on(f.g);
    const sn_value bad = sn_build_matmul(&b, f.x, f.x, SN_NO_VALUE);
    const sn_value after = sn_build_relu(&b, bad);
    assert_false(sn_value_ok(bad) || sn_value_ok(after));
    expect_status(sn_builder_done(&b, &err), SNUG_E_SHAPE, &err);
    expect_text(err.text, "dense: matmul");
    assert_int_equal(sn_graph_n_nodes(f.g), 0);
    sn_graph_destroy(f.g);
}

static void test_builder_sum_to_undoes_broadcasting(void **state) {
    fixture f = begin(state);
    snug_error err;
    sn_value big;
    const snug_type cube = {.dtype = SNUG_F32, .rank = 3, .dims = {5, 4, 3}};
    const snug_type likes[] = {{SNUG_F32, 3, {5, 4, 3}}, {SNUG_F32, 1, {3}},
                               {SNUG_F32, 2, {4, 3}},    {SNUG_F32, 2, {1, 3}},
                               {SNUG_F32, 3, {5, 1, 1}}, {SNUG_F32, 0, {0}}};
    expect_ok(sn_graph_input(f.g, "cube", &cube, &big, &err), &err);
    for (size_t i = 0; i < sizeof likes / sizeof likes[0]; i++) {
        sn_builder b = sn_builder_on(f.g);
        const sn_value sum = sn_build_sum_to(&b, big, &likes[i]);
        expect_ok(sn_builder_done(&b, &err), &err);
        assert_true(sn_type_equal(sn_graph_type(f.g, sum), &likes[i]));
        assert_int_equal(sum.i == big.i, i == 0);
    }
    sn_graph_destroy(f.g);
}

/* --- text --- */

/* A graph with every kind of line: several outputs, parameters of all kinds, key vectors, versions,
 * parts. */
static snug_status build_rich(sn_graph *g, snug_error *err) {
    const snug_type image = {.dtype = SNUG_F64, .rank = 4, .dims = {2, 6, 6, 3}};
    sn_value x, w, outs[SN_MAX_OUT];
    SNUG_TRY(sn_graph_input(g, "image", &image, &x, err));
    sn_builder b = sn_builder_on(g);
    sn_attrs a;
    sn_attrs_default(SN_OP_maxpool, &a);
    a.pool.kernel[0] = a.pool.kernel[1] = a.pool.stride[0] = a.pool.stride[1] = 2;
    SNUG_TRY(sn_graph_set_owner(g, "pool", err));
    sn_build_all(&b, SN_OP_maxpool, &a, &x, 1, outs);
    sn_attrs_default(SN_OP_slice, &a);
    a.slice.sizes = (sn_list){4, {1, 3, 3, 2}};
    for (int i = 0; i < 4; i++)
        a.slice.start[i] = (int64_t)sn_build_key(&b, i == 3 ? "first" : "", i - 1).i;
    SNUG_TRY(sn_graph_set_owner(g, "", err));
    const sn_value part = sn_build(&b, SN_OP_slice, &a, &outs[0], 1);
    const sn_value mean = sn_build_mean(&b, sn_build_affine(&b, part, 0.1, 1e-300), 0x6, false);
    SNUG_TRY(sn_builder_done(&b, err));
    SNUG_TRY(sn_graph_variable(
        g, &(sn_variable){.name = "late", .type = *sn_graph_type(g, mean), .home = 3}, &w, err));
    sn_graph_set_part(g, SN_PART_UPDATE);
    sn_attrs_default(SN_OP_moving_average, &a);
    a.momentum.momentum = (int64_t)sn_build_param(&b, "momentum", 0.99).i;
    const sn_value in[2] = {w, mean};
    const sn_value next = sn_build(&b, SN_OP_moving_average, &a, in, 2);
    SNUG_TRY(sn_builder_done(&b, err));
    SNUG_TRY(sn_graph_output(g, "mean", mean, err));
    return sn_graph_output(g, "next", next, err);
}

static snug_status round_trip(snug_engine *e, const sn_graph *g, snug_error *err) {
    char *text = NULL, *again = NULL;
    sn_graph *parsed = NULL;
    sn_test_text t = {0}, u = {0};
    const snug_writer wt = sn_test_text_writer(&t), wu = sn_test_text_writer(&u);
    snug_status status = sn_graph_print(g, &wt, err);
    text = t.data;
    if (status == SNUG_OK)
        status = sn_graph_parse(e, text, &parsed, err);
    if (status == SNUG_OK)
        status = sn_graph_check(parsed, false, err);
    if (status == SNUG_OK)
        status = sn_graph_print(parsed, &wu, err);
    again = u.data;
    if (status == SNUG_OK)
        assert_string_equal(text, again);
    if (status == SNUG_OK)
        assert_int_equal(sn_graph_n_values(parsed), sn_graph_n_values(g));
    sn_graph_destroy(parsed);
    free(text);
    free(again);
    return status;
}

static void test_graph_text_round_trip_is_exact(void **state) {
    fixture f = begin(state);
    snug_error err;
    expect_ok(build_rich(f.g, &err), &err);
    expect_ok(round_trip(*state, f.g, &err), &err);
    char *text = print_graph(f.g);
    expect_text(text, "snug graph 1\nowner dense\nowner pool\n");
    expect_text(text, "%1 variable dense/kernel f32[3,2] home 0 trainable init uniform 7 "
                      "-0.10000000000000001 0.10000000000000001\n");
    expect_text(text, "| forward @pool -> f64[2,3,3,3] opaque[2,3,3,3]\n");
    expect_text(text, "inverse %");
    expect_text(text, "real 1e-300\n");
    expect_text(text, "| update -> f64[1,2]\n");
    free(text);
    sn_graph_destroy(f.g);
}

static void test_graph_text_keeps_special_numbers(void **state) {
    fixture f = begin(state);
    snug_error err;
    const double numbers[] = {0.1,      -0.0,     1.0 / 3, 5e-324, 1.7976931348623157e308,
                              INFINITY, -INFINITY};
    sn_graph *parsed;
    sn_param p;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        expect_ok(sn_graph_param(f.g, &(sn_param_info){.kind = SN_PARAM_REAL, .real = numbers[i]},
                                 &p, &err),
                  &err);
    expect_ok(
        sn_graph_param(f.g, &(sn_param_info){.kind = SN_PARAM_KEY, .key = INT64_MIN}, &p, &err),
        &err);
    char *text = print_graph(f.g);
    expect_ok(sn_graph_parse(*state, text, &parsed, &err), &err);
    for (uint32_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_memory_equal(&sn_graph_param_at(parsed, (sn_param){i})->real, &numbers[i],
                            sizeof(double));
    assert_true(sn_graph_param_at(parsed, p)->key == INT64_MIN);
    free(text);
    sn_graph_destroy(parsed);
    sn_graph_destroy(f.g);
}

static void test_graph_parse_errors_name_the_line(void **state) {
    static const struct {
        const char *text, *piece;
        snug_status status;
    } cases[] = {
        {"", "line 1", SNUG_E_FORMAT},
        {"snug graph 2\n", "line 1", SNUG_E_FORMAT},
        {"snug graph 1 more\n", "line 1", SNUG_E_FORMAT},
        {"snug graph 1\nwhat\n", "line 2", SNUG_E_FORMAT},
        {"snug graph 1\n\n# note\n%1 input x f32[2]\n", "line 4: value %1 where %0 is next",
         SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f33[2]\n", "line 2", SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2] tail\n", "line 2: expected the end of the line",
         SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2]\n%1 input x f32[2]\n", "line 3", SNUG_E_INVALID},
        {"snug graph 1\n%0 variable w f32[2] home 0 init magic 0 0 0\n", "constant", SNUG_E_FORMAT},
        {"snug graph 1\n%0 variable w f32[2] home -1 init constant 0 0 0\n", "line 2",
         SNUG_E_FORMAT},
        {"snug graph 1\np1 real 3\n", "p1 where p0", SNUG_E_FORMAT},
        {"snug graph 1\np0 real x\n", "line 2", SNUG_E_FORMAT},
        {"snug graph 1\np0 real\n5\n", "line 2", SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x opaque[4]\n", "'x' is opaque", SNUG_E_SHAPE},
        {"snug graph 1\n%0 variable v opaque[4] home 0 init constant 0 0 0\n", "'v' is opaque",
         SNUG_E_SHAPE},
        {"snug graph 1\np0 key 9223372036854775808\n", "line 2", SNUG_E_FORMAT},
        {"snug graph 1\np0 real 1 a\np1 real 1 a\n", "line 3", SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2]\n%1 = rellu(%0) | forward -> f32[2]\n", "relu",
         SNUG_E_INVALID},
        {"snug graph 1\n%0 input x f32[2]\n%1 = relu(%1) | forward -> f32[2]\n", "line 3: value %1",
         SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2]\n%1 = relu(%0) | sideways -> f32[2]\n", "forward",
         SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2]\n%1 = relu(%0) | forward -> f32[3]\n", "another type",
         SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2]\n%1 %2 = relu(%0) | forward -> f32[2]\n", "1 outputs",
         SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2]\n%1 = relu(%0) forward -> f32[2]\n", "'|'",
         SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2]\n%1 = relu(%0 | forward -> f32[2]\n", "line 3",
         SNUG_E_FORMAT},
        {"snug graph 1\n%0 input x f32[2]\n%1 = matmul(%0 %0) | forward -> f32[2]\n",
         "line 3: matmul", SNUG_E_SHAPE},
        {"snug graph 1\n%0 input x f32[2]\n%1 = affine(%0) scale=1 | forward -> f32[2]\n", "line 3",
         SNUG_E_FORMAT},
        {"snug graph 1\noutput y %0\n", "line 2", SNUG_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snug_error err = {.text = ""};
        sn_graph *g = NULL;
        expect_status(sn_graph_parse(*state, cases[i].text, &g, &err), cases[i].status, &err);
        expect_text(err.text, cases[i].piece);
        assert_null(g);
        assert_int_not_equal(sn_graph_parse(*state, cases[i].text, &g, NULL), SNUG_OK);
    }
}

/* Cut anywhere, the text is refused or a smaller graph; never anything else. */
static void test_graph_parse_survives_truncation(void **state) {
    fixture f = begin(state);
    snug_error err;
    expect_ok(build_rich(f.g, &err), &err);
    char *text = print_graph(f.g);
    for (size_t n = strlen(text); n-- > 0;) {
        sn_graph *g = NULL;
        text[n] = '\0';
        if (sn_graph_parse(*state, text, &g, &err) == SNUG_OK)
            expect_ok(sn_graph_check(g, false, &err), &err);
        sn_graph_destroy(g);
    }
    free(text);
    sn_graph_destroy(f.g);
}

/* --- templates --- */

/* x f32[?,4,3] -> flat [-1,12] -> dense -> mean over the batch. */
static sn_graph *make_template(void **state) {
    snug_error err;
    sn_graph *g;
    sn_value x, w;
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &(snug_type){SNUG_F32, 3, {-1, 4, 3}}, &x, &err), &err);
    expect_ok(
        sn_graph_variable(g, &(sn_variable){.name = "w", .type = {SNUG_F32, 2, {12, 5}}}, &w, &err),
        &err);
    sn_builder b = sn_builder_on(g);
    const int64_t flat[2] = {-1, 12};
    const sn_value y = sn_build_matmul(&b, sn_build_reshape(&b, x, flat, 2), w, SN_NO_VALUE);
    const sn_value mean = sn_build_mean(&b, y, 1, false);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "y", y, &err), &err);
    expect_ok(sn_graph_output(g, "mean", mean, &err), &err);
    return g;
}

static void test_template_becomes_concrete_for_input_types(void **state) {
    snug_error err;
    sn_graph *t = make_template(state), *g;
    expect_ok(sn_graph_check(t, true, &err), &err);
    expect_status(sn_graph_check(t, false, &err), SNUG_E_SHAPE, &err);
    const snug_type given = {SNUG_F32, 3, {8, 4, 3}};
    expect_ok(sn_graph_instantiate(t, &given, 1, &g, &err), &err);
    expect_ok(sn_graph_check(g, false, &err), &err);
    const snug_type *y = sn_graph_type(g, sn_graph_output_at(g, 0));
    assert_int_equal(y->dims[0], 8);
    assert_int_equal(y->dims[1], 5);
    bool found = false;
    for (uint32_t i = 0; i < sn_graph_n_params(g); i++) {
        const sn_param_info *p = sn_graph_param_at(g, (sn_param){i});
        found = found || (p->kind == SN_PARAM_INVERSE_EXTENT && p->real == 1.0 / 8);
    }
    assert_true(found);
    assert_string_equal(sn_graph_output_name(g, 1), "mean");
    sn_graph_destroy(g);
    sn_graph_destroy(t);
}

static void test_template_refuses_types_that_do_not_fit(void **state) {
    snug_error err;
    sn_graph *t = make_template(state), *g = NULL;
    const snug_type bad[] = {{SNUG_F64, 3, {8, 4, 3}},
                             {SNUG_F32, 2, {8, 4}},
                             {SNUG_F32, 3, {8, 5, 3}},
                             {SNUG_F32, 3, {-1, 4, 3}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_status(sn_graph_instantiate(t, &bad[i], 1, &g, &err), SNUG_E_SHAPE, &err);
        expect_text(err.text, "f32[?,4,3]");
    }
    expect_status(sn_graph_instantiate(t, bad, 2, &g, &err), SNUG_E_INVALID, &err);
    assert_null(g);
    sn_graph_destroy(t);
}

static void test_template_with_an_extent_nobody_states_is_refused(void **state) {
    snug_error err;
    sn_graph *t = make_template(state), *g = NULL;
    sn_builder b = sn_builder_on(t);
    sn_build_fill(&b, &(snug_type){SNUG_F32, 1, {-1}}, 0);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_status(sn_graph_instantiate(t, &(snug_type){SNUG_F32, 3, {8, 4, 3}}, 1, &g, &err),
                  SNUG_E_SHAPE, &err);
    expect_text(err.text, "fill");
    sn_graph_destroy(t);
}

/* --- the checker --- */

/* Breaks one thing in the storage; the checker must see it, and be content once it is mended. */
#define expect_caught(g, place, wrong)                                                             \
    do {                                                                                           \
        const __typeof__(place) right = (place);                                                   \
        (place) = (wrong);                                                                         \
        assert_int_not_equal(sn_graph_check((g), false, &err), SNUG_OK);                           \
        (place) = right;                                                                           \
        expect_ok(sn_graph_check((g), false, &err), &err);                                         \
    } while (0)

static void test_graph_check_catches_broken_invariants(void **state) {
    fixture f = begin(state);
    snug_error err;
    expect_ok(build_rich(f.g, &err), &err);
    sn_graph *g = f.g;
    sn_node_info *first = *SN_PAGED(g->nodes, 0), *last = *SN_PAGED(g->nodes, g->n_nodes - 1);
    sn_value *first_in = (sn_value *)(uintptr_t)first->in;
    expect_caught(g, first_in[0].i, first->out[0].i);
    expect_caught(g, first->n_out, 1);
    expect_caught(g, first->owner, 99);
    expect_caught(g, first->attrs.pool.kernel[0], 3);
    expect_caught(g, last->attrs.momentum.momentum, 999);
    expect_caught(g, SN_PAGED(g->values, first->out[0].i)->type.dims[0], 3);
    expect_caught(g, SN_PAGED(g->values, first->out[0].i)->var, 0);
    expect_caught(g, SN_PAGED(g->values, last->out[0].i)->version, 2);
    expect_caught(g, g->vars[2].last, g->vars[2].first);
    expect_caught(g, g->vars[1].name, g->vars[0].name);
    expect_caught(g, SN_PAGED(g->values, f.x.i)->index, 1);
    expect_caught(g, g->outputs[0].value.i, 1000);
    sn_graph_destroy(g);
}

/* --- faults --- */

static snug_status graph_scenario(snug_engine *e, void *ctx, snug_error *err) {
    fixture f;
    (void)ctx;
    SNUG_TRY(make_fixture(e, &f, err));
    sn_graph *copy = NULL;
    const snug_type types[2] = {matrix, {SNUG_F64, 4, {2, 6, 6, 3}}};
    snug_status status = build_rich(f.g, err);
    if (status == SNUG_OK)
        status = round_trip(e, f.g, err);
    if (status == SNUG_OK)
        status = sn_graph_instantiate(f.g, types, 2, &copy, err);
    sn_graph_destroy(copy);
    sn_graph_destroy(f.g);
    return status;
}

static void test_graph_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(graph_scenario, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_graph_numbers_values_in_order),
        engine_test(test_long_graphs_keep_what_was_appended),
        engine_test(test_graph_refuses_names_twice),
        engine_test(test_graph_node_refuses_what_is_not_there),
        engine_test(test_graph_params_must_exist_and_fit_the_field),
        engine_test(test_graph_named_param_is_one_slot),
        engine_test(test_graph_finds_by_name_or_lists_what_there_is),
        engine_test(test_graph_state_makes_versions_in_one_chain),
        engine_test(test_graph_state_refuses_one_variable_twice),
        engine_test(test_builder_keeps_the_first_error_and_names_the_layer),
        engine_test(test_builder_sum_to_undoes_broadcasting),
        engine_test(test_graph_text_round_trip_is_exact),
        engine_test(test_graph_text_keeps_special_numbers),
        engine_test(test_graph_parse_errors_name_the_line),
        engine_test(test_graph_parse_survives_truncation),
        engine_test(test_template_becomes_concrete_for_input_types),
        engine_test(test_template_refuses_types_that_do_not_fit),
        engine_test(test_template_with_an_extent_nobody_states_is_refused),
        engine_test(test_graph_check_catches_broken_invariants),
        cmocka_unit_test(test_graph_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
