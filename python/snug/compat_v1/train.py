"""tf.compat.v1.train: optimizers over graphs, decays, the global step."""
import os

from snug import _C, _archives, _graph, _train
from snug._files import _whole, create
from snug._given import default_only
from snug._lazy import tf


class Optimizer:
    """minimize() is an operation: gradients, then an update of each variable in the session."""

    def __init__(self, learning_rate, name):
        self.learning_rate, self.name = learning_rate, name

    def minimize(self, loss, global_step=None, var_list=None, gate_gradients=1, aggregation_method=None,
                 colocate_gradients_with_ops=False, name=None, grad_loss=None):
        return self.apply_gradients(self.compute_gradients(loss, var_list, grad_loss=grad_loss), global_step, name)

    def compute_gradients(self, loss, var_list=None, gate_gradients=1, aggregation_method=None,
                          colocate_gradients_with_ops=False, grad_loss=None):
        variables = list(var_list or _graph.trainable_variables())
        return list(zip(_graph.gradients(loss, variables, grad_loss), variables))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        rate = self.learning_rate() if callable(self.learning_rate) and not isinstance(
            self.learning_rate, _graph.Symbolic) else self.learning_rate
        op = _graph.Operation(self.name, _Update(self, [v for _, v in pairs], global_step), ([g for g, _ in pairs], rate),
                              name=name or self.name)
        return op

    def step_of(self, session):
        key = (self, "steps")
        session._slots[key] = session._slots.get(key, 0) + 1
        return session._slots[key]

    def get_slot_names(self):
        return []

    def variables(self):
        return []


class _Update:
    of_session = updates = True

    def __init__(self, optimizer, variables, global_step):
        self.optimizer, self.variables, self.global_step = optimizer, variables, global_step

    def __call__(self, session, grads, rate):
        step = self.optimizer.step_of(session)
        for g, v in zip(grads, self.variables):
            self.optimizer.update(session, v, g, tf.cast(rate, v.dtype) if _C.is_tensor(rate) else rate, step)
            if v.constraint is not None:
                session._variable(v).assign(v.constraint(session._variable(v).read_value()))
        if self.global_step is not None:
            session._variable(self.global_step).assign_add(tf.constant(1, dtype=self.global_step.dtype))


class GradientDescentOptimizer(Optimizer):
    def __init__(self, learning_rate, use_locking=False, name="GradientDescent"):
        super().__init__(learning_rate, name)

    def update(self, session, v, g, rate, step):
        session._variable(v).assign_sub(rate * g)


class MomentumOptimizer(Optimizer):
    def __init__(self, learning_rate, momentum, use_locking=False, name="Momentum", use_nesterov=False):
        super().__init__(learning_rate, name)
        self.momentum, self.nesterov = momentum, use_nesterov

    def update(self, session, v, g, rate, step):
        sum_of = session.slot(self, v, "Momentum", 0.0)
        sum_of.assign(self.momentum * sum_of + g)
        move = g + self.momentum * sum_of if self.nesterov else sum_of.read_value()
        session._variable(v).assign_sub(rate * move)


class AdamOptimizer(Optimizer):
    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False, name="Adam"):
        super().__init__(learning_rate, name)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def update(self, session, v, g, rate, step):
        m, s = session.slot(self, v, "Adam", 0.0), session.slot(self, v, "Adam_1", 0.0)
        m.assign(self.beta1 * m + (1 - self.beta1) * g)
        s.assign(self.beta2 * s + (1 - self.beta2) * tf.square(g))
        rate = rate * ((1 - self.beta2 ** step) ** 0.5 / (1 - self.beta1 ** step))
        session._variable(v).assign_sub(rate * m / (tf.sqrt(s) + self.epsilon))


class RMSPropOptimizer(Optimizer):
    def __init__(self, learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=False, centered=False,
                 name="RMSProp"):
        super().__init__(learning_rate, name)
        self.decay, self.momentum, self.epsilon, self.centered = decay, momentum, epsilon, centered

    def update(self, session, v, g, rate, step):
        ms, move = session.slot(self, v, "RMSProp", 1.0), session.slot(self, v, "RMSProp_1", 0.0)
        ms.assign(self.decay * ms + (1 - self.decay) * tf.square(g))
        under = ms + self.epsilon
        if self.centered:
            mean = session.slot(self, v, "RMSProp_2", 0.0)
            mean.assign(self.decay * mean + (1 - self.decay) * g)
            under = under - tf.square(mean)
        move.assign(self.momentum * move + rate * g / tf.sqrt(under))
        session._variable(v).assign_sub(move.read_value())


class AdagradOptimizer(Optimizer):
    def __init__(self, learning_rate, initial_accumulator_value=0.1, use_locking=False, name="Adagrad"):
        super().__init__(learning_rate, name)
        self.start = initial_accumulator_value

    def update(self, session, v, g, rate, step):
        sum_of = session.slot(self, v, "Adagrad", self.start)
        sum_of.assign_add(tf.square(g))
        session._variable(v).assign_sub(rate * g / tf.sqrt(sum_of))


