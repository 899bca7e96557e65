"""Lists that each thread has for itself: tapes that record, traces that are open."""
import concurrent.futures
import threading
import weakref


def aside(function):
    """On a thread of its own: its recording is no part of a trace that is open here."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(function).result()


class ThreadList(threading.local):
    """As much of a list as a stack needs."""

    def __init__(self, first=()):
        self.items = list(first)
        self.append, self.pop, self.remove = self.items.append, self.items.pop, self.items.remove

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __reversed__(self):
        return reversed(self.items)

    def __contains__(self, item):
        return item in self.items

    def __getitem__(self, key):
        return self.items[key]

    def __setitem__(self, key, value):
        self.items[key] = value


class WeakThreadList(threading.local):
    """The same of what others hold: an item that nobody else holds any more, as after a Ctrl-C in between, is gone."""

    def __init__(self):
        self.refs = []

    def __iter__(self):
        return iter([item for item in (ref() for ref in self.refs) if item is not None])

    def __len__(self):
        return sum(ref() is not None for ref in self.refs)

    def __contains__(self, item):
        return any(ref() is item for ref in self.refs)

    def __setitem__(self, key, items):
        self.refs[key] = [weakref.ref(item) for item in items]

    def append(self, item):
        self.refs.append(weakref.ref(item))

    def remove(self, item):
        self.refs[:] = [ref for ref in self.refs if ref() is not item and ref() is not None]
