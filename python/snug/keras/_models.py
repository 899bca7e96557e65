"""Model, Functional and Sequential: layers put together. What training does with them is in _training."""
import collections
import json

from snug import _nest
from snug._given import default_only
from snug.keras import _layer, _operations, _serial, _symbolic
from snug.keras._layer import Layer
from snug.keras._names import auto_name, snake
from snug.keras._symbolic import KerasTensor
from snug.keras._training import Trainer


class Model(Trainer, Layer):
    """Subclassed: layers in attributes, `call` by the user. Model(inputs, outputs) is a Functional."""
    _own_graph = True
    _keras_module = "keras"

    def __new__(cls, *args, **kwargs):
        if not _has_graph(args, kwargs) or issubclass(cls, Functional):
            return Layer.__new__(cls, *args, **kwargs)
        if cls is Model:
            return object.__new__(Functional)
        if cls not in _with_graph:
            _with_graph[cls] = type(cls.__name__, (cls, Functional), {"__module__": cls.__module__})
        return object.__new__(_with_graph[cls])

    def __init__(self, **kwargs):
        self._ready()
        Layer.__init__(self, **kwargs)

    @property
    def layers(self):
        return [layer for layer in self._all_layers() if isinstance(layer, Layer)]

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A functional model's configuration may be given to keras.Model itself."""
        if "layers" in config and "input_layers" in config:
            return _from_config(config, custom_objects)
        return super().from_config(config)

    def get_layer(self, name=None, index=None):
        if index is not None:
            if index >= len(self.layers):
                raise ValueError(f"Was asked to retrieve layer at index {index} but model only has {len(self.layers)} layers.")
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}. Existing layers are: {[layer.name for layer in self.layers]}.")

    def _build_for(self, args, kwargs):
        if not self.built and type(self).build is not Model.build:
            Layer._build_for(self, args, kwargs)
        if not self.built and args and len(args) == 1:
            self.__dict__["_build_shape"] = _layer._built_for(args[0])
        self.__dict__["built"] = True

    def build(self, input_shape=None):
        if input_shape is not None and not self.built and type(self).call is not Layer.call:
            self.__dict__["built"] = True
            shapes = input_shape if isinstance(input_shape, (list, dict)) else tuple(input_shape)
            make = lambda s: KerasTensor(s)
            x = make(shapes) if isinstance(shapes, tuple) and not isinstance(shapes[0], (tuple, list)) else \
                {k: make(s) for k, s in shapes.items()} if isinstance(shapes, dict) else [make(s) for s in shapes]
            with _layer.within(self):
                _symbolic.infer(self._plain_call, (x,), {})
        self.__dict__["built"] = True

    def summary(self, line_length=None, positions=None, print_fn=None, expand_nested=False, show_trainable=False, layer_range=None):
        from snug.keras import _summary
        lines = []
        _summary.show(self, line_length, positions, lines.append, expand_nested, show_trainable, layer_range)
        (print_fn or print)("\n".join(lines) + ("\n" if print_fn else ""))

    # --- files ------------------------------------------------------------------------------------
    def to_json(self, **kwargs):
        return json.dumps(_serial.serialize_keras_object(self), **kwargs)

    @default_only("max_shard_size")
    def save_weights(self, filepath, overwrite=True, max_shard_size=None):
        from snug.keras import _saving
        _saving.save_weights(self, filepath, overwrite)

    @default_only("objects_to_skip")
    def load_weights(self, filepath, skip_mismatch=False, *, by_name=None, objects_to_skip=None):
        """by_name: of an .h5 file as Keras 2 wrote them, the layers that have names of this model's, and no others."""
        from snug.keras import _saving
        _saving.load_weights(self, filepath, skip_mismatch, by_name)

    @default_only("zipped")
    def save(self, filepath, overwrite=True, zipped=None, *, include_optimizer=True, save_format=None):
        from snug.keras import _saving
        if save_format and not str(filepath).endswith((".h5", ".hdf5", ".keras")):
            raise ValueError("The `save_format` argument is deprecated in Keras 3. Please remove this argument and pass a file path with either"
                             f" `.keras` or `.h5` extension.Received: save_format={save_format}")
        _saving.save_model(self, filepath, overwrite, include_optimizer)

    @default_only("input_signature")
    def export(self, filepath, format="tf_saved_model", verbose=True, input_signature=None):
        from snug import _saved
        if format != "tf_saved_model":
            raise NotImplementedError(f"Model.export(format={format!r}) is not in Snug; there is 'tf_saved_model', in Snug's own form")
        _saved.export(self, filepath, verbose)

    def __reduce__(self):
        """A copy, or what pickle keeps, is what a .keras file holds, and the user's classes and functions that it names."""
        from snug.keras import _saving
        with _serial.collecting() as found:
            data = _saving.to_bytes(self)
        return _saving.from_bytes, (data, found)

    def __deepcopy__(self, memo):
        from snug.keras import _saving
        with _serial.collecting(copies=True) as found:
            data = _saving.to_bytes(self)
        memo[id(self)] = made = _saving.from_bytes(data, found, safe_mode=True)
        return made

    def get_config(self):
        if isinstance(self, Functional) or "_graph" in self.__dict__:
            return Functional.get_config(self)
        return Layer.get_config(self)


