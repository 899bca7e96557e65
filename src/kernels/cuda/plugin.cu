/* plugin.cu: the GPU object (op/runner.h): a context with its queues, memory that is counted, calls
 * handed to families, captured runs.
 *
 * Invariants:
 * 1. Blocks are whole granules, so that their sum is what the device counts.
 * 2. A context that is lost stays lost: every later call answers with the error it was lost by.
 * 3. The words of refusals are 0 whenever a finish has returned. */
#include "kernels/cuda/driver.h"
#include "kernels/cuda/later.h"
#include "kernels/cuda/lib.h"
#include "op/abi.h"

#include <stdio.h>
#include <string.h>

#define PAGE_BYTES ((size_t)4096)
#define WORD_BYTES (SN_N_WORDS * sizeof(uint32_t))
/* That cuBLASLt, cuDNN and captured runs have been seen to take after the context, and more. */
#define MOST_GROWTH_BYTES ((size_t)96 << 20)

typedef struct sn_gpu_block {
    void *data;
    size_t bytes;
    struct sn_gpu_block *next;
} sn_gpu_block;

struct sn_gpu {
    sn_device device; /* first member: the description finds the object */
    char name[16];
    sn_gpu_options options;
    sn_driver driver;
    sn_driver_facts facts;
    cudaStream_t queues[SN_GPU_QUEUES];
    sn_driver_event turns[SN_GPU_QUEUES]; /* for order */
    sn_driver_event moments[SN_GPU_MOMENTS];
    sn_gpu_block *blocks;
    size_t held_bytes;
    size_t context_bytes; /* as open found it */
    uint32_t *words;      /* on the device: refusals, and whether a guard let the rest run */
    uint32_t *said;       /* pinned: what they were */
    bool may_refuse;      /* since the last finish */
    void *libraries[SN_GPU_N_LIBRARIES];
    bool pretends;      /* that libraries are there */
    snug_error starved; /* of the row that is being described; SNUG_OK: nothing was in want */
    sn_later later;
    void *guarded;   /* of the capture under way: what its guard began; NULL: none */
    size_t n_copies; /* since it began */
    snug_status lost;
    snug_error why;
};

struct sn_gpu_graph {
    sn_driver_graph graph;
    bool may_refuse;
};

/* --- what families ask ------------------------------------------------------------------------ */

const sn_gpu_options *sn_gpu_options_of(const sn_gpu *g) {
    return &g->options;
}

int sn_gpu_multiprocessors(const sn_gpu *g) {
    return g->facts.n_multiprocessors;
}

size_t sn_gpu_frame(const sn_gpu *g, sn_gpu_enqueue enqueue, void *ctx) {
    return sn_driver_frame(g->queues[0], enqueue, ctx);
}

void **sn_gpu_library_slot(const sn_gpu *g, sn_gpu_library which) {
    return (void **)&g->libraries[which];
}

bool sn_gpu_is_lost(const sn_gpu *g) {
    return g->lost != SNUG_OK || sn_driver_is_lost();
}

void sn_gpu_starve(const sn_gpu *g, const snug_error *why) {
    ((sn_gpu *)g)->starved = *why; /* as with the libraries: no part of what is described */
}

bool sn_gpu_pretends(const sn_gpu *g) {
    return g->pretends;
}

/* --- errors, host memory ---------------------------------------------------------------------- */

/* Of every call: the thread works with the context, unless that is lost. */
static snug_status enter(sn_gpu *g, snug_error *err) {
    if (g->lost == SNUG_OK)
        return sn_driver_enter(&g->driver, err);
    if (err)
        *err = g->why;
    return g->lost;
}

snug_status sn_gpu_enter(const sn_gpu *g, snug_error *err) {
    return enter((sn_gpu *)g, err);
}

/* Passes a status on; remembers it where the context has gone with it. */
static snug_status note(sn_gpu *g, snug_status status, const snug_error *err) {
    if (status != SNUG_E_DEVICE || g->lost != SNUG_OK || !sn_driver_is_lost())
        return status;
    g->lost = status;
    (void)sn_fail(&g->why, status,
                  "%.380s; the GPU is of no use to this engine any more: open it again once "
                  "nothing made there is left, or start the program again",
                  err ? err->text : "the GPU failed");
    return status;
}

