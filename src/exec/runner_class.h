/* runner_class.h: THE table by which exec knows devices. An executor has a list of runners, one per
 * device: the processor (runner_cpu.c: memory that everybody can address, calls that are over when
 * they return, so that most of what waits has nothing to do) and GPUs (gpu_bind.c, gpu_run.c, over
 * the plug-in's table in op/runner.h). Nothing else in exec asks what a device is.
 *
 *     sn_executor_add       measure: what a session needs of the device
 *     sn_executor_prepare   prepare (kernels), make_file, make (homes, arenas, buffers), find, show
 *     sn_session_run        begin, then `drive` of the session's lead: start, the steps of the plan
 *                           (wait, call, feed, copy; join at the borders of blocks), end
 *
 * A session uses the runners that its plan names. Its *lead* is the first of them that is apart, or
 * else the first: it says how the list of steps is walked. With a runner apart the calling thread
 * walks all of it, in the order of the plan; a step that waits for one of another device waits
 * until that device has done what it was given (reach).
 *
 * Between devices there are copies from one to another (sn_copy_across in run.c), through the
 * host's memory. COLLECTIVES STAND THERE: a step whose operands lie on several devices (a sum of
 * gradients) is a step of every device that takes part, walked by the calling thread as the others
 * are, and what moves its bytes is a function of this table beside `fetch` and `store`. There is
 * none yet. */
#ifndef SN_EXEC_RUNNER_CLASS_H
#define SN_EXEC_RUNNER_CLASS_H

#include "exec/exec.h"

typedef struct sn_runner sn_runner;
struct sn_bound;
struct sn_bound_shape;

/* Where a place of a plan lies: at `data`, in a file from `offset` on, or nowhere yet (what the
 * caller has is known at each run). */
typedef struct {
    unsigned char *data;
    sn_spill *file;
    size_t offset;
    bool pinned; /* the host's memory, which only copies of the device reach */
} sn_spot;

typedef struct sn_runner_class {
    bool apart;   /* steps are handed over to queues, by the calling thread alone */
    bool on_disk; /* what plans keep in files lies there, and not in pinned memory */
    bool lends;   /* kernels read what a caller has in memory */

    /* --- life --- */
    snug_status (*open)(sn_runner *r, const sn_device *d, snug_error *err);
    void (*close)(sn_runner *r); /* of one that is open */

    /* --- memory --- */
    /* Homes, arenas and buffers as large as the sessions there are need them. Where something
     * moves, sessions are not ready any more. */
    snug_status (*make)(sn_runner *r, snug_error *err);
    bool (*fits)(const sn_runner *r, const sn_session *s); /* with what was made */
    void (*drop_arenas)(sn_runner *r);
    snug_view (*arena)(const sn_runner *r, uint32_t memory); /* data NULL: there is none */
    size_t (*booked)(const sn_runner *r);                    /* of arenas, on the ledger */
    /* What other executors of the engine would give where there is no room; they give it. */
    size_t (*others)(const sn_runner *r);
    bool (*take_others)(const sn_runner *r);
    size_t (*file_bytes)(const sn_runner *r, uint32_t memory);
    snug_status (*make_file)(sn_runner *r, uint32_t memory, size_t bytes, snug_error *err);

    /* --- a session --- */
    snug_status (*measure)(sn_runner *r, sn_session *s, snug_error *err); /* after sn_bind_steps */
    void (*forget)(sn_runner *r, sn_session *s); /* what was captured of it, and came ahead */
    void (*moved)(sn_runner *r, sn_session *s);  /* addresses are not what they were */
    snug_status (*prepare)(sn_runner *r, sn_session *s, const struct sn_bound *bound,
                           const sn_opdesc *desc, void **prepared, snug_error *err);
    void (*release)(sn_runner *r, const struct sn_bound *bound, void *prepared); /* or NULL */
    snug_status (*find)(const sn_runner *r, const sn_session *s, const sn_place *place,
                        sn_spot *out, snug_error *err);
    /* Where callers see the outputs that lie on the device. */
    snug_status (*show)(sn_runner *r, sn_session *s, snug_error *err);

    /* --- a run --- */
    snug_status (*begin)(sn_runner *r, sn_session *s, snug_error *err);
    snug_status (*drive)(sn_runner *r, sn_session *s, snug_error *err);
    snug_status (*start)(sn_runner *r, sn_session *s, snug_error *err); /* before the first step */
    snug_status (*wait)(sn_runner *r, sn_session *s, const sn_step *step, snug_error *err);
    snug_status (*reach)(sn_runner *r, sn_session *s, sn_queue queue, snug_error *err);
    /* Queues enter, iterate and leave a block together. */
    snug_status (*join)(sn_runner *r, sn_session *s, snug_error *err);
    /* Before the first write of a variable: whether the rows that ran agree to go on. */
    snug_status (*before_writes)(sn_runner *r, sn_session *s, snug_error *err);
    snug_status (*call)(sn_runner *r, sn_session *s, const struct sn_bound *bound,
                        const sn_call *call, snug_error *err);
    /* Rows of an input, from first_row on. */
    snug_status (*feed)(sn_runner *r, sn_session *s, const struct sn_bound *bound,
                        int64_t iteration, int64_t first_row, const snug_view *to, snug_error *err);
    snug_status (*copy)(sn_runner *r, sn_session *s, const struct sn_bound *bound,
                        int64_t iteration, const struct sn_bound_shape *shape, snug_error *err);
    /* Bytes of the device to the host's memory, and from there; over when it returns. */
    snug_status (*fetch)(sn_runner *r, sn_queue queue, void *to, const void *from, size_t bytes,
                         snug_error *err);
    snug_status (*store)(sn_runner *r, sn_queue queue, void *to, const void *from, size_t bytes,
                         snug_error *err);
    /* So many bytes of the host's memory for a copy to another device; NULL: what lies here is the
     * host's memory. */
    void *(*between)(const sn_runner *r);
    snug_status (*end)(sn_runner *r, sn_session *s, snug_error *err); /* all is done */
    void (*give_up)(sn_runner *r, sn_session *s);                     /* a step has failed */

    /* --- without a plan --- */
    /* One call on operands in the host's memory, over when it returns; workspace, parameters and
     * what else it needs are made for it. */
    snug_status (*call_once)(snug_engine *e, const sn_device *d, const sn_opdesc *desc,
                             const sn_call *call, snug_error *err);

    /* --- the next run's inputs, while one is under way --- */
    bool (*takes_next)(const sn_runner *r, const sn_session *s);
    bool (*has_next)(const sn_runner *r, const sn_session *s);
} sn_runner_class;

/* Of the processor; of the device, whatever it is. */
extern const sn_runner_class sn_cpu_runner;
const sn_runner_class *sn_runner_class_of(const sn_device *d);

/* A device of an executor. */
struct sn_runner {
    const sn_runner_class *kind;
    sn_executor *executor;
    uint32_t index;
    char name[24];
    sn_cpu_device host; /* the processor's description; of a GPU, of the host that helps it out */
    void *own;          /* the class's */
};

#endif
