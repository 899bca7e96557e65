/* onednn_warm.c: oneDNN used once on very little, before the process is measured. Its pages of code
 * and tables come in pieces as large as the system likes, and its threads with the first call: all
 * of that is there afterwards, and only the code of each kernel is still to come. */
#include "kernels/cpu/onednn.h"

enum { SIDE = 6, CHANNELS = 8, GROUPS = 2, PIXELS = SIDE * SIDE * CHANNELS };
enum { WEIGHTS = 9 * CHANNELS / GROUPS * CHANNELS };

static snug_status run_once(snug_engine *e, sn_onednn_kind kind, const sn_conv_operands *o,
                            int n_threads, snug_error *err) {
    sn_variant v = {0};
    void *prepared = NULL, *workspace;
    SNUG_TRY(sn_onednn_describe(kind, &o->v, n_threads, &v, err));
    SNUG_TRY(sn_onednn_prepare(e, kind, &o->v, n_threads, &prepared, err));
    snug_status status = sn_alloc(e, SN_MEM_KERNELS, v.workspace_bytes, &workspace, err);
    if (status == SNUG_OK) {
        if (prepared)
            status = sn_onednn_run(prepared, o, workspace, n_threads, err);
        sn_free(e, SN_MEM_KERNELS, workspace, v.workspace_bytes);
    }
    sn_onednn_release(e, prepared);
    return status;
}

snug_status sn_onednn_warm(snug_engine *e, int n_threads, snug_error *err) {
    const size_t bytes = (4 * PIXELS + 2 * WEIGHTS + CHANNELS) * sizeof(float);
    void *block;
    SNUG_TRY(sn_alloc_zero(e, SN_MEM_KERNELS, bytes, &block, err));
    float *x = block, *y = x + PIXELS, *dy = y + PIXELS, *dx = dy + PIXELS, *w = dx + PIXELS;
    const sn_conv_operands o = {.v = {.N = 1,
                                      .H = SIDE,
                                      .W = SIDE,
                                      .C = CHANNELS,
                                      .kh = 3,
                                      .kw = 3,
                                      .O = CHANNELS,
                                      .oh = SIDE,
                                      .ow = SIDE,
                                      .groups = GROUPS,
                                      .stride = {1, 1},
                                      .pad = {1, 1, 1, 1},
                                      .dilation = {1, 1}},
                                .x = x,
                                .w = w,
                                .dy = dy,
                                .y = y,
                                .dx = dx,
                                .dw = w + WEIGHTS};
    static const sn_onednn_kind kinds[] = {SN_ONEDNN_FORWARD, SN_ONEDNN_DX, SN_ONEDNN_DW};
    snug_status status = SNUG_OK;
    for (size_t i = 0; i < 3 && status == SNUG_OK; i++)
        status = run_once(e, kinds[i], &o, n_threads, err);
    sn_free(e, SN_MEM_KERNELS, block, bytes);
    return status;
}
