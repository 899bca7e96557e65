/* update.cu: the state rows: output k is the next version of variable input k, in its home, so that
 * element i of an output depends on element i of the inputs alone: every element is read before it
 * is written. The numerics are Keras's; what depends on the step alone the host computes. What each
 * row does is said in kernels/cpu/update.c and update_more.c; here each is one function of the
 * elements x[] of its inputs, which become those of its outputs in place.
 *
 * Parameters are rounded to what the dtype is computed in, which is f32 for halves; beside states
 * of f32 the gradient may be of halves. Four go at once where addresses allow it. Updates of
 * several variables that wait for each other (later.h) are one launch over a table. */
#include "kernels/cuda/chain.h"
#include "kernels/cuda/half_types.h"

enum { MAX_OPERANDS = 6 };

/* What all elements of a call share. */
template <class T> struct update_params {
    T p[6];    /* parameters */
    T rest[3]; /* 1 - parameter k, rounded once */
    bool flag, given, moving;
};

typedef struct {
    const void *in[MAX_OPERANDS];
    void *out[4];
    const sn_scalar *param;
    int n_in, n_out, n_params;
    int gradient; /* which input it is */
    bool flag;    /* nesterov, centered */
    bool given;   /* one more input stands for the squares of the gradient */
    bool moving;  /* rmsprop: with a momentum */
} update_call;

static __device__ __forceinline__ float root_of(float x) {
    return sqrtf(x);
}
static __device__ __forceinline__ double root_of(double x) {
    return sqrt(x);
}
static __device__ __forceinline__ float power_of(float x, float p) {
    return powf(x, p);
}
static __device__ __forceinline__ double power_of(double x, double p) {
    return pow(x, p);
}

template <class T, int N> struct __align__(sizeof(T) * N) pack_of {
    T v[N];
};

/* Numbers of memory as they are computed. */
template <class M, class T, int N>
static __device__ __forceinline__ pack_of<T, N> load_pack(const void *from, int64_t i) {
    const pack_of<M, N> raw = ((const pack_of<M, N> *)from)[i];
    pack_of<T, N> x;
#pragma unroll
    for (int e = 0; e < N; e++)
        x.v[e] = (T)raw.v[e];
    return x;
}

/* Elements [i * N, (i + 1) * N). M: what states are stored as, G: the gradient, T: computed in. */
template <class Op, class M, class G, class T, int N>
static __device__ __forceinline__ void update_pack(const update_call &u, const update_params<T> &q,
                                                   int64_t i) {
    pack_of<T, N> x[Op::IN] = {};
#pragma unroll
    for (int k = 0; k < Op::IN; k++)
        if (k < u.n_in)
            x[k] =
                k == u.gradient ? load_pack<G, T, N>(u.in[k], i) : load_pack<M, T, N>(u.in[k], i);
#pragma unroll
    for (int e = 0; e < N; e++) {
        T v[Op::IN];
#pragma unroll
        for (int k = 0; k < Op::IN; k++)
            v[k] = k < u.n_in ? x[k].v[e] : (T)0;
        Op::next(v, q);
#pragma unroll
        for (int k = 0; k < Op::OUT; k++)
            x[k].v[e] = v[k];
    }
#pragma unroll
    for (int k = 0; k < Op::OUT; k++) {
        pack_of<M, N> to;
#pragma unroll
        for (int e = 0; e < N; e++)
            to.v[e] = (M)x[k].v[e];
        if (k < u.n_out)
            ((pack_of<M, N> *)u.out[k])[i] = to;
    }
}

/* Variables of one launch; blocks [first[k], first[k + 1]) are those of entry k. */
template <int MOST> struct update_table {
    int n;
    update_call entry[MOST];
    int64_t elements[MOST];
    unsigned first[MOST + 1];
    bool packed; /* all operands lie so that four elements go at once */
};

/* The entry whose blocks hold this one. */
template <int MOST> static __device__ __forceinline__ int entry_of(const update_table<MOST> &t) {
    int low = 0, high = t.n;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (blockIdx.x < t.first[middle])
            high = middle;
        else
            low = middle;
    }
    return low;
}

template <class Op, class M, class G, int N, int MOST>
static __global__ void __launch_bounds__(256, 2)
    update_kernel(const __grid_constant__ update_table<MOST> t) {
    typedef sn_computed<M> T;
    const int at = MOST == 1 ? 0 : entry_of(t);
    const update_call &u = t.entry[at];
    const int64_t n = t.elements[at], packs = t.packed ? n / N : 0;
    const int64_t block = blockIdx.x - t.first[at], blocks = t.first[at + 1] - t.first[at];
    const int64_t thread = block * 256 + threadIdx.x;
    update_params<T> q = {};
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const double v = k < u.n_params ? u.param[k].real : 0;
        q.p[k] = (T)v;
        if (k < 3)
            q.rest[k] = (T)(1 - v);
    }
    q.flag = u.flag;
    q.given = u.given;
    q.moving = u.moving;
