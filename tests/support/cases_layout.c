/* cases_layout.c: case sets of indexing by positions, bands, and of what resizes and warps
 * pictures. */
#include "case_set.h"

SET(gather_nd, {"batch=0", "f[9,5] i32[7,1]@labels:9"}, {"batch=0", "f[4,4,3] i64[2,6,2]@labels:4"},
    {"batch=1", "f[3,9,5] i32[3,4,1]@labels:9"}, {"batch=2", "f[2,3,7] i32[2,3,5,1]@labels:7"},
    {"batch=1", "f[3,9] i32[3,1]@labels:9"}, {"batch=0", "f[1,5] i32[3,1]@labels:1"},
    {"batch=0", "f[4,4] i32[2]@labels:4"}, {"batch=0", "f[9,5] i32[0,1]@labels:9"},
    {"batch=1", "f[0,4] i32[0,3,1]@labels:4"}, {"batch=0", "f[5,0] i32[3,1]@labels:5"},
    {"batch=1", "f[3,20,601] i32[3,17,1]@labels:20"}, {"batch=0", "i64[5,5] i64[7,2]@labels:5"},
    {"batch=0", "bool[9] i32[7,1]@labels:9"})
SET(scatter_nd, {"dims=9,5 batch=0", "i32[7,1]@labels:9 f[7,5]"},
    {"dims=4,4,3 batch=0", "i64[2,6,2]@labels:4 f[2,6,3]"},
    {"dims=3,9,5 batch=1", "i32[3,4,1]@labels:9 f[3,4,5]"},
    {"dims=2,3,7 batch=2", "i32[2,3,5,1]@labels:7 f[2,3,5]"},
    {"dims=3,2 batch=1", "i32[3,9,1]@labels:2 f[3,9]"},
    {"dims=9,5 batch=0", "i32[0,1]@labels:9 f[0,5]"},
    {"dims=0,4 batch=1", "i32[0,3,1]@labels:4 f[0,3]"},
    {"dims=5,0 batch=0", "i32[3,1]@labels:5 f[3,0]"},
    {"dims=3,5,1101 batch=1", "i32[3,9,1]@labels:5 f[3,9,1101]"},
    {"dims=9,5 batch=0", "i64[7,1]@labels:9 i32[7,5]"},
    {"dims=9 batch=0", "i32[67,1]@labels:9 u8[67]"})
SET(band, {"low=-9 high=0", "f[5,5]"}, {"low=0 high=9", "f[5,7]"}, {"low=-1 high=2", "f[2,3,6,5]"},
    {"low=1 high=0", "f[4,4]"}, {"low=-3 high=-2", "f[6,3]"}, {"low=0 high=0", "f[1,1]"},
    {"low=-9 high=0", "f[0,3,3]"}, {"low=-9 high=0", "f[3,0]"}, {"low=-200 high=0", "f[3,133,89]"},
    {"low=-9 high=0", "bool[2,5,5]"}, {"low=-1 high=1", "i64[5,4]"})

/* --- pictures --------------------------------------------------------------------------------- */
#define EACH_RESIZE(X)                                                                             \
    X("method=0", "8,6", "5,4"), X("method=0", "3,2", "7,5"), X("method=1", "8,7", "5,4"),         \
        X("method=1", "3,4", "7,9"), X("method=1 antialias=1", "3,2", "8,7"),                      \
        X("method=2", "7,9", "5,4"), X("method=2", "3,4", "8,6"),                                  \
        X("method=2 antialias=1", "3,4", "9,8"), X("method=3", "3,4", "8,9"),                      \
        X("method=3", "5,6", "2,4"), X("method=4", "6,5", "4,7"), X("method=5", "3,4", "9,5"),     \
        X("method=4 antialias=1", "2,3", "9,7"), X("method=1", "1,1", "3,4"),                      \
        X("method=6", "6,5", "4,7"), X("method=6 antialias=1", "3,4", "9,5"),                      \
        X("method=7", "6,5", "4,7"), X("method=7 antialias=1", "3,4", "9,5"),                      \
        X("method=2", "4,3", "1,1"), X("method=1", "3,4", "3,4")
#define FORWARD(method, small, large) CASE(method " size=" small, "f[2," large ",3]")
#define BACK(method, small, large)    CASE(method " size=" large, "f[2," small ",3]")
SET(resize, EACH_RESIZE(FORWARD), {"method=1 size=4,5", "f[0,3,3,2]"},
    {"method=2 size=0,5", "f[2,3,3,2]"}, {"method=1 size=4,5", "f[2,3,3,0]"},
    {"method=0 size=0,0", "f[2,0,3,2]"}, {"method=1 size=33,9", "f[2,17,8,67]"})
SET(resize_grad, EACH_RESIZE(BACK), {"method=1 size=4,5", "f[0,3,3,2]"},
    {"method=1 size=4,5", "f[2,3,3,0]"}, {"method=1 size=17,8", "f[2,33,9,67]"})

#define EACH_WARP(X)                                                                               \
    X("mode=0"), X("mode=1"), X("mode=2"), X("mode=3"), X("mode=0 nearest=1"),                     \
        X("mode=1 nearest=1"), X("mode=2 nearest=1"), X("mode=3 nearest=1")
#define WARP(mode) CASE(mode " size=5,6 value=0.7", "f[2,4,7,3] f32[2,8]")
SET(warp, EACH_WARP(WARP), {"mode=1 size=4,4 value=0", "f[0,3,3,2] f32[0,8]"},
    {"mode=2 size=4,4 value=0", "f[2,1,1,2] f32[2,8]"}, {"size=0,4 value=0", "f[2,3,3,2] f32[2,8]"},
    {"size=4,4 value=0", "f[2,3,3,0] f32[2,8]"},
    {"mode=1 size=9,8 value=1", "f[3,17,8,67] f32[3,8]"},
    {"mode=1 size=9,8 value=1", "f[3,9,8,67] f32[3,8]@special", VALUES})
#define WARP_GRAD(mode) CASE(mode " size=4,7", "f[2,5,6,3] f32[2,8]")
SET(warp_grad, EACH_WARP(WARP_GRAD), {"mode=1 size=3,3", "f[0,4,4,2] f32[0,8]"},
    {"mode=2 size=1,1", "f[2,4,4,2] f32[2,8]"}, {"size=3,3", "f[2,4,4,0] f32[2,8]"},
    {"mode=1 size=17,8", "f[3,9,8,67] f32[3,8]"}, {"mode=3 size=6,5", "f[2,6,9,131] f32[2,8]"})
