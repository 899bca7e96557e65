/* graph_text.c: the text form of a graph, printed and parsed. One item per line, in the order of
 * value ids, so that ids need no table:
 *
 *     snug graph 1
 *     owner dense
 *     %0 input x f32[32,10]
 *     %1 variable dense/kernel f32[10,4] home 0 trainable init uniform 0 -0.5 0.5
 *     p0 real 0.001 learning_rate
 *     %2 = matmul(%0 %1) | forward @dense -> f32[32,4]
 *     output y %2
 *
 *     graph    := "snug graph 1" {line}, each line ended by \n
 *     line     := owner | input | variable | param | node | output | comment
 *     owner    := "owner" NAME
 *     input    := "%"ID "input" NAME TYPE
 *     variable := "%"ID "variable" NAME TYPE "home" N ["trainable"] ["slot"] "init" recipe
 *     recipe   := ("constant" | "uniform" | "normal" | "truncated" | "labels" | "forget" | "eye" |
 *                  "orthogonal") KEY REAL REAL
 *     param    := "p"SLOT ("real" REAL | "key" INT | "inverse" "%"ID AXES) [NAME]
 *     node     := values "=" OP "(" [values] ")" [ATTRS] "|" part ["@"NAME] "->" TYPE {TYPE}
 *     values   := "%"ID {"%"ID}
 *     part     := "forward" | "backward" | "update"
 *     output   := "output" NAME "%"ID
 *     comment  := "#" anything | nothing
 *
 * Words are separated by blanks. Ids and slots count up from 0; a line that skips one is refused.
 * Owners stand in order of index, without the empty owner 0. AXES is a hexadecimal bit set, 0x0
 * all. TYPE and ATTRS are those of type.h and op.h; types of outputs are printed for the reader and
 * checked. Reals have 17 digits, which is exact. Parameters stand as early as their order and the
 * values they speak of allow. parse(print(g)) prints the same text. */
#include "graph/store.h"

#include "base/real.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ATTRS 1024

static const char *const part_names[] = {
    [SN_PART_FORWARD] = "forward", [SN_PART_BACKWARD] = "backward", [SN_PART_UPDATE] = "update"};
static const char *const recipe_names[] = {
    [SN_RECIPE_CONSTANT] = "constant", [SN_RECIPE_UNIFORM] = "uniform",
    [SN_RECIPE_NORMAL] = "normal",     [SN_RECIPE_TRUNCATED] = "truncated",
    [SN_RECIPE_LABELS] = "labels",     [SN_RECIPE_FORGET] = "forget",
    [SN_RECIPE_EYE] = "eye",           [SN_RECIPE_ORTHOGONAL] = "orthogonal"};
#define COUNT_OF(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* --- printing --------------------------------------------------------------------------------- */

typedef struct {
    const sn_graph *g;
    const sn_writer *w;
    snug_error *err;
    uint32_t n_params, n_values; /* written so far */
} printer;

