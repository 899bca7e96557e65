/* matrix.c: the family matmul: [.., M, K] x [.., K, N] with broadcast leading axes, optional
 * transposes, an optional bias over N and a fused activation. The reference adds in double, in the
 * order of k; the fast kernel (f32, and halves that become it as they are packed) is a product of
 * product.h whose pieces are at most SN_PRODUCT_DEPTH terms. */
#include "kernels/cpu/matrix.h"

#include "kernels/cpu/halves.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/pairs.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/real_elements.h"

#include <stdio.h>
#include <string.h>

/* --- reference ------------------------------------------------------------------------------- */
/* Pieces of a sum over k cannot each carry the bias or pass the activation. */
static snug_status check_accumulate(const sn_call *c, snug_error *err) {
    if (c->accumulate && (c->n_in > 2 || c->attrs->matmul.act != SN_ACT_none))
        return sn_fail(err, SNUG_E_INTERNAL,
                       "adds into its output only without bias and activation");
    return SNUG_OK;
}

static void reference_entry(const sn_call *c, const sn_matmul_shape *s, int64_t entry) {
    const sn_reals a = sn_reals_factor(&c->in[0], &c->in[1]),
                   b = sn_reals_factor(&c->in[1], &c->in[0]), out = sn_reals_of(&c->out[0]);
    const sn_reals bias =
        c->n_in > 2 ? sn_reals_of(&c->in[2]) : (sn_reals){NULL, false, SNUG_F32, SNUG_F32};
    const int64_t a0 = sn_matmul_offset(&s->out, &s->a, entry),
                  b0 = sn_matmul_offset(&s->out, &s->b, entry);
    for (int64_t m = 0; m < s->M; m++)
        for (int64_t n = 0; n < s->N; n++) {
            double sum = 0;
            for (int64_t k = 0; k < s->K; k++)
                sum += sn_real_at(a, a0 + m * s->a_row + k * s->a_col) *
                       sn_real_at(b, b0 + k * s->b_row + n * s->b_col);
            if (bias.data)
                sum += sn_real_at(bias, n);
            sn_real_sum(out, (entry * s->M + m) * s->N + n, sn_real_act(c->attrs->matmul.act, sum),
                        c->accumulate);
        }
}

static sn_matmul_shape shape_of(const sn_call *c) {
    return sn_matmul_shape_of(&c->attrs->matmul, &c->in[0].type, &c->in[1].type, &c->out[0].type);
}

static snug_status reference_matmul(const sn_call *c, snug_error *err) {
    SNUG_TRY(check_accumulate(c, err));
    const sn_matmul_shape s = shape_of(c);
    for (int64_t entry = 0; entry < s.batch; entry++)
        reference_entry(c, &s, entry);
    return SNUG_OK;
}

/* --- the fast kernel: operands of a product -------------------------------------------------- */
/* Halves: both factors are packed, and C lies in the taker's scratch until it is rounded. With
 * pairs terms go by two, as words, and so lies A in memory where `a_lies`. */
typedef struct {
    sn_stored a, b;
    bool pairs, a_lies;
    sn_finish finish;
} halves;

typedef struct {
    sn_matmul_shape s;
    const float *a, *b;
    float *out;
    const halves *h; /* or NULL: all is f32, and lies as above */
} operands;

/* A's columns lie so far apart that its lines push each other out of the cache, and a step of k
 * soon touches another page: it is copied first. Below that a single piece is as fast where it
 * lies. */
static bool packs_a(const operands *o) {
    enum { NEAR = 1024, PAGE = 4096 };
    const int64_t bytes = o->s.a_col * (int64_t)sizeof(float);
    if (o->h)
        return !o->h->a_lies;
    return bytes >= PAGE || (bytes > NEAR && o->s.K > SN_PRODUCT_DEPTH);
}

/* Terms of a step of the product. */
static int64_t word_of(const operands *o) {
    return o->h && o->h->pairs ? 2 : 1;
}

