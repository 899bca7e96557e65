/* gradient.c: the reverse pass, graph to graph. From a scalar loss it walks the nodes backwards,
 * over those only that depend on one of wrt, and asks each row's rule for the gradients of its
 * inputs.
 *
 * Invariants:
 * 1. A value's gradient is complete before its maker is visited, because readers stand behind the
 *    maker.
 * 2. Gradients that meet in a value are added in reverse program order of the readers: the sum has
 *    one order.
 * 3. What a rule appends is part BACKWARD and belongs to the layer of the node it differentiates;
 *    of that node's inputs and outputs it reads only what the `reads` column declares (checked
 *    here, always: the planner frees the others).
 * 4. On any error the graph is what it was. */
#include "graph/store.h"

#include "graph/grad.h"

#include <string.h>

#define SNUG_OP(name, in, attrs, shape, gradient, ...) void sn_grad_##gradient(sn_grad_call *c);
#include "op/ops.def"
#undef SNUG_OP

#define sn_grad_none NULL
const sn_grad_rule sn_grad_rules[SN_N_OPS] = {
#define SNUG_OP(name, in, attrs, shape, gradient, ...) [SN_OP_##name] = sn_grad_##gradient,
#include "op/ops.def"
#undef SNUG_OP
};

/* One reverse pass. Arrays have an entry per value of the graph as it was at the start. */
typedef struct {
    sn_graph *g;
    sn_builder b;
    size_t n_values;
    const sn_gradient_paths *paths; /* NULL: all */
    bool *depends;                  /* on one of wrt, through rows that carry gradients */
    sn_value *grad;                 /* the sum so far */
    uint32_t first;                 /* node that depends on one of wrt */
} reverse_pass;

static bool is_float(const sn_graph *g, sn_value v) {
    return sn_dtype_is_float(sn_graph_type(g, v)->dtype);
}

/* --- what depends on wrt ---------------------------------------------------------------------- */

/* Rows with rule `zero` and values that are not floats end the dependence: no gradient comes back
 * through them. */
static void mark_value(reverse_pass *p, sn_value v) {
    p->depends[v.i] = true;
    if (p->paths && p->paths->stand_in && sn_value_ok(p->paths->stand_in[v.i]))
        p->depends[p->paths->stand_in[v.i].i] = true;
}

static bool is_on_path(const reverse_pass *p, sn_value v) {
    return !p->paths || (p->paths->marks[v.i] & p->paths->mask) != 0;
}

/* Of a recording, an assignment's result is a source of its own. */
static bool carries(const reverse_pass *p, sn_op op) {
    return sn_grad_rules[op] != sn_grad_zero && !(p->paths && sn_ops[op].effect == SN_STATE);
}

static bool is_skipped(const reverse_pass *p, uint32_t node) {
    return p->paths && node >= p->paths->skip_from && node < p->paths->skip_to;
}

static void mark_dependent(reverse_pass *p, const sn_value *wrt, int n) {
    for (int k = 0; k < n; k++)
        mark_value(p, wrt[k]);
    const uint32_t n_nodes = sn_graph_n_nodes(p->g);
    p->first = n_nodes;
    for (uint32_t i = p->paths ? p->paths->first_node : 0; i < n_nodes; i++) {
        if (is_skipped(p, i)) {
            i = p->paths->skip_to - 1;
            continue;
        }
        const sn_node_info *node = sn_graph_node_at(p->g, (sn_node){i});
        bool any = false;
        for (int k = 0; k < node->n_in && carries(p, node->op); k++)
            any = any || p->depends[node->in[k].i];
        p->first = any && i < p->first ? i : p->first;
        for (int k = 0; any && k < node->n_out; k++)
            if (is_float(p->g, node->out[k]) && is_on_path(p, node->out[k]))
                mark_value(p, node->out[k]);
    }
}

/* --- one node --------------------------------------------------------------------------------- */

