/* softmax.h: the fast kernels over rows, of f32 and of halves. */
#ifndef SN_KERNELS_CPU_SOFTMAX_H
#define SN_KERNELS_CPU_SOFTMAX_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/isa.h"

/* Of halves; f32 needs none. */
size_t SN_CPU(softmax_workspace)(const sn_opdesc *d, int n_threads);
void SN_CPU(softmax_f32)(const sn_call *c);
void SN_CPU(log_softmax_f32)(const sn_call *c);
void SN_CPU(softmax_grad_f32)(const sn_call *c);
/* Labels are weights per class, or with class numbers one per row; rows with a number outside count
 * nothing. */
void SN_CPU(xent_f32)(const sn_call *c);
void SN_CPU(xent_grad_f32)(const sn_call *c);
void SN_CPU(sigmoid_xent_f32)(const sn_call *c);

static inline int64_t sn_label_at(const snug_view *labels, int64_t row) {
    return labels->type.dtype == SNUG_I64 ? ((const int64_t *)labels->data)[row]
                                          : ((const int32_t *)labels->data)[row];
}

/* -1 for every number outside the row. */
static inline int64_t sn_class_at(const snug_view *labels, int64_t row, int64_t width) {
    const int64_t label = sn_label_at(labels, row);
    return label < width ? label : -1;
}

#endif
