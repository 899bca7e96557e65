/* resize.c: resize and resize_grad of pictures [N, H, W, C]: a linear map per axis, rows first.
 *
 * The fast kernel writes down the taps of both axes (for the gradient: of the transposed maps) and
 * then makes one row of the result after the other: the rows of the picture it is made of are added
 * into a buffer of the thread, whose pixels are added along the width. Rows of halves are widened
 * into it, and made in a second one before they are rounded. The reference looks the taps up for
 * each element and adds in double. */
#include "kernels/cpu/loops.h"
#include "kernels/cpu/real_elements.h"
#include "kernels/cpu/resize_taps.h"

#include "base/size.h"

#include <string.h>

#define MAX_REFERENCE_TAPS 512 /* an output cannot have more than there are inputs */
#define LINE               512 /* halves widened at once */

/* The maps of both axes, as a call has them: from picture to result of the *forward* row. */
static sn_resize_axis axis_of(const sn_attrs_resize *a, const snug_type *picture,
                              const snug_type *result, int k) {
    return (sn_resize_axis){picture->dims[1 + k], result->dims[1 + k], a->method,
                            a->antialias != 0};
}

/* --- reference -------------------------------------------------------------------------------- */
typedef struct {
    sn_reals picture, result;
    const snug_type *p, *r;
    bool back; /* from result to picture */
} plain;

static int64_t pixel(const snug_type *t, int64_t n, int64_t i, int64_t j) {
    return ((n * t->dims[1] + i) * t->dims[2] + j) * t->dims[3];
}

/* Result pixel (n, i, j): all its taps. */
static void plain_pixel(const plain *m, const sn_resize_axis *axes, const int64_t *at) {
    float rows[MAX_REFERENCE_TAPS], columns[MAX_REFERENCE_TAPS];
    const sn_taps r = sn_resize_taps(&axes[0], at[1]), s = sn_resize_taps(&axes[1], at[2]);
    sn_resize_weights(&axes[0], at[1], r, rows);
    sn_resize_weights(&axes[1], at[2], s, columns);
    const int64_t to = pixel(m->r, at[0], at[1], at[2]);
    for (int64_t c = 0; c < m->r->dims[3]; c++) {
        double sum = 0;
        for (int64_t a = 0; a < r.n; a++)
            for (int64_t b = 0; b < s.n; b++) {
                const int64_t from = pixel(m->p, at[0], r.first + a, s.first + b) + c;
                const double w = (double)rows[a] * (double)columns[b];
                if (m->back)
                    sn_real_put(m->picture, from,
                                sn_real_at(m->picture, from) + w * sn_real_at(m->result, to + c));
                else
                    sum += w * sn_real_at(m->picture, from);
            }
        if (!m->back)
            sn_real_put(m->result, to + c, sum);
    }
}

/* Pixel (n, i, j) of the gradient of a picture of halves: one sum, rounded once. */
static void plain_back_pixel(const plain *m, const sn_resize_axis *axes, const int64_t *at) {
    float rows[MAX_REFERENCE_TAPS], columns[MAX_REFERENCE_TAPS];
    const int64_t C = m->p->dims[3], to = pixel(m->p, at[0], at[1], at[2]);
    for (int64_t c = 0; c < C; c++) {
        double sum = 0;
        for (int64_t o = 0; o < m->r->dims[1] * m->r->dims[2]; o++) {
            const int64_t i = o / m->r->dims[2], j = o % m->r->dims[2];
            const sn_taps r = sn_resize_taps(&axes[0], i), s = sn_resize_taps(&axes[1], j);
            const int64_t a = at[1] - r.first, b = at[2] - s.first;
            if (a < 0 || a >= r.n || b < 0 || b >= s.n)
                continue;
            sn_resize_weights(&axes[0], i, r, rows);
            sn_resize_weights(&axes[1], j, s, columns);
            sum += (double)rows[a] * (double)columns[b] *
                   sn_real_at(m->result, pixel(m->r, at[0], i, j) + c);
        }
        sn_real_put(m->picture, to + c, sum);
    }
}