def _has_graph(args, kwargs):
    return (len(args) >= 2 and _symbolic.is_symbolic(args[0]) and _symbolic.is_symbolic(args[1])) or \
        ("inputs" in kwargs and "outputs" in kwargs) or (len(args) == 1 and "outputs" in kwargs)


_with_graph = {}    # subclasses of Model that were called with inputs and outputs


# --- functional models ----------------------------------------------------------------------------------
def _sort(inputs, outputs):
    """Nodes from inputs to outputs, each after those it reads; and the place of each operation in the order they were met."""
    order, state, places = [], {}, {}
    stop = {id(t) for t in inputs}
    stack = [(t, False) for t in reversed(_nest.flatten(outputs))]
    while stack:
        t, done = stack.pop()
        if not isinstance(t, KerasTensor) or t._keras_history is None:
            continue
        node = t._keras_history[0]
        places.setdefault(id(node.operation), len(places))
        if id(t) in stop:
            continue
        if done:
            if state.get(id(node)) != 2:
                state[id(node)] = 2
                order.append(node)
            continue
        if id(node) in state:
            continue
        state[id(node)] = 1
        stack.append((t, True))
        stack.extend((x, False) for x in reversed(node.inputs))
    return order, places


def _by_depth(inputs, graph, places):
    """Operations as Keras lists them: far from the outputs first, then in the order they were met."""
    nodes = [t._keras_history[0] for t in inputs if t._keras_history] + graph
    depth, of, operations = {}, {}, {}
    for node in reversed(nodes):
        d = max(depth.get(id(node), 0), of.get(id(node.operation), 0))
        of[id(node.operation)] = depth[id(node)] = d
        operations[id(node.operation)] = node.operation
        for t in node.inputs:
            if t._keras_history:
                parent = id(t._keras_history[0])
                depth[parent] = max(depth.get(parent, 0), d + 1)
    return sorted(operations.values(), key=lambda o: (-of[id(o)], places.get(id(o), -1)))


def _alone(made):
    """As Keras: what is alone is no list."""
    return made[0] if isinstance(made, list) and len(made) == 1 else made


def _check_names(operations):
    """Files know layers by their names."""
    seen = set()
    for operation in operations:
        if operation.name in seen:
            raise ValueError(f'The name "{operation.name}" is used twice in the model. All operation names should be unique.')
        seen.add(operation.name)


