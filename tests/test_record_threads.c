/* test_record_threads.c: threads that take turns at one recorder: each has a recording of its own,
 * values and variables of others are run first, one plan runs at a time while the lock is free.
 *
 * The lock and the wait for a running plan are what an interpreter would have. */
#include <pthread.h>
#include <string.h>

#include "record/recording.h"
#include "support/bench.h"

#define OK(call) expect_ok((call), &b->err)

static const snug_type four = {SNUG_F32, 1, {4}};

/* --- one thread, several names ---------------------------------------------------------------- */
static void sit(bench *b, uint64_t thread) {
    OK(snug_recorder_enter(b->r, thread, &b->err));
}

static snug_tensor *op(bench *b, const char *name, snug_tensor *x, snug_tensor *y) {
    snug_tensor *in[2] = {x, y}, *out;
    OK(snug_record_op(b->r, name, "", in, y ? 2 : 1, &out, 1, &b->err));
    return out;
}

static snug_tensor *tensor(bench *b, float first) {
    snug_tensor *t;
    OK(snug_tensor_copy(b->r, &four, (float[]){first, 1, 2, 3}, &t, &b->err));
    return t;
}

static snug_variable *variable(bench *b, double value) {
    snug_variable *v;
    snug_tensor *t;
    OK(snug_tensor_full(b->r, &four, value, &t, &b->err));
    OK(snug_variable_create(b->r, t, NULL, &v, &b->err));
    snug_tensor_drop(t);
    return v;
}

static void add_to(bench *b, snug_variable *v, float first) {
    snug_tensor *t = tensor(b, first);
    OK(snug_variable_update(b->r, "assign_add", "", &v, 1, &t, 1, &b->err));
    snug_tensor_drop(t);
}

static float first_of(bench *b, snug_tensor *t) {
    float v[4];
    OK(snug_tensor_read(t, v, sizeof v, &b->err));
    return v[0];
}

static float value_of(bench *b, snug_variable *v) {
    snug_tensor *t;
    OK(snug_variable_read(v, &t, &b->err));
    const float first = first_of(b, t);
    snug_tensor_drop(t);
    return first;
}

static size_t n_flushes(const bench *b) {
    snug_recorder_info info;
    snug_recorder_tell(b->r, &info);
    return info.n_flushes;
}

static void test_each_thread_has_its_own_recording(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    sit(b, 1);
    snug_tensor *x = tensor(b, 3), *y = op(b, "square", x, NULL);
    sit(b, 2);
    snug_tensor *z = op(b, "square", x, NULL);
    assert_ptr_not_equal(y->rec, z->rec);
    assert_float_equal(first_of(b, z), 9, 0);
    assert_int_equal(y->state, SN_PENDING); /* nobody has asked for it */
    snug_tensor *sum = op(b, "add", y, z);  /* now somebody has */
    assert_int_equal(y->state, SN_READY);
    assert_float_equal(first_of(b, sum), 18, 0);
    sit(b, 1);
    snug_tensor *w = op(b, "add", sum, y);
    sit(b, 2);
    assert_float_equal(first_of(b, w), 27, 0); /* reading, too */
    snug_tensor_drop(x), snug_tensor_drop(y), snug_tensor_drop(z), snug_tensor_drop(sum);
    snug_tensor_drop(w);
    snug_recorder_destroy(b->r);
}

static void test_writes_of_other_threads_come_in_order(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tensor *before, *after;
    sit(b, 1);
    snug_variable *v = variable(b, 1);
    OK(snug_variable_read(v, &before, &b->err));
    snug_tensor *twice = op(b, "add", before, before);
    sit(b, 2);
    OK(snug_variable_read(v, &after, &b->err)); /* both have it */
    snug_tensor *old = op(b, "square", after, NULL);
    snug_tensor_drop(after);
    add_to(b, v, 10);
    sit(b, 1);
    OK(snug_variable_read(v, &after, &b->err));
    assert_float_equal(first_of(b, after), 11, 0);
    assert_float_equal(first_of(b, twice), 2, 0);
    assert_float_equal(first_of(b, old), 1, 0);
    add_to(b, v, 5);
    sit(b, 2);
    add_to(b, v, 7);
    sit(b, 3);
    assert_float_equal(value_of(b, v), 23, 0);
    snug_tensor_drop(before), snug_tensor_drop(twice), snug_tensor_drop(old);
    snug_tensor_drop(after);
    sit(b, 2);
    snug_variable_drop(v);
    snug_recorder_destroy(b->r);
}

static void test_tapes_and_traces_are_the_threads_own(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    snug_tape *tape;
    snug_trace *trace;
    snug_tensor *argument, *out, *grads[2];
    sit(b, 1);
    snug_tensor *x = tensor(b, 3);
    OK(snug_tape_create(b->r, NULL, &tape, &b->err));
    OK(snug_tape_watch(tape, x, &b->err));
    OK(snug_trace_begin(b->r, &four, 1, &argument, &trace, &b->err));
    sit(b, 2);
    assert_false(snug_is_tracing(b->r));
    snug_tensor *y = op(b, "square", x, NULL); /* neither taped nor traced */
    assert_float_equal(first_of(b, y), 9, 0);
    sit(b, 1);
    assert_true(snug_is_tracing(b->r));
    snug_tensor *inside = op(b, "square", argument, NULL);
    OK(snug_trace_end(trace, &inside, 1, &b->err));
    OK(snug_trace_call(trace, &x, 1, &out, 1, &b->err));
    sit(b, 2); /* asked by another thread */
    const snug_source by[1] = {{.tensor = x}};
    snug_tensor *sum = op(b, "add", out, y);
    OK(snug_tape_gradient(tape, &out, NULL, 1, by, 1, grads, &b->err));
    assert_non_null(grads[0]);
    assert_float_equal(first_of(b, grads[0]), 6, 0);
    snug_tensor_drop(sum), snug_tensor_drop(grads[0]), snug_tensor_drop(out);
    snug_tensor_drop(inside), snug_tensor_drop(argument), snug_tensor_drop(y);
    snug_tensor_drop(x);
    snug_trace_drop(trace);
    snug_tape_drop(tape);
    snug_recorder_destroy(b->r);
}

