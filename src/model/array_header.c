/* array_header.c: what stands at the start of an .npy or idx file.
 *
 * Everything is checked before it is used: the declared header length against a cap and the file, each dim, the product of
 * dims, and (for files that are not packed) that the data are exactly as long as the header says. */
#include "model/array_header.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

static snug_status bad(const char *path, snug_error *err, const char *what) {
    return sn_fail(err, SNUG_E_FORMAT, "%s is not a sound array file: %s", path, what);
}

/* --- npy -------------------------------------------------------------------------------------------------------- */

static bool npy_dtype(const char *descr, snug_dtype *out) {
#define MATCH(upper, lower, bytes, npy, st)    \
    if (npy[0] && strcmp(descr, npy) == 0) {   \
        *out = SNUG_##upper;                   \
        return true;                           \
    }
    SNUG_DTYPE_MAP(MATCH)
#undef MATCH
    return false;
}

/* The text behind 'key': in the header's dictionary, or NULL. */
static const char *npy_value(const char *dict, const char *key) {
    const char *at = strstr(dict, key);
    if (!at || !(at = strchr(at + strlen(key), ':')))
        return NULL;
    return at + 1 + strspn(at + 1, " ");
}

static snug_status npy_shape(const char *path, const char *text, snug_type *type, snug_error *err) {
    if (!text || *text != '(')
        return bad(path, err, "no shape in the header");
    text++;
    type->rank = 0;
    for (;;) {
        text += strspn(text, " ,");
        if (*text == ')')
            return SNUG_OK;
        char *end;
        const long long dim = strtoll(text, &end, 10);
        if (end == text || dim < 0 || dim == 0x7fffffffffffffffLL)
            return bad(path, err, "an extent in its shape is no count");
        if (type->rank == SNUG_MAX_RANK)
            return bad(path, err, "it has more than 8 axes");
        type->dims[type->rank++] = dim;
        text = end;
    }
}

static snug_status npy_dict(const char *path, const char *dict, sn_array_header *out, snug_error *err) {
    const char *descr = npy_value(dict, "'descr'"), *order = npy_value(dict, "'fortran_order'");
    if (!descr || *descr != '\'' || strcspn(descr + 1, "'") >= sizeof out->descr)
        return bad(path, err, "no simple 'descr' in the header");
    memcpy(out->descr, descr + 1, strcspn(descr + 1, "'"));
    if (!npy_dtype(out->descr, &out->type.dtype))
        return sn_fail(err, SNUG_E_FORMAT, "%s holds elements '%s'; Snug reads f4 f8 f2 i1 u1 i4 i8 b1, little endian",
                       path, out->descr);
    if (!order || strncmp(order, "False", 5) != 0)
        return sn_fail(err, SNUG_E_FORMAT, "%s is in Fortran order; save it with numpy.ascontiguousarray", path);
    return npy_shape(path, npy_value(dict, "'shape'"), &out->type, err);
}

static snug_status npy_header(const char *path, const unsigned char *bytes, size_t n, sn_array_header *out,
                              snug_error *err) {
    char dict[SN_ARRAY_HEADER_BYTES];
    const size_t prefix = bytes[6] == 1 ? 10 : 12;
    if (bytes[6] < 1 || bytes[6] > 3 || n < prefix)
        return bad(path, err, "unknown .npy version");
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (prefix == 12)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > n - prefix)
        return bad(path, err, "its header is truncated, or longer than 8,000 bytes");
    memcpy(dict, bytes + prefix, length);
    dict[length] = 0;
    out->format = SN_ARRAY_NPY;
    out->data_offset = (int64_t)(prefix + length);
    return npy_dict(path, dict, out, err);
}

/* --- idx -------------------------------------------------------------------------------------------------------- */

static bool idx_dtype(unsigned char code, snug_dtype *out) {
    static const struct {
        unsigned char code;
        snug_dtype dtype;
    } codes[] = {{0x08, SNUG_U8}, {0x09, SNUG_I8}, {0x0c, SNUG_I32}, {0x0d, SNUG_F32}, {0x0e, SNUG_F64}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code) {
            *out = codes[i].dtype;
            return true;
        }
    return false;
}

static snug_status idx_header(const char *path, const unsigned char *bytes, size_t n, sn_array_header *out,
                              snug_error *err) {
    static const char digits[] = "0123456789abcdef";
    const int rank = bytes[3];
    if (!idx_dtype(bytes[2], &out->type.dtype) || rank < 1 || rank > SNUG_MAX_RANK)
        return bad(path, err, "neither .npy nor idx (unknown element code or rank)");
    if (n < 4 + 4 * (size_t)rank)
        return bad(path, err, "its idx header is truncated");
    out->format = SN_ARRAY_IDX;
    out->type.rank = rank;
    for (int i = 0; i < rank; i++) {
        const unsigned char *d = bytes + 4 + 4 * i;
        out->type.dims[i] = (int64_t)d[0] << 24 | (int64_t)d[1] << 16 | (int64_t)d[2] << 8 | (int64_t)d[3];
    }
    out->data_offset = 4 + 4 * (int64_t)rank;
    out->big_endian = snug_dtype_bytes(out->type.dtype) > 1;
    out->descr[0] = '0', out->descr[1] = 'x', out->descr[2] = digits[bytes[2] >> 4], out->descr[3] = digits[bytes[2] & 15];
    return SNUG_OK;
}

snug_status sn_array_header_parse(const char *path, const unsigned char *bytes, size_t n, sn_array_header *out,
                                  snug_error *err) {
    sn_array_header h = {.format = SN_ARRAY_NPY};
    size_t data_bytes;
    if (n >= 10 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        SNUG_TRY(npy_header(path, bytes, n, &h, err));
    else if (n >= 4 && bytes[0] == 0 && bytes[1] == 0)
        SNUG_TRY(idx_header(path, bytes, n, &h, err));
    else
        return bad(path, err, "it begins like neither .npy nor idx");
    if (h.type.rank < 1)
        return bad(path, err, "it holds a single number, not rows");
    SNUG_TRY(snug_type_bytes(&h.type, &data_bytes, err));
    *out = h;
    return SNUG_OK;
}
