#!/usr/bin/env python3
"""One training step of a peer, as its users would write it: TensorFlow under tf.function, PyTorch channels-last with fused Adam.
usage: peers.py tensorflow|torch mlp|conv STEPS -> {"ms": median, "peak_kib": VmHWM}"""
import json
import os
import resource
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
WARM_UP = 3
CASES = {"mlp": (20000, (100,)), "conv": (32, (128, 128, 3))}


def median_ms(step, steps):
    times = []
    for _ in range(steps + WARM_UP):
        t = time.perf_counter()
        step()
        times.append((time.perf_counter() - t) * 1e3)
    times = sorted(times[WARM_UP:])
    return times[len(times) // 2]


def tensorflow_step(case):
    import keras
    import tensorflow as tf
    from keras import layers as L
    batch, shape = CASES[case]
    body = [L.Dense(64, activation="relu")] if case == "mlp" else [L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(), L.Flatten()]
    model = keras.Sequential([L.Input(shape)] + body + [L.Dense(10)])
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    x, y = tf.random.normal((batch,) + shape), tf.random.normal((batch, 10))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return lambda: step().numpy()


def torch_step(case):
    import torch
    from torch import nn
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    batch, _ = CASES[case]
    if case == "mlp":
        model, x = nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 10)), torch.randn(batch, 100)
    else:
        model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 63 * 63, 10))
        model = model.to(memory_format=torch.channels_last)
        x = torch.randn(batch, 3, 128, 128).to(memory_format=torch.channels_last)
    y = torch.randn(batch, 10)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


if __name__ == "__main__":
    peer, case, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    ms = median_ms({"tensorflow": tensorflow_step, "torch": torch_step}[peer](case), steps)
    print(json.dumps({"ms": round(ms, 4), "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
