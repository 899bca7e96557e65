/* cases.c: the sets the cases column of ops.def names, and how near each fast kernel must come to
 * its reference. Every set has a rank or extent that is odd, one above a vector (67, 133), one that
 * wakes the threads (more than 32768 elements), extents of 1 and of 0, and all the attributes. */
#include "support/case_set.h"

/* --- sources -------------------------------------------------------------------------------- */
SET(fill, {"dims=5,3 dtype=f value=0.3", ""}, {"dtype=f value=-2", ""},
    {"dims=1,67,1 dtype=f value=1e-3", ""}, {"dims=4,0,3 dtype=f value=5", ""},
    {"dims=3,133,89 dtype=f value=7", ""}, {"dims=133 dtype=i32 value=-7", ""},
    {"dims=3,5 dtype=i64 value=1e12", ""}, {"dims=9 dtype=u8 value=200", ""},
    {"dims=7 dtype=i8 value=-3", ""}, {"dims=2,3 dtype=bool value=1", ""})
SET(random, {"dims=5,7 kind=0 dtype=f key=11 low=-1 high=2", ""},
    {"dims=133,3 kind=1 dtype=f key=-5 low=0.5 high=2", ""},
    {"dims=3,67 kind=2 dtype=f key=9 low=0 high=1", ""}, {"kind=1 dtype=f key=3 low=0 high=1", ""},
    {"dims=1,1 kind=0 dtype=f key=4 low=0 high=1", ""},
    {"dims=3,0,2 kind=1 dtype=f key=4 low=0 high=1", ""},
    {"dims=3,133,89 kind=2 dtype=f key=77 low=1 high=0.1", ""},
    {"dims=4,9000 kind=0 dtype=f key=78 low=-1 high=1", ""})

/* --- one input ------------------------------------------------------------------------------ */
SET(unary, SHAPES_OF_ONE("", ""), {"", "f[5,133]@wide", VALUES}, {"", "f[7,67]@special", VALUES})
SET(unary_number, SHAPES_OF_ONE("", ""), {"", "f[7,67]@special", VALUES}, {"", "i32[3,67]"},
    {"", "i64[5]"}, {"", "i8[133]"}, {"", "u8[2,1,9]"})
SET(finite, SHAPES_OF_ONE("", ""), {"", "f[5,133]@wide", VALUES})
SET(unary_nonzero, SHAPES_OF_ONE("", "@away"), {"", "f[5,133]@ties", VALUES},
    {"", "f[7,67]@special", VALUES}, {"", "i32[3,67]"}, {"", "i64[5]"}, {"", "i8[133]"},
    {"", "u8[2,1,9]"})
SET(unary_positive, SHAPES_OF_ONE("", "@pos"), {"", "f[7,67]@special", VALUES})
SET(unary_value, SHAPES_OF_ONE("value=0.3", "@away"), {"value=1", "f[5,9]@away"},
    {"value=0", "f[5,9]@away"}, {"value=0.2", "f[5,133]@wide", VALUES},
    {"value=0.7", "f[7,67]@special", VALUES})
SET(unary_affine, SHAPES_OF_ONE("scale=-1.5 shift=0.25", ""), {"scale=0.1 shift=0", "f[5,9]"},
    {"scale=1 shift=3", "f[5,9]"}, {"scale=2 shift=1", "f[7,67]@special", VALUES})
SET(unary_power, SHAPES_OF_ONE("value=2.5", "@pos"), {"value=2", "f[5,9]@pos"},
    {"value=3", "f[5,9]@away"}, {"value=2", "f[5,9]@away"}, {"value=-1", "f[5,9]@pos"},
    {"value=0.5", "f[5,9]@pos"}, {"value=1", "f[5,9]@pos"}, {"value=-2.5", "f[5,67]@pos"})
SET(unary_clip, SHAPES_OF_ONE("low=-0.68 high=1.8", "@distinct"),
    {"low=-0.9 high=0.9", "f[7,67]@special", VALUES}, {"low=-3 high=4", "i32[3,67]"},
    {"low=-3 high=4", "i64[5]"}, {"low=2 high=9", "u8[2,1,9]"}, {"low=-3 high=4", "i8[133]"},
    {"low=-1e300 high=2", "i32[9]"}, {"low=-5 high=1e300", "i64[9]"})
SET(unary_bool, {"", "bool[]"}, {"", "bool[7]"}, {"", "bool[3,67]"}, {"", "bool[1,1]"},
    {"", "bool[0,3]"}, {"", "bool[3,133,89]"})
SET(cast, {"dtype=f64", "f[5,3]"}, {"dtype=f64", "f[]"}, {"dtype=f64", "f[3,133,89]"},
    {"dtype=f32", "f[3,67]", VALUES}, {"dtype=f32", "f[133]@special", VALUES},
    {"dtype=i32", "f[133]@special", VALUES}, {"dtype=i64", "f[3,1,9]@wide", VALUES},
    {"dtype=i8", "f[67]@special", VALUES}, {"dtype=u8", "f[67]@wide", VALUES},
    {"dtype=bool", "f[67]@ties", VALUES}, {"dtype=f", "i32[5,7]"}, {"dtype=f", "i64[67]"},
    {"dtype=f", "u8[4,1]"}, {"dtype=f", "i8[9]"}, {"dtype=f", "bool[3,67]"},
    {"dtype=i64", "i32[7]"}, {"dtype=i32", "i64[7]"}, {"dtype=f", "i32[0,3]"},
    {"dtype=u8", "bool[7]"}, {"dtype=bool", "i32[7]"}, {"dtype=i8", "i64[67]"},
    {"dtype=u8", "i32[67]"}, {"dtype=i64", "u8[7]"}, {"dtype=i32", "i8[7]"},
    {"dtype=bool", "u8[7]"}, {"dtype=i64", "bool[7]"}, {"dtype=bool", "f[9]@special", VALUES})

/* --- pairs: a gradient and what it is taken at ----------------------------------------------- */
#define SHAPES_OF_PAIR(attrs, domain)                                                              \
    CASE(attrs, "f[] f[]" domain), CASE(attrs, "f[7] f[7]" domain),                                \
        CASE(attrs, "f[1,5,1] f[1,5,1]" domain), CASE(attrs, "f[3,67] f[3,67]" domain),            \
        CASE(attrs, "f[2,3,133] f[2,3,133]" domain), CASE(attrs, "f[0,4] f[0,4]" domain),          \
        CASE(attrs, "f[3,133,89] f[3,133,89]" domain)
SET(pair, SHAPES_OF_PAIR("", ""), {"", "f[5,133] f[5,133]@wide", VALUES},
    {"", "f[7,67] f[7,67]@special", VALUES})
SET(pair_nonzero, SHAPES_OF_PAIR("", "@away"), {"", "f[5,133] f[5,133]@ties", VALUES},
    {"", "f[7,67]@special f[7,67]@special", VALUES})
SET(pair_value, SHAPES_OF_PAIR("value=0.3", "@away"), {"value=1", "f[5,9] f[5,9]@away"},
    {"value=0.2", "f[5,133] f[5,133]@ties", VALUES})
/* (logits, labels): the loss is smooth in both */
SET(sigmoid_xent, SHAPES_OF_PAIR("", ""), {"", "f[5,133]@wide f[5,133]@prob"},
    {"", "f[7,67]@special f[7,67]@prob", VALUES})

