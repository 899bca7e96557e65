/* test_cost.c: rules of the cost model: what must hold for any rates, and what families say about
 * themselves. No clock: how near the numbers come to this machine is bench/cost.c's business. */
#include "support/call.h"
#include "support/kernel_call.h"
#include "support/support.h"

#include "graph/graph.h"
#include "plan/plan.h"

#include <math.h>
#include <snug/train.h>
#include <stdio.h>
#include <string.h>

static double cost_of(const sn_cpu_device *cpu, const sn_opdesc *d) {
    sn_variant v;
    snug_error err;
    expect_ok(cpu->device.describe(&cpu->device, d, &v, &err), &err);
    return sn_cost_seconds(&cpu->device, d, &v);
}

static sn_opdesc product(int64_t rows) {
    sn_opdesc d = {.op = SN_OP_matmul,
                   .n_in = 2,
                   .in = {SHAPE(SNUG_F32, rows, 512), SHAPE(SNUG_F32, 512, 512)}};
    snug_error err;
    sn_attrs_default(SN_OP_matmul, &d.attrs);
    expect_ok(sn_op_infer(&d, &err), &err);
    return d;
}

static void test_more_rows_cost_more(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    double before = 0;
    for (int64_t rows = 1; rows < 10000; rows *= 2) {
        const sn_opdesc d = product(rows);
        const double seconds = cost_of(&cpu, &d);
        assert_true(seconds > before);
        before = seconds;
    }
}

static void test_slices_cost_at_least_the_whole(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    const sn_opdesc whole = product(4096), slice = product(64);
    const double slowdown = 64 * cost_of(&cpu, &slice) / cost_of(&cpu, &whole);
    assert_true(slowdown >= 1 && slowdown < 2);
}

static void test_threads_help_large_work_only(void **state) {
    (void)state;
    sn_cpu_device one, four;
    sn_cpu_device_init(&one, 1, false);
    sn_cpu_device_init(&four, 4, false);
    const sn_opdesc large = product(4096);
    assert_true(cost_of(&four, &large) < cost_of(&one, &large) / 2);
    sn_opdesc small = {
        .op = SN_OP_add, .n_in = 2, .in = {SHAPE(SNUG_F32, 100), SHAPE(SNUG_F32, 100)}};
    expect_ok(sn_op_infer(&small, NULL), NULL);
    assert_true(cost_of(&four, &small) == cost_of(&one, &small));
}

static void test_reference_kernels_are_slow(void **state) {
    (void)state;
    sn_cpu_device fast, slow;
    sn_cpu_device_init(&fast, 1, false);
    sn_cpu_device_init(&slow, 1, true);
    const sn_opdesc d = product(256);
    assert_true(cost_of(&slow, &d) > 2 * cost_of(&fast, &d));
}

static void test_efficiency_divides_the_rate(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    const sn_opdesc d = product(4096);
    sn_variant v;
    expect_ok(cpu.device.describe(&cpu.device, &d, &v, NULL), NULL);
    v.bytes = 0;
    v.efficiency = 1;
    const double full = sn_cost_seconds(&cpu.device, &d, &v);
    v.efficiency = 0.25;
    const double quarter = sn_cost_seconds(&cpu.device, &d, &v);
    assert_true(quarter > 3.9 * full && quarter <= 4 * full);
}

static sn_opdesc row_of(sn_op op, int64_t rows) {
    sn_opdesc d = {.op = op, .n_in = 1, .in = {SHAPE(SNUG_F32, rows, 64)}};
    snug_error err;
    sn_attrs_default(op, &d.attrs);
    if (op == SN_OP_slice) {
        d.attrs.slice.sizes = LIST(100, 64);
        d.attrs.slice.strides = LIST(1, 1);
    }
    expect_ok(sn_op_infer(&d, &err), &err);
    return d;
}

static void test_a_slice_costs_what_it_takes(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    const sn_opdesc of_few = row_of(SN_OP_slice, 200), of_many = row_of(SN_OP_slice, 2000000);
    assert_true(cost_of(&cpu, &of_few) == cost_of(&cpu, &of_many));
}

