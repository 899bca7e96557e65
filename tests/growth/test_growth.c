/* test_growth.c: what is done once per operation, layer, tensor or character is done in work that
 * grows with their number, not with its square. Work is counted, not timed: the library is compiled
 * once more with a call in every basic block (-fsanitize-coverage=trace-pc), so a loop anywhere in
 * it counts, whoever wrote it. A case runs with n and 4n; work may grow by 4^1.2. What has had a
 * threshold is run on both sides of where one may stand: to 100,000 operations and tensors, with
 * SNUG_TEST_FULL to 1,000,000, and to 20,000 layers. */
#include "support/bench.h"
#include "support/data_call.h"
#include "support/support.h"

#include "codec/regex.h"
#include "record/recording.h"
#include "graph/graph.h"
#include "plan/plan.h"

#include <snug/data_ops.h>
#include <snug/dataset.h>
#include <snug/function.h>
#include <snug/layer.h>
#include <snug/model.h>
#include <snug/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) expect_ok((call), &b->err)

static uint64_t n_blocks;

__attribute__((visibility("default"))) void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    n_blocks++;
}

/* What the C library does for it counts by the bytes. */
enum { BYTES_PER_BLOCK = 64 };
#define COUNTED(name, second)                                                                      \
    void *__real_##name(void *to, second from, size_t n);                                          \
    void *__wrap_##name(void *to, second from, size_t n);                                          \
    void *__wrap_##name(void *to, second from, size_t n) {                                         \
        n_blocks += 1 + n / BYTES_PER_BLOCK;                                                       \
        return __real_##name(to, from, n);                                                         \
    }
COUNTED(memset, int)
COUNTED(memcpy, const void *)
COUNTED(memmove, const void *)
int __real_strcmp(const char *x, const char *y);
int __wrap_strcmp(const char *x, const char *y);
int __wrap_strcmp(const char *x, const char *y) {
    n_blocks++;
    return __real_strcmp(x, y);
}

static const snug_type scalar = {.dtype = SNUG_F32};

/* --- cases: each does something n times ------------------------------------------------------- */
typedef void (*growing)(bench *b, int n);

static snug_tensor *number(bench *b, double value) {
    snug_tensor *t;
    OK(snug_tensor_copy(b->r, &scalar, &(float){(float)value}, &t, &b->err));
    return t;
}

static snug_tensor *op(bench *b, const char *name, const char *attrs, snug_tensor *x,
                       snug_tensor *y) {
    snug_tensor *in[2] = {x, y}, *out;
    OK(snug_record_op(b->r, name, attrs, in, y ? 2 : 1, &out, 1, &b->err));
    return out;
}

/* x, then n operations on it, of which only the last is held. */
static snug_tensor *chain(bench *b, snug_tensor *x, int n) {
    snug_tensor_hold(x);
    for (int i = 0; i < n; i++) {
        snug_tensor *next = op(b, i % 2 ? "tanh" : "neg", "", x, NULL);
        snug_tensor_drop(x);
        x = next;
    }
    return x;
}

static double value_of(bench *b, snug_tensor *t) {
    float v;
    OK(snug_tensor_read(t, &v, sizeof v, &b->err));
    return v;
}

static void record_and_run(bench *b, int n) {
    snug_tensor *x = number(b, 1), *y = chain(b, x, n);
    (void)value_of(b, y);
    snug_tensor_drop(x);
    snug_tensor_drop(y);
}

static snug_tensor *gradient(bench *b, snug_tape *t, snug_tensor *y, snug_tensor *x) {
    const snug_source source = {.tensor = x};
    snug_tensor *dx;
    OK(snug_tape_gradient(t, &y, NULL, 1, &source, 1, &dx, &b->err));
    return dx;
}

static void differentiate(bench *b, int n) {
    snug_tape *t;
    snug_tensor *x = number(b, 1);
    OK(snug_tape_create(b->r, NULL, &t, &b->err));
    OK(snug_tape_watch(t, x, &b->err));
    snug_tensor *y = chain(b, x, n), *dx = gradient(b, t, y, x);
    (void)value_of(b, dx);
    snug_tensor_drop(x);
    snug_tensor_drop(y);
    snug_tensor_drop(dx);
    snug_tape_drop(t);
}

