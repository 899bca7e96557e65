/* actions.c: lists of actions. The plain program runs every node once, in an order. The sliced one
 * runs blocks, and what is not sliced between them:
 *
 *     between 0 | block 0 | between 1 | block 1 | ...
 *
 * What a block runs is decided before (hold.c). Who reads a value finds the newest making of it.
 *
 * Inputs are fed right before their first use, in slices where only blocks read them, in each block
 * anew. Old versions of variables that are read after their update are copied right before it. */
#include "plan/passes.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

typedef struct {
    sn_planner *p;
    const sn_order *order;
    const sn_split *split;
    const sn_block_runs *runs;
    sn_program *out;
    uint32_t *place;  /* per node: where it stands in the order */
    uint32_t *places; /* of the nodes of the block under way, ascending */
    uint32_t n_places;
    uint32_t *in_block;       /* per node: 1 + the block under way that has yet to run it */
    uint32_t *nodes, n_nodes; /* of the block under way, as they run */
    uint32_t *stack;
    bool *fed;        /* per input of the graph: whole */
    bool *read_whole; /* per root: read outside of blocks */
    uint32_t *fed_in; /* per input of the graph: the block that has its slices */
    uint32_t *last;   /* per sliced node: the last block that runs it */
    uint32_t *time;   /* per node: as of the split, updates put off behind the last reader */
} writer;

static void add(sn_program *out, sn_step_kind kind, uint32_t id) {
    out->actions[out->n++] = (sn_action){.kind = kind, .id = id};
}

static const sn_node_info *node_at(const writer *w, uint32_t i) {
    return sn_graph_node_at(w->p->graph, (sn_node){i});
}

static uint32_t maker_of(const sn_planner *p, uint32_t v) {
    return sn_graph_value_at(p->graph, (sn_value){v})->node.i;
}

static bool has_label(const writer *w, uint32_t v) {
    return w->split && w->split->label[v].axis >= 0;
}

/* --- between blocks --------------------------------------------------------------------------- */
/* Values are fed under any of their names. */
static void feed_whole(writer *w, uint32_t v) {
    const sn_value_info *info = sn_graph_value_at(w->p->graph, (sn_value){w->p->root[v]});
    if (info->kind != SN_VALUE_INPUT || w->fed[info->index] || w->p->outside[w->p->root[v]])
        return;
    w->fed[info->index] = true;
    add(w->out, SN_STEP_FEED, info->index);
}

/* A node outside blocks, and before it its inputs and the versions it overwrites too early. */
static void run_whole(writer *w, uint32_t node) {
    const sn_planner *p = w->p;
    const sn_node_info *n = node_at(w, node);
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t v = n->in[k].i;
        feed_whole(w, v);
        if (p->kept[v] && p->updater[v] == node && k < n->n_out)
            add(w->out, SN_STEP_COPY, v);
    }
    add(w->out, SN_STEP_RUN, node);
}

static void feed_outputs(writer *w) {
    for (uint32_t i = 0; i < sn_graph_n_outputs(w->p->graph); i++)
        feed_whole(w, sn_graph_output_at(w->p->graph, i).i);
}

static snug_status make_writer(writer *w, sn_zone *z, size_t n_actions, snug_error *err) {
    const size_t n_inputs = sn_graph_n_inputs(w->p->graph);
    SNUG_TRY(sn_plan_array(z, n_actions, sizeof *w->out->actions, &w->out->actions, err));
    SNUG_TRY(sn_plan_array(z, n_inputs, sizeof *w->fed, &w->fed, err));
    w->out->n = 0;
    w->out->possible = true;
    return SNUG_OK;
}

/* Feeds and copies beside the runs: of a variable, each version that is overwritten. */
static size_t most_extra(const sn_planner *p) {
    size_t n = sn_graph_n_inputs(p->graph);
    for (uint32_t v = 0; v < p->n_values; v++)
        n += p->updater[v] != NONE;
    return n;
}

snug_status sn_program_plain(sn_planner *p, sn_zone *z, const sn_order *order, sn_program *out,
                             snug_error *err) {
    writer w = {.p = p, .order = order, .out = out};
    *out = (sn_program){.n = 0};
    SNUG_TRY(make_writer(&w, z, order->n + most_extra(p), err));
    for (uint32_t i = 0; i < order->n; i++)
        run_whole(&w, order->node[i]);
    feed_outputs(&w);
    return SNUG_OK;
}

