/* join.c: guesses how boxes belong together, which makes a hard packing problem a small one.
 *
 *     beside    one ends where another of the same size begins: both lie at one offset
 *     above     two live from the same section to the same section: one lies on the other
 *     knot      five pieces around a middle, which no straight cut divides
 *
 * A packing of what was joined is a packing of the boxes; but a wrong guess may leave none, so a
 * failure proves nothing, and the next variant draws other guesses. Problems that were cut from a
 * full rectangle come down to a handful of pieces.
 *
 * Where bytes are free, two pieces may fit each other but for a hole: a filler takes its place.
 * Such a hole begins where more ends than begins, and ends where more begins than ends.
 *
 * Invariants:
 * 1. A piece without a parent is in the list of the time it starts at and of the one it ends at.
 * 2. A piece lies at its parent's offset + above, inside the parent's size and lifetime.
 * 3. Pieces [0, n) are the boxes; parents come behind their children.
 * 4. n_pieces + n_alive <= most: there is room for all that can still be joined. */
#include "plan/pack.h"

#include "base/rng.h"

#include <string.h>

#define NONE UINT32_MAX
enum { MOST_BOXES = 10000, MOST_BYTES_LOG2 = 61 };
/* The first variants take every guess; later ones leave one in so many out, by chance. */
enum { SURE_VARIANTS = 8, REFUSED = 16 };
#define MOST_WORK UINT64_C(4000) /* per box; lists of one time may be long */
enum { SECTIONS_A_LOOK = 8 };    /* that are passed in the time of a look at two pieces */
enum { SURE = 3 }; /* a hole's score where it explains all that ends and begins at its times */

typedef struct {
    uint32_t lo, hi;
    size_t size;
    uint32_t parent;
    size_t above;          /* the parent's offset */
    uint32_t starts, ends; /* the next piece of the same list */
} piece;

/* What a filler may take; the score says how well it fits what ends and begins there. */
typedef struct {
    uint32_t lo, hi;
    size_t size;
    int score; /* from 1 */
} hole;

struct sn_joiner {
    const sn_packing *p;
    piece *pieces;
    uint32_t n, n_pieces, n_alive, most;
    uint32_t *starts, *ends; /* per time: lists of pieces */
    size_t *slack;           /* per section: free bytes that no filler has */
    int64_t *excess;         /* per time: what ends there less what begins */
    hole best;               /* of those looked at */
    uint32_t n_best;         /* how many are as good */
    size_t capacity;
    uint64_t variant, drawn; /* of random numbers */
    uint64_t work, most_work;
};

static uint32_t draw(sn_joiner *j, uint32_t below) {
    return sn_philox(j->variant, 0, j->drawn++).v[0] % below;
}

static bool is_tired(const sn_joiner *j) {
    return j->work >= j->most_work;
}

/* --- pieces ----------------------------------------------------------------------------------- */
static uint32_t add_piece(sn_joiner *j, uint32_t lo, uint32_t hi, size_t size) {
    const uint32_t k = j->n_pieces++;
    j->pieces[k] = (piece){lo, hi, size, NONE, 0, j->starts[lo], j->ends[hi]};
    j->starts[lo] = j->ends[hi] = k;
    j->n_alive++;
    return k;
}

static void adopt(sn_joiner *j, uint32_t parent, uint32_t child, size_t above) {
    piece *const c = &j->pieces[child];
    uint32_t *at = &j->starts[c->lo];
    while (*at != child)
        at = &j->pieces[*at].starts;
    *at = c->starts;
    at = &j->ends[c->hi];
    while (*at != child)
        at = &j->pieces[*at].ends;
    *at = c->ends;
    c->parent = parent;
    c->above = above;
    j->n_alive--;
}

/* --- joining ---------------------------------------------------------------------------------- */
static void join_beside(sn_joiner *j, uint32_t a, uint32_t b) {
    const uint32_t k = add_piece(j, j->pieces[a].lo, j->pieces[b].hi, j->pieces[a].size);
    adopt(j, k, a, 0);
    adopt(j, k, b, 0);
}

