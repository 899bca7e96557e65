/* function_call.h: what a function of the table sees. One function sn_fn_<x> per row of
 * functions.def (rows may share one); it reads its arguments, appends to a graph through c->b and
 * says what it gives. Errors stick in the builder.
 *
 *     void sn_fn_cumsum(sn_fn_call *c) {
 *         const sn_value x = sn_fn_value(c, 0);
 *         const int axis = sn_fn_axis(c, "axis", sn_fn_type(c, x).rank, 0);
 *         c->out[0] = sn_build_scan(c->b, SN_OP_cumsum, x, axis, sn_fn_flag(c, "exclusive"),
 *                                   sn_fn_flag(c, "reverse"));
 *     }
 *
 * Arguments are asked for by their names in the row's signature: rows with other orders, fewer
 * settings or other defaults share a function. One that a signature does not have is not given.
 *
 * Who calls a row fills sn_fn_call and runs its build function: room eager on a recording, the
 * layer Operation of room nn on the graph of a network. Operands are values of the graph (of kind
 * SLOT: a place in c->slot) or what only the caller can bring there (of kind TENSOR: by its
 * door). */
#ifndef SN_FUNCTION_FUNCTION_CALL_H
#define SN_FUNCTION_FUNCTION_CALL_H

#include "graph/build.h"

#include <snug/function.h>

#define SN_FN_MAX_ARGS 20
#define SN_FN_MAX_OUT  96
/* Integers of an argument, and items of a list that is read in place. */
#define SN_FN_MAX_ITEMS 256

typedef struct sn_fn_call sn_fn_call;

/* What a caller does for a function beside building. Room nn has no tensors of its own: the first
 * two are NULL there. */
typedef struct {
    /* An argument of kind TENSOR as a value of the call's graph, and its type before that. */
    sn_value (*use)(sn_fn_call *c, const snug_argument *a);
    const snug_type *(*type)(const snug_argument *a);
    /* Slots of keys, as attributes hold them: of the next draw; of the next one of a sequence that
     * follows from the operation and its seed. */
    int64_t (*draw)(sn_fn_call *c);
    int64_t (*draw_seeded)(sn_fn_call *c, int64_t seed);
    /* Whether the whole numbers of an operand are known now; *zero: whether one of them is 0. NULL:
     * they never are. */
    bool (*knows)(const sn_fn_call *c, const snug_argument *a, bool *zero);
} sn_fn_door;

struct sn_fn_call {
    sn_builder *b;
    const sn_fn_door *door;
    const sn_value *slot; /* operands of kind SLOT, n_slots of them */
    int n_slots;
    const char *names, *signature;
    unsigned traits;          /* of the row: a set of snug_function_trait */
    bool promotes, rounds;    /* two of them, which operands are read by */
    snug_dtype floats;        /* of what is a float where nothing says of which dtype */
    const snug_argument *arg; /* as they were given, lists and numbers that were read in place */
    int n_args;
    int n_out; /* 1 unless the function says otherwise */
    sn_value out[SN_FN_MAX_OUT];
    int64_t largest;         /* of arguments of kind M; -1: not read */
    snug_argument unique[3]; /* of an argument of kind Q: values, places, counts, as operands */
    const int64_t *known;    /* instead of out[0]: integers that need no run, by sn_fn_known */
    snug_type known_type;
    /* inside */
    snug_argument own[SN_FN_MAX_ARGS], scratch;
    snug_argument items[SN_FN_MAX_ITEMS];
    int n_items;
    snug_dtype half;   /* of tensors that are computed with as f32; SNUG_N_DTYPES: none */
    snug_dtype narrow; /* of whole numbers that are computed with as wider ones; the same */
    bool wide;         /* there are tensors of f32 or f64, too */
    int64_t ints[SN_FN_MAX_ITEMS];
    sn_value *values; /* of sn_fn_list */
    size_t cap_values;
};

typedef void (*sn_fn)(sn_fn_call *c);

/* Row number `function` of the table, which snug_function_find gives. */
typedef struct {
    snug_function_info info;
    sn_fn build;
} sn_fn_row;
const sn_fn_row *sn_function_row(int function);

/* Entry i of a signature; false behind the last. */
typedef struct {
    const char *name; /* n letters, no end */
    int n;
    char kind;
    bool takes_rest; /* written with a '*' in front: it takes all further arguments in order */
    bool has_default;
} sn_fn_entry;
bool sn_signature_at(const char *signature, int i, sn_fn_entry *out);

/* A call of a row without operands or arguments yet; b, door and slot are the caller's to set. */
void sn_fn_begin(sn_fn_call *c, const sn_fn_row *row, const snug_argument *args, int n_args);
/* Frees what the call grew. */
void sn_fn_end(sn_fn_call *c, snug_engine *e);

