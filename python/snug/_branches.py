"""Gradients through branches of a tf.function that are not taken.

TensorFlow traces all branches: what a tape finds None for here, but not behind another answer, has a gradient of zeros. A trace
follows one answer to each question, so where gradient() gave None in one, the body is looked at with the other answers (its
recording is dropped, and it is left once the gradients in question are known), and is then traced again with these zeros; the
traces of other answers know them from the start. A call of gradient() is known by the lines that lead to it, and by how often
they have."""
import sys

from snug import _function
from snug._lazy import tf
from snug._types import MakesVariable, Peek

MAX_LOOKS = 16                # at one trace's other answers


class Enough(BaseException):
    """All that a look was for has been seen."""


def _place(trace):
    """The lines that lead to gradient() from the body of the trace, and how often they have done so before."""
    frame, lines = sys._getframe(3), []
    while frame is not None and frame.f_code is not _function._Trace.record.__code__:
        lines.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    lines = tuple(lines)
    return lines, sum(1 for other, _ in trace.gradients if other == lines)


def connect(found, sources):
    """What gradient() gives in an open trace: zeros in place of None where another answer connects a source."""
    trace = _function._open[-1] if _function._open else None
    if trace is None or not trace.asked:
        return found
    place = _place(trace)
    trace.gradients[place] = [g is not None for g in found]
    if trace.wanted is not None:
        trace.wanted.discard(place)
        if not trace.wanted:
            raise Enough
    connected = trace.connected.get(place, ())
    return [tf.zeros_like(s) if g is None and i in connected else g for i, (g, s) in enumerate(zip(found, sources))]


def _other_answers(trace, begin):
    """The beginnings of answers that turn off at a question of the trace, from question `begin` on."""
    return [trace.answers[:q] + (other,) for q in range(begin, len(trace.asked)) for other in trace.asked[q] or ()
            if other != trace.answers[q]]


def _look(trace, record):
    try:
        record(trace)
    except (Exception, Enough, Peek, MakesVariable, _function.Asked, _function.NeedsTape):
        pass                    # what was seen up to here counts


def finds_more(trace, record, connected):
    """Adds to {place: sources that some answer connects} what a finished trace and other answers say, where places are new;
    whether there are sources that the trace has no gradient of. record(trace) traces the body."""
    new = {place: flags for place, flags in trace.gradients.items() if place not in connected}
    missing = {place for place, flags in new.items() if not all(flags)}
    found = {place: {i for i, there in enumerate(flags) if there} for place, flags in new.items()}
    work, n_looks = _other_answers(trace, 0) if missing else [], 0
    while work and n_looks < MAX_LOOKS:
        looking = _function._Trace(work.pop())
        n_begun = len(looking.answers)
        looking.wanted = set(missing)
        _look(looking, record)
        for place in missing:
            seen = looking.gradients.get(place, ())
            if len(seen) == len(new[place]):
                found[place].update(i for i, there in enumerate(seen) if there)
        work += _other_answers(looking, n_begun)
        n_looks += 1
    connected.update(found)
    return any(len(found[place]) > sum(new[place]) for place in missing)
