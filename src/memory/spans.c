/* spans.c: consecutive spans of bytes in a sorted list of numbers of pool entries, so that
 * inserting moves 4 bytes a span. Entries of merged spans are used again: the pool is as large as
 * the list ever was. Spans have at least a byte in every iteration of a run. */
#include "memory/spans.h"

#include "base/size.h"

#include <string.h>

static size_t entry_bytes(const sn_spans *s) {
    return sizeof(sn_ends) + s->record_bytes;
}

static sn_ends *pooled(const sn_spans *s, uint32_t number) {
    return (sn_ends *)(void *)(s->pool + number * entry_bytes(s));
}

/* The start, then what the span holds, then the rest of the record. */
static sn_ends *entry(const sn_spans *s, size_t i) {
    return pooled(s, s->order[i]);
}

sn_ends sn_spans_start(const sn_spans *s, size_t i) {
    return i < s->n ? *entry(s, i) : (sn_ends){{s->end, s->end}};
}

void *sn_spans_record(const sn_spans *s, size_t i) {
    return entry(s, i) + 1;
}

static void release(sn_spans *s, size_t i) {
    entry(s, i)->at[0] = s->free;
    s->free = s->order[i];
    s->n_free++;
}

static snug_status take_entry(sn_spans *s, uint32_t *number, snug_error *err) {
    *number = s->free;
    if (s->n_free > 0) {
        s->free = (uint32_t)pooled(s, s->free)->at[0];
        s->n_free--;
        return SNUG_OK;
    }
    SNUG_TRY(sn_grow(s->engine, SN_MEM_PLAN, &s->pool, entry_bytes(s), &s->cap_pool, s->n_pool + 1,
                     err));
    *number = (uint32_t)s->n_pool++;
    return SNUG_OK;
}

/* A new entry at position i of the list, with `record`, or with that of span record_of for NULL (a
 * pointer into the pool would not outlive its growing). */
static snug_status insert(sn_spans *s, size_t i, sn_ends start, size_t record_of,
                          const void *record, snug_error *err) {
    uint32_t number;
    SNUG_TRY(
        sn_grow(s->engine, SN_MEM_PLAN, &s->order, sizeof *s->order, &s->cap_order, s->n + 1, err));
    SNUG_TRY(take_entry(s, &number, err));
    sn_ends *to = pooled(s, number);
    *to = start;
    memcpy(to + 1, record ? record : sn_spans_record(s, record_of), s->record_bytes);
    memmove(s->order + i + 1, s->order + i, (s->n - i) * sizeof *s->order);
    s->order[i] = number;
    s->n++;
    return SNUG_OK;
}

snug_status sn_spans_append(sn_spans *s, int64_t end, const void *record, snug_error *err) {
    if (end <= s->end)
        return SNUG_OK;
    SNUG_TRY(insert(s, s->n, (sn_ends){{s->end, s->end}}, 0, record, err));
    s->end = end;
    return SNUG_OK;
}

/* The span that starts at pos; n at the end of the map. Span `low` starts before, or there. */
static snug_status cut_at(sn_spans *s, sn_ends pos, size_t low, size_t *out, snug_error *err) {
    size_t a = low + 1, b = s->n;
    if (a < b && entry(s, a)->at[0] > pos.at[0])
        b = a;      /* mostly */
    while (a < b) { /* how many spans start before pos or there, in the first iteration */
        const size_t mid = a + (b - a) / 2;
        if (entry(s, mid)->at[0] <= pos.at[0])
            a = mid + 1;
        else
            b = mid;
    }
    if (a == s->n && pos.at[0] == s->end)
        a++;
    *out = a - 1;
    if (sn_ends_equal(sn_spans_start(s, a - 1), pos))
        return SNUG_OK;
    if (!sn_ends_less(sn_spans_start(s, a - 1), pos) || !sn_ends_less(pos, sn_spans_start(s, a))) {
        s->crossed = true;
        return SNUG_OK;
    }
    *out = a;
    return insert(s, a, pos, a - 1, NULL, err);
}

