/* report.c: where the bytes of a plan go, read from its steps alone, so that parsed plans have
 * reports too.
 *
 * A holding is a stay of a value in the first arena: from the step that writes it through the last
 * that needs it; a value that is made again is held again. A value that lies in another's bytes
 * because nobody changes them (an alias) shares that holding; one that takes over dying bytes (in
 * place, or where a block has read them for the last time) ends it. A whole value that a block
 * touches is held from its REPEAT through its END. So the holdings of a step never count a byte
 * twice, and at the peak they add up to the bound. */
#include "base/size.h"
#include "plan/passes.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t first, last; /* steps */
    uint32_t value;       /* the first to lie there */
    uint32_t block;       /* the REPEAT it was made under, or UINT32_MAX */
    size_t offset;
    size_t bytes;  /* padded */
    bool is_local; /* a slice at a time */
    bool is_output;
} holding;

typedef struct {
    const sn_plan *p;
    uint32_t *end_of;  /* per REPEAT step: its END */
    uint32_t *held_by; /* per value: its newest holding */
    holding *holdings;
    uint32_t n;
    uint32_t *newest; /* by offset, hashed: the newest holding there; size a power of two */
    size_t n_newest;
} holdings;

static size_t padded(const sn_plan *p, size_t bytes) {
    const size_t align = p->device_align[p->memories[SN_MEM_FIRST_ARENA].device];
    size_t out = bytes;
    return sn_size_align(bytes, align, &out) ? out : bytes;
}

/* Through step, or through the end of the block when the holding outlives its iterations. */
static void extend(const holdings *h, uint32_t holding_id, uint32_t block, uint32_t step) {
    holding *const held = &h->holdings[holding_id];
    const uint32_t last =
        block == UINT32_MAX || (held->is_local && held->block == block) ? step : h->end_of[block];
    held->last = last > held->last ? last : held->last;
}

/* The holding of the input in whose bytes the output lies, or UINT32_MAX. */
static uint32_t shared_with(const holdings *h, const sn_step *s, const sn_place *out) {
    for (int k = 0; k < s->n_in; k++)
        if (s->in[k].memory == out->memory && s->in[k].offset == out->offset &&
            sn_plan_place_bytes(h->p, &s->in[k]) == sn_plan_place_bytes(h->p, out))
            return h->held_by[s->in[k].value.i];
    return UINT32_MAX;
}

/* Where the newest holding at this offset is noted, or would be. */
static uint32_t *newest_at(const holdings *h, size_t offset) {
    size_t i = offset / 64 * 0x9e3779b97f4a7c15u >> 32 & (h->n_newest - 1);
    while (h->newest[i] != UINT32_MAX && h->holdings[h->newest[i]].offset != offset)
        i = (i + 1) & (h->n_newest - 1);
    return &h->newest[i];
}

static bool is_alias(const sn_plan *p, const sn_step *s) {
    return s->kind == SN_STEP_RUN &&
           sn_ops[sn_graph_node_at(p->graph, s->node)->op].inplace == SN_INPLACE_ALIAS;
}

/* A spilled variable on its way: its stages are reported as one workspace. */
static bool is_staged(const sn_plan *p, const sn_place *place) {
    const int32_t var = sn_graph_value_at(p->graph, place->value)->var;
    return place->memory == SN_MEM_FIRST_ARENA && var >= 0 &&
           sn_plan_spills(p, (sn_var){(uint32_t)var});
}

static void hold_output(holdings *h, uint32_t step, const sn_place *out, uint32_t block) {
    const sn_plan *p = h->p;
    const uint32_t v = out->value.i;
    const bool local = block != UINT32_MAX && out->rows >= 0 && out->stride == 0;
    if (out->memory != SN_MEM_FIRST_ARENA || p->value_bytes[v] == 0 || is_staged(p, out))
        return;
    const size_t bytes = padded(p, sn_plan_place_bytes(p, out));
    uint32_t *const there = newest_at(h, out->offset);
    uint32_t from = shared_with(h, &p->steps[step], out);
    if (from != UINT32_MAX && is_alias(p, &p->steps[step])) {
        h->held_by[v] = from;
        return;
    }
    if (from == UINT32_MAX && *there != UINT32_MAX && h->holdings[*there].last >= step &&
        h->holdings[*there].bytes == bytes)
        from = *there;
    if (from != UINT32_MAX) {
        holding *const old = &h->holdings[from];
        if (old->first < step)
            old->last = step - 1;
        else
            old->bytes = 0;
    }
    const uint32_t first = local || block == UINT32_MAX || from != UINT32_MAX ? step : block;
    h->held_by[v] = *there = h->n;
    h->holdings[h->n++] = (holding){.first = first,
                                    .last = step,
                                    .value = v,
                                    .block = block,
                                    .offset = out->offset,
                                    .bytes = bytes,
                                    .is_local = local};
    extend(h, h->held_by[v], block, step);
}

