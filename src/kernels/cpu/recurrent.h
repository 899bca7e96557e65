/* recurrent.h: a recurrent call taken apart, and the fast kernels of f32 and halves. Letters: B
 * examples, T steps, H units, G gates. */
#ifndef SN_KERNELS_CPU_RECURRENT_H
#define SN_KERNELS_CPU_RECURRENT_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

typedef struct {
    int64_t B, T, H, G;
    int64_t act, gate_act;
    bool reverse;
    /* NULL: the call has none */
    const uint8_t *mask;      /* [B,T] */
    const snug_view *drop;    /* [B,GH] */
    const snug_view *dhidden; /* [B,T,H], of gradient rows */
} sn_rnn;

/* `fixed` inputs are always there; the others are told apart by their types, see
 * op/shape_recurrent.c. The attribute families of all rows begin alike. */
static inline sn_rnn sn_rnn_of(const sn_call *c, int fixed) {
    const snug_type *gates = &c->in[0].type;
    const int64_t H = c->in[1].type.dims[0];
    sn_rnn r = {.B = gates->dims[0],
                .T = gates->dims[1],
                .H = H,
                .G = H > 0 ? gates->dims[2] / H : 1,
                .act = c->attrs->rnn.act,
                .gate_act = c->attrs->rnn.gate_act,
                .reverse = c->attrs->rnn.reverse != 0};
    for (int i = fixed; i < c->n_in; i++)
        if (c->in[i].type.dtype == SNUG_BOOL)
            r.mask = c->in[i].data;
        else if (c->in[i].type.rank == 3)
            r.dhidden = &c->in[i];
        else
            r.drop = &c->in[i];
    return r;
}

/* Where step s of example b lies among its T, and whether it is taken. */
static inline int64_t sn_rnn_time(const sn_rnn *r, int64_t s) {
    return r->reverse ? r->T - 1 - s : s;
}
static inline bool sn_rnn_taken(const sn_rnn *r, int64_t b, int64_t t) {
    return !r->mask || r->mask[b * r->T + t];
}

/* Gradient of an activation, from its result. */
#define SN_ACT_SLOPE(act, y, one)                                                                  \
    ((act) == SN_ACT_tanh           ? (one) - (y) * (y)                                            \
     : (act) == SN_ACT_sigmoid      ? (y) * ((one) - (y))                                          \
     : (act) == SN_ACT_relu         ? ((y) > 0 ? (one) : 0)                                        \
     : (act) == SN_ACT_hard_sigmoid ? ((y) > 0 && (y) < 1 ? (one) / 6 : 0)                         \
                                    : (one))

/* --- the fast kernels ------------------------------------------------------------------------ */
enum { SN_RNN_ROWS = 24, SN_RNN_GATES = 4 }; /* examples of a block */

/* Gates that see the same states, and their part of the recurrent kernel. */
typedef struct {
    int64_t first, n; /* gates */
    const float *packed;
} sn_rnn_group;

typedef struct {
    const sn_call *c;
    sn_rnn r;
    const float *drop; /* of r.drop */
    const float *dhidden;
    int64_t block_rows;
    int n_groups;
    sn_rnn_group groups[SN_RNN_GATES];
    const int64_t *column; /* 0, 1, 2, ... GH */
    float *scratch;        /* [B,H]; of halves: the stages of blocks */
    snug_dtype stored;     /* what others read of a step is rounded to it before */
} sn_rnn_net;

/* Of a description or of a call. */
enum { SN_RNN_IN = 8 };
typedef struct {
    int n_in, n_out;
    const snug_type *in[SN_RNN_IN], *out[SN_MAX_OUT];
    const sn_attrs *attrs;
    bool dropped;
} sn_rnn_operands;

/* A step of the examples of a block that take it. */
typedef struct {
    const sn_rnn_net *n;
    int64_t t, earlier; /* < 0: it is the first */
    int64_t rows, b[SN_RNN_ROWS];
} sn_rnn_step;

/* A state before the first step is an input; before others it lies in a sequence, which is an
 * output forwards and an input on the way back. */
typedef struct {
    int8_t initial, sequence;
} sn_rnn_state;

typedef struct {
    void (*take)(const sn_rnn_step *s);            /* the rows of s */
    void (*hold)(const sn_rnn_step *s, int64_t b); /* example b keeps its state */
    int8_t fixed, after; /* inputs that are always there; so many more with `reset_after` */
    bool resets;         /* a gru, which has `reset_after` */
    bool back;           /* a gradient row */
    int8_t n_states;
    sn_rnn_state states[2];
    /* Forwards: the output that gets the states behind the last step. Back: the first output that
     * keeps the running gradient of a state, of n_last. */
    int8_t last, n_last;
} sn_rnn_kind;

#define SN_RNN_KINDS(X)   X(lstm) X(lstm_grad) X(gru) X(gru_grad) X(simple_rnn) X(simple_rnn_grad)
#define SN_RNN_NAME(name) SN_RNN_##name,
typedef enum { SN_RNN_KINDS(SN_RNN_NAME) SN_N_RNN } sn_rnn_row;
#undef SN_RNN_NAME

#define sn_rnn_kinds        SN_CPU(rnn_kinds)
#define sn_rnn_walk         SN_CPU(rnn_walk)
#define sn_rnn_run          SN_CPU(rnn_run)
#define sn_rnn_workspace    SN_CPU(rnn_workspace)
#define sn_rnn_run_halves   SN_CPU(rnn_run_halves)
#define sn_rnn_stage_floats SN_CPU(rnn_stage_floats)
#define sn_rnn_block_rows   SN_CPU(rnn_block_rows)

extern const sn_rnn_kind sn_rnn_kinds[SN_N_RNN];

static inline bool sn_rnn_resets_after(const sn_rnn_kind *k, const sn_attrs *a) {
    return k->resets && a->gru.reset_after != 0;
}

static inline int sn_rnn_fixed(const sn_rnn_kind *k, const sn_attrs *a) {
    return k->fixed + (sn_rnn_resets_after(k, a) ? k->after : 0);
}

/* Floats of a block's scratch for each example. */
static inline int64_t sn_rnn_scratch(const sn_rnn_kind *k, const sn_attrs *a, int64_t H,
                                     bool dropped) {
    return dropped || (k->resets && !sn_rnn_resets_after(k, a)) ? H : 0;
}

/* The steps of examples [b0, b1), each handed to `visit`. */
typedef void sn_rnn_visit(void *ctx, const sn_rnn_step *s, int64_t b0, int64_t b1);
void sn_rnn_walk(const sn_rnn_net *n, const sn_rnn_kind *k, int64_t block, sn_rnn_visit *visit,
                 void *ctx);

size_t sn_rnn_workspace(const sn_opdesc *d, sn_rnn_row row, int n_threads);
/* f32 or halves, in all operands. */
void sn_rnn_run(const sn_call *c, sn_rnn_row row);

int64_t sn_rnn_block_rows(int64_t B, int n_threads);

/* Of halves: room for the stages of all threads, which is the net's scratch then. */
int64_t sn_rnn_stage_floats(const sn_rnn_operands *o, const sn_rnn_kind *k, int n_threads);
void sn_rnn_run_halves(const sn_rnn_net *n, const sn_rnn_kind *k, const sn_rnn_operands *o);

#endif
