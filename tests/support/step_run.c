/* step_run.c: runs and comparisons (step_run.h). */
#include "support/random_graph.h"
#include "support/step_run.h"

#include "base/rng.h"
#include "exec/inside.h"
#include "support/arena.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- running ---------------------------------------------------------------------------------- */
/* Of the same homes with the same bytes. */
sn_state *sn_step_state_copy(const sn_step_subject *s) {
    snug_error err;
    sn_state *copy;
    expect_ok(sn_state_create(s->engine, &copy, &err), &err);
    for (uint32_t i = 0; i < sn_state_count(s->start); i++) {
        snug_view from, to;
        uint32_t id;
        expect_ok(sn_state_add(copy, sn_state_home(s->start, i), &id, &err), &err);
        expect_ok(sn_state_view(s->start, i, &from, &err), &err);
        expect_ok(sn_state_view(copy, i, &to, &err), &err);
        assert_int_equal(from.bytes, to.bytes);
        memcpy(to.data, from.data, from.bytes);
    }
    return copy;
}

static void add_result(sn_step_run *r, const char *name, int run, const snug_view *view) {
    r->results = realloc(r->results, (r->n + 1) * sizeof *r->results);
    sn_step_result *out = &r->results[r->n++];
    *out = (sn_step_result){.view = *view};
    snprintf(out->name, sizeof out->name, run < 0 ? "%s" : "%s of run %d", name, run);
    out->view.data = malloc(view->bytes + 1);
    memcpy(out->view.data, view->data, view->bytes);
}

void sn_step_run_add_outputs(sn_step_run *r, const snug_view *outputs, uint32_t n, int run) {
    for (uint32_t k = 0; k < n; k++) {
        char name[32];
        snprintf(name, sizeof name, "output %u", k);
        add_result(r, name, run, &outputs[k]);
    }
}

void sn_step_run_add_state(sn_step_run *r, sn_state *state) {
    for (uint32_t i = 0; i < sn_state_count(state); i++) {
        snug_error err;
        snug_view view;
        expect_ok(sn_state_view(state, i, &view, &err), &err);
        add_result(r, sn_state_home(state, i)->name, -1, &view);
    }
}

static void set_params(const sn_step_subject *s, sn_session *session, int run) {
    if (!s->model)
        return;
    sn_model_step step = *s->step;
    const int64_t before = s->model->iterations;
    step.session = session;
    s->model->iterations = before + run;
    sn_model_set_params(s->model, &step, sn_rng_key(77, (uint64_t)run), NULL);
    s->model->iterations = before;
}

static void run_session(const sn_step_subject *s, sn_executor *x, sn_session *session,
                        const sn_plan *plan, sn_step_run *out) {
    static const int poisons[2] = {0x5A, 0xA5};
    const snug_view arena = sn_executor_arena(x, SN_MEM_FIRST_ARENA);
    unsigned char *written = calloc(arena.bytes + 1, 1);
    snug_error err;
    for (int run = 0; run < s->n_runs; run++) {
        x->options.poison = poisons[run % 2];
        set_params(s, session, run);
        sn_session_set_passes(session, s->model && sn_model_scales(s->model));
        expect_ok(sn_session_run(session, &err), &err);
        sn_arena_mark(x, poisons[run % 2], written);
        for (uint32_t k = 0; k < sn_graph_n_outputs(s->graph); k++) {
            snug_view view;
            sn_session_output(session, k, &view);
            sn_step_run_add_outputs(out, &view, 1, run);
        }
    }
    if (s->n_runs > 1)
        sn_arena_expect_exact(plan, written, "step");
    free(written);
}

