/* A good plan of a training step with some words changed: what the checker accepts runs, within its
 * arena, and gives the bits of the naive executor. The input is a list of changes, so that a corpus
 * is good for the kernels of any machine. Its first byte says which plan; then, one a line:
 *
 *     w LINE WORD TEXT     the word becomes TEXT        d LINE       the line goes
 *     s LINE LINE          two lines change places      c LINE LINE  the first, again before it */
#include "exec/exec.h"
#include "fuzz/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 96, LINE_BYTES = 320, ROOM = 1024, HOMES = 2, OUTPUTS = 2 };

typedef struct {
    char line[MOST_LINES][LINE_BYTES];
    int n;
} lines;

/* --- the text, changed ---------------------------------------------------------------------- */
static void change_word(char *line, int word, const char *text) {
    char changed[LINE_BYTES];
    const char *at = line;
    for (; word > 0 && *at; word--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    const int head = (int)(at - line);
    snprintf(changed, sizeof changed, "%.*s%s%s", head, line, text, at + strcspn(at, " "));
    memcpy(line, changed, sizeof changed);
}

static void change(lines *t, const char *how) {
    char kind, text[64] = "";
    int a, b = 0;
    if (sscanf(how, "%c %d %d %63[^\n]", &kind, &a, &b, text) < 2 || a < 0 || a >= t->n || b < 0)
        return;
    if (kind == 'w')
        change_word(t->line[a], b, text);
    if (kind == 'd') {
        memmove(t->line[a], t->line[a + 1], (size_t)(t->n - a - 1) * LINE_BYTES);
        t->n--;
    }
    if (b >= t->n)
        return;
    char kept[LINE_BYTES];
    memcpy(kept, t->line[a], sizeof kept);
    if (kind == 's') {
        memcpy(t->line[a], t->line[b], sizeof kept);
        memcpy(t->line[b], kept, sizeof kept);
    }
    if (kind == 'c' && t->n < MOST_LINES) {
        memmove(t->line[b + 1], t->line[b], (size_t)(t->n - b) * LINE_BYTES);
        memcpy(t->line[b], kept, sizeof kept);
        t->n++;
    }
}

/* Steps are numbered from 0 on: the numbers follow the order, and who waits keeps what it says. */
static char *join(lines *t) {
    char *text = calloc((size_t)t->n + 1, LINE_BYTES + 16);
    fuzz_true(text != NULL, "no memory");
    size_t at = 0;
    int step = 0;
    for (int i = 0; i < t->n; i++) {
        const char *line = t->line[i];
        int n;
        if (sscanf(line, "s%*d %n", &n) == 0 && line[0] == 's' && line[1] >= '0' && line[1] <= '9')
            at += (size_t)sprintf(text + at, "s%d %s\n", step++, line + n);
        else
            at += (size_t)sprintf(text + at, "%s\n", line);
    }
    return text;
}

static char *changed_text(const char *good, const uint8_t *bytes, size_t n) {
    static lines t;
    char *copy = fuzz_text((const uint8_t *)good, strlen(good)), *at = copy;
    t.n = 0;
    while (*at) {
        fuzz_true(t.n < MOST_LINES, "a plan of too many lines");
        snprintf(t.line[t.n++], LINE_BYTES, "%s", fuzz_line(&at));
    }
    free(copy);
    char *how = fuzz_text(bytes, n);
    at = how;
    for (int i = 0; i < 8 && *at; i++)
        change(&t, fuzz_line(&at));
    free(how);
    return join(&t);
}

/* --- a run ---------------------------------------------------------------------------------- */
typedef struct {
    float outputs[OUTPUTS][64], homes[HOMES][64];
} results;

static snug_status fill(void *ctx, int64_t first_row, int64_t n_rows, const snug_view *dst,
                        snug_error *err) {
    const uint32_t which = *(const uint32_t *)ctx;
    float *to = dst->data;
    const int64_t row = (int64_t)(dst->bytes / sizeof *to) / n_rows;
    (void)err;
    for (int64_t i = 0; i < row * n_rows; i++)
        to[i] = fuzz_step_number(which, first_row * row + i);
    return SNUG_OK;
}

static sn_state *make_state(fuzz *f, const sn_graph *g) {
    sn_state *s;
    fuzz_must(f, sn_state_create(f->engine, &s, &f->err));
    for (uint32_t i = 0; i < sn_graph_n_vars(g); i++) {
        const sn_variable *v = sn_graph_var_at(g, (sn_var){i});
        const sn_home home = {.name = v->name, .type = v->type, .init = v->init};
        snug_view view;
        uint32_t id;
        fuzz_must(f, sn_state_add(s, &home, &id, &f->err));
        fuzz_must(f, sn_state_view(s, id, &view, &f->err));
        for (size_t k = 0; k < view.bytes / sizeof(float); k++)
            ((float *)view.data)[k] = fuzz_step_number(i + 5, (int64_t)k);
    }
    return s;
}

static void keep_homes(fuzz *f, sn_state *s, results *out) {
    for (uint32_t i = 0; i < HOMES; i++) {
        snug_view v;
        fuzz_must(f, sn_state_view(s, i, &v, &f->err));
        memcpy(out->homes[i], v.data, v.bytes);
    }
}

static const uint32_t whiches[] = {0, 1};
#define BINDING(i)                                                                                 \
    (sn_input_binding) {                                                                           \
        .ctx = (void *)(uintptr_t)&whiches[i], .fill = fill                                        \
    }

static void run_naive(fuzz *f, const sn_graph *g, results *out) {
    sn_state *s = make_state(f, g);
    const sn_input_binding inputs[] = {BINDING(0), BINDING(1)};
    snug_view outputs[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++)
        outputs[i] = (snug_view){.data = out->outputs[i], .bytes = sizeof out->outputs[i]};
    const sn_naive_options o = {.inputs = inputs, .outputs = outputs, .write_state = true};
    fuzz_must(f, sn_naive_run(f->engine, g, s, &o, &f->err));
    keep_homes(f, s, out);
    sn_state_destroy(s);
}

static void run_plan(fuzz *f, const sn_plan *p, const sn_device *const *devices, results *out) {
    const sn_executor_options o = {.guard = true, .poison = 0xa5, .poison_set = true};
    sn_state *s = make_state(f, p->graph);
    sn_executor *x;
    sn_session *session;
    fuzz_must(f, sn_executor_create(f->engine, s, devices, 1, &o, &x, &f->err));
    if (fuzz_ok(f, sn_executor_add(x, p, &session, &f->err)) &&
        fuzz_ok(f, sn_executor_prepare(x, &f->err))) {
        for (uint32_t i = 0; i < 2; i++)
            sn_session_bind_input(session, i, BINDING(i));
        fuzz_must(f, sn_session_run(session, &f->err));
        results got = *out;
        keep_homes(f, s, &got);
        for (uint32_t i = 0; i < OUTPUTS; i++) {
            snug_view v;
            sn_session_output(session, i, &v);
            memcpy(got.outputs[i], v.data, v.bytes);
        }
        fuzz_true(memcmp(&got, out, sizeof got) == 0, "a plan that was accepted is wrong");
    }
    sn_executor_destroy(x);
    sn_state_destroy(s);
}

FUZZ_TARGET(plan_run) {
    static results right;
    sn_plan *good, *p;
    fuzz_print text;
    fuzz f;
    if (n == 0)
        return;
    fuzz_begin(&f, NULL, 0);
    sn_cpu_device device;
    sn_cpu_device_init(&device, 1, false);
    const sn_device *devices[1] = {&device.device};
    const sn_plan_options o = {.devices = devices, .n_devices = 1, .slices = bytes[0] % 3 + 1};
    sn_graph *g = fuzz_step_graph(&f);
    run_naive(&f, g, &right);
    fuzz_must(&f, sn_plan_build(f.engine, g, &o, &good, &f.err));
    const snug_writer w = fuzz_writer(&text);
    fuzz_must(&f, sn_plan_print(good, &w, &f.err));
    char *changed = changed_text(text.text, bytes + 1, n - 1);
    if (fuzz_ok(&f, sn_plan_parse(f.engine, g, changed, devices, 1, &p, &f.err))) {
        run_plan(&f, p, devices, &right);
        sn_plan_destroy(p);
    }
    free(changed), free(text.text);
    sn_plan_destroy(good);
    sn_graph_destroy(g);
    fuzz_end(&f, 8 * FUZZ_MIB);
}
