/* plan_world.h: plans written by hand that the checker accepts, and what they are plans of.
 *
 *     cmocka_run_group_tests(tests, plan_world_open, plan_world_close);   // *state is a plan_world
 *     plan_world_parse(w, plan_plain, &plan, &err);
 *
 * The graph of the hand-written plans (values in brackets):
 *
 *     n0 z[3] = matmul(x[0], w[2])     n3 g[6] = relu_grad(e, y)        n6 w[9] = sgd(w[2], c)
 *     n1 y[4] = relu(z)                n4 d[7] = matmul(x^T, g)
 *     n2 e[5] = sub(y, t[1])           n5 c[8] = check_finite(d)        output y
 *
 * x is 8 x 4 (16 bytes a row), t, z, y, e, g are 8 x 3 (12 bytes a row), w and d 4 x 3 (48
 * bytes). */
#ifndef SUPPORT_PLAN_WORLD_H
#define SUPPORT_PLAN_WORLD_H

#include "plan/plan.h"
#include "support/fake_device.h"
#include "support/support.h"

extern const char plan_plain[], plan_sliced[], plan_two_slices[], plan_rows[], plan_queues[],
    plan_devices2[];

typedef struct {
    snug_engine *engine;
    sn_graph *graph;
    sn_fake_device fake[2];
    const sn_device *devices[2];
} plan_world;

int plan_world_open(void **state);
int plan_world_close(void **state);
/* A step of two dense layers with a normalisation over the batch between them, for plans in so many
 * slices: its batch is gone through several times, and the outputs are z, of all rows, and the
 * loss. The caller destroys it. */
sn_graph *plan_world_network(snug_engine *e, int64_t rows);
snug_status plan_world_parse(const plan_world *w, const char *text, sn_plan **out, snug_error *err);

#endif
