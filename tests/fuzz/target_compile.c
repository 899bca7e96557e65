/* Optimizer, loss, metrics, loss weights and weighted metrics, one line each; schedules,
 * initialisers and regularisers are in them. What is accepted says of itself what it is, and is
 * accepted again in these words. */
#include "fuzz/fuzz.h"

#include <snug/train.h>
#include <stdlib.h>
#include <string.h>

static void compile_again(fuzz *f, snug_model *m) {
    char *optimizer = strdup(snug_model_optimizer(m));
    fuzz_true(optimizer != NULL, "no memory");
    fuzz_must(f, snug_model_compile(m, &(snug_compile){.optimizer = optimizer}, &f->err));
    fuzz_true(strcmp(optimizer, snug_model_optimizer(m)) == 0, "the optimizer that was told");
    free(optimizer);
}

FUZZ_TARGET(compile) {
    const snug_type in = {SNUG_F32, 1, {4}};
    snug_model *m;
    snug_model_plan_info info;
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes, n), *at = text;
    const char *line[5];
    for (int i = 0; i < 5; i++)
        line[i] = fuzz_line(&at);
    fuzz_must(&f, snug_model_create(f.engine, "m", &in, &m, &f.err));
    fuzz_must(&f, snug_model_add(m, "Dense", "units=3", &f.err));
    const snug_compile c = {.optimizer = *line[0] ? line[0] : NULL,
                            .loss = *line[1] ? line[1] : NULL,
                            .metrics = *line[2] ? line[2] : NULL,
                            .loss_weights = *line[3] ? line[3] : NULL,
                            .weighted_metrics = *line[4] ? line[4] : NULL};
    if (fuzz_ok(&f, snug_model_compile(m, &c, &f.err))) {
        compile_again(&f, m);
        const snug_plan_request r = {.batch = 2, .train = 1, .quick = 1};
        (void)fuzz_ok(&f, snug_model_plan(m, &r, &info, &f.err));
    }
    snug_model_destroy(m);
    free(text);
    fuzz_end(&f, 16 * FUZZ_MIB);
}
