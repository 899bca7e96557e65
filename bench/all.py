#!/usr/bin/env python3
"""make bench: every table of bench/speed.json that needs no GPU, in one run on one commit, then the pages they stand on.

usage: bench/all.py BUILD [ROUNDS]      (ROUNDS of training steps and predictions; 2)

Peers are installed into BUILD/peers (TensorFlow, JAX, PyTorch; some GB), where SNUG_BENCH_TENSORFLOW, SNUG_BENCH_JAX and SNUG_BENCH_TORCH name no
interpreters. Takes about an hour on two cores, which nothing else should use. The table of the GPU is `tools/test-cuda.sh BUILD bench --json`."""
import os
import subprocess
import sys

import run

HERE = os.path.dirname(os.path.abspath(__file__))


def commands(build, rounds):
    tensorflow = os.environ["SNUG_BENCH_TENSORFLOW"]
    return [["run.py", build, rounds, "--json"], ["door.py", build, "--json"], ["data.py", build, "--json"],
            ["data_costs.py", os.path.join(build, "venv", "bin", "python"), tensorflow, "--json"],
            ["precision.py", build, rounds, "--json"], ["budget.py", build, "--rounds", "3", "--json", "curve", "big"], ["speed_md.py"]]


def main(words):
    if not words:
        sys.exit(__doc__)
    for peer in run.WANTED:
        os.environ["SNUG_BENCH_" + peer.upper()] = os.path.abspath(run.interpreter(words[0], peer))
    for script, *rest in commands(words[0], words[1] if len(words) > 1 else "2"):
        print(f"== {script} {' '.join(rest)}", flush=True)
        subprocess.run([sys.executable, "-B", os.path.join(HERE, script), *rest], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
