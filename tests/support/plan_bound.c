/* plan_bound.c: how small the arena of a step can be, from the graph and the device alone: it knows no
 * plan and nothing of the planner's.
 *
 *     whole       the largest operation: what it reads outside of homes, makes and works in
 *     row by row  what is summed over the batch for updates is there all the time; beside it the
 *                 largest operation on one row of the batch
 *
 * The smaller of the two. An output that may lie in the bytes of an input does. A plan that goes
 * through the batch several times, for some of the sums each, can lie a little below. */
#include "support/plan_bound.h"

#include "base/size.h"

#include <string.h>

typedef struct {
    const sn_graph *g;
    const sn_device *device;
    int64_t rows;   /* of the batch */
    bool *needed;   /* per node */
    bool *in_rows;  /* per value: it has a part for each row of the batch */
    bool *constant; /* per value: made of nothing but numbers; has rows where it could */
    bool *is_sum;   /* per value: over the batch */
    bool *wanted;   /* per value: an update reads it, or what is made of it without rows */
    size_t *bytes;  /* per value */
    uint32_t *root; /* per value: whose bytes it is */
    sn_opdesc desc; /* of the node under consideration, and its ways; large */
    sn_ways ways;
} bounder;

static const sn_node_info *node_at(const bounder *b, uint32_t i) {
    return sn_graph_node_at(b->g, (sn_node){i});
}

static bool is_home(const bounder *b, sn_value v) {
    return sn_graph_value_at(b->g, v)->var >= 0;
}

/* The first axis that is not 1. */
static int leading(const snug_type *t) {
    int axis = 0;
    while (axis + 1 < t->rank && t->dims[axis] == 1)
        axis++;
    return axis;
}

/* --- which values have rows ------------------------------------------------------------------- */
static bool leads(const bounder *b, sn_value v, const sn_axis_ref *ref) {
    const snug_type *t = sn_graph_type(b->g, v);
    return ref->outer == 1 && t->rank > 0 && ref->axis == leading(t) &&
           t->dims[ref->axis] % b->rows == 0;
}

static bool fits(const bounder *b, const sn_node_info *n, const sn_way *way) {
    if (way->extent <= 0 || way->extent % b->rows != 0)
        return false;
    for (int k = 0; k < n->n_in; k++)
        if (!b->constant[n->in[k].i] && (b->in_rows[n->in[k].i] || way->in[k].axis >= 0) &&
            !leads(b, n->in[k], &way->in[k]))
            return false;
    for (int k = 0; k < n->n_out; k++)
        if (way->out[k].axis >= 0 ? !leads(b, n->out[k], &way->out[k]) : !way->sum)
            return false;
    return true;
}

static void find_rows(bounder *b, uint32_t node) {
    const sn_node_info *n = node_at(b, node);
    bool any = false, constant = true;
    for (int k = 0; k < n->n_in; k++) {
        any = any || (b->in_rows[n->in[k].i] && !b->constant[n->in[k].i]);
        constant = constant && b->constant[n->in[k].i];
    }
    for (int k = 0; k < n->n_out && constant; k++) {
        const snug_type *t = sn_graph_type(b->g, n->out[k]);
        b->constant[n->out[k].i] = true;
        b->in_rows[n->out[k].i] = t->rank > 0 && t->dims[leading(t)] % b->rows == 0;
    }
    if (!any || sn_ops[n->op].effect == SN_STATE)
        return;
    b->ways.n = 0;
    sn_graph_desc(b->g, (sn_node){node}, &b->desc);
    sn_op_ways(&b->desc, &b->ways);
    for (int w = 0; w < b->ways.n; w++) {
        const sn_way *way = &b->ways.way[w];
        if (!fits(b, n, way))
            continue;
        for (int k = 0; k < n->n_out; k++)
            *(way->out[k].axis >= 0 ? &b->in_rows[n->out[k].i] : &b->is_sum[n->out[k].i]) = true;
        return;
    }
}

