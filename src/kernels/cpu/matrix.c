/* matrix.c: the matmul family: [.., M, K] x [.., K, N] with broadcast leading axes, optional transposes, an
 * optional bias over N and a fused activation. The reference adds in double, in the order of k. */
#include "kernels/cpu/matrix.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/real.h"

/* Pieces of a sum over k cannot each carry the bias or pass the activation. */
static snug_status check_accumulate(const sn_call *c, snug_error *err) {
    if (c->accumulate && (c->n_in > 2 || c->attrs->matmul.act != SN_ACT_none))
        return sn_fail(err, SNUG_E_INTERNAL, "matmul adds into its output only without bias and activation");
    return SNUG_OK;
}

static void reference_entry(const sn_call *c, const sn_matmul_shape *s, int64_t entry) {
    const sn_reals a = sn_reals_of(&c->in[0]), b = sn_reals_of(&c->in[1]), out = sn_reals_of(&c->out[0]);
    const sn_reals bias = c->n_in > 2 ? sn_reals_of(&c->in[2]) : (sn_reals){NULL, false};
    const int64_t a0 = sn_matmul_offset(s->out, s->a, entry), b0 = sn_matmul_offset(s->out, s->b, entry);
    for (int64_t m = 0; m < s->M; m++)
        for (int64_t n = 0; n < s->N; n++) {
            double sum = 0;
            for (int64_t k = 0; k < s->K; k++)
                sum += sn_real_at(a, a0 + m * s->a_row + k * s->a_col) *
                       sn_real_at(b, b0 + k * s->b_row + n * s->b_col);
            if (bias.data)
                sum += sn_real_at(bias, n);
            sn_real_sum(out, (entry * s->M + m) * s->N + n, sn_real_act(c->attrs->matmul.act, sum), c->accumulate);
        }
}

static snug_status reference_matmul(const sn_call *c, snug_error *err) {
    SNUG_TRY(check_accumulate(c, err));
    const sn_matmul_shape s =
        sn_matmul_shape_of(&c->attrs->matmul, &c->in[0].type, &c->in[1].type, &c->out[0].type);
    for (int64_t entry = 0; entry < s.batch; entry++)
        reference_entry(c, &s, entry);
    return SNUG_OK;
}

SN_CPU_FAMILY(matmul, .reference = reference_matmul, .run = reference_matmul)
