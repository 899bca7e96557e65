/* record_open.c: traces that serve any size of an axis. While such a trace is made, an open extent
 * is a stand-in, a number that nothing else is; nothing in a trace runs, so it may be large. What
 * follows from extents, in attributes, parameters and small tensors of integers, is then seen to be
 * k * extent + d, or k times two of them, and becomes that of the sizes a call has.
 *
 * Numbers up to SMALL are never taken for such ones; a larger one that is no multiple of a stand-in
 * (half of it, say) cannot be told: then the trace does not serve other sizes, and says so. */
#include "record/recording.h"

#include <stdlib.h>
#include <string.h>

#define SMALL      300000
#define LARGEST    ((int64_t)1 << 50) /* beyond are sentinels and random keys */
#define MOST_TIMES 10000000
#define MOST_APART 64
#define MOST_KNOWN 64 /* elements of a tensor of integers that is looked at */

static const int64_t stand_ins[SN_MAX_OPEN] = {1372993, 1739327, 2203517, 2791211};

int64_t sn_open_extent(int k) {
    return stand_ins[k];
}

/* times * extent a * extent b + apart; a, b -1: none. */
typedef struct {
    int64_t times, apart;
    int a, b;
} term;

static bool is_near(int64_t w, int64_t unit, int64_t *times, int64_t *apart) {
    *times = (w + unit / 2) / unit;
    *apart = w - *times * unit;
    return *times >= 1 && *times <= MOST_TIMES && llabs(*apart) <= MOST_APART;
}

/* How many ways there are to read the number as multiples of one extent, or of two; *out is the
 * last. */
static int find_terms(int64_t w, int n_open, bool of_two, term *out) {
    int found = 0;
    for (int a = 0; a < n_open; a++)
        for (int b = a; b < (of_two ? n_open : a + 1); b++) {
            term t = {.a = a, .b = of_two ? b : -1};
            if (is_near(w, stand_ins[a] * (of_two ? stand_ins[b] : 1), &t.times, &t.apart)) {
                *out = t;
                found++;
            }
        }
    return found;
}

sn_open_kind sn_open_read(const sn_open_sizes *s, int64_t w, int64_t *out) {
    term t = {.a = -1, .b = -1};
    const int64_t size = llabs(w);
    *out = w;
    if (s->n == 0 || size <= SMALL || size >= LARGEST)
        return SN_OPEN_NO;
    int n = find_terms(size, s->n, true, &t);
    if (n == 0)
        n = find_terms(size, s->n, false, &t);
    if (n != 1)
        return SN_OPEN_UNCLEAR;
    const int64_t value = t.times * s->size[t.a] * (t.b < 0 ? 1 : s->size[t.b]) + t.apart;
    *out = w < 0 ? -value : value;
    return SN_OPEN_YES;
}

/* Numbers of the host that follow from extents are exact multiples, or one over them. */
bool sn_open_real(const sn_open_sizes *s, double r, double *out) {
    int64_t value;
    const double whole = r >= 1 ? r : r > 0 ? 1 / r : 0;
    const int64_t w = whole < (double)LARGEST ? (int64_t)(whole + 0.5) : 0;
    if (sn_open_read(s, w, &value) != SN_OPEN_YES)
        return false;
    for (int a = 0; a < s->n; a++)
        if (w % stand_ins[a] == 0 && (r >= 1 ? (double)w == r : 1.0 / (double)w == r)) {
            *out = r >= 1 ? (double)value : 1.0 / (double)value;
            return true;
        }
    return false;
}

/* --- tensors of integers ---------------------------------------------------------------------- */
static int64_t element(const snug_tensor *t, const void *data, int64_t i) {
    int32_t narrow;
    int64_t wide;
    if (t->type.dtype == SNUG_I32) {
        memcpy(&narrow, (const char *)data + 4 * i, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, (const char *)data + 8 * i, sizeof wide);
    return wide;
}

sn_open_kind sn_open_tensor(const sn_recording *rec, const snug_tensor *t) {
    const sn_open_sizes s = {.n = rec->n_open};
    const int64_t count = sn_type_count(&t->type);
    sn_open_kind worst = SN_OPEN_NO;
    if (rec->n_open == 0 || t->state != SN_READY || t->born < rec->serial || count > MOST_KNOWN ||
        !t->storage->data || /* a run has made it */
        (t->type.dtype != SNUG_I32 && t->type.dtype != SNUG_I64))
        return SN_OPEN_NO;
    for (int64_t i = 0; i < count; i++) {
        int64_t value;
        const sn_open_kind kind =
            sn_open_read(&s, element(t, (char *)t->storage->data + t->offset, i), &value);
        worst = kind > worst ? kind : worst;
    }
    return worst;
}

int snug_tensor_is_open(const snug_tensor *t) {
    if (!t)
        return 0;
    for (const sn_recording *rec = t->r->now; rec; rec = rec->outer)
        if (sn_open_tensor(rec, t) != SN_OPEN_NO)
            return 1;
    return 0;
}

uint32_t snug_tensor_open_axes(const snug_tensor *t) {
    if (!t)
        return 0;
    uint32_t axes = 0;
    const sn_recording *open = t->state == SN_PENDING ? t->rec : NULL;
    while (open && open->n_open == 0)
        open = open->outer;
    for (int k = 0; open && k < t->type.rank; k++) {
        int64_t value;
        const sn_open_sizes s = {.n = open->n_open};
        axes |= sn_open_read(&s, t->type.dims[k], &value) != SN_OPEN_NO ? 1u << k : 0;
    }
    return axes;
}

/* The same with the sizes of a call, held once. */
snug_status sn_open_fill(const sn_open_sizes *s, const snug_tensor *t, snug_tensor **out,
                         snug_error *err) {
    void *to;
    SNUG_TRY(snug_tensor_fresh(t->r, &t->type, out, &to, err));
    const void *from = (char *)t->storage->data + t->offset;
    for (int64_t i = 0; i < sn_type_count(&t->type); i++) {
        int64_t value;
        (void)sn_open_read(s, element(t, from, i), &value);
        if (t->type.dtype == SNUG_I32)
            memcpy((char *)to + 4 * i, &(int32_t){(int32_t)value}, 4);
        else
            memcpy((char *)to + 8 * i, &value, 8);
    }
    return SNUG_OK;
}
