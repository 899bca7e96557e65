/* test_plan_check.c: the checker accepts good plans written by hand (support/plan_world.h) and
 * refuses each of a list of corruptions of them. Plans are texts; a corruption replaces pieces of
 * one. */
#include "support/plan_world.h"

#include <stdlib.h>
#include <string.h>

static void expect_accepted(const plan_world *w, const char *text) {
    snug_error err;
    sn_plan *p;
    expect_ok(plan_world_parse(w, text, &p, &err), &err);
    sn_plan_destroy(p);
}

static void test_a_plain_plan_is_accepted(void **state) {
    expect_accepted(*state, plan_plain);
}
static void test_a_plan_with_a_repeat_block_is_accepted(void **state) {
    expect_accepted(*state, plan_sliced);
}
static void test_slices_without_a_block_are_accepted(void **state) {
    expect_accepted(*state, plan_two_slices);
}
static void test_a_plan_with_queues_and_a_spill_is_accepted(void **state) {
    expect_accepted(*state, plan_queues);
}
static void test_two_devices_and_a_second_run_are_accepted(void **state) {
    expect_accepted(*state, plan_devices2);
}

/* --- corruptions by name -------------------------------------------------------------------- */
typedef struct {
    const char *rule;
    const char *plan;
    const char *from[3], *to[3]; /* every place where `from` stands is replaced */
} corruption;

