/* cases_update.c: updates that make their gradient themselves: blocks of rows and of columns, more
 * terms than a piece of a product has, more pieces than a group has. */
#include "support/case_set.h"

#define ADAM "rate=0.01 one_minus_beta1=0.1 one_minus_beta2=0.001 epsilon=1e-3"
#define DENSE_WITH(more, k, m, n)                                                                  \
    { ADAM more, "f[" m "," n "] f[" m "," n "] f[" m "," n "]@pos f[" k "," m "] f[" k "," n "]" }
#define DENSE(k, m, n)     DENSE_WITH("", k, m, n)
#define DENSE_ALL(k, m, n) DENSE_WITH(" gradient=1", k, m, n)
SET(matmul_adam_dx, DENSE("4", "7", "3"), DENSE("1", "1", "1"), DENSE("0", "5", "3"),
    DENSE("3", "0", "4"), DENSE("3", "4", "0"), DENSE("8", "733", "10"), DENSE("32", "490", "10"),
    DENSE("5", "67", "270"), DENSE("300", "130", "35"), DENSE("2500", "20", "10"),
    DENSE("3", "20", "2100"), DENSE_ALL("4", "7", "3"), DENSE_ALL("4", "7", "4"),
    DENSE_ALL("8", "733", "10"), DENSE_ALL("5", "67", "270"), DENSE_ALL("300", "130", "35"),
    DENSE_ALL("3", "20", "2100"), DENSE_ALL("70", "261", "10"), DENSE_ALL("70", "258", "5"),
    DENSE_ALL("67", "131", "16"), DENSE("5", "21", "18"), DENSE_ALL("270", "5", "3"),
    DENSE("530", "2", "2"), DENSE("3", "1", "550"))
SET(matmul_adam, DENSE("4", "7", "3"), DENSE("1", "1", "1"), DENSE("0", "5", "3"),
    DENSE("3", "0", "4"), DENSE("3", "4", "0"), DENSE("8", "733", "10"), DENSE("32", "490", "10"),
    DENSE("5", "67", "270"), DENSE("300", "130", "35"), DENSE("2500", "20", "10"),
    DENSE_ALL("4", "7", "3"), DENSE_ALL("4", "7", "4"), DENSE_ALL("0", "5", "3"),
    DENSE_ALL("8", "733", "10"), DENSE_ALL("300", "130", "35"), DENSE_ALL("2500", "20", "10"),
    DENSE("70", "261", "10"), DENSE("67", "131", "16"), DENSE("5", "21", "18"),
    DENSE_ALL("270", "5", "3"), DENSE("530", "2", "2"))
