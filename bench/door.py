#!/usr/bin/env python3
"""The Python door against TensorFlow: the same small programs, one after the other, in the same run.

usage: bench/door.py BUILD [ROW ...] [--json: the run goes into speed.json]
                                         SNUG_BENCH_TENSORFLOW: an interpreter that has TensorFlow; without it Snug alone
                                         SNUG_BENCH_CPU: CPU seconds of all threads, for a machine that others use

A row prints its seconds (the smallest of a few) and the peak of its process. What is measured is in ROWS below. The steps of
conv32-pool-dense10 take turns with the engine's own step (bench_step of BUILD, where it is), which the eager one is to come near."""
import json
import os
import subprocess
import sys
import tempfile

import speed_md

HEAD = """
import json, os, resource, sys, time
clock = time.process_time if os.environ.get('SNUG_BENCH_CPU') else time.perf_counter
begin = clock()
import numpy as np
numpy_seconds, numpy_peak = clock() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = clock()
import tensorflow as tf
import_seconds, import_peak = clock() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def best(function, times, warm=3):
    for _ in range(warm):
        function()
    found = []
    for _ in range(times):
        t = clock(); function(); found.append(clock() - t)
    return min(found)

def done(seconds, peak=None):
    print("ROW " + json.dumps([seconds, (peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024]))
"""

MLP = """
model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(10)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()
x, y = tf.constant(np.random.rand(64, 32).astype("float32")), tf.constant(np.arange(64) % 10)
def step():
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss
"""

CONV = """
model = tf.keras.Sequential([tf.keras.layers.Conv2D(32, 3, activation="relu"), tf.keras.layers.MaxPooling2D(),
                             tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()
x, y = tf.constant(np.random.rand(32, 128, 128, 3).astype("float32")), tf.constant(np.arange(32) % 10)
def step():
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return float(loss)
"""

LAYERS = """
x = tf.random.normal((1000, 100))
t = clock()
for _ in range(5000):
    x = tf.keras.layers.Dense(100)(x)
"""

SCALAR = """
recording, all_in = [], []
for _ in range(5):
    a = tf.constant(1.0)
    t = clock()
    for _ in range(40000):
        a = a + 1.5
    recording.append((clock() - t) / 40000)
    float(a)
    all_in.append((clock() - t) / 40000)
"""

# name, program, what the issue asks for
ROWS = [
    ("import", "done(import_seconds, import_peak - (numpy_peak if 'snug' in sys.modules else 0))", "0.05 s, 15 MiB beyond NumPy"),
    ("5,000 Dense, not looked at", LAYERS + "done(clock() - t)", "0.5 s, 120 MiB"),
    ("5,000 Dense, looked at", LAYERS + "float(tf.reduce_sum(x)); done(clock() - t)", "2 s, 120 MiB"),
    ("313 eager calls of two layers", MLP + "data = np.random.rand(313 * 64, 32).astype('float32')\n"
     "def run():\n    for i in range(313):\n        out = model(data[i * 64:(i + 1) * 64])\n    return out.numpy()\ndone(best(run, 5))",
     "0.15 s"),
    ("MLP step, eager", MLP + "done(best(step, 200, 10))", "0.4 ms"),
    ("MLP step, tf.function", MLP + "traced = tf.function(step)\ndone(best(lambda: float(traced()), 500, 10))", "0.2 ms"),
    ("MLP step, fit", MLP + "model.compile(optimizer, loss_of)\nxs, ys = np.random.rand(313 * 64, 32).astype('float32'), np.arange(313 * 64) % 10\n"
     "done(best(lambda: model.fit(xs, ys, batch_size=64, verbose=0), 3, 1) / 313)", "0.2 ms"),
    ("conv32 step, eager", CONV + "done(best(step, 20, 3))", "the engine's step + 1 ms"),
    ("conv32 step, tf.function", CONV.replace("float(loss)", "loss") + "traced = tf.function(step)\ndone(best(lambda: float(traced()), 20, 3))",
     "-"),
    ("conv32, ten steps, whole script", CONV + "for _ in range(10):\n    print(step())\ndone(clock() - begin)", "1.0 s, 160 MiB"),
    ("list of 1,000 arrays to a tensor", "arrays = [np.zeros((1000, 100)) for _ in range(1000)]\nheld = resource.getrusage(resource.RUSAGE_SELF)"
     ".ru_maxrss\nt = clock()\nx = tf.constant(arrays, dtype=tf.float32)\nfloat(x[0, 0, 0])\n"
     "done(clock() - t, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held)", "the tensor (381 MiB) + 64 MiB"),
    ("recorded scalar operation", SCALAR + "done(min(all_in))", "1 us"),
    ("recorded scalar operation, recording", SCALAR + "done(min(recording))", "0.3 us"),
]
ENGINE = "conv32 step, the engine's own"


