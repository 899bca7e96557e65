/* cuda_table.cc: the emulated plug-in's table, around that of the plug-in: what is given to queues
 * is kept, for a capture until it is replayed, and on a card whose queues run late until somebody
 * waits for it.
 *
 * A lane is a queue, or one of a replayed capture. What stands in it is done in order; a wait
 * stands in one lane for a place of another. As on a card: bytes of ordinary memory are read when a
 * copy is given, and written before it returns; those of pinned memory when the copy is done. */
#include "cuda_driver.h"
#include "op/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sn_emulated_card &card = *sn_emulated_world();

extern "C" const sn_gpu_api *sn_gpu_plugin_plain(int abi);

/* Its number is a sum over long texts, and planners ask for thousands of descriptions. */
static const sn_gpu_api *plain(void) {
    static const sn_gpu_api *const api = sn_gpu_plugin_plain(sn_gpu_abi());
    return api;
}

/* --- what is kept ----------------------------------------------------------------------------- */

typedef enum { RUN, LOOK, COPY, FILL, MAKE, GUARD, WAIT, OPEN } kept_kind;
typedef struct kept {
    kept_kind kind;
    sn_gpu *gpu; /* RUN to GUARD */
    int queue;   /* WAIT: the one that waits */
    sn_call call;
    snug_view *views; /* in, then out */
    sn_gpu_copy copy;
    void *to;
    const void *from;
    void *taken; /* of ordinary memory: what was there */
    int byte;
    size_t bytes;
    int lane;      /* WAIT: for this one */
    int64_t place; /* as far as here */
    struct kept *next;
} kept;

typedef struct {
    kept *first, **end;
} kept_list;

static void add(kept_list *l, const kept &like) {
    kept *k = (kept *)malloc(sizeof *k);
    *k = like;
    k->next = NULL;
    if (!l->first)
        l->end = &l->first;
    *l->end = k;
    l->end = &k->next;
}

static void drop_first(kept_list *l) {
    kept *k = l->first;
    l->first = k->next;
    free(k->views);
    free(k->taken);
    free(k);
}

static snug_view *copy_views(const snug_view *in, int n_in, const snug_view *out, int n_out) {
    snug_view *views = (snug_view *)calloc((size_t)(n_in + n_out + 1), sizeof *views);
    if (n_in > 0)
        memcpy(views, in, (size_t)n_in * sizeof *in);
    if (n_out > 0)
        memcpy(views + n_in, out, (size_t)n_out * sizeof *out);
    return views;
}

static kept kept_run(kept_kind kind, int queue, const sn_call *c) {
    kept k = {};
    k.kind = kind;
    k.queue = queue;
    k.call = *c;
    k.views = copy_views(c->in, c->n_in, c->out, c->n_out);
    k.call.in = k.views;
    k.call.out = k.views + c->n_in;
    return k;
}

static kept kept_copy(sn_gpu_copy kind, int queue, void *to, const void *from, size_t bytes) {
    kept k = {};
    k.kind = COPY;
    k.queue = queue;
    k.copy = kind;
    k.to = to;
    k.from = from;
    k.bytes = bytes;
    return k;
}

static kept kept_make(int queue, int kind, const sn_scalar *numbers, const snug_view *to) {
    kept k = {};
    k.kind = MAKE;
    k.queue = queue;
    k.byte = kind;
    k.from = numbers;
    k.views = copy_views(to, 1, NULL, 0);
    return k;
}

static kept kept_fill(int queue, void *to, int byte, size_t bytes) {
    kept k = {};
    k.kind = FILL;
    k.queue = queue;
    k.to = to;
    k.byte = byte;
    k.bytes = bytes;
    return k;
}

/* Another with its own views. */
static kept again(const kept *k) {
    kept copy = *k;
    if (k->kind == RUN || k->kind == LOOK) {
        copy.views = copy_views(k->call.in, k->call.n_in, k->call.out, k->call.n_out);
        copy.call.in = copy.views;
        copy.call.out = copy.views + k->call.n_in;
    } else if (k->kind == MAKE) {
        copy.views = copy_views(k->views, 1, NULL, 0);
    }
    return copy;
}

