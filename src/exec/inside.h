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

#include "exec/runner_class.h"
#include "memory/idle.h"
#include "memory/thread.h"

#include <sys/types.h>

#define SN_NO_BLOCK  UINT32_MAX
#define SN_MAX_LANES (1 + 2 * SN_MAX_DEVICES)

/* A step at one height: the slice's, or the shorter last slice's. */
typedef struct sn_bound_shape {
    snug_view *views; /* inputs, then outputs */
    void *prepared;
} sn_bound_shape;

typedef struct sn_bound {
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
    bool from_host, to_host; /* COPY: that end is pinned memory */
    uint8_t runner;          /* the step's device, by the executor's numbering */
    uint8_t from, to;        /* COPY: on whose devices the ends lie */
    /* of a runner that is apart */
    bool on_host;    /* the row has no kernel there */
    size_t param_at; /* of its parameters among the session's */
    size_t stage_at; /* FEED staged whole: of iteration 0; the others follow */
    int made;        /* FEED: what the device makes itself of a recipe, or -1 */
    bool writes_state;
    /* RUN, of the part UPDATE: it writes a variable, or a copy of one that is copied back; it is a
     * check whose refusal may pass these over */
    bool updates, may_pass;
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

/* *slot = sources[source] + offset, before each run; of a copy that has one end in a file, that
 * place. */
typedef struct sn_fixup {
    unsigned char **slot;
    sn_bound *copy; /* NULL: slot */
    uint32_t source;
    size_t offset;
} sn_fixup;

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
    sn_spot *spots;    /* of variables that the plan spills; NULL: it spills none */
    bool *source_used; /* a step touches it */
    struct sn_fixup *fixups;
    size_t n_fixups;
    struct sn_fixup *loans; /* readers of inputs that may be lent; source: the FEED step */
    size_t n_loans;
    sn_runner *runner_of[SN_MAX_DEVICES]; /* by the plan's devices */
    uint32_t runners;                     /* bit set of them, by the executor's numbering */
    sn_runner *lead;
    void *parts[SN_MAX_DEVICES]; /* what runners have of it, in its zone, by their index; or NULL */
    uint32_t lanes;              /* bit set of lanes with steps; with a runner apart there is one */
    bool ready;                  /* pointers final, kernels prepared */
    void (*meanwhile)(void *ctx); /* of the next run; NULL: none, or done */
    void *meanwhile_ctx;
    bool wants_next;              /* feeds of the next run shall come while one is under way */
    bool uses_next;               /* this run's inputs are those that came so */
    bool (*bind_next)(void *ctx); /* binds those of the next run; false: there is none */
    void *next_ctx;
    bool (*interrupt)(void *ctx);
    void *interrupt_ctx;
    bool passes; /* the update, where one of its checks refuses its values */
    /* run */
    bool passed_over;             /* it was; of the one lane that runs nodes */
    uint64_t n_done;              /* executions over */
    uint64_t *done;               /* executions over, by step */
    bool capturing;               /* steps are written down, and do not run */
    bool wrote_state, wrote_late; /* late: a step behind undone.end did */
    bool asked, asked_late;       /* before that: devices, whether they have refused something */
    sn_undone undone;             /* which writes can be taken back (undo.c) */
    snug_status status;           /* of the failed step that stands first in the plan */
    uint32_t failed_step;
    snug_error error;
    sn_session *next;
};

struct sn_executor {
    sn_idle idle; /* first member; joined where options.gives is set */
    snug_engine *engine;
    sn_state *state;
    sn_executor_options options;
    bool prepared;
    sn_crew crew;
    bool holds_team;   /* from the first prepare on */
    sn_team *team;     /* the engine's: kernels of all devices run on it */
    sn_session *first; /* in the order they were added */
    uint32_t n_runners;
    sn_runner runners[]; /* one per device */
};

/* The runners of a session, one after the other; NULL: that was all. */
static inline sn_runner *sn_runner_next(const sn_session *s, const sn_runner *before) {
    uint32_t k = before ? before->index + 1 : 0;
    while (k < s->executor->n_runners && !(s->runners >> k & 1u))
        k++;
    return k < s->executor->n_runners ? &s->executor->runners[k] : NULL;
}

/* Of the step's device. */
static inline sn_runner *sn_runner_of_step(const sn_session *s, const sn_bound *bound) {
    return &s->executor->runners[bound->runner];
}

/* On whose device a memory of the plan lies. */
static inline sn_runner *sn_runner_of_memory(const sn_session *s, uint32_t memory) {
    return s->runner_of[s->plan->memories[memory].device];
}

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

/* Bytes and name of memory m in the largest plan that has one of the kind on the runner's device;
 * false: none has. */
bool sn_runner_largest(const sn_runner *r, uint32_t m, sn_memory_kind kind, size_t *bytes,
                       const char **name);
void sn_executor_make_unready(sn_executor *x);

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
bool sn_undo_restore(sn_session *s); /* after a failure: whether all is as it was */
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

/* --- run.c ------------------------------------------------------------------------------------ */
/* Runs the steps of one lane beside the others; results and errors are in the session. */
void sn_run_lane(sn_session *s, uint32_t lane);
/* The calling thread walks all lanes, from the start of all runners to their end. */
SNUG_CHECKED snug_status sn_run_alone(sn_session *s, snug_error *err);
/* Each time a FEED step of the runner would run: the view it fills, but for where. */
typedef snug_status (*sn_feed_visit)(sn_runner *r, sn_session *s, const sn_bound *bound,
                                     int64_t iteration, int64_t first_row, const snug_view *to,
                                     snug_error *err);
SNUG_CHECKED snug_status sn_run_feeds(sn_runner *r, sn_session *s, sn_feed_visit visit,
                                      snug_error *err);
/* Rows of an input into memory of the host. */
SNUG_CHECKED snug_status sn_fill_rows(const sn_session *s, uint32_t input, int64_t first_row,
                                      const snug_view *to, snug_error *err);
/* A copy whose ends lie on two devices. */
SNUG_CHECKED snug_status sn_copy_across(const sn_session *s, const sn_bound *bound,
                                        const sn_bound_shape *shape, snug_error *err);

#endif
