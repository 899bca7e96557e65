#!/bin/bash
# make demo: data, plan, training, evaluation, where the memory went. usage: tools/demo.sh BUILD
set -eu
build=$1
snug=$build/snug
work=$build/demo
model=examples/models/shapes_cnn.json
mkdir -p "$work"
show() { printf '\n\033[1m$ snug %s\033[0m\n' "$*"; "$snug" "$@"; }
[ -t 1 ] || show() { printf '\n$ snug %s\n' "$*"; "$snug" "$@"; }

show make-data shapes "$work" --train-rows 10000 --seed 1
show plan "$model" --batch 64 --train
SECONDS=0
show fit "$model" --x "$work/x_train.npy" --y "$work/y_train.npy" --validation-split 0.1 --epochs 15 --batch 64 \
    --shuffle --seed 1 --save-best "$work/shapes.safetensors" --memory
took=$SECONDS
show evaluate "$model" --weights "$work/shapes.safetensors" --x "$work/x_test.npy" --y "$work/y_test.npy"

cat <<NEXT

Training took $took s.

Three commands to try next:
  $snug plan $model --batch 512 --train -v          every step and every byte of the plan
  $snug predict $model --weights $work/shapes.safetensors --x $work/x_test.npy --out $work/y.npy
  $snug doctor                                       what this machine lets you use
NEXT
