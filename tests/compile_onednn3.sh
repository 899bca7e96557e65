#!/bin/sh
# Compiles onednn.c against the headers of oneDNN 3 (this machine has version 2). Usage: compile_onednn3.sh SOURCE_DIR
# Headers: $SNUG_ONEDNN3_INCLUDE, or the package onednn-devel, fetched into a temporary folder. Exit 77 (skipped) without them.
set -eu
root=$1
include=${SNUG_ONEDNN3_INCLUDE:-}
if [ -z "$include" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    timeout 30 python3 -m pip download -q --no-deps --disable-pip-version-check -d "$folder" onednn-devel >/dev/null 2>&1 ||
        { echo "skipped: no headers of oneDNN 3 here, and none could be fetched"; exit 77; }
    python3 -m zipfile -e "$folder"/onednn_devel-*.whl "$folder/unpacked"
    include=$(dirname "$(dirname "$(dirname "$(find "$folder/unpacked" -path '*/oneapi/dnnl/dnnl.h' | head -n 1)")")")
fi
grep -q "define DNNL_VERSION_MAJOR 3" "$include/oneapi/dnnl/dnnl_version.h" || { echo "$include is not oneDNN 3"; exit 1; }
${CC:-cc} -std=gnu11 -fsyntax-only -D_GNU_SOURCE -Wall -Wextra -Wconversion -Wshadow -Werror \
    -I"$root/src" -I"$root/include" -I"$include" "$root/src/kernels/cpu/onednn.c" "$root/src/kernels/cpu/onednn_library.c"
echo "onednn.c compiles against oneDNN $(sed -n 's/#define DNNL_VERSION_M[AI][JN]OR //p' "$include/oneapi/dnnl/dnnl_version.h" | paste -sd.)"
