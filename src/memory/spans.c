/* spans.c: consecutive spans of bytes in a sorted list of numbers of pool entries, so that
 * inserting moves 4 bytes a span. Entries of merged spans are not used again: the pool grows with
 * the number of cuts. */
#include "memory/spans.h"

#include <string.h>

static size_t entry_bytes(const sn_spans *s) {
    return sizeof(sn_span) + s->record_bytes;
}

static sn_span *entry(const sn_spans *s, size_t i) {
    return (sn_span *)(s->pool + s->order[i] * entry_bytes(s));
}

const sn_span *sn_spans_at(const sn_spans *s, size_t i) {
    return entry(s, i);
}

void *sn_spans_record(const sn_spans *s, size_t i) {
    return entry(s, i) + 1;
}

/* A new entry at position i of the list, with `record`, or with that of span record_of for NULL (a
 * pointer into the pool would not outlive its growing). */
static snug_status insert(sn_spans *s, size_t i, sn_span where, size_t record_of,
                          const void *record, snug_error *err) {
    SNUG_TRY(
        sn_grow(s->engine, SN_MEM_PLAN, &s->order, sizeof *s->order, &s->cap_order, s->n + 1, err));
    SNUG_TRY(sn_grow(s->engine, SN_MEM_PLAN, &s->pool, entry_bytes(s), &s->cap_pool, s->n_pool + 1,
                     err));
    sn_span *to = (sn_span *)(s->pool + s->n_pool * entry_bytes(s));
    *to = where;
    memcpy(to + 1, record ? record : sn_spans_record(s, record_of), s->record_bytes);
    memmove(s->order + i + 1, s->order + i, (s->n - i) * sizeof *s->order);
    s->order[i] = (uint32_t)s->n_pool++;
    s->n++;
    return SNUG_OK;
}

snug_status sn_spans_append(sn_spans *s, size_t end, const void *record, snug_error *err) {
    const size_t start = s->n > 0 ? entry(s, s->n - 1)->end : 0;
    if (end <= start)
        return SNUG_OK;
    return insert(s, s->n, (sn_span){start, end}, 0, record, err);
}

/* The span that starts at pos; n at the end of the map. */
static snug_status cut_at(sn_spans *s, size_t pos, size_t *out, snug_error *err) {
    size_t a = 0, b = s->n;
    while (a < b) {
        const size_t mid = a + (b - a) / 2;
        if (entry(s, mid)->end <= pos)
            a = mid + 1;
        else
            b = mid;
    }
    if (a < s->n && entry(s, a)->start < pos) {
        SNUG_TRY(insert(s, a + 1, (sn_span){pos, entry(s, a)->end}, a, NULL, err));
        entry(s, a)->end = pos;
        a++;
    }
    *out = a;
    return SNUG_OK;
}

snug_status sn_spans_cut(sn_spans *s, size_t start, size_t end, size_t *first, size_t *stop,
                         snug_error *err) {
    size_t from, to;
    SNUG_TRY(cut_at(s, start, &from, err));
    SNUG_TRY(cut_at(s, end, &to, err));
    *first = from;
    *stop = to;
    return SNUG_OK;
}

void sn_spans_merge(sn_spans *s, size_t first, size_t stop) {
    if (stop - first < 2)
        return;
    entry(s, first)->end = entry(s, stop - 1)->end;
    memmove(s->order + first + 1, s->order + stop, (s->n - stop) * sizeof *s->order);
    s->n -= stop - first - 1;
}

void sn_spans_clear(sn_spans *s) {
    if (!s->engine)
        return;
    sn_free(s->engine, SN_MEM_PLAN, s->order, s->cap_order * sizeof *s->order);
    sn_free(s->engine, SN_MEM_PLAN, s->pool, s->cap_pool * entry_bytes(s));
    *s = (sn_spans){0};
}
