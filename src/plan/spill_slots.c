/* spill_slots.c: slots of optimizers that wait in a file between updates. A slot is written once a
 * step, by its update, which reads it; so the update is run slice by slice, through a ring of
 * stages in the arena:
 *
 *     in     |s0|s1|s2|s3|..              copy queue: home in the file -> stage
 *     run       |s0|s1|s2|s3|..           compute: the update, in place in the stage
 *     out          |s0|s1|s2|s3|..        copy queue: stage -> home
 *
 * A stage is filled again when what it held last is out. The ring lives from the first such update
 * to the end, so copies of one update run beside whatever comes before and after it. A slice
 * lies in its stage as its home lies in pages: whole pages go straight between stage and disk.
 * Others that read a slot (lamb's direction is made of new moments) go through the ring as well,
 * behind the copies of the update, and leave nothing to copy out.
 *
 * Kernels and slices do not depend on how many bytes there are, and a slice has the bits of the
 * whole: results do not change. */
#include "plan/passes.h"

#include "base/size.h"
#include "memory/spill.h"

#include <string.h>

#define NONE              UINT32_MAX
#define LEAST_STAGE_BYTES ((size_t)256 << 10)
#define MOST_STAGE_BYTES  ((size_t)8 << 20)
#define MOST_WAITS        3 /* of a step for spilled values */
#define STAGES_PER_SLOT   3 /* one comes in, one is updated, one goes out */

/* --- which slots ------------------------------------------------------------------------------ */

static const sn_node_info *node_at(const sn_planner *p, uint32_t i) {
    return sn_graph_node_at(p->graph, (sn_node){i});
}

static const sn_variable *var_at(const sn_planner *p, uint32_t i) {
    return sn_graph_var_at(p->graph, (sn_var){i});
}

/* The one node that updates the variable; NONE: there are others, or none. */
static uint32_t updater_of(const sn_planner *p, uint32_t var) {
    const uint32_t first = var_at(p, var)->first.i, last = var_at(p, var)->last.i;
    const uint32_t update = p->updater[first];
    const bool once = sn_graph_value_at(p->graph, (sn_value){last})->node.i == update;
    return update != NONE && p->needed[update] && once ? update : NONE;
}

