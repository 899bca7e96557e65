/* data_ops.h: functions on what no arena can hold: files, texts, pictures whose size is known when
 * they are read. Under TensorFlow's names; for map functions and for single calls.
 *
 *     snug_data_attr attrs[] = {{"channels", {"3", 1}}};
 *     snug_data_op *decode;
 *     snug_data_op_create(engine, "tf.io.decode_jpeg", attrs, 1, &decode, &err);
 *     snug_data_op_call(decode, key, &file_bytes, 1, out, 1, &n_out, &err);   // any thread
 *     snug_data_op_destroy(decode);
 *
 * A function is one row of a table: names, signature, what it does. A signature says name, kind and
 * default of each argument in Python's order, "contents:X channels:I=0 name:S=None". Kinds:
 *
 *     X  a part: texts or numbers. Only X and V are inputs of a call, in the signature's order
 *     V  several parts: all inputs from here on
 *     I  an integer, or a list: "3", "[224,224]"       N  a number: "0.5"
 *     B  "True" or "False"                             S  text, any bytes
 *     D  a dtype: "float32", "uint8", "int64", "string"
 *
 * All kinds but X and V are attributes: fixed when the function is made, written as texts. An
 * attribute that is not given has its default. */
#ifndef SNUG_DATA_OPS_H
#define SNUG_DATA_OPS_H

#include <snug/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *names;     /* words: "tf.io.decode_jpeg tf.image.decode_jpeg" */
    const char *signature; /* as above */
    const char *about;     /* one line */
} snug_data_op_info;

SNUG_API int snug_data_op_count(void);
SNUG_API const snug_data_op_info *snug_data_op_at(int i);
SNUG_API int snug_data_op_find(const char *name, int *i); /* 0: there is none */

typedef struct {
    const char *name;
    snug_text value; /* copied */
} snug_data_attr;

/* A function with its attributes; immutable, so that any number of threads may call it. */
typedef struct snug_data_op snug_data_op;
/* SNUG_E_INVALID: no such function or attribute, or a value that is none. */
SNUG_API SNUG_CHECKED snug_status snug_data_op_create(snug_engine *engine, const char *name,
                                                      const snug_data_attr *attrs, int n_attrs,
                                                      snug_data_op **out, snug_error *err);
SNUG_API void snug_data_op_destroy(snug_data_op *op);
/* What a call will give for such inputs: dims -1 where the data decide, rank -1 where they decide
 * that too. */
SNUG_API SNUG_CHECKED snug_status snug_data_op_spec(const snug_data_op *op, const snug_spec *in,
                                                    snug_spec *out, snug_error *err);
/* Inputs are lent; the *n_out outputs, at most max, are the caller's (snug_datum_drop). key: of
 * what is random, made from seed and element. */
SNUG_API SNUG_CHECKED snug_status snug_data_op_call(const snug_data_op *op, uint64_t key,
                                                    const snug_datum *in, int n_in, snug_datum *out,
                                                    int max, int *n_out, snug_error *err);

/* The attribute "record_defaults" of tf.io.decode_csv: a line for each column, "DTYPE DEFAULT":
 * f32, f64, i32, i64 or text; a value, x and hexadecimal bytes for text, or "-": required.
 *
 * The attribute "features" of tf.io.parse_single_example and parse_example: a line each,
 * "KIND DTYPE SHAPE DEFAULT NAME":
 *
 *     KIND     fixed (FixedLenFeature), var (VarLenFeature), sequence (FixedLenSequenceFeature)
 *     DTYPE    f32, i64 or text
 *     SHAPE    "[]", "[28,28]"; of var "[]"
 *     DEFAULT  "-": none; else numbers "0" or "1,2.5", or for text x and hexadecimal bytes ("x"
 *              alone: the empty text), with commas between several
 *     NAME     all up to the end of the line
 *
 * Outputs stand in the order of the lines: fixed and sequence one part; var three: indices, values
 * and shape of a sparse tensor. */

#ifdef __cplusplus
}
#endif
#endif