static void test_a_new_name_costs_a_call(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 2, false);
    const sn_opdesc name = row_of(SN_OP_identity, 1000000), copy = row_of(SN_OP_neg, 1000000);
    assert_true(cost_of(&cpu, &name) == cpu.device.rates.call);
    assert_true(cost_of(&cpu, &copy) > 100 * cpu.device.rates.call);
}

static void test_few_channels_fill_no_vector(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    sn_opdesc narrow = {.op = SN_OP_moments, .n_in = 1, .in = {SHAPE(SNUG_F32, 65536, 8)}};
    sn_opdesc wide = {.op = SN_OP_moments, .n_in = 1, .in = {SHAPE(SNUG_F32, 8192, 64)}};
    expect_ok(sn_op_infer(&narrow, NULL), NULL);
    expect_ok(sn_op_infer(&wide, NULL), NULL);
    assert_true(cost_of(&cpu, &narrow) > 3 * cost_of(&cpu, &wide));
}

/* Of every case of every row. */
static void check_cost(sn_subject *s) {
    static const int threads[] = {1, 2};
    for (int i = 0; i < 2; i++) {
        sn_cpu_device cpu;
        sn_cpu_device_init(&cpu, threads[i], false);
        const double seconds = cost_of(&cpu, &s->desc);
        if (!(seconds >= cpu.device.rates.call && seconds < 1))
            sn_complain(s, "%g seconds with %d threads", seconds, threads[i]);
    }
    sn_checked(s);
}

static void test_every_row_has_a_cost(void **state) {
    (void)state;
    sn_sweep_rows("cost", check_cost);
}

static void test_hash_sees_every_rate(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    const uint64_t before = sn_rates_hash(&cpu.device.rates);
#define CHANGE(name, what)                                                                         \
    {                                                                                              \
        sn_rates r = cpu.device.rates;                                                             \
        r.name *= 1.5;                                                                             \
        assert_true(sn_rates_hash(&r) != before);                                                  \
    }
    SN_RATES_MAP(CHANGE)
#undef CHANGE
}

/* --- seconds by hand -------------------------------------------------------------------------- */
/* An operator on operands that are far larger than the cache below: the bytes that its kernel moves
 * and the operations it does, counted by hand, and whose rates count them. */
typedef struct {
    const char *op, *attrs, *types;
    double bytes, flops;
    bool is_product;
} counted_case;

static const counted_case counted[] = {
    {"add", "", "f32[1000,1000] f32[1000,1000]", 12e6, 1e6, false},
    {"add", "", "f32[1000,1000] f32[1000]", 8.004e6, 1e6, false},
    {"add", "", "f64[1000,1000] f64[1000,1000]", 24e6, 1e6, false},
    {"relu", "", "f32[1000,1000]", 8e6, 1e6, false},
    {"exp", "", "f32[1000,1000]", 8e6, 1e6, false},
    {"cast", "dtype=f64", "f32[1000,1000]", 12e6, 1e6, false},
    {"sum", "axes=1", "f32[1000,1000]", 4.004e6, 1e6, false},
    {"max", "axes=0", "f32[1000,1000]", 4.004e6, 1e6, false},
    {"transpose", "perm=1,0", "f32[1000,1000]", 8e6, 1e6, false},
    {"concat", "axis=0", "f32[1000,1000] f32[500,1000]", 12e6, 1.5e6, false},
    {"slice", "sizes=500,1000 strides=1,1", "f32[9000,1000]", 4e6, 5e5, false},
    {"gather", "", "f32[9000,1000] i32[500]", 4e6, 5e5, false},
    /* where the maxima were, a byte each, counts nothing */
    {"maxpool", "kernel=2,2 stride=2,2", "f32[4,128,128,16]", 4194304 + 1048576, 1048576, false},
    {"adam", "", "f32[1000,1000] f32[1000,1000] f32[1000,1000] f32[1000,1000]", 28e6, 1e6, false},
    /* few rows: bound by the weights' bytes */
    {"matmul", "", "f32[4,2000] f32[2000,2000]", 16.064e6, 32e6, true},
    {"matmul", "trans_a=1", "f32[2000,3000] f32[2000,3000]", 84e6, 36e9, true},
    {"conv2d", "", "f32[4,100,100,32] f32[1,1,32,64]", 5120000 + 8192 + 10240000, 163.84e6, true},
    {"conv2d_dw", "kernel=1,1", "f32[4,100,100,32] f32[4,100,100,64]", 5120000 + 10240000 + 8192,
     163.84e6, true},
};
enum { N_COUNTED = sizeof counted / sizeof counted[0] };

