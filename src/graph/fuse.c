/* fuse.c: rewrites a graph into a smaller one with the same results. First what no output and no
 * effect needs is dropped; then a table of patterns is tried at each node, in node order; what they
 * left without readers is dropped, too; last the records are replayed into a new graph, what may
 * refuse its values before what writes variables.
 *
 * A record says what is emitted in the place of an old node, in terms of old value ids; a pattern
 * changes records and marks those it absorbs as gone. Patterns look at operators, types and readers
 * only: never at a budget, and never at the extent of the batch.
 *
 * Invariants:
 * 1. Every value a record reads is made by a record in an earlier place, or is no node's output.
 * 2. An absorbed value had one reader, which was absorbed with it, and is no output.
 * 3. Backward records stay valid: an activation's gradient reads the fused node's output. */
#include "graph/fuse.h"
#include "graph/replay.h"

#include <string.h>

/* --- dead code -------------------------------------------------------------------------------- */

static void need_value(const sn_fuser *f, bool *needed, sn_value v) {
    if (f->maker[v.i] != UINT32_MAX)
        needed[f->maker[v.i]] = true;
}

/* An inverse extent that is still unknown needs its value to be there, by itself, when it becomes
 * known. */
static void need_params(const sn_fuser *f, bool *needed, const sn_node_info *node) {
    const sn_attr_family *family = sn_ops[node->op].attrs;
    for (int i = 0; i < family->n_fields; i++) {
        const sn_field *field = &family->fields[i];
        if (field->kind != SN_FIELD_REAL)
            continue;
        const sn_param_info *p =
            sn_graph_param_at(f->g, (sn_param){(uint32_t)node->attrs.word[field->word]});
        if (p->kind != SN_PARAM_INVERSE_EXTENT || sn_type_known(sn_graph_type(f->g, p->of)))
            continue;
        need_value(f, needed, p->of);
        sn_fuse_unlist(f, p->of);
    }
}

static snug_status drop_dead(sn_fuser *f, snug_error *err) {
    void *block;
    SNUG_TRY(sn_zone_alloc(f->zone, f->n_nodes * sizeof(bool), &block, err));
    bool *needed = block;
    for (uint32_t i = 0; i < sn_graph_n_outputs(f->g); i++)
        need_value(f, needed, sn_graph_output_at(f->g, i));
    for (uint32_t n = f->n_nodes; n-- > 0;) {
        const sn_node_info *node = &f->records[n].node;
        const sn_effect effect = sn_ops[node->op].effect;
        const bool may_fail = effect == SN_MAYFAIL && n >= f->options.n_checked;
        if (!needed[n] && effect != SN_STATE && !may_fail)
            f->records[n].gone = true;
        if (f->records[n].gone)
            continue;
        need_params(f, needed, node);
        for (int i = 0; i < node->n_in; i++)
            need_value(f, needed, node->in[i]);
    }
    return SNUG_OK;
}

/* --- readers ---------------------------------------------------------------------------------- */

/* Lists, per value, the places that read it, ascending; an operand used twice counts twice. */
static snug_status list_readers(sn_fuser *f, snug_error *err) {
    const uint32_t n_values = sn_graph_n_values(f->g);
    size_t total = 0;
    for (uint32_t n = 0; n < f->n_nodes; n++)
        total += f->records[n].gone ? 0 : f->records[n].node.n_in;
    void *places, *fill;
    SNUG_TRY(sn_zone_alloc(f->zone, total * sizeof *f->places, &places, err));
    SNUG_TRY(sn_zone_alloc(f->zone, n_values * sizeof(uint32_t), &fill, err));
    f->places = places;
    uint32_t *filled = fill;
    for (uint32_t n = 0; n < f->n_nodes; n++)
        for (int i = 0; !f->records[n].gone && i < f->records[n].node.n_in; i++)
            f->readers[f->records[n].node.in[i].i].n++;
    uint32_t first = 0;
    for (uint32_t v = 0; v < n_values; v++) {
        f->readers[v].first = first;
        first += f->readers[v].n;
    }
    for (uint32_t n = 0; n < f->n_nodes; n++)
        for (int i = 0; !f->records[n].gone && i < f->records[n].node.n_in; i++) {
            const uint32_t v = f->records[n].node.in[i].i;
            f->places[f->readers[v].first + filled[v]++] = n;
        }
    for (uint32_t i = 0; i < sn_graph_n_outputs(f->g); i++)
        f->readers[sn_graph_output_at(f->g, i).i].is_kept = true;
    return SNUG_OK;
}

