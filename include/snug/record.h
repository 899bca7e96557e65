/* record.h: eager code, recorded. An operation checks shapes at once, appends a node and returns a
 * tensor without bytes; when someone needs bytes, everything recorded that is still wanted runs as
 * one plan within the engine's budget. What nobody can reach any more is never computed.
 *
 *     snug_recorder *r;
 *     snug_tensor *x, *w, *y;
 *     float out[32 * 4];
 *     snug_recorder_create(engine, &r, &err);
 *     snug_tensor_copy(r, &(snug_type){SNUG_F32, 2, {32, 8}}, data, &x, &err);
 *     snug_tensor_random(r, &(snug_type){SNUG_F32, 2, {8, 4}}, SNUG_INIT_NORMAL, 0, 1, &w, &err);
 *     snug_record_op(r, "matmul", "", (snug_tensor *[]){x, w}, 2, &y, 1, &err);
 *     snug_tensor_read(y, out, sizeof out, &err);  // plans and runs
 *     snug_tensor_drop(x), snug_tensor_drop(w), snug_tensor_drop(y);
 *     snug_recorder_destroy(r);
 *
 * Handles are counted: every call that gives one gives it held once; drop never fails, never runs
 * anything. One recorder is used by one thread at a time. examples/record.c is a whole program.
 *
 * Threads that take turns, under a lock of the caller's, each say who they are first; then what a
 * thread records is its own: its open recording, traces and active tapes. Who uses a tensor that
 * another thread has recorded runs that thread's recording first. Tensors, variables and plans are
 * common, and one plan runs at a time; hooks may give the lock up meanwhile. */
#ifndef SNUG_RECORD_H
#define SNUG_RECORD_H

#include <snug/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_recorder snug_recorder;
typedef struct snug_tensor snug_tensor;
typedef struct snug_variable snug_variable;
typedef struct snug_tape snug_tape;
typedef struct snug_trace snug_trace;

SNUG_API SNUG_CHECKED snug_status snug_recorder_create(snug_engine *engine, snug_recorder **out,
                                                       snug_error *err);
/* Handles that are still held stay legal to drop, and to nothing else. */
SNUG_API void snug_recorder_destroy(snug_recorder *r);
SNUG_API snug_engine *snug_recorder_engine(const snug_recorder *r);
/* Calls from now on are the thread's; `thread` is the caller's own id, not 0. */
SNUG_API SNUG_CHECKED snug_status snug_recorder_enter(snug_recorder *r, uint64_t thread,
                                                      snug_error *err);
/* The thread is gone: what it has recorded is run, and its place freed. 0: not yet, because a plan
 * runs or a trace or tape of its is open; ask again. */
SNUG_API int snug_recorder_leave(snug_recorder *r, uint64_t thread);

/* Where an operation is recorded from, for messages: `site` is the caller's own id, and line(ctx,
 * site) says it in words ("train.py:41") when an error needs it. */
SNUG_API void snug_recorder_set_site(snug_recorder *r, uint64_t site);
typedef struct {
    void *ctx;
    const char *(*line)(void *ctx, uint64_t site, char *text, size_t size);
    /* Asked between steps of a run before its first state write; nonzero stops it. */
    int (*interrupt)(void *ctx);
    /* Around the running of a plan: where an interpreter's lock is given up and taken back. */
    void (*begin_run)(void *ctx);
    void (*end_run)(void *ctx);
    /* A budget was refused: let go of what you can, then it is tried again; 0: nothing to give. */
    int (*collect)(void *ctx);
} snug_recorder_hooks;
SNUG_API void snug_recorder_set_hooks(snug_recorder *r, const snug_recorder_hooks *hooks);

/* Runs everything recorded so far that is wanted. */
SNUG_API SNUG_CHECKED snug_status snug_sync(snug_recorder *r, snug_error *err);
/* The same where an assignment waits to be run, or nobody holds what was recorded; else nothing:
 * between steps of a loop. */
