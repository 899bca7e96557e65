/* plan_check_bytes.c: the checker's maps of the memories: which bytes of which value lie where, in
 * a run of iterations of a block at once.
 *
 * Iterations 0 and 1 and the last one of a block are replayed exactly; those between in one go, by
 * induction: from the maps before and behind iteration 1 the maps before every later one are
 * guessed (each border, shift and number of rows goes on by what it went), the steps are replayed
 * on that guess in the first and the last iteration between at once, and the maps they leave must
 * be the guess for the iteration after. All that a step compares is even in the iteration: offset +
 * i * stride, first + i * rows, borders, shifts. What is less, equal or greater at both ends is so
 * in every iteration between, where the replay takes the same way therefore; what changes sides
 * refuses the plan, also where it meets nobody. (Multiples do not follow from the ends: alignment,
 * and the rows of a cut, follow from iterations 0 and 1.)
 *
 * Borders of what nobody reads any more would be crossed where a value is written slice by slice
 * over them: such bytes are forgotten before. To forget is safe: nothing can be read from there.
 *
 * What is refused so is right nevertheless where slices cross bytes that nobody reads, or leave
 * gaps between them (no plan of the planner does). A plan with blocks of few iterations is given a
 * second chance therefore: these are replayed one by one. */
#include "base/size.h"
#include "plan/plan_check.h"

enum { MOST_SINGLE = 16 }; /* iterations of a block that are replayed one by one */

snug_status sn_check_inside(sn_checker *c, const sn_check_area *a) {
    c->value = a->root;
    for (int e = 0; e < 2; e++) {
        REQUIRE(a->start.at[e] <= c->size[a->memory] &&
                    a->bytes <= c->size[a->memory] - a->start.at[e],
                "lies outside its memory");
        REQUIRE((size_t)a->start.at[e] % a->align == 0, "is not aligned");
        if (a->start.at[e] + a->bytes > c->used[a->memory])
            c->used[a->memory] = a->start.at[e] + a->bytes;
    }
    return SNUG_OK;
}

/* Whether the step may touch it: who wrote it, and for writing who read it, is done. */
static bool is_free(const sn_checker *c, const sn_check_record *r, bool writes) {
    const uint32_t *know = c->know[c->lane];
    bool free = know[r->lane] >= r->time;
    for (uint32_t lane = 0; writes && lane < SN_CHECK_LANES; lane++)
        free = free && know[lane] >= r->read[lane];
    return free;
}

snug_status sn_check_touch(sn_checker *c, const sn_check_area *a, bool writes, sn_ends done) {
    sn_spans *map = &c->map[a->memory];
    sn_check_record wanted = {.done = done, .lane = c->lane, .time = c->now[c->lane]};
    sn_ends end;
    size_t first = 0, stop = 0;
    for (int e = 0; e < 2; e++) {
        end.at[e] = a->start.at[e] + a->bytes;
        wanted.root.at[e] = done.at[e] > 0 ? a->root : 0;
        wanted.shift.at[e] = done.at[e] > 0 ? a->origin.at[e] - a->start.at[e] : 0;
    }
    c->value = a->root;
    if (a->bytes > 0)
        SNUG_TRY(sn_spans_cut(map, a->start, end, &first, &stop, c->err));
    REQUIRE(!map->crossed, "runs into other bytes on its way through the slices");
    for (size_t i = first; i < stop; i++) {
        sn_check_record *r = sn_spans_record(map, i);
        REQUIRE(is_free(c, r, writes), "does not wait for the writer or a reader of its bytes");
        REQUIRE(writes ||
                    (sn_ends_equal(r->root, wanted.root) && sn_ends_equal(r->done, wanted.done) &&
                     sn_ends_equal(r->shift, wanted.shift)),
                "reads bytes that hold something else");
        r->read[c->lane] = c->now[c->lane];
    }
    if (writes && a->bytes > 0) {
        sn_spans_merge(map, first, stop);
        *(sn_check_record *)sn_spans_record(map, first) = wanted;
    }
    return SNUG_OK;
}

