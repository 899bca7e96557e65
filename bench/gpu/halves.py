#!/usr/bin/env python3
"""The GPU table of halves: a training step with Adam under mixed_bf16, Snug beside PyTorch (compiled, autocast to bf16), alternating in one call.
usage: halves.py models FOLDER            writes FOLDER/CASE.json (needs Keras; once, on any machine)
       halves.py run STEP FOLDER [CASE...] [--json] [--alone]  needs a GPU; STEP is the program bench_step; PyTorch is measured where it can be
                                           imported, --alone: it is not; --json: the run goes into bench/speed.json, as
                                           the section gpu_halves
Memory is the card's, by NVML, less what was there before the program began: of Snug the most that was seen, of PyTorch what it has at the end (its search
for algorithms takes more), and beside it what its tensors took at most. Transformers have no table of positions, on either side."""
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import table as f32  # noqa: E402 (found by the path above)

speed_md = f32.speed_md
#       case: batch, budget (0: none), steps, what is wanted
ROWS = {
    "conv1024": [(256, "0", 6, "<= 15 ms"), (256, "2560MiB", 6, "<= 17 ms")],
    "vgg": [(32, "0", 10, "<= 11.5 ms, <= 1.5 GB")],
    "vit": [(64, "0", 20, "<= 11 ms, <= 2.6 GB")],
    "bert": [(16, "0", 12, "<= 19 ms, <= 4 GB")],
    "unet": [(16, "0", 12, "<= 14 ms, <= 3.2 GB")],
    "resnet50": [(64, "0", 20, "<= 0.9x time, <= 0.6x memory of PyTorch")],
}
#        width, heads, words, tokens, classes
BERT = (768, 12, 30522, 512, 1000)
VIT = (384, 6, 0, 196, 1000)
LAYERS, EPSILON = 12, 1e-6
LOSS = {case: "sparse_categorical_crossentropy" for case in ("vit", "bert", "resnet50")}


