/* test_api.c: no argument of a public function takes the process down. Each in turn is NULL, a
 * number out of range, a type that is none, a text that is too long; the others are as they should
 * be. The functions are the rows of api_rows.def, and a header's function that has none fails the
 * test. Each row runs in a child process, so that all that fail are named at once.
 *
 * What a caller says of his own memory (how many items an array has) is believed: counts are only
 * made zero or negative. */
#include "support/support.h"

#include <snug/checkpoint.h>
#include <snug/data_files.h>
#include <snug/data_ops.h>
#include <snug/device.h>
#include <snug/function.h>
#include <snug/layer.h>
#include <snug/plan.h>
#include <snug/program.h>
#include <snug/record.h>
#include <snug/run.h>
#include <snug/train.h>

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wunused-result" /* what they answer is theirs to choose */

/* --- arguments that functions take ------------------------------------------------------------ */
typedef struct {
    snug_engine *engine;
    snug_recorder *recorder;
    snug_model *model;
    snug_graph *graph;
    snug_value value, other_value;
    snug_tensor *tensor, *tensors[8];
    snug_variable *variable, *variables[8];
    snug_dataset *dataset;
    snug_iterator *iterator;
    snug_feed *feed;
    snug_plan *plan;
    snug_session *session;
    snug_program *program;
    snug_layer *layer;
    snug_metric *metric;
    snug_optimizer *optimizer;
    snug_tape *tape;
    snug_trace *trace;
    snug_record_writer *records;
    snug_npy_writer *npy;
    snug_file *file;
    snug_checkpoint_writer *checkpoint;
    snug_checkpoint *saved;
    snug_safetensors *weights;
    snug_data_op *op;
    snug_history *history;
    snug_callback callback;
    snug_type type, other_type;
    snug_spec spec, other_spec;
    snug_datum datum, other_datum;
    snug_element element, other_element;
    snug_view view, other_view;
    snug_text text;
    snug_argument argument;
    snug_writer writer;
    snug_plan_request request;
    snug_compile compile;
    snug_feed *y;
    snug_fit_options fit;
    snug_run_options run;
    snug_mapper mapper;
    snug_generator generator;
    snug_expander expander;
    snug_datum name;     /* a text */
    snug_spec name_spec; /* of it */
    snug_error err;
    float bytes[64];
    int ints[8], no_ints[8];
    double doubles[64];
    size_t size;
    int64_t count;
    char words[512];
    const char *word;
    void *made;
    char path[64];
    _Alignas(16) char room[1 << 16];
} world;

static snug_status write_fn(void *ctx, const char *text, size_t n, snug_error *err) {
    (void)ctx, (void)text, (void)n, (void)err;
    return SNUG_OK;
}

static void release_fn(void *ctx) {
    (void)ctx;
}

static int asked_fn(void *ctx) {
    (void)ctx;
    return 0;
}

static void tell_fn(void *ctx, const snug_pass *pass) {
    (void)ctx, (void)pass;
}

static double rate_fn(void *ctx, int epoch, double current) {
    (void)ctx, (void)epoch;
    return current;
}

static snug_status rows_fn(void *ctx, int64_t first, const snug_view *view, snug_error *err) {
    (void)ctx, (void)first, (void)view, (void)err;
    return SNUG_OK;
}

static snug_status outputs_fn(void *ctx, int output, int64_t first, const snug_view *view,
                              snug_error *err) {
    (void)output;
    return rows_fn(ctx, first, view, err);
}

static snug_status fill_fn(void *ctx, int64_t first, int64_t n, const snug_view *dst,
                           snug_error *err) {
    (void)ctx, (void)first, (void)n, (void)dst, (void)err;
    return SNUG_OK;
}

/* Transformations take over what they are given. */
static snug_dataset *fresh(world *w) {
    snug_dataset *d = NULL;
    expect_ok(snug_dataset_range(w->engine, 0, 5, 1, &d, &w->err), &w->err);
    return d;
}

static snug_data_op *fresh_op(world *w) {
    snug_data_op *op = NULL;
    expect_ok(snug_data_op_create(w->engine, "tf.io.read_file", NULL, 0, &op, &w->err), &w->err);
    return op;
}

static snug_feed *fresh_feed(world *w) {
    snug_feed *f = NULL;
    expect_ok(snug_feed_from_memory(w->engine, &w->type, w->bytes, NULL, NULL, &f, &w->err),
              &w->err);
    return f;
}

static snug_dataset *fresh_files(world *w) {
    snug_dataset *d = NULL;
    const snug_element e = {.n = 1, .part[0] = w->name};
    expect_ok(snug_dataset_from_element(w->engine, &e, 0, &d, &w->err), &w->err);
    return d;
}

