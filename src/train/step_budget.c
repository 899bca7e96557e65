/* step_budget.c: a step's plan within a budget of the whole process. What is not arena is measured
 * or booked first; the arena and the plan's own steps get the rest. */
#include "train/step_budget.h"

#include "base/bytes.h"
#include "base/size.h"
#include "memory/idle.h"
#include "memory/pool.h"
#include "memory/process.h"

#include <string.h>

/* Of a weight while weights are saved: its row, its place in the order, its part of the header; of
 * any variable in a checkpoint: its row, and its name in order. Beside the letters of its name. */
#define SAVED_BYTES    448
#define SAVED_LETTER   6
#define CHECKED_BYTES  160
#define CHECKED_LETTER 3
/* A remainder of the batch may need more than the whole (its slices do not come out even): a floor
 * that is named before the rows are known has this part of the arena for that, and no more than so
 * many bytes. */
#define REMAINDER_PART  8
#define REMAINDER_BYTES ((size_t)256 << 10)

/* What the ledger holds now beside the state and the arena of this model, those of other models
 * included but for arenas that are idle, and what pipelines may still take. */
static size_t books_of(const snug_model *m) {
    const size_t all = snug_engine_bytes(m->engine) + sn_pool_to_come(m->engine);
    size_t own = sn_state_held(m->state);
    own += m->executor ? sn_executor_booked(m->executor) : 0;
    own += m->executor ? sn_executor_others(m->executor) : sn_idle_bytes(m->engine, NULL);
    return all > own ? all - own : 0;
}

/* Each variable has a block of its own, in whole pages. */
static snug_status state_of(const snug_model *m, size_t *out, snug_error *err) {
    *out = 0;
    for (size_t i = 0; i < m->network->n_vars; i++) {
        size_t bytes;
        SNUG_TRY(snug_type_bytes(&m->network->vars[i].type, &bytes, err));
        if (bytes > SIZE_MAX / 2 || !sn_size_add(*out, sn_in_pages(bytes), out))
            return sn_fail(err, SNUG_E_OVERFLOW, "the variables exceed the address space");
    }
    return SNUG_OK;
}

static snug_status process_share(const snug_model *m, sn_extras x, sn_share *inout,
                                 snug_error *err) {
    sn_share_need need = {.books = books_of(m) + x.reserve, .code_bytes = x.code};
    SNUG_TRY(state_of(m, &need.state, err));
    need.state -= x.away;
    return sn_share_find(m->engine, inout->budget, &need, inout, err);
}

static snug_status find_share(const snug_model *m, size_t budget, sn_extras x, sn_share *out,
                              snug_error *err) {
    *out = (sn_share){.budget = budget};
    return m->kind->share(m, x, out, err);
}

/* A graph, and of a plan that runs each node once what is no step's. */
static size_t size_beside(const sn_graph *g, size_t step_bytes) {
    return sn_graph_bytes(g) + sn_session_rest_bytes((size_t)sn_graph_n_nodes(g) * step_bytes);
}

/* All of it. */
static size_t size_of(const sn_graph *g, size_t step_bytes) {
    return size_beside(g, step_bytes) + (size_t)sn_graph_n_nodes(g) * step_bytes;
}

/* Homes that are still to be made. */
static size_t homes_to_come(const snug_model *m) {
    size_t sum = 0;
    for (size_t i = sn_state_count(m->state); i < m->network->n_vars; i++)
        sum += sn_state_entry_bytes(m->network->vars[i].name);
    return sum;
}

/* While weights are saved, or all variables in a checkpoint. */
static size_t saved_bytes(const snug_model *m) {
    const size_t n_weights = snug_model_n_weights(m);
    size_t saved = 0, checked = 0;
    for (size_t i = 0; i < m->network->n_vars; i++) {
        const size_t letters = strlen(m->network->vars[i].name);
        saved += i < n_weights ? SAVED_BYTES + SAVED_LETTER * letters : 0;
        checked += CHECKED_BYTES + CHECKED_LETTER * letters;
    }
    return saved > checked ? saved : checked;
}

