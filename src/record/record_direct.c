/* record_direct.c: a long recording of tiny values runs node by node, without a plan: thousands of
 * scalar operations in a Python loop. A plan's step takes more bytes and time than such a kernel
 * call; memory is not scarce where every value is a few bytes.
 *
 * Nodes of one operator that look alike, but for their parameters, share a *model*: views, kernel
 * and call, into which only addresses and parameters are written.
 *
 * Which recordings run so depends on their structure alone; nodes that ran before and are there for
 * tapes run again where a result needs them. */
#include "exec/inside.h"
#include "record/recording.h"

#include <string.h>

#define LEAST_NODES   1024
#define MOST_OPERANDS 8
#define ASK_EVERY     1024 /* nodes between two looks for an interrupt */

typedef struct {
    const sn_node_info *like; /* NULL: there is none yet */
    sn_kernel kernel, check;  /* check may be NULL */
    sn_call call;
    snug_view views[MOST_OPERANDS];
} model;

typedef struct {
    const sn_recording *rec;
    const sn_graph *graph;
    const sn_direct_values *values;
    sn_zone *zone;
    sn_team *team;
    bool *needed; /* per node */
    void **data;  /* per value; NULL: not there (yet) */
    model *models[SN_N_OPS];
    sn_node failed;
} runner;

/* --- which recordings ------------------------------------------------------------------------- */
static bool is_tiny(const snug_type *t) {
    size_t bytes;
    return t->dtype != SNUG_OPAQUE && snug_type_bytes(t, &bytes, NULL) == SNUG_OK &&
           bytes <= SN_DIRECT_BYTES;
}

static bool is_plain(const sn_node_info *n) {
    const sn_cpu_family *family = sn_cpu_family_of(n->op);
    return (sn_ops[n->op].effect == SN_PURE || sn_ops[n->op].effect == SN_RANDOM) &&
           n->n_in + n->n_out <= MOST_OPERANDS && !family->prepare;
}

bool sn_direct_fits(const sn_recording *rec) {
    const sn_graph *g = rec->graph;
    const uint32_t n_nodes = sn_graph_n_nodes(g), n_values = sn_graph_n_values(g);
    if (n_nodes < LEAST_NODES || rec->n_variable > 0)
        return false;
    for (uint32_t v = rec->n_tiny_values; v < n_values; v++)
        if (!is_tiny(sn_graph_type(g, (sn_value){v})))
            return false;
    for (uint32_t i = rec->n_tiny_nodes; i < n_nodes; i++)
        if (!is_plain(sn_graph_node_at(g, (sn_node){i})))
            return false;
    return true;
}

/* --- bytes for what it gives ------------------------------------------------------------------ */
/* Values that tapes alone want lie in one block: they go together. */
static snug_status share_block(const sn_recording *rec, const sn_direct_values *values,
                               sn_storage **storage, snug_error *err) {
    sn_storage *all;
    size_t n = 0;
    for (size_t i = 0; i < values->n; i++)
        n += !values->result[i].held;
    if (n == 0)
        return SNUG_OK;
    SNUG_TRY(sn_storage_create(rec->r, SN_MEM_TENSORS, n * SN_DIRECT_BYTES, &all, err));
    for (size_t i = 0; i < values->n; i++) {
        const sn_value v = values->result[i].made;
        if (values->result[i].held)
            continue;
        sn_storage_hold(storage[i] = all);
        values->stored[v.i] = (sn_leaf){.storage = all, .offset = --n * SN_DIRECT_BYTES};
    }
    sn_storage_drop(rec->r, all);
    return SNUG_OK;
}

snug_status sn_direct_store(const sn_recording *rec, const sn_direct_values *values,
                            sn_storage **storage, snug_error *err) {
    SNUG_TRY(share_block(rec, values, storage, err));
    for (size_t i = 0; i < values->n; i++) {
        const sn_value v = values->result[i].made;
        size_t bytes;
        if (storage[i])
            continue;
        SNUG_TRY(snug_type_bytes(sn_graph_type(rec->graph, v), &bytes, err));
        SNUG_TRY(sn_storage_create(rec->r, SN_MEM_TENSORS, bytes, &storage[i], err));
        values->stored[v.i] = (sn_leaf){.storage = storage[i]};
    }
    return SNUG_OK;
}

