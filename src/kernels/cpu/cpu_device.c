/* cpu_device.c: which build of the own kernels this machine can run, and the description of the CPU
 * the planner reads. The choice depends on the processor alone: no environment variable, no clock,
 * no state. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/picture_resize.h"
#include "memory/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const sn_cpu_family *const sn_cpu_table[SN_N_OPS];

extern sn_cpu_table sn_cpu_families_base;
extern const sn_cpu_picture sn_cpu_picture_base;
#ifdef SN_HAS_ISA_AVX2
extern sn_cpu_table sn_cpu_families_avx2;
extern const sn_cpu_picture sn_cpu_picture_avx2;
#endif
#ifdef SN_HAS_ISA_AVX512
extern sn_cpu_table sn_cpu_families_avx512;
extern const sn_cpu_picture sn_cpu_picture_avx512;
#endif

/* Best first. */
typedef struct {
    const char *isa;
    const sn_cpu_family *const *families;
    const sn_cpu_picture *picture;
    sn_rates rates; /* measured on one machine of the kind; `snug doctor --calibrate` does better */
} sn_cpu_build;

/* clang-format off */
#define MACHINE                                                                                    \
    .scalar = 1e8, .reference = 3e9, .memory = 6e10, .memory_all = 8e10, .cache = 1e11,        \
    .cache_bytes = 8e6, .call = 2e-7, .handoff = 2e-6, .spill_read = 2e9, .spill_write = 1e9
/* clang-format on */

static const sn_cpu_build builds[] = {
#ifdef SN_HAS_ISA_AVX512
    {"avx512",
     sn_cpu_families_avx512,
     &sn_cpu_picture_avx512,
     {.product = 1.07e11, .product_memory = 1.5e10, .loop = 4e10, .math = 2e9, MACHINE}},
#endif
#ifdef SN_HAS_ISA_AVX2
    {"avx2",
     sn_cpu_families_avx2,
     &sn_cpu_picture_avx2,
     {.product = 6e10, .product_memory = 1.5e10, .loop = 2e10, .math = 1.2e9, MACHINE}},
#endif
    {"base",
     sn_cpu_families_base,
     &sn_cpu_picture_base,
     {.product = 1.5e10, .product_memory = 1e10, .loop = 8e9, .math = 3e8, MACHINE}},
};
enum { N_BUILDS = sizeof builds / sizeof builds[0] };

static bool runs_here(const char *isa) {
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (strcmp(isa, "avx2") == 0)
        return avx2;
    if (strcmp(isa, "avx512") == 0)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
    return strcmp(isa, "base") == 0;
}

static const sn_cpu_build *best_build(void) {
    int i = 0;
    while (i < N_BUILDS - 1 && !runs_here(builds[i].isa))
        i++;
    return &builds[i];
}

const char *sn_cpu_isa(void) {
    return best_build()->isa;
}

const sn_cpu_family *sn_cpu_family_of(sn_op op) {
    return best_build()->families[op];
}

const sn_cpu_family *sn_cpu_family_for(const char *isa, sn_op op) {
    for (int i = 0; i < N_BUILDS; i++)
        if (strcmp(builds[i].isa, isa) == 0 && runs_here(isa))
            return builds[i].families[op];
    return NULL;
}

const sn_cpu_picture *sn_cpu_picture_of(void) {
    return best_build()->picture;
}

const sn_cpu_picture *sn_cpu_picture_for(const char *isa) {
    for (int i = 0; i < N_BUILDS; i++)
        if (strcmp(builds[i].isa, isa) == 0 && runs_here(isa))
            return builds[i].picture;
    return NULL;
}

/* --- code of other builds --------------------------------------------------------------------- */
enum { MOST_PLACES = 2 * SN_N_OPS * N_BUILDS, MOST_RANGES = 64 };

typedef struct {
    uintptr_t at;
    bool used;
} code_place;

