/* norm.c: normalisation; channels are the last axis.
 *
 *   moments(x) -> (sum x, sum x*x) per channel, in f64
 *   normalise(x, mean, variance, gamma, beta) -> gamma * xhat + beta, with
 *       xhat = (x - mean) / sqrt(variance + epsilon)
 *   normalise_line(mean, variance, gamma, beta[, bias]) -> (scale, shift) per channel, with
 *       normalise(x + bias, ...) = scale * x + shift
 *   normalise_sums(dy, x, mean, variance) -> (sum dy, sum dy * xhat) per channel
 *   channel_affine(p, q, a, b, c) -> a*p + b*q + c, with a, b, c per channel
 *   layernorm(x, gamma, beta) -> (y, mean, rstd), the last two per row
 *   layernorm_dx(dy, x, gamma, mean, rstd) -> dx
 *   layernorm_sums(dy, x, mean, rstd) -> (sum dy, sum dy * xhat) per channel
 *
 * Operands are read by their own types: statistics, parameters and sums may be f32 beside
 * halves. */
#include "kernels/cpu/norm.h"

#include "kernels/cpu/real_elements.h"
#include "kernels/cpu/row_lines.h"

/* --- references ------------------------------------------------------------------------------ */
static snug_status reference_moments(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), C = sn_width_of(&c->in[0].type);
    for (int64_t k = 0; k < C; k++) {
        double sum = 0, squares = 0;
        for (int64_t r = 0; r < rows; r++) {
            const double v = sn_real_at(x, r * C + k);
            sum += v;
            squares += v * v;
        }
        sn_real_sum(sn_reals_of(&c->out[0]), k, sum, c->accumulate);
        sn_real_sum(sn_reals_of(&c->out[1]), k, squares, c->accumulate);
    }
    return SNUG_OK;
}

static snug_status reference_normalise(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]), y = sn_reals_of(&c->out[0]);
    const int64_t count = sn_type_count(&c->in[0].type), C = sn_width_of(&c->in[0].type);
    for (int64_t i = 0; i < count; i++) {
        const double mean = sn_real_at(sn_reals_of(&c->in[1]), i % C);
        const double rstd = 1 / sqrt(sn_real_at(sn_reals_of(&c->in[2]), i % C) + c->param[0].real);
        const double gamma = sn_real_at(sn_reals_of(&c->in[3]), i % C);
        const double beta = sn_real_at(sn_reals_of(&c->in[4]), i % C);
        sn_real_put(y, i, gamma * ((sn_real_at(x, i) - mean) * rstd) + beta);
    }
    return SNUG_OK;
}

static snug_status reference_normalise_line(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals line = sn_reals_of(&c->out[0]);
    const int64_t C = sn_width_of(&c->in[0].type);
    for (int64_t k = 0; k < C; k++) {
        const double mean = sn_real_at(sn_reals_of(&c->in[0]), k);
        const double rstd = 1 / sqrt(sn_real_at(sn_reals_of(&c->in[1]), k) + c->param[0].real);
        const double scale = sn_real_at(sn_reals_of(&c->in[2]), k) * rstd;
        const double bias = c->n_in > 4 ? sn_real_at(sn_reals_of(&c->in[4]), k) : 0;
        sn_real_put(line, k, scale);
        sn_real_put(line, C + k, sn_real_at(sn_reals_of(&c->in[3]), k) + (bias - mean) * scale);
    }
    return SNUG_OK;
}

/* The same operations on f32 operands, without a look at each element's type: an inference does it
 * for every normalisation it has. */
static snug_status run_normalise_line(const sn_call *c, snug_error *err) {
    if (!sn_call_is_f32(c))
        return reference_normalise_line(c, err);
    const float *mean = c->in[0].data, *variance = c->in[1].data, *gamma = c->in[2].data;
    const float *beta = c->in[3].data, *bias = c->n_in > 4 ? c->in[4].data : NULL;
    float *line = c->out[0].data;
    const double epsilon = c->param[0].real;
    const int64_t C = sn_width_of(&c->in[0].type);
#pragma omp simd
    for (int64_t k = 0; k < C; k++) {
        const double scale = gamma[k] * (1 / sqrt(variance[k] + epsilon));
        line[k] = (float)scale;
        line[C + k] = (float)(beta[k] + ((bias ? (double)bias[k] : 0) - mean[k]) * scale);
    }
    return SNUG_OK;
}

