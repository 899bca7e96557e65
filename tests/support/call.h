/* call.h: one operator through its CPU kernel family, and its results compared.
 *
 *     snug_view out[SN_MAX_OUT];
 *     const sn_how how = {.isa = sn_cpu_isa(), .n_threads = 2, .poison = 0xa5};
 *     sn_outputs_make(s, &how, &s->desc, out);
 *     sn_call_ok(s, &how, out);                       // describe, prepare, run, release
 *     sn_expect_bits(s, "two threads", out, wanted);
 *     sn_views_free(out, s->desc.n_out); */
#ifndef SN_TESTS_CALL_H
#define SN_TESTS_CALL_H

#include "support/subject.h"

typedef struct {
    const char *isa; /* NULL: the reference kernel */
    int n_threads;
    int poison; /* byte that fills workspace, and outputs made by sn_outputs_make */
    bool accumulate;
    bool *needs_all; /* NULL, or set when the call takes no workspace or writes its last byte */
    /* Where output 0 lies in the full value; full 0: it is the whole. */
    int axis;
    int64_t first, full;
} sn_how;

/* "base", "avx2", "avx512": those that are built and run here; NULL behind the last. */
const char *sn_isa_at(int i);
const char *sn_how_text(const sn_how *how, char text[64]);
const sn_cpu_family *sn_how_family(const sn_how *how, sn_op op);
/* What the family says of d (the subject's or a piece of it). */
sn_variant sn_how_describe(sn_subject *s, const sn_how *how, const sn_opdesc *d);
/* Whether oneDNN does it: then bits are promised per call only. */
bool sn_is_foreign(sn_subject *s, const sn_how *how);

/* Guarded outputs for these types, filled with how->poison. */
void sn_outputs_make(sn_subject *s, const sn_how *how, const sn_opdesc *d, snug_view *out);
/* Runs d (s->desc, or a piece of it) and complains when a guard of workspace or output changed. */
snug_status sn_call_try(sn_subject *s, const sn_how *how, const sn_opdesc *d, const snug_view *in,
                        const snug_view *out, snug_error *err);
/* The subject itself; complains when it fails, and then answers false. */
bool sn_call_ok(sn_subject *s, const sn_how *how, const snug_view *out);
bool sn_call_on(sn_subject *s, const sn_how *how, const sn_opdesc *d, const snug_view *in,
                const snug_view *out);

/* Each output of got against wanted; `what` says what got is. */
void sn_expect_bits(sn_subject *s, const char *what, const snug_view *got, const snug_view *wanted);
void sn_expect_view_bits(sn_subject *s, const char *what, int k, const snug_view *got,
                         const snug_view *wanted);
void sn_expect_near(sn_subject *s, const char *what, const snug_view *got, const snug_view *wanted,
                    sn_tolerance t);
void sn_expect_view_near(sn_subject *s, const char *what, int k, const snug_view *got,
                         const snug_view *wanted, sn_tolerance t);

#endif