/* --- two inputs with broadcasting ------------------------------------------------------------ */
#define SHAPES_OF_BINARY(a, b)                                                                     \
    CASE("", "f[3,5]" a " f[3,5]" b), CASE("", "f[]" a " f[]" b),                                  \
        CASE("", "f[4,1,67]" a " f[5,1]" b), CASE("", "f[133]" a " f[]" b),                        \
        CASE("", "f[]" a " f[9]" b), CASE("", "f[2,3,1]" a " f[67]" b),                            \
        CASE("", "f[1,7]" a " f[5,1]" b), CASE("", "f[2,1,3,1,5]" a " f[4,1,2,1]" b),              \
        CASE("", "f[0,3]" a " f[3]" b), CASE("", "f[3,0]" a " f[1]" b),                            \
        CASE("", "f[1]" a " f[0,1]" b), CASE("", "f[3,133,89]" a " f[89]" b),                      \
        CASE("", "f[3,133,89]" a " f[3,133,89]" b), CASE("", "f[3,1,1]" a " f[3,133,89]" b),       \
        CASE("", "f[3,133,1]" a " f[3,1,89]" b)
#define INTEGERS_OF_BINARY                                                                         \
    CASE("", "i32[7,9] i32[9]"), CASE("", "i64[3,67] i64[3,67]"), CASE("", "i8[133] i8[]"),        \
        CASE("", "u8[5,1] u8[9]")
SET(binary, SHAPES_OF_BINARY("", ""), {"", "f[7,67]@special f[7,67]@special", VALUES},
    INTEGERS_OF_BINARY)
SET(binary_positive, SHAPES_OF_BINARY("", "@pos"), {"", "f[7,67]@special f[7,67]@special", VALUES})
SET(binary_distinct, SHAPES_OF_BINARY("@distinct", "@distinct"),
    {"", "f[7,67]@special f[7,67]@special", VALUES}, {"", "f[5,67]@ties f[5,67]@ties", VALUES},
    INTEGERS_OF_BINARY)
SET(compare, SHAPES_OF_BINARY("@ties", "@ties"), {"", "f[7,67]@special f[7,67]@special", VALUES},
    INTEGERS_OF_BINARY)
SET(binary_bool, {"", "bool[3,5] bool[3,5]"}, {"", "bool[] bool[]"}, {"", "bool[4,1,67] bool[5,1]"},
    {"", "bool[133] bool[]"}, {"", "bool[0,3] bool[3]"}, {"", "bool[3,133,89] bool[89]"})
SET(select, {"", "bool[3,5] f[3,5] f[3,5]"}, {"", "bool[] f[7] f[7]"}, {"", "bool[7] f[] f[7]"},
    {"", "bool[4,1,1] f[5,67] f[1]"}, {"", "bool[2,1,3] f[4,1] f[2,4,3]"},
    {"", "bool[0,3] f[3] f[1]"}, {"", "bool[3,133,89] f[3,133,89] f[3,133,89]"},
    {"", "bool[133,1] f[3,133,89] f[]"}, {"", "bool[7,67] f[7,67]@special f[7,67]", VALUES},
    {"", "bool[7,9] i64[9] i64[7,1]"}, {"", "bool[7,9] bool[9] bool[7,1]"},
    {"", "bool[5] u8[5] u8[]"}, {"", "bool[5] i8[5] i8[]"}, {"", "bool[3,1] i32[5] i32[3,5]"})

/* --- reductions and their opposite ----------------------------------------------------------- */
#define SHAPES_OF_REDUCE(domain)                                                                   \
    CASE("axes=0", "f[7]" domain), CASE("", "f[3,5]" domain), CASE("", "f[]" domain),              \
        CASE("axes=1", "f[3,67]" domain), CASE("axes=0 keepdims=1", "f[133,3]" domain),            \
        CASE("axes=0,2", "f[5,3,7]" domain), CASE("axes=1,2 keepdims=1", "f[2,9,8,5]" domain),     \
        CASE("axes=0,1", "f[3,4,67]" domain), CASE("axes=1", "f[3,1,5]" domain),                   \
        CASE("axes=0", "f[1,67]" domain), CASE("axes=1", "f[0,3]" domain),                         \
        CASE("axes=1", "f[5,0,2]" domain), CASE("axes=1,3", "f[3,4,2,5]" domain),                  \
        CASE("axes=2", "f[3,133,89]" domain), CASE("axes=0,1", "f[3,133,89]" domain),              \
        CASE("axes=0", "f[3,133,89]" domain), CASE("axes=1", "f[2,20000]" domain),                 \
        CASE("axes=0", "f[17000,3]" domain)
SET(reduce, SHAPES_OF_REDUCE(""), {"axes=0,2", "f[3,5,89,37]"}, {"axes=0,2", "f[67,3,133]"},
    {"axes=1", "f[3,600,36]"}, {"axes=1", "i32[3,67]"}, {"axes=0", "i64[5,9]"}, {"", "u8[2,1,9]"},
    {"axes=1", "i8[3,9]"}, {"axes=1", "f[7,67]@special", VALUES})
SET(reduce_distinct, SHAPES_OF_REDUCE("@distinct"), {"axes=1", "i32[3,67]"}, {"axes=0", "i64[5,9]"},
    {"", "u8[2,1,9]"}, {"axes=1", "f[7,67]@special", VALUES})
SET(argmax, {"axis=1 dtype=i32", "f[5,9]@distinct"}, {"axis=0 dtype=i64", "f[7]@distinct"},
    {"axis=0 dtype=i64", "f[67,3]@ties"}, {"axis=1 dtype=i32", "f[3,133,5]@ties"},
    {"axis=2 dtype=i32", "f[3,133,89]"}, {"axis=0 dtype=i32", "f[1,5]"},
    {"axis=1 dtype=i32", "f[0,5]"}, {"axis=1 dtype=i64", "f[7,67]@special", VALUES},
    {"axis=1 dtype=i32", "i32[3,67]"}, {"axis=0 dtype=i32", "u8[9,2]"})
SET(broadcast_to, {"dims=4,3,67", "f[3,1]"}, {"dims=5", "f[]"}, {"dims=3,5", "f[3,5]"},
    {"dims=2,7,1,9", "f[7,1,1]"}, {"dims=1,133", "f[1,133]"}, {"dims=0,3", "f[1,3]"},
    {"dims=4,0", "f[0]"}, {"dims=3,133,89", "f[133,1]"}, {"dims=3,133,89", "f[89]"},
    {"dims=3,5", "i32[5]"}, {"dims=3,5", "bool[3,1]"}, {"", "f[]"})

