/* fake_files.h: an I/O table over a few texts in memory, for readers of the system's files.
 *
 *     const sn_fake_file files[] = {{"/proc/meminfo", "MemTotal: 9000 kB\n"}, {NULL, NULL}};
 *     const snug_io io = sn_fake_io(files); */
#ifndef SN_TESTS_FAKE_FILES_H
#define SN_TESTS_FAKE_FILES_H

#include <snug/engine.h>

typedef struct {
    const char *path, *text;
} sn_fake_file;

/* Open, read and close; files is lent and ends with a path of NULL. */
snug_io sn_fake_io(const sn_fake_file *files);

#endif
