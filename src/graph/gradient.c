/* gradient.c: the reverse pass, graph to graph. From a scalar loss it walks the nodes backwards,
 * over those only that depend on one of wrt, and asks each row's rule for the gradients of its
 * inputs.
 *
 *     find      nodes that the loss depends on, the newest first: each is behind its readers
 *     mark      of them, from the oldest on, what depends on wrt
 *     visit     the newest first again: rules
 *
 * What it takes grows with these nodes, not with the graph: many tapes share a recording.
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

/* A value on the way. */
typedef struct {
    sn_value value, grad; /* grad: the sum so far */
    bool depends;         /* on one of wrt, through rows that carry gradients */
    bool found;           /* of a node's first output: the node is in the list */
    uint32_t before;      /* its place in a pass that asked for this one: rules do */
} place;

/* One reverse pass. */
typedef struct {
    sn_graph *g;
    sn_builder b;
    const sn_gradient_paths *paths; /* NULL: all */
    place *places;
    size_t n_places, cap_places;
    uint32_t *nodes;   /* the newest first */
    uint32_t *waiting; /* found, and not in the list yet: a heap, the newest in front */
    size_t n_nodes, n_waiting, cap_nodes, cap_waiting;
} reverse_pass;

static bool is_float(const sn_graph *g, sn_value v) {
    return sn_dtype_is_float(sn_graph_type(g, v)->dtype);
}

/* --- places ----------------------------------------------------------------------------------- */
/* NULL: it is not on the way. What stands in g->way counts only if the place is this value's. */
static place *place_of(const reverse_pass *p, sn_value v) {
    const uint32_t i = v.i < p->g->cap_way ? p->g->way[v.i] : UINT32_MAX;
    return i < p->n_places && p->places[i].value.i == v.i ? &p->places[i] : NULL;
}

/* Moves those that were made before. */
static snug_status make_place(reverse_pass *p, sn_value v, place **out, snug_error *err) {
    *out = place_of(p, v);
    if (*out)
        return SNUG_OK;
    SNUG_TRY(sn_grow(p->g->engine, SN_MEM_GRAPH, &p->places, sizeof *p->places, &p->cap_places,
                     p->n_places + 1, err));
    *out = &p->places[p->n_places];
    **out = (place){.value = v, .grad = SN_NO_VALUE, .before = p->g->way[v.i]};
    p->g->way[v.i] = (uint32_t)p->n_places++;
    return SNUG_OK;
}

static bool depends(const reverse_pass *p, sn_value v) {
    const place *at = place_of(p, v);
    return at && at->depends;
}

static snug_status widen_way(sn_graph *g, snug_error *err) {
    const size_t before = g->cap_way;
    SNUG_TRY(
        sn_grow(g->engine, SN_MEM_GRAPH, &g->way, sizeof *g->way, &g->cap_way, g->n_values, err));
    memset(g->way + before, 0, (g->cap_way - before) * sizeof *g->way);
    return SNUG_OK;
}

static sn_value stand_in_of(const reverse_pass *p, sn_value v) {
    return p->paths && p->paths->stand_in ? p->paths->stand_in(p->paths->ctx, v) : SN_NO_VALUE;
}

/* What is read of value v. */
static sn_value read_as(const reverse_pass *p, sn_value v) {
    const sn_value other = stand_in_of(p, v);
    return sn_value_ok(other) ? other : v;
}

static bool is_on_path(const reverse_pass *p, sn_value v) {
    return !p->paths || p->paths->sees(p->paths->ctx, v);
}

/* Rows with rule `zero` and values that are not floats end the dependence: no gradient comes back
 * through them. Of a recording, an assignment's result is a source of its own. */
static bool carries(const reverse_pass *p, sn_op op) {
    return sn_grad_rules[op] != sn_grad_zero && !(p->paths && sn_ops[op].effect == SN_STATE);
}

static bool is_skipped(const reverse_pass *p, uint32_t node) {
    return p->paths && (node < p->paths->first_node ||
                        (node >= p->paths->skip_from && node < p->paths->skip_to));
}

/* --- nodes, the newest first ------------------------------------------------------------------ */
static void swap(uint32_t *x, uint32_t *y) {
    const uint32_t was = *x;
    *x = *y;
    *y = was;
}

static void wait_for(reverse_pass *p, uint32_t node) {
    uint32_t *heap = p->waiting;
    size_t i = p->n_waiting++;
    heap[i] = node;
    for (; i > 0 && heap[(i - 1) / 2] < heap[i]; i = (i - 1) / 2)
        swap(&heap[i], &heap[(i - 1) / 2]);
}

