/* record.c: recordings, and appending to one. The recorder itself: recorder.c.
 *
 * A call marks where the graph ends, brings its operands in, builds, and ends: then handles, tapes
 * and sites are noted for what was appended. An error cuts the graph back to the mark. */
#include "record/recording.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>

#define SPARE_NODES 4096
/* Going through an element of memory takes as long as so many operations of a product. */
#define ELEMENT_WORK 16

/* --- recordings ------------------------------------------------------------------------------- */
static snug_status make_recording(snug_recorder *r, sn_recording **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(r->engine, SN_MEM_GRAPH, sizeof **out, &block, err));
    sn_recording *rec = block;
    rec->r = r;
    const snug_status status = sn_graph_create(r->engine, &rec->graph, err);
    if (status != SNUG_OK) {
        sn_free(r->engine, SN_MEM_GRAPH, rec, sizeof *rec);
        return status;
    }
    sn_graph_set_outside(rec->graph);
    *out = rec;
    return SNUG_OK;
}

snug_status sn_recording_create(snug_recorder *r, sn_recording **out, snug_error *err) {
    if (r->spare) {
        *out = r->spare;
        r->spare = NULL;
    } else {
        SNUG_TRY(make_recording(r, out, err));
    }
    (*out)->serial = ++r->serial;
    return SNUG_OK;
}

static void drop_leaves(sn_recording *rec, size_t first) {
    for (size_t i = first; i < rec->n_leaf; i++) {
        sn_storage_drop(rec->r, rec->leaf[i].storage);
        snug_tensor_drop(rec->leaf[i].capture);
        if (rec->leaf[i].variable)
            sn_variable_unuse(rec->leaf[i].variable);
    }
    rec->n_leaf = first < rec->n_leaf ? first : rec->n_leaf;
}

static void drop_variables(sn_recording *rec, size_t first) {
    for (size_t i = first; i < rec->n_variable; i++)
        sn_variable_unuse(rec->variable[i]);
    rec->n_variable = first < rec->n_variable ? first : rec->n_variable;
}

/* What it holds of others. */
static void let_go(sn_recording *rec) {
    for (size_t v = 0; v < rec->n_values; v++) /* of a trace: they never get bytes */
        while (rec->handle[v])
            sn_tensor_poison(rec->handle[v], NULL);
    drop_leaves(rec, 0);
    drop_variables(rec, 0);
    sn_recording_drop_echoes(rec, 0);
    for (size_t i = 0; i < rec->n_hosts; i++)
        if (rec->hosts[i].drop)
            rec->hosts[i].drop(rec->hosts[i].ctx);
}

static void free_recording(sn_recording *rec) {
    snug_engine *e = rec->r->engine;
    sn_graph_destroy(rec->graph);
    sn_free(e, SN_MEM_GRAPH, rec->handle, rec->cap_handle * sizeof *rec->handle);
    sn_free(e, SN_MEM_GRAPH, rec->tapes, rec->cap_tapes * sizeof *rec->tapes);
    sn_free(e, SN_MEM_GRAPH, rec->site, rec->cap_site * sizeof *rec->site);
    sn_free(e, SN_MEM_GRAPH, rec->leaf, rec->cap_leaf * sizeof *rec->leaf);
    sn_free(e, SN_MEM_GRAPH, rec->variable, rec->cap_variable * sizeof *rec->variable);
    sn_free(e, SN_MEM_GRAPH, rec->kin, rec->cap_kin * sizeof *rec->kin);
    sn_free(e, SN_MEM_GRAPH, rec->kept, rec->cap_kept * sizeof *rec->kept);
    sn_free(e, SN_MEM_GRAPH, rec->place, rec->cap_place * sizeof *rec->place);
    sn_free(e, SN_MEM_GRAPH, rec->slot, rec->cap_slot * sizeof *rec->slot);
    sn_free(e, SN_MEM_GRAPH, rec->echo, rec->cap_echo * sizeof *rec->echo);
    sn_free(e, SN_MEM_GRAPH, rec->asked, rec->cap_asked * sizeof *rec->asked);
    sn_free(e, SN_MEM_GRAPH, rec->hosts, rec->cap_hosts * sizeof *rec->hosts);
    sn_free(e, SN_MEM_GRAPH, rec, sizeof *rec);
}

