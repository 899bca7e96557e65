/* record_trace.c: traces: a recording of its own that is applied, node by node, as often as it is
 * called. What a call appends are ordinary nodes, so tapes, slices and everything else see through
 * it. Parameters are copied with their values, but for random keys, which are drawn anew, and
 * numbers of hosts, which are asked for. */
#include "record/recording.h"

#include <string.h>

/* --- making one ------------------------------------------------------------------------------- */
/* With what stands for open extents. */
static snug_type stand_in(const snug_trace *t, const snug_type *type, int i) {
    snug_type made = *type;
    for (int k = 0; t->axes && k < type->rank; k++)
        if (t->axes[i].of[k])
            made.dims[k] = sn_open_extent(t->axes[i].of[k] - 1);
    return made;
}

static snug_status add_arguments(snug_trace *t, const snug_type *types, int n,
                                 snug_tensor **arguments, snug_error *err) {
    sn_recording *rec = t->rec;
    for (int i = 0; i < n; i++) {
        const snug_type type = stand_in(t, &types[i], i);
        sn_value v;
        SNUG_TRY(sn_type_check(&type, false, err));
        SNUG_TRY(sn_recording_bytes(rec, &type, NULL, 0, &v, err));
        SNUG_TRY(sn_tensor_create(t->r, &type, &arguments[i], err));
        sn_recording_link(rec, arguments[i], v);
        t->n_arguments++;
    }
    return SNUG_OK;
}

snug_status snug_trace_begin(snug_recorder *r, const snug_type *types, int n,
                             snug_tensor **arguments, snug_trace **out, snug_error *err) {
    return snug_trace_begin_open(r, types, NULL, n, arguments, out, err);
}

static snug_status note_open(snug_trace *t, const snug_open_axes *axes, int n, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc(t->r->engine, SN_MEM_GRAPH, (size_t)n * sizeof *axes, &block, err));
    t->axes = memcpy(block, axes, (size_t)n * sizeof *axes);
    t->n_axes = n;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < SNUG_MAX_RANK; k++) {
            if (axes[i].of[k] > SN_MAX_OPEN)
                return sn_fail(err, SNUG_E_UNSUPPORTED, "more than %d open extents", SN_MAX_OPEN);
            t->rec->n_open = axes[i].of[k] > t->rec->n_open ? axes[i].of[k] : t->rec->n_open;
        }
    return SNUG_OK;
}

snug_status snug_trace_begin_open(snug_recorder *r, const snug_type *types,
                                  const snug_open_axes *axes, int n, snug_tensor **arguments,
                                  snug_trace **out, snug_error *err) {
    SNUG_NEEDS(err, r && n >= 0 && ((types && arguments) || n == 0) && out);
    for (int i = 0; i < n; i++)
        SNUG_TRY(sn_type_check(&types[i], true, err));
    void *block;
    SNUG_TRY(sn_alloc_zero(r->engine, SN_MEM_GRAPH, sizeof **out, &block, err));
    snug_trace *t = block;
    t->r = r;
    r->live_tensors++;
    snug_status status = sn_recording_create(r, &t->rec, err);
    if (status == SNUG_OK) {
        t->open = true;
        t->rec->outer = r->now;
        r->now = t->rec;
        if (axes && n > 0)
            status = note_open(t, axes, n, err);
        if (status == SNUG_OK)
            status = add_arguments(t, types, n, arguments, err);
    }
    if (status != SNUG_OK) {
        for (int i = 0; i < t->n_arguments; i++)
            snug_tensor_drop(arguments[i]), arguments[i] = NULL;
        snug_trace_drop(t);
        return status;
    }
    *out = t;
    return SNUG_OK;
}

/* Nodes that outputs or effects need. */
static snug_status find_needed(snug_trace *t, snug_error *err) {
    const sn_graph *g = t->rec->graph;
    const uint32_t n_nodes = sn_graph_n_nodes(g);
    void *block;
    SNUG_TRY(sn_alloc_zero(t->r->engine, SN_MEM_GRAPH, n_nodes * sizeof(bool), &block, err));
    t->needed = block;
    t->n_needed = n_nodes;
    for (int i = 0; i < t->n_outputs; i++) {
        const sn_node maker = sn_graph_value_at(g, t->outputs[i])->node;
        if (maker.i != UINT32_MAX)
            t->needed[maker.i] = true;
    }
    for (uint32_t i = n_nodes; i-- > 0;) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        const sn_effect effect = sn_ops[n->op].effect;
        t->needed[i] = t->needed[i] || effect == SN_STATE || effect == SN_MAYFAIL;
        for (int k = 0; t->needed[i] && k < n->n_in; k++) {
            const sn_node maker = sn_graph_value_at(g, n->in[k])->node;
            if (maker.i != UINT32_MAX)
                t->needed[maker.i] = true;
        }
    }
    return SNUG_OK;
}

