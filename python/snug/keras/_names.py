"""Automatic names: dense, dense_1, ...; and what clear_session forgets."""
import functools
import re

_counts = {}
_SNAKE = (re.compile(r"(.)([A-Z][a-z]+)"), re.compile(r"([a-z])([A-Z])"))


@functools.lru_cache(512)
def snake(name):
    name = re.sub(r"\W+", "", name)
    for pattern in _SNAKE:
        name = pattern.sub(r"\1_\2", name)
    return name.lower()


def auto_name(prefix):
    n = _counts.get(prefix, 0)
    _counts[prefix] = n + 1
    return prefix if n == 0 else f"{prefix}_{n}"


def numbered(names):
    """The second of a name gets _1, the third _2."""
    seen, out = {}, []
    for name in names:
        n = seen[name] = seen.get(name, -1) + 1
        out.append(f"{name}_{n}" if n else name)
    return out


def forget():
    _counts.clear()
