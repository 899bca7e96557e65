/* file.h: whole reads and writes over the I/O table; errors name the path and the offset. */
#ifndef SN_BASE_FILE_H
#define SN_BASE_FILE_H

#include "base/status.h"

#include <snug/engine.h>
#include <stdbool.h>

extern const snug_io sn_io_system; /* the operating system's calls */

/* What goes past the system's cache starts at a multiple of this, in file and memory, and is one
 * long. */
#define SN_FILE_BLOCK 4096u

typedef struct {
    const snug_io *io; /* lent */
    int fd;            /* -1: not open */
    int64_t size;      /* at opening; of a pipe, what was written */
    bool direct;       /* past the cache: only whole blocks of SN_FILE_BLOCK are moved */
    int64_t waiting;   /* written, and left to the system's cache: of a temporary one never much */
    bool temporary;    /* made by sn_file_create and not committed: it goes away on close */
    uint64_t tag;      /* of a temporary one's name, which no other writer has */
    char path[1024];   /* of a file opened to read it is for messages only, cut if longer */
} sn_file;

/* A missing or unreadable file is SNUG_E_IO and names the path. Directories are refused. */
SNUG_CHECKED snug_status sn_file_open(sn_file *f, const snug_io *io, const char *path,
                                      snug_error *err);
/* Creates a file under a name of its own beside PATH; sn_file_commit syncs, closes and renames it
 * to PATH and syncs the folder; sn_file_close, and a commit that fails, remove it; one that fails
 * at the folder leaves the new file at PATH, where a power cut may undo it. Links are followed
 * first, so a link stays; a device or a pipe is written to, a pipe only from its first byte to its
 * last. */
SNUG_CHECKED snug_status sn_file_create(sn_file *f, const snug_io *io, const char *path,
                                        snug_error *err);
SNUG_CHECKED snug_status sn_file_commit(sn_file *f, snug_error *err);
/* Where its bytes are now: the temporary name until it is committed. Returns out. */
#define SN_FILE_NAME_BYTES (sizeof((sn_file *)0)->path + 24)
const char *sn_file_name(const sn_file *f, char out[SN_FILE_NAME_BYTES]);
/* Exactly n bytes: retries EINTR and short counts; end of file inside is SNUG_E_FORMAT
 * ("truncated"). */
SNUG_CHECKED snug_status sn_file_read(sn_file *f, void *buffer, size_t n, int64_t offset,
                                      snug_error *err);
SNUG_CHECKED snug_status sn_file_write(sn_file *f, const void *buffer, size_t n, int64_t offset,
                                       snug_error *err);
/* A file without a name, of so many bytes, for what has no place in memory: made in the folder,
 * unlinked at once, gone when closed. Direct where the file system can. SNUG_E_IO with numbers for
 * folders that are missing, read-only, too full, or memory themselves (tmpfs). */
SNUG_CHECKED snug_status sn_file_scratch(sn_file *f, const snug_io *io, const char *folder,
                                         int64_t bytes, snug_error *err);
/* Whether the folder takes a scratch file of so many bytes. */
SNUG_CHECKED snug_status sn_file_check_folder(const snug_io *io, const char *folder, int64_t bytes,
                                              snug_error *err);
/* The file is at least so long from now on. */
SNUG_CHECKED snug_status sn_file_reserve(sn_file *f, int64_t bytes, snug_error *err);
/* No cache keeps these bytes, read or written; direct files have none. */
SNUG_CHECKED snug_status sn_file_forget(sn_file *f, size_t n, int64_t offset, snug_error *err);
/* "cannot VERB 'PATH' at byte N: reason; remedy"; code is a positive errno, offset < 0: none. */
snug_status sn_file_fail(const char *path, const char *verb, int64_t offset, int code,
                         snug_error *err);
/* What is behind a positive errno of a file. */
snug_cause sn_file_cause(int code);
/* Legal on a zeroed or closed file. */
void sn_file_close(sn_file *f);

#endif
