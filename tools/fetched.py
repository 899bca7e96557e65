"""Packages that tools and tests need and Snug does not: pip puts each into build/NAME-VERSION, once."""
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Missing(Exception):
    """What is not on this machine, and how it comes here."""


def fetched(name, version, found, options=()):
    """The folder of a package, in which a file `found` is."""
    home = os.path.join(ROOT, "build", f"{name}-{version}")
    if os.path.exists(os.path.join(home, found)):
        return home
    for python in dict.fromkeys((sys.executable, shutil.which("python3") or sys.executable)):      # not each has pip
        pip = [python, "-m", "pip", "install", "-q", "--root-user-action=ignore", *options, "--target", home, f"{name}=={version}"]
        subprocess.run(pip, capture_output=True, timeout=300)
        if os.path.exists(os.path.join(home, found)):
            return home
    raise Missing(f"{name} {version} is missing and pip cannot fetch it: {' '.join(pip)}")
