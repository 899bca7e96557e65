/* test_eager_memory.c: layers and optimizers on recorded tensors when memory is refused: request N
 * of each scenario, and what a failed call drew is given back. */
#include <string.h>

#include "eager/layer.h"
#include "support/bench.h"

#include <snug/function.h>
#include <snug/layer.h>

static snug_status small_step(snug_recorder *r, snug_layer *l, snug_optimizer *o, snug_error *err) {
    const float v[6] = {1, 2, 3, 4, 5, 6};
    snug_tensor *x, *y = NULL, *loss = NULL, *grads[2] = {NULL, NULL};
    snug_tape *tape = NULL;
    int n;
    SNUG_TRY(snug_tensor_copy(r, &(snug_type){SNUG_F32, 2, {2, 3}}, v, &x, err));
    const snug_layer_arguments a = {.inputs = &x, .n_inputs = 1, .training = 1};
    snug_status status = snug_tape_create(r, NULL, &tape, err);
    if (status == SNUG_OK)
        status = snug_layer_call(l, &a, &y, 1, &n, NULL, err);
    if (status == SNUG_OK)
        status = snug_loss_call(r, "mse", x, y, NULL, 1, &loss, err);
    if (status == SNUG_OK) {
        snug_variable *const vars[2] = {snug_layer_variable(l, 0), snug_layer_variable(l, 1)};
        const snug_source sources[2] = {{NULL, vars[0]}, {NULL, vars[1]}};
        status = snug_tape_gradient(tape, &loss, NULL, 1, sources, 2, grads, err);
        if (status == SNUG_OK)
            status = snug_optimizer_apply(o, grads, vars, 2, -1, err);
        else
            grads[0] = grads[1] = NULL;
    }
    if (status == SNUG_OK)
        status = snug_sync(r, err);
    snug_tape_drop(tape);
    snug_tensor *all[] = {x, y, loss, grads[0], grads[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        snug_tensor_drop(all[i]);
    return status;
}

static snug_status train_small(snug_engine *e, void *ctx, snug_error *err) {
    snug_recorder *r;
    snug_layer *l = NULL;
    snug_optimizer *o = NULL;
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &r, err));
    snug_status status = snug_layer_create(r, "Dense", "{\"units\": 3}", &l, err);
    if (status == SNUG_OK)
        status = snug_optimizer_create(r, "adam", &o, err);
    if (status == SNUG_OK)
        status = small_step(r, l, o, err);
    snug_optimizer_destroy(o);
    snug_layer_destroy(l);
    snug_recorder_destroy(r);
    return status;
}

/* A layer and an operation with seeds of their own, by a trace. */
static snug_status trace_seeded(snug_recorder *r, snug_layer *l, snug_tensor *x, snug_trace **t,
                                snug_error *err) {
    const snug_argument size = {.kind = SNUG_ARG_INTEGER, .integer = 4};
    const snug_argument args[5] = {{.kind = SNUG_ARG_LIST, .list = {.items = &size, .n = 1}},
                                   {.kind = SNUG_ARG_NONE},
                                   {.kind = SNUG_ARG_NONE},
                                   {.kind = SNUG_ARG_NONE},
                                   {.kind = SNUG_ARG_INTEGER, .integer = 3}};
    const snug_layer_arguments a = {.inputs = &x, .n_inputs = 1, .training = 1};
    snug_tensor *out[2] = {NULL, NULL};
    int row, n;
    assert_true(snug_function_find("tf.random.uniform", &row));
    SNUG_TRY(snug_trace_begin(r, NULL, 0, NULL, t, err));
    snug_status status = snug_layer_call(l, &a, &out[0], 1, &n, NULL, err);
    if (status == SNUG_OK)
        status = snug_function_call(r, row, args, 5, &out[1], 1, &n, err);
    if (status == SNUG_OK)
        status = snug_trace_end(*t, out, 2, err);
    snug_tensor_drop(out[0]);
    snug_tensor_drop(out[1]);
    return status;
}

