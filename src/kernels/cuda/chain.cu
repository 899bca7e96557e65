/* chain.cu: elementwise calls over one index space as one launch (chain.h).
 *
 * The kernel interprets a program that lies among its arguments: every thread of a warp takes the
 * same step at a time. A thread has the same channels of all its elements, since the number of all
 * threads is a multiple of the channels: so what depends on the channel alone is loaded once.
 *
 * Each step is computed as its row's own kernel does it, in f32 or f64, so that a chain has the
 * bits of its calls one by one. */
#include "kernels/cuda/chain.h"
#include "kernels/cuda/functions.h"

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
/* One element of either width, held as a double. What was loaded is looked at later, so that loads
 * need not wait for each other. */
struct one {
    double v;
    enum { N = 1 };
    struct loaded {
        double wide;
        float narrow;
    };
    static __device__ __forceinline__ loaded load(const void *from, int64_t i, bool wide) {
        loaded l = {0, 0};
        if (wide)
            l.wide = ((const double *)from)[i];
        else
            l.narrow = ((const float *)from)[i];
        return l;
    }
    static __device__ __forceinline__ loaded load_first(const void *from, bool wide) {
        return load(from, 0, wide);
    }
    static __device__ __forceinline__ one of(const loaded &l, bool wide) {
        return one{wide ? l.wide : (double)l.narrow};
    }
    static __device__ __forceinline__ one rounded(double x, bool wide) {
        return one{wide ? x : (double)(float)x};
    }
    static __device__ __forceinline__ one rstd(one x, double epsilon, bool wide) {
        return rounded(1 / sqrt(x.v + epsilon), wide);
    }
    __device__ __forceinline__ void store(void *to, int64_t i, bool wide) const {
        if (wide)
            ((double *)to)[i] = v;
        else
            ((float *)to)[i] = (float)v;
    }
    template <class F> static __device__ __forceinline__ one map(one a, one b, one c, bool wide) {
        return one{wide ? F::at(a.v, b.v, c.v) : (double)F::at((float)a.v, (float)b.v, (float)c.v)};
    }
    template <class F>
    static __device__ __forceinline__ one map(one a, one b, one c, one d, one e, bool wide) {
        return one{wide
                       ? F::at(a.v, b.v, c.v, d.v, e.v)
                       : (double)F::at((float)a.v, (float)b.v, (float)c.v, (float)d.v, (float)e.v)};
    }
};

