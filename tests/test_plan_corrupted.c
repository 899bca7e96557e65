/* test_plan_corrupted.c: whatever is changed in a plan, the checker accepts it only where it still
 * computes the same, as a symbolic run says that shares no code with it. */
#include "support/plan_world.h"
#include "support/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- random corruptions against a symbolic run ---------------------------------------------- */
/* Every byte of memory holds a number that says how it was computed. */
typedef struct {
    const sn_plan *p;
    uint64_t *bytes[SN_MAX_MEMORIES];
    uint64_t *home[64];
} symbols;

static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2))) *
                 UINT64_C(0xff51afd7ed558ccd);
    return h ^ (h >> 33);
}

static uint64_t *place_at(symbols *s, const sn_place *p) {
    if (p->memory == SN_MEM_STATE)
        return s->home[sn_graph_value_at(s->p->graph, p->value)->var];
    return s->bytes[p->memory] + p->offset;
}

static uint64_t digest(symbols *s, const sn_place *p) {
    const uint64_t *at = place_at(s, p);
    uint64_t h = 1;
    for (size_t i = 0; i < s->p->value_bytes[p->value.i]; i++)
        h = mix(h, at[i]);
    return h;
}

static void run_symbolic(symbols *s, const sn_step *step) {
    const size_t *bytes = s->p->value_bytes;
    if (step->kind == SN_STEP_FEED) {
        for (size_t i = 0; i < bytes[step->out[0].value.i]; i++)
            place_at(s, &step->out[0])[i] = mix(1000 + step->input, i);
        return;
    }
    if (step->kind == SN_STEP_COPY) {
        memmove(place_at(s, &step->out[0]), place_at(s, &step->in[0]),
                bytes[step->out[0].value.i] * sizeof(uint64_t));
        return;
    }
    const sn_op op = sn_graph_node_at(s->p->graph, step->node)->op;
    if (sn_ops[op].inplace == SN_INPLACE_ALIAS) {
        memmove(place_at(s, &step->out[0]), place_at(s, &step->in[0]),
                bytes[step->out[0].value.i] * sizeof(uint64_t));
        return;
    }
    uint64_t h = mix(step->node.i, 77);
    for (int k = 0; k < step->n_in; k++)
        h = mix(h, digest(s, &step->in[k]));
    for (size_t i = 0; i < step->ws_bytes; i++)
        s->bytes[step->ws_memory][step->ws_offset + i] = 666;
    for (int k = 0; k < step->n_out; k++)
        for (size_t i = 0; i < bytes[step->out[k].value.i]; i++)
            place_at(s, &step->out[k])[i] = mix(mix(h, (uint64_t)k), i);
}

/* A digest of all outputs and variables after the plan. */
static uint64_t result_of(const sn_plan *p) {
    symbols s = {.p = p};
    uint64_t h = 5;
    const uint32_t n_vars = sn_graph_n_vars(p->graph);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        s.bytes[m] = calloc(p->memories[m].bytes + 1, sizeof(uint64_t));
    for (uint32_t v = 0; v < n_vars; v++) {
        const size_t n = p->value_bytes[sn_graph_var_at(p->graph, (sn_var){v})->first.i];
        s.home[v] = calloc(n + 1, sizeof(uint64_t));
        for (size_t i = 0; i < n; i++)
            s.home[v][i] = mix(2000 + v, i);
    }
    for (uint32_t i = 0; i < p->n_steps; i++)
        run_symbolic(&s, &p->steps[i]);
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++)
        h = mix(h, digest(&s, &p->outputs[i]));
    for (uint32_t v = 0; v < n_vars; v++) {
        const sn_place home = {.value = sn_graph_var_at(p->graph, (sn_var){v})->first, .rows = -1};
        h = mix(h, digest(&s, &home));
        free(s.home[v]);
    }
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        free(s.bytes[m]);
    return h;
}

