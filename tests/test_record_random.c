/* test_record_random.c: random programs over tensors, variables, tapes and traces give the same
 * bits whether every operation runs at once, some do, or all wait for the end.
 *
 * Values are small whole numbers in f64, so sums are exact in any order: whatever differs is a
 * value taken from the wrong place. */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "record/recording.h"
#include "support/support.h"

enum { N_SLOTS = 5, N_VARS = 3, LENGTH = 28, SIDE = 3, COUNT = SIDE * SIDE, TAPE_LENGTH = 7 };

static const snug_type square = {SNUG_F64, 2, {SIDE, SIDE}};

typedef struct {
    snug_recorder *r;
    snug_error err;
    uint64_t seed, n_drawn, sync_seed, n_syncs;
    int how; /* 0: sync after each action, 1: at random, 2: never */
    snug_tensor *slot[N_SLOTS];
    bool is_read[N_SLOTS]; /* what a variable holds, nothing else */
    snug_variable *var[N_VARS];
    snug_tape *tape;
    int tape_age;
    snug_tensor *watched;
    snug_trace *trace;
    double log[64][COUNT]; /* what was looked at in the end */
    int n_log;
} player;

#define OK(call) expect_ok((call), &p->err)

static unsigned draw(player *p, unsigned n) {
    return (unsigned)(sn_rng_key(p->seed, ++p->n_drawn) >> 20) % n;
}

/* --- values ----------------------------------------------------------------------------------- */
static snug_tensor *op(player *p, const char *name, const char *attrs, snug_tensor *x,
                       snug_tensor *y) {
    snug_tensor *in[2] = {x, y}, *out;
    OK(snug_record_op(p->r, name, attrs, in, y ? 2 : 1, &out, 1, &p->err));
    return out;
}

/* The same, and lets go of the first operand. */
static snug_tensor *then(player *p, const char *name, const char *attrs, snug_tensor *x,
                         snug_tensor *y) {
    snug_tensor *out = op(p, name, attrs, x, y);
    snug_tensor_drop(x);
    return out;
}

static snug_tensor *small(player *p, snug_tensor *x) {
    return then(p, "clip", "low=-6 high=6", x, NULL);
}

static snug_tensor *full(player *p, double value) {
    snug_tensor *t;
    OK(snug_tensor_full(p->r, &square, value, &t, &p->err));
    return t;
}

static snug_tensor *numbers(player *p) {
    snug_tensor *t;
    double data[COUNT];
    for (int i = 0; i < COUNT; i++)
        data[i] = (double)draw(p, 7) - 3;
    OK(snug_tensor_copy(p->r, &square, data, &t, &p->err));
    return t;
}

static snug_tensor *dice(player *p) {
    snug_tensor *t;
    OK(snug_tensor_random(p->r, &square, SNUG_INIT_UNIFORM, -3, 4, &t, &p->err));
    return then(p, "floor", "", t, NULL);
}

static void put(player *p, unsigned i, snug_tensor *t) {
    snug_tensor_drop(p->slot[i]);
    p->slot[i] = t;
    p->is_read[i] = false;
}

static snug_tensor *any(player *p) {
    return p->slot[draw(p, N_SLOTS)];
}

/* Runs what is recorded, or not; numbers of its own, so that programs stay what they are. */
static void maybe_sync(player *p) {
    double data[COUNT];
    const uint64_t chance = sn_rng_key(p->sync_seed, ++p->n_syncs) >> 20;
    if (p->how == 2 || (p->how == 1 && chance % 3 != 0))
        return;
    snug_tensor *t = p->slot[chance / 3 % N_SLOTS];
    if (p->how == 1 && chance / 64 % 16 == 0)
        snug_recorder_trim(p->r);
    if (p->how == 0 || chance / 16 % 3 == 0) {
        OK(snug_sync(p->r, &p->err));
    } else if (chance / 16 % 3 == 1) {
        OK(snug_tensor_read(t, data, sizeof data, &p->err));
    } else {
        snug_view view;
        OK(snug_tensor_pin(t, &view, &p->err));
        snug_tensor_unpin(t);
    }
}

