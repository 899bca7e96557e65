/* plan.h: a plan says, before the first step, which kernel runs when and at which bytes. PURE:
 * graph and device descriptions in, plan out; nothing here allocates tensor memory, runs a kernel,
 * reads a clock or a file.
 *
 *     sn_plan_options o = {.devices = &cpu, .n_devices = 1};
 *     SNUG_TRY(sn_plan_build(engine, graph, &o, &plan, err));   // passes, then the checker
 *     plan->memories[SN_MEM_FIRST_ARENA].bytes                   // of the arena, to the byte
 *
 * A plan is a list of steps; REPEAT ... END blocks (flat, never nested) run their steps k times on
 * slices.
 *
 *     RUN   a node: inputs, outputs, workspace at locations
 *     FEED  bring rows of an input into its location
 *     COPY  bytes of a value from one location to another (other memory, other device, spill)
 *
 * Steps on one queue of one device run in the order of the list; a step on another queue runs when
 * the steps it waits for are done. Bytes used by a step stay live until a step that waits for it
 * (or follows on its queue). REPEAT and END wait for every queue, at each iteration.
 *
 * Text form (plan_text.c has the grammar; a parsed plan is checked before it runs):
 *
 *     snug plan 1
 *     device 0 align 64 name cpu:0
 *     memory 1 device 0 bytes 73728 used 73700 bound 73728 name arena
 *     memory 2 device 0 bytes 8192 used 4196 bound 8192 file name spill
 *     spilled %5
 *     s0 feed 0 -> %0@1+0 on 0.0 name x
 *     s1 run n0 matmul v0 (%0@1+0 %1@state) -> (%2@1+4096) ws 1+8192:512 on 0.0 impl onednn:brg
 *     s2 repeat 4 rows 8 last 2
 *     s3 run n1 ... (%2@1+4096+1024 rows 0:0:8) ...
 *     s9 end
 *
 * In s3: from row 0 along axis 0, 8 rows an iteration, each time 1024 bytes further on.
 *
 * Bytes may wait in files: in a memory that is one, or in the home of a variable that is spilled.
 * Only COPY reaches them, from and to arenas. Places in a memory that is a file begin at multiples
 * of SN_FILE_ALIGN. A spilled variable is copied into an arena, updated there in place, and copied
 * back. */
#ifndef SN_PLAN_PLAN_H
#define SN_PLAN_PLAN_H

#include "graph/graph.h"
#include "memory/spill.h"

/* Memory 0: homes of variables and, in a graph that has them outside, of inputs and outputs; offset
 * and stride count in the home. */
#define SN_MEM_STATE       0
#define SN_MEM_FIRST_ARENA 1 /* memories 1.. are arenas */
#define SN_FILE_ALIGN      4096
/* What a plan with a file has in memory for it: the file's buffers and two copy threads. */
#define SN_FILE_MEMORY_BYTES (SN_SPILL_MEMORY_BYTES + 2 * (SN_STACK_BOOKED + ((size_t)16 << 10)))
#define SN_MAX_DEVICES       4
#define SN_MAX_MEMORIES      8
#define SN_MAX_SLICES        (INT64_C(1) << 20) /* a text of more would keep a run busy for ever */

/* Where (a part of) a value lies while a step runs. Inside a repeat block iteration i works on rows
 * [first + i * rows, ...) of axis `axis` of the value, at offset + i * stride. `rows` is a multiple
 * of the block's slice height; the last iteration has rows * last / (slice height) rows. A slice is
 * a piece of the value: the axes before its axis have extent 1. rows < 0: the whole value. */
typedef struct {
    sn_value value;
    uint32_t memory;
    size_t offset;
    size_t stride;
    int axis;
    int64_t first, rows;
} sn_place;

