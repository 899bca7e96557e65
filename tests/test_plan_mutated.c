/* test_plan_mutated.c: the checker replays a block by strides; what a checker that replays every
 * iteration (support/slow_check.h) refuses, it must refuse. Plans of random graphs and of networks
 * in slices, half of them with their steps spread over the queues, are changed in a random place: a
 * field of a step, a buffer of all steps that have it, the order, the waits. Both judge. What only
 * the fast one refuses is counted: none in blocks of up to 16 iterations; in longer ones slices
 * that cross bytes which nobody reads, or leave gaps between them. SNUG_TEST_FULL: 20 times as
 * many. SNUG_TEST_SHOW: prints what only the fast one refuses. */
#include "support/fake_device.h"
#include "support/golden_case.h"
#include "support/plan_world.h"
#include "support/random_graph.h"
#include "support/slow_check.h"
#include "support/support.h"
#include "support/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state;
static uint32_t draw(uint64_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

/* --- a plan that can be changed --------------------------------------------------------------- */
/* The plan's steps and places, own copies; `good` is what they are copied from. */
typedef struct {
    sn_plan *p;
    sn_step *good, *steps;
    sn_place *good_places, *places;
    uint32_t *waits;
    size_t n_places;
    const sn_device *const *devices;
} subject;

static void restore(subject *s) {
    memcpy(s->places, s->good_places, s->n_places * sizeof *s->places);
    memcpy(s->steps, s->good, s->p->n_steps * sizeof *s->steps);
}

/* Steps on any queue, each behind the one before it. */
static void spread(subject *s) {
    s->waits = calloc(s->p->n_steps + 1, sizeof *s->waits);
    for (uint32_t i = 1; i < s->p->n_steps; i++) {
        s->waits[i] = i - 1;
        s->good[i].queue = (sn_queue)draw(SN_N_QUEUES);
        s->good[i].n_waits = 1;
        s->good[i].waits = &s->waits[i];
    }
}

static void own(subject *s, sn_plan *p, bool on_queues) {
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        n += (size_t)p->steps[i].n_in + p->steps[i].n_out;
    s->p = p;
    s->n_places = n;
    s->good = calloc(p->n_steps + 1, sizeof *s->good);
    s->steps = calloc(p->n_steps + 1, sizeof *s->steps);
    s->good_places = calloc(n + 1, sizeof *s->places);
    s->places = calloc(n + 1, sizeof *s->places);
    memcpy(s->good, p->steps, p->n_steps * sizeof *s->good);
    n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_place **ends[2] = {&s->good[i].in, &s->good[i].out};
        for (int e = 0; e < 2; e++) {
            const size_t count = e == 0 ? s->good[i].n_in : s->good[i].n_out;
            for (size_t k = 0; k < count; k++)
                s->good_places[n + k] = (*ends[e])[k];
            *ends[e] = s->places + n;
            n += count;
        }
    }
    s->waits = NULL;
    if (on_queues)
        spread(s);
    p->steps = s->steps;
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        p->memories[m].bytes += 4096; /* room to move to */
    restore(s);
}

static void disown(subject *s) {
    sn_plan_destroy(s->p);
    free(s->good);
    free(s->steps);
    free(s->good_places);
    free(s->places);
    free(s->waits);
}

/* --- the same used bytes as promised ---------------------------------------------------------- */
static void raise(size_t *used, size_t end) {
    *used = end > *used ? end : *used;
}

static void raise_by(const sn_plan *p, const sn_step *block, const sn_place *at, size_t *used) {
    const snug_type *t = sn_graph_type(p->graph, at->value);
    const size_t bytes = p->value_bytes[at->value.i];
    if (at->rows < 0 || at->axis < 0 || at->axis >= t->rank || t->dims[at->axis] == 0) {
        raise(used, at->offset + bytes);
        return;
    }
    const size_t row = bytes / (size_t)t->dims[at->axis], rows = (size_t)at->rows;
    const size_t n = block ? (size_t)block->repeat : 1;
    if (n > 1)
        raise(used, at->offset + (n - 2) * at->stride + row * rows);
    const size_t last =
        block && block->rows > 0 ? rows / (size_t)block->rows * (size_t)block->last : rows;
    raise(used, at->offset + (n - 1) * at->stride + row * last);
}

