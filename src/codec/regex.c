/* regex.c: a pattern becomes a program; a search walks it depth first in order of preference and
 * never visits the same (instruction, position) twice, so that its time is linear in the text.
 *
 * Jumps are relative: a piece of the program can be moved (a split in front of it) and copied
 * (x{3}) as it is. */
#include "codec/regex.h"

#include "base/size.h"

#include <string.h>

typedef enum {
    SET,
    JUMP,
    SPLIT,
    SAVE,
    LINE_BEGIN,
    LINE_END,
    BEGIN,
    END,
    EDGE,
    NO_EDGE,
    MATCH
} opcode;

typedef struct {
    uint8_t op, wide; /* wide SET: a byte above ASCII takes the rest of its character along */
    int32_t x, y;     /* SPLIT: first and second choice; JUMP: x; SAVE: slot; SET: number */
} instruction;

#define MAX_RANGES 16
typedef struct {
    uint32_t bits[8];
    /* What brackets name above ASCII: first and last of each range of characters. With them, a byte
     * above ASCII is judged by its whole character: in a range, or with `others` in none. */
    uint32_t ranges[2 * MAX_RANGES];
    int n_ranges;
    bool others;
} byte_set;

#define MAX_CODE   4096
#define MAX_SETS   256
#define MAX_REPEAT 1000
#define MAX_DEPTH  64

struct sn_regex {
    instruction *code;
    byte_set *sets;
    int n_code, n_sets, n_groups;
    int n_choices; /* instructions that leave a job behind */
};

/* --- parsing ---------------------------------------------------------------------------------- */
typedef struct {
    sn_regex *r;
    const char *at, *end, *pattern;
    bool ignore_case, dot_all, lines;
    int depth;
    snug_error *err;
    snug_status status; /* the first that was not OK */
} parser;

static void refuse(parser *p, const char *why) {
    if (p->status == SNUG_OK)
        p->status = sn_fail(p->err, SNUG_E_INVALID, "pattern '%.*s', byte %d: %s",
                            (int)(p->end - p->pattern), p->pattern, (int)(p->at - p->pattern), why);
    p->at = p->end;
}

static void set_add(byte_set *s, int c) {
    s->bits[c >> 5] |= 1u << (c & 31);
}

static int emit(parser *p, opcode op, int32_t x, int32_t y) {
    if (p->r->n_code >= MAX_CODE) {
        refuse(p, "it is too long");
        return 0;
    }
    p->r->code[p->r->n_code] = (instruction){.op = (uint8_t)op, .x = x, .y = y};
    return p->r->n_code++;
}

static void emit_set(parser *p, const byte_set *s, bool wide) {
    if (p->r->n_sets >= MAX_SETS) {
        refuse(p, "it has too many sets");
        return;
    }
    p->r->sets[p->r->n_sets] = *s;
    p->r->code[emit(p, SET, p->r->n_sets++, 0)].wide = wide;
}

