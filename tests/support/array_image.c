/* array_image.c: array files in memory, before they are written; and reading them through feeds. */
#include "support/array_image.h"

#include "tensor/type.h"

#include <stdlib.h>
#include <string.h>

image npy(int version, const char *dict, const void *data, size_t data_bytes) {
    const size_t prefix = version == 1 ? 10 : 12, n = strlen(dict);
    const size_t head = (prefix + n + 1 + 63) / 64 * 64, length = head - prefix;
    image f = {calloc(1, head + data_bytes + 1), head + data_bytes};
    assert_non_null(f.bytes);
    memcpy(f.bytes, "\x93NUMPY", 6);
    f.bytes[6] = (unsigned char)version;
    for (size_t i = 0; i < prefix - 8; i++)
        f.bytes[8 + i] = (unsigned char)(length >> (8 * i));
    memset(f.bytes + prefix, ' ', length);
    memcpy(f.bytes + prefix, dict, n);
    f.bytes[head - 1] = '\n';
    if (data_bytes)
        memcpy(f.bytes + head, data, data_bytes);
    return f;
}

void write_image(const char *path, image f) {
    sn_test_write_file(path, f.bytes, f.n);
    free(f.bytes);
}

snug_status read_all(snug_engine *e, const char *path, snug_error *err) {
    static float room[1 << 14];
    snug_feed *feed;
    SNUG_TRY(snug_feed_open(e, path, &feed, err));
    const snug_type *type = snug_feed_type(feed);
    snug_status status = SNUG_OK;
    const int64_t rows = type->dims[0], row = sn_type_span(type, 1, type->rank);
    for (int64_t i = 0; i < rows && status == SNUG_OK && row > 0; i += 3) {
        snug_view v = {.data = room, .bytes = sizeof room, .type = *type};
        v.type.dtype = SNUG_F32;
        v.type.dims[0] = rows - i < 3 ? rows - i : 3;
        if (row > (int64_t)(sizeof room / sizeof *room) / 3)
            break; /* more than a test wants */
        status = snug_feed_fill(feed, i, v.type.dims[0], &v, err);
    }
    snug_feed_destroy(feed);
    return status;
}

void fill_all(snug_feed *feed, snug_dtype dtype, void *out, size_t bytes) {
    snug_error err = {0};
    snug_view v = {.data = out, .bytes = bytes, .type = *snug_feed_type(feed)};
    v.type.dtype = dtype;
    expect_ok(snug_feed_fill(feed, 0, v.type.dims[0], &v, &err), &err);
}

/* --- gzip ----------------------------------------------------------------------------------- */

image small_npy(void) {
    const float data[6] = {1, 2, 3, 4, 5, 6};
    return npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", data, sizeof data);
}

image packed(image f) {
    image p = {NULL, 0};
    p.bytes = sn_test_gzip(f.bytes, f.n, &p.n);
    free(f.bytes);
    return p;
}

image copy_of(const void *bytes, size_t n) {
    image f = {malloc(n + 1), n};
    assert_non_null(f.bytes);
    memcpy(f.bytes, bytes, n);
    return f;
}
