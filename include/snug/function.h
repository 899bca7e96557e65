/* function.h: functions on tensors under the names that TensorFlow and Keras give them, for
 * recorded code (record.h). A function is one row of a table: its names, its signature, what it
 * records.
 *
 *     int sum;
 *     snug_function_find("tf.reduce_sum", &sum);
 *     const snug_argument args[3] = {{.kind = SNUG_ARG_TENSOR, .tensor = x},
 *                                    {.kind = SNUG_ARG_INTEGER, .integer = -1}};
 *     snug_function_call(r, sum, args, 3, &y, 1, &n_out, &err);
 *
 * A signature says name, kind and default of each argument: "input_tensor:T axis:I=None
 * keepdims:B=False name:S=None". Kinds:
 *
 *     T  a tensor, or a number or list that becomes one of the other tensors' dtype
 *     O  the same with a dtype of its own: indices, labels
 *     W  a tensor of truth values, which is read where the places of true ones are wanted
 *     M  whole numbers, whose largest is read where it decides the shape of the result
 *     Q  a tensor that is read, for the same reason
 *     V  several tensors: a list; a name that starts with '*' takes all further ones in order
 *     I  an integer or a list of integers; also from a tensor, which is read
 *     N  a number, a parameter of the plan      B  true or false
 *     S  text, or a number where that is an answer too (ord)     D  a dtype, or its name */
#ifndef SNUG_FUNCTION_H
#define SNUG_FUNCTION_H

#include <snug/record.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    SNUG_ARG_NONE, /* not given, or None */
    SNUG_ARG_TENSOR,
    SNUG_ARG_INTEGER, /* a Python int, where a tensor or number is wanted: its dtype follows the
                         others' */
    SNUG_ARG_REAL,
    SNUG_ARG_BOOL,
    SNUG_ARG_TEXT,
    SNUG_ARG_DTYPE,
    SNUG_ARG_LIST,
    SNUG_ARG_SLOT /* of a program (program.h), its number in `integer`; no call takes it */
} snug_argument_kind;

typedef struct snug_argument {
    snug_argument_kind kind;
    union {
        snug_tensor *tensor; /* lent */
        int64_t integer;     /* also BOOL, SLOT */
        double real;
        const char *text;
        snug_dtype dtype;
        struct {
            const struct snug_argument *items;
            int n;
        } list;
    };
} snug_argument;

/* What a row is to its callers. */
typedef enum {
    SNUG_FUNCTION_STRICT = 0,   /* operands have one dtype, as in TensorFlow */
    SNUG_FUNCTION_PROMOTES = 1, /* they are brought to a common one, as in Keras */
    SNUG_FUNCTION_ROUNDS = 2,   /* beside PROMOTES: a real number among them has the digits of a
                                     float32, of which Keras makes a tensor first */
    SNUG_FUNCTION_DRAWS = 4,    /* random numbers, others at each call */
    SNUG_FUNCTION_SEEDED = 8,   /* random numbers that its seed, two integers, decides */
    SNUG_FUNCTION_PLACES = 16,  /* whole numbers of results are places, counts and the like: they
                                     are not in the operands' dtype */
    SNUG_FUNCTION_PLACES_BEHIND = 32, /* those of results behind the first are */
    SNUG_FUNCTION_SUMS = 64,          /* of narrow whole numbers it makes sums of 32 bits */
    SNUG_FUNCTION_EXTENTS = 128,      /* of multiples of extents it makes such */
    SNUG_FUNCTION_SCALES = 256,       /* it does where all operands but one are plain numbers */
    SNUG_FUNCTION_BROADCASTS = 512,   /* element by element, of two tensors of the result's dtype */
    SNUG_FUNCTION_SHAPED = 1024,      /* its second argument is the shape of the result */
    SNUG_FUNCTION_RANK = 2048         /* the result has as many axes as the first operand */
} snug_function_trait;

typedef struct {
    const char *names;     /* words: "tf.reduce_sum tf.math.reduce_sum" */
    const char *signature; /* as above */
    const char *about;     /* one line */
    unsigned traits;       /* a set of snug_function_trait */
} snug_function_info;

SNUG_API int snug_function_count(void);
SNUG_API const snug_function_info *snug_function_at(int function);
SNUG_API int snug_function_find(const char *name, int *function); /* 0: there is none */
/* args stand in the signature's order; missing ones at the end have their defaults, and NONE has
 * the default where that is not None. Gives *n_out tensors, at most max. */
SNUG_API SNUG_CHECKED snug_status snug_function_call(snug_recorder *r, int function,
                                                     const snug_argument *args, int n_args,
                                                     snug_tensor **outputs, int max, int *n_out,
                                                     snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
