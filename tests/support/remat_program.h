/* remat_program.h: programs for tests of the recompute search, and the rules replayed on its
 * answers by code that shares nothing with it. */
#ifndef SN_TESTS_REMAT_PROGRAM_H
#define SN_TESTS_REMAT_PROGRAM_H

#include "support/support.h"

#include "plan/remat.h"

enum { SN_REMAT_TEST_OPS = 12000, SN_REMAT_TEST_INPUTS = 48000 };

/* Storage of the caller's: large, so not on the stack. */
typedef struct {
    sn_remat_op ops[SN_REMAT_TEST_OPS];
    uint32_t inputs[SN_REMAT_TEST_INPUTS];
    uint32_t n_inputs;
    sn_remat_problem problem;
} sn_remat_program_t;

/* n operators that read up to three before them, near ones more often; with `rules` also once,
 * keep, not_after, takes and work bytes. */
void sn_remat_random(sn_remat_program_t *p, uint64_t seed, uint32_t n, bool rules);
/* A training step: a chain of n / 2 operators with shortcuts over blocks, and its gradients back,
 * each reading the gradient behind and a forward value; sizes shrink and costs vary. */
void sn_remat_step(sn_remat_program_t *p, uint64_t seed, uint32_t n);
/* A training step of a net with skip connections: each of the levels has its value joined to what
 * comes back from the levels below, of a quarter of the bytes each. At the bottom much scratch. */
void sn_remat_skips(sn_remat_program_t *p, int levels);

/* Fails the test where an answer that fits breaks a rule: inputs resident, nothing computed that is
 * there, all computed, bytes within the budget, cost and peak as said, once, keep, not_after, and
 * and the order of first computations. */
void sn_remat_expect_legal(const sn_remat_problem *p, const sn_remat_result *r, size_t budget);
size_t sn_remat_base_peak(const sn_remat_problem *p); /* in the order given, nothing twice */
double sn_remat_base_cost(const sn_remat_problem *p);

#endif
