/* later.cu: which calls wait, and what makes them run (later.h). */
#include "kernels/cuda/later.h"

#include <string.h>

void sn_hold(sn_held *h, const sn_call *call) {
    h->call = *call;
    memcpy(h->views, call->in, (size_t)call->n_in * sizeof *h->views);
    memcpy(h->views + call->n_in, call->out, (size_t)call->n_out * sizeof *h->views);
}

sn_call sn_held_call(const sn_held *h) {
    sn_call call = h->call;
    call.in = h->views;
    call.out = h->views + call.n_in;
    return call;
}

static snug_status run_now(const sn_cuda_call *base, const sn_held *h, snug_error *err) {
    const sn_call call = sn_held_call(h);
    const sn_cuda_call c = {base->gpu, base->stream, &call, base->refused};
    return sn_cuda_family_of(call.op)->run(&c, err);
}

/* --- who meets whom --------------------------------------------------------------------------- */

static bool overlap(const snug_view *a, const snug_view *b) {
    return sn_bytes_meet(a->data, a->bytes, b->data, b->bytes);
}

static bool any_overlap(const snug_view *a, int n_a, const snug_view *b, int n_b) {
    for (int i = 0; i < n_a; i++)
        for (int j = 0; j < n_b; j++)
            if (overlap(&a[i], &b[j]))
                return true;
    return false;
}

/* Whether one writes what the other reads or writes. */
static bool calls_meet(const sn_call *a, const sn_call *b) {
    const snug_view scratch = {b->workspace, b->workspace_bytes, {}};
    return any_overlap(a->out, a->n_out, b->in, b->n_in) ||
           any_overlap(a->out, a->n_out, b->out, b->n_out) ||
           any_overlap(a->in, a->n_in, b->out, b->n_out) ||
           any_overlap(a->in, a->n_in, &scratch, 1);
}

static bool updates_meet(const sn_later_updates *u, const sn_call *call) {
    for (int i = 0; i < u->n; i++) {
        const sn_call held = sn_held_call(&u->calls[i]);
        if (calls_meet(&held, call))
            return true;
    }
    return false;
}

/* --- groups ----------------------------------------------------------------------------------- */

static snug_status flush_updates(sn_later_updates *u, snug_error *err) {
    const int n = u->n;
    u->n = 0;
    if (n == 0)
        return SNUG_OK;
    if (n == 1)
        return run_now(&u->base, &u->calls[0], err);
    return sn_cuda_family_of(u->calls[0].call.op)->run_many(&u->base, u->calls, n, err);
}

static snug_status flush_chain(sn_chain *chain, snug_error *err) {
    const int n = chain->n;
    chain->n = 0;
    if (n == 0)
        return SNUG_OK;
    return n == 1 ? run_now(&chain->base, &chain->first, err) : sn_chain_run(chain, n, err);
}

static bool alike(const sn_held *held, const sn_call *call) {
    bool same = true;
    for (int k = 0; k < call->n_in; k++)
        same = same && held->views[k].type.dtype == call->in[k].type.dtype;
    return same;
}

static bool joins_updates(const sn_later_updates *u, const sn_cuda_call *c) {
    const sn_call *first = &u->calls[0].call;
    return u->n < SN_MOST_UPDATES && first->op == c->call->op && u->base.stream == c->stream &&
           first->n_in == c->call->n_in && first->n_out == c->call->n_out &&
           alike(&u->calls[0], c->call) && !updates_meet(u, c->call);
}

static snug_status hold_update(sn_later *l, const sn_cuda_call *c, snug_error *err) {
    sn_later_updates *u = &l->updates;
    if (sn_chain_meets(&l->chain, c->call))
        SNUG_TRY(flush_chain(&l->chain, err));
    if (u->n > 0 && !joins_updates(u, c))
        SNUG_TRY(flush_updates(u, err));
    u->base = *c;
    sn_hold(&u->calls[u->n++], c->call);
    return SNUG_OK;
}

static snug_status hold_link(sn_later *l, const sn_cuda_call *c, snug_error *err) {
    if (updates_meet(&l->updates, c->call))
        SNUG_TRY(flush_updates(&l->updates, err));
    if (l->chain.n > 0 && sn_chain_add(&l->chain, c, l->number))
        return SNUG_OK;
    SNUG_TRY(flush_chain(&l->chain, err));
    if (sn_chain_add(&l->chain, c, l->number))
        return SNUG_OK;
    return sn_cuda_family_of(c->call->op)->run(c, err);
}

snug_status sn_later_run(sn_later *l, const sn_cuda_call *c, snug_error *err) {
    const sn_cuda_family *family = sn_cuda_family_of(c->call->op);
    l->number++;
    if (family->run_many && c->call->n_in + c->call->n_out <= SN_HELD_VIEWS)
        return hold_update(l, c, err);
    if (sn_chain_takes(c->call))
        return hold_link(l, c, err);
    SNUG_TRY(flush_chain(&l->chain, err));
    if (updates_meet(&l->updates, c->call))
        SNUG_TRY(flush_updates(&l->updates, err));
    return family->run(c, err);
}

snug_status sn_later_flush(sn_later *l, snug_error *err) {
    const snug_status chain = flush_chain(&l->chain, err);
    const snug_status updates = flush_updates(&l->updates, chain == SNUG_OK ? err : NULL);
    return chain == SNUG_OK ? updates : chain;
}
