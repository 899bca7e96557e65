/* cases_conv_pool.c: convolution and pooling at once, and its gradients: windows of two by two
 * places, which have planes of bits for codes, and others, which have bytes; windows that overlap,
 * leave gaps, reach into the padding; channels beyond a vector, few and many; blocks of several
 * images, several groups of terms. Smooth cases have no window whose best two are near each other
 * nor a maximum near zero. */
#include "support/case_set.h"

#define TWO  "pool=2,2,2,2,0,0,0,0"
#define SAME "pool=2,2,2,2,0,1,0,1"
#define ODD  "pool=3,2,3,2,0,0,1,0"
#define OVER "pool=3,3,2,2,1,1,0,1"
#define GAPS "pool=2,1,3,2,0,0,0,0"

SET(conv2d_pool, {"codes=1 " TWO, "f[2,4,4,2] f[3,3,2,3] f[3]"},
    {"codes=1 act=relu " TWO, "f[2,6,6,2] f[3,3,2,3] f[3]"},
    {"codes=1 act=relu pad=1,1,1,1 " SAME, "f[1,5,5,2] f[3,3,2,2]"},
    {"codes=1 act=relu stride=2,1 " ODD, "f[2,7,5,3] f[2,2,3,2] f[2]"},
    {"codes=1 pad=1,0,0,1 dilation=2,1 " OVER, "f[1,6,5,2] f[2,2,2,2] f[2]"},
    {"codes=1 groups=2 " GAPS, "f[1,6,5,4] f[2,2,2,4]"},
    {TWO " act=relu", "f[2,7,7,3] f[3,3,3,19] f[19]", FUSED},
    {ODD, "f[2,7,7,3] f[3,3,3,19] f[19]", FUSED},
    {"codes=1 act=relu pad=1,1,1,1 " TWO, "f[2,7,8,3] f[3,3,3,35] f[2,35]", FUSED},
    {"codes=1 act=relu " TWO, "f[3,14,21,3] f[3,3,3,32] f[32]", VALUES},
    {"codes=1 act=relu " TWO, "f[2,14,79,3] f[3,3,3,67] f[67]", VALUES},
    {"codes=1 " TWO, "f[2,9,38,1] f[3,3,1,16]", VALUES},
    {"codes=1 act=relu pad=1,1,1,1 " TWO, "f[2,9,38,4] f[3,3,4,48] f[48]", VALUES},
    {"codes=1 pad=1,1,1,1 " SAME, "f[2,9,7,2] f[3,3,2,16] f[16]", VALUES},
    {"codes=1 act=relu pad=1,1,1,1 " OVER, "f[2,13,12,5] f[3,3,5,21] f[21]", VALUES},
    {"codes=1 stride=2,2 pad=3,3,3,3 act=relu " GAPS, "f[2,21,20,3] f[7,7,3,67] f[67]", VALUES},
    {"codes=1 act=relu pad=1,1,1,1 " TWO, "f[17,4,4,9] f[3,3,9,21] f[21]", VALUES},
    {"codes=1 act=relu pad=1,1,1,1 " TWO, "f[2,8,8,256] f[3,3,256,20] f[20]", VALUES},
    {"codes=1 act=relu pad=1,1,1,1 " SAME, "f[2,7,9,18] f[3,3,18,70] f[70]", VALUES},
    {"codes=1 pool=3,4,4,4,0,1,0,0", "f[2,9,14,16] f[3,3,16,20] f[2,20]", FUSED},
    {"codes=1 act=relu pad=1,1,1,1 " ODD, "f[2,7,9,18] f[3,3,18,20]", VALUES},
    {"codes=1 groups=2 act=relu " TWO, "f[2,6,7,4] f[3,3,2,32] f[32]", VALUES},
    {"codes=1 groups=3 act=relu " TWO, "f[2,6,7,6] f[3,3,2,15] f[15]", VALUES},
    {"codes=1 act=relu " TWO, "f[2,7,7,2]@special f[2,2,2,19] f[19]", VALUES},
    {"codes=1 act=relu " TWO, "f[2,8,8,5]@special f[3,3,5,16]", VALUES},
    {"codes=1 pool=11,12,11,12,0,0,0,0", "f[1,13,14,2] f[2,2,2,5]", VALUES},
    {"codes=1 act=relu pool=1,1,1,1,0,0,0,0", "f[1,1,1,1] f[1,1,1,1] f[1]", VALUES},
    {"codes=1 act=relu " TWO, "f[0,6,6,2] f[3,3,2,3] f[3]"},
    {"codes=1 act=relu " TWO, "f[2,6,6,0] f[3,3,0,3] f[3]", VALUES},
    {"codes=1 " TWO, "f[2,6,6,2] f[3,3,2,0]"})