static snug_status plain_by(const sn_call *c, bool back, snug_error *err) {
    const snug_view *picture = back ? &c->out[0] : &c->in[0],
                    *result = back ? &c->in[0] : &c->out[0];
    const plain m = {sn_reals_of(picture), sn_reals_of(result), &picture->type, &result->type,
                     back};
    const sn_resize_axis axes[2] = {axis_of(&c->attrs->resize, m.p, m.r, 0),
                                    axis_of(&c->attrs->resize, m.p, m.r, 1)};
    if (axes[0].from > MAX_REFERENCE_TAPS || axes[1].from > MAX_REFERENCE_TAPS)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "the reference kernel takes pictures of at most %d rows and columns",
                       MAX_REFERENCE_TAPS);
    const bool by_picture = back && sn_dtype_is_half(picture->type.dtype);
    const snug_type *over = by_picture ? m.p : m.r;
    if (back)
        memset(picture->data, 0, picture->bytes);
    for (int64_t n = 0; n < over->dims[0]; n++)
        for (int64_t i = 0; i < over->dims[1]; i++)
            for (int64_t j = 0; j < over->dims[2]; j++)
                (by_picture ? plain_back_pixel : plain_pixel)(&m, axes, (const int64_t[]){n, i, j});
    return SNUG_OK;
}

static snug_status reference_resize(const sn_call *c, snug_error *err) {
    return plain_by(c, false, err);
}

static snug_status reference_resize_grad(const sn_call *c, snug_error *err) {
    return plain_by(c, true, err);
}

/* --- maps written down ------------------------------------------------------------------------ */
/* Output o of n: taps first[o] ... with the weights from start[o] to start[o + 1]. */
typedef struct {
    int64_t n, *first, *start;
    float *weight;
} map;

/* What a call needs of its workspace, and where it lies. Extents of the axes are below 2^31, so
 * that only the buffers' bytes can be too many. */
typedef struct {
    sn_resize_axis axis[2];
    bool back;
    map map[2];            /* what the kernel applies */
    int64_t taps[2];       /* weights of each */
    int64_t row;           /* elements of a thread's buffer */
    bool halves;           /* with a row of the result behind one of the picture */
    size_t element;        /* that the kernel computes with */
    size_t buffers, bytes; /* of all threads, which come first; of everything */
} layout;

static int64_t whole_lines(int64_t elements) {
    return (elements + 15) / 16 * 16;
}

/* False: the workspace would be larger than the address space. */
static bool lay_out(const sn_opdesc *d, bool back, int n_threads, layout *out) {
    const snug_type *picture = back ? &d->out[0] : &d->in[0],
                    *result = back ? &d->in[0] : &d->out[0];
    const bool halves = sn_dtype_is_half(d->in[0].dtype);
    layout l = {.back = back,
                .halves = halves,
                .element = halves ? sizeof(float) : snug_dtype_bytes(d->in[0].dtype)};
    *out = l;
    if (sn_type_count(picture) == 0 || sn_type_count(result) == 0)
        return true;
    int64_t words = 0, floats = 0;
    for (int k = 0; k < 2; k++) {
        l.axis[k] = axis_of(&d->attrs.resize, picture, result, k);
        for (int64_t o = 0; o < l.axis[k].to; o++)
            l.taps[k] += sn_resize_taps(&l.axis[k], o).n;
        l.map[k].n = back ? l.axis[k].from : l.axis[k].to;
        words += 2 * (l.axis[k].to + 1) + (back ? 2 * (l.axis[k].from + 1) : 0);
        floats += l.taps[k] * (back ? 2 : 1);
    }
    l.row = whole_lines(d->in[0].dims[2] * d->in[0].dims[3]);
    l.row += halves ? whole_lines(d->out[0].dims[2] * d->out[0].dims[3]) : 0;
    const size_t maps = (size_t)words * sizeof(int64_t) + (size_t)floats * sizeof(float);
    const size_t threads = n_threads < 1 ? 1 : (size_t)n_threads;
    const bool fits = sn_size_mul((size_t)l.row, l.element * threads, &l.buffers) &&
                      sn_size_add(l.buffers, maps, &l.bytes);
    *out = l;
    return fits;
}

/* A piece of the workspace; pieces of 8-byte words come first. */
static void *take(char **at, int64_t n, size_t size) {
    void *p = *at;
    *at += (size_t)n * size;
    return p;
}

static void fill_map(const sn_resize_axis *a, map *m) {
    int64_t at = 0;
    for (int64_t o = 0; o < a->to; o++) {
        const sn_taps t = sn_resize_taps(a, o);
        sn_resize_weights(a, o, t, m->weight + at);
        m->first[o] = t.first;
        m->start[o] = at;
        at += t.n;
    }
    m->start[a->to] = at;
}

/* Output i of the transposed map is made of those outputs of m that have i among their taps: they
 * follow one another, because both ends of the taps grow. */
static void transpose_map(const sn_resize_axis *a, const map *m, map *t) {
    int64_t low = 0, at = 0;
    for (int64_t i = 0; i < a->from; i++) {
        while (low < a->to && m->first[low] + m->start[low + 1] - m->start[low] <= i)
            low++;
        t->first[i] = low;
        t->start[i] = at;
        for (int64_t o = low; o < a->to && m->first[o] <= i; o++)
            t->weight[at++] = m->weight[m->start[o] + i - m->first[o]];
    }
    t->start[a->from] = at;
}