static int64_t count_words(const operands *o) {
    return sn_ceil_div(o->s.K, word_of(o));
}

static int64_t count_pieces(const operands *o) {
    return sn_ceil_div(count_words(o), SN_PRODUCT_DEPTH);
}

/* Words of every piece but the last. */
static int64_t depth_of(const operands *o) {
    const int64_t n_pieces = count_pieces(o);
    return n_pieces > 0 ? sn_ceil_div(count_words(o), n_pieces) : 0;
}

/* First term of piece i. */
static int64_t first_term(const operands *o, int64_t i) {
    return i * depth_of(o) * word_of(o);
}

/* Few rows read B as it is: packing it would cost more than it saves. It changes no bits. */
static bool reads_b(const operands *o) {
    enum { FEW_ROWS = 48 };
    return !o->h && o->s.M <= FEW_ROWS && o->s.b_col == 1 &&
           (o->s.b_row >= SN_GEMM_VL || o->s.N <= SN_GEMM_VL);
}

/* Many blocks of rows go through one B: it is packed once, for all of them. That takes at most the
 * bytes of the result; where A is packed, too, blocks that pack both are as fast up to half. */
static bool shares_b(const operands *o) {
    const int64_t rows = o->s.batch * o->s.M;
    return !reads_b(o) && sn_type_span(&o->s.b, 0, o->s.b.rank - 2) == 1 &&
           rows >= 4 * SN_PRODUCT_ROWS && rows >= (packs_a(o) ? 2 : 1) * o->s.K;
}

/* B is packed for every block of rows: larger blocks do it less often. */
static bool packs_b(const operands *o) {
    return !shares_b(o) && !reads_b(o);
}

/* Halves beside few columns: a packed B is a vector per step, which is rows for tall tiles. */
static bool has_one_panel(const operands *o) {
    return o->h && o->s.N <= SN_GEMM_VL;
}

/* And where its rows follow each other they are widened as one run, and stay so. */
static bool keeps_rows(const operands *o) {
    return has_one_panel(o) && packs_b(o) && !o->h->pairs && o->s.b_col == 1 &&
           o->s.b_row == o->s.N;
}

/* What packing B costs, in rows of the product. */
enum { PACK = 7 };

static int64_t count_tiles(const operands *o) {
    return sn_ceil_div(o->s.M, SN_GEMM_MR);
}

/* What the thread with the most blocks has to do with n blocks of rows, in rows. */
static int64_t load_of(const sn_product *p, int64_t n) {
    const int64_t rows = sn_ceil_div(count_tiles(p->ctx), n) * SN_GEMM_MR;
    return sn_ceil_div(p->batch * n * p->n_column_blocks, p->threads) *
           (rows + (shares_b(p->ctx) ? 0 : PACK));
}

/* Even shares, in whole tiles: as few as the limit allows, or so many that no thread has one more
 * than another. */
static int64_t count_row_blocks(const sn_product *p, int64_t limit, int64_t *rows) {
    const operands *o = p->ctx;
    const int64_t tiles = count_tiles(o), few = sn_ceil_div(tiles, limit / SN_GEMM_MR);
    const int64_t even = sn_ceil_div(few, p->threads) * p->threads;
    const int64_t n = few > 1 && even <= tiles && load_of(p, even) < load_of(p, few) ? even : few;
    *rows = n > 0 ? sn_min_i64(sn_ceil_div(tiles, n) * SN_GEMM_MR, o->s.M) : 0;
    return n;
}

/* First row of a block: rounded up, so that the first block has the most. */
static int64_t first_row(const sn_product *p, int64_t block) {
    const operands *o = p->ctx;
    return sn_min_i64(sn_ceil_div(block * count_tiles(o), p->n_row_blocks) * SN_GEMM_MR, o->s.M);
}