/* Whether a gradient arrived and an input wants one; fills the call. */
/* What is read of value v. */
static sn_value read_as(const reverse_pass *p, sn_value v) {
    const sn_value other = p->paths && p->paths->stand_in ? p->paths->stand_in[v.i] : SN_NO_VALUE;
    return sn_value_ok(other) ? other : v;
}

/* Halves are added as f32: they are there to be stored and cast. */
static sn_value add_gradients(sn_builder *b, sn_value x, sn_value y) {
    if (!sn_value_ok(x))
        return y;
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_dtype dtype = sn_graph_type(b->graph, x)->dtype;
    if (dtype != SNUG_F16 && dtype != SNUG_BF16)
        return sn_build_add(b, x, y);
    const sn_value f = sn_build_cast(b, x, SNUG_F32), g = sn_build_cast(b, y, SNUG_F32);
    return sn_build_cast(b, sn_build_add(b, f, g), dtype);
}

/* The gradient of a value is also that of its stand-in. */
static void add_stand_in(reverse_pass *p, sn_value v) {
    const sn_value other = read_as(p, v);
    if (other.i == v.i || !sn_value_ok(p->grad[other.i]))
        return;
    p->grad[v.i] = add_gradients(&p->b, p->grad[v.i], p->grad[other.i]);
    p->grad[other.i] = SN_NO_VALUE;
}

static bool prepare_call(reverse_pass *p, const sn_node_info *node, sn_grad_call *c) {
    bool arrived = false, wanted = false;
    *c = (sn_grad_call){.b = &p->b, .node = node};
    for (int k = 0; k < node->n_out; k++) {
        add_stand_in(p, node->out[k]);
        c->out[k] = read_as(p, node->out[k]);
        c->dout[k] = p->grad[node->out[k].i];
        arrived = arrived || sn_value_ok(c->dout[k]);
    }
    for (int i = 0; i < node->n_in; i++) {
        c->in[i] = read_as(p, node->in[i]);
        c->din[i] = SN_NO_VALUE;
        c->wants[i] = p->depends[node->in[i].i];
        wanted = wanted || c->wants[i];
    }
    return arrived && wanted;
}

static bool declares_read(const sn_node_info *node, sn_value v) {
    const uint32_t reads = sn_ops[node->op].reads;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i].i == v.i && (reads & SN_READS_IN(i)))
            return true;
    for (int k = 0; k < node->n_out; k++)
        if (node->out[k].i == v.i && (reads & SN_READS_OUT(k)))
            return true;
    return false;
}

static bool touches(const sn_node_info *node, sn_value v) {
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i].i == v.i)
            return true;
    for (int k = 0; k < node->n_out; k++)
        if (node->out[k].i == v.i)
            return true;
    return false;
}

/* Invariant 3 over the nodes from `first` on. */
static snug_status check_reads(const sn_graph *g, const sn_node_info *node, uint32_t first,
                               snug_error *err) {
    for (uint32_t i = first; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *made = sn_graph_node_at(g, (sn_node){i});
        for (int k = 0; k < made->n_in; k++)
            if (touches(node, made->in[k]) && !declares_read(node, made->in[k]))
                return sn_fail(
                    err, SNUG_E_INTERNAL,
                    "the gradient rule of %s reads value %u in a %s, but its row does not say so",
                    sn_ops[node->op].name, made->in[k].i, sn_ops[made->op].name);
    }
    return SNUG_OK;
}

/* Adds the rule's answers to the sums. An answer has the type of its input. */
static snug_status collect(reverse_pass *p, const sn_grad_call *c, snug_error *err) {
    for (int i = 0; i < c->node->n_in; i++) {
        if (!c->wants[i] || !sn_value_ok(c->din[i]))
            continue;
        const sn_value in = c->node->in[i];
        if (!sn_type_equal(sn_graph_type(p->g, in), sn_graph_type(p->g, c->din[i])))
            return sn_fail(err, SNUG_E_INTERNAL,
                           "the gradient rule of %s gave input %d another type",
                           sn_ops[c->node->op].name, i);
        p->grad[in.i] = add_gradients(&p->b, p->grad[in.i], c->din[i]);
    }
    return sn_builder_done(&p->b, err);
}

