/* other_abi.c: a plug-in that was built for another Snug: it refuses every version it is asked for. */
const void *sn_gpu_plugin(int abi);

__attribute__((visibility("default"))) const void *sn_gpu_plugin(int abi) {
    (void)abi;
    return 0;
}
