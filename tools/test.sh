#!/bin/bash
# The suite: the programs under ctest in the plain build, the same ones again under AddressSanitizer and
# UndefinedBehaviorSanitizer. Tells the ten slowest programs and which tests within programs were skipped, and ends with
# one line "N passed, N failed, N skipped" of programs. usage: tools/test.sh BUILD [full]
set -u
build=$1
mode=${2:-}
leave_out='plain-only|full-sanitized' sanitized=all
if [ "$mode" = full ]; then
    export SNUG_TEST_FULL=1
    leave_out=plain-only sanitized="all full_sanitized"
fi
passed=0 failed=0 skipped=0 times="" inner=""

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
    times+=$(printf '%s\n' "$log" | sed -nE "s|^ *[0-9]+/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*|\2 s  \1 in $1|p")$'\n'
    inner+=$(inner_skips "$1/Testing/Temporary/LastTest.log" "$1")$'\n'
}

# "N NAME in BUILD" for each program of which tests were skipped, as cmocka and unittest count them.
inner_skips() {
    awk -v build="$2" '
        /^[0-9]+\/[0-9]+ Testing: / { name = $3 }
        /^\[  SKIPPED \] [0-9]+ test\(s\)/ { n[name] += $4 }
        /^(OK|FAILED) \(.*skipped=[0-9]+/ { sub(/.*skipped=/, ""); n[name] += $0 + 0 }
        END { for (name in n) print n[name], name, "in", build }' "$1"
}

cmake --build "$build" --target tsan > "$build-tsan.log" 2>&1 || { tail -40 "$build-tsan.log"; failed=$((failed + 1)); }
rm -f "$build-tsan.log"
run "$build"

echo "== again under the sanitizers"
if cmake -S . -B "$build-asan" -G Ninja -DSNUG_SANITIZE=ON -DSNUG_ISAS=base > "$build-asan.log" 2>&1 &&
    cmake --build "$build-asan" --target $sanitized >> "$build-asan.log" 2>&1; then
    run "$build-asan" -LE "$leave_out"
else
    tail -40 "$build-asan.log"
    failed=$((failed + 1))
fi
rm -f "$build-asan.log"

# Each fuzz target for a minute, two at a time, but no longer than 15 minutes in all.
if [ "$mode" = full ]; then
    echo "== fuzz targets"
    n=$(grep -c '^FUZZ(' tests/fuzz/targets.def)
    tools/fuzz.sh "$build-fuzz" $((1800 / n < 60 ? 1800 / n : 60)) 2
    case $? in
    0) passed=$((passed + n)) ;;
    77) skipped=$((skipped + n)) ;;
    *) failed=$((failed + 1)) ;;
    esac
fi

echo "== the slowest, of $(printf '%s' "$times" | awk '{ s += $1 } END { printf "%.0f", s }') s in all"
printf '%s' "$times" | sort -rn | head -10
echo "== skipped within programs: $(printf '%s' "$inner" | awk '{ n += $1 } END { print n + 0 }')"
printf '%s' "$inner" | grep . | sort -rn
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
