/* test_ops_gradient.c: the gradient rule of every row of the table against differences in f64, from
 * the cases column alone; then the gradient's own gradient, where it is made of rows with rules.
 *
 * A case becomes a graph: its inputs, the operator, and a loss that is a linear functional of all
 * float outputs with random weights. Derivatives along a direction come from four points,
 *     (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12 h,
 * whose error is of order h^4, so that 1e-6 is asked of every one. The directions of an input are
 * one that moves all its elements and some that move a single one. */
#include "support/call.h"
#include "support/support.h"

#include "exec/exec.h"
#include "graph/build.h"
#include "graph/grad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SN_REDZONES
enum { N_SINGLE = 2 }; /* the same kernels run for every direction */
#else
enum { N_SINGLE = 12 };
#endif
enum { MAX_INPUTS = 48, MAX_ELEMENTS = 9000 };
#define STEP      1e-3
#define TOLERANCE 1e-6

void sn_grad_zero(sn_grad_call *c);

/* The graph of one case. Its values of interest are the operator's inputs (n_in of them) and then
 * the weights of functionals. All are graph inputs but a code, which a maxpool before the operator
 * makes. */
enum { MAX_MAKER = 2 }; /* inputs of what makes a code */

typedef struct {
    sn_subject *s;
    sn_graph *g;
    sn_state *state;
    int n_in, n;
    sn_value value[MAX_INPUTS];
    snug_view data[MAX_INPUTS];
    sn_input_binding binding[MAX_INPUTS]; /* per graph input */
    snug_view pooled[MAX_MAKER];          /* what a code was made of */
    int n_out;
    snug_view out[MAX_INPUTS]; /* results of the last run, per graph output */
} problem;

static snug_status give(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                        snug_error *err) {
    const snug_view *from = ctx;
    (void)first, (void)n, (void)err;
    memcpy(dst->data, from->data, dst->bytes);
    return SNUG_OK;
}

static sn_value bind_input(problem *p, snug_view *data) {
    char name[16];
    snug_error err;
    sn_value v;
    const uint32_t i = sn_graph_n_inputs(p->g);
    snprintf(name, sizeof name, "x%u", i);
    p->binding[i] = (sn_input_binding){.ctx = data, .fill = give};
    expect_ok(sn_graph_input(p->g, name, &data->type, &v, &err), &err);
    return v;
}

static sn_value add_input(problem *p, snug_view data) {
    const int i = p->n++;
    assert_true(i < MAX_INPUTS - 1);
    p->data[i] = data;
    return p->value[i] = bind_input(p, &p->data[i]);
}

/* Operator input i: the code of a pooling of numbers of its own. */
static void add_code(problem *p, int i) {
    snug_error err;
    sn_opdesc maker;
    sn_value in[MAX_MAKER], outs[SN_MAX_OUT];
    sn_code_maker(&p->s->desc, i, &maker);
    assert_true(maker.n_in <= MAX_MAKER);
    for (int k = 0; k < maker.n_in; k++) {
        p->pooled[k] = sn_view_make(&maker.in[k], 0, 0);
        sn_view_random(&p->pooled[k], 3 + (uint64_t)k, -9, 9);
        in[k] = bind_input(p, &p->pooled[k]);
    }
    expect_ok(sn_graph_node(p->g, maker.op, &maker.attrs, in, maker.n_in, outs, NULL, &err), &err);
    p->value[p->n++] = outs[1];
}

static void add_output(problem *p, sn_value v) {
    char name[16];
    snug_error err;
    assert_true(p->n_out < MAX_INPUTS);
    snprintf(name, sizeof name, "y%d", p->n_out);
    expect_ok(sn_graph_output(p->g, name, v, &err), &err);
    p->out[p->n_out++] = sn_view_make(sn_graph_type(p->g, v), 0, 0);
}

static bool is_real(const problem *p, sn_value v) {
    return sn_graph_type(p->g, v)->dtype == SNUG_F64;
}

