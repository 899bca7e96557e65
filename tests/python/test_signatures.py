#!/usr/bin/env python3
"""Nothing is accepted and ignored: each parameter of each function is read by its code, refused when it is not its default, or stands in one
of the tables below with the reason why no result can depend on it."""
import ast
import fnmatch
import functools
import glob
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOOR = os.path.join(ROOT, "python", "snug")

# Parameters that change no value, wherever they stand.
HARMLESS = {
    "name": "what an operation is called",
    "scope": "what operations are called, in TensorFlow 1",
    "shared_name": "what a resource is called",
    "experimental_is_anonymous": "what a table is called",
    "example_names": "what errors call a row",
    "example_name": "what errors call a row",
    "tensor_array_name": "what a TensorArray is called",
    "title": "of a window that is not opened",
    "summarize": "how much of a value an error shows",
    "stack_height_limit": "how much an error shows",
    "path_length_limit": "how much an error shows",
    "log_warning": "what is printed",
    "warn": "what is printed",
    "verbose": "what is printed",
    "use_locking": "assignments are one after the other anyway",
    "read_value": "what is assigned is given in either case, and costs nothing where nobody reads it",
    "validate": "rows are always checked",
    "validate_shape": "a value of another shape is always an error, when it is assigned",
    "validate_args": "an argument that is wrong is an error anyway, or has no defined result",
    "validate_indices": "indices of sets are brought in order, those of gathers checked, in any case",
    "parallel_iterations": "how much is done at once",
    "swap_memory": "where values are kept meanwhile",
    "num_parallel_batches": "how much is done at once",
    "num_parallel_reads": "how much is done at once",
    "reader_num_threads": "how much is done at once",
    "buffer_size": "how much is read at once",
    "buffer_output_elements": "how much is made early",
    "prefetch_input_elements": "how much is made early",
    "synchronous": "how much is done at once",
    "use_unbounded_threadpool": "how much is done at once",
    "use_multiprocessing": "how much is done at once",
    "max_queue_size": "how much is made early",
    "unroll": "how a loop is written down",
    "implementation": "how a recurrent step is computed",
    "deterministic": "the order is always the one of deterministic=True, which is among those that False permits",
    "sloppy": "the order is always the strict one, which is among those that are permitted",
    "sloppy_ordering": "the order is always the strict one, which is among those that are permitted",
    "sorted": "what is sorted needs no other way",
    "stable": "the order is always the stable one",
    "caching_device": "where a value is kept",
    "gate_gradients": "when gradients are computed",
    "aggregation_method": "how gradients are added up",
    "colocate_gradients_with_ops": "where gradients are computed",
    "synchronization": "how replicas agree, of which there is one",
    "aggregation": "how replicas agree, of which there is one",
    "skip_gradients_aggregation": "how replicas agree, of which there is one",
    "communication_options": "how replicas agree, of which there is one",
    "cross_device_ops": "how replicas agree, of which there is one",
    "options": "hints: which device reads and writes files, how replicas agree, what is traced",
    "run_metadata": "a record that stays empty",
    "autograph": "Python's own control flow is followed in either case",
    "jit_compile": "how a function is compiled",
    "experimental_compile": "how a function is compiled",
    "experimental_implements": "a mark for converters of graphs",
    "experimental_autograph_options": "Python's own control flow is followed in either case",
    "experimental_attributes": "marks for converters of graphs",
    "experimental_follow_type_hints": "nothing of TensorFlow 2.21 reads it either",
    "experimental_use_pfor": "how a loop is run",
    "fallback_to_while_loop": "how a loop is run",
    "infer_shape": "shapes are those of the values",
    "shape_invariants": "extents may change from round to round anyway",
    "expected_shape": "nothing of TensorFlow reads it either",
    "experimental_enable_variable_lifting": "how graphs of functions own variables",
    "free_memory": "memory is given back in either case",
}

