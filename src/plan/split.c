/* split.c: how a step divides along its batch. The batch is the leading axis of the input with the
 * most bytes, and of all inputs with as many rows. Axis rules carry its label from value to value:
 * forwards from these; and back, where an operator needs a slice of something that has no label yet
 * (random masks, gradients of sums), to whatever can be made in slices, too. Variables never carry
 * it; where an operator wants rows of one (states of recurrent layers), it reads these rows of its
 * home.
 *
 * A node whose operands fit one of its ways is sliced: outputs carry the label, or are sums over
 * it, added up slice by slice. Every other node runs whole.
 *
 * Phases: a sum is complete only behind its block. Who reads it (batch normalisation, a loss over
 * sum(w)) belongs to a later block; times are the longest way through such readings.
 *
 * A part: only nodes at large values are sliced, the others run whole. What these make has no label
 * then; sliced nodes read its rows where it lies. */
#include "plan/passes.h"

#include <math.h>

#define MAX_BACK 256 /* nodes on a way back: longer ones run whole */

typedef struct {
    sn_planner *p;
    sn_split *split;
    int n_back;     /* nodes on the way back now */
    sn_opdesc desc; /* of the node under consideration, and its ways; large */
    sn_ways ways;
} labeller;

/* --- labels ----------------------------------------------------------------------------------- */
static bool is_leading(const snug_type *t, int axis) {
    for (int k = 0; k < axis; k++)
        if (t->dims[k] != 1)
            return false;
    return axis < t->rank;
}

static bool has_label(const labeller *l, sn_value v) {
    return l->split->label[v.i].axis >= 0;
}

/* Rows of the way for each row of the batch; 0: it is another axis. */
static int64_t way_factor(const labeller *l, const sn_way *way) {
    return way->extent > 0 && way->extent % l->split->extent == 0 ? way->extent / l->split->extent
                                                                  : 0;
}

static bool may_carry(const labeller *l, sn_value v, const sn_axis_ref *ref, int64_t factor) {
    const snug_type *t = sn_graph_type(l->p->graph, v);
    return ref->outer == 1 && is_leading(t, ref->axis) &&
           t->dims[ref->axis] == l->split->extent * factor * ref->inner;
}

static bool carries(const labeller *l, sn_value v, const sn_axis_ref *ref, int64_t factor) {
    const sn_label *label = &l->split->label[v.i];
    return label->axis == ref->axis && label->inner == factor * ref->inner;
}

/* All outputs carry the label, or all are sums that the kernel can add up. */
static bool outputs_fit(const labeller *l, const sn_node_info *n, const sn_way *way,
                        int64_t factor) {
    bool sum = false, map = false;
    for (int k = 0; k < n->n_out; k++) {
        if (way->out[k].axis < 0)
            sum = true;
        else if (may_carry(l, n->out[k], &way->out[k], factor))
            map = true;
        else
            return false;
    }
    return sum != map && (!sum || (way->sum && sn_ops[n->op].accumulates));
}

static bool is_var(const labeller *l, sn_value v) {
    return sn_plan_in_state(l->p, v.i);
}

static void set_labels(labeller *l, uint32_t node, const sn_way *way, int64_t factor) {
    const sn_node_info *n = sn_graph_node_at(l->p->graph, (sn_node){node});
    l->split->sliced[node] = true;
    for (int k = 0; k < n->n_in; k++)
        if (is_var(l, n->in[k]) && way->in[k].axis >= 0)
            l->split->whole_rows[node] |= UINT64_C(1) << k;
    for (int k = 0; k < n->n_out; k++)
        if (way->out[k].axis >= 0)
            l->split->label[n->out[k].i] = (sn_label){way->out[k].axis, factor * way->out[k].inner};
}

static void find_ways(labeller *l, uint32_t node) {
    l->ways.n = 0;
    sn_graph_desc(l->p->graph, (sn_node){node}, &l->desc);
    sn_op_ways(&l->desc, &l->ways);
}

static bool give_label(labeller *l, sn_value v, sn_label wanted);

/* The input has the label that the way wants, or none where it wants none; or could be given it. */
static bool may_fit(const labeller *l, sn_value v, const sn_axis_ref *ref, int64_t factor) {
    if (has_label(l, v))
        return carries(l, v, ref, factor);
    return ref->axis < 0 || may_carry(l, v, ref, factor);
}

