/* record_flush.c: everything recorded that is wanted runs as one plan.
 *
 *     inline    variables that nobody can reach are ordinary values
 *     name      values with handles, and what open tapes will read, become outputs of the graph
 *     find      a plan at hand, or a new one; where a card has no room for leaves, one that
 *               brings their rows slice by slice
 *     bring     leaves and variables to where the plan runs
 *     bind      leaves, homes of variables, fresh storage for outputs, parameters
 *     run
 *     settle    handles get their bytes; tapes take their nodes along, or the recording goes on
 *
 * First an empty recording takes the place of the one that runs: what is recorded meanwhile goes
 * there. If anything fails before a variable was written, variables are what they were; handles of
 * the run are poisoned with the reason. */
#include "record/recording.h"

#include "base/size.h"
#include "memory/team.h"

#include <stdio.h>
#include <string.h>

/* From so many bytes on a leaf may be brought to a card in parts. */
#define FED_BYTES ((size_t)1 << 20)

typedef struct {
    snug_engine *engine;
    const unsigned char *data;
} fed_rows;

typedef struct {
    snug_recorder *r;
    sn_recording *whole; /* that was open */
    sn_recording *rec;   /* that runs: it, or what has come to it since it last ran */
    sn_recording *fresh; /* that took its place */
    sn_entry *entry;
    const sn_side *side; /* where it runs */
    bool direct;         /* without a plan */
    sn_window window;    /* per output of the graph: the value it is of */
    uint32_t n_seen;     /* nodes, by tapes, where all runs */
    size_t n_stored;
    sn_storage **storage; /* per output: held; NULL: not made yet */
    sn_leaf *stored;      /* per value: where its bytes are after the run; not held */
    fed_rows *fed;        /* per leaf, with a card */
    sn_numbers roots;     /* of outputs' bytes: the first output that has them */
} run;

/* --- naming ----------------------------------------------------------------------------------- */
/* A version that is overwritten in this recording. */
static bool is_overwritten(const sn_graph *g, sn_value v) {
    const int32_t var = sn_graph_value_at(g, v)->var;
    return var >= 0 && sn_graph_var_at(g, (sn_var){(uint32_t)var})->last.i != v.i;
}

static sn_value copy_of(const run *u, sn_value v, snug_error *err) {
    sn_builder b = sn_builder_on(u->rec->graph);
    const snug_type type = *sn_graph_type(u->rec->graph, v);
    sn_attrs a;
    sn_attrs_default(SN_OP_broadcast_to, &a);
    a.shape.dims.n = type.rank;
    memcpy(a.shape.dims.v, type.dims, sizeof type.dims);
    const sn_value copy = sn_build(&b, SN_OP_broadcast_to, &a, &v, 1);
    return sn_builder_done(&b, err) == SNUG_OK ? copy : SN_NO_VALUE;
}

static snug_status name_output(const run *u, size_t i, snug_error *err) {
    char name[24];
    const sn_value v = u->window.result[i].made;
    const sn_value made = is_overwritten(u->rec->graph, v) ? copy_of(u, v, err) : v;
    if (!sn_value_ok(made))
        return err ? err->code : SNUG_E_MEMORY;
    snprintf(name, sizeof name, "o%zu", i);
    return sn_graph_output(u->rec->graph, name, made, err);
}

static bool is_made(const sn_graph *g, sn_value v) {
    return sn_graph_value_at(g, v)->node.i != UINT32_MAX && sn_graph_value_at(g, v)->var < 0;
}

static void want(void *wanted, sn_value v) {
    ((bool *)wanted)[v.i] = true;
}

static snug_status list_results(run *u, bool *wanted, snug_error *err) {
    const sn_recording *rec = u->rec;
    sn_window *w = &u->window;
    u->n_seen = sn_tape_wants(rec, 0, want, wanted);
    for (uint32_t i = 0; i < rec->n_values; i++) {
        const sn_value v = {i};
        sn_recipe recipe; /* stays one */
        if (!(rec->handle[i] || wanted[i]) ||
            !(is_made(rec->graph, v) || is_overwritten(rec->graph, v)) ||
            sn_recording_recipe(rec, v, &recipe))
            continue;
        SNUG_TRY(sn_grow(u->r->engine, SN_MEM_PLAN, &w->result, sizeof *w->result, &w->cap,
                         w->n + 1, err));
        w->result[w->n++] = (sn_result){.value = v,
                                        .made = v,
                                        .held = rec->handle[i] != NULL,
                                        .kept = wanted[i] || sn_marks_open(rec->r, rec->tapes[i])};
    }
    return SNUG_OK;
}