/* Four neighbours, f32; parameters are rounded. */
struct __align__(16) four {
    float v[4];
    enum { N = 4 };
    typedef four loaded;
    static __device__ __forceinline__ four load(const void *from, int64_t i, bool) {
        return ((const four *)from)[i];
    }
    static __device__ __forceinline__ four load_first(const void *from, bool wide) {
        const float x = wide ? (float)*(const double *)from : *(const float *)from;
        return four{{x, x, x, x}};
    }
    static __device__ __forceinline__ four of(const four &l, bool) {
        return l;
    }
    static __device__ __forceinline__ four rounded(const four &x, bool) {
        return x;
    }
    static __device__ __forceinline__ four rstd(const four &x, double epsilon, bool) {
        four r;
#pragma unroll
        for (int k = 0; k < 4; k++)
            r.v[k] = (float)(1 / sqrt((double)x.v[k] + epsilon));
        return r;
    }
    __device__ __forceinline__ void store(void *to, int64_t i, bool) const {
        ((four *)to)[i] = *this;
    }
    template <class F>
    static __device__ __forceinline__ four map(const four &a, const four &b, const four &c, bool) {
        four r;
#pragma unroll
        for (int k = 0; k < 4; k++)
            r.v[k] = F::at(a.v[k], b.v[k], c.v[k]);
        return r;
    }
    template <class F>
    static __device__ __forceinline__ four map(const four &a, const four &b, const four &c,
                                               const four &d, const four &e, bool) {
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
    const bool wide = s.wide != 0;
    if constexpr (F::OPERANDS == 5)
        return V::template map<F>(FROM(0), FROM(1), FROM(2), FROM(3), FROM(4), wide);
    else
        return V::template map<F>(FROM(0), FROM(1), FROM(2), wide);
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
                got[j] = V::load_first(in.data, in.wide != 0);
            else if (k + j < p.n_fixed)
                got[j] = V::load(in.data, channel, in.wide != 0);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const sn_chain_input &in = p.fixed[k + j];
            if (k + j >= p.n_fixed)
                continue;
            const V v = V::of(got[j], in.wide != 0);
            mine[in.slot * THREADS] =
                in.kind == SN_CHAIN_RSTD ? V::rstd(v, in.epsilon->real, in.wide != 0) : v;
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
                got[j] = V::load(p.dense[k + j].data, i, p.dense[k + j].wide != 0);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (k + j < p.n_dense)
                mine[p.dense[k + j].slot * THREADS] = V::of(got[j], p.dense[k + j].wide != 0);
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
            const V v = step_value<V>(p.steps[k], mine);
            mine[p.steps[k].slot * THREADS] = v;
            if (p.steps[k].out)
                v.store(p.steps[k].out, i, p.steps[k].wide != 0);
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
    else
        launch<four>(chain, &p);
    return SNUG_OK;
}

/* --- which calls -------------------------------------------------------------------------------*/
static bool is_real(snug_dtype dtype) {
    return dtype == SNUG_F32 || dtype == SNUG_F64;
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
    return v->type.dtype == SNUG_F32 && sn_aligned(v->data) && sn_cuda_elements(v) % 4 == 0;
}

bool sn_chain_takes(const sn_call *call) {
    const snug_type *out = &call->out[0].type;
    if (code_of(call->op) == N_CODES || call->accumulate || call->n_out != 1 ||
        call->n_in + 1 > SN_HELD_VIEWS || !is_real(out->dtype))
        return false;
    const int64_t n = sn_cuda_count(out, 0, out->rank);
    const bool large = n > SN_CHAIN_SMALL;
    bool ok = n > 0 && (!large || is_packed(&call->out[0]));
    if (large && code_of(call->op) == CODE_normalise)
        ok = ok && last_dim(out) % 4 == 0; /* variances are loaded in packs */
    for (int k = 0; k < call->n_in && ok; k++) {
        sn_chain_kind kind;
        ok = is_real(call->in[k].type.dtype) && kind_of(&call->in[k].type, out, &kind);
        ok = ok && (!large || (kind == SN_CHAIN_SINGLE && call->in[k].type.dtype == SNUG_F32) ||
                    is_packed(&call->in[k]));
    }
    return ok;
}

/* --- building ----------------------------------------------------------------------------------*/
static size_t element_bytes(bool wide) {
    return wide ? sizeof(double) : sizeof(float);
}

static size_t input_bytes(const sn_chain *chain, const sn_chain_input *in) {
    const int64_t n = in->kind == SN_CHAIN_DENSE    ? chain->program.n
                      : in->kind == SN_CHAIN_SINGLE ? 1
                      : in->kind == SN_CHAIN_PARAM  ? 0
                                                    : chain->channels;
    return (size_t)n * element_bytes(in->wide != 0);
}

static bool add_input(sn_chain *chain, sn_chain_input in, uint8_t *slot) {
    sn_chain_program *p = &chain->program;
    sn_chain_input *list = in.kind == SN_CHAIN_DENSE ? p->dense : p->fixed;
    int *n = in.kind == SN_CHAIN_DENSE ? &p->n_dense : &p->n_fixed;
    for (int k = 0; k < *n; k++)
        if (list[k].data == in.data && list[k].kind == in.kind && list[k].wide == in.wide &&
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
        if (in.kind == SN_CHAIN_DENSE && s->out == v->data && s->wide == in.wide) {
            *slot = s->slot;
            return true;
        }
        if (sn_bytes_meet(s->out, (size_t)p->n * element_bytes(s->wide), v->data, v->bytes))
            return false;
    }
    return add_input(chain, in, slot);
}

static bool add_operands(sn_chain *chain, const sn_call *call, sn_chain_step *s) {
    const bool normalises = s->code == CODE_normalise;
    int n = 0;
    for (int k = 0; k < call->n_in; k++) {
        const snug_view *v = &call->in[k];
        sn_chain_input in = {v->data, NULL, 0, v->type.dtype == SNUG_F64, 0};
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
        const sn_chain_input in = {call->param + k, NULL, SN_CHAIN_PARAM, 1, 0};
        if (n == SN_CHAIN_OPERANDS || !add_input(chain, in, &s->from[n++]))
            return false;
    }
    return true;
}

/* An element's bytes may be overwritten by that element alone. What is dead when the call of this
 * number runs is not stored at all. */
static bool may_write(const sn_chain *chain, const void *out, bool wide, uint64_t number) {
    const sn_chain_program *p = &chain->program;
    const size_t bytes = (size_t)p->n * element_bytes(wide);
    bool ok = true;
    for (int k = 0; k < p->n_fixed; k++)
        ok = ok && !sn_bytes_meet(out, bytes, p->fixed[k].data, input_bytes(chain, &p->fixed[k]));
    for (int k = 0; k < p->n_dense; k++)
        ok = ok && ((p->dense[k].data == out && (p->dense[k].wide != 0) == wide) ||
                    !sn_bytes_meet(out, bytes, p->dense[k].data, input_bytes(chain, &p->dense[k])));
    for (int k = 0; k < p->n_steps; k++) {
        const bool same = p->steps[k].out == out && (p->steps[k].wide != 0) == wide;
        const bool dead = chain->reach[k] > 0 && chain->number[k] + chain->reach[k] <= number;
        const size_t its = (size_t)p->n * element_bytes(p->steps[k].wide != 0);
        ok = ok && (same || dead || !sn_bytes_meet(out, bytes, p->steps[k].out, its));
    }
    return ok;
}

static bool append_step(sn_chain *chain, const sn_call *call, uint64_t number) {
    sn_chain_program *p = &chain->program;
    const bool wide = call->out[0].type.dtype == SNUG_F64;
    sn_chain_step s = {};
    const int most = p->n > SN_CHAIN_SMALL ? SN_CHAIN_SLOTS / 2 : SN_CHAIN_SLOTS;
    if (p->n_steps == SN_CHAIN_STEPS || chain->n_slots + SN_CHAIN_OPERANDS + 1 > most)
        return false;
    s.code = (uint8_t)code_of(call->op);
    s.wide = wide;
    if (!add_operands(chain, call, &s) || !may_write(chain, call->out[0].data, wide, number))
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
                              (size_t)p->n * element_bytes(p->steps[k].wide != 0)))
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
