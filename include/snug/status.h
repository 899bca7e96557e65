/* status.h: how every Snug call answers.
 *
 *     snug_error err;
 *     if (snug_model_load(engine, "model.json", &model, &err) != SNUG_OK)
 *         fprintf(stderr, "%s\n", err.text);      // has the numbers and one remedy in it
 *
 * A call that can fail returns snug_status and takes `snug_error *err` last; err may be NULL.
 * Outputs are written only on success. The library never prints, exits or aborts on input. */
#ifndef SNUG_STATUS_H
#define SNUG_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SNUG_API     __attribute__((visibility("default")))
#define SNUG_CHECKED __attribute__((warn_unused_result))
#else
#define SNUG_API
#define SNUG_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*        name         exit  meaning                                                        */
#define SNUG_STATUS_MAP(X)                                                                         \
    X(OK, 0, "ok")                                                                                 \
    X(E_INVALID, 2, "a wrong argument or a call out of order")                                     \
    X(E_SHAPE, 4, "shapes or dtypes do not fit together")                                          \
    X(E_UNSUPPORTED, 1, "known, but not built yet")                                                \
    X(E_MEMORY, 1, "the allocator had no memory")                                                  \
    X(E_BUDGET, 3, "does not fit the budget")                                                      \
    X(E_OVERFLOW, 4, "a size exceeds the address space")                                           \
    X(E_FORMAT, 4, "malformed or unsafe input file")                                               \
    X(E_DATA, 4, "the data contradict the model (labels out of range, ...)")                       \
    X(E_NUMERIC, 5, "NaN or infinity")                                                             \
    X(E_IO, 6, "a file could not be read or written, or the disk is full")                         \
    X(E_INTERRUPTED, 130, "stopped by the caller")                                                 \
    X(E_END, 1, "there are no more elements")                                                      \
    X(E_TORN, 1, "a step stopped half-way; load weights to go on")                                 \
    X(E_DEVICE, 1, "a device is missing, or failed and must be opened again")                      \
    X(E_INTERNAL, 70, "a bug in Snug")

typedef enum {
#define SNUG_STATUS_ENUM(name, exit_code, meaning) SNUG_##name,
    SNUG_STATUS_MAP(SNUG_STATUS_ENUM)
#undef SNUG_STATUS_ENUM
} snug_status;

/* What is behind a status, where a caller does another thing about it. Texts are for people, and
 * parts of them (strerror's) are in the language of the process: nothing is chosen by them. */
typedef enum {
    SNUG_CAUSE_NONE,            /* the status says all */
    SNUG_CAUSE_MISSING,         /* a file or a folder that does not exist */
    SNUG_CAUSE_DENIED,          /* a file or a folder that this process may not use so */
    SNUG_CAUSE_FOLDER,          /* a folder where a file is needed */
    SNUG_CAUSE_DISK_FULL,       /* a disk without room */
    SNUG_CAUSE_MEDIA,           /* bytes that are no picture or sound of their format */
    SNUG_CAUSE_DTYPES,          /* operands of two dtypes where they need one */
    SNUG_CAUSE_OUT_OF_TRACE,    /* a tensor of a trace, used outside of it */
    SNUG_CAUSE_CALLER,          /* a function of the caller's failed; number is what it put there */
    SNUG_CAUSE_NO_SHAPE,        /* the shape of an example is not known */
    SNUG_CAUSE_NO_SETTINGS,     /* compile settings that cannot be read; others can be given */
    SNUG_CAUSE_NO_SPILL_FOLDER, /* no folder for spilled bytes is named */
    SNUG_CAUSE_NO_BUDGET,       /* without a budget there is not so much memory */
    SNUG_CAUSE_NO_PICTURES,     /* a folder without pictures */
    SNUG_CAUSE_NO_PLUGIN,       /* the GPU plug-in is not there */
    SNUG_CAUSE_OTHER_VERSION    /* the GPU plug-in is of another version of Snug */
} snug_cause;

/* Caller-owned, fixed size, allocates nothing. */
typedef struct {
    snug_status code;
    snug_cause cause;
    int number; /* of SNUG_CAUSE_CALLER; else 0 */
    char text[512];
} snug_error;

/* "SNUG_E_BUDGET"; the process exit code the command uses for it; its meaning in words. */
SNUG_API const char *snug_status_name(snug_status status);
SNUG_API const char *snug_status_meaning(snug_status status);
SNUG_API int snug_status_exit_code(snug_status status);

#define SNUG_VERSION_MAJOR 0
#define SNUG_VERSION_MINOR 1
#define SNUG_VERSION_PATCH 0
#define SNUG_VERSION_TEXT  "0.1.0"
SNUG_API const char *snug_version(void);

#ifdef __cplusplus
}
#endif
#endif
