/* metric.c: metrics, one row each: names, settings, and those that are a mean over the examples
 * (the others are in metric_counts.c). "accuracy" means what Keras makes of it from the shapes:
 * binary when the output has one unit, sparse when labels have no class axis, else categorical. A
 * loss may be named as a metric, too. */
#include "nn/metric_rows.h"
#include "base/setting_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- small pieces ----------------------------------------------------------------------------- */
static snug_dtype dtype_of(const sn_builder *b, sn_value x) {
    return b->error.code == SNUG_OK ? sn_graph_type(b->graph, x)->dtype : SNUG_F32;
}

static sn_value class_of(sn_builder *b, sn_value y) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    return sn_build_argmax(b, y, sn_graph_type(b->graph, y)->rank - 1, SNUG_I32);
}

static sn_value above(sn_builder *b, sn_value x, double limit) {
    return sn_build_greater(b, x, sn_build_scalar(b, dtype_of(b, x), limit));
}

/* --- which examples are right, as booleans ---------------------------------------------------- */
static sn_value binary_hits(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    const sn_value guess = above(b, y_pred, m->threshold);
    return sn_build_equal(b, y_true, sn_build_cast(b, guess, dtype_of(b, y_pred)));
}

static sn_value categorical_hits(sn_builder *b, const sn_metric *m, sn_value y_true,
                                 sn_value y_pred) {
    (void)m;
    return sn_build_equal(b, class_of(b, y_true), class_of(b, y_pred));
}

static sn_value sparse_hits(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)m;
    return sn_build_equal(b, y_true, class_of(b, y_pred));
}

/* What Keras' class Accuracy counts; the word "accuracy" means one of the others. */
static sn_value equal_hits(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)m;
    return sn_build_equal(b, y_true, y_pred);
}

/* Fewer than k classes score higher than the true one. */
static sn_value sparse_top_hits(sn_builder *b, const sn_metric *m, sn_value labels,
                                sn_value y_pred) {
    const uint32_t classes = sn_last_axis(b, y_pred);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, y_pred);
    sn_attrs a;
    sn_attrs_default(SN_OP_one_hot, &a);
    a.one_hot.depth = t.dims[t.rank - 1];
    a.one_hot.dtype = t.dtype;
    const sn_value chosen = sn_build(b, SN_OP_one_hot, &a, &labels, 1);
    const sn_value score = sn_build_sum(b, sn_build_mul(b, chosen, y_pred), classes, true);
    const sn_value higher = sn_build_cast(b, sn_build_greater(b, y_pred, score), t.dtype);
    const sn_value rank = sn_build_sum(b, higher, classes, false);
    return sn_build_greater(b, sn_build_scalar(b, t.dtype, m->k), rank);
}

static sn_value top_hits(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    return sparse_top_hits(b, m, class_of(b, y_true), y_pred);
}

/* --- losses, finished otherwise --------------------------------------------------------------- */
static sn_value squared_error(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)m;
    return sn_build_square(b, sn_build_sub(b, y_pred, y_true));
}

/* As a metric Keras counts likeness, as a loss its negative. */
static sn_value cosine(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    return sn_build_neg(b, sn_loss_terms(b, &m->loss, y_true, y_pred));
}

/* --- correlations along the last axis --------------------------------------------------------- */
static sn_value standardised(sn_builder *b, sn_value x, uint32_t axis) {
    const sn_value centred = sn_build_sub(b, x, sn_build_mean(b, x, axis, true));
    return sn_build_div(b, centred, sn_build_deviation(b, centred, axis, true));
}

static sn_value pearson(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)m;
    const uint32_t axis = sn_last_axis(b, y_pred);
    return sn_build_mean(
        b, sn_build_mul(b, standardised(b, y_true, axis), standardised(b, y_pred, axis)), axis,
        false);
}

/* Keras takes the mean of y_pred from both. */
static sn_value concordance(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    (void)m;
    const uint32_t axis = sn_last_axis(b, y_pred);
    const sn_value true_mean = sn_build_mean(b, y_true, axis, true);
    const sn_value pred_mean = sn_build_mean(b, y_pred, axis, true);
    const sn_value product =
        sn_build_mul(b, sn_build_sub(b, y_true, pred_mean), sn_build_sub(b, y_pred, pred_mean));
    const sn_value spread = sn_build_add(b, sn_build_variance(b, y_true, axis, true),
                                         sn_build_variance(b, y_pred, axis, true));
    const sn_value apart = sn_build_square(b, sn_build_sub(b, true_mean, pred_mean));
    const sn_value over = sn_build_affine(b, sn_build_add(b, spread, apart), 1, 1e-7);
    return sn_build_mean(b, sn_build_div(b, sn_build_affine(b, product, 2, 0), over), axis, false);
}

