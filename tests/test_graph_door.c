/* test_graph_door.c: rules of the public builder: operators by name, attributes as text, named
 * parameters, gradients. */
#include "support/eval.h"
#include "support/support.h"
#include "support/text.h"

#include <snug/graph.h>

#include <string.h>

static const snug_type x_type = {SNUG_F64, 2, {3, 2}}, w_type = {SNUG_F64, 2, {2, 1}};

/* loss = sum((x w)^2) and w - learning_rate * gradient. */
static snug_status build_regression(snug_graph *g, snug_error *err) {
    snug_value x, w, y, loss, dw, next;
    SNUG_TRY(snug_graph_set_owner(g, "fit", err));
    SNUG_TRY(snug_graph_input(g, "x", &x_type, &x, err));
    SNUG_TRY(snug_graph_variable(g, "w", &w_type, &(snug_variable_options){.a = 0.5}, &w, err));
    SNUG_TRY(snug_graph_op(g, "matmul", NULL, (snug_value[]){x, w}, 2, &y, 1, err));
    SNUG_TRY(snug_graph_op(g, "square", "", &y, 1, &y, 1, err));
    SNUG_TRY(snug_graph_op(g, "sum", "axes=0,1", &y, 1, &loss, 1, err));
    SNUG_TRY(snug_graph_gradients(g, loss, &w, 1, &dw, err));
    SNUG_TRY(snug_graph_param(g, "learning_rate", 0.25, err));
    SNUG_TRY(snug_graph_op(g, "sgd", "rate=p:learning_rate momentum=0", (snug_value[]){w, dw}, 2,
                           &next, 1, err));
    SNUG_TRY(snug_graph_output(g, "loss", loss, err));
    return snug_graph_output(g, "next", next, err);
}

static void test_door_builds_a_training_step(void **state) {
    snug_error err;
    snug_graph *g;
    expect_ok(snug_graph_create(*state, &g, &err), &err);
    expect_ok(build_regression(g, &err), &err);
    sn_test_arrays in = sn_test_inputs(g, 0, 1);
    const double x[6] = {1, 0, 0, 2, 1, 1};
    memcpy(in.data[0], x, sizeof x);
    sn_test_arrays out = sn_test_eval(*state, g, &in);
    assert_true(out.data[0][0] == 0.25 + 1 + 1); /* (x w) = .5 1 1 */
    assert_true(out.data[1][0] == 0.5 - 0.25 * 2 * (0.5 + 0 + 1));
    assert_true(out.data[1][1] == 0.5 - 0.25 * 2 * (0 + 2 + 1));
    sn_test_arrays_clear(&out);
    sn_test_arrays_clear(&in);
    snug_graph_destroy(g);
}

static void test_door_marks_parts_owners_and_homes(void **state) {
    snug_error err;
    snug_graph *g;
    snug_value slot;
    sn_test_text t = {0};
    const snug_writer w = sn_test_text_writer(&t);
    expect_ok(snug_graph_create(*state, &g, &err), &err);
    expect_ok(build_regression(g, &err), &err);
    const snug_variable_options normal = {
        .kind = SNUG_INIT_NORMAL, .b = 0.1, .seed = 7, .is_slot = 1};
    expect_ok(snug_graph_variable(g, "slot", &w_type, &normal, &slot, &err), &err);
    expect_ok(snug_graph_print(g, &w, &err), &err);
    expect_text(t.data, "variable w f64[2,1] home 0 trainable init constant");
    expect_text(t.data, "variable slot f64[2,1] home 1 slot init normal");
    expect_text(t.data, "| update @fit -> f64[2,1]\n");
    expect_text(t.data, "| backward @fit");
    snug_graph *again;
    expect_ok(snug_graph_parse(*state, t.data, &again, &err), &err);
    snug_graph_destroy(again);
    sn_test_text_clear(&t);
    snug_graph_destroy(g);
}

static void test_door_literals_and_names_become_slots(void **state) {
    snug_error err;
    snug_graph *g;
    snug_value x, y, z[6];
    expect_ok(snug_graph_create(*state, &g, &err), &err);
    expect_ok(snug_graph_input(g, "x", &x_type, &x, &err), &err);
    expect_ok(snug_graph_key(g, "first", 1, &err), &err);
    expect_ok(snug_graph_op(g, "slice", "sizes=2,1 start=p:first,0", &x, 1, z, 6, &err), &err);
    snug_type t;
    expect_ok(snug_graph_type(g, z[0], &t, &err), &err);
    assert_int_equal(t.dims[0], 2);
    assert_int_equal(z[1].id, UINT32_MAX);
    assert_int_equal(z[5].id, UINT32_MAX);
    assert_int_equal(sn_graph_n_params(g), 2);
    expect_ok(snug_graph_op(g, "affine", "scale=2 shift=-1e-3", &x, 1, &y, 1, &err), &err);
    assert_true(sn_graph_param_at(g, (sn_param){3})->real == -1e-3);
    snug_graph_destroy(g);
}

