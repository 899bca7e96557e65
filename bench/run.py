#!/usr/bin/env python3
"""make bench: Snug against TensorFlow and PyTorch, alternating in one run, medians over rounds; the ratios are what counts.
usage: run.py BUILD [ROUNDS]. The peers live in BUILD/peers (made here with pip), or in the interpreters named by
SNUG_BENCH_TENSORFLOW and SNUG_BENCH_TORCH."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WANTED = {"tensorflow": ["tensorflow==2.21.*"], "torch": ["torch", "numpy"]}
STEPS = {"mlp": 60, "conv": 20}


def interpreter(build, peer):
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
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.strip().split("\n")[-1])


def show(what, values, unit):
    cells = "".join(f"{values[e]:.2f} {unit}".rjust(14) for e in ("snug", "tensorflow", "torch"))
    print(f"{what:<26}{cells}{values['snug'] / values['tensorflow']:>8.2f}x{values['snug'] / values['torch']:>10.2f}x")


def steps(build, rounds):
    engines = {"snug": [os.path.join(build, "bench_step")]}
    for peer in WANTED:
        engines[peer] = [interpreter(build, peer), os.path.join(HERE, "peers.py"), peer]
    print(f"{'training step':<26}{'snug':>14}{'tensorflow':>14}{'torch':>14}{'snug/tf':>9}{'snug/torch':>11}")
    for case, n in STEPS.items():
        seen = {e: [] for e in engines}
        for _ in range(rounds):
            for e, command in engines.items():
                seen[e].append(measure(command + [case, str(n)]))
        show(case, {e: statistics.median(r["ms"] for r in rs) for e, rs in seen.items()}, "ms")
        show(case + ", peak process", {e: statistics.median(r["peak_kib"] for r in rs) / 1024 for e, rs in seen.items()}, "MiB")


def predict(build, rounds):
    """From process start to the answer on disk: a small model, 100 rows."""
    model = os.path.join(HERE, "..", "examples", "models", "mnist_mlp.json")
    with tempfile.TemporaryDirectory() as d:
        command = [os.path.join(build, "snug"), "predict", model, "--x", "uniform:100x28x28@1", "--out", os.path.join(d, "y.npy")]
        times, peaks = [], []
        for _ in range(4 * rounds + 1):
            t = time.perf_counter()
            p = subprocess.Popen(command)
            _, status, usage = os.wait4(p.pid, 0)
            times.append((time.perf_counter() - t) * 1e3)
            peaks.append(usage.ru_maxrss / 1024)
            if status:
                raise SystemExit("predict failed")
    print(f"\nsnug predict, process start to answer: {statistics.median(times[1:]):.1f} ms, peak {statistics.median(peaks):.1f} MiB")


def importing(build, rounds):
    code = ("import time, resource; t = time.time(); import tensorflow; "
            "print(time.time() - t, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)")
    command = [interpreter(build, "tensorflow"), "-c", code]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(min(rounds, 3))]
    seconds, mib = (statistics.median(float(r[i]) for r in runs) for i in (0, 1))
    print(f"import tensorflow alone: {seconds * 1e3:.0f} ms, {mib:.0f} MiB")


if __name__ == "__main__":
    where, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    steps(where, n)
    predict(where, n)
    importing(where, n)
