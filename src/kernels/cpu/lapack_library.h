/* lapack_library.h: the functions of liblapack.so.3, found once, and its code, brought in before a
 * process is measured. Elements are floats or doubles: a function is there for both. */
#ifndef SN_KERNELS_CPU_LAPACK_LIBRARY_H
#define SN_KERNELS_CPU_LAPACK_LIBRARY_H

#include "kernels/cpu/lapack.h"

/* Fortran: all arguments by address; behind them the lengths of texts. */
typedef void sn_lapack_eigh(const char *job, const char *triangle, const int *n, void *a,
                            const int *line, void *values, void *work, const int *n_work,
                            int *indices, const int *n_indices, int *state, size_t, size_t);
typedef void sn_lapack_svd(const char *job, const int *m, const int *n, void *a, const int *line,
                           void *s, void *u, const int *u_line, void *v, const int *v_line,
                           void *work, const int *n_work, int *indices, int *state, size_t);
typedef void sn_lapack_lq(const int *m, const int *n, void *a, const int *line, void *tau,
                          void *work, const int *n_work, int *state);
typedef void sn_lapack_rows_of_q(const int *m, const int *n, const int *k, void *a, const int *line,
                                 const void *tau, void *work, const int *n_work, int *state);
typedef void sn_lapack_lstsq(const int *m, const int *n, const int *right, void *a, const int *line,
                             void *b, const int *b_line, void *s, const void *cut, int *rank,
                             void *work, const int *n_work, int *indices, int *state);
typedef void sn_lapack_lu(const int *m, const int *n, void *a, const int *line, int *indices,
                          int *state);
typedef void sn_lapack_cholesky(const char *triangle, const int *n, void *a, const int *line,
                                int *state, size_t);
typedef void sn_lapack_triangle(const char *side, const char *triangle, const char *job,
                                const char *diagonal, const int *m, const int *n, const void *scale,
                                const void *a, const int *line, void *b, const int *b_line, size_t,
                                size_t, size_t, size_t);

/* [1] is for doubles. xGETRF2 and xPOTRF2 halve their matrix over and over: small ones do not wait
 * for a question of block sizes, large ones take less time than by xGETRF and xPOTRF. */
typedef struct {
    sn_lapack_eigh *eigh[2];           /* xSYEVD */
    sn_lapack_svd *svd[2];             /* xGESDD */
    sn_lapack_lq *lq[2];               /* xGELQF */
    sn_lapack_rows_of_q *rows_of_q[2]; /* xORGLQ */
    sn_lapack_lstsq *lstsq[2];         /* xGELSD */
    sn_lapack_lu *lu[2];               /* xGETRF2 */
    sn_lapack_cholesky *cholesky[2];   /* xPOTRF2 */
    sn_lapack_triangle *triangle[2];   /* BLAS' xTRSM */
    char version[24];
} sn_lapack_library;

SNUG_CHECKED snug_status sn_lapack_load(const sn_lapack_library **out, snug_error *err);
const sn_lapack_library *sn_lapack_loaded(void); /* NULL: it is not */

/* A plan has such a problem: what runs for it is brought in with the next sn_lapack_warm. */
void sn_lapack_will_run(const sn_lapack_problem *p);

/* Code of these functions and of those they call for large matrices only. */
void sn_lapack_bring_code(const sn_lapack_problem *p);

#endif