void sn_recording_drop_spare(snug_recorder *r) {
    if (r->spare)
        free_recording(r->spare);
    r->spare = NULL;
}

/* A small one waits to be used again: a loop makes one after the other. */
void sn_recording_destroy(sn_recording *rec) {
    snug_error none;
    if (!rec)
        return;
    snug_recorder *r = rec->r;
    const bool small = rec->n_nodes <= SPARE_NODES && sn_graph_n_nodes(rec->graph) <= SPARE_NODES;
    let_go(rec);
    if (r->spare || rec->outer || !small || sn_graph_clear(rec->graph, &none) != SNUG_OK) {
        free_recording(rec);
        return;
    }
    rec->n_values = rec->n_nodes = rec->n_kept = rec->n_asked = rec->n_hosts = 0;
    rec->n_brought = rec->looked = 0;
    rec->n_again = rec->n_tiny_nodes = rec->n_tiny_values = 0;
    rec->n_past = rec->n_looked = rec->n_linked = 0;
    rec->held_bytes = rec->largest_held = 0;
    rec->has_effects = rec->on_host = rec->has_versions = false;
    rec->work = 0;
    r->spare = rec;
}

void sn_recording_link(sn_recording *rec, snug_tensor *t, sn_value v) {
    t->rec = rec;
    t->value = v;
    t->twin = rec->handle[v.i];
    rec->handle[v.i] = t;
    if (v.i < rec->n_past && rec->n_linked++ < SN_MAX_LINKED)
        rec->linked[rec->n_linked - 1] = v;
}

void sn_recording_unlink(snug_tensor *t) {
    snug_tensor **link = &t->rec->handle[t->value.i];
    while (*link != t)
        link = &(*link)->twin;
    *link = t->twin;
    t->rec = NULL;
}

