/* remat.c: the recompute search on its own, for files of operators.
 *
 *     remat FILE --budget GiB [--seconds S] [--check]
 *
 * A file is `N E fixed_bytes loss_index`, then N lines `bytes cost`, then E lines `u v`: v reads u. Prints the schedule,
 * one `compute i` or `free i` a line; overhead, peak and seconds go to stderr. Exit code 3 when the budget is too small.
 * Seconds are turned into a number of operations beforehand, so that the answer does not depend on the machine's mood. */
#include "memory/engine.h"
#include "plan/remat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GIB 1073741824.0

typedef struct {
    uint32_t *from, *to;
    uint32_t n;
} edges;

typedef struct {
    const char *path;
    double budget, seconds;
    int check;
} options;

/* Operators in an order that respects the edges (the file's where it does): name[i] is the file's number of operator i. */
typedef struct {
    sn_remat_problem problem;
    sn_remat_op *ops;
    uint32_t *inputs, *name;
} program;

static void *take(size_t n, size_t bytes) {
    void *p = calloc(n + 1, bytes);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

static int read_head(FILE *f, program *pr, edges *e) {
    unsigned long long fixed;
    long long loss;
    if (fscanf(f, "%u %u %llu %lld", &pr->problem.n, &e->n, &fixed, &loss) != 4 ||
        pr->problem.n > 10000000 || e->n > 100000000)
        return 0;
    pr->problem.fixed_bytes = (size_t)fixed;
    return 1;
}

static int read_ops(FILE *f, uint32_t n, sn_remat_op *ops) {
    for (uint32_t i = 0; i < n; i++) {
        unsigned long long bytes;
        ops[i].not_after = ops[i].takes = SN_REMAT_NONE;
        if (fscanf(f, "%llu %lf", &bytes, &ops[i].cost) != 2)
            return 0;
        ops[i].bytes = (size_t)bytes;
    }
    return 1;
}

static int read_edges(FILE *f, uint32_t n, edges *e) {
    for (uint32_t k = 0; k < e->n; k++)
        if (fscanf(f, "%u %u", &e->from[k], &e->to[k]) != 2 || e->from[k] >= n || e->to[k] >= n)
            return 0;
    return 1;
}

/* The smallest ready operator first: the file's own order where that respects the edges. */
static int sort_ops(uint32_t n, const edges *e, uint32_t *place, uint32_t *name) {
    uint32_t *missing = take(n, sizeof *missing), done = 0;
    for (uint32_t k = 0; k < e->n; k++)
        missing[e->to[k]]++;
    for (uint32_t next = 0; done < n;) {
        while (next < n && (missing[next] > 0 || place[next] != SN_REMAT_NONE))
            next++;
        if (next == n)
            break;
        place[next] = done;
        name[done++] = next;
        uint32_t smallest = next;
        for (uint32_t k = 0; k < e->n; k++)
            if (e->from[k] == next && --missing[e->to[k]] == 0 && e->to[k] < smallest)
                smallest = e->to[k];
        next = smallest;
    }
    free(missing);
    return done == n;
}

/* Operators, inputs and names in the order found. */
static void arrange(program *pr, const sn_remat_op *raw, const edges *e, const uint32_t *place) {
    const uint32_t n = pr->problem.n;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        pr->ops[i] = raw[pr->name[i]];
    for (uint32_t k = 0; k < e->n; k++)
        pr->ops[place[e->to[k]]].n_in++;
    for (uint32_t i = 0; i < n; i++) {
        pr->ops[i].in = at;
        at += pr->ops[i].n_in;
        pr->ops[i].n_in = 0;
    }
    for (uint32_t k = 0; k < e->n; k++) {
        sn_remat_op *o = &pr->ops[place[e->to[k]]];
        pr->inputs[o->in + o->n_in++] = place[e->from[k]];
    }
    pr->problem.ops = pr->ops;
    pr->problem.inputs = pr->inputs;
}

static int read_rest(FILE *f, program *pr, edges *e) {
    const uint32_t n = pr->problem.n;
    sn_remat_op *raw = take(n, sizeof *raw);
    uint32_t *place = take(n, sizeof *place);
    e->from = take(e->n, sizeof *e->from);
    e->to = take(e->n, sizeof *e->to);
    pr->ops = take(n, sizeof *pr->ops);
    pr->name = take(n, sizeof *pr->name);
    pr->inputs = take(e->n, sizeof *pr->inputs);
    memset(place, 0xff, n * sizeof *place);
    const int ok = read_ops(f, n, raw) && read_edges(f, n, e) && sort_ops(n, e, place, pr->name);
    if (ok)
        arrange(pr, raw, e, place);
    free(raw);
    free(place);
    free(e->from);
    free(e->to);
    return ok;
}

static int read_program(const char *path, program *pr) {
    edges e = {0};
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        return 0;
    }
    const int ok = read_head(f, pr, &e) && read_rest(f, pr, &e);
    if (!ok)
        fprintf(stderr,
                "%s: want N E fixed loss, N lines `bytes cost`, E lines `u v` without a cycle\n",
                path);
    fclose(f);
    return ok;
}

