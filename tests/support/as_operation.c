/* as_operation.c: see as_operation.h. */
#include "support/as_operation.h"

#include "record/record.h"

#include <stdio.h>
#include <string.h>

/* --- arguments -------------------------------------------------------------------------------- */
static bool holds_tensor(const snug_argument *a) {
    bool any = a->kind == SNUG_ARG_TENSOR;
    for (int i = 0; a->kind == SNUG_ARG_LIST && i < a->list.n && !any; i++)
        any = holds_tensor(&a->list.items[i]);
    return any;
}

static bool add_tensor(sn_test_operation *o, snug_tensor *t, snug_argument *out) {
    if (o->n_in == SN_MAX_IN)
        return false;
    *out = (snug_argument){.kind = SNUG_ARG_SLOT, .integer = o->n_in};
    o->in[o->n_in++] = t;
    return true;
}

static bool add_list(sn_test_operation *o, const snug_argument *a, snug_argument *out) {
    if (o->n_items + a->list.n > SN_FN_MAX_ITEMS)
        return false;
    snug_argument *const items = o->items + o->n_items;
    o->n_items += a->list.n;
    for (int i = 0; i < a->list.n; i++) {
        items[i] = a->list.items[i];
        if (items[i].kind == SNUG_ARG_LIST ||
            (items[i].kind == SNUG_ARG_TENSOR && !add_tensor(o, items[i].tensor, &items[i])))
            return false;
    }
    out->kind = SNUG_ARG_LIST;
    out->list.items = items;
    out->list.n = a->list.n;
    return true;
}

static bool add_argument(sn_test_operation *o, char kind, bool chooses, const snug_argument *a,
                         snug_argument *out) {
    const bool for_tensors = strchr("TOWMQV", kind) != NULL;
    *out = *a;
    if (a->kind != SNUG_ARG_TENSOR && a->kind != SNUG_ARG_LIST)
        return true;
    if (!for_tensors)
        return !holds_tensor(a);
    if (kind == 'Q' || kind == 'M' || (kind == 'W' && !chooses))
        return false;
    if (a->kind == SNUG_ARG_TENSOR)
        return add_tensor(o, a->tensor, out);
    return (kind == 'V' || holds_tensor(a)) && add_list(o, a, out);
}

bool sn_test_draws(const snug_function_info *info) {
    return info->traits & (SNUG_FUNCTION_DRAWS | SNUG_FUNCTION_SEEDED);
}

bool sn_test_as_operation(int function, const snug_argument *args, int n_args,
                          sn_test_operation *out) {
    const snug_function_info *const info = snug_function_at(function);
    const bool chooses = n_args > 2 && args[1].kind != SNUG_ARG_NONE;
    memset(out, 0, sizeof *out);
    out->call.function = function;
    out->call.n_args = n_args;
    if (sn_test_draws(info))
        return false;
    for (int i = 0; i < n_args; i++) {
        sn_fn_entry e;
        if (!sn_signature_at(info->signature, i, &e) ||
            !add_argument(out, e.kind, chooses && i == 0, &args[i], &out->call.args[i]))
            return false;
    }
    return out->n_in > 0;
}

/* --- the layer -------------------------------------------------------------------------------- */
typedef struct {
    sn_layer layer;
    sn_conf_operation conf;
    sn_layer_call call;
} applied;

static snug_status begin(applied *a, const sn_test_operation *o, sn_network *n, sn_builder *b,
                         snug_error *err) {
    const sn_layer_class *cls;
    SNUG_TRY(sn_layer_class_find("Operation", &cls, err));
    a->conf = (sn_conf_operation){.call = &o->call};
    a->layer = (sn_layer){.cls = cls, .name = "t", .conf = &a->conf};
    a->call = (sn_layer_call){.b = b,
                              .network = n,
                              .layer = &a->layer,
                              .path = "t",
                              .conf = &a->conf,
                              .n_in = o->n_in,
                              .call = "",
                              .n_out = 1};
    for (int i = 0; i < SN_MAX_IN; i++)
        a->call.in[i] = a->call.mask[i] = SN_NO_VALUE;
    return SNUG_OK;
}

static snug_status record(const sn_test_operation *o, snug_recorder *r, sn_network *n,
                          snug_tensor **out, int *n_out, snug_error *err) {
    sn_record_call rc;
    applied a;
    SNUG_TRY(sn_record_begin(r, &rc, err));
    if (begin(&a, o, n, &rc.b, &rc.b.error) == SNUG_OK) {
        for (int i = 0; i < o->n_in; i++)
            a.call.in[i] = sn_record_use(&rc, o->in[i]);
        sn_layer_run(&a.call);
        *n_out = a.call.n_out;
        for (int i = 0; i < *n_out; i++)
            out[i] = sn_record_give(&rc, a.call.outs[i]);
    }
    return sn_record_end(&rc, err);
}

snug_status sn_test_apply(const sn_test_operation *o, snug_recorder *r, snug_tensor **out,
                          int *n_out, snug_error *err) {
    sn_network *n;
    SNUG_TRY(sn_network_create_bare(snug_recorder_engine(r), SNUG_F32, &n, err));
    const snug_status status = record(o, r, n, out, n_out, err);
    sn_network_destroy(n);
    return status;
}

/* --- open batches ----------------------------------------------------------------------------- */
static snug_status infer(const sn_test_operation *o, sn_network *n, sn_graph *g, snug_type *types,
                         int *n_out, snug_error *err) {
    const snug_type *const first = snug_tensor_type(o->in[0]);
    sn_builder b = sn_builder_on(g);
    applied a;
    SNUG_TRY(begin(&a, o, n, &b, err));
    for (int i = 0; i < o->n_in; i++) {
        snug_type t = *snug_tensor_type(o->in[i]);
        char name[16];
        if (t.rank > 0 && first->rank > 0 && t.dims[0] == first->dims[0])
            t.dims[0] = -1;
        snprintf(name, sizeof name, "x%d", i);
        SNUG_TRY(sn_graph_input(g, name, &t, &a.call.in[i], err));
    }
    sn_layer_run(&a.call);
    SNUG_TRY(sn_builder_done(&b, err));
    *n_out = a.call.n_out;
    for (int i = 0; i < *n_out; i++)
        types[i] = *sn_graph_type(g, a.call.outs[i]);
    return SNUG_OK;
}

snug_status sn_test_infer(const sn_test_operation *o, snug_recorder *r, snug_type *types,
                          int *n_out, snug_error *err) {
    sn_network *n;
    sn_graph *g;
    SNUG_TRY(sn_graph_create(snug_recorder_engine(r), &g, err));
    snug_status status = sn_network_create_bare(snug_recorder_engine(r), SNUG_F32, &n, err);
    if (status == SNUG_OK) {
        status = infer(o, n, g, types, n_out, err);
        sn_network_destroy(n);
    }
    sn_graph_destroy(g);
    return status;
}
