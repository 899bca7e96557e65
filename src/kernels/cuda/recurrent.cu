/* recurrent.cu: the recurrent rows, one step after the other. A gate is a block of H columns, in
 * Keras' order:
 *
 *     lstm   i f g o   c' = f c + i g      h' = o act(c')
 *     gru    z r n     h' = z h + (1 - z) n
 *
 * Gradient rows keep the running gradients of the states in their outputs d h0 and d c0. A step
 * that is masked leaves the states as they are; its gates are zeros, which nobody reads.
 *
 * A step forwards is one launch: a block has UNITS units of ROWS examples, the product of the
 * states with the recurrent kernel goes through shared memory, and each thread finishes its unit. A
 * step back is a map over the gates and a product with the kernel turned. Letters: B examples, T
 * steps, H units, G gates. */
#include "kernels/cuda/cuda_act.h"
#include "kernels/cuda/own.h"
#include "kernels/cuda/widen.h"

enum { UNITS = 32, ROWS = 8, DEPTH = 32, THREADS = UNITS * ROWS };
enum { GATES, HIDDEN, LAST, CELLS };

/* --- a call taken apart ----------------------------------------------------------------------- */
/* Inputs behind the `fixed` ones are told apart by their types, as on the processor. */
template <class T> struct rnn {
    int64_t B, T_, H, G;
    int act, gate_act;
    bool reverse;
    const T *kernel;
    const uint8_t *mask; /* [B,T] or NULL */
    const T *drop;       /* [B,GH] or NULL */
    const T *dhidden;    /* [B,T,H] or NULL */
    int64_t t, earlier;  /* of the step; earlier < 0: it is the first */

    __device__ int64_t at(int64_t b) const { return b * T_ + t; }
    __device__ bool taken(int64_t b) const { return !mask || mask[at(b)]; }
    __device__ int64_t gate(int64_t b, int g) const { return (at(b) * G + g) * H; }
    __device__ T factor(int64_t b, int g, int64_t k) const {
        return drop ? drop[(b * G + g) * H + k] : (T)1;
    }
    /* A state before the step: of the sequence, or the initial one. */
    __device__ const T *before(int64_t b, const T *initial, const T *sequence) const {
        return earlier < 0 ? initial + b * H : sequence + (b * T_ + earlier) * H;
    }
    __device__ T slope(int which, T y) const {
        return which == SN_ACT_tanh           ? 1 - y * y
               : which == SN_ACT_sigmoid      ? y * (1 - y)
               : which == SN_ACT_relu         ? (y > 0 ? (T)1 : (T)0)
               : which == SN_ACT_hard_sigmoid ? (y > 0 && y < 1 ? (T)1 / 6 : (T)0)
                                              : (T)1;
    }
};

template <class T> static rnn<T> rnn_of(const sn_call *c, int fixed) {
    const snug_type *gates = &c->in[0].type;
    const int64_t H = c->in[1].type.dims[0];
    rnn<T> r = {};
    r.B = gates->dims[0];
    r.T_ = gates->dims[1];
    r.H = H;
    r.G = H > 0 ? gates->dims[2] / H : 1;
    r.act = (int)c->attrs->rnn.act;
    r.gate_act = (int)c->attrs->rnn.gate_act;
    r.reverse = c->attrs->rnn.reverse != 0;
    r.kernel = (const T *)c->in[1].data;
    for (int i = fixed; i < c->n_in; i++)
        if (c->in[i].type.dtype == SNUG_BOOL)
            r.mask = (const uint8_t *)c->in[i].data;
        else if (c->in[i].type.rank == 3)
            r.dhidden = (const T *)c->in[i].data;
        else
            r.drop = (const T *)c->in[i].data;
    return r;
}

/* Step s of T. */
template <class T> static void set_step(rnn<T> *r, int64_t s) {
    r->t = r->reverse ? r->T_ - 1 - s : s;
    r->earlier = s == 0 ? -1 : r->reverse ? r->T_ - s : s - 1;
}

/* --- products --------------------------------------------------------------------------------- */
/* sums[g] of example b and unit j: the states times columns j of gates [F::FIRST, F::FIRST + N).
 * F::state(b, k): unit k of what is multiplied; F::finish(b, j, sums). */