/* Whether what follows a guard runs; calls that wait have run by then. */
static snug_status ask_guard(const kept *k, bool *open, snug_error *err) {
    uint32_t *words = (uint32_t *)k->to;
    SNUG_TRY(plain()->order(k->gpu, 0, 0, err));
    *open = words[SN_WORD_REFUSED] == 0 && words[SN_WORD_OBJECTED] == 0;
    words[SN_WORD_OPENED] = *open;
    return SNUG_OK;
}

/* *open: whether the guard of the replay has let the rest run. */
static snug_status play(const kept *k, bool *open, snug_error *err) {
    sn_gpu *g = k->gpu;
    if (k->kind == OPEN)
        *open = true;
    if (k->kind == OPEN || !*open)
        return SNUG_OK;
    if (k->kind == GUARD)
        return ask_guard(k, open, err);
    if (k->kind == RUN)
        return plain()->run(g, k->queue, &k->call, err);
    if (k->kind == LOOK)
        return plain()->look(g, k->queue, &k->call, err);
    if (k->kind == COPY)
        return plain()->copy(g, k->copy, k->queue, k->to, k->taken ? k->taken : k->from, k->bytes,
                             err);
    if (k->kind == MAKE)
        return plain()->make(g, k->queue, k->byte, (const sn_scalar *)k->from, k->views, err);
    return plain()->fill(g, k->queue, k->to, k->byte, k->bytes, err);
}

/* --- lanes ------------------------------------------------------------------------------------ */
enum { REPLAYED = SN_GPU_QUEUES, N_LANES = 2 * SN_GPU_QUEUES };

enum { MOST_GPUS = 4 };

/* Of a GPU: those of another know nothing of them. */
typedef struct {
    const sn_gpu *gpu; /* NULL: free for the next one that is used */
    struct {
        kept_list list;
        int64_t given, done;
    } lanes[N_LANES];
    bool is_open[2]; /* of queues: always; of the replay under way: what its guard said */
    struct {
        int lane;
        int64_t place;
    } moments[SN_GPU_MOMENTS];
} gpu_queues;

static gpu_queues all_queues[MOST_GPUS];

static gpu_queues *queues_of(const sn_gpu *g) {
    gpu_queues *free_ones = NULL;
    for (int i = 0; i < MOST_GPUS; i++) {
        if (all_queues[i].gpu == g)
            return &all_queues[i];
        free_ones = all_queues[i].gpu ? free_ones : &all_queues[i];
    }
    if (!free_ones) {
        fprintf(stderr, "more than %d emulated GPUs are open\n", MOST_GPUS);
        abort();
    }
    memset(free_ones, 0, sizeof *free_ones);
    free_ones->gpu = g;
    return free_ones;
}

static bool is_late(void) {
    return card.haste != SN_EMULATED_AT_ONCE;
}

static void give(gpu_queues *q, int to, const kept &k) {
    add(&q->lanes[to].list, k);
    q->lanes[to].given++;
}

static void give_wait(gpu_queues *q, int waits, int lane) {
    kept k = {};
    k.kind = WAIT;
    k.queue = waits % SN_GPU_QUEUES;
    k.lane = lane;
    k.place = q->lanes[lane].given;
    give(q, waits, k);
}

/* The first error counts, and keeps nothing from being done: a lost card refuses the rest
 * itself. */
static snug_status run_to(gpu_queues *q, int lane, int64_t place, snug_error *err) {
    snug_status status = SNUG_OK;
    while (q->lanes[lane].done < place) {
        kept_list *l = &q->lanes[lane].list;
        const kept *k = l->first;
        snug_error *told = status == SNUG_OK ? err : NULL;
        q->is_open[0] = true;
        const snug_status now = k->kind == WAIT ? run_to(q, k->lane, k->place, told)
                                                : play(k, &q->is_open[lane >= REPLAYED], told);
        status = status == SNUG_OK ? now : status;
        q->lanes[lane].done++;
        drop_first(l);
    }
    return status;
}