static snug_status note_outputs(snug_trace *t, snug_tensor *const *outputs, int n,
                                snug_error *err) {
    void *block;
    sn_record_call c;
    SNUG_TRY(sn_alloc(t->r->engine, SN_MEM_GRAPH, (size_t)n * sizeof *t->outputs, &block, err));
    t->outputs = block;
    t->n_outputs = n;
    SNUG_TRY(sn_record_begin(t->r, &c, err));
    for (int i = 0; i < n; i++)
        t->outputs[i] = sn_record_use(&c, outputs[i]);
    return sn_record_end(&c, err);
}

/* A trace inside that is still open goes on without this one. */
static void leave(snug_trace *t) {
    if (!t->open)
        return;
    t->open = false;
    for (sn_seat *s = t->r->seats; s; s = s->next) { /* none: the recorder is closed */
        sn_recording **link = s == t->r->seat ? &t->r->now : &s->now;
        while (*link && *link != t->rec)
            link = &(*link)->outer;
        if (*link)
            *link = t->rec->outer;
    }
    if (t->r->now)
        sn_recording_stamp(t->r->now); /* variables knew their place in the trace */
}

snug_status snug_trace_end(snug_trace *t, snug_tensor *const *outputs, int n, snug_error *err) {
    SNUG_NEEDS(err, t);
    if (!t->open || t->r->now != t->rec)
        return sn_fail(err, SNUG_E_INVALID, "this trace is not the innermost open one");
    snug_status status = note_outputs(t, outputs, n, err);
    if (status == SNUG_OK)
        status = find_needed(t, err);
    leave(t);
    return status;
}

void snug_trace_drop(snug_trace *t) {
    if (!t)
        return;
    snug_recorder *r = t->r;
    snug_engine *e = r->engine;
    leave(t);
    sn_recording_destroy(t->rec);
    sn_free(e, SN_MEM_GRAPH, t->outputs, (size_t)t->n_outputs * sizeof *t->outputs);
    sn_free(e, SN_MEM_GRAPH, t->needed, t->n_needed * sizeof *t->needed);
    sn_free(e, SN_MEM_GRAPH, t->axes, (size_t)t->n_axes * sizeof *t->axes);
    sn_free(e, SN_MEM_GRAPH, t, sizeof *t);
    r->live_tensors--;
    sn_recorder_let_go(r);
}

int snug_trace_has_effects(const snug_trace *t) {
    if (!t)
        return 0;
    return t->rec->has_effects;
}

int snug_trace_is_light(const snug_trace *t) {
    if (!t)
        return 0;
    enum { MOST_NODES = 64, MOST_ELEMENTS = 4096 };
    const sn_graph *g = t->rec->graph;
    int n_nodes = 0;
    if (t->rec->has_effects || t->rec->n_asked > 0)
        return 0;
    for (uint32_t i = 0; i < t->n_needed; i++) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        if (!t->needed[i])
            continue;
        if (++n_nodes > MOST_NODES || sn_ops[n->op].effect != SN_PURE)
            return 0;
        for (int k = 0; k < n->n_in; k++)
            if (sn_type_count(sn_graph_type(g, n->in[k])) > MOST_ELEMENTS)
                return 0;
    }
    return 1;
}

int snug_is_tracing(const snug_recorder *r) {
    if (!r)
        return 0;
    return r->now != r->main;
}

/* --- applying it ------------------------------------------------------------------------------ */
typedef struct {
    sn_record_call c;
    const sn_recording *from;
    sn_value *map;   /* per value of the trace */
    uint32_t *param; /* per slot; UINT32_MAX: not there yet */
    sn_open_sizes sizes;
} applier;

static void refuse_open(applier *a) {
    if (a->c.b.error.code == SNUG_OK)
        (void)sn_fail(&a->c.b.error, SNUG_E_UNSUPPORTED,
                      "the trace depends on the size of an open axis");
}

/* What was captured; integers that follow from open extents as they are now. */
static sn_value use_capture(applier *a, snug_tensor *t) {
    const sn_open_kind kind = sn_open_tensor(a->from, t);
    snug_tensor *made;
    if (kind == SN_OPEN_NO)
        return sn_record_use(&a->c, t);
    if (kind == SN_OPEN_UNCLEAR) {
        refuse_open(a);
        return SN_NO_VALUE;
    }
    if (a->c.b.error.code != SNUG_OK || sn_open_fill(&a->sizes, t, &made, &a->c.b.error) != SNUG_OK)
        return SN_NO_VALUE;
    const sn_value v = sn_record_use(&a->c, made);
    snug_tensor_drop(made);
    return v;
}

