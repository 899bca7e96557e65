/* calibrate_gpu.c: the rates of the engine's GPU, by probes as on the processor: a rate becomes the
 * built-in one times how much faster than expected its probe ran; `fit` is what the built-in
 * numbers are off by on the card they are of. A probe is a captured run of calls, none together
 * with another, on operands that grow until the clock can tell (or the budget ends): a slow card is
 * not kept busy for long. */
#include "base/size.h"
#include "exec/gpu.h"
#include "report/calibrate.h"
#include "report/probe.h"

#include <math.h>
#include <stdio.h>

enum { MEASUREMENTS = 7, MOST_OPERANDS = 4 };
static const double LONG_ENOUGH = 3e-4; /* seconds of a captured run */

typedef struct {
    sn_rate rate;
    sn_op op;
    int n_in;
    int rank;
    int64_t a[4], b[4];  /* dims of the inputs; 0: grows */
    int64_t least, most; /* of what grows */
    int calls;           /* in a run */
    double fit, share;   /* share: of several probes of a rate */
} gpu_probe;

static const gpu_probe probes[] = {
    {SN_RATE_product, SN_OP_matmul, 2, 2, {0, 0}, {0, 0}, 64, 4096, 1, 1.57, 0.5},
    {SN_RATE_product, SN_OP_conv2d, 2, 4, {16, 32, 32, 0}, {3, 3, 0, 0}, 8, 512, 1, 1.13, 0.5},
    {SN_RATE_memory, SN_OP_add, 2, 2, {0, 1024}, {0, 1024}, 16, 65536, 1, 1.24, 1},
    {SN_RATE_cache, SN_OP_add, 2, 2, {0, 1024}, {0, 1024}, 16, 1024, 16, 1.3, 1},
    {SN_RATE_math, SN_OP_gelu, 1, 2, {0, 1024}, {0, 0}, 16, 32768, 1, 1.05, 1},
    {SN_RATE_call, SN_OP_neg, 1, 2, {1, 1}, {0, 0}, 1, 1, 200, 2.34, 1},
    {SN_RATE_handoff, SN_OP_neg, 1, 2, {1, 1}, {0, 0}, 1, 1, 1, 0.325, 1},
};

/* More is slower. */
static bool is_time(sn_rate rate) {
    return rate == SN_RATE_call || rate == SN_RATE_handoff;
}

/* --- one probe -------------------------------------------------------------------------------- */
typedef struct {
    sn_gpu_device *g;
    sn_opdesc desc;
    sn_variant variant;
    snug_view views[MOST_OPERANDS];
    sn_call call;
    void *block, *prepared;
} gpu_call;

static snug_status describe_call(const gpu_probe *p, int64_t n, gpu_call *c, snug_error *err) {
    c->desc = (sn_opdesc){.op = p->op, .n_in = p->n_in};
    for (int i = 0; i < p->n_in; i++) {
        snug_type *t = &c->desc.in[i];
        *t = (snug_type){.dtype = SNUG_F32, .rank = p->rank};
        for (int k = 0; k < p->rank; k++) {
            const int64_t dim = (i == 0 ? p->a : p->b)[k];
            t->dims[k] = dim > 0 ? dim : n;
        }
    }
    sn_attrs_default(p->op, &c->desc.attrs);
    SNUG_TRY(sn_op_infer(&c->desc, err));
    return c->g->device.describe(&c->g->device, &c->desc, &c->variant, err);
}

