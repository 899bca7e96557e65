/* speed.c: how fast the own kernels are, for the cost model: which rate of the machine counts an
 * operator's elements, and which part of that rate its kernel reaches. Measured with
 * bench/kernels.c and bench/cost.c on operands in the cache (AVX-512); other instruction sets have
 * other rates and nearly the same proportions. An operator that is not listed is a plain vector
 * loop.
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
    double efficiency; /* 0: 1 */
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

static const row rows[SN_N_OPS] = {
    /* packed products; convolutions and matmul say more in their families */
    [SN_OP_matmul] = PRODUCT(1),
    [SN_OP_conv2d] = PRODUCT(1),
    [SN_OP_conv2d_dx] = PRODUCT(1),
    [SN_OP_conv2d_dw] = PRODUCT(1),
    [SN_OP_conv2d_pool] = PRODUCT(1),
    [SN_OP_conv2d_pool_dx] = PRODUCT(1),
    [SN_OP_conv2d_pool_dw] = PRODUCT(0.88),
    [SN_OP_attention] = PRODUCT(0.80),
    [SN_OP_attention_grad] = PRODUCT(0.95),
    [SN_OP_lstm] = PRODUCT(0.75),
    [SN_OP_lstm_grad] = PRODUCT(0.85),
    [SN_OP_gru] = PRODUCT(0.75),
    [SN_OP_gru_grad] = PRODUCT(0.85),
    [SN_OP_simple_rnn] = PRODUCT(0.75),
    [SN_OP_simple_rnn_grad] = PRODUCT(0.85),
    /* loops that do more than load and store */
    [SN_OP_sqrt] = LOOP(0.2),
    [SN_OP_rsqrt] = LOOP(0.11),
    [SN_OP_reciprocal] = LOOP(0.43),
    [SN_OP_hard_sigmoid] = LOOP(0.34),
    [SN_OP_hard_silu] = LOOP(0.25),
    [SN_OP_hard_silu_grad] = LOOP(0.17),
    [SN_OP_moments] = LOOP(0.2, BELOW_32, 0.028),
    [SN_OP_normalise] = LOOP(0.3, BELOW_16, 0.1),
    [SN_OP_normalise_sums] = LOOP(0.08, BELOW_32, 0.02),
    [SN_OP_channel_affine] = LOOP(1, BELOW_16, 0.1),
    [SN_OP_layernorm] = LOOP(0.07, BELOW_64, 0.03),
    [SN_OP_layernorm_dx] = LOOP(0.076, BELOW_64, 0.035),
    [SN_OP_layernorm_sums] = LOOP(0.067, BELOW_32, 0.022),
    [SN_OP_maxpool] = LOOP(0.083, BELOW_16, 0.025),
    [SN_OP_maxpool_grad] = LOOP(0.14, BELOW_32, 0.0094),
    [SN_OP_avgpool] = LOOP(0.65, BELOW_16, 0.05),
    [SN_OP_avgpool_grad] = LOOP(0.16, BELOW_16, 0.043),
    [SN_OP_sum] = LOOP(0.2, ALONG_ROWS, 0.1),
    [SN_OP_max] = LOOP(0.25, ALONG_ROWS, 0.03),
    [SN_OP_min] = LOOP(0.25, ALONG_ROWS, 0.03),
    [SN_OP_prod] = LOOP(0.25, ALONG_ROWS, 0.02),
    [SN_OP_broadcast_to] = LOOP(0.22),
    [SN_OP_transpose] = LOOP(0.4, TURNS_ROWS, 0.065),
    [SN_OP_concat] = LOOP(0.2, BELOW_64, 0.05),
    [SN_OP_slice] = LOOP(0.12, BELOW_64, 0.06, true),
    [SN_OP_slice_grad] = LOOP(0.3, BELOW_64, 0.1),
    [SN_OP_pad] = LOOP(0.25, BELOW_64, 0.1),
    [SN_OP_gather] = LOOP(0.5, NEVER, 0, true),
    [SN_OP_scatter_add] = LOOP(0.5),
    [SN_OP_one_hot] = LOOP(0.5),
    [SN_OP_band] = LOOP(0.15),
    [SN_OP_resize] = LOOP(0.1),
    [SN_OP_resize_grad] = LOOP(0.13),
    [SN_OP_matmul_adam] = LOOP(1), /* its family says more */
    [SN_OP_matmul_adam_dx] = LOOP(1),
    [SN_OP_adam] = LOOP(0.17),
    [SN_OP_amsgrad] = LOOP(0.2),
    [SN_OP_adamax] = LOOP(0.2),
    [SN_OP_nadam] = LOOP(0.2),
    [SN_OP_adagrad] = LOOP(0.17),
    [SN_OP_adadelta] = LOOP(0.09),
    [SN_OP_cumsum] = LOOP(0.2, ALONG_ROWS, 0.0075),
    [SN_OP_cumprod] = LOOP(0.2, ALONG_ROWS, 0.0075),
    /* loops over vector maths */
    [SN_OP_exp] = MATH(1.55),
    [SN_OP_log] = MATH(1.14),
    [SN_OP_tanh] = MATH(0.85),
    [SN_OP_sigmoid] = MATH(1.09),
    [SN_OP_softplus] = MATH(0.52),
    [SN_OP_erf] = MATH(0.52),
    [SN_OP_elu] = MATH(2.1),
    [SN_OP_silu] = MATH(1.05),
    [SN_OP_gelu] = MATH(0.63),
    [SN_OP_gelu_tanh] = MATH(0.63),
    [SN_OP_mish] = MATH(1),
    [SN_OP_sin] = MATH(0.36),
    [SN_OP_cos] = MATH(0.36),
    [SN_OP_log1p] = MATH(0.88),
    [SN_OP_expm1] = MATH(1.1),
    [SN_OP_silu_grad] = MATH(0.93),
    [SN_OP_gelu_grad] = MATH(0.62),
    [SN_OP_gelu_tanh_grad] = MATH(0.54),
    [SN_OP_mish_grad] = MATH(0.66),
    [SN_OP_sigmoid_xent] = MATH(0.52),
    [SN_OP_dropout] = MATH(0.62),
    [SN_OP_random] = MATH(0.5),
    [SN_OP_softmax] = MATH(0.85, BELOW_256, 0.42),
    [SN_OP_softmax_grad] = MATH(0.85, BELOW_256, 0.48),
    [SN_OP_log_softmax] = MATH(0.8, BELOW_256, 0.4),
    [SN_OP_softmax_xent] = MATH(0.7, BELOW_256, 0.36),
    [SN_OP_softmax_xent_grad] = MATH(0.6, BELOW_256, 0.31),
    [SN_OP_sparse_xent] = MATH(0.97, BELOW_256, 0.55),
    [SN_OP_sparse_xent_grad] = MATH(0.8, BELOW_256, 0.37),
    /* one element at a time */
    [SN_OP_power] = SCALAR(1.35),
    [SN_OP_pow] = SCALAR(1.5),
    [SN_OP_mod] = SCALAR(0.52),
    [SN_OP_atan2] = SCALAR(0.41),
    [SN_OP_tan] = SCALAR(0.96),
    [SN_OP_asin] = SCALAR(1.2),
    [SN_OP_acos] = SCALAR(1.2),
    [SN_OP_atan] = SCALAR(0.93),
    [SN_OP_sinh] = SCALAR(0.67),
    [SN_OP_cosh] = SCALAR(1.2),
    [SN_OP_asinh] = SCALAR(0.48),
    [SN_OP_acosh] = SCALAR(2),
    [SN_OP_atanh] = SCALAR(0.49),
    [SN_OP_erfc] = SCALAR(1.56),
    [SN_OP_erfinv] = SCALAR(0.13),
    [SN_OP_lgamma] = SCALAR(0.38),
    [SN_OP_digamma] = SCALAR(0.37),
    [SN_OP_trigamma] = SCALAR(0.37),
    [SN_OP_rmsprop] = SCALAR(4.4),
    [SN_OP_ftrl] = SCALAR(0.68),
    [SN_OP_argmax] = SCALAR(7, ALONG_ROWS, 5.3),
    [SN_OP_argmin] = SCALAR(7, ALONG_ROWS, 5.3),
    [SN_OP_sort] = SCALAR(0.15),
    [SN_OP_eigh] = SCALAR(0.01),
    [SN_OP_maxpool_pick] = SCALAR(3.4),
    [SN_OP_gather_nd] = SCALAR(3, NEVER, 0, true),
    [SN_OP_scatter_nd] = SCALAR(3),
    [SN_OP_warp] = SCALAR(1),
    [SN_OP_warp_grad] = SCALAR(1),
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
    v->efficiency = holds(r->when, d) ? r->then : r->efficiency > 0 ? r->efficiency : 1;
    if (dtype != SNUG_F32)
        as_plain(v);
}