static uint64_t random_state;
static uint32_t draw(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

/* Changes one thing of the plan and says how to undo it: swapped steps, a moved place, a node run
 * instead of another, a moved workspace. */
static void corrupt(sn_plan *p, sn_step *saved, sn_place *place, uint32_t *at) {
    const uint32_t i = draw(p->n_steps), j = draw(p->n_steps);
    sn_step *s = &p->steps[i];
    saved[0] = *s;
    saved[1] = p->steps[j];
    at[0] = i;
    at[1] = j;
    const uint32_t kind = draw(5);
    if (kind == 0) {
        p->steps[i] = saved[1];
        p->steps[j] = saved[0];
        return;
    }
    if (kind == 1) {
        p->steps[i] = saved[1]; /* one step lost, one run twice */
        return;
    }
    if (kind == 2 && s->ws_bytes > 0) {
        s->ws_offset = 64 * (size_t)draw((uint32_t)(p->memories[1].bytes / 64) + 1);
        return;
    }
    const bool out = draw(2) == 0 || s->n_in == 0;
    const int n = out ? s->n_out : s->n_in;
    if (n == 0)
        return;
    memcpy(place, out ? s->out : s->in, (size_t)n * sizeof *place);
    const int k = (int)draw((uint32_t)n);
    place[k].offset = 64 * (size_t)draw((uint32_t)(p->memories[1].bytes / 64) + 1);
    if (draw(8) == 0)
        place[k].memory = draw(2);
    if (out)
        s->out = place;
    else
        s->in = place;
}

static void test_plans_accepted_after_random_corruption_compute_the_same(void **state) {
    plan_world *w = *state;
    const sn_plan_options options = {.devices = w->devices, .n_devices = 1};
    int caught = 0, accepted = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        snug_error err;
        sn_graph *g;
        sn_plan *p;
        expect_ok(sn_random_graph(w->engine, seed, 5 + (int)(seed % 40), &g, &err), &err);
        expect_ok(sn_plan_build(w->engine, g, &options, &p, &err), &err);
        const uint64_t wanted = result_of(p);
        random_state = seed;
        for (int i = 0; i < 100 && p->n_steps > 0 && sn_graph_n_vars(g) < 64; i++) {
            sn_step saved[2];
            sn_place place[SN_MAX_IN];
            uint32_t at[2];
            corrupt(p, saved, place, at);
            if (sn_plan_check(p, w->devices, 1, &err) != SNUG_OK) {
                caught++;
            } else {
                accepted++;
                assert_true(result_of(p) == wanted);
            }
            p->steps[at[0]] = saved[0];
            p->steps[at[1]] = saved[1];
        }
        sn_plan_destroy(p);
        sn_graph_destroy(g);
    }
    assert_true(caught > 2000);
    assert_true(accepted > 100);
}

/* --- every number of the hand-written plans changed ----------------------------------------- */
/* Rows of a value as one step sees them. */
typedef struct {
    uint64_t *at;
    int64_t n;
    size_t row_bytes;
} rows_seen;

static rows_seen see_rows(symbols *s, const sn_place *p, const sn_step *block, int64_t iteration) {
    const snug_type *type = sn_graph_type(s->p->graph, p->value);
    const size_t bytes = s->p->value_bytes[p->value.i];
    rows_seen seen = {place_at(s, p) + (size_t)iteration * p->stride, type->dims[0],
                      bytes / (size_t)type->dims[0]};
    if (p->rows < 0)
        return seen;
    if (p->axis == 1) {
        assert_int_equal(p->rows, type->dims[1]); /* all columns: the whole value */
        return seen;
    }
    const bool is_last = block && iteration == block->repeat - 1;
    seen.n = is_last ? p->rows / block->rows * block->last : p->rows;
    return seen;
}

static uint64_t digest_row(const rows_seen *seen, int64_t row) {
    uint64_t h = 3;
    for (size_t i = 0; i < seen->row_bytes; i++)
        h = mix(h, seen->at[(size_t)row * seen->row_bytes + i]);
    return h;
}

/* Nodes 0 to 3: each row from the same rows of the inputs; the weight is read whole. */
static void run_map(symbols *s, const sn_step *step, const sn_step *block, int64_t iteration) {
    const rows_seen a = see_rows(s, &step->in[0], block, iteration);
    const rows_seen out = see_rows(s, &step->out[0], block, iteration);
    for (int64_t r = 0; r < out.n; r++) {
        uint64_t h = mix(step->node.i, digest_row(&a, r));
        if (step->node.i == 0)
            h = mix(h, digest(s, &step->in[1]));
        if (step->node.i >= 2) {
            const rows_seen b = see_rows(s, &step->in[1], block, iteration);
            h = mix(h, digest_row(&b, r));
        }
        for (size_t i = 0; i < out.row_bytes; i++)
            out.at[(size_t)r * out.row_bytes + i] = mix(h, i);
    }
}

/* Node 4: a sum over rows, in any number of parts. */
static void run_sum(symbols *s, const sn_step *step, const sn_step *block, int64_t iteration) {
    const rows_seen x = see_rows(s, &step->in[0], block, iteration);
    const rows_seen g = see_rows(s, &step->in[1], block, iteration);
    const bool adds =
        step->accumulate == SN_ACC_ADD || (step->accumulate == SN_ACC_ADD_LATER && iteration > 0);
    uint64_t *out = place_at(s, &step->out[0]);
    for (size_t i = 0; i < 48; i++) {
        uint64_t sum = adds ? out[i] : 0;
        for (int64_t r = 0; r < x.n; r++)
            sum += mix(mix(digest_row(&x, r), digest_row(&g, r)), i);
        out[i] = sum;
    }
}

