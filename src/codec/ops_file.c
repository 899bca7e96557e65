/* ops_file.c: functions on whole files: read_file, write_file; and names of files by pattern. */
#include "base/file.h"
#include "base/size.h"
#include "codec/data_ops.h"
#include "codec/file_list.h"

#include <stdio.h>
#include <string.h>

#define MAX_PATH 4096

/* Texts may hold any bytes; names of files end at the first zero byte. */
static snug_status path_of(const snug_text *t, char path[MAX_PATH], snug_error *err) {
    if (t->bytes == 0 || t->bytes >= MAX_PATH || memchr(t->data, 0, t->bytes))
        return sn_fail(err, SNUG_E_INVALID, "a text of %zu bytes ('%.64s') is no name of a file",
                       t->bytes, t->bytes > 0 && t->bytes < MAX_PATH ? t->data : "");
    memcpy(path, t->data, t->bytes);
    path[t->bytes] = 0;
    return SNUG_OK;
}

static snug_status read_whole(snug_engine *e, sn_file *f, const char *path, snug_datum *out,
                              snug_error *err) {
    const snug_type scalar = {.dtype = SNUG_OPAQUE, .rank = 0};
    size_t room_bytes;
    if (f->size < 0 || !sn_size_add((size_t)f->size, SN_ORIGIN_ROOM, &room_bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "'%s' exceeds the address space", path);
    snug_datum d;
    char *room;
    snug_status status = sn_texts_create(e, &scalar, room_bytes, &d, &room, err);
    if (status != SNUG_OK)
        return sn_fail_in(err, status, "'%s' of %lld bytes", path, (long long)f->size);
    status = sn_file_read(f, room, (size_t)f->size, 0, err);
    if (status != SNUG_OK) {
        snug_datum_drop(&d);
        return status;
    }
    *(snug_text *)d.data = (snug_text){room, (size_t)f->size};
    sn_origin_put(room + f->size, path);
    *out = d;
    return SNUG_OK;
}

snug_status sn_data_read_file(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    if (sn_datum_count(&c->in[0]) != 1)
        return sn_fail(err, SNUG_E_SHAPE, "tf.io.read_file takes one name, not %lld",
                       (long long)sn_datum_count(&c->in[0]));
    char path[MAX_PATH];
    SNUG_TRY(path_of(sn_texts_of(&c->in[0]), path, err));
    sn_file f;
    SNUG_TRY(sn_file_open(&f, sn_engine_io(c->engine), path, err));
    const snug_status status = read_whole(c->engine, &f, path, &c->out[0], err);
    sn_file_close(&f);
    c->n_out = status == SNUG_OK;
    return status;
}

/* Makes the folders of a path, as tf.io.write_file does; whether they exist shows when the file is
 * made. */
static void make_folders(const snug_io *io, char *path) {
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        (void)io->mkdir(io->ctx, path, 0777);
        *at = '/';
    }
}

snug_status sn_data_write_file(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    SNUG_TRY(sn_data_want_text(c, 1, err));
    if (sn_datum_count(&c->in[0]) != 1 || sn_datum_count(&c->in[1]) != 1)
        return sn_fail(err, SNUG_E_SHAPE, "tf.io.write_file takes one name and one text");
    char path[MAX_PATH];
    SNUG_TRY(path_of(sn_texts_of(&c->in[0]), path, err));
    const snug_io *io = sn_engine_io(c->engine);
    const snug_text *t = sn_texts_of(&c->in[1]);
    make_folders(io, path);
    sn_file f;
    SNUG_TRY(sn_file_create(&f, io, path, err));
    snug_status status = sn_file_write(&f, t->data, t->bytes, 0, err);
    if (status == SNUG_OK)
        status = sn_file_commit(&f, err);
    sn_file_close(&f);
    return status;
}

/* --- names ------------------------------------------------------------------------------------ */
static snug_status match_all(const sn_data_call *c, sn_file_list *l, snug_error *err) {
    char pattern[4096];
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++) {
        const snug_text *t = &sn_texts_of(&c->in[0])[i];
        if (t->bytes == 0 || t->bytes >= sizeof pattern)
            return sn_fail(err, SNUG_E_INVALID, "a pattern of %zu bytes", t->bytes);
        memcpy(pattern, t->data, t->bytes);
        pattern[t->bytes] = 0;
        SNUG_TRY(sn_file_list_match(l, pattern, err));
    }
    sn_file_list_sort(l, 0);
    return SNUG_OK;
}

snug_status sn_data_matching_files(sn_data_call *c, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    sn_file_list l = {.engine = c->engine};
    snug_status status = match_all(c, &l, err);
    const snug_type shape = {SNUG_OPAQUE, 1, {(int64_t)l.n}};
    char *room;
    if (status == SNUG_OK)
        status = sn_texts_create(c->engine, &shape, l.n_bytes, &c->out[0], &room, err);
    for (size_t i = 0; status == SNUG_OK && i < l.n; i++) {
        const size_t n = strlen(sn_file_list_at(&l, i));
        memcpy(room, sn_file_list_at(&l, i), n);
        ((snug_text *)c->out[0].data)[i] = (snug_text){room, n};
        room += n;
    }
    sn_file_list_clear(&l);
    c->n_out = status == SNUG_OK;
    return status;
}