SNUG_API SNUG_CHECKED snug_status snug_boundary(snug_recorder *r, snug_error *err);

/* With a GPU (snug_device before the recorder is made) what is recorded runs there, and tensors and
 * variables lie there; they are copied when the host wants to look. While on_host is set, what this
 * thread records runs on the processor; values move as they are used. */
SNUG_API void snug_recorder_place(snug_recorder *r, int on_host);
SNUG_API int snug_recorder_is_on_host(const snug_recorder *r);
/* A tensor with bytes on the host is wanted on the GPU soon, by a next step: it is copied while the
 * next run there is under way, where there is room. Nothing else comes of it. */
SNUG_API void snug_tensor_bring(snug_tensor *t);
/* Whether it was recorded to run on the processor, or there is no GPU. */
SNUG_API int snug_tensor_is_on_host(const snug_tensor *t);
SNUG_API int snug_variable_is_on_host(const snug_variable *v);

/* Of the GPU's memory; all 0 without one. */
typedef struct {
    size_t tensor_bytes, variable_bytes;
    size_t arena_bytes;
    size_t pool_bytes;        /* of the device, for tensors and variables */
    size_t pool_free_bytes;   /* of it not used */
    size_t pool_largest_free; /* in one piece */
    size_t bytes, peak_bytes; /* used: of all this */
} snug_recorder_device;
SNUG_API void snug_recorder_tell_device(const snug_recorder *r, snug_recorder_device *out);
/* The peak starts anew with what is used now. */
SNUG_API void snug_recorder_reset_peak(snug_recorder *r);

typedef struct {
    uint64_t n_flushes, n_hits, n_misses; /* runs; of them with a plan at hand; planned anew */
    double plan_seconds;
    size_t n_nodes;        /* recorded and not run yet */
    size_t n_plans;        /* at hand */
    size_t tensor_bytes;   /* held by handles */
    size_t variable_bytes; /* held by variables */
    size_t tape_bytes;     /* held for tapes alone */
    size_t arena_bytes;
    const char *miss; /* why the newest miss was one; lent until the next */
    int64_t slices;   /* of the newest plan, and what it runs again */
    size_t recomputed;
    size_t spilled_bytes;               /* in files: values of the newest plan, and slots of any */
    double step_seconds, plain_seconds; /* expected of the newest plan; and without a limit */
    /* Under a budget of the process: the most that was foreseen of it, all included, when the plans
     * of the runs so far were chosen, before there was an arena for them; else 0. */
    size_t predicted_peak_bytes;
} snug_recorder_info;
/* Bytes of dropped results that wait for the next run's go back first: what is reported is held. */
SNUG_API void snug_recorder_tell(snug_recorder *r, snug_recorder_info *out);
/* Gives plans that are not running back, and the arena; under a budget with a folder to spill to
 * (engine.h) slots of optimizers wait there from now on. Nothing while a plan runs. */
SNUG_API void snug_recorder_trim(snug_recorder *r);
/* What plans leave of the budget from now on: bytes for what the caller will make beside them, and
 * room for n more plans like the next one, each of which takes its part of that when it is made;
 * -1: as many as were left. Gives the bytes of before. */
SNUG_API size_t snug_recorder_reserve(snug_recorder *r, size_t bytes, int n_plans);
/* Whether plans leave pipelines at work what these may still take up to their limit. */
SNUG_API void snug_recorder_await(snug_recorder *r, int pipelines);
/* From now on, or no longer: what is recorded is planned and not run. A run is refused with the
 * budget that it would need, or with SNUG_E_INTERRUPTED where it would fit; what it would make is
 * lost, variables stay. Runs that need no plan are run. */
SNUG_API void snug_recorder_judge(snug_recorder *r, int judges);
/* Of an optimizer that has not been used yet: so many slots of each variable's size are to come.
 * While a tape records, plans leave room for them; 0 from the first update on. */