/* Operands, workspace and parameters in one block; every float of it is 0.75. */
static snug_status place_call(gpu_call *c, snug_error *err) {
    size_t at[MOST_OPERANDS + 2], bytes = 0;
    const int n = c->desc.n_in + c->desc.n_out;
    for (int i = 0; i < n + 2; i++) {
        const snug_type *t = i < c->desc.n_in ? &c->desc.in[i] : &c->desc.out[i - c->desc.n_in];
        size_t own = i == n ? c->variant.workspace_bytes : SN_MAX_PARAMS * sizeof(sn_scalar);
        if (i < n)
            SNUG_TRY(snug_type_bytes(t, &own, err));
        at[i] = bytes;
        if (i < n)
            c->views[i] = (snug_view){.bytes = own, .type = *t};
        if (!sn_size_add(bytes, own, &bytes) || !sn_size_align(bytes, SN_GPU_ALIGN, &bytes))
            return sn_fail(err, SNUG_E_OVERFLOW, "a probe is larger than the address space");
    }
    SNUG_TRY(sn_gpu_take(c->g, "a probe", bytes, &c->block, err));
    char *const base = c->block;
    for (int i = 0; i < n; i++)
        c->views[i].data = base + at[i];
    c->call = (sn_call){.op = c->desc.op,
                        .attrs = &c->desc.attrs,
                        .param = (const sn_scalar *)(void *)(base + at[n + 1]),
                        .n_in = c->desc.n_in,
                        .n_out = c->desc.n_out,
                        .in = c->views,
                        .out = c->views + c->desc.n_in,
                        .workspace = base + at[n],
                        .workspace_bytes = c->variant.workspace_bytes,
                        .n_threads = 1,
                        .full = c->desc.out[0].dims[0]};
    return c->g->api->fill(c->g->gpu, 0, base, 0x3f, bytes, err);
}

static snug_status open_call(const gpu_probe *p, int64_t n, gpu_call *c, snug_error *err) {
    SNUG_TRY(describe_call(p, n, c, err));
    if (sn_impl_kind_of(c->variant.impl) == SN_IMPL_HOST)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "no kernel of the GPU for a probe");
    SNUG_TRY(place_call(c, err));
    SNUG_TRY(c->g->api->prepare(c->g->gpu, &c->desc, c->variant.impl, &c->prepared, err));
    c->call.prepared = c->prepared;
    return SNUG_OK;
}

static void close_call(gpu_call *c) {
    c->g->api->release(c->g->gpu, c->desc.op, c->prepared);
    sn_gpu_give(c->g, c->block);
}

/* --- against the clock ------------------------------------------------------------------------ */
/* Each by itself: anything but a call ends what would run together. */
static snug_status enqueue(const gpu_call *c, int calls, snug_error *err) {
    const sn_gpu_api *api = c->g->api;
    for (int i = 0; i < calls; i++) {
        SNUG_TRY(api->run(c->g->gpu, 0, &c->call, err));
        SNUG_TRY(api->copy(c->g->gpu, SN_GPU_WITHIN, 0, NULL, NULL, 0, err));
    }
    return SNUG_OK;
}

static snug_status replay(sn_gpu_device *g, sn_gpu_graph *graph, double *seconds, snug_error *err) {
    const double start = sn_probe_now();
    SNUG_TRY(g->api->replay(g->gpu, graph, err));
    SNUG_TRY(g->api->finish(g->gpu, err));
    const double took = sn_probe_now() - start;
    *seconds = took < *seconds ? took : *seconds;
    return SNUG_OK;
}

/* Seconds of a run of `calls`; the first run loads what it needs, and is not captured. */
static snug_status time_calls(const gpu_call *c, int calls, double *seconds, snug_error *err) {
    const sn_gpu_api *api = c->g->api;
    sn_gpu_graph *graph = NULL;
    *seconds = INFINITY;
    SNUG_TRY(enqueue(c, 1, err));
    SNUG_TRY(api->finish(c->g->gpu, err));
    SNUG_TRY(api->capture(c->g->gpu, err));
    const snug_status given = enqueue(c, calls, err);
    snug_status status = api->captured(c->g->gpu, SIZE_MAX, &graph, given == SNUG_OK ? err : NULL);
    if (status == SNUG_OK)
        status = given;
    for (int i = 0; i < MEASUREMENTS && status == SNUG_OK; i++)
        status = replay(c->g, graph, seconds, err);
    api->drop(c->g->gpu, graph);
    return status;
}