template <class F, class T, int N>
static __global__ void __launch_bounds__(THREADS, 2) step_kernel(const __grid_constant__ F f) {
    __shared__ T states[N][ROWS][DEPTH + 1], kernel[N][DEPTH][UNITS];
    const rnn<T> &r = f.r;
    const int x = (int)threadIdx.x % UNITS, y = (int)threadIdx.x / UNITS;
    const int64_t across = (r.H + UNITS - 1) / UNITS, tiles = across * ((r.B + ROWS - 1) / ROWS);
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t j = tile % across * UNITS + x, b = tile / across * ROWS + y;
        T sums[N] = {};
        for (int64_t k0 = 0; k0 < r.H; k0 += DEPTH) {
#pragma unroll
            for (int g = 0; g < N; g++) {
                const int64_t k = k0 + x;
                states[g][y][x] = b < r.B && k < r.H && r.taken(b)
                                      ? f.state(b, k) * r.factor(b, F::FIRST + g, k)
                                      : (T)0;
                for (int i = y; i < DEPTH; i += ROWS)
                    kernel[g][i][x] = k0 + i < r.H && j < r.H
                                          ? r.kernel[((k0 + i) * r.G + F::FIRST + g) * r.H + j]
                                          : (T)0;
            }
            __syncthreads();
#pragma unroll 8
            for (int i = 0; i < DEPTH; i++)
#pragma unroll
                for (int g = 0; g < N; g++)
                    sums[g] += states[g][y][i] * kernel[g][i][x];
            __syncthreads();
        }
        if (b < r.B && j < r.H)
            f.finish(b, j, sums);
    }
}

template <class T, int N, class F> static void run_step(const sn_cuda_call *c, F f) {
    const int64_t tiles = sn_cuda_ceil(f.r.H, UNITS) * sn_cuda_ceil(f.r.B, ROWS);
    if (tiles > 0)
        SN_LAUNCH((step_kernel<F, T, N>), sn_blocks(tiles, 1), THREADS, 0, c->stream, f);
}

/* What unit k of example b gets back from gates [F::FIRST, F::FIRST + N): the sum over their
 * columns of f.gradient(b, g, j) times row k of the kernel. F::finish(b, k, sum). */
template <class F, class T, int N>
static __global__ void __launch_bounds__(THREADS, 2) back_kernel(const __grid_constant__ F f) {
    __shared__ T gradients[ROWS][DEPTH + 1], kernel[UNITS][DEPTH + 1];
    const rnn<T> &r = f.r;
    const int x = (int)threadIdx.x % UNITS, y = (int)threadIdx.x / UNITS;
    const int64_t across = (r.H + UNITS - 1) / UNITS, tiles = across * ((r.B + ROWS - 1) / ROWS);
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t k0 = tile % across * UNITS, k = k0 + x, b = tile / across * ROWS + y;
        T total = 0;
        for (int g = F::FIRST; g < F::FIRST + N; g++) {
            T sum = 0;
            for (int64_t j0 = 0; j0 < r.H; j0 += DEPTH) {
                const int64_t j = j0 + x;
                gradients[y][x] = b < r.B && j < r.H && r.taken(b) ? f.gradient(b, g, j) : (T)0;
                for (int i = y; i < UNITS; i += ROWS)
                    kernel[i][x] =
                        k0 + i < r.H && j < r.H ? r.kernel[((k0 + i) * r.G + g) * r.H + j] : (T)0;
                __syncthreads();
#pragma unroll 8
                for (int i = 0; i < DEPTH; i++)
                    sum += gradients[y][i] * kernel[x][i];
                __syncthreads();
            }
            if (b < r.B && k < r.H)
                total += sum * r.factor(b, g, k);
        }
        if (b < r.B && k < r.H && r.taken(b))
            f.finish(b, k, total);
    }
}

template <class T, int N, class F> static void run_back(const sn_cuda_call *c, F f) {
    const int64_t tiles = sn_cuda_ceil(f.r.H, UNITS) * sn_cuda_ceil(f.r.B, ROWS);
    if (tiles > 0)
        SN_LAUNCH((back_kernel<F, T, N>), sn_blocks(tiles, 1), THREADS, 0, c->stream, f);
}

