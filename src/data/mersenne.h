/* mersenne.h: NumPy's old generator (MT19937), for what is shuffled there by a seed: the training
 * and validation files of a folder are the same as in Keras. */
#ifndef SN_DATA_MERSENNE_H
#define SN_DATA_MERSENNE_H

#include <stdint.h>

typedef struct {
    uint32_t state[624];
    int at;
} sn_mersenne;

void sn_mersenne_init(sn_mersenne *m, uint32_t seed);
uint32_t sn_mersenne_next(sn_mersenne *m);
/* One of 0 ... most, as RandomState.shuffle draws it. */
uint32_t sn_mersenne_below(sn_mersenne *m, uint32_t most);

#endif
