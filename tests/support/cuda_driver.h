/* cuda_driver.h: the card of the emulated plug-in, for tests to change between two opens. */
#ifndef SN_TESTS_CUDA_DRIVER_H
#define SN_TESTS_CUDA_DRIVER_H

#ifdef __cplusplus
#include "kernels/cuda/driver.h"
extern "C" {
#else
#include "op/runner.h"
#endif

/* When queues do what they were given. Late: when somebody waits for it, and not before; of queues
 * that do not wait for each other the first, or the last, goes first. So an order that they need
 * but lack shows. */
typedef enum {
    SN_EMULATED_AT_ONCE,
    SN_EMULATED_FIRST_FIRST,
    SN_EMULATED_LAST_FIRST
} sn_emulated_haste;

/* tests/python/test_gpu.py has its beginning, too. */
typedef struct {
    size_t total_bytes, context_bytes, others_bytes;
    int n_devices;
    size_t held_bytes;  /* of blocks now */
    size_t graph_bytes; /* of captured runs now: some for each call */
    int n_resets;
    int64_t fail_at; /* this call of the driver fails, and all after it until the next open */
    bool lost;
    int64_t n_replays; /* of captured runs */
    int64_t n_made;    /* inputs that the device made itself */
    int n_contexts;
    bool has_no_kernels; /* every row runs on the host */
    /* Of what poses as cuBLASLt and cuDNN. */
    bool has_libraries;
    int n_starved;    /* so many questions from now on find no memory */
    int64_t n_asked;  /* questions that came to them */
    bool fails_asked; /* the next question meets the card's end */
    int64_t n_beside; /* copies to the card on the queue of what comes, outside of captures */
    sn_emulated_haste haste;
    size_t guard_bytes; /* of the first guard in a captured run, for good; then 0 */
} sn_emulated_card;

typedef sn_emulated_card *(*sn_emulated_world_fn)(void);
SNUG_API sn_emulated_card *sn_emulated_world(void);

#ifdef __cplusplus
}
void sn_emulated_rose(void);                  /* the process has more of the card now */
extern uint32_t *sn_emulated_guard;           /* words of the newest guard */
extern thread_local bool sn_emulated_entered; /* the thread has the card's context */
#endif
#endif
