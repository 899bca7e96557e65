/* row_lines.c: rows of half floats as lines of f32 (row_lines.h).
 *
 * The workspace: what is the kernel's own, the vectors, then the parts' scratch with the lines of
 * each operand of halves that has some for each row. Where the row may run in place, the result has
 * the line of input 0. */
#include "kernels/cpu/row_lines.h"

#include "kernels/cpu/real_elements.h"

enum { CHUNK_FLOATS = 2048, MOST_ROWS = 256 };

/* Floats of an operand for n rows. */
static int64_t floats_of(char role, int64_t n, int64_t width) {
    return role == 'r' ? n * width : role == 's' ? n : 0;
}

typedef struct {
    sn_op op;
    const snug_type *in[SN_MAX_IN], *out[SN_MAX_OUT];
    int n_in, n_out;
} operands;

static bool shares_line(sn_op op, const sn_row_roles *roles, snug_dtype in, snug_dtype out) {
    const sn_inplace allowed = sn_ops[op].inplace;
    return (allowed == SN_INPLACE_FIRST || allowed == SN_INPLACE_EITHER) && roles->in[0] == 'r' &&
           roles->out[0] == 'r' && sn_dtype_is_half(in) && sn_dtype_is_half(out);
}

/* Floats of all operands of halves that have this role; cache lines, but for the last. */
static int64_t lines_of(const operands *o, const sn_row_roles *roles, bool vectors, int64_t n,
                        int64_t width) {
    const bool shared = shares_line(o->op, roles, o->in[0]->dtype, o->out[0]->dtype);
    int64_t floats = 0;
    for (int i = 0; i < o->n_in + o->n_out; i++) {
        const bool is_in = i < o->n_in;
        const char role = is_in ? roles->in[i] : roles->out[i - o->n_in];
        const snug_type *t = is_in ? o->in[i] : o->out[i - o->n_in];
        const int64_t own = role == 'v' ? width : floats_of(role, n, width);
        if (shared && i == o->n_in)
            continue;
        if (sn_dtype_is_half(t->dtype) && (role == 'v') == vectors && own > 0)
            floats = sn_line_floats(floats) + own;
    }
    return floats;
}

static sn_row_lines lay_out(const operands *o, const sn_row_roles *roles, int n_threads) {
    sn_row_lines l = {.roles = roles, .width = sn_width_of(o->in[0]), .rows = sn_rows_of(o->in[0])};
    const sn_parts rows = sn_parts_of(l.rows, n_threads, 0);
    const int64_t fit = l.width > 0 ? CHUNK_FLOATS / l.width : MOST_ROWS;
    l.chunk = sn_min_i64(rows.each, fit < 1 ? 1 : sn_min_i64(fit, MOST_ROWS));
    l.vectors = sn_line_floats(roles->own) + lines_of(o, roles, true, 0, l.width);
    l.parts = sn_parts_of(l.rows, n_threads, lines_of(o, roles, false, l.chunk, l.width));
    return l;
}

size_t sn_row_lines_bytes(const sn_opdesc *d, const sn_row_roles *roles, int n_threads) {
    operands o = {.op = d->op, .n_in = d->n_in, .n_out = d->n_out};
    for (int i = 0; i < d->n_in; i++)
        o.in[i] = &d->in[i];
    for (int k = 0; k < d->n_out; k++)
        o.out[k] = &d->out[k];
    const sn_row_lines l = lay_out(&o, roles, n_threads);
    const size_t parts = sn_parts_bytes(&l.parts);
    const int64_t before = parts > 0 ? sn_line_floats(l.vectors) : l.vectors;
    return l.rows > 0 ? (size_t)before * sizeof(float) + parts : 0;
}

/* Vectors are widened into what lies behind the kernel's own floats. */
static void widen_vectors(sn_row_lines *l) {
    float *to = (float *)l->c->workspace + sn_line_floats(l->roles->own);
    for (int i = 0; i < l->c->n_in; i++) {
        const snug_dtype dtype = l->in[i].type.dtype;
        if (l->roles->in[i] != 'v' || !sn_dtype_is_half(dtype))
            continue;
        sn_halves_to_f32(dtype, l->in[i].data, l->width, to);
        l->in[i].data = to;
        l->in[i].type.dtype = SNUG_F32;
        to += sn_line_floats(l->width);
    }
}

