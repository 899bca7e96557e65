/* lapack.c: what a LAPACK takes and how fast it is, whichever file it is in. usage: bench/lapack [LIBRARY] [LARGEST]
 *
 *     build/bench/lapack                                       # liblapack.so.3 of this machine
 *     apt-get download libopenblas0-serial && dpkg -x libopenblas0-serial*.deb there
 *     LD_LIBRARY_PATH=there/usr/lib/x86_64-linux-gnu/openblas-serial build/bench/lapack liblapack.so.3
 *
 * Of each size: resident pages of files and others, threads and address space of the process once
 * all problems of that size were solved; milliseconds, the fastest of some; whether the bits are the
 * same again, with other bytes in the workspace, and 20 bytes (f32) or 8 (f64) further on. */
#include "kernels/cpu/lapack_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    int kind, n, is_f64, n_work, n_indices;
    char *a, *b, *c, *values, *work; /* a, b, c: n x n */
    int indices[65536];
} problem;

static sn_lapack_library functions;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *found(void *file, const char *kind, const char *name) {
    char text[32];
    snprintf(text, sizeof text, "%s%s", kind, name);
    void *f = dlsym(file, text);
    if (!f)
        fprintf(stderr, "no %s\n", text), exit(1);
    return f;
}

static void find_all(void *file) {
    for (int i = 0; i < 2; i++) {
        const char *kind = i ? "d" : "s";
        functions.eigh[i] = (sn_lapack_eigh *)found(file, kind, "syevd_");
        functions.svd[i] = (sn_lapack_svd *)found(file, kind, "gesdd_");
        functions.lq[i] = (sn_lapack_lq *)found(file, kind, "gelqf_");
        functions.rows_of_q[i] = (sn_lapack_rows_of_q *)found(file, kind, "orglq_");
        functions.lstsq[i] = (sn_lapack_lstsq *)found(file, kind, "gelsd_");
        functions.lu[i] = (sn_lapack_lu *)found(file, kind, "getrf2_");
        functions.cholesky[i] = (sn_lapack_cholesky *)found(file, kind, "potrf2_");
        functions.triangle[i] = (sn_lapack_triangle *)found(file, kind, "trsm_");
    }
}

static void show_process(const char *when) {
    char line[256];
    long file = 0, others = 0, threads = 0, address = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "RssFile: %ld", &file);
        sscanf(line, "RssAnon: %ld", &others);
        sscanf(line, "Threads: %ld", &threads);
        sscanf(line, "VmSize: %ld", &address);
    }
    if (f)
        fclose(f);
    printf("%-12s files %6ld KiB, others %6ld KiB, address space %7ld KiB, threads %ld\n", when,
           file, others, address, threads);
}

static void call(problem *p) {
    const int n = p->n, i = p->is_f64, three = 3;
    int state = 0, rank;
    const double cut = i ? 1e-12 : 0; /* the bytes of a float 0 are those of a double 0 */
    const float one32 = 1;
    const double one64 = 1;
    const void *const unit = i ? (const void *)&one64 : &one32;
    if (p->kind == 0)
        functions.eigh[i]("V", "U", &n, p->a, &n, p->values, p->work, &p->n_work, p->indices,
                          &p->n_indices, &state, 1, 1);
    if (p->kind == 1)
        functions.svd[i]("S", &n, &n, p->a, &n, p->values, p->b, &n, p->c, &n, p->work, &p->n_work,
                         p->indices, &state, 1);
    if (p->kind == 2) {
        functions.lq[i](&n, &n, p->a, &n, p->values, p->work, &p->n_work, &state);
        functions.rows_of_q[i](&n, &n, &n, p->a, &n, p->values, p->work, &p->n_work, &state);
    }
    if (p->kind == 3)
        functions.lstsq[i](&n, &n, &three, p->a, &n, p->b, &n, p->values, &cut, &rank, p->work,
                           &p->n_work, p->indices, &state);
    if (p->kind == 4 || p->kind == 6)
        functions.lu[i](&n, &n, p->a, &n, p->indices, &state);
    if (p->kind == 5)
        functions.cholesky[i]("U", &n, p->a, &n, &state, 1);
    for (int k = 0; k < 2 && p->kind == 6; k++)
        functions.triangle[i]("R", k ? "L" : "U", "N", k ? "U" : "N", &n, &n, unit, p->a, &n, p->b,
                              &n, 1, 1, 1, 1);
    if (state != 0)
        printf("state %d\n", state);
}

