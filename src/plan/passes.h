/* passes.h: what the passes of the planner hand to each other. Each file is one pass.
 *
 *     sn_planner   facts that no order changes: sizes, variants, readers, what shares bytes
 *     sn_split     how the step divides along its batch: labels of values, phases of nodes
 *     sn_slices    one number of slices: their rows, the variants and sizes of a slice
 *     sn_program   a list of actions: what runs when, in which block, and again where it is
 *                  recomputed. Every means of saving memory is a way of writing this list
 *     sn_layout    what follows from any program: copies of values, buffers, lifetimes, bound */
#ifndef SN_PLAN_PASSES_H
#define SN_PLAN_PASSES_H

#include "plan/plan.h"
#include "plan/remat.h"

#define SN_NO_BUFFER   UINT32_MAX
#define SN_MAX_MEMBERS 512

/* What the searches of one plan tell each other: in memory, with slots in a file, with values. */
typedef struct {
    uint32_t n_members; /* that no other beats in bytes and seconds, with the seconds they take: the
                           first search finds them, that with slots makes no others; 0: not found */
    sn_member members[SN_MAX_MEMBERS];
    double beat; /* seconds of the best plan so far; INFINITY: none */
} sn_searches;

typedef struct sn_planner sn_planner;
struct sn_planner {
    snug_engine *engine;
    const sn_graph *graph;
    const sn_device *device; /* the first of the list */
    const sn_device *const *devices;
    const uint16_t *placed; /* per node: which one runs it; NULL: the first */
    sn_zone *work;          /* dies with the planner */
    sn_plan *plan;          /* being made */
    sn_planner *fused;      /* of the same step with fused updates; NULL: there is none */
    bool taken;             /* the plan is a member that was chosen */
    uint32_t n_nodes, n_values;
    sn_variant *variant;    /* per node */
    double *seconds;        /* per node: of one run */
    bool *needed;           /* per node: an output or an effect needs it */
    size_t *bytes;          /* per value, unpadded; in the plan's zone */
    size_t *padded;         /* per value, aligned */
    uint32_t *root;         /* per value: the value whose bytes it is, through ALIAS rows */
    bool *is_output;        /* per root: some graph output is these bytes */
    bool *outside;          /* per root: bytes of the caller's, bound before each run */
    uint32_t *reader_start; /* needed nodes that read value v, each once: readers[reader_start[v] ..
                               [v + 1]) */
    uint32_t *readers;
    uint32_t *updater;  /* per value: the STATE node that overwrites this version, or UINT32_MAX */
    bool *kept;         /* per value: an old version that is copied away before its update */
    bool *saved;        /* per value: the copy stays until nothing can refuse its values any more,
                           so that the update can be taken back (take_back.c) */
    bool saves;         /* there is one */
    bool *leads;        /* per node: what may refuse its values comes behind it, or is it */
    size_t spill_limit; /* the most bytes outside; 0: none */
    bool *spilled;      /* per variable: its home lies in the spill file; NULL: none */
    size_t stage_target, stage_bytes,
        ring_bytes; /* of spilled slots on their way (spill_slots.c) */
    uint32_t n_stages;
    size_t n_piece_steps; /* steps beyond one for each update */
    size_t *file_at;      /* per value: its place in the file of values, or SIZE_MAX */
    size_t file_bytes;    /* of that file; 0: there is none */
    uint32_t n_out;       /* values that have a place there */
    bool spills_values;
    size_t arena_limit;    /* what the arena may have; 0: no limit */
    sn_searches *searches; /* NULL: there is but one */
};

/* Needed nodes, each after those it reads, and writers of a version after its readers. */
typedef struct {
    uint32_t n;
    uint32_t *node;
} sn_order;

/* Where a value carries the batch: rows [r * inner, (r + 1) * inner) of its axis are row r of the
 * batch; the axes before it have extent 1. axis -1: nowhere. */
typedef struct {
    int axis;
    int64_t inner;
} sn_label;

/* The sliced nodes run in blocks 0, 1, ...: a block ends where a sum over the batch is read again.
 * Other nodes run between them. */
