/* optimizer.h: optimizers: their settings, their slots, and the updates of a step. */
#ifndef SN_NN_OPTIMIZER_H
#define SN_NN_OPTIMIZER_H

#include "graph/build.h"
#include "nn/network.h"
#include "nn/schedule.h"

typedef struct {
    char name[16];                       /* a row of optimizer.c: sgd, adam, rmsprop, ... */
    sn_schedule schedule;                /* instead of learning_rate, where it has a name */
    double learning_rate, momentum, rho; /* Keras' names; 0 where the optimizer has none */
    double beta_1, beta_2, epsilon;
    double initial_accumulator_value, learning_rate_power;
    double l1_regularization_strength, l2_regularization_strength;
    double l2_shrinkage_regularization_strength, beta;
    double beta_2_decay, epsilon_1, epsilon_2, clip_threshold;
    double weight_decay, clipnorm, clipvalue, global_clipnorm; /* 0: off */
    double ema_momentum, ema_overwrite_frequency;              /* 0: never overwritten in a fit */
    double gradient_accumulation_steps;                        /* 0: each step updates */
    bool nesterov, amsgrad, centered, use_ema;
    bool relative_step; /* of Adafactor, whose formula has its effect anyway */
} sn_optimizer;
SNUG_CHECKED snug_status sn_optimizer_parse(const char *text, sn_optimizer *out, snug_error *err);
const char *sn_optimizer_print(const sn_optimizer *o, char *text, size_t size);
/* The learning rate of the step behind `steps` others. */
double sn_optimizer_rate(const sn_optimizer *o, int64_t steps);
/* Whether step t (from 1) updates weights; else it adds up gradients. */
bool sn_optimizer_updates(const sn_optimizer *o, int64_t step);
/* Appends updates of all trainable variables (part UPDATE), making slots as variables of the
 * network; or, for a step that does not update, adds the gradients to their accumulators. Graph
 * parameters are named "optimizer/<param>" and are set for each step by sn_optimizer_params. grads
 * are used up. */
SNUG_CHECKED snug_status sn_optimizer_build(const sn_optimizer *o, sn_network *n, sn_graph *g,
                                            sn_value *grads, int n_grads, snug_error *err);
SNUG_CHECKED snug_status sn_optimizer_accumulate(const sn_optimizer *o, sn_network *n, sn_graph *g,
                                                 const sn_value *grads, int n_grads,
                                                 snug_error *err);
/* Keras' loss scale: the loss that gradients are made of is multiplied by a parameter of the graph,
 * and gradients by its inverse, after each was looked at: where one is not finite the run is
 * refused before anything is written. */
#define SN_FIRST_LOSS_SCALE 32768.0
#define SN_GROWTH_STEPS     2000 /* without a refusal, until it doubles */
#define SN_LOSS_SCALE       "loss_scale"
#define SN_LOSS_UNSCALE     "loss_scale/inverse"
sn_value sn_optimizer_scale_loss(sn_builder *b, sn_value loss);
void sn_optimizer_unscale(sn_builder *b, sn_value *grads, int n_grads);
/* The home of a weight's moving average (use_ema); false when there is none (yet). */
bool sn_optimizer_average(const sn_optimizer *o, const sn_network *n, uint32_t weight,
                          uint32_t *home);
typedef struct {
    const char *name;
    double value;
} sn_named_real;
#define SN_OPTIMIZER_PARAMS 16
/* Values for step t (from 1), e.g. Adam's corrected rate; up to max of them; returns how many. */
int sn_optimizer_params(const sn_optimizer *o, int64_t step, sn_named_real *out, int max);

#endif
