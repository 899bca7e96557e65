/* metric.h: metrics by Keras' names. */
#ifndef SN_NN_METRIC_H
#define SN_NN_METRIC_H

#include "nn/loss.h"

/* A metric is sums over the batches seen, n_sums of them, and a function of the sums. For most they
 * are two: of its terms (each example's mean), and the number of examples. Settings have Keras'
 * names and defaults; those a metric does not have are as they come. */
typedef struct {
    char name[96];     /* as Keras shows it: "accuracy", "out_a_accuracy" */
    char text[160];    /* as it was asked for: "top_k_categorical_accuracy:k=3" */
    char resolved[48]; /* "sparse_categorical_accuracy", by loss and shapes */
    int64_t n_sums;
    sn_loss loss;        /* where `resolved` is the name of a loss */
    double k, threshold; /* of the top-k accuracies; of decisions, NaN: the highest class is said */
    double top_k;        /* of precision and recall; 0: all above the threshold */
    double class_id;     /* -1: all classes */
    double num_thresholds, bound; /* bound: the recall of precision_at_recall, ... */
    double curve, summation_method, average,
        class_aggregation; /* places in metric_rows.h's enums */
    double beta, num_classes, num_regressors;
    double ignore_class;       /* NaN: none */
    uint64_t target_class_ids; /* bits; 0: all */
    bool multi_label, from_logits, sparse_y_true, sparse_y_pred;
    bool by_threshold; /* of two classes: the second from the threshold on */
    uint32_t output;   /* of the network: which one it looks at */
    bool weighted;     /* by the sample weights; others count examples once each */
} sn_metric;
SNUG_CHECKED snug_status sn_metric_parse(const char *text, const sn_loss *loss,
                                         const snug_type *output, sn_metric *out, snug_error *err);
/* The sums of this batch: n_sums numbers of y_pred's dtype, in any shape. weight ([batch], y_pred's
 * dtype; for means also [batch, steps]) counts examples otherwise than once each; SN_NO_VALUE: all
 * alike. */
sn_value sn_metric_build(sn_builder *b, const sn_metric *m, sn_value y_true, sn_value y_pred,
                         sn_value weight);
/* Whether a mask of the output acts on it: on means, as in Keras. */
bool sn_metric_masked(const sn_metric *m);
/* Whether its labels are class numbers, without the class axis. */
bool sn_metric_is_sparse(const sn_metric *m);
/* Whether more of it is better. */
bool sn_metric_rises(const sn_metric *m);
/* The metric from its sums over all batches; NaN where no example was seen. */
double sn_metric_finish(const sn_metric *m, const double *sums);

#endif
