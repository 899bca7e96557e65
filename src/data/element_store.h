/* element_store.h: elements that wait: slots by number, in memory up to a limit, beyond it in a
 * file without a name.
 *
 *     sn_store *s;
 *     sn_store_create(e, &(sn_store_plan){.what = "the shuffle", .folder = "/scratch"}, &s, err);
 *     sn_store_put(s, 0, &e, err);       // moved; the store grows as needed
 *     sn_store_copy(s, 0, &e, err);      // stays there
 *     sn_store_take(s, 0, &e, err);      // slot 0 is empty then
 *     sn_store_destroy(s); */
#ifndef SN_DATA_ELEMENT_STORE_H
#define SN_DATA_ELEMENT_STORE_H

#include "data/stage.h"

typedef struct sn_store sn_store;

typedef struct {
    const char *what;   /* "the shuffle": for messages */
    const char *folder; /* NULL: what is beyond the share of stores (sn_pool_store) is refused */
    sn_station *place;  /* whose figures say what it holds; NULL: nobody's */
    int64_t n_elements; /* that it is to hold at most, for messages; not above 0: not known */
} sn_store_plan;

/* The plan's texts and place are lent. */
SNUG_CHECKED snug_status sn_store_create(snug_engine *e, const sn_store_plan *plan, sn_store **out,
                                         snug_error *err);
void sn_store_destroy(sn_store *s); /* NULL is legal */
SNUG_CHECKED snug_status sn_store_put(sn_store *s, size_t slot, snug_element *e, snug_error *err);
SNUG_CHECKED snug_status sn_store_take(sn_store *s, size_t slot, snug_element *out,
                                       snug_error *err);
SNUG_CHECKED snug_status sn_store_copy(sn_store *s, size_t slot, snug_element *out,
                                       snug_error *err);
/* What is in `from` is in `to` then, which was empty. */
void sn_store_move(sn_store *s, size_t from, size_t to);

/* Bytes of elements that stages of the pipeline will keep beside those that stores have now, of
 * which `most` may be kept in memory: of a cache all that will come. */
size_t sn_store_growth(const snug_dataset *d, size_t most);

#endif