static uint32_t take_newest(reverse_pass *p) {
    uint32_t *heap = p->waiting;
    const uint32_t newest = heap[0];
    const size_t n = --p->n_waiting;
    heap[0] = heap[n];
    for (size_t i = 0, next = 1; next < n; i = next, next = 2 * i + 1) {
        next += next + 1 < n && heap[next + 1] > heap[next];
        if (heap[i] >= heap[next])
            break;
        swap(&heap[i], &heap[next]);
    }
    return newest;
}

/* The node that makes the value, or what the value stands for. */
static snug_status find_maker(reverse_pass *p, sn_value v, snug_error *err) {
    const sn_value old =
        p->paths && p->paths->stands_for ? p->paths->stands_for(p->paths->ctx, v) : SN_NO_VALUE;
    const sn_value made = sn_value_ok(old) ? old : v;
    const sn_node n = sn_graph_value_at(p->g, made)->node;
    if (n.i == SN_NO_NODE.i || is_skipped(p, n.i) || !is_float(p->g, made) || !is_on_path(p, made))
        return SNUG_OK;
    const sn_node_info *node = sn_graph_node_at(p->g, n);
    place *at;
    SNUG_TRY(make_place(p, node->out[0], &at, err));
    if (at->found || !carries(p, node->op))
        return SNUG_OK;
    at->found = true;
    SNUG_TRY(sn_grow(p->g->engine, SN_MEM_GRAPH, &p->waiting, sizeof *p->waiting, &p->cap_waiting,
                     p->n_waiting + 1, err));
    wait_for(p, n.i);
    return SNUG_OK;
}

static snug_status find_nodes(reverse_pass *p, const sn_pull_back *q, snug_error *err) {
    for (int k = 0; k < q->n_outs; k++)
        if (!q->douts || sn_value_ok(q->douts[k]))
            SNUG_TRY(find_maker(p, q->outs[k], err));
    while (p->n_waiting > 0) {
        const sn_node n = {take_newest(p)};
        const sn_node_info *node = sn_graph_node_at(p->g, n);
        SNUG_TRY(sn_grow(p->g->engine, SN_MEM_GRAPH, &p->nodes, sizeof *p->nodes, &p->cap_nodes,
                         p->n_nodes + 1, err));
        p->nodes[p->n_nodes++] = n.i;
        for (int k = 0; k < node->n_in; k++)
            SNUG_TRY(find_maker(p, node->in[k], err));
    }
    return SNUG_OK;
}

/* --- what depends on wrt ---------------------------------------------------------------------- */
static snug_status mark_value(reverse_pass *p, sn_value v, snug_error *err) {
    const sn_value other = stand_in_of(p, v);
    place *at;
    SNUG_TRY(make_place(p, v, &at, err));
    at->depends = true;
    if (!sn_value_ok(other))
        return SNUG_OK;
    SNUG_TRY(make_place(p, other, &at, err));
    at->depends = true;
    return SNUG_OK;
}

static snug_status mark_dependent(reverse_pass *p, const sn_value *wrt, int n, snug_error *err) {
    for (int k = 0; k < n; k++)
        SNUG_TRY(mark_value(p, wrt[k], err));
    for (size_t i = p->n_nodes; i-- > 0;) {
        const sn_node_info *node = sn_graph_node_at(p->g, (sn_node){p->nodes[i]});
        bool any = false;
        for (int k = 0; k < node->n_in; k++)
            any = any || depends(p, node->in[k]);
        for (int k = 0; any && k < node->n_out; k++)
            if (is_float(p->g, node->out[k]) && is_on_path(p, node->out[k]))
                SNUG_TRY(mark_value(p, node->out[k], err));
    }
    return SNUG_OK;
}

/* --- one node --------------------------------------------------------------------------------- */

static sn_value add_gradients(sn_builder *b, sn_value x, sn_value y) {
    return sn_value_ok(x) ? sn_build_add(b, x, y) : y;
}

/* The gradient of a value is also that of its stand-in. */
static void add_stand_in(reverse_pass *p, sn_value v) {
    const sn_value other = stand_in_of(p, v);
    place *of = place_of(p, v), *from = sn_value_ok(other) ? place_of(p, other) : NULL;
    if (!of || !from || !sn_value_ok(from->grad))
        return;
    of->grad = add_gradients(&p->b, of->grad, from->grad);
    from->grad = SN_NO_VALUE;
}

static sn_value gradient_of(const reverse_pass *p, sn_value v) {
    const place *at = place_of(p, v);
    return at ? at->grad : SN_NO_VALUE;
}

/* The gradient of a wide result, in the halves that its row has. */
static sn_value narrow(reverse_pass *p, const sn_node_info *node, sn_value grad) {
    const int wide = sn_attrs_wide(node->op);
    if (wide < 0 || node->attrs.word[wide] == 0 || !sn_value_ok(grad))
        return grad;
    const sn_value half = node->in[node->op == SN_OP_scatter_add ? 1 : 0];
    return sn_build_cast(&p->b, grad, sn_graph_type(p->g, half)->dtype);
}

