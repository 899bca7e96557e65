#!/bin/bash
# Collects what a machine without the packages needs to run Snug on its GPU into BUILD/carry: the command, the plug-in,
# programs, and every library they load but the C and C++ compilers' own. Both parts are packed (libraries once, as long as
# they stay the same), since what travels is small; the first run there unpacks them.
# usage: tools/carry.sh BUILD [PROGRAM...]          there: carry/run PROGRAM ARGUMENTS
set -eu
build=$1
shift
out=$build/carry
mkdir -p "$out"
rm -rf "$out/lib" "$out/bin"
mkdir "$out/lib" "$out/bin"
for program in snug "$@"; do
    strip --strip-debug -o "$out/bin/$program" "$build/$program"
done
strip --strip-debug -o "$out/bin/libsnug-cuda.so" "$build/libsnug-cuda.so"
for program in "$out"/bin/*; do ldd "$program"; done | awk '$3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so' |
    while read -r library; do cp -L "$library" "$out/lib/"; done

list=$(cd "$out/lib" && sha1sum ./*)
if [ ! -f "$out/lib.tar.xz" ] || [ "$list" != "$(cat "$out/lib.list" 2>/dev/null)" ]; then
    tar -C "$out" -cf - lib | xz -T0 > "$out/lib.tar.xz"
    echo "$list" > "$out/lib.list"
fi
tar -C "$out" -cf - bin | xz -T0 > "$out/bin.tar.xz"
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
case $program in
*/* | python3 | compute-sanitizer) exec "$program" "$@" ;; # of that machine, with what was carried
esac
exec "$here/bin/$program" "$@"
END_OF_RUN
chmod +x "$out/run"
du -sm "$out" | cut -f1