#pragma unroll 1
    for (int64_t i = thread; i < packs; i += blocks * 256)
        update_pack<Op, M, G, T, N>(u, q, i);
#pragma unroll 1
    for (int64_t i = packs * N + thread; i < n; i += blocks * 256)
        update_pack<Op, M, G, T, 1>(u, q, i);
}

static bool is_aligned(const update_call *u) {
    bool ok = true;
    for (int k = 0; k < u->n_in; k++)
        ok = ok && sn_aligned(u->in[k]);
    for (int k = 0; k < u->n_out; k++)
        ok = ok && sn_aligned(u->out[k]);
    return ok;
}

template <class Op> static update_call entry_for(const sn_call *call) {
    update_call u = {{},          {},   call->param,        call->n_in,
                     call->n_out, 0,    Op::gradient(call), Op::flag(call),
                     false,       false};
    u.n_params = sn_ops[call->op].attrs->n_params;
    u.given = call->n_in > Op::gradient(call) + 1;
    u.moving = Op::moving(call);
    for (int k = 0; k < call->n_in; k++)
        u.in[k] = call->in[k].data;
    for (int k = 0; k < call->n_out; k++)
        u.out[k] = call->out[k].data;
    return u;
}

template <class Op, class M, class G, int N, int MOST>
static void launch(const sn_cuda_call *c, update_table<MOST> *t) {
    t->first[0] = 0;
    t->packed = true;
    for (int k = 0; k < t->n; k++)
        t->packed = t->packed && (N == 1 || is_aligned(&t->entry[k]));
    for (int k = 0; k < t->n; k++)
        t->first[k + 1] = t->first[k] + sn_blocks(sn_cuda_ceil(t->elements[k], N), 256);
    if (t->first[t->n] > 0)
        SN_LAUNCH_APART((update_kernel<Op, M, G, N, MOST>), t->first[t->n], 256, 0, c->stream, *t);
}

template <class Op, int MOST>
static snug_status run_table(const sn_cuda_call *c, snug_dtype dtype, snug_dtype gradient,
                             update_table<MOST> *t, snug_error *err) {
    if (dtype == SNUG_F32 && gradient == SNUG_F32)
        launch<Op, float, float, 4>(c, t);
    else if (dtype == SNUG_F32 && gradient == SNUG_F16)
        launch<Op, float, sn_half, 4>(c, t);
    else if (dtype == SNUG_F32 && gradient == SNUG_BF16)
        launch<Op, float, sn_brain, 4>(c, t);
    else if (dtype == SNUG_F64)
        launch<Op, double, double, 1>(c, t);
    else if (dtype == SNUG_F16)
        launch<Op, sn_half, sn_half, 4>(c, t);
    else if (dtype == SNUG_BF16)
        launch<Op, sn_brain, sn_brain, 4>(c, t);
    else
        return sn_cuda_no_kernel(dtype, err);
    return SNUG_OK;
}

/* A row without a gradient has none of another type. */
static snug_dtype gradient_dtype(const sn_call *call, int at) {
    return call->in[at < call->n_in ? at : 0].type.dtype;
}

template <class Op> static snug_status run_update(const sn_cuda_call *c, snug_error *err) {
    update_table<1> t = {
        1, {entry_for<Op>(c->call)}, {sn_cuda_elements(&c->call->out[0])}, {}, false};
    return run_table<Op>(c, sn_dtype_in(c, 0), gradient_dtype(c->call, Op::gradient(c->call)), &t,
                         err);
}

template <class Op>
static snug_status run_updates(const sn_cuda_call *c, const sn_held *held, int n, snug_error *err) {
    const sn_call first = sn_held_call(&held[0]);
    update_table<SN_MOST_UPDATES> t = {};
    t.n = n;
    for (int k = 0; k < n; k++) {
        const sn_call call = sn_held_call(&held[k]);
        t.entry[k] = entry_for<Op>(&call);
        t.elements[k] = sn_cuda_elements(&call.out[0]);
    }
    return run_table<Op>(c, held[0].views[0].type.dtype,
                         gradient_dtype(&first, Op::gradient(&first)), &t, err);
}