/* Whether a gradient arrived and an input wants one; fills the call. */
static bool prepare_call(reverse_pass *p, const sn_node_info *node, sn_grad_call *c) {
    bool arrived = false, wanted = false;
    *c = (sn_grad_call){.b = &p->b, .node = node};
    for (int k = 0; k < node->n_out; k++) {
        add_stand_in(p, node->out[k]);
        c->out[k] = read_as(p, node->out[k]);
        c->dout[k] = narrow(p, node, gradient_of(p, node->out[k]));
        arrived = arrived || sn_value_ok(c->dout[k]);
    }
    for (int i = 0; i < node->n_in; i++) {
        c->in[i] = read_as(p, node->in[i]);
        c->din[i] = SN_NO_VALUE;
        c->wants[i] = depends(p, node->in[i]);
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

/* Where f32 stands beside halves, rules answer in halves, or the other way round. */
static sn_value of_dtype(reverse_pass *p, sn_value grad, snug_dtype dtype) {
    const snug_dtype from = sn_graph_type(p->g, grad)->dtype;
    const bool rounds = (from == SNUG_F32 && sn_dtype_is_half(dtype)) ||
                        (sn_dtype_is_half(from) && dtype == SNUG_F32);
    return rounds ? sn_build_cast(&p->b, grad, dtype) : grad;
}

/* Adds the rule's answers to the sums. An answer has the type of its input. */
static snug_status collect(reverse_pass *p, const sn_grad_call *c, snug_error *err) {
    for (int i = 0; i < c->node->n_in; i++) {
        if (!c->wants[i] || !sn_value_ok(c->din[i]))
            continue;
        const sn_value in = c->node->in[i],
                       din = of_dtype(p, c->din[i], sn_graph_type(p->g, in)->dtype);
        if (sn_value_ok(din) && !sn_type_equal(sn_graph_type(p->g, in), sn_graph_type(p->g, din)))
            return sn_fail(err, SNUG_E_INTERNAL,
                           "the gradient rule of %s gave input %d another type",
                           sn_ops[c->node->op].name, i);
        place *at = place_of(p, in); /* an input is wanted because it is marked there */
        at->grad = add_gradients(&p->b, at->grad, din);
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
    sn_graph_set_part(p->g, SN_PART_BACKWARD);
    for (int k = 0; k < q->n_outs; k++) {
        const sn_value out = q->outs[k];
        if (!depends(p, out) || (q->douts && !sn_value_ok(q->douts[k])))
            continue;
        const sn_value d = q->douts ? q->douts[k] : one_for(p, out);
        place *at = place_of(p, out);
        at->grad = add_gradients(&p->b, at->grad, d);
    }
    SNUG_TRY(sn_builder_done(&p->b, err));
    for (size_t i = 0; i < p->n_nodes; i++)
        SNUG_TRY(visit(p, (sn_node){p->nodes[i]}, err));
    return SNUG_OK;
}

static snug_status find_and_run(reverse_pass *p, const sn_pull_back *q, sn_value *grads,
                                snug_error *err) {
    SNUG_TRY(widen_way(p->g, err));
    SNUG_TRY(find_nodes(p, q, err));
    SNUG_TRY(mark_dependent(p, q->wrt, q->n_wrt, err));
    SNUG_TRY(run_pass(p, q, err));
    for (int k = 0; k < q->n_wrt; k++) {
        add_stand_in(p, q->wrt[k]);
        grads[k] = gradient_of(p, q->wrt[k]);
    }
    return sn_builder_done(&p->b, err);
}

static snug_status pull_back(sn_graph *g, const sn_pull_back *q, sn_value *grads, snug_error *err) {
    const sn_graph_mark mark = sn_graph_mark_now(g);
    reverse_pass p = {.g = g, .b = sn_builder_on(g), .paths = q->paths};
    const snug_status status = find_and_run(&p, q, grads, err);
    if (status != SNUG_OK)
        sn_graph_go_back(g, &mark);
    g->owner = mark.owner;
    g->part = mark.part;
    for (size_t i = p.n_places; i-- > 0;)
        g->way[p.places[i].value.i] = p.places[i].before;
    sn_free(g->engine, SN_MEM_GRAPH, p.places, p.cap_places * sizeof *p.places);
    sn_free(g->engine, SN_MEM_GRAPH, p.nodes, p.cap_nodes * sizeof *p.nodes);
    sn_free(g->engine, SN_MEM_GRAPH, p.waiting, p.cap_waiting * sizeof *p.waiting);
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