static size_t greatest_divisor(size_t a, size_t b) {
    while (b > 0) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* How an update goes through its operands. */
typedef struct {
    int axis;
    int64_t extent, rows; /* rows == extent: whole */
    size_t bytes;         /* of a slice of the first variable */
} cut;

static size_t n_pieces(const cut *c) {
    return (size_t)((c->extent - 1) / c->rows + 1);
}

static bool has_shape(const sn_planner *p, sn_value v, const snug_type *like) {
    const snug_type *t = sn_graph_type(p->graph, v);
    if (t->rank != like->rank)
        return false;
    for (int k = 0; k < t->rank; k++)
        if (t->dims[k] != like->dims[k])
            return false;
    return true;
}

static sn_value operand_at(const sn_node_info *n, int k) {
    return k < n->n_in ? n->in[k] : n->out[k - n->n_in];
}

/* The node's variant on `rows` rows; *fits: the operator can be cut so, in the workspace it has. */
static snug_status describe_rows(const sn_planner *p, uint32_t node, const cut *c, int64_t rows,
                                 sn_variant *out, bool *fits, snug_error *err) {
    const sn_node_info *n = node_at(p, node);
    const snug_type *like = sn_graph_type(p->graph, n->in[0]);
    sn_slice slices[SN_MAX_IN + SN_MAX_OUT];
    sn_opdesc d;
    sn_cut way;
    sn_graph_desc(p->graph, (sn_node){node}, &d);
    for (int k = 0; k < n->n_in + n->n_out; k++) {
        const bool cuts = rows < c->extent && has_shape(p, operand_at(n, k), like);
        slices[k] = (sn_slice){cuts ? c->axis : 0, 0, cuts ? rows : -1};
    }
    *fits = sn_op_slice(&d, slices, &way) && way.sums == 0;
    if (!*fits)
        return SNUG_OK;
    *out = (sn_variant){0};
    SNUG_TRY(p->device->describe(p->device, &d, out, err));
    *fits = out->workspace_bytes <= p->variant[node].workspace_bytes;
    return SNUG_OK;
}

/* Slices of about `target` bytes, in whole pages where rows allow it. */
static cut cut_update(const sn_planner *p, uint32_t node, size_t target) {
    const sn_value v = node_at(p, node)->in[0];
    const snug_type *t = sn_graph_type(p->graph, v);
    cut c = {.extent = 1, .rows = 1, .bytes = p->bytes[v.i]};
    while (c.axis + 1 < t->rank && t->dims[c.axis] == 1)
        c.axis++;
    if (t->rank == 0 || t->dims[c.axis] < 2)
        return c;
    c.extent = c.rows = t->dims[c.axis];
    const size_t row = p->bytes[v.i] / (size_t)c.extent;
    const size_t unit = SN_FILE_ALIGN / greatest_divisor(row, SN_FILE_ALIGN);
    size_t rows = target / row > 0 ? target / row : 1;
    rows -= rows > unit ? rows % unit : 0;
    if (rows < (size_t)c.extent) {
        c.rows = (int64_t)rows;
        c.bytes = rows * row;
    }
    return c;
}

/* Cut as wanted, or whole where the operator cannot be. */
static snug_status find_cut(const sn_planner *p, uint32_t node, cut *out, snug_error *err) {
    sn_variant v;
    bool fits = true, last_fits = true;
    cut c = cut_update(p, node, p->stage_target);
    const int64_t last = (c.extent - 1) % c.rows + 1;
    SNUG_TRY(describe_rows(p, node, &c, c.rows, &v, &fits, err));
    SNUG_TRY(describe_rows(p, node, &c, last, &v, &last_fits, err));
    if (!fits || !last_fits) {
        c.rows = c.extent;
        c.bytes = p->bytes[node_at(p, node)->in[0].i];
    }
    *out = c;
    return SNUG_OK;
}

/* A new name of the slot's bytes would have to be theirs, in the file. */
static bool may_read(const sn_planner *p, uint32_t node, sn_value slot) {
    const sn_node_info *n = node_at(p, node);
    const bool reads = sn_ops[n->op].effect == SN_PURE && sn_ops[n->op].inplace != SN_INPLACE_ALIAS;
    return (reads || p->updater[slot.i] == node) &&
           has_shape(p, slot, sn_graph_type(p->graph, n->in[0])) &&
           p->bytes[slot.i] == p->bytes[n->in[0].i];
}

/* Every reader of this version goes along. */
static bool may_be_read(const sn_planner *p, sn_value slot) {
    bool fits = !p->is_output[slot.i];
    for (uint32_t k = p->reader_start[slot.i]; fits && k < p->reader_start[slot.i + 1]; k++)
        fits = may_read(p, p->readers[k], slot);
    return fits;
}

static bool may_spill(const sn_planner *p, uint32_t var) {
    const sn_variable *v = var_at(p, var);
    return v->slot && !p->saved[v->first.i] && updater_of(p, var) != NONE &&
           p->bytes[v->first.i] >= SN_SPILL_LEAST_BYTES && may_be_read(p, v->first) &&
           may_be_read(p, v->last);
}

static bool is_spilled(const sn_planner *p, sn_value v) {
    const int32_t var = sn_graph_value_at(p->graph, v)->var;
    return p->spilled && var >= 0 && p->spilled[var];
}

static int n_spilled(const sn_planner *p, uint32_t node) {
    const sn_node_info *n = node_at(p, node);
    int count = 0;
    for (int k = 0; k < n->n_in; k++)
        count += is_spilled(p, n->in[k]);
    return count;
}

static bool updates(const sn_planner *p, uint32_t node) {
    return sn_ops[node_at(p, node)->op].effect == SN_STATE;
}

/* In pieces: copies in, the run, copies out. */
static size_t n_steps_of(const sn_planner *p, uint32_t node, const cut *c) {
    const size_t n = (size_t)n_spilled(p, node);
    return n_pieces(c) * (1 + n + (updates(p, node) ? n : 0));
}

bool sn_spill_uses(const sn_planner *p, uint32_t node) {
    return n_spilled(p, node) > 0;
}

size_t sn_spill_bytes_of(const sn_planner *p) {
    size_t sum = 0;
    for (uint32_t i = 0; p->spilled && i < sn_graph_n_vars(p->graph); i++)
        sum += p->spilled[i] ? p->bytes[var_at(p, i)->first.i] : 0;
    return sum;
}

/* Whether all readers of this version can be cut, or are small. */
static snug_status check_cuts(const sn_planner *p, sn_value slot, bool *fits, snug_error *err) {
    for (uint32_t k = p->reader_start[slot.i]; *fits && k < p->reader_start[slot.i + 1]; k++) {
        cut c;
        SNUG_TRY(find_cut(p, p->readers[k], &c, err));
        *fits = c.rows < c.extent || c.bytes <= 2 * p->stage_target;
    }
    return SNUG_OK;
}

/* By the largest slot; slots that can only go in one piece, and a large one, stay. */
static snug_status find_target(sn_planner *p, bool forced, snug_error *err) {
    size_t largest = 0;
    for (uint32_t i = 0; i < sn_graph_n_vars(p->graph); i++)
        if (p->spilled[i] && p->bytes[var_at(p, i)->first.i] > largest)
            largest = p->bytes[var_at(p, i)->first.i];
    p->stage_target = largest / 64 < LEAST_STAGE_BYTES  ? LEAST_STAGE_BYTES
                      : largest / 64 > MOST_STAGE_BYTES ? MOST_STAGE_BYTES
                                                        : largest / 64;
    for (uint32_t i = 0; !forced && i < sn_graph_n_vars(p->graph); i++) {
        const sn_value versions[2] = {var_at(p, i)->first, var_at(p, i)->last};
        for (int k = 0; p->spilled[i] && k < 2; k++)
            SNUG_TRY(check_cuts(p, versions[k], &p->spilled[i], err));
    }
    return SNUG_OK;
}

/* Stages that hold any slice, as many as the node with the most slots asks for. */
static snug_status size_ring(sn_planner *p, snug_error *err) {
    size_t stage = 0;
    int most = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        cut c;
        if (!p->needed[i] || n_spilled(p, i) == 0)
            continue;
        SNUG_TRY(find_cut(p, i, &c, err));
        stage = c.bytes > stage ? c.bytes : stage;
        p->n_piece_steps += n_steps_of(p, i, &c) - 1;
        most = n_spilled(p, i) > most ? n_spilled(p, i) : most;
    }
    p->n_stages = (uint32_t)most * STAGES_PER_SLOT;
    if (!sn_size_add(stage, SN_FILE_ALIGN - 1, &stage) ||
        !sn_size_align(stage, SN_FILE_ALIGN, &p->stage_bytes) ||
        !sn_size_mul(p->stage_bytes, p->n_stages, &p->ring_bytes) ||
        !sn_size_add(p->ring_bytes, most > 0 ? SN_FILE_ALIGN : 0, &p->ring_bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "plan: stages exceed the address space");
    return SNUG_OK;
}

/* The largest that fit the limit go. */
static void limit_slots(sn_planner *p) {
    size_t room = p->spill_limit;
    for (size_t last = SIZE_MAX;;) {
        size_t next = 0;
        for (uint32_t i = 0; i < sn_graph_n_vars(p->graph); i++) {
            const size_t own = p->bytes[var_at(p, i)->first.i];
            if (!p->spilled[i])
                continue;
            if (own == last && own > room)
                p->spilled[i] = false;
            else if (own == last)
                room -= own;
            else if (own < last && own > next)
                next = own;
        }
        if (next == 0)
            return;
        last = next;
    }
}

snug_status sn_spill_slots(sn_planner *p, const sn_plan_options *o, snug_error *err) {
    const bool *const wanted = o->spilled;
    const uint32_t n = sn_graph_n_vars(p->graph);
    SNUG_TRY(sn_plan_array(p->plan->zone, n, sizeof *p->spilled, &p->spilled, err));
    for (uint32_t i = 0; i < n; i++) {
        p->spilled[i] = (!wanted || wanted[i]) && may_spill(p, i);
        if (wanted && wanted[i] && !p->spilled[i] && !o->if_they_can)
            return sn_fail(err, SNUG_E_INVALID, "plan: variable '%s' cannot be spilled",
                           var_at(p, i)->name);
    }
    if (p->spill_limit > 0 && !wanted)
        limit_slots(p);
    SNUG_TRY(find_target(p, wanted != NULL, err));
    return size_ring(p, err);
}

/* The largest first: few slots in the file are better than many. */
void sn_spill_keep(sn_planner *p, size_t room) {
    for (;;) {
        uint32_t best = NONE;
        size_t bytes = 0;
        for (uint32_t i = 0; p->spilled && i < sn_graph_n_vars(p->graph); i++) {
            const size_t own = p->bytes[var_at(p, i)->first.i];
            if (p->spilled[i] && own <= room && own > bytes) {
                best = i;
                bytes = own;
            }
        }
        if (best == NONE)
            return;
        p->spilled[best] = false;
        room -= bytes;
    }
}

double sn_spill_seconds(const sn_planner *p) {
    const sn_rates *r = &p->device->rates;
    double link = 0, runs = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const sn_node_info *n = node_at(p, i);
        for (int k = 0; p->needed[i] && k < n->n_in; k++) {
            const double bytes = is_spilled(p, n->in[k]) ? (double)p->bytes[n->in[k].i] : 0;
            link += bytes / r->spill_read + (updates(p, i) ? bytes / r->spill_write : 0);
        }
        runs += p->needed[i] && n_spilled(p, i) > 0 ? p->seconds[i] : 0;
    }
    return link > runs ? link - runs : 0;
}