static snug_status name_outputs(run *u, snug_error *err) {
    const size_t bytes = u->rec->n_values * sizeof(bool);
    snug_status status = SNUG_OK;
    void *wanted;
    if (!u->window.part) {
        SNUG_TRY(sn_alloc_zero(u->r->engine, SN_MEM_PLAN, bytes, &wanted, err));
        status = list_results(u, wanted, err);
        sn_free(u->r->engine, SN_MEM_PLAN, wanted, bytes);
    }
    u->n_stored = u->rec->n_values; /* where there is no plan, nobody asks the graph */
    for (size_t i = 0; status == SNUG_OK && !u->direct && i < u->window.n; i++)
        status = name_output(u, i, err);
    return status;
}

/* Puts the operation and its line in front, where it is known. */
static snug_status fail_at(const run *u, sn_node n, snug_status status, snug_error *err) {
    char where[400];
    if (n.i == UINT32_MAX)
        return status;
    return sn_fail_in(err, status, "%s", sn_recording_where(u->rec, n, where, sizeof where));
}

/* --- bytes that nobody needs any more --------------------------------------------------------- */
/* Only this recording has them: no handle, no tape, no other leaf. */
static bool is_free(const run *u, uint32_t input) {
    const sn_leaf *leaf = &u->rec->leaf[input];
    const sn_storage *s = leaf->storage;
    return s && s->refs == 1 && !s->foreign && leaf->offset == 0 &&
           !u->rec->handle[sn_graph_input_at(u->rec->graph, input).i] && u->r->n_open_tapes == 0;
}

/* Whether the value will probably take over bytes: its maker reads a free leaf last and may write
 * over it. What the plan says counts in the end. */
static bool may_take(const run *u, sn_value v, size_t bytes) {
    const sn_graph *g = u->rec->graph;
    const sn_value_info *info = sn_graph_value_at(g, v);
    if (info->node.i == UINT32_MAX || info->var >= 0)
        return false;
    const sn_node_info *n = sn_graph_node_at(g, info->node);
    for (int k = 0; k < n->n_in; k++) {
        const sn_value_info *in = sn_graph_value_at(g, n->in[k]);
        if (in->kind == SN_VALUE_INPUT && !in->fed &&
            sn_op_may_overwrite(n->op, (int)info->index, k) && is_free(u, in->index) &&
            u->rec->leaf[in->index].storage->bytes == bytes)
            return true;
    }
    return false;
}

/* The leaf whose bytes output i takes over, or UINT32_MAX. */
static uint32_t donor_of(const run *u, size_t i) {
    const uint32_t input = u->entry->donor[i];
    const sn_plan *p = u->entry->plan;
    if (input == UINT32_MAX || !is_free(u, input) ||
        u->rec->leaf[input].storage->bytes !=
            p->value_bytes[sn_graph_output_at(p->graph, (uint32_t)i).i])
        return UINT32_MAX;
    return input;
}

/* --- binding ---------------------------------------------------------------------------------- */
static snug_status output_bytes(const run *u, size_t i, size_t *bytes, snug_error *err) {
    const snug_type *t = sn_graph_type(u->rec->graph, u->window.result[i].made);
    *bytes = 0;
    return t->dtype == SNUG_OPAQUE ? SNUG_OK : snug_type_bytes(t, bytes, err);
}

/* --- bringing --------------------------------------------------------------------------------- */
static snug_status leaf_bytes(const run *u, uint32_t i, size_t *bytes, snug_error *err) {
    return snug_type_bytes(sn_graph_type(u->rec->graph, sn_graph_input_at(u->rec->graph, i)), bytes,
                           err);
}

