/* array_header.c: what stands at the start of an .npy or idx file.
 *
 * Everything is checked before it is used: the declared header length against a cap and the file,
 * the dictionary against numpy's grammar (three keys, each once), each dim, the product of dims and
 * the position of the last byte. */
#include "model/array_header.h"

#include "base/size.h"

#include <stdio.h>
#include <string.h>

static snug_status bad(const char *path, snug_error *err, const char *what) {
    return sn_fail(err, SNUG_E_FORMAT, "%s is not a sound array file: %s", path, what);
}

/* --- npy -------------------------------------------------------------------------------------- */

/* The dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } and spaces up to a
 * newline. */
typedef struct {
    const char *path;
    const char *at; /* text, ends with 0 */
    snug_error *err;
} npy_scan;

static void skip_spaces(npy_scan *s) {
    s->at += strspn(s->at, " \t\n\r");
}

static bool take(npy_scan *s, char c) {
    skip_spaces(s);
    if (*s->at != c)
        return false;
    s->at++;
    return true;
}

/* A quoted word shorter than size. */
static bool take_word(npy_scan *s, char *out, size_t size) {
    skip_spaces(s);
    const char quote = *s->at;
    const char *end = quote == '\'' || quote == '"' ? strchr(s->at + 1, quote) : NULL;
    if (!end || (size_t)(end - s->at - 1) >= size)
        return false;
    memcpy(out, s->at + 1, (size_t)(end - s->at - 1));
    out[end - s->at - 1] = 0;
    s->at = end + 1;
    return true;
}

/* A count below 2^63. */
static bool take_count(npy_scan *s, int64_t *out) {
    int64_t n = 0;
    skip_spaces(s);
    const char *begin = s->at;
    for (; *s->at >= '0' && *s->at <= '9'; s->at++)
        if (!sn_i64_mul(n, 10, &n) || !sn_i64_add(n, *s->at - '0', &n))
            return false;
    *out = n;
    return s->at > begin;
}

/* '<' little and '>' big endian; '|' where there is but one byte. */
static bool npy_dtype(const char *descr, sn_array_header *out) {
#define MATCH(upper, lower, bytes, kind, computed, sums, word, largest, npy, st)                   \
    if (npy[0] && strcmp(descr + 1, &npy[1]) == 0 &&                                               \
        strchr(bytes == 1 ? "|<>" : "<>", descr[0])) {                                             \
        out->type.dtype = SNUG_##upper;                                                            \
        out->big_endian = bytes > 1 && descr[0] == '>';                                            \
        return true;                                                                               \
    }
    if (!descr[0])
        return false;
    SNUG_DTYPE_MAP(MATCH)
#undef MATCH
    return false;
}

static snug_status npy_descr(npy_scan *s, sn_array_header *out) {
    if (!take_word(s, out->descr, sizeof out->descr))
        return bad(s->path, s->err,
                   "its 'descr' is not the name of one element type (records are not supported)");
    if (strcmp(&out->descr[out->descr[0] ? 1 : 0], "V2") == 0)
        return sn_fail(s->err, SNUG_E_FORMAT,
                       "%s holds elements '%s', which is how numpy saves bfloat16: save "
                       "astype('float32') of it",
                       s->path, out->descr);
    if (!npy_dtype(out->descr, out))
        return sn_fail(s->err, SNUG_E_FORMAT,
                       "%s holds elements '%s'; Snug reads f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 b1: "
                       "convert with numpy's astype",
                       s->path, out->descr);
    return SNUG_OK;
}

static snug_status npy_shape(npy_scan *s, snug_type *type) {
    bool comma = true;
    if (!take(s, '('))
        return bad(s->path, s->err, "its 'shape' is no tuple");
    while (!take(s, ')')) {
        if (type->rank == SNUG_MAX_RANK)
            return bad(s->path, s->err, "it has more than 8 axes");
        if (!comma || !take_count(s, &type->dims[type->rank]))
            return bad(s->path, s->err, "an extent in its 'shape' is no count below 2^63");
        type->rank++;
        comma = take(s, ',');
    }
    if (type->rank == 1 && !comma)
        return bad(s->path, s->err, "its 'shape' is no tuple");
    return SNUG_OK;
}

static snug_status npy_order(npy_scan *s, bool *fortran) {
    skip_spaces(s);
    *fortran = strncmp(s->at, "True", 4) == 0;
    if (!*fortran && strncmp(s->at, "False", 5) != 0)
        return bad(s->path, s->err, "its 'fortran_order' is neither True nor False");
    s->at += *fortran ? 4 : 5;
    return SNUG_OK;
}

/* Keys come in any order, each exactly once. */
static snug_status npy_pairs(npy_scan *s, sn_array_header *out, bool *fortran) {
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false, false, false};
    for (int n = 0; n < 3; n++) {
        char key[16];
        int k = 0;
        if (!take_word(s, key, sizeof key) || !take(s, ':'))
            return bad(s->path, s->err,
                       "its header is no dictionary with 'descr', 'fortran_order' and 'shape'");
        while (k < 3 && strcmp(keys[k], key) != 0)
            k++;
        if (k == 3 || seen[k])
            return bad(s->path, s->err, "its header has a key that is unknown or comes twice");
        seen[k] = true;
        SNUG_TRY(k == 0   ? npy_descr(s, out)
                 : k == 1 ? npy_order(s, fortran)
                          : npy_shape(s, &out->type));
        if (!take(s, ',') && n < 2)
            return bad(s->path, s->err, "its header lacks a comma");
    }
    return SNUG_OK;
}

