/* plan_check_start.c: what the checker (plan_check.c) knows before the first step of a plan. */
#include "plan/plan_check.h"

#include <string.h>

/* No machine has so much; it is no fault of the plan. */
static snug_status too_large(const sn_checker *c, size_t bytes) {
    return sn_fail(c->err, SNUG_E_MEMORY,
                   "the plan needs a memory of %zu bytes, more than any machine has; use a smaller "
                   "batch or model",
                   bytes);
}

snug_status sn_check_head(sn_checker *c, uint32_t n_devices) {
    const sn_plan *p = c->p;
    int open = 0;
    REQUIRE(p->n_devices == n_devices && n_devices > 0 && n_devices <= SN_MAX_DEVICES,
            "the plan is for another number of devices");
    for (uint32_t d = 0; d < n_devices; d++)
        REQUIRE(
            p->device_align[d] == c->devices[d]->align &&
                !strncmp(p->device_names[d], c->devices[d]->name, sizeof p->device_names[d] - 1),
            "the plan is for another device or alignment");
    REQUIRE(p->n_memories >= 2 && p->n_memories <= SN_MAX_MEMORIES, "the plan's memories are bad");
    for (uint32_t m = 0; m < p->n_memories; m++) {
        const bool file = p->memories[m].kind == SN_MEMORY_FILE;
        REQUIRE(p->memories[m].device < n_devices, "a memory is on no device");
        if (p->memories[m].bytes > SN_CHECK_MOST_BYTES)
            return too_large(c, p->memories[m].bytes);
        REQUIRE(!file || (m > SN_MEM_FIRST_ARENA && p->memories[m].bytes > 0 &&
                          p->memories[m].bytes % SN_FILE_ALIGN == 0),
                "a file is not some whole pages, or the state or first arena");
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        open += (p->steps[i].kind == SN_STEP_REPEAT) - (p->steps[i].kind == SN_STEP_END);
        REQUIRE(open == 0 || open == 1, "a block inside a block, or an end of none");
    }
    REQUIRE(open == 0, "the end is inside a block");
    return SNUG_OK;
}

/* Bytes behind all that the state has: of a value that is there from the start, or will be made. */
static snug_status append_home(sn_checker *c, uint32_t v, bool is_there, int64_t *start) {
    int64_t *end = &c->size[SN_MEM_STATE];
    sn_check_record r = {.lane = 0};
    c->value = v;
    *start = *end;
    *end += (int64_t)c->p->value_bytes[v];
    REQUIRE(*end <= SN_CHECK_MOST_BYTES, "is too large");
    for (int e = 0; is_there && e < 2; e++) {
        r.root.at[e] = v;
        r.done.at[e] = SN_CHECK_ALL_ROWS;
        r.shift.at[e] = -*start;
    }
    return sn_spans_append(&c->map[SN_MEM_STATE], *end, &r, c->err);
}

/* Homes with their first versions, one behind the other; those in the file behind those in
 * memory. */
static snug_status set_up_homes(sn_checker *c, bool file) {
    for (uint32_t i = 0; i < sn_graph_n_vars(c->g); i++) {
        const uint32_t v = sn_graph_var_at(c->g, (sn_var){i})->first.i;
        if (sn_plan_spills(c->p, (sn_var){i}) == file)
            SNUG_TRY(append_home(c, v, true, &c->home[i]));
    }
    return SNUG_OK;
}

/* An input that steps feed: it is no output's bytes. */
static bool is_fed(const sn_checker *c, sn_value v) {
    bool output = false;
    if (!sn_graph_value_at(c->g, v)->fed)
        return false;
    for (uint32_t i = 0; i < sn_graph_n_outputs(c->g); i++)
        output = output || c->root[sn_graph_output_at(c->g, i).i] == c->root[v.i];
    return !output;
}

