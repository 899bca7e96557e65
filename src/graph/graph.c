/* graph.c: storage of the graph and its builder calls. Everything is checked and every byte
 * requested before the first count changes, so a call that fails leaves the graph as it was (what
 * it took from the zone stays there unused).
 *
 * Parameter slots: a REAL field takes a REAL or INVERSE_EXTENT slot, a KEY field a KEY slot. A
 * vector of keys (slice starts) has one word per axis of input 0; words past the rank are -1. */
#include "graph/store.h"

#include "base/size.h"
#include "base/utf8.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* --- life ------------------------------------------------------------------------------------- */

snug_status sn_graph_create(snug_engine *e, sn_graph **out, snug_error *err) {
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_GRAPH, sizeof(sn_graph), &block, err));
    sn_graph *g = block;
    g->engine = e;
    g->plain[0] = g->plain[1] = UINT32_MAX;
    g->var_names = g->param_names = g->owner_names = g->input_names = g->output_names =
        (sn_names){.engine = e, .category = SN_MEM_GRAPH};
    g->homes = (sn_numbers){.engine = e, .category = SN_MEM_GRAPH};
    snug_status status = sn_zone_create(e, SN_MEM_GRAPH, &g->zone, err);
    if (status == SNUG_OK)
        status = sn_graph_set_owner(g, "", err);
    if (status == SNUG_OK)
        *out = g;
    else
        sn_graph_destroy(g);
    return status;
}

static void free_array(sn_graph *g, void *array, size_t cap, size_t elem_bytes) {
    sn_free(g->engine, SN_MEM_GRAPH, array, cap * elem_bytes);
}

static size_t own_pages(size_t n_pages) {
    return n_pages < SN_OWN_PAGES ? n_pages : SN_OWN_PAGES;
}

/* Without those in the zone. */
static size_t paged_bytes(size_t n_pages, size_t elem_bytes) {
    return (((size_t)SN_FIRST_PAGE << own_pages(n_pages)) - SN_FIRST_PAGE) * elem_bytes;
}