static int64_t packed_b_floats(const sn_product *p) {
    return packs_b(p->ctx) ? sn_gemm_packed(depth_of(p->ctx), p->columns) : 0;
}

/* Packed B, then A. */
static int64_t packed_floats(const sn_product *p) {
    const int64_t b = packed_b_floats(p);
    return packs_a(p->ctx) ? sn_lines(b) + depth_of(p->ctx) * p->rows : b;
}

/* Of halves, also C. */
static int64_t own_floats(const sn_product *p) {
    const operands *o = p->ctx;
    const int64_t packed = packed_floats(p);
    return o->h ? sn_lines(packed) + p->rows * p->columns : packed;
}

/* Words of piece i, and terms. */
static int64_t words_of(const operands *o, int64_t i) {
    return sn_min_i64(depth_of(o), count_words(o) - i * depth_of(o));
}

static int64_t terms_of(const operands *o, int64_t i) {
    return sn_min_i64(words_of(o, i) * word_of(o), o->s.K - first_term(o, i));
}

/* Where piece i of the shared B begins; panels lie in it as gemm_pack puts them. */
static int64_t shared_at(const operands *o, int64_t i) {
    return sn_gemm_packed(i * depth_of(o), o->s.N);
}

/* First element of piece i of B for this entry, column 0. */
static int64_t b_first(const operands *o, int64_t entry, int64_t i) {
    return sn_matmul_offset(&o->s.out, &o->s.b, entry) + first_term(o, i) * o->s.b_row;
}

static const float *b_at(const operands *o, int64_t entry, int64_t i) {
    return o->b + b_first(o, entry, i);
}

/* Columns [n, n + columns) of piece i of B for this entry. */
static void pack_b(const operands *o, int64_t entry, int64_t i, int64_t n, int64_t columns,
                   float *packed) {
    const sn_matmul_shape *s = &o->s;
    const int64_t k = terms_of(o, i);
    int64_t row[2 * SN_PRODUCT_DEPTH];
    for (int64_t j = 0; j < k; j++)
        row[j] = j * s->b_row;
    if (keeps_rows(o)) {
        sn_stored_read(&o->h->b, b_first(o, entry, i), k * columns, packed);
        return;
    }
    if (o->h) {
        const sn_stored_source source = {
            .from = &o->h->b,
            .at = b_first(o, entry, i) + n * s->b_col,
            .k = k,
            .n = columns,
            .row = row,
            .col = s->b_col,
        };
        (o->h->pairs ? sn_pairs_pack : sn_stored_pack)(&source, packed);
        return;
    }
    const sn_gemm_source source = {
        .k = k,
        .n = columns,
        .b = b_at(o, entry, i) + n * s->b_col,
        .row = row,
        .col = s->b_col,
    };
    SN_CPU(gemm_pack)(&source, packed);
}

/* A share is one panel of one piece. */
static void fill_shared(const sn_product *p, int64_t i) {
    const operands *o = p->ctx;
    const int64_t panels = sn_ceil_div(o->s.N, SN_GEMM_NR), piece = i / panels;
    const int64_t n = i % panels * SN_GEMM_NR;
    pack_b(o, 0, piece, n, sn_min_i64(SN_GEMM_NR, o->s.N - n),
           p->shared + shared_at(o, piece) + n * words_of(o, piece));
}

static float *packed_a(const sn_product *p, const sn_product_block *b) {
    return b->own + sn_lines(packed_b_floats(p));
}

/* A's rows lie side by side: packed, they are [k][rows]. */
static bool has_flat_a(const operands *o) {
    return o->s.a_row == 1;
}

static void open_halves(const sn_product *p, sn_product_block *b) {
    const operands *o = p->ctx;
    const int64_t first = o->h->a_lies ? first_row(p, b->row_block) : 0;
    const int64_t step = o->h->a_lies ? count_words(o) : has_flat_a(o) ? 1 : depth_of(o);
    b->c = b->own + sn_lines(packed_floats(p));
    for (int64_t i = 0; i < b->rows; i++) {
        b->a_row[i] = (first + i) * step;
        b->c_row[i] = i * b->columns - b->n;
    }
}