/* Inputs, which are there, and outputs, which are not yet, of a graph that has them outside. */
static snug_status set_up_outside(sn_checker *c) {
    const uint32_t n_inputs = sn_graph_n_inputs(c->g), n_outputs = sn_graph_n_outputs(c->g);
    for (uint32_t v = 0; v < sn_graph_n_values(c->g); v++)
        c->outside[v] = SN_CHECK_NOWHERE;
    for (uint32_t i = 0; sn_graph_is_outside(c->g) && i < n_inputs + n_outputs; i++) {
        const sn_value v =
            i < n_inputs ? sn_graph_input_at(c->g, i) : sn_graph_output_at(c->g, i - n_inputs);
        const uint32_t root = c->root[v.i];
        if (c->outside[root] != SN_CHECK_NOWHERE || (i < n_inputs && is_fed(c, v)) ||
            sn_graph_value_at(c->g, (sn_value){root})->var >= 0)
            continue;
        SNUG_TRY(append_home(c, root, i < n_inputs, &c->outside[root]));
    }
    return SNUG_OK;
}

/* Whose bytes each value is, and how many. */
static snug_status set_up_values(sn_checker *c) {
    const uint32_t n_nodes = sn_graph_n_nodes(c->g);
    for (uint32_t v = 0; v < sn_graph_n_values(c->g); v++) {
        const sn_value_info *vi = sn_graph_value_at(c->g, (sn_value){v});
        const bool alias =
            vi->node.i < n_nodes && sn_check_row(c, vi->node.i)->inplace == SN_INPLACE_ALIAS;
        size_t bytes = c->p->value_bytes[v]; /* opaque ones: check_kernel */
        c->value = v;
        if (vi->type.dtype != SNUG_OPAQUE)
            SNUG_TRY(snug_type_bytes(&vi->type, &bytes, c->err));
        REQUIRE(bytes == c->p->value_bytes[v] && bytes <= SN_CHECK_MOST_BYTES, "has another size");
        c->root[v] = v;
        const sn_value from = alias ? sn_graph_node_at(c->g, vi->node)->in[0] : (sn_value){v};
        if (sn_graph_value_at(c->g, from)->var < 0) /* a variable's home is copied from */
            c->root[v] = c->root[from.i];
    }
    return SNUG_OK;
}

snug_status sn_check_set_up(sn_checker *c, sn_zone *z) {
    const uint32_t n_values = sn_graph_n_values(c->g), n_nodes = sn_graph_n_nodes(c->g);
    const uint32_t n_vars = sn_graph_n_vars(c->g), n_steps = c->p->n_steps;
    const sn_plan_memory *state = &c->p->memories[SN_MEM_STATE];
    SNUG_TRY(sn_zone_alloc(z, n_vars * sizeof *c->home, (void **)&c->home, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_nodes * sizeof *c->passed, (void **)&c->passed, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_vars * sizeof *c->wrote, (void **)&c->wrote, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_vars * sizeof *c->saved, (void **)&c->saved, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_vars * sizeof *c->written, (void **)&c->written, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *c->root, (void **)&c->root, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *c->outside, (void **)&c->outside, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_nodes * sizeof *c->token, (void **)&c->token, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_steps * sizeof *c->known, (void **)&c->known, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_steps * sizeof *c->first_cut, (void **)&c->first_cut, c->err));
    for (uint32_t i = 0; i < n_nodes; i++) {
        c->token[i] = (uint32_t)c->size[SN_CHECK_TOKENS];
        c->size[SN_CHECK_TOKENS] += sn_check_row(c, i)->effect == SN_MAYFAIL;
    }
    SNUG_TRY(set_up_values(c));
    for (uint32_t m = 0; m <= SN_CHECK_TOKENS; m++)
        c->map[m] = (sn_spans){
            .engine = sn_zone_engine(z), .n_content = 3, .record_bytes = sizeof(sn_check_record)};
    SNUG_TRY(set_up_homes(c, false));
    REQUIRE((size_t)c->size[SN_MEM_STATE] == state->bytes && state->used_bytes == state->bytes,
            "the state has another size");
    SNUG_TRY(set_up_homes(c, true));
    SNUG_TRY(set_up_outside(c));
    for (uint32_t m = SN_MEM_FIRST_ARENA; m <= SN_CHECK_TOKENS; m++) {
        if (m < c->p->n_memories)
            c->size[m] = (int64_t)c->p->memories[m].bytes;
        SNUG_TRY(sn_spans_append(&c->map[m], c->size[m], &(sn_check_record){.lane = 0}, c->err));
    }
    return SNUG_OK;
}
