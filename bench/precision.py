#!/usr/bin/env python3
"""Training steps in halves on the processor: Snug in f32, mixed_bf16 and mixed_f16, beside TensorFlow under mixed_bfloat16 and PyTorch under autocast to
bf16, alternating in one run, medians over rounds.
usage: precision.py BUILD [ROUNDS] [CASE...] [--json: the run goes into speed.json]      (peers as for run.py)"""
import os
import sys
import tempfile

import cases
import run
import speed_md

PRECISIONS = ["f32", "mixed_bf16", "mixed_f16"]
PEERS = {"tensorflow-bf16": "TensorFlow 2.21, mixed_bfloat16", "torch-bf16": "PyTorch 2.15, autocast"}
NAMES = {**run.NAMES, "wide": "MLP 1024-2048-2048-2048-10, batch 1024"}
STEPS = {**run.STEPS, "wide": 7}


def commands(build, models, case):
    batch, _, loss, _ = cases.PRECISION[case]
    model, steps = os.path.join(models, case + ".json"), str(STEPS[case])
    found = {p: [os.path.join(build, "bench_step"), "train", model, str(batch), loss, steps, "0", "cpu", p] for p in PRECISIONS}
    for peer in PEERS:
        found[peer] = [run.interpreter(build, peer), os.path.join(run.HERE, "peers.py"), peer, case, steps]
    return found


def row(build, models, case, rounds):
    seen = {}
    for _ in range(rounds):
        for name, command in commands(build, models, case).items():
            seen.setdefault(name, []).append(run.measure(command))
    return {name: run.medians(runs) for name, runs in seen.items()}


def cell(r):
    return r and {"s": round(r["ms"] / 1e3, 7), "mib": round(r["peak_kib"] / 1024)}


def main():
    json_wanted = speed_md.wanted(sys.argv)
    build, rounds, named = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5, sys.argv[3:]
    if json_wanted and named:
        sys.exit("--json keeps whole runs: name no cases")
    rows = []
    with tempfile.TemporaryDirectory() as models:
        run.write_models(build, models, named or list(cases.PRECISION))
        for case in named or cases.PRECISION:
            found = row(build, models, case, rounds)
            rows.append([NAMES[case], [cell(found[name]) for name in [*PRECISIONS, *PEERS]]])
            print(f"{case:<12}" + "  ".join(f"{name} {speed_md.said(c)}" for name, c in zip([*PRECISIONS, *PEERS], rows[-1][1])), flush=True)
    if json_wanted:
        speed_md.merge("halves", ["Snug, f32", "mixed_bf16", "mixed_f16", *PEERS.values()], rows, f"python3 bench/precision.py build {rounds}")


if __name__ == "__main__":
    main()
