/* gpu_once.c: one call on a GPU without a plan: its operands come from the host's memory and go
 * back there, in a block of device memory that lives as long as the call. For the naive
 * executor. */
#include "exec/gpu_inside.h"

#include "base/size.h"

typedef struct {
    const sn_gpu_device *card;
    const sn_call *call;
    snug_view views[SN_MAX_IN + SN_MAX_OUT]; /* on the device */
    unsigned char *workspace, *params;
    size_t bytes; /* of the block */
} once;

static size_t next(once *o, size_t bytes) {
    const size_t at = o->bytes;
    o->bytes += sn_gpu_units(bytes);
    return at;
}

/* Where everything lies in the block; base NULL: only how large that is. */
static void lay_out(once *o, size_t workspace_bytes, unsigned char *base) {
    const sn_call *c = o->call;
    o->bytes = 0;
    for (int k = 0; k < c->n_in + c->n_out; k++) {
        o->views[k] = k < c->n_in ? c->in[k] : c->out[k - c->n_in];
        o->views[k].data = base + next(o, o->views[k].bytes);
    }
    o->params = base + next(o, SN_MAX_PARAMS * sizeof(sn_scalar));
    o->workspace = base + next(o, workspace_bytes);
}

static snug_status copy_operands(const once *o, snug_error *err) {
    const sn_gpu_device *d = o->card;
    const sn_call *c = o->call;
    const size_t n_params = (size_t)sn_ops[c->op].attrs->n_params;
    for (int k = 0; k < c->n_in; k++)
        SNUG_TRY(d->api->copy(d->gpu, SN_GPU_TO, 0, o->views[k].data, c->in[k].data, c->in[k].bytes,
                              err));
    return d->api->copy(d->gpu, SN_GPU_TO, 0, o->params, c->param, n_params * sizeof *c->param,
                        err);
}

static snug_status run_block(const once *o, const sn_opdesc *desc, const sn_variant *v,
                             snug_error *err) {
    const sn_gpu_device *d = o->card;
    sn_call call = *o->call;
    void *prepared = NULL;
    SNUG_TRY(copy_operands(o, err));
    SNUG_TRY(d->api->prepare(d->gpu, desc, v->impl, &prepared, err));
    call.in = o->views;
    call.out = o->views + call.n_in;
    call.param = (const sn_scalar *)(const void *)o->params;
    call.workspace = o->workspace;
    call.workspace_bytes = v->workspace_bytes;
    call.prepared = prepared;
    snug_status status = d->api->run(d->gpu, 0, &call, err);
    for (int k = 0; status == SNUG_OK && k < call.n_out; k++)
        status = d->api->copy(d->gpu, SN_GPU_FROM, 0, o->call->out[k].data, call.out[k].data,
                              call.out[k].bytes, err);
    if (status == SNUG_OK)
        status = d->api->finish(d->gpu, err);
    if (prepared)
        d->api->release(d->gpu, desc->op, prepared);
    return status;
}

snug_status sn_gpu_call_once(snug_engine *e, const sn_device *d, const sn_opdesc *desc,
                             const sn_call *call, snug_error *err) {
    sn_gpu_device *card = sn_gpu_of(d);
    once o = {.card = card, .call = call};
    sn_variant v = {0};
    void *block;
    SNUG_TRY(d->describe(d, desc, &v, err));
    if (sn_impl_kind_of(v.impl) == SN_IMPL_HOST)
        return sn_cpu_runner.call_once(e, &card->host.device, desc, call, err);
    lay_out(&o, v.workspace_bytes, NULL);
    SNUG_TRY(sn_gpu_take(card, "operands", o.bytes, &block, err));
    lay_out(&o, v.workspace_bytes, block);
    const snug_status status = run_block(&o, desc, &v, err);
    sn_gpu_give(card, block);
    return status;
}
