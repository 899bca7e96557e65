/* engine.h: the root object: memory, files, threads, and the account book of every byte.
 *
 *     snug_engine *engine;
 *     snug_engine_options options = {.budget_bytes = 512u << 20};
 *     snug_engine_create(&options, &engine, &err);
 *     ...
 *     snug_memory_row rows[64];
 *     size_t n = snug_engine_memory(engine, rows, 64);     // who holds what, now and at the peak
 *     snug_engine_destroy(engine);
 *
 * Every create call takes an engine; there is no global state. An engine must outlive what was made
 * with it. Threads may share an engine: requests, the account book and what it says are safe from
 * any of them. What is made from it (models, plans, recorders, iterators) is used by one thread at
 * a time, unless its header says more. Two engines are independent. */
#ifndef SNUG_ENGINE_H
#define SNUG_ENGINE_H

#include <snug/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_engine snug_engine;

/* The caller's allocator. alloc returns memory aligned to `align` (a power of two) or NULL; free is
 * given the size that was asked for. Zeroed is not promised. Asked by one thread at a time, which must not
 * ask the engine for anything meanwhile. */
typedef struct {
    void *ctx;
    void *(*alloc)(void *ctx, size_t bytes, size_t align);
    void (*free)(void *ctx, void *block, size_t bytes);
} snug_allocator;

/* What a folder offers to files that take the place of memory. */
typedef struct {
    int64_t free_bytes; /* that this user may take */
    const char *memory; /* "tmpfs", ...: files there are memory themselves; NULL: they are not */
} snug_io_folder;

/* What an entry of a folder is. */
typedef enum { SNUG_IO_OTHER, SNUG_IO_FILE, SNUG_IO_FOLDER, SNUG_IO_LINK } snug_io_kind;

/* All file access goes through this table. Results: >= 0 on success, -errno on failure. pread and
 * pwrite may be short. What has no offsets, a pipe, answers pwrite with -ESPIPE and is asked again
 * with offset -1: behind what it has. flags and mode are those of open(2). After a rename the
 * folder is opened (O_DIRECTORY) and synced; a table that cannot do that may refuse. */
typedef struct {
    void *ctx;
    int (*open)(void *ctx, const char *path, int flags, int mode);
    int64_t (*pread)(void *ctx, int fd, void *buffer, size_t bytes, int64_t offset);
    int64_t (*pwrite)(void *ctx, int fd, const void *buffer, size_t bytes, int64_t offset);
    int64_t (*size)(void *ctx, int fd);
    int (*sync)(void *ctx, int fd);
    int (*close)(void *ctx, int fd);
    int (*rename)(void *ctx, const char *from, const char *to);
    int (*unlink)(void *ctx, const char *path);
    int (*mkdir)(void *ctx, const char *path, int mode);
    /* For spilling alone; a table without them (NULL, all three) spills nothing. reserve: the file
     * has so many bytes from now on, and the disk keeps them free for it where it can. forget:
     * these bytes are written to the disk, and no cache holds on to them. */
    int (*folder)(void *ctx, const char *path, snug_io_folder *out);
    int (*reserve)(void *ctx, int fd, int64_t bytes);
    int (*forget)(void *ctx, int fd, int64_t offset, int64_t bytes);
    /* For data sets in folders; a table without them (NULL, both) lists none. list: each(to, NAME,
     * snug_io_kind) for every entry but "." and "..", in any order; what it gives other than 0 ends
     * the list and is the result. kind: what the path is, links followed. */
    int (*list)(void *ctx, const char *path, int (*each)(void *to, const char *name, int kind),
                void *to);
    int (*kind)(void *ctx, const char *path);
} snug_io;

/* Where text goes, piece by piece: a file, a string, a socket. */
typedef struct {
    void *ctx;
    snug_status (*write)(void *ctx, const char *text, size_t n, snug_error *err);
} snug_writer;

typedef struct {
    size_t budget_bytes;             /* of Snug's own requests; 0: no limit. See snug_budget */
    int n_threads;                   /* 0: one per core this process may use all the time */
    const snug_allocator *allocator; /* NULL: the C library's; copied */
    const snug_io *io;               /* NULL: the operating system's; copied */
} snug_engine_options;

SNUG_API SNUG_CHECKED snug_status snug_engine_create(const snug_engine_options *options,
                                                     snug_engine **out, snug_error *err);
SNUG_API void snug_engine_destroy(snug_engine *engine);

/* Around a fork() while other threads use the engine: before it, and after it in both processes. No
 * other thread is in the middle of a request then, so that the child can make requests of its own.
 * The child has none of the engine's threads and does the work of all; what another thread was
 * running is lost there. */
SNUG_API void snug_engine_before_fork(snug_engine *engine);
SNUG_API void snug_engine_after_fork(snug_engine *engine);

SNUG_API int snug_engine_threads(const snug_engine *engine);