/* The leaf gets bytes of its own where the plan runs: a copy of its part of the storage. */
static snug_status part_leaf(run *u, sn_leaf *leaf, size_t bytes, snug_error *err) {
    snug_recorder *r = u->r;
    const sn_storage *from = leaf->storage;
    sn_storage *part;
    SNUG_TRY(u->side->create(r, SN_MEM_TENSORS, bytes, &part, err));
    const snug_status status = u->side->copy_part(r, from, leaf->offset, part, err);
    if (status != SNUG_OK) {
        sn_storage_drop(r, part);
        return status;
    }
    sn_storage_drop(r, leaf->storage);
    leaf->storage = part;
    leaf->offset = 0;
    return SNUG_OK;
}

static bool is_fed(const run *u, uint32_t leaf) {
    const sn_graph *g = u->rec->graph;
    return sn_graph_value_at(g, sn_graph_input_at(g, leaf))->fed;
}

/* Where the plan runs; a part on the card must lie where kernels there can read it. */
static bool is_here(const run *u, const sn_leaf *leaf, size_t bytes) {
    const sn_storage *s = leaf->storage;
    return u->side->bytes(s) && (bytes == s->bytes || u->side->reads_from(leaf->offset));
}

/* A part of what lies on the other side is brought alone. */
static snug_status bring_leaf(run *u, uint32_t i, snug_error *err) {
    sn_leaf *leaf = &u->rec->leaf[i];
    size_t bytes;
    if (!leaf->storage || is_fed(u, i))
        return SNUG_OK;
    SNUG_TRY(leaf_bytes(u, i, &bytes, err));
    if (is_here(u, leaf, bytes))
        return SNUG_OK;
    if (bytes == leaf->storage->bytes)
        return u->side->bring(u->r, leaf->storage, err);
    return part_leaf(u, leaf, bytes, err);
}

static snug_status bring_variable(const run *u, snug_variable *v, snug_error *err) {
    SNUG_TRY(sn_variable_storage(v, err));
    return u->side->bring(u->r, v->storage, err);
}

/* The first node that reads the leaf. */
static sn_node reader_of(const run *u, uint32_t leaf) {
    const sn_graph *g = u->rec->graph;
    const sn_value v = sn_graph_input_at(g, leaf);
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k].i == v.i)
                return (sn_node){i};
    }
    return SN_NO_NODE;
}

static snug_status bring_leaves(run *u, snug_error *err) {
    for (uint32_t i = 0; u->r->n_sides > 1 && i < u->rec->n_leaf; i++) {
        const snug_status status = bring_leaf(u, i, err);
        if (status != SNUG_OK)
            return fail_at(u, reader_of(u, i), status, err);
    }
    return SNUG_OK;
}

static snug_status add_taken(const run *u, size_t bytes, size_t *sum, snug_error *err) {
    if (sn_size_add(*sum, u->side->taken(u->r, bytes), sum))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_OVERFLOW, "the results of this step exceed the address space");
}

/* What will be new beside the arena; `hopeful` leaves out what may lie in bytes that are there. */
static snug_status count_extra(const run *u, bool hopeful, size_t *extra, snug_error *err) {
    *extra = 0;
    for (size_t i = 0; i < u->window.n; i++) {
        size_t bytes;
        SNUG_TRY(output_bytes(u, i, &bytes, err));
        if (!hopeful || !may_take(u, u->window.result[i].made, bytes))
            SNUG_TRY(add_taken(u, bytes, extra, err));
    }
    for (size_t i = 0; i < u->rec->n_variable; i++) {
        size_t bytes;
        const sn_storage *there = u->rec->variable[i]->storage;
        SNUG_TRY(snug_type_bytes(&u->rec->variable[i]->type, &bytes, err));
        if (!there || !u->side->bytes(there))
            SNUG_TRY(add_taken(u, bytes, extra, err));
    }
    return SNUG_OK;
}

/* With room for what is not shared after all. */
static snug_status find_entry(run *u, snug_error *err) {
    size_t extra, all, shared = 0;
    SNUG_TRY(count_extra(u, true, &extra, err));
    SNUG_TRY(count_extra(u, false, &all, err));
    SNUG_TRY(sn_cache_find(u->r, u->rec, u->side, extra, &u->entry, err));
    for (size_t i = 0; extra < all && i < u->window.n; i++) {
        size_t bytes;
        SNUG_TRY(output_bytes(u, i, &bytes, err));
        shared += donor_of(u, i) == UINT32_MAX ? 0 : u->side->taken(u->r, bytes);
    }
    return all - shared <= extra ? SNUG_OK
                                 : sn_cache_find(u->r, u->rec, u->side, all, &u->entry, err);
}

