/* check.c: THE independent checker. It shares no code with the planner and believes nothing: it
 * replays the plan, every iteration, over a map of each memory that says which bytes of which value
 * lie where, who wrote them and who has read them since, and refuses the first step that would read
 * anything else than what its node must see. What needs no replay is in check_static.c.
 * 1. Homes of variables lie one behind the other in memory 0, each holding version 0 at the start.
 * 2. A lane is a queue of a device; its steps are numbered 1, 2, ...; know[lane][other] is the last
 *    step of `other` that is done when the step of `lane` starts. A step touches only bytes whose
 *    users it knows to be done.
 * 3. Outputs of ALIAS rows hold the bytes of their inputs; all that share bytes so have one root.
 */
#include "base/size.h"
#include "memory/spans.h"
#include "plan/check.h"

#include <string.h>

enum { N_LANES = SN_MAX_DEVICES * SN_N_QUEUES };
#define ALL_ROWS INT64_MAX

/* What bytes are: part of a root (axis -1), a dense slice of a value along an inner axis (axis >
 * 0), or a sum with `done` of its rows added (ALL_ROWS: complete). Zeroed: nothing. No padding. */
typedef struct {
    uint32_t value;
    int32_t axis;
    int64_t first, rows, done;
} content;

typedef struct {
    content what;
    size_t shift; /* position in the content = position in memory + shift, modulo 2^64 */
    uint32_t lane, time, read[N_LANES]; /* its writer; the last reader in each lane */
} record;

/* One place in one iteration; first and rows are those of its axis. */
typedef struct {
    uint32_t memory;
    size_t start, bytes, origin;
    content what;
    int64_t first, rows;
} area;

/* How a run is cut: n rows of extent (n < 0: not cut); sums: bit k: output k is a sum over them. */
typedef struct {
    int64_t first, n, extent;
    uint32_t sums;
} cut;

typedef struct {
    int64_t covered; /* rows done so far; ALL_ROWS: all */
    uint32_t lane, time;
} history;

typedef struct {
    const sn_plan *p;
    const sn_graph *g;
    const sn_device *const *devices;
    sn_spans map[SN_MAX_MEMORIES];
    size_t used[SN_MAX_MEMORIES];
    size_t *home;               /* per variable: where it starts in memory 0 */
    uint32_t *root;             /* per value */
    history *ran;               /* per node */
    uint32_t (*known)[N_LANES]; /* per step: what is done when it is */
    uint32_t know[N_LANES][N_LANES], now[N_LANES];
    uint32_t step, lane;
    const sn_step *block; /* the REPEAT we are in, or NULL */
    int64_t iteration;
} checker;

static snug_status bad(const checker *c, snug_error *err, const char *what, uint32_t id) {
    return sn_fail(err, SNUG_E_INVALID, "plan step s%u, iteration %lld: %s (%u)", c->step,
                   (long long)c->iteration, what, id);
}
#define REQUIRE(ok, what, id)                                                                      \
    do {                                                                                           \
        if (!(ok))                                                                                 \
            return bad(c, err, (what), (id));                                                      \
    } while (0)

static const sn_op_row *row_of(const checker *c, uint32_t node) {
    return &sn_ops[sn_graph_node_at(c->g, (sn_node){node})->op];
}

static bool is_known(const checker *c, uint32_t lane, uint32_t time) {
    return c->know[c->lane][lane] >= time;
}

/* Reading: the bytes must hold what the area says. Writing: what lay there is gone. Either way
 * whoever wrote them, and for writing whoever read them, must be known to be done. */
