"""tf.summary: names that scripts call. Nothing is written; the first writer says so, once."""
import contextlib
import sys

_state = {"warned": False, "step": None, "writers": 0}


def warn():
    """One line on stderr: a script that looks for its logs should know why there are none."""
    if not _state["warned"]:
        _state["warned"] = True
        print("snug: tf.summary writes nothing; what a script gives it is dropped", file=sys.stderr)


class SummaryWriter:
    @contextlib.contextmanager
    def as_default(self, step=None):
        _state["writers"] += 1
        before = _state["step"]
        _state["step"] = before if step is None else step
        try:
            yield self
        finally:
            _state["writers"] -= 1
            _state["step"] = before

    def set_as_default(self, step=None):
        _state["writers"] += 1
        _state["step"] = _state["step"] if step is None else step

    def flush(self):
        pass

    init = close = flush


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None, experimental_trackable=False):
    warn()
    return SummaryWriter()


def create_noop_writer():
    return SummaryWriter()


def _given(step):
    """As TensorFlow: a writer wants a step from somewhere. False: no writer is there."""
    if _state["writers"] and step is None and _state["step"] is None:
        raise ValueError("No step set. Please specify one either through the `step` argument or through tf.summary.experimental.set_step()")
    return bool(_state["writers"])


def scalar(name, data, step=None, description=None):
    return _given(step)


def histogram(name, data, step=None, buckets=None, description=None):
    return _given(step)


def image(name, data, step=None, max_outputs=3, description=None):
    return _given(step)


def text(name, data, step=None, description=None):
    return _given(step)


def audio(name, data, sample_rate, step=None, max_outputs=3, encoding=None, description=None):
    return _given(step)


def write(tag, tensor, step=None, metadata=None, name=None):
    return _given(step)


def graph(graph_data):
    return bool(_state["writers"])


def should_record_summaries():
    return bool(_state["writers"])


@contextlib.contextmanager
def record_if(condition):
    yield


def set_step(step):
    _state["step"] = step


def get_step():
    return _state["step"]


def trace_on(graph=True, profiler=False, profiler_outdir=None):
    warn()


def trace_export(name, step=None, profiler_outdir=None):
    pass


def trace_off():
    pass


def flush(writer=None, name=None):
    pass


# --- tf.profiler.experimental: the same --------------------------------------------------------------------
def start(logdir, options=None):
    warn()


def stop(save=True):
    pass


class Profile(contextlib.AbstractContextManager):
    def __init__(self, logdir, options=None):
        warn()

    def __exit__(self, *exception):
        return None


class Trace(contextlib.AbstractContextManager):
    def __init__(self, name, **kwargs):
        self.name = name

    def __exit__(self, *exception):
        return None

    def set_metadata(self, **kwargs):
        pass


class ProfilerOptions:
    def __init__(self, **settings):
        self.__dict__.update(settings)
