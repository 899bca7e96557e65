/* cases_layout.c: case sets of indexing by positions, bands, and of what resizes and warps
 * pictures.
 */
#include "case_set.h"

SET(gather_nd, {"batch=0", "f[9,5] i32[7,1]@labels:9"}, {"batch=0", "f[4,4,3] i64[2,6,2]@labels:4"},
    {"batch=1", "f[3,9,5] i32[3,4,1]@labels:9"}, {"batch=2", "f[2,3,7] i32[2,3,5,1]@labels:7"},
    {"batch=1", "f[3,9] i32[3,1]@labels:9"}, {"batch=0", "f[1,5] i32[3,1]@labels:1"},
    {"batch=0", "f[4,4] i32[2]@labels:4"}, {"batch=0", "f[9,5] i32[0,1]@labels:9"},
    {"batch=1", "f[0,4] i32[0,3,1]@labels:4"}, {"batch=0", "f[5,0] i32[3,1]@labels:5"},
    {"batch=1", "f[3,50,601] i32[3,33,1]@labels:50"}, {"batch=0", "i64[5,5] i64[7,2]@labels:5"},
    {"batch=0", "bool[9] i32[7,1]@labels:9"})
SET(scatter_nd, {"dims=9,5 batch=0", "i32[7,1]@labels:9 f[7,5]"},
    {"dims=4,4,3 batch=0", "i64[2,6,2]@labels:4 f[2,6,3]"},
    {"dims=3,9,5 batch=1", "i32[3,4,1]@labels:9 f[3,4,5]"},
    {"dims=2,3,7 batch=2", "i32[2,3,5,1]@labels:7 f[2,3,5]"},
    {"dims=3,2 batch=1", "i32[3,9,1]@labels:2 f[3,9]"},
    {"dims=9,5 batch=0", "i32[0,1]@labels:9 f[0,5]"},
    {"dims=0,4 batch=1", "i32[0,3,1]@labels:4 f[0,3]"},
    {"dims=5,0 batch=0", "i32[3,1]@labels:5 f[3,0]"},
    {"dims=3,20,1101 batch=1", "i32[3,33,1]@labels:20 f[3,33,1101]"},
    {"dims=9,5 batch=0", "i64[7,1]@labels:9 i32[7,5]"},
    {"dims=9 batch=0", "i32[67,1]@labels:9 u8[67]"})
SET(band, {"low=-9 high=0", "f[5,5]"}, {"low=0 high=9", "f[5,7]"}, {"low=-1 high=2", "f[2,3,6,5]"},
    {"low=1 high=0", "f[4,4]"}, {"low=-3 high=-2", "f[6,3]"}, {"low=0 high=0", "f[1,1]"},
    {"low=-9 high=0", "f[0,3,3]"}, {"low=-9 high=0", "f[3,0]"}, {"low=-200 high=0", "f[3,133,89]"},
    {"low=-9 high=0", "bool[2,5,5]"}, {"low=-1 high=1", "i64[5,4]"})