/* --- the rewrite ------------------------------------------------------------------------------ */

static snug_status make_records(sn_fuser *f, snug_error *err) {
    void *block;
    SNUG_TRY(sn_zone_alloc(f->zone, f->n_nodes * sizeof *f->records, &block, err));
    f->records = block;
    const uint32_t n_values = sn_graph_n_values(f->g);
    SNUG_TRY(sn_zone_alloc(f->zone, n_values * sizeof *f->readers, &block, err));
    f->readers = block;
    SNUG_TRY(sn_zone_alloc(f->zone, n_values * sizeof *f->maker, &block, err));
    f->maker = block;
    for (uint32_t v = 0; v < n_values; v++)
        f->maker[v] = sn_graph_value_at(f->g, (sn_value){v})->node.i;
    for (uint32_t n = 0; n < f->n_nodes; n++) {
        sn_record *r = &f->records[n];
        sn_graph_copy_node(f->g, (sn_node){n}, &r->node);
        for (int i = 0; i < r->node.n_in; i++)
            r->in[i] = r->node.in[i];
        for (int k = 0; k < r->node.n_out; k++)
            r->out[k] = r->node.out[k];
        r->node.in = r->in;
        r->node.out = r->out;
    }
    return SNUG_OK;
}

static void try_patterns(sn_fuser *f) {
    for (uint32_t n = 0; n < f->n_nodes; n++) {
        bool done = f->records[n].gone;
        for (int p = 0; sn_fuse_patterns[p] && !done; p++)
            done = sn_fuse_patterns[p](f, n);
    }
}

/* --- checks before writes --------------------------------------------------------------------- */

/* Whether a record writes a variable or reads, over any number of others, what such a one gives. */
static bool depends_on_write(const bool *written, const sn_node_info *node) {
    bool depends = sn_ops[node->op].effect == SN_STATE;
    for (int i = 0; i < node->n_in && !depends; i++)
        depends = written[node->in[i].i];
    return depends;
}

/* What may refuse its values goes before the first write of a variable where it does not need what
 * was written: a run that is refused has then changed nothing (what it does need is taken back,
 * plan/take_back.c). late[n]: record n comes behind all that are not; *late NULL: they are in such
 * an order as they are, or extents are still open, of which parameters may be made in between. */
static snug_status find_late(const sn_fuser *f, bool **late, snug_error *err) {
    void *block;
    bool wrote = false, moves = false, open = false;
    SNUG_TRY(sn_zone_alloc(f->zone, f->n_nodes * sizeof(bool), &block, err));
    bool *is_late = block;
    SNUG_TRY(sn_zone_alloc(f->zone, sn_graph_n_values(f->g) * sizeof(bool), &block, err));
    bool *written = block; /* per value: it depends on a write */
    for (uint32_t n = 0; n < f->n_nodes; n++) {
        const sn_node_info *node = &f->records[n].node;
        if (f->records[n].gone)
            continue;
        is_late[n] = depends_on_write(written, node);
        for (int k = 0; k < node->n_out; k++) {
            written[node->out[k].i] = is_late[n];
            open = open || !sn_type_known(sn_graph_type(f->g, node->out[k]));
        }
        wrote = wrote || sn_ops[node->op].effect == SN_STATE;
        moves = moves || (wrote && !is_late[n] && sn_ops[node->op].effect == SN_MAYFAIL);
    }
    *late = moves && !open ? is_late : NULL;
    return SNUG_OK;
}

/* --- the new graph ---------------------------------------------------------------------------- */

/* The halves that others read of what a record gives. */
static snug_status round_outputs(const sn_fuser *f, sn_replay *r, const sn_record *record,
                                 snug_error *err) {
    for (int k = 0; k < record->node.n_out; k++) {
        sn_value *const v = &r->value[record->out[k].i];
        const sn_value sum = *v;
        int n_out;
        sn_attrs a;
        sn_attrs_default(SN_OP_cast, &a);
        a.dtype.dtype = sn_graph_type(f->g, record->out[k])->dtype;
        SNUG_TRY(sn_graph_node(r->to, SN_OP_cast, &a, &sum, 1, v, &n_out, err));
    }
    return SNUG_OK;
}