/* One tape after the other, and nothing is read between them. */
static void use_tapes(bench *b, int n) {
    snug_tensor *x = number(b, 1), *sum = number(b, 0);
    for (int i = 0; i < n; i++) {
        snug_tape *t;
        OK(snug_tape_create(b->r, NULL, &t, &b->err));
        OK(snug_tape_watch(t, x, &b->err));
        snug_tensor *y = chain(b, x, 2), *dx = gradient(b, t, y, x);
        snug_tensor *more = op(b, "add", "", sum, dx);
        snug_tape_drop(t);
        snug_tensor_drop(y);
        snug_tensor_drop(dx);
        snug_tensor_drop(sum);
        sum = more;
    }
    (void)value_of(b, sum);
    snug_tensor_drop(sum);
    snug_tensor_drop(x);
}

/* All wait, and are asked in the end. */
static void keep_tapes(bench *b, int n) {
    snug_tape **t = calloc((size_t)n, sizeof(snug_tape *));
    snug_tensor **y = calloc((size_t)n, sizeof(snug_tensor *));
    snug_tensor *x = number(b, 1), *sum = number(b, 0);
    for (int i = 0; i < n; i++) {
        OK(snug_tape_create(b->r, &(snug_tape_options){.persistent = 1}, &t[i], &b->err));
        OK(snug_tape_watch(t[i], x, &b->err));
        y[i] = chain(b, x, 2);
        snug_tape_stop(t[i]);
    }
    for (int i = 0; i < n; i++) {
        snug_tensor *dx = gradient(b, t[i], y[i], x), *more = op(b, "add", "", sum, dx);
        snug_tape_drop(t[i]);
        snug_tensor_drop(y[i]);
        snug_tensor_drop(dx);
        snug_tensor_drop(sum);
        sum = more;
    }
    (void)value_of(b, sum);
    snug_tensor_drop(sum);
    snug_tensor_drop(x);
    free(t), free(y);
}

/* Of one tape, and nothing is read between them. */
static void ask_one_tape(bench *b, int n) {
    snug_tape *t;
    snug_tensor **y = calloc((size_t)n, sizeof(snug_tensor *));
    snug_tensor *x = number(b, 1), *sum = number(b, 0);
    OK(snug_tape_create(b->r, &(snug_tape_options){.persistent = 1}, &t, &b->err));
    OK(snug_tape_watch(t, x, &b->err));
    for (int i = 0; i < n; i++)
        y[i] = chain(b, x, 2);
    snug_tape_stop(t);
    for (int i = 0; i < n; i++) {
        snug_tensor *dx = gradient(b, t, y[i], x), *more = op(b, "add", "", sum, dx);
        snug_tensor_drop(y[i]);
        snug_tensor_drop(dx);
        snug_tensor_drop(sum);
        sum = more;
    }
    snug_tape_drop(t);
    (void)value_of(b, sum);
    snug_tensor_drop(sum);
    snug_tensor_drop(x);
    free(y);
}

/* --- tapes that are read while they record ---------------------------------------------------- */
enum { BETWEEN = 100 }; /* operations between two reads */

static snug_tensor *wide(bench *b, double value) {
    snug_tensor *t;
    OK(snug_tensor_full(b->r, &(snug_type){SNUG_F32, 1, {BETWEEN}}, value, &t, &b->err));
    float v[BETWEEN];
    OK(snug_tensor_read(t, v, sizeof v, &b->err)); /* bytes, not numbers to come */
    return t;
}

static double first_of(bench *b, snug_tensor *t) {
    float v[BETWEEN];
    size_t bytes;
    OK(snug_type_bytes(snug_tensor_type(t), &bytes, &b->err));
    OK(snug_tensor_read(t, v, bytes, &b->err));
    return v[0];
}

/* y = x + n times x, read now and then, and its gradient in the end. */
static void read_under_tape(bench *b, snug_tensor *x, int n) {
    snug_tape *t;
    snug_tensor *y = x;
    OK(snug_tape_create(b->r, NULL, &t, &b->err));
    OK(snug_tape_watch(t, x, &b->err));
    snug_tensor_hold(y);
    for (int i = 1; i <= n; i++) {
        snug_tensor *more = op(b, "add", "", y, x);
        snug_tensor_drop(y);
        y = more;
        if (i % BETWEEN == 0)
            assert_true(first_of(b, y) == i + 1);
    }
    snug_tensor *dx = gradient(b, t, y, x);
    assert_true(first_of(b, dx) == n + 1);
    snug_tape_drop(t);
    snug_tensor_drop(dx);
    snug_tensor_drop(y);
    snug_tensor_drop(x);
}

