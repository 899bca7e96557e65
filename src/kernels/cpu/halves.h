/* halves.h: operands of products and convolutions that lie in memory as halves. They are widened to
 * f32 where operands are packed or copied anyway, f32 kernels do the work, and what they made is
 * rounded once, when bias and activation are behind it.
 *
 * Operands need not have one type: an f32 factor beside a half is rounded to that half as it is
 * read, so its bits are those of a cast before. A bias, a scale or a result in f32 stays as it
 * is. */
#ifndef SN_KERNELS_CPU_HALVES_H
#define SN_KERNELS_CPU_HALVES_H

#include "kernels/cpu/lines.h"
#include "kernels/cpu/product.h"

typedef struct {
    void *data;         /* NULL: there is none, or nobody has it yet */
    snug_dtype dtype;   /* SNUG_F32 or a half */
    snug_dtype rounded; /* the half that f32 is rounded to; SNUG_F32: none */
} sn_stored;

static inline sn_stored sn_stored_of(const snug_view *v) {
    return (sn_stored){v->data, v->type.dtype, SNUG_F32};
}

/* A factor, and what the other one is. */
static inline sn_stored sn_stored_factor(const snug_view *v, const snug_view *other) {
    sn_stored s = sn_stored_of(v);
    if (s.dtype == SNUG_F32 && sn_dtype_is_half(other->type.dtype))
        s.rounded = other->type.dtype;
    return s;
}

/* NULL where it is no f32. */
static inline float *sn_f32_of(const sn_stored *s) {
    return s->dtype == SNUG_F32 ? s->data : NULL;
}

/* s without its first elements. */
static inline sn_stored sn_stored_from(sn_stored s, int64_t first) {
    s.data = (char *)s.data + first * (int64_t)snug_dtype_bytes(s.dtype);
    return s;
}

#define sn_stored_read  SN_CPU(stored_read)
#define sn_stored_write SN_CPU(stored_write)
#define sn_stored_pack  SN_CPU(stored_pack)
#define sn_finish_open  SN_CPU(finish_open)
#define sn_finish_line  SN_CPU(finish_line)
#define sn_finish_rows  SN_CPU(finish_rows)

/* n neighbouring elements from `at` on. */
void sn_stored_read(const sn_stored *s, int64_t at, int64_t n, float *to);
/* The same written, or added to what is there. */
void sn_stored_write(const sn_stored *s, int64_t at, int64_t n, const float *from, bool add);

/* As gemm_pack: B(i, j) is element at + row[i] + j * col. */
typedef struct {
    const sn_stored *from;
    int64_t at, k, n;
    const int64_t *row;
    int64_t col;
} sn_stored_source;
void sn_stored_pack(const sn_stored_source *s, float *packed);

/* What sums become: act(sum * scale + bias), stored or added. */
typedef struct {
    sn_stored out, scale, bias; /* the last two of all columns, or without data */
    int64_t act;
    bool add;
} sn_finish;

/* Scale and bias of the columns of a block. */
typedef struct {
    int64_t n;
    bool scaled, biased;
    float scale[SN_PRODUCT_COLUMNS], bias[SN_PRODUCT_COLUMNS];
} sn_finish_lines;

void sn_finish_open(const sn_finish *f, int64_t column, int64_t n, sn_finish_lines *l);
/* The sums of these columns become results, in f32. */
void sn_finish_line(const sn_finish *f, const sn_finish_lines *l, float *sums);
/* The same of rows that follow each other, which go to elements from `at` on, `step` apart. */
void sn_finish_rows(const sn_finish *f, const sn_finish_lines *l, float *sums, int64_t rows,
                    int64_t at, int64_t step);

#endif
