/* records.c: the records of files, one text each: TFRecord (length, checksum, bytes, checksum) and
 * lines of text. Files come from the dataset before it and are open one at a time.
 *
 * Memory: a window (input.h) and the record itself, whose length is checked against its checksum
 * and against what is left of the file before it is asked for. */
#include "base/size.h"
#include "codec/crc32c.h"
#include "codec/data_ops.h"
#include "data/input.h"
#include "codec/picture_write.h"
#include "data/stage.h"

#include <string.h>

#define MOST_RECORD_BYTES ((uint64_t)1 << 31) /* of packed files, whose length nobody knows */
#define MOST_LINE_BYTES   ((size_t)64 << 20)

typedef struct {
    snug_records kind;
    snug_compression packed;
} record_options;

typedef struct {
    sn_input *in;    /* NULL: the next file is to be opened */
    int64_t n;       /* records of it so far */
    bool has_length; /* of a record whose bytes come next, there was no room for them */
    uint64_t length;
    snug_error lost; /* a part of a line was read and is gone: said again at each call */
} record_cursor;

static const snug_type one_text = {.dtype = SNUG_OPAQUE, .rank = 0};

/* --- TFRecord --------------------------------------------------------------------------------- */
static snug_status cut_short(const record_cursor *r, size_t got, size_t n, snug_error *err) {
    return sn_fail(err, SNUG_E_FORMAT,
                   "'%s' is truncated: record %lld ends at byte %lld, %zu bytes early; get a whole "
                   "copy",
                   sn_input_path(r->in), (long long)r->n, (long long)sn_input_at(r->in), n - got);
}

static snug_status read_whole(record_cursor *r, void *to, size_t n, snug_error *err) {
    size_t got;
    SNUG_TRY(sn_input_read(r->in, to, n, &got, err));
    return got == n ? SNUG_OK : cut_short(r, got, n, err);
}

static snug_status bad_sum(const record_cursor *r, int64_t at, const char *what, snug_error *err) {
    return sn_fail(err, SNUG_E_FORMAT,
                   "'%s': record %lld at byte %lld: the checksum of its %s is wrong; the file is "
                   "damaged, no TFRecord file, or packed (compression_type)",
                   sn_input_path(r->in), (long long)r->n, (long long)at, what);
}

/* A packed file's length nobody knows, but from so many bytes no more than so many come. */
static snug_status check_length(const record_cursor *r, uint64_t length, snug_error *err) {
    const int64_t left = sn_input_left(r->in), most = sn_input_most(r->in);
    if (left < 0 && length > MOST_RECORD_BYTES)
        return sn_fail(err, SNUG_E_FORMAT,
                       "'%s': record %lld has %llu bytes, more than the limit of %llu",
                       sn_input_path(r->in), (long long)r->n, (unsigned long long)length,
                       (unsigned long long)MOST_RECORD_BYTES);
    if (length <= (uint64_t)most)
        return SNUG_OK;
    if (left >= 0)
        return cut_short(r, (size_t)left, (size_t)length + 4, err);
    return sn_fail(err, SNUG_E_FORMAT,
                   "'%s' is truncated: record %lld has %llu bytes, and what is left of the file "
                   "unpacks to %lld at most; get a whole copy",
                   sn_input_path(r->in), (long long)r->n, (unsigned long long)length,
                   (long long)most);
}

/* The length of the next record; *end: there is none. */
static snug_status read_length(record_cursor *r, uint64_t *length, bool *end, snug_error *err) {
    unsigned char head[12];
    const int64_t at = sn_input_at(r->in);
    size_t got;
    uint32_t sum;
    SNUG_TRY(sn_input_read(r->in, head, sizeof head, &got, err));
    *end = got == 0;
    if (*end)
        return SNUG_OK;
    if (got < sizeof head)
        return cut_short(r, got, sizeof head, err);
    memcpy(length, head, 8);
    memcpy(&sum, head + 8, 4);
    if (sum != sn_crc32c_masked(head, 8))
        return bad_sum(r, at, "length", err);
    return check_length(r, *length, err);
}

static snug_status read_body(record_cursor *r, char *room, size_t n, snug_error *err) {
    const int64_t at = sn_input_at(r->in) - 12;
    uint32_t sum;
    SNUG_TRY(read_whole(r, room, n + 4, err));
    memcpy(&sum, room + n, 4);
    return sum == sn_crc32c_masked(room, n) ? SNUG_OK : bad_sum(r, at, "bytes", err);
}

/* r->length: of the next record, which may have been read already. */
static snug_status find_length(record_cursor *r, bool *end, snug_error *err) {
    *end = false;
    if (!r->has_length)
        SNUG_TRY(read_length(r, &r->length, end, err));
    r->has_length = !*end;
    return SNUG_OK;
}

