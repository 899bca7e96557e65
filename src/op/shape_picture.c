/* shape_picture.c: shape and axis rules of resize and warp and of their gradients. Pictures are
 * [N, H, W, C]; `size` is the height and width of what the row makes. */
#include "op/picture_attrs.h"
#include "op/rules.h"

/* back: from the result to the picture, as gradients go. */
static snug_status resized(sn_opdesc *d, const int64_t *size, bool back, snug_error *err) {
    SNUG_TRY(sn_want_float(d, 0, err));
    SNUG_TRY(sn_want_rank(d, 0, 4, 4, err));
    SNUG_TRY(sn_want_range(d, "size", size, 2, 0, err));
    snug_type t = d->in[0];
    SNUG_TRY(sn_want_range(d, "height or width", t.dims + 1, 2, -1, err));
    for (int k = 0; k < 2; k++) {
        if ((back ? t.dims[1 + k] : size[k]) > 0 && (back ? size[k] : t.dims[1 + k]) == 0)
            return sn_fail(err, SNUG_E_SHAPE,
                           "%s: %s and size=%lld,%lld: nothing is made of no pixels", sn_op_name(d),
                           sn_type_text(&t).s, (long long)size[0], (long long)size[1]);
        t.dims[1 + k] = size[k];
    }
    return sn_one_output(d, t);
}

static snug_status resized_by(sn_opdesc *d, bool back, snug_error *err) {
    const sn_attrs_resize *a = &d->attrs.resize;
    if (a->method < 0 || a->method >= SN_N_RESIZE)
        return sn_fail(err, SNUG_E_INVALID,
                       "%s: method=%lld; 0 is nearest, 1 bilinear, 2 bicubic, 3 area, 4 lanczos3, "
                       "5 lanczos5, 6 gaussian, 7 mitchellcubic",
                       sn_op_name(d), (long long)a->method);
    SNUG_TRY(sn_want_flag(d, "antialias", a->antialias, err));
    return resized(d, a->size, back, err);
}

snug_status sn_shape_resize(sn_opdesc *d, snug_error *err) {
    return resized_by(d, false, err);
}

snug_status sn_shape_resize_grad(sn_opdesc *d, snug_error *err) {
    return resized_by(d, true, err);
}

/* (picture or dy, transforms f32[N, 8]) */
static snug_status warped(sn_opdesc *d, int64_t mode, int64_t nearest, bool back, snug_error *err) {
    if (mode < 0 || mode >= SN_N_WARP)
        return sn_fail(err, SNUG_E_INVALID,
                       "%s: mode=%lld; 0 is constant, 1 reflect, 2 wrap, 3 nearest", sn_op_name(d),
                       (long long)mode);
    SNUG_TRY(sn_want_flag(d, "nearest", nearest, err));
    if (d->in[1].dtype != SNUG_F32)
        return sn_fail(err, SNUG_E_SHAPE, "%s: transforms are %s; they are f32 for any pictures",
                       sn_op_name(d), sn_type_text(&d->in[1]).s);
    snug_type transforms = {
        .dtype = SNUG_F32, .rank = 2, .dims = {d->in[0].rank > 0 ? d->in[0].dims[0] : -1, 8}};
    SNUG_TRY(sn_want_dims(d, 1, &transforms, err));
    SNUG_TRY(resized(d, d->attrs.warp.size, back, err));
    d->out[0].dims[0] = transforms.dims[0];
    return SNUG_OK;
}

snug_status sn_shape_warp(sn_opdesc *d, snug_error *err) {
    return warped(d, d->attrs.warp.mode, d->attrs.warp.nearest, false, err);
}

snug_status sn_shape_warp_grad(sn_opdesc *d, snug_error *err) {
    return warped(d, d->attrs.warp_grad.mode, d->attrs.warp_grad.nearest, true, err);
}

void sn_axes_pictures(const sn_opdesc *d, sn_ways *ways) {
    sn_way *n = sn_way_add(ways, d->out[0].dims[0]);
    for (int i = 0; i < d->n_in; i++)
        sn_carry(&n->in[i], 0);
    sn_carry(&n->out[0], 0);
    sn_way *c = sn_way_add(ways, d->out[0].dims[3]);
    sn_carry(&c->in[0], 3);
    sn_carry(&c->out[0], 3);
}