static sn_value of_loss(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred) {
    return sn_loss_terms(b, &m->loss, y_true, y_pred);
}

static double itself(double mean) {
    return mean;
}

/* --- the rows --------------------------------------------------------------------------------- */
#define MEAN(name, settings, labels, terms, finish)                                                \
    { name, settings, labels, NULL, NULL, terms, finish, NULL, NULL, NULL }
static const sn_metric_row rows[] = {
    MEAN("binary_accuracy", "threshold", SN_LABELS_DENSE, binary_hits, itself),
    MEAN("categorical_accuracy", "", SN_LABELS_DENSE, categorical_hits, itself),
    MEAN("sparse_categorical_accuracy", "", SN_LABELS_SPARSE, sparse_hits, itself),
    MEAN("equality", "", SN_LABELS_DENSE, equal_hits, itself),
    MEAN("top_k_categorical_accuracy", "k", SN_LABELS_DENSE, top_hits, itself),
    MEAN("sparse_top_k_categorical_accuracy", "k", SN_LABELS_SPARSE, sparse_top_hits, itself),
    MEAN("root_mean_squared_error", "", SN_LABELS_DENSE, squared_error, sqrt),
    MEAN("pearson_correlation", "", SN_LABELS_DENSE, pearson, itself),
    MEAN("concordance_correlation", "", SN_LABELS_DENSE, concordance, itself),
    MEAN("cosine_similarity", "", SN_LABELS_DENSE, cosine, itself),
};
enum { N_MEANS = sizeof rows / sizeof *rows };
static const sn_metric_row loss_row = MEAN("", "", SN_LABELS_ANY, of_loss, itself);

static const sn_metric_row *row_at(int i) {
    return i < N_MEANS ? &rows[i] : &sn_count_metrics[i - N_MEANS];
}

static const sn_metric_row *find_row(const char *name) {
    for (int i = 0; i < N_MEANS + sn_n_count_metrics; i++)
        if (sn_same_name(name, row_at(i)->name))
            return row_at(i);
    return sn_loss_known(name) ? &loss_row : NULL;
}

/* --- settings --------------------------------------------------------------------------------- */
/* Numbers in [low, high], whole ones where it says so; flags; one of some words, kept as its place
 * among them; or the ids of a list, as a set of bits. */
typedef struct {
    const char *key;
    size_t offset;
    double low, high;
    enum { REAL, WHOLE, FLAG, CHOICE, IDS } kind;
    const char *words;
} setting;

#define OF(field) offsetof(sn_metric, field)
static const setting settings[] = {
    {"k", OF(k), 1, 0x1p31, WHOLE, NULL},
    {"threshold", OF(threshold), -HUGE_VAL, HUGE_VAL, REAL, NULL},
    {"thresholds", OF(threshold), 0, 1, REAL, NULL},
    {"top_k", OF(top_k), 1, 0x1p31, WHOLE, NULL},
    {"class_id", OF(class_id), 0, 0x1p31, WHOLE, NULL},
    {"num_thresholds", OF(num_thresholds), 2, 1 << 20, WHOLE, NULL},
    {"specificity", OF(bound), 0, 1, REAL, NULL},
    {"sensitivity", OF(bound), 0, 1, REAL, NULL},
    {"precision", OF(bound), 0, 1, REAL, NULL},
    {"recall", OF(bound), 0, 1, REAL, NULL},
    {"curve", OF(curve), 0, 0, CHOICE, "roc pr prgain"},
    {"summation_method", OF(summation_method), 0, 0, CHOICE, "interpolation minoring majoring"},
    {"multi_label", OF(multi_label), 0, 0, FLAG, NULL},
    {"from_logits", OF(from_logits), 0, 0, FLAG, NULL},
    {"average", OF(average), 0, 0, CHOICE, "micro macro weighted"},
    {"beta", OF(beta), 1e-300, HUGE_VAL, REAL, NULL},
    {"num_classes", OF(num_classes), 2, 4096, WHOLE, NULL},
    {"target_class_ids", OF(target_class_ids), 0, 63, IDS, NULL},
    {"ignore_class", OF(ignore_class), -0x1p31, 0x1p31, WHOLE, NULL},
    {"sparse_y_true", OF(sparse_y_true), 0, 0, FLAG, NULL},
    {"sparse_y_pred", OF(sparse_y_pred), 0, 0, FLAG, NULL},
    {"class_aggregation", OF(class_aggregation), 0, 0, CHOICE,
     "uniform_average variance_weighted_average"},
    {"num_regressors", OF(num_regressors), 0, 0x1p53, WHOLE, NULL},
};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