/* --- matrices and convolution ---------------------------------------------------------------- */
SET(matmul, {"", "f[7,5] f[5,3]"}, {"", "f[7,5] f[5,3] f[3]"}, {"trans_a=1", "f[5,7] f[5,3]"},
    {"trans_b=1", "f[7,5] f[3,5]"}, {"trans_a=1 trans_b=1", "f[5,7] f[3,5] f[3]"},
    {"", "f[2,3,5,4] f[4,7]"}, {"trans_b=1", "f[3,5,4] f[3,7,4]"}, {"", "f[5,1,3,4] f[2,4,3]"},
    {"trans_a=1", "f[2,4,3] f[4,5]"}, {"", "f[4,6] f[3,6,5]"}, {"", "f[1,1] f[1,1]"},
    {"", "f[1,67] f[67,1] f[1]"}, {"", "f[0,5] f[5,3]"}, {"", "f[4,0] f[0,3] f[3]"},
    {"", "f[4,5] f[5,0]"}, {"", "f[0,4,5] f[5,3]"}, {"", "f[67,133] f[133,35]"},
    {"trans_a=1", "f[133,67] f[133,35]"}, {"", "f[130,67] f[67,270] f[270]"},
    {"trans_a=1", "f[2500,20] f[2500,10]"}, {"", "f[490,20] f[20,67] f[67]"},
    {"trans_b=1", "f[5,120,270] f[133,270]"}, {"trans_a=1", "f[3,260,700] f[1,260,70]"},
    {"fold_b=1", "f[7,5] f[5,3,2] f[6]"}, {"fold_b=2", "f[2,7,6] f[2,3,5]"},
    {"fold_b=2 trans_b=1", "f[490,12] f[3,5,4,3]"}, {"fold_b=1", "f[4,0] f[0,3,2]"},
    {"act=relu", "f[7,5] f[5,3] f[3]", FUSED}, {"act=tanh", "f[33,20] f[20,67]", FUSED},
    {"act=sigmoid trans_b=1", "f[9,20] f[35,20] f[35]", FUSED},
    {"act=hard_sigmoid", "f[9,20] f[20,35] f[35]", FUSED})
SET(conv2d, {"stride=2,2 pad=0,1,1,0", "f[2,7,6,3] f[3,2,3,4]"}, {"", "f[2,5,6,3] f[3,3,3,5] f[5]"},
    {"pad=1,1,1,1", "f[2,5,4,3] f[3,3,3,7]"}, {"dilation=2,3 pad=2,1,4,3", "f[1,7,8,2] f[3,3,2,5]"},
    {"groups=2 pad=1,1,0,0", "f[2,4,5,6] f[3,2,3,4] f[4]"},
    {"groups=3 pad=1,1,1,1 stride=2,1", "f[2,5,4,3] f[3,3,1,6]"}, {"", "f[2,3,3,8] f[1,1,8,5]"},
    {"stride=2,2", "f[2,5,4,8] f[1,1,8,5]"}, {"pad=4,4,4,4", "f[1,2,3,2] f[2,2,2,3]"},
    {"", "f[1,1,1,1] f[1,1,1,1]"}, {"", "f[0,5,5,2] f[3,3,2,4]"},
    {"pad=1,1,1,1", "f[2,3,3,0] f[3,3,0,4]"}, {"", "f[2,3,3,2] f[2,2,2,0]"},
    {"pad=1,1,1,1", "f[2,9,10,67] f[3,3,67,35] f[35]"},
    {"stride=2,2 pad=2,3,2,3", "f[3,21,20,3] f[7,7,3,67]"},
    {"act=relu pad=1,1,1,1", "f[2,8,9,5] f[3,3,5,18] f[18]", FUSED},
    {"act=tanh", "f[2,8,9,5] f[3,3,5,18]", FUSED},
    {"act=sigmoid", "f[2,4,5,3] f[1,1,3,5] f[5]", FUSED},
    /* depthwise */
    {"groups=19 pad=1,1,1,1", "f[2,4,9,19] f[3,3,1,19] f[19]"},
    {"groups=16 stride=2,2 pad=1,2,1,2", "f[2,6,15,16] f[5,5,1,16]"},
    {"groups=3 dilation=2,2 pad=2,2,2,2", "f[2,5,6,3] f[3,3,1,3] f[3]"},
    {"groups=33 pad=3,3,3,3", "f[1,3,8,33] f[7,7,1,33]"},
    {"groups=17 stride=3,3", "f[1,7,8,17] f[2,3,1,17]"},
    {"groups=35 pad=1,1,1,1 act=relu", "f[3,14,15,35] f[3,3,1,35] f[35]", FUSED},
    {"groups=5 act=tanh", "f[2,4,5,5] f[3,3,1,5] f[5]", FUSED},
    {"groups=36 pad=1,1,1,1 stride=2,1 act=relu6", "f[2,6,7,36] f[3,3,1,36] f[36]", FUSED},
    /* a scale and a shift */
    {"pad=1,1,1,1 act=relu6", "f[2,4,5,3] f[3,3,3,19] f[2,19]", FUSED},
    {"act=silu", "f[2,4,5,30] f[1,1,30,32] f[2,32]", FUSED},
    {"groups=2", "f[2,4,5,4] f[1,1,2,6] f[2,6]", FUSED},
    {"groups=19 pad=1,1,1,1 act=relu6", "f[2,4,9,19] f[3,3,1,19] f[2,19]", FUSED},
    {"groups=5", "f[2,4,5,5] f[3,3,1,5] f[2,5]", FUSED},
    {"pad=1,1,1,1", "f[1,5,6,300] f[3,3,300,20] f[2,20]", FUSED},
    {"act=relu6", "f[2,4,5,3] f[1,1,3,5] f[5]", FUSED},
    {"groups=2 act=silu", "f[2,4,5,32] f[1,1,16,32] f[32]", FUSED},
    /* by transformed tiles: small images together, uneven and wide padding, edges in a tile */
    {"pad=2,0,1,4", "f[7,5,6,16] f[3,3,16,17] f[17]"},
    {"act=relu", "f[3,9,6,20] f[3,3,20,66] f[2,66]", FUSED},
    {"pad=1,1,1,1 act=silu", "f[2,3,4,18] f[3,3,18,5] f[5]", FUSED})
SET(conv2d_dx, {"stride=2,2 pad=0,1,1,0 input=7,6", "f[2,3,3,4] f[3,2,3,4]"},
    {"input=5,6", "f[2,3,4,5] f[3,3,3,5]"}, {"pad=1,1,1,1 input=5,4", "f[2,5,4,7] f[3,3,3,7]"},
    {"dilation=2,3 pad=2,1,4,3 input=7,8", "f[1,6,9,5] f[3,3,2,5]"},
    {"groups=2 pad=1,1,0,0 input=4,5", "f[2,4,4,4] f[3,2,3,4]"},
    {"groups=3 pad=1,1,1,1 stride=2,1 input=5,4", "f[2,3,4,6] f[3,3,1,6]"},
    {"stride=3,3 input=8,9", "f[2,3,3,5] f[2,2,3,5]"}, {"input=3,3", "f[2,3,3,5] f[1,1,8,5]"},
    {"input=1,1", "f[1,1,1,1] f[1,1,1,1]"}, {"input=5,5", "f[0,3,3,4] f[3,3,2,4]"},
    {"input=3,3 pad=1,1,1,1", "f[2,3,3,0] f[3,3,4,0]"},
    {"pad=1,1,1,1 input=9,10", "f[2,9,10,35] f[3,3,67,35]"},
    {"stride=2,2 pad=2,3,2,3 input=21,20", "f[3,10,10,67] f[7,7,3,67]"},
    {"groups=19 pad=1,1,1,1 input=4,9", "f[2,4,9,19] f[3,3,1,19]"},
    {"groups=16 stride=2,2 pad=1,2,1,2 input=6,15", "f[2,3,7,16] f[5,5,1,16]"},
    {"groups=3 dilation=2,2 pad=2,2,2,2 input=5,6", "f[2,5,6,3] f[3,3,1,3]"},
    {"groups=33 pad=3,3,3,3 input=3,8", "f[1,3,8,33] f[7,7,1,33]"},
    {"groups=17 stride=3,3 input=7,8", "f[1,2,2,17] f[2,3,1,17]"},
    {"groups=36 dilation=2,1 pad=1,1,1,1 stride=2,1 input=6,7", "f[2,2,7,36] f[3,3,1,36]"},
    {"pad=2,0,1,4 input=5,6", "f[7,5,9,17] f[3,3,16,17]"},
    {"input=9,6", "f[3,7,4,66] f[3,3,20,66]"})
