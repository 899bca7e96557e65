/* plan_text.c: the text form of a plan, printed and parsed. One line per thing, each ended by \n;
 * parse(print(p)) prints the same text.
 *
 *     plan    := "snug plan 1" device+ memory+ opaque* spilled* total step* output* "end plan"
 *     device  := "device" N "align" BYTES name
 *     memory  := "memory" N "device" N "bytes" BYTES "used" BYTES "bound" BYTES ["file"] name
 *     name    := "name" REST
 *     opaque  := "opaque" VALUE "bytes" BYTES
 *     spilled := "spilled" VALUE
 *     total   := "total flops" N "code" BYTES "peak" STEP
 *     step    := STEP (run | feed | copy | "repeat" N "rows" N "last" N | "end")
 *     run     := "run" NODE OP "v"N places "->" places [ws] on [acc] [wait] "impl" REST
 *     feed    := "feed" N "->" place on [wait] name
 *     copy    := "copy" place "->" place on [wait]
 *     places  := "(" [place {" " place}] ")"
 *     place   := VALUE "@state" | VALUE "@" where "+" OFFSET ["+" STRIDE] ["rows" slice]
 *     where   := "state" | N
 *     slice   := FIRST ":" AXIS ":" ROWS
 *     ws      := "ws" N "+" OFFSET ":" BYTES
 *     on      := "on" DEVICE "." QUEUE
 *     acc     := "acc" ("add" | "add_later")
 *     wait    := "wait" STEP {STEP}
 *     output  := "output" N place
 *
 * VALUE is %N, NODE nN, STEP sN; REST is the rest of the line; words are one blank apart. Devices,
 * memories, steps and outputs count up from 0. An opaque line gives the bytes of a value whose
 * device says them; a spilled line is the first version of a variable whose home lies in the spill
 * file. A place in a home has an offset when it is a slice. The name behind a feed is the input's
 * and is checked. The last line tells a whole text from a cut one. */
#include "plan/passes.h"

#include "base/real.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- printing ------------------------------------------------------------------------------- */
typedef struct {
    const sn_plan *p;
    const sn_writer *w;
    snug_error *err;
    snug_status status; /* the first error sticks */
} printer;