# Functions that have parameters because somebody calls them with all of them: "file: name", with patterns.
PROTOCOLS = {
    "*: *__exit__": "Python says which parameters",
    "*: *.on_*": "callbacks are told all there is to know",
    "*: *.find_spec": "Python's import says which parameters",
    "*: *.__get__": "Python says which parameters",
    "_lookup.py: StaticHashTable._missing": "subclasses need the key",
    "_pickles.py: _bytes": "one of a table of functions that are called alike",
    "_pickles.py: _text": "one of a table of functions that are called alike",
    "_pickles.py: _long": "one of a table of functions that are called alike",
    "compat_v1/train.py: *Optimizer.update": "optimizers are told the number of the step, which some need",
    "keras/_captured.py: _*": "layers that a pipeline runs are called alike",
    "keras/*: *.call": "layers are told `training` and `mask`, and need not heed them",
    "keras/*: *.__call__": "preprocessing is the same in training; what users override is told the weights",
    "keras/*: *.build": "layers are told the shape of what they are given",
    "keras/*: *._build_for": "models are told the call that builds them",
    "keras/*: *.compute_mask": "layers are told what they are given",
    "keras/_training.py: Trainer.compute_loss": "what users override is told all there is to know",
    "keras/_training.py: Trainer.compute_metrics": "what users override is told all there is to know",
    "keras/_optimizer_own.py: Optimizer.finalize_variable_values": "what users override is told the variables",
}

# Parameters of one function: ("file: name", parameter).
HERE = {
    ("_graph.py: enable_eager_execution", "device_policy"): "where tensors are copied to by themselves",
    ("_graph.py: enable_eager_execution", "execution_mode"): "when what is recorded runs",
    ("data.py: _Windows._expand", "workers"): "how much is done at once",
    ("_distribute.py: Strategy.update", "group"): "one replica's results are a group",
    ("_distribute.py: Strategy.reduce_to", "reduce_op"): "one replica's value is its sum and its mean",
    ("_distribute.py: Strategy.reduce_to", "destinations"): "where a value is kept",
    ("_distribute.py: _Replica.all_reduce", "reduce_op"): "one replica's value is its sum and its mean",
    ("_distribute.py: TPUStrategy.__init__", "tpu_cluster_resolver"): "what there is to compute on has been found already",
    ("_flow.py: TensorArray.__init__", "clear_after_read"): "what nobody holds goes by itself",
    ("_flow.py: TensorArray.__init__", "colocate_with_first_write_call"): "where a value is kept",
    ("_flow.py: moments", "shift"): "nothing of TensorFlow 2 reads it either",
    ("_graph.py: variable_scope", "values"): "for a check of graphs",
    ("_misc.py: name_scope.__init__", "values"): "for a check of graphs",
    ("_io.py: TFRecordOptions.__init__", "flush_mode"): "how well a file is packed",
    ("_io.py: TFRecordOptions.__init__", "input_buffer_size"): "how much is read at once",
    ("_io.py: TFRecordOptions.__init__", "output_buffer_size"): "how much is written at once",
    ("_io.py: TFRecordOptions.__init__", "window_bits"): "how well a file is packed",
    ("_io.py: TFRecordOptions.__init__", "compression_level"): "how well a file is packed",
    ("_io.py: TFRecordOptions.__init__", "compression_method"): "how well a file is packed",
    ("_io.py: TFRecordOptions.__init__", "mem_level"): "how well a file is packed",
    ("_io.py: TFRecordOptions.__init__", "compression_strategy"): "how well a file is packed",
    ("_lookup.py: MutableHashTable.__init__", "checkpoint"): "tables are no part of checkpoints",
    ("_lookup.py: DenseHashTable.__init__", "checkpoint"): "tables are no part of checkpoints",
    ("_lookup.py: DenseHashTable.__init__", "initial_num_buckets"): "how much room a table begins with",
    ("_misc.py: numpy_function", "stateful"): "the function is called each time, as True says; False permits fewer calls",
    ("_misc.py: to_graph", "recursive"): "Python's own control flow is followed",
    ("_misc.py: to_graph", "experimental_optional_features"): "Python's own control flow is followed",
    ("_misc.py: to_code", "recursive"): "Python's own control flow is followed",
    ("_misc.py: to_code", "experimental_optional_features"): "Python's own control flow is followed",
    ("_misc.py: is_gpu_available", "cuda_only"): "each card is CUDA's",
    ("_numpy.py: array", "copy"): "tensors do not change: a copy cannot be told from its original",
    ("_arrays.py: _Capsule.__dlpack__", "max_version"): "who knows a later version reads the first",
    ("_saved.py: load", "tags"): "Snug's files have one graph",
    ("_train.py: _Status.initialize_or_restore", "session"): "variables have their values when they are made",
    ("_variable.py: Variable.eval", "session"): "variables of eager programs are in no session",
    ("_train.py: checkpoints_iterator", "min_interval_secs"): "nobody else writes, so there is nothing to wait for",
    ("_train.py: checkpoints_iterator", "timeout"): "nobody else writes, so there is nothing to wait for",
    ("_train.py: checkpoints_iterator", "timeout_fn"): "nobody else writes, so there is nothing to wait for",
    ("compat_v1/data.py: Iterator.from_structure", "output_classes"): "elements are tensors",
    ("compat_v1/train.py: Saver.__init__", "restore_sequentially"): "how much is done at once",
    ("compat_v1/train.py: Saver.__init__", "save_relative_paths"): "paths in the file `checkpoint` are always beside it",
    ("compat_v1/train.py: Saver.save", "meta_graph_suffix"): "graphs are not written",
    ("compat_v1/train.py: Saver.save", "write_meta_graph"): "graphs are not written",
    ("compat_v1/train.py: Saver.save", "strip_default_attrs"): "graphs are not written",
    ("compat_v1/train.py: Saver.save", "save_debug_info"): "graphs are not written",
    ("errors.py: OpError.__init__", "args"): "payloads that only TensorFlow's runtime makes",
    ("keras/_backend_old.py: rnn", "input_length"): "the length is that of the input",
    ("keras/_lookup.py: _Lookup.__init__", "dtype"): "numbers of words are int64 whatever it says, in Keras too",
    ("keras/_lookup.py: _Lookup.adapt", "batch_size"): "what is counted does not depend on batches",
    ("keras/_ops_more.py: argpartition", "kth"): "what is sorted is parted at each place",
    ("keras/_ops_more.py: ctc_decode", "beam_width"): "of strategy='beam_search', which is refused",
    ("keras/_ops_more.py: ctc_decode", "top_paths"): "of strategy='beam_search', which is refused",
    ("keras/_symbolic.py: KerasTensor.__init__", "record_history"): "a note that nobody asks for",
    ("keras/random.py: SeedGenerator.next", "ordered"): "seeds are made one after the other",
    ("keras/utils.py: name_scope", "caller"): "a note for a name that is not asked for",
    ("keras/utils.py: name_scope", "deduplicate"): "names are made different in either case",
    ("keras/preprocessing/image.py: ImageDataGenerator.fit", "seed"): "of augment=True, which is refused",
    ("tensorflow/python/client/device_lib.py: list_local_devices", "session_config"): "devices are not shared out by sessions",
}
# Files whose functions write nothing, and say so once.
SILENT = {"_summary.py": "tf.summary and tf.profiler: no event files are written", "compat_v1/summary.py": "no event files are written",
          "keras/callbacks.py: TensorBoard.__init__": "no event files are written"}


