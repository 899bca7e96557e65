"""What predict collects, and the room that loops leave of a budget."""
from snug import _C, _nest
from snug.keras import _data

INTERPRETER = 1 << 20       # what the interpreter makes in the course of a loop: logs, code of what is called for the first time


class Room:
    """Bytes and plans that a loop needs later: plans made meanwhile leave them. A loop within another one adds to it."""
    _open = []

    def __init__(self):
        self.bytes = self.plans = 0

    def __enter__(self):
        self._open.append(self)
        return self

    def __exit__(self, *error):
        self._open.remove(self)
        self._tell(bool(self.plans) or not self._open)

    def leave(self, n_bytes, plans=None):
        self.bytes, self.plans = n_bytes, self.plans if plans is None else plans
        self._tell(True)

    def keep(self, n_bytes):
        """So many bytes, beside as many plans as are to come still."""
        self.bytes = n_bytes
        self._tell(False)

    def run(self, n_bytes, plans=0):
        """What is recorded is computed beside so much."""
        self.leave(n_bytes, plans)
        if _C.budget_bytes():
            _C.sync()

    def all(self):
        """Of all loops that are open."""
        return sum(r.bytes for r in self._open)

    def _tell(self, with_plans):
        if _C.budget_bytes():
            _C.reserve(self.all(), sum(r.plans for r in self._open) if with_plans else -1)


class Rows:
    """Arrays one below the other, in one array that is taken whole where the number of rows is known, and else grows by half."""

    def __init__(self, first, rows):
        self._n, self._all = len(first), first
        if rows > self._n:
            self._make(rows)

    def _make(self, rows):
        import numpy as np
        made = np.empty((rows, *self._all.shape[1:]), self._all.dtype)
        made[:self._n] = self._all[:self._n]
        self._all = made

    def add(self, more):
        import numpy as np
        end = self._n + len(more) if more.ndim else -1
        if more.dtype != self._all.dtype or more.shape[1:] != self._all.shape[1:] or end < 0:
            self._all = np.concatenate([self._all[:self._n], more])     # which promotes, or says what is wrong
        else:
            if end > len(self._all):
                self._grow(max(end, self._n + self._n // 2))
            self._all[self._n:end] = more
        self._n = len(self._all) if end < 0 else end

    def _grow(self, rows):
        if self._all.flags.owndata:
            self._all.resize((rows, *self._all.shape[1:]), refcheck=False)      # in place; nobody else has it
        else:
            self._make(rows)

    def whole(self):
        if self._n < len(self._all):
            self._grow(self._n)
        return self._all


class Values:
    """Values without rows: an array of them."""

    def __init__(self, first):
        self._all = [first]

    def add(self, more):
        self._all.append(more)

    def whole(self):
        import numpy as np
        return np.asarray(self._all)


class Results:
    """What a model gives, batch by batch. The first batch tells how large all of it is before anything is computed: its step and the
    whole result are judged together, so that a refusal names a budget that suffices for both."""

    def __init__(self, batches, steps, room):
        self._batches, self._steps, self._room = batches, steps, room
        self._structure, self._parts = None, None

    def __bool__(self):
        return self._parts is not None

    def add(self, data, result):
        """Computes a batch's result and gives its arrays; data: [the batch], which is let go of."""
        first, batch = self._parts is None, 0
        if first:
            given = _data.rows_in(data[0])
            self._rows = _data.rows_in_all(self._batches, self._steps, given)
            self._of = max(given, 1)
            batch = _data.size(data[0])
            odd = not self._rows or self._rows % self._of > 0
            whole = sum(_data.size(t) // self._of * self._rows for t in _nest.flatten(result))
            self._room.run(INTERPRETER + batch + _data.size(result) + whole, int(odd))
        data.clear()
        arrays = read(result)
        if first:
            self._structure = _nest.map_structure(lambda a: 0, arrays)
            self._parts = [Rows(a, -(-len(a) * self._rows // self._of)) if a.ndim else Values(a) for a in _nest.flatten(arrays)]
            self._room.leave(batch)     # whoever reads a result leaves room for its array
        else:
            for part, a in zip(self._parts, _nest.flatten(arrays)):
                part.add(a)
        return arrays

    def whole(self):
        found = [part.whole() for part in self._parts]
        return _nest.pack_sequence_as(self._structure, found) if _nest.is_nested(self._structure) else found[0]


def read(result):
    """Tensors as arrays."""
    import numpy as np
    one = lambda t: t.numpy() if _C.is_tensor(t) else np.asarray(t)
    return _nest.map_structure(one, result) if _nest.is_nested(result) else one(result)
