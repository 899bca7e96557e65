"""The tools build/bench/pack, build/bench/remat and build/bench_floor as programs: answers are judged by rules written
here alone, bad input by message and exit code; and the verdict of bench/budget.py on steps that are made up.

    python3 test_tools.py build/bench/pack build/bench/remat build/bench_floor
"""
import json
import os
import random
import subprocess
import sys
import tempfile

GIB = 1 << 30
HEAD = "id,lower,upper,size\n"


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def expect(true, what):
    if not true:
        raise SystemExit("test_tools: " + what)


def write(folder, text, name="file"):
    path = os.path.join(folder, name)
    with open(path, "w", newline="") as f:
        f.write(text)
    return path


# --- packing ----------------------------------------------------------------------------------------
def check_packing(rows, height):
    """rows: id, lower, upper, size, offset"""
    for i, (_, lo, hi, size, at) in enumerate(rows):
        expect(at + size <= height, "a buffer reaches above the height")
        for _, lo2, hi2, size2, at2 in rows[:i]:
            apart = hi <= lo2 or hi2 <= lo or at + size <= at2 or at2 + size2 <= at
            expect(apart or size == 0 or size2 == 0, "two buffers share a byte")


def packed(pack, path, *options):
    code, out, err = run(pack, path, *options)
    with open(path, newline="") as f:
        names = f.readline().strip("\ufeff\r\n").replace(" ", "").split(",")
    lines = [line.replace(" ", "").split(",") for line in out.split("\n") if line]
    wanted = names if "offset" in names else names + ["offset"]
    expect(lines[:1] == [wanted], "pack: another first line: " + out[:80] + err)
    columns = [wanted.index(name) for name in ("id", "lower", "upper", "size", "offset")]
    rows = [(line[columns[0]],) + tuple(int(line[c]) for c in columns[1:]) for line in lines[1:]]
    height = int(err.split("height ")[1].split(",")[0])
    check_packing(rows, height)
    return code, rows, height


def test_random_buffers(pack, folder):
    draw = random.Random(3)
    for n in (1, 40, 120):
        wanted = []
        for i in range(n):
            lower = draw.randrange(60)
            wanted.append((str(i), lower, lower + draw.randrange(1, 20), 64 * draw.randrange(30)))
        text = HEAD + "".join("%s,%d,%d,%d\n" % row for row in wanted)
        _, rows, height = packed(pack, write(folder, text), "--seconds", "0.2")
        expect([r[:4] for r in rows] == wanted, "pack prints other buffers than it was given")
        bound = max(sum(r[3] for r in wanted if r[1] <= t < r[2]) for t in range(80))
        expect(height >= bound, "a height below the bound")


def test_pack_input(pack, folder):
    good = [
        (HEAD, 0), (HEAD + "0,0,5,64\n1,5,9,64\n", 64), ("id,lower,upper,size\r\n0,0,5,64\r\n\r\n", 64),
        ("id,lower,upper,size,more\n7,0,5,0,x\n8,2,9,128,y\n", 128), (HEAD + "0,0,4294967295,64", 64),
        ("\ufeffsize,id,upper,lower\n64,a,5,0\n32,a,9,3\n", 96),
        ("id, lower, upper, size\n0, 0, 5, 64\n", 64),
        ("id,offset,lower,upper,size\nx,77,0,5,64\ny,77,4,6,32\n", 96),
        (HEAD + "0,0,4294967296,64\n1,4294967295,18446744073709551615,64\n", 128),
        (HEAD + "0,0,5,9223372036854775808\n1,5,9,64\n", 1 << 63),
    ]
    for text, height in good:
        code, _, got = packed(pack, write(folder, text))
        expect(code == 0 and got == height, "pack: %r has height %d, code %d" % (text, got, code))
    bad = [
        ("", "line 1"), ("0,0,5,64\n", "line 1"), (HEAD + "0,0,5\n", "four columns"),
        (HEAD + "0,5,5,64\n", "lower < upper"), (HEAD + "0,-1,5,64\n", "line 2"),
        (HEAD + "0,0,5,6x\n", "line 2"), (HEAD + "0,0,5,99999999999999999999\n", "64 bits"),
        ("id,lower,size\n0,0,5\n", "line 1"), (HEAD + "0,0,5,\n", "line 2"),
        (HEAD + "0,0,5,18446744073709551615\n1,0,5,64\n", "address space"),
    ]
    for text, words in bad:
        code, out, err = run(pack, write(folder, text))
        expect(code == 1 and words in err and not out, "pack: %r: %d, %s" % (text, code, err))
    expect(run(pack, os.path.join(folder, "none"))[0] == 1, "pack reads a file that is not there")
    two = write(folder, HEAD + "0,0,5,64\n1,3,9,64\n")
    expect(packed(pack, two, "--capacity", 127)[0] == 3, "a capacity below the bound is reached")
    expect("no packing is as low" in run(pack, two, "--capacity", 127)[2], "pack does not say why")
    expect(packed(pack, two, "--capacity", 128)[0] == 0, "a capacity at the bound is not reached")
    for words in (["--capacity", "1k"], ["--seconds", "-1"], ["--seconds", "nan"], ["--lots"]):
        expect(run(pack, two, *words)[0] == 2, "pack takes " + " ".join(words))


