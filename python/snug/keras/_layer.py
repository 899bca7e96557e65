"""keras.Layer: names, weights, building, calling. What a built-in layer computes is in C (_C.Layer); a custom one has `call`."""
import contextlib
import functools
import inspect
import threading
import warnings

from snug import _C, _nest, _train
from snug._files import is_bfloat16
from snug._lazy import tf
from snug._types import as_dtype
from snug.keras import _symbolic, _variable, dtype_policies, metrics, regularizers
from snug.keras._names import auto_name, snake
from snug.keras._symbolic import KerasTensor, Node
from snug.keras._variable import KerasVariable

_here = threading.local()     # training: of the call around this one; path: names of layers around, the innermost is `inside`


class InputSpec:
    def __init__(self, dtype=None, shape=None, ndim=None, max_ndim=None, min_ndim=None, axes=None, allow_last_axis_squeeze=False,
                 name=None, optional=False):
        self.dtype, self.shape, self.max_ndim, self.min_ndim = dtype, shape, max_ndim, min_ndim
        self.ndim = len(shape) if shape is not None else ndim
        self.axes, self.name, self.optional, self.allow_last_axis_squeeze = axes or {}, name, optional, allow_last_axis_squeeze


def _check_spec(layer, specs, inputs):
    for i, (spec, x) in enumerate(zip(_nest.flatten(specs), _nest.flatten(inputs))):
        if not isinstance(spec, InputSpec) or not hasattr(x, "shape"):
            continue
        rank = len(x.shape)
        where = f'Input {i} of layer "{layer.name}" is incompatible with the layer: '
        if spec.ndim is not None and rank != spec.ndim:
            raise ValueError(f"{where}expected ndim={spec.ndim}, found ndim={rank}. Full shape received: {tuple(x.shape)}")
        if spec.min_ndim is not None and rank < spec.min_ndim:
            raise ValueError(f"{where}expected min_ndim={spec.min_ndim}, found ndim={rank}. Full shape received: {tuple(x.shape)}")
        for axis, want in spec.axes.items():
            if want is not None and x.shape[axis] not in (want, None):
                raise ValueError(f"{where}expected axis {axis} of input shape to have value {want}, but received input with"
                                 f" shape {tuple(x.shape)}")


def _that_builds(build):
    """A build of the user's, after which the layer is built whoever called it."""
    @functools.wraps(build)
    def made(self, *args, **kwargs):
        result = build(self, *args, **kwargs)
        self.__dict__["built"] = True
        return result
    return made