/* Sums of halves become elements of C. */
static void close_halves(const sn_product *p, const sn_product_block *b) {
    const operands *o = p->ctx;
    const int64_t m = b->entry * o->s.M + first_row(p, b->row_block);
    sn_finish_lines lines;
    sn_finish_open(&o->h->finish, b->n, b->columns, &lines);
    if (b->columns == o->s.N && !lines.biased) { /* rows follow each other */
        lines.n = b->rows * o->s.N;
        sn_finish_rows(&o->h->finish, &lines, b->c, 1, m * o->s.N, 0);
        return;
    }
    sn_finish_rows(&o->h->finish, &lines, b->c, b->rows, m * o->s.N + b->n, o->s.N);
}

static void open_rows(const sn_product *p, sn_product_block *b) {
    const operands *o = p->ctx;
    const int64_t m = first_row(p, b->row_block);
    b->rows = first_row(p, b->row_block + 1) - m;
    if (o->h) {
        open_halves(p, b);
        return;
    }
    b->c = o->out + (b->entry * o->s.M + m) * o->s.N;
    for (int64_t i = 0; i < b->rows; i++) {
        b->a_row[i] = packs_a(o) ? i : (m + i) * o->s.a_row;
        b->c_row[i] = i * o->s.N;
    }
}

/* Rows of A for piece i, as words. */
static void pair_a(const operands *o, int64_t at, int64_t rows, int64_t i, float *packed) {
    const int64_t k = terms_of(o, i), depth = depth_of(o);
    for (int64_t j = 0; has_flat_a(o) && j < k; j += 2)
        sn_pairs_rows(&o->h->a, at + j * o->s.a_col, o->s.a_col, j + 1 == k, rows,
                      packed + j / 2 * rows);
    for (int64_t j = 0; !has_flat_a(o) && j < rows; j++)
        sn_pairs_run(&o->h->a, at + j * o->s.a_row, k, packed + j * depth);
}

/* Piece i of an A that lies as its words do. */
static const float *a_words(const operands *o, const sn_product_block *b, int64_t i) {
    const int64_t words = sn_matmul_offset(&o->s.out, &o->s.a, b->entry) / 2 + i * depth_of(o);
    return (const float *)o->h->a.data + words;
}

/* Fetches n elements of A from `at` on, what the next piece or block of rows reads: nobody but us
 * knows that. */
static void fetch_a(const operands *o, int64_t at, int64_t n) {
    enum { LINE = 64 };
    const int64_t bytes = (int64_t)snug_dtype_bytes(o->h->a.dtype);
    const char *from = (const char *)o->h->a.data + at * bytes;
    for (int64_t i = 0; i < n * bytes; i += LINE)
        __builtin_prefetch(from + i);
}

/* The block's rows of A for this piece, as [rows][depth], or as open_halves says. */
static const float *widen_a(const sn_product *p, const sn_product_block *b, int64_t i) {
    const operands *o = p->ctx;
    const int64_t k = terms_of(o, i), depth = depth_of(o), rows = b->rows;
    const int64_t at = sn_matmul_offset(&o->s.out, &o->s.a, b->entry) +
                       first_term(o, i) * o->s.a_col + first_row(p, b->row_block) * o->s.a_row;
    float *packed = packed_a(p, b);
    if (o->h->pairs) {
        pair_a(o, at, rows, i, packed);
        return packed;
    }
    const bool whole = !has_flat_a(o) && depth == o->s.a_row; /* rows follow each other */
    if (whole)
        sn_stored_read(&o->h->a, at, rows * k, packed);
    for (int64_t j = 0; has_flat_a(o) && j < k; j++) {
        fetch_a(o, at + j * o->s.a_col + rows, rows);
        sn_stored_read(&o->h->a, at + j * o->s.a_col, rows, packed + j * rows);
    }
    for (int64_t j = 0; !has_flat_a(o) && !whole && j < rows; j++) {
        fetch_a(o, at + j * o->s.a_row + k, k);
        sn_stored_read(&o->h->a, at + j * o->s.a_row, k, packed + j * depth);
    }
    return packed;
}

