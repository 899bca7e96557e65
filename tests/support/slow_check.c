/* slow_check.c: the plan checker as it was before it replayed blocks by strides: step by step,
 * iteration by iteration, with a span for every slice. Only tests use it, to judge the checker of
 * the library (plan/plan_check.c) by: what it refuses, that must refuse. It stays as it is; a rule that
 * is new there need not be here. */
#include "support/slow_check.h"

#include "base/size.h"

#include <string.h>

/* --- a map of consecutive spans of bytes, each with a record ---------------------------------- */
typedef struct {
    snug_engine *engine;
    size_t record_bytes; /* a multiple of 8 */
    size_t n;            /* spans */
    uint32_t *order;     /* n entries of the pool, by start */
    unsigned char *pool; /* entries: start, end, record */
    size_t cap_order, n_pool, cap_pool;
} span_map;

typedef struct {
    size_t start, end;
} span_ends;

static size_t entry_bytes(const span_map *s) {
    return sizeof(span_ends) + s->record_bytes;
}

static span_ends *entry(const span_map *s, size_t i) {
    return (span_ends *)(s->pool + s->order[i] * entry_bytes(s));
}

static void *span_record(const span_map *s, size_t i) {
    return entry(s, i) + 1;
}

/* A new entry at position i of the list, with `record`, or with that of span record_of for NULL (a
 * pointer into the pool would not outlive its growing). */
static snug_status insert(span_map *s, size_t i, span_ends where, size_t record_of,
                          const void *record, snug_error *err) {
    SNUG_TRY(
        sn_grow(s->engine, SN_MEM_PLAN, &s->order, sizeof *s->order, &s->cap_order, s->n + 1, err));
    SNUG_TRY(sn_grow(s->engine, SN_MEM_PLAN, &s->pool, entry_bytes(s), &s->cap_pool, s->n_pool + 1,
                     err));
    span_ends *to = (span_ends *)(s->pool + s->n_pool * entry_bytes(s));
    *to = where;
    memcpy(to + 1, record ? record : span_record(s, record_of), s->record_bytes);
    memmove(s->order + i + 1, s->order + i, (s->n - i) * sizeof *s->order);
    s->order[i] = (uint32_t)s->n_pool++;
    s->n++;
    return SNUG_OK;
}

static snug_status append_span(span_map *s, size_t end, const void *record, snug_error *err) {
    const size_t start = s->n > 0 ? entry(s, s->n - 1)->end : 0;
    if (end <= start)
        return SNUG_OK;
    return insert(s, s->n, (span_ends){start, end}, 0, record, err);
}

/* The span that starts at pos; n at the end of the map. */
static snug_status cut_at(span_map *s, size_t pos, size_t *out, snug_error *err) {
    size_t a = 0, b = s->n;
    while (a < b) {
        const size_t mid = a + (b - a) / 2;
        if (entry(s, mid)->end <= pos)
            a = mid + 1;
        else
            b = mid;
    }
    if (a < s->n && entry(s, a)->start < pos) {
        SNUG_TRY(insert(s, a + 1, (span_ends){pos, entry(s, a)->end}, a, NULL, err));
        entry(s, a)->end = pos;
        a++;
    }
    *out = a;
    return SNUG_OK;
}

static snug_status cut_spans(span_map *s, size_t start, size_t end, size_t *first, size_t *stop,
                             snug_error *err) {
    size_t from, to;
    SNUG_TRY(cut_at(s, start, &from, err));
    SNUG_TRY(cut_at(s, end, &to, err));
    *first = from;
    *stop = to;
    return SNUG_OK;
}

static void merge_spans(span_map *s, size_t first, size_t stop) {
    if (stop - first < 2)
        return;
    entry(s, first)->end = entry(s, stop - 1)->end;
    memmove(s->order + first + 1, s->order + stop, (s->n - stop) * sizeof *s->order);
    s->n -= stop - first - 1;
}

