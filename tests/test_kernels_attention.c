/* test_kernels_attention.c: queries that see no key, with later keys out of sight: the fast f32
 * kernels weigh all keys alike, as the reference does, and so do their gradients. (Sweeps compare
 * the kernels elsewhere; their cases have no infinities.) */
#include "support/kernel_call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 150, H = 2, D = 8, BLIND = 70 };

static const double scale = 0.4;

/* Queries before BLIND have a bias of -infinity for every key up to their own. */
static void blind_some(const snug_view *bias) {
    float *b = bias->data;
    for (int t = 0; t < BLIND; t++)
        for (int s = 0; s <= t; s++)
            b[t * T + s] = -INFINITY;
}

static void begin(sn_test_call *k, sn_op op, int n_rows) {
    sn_begin(k, op);
    for (int i = 0; i < n_rows; i++)
        if (op == SN_OP_attention_grad && i == 4)
            sn_add_in(k, SHAPE(SNUG_F32, 1, T, H), -1, 1);
        else
            sn_add_in(k, SHAPE(SNUG_F32, 1, T, H, D), -1, 1);
    sn_add_in(k, SHAPE(SNUG_F32, 1, 1, T, T), -1, 1);
    blind_some(&k->in[n_rows]);
    k->d.attrs.attention.causal = 1;
    sn_ready(k);
    k->param[0].real = scale;
}

/* Outputs of the fast kernel and of the reference, element by element. */
static void compare(sn_test_call *k) {
    float *fast[SN_MAX_OUT];
    sn_run(k);
    for (int i = 0; i < k->d.n_out; i++) {
        fast[i] = malloc(k->out[i].bytes);
        memcpy(fast[i], k->out[i].data, k->out[i].bytes);
    }
    sn_run_reference(k);
    for (int i = 0; i < k->d.n_out; i++) {
        const float *want = k->out[i].data;
        for (size_t n = 0; n < k->out[i].bytes / sizeof *want; n++)
            if (!(fabsf(fast[i][n] - want[n]) <= 1e-4f * (1 + fabsf(want[n]))))
                fail_msg("output %d, element %zu: %g, the reference has %g", i, n,
                         (double)fast[i][n], (double)want[n]);
        free(fast[i]);
    }
}

static void test_a_blind_causal_query_weighs_all_keys_alike(void **state) {
    (void)state;
    sn_test_call k;
    begin(&k, SN_OP_attention, 3);
    compare(&k);
    const float *v = k.in[2].data, *y = k.out[0].data;
    double mean = 0;
    for (int s = 0; s < T; s++)
        mean += (double)v[s * H * D] / T;
    assert_true(fabs((double)y[0] - mean) < 1e-6);
    sn_kernel_close(&k);
}

static void test_gradients_of_blind_causal_queries_are_the_reference_s(void **state) {
    (void)state;
    sn_test_call forward, k;
    begin(&forward, SN_OP_attention, 3);
    sn_run_reference(&forward);
    begin(&k, SN_OP_attention_grad, 6);
    for (int i = 0; i < 3; i++)
        memcpy(k.in[i].data, forward.in[i].data, k.in[i].bytes);
    memcpy(k.in[3].data, forward.out[0].data, k.in[3].bytes);
    memcpy(k.in[4].data, forward.out[1].data, k.in[4].bytes);
    memcpy(k.in[6].data, forward.in[3].data, k.in[6].bytes);
    compare(&k);
    sn_kernel_close(&k);
    sn_kernel_close(&forward);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_blind_causal_query_weighs_all_keys_alike),
        cmocka_unit_test(test_gradients_of_blind_causal_queries_are_the_reference_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
