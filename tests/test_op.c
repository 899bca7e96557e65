/* test_op.c: the operator table as text cases. "op attr=.. type.. -> type.." must infer exactly
 * these outputs, "op attr=.. type.. !! words" must fail with a text that has the words in it. Every
 * good case also checks its axis rule: cutting a label in the inputs must give outputs cut in the
 * same place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "op/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading cases --------------------------------------------------------------------------- */
static const char *const good[] = {
    /* sources */
    "fill dims=2,3 dtype=f64 value=p0 -> f64[2,3]",
    "fill value=p0 -> f32[]",
    "fill dims=0,-1 dtype=bool value=p0 -> bool[0,?]",
    "random dims=5 kind=1 key=p0 low=p1 high=p2 -> f32[5]",
    /* unary */
    "identity i32[2,?] -> i32[2,?]",
    "stop_gradient bool[3] -> bool[3]",
    "neg i8[3] -> i8[3]",
    "abs f32[3] -> f32[3]",
    "sign f32[3] -> f32[3]",
    "square f32[0,3] -> f32[0,3]",
    "sqrt f32[] -> f32[]",
    "rsqrt f64[1] -> f64[1]",
    "reciprocal f32[2] -> f32[2]",
    "exp f16[2] -> f16[2]",
    "log bf16[2] -> bf16[2]",
    "tanh f32[2] -> f32[2]",
    "sigmoid f32[2] -> f32[2]",
    "softplus f32[2] -> f32[2]",
    "erf f32[2] -> f32[2]",
    "relu i32[2] -> i32[2]",
    "leaky_relu value=p3 f32[2] -> f32[2]",
    "elu value=p3 f32[2] -> f32[2]",
    "silu f32[2] -> f32[2]",
    "gelu f32[2,3,4,5,6,7,8,9] -> f32[2,3,4,5,6,7,8,9]",
    "gelu_tanh f32[2] -> f32[2]",
    "mish f32[2] -> f32[2]",
    "mish_grad f64[2] f64[2] -> f64[2]",
    "relu_max value=p0 f32[2] -> f32[2]",
    "hard_sigmoid f32[2] -> f32[2]",
    "hard_silu f64[2] -> f64[2]",
    "gelu_tanh_grad f32[2] f32[2] -> f32[2]",
    "relu_max_grad value=p0 f32[2] f32[2] -> f32[2]",
    "hard_silu_grad f32[2] f32[2] -> f32[2]",
    "affine scale=p1 shift=p2 f32[2] -> f32[2]",
    "power value=p1 f32[2] -> f32[2]",
    "clip low=p1 high=p2 i64[2] -> i64[2]",
    "cast dtype=u8 f32[2] -> u8[2]",
    "cast dtype=f32 bool[2] -> f32[2]",
    "cast dtype=bool i64[2] -> bool[2]",
    "logical_not bool[2] -> bool[2]",
    "sin f32[2,?] -> f32[2,?]",
    "cos f32[2,?] -> f32[2,?]",
    "tan f32[2,?] -> f32[2,?]",
    "asin f32[2,?] -> f32[2,?]",
    "acos f32[2,?] -> f32[2,?]",
    "atan f32[2,?] -> f32[2,?]",
    "sinh f32[2,?] -> f32[2,?]",
    "cosh f32[2,?] -> f32[2,?]",
    "asinh f32[2,?] -> f32[2,?]",
    "acosh f32[2,?] -> f32[2,?]",
    "atanh f32[2,?] -> f32[2,?]",
    "log1p f32[2,?] -> f32[2,?]",
    "expm1 f32[2,?] -> f32[2,?]",
    "erfc f32[2,?] -> f32[2,?]",
    "erfinv f32[2,?] -> f32[2,?]",
    "lgamma f32[2,?] -> f32[2,?]",
    "digamma f32[2,?] -> f32[2,?]",
    "trigamma f32[2,?] -> f32[2,?]",
    "floor f32[2,?] -> f32[2,?]",
    "ceil f32[2,?] -> f32[2,?]",
    "round f32[2,?] -> f32[2,?]",
    "trunc f32[2,?] -> f32[2,?]",
    "isnan f32[2] -> bool[2]",
    "isinf f64[2] -> bool[2]",
    "isfinite f32[2] -> bool[2]",
    "check_finite f32[2] -> f32[2]",
    "dropout rate=p0 key=p1 f32[4,2] -> f32[4,2]",
    /* pairs: what one of them knows, the output knows */
    "relu_grad f32[?,3] f32[2,?] -> f32[2,3]",
    "leaky_relu_grad value=p0 f32[2] f32[2] -> f32[2]",
    "elu_grad value=p0 f32[2] f32[2] -> f32[2]",
    "tanh_grad f32[2] f32[2] -> f32[2]",
    "sigmoid_grad f32[2] f32[2] -> f32[2]",
    "silu_grad f32[2] f32[2] -> f32[2]",
    "gelu_grad f64[2] f64[2] -> f64[2]",
    "sigmoid_xent f32[2,3] f32[2,3] -> f32[2,3]",
    /* broadcasting */
    "add f32[2,3] f32[3] -> f32[2,3]",
    "add f32[2,1] f32[1,3] -> f32[2,3]",
    "add f32[] f32[4] -> f32[4]",
    "add f32[0,3] f32[1,3] -> f32[0,3]",
    "add f32[?] f32[1] -> f32[?]",
    "add f32[1] f32[?] -> f32[?]",
    "add f32[?] f32[5] -> f32[5]",
    "add f32[?] f32[?] -> f32[?]",
    "sub i32[2] i32[2] -> i32[2]",
    "mul f32[2,3] f32[2,3] -> f32[2,3]",
    "div f32[2,3] f32[] -> f32[2,3]",
    "maximum f32[2] f32[2] -> f32[2]",
    "pow i32[2,1] i32[3] -> i32[2,3]",
    "floor_div f32[2] f32[] -> f32[2]",
    "mod u8[2] u8[2] -> u8[2]",
    "atan2 f32[2] f32[2] -> f32[2]",
    "not_equal bool[2] bool[2] -> bool[2]",
    "minimum u8[2] u8[2] -> u8[2]",
    "equal i64[4,1] i64[3] -> bool[4,3]",
    "greater f32[2] f32[2] -> bool[2]",
    "greater_equal f32[2] f32[2] -> bool[2]",
    "logical_and bool[2,1] bool[2] -> bool[2,2]",
    "logical_or bool[2] bool[2] -> bool[2]",
    "select bool[2,1] f32[3] f32[] -> f32[2,3]",
    "select bool[5] i32[] i32[] -> i32[5]",
    "broadcast_to dims=4,2,3 f32[2,1] -> f32[4,2,3]",
    "broadcast_to dims=-1,3 f32[7,1] -> f32[7,3]",
    /* reductions */
    "sum f32[2,3,4] -> f32[]",
    "sum axes=1 f32[2,3,4] -> f32[2,4]",
    "sum axes=2,0 keepdims=1 f32[2,3,4] -> f32[1,3,1]",
    "sum f32[] -> f32[]",
    "max axes=0 i32[2,3] -> i32[3]",
    "argmax axis=1 dtype=i64 f32[2,3] -> i64[2]",
    "argmax axis=0 dtype=i32 f32[2,0] -> i32[0]",
    /* matrices */
    "matmul f32[2,3] f32[3,4] -> f32[2,4]",
    "matmul f32[2,3] f32[3,4] f32[4] -> f32[2,4]",
    "matmul trans_a=1 f32[3,2] f32[3,4] -> f32[2,4]",
    "matmul trans_b=1 f32[2,3] f32[4,3] -> f32[2,4]",
    "matmul trans_a=1 trans_b=1 act=relu f64[3,2] f64[4,3] -> f64[2,4]",
    "matmul f32[5,6,2,3] f32[3,4] f32[4] -> f32[5,6,2,4]",
    "matmul f32[5,6,2,3] f32[5,6,3,4] -> f32[5,6,2,4]",
    "matmul f32[5,1,2,3] f32[6,3,4] -> f32[5,6,2,4]",
    "matmul f32[?,2,3] f32[?,3,?] f32[8] -> f32[?,2,8]",
    "matmul f32[2,0] f32[0,4] -> f32[2,4]",
    "matmul fold_b=1 f32[?,7,3] f32[3,4,2] f32[8] -> f32[?,7,8]",
    "matmul fold_b=2 trans_b=1 f32[5,6] f32[3,4,2,3] -> f32[5,12]",
    /* convolution: (7 + 2 - 3) / 2 + 1 = 4 */
    "conv2d f32[2,8,9,3] f32[3,2,3,5] -> f32[2,6,8,5]",
    "conv2d stride=2,2 pad=1,1,0,1 act=relu f32[2,7,8,3] f32[3,3,3,5] f32[5] -> f32[2,4,4,5]",
    "conv2d dilation=2,3 f32[2,8,9,3] f32[3,2,3,5] -> f32[2,4,6,5]",
    "conv2d groups=3 f32[2,4,4,6] f32[1,1,2,9] -> f32[2,4,4,9]",
    "conv2d f32[?,?,9,?] f32[3,2,3,5] -> f32[?,?,8,5]",
    "conv2d f32[0,3,3,1] f32[3,3,1,1] -> f32[0,1,1,1]",
    "conv2d_dx stride=2,2 pad=1,1,0,1 input=7,8 f32[2,4,4,5] f32[3,3,3,5] -> f32[2,7,8,3]",
    "conv2d_dx groups=2 input=4,4 f32[2,4,4,6] f32[1,1,2,6] -> f32[2,4,4,4]",
    "conv2d_dw stride=2,2 pad=1,1,0,1 kernel=3,3 f32[2,7,8,3] f32[2,4,4,5] -> f32[3,3,3,5]",
    "conv2d_dw kernel=1,1 bias=1 f32[2,4,4,6] f32[2,4,4,9] -> f32[1,1,6,9] f32[9]",
    "conv2d_dw kernel=1,1 groups=3 f32[2,4,4,6] f32[2,4,4,9] -> f32[1,1,2,9]",
    "conv2d_pool pool=2,2,2,2,0,0,0,0 f32[2,7,8,3] f32[3,3,3,5] f32[5] -> f32[2,2,3,5]",
    "conv2d_pool codes=1 act=relu pool=2,2,2,2,0,1,0,0 f32[?,7,8,3] f32[3,3,3,5] -> f32[?,3,3,5] "
    "opaque[?,3,3,5]",
    "conv2d_pool_dx input=7,8 pool=2,2,2,2,0,0,0,0 f32[2,2,3,5] f32[3,3,3,5] opaque[2,2,3,5] -> "
    "f32[2,7,8,3]",
    "conv2d_pool_dw kernel=3,3 bias=1 pool=2,2,2,2,0,0,0,0 f32[2,7,8,3] f32[2,2,3,5] "
    "opaque[2,2,3,5] -> f32[3,3,3,5] f32[5]",
    "maxpool kernel=2,3 stride=2,2 pad=0,1,1,1 f32[2,5,6,4] -> f32[2,3,3,4] opaque[2,3,3,4]",
    "maxpool_grad kernel=2,3 stride=2,2 pad=0,1,1,1 input=5,6 f32[2,3,3,4] opaque[2,3,3,4] -> "
    "f32[2,5,6,4]",
    "maxpool_pick kernel=2,3 stride=2,2 pad=0,1,1,1 input=5,6 f32[2,5,6,4] opaque[2,3,3,4] -> "
    "f32[2,3,3,4]",
    "avgpool kernel=5,6 f32[2,5,6,4] -> f32[2,1,1,4]",
    "avgpool_grad kernel=2,2 stride=2,2 input=5,6 f32[2,2,3,4] -> f32[2,5,6,4]",
    /* normalisation */
    "moments f32[2,3,4] -> f64[4] f64[4]",
    "moments f32[4] -> f64[4] f64[4]",
    "normalise epsilon=p0 f32[2,3,4] f32[4] f32[4] f32[4] f32[4] -> f32[2,3,4]",
    "normalise_line epsilon=p0 f32[4] f32[4] f32[4] f32[4] -> f32[2,4]",
    "normalise_line epsilon=p0 f64[?] f64[4] f64[4] f64[4] f64[4] -> f64[2,4]",
    "conv2d f32[1,5,5,2] f32[3,3,2,4] f32[2,4] -> f32[1,3,3,4]",
    "normalise_sums epsilon=p0 f32[2,3,4] f32[2,3,4] f32[4] f32[4] -> f32[4] f32[4]",
    "channel_affine f32[2,4] f32[2,4] f32[4] f32[4] f32[4] -> f32[2,4]",
    "layernorm epsilon=p0 f32[2,3,4] f32[4] f32[4] -> f32[2,3,4] f32[2,3] f32[2,3]",
    "layernorm epsilon=p0 f32[4,4] f32[4] f32[4] -> f32[4,4] f32[4] f32[4]",
    "layernorm_dx f32[4,4] f32[4,4] f32[4] f32[4] f32[4] -> f32[4,4]",
    "layernorm_dx f32[2,3,4] f32[2,3,4] f32[4] f32[2,3] f32[2,3] -> f32[2,3,4]",
    "layernorm_sums f32[4,4] f32[4,4] f32[4] f32[4] -> f32[4] f32[4]",
    "layernorm_sums f32[2,3,4] f32[2,3,4] f32[2,3] f32[2,3] -> f32[4] f32[4]",
    "attention scale=p0 rate=p1 key=p2 f32[?,5,6,4] f32[2,7,3,4] f32[?,7,3,8] -> f32[2,5,6,8] "
    "f32[2,5,6]",
    "attention causal=1 scale=p0 rate=p1 key=p2 f64[5,6,4] f64[7,3,4] f64[7,3,8] bool[1,5,7] -> "
    "f64[5,6,8] f64[5,6]",
    "attention_grad scale=p0 rate=p1 key=p2 f32[2,5,6,4] f32[2,7,3,4] f32[2,7,3,8] f32[2,5,6,8] "
    "f32[2,5,6] f32[2,5,6,8] -> f32[2,5,6,4] f32[2,7,3,4] f32[2,7,3,8]",
    /* rows */
    "softmax f32[2,3] -> f32[2,3]",
    "softmax_grad f32[2,3] f32[2,3] -> f32[2,3]",
    "log_softmax f32[3] -> f32[3]",
    "softmax_xent f32[2,3] f32[2,3] -> f32[2]",
    "softmax_xent_grad f32[2,3] f32[2,3] f32[2] -> f32[2,3]",
    "sparse_xent f32[2,5,3] i32[2,5] -> f32[2,5]",
    "sparse_xent f32[?,3] i64[7] -> f32[7]",
    "sparse_xent_grad f32[?,3] i64[7] f32[?] -> f32[7,3]",
    /* shapes */
    "reshape dims=6 f32[2,3] -> f32[6]",
    "reshape dims=-1,3 f32[4,3,2] -> f32[8,3]",
    "reshape dims=8,4 f32[2,4,4] -> f32[8,4]",
    "reshape dims=2,3,4 i32[6,4] -> i32[2,3,4]",
    "reshape dims=4,1,6 f32[4,6] -> f32[4,1,6]",
    "reshape dims=8,3 f32[4,6] -> f32[8,3]",
    "reshape dims=-1,4 f32[0,8] -> f32[0,4]",
    "reshape dims=-1,4 f32[?,8] -> f32[?,4]",
    "reshape dims=2,8 f32[?,8] -> f32[2,8]",
    "reshape dims=-1,-1,4 f32[?,?,2,2] -> f32[?,?,4]",
    "reshape f32[1,1] -> f32[]",
    "transpose perm=2,0,1 f32[2,3,4] -> f32[4,2,3]",
    "transpose f32[] -> f32[]",
    "concat axis=1 f32[2,3] f32[2,4] f32[2,0] -> f32[2,7]",
    "concat axis=0 f32[?,3] f32[2,?] -> f32[?,3]",
    "concat axis=0 i32[3] -> i32[3]",
    "slice sizes=2,3 start=p1,p2 f32[4,3] -> f32[2,3]",
    "slice sizes=2,2 strides=3,2 start=p1,p2 f32[4,3] -> f32[2,2]",
    "slice sizes=-1,2 start=p1,p2 f32[?,3] -> f32[?,2]",
    "slice sizes=0 start=p0 f32[0] -> f32[0]",
    "slice_grad dims=4,3 start=p1,p2 f32[2,3] -> f32[4,3]",
    "slice_grad dims=-1,3 start=p1,p2 f32[5,2] -> f32[5,3]",
    "pad before=1,0 after=2,0 value=p0 f32[2,3] -> f32[5,3]",
    "gather axis=0 f32[9,4] i32[2,3] -> f32[2,3,4]",
    "gather axis=1 f32[9,4,5] i64[2,3] -> f32[9,2,3,5]",
    "gather axis=1 f32[9,4] i64[] -> f32[9]",
    "scatter_add dims=9,4 axis=0 i32[2,3] f32[2,3,4] -> f32[9,4]",
    "scatter_add dims=9,-1,5 axis=0 i32[] f32[4,5] -> f32[9,4,5]",
    "lstm act=tanh gate_act=sigmoid f32[?,3,20] f32[5,20] f32[2,5] f32[?,5] bool[?,?] -> "
    "f32[2,3,20] f32[2,3,5] f32[2,10] f32[2,3,5]",
    "lstm_grad reverse=1 f32[2,3,20] f32[5,20] f32[2,10] f32[2,5] f32[2,3,5] f32[2,3,5] -> "
    "f32[2,3,20] f32[2,5] f32[2,5]",
    "gru f64[2,3,15] f64[5,15] f64[2,5] f64[2,15] -> f64[2,3,15] f64[2,3,5] f64[2,5]",
    "gru reset_after=1 f32[2,3,15] f32[5,15] f32[2,5] f32[15] -> f32[2,3,15] f32[2,3,5] f32[2,5] "
    "f32[2,3,5]",
    "gru_grad f32[2,3,15] f32[5,15] f32[2,5] f32[2,5] f32[2,3,5] -> f32[2,3,15] f32[2,5]",
    "gru_grad reset_after=1 f32[2,3,15] f32[5,15] f32[2,5] f32[2,5] f32[2,3,5] f32[2,3,5] -> "
    "f32[2,3,15] f32[2,5] f32[2,3,5]",
    "simple_rnn act=hard_sigmoid f32[?,?,5] f32[5,5] f32[?,5] -> f32[?,?,5] f32[?,5]",
    "simple_rnn_grad f32[2,3,5] f32[5,5] f32[2,5] -> f32[2,3,5] f32[2,5]",
    "one_hot depth=10 i32[2,3] -> f32[2,3,10]",
    "slice sizes=3,-1 strides=-2,-1 start=p0,p1 f32[6,4] -> f32[3,4]",
    "slice_grad dims=6 strides=-2 start=p0 f32[3] -> f32[6]",
    "gather_nd batch=0 f32[4,5,6] i32[7,2] -> f32[7,6]",
    "gather_nd batch=1 f32[?,5,6] i32[?,3,1] -> f32[?,3,6]",
    "scatter_nd dims=4,5,6 batch=0 i32[7,2] f32[7,6] -> f32[4,5,6]",
    "scatter_nd dims=-1,5,-1 batch=1 i32[3,2,1] f32[3,2,6] -> f32[3,5,6]",
    "band low=-1 high=0 bool[2,3,4] -> bool[2,3,4]",
    "resize size=4,6 method=1 f32[?,2,3,5] -> f32[?,4,6,5]",
    "resize_grad size=2,3 method=3 antialias=1 f64[7,4,6,5] -> f64[7,2,3,5]",
    "warp size=4,6 mode=1 value=p0 f32[?,2,3,5] f32[7,8] -> f32[7,4,6,5]",
    "warp_grad size=2,3 mode=3 nearest=1 f32[7,4,6,5] f32[7,8] -> f32[7,2,3,5]",
    "one_hot depth=0 dtype=i64 i64[] -> i64[0]",
    "prod axes=1 i32[2,3] -> i32[2]",
    "min axes=0 keepdims=1 f32[2,3] -> f32[1,3]",
    "max bool[2,3] -> bool[]",
    "argmin axis=0 dtype=i64 u8[4,5] -> i64[5]",
    "cumsum axis=1 reverse=1 f32[2,?] -> f32[2,?]",
    "cumprod axis=0 exclusive=1 i64[2] -> i64[2]",
    "sort dtype=i32 f32[?,5] -> f32[?,5] i32[?,5]",
    "sort descending=1 k=3 dtype=i64 u8[2,?] -> u8[2,3] i64[2,3]",
    /* state */
    "assign bool[2] bool[2] -> bool[2]",
    "assign_add i64[] i64[] -> i64[]",
    "moving_average momentum=p0 f32[2] f32[2] -> f32[2]",
    "sgd rate=p0 momentum=p1 f32[2] f32[2] -> f32[2]",
    "sgd_momentum nesterov=1 rate=p0 momentum=p1 f32[2] f32[2] f32[2] -> f32[2] f32[2]",
    "amsgrad rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 f64[2] f64[2] f64[2] f64[2] "
    "f64[2] -> f64[2] f64[2] f64[2] f64[2]",
    "rmsprop rate=p0 rho=p1 momentum=p2 epsilon=p3 f32[2] f32[2] f32[2] -> f32[2] f32[2]",
    "adagrad rate=p0 epsilon=p1 f32[2] f32[2] f32[2] -> f32[2] f32[2]",
    "adadelta rate=p0 rho=p1 epsilon=p2 f32[2] f32[2] f32[2] f32[2] -> f32[2] f32[2] f32[2]",
    "matmul_adam rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 f32[3,2] f32[3,2] "
    "f32[3,2] f32[5,3] f32[5,2] -> f32[3,2] f32[3,2] f32[3,2]",
    "adamax rate=p0 one_minus_beta1=p1 beta2=p2 epsilon=p3 f32[2] f32[2] f32[2] f32[2] -> f32[2] "
    "f32[2] f32[2]",
    "nadam one_minus_beta1=p0 one_minus_beta2=p1 epsilon=p2 mean_rate=p3 now_rate=p4 "
    "square_part=p5 f32[2] f32[2] f32[2] f32[2] -> f32[2] f32[2] f32[2]",
    "lion rate=p0 beta1=p1 beta2=p2 f32[2] f32[2] f32[2] -> f32[2] f32[2]",
    "ftrl rate=p0 power=p1 l1=p2 l2=p3 shrinkage=p4 f32[2] f32[2] f32[2] f32[2] -> f32[2] f32[2] "
    "f32[2]",
    "weight_decay rate=p0 decay=p1 f32[2] -> f32[2]",
    "rmsprop centered=1 rate=p0 rho=p1 momentum=p2 epsilon=p3 f32[2] f32[2] f32[2] f32[2] f32[2] "
    "-> f32[2] f32[2] f32[2] f32[2]",
    "adam rate=p0 one_minus_beta1=p1 one_minus_beta2=p2 epsilon=p3 f32[2] f32[2] f32[2] f32[2] -> "
    "f32[2] f32[2] f32[2]",
};

