/* gpu.c: the plug-in: finding, loading and opening it, the device it describes to the planner, and
 * device memory within a budget.
 *
 * The plug-in is looked for beside this library (or the program it is part of), then where the
 * loader looks. SNUG_CUDA_PLUGIN names another file, for tests. */
#include "exec/gpu.h"
#include "exec/gpu_pool.h"

#include "base/bytes.h"
#include "base/size.h"
#include "memory/engine.h"
#include "memory/process.h"
#include "memory/team.h"
#include "op/abi.h"
#include "plan/plan.h"

#include <snug/device.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME   "libsnug-cuda.so"
#define PIECE_BYTES ((size_t)4 << 20)
enum { N_PIECES = 2, FIRST_PIECE = 5 }; /* moments from there on are theirs; inside.h: the others */
#define ROOM_MS 200 /* so long others' part of the card is taken for what it was */

/* --- loading ---------------------------------------------------------------------------------- */

/* dladdr wants an address of this library. */
static const char here;

/* Where this library lies, or the program it is part of, up to the last '/'; "": nobody knows. */
static void find_folder(char *folder, size_t size) {
    Dl_info info;
    const bool known = dladdr(&here, &info) != 0 && info.dli_fname && strchr(info.dli_fname, '/');
    ssize_t n = known ? snprintf(folder, size, "%s", info.dli_fname)
                      : readlink("/proc/self/exe", folder, size - 1);
    n = n > 0 && n < (ssize_t)size ? n : 0;
    while (n > 0 && folder[n - 1] != '/')
        n--;
    folder[n] = 0;
}