/* The block's rows of A for this piece, as [k][rows]. Only a transposed A comes here: its rows lie
 * side by side. */
static const float *pack_a(const sn_product *p, const sn_product_block *b, const float *a,
                           int64_t k) {
    const operands *o = p->ctx;
    float *packed = packed_a(p, b);
    const float *from = a + first_row(p, b->row_block);
    enum { LINE = 16, AHEAD = 4 };
    for (int64_t i = 0; i < k; i++) {
        const float *later = from + (i + AHEAD < k ? i + AHEAD : i) * o->s.a_col;
        for (int64_t j = 0; j < b->rows; j += LINE)
            __builtin_prefetch(later + j);
        memcpy(packed + i * b->rows, from + i * o->s.a_col, (size_t)b->rows * sizeof(float));
    }
    return packed;
}

/* Piece i of A: where it lies, or packed. */
static const float *a_piece(const sn_product *p, const sn_product_block *b, int64_t i) {
    const operands *o = p->ctx;
    if (o->h)
        return o->h->a_lies ? a_words(o, b, i) : widen_a(p, b, i);
    const float *a =
        o->a + sn_matmul_offset(&o->s.out, &o->s.a, b->entry) + i * depth_of(o) * o->s.a_col;
    return packs_a(o) ? pack_a(p, b, a, terms_of(o, i)) : a;
}

static void open_piece(const sn_product *p, sn_product_block *b, int64_t i, sn_gemm *g) {
    const operands *o = p->ctx;
    const sn_matmul_shape *s = &o->s;
    const int64_t k = words_of(o, i);
    if (packs_b(o))
        pack_b(o, b->entry, i, b->n, b->columns, b->own);
    const int64_t step = packs_a(o) && has_flat_a(o) ? b->rows : s->a_col;
    for (int64_t j = 0; j < k; j++)
        b->a_col[j] = j * step;
    g->k = k;
    g->a = a_piece(p, b, i);
    g->a_row = b->a_row;
    g->a_col = b->a_col;
    g->pairs = o->h && o->h->pairs;
    g->b = shares_b(o)  ? p->shared + shared_at(o, i) + b->n * k
           : reads_b(o) ? b_at(o, b->entry, i) + b->n
                        : b->own;
    g->b_step = reads_b(o) || keeps_rows(o) ? s->b_row : has_one_panel(o) ? SN_GEMM_VL : 0;
}

static sn_product product_of(const operands *o, int n_threads) {
    sn_product p = {
        .ctx = o,
        .batch = o->s.batch,
        .N = o->s.N,
        .n_pieces = count_pieces(o),
        .work = (double)o->s.batch * (double)o->s.M * (double)o->s.K * (double)o->s.N,
        .count_row_blocks = count_row_blocks,
        .open = open_rows,
        .piece = open_piece,
        .own_floats = own_floats,
        .close = o->h ? close_halves : NULL,
        .tall = packs_b(o),
        .both = packs_b(o) && packs_a(o),
        .grain = reads_b(o) ? (o->s.M == 1 ? SN_PRODUCT_COLUMNS : SN_GEMM_VL) : 0,
    };
    if (shares_b(o)) {
        p.fill_shared = fill_shared;
        p.n_shares = p.n_pieces * sn_ceil_div(o->s.N, SN_GEMM_NR);
        p.shared_floats = sn_gemm_packed(count_words(o), o->s.N);
    }
    SN_CPU(product_cut)(&p, n_threads);
    return p;
}