/* Round rates; caches that hold nothing of the cases. */
static sn_cpu_device device_by_hand(int n_threads) {
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, n_threads, false);
    cpu.device.rates = (sn_rates){.product = 1e10,
                                  .product_memory = 5e8,
                                  .loop = 1e9,
                                  .math = 1e8,
                                  .scalar = 1e7,
                                  .reference = 1e8,
                                  .memory = 1e9,
                                  .memory_all = 1.5e9,
                                  .cache = 1e10,
                                  .cache_bytes = 1e6,
                                  .call = 1e-6,
                                  .handoff = 1e-5,
                                  .spill_read = 1,
                                  .spill_write = 1};
    return cpu;
}

static sn_opdesc desc_of(const char *name, const char *attrs, const char *types) {
    sn_opdesc d = {.n_in = 0};
    snug_error err;
    expect_ok(sn_op_find(name, &d.op, &err), &err);
    expect_ok(sn_attrs_parse(d.op, attrs, NULL, &d.attrs, &err), &err);
    while (*types) {
        expect_ok(sn_type_parse(types, &types, &d.in[d.n_in++], &err), &err);
        types += strspn(types, " ");
    }
    expect_ok(sn_op_infer(&d, &err), &err);
    return d;
}

static void expect_seconds(double got, double want, const counted_case *c, const char *what) {
    if (!(fabs(got - want) <= 1e-9 * want))
        fail_msg("%s(%s): %s takes %.9g s, by hand %.9g s", c->op, c->types, what, got, want);
}

/* Arithmetic that costs nothing leaves the traffic: each byte once, at the rate of its memory. */
static void test_traffic_is_bytes_by_the_rate_of_memory(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads < 3; n_threads++) {
        sn_cpu_device cpu = device_by_hand(n_threads);
        sn_rates *r = &cpu.device.rates;
        r->product = r->loop = r->math = r->scalar = r->reference = 1e30;
        for (int i = 0; i < N_COUNTED; i++) {
            const counted_case *c = &counted[i];
            const sn_opdesc d = desc_of(c->op, c->attrs, c->types);
            const double one = c->is_product ? 5e8 : 1e9, two = c->is_product ? 1e9 : 1.5e9;
            const double rate = n_threads == 1 ? one : two;
            const double start = n_threads == 1 ? 1e-6 : 1.1e-5;
            expect_seconds(cost_of(&cpu, &d), start + c->bytes / rate, c, "traffic");
        }
    }
}

/* Memory that costs nothing leaves the arithmetic; it is the same whatever memory costs. */
static void test_arithmetic_is_operations_by_their_rate(void **state) {
    (void)state;
    sn_cpu_device cpu = device_by_hand(1), fast = cpu;
    sn_rates *r = &fast.device.rates;
    r->memory = r->memory_all = r->product_memory = r->cache = 1e30;
    for (int i = 0; i < N_COUNTED; i++) {
        const counted_case *c = &counted[i];
        const sn_opdesc d = desc_of(c->op, c->attrs, c->types);
        sn_variant v;
        expect_ok(fast.device.describe(&fast.device, &d, &v, NULL), NULL);
        const double rates[SN_N_SPEEDS] = {1e9, 1e10, 1e8, 1e7, 1e8};
        const double arithmetic = c->flops / (rates[v.speed] * v.efficiency);
        assert_int_equal(v.speed == SN_SPEED_PRODUCT, c->is_product);
        expect_seconds(cost_of(&fast, &d), 1e-6 + arithmetic, c, "arithmetic");
        const double traffic = c->bytes / (c->is_product ? 5e8 : 1e9);
        expect_seconds(cost_of(&cpu, &d), 1e-6 + arithmetic + traffic, c, "all of it");
    }
}

