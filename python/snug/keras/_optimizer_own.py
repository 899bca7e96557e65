"""keras.optimizers.Optimizer as a base of one's own: update_step is Python's, its variables and sums are recorded like any others."""
import re
import warnings

from snug import _C, _function
from snug._given import default_only
from snug._lazy import tf
from snug.keras import _serial
from snug.keras._names import auto_name, snake
from snug.keras._variable import KerasVariable
from snug.keras.schedules import LearningRateSchedule


def check_kwargs(kwargs):
    """What is no argument of any optimizer: `decay` of older scripts is passed over aloud, anything else refused."""
    if kwargs.pop("decay", None) is not None:
        warnings.warn("Argument `decay` is no longer supported and will be ignored.", stacklevel=3)
    if kwargs:
        raise ValueError(f"Argument(s) not recognized: {kwargs}")


def check_settings(values):
    momentum, often = values.get("ema_momentum"), values.get("ema_overwrite_frequency")
    if values.get("use_ema") and not 0 <= momentum <= 1:
        raise ValueError(f"`ema_momentum` must be in the range [0, 1]. Received: ema_momentum={momentum}")
    if values.get("use_ema") and often and (not isinstance(often, int) or often < 1):
        raise ValueError(f"`ema_overwrite_frequency` must be an integer >= 1 or None. Received: ema_overwrite_frequency={often}")
    clips = {n: values.get(n) for n in ("clipnorm", "clipvalue", "global_clipnorm")}
    if sum(v is not None for v in clips.values()) > 1:
        raise ValueError("Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
                         + ", ".join(f"{n}={v}" for n, v in clips.items()))


def divided(gradient, by):
    """A gradient by a scale; rows of lookups stay rows."""
    from snug._variable import IndexedSlices
    if isinstance(gradient, IndexedSlices):
        return gradient.with_values(divided(gradient.values, by))
    gradient = tf.convert_to_tensor(gradient)
    return gradient / tf.cast(by, gradient.dtype)


def overwritten(grads, variables):
    """What is left for the step: variables that are overwritten with their gradients have taken these."""
    kept = []
    for g, v in zip(grads, variables):
        if g is not None and getattr(v, "overwrite_with_gradient", False):
            v.assign(g)
        else:
            kept.append((g, v))
    return [g for g, _ in kept], [v for _, v in kept]


