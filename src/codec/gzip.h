/* gzip.h: the unpacked bytes of a .gz file (or one in zlib's own format), in order.
 *
 *     sn_gzip *g;
 *     SNUG_TRY(sn_gzip_open(e, &file, &g, err));
 *     sn_gzip_read(g, buffer, n, &got, err);      // the next n bytes; got < n only at the end
 *     sn_gzip_rewind(g, err);                     // back to the first
 *     sn_gzip_close(g); */
#ifndef SN_CODEC_GZIP_H
#define SN_CODEC_GZIP_H

#include "base/file.h"
#include "memory/engine.h"

typedef struct sn_gzip sn_gzip;

bool sn_gzip_looks_like(const unsigned char *bytes, size_t n); /* the first two bytes tell */
/* file is lent and must stay where it is. */
SNUG_CHECKED snug_status sn_gzip_open(snug_engine *e, sn_file *file, sn_gzip **out,
                                      snug_error *err);
/* The same for one stream with zlib's header and checksum. */
SNUG_CHECKED snug_status sn_zlib_open(snug_engine *e, sn_file *file, sn_gzip **out,
                                      snug_error *err);
void sn_gzip_close(sn_gzip *g); /* NULL is legal */
/* SNUG_E_FORMAT: damaged, truncated, or with other bytes behind it. After an error the stream is at
 * its start again. n < 4 GiB. */
SNUG_CHECKED snug_status sn_gzip_read(sn_gzip *g, void *out, size_t n, size_t *got,
                                      snug_error *err);
SNUG_CHECKED snug_status sn_gzip_rewind(sn_gzip *g, snug_error *err);
int64_t sn_gzip_at(const sn_gzip *g); /* of the next byte, unpacked */
/* No more bytes than these can follow, whatever stands in the file. */
int64_t sn_gzip_most_left(const sn_gzip *g);
bool sn_gzip_ended(
    const sn_gzip *g); /* there is none: all members were read, checksums are right */

#endif
