/* lapack_warm.c: LAPACK used once on little, before the process is measured: its pages of code come
 * as calls want them, and all that plans will call is there afterwards. Each kind of problem, for
 * floats and for doubles, is brought in when the first plan has it. */
#include "kernels/cpu/lapack_library.h"

#include <stdatomic.h>

/* Beyond 25 both divide what they are asked; a matrix of twice as many rows takes other ways. */
enum { SHORT = 28, LONG = 56 };

static _Atomic unsigned asked, brought; /* a bit for each kind and type */

static unsigned bit_of(const sn_lapack_problem *p) {
    return 1u << (2 * (unsigned)p->kind + p->is_f64);
}

void sn_lapack_will_run(const sn_lapack_problem *p) {
    if (!(atomic_load(&asked) & bit_of(p)))
        atomic_fetch_or(&asked, bit_of(p));
}

bool sn_lapack_is_cold(void) {
    return (atomic_load(&asked) & ~atomic_load(&brought)) != 0;
}

/* A matrix without order. */
static void fill(const sn_lapack_problem *p, void *m, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)((i * 37 + i * i % 11) % 101) / 101;
        if (p->is_f64)
            ((double *)m)[i] = x;
        else
            ((float *)m)[i] = (float)x;
    }
}

static snug_status run_once(snug_engine *e, const sn_lapack_problem *p, snug_error *err) {
    enum { ELEMENTS = LONG * LONG };
    const size_t size = p->is_f64 ? sizeof(double) : sizeof(float);
    sn_lapack_need need;
    void *block;
    SNUG_TRY(sn_lapack_describe(p, &need, err));
    const size_t bytes = 4 * ELEMENTS * size + need.bytes;
    SNUG_TRY(sn_alloc(e, SN_MEM_KERNELS, bytes, &block, err));
    char *const a = block;
    fill(p, a, p->rows * p->columns);
    const sn_lapack_operands o = {
        .a = a,
        .b = a,
        .cut = 1e-6,
        .out = {a + ELEMENTS * size, a + 2 * ELEMENTS * size, a + 3 * ELEMENTS * size}};
    sn_lapack_solve(p, &need, &o, a + 4 * ELEMENTS * size);
    sn_free(e, SN_MEM_KERNELS, block, bytes);
    return SNUG_OK;
}

/* How many shapes, and how many settings of each, take ways of their own. */
static const struct {
    int shapes, settings;
} ways[SN_N_LAPACK] = {
    [SN_LAPACK_EIGH] = {1, 1},  [SN_LAPACK_SVD] = {3, 3}, [SN_LAPACK_QR] = {3, 1},
    [SN_LAPACK_LSTSQ] = {3, 1}, [SN_LAPACK_LU] = {1, 1},  [SN_LAPACK_CHOLESKY] = {1, 1},
    [SN_LAPACK_SOLVE] = {1, 2}};

static snug_status bring(snug_engine *e, const sn_lapack_problem *like, snug_error *err) {
    static const int64_t shapes[][2] = {{SHORT, SHORT}, {LONG, SHORT}, {SHORT, LONG}};
    sn_lapack_bring_code(like);
    for (int i = 0; i < ways[like->kind].shapes; i++)
        for (int way = 0; way < ways[like->kind].settings; way++) {
            sn_lapack_problem p = *like;
            p.rows = shapes[i][0];
            p.columns = shapes[i][1];
            p.vectors = p.adjoint = way > 0;
            p.whole = way > 1;
            SNUG_TRY(run_once(e, &p, err));
        }
    return SNUG_OK;
}

snug_status sn_lapack_warm(snug_engine *e, snug_error *err) {
    for (sn_lapack_kind kind = SN_LAPACK_EIGH; sn_lapack_is_cold() && kind < SN_N_LAPACK; kind++)
        for (int is_f64 = 0; is_f64 < 2; is_f64++) {
            const sn_lapack_problem p = {.kind = kind, .is_f64 = is_f64, .right = 3};
            if (!(atomic_load(&asked) & ~atomic_load(&brought) & bit_of(&p)))
                continue;
            SNUG_TRY(bring(e, &p, err));
            atomic_fetch_or(&brought, bit_of(&p));
        }
    return SNUG_OK;
}
