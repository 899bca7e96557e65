/* doctor.c: what about this machine matters for memory and speed. Facts as (key, value, remark)
 * rows, printed as text or JSON; a remark says what to do where the value costs something. */
#include "base/real.h"
#include "base/say.h"
#include "base/system.h"
#include "kernels/cpu/cpu.h"
#include "memory/limits.h"
#include "model/json.h"
#include "memory/process.h"
#include "exec/exec.h"
#include "report/doctor.h"

#include <snug/device.h>
#include <snug/train.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>

static snug_status fact_json(sn_facts *f, const char *key, const char *value) {
    SNUG_TRY(sn_say(f->w, f->err, "%s\"%s\":", f->n++ ? "," : "{", key));
    return sn_json_string(f->w, value, f->err);
}

/* Keys are those of the JSON, with spaces for people. */
static snug_status fact_text(sn_facts *f, const char *key, const char *value, const char *remark) {
    char name[32];
    snprintf(name, sizeof name, "%s", key);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return sn_say(f->w, f->err, "%-18s %s%s%s\n", name, value, remark[0] ? "  -- " : "", remark);
}

void sn_fact(sn_facts *f, const char *key, const char *remark, const char *format, ...) {
    char value[512];
    va_list args;
    va_start(args, format);
    sn_print_list(value, sizeof value, format, args);
    va_end(args);
    value[strcspn(value, "\n")] = 0;
    if (f->status == SNUG_OK)
        f->status = f->json ? fact_json(f, key, value) : fact_text(f, key, value, remark);
}

static void memory_facts(sn_facts *f) {
    char text[4096], limit[64], printed[32];
    const char *total =
        strstr(sn_system_text(f->io, "/proc/meminfo", text, sizeof text), "MemTotal:");
    const char *available = strstr(text, "MemAvailable:");
    sn_fact(f, "memory", "", "%s",
            total ? snug_bytes_print(strtoull(total + 9, NULL, 10) * 1024, printed, sizeof printed)
                  : "?");
    sn_fact(f, "available", "", "%s",
            available ? snug_bytes_print(strtoull(available + 13, NULL, 10) * 1024, printed,
                                         sizeof printed)
                      : "?");
    const sn_limits l = sn_limits_read(f->io);
    snug_bytes_print(l.room_bytes, printed, sizeof printed);
    sn_fact(f, "cgroup_limit", l.in_group ? "tighter than the machine's memory" : "", "%s%s",
            l.in_group ? printed : "none that binds", l.in_group ? " left" : "");
    sn_fact(f, "may_still_take", "", "%s", l.room_bytes == SIZE_MAX ? "unknown" : printed);
    sn_system_text(f->io, "/proc/sys/vm/overcommit_memory", limit, sizeof limit);
    sn_fact(f, "overcommit", limit[0] == '2' ? "strict: large mappings may be refused" : "", "%s",
            limit);
    sn_system_text(f->io, "/sys/kernel/mm/transparent_hugepage/enabled", limit, sizeof limit);
    sn_fact(f, "huge_pages",
            strstr(limit, "[never]") ? "`madvise` would make large arenas faster" : "", "%s",
            limit);
    struct rlimit r;
    if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
        sn_fact(f, "address_space", "a limit on address space is not one on memory", "%s",
                snug_bytes_print((size_t)r.rlim_cur, printed, sizeof printed));
}

static void cpu_facts(sn_facts *f, const snug_engine *e) {
    char text[4096];
    const char *model =
        strstr(sn_system_text(f->io, "/proc/cpuinfo", text, sizeof text), "model name");
    const char *colon = model ? strchr(model, ':') : NULL;
    sn_fact(f, "cpu", "", "%s", colon ? colon + 2 : "?");
    sn_fact(f, "threads", "", "%d", snug_engine_threads(e));
    sn_fact(f, "instruction_set",
            strcmp(sn_cpu_isa(), "base") == 0 ? "no AVX2: kernels run slower" : "", "%s",
            sn_cpu_isa());
}

/* Rates the planner expects kernels to reach. */
static void rate_facts(sn_facts *f, const snug_engine *e) {
    sn_cpu_device cpu;
    char key[32], number[SN_REAL_TEXT];
    const sn_device *device = sn_engine_device(e, &cpu);
    sn_rates rates = device->rates;
    const char *of = device->apart ? ", of the GPU" : "";
    if (device->measured)
        sn_fact(f, "rates", "", "measured, %016llx%s", (unsigned long long)sn_rates_hash(&rates),
                of);
    else
        sn_fact(f, "rates", "`snug doctor --calibrate` measures this machine", "built in%s", of);
    for (sn_rate i = 0; i < SN_N_RATES; i++) {
        snprintf(key, sizeof key, "rate_%s", sn_rate_name(i));
        sn_fact(f, key, sn_rate_what(i), "%s", sn_real_print(*sn_rate_at(&rates, i), 4, number));
    }
}

static void library_facts(sn_facts *f) {
    char version[64];
    sn_fact(f, "snug", "", "%s", snug_version());
    sn_fact(f, "oneDNN", "", "%s", sn_cpu_library_version(version, sizeof version));
    sn_fact(f, "jansson", "", "%s", jansson_version_str());
    sn_fact(f, "zlib", "", "%s", zlibVersion());
}

snug_status snug_report_doctor(snug_engine *engine, int style, const snug_writer *out,
                               snug_error *err) {
    SNUG_NEEDS(err, engine && out);
    sn_facts f = {
        .io = sn_engine_io(engine), .w = out, .json = style & SNUG_REPORT_JSON, .err = err};
    sn_process p;
    char printed[32];
    library_facts(&f);
    cpu_facts(&f, engine);
    memory_facts(&f);
    sn_gpu_facts_say(&f, engine);
    sn_process_read(f.io, &p);
    sn_fact(&f, "this_process", "", "%s",
            snug_bytes_print(p.resident_bytes, printed, sizeof printed));
    rate_facts(&f, engine);
    if (f.status == SNUG_OK && f.json)
        f.status = sn_say(out, err, "}\n");
    return f.status;
}
