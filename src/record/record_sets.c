/* record_sets.c: which tapes see a value, of any number of tapes. A mark is a number of 32 bits:
 * the first SN_FEW_TAPES tapes have a bit of it each. Where others see a value, too, the mark is
 * SN_MANY and the number of a *set*: bits of its own, from its first word that has any to its last.
 *
 * Invariants:
 * 1. A set does not change but that tapes that forget leave it, those that are dropped many at a
 *    time (sn_sets_forget_gone): until then they keep their number. Sets of the same bits are
 *    mostly one set, but not always: whoever compares marks compares what is in them.
 * 2. Handles count the sets that they hold. Values of recordings do not: sets that nobody has are
 *    found by looking (sn_sets_collect), where no mark is under way. */
#include "record/recording.h"

#include <string.h>

enum { WORD = 64, LEAST_SETS = 64 };

static const sn_tape_set *set_of(const snug_recorder *r, uint32_t mark) {
    return &r->sets.set[mark & ~SN_MANY];
}

/* --- numbers of tapes ------------------------------------------------------------------------- */
/* The words are as many in each of the arrays, or some have more than they need. */
static snug_status widen(snug_recorder *r, size_t n, snug_error *err) {
    sn_tape_sets *s = &r->sets;
    size_t cap = s->cap_scratch;
    SNUG_TRY(sn_grow(r->engine, SN_MEM_TAPES, &s->taken, sizeof *s->taken, &s->cap_taken, n, err));
    SNUG_TRY(sn_grow(r->engine, SN_MEM_TAPES, &s->open, sizeof *s->open, &s->cap_open, n, err));
    SNUG_TRY(sn_grow(r->engine, SN_MEM_TAPES, &s->gone, sizeof *s->gone, &s->cap_gone, n, err));
    SNUG_TRY(
        sn_grow(r->engine, SN_MEM_TAPES, &s->scratch, sizeof *s->scratch, &s->cap_scratch, n, err));
    memset(s->scratch + cap, 0, (s->cap_scratch - cap) * sizeof *s->scratch);
    for (; s->n_words < n; s->n_words++) {
        s->taken[s->n_words] = s->n_words == 0 ? SN_MANY - 1 : 0; /* bits of marks */
        s->open[s->n_words] = s->gone[s->n_words] = 0;
    }
    return SNUG_OK;
}

static void free_words(snug_recorder *r) {
    sn_tape_sets *s = &r->sets;
    sn_free(r->engine, SN_MEM_TAPES, s->taken, s->cap_taken * sizeof *s->taken);
    sn_free(r->engine, SN_MEM_TAPES, s->open, s->cap_open * sizeof *s->open);
    sn_free(r->engine, SN_MEM_TAPES, s->gone, s->cap_gone * sizeof *s->gone);
    sn_free(r->engine, SN_MEM_TAPES, s->scratch, s->cap_scratch * sizeof *s->scratch);
    sn_free(r->engine, SN_MEM_TAPES, s->set, s->cap_set * sizeof *s->set);
    sn_numbers_clear(&s->by_hash);
    *s = (sn_tape_sets){0};
}

snug_status sn_sets_take_number(snug_recorder *r, uint32_t *out, snug_error *err) {
    sn_tape_sets *s = &r->sets;
    size_t w = 0;
    if (s->n_used > s->limit)
        sn_sets_collect(r);
    while (w < s->n_words && s->taken[w] == UINT64_MAX)
        w++;
    SNUG_TRY(widen(r, w + 1, err));
    const uint32_t bit = (uint32_t)__builtin_ctzll(~s->taken[w]);
    s->taken[w] |= UINT64_C(1) << bit;
    s->n_taken++;
    *out = (uint32_t)w * WORD + bit;
    return SNUG_OK;
}

