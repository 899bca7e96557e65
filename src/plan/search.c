/* search.c: complete search for a packing below a capacity, after the ideas of minimalloc (Moffitt
 * 2023), with work limits. Boxes are placed in order of non-decreasing offset, each on top of what
 * it rests on; every packing can be pushed down into that form, so a search that ends without an
 * answer proves there is none.
 *
 *     floor[s]  highest placed top in section s         left[s]  bytes of section s not placed yet
 *
 * Invariants:
 * 1. low[b] = highest top of placed boxes that share a section with b: where b would come to lie.
 * 2. Every change of low, floor and left is in the log; undoing back to a mark restores them.
 * 3. A part is a span of sections that no unplaced box leaves; parts are solved one after the
 * other.
 *
 * Which box goes first where several could lie equally low decides how long a search takes, and
 * no fixed rule is good for all problems. So a search that runs long is given up and begun anew in
 * another order: the first attempts take fixed rules; later ones put boxes first that live in
 * sections which made earlier attempts fail, with some chance in it. Attempts take turns with those
 * of search_valleys.c, which is better where there is little room, and with attempts of both at a
 * smaller problem: boxes that join.c takes to belong together are one there. */
#include "plan/pack.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

typedef enum {
    RULE_TOTAL_AREA_WIDTH,
    RULE_WIDTH_AREA_TOTAL,
    RULE_TOTAL_WIDTH_AREA,
    N_RULES
} search_rule;

enum { ATTEMPTS = 3 };     /* at a capacity, before the next one is tried */
enum { JOIN_DRAWS = 4 };   /* ways of joining; the one with fewest pieces is searched */
enum { JOIN_SHARE = 8 };   /* a joining takes at most one of so many parts of the work */
enum { JOINED_TURNS = 4 }; /* work at the boxes as they are, for one part at joined ones */
#define VALLEYS_FIRST UINT64_C(1000)     /* operations per box */
#define VALLEYS_WORTH UINT64_C(20000000) /* operations; a shorter search does without */
#define CHANCE        0.3                /* how far chance may raise a box */
#define FADING        0.95               /* of strife, from attempt to attempt */

typedef struct {
    uint32_t box; /* whose low changed; n: the end of a placement's record */
    size_t old;   /* its low before; the box that was placed */
} change;

typedef struct {
    const sn_packing *p;
    uint32_t *rank; /* from 1; ties between equal lows */
    bool *is_placed;
    size_t *low, *offset;
    size_t *floor, *left;
    uint32_t *by_low, *next;
    double *strife;    /* per section: how often it was what did not fit; old failures fade */
    uint64_t attempt;  /* how many searches were begun */
    size_t *old_floor; /* stack of saved floors */
    size_t n_old, cap_old;
    change *log;
    size_t n_log, cap_log;
    size_t capacity;
    uint64_t work, limit; /* of this attempt */
    uint64_t budget;      /* of all attempts */
    uint64_t joined_work; /* of attempts at joined boxes, with the joining */
    uint64_t plain_work;  /* of the others */
    size_t possible;      /* no packing below this one exists */
    sn_valleys *valleys;  /* or NULL */
    sn_joiner *joiner;    /* or NULL */
    sn_packing joined;    /* the smaller problem */
    size_t *pieces;       /* offsets of its pieces */
    uint64_t variant;     /* how many ways of joining were drawn */
    bool is_joined;       /* it was packed */
    snug_error why;       /* one of those could not be made */
    snug_engine *e;
    snug_error *err;
    snug_status status;
} search;

/* Order among boxes that could lie equally low. */
typedef struct {
    double key[3];
    uint32_t box;
} ruled;

static int compare_ruled(const void *a, const void *b) {
    const ruled *x = a, *y = b;
    for (int k = 0; k < 3; k++)
        if (x->key[k] != y->key[k])
            return x->key[k] > y->key[k] ? -1 : 1;
    return (x->box > y->box) - (x->box < y->box);
}

/* Largest load of the sections a box lives in; largest strife and all of it. */
typedef struct {
    double load, worst, strife;
} surroundings;

static surroundings look_around(const search *s, const sn_box *b) {
    surroundings a = {0, 0, 0};
    for (uint32_t t = b->lo; t < b->hi; t++) {
        a.load = (double)s->p->load[t] > a.load ? (double)s->p->load[t] : a.load;
        a.worst = s->strife[t] > a.worst ? s->strife[t] : a.worst;
        a.strife += s->strife[t];
    }
    return a;
}

