#!/usr/bin/env python3
"""Long runs on top of the suite: fuzz targets in turn for half the time, then the command and the Python door train, evaluate, save and go
on for the rest, while memory and open files are watched. Ends with a line for the ledger of docs/reliability.md; writes no file of the tree.
usage: tools/soak.py BUILD HOURS"""
import datetime
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

BUDGET = "40MiB"
MODEL = "tests/data/keras3_cnn.json"
DATA = ["--x", "normal:64x28x28x1@1", "--y", "labels:64@2@10", "--batch", "16", "--budget", BUDGET]
GROWS_KIB = 256  # a process' resident memory, from the first tenth of a run to its end
NO_GROUP = 77

PYTHON_LOOP = """
import gc, os, sys, time
import numpy as np
from snug import _C, keras
half, until, folder = time.time() + float(sys.argv[1]) / 2, time.time() + float(sys.argv[1]), sys.argv[2]
X, Y = np.random.RandomState(0).rand(64, 16).astype("float32"), np.random.RandomState(1).randint(0, 4, 64)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dropout(0.5), keras.layers.Dense(4, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
rounds, first = 0, None


def now():
    gc.collect()
    _C.sync()
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    return int(status["VmRSS"].split()[0]), len(os.listdir("/proc/self/fd")), _C.info()["bytes"]


while time.time() < until or rounds < 600:
    path = os.path.join(folder, "w.weights.h5" if rounds % 2 else "m.keras")
    model.fit(X, Y, epochs=2, batch_size=16, verbose=0)
    before = model.evaluate(X, Y, verbose=0)
    if rounds % 2:
        model.save_weights(path)
        model.load_weights(path)
        assert model.evaluate(X, Y, verbose=0) == before
    else:
        model.save(path)
        assert keras.models.load_model(path).evaluate(X, Y, verbose=0) == before
    rounds += 1
    if not first and rounds >= 300 and time.time() > half: # plans, pools and file caches are made
        first = now()
last = now()
print(rounds, *(b - a for a, b in zip(first, last)))
"""


def fail(what):
    sys.exit(f"soak: {what}")


def fuzz(build, seconds):
    """Each target for its share; what they did."""
    names = re.findall(r"^FUZZ\((\w+),", open("tests/fuzz/targets.def").read(), re.M)
    share = max(1, int(seconds * 2 / len(names)))
    r = subprocess.run(["tools/fuzz.sh", build + "-fuzz", str(share), "2"], capture_output=True, text=True)
    print(r.stdout, end="", flush=True)
    if r.returncode == NO_GROUP:
        return {}
    if r.returncode:
        fail("a fuzz target failed")
    return {name: int(n) for name, n in re.findall(r"^fuzz: (\w+) +(\d+) executions$", r.stdout, re.M)}


def resident_and_files(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]), len(os.listdir(f"/proc/{pid}/fd"))


def child_of(pid):
    """The command that in_cgroup runs."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            children = f.read().split()
        return int(children[0]) if children and "snug" in os.readlink(f"/proc/{children[0]}/exe").rsplit("/", 1)[-1] else None
    except OSError:
        return None


def watch(process, kill_after):
    """Samples of the command while it runs: (KiB, open files). kill_after: seconds, or None."""
    samples, started = [], time.time()
    while process.poll() is None:
        time.sleep(0.05)
        pid = child_of(process.pid)
        try:
            samples += [resident_and_files(pid)] if pid else []
            if pid and kill_after and time.time() - started > kill_after:
                os.kill(pid, signal.SIGKILL)
        except (OSError, TypeError):
            pass
    return samples


class Commands:
    """fit, evaluate and fit again from the saved file, in a memory cgroup of exactly the budget; every fourth fit is killed."""

    def __init__(self, build, folder):
        self.snug, self.group = os.path.join(build, "snug"), os.path.join(build, "in_cgroup")
        self.weights, self.report = os.path.join(folder, "w.safetensors"), os.path.join(folder, "report.json")
        self.runs = self.kills = 0

    def run(self, arguments, kill_after=None):
        command = [self.group, BUDGET, self.report, self.snug, *arguments]
        with tempfile.TemporaryFile("w+") as out: # a pipe that nobody reads meanwhile would fill
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
            samples = watch(process, kill_after)
            out.seek(0)
            said = out.read()
        if process.returncode == NO_GROUP:
            fail("no memory cgroup can be made here")
        self.runs += 1
        if kill_after and process.returncode:
            self.kills += 1
            return
        if process.returncode:
            fail(f"{' '.join(arguments)}: ended with {process.returncode}: {said[-500:]}")
        with open(self.report) as f:
            if json.load(f)["killed"]:
                fail("the system killed a command that was told to fit")
        self.flat(samples)

    def flat(self, samples):
        rest = samples[len(samples) // 10 + 2:-2]
        if len(rest) > 10 and max(s[0] for s in rest) - rest[0][0] > GROWS_KIB:
            fail(f"resident memory grew from {rest[0][0]} to {max(s[0] for s in rest)} KiB")
        if len(rest) > 10 and rest[-1][1] > rest[0][1]:
            fail(f"open files grew from {rest[0][1]} to {rest[-1][1]}")

    def round(self, epochs, n):
        old = ["--weights", self.weights] if os.path.exists(self.weights) else []
        self.run(["fit", MODEL, *DATA, "--epochs", str(epochs), "--save", self.weights, *old],
                 random.random() * 4 if n % 4 == 3 else None)
        if os.path.exists(self.weights):
            self.run(["evaluate", MODEL, *DATA, "--weights", self.weights])
        left = [x for x in os.listdir(os.path.dirname(self.weights)) if x not in ("w.safetensors", "report.json")]
        if len(left) > 2:
            fail(f"files are left behind: {left}")


def commands(build, seconds):
    until, n = time.time() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        c = Commands(build, folder)
        while time.time() < until or n < 4:
            c.round(200 if n % 4 != 2 else 4000, n)
            n += 1
    return c.runs, c.kills


def python(build, seconds):
    interpreter = os.path.join(build, "venv/bin/python")
    if not os.path.exists(interpreter):
        return None
    with tempfile.TemporaryDirectory() as folder:
        r = subprocess.run([interpreter, "-B", "-c", PYTHON_LOOP, str(seconds), folder], capture_output=True, text=True,
                           env={**os.environ, "SNUG_DEVICE": "cpu"})
    if r.returncode:
        fail("the Python loop: " + r.stderr[-800:])
    rounds, kib, files, ledger = map(int, r.stdout.split())
    if files or ledger > 12 * rounds or kib > 1024:
        fail(f"in {rounds} rounds of Python memory grew by {kib} KiB, the ledger by {ledger} bytes, open files by {files}")
    return rounds, kib


def main(build, hours):
    seconds = hours * 3600
    started = time.time()
    executions = fuzz(build, seconds / 2)
    runs, kills = commands(build, seconds / 4)
    print(f"soak: {runs} commands in a cgroup of {BUDGET}, {kills} of them killed: 0 killed by the system, memory and files flat", flush=True)
    loop = python(build, seconds / 4)
    if loop:
        print(f"soak: {loop[0]} rounds of Python, {loop[1]} KiB more at the end")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "?"
    each = ", ".join(f"{name} {n:,}" for name, n in executions.items()) or "none: no libFuzzer"
    print(f"| {commit} | {datetime.date.today()} | {(time.time() - started) / 3600:.2f} | {sum(executions.values()):,} | {runs}, {kills} killed | "
          f"{loop[0] if loop else 0} | {each} |")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
