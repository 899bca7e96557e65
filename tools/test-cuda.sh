#!/bin/bash
# The tests that need a GPU, in three parts of less than 8 minutes each:
#   operators  every row against the processor, Keras' runs, TensorFlow programs, closing; a few runs under compute-sanitizer's three tools
#   budgets    30 configurations while another process holds the rest of the card
#   bench      the table of training steps, of the models in a folder that `bench/gpu/table.py models` has written
# Says "no GPU" and ends with 77 where there is none. From the repository's root:
# usage: tools/test-cuda.sh BUILD [operators | budgets | bench MODELS]      (default: the first two)
# BUILD may be what `tools/carry.sh build test_cuda_ops test_golden gpu_closing bench_step` made.
set -u
bin=$(readlink -f "$1")
part=${2:-both}
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64
if [ -x "$bin/run" ]; then
    "$bin/run" snug --version > /dev/null # unpacks
    export LD_LIBRARY_PATH=$bin/lib:$LD_LIBRARY_PATH
    bin=$bin/bin
fi
gpu=$("$bin/snug" doctor | sed -n 's/^gpu  *//p' | head -1)
case $gpu in
none* | "")
    echo "no GPU: ${gpu#none  -- }"
    exit 77
    ;;
esac
echo "on $gpu"
failed=0
step() {
    local name=$1 start=$SECONDS
    shift
    if timeout "$@"; then
        echo "== $name: passed, $((SECONDS - start)) s"
    else
        echo "== $name: FAILED, $((SECONDS - start)) s"
        failed=$((failed + 1))
    fi
}
sanitize() {
    local tool=$1 limit=$2
    shift 2
    command -v compute-sanitizer > /dev/null || return 0
    step "$tool of $*" "$limit" compute-sanitizer --error-exitcode 1 --tool "$tool" "$bin/test_golden" "$@"
}
export SNUG_TEST_DEVICE=gpu SNUG_TEST_PLUGIN=$bin/libsnug-cuda.so SNUG_TEST_GOLDEN=$PWD/tests/golden
case $part in
both | operators)
    step "every row against the processor" 120 "$bin/test_cuda_ops"
    step "Keras' runs" 150 "$bin/test_golden"
    step "closing" 60 "$bin/gpu_closing" examples/models/resnet20.json 128
    [ -x "$bin/venv/bin/python" ] && step "TensorFlow programs" 200 "$bin/venv/bin/python" -B tests/parity/run.py --device gpu --jobs 8
    for tool in memcheck initcheck racecheck; do
        sanitize $tool 60 mlp_f32 cnn_f32 lstm_plain_f32 batchnorm_dense_f32 attention_heads_f32
    done
    ;;&
both | budgets)
    step "budgets" 400 python3 tests/gpu/budgets.py "$bin/snug" examples/models 30
    ;;&
bench)
    step "bench" 460 python3 bench/gpu/table.py run "$bin/bench_step" "$3"
    ;;
esac
echo "$failed failed"
[ "$failed" = 0 ]
