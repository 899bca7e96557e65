/* cases_recurrent.c: sets of the recurrent rows. Shapes have a unit more than a vector, one unit
 * alone, no steps, no examples, one step, more examples than a block, and enough work to wake the
 * threads; inputs that may be left out come and go. Kernels of many units are small (their rows add
 * up to 1): large ones make of a rounding another sequence. */
#include "support/case_set.h"

#define USUAL "act=tanh gate_act=sigmoid"

/* (projections, U, h0, c0, ...) */
#define LSTM(B, T, H, GH, more) LSTM_OF(B, T, H, GH, "", more)
#define LSTM_OF(B, T, H, GH, kernel, more)                                                         \
    "f[" #B "," #T "," #GH "] f[" #H "," #GH "]" kernel " f[" #B "," #H "] f[" #B "," #H "]" more
SET(lstm, {USUAL, LSTM(3, 4, 5, 20, "")}, {USUAL, LSTM(1, 1, 1, 4, "")},
    {USUAL " reverse=1", LSTM(2, 5, 3, 12, "")}, {USUAL, LSTM(3, 4, 2, 8, " bool[3,4]")},
    {USUAL " reverse=1", LSTM(3, 4, 2, 8, " bool[3,4]")},
    {USUAL, LSTM(2, 4, 3, 12, " f[2,12]@pos")}, {USUAL, LSTM(4, 3, 2, 8, " bool[4,3] f[4,8]@pos")},
    {"act=relu gate_act=hard_sigmoid", LSTM(3, 3, 4, 16, ""), VALUES}, {"", LSTM(2, 2, 3, 12, "")},
    {"act=sigmoid gate_act=tanh", LSTM(2, 3, 2, 8, "")}, {USUAL, LSTM(0, 4, 3, 12, "")},
    {USUAL, LSTM(3, 0, 2, 8, "")}, {USUAL, LSTM(2, 3, 0, 0, "")},
    {USUAL, LSTM(55, 3, 17, 68, " bool[55,3]")},
    {USUAL, LSTM_OF(7, 9, 67, 268, "@prob", ""), VALUES},
    {USUAL " reverse=1", LSTM_OF(29, 6, 35, 140, "@prob", " bool[29,6] f[29,140]@pos"), VALUES})

/* (gates, U, d last, c0, cells, ...) */
#define LSTM_GRAD(B, T, H, GH, HH, more)                                                           \
    "f[" #B "," #T "," #GH "]@pos f[" #H "," #GH "] f[" #B "," #HH "] f[" #B "," #H "] f[" #B      \
    "," #T "," #H "]" more
SET(lstm_grad, {USUAL, LSTM_GRAD(3, 4, 5, 20, 10, "")},
    {USUAL " reverse=1", LSTM_GRAD(2, 5, 3, 12, 6, " f[2,5,3]")},
    {USUAL, LSTM_GRAD(3, 4, 2, 8, 4, " f[3,4,2] bool[3,4]")},
    {USUAL, LSTM_GRAD(3, 4, 2, 8, 4, " f[3,4,2] bool[3,4] f[3,8]")},
    {USUAL, LSTM_GRAD(3, 4, 2, 8, 4, " f[3,8]")}, {"", LSTM_GRAD(2, 2, 3, 12, 6, "")},
    {"act=relu gate_act=hard_sigmoid", LSTM_GRAD(2, 2, 3, 12, 6, "")},
    {USUAL, LSTM_GRAD(0, 4, 3, 12, 6, "")}, {USUAL, LSTM_GRAD(3, 0, 2, 8, 4, "")},
    {USUAL, LSTM_GRAD(2, 3, 0, 0, 0, "")}, {USUAL, LSTM_GRAD(1, 1, 1, 4, 2, " f[1,1,1]")},
    {USUAL, LSTM_GRAD(55, 2, 17, 68, 34, " bool[55,2]")},
    {USUAL, LSTM_GRAD(5, 2, 67, 268, 134, " f[5,2,67]")})

/* (projections, U, h0, [bias], ...) */
#define GRU(B, T, H, GH, more) GRU_OF(B, T, H, GH, "", more)
#define GRU_OF(B, T, H, GH, kernel, more)                                                          \
    "f[" #B "," #T "," #GH "] f[" #H "," #GH "]" kernel " f[" #B "," #H "]" more
