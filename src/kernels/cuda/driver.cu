/* driver.cu: driver.h over CUDA's runtime. The runtime is linked in; the driver library and NVML
 * are found at run time, so that the plug-in can be loaded, and say what is missing, anywhere.
 *
 * The context is the device's primary one, retained through the driver: kernels and libraries find
 * it as the current one of the thread. NVML is asked before CUDA wakes up: what the card has in use
 * more from then on is ours. NVML also has a figure of each process, which is a little smaller; the
 * difference is found once, and from then on others may come and go. */
#include "kernels/cuda/driver.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GRANULE_BYTES ((size_t)2 << 20)
/* Where NVML is missing: CUDA's start and a context without stack, as measured on an H200. */
#define USUAL_CONTEXT_BYTES ((size_t)264 << 20)
#define MAX_CARDS           64
/* Of a process, that NVML counts for the card but not for it, on an H200; 3.25 MiB of it are of the
 * first process alone that wakes CUDA up there. */
#define BESIDE_BYTES ((size_t)9024 << 10)
#define MAX_BESIDE   ((size_t)32 << 20)

static snug_status fail(cudaError_t code, const char *what, snug_error *err) {
    if (code == cudaSuccess)
        return SNUG_OK;
    (void)cudaGetLastError();
    if (code == cudaErrorMemoryAllocation)
        return sn_fail(err, SNUG_E_MEMORY,
                       "the GPU has no memory for %s; free some of it, or "
                       "give a smaller budget",
                       what);
    return sn_fail(err, SNUG_E_DEVICE, "CUDA: %s: %s (%s)", what, cudaGetErrorString(code),
                   cudaGetErrorName(code));
}

/* --- NVML ------------------------------------------------------------------------------------- */

typedef struct {
    unsigned long long total, free, used;
} nvml_memory;
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
} nvml_pci;

typedef int (*nvml_call)(void);
typedef int (*nvml_count_call)(unsigned *n);
typedef int (*nvml_handle_call)(unsigned i, void **handle);
typedef int (*nvml_memory_call)(void *handle, nvml_memory *out);
typedef int (*nvml_pci_call)(void *handle, nvml_pci *out);

static bool nvml_used(void *monitor, void *handle, size_t *bytes) {
    nvml_memory m;
    const nvml_memory_call ask = (nvml_memory_call)dlsym(monitor, "nvmlDeviceGetMemoryInfo");
    if (!ask || ask(handle, &m) != 0)
        return false;
    *bytes = (size_t)m.used;
    return true;
}

typedef struct {
    unsigned pid;
    unsigned long long used;
    unsigned instance[2];
} nvml_process;
typedef int (*nvml_processes_call)(void *handle, unsigned *n, nvml_process *out);

/* Of this process; false where NVML has no such figure (it does not see our number, or may
 * not). */
static bool nvml_own(void *monitor, void *handle, size_t *bytes) {
    enum { MOST = 64 };
    nvml_process found[MOST];
    unsigned n = MOST;
    const nvml_processes_call ask =
        (nvml_processes_call)dlsym(monitor, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!ask || ask(handle, &n, found) != 0)
        return false;
    for (unsigned i = 0; i < n && i < MOST; i++)
        if (found[i].pid == (unsigned)getpid() && found[i].used != ~0ull) {
            *bytes = (size_t)found[i].used;
            return true;
        }
    return false;
}

/* Every card as NVML sees it before CUDA has touched one; `awake`: this process had it at work
 * before, and what that took is in `used`. */
typedef struct {
    void *library;
    bool awake;
    unsigned n;
    void *handle[MAX_CARDS];
    nvml_pci pci[MAX_CARDS];
    size_t used[MAX_CARDS];
} nvml_cards;

