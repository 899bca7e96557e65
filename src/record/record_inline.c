/* record_inline.c: variables that the program cannot reach any more and that nobody has read or
 * written are ordinary values: before a run they become the numbers of their recipes, made right
 * before their first reader, and never have a home.
 *
 * The recording's graph is copied node by node; handles, tapes, sites and what was kept for tapes
 * move to the new values. On an error the recording is what it was. */
#include "record/recording.h"

#include <string.h>

typedef struct {
    sn_recording *rec;
    sn_graph *to;
    sn_value *map;   /* per value; SN_NO_VALUE: not there yet */
    uint32_t *param; /* per slot */
    bool *gone;      /* per variable */
    uint64_t *site;  /* per node of the new graph */
    size_t n_site, cap_site;
} copier;

static bool is_simple(const sn_recipe *r) {
    return r->kind == SN_RECIPE_CONSTANT || r->kind == SN_RECIPE_UNIFORM ||
           r->kind == SN_RECIPE_NORMAL || r->kind == SN_RECIPE_TRUNCATED;
}

/* refs: handles of the program; uses: this recording alone. */
static bool is_lost(const sn_recording *rec, uint32_t i) {
    const snug_variable *v = rec->variable[i];
    const sn_variable *var = sn_graph_var_at(rec->graph, (sn_var){i});
    return v->refs == 0 && v->uses == 1 && !v->storage && !v->torn && is_simple(&v->init) &&
           v->type.dtype != SNUG_BOOL && var->first.i == var->last.i &&
           !rec->handle[var->first.i] && !sn_marks_open(rec->r, rec->tapes[var->first.i]);
}

static snug_status copy_ends(copier *c, snug_error *err) {
    const sn_graph *g = c->rec->graph;
    for (uint32_t i = 0; i < sn_graph_n_inputs(g); i++) {
        const sn_value v = sn_graph_input_at(g, i);
        SNUG_TRY(sn_graph_input(c->to, sn_graph_input_name(g, i), sn_graph_type(g, v), &c->map[v.i],
                                err));
    }
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *var = sn_graph_var_at(g, (sn_var){i});
        if (!c->gone[i])
            SNUG_TRY(sn_graph_variable(c->to, var, &c->map[var->first.i], err));
    }
    return SNUG_OK;
}

/* The numbers of a lost variable, for its first reader. */
static snug_status make_numbers(copier *c, sn_value v, snug_error *err) {
    const sn_value_info *info = sn_graph_value_at(c->rec->graph, v);
    sn_builder b = sn_builder_on(c->to);
    c->map[v.i] = sn_build_recipe(&b, &info->type, &c->rec->variable[info->var]->init);
    return sn_builder_done(&b, err);
}

static snug_status copy_node(copier *c, uint32_t i, snug_error *err) {
    const sn_node_info *n = sn_graph_node_at(c->rec->graph, (sn_node){i});
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    sn_attrs attrs;
    sn_attrs_copy(n->op, &n->attrs, &attrs);
    for (int k = 0; k < n->n_in; k++) {
        if (!sn_value_ok(c->map[n->in[k].i]))
            SNUG_TRY(make_numbers(c, n->in[k], err));
        in[k] = c->map[n->in[k].i];
    }
    const sn_graph_move move = {c->rec->graph, c->to, c->map, c->param, true, false};
    SNUG_TRY(sn_graph_move_attrs(&move, n->op, &attrs, err));
    sn_graph_set_part(c->to, n->part);
    SNUG_TRY(sn_graph_node(c->to, n->op, &attrs, in, n->n_in, outs, NULL, err));
    for (int k = 0; k < n->n_out; k++)
        c->map[n->out[k].i] = outs[k];
    const size_t n_nodes = sn_graph_n_nodes(c->to);
    SNUG_TRY(sn_grow(c->rec->r->engine, SN_MEM_GRAPH, &c->site, sizeof *c->site, &c->cap_site,
                     n_nodes, err));
    while (c->n_site < n_nodes)
        c->site[c->n_site++] = c->rec->site[i];
    return SNUG_OK;
}

/* --- moving over ------------------------------------------------------------------------------ */
typedef struct {
    void *handle, *tapes;
    size_t n;
} arrays;

static snug_status make_arrays(const copier *c, arrays *a, snug_error *err) {
    snug_engine *e = c->rec->r->engine;
    a->n = sn_graph_n_values(c->to);
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_GRAPH, a->n * sizeof *c->rec->handle, &a->handle, err));
    const snug_status status =
        sn_alloc_zero(e, SN_MEM_GRAPH, a->n * sizeof *c->rec->tapes, &a->tapes, err);
    if (status != SNUG_OK)
        sn_free(e, SN_MEM_GRAPH, a->handle, a->n * sizeof *c->rec->handle);
    return status;
}