SET(conv2d_dw, {"stride=2,2 pad=0,1,1,0 kernel=3,2", "f[2,7,6,3] f[2,3,3,4]"},
    {"kernel=3,3", "f[2,5,6,3] f[2,3,4,5]"}, {"pad=1,1,1,1 kernel=3,3", "f[2,5,4,3] f[2,5,4,7]"},
    {"dilation=2,3 pad=2,1,4,3 kernel=3,3", "f[1,7,8,2] f[1,6,9,5]"},
    {"groups=2 pad=1,1,0,0 kernel=3,2", "f[2,4,5,6] f[2,4,4,4]"},
    {"groups=3 pad=1,1,1,1 stride=2,1 kernel=3,3", "f[2,5,4,3] f[2,3,4,6]"},
    {"kernel=1,1", "f[2,3,3,8] f[2,3,3,5]"}, {"kernel=1,1", "f[1,1,1,1] f[1,1,1,1]"},
    {"kernel=3,3", "f[0,5,5,2] f[0,3,3,4]"},
    {"pad=1,1,1,1 kernel=3,3", "f[2,9,10,67] f[2,9,10,35]"},
    {"kernel=3,3 bias=1", "f[2,5,6,3] f[2,3,4,5]", FUSED},
    {"stride=2,2 pad=2,3,2,3 kernel=7,7 bias=1", "f[3,21,20,3] f[3,10,10,67]", FUSED},
    {"kernel=3,3 bias=1", "f[0,5,5,2] f[0,3,3,4]", FUSED},
    {"groups=2 pad=1,1,0,0 kernel=3,2 bias=1", "f[2,4,5,6] f[2,4,4,4]", FUSED},
    {"groups=19 pad=1,1,1,1 kernel=3,3", "f[2,4,9,19] f[2,4,9,19]"},
    {"groups=16 stride=2,2 pad=1,2,1,2 kernel=5,5", "f[2,6,15,16] f[2,3,7,16]"},
    {"groups=3 dilation=2,2 pad=2,2,2,2 kernel=3,3", "f[2,5,6,3] f[2,5,6,3]"},
    {"groups=33 pad=3,3,3,3 kernel=7,7", "f[1,3,8,33] f[1,3,8,33]"},
    {"groups=17 stride=3,3 kernel=2,3", "f[1,7,8,17] f[1,2,2,17]"},
    {"groups=36 pad=1,1,1,1 kernel=3,3 bias=1", "f[2,6,7,36] f[2,6,7,36]", FUSED},
    {"groups=132 pad=1,1,1,1 kernel=3,3", "f[1,3,4,132] f[1,3,4,132]"},
    {"groups=35 pad=1,1,1,1 kernel=3,3 bias=1", "f[3,14,15,35] f[3,14,15,35]", FUSED},
    /* by transformed tiles */
    {"pad=2,0,1,4 kernel=3,3 bias=1", "f[7,5,6,16] f[7,5,9,17]", FUSED},
    {"kernel=3,3", "f[3,9,6,20] f[3,7,4,66]"},
    {"pad=1,1,1,1 kernel=3,3 bias=1", "f[40,5,6,18] f[40,5,6,5]", FUSED},
    {"pad=1,1,1,1 kernel=3,3", "f[0,5,6,18] f[0,5,6,5]"})
#define SHAPES_OF_POOL(domain)                                                                     \
    CASE("kernel=2,2 stride=2,2", "f[2,7,6,3]" domain),                                            \
        CASE("kernel=3,2 stride=1,2", "f[2,5,6,5]" domain),                                        \
        CASE("kernel=3,3 stride=2,2 pad=1,1,0,1", "f[2,7,6,4]" domain),                            \
        CASE("kernel=2,2 stride=3,3 pad=0,1,1,0", "f[1,7,8,2]" domain),                            \
        CASE("kernel=1,1", "f[1,1,1,1]" domain), CASE("kernel=5,4", "f[2,5,4,3]" domain),          \
        CASE("kernel=2,2 stride=2,2", "f[0,6,6,3]" domain),                                        \
        CASE("kernel=2,2", "f[2,3,3,0]" domain),                                                   \
        CASE("kernel=3,3 stride=2,2 pad=1,1,1,1", "f[2,9,8,67]" domain),                           \
        CASE("kernel=2,2 stride=2,2", "f[3,18,10,133]" domain)
SET(pool, SHAPES_OF_POOL(""), {"kernel=2,2 stride=2,2", "f[2,7,6,3]@special", VALUES})
SET(pool_distinct, SHAPES_OF_POOL("@distinct"),
    {"kernel=2,2 stride=2,2", "f[2,7,6,3]@special", VALUES},
    {"kernel=3,3 pad=1,1,1,1", "f[2,7,6,9]@ties", VALUES})
#define SHAPES_OF_POOL_GRAD(code)                                                                  \
    CASE("kernel=2,2 stride=2,2 input=7,6", "f[2,3,3,3]" code("[2,3,3,3]")),                       \
        CASE("kernel=3,2 stride=1,2 input=5,6", "f[2,3,3,5]" code("[2,3,3,5]")),                   \
        CASE("kernel=3,3 stride=2,2 pad=1,1,0,1 input=7,6", "f[2,4,3,4]" code("[2,4,3,4]")),       \
        CASE("kernel=2,2 stride=3,3 pad=0,1,1,0 input=7,8", "f[1,3,3,2]" code("[1,3,3,2]")),       \
        CASE("kernel=1,1 input=1,1", "f[1,1,1,1]" code("[1,1,1,1]")),                              \
        CASE("kernel=2,2 stride=2,2 input=6,6", "f[0,3,3,3]" code("[0,3,3,3]")),                   \
        CASE("kernel=3,3 stride=2,2 pad=1,1,1,1 input=9,8", "f[2,5,4,67]" code("[2,5,4,67]")),     \
        CASE("kernel=2,2 stride=2,2 input=18,10", "f[3,9,5,133]" code("[3,9,5,133]"))
#define NO_CODE(dims)
#define CODE(dims) " opaque" dims
SET(avgpool_grad, SHAPES_OF_POOL_GRAD(NO_CODE))
SET(maxpool_grad, SHAPES_OF_POOL_GRAD(CODE))
SET(maxpool_pick, {"kernel=2,2 stride=2,2 input=7,6", "f[2,7,6,3] opaque[2,3,3,3]"},
    {"kernel=3,2 stride=1,2 input=5,6", "f[2,5,6,5] opaque[2,3,3,5]"},
    {"kernel=3,3 stride=2,2 pad=1,1,0,1 input=7,6", "f[2,7,6,4] opaque[2,4,3,4]"},
    {"kernel=1,1 input=1,1", "f[1,1,1,1] opaque[1,1,1,1]"},
    {"kernel=2,2 stride=2,2 input=6,6", "f[0,6,6,3] opaque[0,3,3,3]"},
    {"kernel=3,3 stride=2,2 pad=1,1,1,1 input=9,8", "f[2,9,8,67] opaque[2,5,4,67]"},
    {"kernel=2,2 stride=2,2 input=18,10", "f[3,18,10,133] opaque[3,9,5,133]"})