/* The most this process may use: code, libraries, stacks and interpreter included; 0: no limit.
 * Steps of models made with the engine are planned within it, and refused with the smallest number
 * that would do (SNUG_E_BUDGET) before anything runs. Set it before a model is used. */
SNUG_API SNUG_CHECKED snug_status snug_budget(snug_engine *engine, size_t bytes, snug_error *err);
SNUG_API size_t snug_budget_bytes(const snug_engine *engine);
/* Refused (SNUG_E_BUDGET, with the number that would do) where the process and `bytes` more are
 * beyond its budget before anything is computed. */
SNUG_API SNUG_CHECKED snug_status snug_budget_check(snug_engine *engine, size_t bytes,
                                                    snug_error *err);

/* Bytes of the caller's own: taken from the engine's allocator and booked as "arrays", or refused
 * (SNUG_E_BUDGET, SNUG_E_MEMORY) before they are made. Aligned to 64. give: with the size that was
 * taken; NULL is legal. */
SNUG_API SNUG_CHECKED snug_status snug_take(snug_engine *engine, size_t bytes, void **out,
                                            snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_take_zeros(snug_engine *engine, size_t bytes, void **out,
                                                  snug_error *err);
SNUG_API void snug_give(snug_engine *engine, void *block, size_t bytes);
/* *inout has `to` bytes then instead of `from`, and keeps those it has in common; what comes is not
 * set. Where both are large, pages are moved: only the difference is asked for, and nothing is
 * there twice. Refused as above, *inout stays as it is. */
SNUG_API SNUG_CHECKED snug_status snug_resize(snug_engine *engine, size_t from, size_t to,
                                              void **inout, snug_error *err);
/* Whether so many bytes more, to be made elsewhere and for a short while, fit the budget; nothing
 * is booked. `what` is for the message. */
SNUG_API SNUG_CHECKED snug_status snug_ask(snug_engine *engine, size_t bytes, const char *what,
                                           snug_error *err);
/* The same booked, until it is given back: for bytes that somebody else has made. */
SNUG_API SNUG_CHECKED snug_status snug_claim(snug_engine *engine, size_t bytes, snug_error *err);
SNUG_API void snug_unclaim(snug_engine *engine, size_t bytes);
/* From now on so many bytes of the budget are for what the caller makes without asking; 0: none.
 * They count as taken; who makes some of them says how many are left. Gives how many there were. */
SNUG_API size_t snug_set_aside(snug_engine *engine, size_t bytes);
/* What the process may still take; SIZE_MAX: there is no budget. */
SNUG_API size_t snug_room(snug_engine *engine);

/* A folder on a disk for what does not fit the budget otherwise, or is faster so: slots of
 * optimizers wait there, in a file without a name, for their update. NULL: none (the default).
 * Refused (SNUG_E_IO) by name: folders that are missing or memory themselves (tmpfs). Copied. Set
 * it before a model is used. */
SNUG_API SNUG_CHECKED snug_status snug_spill(snug_engine *engine, const char *folder,
                                             snug_error *err);

/* One row of the account book. The names are lent until the next call that changes memory, from
 * any thread. */
typedef struct {
    const char *category; /* "weights", "arena", "graph", ... */
    const char *owner;    /* "conv2d/kernel", "plan 2", ..., "" for the category's sum */
    size_t bytes;         /* held now */
    size_t peak_bytes;    /* most ever held; equal to bytes in rows of owners */
} snug_memory_row;

/* Writes up to `max` rows, sums of categories first, then owners, largest first; returns how many
 * there are. */
SNUG_API size_t snug_engine_memory(const snug_engine *engine, snug_memory_row *rows, size_t max);

/* Bytes held now, and the most ever held, over all categories. */
SNUG_API size_t snug_engine_bytes(const snug_engine *engine);
SNUG_API size_t snug_engine_peak_bytes(const snug_engine *engine);

/* For tests: the n-th request of memory from now on (0: the next one) is refused, and those after
 * it where for_good is set; -1: none is. Says whether one was refused since the last call. */
SNUG_API int snug_engine_refuse(snug_engine *engine, int64_t n, int for_good);

/* "512MiB", "2GB", "1.5 KiB", "4096" -> bytes; and back: 536870912 -> "512.0 MiB". text holds at
 * least 24 bytes. */
SNUG_API SNUG_CHECKED snug_status snug_bytes_parse(const char *text, size_t *bytes,
                                                   snug_error *err);
SNUG_API const char *snug_bytes_print(size_t bytes, char *text, size_t size);

/* A budget as people write it: a size as above; "50%" of what this process may have: the limit of
 * its cgroup, or the machine's memory; "auto": that limit less what other processes of the cgroup
 * hold, or the memory that is free now less a margin. Nothing, and more than there is, are
 * refused. */
SNUG_API SNUG_CHECKED snug_status snug_budget_parse(const char *text, size_t *bytes,
                                                    snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