/* By the fixed rules at first. */
static void fixed_keys(const search *s, const sn_box *b, search_rule rule, double *key) {
    static const int position[N_RULES][3] = {
        {0, 1, 2}, {2, 1, 0}, {0, 2, 1}}; /* of total, area, width */
    const double width = (double)(b->hi - b->lo);
    key[position[rule][0]] = look_around(s, b).load;
    key[position[rule][1]] = width * (double)b->size;
    key[position[rule][2]] = width;
}

/* By what made earlier attempts fail. */
static void learned_keys(const search *s, const sn_box *b, double chance, double *key) {
    const surroundings a = look_around(s, b);
    const double keys[3] = {(a.worst + 1) * (double)b->size, (a.strife + 1) * (double)b->size,
                            a.strife + 1};
    key[0] = keys[s->attempt % 3] * (1 + CHANCE * chance);
    key[1] = key[2] = 0;
}

static void rank_boxes(search *s, ruled *scratch) {
    const sn_packing *p = s->p;
    for (uint32_t i = 0; i < p->n; i++) {
        const sn_box *b = &p->boxes[i];
        double chance;
        sn_random_fill_f64(SN_RANDOM_UNIFORM, s->attempt, i, 1, &chance);
        scratch[i].box = i;
        if (s->attempt < N_RULES)
            fixed_keys(s, b, (search_rule)s->attempt, scratch[i].key);
        else
            learned_keys(s, b, chance, scratch[i].key);
    }
    qsort(scratch, p->n, sizeof *scratch, compare_ruled);
    for (uint32_t i = 0; i < p->n; i++)
        s->rank[scratch[i].box] = i + 1;
    for (uint32_t t = 0; t < p->n_sections; t++)
        s->strife[t] *= FADING;
    s->attempt++;
}

static void push_change(search *s, uint32_t box, size_t old) {
    void *log = s->log;
    if (s->status == SNUG_OK)
        s->status =
            sn_grow(s->e, SN_MEM_PLAN, &log, sizeof *s->log, &s->cap_log, s->n_log + 1, s->err);
    if (s->status != SNUG_OK)
        return;
    s->log = log;
    s->log[s->n_log++] = (change){.box = box, .old = old};
}

static void push_floor(search *s, size_t old) {
    void *stack = s->old_floor;
    if (s->status == SNUG_OK)
        s->status =
            sn_grow(s->e, SN_MEM_PLAN, &stack, sizeof(size_t), &s->cap_old, s->n_old + 1, s->err);
    if (s->status != SNUG_OK)
        return;
    s->old_floor = stack;
    s->old_floor[s->n_old++] = old;
}

/* Boxes [first, end) are those that may share sections with the part; b is among them. */
static void place(search *s, uint32_t b, uint32_t first, uint32_t end) {
    const sn_box *boxes = s->p->boxes;
    const size_t at = s->low[b], top = at + boxes[b].size;
    s->offset[b] = at;
    s->is_placed[b] = true;
    for (uint32_t t = boxes[b].lo; t < boxes[b].hi; t++) {
        push_floor(s, s->floor[t]);
        s->floor[t] = top;
        s->left[t] -= boxes[b].size;
    }
    for (uint32_t i = first; i < end && boxes[i].lo < boxes[b].hi; i++) {
        if (s->is_placed[i] || boxes[i].hi <= boxes[b].lo || s->low[i] >= top)
            continue;
        push_change(s, i, s->low[i]);
        s->low[i] = top;
    }
    push_change(s, s->p->n, b); /* ends the record: b itself */
    s->work += (boxes[b].hi - boxes[b].lo) + (end - first);
}

static void undo_to(search *s, size_t mark) {
    const sn_box *boxes = s->p->boxes;
    while (s->n_log > mark) {
        const change c = s->log[--s->n_log];
        if (c.box != s->p->n) {
            s->low[c.box] = c.old;
            continue;
        }
        const sn_box *b = &boxes[c.old];
        s->is_placed[c.old] = false;
        for (uint32_t t = b->hi; t-- > b->lo;) {
            s->floor[t] = s->old_floor[--s->n_old];
            s->left[t] += b->size;
        }
    }
}

