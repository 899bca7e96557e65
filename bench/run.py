#!/usr/bin/env python3
"""Snug against TensorFlow, JAX, PyTorch and ONNX Runtime, alternating in one run, medians over rounds; the ratios are
what counts. usage: run.py BUILD [ROUNDS] [CASE...] [--json: the run goes into speed.json]. The peers live in BUILD/peers (made here with pip), or in the interpreters
named by SNUG_BENCH_TENSORFLOW, SNUG_BENCH_JAX and SNUG_BENCH_TORCH. A step of the largest case takes minutes elsewhere: it is TensorFlow's alone there, unless named."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import cases
import speed_md

HERE = os.path.dirname(os.path.abspath(__file__))
WANTED = {"tensorflow": ["tensorflow==2.21.*", "tf2onnx"], "jax": ["jax[cpu]", "keras", "numpy", "onnxruntime"], "torch": ["torch", "numpy"]}
HOME = {"torch-compile": "torch", "onnxruntime": "jax", "tensorflow-bf16": "tensorflow", "torch-bf16": "torch"}  # whose interpreter a peer lives in
HOURS = {"vgg": ["tensorflow"]}  # the only peers that a whole run measures
TRAIN_PEERS, PREDICT_PEERS = ["tensorflow", "jax", "torch", "torch-compile"], ["tensorflow", "jax", "onnxruntime"]
NAMES = {"mlp": "MLP 100-64-10, batch 20,000", "conv": "Conv32(3x3)-pool-dense10, 128x128x3, batch 32",
         "conv2": "Conv64-pool-conv128-gap-dense, 128x128x3, batch 32", "resnet20": "ResNet-20, 32x32, batch 128",
         "lstm": "LSTM 128, T=100, 64 features, batch 64", "transformer": "Transformer 4x256, T=128, batch 16, vocabulary 1000",
         "vgg": "VGG-like 256-256-512-512-1024-1024, 128x128x3, batch 32", "mobilenetv2": "MobileNetV2, 224x224", "resnet50": "ResNet50, 224x224"}
COLUMNS = {"snug": "Snug", "tensorflow": "TensorFlow 2.21", "jax": "JAX (Keras)", "torch": "PyTorch 2.15", "torch-compile": "PyTorch, compiled",
           "onnxruntime": "ONNX Runtime"}
ALL = list(cases.TRAIN) + list(cases.PREDICT)
STEPS = {"mlp": 60, "conv": 20, "conv2": 7, "vgg": 1, "resnet20": 10, "lstm": 20, "transformer": 7, "mobilenetv2": 20, "resnet50": 10}


def interpreter(build, peer):
    peer = HOME.get(peer, peer)
    named = os.environ.get("SNUG_BENCH_" + peer.upper())
    if named:
        return named
    home = os.path.join(build, "peers", peer)
    python = os.path.join(home, "bin", "python")
    if not os.path.exists(python):
        print(f"installing {peer} into {home} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q"] + WANTED[peer], check=True)
    return python


def measure(command):
    """None where the engine cannot run the case: the table then says so."""
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        print("\n".join((run.stderr.strip().split("\n") or [""])[-3:]), file=sys.stderr)
        return None
    return json.loads(run.stdout.strip().split("\n")[-1])


def medians(runs):
    runs = [r for r in runs if r]
    return {k: statistics.median(r[k] for r in runs) for k in runs[0]} if runs else None


def row(build, models, case, rounds, peers):
    train = case in cases.TRAIN
    batch, loss = (cases.TRAIN if train else cases.PREDICT)[case][0], cases.TRAIN[case][2] if train else "mse"
    model, steps = os.path.join(models, case), str(STEPS[case])
    commands = {"snug": [os.path.join(build, "bench_step"), "train" if train else "predict", model + ".json", str(batch), loss, steps]}
    for peer in peers:
        commands[peer] = [interpreter(build, peer), os.path.join(HERE, "peers.py"), peer, case, steps, model + ".onnx"]
    seen = {e: [] for e in commands}
    for _ in range(rounds):
        for e, command in commands.items():
            seen[e].append(measure(command))
    return {e: medians(rs) for e, rs in seen.items()}


def show(case, found):
    peers = [e for e in found if e != "snug" and found[e]]
    cells = "".join(f"{found[e]['ms']:9.2f} /{found[e]['peak_kib'] / 1024:6.0f}" if found.get(e) else " " * 13 + "-  "
                    for e in ["snug"] + TRAIN_PEERS + ["onnxruntime"])
    text = f"{case:<13}{cells}"
    if found["snug"] and peers:
        ms, kib = (min(found[e][k] for e in peers) for k in ("ms", "peak_kib"))
        text += f"{found['snug']['ms'] / ms:7.2f}x {found['snug']['peak_kib'] / kib:6.2f}x {found['snug'].get('gflops', 0):7.0f}"
    print(text, flush=True)


def write_models(build, models, wanted):
    python = interpreter(build, "tensorflow")
    subprocess.run([python, os.path.join(HERE, "cases.py"), models] + (wanted or ALL), check=True, capture_output=True)


def tables(build, rounds, wanted):
    with tempfile.TemporaryDirectory() as models:
        write_models(build, models, wanted)
        print(f"{'ms / MiB':<13}" + "".join(f"{e:>16}" for e in ["snug"] + TRAIN_PEERS + ["onnxruntime"]) + "    time    memory GFLOP/s")
        print(" " * 109 + "against the best")
        found = {}
        for case in wanted or ALL:
            peers = TRAIN_PEERS if case in cases.TRAIN else PREDICT_PEERS
            found[case] = row(build, models, case, rounds, peers if wanted else HOURS.get(case, peers))
            show(case, found[case])
    return found


def keep(found, rounds):
    """Both tables into bench/speed.json."""
    for name, group, peers in (("steps", cases.TRAIN, TRAIN_PEERS), ("predictions", cases.PREDICT, PREDICT_PEERS)):
        def cell(r):
            return r and {"s": round(r["ms"] / 1e3, 7), "mib": round(r["peak_kib"] / 1024)}
        rows = [[NAMES[case], [cell(found[case].get(e)) for e in ["snug"] + peers]] for case in group]
        speed_md.merge(name, [COLUMNS[e] for e in ["snug"] + peers], rows, f"python3 bench/run.py build {rounds}")


def whole_process(command, rounds):
    """Seconds and MiB from its start to its end."""
    times, peaks = [], []
    for _ in range(4 * rounds + 1):
        t = time.perf_counter()
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        times.append(time.perf_counter() - t)
        peaks.append(usage.ru_maxrss / 1024)
        if status:
            raise SystemExit(f"{' '.join(command)} failed")
    return {"s": statistics.median(times[1:]), "mib": round(statistics.median(peaks))}


def small(build, rounds):
    """From start to end of the command: an answer of a small model, a plan of a larger one."""
    models, snug = os.path.join(HERE, "..", "examples", "models"), os.path.join(build, "snug")
    with tempfile.TemporaryDirectory() as d:
        x = ["--x", "uniform:100x28x28@1", "--out", os.path.join(d, "y.npy")]
        predict = [snug, "predict", os.path.join(models, "mnist_mlp.json"), *x]
        plan = [snug, "plan", os.path.join(models, "resnet20.json"), "--train", "--batch", "128"]
        rows = [["`snug predict` of a small model, 100 rows, to the answer on disk", [whole_process(predict, rounds)]],
                ["`snug plan` of a ResNet-20 training step, batch 128", [whole_process(plan, rounds)]]]
    for text, cells in rows:
        print(f"{text}: {speed_md.said(cells[0])}")
    return rows


def main():
    json_wanted = speed_md.wanted(sys.argv)
    build, rounds, named = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5, sys.argv[3:]
    if json_wanted and named:
        sys.exit("--json keeps whole runs: name no cases")
    found = tables(build, rounds, named)
    processes = [] if named else small(build, rounds)
    if json_wanted:
        keep(found, rounds)
        speed_md.merge("small", ["Snug"], processes, f"python3 bench/run.py build {rounds}")


if __name__ == "__main__":
    main()