/* Bytes in the cache go at its rate, half of those of one and a half caches. */
static void test_traffic_in_the_cache_is_the_cache_s(void **state) {
    (void)state;
    sn_cpu_device cpu = device_by_hand(1);
    cpu.device.rates.loop = 1e30;
    const counted_case *c = &counted[0];
    const sn_opdesc d = desc_of(c->op, c->attrs, c->types);
    cpu.device.rates.cache_bytes = 12e6;
    expect_seconds(cost_of(&cpu, &d), 1e-6 + 12e6 / 1e10, c, "one cache");
    cpu.device.rates.cache_bytes = 8e6;
    expect_seconds(cost_of(&cpu, &d), 1e-6 + 6e6 / 1e10 + 6e6 / 1e9, c, "one and a half");
    cpu.device.rates.cache_bytes = 6e6;
    expect_seconds(cost_of(&cpu, &d), 1e-6 + 12e6 / 1e9, c, "two caches");
}

/* What one machine was measured to be: an addition waits for memory, a large product does not. */
static void test_built_in_rates_say_what_waits_for_memory(void **state) {
    (void)state;
    sn_cpu_device cpu;
    sn_cpu_device_init(&cpu, 1, false);
    const sn_rates *r = &cpu.device.rates;
    const sn_opdesc sum = desc_of("add", "", "f32[4000,4000] f32[4000,4000]");
    const sn_opdesc product = desc_of("matmul", "", "f32[4096,4096] f32[4096,4096]");
    const double traffic = 192e6 / r->memory, arithmetic = 2 * 4096.0 * 4096 * 4096 / r->product;
    assert_true(r->memory >= r->product_memory && r->memory_all >= r->memory);
    assert_true(cost_of(&cpu, &sum) > traffic && cost_of(&cpu, &sum) < 1.7 * traffic);
    assert_true(cost_of(&cpu, &product) > arithmetic && cost_of(&cpu, &product) < 1.1 * arithmetic);
}

/* A plan takes what its rows and its inputs take. */
static void test_a_plan_takes_the_seconds_of_its_rows(void **state) {
    snug_error err;
    sn_graph *g;
    sn_plan *p;
    sn_cpu_device cpu = device_by_hand(1);
    cpu.device.rates.loop = 1e30;
    const sn_device *devices[] = {&cpu.device};
    const sn_plan_options options = {.devices = devices, .n_devices = 1};
    expect_ok(sn_graph_parse(*state,
                             "snug graph 1\n%0 input x f32[1000,1000]\n"
                             "%1 = neg(%0) | forward -> f32[1000,1000]\n"
                             "%2 = add(%1 %0) | forward -> f32[1000,1000]\noutput y %2\n",
                             &g, &err),
              &err);
    expect_ok(sn_plan_build(*state, g, &options, &p, &err), &err);
    const double rows = 2e-6 + (8e6 + 12e6) / 1e9, feed = 4e6 / 1e9;
    assert_true(fabs(p->seconds - rows - feed) <= 1e-9 * p->seconds);
    sn_plan_destroy(p);
    sn_graph_destroy(g);
}

/* --- rates as text, and measured ones -------------------------------------------------------- */
static size_t print_rates(sn_rates *r, char *text, size_t size) {
    size_t n = 0;
    for (sn_rate i = 0; i < SN_N_RATES; i++)
        n += (size_t)snprintf(text + n, size - n, "%s %.17g\n", sn_rate_name(i), *sn_rate_at(r, i));
    return n;
}

static void test_rates_come_back_from_text(void **state) {
    (void)state;
    char text[2048] = "# a line that says nothing\n\n";
    const size_t head = strlen(text);
    sn_cpu_device cpu;
    sn_rates r;
    sn_cpu_device_init(&cpu, 1, false);
    print_rates(&cpu.device.rates, text + head, sizeof text - head);
    expect_ok(sn_rates_parse(text, "here", &r, NULL), NULL);
    assert_true(sn_rates_hash(&r) == sn_rates_hash(&cpu.device.rates));
}

