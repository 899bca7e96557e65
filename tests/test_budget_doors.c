/* test_budget_doors.c: one way for a plan to meet its room. The step of a model is planned by the
 * command's door (train/step_budget.c, step_budget_gpu.c) and by that of recorded code
 * (record/record_cache.c, record_card.c) in equal room: what the budget leaves beside what each of
 * them has booked. The plans' texts are equal, and so is what a refusal says. Inputs and outputs of
 * the graph lie outside, as recordings have them, and on a card nothing waits on the host, which
 * recorded code never lets values do; nothing else is excused. */
#include "support/gpu_card.h"
#include "support/text.h"

#include "record/card.h"
#include "train/step_budget.h"

#include <stdio.h>
#include <stdlib.h>

enum { PER_OCTAVE = 2, TRIES = 8 };
#define STEP ((size_t)256 << 10)
#define MIB  ((size_t)1 << 20)
/* What the planner works in. */
#define PLANNING (4 * MIB)

typedef struct doors doors;

/* What a door made of a room: the text of its plan, or the smallest plan's bytes. */
typedef struct {
    char *text; /* NULL: refused */
    size_t room, least, books;
    char said[512];
} answer;

typedef struct {
    answer (*ask)(doors *d, size_t budget);
    size_t taken; /* of a budget, beside the room: as it was last */
} door;

struct doors {
    snug_engine *engine;
    snug_model *model;
    sn_model_step step;
    snug_recorder *recorder;
    sn_recording recording;
    door command, recorded;
    const sn_side *side;
    snug_status (*limit)(snug_engine *e, size_t budget, snug_error *err); /* of recorded code */
    size_t host; /* a budget that has no room for what could wait there; 0: none */
};

static snug_model *load(snug_engine *e, const char *name) {
    char path[512];
    snug_error err;
    snug_model *m;
    snprintf(path, sizeof path, "%s/%s", SNUG_TEST_DATA, name);
    expect_ok(snug_model_load(e, path, &m, &err), &err);
    return m;
}

static snug_model *make_wide(snug_engine *e) {
    const snug_type type = {.dtype = SNUG_F32, .rank = 1, .dims = {512}};
    const snug_compile compile = {.optimizer = "adam", .loss = "mse"};
    snug_error err;
    snug_model *m;
    expect_ok(snug_model_create(e, "wide", &type, &m, &err), &err);
    expect_ok(snug_model_add(m, "Dense", "units=2048 activation=relu", &err), &err);
    expect_ok(snug_model_add(m, "Dense", "units=1024 activation=relu", &err), &err);
    expect_ok(snug_model_add(m, "Dense", "units=10", &err), &err);
    expect_ok(snug_model_compile(m, &compile, &err), &err);
    return m;
}

/* Takes the model. */
static void open_doors(doors *d, snug_engine *e, snug_model *m, int64_t batch) {
    const snug_plan_request request = {.batch = batch, .train = 1};
    snug_error err;
    *d = (doors){.engine = e, .model = m};
    m->foreseen = (sn_foreseen){.is_known = true, .n_train = 1}; /* both plan this step alone */
    expect_ok(sn_model_step_open(m, &request, &d->step, &err), &err);
    sn_graph *const g = d->step.graph;
    sn_graph_set_outside(g);
    expect_ok(snug_recorder_create(e, &d->recorder, &err), &err);
    d->recording = (sn_recording){.r = d->recorder,
                                  .graph = g,
                                  .site = calloc(sn_graph_n_nodes(g), sizeof(uint64_t)),
                                  .n_nodes = sn_graph_n_nodes(g)};
}

static void close_doors(doors *d) {
    free(d->recording.site);
    snug_recorder_destroy(d->recorder);
    sn_model_step_close(&d->step);
    snug_model_destroy(d->model);
}

static char *text_of(const sn_plan *plan) {
    sn_text text = sn_text_begin();
    const snug_writer w = sn_text_writer(&text);
    snug_error err;
    expect_ok(sn_plan_print(plan, &w, &err), &err);
    return text.text;
}