typedef enum { SN_STEP_RUN, SN_STEP_FEED, SN_STEP_COPY, SN_STEP_REPEAT, SN_STEP_END } sn_step_kind;
typedef enum { SN_QUEUE_COMPUTE, SN_QUEUE_IN, SN_QUEUE_OUT, SN_N_QUEUES } sn_queue;
/* STORE overwrites outputs; ADD adds; ADD_LATER stores in iteration 0 of the block and adds in the
 * others. */
typedef enum { SN_ACC_STORE, SN_ACC_ADD, SN_ACC_ADD_LATER } sn_accumulate;

typedef struct {
    sn_step_kind kind;
    sn_node node;   /* RUN */
    uint32_t input; /* FEED: which input of the graph */
    uint16_t device;
    sn_queue queue;
    sn_accumulate accumulate;
    uint16_t n_in, n_out; /* COPY: 1 and 1; FEED: 0 and 1 */
    const sn_place *in, *out;
    uint32_t ws_memory; /* workspace, lives for this step */
    size_t ws_offset, ws_bytes;
    int variant; /* RUN: the device's variant id */
    char impl[40];
    uint32_t n_waits;
    const uint32_t *waits;      /* indices of earlier steps on other queues or devices */
    int64_t repeat, rows, last; /* REPEAT: iterations, rows of a slice, rows of the last one */
} sn_step;

typedef enum { SN_MEMORY_BYTES, SN_MEMORY_FILE } sn_memory_kind;

typedef struct {
    char name[24];
    uint16_t device;
    sn_memory_kind kind;
    size_t bytes;      /* promised size; SN_MEM_STATE: sum of the variables' bytes, without spilled
                          ones; a file: a multiple of SN_FILE_ALIGN */
    size_t used_bytes; /* max of offset + unpadded bytes over all places: the highest byte ever
                          written + 1 */
    size_t lower_bound_bytes; /* largest sum of live bytes at any step, aligned */
} sn_plan_memory;

/* Bytes of the arena of device 0 live at the peak step. */
typedef struct {
    size_t inputs, activations, gradients, workspace, outputs;
} sn_plan_categories;

typedef struct {
    sn_zone *zone;         /* everything of the plan, category PLAN */
    const sn_graph *graph; /* lent; must outlive the plan */
    uint32_t n_steps;
    sn_step *steps;
    uint32_t n_memories;
    sn_plan_memory memories[SN_MAX_MEMORIES];
    uint32_t n_devices;
    char device_names[SN_MAX_DEVICES][24];
    size_t device_align[SN_MAX_DEVICES];
    const size_t *value_bytes;  /* of each whole value of the graph, unpadded, opaque ones too */
    const uint32_t *root;       /* of each value: whose bytes it is; NULL in a parsed plan */
    const bool *spilled;        /* of each variable: its home lies in the spill file; NULL: none */
    size_t spilled_bytes;       /* of these variables */
    size_t spilled_value_bytes; /* of values that wait in a file; 0 in a parsed plan */
    const sn_place *outputs; /* where each graph output lies at the end (n_outputs of the graph) */
    size_t code_bytes;       /* of all runs; a bound: equal kernels share code */
    double flops;            /* per run */
    double seconds;          /* expected, per run; 0 in a parsed plan, as are the next ones */
    double again_seconds;    /* of them, of runs beyond the first of each node */
    double spill_seconds;    /* of them, of copies of slots beyond the updates */
    double plain_seconds;    /* of the plan without a limit, and the arena it needs at least */
    size_t plain_bytes;
    int64_t slices;        /* the most of any block; 1: there is none */
    uint32_t n_recomputed; /* runs beyond the first of each node */
    uint32_t peak_step;    /* where the arena's lower bound binds */
    sn_plan_categories at_peak;
} sn_plan;

/* A member of the family of plans (family.h); slices 0: none. */
typedef struct {
    int64_t slices;
    size_t limit; /* SIZE_MAX: none */
    bool lowest;  /* what the recomputation needs at least is looked for */
    bool fused;   /* of the graph with fused updates */
    uint32_t cut;
    double least_seconds; /* larger members take so many: this one counts as no faster */
} sn_member;

