/* test_plan_text.c: plans printed and parsed; broken texts are errors, never crashes. */
#include "support/support.h"

#include "graph/build.h"
#include "plan/plan.h"
#include "support/fake_device.h"
#include "support/random_graph.h"

#include <stdlib.h>
#include <string.h>

static sn_fake_device fake;
static const sn_device *devices[1];

static int init_device(void **state) {
    (void)state;
    sn_fake_device_init(&fake, "fake:0");
    fake.workspace_bytes[SN_OP_matmul] = 96;
    devices[0] = &fake.device;
    return 0;
}

static sn_plan *plan_of(snug_engine *e, const sn_graph *g) {
    const sn_plan_options options = {.devices = devices, .n_devices = 1};
    snug_error err;
    sn_plan *p;
    expect_ok(sn_plan_build(e, g, &options, &p, &err), &err);
    return p;
}

static sn_text print(const sn_plan *p) {
    sn_text t = sn_text_begin();
    const snug_writer w = sn_text_writer(&t);
    snug_error err;
    const snug_status st = sn_plan_print(p, &w, &err);
    sn_expect_status(st, SNUG_OK, &err, __FILE__, __LINE__);
    return t;
}

static void expect_same_places(const sn_place *a, const sn_place *b, int n) {
    for (int k = 0; k < n; k++) {
        assert_int_equal(a[k].value.i, b[k].value.i);
        assert_int_equal(a[k].memory, b[k].memory);
        assert_int_equal(a[k].offset, b[k].offset);
        assert_int_equal(a[k].stride, b[k].stride);
        assert_int_equal(a[k].axis, b[k].axis);
        assert_int_equal(a[k].first, b[k].first);
        assert_int_equal(a[k].rows, b[k].rows);
    }
}

static void expect_same_step(const sn_step *a, const sn_step *b) {
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->node.i, b->node.i);
    assert_int_equal(a->input, b->input);
    assert_int_equal(a->device, b->device);
    assert_int_equal(a->queue, b->queue);
    assert_int_equal(a->accumulate, b->accumulate);
    assert_int_equal(a->n_in, b->n_in);
    assert_int_equal(a->n_out, b->n_out);
    expect_same_places(a->in, b->in, a->n_in);
    expect_same_places(a->out, b->out, a->n_out);
    assert_int_equal(a->ws_memory, b->ws_memory);
    assert_int_equal(a->ws_offset, b->ws_offset);
    assert_int_equal(a->ws_bytes, b->ws_bytes);
    assert_int_equal(a->variant, b->variant);
    assert_memory_equal(a->impl, b->impl, sizeof a->impl);
    assert_int_equal(a->n_waits, b->n_waits);
    for (uint32_t w = 0; w < a->n_waits; w++)
        assert_int_equal(a->waits[w], b->waits[w]);
    assert_int_equal(a->repeat, b->repeat);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->last, b->last);
}

static void expect_same_plan(const sn_plan *a, const sn_plan *b) {
    assert_int_equal(a->n_steps, b->n_steps);
    for (uint32_t i = 0; i < a->n_steps; i++)
        expect_same_step(&a->steps[i], &b->steps[i]);
    assert_int_equal(a->n_memories, b->n_memories);
    assert_memory_equal(a->memories, b->memories, a->n_memories * sizeof a->memories[0]);
    assert_int_equal(a->peak_step, b->peak_step);
    assert_int_equal(a->code_bytes, b->code_bytes);
    assert_true(a->flops == b->flops);
    assert_memory_equal(&a->at_peak, &b->at_peak, sizeof a->at_peak);
    for (uint32_t v = 0; v < sn_graph_n_values(a->graph); v++)
        assert_int_equal(a->value_bytes[v], b->value_bytes[v]);
    expect_same_places(a->outputs, b->outputs, (int)sn_graph_n_outputs(a->graph));
}

static void test_random_plans_come_back_the_same(void **state) {
    for (uint64_t seed = 0; seed < 100; seed++) {
        snug_error err;
        sn_graph *g;
        sn_plan *parsed;
        expect_ok(sn_random_graph(*state, seed, 5 + (int)(seed * 3 % 120), &g, &err), &err);
        sn_plan *p = plan_of(*state, g);
        sn_text text = print(p);
        expect_ok(sn_plan_parse(*state, g, text.text, devices, 1, &parsed, &err), &err);
        expect_same_plan(p, parsed);
        sn_text again = print(parsed);
        assert_string_equal(text.text, again.text);
        sn_text_end(&text);
        sn_text_end(&again);
        sn_plan_destroy(parsed);
        sn_plan_destroy(p);
        sn_graph_destroy(g);
    }
}

