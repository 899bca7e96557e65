/* einsum.c: sums of products by their axes' letters, as rows that exist: sums, transposes, reshapes
 * and one matrix product.
 *
 * Letters of two operands fall into five kinds: in one operand alone and not in the result (summed
 * up first), shared by all three (axes of a batch of products), left or right (in one operand and
 * the result), and inner (in both operands, not in the result). The operands become [batch.., left,
 * inner] and [batch.., inner, right]; an operand that has its last two groups the other way round
 * is multiplied transposed instead of moved. "..." stands for the axes that letters leave over. */
#include "graph/build.h"

#include <string.h>

/* The axes of an operand: one letter and extent each. */
typedef struct {
    char letter[SNUG_MAX_RANK];
    int64_t extent[SNUG_MAX_RANK];
    int n;
} axes;

typedef struct {
    axes in[2], out;
    sn_value value[2];
    int n;
} equation;

static int find(const axes *a, char letter) {
    for (int i = 0; i < a->n; i++)
        if (a->letter[i] == letter)
            return i;
    return -1;
}

static bool has(const axes *a, char letter) {
    return find(a, letter) >= 0;
}

/* --- reading ---------------------------------------------------------------------------------- */
static bool refuse(sn_builder *b, const char *text, const char *why) {
    sn_fail(&b->error, SNUG_E_INVALID, "einsum '%.80s': %s", text, why);
    return false;
}

/* One term up to , - or the end. rank < 0: of the result, whose "..." has `dots` axes. The axes of
 * "..." have digits for letters, from the last one down. */
static bool read_term(const char **at, int rank, int *dots, axes *out) {
    int named = 0;
    const char *end = *at;
    for (; *end && *end != ',' && *end != '-'; end++)
        named += *end != '.' && *end != ' ';
    if (rank >= 0 && memchr(*at, '.', (size_t)(end - *at)))
        *dots = rank - named;
    out->n = 0;
    for (; *at < end; (*at)++) {
        const int more = **at == '.' ? *dots : **at == ' ' ? 0 : 1;
        if (more < 0 || out->n + more > SNUG_MAX_RANK)
            return false;
        for (int i = 0; i < more; i++)
            out->letter[out->n++] = **at == '.' ? (char)('0' + more - 1 - i) : **at;
        if (**at == '.')
            *at += strncmp(*at, "...", 3) == 0 ? 2 : 0;
    }
    return rank < 0 || out->n == rank;
}

static bool read_equation(sn_builder *b, const char *text, equation *q) {
    const char *at = text;
    int dots = 0; /* of the operand that has most */
    for (int i = 0; i < q->n; i++) {
        int own = 0;
        const snug_type *t = sn_graph_type(b->graph, q->value[i]);
        if (!read_term(&at, t->rank, &own, &q->in[i]))
            return refuse(b, text, "an operand has another number of axes than letters");
        dots = own > dots ? own : dots;
        memcpy(q->in[i].extent, t->dims, sizeof q->in[i].extent);
        if (i + 1 < q->n && *at++ != ',')
            return refuse(b, text, "there are fewer terms than operands");
    }
    if (strncmp(at, "->", 2) != 0)
        return refuse(b, text, "the result is not written: \"ab,bc->ac\"");
    at += 2;
    if (!read_term(&at, -1, &dots, &q->out) || *at)
        return refuse(b, text, "the result is not a list of letters");
    return true;
}

/* Every letter once per term, results made of operands' letters, extents that agree. */
static bool check_letters(sn_builder *b, const char *text, equation *q) {
    for (int i = 0; i < q->n; i++)
        for (int k = 0; k < q->in[i].n; k++) {
            const char letter = q->in[i].letter[k];
            if (find(&q->in[i], letter) != k)
                return refuse(b, text, "a letter stands twice in one operand");
            if (letter >= '0' && letter <= '9' && !has(&q->out, letter))
                return refuse(b, text, "the axes of \"...\" must stand in the result");
        }
    for (int k = 0; k < q->out.n; k++) {
        const char letter = q->out.letter[k];
        if (find(&q->out, letter) != k || (!has(&q->in[0], letter) && !has(&q->in[1], letter)))
            return refuse(b, text,
                          "each letter of the result must stand in it once, and in an "
                          "operand");
    }
    for (int k = 0; k < q->in[0].n; k++) {
        const int other = find(&q->in[1], q->in[0].letter[k]);
        int64_t *x = &q->in[0].extent[k], *y = other >= 0 ? &q->in[1].extent[other] : x;
        if (*x != *y && *x >= 0 && *y >= 0)
            return refuse(b, text, "the operands have different extents under one letter");
        *x = *y = *x < 0 ? *y : *x;
    }
    return true;
}

