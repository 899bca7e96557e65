#!/usr/bin/env python3
"""Budgets on a GPU are held: networks are trained by the command and by Python within budgets from the smallest to the largest that matters,
while another process holds the rest of the card. What was told to fit, or has done its first step, must end well; the card's total (NVML,
looked at from outside) must rise by no more than the budget, and by what the command itself says, within 2 MiB. The emulated card
(--emulated, of the tests without a GPU) runs the same list in small sizes and tells its own highest figure.

What Python refuses before its first step says how much more it wants: it gets that, and must then run.
usage: budgets.py BIN PYTHON [--emulated PLUGIN] [N | DOOR | NETWORK ...]     BIN: the folder of snug; N: the first N rows"""
import contextlib
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import steps  # noqa: E402

MIB = 1 << 20
NEAR = 2 * MIB
CONTEXT_WHILE_MADE = 600 * MIB  # a context takes more for a moment than it keeps
MOST_RETRIES = 4

# door, network, parts of the way from the floor to what a step takes without a limit; the host's budget in MiB on a card, and small.
# Sizes on a card and small ones: steps.py. Large networks have many slices at their floors, and take minutes there.
LIST = [
    ("command", "mlp", (0, 0.1, 0.5, 1), None),
    ("command", "wide", (0, 0.1, 0.3, 0.6, 1), None),
    ("command", "cnn", (0, 0.1, 0.3, 0.6, 1), None),
    ("command", "lstm", (0, 0.3, 1), None),
    ("command", "unet", (0.05, 0.3, 1), None),
    ("command", "resnet20", (0.1, 0.4, 1), None),
    ("command", "vgg", (0.1, 0.5, 1), None),
    ("command", "resnet50", (0.1, 0.4, 1), None),
    ("command", "transformer", (0.1, 0.4, 1), None),
    ("command", "mlp", (0.3,), (400, 64)),
    ("command", "wide", (0, 0.3, 1), (2048, 64)),
    ("command", "cnn", (0.3, 1), (512, 64)),
    ("command", "resnet50", (0.5,), (2048, 64)),
    ("fit", "mlp", (0.1, 1), None),
    ("fit", "wide", (0.1, 0.5, 1), None),
    ("fit", "cnn", (0.1, 0.5, 1), None),
    ("fit", "resnet50", (0.4, 1), None),
    ("fit", "transformer", (0.5,), None),
    ("function", "mlp", (0.1, 1), None),
    ("function", "wide", (0.1, 0.5, 1), None),
    ("function", "cnn", (0.1, 0.5, 1), None),
    ("function", "unet", (0.3, 1), None),
    ("eager", "mlp", (0.1, 1), None),
    ("eager", "wide", (0.3, 1), None),
    ("eager", "cnn", (0.1, 0.5, 1), None),
    ("eager", "lstm", (0.5,), None),
    ("fit", "wide", (0.5,), (4096, 128)),
    ("function", "cnn", (0.5,), (4096, 128)),
    ("eager", "mlp", (0.5,), (1024, 128)),
]
ROWS = [(door, name, part, host) for door, name, parts, host in LIST for part in parts]
LEAST_ROWS = 60


