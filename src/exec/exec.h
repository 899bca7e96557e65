/* exec.h: run plans. State has one home per variable, shared by all plans; one arena per device, of
 * the largest plan's size, shared by all plans that run there, mapped and populated before the
 * first step.
 *
 *     sn_state *state;     sn_state_create(engine, &state, err);         // homes of variables
 *     sn_executor *x;      sn_executor_create(engine, state, devices, 1, NULL, &x, err);
 *     sn_session *s;       sn_executor_add(x, plan, &s, err);            // any number of plans
 *     sn_executor_prepare(x, err);                                       // memory, kernels
 *     sn_session_bind_input(s, 0, binding);                              // of a feed
 *     sn_session_run(s, err);
 *     snug_view loss;      sn_session_output(s, 0, &loss);
 *
 * Nothing is requested through src/memory in sn_session_run. A run that fails before its first
 * state write, or refuses its values, leaves all variables as they were; where it fails otherwise
 * the model is torn (SNUG_E_TORN from then on until sn_state_mend). */
#ifndef SN_EXEC_EXEC_H
#define SN_EXEC_EXEC_H

#include "exec/gpu.h"
#include "kernels/cpu/cpu.h"
#include "memory/spill.h"
#include "plan/plan.h"

/* --- state ------------------------------------------------------------------------------------ */
typedef struct sn_state sn_state;

SNUG_CHECKED snug_status sn_state_create(snug_engine *e, sn_state **out, snug_error *err);
/* Where homes lie: with a list of devices on the first one; as after create on the processor.
 * Before the first home is added, and once. */
void sn_state_set_device(sn_state *s, const sn_device *d);
void sn_state_destroy(sn_state *s);
/* A new home. Its bytes are made, and filled from the recipe, when a plan or a view wants them
 * first. Names are unique. */
typedef struct {
    const char *name;
    snug_type type;
    bool trainable, slot;
    sn_recipe init;
} sn_home;
SNUG_CHECKED snug_status sn_state_add(sn_state *s, const sn_home *home, uint32_t *id,
                                      snug_error *err);
/* Of a home of this name, on the ledger beside its bytes, at most. */
size_t sn_state_entry_bytes(const char *name);
uint32_t sn_state_count(const sn_state *s);
/* The home of this name; false: there is none. */
bool sn_state_find(const sn_state *s, const char *name, uint32_t *id);
const sn_home *sn_state_home(const sn_state *s, uint32_t id);
size_t sn_state_held(const sn_state *s); /* on the ledger, of homes that have a block */
/* Makes the bytes when they are not there yet. Those of a spilled home are not in memory:
 * SNUG_E_INVALID. Of a home on a GPU it is a copy, which the next run takes back: lent until
 * then. */
SNUG_CHECKED snug_status sn_state_view(sn_state *s, uint32_t id, snug_view *out, snug_error *err);
/* Bytes that are there become those of the recipe again. */
SNUG_CHECKED snug_status sn_state_restart(sn_state *s, uint32_t id, snug_error *err);
/* Copies n bytes from byte `first` of the home on, made when they are not there yet, wherever they
 * lie. */
SNUG_CHECKED snug_status sn_state_read(sn_state *s, uint32_t id, size_t first, size_t n, void *to,
                                       snug_error *err);
SNUG_CHECKED snug_status sn_state_write(sn_state *s, uint32_t id, size_t first, size_t n,
                                        const void *from, snug_error *err);
/* Moves a slot to the state's spill file, which is made in the folder for the first one, and back;
 * between runs, and no view of it may be in use. What is where it should be stays. Only slots:
 * weights are saved and loaded through views. */
SNUG_CHECKED snug_status sn_state_spill(sn_state *s, uint32_t id, const char *folder,
                                        snug_error *err);
SNUG_CHECKED snug_status sn_state_unspill(sn_state *s, uint32_t id, snug_error *err);
bool sn_state_is_spilled(const sn_state *s, uint32_t id);
/* Whether spilled homes lie in a file, and not in pinned memory. */
bool sn_state_on_disk(const sn_state *s);
/* The file of a spilled home, and where it begins there; NULL: the home is not spilled, or pinned
 * (on a GPU). */
