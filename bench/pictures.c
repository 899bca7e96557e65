/* pictures.c: how fast JPEGs can be decoded and resized with nothing around it: libjpeg-turbo and a
 * plain bilinear loop to 224 x 224 f32, on so many threads. What bench/data.py's row `pictures` is
 * measured against.
 *
 *     bench_pictures THREADS FILE...  ->  pictures per second, the best of three passes */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jpeglib.h>

enum { SIDE = 224, MAX_BYTES = 1 << 20, MAX_PIXELS = 1 << 22, MAX_THREADS = 64 };

static char **files;
static int n_files;
static atomic_int next_file;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int decode(const unsigned char *bytes, size_t n, unsigned char *rgb, int *w, int *h) {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, bytes, n);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d);
    *w = (int)d.output_width;
    *h = (int)d.output_height;
    const int fits = (long)*w * *h * 3 <= MAX_PIXELS;
    while (fits && d.output_scanline < d.output_height) {
        JSAMPROW row = rgb + (size_t)d.output_scanline * (size_t)*w * 3;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_destroy_decompress(&d);
    return fits;
}

/* Where the taps of an output column lie, and how much the right one counts. */
typedef struct {
    int left[SIDE], right[SIDE];
    float part[SIDE];
} taps;

static void find_taps(int n, taps *t) {
    for (int i = 0; i < SIDE; i++) {
        const float u = ((float)i + 0.5f) * (float)n / SIDE - 0.5f, at = u < 0 ? 0 : u;
        t->left[i] = (int)at;
        t->right[i] = t->left[i] + 1 < n ? t->left[i] + 1 : t->left[i];
        t->part[i] = at - (float)t->left[i];
    }
}

static void narrow(const unsigned char *row, const taps *t, float *out) {
    for (int x = 0; x < SIDE; x++) {
        const unsigned char *a = row + 3 * t->left[x], *b = row + 3 * t->right[x];
        for (int c = 0; c < 3; c++)
            out[3 * x + c] = (float)a[c] + (float)(b[c] - a[c]) * t->part[x];
    }
}

static void resize(const unsigned char *rgb, int w, int h, float *out) {
    taps across, down;
    float above[3 * SIDE], below[3 * SIDE];
    find_taps(w, &across);
    find_taps(h, &down);
    for (int y = 0; y < SIDE; y++) {
        narrow(rgb + (size_t)down.left[y] * (size_t)w * 3, &across, above);
        narrow(rgb + (size_t)down.right[y] * (size_t)w * 3, &across, below);
        for (int i = 0; i < 3 * SIDE; i++)
            out[y * 3 * SIDE + i] =
                (above[i] + (below[i] - above[i]) * down.part[y]) * (1.0f / 255);
    }
}

static void *work(void *none) {
    unsigned char *bytes = malloc(MAX_BYTES), *rgb = malloc(MAX_PIXELS);
    float *out = malloc(sizeof(float) * SIDE * SIDE * 3);
    for (int i; (i = atomic_fetch_add(&next_file, 1)) < n_files;) {
        FILE *f = fopen(files[i], "rb");
        int w, h;
        if (!f)
            continue;
        const size_t n = fread(bytes, 1, MAX_BYTES, f);
        fclose(f);
        if (decode(bytes, n, rgb, &w, &h))
            resize(rgb, w, h, out);
    }
    free(bytes);
    free(rgb);
    free(out);
    return none;
}

static double pass(int n_threads) {
    pthread_t threads[MAX_THREADS];
    const double begin = now();
    atomic_store(&next_file, 0);
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 0;
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return n_files / (now() - begin);
}

int main(int argc, char **argv) {
    const int n_threads = argc > 2 ? atoi(argv[1]) : 0;
    double best = 0;
    if (n_threads < 1 || n_threads > MAX_THREADS) {
        fprintf(stderr, "usage: bench_pictures THREADS FILE...\n");
        return 2;
    }
    files = argv + 2;
    n_files = argc - 2;
    for (int i = 0; i < 3; i++) {
        const double speed = pass(n_threads);
        best = speed > best ? speed : best;
    }
    printf("%.1f\n", best);
    return 0;
}
