/* cuda_device.c: a plug-in's families on its device, given calls on host memory (cuda_door.h). One
 * block of device memory holds a call's operands one behind the other, each between guards, then
 * its parameters and its workspace. */
#include "support/cuda_door.h"

#include "op/abi.h"
#include "support/support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA = 1 << 28, GUARD = 256, GUARD_BYTE = 0x5b };

static struct {
    const sn_gpu_api *api;
    sn_gpu *gpu;
    char *arena;
    size_t used;
} at;

static void *host_alloc(void *ctx, size_t bytes) {
    (void)ctx;
    return malloc(bytes);
}
static void host_free(void *ctx, void *block, size_t bytes) {
    (void)ctx;
    (void)bytes;
    free(block);
}
static bool no_fault(void *ctx) {
    (void)ctx;
    return false;
}

static snug_status describe(const sn_opdesc *d, sn_variant *out, snug_error *err) {
    const sn_device *device = at.api->device(at.gpu);
    return device->describe(device, d, out, err);
}

/* Bytes of the arena behind a guard, full of `fill`. */
static snug_status place(size_t bytes, int fill, char **out, snug_error *err) {
    const size_t whole = (bytes + 255) / 256 * 256 + 2 * GUARD;
    if (whole > ARENA - at.used)
        return sn_fail(err, SNUG_E_MEMORY, "a case needs more than %d bytes", (int)ARENA);
    char *block = at.arena + at.used;
    at.used += whole;
    SNUG_TRY(at.api->fill(at.gpu, 0, block, GUARD_BYTE, whole, err));
    *out = block + GUARD;
    return at.api->fill(at.gpu, 0, *out, fill, bytes, err);
}

static snug_status check_guards(const char *data, size_t bytes, const char *what, int k,
                                snug_error *err) {
    unsigned char around[2 * GUARD];
    SNUG_TRY(at.api->copy(at.gpu, SN_GPU_FROM, 0, around, data - GUARD, GUARD, err));
    SNUG_TRY(at.api->copy(at.gpu, SN_GPU_FROM, 0, around + GUARD, data + bytes, GUARD, err));
    SNUG_TRY(at.api->finish(at.gpu, err));
    for (int i = 0; i < 2 * GUARD; i++)
        if (around[i] != GUARD_BYTE)
            return sn_fail(err, SNUG_E_INTERNAL, "wrote beside %s %d", what, k);
    return SNUG_OK;
}

/* Inputs and what outputs hold, on the device; an output in an input's bytes stays there. */
static snug_status place_operands(const sn_call *c, snug_view *in, snug_view *out,
                                  snug_error *err) {
    for (int k = 0; k < c->n_in + c->n_out; k++) {
        const bool is_in = k < c->n_in;
        const snug_view *from = is_in ? &c->in[k] : &c->out[k - c->n_in];
        snug_view *to = is_in ? &in[k] : &out[k - c->n_in];
        *to = *from;
        to->data = NULL;
        for (int i = 0; i < c->n_in && !is_in; i++)
            if (c->in[i].data == from->data)
                to->data = in[i].data;
        if (to->data)
            continue;
        char *data;
        SNUG_TRY(place(from->bytes, 0, &data, err));
        SNUG_TRY(at.api->copy(at.gpu, SN_GPU_TO, 0, data, from->data, from->bytes, err));
        to->data = data;
    }
    return SNUG_OK;
}

static snug_status fetch_outputs(const sn_call *c, const snug_view *out, snug_error *err) {
    for (int k = 0; k < c->n_out; k++) {
        SNUG_TRY(
            at.api->copy(at.gpu, SN_GPU_FROM, 0, c->out[k].data, out[k].data, out[k].bytes, err));
        SNUG_TRY(check_guards(out[k].data, out[k].bytes, "output", k, err));
    }
    return SNUG_OK;
}