static void move_variables(copier *c) {
    sn_recording *rec = c->rec;
    size_t kept = 0;
    for (size_t i = 0; i < rec->n_variable; i++) {
        snug_variable *v = rec->variable[i];
        if (c->gone[i]) {
            sn_variable_unuse(v);
            continue;
        }
        v->var = (sn_var){(uint32_t)kept};
        rec->variable[kept++] = v;
    }
    rec->n_variable = kept;
}

static void move_kept(copier *c) {
    sn_recording *rec = c->rec;
    for (uint32_t i = 0; i < rec->n_kept; i++) {
        rec->kept[i] = (sn_kept){c->map[rec->kept[i].value.i], c->map[rec->kept[i].leaf.i]};
        sn_recording_note_kin(rec, i);
    }
}

/* Cannot fail. */
static void move_over(copier *c, arrays *a) {
    sn_recording *rec = c->rec;
    snug_engine *e = rec->r->engine;
    snug_tensor **handle = a->handle;
    uint32_t *tapes = a->tapes;
    for (size_t v = 0; v < rec->n_values; v++) {
        const sn_value to = c->map[v];
        if (!sn_value_ok(to))
            continue;
        handle[to.i] = rec->handle[v];
        tapes[to.i] = rec->tapes[v];
        for (snug_tensor *t = handle[to.i]; t; t = t->twin)
            t->value = to;
    }
    move_kept(c);
    for (size_t i = 0; i < rec->n_echo; i++) {
        sn_echo *echo = &rec->echo[i];
        echo->value = c->map[echo->value.i];
        echo->of = sn_value_ok(echo->of) ? c->map[echo->of.i] : echo->of;
    }
    move_variables(c);
    for (snug_tape *t = rec->r->tapes; t; t = t->next) { /* nodes have other numbers */
        t->born_in = t->born_in == rec->serial ? 0 : t->born_in;
        t->end_in = t->end_in == rec->serial ? 0 : t->end_in;
    }
    sn_graph_destroy(rec->graph);
    sn_free(e, SN_MEM_GRAPH, rec->handle, rec->cap_handle * sizeof *rec->handle);
    sn_free(e, SN_MEM_GRAPH, rec->tapes, rec->cap_tapes * sizeof *rec->tapes);
    sn_free(e, SN_MEM_GRAPH, rec->site, rec->cap_site * sizeof *rec->site);
    rec->graph = c->to;
    rec->handle = handle;
    rec->tapes = tapes;
    rec->site = c->site;
    rec->cap_handle = rec->cap_tapes = rec->n_values = a->n;
    rec->cap_site = c->cap_site;
    rec->n_nodes = c->n_site;
    rec->n_tiny_nodes = rec->n_tiny_values = rec->n_past = 0; /* they have other numbers */
    c->to = NULL;
    c->site = NULL;
    c->cap_site = 0;
}

static snug_status copy_all(copier *c, snug_error *err) {
    snug_engine *e = c->rec->r->engine;
    arrays a;
    SNUG_TRY(sn_graph_create(e, &c->to, err));
    sn_graph_set_outside(c->to);
    SNUG_TRY(copy_ends(c, err));
    for (uint32_t i = 0; i < c->rec->n_nodes; i++)
        SNUG_TRY(copy_node(c, i, err));
    SNUG_TRY(sn_recording_reserve_kin(c->rec, sn_graph_n_values(c->to), err));
    SNUG_TRY(make_arrays(c, &a, err));
    move_over(c, &a);
    return SNUG_OK;
}

static uint32_t mark_lost(const sn_recording *rec, bool *gone) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rec->n_variable; i++) {
        const bool lost = is_lost(rec, i);
        n += lost;
        if (gone)
            gone[i] = lost;
    }
    return n;
}

snug_status sn_recording_inline(sn_recording *rec, snug_error *err) {
    if (mark_lost(rec, NULL) == 0)
        return SNUG_OK;
    snug_engine *e = rec->r->engine;
    sn_zone *zone;
    void *map, *param, *gone;
    copier c = {.rec = rec};
    SNUG_TRY(sn_zone_create(e, SN_MEM_GRAPH, &zone, err));
    snug_status status = sn_zone_alloc(zone, rec->n_values * sizeof *c.map, &map, err);
    if (status == SNUG_OK)
        status = sn_zone_alloc(zone, sn_graph_n_params(rec->graph) * sizeof *c.param, &param, err);
    if (status == SNUG_OK)
        status = sn_zone_alloc(zone, rec->n_variable, &gone, err);
    if (status == SNUG_OK) {
        c.map = memset(map, 0xff, rec->n_values * sizeof *c.map);
        c.param = memset(param, 0xff, sn_graph_n_params(rec->graph) * sizeof *c.param);
        c.gone = gone;
        (void)mark_lost(rec, c.gone);
        status = copy_all(&c, err);
    }
    sn_graph_destroy(c.to);
    sn_free(e, SN_MEM_GRAPH, c.site, c.cap_site * sizeof *c.site);
    sn_zone_destroy(zone);
    return status;
}
