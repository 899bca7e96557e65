/* attrs.c: the schema of every attribute family, made from attrs.def, and what needs no more than
 * the schema: default, equality and hash. Text is in attrs_text.c.
 *
 * 1. A field's words are where the C struct of its family has the member (offsetof).
 * 2. Equality and hash look at structure fields only: two nodes that differ in parameters are the
 *    same plan. */
#include "op/rules.h"

#include <stddef.h>
#include <string.h>

/* A family's fields become tuples (kind, member, words); EACH hands them one by one, with the name
 * of the family, to FIELD: a macro in the middle of attrs.def could not know whose member it is. */
#define FIELD(family, tuple) FIELD_OPEN(family, FIELD_STRIP tuple)
#define FIELD_STRIP(...)     __VA_ARGS__
#define FIELD_OPEN(...)      FIELD_ROW(__VA_ARGS__)
#define FIELD_ROW(family, field_kind, member, words)                                               \
    {.name = #member,                                                                              \
     .kind = SN_FIELD_##field_kind,                                                                \
     .word = offsetof(sn_attrs_##family, member) / 8,                                              \
     .n = words},
#define EACH(f, ...)                                                                               \
    EACH_PICK(__VA_ARGS__, EACH_8, EACH_7, EACH_6, EACH_5, EACH_4, EACH_3, EACH_2, EACH_1,         \
              EACH_0, )                                                                            \
    (f, __VA_ARGS__)
#define EACH_PICK(e, a, b, c, d, g, h, i, j, chosen, ...) chosen
#define EACH_0(f, e)
#define EACH_1(f, e, a)                      FIELD(f, a)
#define EACH_2(f, e, a, b)                   FIELD(f, a) FIELD(f, b)
#define EACH_3(f, e, a, b, c)                EACH_2(f, e, a, b) FIELD(f, c)
#define EACH_4(f, e, a, b, c, d)             EACH_3(f, e, a, b, c) FIELD(f, d)
#define EACH_5(f, e, a, b, c, d, g)          EACH_4(f, e, a, b, c, d) FIELD(f, g)
#define EACH_6(f, e, a, b, c, d, g, h)       EACH_5(f, e, a, b, c, d, g) FIELD(f, h)
#define EACH_7(f, e, a, b, c, d, g, h, i)    EACH_6(f, e, a, b, c, d, g, h) FIELD(f, i)
#define EACH_8(f, e, a, b, c, d, g, h, i, j) EACH_7(f, e, a, b, c, d, g, h, i) FIELD(f, j)

#define I(name)     , (INT, name, 1)
#define V(name, n)  , (VEC, name, n)
#define S(name)     , (LIST, name, SNUG_MAX_RANK)
#define D(name)     , (DTYPE, name, 1)
#define A(name)     , (ACT, name, 1)
#define P(name)     , (REAL, name, 1)
#define K(name)     , (KEY, name, 1)
#define KV(name, n) , (KEY, name, n)
/* The last row only keeps the array of a family without fields from being empty. */
#define SNUG_ATTRS(family, members)                                                                \
    static const sn_field fields_of_##family[] = {EACH(family, members){.name = NULL}};
#include "op/attrs.def"
#undef SNUG_ATTRS

#define I(name)
#define V(name, n)
#define S(name)
#define D(name)
#define A(name)
#define P(name)     +1
#define K(name)     +1
#define KV(name, n) +n
#define SNUG_ATTRS(family, members)                                                                \
    _Static_assert(sizeof(sn_attrs_##family) <= sizeof(int64_t[SN_ATTR_WORDS]),                    \
                   "attributes of " #family " do not fit SN_ATTR_WORDS");                          \
    _Static_assert(0 members <= SN_MAX_PARAMS, #family " has more than SN_MAX_PARAMS");            \
    const sn_attr_family sn_family_##family = {                                                    \
        .name = #family,                                                                           \
        .n_fields = (int)(sizeof fields_of_##family / sizeof fields_of_##family[0]) - 1,           \
        .fields = fields_of_##family,                                                              \
        .n_params = 0 members,                                                                     \
        .bytes = sizeof(sn_attrs_##family)};
#include "op/attrs.def"
#undef SNUG_ATTRS

/* Fields whose plain value is 1; all others start at 0, which is also f32, no activation, an empty
 * list. Parameters have no plain value: slot -1, which no graph has. */
static const char *const ones[] = {"stride", "dilation", "groups"};

void sn_attrs_default(sn_op op, sn_attrs *a) {
    const sn_attr_family *family = sn_ops[op].attrs;
    memset(a, 0, family->bytes);
    memset((char *)a + family->bytes, 0, sizeof *a - family->bytes);
    for (int i = 0; i < family->n_fields; i++) {
        const sn_field *f = &family->fields[i];
        for (int w = 0; sn_field_is_param(f) && w < f->n; w++)
            a->word[f->word + w] = -1;
        for (size_t k = 0; k < sizeof ones / sizeof ones[0]; k++) {
            const bool is_one = f->name[1] == ones[k][1] && strcmp(f->name, ones[k]) == 0;
            for (int w = 0; is_one && w < f->n; w++)
                a->word[f->word + w] = 1;
        }
    }
}

int sn_attrs_wide(sn_op op) {
    const sn_attr_family *family = sn_ops[op].attrs;
    int word = -1;
    for (int i = 0; sn_ops[op].accumulates && i < family->n_fields && word < 0; i++)
        if (strcmp(family->fields[i].name, "wide") == 0)
            word = (int)family->fields[i].word;
    return word;
}

void sn_attrs_copy(sn_op op, const sn_attrs *from, sn_attrs *to) {
    const size_t bytes = sn_ops[op].attrs->bytes;
    memcpy(to, from, bytes);
    memset((char *)to + bytes, 0, sizeof *to - bytes);
}
