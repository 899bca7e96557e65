/* picture_attrs.h: what the attributes of resize and warp mean. Pictures are [N, H, W, C]. */
#ifndef SN_OP_PICTURE_ATTRS_H
#define SN_OP_PICTURE_ATTRS_H

/* `method` of resize and resize_grad. The order is part of the text form. */
typedef enum {
    SN_RESIZE_NEAREST,
    SN_RESIZE_BILINEAR,
    SN_RESIZE_BICUBIC, /* Keys' kernel, a = -1/2 */
    SN_RESIZE_AREA,
    SN_RESIZE_LANCZOS3,
    SN_RESIZE_LANCZOS5,
    SN_RESIZE_GAUSSIAN, /* radius 3/2, sigma 1/2 */
    SN_RESIZE_MITCHELL, /* Mitchell and Netravali's cubic, B = C = 1/3 */
    SN_N_RESIZE
} sn_resize_method;

/* `mode` of warp and warp_grad: what lies outside the picture [abcd]. */
typedef enum {
    SN_WARP_CONSTANT, /* kkkk|abcd|kkkk */
    SN_WARP_REFLECT,  /* dcba|abcd|dcba */
    SN_WARP_WRAP,     /* abcd|abcd|abcd */
    SN_WARP_NEAREST,  /* aaaa|abcd|dddd */
    SN_N_WARP
} sn_warp_mode;

#endif
