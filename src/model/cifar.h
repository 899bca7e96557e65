/* cifar.h: CIFAR's binary files as feeds: records of one or two labels and 3072 bytes, planes of
 * red, green and blue of 32 x 32 pixels.
 *
 *     cifar10:data_batch_1.bin          u8[n, 32, 32, 3]
 *     cifar10-labels:data_batch_1.bin   u8[n]
 *     cifar100:train.bin   cifar100-labels:train.bin   cifar100-coarse:train.bin */
#ifndef SN_MODEL_CIFAR_H
#define SN_MODEL_CIFAR_H

#include "tensor/feed.h"

bool sn_cifar_is(const char *source);
SNUG_CHECKED snug_status sn_feed_from_cifar(snug_engine *e, const char *source, snug_feed **out,
                                            snug_error *err);

#endif
