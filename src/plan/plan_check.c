/* plan_check.c: THE independent checker. It shares no code with the planner and believes nothing:
 * it replays the plan, step by step, and refuses the first step that would not see what its node
 * must see. Devices are asked again for variants and sizes.
 *   bytes         a map of each memory says which bytes of which value lie where
 *   dependencies  a step reads only bytes that hold the values its node names, complete
 *   versions      homes (one behind the other in memory 0) hold version 0 at the start and the last
 *                 one at the end; a STATE row updates in place, after the MAYFAIL nodes before it
 *   undo          what is written before a MAYFAIL row runs was copied before, out of its home into
 *                 an arena, and still lies there when the row runs
 *   outside       inputs and outputs that the caller has lie behind the homes, each by itself
 *   files         only copies reach bytes in files (memories that are files, homes of spilled
 *                 variables), and only these homes are written by copies
 *   waits         bytes remember their writer and readers, whom a step must know to be done. A lane
 *                 is a queue of a device, its steps are numbered 1, 2, ...; know[lane][other] is
 *                 the last step of `other` that is done when the step of `lane` starts
 *   iterations    of a block: 0, 1, the last one, and those between at once, whatever their number:
 *                 plan_check_bytes.c says how and why that is enough. Numbers are of both ends
 *                 of such a run (sn_ends) */
#include "op/impl.h"
#include "plan/plan_check.h"

#include <string.h>

static const sn_ends all_rows = {{SN_CHECK_ALL_ROWS, SN_CHECK_ALL_ROWS}};

snug_status sn_check_bad(const sn_checker *c, const char *what) {
    return sn_fail(c->err, SNUG_E_INVALID, "plan step s%u, iteration %lld, value %%%u: %s", c->step,
                   (long long)c->run.at[0], c->value, what);
}

static bool is_on(const sn_checker *c, uint32_t memory, uint16_t device) {
    return memory < c->p->n_memories && c->p->memories[memory].device == device;
}

/* A run has the operands of its node, on its device. */
static snug_status check_node(sn_checker *c, const sn_step *s) {
    REQUIRE(s->node.i < sn_graph_n_nodes(c->g), "runs an unknown node");
    const sn_node_info *n = sn_graph_node_at(c->g, s->node);
    REQUIRE(s->n_in == n->n_in && s->n_out == n->n_out, "has a wrong number of operands");
    const bool in_block = s->accumulate == SN_ACC_ADD_LATER && c->block;
    const bool adds = sn_ops[n->op].accumulates && (s->accumulate == SN_ACC_ADD || in_block);
    REQUIRE(adds || s->accumulate == SN_ACC_STORE, "adds where it cannot");
    for (int k = 0; k < s->n_in + s->n_out; k++) {
        const sn_place *p = k < s->n_in ? &s->in[k] : &s->out[k - s->n_in];
        c->value = (k < s->n_in ? n->in[k] : n->out[k - s->n_in]).i;
        REQUIRE(p->value.i == c->value, "is not the operand of the step");
        REQUIRE(is_on(c, p->memory, s->device), "reaches into another device");
    }
    return SNUG_OK;
}

/* A feed or copy has one value, at one end at least on its device. */
static snug_status check_transfer(const sn_checker *c, const sn_step *s) {
    const bool feeds = s->kind == SN_STEP_FEED;
    REQUIRE(feeds || s->kind == SN_STEP_COPY, "is of no known kind");
    REQUIRE(s->n_in == (feeds ? 0 : 1) && s->n_out == 1, "has a wrong number of operands");
    const sn_place *out = &s->out[0], *in = feeds ? out : &s->in[0];
    REQUIRE(is_on(c, in->memory, s->device) || is_on(c, out->memory, s->device),
            "reaches into another device");
    REQUIRE(!feeds || (s->input < sn_graph_n_inputs(c->g) && (out->rows < 0 || out->axis == 0) &&
                       sn_graph_input_at(c->g, s->input).i == out->value.i),
            "feeds something else than rows of its input");
    REQUIRE(in->value.i == out->value.i && in->rows == out->rows && in->axis == out->axis &&
                in->first == out->first,
            "copies into something else");
    return SNUG_OK;
}

/* A library of a GPU has a way of its own for each height: the shorter last slice may take another
 * one of the same library. */
