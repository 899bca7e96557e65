/* setting_text.c: reading "NAME:key=value,..." without allocating; every failure shows the piece it
 * did not understand. */
#include "base/setting_text.h"

#include "base/real.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Copies [from, to) without spaces around it; false when it does not fit. */
static bool copy_piece(const char *from, const char *to, char *out, size_t size) {
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    const size_t n = (size_t)(to - from);
    if (n >= size)
        return false;
    memcpy(out, from, n);
    out[n] = 0;
    return true;
}

snug_status sn_option_name(const char *text, char *name, size_t size, snug_error *err) {
    const char *end = text + strcspn(text, ":");
    if (!copy_piece(text, end, name, size) || !name[0])
        return sn_fail(err, SNUG_E_INVALID,
                       "'%.60s' does not start with a name of 1 to %zu letters", text, size - 1);
    return SNUG_OK;
}

size_t sn_text_span(const char *text, const char *stops) {
    int depth = 0;
    size_t n = 0;
    for (; text[n]; n++) {
        if (depth == 0 && strchr(stops, text[n]))
            break;
        depth += text[n] == '[' || text[n] == '(';
        depth -= depth > 0 && (text[n] == ']' || text[n] == ')');
    }
    return n;
}

bool sn_text_item(const char **at, char *item, size_t size) {
    const char *p = *at + strspn(*at, "[, ");
    const char *end = p + strcspn(p, ",]");
    if (!copy_piece(p, end, item, size) || !item[0])
        return false;
    *at = end + strspn(end, ",] ");
    return true;
}

snug_status sn_option_next(const char **at, sn_option *out, bool *more, snug_error *err) {
    const char *p = *at;
    p += *p == ',' || *p == ':' ? 0 : strcspn(p, ":");
    p += *p != 0;
    if (!*p) {
        *at = p;
        *more = false;
        return SNUG_OK;
    }
    const char *end = p + sn_text_span(p, ",");
    const char *equals = memchr(p, '=', (size_t)(end - p));
    sn_option o;
    if (!equals || !copy_piece(p, equals, o.key, sizeof o.key) ||
        !copy_piece(equals + 1, end, o.value, sizeof o.value))
        return sn_fail(err, SNUG_E_INVALID, "'%.60s' is not of the form key=value", p);
    *out = o;
    *at = end;
    *more = true;
    return SNUG_OK;
}

bool sn_text_real(const char *text, double *out) {
    const char *end;
    double v;
    if (!sn_real_parse(text, &end, &v) || *end || !isfinite(v))
        return false;
    *out = v;
    return true;
}

bool sn_text_flag(const char *text, bool *out) {
    const bool yes = sn_same_name(text, "true") || strcmp(text, "1") == 0;
    const bool no = sn_same_name(text, "false") || strcmp(text, "0") == 0;
    if (yes || no)
        *out = yes;
    return yes || no;
}

snug_status sn_option_real(const sn_option *o, double *out, snug_error *err) {
    if (sn_text_real(o->value, out))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s=%s is not a number", o->key, o->value);
}

snug_status sn_option_flag(const sn_option *o, bool *out, snug_error *err) {
    if (sn_text_flag(o->value, out))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INVALID, "%s=%s is neither true nor false", o->key, o->value);
}

bool sn_same_name(const char *a, const char *b) {
    for (;;) {
        a += strspn(a, "_");
        b += strspn(b, "_");
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}

void sn_text_list(char *text, size_t size, const char *item) {
    const size_t n = strlen(text);
    snprintf(text + n, size - n, "%s%s", n ? ", " : "", item);
}

int sn_text_distance(const char *a, const char *b) {
    enum { MOST = 40 };
    int row[MOST + 1];
    const size_t n = strlen(b);
    if (strlen(a) > MOST || n > MOST)
        return MOST;
    for (size_t j = 0; j <= n; j++)
        row[j] = (int)j;
    for (size_t i = 0; a[i]; i++) {
        int before = row[0];
        row[0] = (int)i + 1;
        for (size_t j = 0; j < n; j++) {
            const int above = row[j + 1], swap = before + (a[i] != b[j]);
            const int step = (above < row[j] ? above : row[j]) + 1;
            before = above;
            row[j + 1] = swap < step ? swap : step;
        }
    }
    return row[n];
}

/* The item most like `name` of "a, b, c", where no more than one letter and a third of them differ;
 * else "". */
static void find_near(const char *name, const char *list, char *near, size_t size) {
    int best = 1 + (int)strlen(name) / 3;
    near[0] = 0;
    for (const char *at = list; *at; at += strspn(at, ", ")) {
        char item[48];
        const size_t n = strcspn(at, ",");
        snprintf(item, sizeof item, "%.*s", (int)n, at);
        const int distance = sn_text_distance(name, item);
        if (distance <= best && sn_text_copy(near, size, item))
            best = distance - 1;
        at += n;
    }
}

snug_status sn_refuse_name(const char *what, const char *name, const char *list, snug_error *err) {
    char near[48];
    find_near(name, list, near, sizeof near);
    return sn_fail(err, SNUG_E_UNSUPPORTED, "%s '%.40s' is not known; %s%s%s %s", what, name,
                   near[0] ? "did you mean " : "", near, near[0] ? "? There are" : "there are",
                   list);
}

bool sn_text_copy(char *to, size_t size, const char *from) {
    const size_t n = strlen(from);
    if (n >= size)
        return false;
    memcpy(to, from, n + 1);
    return true;
}

bool sn_text_has(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *p = list; *p; p += strspn(p, " ")) {
        const size_t length = strcspn(p, " ");
        if (length == n && memcmp(p, word, n) == 0)
            return true;
        p += length;
    }
    return false;
}