#define GROW(rec, array, need, err)                                                                \
    sn_grow((rec)->r->engine, SN_MEM_GRAPH, &(rec)->array, sizeof *(rec)->array,                   \
            &(rec)->cap_##array, (need), (err))

/* A long recording gets all it may need at once: pages that are copied are new ones each time. */
static size_t room_for(size_t n) {
    return n > 2 * SPARE_NODES && n < SN_MAX_RECORDED ? SN_MAX_RECORDED : n;
}

/* Room for all values and nodes of the graph, zeroed. */
snug_status sn_recording_cover(sn_recording *rec, snug_error *err) {
    const size_t n_values = sn_graph_n_values(rec->graph), n_nodes = sn_graph_n_nodes(rec->graph);
    if (n_values > rec->cap_handle || n_values > rec->cap_tapes || n_nodes > rec->cap_site) {
        SNUG_TRY(GROW(rec, handle, room_for(n_values), err));
        SNUG_TRY(GROW(rec, tapes, room_for(n_values), err));
        SNUG_TRY(GROW(rec, site, room_for(n_nodes), err));
    }
    if (n_values == rec->n_values + 1) { /* nearly always */
        rec->handle[rec->n_values] = NULL;
        rec->tapes[rec->n_values] = 0;
    } else if (n_values > rec->n_values) {
        memset(&rec->handle[rec->n_values], 0, (n_values - rec->n_values) * sizeof *rec->handle);
        memset(&rec->tapes[rec->n_values], 0, (n_values - rec->n_values) * sizeof *rec->tapes);
    }
    for (size_t i = rec->n_nodes; i < n_nodes; i++)
        rec->site[i] = rec->r->site;
    rec->n_values = n_values;
    rec->n_nodes = n_nodes;
    return SNUG_OK;
}

/* --- operands --------------------------------------------------------------------------------- */
bool sn_recording_stands(const sn_recording *rec, const snug_tensor *t) {
    if (t->stamp != rec->serial || t->leaf.i >= sn_graph_n_values(rec->graph))
        return false;
    const sn_value_info *info = sn_graph_value_at(rec->graph, t->leaf);
    if (info->kind != SN_VALUE_INPUT || info->index >= rec->n_leaf ||
        !sn_type_equal(&info->type, &t->type))
        return false;
    const sn_leaf *leaf = &rec->leaf[info->index];
    if (leaf->capture)
        return leaf->capture == t;
    return t->state == SN_READY && leaf->storage == t->storage && leaf->offset == t->offset;
}

/* The graph has an input where there is a leaf, and none more when this fails. */
static snug_status add_leaf(sn_recording *rec, const snug_type *type, sn_leaf leaf, sn_value *out,
                            snug_error *err) {
    char name[16];
    const sn_graph_mark mark = sn_graph_mark_now(rec->graph);
    SNUG_TRY(GROW(rec, leaf, rec->n_leaf + 1, err));
    snprintf(name, sizeof name, "x%zu", rec->n_leaf);
    snug_status status = sn_graph_input(rec->graph, name, type, out, err);
    if (status == SNUG_OK)
        status = sn_recording_cover(rec, err);
    if (status == SNUG_OK)
        rec->leaf[rec->n_leaf++] = leaf;
    else
        sn_graph_go_back(rec->graph, &mark);
    return status;
}

snug_status sn_recording_bytes(sn_recording *rec, const snug_type *type, sn_storage *s,
                               size_t offset, sn_value *out, snug_error *err) {
    SNUG_TRY(add_leaf(rec, type, (sn_leaf){.storage = s, .offset = offset}, out, err));
    if (s)
        sn_storage_hold(s);
    return SNUG_OK;
}

snug_status sn_recording_stand_in(sn_recording *rec, sn_value value, sn_storage *s, size_t offset,
                                  sn_value *leaf, snug_error *err) {
    const snug_type type = *sn_graph_type(rec->graph, value);
    SNUG_TRY(sn_recording_bytes(rec, &type, s, offset, leaf, err));
    rec->leaf[rec->n_leaf - 1].id = ++rec->r->serial;
    rec->tapes[leaf->i] = rec->tapes[value.i];
    return sn_recording_keep(rec, (sn_kept){value, *leaf}, err);
}

snug_status sn_recording_version(sn_recording *rec, snug_tensor *t, sn_storage *s,
                                 snug_error *err) {
    sn_value leaf;
    SNUG_TRY(sn_recording_bytes(rec, &t->type, s, 0, &leaf, err));
    sn_variable_use(t->variable);
    rec->leaf[rec->n_leaf - 1].variable = t->variable;
    rec->has_versions = true;
    rec->leaf[rec->n_leaf - 1].id = t->id = ++rec->r->serial;
    rec->tapes[leaf.i] = sn_tensor_tapes(t);
    t->stamp = rec->serial;
    t->leaf = leaf;
    return SNUG_OK;
}

/* The leaf of this value that was taken along for a tape. */
static bool find_brought(const sn_recording *rec, const snug_tensor *t, sn_value *out) {
    for (uint32_t i = 0; t->id != 0 && i < rec->n_brought; i++) {
        *out = sn_graph_input_at(rec->graph, i);
        if (rec->leaf[i].id == t->id)
            return true;
    }
    return false;
}

/* Of a temporary: the caller's reference is about to go. */
static void note_held(sn_recording *rec, const sn_storage *s) {
    if (s->refs > 2)
        return;
    rec->held_bytes += s->bytes;
    rec->largest_held = s->bytes > rec->largest_held ? s->bytes : rec->largest_held;
}

snug_status sn_recording_leaf(sn_recording *rec, snug_tensor *t, sn_value *out, snug_error *err) {
    if (sn_recording_stands(rec, t)) {
        *out = t->leaf;
        return SNUG_OK;
    }
    if (find_brought(rec, t, out)) {
        t->stamp = rec->serial;
        t->leaf = *out; /* taken along for one tape, and watched by others since */
        return sn_marks_add(rec->r, &rec->tapes[out->i], sn_tensor_tapes(t), err);
    }
    if (rec->outer) {
        SNUG_TRY(add_leaf(rec, &t->type, (sn_leaf){.capture = t}, out, err));
        snug_tensor_hold(t);
    } else {
        SNUG_TRY(sn_recording_bytes(rec, &t->type, t->storage, t->offset, out, err));
        note_held(rec, t->storage);
    }
    t->id = t->id ? t->id : ++rec->r->serial;
    rec->leaf[rec->n_leaf - 1].id = t->id;
    rec->tapes[out->i] = sn_tensor_tapes(t);
    t->stamp = rec->serial;
    t->leaf = *out;
    return SNUG_OK;
}

snug_status sn_recording_variable(sn_recording *rec, snug_variable *v, sn_var *out,
                                  snug_error *err) {
    if (v->stamp == rec->serial && v->var.i < rec->n_variable && rec->variable[v->var.i] == v) {
        *out = v->var;
        return SNUG_OK;
    }
    if (rec->r->seats->next && !rec->outer)
        sn_seat_settle(rec->r, v, true);
    char name[16];
    sn_value first;
    snprintf(name, sizeof name, "v%u", v->id);
    const sn_variable info = {.name = name, .type = v->type, .home = v->id, .slot = v->slot};
    SNUG_TRY(GROW(rec, variable, rec->n_variable + 1, err));
    SNUG_TRY(sn_graph_variable(rec->graph, &info, &first, err));
    SNUG_TRY(sn_recording_cover(rec, err));
    sn_variable_use(v);
    *out = v->var = (sn_var){(uint32_t)rec->n_variable};
    rec->variable[rec->n_variable++] = v;
    v->stamp = rec->serial;
    return SNUG_OK;
}

void sn_recording_stamp(sn_recording *rec) {
    for (size_t i = 0; i < rec->n_variable; i++) {
        rec->variable[i]->stamp = rec->serial;
        rec->variable[i]->var = (sn_var){(uint32_t)i};
    }
}

/* --- numbers to come -------------------------------------------------------------------------- */
static const sn_recipe_kind recipe_kinds[] = {[SN_RANDOM_UNIFORM] = SN_RECIPE_UNIFORM,
                                              [SN_RANDOM_NORMAL] = SN_RECIPE_NORMAL,
                                              [SN_RANDOM_TRUNCATED] = SN_RECIPE_TRUNCATED};

static const sn_param_info *param_at(const sn_graph *g, int64_t slot) {
    return sn_graph_param_at(g, (sn_param){(uint32_t)slot});
}

bool sn_recording_recipe(const sn_recording *rec, sn_value v, sn_recipe *out) {
    const sn_graph *g = rec->graph;
    const sn_value_info *info = sn_graph_value_at(g, v);
    if (info->node.i == UINT32_MAX || info->type.dtype == SNUG_BOOL)
        return false;
    const sn_node_info *n = sn_graph_node_at(g, info->node);
    const sn_attrs *a = &n->attrs;
    if (n->op == SN_OP_fill)
        *out = (sn_recipe){.kind = SN_RECIPE_CONSTANT, .a = param_at(g, a->fill.value)->real};
    if (n->op == SN_OP_random)
        *out = (sn_recipe){.kind = recipe_kinds[a->random.kind],
                           .key = (uint64_t)param_at(g, a->random.key)->key,
                           .a = param_at(g, a->random.low)->real,
                           .b = param_at(g, a->random.high)->real};
    return n->op == SN_OP_fill || n->op == SN_OP_random;
}

sn_value sn_build_recipe(sn_builder *b, const snug_type *type, const sn_recipe *recipe) {
    sn_attrs attrs;
    if (recipe->kind == SN_RECIPE_CONSTANT)
        return sn_build_fill(b, type, recipe->a);
    sn_attrs_default(SN_OP_random, &attrs);
    attrs.random.dims.n = type->rank;
    memcpy(attrs.random.dims.v, type->dims, sizeof type->dims);
    attrs.random.dtype = type->dtype;
    while (recipe_kinds[attrs.random.kind] != recipe->kind)
        attrs.random.kind++;
    attrs.random.key = (int64_t)sn_build_key(b, "", (int64_t)recipe->key).i;
    attrs.random.low = (int64_t)sn_build_param(b, "", recipe->a).i;
    attrs.random.high = (int64_t)sn_build_param(b, "", recipe->b).i;
    return sn_build(b, SN_OP_random, &attrs, NULL, 0);
}

/* --- a call ----------------------------------------------------------------------------------- */
/* One large batch waits for what is made of it: run at once, that would lie whole where slices of
 * it would do. */
static bool holds_much(const sn_recording *rec) {
    return rec->held_bytes >= SN_MAX_HELD && rec->held_bytes - rec->largest_held >= SN_MAX_HELD / 8;
}

/* Nodes that ran before and are here for tapes are looked at with each run, and mostly move along:
 * the recording doubles before it runs by itself again, so that all of that together is as much as
 * there are nodes. */
static bool is_long(const sn_recording *rec) {
    const size_t again = rec->n_again;
    return rec->n_nodes >= again + (again > SN_MAX_RECORDED ? again : SN_MAX_RECORDED);
}

/* Under a tape a cut would keep what the gradient could make again. */
static bool is_full(const sn_recording *rec) {
    return !rec->outer && (is_long(rec) || ((holds_much(rec) || rec->work >= SN_MAX_WORK) &&
                                            rec->r->n_open_tapes == 0));
}

/* One recording runs in one place: what is recorded so far runs first. */
static snug_status change_place(snug_recorder *r, snug_error *err) {
    if (r->now->n_nodes > 0 && !r->running)
        SNUG_TRY(sn_flush(r, err));
    r->now->on_host = r->on_host;
    return SNUG_OK;
}

snug_status sn_record_begin(snug_recorder *r, sn_record_call *c, snug_error *err) {
    if (r->closed)
        return sn_fail(err, SNUG_E_INVALID, "the recorder is closed");
    if (!r->running && is_full(r->now)) /* before the call: it has given nothing yet */
        SNUG_TRY(sn_flush(r, err));
    if (r->now->on_host != r->on_host && !r->now->outer)
        SNUG_TRY(change_place(r, err));
    c->r = r;
    sn_builder_start(&c->b, r->now->graph);
    c->mark = sn_graph_mark_now(r->now->graph);
    c->n_asked = r->now->n_asked;
    c->n_draws = r->n_draws;
    r->n_given = r->n_taken = 0;
    return SNUG_OK;
}

/* The recipe becomes a node of this recording when the call succeeds. */
static bool note_used(sn_record_call *c, snug_tensor *t, sn_value v) {
    snug_recorder *r = c->r;
    if (sn_grow(r->engine, SN_MEM_OTHER, &r->given, sizeof *r->given, &r->cap_given, r->n_given + 1,
                &c->b.error) != SNUG_OK)
        return false;
    if (sn_recording_cover(r->now, &c->b.error) != SNUG_OK)
        return false;
    if (sn_marks_add(r, &r->now->tapes[v.i], sn_tensor_tapes(t), &c->b.error) != SNUG_OK)
        return false;
    snug_tensor_hold(t);
    r->given[r->n_given++] = (sn_given){t, v};
    return true;
}

bool sn_record_given(const snug_recorder *r, const snug_tensor *t, sn_value *out) {
    for (size_t i = 0; i < r->n_given; i++)
        if (r->given[i].tensor == t) {
            *out = r->given[i].value;
            return true;
        }
    return false;
}

static sn_value use(sn_record_call *c, snug_tensor *t, snug_error *err) {
    sn_recording *rec = c->r->now;
    sn_value v = SN_NO_VALUE;
    sn_var var;
    if (t->r != c->r) {
        sn_fail(err, SNUG_E_INVALID, "the tensor belongs to another recorder");
    } else if (t->state == SN_POISONED) {
        if (t->poison)
            *err = t->poison->error;
        else
            sn_fail(err, SNUG_E_MEMORY, "the run that makes this tensor failed");
    } else if (t->state == SN_PENDING && t->rec == rec) {
        return t->value;
    } else if (t->state == SN_RECIPE && !rec->outer) {
        if (sn_record_given(c->r, t, &v))
            return v;
        v = sn_build_recipe(&c->b, &t->type, &t->recipe);
        return sn_value_ok(v) && note_used(c, t, v) ? v : SN_NO_VALUE;
    } else if (t->state == SN_VERSION && !rec->outer) {
        if (sn_recording_variable(rec, t->variable, &var, err) != SNUG_OK)
            return SN_NO_VALUE;
        v = sn_graph_var_at(rec->graph, var)->first;
        if (sn_marks_add(c->r, &rec->tapes[v.i], sn_tensor_tapes(t), err) != SNUG_OK)
            return SN_NO_VALUE;
        return v;
    } else if (t->state == SN_PENDING && !t->rec->outer && !rec->outer) {
        if (sn_seat_flush(c->r, t->rec, err) == SNUG_OK)
            return use(c, t, err);
    } else if (t->state == SN_PENDING && !rec->outer) {
        sn_fail_by(
            err, SNUG_E_INVALID, SNUG_CAUSE_OUT_OF_TRACE,
            "a tensor of a trace is out of scope and cannot be used here; return it from the "
            "function that was traced");
    } else if (sn_recording_leaf(rec, t, &v, err) != SNUG_OK) {
        return SN_NO_VALUE;
    }
    return v;
}

sn_value sn_record_use(sn_record_call *c, snug_tensor *t) {
    return c->b.error.code == SNUG_OK ? use(c, t, &c->b.error) : SN_NO_VALUE;
}

snug_tensor *sn_record_give(sn_record_call *c, sn_value v) {
    if (c->b.error.code != SNUG_OK)
        return NULL;
    if (!sn_value_ok(v)) {
        sn_fail(&c->b.error, SNUG_E_INTERNAL, "an operation gives nothing");
        return NULL;
    }
    snug_recorder *r = c->r;
    snug_tensor *t;
    if (sn_grow(r->engine, SN_MEM_OTHER, &r->given, sizeof *r->given, &r->cap_given, r->n_given + 1,
                &c->b.error) != SNUG_OK ||
        sn_tensor_create(r, sn_graph_type(c->b.graph, v), &t, &c->b.error) != SNUG_OK)
        return NULL;
    r->given[r->n_given++] = (sn_given){t, v};
    return t;
}

static void undo(sn_record_call *c) {
    sn_recording *rec = c->r->now;
    for (size_t i = 0; i < c->r->n_given; i++)
        snug_tensor_drop(c->r->given[i].tensor);
    sn_graph_go_back(rec->graph, &c->mark);
    sn_recording_drop_echoes(rec, c->mark.n_values);
    drop_leaves(rec, c->mark.n_inputs);
    drop_variables(rec, c->mark.n_vars);
    rec->n_values = c->mark.n_values < rec->n_values ? c->mark.n_values : rec->n_values;
    rec->n_nodes = c->mark.n_nodes < rec->n_nodes ? c->mark.n_nodes : rec->n_nodes;
    rec->n_asked = c->n_asked;
    sn_record_give_back(c);
}

typedef struct {
    const sn_recording *rec;
    const sn_node_info *n;
} inputs;

static bool sees_input(const snug_tape *t, const void *of) {
    const inputs *in = of;
    for (int k = 0; k < in->n->n_in; k++)
        if (sn_marks_have(t->r, in->rec->tapes[in->n->in[k].i], t->bit))
            return true;
    return false;
}

/* The same of the tapes that have a bit, and of the others. */
static snug_status find_many(const sn_recording *rec, const sn_node_info *n, uint32_t *out,
                             snug_error *err) {
    uint32_t few = 0;
    for (int k = 0; k < n->n_in; k++) {
        const uint32_t mark = rec->tapes[n->in[k].i];
        few |= mark & SN_MANY ? sn_sets_few(rec->r, mark) : mark;
    }
    return sn_sets_of_active(rec->r, few & rec->r->active_tapes, sees_input, &(inputs){rec, n}, out,
                             err);
}

/* Tapes see a node's outputs where they see an input and are active. What readers of a variable are
 * seen by sees the version that they keep when it is written. */
static snug_status mark_node(sn_recording *rec, const sn_node_info *n, snug_error *err) {
    uint32_t mask = 0;
    for (int k = 0; rec->r->active_tapes && k < n->n_in; k++)
        mask |= rec->tapes[n->in[k].i];
    if (mask & SN_MANY)
        SNUG_TRY(find_many(rec, n, &mask, err));
    else
        mask &= rec->r->active_tapes;
    const bool writes = sn_ops[n->op].effect == SN_STATE;
    for (int k = 0; mask && !writes && k < n->n_out; k++)
        if (sn_dtype_is_float(sn_graph_type(rec->graph, n->out[k])->dtype))
            SNUG_TRY(sn_marks_add(rec->r, &rec->tapes[n->out[k].i], mask, err));
    for (int k = 0; writes && !rec->outer && k < sn_op_versions(n->op, n->n_out); k++) {
        const int32_t var = sn_graph_value_at(rec->graph, n->out[k])->var;
        SNUG_TRY(sn_variable_mark(rec->variable[var], rec,
                                  sn_graph_var_at(rec->graph, (sn_var){(uint32_t)var})->first,
                                  err));
    }
    return SNUG_OK;
}

/* Handles that read a variable stay with the version they have. */
static void note_write(sn_recording *rec, const sn_node_info *n) {
    if (sn_ops[n->op].effect != SN_STATE)
        return;
    rec->has_effects = true;
    for (int k = 0; !rec->outer && k < sn_op_versions(n->op, n->n_out); k++) {
        const int32_t var = sn_graph_value_at(rec->graph, n->out[k])->var;
        if (rec->r->seats->next)
            sn_seat_settle(rec->r, rec->variable[var], false);
        sn_variable_detach(rec->variable[var], rec,
                           sn_graph_var_at(rec->graph, (sn_var){(uint32_t)var})->first);
    }
}

/* Small operands are not worth the question. */
static void count_work(sn_recording *rec, uint32_t i, const sn_node_info *n) {
    enum { LEAST_COUNT = 1 << 14 };
    const sn_graph *g = rec->graph;
    int64_t most = 0;
    for (int k = 0; k < n->n_in + n->n_out; k++) {
        const sn_value v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
        const int64_t count = sn_type_count(sn_graph_type(g, v));
        most = count > most ? count : most;
    }
    if (most < LEAST_COUNT)
        return;
    sn_opdesc d;
    sn_graph_desc(g, (sn_node){i}, &d);
    rec->work += sn_op_flops(&d) + ELEMENT_WORK * (double)most;
}

const char *sn_recording_where(const sn_recording *rec, sn_node n, char *text, size_t size) {
    const snug_recorder_hooks *hooks = &rec->r->hooks;
    const sn_node_info *node = sn_graph_node_at(rec->graph, n);
    char type[192], where[160] = "";
    const uint64_t site = n.i < rec->n_nodes ? rec->site[n.i] : 0;
    const char *line =
        site && hooks->line ? hooks->line(hooks->ctx, site, where, sizeof where) : "";
    snprintf(text, size, "%s %s%s%s", sn_ops[node->op].name,
             snug_type_print(sn_graph_type(rec->graph, node->out[0]), type, sizeof type),
             line && *line ? ", " : "", line ? line : "");
    return text;
}

static snug_status say_where(snug_recorder *r, snug_status status, snug_error *err) {
    char text[160];
    if (!err || !r->hooks.line || r->site == 0)
        return status;
    return sn_fail_in(err, status, "%s", r->hooks.line(r->hooks.ctx, r->site, text, sizeof text));
}

/* New handles, and recipes that have become nodes. */
static void link_given(snug_recorder *r, sn_recording *rec) {
    for (size_t i = 0; i < r->n_given; i++) {
        snug_tensor *t = r->given[i].tensor;
        if (t->state == SN_RECIPE) {
            t->state = SN_PENDING;
            sn_recording_link(rec, t, r->given[i].value);
            snug_tensor_drop(t);
        } else {
            sn_recording_link(rec, t, r->given[i].value);
        }
    }
    r->n_given = 0;
}

snug_status sn_record_end(sn_record_call *c, snug_error *err) {
    sn_recording *rec = c->r->now;
    const size_t first = c->mark.n_nodes;
    snug_status status = sn_builder_done(&c->b, err);
    if (status == SNUG_OK)
        status = sn_recording_cover(rec, err);
    if (status != SNUG_OK) {
        undo(c);
        return say_where(c->r, status, err);
    }
    status = sn_recording_check_data(rec, (uint32_t)first, err);
    for (uint32_t i = (uint32_t)first; status == SNUG_OK && i < rec->n_nodes; i++)
        status = mark_node(rec, sn_graph_node_at(rec->graph, (sn_node){i}), err);
    if (status != SNUG_OK) {
        undo(c);
        return status;
    }
    for (uint32_t i = (uint32_t)first; i < rec->n_nodes; i++) {
        const sn_node_info *n = sn_graph_node_at(rec->graph, (sn_node){i});
        note_write(rec, n);
        if (rec->has_effects)
            count_work(rec, i, n);
    }
    link_given(c->r, rec);
    return SNUG_OK;
}
