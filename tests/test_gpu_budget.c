/* test_gpu_budget.c: budgets of device memory, by the emulated plug-in: slices, spilling to pinned
 * memory, floors and refusals. What is asserted of bytes is the card's own count. */
#include "support/gpu_card.h"

#include <snug/train.h>

#include <stdlib.h>

/* A step whose activations are what matters; with a middle layer its slots are, 4 MiB each. */
static snug_status make_wide(snug_engine *e, bool middle, snug_model **out, snug_error *err) {
    snug_model *m;
    SNUG_TRY(snug_model_create(e, "wide", &(snug_type){SNUG_F32, 1, {64}}, &m, err));
    snug_status status = snug_model_add(m, "Dense", "units=512 activation=relu", err);
    if (status == SNUG_OK && middle)
        status = snug_model_add(m, "Dense", "units=2048 activation=relu", err);
    if (status == SNUG_OK)
        status = snug_model_add(m, "Dense", "units=3 activation=softmax", err);
    if (status == SNUG_OK)
        status =
            snug_model_compile(m,
                               &(snug_compile){.optimizer = middle ? "adam:use_ema=true" : "adam",
                                               .loss = "sparse_categorical_crossentropy"},
                               err);
    if (status == SNUG_OK)
        *out = m;
    else
        snug_model_destroy(m);
    return status;
}

enum { MOST = 64 * 512 + 512 + 512 * 2048 + 2048 + 2048 * 3 + 3, BATCH = 512 };

typedef struct {
    float weights[MOST];
    size_t n_weights;
    snug_model_plan_info info;
    size_t held; /* of the card, after training */
    int64_t n_replays;
} wide_run;

static void fit_wide(snug_engine *e, bool middle, size_t budget, wide_run *out) {
    const int64_t batch = middle ? 16 : BATCH;
    snug_error err;
    snug_model *m;
    snug_feed *x, *y;
    expect_ok(open_gpu(e, budget, &err), &err);
    expect_ok(make_wide(e, middle, &m, &err), &err);
    expect_ok(snug_feed_open(e, middle ? "normal:16x64@1" : "normal:512x64@1", &x, &err), &err);
    expect_ok(snug_feed_open(e, middle ? "labels:16@2@3" : "labels:512@2@3", &y, &err), &err);
    expect_ok(snug_model_plan(m,
                              &(snug_plan_request){.batch = batch, .train = 1, .quick = budget > 0},
                              &out->info, &err),
              &err);
    expect_ok(
        snug_fit(m, &(snug_fit_options){.x = x, .y = y, .batch = batch, .epochs = 2}, NULL, &err),
        &err);
    out->held = card()->held_bytes + card()->graph_bytes;
    out->n_replays = card()->n_replays;
    size_t n = 0;
    for (size_t i = 0; i < snug_model_n_weights(m); i++) {
        snug_view v;
        expect_ok(snug_model_weight(m, i, NULL, &v, &err), &err);
        memcpy(out->weights + n, v.data, v.bytes);
        n += v.bytes / sizeof(float);
    }
    out->n_weights = n;
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_model_destroy(m);
    expect_ok(snug_device(e, "cpu", NULL, &err), &err);
}

static void test_a_tight_budget_is_held_in_slices_with_the_same_weights(void **state) {
    wide_run *roomy = malloc(sizeof *roomy), *tight = malloc(sizeof *tight);
    fit_wide(*state, false, 0, roomy);
    const size_t whole = roomy->info.peak_bytes + roomy->info.reserve_bytes;
    const size_t budget = (whole + roomy->info.floor_bytes) / 2;
    fit_wide(*state, false, budget, tight);
    assert_true(roomy->info.slices == 1 && tight->info.slices > 1);
    assert_true(tight->info.fits);
    assert_true(tight->held + fresh.context_bytes <= budget);
    assert_true(tight->held < roomy->held);
    expect_near(tight->weights, roomy->weights, roomy->n_weights, 1e-5);
    free(roomy);
    free(tight);
}

/* Sums over slices add to what is on the device. */
static void test_slices_run_on_the_host_with_the_same_weights(void **state) {
    wide_run *whole = malloc(sizeof *whole), *sliced = malloc(sizeof *sliced);
    card()->has_no_kernels = true;
    fit_wide(*state, false, 0, whole);
    const size_t most = whole->info.peak_bytes + whole->info.reserve_bytes;
    fit_wide(*state, false, (most + whole->info.floor_bytes) / 2, sliced);
    assert_true(sliced->info.slices > 1);
    expect_near(sliced->weights, whole->weights, whole->n_weights, 1e-6);
    free(whole);
    free(sliced);
}

static void test_the_floor_is_held_with_slots_in_pinned_memory(void **state) {
    wide_run *roomy = malloc(sizeof *roomy), *least = malloc(sizeof *least);
    fit_wide(*state, true, 0, roomy);
    fit_wide(*state, true, roomy->info.floor_bytes, least);
    assert_true(least->info.fits);
    assert_true(least->info.spilled_bytes > 0);
    assert_true(least->held + fresh.context_bytes <= roomy->info.floor_bytes);
    expect_near(least->weights, roomy->weights, roomy->n_weights, 1e-5);
    free(roomy);
    free(least);
}