static void clear_spans(span_map *s) {
    if (!s->engine)
        return;
    sn_free(s->engine, SN_MEM_PLAN, s->order, s->cap_order * sizeof *s->order);
    sn_free(s->engine, SN_MEM_PLAN, s->pool, s->cap_pool * entry_bytes(s));
    *s = (span_map){0};
}

/* --- the checker ------------------------------------------------------------------------------ */
enum { N_LANES = SN_MAX_DEVICES * SN_N_QUEUES, N_OPERANDS = SN_MAX_IN + SN_MAX_OUT + 1 };
enum { TOKENS = SN_MAX_MEMORIES }; /* a memory of ours: a byte per MAYFAIL node, written by it */
#define ALL_ROWS INT64_MAX
#define NOWHERE  SIZE_MAX

/* What a span of bytes holds: bytes of a root, of whose sum `done` rows are added (0: nothing). */
typedef struct {
    uint32_t root, lane, time, read[N_LANES]; /* writer's lane and time; last reader per lane */
    int64_t done;
    size_t shift; /* position in the root = position in memory + shift, modulo 2^64 */
} record;

/* Where an operand lies in one iteration; origin: where in its root it starts. */
typedef struct {
    uint32_t memory, root;
    size_t start, bytes, origin, align;
    bool file;
} area;

typedef struct {
    const sn_plan *p;
    const sn_graph *g;
    const sn_device *const *devices;
    snug_error *err;
    span_map map[SN_MAX_MEMORIES + 1]; /* the last one: tokens */
    size_t size[SN_MAX_MEMORIES + 1], used[SN_MAX_MEMORIES + 1];
    size_t *home;               /* per variable: where it starts in memory 0 */
    size_t *outside;            /* per root that the caller has: where it starts there; or NONE */
    uint32_t *root;             /* per value: whose bytes it is, through ALIAS rows */
    uint32_t *token;            /* per node: how many MAYFAIL nodes stand before it */
    uint32_t (*known)[N_LANES]; /* per step: what is done when it is */
    uint32_t know[N_LANES][N_LANES], now[N_LANES];
    const sn_step *block; /* the REPEAT we are in, or NULL */
    int64_t iteration;
    uint32_t step, lane, value; /* under check; the value is for messages */
    area at[N_OPERANDS];        /* the step's operands: inputs, outputs, then the workspace */
    sn_slice slice[N_OPERANDS];
    sn_cut cut, *first_cut; /* of the step; per step: in the first iteration of its block */
} checker;

static snug_status bad(const checker *c, const char *what) {
    return sn_fail(c->err, SNUG_E_INVALID, "plan step s%u, iteration %lld, value %%%u: %s", c->step,
                   (long long)c->iteration, c->value, what);
}
#define REQUIRE(ok, what) SNUG_TRY((ok) ? SNUG_OK : bad(c, (what)))

static const sn_op_row *row_of(const checker *c, uint32_t node) {
    return &sn_ops[sn_graph_node_at(c->g, (sn_node){node})->op];
}

static bool is_on(const checker *c, uint32_t memory, uint16_t device) {
    return memory < c->p->n_memories && c->p->memories[memory].device == device;
}

/* The bytes lie in their memory and are free: who wrote them, and for writing who read them, is
 * done. A reader must find `done` rows of its root; a writer leaves that many. */
static snug_status touch(checker *c, const area *a, bool writes, int64_t done) {
    span_map *map = &c->map[a->memory];
    const uint32_t *know = c->know[c->lane];
    const size_t shift = a->origin - a->start;
    size_t end = 0, first = 0, stop = 0;
    c->value = a->root;
    REQUIRE(sn_size_add(a->start, a->bytes, &end) && end <= c->size[a->memory],
            "lies outside its memory");
    REQUIRE(a->start % a->align == 0, "is not aligned");
    c->used[a->memory] = end > c->used[a->memory] ? end : c->used[a->memory];
    if (a->bytes > 0)
        SNUG_TRY(cut_spans(map, a->start, end, &first, &stop, c->err));
    for (size_t i = first; i < stop; i++) {
        record *r = span_record(map, i);
        bool free = know[r->lane] >= r->time;
        for (uint32_t lane = 0; writes && lane < N_LANES; lane++)
            free = free && know[lane] >= r->read[lane];
        REQUIRE(free, "does not wait for the writer or a reader of its bytes");
        REQUIRE(writes || (r->root == a->root && r->done == done && r->shift == shift),
                "reads bytes that hold something else");
        r->read[c->lane] = c->now[c->lane];
    }
    if (writes && a->bytes > 0) {
        merge_spans(map, first, stop);
        *(record *)span_record(map, first) =
            (record){a->root, c->lane, c->now[c->lane], {0}, done, shift};
    }
    return SNUG_OK;
}

