#!/usr/bin/env python3
"""test_held_tight.py SNUG IN_CGROUP: budgets between the floor and what a step takes without one are held. Each configuration (model, budget, batch, threads) is
judged by `snug plan`, then trained by `snug fit` with a remainder, validation and saving inside a
memory cgroup whose limit is the budget, swap off. It must not be killed, its counted peak (VmHWM,
page tables, kernel stacks) must not exceed the budget, and the peak that fit predicted before its
first step must be within 2 % or 2 MiB. SNUG_TEST_FULL runs more of them. Exit code 77 where no
group can be made."""
import itertools, json, os, subprocess, sys, tempfile

MIB = 1 << 20
SNUG, CAGE = sys.argv[1:3]
FULL = bool(os.environ.get("SNUG_TEST_FULL"))
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")


def layer(kind, **config):
    return {"class_name": kind, "config": config}


def sequential(shape, *layers):
    head = layer("InputLayer", batch_shape=[None, *shape])
    return {"class_name": "Sequential", "config": {"name": "held", "layers": [head, *layers]}}


def conv(filters, **more):
    return layer("Conv2D", filters=filters, kernel_size=[3, 3], padding="same", **more)


# name: model or folder of the goldens, rows' shape of x and y, batches
MODELS = {
    "mlp": (sequential([512], *[layer("Dense", units=256, activation="relu")] * 3,
                       layer("Dense", units=10)), "512", "10", [4096, 1000]),
    "cnn": (sequential([48, 48, 3], conv(32, activation="relu"), layer("MaxPooling2D"),
                       conv(64, activation="relu"), layer("MaxPooling2D"), layer("Flatten"),
                       layer("Dense", units=10)), "48x48x3", "10", [64, 37]),
    "batch norm": (sequential([32, 32, 3], *[x for _ in range(3) for x in (
        conv(16), layer("BatchNormalization"), layer("Activation", activation="relu"))],
        layer("GlobalAveragePooling2D"), layer("Dense", units=10)), "32x32x3", "10", [128]),
    "lstm": (sequential([60, 32], layer("LSTM", units=64, return_sequences=True),
                        layer("LSTM", units=64), layer("Dense", units=10)), "60x32", "10",
             [256, 100]),
    "resnet20": ("model_resnet20_f32", "8x8x3", None, [512]),
    "transformer": ("model_transformer_f32", "10", None, [512]),
}
# where a budget lies between the floor (0) and what the step takes without a limit (1)
PLACES = [0.02, 0.1, 0.3, 0.7, 1.1] if FULL else [0.05, 0.4, 1.1]
THREADS = [1, 2, 4] if FULL else [1, 2]


def run_json(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode not in (0, 3) or not done.stdout:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def data_of(name, rows):
    """x and y as recipes; goldens have labels or ids of their own kinds."""
    if name == "transformer":
        return f"labels:{rows}x10@1@12", f"labels:{rows}x10@2@12"
    model, x, y, _ = MODELS[name]
    return f"normal:{rows}x{x}@1", f"normal:{rows}x{y}@2" if y else f"labels:{rows}x1@2@4"


def check(name, path, batch, threads, budget, folder):
    common = ["--batch", str(batch), "--threads", str(threads), "--budget", str(budget)]
    if MODELS[name][2]:
        common += ["--loss", "mse"]
    plan = run_json(SNUG, "plan", path, "--train", "--json", *common)
    if not plan["fits"]:
        return [f"does not fit {budget} bytes; the floor is said to be {plan['floor_bytes']}"]
    x, y = data_of(name, 2 * batch + batch // 3)
    val_x, val_y = data_of(name, batch)
    report = os.path.join(folder, "report.json")
    done = subprocess.run([CAGE, str(budget), report, SNUG, "fit", path, "--x", x, "--y", y,
                           "--val-x", val_x, "--val-y", val_y, "--save",
                           os.path.join(folder, "w.safetensors"), "--json", *common],
                          capture_output=True, text=True)
    if done.returncode == 77:
        print(done.stderr.strip())
        sys.exit(77)
    with open(report) as file:
        seen = json.load(file)
    errors = []
    if seen["killed"] or done.returncode != 0:
        errors.append(f"exit code {done.returncode}, killed {seen['killed']}: {done.stderr[-300:]}")
        return errors
    peak, predicted = seen["counted_peak_bytes"], json.loads(done.stdout)["predicted_peak_bytes"]
    if peak > budget:
        errors.append(f"counted peak {peak} exceeds the budget")
    if abs(peak - predicted) > max(2 * MIB, 0.02 * peak):
        errors.append(f"predicted {predicted / MIB:.2f} MiB, counted {peak / MIB:.2f} MiB")
    return errors


def main():
    n = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, _, _, batches) in MODELS.items():
            path = os.path.join(folder, f"{name}.json".replace(" ", "_"))
            if isinstance(model, str):
                path = os.path.join(GOLDEN, model, "model.json")
            else:
                with open(path, "w") as file:
                    json.dump(model, file)
            for batch, threads in itertools.product(batches, THREADS):
                words = [SNUG, "plan", path, "--train", "--json", "--batch", str(batch),
                         "--threads", str(threads)]
                if MODELS[name][2]:
                    words += ["--loss", "mse"]
                top = run_json(*words)["peak_bytes"]
                floor = run_json(*words, "--budget", str(MIB))["floor_bytes"]
                for place in PLACES if FULL or batch == batches[0] else PLACES[:1]:
                    budget = int(floor + place * max(top - floor, 4 * MIB)) // 4096 * 4096 + 4096
                    errors = check(name, path, batch, threads, budget, folder)
                    n += 1
                    bad += bool(errors)
                    for e in errors:
                        print(f"{name}, batch {batch}, {threads} threads, budget {budget}: {e}")
    print(f"held: {n} configurations, {bad} failed")
    return 1 if bad or n < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