static bool is_letter(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void add_byte(const parser *p, byte_set *s, int c) {
    set_add(s, c);
    if (p->ignore_case && is_letter(c))
        set_add(s, c ^ 32);
}

static void emit_byte(parser *p, int c) {
    byte_set s = {.n_ranges = 0};
    add_byte(p, &s, c);
    emit_set(p, &s, false);
}

static bool in_class(char name, int c) {
    switch (name) {
    case 'd':
        return c >= '0' && c <= '9';
    case 'w':
        return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
    default: /* s */
        return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v');
    }
}

/* \d and so on; capitals are the others. False: no class. */
static bool add_class(char name, byte_set *s) {
    const char lower = (char)(name | 32);
    if (!strchr("dws", lower))
        return false;
    for (int c = 0; c < 256; c++)
        if (in_class(lower, c) == (name == lower))
            set_add(s, c);
    return true;
}

static int hex(parser *p) {
    int v = 0, n = 0;
    const bool braces = p->at < p->end && *p->at == '{';
    p->at += braces;
    for (; p->at < p->end && n < (braces ? 6 : 2); n++, p->at++) {
        const char c = *p->at, l = (char)(c | 32);
        if (c >= '0' && c <= '9')
            v = v * 16 + c - '0';
        else if (l >= 'a' && l <= 'f')
            v = v * 16 + l - 'a' + 10;
        else
            break;
    }
    if (n == 0 || v > 127 || (braces && (p->at == p->end || *p->at++ != '}'))) {
        refuse(p, "\\x wants two digits of a byte below 80");
        return 0;
    }
    return v;
}

/* The byte an escape stands for; p->at is behind the letter. */
static int escaped(parser *p, char c) {
    static const char letters[] = "ntrfva", bytes[] = "\n\t\r\f\v\a";
    const char *l = strchr(letters, c);
    if (c && l)
        return bytes[l - letters];
    if (c == 'x')
        return hex(p);
    if (is_letter(c) || (c >= '0' && c <= '9'))
        refuse(p, "an escape that Snug does not know");
    return (unsigned char)c;
}

/* [:alpha:]; p->at is behind "[:". */
static void add_named(parser *p, byte_set *s) {
    static const struct {
        const char *name, *ranges;
    } named[] = {{"alpha", "azAZ"},     {"digit", "09"},      {"alnum", "azAZ09"},
                 {"upper", "AZ"},       {"lower", "az"},      {"space", "\t\r  "},
                 {"punct", "!/:@[`{~"}, {"xdigit", "09afAF"}, {"word", "azAZ09__"}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        const size_t n = strlen(named[i].name);
        if ((size_t)(p->end - p->at) < n + 2 || memcmp(p->at, named[i].name, n) != 0 ||
            memcmp(p->at + n, ":]", 2) != 0)
            continue;
        for (const char *r = named[i].ranges; *r; r += 2)
            for (int c = r[0]; c <= r[1]; c++)
                add_byte(p, s, c);
        p->at += n + 2;
        return;
    }
    refuse(p, "a class that Snug does not know");
}

/* The character that begins at data[i], and where the next one does. A byte that begins none counts
 * as one above all characters. */
static uint32_t character(const char *data, size_t bytes, size_t *i) {
    const unsigned char *d = (const unsigned char *)data;
    const unsigned first = d[(*i)++];
    if (first < 0x80)
        return first;
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    uint32_t c = first & (0x3fu >> more);
    int n = 0;
    for (; n < more && *i < bytes && (d[*i] & 0xc0) == 0x80; n++)
        c = c << 6 | (d[(*i)++] & 0x3fu);
    return n == more && more > 0 ? c : UINT32_MAX;
}

/* A character above ASCII of a bracket; p->at is behind its first byte. */
static int bracket_character(parser *p) {
    size_t i = 0;
    const uint32_t c = character(p->at - 1, (size_t)(p->end - p->at) + 1, &i);
    p->at += i - 1;
    if (c > 0x10ffff)
        refuse(p, "it is no UTF-8");
    if (p->ignore_case)
        refuse(p, "characters above ASCII in [ ] under (?i) are not in Snug");
    return p->status == SNUG_OK ? (int)c : 0;
}

/* The part of a range of characters that is above ASCII. */
static void add_range(parser *p, byte_set *s, int low, int high) {
    if (high < 0x80)
        return;
    if (s->n_ranges == MAX_RANGES) {
        refuse(p, "more than 16 characters or ranges above ASCII in one [ ]");
        return;
    }
    s->ranges[2 * s->n_ranges] = (uint32_t)(low < 0x80 ? 0x80 : low);
    s->ranges[2 * s->n_ranges++ + 1] = (uint32_t)high;
}

/* One character of a bracket, or -1 after a class. */
static int bracket_item(parser *p, byte_set *s) {
    const char c = *p->at++;
    if ((unsigned char)c >= 0x80)
        return bracket_character(p);
    if (c == '[' && p->at < p->end && *p->at == ':') {
        p->at++;
        add_named(p, s);
        return -1;
    }
    if (c != '\\' || p->at == p->end)
        return (unsigned char)c;
    const char e = *p->at++;
    return add_class(e, s) ? -1 : escaped(p, e);
}

static void parse_bracket(parser *p) {
    byte_set s = {.n_ranges = 0};
    const bool negated = p->at < p->end && *p->at == '^';
    p->at += negated;
    for (bool first = true; p->at < p->end && (*p->at != ']' || first); first = false) {
        const int low = bracket_item(p, &s);
        if (low < 0)
            continue;
        int high = low;
        if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            high = bracket_item(p, &s);
        }
        if (high < low)
            refuse(p, "a range that ends before it begins");
        for (int c = low; c <= high && c < 0x80; c++)
            add_byte(p, &s, c);
        add_range(p, &s, low, high);
    }
    if (p->at == p->end) {
        refuse(p, "[ without ]");
        return;
    }
    p->at++;
    for (int i = 0; negated && i < 8; i++)
        s.bits[i] = ~s.bits[i];
    s.others = negated;
    emit_set(p, &s, negated || s.n_ranges > 0 || s.bits[7]); /* bits above ASCII: of \W and such */
}

