/* lib.h: what kernels ask of the GPU object, and the libraries' two borders. The object keeps one
 * slot per library: NULL until a plan names one of its kernels, since loading one costs hundreds of
 * MiB of the host.
 *
 *     sn_choice pick;
 *     SNUG_TRY(sn_blas_choose(gpu, &product, &pick, err));   // UNSUPPORTED: no library, no way
 *     SNUG_TRY(sn_blas_make(gpu, &product, pick.impl, &plan, err));
 *     SNUG_TRY(sn_blas_run(gpu, plan, &operands, stream, err)); */
#ifndef SN_KERNELS_CUDA_LIB_H
#define SN_KERNELS_CUDA_LIB_H

#include "kernels/cuda/cuda.h"
#include "op/impl.h"

/* --- of the object --------------------------------------------------------------------------- */
typedef enum { SN_GPU_BLAS, SN_GPU_DNN, SN_GPU_N_LIBRARIES } sn_gpu_library;

const sn_gpu_options *sn_gpu_options_of(const sn_gpu *g);
int sn_gpu_multiprocessors(const sn_gpu *g);
void **sn_gpu_library_slot(const sn_gpu *g, sn_gpu_library which);
/* The context becomes the calling thread's, as a library that is asked wants it; an error where it
 * is lost. */
snug_status sn_gpu_enter(const sn_gpu *g, snug_error *err);
/* The largest stack frame of kernels that are enqueued to be looked at, not run; 0: none, or
 * unknown. */
typedef void (*sn_gpu_enqueue)(void *ctx, cudaStream_t s);
size_t sn_gpu_frame(const sn_gpu *g, sn_gpu_enqueue enqueue, void *ctx);
/* Whether the context has met an error it does not survive. */
bool sn_gpu_is_lost(const sn_gpu *g);
/* Something had no memory, or found the context lost, while a row was described: the description
 * fails with it, whatever a family would have run instead. */
void sn_gpu_starve(const sn_gpu *g, const snug_error *why);
/* As if missing libraries were there (op/runner.h). */
bool sn_gpu_pretends(const sn_gpu *g);

/* The cap of one node's scratch. */
static inline size_t sn_gpu_workspace_cap(const sn_gpu *g) {
    const size_t wish = sn_gpu_options_of(g)->workspace_bytes;
    return wish > 0 ? wish : (size_t)64 << 20;
}

/* Of what own kernels lay out for a library, some images at a time: convolutions that are pooled,
 * turned inputs, patches. Fewer images make its products slow. */
static inline size_t sn_gpu_layout_cap(const sn_gpu *g) {
    return 4 * sn_gpu_workspace_cap(g);
}

static inline bool sn_gpu_is_exact(const sn_gpu *g) {
    return sn_gpu_options_of(g)->exact;
}

/* --- a library, and its answers (library.cu) -------------------------------------------------- */
enum { SN_LIBRARY_FILES = 3, SN_KEY_WORDS = 20, SN_ANSWERS = 2048 };

/* How the table of a library begins; its functions follow. */
typedef struct {
    void *file; /* NULL: the library is missing, and why says so */
    char why[160];
} sn_library;

typedef struct {
    const char *name;
    size_t at; /* in the table */
} sn_library_symbol;

typedef struct {
    sn_gpu_library which;
    const char *title;
    const char *files[SN_LIBRARY_FILES]; /* the first that is found */
    size_t bytes;                        /* of the table */
    const sn_library_symbol *symbols;
    size_t n_symbols;
    /* Makes the handle; SNUG_E_MEMORY: not now. */
    snug_status (*start)(void *table);
    void (*stop)(void *table);
    size_t (*version)(const void *table); /* 130100 */
} sn_library_kind;

/* Of a library that was wanted before; NULL: it was not. */
void *sn_library_table(const sn_gpu *g, const sn_library_kind *kind);
/* Loaded when first asked for. SNUG_E_UNSUPPORTED where it is missing; SNUG_E_MEMORY: for want of
 * memory, which the next one who asks may find. */
snug_status sn_library_want(const sn_gpu *g, const sn_library_kind *kind, void **table,
                            snug_error *err);
void sn_library_close(sn_gpu *g, const sn_library_kind *kind);
/* "13.1.0", or "". */
void sn_library_version(const sn_gpu *g, const sn_library_kind *kind, char *text, size_t size);

/* What a library would run. */
typedef struct {
    char impl[40]; /* "cublaslt:66.20.1 ws 4MiB", "cudnn:eng12.3fa1 ws 7MiB"; "": refused */
    size_t workspace_bytes;
    bool bias, relu; /* which of them an engine takes on; the rest is the caller's */
} sn_choice;

/* What a way uses is what it said when the call was planned. */
snug_status sn_scratch_check(const sn_call *call, size_t bytes, snug_error *err);

/* How much quicker libraries multiply halves than f32 in TF32, whose rate plans know. */
static inline double sn_library_efficiency(snug_dtype dtype) {
    return sn_dtype_is_half(dtype) ? 2 : 1;
}