SNUG_API void snug_recorder_expect(snug_recorder *r, int n_slots);

/* --- tensors ---------------------------------------------------------------------------------- */
SNUG_API void snug_tensor_hold(snug_tensor *t);
SNUG_API void snug_tensor_drop(snug_tensor *t); /* NULL is legal */
SNUG_API const snug_type *snug_tensor_type(const snug_tensor *t);
SNUG_API snug_recorder *snug_tensor_recorder(const snug_tensor *t);

/* Bytes copied now. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_copy(snug_recorder *r, const snug_type *type,
                                                   const void *data, snug_tensor **out,
                                                   snug_error *err);
/* A tensor with bytes, for who writes them piece by piece before anything is recorded with it. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_fresh(snug_recorder *r, const snug_type *type,
                                                    snug_tensor **out, void **data,
                                                    snug_error *err);
/* Bytes of the caller's, which nobody writes until release(ctx) is called. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_borrow(snug_recorder *r, const snug_type *type,
                                                     const void *data, void (*release)(void *ctx),
                                                     void *ctx, snug_tensor **out, snug_error *err);
/* The same where nobody but the tensor has them any more: they count as the engine's. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_adopt(snug_recorder *r, const snug_type *type,
                                                    const void *data, void (*release)(void *ctx),
                                                    void *ctx, snug_tensor **out, snug_error *err);
/* A scalar that is a parameter of the plan: another value plans nothing again. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_number(snug_recorder *r, snug_dtype dtype,
                                                     double value, snug_tensor **out,
                                                     snug_error *err);
/* The same number everywhere, also a parameter; and random numbers: the draw takes its key now,
 * in program order. Neither has bytes until someone needs them, and then only as many as needed. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_full(snug_recorder *r, const snug_type *type,
                                                   double value, snug_tensor **out,
                                                   snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_tensor_random(snug_recorder *r, const snug_type *type,
                                                     snug_init_kind kind, double a, double b,
                                                     snug_tensor **out, snug_error *err);
/* Starts the sequence of keys anew; and the next key of it, for who draws by snug_record_op. */
SNUG_API void snug_recorder_seed(snug_recorder *r, uint64_t seed);
SNUG_API int64_t snug_recorder_draw(snug_recorder *r);
/* Where the sequence stands: its seed and how many keys were drawn; and back to such a place, for a
 * run that goes on where another one stopped. */
SNUG_API void snug_recorder_tell_random(const snug_recorder *r, uint64_t *seed, uint64_t *n_draws);
SNUG_API void snug_recorder_set_random(snug_recorder *r, uint64_t seed, uint64_t n_draws);

/* The next key of an operation with a seed of its own: it follows from both, from the recorder's
 * seed and from how often it was drawn since that was set. */
SNUG_API SNUG_CHECKED snug_status snug_recorder_draw_seeded(snug_recorder *r, const char *op,
                                                            int64_t seed, int64_t *out,
                                                            snug_error *err);
/* Outside of traces operations with the same seed draw from one sequence, one after the other.
 * Where a place other than 0 is set, those that come then have one of its own, which begins like
 * the others. */
SNUG_API void snug_recorder_set_place(snug_recorder *r, uint64_t place);
/* How many places operations with seeds were given in traces; and that the next ones are numbered
 * from there on, which lets what a loop records each time it goes round draw as one operation. */
SNUG_API uint64_t snug_recorder_tell_places(const snug_recorder *r);
SNUG_API void snug_recorder_set_places(snug_recorder *r, uint64_t n_places);
/* Where these stand: how many there are, and of the first max of them two numbers each; and back
 * there. Those of traces are known again where the same traces are made in the same order. */
SNUG_API size_t snug_recorder_tell_sequences(const snug_recorder *r, uint64_t *pairs, size_t max);
SNUG_API SNUG_CHECKED snug_status snug_recorder_set_sequences(snug_recorder *r,
                                                              const uint64_t *pairs, size_t n,
                                                              snug_error *err);

