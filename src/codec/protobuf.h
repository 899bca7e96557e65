/* protobuf.h: reading protocol buffers in place: no copies, no memory, every length checked against
 * what is left.
 *
 *     sn_proto p = {bytes, bytes + n};
 *     while (sn_proto_next(&p, &field))       // false at the end, and where bytes are no field
 *         if (field.number == 1 && field.wire == SN_WIRE_BYTES) ...
 *     if (p.at != p.end) ...                  // damaged at p.at */
#ifndef SN_CODEC_PROTOBUF_H
#define SN_CODEC_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const unsigned char *at, *end;
} sn_proto;

enum { SN_WIRE_VARINT = 0, SN_WIRE_64 = 1, SN_WIRE_BYTES = 2, SN_WIRE_32 = 5 };

typedef struct {
    uint32_t number, wire;
    uint64_t value; /* VARINT, 64, 32 */
    sn_proto bytes; /* BYTES */
} sn_proto_field;

/* Stays where it is and answers false on what is no number of at most ten bytes. */
static inline bool sn_proto_varint(sn_proto *p, uint64_t *out) {
    if (p->at < p->end && *p->at < 0x80) {
        *out = *p->at++;
        return true;
    }
    uint64_t v = 0;
    const unsigned char *at = p->at;
    for (unsigned shift = 0; shift < 64 && at < p->end; shift += 7) {
        const unsigned char b = *at++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            p->at = at;
            *out = v;
            return true;
        }
    }
    return false;
}

static inline bool sn_proto_fixed(sn_proto *p, size_t n, uint64_t *out) {
    if ((size_t)(p->end - p->at) < n)
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out |= (uint64_t)p->at[i] << (8 * i);
    p->at += n;
    return true;
}

static inline bool sn_proto_next(sn_proto *p, sn_proto_field *out) {
    sn_proto q = *p;
    uint64_t tag, n;
    if (q.at == q.end || !sn_proto_varint(&q, &tag) || tag > UINT32_MAX || tag < 8)
        return false;
    out->number = (uint32_t)(tag >> 3);
    out->wire = (uint32_t)(tag & 7);
    bool whole = false;
    if (out->wire == SN_WIRE_BYTES) {
        whole = sn_proto_varint(&q, &n) && n <= (uint64_t)(q.end - q.at);
        if (whole) {
            out->bytes = (sn_proto){q.at, q.at + n};
            q.at += n;
        }
    } else if (out->wire == SN_WIRE_VARINT) {
        whole = sn_proto_varint(&q, &out->value);
    } else if (out->wire == SN_WIRE_32 || out->wire == SN_WIRE_64) {
        whole = sn_proto_fixed(&q, out->wire == SN_WIRE_32 ? 4 : 8, &out->value);
    }
    if (whole)
        *p = q;
    return whole;
}

#endif