static snug_status next_record(sn_cursor *c, snug_datum *out, bool *end, snug_error *err) {
    record_cursor *r = c->ctx;
    SNUG_TRY(find_length(r, end, err));
    if (*end)
        return SNUG_OK;
    const size_t length = (size_t)r->length;
    char *room;
    snug_status status = sn_texts_create(c->stage->engine, &one_text, length + 4, out, &room, err);
    if (status != SNUG_OK)
        return sn_fail_in(err, status, "'%s': record %lld of %zu bytes", sn_input_path(r->in),
                          (long long)r->n, length);
    r->has_length = false;
    status = read_body(r, room, length, err);
    if (status != SNUG_OK)
        snug_datum_drop(out);
    else
        *(snug_text *)out->data = (snug_text){room, length};
    return status;
}

/* --- lines ------------------------------------------------------------------------------------ */
/* As TensorFlow: a line ends at \n, and \r goes wherever it stands. */
static snug_status line_text(snug_engine *e, const char *bytes, size_t n, snug_datum *out,
                             snug_error *err) {
    char *room;
    SNUG_TRY(sn_texts_create(e, &one_text, n, out, &room, err));
    size_t kept = 0;
    if (memchr(bytes, '\r', n)) {
        for (size_t i = 0; i < n; i++)
            if (bytes[i] != '\r')
                room[kept++] = bytes[i];
    } else {
        memcpy(room, bytes, n);
        kept = n;
    }
    *(snug_text *)out->data = (snug_text){room, kept};
    return SNUG_OK;
}

/* A line that does not lie in one window; *found: it ended. */
static snug_status gather_line(record_cursor *r, sn_growing *line, bool *found, snug_error *err) {
    const char *bytes;
    size_t n;
    for (*found = false; !*found;) {
        SNUG_TRY(sn_input_look(r->in, &bytes, &n, err));
        if (n == 0)
            return SNUG_OK;
        const char *stop = memchr(bytes, '\n', n);
        const size_t here = stop ? (size_t)(stop - bytes) : n;
        if (line->n + here > MOST_LINE_BYTES)
            return sn_fail(err, SNUG_E_FORMAT,
                           "'%s': line %lld has more than %zu bytes, up to byte %lld; is it text?",
                           sn_input_path(r->in), (long long)r->n, MOST_LINE_BYTES,
                           (long long)sn_input_at(r->in));
        if (!sn_growing_room(line, here))
            return sn_fail(err, SNUG_E_MEMORY, "'%s': no memory for line %lld of %zu bytes or more",
                           sn_input_path(r->in), (long long)r->n, line->n + here);
        memcpy((char *)line->block.data + line->n, bytes, here);
        line->n += here;
        sn_input_take(r->in, here + (stop != NULL));
        *found = stop != NULL;
    }
    return SNUG_OK;
}

static snug_status long_line(sn_cursor *c, snug_datum *out, bool *end, snug_error *err) {
    sn_growing line;
    bool found;
    SNUG_TRY(sn_growing_begin(c->stage->engine, 4096, &line, err));
    snug_status status = gather_line(c->ctx, &line, &found, err);
    *end = status == SNUG_OK && !found && line.n == 0;
    if (status == SNUG_OK && !*end)
        status = line_text(c->stage->engine, line.block.data, line.n, out, err);
    sn_growing_end(&line);
    return status;
}

static snug_status next_line(sn_cursor *c, snug_datum *out, bool *end, snug_error *err) {
    record_cursor *r = c->ctx;
    const char *bytes;
    size_t n;
    SNUG_TRY(sn_input_look(r->in, &bytes, &n, err));
    *end = n == 0;
    if (*end)
        return SNUG_OK;
    const char *stop = memchr(bytes, '\n', n);
    if (!stop)
        return long_line(c, out, end, err);
    SNUG_TRY(line_text(c->stage->engine, bytes, (size_t)(stop - bytes), out, err));
    sn_input_take(r->in, (size_t)(stop - bytes) + 1);
    return SNUG_OK;
}

/* --- the stage -------------------------------------------------------------------------------- */
static snug_status open_named(sn_cursor *c, const snug_element *name, snug_error *err) {
    const record_options *o = c->stage->ctx;
    record_cursor *r = c->ctx;
    const snug_text *t = name->part[0].data;
    char path[4096];
    if (t->bytes == 0 || t->bytes >= sizeof path || memchr(t->data, 0, t->bytes))
        return sn_fail(err, SNUG_E_INVALID, "a text of %zu bytes is no name of a file", t->bytes);
    memcpy(path, t->data, t->bytes);
    path[t->bytes] = 0;
    r->n = 0;
    return sn_input_open(c->stage->engine, path, o->packed, &r->in, err);
}

