/* fingerprint.h: the 64-bit hash of texts that TensorFlow's "fast" buckets are made of (FarmHash's
 * Fingerprint64), so that a text falls into the same bucket. */
#ifndef SN_CODEC_FINGERPRINT_H
#define SN_CODEC_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

uint64_t sn_fingerprint64(const char *text, size_t n);
/* SipHash-2-4 under a key of two words, of which the "strong" buckets are made. */
uint64_t sn_fingerprint_keyed(const uint64_t key[2], const char *text, size_t n);
/* The hash of a pair of hashes, as TensorFlow's crosses of features make it. */
uint64_t sn_fingerprint_pair(uint64_t first, uint64_t second);

#endif
