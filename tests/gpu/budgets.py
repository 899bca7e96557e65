#!/usr/bin/env python3
"""Budgets on a GPU are held: models are trained within budgets from the smallest to the largest that matters, while
another process holds the rest of the card. A run that was told to fit must end well; from its first step on the card's
total (NVML, looked at from outside) must rise by no more than its budget, and by what Snug itself says, within 2 MiB.
usage: budgets.py SNUG MODELS_FOLDER [CONFIGURATIONS]"""
import ctypes
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MiB = 1 << 20
CONTEXT_WHILE_MADE = 600 * MiB  # a context takes more for a moment than it keeps
MODELS = [  # file, shape of a row, classes, batch
    ("blobs_mlp.json", "16", 6, 4096),
    ("mnist_mlp.json", "28x28", 10, 2048),
    ("shapes_cnn.json", "32x32x3", 8, 512),
    ("resnet20.json", "32x32x3", 10, 128),
    ("shapes_linear.json", "32x32x3", 8, 2048),
]
NEAR = 2 * MiB
STEPS = [0, 0.1, 0.3, 0.5, 0.8, 1]


class Card:
    """The first GPU, as NVML counts it."""

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self):
        self.nvml, self.handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle)):
            sys.exit("NVML does not start")

    def used(self):
        m = self.Memory()
        return m.used if self.nvml.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(m)) == 0 else 0


def watched(card, command):
    """The command's code, output and errors, and how far the card's total rose from its first step on: at most, at last."""
    before, lines, rises = card.used(), [], [0]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    reader = threading.Thread(target=lambda: lines.extend(p.stderr))
    writer = threading.Thread(target=lambda: out.append(p.stdout.read()))
    out = []
    reader.start()
    writer.start()
    while p.poll() is None:
        rise = card.used() - before
        if any(line.startswith("Epoch") for line in lines) and p.poll() is None:
            rises.append(rise)
        time.sleep(0.002)
    reader.join()
    writer.join()
    return p.returncode, out[0], "".join(lines).strip(), rises


def snug(command, *args):
    r = subprocess.run([command, *args, "--device", "gpu", "--json"], capture_output=True, text=True, timeout=120)
    return r.returncode, r.stdout, r.stderr.strip()


def hold_all_but(n):
    p = subprocess.Popen([sys.executable, os.path.join(HERE, "ballast.py"), str(n)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    return p if p.stdout.readline().strip() == "holding" else sys.exit("no ballast")


def try_one(card, command, path, model, budget):
    """None where the budget was held, else what went wrong."""
    _, shape, classes, batch = model
    ballast = hold_all_but(max(budget, CONTEXT_WHILE_MADE) + 16 * MiB)
    try:
        code, out, err, rises = watched(card, [
            command, "fit", path, "--x", f"normal:{batch}x{shape}@1", "--y", f"labels:{batch}@2@{classes}", "--batch", str(batch),
            "--epochs", "3", "--memory", "--budget", str(budget), "--device", "gpu", "--json"])
    finally:
        ballast.stdin.close()
        ballast.wait()
    if code:
        return f"exit {code}: {err[-200:]}"
    d = json.loads(out)["memory"]["device"]
    used = d["context_bytes"] + d["held_bytes"]
    if max(used, *rises) > budget:
        return f"{max(used, *rises) / MiB:.1f} MiB used"
    # The process ends while it is looked at: the highest rise is the one to compare with.
    return None if abs(max(rises) - used) <= NEAR else f"the card rose by {max(rises) / MiB:.1f} MiB, Snug says {used / MiB:.1f}"


def main(command, folder, most):
    card = Card()
    n = bad = 0
    for model in MODELS:
        path = os.path.join(folder, model[0])
        code, out, err = snug(command, "plan", path, "--train", "--batch", str(model[3]), "--budget", str(100 << 30))
        if code:
            sys.exit(f"{model[0]}: {err}")
        plan = json.loads(out)
        reserve = next(r["bytes"] for r in plan["rows"] if r["name"].startswith("reserve"))
        low, high = plan["floor_bytes"], plan["peak_bytes"] + reserve + 4 * MiB
        for part in STEPS:
            if n >= most:
                break
            n += 1
            budget = int(low + (high - low) * part)
            wrong = try_one(card, command, path, model, budget)
            bad += wrong is not None
            print(f"{model[0]} within {budget / MiB:.1f} MiB: {wrong or 'held'}", flush=True)
    print(f"{n} configurations, {bad} failures")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1000))
