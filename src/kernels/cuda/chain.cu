/* chain.cu: elementwise calls over one index space as one launch (chain.h).
 *
 * The kernel interprets a program that lies among its arguments: every thread of a warp takes the
 * same step at a time. A thread has the same channels of all its elements, since the number of all
 * threads is a multiple of the channels: so what depends on the channel alone is loaded once.
 *
 * Each step is computed as its row's own kernel does it, in f32 or f64, and rounded to its result's
 * type, so that a chain has the bits of its calls one by one. */
#include "kernels/cuda/chain.h"
#include "kernels/cuda/functions.h"
#include "kernels/cuda/half_types.h"

#include <string.h>

enum { THREADS = 128 };

/* --- steps ------------------------------------------------------------------------------------ */
/* The function of a row is <name>_step, of three operands (parameters are operands, too) or five.
 * Rows that say `step` in the table's column `chain` have one, and no others: the rows make the
 * codes, the functions below are made by the codes' names. */
/* clang-format off */
#define UNARY_STEP(name, expression, ...)                                                          \
    struct name##_step { enum { CODE = CODE_##name, OPERANDS = 3 }; SN_OF_X(expression) };
#define PAIR_STEP(name, expression)                                                                \
    struct name##_step { enum { CODE = CODE_##name, OPERANDS = 3 }; SN_OF_PAIR(expression) };
#define BINARY_STEP(name, expression, ...)                                                         \
    struct name##_step {                                                                           \
        enum { CODE = CODE_##name, OPERANDS = 3 };                                                 \
        template <class T> static __device__ __forceinline__ T at(T x, T y, T) {                   \
            return expression;                                                                     \
        }                                                                                          \
    };
#define CODE_step(name)  CODE_##name,
#define CODE_alone(name)
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    CODE_##chain(name)
typedef enum {
#include "op/ops.def"
    N_CODES
} chain_code;
#undef SNUG_OP
/* clang-format on */
SN_LIGHT_UNARY(UNARY_STEP)
SN_LIGHT_NUMBER(UNARY_STEP)
SN_LIGHT_PAIR(PAIR_STEP)
SN_LIGHT_BINARY(BINARY_STEP)
SN_LIGHT_RATIO(BINARY_STEP)
UNARY_STEP(cast, x) /* only the width changes */
struct normalise_step : sn_normalised {
    enum { CODE = CODE_normalise, OPERANDS = 5 };
};
struct channel_affine_step : sn_mixed {
    enum { CODE = CODE_channel_affine, OPERANDS = 5 };
};

/* N_CODES: no step. */
static chain_code code_of(sn_op op) {
#define OF_step(name)  CODE_##name
#define OF_alone(name) N_CODES
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    OF_##chain(name),
    static const chain_code codes[SN_N_OPS] = {
#include "op/ops.def"
    };
#undef SNUG_OP
    return codes[op];
}

/* --- what a thread takes at once -------------------------------------------------------------- */
static __device__ __forceinline__ float widened(uint16_t bits, int type) {
    return type == SN_CHAIN_F16 ? sn_float_of_half(bits) : sn_float_of_brain(bits);
}
static __device__ __forceinline__ uint16_t narrowed(float x, int type) {
    return type == SN_CHAIN_F16 ? sn_half_bits(x) : sn_brain_bits(x);
}
static __device__ __forceinline__ uint32_t narrowed(float low, float high, int type) {
    return type == SN_CHAIN_F16 ? sn_half_bits(low, high) : sn_brain_bits(low, high);
}

/* One element of any type, held as a double. What was loaded is looked at later, so that loads
 * need not wait for each other. */