/* What is changed changes the highest byte: that alone is not to be what is found. */
static void count_used(sn_plan *p) {
    size_t used[SN_MAX_MEMORIES] = {0};
    const sn_step *block = NULL;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const sn_step *s = &p->steps[i];
        block = s->kind == SN_STEP_REPEAT ? s : s->kind == SN_STEP_END ? NULL : block;
        for (int k = 0; k < s->n_in + s->n_out; k++) {
            const sn_place *at = k < s->n_in ? &s->in[k] : &s->out[k - s->n_in];
            if (at->memory < p->n_memories)
                raise_by(p, block, at, &used[at->memory]);
        }
        if (s->ws_bytes > 0)
            raise(&used[s->ws_memory], s->ws_offset + s->ws_bytes);
    }
    for (uint32_t m = SN_MEM_FIRST_ARENA; m < p->n_memories; m++)
        p->memories[m].used_bytes = used[m];
}

/* --- changes ---------------------------------------------------------------------------------- */
static size_t change_size(size_t x, size_t step) {
    static const size_t few[] = {1, 4, 8, 16, 64, 64, 128, 192, 512};
    const size_t by = draw(3) == 0 && step > 0 ? step : few[draw(9)];
    return draw(2) == 0 && x >= by ? x - by : x + by;
}

static int64_t change_count(int64_t x) {
    static const int64_t by[] = {-2, -1, -1, 1, 1, 2, 3};
    return x + by[draw(7)];
}

static size_t row_bytes(const subject *s, const sn_place *at) {
    const snug_type *t = sn_graph_type(s->p->graph, at->value);
    return t->rank > 0 && t->dims[0] > 0 ? s->p->value_bytes[at->value.i] / (size_t)t->dims[0] : 0;
}

static void change_place(subject *s, sn_place *at) {
    switch (draw(8)) {
    case 0:
    case 1:
        at->offset = change_size(at->offset, at->stride);
        break;
    case 2:
    case 3:
        at->stride = change_size(at->stride, row_bytes(s, at));
        break;
    case 4:
        at->first = draw(3) == 0 ? at->first + at->rows : change_count(at->first);
        break;
    case 5:
        at->rows = draw(6) == 0 ? -1 : change_count(at->rows);
        break;
    case 6:
        at->axis += (int)draw(3) - 1;
        break;
    default:
        at->memory = draw(s->p->n_memories);
        break;
    }
}

/* All places of one buffer: moved, or moving by another stride, or by one where it had none. */
static void change_buffer(subject *s) {
    const sn_place from = s->places[draw(s->n_places)];
    const sn_place to = s->places[draw(s->n_places)];
    sn_place with = from;
    const uint32_t how = draw(6);
    if (how < 2)
        with.offset = change_size(from.offset, row_bytes(s, &from));
    else if (how < 4)
        with.offset = change_size(to.offset, row_bytes(s, &to)) / 64 * 64;
    else
        with.stride = change_size(from.stride, row_bytes(s, &from));
    for (size_t i = 0; i < s->n_places; i++)
        if (s->places[i].memory == from.memory && s->places[i].offset == from.offset &&
            (how < 4 || s->places[i].stride == from.stride) &&
            (from.memory != SN_MEM_STATE || s->places[i].value.i == from.value.i)) {
            s->places[i].offset = with.offset;
            if (s->places[i].rows >= 0 && how >= 4)
                s->places[i].stride = with.stride;
        }
}

static void change_order(subject *s, uint32_t i) {
    const uint32_t j = draw(2) == 0 ? draw(s->p->n_steps) : i + 1 < s->p->n_steps ? i + 1 : i;
    const sn_step saved = s->steps[i];
    s->steps[i] = s->steps[j];
    if (draw(3) > 0)
        s->steps[j] = saved; /* else one is lost, one runs twice */
}