static void hold_step(holdings *h, uint32_t i, uint32_t block) {
    const sn_step *s = &h->p->steps[i];
    for (int k = 0; k < s->n_in; k++)
        if (s->in[k].memory == SN_MEM_FIRST_ARENA && h->held_by[s->in[k].value.i] != UINT32_MAX)
            extend(h, h->held_by[s->in[k].value.i], block, i);
    for (int k = 0; k < s->n_out; k++)
        hold_output(h, i, &s->out[k], block);
}

/* Blocks and the number of outputs of all steps. */
static uint32_t find_blocks(holdings *h) {
    uint32_t n_outs = 0, block = 0;
    for (uint32_t i = 0; i < h->p->n_steps; i++) {
        n_outs += h->p->steps[i].n_out;
        if (h->p->steps[i].kind == SN_STEP_REPEAT)
            block = i;
        else if (h->p->steps[i].kind == SN_STEP_END)
            h->end_of[block] = i;
    }
    return n_outs;
}

/* What can be taken back is held to the end. */
static snug_status hold_undone(sn_zone *z, holdings *h, snug_error *err) {
    sn_undone undone;
    SNUG_TRY(sn_plan_undone(h->p, z, &undone, err));
    for (uint32_t i = 0; i < undone.n; i++) {
        const uint32_t at = h->held_by[h->p->steps[undone.steps[i]].out[0].value.i];
        if (at != UINT32_MAX)
            extend(h, at, UINT32_MAX, h->p->n_steps - 1);
    }
    return SNUG_OK;
}

static snug_status find_holdings(sn_zone *z, const sn_plan *p, holdings *h, snug_error *err) {
    const uint32_t n_values = sn_graph_n_values(p->graph);
    uint32_t block = UINT32_MAX;
    *h = (holdings){.p = p};
    SNUG_TRY(sn_plan_array(z, p->n_steps, sizeof *h->end_of, &h->end_of, err));
    SNUG_TRY(sn_plan_array(z, n_values, sizeof *h->held_by, &h->held_by, err));
    const uint32_t most = find_blocks(h);
    for (h->n_newest = 1; h->n_newest <= 2 * (size_t)most;)
        h->n_newest *= 2;
    SNUG_TRY(sn_plan_array(z, most, sizeof *h->holdings, &h->holdings, err));
    SNUG_TRY(sn_plan_array(z, h->n_newest, sizeof *h->newest, &h->newest, err));
    memset(h->newest, 0xff, h->n_newest * sizeof *h->newest);
    memset(h->held_by, 0xff, n_values * sizeof *h->held_by);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].kind == SN_STEP_REPEAT)
            block = i;
        else if (p->steps[i].kind == SN_STEP_END)
            block = UINT32_MAX;
        else
            hold_step(h, i, block);
    }
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++) {
        const uint32_t at = h->held_by[p->outputs[i].value.i];
        if (at == UINT32_MAX || p->outputs[i].memory != SN_MEM_FIRST_ARENA)
            continue;
        h->holdings[at].is_output = true;
        h->holdings[at].last = p->n_steps - 1;
    }
    return hold_undone(z, h, err);
}

static void add_category(const sn_plan *p, const holding *h, sn_plan_categories *to) {
    const sn_value_info *v = sn_graph_value_at(p->graph, (sn_value){h->value});
    if (h->is_output)
        to->outputs += h->bytes;
    else if (v->kind == SN_VALUE_INPUT)
        to->inputs += h->bytes;
    else if (v->kind == SN_VALUE_OUTPUT &&
             sn_graph_node_at(p->graph, v->node)->part != SN_PART_FORWARD)
        to->gradients += h->bytes;
    else
        to->activations += h->bytes;
}

/* A piece of a node that was begun before, outside of blocks. */
static bool is_later_piece(const sn_step *s) {
    return s->n_out > 0 && s->out[0].rows >= 0 && s->out[0].first > 0;
}

/* Bytes of the stages, from their first use on. */
static size_t stage_bytes(const sn_plan *p) {
    size_t low = SIZE_MAX, high = 0;
    bool live = false;
    for (uint32_t i = 0; p->spilled && i < p->n_steps; i++) {
        const sn_step *s = &p->steps[i];
        if (s->kind != SN_STEP_COPY || !is_staged(p, &s->out[0]))
            continue;
        const size_t end = s->out[0].offset + sn_plan_place_bytes(p, &s->out[0]);
        low = s->out[0].offset < low ? s->out[0].offset : low;
        high = end > high ? end : high;
        live = live || i <= p->peak_step;
    }
    return live ? padded(p, high - low) : 0;
}

