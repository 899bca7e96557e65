/* cuda_driver.cc: driver.h without a GPU, for the emulated plug-in. Device memory is host memory
 * that this file counts; queues do everything at once, so that an order they need but lack does not
 * show here. A capture keeps calls and copies (the table at the end) and replays them.
 *
 * Tests find sn_emulated_world (cuda_libraries.cc) by its name: how large the card is, what others
 * hold of it, and which call of the driver is the first to fail, for good or once. */
#include "cuda_driver.h"
#include "op/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sn_emulated_card &card = *sn_emulated_world();

/* Whether this call is the one to fail. */
static bool is_broken(void) {
    if (card.lost)
        return true;
    if (card.fail_at < 0 || card.fail_at-- > 0)
        return false;
    card.lost = true;
    return true;
}

static snug_status answer(const char *what, snug_error *err) {
    return is_broken() ? sn_fail(err, SNUG_E_DEVICE, "emulated CUDA: %s failed", what) : SNUG_OK;
}

int sn_driver_count(char *why, size_t size) {
    if (card.n_devices == 0)
        snprintf(why, size, "the driver sees no GPU; look at CUDA_VISIBLE_DEVICES");
    return card.n_devices;
}

snug_status sn_driver_attach(sn_driver *d, int index, sn_driver_facts *out, snug_error *err) {
    memset(d, 0, sizeof *d);
    if (index < 0 || index >= card.n_devices)
        return sn_fail(err, SNUG_E_DEVICE, "there is no GPU %d; the driver sees %d, from gpu:0 on",
                       index, card.n_devices);
    if (card.others_bytes + card.context_bytes > card.total_bytes)
        return sn_fail(err, SNUG_E_MEMORY, "GPU %d is full; end other programs on it", index);
    card.lost = false;
    d->index = index;
    d->context = &card;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "Emulated GPU");
    snprintf(out->driver, sizeof out->driver, "0.0");
    snprintf(out->runtime, sizeof out->runtime, "0.0");
    out->capability = 90;
    out->n_multiprocessors = 4;
    out->granule_bytes = (size_t)64 << 10;
    out->watches = true;
    card.n_contexts++;
    return SNUG_OK;
}

void sn_driver_detach(sn_driver *d, bool reset) {
    card.n_resets += reset;
    card.n_contexts--;
    memset(d, 0, sizeof *d);
}

snug_status sn_driver_enter(const sn_driver *d, snug_error *err) {
    return d->context ? SNUG_OK : sn_fail(err, SNUG_E_DEVICE, "no context");
}

snug_status sn_driver_look(const sn_driver *d, sn_driver_memory *out, snug_error *err) {
    (void)d;
    const size_t ours = card.context_bytes + card.held_bytes + card.graph_bytes;
    *out = sn_driver_memory{card.total_bytes, card.total_bytes - card.others_bytes - ours, ours};
    return answer("asking for memory", err);
}

/* --- memory ----------------------------------------------------------------------------------- */

enum { HEADER = 256 }; /* the size stands before the block */

snug_status sn_driver_alloc(size_t bytes, void **out, snug_error *err) {
    SNUG_TRY(answer("an allocation", err));
    if (bytes > card.total_bytes - card.context_bytes - card.others_bytes - card.held_bytes)
        return sn_fail(err, SNUG_E_MEMORY, "the GPU has no memory for %zu bytes", bytes);
    char *block = (char *)aligned_alloc(HEADER, HEADER + (bytes + HEADER - 1) / HEADER * HEADER);
    memcpy(block, &bytes, sizeof bytes);
    memset(block + HEADER, 0xcd, bytes);
    card.held_bytes += bytes;
    *out = block + HEADER;
    return SNUG_OK;
}

void sn_driver_free(void *block) {
    size_t bytes;
    memcpy(&bytes, (char *)block - HEADER, sizeof bytes);
    card.held_bytes -= bytes;
    free((char *)block - HEADER);
}

snug_status sn_driver_pin(void *pages, size_t bytes, snug_error *err) {
    (void)pages;
    (void)bytes;
    return answer("pinning", err);
}

void sn_driver_unpin(void *pages) {
    (void)pages;
}

/* --- queues ----------------------------------------------------------------------------------- */

snug_status sn_driver_make_stream(cudaStream_t *out, snug_error *err) {
    SNUG_TRY(answer("a stream", err));
    *out = (cudaStream_t)malloc(1);
    return SNUG_OK;
}

void sn_driver_drop_stream(cudaStream_t s) {
    free(s);
}

snug_status sn_driver_make_event(sn_driver_event *out, snug_error *err) {
    SNUG_TRY(answer("an event", err));
    *out = malloc(1);
    return SNUG_OK;
}

void sn_driver_drop_event(sn_driver_event e) {
    free(e);
}

snug_status sn_driver_copy(sn_gpu_copy kind, void *to, const void *from, size_t bytes,
                           cudaStream_t s, snug_error *err) {
    (void)kind;
    (void)s;
    SNUG_TRY(answer("a copy", err));
    memmove(to, from, bytes);
    return SNUG_OK;
}

