#!/bin/bash
# The tests that need a GPU, in three parts of less than 8 minutes each:
#   operators  every row against the processor, Keras' runs, closing, a few runs under compute-sanitizer's four tools, and
#              TensorFlow programs: those named, or all
#   budgets    the list of tests/gpu/budgets.py, by the command and by Python, while another process holds the rest of the card: its first N rows, those of
#              the doors and networks that are named, or all
#   bench      the table of training steps beside PyTorch, where that is there: cases that are named, or all
# Says "no GPU" and ends with 77 where there is none. From the repository's root:
# usage: tools/test-cuda.sh BUILD [operators [PROGRAM...] | budgets [N | NAME...] | bench [CASE...]]      (default: the first two)
# BUILD may be BUILD/carry of another machine, which `tools/carry.sh BUILD` made: nothing else is needed.
set -u
bin=$(readlink -f "$1")
part=${2:-both}
shift $(($# < 2 ? $# : 2))
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64
python=$bin/venv/bin/python
if [ -x "$bin/run" ]; then
    "$bin/run" snug --version > /dev/null # unpacks
    export LD_LIBRARY_PATH=$bin/lib:$LD_LIBRARY_PATH PYTHONPATH=$bin/bin/python
    python=python3
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
MOST=470 # seconds of a part, whatever its steps may take
step() {
    local name=$1 limit=$2 start=$SECONDS
    shift 2
    if timeout $((limit < MOST - start ? limit : MOST > start ? MOST - start : 1)) "$@"; then
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
operators() {
    step "every row against the processor" 120 "$bin/test_cuda_ops"
    step "calls that run together" 60 "$bin/test_cuda_together"
    step "Keras' runs" 150 "$bin/test_golden"
    step "closing" 60 "$bin/gpu_closing" examples/models/resnet20.json 128
    local runs="mlp_f32 cnn_f32 lstm_plain_f32 batchnorm_dense_f32 attention_heads_f32"
    for tool in memcheck initcheck; do
        sanitize $tool 60 $runs
    done
    export SNUG_CUDA_GRAPHS=0 # these two break at conditional nodes of graphs
    for tool in racecheck synccheck; do
        sanitize $tool 60 $runs
    done
    unset SNUG_CUDA_GRAPHS
    step "TensorFlow programs" 200 "$python" -B tests/parity/run.py --device gpu --jobs 8 "$@"
}
# The models are the same everywhere: Snug's own Keras writes them.
bench() {
    local models=$bin/models
    [ -d "$models" ] || "$python" -B -m snug bench/gpu/table.py models "$models" || return
    step "bench" $MOST python3 bench/gpu/table.py run "$bin/bench_step" "$models" "$@"
}
export SNUG_TEST_DEVICE=gpu SNUG_TEST_PLUGIN=$bin/libsnug-cuda.so SNUG_CUDA_PLUGIN=$bin/libsnug-cuda.so
export SNUG_TEST_GOLDEN=$PWD/tests/golden
case $part in
operators) operators "$@" ;;
budgets) step "budgets" $MOST python3 -B tests/gpu/budgets.py "$bin" "$python" "$@" ;;
bench) bench "$@" ;;
both)
    operators
    MOST=$((SECONDS + MOST))
    step "budgets" 460 python3 -B tests/gpu/budgets.py "$bin" "$python"
    ;;
*)
    echo "there is no part '$part': operators, budgets or bench"
    exit 2
    ;;
esac
echo "$failed failed"
[ "$failed" = 0 ]
