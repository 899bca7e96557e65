/* run.h: run a graph of your own. A session is the graph's plan, its variables and its arena.
 *
 *     snug_session *session;
 *     snug_session_create(engine, graph, NULL, &session, &err);    // fused, planned, memory mapped
 *     for (int64_t row = 0; row + 32 <= n_rows; row += 32) {
 *         snug_session_feed(session, "x", x, row, &err);           // rows [row, row + 32) of x
 *         snug_session_feed(session, "t", t, row, &err);
 *         snug_session_set(session, "learning_rate", rate, &err);  // may change from run to run
 *         snug_session_run(session, &err);
 *     }
 *     snug_view loss;
 *     snug_session_output(session, "loss", &loss, &err);
 *     printf("%f\n", (double)*(const float *)loss.data);
 *     snug_session_destroy(session);
 *
 * A run requests no memory and is atomic: when it fails or is interrupted before its first write to
 * a variable, all variables are as they were. examples/custom_loop.c is a whole program. */
#ifndef SNUG_RUN_H
#define SNUG_RUN_H

#include <snug/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_session snug_session;

/* The graph is copied (and fused), must be concrete, and may be destroyed afterwards. `share` may
 * be NULL; otherwise variables of the same name are that session's own (train with one graph,
 * evaluate with another) and both run in one arena, the larger one's: outputs are then valid until
 * the next run of either, or until one more session shares the arena. SNUG_E_BUDGET when it does
 * not fit. */
SNUG_API SNUG_CHECKED snug_status snug_session_create(snug_engine *engine, const snug_graph *graph,
                                                      snug_session *share, snug_session **out,
                                                      snug_error *err);
/* NULL is legal. Shared variables live until the last session that has them is destroyed. */
SNUG_API void snug_session_destroy(snug_session *session);

/* --- before a run: inputs, parameters --------------------------------------------------------- */
/* Rows of the input come from the feed (lent), starting at first_row. Stays bound until changed. */
SNUG_API SNUG_CHECKED snug_status snug_session_feed(snug_session *session, const char *input,
                                                    snug_feed *feed, int64_t first_row,
                                                    snug_error *err);
/* A named parameter of the graph; keys take the integer part. */
SNUG_API SNUG_CHECKED snug_status snug_session_set(snug_session *session, const char *param,
                                                   double value, snug_error *err);
/* Asked between steps until the first write to a variable; non-zero stops with SNUG_E_INTERRUPTED.
 * NULL: never. */
SNUG_API void snug_session_interrupt(snug_session *session, int (*asked)(void *ctx), void *ctx);

/* --- the run, and after it -------------------------------------------------------------------- */
SNUG_API SNUG_CHECKED snug_status snug_session_run(snug_session *session, snug_error *err);
/* Lent until the next run. */
SNUG_API SNUG_CHECKED snug_status snug_session_output(const snug_session *session,
                                                      const char *output, snug_view *out,
                                                      snug_error *err);
/* To read or to write between runs; the same bytes until the session is destroyed. On a GPU a copy,
 * lent until the next run, which takes it back. */
SNUG_API SNUG_CHECKED snug_status snug_session_variable(snug_session *session, const char *variable,
                                                        snug_view *out, snug_error *err);
/* After SNUG_E_TORN, when the caller has put the variables right. */
SNUG_API void snug_session_mend(snug_session *session);

/* --- what was planned ------------------------------------------------------------------------- */
/* Bytes of transient memory this graph needs, to the byte. */
SNUG_API size_t snug_session_arena_bytes(const snug_session *session);
/* The plan as text, one line per step. */
SNUG_API SNUG_CHECKED snug_status snug_session_print(const snug_session *session,
                                                     const snug_writer *out, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
