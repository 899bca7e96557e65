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

typedef struct {
    const char *names;     /* words: "tf.reduce_sum tf.math.reduce_sum" */
    const char *signature; /* as above */
    const char *about;     /* one line */
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