static const char *const bad[] = {
    "matmul f32[2,3] !! matmul takes 2 to 3 inputs, got 1",
    "neg f32[2] f32[2] !! neg takes 1 inputs, got 2",
    "fill dims=-2 !! extent -2",
    "fill dims=4611686018427387904,4 !! fill: output 0",
    "broadcast_to dims=4611686018427387904,4 f32[] !! address space",
    "random dims=2 kind=7 !! kind=7",
    "random dims=2 dtype=i32 !! dtype=i32",
    "neg bool[2] !! neg: input 0 is bool[2]",
    "sqrt i32[2] !! sqrt: input 0 is i32[2]; it must be of a float type",
    "logical_not f32[2] !! must be bool",
    "sum bool[2] !! must be of a float or integer type",
    "prod axes=0,0 f32[2] !! twice",
    "cumsum axis=1 f32[2] !! axis 1",
    "cumsum axis=0 reverse=2 f32[2] !! reverse",
    "cumprod axis=0 bool[2] !! must be of a float or integer type",
    "sort k=6 dtype=i32 f32[2,5] !! k=6 of the 5",
    "sort f32[5] !! positions are i32 or i64",
    "sort dtype=i32 f32[] !! 1 to 8 axes",
    "sin i32[2] !! must be of a float type",
    "isnan bool[2] !! must be of a float type",
    "equal opaque[2] opaque[2] !! opaque",
    "pow bool[2] bool[2] !! must be of a float or integer type",
    "identity opaque[2] !! opaque",
    "relu_grad f32[2] f32[3] !! input 0 is f32[2] and input 1 is f32[3]; to fit it must be f32[2]",
    "relu_grad f32[2] f64[2] !! one dtype",
    "add f32[2,3] f32[4] !! f32[2,3] and f32[4] do not broadcast: axis 1 has 3 and 4",
    "add f32[2] i32[2] !! cast one",
    "add bool[2] bool[2] !! float or integer",
    "div i32[2] i32[2] !! float type",
    "add f32[0] f32[2] !! axis 0 has 0 and 2",
    "select f32[2] f32[2] f32[2] !! must be bool",
    "broadcast_to dims=2 f32[3] !! 2 and 3",
    "broadcast_to dims=2 f32[2,2] !! f32[2,2] does not broadcast to f32[2]",
    "broadcast_to dims=1 f32[2] !! f32[2] does not broadcast to f32[1]",
    "sum axes=2 f32[2,3] !! axis 2 of f32[2,3]; axes count from 0 to 1",
    "sum axes=-1 f32[2,3] !! axis -1",
    "sum axes=0,0 f32[2,3] !! axis 0 is there twice",
    "sum axes=0 f32[] !! a scalar has no axes",
    "sum keepdims=2 f32[2] !! keepdims=2",
    "argmax axis=0 f32[2] !! positions are i32 or i64",
    "argmax axis=0 dtype=i32 f32[0,2] !! has no elements",
    "matmul fold_b=2 f32[2,3] f32[3,1] !! some axes must be left for the columns",
    "matmul f32[2,3] f32[4,3] !! the inner extents 3 and 4 must be equal",
    "matmul trans_b=1 f32[2,3] f32[3,4] !! f32[3,4] transposed: the inner extents 3 and 4",
    "matmul f32[3] f32[3,4] !! it must have 2 to 8 axes",
    "matmul f32[2,2,3] f32[4,3,4] !! leading axes of f32[2,2,3] and f32[4,3,4]",
    "matmul f32[2,3] f32[3,4] f32[5] !! to fit it must be f32[4]",
    "matmul i32[2,3] i32[3,4] !! float type",
    "matmul trans_a=3 f32[2,3] f32[3,4] !! trans_a=3",
    "conv2d f32[2,8,8,3] f32[3,3,4,5] !! the kernel must have 3 input channels",
    "conv2d f32[2,4,4,3] f32[5,5,3,5] !! a kernel of 5 (dilation 1: 5) does not fit the input of 4",
    "conv2d f32[2,4,4,3] f32[2,2,3,5] f32[3,5] !! input 2 is f32[3,5]",
    "conv2d f32[2,4,4,3] f32[2,2,3,5] f32[2,4] !! input 2 is f32[2,4]",
    "normalise_line epsilon=p0 f32[4] f32[4] f32[3] f32[4] !! input 2 is f32[3]",
    "conv2d dilation=4,1 f32[2,4,4,3] f32[2,2,3,5] !! (dilation 4: 5)",
    "conv2d stride=0,1 f32[2,4,4,3] f32[2,2,3,5] !! stride has the value 0",
    "conv2d pad=0,-1,0,0 f32[2,4,4,3] f32[2,2,3,5] !! pad has the value -1",
    "conv2d dilation=1,0 f32[2,4,4,3] f32[2,2,3,5] !! dilation has the value 0",
    "conv2d groups=0 f32[2,4,4,3] f32[2,2,3,5] !! groups has the value 0",
    "conv2d groups=2 f32[2,4,4,3] f32[2,2,1,4] !! 3 channels do not divide into 2 groups",
    "conv2d groups=2 f32[2,4,4,4] f32[2,2,2,5] !! 5 channels do not divide into 2 groups",
    "conv2d f32[2,4,4,3] f32[0,1,3,5] !! a kernel of 0",
    "conv2d dilation=2147483647,1 f32[2,4,4,0] f32[1152921504606846976,1,0,1] !! address space",
    "conv2d f32[4,4,3] f32[2,2,3,5] !! it must have 4 axes",
    "conv2d f32[2,4,4,3] f32[2,2,3,5] f32[4] !! to fit it must be f32[5]",
    "conv2d_dx input=9,8 f32[2,4,4,5] f32[3,3,3,5] !! an image of 9 x 8 gives 7 x 6 windows",
    "conv2d_dx input=6,6 f32[2,4,4,4] f32[3,3,3,5] !! their last extents must be equal",
    "lstm f32[2,3,20] f32[5,20] f32[2,5] f32[2,4] !! input 3 is f32[2,4]; to fit it must be "
    "f32[2,5]",
    "lstm f32[2,3,20] f32[4,20] f32[2,5] f32[2,5] !! to fit it must be f32[4,16]",
    "lstm f32[2,3,8] f32[2,8] f32[2,2] f32[2,2] bool[2,3] bool[2,3] !! there is one like it before",
    "lstm f32[2,3,8] f32[2,8] f32[2,2] f32[2,2] f32[2,2] !! to fit it must be f32[2,8]",
    "lstm i32[2,3,8] f32[2,8] f32[2,2] f32[2,2] !! float type",
    "gru reset_after=1 f32[2,3,6] f32[2,6] f32[2,2] !! reset_after=1 takes 4 inputs or more, not 3",
    "gru reset_after=2 f32[2,3,6] f32[2,6] f32[2,2] !! reset_after=2",
    "simple_rnn f32[2,3,5] f32[5,5] f32[3,5] !! to fit it must be f32[2,5]",
    "conv2d_dw kernel=0,0 f32[2,6,6,3] f32[2,4,4,5] !! kernel has the value 0",
    "conv2d_dw kernel=3,3 f32[2,6,6,3] f32[3,4,4,5] !! their first extents must be equal",
    "conv2d_dw kernel=3,3 f32[2,6,6,3] f32[2,5,4,5] !! gives 4 x 4 windows",
    "conv2d_pool f32[2,7,8,3] f32[3,3,3,5] !! stride has the value 0",
    "conv2d_pool act=tanh pool=2,2,2,2,0,0,0,0 f32[2,7,8,3] f32[3,3,3,5] !! is none or relu",
    "conv2d_pool pool=6,2,2,2,0,0,0,0 f32[2,7,8,3] f32[3,3,3,5] !! does not fit the input of 5",
    "conv2d_pool_dx input=7,8 pool=2,2,2,2,0,0,0,0 f32[2,5,6,5] f32[3,3,3,5] opaque[2,2,3,5] !! "
    "gives 2 x 3 windows",
    "conv2d_pool_dw kernel=3,3 pool=2,2,2,2,0,0,0,0 f32[2,7,8,3] f32[2,2,3,5] f32[2,2,3,5] !! "
    "opaque second output of the pooling",
    "conv2d_pool_dw kernel=3,3 pool=2,2,2,2,0,0,0,0 f32[2,7,8,3] f32[2,2,3,5] opaque[2,2,3,4] !! "
    "to fit",
    "maxpool f32[2,6,6,3] !! kernel has the value 0",
    "maxpool kernel=2,2 pad=2,0,0,0 f32[2,6,6,3] !! padding of 2 for a kernel of 2",
    "maxpool kernel=7,1 f32[2,6,6,3] !! along the height a kernel of 7",
    "avgpool kernel=2,2 pad=1,1,1,1 f32[2,0,6,3] !! nothing to pool",
    "maxpool_grad kernel=2,2 stride=2,2 input=6,6 f32[2,3,3,4] f32[2,3,3,4] !! opaque second "
    "output",
    "maxpool_grad kernel=2,2 stride=2,2 input=6,6 f32[2,3,3,4] opaque[2,3,3,5] !! to fit",
    "maxpool_pick kernel=2,2 stride=2,2 input=5,6 f32[2,6,6,4] opaque[2,3,3,4] !! input=5,6",
    "avgpool_grad kernel=2,2 stride=2,2 input=8,6 f32[2,3,3,4] !! gives 4 x 3 windows",
    "moments f32[] !! it must have 1 to 8 axes",
    "normalise f32[2,3] f32[2] f32[3] f32[3] f32[3] !! input 1 is f32[2]; to fit it must be f32[3]",
    "normalise f32[2,3] f64[3] f32[3] f32[3] f32[3] !! one dtype",
    "attention scale=p0 rate=p1 key=p2 f32[2,5,6,4] f32[2,7,4,4] f32[2,7,4,8] !! the heads of k "
    "must divide those of q",
    "attention scale=p0 rate=p1 key=p2 f32[2,5,0,4] f32[2,7,4,4] f32[2,7,4,8] !! the heads of k "
    "must divide those of q",
    "attention scale=p0 rate=p1 key=p2 f32[2,5,3,4] f32[2,7,3,4] f32[2,6,3,8] !! the same steps "
    "and heads",
    "attention scale=p0 rate=p1 key=p2 f32[2,5,3,4] f32[2,7,3,4] f32[2,7,3,8] bool[2,3,5,6] !! "
    "does not spread over the scores f32[2,3,5,7]",
    "layernorm_dx f32[2,3] f32[2,3] f32[3] f32[2] f32[3] !! input 4 is f32[3]; to fit it must be "
    "f32[2]",
    "softmax f32[] !! 1 to 8 axes",
    "softmax_grad f32[] f32[] !! 1 to 8 axes",
    "softmax_xent f32[2,3] f32[2,4] !! to fit",
    "sparse_xent f32[2,3] f32[2] !! i32 or i64",
    "sparse_xent f32[2,3] i32[3] !! to fit it must be i32[2]",
    "sparse_xent_grad f32[2,3] i32[2] f32[3] !! to fit it must be f32[2]",
    "softmax_xent_grad f32[2,3] i32[2] f32[2] !! one dtype",
    "reshape dims=4 f32[2,3] !! f32[2,3] has 6 elements and does not fit f32[4]",
    "reshape dims=-1,4 f32[2,3] !! does not fit f32[?,4]",
    "reshape dims=-1,-1 f32[2,3] !! give all but one",
    "reshape dims=-1,0 f32[0,3] !! leaves extents open",
    "reshape dims=2,3 f32[?,4] !! no extents make f32[?,4] into f32[2,3]",
    "reshape dims=-3 f32[3] !! extent -3",
    "transpose perm=0 f32[2,3] !! perm has 1 entries",
    "transpose perm=0,0 f32[2,3] !! axis 0 is in perm twice",
    "transpose perm=0,2 f32[2,3] !! axis 2 of f32[2,3]",
    "concat axis=2 f32[2,3] f32[2,3] !! axis 2",
    "concat axis=1 f32[2,3] f32[3,3] !! to fit it must be f32[2,3]",
    "concat axis=1 f32[2,3] f32[2] !! to fit",
    "concat axis=0 !! concat takes 1 to 64 inputs, got 0",
    "slice sizes=5 start=p0 f32[4] !! 5 elements with stride 1 from axis 0 of f32[4]; it has 4",
    "slice sizes=3 strides=2 start=p0 f32[4] !! 3 elements with stride 2",
    "slice sizes=3 strides=0 start=p0 f32[4] !! strides has the value 0",
    "slice sizes=3,1 start=p0 f32[4] !! sizes has 2 entries",
    "slice_grad dims=2 start=p0 f32[4] !! does not lie in an extent of 2",
    "pad before=1 after=-1 f32[4] !! after has the value -1",
    "pad before=1 after=1,1 f32[4] !! after has 2 entries",
    "gather axis=0 f32[4] f32[2] !! i32 or i64",
    "gather axis=1 f32[4] i32[2] !! axis 1",
    "gather axis=0 f32[1,1,1,1,1] i32[1,1,1,1,1] !! would have 9 axes",
    "scatter_add dims=9,4 axis=2 i32[2] f32[2,4] !! axis 2",
    "scatter_add dims=9,4 axis=0 i32[2] f32[3,4] !! to fit it must be f32[2,4]",
    "one_hot depth=-1 i32[2] !! depth has the value -1",
    "slice sizes=4 strides=-2 start=p0 f32[6] !! it has 6",
    "gather_nd batch=0 f32[4,5] i32[7,3] !! do not fit f32[4,5]",
    "gather_nd batch=1 f32[4,5] i32[3,2,1] !! do not fit",
    "gather_nd batch=0 f32[4,5] f32[7,1] !! i32 or i64",
    "gather_nd batch=0 f32[1,1,1,1,1,1,1,1] i32[1,1,1] !! would have 9 axes",
    "scatter_nd dims=4,5 batch=0 i32[7,1] f32[6,5] !! to fit it must be f32[7,5]",
    "band low=0 high=0 f32[3] !! 2 to 8 axes",
    "resize size=4,6 method=6 f32[1,2,3,5] !! method=6",
    "resize size=4,-6 f32[1,2,3,5] !! size has the value -6",
    "resize size=4,6 f32[1,2,0,5] !! no pixels",
    "resize size=4,6 i32[1,2,3,5] !! ",
    "resize size=4,6 f32[2,3,5] !! 4 axes",
    "warp size=4,6 mode=4 value=p0 f32[1,2,3,5] f32[1,8] !! mode=4",
    "warp size=4,6 value=p0 f32[1,2,3,5] f32[2,8] !! to fit it must be f32[1,8]",
    "warp size=4,6 value=p0 f64[1,2,3,5] f64[1,8] !! they are f32",
    "warp_grad size=4,6 nearest=2 f32[1,2,3,5] f32[1,8] !! nearest",
    "band low=0 high=9999999999 f32[3,3] !! within 2^31",
    "one_hot depth=3 f32[2] !! i32 or i64",
    "one_hot depth=3 i32[1,1,1,1,1,1,1,1] !! 0 to 7 axes",
    "one_hot depth=3 dtype=bool i32[2] !! dtype=bool",
    "assign f32[2] f32[3] !! to fit",
    "sgd i32[2] i32[2] !! float type",
    "sgd nesterov=2 f32[2] f32[2] !! nesterov=2",
    "adam f32[2] f32[2] f32[2] f32[3] !! input 3 is f32[3]",
    "matmul_adam f32[3,2] f32[3,2] f32[3,2] f32[5,3] f32[4,2] !! is no gradient of f32[3,2]",
    "matmul_adam f32[3,2] f32[3,2] f32[2,3] f32[5,3] f32[5,2] !! input 2 is f32[2,3]",
    "rmsprop centered=1 f32[2] f32[2] f32[2] !! 4 or 5 inputs, not 3",
    "rmsprop f32[2] f32[2] f32[2] f32[2] f32[2] !! 3 or 4 inputs, not 5",
    /* the text of attributes itself */
    "conv2d strode=1,1 !! conv2d has no attribute 'strode'; it has stride, pad, dilation, groups, "
    "act",
    "neg axis=1 !! it has none",
    "conv2d stride=1 !! stride has 1 values; it must have 2",
    "conv2d stride=1,1,1 !! more than 2 values",
    "conv2d stride=1,x !! stride=x; it must be an integer",
    "conv2d groups=99999999999999999999 !! an integer",
    "conv2d act=elu !! none, relu, tanh, sigmoid, hard_sigmoid, relu6 or silu",
    "conv2d groups=1 groups=1 !! groups is there twice",
    "conv2d groups= !! missing or too long",
    "reshape dims=1,1,1,1,1,1,1,1,1 !! more than 8 values",
    "cast dtype=f33 !! f33",
    "cast dtype=opaque f32[2] !! ",
    "elu value=0.5 !! no literals here",
    "elu value=p !! a parameter slot",
    "elu value=p-1 !! a parameter slot",
    "dropout key=1.5 !! an integer",
};