/* Keeps by_low sorted; between two calls few lows change. */
static void sort_by_low(search *s) {
    for (uint32_t i = 1; i < s->p->n; i++) {
        const uint32_t b = s->by_low[i];
        const size_t low = s->low[b];
        uint32_t k = i;
        for (; k > 0 && s->low[s->by_low[k - 1]] > low; k--)
            s->by_low[k] = s->by_low[k - 1];
        s->by_low[k] = b;
        s->work += i - k;
    }
    s->work += s->p->n;
}

/* Whether every section of the part can still hold what is left, given that nothing goes below
 * `at` any more. A section's next box goes at least as high as the lowest of those left there. */
static bool fits(search *s, uint32_t lo, uint32_t hi, size_t at) {
    const sn_box *boxes = s->p->boxes;
    uint32_t *next = s->next; /* the first section from here on that has no box yet */
    bool ok = true;
    for (uint32_t t = lo; t < hi; t++) { /* the cheap half of the test, which often decides */
        const size_t from = s->floor[t] > at ? s->floor[t] : at;
        const bool room = s->left[t] == 0 || from + s->left[t] <= s->capacity;
        s->strife[t] += !room;
        ok = ok && room;
        next[t] = t;
    }
    next[hi] = hi;
    s->work += (hi - lo) / 2;
    if (!ok)
        return false;
    sort_by_low(s);
    for (uint32_t i = 0; i < s->p->n; i++) {
        const uint32_t b = s->by_low[i];
        if (s->is_placed[b] || boxes[b].lo < lo || boxes[b].hi > hi)
            continue;
        const size_t base = s->low[b] > at ? s->low[b] : at;
        uint32_t t = boxes[b].lo;
        for (;;) {
            while (next[t] != t) {
                next[t] = next[next[t]];
                t = next[t];
            }
            if (t >= boxes[b].hi)
                break;
            const size_t from = s->floor[t] > base ? s->floor[t] : base;
            if (from + s->left[t] > s->capacity) {
                s->strife[t]++;
                return false;
            }
            next[t] = t + 1;
        }
    }
    return true;
}

/* A part of the problem and how far its boxes have been tried. */
typedef struct {
    uint32_t first, end; /* boxes whose lo is inside */
    uint32_t lo, hi;     /* sections */
} part;

typedef struct {
    size_t low;
    uint32_t rank;
} position;

static bool before(position a, position b) {
    return a.low != b.low ? a.low < b.low : a.rank < b.rank;
}

/* The next box to try after `last`, or n. `roof`: boxes that would start at or above it leave a
 * needless gap. */
static uint32_t next_box(search *s, const part *w, position last, size_t roof) {
    uint32_t best = s->p->n;
    position best_at = {SIZE_MAX, UINT32_MAX};
    for (uint32_t i = w->first; i < w->end; i++) {
        if (s->is_placed[i] || s->low[i] >= roof)
            continue;
        const position at = {s->low[i], s->rank[i]};
        if (before(last, at) && before(at, best_at)) {
            best = i;
            best_at = at;
        }
    }
    s->work += w->end - w->first;
    return best;
}

static size_t roof_of(const search *s, const part *w) {
    size_t roof = SIZE_MAX;
    for (uint32_t i = w->first; i < w->end; i++)
        if (!s->is_placed[i] && s->low[i] + s->p->boxes[i].size < roof)
            roof = s->low[i] + s->p->boxes[i].size;
    return roof;
}

static bool overlaps_unplaced(const search *s, const part *w, uint32_t b) {
    const sn_box *boxes = s->p->boxes;
    for (uint32_t i = w->first; i < w->end && boxes[i].lo < boxes[b].hi; i++)
        if (i != b && !s->is_placed[i] && boxes[i].hi > boxes[b].lo)
            return true;
    return false;
}

static sn_outcome solve_parts(search *s, const part *w, position last);