/* --- blocks ----------------------------------------------------------------------------------- */
static int by_place(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The first thing the node is made of that the block makes and has not yet; NONE: nothing. */
static uint32_t missing_for(const writer *w, uint32_t node, uint32_t block) {
    const sn_node_info *n = node_at(w, node);
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t maker = maker_of(w->p, n->in[k].i);
        if (maker < w->p->n_nodes && w->in_block[maker] == block + 1)
            return maker;
    }
    return NONE;
}

/* The node, and before it what it is made of. */
static void run_in_time(writer *w, uint32_t node, uint32_t block) {
    uint32_t n = 0;
    if (w->in_block[node] == block + 1)
        w->stack[n++] = node;
    while (n > 0) {
        const uint32_t next = missing_for(w, w->stack[n - 1], block);
        if (next != NONE) {
            w->stack[n++] = next;
            continue;
        }
        w->nodes[w->n_nodes++] = w->stack[--n];
        w->in_block[w->stack[n]] = 0;
    }
}

/* The nodes of a block: those that run for the first time in their order, what is made again right
 * before it is needed. So it lives shorter, and may take the bytes of what was read before. */
static void list_block(writer *w, uint32_t block) {
    const uint32_t first = w->runs->start[block];
    w->n_places = w->runs->start[block + 1] - first;
    w->n_nodes = 0;
    for (uint32_t i = 0; i < w->n_places; i++) {
        const uint32_t node = w->runs->node[first + i];
        w->places[i] = w->place[node];
        w->in_block[node] = block + 1;
    }
    qsort(w->places, w->n_places, sizeof *w->places, by_place);
    for (int again = 0; again < 2; again++)
        for (uint32_t i = 0; i < w->n_places; i++) {
            const uint32_t node = w->order->node[w->places[i]];
            if (again || w->split->time[node] / 2 == block)
                run_in_time(w, node, block);
        }
}

/* Updates wait for the last block that reads what they overwrite. A block must not wait for such an
 * update in turn. */
static void put_off_updates(writer *w) {
    const sn_planner *p = w->p;
    for (uint32_t i = 0; i < w->order->n; i++) {
        const uint32_t node = w->order->node[i];
        const sn_node_info *n = node_at(w, node);
        uint32_t t = w->split->time[node] / 2;
        for (int k = 0; k < n->n_in; k++) {
            const uint32_t v = n->in[k].i, maker = maker_of(p, v);
            if (maker < p->n_nodes && !w->split->sliced[maker] && w->time[maker] / 2 > t)
                t = w->time[maker] / 2;
            for (uint32_t r = p->reader_start[v];
                 p->updater[v] == node && r < p->reader_start[v + 1]; r++) {
                const uint32_t reader = p->readers[r];
                const uint32_t gone =
                    w->split->sliced[reader] ? w->last[reader] + 1 : w->time[reader] / 2;
                if (reader != node && !(p->kept[v] && reader > node) && gone > t)
                    t = gone;
            }
        }
        if (w->split->sliced[node])
            w->out->possible = w->out->possible && t == w->split->time[node] / 2;
        w->time[node] = 2 * t + w->split->sliced[node];
    }
}

/* Something outside of blocks wants all rows of it, or it has none. */
static bool is_fed_whole(const writer *w, uint32_t v) {
    const sn_planner *p = w->p;
    const uint32_t root = p->root[v];
    if (!has_label(w, root) || p->is_output[root])
        return true;
    return w->read_whole[root];
}

/* Inputs that the block needs whole, before it. */
static void feed_block(writer *w) {
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        const sn_node_info *n = node_at(w, w->nodes[i]);
        for (int k = 0; k < n->n_in; k++)
            if (is_fed_whole(w, n->in[k].i))
                feed_whole(w, n->in[k].i);
    }
}

static void feed_slices(writer *w, uint32_t v, uint32_t block) {
    const sn_value_info *info = sn_graph_value_at(w->p->graph, (sn_value){w->p->root[v]});
    if (info->kind != SN_VALUE_INPUT || is_fed_whole(w, v) || w->fed_in[info->index] == block ||
        w->p->outside[w->p->root[v]])
        return;
    w->fed_in[info->index] = block;
    add(w->out, SN_STEP_FEED, info->index);
}