static void join_above(sn_joiner *j, uint32_t a, uint32_t b) {
    const piece *x = &j->pieces[a];
    const uint32_t k = add_piece(j, x->lo, x->hi, x->size + j->pieces[b].size);
    adopt(j, k, a, 0);
    adopt(j, k, b, x->size);
}

/* Another piece that lives from lo to hi, or NONE. */
static uint32_t find_piece(sn_joiner *j, uint32_t lo, uint32_t hi, uint32_t but) {
    uint32_t k = j->starts[lo];
    for (; k != NONE && (k == but || j->pieces[k].hi != hi); k = j->pieces[k].starts)
        j->work++;
    return k;
}

/* Two boxes may live from one time to another by chance, far from each other. */
static bool is_refused(const sn_joiner *j, uint32_t lo, uint32_t hi) {
    return j->variant >= SURE_VARIANTS &&
           sn_philox(j->variant, (uint64_t)lo + 1, hi).v[0] % REFUSED == 0;
}

static bool stack_at(sn_joiner *j, uint32_t t) {
    for (uint32_t i = j->starts[t]; i != NONE; i = j->pieces[i].starts) {
        const uint32_t hi = j->pieces[i].hi, other = find_piece(j, t, hi, i);
        j->work++;
        if (other == NONE || is_refused(j, t, hi))
            continue;
        join_above(j, i, other);
        return true;
    }
    return false;
}

/* Whether a piece of this size ends at lo or starts at hi: it would fit what lives in between. */
static bool has_neighbour(sn_joiner *j, uint32_t lo, uint32_t hi, size_t size) {
    uint32_t k = j->ends[lo];
    for (; k != NONE && j->pieces[k].size != size; k = j->pieces[k].ends)
        j->work++;
    if (k != NONE)
        return true;
    for (k = j->starts[hi]; k != NONE && j->pieces[k].size != size; k = j->pieces[k].starts)
        j->work++;
    return k != NONE;
}

/* Two of those that live in [t, hi), or all, fit a neighbour. */
static bool sure_stack_at(sn_joiner *j, uint32_t t) {
    for (uint32_t a = j->starts[t]; a != NONE; a = j->pieces[a].starts) {
        const uint32_t hi = j->pieces[a].hi;
        size_t all = j->pieces[a].size;
        uint32_t any = NONE;
        for (uint32_t b = j->pieces[a].starts; b != NONE; b = j->pieces[b].starts) {
            j->work++;
            if (j->pieces[b].hi != hi)
                continue;
            all += j->pieces[b].size;
            any = b;
            if (has_neighbour(j, t, hi, j->pieces[a].size + j->pieces[b].size))
                break;
            if (!has_neighbour(j, t, hi, all))
                any = NONE;
        }
        if (any == NONE)
            continue;
        join_above(j, a, any);
        return true;
    }
    return false;
}

static bool pair_at(sn_joiner *j, uint32_t t) {
    const uint32_t a = j->ends[t], b = j->starts[t];
    if (a == NONE || b == NONE || j->pieces[a].ends != NONE || j->pieces[b].starts != NONE ||
        j->pieces[a].size != j->pieces[b].size)
        return false;
    join_beside(j, a, b);
    return true;
}

static uint32_t find_start(sn_joiner *j, uint32_t lo, uint32_t hi, size_t size) {
    uint32_t k = j->starts[lo];
    while (k != NONE && (j->pieces[k].hi != hi || j->pieces[k].size != size)) {
        k = j->pieces[k].starts;
        j->work++;
    }
    return k;
}

/* In a knot around `middle`, a is the arm that ends where it begins:
 *
 *     b b b c        a and d lie at the bottom,
 *     a m m c        c lies on d,
 *     a d d d        b on a */