static snug_status reference_normalise_sums(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals dy = sn_reals_of(&c->in[0]), x = sn_reals_of(&c->in[1]);
    const int64_t rows = sn_rows_of(&c->in[0].type), C = sn_width_of(&c->in[0].type);
    for (int64_t k = 0; k < C; k++) {
        const double mean = sn_real_at(sn_reals_of(&c->in[2]), k);
        const double rstd = 1 / sqrt(sn_real_at(sn_reals_of(&c->in[3]), k) + c->param[0].real);
        double sum = 0, product = 0;
        for (int64_t i = k; i < rows * C; i += C) {
            sum += sn_real_at(dy, i);
            product += sn_real_at(dy, i) * ((sn_real_at(x, i) - mean) * rstd);
        }
        sn_real_sum(sn_reals_of(&c->out[0]), k, sum, c->accumulate);
        sn_real_sum(sn_reals_of(&c->out[1]), k, product, c->accumulate);
    }
    return SNUG_OK;
}

static snug_status reference_channel_affine(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals p = sn_reals_of(&c->in[0]), q = sn_reals_of(&c->in[1]),
                   y = sn_reals_of(&c->out[0]);
    const int64_t count = sn_type_count(&c->in[0].type), C = sn_width_of(&c->in[0].type);
    for (int64_t i = 0; i < count; i++)
        sn_real_put(y, i,
                    sn_real_at(sn_reals_of(&c->in[2]), i % C) * sn_real_at(p, i) +
                        sn_real_at(sn_reals_of(&c->in[3]), i % C) * sn_real_at(q, i) +
                        sn_real_at(sn_reals_of(&c->in[4]), i % C));
    return SNUG_OK;
}

static snug_status reference_layernorm(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals x = sn_reals_of(&c->in[0]), gamma = sn_reals_of(&c->in[1]),
                   beta = sn_reals_of(&c->in[2]);
    const sn_reals y = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), C = sn_width_of(&c->in[0].type);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < C; k++)
            sum += sn_real_at(x, r * C + k);
        const double mean = sum / (double)C;
        for (int64_t k = 0; k < C; k++)
            squares += (sn_real_at(x, r * C + k) - mean) * (sn_real_at(x, r * C + k) - mean);
        const double rstd = 1 / sqrt(squares / (double)C + c->param[0].real);
        for (int64_t k = 0; k < C; k++)
            sn_real_put(y, r * C + k,
                        sn_real_at(gamma, k) * ((sn_real_at(x, r * C + k) - mean) * rstd) +
                            sn_real_at(beta, k));
        sn_real_put(sn_reals_of(&c->out[1]), r, mean);
        sn_real_put(sn_reals_of(&c->out[2]), r, rstd);
    }
    return SNUG_OK;
}

/* dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), where g = gamma * dy */
static snug_status reference_layernorm_dx(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals dy = sn_reals_of(&c->in[0]), x = sn_reals_of(&c->in[1]),
                   gamma = sn_reals_of(&c->in[2]);
    const sn_reals dx = sn_reals_of(&c->out[0]);
    const int64_t rows = sn_rows_of(&c->in[0].type), C = sn_width_of(&c->in[0].type);
    for (int64_t r = 0; r < rows; r++) {
        const double mean = sn_real_at(sn_reals_of(&c->in[3]), r),
                     rstd = sn_real_at(sn_reals_of(&c->in[4]), r);
        double sum = 0, product = 0;
        for (int64_t k = 0; k < C; k++) {
            const double g = sn_real_at(gamma, k) * sn_real_at(dy, r * C + k);
            sum += g;
            product += g * ((sn_real_at(x, r * C + k) - mean) * rstd);
        }
        for (int64_t k = 0; k < C; k++) {
            const double g = sn_real_at(gamma, k) * sn_real_at(dy, r * C + k);
            const double xhat = (sn_real_at(x, r * C + k) - mean) * rstd;
            sn_real_put(dx, r * C + k, rstd * (g - sum / (double)C - xhat * (product / (double)C)));
        }
    }
    return SNUG_OK;
}

