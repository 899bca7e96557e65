/* sequence.c: the steps of a feature list of a SequenceExample, each as an Example of one feature,
 * so that parse_example reads them.
 *
 * SequenceExample{context 1, feature_lists 2}: the context lies where an Example has its features,
 * so that parse_single_example reads it as it is. FeatureLists{map 1}: entries {key 1, value 2};
 * FeatureList{feature 1}. */
#include "codec/data_ops.h"
#include "codec/protobuf.h"

#include <string.h>

/* Key and value of an entry; false: damaged. */
static bool read_pair(sn_proto pair, sn_proto *key, sn_proto *value) {
    sn_proto_field field;
    *key = *value = (sn_proto){pair.end, pair.end};
    while (sn_proto_next(&pair, &field)) {
        if (field.wire == SN_WIRE_BYTES && field.number == 1)
            *key = field.bytes;
        else if (field.wire == SN_WIRE_BYTES && field.number == 2)
            *value = field.bytes;
    }
    return pair.at == pair.end;
}

/* Looks for the list under a name among the entries; false: damaged. */
static bool find_entry(sn_proto lists, const snug_text *name, sn_proto *steps, bool *there) {
    sn_proto_field entry;
    sn_proto key, value;
    while (sn_proto_next(&lists, &entry)) {
        if (entry.number != 1 || entry.wire != SN_WIRE_BYTES)
            continue;
        if (!read_pair(entry.bytes, &key, &value))
            return false;
        if ((size_t)(key.end - key.at) != name->bytes ||
            memcmp(key.at, name->data, name->bytes) != 0)
            continue;
        *steps = value;
        *there = true;
    }
    return lists.at == lists.end;
}

/* An empty list where there is none. */
static bool find_steps(sn_proto p, const snug_text *name, sn_proto *steps, bool *there) {
    sn_proto_field lists;
    *there = false;
    *steps = (sn_proto){p.end, p.end};
    while (sn_proto_next(&p, &lists))
        if (lists.number == 2 && lists.wire == SN_WIRE_BYTES &&
            !find_entry(lists.bytes, name, steps, there))
            return false;
    return p.at == p.end;
}

static char *put_varint(char *at, size_t v) {
    for (; v > 127; v >>= 7)
        *at++ = (char)((v & 127) | 128);
    *at++ = (char)v;
    return at;
}

/* Bytes of a field of so many bytes, its head included. */
static size_t field_bytes(size_t n) {
    size_t head = 2;
    for (size_t v = n; v > 127; v >>= 7)
        head++;
    return head + n;
}

static char *put_field(char *at, char number, const void *bytes, size_t n) {
    *at++ = (char)(number << 3 | 2);
    at = put_varint(at, n);
    if (bytes && n > 0)
        memcpy(at, bytes, n);
    return bytes ? at + n : at;
}

/* Example{1: Features{1: {1: name, 2: feature}}}; at NULL: counts alone. */
static size_t write_example(char *at, const snug_text *name, const sn_proto *feature) {
    const size_t n = (size_t)(feature->end - feature->at),
                 entry = field_bytes(name->bytes) + field_bytes(n), features = field_bytes(entry);
    if (at) {
        at = put_field(at, 1, NULL, features);
        at = put_field(at, 1, NULL, entry);
        at = put_field(at, 1, name->data, name->bytes);
        put_field(at, 2, feature->at, n);
    }
    return field_bytes(features);
}

/* How many steps there are and what they take; then into out, which may be NULL. */
static int64_t write_steps(sn_proto steps, const snug_text *name, snug_text *out, char *room,
                           size_t *bytes) {
    sn_proto_field f;
    int64_t n = 0;
    *bytes = 0;
    while (sn_proto_next(&steps, &f)) {
        if (f.number != 1 || f.wire != SN_WIRE_BYTES)
            continue;
        const size_t took = write_example(out ? room + *bytes : NULL, name, &f.bytes);
        if (out)
            out[n] = (snug_text){room + *bytes, took};
        *bytes += took;
        n++;
    }
    return steps.at == steps.end ? n : -1;
}

snug_status sn_data_sequence_steps(sn_data_call *c, snug_error *err) {
    const snug_text name = sn_data_text(c->op, "key");
    sn_proto steps;
    bool there;
    char *room;
    size_t bytes;
    SNUG_TRY(sn_data_want_text(c, 0, err));
    const snug_text *t = sn_texts_of(&c->in[0]);
    if (sn_datum_count(&c->in[0]) != 1 || !name.data)
        return sn_fail(err, SNUG_E_SHAPE, "a SequenceExample is one text");
    const sn_proto all = {(const unsigned char *)t->data,
                          (const unsigned char *)t->data + t->bytes};
    const bool whole = find_steps(all, &name, &steps, &there);
    const int64_t n = whole ? write_steps(steps, &name, NULL, NULL, &bytes) : -1;
    if (n < 0)
        return sn_fail(err, SNUG_E_FORMAT, "a text of %zu bytes is no SequenceExample", t->bytes);
    if (!there && !sn_data_bool(c->op, "missing"))
        return sn_fail(err, SNUG_E_DATA,
                       "feature list '%s' is missing in a SequenceExample; allow_missing takes it "
                       "as empty",
                       name.data);
    const snug_type type = {SNUG_OPAQUE, 1, {n}};
    SNUG_TRY(sn_texts_create(c->engine, &type, bytes, &c->out[0], &room, err));
    write_steps(steps, &name, c->out[0].data, room, &bytes);
    c->n_out = 1;
    return SNUG_OK;
}