static bool join_knot(sn_joiner *j, uint32_t middle, uint32_t a) {
    const piece m = j->pieces[middle], left = j->pieces[a];
    if (left.size <= m.size)
        return false;
    const size_t low = left.size - m.size;
    for (uint32_t c = j->starts[m.hi]; c != NONE; c = j->pieces[c].starts) {
        const piece right = j->pieces[c];
        j->work++;
        if (right.size <= m.size)
            continue;
        const uint32_t d = find_start(j, m.lo, right.hi, low);
        const uint32_t b = find_start(j, left.lo, m.hi, right.size - m.size);
        if (d == NONE || b == NONE)
            continue;
        const uint32_t k = add_piece(j, left.lo, right.hi, low + right.size);
        adopt(j, k, a, 0);
        adopt(j, k, d, 0);
        adopt(j, k, middle, low);
        adopt(j, k, c, low);
        adopt(j, k, b, left.size);
        return true;
    }
    return false;
}

static bool join_knots(sn_joiner *j) {
    for (uint32_t i = 0; i < j->n_pieces && !is_tired(j); i++) {
        if (j->pieces[i].parent != NONE)
            continue;
        for (uint32_t a = j->ends[j->pieces[i].lo]; a != NONE; a = j->pieces[a].ends)
            if (join_knot(j, i, a))
                return true;
    }
    j->work += j->n_pieces;
    return false;
}

static bool guess_at(sn_joiner *j, uint32_t t) {
    uint32_t n = 0, one = NONE, other = NONE;
    for (uint32_t a = j->ends[t]; a != NONE; a = j->pieces[a].ends)
        for (uint32_t b = j->starts[t]; b != NONE; b = j->pieces[b].starts)
            if (j->pieces[a].size == j->pieces[b].size && draw(j, ++n) == 0) {
                one = a;
                other = b;
            }
    j->work += 2;
    if (n == 0)
        return false;
    join_beside(j, one, other);
    return true;
}

/* As above, where both together live as long as another piece. */
static bool sure_guess_at(sn_joiner *j, uint32_t t) {
    for (uint32_t a = j->ends[t]; a != NONE; a = j->pieces[a].ends)
        for (uint32_t b = j->starts[t]; b != NONE; b = j->pieces[b].starts)
            if (j->pieces[a].size == j->pieces[b].size &&
                find_piece(j, j->pieces[a].lo, j->pieces[b].hi, NONE) != NONE) {
                join_beside(j, a, b);
                return true;
            }
    j->work += 2;
    return false;
}

/* --- holes ------------------------------------------------------------------------------------ */
static void find_excess(sn_joiner *j) {
    const uint32_t n = j->p->n_sections;
    for (uint32_t t = 0; t <= n; t++) {
        j->excess[t] = t == 0 ? (int64_t)j->capacity : t == n ? -(int64_t)j->capacity : 0;
        for (uint32_t k = j->ends[t]; k != NONE; k = j->pieces[k].ends)
            j->excess[t] += (int64_t)j->pieces[k].size;
        for (uint32_t k = j->starts[t]; k != NONE; k = j->pieces[k].starts)
            j->excess[t] -= (int64_t)j->pieces[k].size;
    }
    j->work += n + j->n_pieces / 2;
}

/* Keeps the likeliest of the holes looked at. */
static void look_at(sn_joiner *j, hole h) {
    const int64_t size = (int64_t)h.size;
    j->work++;
    if (h.lo >= h.hi || j->excess[h.lo] < size || j->excess[h.hi] > -size)
        return;
    h.score = 1 + (j->excess[h.lo] == size) + (j->excess[h.hi] == -size);
    if (h.score < j->best.score)
        return;
    j->work += (h.hi - h.lo) / SECTIONS_A_LOOK;
    for (uint32_t t = h.lo; t < h.hi; t++)
        if (j->slack[t] < h.size)
            return;
    if (j->variant >= SURE_VARIANTS && draw(j, REFUSED) == 0)
        return;
    j->n_best = h.score > j->best.score ? 0 : j->n_best;
    if (draw(j, ++j->n_best) == 0)
        j->best = h;
}