def run(command, program, head=HEAD):
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(head + program)
    try:
        out = subprocess.run(command + [file.name], capture_output=True, text=True, timeout=600, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    finally:
        os.unlink(file.name)
    for line in out.stdout.splitlines():
        if line.startswith("ROW "):
            return json.loads(line[4:])
    sys.exit(f"{' '.join(command)} gave no row:\n{out.stdout[-500:]}\n{out.stderr[-1500:]}")


def engine_step(build):
    """Of the same model, loss and optimizer, trained by the C library alone."""
    program = CONV + "model(x)\nprint('ROW ' + json.dumps(model.to_json()))"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(run([os.path.join(build, "venv/bin/python"), "-m", "snug"], program))
        file.flush()
        out = subprocess.run([os.path.join(build, "bench_step"), "train", file.name, "32", "sparse_categorical_crossentropy:from_logits=true", "20"],
                             capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)
    return found["least_cpu_ms" if os.environ.get("SNUG_BENCH_CPU") else "least_ms"] / 1e3, found["peak_kib"] / 1024


def measure(build, name, program):
    python = os.path.join(build, "venv/bin/python")
    if name == ENGINE:
        return engine_step(build)
    if name != "import":
        return run([python, "-m", "snug"], program)
    # the launcher would have imported most of it before
    return run([python], program, HEAD.replace("import tensorflow as tf\n", "import snug; snug.install()\nimport tensorflow as tf; tf.constant(1.0)\n"))


def in_turns(build, rows, rounds=3):
    """The smallest of a few of each, one after the other, again and again."""
    seen = [[measure(build, name, program) for name, program, _ in rows] for _ in range(rounds)]
    return [min(found) for found in zip(*seen)]


def shown(seconds):
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-4 else f"{seconds * 1e3:.2f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    json_wanted = speed_md.wanted(sys.argv)
    build, wanted, kept = sys.argv[1], sys.argv[2:], []
    if json_wanted and wanted:
        sys.exit("--json keeps whole runs: name no rows")
    peer = os.environ.get("SNUG_BENCH_TENSORFLOW")
    print(f"{'what':36} {'Snug':>10} {'MiB':>7} {'TensorFlow':>11} {'MiB':>7} {'ratio':>7}  asked for")
    rows = [r for r in ROWS if not wanted or any(w in r[0] for w in wanted)]
    steps = [r for r in rows if r[0].startswith("conv32 step")]
    if steps and os.path.exists(os.path.join(build, "bench_step")):
        steps.insert(0, (ENGINE, "", "-"))
        rows.insert(rows.index(steps[1]), steps[0])
    turns = dict(zip((r[0] for r in steps), in_turns(build, steps)))
    for name, program, goal in rows:
        seconds, peak = turns[name] if name in turns else measure(build, name, program)
        line = f"{name:36} {shown(seconds):>10} {peak:7.0f}"
        kept.append([name, [{"s": seconds, "mib": round(peak)}, None]])
        if peer and name != ENGINE:
            other, other_peak = run([peer], program)
            kept[-1][1][1] = {"s": other, "mib": round(other_peak)}
            line += f" {shown(other):>11} {other_peak:7.0f} {seconds / other:6.3f}x"
        else:
            line += " " * 28
        print(f"{line}  {goal}", flush=True)
    if json_wanted:
        speed_md.merge("door", ["Snug", "TensorFlow 2.21"], kept, "python3 bench/door.py build")


main()
