#!/usr/bin/env python3
"""The GPU table: a training step with Adam, f32 with TF32, Snug beside PyTorch (compiled), alternating in one call.
usage: table.py models FOLDER             writes FOLDER/CASE.json (needs Keras; once, on any machine)
       table.py run STEP FOLDER [CASE...] [--json]  needs a GPU; STEP is the program bench_step; PyTorch is measured where it can be imported;
                                           --json: the run goes into bench/speed.json"""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import speed_md  # noqa: E402 (found by the path above)

#       case: batch, budget (0: none), steps, what is wanted
ROWS = {
    "conv1024": [(256, "0", 6, ""), (256, "4GB", 6, "<= 25 ms"), (256, "3GiB", 6, "<= 28 ms"), (32, "0", 12, "<= 5 ms at <= 3.1 GB"), (32, "2500MB", 12, "in slices")],
    "vgg": [(32, "0", 8, "<= 28 ms, <= 2.5 GB"), (32, "2500MB", 8, "")],
    "mlp": [(20000, "0", 60, "<= 0.15 ms")],
    "resnet50": [(64, "0", 10, "<= 22 ms at <= 6 GB"), (64, "3GiB", 10, "<= 26 ms")],
    "transformer": [(8, "0", 8, ""), (8, "3500MB", 8, "<= 1.0x time, <= 0.5x memory of PyTorch")],
}
LOSS = {"transformer": "sparse_categorical_crossentropy", "resnet50": "sparse_categorical_crossentropy"}
LAYERS, WIDTH, HEADS, T, WORDS = 12, 768, 12, 1024, 1000


