/* golden_case.h: a folder of tests/golden as a subject of other tests: the model with the weights
 * Keras began with, and its data.
 *
 *     golden_case c;
 *     golden_case_open(&c, SNUG_TEST_DATA "/golden", "mlp_f64");
 *     sn_step_run_make(&c.subject.subject, &options, &run);
 *     golden_case_close(&c);                    // asserts that every byte came back */
#ifndef SN_TESTS_GOLDEN_CASE_H
#define SN_TESTS_GOLDEN_CASE_H

#include "support/step_run.h"

enum { GOLDEN_BATCH = 16, GOLDEN_ENDS = 4 };

typedef struct {
    snug_feed *feed[GOLDEN_ENDS];
    void *data[GOLDEN_ENDS];
    int n;
} golden_feeds;

typedef struct {
    snug_engine *engine;
    snug_model *model;
    golden_feeds x, y, w;
    char class_weight[200];
    sn_model_subject subject;
} golden_case;

void golden_case_open(golden_case *c, const char *folder, const char *name);
void golden_case_close(golden_case *c);

#endif
