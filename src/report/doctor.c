/* doctor.c: what about this machine matters for memory and speed. Facts as (key, value, remark)
 * rows, printed as text or JSON; a remark says what to do where the value costs something. */
#include "base/real.h"
#include "base/say.h"
#include "base/system.h"
#include "exec/gpu.h"
#include "kernels/cpu/cpu.h"
#include "memory/limits.h"
#include "model/json.h"
#include "memory/process.h"

#include <snug/device.h>
#include <snug/train.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>

typedef struct {
    const snug_io *io;
    const snug_writer *w;
    bool json;
    int n;
    snug_status status;
    snug_error *err;
} facts;

static snug_status fact_json(facts *f, const char *key, const char *value) {
    SNUG_TRY(sn_say(f->w, f->err, "%s\"%s\":", f->n++ ? "," : "{", key));
    return sn_json_string(f->w, value, f->err);
}

/* Keys are those of the JSON, with spaces for people. */
static snug_status fact_text(facts *f, const char *key, const char *value, const char *remark) {
    char name[32];
    snprintf(name, sizeof name, "%s", key);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return sn_say(f->w, f->err, "%-18s %s%s%s\n", name, value, remark[0] ? "  -- " : "", remark);
}

static void fact(facts *f, const char *key, const char *remark, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void fact(facts *f, const char *key, const char *remark, const char *format, ...) {
    char value[512];
    va_list args;
    va_start(args, format);
    sn_print_list(value, sizeof value, format, args);
    va_end(args);
    value[strcspn(value, "\n")] = 0;
    if (f->status == SNUG_OK)
        f->status = f->json ? fact_json(f, key, value) : fact_text(f, key, value, remark);
}

static void memory_facts(facts *f) {
    char text[4096], limit[64], printed[32];
    const char *total =
        strstr(sn_system_text(f->io, "/proc/meminfo", text, sizeof text), "MemTotal:");
    const char *available = strstr(text, "MemAvailable:");
    fact(f, "memory", "", "%s",
         total ? snug_bytes_print(strtoull(total + 9, NULL, 10) * 1024, printed, sizeof printed)
               : "?");
    fact(f, "available", "", "%s",
         available
             ? snug_bytes_print(strtoull(available + 13, NULL, 10) * 1024, printed, sizeof printed)
             : "?");
    const sn_limits l = sn_limits_read(f->io);
    snug_bytes_print(l.room_bytes, printed, sizeof printed);
    fact(f, "cgroup_limit", l.in_group ? "tighter than the machine's memory" : "", "%s%s",
         l.in_group ? printed : "none that binds", l.in_group ? " left" : "");
    fact(f, "may_still_take", "", "%s", l.room_bytes == SIZE_MAX ? "unknown" : printed);
    sn_system_text(f->io, "/proc/sys/vm/overcommit_memory", limit, sizeof limit);
    fact(f, "overcommit", limit[0] == '2' ? "strict: large mappings may be refused" : "", "%s",
         limit);
    sn_system_text(f->io, "/sys/kernel/mm/transparent_hugepage/enabled", limit, sizeof limit);
    fact(f, "huge_pages",
         strstr(limit, "[never]") ? "`madvise` would make large arenas faster" : "", "%s", limit);
    struct rlimit r;
    if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
        fact(f, "address_space", "a limit on address space is not one on memory", "%s",
             snug_bytes_print((size_t)r.rlim_cur, printed, sizeof printed));
}

static void cpu_facts(facts *f, const snug_engine *e) {
    char text[4096];
    const char *model =
        strstr(sn_system_text(f->io, "/proc/cpuinfo", text, sizeof text), "model name");
    const char *colon = model ? strchr(model, ':') : NULL;
    fact(f, "cpu", "", "%s", colon ? colon + 2 : "?");
    fact(f, "threads", "", "%d", snug_engine_threads(e));
    fact(f, "instruction_set",
         strcmp(sn_cpu_isa(), "base") == 0 ? "no AVX2: kernels run slower" : "", "%s",
         sn_cpu_isa());
}

/* Rates the planner expects kernels to reach. */
static void rate_facts(facts *f, const snug_engine *e) {
    sn_cpu_device cpu;
    char key[32], number[SN_REAL_TEXT];
    const sn_device *device = sn_engine_device(e, &cpu);
    sn_rates rates = device->rates;
    const char *of = sn_engine_gpu(e) ? ", of the GPU" : "";
    if (device->measured)
        fact(f, "rates", "", "measured, %016llx%s", (unsigned long long)sn_rates_hash(&rates), of);
    else
        fact(f, "rates", "`snug doctor --calibrate` measures this machine", "built in%s", of);
    for (sn_rate i = 0; i < SN_N_RATES; i++) {
        snprintf(key, sizeof key, "rate_%s", sn_rate_name(i));
        fact(f, key, sn_rate_what(i), "%s", sn_real_print(*sn_rate_at(&rates, i), 4, number));
    }
}

static void library_facts(facts *f) {
    char version[64];
    fact(f, "snug", "", "%s", snug_version());
    fact(f, "oneDNN", "", "%s", sn_cpu_library_version(version, sizeof version));
    fact(f, "jansson", "", "%s", jansson_version_str());
    fact(f, "zlib", "", "%s", zlibVersion());
}

static void open_gpu_facts(facts *f, const sn_gpu_device *g) {
    sn_gpu_facts d;
    char total[32], left[32], context[32];
    if (g->api->facts(g->gpu, &d, f->err) != SNUG_OK) {
        fact(f, "gpu", f->err ? f->err->text : "", "does not answer");
        return;
    }
    g->api->libraries(g->gpu, &d);
    fact(f, "gpu", "", "%s, compute capability %d.%d", d.name, d.capability / 10,
         d.capability % 10);
    fact(f, "gpu_driver", "", "CUDA %s; the plug-in is of CUDA %s", d.driver, d.runtime);
    fact(f, "gpu_memory", "", "%s, %s free", snug_bytes_print(d.total_bytes, total, sizeof total),
         snug_bytes_print(d.free_bytes, left, sizeof left));
    fact(f, "gpu_context", d.watched ? "" : "no NVML here: this is what it usually is", "%s",
         snug_bytes_print(d.context_bytes, context, sizeof context));
    fact(f, "cuBLASLt", d.blas[0] ? "" : "products run on own kernels, slower", "%s",
         d.blas[0] ? d.blas : "missing");
    fact(f, "cuDNN", d.dnn[0] ? "" : "convolutions run on own kernels, slower", "%s",
         d.dnn[0] ? d.dnn : "missing");
}

/* Of the engine's, or in an engine of its own, which gives the GPU back. */
static void gpu_facts(facts *f, const snug_engine *engine) {
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
        fact(f, "gpu", err.text, "none");
    snug_engine_destroy(e);
}

snug_status snug_report_doctor(snug_engine *engine, int style, const snug_writer *out,
                               snug_error *err) {
    SNUG_NEEDS(err, engine && out);
    facts f = {.io = sn_engine_io(engine), .w = out, .json = style & SNUG_REPORT_JSON, .err = err};
    sn_process p;
    char printed[32];
    library_facts(&f);
    cpu_facts(&f, engine);
    memory_facts(&f);
    gpu_facts(&f, engine);
    sn_process_read(f.io, &p);
    fact(&f, "this_process", "", "%s", snug_bytes_print(p.resident_bytes, printed, sizeof printed));
    rate_facts(&f, engine);
    if (f.status == SNUG_OK && f.json)
        f.status = sn_say(out, err, "}\n");
    return f.status;
}
