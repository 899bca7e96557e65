"""keras.callbacks."""
import math
import os
import sys
import time

from snug._given import default_only
from snug import _C
from snug._files import Copies
from snug._types import as_dtype

_HOOKS = [f"on_{what}_{when}" for what in ("train", "test", "predict") for when in ("begin", "end")] + \
    [f"on_{what}_batch_{when}" for what in ("train", "test", "predict") for when in ("begin", "end")] + \
    ["on_epoch_begin", "on_epoch_end"]


class Callback:
    params = None
    _model = None

    @property
    def model(self):
        return self._model

    def set_params(self, params):
        self.params = params

    def set_model(self, model):
        self._model = model

    def on_batch_begin(self, batch, logs=None):
        pass

    def on_batch_end(self, batch, logs=None):
        pass

    def on_epoch_begin(self, epoch, logs=None):
        pass

    def on_epoch_end(self, epoch, logs=None):
        pass

    def on_train_batch_begin(self, batch, logs=None):
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch, logs=None):
        self.on_batch_end(batch, logs=logs)


for _hook in _HOOKS:
    if not hasattr(Callback, _hook):
        setattr(Callback, _hook, (lambda self, batch, logs=None: None) if "batch" in _hook else (lambda self, logs=None: None))


class CallbackList(Callback):
    def __init__(self, callbacks=None, add_history=False, add_progbar=False, model=None, **params):
        self.callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
        if add_progbar and params.get("verbose"):
            self.callbacks.append(ProgbarLogger())
        if add_history:
            self._history = next((c for c in self.callbacks if isinstance(c, History)), None)
            if self._history is None:
                self._history = History()
                self.callbacks.append(self._history)
        if model is not None:
            if add_history:
                model.__dict__["history"] = self._history
            for c in self.callbacks:
                c.set_model(model)
        for c in self.callbacks:
            c.set_params(params)

    def append(self, callback):
        self.callbacks.append(callback)

    def to_book(self):
        """Bytes that callbacks will keep while a fit goes on; book() takes them."""
        return sum(c._to_book() for c in self.callbacks if hasattr(c, "_to_book"))

    def book(self):
        for c in self.callbacks:
            if hasattr(c, "_book"):
                c._book()

    def set_steps(self, steps):
        for c in self.callbacks:
            if c.params is not None:
                c.params["steps"] = steps


def _forward(hook):
    if "batch" in hook or "epoch" in hook:
        def call(self, index, logs=None):
            for c in self.callbacks:
                getattr(c, hook)(index, logs if logs is not None else {})
    else:
        def call(self, logs=None):
            for c in self.callbacks:
                getattr(c, hook)(logs if logs is not None else {})
    return call


for _hook in _HOOKS:
    setattr(CallbackList, _hook, _forward(_hook))


class History(Callback):
    def __init__(self):
        self.history, self.epoch = {}, []

    def on_train_begin(self, logs=None):
        self.epoch = []

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for k, v in (logs or {}).items():
            self.history.setdefault(k, []).append(v)


class ProgbarLogger(Callback):
    """The bar of verbose=1, the line of verbose=2."""

    def __init__(self):
        self.began = self.shown = 0.0
        self.done = 0

    def set_params(self, params):
        self.params = params
        self.verbose = 1 if params.get("verbose") == "auto" else params.get("verbose", 1)

    def _begin(self):
        self.began, self.done, self.shown = time.time(), 0, 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._begin()
        _C.draw_bars(self.verbose == 1)
        if self.params["epochs"] > 1:
            print(f"Epoch {epoch + 1}/{self.params['epochs']}")

    def _batch(self, logs):
        self.done += 1
        now = time.time()
        if self.verbose == 1 and now - self.shown > 0.1 and sys.stdout.isatty():
            self.shown = now
            self._bar(logs, False)

    def _bar(self, logs, last):
        print(bar_text(self.done, self.params.get("steps"), time.time() - self.began, logs or {}), end="\n" if last else "", flush=True)

    def _end(self, logs):
        _C.draw_bars(False)
        self.params["steps"] = self.params.get("steps") or self.done
        if self.verbose == 1:
            self._bar(logs, True)
        elif self.verbose:
            seconds = time.time() - self.began
            words = "".join(f" - {k}: {_shown(v)}" for k, v in (logs or {}).items())
            print(f"{self.done}/{self.params['steps']} - {seconds:.0f}s - {seconds / max(1, self.done) * 1e3:.0f}ms/step{words}", flush=True)

    def on_train_batch_end(self, batch, logs=None):
        self._batch(logs)

    def on_epoch_end(self, epoch, logs=None):
        self._end(logs)

    def on_test_begin(self, logs=None):
        self.in_fit = self.done > 0 and self.params.get("epochs", 1) >= 1 and self.began > 0
        if not self.in_fit:
            self._begin()

    def on_test_batch_end(self, batch, logs=None):
        if not self.in_fit:
            self._batch(logs)

    def on_test_end(self, logs=None):
        if not self.in_fit:
            self._end(logs)

    def on_predict_begin(self, logs=None):
        self._begin()

    def on_predict_batch_end(self, batch, logs=None):
        self._batch(None)

    def on_predict_end(self, logs=None):
        self._end(None)


