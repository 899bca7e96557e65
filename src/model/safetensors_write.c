/* safetensors_write.c: the writer: header first, then the data in the header's order. The order is
 * that of the format's own library, so that equal weights are equal bytes: by dtype as ranked
 * below, highest first, then by name. Larger elements come first, so every tensor is aligned to its
 * elements; the header is padded with spaces to 8. */
#include "model/safetensors.h"

#include "base/file.h"
#include "base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_BYTES 320u /* dtype, 8 dims and 2 offsets of at most 20 digits each, punctuation */

typedef struct {
    char *text;
    size_t n;
} header_text;

static const char *const dtype_names[SNUG_N_DTYPES] = {
#define NAME(upper, lower, bytes, kind, computed, sums, word, largest, npy, st) [SNUG_##upper] = st,
    SNUG_DTYPE_MAP(NAME)
#undef NAME
};

/* The order of the library's dtypes: BOOL U8 I8 ... I16 U16 F16 BF16 I32 U32 F32 F64 I64. */
static const int dtype_ranks[SNUG_N_DTYPES] = {
    [SNUG_BOOL] = 0, [SNUG_U8] = 1,   [SNUG_I8] = 2,      [SNUG_I16] = 3, [SNUG_U16] = 4,
    [SNUG_F16] = 5,  [SNUG_BF16] = 6, [SNUG_I32] = 7,     [SNUG_U32] = 8, [SNUG_F32] = 9,
    [SNUG_F64] = 10, [SNUG_I64] = 11, [SNUG_OPAQUE] = -1,
};

static int by_dtype_then_name(const void *a, const void *b) {
    const sn_st_tensor *x = *(const sn_st_tensor *const *)a, *y = *(const sn_st_tensor *const *)b;
    const int rx = dtype_ranks[x->view.type.dtype], ry = dtype_ranks[y->view.type.dtype];
    if (rx != ry)
        return rx > ry ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Fits: header_bytes is an upper bound. */
static void put(header_text *h, const char *text, size_t n) {
    memcpy(h->text + h->n, text, n);
    h->n += n;
}

static void put_name(header_text *h, const char *name) {
    put(h, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        char escape[8];
        if (*c == '"' || *c == '\\')
            put(h, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", *c));
        else if (*c < 0x20)
            put(h, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", *c));
        else
            put(h, (const char *)c, 1);
    }
    put(h, "\"", 1);
}

static void put_entry(header_text *h, const sn_st_tensor *t, uint64_t begin) {
    char text[ENTRY_BYTES];
    const snug_type *type = &t->view.type;
    int n = snprintf(text, sizeof text, ":{\"dtype\":\"%s\",\"shape\":[", dtype_names[type->dtype]);
    for (int i = 0; i < type->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", i ? "," : "",
                      (long long)type->dims[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "],\"data_offsets\":[%llu,%llu]}",
                  (unsigned long long)begin, (unsigned long long)(begin + t->view.bytes));
    put_name(h, t->name);
    put(h, text, (size_t)n);
}

/* An upper bound: at most six bytes for each of a name's. */
static snug_status header_bytes(const char *path, const sn_st_tensor *tensors, size_t n,
                                size_t *out, snug_error *err) {
    size_t total = 32;
    for (size_t i = 0; i < n; i++) {
        size_t name;
        if (!dtype_names[tensors[i].view.type.dtype][0])
            return sn_fail(err, SNUG_E_UNSUPPORTED,
                           "%s: tensor '%s' is %s, which safetensors cannot hold", path,
                           tensors[i].name, snug_dtype_name(tensors[i].view.type.dtype));
        if (!sn_size_mul(strlen(tensors[i].name), 6, &name) || !sn_size_add(total, name, &total) ||
            !sn_size_add(total, ENTRY_BYTES + 4, &total))
            return sn_fail(err, SNUG_E_OVERFLOW, "%s: the header of %zu tensors is too large", path,
                           n);
    }
    *out = total;
    return SNUG_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const sn_st_tensor *const *)a)->name, (*(const sn_st_tensor *const *)b)->name);
}

/* Equal names would make a file no reader takes. */
static snug_status put_in_order(const char *path, const sn_st_tensor **order, size_t n,
                                snug_error *err) {
    qsort(order, n, sizeof *order, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            return sn_fail(err, SNUG_E_INVALID, "%s: two tensors are named '%s'; rename a layer",
                           path, order[i]->name);
    qsort(order, n, sizeof *order, by_dtype_then_name);
    return SNUG_OK;
}

static void build_header(header_text *h, const sn_st_tensor *const *order, size_t n) {
    uint64_t at = 0;
    put(h, "\0\0\0\0\0\0\0\0{", 9);
    for (size_t i = 0; i < n; i++) {
        if (i)
            put(h, ",", 1);
        put_entry(h, order[i], at);
        at += order[i]->view.bytes;
    }
    put(h, "}", 1);
    while (h->n % 8)
        put(h, " ", 1);
    for (size_t i = 0; i < 8; i++)
        h->text[i] = (char)((uint64_t)(h->n - 8) >> (8 * i) & 0xff);
}

static snug_status write_all(sn_file *f, const header_text *h, const sn_st_tensor *const *order,
                             size_t n, snug_error *err) {
    int64_t at = (int64_t)h->n;
    SNUG_TRY(sn_file_write(f, h->text, h->n, 0, err));
    for (size_t i = 0; i < n; i++) {
        SNUG_TRY(sn_file_write(f, order[i]->view.data, order[i]->view.bytes, at, err));
        at += (int64_t)order[i]->view.bytes;
    }
    return sn_file_commit(f, err);
}

snug_status sn_safetensors_save(snug_engine *e, const char *path, const sn_st_tensor *tensors,
                                size_t n, snug_error *err) {
    void *order_memory = NULL, *text = NULL;
    size_t order_bytes, size = 0;
    sn_file file = {.fd = -1};
    SNUG_TRY(header_bytes(path, tensors, n, &size, err));
    if (!sn_size_mul(n + 1, sizeof(void *), &order_bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "%s: the header of %zu tensors is too large", path, n);
    SNUG_TRY(sn_alloc(e, SN_MEM_OTHER, order_bytes, &order_memory, err));
    const sn_st_tensor **order = order_memory;
    snug_status status = sn_alloc(e, SN_MEM_OTHER, size, &text, err);
    if (status != SNUG_OK)
        goto done;
    for (size_t i = 0; i < n; i++)
        order[i] = &tensors[i];
    status = put_in_order(path, order, n, err);
    if (status != SNUG_OK)
        goto done;
    header_text h = {.text = text};
    build_header(&h, order, n);
    status = sn_file_create(&file, sn_engine_io(e), path, err);
    if (status == SNUG_OK)
        status = write_all(&file, &h, order, n, err);
done:
    sn_file_close(&file);
    sn_free(e, SN_MEM_OTHER, text, size);
    sn_free(e, SN_MEM_OTHER, order_memory, order_bytes);
    return status;
}