static snug_status touch(checker *c, const area *a, bool writes, snug_error *err) {
    sn_spans *map = &c->map[a->memory];
    size_t first = 0, stop = 0;
    if (a->bytes > 0)
        SNUG_TRY(sn_spans_cut(map, a->start, a->start + a->bytes, &first, &stop, err));
    for (size_t i = first; i < stop; i++) {
        record *r = sn_spans_record(map, i);
        bool done = is_known(c, r->lane, r->time);
        for (uint32_t lane = 0; writes && lane < N_LANES; lane++)
            done = done && is_known(c, lane, r->read[lane]);
        REQUIRE(done, "does not wait for the writer or a reader of its bytes", a->what.value);
        const bool holds =
            memcmp(&r->what, &a->what, sizeof r->what) == 0 && r->shift == a->origin - a->start;
        REQUIRE(writes || holds, "reads bytes that hold something else", a->what.value);
        r->read[c->lane] = c->now[c->lane];
    }
    if (!writes || a->bytes == 0)
        return SNUG_OK;
    sn_spans_merge(map, first, stop);
    *(record *)sn_spans_record(map, first) =
        (record){a->what, a->origin - a->start, c->lane, c->now[c->lane], {0}};
    return SNUG_OK;
}

/* Bytes of an arena must lie inside it, aligned. They count as used. */
static snug_status locate(checker *c, area *a, size_t align, snug_error *err) {
    size_t end = 0;
    if (a->memory == SN_MEM_STATE)
        return SNUG_OK;
    REQUIRE(sn_size_add(a->start, a->bytes, &end) && end <= c->p->memories[a->memory].bytes,
            "lies outside its memory", a->what.value);
    REQUIRE(a->start % align == 0, "is not aligned", a->what.value);
    c->used[a->memory] = end > c->used[a->memory] ? end : c->used[a->memory];
    return SNUG_OK;
}

/* The rows of a slice in this iteration and what their bytes are. */
static snug_status cut_rows(const checker *c, const sn_place *p, area *a, snug_error *err) {
    const snug_type *type = sn_graph_type(c->g, p->value);
    const int64_t extent = type->dims[p->axis];
    const bool is_last = c->block && c->iteration == c->block->repeat - 1;
    const size_t row_bytes = a->bytes / (size_t)extent;
    int64_t outer = 1, moved = 0;
    a->rows = is_last ? p->rows / c->block->rows * c->block->last : p->rows;
    REQUIRE(sn_i64_mul(c->iteration, p->rows, &moved) && sn_i64_add(moved, p->first, &a->first) &&
                a->first <= extent && a->rows <= extent - a->first,
            "slices behind the end", p->value.i);
    for (int k = 0; k < p->axis; k++)
        outer *= type->dims[k];
    if (outer == 1)
        a->origin = row_bytes * (size_t)a->first;
    else if (a->rows != extent)
        a->what = (content){p->value.i, p->axis, a->first, a->rows, ALL_ROWS};
    a->bytes = row_bytes * (size_t)a->rows;
    return SNUG_OK;
}

/* Where the place lies in this iteration and what must be there. */
static snug_status resolve(checker *c, const sn_place *p, area *a, snug_error *err) {
    const sn_value_info *info = sn_graph_value_at(c->g, p->value);
    size_t align = c->devices[c->p->memories[p->memory].device]->align, moved = 0;
    *a = (area){.memory = p->memory,
                .bytes = c->p->value_bytes[p->value.i],
                .what = {c->root[p->value.i], -1, 0, 0, ALL_ROWS}};
    if (p->memory == SN_MEM_STATE)
        a->start = c->home[info->var];
    if (p->rows >= 0) {
        SNUG_TRY(cut_rows(c, p, a, err));
        align = info->type.dtype == SNUG_OPAQUE ? 1 : snug_dtype_bytes(info->type.dtype);
    }
    REQUIRE(sn_size_mul((size_t)c->iteration, p->stride, &moved) &&
                sn_size_add(moved, p->offset, &moved) && sn_size_add(moved, a->start, &a->start),
            "lies outside its memory", p->value.i);
    return locate(c, a, align, err);
}

static bool overlap(const area *a, const area *b) {
    return a->memory == b->memory && a->bytes > 0 && b->bytes > 0 &&
           a->start < b->start + b->bytes && b->start < a->start + a->bytes;
}

/* --- a run; operands are numbered through, inputs first ------------------------------------- */
static const sn_place *operand(const sn_step *s, int k) {
    return k < s->n_in ? &s->in[k] : &s->out[k - s->n_in];
}