/* Labelled inputs fit the way; the others can be given what it wants. */
static bool inputs_fit(labeller *l, const sn_node_info *n, const sn_way *way, int64_t factor) {
    for (int k = 0; k < n->n_in; k++)
        if (!may_fit(l, n->in[k], &way->in[k], factor))
            return false;
    for (int k = 0; k < n->n_in; k++)
        if (!has_label(l, n->in[k]) && way->in[k].axis >= 0 && !is_var(l, n->in[k]) &&
            !give_label(l, n->in[k], (sn_label){way->in[k].axis, factor * way->in[k].inner}))
            return false;
    return true;
}

/* Gives a value that has no label this one, and to that end labels to what it is made of: nodes
 * without labelled inputs only, so the way back ends at constants and random numbers. */
static bool give_label(labeller *l, sn_value v, sn_label wanted) {
    const sn_value_info *info = sn_graph_value_at(l->p->graph, v);
    const snug_type *t = &info->type;
    if (info->kind == SN_VALUE_INPUT || t->dims[wanted.axis] != l->split->extent * wanted.inner ||
        l->n_back == MAX_BACK)
        return false;
    const uint32_t node = info->node.i;
    const sn_node_info *n = sn_graph_node_at(l->p->graph, info->node);
    if (sn_ops[n->op].effect == SN_STATE || sn_ops[n->op].effect == SN_MAYFAIL)
        return false;
    find_ways(l, node);
    for (int w = 0; w < l->ways.n; w++) {
        const sn_way way = l->ways.way[w];
        const sn_axis_ref *ref = &way.out[info->index];
        const int64_t factor = way_factor(l, &way);
        bool ok = factor > 0 && ref->axis == wanted.axis && factor * ref->inner == wanted.inner &&
                  outputs_fit(l, n, &way, factor);
        l->n_back++;
        ok = ok && inputs_fit(l, n, &way, factor);
        l->n_back--;
        if (ok) {
            set_labels(l, node, &way, factor);
            return true;
        }
        find_ways(l, node); /* the way back may have used the space */
    }
    return false;
}

static void label_node(labeller *l, uint32_t node) {
    const sn_node_info *n = sn_graph_node_at(l->p->graph, (sn_node){node});
    bool any = false;
    for (int k = 0; k < n->n_in; k++)
        any = any || has_label(l, n->in[k]);
    if (!any || l->split->sliced[node] || sn_ops[n->op].effect == SN_STATE)
        return;
    find_ways(l, node);
    for (int w = 0; w < l->ways.n; w++) {
        const sn_way way = l->ways.way[w];
        const int64_t factor = way_factor(l, &way);
        if (factor > 0 && outputs_fit(l, n, &way, factor) && inputs_fit(l, n, &way, factor)) {
            set_labels(l, node, &way, factor);
            return;
        }
        find_ways(l, node);
    }
}

/* Data comes in as an input, or is drawn. */
static bool is_data(const sn_planner *p, uint32_t v) {
    const sn_value_info *info = sn_graph_value_at(p->graph, (sn_value){v});
    if (info->kind == SN_VALUE_INPUT)
        return true;
    return info->node.i < p->n_nodes && p->needed[info->node.i] &&
           sn_graph_node_at(p->graph, info->node)->op == SN_OP_random;
}

/* The data with the most bytes; UINT32_MAX when none has rows to slice. */
static uint32_t find_batch(const sn_planner *p) {
    uint32_t best = UINT32_MAX;
    for (uint32_t v = 0; v < p->n_values; v++) {
        const snug_type *t = sn_graph_type(p->graph, (sn_value){v});
        if (t->rank > 0 && t->dims[0] > 1 && is_data(p, v) &&
            (best == UINT32_MAX || p->bytes[v] > p->bytes[best]))
            best = v;
    }
    return best;
}

/* --- times ------------------------------------------------------------------------------------ */
/* When a node may run that reads this value: as part of a block, or between blocks. */
static uint32_t ready_time(const sn_planner *p, const sn_split *s, sn_value v, bool in_block) {
    const uint32_t maker = sn_graph_value_at(p->graph, v)->node.i;
    if (maker >= p->n_nodes)
        return 0;
    const uint32_t block = s->time[maker] / 2;
    if (!s->sliced[maker])
        return block;
    return in_block && s->label[v.i].axis >= 0 ? block : block + 1;
}

/* Behind a node that this one must follow for other reasons than a value. */
static uint32_t after(const sn_split *s, uint32_t node, bool in_block) {
    return s->time[node] / 2 + (s->sliced[node] && !in_block);
}

static uint32_t raise(uint32_t at_least, uint32_t t) {
    return t > at_least ? t : at_least;
}

