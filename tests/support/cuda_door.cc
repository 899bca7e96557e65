/* cuda_door.cc: the emulated families behind a door in C (cuda_door.h). */
#include "kernels/cuda/lib.h"

#include "support/cuda_door.h"

/* What families ask of an object that is not there. */
const sn_gpu_options *sn_gpu_options_of(const sn_gpu *g) {
    static const sn_gpu_options options = {};
    (void)g;
    return &options;
}

int sn_gpu_multiprocessors(const sn_gpu *g) {
    (void)g;
    return 4;
}

bool sn_emulated_has(sn_op op) {
    return sn_cuda_family_of(op) != NULL;
}

snug_status sn_emulated_describe(const sn_opdesc *d, sn_variant *out, snug_error *err) {
    const sn_cuda_family *f = sn_cuda_family_of(d->op);
    return f->describe ? f->describe(NULL, d, out, err) : SNUG_OK;
}

snug_status sn_emulated_run(const sn_opdesc *d, sn_call *c, snug_error *err) {
    const sn_cuda_family *f = sn_cuda_family_of(d->op);
    uint32_t refused = 0;
    const sn_cuda_call call = {NULL, NULL, c, &refused};
    if (f->prepare)
        SNUG_TRY(f->prepare(NULL, d, "", &c->prepared, err));
    const snug_status status = f->run(&call, err);
    if (f->release && c->prepared)
        f->release(NULL, c->prepared);
    if (status == SNUG_OK && refused != 0)
        return sn_fail(err, SNUG_E_DATA, "refused with %u", refused);
    return status;
}