static bool fits_operand(const sn_axis_ref *ref, const sn_place *p, const area *a, cut *by) {
    if (p->rows < 0)
        return ref->axis < 0;
    if (ref->axis != p->axis || ref->outer != 1 || ref->inner < 1 || a->first % ref->inner != 0 ||
        a->rows % ref->inner != 0)
        return false;
    if (by->n < 0)
        *by = (cut){a->first / ref->inner, a->rows / ref->inner, by->extent, by->sums};
    return by->first == a->first / ref->inner && by->n == a->rows / ref->inner;
}

/* The way of the operator along which all operands of a sliced run are cut alike. */
static snug_status find_cut(const checker *c, const sn_step *s, const area *at, cut *by,
                            snug_error *err) {
    sn_opdesc d;
    sn_ways ways = {0};
    sn_graph_desc(c->g, s->node, &d);
    sn_op_ways(&d, &ways);
    for (const sn_way *way = ways.way; way < ways.way + ways.n; way++) {
        bool ok = true;
        *by = (cut){0, -1, way->extent, 0};
        for (int k = 0; k < s->n_in + s->n_out; k++) {
            const sn_axis_ref *ref = k < s->n_in ? &way->in[k] : &way->out[k - s->n_in];
            ok = ok && fits_operand(ref, operand(s, k), &at[k], by);
            by->sums |= k >= s->n_in && operand(s, k)->rows < 0 ? 1u << (k - s->n_in) : 0;
        }
        if (ok && (by->sums == 0 || way->sum))
            return SNUG_OK;
    }
    return bad(c, err, "is not sliced in a way its operator can be", s->node.i);
}

/* Outputs overwrite inputs only as the table allows; nothing else overlaps. Last: the workspace. */
static snug_status check_overlaps(const checker *c, const sn_step *s, const area *at,
                                  snug_error *err) {
    const uint32_t rule = (uint32_t)row_of(c, s->node.i)->inplace;
    for (int k = s->n_in; k <= s->n_in + s->n_out; k++)
        for (int j = 0; j < k; j++) {
            const int o = k - s->n_in;
            bool allowed = o == 0 && j < 2 && (rule & (1u << j)) != 0;
            if (rule == SN_INPLACE_STATE || rule == SN_INPLACE_ALIAS)
                allowed = o == j && (o == 0 || rule == SN_INPLACE_STATE);
            allowed = allowed && j < s->n_in && o < s->n_out && at[k].start == at[j].start &&
                      at[k].bytes == at[j].bytes;
            REQUIRE(allowed || !overlap(&at[k], &at[j]), "overwrites its operand",
                    operand(s, j)->value.i);
        }
    return SNUG_OK;
}

/* Sums: the first slice stores, the others add in order. Says what the bytes are then. */
static snug_status check_sum(checker *c, const sn_step *s, int k, const cut *by, area *out,
                             snug_error *err) {
    const bool partial = by->n >= 0 && (by->sums & (1u << k)) && by->n != by->extent;
    const bool adds =
        s->accumulate == SN_ACC_ADD || (s->accumulate == SN_ACC_ADD_LATER && c->iteration > 0);
    REQUIRE(adds == (partial && by->first > 0), "stores or adds at the wrong slice",
            s->out[k].value.i);
    if (adds) {
        out->what.done = by->first;
        SNUG_TRY(touch(c, out, false, err));
    }
    if (partial)
        out->what.done = by->first + by->n == by->extent ? ALL_ROWS : by->first + by->n;
    return SNUG_OK;
}

static snug_status check_effect(checker *c, const sn_step *s, const cut *by, snug_error *err) {
    history *h = &c->ran[s->node.i];
    const bool whole = by->n < 0 || by->n == by->extent, again = h->covered > 0;
    if (whole || (h->covered == by->first && by->first + by->n == by->extent))
        h->covered = ALL_ROWS;
    else if (h->covered == by->first)
        h->covered = by->first + by->n;
    *h = (history){h->covered, c->lane, c->now[c->lane]};
    if (row_of(c, s->node.i)->effect != SN_STATE)
        return SNUG_OK;
    REQUIRE(whole && !again, "updates a variable in parts or twice", s->node.i);
    for (uint32_t i = 0; i < s->node.i; i++)
        REQUIRE(row_of(c, i)->effect != SN_MAYFAIL ||
                    (c->ran[i].covered == ALL_ROWS && is_known(c, c->ran[i].lane, c->ran[i].time)),
                "writes a variable before a node that may fail", i);
    return SNUG_OK;
}