#define AFTER " reset_after=1"
SET(gru, {USUAL, GRU(3, 4, 5, 15, "")}, {USUAL AFTER, GRU(3, 4, 5, 15, " f[15]")},
    {USUAL, GRU(1, 1, 1, 3, "")}, {USUAL AFTER " reverse=1", GRU(2, 5, 3, 9, " f[9]")},
    {USUAL " reverse=1", GRU(2, 5, 3, 9, " bool[2,5]")},
    {USUAL AFTER, GRU(3, 4, 2, 6, " f[6] bool[3,4]")},
    {USUAL AFTER, GRU(2, 4, 3, 9, " f[9] f[2,9]@pos")}, {USUAL, GRU(2, 4, 3, 9, " f[2,9]@pos")},
    {USUAL, GRU(4, 3, 2, 6, " bool[4,3] f[4,6]@pos")},
    {"act=relu gate_act=hard_sigmoid" AFTER, GRU(3, 3, 4, 12, " f[12]"), VALUES},
    {"act=sigmoid gate_act=tanh", GRU(2, 3, 2, 6, "")}, {USUAL, GRU(0, 4, 3, 9, "")},
    {USUAL AFTER, GRU(3, 0, 2, 6, " f[6]")}, {USUAL, GRU(2, 3, 0, 0, "")},
    {USUAL, GRU(55, 3, 17, 51, " bool[55,3]")},
    {USUAL AFTER, GRU_OF(7, 9, 67, 201, "@prob", " f[201]"), VALUES},
    {USUAL " reverse=1", GRU_OF(29, 6, 35, 105, "@prob", " bool[29,6] f[29,105]@pos"), VALUES})

/* (gates, U, d last, h0, hidden, [inner], ...) */
#define GRU_GRAD(B, T, H, GH, more)                                                                \
    "f[" #B "," #T "," #GH "]@pos f[" #H "," #GH "] f[" #B "," #H "] f[" #B "," #H "] f[" #B       \
    "," #T "," #H "]" more
SET(gru_grad, {USUAL, GRU_GRAD(3, 4, 5, 15, "")}, {USUAL AFTER, GRU_GRAD(3, 4, 5, 15, " f[3,4,5]")},
    {USUAL AFTER " reverse=1", GRU_GRAD(2, 5, 3, 9, " f[2,5,3] f[2,5,3]")},
    {USUAL, GRU_GRAD(3, 4, 2, 6, " f[3,4,2] bool[3,4]")},
    {USUAL AFTER, GRU_GRAD(3, 4, 2, 6, " f[3,4,2] bool[3,4] f[3,6]")},
    {USUAL, GRU_GRAD(3, 4, 2, 6, " f[3,6]")}, {"", GRU_GRAD(2, 2, 3, 9, "")},
    {"act=relu gate_act=hard_sigmoid" AFTER, GRU_GRAD(2, 2, 3, 9, " f[2,2,3]")},
    {USUAL, GRU_GRAD(0, 4, 3, 9, "")}, {USUAL, GRU_GRAD(3, 0, 2, 6, "")},
    {USUAL, GRU_GRAD(2, 3, 0, 0, "")}, {USUAL, GRU_GRAD(1, 1, 1, 3, "")},
    {USUAL, GRU_GRAD(55, 2, 17, 51, " bool[55,2]")},
    {USUAL AFTER, GRU_GRAD(5, 2, 67, 201, " f[5,2,67] f[5,2,67]")})

/* (projections, U, h0, ...) */
#define SIMPLE(B, T, H, more) SIMPLE_OF(B, T, H, "", more)
#define SIMPLE_OF(B, T, H, kernel, more)                                                           \
    "f[" #B "," #T "," #H "] f[" #H "," #H "]" kernel " f[" #B "," #H "]" more
SET(simple_rnn, {"act=tanh", SIMPLE(3, 4, 5, "")}, {"act=sigmoid", SIMPLE(1, 1, 1, "")},
    {"act=tanh reverse=1", SIMPLE(2, 5, 3, "")}, {"act=tanh", SIMPLE(3, 4, 2, " bool[3,4]")},
    {"act=tanh reverse=1", SIMPLE(3, 4, 2, " bool[3,4] f[3,2]@pos")},
    {"act=tanh", SIMPLE(3, 4, 2, " f[3,2]@pos")}, {"", SIMPLE(3, 3, 3, "")},
    {"act=relu", SIMPLE(3, 4, 3, ""), VALUES}, {"act=tanh", SIMPLE(0, 4, 3, "")},
    {"act=tanh", SIMPLE(3, 0, 2, "")}, {"act=tanh", SIMPLE(2, 3, 0, "")},
    {"act=tanh", SIMPLE(55, 3, 17, " bool[55,3]")},
    {"act=tanh", SIMPLE_OF(9, 16, 67, "@prob", ""), VALUES})

/* (hidden, U, d last, ...) */
SET(simple_rnn_grad, {"act=tanh", SIMPLE(3, 4, 5, "")},
    {"act=tanh reverse=1", SIMPLE(2, 5, 3, " f[2,5,3]")},
    {"act=sigmoid", SIMPLE(3, 4, 2, " f[3,4,2] bool[3,4] f[3,2]")},
    {"", SIMPLE(3, 4, 2, " bool[3,4]")}, {"act=relu", SIMPLE(3, 4, 2, "")},
    {"act=tanh", SIMPLE(1, 1, 1, "")}, {"act=tanh", SIMPLE(0, 4, 3, "")},
    {"act=tanh", SIMPLE(3, 0, 2, "")}, {"act=tanh", SIMPLE(2, 3, 0, "")},
    {"act=tanh", SIMPLE(55, 3, 17, " bool[55,3]"), VALUES},
    {"act=tanh", "f[9,16,67]@prob f[67,67]@prob f[9,67]"})