typedef struct {
    int64_t extent;       /* rows of the batch; 0: nothing can be sliced */
    sn_label *label;      /* per value */
    bool *sliced;         /* per node */
    uint64_t *whole_rows; /* per sliced node: bit k: reads rows of input k, which has no label: a
                             variable, or made outside of blocks */
    uint32_t *time;       /* per node: 2 b + 1 in block b; 2 b between the blocks b - 1 and b */
    uint32_t n_blocks;
} sn_split;

/* The batch in `repeat` pieces of `rows` rows, the last of `last`. */
typedef struct {
    int64_t repeat, rows, last;
    sn_variant *variant; /* per sliced node: of a slice, with the larger workspace of both heights
                            and the flops of all slices */
    size_t *bytes;       /* per value: of a slice, unpadded; of values without a label: whole */
    double *seconds;     /* per node: of all its slices; of others: of one run */
} sn_slices;

/* RUN node id, FEED input id, COPY value id (an old version into the arena; or a value to the spill
 * file, and back), REPEAT block, END block. */
typedef struct {
    sn_step_kind kind;
    uint32_t id;
    uint32_t hold; /* COPY to the file: so many actions later the bytes are free */
    bool back;     /* COPY from the file */
} sn_action;

typedef struct {
    sn_action *actions;
    uint32_t n;
    const sn_split *split;   /* NULL: no blocks */
    const sn_slices *slices; /* of every block */
    bool possible;           /* false: it would read what an update has overwritten */
} sn_program;

/* One making of a value, until its last reader or until it is made again. */
typedef struct {
    uint32_t value;  /* a root */
    uint32_t last;   /* the last action that needs it; n_actions: it lives to the end */
    uint32_t block;  /* the REPEAT action of its making, or UINT32_MAX */
    uint32_t buffer; /* index into items */
    bool local;      /* holds one slice at a time; else the whole value */
} sn_copy;

typedef struct {
    const sn_program *program;
    uint32_t *operand;  /* per action: index of its first operand below; inputs, then outputs */
    uint32_t *copy;     /* per operand: index into copies, or SN_NO_BUFFER: in its home */
    uint32_t *output;   /* per output of the graph: the same */
    uint32_t *block_of; /* per action: its REPEAT, or UINT32_MAX */
    uint32_t *end_of;   /* per REPEAT action: its END */
    uint32_t n_copies;
    sn_copy *copies;
    uint32_t *workspace; /* per action: index into items, or SN_NO_BUFFER */
    uint32_t ring;       /* the same of the stages of spilled slots */
    uint32_t n_items;
    sn_pack_item *items; /* buffers and workspaces with their lifetimes in actions */
    size_t *live;        /* per action: sum of live bytes */
    size_t bound;        /* the largest of them */
    uint32_t peak;       /* the action where it is reached first */
} sn_layout;

/* How the next node is chosen among those that could run. */
typedef enum {
    SN_ORDER_PROGRAM,  /* as written */
    SN_ORDER_EAGER,    /* as written, but updates as soon as they can run */
    SN_ORDER_GREEDY,   /* updates first, then what frees most and takes least */
    SN_ORDER_BACKWARD, /* from the end: what makes most and reads least first */
    SN_N_ORDERS
} sn_order_kind;

SNUG_CHECKED snug_status sn_plan_describe(sn_planner *p, snug_error *err);
SNUG_CHECKED snug_status sn_plan_readers(sn_planner *p, snug_error *err);
/* `leads` and `saved`; behind the readers, before the first order. */
SNUG_CHECKED snug_status sn_plan_undo(sn_planner *p, snug_error *err);
/* `bytes` of each value (padded) is what nodes are ranked by. */
SNUG_CHECKED snug_status sn_plan_order(sn_planner *p, sn_zone *z, sn_order_kind kind,
                                       const size_t *bytes, sn_order *out, snug_error *err);
