/* cut_boxes.h: packing problems with a known answer: a square of 1,048,576 steps and bytes, in a
 * grid of 1,024, is cut into boxes at random; some boxes may be taken away again. What is left fits
 * into the square's height. */
#ifndef SN_TEST_CUT_BOXES_H
#define SN_TEST_CUT_BOXES_H

#include "plan/plan.h"

enum { SN_CUT_GRID = 1024, SN_CUT_HEIGHT = 1048576 };

/* Which piece is cut next. */
typedef enum {
    SN_CUT_LARGE,
    SN_CUT_LARGEST,
    SN_CUT_ANY,
    SN_CUT_HIGH,
    SN_CUT_LONG,
    SN_N_CUTS
} sn_cut_pick;

typedef struct {
    uint64_t seed;
    uint32_t n; /* boxes, before some are taken away */
    sn_cut_pick pick;
    bool knots;    /* some cuts are pinwheels of five pieces, which no straight cut divides */
    uint32_t gone; /* per cent of the area that is taken away */
    bool loose;    /* everywhere; otherwise one moment stays full, so the bound is the height */
} sn_cutting;

/* Fills items (room for c->n) in random order; returns how many there are. */
uint32_t sn_cut_boxes(const sn_cutting *c, sn_pack_item *items);
/* The k-th of a series that mixes all of the above. */
sn_cutting sn_cutting_of_series(uint32_t k);

#endif