static void test_door_errors_change_nothing(void **state) {
    static const struct {
        const char *op, *attrs, *piece;
        int n_in;
        snug_status status;
    } cases[] = {
        {"mat", "", "there is no operator 'mat'", 1, SNUG_E_INVALID},
        {"affine", "scale=2", "shift is not given", 1, SNUG_E_INVALID},
        {"affine", "scale=2 shift=p:rate", "no parameter is called 'rate'", 1, SNUG_E_INVALID},
        {"affine", "scale=2 shift=p:", "parameter name", 1, SNUG_E_INVALID},
        {"affine", "scale=2 shift=3 tilt=4", "tilt", 1, SNUG_E_FORMAT},
        {"add", "", "add", 1, SNUG_E_INVALID},
        {"add", "", "17", 17, SNUG_E_INVALID},
        {"sum", "axes=5", "axis 5", 1, SNUG_E_SHAPE},
        {"assign", "", "not a variable", 2, SNUG_E_INVALID},
    };
    snug_error err;
    snug_graph *g;
    snug_value x, out = {77};
    expect_ok(snug_graph_create(*state, &g, &err), &err);
    expect_ok(snug_graph_input(g, "x", &x_type, &x, &err), &err);
    snug_value in[17];
    for (int i = 0; i < 17; i++)
        in[i] = x;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_status(
            snug_graph_op(g, cases[i].op, cases[i].attrs, in, cases[i].n_in, &out, 1, &err),
            cases[i].status, &err);
        expect_text(err.text, cases[i].piece);
        assert_int_equal(out.id, 77);
        assert_int_equal(sn_graph_n_nodes(g) + sn_graph_n_params(g), 0);
    }
    char attrs[2000];
    memset(attrs, ' ', sizeof attrs);
    attrs[sizeof attrs - 1] = '\0';
    expect_status(snug_graph_op(g, "add", attrs, in, 2, &out, 1, &err), SNUG_E_INVALID, &err);
    expect_status(snug_graph_param(g, "", 1, &err), SNUG_E_INVALID, &err);
    expect_status(
        snug_graph_variable(g, "v", &x_type, &(snug_variable_options){.kind = 99}, &out, &err),
        SNUG_E_INVALID, &err);
    snug_type t;
    expect_status(snug_graph_type(g, (snug_value){9}, &t, &err), SNUG_E_INVALID, &err);
    snug_graph_destroy(g);
}

static void test_door_refuses_null_by_name(void **state) {
    snug_error err;
    snug_graph *g, *made = NULL;
    snug_value x, v;
    snug_type t;
    const snug_writer none = {NULL, NULL};
    expect_ok(snug_graph_create(*state, &g, &err), &err);
    expect_ok(snug_graph_input(g, "x", &x_type, &x, &err), &err);
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        expect_status(call, SNUG_E_INVALID, &err);                                                 \
        expect_text(err.text, "must not be NULL");                                                 \
    } while (0)
    REFUSED(snug_graph_create(NULL, &made, &err));
    REFUSED(snug_graph_create(*state, NULL, &err));
    REFUSED(snug_graph_input(NULL, "a", &x_type, &v, &err));
    REFUSED(snug_graph_input(g, "a", NULL, &v, &err));
    REFUSED(snug_graph_input(g, "a", &x_type, NULL, &err));
    REFUSED(snug_graph_variable(g, NULL, &x_type, NULL, &v, &err));
    REFUSED(snug_graph_variable(g, "a", NULL, NULL, &v, &err));
    REFUSED(snug_graph_param(NULL, "a", 1, &err));
    REFUSED(snug_graph_key(NULL, "a", 1, &err));
    REFUSED(snug_graph_op(g, NULL, "", &x, 1, &v, 1, &err));
    REFUSED(snug_graph_op(g, "exp", "", NULL, 1, &v, 1, &err));
    REFUSED(snug_graph_op(g, "exp", "", &x, 1, NULL, 1, &err));
    REFUSED(snug_graph_gradients(g, x, NULL, 1, &v, &err));
    REFUSED(snug_graph_set_owner(g, NULL, &err));
    REFUSED(snug_graph_output(NULL, "y", x, &err));
    REFUSED(snug_graph_type(g, x, NULL, &err));
    REFUSED(snug_graph_type(NULL, x, &t, &err));
    REFUSED(snug_graph_print(g, &none, &err));
    REFUSED(snug_graph_parse(*state, NULL, &made, &err));
    assert_null(made);
    assert_int_equal(sn_graph_n_values(g), 1);
    snug_graph_destroy(g);
    snug_graph_destroy(NULL);
}

/* A graph that was read back can be built on, whatever homes it names. */
static void test_door_gives_new_variables_new_homes(void **state) {
    snug_error err;
    snug_graph *g;
    snug_value v;
    expect_ok(snug_graph_parse(*state,
                               "snug graph 1\n%0 variable a f32[2] home 1 init constant 0 0 0\n",
                               &g, &err),
              &err);
    expect_ok(snug_graph_variable(g, "b", &x_type, NULL, &v, &err), &err);
    assert_int_equal(sn_graph_var_at(g, (sn_var){1})->home, 2);
    snug_graph_destroy(g);
}

static snug_status door_scenario(snug_engine *e, void *ctx, snug_error *err) {
    snug_graph *g;
    (void)ctx;
    SNUG_TRY(snug_graph_create(e, &g, err));
    const snug_status status = build_regression(g, err);
    snug_graph_destroy(g);
    return status;
}

static void test_door_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(door_scenario, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_door_builds_a_training_step),
        engine_test(test_door_marks_parts_owners_and_homes),
        engine_test(test_door_literals_and_names_become_slots),
        engine_test(test_door_errors_change_nothing),
        engine_test(test_door_refuses_null_by_name),
        engine_test(test_door_gives_new_variables_new_homes),
        cmocka_unit_test(test_door_survives_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
