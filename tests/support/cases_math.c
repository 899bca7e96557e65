/* cases_math.c: cases of the functions of one number, of powers and divisions, of reductions beside
 * sum and max, of running sums and of sorting. Sets are small: there are many rows. Where a
 * function has steps, smooth cases are few and their values known to lie between them. */
#include "support/case_set.h"

/* --- one input -------------------------------------------------------------------------------- */
#define FEW_OF_ONE(domain)                                                                         \
    CASE("", "f[]" domain), CASE("", "f[1,5,1]" domain), CASE("", "f[3,67]" domain),               \
        CASE("", "f[0,4]" domain), CASE("", "f[3,67,31]" domain)
SET(unary_real, FEW_OF_ONE(""), {"", "f[5,133]@wide", VALUES}, {"", "f[7,67]@special", VALUES})
SET(unary_inside, FEW_OF_ONE("@inside"), {"", "f[5,67]", VALUES}, {"", "f[7,67]@special", VALUES})
SET(unary_above, FEW_OF_ONE("@above"), {"", "f[5,67]@wide", VALUES},
    {"", "f[7,67]@special", VALUES})
SET(unary_steps, FEW_OF_ONE("@between"), {"", "f[5,133]@wide", VALUES},
    {"", "f[9,67]@halves", VALUES}, {"", "f[7,67]@special", VALUES})
SET(float_test, FEW_OF_ONE(""), {"", "f[7,67]@special", VALUES}, {"", "f[133,89]@special", VALUES})

SET(relu_max, {"value=1.5", "f[]@away"}, {"value=0.05", "f[1,5,1]@away"},
    {"value=6", "f[3,67]@away"}, {"value=0.9", "f[0,4]"}, {"value=0.7", "f[3,67,31]", VALUES},
    {"value=6", "f[7,67]@special", VALUES}, {"value=2", "f[5,67]@halves", VALUES})
#define FEW_OF_PAIR(attrs, domain)                                                                 \
    CASE(attrs, "f[] f[]" domain), CASE(attrs, "f[1,5,1] f[1,5,1]" domain),                        \
        CASE(attrs, "f[3,67] f[3,67]" domain), CASE(attrs, "f[0,4] f[0,4]" domain),                \
        CASE(attrs, "f[67,63] f[67,63]" domain)
SET(pair_few, FEW_OF_PAIR("", ""), {"", "f[5,133] f[5,133]@wide", VALUES},
    {"", "f[7,67] f[7,67]@special", VALUES})
SET(pair_capped, FEW_OF_PAIR("value=6", "@away"), {"value=1", "f[5,67] f[5,67]@halves", VALUES},
    {"value=0.05", "f[5,9] f[5,9]@away"})

/* --- two inputs ------------------------------------------------------------------------------- */
#define FEW_OF_TWO(a, b)                                                                           \
    CASE("", "f[3,5]" a " f[3,5]" b), CASE("", "f[]" a " f[]" b),                                  \
        CASE("", "f[2,1,7]" a " f[3,1]" b), CASE("", "f[9]" a " f[]" b),                           \
        CASE("", "f[0,3]" a " f[3]" b)
#define MANY_OF_TWO(a, b)                                                                          \
    {"", "f[3,67,31]" a " f[31]" b, VALUES}, {"", "f[5,133]" a " f[5,1]" b, VALUES}, {             \
        "", "f[67]" a " f[4,67]" b, VALUES                                                         \
    }
#define WHOLES_OF_TWO                                                                              \
    CASE("", "i32[7,9] i32[9]"), CASE("", "i64[3,67] i64[3,67]"), CASE("", "i8[133] i8[]"),        \
        CASE("", "u8[5,1] u8[9]")
SET(pow, FEW_OF_TWO("@pos", ""), MANY_OF_TWO("@pos", ""), WHOLES_OF_TWO,
    {"", "f[7,67]@special f[7,67]@ties", VALUES}, {"", "f[7,67]@special f[7,67]@special", VALUES})