static snug_status no_rule(const sn_graph *g, const sn_node_info *node, snug_error *err) {
    const char *owner = sn_graph_owner_name(g, node->owner);
    return sn_fail(
        err, SNUG_E_UNSUPPORTED,
        "%s%s%s has no gradient; put stop_gradient before it or leave it out of the loss",
        sn_ops[node->op].name, *owner ? " of layer " : "", owner);
}

static snug_status visit(reverse_pass *p, sn_node n, snug_error *err) {
    sn_node_info node; /* whole: rules copy its attributes */
    sn_grad_call c;
    sn_graph_copy_node(p->g, n, &node);
    if (!prepare_call(p, &node, &c) || !carries(p, node.op))
        return SNUG_OK;
    const sn_grad_rule rule = sn_grad_rules[node.op];
    if (!rule)
        return no_rule(p->g, &node, err);
    const uint32_t first = sn_graph_n_nodes(p->g);
    sn_graph_set_owner_at(p->g, node.owner);
    rule(&c);
    const snug_status status = sn_builder_done(&p->b, err);
    if (status != SNUG_OK)
        return sn_fail_in(err, status, "gradient of %s", sn_ops[node.op].name);
    SNUG_TRY(check_reads(p->g, &node, first, err));
    return collect(p, &c, err);
}

/* --- the pass --------------------------------------------------------------------------------- */

static snug_status check_wrt(const sn_graph *g, const sn_value *wrt, int n, snug_error *err) {
    const uint32_t n_values = sn_graph_n_values(g);
    for (int k = 0; k < n; k++) {
        if (wrt[k].i >= n_values)
            return sn_fail(err, SNUG_E_INVALID,
                           "gradient %d is asked for value %u, but there are %u values", k,
                           wrt[k].i, n_values);
        if (!is_float(g, wrt[k]))
            return sn_fail(err, SNUG_E_INVALID,
                           "gradient %d is asked for a value that is not of a float type", k);
    }
    for (uint32_t v = g->outside ? n_values : 0; v < n_values; v++) /* recordings know them */
        if (!sn_type_known(sn_graph_type(g, (sn_value){v})))
            return sn_fail(
                err, SNUG_E_UNSUPPORTED,
                "value %u has unknown extents; instantiate the template, then take gradients", v);
    return SNUG_OK;
}

static snug_status check_loss(const sn_graph *g, sn_value loss, snug_error *err) {
    const uint32_t n_values = sn_graph_n_values(g);
    if (loss.i >= n_values)
        return sn_fail(err, SNUG_E_INVALID, "the loss is value %u, but there are %u values", loss.i,
                       n_values);
    const snug_type *t = sn_graph_type(g, loss);
    if (t->rank != 0 || !sn_dtype_is_float(t->dtype)) {
        char text[192];
        return sn_fail(err, SNUG_E_SHAPE,
                       "the loss is %s; gradients need a float scalar: sum it or take the mean",
                       snug_type_print(t, text, sizeof text));
    }
    return SNUG_OK;
}

static snug_status check_outs(const sn_graph *g, const sn_pull_back *q, snug_error *err) {
    const uint32_t n_values = sn_graph_n_values(g);
    for (int k = 0; k < q->n_outs; k++) {
        if (q->outs[k].i >= n_values || (sn_value_ok(q->douts[k]) && q->douts[k].i >= n_values))
            return sn_fail(err, SNUG_E_INVALID, "result %d is none of the %u values", k, n_values);
        if (sn_value_ok(q->douts[k]) &&
            !sn_type_equal(sn_graph_type(g, q->outs[k]), sn_graph_type(g, q->douts[k])))
            return sn_fail(err, SNUG_E_SHAPE, "the gradient of result %d has another type", k);
    }
    return SNUG_OK;
}