/* What a run of the model has, where nobody has said so: all that fit may have. */
static sn_foreseen foreseen_of(const snug_model *m, const sn_model_step *s) {
    const size_t both = s->batch > 1 ? 2 : 1; /* a batch of one has no remainder */
    const sn_foreseen all = {.is_known = false, .n_train = both, .n_others = both};
    sn_foreseen f = m->foreseen.is_known ? m->foreseen : all;
    if (m->compiled.optimizer.gradient_accumulation_steps > 0)
        f.n_train *= 2; /* once more, only adding gradients up */
    return f;
}

/* Plans like that of a training step that are still to come: its remainder, and both again that
 * only add gradients up. */
static size_t n_alike(const snug_model *m, const sn_model_step *s) {
    size_t n = foreseen_of(m, s).n_train;
    if (!sn_step_trains(s->mode))
        return 0;
    for (int i = 0; i < m->n_steps; i++)
        n -= n > 0 && sn_step_trains(m->steps[i].mode);
    return n > 0 ? n - 1 : 0;
}

/* Those are expected to take as many steps as the whole batch: a plan for little memory has many
 * more than one per node. */
static size_t step_bytes_of(const snug_model *m, const sn_model_step *s) {
    return m->kind->of_process ? (1 + n_alike(m, s)) * s->step_bytes : 0;
}

/* A step of validation with its plan: its graph is made, to see. */
static snug_status validation_size(snug_model *m, const sn_model_step *s, size_t *out,
                                   snug_error *err) {
    sn_model_step v = {.mode = SN_STEP_EVALUATE, .batch = s->batch, .weighting = s->weighting};
    const snug_status st = sn_model_step_build(m, &v, err);
    if (st == SNUG_OK)
        *out = size_of(v.graph, sn_session_step_bytes(v.graph));
    sn_model_step_close(&v);
    return st;
}

/* Feeds of files, some of them packed, are opened when the plan is known to fit: what they read
 * with. */
#define FEEDS_BYTES ((size_t)384 << 10)

/* What the ledger will hold beside this step and what it holds now: its plan's tables, sessions
 * of the steps planned before, and the steps that come after: those alike (but for what
 * step_bytes_of counts), validation and its remainder. */
static snug_status to_come(snug_model *m, const sn_model_step *s, size_t *out, snug_error *err) {
    const bool trains = sn_step_trains(s->mode);
    const size_t beside = size_beside(s->graph, s->step_bytes);
    size_t own = beside - sn_graph_bytes(s->graph) + homes_to_come(m) + saved_bytes(m);
    own += m->foreseen.is_known ? 0 : FEEDS_BYTES;
    size_t validation = 0;
    size_t n_others = foreseen_of(m, s).n_others;
    for (int i = 0; i < m->n_steps; i++) {
        n_others -= n_others > 0 && !sn_step_trains(m->steps[i].mode);
        if (!m->steps[i].session)
            own += sn_session_bytes(m->steps[i].plan);
    }
    if (trains && n_others > 0)
        SNUG_TRY(validation_size(m, s, &validation, err));
    if (!trains && n_others > 0)
        own += (n_others - 1) * size_of(s->graph, s->step_bytes);
    *out = own + (trains ? n_alike(m, s) * beside + n_others * validation : 0);
    return SNUG_OK;
}

