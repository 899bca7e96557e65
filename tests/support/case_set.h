/* case_set.h: how a file of cases defines sets for the cases column of ops.def. Files of sets are
 * cases.c and cases_<topic>.c. */
#ifndef SN_TESTS_CASE_SET_H
#define SN_TESTS_CASE_SET_H

#include "cases.h"

/* A case that says no kind is smooth. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* SET(name, cases...) or SET_BUT(name, outputs without gradient, cases...) */
#define SET_BUT(set, mask, ...)                                                                    \
    static const sn_case list_##set[] = {__VA_ARGS__};                                             \
    extern const sn_case_set sn_cases_##set;                                                       \
    const sn_case_set sn_cases_##set = {#set, (int)(sizeof list_##set / sizeof list_##set[0]),     \
                                        list_##set, mask};
#define SET(set, ...) SET_BUT(set, 0, __VA_ARGS__)

#define CASE(attrs, in)                                                                            \
    { attrs, in }
#define VALUES SN_CASE_VALUES
#define FUSED  SN_CASE_FUSED

/* One float input of many shapes. */
#define SHAPES_OF_ONE(attrs, domain)                                                               \
    CASE(attrs, "f[]" domain), CASE(attrs, "f[7]" domain), CASE(attrs, "f[1,5,1]" domain),         \
        CASE(attrs, "f[3,67]" domain), CASE(attrs, "f[2,3,133]" domain),                           \
        CASE(attrs, "f[0,4]" domain), CASE(attrs, "f[4,0,3]" domain),                              \
        CASE(attrs, "f[3,133,89]" domain)

#endif