/* Slices and runs that come again. */
static snug_status count_means(sn_zone *z, sn_plan *p, snug_error *err) {
    bool *seen;
    SNUG_TRY(sn_plan_array(z, sn_graph_n_nodes(p->graph), sizeof *seen, &seen, err));
    p->slices = 1;
    p->n_recomputed = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step *s = &p->steps[i];
        if (s->kind == SN_STEP_REPEAT && s->repeat > p->slices)
            p->slices = s->repeat;
        if (s->kind != SN_STEP_RUN)
            continue;
        p->n_recomputed += seen[s->node.i] && !is_later_piece(s);
        seen[s->node.i] = true;
    }
    return SNUG_OK;
}

snug_status sn_plan_summarise(sn_plan *p, snug_error *err) {
    sn_zone *z = NULL;
    holdings h;
    SNUG_TRY(sn_zone_create(sn_zone_engine(p->zone), SN_MEM_PLAN, &z, err));
    snug_status st = count_means(z, p, err);
    if (st == SNUG_OK)
        st = find_holdings(z, p, &h, err);
    p->at_peak = (sn_plan_categories){0};
    for (uint32_t i = 0; st == SNUG_OK && i < h.n; i++)
        if (h.holdings[i].first <= p->peak_step && p->peak_step <= h.holdings[i].last)
            add_category(p, &h.holdings[i], &p->at_peak);
    if (st == SNUG_OK && p->peak_step < p->n_steps &&
        p->steps[p->peak_step].ws_memory == SN_MEM_FIRST_ARENA)
        p->at_peak.workspace = padded(p, p->steps[p->peak_step].ws_bytes);
    if (st == SNUG_OK)
        p->at_peak.workspace += stage_bytes(p);
    sn_zone_destroy(z);
    return st;
}

/* What came at a step, and what was there before and did not go. */
static void go_on(sn_plan_categories *now, const sn_plan_categories *before,
                  const sn_plan_categories *gone) {
    now->inputs += before->inputs - gone->inputs;
    now->activations += before->activations - gone->activations;
    now->gradients += before->gradients - gone->gradients;
    now->outputs += before->outputs - gone->outputs;
}

static snug_status fill_timeline(const sn_plan *p, sn_zone *z, sn_plan_categories *rows,
                                 snug_error *err) {
    holdings h;
    sn_plan_categories *gone;
    SNUG_TRY(find_holdings(z, p, &h, err));
    SNUG_TRY(sn_plan_array(z, (size_t)p->n_steps + 1, sizeof *gone, &gone, err));
    memset(rows, 0, p->n_steps * sizeof *rows);
    for (uint32_t i = 0; i < h.n; i++) {
        add_category(p, &h.holdings[i], &rows[h.holdings[i].first]);
        add_category(p, &h.holdings[i], &gone[h.holdings[i].last + 1]);
    }
    for (uint32_t t = 0; t < p->n_steps; t++) {
        if (t > 0)
            go_on(&rows[t], &rows[t - 1], &gone[t]);
        if (p->steps[t].ws_memory == SN_MEM_FIRST_ARENA)
            rows[t].workspace = padded(p, p->steps[t].ws_bytes);
    }
    return SNUG_OK;
}

snug_status sn_plan_timeline(const sn_plan *p, snug_engine *e, sn_plan_categories *rows,
                             snug_error *err) {
    sn_zone *z = NULL;
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    const snug_status st = fill_timeline(p, z, rows, err);
    sn_zone_destroy(z);
    return st;
}

void sn_plan_peak_categories(const sn_plan *p, sn_plan_categories *out) {
    *out = p->at_peak;
}

static uint32_t owner_of(const sn_graph *g, uint32_t value) {
    const sn_value_info *v = sn_graph_value_at(g, (sn_value){value});
    return v->kind == SN_VALUE_OUTPUT ? sn_graph_node_at(g, v->node)->owner : 0;
}

typedef struct {
    const char *name;
    uint32_t id;
} named;

