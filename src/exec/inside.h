/* inside.h: what the files of exec share: an executor with its arenas and lanes, a session with its
 * bound steps.
 *
 * A *bound step* is a step of a plan with everything the run loop needs: final pointers, kernel,
 * call structs, parameter slots. All of it is made before the first run, so that running allocates
 * nothing.
 *
 * A *lane* is an order of execution: lane 0 is the calling thread and runs the compute queues of
 * all devices; the copy-in and copy-out queue of each device is one lane with a thread of its own.
 *
 * Invariants:
 * 1. A bound step is run by one lane only; its views, moved from iteration to iteration, are that
 * lane's.
 * 2. Everything in sn_crew is read and written under its mutex, as are the fields of sn_session
 * marked "run".
 * 3. A session without steps on other lanes never touches the crew. */
#ifndef SN_EXEC_INSIDE_H
#define SN_EXEC_INSIDE_H

#include "exec/exec.h"
#include "memory/idle.h"
#include "memory/thread.h"

#include <sys/types.h>

#define SN_NO_BLOCK  UINT32_MAX
#define SN_MAX_LANES (1 + 2 * SN_MAX_DEVICES)

/* A step at one height: the slice's, or the shorter last slice's. */
typedef struct {
    snug_view *views; /* inputs, then outputs */
    void *prepared;
} sn_bound_shape;

typedef struct {
    const sn_step *step;
    unsigned char **base; /* of inputs, then outputs: where iteration 0 lies; NULL: in a file */
    sn_kernel kernel;     /* RUN */
    sn_kernel check;      /* of the parameters, before a run; may be NULL */
    sn_call call;         /* all but views, prepared, accumulate and position is final */
    uint32_t n_params;
    uint32_t *slots;            /* parameter slots of the graph, in call order */
    sn_scalar *params;          /* gathered before each call */
    sn_bound_shape whole, last; /* last: only in a block whose last slice is shorter, else zeroed */
    sn_spill *file;             /* COPY: of the one end that lies in a file, whose base is NULL */
    size_t file_offset;
    bool to_file;
    /* on a GPU */
    bool on_host;            /* the row has no kernel there */
    bool from_host, to_host; /* COPY: that end is pinned memory */
    size_t param_at;         /* of its parameters among the session's */
    size_t stage_at;         /* FEED staged whole: of iteration 0; the others follow */
    int made;                /* FEED: sn_gpu_made of what the device makes itself, or -1 */
    bool writes_state;
    bool lent; /* FEED: in this run the rows are read where the caller has them */
    uint32_t lane;
    uint32_t block; /* its REPEAT step, or SN_NO_BLOCK */
    /* Queues enter, iterate and leave a block together: executions that must be over before this
     * step's iteration i begins = barrier + i * barrier_step. */
    uint64_t barrier, barrier_step;
} sn_bound;

typedef struct sn_lane {
    struct sn_crew *crew;
    uint32_t index;
    uint64_t seen; /* the newest generation it has worked on */
    sn_thread thread;
} sn_lane;

/* The worker threads of an executor and the run they are on. */
typedef struct sn_crew {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool made;     /* mutex and condition exist */
    pid_t process; /* which has the threads; its children have none */
    sn_lane lanes[SN_MAX_LANES];
    uint32_t n_live;
    sn_session *job;
    uint64_t generation; /* of the job; a lane works on each once */
    uint32_t n_busy;
    bool quit;
} sn_crew;

/* *slot = sources[source] + offset, before each run. */
typedef struct sn_fixup {
    unsigned char **slot;
    uint32_t source;
    size_t offset;
} sn_fixup;

/* Bytes of the buffers that a run on a GPU needs, each a multiple of 256. */
typedef struct {
    size_t params;  /* on the device, and pinned to fill them */
    size_t outputs; /* pinned: what the caller reads */
    size_t stage;   /* pinned: feeds on their way */
    size_t scratch; /* pinned: operands of rows that run on the host */
} sn_gpu_sizes;

/* A run that was captured, or may be when it comes again. Addresses are part of it: of a graph with
 * inputs and outputs outside, where those were. */
typedef struct {
    void **sources; /* those that steps touch */
    uint32_t n_runs;
    sn_gpu_graph *graph; /* NULL: not captured */
    bool guarded;        /* from the first state write on, it runs where nothing was refused */
} sn_gpu_captured_run;

/* Results that a program still holds lie elsewhere than the next ones: addresses take turns. */
#define SN_GPU_CAPTURES 4