static void change_step(subject *s, sn_step *step) {
    switch (draw(4)) {
    case 0:
        step->ws_offset = change_size(step->ws_offset, step->ws_bytes);
        break;
    case 1:
        step->accumulate = (sn_accumulate)draw(3);
        break;
    case 2:
        step->queue = (sn_queue)draw(SN_N_QUEUES);
        break;
    default:
        step->n_waits = 0;
        break;
    }
    (void)s;
}

/* The first block at or behind the step. */
static void change_block(subject *s, uint32_t i) {
    while (i < s->p->n_steps && s->steps[i].kind != SN_STEP_REPEAT)
        i++;
    if (i == s->p->n_steps)
        return;
    int64_t *const field[3] = {&s->steps[i].repeat, &s->steps[i].rows, &s->steps[i].last};
    int64_t *const at = field[draw(3)];
    *at = change_count(*at);
}

static void mutate(subject *s) {
    const uint32_t i = draw(s->p->n_steps), kind = draw(12);
    if (kind < 4 && s->n_places > 0)
        change_place(s, &s->places[draw(s->n_places)]);
    else if (kind < 8 && s->n_places > 0)
        change_buffer(s);
    else if (kind < 9)
        change_order(s, i);
    else if (kind < 11)
        change_step(s, &s->steps[i]);
    else
        change_block(s, i);
}

/* --- verdicts --------------------------------------------------------------------------------- */
typedef struct {
    uint64_t plans, blocks, tried, refused, only_fast;
} counts;

static void show(const subject *s, const char *what, const snug_error *err) {
    sn_test_text text = {0};
    const snug_writer writer = sn_test_text_writer(&text);
    snug_error other;
    if (sn_plan_print(s->p, &writer, &other) == SNUG_OK)
        print_error("%s: %s\n%s\n", what, err->text, text.data);
    sn_test_text_clear(&text);
}

static void judge(subject *s, counts *n) {
    snug_error err, slow_err;
    const snug_status fast = sn_plan_check(s->p, s->devices, 1, &err);
    const snug_status slow = sn_slow_check(s->p, s->devices, 1, &slow_err);
    if (fast != SNUG_OK && strstr(err.text, "may refuse its values, and not kept"))
        return; /* a rule that the slow one has not */
    n->tried++;
    n->refused += slow != SNUG_OK;
    n->only_fast += slow == SNUG_OK && fast != SNUG_OK;
    if (slow == SNUG_OK && fast != SNUG_OK && getenv("SNUG_TEST_SHOW"))
        show(s, "only the fast one refuses", &err);
    if (slow != SNUG_OK && fast == SNUG_OK) {
        show(s, "the fast one accepts", &slow_err);
        fail_msg("accepted, but: %s", slow_err.text);
    }
}

static int scale(void) {
    return getenv("SNUG_TEST_FULL") ? 20 : 1;
}

/* Takes the plan. Of two changes the second may hide the first: rarely. */
static void mutate_plan(sn_plan *p, const sn_device *const *devices, int times, counts *n) {
    subject s = {.devices = devices};
    snug_error err;
    random_state = n->plans * 7 + 1;
    own(&s, p, n->plans % 2 == 1);
    n->plans++;
    for (uint32_t i = 0; i < p->n_steps; i++)
        n->blocks += p->steps[i].kind == SN_STEP_REPEAT && p->steps[i].repeat > 4;
    count_used(p);
    expect_ok(sn_slow_check(p, devices, 1, &err), &err);
    expect_ok(sn_plan_check(p, devices, 1, &err), &err);
    for (int i = 0; i < times * scale(); i++) {
        mutate(&s);
        if (draw(8) == 0)
            mutate(&s);
        count_used(p);
        judge(&s, n);
        restore(&s);
    }
    disown(&s);
}

