/* hold.c: which values lie whole between the blocks of a sliced program, and for how long.
 *
 * A block makes values slice by slice. Who needs one in a later block finds it there whole (it is
 * *held*), or makes it again out of what is held then, together with all that lies between. Each
 * stretch from one use to the next is decided by itself: a value may be held for the next block, be
 * dropped, be made again much later, and be held from there on. With few bytes this becomes what is
 * known as checkpoints: some values of the forward pass stay, and what stands between two of them
 * is made again once, when the backward pass gets there.
 *
 * The walk goes through the blocks in order. Where what is held needs more than the block's room,
 * the values go first whose making again takes the fewest seconds for their bytes and for the
 * blocks until they are needed next; in the end also what the block itself reads.
 *
 *     available   lies whole at the begin of the block: held from an earlier block, or forced
 *     forced      read between blocks, an output, or never made twice: whole as long as needed
 *     next        the next block that needs a root: to run a node for the first time, or to make
 *                 something again that will be missing */
#include "base/rng.h"
#include "plan/passes.h"

#include <math.h>
#include <string.h>

#define NONE       UINT32_MAX
#define MOST_LOOKS 4000 /* nodes that a price is made of */
#define SPREAD     3    /* by which power of two scores are changed in a search */

typedef struct {
    uint32_t root, from, to; /* made in block `from`, read last in block `to` */
} hold;

typedef struct {
    uint32_t root, maker; /* of the value by the name it is read; maker NONE: it is fed */
} operand;

/* What may go: what lies through the block unread; what it reads, behind it; what it makes. */
typedef enum { PASSES, READ, MADE } way_of;

typedef struct {
    uint32_t root;
    way_of way;
    double score; /* when it was looked at last; only grows. INFINITY: it would give nothing */
} candidate;

struct sn_holder {
    sn_planner *p;
    const sn_split *split;
    bool *forced;                   /* per root */
    uint32_t *nodes, n_sliced;      /* that run in blocks, ascending */
    uint32_t *roots, n_roots;       /* that they make */
    operand *in;                    /* of these nodes, those with a label */
    uint32_t *in_start, *out_start; /* per node, one more */
    uint32_t *out;                  /* roots that these nodes make */
    uint32_t *use_start, *use;      /* per root: blocks where new nodes read it, ascending */
    uint32_t *own_start, *own;      /* per block: the nodes that run there first */
    /* Of the walk under way. */
    const sn_slices *slices;
    const double *room; /* per block */
    sn_zone *zone;
    uint32_t block, stamp;        /* every look at a block has a stamp of its own */
    uint32_t *at;                 /* per root: its next own use: index into use */
    uint32_t *next;               /* per root; NONE: nobody */
    uint32_t *until;              /* per root: available below this block */
    uint32_t *held_as;            /* per root: its hold, or NONE */
    uint32_t *read, *made, *ends; /* per root: stamp of the last look that read, made it, or
                                   * let it go behind the block */
    uint32_t *runs, *seen;        /* per node: stamp of the last look, of the last price */
    uint32_t n_prices;
    uint32_t *stack;
    uint32_t *list, n_list;           /* nodes of the block */
    uint32_t *residents, n_residents; /* roots that are held */
    candidate *candidates;
    uint32_t n_candidates;
    size_t *dying;            /* scratch */
    double *bias, *best_bias; /* per root: factor of scores */
    hold *holds;
    uint32_t n_holds, cap_holds;
};

static const sn_node_info *node_at(const sn_holder *h, uint32_t i) {
    return sn_graph_node_at(h->p->graph, (sn_node){i});
}

static uint32_t maker_of(const sn_holder *h, uint32_t v) {
    return sn_graph_value_at(h->p->graph, (sn_value){v})->node.i;
}

static bool has_label(const sn_holder *h, uint32_t v) {
    return h->split->label[v].axis >= 0;
}

static uint32_t block_of(const sn_holder *h, uint32_t node) {
    return h->split->time[node] / 2;
}

