"""snug.plan(): what a step of a Keras model will use, before anything runs."""
import json
import os
import tempfile

from snug import _C


class Plan:
    """Prints as `snug plan` does; every field of its JSON is an attribute."""

    def __init__(self, text, fields):
        self._text = text
        self.fields = fields
        self.__dict__.update({k: v for k, v in fields.items() if k.isidentifier() and not k.startswith("_")})

    def __getitem__(self, key):
        return self.fields[key]

    def __str__(self):
        return self._text.rstrip("\n")

    __repr__ = __str__


def _bytes(budget):
    if budget is None:
        return 0 if _C.device() else _C.budget_bytes()
    return budget if isinstance(budget, int) else _C.parse_budget(budget)


def _texts(model):
    """Optimizer and loss of a compiled model in the engine's words; None where they are Python's own."""
    optimizer, loss = getattr(model, "optimizer", None), getattr(model, "loss", None)
    kind = getattr(optimizer, "_kind", None)
    if not isinstance(loss, str):
        loss = getattr(loss, "_engine_text", None)
    return kind, loss if isinstance(loss, str) else None


def plan(model, batch=32, budget=None, train=True):
    """The verdict on a training step (train=False: a prediction) of this batch within a budget, on the device that is used."""
    optimizer, loss = _texts(model)
    handle, path = tempfile.mkstemp(suffix=".json")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(model if isinstance(model, str) else model.to_json())
        text, fields = _C.plan(path, None, optimizer, loss, int(batch), bool(train), _bytes(budget))
    finally:
        os.unlink(path)
    return Plan(text, json.loads(fields))