static void parse_alternatives(parser *p);

/* Flags behind "(?"; true: the group goes on behind a colon. */
static bool parse_flags(parser *p) {
    bool on = true;
    for (; p->at < p->end && *p->at != ':' && *p->at != ')'; p->at++)
        if (*p->at == '-')
            on = false;
        else if (*p->at == 'i')
            p->ignore_case = on;
        else if (*p->at == 's')
            p->dot_all = on;
        else if (*p->at == 'm')
            p->lines = on;
        else
            break;
    if (p->at == p->end || (*p->at != ':' && *p->at != ')')) {
        refuse(p, p->at == p->end ? "( without )" : "look-around and such flags are not in RE2");
        return false;
    }
    return *p->at++ == ':';
}

static void close_group(parser *p) {
    if (p->at < p->end && *p->at == ')')
        p->at++;
    else
        refuse(p, "( without )");
}

/* Behind "(". */
static void parse_group(parser *p) {
    const parser flags = *p;
    if (p->depth >= MAX_DEPTH) {
        refuse(p, "groups stand too deep in each other");
        return;
    }
    p->depth++;
    const bool special = p->end - p->at >= 2 && p->at[0] == '?';
    const bool named = special && p->end - p->at >= 3 && memcmp(p->at, "?P<", 3) == 0;
    bool keep_flags = false;
    if (special && !named) {
        p->at++;
        keep_flags = !parse_flags(p);
        if (!keep_flags) {
            parse_alternatives(p);
            close_group(p);
        }
    } else {
        while (named && p->at < p->end && *p->at++ != '>')
            ;
        const int group = ++p->r->n_groups;
        emit(p, SAVE, 2 * group, 0);
        parse_alternatives(p);
        close_group(p);
        emit(p, SAVE, 2 * group + 1, 0);
    }
    p->depth--;
    if (!keep_flags) {
        p->ignore_case = flags.ignore_case;
        p->dot_all = flags.dot_all;
        p->lines = flags.lines;
    }
}

/* \Q...\E: as it stands; one piece. */
static void parse_quoted(parser *p) {
    while (p->at < p->end && !(p->end - p->at >= 2 && memcmp(p->at, "\\E", 2) == 0))
        emit_byte(p, (unsigned char)*p->at++);
    p->at += p->at < p->end ? 2 : 0;
}

static void parse_escape(parser *p) {
    if (p->at == p->end) {
        refuse(p, "a backslash at the end");
        return;
    }
    const char c = *p->at++;
    byte_set s = {.n_ranges = 0};
    static const char marks[] = "bBAz";
    static const uint8_t ops[] = {EDGE, NO_EDGE, BEGIN, END};
    const char *mark = strchr(marks, c);
    if (c && mark)
        emit(p, (opcode)ops[mark - marks], 0, 0);
    else if (c == 'Q')
        parse_quoted(p);
    else if (add_class(c, &s))
        emit_set(p, &s, c < 'a');
    else
        emit_byte(p, escaped(p, c));
}

static void parse_any(parser *p) {
    byte_set s = {.n_ranges = 0};
    memset(s.bits, 0xff, sizeof s.bits);
    if (!p->dot_all)
        s.bits[0] &= ~(1u << '\n');
    emit_set(p, &s, true);
}