static snug_status run(const sn_opdesc *d, sn_call *c, int poison, snug_error *err) {
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    sn_variant v = {0};
    char *workspace, *param;
    void *prepared = NULL;
    sn_call call = *c;
    at.used = 0;
    SNUG_TRY(describe(d, &v, err));
    SNUG_TRY(place_operands(c, in, out, err));
    SNUG_TRY(place(v.workspace_bytes, poison, &workspace, err));
    SNUG_TRY(place(SN_MAX_PARAMS * sizeof *c->param, 0, &param, err));
    SNUG_TRY(
        at.api->copy(at.gpu, SN_GPU_TO, 0, param, c->param, SN_MAX_PARAMS * sizeof *c->param, err));
    SNUG_TRY(at.api->prepare(at.gpu, d, v.impl, &prepared, err));
    call.in = in;
    call.out = out;
    call.workspace = workspace;
    call.workspace_bytes = v.workspace_bytes;
    call.param = (const sn_scalar *)(void *)param;
    call.prepared = prepared;
    snug_status status = at.api->run(at.gpu, 0, &call, err);
    if (status == SNUG_OK)
        status = at.api->finish(at.gpu, err);
    at.api->release(at.gpu, d->op, prepared);
    SNUG_TRY(status);
    SNUG_TRY(check_guards(workspace, v.workspace_bytes, "workspace", 0, err));
    return fetch_outputs(c, out, err);
}

/* Views and parameters of a call, moved from the host's block to the device's. */
static void move_call(sn_call *call, snug_view *views, const char *block) {
    memcpy(views, call->in, (size_t)call->n_in * sizeof *views);
    memcpy(views + call->n_in, call->out, (size_t)call->n_out * sizeof *views);
    for (int k = 0; k < call->n_in + call->n_out; k++)
        views[k].data = at.arena + ((const char *)views[k].data - block);
    call->in = views;
    call->out = views + call->n_in;
    call->param = (const sn_scalar *)(const void *)(at.arena + ((const char *)call->param - block));
}

static snug_status run_all(const sn_call *calls, int n, void *block, size_t bytes, bool apart,
                           int64_t *n_launches, snug_error *err) {
    snug_view views[SN_MAX_IN + SN_MAX_OUT];
    *n_launches = -1;
    SNUG_TRY(at.api->copy(at.gpu, SN_GPU_TO, 0, at.arena, block, bytes, err));
    for (int i = 0; i < n; i++) {
        sn_call call = calls[i];
        move_call(&call, views, block);
        SNUG_TRY(at.api->run(at.gpu, 0, &call, err));
        if (apart)
            SNUG_TRY(at.api->finish(at.gpu, err));
    }
    SNUG_TRY(at.api->copy(at.gpu, SN_GPU_FROM, 0, block, at.arena, bytes, err));
    return at.api->finish(at.gpu, err);
}

static snug_status open_plugin(const char *path, snug_error *err) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *block;
    const sn_gpu_options options = {.exact = true, .host = {NULL, host_alloc, host_free, no_fault}};
    sn_gpu_plugin_fn plugin;
    if (!library)
        return sn_fail(err, SNUG_E_IO, "%s", dlerror());
    void *symbol = dlsym(library, "sn_gpu_plugin");
    if (!symbol)
        return sn_fail(err, SNUG_E_IO, "%s is no plug-in", path);
    memcpy(&plugin, &symbol, sizeof plugin);
    at.api = plugin(sn_gpu_abi());
    if (!at.api)
        return sn_fail(err, SNUG_E_IO, "%s was built for another Snug", path);
    SNUG_TRY(at.api->open(&options, &at.gpu, err));
    SNUG_TRY(at.api->alloc(at.gpu, ARENA, &block, err));
    at.arena = block;
    return SNUG_OK;
}

const sn_gpu_door *sn_plugin_door(const char *path, char *why, size_t size) {
    static const sn_gpu_door door = {"the plug-in's", describe, run, run_all};
    snug_error err;
    if (open_plugin(path, &err) == SNUG_OK)
        return &door;
    snprintf(why, size, "%s", err.text);
    return NULL;
}