snug_status sn_driver_fill(void *to, int byte, size_t bytes, cudaStream_t s, snug_error *err) {
    (void)s;
    SNUG_TRY(answer("a fill", err));
    memset(to, byte, bytes);
    return SNUG_OK;
}

snug_status sn_driver_mark(sn_driver_event e, cudaStream_t s, snug_error *err) {
    (void)e;
    (void)s;
    return answer("an event", err);
}

snug_status sn_driver_follow(cudaStream_t s, sn_driver_event e, snug_error *err) {
    (void)s;
    (void)e;
    return answer("an order of streams", err);
}

snug_status sn_driver_await(sn_driver_event e, snug_error *err) {
    (void)e;
    return answer("waiting", err);
}

snug_status sn_driver_finish(cudaStream_t s, snug_error *err) {
    (void)s;
    return answer("running", err);
}

snug_status sn_driver_launched(snug_error *err) {
    return answer("starting a kernel", err);
}

size_t sn_driver_frame(cudaStream_t s, sn_driver_enqueue enqueue, void *ctx) {
    (void)s, (void)enqueue, (void)ctx;
    return 0;
}

bool sn_driver_is_lost(void) {
    return card.lost;
}

snug_status sn_driver_capture(cudaStream_t s, snug_error *err) {
    (void)s;
    return answer("a capture", err);
}

static uint32_t *guard_words; /* of the newest guard */

snug_status sn_driver_guard(cudaStream_t s, uint32_t *words, void **whole, snug_error *err) {
    (void)s;
    *whole = NULL;
    guard_words = words;
    return answer("a guard", err);
}

snug_status sn_driver_make_graph(cudaStream_t s, void *whole, sn_driver_graph *out,
                                 snug_error *err) {
    (void)s;
    (void)whole;
    SNUG_TRY(answer("a graph", err));
    *out = malloc(1);
    return SNUG_OK;
}

snug_status sn_driver_replay(sn_driver_graph graph, cudaStream_t s, snug_error *err) {
    (void)graph;
    (void)s;
    return answer("a replay", err);
}

void sn_driver_drop_graph(sn_driver_graph graph) {
    free(graph);
}

/* --- captures: the plug-in's table, with run, copy and fill kept while one is open --------------
 */

typedef enum { KEPT_RUN, KEPT_COPY, KEPT_FILL, KEPT_MAKE, KEPT_GUARD } kept_kind;
typedef struct kept {
    kept_kind kind;
    sn_call call;
    snug_view *views; /* in, then out */
    sn_gpu_copy copy;
    void *to;
    const void *from;
    int byte;
    size_t bytes;
    struct kept *next;
} kept;

typedef struct tape {
    sn_gpu *gpu;
    sn_gpu_graph *graph; /* the plug-in's; NULL while it is open */
    kept *first, **end;
    struct tape *next;
} tape;

extern "C" const sn_gpu_api *sn_gpu_plugin_plain(int abi);
static tape *tapes; /* the newest first */

/* Its number is a sum over long texts, and planners ask for thousands of descriptions. */
static const sn_gpu_api *plain(void) {
    static const sn_gpu_api *const api = sn_gpu_plugin_plain(sn_gpu_abi());
    return api;
}

static tape *open_tape(const sn_gpu *g) {
    for (tape *t = tapes; t; t = t->next)
        if (t->gpu == g && !t->graph)
            return t;
    return NULL;
}

enum { CALL_BYTES = 1500 }; /* of a captured call, which is two kernels or so */

static void drop_tape(tape *t) {
    tape **link = &tapes;
    for (const kept *k = t->graph ? t->first : NULL; k; k = k->next)
        card.graph_bytes -= CALL_BYTES;
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    while (t->first) {
        kept *k = t->first;
        t->first = k->next;
        free(k->views);
        free(k);
    }
    free(t);
}

static kept *keep(tape *t, kept_kind kind) {
    kept *k = (kept *)calloc(1, sizeof *k);
    k->kind = kind;
    *t->end = k;
    t->end = &k->next;
    return k;
}

static snug_status tape_run(sn_gpu *g, int queue, const sn_call *c, snug_error *err) {
    tape *t = open_tape(g);
    if (!t)
        return plain()->run(g, queue, c, err);
    kept *k = keep(t, KEPT_RUN);
    k->call = *c;
    k->views = (snug_view *)calloc((size_t)(c->n_in + c->n_out + 1), sizeof *k->views);
    if (c->n_in > 0)
        memcpy(k->views, c->in, (size_t)c->n_in * sizeof *c->in);
    if (c->n_out > 0)
        memcpy(k->views + c->n_in, c->out, (size_t)c->n_out * sizeof *c->out);
    k->call.in = k->views;
    k->call.out = k->views + c->n_in;
    return SNUG_OK;
}

