"""keras.utils.FeatureSpace: columns of a table, each with the layer that makes numbers of it, as one function of a dict.

The layers are Keras' preprocessing layers; what is here is which of them a word stands for, and how what they give is put together."""
from snug._lazy import tf
from snug.keras import _serial
from snug.keras import layers as L
from snug.keras._layer import Layer
from snug.keras._names import auto_name


class Cross:
    """Several columns hashed as one."""
    _keras_module = "keras.utils"

    def __init__(self, feature_names, crossing_dim, output_mode="one_hot"):
        if output_mode not in ("int", "one_hot"):
            raise ValueError("Invalid value for argument `output_mode`. Expected one of {'int', 'one_hot'}."
                             f" Received: output_mode={output_mode}")
        self.feature_names, self.crossing_dim, self.output_mode = tuple(feature_names), crossing_dim, output_mode

    @property
    def name(self):
        return "_X_".join(self.feature_names)

    def get_config(self):
        return {"feature_names": self.feature_names, "crossing_dim": self.crossing_dim, "output_mode": self.output_mode}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class Feature:
    """A column: what it holds, the layer that reads it, and what becomes of the layer's result."""
    _keras_module = "keras.utils"

    def __init__(self, dtype, preprocessor, output_mode):
        if output_mode not in ("int", "one_hot", "float"):
            raise ValueError("Invalid value for argument `output_mode`. Expected one of {'int', 'one_hot', 'float'}."
                             f" Received: output_mode={output_mode}")
        self.dtype, self.output_mode = dtype, output_mode
        self.preprocessor = _serial.deserialize_keras_object(preprocessor) if isinstance(preprocessor, dict) else preprocessor

    def get_config(self):
        return {"dtype": self.dtype, "preprocessor": _serial.serialize_keras_object(self.preprocessor), "output_mode": self.output_mode}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def _column(kind, dtype, layer, output_mode, name, **settings):
    name = name or auto_name(kind)
    return Feature(dtype, getattr(L, layer)(name=f"{name}_preprocessor", **settings), output_mode)


def _sizes(layer):
    """How many numbers a layer can give; None: that is not known."""
    if isinstance(layer, (L.IntegerLookup, L.StringLookup)):
        return layer.vocabulary_size()
    if isinstance(layer, (L.Discretization, L.Hashing, L.HashedCrossing)):
        return layer.num_bins
    return layer.num_tokens if isinstance(layer, L.CategoryEncoding) else None


