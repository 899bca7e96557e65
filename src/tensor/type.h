/* type.h: helpers on snug_type. "Known" means no dim is -1. */
#ifndef SN_TENSOR_TYPE_H
#define SN_TENSOR_TYPE_H

#include "base/status.h"

#include <snug/tensor.h>
#include <stdbool.h>

bool sn_type_known(const snug_type *t);
bool sn_type_equal(const snug_type *a, const snug_type *b);
bool sn_dims_equal(const snug_type *a, const snug_type *b);
/* Elements of a known type whose bytes were checked before (so it cannot overflow). */
int64_t sn_type_count(const snug_type *t);
/* Product of dims[from, to). Same precondition. */
int64_t sn_type_span(const snug_type *t, int from, int to);
bool sn_dtype_is_float(snug_dtype d);
bool sn_dtype_is_int(snug_dtype d); /* bool not among them */
static inline bool sn_dtype_is_half(snug_dtype d) {
    return d == SNUG_F16 || d == SNUG_BF16;
}
bool sn_dtype_counts(snug_dtype d); /* whole numbers without a sign */
/* Columns of the table (snug/tensor.h). */
snug_dtype sn_dtype_computed(snug_dtype d);
snug_dtype sn_dtype_sums(snug_dtype d);
double sn_dtype_largest(snug_dtype d);
/* "float32" in n bytes; "half" and "double", too. */
bool sn_dtype_of_word(const char *word, size_t n, snug_dtype *out);
/* "f32[32,10]" and "f32[]" back; '?' prints and parses -1. *end is set behind it. */
SNUG_CHECKED snug_status sn_type_parse(const char *text, const char **end, snug_type *out,
                                       snug_error *err);
SNUG_CHECKED snug_status sn_dtype_parse(const char *name, snug_dtype *out, snug_error *err);
/* Ranks <= 8, dims >= 0 (>= -1 in templates), bytes within the address space. */
SNUG_CHECKED snug_status sn_type_check(const snug_type *t, bool is_template, snug_error *err);

#endif
