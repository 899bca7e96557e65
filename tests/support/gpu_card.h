/* gpu_card.h: the emulated card, for test programs that open it: a fresh one before each test, and
 * everything given back after it, on both sides. */
#ifndef SN_TESTS_GPU_CARD_H
#define SN_TESTS_GPU_CARD_H

#include "support/cuda_driver.h"
#include "support/support.h"

#include <dlfcn.h>
#include <math.h>
#include <snug/device.h>
#include <string.h>

static const sn_emulated_card fresh = {.total_bytes = (size_t)1 << 30,
                                       .context_bytes = (size_t)264 << 20,
                                       .n_devices = 1,
                                       .fail_at = -1};

/* The card of the plug-in, which stays loaded. */
static inline sn_emulated_card *card(void) {
    static sn_emulated_card *found;
    if (!found) {
        sn_emulated_world_fn world;
        void *library = dlopen(SNUG_EMULATED_PLUGIN, RTLD_NOW);
        assert_non_null(library);
        void *symbol = dlsym(library, "sn_emulated_world");
        memcpy(&world, &symbol, sizeof world);
        found = world();
    }
    return found;
}

static inline snug_status open_gpu(snug_engine *e, size_t budget, snug_error *err) {
    const snug_device_options o = {.budget_bytes = budget, .plugin = SNUG_EMULATED_PLUGIN};
    return snug_device(e, "gpu", &o, err);
}

static inline int setup(void **state) {
    *card() = fresh;
    return sn_engine_setup(state);
}

/* Everything is given back, on both sides. */
static inline int teardown(void **state) {
    snug_error err;
    expect_ok(snug_device(*state, "cpu", NULL, &err), &err);
    assert_int_equal(card()->held_bytes + card()->graph_bytes, 0);
    assert_int_equal(card()->n_contexts, 0);
    return sn_engine_teardown(state);
}

/* Weights of a run beside those of another. */
static inline void expect_near(const float *a, const float *b, size_t n, double tolerance) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance))
            fail_msg("weight %zu is %.9g, the processor's %.9g", i, (double)a[i], (double)b[i]);
}

#define gpu_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline int setup_first_first(void **state) {
    const int status = setup(state);
    card()->haste = SN_EMULATED_FIRST_FIRST;
    return status;
}

static inline int setup_last_first(void **state) {
    const int status = setup(state);
    card()->haste = SN_EMULATED_LAST_FIRST;
    return status;
}

/* A test once more on cards whose queues run late: it fails where an order among them is
 * missing. */
#define late_gpu_test(f)                                                                           \
    {#f ", the first queue first", f, setup_first_first, teardown, NULL}, {                        \
#f ", the last queue first", f, setup_last_first, teardown, NULL                           \
    }

#endif