static const corruption corruptions[] = {
    /* bytes */
    {"an input is overwritten before its last reader", plan_plain, {"%1@1+256"}, {"%1@1+0"}},
    {"a value is read where it does not lie",
     plan_plain,
     {"(%5@1+384 %4@1+128) ->"},
     {"(%5@1+384 %4@1+192) ->"}},
    {"a value is read before it is made",
     plan_plain,
     {"s4 run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+384)",
      "s5 run n3 relu_grad v0 (%5@1+384 %4@1+128) -> (%6@1+384)"},
     {"s4 run n3 relu_grad v0 (%5@1+384 %4@1+128) -> (%6@1+384)",
      "s5 run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+384)"}},
    {"an input is read before it is fed",
     plan_plain,
     {"s0 feed 0 -> %0@1+0 on 0.0 name x"},
     {"s0 feed 1 -> %1@1+0 on 0.0 name t"}},
    {"in place where the row does not allow it",
     plan_plain,
     {"-> (%7@1+256) ws", "(%7@1+256) -> (%8@1+256)", "%8@1+256) -> (%9"},
     {"-> (%7@1+384) ws", "(%7@1+384) -> (%8@1+384)", "%8@1+384) -> (%9"}},
    {"in place over the second input of a FIRST row",
     plan_plain,
     {"-> (%6@1+384) on", "%6@1+384) -> (%7"},
     {"-> (%6@1+128) on", "%6@1+128) -> (%7"}},
    {"in place while the input has a later reader",
     plan_plain,
     {"-> (%5@1+384)", "(%5@1+384 "},
     {"-> (%5@1+128)", "(%5@1+128 "}},
    {"an output partly over an input",
     plan_plain,
     {"-> (%5@1+384)", "(%5@1+384 "},
     {"-> (%5@1+320)", "(%5@1+320 "}},
    {"a workspace over an input",
     plan_plain,
     {"(%3@1+128) ws 1+512:64"},
     {"(%3@1+128) ws 1+64:64"}},
    {"a workspace over an output",
     plan_plain,
     {"(%3@1+128) ws 1+512:64"},
     {"(%3@1+128) ws 1+192:64"}},
    {"a workspace over a live value",
     plan_plain,
     {"(%7@1+256) ws 1+512:64"},
     {"(%7@1+256) ws 1+128:64"}},
    {"a workspace that is too small",
     plan_plain,
     {"ws 1+512:64 on 0.0 impl fake\ns2"},
     {"ws 1+512:32 on 0.0 impl fake\ns2"}},
    {"no workspace where one is needed",
     plan_plain,
     {" ws 1+512:64 on 0.0 impl fake\ns2"},
     {" on 0.0 impl fake\ns2"}},
    {"a place that is not aligned", plan_plain, {"%1@1+256"}, {"%1@1+260"}},
    {"a memory smaller than its places",
     plan_plain,
     {"bytes 576 used 576"},
     {"bytes 512 used 576"}},
    {"another number of used bytes", plan_plain, {"bytes 576 used 576"}, {"bytes 576 used 512"}},
    {"another size of the state", plan_plain, {"bytes 48 used 48"}, {"bytes 64 used 48"}},
    {"a place outside every memory", plan_plain, {"%1@1+256"}, {"%1@2+256"}},
    {"an offset near the end of the address space",
     plan_plain,
     {"%1@1+256"},
     {"%1@1+18446744073709551552"}},
    {"an output that is not there at the end",
     plan_plain,
     {"output 0 %4@1+128"},
     {"output 0 %4@1+384"}},
    {"another value as the output", plan_plain, {"output 0 %4@1+128"}, {"output 0 %6@1+384"}},
    /* nodes */
    {"an operand that is not the node's",
     plan_plain,
     {"(%4@1+128 %1@1+256) ->"},
     {"(%1@1+256 %4@1+128) ->"}},
    {"an operand left out", plan_plain, {"(%4@1+128 %1@1+256) ->"}, {"(%4@1+128) ->"}},
    {"a variant the device does not have", plan_plain, {"relu v0"}, {"relu v1"}},
    {"an implementation the device does not have",
     plan_plain,
     {"-> (%4@1+128) on 0.0 impl fake"},
     {"-> (%4@1+128) on 0.0 impl other"}},
    {"a device of another name", plan_plain, {"name fake:0"}, {"name cuda:0"}},
    {"another alignment", plan_plain, {"align 64"}, {"align 32"}},
    /* versions and effects */
    {"a variable is updated outside its home", plan_plain, {"-> (%9@state)"}, {"-> (%9@1+448)"}},
    {"a step without the update",
     plan_plain,
     {"s8 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n"},
     {""}},
    {"a variable is updated twice",
     plan_plain,
     {"output 0"},
     {"s9 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\noutput 0"}},
    {"an old version is read after its update",
     plan_plain,
     {"output 0"},
     {"s9 run n0 matmul v0 (%0@1+0 %2@state) -> (%3@1+384) ws 1+512:64 on 0.0 impl fake\noutput "
      "0"}},
    {"a node that may fail is left out",
     plan_plain,
     {"s7 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\ns8"},
     {"s7"}},
    {"a variable is written before a node that may fail",
     plan_plain,
     {"s7 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\n",
      "s8 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n"},
     {"s7 run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n",
      "s8 run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\n"}},
    {"a copy overwrites a variable",
     plan_plain,
     {"output 0"},
     {"s9 copy %2@1+0 -> %2@state on 0.0\noutput 0"}},
    {"a value that is no version lies in the state",
     plan_plain,
     {"(%4@1+128 %1@1+256) ->"},
     {"(%4@1+128 %1@state) ->"}},
    {"a plain run adds",
     plan_plain,
     {"(%7@1+256) ws 1+512:64 on 0.0 impl"},
     {"(%7@1+256) ws 1+512:64 on 0.0 acc add impl"}},
    {"a plain run adds later",
     plan_plain,
     {"(%7@1+256) ws 1+512:64 on 0.0 impl"},
     {"(%7@1+256) ws 1+512:64 on 0.0 acc add_later impl"}},
    {"a row that cannot add adds",
     plan_plain,
     {"-> (%4@1+128) on 0.0 impl"},
     {"-> (%4@1+128) on 0.0 acc add impl"}},
    /* slices */
    {"a sum is stored in every iteration", plan_sliced, {" acc add_later"}, {""}},
    {"a sum is added to from the first iteration on", plan_sliced, {"acc add_later"}, {"acc add"}},
    {"slices that do not reach the end", plan_sliced, {"last 2"}, {"last 1"}},
    {"slices that reach behind the end", plan_sliced, {"last 2"}, {"last 3"}},
    {"an iteration too few", plan_sliced, {"repeat 3"}, {"repeat 2"}},
    {"an iteration too many", plan_sliced, {"repeat 3"}, {"repeat 4"}},
    {"pieces of a whole value at the wrong stride", plan_sliced, {"%4@1+128+36"}, {"%4@1+128+40"}},
    {"a slice of other rows than the node's other operands",
     plan_sliced,
     {"%1@1+256 rows 0:0:3) ->"},
     {"%1@1+256 rows 3:0:3) ->"}},
    {"a feed of other rows", plan_sliced, {"%1@1+256 rows 0:0:3 on"}, {"%1@1+256 rows 1:0:3 on"}},
    {"a slice along another axis",
     plan_sliced,
     {"(%3@1+64 rows 0:0:3) ->"},
     {"(%3@1+64 rows 0:1:3) ->"}},
    {"a whole operand beside sliced ones", plan_sliced, {"(%0@1+0 rows 0:0:3 %6"}, {"(%0@1+0 %6"}},
    {"a slot of a slice that is still read", plan_sliced, {"%1@1+256"}, {"%1@1+0"}},
    {"the update inside the block",
     plan_sliced,
     {"s8 end\n", "s9 run",
      "s10 run n6 sgd v0 (%2@state %8@1+384) -> (%9@state) on 0.0 impl fake\n"},
     {"", "s8 run",
      "s9 run n6 sgd v0 (%2@state %8@1+384) -> (%9@state) on 0.0 impl fake\ns10 end\n"}},
    {"a block without end", plan_sliced, {"s8 end\ns9", "s10 run"}, {"s8", "s9 run"}},
    {"an end without block", plan_plain, {"output 0"}, {"s9 end\noutput 0"}},
    {"a block inside a block", plan_sliced, {"s8 end\n"}, {"s8 repeat 1 rows 1 last 1\n"}},
    {"a block of far too many iterations",
     plan_sliced,
     {"repeat 3 rows 3"},
     {"repeat 9000000000 rows 3"}},
    {"a second slice that stores", plan_two_slices, {" acc add"}, {""}},
    {"slices of a sum that leave out rows", plan_two_slices, {"rows 0:0:5"}, {"rows 0:0:4"}},
    {"slices of a sum with rows twice",
     plan_two_slices,
     {"(%0@1+80 rows 5:0:3 %6@1+444 rows 5:0:3)"},
     {"(%0@1+64 rows 4:0:4 %6@1+432 rows 4:0:4)"}},
    {"a slice at another row's bytes", plan_two_slices, {"%0@1+80"}, {"%0@1+64"}},
    {"a sum read before its last slice",
     plan_two_slices,
     {"s7 run n4 matmul v0 (%0@1+80 rows 5:0:3 %6@1+444 rows 5:0:3) -> (%7@1+256) ws 1+512:64 on "
      "0.0 acc add impl fake\ns8",
      "s9"},
     {"s7", "s8"}},
    /* waits */
    {"no wait for a feed on another queue",
     plan_queues,
     {" on 0.0 wait s0 impl"},
     {" on 0.0 impl"}},
    {"no wait for the second feed", plan_queues, {"wait s1 s3 impl"}, {"wait s3 impl"}},
    {"overwrites before a copy on another queue has read",
     plan_queues,
     {"wait s1 s3 impl"},
     {"wait s1 impl"}},
    {"a copy does not wait for the writer",
     plan_queues,
     {"%0@2+0 on 0.2 wait s0"},
     {"%0@2+0 on 0.2"}},
    {"a copy back does not wait for the copy out", plan_queues, {"on 0.1 wait s5 s3"}, {"on 0.1"}},
    {"a copy back overwrites before a reader is done",
     plan_queues,
     {"on 0.1 wait s5 s3"},
     {"on 0.1 wait s3"}},
    {"a run does not wait for the copy back",
     plan_queues,
     {" on 0.0 wait s7 impl"},
     {" on 0.0 impl"}},
    {"a wait for a later step", plan_queues, {"on 0.0 wait s7 impl"}, {"on 0.0 wait s9 impl"}},
    {"a queue that is not there",
     plan_queues,
     {"%0@2+0 on 0.2 wait s0"},
     {"%0@2+0 on 1.2 wait s0"}},
    {"a copy of one value into another",
     plan_queues,
     {"s3 copy %0@1+0 -> %0@2+0"},
     {"s3 copy %0@1+0 -> %1@2+0"}},
    {"a copy onto itself", plan_queues, {"s3 copy %0@1+0 -> %0@2+0"}, {"s3 copy %0@1+0 -> %0@1+0"}},
    /* devices */
    {"a run reaches into another device",
     plan_devices2,
     {"(%3@2+0) -> (%4@2+0)"},
     {"(%3@1+384) -> (%4@2+0)"}},
    {"no wait between devices", plan_devices2, {" on 1.0 wait s3 impl"}, {" on 1.0 impl"}},
    {"no wait for what comes back", plan_devices2, {" on 0.0 wait s5 impl"}, {" on 0.0 impl"}},
    {"overwrites what another device still reads",
     plan_devices2,
     {"on 0.0 wait s5 impl"},
     {"on 0.0 wait s2 impl"}},
    {"a plan for more devices than there are",
     plan_plain,
     {"memory 0"},
     {"device 1 align 64 name fake:1\nmemory 0"}},
};

