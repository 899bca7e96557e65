/* homes.h: what the files of the state share (state.c, gpu_state.c): its homes, and the table of
 * what they do on a kind of device. Nobody else includes it. */
#ifndef SN_EXEC_HOMES_H
#define SN_EXEC_HOMES_H

#include "exec/exec.h"
#include "memory/names.h"

/* Allocated one by one: the ledger links the blocks, so they must not move; and a store whose homes
 * come and go (each new optimizer has its slots) must not grow. */
typedef struct {
    sn_home home;
    uint32_t id;
    size_t bytes;       /* of the variable */
    size_t entry_bytes; /* of this object */
    sn_block block;     /* zeroed until allocated, and while spilled */
    bool spilled;
    size_t offset;               /* in the spill file */
    unsigned char *device_bytes; /* on a GPU: in device memory, or pinned while spilled; or NULL */
    struct sn_chunk *chunk;      /* of device_bytes, in device memory */
    char name[];
} sn_home_entry;

/* Device memory of homes that were placed together. */
typedef struct sn_chunk {
    void *data;
    uint32_t n; /* homes in it */
} sn_chunk;

/* What homes do on the kind of device where they lie. */
typedef struct {
    bool on_disk; /* spilled ones lie in a file there */
    /* Bytes [first, first + n) of a home that is spilled, or has its place on the device. */
    snug_status (*put)(sn_state *s, const sn_home_entry *entry, size_t first, size_t n,
                       const void *from, snug_error *err);
    snug_status (*get)(sn_state *s, const sn_home_entry *entry, size_t first, size_t n, void *to,
                       snug_error *err);
    snug_status (*spill)(sn_state *s, sn_home_entry *entry, const char *folder, snug_error *err);
    void (*unspilled)(sn_state *s, sn_home_entry *entry); /* its bytes are in its block again */
    void (*leave)(sn_state *s, sn_home_entry *entry);     /* gives its place back */
    void (*close)(sn_state *s);
} sn_homes_class;

struct sn_state {
    snug_engine *engine;
    sn_home_entry **entries; /* cap elements by sn_grow */
    size_t cap;
    uint32_t n;
    size_t bytes;
    sn_spill *file;
    const sn_homes_class *kind;
    void *device;    /* the class's */
    uint32_t n_here; /* homes with a block */
    bool torn;
    sn_names names; /* of the entries */
};

/* The class of the device; the state has no homes yet. */
void sn_homes_choose(sn_state *s, const sn_device *d);
/* Initial values where no block is. */
SNUG_CHECKED snug_status sn_home_fill(sn_state *s, const sn_home_entry *entry, snug_error *err);
void sn_home_drop_block(sn_state *s, sn_home_entry *entry);

#endif
