/* check_static.c: what the checker can see without replaying: devices, memories and sizes, and each
 * step by itself: indices, operands, devices, slices, blocks, the rules of the table. check.c
 * replays only plans that pass here. Shares no code with the planner; asks the devices again. */
#include "plan/check.h"

#include <string.h>

typedef struct {
    const sn_plan *p;
    const sn_graph *g;
    const sn_step *block; /* the REPEAT the step is in, or NULL */
    uint32_t step;
} reader;

static snug_status bad(const reader *c, snug_error *err, const char *what, uint32_t id) {
    return sn_fail(err, SNUG_E_INVALID, "plan step s%u: %s (%u)", c->step, what, id);
}
#define REQUIRE(ok, what, id)                                                                      \
    do {                                                                                           \
        if (!(ok))                                                                                 \
            return bad(c, err, (what), (id));                                                      \
    } while (0)

static snug_status check_sizes(const sn_plan *p, snug_error *err) {
    for (uint32_t v = 0; v < sn_graph_n_values(p->graph); v++) {
        const snug_type *type = sn_graph_type(p->graph, (sn_value){v});
        size_t bytes;
        if (type->dtype == SNUG_OPAQUE)
            continue; /* at the step that makes it */
        SNUG_TRY(snug_type_bytes(type, &bytes, err));
        if (bytes != p->value_bytes[v])
            return sn_fail(err, SNUG_E_INVALID, "plan: value %%%u has %zu bytes, not %zu", v, bytes,
                           p->value_bytes[v]);
    }
    return SNUG_OK;
}

static snug_status check_devices(const sn_plan *p, const sn_device *const *devices, int n_devices,
                                 snug_error *err) {
    if (n_devices < 1 || n_devices > SN_MAX_DEVICES || p->n_devices != (uint32_t)n_devices)
        return sn_fail(err, SNUG_E_INVALID, "plan: made for %u devices, %d are there", p->n_devices,
                       n_devices);
    for (int d = 0; d < n_devices; d++)
        if (strncmp(p->device_names[d], devices[d]->name, sizeof p->device_names[d] - 1) != 0 ||
            p->device_align[d] != devices[d]->align)
            return sn_fail(err, SNUG_E_INVALID,
                           "plan: device %d is '%s' aligned to %zu, the plan says '%s' to %zu", d,
                           devices[d]->name, devices[d]->align, p->device_names[d],
                           p->device_align[d]);
    if (p->n_memories < 2 || p->n_memories > SN_MAX_MEMORIES)
        return sn_fail(err, SNUG_E_INVALID, "plan: %u memories, expected 2 to %d", p->n_memories,
                       SN_MAX_MEMORIES);
    for (uint32_t m = 0; m < p->n_memories; m++)
        if (p->memories[m].device >= p->n_devices)
            return sn_fail(err, SNUG_E_INVALID, "plan: memory %u is on unknown device %u", m,
                           p->memories[m].device);
    return SNUG_OK;
}

static snug_status check_place(const reader *c, const sn_place *p, snug_error *err) {
    const uint32_t v = p->value.i;
    REQUIRE(v < sn_graph_n_values(c->g) && p->memory < c->p->n_memories, "has an unknown operand",
            v);
    const sn_value_info *info = sn_graph_value_at(c->g, p->value);
    REQUIRE(p->memory != SN_MEM_STATE || (info->var >= 0 && p->rows < 0 && p->offset == 0),
            "is not a version of a variable", v);
    REQUIRE(p->rows >= 0 || p->stride == 0, "moves a whole value", v);
    if (p->rows < 0)
        return SNUG_OK;
    REQUIRE(p->axis >= 0 && p->axis < info->type.rank && p->rows > 0 && p->first >= 0 &&
                p->first < info->type.dims[p->axis] && p->rows <= info->type.dims[p->axis],
            "has a bad slice", v);
    REQUIRE(!c->block || p->rows % c->block->rows == 0, "slices by other rows than its block", v);
    REQUIRE(info->type.dtype != SNUG_OPAQUE ||
                (p->axis == 0 && c->p->value_bytes[v] % (size_t)info->type.dims[0] == 0),
            "slices an opaque value", v);
    return SNUG_OK;
}

