/* layer.h: what the files of layers, losses and optimizers share: a network's variables as handles
 * of a recorder, and parameters with names as numbers of a recording. */
#ifndef SN_EAGER_LAYER_H
#define SN_EAGER_LAYER_H

#include "record/record.h"
#include "nn/optimizer.h"

#include <snug/layer.h>

/* vars[i] is the variable with home i of the network. While a call is open reads go through it. */
typedef struct {
    snug_recorder *r;
    sn_network *network;
    snug_variable **vars;
    size_t n, cap;
    sn_record_call *call;         /* NULL: none is open */
    const sn_host *host;          /* of numbers by name; NULL: names are keys that are drawn */
    const sn_named_real *numbers; /* what the host knows, by index */
    int n_numbers;
    sn_host own;      /* of keys of layers with a seed of their own; made when needed */
    uint64_t element; /* what those follow from in a program; 0: how often they came */
    sn_network_door door;
    sn_param_source source;
} sn_held;

void sn_held_init(sn_held *h, snug_recorder *r, sn_network *n);
void sn_held_clear(sn_held *h);
/* Handles for variables that the network has and the recorder does not; `prefix` NULL: names as
 * they are. */
SNUG_CHECKED snug_status sn_held_make(sn_held *h, snug_error *err);
/* How often layers with a seed of their own drew; and that they go on from there. */
uint64_t sn_held_draws(const sn_held *h);
SNUG_CHECKED snug_status sn_held_set_draws(sn_held *h, uint64_t draws, snug_error *err);
/* From enter to leave the network reads through the call. */
void sn_held_enter(sn_held *h, sn_record_call *c);
void sn_held_leave(sn_held *h);
/* The element that the layer is called for, by a program (program.h). */
void sn_layer_set_element(snug_layer *layer, uint64_t key);

#endif