static snug_status run_all(gpu_queues *q, snug_error *err) {
    snug_status status = SNUG_OK;
    for (int i = 0; i < N_LANES; i++) {
        const int lane = card.haste == SN_EMULATED_LAST_FIRST ? N_LANES - 1 - i : i;
        const snug_status now =
            run_to(q, lane, q->lanes[lane].given, status == SNUG_OK ? err : NULL);
        status = status == SNUG_OK ? now : status;
    }
    return status;
}

/* --- pinned memory ---------------------------------------------------------------------------- */
typedef struct pages {
    const char *data;
    size_t bytes;
    struct pages *next;
} pages;

static pages *pinned;

static bool lies_in(const void *at, const pages *p) {
    return (const char *)at >= p->data && (const char *)at < p->data + p->bytes;
}

static bool is_pinned(const void *at) {
    const pages *p = pinned;
    while (p && !lies_in(at, p))
        p = p->next;
    return p != NULL;
}

static snug_status table_pin(sn_gpu *g, size_t bytes, void **out, snug_error *err) {
    SNUG_TRY(plain()->pin(g, bytes, out, err));
    pages *p = (pages *)malloc(sizeof *p);
    *p = pages{(const char *)*out, bytes > 0 ? bytes : 1, pinned};
    pinned = p;
    return SNUG_OK;
}

/* A driver does not wait for copies of them. */
static void check_unused(const pages *p) {
    for (int i = 0; i < MOST_GPUS * N_LANES; i++)
        for (const kept *k = all_queues[i / N_LANES].lanes[i % N_LANES].list.first; k; k = k->next)
            if (k->kind == COPY && (lies_in(k->to, p) || lies_in(k->from, p))) {
                fprintf(stderr, "pinned memory is given back under a copy of it\n");
                abort();
            }
}

static void table_unpin(sn_gpu *g, void *block, size_t bytes) {
    pages **link = &pinned;
    while (*link && (*link)->data != block)
        link = &(*link)->next;
    if (*link) {
        pages *p = *link;
        check_unused(p);
        *link = p->next;
        free(p);
    }
    plain()->unpin(g, block, bytes);
}

/* --- captures --------------------------------------------------------------------------------- */
typedef struct tape {
    sn_gpu *gpu;
    sn_gpu_graph *graph; /* the plug-in's; NULL while it is open */
    kept_list list;
    bool joined[SN_GPU_QUEUES]; /* waits for what is captured, so that it is captured, too */
    bool loose[SN_GPU_QUEUES];  /* has what queue 0 does not wait for */
    struct tape *next;
} tape;

enum { CALL_BYTES = 1500 }; /* of a captured call, which is two kernels or so */

static tape *tapes; /* the newest first */

static tape *open_tape(const sn_gpu *g) {
    for (tape *t = tapes; t; t = t->next)
        if (t->gpu == g && !t->graph)
            return t;
    return NULL;
}

static tape *tape_of(const sn_gpu_graph *graph) {
    tape *t = tapes;
    while (t && t->graph != graph)
        t = t->next;
    return t;
}

static size_t tape_bytes(const tape *t) {
    size_t bytes = 0;
    for (const kept *k = t->list.first; k; k = k->next)
        bytes += k->kind == COPY ? SN_DRIVER_COPY_BYTES : k->kind != WAIT ? CALL_BYTES : 0;
    return bytes;
}

static void drop_tape(tape *t) {
    tape **link = &tapes;
    card.graph_bytes -= t->graph ? tape_bytes(t) : 0;
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    while (t->list.first)
        drop_first(&t->list);
    free(t);
}

/* Else it is done now. */
static bool is_kept(const sn_gpu *g) {
    return is_late() || open_tape(g);
}

static void check_capture(bool ok, const char *what) {
    if (ok)
        return;
    fprintf(stderr, "a queue %s\n", what);
    abort();
}

static void keep(sn_gpu *g, kept k) {
    tape *t = open_tape(g);
    k.gpu = g;
    if (!t) {
        give(queues_of(g), k.queue, k);
        return;
    }
    check_capture(t->joined[k.queue], "that is not in the capture is given work");
    t->loose[k.queue] = k.queue != 0;
    add(&t->list, k);
}