/* --- states at the ends ----------------------------------------------------------------------- */
/* The state behind the last step, or the initial one, into columns [first, ...) of n states. */
template <class T> struct last_f {
    rnn<T> r;
    const T *initial, *sequence;
    T *out;
    int64_t first, n;
    __device__ void operator()(int64_t i) const {
        const int64_t b = i / r.H, j = i % r.H;
        const int64_t end = r.reverse ? 0 : r.T_ - 1;
        out[(b * n + first) * r.H + j] =
            r.T_ == 0 ? initial[i] : sequence[(b * r.T_ + end) * r.H + j];
    }
};
/* d h0 and its like begin as the gradient of the last state. */
template <class T> struct take_last_f {
    const T *from;
    T *out;
    int64_t H, first, n;
    __device__ void operator()(int64_t i) const { out[i] = from[(i / H * n + first) * H + i % H]; }
};

/* --- lstm ------------------------------------------------------------------------------------- */
template <class T> struct lstm_step_f {
    enum { FIRST = 0 };
    rnn<T> r;
    const T *in, *h0, *c0;
    T *gates, *hidden, *cells;
    __device__ T state(int64_t b, int64_t k) const { return r.before(b, h0, hidden)[k]; }
    __device__ void finish(int64_t b, int64_t j, const T *sums) const {
        const int64_t to = r.at(b) * r.H + j;
        const T c = r.before(b, c0, cells)[j];
        const bool taken = r.taken(b);
        T a[4];
#pragma unroll
        for (int g = 0; g < 4; g++) {
            const T v = sn_act_of(g == 2 ? r.act : r.gate_act, in[r.gate(b, g) + j] + sums[g]);
            a[g] = taken ? v : (T)0;
        }
#pragma unroll
        for (int g = 0; g < 4; g++)
            gates[r.gate(b, g) + j] = a[g];
        const T cell = taken ? a[1] * c + a[0] * a[2] : c;
        cells[to] = cell;
        hidden[to] = taken ? a[3] * sn_act_of(r.act, cell) : r.before(b, h0, hidden)[j];
    }
};

template <class T> static void lstm(const sn_cuda_call *c) {
    lstm_step_f<T> f = {rnn_of<T>(c->call, 4), sn_in<T>(c, 0),      sn_in<T>(c, 2),
                        sn_in<T>(c, 3),        sn_out<T>(c, GATES), sn_out<T>(c, HIDDEN),
                        sn_out<T>(c, CELLS)};
    for (int64_t s = 0; s < f.r.T_; s++) {
        set_step(&f.r, s);
        run_step<T, 4>(c, f);
    }
    sn_each(c, f.r.B * f.r.H, last_f<T>{f.r, f.h0, f.hidden, sn_out<T>(c, LAST), 0, 2});
    sn_each(c, f.r.B * f.r.H, last_f<T>{f.r, f.c0, f.cells, sn_out<T>(c, LAST), 1, 2});
}

/* The gates' gradients of a step, and the cells' for the step before. A masked step's gates get
 * none; the hidden state hands its own on. */
template <class T> struct lstm_gates_f {
    rnn<T> r;
    const T *gates, *c0, *cells;
    T *dgates, *dh, *dc;
    __device__ void operator()(int64_t i) const {
        const int64_t b = i / r.H, j = i % r.H, at = r.at(b) * r.H + j;
        const T h = dh[i] + (r.dhidden ? r.dhidden[at] : (T)0);
        T d[4] = {};
        if (r.taken(b)) {
            T a[4];
#pragma unroll
            for (int g = 0; g < 4; g++)
                a[g] = gates[r.gate(b, g) + j];
            const T y = sn_act_of(r.act, cells[at]);
            const T cell = dc[i] + h * a[3] * r.slope(r.act, y);
            d[0] = cell * a[2] * r.slope(r.gate_act, a[0]);
            d[1] = cell * r.before(b, c0, cells)[j] * r.slope(r.gate_act, a[1]);
            d[2] = cell * a[0] * r.slope(r.act, a[2]);
            d[3] = h * y * r.slope(r.gate_act, a[3]);
            dc[i] = cell * a[1];
        } else {
            dh[i] = h;
        }
#pragma unroll
        for (int g = 0; g < 4; g++)
            dgates[r.gate(b, g) + j] = d[g];
    }
};
/* d h before the step: of all gates, plus what `add` says is there already. */
template <class T, bool ADD> struct hidden_back_f {
    enum { FIRST = 0 };
    rnn<T> r;
    const T *dgates, *inner; /* inner: [B,T,H], in place of gate 2 where there is one */
    T *dh;
    __device__ T gradient(int64_t b, int g, int64_t j) const {
        return inner && g == 2 ? inner[r.at(b) * r.H + j] : dgates[r.gate(b, g) + j];
    }
    __device__ void finish(int64_t b, int64_t k, T sum) const {
        dh[b * r.H + k] = ADD ? dh[b * r.H + k] + sum : sum;
    }
};

