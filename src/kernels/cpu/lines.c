/* lines.c: pieces of half floats as lines of f32 or f64 (lines.h). */
#include "kernels/cpu/lines.h"

#include "tensor/feed.h"

/* --- between halves and f32 ------------------------------------------------------------------- */

static void to_bf16(const float *in, int64_t n, sn_bf16 *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = sn_bf16_of(in[i]);
}

static inline __attribute__((always_inline)) void from_half(const snug_dtype kind, const void *in,
                                                            int64_t n, float *out) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        sn_halves_16(kind, in, i, out + i);
    for (; i < n; i++)
        out[i] = sn_half_at(kind, in, i);
}

static void to_f16(const float *in, int64_t n, sn_f16 *out) {
    int64_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(out + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        out[i] = (sn_f16)in[i];
}

void sn_halves_to_f32(snug_dtype from, const void *in, int64_t n, float *out) {
    if (from == SNUG_BF16)
        from_half(SNUG_BF16, in, n, out);
    else
        from_half(SNUG_F16, in, n, out);
}

void sn_halves_of_f32(snug_dtype to, const float *in, int64_t n, void *out) {
    if (to == SNUG_BF16)
        to_bf16(in, n, out);
    else
        to_f16(in, n, out);
}

static void narrow_to_i64(snug_dtype from, const void *in, int64_t n, int64_t *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = sn_narrow_at(from, in, i);
}

static void narrow_of_i64(snug_dtype to, const int64_t *in, int64_t n, void *out) {
    for (int64_t i = 0; i < n; i++)
        sn_narrow_put(to, out, i, (uint64_t)in[i]);
}

/* Whether an operand runs on lines of this dtype; beside halves f32 does where those are f64. */
static bool is_lined(snug_dtype d, snug_dtype line) {
    return sn_dtype_line(d) != d || (d == SNUG_F32 && line == SNUG_F64);
}

/* Between a dtype that has lines and the line's; no such pair is refused. */
static void widen(snug_dtype half, const void *in, int64_t n, snug_dtype line, void *out) {
    if (line == SNUG_F32) {
        sn_halves_to_f32(half, in, n, out);
    } else if (line == SNUG_I64) {
        narrow_to_i64(half, in, n, out);
    } else {
        const snug_status done = sn_convert(half, in, line, out, (size_t)n, NULL);
        (void)done;
    }
}

static void narrow(snug_dtype line, const void *in, int64_t n, snug_dtype half, void *out) {
    if (line == SNUG_F32) {
        sn_halves_of_f32(half, in, n, out);
    } else if (line == SNUG_I64) {
        narrow_of_i64(half, in, n, out);
    } else {
        const snug_status done = sn_convert(line, in, half, out, (size_t)n, NULL);
        (void)done;
    }
}

/* --- a call on lines -------------------------------------------------------------------------- */
enum { MOST_LINES = 12 }; /* operands of one call that have lines */

typedef struct {
    sn_call call;
    snug_view in[MOST_LINES], out[MOST_LINES];
    int n_lines;
    char line[MOST_LINES][SN_LINE_BYTES] __attribute__((aligned(64)));
} lined_call;

/* The view of elements from `at` on, or of a line where they are halves. */
static snug_view part_of(lined_call *l, const snug_view *v, int64_t at, snug_dtype line) {
    snug_view part = *v;
    if (is_lined(v->type.dtype, line)) {
        part.type.dtype = line;
        part.data = l->line[l->n_lines++];
    } else {
        part.data = (char *)v->data + at * (int64_t)snug_dtype_bytes(v->type.dtype);
    }
    return part;
}

static const void *element_at(const snug_view *v, int64_t at) {
    return (const char *)v->data + at * (int64_t)snug_dtype_bytes(v->type.dtype);
}

/* The call on elements from `at[operand]` on, outputs first; lines are not filled yet. */
static void begin_lines(lined_call *l, const sn_call *c, const int64_t *at_out,
                        const int64_t *at_in, snug_dtype line) {
    l->call = *c;
    l->call.in = l->in;
    l->call.out = l->out;
    l->n_lines = 0;
    for (int k = 0; k < c->n_out; k++)
        l->out[k] = part_of(l, &c->out[k], at_out[k], line);
    for (int i = 0; i < c->n_in; i++)
        l->in[i] = part_of(l, &c->in[i], at_in[i], line);
}

static void end_lines(const lined_call *l, const sn_call *c, const int64_t *at_out, int64_t n,
                      snug_dtype line) {
    for (int k = 0; k < c->n_out; k++)
        if (is_lined(c->out[k].type.dtype, line))
            narrow(line, l->out[k].data, n, c->out[k].type.dtype,
                   (void *)(uintptr_t)element_at(&c->out[k], at_out[k]));
}

static int64_t line_length(snug_dtype line) {
    return SN_LINE_BYTES / (int64_t)snug_dtype_bytes(line);
}

/* --- spans ------------------------------------------------------------------------------------ */
typedef struct {
    const sn_call *c;
    int64_t n;
    sn_span span;
    snug_dtype line;
} span_loop;

static void span_piece(const span_loop *s, int64_t first, int64_t n) {
    int64_t at[SN_MAX_IN];
    lined_call l;
    for (int i = 0; i < s->c->n_in || i < s->c->n_out; i++)
        at[i] = first;
    begin_lines(&l, s->c, at, at, s->line);
    for (int i = 0; i < s->c->n_in; i++)
        if (is_lined(s->c->in[i].type.dtype, s->line))
            widen(s->c->in[i].type.dtype, element_at(&s->c->in[i], first), n, s->line,
                  l.in[i].data);
    s->span(&l.call, 0, n);
    end_lines(&l, s->c, at, n, s->line);
}

static void span_part(const void *ctx, int64_t first, int64_t end) {
    const span_loop *s = ctx;
    const int64_t length = line_length(s->line), last = sn_min_i64(end * SN_SPAN, s->n);
    for (int64_t at = first * SN_SPAN; at < last; at += length)
        span_piece(s, at, sn_min_i64(length, last - at));
}

void sn_line_spans(const sn_call *c, int64_t n, sn_span span, snug_dtype line) {
    const span_loop loop = {c, n, span, line};
    sn_parallel(c, n, sn_ceil_div(n, SN_SPAN), span_part, &loop);
}

/* --- rows of a walk --------------------------------------------------------------------------- */
typedef struct {
    sn_call call; /* first: a row is given this call */
    const sn_call *c;
    sn_row row;
    snug_dtype line;
} walk_call;

/* n elements that are `step` apart, into a line; one where they are all the same. */
static void gather(const snug_view *v, int64_t at, int64_t step, int64_t n, snug_dtype line,
                   char *to) {
    const int64_t bytes = (int64_t)snug_dtype_bytes(line);
    if (step == 1)
        return widen(v->type.dtype, element_at(v, at), n, line, to);
    for (int64_t i = 0; i < (step == 0 ? 1 : n); i++)
        widen(v->type.dtype, element_at(v, at + i * step), 1, line, to + i * bytes);
}

/* Operand 0 of a walk is the output, operand i + 1 input i. */
static void row_piece(const walk_call *k, const sn_walk *w, const int64_t *at, int64_t n) {
    const sn_call *c = k->c;
    lined_call l;
    sn_walk row = {.rank = 1, .n = w->n, .dims = {n}};
    const int64_t start[SN_WALK_MAX] = {0};
    begin_lines(&l, c, at, at + 1, k->line);
    for (int i = 0; i < w->n; i++)
        row.stride[i][0] = sn_walk_step(w, i);
    for (int i = 0; i < c->n_in; i++)
        if (is_lined(c->in[i].type.dtype, k->line)) {
            gather(&c->in[i], at[i + 1], sn_walk_step(w, i + 1), n, k->line, l.in[i].data);
            row.stride[i + 1][0] = sn_walk_step(w, i + 1) != 0;
        }
    k->row(&l.call, &row, start, n);
    end_lines(&l, c, at, n, k->line);
}

static void lined_row(const sn_call *c, const sn_walk *w, const int64_t *at, int64_t n) {
    const walk_call *k = (const walk_call *)c;
    const int64_t length = line_length(k->line);
    int64_t from[SN_WALK_MAX];
    for (int64_t done = 0; done < n; done += length) {
        for (int i = 0; i < w->n; i++)
            from[i] = at[i] + done * sn_walk_step(w, i);
        row_piece(k, w, from, sn_min_i64(length, n - done));
    }
}

void sn_line_walk(const sn_walk *w, const sn_call *c, sn_row row, snug_dtype line) {
    const walk_call k = {*c, c, row, line};
    sn_walk_run(w, &k.call, lined_row);
}

void sn_line_elements(const sn_walk *w, const sn_call *c, sn_row row, snug_dtype line) {
    const walk_call k = {*c, c, row, line};
    sn_walk_elements(w, &k.call, lined_row);
}

/* --- maps ------------------------------------------------------------------------------------- */
/* The reference of halves is that of f64: it computes in double and rounds once. */
snug_status sn_map_reference(const sn_call *c, const sn_map *map, snug_error *err) {
    const snug_dtype dtype = c->out[0].type.dtype;
    const snug_dtype line = sn_call_has_halves(c) ? SNUG_F64 : sn_dtype_line(dtype);
    if (!map->plain[line])
        return sn_no_kernel(dtype, err);
    if (line != dtype || sn_call_has_halves(c))
        sn_line_spans(c, sn_type_count(&c->out[0].type), map->plain[line], line);
    else
        map->plain[dtype](c, 0, sn_type_count(&c->out[0].type));
    return SNUG_OK;
}

snug_status sn_map_run(const sn_call *c, const sn_map *map, snug_error *err) {
    const snug_dtype dtype = c->out[0].type.dtype;
    const snug_dtype line = sn_call_has_halves(c) ? SNUG_F32 : sn_dtype_line(dtype);
    const sn_span span = line == SNUG_F32 ? map->fast_f32 : map->plain[line];
    if (!span)
        return sn_no_kernel(dtype, err);
    if (line != dtype || sn_call_has_halves(c))
        sn_line_spans(c, sn_type_count(&c->out[0].type), span, line);
    else
        sn_spans(c, sn_type_count(&c->out[0].type), span);
    return SNUG_OK;
}