/* The rows of a slice in this iteration. Slices are pieces of a value: no axis before theirs. */
static snug_status cut_rows(const checker *c, const sn_place *p, area *a, sn_slice *s) {
    const snug_type *type = sn_graph_type(c->g, p->value);
    const int64_t height = c->block ? c->block->rows : 1;
    const bool is_last = c->block && c->iteration == c->block->repeat - 1;
    REQUIRE(p->axis >= 0 && p->axis < type->rank && p->first >= 0, "has a bad slice");
    REQUIRE(p->rows > 0 && p->rows % height == 0, "slices by other rows than its block");
    for (int k = 0; k < p->axis; k++)
        REQUIRE(type->dims[k] == 1, "slices along an inner axis, opaque or not");
    const int64_t extent = type->dims[p->axis];
    *s = (sn_slice){p->axis, 0, is_last ? p->rows / height * c->block->last : p->rows};
    const bool ok = sn_i64_mul(c->iteration, p->rows, &s->first);
    REQUIRE(ok && sn_i64_add(s->first, p->first, &s->first) && s->first < extent &&
                s->rows <= extent - s->first && a->bytes % (size_t)extent == 0,
            "slices behind the end");
    a->origin = a->bytes / (size_t)extent * (size_t)s->first;
    a->bytes = a->bytes / (size_t)extent * (size_t)s->rows;
    a->align = type->dtype == SNUG_OPAQUE ? 1 : snug_dtype_bytes(type->dtype);
    return SNUG_OK;
}

/* Where operand k lies in this iteration and what must be there. */
static snug_status resolve(checker *c, const sn_place *p, int k) {
    const uint32_t v = c->value = p->value.i;
    REQUIRE(v < sn_graph_n_values(c->g) && p->memory < c->p->n_memories, "is unknown");
    const bool state = p->memory == SN_MEM_STATE;
    const int32_t var = sn_graph_value_at(c->g, p->value)->var;
    const bool outside = var < 0 && c->outside[c->root[v]] != NOWHERE;
    REQUIRE(!state || var >= 0 || outside, "is no version of a variable");
    const sn_plan_memory *m = &c->p->memories[p->memory];
    const size_t align = state ? 1 : c->devices[m->device]->align;
    const bool file = state ? !outside && sn_plan_spills(c->p, (sn_var){(uint32_t)var})
                            : m->kind == SN_MEMORY_FILE;
    area *a = &c->at[k];
    size_t moved = 0;
    *a = (area){p->memory, c->root[v], 0, c->p->value_bytes[v], 0, align, file};
    c->slice[k].rows = -1;
    REQUIRE(p->rows >= 0 || p->stride == 0, "moves a whole value");
    if (p->rows >= 0)
        SNUG_TRY(cut_rows(c, p, a, &c->slice[k]));
    REQUIRE(sn_size_mul((size_t)c->iteration, p->stride, &moved) &&
                sn_size_add(moved, p->offset, &a->start),
            "lies outside its memory");
    REQUIRE(!state || a->start == a->origin, "is not where its rows are at home");
    a->align = file ? (state ? 1 : SN_FILE_ALIGN) : a->align;
    if (state)
        a->start += outside ? c->outside[c->root[v]] : c->home[var];
    return SNUG_OK;
}

