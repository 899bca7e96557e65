"""model_to_dot and plot_model: boxes, edges and refusals, over a stand-in for pydot with the part of it that Keras calls."""
import sys
import types
import unittest

import snug.tensorflow as tf

keras = tf.keras


class Thing:
    def __init__(self, *args, **settings):
        self.args, self.settings = args, settings

    def set(self, key, value):
        self.settings[key] = value


class Graph(Thing):
    written = []

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.nodes, self.edges, self.parts = [], [], []

    def set_node_defaults(self, **settings):
        self.defaults = settings

    def add_node(self, node):
        self.nodes.append(node)

    def add_edge(self, edge):
        self.edges.append(edge)

    def get_edge(self, source, target):
        return [e for e in self.edges if e.args == (source, target)]

    def add_subgraph(self, part):
        self.parts.append(part)

    def create(self):
        return b""

    def write(self, path, format):
        self.written.append((path, format))


def fake_pydot():
    made = types.ModuleType("pydot")
    made.Dot, made.Cluster, made.Node, made.Edge, made.PydotException = Graph, type("Cluster", (Graph,), {}), Thing, Thing, RuntimeError
    return made


def boxes(dot):
    """Labels by the node's name, of parts, too."""
    found = {n.args[0]: n.settings["label"] for n in dot.nodes}
    for part in dot.parts:
        found.update(boxes(part))
    return found


def links(dot):
    """Pairs of layers' names."""
    names = {k: label.split("<b>")[1].split("</b>")[0] for k, label in boxes(dot).items()}

    def walk(g):
        return [(names[e.args[0]], names[e.args[1]]) for e in g.edges] + [pair for part in g.parts for pair in walk(part)]
    return sorted(walk(dot))


def two_ways():
    x = keras.Input((4,), name="x")
    a, b = keras.layers.Dense(3, activation="relu", name="a")(x), keras.layers.Dense(3, name="b", trainable=False)(x)
    return keras.Model(x, keras.layers.Add(name="sum")([a, b]))


def nested():
    inner = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="one"), keras.layers.Dense(2, name="two")], name="inner")
    x = keras.Input((3,), name="x")
    return keras.Model(x, keras.layers.ReLU(name="last")(inner(x)))


class Drawing(unittest.TestCase):
    def setUp(self):
        sys.modules["pydot"] = fake_pydot()
        self.addCleanup(sys.modules.pop, "pydot", None)
        Graph.written.clear()

    def test_layers_are_boxes_and_tensors_edges(self):
        dot = keras.utils.model_to_dot(two_ways(), rankdir="LR", dpi=50, splines="curved")
        self.assertEqual(links(dot), [("a", "sum"), ("b", "sum"), ("x", "a"), ("x", "b")])
        self.assertEqual({k: dot.settings[k] for k in ("rankdir", "dpi", "splines")}, {"rankdir": "LR", "dpi": 50, "splines": "curved"})

    def test_what_is_shown_is_asked_for(self):
        plain = "".join(boxes(keras.utils.model_to_dot(two_ways(), show_layer_names=False)).values())
        for word in ("shape", "dtype", "Trainable", "Activation", "sum"):
            self.assertNotIn(word, plain)
        full = boxes(keras.utils.model_to_dot(two_ways(), show_shapes=True, show_dtype=True, show_layer_activations=True,
                                              show_trainable=True))
        a, b = (next(t for t in full.values() if f"<b>{name}</b>" in t) for name in "ab")
        for word in ("Input shape: <b>(None, 4)", "Output shape: <b>(None, 3)", "dtype: <b>float32", "<b>Trainable", "Activation: <b>relu"):
            self.assertIn(word, a)
        self.assertIn("Non-trainable", b)

    def test_models_within_are_one_box_or_several(self):
        self.assertEqual(links(keras.utils.model_to_dot(nested())), [("inner", "last"), ("x", "inner")])
        dot = keras.utils.model_to_dot(nested(), expand_nested=True)
        self.assertEqual([part.settings["label"] for part in dot.parts], ["inner"])
        self.assertEqual(links(dot), [("one", "two"), ("two", "last"), ("x", "one")])
        part = keras.utils.model_to_dot(nested(), subgraph=True)
        self.assertEqual((type(part).__name__, part.settings["style"]), ("Cluster", "dashed"))

    def test_names_are_no_markup(self):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="a<b>&c")])
        self.assertIn("<b>a&lt;b&gt;&amp;c</b>", "".join(boxes(keras.utils.model_to_dot(model)).values()))

    def test_a_picture_is_written_in_the_form_of_its_name(self):
        keras.utils.plot_model(two_ways(), to_file="m.svg")
        keras.utils.plot_model(two_ways(), to_file="m")
        self.assertEqual(Graph.written, [("m.svg", "svg"), ("m", "png")])

    def test_what_cannot_be_drawn_says_why(self):
        both = (keras.utils.model_to_dot, keras.utils.plot_model)
        for draw in both:
            with self.assertRaisesRegex(ValueError, "colour"):
                draw(two_ways(), colour="red")
            with self.assertRaisesRegex(ValueError, "layer_range"):
                draw(two_ways(), layer_range=["a", "b"])
            with self.assertRaisesRegex(ValueError, "not yet been built"):
                draw(keras.Sequential([keras.layers.Dense(1)]))
        for name in ("pydot", "pydot_ng", "pydotplus"):
            sys.modules[name] = None          # not installed
            self.addCleanup(sys.modules.pop, name, None)
        for draw in both:
            with self.assertRaisesRegex(ImportError, "pip install pydot"):
                draw(two_ways())
        sys.modules["pydot"] = fake_pydot()
        sys.modules["pydot"].Dot = type("Dot", (Graph,), {"create": lambda self: (_ for _ in ()).throw(OSError("no dot"))})
        with self.assertRaisesRegex(ImportError, "graphviz"):
            keras.utils.plot_model(two_ways())


if __name__ == "__main__":
    unittest.main()