static snug_dataset *fresh_batches(world *w) {
    snug_dataset *d = NULL;
    expect_ok(snug_dataset_batch(fresh(w), 2, 0, &d, &w->err), &w->err);
    return d;
}

static snug_status call_fn(void *ctx, void *worker, const snug_element *in, snug_element *out,
                           snug_error *err) {
    (void)ctx, (void)worker, (void)in, (void)out;
    return err ? err->code : SNUG_E_INVALID;
}

static snug_status spec_fn(void *ctx, const snug_spec *in, snug_spec *out, snug_error *err) {
    (void)ctx, (void)err;
    *out = *in;
    return SNUG_OK;
}

static snug_status next_fn(void *cursor, snug_element *out, snug_error *err) {
    (void)cursor, (void)out, (void)err;
    return SNUG_E_END;
}

static snug_status make_fn(void *ctx, const snug_element *in, snug_dataset **out, snug_error *err) {
    (void)in, (void)out, (void)err;
    *out = fresh(ctx);
    return SNUG_OK;
}

static void make_graph(world *w) {
    snug_error *const err = &w->err;
    snug_value v, y;
    expect_ok(snug_graph_create(w->engine, &w->graph, err), err);
    expect_ok(snug_graph_input(w->graph, "x", &w->type, &w->value, err), err);
    expect_ok(snug_graph_variable(w->graph, "v", &w->type, &(snug_variable_options){0}, &v, err),
              err);
    expect_ok(snug_graph_param(w->graph, "p", 1, err), err);
    expect_ok(snug_graph_op(w->graph, "add", "", (snug_value[]){w->value, v}, 2, &y, 1, err), err);
    expect_ok(snug_graph_output(w->graph, "y", y, err), err);
    expect_ok(snug_plan_build(w->engine, w->graph, NULL, &w->plan, err), err);
    expect_ok(snug_session_create(w->engine, w->graph, NULL, &w->session, err), err);
}

static void make_recorded(world *w) {
    snug_error *const err = &w->err;
    snug_tensor *argument;
    expect_ok(snug_recorder_create(w->engine, &w->recorder, err), err);
    expect_ok(snug_tensor_copy(w->recorder, &w->type, w->bytes, &w->tensor, err), err);
    expect_ok(snug_variable_create(w->recorder, w->tensor, NULL, &w->variable, err), err);
    expect_ok(snug_layer_create(w->recorder, "Dense", "{\"units\":2}", &w->layer, err), err);
    expect_ok(snug_metric_create(w->recorder, "mae", "mse", &w->metric, err), err);
    expect_ok(snug_optimizer_create(w->recorder, "sgd", &w->optimizer, err), err);
    expect_ok(snug_trace_begin(w->recorder, &w->type, 1, &argument, &w->trace, err), err);
    expect_ok(snug_trace_end(w->trace, &argument, 1, err), err);
    snug_tensor_drop(argument);
    expect_ok(snug_tape_create(w->recorder, NULL, &w->tape, err), err);
    w->argument = (snug_argument){.kind = SNUG_ARG_TENSOR, .tensor = w->tensor};
}

static void make_data(world *w) {
    snug_error *const err = &w->err;
    char name[80];
    w->dataset = fresh(w);
    w->spec = *snug_dataset_spec(w->dataset);
    w->feed = fresh_feed(w);
    expect_ok(snug_iterator_create(w->dataset, &w->iterator, err), err);
    expect_ok(snug_program_create(w->engine, &w->spec, 1, &w->program, err), err);
    expect_ok(snug_data_op_create(w->engine, "tf.io.read_file", NULL, 0, &w->op, err), err);
    expect_ok(snug_datum_create(w->engine, &w->type, &w->datum, err), err);
    expect_ok(
        snug_datum_texts(w->engine, &(snug_type){SNUG_OPAQUE, 0, {0}}, &w->text, &w->name, err),
        err);
    w->name_spec = (snug_spec){.n = 1, .type[0] = w->name.type, .is_text[0] = 1};
    w->mapper = (snug_mapper){.ctx = w, .spec = spec_fn, .call = call_fn};
    w->generator = (snug_generator){.ctx = w, .spec = w->spec, .next = next_fn};
    w->expander = (snug_expander){.ctx = w, .spec = w->spec, .make = make_fn};
    w->element = (snug_element){.n = 1, .part[0] = w->datum};
    snprintf(name, sizeof name, "%s/records", w->path);
    expect_ok(snug_record_writer_create(w->engine, name, SNUG_PLAIN, &w->records, err), err);
    snprintf(name, sizeof name, "%s/array.npy", w->path);
    expect_ok(snug_npy_create(w->engine, name, &w->type, &w->npy, err), err);
    expect_ok(snug_callback_history(w->engine, &w->history, &w->callback, err), err);
}

