/* subject.h: one case of one operator made ready to run, and sweeps over all of them.
 *
 *     static void check_neg(sn_subject *s) { ... sn_complain(s, "output %d ...", k); }
 *     static void test_x(void **state) { (void)state; sn_sweep_rows("x", check_neg); }
 *
 * A complaint names sweep, row, case and dtype; a sweep goes on after it and fails at its end, so
 * that one run shows all there is to repair. */
#ifndef SN_TESTS_SUBJECT_H
#define SN_TESTS_SUBJECT_H

#include "cases.h"
#include "kernels/cpu/cpu.h"

typedef struct {
    const char *name;
    snug_engine *engine;
    sn_team *team; /* of three */
    int n_complaints;
    int64_t checked[SN_N_OPS]; /* comparisons made, by row: a row without any was not tested */
} sn_sweep;

typedef struct {
    sn_sweep *sweep;
    sn_op op;
    int index; /* of the case in its set */
    const sn_case *from;
    snug_dtype real; /* the float type under test */
    bool is_mixed;   /* with f32 beside it wherever the row takes that */
    sn_opdesc desc;
    sn_scalar param[SN_MAX_PARAMS]; /* in the order of a call */
    int64_t limit[SN_MAX_IN];       /* N of @labels:N, else 0 */
    snug_view in[SN_MAX_IN];        /* guarded */
} sn_subject;

/* Every row, every case, as f32 and as f64 (cases without a float type once). Fails the test at the
 * end when anything complained. */
void sn_sweep_rows(const char *name, void (*check)(sn_subject *s));
/* The same; the caller looks at the counts before it ends the sweep. */
void sn_sweep_begin(sn_sweep *w, const char *name);
void sn_sweep_run(sn_sweep *w, void (*check)(sn_subject *s));
void sn_sweep_end(sn_sweep *w);

void sn_complain(sn_subject *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One comparison was made. */
static inline void sn_checked(sn_subject *s) {
    s->sweep->checked[s->op]++;
}

/* The attributes of a case as text: `dtype=f` made the type under test. text holds >= 256. */
const char *sn_case_attrs(const sn_case *c, snug_dtype real, char *text);
/* The maxpool or conv2d_pool whose code input `code` of d is. */
void sn_code_maker(const sn_opdesc *d, int code, sn_opdesc *maker);
int64_t sn_subject_elements(const sn_subject *s); /* of all inputs and outputs */

/* --- guarded memory: 64 bytes before and behind that nobody may write (nor, with AddressSanitizer,
 * read) --- */
void *sn_guarded(size_t bytes, int fill);
bool sn_guards_ok(const void *data, size_t bytes);
void sn_guarded_free(void *data, size_t bytes);

/* opaque_bytes: for an opaque type. */
snug_view sn_view_make(const snug_type *t, size_t opaque_bytes, int fill);
snug_view sn_view_copy(const snug_view *v);
void sn_view_free(snug_view *v);
void sn_views_free(snug_view *v, int n);
double sn_view_get(const snug_view *v, int64_t i);
void sn_view_put(const snug_view *v, int64_t i, double value);
/* Uniform in [low, high) by key and position. */
void sn_view_random(const snug_view *v, uint64_t key, double low, double high);
/* Elements; an opaque value's are its bytes. */
static inline int64_t sn_view_count(const snug_view *v) {
    return v->type.dtype == SNUG_OPAQUE ? (int64_t)v->bytes : sn_type_count(&v->type);
}

#endif
