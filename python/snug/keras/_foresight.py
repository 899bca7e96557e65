"""What a loop over batches asks of a budget is judged before its first step, so that one number suffices for the step, the batch that
it is for, and what makes the next one."""
import traceback

from snug import _C, _nest
from snug.keras import _data, _results

PLANS = 4 << 20             # what plans to come may find less than the system has left: of the process more is booked than it has


class Foresight:
    """with Foresight(batches, step) as first: a loop over first.batches(steps), with first.leave(batch) before its first step and
    first.planned() behind it. Until then pipelines make nothing ahead of who asks, so that what they hold is what they need; then
    they may use half of what is left. A first batch that there is no room for is refused with the number of step(batch)."""
    _open = []

    def __init__(self, batches, step):
        self._batches, self._step, self._room = batches, step, _results.Room()
        self._pipeline = getattr(getattr(batches, "source", None), "_d", None) if _C.device() is None else None
        self._is_first = bool(_C.budget_bytes())
        self._before = self._coming = self._held = self._grown = self._limit = self._between = 0

    def __enter__(self):
        self._room.__enter__()
        self._limit = self._open[-1]._limit if self._open else 0
        self._open.append(self)
        return self

    def __exit__(self, *error):
        self._open.remove(self)
        self._room.__exit__()
        if self._pipeline is not None and _C.budget_bytes():
            _C.rest_pipelines(False)
            _C.limit_pipelines(self._open[-1]._limit if self._open else 0, -1)
        if self._open:
            self._open[-1]._stands_in_for(0)

    def batches(self, steps):
        source = iter(_data.ahead(self._batches, steps))
        batch = [self._first(source) if self._is_first else next(source, None)]
        self._keep(True)
        while batch[0] is not None:
            yield batch.pop()
            batch.append(next(source, None))
        self._keep(getattr(self._batches, "open", None) is not None)

    def _first(self, source):
        if self._pipeline is not None:
            _C.rest_pipelines(True)
        self._before = _C.info()["bytes"]
        try:
            return next(source, None)
        except MemoryError as error:
            more = self._refusal_of_step(error)
            if more is None:
                raise
            raise more from None

    def _keep(self, runs):
        """While the pipeline runs, plans leave it what its limit allows; between epochs what it needs."""
        if self._pipeline is not None and not self._is_first:
            self._between = 0 if runs else self._grown + self._coming
            self._room.keep(self._between)

    def _stands_in_for(self, n_bytes):
        """A loop between two epochs of this one holds so much of what they will need."""
        if self._between:
            self._room.keep(max(0, self._between - n_bytes))

    def leave(self, batch, more=0):
        """Before the step is planned: room for what makes the next batch."""
        if not self._is_first:
            return
        self._coming, self._held = self._pipeline.to_come() if self._pipeline is not None else (0, 0)
        if self._pipeline is None and _data.makes_ahead(self._batches):
            self._coming = _data.size(batch)
        self._grown = max(0, _C.info()["bytes"] - self._before)
        if len(self._open) > 1:
            self._open[-2]._stands_in_for(self._grown + self._coming)
        self._room.keep(self._coming + more)

    def planned(self):
        if self._is_first and self._pipeline is not None:
            self._room.keep(0)
            _C.rest_pipelines(False)
            self._limit = _C.limit_pipelines(self._held + self._coming, self._room.all() + self._coming + PLANS)
        self._is_first = False

    def _refusal_of_step(self, error):
        """The step is planned on a batch that is not there."""
        coming, held = self._pipeline.to_come() if self._pipeline is not None else (0, 0)
        traceback.clear_frames(error.__traceback__)     # they hold what was made of it
        arrays = self._batches.untouched() if _C.device() is None else None
        if arrays is None:
            return None
        taken = sum(a.nbytes for a in _nest.flatten(arrays) if a is not None)
        _C.judge(True)
        try:
            batch = self._batches.as_batch(arrays)
            self.leave(batch, max(coming + held, taken))
            self._step(batch)
        except MemoryError as refusal:
            return refusal.with_traceback(None)
        except Exception:       # it looks at numbers, which are not there, or there is room for it
            return None
        finally:
            _C.judge(False)
        return None
