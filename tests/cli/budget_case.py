"""What tests of budgets at the command's level have in common."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import files  # noqa: E402

SNUG = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/snug"
# A sanitizer build must give freed memory back: budgets count it.
os.environ["ASAN_OPTIONS"] = "allocator_may_return_null=1:quarantine_size_mb=0"
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.path.join(os.path.dirname(TESTS), "examples", "models")
MIB, PAGE = 1 << 20, 4096


class Case(unittest.TestCase):
    """A folder on a disk, with a model whose slots are worth a file."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="snug-budget-", dir="/var/tmp")  # /tmp is often memory
        layers = [files.dense("a", 2048, "relu"), files.dense("b", 1024, "relu"), files.dense("c", 10)]
        cls.wide = files.model(cls.at("wide.json"), 512, layers, optimizer="adam", loss="mse")
        cls.cnn = os.path.join(MODELS, "shapes_cnn.json")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    @classmethod
    def at(cls, name):
        return os.path.join(cls.dir, name)

    def run_snug(self, *args):
        return subprocess.run([SNUG, *map(str, args)], capture_output=True, text=True, timeout=600)

    def plan(self, *args):
        threads = [] if "--threads" in args else ["--threads", 1]
        r = self.run_snug("plan", *args, "--train", *threads, "--json")
        self.assertIn(r.returncode, (0, 3), r.stderr)
        return json.loads(r.stdout)
