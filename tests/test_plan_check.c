/* test_plan_check.c: the checker accepts good plans written by hand (support/plan_world.h) and
 * refuses each of a list of corruptions of them. Plans are texts; a corruption replaces pieces of
 * one. */
#include "graph/build.h"
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
static void test_blocks_of_many_rows_are_accepted(void **state) {
    expect_accepted(*state, plan_rows);
}
static void test_a_plan_with_queues_and_a_spill_is_accepted(void **state) {
    expect_accepted(*state, plan_queues);
}
static void test_two_devices_and_a_second_run_are_accepted(void **state) {
    expect_accepted(*state, plan_devices2);
}

/* --- blocks that go another way from iteration 2 on ------------------------------------------- */
/* Rows of t that nobody reads lie at 732, 756, 780, ...: in iterations 2 to 6 in the 128 bytes at
 * 768. The steps behind the block are those of plan_plain. */
#define REST(a, b, c, d, e, f, g, h, i)                                                            \
    "s" a " feed 0 -> %0@1+0 on 0.0 name x\n"                                                      \
    "s" b " run n0 matmul v0 (%0@1+0 %2@state) -> (%3@1+128) ws 1+512:64 on 0.0 impl fake\n"       \
    "s" c " run n1 relu v0 (%3@1+128) -> (%4@1+128) on 0.0 impl fake\n"                            \
    "s" d " feed 1 -> %1@1+256 on 0.0 name t\n"                                                    \
    "s" e " run n2 sub v0 (%4@1+128 %1@1+256) -> (%5@1+384) on 0.0 impl fake\n"                    \
    "s" f " run n3 relu_grad v0 (%5@1+384 %4@1+128) -> (%6@1+384) on 0.0 impl fake\n"              \
    "s" g " run n4 matmul v0 (%0@1+0 %6@1+384) -> (%7@1+256) ws 1+512:64 on 0.0 impl fake\n"       \
    "s" h " run n5 check_finite v0 (%7@1+256) -> (%8@1+256) on 0.0 impl fake\n"                    \
    "s" i " run n6 sgd v0 (%2@state %8@1+256) -> (%9@state) on 0.0 impl fake\n"                    \
    "output 0 %4@1+128\nend plan\n"
#define STRAY(used, block)                                                                         \
    "snug plan 1\ndevice 0 align 64 name fake:0\n"                                                 \
    "memory 0 device 0 bytes 48 used 48 bound 48 name state\n"                                     \
    "memory 1 device 0 bytes 1088 used " used " bound 0 name arena\n"                              \
    "total flops 0 code 0 peak s0\n" block

/* They come on another queue, into what a step before them has as workspace, or reads. */
static const char plan_stray_writer[] =
    STRAY("972", "s0 repeat 8 rows 1 last 1\n"
                 "s1 feed 0 -> %0@1+640 rows 0:0:1 on 0.0 name x\n"
                 "s2 run n0 matmul v0 (%0@1+640 rows 0:0:1 %2@state) -> (%3@1+960 rows 0:0:1) ws "
                 "1+768:128 on 0.0 impl fake\n"
                 "s3 feed 1 -> %1@1+732+24 rows 0:0:1 on 0.1 wait s2 name t\n"
                 "s4 run n1 relu v0 (%3@1+960 rows 0:0:1) -> (%4@1+960 rows 0:0:1) ws 1+704:208 on "
                 "0.0 wait s3 impl fake\n"
                 "s5 end\n") REST("6", "7", "8", "9", "10", "11", "12", "13", "14");
static const char plan_stray_reader[] =
    STRAY("1056", "s0 repeat 8 rows 1 last 1\n"
                  "s1 feed 0 -> %0@1+768 on 0.1 name x\n"
                  "s2 run n0 matmul v0 (%0@1+768 %2@state) -> (%3@1+960) ws 1+640:64 on 0.0 wait "
                  "s1 impl fake\n"
                  "s3 feed 1 -> %1@1+732+24 rows 0:0:1 on 0.1 wait s2 name t\n"
                  "s4 run n1 relu v0 (%3@1+960) -> (%4@1+960) ws 1+704:208 on 0.0 wait s3 impl "
                  "fake\n"
                  "s5 end\n") REST("6", "7", "8", "9", "10", "11", "12", "13", "14");