class AdadeltaOptimizer(Optimizer):
    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-8, use_locking=False, name="Adadelta"):
        super().__init__(learning_rate, name)
        self.rho, self.epsilon = rho, epsilon

    def update(self, session, v, g, rate, step):
        sum_of, moved = session.slot(self, v, "Adadelta", 0.0), session.slot(self, v, "Adadelta_1", 0.0)
        sum_of.assign(self.rho * sum_of + (1 - self.rho) * tf.square(g))
        move = tf.sqrt(moved + self.epsilon) / tf.sqrt(sum_of + self.epsilon) * g
        moved.assign(self.rho * moved + (1 - self.rho) * tf.square(move))
        session._variable(v).assign_sub(rate * move)


# --- steps and rates ------------------------------------------------------------------------------------
def get_global_step(graph=None):
    found = (graph or _graph.get_default_graph()).get_collection(_graph.GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


def create_global_step(graph=None):
    import numpy as np
    with (graph or _graph.get_default_graph()).as_default():
        step = _graph.GraphVariable(np.zeros((), np.int64), trainable=False, name="global_step")
        _graph.add_to_collection(_graph.GraphKeys.GLOBAL_STEP, step)
    return step


def get_or_create_global_step(graph=None):
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess, global_step_tensor):
    return int(sess.run(global_step_tensor))


def _of_step(function, step, name):
    if isinstance(step, _graph.Symbolic):
        return _graph.make(function, (step,), {}, name)
    return lambda: function(step)


def exponential_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False, name="ExponentialDecay"):
    def rate(step):
        share = tf.cast(step, tf.float32) / float(decay_steps)
        return learning_rate * tf.pow(tf.constant(float(decay_rate)), tf.floor(share) if staircase else share)
    return _of_step(rate, global_step, name)


def inverse_time_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=False, name="InverseTimeDecay"):
    def rate(step):
        share = tf.cast(step, tf.float32) / float(decay_steps)
        return learning_rate / (1.0 + decay_rate * (tf.floor(share) if staircase else share))
    return _of_step(rate, global_step, name)


def polynomial_decay(learning_rate, global_step, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False,
                     name="PolynomialDecay"):
    def rate(step):
        step, last = tf.cast(step, tf.float32), float(decay_steps)
        if cycle:
            last = last * tf.maximum(tf.math.ceil(step / last), 1.0)
        share = tf.minimum(step, last) / last
        return (learning_rate - end_learning_rate) * tf.pow(1.0 - share, power) + end_learning_rate
    return _of_step(rate, global_step, name)


def piecewise_constant(x, boundaries, values, name="PiecewiseConstant"):
    def rate(step):
        out = tf.constant(float(values[-1]))
        for b, v in reversed(list(zip(boundaries, values))):
            out = tf.where(tf.cast(step, tf.float32) <= float(b), tf.constant(float(v)), out)
        return out
    return _of_step(rate, x, name)


class Saver:
    """Variables of a session in one .npz file beside the path, and the file `checkpoint` that says which are there."""

    @default_only("reshape sharded keep_checkpoint_every_n_hours saver_def builder defer_build write_version filename", "tf.compat.v1.train.Saver")
    def __init__(self, var_list=None, reshape=False, sharded=False, max_to_keep=5, keep_checkpoint_every_n_hours=10000.0, name=None,
                 restore_sequentially=False, saver_def=None, builder=None, defer_build=False, allow_empty=False, write_version=2,
                 pad_step_number=False, save_relative_paths=False, filename=None):
        found = var_list if var_list is not None else _graph.global_variables()
        self.variables = found if isinstance(found, dict) else {v.op.name: v for v in found}
        if not self.variables and not allow_empty:
            raise ValueError("No variables to save")
        self._most, self._padded, self.last_checkpoints = max_to_keep, pad_step_number, []

    def save(self, sess, save_path, global_step=None, latest_filename=None, meta_graph_suffix="meta", write_meta_graph=True, write_state=True,
             strip_default_attrs=False, save_debug_info=False):
        import numpy as np
        if global_step is not None:
            step = sess.run(global_step) if isinstance(global_step, _graph.Symbolic) else global_step
            save_path = f"{save_path}-{int(step):08d}" if self._padded else f"{save_path}-{int(step)}"
        os.makedirs(os.path.dirname(save_path) or ".", exist_ok=True)
        values = dict(zip(self.variables, sess.run(list(self.variables.values()))))
        with _whole(save_path + ".npz") as part, create(part) as file:
            np.savez(file, **values)
        if write_state:
            self.last_checkpoints = [p for p in self.last_checkpoints if p != save_path] + [save_path]
            while self._most and len(self.last_checkpoints) > self._most:
                gone = self.last_checkpoints.pop(0) + ".npz"
                if os.path.exists(gone):
                    os.unlink(gone)
            _train._write_state(save_path, self.last_checkpoints, latest_filename)
        return save_path

    def restore(self, sess, save_path):
        with _archives.Npz(save_path + ".npz", 2 * len(self.variables), packed=False) as file:
            found = {name: file[name] for name in self.variables}        # all are there before the first is written
            for name, v in self.variables.items():
                sess._write(v, found[name].read())


def __getattr__(name):
    """What TensorFlow 2 has under the same name: examples, checkpoints."""
    from snug import _names
    return _names.find("train", name)