/* Calls that wait are launched: before anything but a call is given to a queue, or
 * memory goes. */
static snug_status enter_settled(sn_gpu *g, snug_error *err) {
    SNUG_TRY(enter(g, err));
    SNUG_TRY(note(g, sn_later_flush(&g->later, err), err));
    return note(g, sn_driver_launched(err), err);
}

static bool is_faulty(const sn_gpu *g) {
    return g->options.host.fault && g->options.host.fault(g->options.host.ctx);
}

static snug_status host_alloc(sn_gpu *g, size_t bytes, void **out, snug_error *err) {
    void *block = g->options.host.alloc(g->options.host.ctx, bytes);
    if (!block)
        return sn_fail(err, SNUG_E_MEMORY, "no %zu bytes of host memory for the GPU", bytes);
    *out = block;
    return SNUG_OK;
}

static void host_free(sn_gpu *g, void *block, size_t bytes) {
    g->options.host.free(g->options.host.ctx, block, bytes);
}

static snug_status refuse_fault(const sn_gpu *g, const char *what, snug_error *err) {
    return is_faulty(g) ? sn_fail(err, SNUG_E_MEMORY, "the GPU has no room for %s", what) : SNUG_OK;
}

/* --- memory ----------------------------------------------------------------------------------- */

static snug_status gpu_alloc(sn_gpu *g, size_t bytes, void **out, snug_error *err) {
    const size_t unit = g->facts.granule_bytes;
    void *entry = NULL, *data = NULL;
    if (bytes > SIZE_MAX - unit)
        return sn_fail(err, SNUG_E_OVERFLOW, "%zu bytes exceed every GPU", bytes);
    const size_t whole = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
    SNUG_TRY(enter(g, err));
    SNUG_TRY(refuse_fault(g, "a block", err));
    SNUG_TRY(host_alloc(g, sizeof(sn_gpu_block), &entry, err));
    const snug_status status = note(g, sn_driver_alloc(whole, &data, err), err);
    if (status != SNUG_OK) {
        host_free(g, entry, sizeof(sn_gpu_block));
        return status;
    }
    sn_gpu_block *b = (sn_gpu_block *)entry;
    b->data = data;
    b->bytes = whole;
    b->next = g->blocks;
    g->blocks = b;
    g->held_bytes += whole;
    *out = data;
    return SNUG_OK;
}

static void gpu_free(sn_gpu *g, void *block) {
    sn_gpu_block **link = &g->blocks;
    while (*link && (*link)->data != block)
        link = &(*link)->next;
    sn_gpu_block *b = *link;
    if (!b)
        return;
    *link = b->next;
    g->held_bytes -= b->bytes;
    (void)enter_settled(g, NULL); /* a lost context takes it back, too */
    sn_driver_free(b->data);
    host_free(g, b, sizeof *b);
}