/* --- actions ---------------------------------------------------------------------------------- */
static void read_variable(player *p) {
    snug_tensor *t;
    OK(snug_variable_read(p->var[draw(p, N_VARS)], &t, &p->err));
    const unsigned i = draw(p, N_SLOTS);
    put(p, i, t);
    p->is_read[i] = true;
}

static void assign_variable(player *p) {
    OK(snug_variable_assign(p->var[draw(p, N_VARS)], any(p), &p->err));
}

static void swap_variables(player *p) {
    snug_tensor *a, *b;
    OK(snug_variable_read(p->var[0], &a, &p->err));
    OK(snug_variable_read(p->var[1], &b, &p->err));
    OK(snug_variable_assign(p->var[0], b, &p->err));
    OK(snug_variable_assign(p->var[1], a, &p->err));
    snug_tensor_drop(a), snug_tensor_drop(b);
}

static void new_variable(player *p) {
    const unsigned i = draw(p, N_VARS);
    snug_tensor *t = draw(p, 2) ? full(p, (double)draw(p, 5)) : numbers(p);
    snug_variable_drop(p->var[i]);
    OK(snug_variable_create(p->r, t, NULL, &p->var[i], &p->err));
    snug_tensor_drop(t);
}

static void add_up(player *p) {
    snug_variable *v = p->var[draw(p, N_VARS)];
    snug_tensor *x = draw(p, 2) ? numbers(p) : full(p, 1);
    OK(snug_variable_update(p->r, "assign_add", "", &v, 1, &x, 1, &p->err));
    snug_tensor_drop(x);
}

static void combine(player *p) {
    static const char *const names[] = {"add", "mul", "matmul", "sub", "maximum"};
    snug_tensor *x = any(p), *y = any(p);
    put(p, draw(p, N_SLOTS), small(p, op(p, names[draw(p, 5)], "", x, y)));
}

static void scale(player *p) {
    static const char *const attrs[] = {"scale=2 shift=1", "scale=1 shift=0", "scale=-1 shift=2"};
    snug_tensor *x = any(p);
    put(p, draw(p, N_SLOTS), small(p, op(p, "affine", attrs[draw(p, 3)], x, NULL)));
}

static void reshape(player *p) {
    snug_tensor *x = op(p, "reshape", "dims=9", any(p), NULL);
    put(p, draw(p, N_SLOTS), then(p, "reshape", "dims=3,3", x, NULL));
}

static void reduce(player *p) {
    static const char *const names[] = {"sum", "max", "sum"};
    static const char *const axes[] = {"axes=0 keepdims=1", "axes=1 keepdims=1", "axes=0,1"};
    const unsigned how = draw(p, 3);
    snug_tensor *x = any(p), *sum = op(p, names[how], axes[draw(p, 3)], x, NULL);
    put(p, draw(p, N_SLOTS), small(p, then(p, "add", "", sum, any(p))));
}

/* The largest of nine, whose codes only the device knows. */
static void pool(player *p) {
    snug_tensor *x = op(p, "reshape", "dims=1,3,3,1", any(p), NULL);
    x = then(p, "maxpool", "kernel=2,2 stride=1,1", x, NULL);
    x = then(p, "sum", "axes=0,1,2,3", x, NULL);
    put(p, draw(p, N_SLOTS), small(p, then(p, "add", "", x, any(p))));
}

static void take_rows(player *p) {
    snug_tensor *rows;
    OK(snug_tensor_rows(any(p), draw(p, SIDE), 1, &rows, &p->err));
    put(p, draw(p, N_SLOTS), small(p, then(p, "add", "", rows, any(p))));
}

static void renew(player *p) {
    const unsigned how = draw(p, 3);
    put(p, draw(p, N_SLOTS),
        how == 0   ? numbers(p)
        : how == 1 ? full(p, (double)draw(p, 4))
                   : dice(p));
}