/* a ends where b begins, and one of them is smaller. */
static void look_beside(sn_joiner *j, uint32_t a, uint32_t b) {
    const piece *x = &j->pieces[a], *y = &j->pieces[b];
    if (x->size > y->size)
        look_at(j, (hole){y->lo, y->hi, x->size - y->size, 0});
    if (y->size > x->size)
        look_at(j, (hole){x->lo, x->hi, y->size - x->size, 0});
}

/* Both begin or both end at one time, a lives shorter. */
static void look_above(sn_joiner *j, uint32_t a, uint32_t b) {
    const piece *x = &j->pieces[a], *y = &j->pieces[b];
    if (x->lo == y->lo && x->hi < y->hi)
        look_at(j, (hole){x->hi, y->hi, x->size, 0});
    if (x->hi == y->hi && x->lo > y->lo)
        look_at(j, (hole){y->lo, x->lo, x->size, 0});
}

/* a ends and b of the same size begins later. */
static void look_later(sn_joiner *j, uint32_t a) {
    const piece *x = &j->pieces[a];
    if (j->excess[x->hi] < (int64_t)x->size)
        return;
    uint32_t t = x->hi + 1;
    for (; t < j->p->n_sections && j->slack[t - 1] >= x->size; t++)
        for (uint32_t b = j->starts[t]; b != NONE; b = j->pieces[b].starts)
            if (j->pieces[b].size == x->size)
                look_at(j, (hole){x->hi, t, x->size, 0});
    j->work += (t - x->hi) / SECTIONS_A_LOOK;
}

static void look_at_time(sn_joiner *j, uint32_t t) {
    for (uint32_t a = j->ends[t]; a != NONE; a = j->pieces[a].ends) {
        for (uint32_t b = j->starts[t]; b != NONE; b = j->pieces[b].starts)
            look_beside(j, a, b);
        for (uint32_t b = j->ends[t]; b != NONE; b = j->pieces[b].ends)
            look_above(j, a, b);
        look_later(j, a);
    }
    for (uint32_t a = j->starts[t]; a != NONE; a = j->pieces[a].starts)
        for (uint32_t b = j->starts[t]; b != NONE; b = j->pieces[b].starts)
            look_above(j, a, b);
}

/* Adds the filler that the likeliest join needs; that join is then one of the others. */
static bool fill_hole(sn_joiner *j, int least) {
    if (is_tired(j) || j->n_pieces + j->n_alive + 2 > j->most)
        return false;
    find_excess(j);
    j->best.score = 0;
    j->n_best = 0;
    for (uint32_t t = 0; t <= j->p->n_sections && !is_tired(j); t++)
        look_at_time(j, t);
    if (j->n_best == 0 || j->best.score < least)
        return false;
    for (uint32_t t = j->best.lo; t < j->best.hi; t++)
        j->slack[t] -= j->best.size;
    add_piece(j, j->best.lo, j->best.hi, j->best.size);
    return true;
}

/* --- the smaller problem ---------------------------------------------------------------------- */
/* Everywhere, or (one) at the first place from some section on. */
static bool join_all(sn_joiner *j, bool (*join_at)(sn_joiner *j, uint32_t t), bool one) {
    const uint32_t n = j->p->n_sections + 1, from = draw(j, n);
    bool any = false;
    for (uint32_t i = 0; i < n && !(one && any); i++)
        while (!is_tired(j) && join_at(j, (from + i) % n)) {
            any = true;
            if (one)
                break;
        }
    j->work += n / 4;
    return any;
}

/* Variants differ in what they trust most. */
static bool join_more(sn_joiner *j) {
    const bool guess = j->variant % 4 != 3, stacks_first = j->variant % 2 == 0;
    if (join_all(j, pair_at, false) || join_all(j, sure_stack_at, false) ||
        join_all(j, sure_guess_at, false))
        return true;
    if (stacks_first && (join_all(j, stack_at, false) || join_knots(j)))
        return true;
    if (fill_hole(j, SURE) || (guess && join_all(j, guess_at, true)))
        return true;
    if (!stacks_first && (join_all(j, stack_at, true) || join_knots(j)))
        return true;
    return fill_hole(j, 1 + (int)(j->variant / 4 % 2));
}

