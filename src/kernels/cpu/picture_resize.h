/* picture_resize.h: pictures of input pipelines, resized by one thread straight from the bytes a
 * decoder wrote. Not an operator: sizes differ from picture to picture, and nothing is planned. */
#ifndef SN_KERNELS_CPU_PICTURE_RESIZE_H
#define SN_KERNELS_CPU_PICTURE_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n pictures [H, W, C] of u8 (or f32) become f32 [to_h, to_w, C]. */
typedef struct {
    const void *from;
    bool is_f32;
    float *to;
    int64_t n, h, w, c; /* extents below 2^31, none 0 */
    int64_t to_h, to_w;
    int64_t method; /* sn_resize_method */
    bool antialias;
} sn_picture_resize;

typedef struct {
    /* Bytes of workspace, aligned to 8; false: more than the address space. */
    bool (*work)(const sn_picture_resize *p, size_t *bytes);
    void (*resize)(const sn_picture_resize *p, void *work);
    /* The same row by row, of one picture: row i of the result is made of rows [first, first + n)
     * of the picture, which stand one behind another from `rows` on; p->from is not read. */
    void (*begin)(const sn_picture_resize *p, void *work);
    void (*span)(const void *work, int64_t i, int64_t *first, int64_t *n);
    void (*row)(const sn_picture_resize *p, const void *work, int64_t i, const void *rows);
} sn_cpu_picture;

/* Of the build for the running machine. */
const sn_cpu_picture *sn_cpu_picture_of(void);
/* Of a named instruction set; NULL: not built, or not here (tests). */
const sn_cpu_picture *sn_cpu_picture_for(const char *isa);

#endif