static void parse_atom(parser *p) {
    const char c = *p->at++;
    if (c == '(')
        parse_group(p);
    else if (c == '[')
        parse_bracket(p);
    else if (c == '\\')
        parse_escape(p);
    else if (c == '.')
        parse_any(p);
    else if (c == '^')
        emit(p, p->lines ? LINE_BEGIN : BEGIN, 0, 0);
    else if (c == '$')
        emit(p, p->lines ? LINE_END : END, 0, 0);
    else if (c == '*' || c == '+' || c == '?')
        refuse(p, "nothing to repeat");
    else {
        emit_byte(p, (unsigned char)c);
        while (p->at < p->end && ((unsigned char)*p->at & 0xc0) == 0x80)
            emit_byte(p, (unsigned char)*p->at++);
    }
}

/* --- repeats ---------------------------------------------------------------------------------- */
/* Room for one instruction in front of the piece that starts at `from`. */
static void shift(parser *p, int from) {
    if (emit(p, JUMP, 1, 0) == 0)
        return;
    instruction *code = p->r->code;
    memmove(code + from + 1, code + from, (size_t)(p->r->n_code - 1 - from) * sizeof *code);
}

static void put_split(parser *p, int at, int32_t into, int32_t past, bool lazy) {
    if (p->status == SNUG_OK) /* else there may be no instruction at this place */
        p->r->code[at] =
            (instruction){.op = SPLIT, .x = lazy ? past : into, .y = lazy ? into : past};
}

/* The piece from `from` on, any number of times or at most once. */
static void make_optional(parser *p, int from, bool many, bool lazy) {
    shift(p, from);
    if (many)
        emit(p, JUMP, from - p->r->n_code, 0);
    put_split(p, from, 1, p->r->n_code - from, lazy);
}

static void copy_piece(parser *p, const instruction *piece, int n) {
    for (int i = 0; i < n && p->status == SNUG_OK; i++)
        p->r->code[emit(p, (opcode)piece[i].op, piece[i].x, piece[i].y)].wide = piece[i].wide;
}

/* x{low,high}; high < 0: without end. The copies are made of the piece as it was. */
static void repeat_piece(parser *p, int from, const int bounds[2], bool lazy) {
    instruction piece[256];
    const int n = p->r->n_code - from, low = bounds[0], high = bounds[1];
    if (n > 256 || (int64_t)n * (high > low ? high : low) > MAX_CODE) {
        refuse(p, "it repeats too much");
        return;
    }
    memcpy(piece, p->r->code + from, (size_t)n * sizeof *piece);
    p->r->n_code = from;
    for (int i = 0; i < low; i++)
        copy_piece(p, piece, n);
    int first = p->r->n_code;
    if (high < 0) {
        copy_piece(p, piece, n);
        make_optional(p, first, true, lazy);
        return;
    }
    for (int i = low; i < high && p->status == SNUG_OK; i++) {
        first = p->r->n_code;
        emit(p, SPLIT, 0, 0);
        copy_piece(p, piece, n);
        put_split(p, first, 1, n + 1, lazy);
    }
}

static int parse_number(parser *p) {
    int v = -1;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9' && v <= MAX_REPEAT; p->at++)
        v = (v < 0 ? 0 : v) * 10 + *p->at - '0';
    return v;
}

/* "{2,5}"; false: the brace is a byte like others, and p->at stays. */
static bool parse_bounds(parser *p, int bounds[2]) {
    const char *start = p->at++;
    bounds[0] = bounds[1] = parse_number(p);
    if (bounds[0] >= 0 && p->at < p->end && *p->at == ',') {
        p->at++;
        bounds[1] = parse_number(p);
    }
    if (bounds[0] < 0 || p->at == p->end || *p->at != '}') {
        p->at = start;
        return false;
    }
    p->at++;
    if (bounds[0] > MAX_REPEAT || bounds[1] > MAX_REPEAT ||
        (bounds[1] >= 0 && bounds[1] < bounds[0]))
        refuse(p, "bad numbers of a repeat");
    return true;
}

static void parse_repeats(parser *p, int from) {
    while (p->at < p->end && p->status == SNUG_OK) {
        int bounds[2] = {0, -1};
        const char c = *p->at;
        if (c == '{') {
            if (!parse_bounds(p, bounds))
                return;
        } else if (c == '*' || c == '+' || c == '?') {
            p->at++;
        } else {
            return;
        }
        const bool lazy = p->at < p->end && *p->at == '?';
        p->at += lazy;
        if (p->status != SNUG_OK)
            return;
        if (c == '{') {
            repeat_piece(p, from, bounds, lazy);
        } else if (c == '+') {
            const int at = emit(p, SPLIT, 0, 0);
            put_split(p, at, from - at, 1, lazy);
        } else {
            make_optional(p, from, c == '*', lazy);
        }
    }
}