/* Pages of their own, since a page is pinned whole; the request's address stands before them. */
static size_t pinned_bytes(size_t bytes) {
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static snug_status gpu_pin(sn_gpu *g, size_t bytes, void **out, snug_error *err) {
    const size_t whole = pinned_bytes(bytes > 0 ? bytes : 1);
    void *raw = NULL;
    SNUG_TRY(enter(g, err));
    SNUG_TRY(refuse_fault(g, "pinned memory", err));
    SNUG_TRY(host_alloc(g, whole + 2 * PAGE_BYTES, &raw, err));
    const uintptr_t at = ((uintptr_t)raw + sizeof raw + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    ((void **)at)[-1] = raw;
    const snug_status status = note(g, sn_driver_pin((void *)at, whole, err), err);
    if (status == SNUG_OK)
        *out = (void *)at;
    else
        host_free(g, raw, whole + 2 * PAGE_BYTES);
    return status;
}

static void gpu_unpin(sn_gpu *g, void *block, size_t bytes) {
    if (!block)
        return;
    (void)enter(g, NULL);
    sn_driver_unpin(block);
    host_free(g, ((void **)block)[-1], pinned_bytes(bytes > 0 ? bytes : 1) + 2 * PAGE_BYTES);
}

/* --- the device as the planner sees it -------------------------------------------------------- */

static double bytes_of(const sn_opdesc *d) {
    double sum = 0;
    for (int i = 0; i < d->n_in + d->n_out; i++) {
        size_t bytes;
        const snug_type *t = i < d->n_in ? &d->in[i] : &d->out[i - d->n_in];
        if (t->dtype != SNUG_OPAQUE && snug_type_bytes(t, &bytes, NULL) == SNUG_OK)
            sum += (double)bytes;
    }
    return sum;
}

static snug_status describe(const sn_device *device, const sn_opdesc *d, sn_variant *out,
                            snug_error *err) {
    const sn_gpu *g = (const sn_gpu *)device;
    const sn_cuda_family *family = sn_cuda_family_of(d->op);
    sn_variant v;
    if (!family || !sn_cuda_takes(family, d))
        return sn_fail(err, SNUG_E_UNSUPPORTED, "no CUDA kernel for %s%s", sn_ops[d->op].name,
                       family ? " of these types" : "");
    memset(&v, 0, sizeof v);
    v.flops = sn_op_flops(d);
    v.bytes = bytes_of(d);
    v.speed = SN_SPEED_LOOP;
    snprintf(v.impl, sizeof v.impl, "own:cuda");
    ((sn_gpu *)g)->starved.code = SNUG_OK;
    const snug_status status = family->describe ? family->describe(g, d, &v, err) : SNUG_OK;
    if (g->starved.code != SNUG_OK) {
        (void)note((sn_gpu *)g, g->starved.code, &g->starved);
        return sn_fail(err, g->starved.code, "%s", g->starved.text);
    }
    if (status == SNUG_OK)
        *out = v;
    return status;
}

static const sn_device *gpu_device(const sn_gpu *g) {
    return &g->device;
}

static void gpu_pretend(sn_gpu *g, bool on) {
    g->pretends = on;
}

/* Of an H200, as measured; other cards differ, but plans are compared by ratios. */
static void fill_device(sn_gpu *g) {
    sn_rates *r = &g->device.rates;
    snprintf(g->name, sizeof g->name, "gpu:%d", g->options.index);
    g->device.name = g->name;
    g->device.align = 256;
    g->device.n_threads = 1;
    g->device.apart = true;
    g->device.ctx = g;
    g->device.describe = describe;
    r->product = g->options.exact ? 5e13 : 3e14;
    r->product_memory = r->memory = r->memory_all = 4e12;
    r->loop = 2e12;
    r->math = 1e12;
    r->scalar = 1e11;
    r->reference = 1e11;
    r->cache = 8e12;
    r->cache_bytes = 4e7;
    r->call = 2e-6;
    r->handoff = 2.5e-5;
    r->spill_read = r->spill_write = 5.5e10;
}

/* --- life ------------------------------------------------------------------------------------- */

static snug_status make_queues(sn_gpu *g, snug_error *err) {
    for (int i = 0; i < SN_GPU_QUEUES; i++) {
        SNUG_TRY(refuse_fault(g, "a stream", err));
        SNUG_TRY(sn_driver_make_stream(&g->queues[i], err));
        SNUG_TRY(refuse_fault(g, "an event", err));
        SNUG_TRY(sn_driver_make_event(&g->turns[i], err));
    }
    for (int i = 0; i < SN_GPU_MOMENTS; i++) {
        SNUG_TRY(refuse_fault(g, "an event", err));
        SNUG_TRY(sn_driver_make_event(&g->moments[i], err));
    }
    return SNUG_OK;
}

static snug_status make_word(sn_gpu *g, snug_error *err) {
    void *word, *said;
    SNUG_TRY(refuse_fault(g, "a word", err));
    SNUG_TRY(sn_driver_alloc(WORD_BYTES, &word, err));
    g->words = (uint32_t *)word;
    SNUG_TRY(gpu_pin(g, WORD_BYTES, &said, err));
    g->said = (uint32_t *)said;
    return sn_driver_fill(g->words, 0, WORD_BYTES, g->queues[0], err);
}

static snug_status open_parts(sn_gpu *g, snug_error *err) {
    sn_driver_memory memory;
    SNUG_TRY(refuse_fault(g, "a context", err));
    SNUG_TRY(sn_driver_attach(&g->driver, g->options.index, &g->facts, err));
    SNUG_TRY(make_queues(g, err));
    SNUG_TRY(make_word(g, err));
    SNUG_TRY(sn_driver_finish(g->queues[0], err));
    SNUG_TRY(sn_driver_look(&g->driver, &memory, err));
    g->context_bytes = memory.ours_bytes;
    fill_device(g);
    return SNUG_OK;
}

static void drop_queues(sn_gpu *g) {
    for (int i = 0; i < SN_GPU_QUEUES; i++) {
        if (g->queues[i])
            sn_driver_drop_stream(g->queues[i]);
        if (g->turns[i])
            sn_driver_drop_event(g->turns[i]);
    }
    for (int i = 0; i < SN_GPU_MOMENTS; i++)
        if (g->moments[i])
            sn_driver_drop_event(g->moments[i]);
}

static void gpu_close(sn_gpu *g, bool reset) {
    if (!g)
        return;
    if (g->driver.context) {
        (void)sn_driver_enter(&g->driver, NULL);
        sn_dnn_close(g);
        sn_blas_close(g);
        while (g->blocks)
            gpu_free(g, g->blocks->data);
        if (g->words)
            sn_driver_free(g->words);
        gpu_unpin(g, g->said, WORD_BYTES);
        drop_queues(g);
        sn_driver_detach(&g->driver, reset);
    }
    host_free(g, g, sizeof *g);
}

static snug_status gpu_open(const sn_gpu_options *o, sn_gpu **out, snug_error *err) {
    sn_gpu *g = (sn_gpu *)o->host.alloc(o->host.ctx, sizeof *g);
    if (!g)
        return sn_fail(err, SNUG_E_MEMORY, "no host memory for the GPU's object");
    memset(g, 0, sizeof *g);
    g->options = *o;
    const snug_status status = open_parts(g, err);
    if (status == SNUG_OK)
        *out = g;
    else
        gpu_close(g, false);
    return status;
}

/* What may be others', too: only so much of it is taken for libraries. */
static size_t context_of(const sn_gpu *g, const sn_driver_memory *m) {
    const size_t most = g->context_bytes + MOST_GROWTH_BYTES;
    const size_t now = m->ours_bytes > g->held_bytes ? m->ours_bytes - g->held_bytes : 0;
    if (!m->shared)
        return now;
    if (!g->facts.watches || now < g->context_bytes)
        return g->context_bytes;
    return now < most ? now : most;
}

static snug_status gpu_facts(sn_gpu *g, sn_gpu_facts *out, snug_error *err) {
    sn_driver_memory memory;
    SNUG_TRY(enter(g, err));
    SNUG_TRY(note(g, sn_driver_look(&g->driver, &memory, err), err));
    memset(out, 0, sizeof *out);
    memcpy(out->name, g->facts.name, sizeof out->name);
    memcpy(out->driver, g->facts.driver, sizeof out->driver);
    memcpy(out->runtime, g->facts.runtime, sizeof out->runtime);
    out->capability = g->facts.capability;
    out->n_multiprocessors = g->facts.n_multiprocessors;
    out->total_bytes = memory.total_bytes;
    out->free_bytes = memory.free_bytes;
    out->held_bytes = g->held_bytes;
    out->granule_bytes = g->facts.granule_bytes;
    out->watched = g->facts.watches;
    out->context_bytes = context_of(g, &memory);
    return SNUG_OK;
}

static void gpu_libraries(sn_gpu *g, sn_gpu_facts *out) {
    if (enter(g, NULL) != SNUG_OK)
        return;
    sn_blas_version(g, out->blas, sizeof out->blas);
    sn_dnn_version(g, out->dnn, sizeof out->dnn);
}

/* --- running ---------------------------------------------------------------------------------- */

static snug_status gpu_prepare(sn_gpu *g, const sn_opdesc *d, const char *impl, void **prepared,
                               snug_error *err) {
    const sn_cuda_family *family = sn_cuda_family_of(d->op);
    *prepared = NULL;
    SNUG_TRY(enter(g, err));
    if (!family || !family->prepare)
        return SNUG_OK;
    SNUG_TRY(refuse_fault(g, "a prepared kernel", err));
    return note(g, family->prepare(g, d, impl, prepared, err), err);
}

static void gpu_release(sn_gpu *g, sn_op op, void *prepared) {
    const sn_cuda_family *family = sn_cuda_family_of(op);
    if (!prepared || !family || !family->release)
        return;
    (void)enter(g, NULL);
    family->release(g, prepared);
}

/* word: which one it writes where it refuses its values. */
static snug_status enqueue(sn_gpu *g, int queue, const sn_call *c, int word, snug_error *err) {
    const sn_cuda_family *family = sn_cuda_family_of(c->op);
    const sn_cuda_call call = {g, g->queues[queue], c, g->words + word};
    SNUG_TRY(enter(g, err));
    if (!family)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "no CUDA kernel for %s", sn_ops[c->op].name);
    g->may_refuse = g->may_refuse || sn_ops[c->op].effect == SN_MAYFAIL;
    SNUG_TRY(note(g, sn_later_run(&g->later, &call, err), err));
    return note(g, sn_driver_launched(err), err);
}

static snug_status gpu_run(sn_gpu *g, int queue, const sn_call *c, snug_error *err) {
    return enqueue(g, queue, c, SN_WORD_REFUSED, err);
}

static snug_status gpu_look(sn_gpu *g, int queue, const sn_call *c, snug_error *err) {
    return enqueue(g, queue, c, SN_WORD_OBJECTED, err);
}

static bool gpu_objected(const sn_gpu *g) {
    return g->said[SN_WORD_OBJECTED] != 0;
}

static snug_status gpu_copy(sn_gpu *g, sn_gpu_copy kind, int queue, void *to, const void *from,
                            size_t bytes, snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    g->n_copies++;
    return bytes == 0 ? SNUG_OK
                      : note(g, sn_driver_copy(kind, to, from, bytes, g->queues[queue], err), err);
}

static snug_status gpu_fill(sn_gpu *g, int queue, void *to, int byte, size_t bytes,
                            snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    return bytes == 0 ? SNUG_OK
                      : note(g, sn_driver_fill(to, byte, bytes, g->queues[queue], err), err);
}

static snug_status gpu_make(sn_gpu *g, int queue, int kind, const sn_scalar *numbers,
                            const snug_view *to, snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    SNUG_TRY(note(g, sn_cuda_make(g->queues[queue], kind, numbers, to, err), err));
    return note(g, sn_driver_launched(err), err);
}

static snug_status gpu_order(sn_gpu *g, int earlier, int later, snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    SNUG_TRY(note(g, sn_driver_mark(g->turns[earlier], g->queues[earlier], err), err));
    return note(g, sn_driver_follow(g->queues[later], g->turns[earlier], err), err);
}

static snug_status gpu_mark(sn_gpu *g, int queue, int moment, snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    return note(g, sn_driver_mark(g->moments[moment], g->queues[queue], err), err);
}

static snug_status gpu_await(sn_gpu *g, int moment, snug_error *err) {
    SNUG_TRY(enter(g, err));
    return note(g, sn_driver_await(g->moments[moment], err), err);
}

/* By what MAYFAIL kernels write into the word. */
static snug_status complain(uint32_t word, snug_error *err) {
    static const struct {
        snug_status status;
        const char *text;
    } complaints[] = {
        {SNUG_E_INTERNAL, "a kernel refused its values without a reason"},
        {SNUG_E_DATA, "an index lies outside of its axis"},
        {SNUG_E_DATA, "a label lies outside of the classes"},
        {SNUG_E_NUMERIC, "a value is not finite"},
    };
    const uint32_t n = sizeof complaints / sizeof complaints[0], k = word < n ? word : 0;
    return sn_fail(err, complaints[k].status, "%s", complaints[k].text);
}

/* What kernels refused since the last time. */
static snug_status ask_word(sn_gpu *g, snug_error *err) {
    g->may_refuse = false;
    SNUG_TRY(sn_driver_copy(SN_GPU_FROM, g->said, g->words, WORD_BYTES, g->queues[0], err));
    SNUG_TRY(sn_driver_finish(g->queues[0], err));
    const uint32_t refused = g->said[SN_WORD_REFUSED];
    if (refused == 0 && !gpu_objected(g))
        return SNUG_OK;
    SNUG_TRY(sn_driver_fill(g->words, 0, WORD_BYTES, g->queues[0], err));
    return refused == 0 ? SNUG_OK : complain(refused, err);
}

static snug_status gpu_finish(sn_gpu *g, snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    g->said[SN_WORD_OBJECTED] = 0;
    for (int i = SN_GPU_QUEUES - 1; i > 0; i--)
        SNUG_TRY(note(g, sn_driver_finish(g->queues[i], err), err));
    return note(g, g->may_refuse ? ask_word(g, err) : sn_driver_finish(g->queues[0], err), err);
}

/* --- captured runs ---------------------------------------------------------------------------- */

static snug_status gpu_capture(sn_gpu *g, snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    g->may_refuse = false;
    g->n_copies = 0;
    return note(g, sn_driver_capture(g->queues[0], err), err);
}

static snug_status gpu_guard(sn_gpu *g, snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    return note(g, sn_driver_guard(g->queues[0], g->words, &g->guarded, err), err);
}

static bool gpu_passed(const sn_gpu *g) {
    return g->said[SN_WORD_OPENED] != 0;
}

static snug_status gpu_captured(sn_gpu *g, size_t room_bytes, sn_gpu_graph **out, snug_error *err) {
    void *block = NULL;
    const sn_driver_kept kept = {g->guarded, g->n_copies, room_bytes};
    sn_driver_graph graph = NULL;
    g->guarded = NULL;
    SNUG_TRY(enter(g, err));
    snug_status settled = note(g, sn_later_flush(&g->later, err), err);
    if (settled == SNUG_OK)
        settled = note(g, sn_driver_launched(err), err);
    const snug_status faulty =
        settled == SNUG_OK ? refuse_fault(g, "a captured run", err) : settled;
    SNUG_TRY(note(g, sn_driver_make_graph(g->queues[0], &kept, &graph, err), err));
    const snug_status status =
        faulty == SNUG_OK ? host_alloc(g, sizeof(sn_gpu_graph), &block, err) : faulty;
    if (status != SNUG_OK) {
        sn_driver_drop_graph(graph);
        return status;
    }
    *out = (sn_gpu_graph *)block;
    (*out)->graph = graph;
    (*out)->may_refuse = g->may_refuse;
    g->may_refuse = false;
    return SNUG_OK;
}

static snug_status gpu_replay(sn_gpu *g, sn_gpu_graph *graph, snug_error *err) {
    SNUG_TRY(enter_settled(g, err));
    g->may_refuse = g->may_refuse || graph->may_refuse;
    return note(g, sn_driver_replay(graph->graph, g->queues[0], err), err);
}

static void gpu_drop(sn_gpu *g, sn_gpu_graph *graph) {
    if (!graph)
        return;
    (void)enter(g, NULL);
    sn_driver_drop_graph(graph->graph);
    host_free(g, graph, sizeof *graph);
}

/* --- the table -------------------------------------------------------------------------------- */

static const sn_gpu_api api = {
    SN_GPU_ABI,  sn_driver_count, gpu_open,   gpu_close,    gpu_facts,    gpu_libraries,
    gpu_device,  gpu_pretend,     gpu_alloc,  gpu_free,     gpu_pin,      gpu_unpin,
    gpu_prepare, gpu_release,     gpu_run,    gpu_look,     gpu_objected, gpu_copy,
    gpu_fill,    gpu_make,        gpu_order,  gpu_mark,     gpu_await,    gpu_finish,
    gpu_capture, gpu_guard,       gpu_passed, gpu_captured, gpu_replay,   gpu_drop,
};

/* The emulated plug-in exports a table of its own around this one. */
#ifdef SN_CUDA_EMULATED
#define PLUGIN sn_gpu_plugin_plain
#else
#define PLUGIN sn_gpu_plugin
#endif

extern "C" SNUG_API const sn_gpu_api *PLUGIN(int abi);

extern "C" SNUG_API const sn_gpu_api *PLUGIN(int abi) {
    return abi == sn_gpu_abi() ? &api : NULL;
}