static int by_address(const void *a, const void *b) {
    const uintptr_t x = ((const code_place *)a)->at, y = ((const code_place *)b)->at;
    return (x > y) - (x < y);
}

static size_t list_kernels(code_place *places) {
    size_t n = 0;
    for (int b = 0; b < N_BUILDS; b++)
        for (int op = 0; op < SN_N_OPS; op++) {
            const sn_cpu_family *f = builds[b].families[op];
            const bool used = &builds[b] == best_build();
            if (f->run)
                places[n++] = (code_place){(uintptr_t)f->run, used};
            if (f->reference)
                places[n++] = (code_place){(uintptr_t)f->reference, used};
        }
    qsort(places, n, sizeof *places, by_address);
    return n;
}

/* What lies between two kernels of builds that are not used here, which follow each other, is taken
 * to be of those builds, too; where that is wrong it comes back when it runs. */
void sn_cpu_settle_code(void) {
    code_place places[MOST_PLACES];
    sn_code_range unused[MOST_RANGES];
    const size_t n = list_kernels(places);
    size_t n_unused = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        const bool goes_on = n_unused > 0 && unused[n_unused - 1].end == places[i].at;
        if (places[i].used || places[i + 1].used)
            continue;
        if (goes_on)
            unused[n_unused - 1].end = places[i + 1].at;
        else if (n_unused < MOST_RANGES)
            unused[n_unused++] = (sn_code_range){places[i].at, places[i + 1].at};
    }
    sn_code_settle(unused, n_unused);
}

static snug_status check_dtypes(const sn_cpu_family *f, const sn_opdesc *d, snug_error *err) {
    const uint32_t refused = SN_STORED_DTYPES & ~f->takes_stored;
    for (int i = 0; i < d->n_in + d->n_out; i++) {
        const snug_dtype t = i < d->n_in ? d->in[i].dtype : d->out[i - d->n_in].dtype;
        if (refused >> t & 1)
            return sn_fail(err, SNUG_E_UNSUPPORTED,
                           "no CPU kernel for %s operands; cast to %s before it",
                           snug_dtype_name(t), sn_dtype_is_float(t) ? "f32" : "i32");
    }
    return SNUG_OK;
}

static snug_status describe(const sn_device *device, const sn_opdesc *d, sn_variant *out,
                            snug_error *err) {
    const sn_cpu_device *cpu = (const sn_cpu_device *)device;
    const sn_cpu_build *build = best_build();
    const sn_cpu_family *family = build->families[d->op];
    sn_variant v = {.flops = sn_op_flops(d)};
    sn_cpu_speed(d, &v);
    snprintf(v.impl, sizeof v.impl, "own:%s", build->isa);
    SNUG_TRY(check_dtypes(family, d, err));
    if (family->describe)
        SNUG_TRY(family->describe(d, device->n_threads, &v, err));
    if (cpu->reference_only) {
        snprintf(v.impl, sizeof v.impl, "reference");
        v.speed = SN_SPEED_REFERENCE;
        v.efficiency = 1;
        v.workspace_bytes = family->reference == family->run ? v.workspace_bytes : 0;
        v.code_bytes = 0;
    }
    *out = v;
    return SNUG_OK;
}

void sn_cpu_device_init(sn_cpu_device *d, int n_threads, bool reference_only) {
    *d = (sn_cpu_device){
        .device = {.name = "cpu:0",
                   .align = 64,
                   .n_threads = n_threads,
                   .rates = best_build()->rates,
                   .ctx = NULL,
                   .describe = describe},
        .reference_only = reference_only,
    };
}

void sn_cpu_device_of(const snug_engine *e, sn_cpu_device *d) {
    const sn_rates *measured = sn_engine_rates(e);
    sn_cpu_device_init(d, snug_engine_threads(e), false);
    if (measured)
        d->device.rates = *measured;
    d->device.measured = measured != NULL;
}