def keras_model(case):
    import keras as K
    L = K.layers
    conv = lambda n, padding="same": L.Conv2D(n, 3, padding=padding, activation="relu")
    if case == "resnet50":
        return K.applications.ResNet50(weights=None)
    if case == "transformer":
        inputs = L.Input((T,), dtype="int32")
        x = L.Embedding(WORDS, WIDTH)(inputs)
        for _ in range(LAYERS):
            h = L.LayerNormalization()(x)
            x = L.Add()([x, L.MultiHeadAttention(HEADS, WIDTH // HEADS)(h, h, use_causal_mask=True)])
            h = L.Dense(4 * WIDTH, activation="gelu")(L.LayerNormalization()(x))
            x = L.Add()([x, L.Dense(WIDTH)(h)])
        return K.Model(inputs, L.Dense(WORDS, activation="softmax")(L.LayerNormalization()(x)))
    layers = {
        "conv1024": [L.Input((1024, 1024, 3)), conv(32, "valid"), L.MaxPooling2D(), L.Flatten()],
        "vgg": [L.Input((128, 128, 3)), conv(256), conv(256), L.MaxPooling2D(), conv(512), conv(512), L.MaxPooling2D(), conv(1024), conv(1024), L.GlobalAveragePooling2D()],
        "mlp": [L.Input((100,)), L.Dense(64, activation="relu")],
    }[case]
    return K.Sequential(layers + [L.Dense(10)])


def torch_model(case):
    import torch.nn as nn
    import torch.nn.functional as F
    conv = lambda a, b, pad=1: [nn.Conv2d(a, b, 3, padding=pad), nn.ReLU()]
    if case == "conv1024":
        return nn.Sequential(*conv(3, 32, 0), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(511 * 511 * 32, 10)), (3, 1024, 1024)
    if case == "vgg":
        return nn.Sequential(*conv(3, 256), *conv(256, 256), nn.MaxPool2d(2), *conv(256, 512), *conv(512, 512), nn.MaxPool2d(2),
                             *conv(512, 1024), *conv(1024, 1024), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 10)), (3, 128, 128)
    if case == "mlp":
        return nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 10)), (100,)
    if case == "resnet50":
        import torchvision
        return torchvision.models.resnet50(), (3, 224, 224)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            n, t, _ = x.shape
            q, k, v = (z.view(n, t, HEADS, -1).transpose(1, 2) for z in self.qkv(self.a(x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, WIDTH)
            x = x + self.out(y)
            return x + self.down(F.gelu(self.up(self.b(x))))

    return nn.Sequential(nn.Embedding(WORDS, WIDTH), *[Block() for _ in range(LAYERS)], nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)), (T,)


def torch_step(case, batch, steps):
    """Run in a process of its own: what it holds is given back."""
    import torch
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    model, shape = torch_model(case)
    model = model.cuda().to(memory_format=torch.channels_last) if len(shape) == 3 else model.cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    sparse = case in LOSS
    if case == "transformer":
        x, y = (torch.randint(0, WORDS, (batch, T), device="cuda") for _ in range(2))
    else:
        x = torch.randn((batch,) + shape, device="cuda")
        x = x.to(memory_format=torch.channels_last) if len(shape) == 3 else x
        y = torch.randint(0, 1000, (batch,), device="cuda") if sparse else torch.randn(batch, 10, device="cuda")
    run = torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        out = run(x)
        loss = torch.nn.functional.cross_entropy(out.flatten(0, -2), y.flatten()) if sparse else ((out - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step().item()
    free, total = torch.cuda.mem_get_info()
    times = []
    for _ in range(steps):
        t = time.perf_counter()
        step().item()
        times.append((time.perf_counter() - t) * 1e3)
    print(json.dumps({"ms": sorted(times)[len(times) // 2], "device_mib": (total - torch.cuda.mem_get_info()[0]) >> 20}))


def measure(command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        return None, (run.stderr.strip().split("\n") or [""])[-1][:300]
    return json.loads(run.stdout.strip().split("\n")[-1]), ""


def tell(line):
    how = f", {line['slices']} slices" if line["slices"] > 1 else ""
    how += f", {line['recomputed']} recomputed" if line["recomputed"] else ""
    return (f"{line['ms']:.3f} ms (expected {line['expected_ms']:.3f}), device {line['device_mib']} MiB, "
            f"host {line['peak_kib'] >> 10} MiB{how}")


def cell(line):
    return line and {"s": line["ms"] / 1e3, "mib": line["device_mib"]}


def torch_and_machine():
    import torch
    return torch.__version__.split("+")[0], f"an {torch.cuda.get_device_name()} (CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()})"


def table(step, folder, wanted, json_wanted):
    kept = []
    for case in wanted or ROWS:
        rows = []
        for batch, budget, steps, goal in ROWS[case]:
            loss = LOSS.get(case, "mse")
            snug, why = measure([step, "train", os.path.join(folder, case + ".json"), str(batch), loss, str(steps), budget, "gpu"])
            print(f"{case} batch {batch} budget {budget}: want {goal}; snug {tell(snug) if snug else why}", flush=True)
            rows.append([f"{case}, batch {batch}" + (f", budget {budget}" if budget != "0" else ""), [cell(snug), None, goal]])
        batch, _, steps, _ = ROWS[case][-1]
        peer, why = measure([sys.executable, os.path.abspath(__file__), "torch", case, str(batch), str(steps)])
        print(f"{case} batch {batch}: PyTorch compiled {peer or why}", flush=True)
        rows[[r[0] for r in ROWS[case]].index(batch)][1][1] = cell(peer)
        kept += rows
    if json_wanted and not wanted:
        version, machine = torch_and_machine()
        columns = ["Snug", f"PyTorch {version}, compiled", "aim"]
        speed_md.merge("gpu", columns, kept, "tools/test-cuda.sh build/carry bench --json", machine)


def main(args):
    if args[0] == "models":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.makedirs(args[1], exist_ok=True)
        for case in ROWS:
            with open(os.path.join(args[1], case + ".json"), "w") as f:
                f.write(keras_model(case).to_json())
    elif args[0] == "torch":
        torch_step(args[1], int(args[2]), int(args[3]))
    else:
        json_wanted = speed_md.wanted(args)
        table(args[1], args[2], args[3:], json_wanted)


if __name__ == "__main__":
    main(sys.argv[1:])