static snug_status check_run(checker *c, const sn_step *s, snug_error *err) {
    area at[SN_MAX_IN + SN_MAX_OUT + 1];
    int64_t rows[SN_MAX_IN + SN_MAX_OUT];
    cut by = {.n = -1};
    bool sliced = false;
    const int n = s->n_in + s->n_out;
    for (int k = 0; k < n; k++) {
        SNUG_TRY(resolve(c, operand(s, k), &at[k], err));
        rows[k] = operand(s, k)->rows < 0 ? -1 : at[k].rows;
        sliced = sliced || rows[k] >= 0;
    }
    if (sliced)
        SNUG_TRY(find_cut(c, s, at, &by, err));
    if (c->iteration == 0 || c->iteration + 1 == c->block->repeat) /* between: as the first */
        SNUG_TRY(sn_check_variant(c->p, s, c->devices[s->device], rows, err));
    at[n] = (area){.memory = s->ws_memory, .start = s->ws_offset, .bytes = s->ws_bytes};
    SNUG_TRY(locate(c, &at[n], c->devices[s->device]->align, err));
    SNUG_TRY(check_overlaps(c, s, at, err));
    for (int k = 0; k < s->n_in; k++)
        SNUG_TRY(touch(c, &at[k], false, err));
    for (int k = s->n_in; k < n; k++) {
        SNUG_TRY(check_sum(c, s, k - s->n_in, &by, &at[k], err));
        SNUG_TRY(touch(c, &at[k], true, err));
    }
    SNUG_TRY(touch(c, &at[n], true, err));
    return check_effect(c, s, &by, err);
}

/* --- steps in time -------------------------------------------------------------------------- */
static snug_status check_transfer(checker *c, const sn_step *s, snug_error *err) {
    area from, to;
    SNUG_TRY(resolve(c, &s->out[0], &to, err));
    if (s->kind == SN_STEP_COPY) {
        SNUG_TRY(resolve(c, &s->in[0], &from, err));
        REQUIRE(!overlap(&from, &to), "copies onto itself", s->in[0].value.i);
        SNUG_TRY(touch(c, &from, false, err));
    }
    return touch(c, &to, true, err);
}

/* A step knows what its lane knew and what the steps it waits for knew. */
static snug_status check_step(checker *c, const sn_step *s, snug_error *err) {
    c->lane = (uint32_t)s->device * SN_N_QUEUES + (uint32_t)s->queue;
    uint32_t *know = c->know[c->lane];
    for (uint32_t w = 0; w < s->n_waits; w++)
        for (int lane = 0; lane < N_LANES; lane++)
            if (know[lane] < c->known[s->waits[w]][lane])
                know[lane] = c->known[s->waits[w]][lane];
    know[c->lane] = ++c->now[c->lane];
    memcpy(c->known[c->step], know, sizeof c->known[0]);
    return s->kind == SN_STEP_RUN ? check_run(c, s, err) : check_transfer(c, s, err);
}

static void join_lanes(checker *c) {
    for (int lane = 0; lane < N_LANES; lane++)
        memcpy(c->know[lane], c->now, sizeof c->now);
}

/* After the last step: effects have happened, outputs are there, used bytes are as promised. */
static snug_status check_end(checker *c, snug_error *err) {
    join_lanes(c);
    for (uint32_t i = 0; i < sn_graph_n_nodes(c->g); i++)
        REQUIRE(c->ran[i].covered == ALL_ROWS ||
                    (row_of(c, i)->effect != SN_STATE && row_of(c, i)->effect != SN_MAYFAIL),
                "is the end, but a node with an effect has not run", i);
    for (uint32_t i = 0; i < sn_graph_n_outputs(c->g); i++) {
        area a;
        SNUG_TRY(resolve(c, &c->p->outputs[i], &a, err));
        SNUG_TRY(touch(c, &a, false, err));
    }
    for (uint32_t m = 0; m < c->p->n_memories; m++)
        REQUIRE(c->used[m] == c->p->memories[m].used_bytes, "is the end: used bytes differ", m);
    return SNUG_OK;
}

