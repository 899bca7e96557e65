/* model.h: networks by layer, with Keras' names, defaults and numerics, or by a graph of your own.
 *
 *     snug_model *model;
 *     snug_model_create(engine, "mlp", &(snug_type){SNUG_F32, 1, {784}}, &model, &err);
 *     snug_model_add(model, "Dense", "units=64 activation=relu", &err);
 *     snug_model_add(model, "Dense", "units=10 activation=softmax", &err);
 *     snug_model_compile(model, &(snug_compile){.optimizer = "adam:lr=1e-3",
 *                                               .loss = "sparse_categorical_crossentropy",
 *                                               .metrics = "accuracy"}, &err);
 *     snug_fit(model, &options, &result, &err);  // train.h
 *     snug_model_save_weights(model, "mlp.safetensors", &err);
 *     snug_model_destroy(model);
 *
 * snug_model_load makes the model from a file of Keras instead. */
#ifndef SNUG_MODEL_H
#define SNUG_MODEL_H

#include <snug/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_model snug_model;

/* The JSON that Keras' model.to_json() writes (Keras 3 and tf.keras 2): Sequential or Functional; or
 * the text of a graph (snug_model_from_graph).
 * An unknown layer is refused by name with those most like it. Compile settings in the file are
 * taken over. */
SNUG_API SNUG_CHECKED snug_status snug_model_load(snug_engine *engine, const char *path,
                                                  snug_model **out, snug_error *err);
/* The same for a model whose file leaves axes of its inputs open: shapes of an example, "96,96,3"
 * or "left=96,96,3;right=10". */
SNUG_API SNUG_CHECKED snug_status snug_model_load_shaped(snug_engine *engine, const char *path,
                                                         const char *shapes, snug_model **out,
                                                         snug_error *err);

/* An empty Sequential model; `input` is one example's type, without the batch axis. */
SNUG_API SNUG_CHECKED snug_status snug_model_create(snug_engine *engine, const char *name,
                                                    const snug_type *input, snug_model **out,
                                                    snug_error *err);
/* A model of your own graph (graph.h) instead of layers: its inputs, outputs and variables are the
 * model's, with their names and starts, and its owners of nodes its layers. The first axis of inputs
 * and outputs is the batch, best left open (-1); one that is fixed is the only batch that runs. The
 * loss, its gradients and the optimizer are added by the model; assign and moving_average may stand
 * in the graph and happen at the end of each step that trains.
 *
 * training: the same inputs, outputs and variables, computed as in steps that train, where that
 * differs (batch normalisation); NULL: as `graph`, whose dropout then acts in those steps only. Both
 * are copied. A name of NULL is "graph". snug_model_load reads such graphs from a file, too, in the
 * form that snug_graph_print gives them, the training graph behind the other. */
SNUG_API SNUG_CHECKED snug_status snug_model_from_graph(const snug_graph *graph,
                                                        const snug_graph *training,
                                                        const char *name, snug_model **out,
                                                        snug_error *err);
/* Appends a layer: Keras' class name and "key=value ..." of its configuration ("filters=32
 * kernel_size=3,3"), also name= and trainable=. After an error the model is what it was; after
 * success the optimizer starts anew. */
SNUG_API SNUG_CHECKED snug_status snug_model_add(snug_model *model, const char *layer,
                                                 const char *config, snug_error *err);
SNUG_API void snug_model_destroy(snug_model *model);

/* Texts; NULL keeps what is set (at first: what the file says, else adam, mse, no metrics).
 * Optimizer: NAME or NAME:key=value,... ("sgd:learning_rate=0.1,momentum=0.9"; lr is short for
 * learning_rate). metrics: comma separated. weighted_metrics see sample weights; metrics do not.
 *
 * A model of several outputs takes loss, loss_weights and metrics for all of them ("mse"), in their
 * order ("mse;none;mae", none: nothing is asked of it) or by name ("a=mse;b=huber:delta=2"). */
typedef struct {
    const char *optimizer;
    const char *loss;
    const char *metrics;
    const char *loss_weights;
    const char *weighted_metrics;
    const char *precision; /* as snug_model_set_precision takes it */
} snug_compile;
SNUG_API SNUG_CHECKED snug_status snug_model_compile(snug_model *model, const snug_compile *compile,
                                                     snug_error *err);