static bool is_same_kernel(const sn_checker *c, const char *planned, const char *found) {
    if (strncmp(planned, found, sizeof c->p->steps->impl) == 0)
        return true;
    return c->run.at[0] > 0 && sn_impl_is_library(planned) &&
           sn_impl_kind_of(planned) == sn_impl_kind_of(found);
}

/* The operator can be cut so, and the device runs the slice as the plan says. Behind the first
 * iteration all slices have moved on by their rows: they are those of the first, but for a last one
 * of fewer rows. */
static snug_status check_kernel(sn_checker *c, const sn_step *s) {
    const sn_device *device = c->devices[s->device];
    sn_opdesc d;
    sn_variant v = {0};
    c->cut = c->first_cut[c->step];
    if (c->run.at[0] > 0 &&
        (c->run.at[1] + 1 < c->block->repeat || c->block->last == c->block->rows)) {
        const int64_t by = c->cut.n < c->cut.extent ? c->cut.n : 0;
        for (int e = 0; e < 2; e++)
            c->cut_first.at[e] = c->cut.first + c->run.at[e] * by;
        return SNUG_OK;
    }
    sn_graph_desc(c->g, s->node, &d);
    REQUIRE(sn_op_slice(&d, c->slice, &c->cut), "is not sliced in a way its operator can be");
    if (c->run.at[0] == 0)
        c->first_cut[c->step] = c->cut;
    c->cut_first = (sn_ends){{c->cut.first, c->cut.first}};
    SNUG_TRY(device->describe(device, &d, &v, c->err));
    REQUIRE(v.id == s->variant && is_same_kernel(c, s->impl, v.impl),
            "is made by a variant the device does not have");
    REQUIRE(s->ws_bytes >= v.workspace_bytes, "is made in too small a workspace");
    for (int k = 0; k < d.n_out; k++)
        REQUIRE(d.out[k].dtype != SNUG_OPAQUE ||
                    v.opaque_bytes[k] == (size_t)c->at[d.n_in + k].bytes,
                "has an opaque output of another size");
    return SNUG_OK;
}

/* The first ends before the second starts, all through the run. */
static bool is_before(const sn_check_area *a, const sn_check_area *b) {
    return a->start.at[0] + a->bytes <= b->start.at[0] &&
           a->start.at[1] + a->bytes <= b->start.at[1];
}

/* Outputs overwrite inputs as the table allows; those that update, always; nothing else
 * overlaps. */
static snug_status check_overlaps(sn_checker *c, const sn_step *s) {
    const sn_node_info *n = s->kind == SN_STEP_RUN ? sn_graph_node_at(c->g, s->node) : NULL;
    for (int k = s->n_in; k <= s->n_in + s->n_out; k++)
        for (int j = 0; j < k; j++) {
            const sn_check_area *a = &c->at[k], *b = &c->at[j];
            const int out = j < s->n_in && k < s->n_in + s->n_out ? k - s->n_in : -1;
            const bool same =
                a->memory == b->memory && a->bytes == b->bytes && sn_ends_equal(a->start, b->start);
            const bool apart = a->memory != b->memory || a->bytes == 0 || b->bytes == 0 ||
                               is_before(a, b) || is_before(b, a);
            const bool writes = n && out >= 0;
            const bool updates = writes && out == j && out < sn_op_versions(n->op, n->n_out);
            const bool alias =
                writes && out == 0 && j == 0 && sn_ops[n->op].inplace == SN_INPLACE_ALIAS;
            const bool allowed = updates || alias || (writes && sn_op_may_overwrite(n->op, out, j));
            c->value = a->root;
            REQUIRE(!updates || same, "updates a copy");
            REQUIRE(apart || (allowed && same), "overwrites an operand or copies onto itself");
        }
    return SNUG_OK;
}

/* A sum, or the token of a MAYFAIL node: the first slice stores, the others add in order. */
static snug_status write_part(sn_checker *c, const sn_check_area *a) {
    sn_ends stop = c->cut_first;
    for (int e = 0; e < 2; e++)
        stop.at[e] += c->cut.n;
    const bool ends = stop.at[0] >= c->cut.extent;
    REQUIRE(ends || stop.at[1] < c->cut.extent, "is complete before the last slice");
    if (c->cut_first.at[0] > 0)
        SNUG_TRY(sn_check_touch(c, a, false, c->cut_first));
    return sn_check_touch(c, a, true, ends ? all_rows : stop);
}