/* A run has the operands of its node, on its device. */
static snug_status check_node(checker *c, const sn_step *s) {
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
static snug_status check_transfer(const checker *c, const sn_step *s) {
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
static bool is_same_kernel(const checker *c, const char *planned, const char *found) {
    static const char *const libraries[] = {"cudnn:", "cublaslt:"};
    bool same = strncmp(planned, found, sizeof c->p->steps->impl) == 0;
    for (size_t i = 0; c->iteration > 0 && !same && i < 2; i++) {
        const size_t n = strlen(libraries[i]);
        same = strncmp(planned, libraries[i], n) == 0 && strncmp(found, libraries[i], n) == 0;
    }
    return same;
}

/* The operator can be cut so, and the device runs the slice as the plan says. Between the first and
 * the last iteration all slices have moved on by their rows: they are those of the first. */
static snug_status check_kernel(checker *c, const sn_step *s) {
    const sn_device *device = c->devices[s->device];
    sn_opdesc d;
    sn_variant v = {0};
    c->cut = c->first_cut[c->step];
    if (c->iteration > 0 && c->iteration + 1 < c->block->repeat) {
        c->cut.first += c->iteration * c->cut.n;
        return SNUG_OK;
    }
    sn_graph_desc(c->g, s->node, &d);
    REQUIRE(sn_op_slice(&d, c->slice, &c->cut), "is not sliced in a way its operator can be");
    if (c->iteration == 0)
        c->first_cut[c->step] = c->cut;
    SNUG_TRY(device->describe(device, &d, &v, c->err));
    REQUIRE(v.id == s->variant && is_same_kernel(c, s->impl, v.impl),
            "is made by a variant the device does not have");
    REQUIRE(s->ws_bytes >= v.workspace_bytes, "is made in too small a workspace");
    for (int k = 0; k < d.n_out; k++)
        REQUIRE(d.out[k].dtype != SNUG_OPAQUE || v.opaque_bytes[k] == c->at[d.n_in + k].bytes,
                "has an opaque output of another size");
    return SNUG_OK;
}

/* Outputs overwrite inputs as the table allows; those that update, always; nothing else
 * overlaps. */
static snug_status check_overlaps(checker *c, const sn_step *s) {
    const sn_node_info *n = s->kind == SN_STEP_RUN ? sn_graph_node_at(c->g, s->node) : NULL;
    for (int k = s->n_in; k <= s->n_in + s->n_out; k++)
        for (int j = 0; j < k; j++) {
            const area *a = &c->at[k], *b = &c->at[j];
            const int out = j < s->n_in && k < s->n_in + s->n_out ? k - s->n_in : -1;
            const bool same =
                a->memory == b->memory && a->start == b->start && a->bytes == b->bytes;
            const bool apart = a->memory != b->memory || a->bytes == 0 || b->bytes == 0 ||
                               a->start >= b->start + b->bytes || b->start >= a->start + a->bytes;
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
static snug_status write_part(checker *c, const area *a) {
    const int64_t stop = c->cut.first + c->cut.n;
    if (c->cut.first > 0)
        SNUG_TRY(touch(c, a, false, c->cut.first));
    return touch(c, a, true, stop < c->cut.extent ? stop : ALL_ROWS);
}

/* MAYFAIL nodes write tokens (of rows they have seen before, not again); a STATE node reads those
 * of the nodes written before it. */
static snug_status check_effect(checker *c, uint32_t node) {
    const sn_effect effect = row_of(c, node)->effect;
    const uint32_t t = c->token[node];
    size_t first, stop;
    if (effect == SN_STATE)
        return touch(c, &(area){TOKENS, 0, 0, t, 0, 1, false}, false, ALL_ROWS);
    if (effect != SN_MAYFAIL)
        return SNUG_OK;
    SNUG_TRY(cut_spans(&c->map[TOKENS], t, (size_t)t + 1, &first, &stop, c->err));
    const record *r = span_record(&c->map[TOKENS], first);
    const bool seen = c->cut.first > 0 && r->done > c->cut.first;
    return seen ? SNUG_OK : write_part(c, &(area){TOKENS, 0, t, 1, t, 1, false});
}

/* A step knows what its lane knew and what the steps it waits for knew. */
static snug_status start_step(checker *c, const sn_step *s) {
    REQUIRE(s->device < c->p->n_devices && (unsigned)s->queue < SN_N_QUEUES, "is on no queue");
    c->lane = (uint32_t)s->device * SN_N_QUEUES + (uint32_t)s->queue;
    uint32_t *know = c->know[c->lane];
    for (uint32_t w = 0; w < s->n_waits; w++) {
        REQUIRE(s->waits[w] < c->step, "waits for a later step");
        const uint32_t *more = c->known[s->waits[w]];
        for (int lane = 0; lane < N_LANES; lane++)
            know[lane] = know[lane] < more[lane] ? more[lane] : know[lane];
    }
    know[c->lane] = ++c->now[c->lane];
    memcpy(c->known[c->step], know, sizeof c->known[0]);
    return SNUG_OK;
}

static snug_status check_step(checker *c, const sn_step *s) {
    const bool runs = s->kind == SN_STEP_RUN, ws = s->ws_bytes > 0;
    const bool later = s->accumulate == SN_ACC_ADD_LATER && c->iteration > 0;
    const bool adds = s->accumulate == SN_ACC_ADD || later;
    SNUG_TRY(start_step(c, s));
    SNUG_TRY(runs ? check_node(c, s) : check_transfer(c, s));
    const int n = s->n_in + s->n_out;
    for (int k = 0; k < n; k++) {
        SNUG_TRY(resolve(c, k < s->n_in ? &s->in[k] : &s->out[k - s->n_in], k));
        REQUIRE(!c->at[k].file || (s->kind == SN_STEP_COPY && (k == 0 || !c->at[0].file)),
                "works on bytes in a file");
        REQUIRE(runs || k < s->n_in || c->at[k].memory != SN_MEM_STATE || c->at[k].file,
                "writes a variable");
    }
    REQUIRE(!ws || (runs && s->ws_memory != SN_MEM_STATE && is_on(c, s->ws_memory, s->device) &&
                    c->p->memories[s->ws_memory].kind != SN_MEMORY_FILE),
            "has its workspace in a wrong memory");
    c->at[n] = (area){.memory = ws ? s->ws_memory : SN_MEM_STATE,
                      .start = ws ? s->ws_offset : 0,
                      .bytes = s->ws_bytes,
                      .align = c->devices[s->device]->align};
    c->cut = (sn_cut){0, 1, 1, 0};
    SNUG_TRY(runs ? check_kernel(c, s) : SNUG_OK);
    SNUG_TRY(check_overlaps(c, s));
    for (int k = 0; k < s->n_in; k++)
        SNUG_TRY(touch(c, &c->at[k], false, ALL_ROWS));
    for (int k = s->n_in; k < n; k++) {
        const bool sum = (c->cut.sums >> (k - s->n_in) & 1) != 0;
        REQUIRE(adds == (sum && c->cut.first > 0), "stores or adds at the wrong slice");
        SNUG_TRY(sum ? write_part(c, &c->at[k]) : touch(c, &c->at[k], true, ALL_ROWS));
    }
    SNUG_TRY(touch(c, &c->at[n], true, 0));
    return runs ? check_effect(c, s->node.i) : SNUG_OK;
}

/* After the last step: effects have happened, outputs are there, used bytes are as promised. */
static snug_status check_end(checker *c) {
    REQUIRE(c->p->peak_step < c->step || c->p->peak_step == 0, "is the end, before the peak");
    memcpy(c->know[c->lane], c->now, sizeof c->now);
    SNUG_TRY(touch(c, &(area){TOKENS, 0, 0, c->size[TOKENS], 0, 1, false}, false, ALL_ROWS));
    for (uint32_t i = 0; i < sn_graph_n_outputs(c->g); i++) {
        const sn_place *p = &c->p->outputs[i];
        SNUG_TRY(resolve(c, p, 0));
        REQUIRE(p->value.i == sn_graph_output_at(c->g, i).i && p->rows < 0, "is not this output");
        REQUIRE(!c->at[0].file, "is an output in a file");
        SNUG_TRY(touch(c, &c->at[0], false, ALL_ROWS));
    }
    for (uint32_t i = 0; i < sn_graph_n_vars(c->g); i++) {
        const uint32_t v = sn_graph_var_at(c->g, (sn_var){i})->last.i;
        const area home = {SN_MEM_STATE, v, c->home[i], c->p->value_bytes[v], 0, 1, false};
        SNUG_TRY(touch(c, &home, false, ALL_ROWS));
    }
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < c->p->n_memories; m++)
        REQUIRE(c->used[m] == c->p->memories[m].used_bytes, "is the end: used bytes differ");
    return SNUG_OK;
}

/* REPEAT and END wait for every lane; END goes back to behind REPEAT while iterations are left. */
static snug_status replay(checker *c) {
    for (; c->step < c->p->n_steps; c->step++) {
        const sn_step *s = &c->p->steps[c->step];
        if (s->kind != SN_STEP_REPEAT && s->kind != SN_STEP_END) {
            SNUG_TRY(check_step(c, s));
            continue;
        }
        for (int lane = 0; lane < N_LANES; lane++)
            memcpy(c->know[lane], c->now, sizeof c->now);
        if (s->kind == SN_STEP_REPEAT) {
            REQUIRE(s->repeat > 0 && s->repeat <= SN_MAX_SLICES && s->last > 0 &&
                        s->last <= s->rows,
                    "is a bad block");
            c->block = s;
        } else if (++c->iteration < c->block->repeat) {
            c->step = (uint32_t)(c->block - c->p->steps);
        } else {
            c->block = NULL;
            c->iteration = 0;
        }
    }
    return check_end(c);
}

/* Before the first step: devices and the nesting of blocks. */
static snug_status check_head(checker *c, uint32_t n_devices) {
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

/* Homes with their first versions, one behind the other; those in the file behind those in
 * memory. */
static snug_status set_up_homes(checker *c, bool file) {
    span_map *map = &c->map[SN_MEM_STATE];
    size_t *state = &c->size[SN_MEM_STATE];
    for (uint32_t i = 0; i < sn_graph_n_vars(c->g); i++) {
        if (sn_plan_spills(c->p, (sn_var){i}) != file)
            continue;
        c->value = sn_graph_var_at(c->g, (sn_var){i})->first.i;
        c->home[i] = *state;
        const record r = {.root = c->value, .done = ALL_ROWS, .shift = (size_t)0 - *state};
        REQUIRE(sn_size_add(*state, c->p->value_bytes[c->value], state), "is too large");
        SNUG_TRY(append_span(map, *state, &r, c->err));
    }
    return SNUG_OK;
}

/* An input that steps feed: it is no output's bytes. */
static bool is_fed(const checker *c, sn_value v) {
    bool output = false;
    if (!sn_graph_value_at(c->g, v)->fed)
        return false;
    for (uint32_t i = 0; i < sn_graph_n_outputs(c->g); i++)
        output = output || c->root[sn_graph_output_at(c->g, i).i] == c->root[v.i];
    return !output;
}

/* Inputs, which are there, and outputs, which are not yet, of a graph that has them outside. */
static snug_status set_up_outside(checker *c) {
    const uint32_t n_inputs = sn_graph_n_inputs(c->g), n_outputs = sn_graph_n_outputs(c->g);
    size_t *state = &c->size[SN_MEM_STATE];
    memset(c->outside, 0xff, sn_graph_n_values(c->g) * sizeof *c->outside);
    for (uint32_t i = 0; sn_graph_is_outside(c->g) && i < n_inputs + n_outputs; i++) {
        const sn_value v =
            i < n_inputs ? sn_graph_input_at(c->g, i) : sn_graph_output_at(c->g, i - n_inputs);
        c->value = c->root[v.i];
        if (c->outside[c->value] != NOWHERE || (i < n_inputs && is_fed(c, v)) ||
            sn_graph_value_at(c->g, (sn_value){c->value})->var >= 0)
            continue;
        c->outside[c->value] = *state;
        const record there = {.root = c->value, .done = ALL_ROWS, .shift = (size_t)0 - *state};
        REQUIRE(sn_size_add(*state, c->p->value_bytes[c->value], state), "is too large");
        SNUG_TRY(append_span(&c->map[SN_MEM_STATE], *state, i < n_inputs ? &there : &(record){0},
                             c->err));
    }
    return SNUG_OK;
}

/* Sizes, roots of aliases, homes, empty arenas and tokens. */
static snug_status set_up(checker *c, sn_zone *z) {
    const uint32_t n_values = sn_graph_n_values(c->g), n_nodes = sn_graph_n_nodes(c->g);
    const uint32_t n_vars = sn_graph_n_vars(c->g), n_steps = c->p->n_steps;
    const sn_plan_memory *state = &c->p->memories[SN_MEM_STATE];
    SNUG_TRY(sn_zone_alloc(z, n_vars * sizeof *c->home, (void **)&c->home, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *c->root, (void **)&c->root, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_values * sizeof *c->outside, (void **)&c->outside, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_nodes * sizeof *c->token, (void **)&c->token, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_steps * sizeof *c->known, (void **)&c->known, c->err));
    SNUG_TRY(sn_zone_alloc(z, n_steps * sizeof *c->first_cut, (void **)&c->first_cut, c->err));
    for (uint32_t i = 0; i < n_nodes; i++) {
        c->token[i] = (uint32_t)c->size[TOKENS];
        c->size[TOKENS] += row_of(c, i)->effect == SN_MAYFAIL;
    }
    for (uint32_t v = 0; v < n_values; v++) {
        const sn_value_info *vi = sn_graph_value_at(c->g, (sn_value){v});
        const bool alias =
            vi->node.i < n_nodes && row_of(c, vi->node.i)->inplace == SN_INPLACE_ALIAS;
        size_t bytes = c->p->value_bytes[v]; /* opaque ones: check_kernel */
        c->value = v;
        if (vi->type.dtype != SNUG_OPAQUE)
            SNUG_TRY(snug_type_bytes(&vi->type, &bytes, c->err));
        REQUIRE(bytes == c->p->value_bytes[v], "has another size");
        c->root[v] = v;
        const sn_value from = alias ? sn_graph_node_at(c->g, vi->node)->in[0] : (sn_value){v};
        if (sn_graph_value_at(c->g, from)->var < 0) /* a variable's home is copied from */
            c->root[v] = c->root[from.i];
    }
    for (uint32_t m = 0; m <= TOKENS; m++)
        c->map[m] = (span_map){.engine = sn_zone_engine(z), .record_bytes = sizeof(record)};
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < c->p->n_memories; m++)
        c->size[m] = c->p->memories[m].bytes;
    SNUG_TRY(set_up_homes(c, false));
    REQUIRE(state->bytes == c->size[SN_MEM_STATE] && state->used_bytes == state->bytes,
            "the state has another size");
    SNUG_TRY(set_up_homes(c, true));
    SNUG_TRY(set_up_outside(c));
    for (uint32_t m = SN_MEM_FIRST_ARENA; m <= TOKENS; m++)
        SNUG_TRY(append_span(&c->map[m], c->size[m], &(record){0}, c->err));
    return SNUG_OK;
}

snug_status sn_slow_check(const sn_plan *p, const sn_device *const *devices, int n_devices,
                          snug_error *err) {
    checker c = {.p = p, .g = p->graph, .devices = devices, .err = err};
    sn_zone *z = NULL;
    SNUG_TRY(check_head(&c, (uint32_t)n_devices));
    SNUG_TRY(sn_zone_create(sn_zone_engine(p->zone), SN_MEM_PLAN, &z, err));
    snug_status st = set_up(&c, z);
    if (st == SNUG_OK)
        st = replay(&c);
    for (uint32_t m = 0; m <= TOKENS; m++)
        clear_spans(&c.map[m]);
    sn_zone_destroy(z);
    return st;
}