/* --- rewriting -------------------------------------------------------------------------------- */
/* Sums over the letters that only operand i has. */
static void sum_alone(sn_builder *b, equation *q, int i) {
    axes *a = &q->in[i], left = {.n = 0};
    uint32_t gone = 0;
    for (int k = 0; k < a->n; k++) {
        const char letter = a->letter[k];
        if (!has(&q->out, letter) && !has(&q->in[1 - i], letter)) {
            gone |= 1u << k;
            continue;
        }
        left.letter[left.n] = letter;
        left.extent[left.n++] = a->extent[k];
    }
    if (gone)
        q->value[i] = sn_build_sum(b, q->value[i], gone, false);
    *a = left;
}

/* The axes of `a` in this order; x itself where they are. */
static sn_value arrange(sn_builder *b, sn_value x, const axes *a, const axes *order) {
    int perm[SNUG_MAX_RANK];
    bool moved = false;
    for (int k = 0; k < order->n; k++) {
        perm[k] = find(a, order->letter[k]);
        moved = moved || perm[k] != k;
    }
    return moved ? sn_build_transpose(b, x, perm) : x;
}

static void append(axes *to, const axes *from) {
    for (int k = 0; k < from->n; k++) {
        to->letter[to->n] = from->letter[k];
        to->extent[to->n++] = from->extent[k];
    }
}

/* Letters of `a` that are in x and (or not) in y. */
static axes choose(const axes *a, const axes *x, const axes *y, bool in_y) {
    axes out = {.n = 0};
    for (int k = 0; k < a->n; k++)
        if (has(x, a->letter[k]) && has(y, a->letter[k]) == in_y) {
            out.letter[out.n] = a->letter[k];
            const int at = find(x, a->letter[k]);
            out.extent[out.n++] = x->extent[at];
        }
    return out;
}

static int64_t span(const axes *a) {
    int64_t n = 1;
    for (int k = 0; k < a->n; k++)
        n = n < 0 || a->extent[k] < 0 ? -1 : n * a->extent[k];
    return n;
}

/* An operand as [batch.., p, q]; or, with *turned, as [batch.., q, p] where its axes lie so. */
static sn_value as_matrix(sn_builder *b, const equation *e, int i, const axes *batch, const axes *p,
                          const axes *q, bool *turned) {
    axes order = *batch, other = *batch;
    append(&order, p);
    append(&order, q);
    append(&other, q);
    append(&other, p);
    *turned = q->n > 0 && p->n > 0 && memcmp(other.letter, e->in[i].letter, (size_t)other.n) == 0 &&
              memcmp(order.letter, other.letter, (size_t)other.n) != 0;
    const sn_value x = *turned ? e->value[i] : arrange(b, e->value[i], &e->in[i], &order);
    int64_t dims[SNUG_MAX_RANK + 2];
    for (int k = 0; k < batch->n; k++)
        dims[k] = batch->extent[k];
    dims[batch->n] = span(*turned ? q : p);
    dims[batch->n + 1] = span(*turned ? p : q);
    if (p->n == 1 && q->n == 1)
        return x;
    return sn_build_reshape(b, x, dims, batch->n + 2);
}

static sn_value product(sn_builder *b, const equation *e) {
    const axes batch = choose(&e->out, &e->in[0], &e->in[1], true);
    const axes left = choose(&e->in[0], &e->in[0], &e->in[1], false);
    const axes right = choose(&e->in[1], &e->in[1], &e->in[0], false);
    const axes both = choose(&e->in[0], &e->in[0], &e->in[1], true);
    const axes inner = choose(&both, &e->in[0], &e->out, false);
    if (batch.n > SNUG_MAX_RANK - 2) {
        sn_fail(&b->error, SNUG_E_UNSUPPORTED, "einsum: more than %d shared axes",
                SNUG_MAX_RANK - 2);
        return SN_NO_VALUE;
    }
    bool turn_x, turn_y;
    const sn_value x = as_matrix(b, e, 0, &batch, &left, &inner, &turn_x);
    const sn_value y = as_matrix(b, e, 1, &batch, &inner, &right, &turn_y);
    const sn_value z = sn_build_matmul_t(b, x, y, turn_x, turn_y);
    axes made = batch;
    append(&made, &left);
    append(&made, &right);
    const bool plain = left.n == 1 && right.n == 1;
    return arrange(b, plain ? z : sn_build_reshape(b, z, made.extent, made.n), &made, &e->out);
}

sn_value sn_build_einsum(sn_builder *b, const char *text, const sn_value *in, int n_in) {
    equation e = {.n = n_in};
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    if (n_in < 1 || n_in > 2) {
        refuse(b, text, "one or two operands are possible");
        return SN_NO_VALUE;
    }
    for (int i = 0; i < n_in; i++)
        e.value[i] = in[i];
    if (!read_equation(b, text, &e) || !check_letters(b, text, &e))
        return SN_NO_VALUE;
    for (int i = 0; i < n_in; i++)
        sum_alone(b, &e, i);
    return n_in == 1 ? arrange(b, e.value[0], &e.in[0], &e.out) : product(b, &e);
}