static void read_numbers_under_tape(bench *b, int n) {
    read_under_tape(b, number(b, 1), n);
}

static void read_tensors_under_tape(bench *b, int n) {
    read_under_tape(b, wide(b, 1), n);
}

/* The usual loop: a tape, its gradient, the next one. */
static void read_tape_after_tape(bench *b, int n) {
    for (int i = 0; i < n / BETWEEN; i++)
        read_under_tape(b, wide(b, 1), BETWEEN);
}

/* Of one tape that goes on, each gradient is of the newest operations, twice as much for each. */
static void read_newest_gradients(bench *b, snug_tensor *x, int n) {
    snug_tape *t;
    OK(snug_tape_create(b->r, &(snug_tape_options){.persistent = 1}, &t, &b->err));
    OK(snug_tape_watch(t, x, &b->err));
    for (int i = 0; i < n / BETWEEN; i++) {
        snug_tensor *y = x;
        snug_tensor_hold(y);
        for (int k = 0; k < BETWEEN; k++) {
            snug_tensor *more = op(b, "add", "", y, x);
            snug_tensor_drop(y);
            y = more;
        }
        assert_true(first_of(b, y) == BETWEEN + 1);
        snug_tensor *dx = gradient(b, t, y, x);
        assert_true(first_of(b, dx) == BETWEEN + 1);
        snug_tensor_drop(dx);
        snug_tensor_drop(y);
    }
    snug_tape_drop(t);
    snug_tensor_drop(x);
}

static void read_newest_of_numbers(bench *b, int n) {
    read_newest_gradients(b, number(b, 1), n);
}

static void read_newest_of_tensors(bench *b, int n) {
    read_newest_gradients(b, wide(b, 1), n);
}

static snug_tensor *call(bench *b, const char *name, const snug_argument *args, int n) {
    snug_tensor *out;
    int function, n_out;
    assert_true(snug_function_find(name, &function));
    OK(snug_function_call(b->r, function, args, n, &out, 1, &n_out, &b->err));
    return out;
}

static snug_tensor *call_list(bench *b, const char *name, snug_argument *items, int n) {
    snug_argument list = {.kind = SNUG_ARG_LIST};
    list.list.items = items;
    list.list.n = n;
    return call(b, name, &list, 1);
}

/* n tensors that are held as one list, a stack, a sum. */
static void join_lists(bench *b, int n) {
    snug_argument *items = calloc((size_t)n, sizeof *items);
    for (int i = 0; i < n; i++)
        items[i] = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = number(b, i % 8)};
    snug_tensor *stacked = call_list(b, "tf.stack", items, n);
    snug_tensor *sum = call_list(b, "tf.add_n", items, n);
    const snug_argument all = {.kind = SNUG_ARG_TENSOR, .tensor = stacked};
    snug_tensor *total = call(b, "tf.reduce_sum", &all, 1);
    assert_int_equal(snug_tensor_type(stacked)->dims[0], n);
    assert_true(value_of(b, total) == n / 8 * 28 && value_of(b, sum) == n / 8 * 28);
    for (int i = 0; i < n; i++)
        snug_tensor_drop(items[i].tensor);
    snug_tensor_drop(stacked);
    snug_tensor_drop(sum);
    snug_tensor_drop(total);
    free(items);
}

/* n variables under one tape, a gradient of each, and a step. */
static void train_variables(bench *b, int n) {
    snug_variable **v = calloc((size_t)n, sizeof *v);
    snug_tensor **grads = calloc((size_t)n, sizeof *grads);
    snug_source *sources = calloc((size_t)n, sizeof *sources);
    snug_optimizer *o;
    snug_tape *t;
    snug_tensor *sum = number(b, 0), *one = number(b, 1);
    OK(snug_optimizer_create(b->r, "adam", &o, &b->err));
    for (int i = 0; i < n; i++) {
        OK(snug_variable_create(b->r, one, NULL, &v[i], &b->err));
        sources[i] = (snug_source){.variable = v[i]};
    }
    OK(snug_tape_create(b->r, NULL, &t, &b->err));
    for (int i = 0; i < n; i++) {
        snug_tensor *x, *more;
        OK(snug_variable_read(v[i], &x, &b->err));
        more = op(b, "add", "", sum, x);
        snug_tensor_drop(sum);
        snug_tensor_drop(x);
        sum = more;
    }
    OK(snug_tape_gradient(t, &sum, NULL, 1, sources, n, grads, &b->err));
    OK(snug_optimizer_apply(o, grads, v, n, -1, &b->err));
    OK(snug_sync(b->r, &b->err));
    assert_int_equal(snug_optimizer_n_slots(o), 2 * n);
    assert_non_null(snug_optimizer_slot(o, 2 * n - 1));
    snug_tape_drop(t);
    for (int i = 0; i < n; i++) {
        snug_tensor_drop(grads[i]);
        snug_variable_drop(v[i]);
    }
    snug_optimizer_destroy(o);
    snug_tensor_drop(sum);
    snug_tensor_drop(one);
    free(sources);
    free(grads);
    free(v);
}