class Optimizer:
    _keras_module = "keras.optimizers"
    _c = None                   # no optimizer of the engine's
    loss_scale_factor = None

    def __init__(self, learning_rate=0.001, weight_decay=None, clipnorm=None, clipvalue=None, global_clipnorm=None, use_ema=False,
                 ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None, gradient_accumulation_steps=None, name=None,
                 **kwargs):
        check_kwargs(kwargs)
        if gradient_accumulation_steps:
            raise NotImplementedError(f"{type(self).__name__}: an optimizer whose update is written in Python has no"
                                      " gradient_accumulation_steps in Snug; those of keras.optimizers have")
        self.name = name or auto_name(snake(type(self).__name__))
        self.weight_decay, self.clipnorm, self.clipvalue, self.global_clipnorm = weight_decay, clipnorm, clipvalue, global_clipnorm
        self.use_ema, self.ema_momentum, self.ema_overwrite_frequency = use_ema, ema_momentum, ema_overwrite_frequency
        self.loss_scale_factor, self.gradient_accumulation_steps = loss_scale_factor, gradient_accumulation_steps
        check_settings(vars(self))
        self.built, self._own, self._places, self._variables_seen = False, [], {}, []
        if callable(learning_rate) and not isinstance(learning_rate, LearningRateSchedule):
            learning_rate = learning_rate()
        self._schedule = learning_rate if isinstance(learning_rate, LearningRateSchedule) else None
        first = float(self._schedule(0)) if self._schedule is not None else float(learning_rate)
        self._iterations = KerasVariable(0, dtype="int64", trainable=False, name=f"{self.name}/iteration")
        self._learning_rate = KerasVariable(first, dtype="float32", trainable=False, name=f"{self.name}/learning_rate")

    # --- numbers ----------------------------------------------------------------------------------
    @property
    def iterations(self):
        return self._iterations

    @property
    def learning_rate(self):
        return self._learning_rate if self._schedule is None else self._learning_rate.read_value()

    @learning_rate.setter
    def learning_rate(self, value):
        if isinstance(value, LearningRateSchedule):
            self._schedule = value
        elif self._schedule is not None:
            raise TypeError("This optimizer was created with a `LearningRateSchedule` object as its `learning_rate` constructor argument,"
                            " hence its learning rate is not settable. If you need the learning rate to be settable, you should"
                            " instantiate the optimizer with a float `learning_rate` argument.")
        else:
            self._learning_rate.assign(float(value))

    def _updates_next(self):
        return True

    def _before_step(self):
        """The rate of this step, where Python knows it; a trace asks at each call."""
        if self._schedule is not None and _C.is_tracing():
            _function.note_step(self)
        elif self._schedule is not None:
            self._learning_rate.assign(float(self._schedule(int(self._iterations.numpy()))))

    @property
    def variables(self):
        return [self._iterations, self._learning_rate] + self._own

    def _slots(self):
        return list(self._own)

    # --- variables of its own ---------------------------------------------------------------------
    def build(self, variables):
        self._places = {id(v): i for i, v in enumerate(variables)}
        self._variables_seen = list(variables)
        if self.use_ema:
            self._model_variables_moving_average = self.add_optimizer_variables(variables, "average")
        self.built = True

    def _build_whole(self, variables):
        """A trace in which variables are made begins again: nothing of a half-built state stays."""
        try:
            self.build(variables)
        except BaseException:
            self.built, self._own = False, []
            raise

    @default_only("layout")
    def add_variable(self, shape, initializer="zeros", dtype=None, aggregation="none", layout=None, name=None):
        from snug.keras import initializers
        made = initializers.get(initializer)(tuple(shape), dtype=dtype or "float32")
        v = KerasVariable(made, trainable=False, name=f"{self.name}/{name or auto_name('variable')}")
        self._own.append(v)
        return v

    def add_variable_from_reference(self, reference_variable, name=None, initializer="zeros"):
        path = getattr(reference_variable, "path", None) or reference_variable.name.replace(":", "_")
        return self.add_variable(reference_variable.shape, initializer, reference_variable.dtype,
                                 name=f"{path.replace('/', '_')}_{name or 'var'}")

    def add_optimizer_variables(self, trainable_variables, name, initializer="zeros"):
        names = [name] if isinstance(name, str) else list(name)
        made = tuple([self.add_variable_from_reference(v, n, initializer) for v in trainable_variables] for n in names)
        return made[0] if isinstance(name, str) else made

    def _get_variable_index(self, variable):
        return self._places[id(variable)]

    def assign(self, variable, value):
        variable.assign(value)

    def assign_add(self, variable, value):
        variable.assign_add(value)

    def assign_sub(self, variable, value):
        variable.assign_sub(value)

    # --- steps ------------------------------------------------------------------------------------
    def scale_loss(self, loss):
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def _unscaled(self, grads):
        scale = self.loss_scale_factor
        return grads if scale is None else [None if g is None else divided(g, scale) for g in grads]

    def apply_gradients(self, grads_and_vars, name=None, skip_gradients_aggregation=False):
        pairs = list(grads_and_vars)
        return self.apply([g for g, _ in pairs], [v for _, v in pairs])

    def apply(self, grads, trainable_variables=None):
        variables = list(trainable_variables if trainable_variables is not None else self._variables_seen)
        if not self.built:
            self._build_whole(variables)
        pairs = [(tf.convert_to_tensor(g), v) for g, v in zip(*overwritten(self._unscaled(grads), variables)) if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        self._before_step()
        kept = [v for _, v in pairs]
        clipped = self._clipped([g for g, _ in pairs])
        self._apply_weight_decay(kept)
        rate = self._learning_rate.read_value()
        for g, v in zip(clipped, kept):
            self.update_step(g, v, rate)
        if self.use_ema:
            self._follow()
        self._iterations.assign_add(1)
        for v in kept:
            if getattr(v, "constraint", None) is not None:
                v.assign(v.constraint(v))
        if not _C.is_tracing():
            from snug import _tape
            if not _tape.ACTIVE:
                _C.boundary()
        return self._iterations

    def _follow(self):
        """The averages of use_ema: the first step's is the variable itself; now and then they take the variables' places."""
        momentum = tf.cast(tf.not_equal(self._iterations, 0), "float32") * self.ema_momentum
        often = self.ema_overwrite_frequency
        for v, average in self._averages():
            now = tf.cast(momentum, v.dtype)
            average.assign(now * average + (1 - now) * v)
            if often:
                v.assign(tf.where(tf.equal((self._iterations + 1) % often, 0), average.read_value(), v.read_value()))

    def _averages(self):
        """[(variable, its average)]; None: there are none, or none yet."""
        return list(zip(self._variables_seen, self._model_variables_moving_average)) if self.use_ema and self.built else None

    def _clipped(self, grads):
        if self.clipnorm:
            return [tf.clip_by_norm(g, self.clipnorm) for g in grads]
        if self.global_clipnorm:
            return tf.clip_by_global_norm(grads, self.global_clipnorm)[0]
        return [tf.clip_by_value(g, -self.clipvalue, self.clipvalue) for g in grads] if self.clipvalue else grads

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        self._spared = [id(v) for v in var_list or ()], list(var_names or ())

    def _use_weight_decay(self, variable):
        spared, names = getattr(self, "_spared", ((), ()))
        return id(variable) not in spared and not any(re.search(n, variable.name) for n in names)

    def _apply_weight_decay(self, variables):
        for v in variables if self.weight_decay is not None else ():
            if self._use_weight_decay(v):
                v.assign(v - v * (self.weight_decay * self._learning_rate))

    def update_step(self, gradient, variable, learning_rate):
        raise NotImplementedError("An optimizer must implement `update_step(gradient, variable, learning_rate)`")

    def finalize_variable_values(self, var_list):
        """The averages of use_ema become the variables' values."""
        for v, average in self._averages() or ():
            v.assign(average)

    def minimize(self, loss, var_list, tape=None, name=None):
        from snug._tape import GradientTape
        if callable(loss) and not _C.is_tensor(loss):
            with GradientTape() as tape:
                loss = loss()
        elif tape is None:
            raise ValueError("`tape` is required when a `Tensor` loss is passed.")
        variables = var_list() if callable(var_list) else var_list
        self.apply_gradients(zip(tape.gradient(loss, variables), variables))

    # --- configurations ---------------------------------------------------------------------------
    def get_config(self):
        rate = _serial.serialize_keras_object(self._schedule) if self._schedule is not None else float(self._learning_rate.numpy())
        names = "weight_decay clipnorm global_clipnorm clipvalue use_ema ema_momentum ema_overwrite_frequency loss_scale_factor" \
            " gradient_accumulation_steps"
        return {"name": self.name, "learning_rate": rate, **{n: getattr(self, n) for n in names.split()}}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = _serial.deserialize_keras_object(config["learning_rate"], custom_objects)
        return cls(**config)

    def set_weights(self, weights):
        for v, w in zip(self.variables, weights):
            v.assign(w)

    def get_weights(self):
        return [v.numpy() for v in self.variables]


class Muon(Optimizer):
    """Matrices take steps whose singular values are near one; other variables, and embeddings, those of Adam."""

    def __init__(self, learning_rate=0.001, adam_beta_1=0.9, adam_beta_2=0.999, adam_weight_decay=0.004, epsilon=1e-7, weight_decay=0.004,
                 exclude_layers=None, exclude_embeddings=True, muon_a=3.4445, muon_b=-4.7750, muon_c=2.0315, adam_lr_ratio=1,
                 momentum=0.95, ns_steps=5, nesterov=True, rms_rate=0.2, **kwargs):
        super().__init__(learning_rate=learning_rate, weight_decay=weight_decay, **kwargs)
        self.adam_beta_1, self.adam_beta_2, self.adam_weight_decay, self.epsilon = adam_beta_1, adam_beta_2, adam_weight_decay, epsilon
        self.exclude_layers, self.exclude_embeddings = exclude_layers or [], exclude_embeddings
        self.muon_a, self.muon_b, self.muon_c, self.adam_lr_ratio = muon_a, muon_b, muon_c, adam_lr_ratio
        self.momentum, self.ns_steps, self.nesterov, self.rms_rate = momentum, ns_steps, nesterov, rms_rate

    def _is_adams(self, variable):
        return len(variable.shape) != 2 or self.exclude_embeddings and "embedding" in variable.path.lower() or \
            any(re.search(word, variable.path) for word in self.exclude_layers)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._state = []
        for v in variables:
            momentum = self.add_variable_from_reference(v, "momentum")
            self._state.append((momentum, self.add_variable_from_reference(v, "velocity") if self._is_adams(v) else None))

    def update_step(self, gradient, variable, learning_rate):
        momentum, velocity = self._state[self._get_variable_index(variable)]
        if velocity is not None:
            return self._adam_step(gradient, variable, learning_rate * float(self.adam_lr_ratio), momentum, velocity)
        momentum.assign_add(gradient + momentum * (self.momentum - 1.0))
        step = self._orthogonal(gradient + self.momentum * momentum if self.nesterov else momentum.read_value())
        scale = 1.0 if self.rms_rate is None else float(max(variable.shape)) ** 0.5 * self.rms_rate
        variable.assign_sub(learning_rate * step * scale)

    def _adam_step(self, gradient, variable, rate, momentum, velocity):
        n = tf.cast(self._iterations.read_value() + 1, "float32")
        rate = rate * tf.sqrt(1.0 - tf.pow(self.adam_beta_2, n)) / (1.0 - tf.pow(self.adam_beta_1, n))
        momentum.assign_add((gradient - momentum) * (1.0 - self.adam_beta_1))
        velocity.assign_add((tf.square(gradient) - velocity) * (1.0 - self.adam_beta_2))
        variable.assign_sub(momentum * rate / (tf.sqrt(velocity) + self.epsilon))

    def _orthogonal(self, x):
        """Newton and Schulz' iteration of degree five towards the orthogonal matrix nearest to x."""
        tall = x.shape[-2] > x.shape[-1]
        x = tf.transpose(x) if tall else x
        x = x / (tf.norm(x) + 1e-7)
        for _ in range(self.ns_steps):
            square = tf.matmul(x, x, transpose_b=True)
            x = self.muon_a * x + (self.muon_b * square + self.muon_c * (square @ square)) @ x
        return tf.transpose(x) if tall else x

    def _apply_weight_decay(self, variables):
        for v in variables:
            decay = self.adam_weight_decay if self._is_adams(v) else self.weight_decay
            if decay is not None and self._use_weight_decay(v):
                v.assign(v - v * (decay * self._learning_rate))

    def get_config(self):
        names = "adam_beta_1 adam_beta_2 epsilon exclude_layers muon_a muon_b muon_c adam_lr_ratio momentum ns_steps nesterov" \
            " exclude_embeddings adam_weight_decay rms_rate"
        return {**super().get_config(), **{n: getattr(self, n) for n in names.split()}}