def keras_block(L, x, width, heads, before):
    """before: norms stand before what they feed (ViT), not behind what is added (BERT)."""
    norm = lambda: L.LayerNormalization(epsilon=EPSILON)
    h = norm()(x) if before else x
    x = L.Add()([x, L.MultiHeadAttention(heads, width // heads)(h, h)])
    x = x if before else norm()(x)
    h = L.Dense(4 * width, activation="gelu")(norm()(x) if before else x)
    x = L.Add()([x, L.Dense(width)(h)])
    return x if before else norm()(x)


def keras_transformer(case):
    import keras as K
    L = K.layers
    width, heads, words, tokens, classes = BERT if case == "bert" else VIT
    if words:
        inputs = L.Input((tokens,), dtype="int32")
        x = L.LayerNormalization(epsilon=EPSILON)(L.Embedding(words, width)(inputs))
    else:
        inputs = L.Input((224, 224, 3))
        x = L.Reshape((tokens, width))(L.Conv2D(width, 16, strides=16)(inputs))
    for _ in range(LAYERS):
        x = keras_block(L, x, width, heads, not words)
    x = x if words else L.LayerNormalization(epsilon=EPSILON)(x)
    x = L.GlobalAveragePooling1D()(x)
    x = L.Dense(width, activation="tanh")(x) if words else x
    return K.Model(inputs, L.Dense(classes, activation="softmax")(x))


def keras_unet():
    import keras as K
    L = K.layers

    def two(x, n):
        for _ in range(2):
            x = L.Conv2D(n, 3, padding="same", activation="relu")(x)
        return x

    inputs, kept = L.Input((256, 256, 3)), []
    x = inputs
    for n in (64, 128, 256, 512):
        x = two(x, n)
        kept.append(x)
        x = L.MaxPooling2D()(x)
    x = two(x, 1024)
    for n in (512, 256, 128, 64):
        x = two(L.Concatenate()([kept.pop(), L.Conv2DTranspose(n, 2, strides=2)(x)]), n)
    return K.Model(inputs, L.Conv2D(1, 1)(x))


def torch_transformer(case):
    import torch.nn as nn
    import torch.nn.functional as F
    width, heads, words, tokens, classes = BERT if case == "bert" else VIT

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (nn.LayerNorm(width, EPSILON) for _ in range(2))
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x):
            n, t, _ = x.shape
            q, k, v = (z.view(n, t, heads, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
            return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, width))

        def forward(self, x):
            if words:
                x = self.a(x + self.attend(x))
                return self.b(x + self.down(F.gelu(self.up(x))))
            x = x + self.attend(self.a(x))
            return x + self.down(F.gelu(self.up(self.b(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Embedding(words, width) if words else nn.Conv2d(3, width, 16, 16)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.pool, self.last = nn.LayerNorm(width, EPSILON), nn.Linear(width, width), nn.Linear(width, classes)

        def forward(self, x):
            if words:
                return self.last(self.pool(self.blocks(self.norm(self.first(x))).mean(1)).tanh())
            return self.last(self.norm(self.blocks(self.first(x).flatten(2).transpose(1, 2))).mean(1))

    return Net(), (tokens,) if words else (3, 224, 224)


def torch_unet():
    import torch
    import torch.nn as nn
    two = lambda a, n: nn.Sequential(nn.Conv2d(a, n, 3, padding=1), nn.ReLU(), nn.Conv2d(n, n, 3, padding=1), nn.ReLU())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            widths = (3, 64, 128, 256, 512)
            self.down = nn.ModuleList(two(a, n) for a, n in zip(widths, widths[1:]))
            self.middle = two(512, 1024)
            self.up = nn.ModuleList(nn.ConvTranspose2d(2 * n, n, 2, 2) for n in widths[:0:-1])
            self.join = nn.ModuleList(two(2 * n, n) for n in widths[:0:-1])
            self.last = nn.Conv2d(64, 1, 1)

        def forward(self, x):
            kept = []
            for layer in self.down:
                kept.append(layer(x))
                x = nn.functional.max_pool2d(kept[-1], 2)
            x = self.middle(x)
            for up, join in zip(self.up, self.join):
                x = join(torch.cat([kept.pop(), up(x)], 1))
            return self.last(x)

    return Net(), (3, 256, 256)


def keras_model(case):
    return keras_transformer(case) if case in ("vit", "bert") else keras_unet() if case == "unet" else f32.keras_model(case)


def torch_model(case):
    return torch_transformer(case) if case in ("vit", "bert") else torch_unet() if case == "unet" else f32.torch_model(case)


def torch_data(case, batch, shape):
    import torch
    if case == "bert":
        x = torch.randint(0, BERT[4], (batch,) + shape, device="cuda")
    else:
        x = torch.randn((batch,) + shape, device="cuda").to(memory_format=torch.channels_last)
    if case in LOSS:
        return x, torch.randint(0, 1000, (batch,), device="cuda")
    return x, torch.randn((batch, 1) + shape[1:] if case == "unet" else (batch, 10), device="cuda")


def torch_step(case, batch, steps):
    """Run in a process of its own: what it holds is given back."""
    before = card_mib()
    import torch
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    model, shape = torch_model(case)
    model = model.cuda().to(memory_format=torch.channels_last) if len(shape) == 3 else model.cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    x, y = torch_data(case, batch, shape)
    run = torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = run(x)
        out = out.float()
        loss = torch.nn.functional.cross_entropy(out, y) if case in LOSS else ((out - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step().item()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(steps):
        t = time.perf_counter()
        step().item()
        times.append((time.perf_counter() - t) * 1e3)
    print(json.dumps({"ms": sorted(times)[len(times) // 2], "device_mib": card_mib() - before, "tensors_mib": torch.cuda.max_memory_allocated() >> 20}))


SMI = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]


def card_mib():
    return int(subprocess.run(SMI, capture_output=True, text=True).stdout.split()[0])


class Most:
    """The most that the card held while this was open, beyond what it held before."""

    def __enter__(self):
        self.before, self.most = card_mib(), 0
        self.smi = subprocess.Popen([*SMI, "-lms", "20"], stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        for line in self.smi.stdout:
            self.most = max(self.most, int(line) - self.before)

    def __exit__(self, *_):
        self.smi.terminate()
        self.thread.join()


def snug_step(step, folder, case, batch, budget, steps):
    with Most() as card:
        line, why = f32.measure([step, "train", os.path.join(folder, case + ".json"), str(batch), LOSS.get(case, "mse"), str(steps), budget, "gpu", "mixed_bf16"])
    return (line and {**line, "planned_mib": line["device_mib"], "device_mib": card.most}), why


def table(step, folder, wanted, alone):
    kept = []
    for case in wanted or ROWS:
        batch, _, steps, _ = ROWS[case][0]
        peer, why = (None, "not asked for") if alone else f32.measure([sys.executable, os.path.abspath(__file__), "torch", case, str(batch), str(steps)])
        print(f"{case} batch {batch}: PyTorch compiled, bf16 {peer or why}", flush=True)
        for at, (batch, budget, steps, goal) in enumerate(ROWS[case]):
            snug, why = snug_step(step, folder, case, batch, budget, steps)
            say = snug and f"{f32.tell(snug)}, of that planned {snug['planned_mib']} MiB"
            print(f"{case} batch {batch} budget {budget}: want {goal}; snug {say or why}", flush=True)
            text = f"{case}, batch {batch}" + (f", budget {budget}" if budget != "0" else "")
            tensors = f"{peer['tensors_mib']:,} MiB" if peer and at == 0 else None
            kept.append([text, [f32.cell(snug), f32.cell(peer) if at == 0 else None, tensors, goal]])
    return kept


def main(args):
    if args[0] == "models":
        os.makedirs(args[1], exist_ok=True)
        for case in ROWS:
            with open(os.path.join(args[1], case + ".json"), "w") as f:
                f.write(keras_model(case).to_json())
    elif args[0] == "torch":
        torch_step(args[1], int(args[2]), int(args[3]))
    else:
        json_wanted, alone = speed_md.wanted(args), "--alone" in args
        cases = [a for a in args[3:] if a != "--alone"]
        kept = table(args[1], args[2], cases, alone)
        if json_wanted and not cases and not alone:
            version, machine = f32.torch_and_machine()
            columns = ["Snug", f"PyTorch {version}, compiled", "of that its tensors", "aim"]
            speed_md.merge("gpu_halves", columns, kept, "python3 bench/gpu/halves.py run build/bench_step build/models --json", machine)


if __name__ == "__main__":
    main(sys.argv[1:])
