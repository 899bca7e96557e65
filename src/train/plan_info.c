/* plan_info.c: what a step will use, before it is run. The process itself (code, libraries, stacks)
 * is what the system counts for it now, less what the ledger holds, rounded up to 8 MiB so that the
 * same model gives the same numbers. */
#include "train/model.h"

#include "base/size.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PROCESS_BAND ((size_t)8 << 20)

/* The number of kB behind a key of /proc/self/status, in bytes; 0 where the system does not say. */
static size_t status_bytes(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? (size_t)strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

static size_t process_bytes(const snug_model *m) {
    const snug_io *io = sn_engine_io(m->engine);
    char text[4096];
    size_t n = 0;
    const int fd = io->open(io->ctx, "/proc/self/status", O_RDONLY, 0);
    if (fd >= 0) {
        const int64_t got = io->pread(io->ctx, fd, text, sizeof text - 1, 0);
        n = got > 0 ? (size_t)got : 0;
        io->close(io->ctx, fd);
    }
    text[n] = 0;
    const size_t resident = status_bytes(text, "VmRSS:"), files = status_bytes(text, "RssFile:");
    const size_t held = snug_engine_bytes(m->engine);
    const size_t own = resident > held && resident - held > files ? resident - held : files;
    size_t rounded = 0;
    return sn_size_align(own, PROCESS_BAND, &rounded) ? rounded : own;
}

/* What the ledger holds now in every category but those the plan speaks of. */
static size_t rest_bytes(const snug_model *m) {
    snug_memory_row rows[SN_N_CATEGORIES];
    size_t n = snug_engine_memory(m->engine, rows, SN_N_CATEGORIES), sum = 0;
    for (size_t i = 0; i < n && i < SN_N_CATEGORIES; i++) {
        if (rows[i].owner[0])
            continue;
        const char *c = rows[i].category;
        if (strcmp(c, "weights") != 0 && strcmp(c, "optimizer") != 0 && strcmp(c, "arena") != 0)
            sum += rows[i].bytes;
    }
    return sum;
}

static void sum_state(const snug_model *m, int train, snug_model_plan_info *out) {
    for (size_t i = 0; i < m->network->n_vars; i++) {
        const sn_net_var *v = &m->network->vars[i];
        const size_t bytes = (size_t)sn_type_count(&v->type) * snug_dtype_bytes(v->type.dtype);
        if (!v->slot)
            out->weights_bytes += bytes;
        else if (train)
            out->optimizer_bytes += bytes;
    }
}

static void name_peak(const sn_model_step *s, snug_model_plan_info *out) {
    const sn_plan *plan = s->plan;
    out->peak_layer = out->peak_operator = "";
    if (plan->peak_step >= plan->n_steps || plan->steps[plan->peak_step].kind != SN_STEP_RUN)
        return;
    const sn_node_info *node = sn_graph_node_at(s->graph, plan->steps[plan->peak_step].node);
    out->peak_layer = sn_graph_owner_name(s->graph, node->owner);
    out->peak_operator = sn_ops[node->op].name;
}

snug_status snug_model_plan(snug_model *m, const snug_plan_request *request,
                            snug_model_plan_info *out, snug_error *err) {
    if (!m || !request || !out)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_model_plan: model, request and out must not be NULL");
    sn_model_step *s;
    SNUG_TRY(sn_model_step_find(m, request->train ? SN_STEP_TRAIN : SN_STEP_PREDICT, request->batch,
                                &s, err));
    const sn_plan_memory *arena = &s->plan->memories[SN_MEM_FIRST_ARENA];
    sn_plan_categories live;
    sn_plan_peak_categories(s->plan, &live);
    snug_model_plan_info info = {
        .process_bytes = process_bytes(m),
        .arena_bytes = arena->bytes,
        .lower_bound_bytes = arena->lower_bound_bytes,
        .input_bytes = live.inputs,
        .activation_bytes = live.activations,
        .gradient_bytes = live.gradients,
        .workspace_bytes = live.workspace,
        .output_bytes = live.outputs,
        .graph_bytes = sn_graph_bytes(s->graph),
        .plan_bytes = sn_zone_bytes(s->plan->zone),
        .n_nodes = sn_graph_n_nodes(s->graph),
        .n_steps = s->plan->n_steps,
        .flops = s->plan->flops,
    };
    sum_state(m, request->train, &info);
    info.peak_bytes = info.process_bytes + info.weights_bytes + info.optimizer_bytes +
                      info.arena_bytes + rest_bytes(m) + s->plan->code_bytes;
    name_peak(s, &info);
    *out = info;
    return SNUG_OK;
}