static void *load_at(const char *folder, const char *under) {
    char path[1100];
    snprintf(path, sizeof path, "%s%s%s", folder, under, FILE_NAME);
    return folder[0] ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Or where an installed command has it. */
static void *load_beside(void) {
    char folder[1024];
    find_folder(folder, sizeof folder);
    void *library = load_at(folder, "");
    return library ? library : load_at(folder, "../lib/");
}

static void *load(const char *path) {
    const char *other = path ? path : getenv("SNUG_CUDA_PLUGIN");
    if (other && other[0])
        return dlopen(other, RTLD_NOW | RTLD_LOCAL);
    void *library = load_beside();
    return library ? library : dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
}

/* Tools that look at kernels (racecheck, ncu) do not see into a captured run, or break at it. */
static bool refuses_graphs(void) {
    const char *graphs = getenv("SNUG_CUDA_GRAPHS");
    return graphs && strcmp(graphs, "0") == 0;
}

static snug_status find_api(void *library, const sn_gpu_api **out, snug_error *err) {
    sn_gpu_plugin_fn plugin;
    void *symbol = dlsym(library, "sn_gpu_plugin");
    memcpy(&plugin, &symbol, sizeof plugin);
    if (!symbol)
        return sn_fail(err, SNUG_E_DEVICE, "the GPU plug-in is no plug-in of Snug");
    *out = plugin(sn_gpu_abi());
    return *out ? SNUG_OK
                : sn_fail_by(err, SNUG_E_DEVICE, SNUG_CAUSE_OTHER_VERSION,
                             "the GPU plug-in was built for another version of Snug; build both "
                             "together");
}

static snug_status load_plugin(const char *path, void **library, const sn_gpu_api **api,
                               snug_error *err) {
    *library = load(path);
    if (!*library) {
        const char *why = dlerror();
        return sn_fail_by(err, SNUG_E_DEVICE, SNUG_CAUSE_NO_PLUGIN,
                          "there is no GPU plug-in (%s): %.200s; build it where nvcc is",
                          path ? path : FILE_NAME, why ? why : "not found");
    }
    const snug_status status = find_api(*library, api, err);
    if (status != SNUG_OK)
        dlclose(*library);
    return status;
}

int snug_device_count(const char *plugin, snug_error *err) {
    void *library;
    const sn_gpu_api *api;
    char why[sizeof err->text] = "";
    if (load_plugin(plugin, &library, &api, err) != SNUG_OK)
        return 0;
    const int n = api->count(why, sizeof why);
    dlclose(library);
    if (n == 0)
        (void)sn_fail(err, SNUG_E_DEVICE, "%s", why);
    return n;
}

/* --- what the planner sees -------------------------------------------------------------------- */

/* Rows without a kernel are the host's; their operands go over the link both ways. */
static snug_status describe_host_row(const sn_gpu_device *g, const sn_opdesc *d, sn_variant *out,
                                     snug_error *err) {
    sn_variant v = {.id = 0};
    SNUG_TRY(g->host.device.describe(&g->host.device, d, &v, err));
    const double rate = g->device.rates.memory / g->device.rates.spill_read;
    *out = v;
    snprintf(out->impl, sizeof out->impl, SN_BY_HOST "%.30s", v.impl);
    out->workspace_bytes = 0; /* the host's */
    out->bytes = v.bytes * rate;
    out->speed = SN_SPEED_LOOP;
    out->flops = 0;
    return SNUG_OK;
}

static snug_status describe(const sn_device *device, const sn_opdesc *d, sn_variant *out,
                            snug_error *err) {
    const sn_gpu_device *g = (const sn_gpu_device *)device;
    const sn_device *own = g->api->device(g->gpu);
    const snug_status status = own->describe(own, d, out, err);
    return status == SNUG_E_UNSUPPORTED ? describe_host_row(g, d, out, err) : status;
}

sn_gpu_device *sn_gpu_of(const sn_device *d) {
    return d->describe == describe ? (sn_gpu_device *)(uintptr_t)d : NULL;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void *host_alloc(void *ctx, size_t bytes) {
    void *block;
    return sn_alloc(ctx, SN_MEM_KERNELS, bytes, &block, NULL) == SNUG_OK ? block : NULL;
}

static void host_free(void *ctx, void *block, size_t bytes) {
    sn_free(ctx, SN_MEM_KERNELS, block, bytes);
}

static bool host_fault(void *ctx) {
    return sn_fault_asks(ctx);
}

static void close_gpu(void *object) {
    sn_gpu_device *g = object;
    sn_gpu_pool_close(g);
    if (g->pieces)
        g->api->unpin(g->gpu, g->pieces, N_PIECES * PIECE_BYTES);
    if (g->gpu)
        g->api->close(g->gpu, g->reset);
    if (g->library)
        dlclose(g->library);
    sn_free(g->engine, SN_MEM_KERNELS, g, sizeof *g);
}

static snug_status check_context(sn_gpu_device *g, snug_error *err) {
    char have[24], need[24];
    SNUG_TRY(g->api->facts(g->gpu, &g->facts, err));
    g->first_context = g->facts.context_bytes;
    if (g->budget_bytes == 0 || g->first_context < g->budget_bytes)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_BUDGET,
                   "a budget of %s on %s is less than its context alone takes, %s; give it more",
                   snug_bytes_print(g->budget_bytes, have, sizeof have), g->device.name,
                   snug_bytes_print(g->first_context, need, sizeof need));
}

static snug_status open_gpu(sn_gpu_device *g, int index, const snug_device_options *o,
                            snug_error *err) {
    const sn_gpu_options options = {.index = index,
                                    .exact = o->exact != 0,
                                    .host = {g->engine, host_alloc, host_free, host_fault}};
    SNUG_TRY(load_plugin(o->plugin, &g->library, &g->api, err));
    SNUG_TRY(g->api->open(&options, &g->gpu, err));
    g->device = *g->api->device(g->gpu);
    g->device.describe = describe;
    g->budget_bytes = o->budget_bytes;
    g->exact = options.exact;
    g->one_by_one = refuses_graphs();
    sn_cpu_device_of(g->engine, &g->host);
    return check_context(g, err);
}

snug_status sn_gpu_open(snug_engine *e, int index, const snug_device_options *o,
                        sn_gpu_device **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_KERNELS, sizeof(sn_gpu_device), &block, err));
    sn_gpu_device *g = block;
    g->engine = e;
    const snug_status status = open_gpu(g, index, o, err);
    if (status == SNUG_OK)
        *out = g;
    else
        sn_gpu_close(g);
    return status;
}

void sn_gpu_close(sn_gpu_device *d) {
    close_gpu(d);
}

static snug_status parse_name(const char *name, bool *is_gpu, int *index, snug_error *err) {
    char rest;
    *index = 0;
    *is_gpu = strncmp(name, "gpu", 3) == 0;
    const bool plain = strcmp(name, "gpu") == 0 || strcmp(name, "cpu") == 0;
    if (plain || (*is_gpu && sscanf(name, "gpu:%3d%c", index, &rest) == 1 && *index >= 0))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "there is no device '%.40s'; say cpu, gpu or gpu:1", name);
}

/* What was made there before holds on to it. */
static snug_status check_unused(const snug_engine *engine, snug_error *err) {
    const sn_gpu_device *g = sn_engine_gpu(engine);
    if (!g || g->n_users == 0)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID,
                   "%s is in use; destroy the models, sessions and recorders made there before it "
                   "is given back",
                   g->device.name);
}

