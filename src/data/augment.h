/* augment.h: pictures changed at random, in place: "flip,crop:4,brightness:0.2". */
#ifndef SN_DATA_AUGMENT_H
#define SN_DATA_AUGMENT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool flip, flip_up_down, rot90;
    int64_t crop; /* pixels; 0: none */
    double brightness, contrast;
} sn_augment;

typedef struct {
    int64_t height, width, channels;
} sn_picture_size;

SNUG_CHECKED snug_status sn_augment_parse(const char *text, sn_picture_size size, sn_augment *out,
                                          snug_error *err);
/* Numbers of the picture in [0, scale]; spare has room for as many. The same key, the same
 * picture. */
void sn_augment_run(const sn_augment *a, sn_picture_size size, double scale, uint64_t key,
                    float *picture, float *spare);

#endif