static snug_status put(printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static snug_status put(printer *p, const char *format, ...) {
    char text[MAX_ATTRS + 64];
    va_list args;
    va_start(args, format);
    const int n = sn_print_list(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        return sn_fail(p->err, SNUG_E_INTERNAL, "an item of the graph has more than %zu characters",
                       sizeof text);
    return p->w->write(p->w->ctx, text, (size_t)n, p->err);
}

/* Long names bypass the buffer. */
static snug_status put_name(printer *p, const char *before, const char *name) {
    SNUG_TRY(p->w->write(p->w->ctx, before, strlen(before), p->err));
    return p->w->write(p->w->ctx, name, strlen(name), p->err);
}

/* 17 digits are exact. */
static snug_status put_real(printer *p, const char *before, double v) {
    char text[SN_REAL_TEXT];
    return put(p, "%s%s", before, sn_real_print(v, 17, text));
}

static snug_status put_type(printer *p, const snug_type *t) {
    char text[192];
    return put(p, " %s", snug_type_print(t, text, sizeof text));
}

static snug_status put_param(printer *p, uint32_t slot) {
    const sn_param_info *info = sn_graph_param_at(p->g, (sn_param){slot});
    SNUG_TRY(put(p, "p%u ", slot));
    if (info->kind == SN_PARAM_REAL)
        SNUG_TRY(put_real(p, "real ", info->real));
    else if (info->kind == SN_PARAM_KEY)
        SNUG_TRY(put(p, "key %" PRId64, info->key));
    else
        SNUG_TRY(put(p, "inverse %%%u 0x%x", info->of.i, info->axes));
    if (*info->name)
        SNUG_TRY(put_name(p, " ", info->name));
    return put(p, "\n");
}

/* All parameters up to the first that speaks of a value not written yet. */
static snug_status put_params(printer *p) {
    for (; p->n_params < sn_graph_n_params(p->g); p->n_params++) {
        const sn_param_info *info = sn_graph_param_at(p->g, (sn_param){p->n_params});
        if (info->kind == SN_PARAM_INVERSE_EXTENT && info->of.i >= p->n_values)
            return SNUG_OK;
        SNUG_TRY(put_param(p, p->n_params));
    }
    return SNUG_OK;
}

static snug_status put_input(printer *p, const sn_value_info *v) {
    SNUG_TRY(put(p, "%%%u", p->n_values++));
    SNUG_TRY(put_name(p, " input ", sn_graph_input_name(p->g, v->index)));
    SNUG_TRY(put_type(p, &v->type));
    return put(p, "\n");
}

static snug_status put_variable(printer *p, const sn_value_info *v) {
    const sn_variable *var = sn_graph_var_at(p->g, (sn_var){v->index});
    SNUG_TRY(put(p, "%%%u", p->n_values++));
    SNUG_TRY(put_name(p, " variable ", var->name));
    SNUG_TRY(put_type(p, &var->type));
    SNUG_TRY(put(p, " home %u%s%s init %s %" PRIu64, var->home, var->trainable ? " trainable" : "",
                 var->slot ? " slot" : "", recipe_names[var->init.kind], var->init.key));
    SNUG_TRY(put_real(p, " ", var->init.a));
    SNUG_TRY(put_real(p, " ", var->init.b));
    return put(p, "\n");
}

static snug_status put_node(printer *p, const sn_node_info *node) {
    char attrs[MAX_ATTRS];
    for (int k = 0; k < node->n_out; k++)
        SNUG_TRY(put(p, "%s%%%u", k ? " " : "", node->out[k].i));
    SNUG_TRY(put(p, " = %s(", sn_ops[node->op].name));
    for (int i = 0; i < node->n_in; i++)
        SNUG_TRY(put(p, "%s%%%u", i ? " " : "", node->in[i].i));
    sn_attrs_print(node->op, &node->attrs, attrs, sizeof attrs);
    SNUG_TRY(put(p, ")%s%s | %s", *attrs ? " " : "", attrs, part_names[node->part]));
    if (node->owner != 0)
        SNUG_TRY(put_name(p, " @", sn_graph_owner_name(p->g, node->owner)));
    SNUG_TRY(put(p, " ->"));
    for (int k = 0; k < node->n_out; k++)
        SNUG_TRY(put_type(p, sn_graph_type(p->g, node->out[k])));
    p->n_values += node->n_out;
    return put(p, "\n");
}

static snug_status put_value(printer *p) {
    const sn_value_info *v = sn_graph_value_at(p->g, (sn_value){p->n_values});
    if (v->kind == SN_VALUE_INPUT)
        return put_input(p, v);
    if (v->kind == SN_VALUE_VARIABLE)
        return put_variable(p, v);
    return put_node(p, sn_graph_node_at(p->g, v->node));
}

snug_status sn_graph_print(const sn_graph *g, const sn_writer *w, snug_error *err) {
    printer p = {.g = g, .w = w, .err = err};
    SNUG_TRY(put(&p, "snug graph 1\n"));
    for (uint32_t i = 1; i < sn_graph_n_owners(g); i++) {
        SNUG_TRY(put_name(&p, "owner ", sn_graph_owner_name(g, i)));
        SNUG_TRY(put(&p, "\n"));
    }
    SNUG_TRY(put_params(&p));
    while (p.n_values < sn_graph_n_values(g)) {
        SNUG_TRY(put_value(&p));
        SNUG_TRY(put_params(&p));
    }
    for (uint32_t i = 0; i < sn_graph_n_outputs(g); i++) {
        SNUG_TRY(put_name(&p, "output ", sn_graph_output_name(g, i)));
        SNUG_TRY(put(&p, " %%%u\n", sn_graph_output_at(g, i).i));
    }
    return SNUG_OK;
}

/* --- reading words ---------------------------------------------------------------------------- */

typedef struct {
    sn_graph *g;
    const char *at; /* inside the current line */
    int line;
    snug_error *err;
} parser;

static snug_status fail_line(parser *p, const char *want) {
    const int n = (int)strcspn(p->at, "\n");
    return sn_fail(p->err, SNUG_E_FORMAT, "graph text, line %d: expected %s at '%.*s'", p->line,
                   want, n < 40 ? n : 40, p->at);
}

static void skip_blanks(parser *p) {
    while (*p->at == ' ')
        p->at++;
}

static bool at_end(parser *p) {
    skip_blanks(p);
    return *p->at == '\n' || *p->at == '\0';
}

/* Takes `word` when it stands here. Words that end in a letter must end there. */
static bool take(parser *p, const char *word) {
    skip_blanks(p);
    const size_t n = strlen(word);
    if (strncmp(p->at, word, n) != 0)
        return false;
    const char last = word[n - 1], next = p->at[n];
    if (last >= 'a' && last <= 'z' && next != ' ' && next != '\n' && next != '\0')
        return false;
    p->at += n;
    return true;
}

static snug_status need(parser *p, const char *word) {
    return take(p, word) ? SNUG_OK : fail_line(p, word);
}

/* A run of characters without blanks. */
static snug_status take_name(parser *p, char name[SN_MAX_NAME + 1]) {
    skip_blanks(p);
    const size_t n = strcspn(p->at, " \n");
    if (n == 0 || n > SN_MAX_NAME)
        return fail_line(p, "a name of 1 to 255 characters");
    memcpy(name, p->at, n);
    name[n] = '\0';
    p->at += n;
    return SNUG_OK;
}

static snug_status take_unsigned(parser *p, int base, uint64_t max, uint64_t *out) {
    char *end;
    skip_blanks(p);
    errno = 0;
    const unsigned long long v = strtoull(p->at, &end, base);
    if (*p->at < '0' || *p->at > '9' || errno != 0 || v > max)
        return fail_line(p, "a number");
    p->at = end;
    *out = v;
    return SNUG_OK;
}

static snug_status take_real(parser *p, double *out) {
    const char *end;
    double v;
    skip_blanks(p);
    if (!sn_real_parse(p->at, &end, &v) || (*end != ' ' && *end != '\n' && *end != '\0'))
        return fail_line(p, "a real number");
    p->at = end;
    *out = v;
    return SNUG_OK;
}

/* "%7": a value that is there. */
static snug_status take_value(parser *p, sn_value *out) {
    uint64_t id;
    SNUG_TRY(need(p, "%"));
    SNUG_TRY(take_unsigned(p, 10, UINT32_MAX, &id));
    if (id >= sn_graph_n_values(p->g))
        return sn_fail(p->err, SNUG_E_FORMAT,
                       "graph text, line %d: value %%%" PRIu64
                       " is not there yet; the next is %%%u",
                       p->line, id, sn_graph_n_values(p->g));
    *out = (sn_value){(uint32_t)id};
    return SNUG_OK;
}

static snug_status take_type(parser *p, snug_type *out) {
    const char *end;
    skip_blanks(p);
    const snug_status status = sn_type_parse(p->at, &end, out, p->err);
    if (status != SNUG_OK)
        return sn_fail_in(p->err, status, "graph text, line %d", p->line);
    p->at = end;
    return SNUG_OK;
}

/* One of n words; its index. */
static snug_status take_choice(parser *p, const char *const *words, int n, const char *want,
                               int *out) {
    for (int i = 0; i < n; i++) {
        if (take(p, words[i])) {
            *out = i;
            return SNUG_OK;
        }
    }
    return fail_line(p, want);
}

/* Errors of the graph itself (shapes, versions, names) get the line before them. */
static snug_status in_line(parser *p, snug_status status) {
    return status == SNUG_OK ? SNUG_OK : sn_fail_in(p->err, status, "graph text, line %d", p->line);
}

/* --- lines ------------------------------------------------------------------------------------ */

static snug_status parse_owner(parser *p) {
    char name[SN_MAX_NAME + 1];
    SNUG_TRY(take_name(p, name));
    return in_line(p, sn_graph_set_owner(p->g, name, p->err));
}

static snug_status parse_input(parser *p) {
    char name[SN_MAX_NAME + 1];
    snug_type type;
    sn_value v;
    SNUG_TRY(take_name(p, name));
    SNUG_TRY(take_type(p, &type));
    return in_line(p, sn_graph_input(p->g, name, &type, &v, p->err));
}

static snug_status parse_variable(parser *p) {
    char name[SN_MAX_NAME + 1];
    sn_variable var = {.name = name};
    sn_value v;
    uint64_t home;
    int kind = 0;
    SNUG_TRY(take_name(p, name));
    SNUG_TRY(take_type(p, &var.type));
    SNUG_TRY(need(p, "home"));
    SNUG_TRY(take_unsigned(p, 10, UINT32_MAX, &home));
    var.home = (uint32_t)home;
    var.trainable = take(p, "trainable");
    var.slot = take(p, "slot");
    SNUG_TRY(need(p, "init"));
    SNUG_TRY(take_choice(p, recipe_names, COUNT_OF(recipe_names),
                         "constant, uniform, normal, truncated or labels", &kind));
    var.init.kind = (sn_recipe_kind)kind;
    SNUG_TRY(take_unsigned(p, 10, UINT64_MAX, &var.init.key));
    SNUG_TRY(take_real(p, &var.init.a));
    SNUG_TRY(take_real(p, &var.init.b));
    return in_line(p, sn_graph_variable(p->g, &var, &v, p->err));
}

static snug_status take_key(parser *p, int64_t *out) {
    const bool negative = take(p, "-");
    uint64_t magnitude;
    SNUG_TRY(take_unsigned(p, 10, (uint64_t)INT64_MAX + negative, &magnitude));
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return SNUG_OK;
}

static snug_status parse_param(parser *p) {
    char name[SN_MAX_NAME + 1] = "";
    sn_param_info info = {.name = name, .of = SN_NO_VALUE};
    uint64_t slot, axes;
    SNUG_TRY(take_unsigned(p, 10, UINT32_MAX, &slot));
    if (slot != sn_graph_n_params(p->g))
        return sn_fail(p->err, SNUG_E_FORMAT,
                       "graph text, line %d: parameter p%" PRIu64 " where p%u is next", p->line,
                       slot, sn_graph_n_params(p->g));
    if (take(p, "real")) {
        SNUG_TRY(take_real(p, &info.real));
    } else if (take(p, "key")) {
        info.kind = SN_PARAM_KEY;
        SNUG_TRY(take_key(p, &info.key));
    } else {
        info.kind = SN_PARAM_INVERSE_EXTENT;
        SNUG_TRY(need(p, "inverse"));
        SNUG_TRY(take_value(p, &info.of));
        SNUG_TRY(take_unsigned(p, 16, UINT32_MAX, &axes));
        info.axes = (uint32_t)axes;
    }
    if (!at_end(p))
        SNUG_TRY(take_name(p, name));
    sn_param made;
    SNUG_TRY(in_line(p, sn_graph_param(p->g, &info, &made, p->err)));
    if (made.i != slot)
        return sn_fail(p->err, SNUG_E_FORMAT,
                       "graph text, line %d: parameter '%.80s' is there already", p->line, name);
    return SNUG_OK;
}

static snug_status parse_output(parser *p) {
    char name[SN_MAX_NAME + 1];
    sn_value v;
    SNUG_TRY(take_name(p, name));
    SNUG_TRY(take_value(p, &v));
    return in_line(p, sn_graph_output(p->g, name, v, p->err));
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* A node line taken apart; the ids of its outputs were checked to be the next ones. */
typedef struct {
    sn_op op;
    sn_attrs attrs;
    int n_in, n_out;
    sn_value in[SN_MAX_IN];
} node_line;

static snug_status take_op(parser *p, sn_op *out) {
    char name[SN_MAX_NAME + 1];
    skip_blanks(p);
    const size_t n = strcspn(p->at, "( \n");
    if (n == 0 || n > SN_MAX_NAME || p->at[n] != '(')
        return fail_line(p, "an operator and '('");
    memcpy(name, p->at, n);
    name[n] = '\0';
    SNUG_TRY(in_line(p, sn_op_find(name, out, p->err)));
    p->at += n + 1;
    return SNUG_OK;
}

static snug_status take_operands(parser *p, node_line *l) {
    while (!take(p, ")")) {
        if (l->n_in == SN_MAX_IN)
            return fail_line(p, "at most 16 inputs and ')'");
        SNUG_TRY(take_value(p, &l->in[l->n_in++]));
    }
    return SNUG_OK;
}

static snug_status take_attrs(parser *p, node_line *l) {
    char text[MAX_ATTRS + 1];
    skip_blanks(p);
    const size_t n = strcspn(p->at, "|\n");
    if (p->at[n] != '|' || n > MAX_ATTRS)
        return fail_line(p, "attributes of at most 1024 characters and '|'");
    memcpy(text, p->at, n);
    text[n] = '\0';
    SNUG_TRY(in_line(p, sn_attrs_parse(l->op, text, NULL, &l->attrs, p->err)));
    p->at += n + 1;
    return SNUG_OK;
}

static snug_status take_part_and_owner(parser *p) {
    char name[SN_MAX_NAME + 1] = "";
    int part = 0;
    SNUG_TRY(
        take_choice(p, part_names, COUNT_OF(part_names), "forward, backward or update", &part));
    if (take(p, "@"))
        SNUG_TRY(take_name(p, name));
    sn_graph_set_part(p->g, (sn_part)part);
    return in_line(p, sn_graph_set_owner(p->g, name, p->err));
}

static snug_status append_line(parser *p, const node_line *l) {
    sn_value outs[SN_MAX_OUT];
    int n_outs;
    SNUG_TRY(
        in_line(p, sn_graph_node(p->g, l->op, &l->attrs, l->in, l->n_in, outs, &n_outs, p->err)));
    if (n_outs != l->n_out)
        return sn_fail(p->err, SNUG_E_FORMAT,
                       "graph text, line %d: %s has %d outputs, the line names %d", p->line,
                       sn_ops[l->op].name, n_outs, l->n_out);
    SNUG_TRY(need(p, "->"));
    for (int k = 0; k < n_outs; k++) {
        snug_type type;
        SNUG_TRY(take_type(p, &type));
        if (!sn_type_equal(&type, sn_graph_type(p->g, outs[k])))
            return sn_fail(
                p->err, SNUG_E_FORMAT,
                "graph text, line %d: output %d of %s has another type than the line says", p->line,
                k, sn_ops[l->op].name);
    }
    return SNUG_OK;
}

/* Behind the first output's id. */
static snug_status parse_node(parser *p) {
    node_line l = {.n_out = 1};
    while (take(p, "%")) {
        uint64_t id;
        SNUG_TRY(take_unsigned(p, 10, UINT32_MAX, &id));
        if (id != (uint64_t)sn_graph_n_values(p->g) + (uint64_t)l.n_out || l.n_out == SN_MAX_OUT)
            return fail_line(p, "outputs that count up, at most 4");
        l.n_out++;
    }
    SNUG_TRY(need(p, "="));
    SNUG_TRY(take_op(p, &l.op));
    SNUG_TRY(take_operands(p, &l));
    SNUG_TRY(take_attrs(p, &l));
    SNUG_TRY(take_part_and_owner(p));
    return append_line(p, &l);
}

static snug_status parse_value(parser *p) {
    uint64_t id;
    SNUG_TRY(take_unsigned(p, 10, UINT32_MAX, &id));
    if (id != sn_graph_n_values(p->g))
        return sn_fail(p->err, SNUG_E_FORMAT,
                       "graph text, line %d: value %%%" PRIu64 " where %%%u is next", p->line, id,
                       sn_graph_n_values(p->g));
    if (take(p, "input"))
        return parse_input(p);
    if (take(p, "variable"))
        return parse_variable(p);
    return parse_node(p);
}

static snug_status parse_line(parser *p) {
    if (at_end(p) || take(p, "#")) {
        p->at += strcspn(p->at, "\n");
        return SNUG_OK;
    }
    if (take(p, "owner"))
        return parse_owner(p);
    if (take(p, "output"))
        return parse_output(p);
    if (take(p, "%"))
        return parse_value(p);
    if (*p->at == 'p') {
        p->at++;
        return parse_param(p);
    }
    return fail_line(p, "owner, output, a value (%0) or a parameter (p0)");
}

static snug_status parse_lines(parser *p) {
    SNUG_TRY(need(p, "snug"));
    SNUG_TRY(need(p, "graph"));
    SNUG_TRY(need(p, "1"));
    while (true) {
        if (!at_end(p))
            return fail_line(p, "the end of the line");
        if (*p->at == '\0')
            return SNUG_OK;
        p->at++;
        p->line++;
        SNUG_TRY(parse_line(p));
    }
}

snug_status sn_graph_parse(snug_engine *e, const char *text, sn_graph **out, snug_error *err) {
    snug_error own; /* lines are put before texts, so there must be one */
    parser p = {.at = text, .line = 1, .err = err ? err : &own};
    SNUG_TRY(sn_graph_create(e, &p.g, err));
    const snug_status status = parse_lines(&p);
    if (status != SNUG_OK) {
        sn_graph_destroy(p.g);
        return status;
    }
    sn_graph_set_owner_at(p.g, 0);
    sn_graph_set_part(p.g, SN_PART_FORWARD);
    *out = p.g;
    return SNUG_OK;
}