/* --- models ----------------------------------------------------------------------------------- */
static bool same_settings(const sn_node_info *a, const sn_node_info *b) {
    const sn_attr_family *family = sn_ops[a->op].attrs;
    for (int f = 0; f < family->n_fields; f++) {
        const sn_field *field = &family->fields[f];
        for (int k = 0; !sn_field_is_param(field) && k < field->n; k++)
            if (a->attrs.word[field->word + k] != b->attrs.word[field->word + k])
                return false;
    }
    return true;
}

static bool is_like(const runner *r, const model *m, const sn_node_info *n) {
    if (!m->like || m->like->n_in != n->n_in || m->like->n_out != n->n_out)
        return false;
    for (int k = 0; k < n->n_in; k++)
        if (!sn_type_equal(&m->views[k].type, sn_graph_type(r->graph, n->in[k])))
            return false;
    for (int k = 0; k < n->n_out; k++)
        if (!sn_type_equal(&m->views[n->n_in + k].type, sn_graph_type(r->graph, n->out[k])))
            return false;
    return same_settings(m->like, n);
}

static snug_status set_view(const runner *r, sn_value v, snug_view *out, snug_error *err) {
    out->type = *sn_graph_type(r->graph, v);
    return snug_type_bytes(&out->type, &out->bytes, err);
}

static snug_status make_model(runner *r, const sn_node_info *n, uint32_t i, model *m,
                              snug_error *err) {
    const sn_cpu_device *device = &r->rec->r->device;
    sn_opdesc desc;
    sn_variant variant = {0};
    void *scratch;
    m->like = NULL;
    for (int k = 0; k < n->n_in + n->n_out; k++)
        SNUG_TRY(set_view(r, k < n->n_in ? n->in[k] : n->out[k - n->n_in], &m->views[k], err));
    sn_graph_desc(r->graph, (sn_node){i}, &desc);
    SNUG_TRY(device->device.describe(&device->device, &desc, &variant, err));
    SNUG_TRY(sn_lapack_warm(r->rec->r->engine, err)); /* no plan asks for its code */
    SNUG_TRY(sn_zone_alloc(r->zone, variant.workspace_bytes, &scratch, err));
    m->kernel = sn_kernel_of(device, n->op);
    m->check = sn_cpu_family_of(n->op)->check;
    m->call = (sn_call){.op = n->op,
                        .n_in = n->n_in,
                        .n_out = n->n_out,
                        .in = m->views,
                        .out = m->views + n->n_in,
                        .workspace = scratch,
                        .workspace_bytes = variant.workspace_bytes,
                        .n_threads = device->device.n_threads,
                        .team = r->team};
    m->call.full = m->views[n->n_in].type.rank > 0 ? m->views[n->n_in].type.dims[0] : 1;
    m->like = n;
    return SNUG_OK;
}

static snug_status find_model(runner *r, const sn_node_info *n, uint32_t i, model **out,
                              snug_error *err) {
    model *m = r->models[n->op];
    if (!m) {
        void *block;
        SNUG_TRY(sn_zone_alloc(r->zone, sizeof *m, &block, err));
        m = r->models[n->op] = block;
    }
    *out = m;
    return is_like(r, m, n) ? SNUG_OK : make_model(r, n, i, m, err);
}