# --- recomputation ----------------------------------------------------------------------------------
def training_step(n, seed):
    """A chain with skips, its loss, and gradients that read activations: bytes, costs, edges."""
    draw = random.Random(seed)
    ops = [(draw.randrange(1, 20) * (GIB // 64), draw.randrange(10, 900)) for _ in range(n)]
    ops += [(4, 1)] + [(ops[n - 1 - k][0], 2 * ops[n - 1 - k][1]) for k in range(n)]
    edges = [(k, k + 1) for k in range(2 * n)] + [(n - 1 - k, n + 1 + k) for k in range(n)]
    edges += [(k, k + 4) for k in range(0, n - 4, 5)]
    return GIB // 8, ops, sorted(set(edges))


def file_of(fixed, ops, edges):
    text = "%d %d %d %d\n" % (len(ops), len(edges), fixed, len(ops) // 2)
    return text + "".join("%d %d\n" % o for o in ops) + "".join("%d %d\n" % e for e in edges)


def replay(fixed, ops, edges, schedule, budget):
    """The rules of the issue; the cost of all computations."""
    inputs = [[] for _ in ops]
    for u, v in edges:
        inputs[v].append(u)
    resident, seen, cost = set(), set(), 0
    for line in schedule.split("\n"):
        if not line:
            continue
        word, op = line.split()
        op = int(op)
        if word == "free":
            resident.remove(op)
            continue
        expect(word == "compute" and op not in resident, "remat: " + line)
        expect(all(u in resident for u in inputs[op]), "remat: an input of %d is missing" % op)
        resident.add(op)
        seen.add(op)
        cost += ops[op][1]
        expect(fixed + sum(ops[i][0] for i in resident) <= budget, "remat: above the budget at " + line)
    expect(len(seen) == len(ops), "remat leaves operators out")
    return cost


def test_schedules(remat, folder):
    for n, seed in ((12, 1), (40, 2)):
        fixed, ops, edges = training_step(n, seed)
        path = write(folder, file_of(fixed, ops, edges))
        all_bytes = fixed + sum(o[0] for o in ops)
        base = sum(o[1] for o in ops)
        before = None
        for share in (1.0, 0.5, 0.4):
            gib = "%.6f" % (share * all_bytes / GIB)
            code, out, err = run(remat, path, "--budget", gib, "--seconds", "0.2")
            expect(code == 0, "remat at %s: %d, %s" % (gib, code, err))
            cost = replay(fixed, ops, edges, out, int(float(gib) * GIB))
            expect(abs(float(err.split()[1]) - 100 * (cost / base - 1)) < 1e-3, "remat says " + err)
            expect(share < 1 or cost == base, "remat computes again what it has room for")
            expect(before is None or cost >= before, "remat: fewer bytes cost less")
            expect(share > 0.4 or cost > base, "remat: the budget binds nothing")
            before = cost
        code, out, err = run(remat, path, "--budget", "0.126", "--seconds", "0.2")
        expect(code == 3 and "needs" in err and not out, "remat in too few bytes: %d, %s" % (code, err))


def test_remat_input(remat, folder):
    for text in ("", "2 1 0 0\n4 1\n4 1\n0 2\n", "2 2 0 0\n4 1\n4 1\n0 1\n1 0\n", "2 1 0 0\n4 1\n",
                 "1 0 0 0\n4 -1\n"):
        code, out, err = run(remat, write(folder, text), "--budget", 1)
        expect(code == 1 and err and not out, "remat: %r: %d, %s" % (text, code, err))
    good = write(folder, "2 1 0 0\n4 1\n4 1\n0 1\n")
    for words in ([], ["--budget", "0"], ["--budget", "-1"], ["--budget", "nan"], ["--budget", "lots"]):
        expect(run(remat, good, *words)[0] == 2, "remat takes " + " ".join(words))


# --- floors -----------------------------------------------------------------------------------------
def test_floors_are_near_the_bound(floor):
    """Of models as large as real ones: where the packing of the tightest plan fails, the next one is far larger."""
    models = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/models")
    for model, batch, loss in (("unet", 8, "mse"), ("unet", 4, "binary_crossentropy"), ("resnet20", 64, "sparse_categorical_crossentropy")):
        code, out, err = run(floor, os.path.join(models, model + ".json"), batch, loss)
        expect(code == 0, err)
        ratio = json.loads(out)["ratio"]
        expect(1 <= ratio <= 1.1, f"the floor of {model} is {ratio} times what the graph must have")


# --- promised and measured --------------------------------------------------------------------------
SLOWER = {"1TiB": 1, "75%": 1, "50%": 1.5, "25%": 1.8, "10%": 3}


def promised(folder, off, missing="none"):
    """The code and the last line of budget.py's promise for steps whose promised slowdown is `off` times the measured."""
    lines = {part: json.dumps({"fits": 1, "ms": 40 * slow, "expected_ms": 10 * (1 + off * (slow - 1)), "plain_expected_ms": 10})
             for part, slow in SLOWER.items() if part != missing}
    cases = "".join(f"{part}) echo '{line}' ;;\n" for part, line in lines.items())
    os.chmod(write(folder, f'#!/bin/sh\ncase $6 in\n{cases}*) exit 1 ;;\nesac\n', "bench_step"), 0o755)
    bench = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/budget.py")
    code, out, err = run(sys.executable, "-B", bench, folder, "--models", folder, "--rounds", 2, "promise")
    return code, out.strip().split("\n")[-1] + err


def test_promises_are_judged_by_the_difference_of_slowdowns(folder):
    """0, 50, 80 and 200 % measured: promised half of them are 0, 25, 40 and 100 points off, 32.5 in the middle."""
    code, text = promised(folder, 0.5)
    expect(code == 1 and "median 32.5 points, worst 100.0, of 24 rows and 2 rounds" in text, f"promise: {code}, {text}")
    code, text = promised(folder, 0.9)  # 0, 5, 8, 20
    expect(code == 0 and "median 6.5 points" in text, f"promise: {code}, {text}")
    code, text = promised(folder, 0.84)  # 0, 8, 12.8, 32: within 10 % of 1 + slowdown
    expect(code == 1 and "median 10.4 points" in text, f"promise: {code}, {text}")
    code, text = promised(folder, 1, "10%")
    expect(code == 1 and "6 rows have no figure" in text, f"promise: {code}, {text}")


def main():
    pack, remat, floor = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        test_random_buffers(pack, folder)
        test_pack_input(pack, folder)
        test_schedules(remat, folder)
        test_remat_input(remat, folder)
        test_promises_are_judged_by_the_difference_of_slowdowns(folder)
    test_floors_are_near_the_bound(floor)
    print("test_tools: passed")


main()