static void look_at_card(nvml_cards *c, unsigned i) {
    const nvml_handle_call find =
        (nvml_handle_call)dlsym(c->library, "nvmlDeviceGetHandleByIndex_v2");
    const nvml_pci_call where = (nvml_pci_call)dlsym(c->library, "nvmlDeviceGetPciInfo_v3");
    const unsigned k = c->n;
    if (find && where && find(i, &c->handle[k]) == 0 && where(c->handle[k], &c->pci[k]) == 0 &&
        nvml_used(c->library, c->handle[k], &c->used[k]))
        c->n++;
}

/* Asked of a driver library that is loaded already, and loads none. */
static bool is_awake(void) {
    typedef int (*count_call)(int *n);
    int n;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const count_call count = driver ? (count_call)dlsym(driver, "cuDeviceGetCount") : NULL;
    const bool awake = count && count(&n) == 0;
    if (driver)
        dlclose(driver);
    return awake;
}

static void nvml_open(nvml_cards *c) {
    unsigned n = 0;
    memset(c, 0, sizeof *c);
    c->awake = is_awake();
    c->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!c->library)
        return;
    const nvml_call init = (nvml_call)dlsym(c->library, "nvmlInit_v2");
    const nvml_count_call count = (nvml_count_call)dlsym(c->library, "nvmlDeviceGetCount_v2");
    if (!init || !count || init() != 0 || count(&n) != 0)
        return;
    for (unsigned i = 0; i < n && i < MAX_CARDS; i++)
        look_at_card(c, i);
}

static void nvml_close(void *library) {
    if (!library)
        return;
    const nvml_call shutdown = (nvml_call)dlsym(library, "nvmlShutdown");
    if (shutdown)
        (void)shutdown();
    dlclose(library);
}

/* Keeps the library and the card of the device, or neither. */
static void watch(sn_driver *d, const nvml_cards *cards, const cudaDeviceProp *p) {
    for (unsigned i = 0; i < cards->n; i++)
        if ((int)cards->pci[i].domain == p->pciDomainID && (int)cards->pci[i].bus == p->pciBusID &&
            (int)cards->pci[i].device == p->pciDeviceID) {
            d->monitor = cards->library;
            d->watched = cards->handle[i];
            d->before_bytes = cards->used[i];
            return;
        }
}

/* --- the device ------------------------------------------------------------------------------- */

static void print_version(int v, char *text, size_t size) {
    snprintf(text, size, "%d.%d", v / 1000, v % 1000 / 10);
}

static void print_reason(cudaError_t code, char *why, size_t size) {
    int driver = 0, runtime = 0;
    char have[32], want[32];
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    print_version(driver, have, sizeof have);
    print_version(runtime, want, sizeof want);
    if (code == cudaErrorInsufficientDriver && driver == 0)
        snprintf(why, size, "there is no NVIDIA driver (libcuda.so.1); install one for CUDA %s",
                 want);
    else if (code == cudaErrorInsufficientDriver)
        snprintf(why, size, "the driver is for CUDA %s, the plug-in for %s; install a newer driver",
                 have, want);
    else if (code == cudaErrorNoDevice)
        snprintf(why, size, "the driver sees no GPU; look at CUDA_VISIBLE_DEVICES");
    else
        snprintf(why, size, "CUDA does not start: %s", cudaGetErrorString(code));
}

int sn_driver_count(char *why, size_t size) {
    int n = 0;
    const cudaError_t code = cudaGetDeviceCount(&n);
    if (code == cudaSuccess && n > 0)
        return n;
    print_reason(code == cudaSuccess ? cudaErrorNoDevice : code, why, size);
    (void)cudaGetLastError();
    return 0;
}

/* A function of the driver library; NULL: it has none. */
static void *driver_function(const char *name) {
    void *f = NULL;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found);
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? f : NULL;
}

typedef CUresult (*device_call)(CUdevice *out, int ordinal);
typedef CUresult (*retain_call)(CUcontext *out, CUdevice d);
typedef CUresult (*release_call)(CUdevice d);
typedef CUresult (*current_call)(CUcontext c);
typedef CUresult (*state_call)(CUdevice d, unsigned *flags, int *active);

