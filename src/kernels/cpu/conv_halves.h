/* conv_halves.h: a convolution's operands where some are halves (halves.h), and parts of its images
 * as f32. */
#ifndef SN_KERNELS_CPU_CONV_HALVES_H
#define SN_KERNELS_CPU_CONV_HALVES_H

#include "kernels/cpu/halves.h"
#include "kernels/cpu/pairs.h"
#include "kernels/cpu/window.h"

/* Those that the operator has. */
typedef struct sn_conv_halves {
    sn_stored x, w, dy, bias, scale;
    sn_stored y, dx, dw, db;
} sn_conv_halves;

/* What the operator has (SN_CONV_X and so on) at its places. */
static inline sn_conv_halves sn_conv_halves_forward(const sn_call *c, const sn_conv *v) {
    sn_conv_halves h = {
        .x = sn_stored_factor(&c->in[SN_CONV_X], &c->in[SN_CONV_W]),
        .w = sn_stored_factor(&c->in[SN_CONV_W], &c->in[SN_CONV_X]),
        .y = sn_stored_of(&c->out[0]),
    };
    if (v->bias)
        h.bias = sn_stored_of(&c->in[SN_CONV_BIAS]);
    if (v->line) {
        h.scale = h.bias;
        h.bias = sn_stored_from(h.bias, v->O);
    }
    return h;
}

static inline sn_conv_halves sn_conv_halves_dx(const sn_call *c) {
    return (sn_conv_halves){
        .dy = sn_stored_factor(&c->in[SN_CONV_DX_DY], &c->in[SN_CONV_DX_W]),
        .w = sn_stored_factor(&c->in[SN_CONV_DX_W], &c->in[SN_CONV_DX_DY]),
        .dx = sn_stored_of(&c->out[0]),
    };
}

static inline sn_conv_halves sn_conv_halves_dw(const sn_call *c) {
    sn_conv_halves h = {
        .x = sn_stored_factor(&c->in[SN_CONV_DW_X], &c->in[SN_CONV_DW_DY]),
        .dy = sn_stored_factor(&c->in[SN_CONV_DW_DY], &c->in[SN_CONV_DW_X]),
        .dw = sn_stored_of(&c->out[0]),
    };
    if (c->n_out > 1)
        h.db = sn_stored_of(&c->out[1]);
    return h;
}

/* Types, as far as kernel and workspace go by them: x and w of y, dy and w of dx, and dw. */
static inline sn_conv_halves sn_conv_halves_described(const sn_opdesc *d) {
    return (sn_conv_halves){
        .x = {.dtype = d->in[0].dtype},
        .dy = {.dtype = d->in[0].dtype},
        .w = {.dtype = d->in[1].dtype},
        .dw = {.dtype = d->out[0].dtype},
    };
}

/* One image, from element `at` on; pairs: it is read as words of two channels. */
typedef struct {
    const sn_stored *from;
    int64_t at, pitch, channels;
    bool pairs;
} sn_stored_image;

static inline void sn_read_stored(const sn_stored_image *image, int64_t at, int64_t n, float *to) {
    (image->pairs ? sn_pairs_run : sn_stored_read)(image->from, at, n, to);
}

/* dst[high][pitch][step] = the first n channels, or words, of the region of the image, zeros
 * outside. */
static inline void sn_copy_stored(const sn_window *w, const sn_region *r, sn_stored_image from,
                                  int64_t n, float *dst, int64_t pitch, int64_t step) {
    const int64_t left = sn_clamp(-r->col, 0, r->wide),
                  right = sn_clamp(w[1].size - r->col, left, r->wide);
    for (int64_t i = 0; i < r->high; i++) {
        float *row = dst + i * pitch * step;
        const bool outside = r->row + i < 0 || r->row + i >= w[0].size;
        const int64_t a = outside ? r->wide : left, b = outside ? r->wide : right;
        const int64_t at = from.at + ((r->row + i) * from.pitch + r->col) * from.channels;
        memset(row, 0, (size_t)(a * step) * sizeof(float));
        memset(row + b * step, 0, (size_t)((r->wide - b) * step) * sizeof(float));
        const int64_t terms = from.pairs ? 2 * n : n;
        const bool whole = terms == from.channels && n == step;
        if (whole && b > a)
            sn_read_stored(&from, at + a * terms, (b - a) * terms, row + a * n);
        for (int64_t j = a; j < b && !whole; j++)
            sn_read_stored(&from, at + j * from.channels, terms, row + j * step);
    }
}

#endif