snug_status snug_device(snug_engine *engine, const char *name, const snug_device_options *options,
                        snug_error *err) {
    const snug_device_options none = {.budget_bytes = 0};
    bool is_gpu;
    int index;
    sn_gpu_device *g;
    if (!engine || !name)
        return sn_fail(err, SNUG_E_INVALID, "snug_device: engine and name must not be NULL");
    SNUG_TRY(parse_name(name, &is_gpu, &index, err));
    SNUG_TRY(check_unused(engine, err));
    sn_engine_attach(engine, NULL, NULL);
    if (!is_gpu)
        return SNUG_OK;
    SNUG_TRY(sn_gpu_open(engine, index, options ? options : &none, &g, err));
    sn_engine_attach(engine, g, close_gpu);
    return SNUG_OK;
}

snug_status snug_device_reset(snug_engine *engine, snug_error *err) {
    if (!engine)
        return sn_fail(err, SNUG_E_INVALID, "snug_device_reset: engine must not be NULL");
    SNUG_TRY(check_unused(engine, err));
    sn_gpu_device *g = sn_engine_gpu(engine);
    if (g)
        g->reset = true;
    sn_engine_attach(engine, NULL, NULL);
    return SNUG_OK;
}

snug_status snug_device_budget(snug_engine *engine, size_t bytes, snug_error *err) {
    sn_gpu_device *g = engine ? sn_engine_gpu(engine) : NULL;
    if (!g)
        return sn_fail(err, SNUG_E_INVALID, "snug_device_budget: the engine has no GPU");
    const size_t before = g->budget_bytes;
    g->budget_bytes = bytes;
    g->room_ms = 0;
    const snug_status status = check_context(g, err);
    if (status != SNUG_OK)
        g->budget_bytes = before;
    return status;
}

snug_status snug_device_budget_parse(const char *text, size_t total_bytes, size_t *bytes,
                                     snug_error *err) {
    const size_t whole = total_bytes > 0 ? total_bytes : (size_t)1 << 40;
    size_t n = 0;
    if (!text || !bytes)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_device_budget_parse: text and bytes must not be NULL");
    const bool any = strcmp(text, "auto") == 0;
    const bool is_share = !any && sn_bytes_share(text, whole, &n);
    if (!any && !is_share)
        SNUG_TRY(snug_bytes_parse(text, &n, err));
    if (!any && (n == 0 || (is_share && n == SIZE_MAX)))
        return sn_fail(err, SNUG_E_INVALID,
                       "budget %.32s is %s there is on a GPU; give a size like 4GiB, a share up to "
                       "100%%, or auto",
                       text, n == 0 ? "nothing of what" : "more than");
    *bytes = n;
    return SNUG_OK;
}

sn_gpu_device *sn_engine_gpu(const snug_engine *e) {
    return sn_engine_attached(e);
}

const sn_device *sn_engine_device(const snug_engine *e, sn_cpu_device *cpu) {
    sn_gpu_device *g = sn_engine_gpu(e);
    sn_cpu_device_of(e, cpu);
    return g ? &g->device : &cpu->device;
}

snug_status snug_device_look(snug_engine *engine, snug_device_info *out, snug_error *err) {
    sn_gpu_device *g = engine ? sn_engine_gpu(engine) : NULL;
    sn_gpu_facts f;
    if (!engine || !out)
        return sn_fail(err, SNUG_E_INVALID, "snug_device_look: engine and out must not be NULL");
    if (!g) {
        *out = (snug_device_info){.name = "cpu:0"};
        return SNUG_OK;
    }
    SNUG_TRY(g->api->facts(g->gpu, &f, err));
    *out = (snug_device_info){.is_gpu = 1,
                              .capability = f.capability,
                              .total_bytes = f.total_bytes,
                              .free_bytes = f.free_bytes,
                              .context_bytes = f.context_bytes,
                              .held_bytes = f.held_bytes,
                              .budget_bytes = g->budget_bytes,
                              .watched = f.watched};
    snprintf(out->name, sizeof out->name, "%s", g->device.name);
    memcpy(out->model, f.name, sizeof out->model);
    memcpy(out->driver, f.driver, sizeof out->driver);
    memcpy(out->runtime, f.runtime, sizeof out->runtime);
    return SNUG_OK;
}

/* --- memory ----------------------------------------------------------------------------------- */

static snug_status look_now(sn_gpu_device *d, snug_error *err) {
    const sn_gpu_facts *const f = &d->facts;
    SNUG_TRY(d->api->facts(d->gpu, &d->facts, err));
    const size_t taken = f->context_bytes + f->held_bytes;
    const size_t known = d->first_context + d->captured_bytes;
    d->loaded_bytes = f->context_bytes > known ? f->context_bytes - known : 0;
    const size_t left = d->budget_bytes > taken ? d->budget_bytes - taken : 0;
    d->room_bytes = d->budget_bytes > 0 && left < f->free_bytes ? left : f->free_bytes;
    return SNUG_OK;
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + 1;
}

