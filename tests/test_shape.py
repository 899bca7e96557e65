#!/usr/bin/env python3
"""The shape tests can fail: each rule of rooms.py catches a file that breaks it, and an operator row that lacks a rule, a kernel
or a case set does not build. usage: test_shape.py SOURCE BUILD"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
ROW = "SNUG_OP(frobnicate, 1, none, {shape}, {gradient}, NOTHING, NEVER, {axes}, PURE, NO, {build}, {fuses}, {flops}, {speed}, {cpu}, host, {chain}, {cases})\n"
WHOLE = {"shape": "same", "gradient": "identity", "axes": "elementwise", "build": "OWN", "fuses": "none", "flops": "element", "speed": "LOOP(1)", "cpu": "identity", "chain": "alone", "cases": "unary"}


class Rooms(unittest.TestCase):
    def complaints(self, path, text, *empty):
        """What rooms.py says about a tree with this one file, and some empty ones."""
        with tempfile.TemporaryDirectory() as root:
            for name, content in ((path, text), ("tests/style-exceptions", ""), *((e, "") for e in empty)):
                os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
                with open(os.path.join(root, name), "w") as f:
                    f.write(content)
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            run = subprocess.run([sys.executable, os.path.join(SOURCE, "tests", "rooms.py"), root], capture_output=True, text=True)
            return run.returncode, run.stdout

    def catches(self, path, text, piece):
        code, said = self.complaints(path, text)
        self.assertEqual(code, 1, said)
        self.assertIn(piece, said)

    def test_a_sound_file_passes(self):
        code, said = self.complaints("src/plan/a.c", '#include "graph/graph.h"\n\nint add(int a, int b) {\n    return a + b;\n}\n')
        self.assertEqual(code, 0, said)

    def test_including_a_room_below(self):
        self.catches("src/graph/a.c", '#include "plan/plan.h"\n', "room graph includes plan/plan.h from the room plan below it")

    def test_the_command_sees_public_headers_only(self):
        self.catches("src/cli/a.c", '#include "exec/exec.h"\n', "only public headers")

    def test_memory_outside_its_room(self):
        self.catches("src/op/a.c", "void *f(void) {\n    return malloc(3);\n}\n", "requests memory outside src/memory")

    def test_a_switch_over_operators(self):
        self.catches("src/plan/a.c", "int f(int op) {\n    switch (op) {\n    case SN_OP_add:\n        return 1;\n    }\n    return 0;\n}\n",
                     "a switch over operators")

    def test_a_function_longer_than_a_screen(self):
        self.catches("src/plan/a.c", "int f(int a) {\n" + "    a++;\n" * 60 + "    return a;\n}\n", "function f has 63 lines")

    def test_a_head_of_several_lines_counts_from_its_brace(self):
        self.catches("src/plan/a.c", "static int f(int a,\n             int b) {\n" + "    a++;\n" * 60 + "    return a + b;\n}\n", "function f has")

    def test_a_function_that_nobody_calls(self):
        self.catches("src/plan/a.c", "void sn_a(void) {\n    sn_b();\n}\n", "nobody in src calls sn_a")
        for use in ("void f(void) {\n    sn_a();\n}\n", "const table t = {sn_a};\n"):
            code, said = self.complaints("src/plan/a.c", "void sn_a(void) {\n    a++;\n}\n" + use)
            self.assertEqual(code, 0, said)

    def test_printing_and_aborting(self):
        self.catches("src/exec/a.c", "void f(void) {\n    abort();\n}\n", "never prints, exits or aborts")

    def test_two_files_of_one_name(self):
        code, said = self.complaints("src/plan/plan.h", "", "src/op/plan.h")
        self.assertEqual(code, 1, said)
        self.assertIn("has the name of src/op/plan.h", said)

    def test_an_exception_that_is_no_longer_needed(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "tests"))
            with open(os.path.join(root, "tests", "style-exceptions"), "w") as f:
                f.write("gone because it was long\n")
            run = subprocess.run([sys.executable, os.path.join(SOURCE, "tests", "rooms.py"), root], capture_output=True, text=True)
            self.assertIn("gone is listed but fits", run.stdout)


class Rows(unittest.TestCase):
    """A copy of the tree's sources with one more row; only the files that expand the table are compiled and linked."""

    def chain_compiles(self, table, root):
        """Whether the GPU's chains, in the emulator, compile with this table."""
        os.makedirs(os.path.join(root, "op"), exist_ok=True)
        with open(os.path.join(root, "op", "ops.def"), "w") as f:
            f.write(table)
        include = ["-I" + i for i in (root, os.path.join(SOURCE, "src"), os.path.join(SOURCE, "include"), os.path.join(SOURCE, "tests"))]
        flags = ["-std=gnu++17", "-fsyntax-only", "-w", "-DSN_CUDA_EMULATED", '-DSN_CUDA_EMULATOR="support/cuda_emulator.h"', "-x", "c++"]
        return subprocess.run(["c++"] + flags + include + [os.path.join(SOURCE, "src", "kernels", "cuda", "chain.cu")], capture_output=True).returncode == 0

    @unittest.skipUnless(shutil.which("c++"), "no C++ compiler")
    def test_the_column_chain_and_the_functions_agree(self):
        with open(os.path.join(SOURCE, "src", "op", "ops.def")) as f:
            table = f.read()
        says = lambda name, word: re.subn(r"(?m)^(SNUG_OP\(%s,.*, +)(?:step|alone)(, +\w+\))$" % name, r"\g<1>%s\2" % word, table)
        for name, word, compiles in (("neg", "step", True), ("neg", "alone", False), ("cast", "alone", False), ("normalise", "alone", False),
                                     ("sign", "alone", True), ("sign", "step", False), ("matmul", "step", False)):
            with self.subTest(row=name, says=word), tempfile.TemporaryDirectory() as root:
                changed, n = says(name, word)
                self.assertEqual(n, 1)
                self.assertEqual(self.chain_compiles(changed, root), compiles)

    def links(self, **missing):
        with tempfile.TemporaryDirectory() as root:
            shutil.copytree(os.path.join(SOURCE, "src"), os.path.join(root, "src"))
            with open(os.path.join(root, "src", "op", "ops.def"), "a") as f:
                f.write(ROW.format(**{**WHOLE, **missing}))
            objects = []
            for source, flags in (("src/op/table.c", []), ("src/graph/gradient.c", []), ("src/kernels/cpu/families.c", ["-DSN_ISA=base"]), ("src/kernels/cpu/speed.c", []),
                                  ("tests/support/cases.c", [])):
                at = os.path.join(root if source.startswith("src") else SOURCE, source)
                out = os.path.join(root, os.path.basename(source) + ".o")
                include = [os.path.join(root, "src"), os.path.join(SOURCE, "include"), os.path.join(SOURCE, "tests")]
                command = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-c", at, "-o", out] + flags + ["-I" + i for i in include]
                if subprocess.run(command, capture_output=True).returncode:
                    return False
                objects.append(out)
            link = ["cc", "-shared", "-Wl,--no-undefined", "-Wl,--allow-multiple-definition", "-o", os.path.join(root, "all.so")] + objects
            link += [os.path.join(BUILD, "libsnug_test_support.a"), os.path.join(BUILD, "libsnug.a")]
            if shutil.which("c++"):
                with open(os.path.join(root, "src", "op", "ops.def")) as f:
                    if not self.chain_compiles(f.read(), os.path.join(root, "chain")):
                        return False
            return subprocess.run(link + ["-ldnnl", "-ljansson", "-lz", "-lgomp", "-lcmocka", "-lm", "-lpthread"], capture_output=True).returncode == 0

    def test_a_whole_row_builds(self):
        self.assertTrue(self.links())

    def test_a_row_without_a_part_does_not(self):
        for part in WHOLE:
            with self.subTest(part=part):
                self.assertFalse(self.links(**{part: "nowhere"}))


if __name__ == "__main__":
    unittest.main()
