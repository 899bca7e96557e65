/* probe.c: one kernel on operands of its own, against the clock. Short calls are repeated until the
 * clock can tell; the least of several measurements counts, since whatever disturbs one makes it
 * longer. */
#include "report/probe.h"

#include "base/size.h"

#include <time.h>

enum { MEASUREMENTS = 15 };
static const double SHORT = 2e-4, LONG = 0.25; /* seconds of one measurement, of all */

double sn_probe_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct {
    sn_call call;
    sn_scalar params[SN_MAX_PARAMS];
    snug_view views[SN_MAX_IN + SN_MAX_OUT];
    sn_block block;
} probe;

/* Where the operands and the workspace lie in one block; its size. */
static bool lay_out(const sn_opdesc *d, const sn_variant *v, size_t *offset, size_t *bytes) {
    size_t at = 0;
    for (int i = 0; i <= d->n_in + d->n_out; i++) {
        const snug_type *t = i < d->n_in ? &d->in[i] : &d->out[i - d->n_in];
        size_t n = v->workspace_bytes;
        if (i < d->n_in + d->n_out && snug_type_bytes(t, &n, NULL) != SNUG_OK)
            return false;
        offset[i] = at;
        if (!sn_size_add(at, n, &at) || !sn_size_align(at, 64, &at))
            return false;
    }
    *bytes = at;
    return true;
}

/* Numbers between 0.5 and 1: no operator is slow on them, none overflows. */
static void fill_input(const snug_view *v) {
    float *x = v->data;
    for (size_t i = 0; i < v->bytes / sizeof *x; i++)
        x[i] = 0.5f + 0.5f * (float)(i * 2654435761u % 1024) / 1024;
}

static snug_status open_probe(snug_engine *e, const sn_opdesc *d, const sn_variant *v, probe *p,
                              snug_error *err) {
    size_t offset[SN_MAX_IN + SN_MAX_OUT + 1], bytes = 0;
    if (!lay_out(d, v, offset, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "a probe is larger than the address space");
    const sn_block_options populated = {.populate = true};
    SNUG_TRY(sn_block_init(e, SN_MEM_OTHER, "calibration", bytes, &populated, &p->block, err));
    unsigned char *base = p->block.data;
    for (int i = 0; i < d->n_in + d->n_out; i++) {
        p->views[i].type = i < d->n_in ? d->in[i] : d->out[i - d->n_in];
        p->views[i].data = base + offset[i];
        p->views[i].bytes = offset[i + 1] - offset[i];
        fill_input(&p->views[i]);
    }
    p->call = (sn_call){.op = d->op,
                        .attrs = &d->attrs,
                        .param = p->params,
                        .n_in = d->n_in,
                        .n_out = d->n_out,
                        .in = p->views,
                        .out = p->views + d->n_in,
                        .workspace = base + offset[d->n_in + d->n_out],
                        .workspace_bytes = v->workspace_bytes};
    return SNUG_OK;
}

static snug_status repeat(sn_kernel kernel, const sn_call *c, int n, double *seconds,
                          snug_error *err) {
    const double start = sn_probe_now();
    for (int i = 0; i < n; i++)
        SNUG_TRY(kernel(c, err));
    *seconds = (sn_probe_now() - start) / n;
    return SNUG_OK;
}

static snug_status measure(sn_kernel kernel, const sn_call *c, double *seconds, snug_error *err) {
    double once = 0, total = 0;
    SNUG_TRY(repeat(kernel, c, 1, &once, err)); /* pages and caches are warm after it */
    SNUG_TRY(repeat(kernel, c, 1, &once, err));
    const int n = once < SHORT ? (int)(SHORT / (once + 1e-8)) + 1 : 1;
    double least = once;
    for (int i = 0; i < MEASUREMENTS && total < LONG; i++) {
        double took = 0;
        SNUG_TRY(repeat(kernel, c, n, &took, err));
        total += took * n;
        least = took < least ? took : least;
    }
    *seconds = least;
    return SNUG_OK;
}

snug_status sn_probe_run(snug_engine *e, const sn_opdesc *d, int n_threads, double *seconds,
                         snug_error *err) {
    sn_cpu_device cpu;
    sn_variant v;
    probe p = {.block = {.engine = NULL}};
    sn_cpu_device_init(&cpu, n_threads, false);
    SNUG_TRY(cpu.device.describe(&cpu.device, d, &v, err));
    SNUG_TRY(open_probe(e, d, &v, &p, err));
    p.call.n_threads = n_threads;
    const bool shared = n_threads > 1;
    snug_status status = shared ? sn_team_hold(e, &p.call.team, err) : SNUG_OK;
    if (status == SNUG_OK) {
        status = measure(sn_cpu_family_of(d->op)->run, &p.call, seconds, err);
        if (shared)
            sn_team_drop(e);
    }
    sn_block_clear(&p.block);
    return status;
}