/* States are all of one type; beside states of f32 the gradient may be of halves. */
template <class Op>
static snug_status describe_update(const sn_gpu *g, const sn_opdesc *d, sn_variant *out,
                                   snug_error *err) {
    (void)g, (void)out;
    const sn_call shape = {d->op, &d->attrs, NULL, d->n_in, d->n_out, NULL, NULL};
    const int gradient = Op::gradient(&shape);
    const snug_dtype state = d->in[0].dtype;
    for (int i = 0; i < d->n_in + d->n_out; i++) {
        const snug_dtype t = sn_cuda_dtype(d, i);
        const bool narrow = i == gradient && i < d->n_in && state == SNUG_F32;
        if (t != state && !(narrow && sn_dtype_is_half(t)))
            return sn_fail(err, SNUG_E_UNSUPPORTED, "no GPU update of %s by %s",
                           snug_dtype_name(state), snug_dtype_name(t));
    }
    return SNUG_OK;
}

/* --- operators -------------------------------------------------------------------------------- */
/* IN, OUT: the most inputs and outputs; G: which input is the gradient. x holds the inputs and
 * becomes the outputs. */
template <int IN_, int OUT_, int G> struct update_op {
    enum { IN = IN_, OUT = OUT_ };
    static int gradient(const sn_call *) { return G; }
    static bool flag(const sn_call *) { return false; }
    static bool moving(const sn_call *) { return false; }
};
/* g * g, or what stands for it: input k + 1. */
#define SQUARED(k) (q.given ? x[(k) + 1] : x[k] * x[k])

struct moving_average_op : update_op<2, 1, 1> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        x[0] = x[0] * q.p[0] + x[1] * q.rest[0];
    }
};
struct sgd_op : update_op<2, 1, 1> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        x[0] = x[0] - q.p[0] * x[1];
    }
};
struct sgd_momentum_op : update_op<3, 2, 2> {
    static bool flag(const sn_call *c) { return c->attrs->sgd.nesterov != 0; }
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T step = q.p[0] * x[2], moved = q.p[1] * x[1] - step, ahead = q.p[1] * moved - step;
        x[0] = x[0] + (q.flag ? ahead : moved);
        x[1] = moved;
    }
};
struct adam_op : update_op<5, 3, 3> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T mean = x[1] + (x[3] - x[1]) * q.p[1];
        const T square = x[2] + (SQUARED(3) - x[2]) * q.p[2];
        x[0] = x[0] - q.p[0] * mean / (root_of(square) + q.p[3]);
        x[1] = mean;
        x[2] = square;
    }
};
struct amsgrad_op : update_op<6, 4, 4> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T mean = x[1] + (x[4] - x[1]) * q.p[1];
        const T square = x[2] + (SQUARED(4) - x[2]) * q.p[2];
        const T most = x[3] > square ? x[3] : square;
        x[0] = x[0] - q.p[0] * mean / (root_of(most) + q.p[3]);
        x[1] = mean;
        x[2] = square;
        x[3] = most;
    }
};
/* States: v, the average gradient where it is centered, the momentum where there is one; then g
 * and perhaps its squares. They are put in fixed places first. */
