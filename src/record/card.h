/* card.h: the card that steps run on beside the host, as record_card.c and record_place.c have it.
 * All others see the side (recording.h). */
#ifndef SN_RECORD_CARD_H
#define SN_RECORD_CARD_H

#include "exec/gpu_pool.h"
#include "record/recording.h"

#define SN_N_AHEAD 16 /* tensors that wait to be brought */

typedef struct sn_card {
    sn_gpu_device *gpu;
    sn_executor *executor;
    size_t tensor_bytes, variable_bytes;
    size_t reserve_bytes; /* when the newest plan was looked for */
    size_t peak_bytes;
    sn_storage *doubles;           /* chained by next_double */
    sn_storage *ahead[SN_N_AHEAD]; /* held; for the card while it runs something else */
    uint32_t n_ahead;
} sn_card;

/* --- record_place.c --------------------------------------------------------------------------- */
/* Bytes that are there already stay; others are copied, and larger ones move. */
SNUG_CHECKED snug_status sn_storage_to_card(snug_recorder *r, sn_storage *s, snug_error *err);
SNUG_CHECKED snug_status sn_storage_create_on_card(snug_recorder *r, sn_category cat, size_t bytes,
                                                   sn_storage **out, snug_error *err);
/* What is used on the card now may be more than ever. */
void sn_card_note_peak(snug_recorder *r);
/* What waits to be brought goes there, where there is room, beside the run; ctx: the recorder. */
void sn_card_bring_ahead(void *ctx);
/* After that run: the host's bytes are let go, or the card's where it failed. */
void sn_card_end_ahead(snug_recorder *r, bool went_well);
/* The side's drop_doubles. */
bool sn_card_drop_doubles(snug_recorder *r, bool (*keeps)(const void *ctx, const sn_storage *s),
                          const void *ctx);

#endif
