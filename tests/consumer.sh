#!/bin/bash
# Installs Snug into a scratch folder and builds a consumer three ways: pkg-config shared, pkg-config static, CMake
# package. Also: the library exports snug_ symbols only; completions and man pages are in place. usage: consumer.sh BUILD SOURCE
set -eu
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" > /dev/null
# The .pc file names the prefix of configuration time; a relocated one is told so.
libdir=$(dirname "$(find "$work/usr" -name snug.pc)")/..
export PKG_CONFIG_PATH="$libdir/pkgconfig:${PKG_CONFIG_PATH:-}" LD_LIBRARY_PATH="$libdir"
flags="--define-variable=prefix=$work/usr"
gcc "$source/tests/consumer/main.c" -o "$work/shared" $(pkg-config $flags --cflags --libs snug)
"$work/shared"
gcc "$source/tests/consumer/main.c" -o "$work/static" $(pkg-config $flags --cflags snug) \
    "$libdir/libsnug.a" $(pkg-config $flags --static --libs snug | sed 's/-lsnug//')
"$work/static"
cmake -S "$source/tests/consumer" -B "$work/cm" -DCMAKE_PREFIX_PATH="$work/usr" > /dev/null
cmake --build "$work/cm" > /dev/null
"$work/cm/consumer"
others=$(nm -D --defined-only "$libdir/libsnug.so" | awk '$2 ~ /[TDBR]/ {print $3}' | grep -v '^snug_' || true)
[ -z "$others" ] || { echo "exported besides snug_*: $others"; exit 1; }
for file in bash-completion/completions/snug zsh/site-functions/_snug fish/vendor_completions.d/snug.fish \
    man/man1/snug.1 $("$work/usr/bin/snug" --help | sed -nE 's|^  ([a-z-]+) .*|man/man1/snug-\1.1|p'); do
    [ -s "$work/usr/share/$file" ] || { echo "not installed: share/$file"; exit 1; }
done
echo "consumer: shared, static and CMake package work; only snug_ symbols are exported"
