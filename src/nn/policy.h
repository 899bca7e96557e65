/* policy.h: Keras' dtype policies: in which type variables are kept, and in which a layer
 * computes. */
#ifndef SN_NN_POLICY_H
#define SN_NN_POLICY_H

#include "tensor/type.h"

typedef struct {
    snug_dtype variable, compute;
    bool
        own; /* of a layer: it was given to it, or to a layer around it; else it is the network's */
} sn_policy;

/* "mixed_bfloat16", "mixed_bf16", "bfloat16", "bf16", and so on: a type of real numbers, or mixed_
 * and a half one, whose variables are f32. */
SNUG_CHECKED snug_status sn_policy_parse(const char *name, sn_policy *out, snug_error *err);
/* "mixed_bf16"; each of them by its place, the usual one first. */
enum { SN_N_POLICIES = 6 };
extern const char *const sn_policy_names[SN_N_POLICIES];
const char *sn_policy_name(const sn_policy *p);
bool sn_policy_equal(const sn_policy *a, const sn_policy *b);

#endif