/* --- what an operation takes ------------------------------------------------------------------ */
static size_t part(const bounder *b, uint32_t v, bool by_row) {
    size_t bytes = b->bytes[v];
    if (by_row && b->in_rows[v])
        bytes /= (size_t)b->rows;
    return sn_size_align(bytes, b->device->align, &bytes) ? bytes : SIZE_MAX / 2;
}

/* Scratch, of a row where the operator has a way along the batch. */
static snug_status workspace(bounder *b, uint32_t node, bool by_row, size_t *out, snug_error *err) {
    const sn_node_info *n = node_at(b, node);
    sn_slice slices[SN_MAX_IN + SN_MAX_OUT];
    sn_variant v = {0};
    sn_cut cut;
    sn_graph_desc(b->g, (sn_node){node}, &b->desc);
    for (int k = 0; k < n->n_in + n->n_out; k++) {
        const sn_value at = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
        const snug_type *t = sn_graph_type(b->g, at);
        slices[k] = (sn_slice){.rows = -1};
        if (by_row && b->in_rows[at.i])
            slices[k] = (sn_slice){leading(t), 0, t->dims[leading(t)] / b->rows};
    }
    if (by_row && !sn_op_slice(&b->desc, slices, &cut))
        return SNUG_OK;
    SNUG_TRY(b->device->describe(b->device, &b->desc, &v, err));
    *out = v.workspace_bytes;
    return SNUG_OK;
}

static bool counted(const sn_node_info *n, int k, const uint32_t *root) {
    for (int j = 0; j < k; j++)
        if (root[n->in[j].i] == root[n->in[k].i])
            return true;
    return false;
}

/* Bytes of the arena while the node runs; those of sums for updates not, by row. */
static snug_status need_of(bounder *b, uint32_t node, bool by_row, size_t *out, snug_error *err) {
    const sn_node_info *n = node_at(b, node);
    size_t need = 0, shared = 0;
    SNUG_TRY(workspace(b, node, by_row, &need, err));
    for (int k = 0; k < n->n_in; k++)
        if (!is_home(b, n->in[k]) && !counted(n, k, b->root) &&
            !(by_row && b->is_sum[n->in[k].i] && b->wanted[n->in[k].i]))
            need += part(b, n->in[k].i, by_row);
    for (int k = 0; k < n->n_out; k++) {
        const uint32_t v = n->out[k].i;
        if (is_home(b, n->out[k]) || b->root[v] != v || (by_row && b->is_sum[v] && b->wanted[v]))
            continue;
        need += part(b, v, by_row);
        for (int j = 0; j < n->n_in; j++)
            if (sn_op_may_overwrite(n->op, k, j) && !is_home(b, n->in[j]) &&
                b->bytes[n->in[j].i] == b->bytes[v])
                shared = part(b, v, by_row);
    }
    *out = need - shared;
    return SNUG_OK;
}

/* --- the graph -------------------------------------------------------------------------------- */
static void find_needed(bounder *b, bool *used) {
    for (uint32_t i = 0; i < sn_graph_n_outputs(b->g); i++)
        used[sn_graph_output_at(b->g, i).i] = true;
    for (uint32_t i = sn_graph_n_nodes(b->g); i-- > 0;) {
        const sn_node_info *n = node_at(b, i);
        const sn_effect effect = sn_ops[n->op].effect;
        bool rows = false, wanted = effect == SN_STATE;
        b->needed[i] = effect == SN_STATE || effect == SN_MAYFAIL;
        for (int k = 0; k < n->n_out; k++) {
            b->needed[i] = b->needed[i] || used[n->out[k].i];
            rows = rows || b->in_rows[n->out[k].i];
            wanted = wanted || b->wanted[n->out[k].i];
        }
        for (int k = 0; k < n->n_in && b->needed[i]; k++) {
            used[n->in[k].i] = true;
            if (wanted && !rows)
                b->wanted[n->in[k].i] = true;
        }
    }
}