static sn_check_area tokens(int64_t start, int64_t end) {
    const sn_ends at = {{start, start}};
    return (sn_check_area){SN_CHECK_TOKENS, 0, at, at, end - start, 1, false};
}

/* The variable whose first version the place has at home; -1: none. */
static int64_t first_version(const sn_checker *c, const sn_place *p) {
    const int32_t var = sn_graph_value_at(c->g, p->value)->var;
    const bool is = p->memory == SN_MEM_STATE && var >= 0 && p->rows < 0 &&
                    sn_graph_var_at(c->g, (sn_var){(uint32_t)var})->first.i == p->value.i;
    return is ? var : -1;
}

/* Which variables the step writes, and where it has put what they were. */
static void note_versions(sn_checker *c, const sn_step *s) {
    const int64_t from = s->kind == SN_STEP_COPY ? first_version(c, &s->in[0]) : -1;
    if (from >= 0 && !c->at[0].file && s->out[0].memory != SN_MEM_STATE && !c->at[1].file &&
        c->saved[from].bytes == 0)
        c->saved[from] = c->at[1];
    for (int k = 0; k < s->n_out; k++) {
        const int32_t var = sn_graph_value_at(c->g, s->out[k].value)->var;
        if (s->out[k].memory != SN_MEM_STATE || var < 0 || c->wrote[var])
            continue;
        c->wrote[var] = true;
        c->written[c->n_written++] = (uint32_t)var;
    }
}

static snug_status check_kept(sn_checker *c, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t var = c->written[i];
        const uint32_t v = sn_graph_var_at(c->g, (sn_var){var})->first.i;
        const snug_status st = sn_check_touch(c, &c->saved[var], false, all_rows);
        SNUG_TRY(st == SNUG_E_INVALID ? SNUG_OK : st);
        c->value = v;
        REQUIRE(st == SNUG_OK && (size_t)c->saved[var].bytes == c->p->value_bytes[v],
                "is overwritten before what may refuse its values, and not kept");
    }
    return SNUG_OK;
}

/* When a row may refuse its values, the first versions of all that was written are still there, and
 * stay to the end. One that has seen all of them before does not refuse them. */
static snug_status check_undo(sn_checker *c, uint32_t node) {
    const bool passed = c->passed[node];
    c->passed[node] = passed || c->cut_first.at[1] + c->cut.n >= c->cut.extent;
    if (passed)
        return SNUG_OK;
    c->n_kept = c->n_written;
    return check_kept(c, c->n_kept);
}

/* MAYFAIL nodes write tokens (of rows they have seen before, not again); a STATE node reads those
 * of the nodes written before it. */
static snug_status check_effect(sn_checker *c, uint32_t node) {
    const sn_effect effect = sn_check_row(c, node)->effect;
    const sn_check_area own = tokens(c->token[node], c->token[node] + INT64_C(1));
    const sn_check_area before = tokens(0, c->token[node]);
    sn_spans *map = &c->map[SN_CHECK_TOKENS];
    size_t first, stop;
    if (effect == SN_STATE)
        return sn_check_touch(c, &before, false, all_rows);
    if (effect != SN_MAYFAIL)
        return SNUG_OK;
    const sn_ends end = {{own.start.at[0] + 1, own.start.at[0] + 1}};
    SNUG_TRY(sn_spans_cut(map, own.start, end, &first, &stop, c->err));
    const sn_check_record *r = sn_spans_record(map, first);
    const bool seen = c->cut_first.at[0] > 0 && sn_ends_less(c->cut_first, r->done);
    SNUG_TRY(seen ? SNUG_OK : write_part(c, &own));
    return check_undo(c, node);
}

