/* record_keep.c: tapes across runs. A run under an open tape keeps what gradient rules will read,
 * and takes the nodes themselves along into the next recording, where leaves stand in for what has
 * bytes. */
#include "record/recording.h"

#include <string.h>

/* --- across runs ------------------------------------------------------------------------------ */
static bool is_seen(const sn_recording *rec, const sn_node_info *n) {
    for (int k = 0; k < n->n_out; k++)
        if (sn_marks_open(rec->r, rec->tapes[n->out[k].i]))
            return true;
    return false;
}

/* Reading bytes only a device knows means running the node again. */
static bool reads_opaque(const sn_graph *g, const sn_node_info *n) {
    for (int k = 0; k < n->n_out; k++)
        if ((sn_ops[n->op].reads & SN_READS_OUT(k)) &&
            sn_graph_type(g, n->out[k])->dtype == SNUG_OPAQUE)
            return true;
    return false;
}

/* Not where its node is run again, or its leaf is there. */
static bool has_to_stay(const sn_recording *rec, sn_value v) {
    return sn_graph_type(rec->graph, v)->dtype != SNUG_OPAQUE &&
           (rec->n_kept == 0 || !sn_value_ok(sn_recording_kept_leaf(rec, v)));
}

uint32_t sn_tape_wants(const sn_recording *rec, uint32_t first, void (*want)(void *ctx, sn_value v),
                       void *ctx) {
    uint32_t n_seen = 0;
    const sn_graph *g = rec->graph;
    for (uint32_t i = first; rec->r->n_open_tapes > 0 && i < rec->n_nodes; i++) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        if (!is_seen(rec, n))
            continue;
        n_seen++;
        const bool all = reads_opaque(g, n);
        const uint32_t reads = sn_ops[n->op].reads;
        for (int k = 0; want && k < n->n_in; k++)
            if ((all || (k < 16 && (reads & SN_READS_IN(k)))) && has_to_stay(rec, n->in[k]))
                want(ctx, n->in[k]);
        for (int k = 0; want && k < n->n_out; k++)
            if ((reads & SN_READS_OUT(k)) && has_to_stay(rec, n->out[k]))
                want(ctx, n->out[k]);
    }
    return n_seen;
}

/* One flush's way of old values into the fresh recording. */
typedef struct {
    const sn_recording *from;
    sn_recording *to;
    const sn_leaf *stored;
    sn_value *map;   /* per old value; SN_NO_VALUE: not there yet */
    sn_value *read;  /* per old value: its stand-in, or SN_NO_VALUE */
    uint32_t *param; /* per old slot */
} keeper;

/* Gradients by a variable are asked for by its name, also of a version that is gone. */
static void note_version(keeper *k, sn_value v, const sn_value_info *info) {
    const sn_value_info *made = sn_graph_value_at(k->to->graph, k->map[v.i]);
    snug_variable *of = info->var >= 0                 ? k->from->variable[info->var]
                        : info->kind == SN_VALUE_INPUT ? k->from->leaf[info->index].variable
                                                       : NULL;
    if (!of || made->kind != SN_VALUE_INPUT)
        return;
    sn_variable_use(of);
    k->to->leaf[made->index].variable = of;
    k->to->has_versions = true;
}

/* Handles of a value find it in the fresh recording, and in those after it. */
static void point_handles(keeper *k, sn_value old, sn_value made) {
    const sn_value_info *info = sn_graph_value_at(k->to->graph, made);
    const uint64_t id = ++k->to->r->serial;
    for (snug_tensor *t = k->from->handle[old.i]; t; t = t->twin) {
        t->stamp = k->to->serial;
        t->leaf = made;
        t->id = id;
    }
    if (info->kind == SN_VALUE_INPUT)
        k->to->leaf[info->index].id = id;
}