static answer ask_model(doors *d, size_t budget) {
    sn_budget_floor floor = {.budget = 0};
    answer a = {.text = NULL};
    snug_error err;
    sn_share share;
    expect_ok(snug_budget(d->engine, d->host, &err), &err);
    const snug_status st = sn_model_plan_within(d->model, &d->step, budget, &share, &floor, &err);
    expect_ok(snug_budget(d->engine, 0, &err), &err);
    a.room = share.arena;
    a.books = share.books;
    if (st == SNUG_OK) {
        a.text = text_of(d->step.plan);
        sn_plan_destroy(d->step.plan);
        d->step.plan = NULL;
    } else {
        expect_status(st, SNUG_E_BUDGET, &err);
        a.least = floor.least.bytes;
    }
    sn_graph_destroy(d->step.fused);
    d->step.fused = NULL;
    return a;
}

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

static answer ask_recorder(doors *d, size_t budget) {
    answer a = {.text = NULL};
    sn_entry *entry;
    snug_error err;
    expect_ok(d->limit(d->engine, budget, &err), &err);
    const snug_status st = sn_cache_find(d->recorder, &d->recording, d->side, 0, &entry, &err);
    a.room = d->recorder->share.arena;
    a.books = d->recorder->share.books;
    if (d->recorder->card)
        a.room -= least_of(a.room, d->recorder->card->reserve_bytes);
    if (st == SNUG_OK)
        a.text = text_of(entry->plan);
    else {
        expect_status(st, SNUG_E_BUDGET, &err);
        snprintf(a.said, sizeof a.said, "%s", err.text);
    }
    sn_cache_clear(d->recorder);
    expect_ok(d->limit(d->engine, 0, &err), &err);
    return a;
}

/* The budget that leaves so much room is found by trying: the process and its page tables are in
 * it. Equal but for a part of a step. */
static answer ask_in(doors *d, door *of, size_t room) {
    for (int i = 0; i < TRIES; i++) {
        const size_t budget = of->taken + room;
        const answer a = of->ask(d, budget);
        of->taken = a.room > 0 ? budget - a.room : 2 * of->taken;
        if (a.room / STEP == room / STEP)
            return a;
        free(a.text);
    }
    fail_msg("no budget leaves %zu bytes", room);
    return (answer){.room = 0};
}

/* Whether the room suffices. */
static bool expect_equal(doors *d, size_t room, const char *name) {
    const answer a = ask_in(d, &d->command, room), b = ask_in(d, &d->recorded, room);
    char needs[64], bytes[24];
    const bool fits = a.text != NULL;
    if (!a.text != !b.text)
        fail_msg("%s: %s in %zu bytes, %s", name, a.text ? "planned" : "refused", room, b.said);
    if (a.text && strcmp(a.text, b.text) != 0) {
        size_t at = 0;
        while (a.text[at] == b.text[at])
            at++;
        fail_msg("%s: other plans in %zu bytes (%zu and %zu), first at\n%.200s\nand\n%.200s", name,
                 room, a.room, b.room, a.text + at, b.text + at);
    }
    snprintf(needs, sizeof needs, "needs %s", snug_bytes_print(a.least, bytes, sizeof bytes));
    if (!a.text)
        expect_text(b.said, needs);
    free(a.text);
    free(b.text);
    return fits;
}

static size_t free_bytes(doors *d) {
    sn_plan_options o = {.devices = &d->model->target, .n_devices = 1};
    sn_plan *plan;
    snug_error err;
    expect_ok(sn_plan_build(d->engine, d->step.graph, &o, &plan, &err), &err);
    const size_t bytes = plan->memories[SN_MEM_FIRST_ARENA].bytes;
    sn_plan_destroy(plan);
    return bytes;
}

/* From a little more than the step takes without a limit, down to the least, or until it is
 * refused; whether it was. Takes the doors. */