/* How much faster than expected. */
static snug_status run_probe(sn_gpu_device *g, const gpu_probe *p, double *faster,
                             snug_error *err) {
    snug_status status = SNUG_OK;
    double seconds = 0;
    for (int64_t n = p->least; n <= p->most && seconds < LONG_ENOUGH; n *= 2) {
        gpu_call c = {.g = g};
        status = open_call(p, n, &c, err);
        if (status == SNUG_OK)
            status = time_calls(&c, p->calls, &seconds, err);
        close_call(&c);
        if (status == SNUG_E_BUDGET && n > p->least)
            return SNUG_OK; /* what was measured before is the answer */
        SNUG_TRY(status);
        const double expected = sn_cost_seconds(&g->device, &c.desc, &c.variant);
        *faster = expected * p->calls / (p->fit * (seconds + 1e-12));
    }
    return SNUG_OK;
}

/* --- the link --------------------------------------------------------------------------------- */
#define LINK_BYTES ((size_t)64 << 20)

static snug_status time_copy(sn_gpu_device *g, sn_gpu_copy kind, void *to, const void *from,
                             double *rate, snug_error *err) {
    double least = INFINITY;
    for (int i = 0; i < MEASUREMENTS; i++) {
        const double start = sn_probe_now();
        SNUG_TRY(sn_gpu_move(g, kind, to, from, LINK_BYTES, err));
        const double took = sn_probe_now() - start;
        least = took < least ? took : least;
    }
    *rate = (double)LINK_BYTES / (least + 1e-12);
    return SNUG_OK;
}

static snug_status measure_link(sn_gpu_device *g, sn_rates *r, snug_error *err) {
    void *on_device = NULL, *on_host = NULL;
    SNUG_TRY(sn_gpu_take(g, "a probe", LINK_BYTES, &on_device, err));
    snug_status status = g->api->pin(g->gpu, LINK_BYTES, &on_host, err);
    if (status == SNUG_OK)
        status = time_copy(g, SN_GPU_TO, on_device, on_host, &r->spill_read, err);
    if (status == SNUG_OK)
        status = time_copy(g, SN_GPU_FROM, on_host, on_device, &r->spill_write, err);
    g->api->unpin(g->gpu, on_host, LINK_BYTES);
    sn_gpu_give(g, on_device);
    return status;
}

/* --- all of it -------------------------------------------------------------------------------- */
static snug_status gpu_measure(snug_engine *e, const char *folder, const snug_writer *w,
                               sn_rates *r, snug_error *err) {
    sn_gpu_device *g = sn_engine_gpu(e);
    (void)folder;
    const sn_rates built_in = g->api->device(g->gpu)->rates;
    sn_rates before = built_in;
    *r = g->device.rates = built_in; /* what is expected */
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        const gpu_probe *p = &probes[i];
        double faster = 1, *rate = sn_rate_at(r, p->rate);
        SNUG_TRY(run_probe(g, p, &faster, err));
        *rate *= pow(faster, is_time(p->rate) ? -p->share : p->share);
        SNUG_TRY(sn_say_rate(w, p->rate, *rate, *sn_rate_at(&before, p->rate), err));
    }
    r->product_memory = r->memory_all = r->memory;
    SNUG_TRY(measure_link(g, r, err));
    SNUG_TRY(sn_say_rate(w, SN_RATE_spill_read, r->spill_read, before.spill_read, err));
    return sn_say_rate(w, SN_RATE_spill_write, r->spill_write, before.spill_write, err);
}

static snug_status gpu_describe(const snug_engine *e, char *title, size_t size, char *kind,
                                size_t kind_size, snug_error *err) {
    const sn_gpu_device *g = sn_engine_gpu(e);
    sn_gpu_facts facts;
    SNUG_TRY(g->api->facts(g->gpu, &facts, err));
    snprintf(title, size, "%s", facts.name);
    snprintf(kind, kind_size, "gpu%s", g->exact ? "-exact" : "");
    return SNUG_OK;
}

static void gpu_set(snug_engine *e, const sn_rates *r) {
    sn_gpu_device *g = sn_engine_gpu(e);
    g->device.rates = *r;
    g->device.measured = true;
}

const sn_calibration *sn_calibration_of(const snug_engine *e) {
    static const sn_calibration of_gpu = {gpu_describe, gpu_measure, gpu_set};
    return sn_engine_gpu(e) ? &of_gpu : &sn_calibration_of_cpu;
}