/* What depends on types. */
static void choose_pairs(halves *h, const sn_matmul_shape *s, snug_dtype a, snug_dtype b) {
    h->pairs = sn_pairs_take(a, b);
    h->a_lies = h->pairs && a == SNUG_BF16 && s->a_col == 1 && s->a_row > 1 && s->K % 2 == 0;
}

static void run_halves(const sn_call *c) {
    halves h = {
        .a = sn_stored_factor(&c->in[0], &c->in[1]),
        .b = sn_stored_factor(&c->in[1], &c->in[0]),
        .finish = {.out = sn_stored_of(&c->out[0]),
                   .bias = c->n_in > 2 ? sn_stored_of(&c->in[2]) : (sn_stored){0},
                   .act = c->attrs->matmul.act,
                   .add = c->accumulate},
    };
    const operands o = {.s = shape_of(c), .h = &h};
    choose_pairs(&h, &o.s, c->in[0].type.dtype, c->in[1].type.dtype);
    sn_product p = product_of(&o, c->n_threads);
    SN_CPU(product_run)(&p, c, c->workspace);
}

static snug_status run_matmul(const sn_call *c, snug_error *err) {
    if (!sn_call_is_f32(c) && !sn_call_has_halves(c))
        return reference_matmul(c, err);
    SNUG_TRY(check_accumulate(c, err));
    if (sn_call_has_halves(c)) {
        run_halves(c);
        return SNUG_OK;
    }
    const operands o = {
        .s = shape_of(c), .a = c->in[0].data, .b = c->in[1].data, .out = c->out[0].data};
    sn_product p = product_of(&o, c->n_threads);
    p.bias = c->n_in > 2 ? c->in[2].data : NULL;
    p.act = c->attrs->matmul.act;
    p.accumulate = c->accumulate;
    SN_CPU(product_run)(&p, c, c->workspace);
    return SNUG_OK;
}

/* What words of two terms gain, as measured with bench/kernels.c. */
#define PAIRS_GAIN 1.9

/* Each block of rows packs B again; storing C costs as much as STORE terms. */
static double efficiency(const operands *o) {
    enum { READ = 4, STORE = 4 };
    const int64_t most = packs_b(o) ? SN_PRODUCT_TALL : SN_PRODUCT_ROWS;
    const int64_t blocks = shares_b(o) ? 1 : sn_ceil_div(o->s.M, most);
    const int64_t rows = shares_b(o) ? o->s.batch * o->s.M : o->s.M / (blocks > 0 ? blocks : 1);
    const int64_t extra = reads_b(o) ? READ : PACK;
    const double stored = (double)o->s.K / (double)(o->s.K + STORE);
    return stored * sn_gemm_filled(o->s.N) * (double)rows / (double)(rows + extra);
}

static snug_status describe_matmul(const sn_opdesc *d, int n_threads, sn_variant *out,
                                   snug_error *err) {
    (void)err;
    halves h = {0};
    const bool has_halves = sn_desc_has_halves(d);
    if (d->in[0].dtype != SNUG_F32 && !has_halves) {
        snprintf(out->impl, sizeof out->impl, "reference");
        return SNUG_OK;
    }
    const operands o = {.s = sn_matmul_shape_of(&d->attrs.matmul, &d->in[0], &d->in[1], &d->out[0]),
                        .h = has_halves ? &h : NULL};
    choose_pairs(&h, &o.s, d->in[0].dtype, d->in[1].dtype);
    if (h.pairs)
        snprintf(out->impl, sizeof out->impl, "own:avx512bf16");
    out->speed = SN_SPEED_PRODUCT;
    out->workspace_bytes = product_of(&o, n_threads).workspace_bytes;
    out->efficiency *= efficiency(&o) * (h.pairs ? PAIRS_GAIN : 1);
    return SNUG_OK;
}

SN_CPU_FAMILY(matmul, .reference = reference_matmul, .run = run_matmul,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_matmul)