/* Rules that other rules would often catch later: with the message. */
static const struct {
    corruption what;
    const char *says;
} named[] = {
    {{"a whole value that moves", plan_plain, {"%1@1+256"}, {"%1@1+256+64"}},
     "moves a whole value"},
    {{"a slice of other rows than the block's",
      plan_sliced,
      {"%1@1+256 rows 0:0:3 on"},
      {"%1@1+256 rows 0:0:2 on"}},
     "slices by other rows"},
    {{"an update that reads a copy", plan_plain, {"(%2@state %8"}, {"(%2@1+448 %8"}},
     "updates a copy"},
    {{"a copy into the state",
      plan_plain,
      {"output 0"},
      {"s9 copy %2@state -> %2@state on 0.0\noutput 0"}},
     "writes a variable"},
    {{"a copy by a device that has neither end",
      plan_devices2,
      {"-> %3@2+0 on 0.2"},
      {"-> %3@1+448 on 1.2"}},
     "another device"},
    {{"a feed of another input",
      plan_plain,
      {"s3 feed 1 -> %1@1+256 on 0.0 name t"},
      {"s3 feed 0 -> %1@1+256 on 0.0 name x"}},
     "feeds something else"},
    {{"a copy of other rows",
      plan_queues,
      {"s3 copy %0@1+0 -> %0@2+0"},
      {"s3 copy %0@1+0 -> %0@2+0 rows 0:0:8"}},
     "copies into something else"},
    {{"a copy partly onto itself",
      plan_queues,
      {"s3 copy %0@1+0 -> %0@2+0"},
      {"s3 copy %0@1+0 -> %0@1+64"}},
     "copies onto itself"},
    {{"a wait for itself", plan_queues, {"on 0.0 wait s7 impl"}, {"on 0.0 wait s8 impl"}},
     "waits for a later step"},
    {{"a device that is not there",
      plan_queues,
      {"%0@2+0 on 0.2 wait s0"},
      {"%0@2+0 on 3.2 wait s0"}},
     "is on no queue"},
    {{"an end inside a block", plan_sliced, {"s8 end\ns9", "s10 run"}, {"s8", "s9 run"}},
     "inside a block"},
    {{"a peak behind the end", plan_plain, {"peak s0"}, {"peak s9"}}, "before the peak"},
};