struct one {
    double v;
    enum { N = 1 };
    struct loaded {
        double wide;
        float narrow;
        uint16_t half;
    };
    static __device__ __forceinline__ loaded load(const void *from, int64_t i, int type) {
        loaded l = {0, 0, 0};
        if (type == SN_CHAIN_F64)
            l.wide = ((const double *)from)[i];
        else if (type == SN_CHAIN_F32)
            l.narrow = ((const float *)from)[i];
        else
            l.half = ((const uint16_t *)from)[i];
        return l;
    }
    static __device__ __forceinline__ loaded load_first(const void *from, int type) {
        return load(from, 0, type);
    }
    static __device__ __forceinline__ one of(const loaded &l, int type) {
        return one{type == SN_CHAIN_F64   ? l.wide
                   : type == SN_CHAIN_F32 ? (double)l.narrow
                                          : (double)widened(l.half, type)};
    }
    static __device__ __forceinline__ one rstd(one x, double epsilon, int type) {
        const double r = 1 / sqrt(x.v + epsilon);
        return one{type == SN_CHAIN_F64 ? r : (double)(float)r};
    }
    /* As it is read again from memory. */
    static __device__ __forceinline__ one rounded(one x, int type) {
        return type == SN_CHAIN_F16 || type == SN_CHAIN_BF16
                   ? one{(double)widened(narrowed((float)x.v, type), type)}
                   : x;
    }
    __device__ __forceinline__ void store(void *to, int64_t i, int type) const {
        if (type == SN_CHAIN_F64)
            ((double *)to)[i] = v;
        else if (type == SN_CHAIN_F32)
            ((float *)to)[i] = (float)v;
        else
            ((uint16_t *)to)[i] = narrowed((float)v, type);
    }
    template <class F> static __device__ __forceinline__ one map(one a, one b, one c, int type) {
        return one{type == SN_CHAIN_F64 ? F::at(a.v, b.v, c.v)
                                        : (double)F::at((float)a.v, (float)b.v, (float)c.v)};
    }
    template <class F>
    static __device__ __forceinline__ one map(one a, one b, one c, one d, one e, int type) {
        return one{type == SN_CHAIN_F64
                       ? F::at(a.v, b.v, c.v, d.v, e.v)
                       : (double)F::at((float)a.v, (float)b.v, (float)c.v, (float)d.v, (float)e.v)};
    }
};

/* Four neighbours, computed in f32; parameters are rounded. Where `halves` there are some among
 * the operands. */
template <bool halves> struct four_of {
    typedef four_of four;
    __align__(16) float v[4];
    enum { N = 4 };
    struct __align__(16) loaded {
        uint32_t bits[4]; /* of a half: the first two */
    };
    struct __align__(8) two_words {
        uint32_t bits[2];
    };
    static __device__ __forceinline__ bool is_half(int type) {
        return halves && type != SN_CHAIN_F32;
    }
    static __device__ __forceinline__ loaded load(const void *from, int64_t i, int type) {
        loaded l = {};
        if (!is_half(type))
            return ((const loaded *)from)[i];
        const two_words w = ((const two_words *)from)[i];
        l.bits[0] = w.bits[0];
        l.bits[1] = w.bits[1];
        return l;
    }
    static __device__ __forceinline__ loaded load_first(const void *from, int type) {
        loaded l = {};
        if (is_half(type) && type != SN_CHAIN_F64) {
            const uint32_t half = *(const uint16_t *)from;
            l.bits[0] = l.bits[1] = half | half << 16;
            return l;
        }
        const float x = type == SN_CHAIN_F64 ? (float)*(const double *)from : *(const float *)from;
#pragma unroll
        for (int k = 0; k < 4; k++)
            l.bits[k] = sn_bits_of_float(x);
        return l;
    }
    static __device__ __forceinline__ four of(const loaded &l, int type) {
        four r;
#pragma unroll
        for (int k = 0; k < 4; k++)
            r.v[k] = is_half(type) && type != SN_CHAIN_F64
                         ? widened((uint16_t)(l.bits[k / 2] >> (16 * (k % 2))), type)
                         : sn_float_of_bits(l.bits[k]);
        return r;
    }
    static __device__ __forceinline__ four rstd(const four &x, double epsilon, int) {
        four r;
#pragma unroll
        for (int k = 0; k < 4; k++)
            r.v[k] = (float)(1 / sqrt((double)x.v[k] + epsilon));
        return r;
    }
    static __device__ __forceinline__ four rounded(const four &x, int type) {
        four r = x;
        if (is_half(type)) {
#pragma unroll
            for (int k = 0; k < 4; k += 2) {
                const uint32_t two = narrowed(x.v[k], x.v[k + 1], type);
                r.v[k] = widened((uint16_t)two, type);
                r.v[k + 1] = widened((uint16_t)(two >> 16), type);
            }
        }
        return r;
    }
    __device__ __forceinline__ void store(void *to, int64_t i, int type) const {
        if (!is_half(type)) {
            ((four *)to)[i] = *this;
            return;
        }
        two_words w;
#pragma unroll
        for (int k = 0; k < 2; k++)
            w.bits[k] = narrowed(v[2 * k], v[2 * k + 1], type);
        ((two_words *)to)[i] = w;
    }
    template <class F>
    static __device__ __forceinline__ four map(const four &a, const four &b, const four &c, int) {
        four r;
#pragma unroll
        for (int k = 0; k < 4; k++)
            r.v[k] = F::at(a.v[k], b.v[k], c.v[k]);
        return r;
    }
    template <class F>
    static __device__ __forceinline__ four map(const four &a, const four &b, const four &c,
                                               const four &d, const four &e, int) {
        four r;
#pragma unroll
        for (int k = 0; k < 4; k++)
            r.v[k] = F::at(a.v[k], b.v[k], c.v[k], d.v[k], e.v[k]);
        return r;
    }
};