/* --- normalisation --------------------------------------------------------------------------- */
SET(channels, {"", "f[5,3]"}, {"", "f[7]"}, {"", "f[4,67]"}, {"", "f[2,3,4,5]"}, {"", "f[1,133]"},
    {"", "f[9,1]"}, {"", "f[0,3]"}, {"", "f[3,0]"}, {"", "f[3,133,89]"}, {"", "f[4500,9]"},
    {"", "f[600,36]"})
#define EACH_CHANNELS(X)                                                                           \
    X("[5,3]", "[3]"), X("[7]", "[7]"), X("[4,67]", "[67]"), X("[2,3,4,5]", "[5]"),                \
        X("[1,133]", "[133]"), X("[9,1]", "[1]"), X("[0,3]", "[3]"), X("[3,0]", "[0]"),            \
        X("[3,133,89]", "[89]"), X("[4500,9]", "[9]"), X("[600,36]", "[36]")
#define NORMALISE(x, c)                                                                            \
    { "epsilon=0.001", "f" x " f" c " f" c "@pos f" c " f" c }
#define NORMALISE_SUMS(x, c)                                                                       \
    { "epsilon=0.01", "f" x " f" x " f" c " f" c "@pos" }
#define CHANNEL_AFFINE(x, c)                                                                       \
    { "", "f" x " f" x " f" c " f" c " f" c }
SET(normalise, EACH_CHANNELS(NORMALISE))
SET(normalise_line, {"epsilon=0.001", "f[7] f[7]@pos f[7] f[7]"},
    {"epsilon=0.1", "f[67] f[67]@pos f[67] f[67] f[67]"},
    {"epsilon=0.001", "f[1] f[1]@pos f[1] f[1]"}, {"epsilon=0.001", "f[0] f[0] f[0] f[0] f[0]"},
    {"epsilon=0.01", "f[9001] f[9001]@pos f[9001] f[9001]"})
SET(normalise_sums, EACH_CHANNELS(NORMALISE_SUMS))
SET(channel_affine, EACH_CHANNELS(CHANNEL_AFFINE))
/* mean and 1 / deviation exist for the gradient rule, which refuses theirs */
SET_BUT(layernorm, 1u << 1 | 1u << 2, {"epsilon=0.001", "f[5,3] f[3] f[3]"},
        {"epsilon=0.001", "f[7] f[7] f[7]"}, {"epsilon=0.1", "f[4,67] f[67] f[67]"},
        {"epsilon=0.001", "f[2,3,4,5] f[5] f[5]"}, {"epsilon=0.001", "f[1,133] f[133] f[133]"},
        {"epsilon=0.5", "f[9,1] f[1] f[1]"}, {"epsilon=0.001", "f[0,3] f[3] f[3]"},
        {"epsilon=0.001", "f[3,0] f[0] f[0]"}, {"epsilon=0.001", "f[3,133,89] f[89] f[89]"})
#define EACH_ROWS(X)                                                                               \
    X("[5,3]", "[3]", "[5]"), X("[7]", "[7]", "[]"), X("[4,67]", "[67]", "[4]"),                   \
        X("[2,3,4,5]", "[5]", "[2,3,4]"), X("[1,133]", "[133]", "[1]"), X("[9,1]", "[1]", "[9]"),  \
        X("[0,3]", "[3]", "[0]"), X("[3,0]", "[0]", "[3]"), X("[3,133,89]", "[89]", "[3,133]")
#define LAYERNORM_DX(x, c, r)                                                                      \
    { "", "f" x " f" x " f" c " f" r " f" r "@pos" }
#define LAYERNORM_SUMS(x, c, r)                                                                    \
    { "", "f" x " f" x " f" r " f" r "@pos" }
SET(layernorm_dx, EACH_ROWS(LAYERNORM_DX))
SET(layernorm_sums, EACH_ROWS(LAYERNORM_SUMS))

/* --- softmax and cross-entropies -------------------------------------------------------------- */
#define ROWS(x, c, r)                                                                              \
    { "", "f" x }
#define ROWS_PAIR(x, c, r)                                                                         \
    { "", "f" x " f" x "@prob" }
#define SOFTMAX_XENT_GRAD(x, c, r)                                                                 \
    { "", "f" x " f" x "@prob f" r }
SET(rows, EACH_ROWS(ROWS), {"", "f[5,67]@wide", VALUES}, {"", "f[9,7]@special", VALUES})
SET(rows_pair, EACH_ROWS(ROWS_PAIR))
SET(softmax_xent, EACH_ROWS(ROWS_PAIR), {"", "f[5,67]@wide f[5,67]@prob", VALUES},
    {"", "f[5,9] f[5,9]"}, {"unit=1", "f[5,9] f[5,9]", VALUES})
SET(softmax_xent_grad, EACH_ROWS(SOFTMAX_XENT_GRAD), {"", "f[5,67]@wide f[5,67]@prob f[5]", VALUES},
    {"", "f[5,9] f[5,9] f[5]"}, {"unit=1", "f[5,9] f[5,9] f[5]"},
    {"unit=1", "f[3,300] f[3,300] f[3]", VALUES})
SET(sparse_xent, {"", "f[6,10] i32[6]@labels:10"}, {"", "f[5] i64[]@labels:5"},
    {"", "f[3,67] i32[3]@labels:67"}, {"", "f[2,4,133] i64[2,4]@labels:133"},
    {"", "f[7,1] i32[7]@labels:1"}, {"", "f[0,5] i32[0]@labels:5"}, {"", "f[1,9] i32[1]@labels:9"},
    {"", "f[3,133,89] i32[3,133]@labels:89"}, {"", "f[5,67]@wide i32[5]@labels:67", VALUES},
    {"skip=1", "f[40,5] i32[40]@labels:9"}, {"skip=1", "f[9,130] i64[9]@labels:300"})
SET(sparse_xent_grad, {"", "f[6,10] i32[6]@labels:10 f[6]"}, {"", "f[5] i64[]@labels:5 f[]"},
    {"", "f[3,67] i32[3]@labels:67 f[3]"}, {"", "f[2,4,133] i64[2,4]@labels:133 f[2,4]"},
    {"", "f[7,1] i32[7]@labels:1 f[7]"}, {"", "f[0,5] i32[0]@labels:5 f[0]"},
    {"", "f[1,9] i32[1]@labels:9 f[1]"}, {"", "f[3,133,89] i32[3,133]@labels:89 f[3,133]"},
    {"", "f[5,67]@wide i32[5]@labels:67 f[5]", VALUES},
    {"skip=1", "f[40,5] i32[40]@labels:9 f[40]"}, {"skip=1", "f[9,130] i64[9]@labels:300 f[9]"})
SET(dropout, SHAPES_OF_ONE("rate=0.3 key=7", ""), {"rate=0 key=1", "f[5,9]"},
    {"rate=0.9 key=-3", "f[5,133]"}, {"rate=0.5 key=99", "f[7,9000]"})