/* The smallest plan there is. */
typedef struct {
    size_t bytes; /* of its arena and steps */
    double seconds;
    size_t spilled_bytes; /* of variables that are not in memory there; less the file's own bytes */
    bool in_file;         /* some are */
    sn_member how;
} sn_plan_floor;

typedef struct {
    const sn_device *const *devices; /* the first has the homes of variables */
    int n_devices;
    const uint16_t *placed; /* per node: which device runs it, with copies between them; NULL: the
                               first runs everything. With it the batch runs whole, each node once,
                               without a limit: what says otherwise below is refused */
    size_t arena_bytes;     /* the most the arena may have; 0: no limit. SNUG_E_BUDGET where no plan
                            fits */
    size_t step_bytes;      /* of a step of the plan: counted with the arena; 0: not counted */
    uint32_t effort;        /* times the usual work; 0: once */
    int64_t slices;         /* run the batch in this many pieces; 0: as few as the limit asks for */
    size_t part_bytes;   /* with slices: only of what stands at values of so many bytes; 0: of all
                            that can be sliced */
    bool may_spill;      /* slots may lie in a file: arena_bytes is what the arena may have with all
                            variables in memory; a plan with spilled_bytes has so many more */
    size_t spill_bytes;  /* the most that may; 0: no limit */
    size_t short_bytes;  /* that the variables alone have too many, where arena_bytes is 1 */
    const bool *spilled; /* per variable: spill exactly these; NULL: the planner's choice */
    bool if_they_can; /* of these, only those that the graph leaves alone but for their update; else
                            one that it does not is SNUG_E_INVALID */
    bool file_is_there; /* for them: what it takes of memory is counted already */
    bool whole;         /* nothing runs in slices */
    /* The same step with more of its gradients inside their updates (sn_fuse_options): the same
     * inputs, outputs, variables and bits. The plan may be of either graph, sn_plan.graph says of
     * which; of this one nothing goes to a file, and `slices` are not asked of it. NULL: none. */
    const sn_graph *fused;
    const sn_plan_floor *at; /* the plan of a floor that was found before, and no limit; NULL: of
                                the limit */
    sn_plan_floor *floor;    /* filled where no plan fits; may be NULL */
    bool always_floor;       /* and where one does but the unlimited: all members are made; with
                                bytes 0 where plans with files were not looked at */
} sn_plan_options;

/* What so many steps count. Those of a plan in slices have views of two heights, and some stand
 * between blocks. Measured: 22 % at most. */
static inline size_t sn_plan_steps_bytes(size_t n_steps, bool in_slices, size_t step_bytes) {
    return n_steps * (step_bytes + (in_slices ? step_bytes / 5 : 0));
}

static inline bool sn_plan_spills(const sn_plan *p, sn_var v) {
    return p->spilled && p->spilled[v.i];
}

#define SN_SPILL_LEAST_BYTES ((size_t)64 << 10) /* smaller slots gain nothing */
/* What variables in the file give: the file takes of memory itself. */
static inline size_t sn_plan_spill_gain(size_t spilled_bytes, bool file_is_there) {
    const size_t file = file_is_there ? 0 : SN_FILE_MEMORY_BYTES;
    return spilled_bytes > file ? spilled_bytes - file : 0;
}

SNUG_CHECKED snug_status sn_plan_build(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                                       sn_plan **out, snug_error *err);
/* The trade of bytes for seconds: plans that no other beats in both, the fastest first. */
typedef struct {
    size_t bytes; /* of the arena and of the steps */
    double seconds;
    int64_t slices;
    uint32_t n_steps;
    size_t spilled_bytes; /* in files: 0 on the planner's own curve */
} sn_plan_point;
SNUG_CHECKED snug_status sn_plan_curve(snug_engine *e, const sn_graph *g, const sn_plan_options *o,
                                       sn_plan_point *out, uint32_t max, uint32_t *n,
                                       snug_error *err);
