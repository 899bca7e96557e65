/* setting_text.h: the little language of settings: "NAME" or "NAME:key=value,key=value"
 * (optimizers, losses, initialisers), where a value may be a list [a,b] or hold brackets, and names
 * as Keras writes them in two ways (GlorotUniform and glorot_uniform are one name). */
#ifndef SN_BASE_SETTING_TEXT_H
#define SN_BASE_SETTING_TEXT_H

#include "base/status.h"

#include <stdbool.h>

typedef struct {
    char key[48], value[256];
} sn_option;

/* The part before ':'. */
SNUG_CHECKED snug_status sn_option_name(const char *text, char *name, size_t size, snug_error *err);
/* Steps through the options: *at starts as the whole text; *more is false behind the last one. */
SNUG_CHECKED snug_status sn_option_next(const char **at, sn_option *out, bool *more,
                                        snug_error *err);
/* The length of text up to the first of `stops` that is not within brackets. */
size_t sn_text_span(const char *text, const char *stops);
/* Steps through the items of "[a,b]", or through the one of "a": *at starts as the text and ends at
 * its end; false when there is none left, or it does not fit. */
bool sn_text_item(const char **at, char *item, size_t size);
/* The whole value as a number or a truth value. */
SNUG_CHECKED snug_status sn_option_real(const sn_option *o, double *out, snug_error *err);
SNUG_CHECKED snug_status sn_option_flag(const sn_option *o, bool *out, snug_error *err);
/* The whole text is one finite number. */
bool sn_text_real(const char *text, double *out);
/* true/True/1 or false/False/0. */
bool sn_text_flag(const char *text, bool *out);
/* Equal but for case and underscores. */
bool sn_same_name(const char *a, const char *b);
/* Appends ", item" (", " only when text is not empty) and cuts at size. */
void sn_text_list(char *text, size_t size, const char *item);
/* How many letters must change to make one name from the other, up to 40. */
int sn_text_distance(const char *a, const char *b);
/* "loss 'hubber' is not known; did you mean huber? There are ..."; list is one of sn_text_list. */
snug_status sn_refuse_name(const char *what, const char *name, const char *list, snug_error *err);
/* Whether `word` is one of the words of `list`, which spaces part. */
bool sn_text_has(const char *list, const char *word);
/* Copies; false when it does not fit. */
bool sn_text_copy(char *to, size_t size, const char *from);

#endif
