"""`tf` for Snug's own Python files: the names of snug.tensorflow, found when first used."""
import sys


def graph():
    """snug._graph while a graph of TensorFlow 1 is being built, else None."""
    found = sys.modules.get("snug._graph")
    return found if found is not None and found.active() else None


class _Names:
    def __getattr__(self, name):
        import snug.tensorflow
        found = getattr(snug.tensorflow, name)
        setattr(self, name, found)
        return found


tf = _Names()
