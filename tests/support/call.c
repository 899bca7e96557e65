/* call.c: calls of kernels on guarded memory and comparison of what they give. */
#include "support/call.h"

#include "support/support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *sn_isa_at(int i) {
    static const char *const names[] = {"base", "avx2", "avx512"};
    for (int k = 0; k < 3; k++)
        if (sn_cpu_family_for(names[k], SN_OP_add) && i-- == 0)
            return names[k];
    return NULL;
}

const char *sn_how_text(const sn_how *how, char text[64]) {
    snprintf(text, 64, "%s with %d threads", how->isa ? how->isa : "reference", how->n_threads);
    return text;
}

const sn_cpu_family *sn_how_family(const sn_how *how, sn_op op) {
    return how->isa ? sn_cpu_family_for(how->isa, op) : sn_cpu_family_of(op);
}

sn_variant sn_how_describe(sn_subject *s, const sn_how *how, const sn_opdesc *d) {
    const sn_cpu_family *family = sn_how_family(how, d->op);
    sn_variant v = {0};
    snug_error err;
    if (family->describe && family->describe(d, how->n_threads, &v, &err) != SNUG_OK)
        sn_complain(s, "describe: %s", err.text);
    if (!how->isa && family->reference != family->run)
        v.workspace_bytes = 0;
    return v;
}

bool sn_is_foreign(sn_subject *s, const sn_how *how) {
    return how->isa && strncmp(sn_how_describe(s, how, &s->desc).impl, "onednn", 6) == 0;
}

void sn_outputs_make(sn_subject *s, const sn_how *how, const sn_opdesc *d, snug_view *out) {
    const sn_variant v = sn_how_describe(s, how, d);
    for (int k = 0; k < d->n_out; k++)
        out[k] = sn_view_make(&d->out[k], v.opaque_bytes[k], how->poison);
}

static void check_guards(sn_subject *s, const sn_how *how, const snug_view *v, int n,
                         const char *what) {
    char text[64];
    for (int i = 0; i < n; i++)
        if (!sn_guards_ok(v[i].data, v[i].bytes))
            sn_complain(s, "%s wrote outside %s %d", sn_how_text(how, text), what, i);
}

snug_status sn_call_try(sn_subject *s, const sn_how *how, const sn_opdesc *d, const snug_view *in,
                        const snug_view *out, snug_error *err) {
    const sn_cpu_family *family = sn_how_family(how, d->op);
    const sn_variant v = sn_how_describe(s, how, d);
    const snug_view scratch = {sn_guarded(v.workspace_bytes, how->poison), v.workspace_bytes, {0}};
    sn_call call = {.op = d->op,
                    .attrs = &d->attrs,
                    .param = s->param,
                    .n_in = d->n_in,
                    .n_out = d->n_out,
                    .in = in,
                    .out = out,
                    .workspace = scratch.data,
                    .workspace_bytes = scratch.bytes,
                    .accumulate = how->accumulate,
                    .n_threads = how->n_threads,
                    .team = s->sweep->team,
                    .axis = how->axis,
                    .first = how->first,
                    .full = how->full};
    if (how->full == 0)
        call.full = d->out[0].rank > 0 ? d->out[0].dims[0] : 1;
    snug_status status = SNUG_OK;
    if (how->isa && family->prepare)
        status = family->prepare(s->sweep->engine, d, how->n_threads, &call.prepared, err);
    if (status == SNUG_OK)
        status = (how->isa ? family->run : family->reference)(&call, err);
    if (call.prepared)
        family->release(s->sweep->engine, call.prepared);
    check_guards(s, how, &scratch, 1, "workspace");
    if (how->needs_all &&
        (scratch.bytes == 0 || ((unsigned char *)scratch.data)[scratch.bytes - 1] != how->poison))
        *how->needs_all = true;
    check_guards(s, how, out, d->n_out, "output");
    sn_guarded_free(scratch.data, scratch.bytes);
    return status;
}

bool sn_call_on(sn_subject *s, const sn_how *how, const sn_opdesc *d, const snug_view *in,
                const snug_view *out) {
    snug_error err;
    char text[64];
    const snug_status status = sn_call_try(s, how, d, in, out, &err);
    if (status != SNUG_OK)
        sn_complain(s, "%s gave %s: %s", sn_how_text(how, text), snug_status_name(status),
                    err.text);
    return status == SNUG_OK;
}

bool sn_call_ok(sn_subject *s, const sn_how *how, const snug_view *out) {
    return sn_call_on(s, how, &s->desc, s->in, out);
}