/* Attributes that hold extents. */
static void resize_attrs(applier *a, sn_op op, sn_attrs *attrs) {
    const sn_attr_family *family = sn_ops[op].attrs;
    for (int f = 0; a->sizes.n > 0 && f < family->n_fields; f++) {
        const sn_field *field = &family->fields[f];
        for (int k = 0; !sn_field_is_param(field) && k < field->n; k++) {
            int64_t *word = &attrs->word[field->word + k];
            if (sn_open_read(&a->sizes, *word, word) == SN_OPEN_UNCLEAR)
                refuse_open(a);
        }
    }
}

/* Parameters that do get slots before any node asks for them. */
static void resize_params(applier *a) {
    const sn_graph *g = a->from->graph;
    for (uint32_t i = 0; a->sizes.n > 0 && i < sn_graph_n_params(g); i++) {
        const sn_param_info *p = sn_graph_param_at(g, (sn_param){i});
        int64_t key;
        double real;
        if (a->param[i] != UINT32_MAX)
            continue;
        if (p->kind == SN_PARAM_KEY && sn_open_read(&a->sizes, p->key, &key) == SN_OPEN_YES)
            a->param[i] = (uint32_t)sn_record_key(&a->c, key);
        if (p->kind == SN_PARAM_REAL && sn_open_real(&a->sizes, p->real, &real))
            a->param[i] = (uint32_t)sn_record_number(&a->c, real);
    }
}

static void map_inputs(applier *a, snug_tensor *const *arguments) {
    const sn_graph *g = a->from->graph;
    int next = 0;
    for (uint32_t i = 0; i < a->from->n_leaf; i++) {
        snug_tensor *capture = a->from->leaf[i].capture;
        a->map[sn_graph_input_at(g, i).i] =
            capture ? use_capture(a, capture) : sn_record_use(&a->c, arguments[next++]);
    }
    for (uint32_t i = 0; i < a->from->n_variable; i++)
        a->map[sn_graph_var_at(g, (sn_var){i})->first.i] =
            sn_record_read(&a->c, a->from->variable[i]);
}

/* Numbers of this call, before any node asks for its slot. */
static void ask_hosts(applier *a) {
    for (size_t i = 0; i < a->from->n_asked; i++) {
        const sn_asked *q = &a->from->asked[i];
        if (q->which < 0) {
            sn_record_tell(&a->c, &a->from->hosts[q->host]);
            continue;
        }
        const sn_host *host = q->host == UINT32_MAX ? NULL : &a->from->hosts[q->host];
        a->param[q->slot] =
            (uint32_t)(q->place ? sn_record_seeded_at(&a->c, (uint64_t)q->own, q->place)
                       : !host  ? sn_record_draw(&a->c)
                       : q->own ? sn_record_own_key(&a->c, host, q->own)
                                : sn_record_ask(&a->c, host, q->which));
    }
}

/* A tape inside the trace needed it; outside the variable is read as ever. */
static bool is_echo(const sn_recording *rec, sn_value v) {
    for (size_t i = 0; i < rec->n_echo; i++)
        if (rec->echo[i].value.i == v.i)
            return true;
    return false;
}

/* What an update overwrites: the variable itself, where readers may have an echo. */
static sn_value newest(applier *a, sn_value version) {
    const int32_t var = sn_graph_value_at(a->from->graph, version)->var;
    return sn_record_version(&a->c, a->from->variable[var]);
}

/* With the line of the trace that it stands in. */
static void apply_node(applier *a, uint32_t i) {
    const sn_node_info *n = sn_graph_node_at(a->from->graph, (sn_node){i});
    if (a->from->n_echo > 0 && is_echo(a->from, n->out[0])) {
        a->map[n->out[0].i] = a->map[n->in[0].i];
        return;
    }
    sn_value in[SN_MAX_IN], outs[SN_MAX_OUT];
    sn_attrs attrs;
    sn_attrs_copy(n->op, &n->attrs, &attrs);
    const sn_graph_move move = {a->from->graph, a->c.b.graph, a->map, a->param, true, false};
    resize_attrs(a, n->op, &attrs);
    if (sn_graph_move_attrs(&move, n->op, &attrs, &a->c.b.error) != SNUG_OK)
        return;
    for (int k = 0; k < n->n_in; k++)
        in[k] = k < sn_op_versions(n->op, n->n_out) ? newest(a, n->in[k]) : a->map[n->in[k].i];
    sn_graph_set_part(a->c.b.graph, n->part);
    sn_build_all(&a->c.b, n->op, &attrs, in, n->n_in, outs);
    for (int k = 0; k < n->n_out; k++)
        a->map[n->out[k].i] = outs[k];
    snug_recorder *r = a->c.r;
    const uint64_t site = r->site;
    r->site = a->from->site[i];
    const snug_status covered =
        a->c.b.error.code == SNUG_OK ? sn_recording_cover(r->now, &a->c.b.error) : SNUG_OK;
    (void)covered; /* sticks in the call */
    r->site = site;
}

