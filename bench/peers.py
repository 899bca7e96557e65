#!/usr/bin/env python3
"""One training step (or one prediction) of a peer, as its users would write it: TensorFlow under tf.function, JAX under jit (both
from the Keras models of cases.py), PyTorch channels-last with fused Adam, eager or compiled, ONNX Runtime for predictions.
usage: peers.py PEER CASE STEPS [MODEL.onnx] -> {"ms": median, "peak_kib": VmHWM}; PEER is tensorflow, jax, torch, torch-compile, onnxruntime,
and of halves tensorflow-bf16 (mixed_bfloat16), torch-bf16 (autocast)"""
import json
import os
import resource
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

def median_ms(step, steps):
    times, warm_up = [], 1 if steps < 3 else 3
    for _ in range(steps + warm_up):
        t = time.perf_counter()
        step()
        times.append((time.perf_counter() - t) * 1e3)
    times = sorted(times[warm_up:])
    return times[len(times) // 2]


def data(case):
    import numpy as np
    r = np.random.RandomState(0)
    if case in cases.PREDICT:
        batch, shape = cases.PREDICT[case]
        return r.normal(size=(batch,) + shape).astype("float32"), None
    batch, shape, loss, n = cases.ALL[case]
    x = r.randint(0, n, (batch,) + shape).astype("int32") if case == "transformer" else r.normal(size=(batch,) + shape).astype("float32")
    labels = (batch,) + (shape if case == "transformer" else ())
    return x, r.normal(size=(batch, n)).astype("float32") if loss == "mse" else r.randint(0, n, labels).astype("int32")


def tensorflow_step(case, policy="float32"):
    import keras
    import tensorflow as tf
    keras.mixed_precision.set_global_policy(policy)
    model = cases.build(case)
    x, y = (None if a is None else tf.constant(a) for a in data(case))
    if case in cases.PREDICT:
        predict = tf.function(lambda: model(x, training=False))
        return lambda: predict().numpy()
    loss_of = keras.losses.get(cases.ALL[case][2])
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loss_of(y, model(x, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return lambda: step().numpy()


def jax_step(case):
    os.environ["KERAS_BACKEND"] = "jax"
    import jax
    import keras
    model = cases.build(case)
    x, y = (None if a is None else jax.numpy.asarray(a) for a in data(case))
    values = lambda vs: [v.value for v in vs]
    trained, fixed = values(model.trainable_variables), values(model.non_trainable_variables)
    if case in cases.PREDICT:
        predict = jax.jit(lambda t, f, x: model.stateless_call(t, f, x, training=False)[0])
        return lambda: predict(trained, fixed, x).block_until_ready()
    loss_of = keras.losses.get(cases.ALL[case][2])
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)

    def loss_and_fixed(t, f):
        pred, f = model.stateless_call(t, f, x, training=True)
        return loss_of(y, pred).mean(), f

    def update(state):
        t, f, o = state
        (loss, f), grads = jax.value_and_grad(loss_and_fixed, has_aux=True)(t, f)
        t, o = optimizer.stateless_apply(o, grads, t)
        return loss, (t, f, o)

    update = jax.jit(update, donate_argnums=0)
    held = [(trained, fixed, values(optimizer.variables))]

    def step():
        loss, held[0] = update(held[0])
        return loss.block_until_ready()

    return step


def torch_model(case):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, n, filters, stride):
            super().__init__()
            self.a, self.b = nn.Conv2d(n, filters, 3, stride, 1, bias=False), nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
            self.na, self.nb = nn.BatchNorm2d(filters), nn.BatchNorm2d(filters)
            self.way = nn.Sequential(nn.Conv2d(n, filters, 1, stride, bias=False), nn.BatchNorm2d(filters)) if stride > 1 else nn.Identity()

        def forward(self, x):
            return torch.relu(self.way(x) + self.nb(self.b(torch.relu(self.na(self.a(x))))))

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = (a.view(b, t, self.heads, -1).transpose(1, 2) for a in self.qkv(x).split(w, dim=2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(b, t, w))

    class Residual(nn.Module):
        def __init__(self, *inside):
            super().__init__()
            self.inside = nn.Sequential(*inside)

        def forward(self, x):
            return x + self.inside(x)

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)

        def forward(self, x):
            return self.out(self.lstm(x)[0][:, -1])

    def conv(n, filters):
        return [nn.Conv2d(n, filters, 3, padding=1), nn.ReLU()]

    gap = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    if case == "mlp":
        layers = [nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 10)]
    elif case == "wide":
        layers = [part for n in (1024, 2048, 2048) for part in (nn.Linear(n, 2048), nn.ReLU())] + [nn.Linear(2048, 10)]
    elif case == "conv":
        layers = [nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 63 * 63, 10)]
    elif case == "conv2":
        layers = conv(3, 64) + [nn.MaxPool2d(2)] + conv(64, 128) + gap + [nn.Linear(128, 10)]
    elif case == "vgg":
        layers = conv(3, 256) + conv(256, 256) + [nn.MaxPool2d(2)] + conv(256, 512) + conv(512, 512) + [nn.MaxPool2d(2)]
        layers += conv(512, 1024) + conv(1024, 1024) + gap + [nn.Linear(1024, 10)]
    elif case == "resnet20":
        sizes = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2
        layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()] + [Block(*s) for s in sizes] + gap + [nn.Linear(64, 10)]
    elif case == "lstm":
        return Last()
    else:
        w = cases.WIDTH
        layers = [nn.Embedding(1000, w)]
        for _ in range(cases.LAYERS):
            layers += [Residual(nn.LayerNorm(w), Attention(w, cases.HEADS)), Residual(nn.LayerNorm(w), nn.Linear(w, 4 * w), nn.GELU(), nn.Linear(4 * w, w))]
        layers += [nn.LayerNorm(w), nn.Linear(w, 1000)]
    return nn.Sequential(*layers)


def torch_step(case, compiled=False, halves=False):
    import torch
    from torch import nn
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = torch_model(case)
    x, y = (torch.from_numpy(a) for a in data(case))
    y = y.long() if y.dtype == torch.int32 else y
    if x.dim() == 4:
        model, x = model.to(memory_format=torch.channels_last), x.permute(0, 3, 1, 2).to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    sparse = cases.ALL[case][2] != "mse"
    run = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=halves):
            out = run(x)
            loss = nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1)) if sparse else nn.functional.mse_loss(out, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def onnxruntime_step(case):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = ort.InferenceSession(sys.argv[4], options, providers=["CPUExecutionProvider"])
    x, name = data(case)[0], session.get_inputs()[0].name
    return lambda: session.run(None, {name: x})


PEERS = {"tensorflow": tensorflow_step, "jax": jax_step, "torch": torch_step, "torch-compile": lambda case: torch_step(case, True),
         "onnxruntime": onnxruntime_step, "tensorflow-bf16": lambda case: tensorflow_step(case, "mixed_bfloat16"),
         "torch-bf16": lambda case: torch_step(case, halves=True)}

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import cases
    peer, case, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    ms = median_ms(PEERS[peer](case), steps)
    print(json.dumps({"ms": round(ms, 4), "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