/* --- leaves that the plan brings itself ------------------------------------------------------- */
/* What of the leaves may be fed (on the host, and large) is fed, or nothing is. Bytes of those. */
static size_t set_feeds(const run *u, bool fed) {
    size_t sum = 0;
    for (uint32_t i = 0; i < u->rec->n_leaf; i++) {
        const sn_storage *s = u->rec->leaf[i].storage;
        size_t bytes;
        const bool may = u->side->feeds && s && u->side->feeds->may_stay(s) &&
                         leaf_bytes(u, i, &bytes, NULL) == SNUG_OK && bytes >= FED_BYTES;
        sn_graph_set_fed(u->rec->graph, i, fed && may);
        sum += may ? bytes : 0;
    }
    return sum;
}

static bool has_plan(const run *u) {
    size_t extra;
    return count_extra(u, true, &extra, NULL) == SNUG_OK &&
           sn_cache_has(u->r, u->rec, u->side, extra);
}

/* Large leaves lie on the host alone. */
static snug_status take_back(run *u, snug_error *err) {
    for (uint32_t i = 0; i < u->rec->n_leaf; i++) {
        sn_storage *s = u->rec->leaf[i].storage;
        if (s && s->bytes >= FED_BYTES)
            SNUG_TRY(u->side->feeds->leave(u->r, s, err));
    }
    return SNUG_OK;
}

static snug_status bring_and_find(run *u, snug_error *err) {
    SNUG_TRY(bring_leaves(u, err));
    return find_entry(u, err);
}

/* Leaves that would take most of what is left, or that a plan at hand brings. */
static bool should_feed(const run *u) {
    size_t left;
    const size_t sum = set_feeds(u, true);
    return sum > 0 && u->side->feeds->left(u->r, &left) && (sum > left / 2 || has_plan(u));
}

/* Leaves and variables of the run. */
static bool has_storage(const void *ctx, const sn_storage *s) {
    const sn_recording *rec = ((const run *)ctx)->rec;
    for (size_t i = 0; i < rec->n_leaf; i++)
        if (rec->leaf[i].storage == s)
            return true;
    for (size_t i = 0; i < rec->n_variable; i++)
        if (rec->variable[i]->storage == s)
            return true;
    return false;
}

/* And all large ones where there is no plan without. */
static snug_status find_way(run *u, snug_error *err) {
    snug_error first;
    if (!u->side->feeds)
        return bring_and_find(u, err);
    if (should_feed(u)) {
        const snug_status status = bring_and_find(u, err);
        if (status != SNUG_E_BUDGET)
            return status;
    }
    (void)set_feeds(u, false);
    snug_status status = bring_and_find(u, &first);
    if (status == SNUG_E_BUDGET && u->side->feeds->drop_doubles(u->r, has_storage, u))
        status = bring_and_find(u, &first);
    if (status == SNUG_E_BUDGET && u->side->feeds->drop_plans(u->r, &u->entry))
        status = bring_and_find(u, &first);
    if (status == SNUG_E_BUDGET && take_back(u, NULL) == SNUG_OK && set_feeds(u, true) > 0)
        return bring_and_find(u, err);
    if (status != SNUG_OK && err)
        *err = first;
    return status;
}

/* Rows of a leaf on the host. */
static snug_status fill_rows(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *to,
                             snug_error *err) {
    const fed_rows *from = ctx;
    const size_t row = n_rows > 0 ? to->bytes / (size_t)n_rows : 0;
    (void)err;
    sn_team_copy(sn_team_of(from->engine), to->data, from->data + (size_t)first_row * row,
                 to->bytes);
    return SNUG_OK;
}

static bool feeds(const sn_plan *p, uint32_t input) {
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].kind == SN_STEP_FEED && p->steps[i].input == input)
            return true;
    return false;
}

