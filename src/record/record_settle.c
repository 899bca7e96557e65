/* record_settle.c: what comes after a run. Handles get their bytes; and under open tapes either the
 * nodes that they see move to the fresh recording, or the recording that ran goes on with them. */
#include "record/recording.h"

/* --- settling --------------------------------------------------------------------------------- */
/* stored: where the bytes of a value are that a node made; NULL: nowhere. */
static void settle_handle(const sn_ran *u, snug_tensor *t, const sn_leaf *stored) {
    const sn_recording *rec = u->whole;
    const sn_value_info *info = sn_graph_value_at(rec->graph, t->value);
    const uint32_t mask = rec->tapes[t->value.i];
    const sn_leaf *at = info->kind == SN_VALUE_INPUT ? &rec->leaf[info->index] : stored;
    sn_recipe recipe;
    if (sn_recording_recipe(rec, t->value, &recipe) && t->stamp == u->fresh->serial) {
        sn_recording_unlink(t); /* a tape took the node along */
        sn_recording_link(u->fresh, t, t->leaf);
        return;
    }
    if (sn_recording_recipe(rec, t->value, &recipe)) {
        sn_tensor_make_recipe(t, &recipe);
    } else if (at && at->storage) {
        sn_storage_hold(at->storage);
        sn_tensor_make_ready(t, at->storage, at->offset);
        t->id = info->kind == SN_VALUE_INPUT ? at->id : t->id;
    } else {
        sn_tensor_make_version(t, rec->variable[info->var]);
    }
    sn_tensor_see(t, mask);
    t->marked = u->whole->r->serial;
}

/* stored: per value, or NULL. */
static void settle(const sn_ran *u, const sn_leaf *stored) {
    for (size_t v = 0; v < u->whole->n_values; v++)
        while (u->whole->handle[v])
            settle_handle(u, u->whole->handle[v], stored ? &stored[v] : NULL);
}

/* --- staying ---------------------------------------------------------------------------------- */
/* Whether tapes see most of it. Who looks each time it has doubled has not looked at much. */
static bool is_seen(const sn_ran *u) {
    sn_recording *rec = u->whole;
    if (u->window->part && rec->n_nodes < 2 * (size_t)rec->n_looked)
        return true;
    rec->n_looked = (uint32_t)rec->n_nodes;
    const uint32_t n_seen = u->window->part ? sn_tape_wants(rec, 0, NULL, NULL) : u->n_seen;
    return n_seen > rec->n_nodes / 2;
}

/* Of many values under tapes: to move the nodes would be as much work as to record them was. What
 * is recorded meanwhile stands elsewhere, and what no tape sees would stay with the rest. */
bool sn_ran_may_stay(const sn_ran *u) {
    sn_recording *rec = u->whole;
    return rec->r->n_open_tapes > 0 && u->fresh->n_values == 0 &&
           rec->n_nodes >= SN_LEAST_STAYING && !rec->has_effects && !rec->has_versions &&
           rec->n_echo == 0 && is_seen(u);
}

/* What is a recipe stays pending: it never has bytes. */
static void settle_here(const sn_ran *u, sn_value v, const sn_leaf *at) {
    const sn_recording *rec = u->whole;
    sn_recipe recipe;
    while (rec->handle[v.i] && !sn_recording_recipe(rec, v, &recipe))
        settle_handle(u, rec->handle[v.i], at);
}

snug_status sn_ran_stay(const sn_ran *u, snug_error *err) {
    sn_recording *rec = u->whole;
    const uint32_t first = u->window->part ? rec->n_past : 0, n_values = (uint32_t)rec->n_values;
    const size_t n_linked = u->window->part ? rec->n_linked : 0;
    for (size_t i = 0; i < u->window->n; i++) {
        const sn_result *result = &u->window->result[i];
        const sn_leaf *at = &u->stored[result->made.i];
        if (result->kept)
            SNUG_TRY(sn_tape_stand_in(rec, result->value, at, err));
        if (result->held)
            settle_here(u, result->value, at);
    }
    for (size_t i = 0; i < n_linked; i++)
        settle_here(u, rec->linked[i], NULL);
    for (uint32_t v = first; v < n_values; v++)
        if (rec->handle[v])
            settle_here(u, (sn_value){v}, NULL);
    if (!u->window->part && u->direct) {
        rec->n_tiny_nodes = (uint32_t)rec->n_nodes;
        rec->n_tiny_values = (uint32_t)rec->n_values;
    }
    return sn_tape_stay(rec, u->direct, err);
}

/* --- moving ----------------------------------------------------------------------------------- */
/* Tapes take their nodes along, and handles get their bytes. */
static snug_status move_on(const sn_ran *u, const sn_leaf *stored, snug_error *err) {
    if (u->whole->r->n_open_tapes > 0)
        SNUG_TRY(sn_tape_keep(u->whole, stored, u->fresh, err));
    settle(u, stored);
    u->fresh->n_linked = 0; /* nodes that were taken along */
    return SNUG_OK;
}

/* The same where a part has run: by value of the whole. */
static snug_status move_part_on(const sn_ran *u, snug_error *err) {
    snug_engine *e = u->whole->r->engine;
    const size_t bytes = u->whole->n_values * sizeof *u->stored;
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_PLAN, bytes, &block, err));
    sn_leaf *stored = block;
    for (size_t i = 0; i < u->window->n; i++)
        stored[u->window->result[i].value.i] = u->stored[u->window->result[i].made.i];
    const snug_status status = move_on(u, stored, err);
    sn_free(e, SN_MEM_PLAN, block, bytes);
    return status;
}

snug_status sn_ran_move(const sn_ran *u, snug_error *err) {
    return u->window->part ? move_part_on(u, err) : move_on(u, u->stored, err);
}