/* --- shapes ---------------------------------------------------------------------------------- */
SET(reshape, {"dims=12", "f[3,4]"}, {"dims=3,-1", "f[3,2,5]"}, {"dims=2,67,3", "f[2,201]"},
    {"dims=6,5", "f[2,3,5]"}, {"dims=4,6", "f[6,4]"}, {"dims=1,5,1", "f[5]"}, {"", "f[1]"},
    {"dims=0,7", "f[7,0]"}, {"dims=133,267", "f[3,133,89]"}, {"dims=4,2,3,5", "f[8,15]"},
    {"dims=3,5", "i64[15]"}, {"dims=15", "bool[3,5]"}, {"dims=5,3", "u8[3,5]"})
SET(transpose, {"perm=1,0", "f[3,5]"}, {"perm=0,2,1", "f[2,67,5]"}, {"perm=2,0,1", "f[3,4,5]"},
    {"perm=0,2,1,3", "f[2,3,4,5]"}, {"perm=0", "f[7]"}, {"perm=1,0", "f[1,133]"},
    {"perm=1,0", "f[0,3]"}, {"perm=3,1,2,0", "f[3,1,5,2]"}, {"perm=1,0", "f[267,133]"},
    {"perm=1,0,2", "f[133,3,89]"}, {"perm=2,1,0", "f[33,35,37]"}, {"perm=1,0", "i64[3,67]"},
    {"perm=1,0", "bool[35,34]"}, {"", "f[]"})
SET(concat, {"axis=0", "f[3,5] f[2,5]"}, {"axis=1", "f[3,5] f[3,1] f[3,67]"}, {"axis=0", "f[7]"},
    {"axis=2", "f[2,3,4] f[2,3,0] f[2,3,5]"}, {"axis=1", "f[1,3,1] f[1,2,1]"},
    {"axis=1", "f[0,3] f[0,4]"}, {"axis=1", "f[3,100,89] f[3,33,89]"},
    {"axis=0", "i32[3] i32[4] i32[2] i32[1]"}, {"axis=0", "bool[3,2] bool[67,2]"})
SET(slice, {"sizes=2,3 start=1,1", "f[4,5]"}, {"sizes=3 strides=2 start=1", "f[7]"},
    {"sizes=3,5,2 start=0,0,4", "f[3,5,7]"}, {"sizes=3,67 strides=1,1 start=2,0", "f[9,67]"},
    {"sizes=2,3 strides=3,2 start=1,0", "f[5,6]"}, {"sizes=0,3 start=1,0", "f[4,3]"},
    {"sizes=1,1 start=3,4", "f[4,5]"}, {"sizes=0,3 start=0,0", "f[0,3]"}, {"", "f[]"},
    {"sizes=3,120,89 start=0,7,0", "f[3,133,89]"}, {"sizes=5,-1 start=1,0", "i64[7,3]"},
    {"sizes=5 strides=3 start=2", "bool[17]"}, {"sizes=7 strides=-1 start=6", "f[7]"},
    {"sizes=3,2,67 strides=1,-2,1 start=0,3,0", "f[3,5,67]"},
    {"sizes=2,3 strides=-3,-2 start=4,5", "f[5,6]"}, {"sizes=1,3 strides=-1,1 start=0,0", "f[1,3]"},
    {"sizes=0,3 strides=-1,-1 start=0,2", "f[0,3]"},
    {"sizes=3,133,89 strides=1,-1,-1 start=0,132,88", "f[3,133,89]"})
SET(slice_grad, {"dims=4,5 start=1,1", "f[2,3]"}, {"dims=7 strides=2 start=1", "f[3]"},
    {"dims=3,5,7 start=0,0,4", "f[3,5,2]"}, {"dims=9,67 start=2,0", "f[3,67]"},
    {"dims=5,6 strides=3,2 start=1,0", "f[2,3]"}, {"dims=4,3 start=1,0", "f[0,3]"},
    {"dims=4,5 start=3,4", "f[1,1]"}, {"dims=0,3 start=0,0", "f[0,3]"},
    {"dims=3,133,89 start=0,7,0", "f[3,120,89]"}, {"dims=7,3 start=1,0", "i64[5,3]"},
    {"dims=7 strides=-1 start=6", "f[7]"}, {"dims=3,5,67 strides=1,-2,1 start=0,3,0", "f[3,2,67]"},
    {"dims=5,6 strides=-3,-2 start=4,5", "f[2,3]"})
SET(pad, {"before=1,0 after=0,2 value=0.5", "f[3,4]"}, {"before=2 after=1 value=0", "f[7]"},
    {"before=0,1,1,0 after=0,1,1,0 value=0", "f[2,3,4,5]"},
    {"before=0,3 after=0,0 value=-1", "f[3,67]"}, {"before=0,0 after=0,0 value=3", "f[1,133]"},
    {"before=1,0 after=1,0 value=2", "f[0,3]"}, {"before=1,2 after=0,1 value=9", "f[3,0]"},
    {"before=0,5,0 after=0,5,0 value=0", "f[3,133,89]"},
    {"before=1,1 after=1,1 value=-7", "i32[3,5]"}, {"before=2 after=3 value=200", "u8[9]"})

/* --- indexing -------------------------------------------------------------------------------- */
SET(gather, {"axis=0", "f[9,5] i32[7]@labels:9"}, {"axis=1", "f[3,9,5] i64[4,2]@labels:9"},
    {"axis=0", "f[67,3] i32[]@labels:67"}, {"axis=1", "f[3,133] i32[67]@labels:133"},
    {"axis=0", "f[1,5] i32[3,1]@labels:1"}, {"axis=0", "f[9,5] i32[0]@labels:9"},
    {"axis=1", "f[0,4] i32[3]@labels:4"}, {"axis=0", "f[50,89] i32[3,133]@labels:50"},
    {"axis=0", "i64[9,5] i64[7]@labels:9"}, {"axis=0", "bool[9] i32[7]@labels:9"})
SET(scatter_add, {"dims=9,5 axis=0", "i32[7]@labels:9 f[7,5]"},
    {"dims=3,9,5 axis=1", "i64[4,2]@labels:9 f[3,4,2,5]"},
    {"dims=67,3 axis=0", "i32[]@labels:67 f[3]"}, {"dims=3,5 axis=1", "i32[133]@labels:5 f[3,133]"},
    {"dims=1,5 axis=0", "i32[3,1]@labels:1 f[3,1,5]"},
    {"dims=9,5 axis=0", "i32[0]@labels:9 f[0,5]"}, {"dims=0,4 axis=1", "i32[3]@labels:4 f[0,3]"},
    {"dims=50,89 axis=0", "i32[3,133]@labels:50 f[3,133,89]"},
    {"dims=9,5 axis=0", "i64[7]@labels:9 i32[7,5]"}, {"dims=9 axis=0", "i32[67]@labels:9 i64[67]"})
SET(one_hot, {"depth=10 dtype=f", "i32[7]@labels:10"}, {"depth=5 dtype=f", "i64[3,4]"},
    {"depth=67 dtype=f", "i32[]@labels:67"}, {"depth=133 dtype=f", "i32[9]@labels:140"},
    {"depth=1 dtype=f", "i32[5]@labels:2"}, {"depth=4 dtype=f", "i32[0]"},
    {"depth=0 dtype=f", "i32[3]"}, {"depth=89 dtype=f", "i32[3,133]@labels:89"},
    {"depth=9 dtype=i32", "i32[7]"}, {"depth=9 dtype=u8", "i64[7]"},
    {"depth=9 dtype=i64", "i32[7]"})