/* A step knows what its lane knew and what the steps it waits for knew. */
static snug_status start_step(sn_checker *c, const sn_step *s) {
    REQUIRE(s->device < c->p->n_devices && (unsigned)s->queue < SN_N_QUEUES, "is on no queue");
    c->lane = (uint32_t)s->device * SN_N_QUEUES + (uint32_t)s->queue;
    uint32_t *know = c->know[c->lane];
    for (uint32_t w = 0; w < s->n_waits; w++) {
        REQUIRE(s->waits[w] < c->step, "waits for a later step");
        const uint32_t *more = c->known[s->waits[w]];
        for (int lane = 0; lane < SN_CHECK_LANES; lane++)
            know[lane] = know[lane] < more[lane] ? more[lane] : know[lane];
    }
    know[c->lane] = ++c->now[c->lane];
    memcpy(c->known[c->step], know, sizeof c->known[0]);
    return SNUG_OK;
}

/* Inputs, then outputs, at places where a step of its kind may have them. */
static snug_status check_places(sn_checker *c, const sn_step *s) {
    const bool runs = s->kind == SN_STEP_RUN;
    for (int k = 0; k < s->n_in + s->n_out; k++) {
        SNUG_TRY(sn_check_resolve(c, k < s->n_in ? &s->in[k] : &s->out[k - s->n_in], k));
        REQUIRE(!c->at[k].file || (s->kind == SN_STEP_COPY && (k == 0 || !c->at[0].file)),
                "works on bytes in a file");
        REQUIRE(runs || k < s->n_in || c->at[k].memory != SN_MEM_STATE || c->at[k].file,
                "writes a variable");
    }
    return SNUG_OK;
}

/* The workspace: operand k. */
static snug_status check_workspace(sn_checker *c, const sn_step *s, int k) {
    const bool ws = s->ws_bytes > 0;
    REQUIRE(!ws || (s->kind == SN_STEP_RUN && s->ws_memory != SN_MEM_STATE &&
                    is_on(c, s->ws_memory, s->device) &&
                    c->p->memories[s->ws_memory].kind != SN_MEMORY_FILE),
            "has its workspace in a wrong memory");
    REQUIRE(s->ws_bytes <= SN_CHECK_MOST_BYTES && (!ws || s->ws_offset <= SN_CHECK_MOST_BYTES),
            "lies outside its memory");
    const int64_t start = ws ? (int64_t)s->ws_offset : 0;
    c->at[k] = (sn_check_area){.memory = ws ? s->ws_memory : SN_MEM_STATE,
                               .start = {{start, start}},
                               .bytes = (int64_t)s->ws_bytes,
                               .align = c->devices[s->device]->align};
    return sn_check_inside(c, &c->at[k]);
}

static snug_status check_step(sn_checker *c, const sn_step *s) {
    const bool runs = s->kind == SN_STEP_RUN;
    const bool later = s->accumulate == SN_ACC_ADD_LATER && c->run.at[0] > 0;
    const bool adds = s->accumulate == SN_ACC_ADD || later;
    c->n_replayed++;
    SNUG_TRY(start_step(c, s));
    SNUG_TRY(runs ? check_node(c, s) : check_transfer(c, s));
    const int n = s->n_in + s->n_out;
    SNUG_TRY(check_places(c, s));
    SNUG_TRY(check_workspace(c, s, n));
    c->cut = (sn_cut){0, 1, 1, 0};
    c->cut_first = (sn_ends){{0, 0}};
    SNUG_TRY(runs ? check_kernel(c, s) : SNUG_OK);
    SNUG_TRY(check_overlaps(c, s));
    for (int k = 0; k < s->n_in; k++)
        SNUG_TRY(sn_check_touch(c, &c->at[k], false, all_rows));
    for (int k = s->n_in; k < n; k++) {
        const bool sum = (c->cut.sums >> (k - s->n_in) & 1) != 0;
        REQUIRE(adds == (sum && c->cut_first.at[0] > 0), "stores or adds at the wrong slice");
        SNUG_TRY(sum ? write_part(c, &c->at[k]) : sn_check_touch(c, &c->at[k], true, all_rows));
    }
    SNUG_TRY(sn_check_touch(c, &c->at[n], true, (sn_ends){{0, 0}}));
    note_versions(c, s);
    return runs ? check_effect(c, s->node.i) : SNUG_OK;
}