/* --- the steps -------------------------------------------------------------------------------- */

typedef struct {
    sn_planner *p;
    sn_step *steps; /* the new list */
    uint32_t n;
    size_t ring;          /* where the first stage begins */
    uint32_t *emptied;    /* per stage: the step that copies it out, or reads it; or NONE */
    uint32_t *written;    /* per variable: the step that copied its last slice out, or NONE */
    uint32_t next_stage;  /* to be filled */
    bool begun;           /* some stage was filled: the rest of the ring is free, too */
    uint32_t computed;    /* the last step on the compute queue, or NONE */
    const sn_step *whole; /* being cut */
    uint32_t *moved;      /* per step of the old list: its place in the new one */
} writer;

static snug_status set_waits(const writer *w, sn_step *s, const uint32_t *waits, uint32_t n,
                             snug_error *err) {
    uint32_t *copy = NULL;
    SNUG_TRY(sn_plan_array(w->p->plan->zone, n, sizeof *copy, &copy, err));
    memcpy(copy, waits, n * sizeof *copy);
    s->waits = copy;
    s->n_waits = n;
    return SNUG_OK;
}

/* A slice of the home and the stage it goes through. */
static snug_status add_copy(writer *w, sn_queue queue, const sn_place *home, const sn_place *stage,
                            snug_error *err) {
    sn_place *places;
    SNUG_TRY(sn_plan_array(w->p->plan->zone, 2, sizeof *places, &places, err));
    const bool in = queue == SN_QUEUE_IN;
    places[0] = in ? *home : *stage;
    places[1] = in ? *stage : *home;
    w->steps[w->n++] = (sn_step){.kind = SN_STEP_COPY,
                                 .queue = queue,
                                 .n_in = 1,
                                 .n_out = 1,
                                 .in = &places[0],
                                 .out = &places[1]};
    return SNUG_OK;
}