static snug_status measure(bounder *b, snug_error *err) {
    int64_t most = 0;
    for (uint32_t i = 0; i < sn_graph_n_inputs(b->g); i++) {
        const snug_type *t = sn_graph_type(b->g, sn_graph_input_at(b->g, i));
        if (t->rank > 0 && sn_type_count(t) > most) {
            most = sn_type_count(t);
            b->rows = t->dims[0];
        }
    }
    for (uint32_t v = 0; v < sn_graph_n_values(b->g); v++) {
        const sn_value_info *info = sn_graph_value_at(b->g, (sn_value){v});
        const uint32_t node = info->node.i;
        sn_variant variant = {0};
        b->root[v] = v;
        b->in_rows[v] = info->kind == SN_VALUE_INPUT && info->var < 0 && info->type.rank > 0 &&
                        info->type.dims[0] == b->rows;
        if (info->type.dtype != SNUG_OPAQUE) {
            SNUG_TRY(snug_type_bytes(&info->type, &b->bytes[v], err));
        } else {
            sn_graph_desc(b->g, info->node, &b->desc);
            SNUG_TRY(b->device->describe(b->device, &b->desc, &variant, err));
            b->bytes[v] = variant.opaque_bytes[info->index];
        }
        if (node < sn_graph_n_nodes(b->g) && info->index == 0 &&
            sn_ops[node_at(b, node)->op].inplace == SN_INPLACE_ALIAS)
            b->root[v] = b->root[node_at(b, node)->in[0].i];
    }
    return SNUG_OK;
}

static snug_status make(bounder *b, sn_zone *z, snug_error *err) {
    const size_t n_values = sn_graph_n_values(b->g), n_nodes = sn_graph_n_nodes(b->g);
    bool *used;
    SNUG_TRY(sn_zone_alloc(z, n_nodes * sizeof *b->needed, (void **)&b->needed, err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *b->in_rows, (void **)&b->in_rows, err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *b->constant, (void **)&b->constant, err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *b->is_sum, (void **)&b->is_sum, err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *b->wanted, (void **)&b->wanted, err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *b->bytes, (void **)&b->bytes, err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *b->root, (void **)&b->root, err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *used, (void **)&used, err));
    SNUG_TRY(measure(b, err));
    for (uint32_t i = 0; i < n_nodes && b->rows > 1; i++)
        find_rows(b, i);
    find_needed(b, used);
    return SNUG_OK;
}

static snug_status find_bound(bounder *b, size_t *out, snug_error *err) {
    size_t whole = 0, by_row = 0, sums = 0;
    for (uint32_t i = 0; i < sn_graph_n_nodes(b->g); i++) {
        const sn_node_info *n = node_at(b, i);
        size_t need = 0;
        if (!b->needed[i])
            continue;
        SNUG_TRY(need_of(b, i, false, &need, err));
        whole = need > whole ? need : whole;
        SNUG_TRY(need_of(b, i, true, &need, err));
        by_row = need > by_row ? need : by_row;
        for (int k = 0; k < n->n_out; k++)
            if (b->is_sum[n->out[k].i] && b->wanted[n->out[k].i])
                sums += part(b, n->out[k].i, false);
    }
    *out = b->rows > 1 && sums + by_row < whole ? sums + by_row : whole;
    return SNUG_OK;
}

snug_status sn_plan_lower_bound(snug_engine *e, const sn_graph *g, const sn_device *d, size_t *out,
                                snug_error *err) {
    sn_zone *z = NULL;
    bounder *b = NULL;
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    snug_status st = sn_zone_alloc(z, sizeof *b, (void **)&b, err);
    if (st == SNUG_OK) {
        b->g = g;
        b->device = d;
        st = make(b, z, err);
    }
    if (st == SNUG_OK)
        st = find_bound(b, out, err);
    sn_zone_destroy(z);
    return st;
}