SET(conv2d_pool_dx, {"input=6,6 " TWO, "f[2,2,2,3] f[3,3,2,3] opaque[2,2,2,3]"},
    {"input=5,5 pad=1,1,1,1 " SAME, "f[1,3,3,2] f[3,3,2,2] opaque[1,3,3,2]"},
    {"input=7,5 stride=2,1 " ODD, "f[2,1,2,2] f[2,2,3,2] opaque[2,1,2,2]"},
    {"input=6,5 pad=1,0,0,1 dilation=2,1 " OVER, "f[1,3,2,3] f[2,2,2,3] opaque[1,3,2,3]"},
    {"input=6,5 groups=2 " GAPS, "f[1,2,2,4] f[2,2,2,4] opaque[1,2,2,4]"},
    {"input=5,38 pad=1,1,1,1 " TWO, "f[2,2,19,48] f[3,3,9,48] opaque[2,2,19,48]"},
    {"input=7,6 pad=1,1,1,1 " OVER, "f[2,4,3,21] f[3,3,67,21] opaque[2,4,3,21]"},
    {"input=21,20 stride=2,2 pad=3,3,3,3 " GAPS, "f[2,4,5,67] f[7,7,3,67] opaque[2,4,5,67]"},
    {"input=4,4 pad=1,1,1,1 " TWO, "f[17,2,2,21] f[3,3,9,21] opaque[17,2,2,21]"},
    {"input=7,9 pad=1,1,1,1 " SAME, "f[2,4,5,70] f[3,3,18,70] opaque[2,4,5,70]"},
    {"input=7,9 pad=1,1,1,1 " ODD, "f[2,2,5,20] f[3,3,18,20] opaque[2,2,5,20]"},
    {"input=6,7 groups=2 " TWO, "f[2,2,2,32] f[3,3,2,32] opaque[2,2,2,32]"},
    {"input=1,1 pool=1,1,1,1,0,0,0,0", "f[1,1,1,1] f[1,1,1,1] opaque[1,1,1,1]"},
    {"input=6,6 " TWO, "f[0,2,2,3] f[3,3,2,3] opaque[0,2,2,3]"},
    {"input=6,6 " TWO, "f[2,2,2,0] f[3,3,2,0] opaque[2,2,2,0]"})

SET(conv2d_pool_dw, {"kernel=3,3 bias=1 " TWO, "f[2,6,6,2] f[2,2,2,3] opaque[2,2,2,3]"},
    {"kernel=3,3 pad=1,1,1,1 " SAME, "f[1,5,5,2] f[1,3,3,2] opaque[1,3,3,2]"},
    {"kernel=2,2 stride=2,1 " ODD, "f[2,7,5,3] f[2,1,2,2] opaque[2,1,2,2]"},
    {"kernel=2,2 bias=1 pad=1,0,0,1 dilation=2,1 " OVER, "f[1,6,5,2] f[1,3,2,3] opaque[1,3,2,3]"},
    {"kernel=2,2 groups=2 " GAPS, "f[1,6,5,4] f[1,2,2,4] opaque[1,2,2,4]"},
    {"kernel=3,3 bias=1 " TWO, "f[3,14,21,3] f[3,6,9,32] opaque[3,6,9,32]"},
    {"kernel=3,3 " TWO, "f[2,14,79,3] f[2,6,38,67] opaque[2,6,38,67]"},
    {"kernel=3,3 bias=1 " TWO, "f[2,9,38,1] f[2,3,18,16] opaque[2,3,18,16]"},
    {"kernel=3,3 bias=1 pad=1,1,1,1 " TWO, "f[2,9,38,4] f[2,4,19,48] opaque[2,4,19,48]"},
    {"kernel=3,3 bias=1 pad=1,1,1,1 " OVER, "f[2,13,12,5] f[2,7,6,21] opaque[2,7,6,21]"},
    {"kernel=7,7 stride=2,2 pad=3,3,3,3 " GAPS, "f[2,21,20,3] f[2,4,5,67] opaque[2,4,5,67]"},
    {"kernel=3,3 bias=1 pad=1,1,1,1 " TWO, "f[17,4,4,9] f[17,2,2,21] opaque[17,2,2,21]"},
    {"kernel=3,3 bias=1 pad=1,1,1,1 " TWO, "f[2,8,8,66] f[2,4,4,131] opaque[2,4,4,131]"},
    {"kernel=3,3 bias=1 pad=1,1,1,1 " SAME, "f[2,7,9,18] f[2,4,5,70] opaque[2,4,5,70]"},
    {"kernel=3,3 bias=1 pad=1,1,1,1 " ODD, "f[2,7,9,18] f[2,2,5,20] opaque[2,2,5,20]"},
    {"kernel=3,3 bias=1 groups=2 " TWO, "f[2,6,7,4] f[2,2,2,32] opaque[2,2,2,32]"},
    {"kernel=1,1 bias=1 pool=1,1,1,1,0,0,0,0", "f[1,1,1,1] f[1,1,1,1] opaque[1,1,1,1]"},
    {"kernel=3,3 bias=1 " TWO, "f[0,6,6,2] f[0,2,2,3] opaque[0,2,2,3]"},
    {"kernel=3,3 " TWO, "f[2,6,6,2] f[2,2,2,0] opaque[2,2,2,0]"})