/* Of a leaf that is a result, too, the plan wants the bytes. Those of a leaf that it feeds stay on
 * the host as long as it runs, also where another leaf has them brought to the card. Values as
 * large as those that are fed stay on the host from now on when they are made. */
static void settle_feeds(run *u) {
    snug_recorder *r = u->r;
    for (uint32_t i = 0; i < u->rec->n_leaf; i++) {
        if (!is_fed(u, i))
            continue;
        sn_storage *s = u->rec->leaf[i].storage;
        const bool fed = feeds(u->entry->plan, i);
        sn_graph_set_fed(u->rec->graph, i, fed);
        s->pins += fed;
        r->fed_bytes = r->fed_bytes == 0 || s->bytes < r->fed_bytes ? s->bytes : r->fed_bytes;
    }
}

static void end_feeds(const run *u) {
    for (uint32_t i = 0; i < u->rec->n_leaf; i++)
        if (is_fed(u, i))
            sn_storage_unpin(u->r, u->rec->leaf[i].storage);
}

static void bind_leaves(const run *u) {
    for (uint32_t i = 0; i < u->rec->n_leaf; i++) {
        const sn_leaf *leaf = &u->rec->leaf[i];
        if (is_fed(u, i)) {
            u->fed[i] =
                (fed_rows){u->r->engine, (const unsigned char *)leaf->storage->data + leaf->offset};
            sn_session_bind_input(u->entry->session, i,
                                  (sn_input_binding){.ctx = &u->fed[i], .fill = fill_rows});
        } else if (leaf->storage)
            sn_session_bind_value(u->entry->session, sn_graph_input_at(u->entry->graph, i),
                                  (unsigned char *)u->side->bytes(leaf->storage) + leaf->offset);
    }
}

/* Before others come to memory. */
static snug_status bind_spilled(const run *u, snug_error *err) {
    const sn_plan *const plan = u->entry->plan;
    if (!plan->spilled)
        return SNUG_OK;
    SNUG_TRY(sn_recording_to_file(u->rec, plan, err));
    for (uint32_t i = 0; i < u->rec->n_variable; i++)
        if (sn_plan_spills(plan, (sn_var){i}))
            sn_session_bind_file(u->entry->session, (sn_var){i}, u->r->file,
                                 u->rec->variable[i]->storage->file_at);
    return SNUG_OK;
}

static snug_status bind_variables(const run *u, snug_error *err) {
    SNUG_TRY(bind_spilled(u, err));
    for (uint32_t i = 0; i < u->rec->n_variable; i++) {
        snug_variable *v = u->rec->variable[i];
        if (!sn_session_uses(u->entry->session, (sn_var){i}) ||
            sn_plan_spills(u->entry->plan, (sn_var){i}))
            continue;
        SNUG_TRY(bring_variable(u, v, err));
        sn_session_bind_variable(u->entry->session, (sn_var){i}, u->side->bytes(v->storage));
    }
    return SNUG_OK;
}

/* The first output that shares the bytes of output i. */
static size_t first_with_root(run *u, size_t i) {
    const sn_entry *e = u->entry;
    const uint32_t root = e->plan->root[sn_graph_output_at(e->graph, (uint32_t)i).i];
    uint32_t first = (uint32_t)i;
    if (!sn_numbers_find(&u->roots, root, &first))
        sn_numbers_put(&u->roots, root, first);
    return first;
}

/* Bytes of a leaf, of another output or that nobody needs, or fresh ones. */
static snug_status store_output(run *u, size_t i, snug_error *err) {
    const sn_entry *e = u->entry;
    const sn_value v = sn_graph_output_at(e->graph, (uint32_t)i);
    const sn_value root = {e->plan->root[v.i]};
    const sn_value_info *info = sn_graph_value_at(e->graph, root);
    const size_t other = first_with_root(u, i);
    sn_leaf *at = &u->stored[u->window.result[i].made.i];
    if (info->kind == SN_VALUE_INPUT) {
        *at = u->rec->leaf[info->index];
        sn_storage_hold(at->storage);
        u->storage[i] = at->storage;
        return SNUG_OK;
    }
    const uint32_t donor = other == i ? donor_of(u, i) : UINT32_MAX;
    if (other != i || donor != UINT32_MAX) {
        u->storage[i] = donor == UINT32_MAX ? u->storage[other] : u->rec->leaf[donor].storage;
        sn_storage_hold(u->storage[i]);
    } else {
        const size_t bytes = e->plan->value_bytes[root.i];
        const snug_status status =
            u->side->create(u->r, SN_MEM_TENSORS, bytes, &u->storage[i], err);
        if (status != SNUG_OK)
            return fail_at(u, sn_graph_value_at(u->rec->graph, u->window.result[i].made)->node,
                           status, err);
    }
    if (other == i)
        sn_session_bind_value(e->session, v, u->side->bytes(u->storage[i]));
    *at = (sn_leaf){.storage = u->storage[i]};
    return SNUG_OK;
}