static snug_status out_of_range(const sn_option *o, snug_error *err) {
    return sn_fail(err, SNUG_E_INVALID, "%s=%s is out of range", o->key, o->value);
}

static snug_status set_choice(const setting *s, const sn_option *o, double *to, snug_error *err) {
    char word[64];
    int place = 0;
    for (const char *p = s->words; *p; p += strspn(p, " "), place++) {
        const size_t n = strcspn(p, " ");
        memcpy(word, p, n);
        word[n] = 0;
        if (sn_same_name(word, o->value)) {
            *to = place;
            return SNUG_OK;
        }
        p += n;
    }
    return sn_fail(err, SNUG_E_INVALID, "%s=%s; it is one of %s", o->key, o->value, s->words);
}

static snug_status set_ids(const setting *s, const sn_option *o, uint64_t *to, snug_error *err) {
    uint64_t ids = 0;
    sn_option one = *o;
    for (const char *at = o->value; sn_text_item(&at, one.value, sizeof one.value);) {
        double id;
        SNUG_TRY(sn_option_real(&one, &id, err));
        if (id < s->low || id > s->high || id != floor(id))
            return out_of_range(o, err);
        ids |= (uint64_t)1 << (int)id;
    }
    if (ids == 0)
        return out_of_range(o, err);
    *to = ids;
    return SNUG_OK;
}

static snug_status set_setting(const setting *s, const sn_option *o, sn_metric *m,
                               snug_error *err) {
    void *const to = (char *)m + s->offset;
    sn_option one = *o;
    const char *at = o->value;
    double value;
    if (s->kind == FLAG)
        return sn_option_flag(o, to, err);
    if (s->kind == CHOICE)
        return set_choice(s, o, to, err);
    if (s->kind == IDS)
        return set_ids(s, o, to, err);
    if (!sn_text_item(&at, one.value, sizeof one.value) || *at) /* [0.5] is 0.5 */
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%s=%s: one number is supported, and one result",
                       o->key, o->value);
    SNUG_TRY(sn_option_real(&one, &value, err));
    if (value < s->low || value > s->high || (s->kind == WHOLE && value != floor(value)))
        return out_of_range(o, err);
    *(double *)to = value;
    return SNUG_OK;
}

static snug_status set_option(const sn_metric_row *row, const sn_option *o, sn_metric *m,
                              snug_error *err) {
    if (strcmp(o->key, "name") == 0)
        return sn_text_copy(m->name, sizeof m->name, o->value) ? SNUG_OK : out_of_range(o, err);
    if (!sn_text_has(row->settings, o->key))
        return sn_fail(err, SNUG_E_INVALID, "metric %s has no setting '%s'%s%s", row->name, o->key,
                       row->settings[0] ? "; it has " : "", row->settings);
    int i = 0;
    while (strcmp(settings[i].key, o->key) != 0)
        i++;
    return set_setting(&settings[i], o, m, err);
}

static snug_status set_options(const sn_metric_row *row, const char *text, sn_metric *m,
                               snug_error *err) {
    sn_option option;
    bool more;
    for (const char *at = text;;) {
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            return SNUG_OK;
        const snug_status status = set_option(row, &option, m, err);
        if (status != SNUG_OK)
            return sn_fail_in(err, status, "metric %s", row->name);
    }
}

/* A loss as a metric: its own settings, without the metric's name. */
static snug_status set_loss(const char *loss, const char *text, sn_metric *m, snug_error *err) {
    char plain[sizeof m->text], mark = ':';
    sn_option option;
    bool more;
    snprintf(plain, sizeof plain, "%s", loss);
    for (const char *at = text;;) {
        const size_t n = strlen(plain);
        SNUG_TRY(sn_option_next(&at, &option, &more, err));
        if (!more)
            return sn_loss_parse(plain, &m->loss, err);
        if (strcmp(option.key, "name") == 0) {
            SNUG_TRY(set_option(&loss_row, &option, m, err));
            continue;
        }
        if (snprintf(plain + n, sizeof plain - n, "%c%s=%s", mark, option.key, option.value) < 0)
            return out_of_range(&option, err);
        mark = ',';
    }
}