void sn_sets_give_number(snug_recorder *r, uint32_t number) {
    sn_tape_sets *s = &r->sets;
    s->gone[number / WORD] |= UINT64_C(1) << number % WORD;
    s->n_gone++;
    if (!r->tapes)
        sn_sets_collect(r);
    else if (s->n_gone >= WORD && 2 * s->n_gone >= s->n_taken)
        sn_sets_forget_gone(r);
}

void sn_tape_set_open(snug_tape *t, bool open) {
    const uint64_t bit = UINT64_C(1) << t->bit % WORD;
    if (t->open == open)
        return;
    t->open = open;
    t->r->n_open_tapes = open ? t->r->n_open_tapes + 1 : t->r->n_open_tapes - 1;
    uint64_t word = t->bit < SN_FEW_TAPES ? t->r->open_tapes : t->r->sets.open[t->bit / WORD];
    word = open ? word | bit : word & ~bit;
    if (t->bit < SN_FEW_TAPES)
        t->r->open_tapes = (uint32_t)word;
    else
        t->r->sets.open[t->bit / WORD] = word;
}

/* --- making sets ------------------------------------------------------------------------------ */
/* Words of a set under way. */
typedef struct {
    uint32_t first, end;
} span;

static void add_word(snug_recorder *r, span *at, uint32_t w, uint64_t bits) {
    if (!bits)
        return;
    r->sets.scratch[w] |= bits;
    at->first = w < at->first ? w : at->first;
    at->end = w + 1 > at->end ? w + 1 : at->end;
}

static void add_mark(snug_recorder *r, span *at, uint32_t mark) {
    if (!(mark & SN_MANY)) {
        add_word(r, at, 0, mark);
        return;
    }
    const sn_tape_set *s = set_of(r, mark);
    for (uint32_t i = 0; i < s->n; i++)
        add_word(r, at, s->first + i, s->word[i]);
}

static uint64_t hash_of(const uint64_t *word, uint32_t first, uint32_t n) {
    uint64_t h = first;
    for (uint32_t i = 0; i < n; i++)
        h = (h ^ word[i] ^ (h >> 29)) * UINT64_C(0x9e3779b97f4a7c15);
    return h;
}

static snug_status new_set(snug_recorder *r, const uint64_t *word, uint32_t first, uint32_t n,
                           uint32_t *out, snug_error *err) {
    sn_tape_sets *s = &r->sets;
    void *copy;
    const bool again = s->n_used < s->n_set;
    s->by_hash.engine = r->engine;
    s->by_hash.category = SN_MEM_TAPES;
    SNUG_TRY(sn_numbers_reserve(&s->by_hash, err));
    SNUG_TRY(
        sn_grow(r->engine, SN_MEM_TAPES, &s->set, sizeof *s->set, &s->cap_set, s->n_set + 1, err));
    SNUG_TRY(sn_alloc(r->engine, SN_MEM_TAPES, n * sizeof *word, &copy, err));
    const uint32_t id = again ? s->free : s->n_set++;
    s->free = again ? s->set[id].next_free : s->free;
    s->n_used++;
    memcpy(copy, word, n * sizeof *word);
    s->set[id] = (sn_tape_set){.word = copy, .first = first, .n = n};
    sn_numbers_put(&s->by_hash, hash_of(word, first, n), id);
    *out = SN_MANY | id;
    return SNUG_OK;
}

/* The mark of what is under way, which ends. */
static snug_status finish(snug_recorder *r, const span *at, uint32_t *out, snug_error *err) {
    const sn_tape_sets *s = &r->sets;
    uint64_t *word = s->scratch + at->first;
    const uint32_t n = at->end > at->first ? at->end - at->first : 0;
    snug_status status = SNUG_OK;
    uint32_t id;
    if (n == 0) {
        *out = 0;
        return SNUG_OK;
    }
    if (at->end == 1 && word[0] < SN_MANY)
        *out = (uint32_t)word[0];
    else if (sn_numbers_find(&s->by_hash, hash_of(word, at->first, n), &id) &&
             s->set[id].first == at->first && s->set[id].n == n &&
             memcmp(s->set[id].word, word, n * sizeof *word) == 0)
        *out = SN_MANY | id;
    else
        status = new_set(r, word, at->first, n, out, err);
    memset(word, 0, n * sizeof *word);
    return status;
}