template <class T> static void lstm_grad(const sn_cuda_call *c) {
    lstm_gates_f<T> f = {rnn_of<T>(c->call, 5), sn_in<T>(c, 0),  sn_in<T>(c, 3), sn_in<T>(c, 4),
                         sn_out<T>(c, 0),       sn_out<T>(c, 1), sn_out<T>(c, 2)};
    const int64_t n = f.r.B * f.r.H;
    sn_each(c, n, take_last_f<T>{sn_in<T>(c, 2), f.dh, f.r.H, 0, 2});
    sn_each(c, n, take_last_f<T>{sn_in<T>(c, 2), f.dc, f.r.H, 1, 2});
    for (int64_t s = f.r.T_ - 1; s >= 0; s--) {
        set_step(&f.r, s);
        sn_each(c, n, f);
        run_back<T, 4>(c, hidden_back_f<T, false>{f.r, f.dgates, NULL, f.dh});
    }
}

/* --- gru -------------------------------------------------------------------------------------- */
static bool resets_after(const sn_call *c) {
    return c->attrs->gru.reset_after != 0;
}

template <class T> struct gru_call {
    rnn<T> r;
    const T *in, *h0, *bias;
    T *gates, *hidden, *inner;
};

/* All three gates at once; the candidate's product is reset after it. */
template <class T> struct gru_after_f : gru_call<T> {
    enum { FIRST = 0 };
    using gru_call<T>::r;
    __device__ T state(int64_t b, int64_t k) const {
        return r.before(b, this->h0, this->hidden)[k];
    }
    __device__ void finish(int64_t b, int64_t j, const T *sums) const {
        const int64_t to = r.at(b) * r.H + j, H = r.H;
        const T h = state(b, j);
        T z = 0, reset = 0, n = 0, sum = 0, next = h;
        if (r.taken(b)) {
            z = sn_act_of(r.gate_act, this->in[r.gate(b, 0) + j] + sums[0] + this->bias[j]);
            reset = sn_act_of(r.gate_act, this->in[r.gate(b, 1) + j] + sums[1] + this->bias[H + j]);
            sum = sums[2] + this->bias[2 * H + j];
            n = sn_act_of(r.act, this->in[r.gate(b, 2) + j] + reset * sum);
            next = z * h + (1 - z) * n;
        }
        this->gates[r.gate(b, 0) + j] = z;
        this->gates[r.gate(b, 1) + j] = reset;
        this->gates[r.gate(b, 2) + j] = n;
        this->inner[to] = sum;
        this->hidden[to] = next;
    }
};

