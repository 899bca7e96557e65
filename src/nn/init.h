/* init.h: initialisers by Keras' names: texts become recipes of variables. */
#ifndef SN_NN_INIT_H
#define SN_NN_INIT_H

#include "tensor/feed.h"

/* "glorot_uniform", "he_normal", "random_normal:stddev=0.02,seed=3", "zeros", ... parsed; see
 * init.c for Keras' list. */
typedef struct {
    char kind[32];
    double a, b;                     /* value / minval,maxval / mean,stddev / scale */
    char mode[16], distribution[24]; /* variance_scaling */
    double fan_in, fan_out;          /* 0: from the shape of the variable */
    int64_t seed;                    /* < 0: from the network's seed and the variable's name */
} sn_init;

SNUG_CHECKED snug_status sn_init_parse(const char *text, sn_init *out, snug_error *err);
/* The recipe of a variable of this type; key is used unless the initialiser has a seed of its
 * own. */
SNUG_CHECKED snug_status sn_init_recipe(const sn_init *init, const snug_type *type, uint64_t key,
                                        sn_recipe *out, snug_error *err);

#endif