typedef struct {
    sn_opdesc desc;
    int n_want;
    snug_type want[SN_MAX_OUT];
    const char *words; /* of the error; NULL: must succeed */
} text_case;

static snug_type parse_type(const char *text) {
    snug_type t;
    snug_error err;
    const char *end;
    if (sn_type_parse(text, &end, &t, &err) != SNUG_OK || *end != '\0')
        fail_msg("case has a bad type '%s'", text);
    return t;
}

/* Reads a case into *c; the attributes' own errors are the result. */
static snug_status read_case(const char *text, text_case *c, snug_error *err) {
    char copy[400], attrs[300] = "";
    assert_true(strlen(text) < sizeof copy);
    strcpy(copy, text);
    *c = (text_case){.words = strstr(text, "!! ")};
    if (c->words != NULL) {
        copy[c->words - text] = '\0';
        c->words += 3;
    }
    bool outputs = false;
    char *save = NULL, *token = strtok_r(copy, " ", &save);
    assert_int_equal(sn_op_find(token, &c->desc.op, err), SNUG_OK);
    while ((token = strtok_r(NULL, " ", &save)) != NULL) {
        if (strcmp(token, "->") == 0)
            outputs = true;
        else if (strchr(token, '=') != NULL)
            strcat(strcat(attrs, token), " ");
        else if (outputs)
            c->want[c->n_want++] = parse_type(token);
        else
            c->desc.in[c->desc.n_in++] = parse_type(token);
    }
    return sn_attrs_parse(c->desc.op, attrs, NULL, &c->desc.attrs, err);
}

