/* cases.h: the cases column of ops.def: what every sweep over the operators runs. A row names a set
 * sn_cases_<x>; a set that nobody defines does not build.
 *
 *     {"stride=2,2 pad=0,1,1,0", "f[2,7,6,3] f[3,2,3,4]"}
 *
 * Attributes are text as sn_attrs_parse reads it, parameters as literals ("rate=0.3"). Inputs are
 * types; `f` (also after dtype=) is the float type under test: every case that names it runs as f32
 * and as f64. Behind a type stands what values it holds, if not the plain ones (floats in
 * [-1.5, 1.5), integers in [-9, 9], truth values):
 *
 *     @pos        0.5 to 2                         @labels:N   integers in [0, N)
 *     @away       0.2 to 1.2 and their negatives   @ties       few values, many of them equal
 *     @distinct   all of them at least 0.02 apart  @wide       -100 to 100
 *     @prob       rows that add up to 1            @special    zeros, infinities, NaN, tiny, huge
 *     @inside     -0.9 to 0.9                      @above      1.2 to 3
 *     @between    0.1 or more from any half        @halves     multiples of 0.5
 *     @dominant   square matrices whose diagonal, 2 to 3, outweighs what is beside it
 *
 * An opaque input is the code that maxpool or conv2d_pool makes for the attributes of the case. */
#ifndef SN_TESTS_CASES_H
#define SN_TESTS_CASES_H

#include "op/op.h"

typedef enum {
    SN_CASE_SMOOTH, /* differentiable around its values */
    SN_CASE_VALUES, /* for values alone: kinks, infinities, roundings */
    SN_CASE_FUSED   /* a form that sn_graph_fuse makes: gradients refuse it */
} sn_case_kind;

typedef struct {
    const char *attrs, *in;
    sn_case_kind kind;
} sn_case;

typedef struct {
    const char *name;
    int n;
    const sn_case *cases;
    uint32_t no_gradient; /* bit k: output k has none, by the rule of the row */
} sn_case_set;

/* How far a fast kernel may be from its reference, in units of the output's dtype (eps):
 * |fast - reference| <= eps * (ulps * |reference| + inputs + largest * (the largest |reference| of
 * the output)). Zeros: the same number. */
typedef struct {
    double ulps;    /* functions that are not exact */
    double inputs;  /* cancellation among inputs, which are of the order of 1 */
    double largest; /* sums in another order */
} sn_tolerance;

extern const sn_case_set *const sn_case_sets[SN_N_OPS];
extern const sn_tolerance sn_case_tolerances[SN_N_OPS];

#endif