/* loss + sum(weights * v), with new weights; loss may be SN_NO_VALUE. */
static sn_value add_functional(problem *p, sn_builder *b, sn_value loss, sn_value v) {
    const snug_view weights = sn_view_make(sn_graph_type(p->g, v), 0, 0);
    sn_view_random(&weights, (uint64_t)p->n + 1000, -1, 1);
    const sn_value product = sn_build_mul(b, v, add_input(p, weights));
    const sn_value sum = sn_build_sum(b, product, 0, false);
    return sn_value_ok(loss) ? sn_build_add(b, loss, sum) : sum;
}

static bool evaluate(problem *p, snug_error *err) {
    const sn_naive_options o = {.reference_only = true, .inputs = p->binding, .outputs = p->out};
    return sn_naive_run(p->s->sweep->engine, p->g, p->state, &o, err) == SNUG_OK;
}

/* --- differences ----------------------------------------------------------------------------- */

static double result(const problem *p, int output) {
    return ((const double *)p->out[output].data)[0];
}

/* Moves input i by `by` along the direction. */
static void move(problem *p, int i, const double *start, const double *direction, double by) {
    double *x = p->data[i].data;
    for (int64_t k = 0; k < sn_view_count(&p->data[i]); k++)
        x[k] = start[k] + by * direction[k];
}

/* The derivative of a scalar output along a direction of input i. */
static double difference(problem *p, int output, int i, const double *direction) {
    static const double at[4] = {STEP, -STEP, 2 * STEP, -2 * STEP};
    static const double factor[4] = {8, -8, -1, 1};
    snug_view start = sn_view_copy(&p->data[i]);
    double sum = 0;
    snug_error err;
    for (int k = 0; k < 4; k++) {
        move(p, i, start.data, direction, at[k]);
        if (!evaluate(p, &err))
            sn_complain(p->s, "does not run: %s", err.text);
        sum += factor[k] * result(p, output);
    }
    memcpy(p->data[i].data, start.data, start.bytes);
    sn_view_free(&start);
    return sum / (12 * STEP);
}

/* Element `single` alone, or all with -1. */
static void make_direction(double *d, int64_t n, int64_t single, uint64_t key) {
    const snug_view v = {d, (size_t)n * sizeof *d, {SNUG_F64, 1, {n}}};
    if (single < 0)
        sn_view_random(&v, key, -1, 1);
    else
        memset(d, 0, (size_t)n * sizeof *d);
    if (single >= 0)
        d[single] = 1;
}

/* --- one order ------------------------------------------------------------------------------- */

/* What is asked: derivatives of a scalar output by some inputs, along directions. */
typedef struct {
    int input;
    int64_t single;
    double wanted;
} question;

typedef struct {
    int n;
    question list[MAX_INPUTS * (N_SINGLE + 1)];
} questions;

static void ask(problem *p, int output, int i, int64_t single, questions *q) {
    const int64_t n = sn_view_count(&p->data[i]);
    double *direction = malloc((size_t)(n + 1) * sizeof *direction);
    make_direction(direction, n, single, (uint64_t)i + 7);
    q->list[q->n++] = (question){i, single, difference(p, output, i, direction)};
    free(direction);
}

/* First, last and others in between. */
static void ask_all(problem *p, int output, int n_inputs, questions *q) {
    for (int i = 0; i < n_inputs; i++) {
        const int64_t n = sn_view_count(&p->data[i]);
        if (!is_real(p, p->value[i]) || n == 0)
            continue;
        ask(p, output, i, -1, q);
        for (int k = 0; k < N_SINGLE && k < n; k++)
            ask(p, output, i,
                k == 0 ? 0 : k * (n - 1) / (N_SINGLE - 1 < n - 1 ? N_SINGLE - 1 : n - 1), q);
    }
}

/* grad is the gradient by the question's input, or NULL: zero. */
static void check_answer(problem *p, const question *q, const snug_view *grad, int order) {
    const int64_t n = sn_view_count(&p->data[q->input]);
    double *direction = malloc((size_t)(n + 1) * sizeof *direction);
    double got = 0, scale = 0;
    make_direction(direction, n, q->single, (uint64_t)q->input + 7);
    for (int64_t k = 0; grad && k < n; k++) {
        const double g = ((const double *)grad->data)[k];
        got += g * direction[k];
        scale = q->single < 0 ? scale + fabs(g * direction[k]) : fmax(scale, fabs(g));
    }
    free(direction);
    sn_checked(p->s);
    /* The floor: what rounding leaves of differences, where terms cancel or are small by
     * themselves. */
    const double size = fmax(fmax(fabs(got), fabs(q->wanted)), 1e-3 * scale + 1e-5);
    if (!(fabs(got - q->wanted) <= TOLERANCE * size))
        sn_complain(p->s,
                    "order %d, input %d, element %lld (-1: all): %.12g, differences say %.12g",
                    order, q->input, (long long)q->single, got, q->wanted);
}