/* At 740, 756, 772, ... they fall on rows of x that have been read; of the others one is read
 * behind the block. */
static const char plan_stray_trail[] =
    STRAY("972", "s0 feed 0 -> %0@1+768 on 0.0 name x\n"
                 "s1 repeat 8 rows 1 last 1\n"
                 "s2 feed 1 -> %1@1+740+16 rows 0:0:1 on 0.0 name t\n"
                 "s3 run n0 matmul v0 (%0@1+768+16 rows 0:0:1 %2@state) -> (%3@1+960 rows 0:0:1) "
                 "ws 1+704:64 on 0.0 impl fake\n"
                 "s4 end\n"
                 "s5 copy %0@1+880 rows 7:0:1 -> %0@1+640 rows 7:0:1 on 0.0\n")
        REST("6", "7", "8", "9", "10", "11", "12", "13", "14");

/* x at 768, but for rows 0, 1 and 6: these lie where the block reads them, 20 bytes apart. Row 2 is
 * there, too; 3 to 5 are not. */
static const char plan_stray_rows[] =
    STRAY("896", "s0 feed 0 -> %0@1+768 on 0.0 name x\n"
                 "s1 feed 0 -> %0@1+760 rows 0:0:1 on 0.0 name x\n"
                 "s2 feed 0 -> %0@1+780 rows 1:0:1 on 0.0 name x\n"
                 "s3 feed 0 -> %0@1+880 rows 6:0:1 on 0.0 name x\n"
                 "s4 repeat 7 rows 1 last 1\n"
                 "s5 copy %0@1+760+20 rows 0:0:1 -> %0@1+640 rows 0:0:1 on 0.0\n"
                 "s6 end\n") REST("7", "8", "9", "10", "11", "12", "13", "14", "15");

