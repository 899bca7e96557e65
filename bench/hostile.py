#!/usr/bin/env python3
"""How long files that nobody vouches for take: those of tests/fuzz/corpus, each by its target (which also writes what it could read and reads
it again), and those that tests/python/test_bombs.py makes, each by its door.

usage: bench/hostile.py BUILD

Milliseconds of the processor, of all threads, the least of three (of two for Python's files): other work on the machine counts for little. Prints
the median and the most of both and each file that takes more than 100 ms; ends with 1 where there is one."""
import os
import statistics
import subprocess
import sys
import time
import unittest

MOST_MS = 100
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def corpus(build):
    """[(name, milliseconds)] of the C parsers."""
    said = subprocess.run([os.path.join(build, "test_fuzz_corpus"), "--times"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in said.splitlines()]
    return [(f"{target}/{name}", float(ms)) for target, name, ms in rows]


def doors():
    """[(name, milliseconds)] of what Python's doors refuse; run by build/venv's interpreter."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "python"))
    import test_bombs
    found = []

    class Timed(test_bombs.Bombs):
        def refused(self, load, words="", kinds=(ValueError,)):
            least = float("inf")
            for _ in range(2):
                begin = time.process_time()
                with self.assertRaises(kinds):
                    load()
                least = min(least, 1e3 * (time.process_time() - begin))
            found.append((f"{self._testMethodName}: {words or len(found)}", least))
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Timed)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
    if not result.wasSuccessful():
        sys.exit(2)
    return found


def tell(kind, rows):
    """Prints a line for them and one for each that is slow; how many those are."""
    times = [ms for _, ms in rows]
    slow = sorted((row for row in rows if row[1] > MOST_MS), key=lambda row: -row[1])
    print(f"{kind}: {len(rows)} inputs, median {statistics.median(times):.2f} ms, most {max(times):.1f} ms, {len(slow)} beyond {MOST_MS} ms")
    for name, ms in slow:
        print(f"  {ms:7.0f} ms  {name}")
    return len(slow)


if __name__ == "__main__":
    if sys.argv[1] == "--doors":
        sys.exit(tell("by Python's doors", doors()) > 0)
    slow = tell("by the C parsers", corpus(sys.argv[1]))
    sys.stdout.flush()
    python = os.path.join(sys.argv[1], "venv", "bin", "python")
    code = subprocess.run([python, "-B", os.path.abspath(__file__), "--doors"]).returncode
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    sys.exit(code or slow > 0)
