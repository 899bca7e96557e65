/* plan_check.h: what the files of the checker (plan_check.c) share; nobody else includes it. */
#ifndef SN_PLAN_PLAN_CHECK_H
#define SN_PLAN_PLAN_CHECK_H

#include "memory/spans.h"
#include "plan/plan.h"

enum {
    SN_CHECK_LANES = SN_MAX_DEVICES * SN_N_QUEUES,
    SN_CHECK_OPERANDS = SN_MAX_IN + SN_MAX_OUT + 1, /* inputs, outputs, then the workspace */
    SN_CHECK_TOKENS = SN_MAX_MEMORIES /* a memory of ours: a byte per MAYFAIL node, written by it */
};
#define SN_CHECK_ALL_ROWS INT64_MAX
#define SN_CHECK_NOWHERE  INT64_MAX
/* Of memories and values: sums of them stay exact. */
#define SN_CHECK_MOST_BYTES (INT64_C(1) << 60)

/* What a span of bytes holds: bytes of a root, of whose sum `done` rows are added (0: nothing, and
 * all of it is 0). Position in the root = position in memory + shift. Then who wrote and read
 * it. */
typedef struct {
    sn_ends root, done, shift;
    uint32_t lane, time, read[SN_CHECK_LANES]; /* writer's lane and time; last reader per lane */
    uint64_t needed; /* is read in the block: only while bytes are forgotten */
} sn_check_record;

/* Where an operand lies in the run of iterations; origin: where in its root it starts. */
typedef struct {
    uint32_t memory, root;
    sn_ends start, origin;
    int64_t bytes;
    size_t align;
    bool file;
} sn_check_area;

typedef struct {
    const sn_plan *p;
    const sn_graph *g;
    const sn_device *const *devices;
    snug_error *err;
    sn_spans map[SN_MAX_MEMORIES + 1]; /* the last one: tokens */
    int64_t size[SN_MAX_MEMORIES + 1], used[SN_MAX_MEMORIES + 1];
    int64_t *home;                     /* per variable: where it starts in memory 0 */
    int64_t *outside;                  /* per root that the caller has: where it starts there */
    uint32_t *root;                    /* per value: whose bytes it is, through ALIAS rows */
    uint32_t *token;                   /* per node: how many MAYFAIL nodes stand before it */
    uint32_t (*known)[SN_CHECK_LANES]; /* per step: what is done when it is */
    uint32_t know[SN_CHECK_LANES][SN_CHECK_LANES], now[SN_CHECK_LANES];
    const sn_step *block;       /* the REPEAT we are in, or NULL */
    sn_ends run;                /* the iterations of it that are replayed: first and last */
    bool singly, guessed;       /* blocks of few iterations: not at once; some were at once */
    uint64_t n_replayed;        /* steps: the work */
    uint32_t step, lane, value; /* under check; the value is for messages */
    sn_check_area at[SN_CHECK_OPERANDS];
    sn_slice slice[SN_CHECK_OPERANDS]; /* in the first iteration of the run */
    bool *passed;         /* per node: a MAYFAIL row has seen all its values, and will not refuse */
    bool *wrote;          /* per variable: a step has overwritten its first version */
    sn_check_area *saved; /* per variable: where that was copied to before; bytes 0: nowhere */
    uint32_t *written, n_written; /* those variables, as they came */
    uint32_t n_kept;              /* of them the first: rows that may refuse came behind */
    sn_cut cut, *first_cut;       /* of the step; per step: in the first iteration of its block */
    sn_ends cut_first;            /* its first row, in the run */
} sn_checker;

snug_status sn_check_bad(const sn_checker *c, const char *what);
#define REQUIRE(ok, what) SNUG_TRY((ok) ? SNUG_OK : sn_check_bad(c, (what)))

static inline const sn_op_row *sn_check_row(const sn_checker *c, uint32_t node) {
    return &sn_ops[sn_graph_node_at(c->g, (sn_node){node})->op];
}

/* plan_check_start.c: devices, memories and the nesting of blocks; then what is there before the
 * first step: sizes, roots of aliases, homes, inputs and outputs outside, empty arenas and
 * tokens. */
SNUG_CHECKED snug_status sn_check_head(sn_checker *c, uint32_t n_devices);
SNUG_CHECKED snug_status sn_check_set_up(sn_checker *c, sn_zone *z);

/* plan_check_bytes.c: where the operand lies in the run and what must be there: c->at[k],
 * c->slice[k]. */
SNUG_CHECKED snug_status sn_check_resolve(sn_checker *c, const sn_place *p, int k);
/* That it lies in its memory, aligned. */
SNUG_CHECKED snug_status sn_check_inside(sn_checker *c, const sn_check_area *a);
/* A step of the lane reads an area that must hold `done` rows of its root, or writes so many. */
SNUG_CHECKED snug_status sn_check_touch(sn_checker *c, const sn_check_area *a, bool writes,
                                        sn_ends done);
/* Where everything before is done: who wrote and read is forgotten. */
void sn_check_join(sn_checker *c);
/* Behind an iteration of a block that is not the last one: c->run is what is replayed next. */
SNUG_CHECKED snug_status sn_check_next_run(sn_checker *c);

#endif