# --- Python -------------------------------------------------------------------------------------------------
def functions(tree, path=()):
    """(dotted name, node) of all functions in a module, lambdas as well."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if isinstance(node, ast.FunctionDef):
                yield ".".join(path + (node.name,)), node
            yield from functions(node, path + (node.name,))
        else:
            if isinstance(node, ast.Lambda):
                yield ".".join(path + ("<lambda>",)), node
            yield from functions(node, path)


def refused(node):
    """Parameters that `default_only` names."""
    found = set()
    for d in getattr(node, "decorator_list", ()):
        if isinstance(d, ast.Call) and getattr(d.func, "id", "") == "default_only":
            found |= set(d.args[0].value.split())
    return found


def bodies(node):
    """The statements, less the docstring."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    return [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def parameters(node):
    """(names, the one with two stars)"""
    a = node.args
    every = a.posonlyargs + a.args + a.kwonlyargs + [x for x in (a.vararg, a.kwarg) if x]
    return [x.arg for x in every], a.kwarg.arg if a.kwarg else None


def unread(node):
    """Parameters that no code reads; of **words, also where only single ones are picked and the others are left."""
    names, words = parameters(node)
    read, whole = set(), False
    picked = set()
    for statement in bodies(node):
        for n in ast.walk(statement):
            one = isinstance(n, ast.Subscript) or (isinstance(n, ast.Attribute) and n.attr in ("pop", "get"))
            if one and isinstance(n.value, ast.Name) and n.value.id == words:
                picked.add(id(n.value))
            if isinstance(n, ast.Compare) and any(isinstance(o, (ast.In, ast.NotIn)) for o in n.ops):
                picked.update(id(c) for c in n.comparators if isinstance(c, ast.Name) and c.id == words)
    for statement in bodies(node):
        for n in ast.walk(statement):
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store):
                read.add(n.id)
                whole = whole or (n.id == words and id(n) not in picked)
    out = [n for n in names if n not in read and n not in ("self", "cls")]
    return out + ([words] if words in read and not whole else [])