/* --- state ------------------------------------------------------------------------------------ */
SET(assign, SHAPES_OF_PAIR("", ""), {"", "i32[3,67] i32[3,67]"}, {"", "i64[5] i64[5]"})
SET(moving_average, SHAPES_OF_PAIR("momentum=0.9", ""), {"momentum=0", "f[5,9] f[5,9]"})
SET(sgd, SHAPES_OF_PAIR("rate=0.01 momentum=0", ""),
    {"rate=1e-3 momentum=0 nesterov=1", "f[5,9] f[5,9]"})
#define EACH_PLAIN(X)                                                                              \
    X("[]"), X("[7]"), X("[1,5,1]"), X("[3,67]"), X("[2,3,133]"), X("[0,4]"), X("[3,133,89]")
#define SGD_MOMENTUM(x)                                                                            \
    { "rate=0.01 momentum=0.9", "f" x " f" x " f" x }
#define ADAM(x)                                                                                    \
    {                                                                                              \
        "rate=0.01 one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7",                        \
            "f" x " f" x " f" x "@pos f" x                                                         \
    }
SET(sgd_momentum, EACH_PLAIN(SGD_MOMENTUM),
    {"nesterov=1 rate=0.01 momentum=0.9", "f[3,67] f[3,67] f[3,67]"},
    {"nesterov=1 rate=0.01 momentum=0.9", "f[3,133,89] f[3,133,89] f[3,133,89]"})
SET(adam, EACH_PLAIN(ADAM),
    {"rate=0.01 one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7",
     "f[3,67] f[3,67] f[3,67]@pos f[3,67] f[3,67]@pos"},
    {"rate=0.01 one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7",
     "f[3,133,89] f[3,133,89] f[3,133,89]@pos f[3,133,89] f[3,133,89]@pos"})
#define AMSGRAD(x)                                                                                 \
    {                                                                                              \
        "rate=0.01 one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7",                        \
            "f" x " f" x " f" x "@pos f" x "@pos f" x                                              \
    }
#define RMSPROP(x)                                                                                 \
    { "rate=0.01 rho=0.9 momentum=0 epsilon=1e-7", "f" x " f" x "@pos f" x }
#define ADAGRAD(x)                                                                                 \
    { "rate=0.01 epsilon=1e-7", "f" x " f" x "@pos f" x }
#define ADADELTA(x)                                                                                \
    { "rate=0.5 rho=0.95 epsilon=1e-7", "f" x " f" x "@pos f" x "@pos f" x }
#define ADAMAX(x)                                                                                  \
    { "rate=0.01 one_minus_beta1=0.1 beta2=0.999 epsilon=1e-7", "f" x " f" x " f" x "@pos f" x }
#define NADAM(x)                                                                                   \
    {                                                                                              \
        "one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7 mean_rate=0.006 "                  \
        "now_rate=0.008 square_part=1.5",                                                          \
            "f" x " f" x " f" x "@pos f" x                                                         \
    }
#define LION(x)                                                                                    \
    { "rate=0.01 beta1=0.9 beta2=0.99", "f" x " f" x " f" x }
#define FTRL(x)                                                                                    \
    { "rate=0.1 power=-0.5 l1=0 l2=0 shrinkage=0", "f" x " f" x "@pos f" x " f" x }
#define WEIGHT_DECAY(x)                                                                            \
    { "rate=0.1 decay=0.04", "f" x }
SET(amsgrad, EACH_PLAIN(AMSGRAD),
    {"rate=0.01 one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7",
     "f[3,67] f[3,67] f[3,67]@pos f[3,67]@pos f[3,67] f[3,67]@pos"})
SET(rmsprop, EACH_PLAIN(RMSPROP),
    {"rate=0.01 rho=0.9 momentum=0.8 epsilon=1e-7", "f[3,67] f[3,67]@pos f[3,67] f[3,67]"},
    {"centered=1 rate=0.01 rho=0.9 momentum=0 epsilon=9", "f[3,67] f[3,67]@pos f[3,67] f[3,67]"},
    {"centered=1 rate=0.01 rho=0.9 momentum=0.8 epsilon=9",
     "f[3,133,89] f[3,133,89]@pos f[3,133,89] f[3,133,89] f[3,133,89]"},
    {"squares=1 rate=0.01 rho=0.9 momentum=0 epsilon=1e-7",
     "f[3,67] f[3,67]@pos f[3,67] f[3,67]@pos"},
    {"centered=1 squares=1 rate=0.01 rho=0.9 momentum=0.8 epsilon=9",
     "f[3,67] f[3,67]@pos f[3,67] f[3,67] f[3,67] f[3,67]@pos"})
SET(adagrad, EACH_PLAIN(ADAGRAD),
    {"rate=0.01 epsilon=1e-7", "f[3,67] f[3,67]@pos f[3,67] f[3,67]@pos"})
SET(adadelta, EACH_PLAIN(ADADELTA),
    {"rate=0.5 rho=0.95 epsilon=1e-7", "f[3,67] f[3,67]@pos f[3,67]@pos f[3,67] f[3,67]@pos"})
SET(adamax, EACH_PLAIN(ADAMAX),
    {"rate=0.01 one_minus_beta1=0.1 beta2=0.999 epsilon=1e-7",
     "f[3,67] f[3,67] f[3,67]@pos f[3,67] f[3,67]@pos"})
SET(nadam, EACH_PLAIN(NADAM),
    {"one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-7 mean_rate=0.006 now_rate=0.008 "
     "square_part=1.5",
     "f[3,67] f[3,67] f[3,67]@pos f[3,67] f[3,67]@pos"})
SET(lion, EACH_PLAIN(LION))
SET(ftrl, EACH_PLAIN(FTRL),
    {"rate=0.1 power=-0.7 l1=0.2 l2=0.1 shrinkage=0.05", "f[3,67] f[3,67]@pos f[3,67] f[3,67]"},
    {"rate=0.1 power=-0.5 l1=0.2 l2=0 shrinkage=0",
     "f[3,67] f[3,67]@pos f[3,67] f[3,67] f[3,67]@pos"})
SET(weight_decay, EACH_PLAIN(WEIGHT_DECAY))

/* --- the column ------------------------------------------------------------------------------- */
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    extern const sn_case_set sn_cases_##cases;
#include "op/ops.def"
#undef SNUG_OP
const sn_case_set *const sn_case_sets[SN_N_OPS] = {
#define SNUG_OP(name, in, attrs, shape, grad, reads, inplace, axes, effect, acc, build, fuses,     \
                flops, speed, cpu, cuda, chain, cases)                                             \
    [SN_OP_##name] = &sn_cases_##cases,
#include "op/ops.def"
#undef SNUG_OP
};

/* References work in double and round once, or do the very same operation as the fast kernel; rows
 * that are not here give the same bits. */
