/* doctor_gpu.c: what `snug doctor` says of the GPU: the engine's, or the first one there is. */
#include "report/doctor.h"

#include "exec/gpu.h"

#include "base/bytes.h"
#include <snug/device.h>

static void open_gpu_facts(sn_facts *f, const sn_gpu_device *g) {
    sn_gpu_facts d;
    char total[32], left[32], context[32];
    if (g->api->facts(g->gpu, &d, f->err) != SNUG_OK) {
        sn_fact(f, "gpu", f->err ? f->err->text : "", "does not answer");
        return;
    }
    g->api->libraries(g->gpu, &d);
    sn_fact(f, "gpu", "", "%s, compute capability %d.%d", d.name, d.capability / 10,
            d.capability % 10);
    sn_fact(f, "gpu_driver", "", "CUDA %s; the plug-in is of CUDA %s", d.driver, d.runtime);
    sn_fact(f, "gpu_memory", "", "%s, %s free",
            snug_bytes_print(d.total_bytes, total, sizeof total),
            snug_bytes_print(d.free_bytes, left, sizeof left));
    sn_fact(f, "gpu_context", d.watched ? "" : "no NVML here: this is what it usually is", "%s",
            snug_bytes_print(d.context_bytes, context, sizeof context));
    sn_fact(f, "cuBLASLt", d.blas[0] ? "" : "products run on own kernels, slower", "%s",
            d.blas[0] ? d.blas : "missing");
    sn_fact(f, "cuDNN", d.dnn[0] ? "" : "convolutions run on own kernels, slower", "%s",
            d.dnn[0] ? d.dnn : "missing");
}

/* Of the engine's, or in an engine of its own, which gives the GPU back. */
void sn_gpu_facts_say(sn_facts *f, const snug_engine *engine) {
    snug_engine *e = NULL;
    snug_error err = {.code = SNUG_OK};
    if (sn_engine_gpu(engine)) {
        open_gpu_facts(f, sn_engine_gpu(engine));
        return;
    }
    snug_status status = snug_engine_create(NULL, &e, &err);
    if (status == SNUG_OK)
        status = snug_device(e, "gpu", NULL, &err);
    if (status == SNUG_OK)
        open_gpu_facts(f, sn_engine_gpu(e));
    else
        sn_fact(f, "gpu", err.text, "none");
    snug_engine_destroy(e);
}