static void run_plan(const sn_step_subject *s, const sn_plan *plan, sn_step_run *out) {
    const sn_device *devices[1] = {&s->device->device};
    const sn_executor_options o = {.guard = true, .poison_set = true};
    sn_state *state = sn_step_state_copy(s);
    sn_executor *x;
    sn_session *session;
    snug_error err;
    expect_ok(sn_executor_create(s->engine, state, devices, 1, &o, &x, &err), &err);
    expect_ok(sn_executor_add(x, plan, &session, &err), &err);
    expect_ok(sn_executor_prepare(x, &err), &err);
    for (uint32_t i = 0; i < sn_graph_n_inputs(s->graph); i++)
        sn_session_bind_input(session, i, s->inputs[i]);
    run_session(s, x, session, plan, out);
    sn_step_run_add_state(out, state);
    sn_executor_destroy(x);
    sn_state_destroy(state);
}

snug_status sn_step_run_try(const sn_step_subject *s, const sn_plan_options *o, sn_step_run *out,
                            snug_error *err) {
    const sn_device *devices[1] = {&s->device->device};
    sn_plan_options options = *o;
    sn_plan *plan;
    options.devices = devices;
    options.n_devices = 1;
    SNUG_TRY(sn_plan_build(s->engine, s->graph, &options, &plan, err));
    *out = (sn_step_run){.arena_bytes = plan->memories[SN_MEM_FIRST_ARENA].bytes,
                         .slices = plan->slices,
                         .n_recomputed = plan->n_recomputed,
                         .seconds = plan->seconds};
    for (uint32_t i = 0; i < plan->n_steps; i++)
        out->n_blocks += plan->steps[i].kind == SN_STEP_REPEAT;
    if (s->n_runs > 0)
        run_plan(s, plan, out);
    sn_plan_destroy(plan);
    return SNUG_OK;
}

void sn_step_run_make(const sn_step_subject *s, const sn_plan_options *o, sn_step_run *out) {
    snug_error err;
    expect_ok(sn_step_run_try(s, o, out, &err), &err);
}

void sn_step_run_clear(sn_step_run *r) {
    for (size_t i = 0; i < r->n; i++)
        free(r->results[i].view.data);
    free(r->results);
    *r = (sn_step_run){.n = 0};
}

/* --- comparing -------------------------------------------------------------------------------- */
static double *as_double(const snug_view *v, size_t *n) {
    snug_error err;
    *n = (size_t)sn_type_count(&v->type);
    double *out = malloc(*n * sizeof(double) + 1);
    expect_ok(sn_convert(v->type.dtype, v->data, SNUG_F64, out, *n, &err), &err);
    return out;
}

static void expect_close(const sn_step_result *have, const sn_step_result *want, double tol,
                         const char *what) {
    size_t n, n_want;
    double scale = 1e-2;
    double *a = as_double(&have->view, &n), *b = as_double(&want->view, &n_want);
    assert_int_equal(n, n_want);
    for (size_t i = 0; i < n; i++)
        scale = fabs(b[i]) > scale ? fabs(b[i]) : scale;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= tol * scale) && memcmp(&a[i], &b[i], sizeof a[i]) != 0)
            fail_msg("%s: %s[%zu] is %.17g, should be %.17g (scale %g)", what, want->name, i, a[i],
                     b[i], scale);
    free(a);
    free(b);
}

void sn_step_run_expect_close(const sn_step_run *have, const sn_step_run *want, double tol,
                              const char *what) {
    assert_int_equal(have->n, want->n);
    for (size_t i = 0; i < want->n; i++) {
        const bool real = sn_dtype_is_float(want->results[i].view.type.dtype);
        expect_close(&have->results[i], &want->results[i], real ? tol : 0, what);
    }
}

void sn_step_run_expect_equal(const sn_step_run *have, const sn_step_run *want, const char *what) {
    assert_int_equal(have->n, want->n);
    for (size_t i = 0; i < want->n; i++)
        if (memcmp(have->results[i].view.data, want->results[i].view.data,
                   want->results[i].view.bytes) != 0)
            fail_msg("%s: %s has other bits", what, want->results[i].name);
}