static snug_status npy_dict(const char *path, const char *dict, sn_array_header *out,
                            snug_error *err) {
    npy_scan s = {.path = path, .at = dict, .err = err};
    bool fortran = false;
    if (!take(&s, '{'))
        return bad(path, err, "its header is no dictionary");
    SNUG_TRY(npy_pairs(&s, out, &fortran));
    if (!take(&s, '}'))
        return bad(path, err,
                   "its header has more in it than 'descr', 'fortran_order' and 'shape'");
    skip_spaces(&s);
    if (*s.at)
        return bad(path, err, "there is text behind the dictionary of its header");
    if (fortran && out->type.rank > 1)
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s is in Fortran order; save it with numpy.ascontiguousarray", path);
    return SNUG_OK;
}

static snug_status npy_header(const char *path, const unsigned char *bytes, size_t n,
                              sn_array_header *out, snug_error *err) {
    char dict[SN_ARRAY_HEADER_BYTES];
    const size_t prefix = bytes[6] == 1 ? 10 : 12;
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return sn_fail(err, SNUG_E_FORMAT, "%s is .npy version %d.%d; Snug reads 1.0, 2.0 and 3.0",
                       path, bytes[6], bytes[7]);
    if (n < prefix)
        return bad(path, err, "its header is truncated");
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (prefix == 12)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > n - prefix)
        return bad(path, err, "its header is truncated, or longer than 8,000 bytes");
    memcpy(dict, bytes + prefix, length);
    dict[length] = 0;
    if (strlen(dict) != length)
        return bad(path, err, "there is a zero byte in its header");
    out->format = SN_ARRAY_NPY;
    out->data_offset = (int64_t)(prefix + length);
    return npy_dict(path, dict, out, err);
}

/* --- idx -------------------------------------------------------------------------------------- */

static bool idx_dtype(unsigned char code, snug_dtype *out) {
    static const struct {
        unsigned char code;
        snug_dtype dtype;
    } codes[] = {
        {0x08, SNUG_U8}, {0x09, SNUG_I8}, {0x0c, SNUG_I32}, {0x0d, SNUG_F32}, {0x0e, SNUG_F64}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code) {
            *out = codes[i].dtype;
            return true;
        }
    return false;
}

static snug_status idx_header(const char *path, const unsigned char *bytes, size_t n,
                              sn_array_header *out, snug_error *err) {
    const int rank = bytes[3];
    if (!idx_dtype(bytes[2], &out->type.dtype))
        return sn_fail(
            err, SNUG_E_FORMAT,
            "%s begins like idx, but its element code 0x%02x is none Snug reads (08 09 0c 0d 0e)",
            path, bytes[2]);
    if (rank < 1 || rank > SNUG_MAX_RANK)
        return sn_fail(err, SNUG_E_FORMAT, "%s has %d axes; an idx file for Snug has 1 to %d", path,
                       rank, SNUG_MAX_RANK);
    if (n < 4 + 4 * (size_t)rank)
        return bad(path, err, "its idx header is truncated");
    out->format = SN_ARRAY_IDX;
    out->type.rank = rank;
    for (int i = 0; i < rank; i++) {
        const unsigned char *d = bytes + 4 + 4 * i;
        out->type.dims[i] =
            (int64_t)d[0] << 24 | (int64_t)d[1] << 16 | (int64_t)d[2] << 8 | (int64_t)d[3];
    }
    out->data_offset = 4 + 4 * (int64_t)rank;
    out->big_endian = snug_dtype_bytes(out->type.dtype) > 1;
    snprintf(out->descr, sizeof out->descr, "0x%02x", bytes[2]);
    return SNUG_OK;
}

snug_status sn_array_header_parse(const char *path, const unsigned char *bytes, size_t n,
                                  sn_array_header *out, snug_error *err) {
    sn_array_header h = {.format = SN_ARRAY_NPY};
    size_t data_bytes;
    int64_t end;
    if (n == 0)
        return bad(path, err, "it is empty");
    if (n >= 10 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        SNUG_TRY(npy_header(path, bytes, n, &h, err));
    else if (n >= 4 && bytes[0] == 0 && bytes[1] == 0)
        SNUG_TRY(idx_header(path, bytes, n, &h, err));
    else
        return bad(path, err, "it begins like neither .npy nor idx");
    if (h.type.rank < 1)
        return bad(path, err, "it holds a single number, not rows");
    const snug_status status = snug_type_bytes(&h.type, &data_bytes, err);
    if (status != SNUG_OK)
        return sn_fail_in(err, status, "%s", path);
    if (!sn_i64_add((int64_t)data_bytes, h.data_offset, &end))
        return sn_fail(err, SNUG_E_OVERFLOW, "%s: its %zu bytes of data end beyond 2^63", path,
                       data_bytes);
    *out = h;
    return SNUG_OK;
}