/* Hundreds of slices: so many calls would take more memory than the budget has left. */
static void test_a_run_too_long_to_be_kept_is_not_captured(void **state) {
    snug_error err;
    snug_model *m;
    snug_feed *x, *y;
    snug_model_plan_info info;
    const snug_plan_request request = {.batch = 2048, .train = 1};
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(make_wide(*state, false, &m, &err), &err);
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    snug_model_destroy(m);
    const size_t budget = info.floor_bytes;
    expect_ok(open_gpu(*state, budget, &err), &err);
    expect_ok(make_wide(*state, false, &m, &err), &err);
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    assert_true(info.fits && info.slices > 50);
    expect_ok(snug_feed_open(*state, "normal:2048x64@1", &x, &err), &err);
    expect_ok(snug_feed_open(*state, "labels:2048@2@3", &y, &err), &err);
    expect_ok(
        snug_fit(m, &(snug_fit_options){.x = x, .y = y, .batch = 2048, .epochs = 2}, NULL, &err),
        &err);
    assert_int_equal(card()->n_replays, 0);
    assert_true(fresh.context_bytes + card()->held_bytes + card()->graph_bytes <= budget);
    snug_feed_destroy(x);
    snug_feed_destroy(y);
    snug_model_destroy(m);
}

static snug_model_plan_info plan_wide(snug_engine *e, size_t budget, size_t host) {
    snug_error err;
    snug_model *m;
    snug_model_plan_info info;
    expect_ok(snug_budget(e, 0, &err), &err);
    expect_ok(open_gpu(e, budget, &err), &err);
    expect_ok(make_wide(e, true, &m, &err), &err);
    expect_ok(snug_budget(e, host, &err), &err);
    const snug_plan_request request = {.batch = 16, .train = 1, .quick = budget > 0};
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    snug_model_destroy(m);
    expect_ok(snug_budget(e, 0, &err), &err);
    return info;
}

/* Slots of 4 MiB: what the host has no room for stays on the device, at a price there. */
static void test_what_waits_on_the_host_is_within_its_budget(void **state) {
    const snug_model_plan_info roomy = plan_wide(*state, 0, 0);
    const snug_model_plan_info least = plan_wide(*state, roomy.floor_bytes, 0);
    const size_t host = least.host_process_bytes + least.host_pinned_bytes;
    assert_true(least.host_fits && least.host_budget_bytes == 0);
    assert_int_equal(least.host_spilled_bytes, least.spilled_bytes);
    assert_true(least.spilled_bytes >= (size_t)12 << 20);
    const size_t narrow = host + ((size_t)6 << 20);
    const size_t floor = plan_wide(*state, 0, narrow).floor_bytes;
    assert_true(floor > roomy.floor_bytes);
    const snug_model_plan_info some = plan_wide(*state, floor, narrow);
    assert_true(some.fits && some.host_fits && some.spilled_bytes <= (size_t)6 << 20);
    assert_false(plan_wide(*state, roomy.floor_bytes, narrow).fits);
    const snug_model_plan_info all =
        plan_wide(*state, roomy.floor_bytes, host + ((size_t)14 << 20));
    assert_true(all.fits && all.host_fits && all.spilled_bytes == least.spilled_bytes);
    assert_false(plan_wide(*state, 0, host / 2).host_fits);
}

static void test_a_budget_below_the_floor_is_refused_with_numbers(void **state) {
    snug_error err;
    snug_model *m;
    snug_model_plan_info info;
    expect_ok(open_gpu(*state, fresh.context_bytes + ((size_t)1 << 20), &err), &err);
    expect_ok(make_wide(*state, false, &m, &err), &err);
    const snug_plan_request request = {.batch = BATCH, .train = 1};
    expect_ok(snug_model_plan(m, &request, &info, &err), &err);
    assert_false(info.fits);
    expect_status(snug_fit_check(m, &request, &err), SNUG_E_BUDGET, &err);
    expect_text(err.text, "context");
    snug_model_destroy(m);
}

static void test_a_card_that_others_fill_is_planned_into_what_is_left(void **state) {
    snug_error err;
    snug_model *m;
    snug_model_plan_info info;
    const size_t left = (size_t)18 << 20; /* 14 of them for a captured run */
    card()->others_bytes = fresh.total_bytes - fresh.context_bytes - left;
    expect_ok(open_gpu(*state, 0, &err), &err);
    expect_ok(make_wide(*state, false, &m, &err), &err);
    expect_ok(snug_model_plan(m, &(snug_plan_request){.batch = 8192, .train = 1}, &info, &err),
              &err);
    assert_int_equal(info.budget_bytes, fresh.context_bytes + left);
    assert_true(info.fits && info.slices > 1);
    assert_true(info.peak_bytes <= info.budget_bytes);
    expect_ok(snug_device_budget(*state, fresh.total_bytes, &err), &err);
    sn_text text = sn_text_begin();
    const snug_writer w = sn_text_writer(&text);
    expect_ok(snug_report_plan(m, &(snug_plan_request){.batch = 8192, .train = 1}, 0, &w, &err),
              &err);
    expect_text(text.text, "that is what is free on gpu:0 of the budget of 1.0 GiB");
    sn_text_end(&text);
    snug_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        gpu_test(test_a_tight_budget_is_held_in_slices_with_the_same_weights),
        gpu_test(test_slices_run_on_the_host_with_the_same_weights),
        gpu_test(test_the_floor_is_held_with_slots_in_pinned_memory),
        gpu_test(test_a_run_too_long_to_be_kept_is_not_captured),
        gpu_test(test_what_waits_on_the_host_is_within_its_budget),
        gpu_test(test_a_budget_below_the_floor_is_refused_with_numbers),
        gpu_test(test_a_card_that_others_fill_is_planned_into_what_is_left),
        late_gpu_test(test_the_floor_is_held_with_slots_in_pinned_memory),
    };
    return cmocka_run_group_tests_name("gpu_budget", tests, NULL, NULL);
}
