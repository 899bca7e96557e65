/* spill_values.c: values that wait in a file between two uses that are far apart. A COPY action
 * takes a value out right behind its last use before the gap; another brings it back in time for
 * the next:
 *
 *     compute   | makes v | ....... hold ....... | other work, in the bytes of v | .. | reads v |
 *     out                 | v -> file |
 *     in                                                          | file -> v |
 *
 * The bytes of v stay until `hold` actions later, when the copy should be over; whoever takes them
 * then waits for it. Values are chosen where the most bytes live: least waiting per byte first.
 * Each goes out once a run and has its own place in the file. Programs without blocks only. */
#include "plan/passes.h"

#include "base/size.h"

#include <string.h>

#define NONE        UINT32_MAX
#define LEAST_PART  256 /* of the live bytes: smaller values gain nothing */
#define MOST_VALUES 256
#define MOST_ROUNDS 4096

typedef struct {
    sn_planner *p;
    const sn_layout *l;
    double *until;         /* per action: seconds of all before it */
    uint32_t *prev, *next; /* per copy: uses around the peak, or NONE */
} finder;

/* How the peak gets lower: a value goes out behind action `prev` and comes back before action
 * `back`; one that is out leaves its bytes earlier; one comes back later. */
typedef enum { GOES, FREED_EARLIER, COMES_LATER } change;

typedef struct {
    change kind;
    uint32_t value, prev, back, hold;
    uint32_t at;  /* FREED_EARLIER, COMES_LATER: the copy, an action */
    double price; /* seconds of waiting per byte */
} choice;

static double action_seconds(const sn_planner *p, const sn_action *a) {
    return a->kind == SN_STEP_RUN ? p->seconds[a->id] : 0;
}

static bool is_spill(const sn_planner *p, const sn_action *a) {
    return a->kind == SN_STEP_COPY && !sn_plan_in_state(p, a->id);
}

/* --- choosing --------------------------------------------------------------------------------- */

static void find_uses(finder *f) {
    const sn_layout *l = f->l;
    memset(f->prev, 0xff, l->n_copies * sizeof *f->prev);
    memset(f->next, 0xff, l->n_copies * sizeof *f->next);
    for (uint32_t t = 0; t < l->program->n; t++)
        for (uint32_t k = l->operand[t]; k < l->operand[t + 1]; k++) {
            const uint32_t c = l->copy[k];
            if (c != NONE && t <= l->peak)
                f->prev[c] = t;
            else if (c != NONE && f->next[c] == NONE)
                f->next[c] = t;
        }
}

/* Per byte: what a copy takes longer than the work between two actions. */
static double waiting(const finder *f, size_t bytes, double rate, uint32_t from, uint32_t to) {
    const double late = (double)bytes / rate - (f->until[to] - f->until[from]);
    return late > 0 ? late / (double)bytes : 0;
}

/* The bytes must be gone at the peak: a copy that takes longer is waited for. */
static choice consider(const finder *f, uint32_t c) {
    const sn_rates *r = &f->p->device->rates;
    const uint32_t peak = f->l->peak, prev = f->prev[c], next = f->next[c];
    const size_t bytes = f->p->bytes[f->l->copies[c].value];
    const double out = (double)bytes / r->spill_write, in = (double)bytes / r->spill_read;
    choice best = {.value = f->l->copies[c].value, .prev = prev, .back = next};
    while (prev + 1 + best.hold < peak - 1 &&
           f->until[prev + 1 + best.hold] - f->until[prev + 1] < out)
        best.hold++;
    while (best.back > peak + 1 && f->until[next] - f->until[best.back] < in)
        best.back--;
    best.price = waiting(f, bytes, r->spill_write, prev + 1, peak) +
                 waiting(f, bytes, r->spill_read, peak + 1, next);
    return best;
}