static void test_blocks_that_change_their_way_are_accepted(void **state) {
    expect_accepted(*state, plan_stray_writer);
    expect_accepted(*state, plan_stray_reader);
    expect_accepted(*state, plan_stray_trail);
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
    /* found in the middle of a block only */
    {{"a slot on a row that a later iteration reads", plan_rows, {"%3@1+576"}, {"%3@1+80"}},
     "iteration 5, value %3: overwrites an operand"},
    {{"a slot on the way of rows that are collected", plan_rows, {"%3@1+576"}, {"%3@1+188"}},
     "plan step s7, iteration 5, value %4: reads bytes that hold something else"},
    {{"rows that come on another queue reach a slot", plan_rows, {"%3@1+576"}, {"%3@1+304"}},
     "plan step s4, iteration 4, value %1: does not wait"},
    {{"a sum on the way of rows that are collected",
      plan_rows,
      {"%7@1+640", "%8@1+640", "used 688"},
      {"%7@1+448", "%8@1+448", "used 588"}},
     "plan step s9, iteration 5, value %7: overwrites an operand"},
    {{"rows written over others that are read at a larger stride",
      plan_rows,
      {"%5@1+384", "%6@1+384"},
      {"%5@1+60", "%6@1+60"}},
     "iteration 3, value %0: reads bytes that hold something else"},
    {{"a workspace on the way of rows",
      plan_rows,
      {"(%7@1+640) ws 1+512:64"},
      {"(%7@1+640) ws 1+448:64"}},
     "plan step s9, iteration 5, value %0: overwrites an operand"},
    {{"a stride too large, into a workspace",
      plan_rows,
      {"%5@1+384+12", "%6@1+384+12"},
      {"%5@1+384+20", "%6@1+384+20"}},
     "plan step s9, iteration 6, value %0: overwrites an operand"},
    {{"no wait for a writer in iterations 2 to 6",
      plan_stray_writer,
      {"on 0.1 wait s2 name t"},
      {"on 0.1 name t"}},
     "plan step s3, iteration 2, value %1: does not wait"},
    {{"no wait for a reader in iterations 2 to 6",
      plan_stray_reader,
      {"on 0.1 wait s2 name t"},
      {"on 0.1 name t"}},
     "plan step s3, iteration 2, value %1: does not wait"},
    {{"a row that a middle iteration destroyed",
      plan_stray_trail,
      {"%0@1+880 rows 7:0:1 -> %0@1+640 rows 7:0:1"},
      {"%0@1+784 rows 1:0:1 -> %0@1+640 rows 1:0:1"}},
     "plan step s5, iteration 0, value %0: reads bytes that hold something else"},
    {{"rows that only the first and the last iterations find",
      plan_stray_rows,
      {"bytes 1088"},
      {"bytes 1152"}},
     "plan step s5, iteration 3, value %0: reads bytes that hold something else"},
    {{"a stride off by one row",
      plan_rows,
      {"(%4@1+128+12 rows 0:0:1 %1"},
      {"(%4@1+128+24 rows 0:0:1 %1"}},
     "iteration 1, value %4: reads bytes that hold something else"},
    {{"a reader that is one row ahead",
      plan_rows,
      {"(%3@1+576 rows 0:0:1) -> (%4@1+128+12 rows 0:0:1)"},
      {"(%3@1+576 rows 1:0:1) -> (%4@1+140+12 rows 1:0:1)"}},
     "iteration 0, value %3: reads bytes that hold something else"},
    {{"a last iteration that is not there", plan_rows, {"s6 repeat 8"}, {"s6 repeat 7"}},
     "value %7: reads bytes that hold something else"},
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

/* --- opaque outputs --------------------------------------------------------------------------- */
/* x, 8 pictures of 2 x 2, to y and codes of a byte each on the fake device. The codes have room,
 * and nobody reads them: only their size is wrong. */
#define POOL(opaque, steps)                                                                        \
    "snug plan 1\ndevice 0 align 64 name fake:0\n"                                                 \
    "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"                                        \
    "memory 1 device 0 bytes 256 used 224 bound 0 name arena\n"                                    \
    "opaque %2 bytes " opaque "\n"                                                                 \
    "total flops 0 code 0 peak s0\n" steps "output 0 %1@1+192\nend plan\n"
#define POOL_WHOLE                                                                                 \
    "s0 feed 0 -> %0@1+0 on 0.0 name x\n"                                                          \
    "s1 run n0 maxpool v0 (%0@1+0) -> (%1@1+192 %2@1+128) on 0.0 impl fake\n"
#define POOL_SLICES(repeat, rows, last, stride)                                                    \
    "s0 repeat " repeat " rows " rows " last " last "\n"                                           \
    "s1 feed 0 -> %0@1+0 rows 0:0:" rows " on 0.0 name x\n"                                        \
    "s2 run n0 maxpool v0 (%0@1+0 rows 0:0:" rows ") -> (%1@1+192+" stride " rows 0:0:" rows       \
    " %2@1+128 rows 0:0:" rows ") on 0.0 impl fake\n"                                              \
    "s3 end\n"

static void test_an_opaque_output_has_the_size_its_kernel_says(void **state) {
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {POOL("8", POOL_WHOLE), true},
        {POOL("9", POOL_WHOLE), false},
        {POOL("7", POOL_WHOLE), false},
        {POOL("8", POOL_SLICES("8", "1", "1", "4")), true},
        {POOL("16", POOL_SLICES("8", "1", "1", "4")), false},
        {POOL("8", POOL_SLICES("3", "3", "2", "12")), true},
        {POOL("16", POOL_SLICES("3", "3", "2", "12")), false},
        {POOL("0", POOL_SLICES("3", "3", "2", "12")), false},
    };
    const plan_world *w = *state;
    const snug_type type = {.dtype = SNUG_F32, .rank = 4, .dims = {8, 2, 2, 1}};
    snug_error err;
    sn_graph *g;
    sn_value x, out[SN_MAX_OUT];
    sn_attrs a;
    expect_ok(sn_graph_create(w->engine, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &type, &x, &err), &err);
    sn_builder b = sn_builder_on(g);
    sn_attrs_default(SN_OP_maxpool, &a);
    a.pool.kernel[0] = a.pool.kernel[1] = a.pool.stride[0] = a.pool.stride[1] = 2;
    sn_build_all(&b, SN_OP_maxpool, &a, &x, 1, out);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "y", out[0], &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sn_plan *p = NULL;
        const snug_status st = sn_plan_parse(w->engine, g, rows[i].text, w->devices, 1, &p, &err);
        expect_status(st, rows[i].good ? SNUG_OK : SNUG_E_INVALID, &err);
        if (!rows[i].good)
            expect_text(err.text, "has an opaque output of another size");
        sn_plan_destroy(p);
    }
    sn_graph_destroy(g);
}

