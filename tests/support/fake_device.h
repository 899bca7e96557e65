/* fake_device.h: a device that describes every operator and runs none, for tests of the planner. */
#ifndef SN_TESTS_FAKE_DEVICE_H
#define SN_TESTS_FAKE_DEVICE_H

#include "op/op.h"

typedef struct {
    sn_device device; /* first member: a sn_fake_device is a sn_device */
    size_t workspace_bytes[SN_N_OPS];
} sn_fake_device;

/* Alignment 64, variant 0 "fake", no workspaces. An opaque value takes a byte per element. */
void sn_fake_device_init(sn_fake_device *d, const char *name);

#endif