/* Tries the boxes of one part, lowest first. */
static sn_outcome solve_part(search *s, const part *w, position last) {
    const size_t roof = roof_of(s, w);
    const size_t mark = s->n_log;
    for (;;) {
        const uint32_t b = next_box(s, w, last, roof);
        if (b == s->p->n)
            return SN_NOT_FOUND;
        if (s->work > s->limit || s->status != SNUG_OK)
            return SN_GAVE_UP;
        const position at = {s->low[b], s->rank[b]};
        const bool hatless = !overlaps_unplaced(s, w, b);
        sn_outcome got = SN_NOT_FOUND;
        place(s, b, w->first, w->end);
        if (s->status == SNUG_OK && fits(s, w->lo, w->hi, at.low))
            got = solve_parts(s, w, at);
        if (got == SN_FOUND || s->status != SNUG_OK)
            return got == SN_FOUND ? SN_FOUND : SN_GAVE_UP;
        undo_to(s, mark);
        if (got == SN_GAVE_UP || hatless)
            return got;
        last = at;
    }
}

/* Cuts a part where no unplaced box crosses and solves the pieces. */
static sn_outcome solve_parts(search *s, const part *w, position last) {
    const sn_box *boxes = s->p->boxes;
    const size_t mark = s->n_log;
    uint32_t i = w->first;
    s->work += w->end - w->first;
    while (i < w->end) {
        if (s->is_placed[i]) {
            i++;
            continue;
        }
        part piece = {i, i, boxes[i].lo, boxes[i].hi};
        for (; i < w->end && (s->is_placed[i] || boxes[i].lo < piece.hi); i++)
            if (!s->is_placed[i] && boxes[i].hi > piece.hi)
                piece.hi = boxes[i].hi;
        piece.end = i;
        const sn_outcome got = solve_part(s, &piece, last);
        if (got != SN_FOUND) {
            if (s->status == SNUG_OK)
                undo_to(s, mark);
            return got;
        }
    }
    return SN_FOUND;
}

static void restart(search *s) {
    const sn_packing *p = s->p;
    memset(s->is_placed, 0, p->n * sizeof *s->is_placed);
    memset(s->low, 0, p->n * sizeof *s->low);
    memset(s->floor, 0, p->n_sections * sizeof *s->floor);
    memcpy(s->left, p->load, p->n_sections * sizeof *s->left);
    s->n_log = s->n_old = 0;
    for (uint32_t i = 0; i < p->n; i++)
        s->by_low[i] = i;
}

static void spend(search *s, uint64_t work) {
    s->budget -= work < s->budget ? work : s->budget;
}

static void spend_plain(search *s, uint64_t work) {
    spend(s, work);
    s->plain_work += work;
}

/* First, and then as long as it is cheap: where boxes were not cut from a rectangle, joining takes
 * long and finds nothing. */
static bool is_turn_of_joined(const search *s) {
    return s->joiner && s->joined_work <= s->plain_work / JOINED_TURNS;
}

static sn_outcome try_layers(search *s, uint64_t limit, ruled *scratch) {
    const part all = {0, s->p->n, 0, s->p->n_sections};
    rank_boxes(s, scratch);
    restart(s);
    s->work = 0;
    s->limit = limit < s->budget ? limit : s->budget;
    const sn_outcome got = solve_parts(s, &all, (position){0, 0});
    spend_plain(s, s->work);
    return got;
}

/* Whether another search could be made or go on. Where the budget has no room for it, the first one
 * goes on alone. */
static bool is_there(search *s, snug_status status) {
    if (status == SNUG_OK || status == SNUG_E_BUDGET)
        return status == SNUG_OK;
    s->status = status;
    if (s->err)
        *s->err = s->why;
    return false;
}

static void settle_valleys(search *s, snug_status status) {
    if (is_there(s, status))
        return;
    sn_valleys_clear(s->valleys);
    s->valleys = NULL;
}

static sn_outcome try_valleys(search *s, uint64_t limit) {
    uint64_t work = 0;
    const sn_outcome got =
        sn_valleys_try(s->valleys, s->capacity, limit < s->budget ? limit : s->budget, &work);
    for (uint32_t i = 0; i < s->p->n && got == SN_FOUND; i++)
        s->offset[i] = sn_valleys_offset(s->valleys, i);
    spend_plain(s, work);
    settle_valleys(s, sn_valleys_status(s->valleys));
    return s->valleys ? got : SN_GAVE_UP;
}

static sn_outcome try_joined(search *s, uint64_t limit);

