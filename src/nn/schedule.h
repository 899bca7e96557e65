/* schedule.h: learning-rate schedules. */
#ifndef SN_NN_SCHEDULE_H
#define SN_NN_SCHEDULE_H

#include "base/status.h"

#include <stdbool.h>

#define SN_SCHEDULE_MAX 15 /* boundaries of piecewise_constant_decay */
/* "cosine_decay(initial_learning_rate=0.1,decay_steps=1000)": Keras' names and defaults. */
typedef struct {
    char name[32]; /* a row of schedule.c; "": none */
    char text[256];
    double initial_learning_rate, decay_steps, first_decay_steps, decay_rate, end_learning_rate;
    double power, alpha, t_mul, m_mul, warmup_steps;
    double warmup_target; /* NaN: no warmup */
    double boundaries[SN_SCHEDULE_MAX], values[SN_SCHEDULE_MAX + 1];
    int n_boundaries, n_values;
    bool staircase, cycle;
} sn_schedule;
SNUG_CHECKED snug_status sn_schedule_parse(const char *text, sn_schedule *out, snug_error *err);
/* The rate of the step behind `steps` others. */
double sn_schedule_rate(const sn_schedule *s, int64_t steps);

#endif
