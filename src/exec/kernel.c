/* kernel.c: what running a plan and running naively share: parameters of a call, the kernel a
 * device uses, bytes of opaque values, and errors that name the layer. */
#include "exec/inside.h"

uint32_t sn_param_slots(sn_op op, const sn_attrs *attrs, uint32_t *slots) {
    const sn_attr_family *family = sn_ops[op].attrs;
    uint32_t n = 0;
    for (int f = 0; f < family->n_fields; f++) {
        const sn_field *field = &family->fields[f];
        if (!sn_field_is_param(field))
            continue;
        for (int k = 0; k < field->n; k++)
            slots[n++] = (uint32_t)attrs->word[field->word + k];
    }
    return n;
}

sn_scalar sn_param_default(const sn_param_info *p) {
    return p->kind == SN_PARAM_KEY ? (sn_scalar){.key = p->key} : (sn_scalar){.real = p->real};
}

void sn_param_gather(const sn_scalar *values, uint32_t n_values, const uint32_t *slots, uint32_t n,
                     sn_scalar *out) {
    for (uint32_t i = 0; i < n; i++)
        out[i] = slots[i] < n_values ? values[slots[i]] : (sn_scalar){.key = 0};
}

sn_kernel sn_kernel_of(const sn_cpu_device *d, sn_op op) {
    const sn_cpu_family *family = sn_cpu_family_of(op);
    return d->reference_only || !family->run ? family->reference : family->run;
}

snug_status sn_kernel_prepare(snug_engine *e, const sn_cpu_device *d, const sn_opdesc *desc,
                              void **prepared, snug_error *err) {
    const sn_cpu_family *family = sn_cpu_family_of(desc->op);
    *prepared = NULL;
    if (d->reference_only || !family->prepare)
        return SNUG_OK;
    return family->prepare(e, desc, d->device.n_threads, prepared, err);
}

void sn_kernel_release(snug_engine *e, sn_op op, void *prepared) {
    if (prepared)
        sn_cpu_family_of(op)->release(e, prepared);
}

snug_status sn_value_bytes(const sn_graph *g, sn_value v, const sn_device *d, size_t *bytes,
                           snug_error *err) {
    const sn_value_info *info = sn_graph_value_at(g, v);
    if (info->type.dtype != SNUG_OPAQUE)
        return snug_type_bytes(&info->type, bytes, err);
    if (info->node.i == SN_NO_NODE.i)
        return sn_fail(err, SNUG_E_INVALID, "value %%%u is opaque and no node makes it", v.i);
    sn_opdesc desc;
    sn_graph_desc(g, info->node, &desc);
    sn_variant variant = {0};
    SNUG_TRY(d->describe(d, &desc, &variant, err));
    *bytes = variant.opaque_bytes[info->index];
    return SNUG_OK;
}

snug_status sn_fail_at(const sn_graph *g, sn_node n, snug_status status, snug_error *err) {
    const sn_node_info *node = sn_graph_node_at(g, n);
    const char *owner = sn_graph_owner_name(g, node->owner);
    if (owner[0])
        return sn_fail_in(err, status, "layer %s (%s)", owner, sn_ops[node->op].name);
    return sn_fail_in(err, status, "node %u (%s)", n.i, sn_ops[node->op].name);
}