static void bind_params(const run *u) {
    const sn_graph *g = u->rec->graph;
    for (uint32_t i = 0; i < u->entry->n_params && i < sn_graph_n_params(g); i++) {
        const sn_param_info *p = sn_graph_param_at(g, (sn_param){i});
        const sn_param to = {u->entry->params[i]};
        if (to.i == UINT32_MAX || p->kind == SN_PARAM_INVERSE_EXTENT)
            continue;
        if (p->kind == SN_PARAM_KEY)
            sn_session_set_key(u->entry->session, to, p->key);
        else
            sn_session_set_real(u->entry->session, to, p->real);
    }
}

static snug_status make_lists(run *u, snug_error *err) {
    void *block;
    snug_engine *e = u->r->engine;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_PLAN, u->window.n * sizeof *u->storage, &block, err));
    u->storage = block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_PLAN, u->n_stored * sizeof *u->stored, &block, err));
    u->stored = block;
    if (!u->side->feeds)
        return SNUG_OK;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_PLAN, u->rec->n_leaf * sizeof *u->fed, &block, err));
    u->fed = block;
    return SNUG_OK;
}

static snug_status bind(run *u, snug_error *err) {
    SNUG_TRY(make_lists(u, err));
    SNUG_TRY(bind_variables(u, err));
    bind_leaves(u);
    u->roots = (sn_numbers){.engine = u->r->engine, .category = SN_MEM_PLAN};
    for (size_t i = 0; i < u->window.n; i++) {
        SNUG_TRY(sn_numbers_reserve(&u->roots, err));
        SNUG_TRY(store_output(u, i, err));
    }
    sn_storage_free_left(u->r); /* before the arena */
    bind_params(u);
    return SNUG_OK;
}

/* --- running ---------------------------------------------------------------------------------- */
static bool is_interrupted(void *ctx) {
    const snug_recorder *r = ctx;
    return r->hooks.interrupt(r->hooks.ctx) != 0;
}

static snug_status execute(run *u, snug_error *err) {
    snug_recorder *r = u->r;
    sn_session *s = u->entry->session;
    if (!sn_session_is_ready(s))
        SNUG_TRY(u->side->prepare(r, u->entry, err));
    sn_session_set_interrupt(s, r->hooks.interrupt ? is_interrupted : NULL, r);
    u->side->before(r, s);
    if (r->hooks.begin_run)
        r->hooks.begin_run(r->hooks.ctx);
    const snug_status status = sn_session_run(s, err);
    if (r->hooks.end_run)
        r->hooks.end_run(r->hooks.ctx);
    u->side->after(r, status == SNUG_OK);
    if (status == SNUG_OK)
        u->entry->reserve = 0;
    const sn_node node = status == SNUG_OK ? SN_NO_NODE : sn_session_failed(s);
    return node.i < u->entry->n_origin
               ? fail_at(u, (sn_node){u->entry->origin[node.i]}, status, err)
               : status;
}

/* Outputs are made by nodes: there are no variables. */
static snug_status run_direct(run *u, snug_error *err) {
    snug_recorder *r = u->r;
    SNUG_TRY(make_lists(u, err));
    const sn_direct_values values = {u->window.result, u->stored, u->window.n};
    SNUG_TRY(sn_direct_store(u->rec, &values, u->storage, err));
    r->info.n_flushes++;
    if (r->hooks.begin_run)
        r->hooks.begin_run(r->hooks.ctx);
    sn_node failed = SN_NO_NODE;
    const snug_status status = sn_direct_run(u->rec, &values, &failed, err);
    if (r->hooks.end_run)
        r->hooks.end_run(r->hooks.ctx);
    return fail_at(u, failed, status, err);
}

