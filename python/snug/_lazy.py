"""`tf` for Snug's own Python files: the names of snug.tensorflow, found when first used."""


class _Names:
    def __getattr__(self, name):
        import snug.tensorflow
        found = getattr(snug.tensorflow, name)
        setattr(self, name, found)
        return found


tf = _Names()