static void infer_good(const char *text, text_case *c) {
    snug_error err;
    if (read_case(text, c, &err) != SNUG_OK || sn_op_infer(&c->desc, &err) != SNUG_OK)
        fail_msg("%s\n  failed: %s", text, err.text);
}

#define EACH_GOOD(text)                                                                            \
    for (size_t at = 0; at < sizeof good / sizeof good[0] && (text = good[at]) != NULL; at++)

/* --- shapes ---------------------------------------------------------------------------------- */
static void test_shape_rules_give_the_types_of_the_cases(void **state) {
    (void)state;
    const char *text;
    EACH_GOOD(text) {
        text_case c;
        infer_good(text, &c);
        bool ok = c.desc.n_out == c.n_want;
        for (int i = 0; ok && i < c.n_want; i++)
            ok = sn_type_equal(&c.desc.out[i], &c.want[i]);
        char got[192];
        if (!ok)
            fail_msg("%s\n  gave %d outputs, the first %s", text, c.desc.n_out,
                     snug_type_print(&c.desc.out[0], got, sizeof got));
    }
}

static void test_every_row_has_a_case(void **state) {
    (void)state;
    bool seen[SN_N_OPS] = {false};
    const char *text;
    EACH_GOOD(text) {
        text_case c;
        infer_good(text, &c);
        seen[c.desc.op] = true;
    }
    for (int op = 0; op < SN_N_OPS; op++) {
        if (!seen[op])
            fail_msg("no case for %s", sn_ops[op].name);
    }
}