static void drop_out(player *p) {
    char attrs[64];
    snprintf(attrs, sizeof attrs, "rate=0.5 key=%lld", (long long)snug_recorder_draw(p->r));
    put(p, draw(p, N_SLOTS), small(p, op(p, "dropout", attrs, any(p), NULL)));
}

/* --- tapes ------------------------------------------------------------------------------------ */
static void begin_tape(player *p) {
    const snug_tape_options o = {.persistent = draw(p, 2) == 0};
    if (p->tape)
        return;
    OK(snug_tape_create(p->r, &o, &p->tape, &p->err));
    p->tape_age = 0;
    p->watched = draw(p, 3) ? op(p, "affine", "scale=1 shift=1", any(p), NULL) : full(p, 2);
    OK(snug_tape_watch(p->tape, p->watched, &p->err));
    snug_tensor_hold(p->watched);
    put(p, draw(p, N_SLOTS), p->watched);
}

static void end_tape(player *p) {
    snug_tape_drop(p->tape);
    snug_tensor_drop(p->watched);
    p->tape = NULL;
    p->watched = NULL;
}

static void take_gradient(player *p) {
    snug_tensor *grads[3], *targets[2] = {any(p), any(p)}, *seeds[2] = {NULL, NULL};
    const unsigned n = 1 + draw(p, 2);
    if (!p->tape)
        return;
    const snug_source by[3] = {
        {.tensor = p->watched}, {.variable = p->var[draw(p, N_VARS)]}, {.tensor = any(p)}};
    if (draw(p, 2))
        seeds[n - 1] = numbers(p);
    OK(snug_tape_gradient(p->tape, targets, seeds, (int)n, by, 3, grads, &p->err));
    for (unsigned i = 0; i < 3; i++)
        put(p, i, grads[i] ? small(p, grads[i]) : full(p, -5));
    snug_tensor_drop(seeds[n - 1]);
    if (!p->tape->persistent)
        end_tape(p);
}

/* --- traces ----------------------------------------------------------------------------------- */
/* Of a product by its factors, within the function. */
static snug_tensor *add_gradient(player *p, snug_tensor *y, snug_tensor *arg, snug_variable *v) {
    snug_tape *tape;
    snug_tensor *read, *grads[2];
    OK(snug_tape_create(p->r, NULL, &tape, &p->err));
    OK(snug_tape_watch(tape, arg, &p->err));
    OK(snug_variable_read(v, &read, &p->err));
    snug_tensor *product = op(p, "mul", "", arg, read), *square_ = op(p, "mul", "", product, arg);
    const snug_source by[2] = {{.tensor = arg}, {.variable = v}};
    OK(snug_tape_gradient(tape, &square_, NULL, 1, by, 2, grads, &p->err));
    y = small(p, then(p, "add", "", y, grads[0]));
    y = small(p, then(p, "add", "", y, grads[1]));
    for (int i = 0; i < 2; i++)
        snug_tensor_drop(grads[i]);
    snug_tensor_drop(read), snug_tensor_drop(product), snug_tensor_drop(square_);
    snug_tape_drop(tape);
    return y;
}

static void make_trace(player *p) {
    snug_tensor *arg, *y, *read;
    unsigned captured = draw(p, N_SLOTS);
    snug_variable *v = p->var[draw(p, N_VARS)];
    if (p->trace || p->is_read[captured])
        return;
    OK(snug_trace_begin(p->r, &square, 1, &arg, &p->trace, &p->err));
    y = op(p, "mul", "", arg, p->slot[captured]);
    OK(snug_variable_read(v, &read, &p->err));
    y = small(p, then(p, "add", "", y, read));
    if (draw(p, 2))
        OK(snug_variable_assign(v, y, &p->err));
    if (draw(p, 2))
        y = add_gradient(p, y, arg, v);
    if (draw(p, 3) == 0)
        maybe_sync(p); /* outside */
    snug_tensor *numbers_ = dice(p);
    y = small(p, then(p, "add", "", y, numbers_));
    OK(snug_trace_end(p->trace, &y, 1, &p->err));
    snug_tensor_drop(arg), snug_tensor_drop(y), snug_tensor_drop(read), snug_tensor_drop(numbers_);
}