/* What held the stage last is out, and so is what the home had before; and before the ring's first
 * use, what lay there is done with: all that the whole step waits for, too. */
static snug_status fill_stage(writer *w, uint32_t stage, const sn_place *home, const sn_place *to,
                              snug_error *err) {
    const uint32_t written = w->written[sn_graph_value_at(w->p->graph, home->value)->var];
    uint32_t waits[MOST_WAITS + 3], n = 0;
    if (!w->begun && w->computed != NONE)
        waits[n++] = w->computed;
    for (uint32_t k = 0; !w->begun && k < w->whole->n_waits; k++)
        waits[n++] = w->moved[w->whole->waits[k]];
    if (w->emptied[stage] != NONE)
        waits[n++] = w->emptied[stage];
    if (written != NONE)
        waits[n++] = written;
    w->begun = true;
    SNUG_TRY(add_copy(w, SN_QUEUE_IN, home, to, err));
    return n > 0 ? set_waits(w, &w->steps[w->n - 1], waits, n, err) : SNUG_OK;
}

/* Rows [first, first + rows) of the operand, where the whole step has it. */
static sn_place slice_place(const sn_planner *p, const sn_place *whole, const cut *c, int64_t first,
                            int64_t rows) {
    sn_place place = *whole;
    if (c->rows == c->extent)
        return place;
    place.axis = c->axis;
    place.first = first;
    place.rows = rows;
    place.offset += p->bytes[whole->value.i] / (size_t)c->extent * (size_t)first;
    return place;
}

