#!/usr/bin/env python3
"""python -m snug: scripts run as they are; budget, report, check; errors of a process as a whole."""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = """
import sys
import tensorflow as tf
from tensorflow import nn
import tensorflow.math
x = tf.constant([1.0, 2.0])
print(nn.relu(x - 1.5).numpy().tolist(), sys.argv[1:], __name__, tf.__version__)
"""


def snug(*args, text="", **environment):
    """(exit code, stdout, stderr) of `python -m snug ARGS SCRIPT`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.py")
        with open(path, "w") as f:
            f.write(text)
        command = [sys.executable, "-B", "-m", "snug", *[path if a == "SCRIPT" else a for a in args]]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=600)
        return done.returncode, done.stdout, done.stderr.replace(folder + "/", "")


class Launcher(unittest.TestCase):
    def test_a_script_runs_as_main_with_its_arguments(self):
        code, out, err = snug("SCRIPT", "a", "--b", text=SCRIPT)
        self.assertEqual((code, out), (0, "[0.0, 0.5] ['a', '--b'] __main__ 2.21.0\n"), err)

    def test_budget_by_option_and_environment(self):
        text = "import snug; print(snug.memory().budget_bytes)"
        self.assertEqual(snug("--budget", "2GiB", "SCRIPT", text=text)[1], f"{2 << 30}\n")
        self.assertEqual(snug("SCRIPT", text=text, SNUG_BUDGET="1GiB")[1], f"{1 << 30}\n")
        code, _, err = snug("--budget=lots", "SCRIPT", text=text)
        self.assertNotEqual(code, 0)
        self.assertIn("lots", err)

    def test_errors_begin_in_the_script(self):
        code, _, err = snug("SCRIPT", text="import tensorflow as tf\ndef f():\n    return tf.ones((2, 3)) @ tf.ones((2, 3))\nf()\n")
        self.assertEqual(code, 1)
        self.assertTrue(err.startswith('Traceback (most recent call last):\n  File "script.py", line 4, in <module>'), err)
        text = "import tensorflow as tf\n@tf.function\ndef f(x):\n    return tf.reshape(x, (7,))\nf(tf.ones(3))\n"
        places = [line.split(",")[:2] for line in snug("SCRIPT", text=text)[2].splitlines() if "File" in line]
        self.assertEqual(places, [['  File "script.py"', " line 5"], ['  File "script.py"', " line 4"]])
        code, _, err = snug("SCRIPT", text="def f(:\n")
        self.assertEqual((code, err.split("\n")[0]), (1, '  File "script.py", line 1'))

    def test_old_imports_of_scripts_about_memory(self):
        text = ("from tensorflow.compat.v1 import ConfigProto, Session\nfrom tensorflow.compat.v1.keras.backend import get_session, set_session\n"
                "config = ConfigProto()\nconfig.gpu_options.allow_growth = True\nsession = Session(config=config)\nset_session(session)\n"
                "print(get_session() is session)\n")
        self.assertEqual(snug("SCRIPT", text=text)[:2], (0, "True\n"))

    def test_report_says_who_held_what(self):
        code, _, err = snug("--report", "SCRIPT", text="import tensorflow as tf\nfloat(tf.reduce_sum(tf.ones((9, 9)) * 2.0))")
        self.assertEqual(code, 0)
        self.assertIn("peak", err)
        self.assertIn("planned 1 times", err)

    def test_check_lists_missing_names_with_lines(self):
        text = "import tensorflow as tf\nraise SystemExit(9)\ntf.reduce_sum\ntf.no_such_thing(1)\ntf.math.neither_this\n"
        code, out, _ = snug("--check", "SCRIPT", text=text)
        self.assertEqual(code, 1)
        self.assertEqual([line.split(":")[1] for line in out.splitlines()[:-1]], ["4", "5"])
        self.assertEqual(snug("--check", "SCRIPT", text="import tensorflow as tf\ntf.add\n")[0], 0)

    def test_check_says_what_it_cannot_read(self):
        self.assertEqual(snug("--check", "nothing.py", text="")[::2], (1, "snug: cannot open nothing.py: No such file or directory\n"))
        self.assertEqual(snug("--check", "nothing", text="")[::2], (1, "snug: cannot open nothing: No such file or directory\n"))
        self.assertRegex(snug("--check", "SCRIPT", text="\ndef f(:\n")[2], r"^snug: .*script\.py:2: invalid syntax\n$")

    def test_an_error_in_the_script_is_the_scripts(self):
        code, _, err = snug("SCRIPT", text="import tensorflow as tf\ntf.ones((2, 3)) @ tf.ones((2, 3))\n")
        self.assertEqual(code, 1)
        self.assertIn("InvalidArgumentError", err)
        self.assertIn('script.py", line 2', err)

    def test_a_module_that_is_not_there_says_so(self):
        code, _, err = snug("SCRIPT", text="import tensorflow.python.nothing\n")
        self.assertIn("not in Snug", err)

    def test_import_is_light(self):
        text = ("import sys, numpy, resource\nbefore = set(sys.modules)\nimport tensorflow as tf\n"
                "print(sorted(m for m in set(sys.modules) - before if not m.startswith(('snug', 'tensorflow'))))")
        out = snug("SCRIPT", text=text)[1]
        self.assertLessEqual(len(eval(out)), 12, out)


if __name__ == "__main__":
    unittest.main()
