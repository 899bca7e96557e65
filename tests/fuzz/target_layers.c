/* Layers as texts, one line each: "Dense units=6 activation=relu". A layer that is refused leaves
 * the model as it was; small models are planned. */
#include "fuzz/fuzz.h"

#include <snug/train.h>
#include <stdlib.h>
#include <string.h>

static void add_layers(fuzz *f, snug_model *m, char *text) {
    for (int i = 0; i < 4 && *text; i++) {
        char *config = fuzz_line(&text);
        const char *layer = config;
        config += strcspn(config, " ");
        if (*config)
            *config++ = 0;
        const size_t before = snug_model_n_layers(m);
        const bool added = fuzz_ok(f, snug_model_add(m, layer, config, &f->err));
        fuzz_true((snug_model_n_layers(m) > before) == added, "a layer more, or none");
    }
}

static void plan(fuzz *f, snug_model *m) {
    snug_model_plan_info info;
    int64_t params = 0;
    for (size_t i = 0; i < snug_model_n_layers(m); i++) {
        snug_layer_info l;
        snug_model_layer(m, i, &l);
        params += l.n_params < 1 << 24 ? l.n_params : 1 << 24;
    }
    const snug_plan_request r = {.batch = 2, .train = 1, .quick = 1};
    if (params < 1 << 20)
        (void)fuzz_ok(f, snug_model_plan(m, &r, &info, &f->err));
}

FUZZ_TARGET(layers) {
    static const snug_type inputs[] = {
        {SNUG_F32, 1, {6}}, {SNUG_F32, 2, {6, 4}}, {SNUG_F32, 3, {8, 8, 4}}, {SNUG_I32, 1, {5}}};
    snug_model *m;
    fuzz f;
    if (n == 0)
        return;
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes + 1, n - 1);
    fuzz_must(&f, snug_model_create(f.engine, "m", &inputs[bytes[0] % 4], &m, &f.err));
    add_layers(&f, m, text);
    plan(&f, m);
    snug_model_destroy(m);
    free(text);
    fuzz_end(&f, FUZZ_BUDGET);
}
