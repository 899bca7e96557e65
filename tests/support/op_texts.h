/* op_texts.h: the operator table as text cases. "op attr=.. type.. -> type.." must infer exactly
 * these outputs, "op attr=.. type.. !! words" must fail with a text that has the words in it.
 *
 *     const char *text;
 *     EACH_GOOD(text) {
 *         text_case c;
 *         infer_good(text, &c);
 *     } */
#ifndef SUPPORT_OP_TEXTS_H
#define SUPPORT_OP_TEXTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "op/op.h"

typedef struct {
    sn_opdesc desc;
    int n_want;
    snug_type want[SN_MAX_OUT];
    const char *words; /* of the error; NULL: must succeed */
} text_case;

/* Up to a NULL. */
extern const char *const op_good[], *const op_bad[];

#define EACH_GOOD(text) for (size_t at = 0; (text = op_good[at]) != NULL; at++)

/* Reads a case into *c; the attributes' own errors are the result. */
snug_status read_case(const char *text, text_case *c, snug_error *err);
/* The same, and infers its outputs; the test fails where that does. */
void infer_good(const char *text, text_case *c);

#endif