/* snug_model_load_shaped for a file whose compile settings Snug may not know, such as a loss that
 * is Python code: what is given here counts instead where the file's own are refused. A precision
 * counts always. */
SNUG_API SNUG_CHECKED snug_status snug_model_load_with(snug_engine *engine, const char *path,
                                                       const char *shapes,
                                                       const snug_compile *instead,
                                                       snug_model **out, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_model_set_learning_rate(snug_model *model, double rate,
                                                               snug_error *err);
SNUG_API double snug_model_learning_rate(const snug_model *model);

/* Initial weights are a function of this seed (default 0) and the variable's name; call before
 * anything uses weights. */
SNUG_API SNUG_CHECKED snug_status snug_model_set_seed(snug_model *model, uint64_t seed,
                                                      snug_error *err);
/* What layers without a dtype policy of their own go by: "f32" (default), "f64", "bf16" or "f16" for
 * variables and computation, "mixed_bf16" or "mixed_f16" for computation beside variables of f32;
 * Keras' names of policies ("mixed_bfloat16") too. Losses and metrics are f32 where outputs are
 * halves. What changes the type of variables comes before anything uses weights. */
SNUG_API SNUG_CHECKED snug_status snug_model_set_precision(snug_model *model, const char *precision,
                                                           snug_error *err);
/* "f32" or "f64" by its dtype. */
SNUG_API SNUG_CHECKED snug_status snug_model_set_dtype(snug_model *model, snug_dtype dtype,
                                                       snug_error *err);

/* --- looking inside; strings are lent --------------------------------------------------------- */
SNUG_API snug_engine *snug_model_engine(const snug_model *model);
SNUG_API const char *snug_model_name(const snug_model *model);
SNUG_API const char *
snug_model_optimizer(const snug_model *model); /* as text, e.g. "adam:learning_rate=0.001" */
SNUG_API const char *snug_model_loss(const snug_model *model);
/* What is measured beside the loss: losses of several outputs ("a_loss"), then metrics. */
SNUG_API size_t snug_model_n_metrics(const snug_model *model);
SNUG_API const char *snug_model_metric_name(const snug_model *model, size_t i); /* "accuracy" */

typedef struct {
    const char *name; /* "conv2d" */
    const char *type; /* "Conv2D" */
    snug_type output; /* dims[0] = -1: the batch */
    int64_t n_params, n_trainable;
} snug_layer_info;
SNUG_API size_t snug_model_n_layers(const snug_model *model);
SNUG_API void snug_model_layer(const snug_model *model, size_t i, snug_layer_info *out);
SNUG_API const snug_type *snug_model_input(const snug_model *model); /* with dims[0] = -1 */
SNUG_API const snug_type *snug_model_output(const snug_model *model);
/* The type of y the loss wants for this model (dims[0] = -1); integers for sparse losses. */
SNUG_API void snug_model_target(const snug_model *model, snug_type *out);
/* Of models with several inputs or outputs; the functions above are of the first. */
SNUG_API size_t snug_model_n_inputs(const snug_model *model);
SNUG_API size_t snug_model_n_outputs(const snug_model *model);
SNUG_API const char *snug_model_input_name(const snug_model *model, size_t i); /* may be "" */
SNUG_API const char *snug_model_output_name(const snug_model *model, size_t i);
SNUG_API const snug_type *snug_model_input_at(const snug_model *model, size_t i);
SNUG_API const snug_type *snug_model_output_at(const snug_model *model, size_t i);
/* 0 when output i has no loss: no y is read for it. */
SNUG_API int snug_model_target_at(const snug_model *model, size_t i, snug_type *out);

/* Weights in Keras' order (not the optimizer's slots): name "conv2d/kernel", view to read or write;
 * of a model on a GPU it is a copy, lent until the next run, which takes it back. */
SNUG_API size_t snug_model_n_weights(const snug_model *model);
SNUG_API SNUG_CHECKED snug_status snug_model_weight(snug_model *model, size_t i, const char **name,
                                                    snug_view *view, snug_error *err);
/* safetensors; a tensor's name is layer / sub-layers / variable; on loading a short form is
 * accepted when unique. Saving writes a temporary file and renames it: the old file stays whole
 * until the new one is. A file of another model changes nothing; one that cannot be read to its end
 * leaves the model torn (SNUG_E_TORN) until a file is loaded. */
SNUG_API SNUG_CHECKED snug_status snug_model_save_weights(snug_model *model, const char *path,
                                                          snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_model_load_weights(snug_model *model, const char *path,
                                                          snug_error *err);
/* Stateful recurrent layers begin at zeros again, as before the first batch. */
SNUG_API SNUG_CHECKED snug_status snug_model_reset_states(snug_model *model, snug_error *err);

/* --- files that are whole or not there -------------------------------------------------------- */
/* A file that the caller writes: made under a name of its own beside `path`, which no other writer
 * has; commit syncs it, renames it to `path` and syncs the folder, so that `path` holds the old
 * file or the whole new one, whoever writes it at the same time. Links are followed, a device or a
 * pipe is written to itself. destroy without commit leaves nothing behind; NULL is legal. */
typedef struct snug_file snug_file;
SNUG_API SNUG_CHECKED snug_status snug_file_create(snug_engine *engine, const char *path,
                                                   snug_file **out, snug_error *err);
SNUG_API const char *snug_file_name(const snug_file *f); /* to open and write; lent */
SNUG_API SNUG_CHECKED snug_status snug_file_commit(snug_file *f, snug_error *err);
SNUG_API void snug_file_destroy(snug_file *f);

/* The tensors of a .safetensors file, in the order of their places. The file is checked to its end
 * before the first is read: no gap, no overlap, sizes that fit shapes (SNUG_E_FORMAT). It is refused
 * where it holds more than `most` tensors, or a header that is too long for so many (0: any). */
typedef struct snug_safetensors snug_safetensors;
SNUG_API SNUG_CHECKED snug_status snug_safetensors_open(snug_engine *engine, const char *path,
                                                        size_t most, snug_safetensors **out,
                                                        snug_error *err);
SNUG_API size_t snug_safetensors_count(const snug_safetensors *file);
/* Lent until close. SNUG_E_INVALID: there are not so many. */
SNUG_API SNUG_CHECKED snug_status snug_safetensors_at(const snug_safetensors *file, size_t i,
                                                      const char **name, snug_type *type,
                                                      snug_error *err);
/* Into a view of the same dims; floats are converted to its dtype. */
SNUG_API SNUG_CHECKED snug_status snug_safetensors_read(snug_safetensors *file, size_t i,
                                                        const snug_view *to, snug_error *err);
SNUG_API void snug_safetensors_close(snug_safetensors *file); /* NULL is legal */

/* --- files for people: what is in it, and arrays out ------------------------------------------ */
/* One line per thing in a model JSON, .safetensors, .npy or idx file (also .gz). */
SNUG_API SNUG_CHECKED snug_status snug_inspect(snug_engine *engine, const char *path, int as_json,
                                               const snug_writer *out, snug_error *err);
/* An .npy file written row by row: never whole in memory. commit makes it appear under its name;
 * destroy without commit leaves nothing behind. Rows SNUG_UNKNOWN (dataset.h): as many as come. */
typedef struct snug_npy_writer snug_npy_writer;
SNUG_API SNUG_CHECKED snug_status snug_npy_create(snug_engine *engine, const char *path,
                                                  const snug_type *type, snug_npy_writer **out,
                                                  snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_npy_append(snug_npy_writer *w, const void *rows,
                                                  size_t bytes, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_npy_commit(snug_npy_writer *w, snug_error *err);
SNUG_API void snug_npy_destroy(snug_npy_writer *w);

/* Generated data sets: "shapes" (32x32x3 u8 pictures, 8 classes: x_train.npy, y_train.npy,
 * x_test.npy, y_test.npy) and "blobs" (points around centres). Writes into an existing or new
 * folder. */
typedef struct {
    int64_t n_train, n_test; /* 0: 8000 and 2000 */
    uint64_t seed;
} snug_make_data_options;
SNUG_API SNUG_CHECKED snug_status snug_make_data(snug_engine *engine, const char *kind,
                                                 const char *folder,
                                                 const snug_make_data_options *options,
                                                 snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
