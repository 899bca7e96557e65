/* Short texts: byte counts, types, reals, class weights, augmentation, initialisers, rates. What a
 * parser accepts prints, and parses to the same. */
#include "base/rates.h"
#include "base/real.h"
#include "data/augment.h"
#include "fuzz/fuzz.h"
#include "nn/metric.h"
#include "nn/objective.h"
#include "nn/optimizer.h"
#include "tensor/type.h"
#include "train/compile.h"

#include <stdlib.h>
#include <string.h>

static void numbers(fuzz *f, const char *text) {
    char print[SN_REAL_TEXT], bytes_print[64], type_print[192];
    const char *end;
    double v, again;
    size_t bytes, most;
    snug_type t, u;
    if (sn_real_parse(text, &end, &v)) {
        fuzz_true(end > text && end <= text + strlen(text), "an end within the text");
        fuzz_true(sn_real_parse(sn_real_print(v, 17, print), &end, &again) && *end == 0,
                  "a number that was printed");
        fuzz_true(memcmp(&v, &again, sizeof v) == 0 || v != v, "the same number");
    }
    if (fuzz_ok(f, snug_bytes_parse(text, &bytes, &f->err)))
        fuzz_true(strlen(snug_bytes_print(bytes, bytes_print, sizeof bytes_print)) > 0, "bytes");
    if (fuzz_ok(f, sn_type_parse(text, &end, &t, &f->err))) {
        snug_type_print(&t, type_print, sizeof type_print);
        fuzz_must(f, sn_type_parse(type_print, &end, &u, &f->err));
        fuzz_true(sn_type_equal(&t, &u) && *end == 0, "the type that was printed");
        (void)fuzz_ok(f, snug_type_bytes(&t, &most, &f->err));
    }
}

static void settings(fuzz *f, const char *text) {
    sn_class_weight weights[SN_MAX_CLASS_WEIGHTS];
    sn_augment augment;
    sn_init init;
    sn_rates rates;
    sn_schedule schedule;
    sn_loss loss;
    sn_metric metric;
    sn_optimizer optimizer;
    const snug_type output = {SNUG_F32, 2, {-1, 3}};
    int n = 0;
    if (fuzz_ok(f, sn_class_weights_parse(text, weights, &n, &f->err)))
        fuzz_true(n >= 0 && n <= SN_MAX_CLASS_WEIGHTS, "so many classes");
    (void)fuzz_ok(f, sn_augment_parse(text, (sn_picture_size){4, 4, 3}, &augment, &f->err));
    (void)fuzz_ok(f, sn_init_parse(text, &init, &f->err));
    (void)fuzz_ok(f, sn_rates_parse(text, "rates", &rates, &f->err));
    (void)fuzz_ok(f, sn_schedule_parse(text, &schedule, &f->err));
    (void)fuzz_ok(f, sn_optimizer_parse(text, &optimizer, &f->err));
    if (fuzz_ok(f, sn_loss_parse("mse", &loss, &f->err)))
        (void)fuzz_ok(f, sn_metric_parse(text, &loss, &output, &metric, &f->err));
    (void)fuzz_ok(f, sn_loss_parse(text, &loss, &f->err));
}

FUZZ_TARGET(words) {
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes, n);
    numbers(&f, text);
    settings(&f, text);
    free(text);
    fuzz_end(&f, FUZZ_MIB);
}
