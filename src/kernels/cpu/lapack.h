/* lapack.h: eigenvalues, singular values, factors of matrices, equations and least squares, by
 * LAPACK: one matrix a call, on the calling thread.
 *
 *     const sn_lapack_problem p = {.kind = SN_LAPACK_SVD, .is_f64 = true, .vectors = true,
 *                                  .rows = 40, .columns = 20};
 *     sn_lapack_need need;
 *     sn_lapack_describe(&p, &need, err);       // loads the library, asks it for its workspace
 *     sn_lapack_solve(&p, &need, &operands, workspace)
 *
 * The library is liblapack.so.3 over its own BLAS (Debian: liblapack3, libblas3): it allocates
 * nothing, has no threads, and the bits of a matrix depend on nothing but the matrix. It is loaded
 * with the first plan that has such a row, once for the process, and stays. LAPACK over OpenBLAS
 * and its like is refused: their buffers grow with what they are given, beside every budget.
 *
 * LAPACK's matrices lie by columns, ours by rows: it is given the transposed ones. */
#ifndef SN_KERNELS_CPU_LAPACK_H
#define SN_KERNELS_CPU_LAPACK_H

#include "kernels/cpu/cpu.h"

typedef enum {
    SN_LAPACK_EIGH,     /* a -> values, vectors as columns; the lower triangle is read */
    SN_LAPACK_SVD,      /* a -> s, u, v' */
    SN_LAPACK_QR,       /* a -> q, r */
    SN_LAPACK_LSTSQ,    /* a, b -> x, the shortest of those that bring |a x - b| lowest */
    SN_LAPACK_LU,       /* a -> l and u in one matrix, which rows they are (int32), det a's sign */
    SN_LAPACK_CHOLESKY, /* a -> l; the lower triangle is read */
    SN_LAPACK_SOLVE,    /* a, b -> x, and 1 where there is one */
    SN_N_LAPACK
} sn_lapack_kind;

typedef struct {
    sn_lapack_kind kind;
    bool is_f64;
    bool vectors;      /* svd: u and v', too */
    bool whole;        /* svd, qr: u, v' and q are square */
    bool lower, upper; /* solve: this triangle of a alone; x is all there is */
    bool adjoint;      /* solve: a' x = b */
    bool unit;         /* solve: the triangle's diagonal is ones */
    int64_t rows, columns;
    int64_t right; /* lstsq, solve: columns of b */
} sn_lapack_problem;

/* What a call takes. Counts are of elements, of integers for `indices`. */
typedef struct {
    int work, indices;
    size_t bytes; /* of the whole workspace; its last bytes are written in any case */
} sn_lapack_need;

typedef struct {
    const void *a, *b;
    double cut; /* lstsq: singular values up to this part of the largest count as zero */
    void *out[3];
} sn_lapack_operands;

/* SNUG_E_UNSUPPORTED without the library. */
SNUG_CHECKED snug_status sn_lapack_describe(const sn_lapack_problem *p, sn_lapack_need *need,
                                            snug_error *err);
/* Outputs of a matrix with a NaN or an infinity are NaN, as are those where LAPACK finds no end, of
 * cholesky and solve also where there is no answer. A triangle is computed with as it is. */
void sn_lapack_solve(const sn_lapack_problem *p, const sn_lapack_need *need,
                     const sn_lapack_operands *o, void *workspace);
/* "3.11.0"; "" where it is not loaded. */
const char *sn_lapack_version(void);

#endif