static void put(printer *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(printer *o, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    const int n = sn_print_list(text, sizeof text, format, args);
    va_end(args);
    if (o->status == SNUG_OK && (n < 0 || (size_t)n >= sizeof text))
        o->status = sn_fail(o->err, SNUG_E_INTERNAL, "plan text: a line of %d bytes", n);
    if (o->status == SNUG_OK)
        o->status = o->w->write(o->w->ctx, text, (size_t)n, o->err);
}

static void put_place(printer *o, const sn_place *p) {
    const bool home = p->memory == SN_MEM_STATE;
    put(o, "%%%" PRIu32 "@", p->value.i);
    if (home)
        put(o, "state");
    else
        put(o, "%" PRIu32, p->memory);
    if (!home || p->rows >= 0)
        put(o, "+%zu", p->offset);
    if (p->stride > 0)
        put(o, "+%zu", p->stride);
    if (p->rows >= 0)
        put(o, " rows %" PRId64 ":%d:%" PRId64, p->first, p->axis, p->rows);
}

static void put_places(printer *o, const sn_place *places, int n) {
    put(o, "(");
    for (int k = 0; k < n; k++) {
        put(o, "%s", k > 0 ? " " : "");
        put_place(o, &places[k]);
    }
    put(o, ")");
}

static void put_on(printer *o, const sn_step *s) {
    put(o, " on %u.%d", (unsigned)s->device, (int)s->queue);
    if (s->accumulate != SN_ACC_STORE)
        put(o, " acc %s", s->accumulate == SN_ACC_ADD ? "add" : "add_later");
    put(o, "%s", s->n_waits > 0 ? " wait" : "");
    for (uint32_t w = 0; w < s->n_waits; w++)
        put(o, " s%" PRIu32, s->waits[w]);
}

static void put_run(printer *o, const sn_step *s) {
    const sn_node_info *n = sn_graph_node_at(o->p->graph, s->node);
    put(o, "run n%" PRIu32 " %s v%d ", s->node.i, sn_ops[n->op].name, s->variant);
    put_places(o, s->in, s->n_in);
    put(o, " -> ");
    put_places(o, s->out, s->n_out);
    if (s->ws_bytes > 0)
        put(o, " ws %" PRIu32 "+%zu:%zu", s->ws_memory, s->ws_offset, s->ws_bytes);
    put_on(o, s);
    put(o, " impl %s", s->impl);
}

static void put_step(printer *o, uint32_t i) {
    const sn_step *s = &o->p->steps[i];
    put(o, "s%" PRIu32 " ", i);
    if (s->kind == SN_STEP_RUN)
        put_run(o, s);
    if (s->kind == SN_STEP_FEED || s->kind == SN_STEP_COPY) {
        if (s->kind == SN_STEP_FEED) {
            put(o, "feed %" PRIu32, s->input);
        } else {
            put(o, "copy ");
            put_place(o, s->in);
        }
        put(o, " -> ");
        put_place(o, s->out);
        put_on(o, s);
        if (s->kind == SN_STEP_FEED)
            put(o, " name %s", sn_graph_input_name(o->p->graph, s->input));
    }
    if (s->kind == SN_STEP_REPEAT)
        put(o, "repeat %" PRId64 " rows %" PRId64 " last %" PRId64, s->repeat, s->rows, s->last);
    put(o, s->kind == SN_STEP_END ? "end\n" : "\n");
}

static void put_head(printer *o) {
    const sn_plan *p = o->p;
    put(o, "snug plan 1\n");
    for (uint32_t d = 0; d < p->n_devices; d++)
        put(o, "device %" PRIu32 " align %zu name %s\n", d, p->device_align[d], p->device_names[d]);
    for (uint32_t m = 0; m < p->n_memories; m++) {
        const sn_plan_memory *mem = &p->memories[m];
        put(o, "memory %" PRIu32 " device %u bytes %zu used %zu bound %zu %sname %s\n", m,
            (unsigned)mem->device, mem->bytes, mem->used_bytes, mem->lower_bound_bytes,
            mem->kind == SN_MEMORY_FILE ? "file " : "", mem->name);
    }
    for (uint32_t v = 0; v < sn_graph_n_values(p->graph); v++)
        if (sn_graph_type(p->graph, (sn_value){v})->dtype == SNUG_OPAQUE)
            put(o, "opaque %%%" PRIu32 " bytes %zu\n", v, p->value_bytes[v]);
    for (uint32_t i = 0; p->spilled && i < sn_graph_n_vars(p->graph); i++)
        if (p->spilled[i])
            put(o, "spilled %%%" PRIu32 "\n", sn_graph_var_at(p->graph, (sn_var){i})->first.i);
    put(o, "total flops %.0f code %zu peak s%" PRIu32 "\n", p->flops, p->code_bytes, p->peak_step);
}

snug_status sn_plan_print(const sn_plan *p, const sn_writer *w, snug_error *err) {
    printer o = {.p = p, .w = w, .err = err};
    put_head(&o);
    for (uint32_t i = 0; i < p->n_steps; i++)
        put_step(&o, i);
    for (uint32_t i = 0; i < sn_graph_n_outputs(p->graph); i++) {
        put(&o, "output %" PRIu32 " ", i);
        put_place(&o, &p->outputs[i]);
        put(&o, "\n");
    }
    put(&o, "end plan\n");
    return o.status;
}

/* --- parsing; every reader does nothing once an error has been seen ------------------------- */
typedef struct {
    sn_plan *p;
    const char *at;
    int line;
    snug_error *err;
    snug_status status;
    sn_step *steps;
    size_t cap_steps;
} parser;

static void refuse(parser *r, const char *expected) {
    const size_t word = strcspn(expected, "\n"), left = strcspn(r->at, "\n");
    if (r->status == SNUG_OK)
        r->status =
            sn_fail(r->err, SNUG_E_FORMAT, "plan text, line %d: expected %.*s before '%.*s'",
                    r->line, (int)word, expected, left < 20 ? (int)left : 20, r->at);
}

static void failed(parser *r, snug_status st) {
    if (r->status == SNUG_OK)
        r->status = st;
}

static bool accept(parser *r, const char *word) {
    const size_t n = strlen(word);
    if (r->status != SNUG_OK || strncmp(r->at, word, n) != 0)
        return false;
    for (const char *c = word; *c; c++)
        r->line += *c == '\n';
    r->at += n;
    return true;
}

static void expect(parser *r, const char *word) {
    if (!accept(r, word))
        refuse(r, word[0] == '\n' ? "the end of the line" : word);
}

/* A number without sign, at most `most`, written as printf writes it. */
static uint64_t number(parser *r, uint64_t most) {
    uint64_t n = 0;
    const char *from = r->at;
    if (r->status == SNUG_OK && *from == '0' && from[1] >= '0' && from[1] <= '9')
        refuse(r, "a number without leading zeros");
    for (; r->status == SNUG_OK && *r->at >= '0' && *r->at <= '9'; r->at++) {
        const uint64_t digit = (uint64_t)(*r->at - '0');
        if (digit > most || n > (most - digit) / 10)
            refuse(r, "a smaller number");
        else
            n = n * 10 + digit;
    }
    if (r->at == from)
        refuse(r, "a number");
    return r->status == SNUG_OK ? n : 0;
}

static uint32_t number32(parser *r) {
    return (uint32_t)number(r, UINT32_MAX - 1);
}
static size_t bytes_of(parser *r) {
    return (size_t)number(r, SIZE_MAX);
}

/* The rest of the line, which must fit. */
static void rest(parser *r, char *out, size_t size) {
    size_t n = 0;
    while (r->status == SNUG_OK && r->at[n] && r->at[n] != '\n')
        n++;
    if (n >= size) {
        refuse(r, "a shorter name");
        return;
    }
    memcpy(out, r->at, n);
    memset(out + n, 0, size - n);
    r->at += n;
    expect(r, "\n");
}

static void read_place(parser *r, sn_place *p) {
    *p = (sn_place){.rows = -1};
    expect(r, "%");
    p->value.i = number32(r);
    expect(r, "@");
    const bool home = accept(r, "state");
    if (!home)
        p->memory = number32(r);
    if (!home && p->memory == SN_MEM_STATE)
        refuse(r, "@state");
    if (home && *r->at != '+')
        return;
    expect(r, "+");
    p->offset = bytes_of(r);
    if (accept(r, "+")) {
        p->stride = bytes_of(r);
        if (p->stride == 0)
            refuse(r, "a stride above 0");
    }
    if (home)
        expect(r, " rows ");
    else if (!accept(r, " rows "))
        return;
    p->first = (int64_t)number(r, INT64_MAX);
    expect(r, ":");
    p->axis = (int)number(r, SNUG_MAX_RANK);
    expect(r, ":");
    p->rows = (int64_t)number(r, INT64_MAX);
}

static const sn_place *copy_places(parser *r, const sn_place *places, size_t n) {
    sn_place *copy = NULL;
    if (r->status == SNUG_OK)
        failed(r, sn_plan_array(r->p->zone, n, sizeof *copy, &copy, r->err));
    if (r->status == SNUG_OK)
        memcpy(copy, places, n * sizeof *copy);
    return copy;
}

static const sn_place *read_places(parser *r, uint16_t *n, size_t most) {
    sn_place places[SN_MAX_IN];
    size_t count = 0;
    expect(r, "(");
    while (r->status == SNUG_OK && !accept(r, ")")) {
        if (count == most) {
            refuse(r, "fewer operands");
            break;
        }
        if (count > 0)
            expect(r, " ");
        read_place(r, &places[count++]);
    }
    *n = (uint16_t)count;
    return copy_places(r, places, count);
}

static const sn_place *read_one_place(parser *r) {
    sn_place place;
    read_place(r, &place);
    return copy_places(r, &place, 1);
}

static void read_waits(parser *r, sn_step *s) {
    const char *from = r->at;
    uint32_t n = 0;
    while (accept(r, " s")) {
        (void)number32(r);
        n++;
    }
    uint32_t *waits = NULL;
    if (n == 0)
        refuse(r, "a step to wait for");
    if (r->status == SNUG_OK)
        failed(r, sn_plan_array(r->p->zone, n, sizeof *waits, &waits, r->err));
    r->at = r->status == SNUG_OK ? from : r->at;
    for (uint32_t w = 0; w < n && accept(r, " s"); w++)
        waits[w] = number32(r);
    s->n_waits = n;
    s->waits = waits;
}

static void read_on(parser *r, sn_step *s) {
    expect(r, " on ");
    s->device = (uint16_t)number(r, SN_MAX_DEVICES - 1);
    expect(r, ".");
    s->queue = (sn_queue)number(r, SN_N_QUEUES - 1);
    if (accept(r, " acc add_later"))
        s->accumulate = SN_ACC_ADD_LATER;
    else if (accept(r, " acc add"))
        s->accumulate = SN_ACC_ADD;
    if (accept(r, " wait"))
        read_waits(r, s);
}

static void read_run(parser *r, sn_step *s) {
    s->kind = SN_STEP_RUN;
    s->node.i = number32(r);
    if (r->status == SNUG_OK && s->node.i >= sn_graph_n_nodes(r->p->graph))
        refuse(r, "a node of the graph");
    if (r->status != SNUG_OK)
        return;
    expect(r, " ");
    expect(r, sn_ops[sn_graph_node_at(r->p->graph, s->node)->op].name);
    expect(r, " v");
    s->variant = (int)number(r, INT32_MAX);
    expect(r, " ");
    s->in = read_places(r, &s->n_in, SN_MAX_IN);
    expect(r, " -> ");
    s->out = read_places(r, &s->n_out, SN_MAX_OUT);
    if (accept(r, " ws ")) {
        s->ws_memory = number32(r);
        expect(r, "+");
        s->ws_offset = bytes_of(r);
        expect(r, ":");
        s->ws_bytes = bytes_of(r);
        if (s->ws_bytes == 0)
            refuse(r, "a workspace of some bytes");
    }
    read_on(r, s);
    expect(r, " impl ");
    rest(r, s->impl, sizeof s->impl);
}

static void read_transfer(parser *r, sn_step *s) {
    if (s->kind == SN_STEP_FEED) {
        s->input = number32(r);
    } else {
        s->n_in = 1;
        s->in = read_one_place(r);
    }
    if (s->kind == SN_STEP_FEED && s->input >= sn_graph_n_inputs(r->p->graph))
        refuse(r, "an input of the graph");
    expect(r, " -> ");
    s->n_out = 1;
    s->out = read_one_place(r);
    read_on(r, s);
    if (s->accumulate != SN_ACC_STORE)
        refuse(r, "a run that adds");
    if (s->kind == SN_STEP_FEED && r->status == SNUG_OK) {
        expect(r, " name ");
        expect(r, sn_graph_input_name(r->p->graph, s->input));
    }
    expect(r, "\n");
}

static void read_repeat(parser *r, sn_step *s) {
    s->kind = SN_STEP_REPEAT;
    s->repeat = (int64_t)number(r, INT64_MAX);
    expect(r, " rows ");
    s->rows = (int64_t)number(r, INT64_MAX);
    expect(r, " last ");
    s->last = (int64_t)number(r, INT64_MAX);
    expect(r, "\n");
}

static void read_step(parser *r) {
    sn_step s = {0};
    void *steps = r->steps;
    if (number32(r) != r->p->n_steps)
        refuse(r, "the next step's number");
    expect(r, " ");
    if (accept(r, "run n")) {
        read_run(r, &s);
    } else if (accept(r, "feed ") || accept(r, "copy ")) {
        s.kind = r->at[-2] == 'd' ? SN_STEP_FEED : SN_STEP_COPY;
        read_transfer(r, &s);
    } else if (accept(r, "repeat ")) {
        read_repeat(r, &s);
    } else {
        s.kind = SN_STEP_END;
        expect(r, "end\n");
    }
    if (r->status == SNUG_OK)
        failed(r, sn_grow(sn_zone_engine(r->p->zone), SN_MEM_PLAN, &steps, sizeof s, &r->cap_steps,
                          (size_t)r->p->n_steps + 1, r->err));
    r->steps = steps;
    if (r->status == SNUG_OK)
        r->steps[r->p->n_steps++] = s;
}

static void read_devices(parser *r) {
    sn_plan *p = r->p;
    while (accept(r, "device ")) {
        const uint64_t d = number(r, SN_MAX_DEVICES - 1);
        if (d != p->n_devices)
            refuse(r, "the next device's number");
        expect(r, " align ");
        p->device_align[d] = bytes_of(r);
        expect(r, " name ");
        rest(r, p->device_names[d], sizeof p->device_names[d]);
        p->n_devices++;
    }
}

static void read_memories(parser *r) {
    sn_plan *p = r->p;
    while (accept(r, "memory ")) {
        const uint64_t m = number(r, SN_MAX_MEMORIES - 1);
        sn_plan_memory *mem = &p->memories[m];
        if (m != p->n_memories)
            refuse(r, "the next memory's number");
        expect(r, " device ");
        mem->device = (uint16_t)number(r, SN_MAX_DEVICES - 1);
        expect(r, " bytes ");
        mem->bytes = bytes_of(r);
        expect(r, " used ");
        mem->used_bytes = bytes_of(r);
        expect(r, " bound ");
        mem->lower_bound_bytes = bytes_of(r);
        mem->kind = accept(r, " file") ? SN_MEMORY_FILE : SN_MEMORY_BYTES;
        expect(r, " name ");
        rest(r, mem->name, sizeof mem->name);
        p->n_memories++;
    }
}

/* Sizes from types; those of opaque values stand in the text, one line each, in order. */
static void read_sizes(parser *r) {
    sn_plan *p = r->p;
    const uint32_t n = sn_graph_n_values(p->graph);
    size_t *bytes = NULL;
    if (r->status == SNUG_OK)
        failed(r, sn_plan_array(p->zone, n, sizeof *bytes, &bytes, r->err));
    for (uint32_t v = 0; r->status == SNUG_OK && v < n; v++) {
        const snug_type *type = sn_graph_type(p->graph, (sn_value){v});
        if (type->dtype != SNUG_OPAQUE) {
            failed(r, snug_type_bytes(type, &bytes[v], r->err));
            continue;
        }
        expect(r, "opaque %");
        if (number32(r) != v)
            refuse(r, "the next opaque value");
        expect(r, " bytes ");
        bytes[v] = bytes_of(r);
        expect(r, "\n");
    }
    p->value_bytes = bytes;
}

/* Variables in order, by their first versions. */
static void read_spilled(parser *r) {
    const sn_graph *g = r->p->graph;
    const uint32_t n = sn_graph_n_vars(g);
    bool *spilled = NULL;
    uint32_t i = 0;
    while (accept(r, "spilled %")) {
        if (!spilled)
            failed(r, sn_plan_array(r->p->zone, n, sizeof *spilled, &spilled, r->err));
        const uint32_t v = number32(r);
        while (i < n && sn_graph_var_at(g, (sn_var){i})->first.i != v)
            i++;
        if (i == n)
            refuse(r, "the first version of a later variable");
        if (r->status == SNUG_OK) {
            spilled[i++] = true;
            r->p->spilled_bytes += r->p->value_bytes[v];
        }
        expect(r, "\n");
    }
    r->p->spilled = spilled;
}

static void read_outputs(parser *r) {
    sn_plan *p = r->p;
    const uint32_t n = sn_graph_n_outputs(p->graph);
    sn_place *outputs = NULL;
    if (r->status == SNUG_OK)
        failed(r, sn_plan_array(p->zone, n, sizeof *outputs, &outputs, r->err));
    for (uint32_t i = 0; r->status == SNUG_OK && i < n; i++) {
        expect(r, "output ");
        if (number32(r) != i)
            refuse(r, "the next output's number");
        expect(r, " ");
        read_place(r, &outputs[i]);
        expect(r, "\n");
    }
    p->outputs = outputs;
}

static void read_plan(parser *r) {
    sn_plan *p = r->p;
    expect(r, "snug plan 1\n");
    read_devices(r);
    read_memories(r);
    read_sizes(r);
    read_spilled(r);
    expect(r, "total flops ");
    p->flops = (double)number(r, UINT64_MAX);
    expect(r, " code ");
    p->code_bytes = bytes_of(r);
    expect(r, " peak s");
    p->peak_step = number32(r);
    expect(r, "\n");
    while (accept(r, "s"))
        read_step(r);
    read_outputs(r);
    expect(r, "end plan\n");
    if (r->status == SNUG_OK && *r->at)
        refuse(r, "the end of the text");
    if (r->status == SNUG_OK)
        failed(r, sn_plan_array(p->zone, p->n_steps, sizeof *p->steps, &p->steps, r->err));
    if (r->status == SNUG_OK && p->n_steps > 0)
        memcpy(p->steps, r->steps, p->n_steps * sizeof *p->steps);
}

snug_status sn_plan_parse(snug_engine *e, const sn_graph *g, const char *text,
                          const sn_device *const *devices, int n_devices, sn_plan **out,
                          snug_error *err) {
    sn_zone *z = NULL;
    parser r = {.at = text, .line = 1, .err = err};
    SNUG_TRY(sn_zone_create(e, SN_MEM_PLAN, &z, err));
    failed(&r, sn_plan_array(z, 1, sizeof *r.p, &r.p, err));
    if (r.status == SNUG_OK) {
        r.p->zone = z;
        r.p->graph = g;
        read_plan(&r);
    }
    sn_free(e, SN_MEM_PLAN, r.steps, r.cap_steps * sizeof *r.steps);
    if (r.status == SNUG_OK)
        failed(&r, sn_plan_check(r.p, devices, n_devices, err));
    if (r.status == SNUG_OK)
        failed(&r, sn_plan_summarise(r.p, err));
    if (r.status != SNUG_OK) {
        sn_zone_destroy(z);
        return r.status;
    }
    *out = r.p;
    return SNUG_OK;
}