static snug_status make_context(sn_driver *d, snug_error *err) {
    CUdevice device;
    CUcontext context;
    const device_call find = (device_call)driver_function("cuDeviceGet");
    const retain_call retain = (retain_call)driver_function("cuDevicePrimaryCtxRetain");
    const current_call use = (current_call)driver_function("cuCtxSetCurrent");
    if (!find || !retain || !use)
        return sn_fail(err, SNUG_E_DEVICE, "the driver library lacks functions; is it a driver?");
    if (find(&device, d->index) != CUDA_SUCCESS)
        return sn_fail(err, SNUG_E_DEVICE, "the driver does not give GPU %d", d->index);
    const CUresult made = retain(&context, device);
    if (made == CUDA_ERROR_OUT_OF_MEMORY)
        return sn_fail(err, SNUG_E_MEMORY,
                       "GPU %d is full: a context needs about 520 MiB while it is made; end "
                       "other programs on it",
                       d->index);
    if (made != CUDA_SUCCESS)
        return sn_fail(err, SNUG_E_DEVICE, "no context on GPU %d: driver error %d", d->index,
                       (int)made);
    d->ordinal = (int)device;
    d->context = context;
    if (use(context) == CUDA_SUCCESS)
        return fail(cudaDeviceSetLimit(cudaLimitStackSize, 0), "setting the stack limit", err);
    return sn_fail(err, SNUG_E_DEVICE, "the context of GPU %d cannot be used", d->index);
}

static void describe(const cudaDeviceProp *p, const sn_driver *d, sn_driver_facts *out) {
    int driver = 0, runtime = 0;
    memset(out, 0, sizeof *out);
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    snprintf(out->name, sizeof out->name, "%.95s", p->name);
    print_version(driver, out->driver, sizeof out->driver);
    print_version(runtime, out->runtime, sizeof out->runtime);
    out->capability = p->major * 10 + p->minor;
    out->n_multiprocessors = p->multiProcessorCount;
    out->granule_bytes = GRANULE_BYTES;
    out->watches = d->watched != NULL;
}

/* Libraries may hold on to the context of an earlier attach; then `before` has it, too. */
static bool is_active(int index) {
    CUdevice device;
    unsigned flags;
    int active = 0;
    const device_call find = (device_call)driver_function("cuDeviceGet");
    const state_call ask = (state_call)driver_function("cuDevicePrimaryCtxGetState");
    return find && ask && find(&device, index) == CUDA_SUCCESS &&
           ask(device, &flags, &active) == CUDA_SUCCESS && active;
}

/* With the context made: what NVML's figure of the process leaves out. */
static void find_beside(sn_driver *d, bool fresh, bool awake) {
    size_t used, own;
    d->beside_bytes = BESIDE_BYTES;
    if (!d->watched || !nvml_used(d->monitor, d->watched, &used))
        return;
    if (!fresh && d->before_bytes > USUAL_CONTEXT_BYTES)
        d->before_bytes -= USUAL_CONTEXT_BYTES;
    const size_t rise = used > d->before_bytes ? used - d->before_bytes : 0;
    if (!fresh || !nvml_own(d->monitor, d->watched, &own) || rise <= own || rise - own > MAX_BESIDE)
        return;
    if (!awake || rise - own > BESIDE_BYTES)
        d->beside_bytes = rise - own;
}