/* `checks`: when those before it are over. */
static void time_node(const sn_planner *p, sn_split *s, uint32_t node, uint32_t checks) {
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    const bool in_block = s->sliced[node];
    uint32_t t = sn_ops[n->op].effect == SN_STATE ? checks : 0;
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t v = n->in[k].i;
        t = raise(t, ready_time(p, s, n->in[k], in_block));
        for (uint32_t r = p->reader_start[v]; p->updater[v] == node && r < p->reader_start[v + 1];
             r++)
            if (p->readers[r] != node && !(p->kept[v] && p->readers[r] > node))
                t = raise(t, after(s, p->readers[r], in_block));
    }
    s->time[node] = 2 * t + in_block;
    if (in_block && t + 1 > s->n_blocks)
        s->n_blocks = t + 1;
}

/* Times, halved: of blocks, and of what runs before them. */
typedef struct {
    const sn_planner *p;
    const sn_split *split;
    uint32_t *when; /* per node */
    bool *off;      /* per node: may be put off */
    uint32_t first_update, end;
} timer;

/* The latest time for a node: for its readers, for what overwrites a variable it reads, and, where
 * it may fail, for the first update. */
static uint32_t latest_time(const timer *t, uint32_t node) {
    const sn_planner *p = t->p;
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    const bool sliced = t->split->sliced[node];
    uint32_t at = sn_ops[n->op].effect == SN_MAYFAIL ? t->first_update : t->end;
    for (int k = 0; k < n->n_out; k++) {
        const uint32_t v = n->out[k].i;
        for (uint32_t r = p->reader_start[v]; r < p->reader_start[v + 1]; r++) {
            const uint32_t reader = p->readers[r];
            const bool together = t->split->sliced[reader] && t->split->label[v].axis >= 0;
            const uint32_t last = t->when[reader] + (together && sliced);
            at = last < at ? last : at;
        }
    }
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t v = n->in[k].i, update = p->updater[v];
        const bool copied = p->kept[v] && node > update;
        if (update != UINT32_MAX && !copied && t->when[update] < at)
            at = t->when[update];
    }
    /* As it is, it is in time. */
    return raise(t->split->time[node] / 2, at > 0 ? at - sliced : 0);
}

/* Whether keeping what the node reads takes no more than keeping what it makes. Inputs that are put
 * off themselves, and those that are fed, are not kept. */
static bool is_cheap(const sn_planner *p, const sn_split *s, uint32_t node, const bool *off) {
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    size_t in = 0, out = 0;
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t maker = sn_graph_value_at(p->graph, n->in[k])->node.i;
        if (s->label[n->in[k].i].axis >= 0 && maker < p->n_nodes && !off[maker])
            in += p->padded[n->in[k].i];
    }
    for (int k = 0; k < n->n_out; k++)
        out += p->padded[n->out[k].i];
    return in <= out;
}

static bool is_update(const sn_planner *p, uint32_t node) {
    return sn_ops[sn_graph_node_at(p->graph, (sn_node){node})->op].effect == SN_STATE;
}

/* Every node but updates as late as it may be; of those that are put off only. */
static void find_latest(const timer *t, const sn_order *order) {
    for (uint32_t i = order->n; i-- > 0;) {
        const uint32_t node = order->node[i];
        if (t->off[node])
            t->when[node] = latest_time(t, node);
    }
}

/* What only later blocks need is made there, where that leaves less to be kept for them. */
static snug_status put_off(const sn_planner *p, const sn_order *order, sn_split *s,
                           snug_error *err) {
    timer t = {.p = p, .split = s, .first_update = UINT32_MAX};
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *t.when, &t.when, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *t.off, &t.off, err));
    for (uint32_t i = 0; i < order->n; i++) {
        const uint32_t node = order->node[i], at = t.when[node] = s->time[node] / 2;
        t.off[node] = !is_update(p, node);
        t.first_update = !t.off[node] && at < t.first_update ? at : t.first_update;
        t.end = raise(t.end, at + s->sliced[node]);
    }
    t.first_update = t.first_update < t.end ? t.first_update : t.end;
    find_latest(&t, order);
    for (uint32_t i = 0; i < order->n; i++) {
        const uint32_t node = order->node[i];
        t.off[node] =
            t.off[node] && t.when[node] > s->time[node] / 2 && is_cheap(p, s, node, t.off);
        t.when[node] = s->time[node] / 2;
    }
    find_latest(&t, order);
    for (uint32_t i = 0; i < order->n; i++) {
        const uint32_t node = order->node[i];
        s->time[node] = 2 * t.when[node] + s->sliced[node];
    }
    return SNUG_OK;
}

