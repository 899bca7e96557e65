# Debian packages: libdnnl-dev (its headers; the library is loaded on demand, as liblapack3 is) libjansson-dev libjpeg62-turbo-dev libpng-dev
# zlib1g-dev libcmocka-dev (tests).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
