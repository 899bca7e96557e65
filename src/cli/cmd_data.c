/* cmd_data.c: what is in a data set (inspect), and how fast a pipeline over it is (bench). */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_SECONDS 5
#define MAX_STAGES    64
#define MAX_CLASSES   1024

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static snug_status read_size(const cli *c, int64_t size[3], snug_error *err) {
    const char *text = c->args.text[OPT_input_shape];
    long long h = 224, w = 224, channels = 3;
    if (text && (sscanf(text, "%lld,%lld,%lld", &h, &w, &channels) < 2 || h < 1 || w < 1 ||
                 channels < 1 || channels > 4))
        return cli_fail(err, SNUG_E_INVALID, "--input-shape %s is no HEIGHT,WIDTH,CHANNELS", text);
    size[0] = h, size[1] = w, size[2] = channels;
    return SNUG_OK;
}

/* --- inspect ---------------------------------------------------------------------------------- */
static void print_part(const cli *c, const snug_spec *s, int i) {
    char text[192];
    const bool json = cli_given(c, OPT_json), known = s->type[i].rank >= 0;
    const char *type = s->is_text[i] ? "text"
                       : known       ? snug_type_print(&s->type[i], text, sizeof text)
                                     : snug_dtype_name(s->type[i].dtype);
    if (json)
        printf("%s\"%s\"", i ? "," : "", type);
    else
        printf("%s%s", i ? ", " : "", type);
}

/* How many elements have each label; reads names only. */
static snug_status count_labels(snug_dataset *d, int64_t *counts, int64_t *n, snug_error *err) {
    snug_iterator *it;
    snug_element e;
    snug_status status = snug_iterator_create(d, &it, err);
    if (status != SNUG_OK)
        return status;
    while ((status = snug_iterator_next(it, &e, err)) == SNUG_OK) {
        const int32_t label = *(const int32_t *)e.part[1].data;
        if (label >= 0 && label < MAX_CLASSES)
            counts[label]++;
        *n = label >= *n ? label + 1 : *n;
        snug_element_drop(&e);
    }
    snug_iterator_destroy(it);
    return status == SNUG_E_END ? SNUG_OK : status;
}

static snug_status print_labels(const cli *c, snug_dataset *d, snug_error *err) {
    int64_t counts[MAX_CLASSES] = {0}, n = 0;
    const bool json = cli_given(c, OPT_json);
    const snug_status status = count_labels(d, counts, &n, err);
    if (status != SNUG_OK)
        return status;
    printf(json ? ",\"classes\":[" : "classes   %lld:", (long long)n);
    for (int64_t i = 0; i < n && i < MAX_CLASSES; i++)
        printf(json ? "%s%lld" : "%s %lld", json && i ? "," : "", (long long)counts[i]);
    printf(json ? "]" : " elements\n");
    return SNUG_OK;
}

static snug_status inspect(cli *c, const cli_pipeline *p, snug_error *err) {
    const bool json = cli_given(c, OPT_json);
    snug_dataset *d;
    snug_status status = cli_open_source(c, p, &d, err);
    if (status != SNUG_OK)
        return status;
    const int64_t n = snug_dataset_cardinality(d);
    const snug_spec *s = snug_dataset_spec(d);
    if (json)
        printf("{\"elements\":%lld,\"parts\":[", (long long)n);
    else if (n >= 0)
        printf("elements  %lld\nparts     ", (long long)n);
    else
        printf("elements  not known without reading\nparts     ");
    for (int i = 0; i < s->n; i++)
        print_part(c, s, i);
    printf(json ? "]" : "\n");
    if (cli_is_folder(p->sources[0]))
        status = print_labels(c, d, err);
    if (json)
        printf("}\n");
    snug_dataset_drop(d);
    return status;
}

/* --- bench ------------------------------------------------------------------------------------ */
/* Seconds that one worker of the stage was busy: the largest is the bottleneck. */
static double load_of(const snug_stage_row *r) {
    return r->busy_seconds / (r->workers > 0 ? r->workers : 1);
}

static int find_bottleneck(const snug_stage_row *rows, int n) {
    int worst = 0;
    for (int i = 1; i < n; i++)
        if (load_of(&rows[i]) > load_of(&rows[worst]))
            worst = i;
    return worst;
}

