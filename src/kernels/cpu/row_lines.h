/* row_lines.h: half floats under kernels of rows of f32: some rows at a time are widened into
 * planned scratch, the kernel runs on a call whose operands begin there, and what it wrote is
 * rounded back. So a row's bits are those of f32 on the widened values, rounded once more.
 *
 *     static const sn_row_roles roles = {"rvv", "rss", 0};   // layernorm
 *     out->workspace_bytes = sn_row_lines_bytes(d, &roles, n_threads);      // in describe
 *
 *     sn_row_lines l;
 *     sn_row_lines_begin(&l, c, &roles);   // l.call has the vectors widened
 *     sn_row_lines_run(&l, body, ctx);     // body(ctx, call, n): rows [0, n) of the call
 *
 * Operands of other types are given as they are, from the first of the rows on. Inputs are read
 * before an output of the same rows is written: what may run in place in f32 may in halves. */
#ifndef SN_KERNELS_CPU_ROW_LINES_H
#define SN_KERNELS_CPU_ROW_LINES_H

#include "kernels/cpu/lines.h"
#include "kernels/cpu/parts.h"

/* A letter for each operand: `r` has rows as wide as input 0's, `s` one number for each, `v` one
 * row for all. The kernel itself has the first `own` floats of the workspace. */
typedef struct {
    const char *in, *out;
    int64_t own;
} sn_row_roles;

typedef struct {
    const sn_call *c;
    const sn_row_roles *roles;
    int64_t width, rows, chunk; /* chunk: rows at a time */
    int64_t vectors;            /* floats before the parts' scratch */
    sn_parts parts;
    sn_call call;
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
} sn_row_lines;

#define sn_row_lines_bytes SN_CPU(row_lines_bytes)
#define sn_row_lines_begin SN_CPU(row_lines_begin)
#define sn_row_lines_run   SN_CPU(row_lines_run)

size_t sn_row_lines_bytes(const sn_opdesc *d, const sn_row_roles *roles, int n_threads);
void sn_row_lines_begin(sn_row_lines *l, const sn_call *c, const sn_row_roles *roles);
void sn_row_lines_run(const sn_row_lines *l,
                      void (*body)(const void *ctx, const sn_call *c, int64_t n), const void *ctx);

#endif
