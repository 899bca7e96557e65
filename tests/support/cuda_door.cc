/* cuda_door.cc: the emulated families behind a door in C (cuda_door.h). */
#include "kernels/cuda/later.h"
#include "kernels/cuda/lib.h"

#include "support/cuda_door.h"
#include "support/cuda_driver.h"

#include <stdlib.h>

enum { GUARD = 64, GUARD_BYTE = 0x5b };

static void *host_alloc(void *ctx, size_t bytes) {
    (void)ctx;
    return malloc(bytes);
}
static void host_free(void *ctx, void *block, size_t bytes) {
    (void)ctx, (void)bytes;
    free(block);
}

/* What families ask of an object that is not there. */
const sn_gpu_options *sn_gpu_options_of(const sn_gpu *g) {
    static const sn_gpu_options options = {0, false, 0, {NULL, host_alloc, host_free, NULL}};
    (void)g;
    return &options;
}

int sn_gpu_multiprocessors(const sn_gpu *g) {
    (void)g;
    return 4;
}

snug_status sn_gpu_enter(const sn_gpu *g, snug_error *err) {
    (void)g, (void)err;
    sn_emulated_entered = true;
    return SNUG_OK;
}

void sn_gpu_starve(const sn_gpu *g, const snug_error *why) {
    (void)g, (void)why;
}

bool sn_gpu_pretends(const sn_gpu *g) {
    (void)g;
    return false;
}

void **sn_gpu_library_slot(const sn_gpu *g, sn_gpu_library which) {
    static void *slots[SN_GPU_N_LIBRARIES];
    (void)g;
    return &slots[which];
}

static snug_status describe(const sn_opdesc *d, sn_variant *out, snug_error *err) {
    const sn_cuda_family *f = sn_cuda_family_of(d->op);
    if (!f || !sn_cuda_takes(f, d))
        return sn_fail(err, SNUG_E_UNSUPPORTED, "no CUDA kernel for %s", sn_ops[d->op].name);
    return f->describe ? f->describe(NULL, d, out, err) : SNUG_OK;
}

static snug_status run_family(const sn_opdesc *d, const char *impl, sn_call *c, snug_error *err) {
    static const snug_status codes[] = {SNUG_OK, SNUG_E_DATA, SNUG_E_DATA, SNUG_E_NUMERIC};
    const sn_cuda_family *f = sn_cuda_family_of(d->op);
    uint32_t refused = 0;
    const sn_cuda_call call = {NULL, NULL, c, &refused};
    if (f->prepare)
        SNUG_TRY(f->prepare(NULL, d, impl, &c->prepared, err));
    const snug_status status = f->run(&call, err);
    if (f->release && c->prepared)
        f->release(NULL, c->prepared);
    if (status == SNUG_OK && refused != 0)
        return sn_fail(err, codes[refused], "refused with %u", refused);
    return status;
}

static snug_status run(const sn_opdesc *d, sn_call *c, int poison, snug_error *err) {
    sn_variant v = {};
    SNUG_TRY(describe(d, &v, err));
    const size_t bytes = v.workspace_bytes;
    unsigned char *block = (unsigned char *)aligned_alloc(64, (2 * GUARD + bytes + 63) / 64 * 64);
    if (!block)
        return sn_fail(err, SNUG_E_MEMORY, "no workspace of %zu", bytes);
    memset(block, GUARD_BYTE, 2 * GUARD + bytes);
    memset(block + GUARD, poison, bytes);
    c->workspace = block + GUARD;
    c->workspace_bytes = bytes;
    snug_status status = run_family(d, v.impl, c, err);
    for (size_t i = 0; i < GUARD; i++)
        if (block[i] != GUARD_BYTE || block[GUARD + bytes + i] != GUARD_BYTE)
            status = sn_fail(err, SNUG_E_INTERNAL, "wrote beside its workspace of %zu", bytes);
    free(block);
    return status;
}

static snug_status run_all(const sn_call *calls, int n, void *block, size_t bytes, bool apart,
                           int64_t *n_launches, snug_error *err) {
    static sn_later later;
    uint32_t refused = 0;
    const int64_t before = sn_emulated_launches;
    (void)block, (void)bytes;
    for (int i = 0; i < n; i++) {
        const sn_cuda_call c = {NULL, NULL, &calls[i], &refused};
        SNUG_TRY(sn_later_run(&later, &c, err));
        if (apart || i == n - 1)
            SNUG_TRY(sn_later_flush(&later, err));
    }
    *n_launches = sn_emulated_launches - before;
    return SNUG_OK;
}

const sn_gpu_door *sn_emulated_door(void) {
    static const sn_gpu_door door = {"emulated", describe, run, run_all};
    return &door;
}
