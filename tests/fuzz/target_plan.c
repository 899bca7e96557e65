/* Plans as texts, for a graph with opaque values and for a training step: what is accepted passes
 * the checker once more, prints, and the print parses and prints the same. The device runs nothing,
 * so that a corpus is good on every machine. */
#include "fuzz/step.h"
#include "plan/plan.h"
#include "support/fake_device.h"

#include <snug/graph.h>
#include <stdlib.h>
#include <string.h>

static sn_graph *pool_graph(fuzz *f) {
    const snug_type x_type = {SNUG_F32, 4, {4, 4, 4, 2}};
    snug_graph *g;
    snug_value x, y[2];
    fuzz_must(f, snug_graph_create(f->engine, &g, &f->err));
    fuzz_must(f, snug_graph_input(g, "image", &x_type, &x, &f->err));
    fuzz_must(f, snug_graph_op(g, "maxpool", "kernel=2,2 stride=2,2", &x, 1, y, 2, &f->err));
    fuzz_must(f, snug_graph_output(g, "y", y[0], &f->err));
    return g;
}

static char *print(fuzz *f, const sn_plan *p) {
    fuzz_print text;
    const snug_writer w = fuzz_writer(&text);
    fuzz_must(f, sn_plan_print(p, &w, &f->err));
    return text.text;
}

static void read_plan(fuzz *f, const sn_graph *g, const char *text, const sn_device *const *d) {
    sn_plan *p, *again;
    if (!fuzz_ok(f, sn_plan_parse(f->engine, g, text, d, 1, &p, &f->err)))
        return;
    fuzz_must(f, sn_plan_check(p, d, 1, &f->err));
    char *once = print(f, p);
    fuzz_must(f, sn_plan_parse(f->engine, g, once, d, 1, &again, &f->err));
    char *twice = print(f, again);
    fuzz_true(strcmp(once, twice) == 0, "the same text, printed again");
    free(once), free(twice);
    sn_plan_destroy(again);
    sn_plan_destroy(p);
}

FUZZ_TARGET(plan) {
    sn_fake_device fake;
    const sn_device *devices[1] = {&fake.device};
    sn_fake_device_init(&fake, "fake:0");
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes, n);
    sn_graph *graphs[2] = {pool_graph(&f), fuzz_step_graph(&f)};
    for (int i = 0; i < 2; i++)
        read_plan(&f, graphs[i], text, devices);
    for (int i = 0; i < 2; i++)
        sn_graph_destroy(graphs[i]);
    free(text);
    fuzz_end(&f, 4 * FUZZ_MIB);
}
