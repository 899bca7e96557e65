/* missing_gpu.c: what a step on a GPU would gain by libraries that are missing there. Its graph is
 * planned once more, without a limit, as if they were there: rows they would run say so, and the
 * expected times tell what they are worth. */
#include "op/impl.h"
#include "train/model.h"

#include <stdio.h>

/* The step that was looked at last, or else the first one that runs. */
static const sn_model_step *step_of(const snug_model *m) {
    if (m->looked.plan)
        return &m->looked;
    return m->n_steps > 0 && m->steps[0].plan ? &m->steps[0] : NULL;
}

/* Whether a row would run by the library, were it there. */
static bool misses(const sn_plan *p, sn_impl_kind library) {
    bool found = false;
    for (uint32_t i = 0; i < p->n_steps && !found; i++) {
        const sn_step *s = &p->steps[i];
        found = s->kind == SN_STEP_RUN && sn_impl_is_absent(s->impl) &&
                sn_impl_kind_of(s->impl) == library;
    }
    return found;
}

static void tell(const sn_plan *as_if, double seconds, char *text, size_t size) {
    const bool dnn = misses(as_if, SN_IMPL_DNN), blas = misses(as_if, SN_IMPL_BLAS);
    const double times = as_if->seconds > 0 ? seconds / as_if->seconds : 1;
    if (dnn || blas)
        snprintf(text, size, "%s not found: own kernels, about %.*fx slower",
                 dnn && blas ? "cuDNN and cuBLASLt"
                 : dnn       ? "cuDNN"
                             : "cuBLASLt",
                 times < 10 ? 1 : 0, times > 1 ? times : 1);
}

snug_status snug_model_missing(snug_model *m, char *text, size_t size, snug_error *err) {
    if (!m || !text || size == 0)
        return sn_fail(err, SNUG_E_INVALID, "snug_model_missing: model or text is NULL");
    const sn_gpu_device *g = sn_gpu_of(m->target);
    const sn_model_step *s = step_of(m);
    sn_plan *as_if = NULL;
    text[0] = 0;
    if (!g || !s)
        return SNUG_OK;
    const sn_plan_options o = {.devices = &m->target, .n_devices = 1};
    g->api->pretend(g->gpu, true);
    const snug_status status = sn_plan_build(m->engine, s->plan->graph, &o, &as_if, err);
    g->api->pretend(g->gpu, false);
    if (status == SNUG_OK)
        tell(as_if, s->plan->plain_seconds, text, size);
    sn_plan_destroy(as_if);
    return status;
}
