"""--check: every TensorFlow name of a script that Snug does not have, with its line, without running the script."""
import ast
import importlib
import sys

from snug import _hook


class _Names(ast.NodeVisitor):
    """Collects (line, dotted name) of what is used from tensorflow and keras."""

    def __init__(self):
        self.bound = {}      # name in the script -> dotted name
        self.used = []

    def visit_Import(self, node):
        for alias in node.names:
            if _hook.real_name(alias.name):
                self.bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0])
                self.used.append((node.lineno, alias.name))

    def visit_ImportFrom(self, node):
        if node.module and not node.level and _hook.real_name(node.module):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                self.used.append((node.lineno, node.module if alias.name == "*" else full))
                self.bound[alias.asname or alias.name] = full

    def visit_Attribute(self, node):
        parts, at = [node.attr], node.value
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self.bound:
            self.used.append((node.lineno, ".".join([self.bound[at.id]] + parts[::-1])))
        else:
            self.generic_visit(node)


def lacks(dotted):
    """The part of a dotted name that is not there, and why; None when all is. Attributes of what is no module pass."""
    parts = dotted.split(".")
    try:
        at = importlib.import_module(_hook.real_name(parts[0]))
    except ImportError as error:
        return parts[0], str(error)
    for i, part in enumerate(parts[1:], 1):
        if not isinstance(at, type(sys)):
            return None
        try:
            at = getattr(at, part)
        except (AttributeError, ImportError) as error:
            try:
                at = importlib.import_module(_hook.real_name(".".join(parts[:i + 1])))
            except ImportError:
                return ".".join(parts[:i + 1]), str(error)
    return None


def check(paths):
    """Prints what is missing; 1 when something is. The first path is the script; among its arguments, what ends in .py is one, too."""
    seen, n = set(), 0
    for path in paths[:1] + [p for p in paths[1:] if p.endswith(".py")]:
        try:
            with open(path, "rb") as f:
                tree = ast.parse(f.read(), path)
        except OSError as error:
            sys.exit(f"snug: cannot open {path}: {error.strerror}")
        except SyntaxError as error:
            sys.exit(f"snug: {path}:{error.lineno}: {error.msg}")
        names = _Names()
        names.visit(tree)
        for line, dotted in sorted(set(names.used)):
            found = lacks(dotted)
            if found and (path, line, found[0]) not in seen:
                seen.add((path, line, found[0]))
                n += 1
                print(f"{path}:{line}: {found[0]}: {found[1]}")
    print(f"{n} name{'s are' if n > 1 else ' is'} not in Snug" if n else "every TensorFlow name is in Snug")
    return 1 if n else 0