class Functional(Model):
    _any_size = False         # whether its inputs' extents are only those of the first batch

    def __init__(self, inputs=None, outputs=None, name=None, trainable=True):
        Layer.__init__(self, name=name or auto_name("functional" if type(self) in (Functional, Model) else snake(type(self).__name__)),
                       trainable=True)
        flat = _nest.flatten(inputs)
        for t in flat:
            if not isinstance(t, KerasTensor):
                raise ValueError(f"All `inputs` values must be KerasTensors. Received: {t!r}")
        graph, places = _sort(flat, outputs)
        self.__dict__.update(_inputs_struct=inputs, _outputs_struct=outputs, _flat_inputs=flat, _graph=graph, built=True)
        made = {id(t) for t in flat}
        for node in self._graph:
            made.update(id(t) for t in _nest.flatten(node.outputs))
        for t in _nest.flatten(outputs):
            if id(t) not in made:
                raise ValueError("`inputs` not connected to `outputs`")
        self.__dict__["_operations"] = tuple(_by_depth(flat, graph, places))
        _check_names(self._operations)
        for operation in self._operations:
            if isinstance(operation, Layer):
                self._track(operation)
        if not trainable:
            self.trainable = False

    @property
    def layers(self):
        return list(self._layers)

    @property
    def operations(self):
        return list(self._operations)

    @property
    def inputs(self):
        return list(self._flat_inputs)

    @property
    def outputs(self):
        return _nest.flatten(self._outputs_struct)

    @property
    def input(self):
        return self._inputs_struct

    @property
    def output(self):
        return self._outputs_struct

    @property
    def input_names(self):
        return [t.name for t in self._flat_inputs]

    @property
    def output_names(self):
        return [t._keras_history[0].operation.name for t in self.outputs]

    @property
    def input_shape(self):
        return _alone(_symbolic._map(lambda t: tuple(t.shape), self._inputs_struct))

    @property
    def output_shape(self):
        return _alone(_symbolic._map(lambda t: tuple(t.shape), self._outputs_struct))

    def compute_output_shape(self, input_shape):
        made = _symbolic.infer(self._plain_call, (_nest.map_structure(KerasTensor, input_shape) if isinstance(input_shape, list)
                                                  else KerasTensor(input_shape),), {})
        return _symbolic._map(lambda t: tuple(t.shape), made)

    def _symbolic_call(self, args, kwargs):
        outputs = _symbolic.infer(self._plain_call, args, kwargs)
        self._nodes.append(_symbolic.Node(self, args, kwargs, outputs))
        return outputs

    def _flat_values(self, inputs):
        if isinstance(inputs, dict):
            struct = self._inputs_struct
            names = sorted(struct) if isinstance(struct, dict) else [t.name for t in self._flat_inputs]
            missing = next((name for name in names if name not in inputs), None)
            if missing is not None:
                raise ValueError(f"Missing data for input \"{missing}\". You passed a data dictionary with keys {list(inputs)}."
                                 f" Expected the following keys: {names}")
            return [inputs[name] for name in names]
        flat = _nest.flatten(inputs)
        if len(flat) != len(self._flat_inputs):
            raise ValueError(f"Function `{self.name}` expects {len(self._flat_inputs)} input(s), but it received {len(flat)} input"
                             " tensors.")
        return flat

    def call(self, inputs, training=None, mask=None):
        values = {}
        for i, (t, x) in enumerate(zip(self._flat_inputs, self._flat_values(inputs))):
            values[id(t)] = _fit(x, t, self._any_size, lambda: f"Input {i} with name '{t.name}' of layer '{self.name}'")
        if mask is not None:
            for t, m in zip(self._flat_inputs, _nest.flatten(mask)):
                if m is not None and not isinstance(values[id(t)], KerasTensor):
                    values[id(t)]._keras_mask = m
        look = lambda t: values[id(t)] if isinstance(t, KerasTensor) and id(t) in values else t
        for node in self._graph:
            args = tuple(_symbolic._map(look, a) for a in node.args)
            kwargs = {k: _symbolic._map(look, v) for k, v in node.kwargs.items()}
            if training is not None and isinstance(node.operation, Layer):
                kwargs["training"] = training  # Keras: what the model is called with wins
            result = node.operation(*args, **kwargs)
            for t, value in zip(_nest.flatten(node.outputs), _nest.flatten(result)):
                values[id(t)] = value
        return _alone(_symbolic._map(look, self._outputs_struct))

    def __call__(self, inputs=None, *args, **kwargs):
        return Layer.__call__(self, inputs, *args, **kwargs)

    def _casts_to(self):
        return None         # each input has a dtype of its own

    # --- configuration ----------------------------------------------------------------------------
    def get_build_config(self):
        return {"input_shape": None}        # the inputs' layers say it

    def get_config(self):
        numbers, layers = {}, []
        for t in self._flat_inputs:
            node = t._keras_history[0]
            numbers[id(node)] = 0
            if not any(node.operation is layer for layer, _ in layers):
                layers.append((node.operation, [node]))
        for node in self._graph:
            if id(node) in numbers:
                continue
            entry = next((e for e in layers if e[0] is node.operation), None)
            if entry is None:
                entry = (node.operation, [])
                layers.append(entry)
            numbers[id(node)] = len(entry[1])
            entry[1].append(node)
        order = {id(operation): k for k, operation in enumerate(self._operations)}
        layers.sort(key=lambda entry: order[id(entry[0])])

        def place(value):
            if isinstance(value, KerasTensor):
                node, i = value._keras_history
                return {"class_name": "__keras_tensor__", "config": {"shape": list(value.shape), "dtype": value.dtype,
                        "keras_history": [node.operation.name, numbers[id(node)], i]}}
            if isinstance(value, (list, tuple)):
                return [place(v) for v in value]
            if isinstance(value, dict):
                return {k: place(v) for k, v in value.items()}
            return _operations.place(value) or _serial.to_config(value)

        def history(value):
            node, i = value._keras_history
            return [node.operation.name, numbers[id(node)], i]

        rows = []
        for operation, nodes in layers:
            if not isinstance(operation, Layer):
                row = place(_operations.serialize(operation))
                row["name"] = operation.name
                row["inbound_nodes"] = [{"args": place(_operations.operands(operation, n)), "kwargs": {}} for n in nodes]
                rows.append(row)
                continue
            row = _serial.serialize_keras_object(operation)
            row["name"] = operation.name
            row["inbound_nodes"] = [{"args": place(list(n.args)), "kwargs": place(n.kwargs)} for n in nodes if n.inputs]
            rows.append(row)
        return {"name": self.name, "trainable": self.trainable, "layers": rows,
                "input_layers": _symbolic._map(history, self._inputs_struct),
                "output_layers": _symbolic._map(history, self._outputs_struct)}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return _from_config(config, custom_objects)

    @classmethod
    def _from_config_with(cls, config, custom_objects):
        return _from_config(config, custom_objects)