static snug_status attach(sn_driver *d, const nvml_cards *cards, sn_driver_facts *out,
                          snug_error *err) {
    char why[160];
    cudaDeviceProp p;
    const int n = sn_driver_count(why, sizeof why);
    if (n == 0)
        return sn_fail(err, SNUG_E_DEVICE, "%s", why);
    if (d->index < 0 || d->index >= n)
        return sn_fail(err, SNUG_E_DEVICE, "there is no GPU %d; the driver sees %d, from gpu:0 on",
                       d->index, n);
    SNUG_TRY(fail(cudaGetDeviceProperties(&p, d->index), "asking for the GPU's properties", err));
    watch(d, cards, &p);
    const bool fresh = !is_active(d->index);
    SNUG_TRY(make_context(d, err));
    find_beside(d, fresh, cards->awake);
    describe(&p, d, out);
    return SNUG_OK;
}

snug_status sn_driver_attach(sn_driver *d, int index, sn_driver_facts *out, snug_error *err) {
    nvml_cards cards;
    memset(d, 0, sizeof *d);
    d->index = index;
    nvml_open(&cards);
    const snug_status status = attach(d, &cards, out, err);
    if (!d->monitor)
        nvml_close(cards.library);
    if (status != SNUG_OK)
        sn_driver_detach(d, false);
    return status;
}

void sn_driver_detach(sn_driver *d, bool reset) {
    const release_call release = (release_call)driver_function(reset ? "cuDevicePrimaryCtxReset"
                                                                     : "cuDevicePrimaryCtxRelease");
    const current_call use = (current_call)driver_function("cuCtxSetCurrent");
    if (d->context && release && use) {
        (void)use(NULL);
        (void)release((CUdevice)d->ordinal);
    }
    nvml_close(d->monitor);
    memset(d, 0, sizeof *d);
}

snug_status sn_driver_enter(const sn_driver *d, snug_error *err) {
    return fail(cudaSetDevice(d->index), "choosing the GPU", err);
}

snug_status sn_driver_look(const sn_driver *d, sn_driver_memory *out, snug_error *err) {
    size_t used, own, unused, total;
    SNUG_TRY(fail(cudaMemGetInfo(&unused, &total), "asking for free memory", err));
    *out = sn_driver_memory{total, unused, USUAL_CONTEXT_BYTES, true};
    if (d->watched && nvml_own(d->monitor, d->watched, &own))
        *out = sn_driver_memory{total, unused, own + d->beside_bytes, false};
    else if (d->watched && nvml_used(d->monitor, d->watched, &used))
        out->ours_bytes = used > d->before_bytes ? used - d->before_bytes : 0;
    return SNUG_OK;
}

/* --- memory ----------------------------------------------------------------------------------- */

snug_status sn_driver_alloc(size_t bytes, void **out, snug_error *err) {
    char what[64];
    snprintf(what, sizeof what, "%zu bytes", bytes);
    return fail(cudaMalloc(out, bytes), what, err);
}

void sn_driver_free(void *block) {
    (void)cudaFree(block);
}

snug_status sn_driver_pin(void *pages, size_t bytes, snug_error *err) {
    return fail(cudaHostRegister(pages, bytes, cudaHostRegisterDefault), "pinning host memory",
                err);
}

void sn_driver_unpin(void *pages) {
    (void)cudaHostUnregister(pages);
}

/* --- streams ---------------------------------------------------------------------------------- */

snug_status sn_driver_make_stream(cudaStream_t *out, snug_error *err) {
    return fail(cudaStreamCreateWithFlags(out, cudaStreamNonBlocking), "a stream", err);
}

void sn_driver_drop_stream(cudaStream_t s) {
    (void)cudaStreamDestroy(s);
}

snug_status sn_driver_make_event(sn_driver_event *out, snug_error *err) {
    cudaEvent_t e;
    SNUG_TRY(fail(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "an event", err));
    *out = e;
    return SNUG_OK;
}

void sn_driver_drop_event(sn_driver_event e) {
    (void)cudaEventDestroy((cudaEvent_t)e);
}

snug_status sn_driver_copy(sn_gpu_copy kind, void *to, const void *from, size_t bytes,
                           cudaStream_t s, snug_error *err) {
    static const cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                           cudaMemcpyDeviceToDevice};
    return fail(cudaMemcpyAsync(to, from, bytes, kinds[kind], s), "a copy", err);
}

