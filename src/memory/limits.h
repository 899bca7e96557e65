/* limits.h: what the system lets this process still take, of memory and of processor time. */
#ifndef SN_MEMORY_LIMITS_H
#define SN_MEMORY_LIMITS_H

#include <snug/engine.h>
#include <stdbool.h>

/* Over the cgroups (v1 and v2, all ancestors) and the machine; SIZE_MAX where nothing is known. */
typedef struct {
    size_t room_bytes;      /* the smallest, before the system refuses, or kills */
    const char *name;       /* whose room it is: "cgroup", "machine", "" */
    bool in_group;          /* it is a cgroup's */
    size_t group_bytes;     /* the smallest limit of a cgroup */
    size_t group_used;      /* what the group with that limit holds and cannot drop */
    size_t machine_bytes;   /* what the machine has */
    size_t available_bytes; /* of it without pushing others out, no swap */
} sn_limits;

sn_limits sn_limits_read(const snug_io *io);

/* How many threads can run all the time: n_cores, or fewer where a cgroup has a quota of processor
 * time (docker --cpus). A quota of 2.5 processors is two threads: a third would stop them all until
 * the next period. At least one. */
int sn_limits_threads(const snug_io *io, int n_cores);

#endif