static bool runs_in_blocks(const sn_holder *h, uint32_t node) {
    return h->p->needed[node] && h->split->sliced[node];
}

/* --- facts ------------------------------------------------------------------------------------ */
static void find_forced(sn_holder *h) {
    const sn_planner *p = h->p;
    for (uint32_t v = 0; v < p->n_values; v++) {
        const uint32_t root = p->root[v], maker = maker_of(h, root);
        if (!has_label(h, root))
            continue;
        const bool once = maker < p->n_nodes && sn_ops[node_at(h, maker)->op].effect == SN_MAYFAIL;
        h->forced[root] = h->forced[root] || p->is_output[root] || once;
        for (uint32_t k = p->reader_start[v]; k < p->reader_start[v + 1]; k++)
            h->forced[root] = h->forced[root] || !h->split->sliced[p->readers[k]];
    }
}

/* Operands with a label of the nodes that run in blocks. */
static snug_status find_operands(sn_holder *h, snug_error *err) {
    const sn_planner *p = h->p;
    uint32_t n_in = 0, n_out = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        n_in += runs_in_blocks(h, i) ? node_at(h, i)->n_in : 0;
        n_out += runs_in_blocks(h, i) ? node_at(h, i)->n_out : 0;
    }
    SNUG_TRY(sn_plan_array(p->work, n_in, sizeof *h->in, &h->in, err));
    SNUG_TRY(sn_plan_array(p->work, n_out, sizeof *h->out, &h->out, err));
    n_in = n_out = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const sn_node_info *n = node_at(h, i);
        h->in_start[i] = n_in;
        h->out_start[i] = n_out;
        if (!runs_in_blocks(h, i))
            continue;
        h->nodes[h->n_sliced++] = i;
        for (int k = 0; k < n->n_in; k++) {
            const uint32_t v = n->in[k].i, maker = maker_of(h, v);
            if (has_label(h, v))
                h->in[n_in++] = (operand){p->root[v], maker < p->n_nodes ? maker : NONE};
        }
        for (int k = 0; k < n->n_out; k++)
            if (has_label(h, n->out[k].i) && p->root[n->out[k].i] == n->out[k].i)
                h->roots[h->n_roots++] = h->out[n_out++] = n->out[k].i;
    }
    h->in_start[p->n_nodes] = n_in;
    h->out_start[p->n_nodes] = n_out;
    return SNUG_OK;
}

static void find_own(sn_holder *h) {
    uint32_t *const start = h->own_start, *const at = h->stack;
    for (uint32_t i = 0; i < h->n_sliced; i++)
        start[block_of(h, h->nodes[i]) + 1]++;
    for (uint32_t b = 0; b < h->split->n_blocks; b++) {
        at[b] = start[b];
        start[b + 1] += start[b];
    }
    for (uint32_t i = 0; i < h->n_sliced; i++)
        h->own[at[block_of(h, h->nodes[i])]++] = h->nodes[i];
}

/* An earlier block than the node's own makes the root. */
static bool crosses(const sn_holder *h, uint32_t node, uint32_t root) {
    const uint32_t maker = maker_of(h, root);
    return maker < h->p->n_nodes && block_of(h, maker) < block_of(h, node);
}

static snug_status find_uses(sn_holder *h, snug_error *err) {
    const sn_planner *p = h->p;
    uint32_t *const start = h->use_start;
    for (uint32_t i = 0; i < h->n_sliced; i++)
        for (uint32_t k = h->in_start[h->own[i]]; k < h->in_start[h->own[i] + 1]; k++)
            if (crosses(h, h->own[i], h->in[k].root))
                start[h->in[k].root + 1]++;
    for (uint32_t v = 0; v < p->n_values; v++)
        start[v + 1] += start[v];
    SNUG_TRY(sn_plan_array(p->work, start[p->n_values], sizeof *h->use, &h->use, err));
    memcpy(h->at, start, p->n_values * sizeof *start);
    for (uint32_t i = 0; i < h->n_sliced; i++)
        for (uint32_t k = h->in_start[h->own[i]]; k < h->in_start[h->own[i] + 1]; k++)
            if (crosses(h, h->own[i], h->in[k].root))
                h->use[h->at[h->in[k].root]++] = block_of(h, h->own[i]);
    return SNUG_OK;
}