/* The arena is shared: a step that can do with what the others need does not make it larger. */
static size_t arena_of_others(const snug_model *m) {
    size_t largest = 0;
    for (int i = 0; i < m->n_steps; i++) {
        const size_t bytes = m->steps[i].plan->memories[SN_MEM_FIRST_ARENA].bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The budget for the smallest plan. */
static sn_budget_floor floor_of(const snug_model *m, const sn_share *share,
                                const sn_plan_floor *least) {
    const size_t remainder = m->foreseen.is_known || share->granule > 0
                                 ? 0
                                 : least_of(least->bytes / REMAINDER_PART, REMAINDER_BYTES);
    sn_share resident = *share;
    resident.state -= least->spilled_bytes;
    return (sn_budget_floor){.budget = sn_share_budget(&resident, least->bytes + remainder),
                             .least = *least};
}

/* The same, with room for what it takes to find it: that is on the ledger before any arena. */
static sn_budget_floor floor_with(const snug_model *m, const sn_share *share,
                                  const sn_plan_floor *least, size_t peak) {
    sn_budget_floor f = floor_of(m, share, least);
    const sn_share planning = {.process = share->process, .books = peak};
    const size_t plans = sn_share_budget(&planning, 0);
    if (!m->executor && share->granule == 0 && plans > f.budget)
        f.budget = plans;
    return f;
}

/* The plan without a limit is no smaller, but nothing is looked for where it fits. */
static sn_budget_floor found_floor(const snug_model *m, const sn_model_step *s,
                                   const sn_share *share, const sn_plan_floor *least,
                                   const sn_plain_plan *plain) {
    const sn_budget_floor found = floor_with(m, share, least, sn_peak_since(m->engine));
    const size_t both = plain->peak + (s->fused ? plain->peak : 0); /* it is planned beside */
    const sn_budget_floor whole = floor_with(m, share, &plain->plan, both);
    return plain->peak > 0 && whole.budget < found.budget ? whole : found;
}

size_t sn_model_booked(const snug_model *m, const sn_model_step *s, const sn_share *share) {
    const size_t steps =
        sn_plan_steps_bytes(s->plan->n_steps, s->plan->slices > 1, step_bytes_of(m, s));
    const sn_plan_floor own = {.bytes = s->plan->memories[SN_MEM_FIRST_ARENA].bytes + steps,
                               .spilled_bytes = s->plan->spilled_bytes};
    return share->budget == 0 || share->granule > 0 ? 0 : floor_of(m, share, &own).budget;
}

static snug_status refuse(const snug_model *m, const sn_model_step *s, const sn_share *share,
                          const sn_budget_floor *f, snug_error *err) {
    const size_t variables = share->state - f->least.spilled_bytes;
    const size_t rest = variables + share->books + f->least.bytes;
    char have[24], need[24], process[24], state[24], books[24], arena[24];
    return sn_fail(
        err, SNUG_E_BUDGET,
        "a budget of %s is too small for model '%s' with a batch of %lld: the smallest is "
        "%s (%s %s, %s variables, %s %s, %s arena, %.3g s a step); give "
        "it that, or use a smaller batch",
        snug_bytes_print(share->budget, have, sizeof have), m->network->name, (long long)s->batch,
        sn_bytes_print_up(f->budget, need, sizeof need),
        snug_bytes_print(f->budget - rest, process, sizeof process),
        share->granule > 0 ? "context" : "process",
        snug_bytes_print(variables, state, sizeof state),
        snug_bytes_print(share->books, books, sizeof books),
        share->granule > 0 ? "buffers" : "graph and plan",
        snug_bytes_print(f->least.bytes, arena, sizeof arena), f->least.seconds);
}

/* What the plan of the whole batch says of any plan of the step: the code of its kernels (the bound
 * of one has room for the two of a slice and of a shorter last one), or what a GPU's libraries
 * take; and what a step of it takes of memory. */
static snug_status size_up(snug_model *m, sn_model_step *s, const sn_plan_options *o, sn_extras *x,
                           sn_plain_plan *plain, snug_error *err) {
    sn_plan *plan;
    s->step_bytes = sn_session_step_bytes(s->graph);
    SNUG_TRY(sn_plan_build(m->engine, s->graph, o, &plan, err));
    x->code = m->kind->code(plan);
    plain->plan = (sn_plan_floor){.bytes = plan->memories[SN_MEM_FIRST_ARENA].bytes +
                                           plan->n_steps * step_bytes_of(m, s),
                                  .seconds = plan->seconds,
                                  .how = {.slices = 1, .limit = SIZE_MAX}};
    plain->peak = sn_peak_since(m->engine);
    sn_plan_destroy(plan);
    return to_come(m, s, &x->reserve, err);
}

static uint32_t home_of(const sn_graph *g, uint32_t var) {
    return sn_graph_var_at(g, (sn_var){var})->home;
}

static const sn_model_step *first_training(const snug_model *m) {
    const sn_model_step *first = NULL;
    for (int i = 0; i < m->n_steps && !first; i++)
        first = m->steps[i].mode == SN_STEP_TRAIN ? &m->steps[i] : NULL;
    return first;
}

/* All plans of a training have the same slots in the spill file: the first one decides. *out has
 * one per variable of the graph; *away: bytes of the others, less the file's own in memory unless
 * the planner counts those with its slots. Variables of both steps stand in the same order, nearly
 * always: the search goes on where the last one ended. */
static snug_status find_spilled(const sn_model_step *first, const sn_graph *g, sn_zone *z,
                                const bool **out, size_t *away, snug_error *err) {
    const uint32_t n = sn_graph_n_vars(first->graph);
    size_t own = 0;
    void *spilled;
    SNUG_TRY(sn_zone_alloc(z, sn_graph_n_vars(g) * sizeof(bool), &spilled, err));
    for (uint32_t i = 0, k = 0; n > 0 && i < sn_graph_n_vars(g); i++) {
        for (uint32_t t = 0; t < n && home_of(first->graph, k) != home_of(g, i); t++)
            k = (k + 1) % n;
        const bool is =
            home_of(first->graph, k) == home_of(g, i) && sn_plan_spills(first->plan, (sn_var){k});
        const sn_value v = sn_graph_var_at(first->graph, (sn_var){k})->first;
        ((bool *)spilled)[i] = is;
        own += is ? first->plan->value_bytes[v.i] : 0;
    }
    const size_t others = first->plan->spilled_bytes - own;
    const size_t file = own > SN_FILE_MEMORY_BYTES ? 0 : SN_FILE_MEMORY_BYTES;
    *away = others > file ? others - file : 0;
    *out = spilled;
    return SNUG_OK;
}

snug_status sn_model_step_fuse(const snug_model *m, sn_model_step *s, snug_error *err) {
    const sn_fuse_options none = {.device = m->target};
    if (s->fused || s->mode != SN_STEP_TRAIN)
        return SNUG_OK;
    return sn_graph_fuse_updates(s->graph, s->graph, &none, &s->fused, err);
}

/* *share NULL: without a limit. The second graph is made when all else is known, so that it is not
 * booked. */
static snug_status plan_step(snug_model *m, sn_model_step *s, const sn_plan_options *o,
                             const sn_share *share, snug_error *err) {
    SNUG_TRY(sn_model_step_fuse(m, s, err));
    sn_room_ask ask = {
        .graph = s->graph, .options = *o, .size = {.step_bytes = step_bytes_of(m, s)}};
    sn_room_made made;
    ask.options.fused = s->fused;
    if (share) {
        ask.room = share->arena > 0 ? share->arena : 1;
        ask.missing = share->missing;
        if (m->n_steps > 0)
            ask.others = arena_of_others(m) + (size_t)sn_graph_n_nodes(s->graph) * s->step_bytes;
    }
    SNUG_TRY(sn_room_plan(m->engine, &ask, &made, err));
    s->plan = made.plan;
    return SNUG_OK;
}

static snug_status plan_within(snug_model *m, sn_model_step *s, sn_plan_options *o, size_t away,
                               sn_share *share, sn_plain_plan *plain, snug_error *err) {
    sn_extras x = {.away = away};
    SNUG_TRY(size_up(m, s, o, &x, plain, err));
    SNUG_TRY(find_share(m, share->budget, x, share, err));
    return plan_step(m, s, o, share, err);
}

/* What the planner is asked, whatever the limit is. *away as of find_spilled; what is found lies in
 * *z, NULL at first: the caller destroys it. */
static snug_status ask(snug_model *m, sn_model_step *s, sn_zone **z, sn_plan_options *o,
                       size_t *away, snug_error *err) {
    const sn_model_step *const first = first_training(m);
    *o = (sn_plan_options){.devices = &m->target,
                           .n_devices = 1,
                           .effort = m->effort,
                           .always_floor = m->wants_floor,
                           .whole = m->as_if_whole};
    *away = 0;
    SNUG_TRY(m->kind->spill_room(m, s->graph, &o->may_spill, &o->spill_bytes, err));
    if (o->may_spill && first) {
        SNUG_TRY(sn_zone_create(m->engine, SN_MEM_PLAN, z, err));
        SNUG_TRY(find_spilled(first, s->graph, *z, &o->spilled, away, err));
    }
    if (s->mode == SN_STEP_EVALUATE || s->mode == SN_STEP_PREDICT)
        o->spilled = NULL; /* no slots there: values are free to go */
    return SNUG_OK;
}

snug_status sn_model_plan_within(snug_model *m, sn_model_step *s, size_t budget, sn_share *share,
                                 sn_budget_floor *floor, snug_error *err) {
    sn_plan_floor least = {.bytes = 0};
    sn_plan_options o;
    sn_zone *z = NULL;
    sn_plain_plan plain = {.peak = 0};
    size_t away;
    *share = (sn_share){.budget = budget};
    sn_peak_restart(m->engine);
    snug_status st = ask(m, s, &z, &o, &away, err);
    o.floor = &least;
    if (st == SNUG_OK && budget == 0)
        st = plan_step(m, s, &o, NULL, err);
    else if (st == SNUG_OK)
        st = plan_within(m, s, &o, away, share, &plain, err);
    sn_zone_destroy(z);
    const sn_budget_floor smallest = found_floor(m, s, share, &least, &plain);
    if (floor && least.bytes > 0)
        *floor = smallest;
    m->has_told = st == SNUG_E_BUDGET && least.bytes > 0;
    return m->has_told ? refuse(m, s, share, &smallest, err) : st;
}

/* The smallest plan of one of a run's steps. */
static snug_status least_of_step(snug_model *m, const sn_step_key *key, sn_model_step *s,
                                 sn_share *share, sn_budget_floor *floor, snug_error *err) {
    *s = (sn_model_step){.mode = key->mode, .batch = key->batch, .weighting = *key->weighting};
    SNUG_TRY(sn_model_step_build(m, s, err));
    const snug_status st = sn_model_plan_within(m, s, 1, share, floor, err);
    return st == SNUG_E_BUDGET && floor->budget > 0 ? SNUG_OK : st == SNUG_OK ? SNUG_E_BUDGET : st;
}

/* Of all steps; *share is the first one's. */
static snug_status least_of_all(snug_model *m, const sn_step_key *keys, size_t n, sn_share *share,
                                sn_budget_floor *floor) {
    for (size_t i = 0; i < n; i++) {
        sn_budget_floor one = {.budget = 0};
        sn_model_step s;
        sn_share own;
        snug_error unused = {.code = SNUG_OK};
        const snug_status st = least_of_step(m, &keys[i], &s, &own, &one, &unused);
        sn_model_step_close(&s);
        SNUG_TRY(st);
        if (i == 0)
            *share = own;
        if (i == 0 || one.least.bytes > floor->least.bytes)
            *floor = floor_of(m, share, &one.least);
    }
    return SNUG_OK;
}

snug_status sn_model_refuse_all(snug_model *m, const sn_step_key *keys, size_t n, snug_error *err) {
    const sn_model_step first = {.batch = keys[0].batch};
    sn_budget_floor floor = {.budget = 0};
    sn_share share = {.budget = 0};
    size_t budget;
    SNUG_TRY(sn_model_budget(m, &budget, err));
    sn_gate_tell(m->engine, true);
    const snug_status st = least_of_all(m, keys, n, &share, &floor);
    sn_gate_tell(m->engine, false);
    if (st != SNUG_OK)
        return SNUG_E_BUDGET; /* what was said stays */
    share.budget = budget;
    return refuse(m, &first, &share, &floor, err);
}

/* The budget for the floor as the process is now. */
static snug_status raise_floor(snug_model *m, sn_model_step *s, sn_plan_options *o, size_t away,
                               sn_budget_floor *inout, snug_error *err) {
    sn_extras x = {.away = away};
    sn_plain_plan plain;
    sn_share share;
    SNUG_TRY(size_up(m, s, o, &x, &plain, err));
    SNUG_TRY(find_share(m, inout->budget, x, &share, err));
    const size_t budget = floor_of(m, &share, &inout->least).budget;
    inout->budget = budget > inout->budget ? budget : inout->budget;
    return SNUG_OK;
}

snug_status sn_model_plan_floor(snug_model *m, sn_model_step *s, sn_budget_floor *inout,
                                snug_error *err) {
    sn_plan_options o;
    sn_zone *z = NULL;
    size_t away;
    snug_status st = ask(m, s, &z, &o, &away, err);
    if (st == SNUG_OK)
        st = raise_floor(m, s, &o, away, inout, err);
    o.at = &inout->least;
    if (st == SNUG_OK)
        st = plan_step(m, s, &o, NULL, err);
    sn_zone_destroy(z);
    return st;
}

snug_status sn_model_peak(const snug_model *m, size_t *out, snug_error *err) {
    sn_process_booking booking;
    const sn_process_need need = {.map_bytes = 0};
    SNUG_TRY(sn_process_book(m->engine, &need, &booking, err));
    *out = booking.predicted_bytes + snug_engine_bytes(m->engine);
    return SNUG_OK;
}

static bool process_take_idle(const snug_model *m) {
    return m->executor ? sn_executor_take_others(m->executor) : sn_idle_give(m->engine, NULL);
}

/* Arenas of other models and recorders stay where there is room for them, too, beside all that is
 * booked. */
static size_t idle_beside(const snug_model *m, size_t booked) {
    const size_t idle =
        m->executor ? sn_executor_others(m->executor) : sn_idle_bytes(m->engine, NULL);
    const size_t budget = snug_budget_bytes(m->engine);
    return budget == 0 || (booked <= budget && idle <= budget - booked) ? idle : 0;
}

static snug_status process_expect(const snug_model *m, size_t *out, snug_error *err) {
    size_t state, arena = 0, books = books_of(m) + homes_to_come(m);
    sn_process_need need = {.map_bytes = 0};
    sn_process_booking booking;
    SNUG_TRY(state_of(m, &state, err));
    for (int i = 0; i < m->n_steps; i++) {
        const sn_plan *plan = m->steps[i].plan;
        const size_t bytes = plan->memories[SN_MEM_FIRST_ARENA].bytes;
        arena = bytes > arena ? bytes : arena;
        need.code_bytes = plan->code_bytes > need.code_bytes ? plan->code_bytes : need.code_bytes;
        books += m->steps[i].session ? 0 : sn_session_bytes(plan);
    }
    if (first_training(m))
        state -= first_training(m)->plan->spilled_bytes;
    need.map_bytes = state + arena;
    SNUG_TRY(sn_process_book(m->engine, &need, &booking, err));
    *out = booking.predicted_bytes + books + state + arena;
    *out += idle_beside(m, *out + booking.booked_bytes - booking.predicted_bytes);
    return SNUG_OK;
}

static snug_status process_forecast(const snug_model *m, const sn_plan *plan, sn_forecast *out,
                                    snug_error *err) {
    const size_t files =
        (plan->spilled_bytes > 0 ? 1u : 0u) + (plan->spilled_value_bytes > 0 ? 1u : 0u);
    sn_process_booking booking;
    size_t state;
    SNUG_TRY(state_of(m, &state, err));
    state -= plan->spilled_bytes;
    const sn_process_need need = {
        .map_bytes = state + plan->memories[SN_MEM_FIRST_ARENA].bytes,
        .code_bytes = plan->code_bytes,
    };
    SNUG_TRY(sn_process_book(m->engine, &need, &booking, err));
    *out = (sn_forecast){.process = booking.predicted_bytes,
                         .reserve = booking.booked_bytes - booking.predicted_bytes,
                         .state = state,
                         .books = books_of(m) + homes_to_come(m) + sn_session_bytes(plan) +
                                  files * SN_SPILL_MEMORY_BYTES};
    return SNUG_OK;
}

snug_status sn_model_check_plan(const snug_model *m, const sn_plan *plan, size_t budget,
                                snug_error *err) {
    char have[24], need[24];
    sn_forecast f;
    if (budget == 0)
        return SNUG_OK;
    SNUG_TRY(sn_model_forecast(m, plan, &f, err));
    const size_t peak = f.process + f.state + f.books + plan->memories[SN_MEM_FIRST_ARENA].bytes;
    if (peak <= budget)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_BUDGET,
                   "the plan that was given needs %s, the budget is %s: raise it, or give a plan "
                   "made for it",
                   snug_bytes_print(peak, need, sizeof need),
                   snug_bytes_print(budget, have, sizeof have));
}

snug_status sn_model_curve(snug_model *m, sn_model_step *s, sn_plan_point *out, uint32_t max,
                           uint32_t *n, snug_error *err) {
    sn_plan_options o = {.devices = &m->target, .n_devices = 1, .effort = m->effort};
    sn_extras x = {.reserve = 0};
    sn_plain_plan plain;
    sn_share share;
    SNUG_TRY(size_up(m, s, &o, &x, &plain, err));
    SNUG_TRY(find_share(m, 0, x, &share, err));
    SNUG_TRY(sn_model_step_fuse(m, s, err));
    o.fused = s->fused;
    o.step_bytes = step_bytes_of(m, s);
    SNUG_TRY(sn_plan_curve(m->engine, s->graph, &o, out, max, n, err));
    for (uint32_t i = 0; i < *n; i++) {
        /* A budget's plan is made for whole steps of room; but for the smallest one. */
        const size_t bytes = i + 1 < *n ? sn_room_steps(out[i].bytes) : out[i].bytes;
        const sn_plan_floor point = {.bytes = bytes, .seconds = out[i].seconds};
        out[i].bytes = floor_of(m, &share, &point).budget;
    }
    sn_plan_thin(out, n); /* a card's memory comes in granules */
    return SNUG_OK;
}

/* --- the table -------------------------------------------------------------------------------- */

static snug_status process_budget(const snug_model *m, size_t *out, snug_error *err) {
    (void)err;
    *out = snug_budget_bytes(m->engine);
    return SNUG_OK;
}

static size_t process_asked(const snug_model *m) {
    return snug_budget_bytes(m->engine);
}

static size_t process_code(const sn_plan *plan) {
    return plan->code_bytes;
}

static snug_status process_spill_room(const snug_model *m, const sn_graph *g, bool *may,
                                      size_t *bytes, snug_error *err) {
    (void)g, (void)err;
    *may = sn_engine_spill_folder(m->engine) || m->as_if_spilling;
    *bytes = 0;
    return SNUG_OK;
}

static snug_status process_host_share(const snug_model *m, const sn_plan *plan, sn_host_share *out,
                                      snug_error *err) {
    (void)m, (void)plan, (void)err;
    *out = (sn_host_share){.budget = 0};
    return SNUG_OK;
}

static snug_status process_next_batch(const snug_model *m, const sn_graph *g, size_t spare,
                                      size_t *out, snug_error *err) {
    (void)m, (void)g, (void)spare, (void)err;
    *out = 0;
    return SNUG_OK;
}

const sn_budget_class sn_process_budget = {.of_process = true,
                                           .waits = "a file",
                                           .waits_column = "      in a file",
                                           .books = "sessions, windows, names",
                                           .process = "process",
                                           .reserve = "reserve for the process",
                                           .asked = process_asked,
                                           .budget = process_budget,
                                           .share = process_share,
                                           .forecast = process_forecast,
                                           .expect = process_expect,
                                           .code = process_code,
                                           .spill_room = process_spill_room,
                                           .take_idle = process_take_idle,
                                           .host_share = process_host_share,
                                           .next_batch = process_next_batch};
