/* program.c: lists of actions. The plain program runs every node once, in an order. The sliced one
 * runs blocks, and what is not sliced between them:
 *
 *     between 0 | block 0 | between 1 | block 1 | ...
 *
 * A block runs its sums, its checks and the values that are wanted whole, and whatever these are
 * made of: a value that an earlier block made only slice by slice is made again.
 *
 * Inputs are fed right before their first use, in slices where only blocks read them, in each block
 * anew. Old versions of variables that are read after their update are copied right before it. */
#include "plan/passes.h"

#include <string.h>

typedef struct {
    sn_planner *p;
    const sn_order *order;
    const sn_split *split;
    const bool *keep;
    sn_program *out;
    bool *whole;      /* per root with a label: lies whole in the arena behind its block */
    bool *wanted;     /* per node: runs in the block under way */
    bool *fed;        /* per input of the graph: whole */
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
    if (info->kind != SN_VALUE_INPUT || w->fed[info->index])
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

/* Feeds and copies beside the runs. */
static size_t most_extra(const sn_planner *p) {
    return (size_t)sn_graph_n_inputs(p->graph) + sn_graph_n_vars(p->graph);
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
/* What lies whole behind its block: what is kept, what runs whole read it, outputs, and what is
 * never made twice. */
static void find_whole(writer *w) {
    const sn_planner *p = w->p;
    for (uint32_t v = 0; v < p->n_values; v++) {
        const uint32_t root = p->root[v];
        if (!has_label(w, root))
            continue;
        const uint32_t maker = maker_of(p, root);
        const bool once = maker < p->n_nodes && sn_ops[node_at(w, maker)->op].effect == SN_MAYFAIL;
        w->whole[root] = w->whole[root] || w->keep[root] || p->is_output[root] || once;
        for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++)
            w->whole[root] = w->whole[root] || !w->split->sliced[p->readers[k]];
    }
}

/* A node of this block that somebody behind it waits for. */
static bool is_target(const writer *w, uint32_t node) {
    const sn_node_info *n = node_at(w, node);
    if (sn_ops[n->op].effect == SN_MAYFAIL)
        return true;
    for (int k = 0; k < n->n_out; k++) {
        const uint32_t v = n->out[k].i;
        if (!has_label(w, v) || (w->p->root[v] == v && w->whole[v]))
            return true;
    }
    return false;
}

/* The nodes that make value v, in this block, unless it lies whole behind an earlier one. */
static void want_value(writer *w, uint32_t v, uint32_t block) {
    const sn_planner *p = w->p;
    const uint32_t root = p->root[v], root_maker = maker_of(p, root);
    const bool before = root_maker < p->n_nodes && w->split->time[root_maker] / 2 < block;
    if (!has_label(w, v) || (before && w->whole[root]))
        return;
    for (uint32_t at = v;;) {
        const uint32_t maker = maker_of(p, at);
        if (maker < p->n_nodes)
            w->wanted[maker] = true;
        if (at == root)
            return;
        at = node_at(w, maker)->in[0].i;
    }
}

/* Marks the nodes of a block; returns how many. */
static uint32_t want_block(writer *w, uint32_t block) {
    uint32_t n_wanted = 0;
    memset(w->wanted, 0, w->p->n_nodes * sizeof *w->wanted);
    for (uint32_t i = w->order->n; i-- > 0;) {
        const uint32_t node = w->order->node[i];
        if (!w->split->sliced[node] || w->split->time[node] / 2 > block)
            continue;
        if (w->split->time[node] / 2 == block && is_target(w, node))
            w->wanted[node] = true;
        if (!w->wanted[node])
            continue;
        const sn_node_info *n = node_at(w, node);
        for (int k = 0; k < n->n_in; k++)
            want_value(w, n->in[k].i, block);
        w->last[node] = block;
        n_wanted++;
    }
    return n_wanted;
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

static bool is_fed_whole(const writer *w, uint32_t v) {
    return !has_label(w, w->p->root[v]) || w->whole[w->p->root[v]];
}

/* Inputs that the block needs whole, before it. */
static void feed_block(writer *w) {
    for (uint32_t i = 0; i < w->order->n; i++) {
        const uint32_t node = w->order->node[i];
        const sn_node_info *n = node_at(w, node);
        for (int k = 0; w->wanted[node] && k < n->n_in; k++)
            if (is_fed_whole(w, n->in[k].i))
                feed_whole(w, n->in[k].i);
    }
}

static void feed_slices(writer *w, uint32_t v, uint32_t block) {
    const sn_value_info *info = sn_graph_value_at(w->p->graph, (sn_value){w->p->root[v]});
    if (info->kind != SN_VALUE_INPUT || is_fed_whole(w, v) || w->fed_in[info->index] == block)
        return;
    w->fed_in[info->index] = block;
    add(w->out, SN_STEP_FEED, info->index);
}

static void write_block(writer *w, uint32_t block) {
    if (want_block(w, block) == 0)
        return;
    feed_block(w);
    add(w->out, SN_STEP_REPEAT, 0);
    for (uint32_t i = 0; i < w->order->n; i++) {
        const uint32_t node = w->order->node[i];
        const sn_node_info *n = node_at(w, node);
        if (!w->wanted[node])
            continue;
        for (int k = 0; k < n->n_in; k++)
            feed_slices(w, n->in[k].i, block);
        add(w->out, SN_STEP_RUN, node);
    }
    add(w->out, SN_STEP_END, 0);
}

static void write_between(writer *w, uint32_t time) {
    for (uint32_t i = 0; i < w->order->n; i++)
        if (w->time[w->order->node[i]] == time)
            run_whole(w, w->order->node[i]);
}

static snug_status make_sliced(writer *w, sn_zone *z, snug_error *err) {
    const sn_planner *p = w->p;
    const size_t n_inputs = sn_graph_n_inputs(p->graph);
    SNUG_TRY(sn_plan_array(z, p->n_values, sizeof *w->whole, &w->whole, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->wanted, &w->wanted, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->last, &w->last, err));
    SNUG_TRY(sn_plan_array(z, p->n_nodes, sizeof *w->time, &w->time, err));
    SNUG_TRY(sn_plan_array(z, n_inputs, sizeof *w->fed_in, &w->fed_in, err));
    memset(w->fed_in, 0xff, n_inputs * sizeof *w->fed_in);
    find_whole(w);
    size_t n_runs = 0;
    for (uint32_t b = 0; b < w->split->n_blocks; b++)
        n_runs += want_block(w, b) + n_inputs + 2;
    return make_writer(w, z, n_runs + w->order->n + most_extra(p), err);
}

snug_status sn_program_sliced(sn_planner *p, sn_zone *z, const sn_order *order, const bool *keep,
                              sn_program *out, snug_error *err) {
    writer w = {.p = p, .order = order, .split = out->split, .keep = keep, .out = out};
    uint32_t end = 0;
    SNUG_TRY(make_sliced(&w, z, err));
    put_off_updates(&w);
    for (uint32_t i = 0; i < order->n; i++)
        end = w.time[order->node[i]] / 2 > end ? w.time[order->node[i]] / 2 : end;
    for (uint32_t b = 0; b <= end; b++) {
        write_between(&w, 2 * b);
        if (b < w.split->n_blocks)
            write_block(&w, b);
    }
    feed_outputs(&w);
    return SNUG_OK;
}

/* --- prices ----------------------------------------------------------------------------------- */
struct sn_pricer {
    writer w;
    sn_program none;
};

snug_status sn_pricer_create(sn_planner *p, const sn_order *order, const sn_split *split,
                             sn_pricer **out, snug_error *err) {
    sn_pricer *c;
    SNUG_TRY(sn_plan_array(p->work, 1, sizeof *c, &c, err));
    c->w = (writer){.p = p, .order = order, .split = split, .out = &c->none};
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *c->w.whole, &c->w.whole, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *c->w.wanted, &c->w.wanted, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_nodes, sizeof *c->w.last, &c->w.last, err));
    *out = c;
    return SNUG_OK;
}

double sn_price(sn_pricer *c, const bool *keep) {
    writer *const w = &c->w;
    double seconds = 0;
    w->keep = keep;
    memset(w->whole, 0, w->p->n_values * sizeof *w->whole);
    find_whole(w);
    for (uint32_t b = 0; b < w->split->n_blocks; b++) {
        (void)want_block(w, b);
        for (uint32_t i = 0; i < w->p->n_nodes; i++)
            seconds += w->wanted[i] ? w->p->seconds[i] : 0;
    }
    return seconds;
}

double sn_program_seconds(const sn_planner *p, const sn_program *program) {
    bool in_block = false;
    double seconds = 0;
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