static snug_status make_arrays(sn_holder *h, snug_error *err) {
    sn_zone *const z = h->p->work;
    const size_t n_values = h->p->n_values, n_nodes = h->p->n_nodes;
    uint32_t **const per_value[] = {&h->at,   &h->next, &h->until,     &h->held_as, &h->read,
                                    &h->made, &h->ends, &h->residents, &h->roots,   &h->use_start};
    uint32_t **const per_node[] = {&h->runs, &h->seen,  &h->stack,    &h->list,
                                   &h->own,  &h->nodes, &h->in_start, &h->out_start};
    for (size_t i = 0; i < sizeof per_value / sizeof per_value[0]; i++)
        SNUG_TRY(sn_plan_array(z, n_values + 1, sizeof(uint32_t), per_value[i], err));
    for (size_t i = 0; i < sizeof per_node / sizeof per_node[0]; i++)
        SNUG_TRY(sn_plan_array(z, n_nodes + 1, sizeof(uint32_t), per_node[i], err));
    SNUG_TRY(sn_plan_array(z, n_values, sizeof *h->forced, &h->forced, err));
    SNUG_TRY(sn_plan_array(z, n_values, sizeof *h->candidates, &h->candidates, err));
    SNUG_TRY(sn_plan_array(z, n_values, sizeof *h->dying, &h->dying, err));
    SNUG_TRY(sn_plan_array(z, n_values, sizeof *h->bias, &h->bias, err));
    SNUG_TRY(sn_plan_array(z, n_values, sizeof *h->best_bias, &h->best_bias, err));
    return sn_plan_array(z, (size_t)h->split->n_blocks + 1, sizeof(uint32_t), &h->own_start, err);
}

snug_status sn_holder_create(sn_planner *p, const sn_split *split, sn_holder **out,
                             snug_error *err) {
    sn_holder *h;
    SNUG_TRY(sn_plan_array(p->work, 1, sizeof *h, &h, err));
    h->p = p;
    h->split = split;
    SNUG_TRY(make_arrays(h, err));
    find_forced(h);
    SNUG_TRY(find_operands(h, err));
    find_own(h);
    SNUG_TRY(find_uses(h, err));
    *out = h;
    return SNUG_OK;
}

/* --- what a block runs ------------------------------------------------------------------------ */
static bool is_available(const sn_holder *h, uint32_t root) {
    return h->until[root] > h->block;
}

static void want(sn_holder *h, uint32_t node) {
    if (h->runs[node] == h->stamp)
        return;
    h->runs[node] = h->stamp;
    h->list[h->n_list++] = node;
}

/* A node of this block that somebody behind it waits for, whatever is held. */
static bool is_target(const sn_holder *h, uint32_t node) {
    const sn_node_info *n = node_at(h, node);
    if (sn_ops[n->op].effect == SN_MAYFAIL)
        return true;
    for (int k = 0; k < n->n_out; k++) {
        const uint32_t v = n->out[k].i;
        if (!has_label(h, v) || (h->p->root[v] == v && h->forced[v]))
            return true;
    }
    return false;
}

/* It makes what later blocks read. */
static bool is_for_later(const sn_holder *h, uint32_t node) {
    for (uint32_t k = h->out_start[node]; k < h->out_start[node + 1]; k++)
        if (h->use_start[h->out[k] + 1] > h->use_start[h->out[k]])
            return true;
    return false;
}

/* What the nodes of the list are made of, to the end; stamps what is read and made. */
static void follow(sn_holder *h) {
    for (uint32_t i = 0; i < h->n_list; i++) {
        const uint32_t node = h->list[i];
        for (uint32_t k = h->in_start[node]; k < h->in_start[node + 1]; k++) {
            if (is_available(h, h->in[k].root))
                h->read[h->in[k].root] = h->stamp;
            else if (h->in[k].maker != NONE)
                want(h, h->in[k].maker);
        }
        for (uint32_t k = h->out_start[node]; k < h->out_start[node + 1]; k++)
            h->made[h->out[k]] = h->stamp;
    }
}

