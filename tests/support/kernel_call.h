/* kernel_call.h: one kernel call with memory of its own, for tests of kernels.
 *
 *     sn_test_call k;
 *     sn_begin(&k, SN_OP_add);
 *     sn_add_in(&k, SHAPE(SNUG_F32, 2, 3), -1, 1);      // numbers in [-1, 1)
 *     sn_add_in(&k, SHAPE(SNUG_F32, 3), -1, 1);
 *     sn_ready(&k);                                     // infers the outputs
 *     sn_run(&k);                                       // the fast kernel of this machine
 *     sn_end(&k);
 *
 * Buffers are malloc'ed to the byte, so that a sanitizer build sees a kernel that reads or writes
 * beside them; outputs and workspace start as garbage. */
#ifndef SN_TESTS_KERNEL_CALL_H
#define SN_TESTS_KERNEL_CALL_H

#include "support/support.h"

#include "kernels/cpu/cpu.h"

#define SCALAR(d) ((snug_type){.dtype = (d)})
#define SHAPE(d, ...)                                                                              \
    ((snug_type){.dtype = (d),                                                                     \
                 .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                \
                 .dims = {__VA_ARGS__}})
#define LIST(...)                                                                                  \
    ((sn_list){.n = (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                 \
               .v = {__VA_ARGS__}})

/* One kernel call with memory of its own. */
typedef struct {
    sn_opdesc d;
    sn_scalar param[SN_MAX_PARAMS];
    snug_view in[SN_MAX_IN], out[SN_MAX_OUT];
    bool accumulate;
    int threads, axis;
    int64_t first, full;
} sn_test_call;

/* param, accumulate, threads (1), axis, first and full (a whole value) may be set after sn_ready.
 */
void sn_begin(sn_test_call *k, sn_op op);
void sn_add_in(sn_test_call *k, snug_type t, double low, double high);
void sn_ready(sn_test_call *k);
void sn_end(sn_test_call *k);
snug_status sn_run_with(const sn_test_call *k, const sn_cpu_family *family, bool reference,
                        snug_error *err);
void sn_run(const sn_test_call *k);
void sn_run_reference(const sn_test_call *k);
/* What output 0 holds, to be freed. */
void *sn_copy_out(const sn_test_call *k);
/* Output 0 has these bytes; `what` is said when it has not. */
void expect_bits(const sn_test_call *k, const void *want, const char *what);
/* The fast kernel's bits are the reference's, with one thread and with two. */
void expect_fast_is_reference(sn_test_call *k);

#endif