static snug_status make_split(sn_planner *p, int64_t extent, sn_split *out, snug_error *err) {
    *out = (sn_split){.extent = extent};
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *out->label, &out->label, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *out->sliced, &out->sliced, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *out->whole_rows, &out->whole_rows, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *out->time, &out->time, err));
    for (uint32_t v = 0; v < p->n_values; v++)
        out->label[v] = (sn_label){-1, 1};
    return SNUG_OK;
}

static snug_status time_nodes(sn_planner *p, const sn_order *order, sn_split *out,
                              snug_error *err) {
    uint32_t checks = 0;
    for (uint32_t i = 0; i < order->n; i++) {
        const uint32_t node = order->node[i];
        time_node(p, out, node, checks);
        if (sn_ops[sn_graph_node_at(p->graph, (sn_node){node})->op].effect == SN_MAYFAIL)
            checks = raise(checks, after(out, node, false));
    }
    SNUG_TRY(put_off(p, order, out, err));
    if (out->n_blocks == 0)
        out->extent = 0;
    return SNUG_OK;
}

snug_status sn_plan_split(sn_planner *p, const sn_order *order, sn_split *out, snug_error *err) {
    const uint32_t batch = find_batch(p);
    labeller *l;
    *out = (sn_split){.extent = 0};
    if (batch == UINT32_MAX)
        return SNUG_OK;
    SNUG_TRY(sn_plan_array(p->work, 1, sizeof *l, &l, err));
    SNUG_TRY(make_split(p, sn_graph_type(p->graph, (sn_value){batch})->dims[0], out, err));
    for (uint32_t i = 0; i < sn_graph_n_inputs(p->graph); i++) {
        const sn_value v = sn_graph_input_at(p->graph, i);
        const snug_type *t = sn_graph_type(p->graph, v);
        if (t->rank > 0 && t->dims[0] == out->extent)
            out->label[v.i] = (sn_label){0, 1};
    }
    l->p = p;
    l->split = out;
    if (out->label[batch].axis < 0)
        (void)give_label(l, (sn_value){batch}, (sn_label){0, 1});
    for (uint32_t i = 0; i < p->n_nodes; i++)
        if (p->needed[i])
            label_node(l, i);
    return time_nodes(p, order, out, err);
}

sn_label sn_split_label(const sn_planner *p, const sn_split *s, uint32_t node, int k) {
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    const sn_value v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
    if (k >= n->n_in || !(s->whole_rows[node] >> k & 1))
        return s->label[v.i];
    const snug_type *t = sn_graph_type(p->graph, v);
    int axis = 0;
    while (axis + 1 < t->rank && t->dims[axis] == 1)
        axis++;
    return (sn_label){axis, t->dims[axis] / s->extent};
}

/* --- a part of it ----------------------------------------------------------------------------- */
/* The node reads or makes rows of a value with so many bytes. */
static bool touches(const sn_planner *p, const sn_split *all, uint32_t node, size_t bytes) {
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    for (int k = 0; all->sliced[node] && k < n->n_in + n->n_out; k++) {
        const uint32_t v = k < n->n_in ? n->in[k].i : n->out[k - n->n_in].i;
        if (sn_split_label(p, all, node, k).axis >= 0 && p->bytes[v] >= bytes)
            return true;
    }
    return false;
}

/* What only kernels understand is made and read in slices, or neither. */
static void keep_together(const sn_planner *p, const sn_split *all, uint32_t v, bool *in_part) {
    const sn_value_info *info = sn_graph_value_at(p->graph, (sn_value){v});
    if (info->type.dtype != SNUG_OPAQUE || all->label[v].axis < 0)
        return;
    bool any = in_part[info->node.i];
    for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++)
        any = any || in_part[p->readers[k]];
    in_part[info->node.i] = any;
    for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++)
        in_part[p->readers[k]] = any && all->sliced[p->readers[k]];
}

/* A name follows the node that made the bytes: a value is whole, or made in slices, under all its
 * names. */
static bool is_in_part(const sn_planner *p, const sn_split *all, const bool *in_part,
                       uint32_t node) {
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    if (n->n_out == 0 || p->root[n->out[0].i] == n->out[0].i)
        return in_part[node];
    const uint32_t maker = sn_graph_value_at(p->graph, n->in[0])->node.i;
    return all->sliced[node] && (maker >= p->n_nodes || in_part[maker]);
}