def _fit(x, t, any_size, words):
    """Keras' rule: a missing or surplus axis of size 1 at the end is added or dropped."""
    from snug._lazy import tf
    if isinstance(x, KerasTensor) or not hasattr(x, "shape"):
        return x
    want, have = len(t.shape), len(x.shape)
    if have == want - 1 and t.shape[-1] == 1:
        return tf.expand_dims(x, -1)
    if have == want + 1 and x.shape[-1] == 1:
        return tf.squeeze(x, -1)
    if have != want or not any_size and any(a is not None and a != b for a, b in zip(t.shape[1:], tuple(x.shape)[1:])):
        found = _layer._built_for(x)
        raise ValueError(f"{words()} is incompatible with the layer: expected shape={tuple(t.shape)}, found shape={found}")
    if x.dtype.name != "string" and x.dtype != t._dtype and t._dtype.is_floating:
        return tf.cast(x, t._dtype)
    return x


class _Later(Exception):
    """A result of a layer that was not called yet: its name, and which of its calls."""


def _from_config(config, custom_objects=None):
    layers, made = {}, {}
    for row in config["layers"]:
        layers[row["name"]] = _operations.deserialize(row) or _serial.deserialize_keras_object(row, custom_objects)
        layers[row["name"]].name = row["name"]
    ready = collections.deque((row["name"], k, call) for row in config["layers"] for k, call in enumerate(row.get("inbound_nodes", [])))
    waiting = {}                # {(layer, call): what needs its result}
    for row in config["layers"]:
        if row["class_name"] == "InputLayer":
            made[(row["name"], 0)] = [layers[row["name"]].output]

    def look(value):
        if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
            name, k, i = value["config"]["keras_history"]
            if (name, k) not in made:
                raise _Later(name, k)
            return made[(name, k)][i]
        if isinstance(value, dict) and value.get("class_name") == "__tuple__":
            return tuple(look(v) for v in value["items"])
        if isinstance(value, dict) and value.get("class_name") in ("__slice__", "__ellipsis__"):
            return _operations.look(value)
        if isinstance(value, list):
            return [look(v) for v in value]
        if isinstance(value, dict):
            return {k: look(v) for k, v in value.items()}
        return value
    while ready:
        name, k, call = ready.popleft()
        try:
            args, kwargs = [look(a) for a in call["args"]], {key: look(v) for key, v in call["kwargs"].items()}
        except _Later as later:
            waiting.setdefault(later.args, []).append((name, k, call))
            continue
        made[(name, k)] = _nest.flatten(layers[name](*args, **kwargs))
        ready.extend(waiting.pop((name, k), ()))
    if waiting:
        raise ValueError("the configuration's layers do not connect")

    def ends(value):
        if isinstance(value, dict):
            return {k: ends(v) for k, v in value.items()}
        if value and isinstance(value[0], str):
            return made[(value[0], value[1])][value[2]]
        return [ends(v) for v in value]
    inputs, outputs = ends(config["input_layers"]), ends(config["output_layers"])
    return Functional(inputs, outputs, name=config.get("name"), trainable=config.get("trainable", True))


