/* graph.h: one training or inference step as typed SSA values and the nodes that make them.
 *
 *     sn_graph *g;  sn_graph_create(engine, &g, err);
 *     sn_value x = ..., w = ...;
 *     sn_graph_input(g, "x", &type, &x, err);
 *     sn_graph_variable(g, &(sn_variable){.name = "w", .type = ..., .home = 0}, &w, err);
 *     sn_builder b = sn_builder_on(g);  // build.h: sticky errors, one line per operator
 *     sn_value y = sn_build_matmul(&b, x, w, SN_NO_VALUE);
 *
 * Invariants (sn_graph_check restates them):
 * 1. A node's inputs have smaller value ids than its outputs; nodes stand in program order.
 * 2. Types of outputs are what the shape rule says; in a graph that is not a template they are
 *    known.
 * 3. A version of a variable is a value; version 0 is the read at the start; each later one is
 *    output k of a STATE node whose input k is the version before it; there is one chain per
 *    variable.
 * 4. Names of inputs, outputs and variables are unique among their kind.
 * 5. Memory of the graph is in one zone of category GRAPH; nodes are never freed alone. */
#ifndef SN_GRAPH_GRAPH_H
#define SN_GRAPH_GRAPH_H

#include "memory/engine.h"
#include "op/op.h"
#include "tensor/feed.h"

typedef struct {
    uint32_t i;
} sn_value;
typedef struct {
    uint32_t i;
} sn_node;
typedef struct {
    uint32_t i;
} sn_var;
typedef struct {
    uint32_t i;
} sn_param;
#define SN_NO_VALUE ((sn_value){UINT32_MAX})
#define SN_NO_NODE  ((sn_node){UINT32_MAX})
static inline bool sn_value_ok(sn_value v) {
    return v.i != UINT32_MAX;
}

typedef enum { SN_VALUE_INPUT, SN_VALUE_VARIABLE, SN_VALUE_OUTPUT } sn_value_kind;

typedef struct {
    sn_value_kind kind;
    snug_type type;
    sn_node node;   /* the maker, or SN_NO_NODE for inputs and version 0 of variables */
    uint32_t index; /* which output of the maker; which input; which variable */
    int32_t var;    /* the variable this value is a version of, or -1 */
    uint32_t version;
    bool fed; /* an input that is fed though the graph is outside */
} sn_value_info;

/* What part of a step a node belongs to; for reports and for the order. */
typedef enum { SN_PART_FORWARD, SN_PART_BACKWARD, SN_PART_UPDATE } sn_part;

/* Of a node in a graph only the attributes of its operator are there, not the whole union: copy it
 * with sn_graph_copy_node, or its attributes with sn_attrs_copy. */
typedef struct {
    sn_op op;
    uint16_t n_in, n_out;
    const sn_value *in; /* lent, in the zone */
    const sn_value *out;
    uint32_t owner; /* index into the owners (layer names); 0 = "" */
    sn_part part;
    sn_attrs attrs; /* the last member */
} sn_node_info;

/* A parameter slot: bound at each run; `value` or `key` is its default. */
typedef enum { SN_PARAM_REAL, SN_PARAM_KEY, SN_PARAM_INVERSE_EXTENT } sn_param_kind;
typedef struct {
    const char *name; /* "learning_rate"; "" for anonymous constants */
    sn_param_kind kind;
    double real;
    int64_t key;
    bool each_step; /* a KEY that is another one at each step, or counts from `key` */
    sn_value of;    /* INVERSE_EXTENT: real = 1 / product of the extents of `of` along `axes` */
    uint32_t axes;  /* a bit set; 0: all */
} sn_param_info;

/* A variable of the graph. Its home (storage) is in a state store; graphs that share variables use
 * the same home ids. compute dtype may differ from the variable's later: readers cast. */
typedef struct {
    const char *name; /* "conv2d/kernel" */
    snug_type type;   /* logical shape; storage is the store's business */
    uint32_t home;
    bool trainable;
    bool slot;      /* optimizer slot: ledger category SLOTS */
    sn_recipe init; /* what its home holds before the first run */
    sn_value first; /* version 0 */
    sn_value last;  /* newest version so far */
} sn_variable;