/* The gradient of a loss by itself, made when something depends. */
static sn_value one_for(reverse_pass *p, sn_value loss) {
    const sn_value_info *info = sn_graph_value_at(p->g, loss);
    if (info->node.i != UINT32_MAX)
        sn_graph_set_owner_at(p->g, sn_graph_node_at(p->g, info->node)->owner);
    return sn_build_scalar(&p->b, info->type.dtype, 1);
}

/* douts NULL: the one result is a loss. */
static snug_status run_pass(reverse_pass *p, const sn_pull_back *q, snug_error *err) {
    const uint32_t n_nodes = sn_graph_n_nodes(p->g);
    sn_graph_set_part(p->g, SN_PART_BACKWARD);
    for (int k = 0; k < q->n_outs; k++) {
        const sn_value out = q->outs[k];
        if (!p->depends[out.i] || (q->douts && !sn_value_ok(q->douts[k])))
            continue;
        const sn_value d = q->douts ? q->douts[k] : one_for(p, out);
        sn_value *sum = &p->grad[out.i];
        *sum = add_gradients(&p->b, *sum, d);
    }
    SNUG_TRY(sn_builder_done(&p->b, err));
    for (uint32_t i = n_nodes; i-- > p->first;) {
        if (is_skipped(p, i))
            i = p->paths->skip_from;
        else
            SNUG_TRY(visit(p, (sn_node){i}, err));
    }
    return SNUG_OK;
}

static snug_status pull_back(sn_graph *g, const sn_pull_back *q, sn_value *grads, snug_error *err) {
    const sn_graph_mark mark = sn_graph_mark_now(g);
    reverse_pass p = {.g = g, .b = sn_builder_on(g), .n_values = g->n_values, .paths = q->paths};
    void *depends = NULL, *grad = NULL;
    snug_status status =
        sn_alloc_zero(g->engine, SN_MEM_GRAPH, p.n_values * sizeof *p.depends, &depends, err);
    if (status == SNUG_OK)
        status = sn_alloc(g->engine, SN_MEM_GRAPH, p.n_values * sizeof *p.grad, &grad, err);
    if (status != SNUG_OK)
        goto done;
    p.depends = depends;
    p.grad = grad;
    memset(p.grad, 0xff, p.n_values * sizeof *p.grad); /* SN_NO_VALUE */
    mark_dependent(&p, q->wrt, q->n_wrt);
    status = run_pass(&p, q, err);
    if (status != SNUG_OK) {
        sn_graph_go_back(g, &mark);
        goto done;
    }
    g->owner = mark.owner;
    g->part = mark.part;
    for (int k = 0; k < q->n_wrt; k++) {
        add_stand_in(&p, q->wrt[k]);
        grads[k] = p.grad[q->wrt[k].i];
    }
    status = sn_builder_done(&p.b, err);
done:
    sn_free(g->engine, SN_MEM_GRAPH, grad, p.n_values * sizeof *p.grad);
    sn_free(g->engine, SN_MEM_GRAPH, depends, p.n_values * sizeof *p.depends);
    return status;
}

snug_status sn_graph_gradients(sn_graph *g, sn_value loss, const sn_value *wrt, int n,
                               sn_value *grads, snug_error *err) {
    return sn_graph_gradients_along(g, loss, wrt, n, NULL, grads, err);
}

snug_status sn_graph_gradients_along(sn_graph *g, sn_value loss, const sn_value *wrt, int n,
                                     const sn_gradient_paths *paths, sn_value *grads,
                                     snug_error *err) {
    SNUG_TRY(check_loss(g, loss, err));
    SNUG_TRY(check_wrt(g, wrt, n, err));
    const sn_pull_back q = {.outs = &loss, .n_outs = 1, .wrt = wrt, .n_wrt = n, .paths = paths};
    return pull_back(g, &q, grads, err);
}

snug_status sn_graph_pull_back(sn_graph *g, const sn_pull_back *p, sn_value *grads,
                               snug_error *err) {
    SNUG_TRY(check_outs(g, p, err));
    SNUG_TRY(check_wrt(g, p->wrt, p->n_wrt, err));
    return pull_back(g, p, grads, err);
}