/* The caller frees it. */
static char *replace_all(const char *text, const char *from, const char *to) {
    const size_t n = strlen(text), n_from = strlen(from), n_to = strlen(to);
    char *out = malloc((n + 1) * (n_to + 1)), *at = out;
    while (*text) {
        if (strncmp(text, from, n_from) != 0) {
            *at++ = *text++;
            continue;
        }
        memcpy(at, to, n_to);
        at += n_to;
        text += n_from;
    }
    *at = '\0';
    return out;
}

static void expect_caught(const plan_world *w, const corruption *c, const char *says) {
    snug_error err = {0};
    sn_plan *p = NULL;
    char *text = strdup(c->plan);
    for (int i = 0; i < 3 && c->from[i]; i++) {
        char *next = replace_all(text, c->from[i], c->to[i]);
        if (strcmp(next, text) == 0)
            fail_msg("%s: '%s' is not in the plan", c->rule, c->from[i]);
        free(text);
        text = next;
    }
    const int n_devices = strstr(c->plan, "device 1 align") ? 2 : 1;
    const snug_status st =
        sn_plan_parse(w->engine, w->graph, text, w->devices, n_devices, &p, &err);
    if (st == SNUG_OK)
        fail_msg("not caught: %s", c->rule);
    if (st != SNUG_E_INVALID)
        fail_msg("%s: refused by the reader, not by the checker: %s", c->rule, err.text);
    if (!strstr(err.text, says))
        fail_msg("%s: refused with '%s'", c->rule, err.text);
    free(text);
}

static void test_every_named_corruption_is_caught(void **state) {
    for (size_t i = 0; i < sizeof corruptions / sizeof corruptions[0]; i++)
        expect_caught(*state, &corruptions[i], "");
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        expect_caught(*state, &named[i].what, named[i].says);
}

/* What no text can say, but a plan in memory can. */
static void test_steps_with_fields_out_of_range_are_refused(void **state) {
    const plan_world *w = *state;
    snug_error err;
    sn_plan *p;
    expect_ok(plan_world_parse(w, plan_queues, &p, &err), &err);
    for (int field = 0; field < 8; field++) {
        sn_step *run = &p->steps[4], *copy = &p->steps[3];
        const sn_step saved[2] = {*run, *copy};
        switch (field) {
        case 0:
            run->node.i = 7;
            break;
        case 1:
            run->n_in = 2;
            break;
        case 2:
            run->kind = (sn_step_kind)9;
            break;
        case 3:
            run->queue = (sn_queue)3;
            break;
        case 4:
            run->device = 9;
            break;
        case 5:
            copy->n_in = 0;
            break;
        case 6:
            copy->n_out = 2;
            break;
        default:
            run->accumulate = (sn_accumulate)9;
            break;
        }
        expect_status(sn_plan_check(p, w->devices, 1, &err), SNUG_E_INVALID, &err);
        *run = saved[0];
        *copy = saved[1];
    }
    expect_ok(sn_plan_check(p, w->devices, 1, &err), &err);
    sn_plan_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_plan_is_accepted),
        cmocka_unit_test(test_a_plan_with_a_repeat_block_is_accepted),
        cmocka_unit_test(test_slices_without_a_block_are_accepted),
        cmocka_unit_test(test_a_plan_with_queues_and_a_spill_is_accepted),
        cmocka_unit_test(test_two_devices_and_a_second_run_are_accepted),
        cmocka_unit_test(test_every_named_corruption_is_caught),
        cmocka_unit_test(test_steps_with_fields_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, plan_world_open, plan_world_close);
}
