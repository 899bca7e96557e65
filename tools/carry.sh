#!/bin/bash
# Collects what a machine without the packages needs to run Snug on its GPU into BUILD/carry (about 20 MiB): the command,
# the plug-in, programs, the Python package, the models of the bench, and every library they load but the C and C++
# compilers' own. All is packed, since what travels should be small (libraries once, as long as they stay the same); the first
# run there unpacks it. The programs are those of tools/test-cuda.sh where none is named.
# usage: tools/carry.sh BUILD [PROGRAM...]
# there: BUILD/carry/run PROGRAM ARGUMENTS       python3 is that machine's own, and finds the package
#        tools/test-cuda.sh BUILD/carry PART
set -eu
build=$1
shift
[ $# -gt 0 ] || set -- test_cuda_ops test_cuda_together test_golden gpu_closing bench_step
out=$build/carry
cmake --build "$build" --target snug snug_cuda snug_package snug_venv "$@" > /dev/null
mkdir -p "$out"
rm -rf "$out/lib" "$out/bin"
mkdir "$out/lib" "$out/bin"
for program in snug "$@"; do
    strip --strip-debug -o "$out/bin/$program" "$build/$program"
done
strip --strip-debug -o "$out/bin/libsnug-cuda.so" "$build/libsnug-cuda.so"
mkdir "$out/bin/python"
cp -r "$build/python/snug" "$out/bin/python/"
find "$out/bin/python" -name __pycache__ -prune -exec rm -rf {} +
strip --strip-debug "$out"/bin/python/snug/_C*.so
"$build/venv/bin/python" -B -m snug bench/gpu/table.py models "$out/bin/models"
lapack=$(find /usr/lib -path '*/lapack/liblapack.so.3' | head -1) # loaded by name, so nobody is linked with it; nor with oneDNN
onednn=$(find /usr/lib -name 'libdnnl.so.[0-9]' | head -1)
{
    for program in "$out"/bin/* "$out"/bin/python/snug/_C*.so $lapack $onednn; do [ -d "$program" ] || ldd "$program"; done |
        awk '$3 ~ /^\// { print $3 }'
    echo "$lapack"
    echo "$onednn"
} | sort -u | grep -vE '/lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so' |
    while read -r library; do [ -z "$library" ] || cp -L "$library" "$out/lib/"; done

list=$(cd "$out/lib" && sha1sum ./*)
if [ ! -f "$out/lib.tar.xz" ] || [ "$list" != "$(cat "$out/lib.list" 2>/dev/null)" ]; then
    tar -C "$out" -cf - lib | xz -T0 > "$out/lib.tar.xz"
    echo "$list" > "$out/lib.list"
fi
# The programs have much in common: found where the window is as large as they are.
tar -C "$out" -cf - bin | xz --lzma2=preset=6,dict=64MiB > "$out/bin.tar.xz"
rm -rf "$out/lib" "$out/bin"
cat > "$out/run" <<'END_OF_RUN'
#!/bin/bash
here=$(dirname "$(readlink -f "$0")")
for part in lib bin; do
    [ "$here/$part" -nt "$here/$part.tar.xz" ] || { tar -C "$here" -xmf "$here/$part.tar.xz" && touch "$here/$part"; }
done
program=$1
shift
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PYTHONPATH=$here/bin/python${PYTHONPATH:+:$PYTHONPATH} SNUG_CUDA_PLUGIN=$here/bin/libsnug-cuda.so
case $program in
*/* | python3 | compute-sanitizer) exec "$program" "$@" ;; # of that machine, with what was carried
esac
exec "$here/bin/$program" "$@"
END_OF_RUN
chmod +x "$out/run"
echo "$out: $(du -sm "$out" | cut -f1) MiB, of $(git rev-parse --short HEAD 2>/dev/null || echo this tree)"
