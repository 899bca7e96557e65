/* record_cache.c: plans at hand. A recording is written as a list of words: types of leaves and
 * variables, kinds of parameters, nodes with the structure of their attributes, outputs, and which
 * value each of them is, since leaves and nodes come in any order. The hash of the words finds an
 * entry, comparing them proves it. Values of parameters, addresses and contents are not in it; how
 * much room there is, is compared.
 *
 * A plan for a limit is taken as long as it fits the room there is now, unless so much room has
 * come that a faster one could be had. Which plan a room gets is decided in budget/room.h. Plans
 * that no longer fit go: the arena is as large as the largest there is. */
#include "record/recording.h"

#include "base/bytes.h"
#include "base/size.h"
#include "kernels/cpu/cpu.h"
#include "memory/pool.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAX_ENTRIES 256
#define MIB         ((size_t)1 << 20)
/* An arena of an interpreter's objects: of equal runs some have one more. */
#define OBJECTS MIB
/* What equal runs of an interpreter differ by: told with the smallest budget, not kept. */
#define BREATH (OBJECTS + MIB / 4)
/* Of a worker of a pipeline, results that may wait for who asks for them. */
#define WAITING 4
/* Of a node of a recording: of its graph, its plan and its session. */
#define NODE_BYTES ((size_t)2560)
/* Of a node, what the planner works in: measured, and a fifth more. */
#define WORK_BYTES ((size_t)8 << 10)
/* Of its limit, what a plan's room may grow before another plan is looked for. */
#define GROWTH_PART 8

/* --- the key ---------------------------------------------------------------------------------- */
typedef struct {
    snug_engine *engine;
    uint64_t *words;
    size_t n, cap;
} key;

static snug_status reserve(key *k, size_t more, snug_error *err) {
    return sn_grow(k->engine, SN_MEM_PLAN, &k->words, sizeof *k->words, &k->cap, k->n + more, err);
}

static snug_status add_type(key *k, const snug_type *t, snug_error *err) {
    SNUG_TRY(reserve(k, 2 + SNUG_MAX_RANK, err)); /* one for the caller */
    k->words[k->n++] = (uint64_t)t->dtype << 8 | (uint64_t)t->rank;
    for (int a = 0; a < t->rank; a++)
        k->words[k->n++] = (uint64_t)t->dims[a];
    return SNUG_OK;
}

/* Parameters as slots: which are one and the same is structure. */
static void add_field(key *k, const sn_field *f, const sn_attrs *a) {
    const int n = f->kind == SN_FIELD_LIST ? 1 + (int)a->word[f->word] : f->n;
    for (int w = 0; w < n; w++)
        k->words[k->n++] = (uint64_t)a->word[f->word + w];
}

static snug_status add_node(key *k, const sn_graph *g, const sn_node_info *n, snug_error *err) {
    const sn_attr_family *family = sn_ops[n->op].attrs;
    SNUG_TRY(reserve(k, 2 + SN_ATTR_WORDS + SN_MAX_IN + SN_MAX_OUT, err));
    k->words[k->n++] = (uint64_t)n->op << 16 | n->n_in;
    for (int i = 0; i < n->n_in; i++)
        k->words[k->n++] = n->in[i].i;
    for (int i = 0; i < n->n_out; i++)
        k->words[k->n++] = n->out[i].i;
    for (int i = 0; i < family->n_fields; i++)
        add_field(k, &family->fields[i], &n->attrs);
    if (sn_ops[n->op].fuses == SN_ACT_relu6)
        k->words[k->n++] = sn_graph_is_relu6(g, n);
    return SNUG_OK;
}