static snug_status open_next(sn_cursor *c, snug_error *err) {
    snug_element name = {.n = 0};
    SNUG_TRY(sn_cursor_next(c->before[0], &name, err));
    const snug_status status = open_named(c, &name, err);
    snug_element_drop(&name);
    return status;
}

static void close_file(record_cursor *r) {
    sn_input_close(r->in);
    r->in = NULL;
    r->has_length = false;
}

/* One record; *end: the file has no more. */
typedef snug_status (*record_fn)(sn_cursor *c, snug_datum *out, bool *end, snug_error *err);

/* Behind a damaged record nothing of a file can be trusted: the next file comes. Where there was no
 * room for a record, it is the next one still; or a part of it is lost, and nothing follows. */
static void note_failure(record_cursor *r, int64_t at, const snug_error *why) {
    const bool lacks = why->code == SNUG_E_BUDGET || why->code == SNUG_E_MEMORY;
    if (lacks && (r->has_length || sn_input_at(r->in) == at))
        return;
    if (lacks)
        r->lost = *why;
    close_file(r);
}

/* The next record of the files by `read`. */
static snug_status read_next(sn_cursor *c, record_fn read, snug_datum *out, snug_error *err) {
    record_cursor *r = c->ctx;
    snug_error why = r->lost;
    snug_status status = why.code;
    for (bool end = true; end && status == SNUG_OK;) {
        if (!r->in)
            SNUG_TRY(open_next(c, err));
        const int64_t at = sn_input_at(r->in);
        status = read(c, out, &end, &why);
        if (status != SNUG_OK)
            note_failure(r, at, &why);
        else if (end)
            close_file(r);
    }
    if (status != SNUG_OK && err)
        *err = why;
    r->n += status == SNUG_OK;
    return status;
}

static snug_status next_text(sn_cursor *c, snug_element *out, snug_error *err) {
    const record_options *o = c->stage->ctx;
    SNUG_TRY(read_next(c, o->kind == SNUG_LINES ? next_line : next_record, &out->part[0], err));
    out->n = 1;
    return SNUG_OK;
}

/* Of a plain file the record's head alone is read. */
static snug_status skip_record(sn_cursor *c, snug_datum *out, bool *end, snug_error *err) {
    record_cursor *r = c->ctx;
    (void)out;
    SNUG_TRY(find_length(r, end, err));
    const size_t left = (size_t)sn_input_left(r->in);
    r->has_length = false;
    if (*end || sn_input_skip(r->in, (int64_t)r->length + 4))
        return SNUG_OK;
    return cut_short(r, left, (size_t)r->length + 4, err);
}

static snug_status seek_text(sn_cursor *c, int64_t n, int64_t *done, snug_error *err) {
    const record_options *o = c->stage->ctx;
    const bool fast = o->kind == SNUG_RECORDS && o->packed == SNUG_PLAIN;
    for (*done = 0; *done < n; ++*done) {
        snug_datum d = {.data = NULL};
        const snug_status status = read_next(c,
                                             fast                    ? skip_record
                                             : o->kind == SNUG_LINES ? next_line
                                                                     : next_record,
                                             &d, err);
        snug_datum_drop(&d);
        if (status == SNUG_E_END)
            return SNUG_OK;
        SNUG_TRY(status);
    }
    return SNUG_OK;
}

static snug_status open_records(sn_cursor *c, snug_error *err) {
    return sn_cursor_ctx(c, sizeof(record_cursor), err);
}

static void close_records(sn_cursor *c) {
    if (c->ctx)
        close_file(c->ctx);
}

static const sn_stage_class records_class = {.name = "records",
                                             .open = open_records,
                                             .next = next_text,
                                             .close = close_records,
                                             .seek = seek_text};

snug_status snug_dataset_records(snug_dataset *files, snug_records kind,
                                 snug_compression compression, snug_dataset **out,
                                 snug_error *err) {
    SNUG_TRY(sn_stage_wants(files, out, err));
    if (files && (files->spec.n != 1 || !files->spec.is_text[0] || files->spec.type[0].rank != 0)) {
        snug_dataset_drop(files);
        return sn_fail(err, SNUG_E_INVALID,
                       "records are read from files: elements before it are one name each");
    }
    snug_dataset *d = NULL;
    SNUG_TRY(sn_stage_after(&records_class, files, sizeof(record_options), &d, err));
    *(record_options *)d->ctx = (record_options){kind, compression};
    d->cardinality = SNUG_UNKNOWN;
    *out = d;
    return SNUG_OK;
}