static snug_status table_capture(sn_gpu *g, snug_error *err) {
    SNUG_TRY(plain()->capture(g, err));
    tape *t = (tape *)calloc(1, sizeof *t);
    t->gpu = g;
    t->joined[0] = true;
    t->next = tapes;
    tapes = t;
    return SNUG_OK;
}

/* The capture ends here, or a part of it: queues begin anew. */
static void check_joined(tape *t) {
    for (int q = 1; q < SN_GPU_QUEUES; q++) {
        check_capture(!t->loose[q], "is not waited for where a capture ends");
        t->joined[q] = false;
    }
}

static snug_status table_guard(sn_gpu *g, snug_error *err) {
    kept k = {};
    SNUG_TRY(plain()->guard(g, err));
    check_joined(open_tape(g));
    for (const kept *old = open_tape(g)->list.first; old; old = old->next)
        check_capture(old->kind != GUARD, "is guarded twice in a capture");
    k.kind = GUARD;
    k.to = sn_emulated_guard;
    keep(g, k);
    return SNUG_OK;
}

static snug_status table_captured(sn_gpu *g, size_t room_bytes, sn_gpu_graph **out,
                                  snug_error *err) {
    tape *t = open_tape(g);
    snug_status status = plain()->captured(g, room_bytes, out, err);
    if (status == SNUG_OK && tape_bytes(t) > room_bytes) {
        plain()->drop(g, *out);
        *out = NULL;
        status = sn_fail(err, SNUG_E_BUDGET, "a graph of %zu bytes; %zu are left", tape_bytes(t),
                         room_bytes);
    }
    if (status == SNUG_OK)
        check_joined(t);
    if (status != SNUG_OK) {
        drop_tape(t);
        return status;
    }
    t->graph = *out;
    card.graph_bytes += tape_bytes(t);
    sn_emulated_rose();
    return SNUG_OK;
}

/* In lanes of its own, behind what queue 0 has, which goes on behind it. */
static void give_tape(const tape *t) {
    gpu_queues *q = queues_of(t->gpu);
    kept start = {};
    start.kind = OPEN;
    give_wait(q, REPLAYED, 0);
    give(q, REPLAYED, start);
    for (const kept *k = t->list.first; k; k = k->next)
        if (k->kind == WAIT)
            give_wait(q, REPLAYED + k->queue, REPLAYED + k->lane);
        else
            give(q, REPLAYED + k->queue, again(k));
    give_wait(q, 0, REPLAYED);
}

static snug_status table_replay(sn_gpu *g, sn_gpu_graph *graph, snug_error *err) {
    bool open = true;
    SNUG_TRY(plain()->replay(g, graph, err));
    card.n_replays++;
    if (is_late()) {
        give_tape(tape_of(graph));
        return SNUG_OK;
    }
    for (const kept *k = tape_of(graph)->list.first; k; k = k->next)
        if (k->kind != WAIT)
            SNUG_TRY(play(k, &open, err));
    return SNUG_OK;
}

static void table_drop(sn_gpu *g, sn_gpu_graph *graph) {
    if (graph && tape_of(graph))
        drop_tape(tape_of(graph));
    plain()->drop(g, graph);
}

/* --- queues ----------------------------------------------------------------------------------- */

static snug_status table_run(sn_gpu *g, int queue, const sn_call *c, snug_error *err) {
    if (!is_kept(g))
        return plain()->run(g, queue, c, err);
    keep(g, kept_run(RUN, queue, c));
    return SNUG_OK;
}

static snug_status table_look(sn_gpu *g, int queue, const sn_call *c, snug_error *err) {
    if (!is_kept(g))
        return plain()->look(g, queue, c, err);
    keep(g, kept_run(LOOK, queue, c));
    return SNUG_OK;
}

static snug_status table_copy(sn_gpu *g, sn_gpu_copy kind, int queue, void *to, const void *from,
                              size_t bytes, snug_error *err) {
    const bool captures = open_tape(g) != NULL;
    card.n_beside += !captures && kind == SN_GPU_TO && queue == 1;
    if (!is_kept(g))
        return plain()->copy(g, kind, queue, to, from, bytes, err);
    kept k = kept_copy(kind, queue, to, from, bytes);
    if (!captures && kind == SN_GPU_TO && bytes > 0 && !is_pinned(from)) {
        k.taken = malloc(bytes);
        memcpy(k.taken, from, bytes);
    }
    keep(g, k);
    const bool waits = !captures && kind == SN_GPU_FROM && !is_pinned(to);
    gpu_queues *q = queues_of(g);
    return waits ? run_to(q, queue, q->lanes[queue].given, err) : SNUG_OK;
}

