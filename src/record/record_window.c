/* record_window.c: of a long recording that goes on from run to run for its tapes, what has come
 * since the last run. To look at all of it each time would be work that grows with the square: what
 * this run needs is copied into a recording of its own, where bytes of before are leaves.
 *
 *     want      what tapes will read of the new nodes
 *     need      new nodes that results come from, or that may refuse values
 *     copy      these, the oldest first
 *
 * What is written, or made again out of nodes of before, runs as a whole (record_flush.c). */
#include "record/recording.h"

#include <string.h>

typedef struct {
    const sn_recording *rec;
    sn_window *w;
    bool *wanted; /* per new value */
    bool *needed; /* per new node */
    bool reaches_back;
} window;

/* --- what is needed --------------------------------------------------------------------------- */
/* Much that is new is copied in as much work as all is looked at. */
static bool fits(const sn_recording *rec) {
    return rec->n_past > 0 && rec->n_again >= SN_LEAST_STAYING &&
           rec->n_nodes - rec->n_again <= rec->n_again / 2 && rec->r->n_open_tapes > 0 &&
           !rec->has_effects && !rec->has_versions && rec->n_echo == 0 &&
           rec->n_linked <= SN_MAX_LINKED;
}

/* Made by a node of before, and by nothing that could be asked instead. */
static bool is_gone(const sn_recording *rec, sn_value v) {
    sn_recipe recipe;
    return sn_graph_value_at(rec->graph, v)->node.i != UINT32_MAX &&
           !sn_value_ok(sn_recording_kept_leaf(rec, v)) && !sn_recording_recipe(rec, v, &recipe);
}

static void want(void *ctx, sn_value v) {
    window *x = ctx;
    if (v.i >= x->rec->n_past)
        x->wanted[v.i - x->rec->n_past] = true;
    else
        x->reaches_back |= is_gone(x->rec, v);
}

static bool is_result(const window *x, uint32_t v) {
    const sn_recording *rec = x->rec;
    const sn_value_info *info = sn_graph_value_at(rec->graph, (sn_value){v});
    sn_recipe recipe; /* stays one */
    return (rec->handle[v] || x->wanted[v - rec->n_past]) && info->node.i != UINT32_MAX &&
           info->var < 0 && !sn_recording_recipe(rec, (sn_value){v}, &recipe);
}

static snug_status list_results(window *x, snug_error *err) {
    const sn_recording *rec = x->rec;
    for (uint32_t v = rec->n_past; v < rec->n_values; v++) {
        if (!is_result(x, v))
            continue;
        sn_window *w = x->w;
        SNUG_TRY(sn_grow(rec->r->engine, SN_MEM_PLAN, &w->result, sizeof *w->result, &w->cap,
                         w->n + 1, err));
        w->result[w->n++] =
            (sn_result){.value = {v},
                        .held = rec->handle[v] != NULL,
                        .kept = x->wanted[v - rec->n_past] || sn_marks_open(rec->r, rec->tapes[v])};
        x->needed[sn_graph_value_at(rec->graph, (sn_value){v})->node.i - rec->n_again] = true;
    }
    return SNUG_OK;
}

static void need_operands(window *x) {
    const sn_graph *g = x->rec->graph;
    const uint32_t first = x->rec->n_again;
    for (uint32_t i = (uint32_t)x->rec->n_nodes; i-- > first;) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        x->needed[i - first] |= sn_ops[n->op].effect == SN_MAYFAIL;
        for (int k = 0; x->needed[i - first] && k < n->n_in; k++) {
            const sn_node maker = sn_graph_value_at(g, n->in[k])->node;
            if (maker.i != UINT32_MAX && maker.i >= first)
                x->needed[maker.i - first] = true;
            else
                x->reaches_back |= is_gone(x->rec, n->in[k]);
        }
    }
}

/* --- the copy --------------------------------------------------------------------------------- */
static sn_value *place_of(const window *x, sn_value v) {
    return &x->rec->place[v.i];
}

/* Bytes of before, a variable, or numbers to come. */
static snug_status bring(window *x, sn_value v, snug_error *err) {
    const sn_recording *rec = x->rec;
    sn_recording *part = x->w->part;
    const sn_value kept = sn_recording_kept_leaf(rec, v);
    const sn_value_info *info = sn_graph_value_at(rec->graph, sn_value_ok(kept) ? kept : v);
    sn_builder b = sn_builder_on(part->graph);
    sn_var var;
    sn_recipe recipe;
    if (info->kind == SN_VALUE_INPUT) {
        const sn_leaf *leaf = &rec->leaf[info->index];
        return sn_recording_bytes(part, &info->type, leaf->storage, leaf->offset, place_of(x, v),
                                  err);
    }
    if (info->var >= 0) {
        SNUG_TRY(sn_recording_variable(part, rec->variable[info->var], &var, err));
        *place_of(x, v) = sn_graph_var_at(part->graph, var)->first;
        return SNUG_OK;
    }
    if (!sn_recording_recipe(rec, v, &recipe))
        return sn_fail(err, SNUG_E_INTERNAL, "value %u of an earlier run is not there", v.i);
    *place_of(x, v) = sn_build_recipe(&b, &info->type, &recipe);
    SNUG_TRY(sn_builder_done(&b, err));
    return sn_recording_cover(part, err);
}