/* What was asked: numbers that say everything, the rest 0. */
typedef struct {
    int64_t word[SN_KEY_WORDS];
} sn_answer_key;

/* Zeroed: none yet. */
typedef struct {
    bool known[SN_ANSWERS];
    sn_answer_key key[SN_ANSWERS];
    sn_choice choice[SN_ANSWERS];
} sn_answers;

/* What a missing library may have said, where the object pretends: then SNUG_OK, else `missing`. */
snug_status sn_choice_absent(const sn_gpu *g, const char *impl, snug_status missing,
                             sn_choice *out);

/* Asks the library: SNUG_E_UNSUPPORTED is a refusal, which is an answer, too; SNUG_E_MEMORY is
 * none. */
typedef snug_status (*sn_asker)(const sn_gpu *g, void *table, const void *what, sn_choice *out,
                                snug_error *err);
/* The answer, asked for where it is not known yet. SNUG_E_UNSUPPORTED without a text: refused. */
snug_status sn_answers_get(const sn_gpu *g, sn_answers *a, const sn_answer_key *key, sn_asker ask,
                           void *table, const void *what, sn_choice *out, snug_error *err);

/* --- for the object -------------------------------------------------------------------------- */
/* Both load the library. */
void sn_blas_version(const sn_gpu *g, char *text, size_t size);
void sn_dnn_version(const sn_gpu *g, char *text, size_t size);
/* Handles go; all plans are gone already. Nothing to do where none was loaded. */
void sn_blas_close(sn_gpu *g);
void sn_dnn_close(sn_gpu *g);

/* --- cuBLASLt -------------------------------------------------------------------------------- */
/* C[b] = act(A[b] B[b] + bias), matrices by rows: A is [M, K], with trans_a it lies as [K, M];
 * likewise B [K, N]. Pitches are elements between rows as they lie, steps between entries. Sums are
 * made in f32. */
typedef struct {
    int64_t batch, M, N, K;
    bool trans_a, trans_b;
    int64_t a_pitch, b_pitch, c_pitch;
    int64_t a_step, b_step, c_step;
    bool bias, relu;
    snug_dtype dtype, out; /* of A and B: f32 or halves; of C and the bias: f32, or A's */
} sn_blas_product;

typedef struct sn_blas_plan sn_blas_plan;

typedef struct {
    const void *a, *b, *bias;
    void *c;
    bool add; /* to what is in C */
    void *workspace;
} sn_blas_operands;

/* The first way its heuristic names under the cap; SNUG_E_UNSUPPORTED where there is none, or no
 * library. */
snug_status sn_blas_choose(const sn_gpu *g, const sn_blas_product *p, sn_choice *out,
                           snug_error *err);
/* impl pins the way: the one of that name, if it takes these extents, else the first. */
snug_status sn_blas_make(sn_gpu *g, const sn_blas_product *p, const char *impl, sn_blas_plan **out,
                         snug_error *err);
void sn_blas_drop(sn_gpu *g, sn_blas_plan *plan);
size_t sn_blas_workspace(const sn_blas_plan *plan);
snug_status sn_blas_run(const sn_gpu *g, const sn_blas_plan *plan, const sn_blas_operands *o,
                        cudaStream_t stream, snug_error *err);

/* --- cuDNN ----------------------------------------------------------------------------------- */
typedef enum { SN_DNN_FORWARD, SN_DNN_DX, SN_DNN_DW } sn_dnn_kind;

/* x [N, H, W, C], w [O, kh, kw, C] (mind the order), y [N, oh, ow, O], all dense and of one type,
 * f32 or halves, summed in f32; pad is top, bottom, left, right. */
typedef struct {
    sn_dnn_kind kind;
    snug_dtype dtype;
    int64_t N, H, W, C, kh, kw, O, oh, ow;
    int64_t stride[2], pad[4], dilation[2];
    bool bias, relu; /* forward only */
} sn_dnn_conv;

typedef struct sn_dnn_plan sn_dnn_plan;

/* Those that are inputs and the one that is the output, by kind. */
typedef struct {
    void *x, *w, *y;
    const void *bias;
    void *workspace;
} sn_dnn_operands;

/* The first deterministic engine of its heuristic under the cap that needs no compiler at run time;
 * SNUG_E_UNSUPPORTED where there is none, or no library. */
snug_status sn_dnn_choose(const sn_gpu *g, const sn_dnn_conv *v, sn_choice *out, snug_error *err);
snug_status sn_dnn_make(sn_gpu *g, const sn_dnn_conv *v, const char *impl, sn_dnn_plan **out,
                        snug_error *err);
void sn_dnn_drop(sn_gpu *g, sn_dnn_plan *plan);
size_t sn_dnn_workspace(const sn_dnn_plan *plan);
/* Whether the engine adds the bias and takes relu. */
bool sn_dnn_takes_bias(const sn_dnn_plan *plan);
bool sn_dnn_takes_relu(const sn_dnn_plan *plan);
snug_status sn_dnn_run(const sn_gpu *g, const sn_dnn_plan *plan, const sn_dnn_operands *o,
                       cudaStream_t stream, snug_error *err);

#endif
