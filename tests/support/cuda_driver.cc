/* cuda_driver.cc: driver.h without a GPU, for the emulated plug-in. Device memory is host memory
 * that this file counts; streams do everything at once. Captures, and queues that run late, are of
 * the table around it (cuda_table.cc).
 *
 * Tests find sn_emulated_world (cuda_libraries.cc) by its name: how large the card is, what others
 * hold of it, and which call of the driver is the first to fail, for good or once. */
#include "cuda_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sn_emulated_card &card = *sn_emulated_world();

/* The most that this process had of the card; it ends in the file SNUG_EMULATED_REPORT, for who
 * looks from outside. */
static struct most_report {
    size_t bytes = 0;
    ~most_report() {
        const char *path = getenv("SNUG_EMULATED_REPORT");
        FILE *f = path ? fopen(path, "w") : NULL;
        if (f) {
            fprintf(f, "%zu\n", bytes);
            fclose(f);
        }
    }
} most;

static size_t bytes_of_ours(void) {
    return card.context_bytes + card.held_bytes + card.graph_bytes;
}

void sn_emulated_rose(void) {
    const size_t ours = bytes_of_ours();
    most.bytes = ours > most.bytes ? ours : most.bytes;
}

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
    sn_emulated_rose();
    return SNUG_OK;
}

void sn_driver_detach(sn_driver *d, bool reset) {
    card.n_resets += reset;
    card.n_contexts--;
    memset(d, 0, sizeof *d);
}

snug_status sn_driver_enter(const sn_driver *d, snug_error *err) {
    sn_emulated_entered = true;
    return d->context ? SNUG_OK : sn_fail(err, SNUG_E_DEVICE, "no context");
}

snug_status sn_driver_look(const sn_driver *d, sn_driver_memory *out, snug_error *err) {
    (void)d;
    const size_t ours = bytes_of_ours();
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
    sn_emulated_rose();
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

uint32_t *sn_emulated_guard;

snug_status sn_driver_guard(cudaStream_t s, uint32_t *words, void **whole, snug_error *err) {
    (void)s;
    *whole = NULL;
    sn_emulated_guard = words;
    card.graph_bytes += card.guard_bytes;
    card.guard_bytes = 0;
    sn_emulated_rose();
    return answer("a guard", err);
}

snug_status sn_driver_make_graph(cudaStream_t s, const sn_driver_kept *kept, sn_driver_graph *out,
                                 snug_error *err) {
    (void)s;
    (void)kept;
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
