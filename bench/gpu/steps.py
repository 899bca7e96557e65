#!/usr/bin/env python3
"""Training steps on a GPU: time, device and host memory. A step's time is that of many more epochs of one batch, so that
start and planning do not count. usage: steps.py SNUG MODELS_FOLDER (models as Keras' to_json writes them) [NAME...]"""
import json
import subprocess
import sys
import time

MiB = 1 << 20
#      model       a row          classes batch steps options
RUNS = [
    ("mlp", "100", 10, 20000, 2000, []),
    ("mlp", "100", 10, 20000, 2000, ["--exact"]),
    ("convpool", "1024x1024x3", 10, 32, 100, []),
    ("convpool", "1024x1024x3", 10, 32, 60, ["--budget", "2500MiB"]),
    ("convpool", "1024x1024x3", 10, 256, 40, ["--budget", "4GiB"]),
    ("convpool", "1024x1024x3", 10, 256, 40, ["--budget", "3GiB"]),
    ("vgg", "128x128x3", 10, 32, 40, []),
    ("vgg", "128x128x3", 10, 32, 40, ["--budget", "2500MiB"]),
    ("resnet50", "224x224x3", 1000, 64, 40, []),
    ("resnet50", "224x224x3", 1000, 64, 40, ["--budget", "3GiB"]),
]


def fit(command, path, run, epochs, more):
    _, row, classes, batch, _, options = run
    start = time.time()
    r = subprocess.run([command, "fit", path, "--x", f"normal:{batch}x{row}@1", "--y", f"labels:{batch}@1@{classes}",
                        "--batch", str(batch), "--optimizer", "adam", "--loss", "sparse_categorical_crossentropy",
                        "--device", "gpu", "--json", "--epochs", str(epochs), *options, *more],
                       capture_output=True, text=True, timeout=120)
    return r, time.time() - start


def main(command, folder, names):
    for run in RUNS:
        name, _, _, batch, n, options = run
        if names and name not in names:
            continue
        path = f"{folder}/{name}.json"
        first, a = fit(command, path, run, 2, ["--memory"])
        second, b = fit(command, path, run, 2 + n, [])
        label = f"{name} batch {batch} {' '.join(options)}".rstrip()
        if first.returncode or second.returncode:
            print(f"{label}: {(first.stderr + second.stderr).strip()[-300:]}", flush=True)
            continue
        memory = json.loads(first.stdout)["memory"]
        device = memory["device"]
        print(f"{label}: {1000 * (b - a) / n:.3f} ms a step, device "
              f"{(device['context_bytes'] + device['held_bytes']) / MiB:.0f} MiB (context "
              f"{device['context_bytes'] / MiB:.1f}), host {memory['counted_peak_bytes'] / MiB:.0f} MiB, start {a:.1f} s, "
              f"loss {json.loads(second.stdout)['loss']:.4g}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
