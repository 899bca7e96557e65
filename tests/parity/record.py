#!/usr/bin/env python3
"""Runs the parity programs on TensorFlow and writes what they gave to expected/NAME.json.
usage: PYTHON-WITH-TENSORFLOW record.py [NAME...]     (without names: all)"""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import parity


def as_text(entries):
    """One line per entry, so that a change of a recording reads well."""
    return "[\n" + ",\n".join(json.dumps(e, ensure_ascii=False) for e in entries) + "\n]\n"


def main(names):
    unknown = [n for n in names if parity.path_of(n) is None]
    if unknown:
        sys.exit("no such program: " + " ".join(unknown))
    import tensorflow                        # once: each program runs in a fork of this process
    tensorflow.keras.layers                  # Keras is loaded lazily
    failed = 0
    for name, outcome in parity.run_all(names or parity.all_names(), lambda: None):
        wrong = [e["value"]["data"] for e in outcome["entries"]
                 if e["value"]["kind"] == "raises" and isinstance(e["value"]["data"], str)]
        if outcome["error"] or wrong or not outcome["entries"]:
            failed += 1
            print(f"FAILED {name}: {outcome['error'] or ''}{' '.join(wrong)}")
            continue
        with open(os.path.join(parity.HERE, "expected", name + ".json"), "w") as f:
            f.write(as_text(outcome["entries"]))
        print(f"recorded {name}: {len(outcome['entries'])} entries, {outcome['seconds']:.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
