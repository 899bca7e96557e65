"""compile, fit, evaluate, predict: Keras' training loop over recorded steps. A step is traced once per signature (as tf.function
does) and each batch appends the trace; a step that cannot be traced runs as plain Python."""
import inspect
import warnings

from snug import _C, _nest
from snug.keras import _compiled, _data, _foresight, _results, _symbolic


class Trainer:
    optimizer = None
    compiled = False
    _loss_tracker = _compile_loss = _compile_metrics = None
    stop_training = False
    _to_come = None             # what fit will still need when its first step is planned
    run_eagerly = False
    jit_compile = False
    steps_per_execution = 1
    loss = None

    # --- compiling --------------------------------------------------------------------------------
    def compile(self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None, weighted_metrics=None, run_eagerly=False,
                steps_per_execution=1, jit_compile="auto", auto_scale_loss=True):
        from snug.keras import losses, metrics as km, optimizers
        if metrics and not isinstance(metrics, (list, tuple, dict)):
            raise ValueError(f"Expected `metrics` argument to be a list, tuple, or dict. Received instead: metrics={metrics} of type"
                             f" {type(metrics)}")
        losses.check(loss)
        optimizer = optimizers.get(optimizer)
        if auto_scale_loss and self.dtype_policy.name == "mixed_float16" and optimizer and not isinstance(optimizer, optimizers.LossScaleOptimizer):
            optimizer = optimizers.LossScaleOptimizer(optimizer, name="loss_scale_optimizer")
        names = getattr(self, "output_names", None)
        made = _compiled.CompileLoss(loss, loss_weights, names)
        self.__dict__.update(optimizer=optimizer, loss=loss, run_eagerly=bool(run_eagerly), compiled=True, steps_per_execution=steps_per_execution,
                             _loss_tracker=km.Mean(name="loss"), _compile_loss=made, _functions={}, stop_training=False)
        if metrics is not None or weighted_metrics is not None:      # else those of the last time stay, as in Keras
            self.__dict__["_compile_metrics"] = _compiled.CompileMetrics(metrics, weighted_metrics, made)

    def _require_compiled(self):
        if not self.compiled:
            raise ValueError("You must call `compile()` before using the model.")

    @property
    def metrics(self):
        found = []
        if self.compiled:
            found = [m for m in (self._loss_tracker, self._compile_metrics) if m is not None] + self._compile_loss.metrics
        layers = self._all_layers()
        return found + list(self._metrics) + _of_layers(layers)

    @property
    def metrics_names(self):
        return [m.name for m in self.metrics]

    def reset_metrics(self):
        for m in self.metrics:
            m.reset_state()

    def get_metrics_result(self):
        out = {}
        for m in self.metrics:
            result = m.result()
            out.update(result if isinstance(result, dict) else {m.name: result})
        return out

    def get_compile_config(self):
        from snug.keras import _serial
        if not self.compiled:
            return {}
        both = self._compile_metrics
        return {"optimizer": _serial.serialize_keras_object(self.optimizer), "loss": _serial.to_config(self.loss),
                "loss_weights": _serial.to_config(self._compile_loss.weights), "metrics": _serial.to_config(both.given if both else None),
                "weighted_metrics": _serial.to_config(both.weighted if both else None), "run_eagerly": self.run_eagerly,
                "steps_per_execution": self.steps_per_execution, "jit_compile": False}

    def compile_from_config(self, config):
        from snug.keras import _serial
        self.compile(**{k: _serial.from_config(v) for k, v in config.items()})

    # --- losses and metrics of a batch ------------------------------------------------------------
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        total = None
        if self.loss is not None and y is not None:
            total = self._compile_loss(y, y_pred, sample_weight)
        for extra in self.losses:
            total = extra if total is None else total + extra
        if total is None:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        return total

    def _compute_loss(self, x, y, y_pred, sample_weight, training):
        """compute_loss as the model has it: an override need not take `training`."""
        given = inspect.signature(self.compute_loss).parameters
        takes = "training" in given or any(p.kind is p.VAR_KEYWORD for p in given.values())
        return self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, **({"training": training} if takes else {}))

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        if self._compile_metrics is not None and y is not None:
            self._compile_metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    # --- steps ------------------------------------------------------------------------------------
    def train_step(self, data):
        from snug._tape import GradientTape
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self._compute_loss(x, y, y_pred, sample_weight, True)
            scaled = loss if self.optimizer is None else self.optimizer.scale_loss(loss)
        self._loss_tracker.update_state(loss, sample_weight=_compiled.count(x))
        variables = self.trainable_weights
        if variables:
            self.optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables))
        else:
            warnings.warn("The model does not have any trainable weights.")
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data):
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        loss = self._compute_loss(x, y, y_pred, sample_weight, False)
        self._loss_tracker.update_state(loss, sample_weight=_compiled.count(x))
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        x, _, _ = unpack_x_y_sample_weight(data)
        return self(x, training=False)

    def _function(self, name, plain=False, updates=True):
        """The step, traced; plain where a batch holds texts, which are values and no part of a trace. A step that only adds up gradients
        is another one."""
        from snug import _function
        functions = self.__dict__.setdefault("_functions", {})
        made = functions.get((name, plain, updates))
        if made is None:
            step = getattr(self, name)

            def run(data):
                self._forget_losses()
                if self.optimizer is not None:
                    self.optimizer._is_told = True
                try:
                    return step(data)
                finally:
                    if _C.is_tracing():
                        self._forget_losses()  # they are of the trace
            run.__name__ = name
            made = functions[name, plain, updates] = run if self.run_eagerly or plain else _function.Function(run, name=name)
        return made

    def make_train_function(self, force=False):
        return self._made_anew("train_step", force)

    def make_test_function(self, force=False):
        return self._made_anew("test_step", force)

    def make_predict_function(self, force=False):
        return self._made_anew("predict_step", force)

    def _made_anew(self, name, force):
        known = self.__dict__.setdefault("_functions", {})
        for key in [k for k in known if force and k[0] == name]:
            del known[key]
        return self._function(name)

    def _step(self, name, data, any_size=False):
        """One batch; metrics are read by the host only when they are shown."""
        from snug.keras import metrics as km
        updates = True
        if name == "train_step" and self.optimizer is not None:
            self.optimizer._before_step()
            updates = self.optimizer._updates_next()
        with km.in_step(any_size):
            result = self._function(name, _holds_text(data), updates)(_trim(data))
        _C.boundary()
        return result

    # --- loops ------------------------------------------------------------------------------------
    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None,
            validation_steps=None, validation_batch_size=None, validation_freq=1, **old):
        from snug.keras import callbacks as kc
        _refuse("fit", old)
        self._require_compiled()
        if validation_split and validation_data is None:
            x, y, sample_weight = _data._as_arrays(x), _data._as_arrays(y), _data._as_arrays(sample_weight, columns=False)
            (x, y, sample_weight), validation_data = _data.train_validation_split(x, y, sample_weight, validation_split)
        batches = _data.source(x, y, sample_weight, batch_size, shuffle, steps_per_epoch)
        steps = steps_per_epoch or batches.steps
        runner = kc.CallbackList(callbacks, add_history=True, add_progbar=verbose not in (0, False), verbose=verbose, epochs=epochs,
                                 steps=steps, model=self)
        self.__dict__["stop_training"] = False
        self.__dict__["_first_epoch"] = initial_epoch       # a callback may set it
        runner.on_train_begin()
        validation = _Validation(validation_data, validation_batch_size or batch_size, validation_steps)
        leave = lambda batch: _leave_room(batch, batches, validation, runner, room)

        def step(batch):
            leave(batch)
            self._step("train_step", batch, True)
            _C.sync()
        with _results.Room() as room, validation.room, _foresight.Foresight(batches, step) as first:
            self.__dict__["_to_come"] = (leave, room) if _C.budget_bytes() else None
            return self._train(first, steps, epochs, runner, class_weight, validation_freq, validation)

    def _train(self, data, steps, epochs, runner, class_weight, validation_freq, validation):
        logs = {}
        for epoch in range(self._first_epoch, epochs):
            self.reset_metrics()
            runner.on_epoch_begin(epoch)
            logs = self._epoch(data, steps, runner, class_weight)
            if validation.data is not None and _is_due(epoch + 1, validation_freq):
                found = self._validate(validation, runner)
                logs.update({"val_" + k: v for k, v in found.items()})
            runner.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        if self.optimizer is not None and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        runner.on_train_end(logs)
        return self.history

    def _epoch(self, first, steps, runner, class_weight):
        result, n, group = {}, 0, self._group()
        to_come, self.__dict__["_to_come"] = self._to_come, None
        for i, data in _data.counted(first.batches(steps)):
            if steps is not None and i >= steps:
                break
            if i % group == 0:
                runner.on_train_batch_begin(i)
            if class_weight:
                data = _weigh_classes(data, class_weight)
            if to_come:
                leave, room = to_come
                first.leave(data)
                left = leave(data)
            result = self._step("train_step", data, True)
            data = None                   # the next batch takes its place
            if to_come:
                to_come = None
                runner.book()
                room.leave(left)
                first.planned()
            n = i + 1
            if n % group == 0:
                runner.on_train_batch_end(i, _Later(result))
            if self.stop_training:
                break
        if n % group:
            runner.on_train_batch_end(n - n % group + group - 1, _Later(result))     # as Keras counts them
        if n == 0:
            raise ValueError("The data is empty: there was no batch to train on.")
        runner.set_steps(n if steps is None else steps)
        return self._logs(result)

    def _group(self):
        """After how many steps callbacks are called."""
        return self.steps_per_execution if isinstance(self.steps_per_execution, int) and self.steps_per_execution > 0 else 1

    def _logs(self, result):
        """Numbers by name, in the order of names; a metric that is several takes its place."""
        if not isinstance(result, dict):
            return {"loss": _number(result)} if result is not None else {}
        metrics = {}
        for m in self.metrics:
            metrics.update(m.by_name() if isinstance(m, _compiled.CompileMetrics) else {m.name: m})
        out = {}
        for k, v in sorted(result.items()):
            if isinstance(v, dict):
                out.update(self._logs(v))
            else:
                out[k] = _number(metrics[k].result() if k in metrics and not isinstance(v, float) else v)
        return out

    def _validate(self, validation, runner):
        x, y, weights = validation.parts
        validation.room.keep(0)                # its batch takes it
        found = self.evaluate(x, y, sample_weight=weights, batch_size=validation.batch, steps=validation.steps, verbose=0,
                              callbacks=runner, return_dict=True)
        validation.room.keep(validation.larger)
        return found

    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None,
                 return_dict=False, **old):
        from snug.keras import callbacks as kc
        _refuse("evaluate", old)
        self._require_compiled()
        batches = _data.source(x, y, sample_weight, batch_size, False, steps)
        runner = callbacks if isinstance(callbacks, kc.CallbackList) else \
            kc.CallbackList(callbacks, add_progbar=verbose not in (0, False), verbose=verbose, epochs=1,
                            steps=steps or batches.steps, model=self)
        runner.on_test_begin()
        self.reset_metrics()
        result, n, group = {}, 0, self._group()

        def step(batch):
            self._step("test_step", batch, True)
            _C.sync()
        with _foresight.Foresight(batches, step) as first:
            for i, data in _data.counted(first.batches(steps)):
                if steps is not None and i >= steps:
                    break
                if i % group == 0:
                    runner.on_test_batch_begin(i)
                first.leave(data)
                result = self._step("test_step", data, True)
                data, n = None, i + 1
                first.planned()
                if n % group == 0:
                    runner.on_test_batch_end(i, _Later(result))
        if n % group:
            runner.on_test_batch_end(n - n % group + group - 1, _Later(result))
        logs = self._logs(result)
        runner.on_test_end(logs)
        return logs if return_dict else self._in_order(logs)

    def _in_order(self, logs):
        """The loss first, then as the metrics were given."""
        names = [one.name for m in self.metrics for one in (m.metrics if isinstance(m, _compiled.CompileMetrics) else [m])]
        values = [logs[n] for n in names if n in logs] + [v for k, v in logs.items() if k not in names]
        return values[0] if len(values) == 1 else values

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None, **old):
        import numpy  # noqa: F401 (its code comes before room is measured)
        _refuse("predict", old)
        from snug.keras import callbacks as kc
        batches = _data.source(x, None, None, batch_size, False, steps)
        runner = kc.CallbackList(callbacks, add_progbar=verbose not in (0, False), verbose=verbose,
                                 epochs=1, steps=steps or batches.steps, model=self)
        runner.on_predict_begin()
        step = lambda batch: _results.Results(batches, steps, room).add([batch], self._step("predict_step", batch))
        with _results.Room() as room, _foresight.Foresight(batches, step) as first:
            results = _results.Results(batches, steps, room)
            for i, data in _data.counted(first.batches(steps)):
                if steps is not None and i >= steps:
                    break
                runner.on_predict_batch_begin(i)
                data = [data]               # the next batch takes its place
                first.leave(data[0])
                arrays = results.add(data, self._step("predict_step", data[0]))
                first.planned()
                runner.on_predict_batch_end(i, {"outputs": arrays})
                arrays = None               # before the next ones come
        runner.on_predict_end()
        if not results:
            raise ValueError("The data is empty: there was no batch to predict.")
        return results.whole()

    # --- single batches ---------------------------------------------------------------------------
    def _on_batch(self, step, data, return_dict):
        self.reset_metrics()
        logs = self._logs(self._step(step, data))
        return logs if return_dict else self._in_order(logs)

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._require_compiled()
        data = _data.whole(x, y, sample_weight)
        if class_weight:
            data = _weigh_classes(data, class_weight)
        return self._on_batch("train_step", data, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._require_compiled()
        return self._on_batch("test_step", _data.whole(x, y, sample_weight), return_dict)

    def predict_on_batch(self, x):
        result = self._step("predict_step", (_data._convert(_data._as_arrays(x)), None, None))
        with _results.Room() as room:
            room.run(_results.INTERPRETER + _data.size(result))
            return _symbolic._map(lambda t: t.numpy() if _C.is_tensor(t) else t, result)


# --- what a fit will need ---------------------------------------------------------------------------------
_LOOPS = 2                  # plans of what is read between the steps: metrics, losses


class _Validation:
    """What epochs end with, and the room that steps leave for its batches."""
    larger = 0

    def __init__(self, data, batch, steps):
        self.data, self.batch, self.steps, self.room = data, batch, steps, _results.Room()
        parts = data if isinstance(data, (tuple, list)) and not hasattr(data, "element_spec") else (data,)
        self.parts = (tuple(parts) + (None, None))[:3]

    def leave(self, batch):
        """By how much a batch of it is larger than this one, which will have gone by then; nothing where nobody knows."""
        import numpy as np
        known = all(isinstance(a, (np.ndarray, _C.Tensor)) or hasattr(a, "element_spec") for a in _nest.flatten(self.parts) if a is not None)
        arrays = _data.source(*self.parts, self.batch, False, self.steps).untouched() if self.data is not None and known else None
        taken = sum(a.nbytes for a in _nest.flatten(arrays) if a is not None) if arrays else 0
        self.larger = max(0, taken - _data.size(batch))
        self.room.keep(self.larger)


def _leave_room(batch, batches, validation, runner, room):
    """Before the first step is planned: it leaves room for what callbacks that save have in memory, for a larger batch of validation,
    and for the plans of a remainder and of validation. So the budget that a refusal names suffices for the whole of fit. Gives what is
    to be left once callbacks have booked what they keep."""
    from snug._files import PIECE
    from snug.keras import callbacks as kc
    rows = getattr(batches, "rows", 0)
    plans = _LOOPS + (2 if validation.data is not None else 0) + (1 if not rows or rows % batches.batch else 0)
    left = 2 * PIECE if runner.to_book() else 0
    if any(isinstance(c, (kc.ModelCheckpoint, kc.BackupAndRestore)) for c in runner.callbacks):
        from snug.keras import _hdf5, _saving, _serial      # noqa: F401 (code comes before room is measured)
        import tempfile                                     # noqa: F401
        import zipfile                                      # noqa: F401
        left += 8 * PIECE
    validation.leave(batch)
    room.leave(left + runner.to_book() + _results.INTERPRETER, plans)
    return left


# --- helpers --------------------------------------------------------------------------------------------
# What Keras 2 took of how data is brought; it changes no result.
_OLD_WORDS = {"workers", "use_multiprocessing", "max_queue_size"}


def _is_due(epoch, frequency):
    """Whether an epoch of these is validated: each so many, or those that are listed."""
    return epoch in frequency if isinstance(frequency, (list, tuple, set, range)) else epoch % frequency == 0


def _refuse(name, words):
    for word in words:
        if word not in _OLD_WORDS:
            raise TypeError(f"{name}() got an unexpected keyword argument '{word}'")


def _of_layers(layers):
    """Metrics of layers; a model below counts for its layers alone: what it was compiled with is its own business."""
    return [m for layer in layers for m in (_of_layers(layer._all_layers()) if isinstance(layer, Trainer) else layer.metrics)]


class _Later(dict):
    """Logs of a batch: numbers are read when someone looks at them."""

    def __init__(self, result):
        super().__init__(sorted(result.items()) if isinstance(result, dict) else {"loss": result} if result is not None else {})

    def __getitem__(self, key):
        return _number(super().__getitem__(key))

    def get(self, key, default=None):
        return self[key] if key in self else default

    def items(self):
        return [(k, self[k]) for k in self]

    def values(self):
        return [self[k] for k in self]

    def copy(self):
        return dict(self.items())


def _holds_text(data):
    return any(not isinstance(t, _C.Tensor) and getattr(t, "dtype", None) == "string" for t in _nest.flatten(data))


def _trim(data):
    """What step functions unpack: no surplus None at the end."""
    data = tuple(data)
    while len(data) > 1 and data[-1] is None:
        data = data[:-1]
    return data[0] if len(data) == 1 and not isinstance(data[0], (tuple, list)) else data


def _number(value):
    if isinstance(value, (list, tuple)):
        return type(value)(_number(v) for v in value)
    if _C.is_tensor(value):
        return float(value) if not len(value.shape) else value.numpy()
    if callable(value):
        return _number(value())
    return float(value) if hasattr(value, "numpy") and hasattr(value, "__float__") else value


def _weigh_classes(data, class_weight):
    import numpy as np
    x, y, w = data
    if y is None or _nest.is_nested(y):
        raise ValueError("`class_weight` is only supported for `Model`s with a single output.")
    if w is not None:
        raise ValueError("You cannot `class_weight` and `sample_weight` at the same time.")
    labels = np.asarray(y)
    if labels.ndim > 1 and labels.shape[-1] > 1:
        labels = labels.argmax(-1)
    labels = labels.reshape(labels.shape[0], -1)[:, 0].astype("int64")
    weights = np.asarray([class_weight.get(int(c), 1.0) for c in labels], dtype="float32")
    return x, y, _C.convert_to_tensor(weights)


def unpack_x_y_sample_weight(data):
    if not isinstance(data, (tuple, list)):
        return data, None, None
    data = tuple(data)
    return (data + (None, None))[:3]


def pack_x_y_sample_weight(x, y=None, sample_weight=None):
    if y is None:
        return (x,) if not _nest.is_nested(x) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)