/* Looks for a packing of at most `capacity`, a few times, each time with `limit` operations. */
static sn_outcome solve(search *s, size_t capacity, uint64_t limit, ruled *scratch) {
    sn_outcome got = SN_GAVE_UP;
    s->capacity = capacity;
    for (int i = 0; i < ATTEMPTS && got == SN_GAVE_UP && s->status == SNUG_OK && s->budget > 0;
         i++) {
        if (is_turn_of_joined(s))
            got = try_joined(s, limit);
        if (got == SN_GAVE_UP && s->status == SNUG_OK)
            got = try_layers(s, limit, scratch);
        if (got == SN_GAVE_UP && s->status == SNUG_OK && s->valleys)
            got = try_valleys(s, limit);
    }
    return got;
}

static size_t height_of(const search *s) {
    size_t height = 0;
    for (uint32_t i = 0; i < s->p->n; i++) {
        const size_t top = s->offset[i] + s->p->boxes[i].size;
        height = top > height ? top : height;
    }
    return height;
}

/* Keeps what was found below s->capacity, or that there is nothing. */
static bool judge(search *s, sn_packing *p, sn_outcome got) {
    if (got == SN_NOT_FOUND && s->status == SNUG_OK) /* a proof */
        s->possible = s->capacity + 1;
    if (got != SN_FOUND || s->status != SNUG_OK)
        return false;
    p->height = height_of(s);
    memcpy(p->offset, s->offset, p->n * sizeof *p->offset);
    return true;
}