static snug_status table_fill(sn_gpu *g, int queue, void *to, int byte, size_t bytes,
                              snug_error *err) {
    if (!is_kept(g))
        return plain()->fill(g, queue, to, byte, bytes, err);
    keep(g, kept_fill(queue, to, byte, bytes));
    return SNUG_OK;
}

static snug_status table_make(sn_gpu *g, int queue, int kind, const sn_scalar *numbers,
                              const snug_view *to, snug_error *err) {
    card.n_made++;
    if (!is_kept(g))
        return plain()->make(g, queue, kind, numbers, to, err);
    keep(g, kept_make(queue, kind, numbers, to));
    return SNUG_OK;
}

static snug_status table_order(sn_gpu *g, int earlier, int later, snug_error *err) {
    tape *t = open_tape(g);
    kept k = {};
    SNUG_TRY(plain()->order(g, earlier, later, err));
    k.kind = WAIT;
    k.queue = later;
    k.lane = earlier;
    if (t) {
        add(&t->list, k);
        t->joined[later] = t->joined[later] || t->joined[earlier];
        t->loose[earlier] = t->loose[earlier] && later != 0;
    } else if (is_late()) {
        give_wait(queues_of(g), later, earlier);
    }
    return SNUG_OK;
}

static snug_status table_mark(sn_gpu *g, int queue, int moment, snug_error *err) {
    gpu_queues *q = queues_of(g);
    q->moments[moment].lane = queue;
    q->moments[moment].place = q->lanes[queue].given;
    return plain()->mark(g, queue, moment, err);
}

static snug_status table_await(sn_gpu *g, int moment, snug_error *err) {
    gpu_queues *q = queues_of(g);
    SNUG_TRY(run_to(q, q->moments[moment].lane, q->moments[moment].place, err));
    return plain()->await(g, moment, err);
}

static snug_status table_finish(sn_gpu *g, snug_error *err) {
    SNUG_TRY(run_all(queues_of(g), err));
    return plain()->finish(g, err);
}

/* The driver waits for all work before it takes memory back. */
static void table_free(sn_gpu *g, void *block) {
    (void)run_all(queues_of(g), NULL);
    plain()->free(g, block);
}

static void table_close(sn_gpu *g, bool reset) {
    gpu_queues *q = queues_of(g);
    (void)run_all(q, NULL);
    q->gpu = NULL;
    plain()->close(g, reset);
}

/* --- the device ------------------------------------------------------------------------------- */

/* As the plug-in describes it, or one without kernels. */
static snug_status describe(const sn_device *d, const sn_opdesc *desc, sn_variant *out,
                            snug_error *err) {
    const sn_device *described = plain()->device((const sn_gpu *)d->ctx);
    if (card.has_no_kernels)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "the emulated card has no kernels");
    return described->describe(described, desc, out, err);
}

static const sn_device *table_device(const sn_gpu *g) {
    static sn_device device;
    device = *plain()->device(g);
    device.describe = describe;
    return &device;
}

extern "C" SNUG_API const sn_gpu_api *sn_gpu_plugin(int abi) {
    static sn_gpu_api api;
    if (!sn_gpu_plugin_plain(abi))
        return NULL;
    api = *plain();
    api.close = table_close;
    api.device = table_device;
    api.free = table_free;
    api.pin = table_pin;
    api.unpin = table_unpin;
    api.run = table_run;
    api.look = table_look;
    api.copy = table_copy;
    api.fill = table_fill;
    api.make = table_make;
    api.order = table_order;
    api.mark = table_mark;
    api.await = table_await;
    api.finish = table_finish;
    api.capture = table_capture;
    api.guard = table_guard;
    api.captured = table_captured;
    api.replay = table_replay;
    api.drop = table_drop;
    return &api;
}