SET(division, FEW_OF_TWO("@away", "@above"), MANY_OF_TWO("", "@pos"), MANY_OF_TWO("@wide", "@away"),
    WHOLES_OF_TWO, {"", "f[7,67]@special f[7,67]@special", VALUES})
SET(atan2, FEW_OF_TWO("@away", "@away"), MANY_OF_TWO("", ""),
    {"", "f[7,67]@special f[7,67]@special", VALUES})
SET(compare_any, FEW_OF_TWO("@ties", "@ties"), MANY_OF_TWO("@ties", "@ties"), WHOLES_OF_TWO,
    {"", "f[7,67]@special f[7,67]@special", VALUES}, {"", "bool[3,5] bool[3,5]"},
    {"", "bool[4,1,67] bool[5,1]"})

/* --- reductions, running sums, sorting -------------------------------------------------------- */
#define FEW_OF_REDUCE(domain)                                                                      \
    CASE("axes=0", "f[7]" domain), CASE("", "f[3,5]" domain), CASE("", "f[]" domain),              \
        CASE("axes=1", "f[3,67]" domain), CASE("axes=0,2 keepdims=1", "f[5,3,7]" domain),          \
        CASE("axes=0,1", "f[3,4,5]" domain), CASE("axes=1", "f[0,3]" domain),                      \
        CASE("axes=1", "f[5,0,2]" domain), CASE("axes=1", "f[3,1,5]" domain),                      \
        CASE("axes=1", "f[67,31,5]" domain), CASE("axes=0", "f[17,601]" domain)
#define WHOLES_OF_REDUCE                                                                           \
    CASE("axes=1", "i32[3,67]"), CASE("axes=0", "i64[5,9]"), CASE("", "u8[2,1,9]"),                \
        CASE("axes=1", "i8[3,9]")
SET(reduce_prod, FEW_OF_REDUCE("@away"), WHOLES_OF_REDUCE, {"axes=1", "f[7,9]@ties", VALUES},
    {"axes=1", "f[7,67]@special", VALUES})
SET(reduce_min, FEW_OF_REDUCE("@distinct"), WHOLES_OF_REDUCE, {"axes=1", "bool[5,3]"},
    {"axes=1", "bool[5,0]"}, {"axes=1", "f[7,67]@special", VALUES})
SET(argmin, {"axis=1 dtype=i32", "f[5,9]@distinct"}, {"axis=0 dtype=i64", "f[67,3]@ties"},
    {"axis=1 dtype=i32", "f[0,5]"}, {"axis=0 dtype=i32", "f[1,5]"},
    {"axis=1 dtype=i32", "f[67,31,5]"}, {"axis=1 dtype=i64", "f[7,67]@special", VALUES},
    {"axis=1 dtype=i32", "i32[3,67]"}, {"axis=0 dtype=i32", "u8[9,2]"})
#define FEW_OF_SCAN(domain)                                                                        \
    CASE("axis=0", "f[7]" domain), CASE("axis=1", "f[3,9]" domain),                                \
        CASE("axis=0 exclusive=1", "f[5,3]" domain), CASE("axis=1 reverse=1", "f[2,5,3]" domain),  \
        CASE("axis=1 exclusive=1 reverse=1", "f[2,5,1]" domain), CASE("axis=0", "f[0,4]" domain),  \
        CASE("axis=1", "f[3,0]" domain), {"axis=1", "f[67,31,5]" domain, VALUES},                  \
        {"axis=0 reverse=1", "f[17,601]" domain, VALUES}, {                                        \
        "axis=0 exclusive=1", "f[133,1]" domain, VALUES                                            \
    }
#define WHOLES_OF_SCAN                                                                             \
    CASE("axis=1", "i32[3,67]"), CASE("axis=0 reverse=1", "i64[5,9]"),                             \
        CASE("axis=1 exclusive=1", "u8[2,9]"), CASE("axis=0", "i8[9]")