/* Labels and phases; `order` is any that fits. */
SNUG_CHECKED snug_status sn_plan_split(sn_planner *p, const sn_order *order, sn_split *out,
                                       snug_error *err);
/* The same with only those nodes in slices that read or make rows of a value of so many bytes. */
SNUG_CHECKED snug_status sn_split_part(sn_planner *p, const sn_order *order, const sn_split *all,
                                       size_t bytes, sn_split *out, snug_error *err);
/* Of operand k (inputs, then outputs) of a sliced node; rows of what lies whole, too. */
sn_label sn_split_label(const sn_planner *p, const sn_split *s, uint32_t node, int k);
SNUG_CHECKED snug_status sn_plan_slices(sn_planner *p, sn_zone *z, const sn_split *split,
                                        int64_t repeat, sn_slices *out, snug_error *err);
/* Everything once, in this order. */
SNUG_CHECKED snug_status sn_program_plain(sn_planner *p, sn_zone *z, const sn_order *order,
                                          sn_program *out, snug_error *err);
/* What the blocks of a sliced program run: nodes [start[b], start[b + 1]) in block b, for the first
 * time or again; bytes of the values that lie whole there to save that; seconds of all blocks. */
typedef struct {
    uint32_t *start, *node;
    double *held;
    double seconds;
} sn_block_runs;
typedef struct {
    const sn_slices *slices;
    const double *room; /* per block: bytes for such values; what must lie whole does not count */
    int searches;       /* walks to improve the first answer */
} sn_hold_limits;
typedef struct sn_holder sn_holder; /* lives as long as the planner */
SNUG_CHECKED snug_status sn_holder_create(sn_planner *p, const sn_split *split, sn_holder **out,
                                          snug_error *err);
void sn_holder_reset(sn_holder *h); /* it forgets what searches have found */
SNUG_CHECKED snug_status sn_hold_values(sn_holder *h, sn_zone *z, const sn_hold_limits *limits,
                                        sn_block_runs *out, snug_error *err);
/* In slices (out->split and out->slices are set). REPEAT and END have the block as id. */
SNUG_CHECKED snug_status sn_program_sliced(sn_planner *p, sn_zone *z, const sn_order *order,
                                           const sn_block_runs *runs, sn_program *out,
                                           snug_error *err);
SNUG_CHECKED snug_status sn_plan_layout(sn_planner *p, sn_zone *z, const sn_program *program,
                                        sn_layout *out, snug_error *err);
/* Actions [first, end): the inside of a block, or what stands between two, or the ends. */
typedef struct {
    uint32_t first, end;
} sn_stretch;
/* How to run a stretch of a layout's program within limits->budget bytes, those of the layout that
 * live all through it included; one stretch after the other. */
typedef struct sn_recomputer sn_recomputer;
SNUG_CHECKED snug_status sn_recomputer_create(sn_planner *p, sn_zone *z, const sn_layout *l,
                                              sn_recomputer **out, snug_error *err);
SNUG_CHECKED snug_status sn_recompute(sn_recomputer *r, sn_zone *z, const sn_stretch *what,
                                      const sn_remat_limits *limits, sn_remat_result *out,
                                      snug_error *err);
/* The program with these actions of its own in place of each stretch, the first ones first. */
typedef struct {
    sn_stretch what;
    uint32_t *actions, n_actions;
} sn_replacement;
SNUG_CHECKED snug_status sn_program_replace(sn_zone *z, const sn_program *from,
                                            const sn_replacement *parts, uint32_t n,
                                            sn_program *out, snug_error *err);
/* Seconds of one run of the program. */
double sn_program_seconds(const sn_planner *p, const sn_program *program);
/* The fastest program within the options' limits, packed and written into p->plan, or into that of
 * p->fused. */
SNUG_CHECKED snug_status sn_plan_choose(sn_planner *p, const sn_plan_options *o, snug_error *err);
SNUG_CHECKED snug_status sn_plan_front(sn_planner *p, const sn_plan_options *o, sn_plan_point *out,
                                       uint32_t max, uint32_t *n, snug_error *err);
