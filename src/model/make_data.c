/* make_data.c: data sets made on the spot, the same bytes for the same seed.
 *
 * shapes: 32x32 RGB pictures of 8 classes. A shape with random place, size, rotation and colour is
 * drawn over a noisy background of another colour with clutter (short strokes and dots); brightness
 * is jittered, so that no pixel alone says anything: a linear model stays below 70 %. blobs: points
 * of 16 numbers around 6 random centres, with overlap.
 *
 * Each picture draws from its own random stream, (seed, split, index), so any part of a set can be
 * made alone. Only + - * / and sqrt are used on the way: the same bytes on every machine. */
#include "base/file.h"
#include "base/rng.h"
#include "base/size.h"
#include "memory/engine.h"

#include <errno.h>
#include <math.h>
#include <snug/model.h>
#include <stdio.h>
#include <string.h>

#define SIDE          32
#define N_SHAPES      8
#define PICTURE_BYTES (SIDE * SIDE * 3)
#define BLOB_DIMS     16
#define N_BLOBS       6

/* --- random numbers of one example ------------------------------------------------------------ */

typedef struct {
    uint64_t key, next;
} dice;

static float uniform(dice *d, float low, float high) {
    float u;
    sn_random_fill_f32(SN_RANDOM_UNIFORM, d->key, d->next++, 1, &u);
    return low + u * (high - low);
}

static float normal(dice *d) {
    float u;
    sn_random_fill_f32(SN_RANDOM_NORMAL, d->key, d->next++, 1, &u);
    return u;
}

/* n of them at once, which costs a quarter. */
static void normals(dice *d, size_t n, float *out) {
    sn_random_fill_f32(SN_RANDOM_NORMAL, d->key, d->next, n, out);
    d->next += n;
}

/* A direction, every angle as likely: a point of the disc, moved to its rim. No sine: the C
 * library's may differ in the last bit from machine to machine. */
static void direction(dice *d, float *x, float *y) {
    float r;
    do {
        *x = uniform(d, -1, 1);
        *y = uniform(d, -1, 1);
        r = *x * *x + *y * *y;
    } while (r > 1 || r < 0.01f);
    *x /= sqrtf(r);
    *y /= sqrtf(r);
}

/* --- shapes: whether a point in the shape's own frame, unit size, is inside ------------------- */

static bool in_disc(float x, float y) {
    return x * x + y * y < 0.8f;
}

static bool in_square(float x, float y) {
    return fabsf(x) < 0.75f && fabsf(y) < 0.75f;
}

static bool in_triangle(float x, float y) {
    return y > -0.6f && y < 1.0f - 1.7f * fabsf(x);
}

static bool in_cross(float x, float y) {
    return (fabsf(x) < 0.28f && fabsf(y) < 0.95f) || (fabsf(y) < 0.28f && fabsf(x) < 0.95f);
}

static bool in_ring(float x, float y) {
    const float r = x * x + y * y;
    return r < 0.9f && r > 0.35f;
}

static bool in_bar(float x, float y) {
    return fabsf(x) < 0.25f && fabsf(y) < 1.0f;
}

static bool in_moon(float x, float y) {
    return x * x + y * y < 0.9f && (x - 0.5f) * (x - 0.5f) + y * y > 0.6f;
}

static bool in_corner(float x, float y) {
    return fabsf(x) < 0.85f && fabsf(y) < 0.85f && (x < -0.3f || y < -0.3f);
}

static bool (*const inside[N_SHAPES])(float x, float y) = {
    in_disc, in_square, in_triangle, in_cross, in_ring, in_bar, in_moon, in_corner};

/* --- drawing ---------------------------------------------------------------------------------- */

typedef struct {
    float pixel[SIDE * SIDE][3];
} canvas;

static void draw_background(canvas *c, dice *d, const float *color) {
    normals(d, PICTURE_BYTES, &c->pixel[0][0]);
    for (int i = 0; i < SIDE * SIDE; i++)
        for (int k = 0; k < 3; k++)
            c->pixel[i][k] = color[k] + 0.07f * c->pixel[i][k];
}