/* What a session has for a GPU. */
typedef struct {
    sn_gpu_sizes sizes;
    bool whole;         /* all feeds of a run are staged before it begins */
    size_t piece_bytes; /* else: of one slot of the ring */
    uint32_t next_slot;
    uint32_t queues; /* bit set of queues with steps */
    bool has_host_rows;
    bool checks, writes;       /* a row may refuse values; writes state */
    unsigned char **output_at; /* on the device, one per output */
    bool capturing, never;     /* never: it could not be captured */
    sn_gpu_captured_run captures[SN_GPU_CAPTURES];
    sn_gpu_captured_run *now; /* of the run under way */
    uint32_t next_capture;
    void (*meanwhile)(void *ctx); /* of the next run; NULL: none, or done */
    void *meanwhile_ctx;
    size_t staged_bytes; /* of feeds that are staged whole */
    bool wants_next;     /* feeds of the next run shall come while one is under way */
    bool uses_next;      /* this run's inputs are those that came so */
    bool (*next)(void *ctx);
    void *next_ctx;
} sn_gpu_part;

struct sn_session {
    sn_executor *executor;
    const sn_plan *plan;
    sn_zone *zone;      /* everything below, category PLAN */
    sn_bound *bound;    /* one per step */
    snug_view *outputs; /* one per output of the graph */
    sn_scalar *params;  /* one per slot of the graph */
    sn_input_binding *inputs;
    /* Of a graph that has inputs and outputs outside: where the caller's bytes are, by variable and
     * then by value, and which pointers of bound steps follow from them. */
    void **sources;
    bool *source_used; /* a step touches it */
    struct sn_fixup *fixups;
    size_t n_fixups;
    struct sn_fixup *loans; /* readers of inputs that may be lent; source: the FEED step */
    size_t n_loans;
    uint32_t device_of[SN_MAX_DEVICES]; /* the plan's devices in the executor's numbering */
    uint32_t lanes;                     /* bit set of lanes with steps */
    bool ready;                         /* pointers final, kernels prepared */
    sn_gpu_part gpu;                    /* on a GPU, else zeroed */
    bool (*interrupt)(void *ctx);
    void *interrupt_ctx;
    /* run */
    uint64_t n_done;              /* executions over */
    uint64_t *done;               /* executions over, by step */
    bool wrote_state, wrote_late; /* late: a step behind undo_end did */
    uint32_t undo_end; /* steps whose writes can be taken back (undo.c); 0: none need be */
    void *undo;        /* what they wrote over, in this run; or NULL */
    size_t undo_bytes;
    snug_status status; /* of the failed step that stands first in the plan */
    uint32_t failed_step;
    snug_error error;
    sn_session *next;
};

/* A block of device or pinned memory. */
typedef struct {
    void *data;
    size_t bytes;
} sn_gpu_piece;

/* What an executor has on a GPU: in place of arenas and files, and buffers for all sessions. */
typedef struct {
    sn_gpu_piece arenas[SN_MAX_MEMORIES];
    sn_gpu_piece files[SN_MAX_MEMORIES]; /* pinned */
    sn_gpu_sizes sizes;
    void *params;        /* on the device */
    sn_gpu_piece pinned; /* params, outputs, stage, scratch */
    sn_gpu_piece feeds;  /* on the device, two halves: feeds of this run, and of the next */
    const struct sn_session *ahead; /* whose next feeds are there; NULL: nobody's */
    const void *ahead_ctx;          /* and who bound them */
} sn_gpu_side;

struct sn_executor {
    sn_idle idle; /* first member; joined where options.gives is set */
    snug_engine *engine;
    sn_state *state;
    sn_cpu_device devices[SN_MAX_DEVICES]; /* copies; of a GPU the host's that helps it out */
    char names[SN_MAX_DEVICES][24];
    uint32_t n_devices;
    sn_gpu_device *gpu; /* the only device, or NULL */
    sn_gpu_side side;
    sn_executor_options options;
    sn_block arenas[SN_MAX_MEMORIES]; /* by the plans' memory numbers; 0 is unused */
    sn_spill *files[SN_MAX_MEMORIES]; /* the same of memories that are files */
    bool prepared;
    sn_crew crew;
    bool holds_team;   /* from the first prepare on */
    sn_team *team;     /* the engine's: kernels of all devices run on it */
    sn_session *first; /* in the order they were added */
};

/* --- kernel.c: calling one kernel ------------------------------------------------------------- */
/* Slots of an application's parameters in the order of call->param; returns how many (<=
 * SN_MAX_PARAMS). Slots past the graph's are unused words (starts of axes beyond the rank) and read
 * as 0. */
uint32_t sn_param_slots(sn_op op, const sn_attrs *attrs, uint32_t *slots);
/* The default of a slot. */
sn_scalar sn_param_default(const sn_param_info *p);
/* out[i] = values[slots[i]]. */
void sn_param_gather(const sn_scalar *values, uint32_t n_values, const uint32_t *slots, uint32_t n,
                     sn_scalar *out);
/* The kernel a device uses for an operator, and its prepared object (NULL where there is none to
 * make). */