/* After the last step: effects have happened, outputs are there, used bytes are as promised. */
static snug_status check_end(sn_checker *c) {
    const sn_check_area effects = tokens(0, c->size[SN_CHECK_TOKENS]);
    REQUIRE(c->p->peak_step < c->step || c->p->peak_step == 0, "is the end, before the peak");
    memcpy(c->know[c->lane], c->now, sizeof c->now);
    SNUG_TRY(sn_check_touch(c, &effects, false, all_rows));
    SNUG_TRY(check_kept(c, c->n_kept));
    for (uint32_t i = 0; i < sn_graph_n_outputs(c->g); i++) {
        const sn_place *p = &c->p->outputs[i];
        SNUG_TRY(sn_check_resolve(c, p, 0));
        REQUIRE(p->value.i == sn_graph_output_at(c->g, i).i && p->rows < 0, "is not this output");
        REQUIRE(!c->at[0].file, "is an output in a file");
        SNUG_TRY(sn_check_touch(c, &c->at[0], false, all_rows));
    }
    for (uint32_t i = 0; i < sn_graph_n_vars(c->g); i++) {
        const uint32_t v = sn_graph_var_at(c->g, (sn_var){i})->last.i;
        const sn_check_area home = {.memory = SN_MEM_STATE,
                                    .root = v,
                                    .start = {{c->home[i], c->home[i]}},
                                    .bytes = (int64_t)c->p->value_bytes[v]};
        SNUG_TRY(sn_check_touch(c, &home, false, all_rows));
    }
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < c->p->n_memories; m++)
        REQUIRE((size_t)c->used[m] == c->p->memories[m].used_bytes,
                "is the end: used bytes differ");
    return SNUG_OK;
}

/* REPEAT and END wait for every lane; END goes back to behind REPEAT while iterations are left. */
static snug_status replay(sn_checker *c) {
    for (; c->step < c->p->n_steps; c->step++) {
        const sn_step *s = &c->p->steps[c->step];
        if (s->kind != SN_STEP_REPEAT && s->kind != SN_STEP_END) {
            SNUG_TRY(check_step(c, s));
            continue;
        }
        for (int lane = 0; lane < SN_CHECK_LANES; lane++)
            memcpy(c->know[lane], c->now, sizeof c->now);
        sn_check_join(c);
        if (s->kind == SN_STEP_REPEAT) {
            REQUIRE(s->repeat > 0 && s->repeat <= SN_MAX_SLICES && s->last > 0 &&
                        s->last <= s->rows,
                    "is a bad block");
            c->block = s;
        } else if (c->run.at[1] + 1 < c->block->repeat) {
            SNUG_TRY(sn_check_next_run(c));
            c->step = (uint32_t)(c->block - c->p->steps);
        } else {
            c->block = NULL;
            c->run = (sn_ends){{0, 0}};
        }
    }
    return check_end(c);
}

static snug_status check_once(sn_checker *c, sn_plan_work *work) {
    sn_zone *z = NULL;
    SNUG_TRY(sn_zone_create(sn_zone_engine(c->p->zone), SN_MEM_PLAN, &z, c->err));
    snug_status st = sn_check_set_up(c, z);
    if (st == SNUG_OK)
        st = replay(c);
    work->steps += c->n_replayed;
    for (uint32_t m = 0; m <= SN_CHECK_TOKENS; m++) {
        work->spans += c->map[m].looked_at;
        sn_spans_clear(&c->map[m]);
    }
    sn_zone_destroy(z);
    return st;
}

snug_status sn_plan_check_work(const sn_plan *p, const sn_device *const *devices, int n_devices,
                               sn_plan_work *work, snug_error *err) {
    snug_error first = {0};
    sn_checker c = {.p = p, .g = p->graph, .devices = devices, .err = &first};
    *work = (sn_plan_work){0};
    snug_status st = sn_check_head(&c, (uint32_t)n_devices);
    if (st == SNUG_OK)
        st = check_once(&c, work);
    if (st == SNUG_E_INVALID && c.guessed) {
        c = (sn_checker){.p = p, .g = p->graph, .devices = devices, .err = &first, .singly = true};
        st = check_once(&c, work);
    }
    if (st != SNUG_OK && err)
        *err = first;
    return st;
}

snug_status sn_plan_check(const sn_plan *p, const sn_device *const *devices, int n_devices,
                          snug_error *err) {
    sn_plan_work work;
    return sn_plan_check_work(p, devices, n_devices, &work, err);
}