static void draw_stroke(canvas *c, dice *d) {
    const float color[3] = {uniform(d, 0, 1), uniform(d, 0, 1), uniform(d, 0, 1)};
    float x = uniform(d, 0, SIDE), y = uniform(d, 0, SIDE), dx, dy;
    const float length = uniform(d, 1, 7);
    direction(d, &dx, &dy);
    for (float t = 0; t < length; t += 0.5f, x += 0.5f * dx, y += 0.5f * dy) {
        if (x < 0 || y < 0 || x >= SIDE || y >= SIDE)
            break;
        memcpy(c->pixel[(int)y * SIDE + (int)x], color, sizeof color);
    }
}

/* Four samples a pixel soften the edge. */
static void draw_shape(canvas *c, dice *d, int shape, const float *color) {
    const float size = uniform(d, 9, 13), cx = uniform(d, 11, SIDE - 11),
                cy = uniform(d, 11, SIDE - 11);
    float co, si;
    direction(d, &co, &si);
    co /= size;
    si /= size;
    for (int i = 0; i < SIDE * SIDE; i++) {
        float cover = 0;
        for (int s = 0; s < 4; s++) {
            const float x = (float)(i % SIDE) + 0.25f + 0.5f * (float)(s & 1) - cx;
            const float y = (float)(i / SIDE) + 0.25f + 0.5f * (float)(s >> 1) - cy;
            cover += inside[shape](co * x + si * y, co * y - si * x) ? 0.25f : 0.0f;
        }
        for (int k = 0; k < 3; k++)
            c->pixel[i][k] += cover * (color[k] - c->pixel[i][k]);
    }
}

