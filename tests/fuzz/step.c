/* step.c: see step.h. */
#include "fuzz/step.h"

#include <snug/graph.h>

static snug_value op(fuzz *f, snug_graph *g, const char *name, const char *attrs, snug_value a,
                     snug_value b) {
    snug_value out, in[2] = {a, b};
    const int n = b.id == SNUG_NO_VALUE.id ? 1 : 2;
    fuzz_must(f, snug_graph_op(g, name, attrs, in, n, &out, 1, &f->err));
    return out;
}

sn_graph *fuzz_step_graph(fuzz *f) {
    snug_graph *g;
    snug_value x, t, w[2], dw[2];
    const snug_type tx = {SNUG_F32, 2, {8, 4}}, tt = {SNUG_F32, 2, {8, 2}};
    const snug_type tw[2] = {{SNUG_F32, 2, {4, 3}}, {SNUG_F32, 2, {3, 2}}};
    fuzz_must(f, snug_graph_create(f->engine, &g, &f->err));
    fuzz_must(f, snug_graph_input(g, "x", &tx, &x, &f->err));
    fuzz_must(f, snug_graph_input(g, "t", &tt, &t, &f->err));
    for (int i = 0; i < 2; i++)
        fuzz_must(f, snug_graph_variable(g, i ? "v" : "w", &tw[i], NULL, &w[i], &f->err));
    const snug_value h = op(f, g, "relu", "", op(f, g, "matmul", "", x, w[0]), SNUG_NO_VALUE);
    const snug_value y = op(f, g, "matmul", "", h, w[1]);
    const snug_value d = op(f, g, "sub", "", y, t);
    const snug_value loss =
        op(f, g, "sum", "axes=0,1", op(f, g, "square", "", d, SNUG_NO_VALUE), SNUG_NO_VALUE);
    fuzz_must(f, snug_graph_gradients(g, loss, w, 2, dw, &f->err));
    for (int i = 0; i < 2; i++)
        (void)op(f, g, "sgd", "rate=0.0625 momentum=0", w[i], dw[i]);
    fuzz_must(f, snug_graph_output(g, "loss", loss, &f->err));
    fuzz_must(f, snug_graph_output(g, "y", y, &f->err));
    return g;
}

float fuzz_step_number(uint32_t which, int64_t element) {
    return (float)((element * 7 + which * 3 + element / 3) % 5 - 2);
}