/* Runs the graph once more and compares gradients, which are outputs from `first` on in the order
 * of inputs that have one. */
static void check_answers(problem *p, const questions *q, const sn_value *grads, int first,
                          int order) {
    snug_error err;
    int place[MAX_INPUTS], at = first;
    for (int i = 0; i < MAX_INPUTS; i++)
        place[i] = i < p->n && sn_value_ok(grads[i]) ? at++ : -1;
    if (!evaluate(p, &err)) {
        sn_complain(p->s, "gradients of order %d do not run: %s", order, err.text);
        return;
    }
    for (int k = 0; k < q->n; k++) {
        const int out = place[q->list[k].input];
        check_answer(p, &q->list[k], out < 0 ? NULL : &p->out[out], order);
    }
}

/* --- the rule -------------------------------------------------------------------------------- */

/* Gradients by the float inputs among the first n; the others have none. */
static snug_status take_gradients(problem *p, sn_value loss, int n, sn_value *grads,
                                  snug_error *err) {
    sn_value wrt[MAX_INPUTS] = {{0}}, got[MAX_INPUTS];
    int at[MAX_INPUTS], n_wrt = 0;
    for (int i = 0; i < MAX_INPUTS; i++)
        grads[i] = SN_NO_VALUE;
    for (int i = 0; i < n; i++) {
        if (is_real(p, p->value[i])) {
            at[n_wrt] = i;
            wrt[n_wrt++] = p->value[i];
        }
    }
    SNUG_TRY(sn_graph_gradients(p->g, loss, wrt, n_wrt, got, err));
    for (int k = 0; k < n_wrt; k++)
        grads[at[k]] = got[k];
    return SNUG_OK;
}

/* Whether some node that makes a float has no rule: then another order may be refused. */
static bool has_rules(const sn_graph *g) {
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){i});
        if (!sn_grad_rules[node->op] && sn_dtype_is_float(sn_graph_type(g, node->out[0])->dtype))
            return false;
    }
    return true;
}

/* The gradient as a loss, by everything there is so far: inputs and the weights of the first
 * loss. */
static void check_second_order(problem *p, const sn_value *grads) {
    snug_error err;
    sn_builder b = sn_builder_on(p->g);
    sn_value loss = SN_NO_VALUE, second[MAX_INPUTS];
    const int n = p->n;
    for (int i = 0; i < p->n_in; i++)
        if (sn_value_ok(grads[i]))
            loss = add_functional(p, &b, loss, grads[i]);
    expect_ok(sn_builder_done(&b, &err), &err);
    if (!sn_value_ok(loss))
        return;
    const int output = p->n_out;
    add_output(p, loss);
    questions q = {0};
    ask_all(p, output, n, &q);
    const bool must = has_rules(p->g);
    const snug_status status = take_gradients(p, loss, n, second, &err);
    if (status != SNUG_OK) {
        if (must || status != SNUG_E_UNSUPPORTED)
            sn_complain(p->s, "second order: %s", err.text);
        return;
    }
    for (int i = 0; i < n; i++)
        if (sn_value_ok(second[i]))
            add_output(p, second[i]);
    check_answers(p, &q, second, output + 1, 2);
}