typedef struct {
    const sn_step *whole;
    cut c;
    int64_t first, rows;
    sn_place *in, *out;
    uint32_t stage[SN_MAX_IN]; /* per input: its stage, or NONE: it is in memory */
} piece;

/* Places of the piece; spilled slots come into stages. */
static snug_status open_piece(writer *w, piece *q, snug_error *err) {
    const sn_planner *p = w->p;
    const sn_step *s = q->whole;
    const snug_type *like = sn_graph_type(p->graph, s->in[0].value);
    SNUG_TRY(sn_plan_array(p->plan->zone, s->n_in, sizeof *q->in, &q->in, err));
    SNUG_TRY(sn_plan_array(p->plan->zone, s->n_out, sizeof *q->out, &q->out, err));
    for (int k = 0; k < s->n_in + s->n_out; k++) {
        const sn_place *whole = k < s->n_in ? &s->in[k] : &s->out[k - s->n_in];
        *(k < s->n_in ? &q->in[k] : &q->out[k - s->n_in]) =
            has_shape(p, whole->value, like) ? slice_place(p, whole, &q->c, q->first, q->rows)
                                             : *whole;
    }
    for (int k = 0; k < s->n_in; k++) {
        q->stage[k] = NONE;
        if (!is_spilled(p, s->in[k].value))
            continue;
        const sn_place home = q->in[k];
        const uint32_t stage = q->stage[k] = w->next_stage++ % p->n_stages;
        q->in[k].memory = SN_MEM_FIRST_ARENA;
        q->in[k].offset = w->ring + stage * p->stage_bytes + home.offset % SN_FILE_ALIGN;
        SNUG_TRY(fill_stage(w, stage, &home, &q->in[k], err));
        if (updates(p, s->node.i)) { /* in place */
            q->out[k].memory = q->in[k].memory;
            q->out[k].offset = q->in[k].offset;
        }
    }
    return SNUG_OK;
}

static snug_status run_piece(writer *w, const piece *q, snug_error *err) {
    const sn_step *s = q->whole;
    const uint32_t filled = w->n - 1;
    sn_variant v;
    bool fits;
    SNUG_TRY(describe_rows(w->p, s->node.i, &q->c, q->rows, &v, &fits, err));
    sn_step *const run = &w->steps[w->n++];
    *run = *s;
    run->in = q->in;
    run->out = q->out;
    run->variant = v.id;
    run->ws_bytes = v.workspace_bytes;
    memcpy(run->impl, v.impl, sizeof run->impl);
    run->impl[sizeof run->impl - 1] = '\0';
    w->computed = w->n - 1;
    uint32_t waits[MOST_WAITS + 1] = {filled};
    for (uint32_t k = 0; k < s->n_waits; k++)
        waits[k + 1] = w->moved[s->waits[k]];
    return set_waits(w, run, waits, s->n_waits + 1, err);
}

static snug_status close_piece(writer *w, const piece *q, snug_error *err) {
    const uint32_t run = w->n - 1;
    for (int k = 0; k < q->whole->n_in; k++) {
        if (q->stage[k] == NONE)
            continue;
        w->emptied[q->stage[k]] = run;
        if (!updates(w->p, q->whole->node.i))
            continue;
        const sn_place home = slice_place(w->p, &q->whole->out[k], &q->c, q->first, q->rows);
        SNUG_TRY(add_copy(w, SN_QUEUE_OUT, &home, &q->out[k], err));
        SNUG_TRY(set_waits(w, &w->steps[w->n - 1], &run, 1, err));
        w->emptied[q->stage[k]] = w->n - 1;
        w->written[sn_graph_value_at(w->p->graph, home.value)->var] = w->n - 1;
    }
    return SNUG_OK;
}

