/* policy.c: names of dtype policies. */
#include "nn/policy.h"

#include <string.h>

/* "bfloat16" or "bf16", of real numbers. */
static bool find_float(const char *name, snug_dtype *out) {
    snug_error unknown;
    const bool found =
        sn_dtype_of_word(name, strlen(name), out) || sn_dtype_parse(name, out, &unknown) == SNUG_OK;
    return found && sn_dtype_is_float(*out);
}

snug_status sn_policy_parse(const char *name, sn_policy *out, snug_error *err) {
    static const char mixed[] = "mixed_";
    const bool mixes = strncmp(name, mixed, sizeof mixed - 1) == 0;
    snug_dtype d;
    if (!find_float(name + (mixes ? sizeof mixed - 1 : 0), &d) ||
        (mixes && sn_dtype_computed(d) == d))
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "'%.60s' is no dtype policy; there are float32, float64, float16, bfloat16, "
                       "mixed_float16 and mixed_bfloat16",
                       name);
    *out = (sn_policy){.variable = mixes ? sn_dtype_computed(d) : d, .compute = d};
    return SNUG_OK;
}

const char *const sn_policy_names[SN_N_POLICIES] = {"f32",  "mixed_bf16", "mixed_f16",
                                                    "bf16", "f16",        "f64"};

const char *sn_policy_name(const sn_policy *p) {
    snug_error unknown;
    sn_policy named;
    for (int i = 0; i < SN_N_POLICIES; i++)
        if (sn_policy_parse(sn_policy_names[i], &named, &unknown) == SNUG_OK &&
            sn_policy_equal(&named, p))
            return sn_policy_names[i];
    return sn_policy_names[0];
}

bool sn_policy_equal(const sn_policy *a, const sn_policy *b) {
    return a->variable == b->variable && a->compute == b->compute;
}
