/* order.c: which node runs when. One scheduler; the kinds of order differ only in how they rank
 * what is ready.
 *
 * Edges (a node runs after those that have an edge to it):
 *   data       the maker of a value before its readers
 *   version    readers of a version of a variable before the STATE node that overwrites it; where
 *              the version is kept, a reader written after the update reads the copy instead
 *   may-fail   MAYFAIL nodes in program order, before the STATE nodes written after them and those
 *              that none of them needs: a step that refuses its values has changed nothing, or only
 *              what take_back.c says, and every order refuses alike
 *
 * Ready nodes stand in a heap; a score only grows while a node waits, so a node is pushed again
 * when it grows and its old entries are skipped. */
#include "plan/passes.h"

#include <string.h>

/* Above any number of bytes. */
#define SCORE_FIRST (INT64_MAX / 2)

typedef struct {
    uint32_t from, to;
} edge;

typedef struct {
    int64_t score; /* larger first, then as the program goes */
    uint32_t node;
} entry;

typedef struct {
    sn_planner *p;
    sn_zone *z;
    sn_order_kind kind;
    const size_t *bytes; /* per value, to rank by */
    edge *edges;
    uint32_t n_edges;
    uint32_t *start, *next; /* nodes after node i: next[start[i] .. start[i + 1]) */
    uint32_t *blockers;     /* per node: edges to it from nodes that have not run */
    uint32_t *uses;         /* per root: nodes yet to run that read its bytes */
    uint32_t *users;        /* per root: those nodes' numbers, xored; with one left, that one */
    uint32_t *alias;        /* per value: the next one with the same root, or UINT32_MAX */
    bool *live;             /* per root, going backwards: a node already placed reads it */
    int64_t *score;         /* per node */
    bool *done;
    entry *heap;
    size_t n_heap, cap_heap;
} scheduler;

static void add_edge(scheduler *s, uint32_t from, uint32_t to) {
    s->edges[s->n_edges++] = s->kind == SN_ORDER_BACKWARD ? (edge){to, from} : (edge){from, to};
}

static void add_value_edges(scheduler *s, uint32_t v) {
    const sn_planner *p = s->p;
    const uint32_t maker = sn_graph_value_at(p->graph, (sn_value){v})->node.i;
    const uint32_t updater = p->updater[v];
    for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++) {
        const uint32_t r = p->readers[k];
        if (maker < p->n_nodes)
            add_edge(s, maker, r);
        if (updater != UINT32_MAX && r != updater && !(p->kept[v] && r > updater))
            add_edge(s, r, updater);
    }
}

static sn_effect effect_of(const sn_planner *p, uint32_t node) {
    return sn_ops[sn_graph_node_at(p->graph, (sn_node){node})->op].effect;
}

static void add_effect_edges(scheduler *s) {
    const sn_planner *p = s->p;
    uint32_t last = UINT32_MAX, end = p->n_nodes;
    while (end > 0 && effect_of(p, end - 1) != SN_MAYFAIL)
        end--;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const sn_effect effect = effect_of(p, i);
        if (effect == SN_STATE && !p->leads[i] && end > 0)
            add_edge(s, end - 1, i);
        else if ((effect == SN_STATE || effect == SN_MAYFAIL) && last != UINT32_MAX)
            add_edge(s, last, i);
        if (effect == SN_MAYFAIL)
            last = i;
    }
}

static snug_status build_edges(scheduler *s, snug_error *err) {
    sn_planner *p = s->p;
    const size_t most = 2 * (size_t)p->reader_start[p->n_values] + p->n_nodes;
    SNUG_TRY(sn_plan_array(s->z, most, sizeof *s->edges, &s->edges, err));
    SNUG_TRY(sn_plan_array(s->z, most, sizeof *s->next, &s->next, err));
    SNUG_TRY(sn_plan_array(s->z, (size_t)p->n_nodes + 2, sizeof *s->start, &s->start, err));
    SNUG_TRY(sn_plan_array(s->z, p->n_nodes, sizeof *s->blockers, &s->blockers, err));
    s->n_edges = 0;
    for (uint32_t v = 0; v < p->n_values; v++)
        add_value_edges(s, v);
    add_effect_edges(s);
    for (uint32_t k = 0; k < s->n_edges; k++)
        s->start[s->edges[k].from + 2]++;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        s->start[i + 2] += s->start[i + 1];
    for (uint32_t k = 0; k < s->n_edges; k++) {
        s->next[s->start[s->edges[k].from + 1]++] = s->edges[k].to;
        s->blockers[s->edges[k].to]++;
    }
    return SNUG_OK;
}