static void take_node(const sn_planner *p, const sn_split *all, sn_split *part, uint32_t node) {
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){node});
    part->whole_rows[node] = all->whole_rows[node];
    for (int k = 0; k < n->n_in; k++)
        if (all->label[n->in[k].i].axis >= 0 && part->label[n->in[k].i].axis < 0)
            part->whole_rows[node] |= UINT64_C(1) << k;
    for (int k = 0; k < n->n_out; k++)
        part->label[n->out[k].i] = all->label[n->out[k].i];
}

snug_status sn_split_part(sn_planner *p, const sn_order *order, const sn_split *all, size_t bytes,
                          sn_split *out, snug_error *err) {
    SNUG_TRY(make_split(p, all->extent, out, err));
    for (uint32_t i = 0; i < sn_graph_n_inputs(p->graph); i++) {
        const sn_value v = sn_graph_input_at(p->graph, i);
        out->label[v.i] = all->label[v.i];
    }
    for (uint32_t i = 0; i < p->n_nodes; i++)
        out->sliced[i] = p->needed[i] && touches(p, all, i, bytes);
    for (uint32_t v = 0; v < p->n_values; v++)
        keep_together(p, all, v, out->sliced);
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        out->sliced[i] = p->needed[i] && is_in_part(p, all, out->sliced, i);
        if (out->sliced[i])
            take_node(p, all, out, i);
    }
    return time_nodes(p, order, out, err);
}

/* --- slices ----------------------------------------------------------------------------------- */
static void slice_types(const sn_planner *p, const sn_split *s, uint32_t node, int64_t rows,
                        sn_opdesc *d) {
    for (int k = 0; k < d->n_in + d->n_out; k++) {
        const sn_label label = sn_split_label(p, s, node, k);
        if (label.axis >= 0)
            (k < d->n_in ? &d->in[k] : &d->out[k - d->n_in])->dims[label.axis] = rows * label.inner;
    }
}

static snug_status describe_rows(sn_planner *p, const sn_split *s, uint32_t node, int64_t rows,
                                 sn_variant *out, double *seconds, snug_error *err) {
    sn_opdesc d;
    sn_graph_desc(p->graph, (sn_node){node}, &d);
    slice_types(p, s, node, rows, &d);
    SNUG_TRY(p->device->describe(p->device, &d, out, err));
    *seconds = sn_cost_slice_seconds(p->device, &d, out, p->variant[node].bytes);
    return SNUG_OK;
}

static snug_status describe_slices(sn_planner *p, const sn_split *s, uint32_t node, sn_slices *out,
                                   snug_error *err) {
    sn_variant last;
    double seconds, last_seconds;
    SNUG_TRY(describe_rows(p, s, node, out->rows, &out->variant[node], &seconds, err));
    last = out->variant[node];
    last_seconds = seconds;
    if (out->last != out->rows)
        SNUG_TRY(describe_rows(p, s, node, out->last, &last, &last_seconds, err));
    if (last.workspace_bytes > out->variant[node].workspace_bytes)
        out->variant[node].workspace_bytes = last.workspace_bytes;
    out->variant[node].flops = out->variant[node].flops * (double)(out->repeat - 1) + last.flops;
    out->seconds[node] = seconds * (double)(out->repeat - 1) + last_seconds;
    out->seconds[node] = fmax(out->seconds[node], p->seconds[node]);
    return SNUG_OK;
}

snug_status sn_plan_slices(sn_planner *p, sn_zone *z, const sn_split *split, int64_t repeat,
                           sn_slices *out, snug_error *err) {
    const int64_t rows = (split->extent + repeat - 1) / repeat;
    *out = (sn_slices){.rows = rows, .repeat = (split->extent + rows - 1) / rows};
    out->last = split->extent - (out->repeat - 1) * rows;
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *out->variant, &out->variant, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *out->seconds, &out->seconds, err));
    SNUG_TRY(sn_plan_array(z, p->n_values, sizeof *out->bytes, &out->bytes, err));
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        out->seconds[i] = p->seconds[i];
        if (p->needed[i] && split->sliced[i])
            SNUG_TRY(describe_slices(p, split, i, out, err));
    }
    for (uint32_t v = 0; v < p->n_values; v++) {
        const sn_label *label = &split->label[v];
        out->bytes[v] = p->bytes[v];
        if (label->axis >= 0)
            out->bytes[v] = p->bytes[v] / (size_t)split->extent * (size_t)rows;
    }
    return SNUG_OK;
}