static void write_block(writer *w, uint32_t block) {
    list_block(w, block);
    if (w->n_nodes == 0)
        return;
    feed_block(w);
    add(w->out, SN_STEP_REPEAT, block);
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        const uint32_t node = w->nodes[i];
        const sn_node_info *n = node_at(w, node);
        for (int k = 0; k < n->n_in; k++)
            feed_slices(w, n->in[k].i, block);
        add(w->out, SN_STEP_RUN, node);
    }
    add(w->out, SN_STEP_END, block);
}

/* Nodes that run between blocks: one chain for each place between them, in the order of nodes. */
typedef struct {
    uint32_t *first; /* per block, before it; and behind the last */
    uint32_t *next;  /* per node */
    uint32_t end;    /* the last place */
} chains;

static snug_status chain_nodes(const writer *w, sn_zone *z, chains *out, snug_error *err) {
    const sn_order *order = w->order;
    out->end = 0;
    for (uint32_t i = 0; i < order->n; i++)
        out->end = w->time[order->node[i]] / 2 > out->end ? w->time[order->node[i]] / 2 : out->end;
    SNUG_TRY(sn_plan_array(z, (size_t)out->end + 1, sizeof *out->first, &out->first, err));
    SNUG_TRY(sn_plan_array(z, w->p->n_nodes, sizeof *out->next, &out->next, err));
    memset(out->first, 0xff, ((size_t)out->end + 1) * sizeof *out->first);
    for (uint32_t i = order->n; i-- > 0;) {
        const uint32_t node = order->node[i], time = w->time[node];
        if (time % 2 != 0)
            continue;
        out->next[node] = out->first[time / 2];
        out->first[time / 2] = node;
    }
    return SNUG_OK;
}

static void find_read_whole(writer *w) {
    const sn_planner *p = w->p;
    for (uint32_t v = 0; v < p->n_values; v++)
        for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++)
            if (!w->split->sliced[p->readers[k]])
                w->read_whole[p->root[v]] = true;
}

static snug_status make_sliced(writer *w, sn_zone *z, snug_error *err) {
    const sn_planner *p = w->p;
    const size_t n_inputs = sn_graph_n_inputs(p->graph), n_blocks = w->split->n_blocks;
    SNUG_TRY(sn_plan_array(z, p->n_values, sizeof *w->read_whole, &w->read_whole, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->place, &w->place, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->places, &w->places, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->in_block, &w->in_block, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->nodes, &w->nodes, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->stack, &w->stack, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->last, &w->last, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->time, &w->time, err));
    SNUG_TRY(sn_plan_array(z, n_inputs, sizeof *w->fed_in, &w->fed_in, err));
    memset(w->fed_in, 0xff, n_inputs * sizeof *w->fed_in);
    find_read_whole(w);
    for (uint32_t i = 0; i < w->order->n; i++)
        w->place[w->order->node[i]] = i;
    for (uint32_t b = 0; b < n_blocks; b++)
        for (uint32_t i = w->runs->start[b]; i < w->runs->start[b + 1]; i++)
            w->last[w->runs->node[i]] = b;
    return make_writer(
        w, z, w->runs->start[n_blocks] + n_blocks * (n_inputs + 2) + w->order->n + most_extra(p),
        err);
}

snug_status sn_program_sliced(sn_planner *p, sn_zone *z, const sn_order *order,
                              const sn_block_runs *runs, sn_program *out, snug_error *err) {
    writer w = {.p = p, .order = order, .split = out->split, .runs = runs, .out = out};
    chains between;
    SNUG_TRY(make_sliced(&w, z, err));
    put_off_updates(&w);
    SNUG_TRY(chain_nodes(&w, z, &between, err));
    for (uint32_t b = 0; b <= between.end; b++) {
        for (uint32_t i = between.first[b]; i != UINT32_MAX; i = between.next[i])
            run_whole(&w, i);
        if (b < w.split->n_blocks)
            write_block(&w, b);
    }
    feed_outputs(&w);
    return SNUG_OK;
}

double sn_program_seconds(const sn_planner *p, const sn_program *program) {
    bool in_block = false;
    double seconds = p->device->apart ? p->device->rates.handoff : 0;
    for (uint32_t t = 0; t < program->n; t++) {
        const sn_action *a = &program->actions[t];
        in_block = a->kind == SN_STEP_REPEAT || (in_block && a->kind != SN_STEP_END);
        if (a->kind == SN_STEP_RUN)
            seconds += in_block ? program->slices->seconds[a->id] : p->seconds[a->id];
        else if (a->kind == SN_STEP_FEED)
            seconds += sn_plan_feed_seconds(p, a->id);
    }
    return seconds;
}