/* --- running ---------------------------------------------------------------------------------- */
static snug_status run_node(runner *r, uint32_t i, snug_error *err) {
    const sn_node_info *n = sn_graph_node_at(r->graph, (sn_node){i});
    sn_scalar params[SN_MAX_PARAMS];
    uint32_t slots[SN_MAX_PARAMS];
    model *m;
    SNUG_TRY(find_model(r, n, i, &m, err));
    for (int k = 0; k < n->n_in; k++)
        m->views[k].data = r->data[n->in[k].i];
    for (int k = 0; k < n->n_out; k++) {
        snug_view *view = &m->views[n->n_in + k];
        SNUG_TRY(sn_zone_alloc(r->zone, view->bytes, &view->data, err));
        r->data[n->out[k].i] = view->data;
    }
    const uint32_t n_params = sn_param_slots(n->op, &n->attrs, slots);
    for (uint32_t k = 0; k < n_params; k++)
        params[k] = slots[k] < sn_graph_n_params(r->graph)
                        ? sn_param_default(sn_graph_param_at(r->graph, (sn_param){slots[k]}))
                        : (sn_scalar){.key = 0};
    m->call.attrs = &n->attrs;
    m->call.param = params;
    snug_status status = m->check ? m->check(&m->call, err) : SNUG_OK;
    if (status == SNUG_OK)
        status = m->kernel(&m->call, err);
    if (status != SNUG_OK)
        r->failed = (sn_node){i};
    return status;
}

static void mark_needed(const runner *r) {
    const sn_graph *g = r->graph;
    for (size_t i = 0; i < r->values->n; i++)
        r->needed[sn_graph_value_at(g, r->values->result[i].made)->node.i] = true;
    for (uint32_t i = sn_graph_n_nodes(g); i-- > 0;) {
        const sn_node_info *n = sn_graph_node_at(g, (sn_node){i});
        for (int k = 0; r->needed[i] && k < n->n_in; k++) {
            const sn_node maker = sn_graph_value_at(g, n->in[k])->node;
            if (maker.i != UINT32_MAX)
                r->needed[maker.i] = true;
        }
    }
}

static bool is_interrupted(const snug_recorder *r, uint32_t i) {
    return i % ASK_EVERY == 0 && r->hooks.interrupt && r->hooks.interrupt(r->hooks.ctx) != 0;
}

static snug_status run_all(runner *r, snug_error *err) {
    const sn_recording *rec = r->rec;
    for (uint32_t i = 0; i < rec->n_leaf; i++)
        if (rec->leaf[i].storage)
            r->data[sn_graph_input_at(r->graph, i).i] =
                (char *)rec->leaf[i].storage->data + rec->leaf[i].offset;
    mark_needed(r);
    for (uint32_t i = 0; i < sn_graph_n_nodes(r->graph); i++) {
        if (is_interrupted(rec->r, i))
            return sn_fail(err, SNUG_E_INTERRUPTED, "stopped by the caller");
        if (r->needed[i])
            SNUG_TRY(run_node(r, i, err));
    }
    for (size_t i = 0; i < r->values->n; i++) {
        const sn_value v = r->values->result[i].made;
        const sn_leaf *to = &r->values->stored[v.i];
        size_t bytes;
        SNUG_TRY(snug_type_bytes(sn_graph_type(r->graph, v), &bytes, err));
        memcpy((char *)to->storage->data + to->offset, r->data[v.i], bytes);
    }
    return SNUG_OK;
}

static snug_status take_arrays(runner *r, snug_error *err) {
    void *block;
    SNUG_TRY(sn_zone_alloc(r->zone, sn_graph_n_nodes(r->graph) * sizeof *r->needed, &block, err));
    r->needed = block;
    SNUG_TRY(sn_zone_alloc(r->zone, sn_graph_n_values(r->graph) * sizeof *r->data, &block, err));
    r->data = block;
    return SNUG_OK;
}

snug_status sn_direct_run(const sn_recording *rec, const sn_direct_values *values, sn_node *failed,
                          snug_error *err) {
    snug_engine *e = rec->r->engine;
    runner r = {.rec = rec, .graph = rec->graph, .values = values, .failed = SN_NO_NODE};
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &r.zone, err));
    snug_status status = take_arrays(&r, err);
    if (status == SNUG_OK)
        status = sn_team_hold(e, &r.team, err);
    if (status == SNUG_OK) {
        status = run_all(&r, err);
        sn_team_drop(e);
    }
    sn_zone_destroy(r.zone);
    *failed = r.failed;
    return status;
}