static snug_status copy_node(window *x, uint32_t i, snug_error *err) {
    const sn_recording *rec = x->rec;
    sn_recording *part = x->w->part;
    const sn_node_info *n = sn_graph_node_at(rec->graph, (sn_node){i});
    const sn_graph_move move = {rec->graph, part->graph, rec->place, rec->slot, true, false};
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    sn_attrs attrs;
    sn_attrs_copy(n->op, &n->attrs, &attrs);
    for (int k = 0; k < n->n_in; k++) {
        if (!sn_value_ok(*place_of(x, n->in[k])))
            SNUG_TRY(bring(x, n->in[k], err));
        in[k] = *place_of(x, n->in[k]);
    }
    SNUG_TRY(sn_graph_move_attrs(&move, n->op, &attrs, err));
    sn_graph_set_part(part->graph, n->part);
    SNUG_TRY(sn_graph_node(part->graph, n->op, &attrs, in, n->n_in, outs, NULL, err));
    for (int k = 0; k < n->n_out; k++)
        *place_of(x, n->out[k]) = outs[k];
    SNUG_TRY(sn_recording_cover(part, err));
    part->site[part->n_nodes - 1] = rec->site[i];
    return SNUG_OK;
}

/* Maps of all that the recording has, with nothing in them but while this copies. */
static snug_status widen_maps(sn_recording *rec, snug_error *err) {
    snug_engine *e = rec->r->engine;
    const size_t n_place = rec->cap_place, n_slot = rec->cap_slot;
    SNUG_TRY(sn_grow(e, SN_MEM_GRAPH, &rec->place, sizeof *rec->place, &rec->cap_place,
                     rec->n_values, err));
    memset(rec->place + n_place, 0xff, (rec->cap_place - n_place) * sizeof *rec->place);
    SNUG_TRY(sn_grow(e, SN_MEM_GRAPH, &rec->slot, sizeof *rec->slot, &rec->cap_slot,
                     sn_graph_n_params(rec->graph) + 1, err));
    memset(rec->slot + n_slot, 0xff, (rec->cap_slot - n_slot) * sizeof *rec->slot);
    return SNUG_OK;
}

static void clear_maps(const window *x) {
    const sn_recording *rec = x->rec;
    for (uint32_t i = rec->n_again; i < rec->n_nodes; i++) {
        const sn_node_info *n = sn_graph_node_at(rec->graph, (sn_node){i});
        const sn_attr_family *family = sn_ops[n->op].attrs;
        for (int k = 0; k < n->n_in; k++)
            *place_of(x, n->in[k]) = SN_NO_VALUE;
        for (int k = 0; k < n->n_out; k++)
            *place_of(x, n->out[k]) = SN_NO_VALUE;
        for (int f = 0; f < family->n_fields; f++)
            for (int k = 0; sn_field_is_param(&family->fields[f]) && k < family->fields[f].n; k++) {
                const int64_t slot = n->attrs.word[family->fields[f].word + k];
                if (slot >= 0)
                    rec->slot[slot] = UINT32_MAX;
            }
    }
}

static snug_status copy_needed(window *x, snug_error *err) {
    const sn_recording *rec = x->rec;
    SNUG_TRY(sn_recording_create(rec->r, &x->w->part, err));
    x->w->part->on_host = rec->on_host;
    for (uint32_t i = rec->n_again; i < rec->n_nodes; i++)
        if (x->needed[i - rec->n_again])
            SNUG_TRY(copy_node(x, i, err));
    for (size_t i = 0; i < x->w->n; i++)
        x->w->result[i].made = *place_of(x, x->w->result[i].value);
    return SNUG_OK;
}

static snug_status select_and_copy(window *x, snug_error *err) {
    sn_tape_wants(x->rec, x->rec->n_again, want, x);
    SNUG_TRY(list_results(x, err));
    need_operands(x);
    if (x->reaches_back)
        return SNUG_OK;
    const snug_status status = copy_needed(x, err);
    clear_maps(x);
    return status;
}

snug_status sn_window_open(sn_recording *rec, sn_window *w, snug_error *err) {
    window x = {.rec = rec, .w = w};
    snug_engine *e = rec->r->engine;
    void *wanted = NULL, *needed = NULL;
    if (!fits(rec))
        return SNUG_OK;
    const size_t n_values = rec->n_values - rec->n_past, n_nodes = rec->n_nodes - rec->n_again;
    SNUG_TRY(widen_maps(rec, err));
    snug_status status = sn_alloc_zero(e, SN_MEM_PLAN, n_values + 1, &wanted, err);
    if (status == SNUG_OK)
        status = sn_alloc_zero(e, SN_MEM_PLAN, n_nodes + 1, &needed, err);
    if (status == SNUG_OK) {
        x.wanted = wanted;
        x.needed = needed;
        status = select_and_copy(&x, err);
    }
    sn_free(e, SN_MEM_PLAN, needed, needed ? n_nodes + 1 : 0);
    sn_free(e, SN_MEM_PLAN, wanted, wanted ? n_values + 1 : 0);
    return status;
}

void sn_window_close(snug_recorder *r, sn_window *w) {
    sn_recording_destroy(w->part);
    sn_free(r->engine, SN_MEM_PLAN, w->result, w->cap * sizeof *w->result);
    *w = (sn_window){.n = 0};
}