sn_spill *sn_state_file(const sn_state *s, uint32_t id, size_t *offset);
/* On a GPU: gives the homes that are wanted (one per home) a place there, all of them in one block;
 * where a home lies (device memory, or pinned while spilled); takes blocks that were looked at back
 * to their places. */
SNUG_CHECKED snug_status sn_state_place(sn_state *s, const bool *wanted, snug_error *err);
void *sn_state_at(const sn_state *s, uint32_t id);
SNUG_CHECKED snug_status sn_state_settle(sn_state *s, snug_error *err);
/* Gives homes n, n + 1, ... back; no session may use them any more. */
void sn_state_truncate(sn_state *s, uint32_t n);
/* Torn: some variables belong to one moment and some to another; plans refuse to run until
 * mended. */
bool sn_state_torn(const sn_state *s);
void sn_state_tear(sn_state *s);
void sn_state_mend(sn_state *s);

/* Device memory that a run of the plan may take beside its own: libraries, captured runs. d: less
 * what libraries have taken there already; NULL: they have taken nothing yet. */
size_t sn_gpu_reserve(const sn_gpu_device *d, const sn_plan *plan);
/* That a captured run would hold, about; 0: too many, the plan's runs are not captured. */
size_t sn_gpu_kernels(const sn_plan *plan);

/* --- executor --------------------------------------------------------------------------------- */
typedef struct sn_executor sn_executor;
typedef struct sn_session sn_session;

typedef struct {
    bool guard; /* arenas end at an inaccessible page */
    int poison; /* >= 0: fill arenas with this byte before each run (tests); -1: leave. 0 in a
                   zeroed struct is legal: use poison_set */
    bool poison_set;
    const char *spill_folder; /* for files and homes that plans spill; lent; NULL: they may not */
    bool alone;               /* kernels run on the calling thread alone */
    bool gives; /* idle arenas may be taken for others of the engine: outputs are not looked at
                   after that, and prepare is called before each use (sn_executor_is_ready) */
} sn_executor_options;

/* devices (copied) are those the plans name, processors and GPUs in any mixture; two descriptions
 * of the host may pose as two devices. The homes of variables lie on the first. o NULL: none
 * set. */
SNUG_CHECKED snug_status sn_executor_create(snug_engine *e, sn_state *state,
                                            const sn_device *const *devices, int n_devices,
                                            const sn_executor_options *o, sn_executor **out,
                                            snug_error *err);
void sn_executor_destroy(sn_executor *x); /* sessions too; gives every byte back */
/* Another folder from now on; as in the options. */
void sn_executor_spill_to(sn_executor *x, const char *folder);
/* The plan (lent) must outlive the executor. Before prepare, or after it: then it must fit the
 * arena there is, or prepare is called again. */
SNUG_CHECKED snug_status sn_executor_add(sn_executor *x, const sn_plan *plan, sn_session **out,
                                         snug_error *err);
/* Takes a plan out again; the arena keeps its size until the next prepare that needs another. */
void sn_executor_remove(sn_executor *x, sn_session *s);
SNUG_CHECKED snug_status sn_executor_prepare(sn_executor *x, snug_error *err);
/* What other executors of the engine would give where it has no room; between use and unuse the
 * arenas of this one are not theirs to take. */
size_t sn_executor_others(const sn_executor *x);
bool sn_executor_take_others(const sn_executor *x); /* they give it; false: there was nothing */
void sn_executor_use(sn_executor *x);
void sn_executor_unuse(sn_executor *x);
/* Whether no prepare is needed before a use; what is there stays until then: it is taken by the
 * calling thread alone. */
bool sn_executor_is_ready(sn_executor *x);
/* Gives the arenas back; the next prepare makes those that the plans there are then need. */
void sn_executor_forget(sn_executor *x);
/* Arena of a memory of the plan's numbering, for tests and reports. */
snug_view sn_executor_arena(const sn_executor *x, uint32_t memory);
size_t sn_executor_booked(const sn_executor *x); /* of arenas, on the ledger */

/* How rows of an input come: fill(ctx, first_row, n_rows, view). Lent; bound until changed. recipe
 * (NULL: never): whether the rows from first_row on are the elements of one, and from which on; a
 * device may make these itself, and those of foreign memory may be read there all through a run. */