struct rmsprop_op : update_op<6, 4, 0> {
    static int gradient(const sn_call *c) { return c->n_out; }
    static bool flag(const sn_call *c) { return c->attrs->rmsprop.centered != 0; }
    static bool moving(const sn_call *c) {
        return c->n_out == 3 + (c->attrs->rmsprop.centered != 0);
    }
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const bool c = q.flag, m = q.moving;
        const T a = x[2], momentum = c ? x[3] : x[2];
        const T grad = c && m ? x[4] : c || m ? x[3] : x[2];
        const T behind = c && m ? x[5] : c || m ? x[4] : x[3];
        const T square = q.p[1] * x[1] + q.rest[1] * (q.given ? behind : grad * grad);
        const T mean = c ? q.p[1] * a + q.rest[1] * grad : (T)0;
        const T step = q.p[0] * grad / root_of(square - mean * mean + q.p[3]);
        const T moved = m ? q.p[2] * momentum + step : step;
        x[0] = x[0] - moved;
        x[1] = square;
        x[2] = c ? mean : moved;
        x[3] = moved;
    }
};
struct adagrad_op : update_op<4, 2, 2> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T sum = x[1] + SQUARED(2);
        x[0] = x[0] - q.p[0] * x[2] / root_of(sum + q.p[1]);
        x[1] = sum;
    }
};
struct adadelta_op : update_op<5, 3, 3> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T rho = q.p[1], rest = q.rest[1], epsilon = q.p[2];
        const T square = rho * x[1] + rest * SQUARED(3);
        const T step = root_of(x[2] + epsilon) * x[3] / root_of(square + epsilon);
        const T share = (x[2] + epsilon) / (square + epsilon);
        const T moved = q.given ? x[4] * share : step * step;
        x[0] = x[0] - q.p[0] * step;
        x[1] = square;
        x[2] = rho * x[2] + rest * moved;
    }
};
struct adamax_op : update_op<5, 3, 3> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T faded = q.p[2] * x[2], size = q.given ? x[4] : x[3] < 0 ? -x[3] : x[3];
        const T mean = x[1] + (x[3] - x[1]) * q.p[1], norm = faded > size ? faded : size;
        x[0] = x[0] - q.p[0] * mean / (norm + q.p[3]);
        x[1] = mean;
        x[2] = norm;
    }
};
struct nadam_op : update_op<5, 3, 3> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T mean = x[1] + (x[3] - x[1]) * q.p[0];
        const T square = x[2] + (SQUARED(3) - x[2]) * q.p[1];
        const T ahead = q.p[3] * mean + q.p[4] * x[3];
        x[0] = x[0] - ahead / (root_of(q.p[5] * square) + q.p[2]);
        x[1] = mean;
        x[2] = square;
    }
};
struct lion_op : update_op<3, 2, 2> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T way = x[1] * q.p[1] + x[2] * q.rest[1];
        x[0] = x[0] - q.p[0] * (T)((way > 0) - (way < 0));
        x[1] = x[1] * q.p[2] + x[2] * q.rest[2];
    }
};
struct ftrl_op : update_op<5, 3, 3> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        const T p = -q.p[1], l1 = q.p[2], l2 = 2 * q.p[3], shrinkage = 2 * q.p[4];
        const T sum = x[1] + SQUARED(3);
        const T root = power_of(sum, p), before = power_of(x[1], p);
        const T linear = x[2] + (x[3] + shrinkage * x[0] - (root - before) / q.p[0] * x[0]);
        const T inside = linear < -l1 ? -l1 : linear > l1 ? l1 : linear;
        x[0] = (inside - linear) / (root / q.p[0] + l2);
        x[1] = sum;
        x[2] = linear;
    }
};
struct weight_decay_op : update_op<1, 1, 1> {
    template <class T> static __device__ void next(T *x, const update_params<T> &q) {
        x[0] = x[0] - x[0] * q.p[1] * q.p[0];
    }
};

#define UPDATE_MAP(X)                                                                              \
    X(moving_average)                                                                              \
    X(sgd)                                                                                         \
    X(sgd_momentum)                                                                                \
    X(adam)                                                                                        \
    X(amsgrad)                                                                                     \
    X(rmsprop)                                                                                     \
    X(adagrad)                                                                                     \
    X(adadelta)                                                                                    \
    X(adamax)                                                                                      \
    X(nadam)                                                                                       \
    X(lion)                                                                                        \
    X(ftrl)                                                                                        \
    X(weight_decay)
#define FAMILY(name)                                                                               \
    SN_CUDA_FAMILY(name, run_update<name##_op>, describe_update<name##_op>, NULL, NULL,            \
                   run_updates<name##_op>, SN_HALF_DTYPES, SN_CUDA_MIXES_ALL)
UPDATE_MAP(FAMILY)

/* --- assign_add, of counters too: they wrap --------------------------------------------------- */
template <class M, class A> struct add_f {
    const M *v, *x;
    M *out;
    __device__ void operator()(int64_t i) const { out[i] = (M)((A)v[i] + (A)x[i]); }
};
template <class M, class A> static snug_status add(const sn_cuda_call *c) {
    sn_each(c, sn_cuda_elements(&c->call->out[0]),
            add_f<M, A>{sn_in<M>(c, 0), sn_in<M>(c, 1), sn_out<M>(c, 0)});
    return SNUG_OK;
}

static snug_status run_assign_add(const sn_cuda_call *c, snug_error *err) {
    const snug_dtype dtype = sn_dtype_in(c, 0);
    return dtype == SNUG_F32    ? add<float, float>(c)
           : dtype == SNUG_F64  ? add<double, double>(c)
           : dtype == SNUG_F16  ? add<sn_half, float>(c)
           : dtype == SNUG_BF16 ? add<sn_brain, float>(c)
           : dtype == SNUG_I8   ? add<int8_t, uint64_t>(c)
           : dtype == SNUG_U8   ? add<uint8_t, uint64_t>(c)
           : dtype == SNUG_I32  ? add<int32_t, uint64_t>(c)
           : dtype == SNUG_I64  ? add<int64_t, uint64_t>(c)
                                : sn_cuda_no_kernel(dtype, err);
}
SN_CUDA_FLOATS(assign_add, run_assign_add, NULL, 0)
