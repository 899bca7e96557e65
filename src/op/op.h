/* op.h: what the table says about an operator, for every room below. ops.def is the table; this
 * header makes the ids and attribute structs from it and declares the columns the room `op` owns:
 * arity, shape rule, reads, in-place, axis rule, effect, accumulate. The gradient column belongs to
 * graph, the cpu column to kernels/cpu, the cases column to the tests.
 *
 *     sn_opdesc d = {.op = SN_OP_matmul, .n_in = 2, .in = types};
 *     sn_attrs_default(SN_OP_matmul, &d.attrs);
 *     d.attrs.matmul.trans_b = 1;
 *     SNUG_TRY(sn_op_infer(&d, err));  // checks arity, attributes, shapes; fills n_out, out[] */
#ifndef SN_OP_OP_H
#define SN_OP_OP_H

#include "base/rates.h"
#include "base/status.h"
#include "tensor/type.h"

#include <stdbool.h>

#define SN_MAX_IN     64
#define SN_MAX_OUT    5
#define SN_MAX_PARAMS 12
#define SN_ATTR_WORDS 32

/* --- ids -------------------------------------------------------------------------------------- */
typedef enum {
#define SNUG_OP(name, ...) SN_OP_##name,
#include "op/ops.def"
#undef SNUG_OP
    SN_N_OPS
} sn_op;

/* --- attributes ------------------------------------------------------------------------------- */
/* A list of up to 8 integers: dims, axes, a permutation. */
typedef struct {
    int64_t n;
    int64_t v[SNUG_MAX_RANK];
} sn_list;

/* Fused activations. The order is part of the text form. */
#define SN_ACT_MAP(X) X(none) X(relu) X(tanh) X(sigmoid) X(hard_sigmoid) X(relu6) X(silu)
typedef enum {
#define SN_ACT_ENUM(name) SN_ACT_##name,
    SN_ACT_MAP(SN_ACT_ENUM)
#undef SN_ACT_ENUM
        SN_N_ACTS
} sn_act;

/* All members are 64-bit, so that one schema can print, parse and hash any of them. Parameters hold
 * slot numbers of the graph, not values. */
#define I(name)     int64_t name;
#define V(name, n)  int64_t name[n];
#define S(name)     sn_list name;
#define D(name)     int64_t name;
#define A(name)     int64_t name;
#define P(name)     int64_t name;
#define K(name)     int64_t name;
#define KV(name, n) int64_t name[n];
#define SNUG_ATTRS(name, fields)                                                                   \
    typedef struct {                                                                               \
        fields                                                                                     \
    } sn_attrs_##name;
#include "op/attrs.def"
#undef SNUG_ATTRS

typedef union {
    int64_t word[SN_ATTR_WORDS];
#define SNUG_ATTRS(name, fields) sn_attrs_##name name;
#include "op/attrs.def"
#undef SNUG_ATTRS
} sn_attrs;

typedef enum {
    SN_FIELD_INT,
    SN_FIELD_VEC,
    SN_FIELD_LIST,
    SN_FIELD_DTYPE,
    SN_FIELD_ACT,
    SN_FIELD_REAL,
    SN_FIELD_KEY
} sn_field_kind;

/* One attribute field. REAL and KEY fields are parameters, the others structure. */
typedef struct {
    const char *name;
    sn_field_kind kind;
    int word; /* first word in sn_attrs */
    int n;    /* words (a list: its capacity) */
} sn_field;

static inline bool sn_field_is_param(const sn_field *f) {
    return f->kind == SN_FIELD_REAL || f->kind == SN_FIELD_KEY;
}

typedef struct {
    const char *name;
    int n_fields;
    const sn_field *fields;
    int n_params; /* words that are parameters, in field order: call->param[] has this order */
    size_t bytes; /* of sn_attrs, from its start on, that are this family's */
} sn_attr_family;

/* --- one application of an operator, by types alone ------------------------------------------- */
typedef struct {
    sn_op op;
    sn_attrs attrs;
    int n_in;
    snug_type in[SN_MAX_IN];
    int n_out;
    snug_type out[SN_MAX_OUT];
} sn_opdesc;

/* --- axis rules: the ways an operator can be split -------------------------------------------- */
/* A label inside one axis of an operand: dims[axis] = outer * extent * inner. axis -1: the operand
 * does not carry the label (it is used whole; as an output under `sum` it is a partial sum). */
