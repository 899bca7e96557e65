/* optimizer_rows.h: what the two files of optimizers share: optimizer.c has rows and settings,
 * optimizer_build.c makes the graph. */
#ifndef SN_NN_OPTIMIZER_ROWS_H
#define SN_NN_OPTIMIZER_ROWS_H

#include "graph/build.h"
#include "nn/optimizer.h"

/* How one weight is updated: op(weight, slots ..., gradient). */
typedef struct {
    sn_op op;
    sn_attrs attrs;
    bool squares;   /* takes the squares of the gradient as one more input */
    bool sizes;     /* or their magnitudes */
    int64_t *given; /* a flag in attrs that says so; NULL: the number of inputs does */
    int n_slots;
    struct {
        const char *name;
        double start;
    } slots[3];
} sn_optimizer_form;

/* Those that no operator does as one, made of several. */
typedef enum { SN_BY_FORM, SN_BY_ADAFACTOR, SN_BY_LAMB, SN_N_WAYS } sn_optimizer_way;

typedef struct {
    sn_optimizer defaults;
    const char *settings; /* its own; all have the common ones */
    sn_optimizer_way way;
    /* SN_BY_FORM only */
    void (*form)(const sn_optimizer *o, sn_builder *b, sn_optimizer_form *f);
    double (*rate)(const sn_optimizer *o, int64_t step); /* NULL: the learning rate */
} sn_optimizer_row;

/* NULL: there is none of this name. */
const sn_optimizer_row *sn_optimizer_find(const char *name);

#endif