/* An operand that no node taken along makes: bytes, a variable, or nothing that anyone reads. */
static snug_status bring(keeper *k, sn_value v, snug_error *err) {
    const sn_graph *g = k->from->graph;
    const sn_value_info *info = sn_graph_value_at(g, v);
    const sn_leaf *at = info->kind == SN_VALUE_INPUT ? &k->from->leaf[info->index]
                        : k->stored                  ? &k->stored[v.i]
                                                     : NULL;
    sn_var var;
    sn_recipe recipe;
    if (sn_recording_recipe(k->from, v, &recipe)) {
        sn_builder b = sn_builder_on(k->to->graph);
        k->map[v.i] = sn_build_recipe(&b, &info->type, &recipe);
        SNUG_TRY(sn_builder_done(&b, err));
        SNUG_TRY(sn_recording_cover(k->to, err));
        point_handles(k, v, k->map[v.i]);
    } else if (info->var >= 0 && sn_graph_var_at(g, (sn_var){(uint32_t)info->var})->last.i == v.i) {
        SNUG_TRY(sn_recording_variable(k->to, k->from->variable[info->var], &var, err));
        k->map[v.i] = sn_graph_var_at(k->to->graph, var)->first;
    } else {
        SNUG_TRY(sn_recording_bytes(k->to, &info->type, at ? at->storage : NULL,
                                    at ? at->offset : 0, &k->map[v.i], err));
        point_handles(k, v, k->map[v.i]);
        if (info->kind == SN_VALUE_INPUT)
            k->to->leaf[k->to->n_leaf - 1].id = at->id;
    }
    SNUG_TRY(sn_marks_add(k->to->r, &k->to->tapes[k->map[v.i].i], k->from->tapes[v.i], err));
    note_version(k, v, info);
    return SNUG_OK;
}

/* --- stand-ins -------------------------------------------------------------------------------- */
snug_status sn_recording_reserve_kin(sn_recording *rec, size_t n_values, snug_error *err) {
    const size_t before = rec->cap_kin;
    if (n_values <= before)
        return SNUG_OK;
    SNUG_TRY(sn_grow(rec->r->engine, SN_MEM_GRAPH, &rec->kin, sizeof *rec->kin, &rec->cap_kin,
                     n_values, err));
    memset(rec->kin + before, 0, (rec->cap_kin - before) * sizeof *rec->kin);
    return SNUG_OK;
}

void sn_recording_note_kin(sn_recording *rec, uint32_t i) {
    rec->kin[rec->kept[i].leaf.i].as_leaf = i + 1;
    rec->kin[rec->kept[i].value.i].as_value = i + 1;
}

sn_value sn_recording_kept_leaf(const sn_recording *rec, sn_value v) {
    const uint32_t i = v.i < rec->cap_kin ? rec->kin[v.i].as_value - 1 : UINT32_MAX;
    return i < rec->n_kept && rec->kept[i].value.i == v.i ? rec->kept[i].leaf : SN_NO_VALUE;
}

sn_value sn_recording_kept_value(const sn_recording *rec, sn_value leaf) {
    const uint32_t i = leaf.i < rec->cap_kin ? rec->kin[leaf.i].as_leaf - 1 : UINT32_MAX;
    return i < rec->n_kept && rec->kept[i].leaf.i == leaf.i ? rec->kept[i].value : SN_NO_VALUE;
}

snug_status sn_recording_keep(sn_recording *rec, sn_kept kept, snug_error *err) {
    SNUG_TRY(sn_grow(rec->r->engine, SN_MEM_GRAPH, &rec->kept, sizeof *rec->kept, &rec->cap_kept,
                     rec->n_kept + 1, err));
    SNUG_TRY(sn_recording_reserve_kin(rec, sn_graph_n_values(rec->graph), err));
    rec->kept[rec->n_kept] = kept;
    sn_recording_note_kin(rec, (uint32_t)rec->n_kept++);
    return SNUG_OK;
}