#define FREE_PAGES(g, what)                                                                        \
    for (size_t p = 0; p < own_pages((g)->pages_##what); p++)                                      \
        free_array((g), (g)->what[p], sn_page_size(p), sizeof *(g)->what[p]);                      \
    free_array((g), (g)->what, (g)->cap_##what, sizeof *(g)->what)

void sn_graph_destroy(sn_graph *g) {
    if (!g)
        return;
    FREE_PAGES(g, nodes);
    FREE_PAGES(g, values);
    FREE_PAGES(g, params);
    free_array(g, g->vars, g->cap_vars, sizeof *g->vars);
    sn_names_clear(&g->var_names);
    sn_names_clear(&g->param_names);
    sn_names_clear(&g->owner_names);
    sn_names_clear(&g->input_names);
    sn_names_clear(&g->output_names);
    sn_numbers_clear(&g->homes);
    free_array(g, g->inputs, g->cap_inputs, sizeof *g->inputs);
    free_array(g, g->outputs, g->cap_outputs, sizeof *g->outputs);
    free_array(g, (void *)g->owners, g->cap_owners, sizeof *g->owners);
    free_array(g, g->way, g->cap_way, sizeof *g->way);
    sn_zone_destroy(g->zone);
    sn_free(g->engine, SN_MEM_GRAPH, g, sizeof *g);
}

snug_status sn_graph_clear(sn_graph *g, snug_error *err) {
    sn_zone_destroy(g->zone);
    g->zone = NULL;
    g->n_nodes = g->n_values = g->n_vars = g->n_params = 0;
    g->pages_nodes = own_pages(g->pages_nodes);
    g->pages_values = own_pages(g->pages_values);
    g->pages_params = own_pages(g->pages_params);
    g->n_inputs = g->n_outputs = g->n_owners = 0;
    sn_names_forget(&g->var_names);
    sn_names_forget(&g->param_names);
    sn_names_forget(&g->owner_names);
    sn_names_forget(&g->input_names);
    sn_names_forget(&g->output_names);
    sn_numbers_forget(&g->homes);
    g->part = SN_PART_FORWARD;
    g->plain[0] = g->plain[1] = UINT32_MAX;
    SNUG_TRY(sn_zone_create(g->engine, SN_MEM_GRAPH, &g->zone, err));
    return sn_graph_set_owner(g, "", err);
}

snug_engine *sn_graph_engine(const sn_graph *g) {
    return g->engine;
}

size_t sn_graph_bytes(const sn_graph *g) {
    return sizeof *g + sn_zone_bytes(g->zone) + paged_bytes(g->pages_nodes, sizeof **g->nodes) +
           paged_bytes(g->pages_values, sizeof **g->values) +
           paged_bytes(g->pages_params, sizeof **g->params) +
           (g->cap_nodes + g->cap_values + g->cap_params) * sizeof(void *) +
           g->cap_vars * sizeof *g->vars + g->cap_inputs * sizeof *g->inputs +
           g->cap_outputs * sizeof *g->outputs + g->cap_owners * sizeof *g->owners +
           (g->var_names.cap + g->param_names.cap + g->owner_names.cap + g->input_names.cap +
            g->output_names.cap) *
               sizeof(sn_name_entry) +
           g->homes.cap * sizeof(sn_number_entry);
}

/* --- growing ---------------------------------------------------------------------------------- */

/* Room for `need` elements in all. Ids are 32 bits and UINT32_MAX means none. */
static snug_status reserve(sn_graph *g, void *array, size_t elem_bytes, size_t *cap, size_t need,
                           snug_error *err) {
    if (need >= UINT32_MAX)
        return sn_fail(err, SNUG_E_OVERFLOW, "a graph holds at most %u items of a kind",
                       UINT32_MAX - 1);
    return sn_grow(g->engine, SN_MEM_GRAPH, array, elem_bytes, cap, need, err);
}

#define RESERVE(g, what, more, err)                                                                \
    reserve((g), &(g)->what, sizeof *(g)->what, &(g)->cap_##what, (g)->n_##what + (size_t)(more),  \
            (err))

static snug_status make_page(sn_graph *g, size_t page, size_t elem_bytes, void **out,
                             snug_error *err) {
    const size_t bytes = sn_page_size(page) * elem_bytes;
    return page < SN_OWN_PAGES ? sn_alloc(g->engine, SN_MEM_GRAPH, bytes, out, err)
                               : sn_zone_alloc_raw(g->zone, bytes, out, err);
}

/* One more page; it is noted in *list, which has `cap` entries. */
static snug_status add_page(sn_graph *g, void *list, size_t elem_bytes, size_t *n_pages,
                            size_t *cap, snug_error *err) {
    void *block;
    void **pages;
    SNUG_TRY(sn_grow(g->engine, SN_MEM_GRAPH, list, sizeof block, cap, *n_pages + 1, err));
    SNUG_TRY(make_page(g, *n_pages, elem_bytes, &block, err));
    memcpy(&pages, list, sizeof pages);
    memcpy(&pages[(*n_pages)++], &block, sizeof block);
    return SNUG_OK;
}

static snug_status check_count(size_t n, snug_error *err) {
    return n < UINT32_MAX - SN_FIRST_PAGE
               ? SNUG_OK
               : sn_fail(err, SNUG_E_OVERFLOW, "a graph holds at most %u items of a kind",
                         UINT32_MAX - SN_FIRST_PAGE - 1);
}

/* The pages for `more` elements behind those there are. */
#define RESERVE_PAGES(g, what, more, err)                                                          \
    reserve_pages((g), &(g)->what, sizeof **(g)->what,                                             \
                  (sn_listed){&(g)->pages_##what, &(g)->cap_##what},                               \
                  (g)->n_##what + (size_t)(more), (err))

typedef struct {
    size_t *n_pages, *cap;
} sn_listed;

static inline snug_status reserve_pages(sn_graph *g, void *list, size_t elem_bytes, sn_listed l,
                                        size_t n, snug_error *err) {
    while (n > 0 && *l.n_pages <= sn_page_of(n - 1)) {
        SNUG_TRY(check_count(n, err));
        SNUG_TRY(add_page(g, list, elem_bytes, l.n_pages, l.cap, err));
    }
    return SNUG_OK;
}

static bool value_exists(const sn_graph *g, sn_value v) {
    return v.i < g->n_values;
}

static sn_value append_value(sn_graph *g, const sn_value_info *info) {
    *SN_PAGED(g->values, g->n_values) = *info;
    return (sn_value){(uint32_t)g->n_values++};
}

/* --- names ------------------------------------------------------------------------------------ */

/* Inputs or outputs with their names. */
typedef struct {
    const sn_named *list;
    size_t n;
    const sn_names *names; /* empty where nobody asked for names to differ */
} named_list;

/* Going back leaves names behind: a number counts only while its slot has this very name. */
static bool find_named(const named_list *l, const char *name, uint32_t *out) {
    if (l->names->n > 0)
        return sn_names_find(l->names, name, out) && *out < l->n &&
               strcmp(l->list[*out].name, name) == 0;
    for (*out = 0; *out < l->n; ++*out)
        if (strcmp(l->list[*out].name, name) == 0)
            return true;
    return false;
}

static named_list inputs_of(const sn_graph *g) {
    return (named_list){g->inputs, g->n_inputs, &g->input_names};
}

static named_list outputs_of(const sn_graph *g) {
    return (named_list){g->outputs, g->n_outputs, &g->output_names};
}

/* Refuses a name that is there; makes room for it where it is not. */
static snug_status take_name(const named_list *l, sn_names *names, const char *kind,
                             const char *name, snug_error *err) {
    uint32_t there;
    if (find_named(l, name, &there))
        return sn_fail(err, SNUG_E_INVALID, "there is an %s '%.80s' already; choose another name",
                       kind, name);
    return sn_names_reserve(names, err);
}

/* Names end up in the text form between blanks, and in reports: printable, in UTF-8, no blanks, not
 * empty. */
static snug_status check_name(const char *kind, const char *name, snug_error *err) {
    if (!name || !*name)
        return sn_fail(err, SNUG_E_INVALID, "%s needs a name", kind);
    if (strlen(name) > SN_MAX_NAME)
        return sn_fail(err, SNUG_E_INVALID,
                       "%s name '%.80s...' has %zu characters, at most %d are allowed", kind, name,
                       strlen(name), SN_MAX_NAME);
    for (int at = 0, n; name[at]; at += n) {
        if ((unsigned char)name[at] <= ' ' || name[at] == 127)
            return sn_fail(err, SNUG_E_INVALID,
                           "%s name '%.80s' has a blank or control character at position %d", kind,
                           name, at);
        n = (unsigned char)name[at] < 128 ? 1 : sn_utf8_bytes(name + at);
        if (n == 0)
            return sn_fail(err, SNUG_E_INVALID, "%s name has no UTF-8 at byte %d; write it anew",
                           kind, at);
    }
    return SNUG_OK;
}

/* --- inputs, variables, parameters, outputs --------------------------------------------------- */

/* What comes from outside: kernels trust opaque bytes to be a kernel's own. */
static snug_status check_outside_type(const char *name, const snug_type *t, bool is_template,
                                      snug_error *err) {
    SNUG_TRY(sn_type_check(t, is_template, err));
    if (t->dtype == SNUG_OPAQUE)
        return sn_fail(err, SNUG_E_SHAPE,
                       "'%.80s' is opaque; only operators make such values; use a numeric dtype",
                       name);
    return SNUG_OK;
}

snug_status sn_graph_input(sn_graph *g, const char *name, const snug_type *type, sn_value *out,
                           snug_error *err) {
    SNUG_TRY(check_name("an input", name, err));
    const named_list there = inputs_of(g);
    if (!g->outside)
        SNUG_TRY(take_name(&there, &g->input_names, "input", name, err));
    SNUG_TRY(check_outside_type(name, type, true, err));
    SNUG_TRY(RESERVE_PAGES(g, values, 1, err));
    SNUG_TRY(RESERVE(g, inputs, 1, err));
    const char *copy;
    SNUG_TRY(sn_zone_text(g->zone, name, &copy, err));
    *out = append_value(g, &(sn_value_info){.kind = SN_VALUE_INPUT,
                                            .type = *type,
                                            .node = SN_NO_NODE,
                                            .index = (uint32_t)g->n_inputs,
                                            .var = -1});
    if (!g->outside)
        sn_names_put(&g->input_names, copy, (uint32_t)g->n_inputs);
    g->inputs[g->n_inputs++] = (sn_named){copy, *out};
    return SNUG_OK;
}

/* Going back leaves names behind: a number counts only while its slot has this very name. */
static bool find_variable(const sn_graph *g, const char *name, uint32_t *out) {
    return sn_names_find(&g->var_names, name, out) && *out < g->n_vars &&
           strcmp(g->vars[*out].name, name) == 0;
}

bool sn_graph_at_home(const sn_graph *g, uint32_t home, uint32_t *var) {
    return sn_numbers_find(&g->homes, home, var) && *var < g->n_vars && g->vars[*var].home == home;
}

static snug_status check_variable(const sn_graph *g, const sn_variable *var, snug_error *err) {
    SNUG_TRY(check_name("a variable", var->name, err));
    uint32_t there;
    if (find_variable(g, var->name, &there))
        return sn_fail(err, SNUG_E_INVALID,
                       "there is a variable '%.80s' already; choose another name", var->name);
    if (!g->outside && sn_graph_at_home(g, var->home, &there))
        return sn_fail(err, SNUG_E_INVALID, "variables '%.80s' and '%.80s' both claim home %u",
                       g->vars[there].name, var->name, var->home);
    if (sn_recipe_source(&var->init)) /* a graph has a text form, bytes elsewhere have none */
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "variable '%.80s' of a graph starts from a file or memory; give that to its "
                       "home",
                       var->name);
    return check_outside_type(var->name, &var->type, false, err);
}

snug_status sn_graph_variable(sn_graph *g, const sn_variable *var, sn_value *out, snug_error *err) {
    SNUG_TRY(check_variable(g, var, err));
    SNUG_TRY(RESERVE_PAGES(g, values, 1, err));
    SNUG_TRY(RESERVE(g, vars, 1, err));
    SNUG_TRY(sn_names_reserve(&g->var_names, err));
    SNUG_TRY(sn_numbers_reserve(&g->homes, err));
    sn_variable v = *var;
    SNUG_TRY(sn_zone_text(g->zone, var->name, &v.name, err));
    v.first = v.last = append_value(g, &(sn_value_info){.kind = SN_VALUE_VARIABLE,
                                                        .type = v.type,
                                                        .node = SN_NO_NODE,
                                                        .index = (uint32_t)g->n_vars,
                                                        .var = (int32_t)g->n_vars});
    sn_names_put(&g->var_names, v.name, (uint32_t)g->n_vars);
    if (!g->outside)
        sn_numbers_put(&g->homes, v.home, (uint32_t)g->n_vars);
    g->vars[g->n_vars++] = v;
    *out = v.first;
    return SNUG_OK;
}

snug_status sn_graph_set_homes(sn_graph *g, const uint32_t *homes, snug_error *err) {
    sn_numbers fresh = {.engine = g->engine, .category = SN_MEM_GRAPH};
    for (size_t i = 0; i < g->n_vars; i++) {
        const snug_status status = sn_numbers_reserve(&fresh, err);
        if (status != SNUG_OK) {
            sn_numbers_clear(&fresh);
            return status;
        }
        sn_numbers_put(&fresh, homes[i], (uint32_t)i);
        g->vars[i].home = homes[i];
    }
    sn_numbers_clear(&g->homes);
    g->homes = fresh;
    return SNUG_OK;
}

/* 1 / product of the extents; infinite for none: a mean over nothing is 0 * inf = NaN. */
static double inverse_extent(const snug_type *t, uint32_t axes) {
    double product = 1;
    for (int a = 0; a < t->rank; a++)
        if (axes == 0 || (axes >> a & 1u))
            product *= (double)t->dims[a];
    return 1 / product;
}

static bool axes_known(const snug_type *t, uint32_t axes) {
    for (int a = 0; a < t->rank; a++)
        if ((axes == 0 || (axes >> a & 1u)) && t->dims[a] < 0)
            return false;
    return true;
}

static snug_status resolve_extent(const sn_graph *g, sn_param_info *p, snug_error *err) {
    if (!value_exists(g, p->of))
        return sn_fail(err, SNUG_E_INVALID,
                       "an inverse extent of value %u, but there are %zu values", p->of.i,
                       g->n_values);
    const snug_type *t = &SN_PAGED(g->values, p->of.i)->type;
    if (t->rank < SNUG_MAX_RANK && p->axes >> t->rank)
        return sn_fail(err, SNUG_E_INVALID, "an inverse extent of axes 0x%x of a value of rank %d",
                       p->axes, t->rank);
    p->real = axes_known(t, p->axes) ? inverse_extent(t, p->axes) : 0;
    return SNUG_OK;
}

static bool same_default(const sn_param_info *a, const sn_param_info *b) {
    return a->kind == b->kind && memcmp(&a->real, &b->real, sizeof a->real) == 0 &&
           a->key == b->key && a->of.i == b->of.i && a->axes == b->axes;
}

/* As find_variable. */
static bool find_param(const sn_graph *g, const char *name, sn_param *out) {
    uint32_t i;
    if (!sn_names_find(&g->param_names, name, &i) || i >= g->n_params ||
        strcmp(SN_PAGED(g->params, i)->name, name) != 0)
        return false;
    *out = (sn_param){i};
    return true;
}

snug_status sn_graph_param(sn_graph *g, const sn_param_info *p, sn_param *out, snug_error *err) {
    sn_param_info info = {.name = p->name ? p->name : "", .kind = p->kind, .of = SN_NO_VALUE};
    if (p->kind == SN_PARAM_REAL)
        info.real = p->real;
    if (p->kind == SN_PARAM_KEY)
        info.key = p->key;
    info.each_step = p->each_step;
    if (p->kind == SN_PARAM_INVERSE_EXTENT) {
        info.of = p->of;
        info.axes = p->axes;
        SNUG_TRY(resolve_extent(g, &info, err));
    }
    if (*info.name)
        SNUG_TRY(check_name("a parameter", info.name, err));
    if (*info.name && g->source)
        return g->source->find(g->source->ctx, &info, out, err);
    if (*info.name && find_param(g, info.name, out)) {
        if (same_default(SN_PAGED(g->params, out->i), &info))
            return SNUG_OK;
        return sn_fail(err, SNUG_E_INVALID,
                       "parameter '%.80s' is there already with another kind or default",
                       info.name);
    }
    SNUG_TRY(RESERVE_PAGES(g, params, 1, err));
    *out = (sn_param){(uint32_t)g->n_params};
    if (*info.name) {
        SNUG_TRY(sn_names_reserve(&g->param_names, err));
        SNUG_TRY(sn_zone_text(g->zone, info.name, &info.name, err));
        sn_names_put(&g->param_names, info.name, out->i);
    } else {
        info.name = "";
    }
    *SN_PAGED(g->params, g->n_params) = info;
    g->n_params++;
    return SNUG_OK;
}

snug_status sn_graph_plain(sn_graph *g, int value, sn_param *out, snug_error *err) {
    if (g->plain[value] == UINT32_MAX) {
        SNUG_TRY(sn_graph_param(
            g, &(sn_param_info){.name = "", .kind = SN_PARAM_REAL, .real = value}, out, err));
        g->plain[value] = out->i;
    }
    *out = (sn_param){g->plain[value]};
    return SNUG_OK;
}

snug_status sn_graph_output(sn_graph *g, const char *name, sn_value v, snug_error *err) {
    SNUG_TRY(check_name("an output", name, err));
    if (!value_exists(g, v))
        return sn_fail(err, SNUG_E_INVALID,
                       "output '%.80s' names value %u, but there are %zu values", name, v.i,
                       g->n_values);
    const named_list there = outputs_of(g);
    if (!g->outside)
        SNUG_TRY(take_name(&there, &g->output_names, "output", name, err));
    SNUG_TRY(RESERVE(g, outputs, 1, err));
    const char *copy;
    SNUG_TRY(sn_zone_text(g->zone, name, &copy, err));
    if (!g->outside)
        sn_names_put(&g->output_names, copy, (uint32_t)g->n_outputs);
    g->outputs[g->n_outputs++] = (sn_named){copy, v};
    return SNUG_OK;
}

void sn_graph_clear_outputs(sn_graph *g) {
    g->n_outputs = 0;
}

snug_status sn_graph_set_owner(sn_graph *g, const char *owner, snug_error *err) {
    uint32_t there;
    if (sn_names_find(&g->owner_names, owner, &there)) {
        g->owner = there;
        return SNUG_OK;
    }
    if (*owner)
        SNUG_TRY(check_name("an owner", owner, err));
    SNUG_TRY(RESERVE(g, owners, 1, err));
    SNUG_TRY(sn_names_reserve(&g->owner_names, err));
    const char *copy;
    SNUG_TRY(sn_zone_text(g->zone, owner, &copy, err));
    g->owner = (uint32_t)g->n_owners;
    sn_names_put(&g->owner_names, copy, g->owner);
    g->owners[g->n_owners++] = copy;
    return SNUG_OK;
}

void sn_graph_set_source(sn_graph *g, const sn_param_source *source) {
    g->source = source;
}

void sn_graph_set_part(sn_graph *g, sn_part part) {
    g->part = part;
}

void sn_graph_set_outside(sn_graph *g) {
    g->outside = true;
    sn_names_forget(&g->input_names);
    sn_names_forget(&g->output_names);
    sn_numbers_forget(&g->homes);
}

bool sn_graph_is_outside(const sn_graph *g) {
    return g->outside;
}

void sn_graph_set_fed(sn_graph *g, uint32_t input, bool fed) {
    SN_PAGED(g->values, g->inputs[input].value.i)->fed = fed;
}

void sn_graph_set_owner_at(sn_graph *g, uint32_t owner) {
    g->owner = owner;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static snug_status check_slot(const sn_graph *g, const sn_opdesc *d, const sn_field *f,
                              int64_t slot, snug_error *err) {
    const char *op = sn_ops[d->op].name;
    if (slot == -1)
        return sn_fail(err, SNUG_E_INVALID, "%s: %s is not given; it needs a number or a slot", op,
                       f->name);
    if (slot < 0 || (uint64_t)slot >= g->n_params)
        return sn_fail(
            err, SNUG_E_INVALID,
            "%s: %s names parameter slot %lld, but there are %zu; make one with sn_graph_param", op,
            f->name, (long long)slot, g->n_params);
    const bool is_key = SN_PAGED(g->params, (size_t)slot)->kind == SN_PARAM_KEY;
    if (is_key != (f->kind == SN_FIELD_KEY))
        return sn_fail(err, SNUG_E_INVALID, "%s: %s needs %s parameter, slot %lld is not one", op,
                       f->name, f->kind == SN_FIELD_KEY ? "an integer" : "a real", (long long)slot);
    return SNUG_OK;
}

/* Also brings words past the rank into their one form, so that equal nodes have equal words. */
static snug_status check_slots(const sn_graph *g, sn_opdesc *d, snug_error *err) {
    const sn_attr_family *family = sn_ops[d->op].attrs;
    for (int i = 0; i < family->n_fields; i++) {
        const sn_field *f = &family->fields[i];
        if (!sn_field_is_param(f))
            continue;
        int64_t *word = &d->attrs.word[f->word];
        for (int k = 0; k < f->n; k++) {
            if (f->n == 1 || k < d->in[0].rank)
                SNUG_TRY(check_slot(g, d, f, word[k], err));
            else
                word[k] = -1;
        }
    }
    return SNUG_OK;
}

/* STATE rows: input k is the newest version of a variable that output k continues, each variable
 * once. */
static snug_status check_versions(const sn_graph *g, const sn_opdesc *d, const sn_value *in,
                                  snug_error *err) {
    const char *op = sn_ops[d->op].name;
    for (int k = 0; k < sn_op_versions(d->op, d->n_out); k++) {
        const sn_value_info *v = SN_PAGED(g->values, in[k].i);
        if (v->var < 0)
            return sn_fail(err, SNUG_E_INVALID, "%s: input %d (value %u) is not a variable", op, k,
                           in[k].i);
        const sn_variable *var = &g->vars[v->var];
        if (var->last.i != in[k].i)
            return sn_fail(err, SNUG_E_INVALID,
                           "%s: input %d is version %u of '%.80s', the newest is %u (value %u)", op,
                           k, v->version, var->name, SN_PAGED(g->values, var->last.i)->version,
                           var->last.i);
        for (int j = 0; j < k; j++)
            if (in[j].i == in[k].i)
                return sn_fail(err, SNUG_E_INVALID,
                               "%s: inputs %d and %d are the same variable '%.80s'", op, j, k,
                               var->name);
        if (!sn_type_equal(&var->type, &d->out[k]))
            return sn_fail(err, SNUG_E_INTERNAL,
                           "%s: output %d has not the type of variable '%.80s'", op, k, var->name);
    }
    return SNUG_OK;
}

static snug_status describe_node(const sn_graph *g, sn_opdesc *d, const sn_value *in,
                                 snug_error *err) {
    SNUG_TRY(sn_op_check_arity(d->op, d->n_in, err));
    const sn_op_row *row = &sn_ops[d->op];
    for (int i = 0; i < d->n_in; i++) {
        if (!value_exists(g, in[i]))
            return sn_fail(err, SNUG_E_INVALID,
                           "%s: input %d is value %u, but there are %zu values", row->name, i,
                           in[i].i, g->n_values);
        d->in[i] = SN_PAGED(g->values, in[i].i)->type;
    }
    SNUG_TRY(check_slots(g, d, err));
    SNUG_TRY(sn_op_infer_checked(d, err));
    if (row->effect == SN_STATE)
        SNUG_TRY(check_versions(g, d, in, err));
    return SNUG_OK;
}

/* Room was reserved; nothing here can fail. `lists` holds the inputs, then the outputs. */
static void append_node(sn_graph *g, const sn_opdesc *d, sn_node_info *at, sn_value *lists) {
    const sn_node node = {(uint32_t)g->n_nodes};
    for (int k = 0; k < d->n_out; k++) {
        const bool is_state = k < sn_op_versions(d->op, d->n_out);
        sn_value_info info = {.kind = SN_VALUE_OUTPUT,
                              .type = d->out[k],
                              .node = node,
                              .index = (uint32_t)k,
                              .var = -1};
        if (is_state) {
            const sn_value_info *before = SN_PAGED(g->values, lists[k].i);
            info.var = before->var;
            info.version = before->version + 1;
        }
        lists[d->n_in + k] = append_value(g, &info);
        if (is_state)
            g->vars[info.var].last = lists[d->n_in + k];
    }
    at->op = d->op;
    at->n_in = (uint16_t)d->n_in;
    at->n_out = (uint16_t)d->n_out;
    at->in = lists;
    at->out = lists + d->n_in;
    at->owner = g->owner;
    at->part = g->part;
    memcpy(&at->attrs, &d->attrs, sn_ops[d->op].attrs->bytes);
    *SN_PAGED(g->nodes, g->n_nodes) = at;
    g->n_nodes++;
}

snug_status sn_graph_node(sn_graph *g, sn_op op, const sn_attrs *attrs, const sn_value *in,
                          int n_in, sn_value *outs, int *n_outs, snug_error *err) {
    sn_opdesc d; /* large: types of inputs that are not there stay as they are */
    d.op = op;
    d.n_in = n_in;
    d.n_out = 0;
    d.out[0] = (snug_type){.rank = 0}; /* which rules may fill in part; others they assign */
    if (attrs && (unsigned)op < SN_N_OPS)
        memcpy(&d.attrs, attrs, sn_ops[op].attrs->bytes);
    else if ((unsigned)op < SN_N_OPS && sn_ops[op].attrs->n_fields > 0)
        sn_attrs_default(op, &d.attrs);
    SNUG_TRY(describe_node(g, &d, in, err));
    SNUG_TRY(RESERVE_PAGES(g, values, d.n_out, err));
    SNUG_TRY(RESERVE_PAGES(g, nodes, 1, err));
    void *block;
    const size_t own = offsetof(sn_node_info, attrs) + sn_ops[op].attrs->bytes;
    SNUG_TRY(sn_zone_alloc_raw(g->zone, own + (size_t)(d.n_in + d.n_out) * sizeof(sn_value), &block,
                               err));
    sn_value *lists = (sn_value *)(void *)((char *)block + own);
    if (n_in > 0)
        memcpy(lists, in, (size_t)n_in * sizeof *in);
    append_node(g, &d, block, lists);
    memcpy(outs, lists + n_in, (size_t)d.n_out * sizeof *outs);
    if (n_outs)
        *n_outs = d.n_out;
    return SNUG_OK;
}

sn_graph_mark sn_graph_mark_now(const sn_graph *g) {
    return (sn_graph_mark){g->n_nodes, g->n_values, g->n_params, g->n_inputs,
                           g->n_vars,  g->owner,    g->part};
}

/* The newest version that is older than the mark. */
static void take_version_back(sn_graph *g, sn_variable *var, size_t n_values) {
    while (var->last.i >= n_values) {
        const sn_value_info *v = SN_PAGED(g->values, var->last.i);
        var->last = sn_graph_node_at(g, v->node)->in[v->index];
    }
}

void sn_graph_go_back(sn_graph *g, const sn_graph_mark *m) {
    for (size_t i = 0; i < m->n_vars; i++)
        take_version_back(g, &g->vars[i], m->n_values);
    g->n_inputs = m->n_inputs;
    g->n_vars = m->n_vars;
    g->n_nodes = m->n_nodes;
    g->n_values = m->n_values;
    g->n_params = m->n_params;
    for (int k = 0; k < 2; k++)
        if (g->plain[k] >= m->n_params)
            g->plain[k] = UINT32_MAX;
    g->owner = m->owner;
    g->part = m->part;
}

/* --- reading ---------------------------------------------------------------------------------- */

#define COUNT(what)                                                                                \
    uint32_t sn_graph_n_##what(const sn_graph *g) {                                                \
        return (uint32_t)g->n_##what;                                                              \
    }
COUNT(nodes)
COUNT(values)
COUNT(inputs)
COUNT(vars)
COUNT(params)
COUNT(outputs)
COUNT(owners)
#undef COUNT

const sn_node_info *sn_graph_node_at(const sn_graph *g, sn_node n) {
    return *SN_PAGED(g->nodes, n.i);
}

void sn_graph_copy_node(const sn_graph *g, sn_node n, sn_node_info *out) {
    const sn_node_info *node = sn_graph_node_at(g, n);
    memcpy(out, node, offsetof(sn_node_info, attrs));
    sn_attrs_copy(node->op, &node->attrs, &out->attrs);
}

const sn_value_info *sn_graph_value_at(const sn_graph *g, sn_value v) {
    return SN_PAGED(g->values, v.i);
}

const sn_variable *sn_graph_var_at(const sn_graph *g, sn_var v) {
    return &g->vars[v.i];
}

const sn_param_info *sn_graph_param_at(const sn_graph *g, sn_param p) {
    return SN_PAGED(g->params, p.i);
}

const char *sn_graph_owner_name(const sn_graph *g, uint32_t owner) {
    return g->owners[owner];
}

sn_value sn_graph_input_at(const sn_graph *g, uint32_t i) {
    return g->inputs[i].value;
}

const char *sn_graph_input_name(const sn_graph *g, uint32_t i) {
    return g->inputs[i].name;
}

sn_value sn_graph_output_at(const sn_graph *g, uint32_t i) {
    return g->outputs[i].value;
}

const char *sn_graph_output_name(const sn_graph *g, uint32_t i) {
    return g->outputs[i].name;
}

void sn_graph_desc(const sn_graph *g, sn_node n, sn_opdesc *out) {
    const sn_node_info *node = sn_graph_node_at(g, n);
    *out = (sn_opdesc){.op = node->op, .n_in = node->n_in, .n_out = node->n_out};
    sn_attrs_copy(node->op, &node->attrs, &out->attrs);
    for (int i = 0; i < node->n_in; i++)
        out->in[i] = SN_PAGED(g->values, node->in[i].i)->type;
    for (int k = 0; k < node->n_out; k++)
        out->out[k] = SN_PAGED(g->values, node->out[k].i)->type;
}

/* "a, b, c" of the names there are, cut when full. */
typedef struct {
    char text[300];
    size_t used;
} name_list;

static void add_name(name_list *l, const char *name) {
    if (l->used + 1 >= sizeof l->text)
        return;
    const int n = snprintf(l->text + l->used, sizeof l->text - l->used, "%s%s",
                           l->used > 0 ? ", " : "", name);
    l->used += n > 0 ? (size_t)n : 0;
}

static snug_status not_found(const char *kind, const char *name, const name_list *l,
                             snug_error *err) {
    return sn_fail(err, SNUG_E_INVALID, "no %s is called '%.80s'; there are: %s", kind, name,
                   l->used > 0 ? l->text : "none");
}

static snug_status find_by_name(const named_list *there, const char *kind, const char *name,
                                uint32_t *out, snug_error *err) {
    if (find_named(there, name, out))
        return SNUG_OK;
    name_list l = {.used = 0};
    for (size_t i = 0; i < there->n; i++)
        add_name(&l, there->list[i].name);
    return not_found(kind, name, &l, err);
}

snug_status sn_graph_find_input(const sn_graph *g, const char *name, uint32_t *out,
                                snug_error *err) {
    const named_list there = inputs_of(g);
    return find_by_name(&there, "input", name, out, err);
}

snug_status sn_graph_find_output(const sn_graph *g, const char *name, uint32_t *out,
                                 snug_error *err) {
    const named_list there = outputs_of(g);
    return find_by_name(&there, "output", name, out, err);
}

snug_status sn_graph_find_param(const sn_graph *g, const char *name, sn_param *out,
                                snug_error *err) {
    name_list l = {.used = 0};
    for (size_t i = 0; i < g->n_params; i++) {
        const char *have = SN_PAGED(g->params, i)->name;
        if (*have && strcmp(have, name) == 0) {
            *out = (sn_param){(uint32_t)i};
            return SNUG_OK;
        }
        if (*have)
            add_name(&l, have);
    }
    return not_found("parameter", name, &l, err);
}