/* --- places ----------------------------------------------------------------------------------- */
/* first + i * by at both ends of the run, where that is not too large. */
static bool go_on(const sn_checker *c, int64_t first, int64_t by, sn_ends *out) {
    for (int e = 0; e < 2; e++)
        if (!sn_i64_mul(c->run.at[e], by, &out->at[e]) ||
            !sn_i64_add(out->at[e], first, &out->at[e]) || out->at[e] > SN_CHECK_MOST_BYTES)
            return false;
    return true;
}

/* The rows of a slice in this run. Slices are pieces of a value: no axis before theirs. */
static snug_status cut_rows(const sn_checker *c, const sn_place *p, sn_check_area *a, sn_slice *s) {
    const snug_type *type = sn_graph_type(c->g, p->value);
    const int64_t height = c->block ? c->block->rows : 1;
    const bool is_last = c->block && c->run.at[1] == c->block->repeat - 1;
    sn_ends first = {{0, 0}};
    REQUIRE(p->axis >= 0 && p->axis < type->rank && p->first >= 0, "has a bad slice");
    REQUIRE(p->rows > 0 && p->rows % height == 0, "slices by other rows than its block");
    for (int k = 0; k < p->axis; k++)
        REQUIRE(type->dims[k] == 1, "slices along an inner axis, opaque or not");
    const int64_t extent = type->dims[p->axis];
    const int64_t rows = is_last ? p->rows / height * c->block->last : p->rows;
    REQUIRE(go_on(c, p->first, p->rows, &first) && first.at[1] < extent &&
                rows <= extent - first.at[1] && a->bytes % extent == 0,
            "slices behind the end");
    a->bytes /= extent;
    for (int e = 0; e < 2; e++)
        a->origin.at[e] = a->bytes * first.at[e];
    a->bytes *= rows;
    a->align = type->dtype == SNUG_OPAQUE ? 1 : snug_dtype_bytes(type->dtype);
    *s = (sn_slice){p->axis, first.at[0], rows};
    return SNUG_OK;
}

snug_status sn_check_resolve(sn_checker *c, const sn_place *p, int k) {
    const uint32_t v = c->value = p->value.i;
    REQUIRE(v < sn_graph_n_values(c->g) && p->memory < c->p->n_memories, "is unknown");
    const bool state = p->memory == SN_MEM_STATE;
    const int32_t var = sn_graph_value_at(c->g, p->value)->var;
    const bool outside = var < 0 && c->outside[c->root[v]] != SN_CHECK_NOWHERE;
    REQUIRE(!state || var >= 0 || outside, "is no version of a variable");
    const sn_plan_memory *m = &c->p->memories[p->memory];
    const size_t align = state ? 1 : c->devices[m->device]->align;
    const bool file = state ? !outside && sn_plan_spills(c->p, (sn_var){(uint32_t)var})
                            : m->kind == SN_MEMORY_FILE;
    sn_check_area *a = &c->at[k];
    *a = (sn_check_area){.memory = p->memory, .root = c->root[v], .align = align, .file = file};
    a->bytes = (int64_t)c->p->value_bytes[v];
    c->slice[k].rows = -1;
    REQUIRE(p->rows >= 0 || p->stride == 0, "moves a whole value");
    if (p->rows >= 0)
        SNUG_TRY(cut_rows(c, p, a, &c->slice[k]));
    REQUIRE(p->offset <= SN_CHECK_MOST_BYTES && p->stride <= SN_CHECK_MOST_BYTES &&
                go_on(c, (int64_t)p->offset, (int64_t)p->stride, &a->start),
            "lies outside its memory");
    REQUIRE(!state || sn_ends_equal(a->start, a->origin), "is not where its rows are at home");
    /* Homes are mapped apart, and rows lie in them as in the value. */
    a->align = state ? 1 : file ? SN_FILE_ALIGN : a->align;
    for (int e = 0; state && e < 2; e++)
        a->start.at[e] += outside ? c->outside[c->root[v]] : c->home[var];
    return sn_check_inside(c, a);
}