/* --- writes that can be taken back ------------------------------------------------------------ */
/* %1, version 0 of a variable of 16 bytes, is overwritten by x; then what it is now may be
 * refused. */
#define LATE_CHECK(used, steps)                                                                    \
    "snug plan 1\ndevice 0 align 64 name fake:0\n"                                                 \
    "memory 0 device 0 bytes 16 used 16 bound 16 name state\n"                                     \
    "memory 1 device 0 bytes 192 used " used " bound 0 name arena\n"                               \
    "total flops 0 code 0 peak s0\n" steps "output 0 %3@1+128\nend plan\n"
#define LATE_FEED     "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
#define LATE_COPY     "s1 copy %1@state -> %1@1+64 on 0.0\n"
#define LATE_WRITE(s) "s" s " run n0 assign v0 (%1@state %0@1+0) -> (%2@state) on 0.0 impl fake\n"
#define LATE_REFUSE(s, at)                                                                         \
    "s" s " run n1 check_finite v0 (%2@state) -> (%3@1+" at ") on 0.0 impl fake\n"
#define LATE_ADD(s, at) "s" s " run n2 square v0 (%0@1+0) -> (%4@1+" at ") on 0.0 impl fake\n"

static void test_what_is_written_before_a_refusal_is_kept(void **state) {
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {LATE_CHECK("144",
                    LATE_FEED LATE_COPY LATE_WRITE("2") LATE_REFUSE("3", "128") LATE_ADD("4", "0")),
         true},
        {LATE_CHECK("144", LATE_FEED LATE_COPY LATE_WRITE("2") LATE_REFUSE("3", "128")
                               LATE_ADD("4", "64")),
         false},
        {LATE_CHECK("144", LATE_FEED LATE_WRITE("1") LATE_REFUSE("2", "128") LATE_ADD("3", "64")),
         false},
        {LATE_CHECK("144", LATE_FEED LATE_COPY LATE_WRITE("2") LATE_ADD("3", "64")
                               LATE_REFUSE("4", "128")),
         false},
    };
    const plan_world *w = *state;
    const snug_type type = {.dtype = SNUG_F32, .rank = 1, .dims = {4}};
    const sn_variable var = {.name = "v", .type = type};
    sn_graph *g;
    sn_value x, v;
    snug_error err;
    expect_ok(sn_graph_create(w->engine, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &type, &x, &err), &err);
    expect_ok(sn_graph_variable(g, &var, &v, &err), &err);
    sn_builder b = sn_builder_on(g);
    const sn_value next = sn_build(&b, SN_OP_assign, NULL, (sn_value[]){v, x}, 2);
    const sn_value checked = sn_build(&b, SN_OP_check_finite, NULL, &next, 1);
    (void)sn_build_square(&b, x);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "c", checked, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sn_plan *p = NULL;
        const snug_status st = sn_plan_parse(w->engine, g, rows[i].text, w->devices, 1, &p, &err);
        expect_status(st, rows[i].good ? SNUG_OK : SNUG_E_INVALID, &err);
        if (!rows[i].good)
            expect_text(err.text, "may refuse its values, and not kept");
        sn_plan_destroy(p);
    }
    sn_graph_destroy(g);
}

