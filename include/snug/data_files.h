/* data_files.h: files of data sets: TFRecord files and Examples written, folders of pictures read.
 *
 *     snug_record_writer *w;
 *     snug_record_writer_create(engine, "train.tfrecord", SNUG_PLAIN, &w, &err);
 *     snug_feature features[] = {{"x", SNUG_F32, 4, x}, {"label", SNUG_I64, 1, &label}};
 *     snug_example_encode(engine, features, 2, &example, &err);
 *     snug_record_write(w, text.data, text.bytes, &err);
 *     snug_record_writer_close(w, &err);                 // the file is there, whole */
#ifndef SNUG_DATA_FILES_H
#define SNUG_DATA_FILES_H

#include <snug/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- TFRecord files --------------------------------------------------------------------------- */
typedef struct snug_record_writer snug_record_writer;
/* The file has another name until it is closed: nobody sees half of it. */
SNUG_API SNUG_CHECKED snug_status snug_record_writer_create(snug_engine *engine, const char *path,
                                                            snug_compression compression,
                                                            snug_record_writer **out,
                                                            snug_error *err);
SNUG_API SNUG_CHECKED snug_status snug_record_write(snug_record_writer *w, const void *bytes,
                                                    size_t n, snug_error *err);
/* Ends the writer in any case; the file is there when this is SNUG_OK. */
SNUG_API SNUG_CHECKED snug_status snug_record_writer_close(snug_record_writer *w, snug_error *err);
/* Without the file. NULL is legal. */
SNUG_API void snug_record_writer_destroy(snug_record_writer *w);

typedef struct {
    const char *name;
    snug_dtype dtype; /* F32, I64, or OPAQUE: values are snug_texts */
    int64_t n;        /* values */
    const void *values;
} snug_feature;
/* The bytes of a tf.train.Example, as one text. */
SNUG_API SNUG_CHECKED snug_status snug_example_encode(snug_engine *engine,
                                                      const snug_feature *features, int n,
                                                      snug_datum *out, snug_error *err);

/* --- folders of pictures ---------------------------------------------------------------------- */
typedef enum {
    SNUG_LABELS_CLASSES, /* i32: the number of the file's folder among the classes */
    SNUG_LABELS_NONE,    /* files of the folder and all below it; elements have one part */
    SNUG_LABELS_GIVEN    /* i32 from `labels`, in the order of the sorted files */
} snug_folder_labels;
typedef enum { SNUG_SUBSET_ALL, SNUG_SUBSET_TRAINING, SNUG_SUBSET_VALIDATION } snug_subset;

/* What keras.utils.image_dataset_from_directory does: files below `path` whose names end so, their
 * classes sorted by name, shuffled as NumPy shuffles with the seed, and split. */
typedef struct {
    const char *path;
    const char *endings; /* words: ".jpg .png"; NULL: .bmp .gif .jpeg .jpg .png */
    snug_folder_labels kind;
    const int32_t *labels; /* of SNUG_LABELS_GIVEN */
    int64_t n_labels;
    const char *const *classes; /* in this order; NULL: all folders, sorted */
    int n_classes;
    int shuffle;
    uint32_t seed;
    double validation_split; /* 0: none */
    snug_subset subset;
    int follow_links;
    int (*progress)(void *ctx, int64_t files); /* now and then while listing; true: stop */
    void *ctx;
} snug_folder;

typedef struct {
    int n_classes;      /* of SNUG_LABELS_CLASSES */
    int64_t n_files;    /* found, before the split */
    snug_datum classes; /* their names, texts [n_classes]; the caller's */
} snug_folder_info;

/* Elements: the file's name (text), and its label (i32). Random access: a shuffle keeps indices,
 * and names of 100,000 files take some megabytes. */
SNUG_API SNUG_CHECKED snug_status snug_dataset_from_folder(snug_engine *engine,
                                                           const snug_folder *folder,
                                                           snug_dataset **out,
                                                           snug_folder_info *info, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