snug_status sn_driver_fill(void *to, int byte, size_t bytes, cudaStream_t s, snug_error *err) {
    return fail(cudaMemsetAsync(to, byte, bytes, s), "a fill", err);
}

snug_status sn_driver_mark(sn_driver_event e, cudaStream_t s, snug_error *err) {
    return fail(cudaEventRecord((cudaEvent_t)e, s), "an event", err);
}

snug_status sn_driver_follow(cudaStream_t s, sn_driver_event e, snug_error *err) {
    return fail(cudaStreamWaitEvent(s, (cudaEvent_t)e, 0), "an order of streams", err);
}

snug_status sn_driver_await(sn_driver_event e, snug_error *err) {
    return fail(cudaEventSynchronize((cudaEvent_t)e), "waiting for the GPU", err);
}

snug_status sn_driver_finish(cudaStream_t s, snug_error *err) {
    return fail(cudaStreamSynchronize(s), "running on the GPU", err);
}

snug_status sn_driver_launched(snug_error *err) {
    return fail(cudaGetLastError(), "starting a kernel", err);
}

/* What a lost context answers to everything. */
bool sn_driver_is_lost(void) {
    size_t unused, total;
    const cudaError_t code = cudaMemGetInfo(&unused, &total);
    (void)cudaGetLastError();
    return code != cudaSuccess;
}

/* --- frames ----------------------------------------------------------------------------------- */

typedef CUresult (*node_call)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out);
typedef CUresult (*function_call)(int *value, CUfunction_attribute which, CUfunction f);

static size_t frame_of(cudaGraphNode_t node) {
    const node_call look = (node_call)driver_function("cuGraphKernelNodeGetParams");
    const function_call ask = (function_call)driver_function("cuFuncGetAttribute");
    CUDA_KERNEL_NODE_PARAMS p;
    cudaGraphNodeType type;
    int bytes = 0;
    memset(&p, 0, sizeof p);
    if (!look || !ask || cudaGraphNodeGetType(node, &type) != cudaSuccess ||
        type != cudaGraphNodeTypeKernel || look(node, &p) != CUDA_SUCCESS || !p.func ||
        ask(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, p.func) != CUDA_SUCCESS || bytes < 0)
        return 0;
    return (size_t)bytes;
}

size_t sn_driver_frame(cudaStream_t s, sn_driver_enqueue enqueue, void *ctx) {
    enum { MOST = 32 };
    cudaGraphNode_t nodes[MOST];
    cudaGraph_t graph = NULL;
    size_t n = MOST, largest = 0;
    if (cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed) == cudaSuccess) {
        enqueue(ctx, s);
        if (cudaStreamEndCapture(s, &graph) != cudaSuccess)
            graph = NULL;
    }
    if (graph && cudaGraphGetNodes(graph, nodes, &n) == cudaSuccess)
        for (size_t i = 0; i < n && i < MOST; i++)
            largest = frame_of(nodes[i]) > largest ? frame_of(nodes[i]) : largest;
    if (graph)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    return largest;
}

/* --- captured runs ---------------------------------------------------------------------------- */

snug_status sn_driver_capture(cudaStream_t s, snug_error *err) {
    return fail(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed), "beginning a capture",
                err);
}

static __global__ void open_or_not(cudaGraphConditionalHandle door, uint32_t *words) {
    words[SN_WORD_OPENED] = words[SN_WORD_REFUSED] == 0 && words[SN_WORD_OBJECTED] == 0;
    cudaGraphSetConditional(door, words[SN_WORD_OPENED]);
}

