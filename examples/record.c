/* record.c: eager code in C: operations are recorded and run as one plan when bytes are needed. A
 * line is fitted to points by gradient descent, with a tape; the first step is planned, the others
 * find its plan.
 *
 *     cc record.c $(pkg-config --cflags --libs snug) && ./a.out */
#include <snug/record.h>
#include <stdio.h>
#include <stdlib.h>

static snug_error err;

static void must(snug_status status) {
    if (status == SNUG_OK)
        return;
    fprintf(stderr, "record: %s\n", err.text);
    exit(1);
}

static snug_tensor *op(snug_recorder *r, const char *name, const char *attributes, snug_tensor *x,
                       snug_tensor *y) {
    snug_tensor *in[2] = {x, y}, *out;
    must(snug_record_op(r, name, attributes, in, y ? 2 : 1, &out, 1, &err));
    return out;
}

static snug_variable *zero(snug_recorder *r) {
    snug_tensor *start;
    snug_variable *v;
    must(snug_tensor_number(r, SNUG_F32, 0, &start, &err));
    must(snug_variable_create(r, start, NULL, &v, &err));
    snug_tensor_drop(start);
    return v;
}

/* The mean of (a x + b - y)^2. */
static snug_tensor *loss_of(snug_recorder *r, snug_variable *const v[2], snug_tensor *x,
                            snug_tensor *y, int n) {
    char scale[48];
    snug_tensor *t[8];
    snprintf(scale, sizeof scale, "scale=%.9g shift=0", 1.0 / n);
    must(snug_variable_read(v[0], &t[0], &err));
    must(snug_variable_read(v[1], &t[1], &err));
    t[2] = op(r, "mul", "", x, t[0]);
    t[3] = op(r, "add", "", t[2], t[1]);
    t[4] = op(r, "sub", "", t[3], y);
    t[5] = op(r, "square", "", t[4], NULL);
    t[6] = op(r, "sum", "axes=0", t[5], NULL);
    t[7] = op(r, "affine", scale, t[6], NULL);
    for (int i = 0; i < 7; i++)
        snug_tensor_drop(t[i]);
    return t[7];
}

static float step(snug_recorder *r, snug_variable *const v[2], snug_tensor *x, snug_tensor *y,
                  int n) {
    const snug_source sources[2] = {{.variable = v[0]}, {.variable = v[1]}};
    snug_tensor *grads[2];
    snug_tape *tape;
    float value;
    must(snug_tape_create(r, NULL, &tape, &err));
    snug_tensor *loss = loss_of(r, v, x, y, n);
    must(snug_tape_gradient(tape, &loss, NULL, 1, sources, 2, grads, &err));
    snug_tape_drop(tape);
    for (int i = 0; i < 2; i++) {
        must(snug_variable_update(r, "sgd", "rate=0.2 momentum=0", &v[i], 1, &grads[i], 1, &err));
        snug_tensor_drop(grads[i]);
    }
    must(snug_tensor_read(loss, &value, sizeof value, &err)); /* runs the whole step */
    snug_tensor_drop(loss);
    return value;
}

int main(void) {
    enum { N = 64 };
    float xs[N], ys[N], first = 0, last = 0;
    const snug_type type = {SNUG_F32, 1, {N}};
    snug_engine *engine;
    snug_recorder *r;
    snug_tensor *x, *y;
    snug_recorder_info info;
    for (int i = 0; i < N; i++) {
        xs[i] = 2 * (float)i / N - 1;
        ys[i] = 3 * xs[i] - 1;
    }
    must(snug_engine_create(NULL, &engine, &err));
    must(snug_recorder_create(engine, &r, &err));
    must(snug_tensor_copy(r, &type, xs, &x, &err));
    must(snug_tensor_copy(r, &type, ys, &y, &err));
    snug_variable *v[2] = {zero(r), zero(r)};
    for (int i = 0; i < 100; i++) {
        last = step(r, v, x, y, N);
        first = i == 0 ? last : first;
    }
    snug_recorder_tell(r, &info);
    printf("loss %.4f at first, %.6f at last; %llu runs, %llu plans\n", (double)first, (double)last,
           (unsigned long long)info.n_flushes, (unsigned long long)info.n_misses);
    snug_tensor_drop(x);
    snug_tensor_drop(y);
    snug_variable_drop(v[0]);
    snug_variable_drop(v[1]);
    snug_recorder_destroy(r);
    snug_engine_destroy(engine);
    return last < 0.01f * first ? 0 : 1;
}