static void test_wrong_operands_are_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        text_case c;
        snug_error err = {.code = SNUG_OK};
        snug_status status = read_case(bad[i], &c, &err);
        c.desc.n_out = 77;
        if (status == SNUG_OK)
            status = sn_op_infer(&c.desc, &err);
        if (status == SNUG_OK)
            fail_msg("%s\n  was accepted", bad[i]);
        assert_int_equal(status, err.code);
        assert_int_equal(c.desc.n_out, 77); /* outputs only on success */
        if (strstr(err.text, c.words) == NULL)
            fail_msg("%s\n  said: %s", bad[i], err.text);
    }
}

static void test_an_error_object_is_not_needed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        text_case c;
        if (read_case(bad[i], &c, NULL) == SNUG_OK)
            assert_int_not_equal(sn_op_infer(&c.desc, NULL), SNUG_OK);
    }
}

static void test_attribute_words_out_of_range_are_refused(void **state) {
    (void)state;
    text_case c;
    snug_error err;
    infer_good("matmul f32[2,3] f32[3,4] -> f32[2,4]", &c);
    c.desc.attrs.matmul.act = SN_N_ACTS;
    assert_int_equal(sn_op_infer(&c.desc, &err), SNUG_E_INVALID);
    infer_good("reshape dims=6 f32[2,3] -> f32[6]", &c);
    c.desc.attrs.shape.dims.n = 9;
    assert_int_equal(sn_op_infer(&c.desc, &err), SNUG_E_INVALID);
    infer_good("cast dtype=u8 f32[2] -> u8[2]", &c);
    c.desc.attrs.dtype.dtype = -1;
    assert_int_equal(sn_op_infer(&c.desc, &err), SNUG_E_INVALID);
    c.desc.op = SN_N_OPS;
    assert_int_equal(sn_op_infer(&c.desc, &err), SNUG_E_INVALID);
}