static void parse_sequence(parser *p) {
    while (p->at < p->end && *p->at != '|' && *p->at != ')' && p->status == SNUG_OK) {
        const int from = p->r->n_code;
        parse_atom(p);
        parse_repeats(p, from);
    }
}

static void parse_alternatives(parser *p) {
    const int from = p->r->n_code;
    parse_sequence(p);
    if (p->at == p->end || *p->at != '|' || p->status != SNUG_OK)
        return;
    p->at++;
    shift(p, from);
    const int jump = emit(p, JUMP, 0, 0);
    put_split(p, from, 1, p->r->n_code - from, false);
    parse_alternatives(p);
    if (p->status == SNUG_OK)
        p->r->code[jump].x = p->r->n_code - jump;
}

snug_status sn_regex_create(sn_zone *z, const snug_text *pattern, sn_regex **out, snug_error *err) {
    void *memory, *code, *sets;
    SNUG_TRY(sn_zone_alloc(z, sizeof(sn_regex), &memory, err));
    SNUG_TRY(sn_zone_alloc(z, MAX_CODE * sizeof(instruction), &code, err));
    SNUG_TRY(sn_zone_alloc(z, MAX_SETS * sizeof(byte_set), &sets, err));
    sn_regex *r = memory;
    *r = (sn_regex){.code = code, .sets = sets};
    parser p = {.r = r, .at = pattern->data, .end = pattern->data + pattern->bytes, .err = err};
    p.pattern = p.at;
    parse_alternatives(&p);
    if (p.at < p.end)
        refuse(&p, ") without (");
    if (r->n_groups >= SN_REGEX_MAX_GROUPS)
        refuse(&p, "more than nine groups");
    emit(&p, MATCH, 0, 0);
    for (int i = 0; i < r->n_code; i++)
        r->n_choices += r->code[i].op == SPLIT || r->code[i].op == SAVE;
    *out = r;
    return p.status;
}

int sn_regex_groups(const sn_regex *r) {
    return r->n_groups;
}

/* --- searching -------------------------------------------------------------------------------- */
/* Something to go on with, or a slot to be put back when everything after it has failed. */
typedef struct {
    int32_t pc; /* < 0: slot -pc - 1 gets `at` back */
    uint32_t at;
} job;

typedef struct {
    const sn_regex *r;
    const snug_text *text;
    uint64_t *visited;
    job *jobs;
    size_t n_jobs;
    size_t last; /* position that was visited */
    bool whole;
    sn_regex_match m;
} search;

/* Each (choice, position) pushes a job, once. */
bool sn_regex_work(const sn_regex *r, size_t n, size_t *bytes) {
    size_t states, bits, jobs;
    if (n >= UINT32_MAX || !sn_size_mul(n + 1, (size_t)r->n_code, &states) ||
        !sn_size_mul(n + 1, (size_t)r->n_choices, &jobs))
        return false;
    bits = states / 64 + 1;
    return sn_size_add(jobs, 1, &jobs) && sn_size_mul(jobs, sizeof(job), &jobs) &&
           sn_size_mul(bits, 8, &bits) && sn_size_add(jobs, bits, bytes);
}

static bool is_word(const snug_text *t, size_t i) {
    return i < t->bytes && in_class('w', (unsigned char)t->data[i]);
}

/* Whether an instruction that takes no byte lets through at this position. */
static bool holds(opcode op, const snug_text *t, size_t i) {
    const bool edge = is_word(t, i) != (i > 0 && is_word(t, i - 1));
    switch (op) {
    case BEGIN:
        return i == 0;
    case END:
        return i == t->bytes;
    case LINE_BEGIN:
        return i == 0 || t->data[i - 1] == '\n';
    case LINE_END:
        return i == t->bytes || t->data[i] == '\n';
    case EDGE:
        return edge;
    default:
        return !edge;
    }
}

