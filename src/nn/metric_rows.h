/* metric_rows.h: what the two files of metrics share. metric.c has names, settings and the metrics
 * that are a mean; metric_counts.c those that count (confusion matrices and the like). */
#ifndef SN_NN_METRIC_ROWS_H
#define SN_NN_METRIC_ROWS_H

#include "nn/metric.h"

/* What a batch gives a metric. weight is [batch] in the dtype of y_pred, or SN_NO_VALUE. */
typedef struct {
    sn_value y_true, y_pred, weight;
} sn_metric_data;

/* Which labels it reads: those of y_pred's shape, integers without the class axis, or either. */
typedef enum { SN_LABELS_DENSE, SN_LABELS_SPARSE, SN_LABELS_ANY } sn_metric_labels;

typedef sn_value (*sn_metric_terms)(sn_builder *b, const sn_metric *m, sn_value y_true,
                                    sn_value y_pred);

typedef struct {
    const char *name;
    const char *settings; /* those it takes */
    sn_metric_labels labels;
    void (*defaults)(sn_metric *m); /* where they are others than most have; may be NULL */
    /* Settings that need each other or the output; may be NULL. */
    snug_status (*check)(const sn_metric *m, const sn_loss *loss, const snug_type *output,
                         snug_error *err);
    /* A mean of terms: what they are, and what becomes of the mean. */
    sn_metric_terms terms;
    double (*finish_mean)(double mean);
    /* Others: how many sums there are, their values for a batch in any shape, and the result. */
    int64_t (*n_sums)(const sn_metric *m, const snug_type *output);
    sn_value (*sums)(sn_builder *b, const sn_metric *m, const sn_metric_data *d);
    double (*finish)(const sn_metric *m, const double *sums);
} sn_metric_row;

extern const sn_metric_row sn_count_metrics[];
extern const int sn_n_count_metrics;

/* Choices of settings, in the order of their words. */
enum { SN_AVERAGE_NONE = -1, SN_AVERAGE_MICRO, SN_AVERAGE_MACRO, SN_AVERAGE_WEIGHTED };
enum { SN_CURVE_ROC, SN_CURVE_PR, SN_CURVE_PRGAIN };
enum { SN_SUMMATION_INTERPOLATION, SN_SUMMATION_MINORING, SN_SUMMATION_MAJORING };
enum { SN_CLASSES_UNIFORM, SN_CLASSES_BY_VARIANCE };

/* Real numbers of dtype f32 or f64, each row of x times its weight. */
sn_value sn_metric_weighted(sn_builder *b, sn_value x, sn_value weight);

#endif