static void call_trace(player *p) {
    snug_tensor *x = any(p), *y;
    if (!p->trace)
        return;
    OK(snug_trace_call(p->trace, &x, 1, &y, 1, &p->err));
    put(p, draw(p, N_SLOTS), y);
}

/* --- a program -------------------------------------------------------------------------------- */
static void (*const actions[])(player *p) = {
    read_variable, read_variable, assign_variable, assign_variable, swap_variables,
    new_variable,  add_up,        combine,         combine,         combine,
    combine,       scale,         reshape,         reduce,          pool,
    take_rows,     renew,         drop_out,        begin_tape,      begin_tape,
    take_gradient, take_gradient, make_trace,      call_trace,      call_trace};

static void look(player *p, snug_tensor *t) {
    assert_true(p->n_log < 64);
    OK(snug_tensor_read(t, p->log[p->n_log++], sizeof p->log[0], &p->err));
}

static void play(player *p) {
    snug_recorder_seed(p->r, p->seed);
    for (unsigned i = 0; i < N_VARS; i++) {
        snug_tensor *t = full(p, (double)i);
        OK(snug_variable_create(p->r, t, NULL, &p->var[i], &p->err));
        snug_tensor_drop(t);
    }
    for (unsigned i = 0; i < N_SLOTS; i++)
        p->slot[i] = i % 2 ? numbers(p) : full(p, (double)i - 1);
    for (int i = 0; i < LENGTH; i++) {
        actions[draw(p, sizeof actions / sizeof actions[0])](p);
        if (p->tape && ++p->tape_age > TAPE_LENGTH)
            end_tape(p);
        maybe_sync(p);
    }
    for (unsigned i = 0; i < N_SLOTS; i++)
        look(p, p->slot[i]);
    for (unsigned i = 0; i < N_VARS; i++) {
        snug_tensor *t;
        OK(snug_variable_read(p->var[i], &t, &p->err));
        look(p, t);
        snug_tensor_drop(t);
        snug_variable_drop(p->var[i]);
    }
    for (unsigned i = 0; i < N_SLOTS; i++)
        snug_tensor_drop(p->slot[i]);
    if (p->tape)
        end_tape(p);
    snug_trace_drop(p->trace);
}

/* Those of the program are beyond the ones that have a bit of marks then. */
static void play_in_a_crowd(player *p) {
    snug_tape *idle[SN_FEW_TAPES];
    for (int i = 0; i < SN_FEW_TAPES; i++)
        OK(snug_tape_create(p->r, &(snug_tape_options){.not_watching = 1}, &idle[i], &p->err));
    play(p);
    for (int i = 0; i < SN_FEW_TAPES; i++)
        snug_tape_drop(idle[i]);
}

static void test_when_things_run_changes_no_bit(void **state) {
    player at_once, other;
    snug_recorder *r;
    snug_error err;
    expect_ok(snug_recorder_create(*state, &r, &err), &err);
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        at_once = (player){.r = r, .seed = seed};
        play(&at_once);
        for (uint64_t k = 0; k < 3; k++) {
            other = (player){.r = r, .seed = seed, .how = k ? 1 : 2, .sync_seed = 1000 * k + seed};
            (k == 2 && seed % 4 == 0 ? play_in_a_crowd : play)(&other);
            for (int i = 0; i < at_once.n_log; i++)
                if (memcmp(at_once.log[i], other.log[i], sizeof other.log[i]) != 0)
                    fail_msg("seed %d, way %d: result %d differs", (int)seed, (int)k, i);
        }
    }
    snug_recorder_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_when_things_run_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
