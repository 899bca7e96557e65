/* closing.c: what the card counts, by NVML, while a process opens a GPU, trains there, closes it, opens
 * it again, and resets it. Needs a card that nobody else uses meanwhile.
 *
 *     gpu_closing MODEL.json BATCH   ->  one line per stage; 1 where
 *         Snug's own figure is not the rise of the card's total within 2 MiB, or
 *         a reset leaves more than CUDA keeps for a process. */
#include <snug/device.h>
#include <snug/train.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB      (1024.0 * 1024.0)
#define NEAR_MIB 2.0
#define LEFT_MIB 4.0 /* after a reset */

typedef struct {
    unsigned long long total, unused, used;
} nvml_memory;

typedef struct {
    int (*memory)(void *, nvml_memory *);
    void *card;
    double before_mib;
    int n_wrong;
} watch;

static void *find(void *library, const char *name) {
    void *f = dlsym(library, name);
    if (!f) {
        fprintf(stderr, "NVML has no %s\n", name);
        exit(77);
    }
    return f;
}

static double used_mib(const watch *w) {
    nvml_memory m;
    return w->memory(w->card, &m) == 0 ? (double)m.used / MIB : -1;
}

static void open_watch(watch *w) {
    int (*init)(void);
    int (*handle)(unsigned, void **);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *f;
    if (!library) {
        printf("no GPU: no NVML\n");
        exit(77);
    }
    memcpy(&init, (f = find(library, "nvmlInit_v2"), &f), sizeof f);
    memcpy(&handle, (f = find(library, "nvmlDeviceGetHandleByIndex_v2"), &f), sizeof f);
    memcpy(&w->memory, (f = find(library, "nvmlDeviceGetMemoryInfo"), &f), sizeof f);
    if (init() != 0 || handle(0, &w->card) != 0) {
        printf("no GPU: NVML sees none\n");
        exit(77);
    }
    w->before_mib = used_mib(w);
    w->n_wrong = 0;
}

/* The stage, and Snug's figure beside the card's, where a device is open. */
static void tell(watch *w, snug_engine *e, const char *stage) {
    snug_device_info d;
    const double rise = used_mib(w) - w->before_mib;
    if (!e || snug_device_look(e, &d, NULL) != SNUG_OK || strncmp(d.name, "gpu", 3) != 0) {
        printf("%-28s card %8.2f MiB\n", stage, rise);
        return;
    }
    const double own = (double)(d.context_bytes + d.held_bytes) / MIB;
    const int wrong = own - rise > NEAR_MIB || rise - own > NEAR_MIB;
    w->n_wrong += wrong;
    printf("%-28s card %8.2f MiB, Snug's figure %8.2f (context %.2f)%s\n", stage, rise, own,
           (double)d.context_bytes / MIB, wrong ? "  WRONG" : "");
}

static snug_status train(snug_engine *e, const char *path, int64_t batch, watch *w,
                         snug_error *err) {
    const snug_compile compile = {.optimizer = "adam", .loss = "sparse_categorical_crossentropy"};
    char x[160], y[64];
    snug_model *m = NULL;
    snug_fit_options o = {.batch = batch, .epochs = 3};
    snug_status status = snug_model_load(e, path, &m, err);
    if (status == SNUG_OK)
        status = snug_model_compile(m, &compile, err);
    if (status == SNUG_OK) {
        const snug_type *t = snug_model_input(m), *out = snug_model_output(m);
        int n = snprintf(x, sizeof x, "normal:%lld", (long long)batch);
        for (int i = 1; i < t->rank; i++)
            n += snprintf(x + n, sizeof x - (size_t)n, "x%lld", (long long)t->dims[i]);
        snprintf(x + n, sizeof x - (size_t)n, "@1");
        snprintf(y, sizeof y, "labels:%lld@2@%lld", (long long)batch,
                 (long long)out->dims[out->rank - 1]);
        status = snug_feed_open(e, x, &o.x, err);
    }
    if (status == SNUG_OK)
        status = snug_feed_open(e, y, &o.y, err);
    if (status == SNUG_OK)
        status = snug_fit(m, &o, NULL, err);
    tell(w, e, "  trained");
    snug_feed_destroy(o.x);
    snug_feed_destroy(o.y);
    snug_model_destroy(m);
    tell(w, e, "  the model is gone");
    return status;
}

static snug_status run(snug_engine *e, const char *path, int64_t batch, watch *w, snug_error *err) {
    snug_status status = SNUG_OK;
    for (int round = 0; round < 4 && status == SNUG_OK; round++) {
        const int resets = round % 2;
        status = snug_device(e, "gpu", NULL, err);
        tell(w, e, round == 0 ? "opened" : "opened again");
        if (status == SNUG_OK)
            status = train(e, path, batch, w, err);
        if (status == SNUG_OK)
            status = resets ? snug_device_reset(e, err) : snug_device(e, "cpu", NULL, err);
        tell(w, e, resets ? "reset" : "closed");
        w->n_wrong += resets && used_mib(w) - w->before_mib > LEFT_MIB;
    }
    return status;
}

int main(int argc, char **argv) {
    watch w;
    snug_error err;
    snug_engine *e;
    if (argc != 3) {
        fprintf(stderr, "usage: gpu_closing MODEL.json BATCH\n");
        return 2;
    }
    open_watch(&w);
    snug_status status = snug_engine_create(NULL, &e, &err);
    if (status == SNUG_OK) {
        status = run(e, argv[1], atoll(argv[2]), &w, &err);
        snug_engine_destroy(e);
    }
    if (status != SNUG_OK)
        fprintf(stderr, "%s\n", err.text);
    printf("%d wrong\n", w.n_wrong);
    return status != SNUG_OK || w.n_wrong > 0;
}