static void check_first_order(problem *p, sn_value loss) {
    snug_error err;
    sn_value grads[MAX_INPUTS];
    const sn_grad_rule rule = sn_grad_rules[p->s->op];
    const bool refused = !rule || p->s->from->kind == SN_CASE_FUSED;
    questions q = {0};
    add_output(p, loss);
    /* stop_gradient: whose gradient is none by name, not by nature */
    if (!refused && p->s->op != SN_OP_stop_gradient)
        ask_all(p, 0, p->n_in, &q);
    const snug_status status = take_gradients(p, loss, p->n_in, grads, &err);
    if (refused) {
        sn_checked(p->s);
        if (status != SNUG_E_UNSUPPORTED)
            sn_complain(p->s, "its gradient is %s, not refused", snug_status_name(status));
        return;
    }
    if (status != SNUG_OK) {
        sn_complain(p->s, "no gradient: %s", err.text);
        return;
    }
    for (int i = 0; i < p->n_in; i++) {
        if (rule == sn_grad_zero && sn_value_ok(grads[i]))
            sn_complain(p->s, "the row says zero, but input %d has a gradient", i);
        if (sn_value_ok(grads[i]))
            add_output(p, grads[i]);
    }
    check_answers(p, &q, grads, 1, 1);
    check_second_order(p, grads);
}

/* --- building -------------------------------------------------------------------------------- */

static snug_status add_slot(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                            snug_error *err) {
    const sn_param_info info = {
        .name = "", .kind = is_key ? SN_PARAM_KEY : SN_PARAM_REAL, .real = real, .key = key};
    sn_param p;
    SNUG_TRY(sn_graph_param(ctx, &info, &p, err));
    *slot = (int64_t)p.i;
    return SNUG_OK;
}

/* The operator on its inputs, and the loss of its float outputs; SN_NO_VALUE where there is
 * none. */
static sn_value build_loss(problem *p) {
    sn_subject *s = p->s;
    char text[256];
    snug_error err;
    sn_attrs attrs;
    sn_value outs[SN_MAX_OUT], loss = SN_NO_VALUE;
    const sn_param_maker maker = {p->g, add_slot};
    for (int i = 0; i < s->desc.n_in; i++) {
        if (s->desc.in[i].dtype == SNUG_OPAQUE)
            add_code(p, i);
        else
            add_input(p, sn_view_copy(&s->in[i]));
    }
    p->n_in = p->n;
    expect_ok(sn_attrs_parse(s->op, sn_case_attrs(s->from, s->real, text), &maker, &attrs, &err),
              &err);
    int n_outs = 0;
    expect_ok(sn_graph_node(p->g, s->op, &attrs, p->value, p->n_in, outs, &n_outs, &err), &err);
    sn_builder b = sn_builder_on(p->g);
    for (int k = 0; k < n_outs; k++)
        if (is_real(p, outs[k]) && !(sn_case_sets[s->op]->no_gradient >> k & 1))
            loss = add_functional(p, &b, loss, outs[k]);
    expect_ok(sn_builder_done(&b, &err), &err);
    return loss;
}

static void check_gradient(sn_subject *s) {
    if (s->real != SNUG_F64 || s->from->kind == SN_CASE_VALUES ||
        sn_subject_elements(s) > MAX_ELEMENTS || sn_ops[s->op].effect == SN_STATE)
        return;
    problem p = {.s = s};
    snug_error err;
    expect_ok(sn_graph_create(s->sweep->engine, &p.g, &err), &err);
    expect_ok(sn_state_create(s->sweep->engine, &p.state, &err), &err);
    const sn_value loss = build_loss(&p);
    bool any = false;
    for (int i = 0; i < p.n_in; i++)
        any = any || is_real(&p, p.value[i]);
    if (any && sn_value_ok(loss))
        check_first_order(&p, loss);
    sn_views_free(p.data, p.n);
    sn_views_free(p.pooled, MAX_MAKER);
    sn_views_free(p.out, p.n_out);
    sn_state_destroy(p.state);
    sn_graph_destroy(p.g);
}

static void test_gradients_agree_with_differences(void **state) {
    (void)state;
    sn_sweep w;
    sn_sweep_begin(&w, "gradient");
    sn_sweep_run(&w, check_gradient);
    for (int op = 0; op < SN_N_OPS; op++) {
        const bool has = sn_grad_rules[op] && sn_grad_rules[op] != sn_grad_zero;
        if (has && w.checked[op] == 0)
            fail_msg("no case of %s was differentiated", sn_ops[op].name);
    }
    sn_sweep_end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_agree_with_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