static snug_status write_pieces(writer *w, const sn_step *s, snug_error *err) {
    piece q = {.whole = s};
    w->whole = s;
    SNUG_TRY(find_cut(w->p, s->node.i, &q.c, err));
    for (; q.first < q.c.extent; q.first += q.c.rows) {
        const int64_t left = q.c.extent - q.first;
        q.rows = left < q.c.rows ? left : q.c.rows;
        SNUG_TRY(open_piece(w, &q, err));
        SNUG_TRY(run_piece(w, &q, err));
        SNUG_TRY(close_piece(w, &q, err));
    }
    return SNUG_OK;
}

static bool uses_slots(const sn_planner *p, const sn_step *s) {
    return s->kind == SN_STEP_RUN && n_spilled(p, s->node.i) > 0;
}

static snug_status count_steps(const sn_planner *p, size_t *out, snug_error *err) {
    size_t n = 0;
    for (uint32_t i = 0; i < p->plan->n_steps; i++) {
        const sn_step *s = &p->plan->steps[i];
        cut c = {.extent = 1, .rows = 1};
        if (uses_slots(p, s))
            SNUG_TRY(find_cut(p, s->node.i, &c, err));
        n += uses_slots(p, s) ? n_steps_of(p, s->node.i, &c) : 1;
    }
    *out = n;
    return n < NONE ? SNUG_OK : sn_fail(err, SNUG_E_OVERFLOW, "plan: %zu steps are too many", n);
}

static snug_status move_step(writer *w, const sn_step *s, snug_error *err) {
    uint32_t waits[MOST_WAITS];
    for (uint32_t k = 0; k < s->n_waits; k++)
        waits[k] = w->moved[s->waits[k]];
    w->steps[w->n++] = *s;
    if (s->queue == SN_QUEUE_COMPUTE)
        w->computed = w->n - 1;
    return s->n_waits > 0 ? set_waits(w, &w->steps[w->n - 1], waits, s->n_waits, err) : SNUG_OK;
}

static snug_status write_steps(sn_planner *p, size_t ring_offset, snug_error *err) {
    sn_plan *const plan = p->plan;
    writer w = {.p = p, .computed = NONE};
    const uint32_t n_vars = sn_graph_n_vars(p->graph);
    size_t n;
    uint32_t peak = plan->peak_step;
    SNUG_TRY(count_steps(p, &n, err));
    SNUG_TRY(sn_plan_array(plan->zone, n, sizeof *w.steps, &w.steps, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_stages, sizeof *w.emptied, &w.emptied, err));
    SNUG_TRY(sn_plan_array(p->work, n_vars, sizeof *w.written, &w.written, err));
    SNUG_TRY(sn_plan_array(p->work, plan->n_steps, sizeof *w.moved, &w.moved, err));
    memset(w.emptied, 0xff, p->n_stages * sizeof *w.emptied);
    memset(w.written, 0xff, n_vars * sizeof *w.written);
    if (!sn_size_align(ring_offset, SN_FILE_ALIGN, &w.ring))
        return sn_fail(err, SNUG_E_OVERFLOW, "plan: stages exceed the address space");
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const sn_step *s = &plan->steps[i];
        if (i == plan->peak_step)
            peak = w.n;
        if (uses_slots(p, s))
            SNUG_TRY(write_pieces(&w, s, err));
        else
            SNUG_TRY(move_step(&w, s, err));
        w.moved[i] = uses_slots(p, s) ? w.computed : w.n - 1;
    }
    plan->steps = w.steps;
    plan->n_steps = w.n;
    plan->peak_step = peak;
    return SNUG_OK;
}

snug_status sn_spill_emit(sn_planner *p, const sn_layout *l, snug_error *err) {
    const size_t bytes = sn_spill_bytes_of(p);
    if (bytes == 0)
        return SNUG_OK;
    p->plan->spilled = p->spilled;
    p->plan->spilled_bytes = bytes;
    return write_steps(p, l->items[l->ring].offset, err);
}