static snug_status init_search(search *s, sn_zone *z, ruled **scratch, snug_error *err) {
    const sn_packing *p = s->p;
    struct {
        void **to;
        size_t bytes;
    } want[] = {
        {(void **)&s->rank, p->n * sizeof *s->rank},
        {(void **)&s->is_placed, p->n * sizeof *s->is_placed},
        {(void **)&s->low, p->n * sizeof *s->low},
        {(void **)&s->offset, p->n * sizeof *s->offset},
        {(void **)&s->floor, p->n_sections * sizeof *s->floor},
        {(void **)&s->left, p->n_sections * sizeof *s->left},
        {(void **)&s->by_low, p->n * sizeof *s->by_low},
        {(void **)&s->next, (p->n_sections + (size_t)1) * sizeof *s->next},
        {(void **)&s->strife, p->n_sections * sizeof *s->strife},
        {(void **)scratch, p->n * sizeof **scratch},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        SNUG_TRY(sn_zone_alloc(z, want[i].bytes, want[i].to, err));
    return SNUG_OK;
}

static void clear_search(search *s) {
    sn_valleys_clear(s->valleys);
    sn_free(s->e, SN_MEM_PLAN, s->log, s->cap_log * sizeof *s->log);
    sn_free(s->e, SN_MEM_PLAN, s->old_floor, s->cap_old * sizeof *s->old_floor);
}

/* --- joined boxes ----------------------------------------------------------------------------- */
static snug_status init_joiner(search *s, sn_zone *z) {
    void *pieces;
    SNUG_TRY(sn_joiner_create(z, s->p, &s->joiner, &s->why));
    if (!s->joiner)
        return SNUG_OK;
    const uint32_t most = sn_joiner_most(s->joiner);
    SNUG_TRY(sn_packing_alloc(z, most, s->p->n_sections, &s->joined, &s->why));
    SNUG_TRY(sn_zone_alloc(z, most * sizeof *s->pieces, &pieces, &s->why));
    s->pieces = pieces;
    return SNUG_OK;
}

/* The first ways of joining are all tried; of later ones the best of some. */
static void join_boxes(search *s) {
    sn_packing *q = &s->joined;
    uint64_t best = s->variant;
    uint32_t fewest = UINT32_MAX;
    const int draws = s->variant < JOIN_DRAWS ? 1 : JOIN_DRAWS;
    for (int i = 0; i < draws; i++, s->variant++) {
        spend(s, sn_join(s->joiner, s->capacity, s->variant, s->budget / JOIN_SHARE, q));
        best = q->n < fewest ? s->variant : best;
        fewest = q->n < fewest ? q->n : fewest;
    }
    if (best + 1 < s->variant)
        spend(s, sn_join(s->joiner, s->capacity, best, s->budget / JOIN_SHARE, q));
}

/* Searches the smaller problem; s->offset is written where a packing is found. */
static snug_status search_joined(search *s, search *small, sn_zone *z, uint64_t limit) {
    const sn_packing *q = small->p;
    ruled *scratch = NULL;
    SNUG_TRY(init_search(small, z, &scratch, &s->why));
    settle_valleys(small, sn_valleys_create(s->e, z, q, &small->valleys, &small->why));
    SNUG_TRY(small->status);
    const sn_outcome got = solve(small, s->capacity, limit / s->p->n * q->n, scratch);
    if (got == SN_FOUND)
        sn_join_expand(s->joiner, q, small->offset, s->pieces, s->offset);
    s->is_joined = got == SN_FOUND;
    return small->status;
}

/* A packing of the joined boxes is one of all; where there is none, that says nothing. */
static sn_outcome try_joined(search *s, uint64_t limit) {
    const uint64_t before = s->budget;
    sn_zone *z = NULL;
    s->is_joined = false;
    join_boxes(s);
    search small = {.p = &s->joined, .e = s->e, .err = &s->why, .budget = s->budget};
    snug_status status = sn_zone_create(s->e, SN_MEM_PLAN, &z, &s->why);
    if (status == SNUG_OK)
        status = search_joined(s, &small, z, limit);
    s->budget = small.budget;
    s->joined_work += before - s->budget;
    clear_search(&small);
    sn_zone_destroy(z);
    if (!is_there(s, status))
        s->joiner = NULL;
    return s->is_joined ? SN_FOUND : SN_GAVE_UP;
}

/* --- capacities ------------------------------------------------------------------------------- */
/* The lowest of a ladder of capacities that a search of this size manages, from the wanted one up
 * to just below the best height: a little room often turns a hard search into an easy one. */
static void climb(search *s, sn_packing *p, uint64_t limit, ruled *scratch) {
    static const double rungs[] = {0, 0.01, 0.1, 0.4, 0.8, 0.97};
    for (size_t i = 0; i < sizeof rungs / sizeof rungs[0] && s->budget > 0 && s->status == SNUG_OK;
         i++) {
        const size_t from = s->possible > p->wanted ? s->possible : p->wanted;
        if (from >= p->height)
            return;
        const size_t capacity = from + (size_t)(rungs[i] * (double)(p->height - from));
        if (judge(s, p, solve(s, capacity, limit, scratch)))
            return;
    }
}

static bool is_done(const search *s, const sn_packing *p) {
    return s->status != SNUG_OK || s->budget == 0 || p->height <= p->wanted ||
           p->height <= s->possible;
}

/* Half of the work goes to valleys and joined boxes at the height that is wanted, unless there is
 * no such packing. */
static void search_wanted(search *s, sn_packing *p) {
    const uint64_t keep = s->budget / 2;
    uint64_t limit = VALLEYS_FIRST * p->n;
    s->capacity = p->wanted;
    for (; (s->valleys || s->joiner) && s->budget > keep && !is_done(s, p) &&
           s->possible <= p->wanted;
         limit += limit / 16) {
        const bool joins = is_turn_of_joined(s) || !s->valleys;
        const bool found = joins && judge(s, p, try_joined(s, limit));
        if (!found && s->valleys && s->budget > keep && s->status == SNUG_OK)
            judge(s, p, try_valleys(s, limit < s->budget - keep ? limit : s->budget - keep));
    }
}

/* Short searches first: some twice as long as placing every box once. Longer ones slowly: another
 * order is worth more than another minute. */
static void search_capacities(search *s, sn_packing *p, ruled *scratch) {
    uint64_t limit = 12 * (uint64_t)p->n * p->n + 1000;
    s->possible = p->bound;
    search_wanted(s, p);
    for (; !is_done(s, p); limit += limit / 32)
        climb(s, p, limit, scratch);
}

snug_status sn_pack_search(snug_engine *e, sn_packing *p, uint64_t *work, snug_error *err) {
    search s = {.p = p, .e = e, .err = err, .budget = *work};
    sn_zone *z = NULL;
    ruled *scratch = NULL;
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    s.status = init_search(&s, z, &scratch, err);
    if (s.status == SNUG_OK && *work >= VALLEYS_WORTH) {
        settle_valleys(&s, sn_valleys_create(e, z, p, &s.valleys, &s.why));
        if (s.status == SNUG_OK && !is_there(&s, init_joiner(&s, z)))
            s.joiner = NULL;
    }
    if (s.status == SNUG_OK)
        search_capacities(&s, p, scratch);
    *work = s.budget;
    clear_search(&s);
    sn_zone_destroy(z);
    return s.status;
}
