/* augment.c: pictures changed at random (augment.h). Each change draws numbers of its own from the
 * element's key, so that adding one to the list changes none of the others. */
#include "data/augment.h"

#include "base/real.h"
#include "base/rng.h"

#include <string.h>

enum { DRAW_FLIP, DRAW_UP_DOWN, DRAW_ROT, DRAW_CROP_Y, DRAW_CROP_X, DRAW_BRIGHT, DRAW_CONTRAST };

/* --- words ------------------------------------------------------------------------------------ */
static bool is_word(const char *text, size_t n, const char *word) {
    return strlen(word) == n && strncmp(text, word, n) == 0;
}

static bool read_word(const char *text, size_t n, double value, sn_picture_size size,
                      sn_augment *a) {
    const int64_t least = size.height < size.width ? size.height : size.width;
    if (is_word(text, n, "flip"))
        a->flip = true;
    else if (is_word(text, n, "flip_up_down"))
        a->flip_up_down = true;
    else if (is_word(text, n, "rot90"))
        a->rot90 = size.height == size.width;
    else if (is_word(text, n, "crop"))
        a->crop = value <= 0 ? least / 8 : value < (double)least ? (int64_t)value : least;
    else if (is_word(text, n, "brightness"))
        a->brightness = value > 0 ? value : 0.1;
    else if (is_word(text, n, "contrast"))
        a->contrast = value > 0 ? value : 0.1;
    else
        return false;
    return a->crop < least;
}

snug_status sn_augment_parse(const char *text, sn_picture_size size, sn_augment *out,
                             snug_error *err) {
    sn_augment a = {0};
    for (const char *at = text; at && *at;) {
        const size_t whole = strcspn(at, ","), n = strcspn(at, ":,");
        const char *end;
        double value = 0;
        if (at[n] == ':' && !sn_real_parse(at + n + 1, &end, &value))
            value = 0;
        if (!read_word(at, n, value, size, &a))
            return sn_fail(err, SNUG_E_INVALID,
                           "augment: '%.*s' is none of flip, flip_up_down, rot90, crop:N, "
                           "brightness:D, contrast:D, or more than the picture",
                           (int)whole, at);
        at += whole + (at[whole] == ',');
    }
    *out = a;
    return SNUG_OK;
}

/* --- changes ---------------------------------------------------------------------------------- */
/* In [0, 1). */
static double draw(uint64_t key, unsigned which) {
    const sn_philox_block b = sn_philox(key, 0, which);
    return (double)b.v[0] * 0x1p-32;
}

static void swap_pixels(float *a, float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

static void flip(sn_picture_size s, float *p) {
    for (int64_t y = 0; y < s.height; y++)
        for (int64_t x = 0; x < s.width / 2; x++)
            swap_pixels(p + (y * s.width + x) * s.channels,
                        p + (y * s.width + s.width - 1 - x) * s.channels, s.channels);
}

static void flip_up_down(sn_picture_size s, float *p) {
    const int64_t row = s.width * s.channels;
    for (int64_t y = 0; y < s.height / 2; y++)
        swap_pixels(p + y * row, p + (s.height - 1 - y) * row, row);
}

/* A quarter turn against the clock. */
static void turn(sn_picture_size s, float *p, float *spare) {
    const size_t pixel = (size_t)s.channels * sizeof *p;
    memcpy(spare, p, (size_t)(s.height * s.width) * pixel);
    for (int64_t y = 0; y < s.height; y++)
        for (int64_t x = 0; x < s.width; x++)
            memcpy(p + (y * s.width + x) * s.channels,
                   spare + (x * s.width + s.width - 1 - y) * s.channels, pixel);
}

static int64_t mirrored(int64_t i, int64_t n) {
    const int64_t j = i < 0 ? -i : i;
    return j >= n ? 2 * n - 2 - j : j;
}

/* Moved by (dy, dx); what comes in is the picture's mirror image. */
static void move(sn_picture_size s, int64_t dy, int64_t dx, float *p, float *spare) {
    const size_t pixel = (size_t)s.channels * sizeof *p;
    memcpy(spare, p, (size_t)(s.height * s.width) * pixel);
    for (int64_t y = 0; y < s.height; y++)
        for (int64_t x = 0; x < s.width; x++)
            memcpy(p + (y * s.width + x) * s.channels,
                   spare + (mirrored(y + dy, s.height) * s.width + mirrored(x + dx, s.width)) *
                               s.channels,
                   pixel);
}

static void change_light(const sn_augment *a, sn_picture_size s, double scale, uint64_t key,
                         float *p) {
    const int64_t n = s.height * s.width * s.channels;
    const double more = a->brightness * scale * (2 * draw(key, DRAW_BRIGHT) - 1);
    const double times = 1 + a->contrast * (2 * draw(key, DRAW_CONTRAST) - 1);
    double mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += (double)p[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double v = ((double)p[i] - mean) * times + mean + more;
        p[i] = (float)(v < 0 ? 0 : v > scale ? scale : v);
    }
}

void sn_augment_run(const sn_augment *a, sn_picture_size size, double scale, uint64_t key,
                    float *picture, float *spare) {
    if (a->flip && draw(key, DRAW_FLIP) < 0.5)
        flip(size, picture);
    if (a->flip_up_down && draw(key, DRAW_UP_DOWN) < 0.5)
        flip_up_down(size, picture);
    for (int k = a->rot90 ? (int)(draw(key, DRAW_ROT) * 4) : 0; k > 0; k--)
        turn(size, picture, spare);
    if (a->crop > 0) {
        const double span = (double)(2 * a->crop + 1);
        move(size, (int64_t)(draw(key, DRAW_CROP_Y) * span) - a->crop,
             (int64_t)(draw(key, DRAW_CROP_X) * span) - a->crop, picture, spare);
    }
    if (a->brightness > 0 || a->contrast > 0)
        change_light(a, size, scale, key, picture);
}
