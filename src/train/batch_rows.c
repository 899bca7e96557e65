/* batch_rows.c: rows of a feed as rows of a batch (batch_rows.h). Nothing is allocated here: it
 * runs inside the step loop. */
#include "train/batch_rows.h"

#include "base/rng.h"

int64_t sn_rows_at(const sn_rows *r, int64_t position) {
    if (!r->shuffle)
        return r->first + position;
    return r->first + (int64_t)sn_permute(r->key, (uint64_t)r->n, (uint64_t)position);
}

snug_status sn_rows_fill(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                         snug_error *err) {
    const sn_rows *r = ctx;
    const snug_type *from = snug_feed_type(r->feed);
    const size_t row_bytes =
        (size_t)sn_type_span(from, 1, from->rank) * snug_dtype_bytes(dst->type.dtype);
    snug_view part = {.type = *from};
    part.type.dtype = dst->type.dtype;
    for (int64_t i = 0, run; i < n; i += run) {
        const int64_t row = sn_rows_at(r, r->start + first + i);
        run = 1;
        while (i + run < n && sn_rows_at(r, r->start + first + i + run) == row + run)
            run++;
        part.type.dims[0] = run;
        part.data = (char *)dst->data + (size_t)i * row_bytes;
        part.bytes = (size_t)run * row_bytes;
        SNUG_TRY(snug_feed_fill(r->feed, row, run, &part, err));
    }
    return SNUG_OK;
}

bool sn_rows_recipe(void *ctx, int64_t first, sn_recipe *out, uint64_t *element) {
    const sn_rows *r = ctx;
    const sn_recipe *recipe = sn_feed_recipe(r->feed);
    const snug_type *type = snug_feed_type(r->feed);
    if (!recipe || r->shuffle)
        return false;
    *out = *recipe;
    *element = (uint64_t)(sn_rows_at(r, r->start + first) * sn_type_span(type, 1, type->rank));
    return true;
}

/* Axes without a trailing 1: [n,1] and [n] hold the same rows. */
static int plain_rank(const snug_type *t) {
    return t->rank > 1 && t->dims[t->rank - 1] == 1 ? t->rank - 1 : t->rank;
}

snug_status sn_rows_check(const snug_feed *feed, const snug_type *wanted, const char *what,
                          snug_error *err) {
    const snug_type *have = snug_feed_type(feed);
    char a[192], b[192];
    bool same = plain_rank(have) == plain_rank(wanted);
    for (int i = 1; same && i < plain_rank(have); i++)
        same = have->dims[i] == wanted->dims[i];
    if (!same)
        return sn_fail(err, SNUG_E_SHAPE,
                       "%s is %s, but the model wants %s (? is the number of rows)", what,
                       snug_type_print(have, a, sizeof a), snug_type_print(wanted, b, sizeof b));
    if (sn_dtype_is_int(wanted->dtype) && !sn_dtype_is_int(have->dtype))
        return sn_fail(err, SNUG_E_DATA,
                       "%s is %s, but the model wants whole numbers (%s); convert %s to integers",
                       what, snug_type_print(have, a, sizeof a),
                       snug_type_print(wanted, b, sizeof b), what);
    return SNUG_OK;
}

bool sn_rows_bad_label(const sn_rows *r, int64_t n, int64_t n_classes, int64_t *row,
                       int64_t *label) {
    enum { MAX_LABELS = 256 };
    int64_t labels[MAX_LABELS];
    snug_view view = {.data = labels, .bytes = sizeof labels, .type = *snug_feed_type(r->feed)};
    const int64_t n_labels = sn_type_span(&view.type, 1, view.type.rank);
    if (n_labels > MAX_LABELS)
        return false;
    view.type.dtype = SNUG_I64;
    view.type.dims[0] = 1;
    view.bytes = (size_t)n_labels * sizeof *labels;
    for (int64_t i = 0; i < n; i++) {
        *row = sn_rows_at(r, r->start + i);
        if (snug_feed_fill(r->feed, *row, 1, &view, NULL) != SNUG_OK)
            return false;
        for (int64_t k = 0; k < n_labels; k++)
            if (labels[k] < 0 || labels[k] >= n_classes) {
                *label = labels[k];
                return true;
            }
    }
    return false;
}
