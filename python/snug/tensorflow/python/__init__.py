"""tensorflow.python: TensorFlow's inner modules, as far as scripts reach for them. tensorflow.python.keras is keras."""
