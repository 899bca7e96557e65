#!/usr/bin/env python3
"""Every network of keras.applications, built without weights, must load, plan for training and predict as Keras does (2e-4 of the
largest output). Needs TensorFlow 2.21 (see golden/record.py); the suite itself runs three of them from files (test_applications.c).

    applications.py SNUG [NAME...]          compares, one line per network; exit code 1 when one differs
    applications.py SNUG --train NAME...    three steps of SGD in f64 against Keras' losses, for networks without dropout (in f32 such
                                            small batches magnify roundings)
    applications.py --record FOLDER NAME... writes NAME.json and NAME.safetensors (the prediction) for the suite

Weights are a formula of the variable's name and the element's index, computed alike in test_applications.c, so that no file has to
hold them."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import keras
import numpy as np
from record import leaves, save_safetensors

SIZES = {"InceptionV3": 75, "InceptionResNetV2": 75, "Xception": 71, "NASNetLarge": 331, "NASNetMobile": 224}
SMALL = 64
GAINS = {"EfficientNetV2M": 3.0, "EfficientNetV2L": 3.0}  # with more, their many residual blocks magnify roundings a thousandfold


def noise(name, count):
    """Numbers in [-1, 1): FNV-1a of the name, mixed with each index."""
    h = 1469598103934665603
    for c in name.encode():
        h = (h ^ c) * 1099511628211 % 2 ** 64
    z = np.uint64(h) + np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(40)).astype(np.float64) / 2 ** 23 - 1


def value_of(name, shape, gain):
    """Scales that keep signals alive from the first layer to the last."""
    u = noise(name, int(np.prod(shape))).reshape(shape)
    last = name.split("/")[-1]
    if last in ("gamma", "moving_variance", "variance"):
        return (1 + 0.2 * u).astype(np.float32)
    if len(shape) < 2:
        return (0.1 * u).astype(np.float32)
    fan_in = shape[0] * shape[1] if len(shape) == 4 and shape[3] == 1 else int(np.prod(shape[:-1]))
    return (np.sqrt(gain / fan_in) * u).astype(np.float32)


def fill(model, gain=4.5):
    """The weights by name; the model has them, too."""
    out = {}
    for name, layer in leaves(model):
        for v in layer.weights:
            if v.dtype in ("float32", "float64"):
                own = "gamma" if type(layer).__name__ == "LayerScale" else v.name  # Keras gives that one a number only
                out[f"{name}/{own}"] = value = value_of(f"{name}/{own}", tuple(v.shape), gain)
                out[f"{name}/{own}"] = value = value.astype(v.dtype)
                v.assign(value)
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()  # its moments are copies of the weights
    return out


def build(name):
    keras.backend.clear_session()
    size = SIZES.get(name, SMALL)
    kind = getattr(keras.applications, name)  # logits: a softmax would hide differences
    return kind(weights=None, input_shape=(size, size, 3), classes=10, classifier_activation=None)


def example(model):
    return (127.5 + 127.5 * noise("input", int(np.prod(model.input_shape[1:])))).astype(np.float32).reshape((1,) + model.input_shape[1:])


def compare(snug, name):
    model = build(name)
    with tempfile.TemporaryDirectory() as d:
        at = lambda f: os.path.join(d, f)
        open(at("m.json"), "w").write(model.to_json())
        save_safetensors(at("w.safetensors"), fill(model, GAINS.get(name, 4.5)))
        x = example(model)
        np.save(at("x.npy"), x)
        want = np.asarray(model(x, training=False))
        assert np.isfinite(want).all() and want.std() > 1e-3, f"{name}: these outputs would hide differences"
        plan = subprocess.run([snug, "plan", at("m.json"), "--train", "--batch", "2", "--json"], capture_output=True, text=True)
        if plan.returncode:
            return f"{name}: {plan.stderr.strip()[-300:]}"
        run = subprocess.run([snug, "predict", at("m.json"), "--weights", at("w.safetensors"), "--x", at("x.npy"), "--out", at("y.npy")],
                             capture_output=True, text=True)
        if run.returncode:
            return f"{name}: {run.stderr.strip()[-300:]}"
        error = np.abs(np.load(at("y.npy")) - want).max() / np.abs(want).max()
        return f"{name}: {'' if error <= 2e-4 else 'DIFFERS '}{error:.1e} of {want.max():.3g}, peak of a training step {json.loads(plan.stdout)['peak_bytes'] >> 20} MiB"


def compare_training(snug, name):
    keras.config.set_floatx("float64")
    model, batch = build(name), 4
    with tempfile.TemporaryDirectory() as d:
        at = lambda f: os.path.join(d, f)
        model.compile(keras.optimizers.SGD(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        open(at("m.json"), "w").write(model.to_json())
        save_safetensors(at("w.safetensors"), fill(model, 3.0))
        x, y = noise("batch", batch * int(np.prod(model.input_shape[1:]))).reshape((batch,) + model.input_shape[1:]), np.arange(batch, dtype=np.int32)
        np.save(at("x.npy"), x)
        np.save(at("y.npy"), y)
        want = []
        for _ in range(3):
            want.append(float(model.train_on_batch(x, y)))
            model.reset_metrics()
        run = subprocess.run([snug, "fit", at("m.json"), "--weights", at("w.safetensors"), "--x", at("x.npy"), "--y", at("y.npy"), "--batch", str(batch),
                              "--epochs", "3", "--csv", at("h.csv")], capture_output=True, text=True)
        if run.returncode:
            return f"{name}: {run.stderr.strip()[-300:]}"
        have = [float(line.split(",")[1]) for line in open(at("h.csv")).read().splitlines()[1:]]
        error = max(abs(a - b) / abs(a) for a, b in zip(want, have))
        return f"{name}: {'' if error <= 1e-8 else 'DIFFERS '}{error:.1e} of losses {want}"


def lean(value):
    """Without what no reader looks at, for smaller files."""
    if isinstance(value, dict):
        return {k: lean(v) for k, v in value.items() if k not in ("build_config", "registered_name")}
    return [lean(v) for v in value] if isinstance(value, list) else value


def record_for_suite(folder, name):
    model = build(name)
    fill(model)
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(lean(json.loads(model.to_json())), f, separators=(",", ":"))
    save_safetensors(os.path.join(folder, name + ".safetensors"), {"pred": np.asarray(model(example(model), training=False))})


if __name__ == "__main__":
    if sys.argv[1] == "--record":
        for n in sys.argv[3:]:
            record_for_suite(sys.argv[2], n)
        sys.exit(0)
    train = sys.argv[2:3] == ["--train"]
    names = sys.argv[3 if train else 2:] or [n for n in dir(keras.applications) if n[0].isupper()]
    bad = 0
    for n in names:
        line = (compare_training if train else compare)(os.path.abspath(sys.argv[1]), n)
        bad += "DIFFERS" in line or " of " not in line
        print(line, flush=True)
    sys.exit(bad > 0)