def bar_text(done, total, seconds, logs, width=20, unit="step"):
    """The line of a bar, which begins anew at its left."""
    full = width if not total else min(width, int(width * done / total))
    step = seconds / max(1, done)
    each = f"{step:.0f}s" if step >= 1 else f"{step * 1e3:.0f}ms" if step >= 1e-3 else f"{step * 1e6:.0f}us"
    bold, green, plain, white = ("\x1b[1m", "\x1b[32m", "\x1b[0m", "\x1b[37m") if sys.stdout.isatty() else ("",) * 4
    bar = f"{green}{'━' * full}{plain}{white}{'━' * (width - full)}{plain}"
    words = "".join(f" - {k}: {_shown(v)}" for k, v in logs.items())
    return f"\r{bold}{done}/{total or 'Unknown'}{plain} {bar} {bold}{seconds:.0f}s{plain} {each}/{unit}{words}"


def _shown(value):
    try:
        value = float(value.mean() if hasattr(value, "mean") else value)
    except (TypeError, ValueError):
        return str(value)
    return f"{value:.4f}" if abs(value) > 1e-3 else f"{value:.4e}"


class LambdaCallback(Callback):
    def __init__(self, on_epoch_begin=None, on_epoch_end=None, on_train_begin=None, on_train_end=None, on_train_batch_begin=None,
                 on_train_batch_end=None, **kwargs):
        given = dict(on_epoch_begin=on_epoch_begin, on_epoch_end=on_epoch_end, on_train_begin=on_train_begin, on_train_end=on_train_end,
                     on_train_batch_begin=on_train_batch_begin, on_train_batch_end=on_train_batch_end, **kwargs)
        for name, function in given.items():
            if function is not None:
                setattr(self, name, (lambda f: lambda *a, logs=None: f(*a) if logs is None else f(*a, logs))(function))


class TerminateOnNaN(Callback):
    def on_train_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss")
        if loss is not None and (math.isnan(loss) or math.isinf(loss)):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class LearningRateScheduler(Callback):
    def __init__(self, schedule, verbose=0):
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch, logs=None):
        rate = float(self.model.optimizer.learning_rate)
        try:
            rate = self.schedule(epoch, rate)
        except TypeError:
            rate = self.schedule(epoch)
        self.model.optimizer.learning_rate = float(rate)
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {float(rate)}.")

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)


class _Monitor(Callback):
    """What watches a quantity for being better."""

    def _setup(self, monitor, mode, min_delta=0.0):
        self.monitor, self.mode, self.min_delta = monitor, mode, abs(min_delta)

    def _rises(self):
        if self.mode in ("min", "max"):
            return self.mode == "max"
        name, direction = self.monitor.removeprefix("val_"), None
        found = self.model._compile_metrics.metrics if self.model._compile_metrics is not None else []
        for metric in found:
            direction = metric._direction if metric.name == name else direction
        if direction is None and name != "loss":
            raise ValueError(f"{type(self).__name__} callback received monitor={self.monitor}, but Keras isn't able to automatically"
                             " determine whether that metric should be maximized or minimized. Pass `mode='max'` in order to monitor"
                             " based on the highest metric value, or pass `mode='min'` in order to use the lowest value.")
        return direction == "up"

    def _better(self, value, best):
        if best is None:
            return True
        return value - self.min_delta > best if self._rises() else value + self.min_delta < best

    def _value(self, logs):
        self._rises()           # refuses what it cannot judge
        value = (logs or {}).get(self.monitor)
        if value is None:
            import warnings
            warnings.warn(f"{type(self).__name__} conditioned on metric `{self.monitor}` which is not available. Available metrics are:"
                          f" {','.join((logs or {}).keys())}")
        return value


