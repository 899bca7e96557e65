"""snug.memory(): the ledger as a dict that prints as a table."""
from snug import _C


def _size(n):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n < 1024 or unit == "TiB":
            return f"{n:.1f} {unit}" if unit != "B" else f"{n} B"
        n /= 1024


class Memory(dict):
    """{category: {"bytes", "peak_bytes", "owners": {name: bytes}}}, and counters of the recorder in `info`. Where a GPU is
    used its memory is a category of its own ("gpu:0"), beside the host's."""

    def __init__(self, rows, info, card=None):
        super().__init__()
        self.info, self.device = info, card
        for category, owner, now, peak in rows:
            row = self.setdefault(category, {"bytes": 0, "peak_bytes": 0, "owners": {}})
            if owner == "":
                row["bytes"], row["peak_bytes"] = now, peak
            else:
                row["owners"][owner] = now

        if card:
            owners = {"context": card["context_bytes"], "tensors": card["tensor_bytes"], "variables": card["variable_bytes"],
                      "arena": card["arena_bytes"], "free in the pool": card["pool_free_bytes"]}
            now = card["context_bytes"] + card["held_bytes"]
            owners["buffers"] = max(0, now - sum(owners.values()))
            self[card["name"]] = {"bytes": now, "peak_bytes": max(now, card["context_bytes"] + card["peak_bytes"]),
                                  "owners": owners}

    bytes = property(lambda self: self.info["bytes"])
    peak_bytes = property(lambda self: self.info["peak_bytes"])
    budget_bytes = property(lambda self: self.info["budget_bytes"])

    def __str__(self):
        lines = [f"{'':24}{'now':>12}{'peak':>12}"]
        there = self.device["name"] if self.device else None
        for category, row in sorted(self.items(), key=lambda item: -item[1]["peak_bytes"]):
            if row["peak_bytes"] and category != there:
                lines.append(f"{category:24}{_size(row['bytes']):>12}{_size(row['peak_bytes']):>12}")
        lines.append(f"{'all':24}{_size(self.bytes):>12}{_size(self.peak_bytes):>12}")
        if self.budget_bytes:
            lines.append(f"{'budget':24}{_size(self.budget_bytes):>12}")
        return "\n".join(lines + (self._card_lines() if there else []))

    def _card_lines(self):
        name, row = self.device["name"], self[self.device["name"]]
        lines = [f"{name + ' ' + owner:24}{_size(now):>12}" for owner, now in row["owners"].items() if now]
        lines.append(f"{name + ' all':24}{_size(row['bytes']):>12}{_size(row['peak_bytes']):>12}")
        if self.device["budget_bytes"]:
            lines.append(f"{name + ' budget':24}{_size(self.device['budget_bytes']):>12}")
        return lines

    __repr__ = __str__


def memory():
    return Memory(_C.memory(), _C.info(), _C.device())


def report(out):
    """What --report prints at the end of a script."""
    held = memory()
    info = held.info
    print(held, file=out)
    means = [f"{info['slices']} slices" if info["slices"] > 1 else "",
             f"{info['recomputed']} values computed again" if info["recomputed"] else "",
             f"{_size(info['spilled_bytes'])} in a file" if info["spilled_bytes"] else ""]
    means = ", ".join(m for m in means if m) or "nothing: all fits as it is"
    print(f"runs {info['flushes']}, planned {info['misses']} times in {info['plan_seconds']:.3f} s; the newest plan uses "
          f"{means}", file=out)