/* A place that must hold this value, in a memory of the step's device. */
static snug_status check_operand(const reader *c, const sn_place *p, sn_value wanted,
                                 snug_error *err) {
    const uint16_t device = c->p->steps[c->step].device;
    SNUG_TRY(check_place(c, p, err));
    REQUIRE(p->value.i == wanted.i, "has an operand that is not the node's", p->value.i);
    REQUIRE(c->p->memories[p->memory].device == device, "reaches into another device", p->value.i);
    return SNUG_OK;
}

static snug_status check_run(const reader *c, const sn_step *s, snug_error *err) {
    REQUIRE(s->node.i < sn_graph_n_nodes(c->g), "runs an unknown node", s->node.i);
    const sn_node_info *n = sn_graph_node_at(c->g, s->node);
    const bool adds = s->accumulate != SN_ACC_STORE;
    REQUIRE(s->n_in == n->n_in && s->n_out == n->n_out, "has a wrong number of operands",
            s->node.i);
    REQUIRE(!adds || (sn_ops[n->op].accumulates && (s->accumulate == SN_ACC_ADD || c->block)),
            "adds where it cannot", s->node.i);
    for (int k = 0; k < s->n_in; k++)
        SNUG_TRY(check_operand(c, &s->in[k], n->in[k], err));
    for (int k = 0; k < s->n_out; k++) {
        SNUG_TRY(check_operand(c, &s->out[k], n->out[k], err));
        const bool updates = sn_graph_value_at(c->g, n->out[k])->var >= 0;
        REQUIRE(updates == (s->out[k].memory == SN_MEM_STATE), "updates outside the home",
                n->out[k].i);
        REQUIRE(!updates || s->in[k].memory == SN_MEM_STATE, "updates a copy", n->out[k].i);
    }
    REQUIRE(s->ws_bytes == 0 || (s->ws_memory > SN_MEM_STATE && s->ws_memory < c->p->n_memories &&
                                 c->p->memories[s->ws_memory].device == s->device),
            "has its workspace in a wrong memory", s->node.i);
    return SNUG_OK;
}

static snug_status check_transfer(const reader *c, const sn_step *s, snug_error *err) {
    const bool feeds = s->kind == SN_STEP_FEED;
    REQUIRE(s->n_in == (feeds ? 0 : 1) && s->n_out == 1, "has a wrong number of operands", 0);
    const sn_place *out = &s->out[0], *in = feeds ? out : &s->in[0];
    SNUG_TRY(check_place(c, out, err));
    SNUG_TRY(check_place(c, in, err));
    REQUIRE(out->memory != SN_MEM_STATE, "writes a variable", out->value.i);
    REQUIRE(c->p->memories[in->memory].device == s->device ||
                c->p->memories[out->memory].device == s->device,
            "reaches into another device", out->value.i);
    if (feeds)
        REQUIRE(s->input < sn_graph_n_inputs(c->g) &&
                    sn_graph_input_at(c->g, s->input).i == out->value.i &&
                    (out->rows < 0 || out->axis == 0),
                "feeds something else than rows of its input", out->value.i);
    REQUIRE(in->value.i == out->value.i && in->rows == out->rows &&
                (in->rows < 0 || (in->axis == out->axis && in->first == out->first)),
            "copies into something else", out->value.i);
    return SNUG_OK;
}