/* The outputs that have bytes get stand-ins. */
static snug_status stand_in(keeper *k, sn_value old, snug_error *err) {
    sn_recording *to = k->to;
    const sn_leaf *at = k->stored ? &k->stored[old.i] : NULL;
    sn_value leaf;
    if (!at || !at->storage)
        return SNUG_OK;
    SNUG_TRY(sn_recording_bytes(to, sn_graph_type(k->from->graph, old), at->storage, at->offset,
                                &leaf, err));
    SNUG_TRY(sn_recording_keep(to, (sn_kept){k->map[old.i], leaf}, err));
    to->tapes[leaf.i] = k->from->tapes[old.i];
    k->read[old.i] = leaf;
    point_handles(k, old, leaf);
    return SNUG_OK;
}

static snug_status keep_node(keeper *k, const sn_node_info *n, snug_error *err) {
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    sn_attrs attrs;
    sn_attrs_copy(n->op, &n->attrs, &attrs);
    int n_outs;
    for (int i = 0; i < n->n_in; i++) {
        if (!sn_value_ok(k->map[n->in[i].i]))
            SNUG_TRY(bring(k, n->in[i], err));
        in[i] = sn_value_ok(k->read[n->in[i].i]) ? k->read[n->in[i].i] : k->map[n->in[i].i];
    }
    const sn_graph_move move = {k->from->graph, k->to->graph, k->map, k->param, true, false};
    SNUG_TRY(sn_graph_move_attrs(&move, n->op, &attrs, err));
    SNUG_TRY(sn_graph_node(k->to->graph, n->op, &attrs, in, n->n_in, outs, &n_outs, err));
    SNUG_TRY(sn_recording_cover(k->to, err));
    sn_recipe recipe;
    for (int i = 0; i < n_outs; i++) {
        k->map[n->out[i].i] = outs[i];
        k->to->tapes[outs[i].i] = k->from->tapes[n->out[i].i];
        if (sn_recording_recipe(k->from, n->out[i], &recipe)) /* watched: it never has bytes */
            point_handles(k, n->out[i], outs[i]);
    }
    for (int i = 0; i < n_outs; i++)
        SNUG_TRY(stand_in(k, n->out[i], err));
    return SNUG_OK;
}

/* Stand-ins of before stay what they are. */
static snug_status keep_old(keeper *k, snug_error *err) {
    for (size_t i = 0; i < k->from->n_kept; i++) {
        const sn_kept old = k->from->kept[i];
        if (!sn_value_ok(k->map[old.value.i]))
            continue;
        if (!sn_value_ok(k->map[old.leaf.i]))
            SNUG_TRY(bring(k, old.leaf, err));
        const sn_kept kept = {k->map[old.value.i], k->map[old.leaf.i]};
        SNUG_TRY(sn_recording_keep(k->to, kept, err));
    }
    return SNUG_OK;
}

/* Only to be found by gradients: readers of now get others. */
static snug_status keep_echoes(keeper *k, snug_error *err) {
    for (size_t i = 0; i < k->from->n_echo; i++) {
        const sn_echo *e = &k->from->echo[i];
        const sn_value now = k->map[e->value.i];
        if (sn_value_ok(now) && sn_marks_open(k->from->r, k->from->tapes[e->value.i]))
            SNUG_TRY(sn_recording_echo(k->to, &(sn_echo){now, SN_NO_VALUE, e->variable}, err));
    }
    return SNUG_OK;
}

/* Versions that are gone, as long as handles have them: who reads one reads the variable. */
static snug_status keep_versions(keeper *k, snug_error *err) {
    const sn_recording *from = k->from;
    if (from->n_variable == 0 && !from->has_versions)
        return SNUG_OK;
    for (uint32_t i = 0; i < from->n_values; i++) {
        const sn_value_info *info = sn_graph_value_at(from->graph, (sn_value){i});
        const sn_leaf *leaf = info->kind == SN_VALUE_INPUT ? &from->leaf[info->index] : NULL;
        const bool older =
            leaf ? leaf->variable && leaf->storage && leaf->storage->refs > 1
                 : info->var >= 0 && from->handle[i] &&
                       sn_graph_var_at(from->graph, (sn_var){(uint32_t)info->var})->last.i != i;
        if (older && sn_marks_open(from->r, from->tapes[i]) && !sn_value_ok(k->map[i]))
            SNUG_TRY(bring(k, (sn_value){i}, err));
    }
    return SNUG_OK;
}