def thrown_away(node):
    """Words that are taken out of **words by a statement of its own, so that nobody sees what they were."""
    for statement in (n for s in bodies(node) for n in ast.walk(s) if isinstance(n, ast.Expr)):
        for call in statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]:
            at = call.func if isinstance(call, ast.Call) else None
            taken = isinstance(at, ast.Attribute) and at.attr == "pop" and getattr(at.value, "id", None) in (parameters(node)[1] or "", "kwargs")
            if taken and isinstance(call.args[0], ast.Constant):
                yield call.args[0].value


def is_stub(node):
    """A function that only raises, or does nothing: for others to override."""
    return all(isinstance(s, (ast.Pass, ast.Raise)) for s in bodies(node)) and not isinstance(node, ast.Lambda)


class Door(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found, cls.refusals = [], []
        for path in sorted(glob.glob(os.path.join(DOOR, "**", "*.py"), recursive=True)):
            place = os.path.relpath(path, DOOR).replace(os.sep, "/")
            with open(path, encoding="utf-8") as f:
                tree = ast.parse(f.read())
            for name, node in functions(tree):
                cls.refusals += [(f"{place}: {name}", p, node) for p in refused(node)]
                if isinstance(node, ast.Lambda):        # theirs is the caller's business, but for words that are swallowed
                    cls.found += [(place, f"{place}: {name}", p) for p in unread(node) if p == parameters(node)[1]]
                elif not is_stub(node):
                    cls.found += [(place, f"{place}: {name}", p) for p in [*unread(node), *thrown_away(node)] if p not in refused(node)]

    def reason(self, place, name, parameter):
        """The row that says why, or None."""
        if parameter in HARMLESS:
            return ("HARMLESS", parameter)
        if (name, parameter) in HERE:
            return ("HERE", (name, parameter))
        protocol = next((p for p in PROTOCOLS if fnmatch.fnmatchcase(name, p)), None)
        if protocol:
            return ("PROTOCOLS", protocol)
        return next((("SILENT", s) for s in (place, name) if s in SILENT), None)

    def test_each_parameter_is_read_or_refused(self):
        ignored = [f"{name}({parameter})" for place, name, parameter in self.found if self.reason(place, name, parameter) is None]
        self.assertEqual(ignored, [], "honour these, refuse what is not their default (snug._given), or say in a table why no result can depend on them")

    def test_no_row_is_stale(self):
        used = {self.reason(*f) for f in self.found}
        in_c = {name for _, name in RowsOfC.unread()}
        stale = [(table, key) for table, rows in (("HARMLESS", HARMLESS), ("HERE", HERE), ("PROTOCOLS", PROTOCOLS), ("SILENT", SILENT))
                 for key in rows if (table, key) not in used and not (table == "HARMLESS" and key in in_c)]
        self.assertEqual(stale, [], "these are read, or are not there any more")

    def test_what_is_refused_has_a_default(self):
        for name, parameter, node in self.refusals:
            names, _ = parameters(node)
            a = node.args
            defaults = names[len(a.posonlyargs + a.args) - len(a.defaults):len(a.posonlyargs + a.args)] + \
                [k.arg for k, d in zip(a.kwonlyargs, a.kw_defaults) if d is not None]
            self.assertIn(parameter, defaults, name)


# --- the table in C -----------------------------------------------------------------------------------------
# Arguments of rows that change no value: for the functions that have them.
OF_ROWS = {
    "message": "what an error says", "synchronized": "how replicas agree, of which there is one", "a_is_sparse": "how a product is computed",
    "b_is_sparse": "how a product is computed", "grad_a": "a mark for gradients", "grad_b": "a mark for gradients",
    "var": "for an assignment that TensorFlow 2 does otherwise", "saturate": "what does not fit is always cut to the nearest that does",
    "assume_unique": "how it is computed", "flash_attention": "how it is computed", "alg": "there is one algorithm",
    "rng_alg": "there is one algorithm", "conjugate": "of real numbers",
}
ELSEWHERE = {("jpeg_quality", "dct_method"): "how fast a picture is read, within what it may differ by", ("split", "num"): "follows from others",
             ("linspace", "axis"): "read by a helper",
             ("moments", "shift"): "nothing of TensorFlow 2 reads it either"}


def table(name):
    """The path of one of the tables of src/, in whichever room it stands."""
    path, = glob.glob(os.path.join(ROOT, "src", "*", name))
    return path


class RowsOfC(unittest.TestCase):
    @staticmethod
    @functools.cache
    def rows():
        """(function, [C functions that may read its arguments], signature) of each row of the two tables."""
        with open(table("functions.def")) as f:
            eager = re.findall(r'^SNUG_FN\((\w+), [\w |]+, "[^"]*", "([^"]*)"', f.read(), re.M)
        with open(table("data_ops.def")) as f:
            data = re.findall(r'^SNUG_DATA_OP\((\w+), (\w+), (\w+), "[^"]*", "([^"]*)"', f.read(), re.M)
        return [(name, ["sn_fn_" + name], arguments) for name, arguments in eager] + \
            [(run, ["sn_data_" + run, "sn_spec_" + spec, "sn_prepare_" + prepare], arguments) for run, spec, prepare, arguments in data]

    @staticmethod
    @functools.cache
    def texts():
        """Of some C functions, the words in quotes in their code and in all that they call in the rooms of the tables, or in files of functions elsewhere."""
        words, calls = {}, {}
        rooms = {os.path.dirname(table(name)) for name in ("functions.def", "data_ops.def")} | {os.path.join(ROOT, "src", "eager")}
        for path in sorted({path for room in rooms for path in glob.glob(os.path.join(room, "*.c"))} |
                           set(glob.glob(os.path.join(ROOT, "src", "*", "functions_*.c")))):
            with open(path) as f:
                for name, body in re.findall(r"^\w[\w ]* \*?(\w+)\((?:[^;{}()]|\([^()]*\))*\) \{\n(.*?)^\}", f.read(), re.M | re.S):
                    words.setdefault(name, set()).update(re.findall(r'"(\w+)"', body))
                    calls.setdefault(name, set()).update(re.findall(r"\b(\w+)\b", body))
        calls = {name: called & words.keys() for name, called in calls.items()}

        def reached(functions):
            seen, stack = set(), [f for f in functions if f in words]
            while stack:
                at = stack.pop()
                if at not in seen:
                    seen.add(at)
                    stack += calls[at]
            return set().union(*(words[n] for n in seen)) if seen else set()
        return reached

    @classmethod
    def unread(cls):
        """(function, argument) that the table has and no code asks for; tensors are asked for by their places."""
        text_of = cls.texts()
        found = set()
        for function, code, arguments in cls.rows():
            text = text_of(code)
            found |= {(function, name) for name, kind in re.findall(r"(\w+):([A-Z])\S*", arguments) if kind in "BDINS" and name not in text}
        return found

    def test_each_argument_of_a_row_is_read(self):
        text_of = self.texts()
        self.assertGreater(sum(bool(text_of(code)) for _, code, _ in self.rows()), 440)      # macros make the others, of tensors alone
        unread = sorted(f"{f}: {a}" for f, a in self.unread() if a not in HARMLESS and a not in OF_ROWS and (f, a) not in ELSEWHERE)
        self.assertEqual(unread, [])

    def test_no_row_is_stale(self):
        unread = self.unread()
        self.assertEqual([a for a in OF_ROWS if not any(a == name for _, name in unread)] + [k for k in ELSEWHERE if k not in unread], [])


if __name__ == "__main__":
    unittest.main()