static snug_status reference_layernorm_sums(const sn_call *c, snug_error *err) {
    (void)err;
    const sn_reals dy = sn_reals_of(&c->in[0]), x = sn_reals_of(&c->in[1]);
    const sn_reals mean = sn_reals_of(&c->in[2]), rstd = sn_reals_of(&c->in[3]);
    const int64_t rows = sn_rows_of(&c->in[0].type), C = sn_width_of(&c->in[0].type);
    for (int64_t k = 0; k < C; k++) {
        double sum = 0, product = 0;
        for (int64_t r = 0; r < rows; r++) {
            const double g = sn_real_at(dy, r * C + k);
            sum += g;
            product += g * ((sn_real_at(x, r * C + k) - sn_real_at(mean, r)) * sn_real_at(rstd, r));
        }
        sn_real_sum(sn_reals_of(&c->out[0]), k, sum, c->accumulate);
        sn_real_sum(sn_reals_of(&c->out[1]), k, product, c->accumulate);
    }
    return SNUG_OK;
}

/* --- which kernel runs ----------------------------------------------------------------------- */
#define RUN(name, fast)                                                                            \
    static snug_status run_##name(const sn_call *c, snug_error *err) {                             \
        if (sn_call_is_f64(c))                                                                     \
            return reference_##name(c, err);                                                       \
        fast;                                                                                      \
        return SNUG_OK;                                                                            \
    }
RUN(moments, SN_CPU(channel_sums_f32)(c, SN_SUMS_MOMENTS))
RUN(normalise, SN_CPU(normalise_f32)(c))
RUN(normalise_sums, SN_CPU(channel_sums_f32)(c, SN_SUMS_NORMALISE))
RUN(channel_affine, SN_CPU(channel_affine_f32)(c))
RUN(layernorm, SN_CPU(layernorm_f32)(c))
RUN(layernorm_dx, SN_CPU(layernorm_dx_f32)(c))
RUN(layernorm_sums, SN_CPU(channel_sums_f32)(c, SN_SUMS_LAYERNORM))

static snug_status describe_sums(const sn_opdesc *d, int n_threads, sn_variant *out,
                                 snug_error *err) {
    (void)n_threads;
    (void)err;
    if (d->in[0].dtype != SNUG_F64)
        out->workspace_bytes =
            SN_CPU(channel_sums_workspace)(sn_rows_of(&d->in[0]), sn_width_of(&d->in[0]));
    return SNUG_OK;
}

static snug_status describe_rows(const sn_opdesc *d, int n_threads, sn_variant *out,
                                 snug_error *err) {
    (void)err;
    if (sn_desc_has_halves(d))
        out->workspace_bytes = SN_CPU(norm_rows_workspace)(d, n_threads);
    else if (d->op == SN_OP_normalise && d->in[0].dtype == SNUG_F32)
        out->workspace_bytes = SN_CPU(normalise_workspace)(sn_width_of(&d->in[0]));
    return SNUG_OK;
}

SN_CPU_FAMILY(moments, .reference = reference_moments, .run = run_moments,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_sums)
SN_CPU_FAMILY(normalise, .reference = reference_normalise, .run = run_normalise,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_rows)
SN_CPU_FAMILY(normalise_line, .reference = reference_normalise_line, .run = run_normalise_line,
              .takes_stored = SN_HALF_DTYPES)
SN_CPU_FAMILY(normalise_sums, .reference = reference_normalise_sums, .run = run_normalise_sums,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_sums)
SN_CPU_FAMILY(channel_affine, .reference = reference_channel_affine, .run = run_channel_affine,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_rows)
SN_CPU_FAMILY(layernorm, .reference = reference_layernorm, .run = run_layernorm,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_rows)
SN_CPU_FAMILY(layernorm_dx, .reference = reference_layernorm_dx, .run = run_layernorm_dx,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_rows)
SN_CPU_FAMILY(layernorm_sums, .reference = reference_layernorm_sums, .run = run_layernorm_sums,
              .takes_stored = SN_HALF_DTYPES, .describe = describe_sums)
