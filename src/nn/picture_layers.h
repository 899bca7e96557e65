/* picture_layers.h: what layers of pictures [batch, height, width, channels] share. */
#ifndef SN_NN_PICTURE_LAYERS_H
#define SN_NN_PICTURE_LAYERS_H

#include "nn/layer_call.h"
#include "op/picture_attrs.h"

/* The input in the compute dtype and its type; false after an error or when it is no picture. */
bool sn_picture_input(sn_layer_call *c, sn_value *x, snug_type *t);
/* x in another size by one of Keras' interpolations; x itself when it has that size. */
sn_value sn_picture_resize(sn_layer_call *c, sn_value x, const char *interpolation, bool antialias,
                           const int64_t *size);
/* Each element along axes 1 to n_axes (1, 2 or 3 of them, then channels) `counts` times. */
sn_value sn_picture_repeat(sn_layer_call *c, sn_value x, int n_axes, const int64_t *counts);
/* Rows and columns from `begin` on, `size` of them. */
sn_value sn_picture_crop(sn_layer_call *c, sn_value x, const int64_t *begin, const int64_t *size);
/* The largest window in the middle of the picture with the aspect ratio of `size`, resized to
 * it. */
sn_value sn_picture_fit(sn_layer_call *c, sn_value x, const char *interpolation, bool antialias,
                        const int64_t *size);
/* height and width of a configuration are at least 1. */
bool sn_picture_size(sn_layer_call *c, int64_t height, int64_t width, int64_t *size);

#endif