# --- Sequential -----------------------------------------------------------------------------------------
class Sequential(Model):
    def __init__(self, layers=None, trainable=True, name=None):
        Layer.__init__(self, name=name or auto_name("sequential"), trainable=trainable)
        self.__dict__.update(_stack=[], _functional=None)
        for layer in layers or []:
            self.add(layer, rebuild=False)
        self._try_build()

    def add(self, layer, rebuild=True):
        from snug.keras import layers as kl
        if isinstance(layer, KerasTensor):
            layer = layer._keras_history[0].operation
        if not isinstance(layer, Layer):
            if not callable(layer):
                raise ValueError(f"Only instances of `keras.Layer` can be added to a Sequential model. Received: {layer} (of type"
                                 f" {type(layer)})")
            layer = kl.Lambda(layer)
        if any(layer.name == other.name for other in self._stack):
            raise ValueError(f"All layers added to a Sequential model should have unique names. Name '{layer.name}' is already the name"
                             f" of a layer in this model. Update the `name` argument to pass a unique name.")
        if not self._stack and layer._batch_input_shape is not None and not isinstance(layer, kl.InputLayer):
            dtype = "int32" if getattr(layer, "_reads_indices", False) else layer.compute_dtype
            self._stack.append(kl.InputLayer(batch_shape=layer._batch_input_shape, dtype=dtype))
        self._stack.append(layer)
        if not isinstance(layer, kl.InputLayer):
            self._track(layer)
        self.__dict__["_functional"] = None
        if rebuild:
            self._try_build()

    def pop(self, rebuild=True):
        layer = self._stack.pop()
        self._layers.remove(layer)
        self.__dict__["_functional"] = None
        if rebuild:
            self._try_build()
        return layer

    def _try_build(self):
        from snug.keras import layers as kl
        if not self._stack or self._functional is not None:
            return
        first = self._stack[0]
        if isinstance(first, kl.InputLayer):
            x, rest = first.output, self._stack[1:]
        elif isinstance(first, Functional) or (isinstance(first, Sequential) and first._functional is not None):
            inner = first if isinstance(first, Functional) else first._functional
            x, rest = kl.Input(batch_shape=inner.inputs[0].shape, dtype=inner.inputs[0].dtype), self._stack
        else:
            return
        if rest:
            self._connect(x, rest)

    def _connect(self, x, rest):
        y = x
        with _layer.within(self):
            for layer in rest:
                y = layer(y)
        auto_name("functional")         # the name that Keras gives the graph inside
        self.__dict__["_functional"] = Functional(x, y, name=self.name)
        self._functional.__dict__["_any_size"] = self.__dict__.get("_deferred", False)
        self.__dict__["built"] = True

    def build(self, input_shape=None):
        from snug.keras import layers as kl
        if self._functional is None and input_shape is not None and self._stack:
            if isinstance(self._stack[0], kl.InputLayer):
                return self._try_build()
            dtype = "int32" if getattr(self._stack[0], "_reads_indices", False) else self._stack[0].compute_dtype
            x = kl.Input(batch_shape=tuple(input_shape), dtype=dtype)
            self.__dict__["_deferred"] = True
            self._connect(x, self._stack)

    def _build_for(self, args, kwargs):
        from snug.keras import layers as kl
        if self._functional is None and args and hasattr(args[0], "shape") and not kl.is_single_picture(self._stack, args[0]):
            self.build(_layer._built_for(args[0]))

    @property
    def layers(self):
        from snug.keras import layers as kl
        return [layer for layer in self._stack if not isinstance(layer, kl.InputLayer)]

    def _all_layers(self):
        return self._layers

    def _casts_to(self):
        return None         # its first layer does, or its input says it

    def call(self, inputs, training=None, mask=None):
        if self._functional is not None:
            return self._functional.call(inputs, training=training, mask=mask)
        for layer in self._stack:
            inputs = layer(inputs)
        return inputs

    def _graph_or_raise(self):
        if self._functional is None:
            raise AttributeError(f"Sequential model '{self.name}' has no defined input shape yet.")
        return self._functional

    inputs = property(lambda self: self._graph_or_raise().inputs)
    outputs = property(lambda self: self._graph_or_raise().outputs)
    input = property(lambda self: self._graph_or_raise().input)
    output = property(lambda self: self._nodes[0].outputs if self._nodes else self._graph_or_raise().output)
    input_shape = property(lambda self: self._graph_or_raise().input_shape)
    output_shape = property(lambda self: self._graph_or_raise().output_shape)
    output_names = property(lambda self: self._graph_or_raise().output_names)

    def compute_output_shape(self, input_shape):
        for layer in self.layers:
            input_shape = layer.compute_output_shape(input_shape)
        return input_shape

    def get_build_config(self):
        return Layer.get_build_config(self) if self._functional is None else {"input_shape": self._functional.inputs[0].shape}

    def get_config(self):
        rows = [_serial.serialize_keras_object(layer) for layer in self._stack]
        config = {"name": self.name, "trainable": self.trainable, "dtype": Layer.get_config(self)["dtype"], "layers": rows}
        if self._functional is not None:
            config["build_input_shape"] = list(self._functional.inputs[0].shape)
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = cls(name=config.get("name"))
        for row in config["layers"]:
            model.add(_serial.deserialize_keras_object(row, custom_objects), rebuild=False)
        model._try_build()             # once: a rebuild for each layer is work that grows with their square
        if model._functional is None and config.get("build_input_shape"):
            model.build(config["build_input_shape"])
        return model

    @classmethod
    def _from_config_with(cls, config, custom_objects):
        return cls.from_config(config, custom_objects)