static bool expect_one_way(doors *d, size_t least, const char *name) {
    const size_t most = (free_bytes(d) + MIB) / STEP * STEP + STEP / 2;
    size_t room = most;
    bool fits = true;
    int n_fit = 0;
    for (int i = 1; room > least && (fits = expect_equal(d, room, name)); i++) {
        const double part = exp2(-(double)i / PER_OCTAVE);
        room = (size_t)(part * (double)most) / STEP * STEP + STEP / 2;
        n_fit++;
    }
    assert_true(n_fit > 1);
    close_doors(d);
    return !fits;
}

/* Of the process. The planner works in the room, too. */
static void expect_one_way_here(snug_engine *e, snug_model *m, int64_t batch, const char *name) {
    doors d;
    open_doors(&d, e, m, batch);
    d.command = (door){ask_model, 64 * MIB};
    d.recorded = (door){ask_recorder, 64 * MIB};
    d.side = &sn_host_side;
    d.limit = snug_budget;
    (void)expect_one_way(&d, PLANNING, name);
}

/* On a card both have the same margin, recorded code beside that a chunk for small results. */
static void expect_same_books(doors *d, size_t room) {
    const answer a = ask_in(d, &d->command, room), b = ask_in(d, &d->recorded, room);
    assert_true(a.books > 0);
    assert_int_equal(a.books + sn_gpu_pool_slack(d->recorder->card->gpu), b.books);
    free(a.text);
    free(b.text);
}

/* Of a card's memory; whether it came to a refusal. */
static bool expect_one_way_there(snug_engine *e, snug_model *m, int64_t batch, const char *name) {
    doors d;
    bool may;
    size_t bytes;
    snug_error err;
    open_doors(&d, e, m, batch);
    d.command = (door){ask_model, 300 * MIB};
    d.recorded = (door){ask_recorder, 300 * MIB};
    d.side = d.recorder->side;
    d.limit = snug_device_budget;
    expect_ok(snug_budget(e, 1024 * MIB, &err), &err);
    expect_ok(m->kind->spill_room(m, d.step.graph, &may, &bytes, &err), &err);
    expect_ok(snug_budget(e, 0, &err), &err);
    assert_true(may);
    d.host = 1024 * MIB - bytes;
    expect_same_books(&d, 64 * MIB);
    return expect_one_way(&d, STEP, name);
}

static void test_equal_rooms_give_equal_plans(void **state) {
    static const struct {
        const char *name;
        int64_t batch;
    } models[] = {
        {"../examples/models/shapes_cnn.json", 1024},
        {"golden/model_lstm_f32/model.json", 8192},
        {"golden/model_transformer_f32/model.json", 4096},
        {"golden/model_unet_f32/model.json", 4096},
        {"golden/model_resnet20_f32/model.json", 4096},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        expect_one_way_here(*state, load(*state, models[i].name), models[i].batch, models[i].name);
}

static void test_equal_rooms_on_a_card_give_equal_plans(void **state) {
    static const struct {
        const char *name;
        int64_t batch;
    } models[] = {
        {"../examples/models/shapes_cnn.json", 1024},
        {"golden/model_lstm_f32/model.json", 8192},
        {"golden/model_resnet20_f32/model.json", 4096},
    };
    snug_error err;
    int n_refused = 0;
    expect_ok(open_gpu(*state, 0, &err), &err);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        n_refused += expect_one_way_there(*state, load(*state, models[i].name), models[i].batch,
                                          models[i].name);
    n_refused += expect_one_way_there(*state, make_wide(*state), 4096, "wide");
    assert_true(n_refused > 1);
}

static void test_so_do_steps_with_updates_that_can_be_fused(void **state) {
    expect_one_way_here(*state, make_wide(*state), 512, "wide");
    expect_one_way_here(*state, make_wide(*state), 4096, "wide, a large batch");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_equal_rooms_give_equal_plans),
        engine_test(test_so_do_steps_with_updates_that_can_be_fused),
        gpu_test(test_equal_rooms_on_a_card_give_equal_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
