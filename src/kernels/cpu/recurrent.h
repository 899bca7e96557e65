/* recurrent.h: a recurrent call taken apart, and the fast f32 kernels. Letters: B examples, T
 * steps, H units, G gates. */
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

/* Of a row with so many inputs that are always there; `back`: a gradient row; `scratch`: it lays
 * states out without dropout, too. */
size_t SN_CPU(recurrent_workspace)(const sn_opdesc *d, int fixed, bool back, bool scratch);
void SN_CPU(lstm_f32)(const sn_call *c);
void SN_CPU(lstm_grad_f32)(const sn_call *c);
void SN_CPU(gru_f32)(const sn_call *c);
void SN_CPU(gru_grad_f32)(const sn_call *c);
void SN_CPU(simple_rnn_f32)(const sn_call *c);
void SN_CPU(simple_rnn_grad_f32)(const sn_call *c);

#endif
