/* fake_device.c: answers describe from the types alone. */
#include "support/fake_device.h"

#include <stdio.h>

static snug_status describe(const sn_device *dev, const sn_opdesc *d, sn_variant *out,
                            snug_error *err) {
    const sn_fake_device *fake = (const sn_fake_device *)dev;
    (void)err;
    *out = (sn_variant){.workspace_bytes = fake->workspace_bytes[d->op], .flops = sn_op_flops(d)};
    snprintf(out->impl, sizeof out->impl, "fake");
    for (int k = 0; k < d->n_out; k++)
        if (d->out[k].dtype == SNUG_OPAQUE)
            out->opaque_bytes[k] = (size_t)sn_type_count(&d->out[k]);
    return SNUG_OK;
}

void sn_fake_device_init(sn_fake_device *d, const char *name) {
    *d = (sn_fake_device){.device = {.name = name, .align = 64, .describe = describe}};
}
