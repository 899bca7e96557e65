/* train.h: fit, evaluate, predict, and knowing before the first step what they will use.
 *
 *     snug_model_plan_info info;
 *     snug_model_plan(model, &(snug_plan_request){.batch = 64, .train = 1}, &info, &err);
 *     printf("%zu bytes\n", info.peak_bytes);
 *
 *     snug_fit_options fit = {.x = x, .y = y, .epochs = 5, .batch = 64, .shuffle = 1};
 *     snug_fit(model, &fit, &result, &err);
 *
 * fit makes all its plans (full batch, remainder, validation and its remainder) before step 1 and
 * requests nothing more from the allocator while it trains. A step is atomic: an interrupt or a NaN
 * loss is honoured before its first state write. */
#ifndef SNUG_TRAIN_H
#define SNUG_TRAIN_H

#include <snug/dataset.h>
#include <snug/model.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SNUG_MAX_METRICS 32 /* values beside the loss */

/* --- the plan --------------------------------------------------------------------------------- */
typedef struct {
    int64_t batch;
    int train; /* 0: predict */
    size_t
        budget_bytes; /* for the whole process; 0: the engine's (snug_budget), which may be none */
    int best;         /* search longer, for up to a minute */
    int quick; /* where the step fits: do not look for the smallest budget, which takes longer
                  than the plan */
    size_t pipeline_bytes; /* that input pipelines may hold beside the step; 0: what those at work
                              may (snug_pipeline_limit) */
    snug_dataset *dataset; /* instead: pipelines that this one needs, whose first batch is asked
                              for, as by fit; NULL: none */
    /* Training: what fit will be given beside x and y. */
    const char *class_weight; /* as in snug_fit_options */
    int n_sample_weights;
    const snug_type *sample_weights; /* of their feeds; NULL: a number per example each */
} snug_plan_request;

/* All sizes in bytes. peak = process + weights + optimizer + arena + books; what is left of a
 * budget beside peak, reserve and later is spare. Where the step does not fit, everything but fits,
 * budget and floor is that of the smallest plan there is. */
typedef struct {
    int fits;             /* 1 without a budget */
    size_t budget_bytes;  /* 0: none */
    size_t floor_bytes;   /* the smallest budget that would do; 0: none asked for, or quickly, and
                             the step fits */
    double floor_seconds; /* a step there */
    size_t peak_bytes;    /* expected of the whole process */
    size_t process_bytes; /* code, libraries, stacks, page tables: expected */
    size_t reserve_bytes; /* booked beside, for what the process may still need */
    size_t later_bytes;   /* and for steps that fit plans later: validation, a batch's remainder */
    size_t weights_bytes, optimizer_bytes;
    size_t arena_bytes, lower_bound_bytes; /* packing gap = arena / lower bound - 1 */
    size_t input_bytes, activation_bytes, gradient_bytes, workspace_bytes,
        output_bytes;               /* in the arena at its peak */
    size_t books_bytes;             /* graph, plan, sessions, names: all else on the ledger */
    size_t graph_bytes, plan_bytes; /* of them */
    size_t pipeline_bytes;          /* of them: input pipelines, and what they may still take */
    int64_t slices;                 /* pieces the batch runs in; 1: whole */
    size_t recomputed;              /* runs of operators beyond the first */
    size_t spilled_bytes;           /* that wait in a file */
    double again_seconds;           /* of the step: those runs */
    double spill_seconds;           /* of the step: copies of slots that it waits for */
    double step_seconds;            /* expected */
    double plain_seconds;           /* of a step without a limit, and its arena at least */
    size_t plain_arena_bytes;
    size_t n_nodes, n_steps;
    double flops;           /* per step */
    const char *peak_layer; /* layer and operator where the arena binds; lent until the next plan */
    const char *peak_operator;
    /* On a GPU, where all the above is of its memory: what the step needs of the host, and whether
     * that is within the engine's budget (snug_budget). Zeros else, and host_fits is 1. */
    int host_fits;
    size_t host_budget_bytes;  /* 0: none */
    size_t host_process_bytes; /* process, graph, plan, session */
    size_t host_pinned_bytes;  /* feeds and outputs on their way */
    size_t host_spilled_bytes; /* waits there because the device has no room */
    /* Of the device's memory, out of what is spare: batches from the host, this one and the next,
     * which comes while a step runs. 0: no room for that, or batches are too large. */
    size_t next_batch_bytes;
} snug_model_plan_info;

/* Of the step planned last on a GPU: "cuDNN not found: own kernels, about 12x slower", or "" where
 * no library is missing that it would use. */