static int by_name(const void *a, const void *b) {
    const named *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static snug_status sort_owners(sn_zone *z, const sn_graph *g, named **out, snug_error *err) {
    const uint32_t n = sn_graph_n_owners(g);
    SNUG_TRY(sn_plan_array(z, n, sizeof **out, out, err));
    for (uint32_t i = 0; i < n; i++)
        (*out)[i] = (named){sn_graph_owner_name(g, i), i};
    qsort(*out, n, sizeof **out, by_name);
    return SNUG_OK;
}

/* The first owner with exactly these n letters as name; 0 where there is none. */
static uint32_t owner_named(const named *owners, uint32_t n_owners, const char *name, size_t n) {
    uint32_t low = 0, high = n_owners;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (strncmp(owners[middle].name, name, n) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < n_owners && strncmp(owners[low].name, name, n) == 0;
    return found && owners[low].name[n] == '\0' ? owners[low].id : 0;
}

/* The owner with the longest name that stands before a part of the variable's name; 0 when there is
 * none. */
static uint32_t owner_of_variable(const named *owners, uint32_t n_owners, const char *name) {
    uint32_t found = 0;
    for (size_t n = strlen(name); n-- > 0 && found == 0;)
        if (name[n] == '/')
            found = owner_named(owners, n_owners, name, n);
    return found;
}

/* Per owner: the most of its own bytes held at any step. `held` has a place per owner. */
static void sweep_owners(const holdings *h, const uint32_t *by_first, const uint32_t *by_last,
                         size_t *held, sn_plan_owner_row *rows) {
    const sn_graph *g = h->p->graph;
    uint32_t ended = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        const holding *now = &h->holdings[by_first[i]];
        for (; ended < h->n && h->holdings[by_last[ended]].last < now->first; ended++) {
            const holding *gone = &h->holdings[by_last[ended]];
            held[owner_of(g, gone->value)] -= gone->bytes;
        }
        const uint32_t owner = owner_of(g, now->value);
        held[owner] += now->bytes;
        if (held[owner] > rows[owner].own_peak_bytes)
            rows[owner].own_peak_bytes = held[owner];
    }
}

static uint32_t step_of(const holding *h, bool by_last) {
    return by_last ? h->last : h->first;
}

/* Holdings by their first or last step: counting sort, so ties stay in order. */
static snug_status sort_holdings(sn_zone *z, const holdings *h, bool by_last, uint32_t **out,
                                 snug_error *err) {
    uint32_t *start, *sorted;
    SNUG_TRY(sn_plan_array(z, (size_t)h->p->n_steps + 2, sizeof *start, &start, err));
    SNUG_TRY(sn_plan_array(z, h->n, sizeof *sorted, &sorted, err));
    for (uint32_t i = 0; i < h->n; i++)
        start[step_of(&h->holdings[i], by_last) + 1]++;
    for (uint32_t t = 0; t < h->p->n_steps; t++)
        start[t + 1] += start[t];
    for (uint32_t i = 0; i < h->n; i++)
        sorted[start[step_of(&h->holdings[i], by_last)]++] = i;
    *out = sorted;
    return SNUG_OK;
}

static snug_status add_static(sn_zone *z, const sn_plan *p, sn_plan_owner_row *rows,
                              snug_error *err) {
    const sn_graph *g = p->graph;
    const uint32_t n_owners = sn_graph_n_owners(g);
    named *owners;
    SNUG_TRY(sort_owners(z, g, &owners, err));
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *var = sn_graph_var_at(g, (sn_var){i});
        if (!var->slot)
            rows[owner_of_variable(owners, n_owners, var->name)].weight_bytes +=
                p->value_bytes[var->first.i];
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        sn_opdesc d;
        if (p->steps[i].kind != SN_STEP_RUN || is_later_piece(&p->steps[i]))
            continue;
        sn_graph_desc(g, p->steps[i].node, &d);
        rows[sn_graph_node_at(g, p->steps[i].node)->owner].flops += sn_op_flops(&d);
    }
    return SNUG_OK;
}

static snug_status fill_rows(const sn_plan *p, sn_zone *z, sn_plan_owner_row *rows,
                             snug_error *err) {
    holdings h;
    uint32_t *by_first, *by_last;
    size_t *held;
    SNUG_TRY(find_holdings(z, p, &h, err));
    SNUG_TRY(sort_holdings(z, &h, false, &by_first, err));
    SNUG_TRY(sort_holdings(z, &h, true, &by_last, err));
    SNUG_TRY(sn_plan_array(z, sn_graph_n_owners(p->graph), sizeof *held, &held, err));
    memset(rows, 0, sn_graph_n_owners(p->graph) * sizeof *rows);
    for (uint32_t i = 0; i < h.n; i++)
        if (h.holdings[i].first <= p->peak_step && p->peak_step <= h.holdings[i].last)
            rows[owner_of(p->graph, h.holdings[i].value)].at_peak_bytes += h.holdings[i].bytes;
    sweep_owners(&h, by_first, by_last, held, rows);
    return add_static(z, p, rows, err);
}

snug_status sn_plan_owner_rows(const sn_plan *p, snug_engine *e, sn_plan_owner_row *rows,
                               snug_error *err) {
    sn_zone *z = NULL;
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    const snug_status st = fill_rows(p, z, rows, err);
    sn_zone_destroy(z);
    return st;
}
