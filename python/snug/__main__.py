"""python -m snug [--device D] [--budget B] [--host-budget B] [--spill DIR] [--report] [--check] SCRIPT [ARGUMENTS...]

Runs a TensorFlow script on Snug, within a budget: `import tensorflow` and `import keras` inside it give Snug.

  --device D    cpu, gpu or gpu:1; a GPU where there is one otherwise, or what the environment's SNUG_DEVICE says
  --budget B    the most the process may use of that device's memory: 2GiB, 50%, auto; SNUG_BUDGET otherwise
  --host-budget B   the same of the host's memory, beside a GPU
  --spill DIR   a folder on a disk for what does not fit otherwise
  --report      print at the end who held what, and what the planner did
  --check       run nothing; list the TensorFlow names of the script that Snug does not have"""
import os
import sys


def _options(args):
    """({option: value}, the script and its arguments)"""
    found = {}
    while args and args[0].startswith("-"):
        word = args.pop(0)
        name, given, value = word.partition("=")
        if name in ("--budget", "--spill", "--device", "--host-budget"):
            if not given:
                if not args:
                    sys.exit(f"snug: {name} needs a value")
                value = args.pop(0)
            found[name] = value
        elif name in ("--report", "--check"):
            found[name] = True
        elif name in ("-h", "--help"):
            print(__doc__)
            sys.exit(0)
        elif name == "-m" and args:
            found["-m"] = True
            break
        else:
            sys.exit(f"snug: no option {word}; see python -m snug --help")
    return found, args


def _is_on_host(options):
    """Whether --budget is one of the host's memory: no GPU is wanted, or there is none."""
    from snug import _C
    device = options.get("--device") or os.environ.get("SNUG_DEVICE") or "auto"
    return device == "cpu" or _C.device_count()[0] == 0


def _start(options):
    import runpy                             # noqa: F401 (what main needs is loaded when the process is measured)
    import snug
    from snug import _C, _hook, errors       # noqa: F401
    size, host = options.get("--budget") or os.environ.get("SNUG_BUDGET"), options.get("--host-budget")
    try:
        for text in filter(None, (size, host)):
            _C.check_budget(text)
        _C.wish(size, host)                  # the script may say yet which devices it sees
        if "--device" in options:
            _C.choose_device(options["--device"])
        if "--spill" in options:
            snug.spill(options["--spill"])
        for text in filter(None, (host, size if _is_on_host(options) else None)):
            _C.check_process(text)
        if size and _is_on_host(options):
            _C.open()                        # from now on whatever makes bytes asks first
    except ValueError as error:
        sys.exit(f"snug: {error}")
    except MemoryError as error:             # as the command ends where a budget does not suffice
        print(f"snug: {error if str(error) else _C.refusal()}", file=sys.stderr)
        sys.exit(3)
    if "--report" in options:
        import atexit
        from snug import _memory
        atexit.register(_memory.report, sys.stderr)
    snug.install()


def main():
    options, args = _options(sys.argv[1:])
    if not args:
        sys.exit(__doc__)
    if "--check" in options:
        from snug import _check
        sys.exit(_check.check(args))
    if not os.path.exists(args[0]) and "-m" not in options:
        sys.exit(f"snug: there is no file {args[0]}")
    _start(options)
    import runpy
    sys.argv = args
    sys.excepthook = _said_from_the_script
    if "-m" in options:
        sys.path[0] = os.getcwd()
        runpy.run_module(args[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
        _run_file(args[0])


def _said_from_the_script(kind, error, frames):
    """An error as the interpreter prints it, without the frames of Snug's own files, which say nothing to who wrote the script."""
    misc = sys.modules.get("snug._misc")
    if misc is None or misc.is_traceback_filtering_enabled():
        frames, seen = _of_the_script(frames), {id(error)}
        behind = error.__cause__ or error.__context__
        while behind is not None and id(behind) not in seen:
            seen.add(id(behind))
            behind.__traceback__ = _of_the_script(behind.__traceback__)
            behind = behind.__cause__ or behind.__context__
    if isinstance(error, MemoryError) and "snug._C" in sys.modules:
        said = sys.modules["snug._C"].refusal()        # to NumPy or the interpreter, which only say that there is no memory
        if said and said != str(error):
            error.add_note(said)
    sys.__excepthook__(kind, error.with_traceback(frames), frames)


def _of_the_script(frames):
    """The frames that are not Snug's."""
    import types
    kept, at = [], frames
    while at:
        name = at.tb_frame.f_code.co_filename
        if not name.startswith(_HERE) and name != "<frozen runpy>":
            kept.append(at)
        at = at.tb_next
    made = None
    for at in reversed(kept):
        made = types.TracebackType(made, at.tb_frame, at.tb_lasti, at.tb_lineno)
    return made


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _run_file(path):
    """As the interpreter runs a script: its module is __main__, and stays it for what is pickled or forked."""
    import types
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    with open(path, "rb") as f:
        code = compile(f.read(), path, "exec")
    exec(code, module.__dict__)


if __name__ == "__main__":
    main()