/* Whether reading it would run nothing. */
SNUG_API int snug_tensor_is_ready(const snug_tensor *t);
/* Copies all bytes out; runs what is recorded where they are not there yet. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_read(snug_tensor *t, void *to, size_t bytes,
                                                   snug_error *err);
/* The same of n elements from number `first` on, in the order of rows; of draws and fills only
 * these are made. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_read_part(snug_tensor *t, int64_t first, int64_t n,
                                                        void *to, snug_error *err);
/* Lends the bytes, read-only, until as many unpins: pinned bytes are never moved or written. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_pin(snug_tensor *t, snug_view *out, snug_error *err);
SNUG_API void snug_tensor_unpin(snug_tensor *t);
/* Rows [first, first + n) of axis 0: where bytes are there it shares them and records nothing. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_rows(snug_tensor *t, int64_t first, int64_t n,
                                                   snug_tensor **out, snug_error *err);

/* Any row of the operator table, as snug_graph_op; numbers in the attributes are parameters. */
SNUG_API SNUG_CHECKED snug_status snug_record_op(snug_recorder *r, const char *op,
                                                 const char *attributes, snug_tensor *const *inputs,
                                                 int n_in, snug_tensor **outputs, int n_out,
                                                 snug_error *err);

/* --- variables -------------------------------------------------------------------------------- */
typedef struct {
    const char *name; /* copied; need not be unique */
    int not_trainable;
    int is_slot;
} snug_record_variable_options;
/* Starts with the tensor's value, whose making is recorded like any other; dropping a variable
 * frees its bytes. */
SNUG_API SNUG_CHECKED snug_status snug_variable_create(snug_recorder *r, snug_tensor *value,
                                                       const snug_record_variable_options *options,
                                                       snug_variable **out, snug_error *err);
SNUG_API void snug_variable_hold(snug_variable *v);
SNUG_API void snug_variable_drop(snug_variable *v);
SNUG_API const snug_type *snug_variable_type(const snug_variable *v);
SNUG_API const char *snug_variable_name(const snug_variable *v);
SNUG_API int snug_variable_is_trainable(const snug_variable *v);
SNUG_API void snug_variable_set_trainable(snug_variable *v, int trainable);
/* What it holds now, whatever is assigned later. */
SNUG_API SNUG_CHECKED snug_status snug_variable_read(snug_variable *v, snug_tensor **out,
                                                     snug_error *err);
/* Recorded; done at the next run. */
SNUG_API SNUG_CHECKED snug_status snug_variable_assign(snug_variable *v, snug_tensor *value,
                                                       snug_error *err);
/* A row that updates variables (adam, assign_add, moving_average): variables first, then
 * tensors. */
SNUG_API SNUG_CHECKED snug_status snug_variable_update(snug_recorder *r, const char *op,
                                                       const char *attributes,
                                                       snug_variable *const *variables, int n_vars,
                                                       snug_tensor *const *tensors, int n_tensors,
                                                       snug_error *err);

/* --- tapes ------------------------------------------------------------------------------------ */
typedef struct {
    int persistent;
    int not_watching; /* trainable variables that are read are not watched by themselves */
} snug_tape_options;
/* Active at once. */
SNUG_API SNUG_CHECKED snug_status snug_tape_create(snug_recorder *r,
                                                   const snug_tape_options *options,
                                                   snug_tape **out, snug_error *err);
