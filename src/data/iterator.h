/* iterator.h: the inside of an iterator (iterator.c), for the few that look into it. */
#ifndef SN_DATA_ITERATOR_H
#define SN_DATA_ITERATOR_H

#include "data/stage.h"

#include <pthread.h>

/* As an ordinal: count the iterators of each stage. */
#define SN_COUNT_ITERATORS UINT64_MAX

struct snug_iterator {
    snug_engine *engine;
    sn_station *root;
    sn_cursor *cursor;        /* of root; NULL after a restore that failed */
    _Atomic(pthread_t) owner; /* who asks it now */
    int (*asked)(void *ctx);
    void *asked_ctx;
};

/* At the start of each call: who asks, and whether it shall stop. */
SNUG_CHECKED snug_status sn_iterator_begin(snug_iterator *it, snug_error *err);

/* Back to its first element, of the same iteration. */
SNUG_CHECKED snug_status sn_iterator_rewind(snug_iterator *it, snug_error *err);
/* As if the last iterator over it, gone already, had not been. */
void sn_dataset_forget_iterator(snug_dataset *d);

#endif
