"""tf.compat.v1.summary: names that scripts call; nothing is written yet."""
from snug import _graph
from snug._summary import warn


def scalar(name, tensor, collections=None, family=None):
    return _graph.no_op()


histogram = image = text = audio = scalar


def merge_all(key=None, scope=None, name=None):
    return _graph.no_op()


def merge(inputs, collections=None, name=None):
    return _graph.no_op()


class FileWriter:
    """Says once that there will be no files."""

    def __init__(self, logdir, graph=None, max_queue=10, flush_secs=120, graph_def=None, filename_suffix=None, session=None):
        warn()

    def add_summary(self, summary, global_step=None):
        pass

    def add_graph(self, graph, global_step=None, graph_def=None):
        pass

    def add_event(self, event):
        pass

    def flush(self):
        pass

    close = flush