static snug_status check_step(reader *c, const sn_step *s, snug_error *err) {
    if (s->kind == SN_STEP_REPEAT) {
        REQUIRE(!c->block && s->repeat > 0 && s->repeat <= SN_CHECK_MAX_REPEAT && s->last > 0 &&
                    s->last <= s->rows,
                "is a bad block", 0);
        c->block = s;
        return SNUG_OK;
    }
    if (s->kind == SN_STEP_END) {
        REQUIRE(c->block, "ends no block", 0);
        c->block = NULL;
        return SNUG_OK;
    }
    REQUIRE(s->device < c->p->n_devices && (unsigned)s->queue < SN_N_QUEUES, "is on no queue", 0);
    for (uint32_t w = 0; w < s->n_waits; w++)
        REQUIRE(s->waits[w] < c->step, "waits for a later step", s->waits[w]);
    if (s->kind == SN_STEP_RUN)
        return check_run(c, s, err);
    REQUIRE(s->kind == SN_STEP_FEED || s->kind == SN_STEP_COPY, "is of no known kind", 0);
    return check_transfer(c, s, err);
}

snug_status sn_check_static(const sn_plan *p, const sn_device *const *devices, int n_devices,
                            snug_error *err) {
    reader here = {.p = p, .g = p->graph}, *c = &here;
    SNUG_TRY(check_devices(p, devices, n_devices, err));
    SNUG_TRY(check_sizes(p, err));
    for (; c->step < p->n_steps; c->step++)
        SNUG_TRY(check_step(c, &p->steps[c->step], err));
    REQUIRE(!c->block, "is the end, inside a block", 0);
    REQUIRE(p->peak_step < p->n_steps || p->peak_step == 0, "is the end, before the peak",
            p->peak_step);
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++) {
        const sn_place *out = &p->outputs[i];
        SNUG_TRY(check_place(c, out, err));
        REQUIRE(out->value.i == sn_graph_output_at(p->graph, i).i && out->rows < 0,
                "is the end: an output is not the graph's", i);
    }
    return SNUG_OK;
}

/* Bytes of an opaque value's first `rows` rows along axis 0. */
static size_t opaque_bytes(const sn_plan *p, const sn_place *place, int64_t rows) {
    const size_t whole = p->value_bytes[place->value.i];
    const int64_t extent = sn_graph_type(p->graph, place->value)->dims[0];
    return rows < 0 ? whole : whole / (size_t)extent * (size_t)rows;
}

snug_status sn_check_variant(const sn_plan *p, const sn_step *s, const sn_device *device,
                             const int64_t *rows, snug_error *err) {
    sn_opdesc d;
    sn_variant v = {0};
    sn_graph_desc(p->graph, s->node, &d);
    for (int k = 0; k < s->n_in; k++)
        if (rows[k] >= 0)
            d.in[k].dims[s->in[k].axis] = rows[k];
    for (int k = 0; k < s->n_out; k++)
        if (rows[s->n_in + k] >= 0)
            d.out[k].dims[s->out[k].axis] = rows[s->n_in + k];
    SNUG_TRY(device->describe(device, &d, &v, err));
    if (v.id != s->variant || strncmp(v.impl, s->impl, sizeof s->impl) != 0)
        return sn_fail(err, SNUG_E_INVALID,
                       "plan: n%u is to run as variant %d '%.39s', %s has %d '%.39s'", s->node.i,
                       s->variant, s->impl, device->name, v.id, v.impl);
    if (s->ws_bytes < v.workspace_bytes)
        return sn_fail(err, SNUG_E_INVALID, "plan: n%u has a workspace of %zu bytes and needs %zu",
                       s->node.i, s->ws_bytes, v.workspace_bytes);
    for (int k = 0; k < s->n_out; k++) {
        if (d.out[k].dtype != SNUG_OPAQUE)
            continue;
        const size_t has = opaque_bytes(p, &s->out[k], rows[s->n_in + k]);
        if (v.opaque_bytes[k] != has)
            return sn_fail(err, SNUG_E_INVALID,
                           "plan: output %d of n%u has %zu bytes and needs %zu", k, s->node.i, has,
                           v.opaque_bytes[k]);
    }
    return SNUG_OK;
}