/* The plan of nodes that are placed on devices: p->plan is written, and checked by who called. */
SNUG_CHECKED snug_status sn_plan_place(sn_planner *p, const sn_plan_options *o, snug_error *err);
SNUG_CHECKED snug_status sn_plan_emit(sn_planner *p, const sn_layout *l, snug_error *err);
/* Slots that go to the spill file: those wanted (one per variable; SNUG_E_INVALID where one cannot
 * be), or NULL: all that can. Sets what passes ask of them; before the first layout. */
SNUG_CHECKED snug_status sn_spill_slots(sn_planner *p, const sn_plan_options *o, snug_error *err);
size_t sn_spill_bytes_of(const sn_planner *p);          /* of the slots in the file */
bool sn_spill_uses(const sn_planner *p, uint32_t node); /* slots in the file */
double sn_spill_seconds(const sn_planner *p);           /* that copies take beyond the updates */
/* Slots stay in memory after all, as far as there is room for them. */
void sn_spill_keep(sn_planner *p, size_t room);
/* Cuts the updates of the emitted plan into slices that go through the ring. */
SNUG_CHECKED snug_status sn_spill_emit(sn_planner *p, const sn_layout *l, snug_error *err);
/* Takes values of a program without blocks to the file until it needs no more than `limit` bytes,
 * or nothing more can go; *l is its layout, in z. May be called again with lower limits: that gives
 * what the lower limit gives at once. */
SNUG_CHECKED snug_status sn_spill_begin(sn_planner *p, sn_zone *z, sn_program *program,
                                        snug_error *err);
SNUG_CHECKED snug_status sn_spill_values(sn_planner *p, sn_zone *z, size_t limit,
                                         sn_program *program, sn_layout *l, snug_error *err);
/* What the copies of values alone take: no such program takes less, nor does it with a lower
 * limit. */
double sn_spill_copy_seconds(const sn_planner *p);
/* Seconds of such a program, waiting included. */
SNUG_CHECKED snug_status sn_spill_time(sn_planner *p, const sn_layout *l, double *out,
                                       snug_error *err);
/* Queues and waits of the emitted steps. */
SNUG_CHECKED snug_status sn_spill_queues(sn_planner *p, const sn_layout *l, snug_error *err);
/* Fills at_peak; also for parsed plans. */
SNUG_CHECKED snug_status sn_plan_summarise(sn_plan *p, snug_error *err);

/* An array of n zeroed elements from a zone. */
SNUG_CHECKED snug_status sn_plan_array(sn_zone *z, size_t n, size_t elem_bytes, void *out,
                                       snug_error *err);

/* Bytes of its memory that a place uses over all iterations: of the whole value, or of a slice that
 * stays where it is. */
static inline size_t sn_plan_place_bytes(const sn_plan *p, const sn_place *place) {
    const size_t whole = p->value_bytes[place->value.i];
    if (place->rows < 0 || place->stride > 0)
        return whole;
    const int64_t extent = sn_graph_type(p->graph, place->value)->dims[place->axis];
    return whole / (size_t)extent * (size_t)place->rows;
}

/* To bring all rows of an input, once. A device apart makes random ones itself: a function of each
 * number is half of that; what comes from the host is copied beside the step, and then within the
 * device, which takes about as long. */
static inline double sn_plan_feed_seconds(const sn_planner *p, uint32_t input) {
    const sn_value v = sn_graph_input_at(p->graph, input);
    const sn_rates *r = &p->device->rates;
    const double made = (double)sn_type_count(sn_graph_type(p->graph, v)) / (0.5 * r->math);
    return (double)p->bytes[v.i] / r->memory + (p->device->apart ? r->call + made : 0);
}

static inline bool sn_plan_in_state(const sn_planner *p, uint32_t value) {
    return sn_graph_value_at(p->graph, (sn_value){value})->var >= 0;
}

/* Takes no bytes of the arena. */
static inline bool sn_plan_elsewhere(const sn_planner *p, uint32_t value) {
    return sn_plan_in_state(p, value) || p->outside[p->root[value]];
}

#endif