class Card:
    """The first GPU, as NVML counts it."""
    size, granule, TOTAL = "card", 2 * MIB, 1 << 40

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self):
        self.nvml, self.handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle)):
            sys.exit("NVML does not start")
        self.ballast = subprocess.Popen([sys.executable, os.path.join(HERE, "ballast.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.fill_but(self.TOTAL)

    def used(self):
        m = self.Memory()
        return m.used if self.nvml.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(m)) == 0 else 0

    def fill_but(self, budget):
        """Somebody holds all but this from now on; gives what commands need in their environment."""
        print(max(budget, CONTEXT_WHILE_MADE) + 16 * MIB, file=self.ballast.stdin, flush=True)
        if self.ballast.stdout.readline().strip() != "holding":
            sys.exit("no ballast")
        self.before = self.used()
        return {}

    def rise(self):
        return self.used() - self.before

    def last_rise(self):
        return 0

    def end(self):
        self.ballast.stdin.close()
        self.ballast.wait()


class EmulatedCard:
    """Its driver is told what others hold, takes as much for its first guard as an H200's with its run, and writes down the most it gave."""
    size, granule = "small", 64 << 10
    TOTAL, GUARD = 1 << 30, 13 * MIB

    def __init__(self, plugin, folder):
        self.plugin, self.report = plugin, os.path.join(folder, "card")

    def fill_but(self, budget):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.report)
        return {"SNUG_CUDA_PLUGIN": self.plugin, "SNUG_EMULATED_OTHERS": str(max(self.TOTAL - budget - MIB, 0)),
                "SNUG_EMULATED_GUARD": str(self.GUARD), "SNUG_EMULATED_REPORT": self.report}

    def rise(self):
        return 0

    def last_rise(self):
        with open(self.report) as f:
            return int(f.read())

    def end(self):
        pass


class Run:
    """A command while it is watched: its exit code, output and errors, how far the card's total rose from its first step on, its most resident bytes."""

    def __init__(self, card, command, environment):
        self.out, self.err, self.rises = [], [], [0]
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        readers = [threading.Thread(target=lambda to, pipe: to.extend(pipe), args=pair) for pair in ((self.out, p.stdout), (self.err, p.stderr))]
        for reader in readers:
            reader.start()
        pid = 0
        while not pid:
            rise = card.rise()
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if not pid and self.started():
                self.rises.append(rise)
            time.sleep(0.002)
        p.returncode = self.code = os.waitstatus_to_exitcode(status)
        for reader in readers:
            reader.join()
        self.rises.append(card.last_rise())
        self.resident = usage.ru_maxrss * 1024

    def started(self):
        return any(line.startswith("Epoch") for line in self.err)

    def said(self):
        return "".join(self.err).strip()[-300:]


class Tests:
    def __init__(self, card, folder, bin_folder, python):
        self.card, self.folder, self.snug = card, folder, os.path.join(bin_folder, "snug")
        self.python = [python, "-B", "-m", "snug"]
        self.plans = {}
        subprocess.run(self.python + ["--device", "cpu", os.path.join(HERE, "steps.py"), "models", folder, card.size], check=True)

    def command(self, verb, name):
        shape, classes, loss, batch = steps.SIZES[name][self.card.size]
        words = [self.snug, verb, os.path.join(self.folder, name + ".json"), "--batch", str(batch), "--loss", loss, "--optimizer", "adam", "--device", "gpu",
                 "--json"]
        if verb == "plan":
            return words + ["--train"]
        row, out = "x".join(map(str, shape)), (*shape[:-1], 1) if name == "unet" else (classes,)
        x = f"labels:{batch}x{row}@1@{classes}" if name == "transformer" else f"normal:{batch}x{row}@1"
        labels = f"labels:{batch}" + (f"x{row}" if name == "transformer" else "") + f"@2@{classes}"
        y = labels if loss == steps.CROSS else f"normal:{batch}x{'x'.join(map(str, out))}@2"
        return words + ["--x", x, "--y", y, "--epochs", "3", "--memory"]

    def ends(self, name):
        """The smallest budget of the command, and the one above which nothing changes."""
        if name not in self.plans:
            environment = self.card.fill_but(self.card.TOTAL)
            done = subprocess.run(self.command("plan", name), capture_output=True, text=True, env={**os.environ, **environment})
            if done.returncode:
                sys.exit(f"{name}: {done.stderr}")
            plan = json.loads(done.stdout)
            reserve = next(row["bytes"] for row in plan["rows"] if row["name"].startswith("reserve"))
            low = plan["floor_bytes"]
            self.plans[name] = low, max(plan["peak_bytes"] + reserve, low) + 2 * self.card.granule
        return self.plans[name]

    def run(self, door, name, budget, host):
        limits = ["--budget", str(budget)] + (["--host-budget", str(host * MIB)] if host else [])
        if door == "command":
            words = self.command("fit", name) + limits
        else:
            words = self.python + ["--device", "gpu", *limits, os.path.join(HERE, "steps.py"), door, name, self.card.size]
        return Run(self.card, words, self.card.fill_but(budget))

    def judge(self, run, door, budget, host):
        """What went wrong, or None."""
        most = max(run.rises)
        if most > budget:
            return f"the card rose by {most / MIB:.1f} MiB"
        of_card = most if self.card.size == "small" else 0  # the emulated card's memory is the host's
        if host and run.resident - of_card > host * MIB:
            return f"{run.resident / MIB:.1f} MiB resident on the host"
        if run.code:
            return f"exit {run.code}{' after its first step' if run.started() else ''}: {run.said()}"
        if not run.started() or most <= 0:
            return f"no step was seen: the card rose by {most} bytes"
        if door != "command":
            return None
        d = json.loads("".join(run.out))["memory"]["device"]
        used = d["context_bytes"] + d["held_bytes"]
        if used > budget:
            return f"{used / MIB:.1f} MiB used"
        # The process ends while it is looked at: the highest rise is the one to compare with.
        return None if abs(most - used) <= NEAR else f"the card rose by {most / MIB:.1f} MiB, Snug says {used / MIB:.1f}"

    def try_row(self, door, name, part, host):
        """The budget at last, and what went wrong or None."""
        low, high = self.ends(name)
        budget = int(low + (high - low) * part)
        for _ in range(MOST_RETRIES):
            run = self.run(door, name, budget, host)
            more = re.search(r"It wants ([\d.]+) (KiB|MiB|GiB) more", run.said())
            refused = door != "command" and run.code and not run.started() and more and max(run.rises) <= budget
            if not refused:
                break
            budget += int(float(more[1]) * {"KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}[more[2]] * 1.01) + self.card.granule  # as printed
        return budget, self.judge(run, door, budget, host)


def chosen(words):
    if words and words[0].isdigit():
        return ROWS[:int(words[0])]
    return [row for row in ROWS if not words or row[0] in words or row[1] in words]


def main(bin_folder, python, *words):
    bad, rows, start = 0, chosen(words[2:] if words[:1] == ("--emulated",) else words), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tests = Tests(EmulatedCard(words[1], folder) if words[:1] == ("--emulated",) else Card(), folder, bin_folder, python)
        for door, name, part, host in rows:
            budget, wrong = tests.try_row(door, name, part, host and host[tests.card.size == "small"])
            bad += wrong is not None
            print(f"{time.monotonic() - start:5.0f} s  {door} {name} {part:g}{', host' if host else ''} within {budget / MIB:.1f} MiB: {wrong or 'held'}",
                  flush=True)
        tests.card.end()
    print(f"{len(rows)} configurations, {bad} failures")
    return 1 if bad or (rows == ROWS and len(rows) < LEAST_ROWS) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