snug_status sn_spans_cut(sn_spans *s, sn_ends start, sn_ends end, size_t *first, size_t *stop,
                         snug_error *err) {
    size_t from, to;
    SNUG_TRY(cut_at(s, start, 0, &from, err));
    SNUG_TRY(cut_at(s, end, from < s->n ? from : s->n - 1, &to, err));
    *first = s->crossed ? 0 : from;
    *stop = s->crossed ? 0 : to;
    s->looked_at += *stop - *first;
    return SNUG_OK;
}

void sn_spans_merge(sn_spans *s, size_t first, size_t stop) {
    if (stop - first < 2)
        return;
    for (size_t i = first + 1; i < stop; i++)
        release(s, i);
    memmove(s->order + first + 1, s->order + stop, (s->n - stop) * sizeof *s->order);
    s->n -= stop - first - 1;
}

void sn_spans_join(sn_spans *s) {
    const size_t held = s->n_content * sizeof(sn_ends), rest = s->record_bytes - held;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        unsigned char *record = sn_spans_record(s, i);
        memset(record + held, 0, rest);
        if (n > 0 && memcmp(sn_spans_record(s, n - 1), record, held) == 0)
            release(s, i);
        else
            s->order[n++] = s->order[i];
    }
    s->looked_at += s->n;
    s->n = n;
}

/* --- runs ------------------------------------------------------------------------------------- */
static sn_ends *kept(const sn_spans *s, size_t i) {
    return s->kept + i * (1 + s->n_content);
}

snug_status sn_spans_keep(sn_spans *s, snug_error *err) {
    const size_t width = 1 + s->n_content;
    SNUG_TRY(sn_grow(s->engine, SN_MEM_PLAN, &s->kept, sizeof *s->kept, &s->cap_kept, s->n * width,
                     err));
    for (size_t i = 0; i < s->n; i++)
        memcpy(kept(s, i), entry(s, i), width * sizeof *s->kept);
    s->n_kept = s->n;
    return SNUG_OK;
}

/* What a number that was `was` before the last iteration is in n iterations from now on, and behind
 * each of them. */
static bool go_on(sn_ends now, sn_ends was, int64_t n, sn_ends *run, sn_ends *next) {
    const int64_t by = now.at[0] - was.at[0];
    *run = now;
    return sn_i64_mul(n - 1, by, &run->at[1]) && sn_i64_add(run->at[1], now.at[0], &run->at[1]) &&
           sn_i64_add(run->at[0], by, &next->at[0]) && sn_i64_add(run->at[1], by, &next->at[1]);
}

bool sn_spans_may_move(const sn_spans *s, int64_t n) {
    int64_t before = -1;
    if (s->n != s->n_kept)
        return false;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k <= s->n_content; k++) {
            sn_ends run, next;
            if (!go_on(entry(s, i)[k], kept(s, i)[k], n, &run, &next))
                return false;
            if (k == 0 && (run.at[1] <= before || run.at[1] >= s->end || (i == 0 && run.at[1] > 0)))
                return false;
            before = k == 0 ? run.at[1] : before;
        }
    return true;
}

void sn_spans_move(sn_spans *s, int64_t n) {
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k <= s->n_content; k++) {
            sn_ends run, next;
            (void)go_on(entry(s, i)[k], kept(s, i)[k], n, &run, &next);
            entry(s, i)[k] = run;
            kept(s, i)[k] = next;
        }
}

bool sn_spans_is_kept(const sn_spans *s) {
    const size_t width = (1 + s->n_content) * sizeof(sn_ends);
    for (size_t i = 0; s->n == s->n_kept && i < s->n; i++)
        if (memcmp(entry(s, i), kept(s, i), width) != 0)
            return false;
    return s->n == s->n_kept;
}

void sn_spans_land(sn_spans *s) {
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k <= s->n_content; k++)
            entry(s, i)[k].at[0] = entry(s, i)[k].at[1];
}

void sn_spans_clear(sn_spans *s) {
    if (!s->engine)
        return;
    sn_free(s->engine, SN_MEM_PLAN, s->order, s->cap_order * sizeof *s->order);
    sn_free(s->engine, SN_MEM_PLAN, s->pool, s->cap_pool * entry_bytes(s));
    sn_free(s->engine, SN_MEM_PLAN, s->kept, s->cap_kept * sizeof *s->kept);
    *s = (sn_spans){0};
}
