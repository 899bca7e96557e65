#!/bin/bash
# The tests that need a GPU: Keras' runs on it, TensorFlow programs, budgets with the rest of the card taken, kernels under
# compute-sanitizer.
# Says "no GPU" and ends with 77 where there is none. usage: tools/test-cuda.sh BUILD
set -u
build=$1
gpu=$("$build/snug" doctor | sed -n 's/^gpu  *//p' | head -1)
case $gpu in
none* | "")
    echo "no GPU: ${gpu#none  -- }"
    exit 77
    ;;
esac
echo "on $gpu"
failed=0
step() {
    echo "== $1"
    shift
    "$@" || failed=$((failed + 1))
}
export SNUG_TEST_DEVICE=gpu
step "Keras' runs" "$build/test_golden"
step "TensorFlow programs" "$build/venv/bin/python" -B tests/parity/run.py --device gpu --jobs 8
step "budgets" python3 tests/gpu/budgets.py "$build/snug" examples/models
if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck initcheck racecheck; do
        step "$tool" compute-sanitizer --error-exitcode 1 --tool $tool "$build/test_golden" mlp_f32 cnn_f32 lstm_plain_f32
    done
fi
echo "$failed failed"
[ "$failed" = 0 ]