typedef struct {
    int axis;
    int64_t outer, inner;
} sn_axis_ref;

typedef struct {
    sn_axis_ref in[SN_MAX_IN], out[SN_MAX_OUT];
    int64_t extent;
    bool sum; /* outputs without the label are sums over it: pieces add up */
} sn_way;

#define SN_MAX_WAYS 24
/* Axes that no way mentions need their whole extent. */
typedef struct {
    int n;
    sn_way way[SN_MAX_WAYS];
} sn_ways;

/* Rows [first, first + rows) of an axis of an operand; rows < 0: the whole operand. */
typedef struct {
    int axis;
    int64_t first, rows;
} sn_slice;

/* What a run on slices does: n of `extent` rows, from `first` on (whole operands: 1 of 1). Bit k of
 * sums: output k is a sum over them. */
typedef struct {
    int64_t first, n, extent;
    uint32_t sums;
} sn_cut;

/* --- the row ---------------------------------------------------------------------------------- */
typedef enum { SN_PURE, SN_RANDOM, SN_STATE, SN_MAYFAIL } sn_effect;
typedef enum {
    SN_INPLACE_NEVER = 0,
    SN_INPLACE_FIRST = 1, /* bit i: output 0 may overwrite input i */
    SN_INPLACE_SECOND = 2,
    SN_INPLACE_EITHER = 3,
    SN_INPLACE_ALIAS = 16, /* output 0 may be input 0, also while input 0 has later readers */
    SN_INPLACE_STATE = 32,
    SN_INPLACE_STATE_THREE = 64,  /* outputs from the fourth on are values */
    SN_INPLACE_STATE_FOURTH = 128 /* the same, and the fourth may overwrite the fourth input */
} sn_inplace;

#define SN_READS_IN(i)  (1u << (i))
#define SN_READS_OUT(i) (1u << (16 + (i)))

typedef struct {
    const char *name;
    int min_in, max_in;
    const sn_attr_family *attrs;
    snug_status (*shape)(sn_opdesc *d, snug_error *err); /* fills n_out, out[] */
    uint32_t reads;                                      /* SN_READS_IN(i) | SN_READS_OUT(i) */
    sn_inplace inplace;
    void (*axes)(const sn_opdesc *d, sn_ways *ways); /* types known */
    sn_effect effect;
    bool accumulates;
    sn_act fuses;                        /* the activation that it is in a product before it */
    double (*flops)(const sn_opdesc *d); /* by sn_op_flops */
} sn_op_row;

extern const sn_op_row sn_ops[SN_N_OPS];

/* How many of so many outputs, the first ones, are next versions of variables. */
static inline int sn_op_versions(sn_op op, int n_out) {
    if (sn_ops[op].effect != SN_STATE)
        return 0;
    return sn_ops[op].inplace == SN_INPLACE_STATE ? n_out : 3;
}

/* Whether output k may overwrite input j. */
static inline bool sn_op_may_overwrite(sn_op op, int k, int j) {
    const uint32_t rule = (uint32_t)sn_ops[op].inplace;
    if (rule == SN_INPLACE_STATE_FOURTH)
        return k == 3 && j == k;
    return k == 0 && j < 2 && (rule >> j & 1) != 0;
}

/* The error for an unknown name says which are near. */
SNUG_CHECKED snug_status sn_op_find(const char *name, sn_op *out, snug_error *err);
/* That the row exists and takes so many inputs. */
SNUG_CHECKED snug_status sn_op_check_arity(sn_op op, int n_in, snug_error *err);
SNUG_CHECKED snug_status sn_op_infer(sn_opdesc *d, snug_error *err);
/* The same where arity and inputs are known to be right; after an error the description is of no
 * use. */
SNUG_CHECKED snug_status sn_op_infer_checked(sn_opdesc *d, snug_error *err);
/* Each element of the result is made of elements of the inputs, or is one: of halves in f32, and
 * rounded once, as between casts. */