/* --- names ----------------------------------------------------------------------------------- */
static void test_find_names_near_operators(void **state) {
    (void)state;
    snug_error err;
    sn_op op = SN_OP_add;
    assert_int_equal(sn_op_find("conv2d_dw", &op, &err), SNUG_OK);
    assert_int_equal(op, SN_OP_conv2d_dw);
    assert_int_equal(sn_op_find("mat_mul", &op, &err), SNUG_E_INVALID);
    assert_int_equal(op, SN_OP_conv2d_dw);
    assert_non_null(strstr(err.text, "did you mean matmul"));
    assert_int_equal(sn_op_find("normalize", &op, &err), SNUG_E_INVALID);
    assert_non_null(strstr(err.text, "normalise"));
    assert_int_equal(sn_op_find("", &op, &err), SNUG_E_INVALID);
    char huge[5000];
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(sn_op_find(huge, &op, &err), SNUG_E_INVALID);
    assert_non_null(strstr(err.text, "docs/ops.md"));
}

/* --- attributes ------------------------------------------------------------------------------ */
/* Attributes with every word its own legal value: step 0, 1, 2... gives different ones. */
static void scramble(sn_op op, int64_t step, sn_attrs *a) {
    const sn_attr_family *family = sn_ops[op].attrs;
    memset(a, 0, sizeof *a);
    for (int i = 0; i < family->n_fields; i++) {
        const sn_field *f = &family->fields[i];
        int64_t *word = &a->word[f->word];
        const int64_t n_list = (step + i) % (SNUG_MAX_RANK + 1);
        if (f->kind == SN_FIELD_LIST)
            *word++ = n_list;
        for (int k = 0; k < (f->kind == SN_FIELD_LIST ? n_list : f->n); k++) {
            const int64_t value = 1 + (step * 31 + i * 7 + k * 3) % 1000;
            const int64_t limit = f->kind == SN_FIELD_ACT ? SN_N_ACTS : SNUG_OPAQUE;
            const bool is_name = f->kind == SN_FIELD_ACT || f->kind == SN_FIELD_DTYPE;
            const bool is_param = f->kind == SN_FIELD_REAL || f->kind == SN_FIELD_KEY;
            word[k] = is_name ? value % limit : is_param || k % 2 == 0 ? value : -value;
        }
    }
}

static void test_attributes_survive_text(void **state) {
    (void)state;
    snug_error err;
    for (int op = 0; op < SN_N_OPS; op++) {
        for (int64_t step = 0; step < 20; step++) {
            sn_attrs a, b;
            char text[512], again[512];
            scramble((sn_op)op, step, &a);
            sn_attrs_print((sn_op)op, &a, text, sizeof text);
            if (sn_attrs_parse((sn_op)op, text, NULL, &b, &err) != SNUG_OK)
                fail_msg("%s '%s': %s", sn_ops[op].name, text, err.text);
            if (memcmp(&a, &b, sizeof a) != 0)
                fail_msg("%s '%s' came back different", sn_ops[op].name, text);
            assert_string_equal(text, sn_attrs_print((sn_op)op, &b, again, sizeof again));
        }
    }
}

static void test_default_prints_nothing(void **state) {
    (void)state;
    for (int op = 0; op < SN_N_OPS; op++) {
        sn_attrs a;
        char text[512];
        sn_attrs_default((sn_op)op, &a);
        sn_attrs_print((sn_op)op, &a, text, sizeof text);
        if (text[0] != '\0')
            fail_msg("default of %s prints '%s'", sn_ops[op].name, text);
    }
    sn_attrs a;
    char text[100];
    sn_attrs_default(SN_OP_conv2d, &a);
    assert_int_equal(a.conv.groups * a.conv.stride[1] * a.conv.dilation[0], 1);
    a.conv.pad[1] = 3;
    a.conv.act = SN_ACT_relu;
    assert_string_equal(sn_attrs_print(SN_OP_conv2d, &a, text, sizeof text),
                        "pad=0,3,0,0 act=relu");
    assert_string_equal(sn_attrs_print(SN_OP_conv2d, &a, text, 7), "pad=0,");
    sn_attrs_default(SN_OP_slice, &a);
    a.slice.sizes = (sn_list){2, {4, 5}};
    a.slice.start[0] = 0;
    a.slice.start[1] = 3;
    assert_string_equal(sn_attrs_print(SN_OP_slice, &a, text, sizeof text),
                        "sizes=4,5 start=p0,p3");
}

typedef struct {
    int n;
    double reals;
    int64_t keys;
} slot_book;

static snug_status add_slot(void *ctx, bool is_key, double real, int64_t key, int64_t *slot,
                            snug_error *err) {
    slot_book *book = ctx;
    if (book->n >= 15)
        return sn_fail(err, SNUG_E_INVALID, "no more slots");
    book->reals += is_key ? 0 : real;
    book->keys += is_key ? key : 0;
    *slot = 10 + book->n++;
    return SNUG_OK;
}

static void test_literals_become_slots(void **state) {
    (void)state;
    slot_book book = {0};
    const sn_param_maker maker = {&book, add_slot};
    sn_attrs a;
    snug_error err;
    assert_int_equal(sn_attrs_parse(SN_OP_dropout, " rate=0.25  key=-7 ", &maker, &a, &err),
                     SNUG_OK);
    assert_int_equal(a.dropout.rate, 10);
    assert_int_equal(a.dropout.key, 11);
    assert_true(book.reals == 0.25 && book.keys == -7);
    assert_int_equal(sn_attrs_parse(SN_OP_slice, "sizes=1,1 start=p4,100", &maker, &a, &err),
                     SNUG_OK);
    assert_int_equal(a.slice.start[0], 4);
    assert_int_equal(a.slice.start[1], 12);
    assert_int_equal(a.slice.start[2], -1);
    book.n = 15;
    assert_int_equal(sn_attrs_parse(SN_OP_dropout, "rate=1 key=2", &maker, &a, &err),
                     SNUG_E_INVALID);
    assert_int_equal(a.slice.start[1], 12);
}

/* Flips each structure word and each parameter word of each row: only the former count. */
static void test_equality_and_hash_see_structure_only(void **state) {
    (void)state;
    for (int op = 0; op < SN_N_OPS; op++) {
        const sn_attr_family *family = sn_ops[op].attrs;
        sn_attrs a, b;
        scramble((sn_op)op, 4, &a);
        for (int i = 0; i < family->n_fields; i++) {
            const sn_field *f = &family->fields[i];
            const bool is_param = f->kind == SN_FIELD_REAL || f->kind == SN_FIELD_KEY;
            b = a;
            b.word[f->word] ^= 1;
            assert_int_equal(sn_attrs_equal((sn_op)op, &a, &b), is_param);
            assert_int_equal(sn_attrs_hash((sn_op)op, &a) == sn_attrs_hash((sn_op)op, &b),
                             is_param);
        }
    }
}

static void test_words_behind_a_list_do_not_count(void **state) {
    (void)state;
    sn_attrs a, b;
    sn_attrs_default(SN_OP_reshape, &a);
    a.shape.dims = (sn_list){1, {5}};
    b = a;
    b.shape.dims.v[1] = 9;
    assert_true(sn_attrs_equal(SN_OP_reshape, &a, &b));
    assert_true(sn_attrs_hash(SN_OP_reshape, &a) == sn_attrs_hash(SN_OP_reshape, &b));
}

static void test_params_are_counted_in_words(void **state) {
    (void)state;
    assert_int_equal(sn_ops[SN_OP_slice].attrs->n_params, 8);
    assert_int_equal(sn_ops[SN_OP_adam].attrs->n_params, 4);
    assert_int_equal(sn_ops[SN_OP_random].attrs->n_params, 3);
    assert_int_equal(sn_ops[SN_OP_conv2d].attrs->n_params, 0);
    for (int op = 0; op < SN_N_OPS; op++) {
        int n = 0;
        for (int i = 0; i < sn_ops[op].attrs->n_fields; i++) {
            const sn_field *f = &sn_ops[op].attrs->fields[i];
            n += f->kind == SN_FIELD_REAL || f->kind == SN_FIELD_KEY ? f->n : 0;
        }
        assert_int_equal(n, sn_ops[op].attrs->n_params);
    }
}

/* --- axes ------------------------------------------------------------------------------------ */
/* Ways as text, "2: 0 - -> 0(1,3); 3: 1 0 sum -": the extent, then per operand its axis ('-': not
 * carried) with (outer,inner) where they are not 1. */
static void print_ref(char *text, const sn_axis_ref *ref) {
    if (ref->axis < 0)
        strcat(text, " -");
    else if (ref->outer == 1 && ref->inner == 1)
        sprintf(text + strlen(text), " %d", ref->axis);
    else
        sprintf(text + strlen(text), " %d(%lld,%lld)", ref->axis, (long long)ref->outer,
                (long long)ref->inner);
}

