/* device.h: where models run. The processor needs nothing; a GPU needs the plug-in libsnug-cuda.so
 * beside the library, and NVIDIA's driver.
 *
 *     snug_device_options o = {.budget_bytes = (size_t)4 << 30};
 *     snug_device(engine, "gpu", &o, &err);      // context made, measured, booked
 *     snug_model_load(engine, "model.json", &model, &err);      // runs there
 *
 * The budget of a device is for all that this process has there: context, libraries, variables,
 * arena. The engine's own (snug_budget) is the host's. Steps are planned within both, and refused
 * before anything runs. */
#ifndef SNUG_DEVICE_H
#define SNUG_DEVICE_H

#include <snug/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t
        budget_bytes; /* the most of the device's memory; 0: what is free when a step is planned */
    int exact;        /* products of f32 in f32; 0: as fast as TensorFlow does, in TF32 */
    const char *plugin; /* path of the plug-in; NULL: libsnug-cuda.so beside the library */
} snug_device_options;

/* "cpu" (what an engine begins with), "gpu" or "gpu:1": of models, sessions and recorders made from
 * now on. options NULL: zeros. SNUG_E_DEVICE says what is missing. A device is given back with the
 * engine, or when another is chosen: SNUG_E_INVALID where something made there before is still in
 * use. */
SNUG_API SNUG_CHECKED snug_status snug_device(snug_engine *engine, const char *name,
                                              const snug_device_options *options, snug_error *err);

/* Gives the device back as choosing "cpu" does, and with it what cuBLASLt and cuDNN hold on to
 * (their code and the context, about 310 MiB), which otherwise stays until the process ends. It
 * ends all that this process has on the card, that of other libraries, too: hence only when asked.
 * Without a device nothing happens. */
SNUG_API SNUG_CHECKED snug_status snug_device_reset(snug_engine *engine, snug_error *err);

/* Another budget for the device there is; 0: none. SNUG_E_BUDGET: its context alone takes more. */
SNUG_API SNUG_CHECKED snug_status snug_device_budget(snug_engine *engine, size_t bytes,
                                                     snug_error *err);

/* A budget of a card as people write it: "4GiB", "50%" of its total_bytes, "auto" (0): what is free
 * when a step is planned. total_bytes 0: only to see whether the text can be one. */
SNUG_API SNUG_CHECKED snug_status snug_device_budget_parse(const char *text, size_t total_bytes,
                                                           size_t *bytes, snug_error *err);

/* Bytes of a device are as its driver counts them. */
typedef struct {
    char name[24]; /* "cpu:0", "gpu:0" */
    int is_gpu;
    char model[96];               /* "NVIDIA H200"; "" of the processor, as is the rest */
    char driver[32], runtime[32]; /* versions */
    int capability;               /* 90 */
    size_t total_bytes;           /* of the card */
    size_t free_bytes;            /* that nobody holds now */
    size_t context_bytes;         /* of this process: context, libraries, streams */
    size_t held_bytes;            /* variables, arena, buffers */
    size_t budget_bytes;          /* 0: none */
    int watched; /* context_bytes is measured (NVML); else it is what it usually is */
} snug_device_info;
SNUG_API SNUG_CHECKED snug_status snug_device_look(snug_engine *engine, snug_device_info *out,
                                                   snug_error *err);

/* How many GPUs there are; of none err says the reason. The plug-in as in snug_device_options. */
SNUG_API int snug_device_count(const char *plugin, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
