/* program.h: a function on elements of a pipeline: calls of rows of the function table
 * (function.h) and of the data table (data_ops.h), written down once and repeated by any thread.
 *
 *     snug_program *p;
 *     snug_program_create(engine, snug_dataset_spec(d), 7, &p, &err);   // slots 0 .. n-1
 *     const snug_argument args[2] = {{.kind = SNUG_ARG_SLOT, .integer = 0},
 *                                    {.kind = SNUG_ARG_REAL, .real = 1 / 255.0}};
 *     snug_program_call(p, multiply, args, 2, &slot, 1, &n_out, &err);
 *     snug_program_give(p, &slot, 1, &err);
 *     snug_program_mapper(p, &mapper);
 *     snug_dataset_map(d, &mapper, &options, &d, &err);
 *
 * A call is repeated with the element's real types: extents may differ from element to element, and
 * arguments that decide a shape are read from the element's own values. What is random follows from
 * the seed, the call and the element's index. Until snug_program_give it is used by one thread;
 * then it does not change any more. */
#ifndef SNUG_PROGRAM_H
#define SNUG_PROGRAM_H

#include <snug/data_ops.h>
#include <snug/function.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_program snug_program;

SNUG_API SNUG_CHECKED snug_status snug_program_create(snug_engine *engine, const snug_spec *inputs,
                                                      uint64_t seed, snug_program **out,
                                                      snug_error *err);
SNUG_API void snug_program_hold(snug_program *p);
SNUG_API void snug_program_drop(snug_program *p); /* NULL is legal */

/* A value that is the same for all elements; held. */
SNUG_API SNUG_CHECKED snug_status snug_program_constant(snug_program *p, const snug_datum *value,
                                                        int *slot, snug_error *err);
/* A part that something else gives: a program that has one gives types only. */
SNUG_API SNUG_CHECKED snug_status snug_program_blank(snug_program *p, const snug_type *type,
                                                     int is_text, int *slot, snug_error *err);
/* A row of the function table, whose tensors are slots: arguments of kind SNUG_ARG_SLOT, also in
 * lists. Fails where the types say that it must. */
SNUG_API SNUG_CHECKED snug_status snug_program_call(snug_program *p, int function,
                                                    const snug_argument *args, int n_args,
                                                    int *slots, int max, int *n_out,
                                                    snug_error *err);
/* A function on texts, files or pictures (data_ops.h), which is taken over, also by an error. */
SNUG_API SNUG_CHECKED snug_status snug_program_data(snug_program *p, snug_data_op *op,
                                                    const int *in, int n_in, int *slots, int max,
                                                    int *n_out, snug_error *err);
/* A layer without weights (layer.h). times: how often this layer was called in the program before:
 * layers with a seed of their own draw by it, by their seed and by the element. SNUG_E_UNSUPPORTED:
 * it has weights. */
typedef struct {
    const char *class_name, *config_json;
    int training, times;
} snug_program_layer;
SNUG_API SNUG_CHECKED snug_status snug_program_add_layer(snug_program *p,
                                                         const snug_program_layer *layer, int in,
                                                         int *slot, snug_error *err);
/* What is known of a slot: as in snug_spec. */
SNUG_API void snug_program_slot(const snug_program *p, int slot, snug_type *type, int *is_text);
/* Says more about a slot's extents; SNUG_E_SHAPE where that is not what it is. */
SNUG_API SNUG_CHECKED snug_status snug_program_refine(snug_program *p, int slot,
                                                      const snug_type *shape, snug_error *err);
/* The parts of the result. Nothing can be added then. */
SNUG_API SNUG_CHECKED snug_status snug_program_give(snug_program *p, const int *slots, int n,
                                                    snug_error *err);
/* As a function of snug_dataset_map and filter; it holds the program until it is released. */
SNUG_API void snug_program_mapper(snug_program *p, snug_mapper *out);

#ifdef __cplusplus
}
#endif
#endif