static void find_unique(bench *b, int n) {
    const snug_type t = {SNUG_I32, 1, {n}};
    int32_t *v = calloc((size_t)n, sizeof *v);
    snug_tensor *x, *out[2];
    int function, n_out;
    for (int i = 0; i < n; i++)
        v[i] = 64 * i;
    OK(snug_tensor_copy(b->r, &t, v, &x, &b->err));
    const snug_argument arg = {.kind = SNUG_ARG_TENSOR, .tensor = x};
    assert_true(snug_function_find("tf.unique", &function));
    OK(snug_function_call(b->r, function, &arg, 1, out, 2, &n_out, &b->err));
    assert_int_equal(snug_tensor_type(out[0])->dims[0], n);
    for (int i = 0; i < n_out; i++)
        snug_tensor_drop(out[i]);
    snug_tensor_drop(x);
    free(v);
}

/* A model of n layers: made, planned, described. */
static void plan_layers(bench *b, int n) {
    snug_model *m;
    snug_model_plan_info info;
    size_t parameters = 0;
    OK(snug_model_create(b->e, "deep", &(snug_type){SNUG_F32, 1, {4}}, &m, &b->err));
    for (int i = 0; i < n; i++)
        OK(snug_model_add(m, "Dense", "units=4 activation=relu", &b->err));
    OK(snug_model_compile(m, &(snug_compile){.loss = "mse", .optimizer = "adam"}, &b->err));
    OK(snug_model_plan(m, &(snug_plan_request){.batch = 4, .train = 1}, &info, &b->err));
    for (int i = 0; i < n; i++) {
        snug_layer_info l;
        snug_model_layer(m, (size_t)i, &l);
        parameters += (size_t)l.n_params;
    }
    assert_int_equal(parameters, 20 * n);
    snug_model_destroy(m);
}

/* Lifetimes of a training step: long ones within longer ones, and short ones between. */
static void pack_boxes(bench *b, int n) {
    sn_pack_item *items = calloc((size_t)n, sizeof *items);
    const uint32_t half = (uint32_t)n / 2, all = (uint32_t)n;
    size_t height, bound;
    for (uint32_t i = 0; i < half; i++) {
        const size_t size = 64 * (size_t)(1 + i % 7);
        items[2 * i] = (sn_pack_item){i, all - i + 1, size, 0};
        items[2 * i + 1] = (sn_pack_item){all - i, all - i + 2, size * 3, 0};
    }
    OK(sn_pack(b->e, items, (uint32_t)n, &height, &bound, &b->err));
    assert_in_range(height, bound, bound + bound / 10);
    free(items);
}

static void go_through_datasets(bench *b, int n) {
    snug_dataset *all, *one;
    snug_iterator *it;
    snug_element e;
    int n_elements = 0;
    OK(snug_dataset_range(b->e, 0, 1, 1, &all, &b->err));
    for (int i = 1; i < n; i++) {
        OK(snug_dataset_range(b->e, 0, 1, 1, &one, &b->err));
        OK(snug_dataset_concatenate(all, one, &all, &b->err));
    }
    OK(snug_iterator_create(all, &it, &b->err));
    while (snug_iterator_next(it, &e, &b->err) == SNUG_OK) {
        snug_element_drop(&e);
        n_elements++;
    }
    assert_int_equal(n_elements, n);
    snug_iterator_destroy(it);
    snug_dataset_drop(all);
}

