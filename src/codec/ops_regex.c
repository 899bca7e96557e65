/* ops_regex.c: tf.strings.regex_replace and regex_full_match. The pattern is compiled once, when
 * the function is made. */
#include "base/size.h"
#include "codec/data_ops.h"
#include "codec/regex.h"

#include <string.h>

snug_status sn_prepare_regex(snug_data_op *op, snug_error *err) {
    const snug_text pattern = sn_data_text(op, "pattern");
    sn_regex *r;
    if (!pattern.data)
        return sn_fail(err, SNUG_E_INVALID, "the pattern is missing");
    SNUG_TRY(sn_regex_create(op->zone, &pattern, &r, err));
    op->prepared = r;
    return SNUG_OK;
}

/* Work for the longest text of the part. */
static snug_status take_work(const sn_data_call *c, snug_datum *out, snug_error *err) {
    SNUG_TRY(sn_data_want_text(c, 0, err));
    size_t longest = 0, bytes;
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++)
        longest =
            sn_texts_of(&c->in[0])[i].bytes > longest ? sn_texts_of(&c->in[0])[i].bytes : longest;
    if (!sn_regex_work(c->op->prepared, longest, &bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "a text of %zu bytes is too long for a pattern",
                       longest);
    return sn_scratch(c->engine, bytes, out, err);
}

snug_status sn_data_regex_full_match(sn_data_call *c, snug_error *err) {
    snug_datum work;
    snug_type type = c->in[0].type;
    type.dtype = SNUG_BOOL;
    SNUG_TRY(take_work(c, &work, err));
    const snug_status status = snug_datum_create(c->engine, &type, &c->out[0], err);
    sn_regex_match m;
    for (int64_t i = 0; status == SNUG_OK && i < sn_datum_count(&c->in[0]); i++)
        ((unsigned char *)c->out[0].data)[i] =
            sn_regex_find(c->op->prepared, &sn_texts_of(&c->in[0])[i], 0, true, work.data, &m);
    snug_datum_drop(&work);
    c->n_out = status == SNUG_OK;
    return status;
}

/* --- replace ---------------------------------------------------------------------------------- */
typedef struct {
    const sn_regex *regex;
    snug_text rewrite;
    bool global;
    void *work;
} replacing;

static size_t put(char *to, const char *from, size_t n) {
    if (to && n > 0)
        memcpy(to, from, n);
    return n;
}

/* The rewrite with \0 to \9 filled in. */
static size_t put_rewrite(const replacing *p, const snug_text *t, const sn_regex_match *m,
                          char *to) {
    size_t n = 0;
    const snug_text *r = &p->rewrite;
    for (size_t i = 0; i < r->bytes; i++) {
        const bool escape = r->data[i] == '\\' && i + 1 < r->bytes;
        if (!escape) {
            n += put(to ? to + n : NULL, r->data + i, 1);
            continue;
        }
        const char c = r->data[++i];
        const size_t group = (size_t)(c - '0');
        if (c >= '0' && c <= '9' && m->at[2 * group] != SIZE_MAX)
            n += put(to ? to + n : NULL, t->data + m->at[2 * group],
                     m->at[2 * group + 1] - m->at[2 * group]);
        else if (c == '\\')
            n += put(to ? to + n : NULL, "\\", 1);
    }
    return n;
}

/* Bytes of the UTF-8 character at i; 1 at the end. */
static size_t character_bytes(const snug_text *t, size_t i) {
    size_t n = 1;
    while (i + n < t->bytes && ((unsigned char)t->data[i + n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* The text with matches replaced; an empty match right behind a match is none, as in RE2. */
static size_t put_replaced(const replacing *p, const snug_text *t, char *to) {
    size_t n = 0, from = 0, last_end = SIZE_MAX;
    sn_regex_match m;
    while (from <= t->bytes && sn_regex_find(p->regex, t, from, false, p->work, &m)) {
        n += put(to ? to + n : NULL, t->data + from, m.at[0] - from);
        const bool empty = m.at[0] == m.at[1];
        if (!empty || m.at[0] != last_end)
            n += put_rewrite(p, t, &m, to ? to + n : NULL);
        from = last_end = m.at[1];
        const size_t next = from + (empty ? character_bytes(t, from) : 0);
        if (empty && from < t->bytes)
            n += put(to ? to + n : NULL, t->data + from, next - from);
        from = next;
        if (!p->global)
            break;
    }
    if (from < t->bytes)
        n += put(to ? to + n : NULL, t->data + from, t->bytes - from);
    return n;
}

static snug_status check_rewrite(const snug_text *r, int groups, snug_error *err) {
    for (size_t i = 0; i < r->bytes; i++) {
        if (r->data[i] != '\\')
            continue;
        const char c = ++i < r->bytes ? r->data[i] : 0;
        if (c != '\\' && !(c >= '0' && c <= '9' && c - '0' <= groups))
            return sn_fail(err, SNUG_E_INVALID,
                           "rewrite '%.*s': behind a backslash stands a group 0 to %d, or another "
                           "backslash",
                           (int)r->bytes, r->data, groups);
    }
    return SNUG_OK;
}

snug_status sn_data_regex_replace(sn_data_call *c, snug_error *err) {
    replacing p = {c->op->prepared, sn_data_text(c->op, "rewrite"),
                   sn_data_bool(c->op, "replace_global"), NULL};
    SNUG_TRY(check_rewrite(&p.rewrite, sn_regex_groups(p.regex), err));
    snug_datum work;
    SNUG_TRY(take_work(c, &work, err));
    p.work = work.data;
    const snug_text *in = sn_texts_of(&c->in[0]);
    size_t bytes = 0;
    for (int64_t i = 0; i < sn_datum_count(&c->in[0]); i++)
        bytes += put_replaced(&p, &in[i], NULL);
    char *room;
    const snug_status status =
        sn_texts_create(c->engine, &c->in[0].type, bytes, &c->out[0], &room, err);
    for (int64_t i = 0; status == SNUG_OK && i < sn_datum_count(&c->in[0]); i++) {
        const size_t n = put_replaced(&p, &in[i], room);
        ((snug_text *)c->out[0].data)[i] = (snug_text){room, n};
        room += n;
    }
    snug_datum_drop(&work);
    c->n_out = status == SNUG_OK;
    return status;
}