/* Whether sums of sizes are numbers with a sign. */
static bool is_moderate(const sn_packing *p) {
    size_t sum = 0;
    for (uint32_t i = 0; i < p->n && sum >> MOST_BYTES_LOG2 == 0; i++)
        sum += p->boxes[i].size;
    return sum >> MOST_BYTES_LOG2 == 0;
}

snug_status sn_joiner_create(sn_zone *z, const sn_packing *p, sn_joiner **out, snug_error *err) {
    const size_t times = (size_t)p->n_sections + 1, most = 2 * (p->n + 2 * times);
    void *mem, *pieces, *starts, *ends, *slack, *excess;
    *out = NULL;
    if (p->n == 0 || p->n > MOST_BOXES || !is_moderate(p))
        return SNUG_OK;
    SNUG_TRY(sn_zone_alloc(z, sizeof(sn_joiner), &mem, err));
    SNUG_TRY(sn_zone_alloc(z, most * sizeof(piece), &pieces, err));
    SNUG_TRY(sn_zone_alloc(z, times * sizeof(uint32_t), &starts, err));
    SNUG_TRY(sn_zone_alloc(z, times * sizeof(uint32_t), &ends, err));
    SNUG_TRY(sn_zone_alloc(z, times * sizeof(size_t), &slack, err));
    SNUG_TRY(sn_zone_alloc(z, times * sizeof(int64_t), &excess, err));
    *out = mem;
    **out = (sn_joiner){.p = p,
                        .pieces = pieces,
                        .n = p->n,
                        .most = (uint32_t)most,
                        .starts = starts,
                        .ends = ends,
                        .slack = slack,
                        .excess = excess};
    return SNUG_OK;
}

uint32_t sn_joiner_most(const sn_joiner *j) {
    return j->most;
}

static void begin(sn_joiner *j, size_t capacity, uint64_t variant) {
    const size_t times = (size_t)j->p->n_sections + 1;
    memset(j->starts, 0xff, times * sizeof *j->starts);
    memset(j->ends, 0xff, times * sizeof *j->ends);
    j->n_pieces = j->n_alive = 0;
    j->variant = variant;
    j->capacity = capacity;
    j->drawn = j->work = 0;
    for (uint32_t i = 0; i < j->n; i++)
        add_piece(j, j->p->boxes[i].lo, j->p->boxes[i].hi, j->p->boxes[i].size);
    for (uint32_t t = 0; t < j->p->n_sections; t++)
        j->slack[t] = capacity - j->p->load[t];
}

uint64_t sn_join(sn_joiner *j, size_t capacity, uint64_t variant, uint64_t limit, sn_packing *q) {
    begin(j, capacity, variant);
    j->most_work = limit / 5 * 2 < MOST_WORK * j->n ? limit / 5 * 2 : MOST_WORK * j->n;
    while (!is_tired(j) && join_more(j))
        ;
    q->n = 0;
    for (uint32_t i = 0; i < j->n_pieces; i++)
        if (j->pieces[i].parent == NONE)
            q->boxes[q->n++] = (sn_box){j->pieces[i].lo, j->pieces[i].hi, i, j->pieces[i].size};
    sn_packing_measure(q);
    return j->work * 5 / 2; /* a look here takes longer than a step of a search */
}

void sn_join_expand(const sn_joiner *j, const sn_packing *q, const size_t *offset, size_t *pieces,
                    size_t *out) {
    for (uint32_t i = 0; i < q->n; i++)
        pieces[q->boxes[i].item] = offset[i];
    for (uint32_t i = j->n_pieces; i-- > 0;)
        if (j->pieces[i].parent != NONE)
            pieces[i] = pieces[j->pieces[i].parent] + j->pieces[i].above;
    memcpy(out, pieces, j->n * sizeof *out);
}
