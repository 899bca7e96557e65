#!/usr/bin/env python3
"""Writes tests/parity/signatures.json: what TensorFlow's and Keras' public functions and classes take, by tests/parity/names.txt. Run with a
Python that has TensorFlow: record_signatures.py > tests/parity/signatures.json. tests/python/test_described.py compares Snug with it."""
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import keras
import signatures
import tensorflow as tf

NAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "names.txt")


def find(module):
    found = {"tf": tf, "keras": keras}[module.split(".")[0]]
    for part in module.split(".")[1:]:
        found = getattr(found, part)
    return found


def rows():
    """(module, {name: signature}) for each line of the list that has something to call."""
    with open(NAMES) as file:
        for line in file:
            module, names = line.split(":")
            room = find(module)
            described = {name: signatures.describe(getattr(room, name)) for name in names.split()}
            described = {name: text for name, text in described.items() if text is not None}
            if described:
                yield module, described


def main():
    parts = []
    for module, described in rows():
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(text)}" for name, text in described.items())
        parts.append(f" {json.dumps(module)}: {{\n{lines}\n }}")
    print("{\n" + ",\n".join(parts) + "\n}")


main()