typedef struct snug_graph sn_graph; /* the public snug_graph (include/snug/graph.h) */

SNUG_CHECKED snug_status sn_graph_create(snug_engine *e, sn_graph **out, snug_error *err);
void sn_graph_destroy(sn_graph *g);
/* As after create, but for the room it has; is it outside, it stays so. After an error it may only
 * be destroyed. */
SNUG_CHECKED snug_status sn_graph_clear(sn_graph *g, snug_error *err);
snug_engine *sn_graph_engine(const sn_graph *g);
size_t sn_graph_bytes(const sn_graph *g);

/* Building. Names are copied. */
SNUG_CHECKED snug_status sn_graph_input(sn_graph *g, const char *name, const snug_type *type,
                                        sn_value *out, snug_error *err);
SNUG_CHECKED snug_status sn_graph_variable(sn_graph *g, const sn_variable *var, sn_value *out,
                                           snug_error *err);
/* A name that is there already with the same kind and default gives the slot there is;
 * INVERSE_EXTENT computes `real`, or leaves it 0 while extents are unknown. */
SNUG_CHECKED snug_status sn_graph_param(sn_graph *g, const sn_param_info *p, sn_param *out,
                                        snug_error *err);
/* The slot of a 0 or 1 that stands in the code, not in the user's program: one for all of them. */
SNUG_CHECKED snug_status sn_graph_plain(sn_graph *g, int value, sn_param *out, snug_error *err);
/* Who says what a parameter with a name is, instead of one slot for each name: a graph that is
 * appended to again and again has many "optimizer/rate"s. NULL: nobody. Lent. */
typedef struct {
    void *ctx;
    snug_status (*find)(void *ctx, const sn_param_info *wanted, sn_param *out, snug_error *err);
} sn_param_source;
void sn_graph_set_source(sn_graph *g, const sn_param_source *source);
/* Checks and infers, then appends; `outs` has room for SN_MAX_OUT and gets *n_outs (may be NULL)
 * values. For STATE rows inputs 0..n_out-1 must be newest versions of variables. After any error
 * the graph is what it was. */
SNUG_CHECKED snug_status sn_graph_node(sn_graph *g, sn_op op, const sn_attrs *attrs,
                                       const sn_value *in, int n_in, sn_value *outs, int *n_outs,
                                       snug_error *err);
/* Names a value as a result of the step; it lives to the end of the plan. */
SNUG_CHECKED snug_status sn_graph_output(sn_graph *g, const char *name, sn_value v,
                                         snug_error *err);
/* No value is an output any more. */
void sn_graph_clear_outputs(sn_graph *g);
/* Nodes appended from now on belong to this layer / part. */
SNUG_CHECKED snug_status sn_graph_set_owner(sn_graph *g, const char *owner, snug_error *err);
void sn_graph_set_part(sn_graph *g, sn_part part);

/* Inputs and outputs of the graph lie in memory of the caller's, bound by address before each run:
 * they are not fed and take no bytes of an arena. Their names, and the homes of variables, are then
 * the caller's business alone: nobody checks that they differ. */
void sn_graph_set_outside(sn_graph *g);
bool sn_graph_is_outside(const sn_graph *g);
/* But this input: steps of a plan bring its rows, as in other graphs. Not where it is an output,
 * too: then it is bound all the same. */
void sn_graph_set_fed(sn_graph *g, uint32_t input, bool fed);

/* Moves all variables to other homes, one each: of a graph that will share a state store with
 * others. */
SNUG_CHECKED snug_status sn_graph_set_homes(sn_graph *g, const uint32_t *homes, snug_error *err);
/* The variable that has this home, of a graph whose homes differ; false: none. */
bool sn_graph_at_home(const sn_graph *g, uint32_t home, uint32_t *var);

/* A position to go back to when a sequence of calls fails half-way. */
typedef struct {
    size_t n_nodes, n_values, n_params, n_inputs, n_vars;
    uint32_t owner;
    sn_part part;
} sn_graph_mark;
sn_graph_mark sn_graph_mark_now(const sn_graph *g);
/* Drops what was appended since; none of it may be a named output. */
void sn_graph_go_back(sn_graph *g, const sn_graph_mark *m);

