#!/usr/bin/env python3
"""make budget figures: what a byte budget costs in time, promised and measured.

usage: budget.py BUILD [--steps N] [--rounds N] [--medians] [--networks NAME,...] [--json: curve and big go into speed.json] [PART...]; parts: curve (the default), promise, floor, big.
  curve  slowdown of six networks with 50, 25 and 10 % of their own transient arena, state on top
  promise  24 rows: the six networks with 75, 50, 25 and 10 %, five rounds (or --rounds) in which unlimited and limited runs take turns; promised and
         measured slowdown in percent, how far they are apart in points, and the median of that. The command ends with 1 where it is beyond 10
         points, or a row has no figure
  floor  the smallest budget of each, beside what the unlimited step needs; the smallest arena beside the bound of the graph (bench_floor)
  big    conv32-pool-dense10 on 1024 x 1024 x 3: batch 8 beside TensorFlow; batch 256 in 2 GiB; 256-256-512-512-1024-1024 on 128 x 128 x 3, batch 32,
         without a limit and in 512 MiB
Networks come from Keras in the interpreter SNUG_BENCH_TENSORFLOW names, where it names none from Snug's own in BUILD/venv, or from --models FOLDER. A round of a network is an unlimited run and then the limited
ones; medians of steps, and of all rounds the pair that took least (with --medians, each run's median): on virtual machines two cores lie at times, for seconds to minutes, as if they had no
cache in common, which costs slices in a cache more than whole batches in memory (U-Net without a limit and with 8 % of its arena: 79 and
100 ms a step, in other minutes 108 and 200). Take several rounds."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import cases
import speed_md

HERE = os.path.dirname(os.path.abspath(__file__))
CURVE = ["deep", "cnn", "resnet20", "unet", "lstm", "transformer"]
NAMES = {"deep": "MLP, four wide layers", "cnn": "CNN", "resnet20": "ResNet-20 (batch norm)", "unet": "U-Net", "lstm": "LSTM", "transformer": "transformer",
         "conv1024": "conv32-pool-dense10, 1024x1024x3", "vgg": "VGG-like"}
PARTS = ["50%", "25%", "10%"]
PROMISED_PARTS = ["75%"] + PARTS
MOST_POINTS = 10  # of the median of |promised - measured|
MIB = 1 << 20
FREE = "1TiB"  # a budget that binds nothing: same feeds, same accounts as the limited runs


def step(o, case, batch, steps, budget):
    """The JSON line of bench_step, or None: it said why on stderr."""
    command = [os.path.join(o.build, "bench_step"), "train", os.path.join(o.models, case + ".json"), str(batch), cases.BUDGET[case][2],
               str(steps)] + ([budget] if budget else [])
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        print(f"{case} {budget}: {run.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(run.stdout)


def ran(pair):
    return all(r and r["fits"] for r in pair)


def medians(pairs):
    """The first pair, with the medians of all."""
    return tuple({**first, "ms": statistics.median(r["ms"] for r in each)} for first, each in zip(pairs[0], zip(*pairs)))


def rounds(o, case, batch):
    """{part: (unlimited, limited)}: of the round where both together took least, or their medians; or where nothing ran, the last ones."""
    pairs = {part: [] for part in PARTS}
    for _ in range(o.rounds):
        free = step(o, case, batch, o.steps, FREE)
        for part in PARTS:
            pairs[part].append((free, step(o, case, batch, o.steps, part)))
    best = {}
    for part, all_pairs in pairs.items():
        good = [p for p in all_pairs if ran(p)]
        best[part] = all_pairs[-1] if not good else medians(good) if o.medians else min(good, key=lambda p: sum(r["ms"] for r in p))
    return best


def percent(x):
    return f"{100 * (x - 1):+.1f} %"


def curve(o):
    print("| network | batch | transient | state | part | arena | slices | recomputed | promised | measured | error |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    errors, kept = [], []
    for case in o.networks:
        batch = cases.BUDGET[case][0]
        kept.append([f"{NAMES[case]}, {batch}", []])
        for part, (free, r) in rounds(o, case, batch).items():
            kept[-1][1].append(None)
            if not free:
                continue
            head = f"| {case} | {batch} | {free['arena_bytes'] / MIB:.1f} | {free['state_bytes'] / MIB:.1f} | {part} "
            if not r or not r["fits"]:
                print(head + f"| - | - | - | does not fit; floor {r['floor_bytes'] / MIB:.0f} MiB | - | - |" if r else head + "| failed |")
                continue
            promised, measured = r["expected_ms"] / r["plain_expected_ms"], r["ms"] / free["ms"]
            errors.append(abs(promised / measured - 1))
            kept[-1][1][-1] = {"percent": 100 * (measured - 1), "signed": True}
            print(head + f"| {r['arena_bytes'] / MIB:.1f} | {r['slices']} | {r['recomputed']} | {percent(promised)} | {percent(measured)} | "
                  f"{100 * errors[-1]:.0f} % |", flush=True)
    if errors:
        print(f"\nerror of the promise: median {100 * statistics.median(errors):.0f} %, worst {100 * max(errors):.0f} %; "
              "arenas in MiB")
    if o.json:
        speed_md.merge("budgets", ["with " + part.replace("%", " %") for part in PARTS], kept, f"python3 bench/budget.py build --rounds {o.rounds} curve")


def slowdowns(o, case):
    """{part: [(promised, measured) of each round, in percent]}: in a round each limited run stands beside an unlimited one, before or behind it."""
    pairs = {part: [] for part in PROMISED_PARTS}
    batch = cases.BUDGET[case][0]
    for turn in range(o.rounds):
        for part in PROMISED_PARTS:
            budgets = (FREE, part) if turn % 2 == 0 else (part, FREE)
            runs = {budget: step(o, case, batch, o.steps, budget) for budget in budgets}
            free, limited = runs[FREE], runs[part]
            if ran((free, limited)):
                pairs[part].append((100 * (limited["expected_ms"] / limited["plain_expected_ms"] - 1), 100 * (limited["ms"] / free["ms"] - 1)))
    return pairs


def promise(o):
    """How many points the promised slowdown is off; of a row the median of its rounds, of all rows the median. 1 beyond MOST_POINTS."""
    print("| network | part | promised | measured | points |\n|---|---|---|---|---|")
    points, missing = [], 0
    for case in o.networks:
        for part, pairs in slowdowns(o, case).items():
            if not pairs:
                missing += 1
                print(f"| {case} | {part} | does not fit, or failed | - | - |", flush=True)
                continue
            promised, measured = (statistics.median(column) for column in zip(*pairs))
            points.append(abs(promised - measured))
            print(f"| {case} | {part} | {promised:+.1f} % | {measured:+.1f} % | {points[-1]:.1f} |", flush=True)
    median = statistics.median(points) if points else float("inf")
    print(f"\n|promised - measured|: median {median:.1f} points, worst {max(points, default=median):.1f}, of {len(points)} rows and {o.rounds} rounds; "
          f"at most {MOST_POINTS} are right" + (f"; {missing} rows have no figure" if missing else ""))
    return 1 if median > MOST_POINTS or missing else 0


def least_arena(o, case, batch):
    """The JSON line of bench_floor: transient bytes only, steps of the plan not counted."""
    run = subprocess.run([os.path.join(o.build, "bench_floor"), os.path.join(o.models, case + ".json"), str(batch), cases.BUDGET[case][2]],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def floor(o):
    print("| network | batch | unlimited arena | floor, whole process | arena there | smallest arena | bound | ratio | its step |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in o.networks:
        batch = cases.BUDGET[case][0]
        r, least = step(o, case, batch, 1, "1MiB"), least_arena(o, case, batch)  # refused, and says where the floor is
        if r:
            print(f"| {case} | {batch} | {r['plain_arena_bytes'] / MIB:.1f} | {r['floor_bytes'] / MIB:.1f} | {r['arena_bytes'] / MIB:.1f} | "
                  f"{least['floor_bytes'] / MIB:.2f} | {least['bound_bytes'] / MIB:.2f} | {least['ratio']:.3f} | {least['slowdown']:.1f}x |", flush=True)


def line(what, r):
    if not r or not r["fits"]:
        print(f"| {what} | {'refused; floor %.0f MiB' % (r['floor_bytes'] / MIB) if r else 'failed'} | | | |", flush=True)
        return
    print(f"| {what} | {r['ms']:.0f} | {r['expected_ms']:.0f} | {r['peak_kib'] / 1024:.0f} | {r['slices']} slices, "
          f"{r['recomputed']} recomputed, {r['spilled_bytes'] / MIB:.0f} MiB spilled |", flush=True)


def peer(o, case, steps):
    run = subprocess.run([o.python, os.path.join(HERE, "peers.py"), "tensorflow", case, str(steps), "-"], capture_output=True, text=True)
    if run.returncode:
        print(run.stderr.strip()[-300:], file=sys.stderr)
        return None
    r = json.loads(run.stdout.strip().split("\n")[-1])
    print(f"| TensorFlow, {case} | {r['ms']:.0f} | | {r['peak_kib'] / 1024:.0f} | |", flush=True)
    return r


# text, case, batch, steps, budget ("0": none, and one batch in memory, as TensorFlow has it), whether TensorFlow runs it, too
BIG = [("conv32-pool-dense10, 1024x1024x3, batch 8", "conv1024", 8, 5, "0", True),
       ("the same, batch 256, in 2 GiB", "conv1024", 256, 1, "2GiB", False),
       ("VGG-like, 128x128x3, batch 32", "vgg", 32, 1, FREE, False),
       ("the same, in 512 MiB", "vgg", 32, 1, "512MiB", False)]


def cell(r):
    return r and {"s": r["ms"] / 1e3, "mib": round(r["peak_kib"] / 1024)}


def big(o):
    print("| what | step, ms | promised, ms | peak, MiB | how |\n|---|---|---|---|---|")
    kept = []
    for text, case, batch, steps, budget, beside in BIG:
        r = step(o, case, batch, steps, budget)
        line(text, r)
        kept.append([text, [cell(r if r and r["fits"] else None), cell(peer(o, case, steps) if beside else None)]])
    if o.json:
        speed_md.merge("large", ["Snug", "TensorFlow 2.21"], kept, "python3 bench/budget.py build big")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, help="2, of promise 5")
    parser.add_argument("--medians", action="store_true", help="of all rounds the medians, not the pair that took least")
    parser.add_argument("--networks", type=lambda names: names.split(","), default=CURVE, help="of " + ",".join(CURVE))
    parser.add_argument("--json", action="store_true", help="put curve and big into speed.json")
    parser.add_argument("--models", help="folder with CASE.json (default: made)")
    parts = {"curve": curve, "promise": promise, "floor": floor, "big": big}
    parser.add_argument("parts", nargs="*", default=["curve"], metavar="PART", help=", ".join(parts))
    o = parser.parse_intermixed_args()
    o.python = os.environ.get("SNUG_BENCH_TENSORFLOW", sys.executable)
    with tempfile.TemporaryDirectory() as made:
        if not o.models:
            o.models = made
            own = [os.path.join(o.build, "venv", "bin", "python"), "-B", "-m", "snug"]
            subprocess.run((own if "SNUG_BENCH_TENSORFLOW" not in os.environ else [o.python]) + [os.path.join(HERE, "cases.py"), made] + list(cases.BUDGET),
                           check=True, stderr=subprocess.DEVNULL)
        asked, bad = o.rounds, 0
        for part in o.parts:
            o.rounds = asked or (5 if part == "promise" else 2)
            bad = parts[part](o) or bad
            print()
    return bad


if __name__ == "__main__":
    sys.exit(main())