/* Makes the call fail with the function's name in front; printf-style. */
void sn_fn_refuse(sn_fn_call *c, snug_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool sn_fn_failed(const sn_fn_call *c) {
    return c->b->error.code != SNUG_OK;
}
/* The type of a value; a scalar after an error. */
snug_type sn_fn_type(const sn_fn_call *c, sn_value v);
snug_dtype sn_fn_dtype_of(const sn_fn_call *c, sn_value v);

/* --- arguments -------------------------------------------------------------------------------- */
/* Its place in the signature, or -1. */
int sn_fn_place(const sn_fn_call *c, const char *name);
/* As given, or the default; kind NONE where there is neither. Lent until the next call of it. */
const snug_argument *sn_fn_argument(sn_fn_call *c, const char *name);
bool sn_fn_given(sn_fn_call *c, const char *name);
int64_t sn_fn_int(sn_fn_call *c, const char *name); /* 0 where it is not given */
double sn_fn_real(sn_fn_call *c, const char *name);
bool sn_fn_flag(sn_fn_call *c, const char *name);
const char *sn_fn_text(sn_fn_call *c, const char *name); /* "" where it is not given */
snug_dtype sn_fn_dtype(sn_fn_call *c, const char *name, snug_dtype otherwise);
/* All integers of it, lists within lists one after the other; *n of them, lent until the next
 * call. NULL where it is not given. */
const int64_t *sn_fn_ints(sn_fn_call *c, const char *name, int *n);
/* An axis from the front; `otherwise` (may be negative) where none is given. 0 after an error. */
int sn_fn_axis(sn_fn_call *c, const char *name, int rank, int otherwise);
/* A set of axes, each of them once; 0 where none are given. */
uint32_t sn_fn_axes(sn_fn_call *c, const char *name, int rank);
/* Whether it is the empty list, axis=[]: over no axis, each element for itself. */
bool sn_fn_no_axes(sn_fn_call *c, const char *name);
/* A number as a tensor; and whether a whole one has more bits than numbers of a graph. */
sn_value sn_fn_scalar(sn_fn_call *c, const snug_argument *a, snug_dtype dtype);
bool sn_fn_is_wide(int64_t v);
/* A shape; false after an error. dtype is not set. */
bool sn_fn_shape(sn_fn_call *c, const char *name, snug_type *out);
/* Pictures with their channels last, and results as they came, by the argument data_format. */
sn_value sn_fn_channels_last(sn_fn_call *c, sn_value x);
sn_value sn_fn_channels_back(sn_fn_call *c, sn_value x);
/* Whether the text of an argument is this, case aside. */
bool sn_fn_says(sn_fn_call *c, const char *name, const char *text);
/* Settings that have one value here, where a function has them: another one is refused. */
void sn_fn_dense_only(sn_fn_call *c);
void sn_fn_bad_indices_fail(sn_fn_call *c);

/* --- operands --------------------------------------------------------------------------------- */
static inline bool sn_fn_is_operand(const snug_argument *a) {
    return a->kind == SNUG_ARG_TENSOR || a->kind == SNUG_ARG_SLOT;
}
/* The dtype of an operand before it is used. */
snug_dtype sn_fn_operand_dtype(const sn_fn_call *c, const snug_argument *a);
/* An operand in the graph that the call appends to; f16 and bf16 as f32, i16 and u16 as i32, u32 as
 * i64. */
sn_value sn_fn_use(sn_fn_call *c, const snug_argument *a);
/* Result i as the function gives it: what was computed for halves is rounded to their dtype, what
 * was for narrow whole numbers is cut to theirs. */
sn_value sn_fn_result(sn_fn_call *c, int i);
/* A number as it is beside the tensors used so far: beside halves rounded to their dtype. */
double sn_fn_rounded(const sn_fn_call *c, double v);
/* Argument i in a dtype of its own: numbers are f32, i32 or bool. SN_NO_VALUE: not given. */
sn_value sn_fn_value(sn_fn_call *c, int i);
/* In a float dtype where the function promotes; else as it is. */
sn_value sn_fn_float(sn_fn_call *c, int i);
/* In this dtype: a number takes it, a tensor of another is cast where the function promotes. */
sn_value sn_fn_value_as(sn_fn_call *c, int i, snug_dtype dtype);
/* By name; SN_NO_VALUE where it is not given. */
sn_value sn_fn_named(sn_fn_call *c, const char *name);
sn_value sn_fn_named_as(sn_fn_call *c, const char *name, snug_dtype dtype);
/* Arguments i and k in one dtype. */
void sn_fn_pair(sn_fn_call *c, int i, int k, sn_value *x, sn_value *y);
/* Refuses operands of two dtypes, before they are cast. */
void sn_fn_same_dtype(sn_fn_call *c, sn_value x, sn_value y);
/* The tensors of a list, in one dtype; how many, 0 after an error. Lent until the next call. */
int sn_fn_values(sn_fn_call *c, int i, sn_value *out, int max);
/* The same of any length; they lie in the call until it ends or asks for another list, and may be
 * written over. */
int sn_fn_list(sn_fn_call *c, int i, sn_value **out);
/* Whether argument i is a plain number, and which. */
bool sn_fn_number(sn_fn_call *c, int i, double *out);

/* scale * x + shift by parameters, of integers too. */
sn_value sn_fn_affine(sn_fn_call *c, sn_value x, double scale, double shift);
/* A scalar of x's dtype, as a parameter. */
sn_value sn_fn_like(sn_fn_call *c, sn_value x, double v);
/* x limit / max(|x|, limit), of x whose |x|^2 is `squares`. */
sn_value sn_fn_shortened(sn_fn_call *c, sn_value x, sn_value squares, sn_value limit);
/* The singular values of matrices [..., m, n], the largest first (functions_solve.c). */
sn_value sn_fn_singular_values(sn_fn_call *c, sn_value x);
/* The key of a draw: of its argument "seed" (the stateless ones' always the same, others' the next
 * of a sequence), or the door's next. */
int64_t sn_fn_key(sn_fn_call *c);
/* A number as a parameter of the graph, as attributes hold it. */
int64_t sn_fn_parameter(sn_fn_call *c, double value);
/* Pictures as tf.image works on them: whole numbers as floats of [0, 1], and back to the dtype they
 * had; floats as they are. */
sn_value sn_fn_unit_picture(sn_fn_call *c, sn_value x);
sn_value sn_fn_picture_of(sn_fn_call *c, sn_value unit, snug_dtype dtype);
/* The result is these integers, which nobody needs to compute; n = elements of the type, at most
 * SN_FN_MAX_ITEMS. */
void sn_fn_known(sn_fn_call *c, const snug_type *type, const int64_t *v);

#endif