/* Outside, beside what is there already. */
static bool has_room(const sn_planner *p, size_t bytes) {
    const size_t taken = p->file_bytes + sn_spill_bytes_of(p), limit = p->spill_limit;
    size_t whole;
    return limit == 0 ||
           (taken < limit && sn_size_align(bytes, SN_FILE_ALIGN, &whole) && whole <= limit - taken);
}

static bool may_go(const finder *f, uint32_t c) {
    const sn_copy *copy = &f->l->copies[c];
    return f->prev[c] != NONE && f->next[c] != NONE && f->prev[c] < f->l->peak &&
           f->p->bytes[copy->value] > f->l->bound / LEAST_PART &&
           !sn_plan_in_state(f->p, copy->value) && f->p->file_at[copy->value] == SIZE_MAX &&
           copy->buffer != SN_NO_BUFFER && has_room(f->p, f->p->bytes[copy->value]);
}

/* A value on its way whose bytes need not be there at the peak. */
static bool consider_copy(const finder *f, uint32_t t, choice *out) {
    const sn_rates *r = &f->p->device->rates;
    const sn_action *a = &f->l->program->actions[t];
    const uint32_t peak = f->l->peak;
    if (!is_spill(f->p, a) || t > peak || f->p->bytes[a->id] <= f->l->bound / LEAST_PART)
        return false;
    const size_t bytes = f->p->bytes[a->id];
    *out = (choice){.value = a->id, .at = t};
    if (!a->back) {
        out->kind = FREED_EARLIER;
        out->hold = peak - t - (t < peak);
        out->price = waiting(f, bytes, r->spill_write, t + 1, peak);
        return t < peak && t + a->hold >= peak;
    }
    const uint32_t c = f->l->copy[f->l->operand[t] + 1], next = f->next[c];
    out->kind = COMES_LATER;
    out->back = t == peak ? next : peak + 1;
    if (f->prev[c] != t || next == NONE || out->back <= t + 1)
        return false;
    out->price = waiting(f, bytes, r->spill_read, out->back, next);
    return true;
}

static bool is_better(const choice *a, const choice *b) {
    return a->price < b->price || (a->price == b->price && a->back > b->back);
}

/* The cheapest, then the one that is needed last. */
static bool choose(finder *f, choice *out) {
    bool found = false;
    find_uses(f);
    for (uint32_t c = 0; c < f->l->n_copies; c++) {
        if (!may_go(f, c))
            continue;
        const choice now = consider(f, c);
        if (!found || is_better(&now, out))
            *out = now;
        found = true;
    }
    for (uint32_t t = 0; t < f->l->program->n; t++) {
        choice now;
        if (!consider_copy(f, t, &now) || (found && !is_better(&now, out)))
            continue;
        *out = now;
        found = true;
    }
    return found;
}

static void put_action(sn_program *program, uint32_t at, sn_action a) {
    memmove(&program->actions[at + 1], &program->actions[at],
            (program->n - at) * sizeof *program->actions);
    program->actions[at] = a;
    program->n++;
}

static sn_action take_action(sn_program *program, uint32_t at) {
    const sn_action a = program->actions[at];
    program->n--;
    memmove(&program->actions[at], &program->actions[at + 1],
            (program->n - at) * sizeof *program->actions);
    return a;
}