/* The nodes of the block: its targets and, while it is not known what will be held, all that is
 * read later. */
static void list_block(sn_holder *h, bool for_later) {
    h->stamp++;
    h->n_list = 0;
    for (uint32_t i = h->own_start[h->block]; i < h->own_start[h->block + 1]; i++)
        if (is_target(h, h->own[i]) || (for_later && is_for_later(h, h->own[i])))
            want(h, h->own[i]);
}

/* --- next uses and prices --------------------------------------------------------------------- */
static bool is_made(const sn_holder *h, uint32_t root) {
    return h->made[root] == h->stamp;
}

/* Will be there behind the block. */
static bool stays(const sn_holder *h, uint32_t root) {
    return (is_available(h, root) && h->ends[root] != h->stamp) || h->forced[root] ||
           (is_made(h, root) && h->next[root] != NONE);
}

static void find_next(sn_holder *h) {
    for (uint32_t i = 0; i < h->n_roots; i++) {
        const uint32_t v = h->roots[i], end = h->use_start[v + 1];
        while (h->at[v] < end && h->use[h->at[v]] <= h->block)
            h->at[v]++;
        h->next[v] = h->at[v] < end ? h->use[h->at[v]] : NONE;
    }
    for (uint32_t i = h->own_start[h->block + 1]; i-- > 0;) { /* readers before what they read */
        const uint32_t node = h->own[i];
        uint32_t soonest = NONE;
        for (uint32_t k = h->out_start[node]; k < h->out_start[node + 1]; k++)
            if (h->next[h->out[k]] < soonest && !stays(h, h->out[k]))
                soonest = h->next[h->out[k]];
        for (uint32_t k = h->in_start[node]; soonest != NONE && k < h->in_start[node + 1]; k++)
            if (soonest < h->next[h->in[k].root])
                h->next[h->in[k].root] = soonest;
    }
}

/* To make the root again behind this block; or, `here`, in it beside what it runs anyhow. *revived:
 * bytes that are held for nothing else and would have to stay for it. */
static double price_of(sn_holder *h, uint32_t root, bool here, double *revived) {
    uint32_t n = 0, looks = 0;
    double seconds = 0;
    *revived = 0;
    h->n_prices++;
    h->stack[n++] = maker_of(h, root);
    h->seen[h->stack[0]] = h->n_prices;
    while (n > 0 && looks++ < MOST_LOOKS) {
        const uint32_t node = h->stack[--n];
        seconds += h->slices->seconds[node];
        for (uint32_t k = h->in_start[node]; k < h->in_start[node + 1]; k++) {
            const operand of = h->in[k];
            if (of.maker == NONE || h->seen[of.maker] == h->n_prices)
                continue;
            h->seen[of.maker] = h->n_prices;
            if (h->held_as[of.root] != NONE && h->next[of.root] == NONE)
                *revived += (double)h->p->padded[of.root];
            if (here ? !is_available(h, of.root) && h->runs[of.maker] != h->stamp
                     : !stays(h, of.root))
                h->stack[n++] = of.maker;
        }
    }
    return seconds;
}

/* The root is missing behind this block: what it is made of is needed when it is. */
static void lower_next(sn_holder *h, uint32_t root) {
    const uint32_t when = h->next[root];
    uint32_t n = 0;
    h->n_prices++;
    h->stack[n++] = maker_of(h, root);
    h->seen[h->stack[0]] = h->n_prices;
    while (n > 0) {
        const uint32_t node = h->stack[--n];
        for (uint32_t k = h->in_start[node]; k < h->in_start[node + 1]; k++) {
            const operand of = h->in[k];
            if (of.maker == NONE || h->seen[of.maker] == h->n_prices)
                continue;
            const bool missing = !stays(h, of.root);
            h->seen[of.maker] = h->n_prices;
            h->next[of.root] = when < h->next[of.root] ? when : h->next[of.root];
            if (missing)
                h->stack[n++] = of.maker;
        }
    }
}