/* How often operations with seeds drew. */
static uint64_t drawn_by_seed(const snug_recorder *r) {
    uint64_t pairs[8], sum = 0;
    const size_t n = snug_recorder_tell_sequences(r, pairs, 4);
    for (size_t i = 0; i < n; i++)
        sum += pairs[2 * i + 1];
    return sum;
}

static snug_status call_seeded(snug_engine *e, void *ctx, snug_error *err) {
    const float v[4] = {1, 2, 3, 4};
    snug_recorder *r;
    snug_layer *l = NULL;
    snug_trace *t = NULL;
    snug_tensor *x = NULL, *out[2] = {NULL, NULL};
    (void)ctx;
    SNUG_TRY(snug_recorder_create(e, &r, err));
    snug_status status = snug_layer_create(r, "Dropout", "{\"rate\": 0.5, \"seed\": 7}", &l, err);
    if (status == SNUG_OK)
        status = snug_tensor_copy(r, &(snug_type){SNUG_F32, 2, {1, 4}}, v, &x, err);
    if (status == SNUG_OK)
        status = trace_seeded(r, l, x, &t, err);
    assert_int_equal(snug_layer_draws(l), 0);
    for (uint64_t k = 0; k < 2 && status == SNUG_OK; k++) {
        status = snug_trace_call(t, NULL, 0, out, 2, err);
        assert_int_equal(snug_layer_draws(l), k + (status == SNUG_OK));
        assert_int_equal(drawn_by_seed(r), k + (status == SNUG_OK));
        for (int i = 0; i < 2 && status == SNUG_OK; i++)
            snug_tensor_drop(out[i]);
    }
    snug_trace_drop(t);
    snug_tensor_drop(x);
    snug_layer_destroy(l);
    snug_recorder_destroy(r);
    return status;
}

static void test_a_call_that_fails_gives_back_what_it_drew(void **state) {
    (void)state;
    sn_fault_sweep(call_seeded, NULL);
}

static void test_a_step_survives_any_failed_request(void **state) {
    (void)state;
    sn_fault_sweep(train_small, NULL);
}

/* An optimizer whose slots could not all be made, and which then is asked to train. */
static bool trains_after_failed_request(int64_t at) {
    snug_engine *e = sn_test_engine(0);
    snug_recorder *r;
    snug_layer *l;
    snug_optimizer *o;
    snug_error err;
    expect_ok(snug_recorder_create(e, &r, &err), &err);
    expect_ok(snug_layer_create(r, "Dense", "{\"units\": 3}", &l, &err), &err);
    expect_ok(snug_optimizer_create(r, "adam", &o, &err), &err);
    snug_type made;
    int n;
    const snug_type x = {SNUG_F32, 2, {2, 3}};
    expect_ok(snug_layer_infer(l, &x, 1, &made, 1, &n, &err), &err);
    snug_variable *const vars[2] = {snug_layer_variable(l, 0), snug_layer_variable(l, 1)};
    sn_fault_memory(e, at, false);
    const snug_status status = snug_optimizer_build(o, vars, 2, &err);
    const bool fired = sn_fault_fired(e);
    sn_fault_memory(e, -1, false);
    assert_int_equal(status, fired ? SNUG_E_MEMORY : SNUG_OK);
    expect_ok(small_step(r, l, o, &err), &err);
    assert_int_equal(snug_optimizer_n_slots(o), 4); /* two moments of kernel and bias */
    for (int i = 0; i < 4; i++)
        assert_int_equal(snug_variable_type(snug_optimizer_slot(o, i))->rank, i < 2 ? 2 : 1);
    snug_optimizer_destroy(o);
    snug_layer_destroy(l);
    snug_recorder_destroy(r);
    sn_test_engine_end(e);
    return fired;
}

static void test_slots_are_whole_after_any_failed_request(void **state) {
    (void)state;
    int64_t at = 0;
    while (trains_after_failed_request(at))
        at++;
    assert_true(at > 10);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_survives_any_failed_request),
        cmocka_unit_test(test_a_call_that_fails_gives_back_what_it_drew),
        cmocka_unit_test(test_slots_are_whole_after_any_failed_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
