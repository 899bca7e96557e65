"""PEP 517 backend of this checkout: CMake builds the package, this file packs it into a wheel. Standard library alone."""
import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _project():
    with open(os.path.join(ROOT, "pyproject.toml")) as f:
        text = f.read()
    return {key: re.search(rf'^{key} = "(.*)"$', text, re.M).group(1) for key in ("version", "description", "requires-python")}


def _metadata(project):
    return (f"Metadata-Version: 2.1\nName: snug\nVersion: {project['version']}\nSummary: {project['description']}\n"
            f"Requires-Python: {project['requires-python']}\nRequires-Dist: numpy\n")


def _build(folder):
    """The package as CMake leaves it: folder/python/snug."""
    cmake = ["cmake", "-S", ROOT, "-B", folder, "-DSNUG_TESTS=OFF", f"-DSNUG_PYTHON={sys.executable}"]
    subprocess.run(cmake, check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--build", folder, "--target", "snug_package", "-j", str(os.cpu_count() or 1)], check=True, stdout=sys.stderr)
    return os.path.join(folder, "python")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    name, info = f"snug-{project['version']}-cp311-abi3-{platform}.whl", f"snug-{project['version']}.dist-info"
    tag = f"Wheel-Version: 1.0\nGenerator: snug\nRoot-Is-Purelib: false\nTag: cp311-abi3-{platform}\n"
    with tempfile.TemporaryDirectory() as folder:
        root = _build(folder)
        files = {f"{info}/METADATA": _metadata(project).encode(), f"{info}/WHEEL": tag.encode()}
        for where, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f != "__pycache__"]
            for file in names:
                path = os.path.join(where, file)
                with open(path, "rb") as f:
                    files[os.path.relpath(path, root)] = f.read()
    record = ""
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in sorted(files):
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[path]).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(files[path])}\n"
            wheel.writestr(path, files[path])
        wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    project = _project()
    base = f"snug-{project['version']}"
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as out:
        for file in files:
            out.add(os.path.join(ROOT, file), f"{base}/{file}")
    return base + ".tar.gz"