SNUG_API SNUG_CHECKED snug_status snug_model_missing(snug_model *model, char *text, size_t size,
                                                     snug_error *err);

/* The verdict on a step, before anything is read or run. A budget that is too small is no error
 * here: fits is 0. */
SNUG_API SNUG_CHECKED snug_status snug_model_plan(snug_model *model,
                                                  const snug_plan_request *request,
                                                  snug_model_plan_info *out, snug_error *err);

/* The trade of memory for time: budgets that no other beats in both, the largest and fastest first.
 * Writes at most max points (of about a dozen) and says in *n how many. */
typedef struct {
    size_t budget_bytes; /* the smallest that gives this step; one that does where it spills */
    int64_t slices;
    size_t n_steps; /* of the plan: more than the others have where operators run again */
    double step_seconds;
    size_t spilled_bytes; /* that wait in a file (snug_spill) */
} snug_curve_point;
SNUG_API SNUG_CHECKED snug_status snug_model_curve(snug_model *model,
                                                   const snug_plan_request *request,
                                                   snug_curve_point *points, size_t max, size_t *n,
                                                   snug_error *err);

/* Plans the training step that fit will need for full batches, within the engine's budget, so that
 * a budget that is too small (SNUG_E_BUDGET) is known before any data is looked at. Of the request
 * the batch and what examples are weighted by count. */
SNUG_API SNUG_CHECKED snug_status snug_fit_check(snug_model *model,
                                                 const snug_plan_request *request, snug_error *err);

/* The plan of a step as text, one line per step of it; and a training step of this batch that is
 * to run by a file of such text from now on, whatever plan the budget would give. It is checked
 * when the step is made: one of another model, batch, machine or version is refused
 * (SNUG_E_INVALID), a broken one (SNUG_E_FORMAT), and one that is expected to need more than the
 * budget (SNUG_E_BUDGET). */
