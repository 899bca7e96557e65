/* onednn_library.h: oneDNN's functions, found once, when the first convolution in groups is
 * described. Linked with it, a process would have 3 MiB of it, of the C++ library and of OpenMP
 * from its start on. */
#ifndef SN_KERNELS_CPU_ONEDNN_LIBRARY_H
#define SN_KERNELS_CPU_ONEDNN_LIBRARY_H

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR >= 3
#define SN_ONEDNN_MAP_OF_VERSION(X)                                                                \
    X(memory_desc_create_with_strides)                                                             \
    X(memory_desc_create_with_tag)                                                                 \
    X(memory_desc_destroy)                                                                         \
    X(convolution_forward_primitive_desc_create)                                                   \
    X(convolution_backward_data_primitive_desc_create)                                             \
    X(convolution_backward_weights_primitive_desc_create)
#else
#define SN_ONEDNN_MAP_OF_VERSION(X)                                                                \
    X(memory_desc_init_by_strides)                                                                 \
    X(memory_desc_init_by_tag)                                                                     \
    X(dilated_convolution_forward_desc_init)                                                       \
    X(dilated_convolution_backward_data_desc_init)                                                 \
    X(dilated_convolution_backward_weights_desc_init)                                              \
    X(primitive_desc_create)
#endif

#define SN_ONEDNN_MAP(X)                                                                           \
    SN_ONEDNN_MAP_OF_VERSION(X)                                                                    \
    X(version)                                                                                     \
    X(engine_create)                                                                               \
    X(engine_destroy)                                                                              \
    X(stream_create)                                                                               \
    X(stream_destroy)                                                                              \
    X(stream_wait)                                                                                 \
    X(memory_create)                                                                               \
    X(memory_destroy)                                                                              \
    X(memory_set_data_handle)                                                                      \
    X(memory_desc_get_size)                                                                        \
    X(post_ops_create)                                                                             \
    X(post_ops_destroy)                                                                            \
    X(post_ops_append_eltwise)                                                                     \
    X(post_ops_append_sum)                                                                         \
    X(primitive_attr_create)                                                                       \
    X(primitive_attr_destroy)                                                                      \
    X(primitive_attr_set_post_ops)                                                                 \
    X(primitive_attr_set_scratchpad_mode)                                                          \
    X(primitive_desc_destroy)                                                                      \
    X(primitive_desc_query)                                                                        \
    X(primitive_desc_query_md)                                                                     \
    X(primitive_create)                                                                            \
    X(primitive_destroy)                                                                           \
    X(primitive_execute)                                                                           \
    X(reorder_primitive_desc_create)

typedef struct {
#define SN_ONEDNN_FUNCTION(name) __typeof__(dnnl_##name) *name;
    SN_ONEDNN_MAP(SN_ONEDNN_FUNCTION)
#undef SN_ONEDNN_FUNCTION
    /* of the OpenMP that it has its threads from */
    int (*threads)(void);
    void (*set_threads)(int);
} sn_onednn_library;

/* NULL: there is none here of the version that this library was built for. */
const sn_onednn_library *sn_onednn_found(void);

#endif