/* Fills l->map. */
static void write_maps(layout *l, char *at) {
    map forward[2];
    for (int k = 0; k < 2; k++) {
        const sn_resize_axis *a = &l->axis[k];
        forward[k] = (map){.n = a->to};
        forward[k].first = take(&at, a->to + 1, sizeof(int64_t));
        forward[k].start = take(&at, a->to + 1, sizeof(int64_t));
        if (l->back) {
            l->map[k].first = take(&at, a->from + 1, sizeof(int64_t));
            l->map[k].start = take(&at, a->from + 1, sizeof(int64_t));
        }
    }
    for (int k = 0; k < 2; k++) {
        forward[k].weight = take(&at, l->taps[k], sizeof(float));
        fill_map(&l->axis[k], &forward[k]);
        if (l->back) {
            l->map[k].weight = take(&at, l->taps[k], sizeof(float));
            transpose_map(&l->axis[k], &forward[k], &l->map[k]);
        } else {
            l->map[k] = forward[k];
        }
    }
}

/* --- fast ------------------------------------------------------------------------------------- */
typedef struct {
    const sn_call *c;
    const layout *l;
    char *buffers;
    int64_t n_rows, n_parts;
} resize_loop;

/* Row number `row` of the output: (n, i). */
typedef void (*make_row)(const resize_loop *r, int64_t row, void *buffer);

/* NAME_down: the rows of the picture that output row i is made of, in one: the row itself where
 * it is the only one. NAME_across: the n pixels of an output row from those of one row. C is a
 * constant where it is small: the loops over it go away. */
#define MAKE_ROW(name, M)                                                                          \
    static const M *name##_down(const map *m, int64_t i, const M *picture, int64_t width,          \
                                M *sum) {                                                          \
        const int64_t n = m->start[i + 1] - m->start[i];                                           \
        const float *w = m->weight + m->start[i];                                                  \
        const M *from = picture + m->first[i] * width;                                             \
        if (n == 1 && w[0] == 1)                                                                   \
            return from;                                                                           \
        for (int64_t k = 0; k < width; k++)                                                        \
            sum[k] = n > 0 ? (M)w[0] * from[k] : 0;                                                \
        for (int64_t t = 1; t < n; t++)                                                            \
            for (int64_t k = 0; k < width; k++)                                                    \
                sum[k] += (M)w[t] * from[t * width + k];                                           \
        return sum;                                                                                \
    }                                                                                              \
    static inline __attribute__((always_inline)) void name##_across(                               \
        const map *m, const M *from, M *restrict to, int64_t n, const int64_t C) {                 \
        for (int64_t j = 0; j < n; j++, to += C) {                                                 \
            const int64_t taps = m->start[j + 1] - m->start[j];                                    \
            const float *w = m->weight + m->start[j];                                              \
            const M *x = from + m->first[j] * C;                                                   \
            for (int64_t k = 0; k < C; k++)                                                        \
                to[k] = taps > 0 ? (M)w[0] * x[k] : 0;                                             \
            for (int64_t t = 1; t < taps; t++)                                                     \
                for (int64_t k = 0; k < C; k++)                                                    \
                    to[k] += (M)w[t] * x[t * C + k];                                               \
        }                                                                                          \
    }                                                                                              \
    static void name(const resize_loop *r, int64_t row, void *buffer) {                            \
        const snug_type *in = &r->c->in[0].type, *out = &r->c->out[0].type;                        \
        const int64_t C = in->dims[3], width = in->dims[2] * C, n = row / out->dims[1];            \
        const map *across = &r->l->map[1];                                                         \
        const M *from =                                                                            \
            name##_down(&r->l->map[0], row % out->dims[1],                                         \
                        (const M *)r->c->in[0].data + n * in->dims[1] * width, width, buffer);     \
        M *to = (M *)r->c->out[0].data + row * out->dims[2] * C;                                   \
        if (C == 1)                                                                                \
            name##_across(across, from, to, out->dims[2], 1);                                      \
        else if (C == 3)                                                                           \
            name##_across(across, from, to, out->dims[2], 3);                                      \
        else if (C == 4)                                                                           \
            name##_across(across, from, to, out->dims[2], 4);                                      \
        else                                                                                       \
            name##_across(across, from, to, out->dims[2], C);                                      \
    }
MAKE_ROW(row_f32, float)
MAKE_ROW(row_f64, double)