const sn_tolerance sn_case_tolerances[SN_N_OPS] = {
    /* pictures: taps of two axes one after the other, against products of their weights */
    [SN_OP_resize] = {.largest = 16},
    [SN_OP_resize_grad] = {.largest = 16},
    [SN_OP_warp] = {.largest = 4},
    /* functions by polynomials in f32: a few units in the last place */
    [SN_OP_rsqrt] = {.ulps = 2},
    [SN_OP_exp] = {.ulps = 2},
    [SN_OP_log] = {.ulps = 2},
    [SN_OP_tanh] = {.ulps = 2},
    [SN_OP_sigmoid] = {.ulps = 3},
    [SN_OP_softplus] = {.ulps = 3},
    [SN_OP_erf] = {.ulps = 2},
    [SN_OP_elu] = {.ulps = 3},
    [SN_OP_silu] = {.ulps = 4},
    [SN_OP_power] = {.ulps = 4},
    [SN_OP_log1p] = {.ulps = 3},
    [SN_OP_expm1] = {.ulps = 3},
    /* libm's f32 functions */
    [SN_OP_sin] = {.ulps = 2},
    [SN_OP_cos] = {.ulps = 2},
    [SN_OP_tan] = {.ulps = 2},
    [SN_OP_asin] = {.ulps = 2},
    [SN_OP_acos] = {.ulps = 2},
    [SN_OP_atan] = {.ulps = 2},
    [SN_OP_sinh] = {.ulps = 4},
    [SN_OP_cosh] = {.ulps = 4},
    [SN_OP_asinh] = {.ulps = 4},
    [SN_OP_acosh] = {.ulps = 4},
    [SN_OP_atanh] = {.ulps = 4},
    [SN_OP_erfc] = {.ulps = 6},
    /* computed in double: the next number is too far, but halves are rounded twice */
    [SN_OP_erfinv] = {.ulps = 0.5},
    [SN_OP_lgamma] = {.ulps = 0.5},
    [SN_OP_digamma] = {.ulps = 0.5},
    [SN_OP_trigamma] = {.ulps = 0.5},
    [SN_OP_pow] = {.ulps = 2},
    [SN_OP_atan2] = {.ulps = 2},
    /* differences of numbers of the order of 1, each rounded: 1 + erf, 1 - y * y, scale * x +
     * shift */
    [SN_OP_gelu] = {.ulps = 4, .inputs = 2},
    [SN_OP_gelu_tanh] = {.ulps = 4, .inputs = 4},
    [SN_OP_gelu_tanh_grad] = {.ulps = 8, .inputs = 8},
    [SN_OP_mish] = {.ulps = 6, .inputs = 1},
    [SN_OP_mish_grad] = {.ulps = 8, .inputs = 8},
    [SN_OP_hard_sigmoid] = {.ulps = 2, .inputs = 2},
    [SN_OP_hard_silu] = {.ulps = 2, .inputs = 2},
    [SN_OP_hard_silu_grad] = {.ulps = 2, .inputs = 2},
    [SN_OP_affine] = {.ulps = 2, .inputs = 2},
    [SN_OP_elu_grad] = {.ulps = 2, .inputs = 2},
    [SN_OP_tanh_grad] = {.ulps = 4, .inputs = 4},
    [SN_OP_sigmoid_grad] = {.ulps = 4, .inputs = 4},
    [SN_OP_silu_grad] = {.ulps = 4, .inputs = 4},
    [SN_OP_gelu_grad] = {.ulps = 4, .inputs = 4},
    [SN_OP_sigmoid_xent] = {.ulps = 4, .inputs = 4},
    [SN_OP_normalise] = {.ulps = 4, .inputs = 8},
    [SN_OP_channel_affine] = {.ulps = 4, .inputs = 8},
    [SN_OP_moving_average] = {.ulps = 2, .inputs = 2},
    [SN_OP_sgd] = {.ulps = 2, .inputs = 2},
    [SN_OP_sgd_momentum] = {.ulps = 2, .inputs = 3},
    [SN_OP_adam] = {.ulps = 2, .inputs = 2},
    [SN_OP_matmul_adam] = {.ulps = 4, .inputs = 4, .largest = 16},
    [SN_OP_matmul_adam_dx] = {.ulps = 4, .inputs = 4, .largest = 16},
    [SN_OP_amsgrad] = {.ulps = 2, .inputs = 2},
    [SN_OP_rmsprop] = {.ulps = 2, .inputs = 2},
    [SN_OP_adagrad] = {.ulps = 2, .inputs = 2},
    [SN_OP_adadelta] = {.ulps = 4, .inputs = 2},
    [SN_OP_adamax] = {.ulps = 2, .inputs = 2},
    [SN_OP_nadam] = {.ulps = 2, .inputs = 2},
    [SN_OP_lion] = {.ulps = 2, .inputs = 2},
    /* a difference of two roots divided by the rate */
    [SN_OP_ftrl] = {.ulps = 4, .inputs = 64},
    [SN_OP_weight_decay] = {.ulps = 2},
    /* sums of many products in another order: the error is one of the whole sum */
    [SN_OP_sum] = {.ulps = 2, .largest = 2},
    [SN_OP_matmul] = {.ulps = 2, .largest = 16},
    [SN_OP_conv2d] = {.ulps = 2, .largest = 16},
    [SN_OP_conv2d_dx] = {.ulps = 2, .largest = 16},
    [SN_OP_conv2d_dw] = {.ulps = 2, .largest = 16},
    [SN_OP_conv2d_pool] = {.ulps = 2, .largest = 16},
    [SN_OP_conv2d_pool_dx] = {.ulps = 2, .largest = 16},
    [SN_OP_conv2d_pool_dw] = {.ulps = 2, .largest = 16},
    [SN_OP_avgpool] = {.ulps = 2, .largest = 2},
    [SN_OP_avgpool_grad] = {.ulps = 2, .largest = 2},
    [SN_OP_maxpool_grad] = {.ulps = 2, .largest = 2},
    [SN_OP_layernorm] = {.ulps = 4, .inputs = 4, .largest = 4},
    [SN_OP_layernorm_dx] = {.ulps = 4, .inputs = 4, .largest = 4},
    /* products of products, each rounded */
    [SN_OP_attention] = {.ulps = 8, .inputs = 4, .largest = 4},
    [SN_OP_attention_grad] = {.ulps = 8, .inputs = 4, .largest = 16},
    /* products in f32 and in double, step after step */
    [SN_OP_lstm] = {.ulps = 8, .inputs = 8, .largest = 16},
    [SN_OP_lstm_grad] = {.ulps = 8, .inputs = 8, .largest = 64},
    [SN_OP_gru] = {.ulps = 8, .inputs = 8, .largest = 16},
    [SN_OP_gru_grad] = {.ulps = 8, .inputs = 8, .largest = 64},
    [SN_OP_simple_rnn] = {.ulps = 8, .inputs = 8, .largest = 16},
    [SN_OP_simple_rnn_grad] = {.ulps = 8, .inputs = 8, .largest = 64},
    /* sums in double, in another order; rounded once where the output is f32 */
    [SN_OP_moments] = {.largest = 64},
    [SN_OP_normalise_sums] = {.ulps = 1},
    [SN_OP_layernorm_sums] = {.ulps = 1},
    /* probabilities are at most 1; x - max(x) is rounded, so that tiny ones have fewer digits */
    [SN_OP_softmax] = {.ulps = 4, .inputs = 0.5},
    [SN_OP_softmax_grad] = {.ulps = 2, .inputs = 2},
    [SN_OP_log_softmax] = {.ulps = 4, .inputs = 4},
    [SN_OP_softmax_xent] = {.ulps = 4, .inputs = 8},
    [SN_OP_softmax_xent_grad] = {.ulps = 4, .inputs = 4},
    [SN_OP_sparse_xent] = {.ulps = 4, .inputs = 4},
    [SN_OP_sparse_xent_grad] = {.ulps = 4, .inputs = 2},
};
