/* Model JSON, as it is and with shapes for open axes: what is accepted can be summed up as JSON,
 * and planned where it is small. */
#include "fuzz/fuzz.h"

#include <jansson.h>
#include <snug/train.h>
#include <stdlib.h>

static void must_be_json(const fuzz_print *p) {
    json_t *tree = json_loadb(p->text, p->n, JSON_REJECT_DUPLICATES, NULL);
    fuzz_true(tree != NULL, "a report that is no JSON");
    json_decref(tree);
}

static void look_at(fuzz *f, snug_model *m) {
    fuzz_print p;
    snug_writer w = fuzz_writer(&p);
    if (fuzz_ok(f, snug_report_summary(m, SNUG_REPORT_JSON, &w, &f->err)))
        must_be_json(&p);
    free(p.text);
    w = fuzz_writer(&p);
    (void)fuzz_ok(f, snug_report_summary(m, 0, &w, &f->err));
    free(p.text);
    int64_t params = 0;
    for (size_t i = 0; i < snug_model_n_layers(m); i++) {
        snug_layer_info l;
        snug_model_layer(m, i, &l);
        params += l.n_params < 1 << 24 ? l.n_params : 1 << 24;
    }
    snug_model_plan_info info;
    const snug_plan_request r = {.batch = 2, .train = 1, .quick = 1};
    if (snug_model_n_layers(m) <= 8 && params < 1 << 20)
        (void)fuzz_ok(f, snug_model_plan(m, &r, &info, &f->err));
}

FUZZ_TARGET(model) {
    snug_model *m;
    fuzz f;
    fuzz_begin(&f, bytes, n);
    if (fuzz_ok(&f, snug_model_load(f.engine, FUZZ_FILE, &m, &f.err))) {
        look_at(&f, m);
        snug_model_destroy(m);
    }
    if (fuzz_ok(&f, snug_model_load_shaped(f.engine, FUZZ_FILE, "4,4,3", &m, &f.err)))
        snug_model_destroy(m);
    fuzz_end(&f, 32 * FUZZ_MIB);
}