snug_status sn_sets_add(snug_recorder *r, uint32_t *mark, uint32_t more, snug_error *err) {
    span at = {UINT32_MAX, 0};
    add_mark(r, &at, *mark);
    add_mark(r, &at, more);
    return finish(r, &at, mark, err);
}

snug_status sn_sets_of_tape(const snug_tape *t, uint32_t *out, snug_error *err) {
    span at = {UINT32_MAX, 0};
    if (t->bit < SN_FEW_TAPES) {
        *out = 1u << t->bit;
        return SNUG_OK;
    }
    add_word(t->r, &at, t->bit / WORD, UINT64_C(1) << t->bit % WORD);
    return finish(t->r, &at, out, err);
}

snug_status sn_sets_of_active(snug_recorder *r, uint32_t few, sn_tape_pick pick, const void *ctx,
                              uint32_t *out, snug_error *err) {
    span at = {UINT32_MAX, 0};
    add_word(r, &at, 0, few & ~SN_MANY);
    for (const snug_tape *t = r->seat->active_more; t; t = t->next_active)
        if (pick(t, ctx))
            add_word(r, &at, t->bit / WORD, UINT64_C(1) << t->bit % WORD);
    return finish(r, &at, out, err);
}

/* --- asking sets ------------------------------------------------------------------------------ */
uint32_t sn_sets_few(const snug_recorder *r, uint32_t mark) {
    const sn_tape_set *s = set_of(r, mark);
    return s->first == 0 ? (uint32_t)s->word[0] & ~SN_MANY : 0;
}

bool sn_sets_have(const snug_recorder *r, uint32_t mark, uint32_t number) {
    const sn_tape_set *s = set_of(r, mark);
    const uint32_t w = number / WORD - s->first; /* far beyond n where it is before the first */
    return w < s->n && (s->word[w] >> number % WORD & 1);
}

bool sn_sets_open_beside(const snug_recorder *r, uint32_t mark, uint32_t but) {
    span of = {0, 1};
    if (mark & SN_MANY)
        of = (span){set_of(r, mark)->first, set_of(r, mark)->first + set_of(r, mark)->n};
    for (uint32_t w = of.first; w < of.end; w++) {
        uint64_t word = mark & SN_MANY ? set_of(r, mark)->word[w - of.first] : mark;
        word &= (w < r->sets.n_words ? r->sets.open[w] : 0) | (w == 0 ? r->open_tapes : 0);
        if (!(but & SN_MANY))
            word &= w == 0 ? ~(uint64_t)but : UINT64_MAX;
        else if (w - set_of(r, but)->first < set_of(r, but)->n)
            word &= ~set_of(r, but)->word[w - set_of(r, but)->first];
        if (word)
            return true;
    }
    return false;
}

/* --- leaving ---------------------------------------------------------------------------------- */
void sn_sets_forget(snug_recorder *r, uint32_t number) {
    for (uint32_t i = 0; i < r->sets.n_set; i++) {
        const sn_tape_set *s = &r->sets.set[i];
        const uint32_t w = number / WORD - s->first;
        if (s->word && w < s->n)
            s->word[w] &= ~(UINT64_C(1) << number % WORD);
    }
}

static void leave_sets(snug_recorder *r) {
    sn_tape_sets *s = &r->sets;
    for (uint32_t i = 0; i < s->n_set; i++) {
        const sn_tape_set *set = &s->set[i];
        for (uint32_t w = 0; set->word && w < set->n; w++)
            set->word[w] &= ~(s->gone[set->first + w] | (set->first + w == 0 ? r->gone_tapes : 0));
    }
    for (size_t w = 0; w < s->n_words; w++) {
        s->taken[w] &= ~s->gone[w];
        s->gone[w] = 0;
    }
    s->n_taken -= s->n_gone;
    s->n_gone = 0;
}

