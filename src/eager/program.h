/* program.h: the inside of a program: slots, steps, and what their types are worked out with. */
#ifndef SN_EAGER_PROGRAM_H
#define SN_EAGER_PROGRAM_H

#include "memory/engine.h"

#include <snug/data_ops.h>
#include <snug/program.h>

#include <stdatomic.h>

/* Types are tried with two sizes for what is unknown: extents that come out equal do not depend on
 * it. */
#define SN_PROGRAM_TRIES 2

typedef struct {
    snug_type type[SN_PROGRAM_TRIES];
    snug_tensor *known[SN_PROGRAM_TRIES]; /* a value that follows from extents; or NULL */
    bool is_text;
    bool no_rank;
    int last;     /* the step that uses it last; -1: none; n_steps: the result */
    int constant; /* its place among constants, or -1 */
} sn_program_slot;

typedef struct {
    int function;     /* or -1: */
    snug_data_op *op; /* owned; or NULL: */
    const snug_program_layer *layer;
    const snug_argument *args;
    int n_args, n_items; /* with those in lists */
    int first_out, n_out;
} sn_program_step;

struct snug_program {
    snug_engine *engine;
    sn_zone *zone;
    atomic_uint holds;
    uint64_t seed;
    snug_recorder *tries; /* NULL once given */
    snug_spec in, out;
    int outputs[SNUG_MAX_PARTS];
    sn_program_slot *slots;
    sn_program_step *steps;
    snug_datum *constants;
    size_t slot_cap, step_cap, constant_cap;
    int n_slots, n_steps, n_constants;
    bool has_weights; /* a layer that was tried */
};

/* How many arguments a list has with all lists in it. */
int sn_program_items(const snug_argument *args, int n);
/* (program_replay.c) */
snug_status sn_program_open(void *program, snug_engine *e, void **worker, snug_error *err);
void sn_program_close(void *program, void *worker);
snug_status sn_program_run(void *program, void *worker, const snug_element *in, snug_element *out,
                           snug_error *err);

#endif