/* A graph with an opaque value and one input; its plan text by hand has every form of the
 * grammar. */
static sn_graph *pool_graph(snug_engine *e) {
    const snug_type x_type = {.dtype = SNUG_F32, .rank = 4, .dims = {4, 4, 4, 2}};
    snug_error err;
    sn_graph *g;
    sn_value x, out[SN_MAX_OUT];
    sn_attrs a;
    expect_ok(sn_graph_create(e, &g, &err), &err);
    expect_ok(sn_graph_input(g, "image", &x_type, &x, &err), &err);
    sn_builder b = sn_builder_on(g);
    sn_attrs_default(SN_OP_maxpool, &a);
    a.pool.kernel[0] = a.pool.kernel[1] = a.pool.stride[0] = a.pool.stride[1] = 2;
    sn_build_all(&b, SN_OP_maxpool, &a, &x, 1, out);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "y", out[0], &err), &err);
    return g;
}

static const char every_form[] =
    "snug plan 1\n"
    "device 0 align 64 name fake:0\n"
    "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
    "memory 1 device 0 bytes 1024 used 1024 bound 900 name an arena\n"
    "memory 2 device 0 bytes 512 used 512 bound 0 name spill\n"
    "opaque %2 bytes 32\n"
    "total flops 12345678901234 code 7 peak s3\n"
    "s0 repeat 2 rows 2 last 2\n"
    "s1 feed 0 -> %0@2+0+256 rows 0:0:2 on 0.1 name image\n"
    "s2 copy %0@2+0+256 rows 0:0:2 -> %0@1+0 rows 0:0:2 on 0.2 wait s1\n"
    "s3 run n0 maxpool v0 (%0@1+0 rows 0:0:2) -> (%1@1+256+64 rows 0:0:2 %2@1+384 rows 0:0:2) "
    "ws 1+960:64 on 0.0 wait s1 s2 impl fake\n"
    "s4 end\n"
    "output 0 %1@1+256\n"
    "end plan\n";

static void test_every_form_of_the_grammar_comes_back_the_same(void **state) {
    snug_error err;
    sn_plan *p;
    sn_graph *g = pool_graph(*state);
    expect_ok(sn_plan_parse(*state, g, every_form, devices, 1, &p, &err), &err);
    sn_text text = print(p);
    assert_string_equal(text.text, every_form);
    assert_int_equal(p->steps[1].out[0].stride, 256);
    assert_int_equal(p->steps[3].waits[1], 2);
    assert_int_equal(p->steps[3].out[1].rows, 2);
    sn_text_end(&text);
    sn_plan_destroy(p);
    sn_graph_destroy(g);
}

static void test_an_opaque_value_is_sliced_along_its_first_axis_only(void **state) {
    char text[sizeof every_form];
    snug_error err;
    sn_plan *p = NULL;
    sn_graph *g = pool_graph(*state);
    memcpy(text, every_form, sizeof text);
    strstr(text, "%2@1+384 rows 0:0:2")[16] = '1';
    expect_status(sn_plan_parse(*state, g, text, devices, 1, &p, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "opaque");
    sn_graph_destroy(g);
}

static void test_adding_sums_come_back_the_same(void **state) {
    static const char text[] =
        "snug plan 1\n"
        "device 0 align 64 name fake:0\n"
        "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
        "memory 1 device 0 bytes 128 used 76 bound 0 name arena\n"
        "total flops 0 code 0 peak s0\n"
        "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
        "s1 run n0 sum v0 (%0@1+0 rows 0:0:2) -> (%1@1+64) on 0.0 impl fake\n"
        "s2 run n0 sum v0 (%0@1+24 rows 2:0:1) -> (%1@1+64) on 0.0 acc add impl fake\n"
        "s3 repeat 3 rows 1 last 1\n"
        "s4 run n0 sum v0 (%0@1+0+12 rows 0:0:1) -> (%1@1+64) on 0.0 acc add_later impl fake\n"
        "s5 end\n"
        "output 0 %1@1+64\n"
        "end plan\n";
    const snug_type x_type = {.dtype = SNUG_F32, .rank = 2, .dims = {3, 3}};
    snug_error err;
    sn_graph *g;
    sn_plan *p;
    sn_value x;
    expect_ok(sn_graph_create(*state, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &x_type, &x, &err), &err);
    sn_builder b = sn_builder_on(g);
    const sn_value y = sn_build_sum(&b, x, 1u, false);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "y", y, &err), &err);
    expect_ok(sn_plan_parse(*state, g, text, devices, 1, &p, &err), &err);
    sn_text again = print(p);
    assert_string_equal(again.text, text);
    sn_text_end(&again);
    sn_plan_destroy(p);
    sn_graph_destroy(g);
}