/* --- names ------------------------------------------------------------------------------------ */
static const char *resolve(const char *name, const sn_loss *loss, const snug_type *output) {
    if (sn_same_name(name, "log_cosh_error")) /* the class that has log_cosh as its function */
        return "log_cosh";
    if (!sn_same_name(name, "accuracy") && !sn_same_name(name, "acc"))
        return name;
    if (output->rank > 1 && output->dims[output->rank - 1] == 1)
        return "binary_accuracy";
    return loss->sparse ? "sparse_categorical_accuracy" : "categorical_accuracy";
}

/* The same metric for labels of the other form, or NULL: Keras calls them X and sparse_X. */
static const sn_metric_row *other_form(const char *name, char *text, size_t size) {
    static const char mark[] = "sparse_";
    const size_t n = sizeof mark - 1;
    const bool is_sparse = strncmp(name, mark, n) == 0;
    snprintf(text, size, "%s%.48s", is_sparse ? "" : mark, is_sparse ? name + n : name);
    return find_row(text);
}

/* Labels come in the form the loss wants; a metric of the other form cannot read them. */
static snug_status check_labels(const sn_metric *m, sn_metric_labels labels, const sn_loss *loss,
                                snug_error *err) {
    char other[64];
    if (labels == SN_LABELS_ANY || (labels == SN_LABELS_SPARSE) == loss->sparse)
        return SNUG_OK;
    const bool has_other = other_form(m->resolved, other, sizeof other) != NULL;
    return sn_fail(err, SNUG_E_INVALID,
                   "metric %s wants %s labels, but the loss %s has the other kind; %s%s",
                   m->resolved, labels == SN_LABELS_SPARSE ? "integer" : "one-hot or real",
                   loss->name, has_other ? "use " : "leave it out", has_other ? other : "");
}

static snug_status refuse_metric(const char *name, snug_error *err) {
    char list[1400] = "accuracy";
    for (int i = 0; i < N_MEANS + sn_n_count_metrics; i++)
        sn_text_list(list, sizeof list, row_at(i)->name);
    sn_text_list(list, sizeof list, "and every loss by its name");
    return sn_refuse_name("metric", name, list, err);
}

snug_status sn_metric_parse(const char *text, const sn_loss *loss, const snug_type *output,
                            sn_metric *out, snug_error *err) {
    sn_metric m = {.k = 5,
                   .threshold = 0.5,
                   .class_id = -1,
                   .num_thresholds = 200,
                   .average = SN_AVERAGE_NONE,
                   .beta = 1,
                   .ignore_class = (double)NAN,
                   .sparse_y_true = true,
                   .sparse_y_pred = true,
                   .n_sums = 2};
    SNUG_TRY(sn_option_name(text, m.name, sizeof m.name, err));
    if (!sn_text_copy(m.text, sizeof m.text, text))
        return sn_fail(err, SNUG_E_INVALID, "metric '%.40s...' is longer than %zu letters", text,
                       sizeof m.text - 1);
    char asked[sizeof m.name];
    memcpy(asked, m.name, sizeof asked);
    const char *name = resolve(asked, loss, output);
    const sn_metric_row *row = find_row(name);
    if (!row)
        return refuse_metric(m.name, err);
    if (row->defaults)
        row->defaults(&m);
    SNUG_TRY(row == &loss_row ? set_loss(name, text, &m, err) : set_options(row, text, &m, err));
    if (row->terms == cosine)
        SNUG_TRY(sn_loss_parse(row->name, &m.loss, err));
    sn_text_copy(m.resolved, sizeof m.resolved, row == &loss_row ? m.loss.name : row->name);
    const sn_metric_labels of_loss_kind = m.loss.sparse ? SN_LABELS_SPARSE : SN_LABELS_DENSE;
    SNUG_TRY(check_labels(&m, row == &loss_row ? of_loss_kind : row->labels, loss, err));
    if (row->check)
        SNUG_TRY(row->check(&m, loss, output, err));
    if (row->n_sums)
        m.n_sums = row->n_sums(&m, output);
    *out = m;
    return SNUG_OK;
}

bool sn_metric_is_sparse(const sn_metric *m) {
    const sn_metric_row *row = find_row(m->resolved);
    return m->loss.name[0] ? m->loss.sparse : row->labels == SN_LABELS_SPARSE;
}

bool sn_metric_rises(const sn_metric *m) {
    static const char falling[] = "root_mean_squared_error false_positives false_negatives";
    const sn_metric_row *row = find_row(m->resolved);
    return row != &loss_row && !sn_text_has(falling, row->name);
}

/* --- graph ------------------------------------------------------------------------------------ */
double sn_metric_finish(const sn_metric *m, const double *sums) {
    const sn_metric_row *row = find_row(m->resolved);
    if (row->finish)
        return row->finish(m, sums);
    return sums[1] == 0 ? (double)NAN : row->finish_mean(sums[0] / sums[1]);
}