/* Whether the set takes what stands at i. */
static bool takes(const byte_set *s, const snug_text *t, size_t i) {
    const unsigned first = (unsigned char)t->data[i];
    const bool has = s->bits[first >> 5] >> (first & 31) & 1;
    if (first < 0x80 || s->n_ranges == 0)
        return has;
    const uint32_t c = character(t->data, t->bytes, &i);
    bool named = has != s->others; /* by a class such as \W */
    for (int r = 0; r < s->n_ranges && !named; r++)
        named = c >= s->ranges[2 * r] && c <= s->ranges[2 * r + 1];
    return named != s->others;
}

static size_t step(const instruction *in, const snug_text *t, size_t i) {
    if (!in->wide || (unsigned char)t->data[i] < 0xc0)
        return i + 1;
    for (i++; i < t->bytes && ((unsigned char)t->data[i] & 0xc0) == 0x80; i++)
        ;
    return i;
}

static bool first_visit(search *s, int32_t pc, size_t i) {
    const size_t state = i * (size_t)s->r->n_code + (size_t)pc;
    const uint64_t bit = 1ull << (state & 63);
    const bool first = !(s->visited[state >> 6] & bit);
    s->visited[state >> 6] |= bit;
    s->last = i > s->last ? i : s->last;
    return first;
}

/* From one place on until it fails, matches, or was here before. */
static bool walk(search *s, int32_t pc, size_t i) {
    for (;;) {
        const instruction *in = &s->r->code[pc];
        if (!first_visit(s, pc, i))
            return false;
        if (in->op == MATCH) {
            s->m.at[1] = i;
            return !s->whole || i == s->text->bytes;
        } else if (in->op == SET) {
            if (i >= s->text->bytes || !takes(&s->r->sets[in->x], s->text, i))
                return false;
            i = step(in, s->text, i);
            pc++;
        } else if (in->op == JUMP) {
            pc += in->x;
        } else if (in->op == SPLIT) {
            s->jobs[s->n_jobs++] = (job){pc + in->y, (uint32_t)i};
            pc += in->x;
        } else if (in->op == SAVE) {
            s->jobs[s->n_jobs++] = (job){-in->x - 1, (uint32_t)s->m.at[in->x]};
            s->m.at[in->x] = i;
            pc++;
        } else if (holds((opcode)in->op, s->text, i)) {
            pc++;
        } else {
            return false;
        }
    }
}

static bool match_at(search *s, size_t start) {
    memset(&s->m, 0xff, sizeof s->m);
    s->m.at[0] = start;
    s->n_jobs = 0;
    s->jobs[s->n_jobs++] = (job){0, (uint32_t)start};
    while (s->n_jobs > 0) {
        const job j = s->jobs[--s->n_jobs];
        if (j.pc < 0)
            s->m.at[-j.pc - 1] = j.at == UINT32_MAX ? SIZE_MAX : j.at;
        else if (walk(s, j.pc, j.at))
            return true;
    }
    return false;
}

/* For the next search, which begins at `from` or later. */
static void clear_visited(const search *s, size_t from) {
    const size_t first = from * (size_t)s->r->n_code >> 6,
                 last = (s->last * (size_t)s->r->n_code + (size_t)s->r->n_code) >> 6;
    memset(s->visited + first, 0, (last - first + 1) * sizeof *s->visited);
}

bool sn_regex_find(const sn_regex *r, const snug_text *text, size_t from, bool whole, void *work,
                   sn_regex_match *out) {
    const size_t bits = (text->bytes + 1) * (size_t)r->n_code / 64 + 1;
    search s = {.r = r, .text = text, .visited = work, .last = from, .whole = whole};
    s.jobs = (job *)(void *)((char *)work + bits * 8);
    if (from == 0)
        memset(s.visited, 0, bits * 8);
    /* What failed from an earlier start fails from a later one, too: visited stays. */
    for (size_t i = from; i <= (whole ? from : text->bytes); i++) {
        const bool inside = i < text->bytes && ((unsigned char)text->data[i] & 0xc0) == 0x80;
        if (inside || !match_at(&s, i)) /* no match begins inside a character */
            continue;
        *out = s.m;
        clear_visited(&s, from);
        return true;
    }
    return false;
}