/* How much of the fresh recording there was before a node of the old one, which has n. */
typedef struct {
    uint32_t node, value;
} place;

/* What a tape may have seen begins and ends where it did. */
static void move_ends(const keeper *k, const place *at) {
    for (snug_tape *t = k->to->r->tapes; t; t = t->next) {
        if (t->born_in == k->from->serial) {
            const place first = at[t->first_node];
            t->born_in = k->to->serial;
            t->first_node = first.node;
            t->first_value = first.value;
        }
        if (t->end_in == k->from->serial) {
            const place end = at[t->end_node];
            t->end_in = k->to->serial;
            t->end_node = end.node;
            t->end_value = end.value;
        }
    }
}

static snug_status keep_nodes(keeper *k, snug_error *err) {
    const sn_recording *rec = k->from;
    const size_t bytes = (rec->n_nodes + 1) * sizeof(place);
    snug_status status = SNUG_OK;
    void *block;
    SNUG_TRY(sn_alloc(rec->r->engine, SN_MEM_TAPES, bytes, &block, err));
    place *at = block;
    for (uint32_t i = 0; status == SNUG_OK && i <= rec->n_nodes; i++) {
        at[i] = (place){sn_graph_n_nodes(k->to->graph), sn_graph_n_values(k->to->graph)};
        if (i == rec->n_nodes)
            break;
        const sn_node_info *n = sn_graph_node_at(rec->graph, (sn_node){i});
        if (sn_ops[n->op].effect != SN_STATE && is_seen(rec, n))
            status = keep_node(k, n, err);
    }
    if (status == SNUG_OK)
        move_ends(k, at);
    sn_free(rec->r->engine, SN_MEM_TAPES, block, bytes);
    return status;
}

snug_status sn_tape_keep(const sn_recording *rec, const sn_leaf *stored, sn_recording *fresh,
                         snug_error *err) {
    const size_t value_bytes = 2 * rec->n_values * sizeof(sn_value),
                 param_bytes = sn_graph_n_params(rec->graph) * sizeof(uint32_t);
    keeper k = {.from = rec, .to = fresh, .stored = stored};
    void *map = NULL, *param = NULL;
    const bool alone = fresh->n_values == 0;
    snug_status status = sn_alloc(rec->r->engine, SN_MEM_TAPES, value_bytes, &map, err);
    if (status == SNUG_OK)
        status = sn_alloc(rec->r->engine, SN_MEM_TAPES, param_bytes, &param, err);
    if (status == SNUG_OK) {
        k.map = memset(map, 0xff, value_bytes);
        k.read = k.map + rec->n_values;
        k.param = memset(param, 0xff, param_bytes);
    }
    if (status == SNUG_OK)
        status = keep_nodes(&k, err);
    if (status == SNUG_OK)
        status = keep_old(&k, err);
    if (status == SNUG_OK)
        status = keep_versions(&k, err);
    if (status == SNUG_OK)
        status = keep_echoes(&k, err);
    fresh->n_brought = fresh->n_leaf;
    fresh->n_again = sn_graph_n_nodes(fresh->graph);
    fresh->n_past = alone ? (uint32_t)fresh->n_values : 0;
    fresh->n_looked = fresh->n_again;
    sn_free(rec->r->engine, SN_MEM_TAPES, param, param ? param_bytes : 0);
    sn_free(rec->r->engine, SN_MEM_TAPES, map, map ? value_bytes : 0);
    return status;
}

