/* check_device.c: whether a plan agrees with the devices it names: variants, workspaces, opaque sizes, alignments, and the
 * bytes of every value. Part of the checker: shares no code with the planner and asks the devices again. */
#include "plan/check.h"

#include <string.h>

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

snug_status sn_check_devices(const sn_plan *p, const sn_device *const *devices, int n_devices, snug_error *err) {
    if (n_devices < 1 || n_devices > SN_MAX_DEVICES || p->n_devices != (uint32_t)n_devices)
        return sn_fail(err, SNUG_E_INVALID, "plan: made for %u devices, %d are there", p->n_devices, n_devices);
    for (int d = 0; d < n_devices; d++) {
        if (strncmp(p->device_names[d], devices[d]->name, sizeof p->device_names[d] - 1) != 0)
            return sn_fail(err, SNUG_E_INVALID, "plan: device %d is '%s', the plan says '%s'", d,
                           devices[d]->name, p->device_names[d]);
        if (p->device_align[d] != devices[d]->align)
            return sn_fail(err, SNUG_E_INVALID, "plan: device %d aligns to %zu bytes, the plan says %zu", d,
                           devices[d]->align, p->device_align[d]);
    }
    if (p->n_memories < 2 || p->n_memories > SN_MAX_MEMORIES)
        return sn_fail(err, SNUG_E_INVALID, "plan: %u memories, expected 2 to %d", p->n_memories,
                       SN_MAX_MEMORIES);
    for (uint32_t m = 0; m < p->n_memories; m++)
        if (p->memories[m].device >= p->n_devices)
            return sn_fail(err, SNUG_E_INVALID, "plan: memory %u is on unknown device %u", m,
                           p->memories[m].device);
    return check_sizes(p, err);
}

/* Bytes of an opaque value's first `rows` rows along axis 0. */
static size_t opaque_bytes(const sn_plan *p, const sn_place *place, int64_t rows) {
    const size_t whole = p->value_bytes[place->value.i];
    return rows < 0 ? whole : whole / (size_t)sn_graph_type(p->graph, place->value)->dims[0] * (size_t)rows;
}

snug_status sn_check_variant(const sn_plan *p, const sn_step *s, const sn_device *device, const int64_t *rows,
                             snug_error *err) {
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
        return sn_fail(err, SNUG_E_INVALID, "plan: n%u is to run as variant %d '%.39s', %s has %d '%.39s'",
                       s->node.i, s->variant, s->impl, device->name, v.id, v.impl);
    if (s->ws_bytes < v.workspace_bytes)
        return sn_fail(err, SNUG_E_INVALID, "plan: n%u has a workspace of %zu bytes and needs %zu", s->node.i,
                       s->ws_bytes, v.workspace_bytes);
    for (int k = 0; k < s->n_out; k++) {
        const size_t has = opaque_bytes(p, &s->out[k], rows[s->n_in + k]);
        if (d.out[k].dtype == SNUG_OPAQUE && v.opaque_bytes[k] != has)
            return sn_fail(err, SNUG_E_INVALID, "plan: output %d of n%u has %zu bytes and needs %zu", k,
                           s->node.i, has, v.opaque_bytes[k]);
    }
    return SNUG_OK;
}