static void test_what_a_thread_recorded_outlives_it(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    sit(b, 1);
    snug_variable *v = variable(b, 1);
    const size_t before = value_of(b, v) > 0 ? snug_engine_bytes(b->e) : 0;
    for (uint64_t thread = 2; thread < 40; thread++) {
        sit(b, thread);
        snug_tensor *x = tensor(b, 2), *y = op(b, "square", x, NULL);
        add_to(b, v, 1);
        sit(b, 1);
        assert_true(snug_recorder_leave(b->r, thread));
        assert_int_equal(y->state, SN_READY);
        snug_tensor_drop(x), snug_tensor_drop(y);
    }
    assert_null(b->r->seats->next);
    assert_float_equal(value_of(b, v), 39, 0);
    snug_recorder_trim(b->r);
    assert_true(snug_engine_bytes(b->e) < before + 65536);
    assert_true(n_flushes(b) >= 38);
    snug_variable_drop(v);
    snug_recorder_destroy(b->r);
}

/* --- real threads ----------------------------------------------------------------------------- */
enum { N_THREADS = 4, N_STEPS = 60 };

typedef struct {
    snug_recorder *r;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running;
    snug_variable *common;
    float results[N_THREADS];
} world;

static void begin_run(void *ctx) {
    world *w = ctx;
    w->running = true;
    pthread_mutex_unlock(&w->lock);
}

static void end_run(void *ctx) {
    world *w = ctx;
    pthread_mutex_lock(&w->lock);
    w->running = false;
    pthread_cond_broadcast(&w->changed);
}

typedef struct {
    world *w;
    int me;
} job;

static snug_status step(world *w, int me, snug_variable *own, snug_error *err) {
    snug_tensor *x, *t, *y;
    SNUG_TRY(snug_tensor_copy(w->r, &four, (float[]){(float)me, 1, 2, 3}, &x, err));
    SNUG_TRY(snug_variable_read(own, &t, err));
    SNUG_TRY(snug_record_op(w->r, "add", "", (snug_tensor *[]){t, x}, 2, &y, 1, err));
    SNUG_TRY(snug_variable_assign(own, y, err));
    SNUG_TRY(snug_variable_update(w->r, "assign_add", "", &w->common, 1, &x, 1, err));
    snug_tensor_drop(t), snug_tensor_drop(x), snug_tensor_drop(y);
    return SNUG_OK;
}

static void *work(void *ctx) {
    const job *j = ctx;
    world *w = j->w;
    snug_variable *own = NULL;
    for (int i = 0; i <= N_STEPS; i++) {
        snug_error err;
        snug_tensor *t;
        float v[4] = {0};
        pthread_mutex_lock(&w->lock);
        while (w->running)
            pthread_cond_wait(&w->changed, &w->lock);
        snug_status status = snug_recorder_enter(w->r, (uint64_t)j->me + 1, &err);
        if (i == 0 && status == SNUG_OK)
            status = snug_tensor_full(w->r, &four, 0, &t, &err);
        if (i == 0 && status == SNUG_OK) {
            status = snug_variable_create(w->r, t, NULL, &own, &err);
            snug_tensor_drop(t);
        } else if (status == SNUG_OK) {
            status = step(w, j->me, own, &err);
        }
        if (status == SNUG_OK && (i % 7 == 6 || i == N_STEPS)) {
            status = snug_variable_read(own, &t, &err);
            if (status == SNUG_OK)
                status = snug_tensor_read(t, v, sizeof v, &err);
            snug_tensor_drop(t);
        }
        w->results[j->me] = status == SNUG_OK ? v[0] : -1;
        if (i == N_STEPS)
            snug_variable_drop(own);
        pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

static void test_threads_compute_what_one_would(void **state) {
    bench bench_ = open_bench(state), *b = &bench_;
    world w = {.r = b->r, .common = variable(b, 0)};
    pthread_t threads[N_THREADS];
    job jobs[N_THREADS];
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    snug_recorder_set_hooks(
        b->r, &(snug_recorder_hooks){.ctx = &w, .begin_run = begin_run, .end_run = end_run});
    for (int k = 0; k < N_THREADS; k++) {
        jobs[k] = (job){&w, k};
        assert_int_equal(pthread_create(&threads[k], NULL, work, &jobs[k]), 0);
    }
    for (int k = 0; k < N_THREADS; k++)
        pthread_join(threads[k], NULL);
    for (int k = 0; k < N_THREADS; k++)
        assert_float_equal(w.results[k], (float)(k * N_STEPS), 0);
    pthread_mutex_lock(&w.lock);
    sit(b, 1);
    assert_float_equal(value_of(b, w.common), N_STEPS * (0 + 1 + 2 + 3), 0);
    snug_variable_drop(w.common);
    snug_recorder_destroy(b->r);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        engine_test(test_each_thread_has_its_own_recording),
        engine_test(test_writes_of_other_threads_come_in_order),
        engine_test(test_tapes_and_traces_are_the_threads_own),
        engine_test(test_what_a_thread_recorded_outlives_it),
        engine_test(test_threads_compute_what_one_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