/* First z and r; then the candidate, of the states as reset. */
template <class T> struct gru_gates_f : gru_call<T> {
    enum { FIRST = 0 };
    using gru_call<T>::r;
    __device__ T state(int64_t b, int64_t k) const {
        return r.before(b, this->h0, this->hidden)[k];
    }
    __device__ void finish(int64_t b, int64_t j, const T *sums) const {
        const bool taken = r.taken(b);
#pragma unroll
        for (int g = 0; g < 2; g++) {
            const T v = sn_act_of(r.gate_act, this->in[r.gate(b, g) + j] + sums[g]);
            this->gates[r.gate(b, g) + j] = taken ? v : (T)0;
        }
    }
};
template <class T> struct gru_candidate_f : gru_call<T> {
    enum { FIRST = 2 };
    using gru_call<T>::r;
    __device__ T state(int64_t b, int64_t k) const {
        return this->gates[r.gate(b, 1) + k] * r.before(b, this->h0, this->hidden)[k];
    }
    __device__ void finish(int64_t b, int64_t j, const T *sums) const {
        const T h = r.before(b, this->h0, this->hidden)[j], z = this->gates[r.gate(b, 0) + j];
        const bool taken = r.taken(b);
        const T n = sn_act_of(r.act, this->in[r.gate(b, 2) + j] + sums[0]);
        this->gates[r.gate(b, 2) + j] = taken ? n : (T)0;
        this->hidden[r.at(b) * r.H + j] = taken ? z * h + (1 - z) * n : h;
    }
};

template <class T> static void gru(const sn_cuda_call *c) {
    const bool after = resets_after(c->call);
    gru_call<T> g = {rnn_of<T>(c->call, after ? 4 : 3), sn_in<T>(c, 0),      sn_in<T>(c, 2),
                     after ? sn_in<T>(c, 3) : NULL,     sn_out<T>(c, GATES), sn_out<T>(c, HIDDEN),
                     after ? sn_out<T>(c, 3) : NULL};
    for (int64_t s = 0; s < g.r.T_; s++) {
        set_step(&g.r, s);
        if (after) {
            run_step<T, 3>(c, gru_after_f<T>{g});
            continue;
        }
        run_step<T, 2>(c, gru_gates_f<T>{g});
        run_step<T, 1>(c, gru_candidate_f<T>{g});
    }
    sn_each(c, g.r.B * g.r.H, last_f<T>{g.r, g.h0, g.hidden, sn_out<T>(c, LAST), 0, 1});
}

/* in: gates, U, d last, h0, hidden, [inner]; out: d projections, d h0, [d inner] */
template <class T> struct gru_back_call {
    rnn<T> r;
    const T *gates, *h0, *hidden, *inner;
    T *dgates, *dh, *dinner;
    bool after;
};

/* d z and d n, what the state gets straight through z, and after its reset d r. */
template <class T> struct gru_outer_f : gru_back_call<T> {
    using gru_back_call<T>::r;
    __device__ void operator()(int64_t i) const {
        const int64_t b = i / r.H, j = i % r.H, at = r.at(b) * r.H + j;
        const T d = this->dh[i] + (r.dhidden ? r.dhidden[at] : (T)0);
        T dz = 0, dr = 0, dn = 0, inside = 0, through = d;
        if (r.taken(b)) {
            const T z = this->gates[r.gate(b, 0) + j], reset = this->gates[r.gate(b, 1) + j],
                    n = this->gates[r.gate(b, 2) + j];
            dz = d * (r.before(b, this->h0, this->hidden)[j] - n) * r.slope(r.gate_act, z);
            dn = d * (1 - z) * r.slope(r.act, n);
            dr = this->after ? dn * this->inner[at] * r.slope(r.gate_act, reset) : reset;
            inside = dn * reset;
            through = d * z;
        }
        this->dgates[r.gate(b, 0) + j] = dz;
        this->dgates[r.gate(b, 1) + j] = dr; /* before its reset: still the gate */
        this->dgates[r.gate(b, 2) + j] = dn;
        if (this->after)
            this->dinner[at] = inside;
        this->dh[i] = through;
    }
};
/* d r through the candidate's product, whose states were reset before it. */
template <class T> struct gru_reset_f : gru_back_call<T> {
    enum { FIRST = 2 };
    using gru_back_call<T>::r;
    __device__ T gradient(int64_t b, int g, int64_t j) const {
        return this->dgates[r.gate(b, g) + j];
    }
    __device__ void finish(int64_t b, int64_t k, T sum) const {
        T *gate = &this->dgates[r.gate(b, 1) + k];
        const T reset = *gate;
        this->dh[b * r.H + k] += sum * reset;
        *gate = sum * r.before(b, this->h0, this->hidden)[k] * r.slope(r.gate_act, reset);
    }
};