static void finish_picture(const canvas *c, dice *d, unsigned char *out) {
    const float gain = uniform(d, 0.75f, 1.25f), shift = uniform(d, -0.1f, 0.1f);
    float noise[PICTURE_BYTES];
    normals(d, PICTURE_BYTES, noise);
    for (int i = 0; i < PICTURE_BYTES; i++) {
        const float v = 255.0f * (gain * c->pixel[i / 3][i % 3] + shift + 0.03f * noise[i]);
        out[i] = (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

/* A colour at least 0.6 away from `other` in some channel, so that the shape can be seen. */
static void pick_color(dice *d, const float *other, float *color) {
    for (int tries = 0; tries < 100; tries++) {
        float apart = 0;
        for (int k = 0; k < 3; k++) {
            color[k] = uniform(d, 0, 1);
            apart = fmaxf(apart, fabsf(color[k] - other[k]));
        }
        if (apart > 0.6f)
            return;
    }
}

static int make_picture(uint64_t key, void *out) {
    dice d = {.key = key};
    canvas c;
    const int shape = (int)uniform(&d, 0, (float)N_SHAPES) % N_SHAPES;
    const float ground[3] = {uniform(&d, 0, 1), uniform(&d, 0, 1), uniform(&d, 0, 1)};
    float color[3] = {0, 0, 0};
    pick_color(&d, ground, color);
    draw_background(&c, &d, ground);
    for (int n = (int)uniform(&d, 2, 5); n > 0; n--)
        draw_stroke(&c, &d);
    draw_shape(&c, &d, shape, color);
    for (int n = (int)uniform(&d, 0, 2); n > 0; n--)
        draw_stroke(&c, &d);
    finish_picture(&c, &d, out);
    return shape;
}

static int make_blob(uint64_t key, void *out) {
    dice d = {.key = key};
    float *x = out;
    const int blob = (int)uniform(&d, 0, (float)N_BLOBS) % N_BLOBS;
    dice centre = {.key = sn_rng_key(977, (uint64_t)blob)};
    for (int i = 0; i < BLOB_DIMS; i++)
        x[i] = normal(&centre) + 0.6f * normal(&d);
    return blob;
}

/* --- sets ------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    snug_type row;                        /* of one example */
    int (*make)(uint64_t key, void *out); /* writes the example, returns its label */
} data_kind;

static const data_kind kinds[] = {
    {"shapes", {SNUG_U8, 3, {SIDE, SIDE, 3}}, make_picture},
    {"blobs", {SNUG_F32, 1, {BLOB_DIMS}}, make_blob},
};

typedef struct {
    snug_engine *engine;
    const data_kind *kind;
    const char *folder;
    uint64_t seed;
} data_job;

static snug_status open_array(const data_job *j, const char *name, const snug_type *type,
                              snug_npy_writer **out, snug_error *err) {
    char path[512];
    if ((size_t)snprintf(path, sizeof path, "%s/%s.npy", j->folder, name) >= sizeof path)
        return sn_fail(err, SNUG_E_INVALID, "the folder's name is longer than 490 bytes");
    return snug_npy_create(j->engine, path, type, out, err);
}

static snug_status write_rows(const data_job *j, int split, int64_t n, snug_npy_writer *x,
                              snug_npy_writer *y, snug_error *err) {
    union {
        unsigned char picture[PICTURE_BYTES];
        float point[BLOB_DIMS];
    } row;
    const size_t bytes = j->kind->row.dtype == SNUG_U8 ? sizeof row.picture : sizeof row.point;
    const uint64_t stream = sn_rng_key(j->seed, (uint64_t)split);
    for (int64_t i = 0; i < n; i++) {
        const int32_t label = j->kind->make(sn_rng_key(stream, (uint64_t)i), &row);
        SNUG_TRY(snug_npy_append(x, &row, bytes, err));
        SNUG_TRY(snug_npy_append(y, &label, sizeof label, err));
    }
    SNUG_TRY(snug_npy_commit(x, err));
    return snug_npy_commit(y, err);
}

static snug_status write_split(const data_job *j, int split, int64_t n, snug_error *err) {
    static const char *const names[2][2] = {{"x_train", "y_train"}, {"x_test", "y_test"}};
    snug_npy_writer *x = NULL, *y = NULL;
    snug_type tx = {.dtype = j->kind->row.dtype, .rank = j->kind->row.rank + 1, .dims = {n}};
    const snug_type ty = {.dtype = SNUG_I32, .rank = 1, .dims = {n}};
    memcpy(tx.dims + 1, j->kind->row.dims, (size_t)j->kind->row.rank * sizeof tx.dims[0]);
    snug_status status = open_array(j, names[split][0], &tx, &x, err);
    if (status == SNUG_OK)
        status = open_array(j, names[split][1], &ty, &y, err);
    if (status == SNUG_OK)
        status = write_rows(j, split, n, x, y, err);
    snug_npy_destroy(y);
    snug_npy_destroy(x);
    return status;
}

snug_status snug_make_data(snug_engine *engine, const char *kind, const char *folder,
                           const snug_make_data_options *options, snug_error *err) {
    SNUG_NEEDS(err, engine && kind && folder);
    const snug_make_data_options o = options ? *options : (snug_make_data_options){0, 0, 0};
    data_job job = {.engine = engine, .folder = folder, .seed = o.seed};
    const snug_io *io = sn_engine_io(engine);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, kind) == 0)
            job.kind = &kinds[i];
    if (!job.kind)
        return sn_fail(err, SNUG_E_INVALID, "there is no data set '%s'; there are: shapes, blobs",
                       kind);
    if (o.n_train < 0 || o.n_test < 0)
        return sn_fail(err, SNUG_E_INVALID, "a data set cannot have %lld examples",
                       (long long)(o.n_train < 0 ? o.n_train : o.n_test));
    const int made = io->mkdir(io->ctx, folder, 0777);
    if (made < 0 &&
        made != -EEXIST) { /* what exists and is no folder, the files' own errors tell */
        char reason[128];
        return sn_fail_by(
            err, SNUG_E_IO, sn_file_cause(-made),
            "cannot make the folder %s: %s; make the folder above it, or name another", folder,
            strerror_r(-made, reason, sizeof reason));
    }
    SNUG_TRY(write_split(&job, 0, o.n_train ? o.n_train : 8000, err));
    return write_split(&job, 1, o.n_test ? o.n_test : 2000, err);
}
