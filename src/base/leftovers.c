/* leftovers.c: temporary files of writers that were killed. A writer holds a lock (flock) on its
 * file from the moment it has made it; the system lets go of it when the writer ends, however that
 * happens. What nobody holds and nobody wrote to for an hour is removed when the next file of that
 * name is made. (An hour, for file systems whose locks do not reach other machines.) */
#include "base/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OLD_SECONDS = 3600, MAX_ENTRIES = 4096, TAG_LETTERS = 16 };

void sn_leftover_hold(int fd) {
    (void)flock(fd, LOCK_EX | LOCK_NB); /* where there are no locks, age alone counts */
}

/* NAME.0123456789abcdef.tmp */
static bool is_temporary(const char *entry, const char *name, size_t n) {
    return strncmp(entry, name, n) == 0 && entry[n] == '.' &&
           strspn(entry + n + 1, "0123456789abcdef") == TAG_LETTERS &&
           strcmp(entry + n + 1 + TAG_LETTERS, ".tmp") == 0;
}

static void remove_if_left(int folder, const char *entry) {
    struct stat st;
    const int fd = openat(folder, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mtime + OLD_SECONDS < time(NULL) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(folder, entry, 0);
    close(fd);
}

void sn_leftover_remove(const char *folder, const char *name, size_t n) {
    DIR *d = opendir(folder);
    if (!d)
        return;
    const struct dirent *entry;
    for (int i = 0; i < MAX_ENTRIES && (entry = readdir(d)); i++)
        if (is_temporary(entry->d_name, name, n))
            remove_if_left(dirfd(d), entry->d_name);
    closedir(d);
}