sn_kernel sn_kernel_of(const sn_cpu_device *d, sn_op op);
SNUG_CHECKED snug_status sn_kernel_prepare(snug_engine *e, const sn_cpu_device *d,
                                           const sn_opdesc *desc, void **prepared, snug_error *err);
void sn_kernel_release(snug_engine *e, sn_op op, void *prepared);
/* Bytes of a value on a device: of its type, or what the maker's description says for an opaque
 * one. */
SNUG_CHECKED snug_status sn_value_bytes(const sn_graph *g, sn_value v, const sn_device *d,
                                        size_t *bytes, snug_error *err);
/* Puts layer and operator in front of the error. */
snug_status sn_fail_at(const sn_graph *g, sn_node n, snug_status status, snug_error *err);

/* --- executor.c ------------------------------------------------------------------------------- */
/* An array of n elements in the session's zone, zeroed; *array is the pointer to it. */
SNUG_CHECKED snug_status sn_session_take(sn_session *s, size_t n, size_t elem_bytes, void *array,
                                         snug_error *err);

/* Bytes and name of memory m in the largest plan that has one of the kind; false: none has. */
bool sn_executor_largest(const sn_executor *x, uint32_t m, sn_memory_kind kind, size_t *bytes,
                         const char **name);

/* --- spill_files.c: what plans keep in files
 * -------------------------------------------------------- */
/* Files as large as the plans need them, and the homes of variables where the plans have them. */
SNUG_CHECKED snug_status sn_files_make(sn_executor *x, snug_error *err);
/* Whether the session can run with the files and homes there are. */
bool sn_files_fit(const sn_session *s);

/* --- bind.c: a plan's steps to bound steps ---------------------------------------------------- */
SNUG_CHECKED snug_status sn_bind_steps(sn_session *s, snug_error *err);
/* An update of a copy is none yet: it counts when it is copied back. */
bool sn_writes_state(const sn_graph *g, const sn_step *step);

/* --- undo.c: writes of variables taken back --------------------------------------------------- */
uint32_t sn_undo_end(const sn_session *s); /* of a bound session: its undo_end */
void sn_undo_begin(sn_session *s);         /* before the first step of a run */
bool sn_undo_restore(sn_session *s);       /* after a failure: whether all is as it was */
void sn_undo_clear(sn_session *s);         /* at the end of the run */
/* Prepares the kernels that are not prepared yet. */
SNUG_CHECKED snug_status sn_bind_kernels(sn_session *s, snug_error *err);
void sn_bind_release(sn_session *s);
/* Pointers to what the caller bound for this run; SNUG_E_INVALID where something is not bound. */
SNUG_CHECKED snug_status sn_bind_sources(sn_session *s, snug_error *err);
/* Final pointers, once arenas and state are there. */
SNUG_CHECKED snug_status sn_bind_pointers(sn_session *s, snug_error *err);

/* --- loan.c: inputs read where they lie ------------------------------------------------------- */
/* After sn_bind_steps. */
SNUG_CHECKED snug_status sn_loans_find(sn_session *s, snug_error *err);
/* Before each run: what the caller has in memory is lent for it. */
void sn_loans_take(sn_session *s);

/* --- crew.c: worker threads ------------------------------------------------------------------- */
/* Starts the lanes of the bit set that are not live yet; bit 0 is ignored. */
SNUG_CHECKED snug_status sn_crew_start(sn_crew *c, snug_engine *e, uint32_t lanes, snug_error *err);
void sn_crew_stop(sn_crew *c);
/* False in the child of a fork: the caller works alone there. */
bool sn_crew_is_here(const sn_crew *c);
/* Whether somebody will run the steps of the lane: its thread, or there the caller. */
bool sn_crew_serves(const sn_crew *c, uint32_t lane);
/* Lets all live lanes work on s, and waits until they are through. */
void sn_crew_begin(sn_crew *c, sn_session *s);
void sn_crew_finish(sn_crew *c);

/* --- gpu_bind.c: what a session and an executor need on a GPU ----------------------------------
 */
/* After sn_bind_steps. */
SNUG_CHECKED snug_status sn_gpu_measure(sn_session *s, snug_error *err);
int64_t sn_gpu_iterations(const sn_session *s, const sn_bound *bound);
SNUG_CHECKED snug_status sn_gpu_prepare_shape(sn_session *s, const sn_bound *bound,
                                              const sn_opdesc *desc, void **prepared,
                                              snug_error *err);
