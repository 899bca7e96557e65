/* file_list.h: many names of files in few bytes: all names lie one behind another, and a number per
 * name says where. 100,000 names of 40 bytes are 4.8 MB.
 *
 *     sn_file_list l = {.engine = e};
 *     SNUG_TRY(sn_file_list_match(&l, "photos/c?t.jpg", err));
 *     sn_file_list_sort(&l, 0);
 *     sn_file_list_at(&l, 7);          // "photos/cat.jpg"
 *     sn_file_list_clear(&l); */
#ifndef SN_CODEC_FILE_LIST_H
#define SN_CODEC_FILE_LIST_H

#include "codec/advance.h"

typedef struct {
    snug_engine *engine;
    char *bytes;
    size_t n_bytes, bytes_cap;
    uint64_t *first; /* byte of name i */
    size_t n, first_cap;
    int (*asked)(void *ctx, int64_t names); /* true: stop. May be NULL */
    void *ctx;
    bool tells; /* of the pass, as "listing" */
    sn_advance pass;
} sn_file_list;

SNUG_CHECKED snug_status sn_file_list_add(sn_file_list *l, const char *name, snug_error *err);
const char *sn_file_list_at(const sn_file_list *l, size_t i);
/* By bytes, from name `from` on. */
void sn_file_list_sort(sn_file_list *l, size_t from);
/* By folder first, then by name in it: "a/z" before "a/b/c". */
void sn_file_list_sort_by_folder(sn_file_list *l, size_t from);
void sn_file_list_clear(sn_file_list *l); /* legal on zeroed */

/* All files that match: *, ?, [abc], [a-z], [!a] in any of its names, none of which stands for '/'.
 * Names that start with a point are matched by a pattern that does. No match is no error. */
SNUG_CHECKED snug_status sn_file_list_match(sn_file_list *l, const char *pattern, snug_error *err);
/* Whether a name matches a pattern without slashes. */
bool sn_name_matches(const char *pattern, const char *name);

/* The entries of a folder, unsorted, without "." and ".."; stops at the first status that is not
 * OK. */
typedef snug_status (*sn_entry_fn)(void *ctx, const char *name, snug_io_kind kind, snug_error *err);
SNUG_CHECKED snug_status sn_folder_each(snug_engine *e, const char *folder, sn_entry_fn each,
                                        void *ctx, snug_error *err);
/* What a path is, links followed; OTHER where nothing is, or nothing that may be looked at. */
SNUG_CHECKED snug_status sn_path_kind(snug_engine *e, const char *path, snug_io_kind *out,
                                      snug_error *err);

#endif
