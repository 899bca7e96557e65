/* arena.h: which bytes of an arena a plan may write, and which were written. */
#ifndef SN_TESTS_ARENA_H
#define SN_TESTS_ARENA_H

#include "exec/exec.h"

/* Marks the bytes of the first arena that differ from the poison they had before the run. */
void sn_arena_mark(const sn_executor *x, int poison, unsigned char *written);
/* Fails the test unless the highest byte marked is the last one that the plan promises: the end of
 * all values and all scratch, unpadded, which is also its used_bytes. */
void sn_arena_expect_exact(const sn_plan *p, const unsigned char *written, const char *what);

#endif