typedef struct {
    void *ctx;
    snug_feed_fill_fn fill;
    bool (*recipe)(void *ctx, int64_t first_row, sn_recipe *out, uint64_t *first);
} sn_input_binding;
void sn_session_bind_input(sn_session *s, uint32_t input, sn_input_binding b);
/* Of a graph that has its inputs and outputs outside: the bytes of a variable, of an input, or
 * where an output goes; lent for the next run. Values that share bytes (plan->root) are bound
 * together. */
void sn_session_bind_variable(sn_session *s, sn_var var, void *data);
void sn_session_bind_value(sn_session *s, sn_value v, void *data);
/* Of a variable that the plan spills: where it lies in a file. */
void sn_session_bind_file(sn_session *s, sn_var var, sn_spill *file, size_t offset);
/* Whether the plan touches the variable: one that it does not need not be bound. */
bool sn_session_uses(const sn_session *s, sn_var var);
/* What the session of a plan takes of memory, about. */
size_t sn_session_bytes(const sn_plan *p);
/* What each step of a plan of the graph takes with its session, by its nodes, whatever is fed; and
 * what a plan of so many bytes and its session take beside: the rest of their last blocks. */
size_t sn_session_step_bytes(const sn_graph *g);
size_t sn_session_rest_bytes(size_t bytes);
bool sn_session_is_ready(const sn_session *s); /* no prepare is needed before a run */
void sn_session_set_real(sn_session *s, sn_param p, double v);
void sn_session_set_key(sn_session *s, sn_param p, int64_t v);
/* Asked between steps, before the first state write only; true stops with SNUG_E_INTERRUPTED. */
void sn_session_set_interrupt(sn_session *s, bool (*asked)(void *ctx), void *ctx);
/* Runs in which a check_finite of the part UPDATE refuses its values end well: what of that part
 * writes variables does not run, all else does. Whether the last run passed it over. */
void sn_session_set_passes(sn_session *s, bool passes);
bool sn_session_passed_over(const sn_session *s);
/* On a GPU: called once in the next run, when the device has work and before it is waited for. */
void sn_session_set_meanwhile(sn_session *s, void (*meanwhile)(void *ctx), void *ctx);
/* On a GPU: feeds of the next run go there while one is under way, where it has room for both.
 * Whether that is new, and prepare must be called. Then before each run: whether its inputs are
 * those that came ahead, and a function that binds the inputs of the run after it, or says that
 * there is none; it is called in the run, and may not be. */
bool sn_session_want_next(sn_session *s);
void sn_session_set_next(sn_session *s, bool came, bool (*next)(void *ctx), void *ctx);
/* Whether what such a function bound in the last run has come. */
bool sn_session_has_next(const sn_session *s);
SNUG_CHECKED snug_status sn_session_run(sn_session *s, snug_error *err);
/* The node whose step made the last run fail; SN_NO_NODE: no node's did. */
sn_node sn_session_failed(const sn_session *s);
/* Lent until the next run on the arena. */
void sn_session_output(const sn_session *s, uint32_t output, snug_view *out);

/* The naive executor: an own buffer per value until its last reader, reference or fast kernels, no
 * plan. The oracle of the tests, and the second pass that finds the node that made a NaN (visit is
 * called after each node; non-OK stops). Variables are not written unless write_state. */
typedef struct {
    bool reference_only;
    bool write_state;
    const sn_device *const *devices; /* with `placed`, per node: which of them runs it; NULL: the */
    const uint16_t *placed;          /* processor runs everything */
    const sn_scalar *params;         /* NULL: defaults */
    const sn_input_binding *inputs;
    snug_status (*visit)(void *ctx, sn_node node, const snug_view *outs, int n_outs,
                         snug_error *err);
    void *ctx;
    snug_view *outputs; /* NULL, or n_outputs views of the caller's memory: results go there */
} sn_naive_options;
SNUG_CHECKED snug_status sn_naive_run(snug_engine *e, const sn_graph *g, sn_state *state,
                                      const sn_naive_options *o, snug_error *err);

#endif
