/* remat_exact.h: the recompute problem by looking at everything, for up to 7 operators. */
#ifndef SN_TESTS_REMAT_EXACT_H
#define SN_TESTS_REMAT_EXACT_H

#include "plan/remat.h"

enum { SN_REMAT_EXACT_OPS = 7 };

/* The least cost within the budget; negative where there is no way. */
double sn_remat_exact_cost(const sn_remat_problem *p, size_t budget);
/* The smallest budget there is a way for. */
size_t sn_remat_exact_floor(const sn_remat_problem *p);

#endif