/* Runs a step of the hand-written graph on what its places hold, in the order of the list. */
static void run_by_rows(symbols *s, const sn_step *step, const sn_step *block, int64_t iteration) {
    if (step->kind == SN_STEP_FEED) {
        const sn_place *p = &step->out[0];
        const rows_seen out = see_rows(s, p, block, iteration);
        const int64_t first = p->rows < 0 ? 0 : p->first + iteration * p->rows;
        for (size_t i = 0; i < (size_t)out.n * out.row_bytes; i++)
            out.at[i] = mix(1000 + step->input, (size_t)first * out.row_bytes + i);
        return;
    }
    for (size_t i = 0; i < step->ws_bytes; i++)
        s->bytes[step->ws_memory][step->ws_offset + i] = 666;
    if (step->kind == SN_STEP_RUN && step->node.i < 4)
        run_map(s, step, block, iteration);
    else if (step->kind == SN_STEP_RUN && step->node.i == 4)
        run_sum(s, step, block, iteration);
    else if (step->kind == SN_STEP_RUN && step->node.i == 6)
        run_symbolic(s, step);
    else { /* a copy, or the alias */
        const rows_seen from = see_rows(s, &step->in[0], block, iteration);
        memmove(see_rows(s, &step->out[0], block, iteration).at, from.at,
                (size_t)from.n * from.row_bytes * sizeof(uint64_t));
    }
}

static uint64_t result_by_rows(const sn_plan *p) {
    symbols s = {.p = p};
    uint64_t *w = s.home[0] = calloc(48, sizeof *w);
    const sn_step *block = NULL;
    uint32_t first = 0;
    int64_t iteration = 0;
    for (size_t i = 0; i < 48; i++)
        w[i] = mix(2000, i);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        s.bytes[m] = calloc(p->memories[m].bytes + 1, sizeof(uint64_t));
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].kind == SN_STEP_REPEAT) {
            block = &p->steps[i];
            first = i;
        } else if (p->steps[i].kind != SN_STEP_END) {
            run_by_rows(&s, &p->steps[i], block, iteration);
        } else if (++iteration < block->repeat) {
            i = first;
        } else {
            block = NULL;
            iteration = 0;
        }
    }
    uint64_t h = digest(&s, &p->outputs[0]);
    for (size_t i = 0; i < 48; i++)
        h = mix(h, w[i]);
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        free(s.bytes[m]);
    free(w);
    return h;
}

/* The plan with the number at `at` replaced; accepted only when it computes the same. */
static bool try_number(const plan_world *w, const char *plan, const char *at, int64_t number,
                       uint64_t wanted) {
    char text[4096];
    snug_error err;
    sn_plan *p;
    const size_t digits = strspn(at, "0123456789");
    snprintf(text, sizeof text, "%.*s%lld%s", (int)(at - plan), plan, (long long)number,
             at + digits);
    const int n_devices = strstr(plan, "device 1 align") ? 2 : 1;
    if (number < 0 ||
        sn_plan_parse(w->engine, w->graph, text, w->devices, n_devices, &p, &err) != SNUG_OK)
        return false;
    if (result_by_rows(p) != wanted)
        fail_msg("accepted, but computes something else:\n%s", text);
    sn_plan_destroy(p);
    return true;
}

static void test_plans_accepted_with_any_number_changed_compute_the_same(void **state) {
    static const char *const plans[] = {plan_plain, plan_sliced, plan_two_slices, plan_queues,
                                        plan_devices2};
    static const int64_t changes[] = {-64, -36, -16, -12, -3, -2, -1,  1,
                                      2,   3,   12,  16,  36, 64, 128, 256};
    const plan_world *w = *state;
    snug_error err;
    sn_plan *p;
    expect_ok(plan_world_parse(w, plan_plain, &p, &err), &err);
    const uint64_t wanted = result_by_rows(p);
    sn_plan_destroy(p);
    int tried = 0, accepted = 0;
    for (size_t k = 0; k < sizeof plans / sizeof plans[0]; k++) {
        assert_true(try_number(w, plans[k], strstr(plans[k], "1\n"), 1, wanted));
        for (const char *at = strstr(plans[k], "\ns0 "); *at; at++) {
            if (*at < '0' || *at > '9')
                continue;
            for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++, tried++)
                accepted += try_number(w, plans[k], at, atoll(at) + changes[c], wanted);
            at += strspn(at, "0123456789") - 1;
        }
    }
    assert_true(tried > 5000);
    assert_true(accepted > 0 && accepted < tried / 20); /* a workspace may move a little */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_accepted_after_random_corruption_compute_the_same),
        cmocka_unit_test(test_plans_accepted_with_any_number_changed_compute_the_same),
    };
    return cmocka_run_group_tests_name("plan_corrupted", tests, plan_world_open, plan_world_close);
}
