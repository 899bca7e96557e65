/* row_sums.c: sums of rows of halves (row_sums.h). Indices are few beside the elements, so that
 * going through them once for each block costs little; still there are not more blocks than a row
 * has elements. */
#include "kernels/cpu/row_sums.h"

#include "kernels/cpu/lines.h"
#include "kernels/cpu/parts.h"
#include "kernels/cpu/real_elements.h"

enum { BLOCK = 1 << 18, LINE = 512 }; /* floats */

typedef struct {
    const sn_call *c;
    const sn_row_sums *s;
    int64_t rows, block; /* all of the result; of a block */
    sn_parts parts;      /* of blocks */
} sums_loop;

static sums_loop loop_of(const sn_row_sums *s, int n_threads) {
    const int64_t rows = s->outer * s->extent;
    const int64_t most = sn_min_i64(s->inner, sn_ceil_div(rows * s->inner, BLOCK));
    const int64_t least = n_threads > 1 ? n_threads : 1;
    const int64_t n = sn_min_i64(rows, most > least ? most : least);
    const int64_t block = n > 0 && s->inner > 0 ? sn_ceil_div(rows, n) : 1;
    const int64_t n_blocks = s->inner > 0 ? sn_ceil_div(rows, block) : 0;
    return (sums_loop){.s = s,
                       .rows = rows,
                       .block = block,
                       .parts = sn_parts_of(n_blocks, n_threads, block * s->inner)};
}

size_t sn_row_sums_bytes(const sn_row_sums *s, snug_dtype result, int n_threads) {
    const sums_loop l = loop_of(s, n_threads);
    return sn_dtype_is_half(result) ? sn_parts_bytes(&l.parts) : 0;
}

static void add_row(snug_dtype kind, const uint16_t *from, int64_t n, float *to) {
    float line[LINE];
    for (int64_t i = 0; i < n; i += LINE) {
        const int64_t length = sn_min_i64(LINE, n - i);
        sn_halves_to_f32(kind, from + i, length, line);
        for (int64_t k = 0; k < length; k++)
            to[i + k] += line[k];
    }
}

/* Adds up rows [first, last) of the result. */
static void add_block(const sums_loop *l, int64_t first, int64_t last, float *sums) {
    const sn_row_sums *s = l->s;
    const snug_view *in = &l->c->in[1];
    const int64_t end = sn_ceil_div(last, s->extent) * s->n; /* of the outer places it is in */
    for (int64_t u = first / s->extent * s->n; u < end; u++) {
        const int64_t row = u / s->n * s->extent + s->place(s->indices, u);
        if (row >= first && row < last)
            add_row(in->type.dtype, (const uint16_t *)in->data + u * s->inner, s->inner,
                    sums + (row - first) * s->inner);
    }
}

static void sum_block(const sums_loop *l, int64_t first, int64_t last, float *scratch) {
    const snug_view *out = &l->c->out[0];
    const snug_dtype half = out->type.dtype;
    const int64_t at = first * l->s->inner, count = (last - first) * l->s->inner;
    float *sums = sn_dtype_is_half(half) ? scratch : (float *)out->data + at;
    if (!l->c->accumulate)
        memset(sums, 0, (size_t)count * sizeof *sums);
    else if (sums == scratch)
        sn_halves_to_f32(half, (const uint16_t *)out->data + at, count, sums);
    add_block(l, first, last, sums);
    if (sums == scratch)
        sn_halves_of_f32(half, sums, count, (uint16_t *)out->data + at);
}

static void sum_parts(const void *ctx, int64_t begin, int64_t end) {
    const sums_loop *l = ctx;
    for (int64_t k = begin; k < end; k++) {
        float *scratch = sn_part_scratch(&l->parts, l->c->workspace, k);
        for (int64_t b = sn_part_first(&l->parts, k); b < sn_part_first(&l->parts, k + 1); b++)
            sum_block(l, b * l->block, sn_min_i64(l->rows, (b + 1) * l->block), scratch);
    }
}

void sn_row_sums_run(const sn_call *c, const sn_row_sums *s) {
    sums_loop l = loop_of(s, c->n_threads);
    l.c = c;
    sn_parallel(c, l.rows * s->inner + sn_type_count(&c->in[1].type), l.parts.n_parts, sum_parts,
                &l);
}

void sn_row_sums_plain(const sn_call *c, const sn_row_sums *s) {
    const sn_reals in = sn_reals_of(&c->in[1]), out = sn_reals_of(&c->out[0]);
    for (int64_t i = 0; i < s->outer * s->extent * s->inner; i++) {
        const int64_t row = i / s->inner, o = row / s->extent;
        double sum = 0;
        for (int64_t u = o * s->n; u < (o + 1) * s->n; u++)
            if (s->place(s->indices, u) == row % s->extent)
                sum += sn_real_at(in, u * s->inner + i % s->inner);
        sn_real_sum(out, i, sum, c->accumulate);
    }
}