static void print_ways(const sn_opdesc *d, char *text) {
    sn_ways ways;
    sn_op_ways(d, &ways);
    text[0] = '\0';
    for (int w = 0; w < ways.n; w++) {
        const sn_way *way = &ways.way[w];
        sprintf(text + strlen(text), "%s%lld:", w ? "; " : "", (long long)way->extent);
        for (int i = 0; i < d->n_in; i++)
            print_ref(text, &way->in[i]);
        strcat(text, way->sum ? " sum" : " ->");
        for (int i = 0; i < d->n_out; i++)
            print_ref(text, &way->out[i]);
    }
}

static const struct {
    const char *text, *ways;
} way_cases[] = {
    {"fill dims=2,3 value=p0", "2: -> 0; 3: -> 1"},
    {"relu f32[2,3]", "2: 0 -> 0; 3: 1 -> 1"},
    {"add f32[2,3] f32[3]", "2: 0 - -> 0; 3: 1 0 -> 1"},
    {"add f32[2,1] f32[1,3]", "2: 0 - -> 0; 3: - 1 -> 1"},
    {"broadcast_to dims=4,2,3 f32[2,1]", "4: - -> 0; 2: 0 -> 1; 3: - -> 2"},
    {"sum axes=0 f32[2,3]", "2: 0 sum -; 3: 1 -> 0"},
    {"sum axes=0 keepdims=1 f32[2,3]", "2: 0 sum -; 3: 1 -> 1"},
    {"max axes=0 f32[2,3]", "3: 1 -> 0"},
    {"argmax axis=1 dtype=i32 f32[2,3]", "2: 0 -> 0"},
    {"matmul f32[2,3] f32[3,4]", "2: 0 - -> 0; 4: - 1 -> 1; 3: 1 0 sum -"},
    {"matmul trans_a=1 trans_b=1 f32[3,2] f32[4,3]", "2: 1 - -> 0; 4: - 0 -> 1; 3: 0 1 sum -"},
    {"matmul f32[2,3] f32[3,4] f32[4]", "2: 0 - - -> 0; 4: - 1 0 -> 1"},
    {"matmul act=relu f32[2,3] f32[3,4]", "2: 0 - -> 0; 4: - 1 -> 1"},
    {"matmul f32[7,2,3] f32[3,4] f32[4]", "7: 0 - - -> 0; 2: 1 - - -> 1; 4: - 1 0 -> 2"},
    {"matmul f32[7,1,2,3] f32[5,3,4]",
     "7: 0 - -> 0; 5: - 0 -> 1; 2: 2 - -> 2; 4: - 2 -> 3; 3: 3 1 sum -"},
    {"conv2d f32[2,4,4,3] f32[1,1,3,5] f32[5]", "2: 0 - - -> 0; 5: - 3 0 -> 3"},
    {"conv2d groups=3 f32[2,4,4,3] f32[1,1,1,6]", "2: 0 - -> 0"},
    {"conv2d f32[2,4,4,3] f32[1,1,3,5] f32[2,5]", "2: 0 - - -> 0; 5: - 3 1 -> 3"},
    {"normalise_line epsilon=p0 f32[4] f32[4] f32[4] f32[4]", "4: 0 0 0 0 -> 1"},
    {"conv2d_dx input=4,4 f32[2,4,4,5] f32[1,1,3,5]", "2: 0 - -> 0; 3: - 2 -> 3"},
    {"conv2d_dw kernel=1,1 f32[2,4,4,3] f32[2,4,4,5]", "2: 0 0 sum -; 5: - 3 -> 3; 3: 3 - -> 2"},
    {"conv2d_dw kernel=1,1 bias=1 f32[2,4,4,3] f32[2,4,4,5]", "2: 0 0 sum - -; 5: - 3 -> 3 0"},
    {"conv2d_pool codes=1 pool=2,2,2,2,0,0,0,0 f32[2,4,4,3] f32[1,1,3,5]", "2: 0 - -> 0 0"},
    {"conv2d_pool_dx input=4,4 pool=2,2,2,2,0,0,0,0 f32[2,2,2,5] f32[1,1,3,5] opaque[2,2,2,5]",
     "2: 0 - 0 -> 0"},
    {"conv2d_pool_dw kernel=1,1 pool=2,2,2,2,0,0,0,0 f32[2,4,4,3] f32[2,2,2,5] opaque[2,2,2,5]",
     "2: 0 0 0 sum -"},
    {"gru reset_after=1 f32[2,3,15] f32[5,15] f32[2,5] f32[15] bool[2,3]",
     "2: 0 - 0 - 0 -> 0 0 0 0"},
    {"maxpool kernel=2,2 f32[2,4,4,3]", "2: 0 -> 0 0"},
    {"moments f32[2,3,4]", "2: 0 sum - -; 3: 1 sum - -; 4: 2 -> 0 0"},
    {"normalise epsilon=p0 f32[2,4] f32[4] f32[4] f32[4] f32[4]",
     "2: 0 - - - - -> 0; 4: 1 0 0 0 0 -> 1"},
    {"normalise_sums epsilon=p0 f32[2,4] f32[2,4] f32[4] f32[4]",
     "2: 0 0 - - sum - -; 4: 1 1 0 0 -> 0 0"},
    {"layernorm epsilon=p0 f32[4,4] f32[4] f32[4]", "4: 0 - - -> 0 0 0"},
    {"layernorm_dx f32[4,4] f32[4,4] f32[4] f32[4] f32[4]", "4: 0 0 - 0 0 -> 0"},
    {"layernorm_sums f32[4,4] f32[4,4] f32[4] f32[4]", "4: 0 0 0 0 sum - -; 4: 1 1 - - -> 0 0"},
    {"attention scale=p0 rate=p1 key=p2 f32[2,5,3,4] f32[2,7,3,4] f32[2,7,3,8] bool[1,3,1,7]",
     "2: 0 0 0 - -> 0 0; 3: 2 2 2 1 -> 2 2"},
    {"softmax f32[2,5,3]", "2: 0 -> 0; 5: 1 -> 1"},
    {"sparse_xent f32[2,3] i32[2]", "2: 0 0 -> 0"},
    {"reshape dims=6,5 f32[2,3,5]", "2: 0 -> 0(1,3); 3: 1 -> 0(2,1); 5: 2 -> 1"},
    {"reshape dims=2,3,5 f32[6,5]", "2: 0(1,3) -> 0; 3: 0(2,1) -> 1; 5: 1 -> 2"},
    {"reshape dims=7,4,6 f32[7,6,4]", "7: 0 -> 0"},
    {"reshape dims=8,3 f32[4,6]", "4: 0 -> 0(1,2); 2: 1(1,3) -> 0(4,1); 3: 1(2,1) -> 1"},
    {"reshape dims=1,28,28,1 f32[1,784]", "1: 0 -> 0; 28: 1(1,28) -> 1; 28: 1(28,1) -> 2"},
    {"reshape dims=5,2,1,2 f32[5,1,4]", "5: 0 -> 0; 2: 2(1,2) -> 1; 2: 2(2,1) -> 3"},
    {"reshape dims=3,0,4 f32[3,0]", "3: 0 -> 0; 0: 1 -> 1"},
    {"transpose perm=2,0,1 f32[2,3,4]", "4: 2 -> 0; 2: 0 -> 1; 3: 1 -> 2"},
    {"concat axis=1 f32[2,3] f32[2,4]", "2: 0 0 -> 0"},
    {"slice sizes=4,2 start=p1,p2 f32[4,3]", "4: 0 -> 0"},
    {"slice_grad dims=4,3 start=p1,p2 f32[4,2]", "4: 0 -> 0"},
    {"pad before=1,0 after=0,0 value=p0 f32[2,3]", "3: 1 -> 1"},
    {"gather axis=1 f32[9,4,5] i64[2,3]", "2: - 0 -> 1; 3: - 1 -> 2; 9: 0 - -> 0; 5: 2 - -> 3"},
    {"scatter_add dims=9,4,5 axis=1 i64[2] f32[9,2,5]", "2: 0 1 sum -; 9: - 0 -> 0; 5: - 2 -> 2"},
    {"one_hot depth=10 i32[2]", "2: 0 -> 0"},
    {"cumsum axis=1 f32[2,3,4]", "2: 0 -> 0; 4: 2 -> 2"},
    {"sort dtype=i32 f32[2,3]", "2: 0 -> 0 0"},
    {"slice sizes=3,4 strides=1,-1 start=p0,p1 f32[3,4]", "3: 0 -> 0"},
    {"gather_nd batch=1 f32[9,4,5] i64[9,2,1]", "9: 0 0 -> 0; 2: - 1 -> 1; 5: 2 - -> 2"},
    {"scatter_nd dims=9,4,5 batch=1 i64[9,2,1] f32[9,2,5]",
     "9: 0 0 -> 0; 2: 1 1 sum -; 5: - 2 -> 2"},
    {"band low=0 high=9 f32[9,4,4]", "9: 0 -> 0"},
    {"resize size=4,6 f32[9,2,3,5]", "9: 0 -> 0; 5: 3 -> 3"},
    {"warp size=4,6 value=p0 f32[9,2,3,5] f32[9,8]", "9: 0 0 -> 0; 5: 3 - -> 3"},
    {"adam f32[2] f32[2] f32[2] f32[2]", "2: 0 0 0 0 -> 0 0 0"},
    {"matmul_adam f32[3,2] f32[3,2] f32[3,2] f32[5,3] f32[5,2]",
     "3: 0 0 0 1 - -> 0 0 0; 2: 1 1 1 - 1 -> 1 1 1"},
};