/* --- iterations ------------------------------------------------------------------------------- */
/* Whether the area may be read from bytes that hold this. What an earlier block left of a value
 * that is made again lies elsewhere in it than what is read here. */
static bool may_be_read(const sn_check_record *r, const sn_check_area *a) {
    const int64_t first = a->origin.at[0] - a->start.at[0], last = a->origin.at[1] - a->start.at[1];
    return r->root.at[0] == a->root && (first != last || r->shift.at[0] == first);
}

/* Marks what the block reads of what lies on the way of the area, or forgets what is not marked. */
static snug_status sweep(sn_checker *c, const sn_check_area *a, bool writes) {
    sn_spans *map = &c->map[a->memory];
    const int64_t end = a->start.at[1] + a->bytes;
    const sn_ends from = {{a->start.at[0], a->start.at[0]}}, to = {{end, end}};
    size_t first, stop;
    if (a->bytes == 0 || (writes && a->start.at[0] == a->start.at[1]))
        return SNUG_OK;
    SNUG_TRY(sn_spans_cut(map, from, to, &first, &stop, c->err));
    for (size_t i = first; i < stop; i++) {
        sn_check_record *r = sn_spans_record(map, i);
        if (!writes && may_be_read(r, a))
            r->needed = 1;
        else if (writes && !r->needed)
            *r = (sn_check_record){.lane = 0};
    }
    return SNUG_OK;
}

/* Before iterations 1 to the last one, whose steps have been looked at in iteration 0. */
static snug_status forget(sn_checker *c) {
    const uint32_t end = c->step;
    for (int writes = 0; writes < 2; writes++) {
        c->run = (sn_ends){{writes, c->block->repeat - 1}};
        for (c->step = (uint32_t)(c->block - c->p->steps) + 1; c->step < end; c->step++) {
            const sn_step *s = &c->p->steps[c->step];
            for (int k = 0; k < (writes ? s->n_out : s->n_in); k++) {
                SNUG_TRY(sn_check_resolve(c, writes ? &s->out[k] : &s->in[k], 0));
                SNUG_TRY(sweep(c, &c->at[0], writes == 1));
            }
        }
    }
    return SNUG_OK;
}

/* Each memory's map is one that n more iterations can move as the last one did. */
static bool may_move(const sn_checker *c, int64_t n) {
    bool may = true;
    for (int m = 0; may && m <= SN_CHECK_TOKENS; m++)
        may = sn_spans_may_move(&c->map[m], n);
    return may;
}

/* The run that is over left what its guess says. */
static snug_status land(sn_checker *c) {
    for (int m = 0; m <= SN_CHECK_TOKENS; m++) {
        REQUIRE(sn_spans_is_kept(&c->map[m]), "leaves other bytes than the slices before it");
        sn_spans_land(&c->map[m]);
    }
    return SNUG_OK;
}

void sn_check_join(sn_checker *c) {
    for (int m = 0; m <= SN_CHECK_TOKENS; m++)
        sn_spans_join(&c->map[m]);
}

snug_status sn_check_next_run(sn_checker *c) {
    const int64_t next = c->run.at[1] + 1, n = c->block->repeat - 1 - next; /* but for the last */
    if (c->run.at[0] < c->run.at[1])
        SNUG_TRY(land(c));
    const bool few = c->block->repeat <= MOST_SINGLE, by_strides = !few || !c->singly;
    if (next == 1 && n > 2 && by_strides) {
        c->guessed = c->guessed || few;
        SNUG_TRY(forget(c));
        sn_check_join(c);
    }
    const bool moves = next > 1 && n > 1 && by_strides && may_move(c, n);
    c->run = (sn_ends){{next, moves ? next + n - 1 : next}};
    REQUIRE(moves || few || n < 2 || next < MOST_SINGLE,
            "does not go on evenly from slice to slice");
    for (int m = 0; n > 1 && m <= SN_CHECK_TOKENS; m++)
        if (moves)
            sn_spans_move(&c->map[m], n);
        else
            SNUG_TRY(sn_spans_keep(&c->map[m], c->err));
    return SNUG_OK;
}