static bool before(const scheduler *s, const entry *a, const entry *b) {
    if (a->score != b->score)
        return a->score > b->score;
    return s->kind == SN_ORDER_BACKWARD ? a->node > b->node : a->node < b->node;
}

static snug_status push(scheduler *s, uint32_t node, snug_error *err) {
    void *heap = s->heap;
    SNUG_TRY(sn_grow(s->p->engine, SN_MEM_PLAN, &heap, sizeof *s->heap, &s->cap_heap, s->n_heap + 1,
                     err));
    s->heap = heap;
    const entry e = {s->score[node], node};
    size_t i = s->n_heap++;
    for (; i > 0 && before(s, &e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
    return SNUG_OK;
}

static uint32_t pop(scheduler *s) {
    const uint32_t node = s->heap[0].node;
    const entry e = s->heap[--s->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap && before(s, &s->heap[child + 1], &s->heap[child]))
            child++;
        if (!before(s, &s->heap[child], &e))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = e;
    return node;
}

static bool is_state(const sn_planner *p, uint32_t node) {
    return effect_of(p, node) == SN_STATE;
}

/* Bytes that die with the last reader of this root. */
static size_t dying_bytes(const scheduler *s, uint32_t root) {
    return s->p->is_output[root] || sn_plan_elsewhere(s->p, root) ? 0 : s->bytes[root];
}

/* Calls visit for each distinct root the node reads. */
static snug_status each_root(scheduler *s, uint32_t node,
                             snug_status (*visit)(scheduler *, uint32_t, uint32_t, snug_error *),
                             snug_error *err) {
    const sn_node_info *n = sn_graph_node_at(s->p->graph, (sn_node){node});
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t root = s->p->root[n->in[k].i];
        bool seen = false;
        for (int j = 0; j < k; j++)
            seen = seen || s->p->root[n->in[j].i] == root;
        if (!seen)
            SNUG_TRY(visit(s, node, root, err));
    }
    return SNUG_OK;
}

static snug_status count_use(scheduler *s, uint32_t node, uint32_t root, snug_error *err) {
    (void)err;
    s->uses[root]++;
    s->users[root] ^= node;
    if (s->kind == SN_ORDER_BACKWARD)
        s->score[node] -= (int64_t)dying_bytes(s, root);
    return SNUG_OK;
}

static snug_status raise_score(scheduler *s, uint32_t node, size_t bytes, snug_error *err) {
    s->score[node] += (int64_t)bytes;
    return s->blockers[node] == 0 && !s->done[node] ? push(s, node, err) : SNUG_OK;
}

/* Forwards: the last reader of a root frees its bytes. */
static snug_status end_use(scheduler *s, uint32_t node, uint32_t root, snug_error *err) {
    s->uses[root]--;
    s->users[root] ^= node;
    if (s->uses[root] != 1 || s->kind != SN_ORDER_GREEDY)
        return SNUG_OK;
    return raise_score(s, s->users[root], dying_bytes(s, root), err);
}

/* Backwards: once one reader of a root is placed, the others need no more bytes. */
static snug_status begin_use(scheduler *s, uint32_t node, uint32_t root, snug_error *err) {
    const sn_planner *p = s->p;
    (void)node;
    if (s->live[root])
        return SNUG_OK;
    s->live[root] = true;
    for (uint32_t v = root; v != UINT32_MAX; v = s->alias[v])
        for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++)
            SNUG_TRY(raise_score(s, p->readers[k], dying_bytes(s, root), err));
    return SNUG_OK;
}

static void score_node(scheduler *s, uint32_t i) {
    const sn_planner *p = s->p;
    const sn_node_info *n = sn_graph_node_at(p->graph, (sn_node){i});
    const bool by_bytes = s->kind == SN_ORDER_GREEDY || s->kind == SN_ORDER_BACKWARD;
    s->score[i] = 0;
    if ((s->kind == SN_ORDER_EAGER || s->kind == SN_ORDER_GREEDY) && is_state(p, i))
        s->score[i] = SCORE_FIRST;
    for (int k = 0; by_bytes && k < n->n_out; k++) {
        const int64_t bytes = (int64_t)s->bytes[n->out[k].i];
        if (p->root[n->out[k].i] == n->out[k].i && !sn_plan_elsewhere(p, n->out[k].i))
            s->score[i] += s->kind == SN_ORDER_GREEDY ? -bytes : bytes;
    }
}