void sn_sets_forget_gone(snug_recorder *r) {
    const uint32_t gone = r->gone_tapes;
    if (r->running) /* values under way are in no seat */
        return;
    leave_sets(r);
    for (const sn_seat *s = gone ? r->seats : NULL; s; s = s->next)
        for (const sn_recording *rec = sn_seat_now(r, s); rec; rec = rec->outer)
            for (size_t v = 0; v < rec->n_values; v++)
                rec->tapes[v] &= rec->tapes[v] & SN_MANY ? UINT32_MAX : ~gone;
    r->gone_tapes = 0;
}

void sn_tensor_see(snug_tensor *t, uint32_t mark) {
    const uint32_t before = t->tapes;
    if (mark & SN_MANY)
        t->r->sets.set[mark & ~SN_MANY].refs++;
    t->tapes = mark;
    if (before & SN_MANY)
        t->r->sets.set[before & ~SN_MANY].refs--;
}

/* Whether tapes that have a bit are all that is left in it. */
static bool is_few(const sn_tape_set *s) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->first + i == 0 ? s->word[i] >= SN_MANY : s->word[i] != 0)
            return false;
    return true;
}

static void look_at(snug_recorder *r, uint32_t *mark) {
    if (!(*mark & SN_MANY))
        return;
    sn_tape_set *s = &r->sets.set[*mark & ~SN_MANY];
    if (s->few)
        *mark = sn_sets_few(r, *mark);
    else
        s->held = true;
}

static void find_held(snug_recorder *r) {
    for (uint32_t i = 0; i < r->sets.n_set; i++) {
        sn_tape_set *s = &r->sets.set[i];
        s->held = s->refs > 0;
        s->few = s->word && is_few(s);
    }
    for (const sn_seat *s = r->seats; s; s = s->next)
        for (const sn_recording *rec = sn_seat_now(r, s); rec; rec = rec->outer)
            for (size_t v = 0; v < rec->n_values; v++)
                look_at(r, &rec->tapes[v]);
}

void sn_sets_collect(snug_recorder *r) {
    sn_tape_sets *s = &r->sets;
    snug_error none;
    if (r->running) /* values under way are in no seat */
        return;
    sn_sets_forget_gone(r);
    find_held(r);
    sn_numbers_forget(&s->by_hash);
    for (uint32_t i = 0; i < s->n_set; i++) {
        sn_tape_set *set = &s->set[i];
        if (set->word && set->held && sn_numbers_reserve(&s->by_hash, &none) == SNUG_OK)
            sn_numbers_put(&s->by_hash, hash_of(set->word, set->first, set->n), i);
        if (!set->word || set->held)
            continue;
        sn_free(r->engine, SN_MEM_TAPES, set->word, set->n * sizeof *set->word);
        *set = (sn_tape_set){.next_free = s->free};
        s->free = i;
        s->n_used--;
    }
    s->limit = 2 * s->n_used + LEAST_SETS;
    if (s->n_used == 0 && s->n_taken == 0)
        free_words(r);
}

void sn_sets_tidy(snug_recorder *r) {
    const sn_tape_sets *s = &r->sets;
    if (s->n_used > s->limit || (s->n_taken == s->n_gone && s->n_words > 0))
        sn_sets_collect(r);
}

void sn_sets_clear(snug_recorder *r) {
    for (uint32_t i = 0; i < r->sets.n_set; i++)
        if (r->sets.set[i].word)
            sn_free(r->engine, SN_MEM_TAPES, r->sets.set[i].word,
                    r->sets.set[i].n * sizeof *r->sets.set[i].word);
    free_words(r);
}