/* Matches one after the other, each of which ends soon. */
static void replace_in_texts(bench *b, int n) {
    static const snug_data_attr attrs[] = {{"pattern", {"a.*?b", 5}}, {"rewrite", {"c", 1}}};
    char *letters = calloc((size_t)n, 2);
    snug_text text = {letters, 2 * (size_t)n};
    const snug_datum in = sn_lent(&text);
    snug_datum out;
    snug_data_op *op;
    int n_out;
    for (int i = 0; i < 2 * n; i++)
        letters[i] = i % 2 ? 'b' : 'a';
    OK(snug_data_op_create(b->e, "tf.strings.regex_replace", attrs, 2, &op, &b->err));
    OK(snug_data_op_call(op, 0, &in, 1, &out, 1, &n_out, &b->err));
    snug_datum_drop(&out);
    snug_data_op_destroy(op);
    free(letters);
}

/* --- what they may take ----------------------------------------------------------------------- */
static uint64_t work_of(void **state, growing grow, int n) {
    bench b = open_bench(state);
    const uint64_t before = n_blocks;
    grow(&b, n);
    const uint64_t work = n_blocks - before;
    snug_recorder_destroy(b.r);
    return work;
}

static void expect_growth(void **state, growing grow, int n) {
    const uint64_t few = work_of(state, grow, n), many = work_of(state, grow, 4 * n);
    assert_true(few > (uint64_t)n); /* the library is the counted one */
    if ((double)many > 5.278 * (double)few)
        fail_msg("%d take %llu blocks, %d take %llu: %.2f times as many", n,
                 (unsigned long long)few, 4 * n, (unsigned long long)many,
                 (double)many / (double)few);
}

#define CASE(name, grow, n)                                                                        \
    static void test_##name(void **state) {                                                        \
        expect_growth(state, grow, n);                                                             \
    }
CASE(recording_and_its_run_grow_with_operations, record_and_run, 2000)
CASE(gradients_grow_with_operations, differentiate, 2000)
CASE(tapes_do_not_look_at_what_others_saw, use_tapes, 1000)
CASE(tapes_wait_beside_each_other, keep_tapes, 1000)
CASE(gradients_of_one_tape_do_not_look_at_the_rest_of_it, ask_one_tape, 1000)
CASE(lists_grow_with_tensors, join_lists, 2000)
CASE(steps_grow_with_variables, train_variables, 500)
CASE(unique_values_grow_with_elements, find_unique, 5000)
CASE(packing_grows_with_boxes, pack_boxes, 6000)
CASE(concatenations_grow_with_datasets, go_through_datasets, 1000)
CASE(replacing_grows_with_the_text, replace_in_texts, 5000)

static bool is_full(void) {
    return getenv("SNUG_TEST_FULL") != NULL;
}

/* At 65,536 operations a recording runs by itself, and again when there are twice as many: from just
 * below to just above there is no step. */
static void test_long_tapes_grow_as_short_ones(void **state) {
    expect_growth(state, differentiate, 16500);
    expect_growth(state, differentiate, 25000);
    expect_growth(state, differentiate, 33000);
    if (is_full())
        expect_growth(state, differentiate, 250000);
}

/* A gradient of all earlier operations each time is as much work as there are, as elsewhere: what is
 * asked of the newest ones, or only read, is not. */
static void test_tapes_that_are_read_grow_with_operations(void **state) {
    static const growing ways[] = {read_numbers_under_tape, read_tensors_under_tape,
                                   read_tape_after_tape, read_newest_of_numbers,
                                   read_newest_of_tensors};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        expect_growth(state, ways[i], is_full() ? 50000 : 5000);
}

static void test_long_lists_grow_as_short_ones(void **state) {
    expect_growth(state, join_lists, is_full() ? 200000 : 25000);
}

static void test_plans_grow_with_layers(void **state) {
    expect_growth(state, plan_layers, 500);
    if (is_full())
        expect_growth(state, plan_layers, 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_recording_and_its_run_grow_with_operations),
        engine_test(test_gradients_grow_with_operations),
        engine_test(test_tapes_do_not_look_at_what_others_saw),
        engine_test(test_tapes_wait_beside_each_other),
        engine_test(test_gradients_of_one_tape_do_not_look_at_the_rest_of_it),
        engine_test(test_lists_grow_with_tensors),
        engine_test(test_steps_grow_with_variables),
        engine_test(test_unique_values_grow_with_elements),
        engine_test(test_plans_grow_with_layers),
        engine_test(test_packing_grows_with_boxes),
        engine_test(test_concatenations_grow_with_datasets),
        engine_test(test_replacing_grows_with_the_text),
        engine_test(test_long_tapes_grow_as_short_ones),
        engine_test(test_tapes_that_are_read_grow_with_operations),
        engine_test(test_long_lists_grow_as_short_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