static snug_status apply(sn_planner *p, const choice *c, sn_program *program, snug_error *err) {
    size_t end;
    if (c->kind == FREED_EARLIER) {
        program->actions[c->at].hold = c->hold;
        return SNUG_OK;
    }
    if (c->kind == COMES_LATER) {
        const sn_action back = take_action(program, c->at);
        put_action(program, c->back - 1, back);
        return SNUG_OK;
    }
    put_action(program, c->back, (sn_action){.kind = SN_STEP_COPY, .id = c->value, .back = true});
    put_action(program, c->prev + 1,
               (sn_action){.kind = SN_STEP_COPY, .id = c->value, .hold = c->hold});
    p->n_out++;
    p->file_at[c->value] = p->file_bytes;
    if (!sn_size_add(p->file_bytes, p->bytes[c->value], &end) ||
        !sn_size_align(end, SN_FILE_ALIGN, &p->file_bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "plan: values exceed all disks");
    return SNUG_OK;
}

/* One change of the program, in a zone of its own: there are many. *done: the limit is kept, or
 * nothing can be changed. */
static snug_status change_once(sn_planner *p, sn_zone *z, size_t limit, sn_program *program,
                               bool *done, snug_error *err) {
    sn_layout l;
    choice c = {.value = NONE};
    SNUG_TRY(sn_plan_layout(p, z, program, &l, err));
    finder f = {.p = p, .l = &l};
    SNUG_TRY(sn_plan_array(z, (size_t)program->n + 1, sizeof *f.until, &f.until, err));
    SNUG_TRY(sn_plan_array(z, l.n_copies, sizeof *f.prev, &f.prev, err));
    SNUG_TRY(sn_plan_array(z, l.n_copies, sizeof *f.next, &f.next, err));
    for (uint32_t t = 0; t < program->n; t++)
        f.until[t + 1] = f.until[t] + action_seconds(p, &program->actions[t]);
    *done = l.bound <= limit || !choose(&f, &c);
    return *done ? SNUG_OK : apply(p, &c, program, err);
}

/* With room for all copies that may come. */
snug_status sn_spill_begin(sn_planner *p, sn_zone *z, sn_program *program, snug_error *err) {
    sn_action *actions;
    SNUG_TRY(
        sn_plan_array(z, (size_t)program->n + 2 * MOST_VALUES, sizeof *actions, &actions, err));
    memcpy(actions, program->actions, program->n * sizeof *actions);
    program->actions = actions;
    SNUG_TRY(sn_plan_array(z, p->n_values, sizeof *p->file_at, &p->file_at, err));
    memset(p->file_at, 0xff, p->n_values * sizeof *p->file_at);
    p->file_bytes = 0;
    p->n_out = 0;
    return SNUG_OK;
}

snug_status sn_spill_values(sn_planner *p, sn_zone *z, size_t limit, sn_program *program,
                            sn_layout *l, snug_error *err) {
    bool done = false;
    for (int i = 0; i < MOST_ROUNDS && p->n_out < MOST_VALUES && !done; i++) {
        sn_zone *round;
        SNUG_TRY(sn_zone_create(p->engine, SN_MEM_PLAN, &round, err));
        const snug_status st = change_once(p, round, limit, program, &done, err);
        sn_zone_destroy(round);
        SNUG_TRY(st);
    }
    return sn_plan_layout(p, z, program, l, err);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Who waits for whom, going through the actions in order. */
typedef struct {
    sn_planner *p;
    const sn_layout *l;
    uint32_t computed;          /* the last action on the compute queue, or NONE */
    uint32_t out_seen, in_seen; /* the last copies that the compute queue has waited for */
    uint32_t *out_of, *in_of;   /* per value: the actions that take it out and back, or NONE */
    uint32_t waits[3], n_waits; /* of the action under consideration */
} waiter;

static void wait_for(waiter *w, uint32_t action) {
    if (action != NONE)
        w->waits[w->n_waits++] = action;
}

static bool is_behind(uint32_t action, uint32_t seen) {
    return action != NONE && (seen == NONE || action > seen);
}

/* The last copy out whose bytes are free before action t. */
static uint32_t last_freed(const waiter *w, uint32_t t) {
    const sn_program *program = w->l->program;
    uint32_t last = NONE;
    for (uint32_t i = 0; i < t; i++)
        if (is_spill(w->p, &program->actions[i]) && !program->actions[i].back &&
            i + program->actions[i].hold < t)
            last = i;
    return last;
}

static void wait_to_compute(waiter *w, uint32_t t) {
    const sn_layout *l = w->l;
    const uint32_t out = last_freed(w, t);
    uint32_t in = NONE;
    for (uint32_t k = l->operand[t]; k < l->operand[t + 1]; k++) {
        const uint32_t v = l->copy[k] == NONE ? NONE : l->copies[l->copy[k]].value;
        if (v != NONE && w->in_of[v] != NONE && is_behind(w->in_of[v], in))
            in = w->in_of[v];
    }
    if (is_behind(out, w->out_seen))
        wait_for(w, w->out_seen = out);
    if (is_behind(in, w->in_seen))
        wait_for(w, w->in_seen = in);
    w->computed = t;
}

/* Fills w->waits with the actions that action t waits for. */
static void find_waits(waiter *w, uint32_t t) {
    const sn_action *a = &w->l->program->actions[t];
    w->n_waits = 0;
    if (!is_spill(w->p, a)) {
        wait_to_compute(w, t);
        return;
    }
    wait_for(w, w->computed);
    if (!a->back) {
        w->out_of[a->id] = t;
        return;
    }
    const uint32_t freed = last_freed(w, t), own = w->out_of[a->id];
    wait_for(w, is_behind(freed, own) ? freed : own);
    w->in_of[a->id] = t;
}

static snug_status make_waiter(waiter *w, sn_planner *p, const sn_layout *l, snug_error *err) {
    *w = (waiter){.p = p, .l = l, .computed = NONE, .out_seen = NONE, .in_seen = NONE};
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *w->out_of, &w->out_of, err));
    SNUG_TRY(sn_plan_array(p->work, p->n_values, sizeof *w->in_of, &w->in_of, err));
    memset(w->out_of, 0xff, p->n_values * sizeof *w->out_of);
    memset(w->in_of, 0xff, p->n_values * sizeof *w->in_of);
    return SNUG_OK;
}