/* --- in place --------------------------------------------------------------------------------- */
/* Gradients read the bytes; so does who has a handle, from now on. */
snug_status sn_tape_stand_in(sn_recording *rec, sn_value v, const sn_leaf *at, snug_error *err) {
    sn_value leaf;
    SNUG_TRY(sn_recording_stand_in(rec, v, at->storage, at->offset, &leaf, err));
    for (snug_tensor *t = rec->handle[v.i]; t; t = t->twin) {
        t->stamp = rec->serial;
        t->leaf = leaf;
        t->id = rec->leaf[rec->n_leaf - 1].id;
    }
    return SNUG_OK;
}

/* --- what no tape needs any more -------------------------------------------------------------- */
/* Per value from `from` on: whether a handle, an open tape or an effect needs it. */
static void mark_live(const sn_recording *rec, place from, bool *live) {
    const sn_graph *g = rec->graph;
    for (size_t v = from.value; v < rec->n_values; v++)
        live[v - from.value] = rec->handle[v] || sn_marks_open(rec->r, rec->tapes[v]);
    for (uint32_t i = (uint32_t)rec->n_nodes; i-- > from.node;) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        const sn_effect effect = sn_ops[n->op].effect;
        bool needed = effect == SN_STATE || (effect == SN_MAYFAIL && i >= rec->n_again);
        for (int k = 0; k < n->n_out; k++)
            needed = needed || live[n->out[k].i - from.value];
        for (int k = 0; k < n->n_out; k++) /* whole numbers carry no mark */
            if ((sn_ops[n->op].reads & SN_READS_OUT(k)) && !live[n->out[k].i - from.value])
                live[n->out[k].i - from.value] = is_seen(rec, n);
        for (int k = 0; needed && k < n->n_in; k++)
            if (n->in[k].i >= from.value)
                live[n->in[k].i - from.value] = true;
    }
    for (size_t i = rec->n_kept; i-- > 0 && rec->kept[i].leaf.i >= from.value;) {
        const uint32_t value = rec->kept[i].value.i; /* nodes that stayed read this */
        live[rec->kept[i].leaf.i - from.value] |= value < from.value || live[value - from.value];
    }
}

/* Leaves from `first` on are values from there on, too. */
static snug_status prune_from(sn_recording *rec, place from, size_t first, snug_error *err) {
    void *live;
    const size_t n_values = rec->n_values - from.value;
    SNUG_TRY(sn_alloc(rec->r->engine, SN_MEM_TAPES, n_values * sizeof(bool), &live, err));
    mark_live(rec, from, live);
    for (uint32_t i = (uint32_t)first; i < rec->n_brought; i++) {
        sn_leaf *leaf = &rec->leaf[i];
        if (((bool *)live)[sn_graph_input_at(rec->graph, i).i - from.value])
            continue;
        sn_storage_drop(rec->r, leaf->storage);
        if (leaf->variable)
            sn_variable_unuse(leaf->variable);
        *leaf = (sn_leaf){.storage = NULL};
    }
    sn_free(rec->r->engine, SN_MEM_TAPES, live, n_values * sizeof(bool));
    return SNUG_OK;
}

/* A leaf without bytes is one that nobody reads. */
snug_status sn_tape_prune(sn_recording *rec, snug_error *err) {
    return prune_from(rec, (place){0}, 0, err);
}

/* --- what was of a run ------------------------------------------------------------------------ */
snug_status sn_tape_stay(sn_recording *rec, bool tiny, snug_error *err) {
    const place from = {rec->n_again, rec->n_past};
    const size_t first = from.value > 0 ? rec->n_brought : 0;
    rec->n_brought = rec->n_leaf;
    rec->n_again = (uint32_t)rec->n_nodes;
    rec->n_past = (uint32_t)rec->n_values;
    rec->n_linked = 0;
    rec->held_bytes = rec->largest_held = 0;
    return tiny ? SNUG_OK : prune_from(rec, from.value > 0 ? from : (place){0}, first, err);
}
