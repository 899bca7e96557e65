/* random_graph.h: graphs no one would write, for tests of the planner and the executor.
 *
 *     sn_graph *g;
 *     assert_int_equal(sn_random_graph(engine, seed, 40, &g, &err), SNUG_OK);
 *
 * All values are of one float type (statistics f64) with at most 1,000 elements, finite for finite
 * inputs. There
 * are values with several readers, operators that may work in place, aliases of values with later
 * readers, reductions, rows with several outputs, variables read by several nodes and updated up to
 * twice, nodes that may fail but do not, random rows, unused nodes, and one to four outputs, some
 * of them read again. Variables have homes 0, 1, ... and recipes. */
#ifndef SN_TESTS_RANDOM_GRAPH_H
#define SN_TESTS_RANDOM_GRAPH_H

#include "graph/build.h"

/* The same seed gives the same graph, of f32. n_nodes is reached or passed by less than 8. */
SNUG_CHECKED snug_status sn_random_graph(snug_engine *e, uint64_t seed, int n_nodes, sn_graph **out,
                                         snug_error *err);
/* The same of f64, and nothing in it jumps: sums in another order change little. */
SNUG_CHECKED snug_status sn_random_smooth_graph(snug_engine *e, uint64_t seed, int n_nodes,
                                                sn_graph **out, snug_error *err);

/* A feed of inputs that depend on the key (ctx is a uint64_t) and their position only: floats in
 * [0.5, 1.5), integers 0 or 1. */
snug_status sn_random_fill_input(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                                 snug_error *err);

#endif
