/* regex.h: regular expressions with RE2's meaning: bytes, the leftmost match, of several the one a
 * backtracking matcher would take first; time linear in the text.
 *
 * The subset: literals (UTF-8), . [a-z] [^a-z] [[:alpha:]] \d \w \s \D \W \S \b \B ^ $ \A \z | ( )
 * (?: ) (?P<name> ) (?i) (?s) (?m) (?i: ), * + ? {2} {2,} {2,5} and their lazy forms, \Q..\E, \n \t
 * \r \f \v \a \xHH \x{HH} and escaped punctuation. Refused by name: \p{..}, \C, back references,
 * look-around, more than 16 characters or ranges above ASCII in one class. */
#ifndef SN_CODEC_REGEX_H
#define SN_CODEC_REGEX_H

#include "memory/engine.h"

#include <snug/dataset.h>

typedef struct sn_regex sn_regex;
#define SN_REGEX_MAX_GROUPS 10

/* Lives in the zone. */
SNUG_CHECKED snug_status sn_regex_create(sn_zone *z, const snug_text *pattern, sn_regex **out,
                                         snug_error *err);
int sn_regex_groups(const sn_regex *r); /* besides the whole match */

/* Where the groups of a match lie: [2 i, 2 i + 1); SIZE_MAX: the group took no part. */
typedef struct {
    size_t at[2 * SN_REGEX_MAX_GROUPS];
} sn_regex_match;

/* What a search writes while it runs: so many bytes for a text of n. False: too many. */
bool sn_regex_work(const sn_regex *r, size_t n, size_t *bytes);
/* The first match that starts at `from` or later; with whole, one of the whole text. A search from
 * 0 comes first for each text, and none after one that found nothing: so all searches of a text
 * together clear what they visited, and not all of it for each of them. */
bool sn_regex_find(const sn_regex *r, const snug_text *text, size_t from, bool whole, void *work,
                   sn_regex_match *out);

#endif