static unsigned long long bits_of(const char *bytes, size_t n, unsigned long long h) {
    for (size_t k = 0; k < n; k++)
        h = (h ^ (unsigned char)bytes[k]) * 1099511628211ull;
    return h;
}

static void fill(problem *p, const double *numbers, size_t area) {
    for (size_t k = 0; k < area; k++)
        if (p->is_f64)
            ((double *)(void *)p->a)[k] = ((double *)(void *)p->b)[k] = numbers[k];
        else
            ((float *)(void *)p->a)[k] = ((float *)(void *)p->b)[k] = (float)numbers[k];
}

static void measure(int kind, int is_f64, int n) {
    static const char *const names[] = {"eigh", "svd", "qr", "lstsq", "lu", "cholesky", "solve"};
    const bool asks = kind < 4;
    const size_t size = is_f64 ? 8 : 4, area = (size_t)n * (size_t)n, shift = is_f64 ? 8 : 20;
    static problem p;
    double best = 1e9, all = 0;
    unsigned long long first = 0;
    int same = 1, times = 0;
    char *const block = malloc((3 * area + (size_t)n) * size + 64);
    double *numbers = malloc(area * sizeof *numbers);
    p = (problem){.kind = kind, .n = n, .is_f64 = is_f64, .n_work = -1, .n_indices = -1};
    double room[2] = {0};
    float single;
    p.a = p.b = p.c = p.values = p.work = (char *)room;
    if (asks)
        call(&p);
    memcpy(&single, room, sizeof single);
    p.n_work = (int)(is_f64 ? room[0] : (double)single) + 1;
    p.n_indices = p.indices[0] > 0 ? p.indices[0] : 8 * n;
    p.work = malloc((size_t)p.n_work * size);
    for (size_t k = 0; k < area; k++)
        numbers[k] = (double)((k * 2654435761u) % 10007) / 10007 - 0.5 +
                     (kind == 5 && k % ((size_t)n + 1) == 0 ? n : 0); /* it has to be positive */
    for (; (all < 0.3 && times < 1000) || times < 2; times++) {
        p.a = block + (times % 2 ? shift : 0);
        p.b = p.a + area * size;
        p.c = p.b + area * size;
        p.values = p.c + area * size;
        fill(&p, numbers, area);
        memset(p.work, times % 2 ? 0xff : 0x11, (size_t)p.n_work * size);
        const double start = seconds();
        call(&p);
        const double took = seconds() - start;
        best = took < best ? took : best;
        all += took;
        const unsigned long long bits = bits_of(
            kind == 3 || kind == 6 ? p.b : p.a, (size_t)(kind == 3 ? 3 : n) * (size_t)n * size,
            bits_of(p.values, asks ? (size_t)n * size : 0, 14695981039346656037ull));
        first = times == 0 ? bits : first;
        same = same && bits == first;
    }
    printf("%-8s %s n %4d: %9.3f ms, work %8.1f KiB, bits %s\n", names[kind],
           is_f64 ? "f64" : "f32", n, best * 1e3, (double)p.n_work * (double)size / 1024,
           same ? "same" : "OTHERS");
    free(p.work);
    free(numbers);
    free(block);
}

int main(int argc, char **argv) {
    const int largest = argc > 2 ? atoi(argv[2]) : 1024;
    static const int sizes[] = {8, 64, 256, 1024};
    show_process("start");
    void *file = dlopen(argc > 1 ? argv[1] : "liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    find_all(file);
    show_process("loaded");
    for (int s = 0; s < 4 && sizes[s] <= largest; s++) {
        char when[16];
        for (int kind = 0; kind < 7; kind++)
            for (int is_f64 = 0; is_f64 < 2; is_f64++)
                measure(kind, is_f64, sizes[s]);
        snprintf(when, sizeof when, "n %d", sizes[s]);
        show_process(when);
    }
    return 0;
}