class EarlyStopping(_Monitor):
    def __init__(self, monitor="val_loss", min_delta=0, patience=0, verbose=0, mode="auto", baseline=None, restore_best_weights=False,
                 start_from_epoch=0):
        self._setup(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline, self.restore_best_weights = patience, verbose, baseline, restore_best_weights
        self.start_from_epoch = start_from_epoch
        self.stopped_epoch = self.wait = self.best_epoch = 0
        self.best = self.best_weights = self._copies = None

    def on_train_begin(self, logs=None):
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best = self.best_weights = self._copies = None

    def _to_book(self):
        return sum(math.prod(v.shape) * as_dtype(v.dtype).size for v in self.model.weights) if self.restore_best_weights else 0

    def _book(self):
        if self.restore_best_weights and self._copies is None:
            self._copies = Copies(self.model.weights)

    def _keep(self):
        self._book()
        self.best_weights = self._copies.keep()

    def on_epoch_end(self, epoch, logs=None):
        value = self._value(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self._keep()
            self.best_epoch = epoch
        self.wait += 1
        if self._better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self._keep()
            if self.baseline is None or self._better(value, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        if self.stopped_epoch > 0 and self.verbose > 0:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            if self.verbose > 0:
                print(f"Restoring model weights from the end of the best epoch: {self.best_epoch + 1}.")
            for v, array in zip(self.model.weights, self.best_weights):
                v.assign(_C.adopt(array) if str(array.dtype) == str(v.dtype) else array)
                _C.boundary()


class ReduceLROnPlateau(_Monitor):
    def __init__(self, monitor="val_loss", factor=0.1, patience=10, verbose=0, mode="auto", min_delta=1e-4, cooldown=0, min_lr=0.0):
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau does not support a factor >= 1.0. Received factor={factor}")
        self._setup(monitor, mode, min_delta)
        self.factor, self.patience, self.verbose, self.cooldown, self.min_lr = factor, patience, verbose, cooldown, min_lr
        self.wait = self.cooldown_counter = 0
        self.best = None

    def on_train_begin(self, logs=None):
        self.wait = self.cooldown_counter = 0
        self.best = None

    def on_epoch_end(self, epoch, logs=None):
        rate = float(self.model.optimizer.learning_rate)
        logs["learning_rate"] = rate
        value = self._value(logs)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._better(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience and rate > self.min_lr:
                new = max(rate * self.factor, self.min_lr)
                self.model.optimizer.learning_rate = new
                if self.verbose:
                    print(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {new}.")
                self.cooldown_counter, self.wait = self.cooldown, 0


class ModelCheckpoint(_Monitor):
    def __init__(self, filepath, monitor="val_loss", verbose=0, save_best_only=False, save_weights_only=False, mode="auto",
                 save_freq="epoch", initial_value_threshold=None):
        self._setup(monitor, mode)
        self.filepath, self.verbose, self.save_best_only, self.save_weights_only = str(filepath), verbose, save_best_only, save_weights_only
        self.save_freq, self.best = save_freq, initial_value_threshold
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}. Expected save_freq are 'epoch' or integer values")
        if save_weights_only and not self.filepath.endswith(".weights.h5"):
            raise ValueError("When using `save_weights_only=True` in `ModelCheckpoint`, the filepath provided must end in `.weights.h5`"
                             f" (Keras weights format). Received: filepath={self.filepath}")
        if not save_weights_only and not self.filepath.endswith((".keras", ".h5")):
            raise ValueError("The filepath provided must end in `.keras` (Keras model format). Received:"
                             f" filepath={self.filepath}")
        self._epoch, self._batches = 0, 0

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if self.save_freq == "epoch":
            return
        self._batches += 1
        if self._batches >= self.save_freq:
            self._batches = 0
            self._save(self._epoch, logs, batch=batch + 1)

    def on_epoch_end(self, epoch, logs=None):
        if self.save_freq == "epoch":
            self._save(epoch, logs)

    def _save(self, epoch, logs, **where):
        path = self.filepath.format(epoch=epoch + 1, **where, **(logs or {}))
        if not self._wanted(epoch, logs, path):
            return
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)
        self._say(epoch, f"finished saving model to {path}")

    def _wanted(self, epoch, logs, path):
        value = self._value(logs) if self.save_best_only else None
        if value is None:
            self._say(epoch, f"saving model to {path}")
            return True
        best = "None" if self.best is None else f"{self.best:.5f}"
        if not self._better(value, self.best):
            self._say(epoch, f"{self.monitor} did not improve from {best}")
            return False
        self._say(epoch, f"{self.monitor} improved from {best} to {value:.5f}, saving model to {path}")
        self.best = value
        return True

    def _say(self, epoch, text):
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: {text}")


class CSVLogger(Callback):
    def __init__(self, filename, separator=",", append=False):
        self.filename, self.separator, self.append = filename, separator, append
        self.keys = self.file = None

    def on_train_begin(self, logs=None):
        if not self.append:
            open(self.filename, "w").close()
        self.file = open(self.filename, "a", newline="")        # rows of two processes never overlap

    def on_epoch_end(self, epoch, logs=None):
        import csv
        writer = csv.writer(self.file, delimiter=self.separator)
        if self.keys is None:
            self.keys = sorted(logs)
            if not any(k.startswith("val_") for k in self.keys):
                self.keys += ["val_" + k for k in self.keys]       # as Keras: validation may come in a later epoch
            if not (self.append and self.file.tell() > 0):
                writer.writerow(["epoch", *self.keys])
        writer.writerow([epoch, *[logs.get(k, "NA") for k in self.keys]])
        self.file.flush()

    def on_train_end(self, logs=None):
        self.file.close()


class BackupAndRestore(Callback):
    """The model, its optimizer, the epoch and where randomness stands in one file of a folder: a fit that was interrupted goes on, to the bit, where
    it stood at the end of an epoch."""

    @default_only("double_checkpoint", "BackupAndRestore")
    def __init__(self, backup_dir, save_freq="epoch", double_checkpoint=False, delete_checkpoint=True):
        if not backup_dir:
            raise ValueError("Empty `backup_dir` argument passed")
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Invalid value for argument `save_freq`. Received: save_freq={save_freq}. Expected either 'epoch' or an integer"
                             " value.")
        self.backup_dir, self.save_freq, self.delete_checkpoint = str(backup_dir), save_freq, delete_checkpoint
        self._file = os.path.join(self.backup_dir, "latest.ckpt")
        self._epoch = self._batches = 0

    def on_train_begin(self, logs=None):
        from snug.keras import _saving
        if not self.model.built:
            raise ValueError("To use the BackupAndRestore callback, you model must be built before you call `fit()`. Model"
                             f" {self.model} is unbuilt. You can build it beforehand by calling it on a batch of data.")
        if os.path.exists(self._file):
            self._epoch = self.model.__dict__["_first_epoch"] = _saving.load_state(self.model, self._file)

    def _save(self):
        from snug.keras import _saving
        os.makedirs(self.backup_dir, exist_ok=True)
        _saving.save_state(self.model, self._file, self._epoch)

    def on_epoch_end(self, epoch, logs=None):
        self._epoch = epoch + 1
        if self.save_freq == "epoch":
            self._save()

    def on_train_batch_end(self, batch, logs=None):
        self._batches += 1
        if self.save_freq != "epoch" and self._batches % self.save_freq == 0:
            self._save()

    def on_train_end(self, logs=None):
        import shutil
        if self.delete_checkpoint and os.path.exists(self.backup_dir):
            shutil.rmtree(self.backup_dir)


class RemoteMonitor(Callback):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("RemoteMonitor sends to a server, which Snug does not do; CSVLogger writes a file")


class OrbaxCheckpoint(Callback):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("OrbaxCheckpoint is not in Snug; ModelCheckpoint writes .keras and .weights.h5 files")


class SwapEMAWeights(Callback):
    """The averages an optimizer keeps (use_ema) are the model's weights while it is evaluated, or whenever an epoch has ended."""

    def __init__(self, swap_on_epoch=False):
        super().__init__()
        self.swap_on_epoch, self._ema_weights_in_model = swap_on_epoch, False

    def _averages(self):
        found = self.model.optimizer._averages()
        if found is None:
            raise ValueError("SwapEMAWeights must be used when `use_ema=True` is set on the optimizer. Received:"
                             f" use_ema={self.model.optimizer.use_ema}")
        return found

    def _swap(self, is_in_model):
        for v, average in self._averages():
            before = v.numpy()
            v.assign(average)
            average.assign(before)
        self._ema_weights_in_model = is_in_model

    def on_epoch_begin(self, epoch, logs=None):
        if self.swap_on_epoch and self._ema_weights_in_model:
            self._swap(False)

    def on_epoch_end(self, epoch, logs=None):
        if not self.swap_on_epoch or self._ema_weights_in_model:
            return
        self._swap(True)
        if epoch == self.params["epochs"] - 1:      # when fit ends, averages become weights: those of before are no averages
            for v, average in self._averages():
                average.assign(v)

    def on_test_begin(self, logs=None):
        if not self._ema_weights_in_model:
            self._swap(True)

    def on_test_end(self, logs=None):
        if self._ema_weights_in_model:
            self._swap(False)

    on_predict_begin = on_test_begin

    def on_predict_end(self, logs=None):
        """Keras leaves the averages in the model here; so does this."""
        if not self._ema_weights_in_model:
            self._swap(False)


class TensorBoard(Callback):
    """Takes what Keras' takes; Snug writes no event files, and says so once."""
    _said = []

    def __init__(self, log_dir="logs", histogram_freq=0, write_graph=True, write_images=False, write_steps_per_second=False,
                 update_freq="epoch", profile_batch=0, embeddings_freq=0, embeddings_metadata=None):
        self.log_dir, self.histogram_freq, self.update_freq = str(log_dir), histogram_freq, update_freq
        if not self._said:
            self._said.append(True)
            print("snug: TensorBoard event files are not written yet; the callback does nothing", file=sys.stderr)