/* --- a model as a subject --------------------------------------------------------------------- */
static void set_weighting(const snug_model *m, const sn_step_data *data, sn_weighting *out) {
    snug_error err;
    memset(out, 0, sizeof *out); /* padding, too: it is compared as bytes */
    for (int i = 0; i < data->n_w; i++) {
        snug_type *t = &out->weights[i];
        *t = *snug_feed_type(data->w[i]);
        while (t->rank > 1 && t->dims[t->rank - 1] == 1)
            t->dims[--t->rank] = 0;
        t->dtype = sn_dtype_computed(m->network->policy.compute);
        t->dims[0] = -1;
    }
    out->n_weights = data->n_w;
    if (data->class_weight)
        expect_ok(sn_class_weights_parse(data->class_weight, out->classes, &out->n_classes, &err),
                  &err);
}

static void bind_feed(sn_model_subject *s, snug_feed *feed, uint32_t input, int64_t batch) {
    const sn_value v = sn_graph_input_at(s->subject.graph, input);
    snug_error err;
    assert_true(input < SN_STEP_RUN_INPUTS);
    s->rows[input] = (sn_rows){.feed = feed, .n = batch};
    s->subject.inputs[input] = (sn_input_binding){.ctx = &s->rows[input], .fill = sn_rows_fill};
    expect_ok(sn_feed_prepare(feed, sn_graph_type(s->subject.graph, v)->dtype, &err), &err);
}

void sn_model_subject_make(snug_model *m, int64_t batch, const sn_step_data *data,
                           sn_model_subject *out) {
    sn_weighting weighting;
    sn_model_step *step;
    snug_error err;
    set_weighting(m, data, &weighting);
    expect_ok(sn_model_step_weighted(m, SN_STEP_TRAIN, batch, &weighting, &step, &err), &err);
    expect_ok(sn_model_add_homes(m, &err), &err);
    memset(out, 0, sizeof *out);
    out->subject = (sn_step_subject){.engine = m->engine,
                                     .graph = step->graph,
                                     .device = &m->device,
                                     .start = m->state,
                                     .model = m,
                                     .step = step,
                                     .n_runs = 3};
    for (int i = 0; i < data->n_x; i++)
        bind_feed(out, data->x[i], step->x[i], batch);
    for (int i = 0; i < data->n_y; i++)
        if (sn_model_has_target(m, (uint32_t)i))
            bind_feed(out, data->y[i], step->y[i], batch);
    for (int i = 0; i < data->n_w; i++)
        bind_feed(out, data->w[i], step->w[i], batch);
}

/* --- a graph as a subject --------------------------------------------------------------------- */
void sn_graph_subject_make(snug_engine *e, const sn_graph *g, uint64_t seed,
                           sn_graph_subject *out) {
    snug_error err;
    memset(out, 0, sizeof *out);
    sn_cpu_device_init(&out->device, snug_engine_threads(e), false);
    out->subject = (sn_step_subject){.engine = e, .graph = g, .device = &out->device, .n_runs = 2};
    assert_true(sn_graph_n_inputs(g) <= SN_STEP_RUN_INPUTS);
    for (uint32_t i = 0; i < sn_graph_n_inputs(g); i++) {
        out->keys[i] = sn_rng_key(seed, 100 + i);
        out->subject.inputs[i] =
            (sn_input_binding){.ctx = &out->keys[i], .fill = sn_random_fill_input};
    }
    expect_ok(sn_state_create(e, &out->subject.start, &err), &err);
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *v = sn_graph_var_at(g, (sn_var){i});
        const sn_home home = {.name = v->name, .type = v->type, .init = v->init};
        uint32_t id;
        expect_ok(sn_state_add(out->subject.start, &home, &id, &err), &err);
        assert_int_equal(id, v->home);
    }
}

void sn_graph_subject_clear(sn_graph_subject *s) {
    sn_state_destroy(s->subject.start);
}