static snug_status make_maps(applier *a, snug_error *err) {
    snug_engine *e = a->from->r->engine;
    const size_t n_values = sn_graph_n_values(a->from->graph),
                 n_params = sn_graph_n_params(a->from->graph);
    void *block;
    SNUG_TRY(sn_alloc(e, SN_MEM_GRAPH, n_values * sizeof *a->map + n_params * sizeof *a->param,
                      &block, err));
    a->map = memset(block, 0xff, n_values * sizeof *a->map + n_params * sizeof *a->param);
    a->param = (uint32_t *)(void *)(a->map + n_values);
    return SNUG_OK;
}

static void clear_maps(applier *a) {
    const size_t n_values = sn_graph_n_values(a->from->graph),
                 n_params = sn_graph_n_params(a->from->graph);
    sn_free(a->from->r->engine, SN_MEM_GRAPH, a->map,
            n_values * sizeof *a->map + n_params * sizeof *a->param);
}

/* The sizes that open extents have in this call. */
static snug_status find_sizes(const snug_trace *t, snug_tensor *const *arguments,
                              sn_open_sizes *out, snug_error *err) {
    *out = (sn_open_sizes){.n = t->rec->n_open};
    for (int i = 0; t->axes && i < t->n_arguments; i++)
        for (int k = 0; k < arguments[i]->type.rank; k++) {
            const int which = t->axes[i].of[k];
            int64_t *size = which ? &out->size[which - 1] : NULL;
            if (size && *size != 0 && *size != arguments[i]->type.dims[k])
                return sn_fail(err, SNUG_E_SHAPE, "an open extent is %lld and %lld",
                               (long long)*size, (long long)arguments[i]->type.dims[k]);
            if (size)
                *size = arguments[i]->type.dims[k];
        }
    return SNUG_OK;
}

static snug_status check_call(const snug_trace *t, snug_tensor *const *arguments, int n,
                              snug_error *err) {
    char want[192], have[192];
    if (t->open || !t->needed)
        return sn_fail(err, SNUG_E_INVALID, "a trace is called before it has ended");
    if (n != t->n_arguments)
        return sn_fail(err, SNUG_E_INVALID, "a trace of %d arguments is called with %d",
                       t->n_arguments, n);
    for (int i = 0; i < n; i++) {
        const snug_type *type =
            sn_graph_type(t->rec->graph, sn_graph_input_at(t->rec->graph, (uint32_t)i));
        const snug_type given = stand_in(t, &arguments[i]->type, i);
        if (!sn_type_equal(type, &given))
            return sn_fail(err, SNUG_E_SHAPE, "argument %d is %s; the trace was made for %s", i,
                           snug_type_print(&arguments[i]->type, have, sizeof have),
                           snug_type_print(type, want, sizeof want));
    }
    return SNUG_OK;
}

snug_status snug_trace_call(snug_trace *t, snug_tensor *const *arguments, int n,
                            snug_tensor **outputs, int n_out, snug_error *err) {
    SNUG_NEEDS(err, t && (arguments || n == 0) && (outputs || n_out == 0));
    applier a = {.from = t->rec};
    SNUG_TRY(check_call(t, arguments, n, err));
    SNUG_TRY(find_sizes(t, arguments, &a.sizes, err));
    SNUG_TRY(make_maps(&a, err));
    const snug_status begun = sn_record_begin(t->r, &a.c, err);
    if (begun != SNUG_OK) {
        clear_maps(&a);
        return begun;
    }
    map_inputs(&a, arguments);
    ask_hosts(&a);
    resize_params(&a);
    for (uint32_t i = 0; i < t->n_needed && a.c.b.error.code == SNUG_OK; i++)
        if (t->needed[i])
            apply_node(&a, i);
    for (int i = 0; i < n_out && i < t->n_outputs; i++)
        outputs[i] = sn_record_give(&a.c, a.map[t->outputs[i].i]);
    sn_graph_set_part(a.c.b.graph, SN_PART_FORWARD);
    clear_maps(&a);
    const snug_status status = sn_record_end(&a.c, err);
    for (int i = 0; status != SNUG_OK && i < n_out; i++)
        outputs[i] = NULL;
    return status;
}