/* --- sums over slices ------------------------------------------------------------------------- */
/* The second half of the rows is added to what the first gave; which f16 would round twice. */
static void test_halves_are_not_added_up_over_slices(void **state) {
    static const char text[] =
        "snug plan 1\ndevice 0 align 64 name fake:0\n"
        "memory 0 device 0 bytes 0 used 0 bound 0 name state\n"
        "memory 1 device 0 bytes 256 used 256 bound 0 name arena\n"
        "total flops 0 code 0 peak s1\n"
        "s0 feed 0 -> %0@1+0 on 0.0 name x\n"
        "s1 feed 1 -> %1@1+64 on 0.0 name y\n"
        "s2 run n0 matmul v0 (%0@1+0 rows 0:0:2 %1@1+64 rows 0:0:2) -> (%2@1+128) ws 1+192:64 on "
        "0.0 "
        "impl fake\n"
        "s3 run n0 matmul v0 (%0@1+16 rows 2:0:2 %1@1+80 rows 2:0:2) -> (%2@1+128) ws 1+192:64 on "
        "0.0 acc add impl fake\n"
        "output 0 %2@1+128\nend plan\n";
    const plan_world *w = *state;
    const snug_type type = {.dtype = SNUG_F16, .rank = 2, .dims = {4, 4}};
    sn_plan *p = NULL;
    sn_value in[2];
    sn_attrs a;
    sn_graph *g;
    snug_error err;
    expect_ok(sn_graph_create(w->engine, &g, &err), &err);
    expect_ok(sn_graph_input(g, "x", &type, &in[0], &err), &err);
    expect_ok(sn_graph_input(g, "y", &type, &in[1], &err), &err);
    sn_attrs_default(SN_OP_matmul, &a);
    a.matmul.trans_a = 1;
    sn_builder b = sn_builder_on(g);
    const sn_value sum = sn_build(&b, SN_OP_matmul, &a, in, 2);
    expect_ok(sn_builder_done(&b, &err), &err);
    expect_ok(sn_graph_output(g, "sum", sum, &err), &err);
    expect_status(sn_plan_parse(w->engine, g, text, w->devices, 1, &p, &err), SNUG_E_INVALID, &err);
    expect_text(err.text, "is not sliced in a way its operator can be");
    sn_plan_destroy(p);
    sn_graph_destroy(g);
}

/* --- what checking takes ---------------------------------------------------------------------- */
/* The most bytes that checking it has on an engine of its own. */
static size_t checking_bytes(const sn_plan *p, const sn_device *const *devices,
                             sn_plan_work *work) {
    snug_engine *e = sn_test_engine(0);
    const size_t before = snug_engine_bytes(e);
    sn_plan copy = *p;
    snug_error err;
    expect_ok(sn_zone_create(e, SN_MEM_PLAN, &copy.zone, &err), &err);
    expect_ok(sn_plan_check_work(&copy, devices, 1, work, &err), &err);
    const size_t most = snug_engine_peak_bytes(e) - before;
    sn_zone_destroy(copy.zone);
    sn_test_engine_end(e);
    return most;
}

static void test_checking_takes_the_same_for_any_number_of_slices(void **state) {
    static const int64_t slices[] = {4, 8, 64, 1000, 4096};
    enum { N = sizeof slices / sizeof slices[0] };
    const plan_world *w = *state;
    sn_graph *g = plan_world_network(w->engine, 4096);
    sn_plan_work work[N];
    size_t bytes[N];
    for (int i = 0; i < N; i++) {
        const sn_plan_options o = {.devices = w->devices, .n_devices = 1, .slices = slices[i]};
        snug_error err;
        sn_plan *p;
        expect_ok(sn_plan_build(w->engine, g, &o, &p, &err), &err);
        assert_true(p->slices > slices[i] / 2); /* of whole rows, the last one shorter */
        bytes[i] = checking_bytes(p, w->devices, &work[i]);
        sn_plan_destroy(p);
    }
    for (int i = 1; i < N; i++) { /* offsets differ a little, and so do spans */
        assert_int_equal(work[i].steps, work[0].steps);
        assert_in_range(work[i].spans, 1, work[0].spans * 3 / 2);
        assert_in_range(bytes[i], 1, bytes[0] * 3 / 2);
    }
    sn_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_plan_is_accepted),
        cmocka_unit_test(test_a_plan_with_a_repeat_block_is_accepted),
        cmocka_unit_test(test_slices_without_a_block_are_accepted),
        cmocka_unit_test(test_blocks_of_many_rows_are_accepted),
        cmocka_unit_test(test_blocks_that_change_their_way_are_accepted),
        cmocka_unit_test(test_a_plan_with_queues_and_a_spill_is_accepted),
        cmocka_unit_test(test_two_devices_and_a_second_run_are_accepted),
        cmocka_unit_test(test_every_named_corruption_is_caught),
        cmocka_unit_test(test_steps_with_fields_out_of_range_are_refused),
        cmocka_unit_test(test_an_opaque_output_has_the_size_its_kernel_says),
        cmocka_unit_test(test_checking_takes_the_same_for_any_number_of_slices),
        cmocka_unit_test(test_what_is_written_before_a_refusal_is_kept),
        cmocka_unit_test(test_halves_are_not_added_up_over_slices),
    };
    return cmocka_run_group_tests(tests, plan_world_open, plan_world_close);
}