void sn_row_lines_begin(sn_row_lines *l, const sn_call *c, const sn_row_roles *roles) {
    operands o = {.op = c->op, .n_in = c->n_in, .n_out = c->n_out};
    for (int i = 0; i < c->n_in; i++)
        o.in[i] = &c->in[i].type;
    for (int k = 0; k < c->n_out; k++)
        o.out[k] = &c->out[k].type;
    *l = lay_out(&o, roles, c->n_threads);
    l->c = c;
    memcpy(l->in, c->in, (size_t)c->n_in * sizeof *c->in);
    memcpy(l->out, c->out, (size_t)c->n_out * sizeof *c->out);
    if (l->rows > 0)
        widen_vectors(l);
    l->call = *c;
    l->call.in = l->in;
    l->call.out = l->out;
}

/* --- some rows -------------------------------------------------------------------------------- */
typedef struct {
    const sn_row_lines *l;
    void (*body)(const void *ctx, const sn_call *c, int64_t n);
    const void *ctx;
} lines_loop;

/* The call on the rows from `first` on. */
typedef struct {
    sn_call call;
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    float *free; /* scratch that no line has yet */
} rows_call;

static void begin_operand(rows_call *r, const sn_row_lines *l, char role, snug_view *v,
                          int64_t first) {
    const int64_t at = floats_of(role, first, l->width);
    if (role != 'v' && sn_dtype_is_half(v->type.dtype)) {
        v->type.dtype = SNUG_F32;
        v->data = r->free;
        r->free += sn_line_floats(floats_of(role, l->chunk, l->width));
    } else {
        v->data = (char *)v->data + at * (int64_t)snug_dtype_bytes(v->type.dtype);
    }
}

static const void *half_at(const snug_view *v, int64_t at) {
    return (const uint16_t *)v->data + at;
}

static void run_chunk(const lines_loop *k, int64_t first, int64_t n, float *scratch) {
    const sn_row_lines *l = k->l;
    rows_call r = {.call = l->call, .free = scratch};
    const bool shared =
        shares_line(l->call.op, l->roles, l->in[0].type.dtype, l->out[0].type.dtype);
    for (int i = 0; i < l->call.n_in; i++) {
        const snug_view *v = &l->in[i];
        const char role = l->roles->in[i];
        r.in[i] = *v;
        begin_operand(&r, l, role, &r.in[i], first);
        if (r.in[i].type.dtype != v->type.dtype)
            sn_halves_to_f32(v->type.dtype, half_at(v, floats_of(role, first, l->width)),
                             floats_of(role, n, l->width), r.in[i].data);
    }
    for (int i = 0; i < l->call.n_out; i++) {
        r.out[i] = l->out[i];
        if (i == 0 && shared) {
            r.out[i].type.dtype = SNUG_F32;
            r.out[i].data = r.in[0].data;
        } else {
            begin_operand(&r, l, l->roles->out[i], &r.out[i], first);
        }
    }
    r.call.in = r.in;
    r.call.out = r.out;
    k->body(k->ctx, &r.call, n);
    for (int i = 0; i < l->call.n_out; i++) {
        const snug_view *v = &l->out[i];
        const char role = l->roles->out[i];
        if (r.out[i].type.dtype != v->type.dtype)
            sn_halves_of_f32(v->type.dtype, r.out[i].data, floats_of(role, n, l->width),
                             (void *)(uintptr_t)half_at(v, floats_of(role, first, l->width)));
    }
}

static void run_parts(const void *ctx, int64_t begin, int64_t end) {
    const lines_loop *k = ctx;
    const sn_row_lines *l = k->l;
    float *parts = (float *)l->c->workspace + sn_line_floats(l->vectors);
    for (int64_t p = begin; p < end; p++) {
        const int64_t last = sn_part_first(&l->parts, p + 1);
        float *scratch = sn_part_scratch(&l->parts, parts, p);
        for (int64_t first = sn_part_first(&l->parts, p); first < last; first += l->chunk)
            run_chunk(k, first, sn_min_i64(l->chunk, last - first), scratch);
    }
}

void sn_row_lines_run(const sn_row_lines *l,
                      void (*body)(const void *ctx, const sn_call *c, int64_t n), const void *ctx) {
    const lines_loop k = {l, body, ctx};
    /* several times the work of a move */
    sn_parallel(l->c, 4 * l->rows * l->width, l->parts.n_parts, run_parts, &k);
}