static void expect_counts(const counts *n, uint64_t plans, uint64_t only_fast) {
    print_message("%llu plans, %llu blocks of more than 4 slices, %llu changes: %llu refused by "
                  "both, %llu by the fast one only\n",
                  (unsigned long long)n->plans, (unsigned long long)n->blocks,
                  (unsigned long long)n->tried, (unsigned long long)n->refused,
                  (unsigned long long)n->only_fast);
    assert_true(n->plans >= plans && n->blocks >= n->plans);
    assert_true(n->refused > n->tried / 3 && n->refused < n->tried - n->tried / 20);
    assert_true(n->only_fast <= only_fast);
}

/* --- whose plans ------------------------------------------------------------------------------ */
static void test_random_graphs_in_slices(void **state) {
    sn_fake_device fake;
    counts n = {0};
    (void)state;
    sn_fake_device_init(&fake, "fake:0");
    fake.workspace_bytes[SN_OP_matmul] = 200;
    const sn_device *devices[1] = {&fake.device};
    for (uint64_t seed = 1; n.plans < 60; seed++) {
        snug_engine *e = sn_test_engine(0);
        snug_error err;
        sn_graph *g;
        sn_plan *p = NULL;
        const sn_plan_options o = {.devices = devices,
                                   .n_devices = 1,
                                   .slices = 5 + (int64_t)(seed % 4),
                                   .part_bytes = seed % 3 == 0 ? 400 : 0};
        expect_ok(sn_random_smooth_graph(e, seed, 8 + (int)(seed % 40), &g, &err), &err);
        const bool sliced = sn_plan_build(e, g, &o, &p, &err) == SNUG_OK && p->slices > 4;
        if (sliced)
            mutate_plan(p, devices, 150, &n);
        else
            sn_plan_destroy(p);
        sn_graph_destroy(g);
        sn_test_engine_end(e);
    }
    expect_counts(&n, 60, 0);
}

/* More slices than are ever replayed one by one. */
static void test_a_network_in_many_slices(void **state) {
    static const int64_t rows[] = {40, 37, 64, 33}, slices[] = {40, 19, 32, 17};
    sn_fake_device fake;
    counts n = {0};
    (void)state;
    sn_fake_device_init(&fake, "fake:0");
    fake.workspace_bytes[SN_OP_matmul] = 200;
    const sn_device *devices[1] = {&fake.device};
    for (int i = 0; i < 8; i++) {
        snug_engine *e = sn_test_engine(0);
        snug_error err;
        sn_graph *g = plan_world_network(e, rows[i / 2]);
        sn_plan *p;
        const sn_plan_options o = {.devices = devices, .n_devices = 1, .slices = slices[i / 2]};
        expect_ok(sn_plan_build(e, g, &o, &p, &err), &err);
        mutate_plan(p, devices, 600, &n); /* on one queue, then on all */
        sn_graph_destroy(g);
        sn_test_engine_end(e);
    }
    expect_counts(&n, 8, n.tried / 100); /* 0.7 %: slots that are made to move */
}

static void test_networks_in_slices(void **state) {
    static const char *const folders[] = {"mlp_f64",        "cnn_f64",       "batchnorm_dense_f64",
                                          "stateful_f64",   "tagger_f64",    "weight_steps_f64",
                                          "model_lstm_f64", "model_unet_f64"};
    static const int64_t slices[] = {5, 6, 8, 16};
    counts n = {0};
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        golden_case c;
        snug_error err;
        golden_case_open(&c, SNUG_TEST_DATA "/golden", folders[i]);
        const sn_step_subject *s = &c.subject.subject;
        const sn_device *devices[1] = {&s->device->device};
        for (int k = 0; k < 4; k++) {
            const sn_plan_options o = {.devices = devices, .n_devices = 1, .slices = slices[k]};
            sn_plan *p;
            expect_ok(sn_plan_build(s->engine, s->graph, &o, &p, &err), &err);
            mutate_plan(p, devices, 150, &n);
        }
        golden_case_close(&c);
    }
    expect_counts(&n, 32, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs_in_slices),
        cmocka_unit_test(test_a_network_in_many_slices),
        cmocka_unit_test(test_networks_in_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
