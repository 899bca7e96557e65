/* recurrent_layers.h: what layers that go step by step share. */
#ifndef SN_NN_RECURRENT_LAYERS_H
#define SN_NN_RECURRENT_LAYERS_H

#include "nn/layer_call.h"

/* The initialiser of an LSTM's bias where the forget gate begins at 1; it must be a constant. */
sn_init sn_forget_init(sn_layer_call *c, const sn_init *bias, int64_t units);

/* Whether dropout at this rate acts; factors for it: ones of which `rate` are zero and the others
 * larger, another draw for each `what`. */
bool sn_drops(const sn_layer_call *c, double rate);
sn_value sn_drop_factors(sn_layer_call *c, const char *what, const snug_type *type, double rate);

/* Step t of [batch, steps, ...], without the axis of steps. */
sn_value sn_step_of(sn_layer_call *c, sn_value x, int64_t t);

/* Steps [batch, ...] one after the other as [batch, steps, ...]; any number of them.
 *
 *     sn_steps s = {.n = 0};
 *     for (...)
 *         sn_steps_add(c, &s, y);
 *     c->out = sn_steps_end(c, &s); */
typedef struct {
    sn_value part[SN_MAX_IN];
    int n;
} sn_steps;
void sn_steps_add(sn_layer_call *c, sn_steps *s, sn_value y);
sn_value sn_steps_end(sn_layer_call *c, const sn_steps *s);

#endif
