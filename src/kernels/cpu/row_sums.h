/* row_sums.h: rows of halves added up where indices say: each sum is made in f32, of the rows in
 * the order of their indices, and rounded once; or not, where the result is f32. The result is
 * [outer, extent, inner], the rows [outer, n, inner]. A block of result rows at a time has its sums
 * in scratch and goes through all indices of its outer places. */
#ifndef SN_KERNELS_CPU_ROW_SUMS_H
#define SN_KERNELS_CPU_ROW_SUMS_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

typedef struct {
    int64_t outer, extent, inner, n;
    /* Where row u of all outer * n goes among the extent. */
    int64_t (*place)(const void *indices, int64_t u);
    const void *indices;
} sn_row_sums;

#define sn_row_sums_bytes SN_CPU(row_sums_bytes)
#define sn_row_sums_run   SN_CPU(row_sums_run)
#define sn_row_sums_plain SN_CPU(row_sums_plain)

/* Of a result of this dtype. */
size_t sn_row_sums_bytes(const sn_row_sums *s, snug_dtype result, int n_threads);
/* The rows are input 1, the result is output 0. */
void sn_row_sums_run(const sn_call *c, const sn_row_sums *s);
/* The reference: each element by itself, in double. */
void sn_row_sums_plain(const sn_call *c, const sn_row_sums *s);

#endif
