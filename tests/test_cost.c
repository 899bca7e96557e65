/* test_cost.c: rules of the cost model: what must hold for any rates, and what families say about
 * themselves. No clock: how near the numbers come to this machine is bench/cost.c's business. */
#include "support/call.h"
#include "support/kernel_call.h"
#include "support/support.h"

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
        cmocka_unit_test(test_rates_come_back_from_text),
        cmocka_unit_test(test_broken_rates_are_refused),
        cmocka_unit_test(test_calibration_is_found_again),
        cmocka_unit_test(test_calibration_says_where_it_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
