#!/bin/bash
# The suite: the programs under ctest in the plain build, the same ones again under AddressSanitizer and
# UndefinedBehaviorSanitizer. Ends with one line
# "N passed, N failed, N skipped". usage: tools/test.sh BUILD [full]
set -u
build=$1
mode=${2:-}
[ "$mode" != full ] || export SNUG_TEST_FULL=1
passed=0 failed=0 skipped=0

# ctest in one build folder; adds its counts and shows the output of what failed.
run() {
    local log
    log=$(ctest --test-dir "$1" --output-on-failure -j 2 "${@:2}" 2>&1)
    printf '%s\n' "$log"
    local line total bad left_out
    line=$(printf '%s\n' "$log" | grep -E 'tests passed, [0-9]+ tests failed out of [0-9]+' | tail -1)
    total=$(printf '%s' "$line" | sed -E 's/.*out of ([0-9]+).*/\1/')
    bad=$(printf '%s' "$line" | sed -E 's/.*, ([0-9]+) tests failed.*/\1/')
    if [ -z "$total" ]; then total=1 bad=1; fi
    left_out=$(printf '%s\n' "$log" | grep -c '(Skipped)$')
    passed=$((passed + total - bad - left_out)) failed=$((failed + bad)) skipped=$((skipped + left_out))
}

run "$build"

echo "== again under the sanitizers"
if cmake -S . -B "$build-asan" -G Ninja -DSNUG_SANITIZE=ON -DSNUG_ISAS=base > "$build-asan.log" 2>&1 &&
    cmake --build "$build-asan" >> "$build-asan.log" 2>&1; then
    run "$build-asan" -LE plain-only
else
    tail -40 "$build-asan.log"
    failed=$((failed + 1))
fi
rm -f "$build-asan.log"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
