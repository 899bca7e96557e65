/* array_image.h: array files as bytes in memory, and how tests read them.
 *
 *     write_image(path, packed(small_npy()));
 *     expect_ok(read_all(engine, path, &err), &err); */
#ifndef SUPPORT_ARRAY_IMAGE_H
#define SUPPORT_ARRAY_IMAGE_H

#include "support/files.h"

#include <snug/model.h>

/* A file in memory; whoever is given one frees it. */
typedef struct {
    unsigned char *bytes;
    size_t n;
} image;

/* An .npy file: prefix of the version, dictionary padded to a multiple of 64 bytes in all, data. */
image npy(int version, const char *dict, const void *data, size_t data_bytes);
image small_npy(void); /* f32[3,2]: 1 to 6 */
image packed(image f); /* with gzip */
image copy_of(const void *bytes, size_t n);
void write_image(const char *path, image f);

/* Reads all rows in pieces of 3 as f32 (integers too); what a user of the file does. */
snug_status read_all(snug_engine *e, const char *path, snug_error *err);
/* Whole array through a feed, as `dtype`. */
void fill_all(snug_feed *feed, snug_dtype dtype, void *out, size_t bytes);

#endif