static void test_a_text_cut_anywhere_is_refused(void **state) {
    sn_graph *g = pool_graph(*state);
    const size_t n = strlen(every_form);
    for (size_t cut = 0; cut < n; cut++) {
        snug_error err;
        sn_plan *p = NULL;
        char *text = malloc(cut + 1); /* exact, so that reading on is seen */
        memcpy(text, every_form, cut);
        text[cut] = '\0';
        if (sn_plan_parse(*state, g, text, devices, 1, &p, &err) != SNUG_E_FORMAT)
            fail_msg("cut at byte %zu: not refused as a format error", cut);
        assert_null(p);
        free(text);
    }
    sn_graph_destroy(g);
}

/* Each byte in turn becomes each of some others: an error, or a plan that the checker accepts. */
static void test_a_text_with_any_byte_changed_never_crashes(void **state) {
    static const char others[] = "019 s%@+:-\nx\x7f\xff";
    sn_graph *g = pool_graph(*state);
    char text[sizeof every_form];
    int accepted = 0;
    for (size_t i = 0; i + 1 < sizeof every_form; i++)
        for (const char *c = others; *c; c++) {
            snug_error err;
            sn_plan *p = NULL;
            memcpy(text, every_form, sizeof text);
            text[i] = *c;
            if (sn_plan_parse(*state, g, text, devices, 1, &p, &err) == SNUG_OK) {
                accepted++;
                expect_ok(sn_plan_check(p, devices, 1, &err), &err);
                sn_plan_destroy(p);
            }
        }
    assert_true(accepted > 0); /* flops, bounds and names may differ */
    sn_graph_destroy(g);
}

static void expect_refused(snug_engine *e, const sn_graph *g, const char *text, const char *says) {
    snug_error err;
    sn_plan *p = NULL;
    expect_status(sn_plan_parse(e, g, text, devices, 1, &p, &err), SNUG_E_FORMAT, &err);
    expect_text(err.text, says);
}

static void test_errors_name_the_line_and_what_was_expected(void **state) {
    sn_graph *g = pool_graph(*state);
    expect_refused(*state, g, "", "line 1: expected snug plan 1");
    expect_refused(*state, g, "snug plan 2\n", "line 1");
    expect_refused(*state, g, "snug plan 1\ndevice 1 align 64 name a\n",
                   "line 2: expected the next device");
    expect_refused(*state, g, "snug plan 1\ndevice 0 align 64 name a name that is much too long\n",
                   "a shorter name");
    expect_refused(*state, g, "snug plan 1\ndevice 0 align 99999999999999999999 name a\n",
                   "a smaller number");
    expect_refused(*state, g, "snug plan 1\ndevice 0 align 064 name a\n", "leading zeros");
    sn_graph_destroy(g);
}

static snug_status refuse(void *ctx, const char *text, size_t n, snug_error *err) {
    (void)text;
    size_t *left = ctx;
    if (n > *left)
        return sn_fail(err, SNUG_E_IO, "full");
    *left -= n;
    return SNUG_OK;
}

static void test_an_error_of_the_writer_is_passed_on(void **state) {
    sn_graph *g = pool_graph(*state);
    snug_error err;
    sn_plan *p = plan_of(*state, g);
    size_t left = 150;
    const snug_writer w = {&left, refuse};
    expect_status(sn_plan_print(p, &w, &err), SNUG_E_IO, &err);
    sn_plan_destroy(p);
    sn_graph_destroy(g);
}

static snug_status parse_every_form(snug_engine *e, void *ctx, snug_error *err) {
    const sn_graph *g = ctx;
    sn_plan *p = NULL;
    SNUG_TRY(sn_plan_parse(e, g, every_form, devices, 1, &p, err));
    sn_plan_destroy(p);
    return SNUG_OK;
}

static void test_any_failed_request_is_a_clean_error(void **state) {
    sn_graph *g = pool_graph(*state);
    sn_fault_sweep(parse_every_form, g);
    sn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_random_plans_come_back_the_same),
        engine_test(test_every_form_of_the_grammar_comes_back_the_same),
        engine_test(test_an_opaque_value_is_sliced_along_its_first_axis_only),
        engine_test(test_adding_sums_come_back_the_same),
        engine_test(test_a_text_cut_anywhere_is_refused),
        engine_test(test_a_text_with_any_byte_changed_never_crashes),
        engine_test(test_errors_name_the_line_and_what_was_expected),
        engine_test(test_an_error_of_the_writer_is_passed_on),
        engine_test(test_any_failed_request_is_a_clean_error),
    };
    return cmocka_run_group_tests(tests, init_device, NULL);
}