static snug_status write_key(const sn_recording *rec, const sn_side *side, key *k,
                             snug_error *err) {
    const sn_graph *g = rec->graph;
    SNUG_TRY(reserve(k, 6, err));
    k->words[k->n++] = side->word;
    k->words[k->n++] = sn_graph_n_inputs(g);
    k->words[k->n++] = sn_graph_n_vars(g);
    k->words[k->n++] = sn_graph_n_params(g);
    k->words[k->n++] = sn_graph_n_nodes(g);
    k->words[k->n++] = rec->n_again;
    for (uint32_t i = 0; i < sn_graph_n_inputs(g); i++) {
        const sn_value v = sn_graph_input_at(g, i);
        SNUG_TRY(add_type(k, sn_graph_type(g, v), err));
        k->words[k->n++] = (uint64_t)sn_graph_value_at(g, v)->fed << 32 | v.i;
    }
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *v = sn_graph_var_at(g, (sn_var){i});
        SNUG_TRY(add_type(k, &v->type, err));
        k->words[k->n++] = (uint64_t)v->slot << 32 | v->first.i;
    }
    SNUG_TRY(reserve(k, 2 * (size_t)sn_graph_n_params(g), err));
    for (uint32_t i = 0; i < sn_graph_n_params(g); i++) {
        const sn_param_info *p = sn_graph_param_at(g, (sn_param){i});
        k->words[k->n++] = p->kind;
        if (p->kind == SN_PARAM_INVERSE_EXTENT)
            k->words[k->n++] = (uint64_t)p->axes << 32 | p->of.i;
    }
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++)
        SNUG_TRY(add_node(k, g, sn_graph_node_at(g, (sn_node){i}), err));
    SNUG_TRY(reserve(k, sn_graph_n_outputs(g) + 1, err));
    for (uint32_t i = 0; i < sn_graph_n_outputs(g); i++)
        k->words[k->n++] = sn_graph_output_at(g, i).i;
    return SNUG_OK;
}

