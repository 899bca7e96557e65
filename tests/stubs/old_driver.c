/* old_driver.c: a libcuda.so.1 of years ago: it starts, and says that it knows CUDA 11.0. */
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);

__attribute__((visibility("default"))) int cuInit(unsigned flags) {
    (void)flags;
    return 0;
}

__attribute__((visibility("default"))) int cuDriverGetVersion(int *version) {
    *version = 11000;
    return 0;
}