/* A checkpoint that is being written, one that was, and weights in a file. */
static void make_files(world *w) {
    snug_error *const err = &w->err;
    char name[128];
    snprintf(name, sizeof name, "%s/file", w->path);
    expect_ok(snug_file_create(w->engine, name, &w->file, err), err);
    snprintf(name, sizeof name, "%s/checkpoint", w->path);
    expect_ok(snug_checkpoint_create(w->engine, name, &w->checkpoint, err), err);
    expect_ok(snug_checkpoint_begin(w->checkpoint, "a", &w->type, err), err);
    expect_ok(snug_checkpoint_append(w->checkpoint, w->bytes, 24, err), err);
    expect_ok(snug_checkpoint_commit(w->checkpoint, err), err);
    snug_checkpoint_writer_destroy(w->checkpoint);
    expect_ok(snug_checkpoint_open(w->engine, name, 0, &w->saved, err), err);
    expect_ok(snug_checkpoint_create(w->engine, name, &w->checkpoint, err), err);
    snprintf(name, sizeof name, "%s/weights.safetensors", w->path);
    expect_ok(snug_model_save_weights(w->model, name, err), err);
    expect_ok(snug_safetensors_open(w->engine, name, 0, &w->weights, err), err);
}

static void make_world(world *w) {
    snug_error *const err = &w->err;
    const snug_engine_options one = {.n_threads = 1};
    snprintf(w->path, sizeof w->path, "/tmp/snug-api-XXXXXX");
    assert_non_null(mkdtemp(w->path));
    assert_int_equal(chdir(w->path), 0); /* wrong texts are names of files, too */
    w->type = (snug_type){SNUG_F32, 2, {2, 3}};
    w->view = (snug_view){w->bytes, 24, w->type};
    w->text = (snug_text){"x", 1};
    w->writer = (snug_writer){NULL, write_fn};
    w->request = (snug_plan_request){.batch = 2};
    expect_ok(snug_engine_create(&one, &w->engine, err), err);
    make_graph(w);
    make_recorded(w);
    make_data(w);
    expect_ok(snug_model_create(w->engine, "m", &(snug_type){SNUG_F32, 1, {3}}, &w->model, err),
              err);
    expect_ok(snug_model_add(w->model, "Dense", "units=2", err), err);
    w->compile = (snug_compile){.optimizer = "sgd", .loss = "mse"};
    expect_ok(snug_model_compile(w->model, &w->compile, err), err);
    expect_ok(snug_feed_from_memory(w->engine, &(snug_type){SNUG_F32, 2, {2, 2}}, w->bytes, NULL,
                                    NULL, &w->y, err),
              err);
    w->fit = (snug_fit_options){.x = w->feed, .y = w->y};
    w->run = (snug_run_options){.x = w->feed, .y = w->y};
    make_files(w);
}

static void remove_folder(const char *path) {
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *d; (d = readdir(folder));)
        (void)remove(d->d_name); /* the process stands in it */
    closedir(folder);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(path), 0);
}

static void end_world(world *w) {
    w->callback.destroy(w->callback.ctx);
    snug_npy_destroy(w->npy);
    snug_file_destroy(w->file);
    snug_checkpoint_writer_destroy(w->checkpoint);
    snug_checkpoint_close(w->saved);
    snug_safetensors_close(w->weights);
    snug_record_writer_destroy(w->records);
    snug_datum_drop(&w->datum);
    snug_data_op_destroy(w->op);
    snug_program_drop(w->program);
    snug_iterator_destroy(w->iterator);
    snug_feed_destroy(w->y);
    snug_feed_destroy(w->feed);
    snug_datum_drop(&w->name);
    snug_dataset_drop(w->dataset);
    snug_tape_drop(w->tape);
    snug_trace_drop(w->trace);
    snug_optimizer_destroy(w->optimizer);
    snug_metric_destroy(w->metric);
    snug_layer_destroy(w->layer);
    snug_variable_drop(w->variable);
    snug_tensor_drop(w->tensor);
    snug_recorder_destroy(w->recorder);
    snug_session_destroy(w->session);
    snug_plan_destroy(w->plan);
    snug_graph_destroy(w->graph);
    snug_model_destroy(w->model);
    sn_test_engine_end(w->engine);
    remove_folder(w->path);
}

/* --- arguments that they do not take ---------------------------------------------------------- */
enum { N_WRONG = 5 };
static const long long wrong_numbers[N_WRONG] = {-1, 99, INT32_MAX, INT64_MAX, INT64_MIN};
static const double wrong_reals[N_WRONG] = {-1, 1e300, -1e300, (double)INFINITY, (double)NAN};
static const snug_type wrong_types[N_WRONG] = {
    {SNUG_F32, 99, {1}},
    {SNUG_F32, -3, {1}},
    {(snug_dtype)77, 1, {1}},
    {SNUG_F32, 2, {-5, 3}},
    {SNUG_F32, 3, {INT64_MAX, INT64_MAX, 3}},
};
static char long_text[5000];
static const char *const wrong_texts[N_WRONG] = {long_text, "", "%s%n", "\xff\xfe", "{"};

