/* The text form of graphs: what is accepted prints, the print parses, and prints the same; small
 * graphs are planned within a budget. */
#include "fuzz/fuzz.h"

#include <snug/plan.h>
#include <stdlib.h>
#include <string.h>

static void print_again(fuzz *f, const snug_graph *g) {
    fuzz_print once, twice;
    snug_graph *again;
    snug_writer w = fuzz_writer(&once);
    fuzz_must(f, snug_graph_print(g, &w, &f->err));
    fuzz_must(f, snug_graph_parse(f->engine, once.text, &again, &f->err));
    w = fuzz_writer(&twice);
    fuzz_must(f, snug_graph_print(again, &w, &f->err));
    fuzz_true(strcmp(once.text, twice.text) == 0, "the same text, printed again");
    snug_graph_destroy(again);
    free(once.text), free(twice.text);
}

FUZZ_TARGET(graph) {
    snug_graph *g;
    snug_plan *p;
    fuzz f;
    fuzz_begin(&f, NULL, 0);
    char *text = fuzz_text(bytes, n);
    if (fuzz_ok(&f, snug_graph_parse(f.engine, text, &g, &f.err))) {
        print_again(&f, g);
        const snug_plan_options o = {.budget_bytes = FUZZ_MIB};
        if (n < 2048 && fuzz_ok(&f, snug_plan_build(f.engine, g, &o, &p, &f.err)))
            snug_plan_destroy(p);
        snug_graph_destroy(g);
    }
    free(text);
    fuzz_end(&f, 32 * FUZZ_MIB);
}