class FeatureSpace(Layer):
    _keras_module = "keras.utils"
    compiled = False            # what files of models ask

    # --- columns ------------------------------------------------------------------------------------
    @classmethod
    def cross(cls, feature_names, crossing_dim, output_mode="one_hot"):
        return Cross(feature_names, crossing_dim, output_mode)

    @classmethod
    def feature(cls, dtype, preprocessor, output_mode):
        return Feature(dtype, preprocessor, output_mode)

    @classmethod
    def float(cls, name=None):
        return _column("float", "float32", "Identity", "float", name)

    @classmethod
    def float_rescaled(cls, scale=1.0, offset=0.0, name=None):
        return _column("float_rescaled", "float32", "Rescaling", "float", name, scale=scale, offset=offset)

    @classmethod
    def float_normalized(cls, name=None):
        return _column("float_normalized", "float32", "Normalization", "float", name, axis=-1)

    @classmethod
    def float_discretized(cls, num_bins, bin_boundaries=None, output_mode="one_hot", name=None):
        return _column("float_discretized", "float32", "Discretization", output_mode, name, num_bins=num_bins, bin_boundaries=bin_boundaries)

    @classmethod
    def integer_categorical(cls, max_tokens=None, num_oov_indices=1, output_mode="one_hot", name=None):
        return _column("integer_categorical", "int32", "IntegerLookup", output_mode, name, max_tokens=max_tokens,
                       num_oov_indices=num_oov_indices)

    @classmethod
    def string_categorical(cls, max_tokens=None, num_oov_indices=1, output_mode="one_hot", name=None):
        return _column("string_categorical", "string", "StringLookup", output_mode, name, max_tokens=max_tokens,
                       num_oov_indices=num_oov_indices)

    @classmethod
    def integer_hashed(cls, num_bins, output_mode="one_hot", name=None):
        return _column("integer_hashed", "int32", "Hashing", output_mode, name, num_bins=num_bins)

    @classmethod
    def string_hashed(cls, num_bins, output_mode="one_hot", name=None):
        return _column("string_hashed", "string", "Hashing", output_mode, name, num_bins=num_bins)

    # --- the table ----------------------------------------------------------------------------------
    def __init__(self, features, output_mode="concat", crosses=None, crossing_dim=32, hashing_dim=32, num_discretization_bins=32, name=None):
        super().__init__(name=name)
        if not features:
            raise ValueError("The `features` argument cannot be None or empty.")
        if output_mode not in ("concat", "dict"):
            raise ValueError(f"Invalid value for argument `output_mode`. Expected one of {{'dict', 'concat'}}. Received: output_mode={output_mode}")
        self.crossing_dim, self.hashing_dim, self.num_discretization_bins = crossing_dim, hashing_dim, num_discretization_bins
        self.output_mode = output_mode
        self.__dict__["features"] = {key: self._as_feature(key, value) for key, value in features.items()}
        self.__dict__["crosses"] = [self._as_cross(cross) for cross in crosses or ()]
        self.preprocessors = {key: feature.preprocessor for key, feature in self.features.items()}
        self.crossers = {cross.name: L.HashedCrossing(cross.crossing_dim, name=cross.name) for cross in self.crosses}
        self.one_hot_encoders = {}
        self.__dict__.update(inputs={key: L.Input(shape=(1,), dtype=feature.dtype, name=key) for key, feature in self.features.items()},
                             encoded_features=None, concat=None, _is_adapted=False)

    def _as_feature(self, name, value):
        sized = {"float_discretized": self.num_discretization_bins, "integer_hashed": self.hashing_dim, "string_hashed": self.hashing_dim}
        words = ("float", "float_normalized", "float_rescaled", "integer_categorical", "string_categorical")
        if isinstance(value, Feature):
            return value
        if isinstance(value, dict):
            return Feature.from_config(value["config"])
        if value in words:
            return getattr(self, value)(name=name)
        if value not in sized:
            raise ValueError(f"Invalid feature type: {value}")
        return getattr(self, value)(sized[value], name=name)

    def _as_cross(self, cross):
        if isinstance(cross, dict):
            cross = Cross.from_config(cross["config"])
        cross = cross if isinstance(cross, Cross) else Cross(cross, self.crossing_dim)
        for key in cross.feature_names:
            if key not in self.features:
                raise ValueError("All features referenced in the `crosses` argument should be present in the `features` dict."
                                 f" Received unknown features: {cross}")
        return cross

    def _to_adapt(self):
        """Columns whose layer has to learn something, and was not given it."""
        def given(layer):
            return getattr(layer, "input_mean", None) is not None or getattr(layer, "bin_boundaries", None) or \
                isinstance(layer, L.TextVectorization) and layer.get_vocabulary(include_special_tokens=False)
        return [key for key, layer in self.preprocessors.items() if hasattr(layer, "adapt") and not given(layer)]

    def adapt(self, dataset):
        if isinstance(dataset, dict):
            dataset = tf.data.Dataset.from_tensor_slices(dataset)
        if not isinstance(dataset, tf.data.Dataset):
            raise ValueError("`adapt()` can only be called on a tf.data.Dataset or a dict of arrays/lists."
                             f" Received instead: {dataset} (of type {type(dataset)})")
        for key in self._to_adapt():
            column = dataset.map(lambda row, key=key: row[key])
            rank = len(next(iter(column)).shape)
            column = column.batch(32) if rank == 0 else column
            self.preprocessors[key].adapt(column.map(lambda x: tf.expand_dims(x, -1)) if rank < 2 else column)
        self.__dict__["_is_adapted"] = True
        self.get_encoded_features()

    def get_inputs(self):
        self.get_encoded_features()
        return self.inputs

    def get_encoded_features(self):
        """What the table is once it is encoded: symbolic, to begin a functional model with."""
        if not self._is_adapted and self._to_adapt():
            raise ValueError("You need to call `.adapt(dataset)` on the FeatureSpace before you can start using it.")
        if self.encoded_features is None:
            self._make_encoders()
            self.__dict__.update(encoded_features=self._encoded(self.inputs), _is_adapted=True, built=True)
        return self.encoded_features

    def _make_encoders(self):
        for key, spec in {**self.features, **{cross.name: cross for cross in self.crosses}}.items():
            if spec.output_mode != "one_hot":
                continue
            size = _sizes(self.preprocessors.get(key) or self.crossers.get(key))
            if size is None:
                raise ValueError(f"Feature '{key}' has `output_mode='one_hot'`. However it isn't a standard feature and the dimensionality of"
                                 " its output space is not known, thus it cannot be one-hot encoded. Try using `output_mode='int'`.")
            self.one_hot_encoders[key] = L.CategoryEncoding(num_tokens=size, output_mode="multi_hot")

    def _encoded(self, columns):
        made = {key: self.preprocessors[key](columns[key]) for key in self.features}
        crossed = {cross.name: self.crossers[cross.name]([made[key] for key in cross.feature_names]) for cross in self.crosses}
        made = {key: (self.one_hot_encoders[key](part[key]) if key in self.one_hot_encoders else part[key])
                for part in (made, crossed) for key in sorted(part)}
        if self.output_mode == "dict":
            return made
        for key, value in made.items():
            name = getattr(value.dtype, "name", value.dtype)
            if name.startswith("int") or name == "string":
                raise ValueError(f"Cannot concatenate features because feature '{key}' has not been encoded (it has dtype {name})."
                                 " Consider using `output_mode='dict'`.")
        if self.concat is None:
            self.__dict__["concat"] = L.Concatenate(axis=-1)
        return self.concat(list(made.values())) if len(made) > 1 else next(iter(made.values()))

    def __call__(self, data):
        self.get_encoded_features()
        if not isinstance(data, dict):
            raise ValueError(f"A FeatureSpace can only be called with a dict. Received: data={data} (of type {type(data)}")
        columns = {key: value if hasattr(value, "shape") and not hasattr(value, "__array_interface__") else tf.convert_to_tensor(value)
                   for key, value in data.items()}
        one = any(len(x.shape) == 0 for x in columns.values())
        columns = {key: tf.reshape(x, (1, 1)) if len(x.shape) == 0 else tf.expand_dims(x, -1) if len(x.shape) == 1 else x
                   for key, x in columns.items()}
        made = self._encoded(columns)
        if not one:
            return made
        if self.output_mode == "concat":
            return tf.squeeze(made, axis=0)
        return {key: tf.squeeze(x, axis=0) if len(x.shape) == 2 and x.shape[0] == 1 else x for key, x in made.items()}

    def get_config(self):
        return {"features": _serial.serialize_keras_object(self.features), "output_mode": self.output_mode,
                "crosses": _serial.serialize_keras_object(self.crosses), "crossing_dim": self.crossing_dim,
                "hashing_dim": self.hashing_dim, "num_discretization_bins": self.num_discretization_bins}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def get_build_config(self):
        return {key: layer.get_build_config() for key, layer in self.preprocessors.items()}

    def build_from_config(self, config):
        """What columns learnt is in their configurations or, once they are built, among the weights."""
        for key, how in config.items():
            if how and not self.preprocessors[key].built:
                self.preprocessors[key].build_from_config(how)
        self.__dict__["_is_adapted"] = True

    def save(self, filepath):
        from snug.keras import _saving
        _saving.save_model(self, filepath)