static void tell(snug_recorder *r, const sn_plan *p) {
    r->info.n_flushes++;
    r->info.slices = p->slices;
    r->info.recomputed = p->n_recomputed;
    r->info.spilled_bytes = p->spilled_value_bytes;
    r->info.step_seconds = p->seconds;
    r->info.plain_seconds = p->plain_seconds;
}

/* The other side's bytes of what was written are old, whether the run went well or not. */
static void note_written(run *u) {
    const sn_graph *g = u->rec->graph;
    for (uint32_t i = 0; i < u->rec->n_variable; i++) {
        const sn_variable *v = sn_graph_var_at(g, (sn_var){i});
        if (v->first.i != v->last.i && u->rec->variable[i]->storage)
            u->side->wrote(u->r, u->rec->variable[i]->storage);
    }
    for (size_t i = 0; i < u->window.n; i++)
        if (u->entry->donor[i] != UINT32_MAX && u->storage[i])
            u->side->wrote(u->r, u->storage[i]);
}

/* Nothing in it is worth the way to a card. Its structure alone decides. */
static bool is_tiny(const sn_recording *rec) {
    enum { MOST_BYTES = 64 };
    for (uint32_t v = 0; v < sn_graph_n_values(rec->graph); v++) {
        const snug_type *t = sn_graph_type(rec->graph, (sn_value){v});
        size_t bytes;
        if (t->dtype == SNUG_OPAQUE || snug_type_bytes(t, &bytes, NULL) != SNUG_OK ||
            bytes > MOST_BYTES)
            return false;
    }
    return rec->n_variable == 0;
}

static snug_status run_planned(run *u, snug_error *err) {
    SNUG_TRY(bring_leaves(u, err));
    SNUG_TRY(bind(u, err));
    tell(u->r, u->entry->plan);
    sn_executor *const x = u->side->executor(u->r);
    sn_executor_use(x); /* what is prepared stays until the run is over */
    const snug_status status = execute(u, err);
    sn_executor_unuse(x);
    note_written(u);
    return status;
}

static snug_status find_and_run(run *u, snug_error *err) {
    u->direct = sn_direct_fits(u->rec);
    SNUG_TRY(name_outputs(u, err));
    if (u->window.n == 0 && !u->rec->has_effects)
        return SNUG_OK; /* nobody wants anything that is not there */
    const bool stays = u->r->n_sides == 1 || u->direct || u->rec->on_host || is_tiny(u->rec);
    u->side = stays ? &sn_host_side : u->r->side;
    if (u->direct) {
        SNUG_TRY(bring_leaves(u, err));
        return run_direct(u, err);
    }
    SNUG_TRY(find_way(u, err));
    settle_feeds(u);
    const snug_status status = run_planned(u, err);
    end_feeds(u);
    if (status != SNUG_OK && !sn_session_is_ready(u->entry->session)) {
        sn_cache_drop(u->r, u->entry);
        u->entry = NULL;
    }
    return status;
}

/* --- what comes after ------------------------------------------------------------------------- */
/* Open traces lead to it, too. */
static void replace_main(snug_recorder *r, sn_recording *by) {
    sn_recording **link = &r->now;
    while (*link != r->main)
        link = &(*link)->outer;
    *link = r->main = by;
}

/* What tapes need of the run in recordings to come, and handles. */
static snug_status carry_over(run *u, snug_error *err) {
    const sn_ran ran = {u->whole, u->fresh, &u->window, u->stored, u->n_seen, u->direct};
    if (!sn_ran_may_stay(&ran))
        return sn_ran_move(&ran, err);
    SNUG_TRY(sn_ran_stay(&ran, err));
    if (!u->window.part && u->side) {
        (void)set_feeds(u, false);
        sn_graph_clear_outputs(u->rec->graph);
    }
    replace_main(u->r, u->whole);
    u->whole = u->fresh; /* which nobody has */
    return SNUG_OK;
}