def model_from_json(json_string, custom_objects=None):
    from snug._files import damaged, parse_json
    with damaged("the JSON text"):
        return model_from_config(parse_json(json_string), custom_objects)


def model_from_config(config, custom_objects=None):
    if not isinstance(config, dict) or "class_name" not in config:
        raise ValueError("the configuration names no class: it is none of a model")
    model = _serial.deserialize_keras_object(config, custom_objects)
    if config.get("compile_config"):
        with _serial.custom_object_scope(custom_objects):
            model.compile_from_config(config["compile_config"])
    return model


def clone_model(model, input_tensors=None, clone_function=None, call_function=None, recursive=False):
    if call_function is not None and not isinstance(model, Functional):
        raise ValueError(f"`call_function` argument is only supported with Functional models. Received: {model}")
    if clone_function is None and input_tensors is None and call_function is None and not recursive:
        return _serial.copy_of(model)
    clone = _Cloner(clone_function, call_function, recursive)
    return clone.graph(model, input_tensors) if not isinstance(model, Sequential) else clone.sequence(model, input_tensors)


class _Cloner:
    """Each layer once, as the function makes it; models within models layer by layer, where that is wanted."""

    def __init__(self, clone_function, call_function, recursive):
        self.function, self.call, self.recursive, self.made = clone_function, call_function, recursive, {}

    def layer(self, layer):
        if id(layer) not in self.made:
            if self.recursive and isinstance(layer, (Functional, Sequential)):
                self.made[id(layer)] = self.graph(layer, None) if isinstance(layer, Functional) else self.sequence(layer, None)
            else:
                self.made[id(layer)] = (self.function or _serial.copy_of)(layer)
        return self.made[id(layer)]

    def sequence(self, model, input_tensors):
        from snug.keras import layers as kl
        new = Sequential(name=model.name)
        if input_tensors is not None:
            new.add(kl.InputLayer(input_tensor=_nest.flatten(input_tensors)[0]))
        for layer in model._stack:
            if not isinstance(layer, kl.InputLayer):
                new.add(self.layer(layer))
            elif input_tensors is None:
                new.add(layer)
        return new

    def graph(self, model, input_tensors):
        """The calls of a functional model again."""
        if not isinstance(model, Functional):
            raise ValueError(f"Expected `model` argument to be a functional `Model` instance, but got a subclassed model instead: {model}")
        from snug.keras import layers as kl
        given = [kl.Input(batch_shape=t.shape, dtype=t.dtype, name=t._keras_history[0].operation.name) for t in model._flat_inputs] \
            if input_tensors is None else _nest.flatten(input_tensors)
        made = {id(t): g for t, g in zip(model._flat_inputs, given)}
        again = lambda x: _symbolic._map(lambda t: made.get(id(t), t), x)
        for node in model._graph:
            if isinstance(node.operation, kl.InputLayer):
                continue
            operation = self.layer(node.operation) if isinstance(node.operation, Layer) else node.operation
            args, kwargs = again(list(node.args)), again(dict(node.kwargs))
            outputs = operation(*args, **kwargs) if self.call is None else self.call(operation, *args, **kwargs)
            made.update((id(old), new) for old, new in zip(_nest.flatten(node.outputs), _nest.flatten(outputs)))
        return Functional(again(model._inputs_struct), again(model._outputs_struct), name=model.name)


def load_model(filepath, custom_objects=None, compile=True, safe_mode=True):
    from snug.keras import _saving
    return _saving.load_model(filepath, custom_objects, compile, safe_mode)


def save_model(model, filepath, overwrite=True, zipped=None, *, include_optimizer=True, save_format=None):
    model.save(filepath, overwrite, zipped, include_optimizer=include_optimizer, save_format=save_format)