static snug_status emit_record(const sn_fuser *f, sn_replay *r, uint32_t n, snug_error *err) {
    const sn_record *const record = &f->records[n];
    const uint32_t first = sn_graph_n_nodes(r->to);
    SNUG_TRY(sn_replay_node(r, &record->node, err));
    if (record->rounds)
        SNUG_TRY(round_outputs(f, r, record, err));
    for (uint32_t i = first; f->options.origin && i < sn_graph_n_nodes(r->to); i++)
        f->options.origin[i] = n;
    return SNUG_OK;
}

static snug_status emit_records(const sn_fuser *f, sn_replay *r, const bool *late, bool which,
                                snug_error *err) {
    for (uint32_t n = 0; n < f->n_nodes; n++) {
        if (f->records[n].gone || (late && late[n] != which))
            continue;
        SNUG_TRY(emit_record(f, r, n, err));
    }
    return SNUG_OK;
}

static snug_status emit(const sn_fuser *f, sn_graph **out, snug_error *err) {
    sn_replay r;
    bool *late;
    SNUG_TRY(find_late(f, &late, err));
    snug_status status = sn_replay_init(&r, f->g, NULL, err);
    if (status != SNUG_OK)
        return status;
    status = emit_records(f, &r, late, false, err);
    if (status == SNUG_OK && late)
        status = emit_records(f, &r, late, true, err);
    if (status == SNUG_OK)
        status = sn_replay_take(&r, out, err);
    if (status == SNUG_OK && f->options.params)
        memcpy(f->options.params, r.param, sn_graph_n_params(f->g) * sizeof *r.param);
    sn_replay_clear(&r);
    return status;
}

static snug_status run_rewrite(sn_fuser *f, sn_graph **out, snug_error *err) {
    SNUG_TRY(make_records(f, err));
    SNUG_TRY(drop_dead(f, err));
    SNUG_TRY(list_readers(f, err));
    try_patterns(f);
    sn_fuse_operands(f);
    sn_fuse_round_sums(f);
    SNUG_TRY(drop_dead(f, err));
    return emit(f, out, err);
}

uint32_t sn_graph_most_fused(const sn_graph *g) {
    uint32_t most = sn_graph_n_nodes(g);
    for (uint32_t n = 0; n < sn_graph_n_nodes(g); n++) {
        const sn_node_info *node = sn_graph_node_at(g, (sn_node){n});
        most += sn_fuse_sums_halves(g, node) ? (uint32_t)node->n_out : 0;
    }
    return most;
}

snug_status sn_graph_fuse(const sn_graph *g, sn_graph **out, snug_error *err) {
    const sn_fuse_options none = {0};
    return sn_graph_fuse_with(g, &none, out, err);
}

snug_status sn_graph_fuse_with(const sn_graph *g, const sn_fuse_options *options, sn_graph **out,
                               snug_error *err) {
    sn_fuser f = {.g = g, .options = *options, .n_nodes = sn_graph_n_nodes(g)};
    SNUG_TRY(sn_zone_create(g->engine, SN_MEM_GRAPH, &f.zone, err));
    const snug_status status = run_rewrite(&f, out, err);
    sn_zone_destroy(f.zone);
    return status;
}

static bool has_wide_update(const sn_graph *g) {
    for (uint32_t i = 0; i < sn_graph_n_nodes(g); i++) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        if (n->op == SN_OP_adam && sn_type_count(sn_graph_type(g, n->in[0])) >= SN_WIDE_WEIGHTS)
            return true;
    }
    return false;
}

snug_status sn_graph_fuse_updates(const sn_graph *g, const sn_graph *fused,
                                  const sn_fuse_options *options, sn_graph **out, snug_error *err) {
    sn_fuse_options wide = *options;
    wide.dense_update = SN_WIDE_WEIGHTS;
    *out = NULL;
    if (!has_wide_update(fused))
        return SNUG_OK;
    SNUG_TRY(sn_graph_fuse_with(g, &wide, out, err));
    if (sn_graph_n_nodes(*out) < sn_graph_n_nodes(fused))
        return SNUG_OK;
    sn_graph_destroy(*out);
    *out = NULL;
    return SNUG_OK;
}
