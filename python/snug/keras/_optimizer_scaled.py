"""keras.optimizers.LossScaleOptimizer: losses are multiplied by a number that grows while gradients are finite, and apply divides by it. In
float32 and float64 that number changes nothing but the exponents."""
from snug._lazy import tf
from snug.keras import _serial
from snug.keras._optimizer_own import Optimizer, divided
from snug.keras._variable import KerasVariable


def _of_inner(name):
    return property(lambda self: getattr(self.inner_optimizer, name), lambda self, value: setattr(self.inner_optimizer, name, value))


class LossScaleOptimizer(Optimizer):
    def __init__(self, inner_optimizer, initial_scale=32768.0, dynamic_growth_steps=2000, name=None, **kwargs):
        if not kwargs.pop("dynamic", True):
            raise ValueError("LossScaleOptimizer no longer supports `dynamic=False`. Instead, simply set `loss_scale_factor` directly on the"
                             " `inner_optimizer`.")
        for word in [k for k, v in kwargs.items() if v in (None, False) or (k, v) == ("ema_momentum", 0.99)]:
            del kwargs[word]                # what older files say of it
        if kwargs:
            raise ValueError(f"LossScaleOptimizer does not support arguments: `{'`, `'.join(kwargs)}`.")
        super().__init__(learning_rate=0.0, name=name)
        self.inner_optimizer, self.initial_scale, self.dynamic_growth_steps = inner_optimizer, initial_scale, dynamic_growth_steps
        inner_optimizer.loss_scale_factor = None            # one scale is enough
        self.step_counter = KerasVariable(0, dtype="int32", trainable=False, name=f"{self.name}/step_counter")
        self.dynamic_scale = KerasVariable(initial_scale, dtype="float32", trainable=False, name=f"{self.name}/dynamic_scale")
        self._is_unscaled = False

    # --- what is the inner optimizer's ------------------------------------------------------------
    iterations = property(lambda self: self.inner_optimizer.iterations)

    learning_rate, _is_told = _of_inner("learning_rate"), _of_inner("_is_told")

    @property
    def variables(self):
        own = [self.step_counter, self.dynamic_scale] if self.built else []
        return [self._iterations, self._learning_rate] + own + self.inner_optimizer.variables

    def _slots(self):
        return [self.step_counter, self.dynamic_scale] + self.inner_optimizer._slots()

    def _averages(self):
        return self.inner_optimizer._averages()

    def _before_step(self):
        self.inner_optimizer._before_step()

    def _updates_next(self):
        return self.inner_optimizer._updates_next()

    def build(self, variables):
        self.inner_optimizer.build(variables)
        super().build(variables)

    def finalize_variable_values(self, var_list):
        self.inner_optimizer.finalize_variable_values(var_list)

    # --- steps ------------------------------------------------------------------------------------
    def scale_loss(self, loss):
        return loss * tf.cast(self.dynamic_scale, loss.dtype) if hasattr(loss, "dtype") else loss * self.dynamic_scale

    get_scaled_loss = scale_loss            # Keras 2's name

    def get_unscaled_gradients(self, grads):
        """Keras 2's: the apply that follows takes gradients as they are."""
        self._is_unscaled = True
        return [None if g is None else divided(g, self.dynamic_scale) for g in grads]

    def apply(self, grads, trainable_variables=None):
        variables = list(trainable_variables if trainable_variables is not None else self._variables_seen)
        if not self.built:
            self._build_whole(variables)
        grads, is_unscaled, self._is_unscaled = list(grads), self._is_unscaled, False
        finite = [tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(g))) for g in grads if g is not None]
        if finite and not bool(tf.reduce_all(tf.stack(finite))):
            self.step_counter.assign(0)
            self.dynamic_scale.assign(self.dynamic_scale * 0.5)
            return self.iterations
        scale = self.dynamic_scale.read_value()
        self.inner_optimizer.apply(grads if is_unscaled else [None if g is None else divided(g, scale) for g in grads], variables)
        grows = tf.equal(self.step_counter, self.dynamic_growth_steps - 1)
        self.dynamic_scale.assign(tf.where(grows, scale * 2.0, scale))
        self.step_counter.assign(tf.where(grows, 0, self.step_counter + 1))
        return self.iterations

    # --- configurations ---------------------------------------------------------------------------
    def get_config(self):
        return {"name": self.name, "inner_optimizer": _serial.serialize_keras_object(self.inner_optimizer),
                "initial_scale": self.initial_scale, "dynamic_growth_steps": self.dynamic_growth_steps}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        inner = _serial.deserialize_keras_object(config["inner_optimizer"], custom_objects)
        return cls(**{**config, "inner_optimizer": inner})