/* A weight for each element along every axis that it has, or for each example. */
sn_value sn_metric_weighted(sn_builder *b, sn_value x, sn_value weight) {
    if (!sn_value_ok(weight) || b->error.code != SNUG_OK)
        return x;
    const snug_type t = *sn_graph_type(b->graph, x), w = *sn_graph_type(b->graph, weight);
    int64_t dims[SNUG_MAX_RANK];
    bool fits = w.rank <= t.rank;
    for (int i = 0; i < w.rank && fits; i++)
        fits = w.dims[i] == t.dims[i] || w.dims[i] == 1;
    for (int i = 0; i < t.rank; i++)
        dims[i] = fits ? (i < w.rank ? w.dims[i] : 1) : i == 0 ? t.dims[0] : 1;
    return sn_build_mul(b, x, sn_build_reshape(b, weight, dims, t.rank));
}

/* The weight with the axes of x, where it has more: these hold one element each. */
static sn_value weight_of(sn_builder *b, sn_value weight, sn_value x) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const snug_type t = *sn_graph_type(b->graph, x), w = *sn_graph_type(b->graph, weight);
    return w.rank > t.rank ? sn_build_reshape(b, weight, w.dims, t.rank) : weight;
}

/* The mean over every axis of x from `first` on. */
static sn_value mean_from(sn_builder *b, sn_value x, int first) {
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const int rank = sn_graph_type(b->graph, x)->rank;
    const uint32_t inner = ((1u << rank) - 1) & ~((1u << first) - 1);
    return rank > first ? sn_build_mean(b, x, inner, false) : x;
}

/* The sum of each example's mean, and of the weights, as Keras reduces them: terms to the axes of
 * the weight, both to examples. */
static sn_value mean_sums(sn_builder *b, sn_value terms, const sn_metric_data *d) {
    const snug_dtype dtype = dtype_of(b, d->y_pred);
    const int64_t single[1] = {1};
    sn_value real = sn_build_cast(b, terms, dtype);
    if (b->error.code != SNUG_OK)
        return SN_NO_VALUE;
    const bool of_batch = sn_graph_type(b->graph, real)->rank == 0; /* a mean over batches, then */
    if (of_batch)
        real = sn_build_reshape(b, real, single, 1);
    const bool weighted = sn_value_ok(d->weight) && !of_batch;
    const int64_t batch = sn_graph_type(b->graph, real)->dims[0];
    const int axes = weighted ? sn_graph_type(b->graph, d->weight)->rank : 1;
    sn_value each = mean_from(b, real, axes);
    const sn_value weight = weighted ? weight_of(b, d->weight, each) : SN_NO_VALUE;
    if (weighted)
        each = sn_build_mul(b, each, weight);
    const snug_type one = {.dtype = dtype, .rank = 1, .dims = {1}};
    const sn_value sums[2] = {sn_build_sum(b, mean_from(b, each, 1), 1u, true),
                              weighted ? sn_build_sum(b, mean_from(b, weight, 1), 1u, true)
                                       : sn_build_fill(b, &one, (double)batch)};
    sn_attrs a;
    sn_attrs_default(SN_OP_concat, &a);
    return sn_build(b, SN_OP_concat, &a, sums, 2);
}

bool sn_metric_masked(const sn_metric *m) {
    return find_row(m->resolved)->terms != NULL;
}

/* An ignored class weighs nothing where there are weights; without them it counts with its 0. */
static sn_value counted(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value weight) {
    if (isnan(m->loss.ignore_class) || !sn_value_ok(weight) || b->error.code != SNUG_OK)
        return weight;
    const snug_type w = *sn_graph_type(b->graph, weight);
    const snug_dtype dtype = sn_graph_type(b->graph, y_true)->dtype;
    const sn_value is =
        sn_build_not_equal(b, y_true, sn_build_scalar(b, dtype, m->loss.ignore_class));
    return sn_build_mul(b, weight,
                        sn_build_reshape(b, sn_build_cast(b, is, w.dtype), w.dims, w.rank));
}

sn_value sn_metric_build(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred,
                         sn_value weight) {
    const sn_metric_row *row = find_row(m->resolved);
    if (row == &loss_row)
        weight = counted(b, m, y_true, weight);
    const sn_metric_data d = {y_true, y_pred, weight};
    return row->sums ? row->sums(b, m, &d) : mean_sums(b, row->terms(b, m, y_true, y_pred), &d);
}