/* Reading. Pointers are lent until the next build call. */
uint32_t sn_graph_n_nodes(const sn_graph *g);
uint32_t sn_graph_n_values(const sn_graph *g);
uint32_t sn_graph_n_inputs(const sn_graph *g);
uint32_t sn_graph_n_vars(const sn_graph *g);
uint32_t sn_graph_n_params(const sn_graph *g);
uint32_t sn_graph_n_outputs(const sn_graph *g);
uint32_t sn_graph_n_owners(const sn_graph *g);
const sn_node_info *sn_graph_node_at(const sn_graph *g, sn_node n);
void sn_graph_copy_node(const sn_graph *g, sn_node n, sn_node_info *out);
const sn_value_info *sn_graph_value_at(const sn_graph *g, sn_value v);
const sn_variable *sn_graph_var_at(const sn_graph *g, sn_var v);
const sn_param_info *sn_graph_param_at(const sn_graph *g, sn_param p);
const char *sn_graph_owner_name(const sn_graph *g, uint32_t owner);
sn_value sn_graph_input_at(const sn_graph *g, uint32_t i);
const char *sn_graph_input_name(const sn_graph *g, uint32_t i);
sn_value sn_graph_output_at(const sn_graph *g, uint32_t i);
const char *sn_graph_output_name(const sn_graph *g, uint32_t i);
static inline const snug_type *sn_graph_type(const sn_graph *g, sn_value v) {
    return &sn_graph_value_at(g, v)->type;
}
/* The node with the types of its operands. */
void sn_graph_desc(const sn_graph *g, sn_node n, sn_opdesc *out);
/* By name; SNUG_E_INVALID lists what there is. */
SNUG_CHECKED snug_status sn_graph_find_input(const sn_graph *g, const char *name, uint32_t *out,
                                             snug_error *err);
SNUG_CHECKED snug_status sn_graph_find_output(const sn_graph *g, const char *name, uint32_t *out,
                                              snug_error *err);
SNUG_CHECKED snug_status sn_graph_find_param(const sn_graph *g, const char *name, sn_param *out,
                                             snug_error *err);

/* Gradients where not every way counts. Asked of the values on the way only, so that a gradient
 * costs what lies between the loss and what it is asked for. */
typedef struct {
    const void *ctx;
    bool (*sees)(const void *ctx, sn_value v); /* a node carries gradients if an output is seen */
    /* The value that is read in its place, or SN_NO_VALUE; made later than it, its gradient is the
     * value's. And the other way round. */
    sn_value (*stand_in)(const void *ctx, sn_value v);
    sn_value (*stands_for)(const void *ctx, sn_value v);
    uint32_t first_node;         /* that may be seen */
    uint32_t skip_from, skip_to; /* none of these nodes is, but the loss may be theirs */
} sn_gradient_paths;

/* d(loss)/d(wrt[k]) for a scalar loss, appended as nodes of part BACKWARD. grads[k] is SN_NO_VALUE
 * where loss does not depend on wrt[k]. Rules may read only what their `reads` column says. The
 * graph is concrete and not fused. SNUG_E_UNSUPPORTED names the operator and layer on the way that
 * has no rule; after any error the graph is what it was. */
SNUG_CHECKED snug_status sn_graph_gradients(sn_graph *g, sn_value loss, const sn_value *wrt, int n,
                                            sn_value *grads, snug_error *err);
/* The same from gradients that are known: of outs[k] it is douts[k], of outs[k]'s type; SN_NO_VALUE
 * is zero. */
typedef struct {
    const sn_value *outs, *douts;
    int n_outs;
    const sn_value *wrt;
    int n_wrt;
    const sn_gradient_paths *paths; /* NULL: every way counts */
} sn_pull_back;
SNUG_CHECKED snug_status sn_graph_pull_back(sn_graph *g, const sn_pull_back *p, sn_value *grads,
                                            snug_error *err);
SNUG_CHECKED snug_status sn_graph_gradients_along(sn_graph *g, sn_value loss, const sn_value *wrt,
                                                  int n, const sn_gradient_paths *paths,
                                                  sn_value *grads, snug_error *err);