bool sn_op_is_by_element(sn_op op);
/* None of them adds up parts where the outputs have fewer digits than their sums need. */
void sn_op_ways(const sn_opdesc *d, sn_ways *ways);
/* The axes of a reduction of a value of this rank, as bits; an empty list means all. */
uint32_t sn_axes_set(const sn_list *axes, int rank);
/* Slices of the inputs, then of the outputs, each inside its operand. False: no way of the operator
 * cuts its operands so. Else *d becomes the slice: its types are those of the run. */
bool sn_op_slice(sn_opdesc *d, const sn_slice *slices, sn_cut *out);

/* Zeroed, with the values that mean "plain": strides, dilations and groups 1, dtypes f32.
 * Parameters have slot -1: none. */
void sn_attrs_default(sn_op op, sn_attrs *a);
/* All of `to`, of which only the operator's own words are read from `from`: others need not be
 * there. */
/* The word in which a row that can says that its results are wide; -1 of others. */
int sn_attrs_wide(sn_op op);
void sn_attrs_copy(sn_op op, const sn_attrs *from, sn_attrs *to);
/* "stride=2,2 pad=0,1,0,1 act=relu"; parameters print as p3 (slot 3). Structure fields equal to the
 * default are left out. Parsing starts from the default; "rate=p3" names a slot, "rate=0.5" asks
 * slot() for one. */
const char *sn_attrs_print(sn_op op, const sn_attrs *a, char *text, size_t size);
typedef struct {
    void *ctx;
    /* A new parameter slot with this value (real or integer by `is_key`); NULL table: literals are
     * refused. */
    snug_status (*add)(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                       snug_error *err);
} sn_param_maker;
SNUG_CHECKED snug_status sn_attrs_parse(sn_op op, const char *text, const sn_param_maker *maker,
                                        sn_attrs *out, snug_error *err);

/* --- device description: what the planner must know of kernels -------------------------------- */
/* Which rate of the device counts a kernel's operations. */
typedef enum {
    SN_SPEED_LOOP,    /* a vector loop; flops are elements */
    SN_SPEED_PRODUCT, /* packed products, convolutions: multiplications and additions */
    SN_SPEED_MATH,    /* a loop over exp, tanh and the like; flops are elements */
    SN_SPEED_SCALAR,  /* elements one by one */
    SN_SPEED_REFERENCE,
    SN_N_SPEEDS
} sn_speed;

/* Describes one way a device can run an operator. Sizes are upper bounds. */
typedef struct {
    int id;        /* given back to the device in the plan */
    char impl[40]; /* library implementation, e.g. "onednn:brgconv:avx512_core", "own:simd" */
    size_t workspace_bytes; /* scratch that lives for this node only: packed weights, oneDNN
                               scratchpad */
    size_t code_bytes;      /* code made for it (JIT), booked once */
    /* For the cost model: operations the kernel really does (multiply and add are two), bytes it
     * really moves, the rate that counts, and the part of that rate it reaches (0 means 1: shapes
     * that suit a kernel badly say less). */
    double flops, bytes;
    sn_speed speed;
    double efficiency;
    /* Of opaque outputs, per whole value; linear in axis 0. */
    size_t opaque_bytes[SN_MAX_OUT];
} sn_variant;

typedef struct sn_device {
    const char *name; /* "cpu:0" */
    size_t align;     /* of every location: 64 */
    int n_threads;
    sn_rates rates; /* of this machine */
    bool measured;  /* the rates are not the built-in ones */
    bool apart;     /* a run is handed over as a whole: rates.handoff is what that takes */
    void *ctx;
    /* Variant `id` 0 is the one to use; the choice depends on the desc without its batch extent,
     * machine and threads, never on a budget or a clock. SNUG_E_UNSUPPORTED when there is no kernel
     * (names op and dtype). */
    snug_status (*describe)(const struct sn_device *dev, const sn_opdesc *d, sn_variant *out,
                            snug_error *err);
} sn_device;

/* Operations (multiply and add counted as two) and bytes touched, from types alone. */
double sn_op_flops(const sn_opdesc *d);
/* Expected seconds of one run of a node on the device with its threads. Pure. */
double sn_cost_seconds(const sn_device *d, const sn_opdesc *desc, const sn_variant *v);
/* The same of a slice, which desc and v are of, where the node touches `whole` bytes without
 * slices. It finds no more in the cache than that would. */
double sn_cost_slice_seconds(const sn_device *d, const sn_opdesc *desc, const sn_variant *v,
                             double whole);

#endif