/* to = w * from, or is added to. */
static void add_halves(snug_dtype kind, const uint16_t *from, float w, bool add, int64_t n,
                       float *to) {
    float line[LINE];
    for (int64_t i = 0; i < n; i += LINE) {
        const int64_t length = sn_min_i64(LINE, n - i);
        sn_halves_to_f32(kind, from + i, length, line);
        for (int64_t k = 0; k < length; k++)
            to[i + k] = add ? to[i + k] + w * line[k] : w * line[k];
    }
}

/* The sums of row_f32 on rows widened into the buffer. */
static void row_half(const resize_loop *r, int64_t row, void *buffer) {
    const snug_view *in = &r->c->in[0], *out = &r->c->out[0];
    const int64_t C = in->type.dims[3], width = in->type.dims[2] * C;
    const int64_t n = row / out->type.dims[1], i = row % out->type.dims[1];
    const int64_t across = out->type.dims[2] * C;
    const map *down = &r->l->map[0];
    float *sum = buffer, *made = sum + whole_lines(width);
    const int64_t taps = down->start[i + 1] - down->start[i];
    for (int64_t k = 0; k < width && taps == 0; k++)
        sum[k] = 0;
    for (int64_t t = 0; t < taps; t++)
        add_halves(in->type.dtype,
                   (const uint16_t *)in->data + (n * in->type.dims[1] + down->first[i] + t) * width,
                   down->weight[down->start[i] + t], t > 0, width, sum);
    row_f32_across(&r->l->map[1], sum, made, out->type.dims[2], C);
    sn_halves_of_f32(out->type.dtype, made, across, (uint16_t *)out->data + row * across);
}

static void resize_parts(const void *ctx, int64_t first, int64_t end) {
    const resize_loop *r = ctx;
    const make_row make = r->l->halves                      ? row_half
                          : r->l->element == sizeof(double) ? row_f64
                                                            : row_f32;
    for (int64_t p = first; p < end; p++) {
        char *buffer = r->buffers + (size_t)(p * r->l->row) * r->l->element;
        for (int64_t row = r->n_rows * p / r->n_parts; row < r->n_rows * (p + 1) / r->n_parts;
             row++)
            make(r, row, buffer);
    }
}

static snug_status run_by(const sn_call *c, bool back, snug_error *err) {
    sn_opdesc d = {.op = c->op, .n_in = 1, .n_out = 1};
    layout l;
    sn_attrs_copy(c->op, c->attrs, &d.attrs);
    d.in[0] = c->in[0].type;
    d.out[0] = c->out[0].type;
    if (!lay_out(&d, back, c->n_threads, &l) || l.bytes > c->workspace_bytes)
        return sn_fail(err, SNUG_E_INVALID, "the workspace has %zu bytes, not %zu",
                       c->workspace_bytes, l.bytes);
    if (l.bytes == 0) { /* no pixels on one side */
        memset(c->out[0].data, 0, c->out[0].bytes);
        return SNUG_OK;
    }
    write_maps(&l, (char *)c->workspace + l.buffers);
    const resize_loop loop = {.c = c,
                              .l = &l,
                              .buffers = c->workspace,
                              .n_rows = d.out[0].dims[0] * d.out[0].dims[1],
                              .n_parts = c->n_threads < 1 ? 1 : c->n_threads};
    sn_parallel(c, sn_type_count(&d.in[0]) + sn_type_count(&d.out[0]), loop.n_parts, resize_parts,
                &loop);
    return SNUG_OK;
}

static snug_status run_resize(const sn_call *c, snug_error *err) {
    return run_by(c, false, err);
}

static snug_status run_resize_grad(const sn_call *c, snug_error *err) {
    return run_by(c, true, err);
}

static snug_status describe_by(const sn_opdesc *d, bool back, int n_threads, sn_variant *out,
                               snug_error *err) {
    layout l;
    if (!lay_out(d, back, n_threads, &l))
        return sn_fail(err, SNUG_E_OVERFLOW,
                       "a row of the picture per thread is larger than the "
                       "address space");
    out->workspace_bytes = l.bytes;
    return SNUG_OK;
}

static snug_status describe_resize(const sn_opdesc *d, int n_threads, sn_variant *out,
                                   snug_error *err) {
    return describe_by(d, false, n_threads, out, err);
}

static snug_status describe_resize_grad(const sn_opdesc *d, int n_threads, sn_variant *out,
                                        snug_error *err) {
    return describe_by(d, true, n_threads, out, err);
}

SN_CPU_FAMILY(resize, .reference = reference_resize, .run = run_resize,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_resize)
SN_CPU_FAMILY(resize_grad, .reference = reference_resize_grad, .run = run_resize_grad,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_resize_grad)