static void test_axis_rules_find_the_ways_of_the_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof way_cases / sizeof way_cases[0]; i++) {
        text_case c;
        char text[2000];
        infer_good(way_cases[i].text, &c);
        print_ways(&c.desc, text);
        if (strcmp(text, way_cases[i].ways) != 0)
            fail_msg("%s\n  gave %s\n  want %s", way_cases[i].text, text, way_cases[i].ways);
    }
}

/* Cuts the label in one operand down to `piece`; the reference must describe the axis exactly. */
static void cut(const char *text, snug_type *t, const sn_axis_ref *ref, int64_t extent,
                int64_t piece) {
    if (ref->axis < 0)
        return;
    assert_true(ref->axis < t->rank);
    if (t->dims[ref->axis] != ref->outer * extent * ref->inner)
        fail_msg("%s: axis %d is not %lld * %lld * %lld", text, ref->axis, (long long)ref->outer,
                 (long long)extent, (long long)ref->inner);
    t->dims[ref->axis] = ref->outer * piece * ref->inner;
}

/* Attributes that repeat the output's dims follow the cut. */
static void cut_attrs(sn_opdesc *d, const snug_type *out) {
    const sn_attr_family *family = sn_ops[d->op].attrs;
    for (int i = 0; i < family->n_fields; i++) {
        const char *name = family->fields[i].name;
        sn_list list = {.n = out->rank};
        memcpy(list.v, out->dims, sizeof list.v);
        if (strcmp(name, "dims") == 0 || strcmp(name, "sizes") == 0)
            memcpy(&d->attrs.word[family->fields[i].word], &list, sizeof list);
    }
}

static void check_way(const char *text, const sn_opdesc *whole, const sn_way *way) {
    sn_opdesc piece = *whole;
    snug_error err;
    const int64_t n = (way->extent + 1) / 2;
    for (int i = 0; i < piece.n_in; i++)
        cut(text, &piece.in[i], &way->in[i], way->extent, n);
    snug_type want[SN_MAX_OUT];
    for (int i = 0; i < whole->n_out; i++) {
        want[i] = whole->out[i];
        cut(text, &want[i], &way->out[i], way->extent, n);
        if ((way->out[i].axis < 0) != way->sum)
            fail_msg("%s: output %d neither carries the label nor is a sum over it", text, i);
    }
    cut_attrs(&piece, &want[0]);
    if (sn_op_infer(&piece, &err) != SNUG_OK)
        fail_msg("%s cut to %lld of %lld: %s", text, (long long)n, (long long)way->extent,
                 err.text);
    for (int i = 0; i < whole->n_out; i++)
        assert_true(sn_type_equal(&piece.out[i], &want[i]));
}

static void test_cutting_a_label_cuts_the_outputs(void **state) {
    (void)state;
    const char *text;
    int n_checked = 0;
    EACH_GOOD(text) {
        text_case c;
        infer_good(text, &c);
        sn_ways ways = {.n = 0};
        if (strchr(text, '?') == NULL && strstr(text, "dims=-1") == NULL)
            sn_op_ways(&c.desc, &ways);
        for (int w = 0; w < ways.n; w++, n_checked++)
            check_way(text, &c.desc, &ways.way[w]);
    }
    assert_true(n_checked > 150);
}

/* --- flops ----------------------------------------------------------------------------------- */
static void test_flops_count_products_twice(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double flops;
    } cases[] = {
        {"matmul f32[2,3] f32[3,4]", 2 * 24},
        {"matmul trans_a=1 f32[3,2] f32[3,4]", 2 * 24},
        {"matmul f32[5,2,3] f32[3,4]", 2 * 120},
        {"conv2d groups=3 f32[2,4,4,6] f32[1,1,2,9]", 2 * (2 * 16 * 9) * 2},
        {"conv2d_dx stride=2,2 pad=1,1,0,1 input=7,8 f32[2,4,4,5] f32[3,3,3,5]", 2 * 160 * 27},
        {"conv2d_dw stride=2,2 pad=1,1,0,1 kernel=3,3 f32[2,7,8,3] f32[2,4,4,5]", 2 * 160 * 27},
        {"conv2d_pool pool=2,2,2,2,0,0,0,0 f32[2,10,10,3] f32[3,3,3,5]", 2 * 640 * 27},
        {"avgpool kernel=2,2 stride=2,2 f32[1,4,4,3]", 12 * 4},
        {"sum f32[4,5]", 20},
        {"add f32[4,1] f32[5]", 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text_case c;
        infer_good(cases[i].text, &c);
        assert_true(sn_op_flops(&c.desc) == cases[i].flops);
    }
}

/* --- anything at all ------------------------------------------------------------------------- */
static uint64_t draw(uint64_t *state, uint64_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

static int64_t draw_number(uint64_t *state) {
    static const int64_t numbers[] = {
        INT64_MIN, -2, -1, 0, 1, 1, 2, 2, 3, 4, 64, INT32_MAX, 1LL << 31, 1LL << 60, INT64_MAX};
    return numbers[draw(state, sizeof numbers / sizeof numbers[0])];
}

/* A good case with some of its words replaced by any number, which keeps most of it plausible. */
static void disturb(sn_opdesc *d, uint64_t *state) {
    const sn_attr_family *family = sn_ops[d->op].attrs;
    for (uint64_t n = 1 + draw(state, 3); n > 0; n--) {
        if (family->n_fields > 0 && draw(state, 2) == 0) {
            const sn_field *f = &family->fields[draw(state, (uint64_t)family->n_fields)];
            d->attrs.word[(uint64_t)f->word + draw(state, (uint64_t)f->n)] = draw_number(state);
        } else if (d->n_in > 0) {
            snug_type *t = &d->in[draw(state, (uint64_t)d->n_in)];
            t->dims[draw(state, SNUG_MAX_RANK)] = draw_number(state);
            t->rank = draw(state, 8) == 0 ? (int)draw(state, 10) : t->rank;
            t->dtype = draw(state, 8) == 0 ? (snug_dtype)draw(state, 11) : t->dtype;
        }
    }
}

static void check_accepted(const char *text, const sn_opdesc *d) {
    snug_error err;
    bool known = true;
    for (int i = 0; i < d->n_in; i++)
        known = known && sn_type_known(&d->in[i]);
    for (int i = 0; i < d->n_out; i++) {
        assert_int_equal(sn_type_check(&d->out[i], true, &err), SNUG_OK);
        known = known && sn_type_known(&d->out[i]);
    }
    sn_ways ways = {.n = 0};
    if (known)
        sn_op_ways(d, &ways);
    for (int w = 0; w < ways.n; w++) {
        const sn_way *way = &ways.way[w];
        for (int i = 0; i < d->n_in; i++) {
            snug_type in = d->in[i];
            cut(text, &in, &way->in[i], way->extent, way->extent);
        }
        for (int i = 0; i < d->n_out; i++) {
            snug_type out = d->out[i];
            cut(text, &out, &way->out[i], way->extent, way->extent);
        }
    }
}

static void test_no_words_break_a_rule(void **state) {
    (void)state;
    uint64_t seed = 7;
    int n_accepted = 0, n_refused = 0;
    const char *text;
    EACH_GOOD(text) {
        text_case c;
        infer_good(text, &c);
        for (int round = 0; round < 400; round++) {
            snug_error err = {.code = SNUG_OK};
            sn_opdesc d = c.desc;
            disturb(&d, &seed);
            const snug_status status = sn_op_infer(&d, &err);
            if (status == SNUG_OK)
                check_accepted(text, &d);
            else
                assert_true(err.code == status && err.text[0] != '\0');
            *(status == SNUG_OK ? &n_accepted : &n_refused) += 1;
        }
    }
    assert_true(n_accepted > 5000 && n_refused > 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape_rules_give_the_types_of_the_cases),
        cmocka_unit_test(test_every_row_has_a_case),
        cmocka_unit_test(test_wrong_operands_are_named),
        cmocka_unit_test(test_an_error_object_is_not_needed),
        cmocka_unit_test(test_attribute_words_out_of_range_are_refused),
        cmocka_unit_test(test_find_names_near_operators),
        cmocka_unit_test(test_attributes_survive_text),
        cmocka_unit_test(test_default_prints_nothing),
        cmocka_unit_test(test_literals_become_slots),
        cmocka_unit_test(test_equality_and_hash_see_structure_only),
        cmocka_unit_test(test_words_behind_a_list_do_not_count),
        cmocka_unit_test(test_params_are_counted_in_words),
        cmocka_unit_test(test_axis_rules_find_the_ways_of_the_cases),
        cmocka_unit_test(test_cutting_a_label_cuts_the_outputs),
        cmocka_unit_test(test_flops_count_products_twice),
        cmocka_unit_test(test_no_words_break_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