/* --- what goes -------------------------------------------------------------------------------- */
/* INFINITY: nothing is gained, as something else must stay in its place. */
static double score_of(sn_holder *h, uint32_t root) {
    double revived;
    const double seconds = h->bias[root] * price_of(h, root, false, &revived);
    const double gain = (double)h->p->padded[root] - revived;
    return gain > 0 ? seconds / (gain * (double)(h->next[root] - h->block)) : INFINITY;
}

/* No longer held, or not held at all. */
static void let_go(sn_holder *h, uint32_t root) {
    if (h->held_as[root] == NONE) {
        h->made[root] = 0;
        return;
    }
    h->held_as[root] = NONE;
    h->until[root] = 0;
    for (uint32_t i = 0; i < h->n_residents; i++)
        if (h->residents[i] == root) {
            h->residents[i] = h->residents[--h->n_residents];
            return;
        }
}

static void add_candidate(sn_holder *h, uint32_t root, way_of way) {
    h->candidates[h->n_candidates++] = (candidate){root, way, 0};
}

/* What is held and no longer needed goes; what of the rest, and of what the block makes for later,
 * may go are candidates. */
static void list_candidates(sn_holder *h) {
    h->n_candidates = 0;
    for (uint32_t i = h->n_residents; i-- > 0;) {
        const uint32_t root = h->residents[i];
        const bool reads = h->read[root] == h->stamp;
        if (!reads && h->next[root] == NONE)
            let_go(h, root);
        else if (h->next[root] != NONE)
            add_candidate(h, root, reads ? READ : PASSES);
    }
    for (uint32_t i = 0; i < h->n_list; i++)
        for (uint32_t k = h->out_start[h->list[i]]; k < h->out_start[h->list[i] + 1]; k++) {
            const uint32_t v = h->out[k];
            if (h->next[v] != NONE && h->held_as[v] == NONE && !h->forced[v])
                add_candidate(h, v, MADE);
        }
}

/* Read in this block for the last time. */
static bool dies(const sn_holder *h, uint32_t root) {
    return h->read[root] == h->stamp && (h->next[root] == NONE || h->ends[root] == h->stamp);
}

/* Bytes of what is held in the block. A value that is made takes the place of one of its size that
 * dies. */
static double held_bytes(const sn_holder *h) {
    double bytes = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n_residents; i++) {
        const size_t size = h->p->padded[h->residents[i]];
        bytes += (double)size;
        if (dies(h, h->residents[i]))
            h->dying[n++] = size;
    }
    for (uint32_t i = 0; i < h->n_candidates; i++) {
        const size_t size = h->p->padded[h->candidates[i].root];
        uint32_t k = 0;
        if (h->candidates[i].way != MADE)
            continue;
        while (k < n && h->dying[k] != size)
            k++;
        if (k < n)
            h->dying[k] = h->dying[--n];
        else
            bytes += (double)size;
    }
    return bytes;
}

/* Whether more values of this size are made than die. */
static bool are_more_made(const sn_holder *h, size_t size) {
    int more = 0;
    for (uint32_t i = 0; i < h->n_candidates; i++)
        more += h->candidates[i].way == MADE && h->p->padded[h->candidates[i].root] == size;
    for (uint32_t i = 0; i < h->n_residents; i++)
        more -= h->p->padded[h->residents[i]] == size && dies(h, h->residents[i]);
    return more > 0;
}

/* The candidate with the lowest score. Old scores are lower bounds, so only the lowest is asked
 * again, until it stays the lowest. */