snug_status sn_spill_queues(sn_planner *p, const sn_layout *l, snug_error *err) {
    waiter w;
    if (p->file_bytes == 0)
        return SNUG_OK;
    SNUG_TRY(make_waiter(&w, p, l, err));
    for (uint32_t t = 0; t < l->program->n; t++) {
        const sn_action *a = &l->program->actions[t];
        sn_step *const step = &p->plan->steps[t];
        uint32_t *waits;
        find_waits(&w, t);
        if (is_spill(p, a))
            step->queue = a->back ? SN_QUEUE_IN : SN_QUEUE_OUT;
        SNUG_TRY(sn_plan_array(p->plan->zone, w.n_waits, sizeof *waits, &waits, err));
        memcpy(waits, w.waits, w.n_waits * sizeof *waits);
        step->waits = waits;
        step->n_waits = w.n_waits;
    }
    return SNUG_OK;
}

/* One disk serves both directions. */
double sn_spill_copy_seconds(const sn_planner *p) {
    const sn_rates *r = &p->device->rates;
    double bytes = 0;
    for (uint32_t v = 0; v < p->n_values; v++)
        bytes += p->file_at[v] != SIZE_MAX ? (double)p->bytes[v] : 0;
    return bytes / r->spill_write + bytes / r->spill_read;
}

snug_status sn_spill_time(sn_planner *p, const sn_layout *l, double *out, snug_error *err) {
    const sn_rates *r = &p->device->rates;
    double compute = 0, disk = 0, *done;
    waiter w;
    SNUG_TRY(make_waiter(&w, p, l, err));
    SNUG_TRY(sn_plan_array(p->work, l->program->n, sizeof *done, &done, err));
    for (uint32_t t = 0; t < l->program->n; t++) {
        const sn_action *a = &l->program->actions[t];
        double *const clock = is_spill(p, a) ? &disk : &compute;
        find_waits(&w, t);
        for (uint32_t k = 0; k < w.n_waits; k++)
            *clock = done[w.waits[k]] > *clock ? done[w.waits[k]] : *clock;
        *clock += is_spill(p, a)
                      ? (double)p->bytes[a->id] / (a->back ? r->spill_read : r->spill_write)
                      : action_seconds(p, a);
        done[t] = *clock;
    }
    *out = compute > disk ? compute : disk;
    return SNUG_OK;
}