class Layer:
    _own_graph = False      # a model: its layers are listed, its call is its own
    _makes_masks = True     # where it has a compute_mask of its own, it is asked

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__ and not cls.__module__.startswith("snug."):
            cls.build = _that_builds(cls.__dict__["build"])

    def __new__(cls, *args, **kwargs):
        self = object.__new__(cls)
        if not cls.__module__.startswith("snug."):
            self.__dict__["_given"] = args, kwargs      # what a configuration is made of that the class does not hold
        return self

    def __init__(self, *, activity_regularizer=None, trainable=True, dtype=None, autocast=True, name=None, **kwargs):
        self._ready()
        d = self.__dict__       # nothing here is tracked
        if kwargs:
            d["_batch_input_shape"] = _take_batch_shape(kwargs)
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {kwargs}")
        if dtype is not None:
            d["_dtype_policy"] = dtype_policies.get(dtype)
        d["autocast"] = autocast
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError(f"Argument `name` must be a string and cannot contain character `/`. Received: name={name} (of type {type(name)})")
        d["_name"] = name or auto_name(snake(type(self).__name__))
        d["_trainable"] = bool(trainable)
        d["activity_regularizer"] = regularizers.get(activity_regularizer)

    def _ready(self):
        """What tracking needs, before anything is set: subclasses may set attributes first."""
        d = self.__dict__
        if "_layers" not in d:
            d.update(_layers=[], _own=[], _metrics=[], _added=[], _nodes=[], built=False, input_spec=None,
                     supports_masking=type(self).compute_mask is not Layer.compute_mask,
                     _trainable=True, _name=None, _dtype_policy=dtype_policies.dtype_policy(), autocast=True, _in_call=False,
                     activity_regularizer=None, _batch_input_shape=None, stateful=False)

    # --- tracking ---------------------------------------------------------------------------------
    def __setattr__(self, name, value):
        self._ready()
        self._track(value)
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        value = self.__dict__.get(name)
        if isinstance(value, Layer) and value in self._layers:
            self._layers.remove(value)
        object.__delattr__(self, name)

    def _track(self, value):
        if isinstance(value, Layer):
            if value is not self and not self._has_layer(value):
                self._layers.append(value)
                self.__dict__["_seen_layers"][1].add(id(value))
        elif isinstance(value, KerasVariable):      # a plain tf.Variable is not a weight, as in Keras 3
            if not any(value is v for v in self._own):
                self._own.append(value)
        elif type(value).__name__ != "str" and _is_metric(value):
            if not any(value is m for m in self._metrics):
                self._metrics.append(value)
        elif isinstance(value, (list, tuple)):
            for part in value:
                self._track(part)
        elif isinstance(value, dict):
            for part in value.values():
                self._track(part)

    def _has_layer(self, value):
        """Whether the layer is right below; its place in a set is noted, which is made anew where the list has changed elsewhere."""
        layers, seen = self._layers, self.__dict__.get("_seen_layers")
        if seen is None or seen[0] != id(layers) or len(seen[1]) != len(layers):
            seen = self.__dict__["_seen_layers"] = (id(layers), {id(layer) for layer in layers})
        return id(value) in seen[1]

    def _all_layers(self):
        """Layers right below, those appended to lists later included. Asked of every layer at every step: numbers and
        names, of which most containers are made, are passed over without a call."""
        for name, value in list(self.__dict__.items()):
            if type(value) not in _PLAIN and isinstance(value, (list, tuple, dict)) and name not in _TRACKED:
                for part in value.values() if isinstance(value, dict) else value:
                    if type(part) not in _PLAIN:
                        self._track(part)
        return self._layers

    # --- names and settings -----------------------------------------------------------------------
    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, value):
        self.__dict__["_name"] = value

    @property
    def path(self):
        return self.__dict__.get("_policy_path", self._name)

    @property
    def variable_dtype(self):
        return self._policy().variable_dtype

    @property
    def compute_dtype(self):
        return self._policy().compute_dtype

    def _policy(self):
        """Of a map that of the layer's path, which it has once it was called."""
        policy = self._dtype_policy
        if type(policy) is dtype_policies.DTypePolicy:
            return policy
        path = self.__dict__.get("_policy_path")
        return policy[path] if path and isinstance(policy, dtype_policies.DTypePolicyMap) else policy

    @property
    def dtype(self):
        return self.variable_dtype

    @property
    def dtype_policy(self):
        return self._dtype_policy

    @dtype_policy.setter
    def dtype_policy(self, value):
        self._ready()
        policy, path = dtype_policies.get(value), self.__dict__.get("_policy_path")
        if isinstance(self._dtype_policy, dtype_policies.DTypePolicyMap) and path:
            if path in self._dtype_policy:
                del self._dtype_policy[path]
            self._dtype_policy[path] = policy
        else:
            self.__dict__["_dtype_policy"] = policy

    @property
    def input_dtype(self):
        return self.compute_dtype

    def _casts_to(self):
        """What real numbers become that the layer is called with; None: they stay as they are."""
        if type(self).input_dtype is Layer.input_dtype and type(self).compute_dtype is Layer.compute_dtype:
            return self._policy()._casts_to if self.autocast else None
        dtype = as_dtype(self.input_dtype)
        return dtype if self.autocast and dtype.is_floating else None

    def _scope(self, around):
        """In what variables of layers are read within the call; None: as they are. Keras asks for autocast only where there is one already."""
        policy = self._policy()
        if around is None:
            return policy._reads_in
        return policy._casts_to if self.autocast else None

    @property
    def trainable(self):
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._ready()
        self.__dict__["_trainable"] = bool(value)
        for v in self._own:
            if v.__dict__.get("_may_train", True):
                v.trainable = bool(value)
        for layer in self._all_layers():
            layer.trainable = value

    # --- weights ----------------------------------------------------------------------------------
    @property
    def variables(self):
        return self.weights + [s for layer in self._with_inner() for s in layer._seeds()]

    def _seeds(self):
        """State of random numbers, which Keras counts as a variable."""
        return []

    def _weight_groups(self):
        """{group: weights} of a built-in layer that Keras makes of several, as files have them; None: it has them itself."""
        return None

    @property
    def weights(self):
        own = [v for v in self._own if v.__dict__.get("_may_train", v.trainable)]
        own += [v for v in self._own if not any(v is o for o in own)]
        seen, out = set(), []
        for v in own + [v for layer in self._all_layers() for v in layer.weights]:
            if id(v) not in seen:
                seen.add(id(v))
                out.append(v)
        return out

    @property
    def trainable_weights(self):
        return [v for v in self.weights if v.trainable] if self._trainable else []

    @property
    def non_trainable_weights(self):
        return self.weights if not self._trainable else [v for v in self.weights if not v.trainable]

    @property
    def trainable_variables(self):
        return self.trainable_weights

    @property
    def non_trainable_variables(self):
        return self.non_trainable_weights

    @property
    def metrics(self):
        out = list(self._metrics)
        for layer in self._all_layers():
            out += [m for m in layer.metrics if not any(m is o for o in out)]
        return out

    def get_weights(self):
        return [v.numpy() for v in self.weights]

    def set_weights(self, weights):
        mine = self.weights
        if len(mine) != len(weights):
            raise ValueError(f"You called `set_weights(weights)` on layer '{self.name}' with a weight list of length {len(weights)},"
                             f" but the layer was expecting {len(mine)} weights.")
        for v, value in zip(mine, weights):
            shape = tuple(value.shape) if hasattr(value, "shape") else None
            if shape is not None and shape != tuple(v.shape):
                raise ValueError(f"Layer {self.name} weight shape {tuple(v.shape)} is not compatible with provided weight shape"
                                 f" {shape}.")
            v.assign(value)
            if not _C.is_tracing():
                _C.boundary()          # each array is let go before the next one is copied

    def count_params(self):
        if not self.built:
            raise ValueError(f"You tried to call `count_params` on layer '{self.name}', but the layer isn't built. You can build it manually"
                             f" via: `layer.build(input_shape)`.")
        total = 0
        for v in self.weights:
            n = 1
            for d in v.shape:
                n *= d
            total += n
        return total

    def add_weight(self, shape=None, initializer=None, dtype=None, trainable=True, autocast=True, regularizer=None, constraint=None,
                   aggregation="none", overwrite_with_gradient=False, name=None):
        from snug.keras import constraints, initializers
        self._ready()
        if isinstance(shape, str):
            shape, name = initializer if not isinstance(initializer, str) else (), shape
            initializer = None
        shape = () if shape is None else tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
        dtype = as_dtype(self.variable_dtype if dtype is None else dtype)
        if initializer is None:
            initializer = "glorot_uniform" if dtype.is_floating and shape else "zeros"
        initializer = initializers.get(initializer)
        value = initializer(shape, dtype=dtype) if callable(initializer) else _C.convert_to_tensor(initializer, dtype=dtype)
        v = KerasVariable(value, trainable=trainable and self._trainable, name=f"{self.name}/{name or auto_name('variable')}")
        v._may_train, v._above = bool(trainable), self._path_above()
        v._autocast = bool(autocast)
        v.overwrite_with_gradient = bool(overwrite_with_gradient)
        v.regularizer, v.constraint = regularizers.get(regularizer), constraints.get(constraint)
        if not any(v is o for o in self._own):
            self._own.append(v)
        return v

    add_variable = add_weight

    # --- losses -----------------------------------------------------------------------------------
    def add_loss(self, loss):
        self._added.extend(loss if isinstance(loss, (list, tuple)) else [loss])

    def add_metric(self, value, name=None, aggregation=None):
        raise NotImplementedError("add_metric is not in Keras 3; make a keras.metrics.Mean in the constructor and update it")

    def _own_added(self):
        return [loss() if callable(loss) and not _C.is_tensor(loss) else loss for loss in self._added]

    def _own_penalties(self):
        return [v.regularizer(v) for v in self._own if getattr(v, "regularizer", None) is not None and v.trainable]

    def _with_inner(self):
        """This layer and all below it, each once."""
        seen, out, stack = set(), [], [self]
        while stack:
            layer = stack.pop(0)
            if id(layer) not in seen:
                seen.add(id(layer))
                out.append(layer)
                stack = list(layer._all_layers()) + stack
        return out

    def _counters(self):
        """(how often it drew, what takes that number) of everything here that draws from a seed of its own."""
        from snug._random import Generator
        from snug.keras.random import SeedGenerator
        found = []
        for value in vars(self).values():
            if type(value) not in _PLAIN:
                parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
                found += [(v._count, functools.partial(setattr, v, "_count")) for v in parts if isinstance(v, (SeedGenerator, Generator))]
        return found

    @property
    def losses(self):
        """What calls added, then what regularisers say of the weights."""
        layers = self._with_inner()
        found = [loss for layer in layers for loss in layer._own_added()]
        return found + [loss for layer in layers for loss in layer._own_penalties()]

    def _forget_losses(self):
        self._added.clear()
        for layer in self._all_layers():
            layer._forget_losses()

    # --- building and calling ---------------------------------------------------------------------
    def build(self, input_shape=None):
        self.built = True

    def _build_for(self, args, kwargs):
        if self.built:
            return
        first = args[0] if args else next(iter(kwargs.values()), None)
        shape = _symbolic._map(lambda t: tuple(t.shape) if hasattr(t, "shape") else None, first)
        parameters = _parameters(type(self).build)
        if type(self).build is not Layer.build:
            self.__dict__["_build_shape"] = _built_for(first)
            if len(parameters) > 2 and all(p.endswith("_shape") for p in parameters[1:]):
                names = [p for p in _parameters(type(self).call)[1:]]
                values = dict(zip(names, args), **kwargs)
                shapes = {f"{n}_shape": _symbolic._map(lambda t: tuple(t.shape), v) for n, v in values.items()
                          if any(hasattr(t, "shape") for t in _nest.flatten(v))}
                self.build(**{p: shapes.get(p) for p in parameters[1:]})
            else:
                self.build(shape)
        self.__dict__["built"] = True
        if self._trainable is False:
            self.trainable = False

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, *args, **kwargs):
        shapes = [KerasTensor(a) if isinstance(a, tuple) else a for a in args]
        return _symbolic._map(lambda t: tuple(t.shape), self.compute_output_spec(*shapes, **kwargs))

    def compute_output_spec(self, *args, **kwargs):
        return _symbolic.infer(self.call, args, kwargs)

    def _symbolic_call(self, args, kwargs):
        self._build_for(args, kwargs)
        if type(self).compute_output_shape is not Layer.compute_output_shape and len(args) == 1:
            self._make_inner(args, kwargs)
            shape = self.compute_output_shape(_symbolic._map(lambda t: tuple(t.shape), args[0]))
            dtype = as_dtype(self.compute_dtype)
            outputs = KerasTensor(shape, dtype) if isinstance(shape, tuple) else [KerasTensor(s, dtype) for s in shape]
        else:
            outputs = _symbolic.infer(self._plain_call, args, kwargs)
        self._mask_symbolic(args, outputs)
        self._nodes.append(Node(self, args, kwargs, outputs))
        return outputs

    def _make_inner(self, args, kwargs):
        """Who says what shape it gives is called all the same, where layers of its own have no variables yet and it has no `build`."""
        if type(self).build is Layer.build and not all(inner.built for inner in self._layers):
            with contextlib.suppress(Exception):        # the first call with values says what is wrong
                _symbolic.infer(self._plain_call, args, kwargs)

    def _mask_symbolic(self, args, outputs):
        """Masks of what a symbolic call gives, where there will be one."""
        masks = _symbolic._map(_mask_of, args[0]) if args else None
        own, has_mask = type(self).compute_mask is not Layer.compute_mask, any(m is not None for m in _nest.flatten(masks))
        if not self.supports_masking or not args or not (has_mask or own and self._makes_masks):
            return
        if own:
            masks = _symbolic.infer(self.compute_mask, (args[0], masks if has_mask else None), {})
        self._set_mask(outputs, masks)

    def _plain_call(self, *args, **kwargs):
        """With tensors in the place of symbolic ones."""
        return self._run(tuple(self._cast_all(a) for a in args), {k: self._cast_all(v) for k, v in kwargs.items()})

    def _cast_all(self, value):
        if value is None or type(value) in (bool, int, float, str):
            return value
        return _symbolic._map(lambda x: _as_tensor(x, self) if isinstance(x, _C.Tensor) else x, value)

    def __call__(self, *args, **kwargs):
        self._ready()
        if not self._name:
            raise RuntimeError(f"In layer '{type(self).__name__}', you forgot to call `super().__init__()` in the `__init__()` method.")
        if not args and "inputs" in kwargs:         # the first one by its name
            args = (kwargs.pop("inputs"),)
        if _C.is_capturing() and args and hasattr(args[0], "_slot"):
            from snug.keras import _captured
            return _captured.call(self, args, kwargs, getattr(_here, "training", None))
        if args and not _nest.is_nested(args[0]):
            args = (_as_tensor(args[0], self), *args[1:])
        elif args and isinstance(args[0], list) and all(isinstance(x, (int, float, str)) for x in _nest.flatten(args[0])):
            args = (_C.convert_to_tensor(args[0]), *args[1:])
        elif args:
            args = (_symbolic._map(lambda x: _as_tensor(x, self), args[0]), *args[1:])
        if len(args) > 1 or kwargs:
            args, kwargs = (*args[:1], *map(self._cast_all, args[1:])), {k: self._cast_all(v) for k, v in kwargs.items()}
        if self.input_spec is not None and args:
            _check_spec(self, self.input_spec, args[0])
        above, inside = getattr(_here, "path", ""), getattr(_here, "inside", None)
        if inside is not self:
            _here.path, _here.inside = above + self._name + "/", self
        if isinstance(self._dtype_policy, dtype_policies.DTypePolicyMap):
            self.__dict__.setdefault("_policy_path", _here.path[:-1])
        try:
            return self._symbolic_call(args, kwargs) if _symbolic.is_symbolic(args, kwargs) else self._run(args, kwargs)
        finally:
            _here.path, _here.inside = above, inside

    def _path_above(self):
        """Names of the layers around a variable that is made now, each with a slash behind it."""
        path = getattr(_here, "path", "")
        return path[:-len(self._name) - 1] if getattr(_here, "inside", None) is self else path

    def _run(self, args, kwargs):
        outer = getattr(_here, "training", None)
        depth = getattr(_here, "depth", 0)
        if depth == 0:
            self._forget_losses()
        accepts = _parameters(type(self).call) if not self._own_graph else _parameters(self.call)
        training = kwargs.get("training")
        if training is None:
            training = outer
        if training is None and getattr(self, "_default_training", None) is not None:
            training = self._default_training
        if "training" in accepts and training is not None:
            kwargs = {**kwargs, "training": training}
        elif "training" in kwargs and "training" not in accepts:
            kwargs = {k: v for k, v in kwargs.items() if k != "training"}
        masks = _symbolic._map(_mask_of, args[0]) if args else None
        has_mask = masks is not None and any(m is not None for m in _nest.flatten(masks))
        if "mask" in accepts and kwargs.get("mask") is None and has_mask:
            kwargs = {**kwargs, "mask": masks}
        around = getattr(_here, "scope", None)
        if around is not None:
            _set_scope(None)
        self._build_for(args, {k: v for k, v in kwargs.items() if k not in ("training", "mask")})
        if _train.PENDING:                          # a checkpoint was read before there were weights
            _train.settle()
        scope = self._scope(around)
        _here.training, _here.depth = training, depth + 1
        if scope is not None:
            _set_scope(scope)
        try:
            outputs = self.call(*args, **kwargs)
        finally:
            _here.training, _here.depth = outer, depth
            if scope is not around:
                _set_scope(around)
        if self.activity_regularizer is not None:
            for t in _nest.flatten(outputs):
                penalty = self.activity_regularizer(t)
                self.add_loss(penalty / tf.cast(tf.shape(t)[0], penalty.dtype) if len(t.shape) else penalty)     # the batch's mean
        if self.supports_masking and args and (has_mask or self._makes_masks and type(self).compute_mask is not Layer.compute_mask):
            self._set_mask(outputs, self.compute_mask(args[0], masks if has_mask else None))
        elif has_mask:
            self._warn_of_mask()
        return outputs

    def _warn_of_mask(self):
        warnings.warn(f"Layer '{self.name}' (of type {type(self).__name__}) was passed an input with a mask attached to it. However, this"
                      " layer does not support masking and will therefore destroy the mask information. Downstream layers will not see"
                      " the mask.", stacklevel=4)

    @staticmethod
    def _set_mask(outputs, mask):
        """Masks for outputs one by one; one mask is the first output's."""
        for t, m in zip(_nest.flatten(outputs), _nest.flatten(mask)):
            if m is not None and getattr(t, "_keras_mask", None) is None:
                try:
                    t._keras_mask = m
                except AttributeError:
                    pass

    def call(self, *args, **kwargs):
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call()` method implemented.")

    # --- files: what a class of the user's may have in another way ---------------------------------
    def save_own_variables(self, store):
        for i, v in enumerate(self._own):
            store[str(i)] = v if is_bfloat16(v) else v.numpy()       # files hold more types than NumPy

    def load_own_variables(self, store):
        if len(store) != len(self._own):
            raise ValueError(f"Layer '{self.name}' expected {len(self._own)} variables, but received {len(store)} variables during loading."
                             f" Expected: {[v.name for v in self._own]}")
        for i, v in enumerate(self._own):
            v.assign(store[str(i)])

    def save_assets(self, dir):
        """Nothing: a layer is its configuration and its variables."""

    def load_assets(self, dir):
        """See save_assets."""

    def get_build_config(self):
        shape = self.__dict__.get("_build_shape")
        return None if shape is None else {"input_shape": shape}

    def build_from_config(self, config):
        if config and "input_shape" in config:
            self.build(config["input_shape"])

    def __deepcopy__(self, memo):
        from snug.keras import _serial
        memo[id(self)] = made = _serial.copy_of(self)
        _build_like(made, self)
        made.set_weights(self.get_weights())
        return made

    # --- configurations ---------------------------------------------------------------------------
    def get_config(self):
        config = {"trainable": self.trainable, "dtype": dtype_policies.serialize(self.dtype_policy)}
        if "_given" in self.__dict__ and type(self).__init__ is not Layer.__init__ and type(self).get_config is Layer.get_config:
            return {**self._given_settings(), **config}
        return {"name": self.name, **config}

    def _given_settings(self):
        """What the constructor was called with, where a file can hold it."""
        from snug.keras import _serial
        args, kwargs = self._given
        bound = inspect.signature(type(self).__init__).bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = {}
        for name, value in list(bound.arguments.items())[1:]:
            kind = bound.signature.parameters[name].kind
            if kind is not inspect.Parameter.VAR_POSITIONAL:
                given.update(value if kind is inspect.Parameter.VAR_KEYWORD else {name: value})
        try:
            _serial.to_config(given)
        except TypeError:
            kind, names = type(self).__name__, ", ".join(_parameters(type(self).__init__)[1:])
            raise NotImplementedError(
                f"\nObject {kind} was created by passing\nnon-serializable argument values in `__init__()`,\nand therefore the object must"
                " override `get_config()` in\norder to be serializable. Please implement `get_config()`.\n\nExample:\n\n"
                f"class CustomLayer(keras.layers.Layer):\n    def __init__(self, {names}, **kwargs):\n        ...") from None
        return given

    @classmethod
    def from_config(cls, config):
        parameters = inspect.signature(cls.__init__).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):       # it takes no more than it names
            config = {k: v for k, v in config.items() if k in parameters or k not in ("name", "trainable", "dtype")}
        return cls(**config)

    @property
    def input(self):
        return self._nodes[0].args[0] if self._nodes else None

    @property
    def output(self):
        if not self._nodes:
            raise AttributeError(f"The layer {self.name} has never been called and thus has no defined output.")
        return self._nodes[0].outputs

    @property
    def input_shape(self):
        return _symbolic._map(lambda t: tuple(t.shape), self.input)

    @property
    def output_shape(self):
        return _symbolic._map(lambda t: tuple(t.shape), self.output)

    @property
    def seems_built(self):
        """What Keras shows: a layer that has nothing to build is built from the start."""
        return self.built or getattr(self, "_seems_built", False)

    def __repr__(self):
        return f"<{type(self).__name__} name={self.name}, built={self.seems_built}>"


@contextlib.contextmanager
def within(layer):
    """What is made here lies in the layer, as its variables' paths say."""
    above, inside = getattr(_here, "path", ""), getattr(_here, "inside", None)
    if inside is not layer:
        _here.path, _here.inside = above + layer.name + "/", layer
    try:
        yield
    finally:
        _here.path, _here.inside = above, inside


def _built_for(inputs):
    """The shapes a layer is built for; within fit and evaluate the batch is open, as Keras has it."""
    is_open = metrics._in_step[1]

    def head(t):
        shape = getattr(t, "shape", None)
        shape = tuple(shape) if shape is not None else None
        return (None, *shape[1:]) if is_open and shape else shape
    return _symbolic._map(head, inputs)


_PLAIN = frozenset((int, float, str, bool, type(None)))
_TRACKED = frozenset(("_layers", "_seen_layers", "_own", "_metrics", "_added", "_nodes"))      # what they hold is tracked, or not to be


def _is_metric(value):
    return getattr(type(value), "_is_keras_metric", False)


def _build_like(made, layer):
    """Builds a layer, and those below, for the shapes that another of the same configuration was built for."""
    if layer.built and layer.__dict__.get("_build_shape") is not None:
        made.build(layer._build_shape)
    for new, old in zip(made._all_layers(), layer._all_layers()):
        if not new.built:
            _build_like(new, old)


def _set_scope(dtype):
    _here.scope = _variable.scope[0] = dtype
    _C.set_autocast(dtype)


def _mask_of(tensor):
    return getattr(tensor, "_keras_mask", None)


def _take_batch_shape(kwargs):
    """What input_shape= and its older spellings say of the first layer's input."""
    shape = kwargs.pop("input_shape", None)
    if "input_dim" in kwargs:
        shape = (kwargs.pop("input_dim"),)
    batch = kwargs.pop("batch_size", None)
    batch_shape = kwargs.pop("batch_input_shape", kwargs.pop("batch_shape", None))
    if shape is None:
        return batch_shape
    return (batch, *(shape if isinstance(shape, (tuple, list)) else (shape,)))


def _as_tensor(x, layer):
    if isinstance(x, (KerasTensor, _C.Tensor)) or x is None:
        if isinstance(x, _C.Tensor):
            dtype, own = layer._casts_to(), x.dtype
            if dtype is not None and own is not dtype and own.is_floating:
                x, mask = tf.cast(x, dtype), _mask_of(x)
                if mask is not None:
                    x._keras_mask = mask
        return x
    if isinstance(x, _C.Variable):
        return x.read_value()
    if hasattr(x, "__array__") or isinstance(x, (int, float, bool)):
        t = _C.convert_to_tensor(x)
        return _as_tensor(t, layer) if isinstance(t, _C.Tensor) else t      # a text stays one
    return x


_known = {}


def _parameters(function):
    key = getattr(function, "__func__", function)
    if key not in _known:
        try:
            _known[key] = list(inspect.signature(key).parameters)
        except (TypeError, ValueError):
            _known[key] = []
    return _known[key]