/* REPEAT and END wait for every lane; END goes back to `first` while iterations are left. */
static snug_status replay(checker *c, snug_error *err) {
    uint32_t first = 0;
    for (c->step = 0; c->step < c->p->n_steps; c->step++) {
        const sn_step *s = &c->p->steps[c->step];
        if (s->kind != SN_STEP_REPEAT && s->kind != SN_STEP_END) {
            SNUG_TRY(check_step(c, s, err));
            continue;
        }
        join_lanes(c);
        if (s->kind == SN_STEP_REPEAT) {
            first = c->step;
            c->block = s;
        } else if (++c->iteration < c->block->repeat) {
            c->step = first;
        } else {
            c->block = NULL;
            c->iteration = 0;
        }
    }
    return check_end(c, err);
}

/* Homes with their first versions, empty arenas, roots of aliases. */
static snug_status set_up(checker *c, sn_zone *z, snug_error *err) {
    const uint32_t n_values = sn_graph_n_values(c->g), n_nodes = sn_graph_n_nodes(c->g);
    size_t *state = &c->used[SN_MEM_STATE];
    SNUG_TRY(sn_zone_alloc(z, sn_graph_n_vars(c->g) * sizeof *c->home, (void **)&c->home, err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *c->root, (void **)&c->root, err));
    SNUG_TRY(sn_zone_alloc(z, n_nodes * sizeof *c->ran, (void **)&c->ran, err));
    SNUG_TRY(sn_zone_alloc(z, c->p->n_steps * sizeof *c->known, (void **)&c->known, err));
    for (uint32_t v = 0; v < n_values; v++) {
        const sn_node maker = sn_graph_value_at(c->g, (sn_value){v})->node;
        const bool alias = maker.i < n_nodes && row_of(c, maker.i)->inplace == SN_INPLACE_ALIAS;
        c->root[v] = alias ? c->root[sn_graph_node_at(c->g, maker)->in[0].i] : v;
    }
    for (uint32_t m = 0; m < c->p->n_memories; m++)
        c->map[m] = (sn_spans){.engine = sn_zone_engine(z), .record_bytes = sizeof(record)};
    for (uint32_t i = 0; i < sn_graph_n_vars(c->g); i++) {
        const uint32_t v = sn_graph_var_at(c->g, (sn_var){i})->first.i;
        const record r = {.what = {v, -1, 0, 0, ALL_ROWS}, .shift = (size_t)0 - *state};
        c->home[i] = *state;
        REQUIRE(sn_size_add(*state, c->p->value_bytes[v], state), "has too large variables", i);
        SNUG_TRY(sn_spans_append(&c->map[SN_MEM_STATE], *state, &r, err));
    }
    REQUIRE(*state == c->p->memories[SN_MEM_STATE].bytes, "has a wrong size of the state", 0);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < c->p->n_memories; m++)
        SNUG_TRY(sn_spans_append(&c->map[m], c->p->memories[m].bytes, &(record){0}, err));
    return SNUG_OK;
}

snug_status sn_plan_check(const sn_plan *p, const sn_device *const *devices, int n_devices,
                          snug_error *err) {
    checker c = {.p = p, .g = p->graph, .devices = devices};
    sn_zone *z = NULL;
    SNUG_TRY(sn_check_static(p, devices, n_devices, err));
    SNUG_TRY(sn_zone_create(sn_zone_engine(p->zone), SN_MEM_PLAN, &z, err));
    snug_status st = set_up(&c, z, err);
    if (st == SNUG_OK)
        st = replay(&c, err);
    for (uint32_t m = 0; m < p->n_memories; m++)
        sn_spans_clear(&c.map[m]);
    sn_zone_destroy(z);
    return st;
}
