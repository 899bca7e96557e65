/* data_ops.h: the inside of functions on parts that no arena can hold. One function = one row of
 * data_ops.def + the functions it names here:
 *
 *   run      sn_data_<x>: the work, from any thread. Everything it needs it takes from the pool
 *   spec     sn_spec_<x>: types of the outputs from those of the inputs
 *   prepare  sn_prepare_<x>: what is worth making once from the attributes, in the op's zone
 *
 * Invariant: run drops what it made when it fails, and leaves n_out 0. */
#ifndef SN_CODEC_DATA_OPS_H
#define SN_CODEC_DATA_OPS_H

#include <snug/data_ops.h>

#include "memory/engine.h"

#include <stdbool.h>

#define SN_DATA_MAX_ARGS 16

typedef struct {
    const snug_data_op *op;
    snug_engine *engine;
    int n_in;
    const snug_datum *in;
    int max;
    snug_datum *out; /* room for max */
    int n_out;       /* set by the function */
    uint64_t key;    /* of random ones: seed and element */
} sn_data_call;

typedef snug_status (*sn_data_fn)(sn_data_call *c, snug_error *err);
typedef snug_status (*sn_data_spec_fn)(const snug_data_op *op, const snug_spec *in, snug_spec *out,
                                       snug_error *err);
typedef snug_status (*sn_data_prepare_fn)(snug_data_op *op, snug_error *err);

typedef struct {
    snug_data_op_info info;
    sn_data_fn run;
    sn_data_spec_fn spec;
    sn_data_prepare_fn prepare; /* NULL: nothing to prepare */
} sn_data_row;

struct snug_data_op {
    snug_engine *engine;
    const sn_data_row *row;
    sn_zone *zone;                           /* of the texts and what was prepared */
    const snug_text *attr[SN_DATA_MAX_ARGS]; /* by place in the signature; NULL: not given */
    void *prepared;
};

/* --- what the table names --------------------------------------------------------------------- */
#define SNUG_DATA_OP(run, spec, prepare, names, signature, about)                                  \
    snug_status sn_data_##run(sn_data_call *c, snug_error *err);                                   \
    snug_status sn_spec_##spec(const snug_data_op *op, const snug_spec *in, snug_spec *out,        \
                               snug_error *err);
#include "codec/data_ops.def"
#undef SNUG_DATA_OP
#define sn_prepare_none NULL
snug_status sn_prepare_features(snug_data_op *op, snug_error *err);
snug_status sn_prepare_csv(snug_data_op *op, snug_error *err);
snug_status sn_prepare_regex(snug_data_op *op, snug_error *err);
snug_status sn_prepare_resize(snug_data_op *op, snug_error *err);

/* --- attributes, by name; the default stands in the signature --------------------------------- */
int64_t sn_data_int(const snug_data_op *op, const char *name);
double sn_data_number(const snug_data_op *op, const char *name);
bool sn_data_bool(const snug_data_op *op, const char *name);
/* Ended by a zero byte, which is not counted; data NULL: None. */
snug_text sn_data_text(const snug_data_op *op, const char *name);
/* How many integers stand in the list (or 1), at most max; 0: None. */
int sn_data_ints(const snug_data_op *op, const char *name, int64_t *out, int max);
/* OPAQUE: a text. SNUG_E_UNSUPPORTED for those Snug has not. */
SNUG_CHECKED snug_status sn_data_dtype(const snug_data_op *op, const char *name, snug_dtype *out,
                                       snug_error *err);
/* "tf.io.decode_jpeg": the first of its names. */
const char *sn_data_name(const snug_data_op *op, char *text, size_t size);

/* --- parts ------------------------------------------------------------------------------------ */
static inline const snug_text *sn_texts_of(const snug_datum *d) {
    return d->data;
}
int64_t sn_datum_count(const snug_datum *d);
/* SNUG_E_INVALID, with the argument's place, where it is none. */
SNUG_CHECKED snug_status sn_data_want_text(const sn_data_call *c, int i, snug_error *err);
SNUG_CHECKED snug_status sn_data_want_number(const sn_data_call *c, int i, snug_error *err);

/* A part of so many texts (by shape's dims), and room for `bytes` bytes of theirs in *room. The
 * caller points the texts there. */
SNUG_CHECKED snug_status sn_texts_create(snug_engine *e, const snug_type *shape, size_t bytes,
                                         snug_datum *out, char **room, snug_error *err);
/* Bytes for a while, from any thread; given back with snug_datum_drop. */
SNUG_CHECKED snug_status sn_scratch(snug_engine *e, size_t bytes, snug_datum *out, snug_error *err);

/* The text of a file carries the file's name behind its bytes, for messages. */
#define SN_ORIGIN_ROOM 272
void sn_origin_put(char *room, const char *path);
/* "'a/b.jpg' (48213 bytes)", or "the text (48213 bytes)". */
const char *sn_origin_print(const snug_datum *d, const snug_text *t, char *text, size_t size);
/* What an origin's name takes, printed. */
#define SN_ORIGIN_TEXT 320

#endif
