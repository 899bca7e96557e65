/* keras_number.h: numbers of settings as Keras rounds them. */
#ifndef SN_NN_KERAS_NUMBER_H
#define SN_NN_KERAS_NUMBER_H

/* Keras casts its Python numbers (SGD's momentum, slopes, scales, powers of beta) to tensors
 * through f32, also in f64 models; following it to 1e-9 takes the same rounding. */
static inline double sn_keras_number(double v) {
    return (double)(float)v;
}

#endif