/* Drops points that others beat in both; not the first, and *n is not 0. */
void sn_plan_thin(sn_plan_point *points, uint32_t *n);
void sn_plan_destroy(sn_plan *p);

/* Of a graph that has its inputs and outputs outside: per output the input whose bytes it may be
 * where the caller needs them no more, each input at most once; UINT32_MAX: none. */
void sn_plan_donors(const sn_plan *p, uint32_t *donor);

/* What a plan has written when a step may still refuse its values can be taken back: `end` steps,
 * among them copies of the first versions of those variables out of their homes, whose bytes stay
 * that long. Behind them no step refuses values that it has not seen. */
typedef struct {
    uint32_t end;       /* 0: nothing is written before */
    uint32_t n, *steps; /* the copies, in the zone */
} sn_undone;
SNUG_CHECKED snug_status sn_plan_undone(const sn_plan *p, sn_zone *z, sn_undone *out,
                                        snug_error *err);

/* The independent checker (plan_check.c, shares no code with the planner): replays bytes,
 * dependencies, waits and versions; recomputes used bytes and compares them with what the plan
 * promises. */
SNUG_CHECKED snug_status sn_plan_check(const sn_plan *p, const sn_device *const *devices,
                                       int n_devices, snug_error *err);
/* What that took: neither grows with the number of iterations of a block. */
typedef struct {
    uint64_t steps, spans; /* replayed; of the maps of bytes, looked at */
} sn_plan_work;
SNUG_CHECKED snug_status sn_plan_check_work(const sn_plan *p, const sn_device *const *devices,
                                            int n_devices, sn_plan_work *work, snug_error *err);

SNUG_CHECKED snug_status sn_plan_print(const sn_plan *p, const sn_writer *w, snug_error *err);
/* Parses and checks. */
SNUG_CHECKED snug_status sn_plan_parse(snug_engine *e, const sn_graph *g, const char *text,
                                       const sn_device *const *devices, int n_devices,
                                       sn_plan **out, snug_error *err);

/* Bytes live per category and per owner at the peak step, for reports. Sizes are those of the
 * packing (aligned). */
void sn_plan_peak_categories(const sn_plan *p, sn_plan_categories *out);
/* The same at every step (n_steps rows). */
SNUG_CHECKED snug_status sn_plan_timeline(const sn_plan *p, snug_engine *e,
                                          sn_plan_categories *rows, snug_error *err);
/* For each owner (layer) of the graph: bytes live at the peak, and the most of its own at any
 * step. */
typedef struct {
    size_t at_peak_bytes, own_peak_bytes, weight_bytes;
    double flops;
} sn_plan_owner_row;
SNUG_CHECKED snug_status sn_plan_owner_rows(const sn_plan *p, snug_engine *e,
                                            sn_plan_owner_row *rows,
                                            snug_error *err); /* n_owners rows */

/* --- packing, on its own -------------------------------------------------------------------- */
/* Half-open lifetimes [lower, upper) in steps. */
typedef struct {
    uint32_t lower, upper;
    size_t size;   /* aligned */
    size_t offset; /* out */
} sn_pack_item;
/* Writes offsets; *height is what it reached, *bound the largest sum of live sizes.
 * Deterministic. */
SNUG_CHECKED snug_status sn_pack(snug_engine *e, sn_pack_item *items, uint32_t n, size_t *height,
                                 size_t *bound, snug_error *err);
/* The same with a height that is low enough (0: only the bound is) and a limit of its own on the
 * work; about 300 million elementary operations take a second (0: as sn_pack). */
typedef struct {
    size_t capacity;
    uint64_t work;
} sn_pack_limits;
SNUG_CHECKED snug_status sn_pack_to(snug_engine *e, sn_pack_item *items, uint32_t n,
                                    const sn_pack_limits *limits, size_t *height, size_t *bound,
                                    snug_error *err);

#endif
