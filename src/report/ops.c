/* ops.c: `snug ops`: the operator table. docs/ops.md has the same facts with reasons. */
#include "base/say.h"
#include "op/op.h"

#include <snug/train.h>
#include <stdio.h>

static const char *const effects[] = {"pure", "random", "state", "may fail"};

static const char *inplace_name(sn_inplace i) {
    switch (i) {
    case SN_INPLACE_FIRST:
        return "first";
    case SN_INPLACE_SECOND:
        return "second";
    case SN_INPLACE_EITHER:
        return "either";
    case SN_INPLACE_ALIAS:
        return "alias";
    case SN_INPLACE_STATE:
        return "state";
    case SN_INPLACE_STATE_THREE:
        return "three";
    case SN_INPLACE_STATE_FOURTH:
        return "fourth";
    default:
        return "never";
    }
}

static snug_status print_json(const snug_writer *w, snug_error *err) {
    for (int i = 0; i < SN_N_OPS; i++) {
        const sn_op_row *r = &sn_ops[i];
        SNUG_TRY(sn_say(w, err,
                        "%s{\"name\":\"%s\",\"min_inputs\":%d,\"max_inputs\":%d,\"attributes\":\"%"
                        "s\",\"in_place\":\"%s\","
                        "\"effect\":\"%s\",\"accumulates\":%s}",
                        i ? "," : "[", r->name, r->min_in, r->max_in, r->attrs->name,
                        inplace_name(r->inplace), effects[r->effect],
                        r->accumulates ? "true" : "false"));
    }
    return sn_say(w, err, "]\n");
}

snug_status snug_report_ops(int style, const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, out);
    if (style & SNUG_REPORT_JSON)
        return print_json(out, err);
    SNUG_TRY(sn_say(out, err, "%-18s %-7s %-12s %-8s %-9s %s\n", "operator", "inputs", "attributes",
                    "in-place", "effect", "accumulates"));
    for (int i = 0; i < SN_N_OPS; i++) {
        const sn_op_row *r = &sn_ops[i];
        char inputs[16];
        snprintf(inputs, sizeof inputs, r->min_in == r->max_in ? "%d" : "%d-%d", r->min_in,
                 r->max_in);
        SNUG_TRY(sn_say(out, err, "%-18s %-7s %-12s %-8s %-9s %s\n", r->name, inputs,
                        r->attrs->name, inplace_name(r->inplace), effects[r->effect],
                        r->accumulates ? "yes" : "no"));
    }
    return SNUG_OK;
}
