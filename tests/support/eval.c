/* eval.c: feeds of doubles and a state store around the naive executor. */
#include "support/eval.h"

#include "base/rng.h"
#include "exec/exec.h"
#include "support/support.h"

#include <stdlib.h>

static sn_test_arrays make_arrays(uint32_t n) {
    return (sn_test_arrays){n, calloc(n + 1, sizeof(double *)), calloc(n + 1, sizeof(size_t))};
}

void sn_test_arrays_clear(sn_test_arrays *a) {
    for (uint32_t i = 0; i < a->n; i++)
        free(a->data[i]);
    free(a->data);
    free(a->count);
    *a = (sn_test_arrays){0};
}

sn_test_arrays sn_test_inputs(const sn_graph *g, double low, double high) {
    sn_test_arrays a = make_arrays(sn_graph_n_inputs(g));
    for (uint32_t i = 0; i < a.n; i++) {
        const snug_type *t = sn_graph_type(g, sn_graph_input_at(g, i));
        a.count[i] = (size_t)sn_type_count(t);
        a.data[i] = calloc(a.count[i] + 1, sizeof(double));
        sn_random_fill_f64(SN_RANDOM_UNIFORM, sn_rng_key(11, i), 0, a.count[i], a.data[i]);
        for (size_t k = 0; k < a.count[i]; k++) {
            if (t->dtype == SNUG_BOOL)
                a.data[i][k] = (double)(k * 5 % 3 == 0);
            else if (sn_dtype_is_int(t->dtype))
                a.data[i][k] = (double)(k % 3);
            else
                a.data[i][k] = low + (high - low) * a.data[i][k];
        }
    }
    return a;
}

/* One element of a dtype the tests use. */
static void put(const snug_view *v, size_t k, double x) {
    if (v->type.dtype == SNUG_F64)
        ((double *)v->data)[k] = x;
    else if (v->type.dtype == SNUG_F32)
        ((float *)v->data)[k] = (float)x;
    else if (v->type.dtype == SNUG_I32)
        ((int32_t *)v->data)[k] = (int32_t)x;
    else if (v->type.dtype == SNUG_BOOL)
        ((uint8_t *)v->data)[k] = (uint8_t)x;
    else
        fail_msg("no test input of dtype %s", snug_dtype_name(v->type.dtype));
}

static double get(const snug_view *v, size_t k) {
    if (v->type.dtype == SNUG_F64)
        return ((double *)v->data)[k];
    if (v->type.dtype == SNUG_F32)
        return (double)((float *)v->data)[k];
    if (v->type.dtype == SNUG_I32)
        return ((int32_t *)v->data)[k];
    return ((uint8_t *)v->data)[k];
}

static snug_status fill_rows(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                             snug_error *err) {
    const double *from = ctx;
    const size_t count = (size_t)sn_type_count(&dst->type);
    (void)n;
    (void)err;
    assert_int_equal(first, 0);
    for (size_t k = 0; k < count; k++)
        put(dst, k, from[k]);
    return SNUG_OK;
}

static void add_homes(const sn_graph *g, sn_state *state) {
    snug_error err;
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *v = sn_graph_var_at(g, (sn_var){i});
        uint32_t id;
        const sn_home home = {.name = v->name,
                              .type = v->type,
                              .trainable = v->trainable,
                              .slot = v->slot,
                              .init = v->init};
        expect_ok(sn_state_add(state, &home, &id, &err), &err);
        assert_int_equal(id, v->home);
    }
}

sn_test_arrays sn_test_eval(snug_engine *e, const sn_graph *g, const sn_test_arrays *inputs) {
    snug_error err;
    sn_state *state;
    sn_test_arrays out = make_arrays(sn_graph_n_outputs(g));
    sn_input_binding *bindings = calloc(inputs->n + 1, sizeof *bindings);
    snug_view *views = calloc(out.n + 1, sizeof *views);
    for (uint32_t i = 0; i < inputs->n; i++)
        bindings[i] = (sn_input_binding){.ctx = inputs->data[i], .fill = fill_rows};
    for (uint32_t i = 0; i < out.n; i++) {
        views[i].type = *sn_graph_type(g, sn_graph_output_at(g, i));
        expect_ok(snug_type_bytes(&views[i].type, &views[i].bytes, &err), &err);
        views[i].data = calloc(views[i].bytes + 1, 1);
    }
    expect_ok(sn_state_create(e, &state, &err), &err);
    add_homes(g, state);
    const sn_naive_options o = {.reference_only = true, .inputs = bindings, .outputs = views};
    expect_ok(sn_naive_run(e, g, state, &o, &err), &err);
    for (uint32_t i = 0; i < out.n; i++) {
        out.count[i] = (size_t)sn_type_count(&views[i].type);
        out.data[i] = calloc(out.count[i] + 1, sizeof(double));
        for (size_t k = 0; k < out.count[i]; k++)
            out.data[i][k] = get(&views[i], k);
        free(views[i].data);
    }
    sn_state_destroy(state);
    free(views);
    free(bindings);
    return out;
}