/* Argument `bad` is wrong in the v-th way; 0: it is NULL, where it is a pointer. */
#define P(i, ...)          (bad == (i) ? NULL : (__VA_ARGS__))
#define TYPE(i, good)      (bad != (i) ? (good) : v ? &wrong_types[v - 1] : NULL)
#define TEXT(i, good)      (bad != (i) ? (good) : v ? wrong_texts[v - 1] : NULL)
#define NUMBER(i, T, good) (bad == (i) && v ? (T)wrong_numbers[v - 1] : (T)(good))
#define REAL(i, good)      (bad == (i) && v ? wrong_reals[v - 1] : (good))
#define COUNT(i, good)     (bad == (i) ? (v ? -1 : 0) : (good))
#define SIZE(i, good)      (bad == (i) ? 0 : (size_t)(good))
#define WILD(i, good)      (bad == (i) ? (snug_value){12345} : (good))

#define ROW(f, n, ...)                                                                             \
    static void call_##f(world *w, int bad, int v) {                                               \
        (void)w, (void)bad, (void)v;                                                               \
        f(__VA_ARGS__);                                                                            \
    }
#include "api_rows.def"
#undef ROW

static const struct {
    const char *name;
    int n;
    void (*call)(world *w, int bad, int v);
} rows[] = {
#define ROW(f, n, ...) {#f, n, call_##f},
#include "api_rows.def"
#undef ROW
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* Where a child is: which argument, and how wrong. */
typedef struct {
    int bad, v;
} progress;

static void run_row(world *w, int row, progress *at) {
    for (; at->bad < rows[row].n; at->bad++, at->v = 0)
        for (; at->v <= N_WRONG; at->v++)
            rows[row].call(w, at->bad, at->v);
}

/* How many of its arguments ended the child. */
static int try_row(world *w, int row, progress *at) {
    int n_bad = 0;
    *at = (progress){0};
    while (at->bad < rows[row].n) {
        const pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 4; i++) /* cmocka has its own */
                signal((int[]){SIGSEGV, SIGBUS, SIGFPE, SIGABRT}[i], SIG_DFL);
            alarm(20);
            run_row(w, row, at);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status == 0)
            break;
        print_error("%s: argument %d, wrong in way %d: %s %d\n", rows[row].name, at->bad, at->v,
                    WIFSIGNALED(status) ? "signal" : "exit",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        n_bad++;
        at->v++;
    }
    return n_bad;
}

static void test_no_argument_ends_the_process(void **state) {
    (void)state;
    static world w;
    int n_bad = 0;
    memset(long_text, 'x', sizeof long_text - 1);
    progress *at =
        mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    make_world(&w);
    for (int row = 0; row < N_ROWS; row++)
        n_bad += try_row(&w, row, at);
    end_world(&w);
    munmap(at, sizeof *at);
    assert_int_equal(n_bad, 0);
}

/* --- no function is left out ------------------------------------------------------------------ */
static int has_row(const char *name) {
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return 1;
    return 0;
}

/* The names behind SNUG_API, up to the first parenthesis; #define SNUG_API is none. */
static int count_missing(char *text, const char *file) {
    int missing = 0;
    for (char *at = strstr(text, "\nSNUG_API "); at; at = strstr(at + 1, "\nSNUG_API ")) {
        char *end = strchr(at, '('), name[128];
        if (!end)
            break;
        char *begin = end;
        while (begin > at && begin[-1] != ' ' && begin[-1] != '*' && begin[-1] != '\n')
            begin--;
        snprintf(name, sizeof name, "%.*s", (int)(end - begin), begin);
        if (!has_row(name)) {
            print_error("%s: %s has no row in api_rows.def\n", file, name);
            missing++;
        }
    }
    return missing;
}

static void test_every_function_has_a_row(void **state) {
    (void)state;
    static char text[1 << 17];
    int missing = 0, n_headers = 0;
    DIR *folder = opendir(SNUG_TEST_DATA "/../include/snug");
    assert_non_null(folder);
    for (struct dirent *d; (d = readdir(folder));) {
        char path[600];
        snprintf(path, sizeof path, SNUG_TEST_DATA "/../include/snug/%s", d->d_name);
        FILE *f = strstr(d->d_name, ".h") ? fopen(path, "r") : NULL;
        if (!f)
            continue;
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
        n_headers++;
        missing += count_missing(text, d->d_name);
    }
    closedir(folder);
    assert_true(n_headers > 10);
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function_has_a_row),
        cmocka_unit_test(test_no_argument_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