static candidate *lowest(sn_holder *h) {
    for (;;) {
        candidate *best = &h->candidates[0];
        double second = INFINITY;
        for (uint32_t i = 1; i < h->n_candidates; i++) {
            candidate *const c = &h->candidates[i];
            const double worse = c->score < best->score ? best->score : c->score;
            second = worse < second ? worse : second;
            best = c->score < best->score ? c : best;
        }
        if (best->score == INFINITY)
            return NULL;
        const bool gives = best->way == PASSES || are_more_made(h, h->p->padded[best->root]);
        const double score = gives ? score_of(h, best->root) : INFINITY;
        const bool settled = score < INFINITY && score <= fmax(best->score * 1.001, second);
        best->score = score;
        if (settled)
            return best;
    }
}

/* Lets candidates go until the block has room. */
static bool make_room(sn_holder *h) {
    list_candidates(h);
    while (held_bytes(h) > h->room[h->block]) {
        candidate *const c = h->n_candidates > 0 ? lowest(h) : NULL;
        if (!c)
            return false;
        const candidate gone = *c;
        *c = h->candidates[--h->n_candidates];
        if (gone.way == READ)
            h->ends[gone.root] = h->stamp;
        else
            let_go(h, gone.root);
        lower_next(h, gone.root);
    }
    return true;
}

/* Something that the block reads goes before it; false: nothing can. */
static bool let_read_go(sn_holder *h) {
    uint32_t best = NONE;
    double least = INFINITY, revived;
    for (uint32_t i = 0; i < h->n_residents; i++) {
        const uint32_t root = h->residents[i];
        if (h->read[root] != h->stamp)
            continue;
        const double seconds = price_of(h, root, true, &revived);
        const double score = h->bias[root] * seconds / (double)h->p->padded[root];
        if (score < least || (score == least && root < best)) {
            least = score;
            best = root;
        }
    }
    if (best != NONE)
        let_go(h, best);
    return best != NONE;
}

/* --- the walk --------------------------------------------------------------------------------- */
static snug_status open_hold(sn_holder *h, uint32_t root, snug_error *err) {
    if (h->n_holds == h->cap_holds) {
        hold *const old = h->holds;
        h->cap_holds = 2 * h->cap_holds + 64;
        SNUG_TRY(sn_plan_array(h->zone, h->cap_holds, sizeof *h->holds, &h->holds, err));
        if (h->n_holds > 0)
            memcpy(h->holds, old, h->n_holds * sizeof *old);
    }
    h->holds[h->n_holds] = (hold){root, h->block, h->block};
    h->held_as[root] = h->n_holds++;
    h->until[root] = NONE;
    h->residents[h->n_residents++] = root;
    return SNUG_OK;
}

/* Behind the block: what it made for later is held now, what it read was needed until here. */
static snug_status close_block(sn_holder *h, snug_error *err) {
    for (uint32_t i = h->n_residents; i-- > 0;) {
        const uint32_t root = h->residents[i];
        if (h->read[root] == h->stamp)
            h->holds[h->held_as[root]].to = h->block;
        if (h->ends[root] == h->stamp)
            let_go(h, root);
    }
    for (uint32_t i = 0; i < h->n_candidates; i++)
        if (h->candidates[i].way == MADE)
            SNUG_TRY(open_hold(h, h->candidates[i].root, err));
    return SNUG_OK;
}

/* Forced values lie whole behind the block that makes them. */
static void keep_forced(sn_holder *h) {
    for (uint32_t i = h->own_start[h->block]; i < h->own_start[h->block + 1]; i++)
        for (uint32_t k = h->out_start[h->own[i]]; k < h->out_start[h->own[i] + 1]; k++)
            if (h->forced[h->out[k]])
                h->until[h->out[k]] = NONE;
}

static void start_over(sn_holder *h) {
    const size_t bytes = h->p->n_values * sizeof(uint32_t);
    memset(h->until, 0, bytes);
    memset(h->held_as, 0xff, bytes);
    memcpy(h->at, h->use_start, bytes);
    h->n_residents = 0;
}

static snug_status walk(sn_holder *h, double *held, snug_error *err) {
    start_over(h);
    h->n_holds = 0;
    for (h->block = 0; h->block < h->split->n_blocks; h->block++) {
        for (bool more = true; more;) {
            list_block(h, true);
            follow(h);
            find_next(h);
            more = !make_room(h) && let_read_go(h);
        }
        held[h->block] = held_bytes(h);
        SNUG_TRY(close_block(h, err));
        keep_forced(h);
    }
    return SNUG_OK;
}