void sn_gpu_release(sn_session *s, const sn_bound *bound, void *prepared);
/* Arenas, pinned memories and buffers as large as the sessions need; homes have their places. */
SNUG_CHECKED snug_status sn_gpu_make(sn_executor *x, snug_error *err);
void sn_gpu_clear(sn_executor *x);
void sn_gpu_clear_arenas(sn_executor *x);
bool sn_gpu_fits(const sn_session *s);
SNUG_CHECKED snug_status sn_gpu_locate(sn_session *s, sn_bound *bound, snug_error *err);
void sn_gpu_locate_outputs(sn_session *s);
void sn_gpu_drop_graphs(sn_session *s);
/* gpu.now becomes that of the addresses of this run. */
void sn_gpu_choose_capture(sn_session *s);
/* Where a part of the pinned block begins. */
unsigned char *sn_gpu_pinned_outputs(const sn_executor *x);
unsigned char *sn_gpu_pinned_stage(const sn_executor *x);
unsigned char *sn_gpu_pinned_scratch(const sn_executor *x);
/* What so many bytes take of them. */
size_t sn_gpu_units(size_t bytes);

/* --- gpu_run.c: steps enqueued ---------------------------------------------------------------- */
#define SN_GPU_RING                                                                                \
    4 /* slots of feeds that are not staged whole; moments of these numbers are theirs */
/* Before the first step: homes and parameters go there. */
SNUG_CHECKED snug_status sn_gpu_begin(sn_session *s, snug_error *err);
/* What the queues are given first. */
SNUG_CHECKED snug_status sn_gpu_send_params(const sn_session *s, snug_error *err);
/* Before each step: it waits for others as the plan says. */
SNUG_CHECKED snug_status sn_gpu_wait(const sn_session *s, const sn_step *step, snug_error *err);
/* All queues have done what they were given before one goes on. */
SNUG_CHECKED snug_status sn_gpu_join(const sn_session *s, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_call(sn_session *s, const sn_bound *bound, const sn_call *call,
                                     snug_error *err);
/* Rows of an input that the device makes itself. */
SNUG_CHECKED snug_status sn_gpu_make_rows(const sn_session *s, const sn_bound *bound,
                                          int64_t iteration, const snug_view *to, snug_error *err);
/* Those that the ring brings, piece by piece. */
SNUG_CHECKED snug_status sn_gpu_feed_ring(sn_session *s, const sn_input_binding *input,
                                          int64_t first_row, const snug_view *to, snug_error *err);
unsigned char *sn_gpu_slot(const sn_session *s, const sn_bound *bound, int64_t iteration);
/* The rows of one FEED out of what was staged whole. */
SNUG_CHECKED snug_status sn_gpu_feed_whole(const sn_session *s, const sn_bound *bound,
                                           int64_t iteration, const snug_view *to, snug_error *err);
/* Whether feeds lie on the device before a run begins, so that those of the next can come
 * meanwhile. */
bool sn_gpu_is_ahead(const sn_session *s);
/* Whether this run's feeds came so. */
bool sn_gpu_has_next(const sn_session *s);
/* What was staged for this run (came: has come already) is where its FEEDs read it. */
SNUG_CHECKED snug_status sn_gpu_bring(const sn_session *s, bool came, snug_error *err);
/* Before the pinned bytes are filled for the next run; and when they are. */
SNUG_CHECKED snug_status sn_gpu_await_stage(const sn_session *s, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_send_next(sn_session *s, snug_error *err);
SNUG_CHECKED snug_status sn_gpu_copy_step(sn_session *s, const sn_bound *bound,
                                          const sn_bound_shape *shape, snug_error *err);
/* Nothing was written so far: whether the rows that ran agree to go on. In a captured run the
 * device sees to that itself. */
SNUG_CHECKED snug_status sn_gpu_before_writes(sn_session *s, snug_error *err);
/* Outputs come back. */
SNUG_CHECKED snug_status sn_gpu_end(sn_session *s, snug_error *err);
bool sn_gpu_has_capture_room(sn_gpu_device *d, const sn_plan *plan);
/* What a captured run may take there, beside what every one takes. */
size_t sn_gpu_capture_room(sn_gpu_device *d, const sn_plan *plan);
void sn_gpu_note_capture(sn_gpu_device *d); /* one was made, after that */
bool sn_gpu_may_capture(sn_session *s);
SNUG_CHECKED snug_status sn_gpu_capture(sn_session *s, snug_error *err);
/* ok: all steps were given; else what was captured is dropped. */
SNUG_CHECKED snug_status sn_gpu_captured(sn_session *s, bool ok, snug_error *err);
/* Enqueues the captured run and waits; *wrote: whether state may have been written. */
SNUG_CHECKED snug_status sn_gpu_replay(sn_session *s, bool *wrote, snug_error *err);
/* Waits for all; an error names the row that can have refused. */
SNUG_CHECKED snug_status sn_gpu_finish(sn_session *s, snug_error *err);

/* --- run.c ------------------------------------------------------------------------------------ */
/* Runs the steps of one lane beside the others; results and errors are in the session. */
void sn_run_lane(sn_session *s, uint32_t lane);

#endif
