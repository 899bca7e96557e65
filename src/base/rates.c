/* rates.c: what the list of rates makes besides the struct: names, text, hash.
 *
 * 1. A sn_rates is as many doubles as the list has rows, in its order. */
#include "base/rates.h"

#include "base/real.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(sn_rates) == SN_N_RATES * sizeof(double), "rates are doubles in a row");

static const struct {
    const char *name, *what;
} rows[SN_N_RATES] = {
#define SN_RATE_ROW(name, what) {#name, what},
    SN_RATES_MAP(SN_RATE_ROW)
#undef SN_RATE_ROW
};

const char *sn_rate_name(sn_rate rate) {
    return rows[rate].name;
}

const char *sn_rate_what(sn_rate rate) {
    return rows[rate].what;
}

double *sn_rate_at(sn_rates *r, sn_rate rate) {
    return (double *)r + rate;
}

uint64_t sn_rates_hash(const sn_rates *r) {
    uint64_t h = 0xcbf29ce484222325u, bits;
    for (int i = 0; i < SN_N_RATES; i++) {
        memcpy(&bits, (const double *)r + i, sizeof bits);
        h = (h ^ bits) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return h;
}

/* --- text ------------------------------------------------------------------------------------ */
typedef struct {
    const char *from;
    int line;
    sn_rates rates;
    bool seen[SN_N_RATES];
} reader;

static int find_rate(const char *name, size_t n) {
    for (int i = 0; i < SN_N_RATES; i++)
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0)
            return i;
    return -1;
}

static snug_status parse_line(reader *r, const char *line, size_t n, snug_error *err) {
    const size_t word = strcspn(line, " \n");
    const int rate = find_rate(line, word < n ? word : n);
    const char *end;
    double v;
    if (rate < 0)
        return sn_fail(err, SNUG_E_FORMAT, "%s line %d: '%.*s' is no rate; measure again", r->from,
                       r->line, (int)(word < 40 ? word : 40), line);
    if (r->seen[rate] || word >= n || !sn_real_parse(line + word + 1, &end, &v) ||
        end != line + n || !(v > 0) || isinf(v))
        return sn_fail(err, SNUG_E_FORMAT,
                       "%s line %d: %s needs one number above 0, once; measure again", r->from,
                       r->line, rows[rate].name);
    r->seen[rate] = true;
    *sn_rate_at(&r->rates, (sn_rate)rate) = v;
    return SNUG_OK;
}

snug_status sn_rates_parse(const char *text, const char *from, sn_rates *out, snug_error *err) {
    reader r = {.from = from};
    while (*text) {
        const size_t n = strcspn(text, "\n");
        r.line++;
        if (n > 0 && *text != '#')
            SNUG_TRY(parse_line(&r, text, n, err));
        text += n + (text[n] == '\n');
    }
    for (int i = 0; i < SN_N_RATES; i++)
        if (!r.seen[i])
            return sn_fail(err, SNUG_E_FORMAT, "%s has no rate %s; measure again", from,
                           rows[i].name);
    *out = r.rates;
    return SNUG_OK;
}