static snug_status chain_aliases(scheduler *s, snug_error *err) {
    const sn_planner *p = s->p;
    SNUG_TRY(sn_plan_array(s->z, p->n_values, sizeof *s->alias, &s->alias, err));
    SNUG_TRY(sn_plan_array(s->z, p->n_values, sizeof *s->live, &s->live, err));
    memset(s->alias, 0xff, p->n_values * sizeof *s->alias);
    for (uint32_t v = 0; v < p->n_values; v++) {
        const uint32_t root = p->root[v];
        s->live[v] = p->is_output[v];
        if (root == v)
            continue;
        s->alias[v] = s->alias[root];
        s->alias[root] = v;
    }
    return SNUG_OK;
}

static snug_status prepare(scheduler *s, snug_error *err) {
    sn_planner *p = s->p;
    SNUG_TRY(build_edges(s, err));
    SNUG_TRY(sn_plan_array(s->z, p->n_values, sizeof *s->uses, &s->uses, err));
    SNUG_TRY(sn_plan_array(s->z, p->n_values, sizeof *s->users, &s->users, err));
    SNUG_TRY(sn_plan_array(s->z, p->n_nodes, sizeof *s->score, &s->score, err));
    SNUG_TRY(sn_plan_array(s->z, p->n_nodes, sizeof *s->done, &s->done, err));
    SNUG_TRY(chain_aliases(s, err));
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        score_node(s, i);
        if (p->needed[i])
            SNUG_TRY(each_root(s, i, count_use, err));
    }
    for (uint32_t v = 0; s->kind == SN_ORDER_GREEDY && v < p->n_values; v++)
        if (s->uses[v] == 1)
            s->score[s->users[v]] += (int64_t)dying_bytes(s, v);
    s->n_heap = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        if (p->needed[i] && s->blockers[i] == 0)
            SNUG_TRY(push(s, i, err));
    return SNUG_OK;
}

static snug_status schedule(scheduler *s, sn_order *out, snug_error *err) {
    SNUG_TRY(prepare(s, err));
    out->n = 0;
    while (s->n_heap > 0) {
        const uint32_t i = pop(s);
        if (s->done[i])
            continue;
        s->done[i] = true;
        out->node[out->n++] = i;
        SNUG_TRY(each_root(s, i, s->kind == SN_ORDER_BACKWARD ? begin_use : end_use, err));
        for (uint32_t k = s->start[i]; k < s->start[i + 1]; k++)
            if (--s->blockers[s->next[k]] == 0)
                SNUG_TRY(push(s, s->next[k], err));
    }
    for (uint32_t i = 0; s->kind == SN_ORDER_BACKWARD && i < out->n / 2; i++) {
        const uint32_t node = out->node[i];
        out->node[i] = out->node[out->n - 1 - i];
        out->node[out->n - 1 - i] = node;
    }
    return SNUG_OK;
}

/* The program reads old versions after their update in a way that no order allows: copy those
 * versions away. */
static void keep_versions_read_late(sn_planner *p) {
    for (uint32_t v = 0; v < p->n_values; v++)
        for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++)
            if (p->updater[v] != UINT32_MAX && p->readers[k] > p->updater[v])
                p->kept[v] = true;
}

snug_status sn_plan_order(sn_planner *p, sn_zone *z, sn_order_kind kind, const size_t *bytes,
                          sn_order *out, snug_error *err) {
    uint32_t n_needed = 0;
    scheduler s = {.p = p, .z = z, .kind = kind, .bytes = bytes};
    for (uint32_t i = 0; i < p->n_nodes; i++)
        n_needed += p->needed[i];
    SNUG_TRY(sn_plan_array(z, n_needed, sizeof *out->node, &out->node, err));
    snug_status st = schedule(&s, out, err);
    if (st == SNUG_OK && out->n < n_needed) {
        keep_versions_read_late(p);
        st = schedule(&s, out, err);
    }
    if (st == SNUG_OK && out->n < n_needed)
        st = sn_fail(err, SNUG_E_INTERNAL, "plan: %u of %u nodes wait for each other",
                     n_needed - out->n, n_needed);
    sn_free(p->engine, SN_MEM_PLAN, s.heap, s.cap_heap * sizeof *s.heap);
    return st;
}