/* --- the rules, replayed ---------------------------------------------------------------------- */
static const char *check_event(const program *pr, const sn_remat_event *ev, char *resident,
                               size_t *used) {
    const sn_remat_op *o = &pr->ops[ev->op];
    if (ev->frees) {
        if (!resident[ev->op])
            return "frees what is not there";
        resident[ev->op] = 0;
        *used -= o->bytes;
        return NULL;
    }
    for (uint32_t k = 0; k < o->n_in; k++)
        if (!resident[pr->inputs[o->in + k]])
            return "an input is missing";
    if (resident[ev->op])
        return "computes what is there";
    resident[ev->op] = 1;
    *used += o->bytes;
    return NULL;
}

static int check(const program *pr, const sn_remat_result *r, size_t budget) {
    const uint32_t n = pr->problem.n;
    char *resident = take(n, 1), *seen = take(n, 1);
    const char *wrong = NULL;
    size_t used = pr->problem.fixed_bytes;
    uint32_t at = 0;
    double cost = 0;
    for (; at < r->n_events && !wrong; at++) {
        const sn_remat_event *ev = &r->events[at];
        wrong = check_event(pr, ev, resident, &used);
        seen[ev->op] = 1;
        cost += ev->frees ? 0 : pr->ops[ev->op].cost;
        if (!wrong && used > budget)
            wrong = "exceeds the budget";
    }
    for (uint32_t i = 0; i < n && !wrong; i++)
        if (!seen[i])
            wrong = "leaves an operator out";
    if (!wrong && (cost > r->cost * (1 + 1e-9) || cost < r->cost * (1 - 1e-9)))
        wrong = "costs something else";
    free(resident);
    free(seen);
    fprintf(stderr, wrong ? "check: event %u %s\n" : "check: %u events, legal%s\n", at,
            wrong ? wrong : "");
    return !wrong;
}

/* --- the tool --------------------------------------------------------------------------------- */
static void print_result(const program *pr, const sn_remat_result *r, double seconds) {
    double base = 0;
    for (uint32_t i = 0; i < pr->problem.n; i++)
        base += pr->ops[i].cost;
    for (uint32_t i = 0; i < r->n_events; i++)
        printf("%s %u\n", r->events[i].frees ? "free" : "compute", pr->name[r->events[i].op]);
    fprintf(stderr, "overhead %.4f %%, peak %.4f GiB, %u events, %.2f s\n",
            base > 0 ? 100 * (r->cost / base - 1) : 0, (double)r->peak / GIB, r->n_events, seconds);
}

static int run(const program *pr, const options *o) {
    const size_t budget = (size_t)(o->budget * GIB);
    const sn_remat_limits limits = {.budget = budget,
                                    .work = (uint64_t)(o->seconds * (double)SN_REMAT_WORK_SECOND)};
    sn_remat_result r;
    snug_engine *e = NULL;
    sn_zone *z = NULL;
    snug_error err;
    int code = 0;
    const clock_t start = clock();
    if (snug_engine_create(NULL, &e, &err) != SNUG_OK ||
        sn_zone_create(e, SN_MEM_PLAN, &z, &err) != SNUG_OK ||
        sn_remat(z, &pr->problem, &limits, &r, &err) != SNUG_OK) {
        fprintf(stderr, "%s\n", err.text);
        code = 1;
    } else if (r.fits) {
        print_result(pr, &r, (double)(clock() - start) / CLOCKS_PER_SEC);
        code = !o->check || check(pr, &r, budget) ? 0 : 1;
    } else {
        fprintf(stderr, "needs %.4f GiB; below %.4f GiB nothing can do\n", (double)r.floor / GIB,
                (double)r.bound / GIB);
        code = 3;
    }
    sn_zone_destroy(z);
    snug_engine_destroy(e);
    return code;
}

static int read_options(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--budget") == 0 && i + 1 < argc)
            o->budget = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            o->seconds = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--check") == 0)
            o->check = 1;
        else if (!o->path && argv[i][0] != '-')
            o->path = argv[i];
        else
            return 0;
    }
    return o->path && o->budget > 0 && o->budget < 1e9 && o->seconds >= 0 && o->seconds < 1e9;
}

int main(int argc, char **argv) {
    options o = {.seconds = 40};
    program pr = {0};
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: remat FILE --budget GiB [--seconds S] [--check]\n");
        return 2;
    }
    const int code = read_program(o.path, &pr) ? run(&pr, &o) : 1;
    free(pr.ops);
    free(pr.inputs);
    free(pr.name);
    return code;
}
