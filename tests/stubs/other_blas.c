/* other_blas.c: what NumPy may have brought as libblas.so.3: another one, which says its name. */
const char *openblas_get_config(void);

__attribute__((visibility("default"))) const char *openblas_get_config(void) {
    return "a stub";
}