/* A node on its way from one graph into another: its attributes with the slots of the new graph,
 * which are made where param says UINT32_MAX. An inverse extent whose value did not come along is a
 * plain number by now. */
typedef struct {
    const sn_graph *from;
    sn_graph *to;
    const sn_value *value; /* by old id; SN_NO_VALUE: not made (yet) */
    uint32_t *param;       /* by old slot; UINT32_MAX: not made (yet) */
    bool unnamed;          /* slots lose their names: the same nodes may come again */
    bool draws;            /* but keys with a name keep it, and are others at each step */
} sn_graph_move;
SNUG_CHECKED snug_status sn_graph_move_attrs(const sn_graph_move *m, sn_op op, sn_attrs *attrs,
                                             snug_error *err);

/* Rewrites, each graph -> new graph: instantiate a template for these input types; drop what no
 * output and no effect (STATE, MAYFAIL) needs and fuse pattern pairs (fuse_patterns.c lists them).
 * Ids change; names, owners and the order of updates stay. */
SNUG_CHECKED snug_status sn_graph_instantiate(const sn_graph *g, const snug_type *inputs, int n,
                                              sn_graph **out, snug_error *err);
SNUG_CHECKED snug_status sn_graph_fuse(const sn_graph *g, sn_graph **out, snug_error *err);
/* The same inputs, variables and nodes once more. */
SNUG_CHECKED snug_status sn_graph_copy(const sn_graph *g, sn_graph **out, snug_error *err);
/* Weight gradients of convolutions of a concatenation by its parts (unjoin.c); *out NULL: none. */
SNUG_CHECKED snug_status sn_graph_unjoin(const sn_graph *g, sn_graph **out, snug_error *err);
/* Inputs that are only read as halves come as such (half_feeds.c); *out NULL: there are none. */
SNUG_CHECKED snug_status sn_graph_half_feeds(const sn_graph *g, sn_graph **out, snug_error *err);

/* A cap that is the constant 6, which a product before it takes in; any other stays an operator. */
bool sn_graph_is_relu6(const sn_graph *g, const sn_node_info *n);

/* What pays only sometimes. A fused graph may be fused again with more. */
typedef struct {
    /* The weight gradient of a wide dense layer dies inside its Adam update: the largest gradient
     * never exists, but what it is made of lives until the update, and the batch can no longer be
     * cut there. */
    int64_t dense_update;    /* from this many weights on; 0: never */
    const sn_device *device; /* which such an update of halves needs a kernel of; NULL: any */
    uint32_t *params;   /* NULL, or one per parameter slot: its number in the new graph is written
                             there, UINT32_MAX where it is gone */
    uint32_t *origin;   /* NULL, or sn_graph_most_fused: of each node of the new graph the old one
                             in whose place it stands */
    uint32_t n_checked; /* so many first nodes ran before: what may fail there need not run again
                             only to find out */
} sn_fuse_options;
/* Nodes that a graph has when it is fused, at the most. */
uint32_t sn_graph_most_fused(const sn_graph *g);
SNUG_CHECKED snug_status sn_graph_fuse_with(const sn_graph *g, const sn_fuse_options *options,
                                            sn_graph **out, snug_error *err);
/* g, which is `fused` with these options, with updates of wide layers fused as well, for the
 * planner to choose from (sn_plan_options.fused): the same bits. *out NULL: it has none. */
SNUG_CHECKED snug_status sn_graph_fuse_updates(const sn_graph *g, const sn_graph *fused,
                                               const sn_fuse_options *options, sn_graph **out,
                                               snug_error *err);

/* Independent check of all invariants; names the node. */
SNUG_CHECKED snug_status sn_graph_check(const sn_graph *g, bool is_template, snug_error *err);

/* Text form; parse(print(g)) prints the same text. `write` gets the text piece by piece. */
typedef snug_writer sn_writer;
SNUG_CHECKED snug_status sn_graph_print(const sn_graph *g, const sn_writer *w, snug_error *err);
SNUG_CHECKED snug_status sn_graph_parse(snug_engine *e, const char *text, sn_graph **out,
                                        snug_error *err);

#endif
