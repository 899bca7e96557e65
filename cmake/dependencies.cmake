# Debian packages: libdnnl-dev libjansson-dev zlib1g-dev libcmocka-dev (tests).
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