/* Of a run that began to write and could not go on. */
static void tear_variables(run *u) {
    const sn_graph *g = u->rec->graph;
    if (!sn_state_torn(u->r->state))
        return;
    sn_state_mend(u->r->state);
    for (uint32_t i = 0; i < u->rec->n_variable; i++) {
        const sn_variable *v = sn_graph_var_at(g, (sn_var){i});
        u->rec->variable[i]->torn |= v->first.i != v->last.i;
    }
}

/* Torn variables that were assigned are whole again if the run went well. */
static void mend_variables(run *u, bool went_well) {
    for (uint32_t i = 0; i < u->rec->n_variable; i++) {
        snug_variable *v = u->rec->variable[i];
        v->torn = v->torn && !(v->mended && went_well);
        v->mended = false;
    }
}

static void poison(run *u, const snug_error *why) {
    sn_poison *p = sn_poison_create(u->r, why);
    for (size_t v = 0; v < u->whole->n_values; v++)
        while (u->whole->handle[v])
            sn_tensor_poison(u->whole->handle[v], p);
    if (p && --p->refs == 0)
        sn_free(u->r->engine, SN_MEM_OTHER, p, sizeof *p);
}

static void clear(run *u) {
    snug_engine *e = u->r->engine;
    for (size_t i = 0; u->storage && i < u->window.n; i++)
        sn_storage_drop(u->r, u->storage[i]);
    sn_free(e, SN_MEM_PLAN, u->storage, u->storage ? u->window.n * sizeof *u->storage : 0);
    sn_free(e, SN_MEM_PLAN, u->stored, u->stored ? u->n_stored * sizeof *u->stored : 0);
    sn_free(e, SN_MEM_PLAN, u->fed, u->fed ? u->rec->n_leaf * sizeof *u->fed : 0);
    sn_numbers_clear(&u->roots);
    u->storage = NULL;
    u->stored = NULL;
    u->fed = NULL;
    u->window.n = u->window.part ? u->window.n : 0;
}

/* Once more after the caller has let go of what it could. */
static snug_status try_twice(run *u, snug_error *err) {
    snug_recorder *const r = u->r;
    snug_error first;
    SNUG_TRY(sn_window_open(u->whole, &u->window, err));
    u->rec = u->window.part ? u->window.part : u->whole;
    SNUG_TRY(sn_recording_inline(u->rec, err));
    const sn_graph_mark mark = sn_graph_mark_now(u->rec->graph);
    const snug_status status = find_and_run(u, &first);
    const bool collected =
        status == SNUG_E_BUDGET && r->hooks.collect && r->hooks.collect(r->hooks.ctx);
    if (status == SNUG_E_BUDGET && (sn_slots_make_way(r) || collected)) {
        clear(u);
        sn_graph_clear_outputs(u->rec->graph);
        sn_graph_go_back(u->rec->graph, &mark);
        return find_and_run(u, err);
    }
    if (status != SNUG_OK && err)
        *err = first;
    return status;
}

snug_status sn_flush(snug_recorder *r, snug_error *err) {
    run u = {.r = r, .whole = r->main, .rec = r->main};
    snug_error why = {.code = SNUG_OK};
    if (r->running)
        return sn_fail(err, SNUG_E_INVALID,
                       "a value is needed while a plan runs; read it before or after the run");
    if (u.whole->n_values == 0) {
        sn_sets_tidy(r);
        return SNUG_OK;
    }
    SNUG_TRY(sn_recording_create(r, &u.fresh, err));
    if (snug_budget_bytes(r->engine) > 0) /* there may be one by now */
        sn_storage_free_left(r);
    replace_main(r, u.fresh);
    r->running = true;
    snug_status status = try_twice(&u, &why);
    if (status == SNUG_OK)
        status = carry_over(&u, &why);
    sn_recording_stamp(r->now);
    mend_variables(&u, status == SNUG_OK);
    if (status != SNUG_OK) {
        tear_variables(&u);
        poison(&u, &why);
        if (err)
            *err = why;
    }
    clear(&u);
    sn_window_close(r, &u.window);
    r->running = false;
    sn_recording_destroy(u.whole);
    sn_sets_tidy(r);
    return status;
}