static void print_json(const snug_stage_row *rows, int n, double seconds, int64_t elements) {
    printf("{\"seconds\":");
    cli_print_json_number(stdout, seconds);
    printf(",\"elements\":%lld,\"bottleneck\":\"%s\",\"stages\":[", (long long)elements,
           rows[find_bottleneck(rows, n)].stage);
    for (int i = 0; i < n; i++) {
        printf("%s{\"stage\":\"%s\",\"elements\":%lld,\"busy_seconds\":", i ? "," : "",
               rows[i].stage, (long long)rows[i].elements);
        cli_print_json_number(stdout, rows[i].busy_seconds);
        printf(",\"workers\":%d,\"depth\":%lld,\"peak_bytes\":%zu}", rows[i].workers,
               (long long)rows[i].depth, rows[i].peak_bytes);
    }
    printf("]}\n");
}

static void print_table(const snug_stage_row *rows, int n, double seconds, int64_t elements) {
    const int worst = find_bottleneck(rows, n);
    char bytes[32];
    printf("%-14s %12s %12s %9s %8s %6s %10s\n", "stage", "elements", "per second", "busy s",
           "workers", "depth", "held");
    for (int i = 0; i < n; i++)
        printf("%-14s %12lld %12.0f %9.3f %8d %6lld %10s%s\n", rows[i].stage,
               (long long)rows[i].elements, (double)rows[i].elements / seconds,
               rows[i].busy_seconds, rows[i].workers, (long long)rows[i].depth,
               snug_bytes_print(rows[i].peak_bytes, bytes, sizeof bytes),
               i == worst ? "  <- bottleneck" : "");
    printf("%lld elements in %.2f s: %.0f per second; the bottleneck is %s, busy %.0f %% of the "
           "time\n",
           (long long)elements, seconds, (double)elements / seconds, rows[worst].stage,
           fmin(100, 100 * load_of(&rows[worst]) / seconds));
}

static snug_status run_bench(const cli *c, snug_iterator *it, snug_error *err) {
    snug_stage_row rows[MAX_STAGES];
    snug_element e;
    int64_t elements = 0;
    snug_status status = SNUG_OK;
    const double start = now();
    while (status == SNUG_OK && now() - start < BENCH_SECONDS) {
        status = snug_iterator_next(it, &e, err);
        if (status != SNUG_OK)
            break;
        elements += e.n > 0 && e.part[0].type.rank > 0 ? e.part[0].type.dims[0] : 1;
        snug_element_drop(&e);
    }
    if (status != SNUG_OK && status != SNUG_E_END)
        return status;
    const double seconds = now() - start;
    const int n = snug_iterator_stages(it, rows, MAX_STAGES);
    (cli_given(c, OPT_json) ? print_json : print_table)(rows, n < MAX_STAGES ? n : MAX_STAGES,
                                                        seconds, elements);
    return SNUG_OK;
}

static snug_status bench(cli *c, const cli_pipeline *p, snug_error *err) {
    snug_dataset *d;
    snug_iterator *it = NULL;
    snug_status status = cli_open_pipeline(c, p, &d, err);
    if (status != SNUG_OK)
        return status;
    const size_t room = snug_room(c->engine);
    if (snug_budget_bytes(c->engine) > 0) /* nobody else is here but threads */
        snug_pipeline_limit(c->engine, room > 16 ? room - room / 16 : 1);
    status = snug_iterator_create(d, &it, err);
    if (status == SNUG_OK) {
        cli_catch_interrupt();
        snug_iterator_set_interrupt(it, cli_interrupted, NULL);
        status = run_bench(c, it, err);
    }
    snug_iterator_destroy(it);
    snug_dataset_drop(d);
    return status;
}

/* More sources than one: --data. */
snug_status cmd_data(cli *c, snug_error *err) {
    const char *what = c->args.operand[0], *sources[1 + CLI_MAX_REPEAT] = {c->args.operand[1]};
    const int more = c->args.n_all[OPT_data];
    cli_pipeline p = {.sources = sources, .n_sources = 1 + more, .batch = 32};
    for (int i = 0; i < more; i++)
        sources[1 + i] = c->args.all[OPT_data][i];
    snug_status status = cli_integer(c, OPT_batch, 1, INT64_MAX, &p.batch, err);
    if (status == SNUG_OK && more + 1 > CLI_MAX_REPEAT)
        status = cli_fail(err, SNUG_E_INVALID, "at most %d sources", CLI_MAX_REPEAT);
    if (status == SNUG_OK)
        status = read_size(c, p.size, err);
    if (status != SNUG_OK)
        return status;
    if (strcmp(what, "inspect") == 0)
        return inspect(c, &p, err);
    if (strcmp(what, "bench") == 0)
        return bench(c, &p, err);
    return cli_fail(err, SNUG_E_INVALID, "data inspect or data bench, not data %s", what);
}
