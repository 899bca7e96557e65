#!/bin/bash
# Builds the fuzz targets (tests/fuzz, cmake/fuzz.cmake) with clang 14 in a folder of their own and runs each for a while
# under AddressSanitizer and UndefinedBehaviorSanitizer. Prints executions per target; an input that fails a target stays in
# FOLDER/failed and fails the run. Ends with 77 where there is no clang or no libFuzzer.
# usage: tools/fuzz.sh FOLDER SECONDS [AT_ONCE [TARGET...]]     seconds per target; how many run side by side (2)
# With SNUG_FUZZ_KEEP=1 some inputs that reach new code are added to tests/fuzz/corpus.
set -u
folder=$1 seconds=$2 at_once=${3:-2}
shift $(($# < 3 ? $# : 3))
clang=$(command -v "${SNUG_CLANG:-clang-14}") || { echo "fuzz: skipped: no clang-14; install clang-14 and libclang-rt-14-dev"; exit 77; }
probe=$(mktemp -d)
echo 'int LLVMFuzzerTestOneInput(const unsigned char *b, unsigned long n) { return b == 0 && n == 1; }' > "$probe/probe.c"
"$clang" -fsanitize=fuzzer,address,undefined "$probe/probe.c" -o "$probe/probe" 2> "$probe/log"
has=$?
rm -rf "$probe"
[ $has = 0 ] || { echo "fuzz: skipped: no libFuzzer for $clang; install libclang-rt-14-dev"; exit 77; }

log=$folder.log
{ cmake -S . -B "$folder" -G Ninja -DCMAKE_C_COMPILER="$clang" -DSNUG_FUZZ=ON -DSNUG_ISAS=base &&
    cmake --build "$folder" --target fuzz; } > "$log" 2>&1 || { tail -40 "$log"; echo "fuzz: the targets do not build"; exit 1; }
rm -f "$log"

targets=${*:-$(sed -nE 's/^FUZZ\(([a-z_]+), .*/\1/p' tests/fuzz/targets.def)}
rm -rf "$folder/failed"
mkdir -p "$folder/failed" "$folder/found" "$folder/logs"

# The smallest inputs that reach what the corpus does not: a dozen at most, for `make test` replays them all.
keep_some() {
    local kept=$folder/kept/$1 input
    rm -rf "$kept"
    mkdir -p "$kept"
    cp tests/fuzz/corpus/"$1"/* "$kept"
    "$folder/fuzz_$1" -merge=1 -max_len="$2" "$kept" "$folder/found/$1" > /dev/null 2>&1
    for input in $(ls -rS "$kept" | grep -E '^[0-9a-f]{40}$' | head -12); do
        cp -n "$kept/$input" "tests/fuzz/corpus/$1/${input:0:12}"
    done
}

run_one() {
    local name=$1 corpus=tests/fuzz/corpus/$1 most
    most=$(sed -nE "s/^FUZZ\($name, ([0-9]+)\)/\1/p" tests/fuzz/targets.def)
    mkdir -p "$folder/found/$name"
    nice -n 19 "$folder/fuzz_$name" -max_total_time="$seconds" -max_len="$most" -rss_limit_mb=512 -malloc_limit_mb=64 -timeout=5 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$folder/failed/$name-" "$folder/found/$name" "$corpus" \
        > "$folder/logs/$name" 2>&1
    local rc=$? execs
    execs=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+).*/\1/p' "$folder/logs/$name")
    if [ $rc = 0 ] && [ -n "$execs" ]; then
        printf 'fuzz: %-12s %10s executions\n' "$name" "$execs"
    else
        printf 'fuzz: %-12s FAILED\n' "$name"
        grep -E 'fuzz target failed|ERROR: |SUMMARY|runtime error|input is|on the ledger|are allowed' "$folder/logs/$name" | head -8
        echo "$name" >> "$folder/failed/names"
    fi
    [ "${SNUG_FUZZ_KEEP:-}" != 1 ] || [ $rc != 0 ] || keep_some "$name" "$most"
}

at=0
for name in $targets; do
    run_one "$name" &
    at=$((at + 1))
    [ $((at % at_once)) != 0 ] || wait
done
wait
if [ -s "$folder/failed/names" ]; then
    echo "fuzz: failed: $(tr '\n' ' ' < "$folder/failed/names"); inputs in $folder/failed"
    exit 1
fi