snug_status sn_gpu_look(sn_gpu_device *d, snug_error *err) {
    const int64_t now = now_ms();
    if (d->room_ms != 0 && now - d->room_ms <= ROOM_MS)
        return SNUG_OK;
    SNUG_TRY(look_now(d, err));
    d->room_ms = now;
    return SNUG_OK;
}

snug_status sn_gpu_room(sn_gpu_device *d, size_t *bytes, snug_error *err) {
    sn_gpu_pool_info pool;
    SNUG_TRY(sn_gpu_look(d, err));
    sn_gpu_pool_tell(d, &pool);
    *bytes = d->room_bytes + pool.idle_bytes;
    return SNUG_OK;
}

bool sn_gpu_has_beside(sn_gpu_device *d, size_t bytes) {
    size_t room;
    if (sn_gpu_room(d, &room, NULL) != SNUG_OK || bytes > room)
        return false;
    if (bytes > d->room_bytes) {
        sn_gpu_pool_trim(d);
        return sn_gpu_room(d, &room, NULL) == SNUG_OK && bytes <= d->room_bytes;
    }
    return true;
}

snug_status sn_gpu_take(sn_gpu_device *d, const char *what, size_t bytes, void **out,
                        snug_error *err) {
    size_t whole;
    char have[24], need[24];
    d->room_ms = 0;
    SNUG_TRY(look_now(d, err));
    if (!sn_size_align(bytes > 0 ? bytes : 1, d->facts.granule_bytes, &whole))
        return sn_fail(err, SNUG_E_OVERFLOW, "%zu bytes exceed every GPU", bytes);
    if (whole > d->room_bytes) {
        sn_gpu_pool_trim(d);
        SNUG_TRY(look_now(d, err));
    }
    if (whole > d->room_bytes)
        return sn_fail(err, SNUG_E_BUDGET, "%s has %s left, %s needs %s; give it a larger budget",
                       d->device.name, snug_bytes_print(d->room_bytes, have, sizeof have), what,
                       snug_bytes_print(whole, need, sizeof need));
    return d->api->alloc(d->gpu, bytes, out, err);
}

void sn_gpu_give(sn_gpu_device *d, void *block) {
    d->room_ms = 0;
    if (block)
        d->api->free(d->gpu, block);
}

/* The driver has taken pageable bytes when an asynchronous copy of them returns. */
snug_status sn_gpu_send(sn_gpu_device *d, sn_gpu_copy kind, void *to, const void *from,
                        size_t bytes, snug_error *err) {
    return d->api->copy(d->gpu, kind, 0, to, from, bytes, err);
}

/* No plan knows of them: where the process has a budget, that must have room for them, too. */
static snug_status take_pieces(sn_gpu_device *d, snug_error *err) {
    const size_t budget = snug_budget_bytes(d->engine), bytes = N_PIECES * PIECE_BYTES;
    sn_process_booking booking = {0};
    if (budget > 0) {
        SNUG_TRY(sn_process_book(d->engine, &(sn_process_need){0}, &booking, err));
        const size_t taken =
            booking.booked_bytes + sn_process_tables(budget) + snug_engine_bytes(d->engine);
        if (taken > budget || bytes > budget - taken)
            return sn_fail(err, SNUG_E_BUDGET,
                           "no %zu bytes of pinned memory within the budget of %zu bytes; %zu are "
                           "taken: give more",
                           bytes, budget, taken);
    }
    return d->api->pin(d->gpu, bytes, &d->pieces, err);
}

snug_status sn_gpu_send_beside(sn_gpu_device *d, void *to, const void *from, size_t bytes,
                               snug_error *err) {
    if (!d->pieces)
        SNUG_TRY(take_pieces(d, err));
    for (size_t at = 0, k = 0; at < bytes; at += PIECE_BYTES, k = (k + 1) % N_PIECES) {
        const size_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        unsigned char *piece = (unsigned char *)d->pieces + k * PIECE_BYTES;
        SNUG_TRY(d->api->await(d->gpu, FIRST_PIECE + (int)k, err));
        sn_team_copy(sn_team_of(d->engine), piece, (const unsigned char *)from + at, n);
        SNUG_TRY(
            d->api->copy(d->gpu, SN_GPU_TO, SN_QUEUE_IN, (unsigned char *)to + at, piece, n, err));
        SNUG_TRY(d->api->mark(d->gpu, SN_QUEUE_IN, FIRST_PIECE + (int)k, err));
    }
    return SNUG_OK;
}

snug_status sn_gpu_move(sn_gpu_device *d, sn_gpu_copy kind, void *to, const void *from,
                        size_t bytes, snug_error *err) {
    SNUG_TRY(d->api->copy(d->gpu, kind, 0, to, from, bytes, err));
    return d->api->finish(d->gpu, err);
}