SNUG_API SNUG_CHECKED snug_status snug_model_plan_text(snug_model *model,
                                                       const snug_plan_request *request,
                                                       const snug_writer *out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_model_pin_plan(snug_model *model, int64_t batch,
                                                      const char *path, snug_error *err);

/* --- reports, as text or JSON (report room) --------------------------------------------------- */
/* style bits */
#define SNUG_REPORT_JSON  1
#define SNUG_REPORT_COLOR 2
#define SNUG_REPORT_STEPS 4 /* plan: the plan as text, one line per step, after the tables */
/* SNUG_E_BUDGET after the report of a step that does not fit. */
SNUG_API SNUG_CHECKED snug_status snug_report_plan(snug_model *model,
                                                   const snug_plan_request *request, int style,
                                                   const snug_writer *out, snug_error *err);
/* What the step takes and costs in each precision (snug_model_set_precision) that the model can
 * have, beside f32. The model's own stays; its steps are planned anew. */
SNUG_API SNUG_CHECKED snug_status snug_report_precisions(snug_model *model,
                                                         const snug_plan_request *request,
                                                         int style, const snug_writer *out,
                                                         snug_error *err);
/* The trade as a table, or as JSON; and as a page with pictures: the trade, the plan by category,
 * and the arena from step to step. */
SNUG_API SNUG_CHECKED snug_status snug_report_curve(snug_model *model,
                                                    const snug_plan_request *request, int style,
                                                    const snug_writer *out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_report_page(snug_model *model,
                                                   const snug_plan_request *request,
                                                   const snug_writer *out, snug_error *err);
/* Keras' model.summary() */
SNUG_API SNUG_CHECKED snug_status snug_report_summary(snug_model *model, int style,
                                                      const snug_writer *out, snug_error *err);
/* Where the memory went: the ledger's rows, the process as the system counts it. */
SNUG_API SNUG_CHECKED snug_status snug_report_memory(snug_engine *engine, int style,
                                                     const snug_writer *out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_report_ops(int style, const snug_writer *out,
                                                  snug_error *err);
/* The layer classes with their settings and defaults. */
SNUG_API SNUG_CHECKED snug_status snug_report_layers(int style, const snug_writer *out,
                                                     snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_report_doctor(snug_engine *engine, int style,
                                                     const snug_writer *out, snug_error *err);

/* --- how fast this machine is ----------------------------------------------------------------- */
/* Plans are compared by expected time, which comes from rates: built in, or measured here. Both
 * calls are about one small text file in `folder`, one per processor, instruction set and number of
 * threads; of an engine with a GPU one per card. Nothing else reads or writes it. Results never
 * depend on rates, only which plan is taken.
 *
 * Measures for a few seconds (about 60 MB; 64 MiB in a spill file), says each rate to `out` as it
 * is known, makes the folder, writes the file, and sets the engine's rates. */
SNUG_API SNUG_CHECKED snug_status snug_calibrate(snug_engine *engine, const char *folder,
                                                 const snug_writer *out, snug_error *err);
/* The engine's rates become those of the file; for models made afterwards. *found 0: there is none,
 * and the built-in rates stay. SNUG_E_FORMAT: the file is broken. */
SNUG_API SNUG_CHECKED snug_status snug_rates_load(snug_engine *engine, const char *folder,
                                                  int *found, snug_error *err);

/* --- training --------------------------------------------------------------------------------- */
/* State of the run, lent to callbacks. Values are means over the epoch so far; index 0 is the loss,
 * then losses of several outputs and the model's metrics. */
typedef struct {
    int epoch, n_epochs;   /* from 0 */
    int64_t step, n_steps; /* done in this epoch; of how many, 0: nobody knows yet */
    int n_values;
    const char *names[1 + SNUG_MAX_METRICS];
    double values[1 + SNUG_MAX_METRICS];
    int has_validation; /* in on_epoch_end: val_values are there */
    double val_values[1 + SNUG_MAX_METRICS];
    snug_model *model;
} snug_progress;

/* Any may be NULL. Returning SNUG_E_INTERRUPTED stops training cleanly after this step (fit returns
 * SNUG_OK and result.stopped is set); any other error stops and is passed on. A callback may
 * evaluate or predict with the model, save and load weights and set the learning rate; adding
 * layers and compiling are refused until the run is over. */
typedef struct {
    void *ctx;
    snug_status (*on_epoch_begin)(void *ctx, const snug_progress *p, snug_error *err);
    snug_status (*on_step_end)(void *ctx, const snug_progress *p, snug_error *err);
    snug_status (*on_epoch_end)(void *ctx, const snug_progress *p, snug_error *err);
    void (*destroy)(void *ctx);
} snug_callback;

/* Ready-made ones; destroy frees. Quantities are names such as "val_loss", "accuracy".
 *
 * History keeps what each epoch of the newest fit gave; *history is lent until destroy. */
typedef struct snug_history snug_history;
SNUG_API SNUG_CHECKED snug_status snug_callback_history(snug_engine *e, snug_history **history,
                                                        snug_callback *out, snug_error *err);
SNUG_API size_t snug_history_epochs(const snug_history *history); /* finished */
/* Epochs count from 0. NaN where that epoch had no validation. */
SNUG_API SNUG_CHECKED snug_status snug_history_value(const snug_history *history,
                                                     const char *quantity, size_t epoch,
                                                     double *out, snug_error *err);
/* Stops after `patience` epochs without an improvement by more than min_delta; counts anew in each
 * fit. */
SNUG_API SNUG_CHECKED snug_status snug_callback_early_stopping(snug_engine *e, const char *quantity,
                                                               int patience, double min_delta,
                                                               snug_callback *out, snug_error *err);
/* Saves the weights after each epoch that is better than all before it, in this fit and earlier
 * ones. */
SNUG_API SNUG_CHECKED snug_status snug_callback_best_weights(snug_engine *e, const char *quantity,
                                                             const char *path, snug_callback *out,
                                                             snug_error *err);
/* One line per epoch behind a line of names; written to disk before the next epoch starts. */
SNUG_API SNUG_CHECKED snug_status snug_callback_csv(snug_engine *e, const char *path,
                                                    snug_callback *out, snug_error *err);
/* rate(ctx, epoch, current) at the start of each epoch */
SNUG_API SNUG_CHECKED snug_status
snug_callback_schedule(snug_engine *e, double (*rate)(void *ctx, int epoch, double current),
                       void *ctx, snug_callback *out, snug_error *err);

/* Keras' ReduceLROnPlateau: after `patience` epochs without an improvement by more than min_delta
 * the learning rate is multiplied by factor; counts anew in each fit. An optimizer with a schedule
 * cannot have it. Zeros, or options NULL, mean the defaults. */
typedef struct {
    double factor;    /* 0.1 */
    int patience;     /* 10 */
    double min_delta; /* 1e-4 */
    int cooldown;     /* 0: epochs after a reduction that do not count */
    double min_rate;  /* 0 */
} snug_plateau_options;
SNUG_API SNUG_CHECKED snug_status snug_callback_reduce_on_plateau(
    snug_engine *e, const char *quantity, const snug_plateau_options *options, snug_callback *out,
    snug_error *err);

/* Feeds of a model with several inputs or outputs, in the model's order; all lent, all with the
 * same rows. */
typedef struct {
    snug_feed *const *x;
    int n_x;
    snug_feed *const *y; /* NULL for an output without a loss */
    int n_y;
    snug_feed *const *sample_weight; /* one for all outputs, or one each */
    int n_sample_weights;            /* 0: none */
} snug_data;

/* A sample weight is a number per example, or per step of it ([rows] or [rows, steps]): its loss
 * counts that many times; the mean is still over the number of examples, as in Keras. */
typedef struct {
    snug_feed *x, *y;                             /* lent */
    snug_feed *val_x, *val_y;                     /* lent, or NULL */
    const snug_data *data, *val_data;             /* instead of the four above, or NULL */
    snug_feed *sample_weight, *val_sample_weight; /* lent, or NULL; data has its own */
    const char *class_weight; /* "0=1,1=3.5": weights by label; not with sample weights */
    /* Instead of feeds: batches whose parts are the model's inputs, its targets and, if any, sample
     * weights. Lent. An epoch is one iteration, or steps_per_epoch batches, which go on from epoch
     * to epoch. batch and shuffle are the dataset's own business. */
    snug_dataset *dataset, *val_dataset;
    int64_t steps_per_epoch, val_steps; /* 0: all there are */
    double validation_split;            /* last part of x and y, as Keras does; 0: none */
    int epochs;                         /* 0: 1 */
    int64_t batch;                      /* 0: 32 */
    int shuffle;                        /* deterministic by seed and epoch */
    uint64_t seed;                      /* shuffling and dropout */
    const snug_callback *callbacks;
    size_t n_callbacks;
    int (*interrupted)(
        void *ctx); /* asked between operators up to the first state write, and between steps */
    void *interrupt_ctx;
} snug_fit_options;

typedef struct {
    int epochs;    /* finished */
    int64_t steps; /* all steps run */
    int stopped;   /* by an interrupt or a callback */
    int n_values;
    double values[1 + SNUG_MAX_METRICS]; /* of the last epoch */
    double val_values[1 + SNUG_MAX_METRICS];
    size_t arena_bytes;
    size_t predicted_bytes; /* peak of the whole process, as expected before the first step */
    double input_seconds;   /* that steps waited for a dataset's batches */
} snug_fit_result;

SNUG_API SNUG_CHECKED snug_status snug_fit(snug_model *model, const snug_fit_options *options,
                                           snug_fit_result *out, snug_error *err);

typedef struct {
    snug_feed *x, *y;               /* y NULL for predict */
    const snug_data *data;          /* instead of x and y, or NULL */
    snug_dataset *dataset;          /* instead of those, as in snug_fit_options; lent */
    int64_t steps;                  /* of it; 0: all there are */
    snug_feed *sample_weight;       /* of evaluate; or NULL */
    int64_t batch;                  /* 0: 32 */
    const snug_callback *callbacks; /* on_step_end only */
    size_t n_callbacks;
    int (*interrupted)(void *ctx);
    void *interrupt_ctx;
} snug_run_options;

/* values[0] = loss, then metrics; n_values of them. */
SNUG_API SNUG_CHECKED snug_status snug_evaluate(snug_model *model, const snug_run_options *options,
                                                double *values, int *n_values, snug_error *err);
/* rows(ctx, first_row, view) gets the outputs batch by batch; nothing is collected. The view is
 * lent until rows returns or runs the model itself. */
SNUG_API SNUG_CHECKED snug_status snug_predict(snug_model *model, const snug_run_options *options,
                                               snug_status (*rows)(void *ctx, int64_t first_row,
                                                                   const snug_view *view,
                                                                   snug_error *err),
                                               void *ctx, snug_error *err);
/* The same for any number of outputs: each batch gives each output once, in order. */
SNUG_API SNUG_CHECKED snug_status
snug_predict_outputs(snug_model *model, const snug_run_options *options,
                     snug_status (*rows)(void *ctx, int output, int64_t first_row,
                                         const snug_view *view, snug_error *err),
                     void *ctx, snug_error *err);
/* After SNUG_E_NUMERIC, while the feeds of that fit are still there: runs the failed step once
 * more, checking the weights, the batch and what each layer makes; names the layer, operator and
 * first bad value in text. */
SNUG_API SNUG_CHECKED snug_status snug_model_find_nan(snug_model *model, char *text, size_t size,
                                                      snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
