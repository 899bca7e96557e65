/* regularizer.h: regularisers and constraints of variables. */
#ifndef SN_NN_REGULARIZER_H
#define SN_NN_REGULARIZER_H

#include "graph/build.h"
#include "nn/network.h"

/* The scalar of x that "l1", "l2:l2=0.02", "l1_l2:l1=...", "orthogonal_regularizer" add to the
 * loss. */
sn_value sn_regularizer_build(sn_builder *b, const char *text, sn_value x);
/* What w becomes after an update: max_norm, min_max_norm, unit_norm, non_neg. */
sn_value sn_constraint_build(sn_builder *b, const char *text, sn_value w);
/* Whether both texts of a variable are understood and fit its type. */
SNUG_CHECKED snug_status sn_rules_check(const sn_net_var *v, snug_error *err);

#endif