static void test_broken_rates_are_refused(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"swiftness 3\n", "line 1: 'swiftness' is no rate"},
        {"loop\n", "loop needs one number above 0"},
        {"loop x\n", "loop needs one number above 0"},
        {"loop 0\n", "loop needs one number above 0"},
        {"loop -1\n", "loop needs one number above 0"},
        {"loop inf\n", "loop needs one number above 0"},
        {"loop nan\n", "loop needs one number above 0"},
        {"loop 1 2\n", "loop needs one number above 0"},
        {"loop 1\nloop 1\n", "line 2: loop needs one number above 0, once"},
        {"loop 1\n", "has no rate product"},
        {"", "has no rate product"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        sn_rates r;
        snug_error err;
        expect_status(sn_rates_parse(lines[i][0], "here", &r, &err), SNUG_E_FORMAT, &err);
        expect_text(err.text, lines[i][1]);
    }
}

static void test_calibration_is_found_again(void **state) {
    (void)state;
    sn_test_dir top, inner, deeper; /* the two inner ones are made by the calibration */
    sn_text heard = {NULL, 0};
    int found = 1;
    sn_cpu_device before, after;
    sn_test_dir_begin(&top);
    strcat(strcpy(inner.path, top.path), "/a");
    strcat(strcpy(deeper.path, inner.path), "/b");
    snug_engine *e = sn_test_engine(0);
    sn_cpu_device_of(e, &before);
    assert_false(before.device.measured);
    expect_ok(snug_rates_load(e, deeper.path, &found, NULL), NULL);
    assert_int_equal(found, 0);
    const snug_writer w = sn_text_writer(&heard);
    snug_error err;
    expect_ok(snug_calibrate(e, deeper.path, &w, &err), &err);
    expect_text(heard.text, "product ");
    expect_text(heard.text, "wrote ");
    sn_text_end(&heard);
    sn_cpu_device_of(e, &after);
    assert_true(after.device.measured);
    sn_test_engine_end(e);

    e = sn_test_engine(0);
    expect_ok(snug_rates_load(e, deeper.path, &found, &err), &err);
    assert_int_equal(found, 1);
    sn_cpu_device_of(e, &before);
    assert_true(sn_rates_hash(&before.device.rates) == sn_rates_hash(&after.device.rates));
    sn_test_engine_end(e);
    sn_test_dir_end(&deeper);
    sn_test_dir_end(&inner);
    sn_test_dir_end(&top);
}

static void test_calibration_says_where_it_cannot_write(void **state) {
    (void)state;
    sn_text heard = {NULL, 0};
    const snug_writer w = sn_text_writer(&heard);
    snug_error err;
    snug_engine *e = sn_test_engine(0);
    expect_status(snug_calibrate(e, "/proc/snug", &w, &err), SNUG_E_IO, &err);
    expect_text(err.text, "/proc/snug");
    assert_null(heard.text); /* before anything was measured */
    sn_test_engine_end(e);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_rows_cost_more),
        cmocka_unit_test(test_slices_cost_at_least_the_whole),
        cmocka_unit_test(test_threads_help_large_work_only),
        cmocka_unit_test(test_reference_kernels_are_slow),
        cmocka_unit_test(test_efficiency_divides_the_rate),
        cmocka_unit_test(test_a_slice_costs_what_it_takes),
        cmocka_unit_test(test_a_new_name_costs_a_call),
        cmocka_unit_test(test_few_channels_fill_no_vector),
        cmocka_unit_test(test_every_row_has_a_cost),
        cmocka_unit_test(test_hash_sees_every_rate),
        cmocka_unit_test(test_traffic_is_bytes_by_the_rate_of_memory),
        cmocka_unit_test(test_arithmetic_is_operations_by_their_rate),
        cmocka_unit_test(test_traffic_in_the_cache_is_the_cache_s),
        cmocka_unit_test(test_built_in_rates_say_what_waits_for_memory),
        engine_test(test_a_plan_takes_the_seconds_of_its_rows),
        cmocka_unit_test(test_rates_come_back_from_text),
        cmocka_unit_test(test_broken_rates_are_refused),
        cmocka_unit_test(test_calibration_is_found_again),
        cmocka_unit_test(test_calibration_says_where_it_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