/* --- the kernel ------------------------------------------------------------------------------- */
/* Places of this thread are THREADS apart. */
#define FROM(k) mine[s.from[k] * THREADS]
template <class F, class V>
static __device__ __forceinline__ V value_of(const sn_chain_step &s, const V *mine) {
    if constexpr (F::OPERANDS == 5)
        return V::template map<F>(FROM(0), FROM(1), FROM(2), FROM(3), FROM(4), s.type);
    else
        return V::template map<F>(FROM(0), FROM(1), FROM(2), s.type);
}

template <class V>
static __device__ __forceinline__ V step_value(const sn_chain_step &s, const V *mine) {
#define CASE_step(name)                                                                            \
    case name##_step::CODE:                                                                        \
        return value_of<name##_step>(s, mine);
#define CASE_alone(name)
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    CASE_##chain(name)
    switch (s.code) {
#include "op/ops.def"
    default: /* no other code is made */
        return FROM(0);
    }
#undef SNUG_OP
}

/* Loads of inputs go out together, four at a time. */
template <class V>
static __device__ __forceinline__ void load_fixed(const sn_chain_program &p, int64_t channel,
                                                  V *mine) {
#pragma unroll 1
    for (int k = 0; k < p.n_fixed; k += 4) {
        typename V::loaded got[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const sn_chain_input &in = p.fixed[k + j];
            const bool first = in.kind == SN_CHAIN_SINGLE || in.kind == SN_CHAIN_PARAM;
            if (k + j < p.n_fixed && first)
                got[j] = V::load_first(in.data, in.type);
            else if (k + j < p.n_fixed)
                got[j] = V::load(in.data, channel, in.type);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const sn_chain_input &in = p.fixed[k + j];
            if (k + j >= p.n_fixed)
                continue;
            const V v = V::of(got[j], in.type);
            mine[in.slot * THREADS] =
                in.kind == SN_CHAIN_RSTD ? V::rstd(v, in.epsilon->real, in.type) : v;
        }
    }
}