static snug_status tape_copy(sn_gpu *g, sn_gpu_copy kind, int queue, void *to, const void *from,
                             size_t bytes, snug_error *err) {
    tape *t = open_tape(g);
    card.n_beside += !t && kind == SN_GPU_TO && queue == 1;
    if (!t)
        return plain()->copy(g, kind, queue, to, from, bytes, err);
    kept *k = keep(t, KEPT_COPY);
    k->copy = kind;
    k->to = to;
    k->from = from;
    k->bytes = bytes;
    return SNUG_OK;
}

static snug_status tape_fill(sn_gpu *g, int queue, void *to, int byte, size_t bytes,
                             snug_error *err) {
    tape *t = open_tape(g);
    if (!t)
        return plain()->fill(g, queue, to, byte, bytes, err);
    kept *k = keep(t, KEPT_FILL);
    k->to = to;
    k->byte = byte;
    k->bytes = bytes;
    return SNUG_OK;
}

static snug_status tape_make(sn_gpu *g, int queue, int kind, const sn_scalar *numbers,
                             const snug_view *to, snug_error *err) {
    tape *t = open_tape(g);
    card.n_made++;
    if (!t)
        return plain()->make(g, queue, kind, numbers, to, err);
    kept *k = keep(t, KEPT_MAKE);
    k->byte = kind;
    k->from = numbers;
    k->views = (snug_view *)calloc(1, sizeof *k->views);
    k->views[0] = *to;
    return SNUG_OK;
}

static snug_status tape_capture(sn_gpu *g, snug_error *err) {
    SNUG_TRY(plain()->capture(g, err));
    tape *t = (tape *)calloc(1, sizeof *t);
    t->gpu = g;
    t->end = &t->first;
    t->next = tapes;
    tapes = t;
    return SNUG_OK;
}

static snug_status tape_guard(sn_gpu *g, snug_error *err) {
    SNUG_TRY(plain()->guard(g, err));
    keep(open_tape(g), KEPT_GUARD)->to = guard_words;
    return SNUG_OK;
}

static snug_status tape_captured(sn_gpu *g, sn_gpu_graph **out, snug_error *err) {
    tape *t = open_tape(g);
    const snug_status status = plain()->captured(g, out, err);
    if (status != SNUG_OK) {
        drop_tape(t);
        return status;
    }
    t->graph = *out;
    for (const kept *k = t->first; k; k = k->next)
        card.graph_bytes += CALL_BYTES;
    return SNUG_OK;
}

static snug_status play(sn_gpu *g, const kept *k, snug_error *err) {
    if (k->kind == KEPT_RUN)
        return plain()->run(g, 0, &k->call, err);
    if (k->kind == KEPT_COPY)
        return plain()->copy(g, k->copy, 0, k->to, k->from, k->bytes, err);
    if (k->kind == KEPT_MAKE)
        return plain()->make(g, 0, k->byte, (const sn_scalar *)k->from, k->views, err);
    return plain()->fill(g, 0, k->to, k->byte, k->bytes, err);
}

static tape *tape_of(const sn_gpu_graph *graph) {
    tape *t = tapes;
    while (t && t->graph != graph)
        t = t->next;
    return t;
}

/* Whether what follows a guard runs; calls that wait have run by then. */
static snug_status ask_guard(sn_gpu *g, const kept *k, bool *go, snug_error *err) {
    uint32_t *words = (uint32_t *)k->to;
    SNUG_TRY(plain()->order(g, 0, 0, err));
    *go = words[0] == 0;
    words[1] = *go;
    return SNUG_OK;
}

static snug_status tape_replay(sn_gpu *g, sn_gpu_graph *graph, snug_error *err) {
    bool go = true;
    SNUG_TRY(plain()->replay(g, graph, err));
    for (const kept *k = tape_of(graph)->first; k && go; k = k->next)
        SNUG_TRY(k->kind == KEPT_GUARD ? ask_guard(g, k, &go, err) : play(g, k, err));
    card.n_replays++;
    return SNUG_OK;
}

static void tape_drop(sn_gpu *g, sn_gpu_graph *graph) {
    if (graph && tape_of(graph))
        drop_tape(tape_of(graph));
    plain()->drop(g, graph);
}

/* The device as the plug-in describes it, or one without kernels. */
static const sn_device *described;

static snug_status describe(const sn_device *d, const sn_opdesc *desc, sn_variant *out,
                            snug_error *err) {
    (void)d;
    if (card.has_no_kernels)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "the emulated card has no kernels");
    return described->describe(described, desc, out, err);
}

static const sn_device *tape_device(const sn_gpu *g) {
    static sn_device device;
    described = plain()->device(g);
    device = *described;
    device.describe = describe;
    return &device;
}

extern "C" SNUG_API const sn_gpu_api *sn_gpu_plugin(int abi) {
    static sn_gpu_api api;
    if (!sn_gpu_plugin_plain(abi))
        return NULL;
    api = *plain();
    api.device = tape_device;
    api.run = tape_run;
    api.copy = tape_copy;
    api.fill = tape_fill;
    api.make = tape_make;
    api.capture = tape_capture;
    api.guard = tape_guard;
    api.captured = tape_captured;
    api.replay = tape_replay;
    api.drop = tape_drop;
    return &api;
}
