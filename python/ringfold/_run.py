"""What all runs share: warnings, and progress."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._errors import spelled

Progress = Callable[[int, int | None], object] | bool | None
"""True for a bar, or a function of the bytes that were read and of all bytes, which is None where that isn't known."""


class Notice(UserWarning):
    """What the program would say on stderr: what was left out, guessed or estimated. ``quiet=True`` leaves most of them out."""


def heard(notices: list[str]) -> None:
    """Warns of notices, at the line that called ringfold."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ringfold":
        frame, level = frame.f_back, level + 1
    for notice in notices:
        warnings.warn(spelled(notice.removeprefix("notice: ")), Notice, stacklevel=level)


@contextmanager
def ticking(progress: Progress) -> Iterator[Callable[[int, int | None], object] | None]:
    """What is called as a run goes on."""
    if not progress:
        yield None
    elif progress is not True:
        yield progress
    else:
        bar = _tqdm() or _Line()
        try:
            yield bar.tick
        finally:
            bar.close()


class _Line:
    """A line on stderr."""

    def __init__(self) -> None:
        self.start, self.is_drawn = time.monotonic(), False

    def tick(self, done: int, total: int | None) -> None:
        elapsed = time.monotonic() - self.start
        if elapsed > 0.3:
            share = f"{100 * done // total:3d}%  " if total else ""
            print(f"\r{share}{done / 1e9:.2f} GB  {done / 1e9 / elapsed:.2f} GB/s ", end="", file=sys.stderr, flush=True)
            self.is_drawn = True

    def close(self) -> None:
        if self.is_drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _Bar:
    """A bar of tqdm."""

    def __init__(self, make: Callable[..., object]) -> None:
        self.bar = make(unit="B", unit_scale=True, unit_divisor=1024, delay=0.3)

    def tick(self, done: int, total: int | None) -> None:
        self.bar.total = total  # type: ignore[attr-defined]
        self.bar.update(done - self.bar.n)  # type: ignore[attr-defined]

    def close(self) -> None:
        self.bar.close()  # type: ignore[attr-defined]


def _tqdm() -> _Bar | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return _Bar(tqdm)
