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
SET(division, FEW_OF_TWO("@between", "@pos"), MANY_OF_TWO("", "@pos"),
    MANY_OF_TWO("@wide", "@away"), WHOLES_OF_TWO, {"", "f[7,67]@special f[7,67]@special", VALUES})
SET(atan2, FEW_OF_TWO("@away", "@away"), MANY_OF_TWO("", ""),
    {"", "f[7,67]@special f[7,67]@special", VALUES})
SET(compare_any, FEW_OF_TWO("@ties", "@ties"), MANY_OF_TWO("@ties", "@ties"), WHOLES_OF_TWO,
    {"", "f[7,67]@special f[7,67]@special", VALUES}, {"", "bool[3,5] bool[3,5]"},
    {"", "bool[4,1,67] bool[5,1]"})
