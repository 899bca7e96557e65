/* Configurations of layers as JSON, as the Python door hands them over: the first line is the
 * class, the rest the configuration. A layer that is made says what it makes of inputs. */
#include "fuzz/fuzz.h"

#include <snug/layer.h>
#include <stdlib.h>

FUZZ_TARGET(settings) {
    static const snug_type inputs[] = {
        {SNUG_F32, 2, {2, 6}}, {SNUG_F32, 3, {2, 6, 4}}, {SNUG_F32, 4, {2, 8, 8, 4}}};
    snug_recorder *r;
    snug_layer *layer;
    snug_type out[8];
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes, n), *at = text;
    const char *class_name = fuzz_line(&at);
    fuzz_must(&f, snug_recorder_create(f.engine, &r, &f.err));
    for (int i = 0; i < 3; i++) {
        int n_out = 0;
        if (!fuzz_ok(&f, snug_layer_create(r, class_name, at, &layer, &f.err)))
            break;
        (void)fuzz_ok(&f, snug_layer_infer(layer, &inputs[i], 1, out, 8, &n_out, &f.err));
        snug_layer_destroy(layer);
    }
    snug_recorder_destroy(r);
    free(text);
    fuzz_end(&f, FUZZ_BUDGET);
}