static uint64_t hash_of(const key *k) {
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < k->n; i++) {
        h = (h ^ k->words[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

/* --- entries ---------------------------------------------------------------------------------- */
static void destroy_entry(snug_recorder *r, sn_entry *e) {
    if (e->session)
        sn_executor_remove(e->side->executor(r), e->session);
    sn_plan_destroy(e->plan);
    sn_free(r->engine, SN_MEM_PLAN, e->asked,
            e->asked ? sn_graph_n_vars(e->graph) * sizeof *e->asked : 0);
    sn_free(r->engine, SN_MEM_PLAN, e->donor,
            e->donor ? sn_graph_n_outputs(e->graph) * sizeof *e->donor : 0);
    sn_graph_destroy(e->graph);
    sn_free(r->engine, SN_MEM_PLAN, e->params, e->n_params * sizeof *e->params);
    sn_free(r->engine, SN_MEM_PLAN, e->origin, e->n_origin * sizeof *e->origin);
    sn_free(r->engine, SN_MEM_PLAN, e->key, e->key_words * sizeof *e->key);
    sn_free(r->engine, SN_MEM_PLAN, e, sizeof *e);
}

void sn_cache_clear(snug_recorder *r) {
    while (r->entries) {
        sn_entry *e = r->entries;
        r->entries = e->next;
        destroy_entry(r, e);
    }
    r->n_entries = 0;
}

void sn_cache_drop(snug_recorder *r, sn_entry *entry) {
    sn_entry **link = &r->entries;
    while (*link && *link != entry)
        link = &(*link)->next;
    if (!*link)
        return;
    *link = entry->next;
    r->n_entries--;
    destroy_entry(r, entry);
}

static size_t arena_of(const sn_entry *e) {
    return e->plan->memories[SN_MEM_FIRST_ARENA].bytes;
}

void sn_cache_keep(snug_recorder *r, const sn_side *side, const sn_entry *only, size_t least) {
    for (sn_entry **link = &r->entries; *link;) {
        sn_entry *e = *link;
        if (e == only || e->side != side || arena_of(e) < least) {
            link = &e->next;
            continue;
        }
        *link = e->next;
        r->n_entries--;
        destroy_entry(r, e);
    }
}

static void evict_oldest(snug_recorder *r) {
    sn_entry **oldest = &r->entries;
    for (sn_entry **link = &r->entries; *link; link = &(*link)->next)
        if ((*link)->last_used < (*oldest)->last_used)
            oldest = link;
    sn_entry *e = *oldest;
    *oldest = e->next;
    r->n_entries--;
    destroy_entry(r, e);
}

/* --- room ------------------------------------------------------------------------------------- */
/* What the ledger holds beside the arena and idle ones. */
static size_t held_bytes(const snug_recorder *r) {
    return snug_engine_bytes(r->engine) - sn_executor_arena(r->executor, SN_MEM_FIRST_ARENA).bytes -
           sn_executor_others(r->executor);
}

/* What does not fit may come to lie in a file. */
size_t sn_cache_slots(const snug_recorder *r) {
    const size_t all = r->active_tapes ? (size_t)r->slots_to_come * r->weight_bytes : 0;
    return all > SN_FILE_MEMORY_BYTES && sn_recorder_spills(r) ? SN_FILE_MEMORY_BYTES : all;
}

/* What is left over in the last blocks of the plan, what those that will follow take, and what the
 * caller wants left. */
static size_t reserve_of(const snug_recorder *r, const sn_recording *rec) {
    const size_t plans = r->plans_to_come > 1 ? (size_t)r->plans_to_come - 1 : 0;
    const size_t pipelines = r->awaits ? sn_pool_to_come(r->engine) : 0;
    const size_t rest = sn_session_rest_bytes(rec->n_nodes * NODE_BYTES);
    return r->reserve_bytes + pipelines + plans * rec->n_nodes * NODE_BYTES + rest +
           sn_cache_slots(r);
}

/* Bytes an arena may have when `extra` more are taken first; 0: no limit. */
static snug_status find_room(snug_recorder *r, const sn_recording *rec, size_t extra, size_t *room,
                             snug_error *err) {
    const size_t budget = snug_budget_bytes(r->engine);
    sn_share_need need = {.books = held_bytes(r) + reserve_of(r, rec)};
    *room = 0;
    if (budget == 0)
        return SNUG_OK;
    if (!sn_size_add(need.books, extra, &need.books))
        return sn_fail(err, SNUG_E_OVERFLOW, "the results of this step exceed the address space");
    SNUG_TRY(sn_share_find(r->engine, budget, &need, &r->share, err));
    *room = r->share.arena > 0 ? r->share.arena : 1;
    /* A worker's small arena that is there is no growth: others may have come beside it. */
    const size_t there = sn_executor_arena(r->executor, SN_MEM_FIRST_ARENA).bytes;
    if (r->worker && *room < there)
        *room = there;
    return SNUG_OK;
}

/* The room is what an arena may have with all variables in memory: what it may have when so many of
 * their bytes lie in the file. */
static size_t room_beside(const snug_recorder *r, size_t room, size_t spilled) {
    const size_t gain = sn_plan_spill_gain(spilled, r->file != NULL), missing = r->share.missing;
    if (room == 0 || gain == 0)
        return room;
    return room + gain > missing ? room + gain - missing : 1;
}

/* --- planning --------------------------------------------------------------------------------- */
static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *sn_cache_largest(const sn_recording *rec, char *text, size_t size) {
    const sn_graph *g = rec->graph;
    uint32_t best = UINT32_MAX;
    int64_t most = 0;
    for (uint32_t i = 0; i < rec->n_nodes; i++) {
        const sn_value v = sn_graph_node_at(g, (sn_node){i})->out[0];
        const int64_t count = sn_type_count(sn_graph_type(g, v));
        if (count > most) {
            most = count;
            best = i;
        }
    }
    return best == UINT32_MAX ? "nothing" : sn_recording_where(rec, (sn_node){best}, text, size);
}

size_t sn_cache_left(const sn_share *share, size_t extra) {
    const size_t left = share->arena + extra;
    return share->missing < left ? left - share->missing : 0;
}

static snug_status refuse(const snug_recorder *r, const sn_recording *rec,
                          const sn_plan_floor *floor, size_t extra, snug_error *err) {
    sn_share own = r->share;
    const sn_share *share = &own;
    own.books -= floor->spilled_bytes < own.books ? floor->spilled_bytes : own.books;
    const size_t breath = r->hooks.collect ? BREATH : r->worker ? BREATH + WAITING * extra : 0;
    const size_t least = sn_share_budget(share, floor->bytes + breath);
    char have[24], need[24], arena[24], outputs[24], held[24], rest[24], value[320];
    return sn_fail(
        err, SNUG_E_BUDGET,
        "out of memory: this step (its largest value: %s) needs %s beside %s for its results; %s "
        "of the budget of %s is left, %s is held by tensors, variables and plans. The smallest "
        "budget for it is %s; or use a smaller batch, drop tensors that are no longer needed",
        sn_cache_largest(rec, value, sizeof value),
        snug_bytes_print(floor->bytes, arena, sizeof arena),
        snug_bytes_print(extra, outputs, sizeof outputs),
        snug_bytes_print(sn_cache_left(share, extra), rest, sizeof rest),
        snug_bytes_print(share->budget, have, sizeof have),
        snug_bytes_print(held_bytes(r), held, sizeof held),
        sn_bytes_print_up(least, need, sizeof need));
}

static snug_status find_donors(snug_recorder *r, sn_entry *e, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc(r->engine, SN_MEM_PLAN, sn_graph_n_outputs(e->graph) * sizeof *e->donor,
                      &block, err));
    e->donor = block;
    sn_plan_donors(e->plan, e->donor);
    return SNUG_OK;
}

/* The planner works in what is set aside, too: nobody makes anything of that meanwhile. Where it
 * has too little nevertheless, the arena of the last run goes first. */
static snug_status plan_here(snug_recorder *r, const sn_room_ask *ask, sn_entry *e,
                             sn_room_made *made, snug_error *err) {
    sn_plan_floor *const floor = ask->options.floor;
    sn_aside_lend(r->engine, 1);
    snug_status status = sn_room_plan(r->engine, ask, made, err);
    if (status == SNUG_E_BUDGET && floor->bytes == 0) {
        sn_executor_forget(r->executor);
        status = sn_room_plan(r->engine, ask, made, err);
    }
    if (status == SNUG_E_BUDGET && floor->bytes == 0)
        floor->bytes = sn_graph_n_nodes(e->graph) * WORK_BYTES;
    sn_aside_lend(r->engine, -1);
    return status;
}

static sn_fuse_options maps_of(const sn_recording *rec, const sn_entry *e) {
    return (sn_fuse_options){.device = e->side->device(rec->r),
                             .params = e->params,
                             .origin = e->origin,
                             .n_checked = rec->n_again};
}

/* The graph that the plan is of, and its maps; the other one was only to choose from. */
static snug_status keep_planned(const sn_recording *rec, sn_entry *e, sn_graph *wide,
                                snug_error *err) {
    const sn_fuse_options maps = maps_of(rec, e);
    sn_graph *again = wide;
    snug_status status = SNUG_OK;
    if (wide && e->plan->graph == wide) {
        status = sn_graph_fuse_updates(rec->graph, e->graph, &maps, &again, err);
        sn_graph_destroy(e->graph);
        e->graph = wide;
    }
    sn_graph_destroy(again);
    return status;
}

/* What lies in the file shall stay there. */
static snug_status note_asked(const sn_recording *rec, sn_entry *e, snug_error *err) {
    void *block;
    if (sn_recording_in_file(rec) == 0)
        return SNUG_OK;
    SNUG_TRY(sn_alloc_zero(rec->r->engine, SN_MEM_PLAN,
                           sn_graph_n_vars(e->graph) * sizeof *e->asked, &block, err));
    e->asked = block;
    for (uint32_t i = 0; i < rec->n_variable; i++)
        e->asked[i] = sn_variable_in_file(rec->variable[i]);
    return SNUG_OK;
}

/* Slots that are in the file stay there, so that plans of a training do not move them to and fro;
 * where that is not enough, the planner chooses anew. */
static snug_status plan_spilling(snug_recorder *r, const sn_recording *rec, sn_room_ask *ask,
                                 sn_entry *e, sn_room_made *made, snug_error *err) {
    snug_status status = SNUG_E_BUDGET;
    ask->options.may_spill = true;
    ask->options.file_is_there = r->file != NULL;
    ask->missing = r->share.missing;
    sn_executor_spill_to(r->executor, sn_engine_spill_folder(r->engine));
    SNUG_TRY(note_asked(rec, e, err));
    if (e->asked) {
        ask->options.spilled = e->asked;
        ask->options.if_they_can = true;
        status = e->side->plan(r, ask, e, made, err);
        ask->options.spilled = NULL;
    }
    return status == SNUG_E_BUDGET ? e->side->plan(r, ask, e, made, err) : status;
}

static snug_status make_plan(snug_recorder *r, const sn_recording *rec, size_t room, size_t extra,
                             sn_entry *e, const sn_graph *wide, snug_error *err) {
    const sn_device *device = e->side->device(r);
    sn_plan_floor floor = {0};
    sn_room_made made;
    sn_room_ask ask = {
        .graph = e->graph,
        .options = {.devices = &device, .n_devices = 1, .fused = wide, .floor = &floor},
        .room = room,
        .size = {.step_bytes = e->side->counts_steps ? sn_session_step_bytes(e->graph) : 0}};
    const snug_status status = room > 0 && sn_recorder_spills(r)
                                   ? plan_spilling(r, rec, &ask, e, &made, err)
                                   : e->side->plan(r, &ask, e, &made, err);
    if (status == SNUG_E_BUDGET)
        return e->side->refuse(r, rec, &floor, extra, err);
    SNUG_TRY(status);
    e->plan = made.plan;
    e->arena_limit = room_beside(r, made.limit, made.plan->spilled_bytes);
    return SNUG_OK;
}

static snug_status plan_entry(snug_recorder *r, const sn_recording *rec, size_t room, size_t extra,
                              sn_entry *e, snug_error *err) {
    const sn_fuse_options maps = maps_of(rec, e);
    sn_fuse_options no_maps = maps;
    no_maps.params = no_maps.origin = NULL;
    sn_graph *wide;
    SNUG_TRY(sn_graph_fuse_with(rec->graph, &maps, &e->graph, err));
    SNUG_TRY(sn_graph_fuse_updates(rec->graph, e->graph, &no_maps, &wide, err));
    const snug_status status = make_plan(r, rec, room, extra, e, wide, err);
    if (status != SNUG_OK) {
        sn_graph_destroy(wide);
        return status;
    }
    SNUG_TRY(keep_planned(rec, e, wide, err));
    SNUG_TRY(find_donors(r, e, err));
    return sn_executor_add(e->side->executor(r), e->plan, &e->session, err);
}

/* From the recording's slots, and to its nodes. */
static snug_status make_maps(const sn_recording *rec, sn_entry *e, snug_error *err) {
    snug_engine *engine = rec->r->engine;
    const uint32_t n_params = sn_graph_n_params(rec->graph);
    const uint32_t n_nodes = sn_graph_most_fused(rec->graph);
    void *block;
    SNUG_TRY(sn_alloc(engine, SN_MEM_PLAN, n_params * sizeof *e->params, &block, err));
    e->params = block;
    e->n_params = n_params;
    SNUG_TRY(sn_alloc(engine, SN_MEM_PLAN, n_nodes * sizeof *e->origin, &block, err));
    e->origin = block;
    e->n_origin = n_nodes;
    return SNUG_OK;
}

static snug_status make_entry(snug_recorder *r, const sn_recording *rec, const sn_side *side,
                              const key *k, size_t room, size_t extra, sn_entry **out,
                              snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(r->engine, SN_MEM_PLAN, sizeof **out, &block, err));
    sn_entry *e = block;
    const double start = seconds_now();
    e->side = side;
    snug_status status = make_maps(rec, e, err);
    if (status == SNUG_OK)
        status = plan_entry(r, rec, room, extra, e, err);
    if (status == SNUG_OK)
        status = sn_alloc(r->engine, SN_MEM_PLAN, k->n * sizeof *e->key, &block, err);
    if (status != SNUG_OK) {
        destroy_entry(r, e);
        return status;
    }
    e->key = memcpy(block, k->words, k->n * sizeof *e->key);
    e->key_words = k->n;
    e->hash = hash_of(k);
    e->next = r->entries;
    r->entries = e;
    r->n_entries++;
    r->info.plan_seconds += seconds_now() - start;
    *out = e;
    return SNUG_OK;
}

/* --- finding ---------------------------------------------------------------------------------- */
/* What is in the file stays there, or cannot in any plan. */
static bool leaves_files(const sn_entry *e, const sn_recording *rec) {
    for (uint32_t i = 0; rec->r->in_file && i < rec->n_variable; i++)
        if (sn_variable_in_file(rec->variable[i]) && !sn_plan_spills(e->plan, (sn_var){i}) &&
            !(e->asked && e->asked[i]))
            return false;
    return true;
}

/* Small enough, and made without a limit or for about this room. */
static bool serves(const sn_entry *e, const sn_recording *rec, size_t all) {
    const size_t limit = e->arena_limit, arena = arena_of(e);
    const size_t room = room_beside(rec->r, all, e->plan->spilled_bytes);
    if (!leaves_files(e, rec))
        return false;
    if (room == 0 || limit == room)
        return limit == room;
    if (arena > room || e->reserve > room - arena)
        return false;
    return limit == 0 || room < limit + limit / GROWTH_PART + MIB;
}

/* Plans of the host that are larger than their room, and an arena that is. */
static void drop_larger(snug_recorder *r, size_t room) {
    if (room == 0)
        return;
    sn_cache_keep(r, &sn_host_side, NULL, room + 1);
    if (sn_executor_arena(r->executor, SN_MEM_FIRST_ARENA).bytes > room)
        sn_executor_forget(r->executor);
}

static sn_entry *look_up(const sn_recording *rec, const key *k, size_t room) {
    const uint64_t hash = hash_of(k);
    for (sn_entry *e = rec->r->entries; e; e = e->next)
        if (e->hash == hash && e->key_words == k->n &&
            memcmp(e->key, k->words, k->n * sizeof *e->key) == 0 && serves(e, rec, room))
            return e;
    return NULL;
}

/* The first word in which the newest entry differs says what is new. */
static void explain_miss(snug_recorder *r, const sn_recording *rec, const key *k) {
    const sn_entry *near = r->entries;
    for (const sn_entry *e = r->entries; e; e = e->next)
        near = e->last_used > near->last_used ? e : near;
    size_t i = 0;
    while (near && i < k->n && i < near->key_words && k->words[i] == near->key[i])
        i++;
    if (!near)
        snprintf(r->miss, sizeof r->miss, "the first recording");
    else if (i == k->n && i == near->key_words)
        snprintf(r->miss, sizeof r->miss, "the room in the budget changed");
    else
        snprintf(r->miss, sizeof r->miss,
                 "%u nodes, %u leaves, %u outputs: differs from the newest plan at word %zu",
                 sn_graph_n_nodes(rec->graph), sn_graph_n_inputs(rec->graph),
                 sn_graph_n_outputs(rec->graph), i);
}

static snug_status find_entry(snug_recorder *r, const sn_recording *rec, const sn_side *side,
                              const key *k, size_t extra, sn_entry **out, snug_error *err) {
    size_t room;
    SNUG_TRY(side->find_room(r, rec, extra, &room, err));
    *out = look_up(rec, k, room);
    const size_t spilled = *out ? (*out)->plan->spilled_bytes : sn_recording_in_file(rec);
    side->keep_within(r, room_beside(r, room, spilled));
    r->info.n_hits += *out != NULL;
    if (*out)
        return SNUG_OK;
    explain_miss(r, rec, k);
    r->info.n_misses++;
    if (r->n_entries >= MAX_ENTRIES)
        evict_oldest(r);
    SNUG_TRY(make_entry(r, rec, side, k, room, extra, out, err));
    side->keep_within(r, room_beside(r, room, (*out)->plan->spilled_bytes));
    r->plans_to_come -= r->plans_to_come > 0;
    return SNUG_OK;
}

/* A plan may be the first that wants a library's code, which takes of the room: then it is brought
 * in, and room and plan are looked for once more. */
static snug_status find_warm(snug_recorder *r, const sn_recording *rec, const sn_side *side,
                             const key *k, size_t extra, sn_entry **out, snug_error *err) {
    const snug_status status = find_entry(r, rec, side, k, extra, out, err);
    if ((status != SNUG_OK && status != SNUG_E_BUDGET) || snug_budget_bytes(r->engine) == 0 ||
        !sn_lapack_is_cold())
        return status;
    SNUG_TRY(sn_lapack_warm(r->engine, err));
    return find_entry(r, rec, side, k, extra, out, err);
}

/* Of the process, with this plan and what is there already; or with the arena that was there before
 * the plan was looked for, which may have gone then. By half of an interpreter's arena it is wrong
 * either way. */
static void foresee(snug_recorder *r, const sn_entry *e, size_t extra, size_t before) {
    const size_t there = sn_executor_arena(r->executor, SN_MEM_FIRST_ARENA).bytes;
    const size_t arena = arena_of(e) > there ? arena_of(e) : there;
    const size_t away = sn_plan_spill_gain(e->plan->spilled_bytes, r->file != NULL);
    const size_t held = held_bytes(r), with = held + extra - away + arena;
    const size_t sum = r->share.expected + (with > held + before ? with : held + before) +
                       sn_process_tables(arena) + (r->hooks.collect ? OBJECTS / 2 : 0);
    size_t *const most = &r->info.predicted_peak_bytes;
    if (e->side->in_process && snug_budget_bytes(r->engine) > 0 && sum > *most)
        *most = sum;
}

snug_status sn_cache_find(snug_recorder *r, const sn_recording *rec, const sn_side *side,
                          size_t extra, sn_entry **out, snug_error *err) {
    const size_t before = sn_executor_arena(r->executor, SN_MEM_FIRST_ARENA).bytes;
    key k = {.engine = r->engine};
    snug_status status = write_key(rec, side, &k, err);
    if (status == SNUG_OK)
        status = find_warm(r, rec, side, &k, extra, out, err);
    if (status == SNUG_OK)
        (*out)->last_used = ++r->serial;
    if (status == SNUG_OK)
        foresee(r, *out, extra, before);
    if (status == SNUG_OK && r->judges)
        status = sn_fail(err, SNUG_E_INTERRUPTED, "the step would fit; it was only judged");
    sn_free(r->engine, SN_MEM_PLAN, k.words, k.cap * sizeof *k.words);
    return status;
}

bool sn_cache_has(snug_recorder *r, const sn_recording *rec, const sn_side *side, size_t extra) {
    key k = {.engine = r->engine};
    size_t room;
    snug_status status = write_key(rec, side, &k, NULL);
    if (status == SNUG_OK)
        status = side->find_room(r, rec, extra, &room, NULL);
    const bool has = status == SNUG_OK && look_up(rec, &k, room) != NULL;
    sn_free(r->engine, SN_MEM_PLAN, k.words, k.cap * sizeof *k.words);
    return has;
}

/* --- the host as a side ----------------------------------------------------------------------- */
static const sn_device *host_device(const snug_recorder *r) {
    return &r->device.device;
}

static sn_executor *host_executor(const snug_recorder *r) {
    return r->executor;
}

static unsigned char *host_bytes(const sn_storage *s) {
    return s->data;
}

static snug_status copy_part(snug_recorder *r, const sn_storage *from, size_t offset,
                             const sn_storage *to, snug_error *err) {
    return sn_storage_read(r, from, offset, to->data, to->bytes, err);
}

static bool reads_from_any(size_t offset) {
    (void)offset;
    return true;
}

static size_t as_many(const snug_recorder *r, size_t bytes) {
    (void)r;
    return bytes;
}

static void host_wrote(snug_recorder *r, sn_storage *s) {
    if (s->data)
        sn_storage_leave_card(r, s);
}

static bool copy_later(snug_recorder *r, const snug_type *type, const void *data,
                       snug_tensor **out) {
    (void)r, (void)type, (void)data, (void)out;
    return false;
}

static snug_status host_prepare(snug_recorder *r, const sn_entry *e, snug_error *err) {
    (void)e;
    return sn_executor_prepare(r->executor, err);
}

static void host_before(snug_recorder *r, sn_session *s) {
    (void)r;
    sn_session_set_meanwhile(s, NULL, NULL);
}

static void host_after(snug_recorder *r, bool went_well) {
    (void)r, (void)went_well;
}

const sn_side sn_host_side = {.counts_steps = true,
                              .in_process = true,
                              .keeps = true,
                              .device = host_device,
                              .executor = host_executor,
                              .bytes = host_bytes,
                              .create = sn_storage_create,
                              .bring = sn_storage_to_host,
                              .copy_part = copy_part,
                              .reads_from = reads_from_any,
                              .taken = as_many,
                              .wrote = host_wrote,
                              .copy = copy_later,
                              .find_room = find_room,
                              .keep_within = drop_larger,
                              .plan = plan_here,
                              .refuse = refuse,
                              .prepare = host_prepare,
                              .before = host_before,
                              .after = host_after};

/* --- what a caller says ----------------------------------------------------------------------- */
size_t snug_recorder_reserve(snug_recorder *r, size_t bytes, int n_plans) {
    if (!r)
        return 0;
    const size_t before = r->reserve_bytes;
    r->reserve_bytes = bytes;
    if (n_plans >= 0)
        r->plans_to_come = n_plans > 0 && n_plans < INT_MAX ? n_plans + 1 : 0;
    return before;
}

void snug_recorder_await(snug_recorder *r, int pipelines) {
    if (!r)
        return;
    r->awaits = pipelines != 0;
}

void snug_recorder_judge(snug_recorder *r, int judges) {
    if (!r)
        return;
    r->judges = judges != 0;
}

void snug_recorder_expect(snug_recorder *r, int n_slots) {
    if (!r)
        return;
    r->slots_to_come = n_slots > 0 ? n_slots : 0;
}

void snug_recorder_trim(snug_recorder *r) {
    if (!r)
        return;
    if (r->running)
        return;
    sn_storage_free_left(r);
    sn_cache_clear(r);
    sn_executor_forget(r->executor);
    sn_card_trim(r);
    if (snug_budget_bytes(r->engine) > 0)
        (void)sn_slots_make_way(r);
}
