"""keras.layers: one class per layer of the engine, with Keras' arguments; and those that are Python's: Lambda, wrappers of
custom layers, Input."""
import collections
import functools
import importlib
import json
import warnings

from snug import _C, _nest, errors
from snug._lazy import tf as _tf
from snug._threads import aside
from snug._given import default_only, refuse
from snug.keras import _layer, _serial, _signatures, _symbolic, activations, backend
from snug.keras._layer import InputSpec, Layer  # noqa: F401 (InputSpec is a name of keras.layers)
from snug.keras._names import auto_name, numbered, snake
from snug.keras._symbolic import KerasTensor, Node
from snug.keras._variable import KerasVariable

_C.set_variable_class(KerasVariable)


_NOT_THE_ENGINES = ("use_cudnn", "implementation", "weights", "unroll", "reset_after_build", "input_axes", "output_axes")


_PER_AXIS = ("kernel_size", "strides", "dilation_rate", "pool_size", "size", "output_padding")
_BOTH_ENDS = ("padding", "cropping")


def _spell_out(settings, values):
    """Numbers that stand for one per axis, or for one per side, become tuples, as Keras' layers hold them."""
    if "data_format" in values and values["data_format"] is None:
        values["data_format"] = backend.image_data_format()
    for key in _PER_AXIS:
        if isinstance(values.get(key), int) and not (key == "size" and settings[key][0] == 1):
            values[key] = (values[key],) * settings[key][0]
    for key in _BOTH_ENDS:
        value, sides = values.get(key), settings[key][0] if key in settings else 0
        if isinstance(value, int):
            value = values[key] = (value,) * max(sides // 2, 2)
        if isinstance(value, (list, tuple)) and sides > 2:
            values[key] = tuple((v, v) if isinstance(v, int) else tuple(v) for v in value)
    if "pool_size" in values and values["strides"] is None:
        values["strides"] = values["pool_size"]


def _written(key, value):
    """A setting as Keras' get_config gives it."""
    if key.endswith("_initializer") and isinstance(value, str):
        from snug.keras import initializers
        value = initializers.get(value)
    if key in ("activation", "recurrent_activation") and value is None:
        return "linear"
    return value if isinstance(value, tuple) else _serial.to_config(value)


def _of_python(key, value):
    """Whether a setting is one that the engine cannot know: an initialiser, a regulariser, a constraint or an activation of the user's."""
    if value is None or isinstance(value, str) or not callable(value):
        return False
    kind = key.rpartition("_")[2]
    if kind not in _INSTEAD:
        return False
    if kind in ("regularizer", "constraint"):
        return not type(value).__module__.startswith("snug.")
    from snug.keras import initializers
    return not (initializers if kind == "initializer" else activations).is_of_engine(value)


# What the engine's layer has in place of a setting of the user's.
_INSTEAD = {"initializer": "zeros", "regularizer": None, "constraint": None, "activation": "linear"}


def _for_engine(key, value):
    if key.endswith("_initializer") and getattr(value, "seed", 0) is None and hasattr(value, "own_seed"):
        return {**_serial.to_config(value), "config": {**value.get_config(), "seed": value.own_seed()}}      # the same values each time
    return _INSTEAD[key.rpartition("_")[2]] if _of_python(key, value) else value


def _is_of_engine(layer):
    """Whether the engine can run the layer inside another of its own."""
    return isinstance(layer, _Built) and type(layer).__module__.startswith("snug.") and \
        not any(_of_python(k, v) for k, v in layer._values.items()) and all(_is_of_engine(inner) for inner in layer._layers)


def is_single_picture(stack, x):
    """One picture for layers of which some want a batch of them, where shapes are inferred: they are called one by one."""
    return len(x.shape) == 3 and any(getattr(layer, "_takes_picture", False) for layer in stack)


class _Built(Layer):
    """A layer whose build function is the engine's; subclasses are made from the rows of its table."""
    _makes_masks = False        # its call does
    _made_mask = None           # of those that make one by themselves: the symbolic one, of an input
    _row = None
    __signature__ = _serial.Shown(lambda cls: cls._row and cls._row["arguments"], "**kwargs")
    _takes_picture = property(lambda self: self._row["picture"])
    _reads_indices = property(lambda self: self._row["indices"])
    _seems_built = property(lambda self: self._row["at_once"] and type(self).__module__.startswith("snug."))

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "_row" in cls.__dict__ and not cls.__doc__:
            cls.__doc__ = cls._row["about"] + "."

    def __init__(self, *args, **kwargs):
        cls = _engine_class(type(self))
        _check_words(kwargs)
        values = _serial.bind(cls.__name__, cls._arguments(), args, kwargs)
        _check_values(values)
        _spell_out(cls._row["settings"], values)
        regularizer = values.get("activity_regularizer", kwargs.pop("activity_regularizer", None))
        _take_beside(cls.__name__, values, kwargs)
        super().__init__(**kwargs)
        d = self.__dict__
        d["autocast"] = d["autocast"] and not cls._row["uncast"]
        # No lists: who looks for weights looks there.
        d.update(supports_masking=True, _values=values, _c=None, _states=collections.deque(), _taken=collections.deque())
        d.update({k: v for k, v in values.items() if k != "weights"})
        if "activation" in values and (d["activation"] is None or isinstance(d["activation"], str)):
            d["activation"] = activations.get(d["activation"])
        for value in values.values():
            if isinstance(value, Layer):
                self._track(value)
        d["activity_regularizer"] = regularizer if _of_python("activity_regularizer", regularizer) else None  # else the engine's
        if regularizer is not None:
            values["activity_regularizer"] = regularizer
        self._look()

    @classmethod
    def _arguments(cls):
        return _serial.parse_signature(cls._row["arguments"])

    def __setattr__(self, name, value):
        if name == "activation" and value is None:
            value = activations.get(None)
        super().__setattr__(name, value)
        if name in ("activation", "rate") and name in self.__dict__.get("_values", ()):
            self._values[name] = value
            self._look()
            self._renew()

    def _renew(self):
        """A setting changed: the engine's layer is made anew, and what the weights hold is taken along."""
        held, drawn, self.__dict__["_c"] = list(self._taken), self._c.draws() if self._c is not None else 0, None
        if drawn:
            self._engine().set_draws(drawn)
        if not held:
            return
        own = list(self._own)
        for kept in (self._own, self._states, self._taken):
            kept.clear()
        _engine_class(type(self)).build(self, self._build_shape)        # a subclass' own weights stay
        made = {id(old): new for old, new in zip(held, self._taken)}
        self._own[:] = [made.get(id(v), v) for v in own]
        for old, new in zip(held, self._taken):
            new.assign(old)

    # --- the engine's layer -----------------------------------------------------------------------
    def _engine(self):
        if self._c is None:
            self.__dict__["_c"] = _C.Layer(*self._engine_words())
        return self._c

    def _engine_words(self):
        """Class and settings as the engine's layers are made of."""
        cls = _engine_class(type(self))
        policy = self._policy()         # of whole numbers: nothing is cast
        config = dict(name=self.name, trainable=self._trainable, dtype=policy.name if policy._casts_to else "float32")
        if not self.autocast:
            config["autocast"] = False
        for key, value in self._values.items():
            if key in _NOT_THE_ENGINES:
                continue
            if type(value) not in _layer._PLAIN:
                value = _without(_serial.to_config(_for_engine(key, value)), _NOT_THE_ENGINES)
            if value is not None:
                config[key] = value
            elif key == "activation":
                config[key] = "linear"
        return cls.__name__, json.dumps(config)

    def _take_variables(self):
        known = len(self._taken) + len(self._states)
        made = self._c.variables()
        if len(made) == known:
            return
        around = self._path_above()
        for v in made[known:]:
            if "stateful" in self._values and v.name.startswith("rnn_state_"):
                self._states.append(v)
                continue
            v._may_train = v.trainable
            if self._is_custom:
                self._start(v)
            if self._is_watched:
                self._watch(v)
            self._own.append(v)
            self._taken.append(v)
            above, _, name = v.path.rpartition("/")
            if above and "/" not in above and (name not in self._values or name == "alpha"):
                self.__dict__[name] = v
            v._above = around
        if not self._trainable:
            self.trainable = False
        if self._values.get("weights") is not None and self._own:
            given = self._values.pop("weights")
            aside(lambda: self.set_weights(given if isinstance(given, (list, tuple)) else [given]))

    def _watch(self, variable):
        """The regulariser and the constraint that are the user's, and every constraint: an optimizer applies them."""
        from snug.keras import constraints
        for key in _keys_of(variable, "regularizer"):
            if _of_python(key, self._values.get(key)):
                variable.regularizer = self._values[key]
        for key in _keys_of(variable, "constraint"):
            if self._values.get(key) is not None:
                variable.constraint = constraints.get(self._values[key])

    def _start(self, variable):
        """What an initialiser of the user's gives a new variable, for which the engine has zeros."""
        for key in _keys_of(variable, "initializer"):
            function = self._values.get(key)
            if _of_python(key, function):
                aside(lambda: variable.assign(_tf.cast(function(tuple(variable.shape), dtype=variable.dtype), variable.dtype)))
                return

    @property
    def states(self):
        """What a stateful recurrent layer keeps from batch to batch."""
        return list(self._states) or None

    def reset_state(self):
        for v in self._states:
            v.assign(_tf.zeros_like(v))

    reset_states = reset_state

    def _weight_groups(self):
        return {"cell": self.weights} if self._row["cell"] else None

    def get_initial_state(self, batch_size=None):
        """Zeros, one for each state of a recurrent layer."""
        if not self._row["recurrent"]:
            raise AttributeError(f"'{self._row['name']}' object has no attribute 'get_initial_state'")
        return [_tf.zeros((batch_size, self.units), self.compute_dtype) for _ in range(self._cell_class()._n_states)]

    def _cell_class(self):
        return globals()[self._row["name"] + "Cell"]

    @property
    def trainable(self):
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        Layer.trainable.fset(self, value)
        if self.__dict__.get("_c") is not None:
            self._c.set_trainable(bool(value))

    def build(self, input_shape=None):
        if input_shape is None:
            return
        shapes = [input_shape] if not input_shape or not isinstance(input_shape[0], (tuple, list)) else list(input_shape)
        self.__dict__["_build_shape"] = input_shape
        with _value_errors:
            self._engine().infer([(self._input_dtype(), tuple(s)) for s in shapes])
        self._take_variables()
        self.__dict__["built"] = True

    def _input_dtype(self):
        return _layer.as_dtype("int32" if self._reads_indices else self.compute_dtype)

    def _build_for(self, args, kwargs):
        if type(self).build is not _Built.build and not self.built:
            Layer._build_for(self, args, kwargs)

    def _symbolic_call(self, args, kwargs):
        if self._values.get("stateful") and args[0].shape[0] is None:
            raise ValueError("When using `stateful=True` in a RNN, the batch size must be static. Found dynamic batch size:"
                             f" sequence.shape={tuple(args[0].shape)}")
        tensors, roles, words = _arrange(args, kwargs)
        plain = all(isinstance(t, KerasTensor) for t in tensors) and not any(roles) and not words
        plain = plain and type(self).call is _Built.call and not self._is_bent and not self._is_stepped
        outputs = self._inferred(args, tensors) if plain else _symbolic.infer(self._plain_call, args, kwargs)
        self.__dict__["built"] = True
        self._mask_symbolic(args, outputs)
        self._nodes.append(Node(self, args, kwargs, outputs))
        return outputs

    def _mask_symbolic(self, args, outputs):
        """A layer that keeps the steps hands the mask on, unless it mixes them."""
        mask = self._made_mask(args[0]) if self._made_mask else None
        if mask is None and not self._row["drops_masks"]:
            mask = next((t._keras_mask for t in _nest.flatten(list(args)) if getattr(t, "_keras_mask", None) is not None), None)
        first = _nest.flatten(outputs)[0]
        if mask is not None and tuple(first.shape[:len(mask.shape)]) == tuple(mask.shape):
            first._keras_mask = mask

    def _look(self):
        """Notes, for calls, whether the activation is the user's: a recurrent layer is then stepped in Python, with the engine's weights,
        others hand over what they give. And whether anything else is the user's, and variables have regularisers or constraints."""
        given = [(k, v) for k, v in self._values.items() if v is not None]
        watched = any([k.endswith(("_regularizer", "_constraint")) for k, _ in given])
        custom = [k for k, v in given if _of_python(k, v)]
        own = "activation" in custom or "recurrent_activation" in custom
        recurrent = own and self._row["recurrent"]
        adding = self._values.get("activity_regularizer") is not None or self._row["penalty"] or \
            any([getattr(inner, "_is_adding", False) for inner in self._layers])
        self.__dict__.update(_is_stepped=recurrent, _is_bent=own and not recurrent, _is_watched=watched, _is_custom=bool(custom),
                             _is_adding=adding)

    def _take_losses(self):
        """What the call added, so that it is there until the next one; the engine hands it out once, behind the weights' penalties."""
        found = self._c.losses()
        self._added.extend(found[len(self._c.losses()):])

    def _stepped(self, tensors, mask, training):
        if not self.built:
            self.build(tuple(tensors[0].shape))
        kind = self._cell_class()
        self.__dict__["cell"] = kind(**{k: self._values[k] for k, _ in kind._arguments() if k in self._values})
        self.cell.__dict__.update(_rnn=self, built=True)
        return RNN._step_all(self, tensors[0], tensors[1:] or None, mask, training)

    _first_states = lambda self, batch, initial_state: RNN._first_states(self, batch, initial_state)

    def _inferred(self, args, tensors):
        """What the engine says of the shapes; where extents are open that it cannot do without, or where Python has a part in the call,
        what two runs on stand-ins say."""
        if type(self).call is not _Built.call or self._row["extents"] and None in tensors[0].shape[1:]:
            return _symbolic.infer(self._plain_call, args, {})
        try:
            with _value_errors:
                made = [KerasTensor(shape, dtype) for dtype, shape in self._engine().infer([(t._dtype, t.shape) for t in tensors])]
        except ValueError:
            if not any(None in t.shape[1:] for t in tensors):
                raise
            return _symbolic.infer(self._plain_call, args, {})
        self._take_variables()
        self.__dict__["_build_shape"] = _symbolic._map(lambda t: tuple(t.shape), args[0])
        return made[0] if len(made) == 1 else tuple(made)

    def call(self, *args, training=None, mask=None, **kwargs):
        tensors, roles, words = _arrange(args, kwargs)
        masks = [getattr(t, "_keras_mask", None) for t in tensors]
        if mask is not None:
            given = [m if m is None or _C.is_tensor(m) else _C.convert_to_tensor(m) for m in _nest.flatten(mask)]
            masks[:len(given)] = given[:len(masks)]
        if self._is_stepped:
            return self._stepped(tensors, masks[0], training)
        masks = masks if any(m is not None for m in masks) else None
        if not self.built:
            self.__dict__["_build_shape"] = _layer._built_for(args[0])
        single = self._row["picture"] and len(tensors) == 1 and len(tensors[0].shape) == 3
        tensors = [_tf.expand_dims(t, 0) for t in tensors] if single else tensors
        with _value_errors:
            if not self._taken and (self._is_custom or self._values.get("weights") is not None):
                self._engine().infer([(t.dtype, tuple(t.shape)) for t in tensors])
                self._take_variables()
            outputs, out_mask = self._engine().call(tensors, roles if any(roles) else None, masks, bool(training), words or None)
        self._take_variables()
        self.__dict__["built"] = True
        if self._is_adding:
            self._take_losses()
        if self._is_bent:
            outputs[0] = self._values["activation"](outputs[0])
        if out_mask is not None:
            outputs[0]._keras_mask = out_mask
        if single:
            return _tf.squeeze(outputs[0], 0)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compute_mask(self, inputs, previous_mask=None):
        """Of the two that make one; what others pass on is the engine's."""
        return None

    def compute_output_shape(self, input_shape):
        shapes = [input_shape] if not isinstance(input_shape[0], (tuple, list)) else list(input_shape)
        tensors = [KerasTensor(s, self._input_dtype()) for s in shapes]
        return _symbolic._map(lambda t: tuple(t.shape), self._inferred((tensors[0] if len(tensors) == 1 else tensors,), tensors))

    def _own_penalties(self):
        found = self._c.losses() if self.__dict__.get("_c") is not None else []
        return found + [v.regularizer(v) for v in self._own if v.regularizer is not None]

    def _counters(self):
        """-1 where the engine's layer is not made yet: making it takes one of the program's keys."""
        def take(n):
            if n >= 0:
                self._engine().set_draws(n)
        made = self.__dict__.get("_c")
        return Layer._counters(self) + [(-1 if made is None else made.draws(), take)]

    def _seeds(self):
        if not self._row["draws"] or not self.built:
            return []
        if "_seed_state" not in self.__dict__:
            self.__dict__["_seed_state"] = KerasVariable(_C.full((2,), 0, _layer.as_dtype("int64")), trainable=False,
                                                         name="seed_generator/seed_generator_state")
        return [self._seed_state]

    def get_config(self):
        return {**Layer.get_config(self), **{k: _written(k, v) for k, v in self._values.items() if k not in ("weights", "use_cudnn")}}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for key, value in config.items():
            if isinstance(value, dict) and "class_name" in value and key in ("layer", "backward_layer", "cell"):
                config[key] = _serial.deserialize_keras_object(value)
            elif key == "cells" or key == "cell" and isinstance(value, list):
                config[key] = [_serial.deserialize_keras_object(v) for v in value]
            elif isinstance(value, dict) and not str(value.get("module") or "keras").startswith("keras"):       # the user's
                config[key] = _serial.deserialize_keras_object(value)
        for key in ("quantization_config", "zero_output_for_mask"):     # what Keras writes of settings nobody made
            if not config.get(key, True):
                del config[key]
        return cls(**config)


def _take_beside(name, values, kwargs):
    """Settings that Keras takes beside those of a signature; `implementation` is how a step is computed, which changes no result."""
    if "recurrent_initializer" in values:
        kwargs.pop("implementation", None)
        if kwargs.pop("zero_output_for_mask", False):
            values["zero_output_for_mask"] = True
    for word in _NOT_TAKEN:
        value = values.pop(word, None)
        if value is not None:
            refuse(name, word, value, None)


_NOT_TAKEN = ("lora_rank", "lora_alpha", "quantization_config", "flash_attention")
_PADDINGS = ("valid", "same", "causal")


def _check_values(values):
    for key in ("units", "filters", "output_dim"):
        if key in values and (not hasattr(values[key], "__index__") or values[key] <= 0):
            raise ValueError(f"Received an invalid value for `{key}`, expected a positive integer. Received: {key}={values[key]}")
    rate = values.get("rate")
    if isinstance(rate, (int, float)) and not 0 <= rate <= 1:
        raise ValueError(f"Invalid value received for argument `rate`. Expected a float value between 0 and 1. Received: rate={rate}")
    padding = values.get("padding")
    if isinstance(padding, str) and padding.lower() not in _PADDINGS:
        raise ValueError(f"The `padding` argument must be a list/tuple or one of {_PADDINGS}. Received: {padding}")


def _check_words(given):
    """Names of initialisers and the like that nobody knows are refused at once."""
    for key, value in given.items():
        kind = key.rpartition("_")[2]
        if isinstance(value, str) and kind in _INSTEAD:
            importlib.import_module(f"snug.keras.{'activations' if kind == 'activation' else kind + 's'}").get(value)


def _without(config, keys):
    if isinstance(config, dict):
        return {k: _without(v, keys) for k, v in config.items() if k not in keys}
    return [_without(v, keys) for v in config] if isinstance(config, list) else config


class _ValueErrors:
    """Keras refuses shapes and settings with a ValueError."""

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        if isinstance(error, (errors.InvalidArgumentError, errors.DataLossError)) and not isinstance(error, errors._DataError):
            raise ValueError(str(error)) from None      # data loss: the engine takes no such number or text in a configuration


_value_errors = _ValueErrors()


def _engine_class(cls):
    """The class whose name the engine knows: of a subclass, its built-in base."""
    return next(c for c in cls.__mro__ if "_row" in c.__dict__ and c is not _Built)


_CALL_WORDS = {"training", "mask", "initial_state", "query", "value", "key", "query_mask", "value_mask", "key_mask", "attention_mask",
               "return_attention_scores", "use_causal_mask", "count_weights", "inputs", "sequences"}


def _arrange(args, kwargs):
    """Flat tensors, their roles, and keywords that are no tensors as the engine's text."""
    tensors, roles, words = [], [], []
    for k, arg in enumerate(args):
        flat = [t if _C.is_tensor(t) or isinstance(t, KerasTensor) else _C.convert_to_tensor(t)
                for t in _nest.flatten(arg) if t is not None]
        tensors += flat
        roles += [None] * len(flat)
    for name, value in kwargs.items():
        if name not in _CALL_WORDS:
            raise TypeError(f"call() got an unexpected keyword argument '{name}'")
        if value is None or name in ("training", "return_attention_scores") and value is False:
            continue
        flat = _nest.flatten(value)
        if all(_C.is_tensor(t) or isinstance(t, KerasTensor) or hasattr(t, "__array__") for t in flat):
            tensors += [t if isinstance(t, KerasTensor) else _C.convert_to_tensor(t) for t in flat]
            roles += [name] * len(flat)
        else:
            words.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    return tensors, roles, " ".join(words)


class LeakyReLU(_Built):
    _row = _C.layer_row("LeakyReLU")
    _keras_module = "keras.layers"

    def __init__(self, *args, **kwargs):
        if "alpha" in kwargs:
            kwargs["negative_slope"] = kwargs.pop("alpha")
            warnings.warn("Argument `alpha` is deprecated. Use `negative_slope` instead.", stacklevel=2)
        super().__init__(*args, **kwargs)


class Embedding(_Built):
    _row = _C.layer_row("Embedding")
    _keras_module = "keras.layers"

    def __init__(self, *args, **kwargs):
        if kwargs.pop("input_length", None) is not None:
            warnings.warn("Argument `input_length` is deprecated. Just remove it.", stacklevel=2)
        super().__init__(*args, **kwargs)

    def _made_mask(self, x):
        return KerasTensor(x.shape, "bool") if self.mask_zero else None

    def compute_mask(self, inputs, previous_mask=None):
        return _tf.not_equal(_C.convert_to_tensor(inputs), 0) if self.mask_zero and not _symbolic.is_symbolic(inputs) else None


class Masking(_Built):
    _row = _C.layer_row("Masking")
    _keras_module = "keras.layers"

    def _made_mask(self, x):
        return KerasTensor(x.shape[:-1], "bool")

    def compute_mask(self, inputs, previous_mask=None):
        if _symbolic.is_symbolic(inputs):
            return None
        return _tf.reduce_any(_tf.not_equal(_C.convert_to_tensor(inputs), self.mask_value), axis=-1)


class RandomCrop(_Built):
    """Windows of pictures while training; else Keras 3.15 gives the pictures back as they are, whatever shapes it names."""
    _row = _C.layer_row("RandomCrop")
    _keras_module = "keras.layers"
    _default_training = True

    def call(self, inputs, training=True):
        return super().call(inputs, training=True) if training else _C.convert_to_tensor(inputs)


class Discretization(_Built):
    """Bins with given boundaries, or with those of quantiles that adapt() finds within `epsilon`."""
    _row = _C.layer_row("Discretization")
    _keras_module = "keras.layers"

    def adapt(self, data, steps=None):
        import numpy as np
        if self._values["num_bins"] is None:
            raise ValueError("Cannot adapt a Discretization layer that has been initialized with `bin_boundaries`, use `num_bins` instead.")
        batches = [data] if hasattr(data, "shape") or isinstance(data, list) else data
        found = np.empty((2, 0), "float32")
        for k, batch in enumerate(batches):
            if steps is not None and k >= steps:
                break
            values = np.sort(np.asarray(batch, "float32").reshape(-1))
            every = max(values.size * self.epsilon, 1)
            kept = values[int(every - 1)::int(every)]
            both = np.concatenate([np.stack([kept, np.full_like(kept, every)]), found], axis=1)
            found = _quantiles(both[:, np.argsort(both[0])], self.epsilon)
        self._values["bin_boundaries"] = self.__dict__["bin_boundaries"] = _quantiles(found, 1.0 / self.num_bins)[0, :-1].tolist()
        self.__dict__["_c"] = None

    def _engine_words(self):
        name, config = super()._engine_words()
        config = json.loads(config)
        if config.get("bin_boundaries"):
            config = {k: v for k, v in config.items() if k not in ("num_bins", "epsilon")}
        return name, json.dumps(config)


def _quantiles(summary, epsilon):
    """Values and their weights, brought down to 1 / epsilon of them."""
    import numpy as np
    if summary.shape[1] * epsilon < 1:
        return summary
    wanted, sums = epsilon + np.arange(0.0, 1.0, epsilon), summary[1].cumsum()
    weights = np.diff(np.interp(wanted, sums / sums[-1], sums), prepend=0.0)
    return np.stack([np.interp(wanted, sums / sums[-1], summary[0]), weights]).astype("float32")


def _keys_of(variable, kind):
    """Settings that may speak of a variable: kernel_initializer of kernel, depthwise_initializer of depthwise_kernel."""
    return f"{variable.name}_{kind}", f"{variable.name.removesuffix('_kernel')}_{kind}"


class TimeDistributed(_Built):
    """A layer of the engine runs in it; a model, or a layer written in Python, sees all steps as rows of one batch."""
    _row = _C.layer_row("TimeDistributed")
    _keras_module = "keras.layers"

    def call(self, inputs, training=None, mask=None):
        if _is_of_engine(self.layer):
            return _Built.call(self, inputs, training=training, mask=mask)
        self.__dict__["built"] = True
        steps = inputs.shape[1]
        keywords = {} if training is None else {"training": training}
        if mask is not None and "mask" in _layer._parameters(type(self.layer).call):
            keywords["mask"] = _tf.reshape(mask, (-1, *mask.shape[2:]))
        made = self.layer(_tf.reshape(inputs, (-1, *inputs.shape[2:])), **keywords)
        made = _symbolic._map(lambda t: _tf.reshape(t, (-1, steps, *t.shape[1:])), made)
        self._set_mask(made, mask)
        return made


    def _weight_groups(self):
        return {"layer": self.weights}


class _Around(_Built):
    """What runs recurrent cells or layers: in the engine, or where `_python` says so by `_step_all`."""

    def _symbolic_call(self, args, kwargs):
        return Layer._symbolic_call(self, args, kwargs) if self._python else super()._symbolic_call(args, kwargs)

    def call(self, sequences, initial_state=None, mask=None, training=None):
        if not self._python:
            extra = {} if initial_state is None else {"initial_state": initial_state}
            return super().call(sequences, mask=mask, training=training, **extra)
        return self._step_all(sequences, initial_state, mask, training)


class Bidirectional(_Around):
    """Both directions run in the engine, unless the one back is a layer of its own, or a layer is written in Python."""
    _row = _C.layer_row("Bidirectional")
    _keras_module = "keras.layers"

    def __init__(self, layer, merge_mode="concat", weights=None, backward_layer=None, **kwargs):
        if not isinstance(layer, Layer):
            raise ValueError(f"Please initialize `Bidirectional` layer with a `keras.layers.Layer` instance. Received: {layer}")
        if merge_mode not in ("sum", "mul", "ave", "concat", None):
            raise ValueError(f'Invalid merge mode. Received: {merge_mode}. Merge mode should be one of {{"sum", "mul", "ave", "concat", None}}')
        super().__init__(layer, merge_mode, weights, backward_layer, **kwargs)
        self.__dict__["_python"] = backward_layer is not None or not _is_of_engine(layer)
        if not self._python:
            self.__dict__.update(forward_layer=layer, backward_layer=layer)
            return
        for inner in (layer, backward_layer):
            if inner is not None and inner in self._layers:
                self._layers.remove(inner)
        self.forward_layer = _directed(layer, "forward_", {})
        self.backward_layer = backward_layer or _directed(layer, "backward_", {"go_backwards": True})

    def _weight_groups(self):
        below = ["/" + name for name in self.layer._weight_groups() or ()] or [""]
        groups, weights = [side + word for side in ("forward_layer", "backward_layer") for word in below], self.weights
        n = len(weights) // len(groups)
        return {group: weights[n * i:n * i + n] for i, group in enumerate(groups)}

    def _engine_words(self):
        name, config = super()._engine_words()
        return name, config if self.merge_mode is not None else json.dumps({**json.loads(config), "merge_mode": "none"})

    def _step_all(self, sequences, initial_state, mask, training):
        self.__dict__["built"] = True
        given, keywords = _nest.flatten(initial_state) if initial_state is not None else [], {"mask": mask, "training": training}
        half = len(given) // 2
        one = self.forward_layer(sequences, **({"initial_state": given[:half]} if given else {}), **keywords)
        two = self.backward_layer(sequences, **({"initial_state": given[half:]} if given else {}), **keywords)
        states = (*one[1:], *two[1:]) if self.layer.return_state else ()
        one, two = (one[0], two[0]) if self.layer.return_state else (one, two)
        if self.layer.return_sequences:
            two = _tf.reverse(two, [1])
        merged = _merged(self.merge_mode, one, two)
        if mask is not None and self.layer.return_sequences and self.merge_mode is not None:
            merged[0]._keras_mask = mask
        return (*merged, *states) if len(merged) + len(states) > 1 else merged[0]

    def compute_output_shape(self, input_shape):
        made = _symbolic.infer(self._plain_call, (KerasTensor(input_shape),), {}) if self._python else None
        return super().compute_output_shape(input_shape) if made is None else _symbolic._map(lambda t: tuple(t.shape), made)


def _directed(layer, word, settings):
    """A fresh layer like it, for one of the directions."""
    return _serial.copy_of(layer, {**settings, "name": word + layer.name.removeprefix(word)})


def _merged(mode, one, two):
    if mode is None:
        return one, two
    if mode == "concat":
        return (_tf.concat([one, two], -1),)
    return (one * two if mode == "mul" else (one + two) / 2.0 if mode == "ave" else one + two,)


class MultiHeadAttention(_Built):
    _row = _C.layer_row("MultiHeadAttention")

    def _weight_groups(self):
        weights = self.weights
        n = len(weights) // 4
        return {word + "_dense": weights[n * i:n * i + n] for i, word in enumerate(("query", "key", "value", "output"))} if weights else None

    def call(self, query, value=None, key=None, query_mask=None, value_mask=None, key_mask=None, attention_mask=None,
             return_attention_scores=False, training=None, use_causal_mask=False):
        if "_inside" not in self.__dict__:
            self.__dict__["_inside"] = auto_name("softmax"), auto_name("dropout")     # the names of what Keras has in it
        extra = {"key": key, "attention_mask": attention_mask, "query_mask": query_mask, "value_mask": value_mask,
                 "key_mask": key_mask}
        extra = {k: v for k, v in extra.items() if v is not None}
        if use_causal_mask:
            extra["use_causal_mask"] = True
        if return_attention_scores:
            extra["return_attention_scores"] = True
        return _Built.call(self, query, value=value if value is not None else query, training=training, **extra)


def _make(name):
    row = _C.layer_row(name)
    cls = type(name, (_Built,), {"_row": row, "__module__": __name__, "_keras_module": "keras.layers"})
    if row["picture"] and row["draws"]:
        cls._default_training = True        # unless somebody says that nothing trains
    return cls


@functools.cache
def _names():
    """Classes that are rows of the engine's table."""
    return _C.layer_names()


MultiHeadAttention._keras_module = "keras.layers"


def __getattr__(name):
    name_of = _signatures.LAYER_ALIASES.get(name, name)
    if name_of in _names() and name_of not in globals() and name_of != "Normalization":
        globals()[name_of] = _make(name_of)
    if name_of in globals():
        globals()[name] = globals()[name_of]
        return globals()[name]
    if name == "__all__":       # what a star gives
        return __dir__()
    if name.startswith("__"):
        raise AttributeError(name)
    from snug.keras import _augment, _hashing, _lookup, _normalization, _spectra
    home = _lookup if name in _OF_TEXT else _hashing if name in _HASHED else _normalization if name == "Normalization" else \
        _augment if name in _augment.NAMES else _spectra if name in _spectra.NAMES else None
    if home is not None:
        globals()[name] = getattr(home, name)
        return globals()[name]
    import difflib
    near = difflib.get_close_matches(name, _names() + list(_signatures.LAYER_ALIASES) + _OWN, 1)
    raise AttributeError(f"keras.layers.{name} is not in Snug" + (f"; the nearest is {near[0]}" if near else ""))


_OF_TEXT = ["StringLookup", "IntegerLookup", "TextVectorization"]
_HASHED = ["Hashing", "HashedCrossing"]
_OWN = ["TFSMLayer", "Lambda", "Layer", "InputLayer", "Input", "InputSpec", "Wrapper", "add", "concatenate"] + _OF_TEXT


def __dir__():
    from snug.keras import _augment, _spectra
    return sorted(_names() + list(_signatures.LAYER_ALIASES) + _OWN + _HASHED + _augment.NAMES + _spectra.NAMES)


# --- inputs ---------------------------------------------------------------------------------------------
class InputLayer(Layer):
    """The inputs of a model: their shape and dtype."""
    _keras_module = "keras.layers"

    @default_only("sparse ragged", "keras.Input")
    def __init__(self, shape=None, batch_size=None, dtype=None, sparse=None, ragged=None, batch_shape=None, input_tensor=None,
                 optional=False, name=None, input_shape=None, batch_input_shape=None):
        shape = shape if shape is not None else input_shape
        batch_shape = batch_shape or batch_input_shape
        if input_tensor is not None:
            if not isinstance(input_tensor, KerasTensor):
                raise ValueError(f"Argument `input_tensor` must be a KerasTensor. Received invalid type: input_tensor={input_tensor} (of type"
                                 f" {type(input_tensor)})")
            batch_shape, dtype = input_tensor.shape, input_tensor.dtype
        if batch_shape is None:
            if shape is None:
                raise ValueError("You must pass a `shape` argument.")
            batch_shape = (batch_size, *(shape if isinstance(shape, (tuple, list)) else (shape,)))
        super().__init__(name=name or auto_name("input_layer"), dtype=None)
        self.batch_shape = tuple(batch_shape)
        self.__dict__["_input_dtype"] = _layer.as_dtype(dtype or backend.floatx())
        self.__dict__["optional"] = bool(optional)
        t = KerasTensor(self.batch_shape, self._input_dtype, name=name) if input_tensor is None else input_tensor
        self._nodes.append(Node(self, (), {}, t))
        self.__dict__["built"] = True

    def call(self):
        return None

    @property
    def dtype(self):
        return self._input_dtype.name

    @property
    def output(self):
        return self._nodes[0].outputs

    def get_config(self):
        return {"batch_shape": list(self.batch_shape), "dtype": self.dtype, "sparse": False, "ragged": False, "name": self.name}


def Input(shape=None, batch_size=None, dtype=None, sparse=None, ragged=None, batch_shape=None, name=None, tensor=None,
          optional=False):
    """A symbolic tensor to begin a functional model with."""
    return InputLayer(shape=shape, batch_size=batch_size, dtype=dtype, sparse=sparse, ragged=ragged, batch_shape=batch_shape, input_tensor=tensor,
                      optional=optional, name=name).output


# --- Python's own ---------------------------------------------------------------------------------------
class Lambda(Layer):
    _keras_module = "keras.layers"

    def __init__(self, function, output_shape=None, mask=None, arguments=None, **kwargs):
        super().__init__(**kwargs)
        self.function, self.arguments = function, arguments or {}
        self.__dict__["_output_shape"] = output_shape
        self.__dict__["supports_masking"] = mask is None
        self.__dict__["_mask"] = mask

    def call(self, inputs, mask=None, training=None):
        accepts = _layer._parameters(self.function)
        kwargs = dict(self.arguments)
        if "mask" in accepts:
            kwargs["mask"] = mask
        if "training" in accepts:
            kwargs["training"] = training
        return self.function(inputs, **kwargs)

    def get_config(self):
        shape = {} if self._output_shape is None else {"output_shape": _serial.to_config(self._output_shape)}
        return {**Layer.get_config(self), "function": _serial.to_config(self.function), **shape,
                "arguments": _serial.to_config(self.arguments)}

    @classmethod
    def from_config(cls, config):
        function = config["function"]
        function = _serial.find_function(function) if isinstance(function, str) else _serial.deserialize_keras_object(function)
        shape = config.get("output_shape")
        return cls(**{**config, "function": function, "output_shape": tuple(shape) if isinstance(shape, list) else shape})


class RNN(_Around):
    """Cells of the engine run in it; a cell written in Python is stepped here."""
    _row = _C.layer_row("RNN")
    _keras_module = "keras.layers"

    def __init__(self, cell, *args, **kwargs):
        if isinstance(cell, (list, tuple)):
            cell = __getattr__("StackedRNNCells")(list(cell))
        super().__init__(cell, *args, **kwargs)
        shared = isinstance(cell, _Cell) and cell.__dict__.get("_rnn") is not None
        self.__dict__["_python"] = not _is_of_engine(cell) or shared
        if isinstance(cell, _Cell) and not shared:
            cell.__dict__["_rnn"] = self

    def _weight_groups(self):
        weights, cells = self.weights, getattr(self.cell, "cells", self.cell)
        if not isinstance(cells, (list, tuple)):
            return {"cell": weights}
        n, names = len(weights) // len(cells), numbered(snake(type(c).__name__) for c in cells)
        return {"cell/cells/" + name: weights[n * i:n * i + n] for i, name in enumerate(names)}

    def _engine(self):
        if self._python:
            raise NotImplementedError("this RNN has a cell written in Python")
        return super()._engine()

    def _first_states(self, batch, initial_state):
        """Those that are given, those kept of the last batch, or zeros, or what the cell says."""
        cell = self.cell
        if initial_state is not None:
            return list(_nest.flatten(initial_state))
        if self._states and self.stateful:
            return [v.read_value() for v in self._states]
        if hasattr(cell, "get_initial_state"):
            made = list(_nest.flatten(cell.get_initial_state(batch_size=batch)))
        else:
            made = [_tf.zeros((batch, *(s if isinstance(s, (list, tuple)) else (s,)))) for s in _sizes(cell.state_size)]
        if self.stateful:
            self._states.extend(KerasVariable(t, trainable=False, name=f"{self.name}/rnn_state_{i}") for i, t in enumerate(made))
        return made

    def _step_all(self, sequences, initial_state, mask, training):
        """A step that is masked changes no state and repeats the output before it."""
        from snug import _flow
        from snug._lazy import tf
        cell, steps = self.cell, sequences.shape[1]
        states = self._first_states(sequences.shape[0], initial_state)
        outputs = []
        accepts = _layer._parameters(type(cell).call)
        extra = {"training": training} if "training" in accepts else {}
        for t in _flow.rounds(range(steps - 1, -1, -1) if self.go_backwards else range(steps)):
            given = states if isinstance(cell.state_size, (list, tuple)) else states[0]
            output, after = cell(sequences[:, t], [given] if not isinstance(given, list) else given, **extra)
            after = list(_nest.flatten(after))
            if mask is not None:
                hidden = not outputs or getattr(self, "zero_output_for_mask", False)
                past = tf.zeros_like(output) if hidden else outputs[-1]
                output, *after = [_choose(mask[:, t], new, old) for new, old in zip([output, *after], [past, *states])]
            states = after
            outputs.append(output)
        for kept, state in zip(self._states if self.stateful else (), states):
            kept.assign(state)
        result = tf.stack(outputs, axis=1) if self.return_sequences else outputs[-1]
        if mask is not None and self.return_sequences:
            result._keras_mask = mask
        return (result, *states) if self.return_state else result

    def _build_for(self, args, kwargs):
        if not self._python:
            return super()._build_for(args, kwargs)
        self.__dict__["built"] = True


def _sizes(state_size):
    """One entry per state: a number, or the shape of a state that has several axes."""
    return list(state_size) if isinstance(state_size, (list, tuple)) else [state_size]


def _choose(rows, new, old):
    return _tf.where(_tf.reshape(_tf.cast(rows, "bool"), (-1,) + (1,) * (len(new.shape) - 1)), new, old)


class _Cell(_Built):
    """One step of a recurrent layer. Its weights are those of the first RNN around it; called by itself it makes one."""
    _keras_module = "keras.layers"
    _n_states = 1

    state_size = property(lambda self: self.units if self._n_states == 1 else [self.units] * self._n_states)
    output_size = property(lambda self: self.units)
    kernel = property(lambda self: self.weights[0])
    recurrent_kernel = property(lambda self: self.weights[1])
    bias = property(lambda self: self.weights[2] if self.use_bias else None)

    def build(self, input_shape=None):
        if self.__dict__.get("_rnn") is None:
            RNN(self)
        self._rnn.build((None, 1, input_shape[-1]))
        self.__dict__["built"] = True

    @property
    def weights(self):
        rnn = self.__dict__.get("_rnn")
        return list(rnn._own) if rnn is not None else []

    def get_initial_state(self, batch_size=None):
        return [_tf.zeros((batch_size, self.units), self.compute_dtype) for _ in range(self._n_states)]

    def call(self, inputs, states, training=None):
        if training and (self.dropout or self.recurrent_dropout):
            raise NotImplementedError("a cell with dropout is trained within an RNN layer")
        states = [_C.convert_to_tensor(s) for s in _nest.flatten(states)]
        made = self._step(inputs, states, *[w.read_value() for w in self.weights])
        return made[0], made

    def _activation(self, name):
        from snug.keras import activations
        return activations.get(self._values[name])


class StackedRNNCells(_Built):
    """Cells one upon the other; the engine runs them where all are its own."""
    _row = _C.layer_row("StackedRNNCells")
    _keras_module = "keras.layers"
    state_size = property(lambda self: [c.state_size for c in self.cells])
    output_size = property(lambda self: self.cells[-1].output_size)

    def __init__(self, cells, **kwargs):
        super().__init__(cells, **kwargs)
        self._track(list(cells))

    def _build_for(self, args, kwargs):
        self.__dict__["built"] = True

    def get_initial_state(self, batch_size=None):
        return [[_tf.zeros((batch_size, s)) for s in _nest.flatten(c.state_size)] for c in self.cells]

    def call(self, inputs, states, training=None):
        left, made = list(_nest.flatten(states)), []
        for cell in self.cells:
            n = len(_nest.flatten(cell.state_size))
            inputs, after = cell(inputs, left[:n])
            left, made = left[n:], made + list(_nest.flatten(after))
        return inputs, made


class SimpleRNNCell(_Cell):
    _row = _C.layer_row("SimpleRNNCell")

    def _step(self, x, states, kernel, recurrent, bias=None):
        z = x @ kernel + states[0] @ recurrent
        return [self._activation("activation")(z if bias is None else z + bias)]


class LSTMCell(_Cell):
    _row = _C.layer_row("LSTMCell")
    _n_states = 2

    def _step(self, x, states, kernel, recurrent, bias=None):
        gate, bend = self._activation("recurrent_activation"), self._activation("activation")
        z = x @ kernel + states[0] @ recurrent
        i, f, c, o = _tf.split(z if bias is None else z + bias, 4, axis=-1)
        carry = gate(f) * states[1] + gate(i) * bend(c)
        return [gate(o) * bend(carry), carry]


class GRUCell(_Cell):
    _row = _C.layer_row("GRUCell")

    def _step(self, x, states, kernel, recurrent, bias=None):
        gate, bend, h, u = self._activation("recurrent_activation"), self._activation("activation"), states[0], self.units
        both = bias is not None and self.reset_after
        a = x @ kernel if bias is None else x @ kernel + (bias[0] if both else bias)
        b = h @ recurrent if self.reset_after else h @ recurrent[:, :2 * u]
        b = b + bias[1] if both else b
        z, r = gate(a[:, :u] + b[:, :u]), gate(a[:, u:2 * u] + b[:, u:2 * u])
        inner = r * b[:, 2 * u:] if self.reset_after else (r * h) @ recurrent[:, 2 * u:]
        return [z * h + (1.0 - z) * bend(a[:, 2 * u:] + inner)]


class TFSMLayer(Layer):
    """A model that Model.export wrote, as a layer."""
    _keras_module = "keras.layers"

    @default_only("call_training_endpoint", "TFSMLayer")
    def __init__(self, filepath, call_endpoint="serve", call_training_endpoint=None, trainable=True, name=None, dtype=None):
        from snug import _saved
        super().__init__(trainable=trainable, name=name, dtype=dtype)
        self.filepath, self.call_endpoint = str(filepath), call_endpoint
        loaded = _saved.load(filepath)
        self.model = getattr(loaded, "_model", None)
        self.__dict__["_endpoint"] = getattr(loaded, call_endpoint, None) or loaded.signatures.get(call_endpoint)
        if self._endpoint is None:
            raise ValueError(f"The endpoint '{call_endpoint}' is neither an attribute of the reloaded SavedModel, nor an entry in the"
                             " `signatures` field of the reloaded SavedModel.")

    def call(self, inputs, training=False):
        return self._endpoint(inputs)

    def get_config(self):
        _serial._note(f"file {self.filepath}", self)
        return {**Layer.get_config(self), "filepath": self.filepath, "call_endpoint": self.call_endpoint}

    @classmethod
    def from_config(cls, config):
        if not _serial.is_trusted() and _serial.in_scope(f"file {config.get('filepath')}") is None:       # it is no copy
            raise ValueError("Requested the deserialization of a `TFSMLayer`, which loads another file that the configuration names. If you"
                             " trust the source of the artifact, pass `safe_mode=False` to the loading function.")
        return cls(**config)


class Wrapper(Layer):
    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = layer


def _merge(name):
    def function(inputs, **kwargs):
        return __getattr__(name)(**kwargs)(inputs)
    function.__name__ = name.lower()
    return function


for _function, _class in {"add": "Add", "subtract": "Subtract", "multiply": "Multiply", "average": "Average", "maximum": "Maximum",
                          "minimum": "Minimum", "concatenate": "Concatenate"}.items():
    globals()[_function] = _merge(_class)


def dot(inputs, axes=-1, **kwargs):
    return __getattr__("Dot")(axes=axes, **kwargs)(inputs)


def serialize(layer):
    return _serial.serialize_keras_object(layer)


def deserialize(config, custom_objects=None):
    return _serial.deserialize_keras_object(config, custom_objects)