SET(scan, FEW_OF_SCAN(""), WHOLES_OF_SCAN, {"axis=1", "f[7,67]@special", VALUES})
SET(scan_nonzero, FEW_OF_SCAN("@away"), WHOLES_OF_SCAN, {"axis=1", "f[7,9]@ties", VALUES},
    {"axis=1", "f[7,67]@special", VALUES})
SET(sort, {"dtype=i32", "f[7]@distinct"}, {"dtype=i64 descending=1", "f[3,67]@distinct"},
    {"dtype=i32 k=3", "f[2,3,9]@distinct"}, {"dtype=i64 descending=1 k=1", "f[5,4]@distinct"},
    {"dtype=i32 descending=1 k=7", "f[67,133]@distinct"}, {"dtype=i32", "f[5,1]@distinct"},
    {"dtype=i32", "f[0,4]"}, {"dtype=i32", "f[3,0]"}, {"dtype=i32", "f[5,67]@ties", VALUES},
    {"dtype=i32", "f[5,133]@ties", VALUES}, {"dtype=i64 descending=1", "f[7,301]@special", VALUES},
    {"dtype=i32", "f[3,1,300]", VALUES}, {"dtype=i32 k=20", "f[2,133]@special", VALUES},
    {"dtype=i32 descending=1", "i32[3,200]"}, {"dtype=i32", "i32[5,133]"},
    {"dtype=i64 descending=1", "f[5,67]@ties", VALUES},
    {"dtype=i32 descending=1 k=9", "f[5,67]@ties", VALUES},
    {"dtype=i32", "f[7,67]@special", VALUES},
    {"dtype=i32 descending=1 k=5", "f[7,67]@special", VALUES}, {"dtype=i32", "i32[3,67]"},
    {"dtype=i64 descending=1", "i64[5,9]"}, {"dtype=i32 k=4", "u8[2,9]"}, {"dtype=i32", "i8[9]"},
    {"dtype=i32 descending=1 k=30", "f[2,2100]@ties", VALUES})
SET(eigh, {"", "f[2,2]"}, {"", "f[3,3]"}, {"", "f[2,4,4]"}, {"", "f[3,1,3,3]"}, {"", "f[0,3,3]"},
    {"", "f[2,0,0]"}, {"", "f[1,1]"}, {"", "f[33,33]", VALUES}, {"", "f[67,135,1,1]", VALUES},
    {"", "f[101,3,3]", VALUES}, {"", "f[7,3,3]@special", VALUES}, {"", "f[3,97,97]", VALUES})
SET(svd, {"vectors=1", "f[3,3]"}, {"vectors=1", "f[2,5,3]"}, {"vectors=1", "f[3,4]"},
    {"", "f[4,2,3]"}, {"", "f[3,3,2]"}, {"vectors=1 whole=1", "f[4,4]"},
    {"vectors=1 whole=1", "f[2,5,3]", VALUES}, {"vectors=1 whole=1", "f[2,3,5]", VALUES},
    {"vectors=1", "f[1,1]"}, {"vectors=1", "f[0,3,2]"}, {"vectors=1", "f[2,0,3]", VALUES},
    {"vectors=1 whole=1", "f[2,3,0]", VALUES}, {"vectors=1", "f[101,9,11]", VALUES},
    {"", "f[67,135,1,1]", VALUES}, {"vectors=1", "f[7,4,3]@special", VALUES},
    {"vectors=1", "f[61,33]", VALUES}, {"", "f[33,61]", VALUES}, {"vectors=1", "f[97,96]", VALUES})
SET(qr, {"", "f[3,3]"}, {"", "f[2,5,3]"}, {"", "f[2,3,5]"}, {"whole=1", "f[2,4,4]"},
    {"whole=1", "f[2,3]"}, {"whole=1", "f[2,5,3]", VALUES}, {"", "f[1,1]"}, {"", "f[0,3,2]"},
    {"whole=1", "f[2,3,0]", VALUES}, {"", "f[2,0,3]", VALUES}, {"", "f[101,9,11]", VALUES},
    {"whole=1", "f[67,15,11]", VALUES}, {"", "f[7,4,3]@special", VALUES},
    {"", "f[131,135]", VALUES}, {"", "f[135,131]", VALUES})
