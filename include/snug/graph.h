/* graph.h: build a graph of your own from the operator table (docs/ops.md), with gradients, and run
 * it with run.h.
 *
 *     snug_graph *g;
 *     snug_value x, t, w, y, d, loss, dw, next;
 *     snug_graph_create(engine, &g, &err);
 *     snug_graph_input(g, "x", &(snug_type){SNUG_F32, 2, {32, 8}}, &x, &err);
 *     snug_graph_input(g, "t", &(snug_type){SNUG_F32, 2, {32, 1}}, &t, &err);
 *     snug_graph_variable(g, "w", &(snug_type){SNUG_F32, 2, {8, 1}}, NULL, &w, &err);  // zeros
 *     snug_graph_op(g, "matmul", "", (snug_value[]){x, w}, 2, &y, 1, &err);
 *     snug_graph_op(g, "sub", "", (snug_value[]){y, t}, 2, &d, 1, &err);
 *     snug_graph_op(g, "square", "", &d, 1, &d, 1, &err);
 *     snug_graph_op(g, "sum", "axes=0,1", &d, 1, &loss, 1, &err);
 *     snug_graph_gradients(g, loss, &w, 1, &dw, &err);
 *     snug_graph_param(g, "learning_rate", 0.01, &err);  // set it again before any run
 *     const snug_value in[2] = {w, dw};
 *     snug_graph_op(g, "sgd", "rate=p:learning_rate momentum=0", in, 2, &next, 1, &err);
 *     snug_graph_output(g, "loss", loss, &err);
 *
 * After an error a graph is what it was before. examples/custom_loop.c is a whole program. */
#ifndef SNUG_GRAPH_H
#define SNUG_GRAPH_H

#include <snug/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_graph snug_graph;

/* A value of a graph; ids of two graphs have nothing to do with each other. */
typedef struct {
    uint32_t id;
} snug_value;
#define SNUG_NO_VALUE ((snug_value){UINT32_MAX})

SNUG_API SNUG_CHECKED snug_status snug_graph_create(snug_engine *engine, snug_graph **out,
                                                    snug_error *err);
SNUG_API void snug_graph_destroy(snug_graph *graph); /* NULL is legal */

/* --- what goes in ----------------------------------------------------------------------------- */
SNUG_API SNUG_CHECKED snug_status snug_graph_input(snug_graph *graph, const char *name,
                                                   const snug_type *type, snug_value *out,
                                                   snug_error *err);

typedef enum {
    SNUG_INIT_CONSTANT,  /* a everywhere */
    SNUG_INIT_UNIFORM,   /* [a, b) */
    SNUG_INIT_NORMAL,    /* mean a, deviation b */
    SNUG_INIT_TRUNCATED, /* mean a, deviation b, cut at 2 b */
} snug_init_kind;

/* How a variable starts; all zero (or NULL) is zeros. Random numbers depend on the seed and on how
 * many variables the graph had before. */
typedef struct {
    snug_init_kind kind;
    double a, b;
    uint64_t seed;
    int is_slot;   /* belongs to an optimizer: reports book it there */
    int is_frozen; /* a model's optimizer (model.h) leaves it as it is */
} snug_variable_options;

/* A variable lives from run to run; its value here is what it holds at the start of a run. */
SNUG_API SNUG_CHECKED snug_status snug_graph_variable(snug_graph *graph, const char *name,
                                                      const snug_type *type,
                                                      const snug_variable_options *options,
                                                      snug_value *out, snug_error *err);

/* A named number or integer that attributes refer to as p:NAME and snug_session_set changes between
 * runs; nothing is planned again. The same name with the same value may be made twice. */
SNUG_API SNUG_CHECKED snug_status snug_graph_param(snug_graph *graph, const char *name,
                                                   double value, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_graph_key(snug_graph *graph, const char *name, int64_t value,
                                                 snug_error *err);

/* --- what is computed ------------------------------------------------------------------------- */
/* Any row of the table by name. attributes: "stride=2,2 rate=0.5 key=p:step", what is left out has
 * its default; may be NULL. outputs gets the first n_out of the row's outputs, SNUG_NO_VALUE where
 * it has fewer. Rows that update variables take their newest version and give the next. */
SNUG_API SNUG_CHECKED snug_status snug_graph_op(snug_graph *graph, const char *op,
                                                const char *attributes, const snug_value *inputs,
                                                int n_in, snug_value *outputs, int n_out,
                                                snug_error *err);

/* d(loss)/d(wrt[k]) of a scalar; SNUG_NO_VALUE where loss does not depend on wrt[k]. Gradients may
 * be differentiated again. SNUG_E_UNSUPPORTED names a row on the way that has none. */
SNUG_API SNUG_CHECKED snug_status snug_graph_gradients(snug_graph *graph, snug_value loss,
                                                       const snug_value *wrt, int n,
                                                       snug_value *grads, snug_error *err);

/* What is built from now on belongs to this layer in reports; "" for none. */
SNUG_API SNUG_CHECKED snug_status snug_graph_set_owner(snug_graph *graph, const char *layer,
                                                       snug_error *err);

/* --- what comes out --------------------------------------------------------------------------- */
SNUG_API SNUG_CHECKED snug_status snug_graph_output(snug_graph *graph, const char *name,
                                                    snug_value value, snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_graph_type(const snug_graph *graph, snug_value value,
                                                  snug_type *out, snug_error *err);
/* A graph whose inputs have unknown extents (-1) is a template: it can be printed and parsed, and
 * made concrete for inputs of these types (in their order), as often as wanted. The new graph has
 * the template's names, and value ids of its own. */
SNUG_API SNUG_CHECKED snug_status snug_graph_instantiate(const snug_graph *open,
                                                         const snug_type *inputs, int n_inputs,
                                                         snug_graph **out, snug_error *err);
/* One line per input, variable, parameter, node and output; parses back to an equal graph. */
SNUG_API SNUG_CHECKED snug_status snug_graph_print(const snug_graph *graph, const snug_writer *out,
                                                   snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_graph_parse(snug_engine *engine, const char *text,
                                                   snug_graph **out, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
