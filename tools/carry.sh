#!/bin/bash
# Collects what a machine without the packages needs to run Snug on its GPU into BUILD/carry: the command, the plug-in,
# test programs, and the libraries they load (not the C library's). usage: tools/carry.sh BUILD [PROGRAM...]
# Run there as: carry/run PROGRAM ARGUMENTS
set -eu
build=$1
shift
out=$build/carry
rm -rf "$out"
mkdir -p "$out/lib"
for program in snug "$@"; do
    cp "$build/$program" "$out/"
    strip --strip-debug "$out/$program"
    ldd "$build/$program" | awk '$3 ~ /^\// { print $3 }' | grep -E 'libdnnl|libjansson|libcmocka|libgomp|libz\.' |
        while read -r library; do cp -L "$library" "$out/lib/"; done
done
cp "$build/libsnug-cuda.so" "$out/"
strip --strip-debug "$out/libsnug-cuda.so"
cat > "$out/run" <<'END'
#!/bin/bash
here=$(dirname "$(readlink -f "$0")")
program=$1
shift
LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/$program" "$@"
END
chmod +x "$out/run"
du -sm "$out" | cut -f1