SNUG_API void snug_tape_drop(snug_tape *t); /* lets go of all it keeps */
SNUG_API void snug_tape_stop(snug_tape *t); /* recording; and on again */
SNUG_API SNUG_CHECKED snug_status snug_tape_resume(snug_tape *t, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_tape_watch(snug_tape *t, snug_tensor *x, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_tape_watch_variable(snug_tape *t, snug_variable *v,
                                                           snug_error *err);
/* Forgets what was recorded and watched. */
SNUG_API void snug_tape_reset(snug_tape *t);
/* Trainable variables that were read under it, in that order, lent; returns how many there are. */
SNUG_API size_t snug_tape_watched(const snug_tape *t, snug_variable **out, size_t max);
/* One source: a tensor or a variable, the other NULL. */
typedef struct {
    snug_tensor *tensor;
    snug_variable *variable;
} snug_source;
/* d(sum of targets, each weighted by its seed) / d(source k): NULL in grads[k] where they do not
 * depend on it. seeds NULL, or NULL in it: ones. A tape that is not persistent is used up, also by
 * an error. */
SNUG_API SNUG_CHECKED snug_status snug_tape_gradient(snug_tape *t, snug_tensor *const *targets,
                                                     snug_tensor *const *seeds, int n_targets,
                                                     const snug_source *sources, int n_sources,
                                                     snug_tensor **grads, snug_error *err);

/* Where a gradient is made of lookups alone (rows added up by their numbers, along the first axis):
 * what is added, and to which rows, for up to max of them. *n is 0 where it is not, or has run. The
 * caller drops what it gets. */
SNUG_API SNUG_CHECKED snug_status snug_tensor_slices(snug_tensor *t, snug_tensor **values,
                                                     snug_tensor **indices, int max, int *n,
                                                     snug_error *err);

/* --- traces: one recording, kept and applied many times --------------------------------------- */
/* From begin to end operations go into the trace; nothing in it runs. arguments gets a tensor for
 * each type. Tensors from outside that are used become captures, held by the trace; variables stay
 * themselves. Reading a tensor of an open trace fails with SNUG_E_UNSUPPORTED. Traces nest. */
SNUG_API SNUG_CHECKED snug_status snug_trace_begin(snug_recorder *r, const snug_type *types, int n,
                                                   snug_tensor **arguments, snug_trace **out,
                                                   snug_error *err);
/* The same where extents are open, at most four of them: axes[i].of[k] - 1 says which one axis k of
 * argument i has, 0: its own. A call may have any sizes above 1 there, and has SNUG_E_UNSUPPORTED
 * where the trace cannot tell what follows from them. */
typedef struct {
    unsigned char of[SNUG_MAX_RANK];
} snug_open_axes;
SNUG_API SNUG_CHECKED snug_status snug_trace_begin_open(snug_recorder *r, const snug_type *types,
                                                        const snug_open_axes *axes, int n,
                                                        snug_tensor **arguments, snug_trace **out,
                                                        snug_error *err);
/* Axes of a tensor of such a trace whose extents are open, as bits; and whether a tensor of
 * integers follows from open extents: who looks at it looks at no value. */
SNUG_API uint32_t snug_tensor_open_axes(const snug_tensor *t);
SNUG_API int snug_tensor_is_open(const snug_tensor *t);
/* outputs: what each call gives. */
SNUG_API SNUG_CHECKED snug_status snug_trace_end(snug_trace *t, snug_tensor *const *outputs, int n,
                                                 snug_error *err);
/* Appends the trace to the recording, under the tapes of now, with fresh random keys. A trace whose
 * begin was never ended is dropped with all that was recorded in it. */
SNUG_API SNUG_CHECKED snug_status snug_trace_call(snug_trace *t, snug_tensor *const *arguments,
                                                  int n, snug_tensor **outputs, int n_out,
                                                  snug_error *err);
SNUG_API void snug_trace_drop(snug_trace *t);
SNUG_API int snug_trace_has_effects(const snug_trace *t); /* writes variables */
/* Of a closed one: it may be called only to see what it gives: it writes nothing, draws nothing,
 * and is a few operations on small values. */
SNUG_API int snug_trace_is_light(const snug_trace *t);
SNUG_API int snug_is_tracing(const snug_recorder *r);
SNUG_API int snug_tensor_is_traced(const snug_tensor *t); /* of a trace that is open */

#ifdef __cplusplus
}
#endif
#endif