/* --- comparison ----------------------------------------------------------------------------- */

/* "[2,0,5]" */
static const char *position(const snug_type *t, int64_t i, char text[64]) {
    int64_t index[SNUG_MAX_RANK] = {0};
    for (int k = t->rank - 1; k >= 0; k--) {
        index[k] = i % t->dims[k];
        i /= t->dims[k];
    }
    int used = snprintf(text, 64, "[");
    for (int k = 0; k < t->rank && used < 56; k++)
        used +=
            snprintf(text + used, 64 - (size_t)used, "%s%lld", k ? "," : "", (long long)index[k]);
    snprintf(text + used, 64 - (size_t)used, "]");
    return text;
}

static void complain_at(sn_subject *s, const char *what, int k, int64_t i, const snug_view *got,
                        const snug_view *wanted) {
    char text[64];
    sn_complain(s, "%s: output %d%s is %.17g, not %.17g", what, k, position(&got->type, i, text),
                sn_view_get(got, i), sn_view_get(wanted, i));
}

void sn_expect_view_bits(sn_subject *s, const char *what, int k, const snug_view *got,
                         const snug_view *wanted) {
    const int64_t count = sn_view_count(got);
    const size_t size = count > 0 ? got->bytes / (size_t)count : 0;
    int64_t i = 0;
    sn_checked(s);
    while (i < count && memcmp((const char *)got->data + (size_t)i * size,
                               (const char *)wanted->data + (size_t)i * size, size) == 0)
        i++;
    if (i < count)
        complain_at(s, what, k, i, got, wanted);
}

void sn_expect_bits(sn_subject *s, const char *what, const snug_view *got,
                    const snug_view *wanted) {
    for (int k = 0; k < s->desc.n_out; k++)
        sn_expect_view_bits(s, what, k, &got[k], &wanted[k]);
}

static double largest(const snug_view *v) {
    double most = 0;
    for (int64_t i = 0; i < sn_view_count(v); i++) {
        const double x = fabs(sn_view_get(v, i));
        most = isfinite(x) && x > most ? x : most;
    }
    return most;
}

/* Half floats are computed in f32 and rounded once more. */
typedef struct {
    double computed; /* distance of 1 to the next number, of the type computed in */
    double stored;   /* of the half that it is rounded to; 0: none */
    double tiny;     /* below it numbers have fewer digits */
} rounding;

static rounding rounding_of(snug_dtype dtype) {
    switch (dtype) {
    case SNUG_F32:
        return (rounding){FLT_EPSILON, 0, FLT_MIN};
    case SNUG_F16:
        return (rounding){FLT_EPSILON, 0x1p-10, 0x1p-24};
    case SNUG_BF16:
        return (rounding){FLT_EPSILON, 0x1p-7, FLT_MIN};
    default:
        return (rounding){DBL_EPSILON, 0, DBL_MIN};
    }
}

/* Integers, truth values and codes are exact; NaN is near NaN. */
void sn_expect_view_near(sn_subject *s, const char *what, int k, const snug_view *got,
                         const snug_view *wanted, sn_tolerance t) {
    const bool real = sn_dtype_is_float(got->type.dtype);
    const rounding r = rounding_of(got->type.dtype);
    const double eps = r.computed, tiny = r.tiny;
    const bool exact = t.ulps == 0 && t.inputs == 0 && t.largest == 0;
    const double floor_of = exact ? 0 : eps * (t.inputs + t.largest * largest(wanted)) + tiny;
    sn_checked(s);
    for (int64_t i = 0; i < sn_view_count(got); i++) {
        const double a = sn_view_get(got, i), b = sn_view_get(wanted, i);
        const double stored = exact ? 0 : r.stored * fabs(b);
        const double allowed = real ? floor_of + eps * t.ulps * fabs(b) + stored : 0;
        /* What sums of f16 beyond its largest are depends on their order. */
        const bool beyond = wanted->type.dtype == SNUG_F16 && !isfinite(a) && !isfinite(b);
        if (a == b || beyond || (isnan(a) && isnan(b)) || (isfinite(b) && fabs(a - b) <= allowed))
            continue;
        complain_at(s, what, k, i, got, wanted);
        return;
    }
}

void sn_expect_near(sn_subject *s, const char *what, const snug_view *got, const snug_view *wanted,
                    sn_tolerance t) {
    for (int k = 0; k < s->desc.n_out; k++)
        sn_expect_view_near(s, what, k, &got[k], &wanted[k], t);
}