template <class T> static void gru_grad(const sn_cuda_call *c) {
    const bool after = resets_after(c->call);
    gru_back_call<T> g = {rnn_of<T>(c->call, after ? 6 : 5),
                          sn_in<T>(c, 0),
                          sn_in<T>(c, 3),
                          sn_in<T>(c, 4),
                          after ? sn_in<T>(c, 5) : NULL,
                          sn_out<T>(c, 0),
                          sn_out<T>(c, 1),
                          after ? sn_out<T>(c, 2) : NULL,
                          after};
    const int64_t n = g.r.B * g.r.H;
    sn_each(c, n, take_last_f<T>{sn_in<T>(c, 2), g.dh, g.r.H, 0, 1});
    for (int64_t s = g.r.T_ - 1; s >= 0; s--) {
        set_step(&g.r, s);
        sn_each(c, n, gru_outer_f<T>{g});
        if (!after)
            run_back<T, 1>(c, gru_reset_f<T>{g});
        if (after)
            run_back<T, 3>(c, hidden_back_f<T, true>{g.r, g.dgates, g.dinner, g.dh});
        else
            run_back<T, 2>(c, hidden_back_f<T, true>{g.r, g.dgates, NULL, g.dh});
    }
}

/* --- simple_rnn ------------------------------------------------------------------------------- */
template <class T> struct simple_step_f {
    enum { FIRST = 0 };
    rnn<T> r;
    const T *in, *h0;
    T *hidden;
    __device__ T state(int64_t b, int64_t k) const { return r.before(b, h0, hidden)[k]; }
    __device__ void finish(int64_t b, int64_t j, const T *sums) const {
        const int64_t to = r.at(b) * r.H + j;
        const T next = sn_act_of(r.act, in[to] + sums[0]);
        hidden[to] = r.taken(b) ? next : state(b, j);
    }
};

template <class T> static void simple_rnn(const sn_cuda_call *c) {
    simple_step_f<T> f = {rnn_of<T>(c->call, 3), sn_in<T>(c, 0), sn_in<T>(c, 2), sn_out<T>(c, 0)};
    for (int64_t s = 0; s < f.r.T_; s++) {
        set_step(&f.r, s);
        run_step<T, 1>(c, f);
    }
    sn_each(c, f.r.B * f.r.H, last_f<T>{f.r, f.h0, f.hidden, sn_out<T>(c, 1), 0, 1});
}

/* in: hidden, U, d last; out: d projections, d h0 */
template <class T> struct simple_gates_f {
    rnn<T> r;
    const T *hidden;
    T *dgates, *dh;
    __device__ void operator()(int64_t i) const {
        const int64_t b = i / r.H, j = i % r.H, at = r.at(b) * r.H + j;
        const T d = dh[i] + (r.dhidden ? r.dhidden[at] : (T)0);
        const bool taken = r.taken(b);
        const T y = hidden[at];
        dgates[at] = taken ? d * r.slope(r.act, y) : (T)0;
        if (!taken)
            dh[i] = d;
    }
};

template <class T> static void simple_rnn_grad(const sn_cuda_call *c) {
    simple_gates_f<T> f = {rnn_of<T>(c->call, 3), sn_in<T>(c, 0), sn_out<T>(c, 0), sn_out<T>(c, 1)};
    const int64_t n = f.r.B * f.r.H;
    sn_each(c, n, take_last_f<T>{sn_in<T>(c, 2), f.dh, f.r.H, 0, 1});
    for (int64_t s = f.r.T_ - 1; s >= 0; s--) {
        set_step(&f.r, s);
        sn_each(c, n, f);
        run_back<T, 1>(c, hidden_back_f<T, false>{f.r, f.dgates, NULL, f.dh});
    }
}

#define RECURRENT(name)                                                                            \
    static snug_status run_##name(const sn_cuda_call *c, snug_error *err) {                        \
        SN_BY_REAL(sn_dtype_in(c, 0), err, name, c);                                               \
        return SNUG_OK;                                                                            \
    }                                                                                              \
    SN_CUDA_WIDENED(name, run_##name, NULL)
RECURRENT(lstm)
RECURRENT(lstm_grad)
RECURRENT(gru)
RECURRENT(gru_grad)
RECURRENT(simple_rnn)
RECURRENT(simple_rnn_grad)