template <class V>
static __device__ __forceinline__ void load_dense(const sn_chain_program &p, int64_t i, V *mine) {
#pragma unroll 1
    for (int k = 0; k < p.n_dense; k += 4) {
        typename V::loaded got[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (k + j < p.n_dense)
                got[j] = V::load(p.dense[k + j].data, i, p.dense[k + j].type);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (k + j < p.n_dense)
                mine[p.dense[k + j].slot * THREADS] = V::of(got[j], p.dense[k + j].type);
    }
}

template <class V>
static __global__ void __launch_bounds__(THREADS, 8)
    chain_kernel(const __grid_constant__ sn_chain_program p) {
    SN_SHARED(V, slots);
    V *mine = slots + threadIdx.x;
    const int64_t packs = p.n / V::N, first = sn_thread();
    const int64_t channel = first - sn_div(first, p.period) * p.period.d;
    if (first < packs)
        load_fixed<V>(p, channel, mine);
#pragma unroll 1
    for (int64_t i = first; i < packs; i += sn_all_threads()) {
        load_dense<V>(p, i, mine);
#pragma unroll 1
        for (int k = 0; k < p.n_steps; k++) {
            const int type = p.steps[k].type;
            const V v = V::rounded(step_value<V>(p.steps[k], mine), type);
            mine[p.steps[k].slot * THREADS] = v;
            if (p.steps[k].out)
                v.store(p.steps[k].out, i, type);
        }
    }
}

static int64_t common(int64_t a, int64_t b) {
    return b == 0 ? a : common(b, a % b);
}

/* A multiple of `unit` blocks makes all threads a multiple of the channels. Those that keep much of
 * a channel take several elements each, as long as the card stays full. */
template <class V> static void launch(const sn_chain *chain, sn_chain_program *p) {
    enum { FULL = 2048, MOST_EACH = 8 };
    const int64_t packs = p->n / V::N, C = chain->channels / V::N;
    const int64_t share = packs / ((int64_t)FULL * THREADS);
    const int64_t most = share < MOST_EACH ? share : (int64_t)MOST_EACH;
    const int64_t each = C == 0 || most < 1 ? 1 : most;
    const int64_t unit = C == 0 ? 1 : C / common(C, THREADS);
    const int64_t blocks = sn_cuda_ceil(sn_cuda_ceil(packs, each * THREADS), unit) * unit;
    p->period = sn_divisor_of(C == 0 ? 1 : C);
    SN_LAUNCH_APART((chain_kernel<V>), (unsigned)blocks, THREADS,
                    (size_t)chain->n_slots * THREADS * sizeof(V), chain->base.stream, *p);
}

snug_status sn_chain_run(const sn_chain *chain, int n, snug_error *err) {
    (void)err;
    sn_chain_program p = chain->program;
    const uint64_t last = chain->number[n - 1];
    for (int k = 0; k < n; k++)
        if (chain->reach[k] > 0 && chain->number[k] + chain->reach[k] <= last)
            p.steps[k].out = NULL;
    if (p.n <= SN_CHAIN_SMALL)
        launch<one>(chain, &p);
    else if (chain->halves)
        launch<four_of<true>>(chain, &p);
    else
        launch<four_of<false>>(chain, &p);
    return SNUG_OK;
}

/* --- which calls -------------------------------------------------------------------------------*/
/* -1: of none that chains take. */
static int type_of(snug_dtype dtype) {
    return dtype == SNUG_F32    ? SN_CHAIN_F32
           : dtype == SNUG_F64  ? SN_CHAIN_F64
           : dtype == SNUG_F16  ? SN_CHAIN_F16
           : dtype == SNUG_BF16 ? SN_CHAIN_BF16
                                : -1;
}

static bool has_halves(const sn_call *call) {
    bool any = sn_dtype_is_half(call->out[0].type.dtype);
    for (int k = 0; k < call->n_in; k++)
        any = any || sn_dtype_is_half(call->in[k].type.dtype);
    return any;
}

/* Halves are computed in f32: what is rounded from f64 is rounded once elsewhere. */
static bool takes_dtype(snug_dtype dtype, bool halves) {
    return type_of(dtype) >= 0 && !(halves && dtype == SNUG_F64);
}

static int64_t last_dim(const snug_type *t) {
    return t->rank > 0 ? t->dims[t->rank - 1] : 1;
}

/* Of an operand beside the output; false: it is spread in another way. */
static bool kind_of(const snug_type *t, const snug_type *out, sn_chain_kind *kind) {
    const int64_t count = sn_cuda_count(t, 0, t->rank), C = last_dim(out);
    if (count == sn_cuda_count(out, 0, out->rank))
        *kind = SN_CHAIN_DENSE;
    else if (count == 1)
        *kind = SN_CHAIN_SINGLE;
    else if (count == C && last_dim(t) == C)
        *kind = SN_CHAIN_CHANNEL;
    else
        return false;
    return true;
}

/* As an operand of a large one must be. */
static bool is_packed(const snug_view *v) {
    return v->type.dtype != SNUG_F64 && sn_aligned(v->data) && sn_cuda_elements(v) % 4 == 0;
}

bool sn_chain_takes(const sn_call *call) {
    const snug_type *out = &call->out[0].type;
    if (code_of(call->op) == N_CODES || call->accumulate || call->n_out != 1 ||
        call->n_in + 1 > SN_HELD_VIEWS || !takes_dtype(out->dtype, has_halves(call)))
        return false;
    const int64_t n = sn_cuda_count(out, 0, out->rank);
    const bool large = n > SN_CHAIN_SMALL;
    bool ok = n > 0 && (!large || is_packed(&call->out[0]));
    if (large && code_of(call->op) == CODE_normalise)
        ok = ok && last_dim(out) % 4 == 0; /* variances are loaded in packs */
    for (int k = 0; k < call->n_in && ok; k++) {
        sn_chain_kind kind;
        ok = takes_dtype(call->in[k].type.dtype, has_halves(call)) &&
             kind_of(&call->in[k].type, out, &kind);
        ok = ok && (!large || (kind == SN_CHAIN_SINGLE && call->in[k].type.dtype != SNUG_F64) ||
                    is_packed(&call->in[k]));
    }
    return ok;
}

/* --- building ----------------------------------------------------------------------------------*/
static size_t element_bytes(int type) {
    return type == SN_CHAIN_F64 ? sizeof(double) : type == SN_CHAIN_F32 ? sizeof(float) : 2;
}

static size_t input_bytes(const sn_chain *chain, const sn_chain_input *in) {
    const int64_t n = in->kind == SN_CHAIN_DENSE    ? chain->program.n
                      : in->kind == SN_CHAIN_SINGLE ? 1
                      : in->kind == SN_CHAIN_PARAM  ? 0
                                                    : chain->channels;
    return (size_t)n * element_bytes(in->type);
}

static bool add_input(sn_chain *chain, sn_chain_input in, uint8_t *slot) {
    sn_chain_program *p = &chain->program;
    sn_chain_input *list = in.kind == SN_CHAIN_DENSE ? p->dense : p->fixed;
    int *n = in.kind == SN_CHAIN_DENSE ? &p->n_dense : &p->n_fixed;
    for (int k = 0; k < *n; k++)
        if (list[k].data == in.data && list[k].kind == in.kind && list[k].type == in.type &&
            list[k].epsilon == in.epsilon) {
            *slot = list[k].slot;
            return true;
        }
    if (in.kind == SN_CHAIN_DENSE && *n == SN_CHAIN_SLOTS / 2)
        return false;
    *slot = in.slot = (uint8_t)chain->n_slots++;
    list[(*n)++] = in;
    return true;
}

/* Of an operand: the newest step that wrote its bytes, or an input. */
static bool find_operand(sn_chain *chain, const snug_view *v, sn_chain_input in, uint8_t *slot) {
    const sn_chain_program *p = &chain->program;
    for (int k = p->n_steps - 1; k >= 0; k--) {
        const sn_chain_step *s = &p->steps[k];
        if (in.kind == SN_CHAIN_DENSE && s->out == v->data && s->type == in.type) {
            *slot = s->slot;
            return true;
        }
        if (sn_bytes_meet(s->out, (size_t)p->n * element_bytes(s->type), v->data, v->bytes))
            return false;
    }
    return add_input(chain, in, slot);
}

static bool add_operands(sn_chain *chain, const sn_call *call, sn_chain_step *s) {
    const bool normalises = s->code == CODE_normalise;
    int n = 0;
    for (int k = 0; k < call->n_in; k++) {
        const snug_view *v = &call->in[k];
        sn_chain_input in = {v->data, NULL, 0, (uint8_t)type_of(v->type.dtype), 0};
        sn_chain_kind kind;
        if (!kind_of(&v->type, &call->out[0].type, &kind))
            return false;
        in.kind = (uint8_t)kind;
        if (normalises && k == 2) {
            in.kind = SN_CHAIN_RSTD;
            in.epsilon = call->param;
        }
        if (in.kind == SN_CHAIN_CHANNEL || in.kind == SN_CHAIN_RSTD) {
            const int64_t C = last_dim(&call->out[0].type);
            if (chain->channels != 0 && chain->channels != C)
                return false;
            chain->channels = C;
        }
        if (!find_operand(chain, v, in, &s->from[n++]))
            return false;
    }
    for (int k = 0; k < sn_ops[call->op].attrs->n_params && !normalises; k++) {
        const sn_chain_input in = {call->param + k, NULL, SN_CHAIN_PARAM, SN_CHAIN_F64, 0};
        if (n == SN_CHAIN_OPERANDS || !add_input(chain, in, &s->from[n++]))
            return false;
    }
    return true;
}

/* An element's bytes may be overwritten by that element alone. What is dead when the call of this
 * number runs is not stored at all. */
static bool may_write(const sn_chain *chain, const void *out, int type, uint64_t number) {
    const sn_chain_program *p = &chain->program;
    const size_t bytes = (size_t)p->n * element_bytes(type);
    bool ok = true;
    for (int k = 0; k < p->n_fixed; k++)
        ok = ok && !sn_bytes_meet(out, bytes, p->fixed[k].data, input_bytes(chain, &p->fixed[k]));
    for (int k = 0; k < p->n_dense; k++)
        ok = ok && ((p->dense[k].data == out && p->dense[k].type == type) ||
                    !sn_bytes_meet(out, bytes, p->dense[k].data, input_bytes(chain, &p->dense[k])));
    for (int k = 0; k < p->n_steps; k++) {
        const bool same = p->steps[k].out == out && p->steps[k].type == type;
        const bool dead = chain->reach[k] > 0 && chain->number[k] + chain->reach[k] <= number;
        const size_t its = (size_t)p->n * element_bytes(p->steps[k].type);
        ok = ok && (same || dead || !sn_bytes_meet(out, bytes, p->steps[k].out, its));
    }
    return ok;
}

static bool append_step(sn_chain *chain, const sn_call *call, uint64_t number) {
    sn_chain_program *p = &chain->program;
    const int type = type_of(call->out[0].type.dtype);
    sn_chain_step s = {};
    const int most = p->n > SN_CHAIN_SMALL ? SN_CHAIN_SLOTS / 2 : SN_CHAIN_SLOTS;
    if (p->n_steps == SN_CHAIN_STEPS || chain->n_slots + SN_CHAIN_OPERANDS + 1 > most)
        return false;
    s.code = (uint8_t)code_of(call->op);
    s.type = (uint8_t)type;
    if (!add_operands(chain, call, &s) || !may_write(chain, call->out[0].data, type, number))
        return false;
    s.out = call->out[0].data;
    s.slot = (uint8_t)chain->n_slots++;
    p->steps[p->n_steps++] = s;
    return true;
}

bool sn_chain_add(sn_chain *chain, const sn_cuda_call *c, uint64_t number) {
    const sn_call *call = c->call;
    const int64_t n = sn_cuda_elements(&call->out[0]);
    sn_chain next = *chain;
    if (next.n == 0) {
        memset(&next, 0, sizeof next);
        next.base = *c;
        next.program.n = n;
        sn_hold(&next.first, call);
    }
    if (next.program.n != n || next.base.stream != c->stream || !append_step(&next, call, number))
        return false;
    next.number[next.n] = number;
    next.reach[next.n] = call->reach;
    next.halves = next.halves || has_halves(call);
    next.n++;
    *chain = next;
    return true;
}

bool sn_chain_meets(const sn_chain *chain, const sn_call *call) {
    const sn_chain_program *p = &chain->program;
    for (int j = 0; j < call->n_in + call->n_out && chain->n > 0; j++) {
        const bool writes = j >= call->n_in;
        const snug_view *v = writes ? &call->out[j - call->n_in] : &call->in[j];
        for (int k = 0; k < p->n_steps; k++)
            if (sn_bytes_meet(v->data, v->bytes, p->steps[k].out,
                              (size_t)p->n * element_bytes(p->steps[k].type)))
                return true;
        for (int k = 0; k < p->n_dense && writes; k++)
            if (sn_bytes_meet(v->data, v->bytes, p->dense[k].data,
                              input_bytes(chain, &p->dense[k])))
                return true;
        for (int k = 0; k < p->n_fixed && writes; k++)
            if (sn_bytes_meet(v->data, v->bytes, p->fixed[k].data,
                              input_bytes(chain, &p->fixed[k])))
                return true;
    }
    return false;
}