/* --- the answer ------------------------------------------------------------------------------- */
/* Lists the nodes of each block given the holds; out->node NULL: counts them only. */
static void list_runs(sn_holder *h, sn_block_runs *out) {
    uint32_t n = 0, at = 0;
    out->seconds = 0;
    start_over(h);
    for (h->block = 0; h->block < h->split->n_blocks; h->block++) {
        const uint32_t first = at;
        list_block(h, false);
        for (; at < h->n_holds && h->holds[at].from == h->block; at++)
            if (h->holds[at].to > h->block)
                want(h, maker_of(h, h->holds[at].root));
        follow(h);
        out->start[h->block] = n;
        if (out->node)
            memcpy(&out->node[n], h->list, h->n_list * sizeof *h->list);
        for (uint32_t i = 0; i < h->n_list; i++)
            out->seconds += h->slices->seconds[h->list[i]];
        n += h->n_list;
        for (uint32_t i = first; i < at; i++)
            if (h->holds[i].to > h->block)
                h->until[h->holds[i].root] = h->holds[i].to + 1;
        keep_forced(h);
    }
    out->start[h->split->n_blocks] = n;
}

/* One walk, and what it comes to. */
static snug_status try_holds(sn_holder *h, sn_block_runs *out, snug_error *err) {
    SNUG_TRY(walk(h, out->held, err));
    list_runs(h, out);
    return SNUG_OK;
}

/* The best walk's scores, some or all of them changed by chance: few of them by much. */
static void shake(sn_holder *h, int turn) {
    static const double parts[] = {0.3, 0.1, 0.03, 1};
    const double part = parts[turn % 4];
    for (uint32_t i = 0; i < h->n_roots; i++) {
        const uint32_t v = h->roots[i];
        double chance[2];
        sn_random_fill_f64(SN_RANDOM_UNIFORM, (uint64_t)turn, 2 * (uint64_t)v, 2, chance);
        h->bias[v] = h->best_bias[v];
        if (chance[0] < part)
            h->bias[v] *= exp2(SPREAD * (2 * chance[1] - 1));
    }
}

/* Walks that many times, each time a little differently than in the best one. */
static snug_status search(sn_holder *h, int searches, sn_block_runs *out, snug_error *err) {
    const size_t bytes = h->p->n_values * sizeof *h->bias;
    double best = out->seconds;
    memcpy(h->best_bias, h->bias, bytes);
    for (int turn = 0; turn < searches; turn++) {
        shake(h, turn);
        SNUG_TRY(try_holds(h, out, err));
        if (out->seconds >= best)
            continue;
        best = out->seconds;
        memcpy(h->best_bias, h->bias, bytes);
    }
    memcpy(h->bias, h->best_bias, bytes);
    return try_holds(h, out, err);
}

void sn_holder_reset(sn_holder *h) {
    for (uint32_t v = 0; v < h->p->n_values; v++)
        h->bias[v] = 1;
}

snug_status sn_hold_values(sn_holder *h, sn_zone *z, const sn_hold_limits *limits,
                           sn_block_runs *out, snug_error *err) {
    const size_t n_blocks = h->split->n_blocks;
    h->zone = z;
    h->cap_holds = 0;
    h->slices = limits->slices;
    h->room = limits->room;
    *out = (sn_block_runs){.node = NULL};
    SNUG_TRY(sn_plan_array(z, n_blocks + 1, sizeof *out->start, &out->start, err));
    SNUG_TRY(sn_plan_array(z, n_blocks, sizeof *out->held, &out->held, err));
    SNUG_TRY(try_holds(h, out, err));
    if (limits->searches > 0)
        SNUG_TRY(search(h, limits->searches, out, err));
    SNUG_TRY(sn_plan_array(z, out->start[n_blocks], sizeof *out->node, &out->node, err));
    list_runs(h, out);
    return SNUG_OK;
}