SET(lstsq, {"cut=0.0001", "f[3,3] f[3,2]"}, {"cut=0.0001", "f[2,5,3] f[2,5,1]"},
    {"cut=0.0001", "f[2,3,5] f[2,3,2]"}, {"cut=0.0001", "f[1,1] f[1,1]"},
    {"cut=0.0001", "f[0,3,2] f[0,3,2]"}, {"cut=0.0001", "f[2,0,3] f[2,0,2]", VALUES},
    {"cut=0.0001", "f[2,3,0] f[2,3,2]", VALUES}, {"cut=0.0001", "f[3,2] f[3,0]", VALUES},
    {"cut=0.0001", "f[101,11,9] f[101,11,3]", VALUES}, {"cut=0.0001", "f[67,61] f[67,5]", VALUES},
    {"cut=0.0001", "f[33,61] f[33,5]", VALUES}, {"cut=0.0001", "f[7,4,3]@special f[7,4,2]", VALUES},
    {"cut=0.0001", "f[7,4,3] f[7,4,2]@special", VALUES})
SET_BUT(lu, 1u << 2, {"", "f[2,2]"}, {"", "f[3,3]"}, {"", "f[2,4,4]"}, {"", "f[3,1,3,3]@dominant"},
        {"", "f[0,3,3]"}, {"", "f[2,0,0]"}, {"", "f[1,1]"}, {"", "f[33,33]", VALUES},
        {"", "f[67,135,1,1]", VALUES}, {"", "f[101,3,3]@ties", VALUES},
        {"", "f[7,3,3]@special", VALUES}, {"", "f[3,97,97]", VALUES})
SET(cholesky, {"", "f[2,2]@dominant"}, {"", "f[3,3]@dominant"}, {"", "f[2,4,4]@dominant"},
    {"", "f[3,1,3,3]@dominant"}, {"", "f[0,3,3]"}, {"", "f[2,0,0]"}, {"", "f[1,1]@pos"},
    {"", "f[33,33]@dominant", VALUES}, {"", "f[67,135,1,1]", VALUES},
    {"", "f[101,3,3]@dominant", VALUES}, {"", "f[7,3,3]@special", VALUES},
    {"", "f[3,97,97]@dominant", VALUES})
#define TRIANGLES(more)                                                                            \
    CASE("lower=1" more, "f[2,3,3]@dominant f[2,3,2]"),                                            \
        CASE("upper=1" more, "f[3,3]@dominant f[3,1]"), {                                          \
        "lower=1" more, "f[97,97]@dominant f[97,5]", VALUES                                        \
    }
SET_BUT(solve, 1u << 1, {"", "f[2,2] f[2,1]"}, {"adjoint=1", "f[3,3]@dominant f[3,2]"},
        {"", "f[2,4,4]@dominant f[2,4,3]"}, {"", "f[3,1,3,3]@dominant f[3,1,3,2]"},
        {"", "f[0,3,3] f[0,3,2]"}, {"", "f[2,0,0] f[2,0,3]"}, {"", "f[3,3] f[3,0]"},
        {"", "f[1,1]@pos f[1,1]"}, TRIANGLES(""), TRIANGLES(" adjoint=1"), TRIANGLES(" unit=1"),
        TRIANGLES(" adjoint=1 unit=1"), {"", "f[33,33] f[33,40]", VALUES},
        {"adjoint=1", "f[33,33] f[33,2]", VALUES}, {"", "f[67,135,1,1] f[67,135,1,1]", VALUES},
        {"", "f[101,3,3]@ties f[101,3,2]", VALUES}, {"", "f[7,3,3]@special f[7,3,2]", VALUES},
        {"", "f[7,3,3] f[7,3,2]@special", VALUES}, {"upper=1", "f[7,3,3]@special f[7,3,2]", VALUES},
        {"", "f[3,97,97] f[3,97,2]", VALUES})