/* The node behind which the rest of a capture goes; body is where. */
static cudaError_t add_door(cudaStream_t s, uint32_t *words, cudaGraph_t *body) {
    cudaStreamCaptureStatus capturing;
    cudaGraph_t graph;
    cudaGraphConditionalHandle door;
    cudaGraphNode_t node;
    const cudaGraphNode_t *before;
    const cudaGraphEdgeData *edges;
    size_t n;
    cudaGraphNodeParams p = {};
    cudaError_t code = cudaStreamGetCaptureInfo(s, &capturing, NULL, &graph, &before, &edges, &n);
    if (code == cudaSuccess)
        code = cudaGraphConditionalHandleCreate(&door, graph, 0, cudaGraphCondAssignDefault);
    if (code != cudaSuccess)
        return code;
    open_or_not<<<1, 1, 0, s>>>(door, words);
    code = cudaStreamGetCaptureInfo(s, &capturing, NULL, &graph, &before, &edges, &n);
    if (code != cudaSuccess)
        return code;
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = door;
    p.conditional.type = cudaGraphCondTypeIf;
    p.conditional.size = 1;
    code = cudaGraphAddNode(&node, graph, before, edges, n, &p);
    if (code != cudaSuccess)
        return code;
    *body = p.conditional.phGraph_out[0];
    return cudaStreamUpdateCaptureDependencies(s, &node, NULL, 1, cudaStreamSetCaptureDependencies);
}

snug_status sn_driver_guard(cudaStream_t s, uint32_t *words, void **whole, snug_error *err) {
    cudaGraph_t body, graph;
    SNUG_TRY(fail(add_door(s, words, &body), "guarding a capture", err));
    SNUG_TRY(fail(cudaStreamEndCapture(s, &graph), "ending a capture", err));
    *whole = graph;
    return fail(cudaStreamBeginCaptureToGraph(s, body, NULL, NULL, 0, cudaStreamCaptureModeRelaxed),
                "going on with a capture", err);
}

/* Of both, where the last part is the guarded one. */
static snug_status check_room(cudaGraph_t graph, cudaGraph_t last, const sn_driver_kept *kept,
                              snug_error *err) {
    size_t n = 0, n_last = 0;
    SNUG_TRY(fail(cudaGraphGetNodes(graph, NULL, &n), "counting a graph's nodes", err));
    if (last != graph)
        SNUG_TRY(fail(cudaGraphGetNodes(last, NULL, &n_last), "counting a graph's nodes", err));
    const size_t need = (n + n_last) * SN_DRIVER_NODE_BYTES + kept->n_copies * SN_DRIVER_COPY_BYTES;
    if (need <= kept->room_bytes)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_BUDGET, "a graph of %zu nodes takes %zu bytes there; %zu are left",
                   n + n_last, need, kept->room_bytes);
}

snug_status sn_driver_make_graph(cudaStream_t s, const sn_driver_kept *kept, sn_driver_graph *out,
                                 snug_error *err) {
    cudaGraph_t last = NULL, graph = (cudaGraph_t)kept->whole;
    cudaGraphExec_t exec;
    snug_status status = fail(cudaStreamEndCapture(s, &last), "ending a capture", err);
    if (!graph)
        graph = last; /* else the last part belongs to it */
    if (status == SNUG_OK)
        status = check_room(graph, last, kept, err);
    if (status == SNUG_OK)
        status = fail(cudaGraphInstantiate(&exec, graph, 0), "making a graph", err);
    if (graph)
        (void)cudaGraphDestroy(graph);
    SNUG_TRY(status);
    status = fail(cudaGraphUpload(exec, s), "sending a graph", err);
    if (status == SNUG_OK)
        *out = exec;
    else
        (void)cudaGraphExecDestroy(exec);
    return status;
}

snug_status sn_driver_replay(sn_driver_graph graph, cudaStream_t s, snug_error *err) {
    return fail(cudaGraphLaunch((cudaGraphExec_t)graph, s), "replaying a run", err);
}

void sn_driver_drop_graph(sn_driver_graph graph) {
    (void)cudaGraphExecDestroy((cudaGraphExec_t)graph);
}
