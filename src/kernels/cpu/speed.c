/* speed.c: the speed column of the operator table: how fast the own kernels are, for the cost
 * model. Which rate of the machine counts an operator's elements, and which part of that rate its
 * kernel reaches, measured with bench/kernels.c and bench/cost.c on operands in the cache
 * (AVX-512); other instruction sets have other rates and nearly the same proportions. LOOP(1) is
 * a plain vector loop. Convolutions, matmul and its fused updates say more in their families.
 *
 * What a kernel does badly is a shape: few channels, which do not fill a vector, or sums along the
 * last axis. So a row has two efficiencies and says when the second one holds. */
#include "kernels/cpu/cpu.h"

/* When the second efficiency holds. */
typedef enum {
    NEVER,
    BELOW_16, /* the last axis of input 0 is shorter */
    BELOW_32,
    BELOW_64,
    BELOW_256,
    ALONG_ROWS, /* the operator works along the last axis, and there is more than one row */
    TURNS_ROWS, /* a transpose moves the last axis */
} condition;

typedef struct {
    sn_speed speed;
    double efficiency;
    condition when;
    double then;
    bool reads_part; /* of its inputs, as much as it writes */
} row;

#define LOOP(...)                                                                                  \
    { SN_SPEED_LOOP, __VA_ARGS__ }
#define PRODUCT(...)                                                                               \
    { SN_SPEED_PRODUCT, __VA_ARGS__ }
#define MATH(...)                                                                                  \
    { SN_SPEED_MATH, __VA_ARGS__ }
#define SCALAR(...)                                                                                \
    { SN_SPEED_SCALAR, __VA_ARGS__ }

#define PART true

static const row rows[SN_N_OPS] = {
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, ...)                                                                 \
    [SN_OP_##name] = speed,
#include "op/ops.def"
#undef SNUG_OP
};

/* --- shapes that suit a kernel badly --------------------------------------------------------- */
static bool works_along_rows(const sn_opdesc *d) {
    const int last = d->in[0].rank - 1;
    const bool scans = sn_ops[d->op].attrs == sn_ops[SN_OP_cumsum].attrs;
    const bool finds = sn_ops[d->op].attrs == sn_ops[SN_OP_argmax].attrs;
    if (scans || finds) {
        const int64_t axis = scans ? d->attrs.scan.axis : d->attrs.argmax.axis;
        return axis == last || axis == -1;
    }
    const uint32_t set = sn_axes_set(&d->attrs.axes.axes, d->in[0].rank);
    return (set >> last & 1) != 0 && set != (1u << (last + 1)) - 1;
}

static bool holds(condition when, const sn_opdesc *d) {
    static const int64_t limits[] = {
        [BELOW_16] = 16, [BELOW_32] = 32, [BELOW_64] = 64, [BELOW_256] = 256, [TURNS_ROWS] = 0};
    if (when == NEVER || d->n_in == 0 || d->in[0].rank == 0)
        return false;
    const int last = d->in[0].rank - 1;
    if (when == ALONG_ROWS)
        return works_along_rows(d);
    if (when == TURNS_ROWS)
        return d->attrs.perm.perm.v[last] != last;
    return d->in[0].dims[last] < limits[when];
}

/* f64 and integers have no packed products and no vector maths. */
static void as_plain(sn_variant *v) {
    static const sn_speed plain[SN_N_SPEEDS] = {
        [SN_SPEED_LOOP] = SN_SPEED_LOOP,           [SN_SPEED_PRODUCT] = SN_SPEED_REFERENCE,
        [SN_SPEED_MATH] = SN_SPEED_SCALAR,         [SN_SPEED_SCALAR] = SN_SPEED_SCALAR,
        [SN_SPEED_REFERENCE] = SN_SPEED_REFERENCE,
    };
    v->efficiency *= v->speed == SN_SPEED_LOOP ? 0.3 : 1;
    v->speed = plain[v->speed];
}

/* Halves run in the kernels of f32; those of products say more in their families. */
static void as_halves(sn_variant *v) {
    v->efficiency *= v->speed == SN_SPEED_LOOP ? 0.8 : 1;
    if (v->speed == SN_SPEED_PRODUCT)
        v->speed = SN_SPEED_REFERENCE;
}

static double bytes_of(const snug_type *t) {
    return (double)sn_type_count(t) * (double)snug_dtype_bytes(t->dtype);
}

void sn_cpu_speed(const sn_opdesc *d, sn_variant *v) {
    const row *r = &rows[d->op];
    v->bytes = 0;
    for (int i = 0; i < d->n_in && !r->reads_part; i++)
        v->bytes += bytes_of(&d->in[i]);
    for (int i = 0; i < d->n_out; i++)
        v->bytes += bytes_of(&d->out[i]) * (r->reads_part ? 2 : 1);
    const snug_dtype dtype = d->n_in > 0 ? d->in[0].dtype : d->out[0].dtype;
    v->speed = r->speed;
    v->efficiency = holds(r->when, d) ? r->then : r->efficiency;
    if (dtype == SNUG_F16 || dtype == SNUG_BF16)
        as_halves(v);
    else if (dtype != SNUG_F32)
        as_plain(v);
}
