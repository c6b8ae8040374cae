"""Errors. All that one knows stands in its arguments, so that it can be pickled: a worker raises, another process catches."""

from __future__ import annotations

import copy
import functools
import re
import shlex
from typing import Any

from . import _ringfold


class Error(Exception):
    """What went wrong, in one line, and where.

    ``file`` is the file's name, ``bytes`` the first of its bytes that it concerns and the one after the last, from 0 (in a
    compressed file those of the text in it), ``line`` the number of the line, from 1, ``errno`` the kernel's number of the error.
    Each may be None.
    """

    def __init__(
        self,
        message: str,
        file: str | None = None,
        bytes: tuple[int, int] | None = None,
        line: int | None = None,
        errno: int | None = None,
    ) -> None:
        # Not by way of OSError, which would take the first two for errno and strerror.
        Exception.__init__(self, message, file, bytes, line, errno)
        self.message, self.file, self.bytes, self.line = message, file, bytes, line
        self.errno = errno

    def __str__(self) -> str:
        return self.message

    def on(self, host: str) -> Error:
        """The same error, which names a host."""
        made: Error = copy.copy(self)
        made.message = f"on {host}: {self.message}"
        made.args = (made.message, *self.args[1:])
        return made


class UsageError(Error, ValueError):
    """The question can't be understood, or contradicts itself."""


class DataError(Error, ValueError):
    """A record is malformed, or a partial is damaged."""


class IncompleteError(DataError):
    """Partials lack a part of what was to be read."""


class WrongPartsError(DataError):
    """Parts of a file with quoted newlines were read from a wrong byte on.

    ``parts`` has ``(i, n, begin)`` for each, which `Query.partial` takes to read it again: ``range=(i, n), begin=begin``.
    """

    parts: list[tuple[int, int, int | str]]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, {"parts": self.parts}


class FileError(Error, OSError):
    """The kernel refused to open, read or write."""

    def __new__(cls, *args: object) -> FileError:
        return OSError.__new__(cls)


class EngineError(Error, RuntimeError):
    """What was asked for isn't available on this machine."""


class InternalError(Error, RuntimeError):
    """A fault of the program."""


def raised(
    kind: str,
    message: str,
    file: str | None,
    bytes: tuple[int, int] | None,
    line: int | None,
    errno: int | None,
    parts: list[tuple[int, int, int | str]],
) -> Error:
    """The error of a kind. The extension calls it."""
    made: Error = globals()[kind](spelled(message), file, bytes, line, errno)
    if isinstance(made, WrongPartsError):
        made.parts = parts
    return made


_SHORT = {"-H": "header", "-a": "aggregate", "-d": "delimiter", "-j": "threads", "-k": "key", "-f": "format", "-o": "output"}
_FIELDS = {"key": "by", "aggregate": "agg", "as": "names", "async": "async_", "no-header": "header"}


def _field(flag: str) -> str:
    name = _SHORT.get(flag, flag.lstrip("-"))
    return _FIELDS.get(name, name.replace("-", "_"))


@functools.cache
def _valued() -> dict[str, bool]:
    """The names of flags, and whether they take a value."""
    return dict(_ringfold.flags("aggregate") + _ringfold.flags("merge"))


def spelled(text: str) -> str:
    """A line of the program with fields in the place of flags: "`-H` takes it" becomes "`header=True` takes it"."""
    is_valued = _valued()

    def of_code(found: re.Match[str]) -> str:
        try:
            words = shlex.split(found[1])
        except ValueError:
            return found[0]
        if not words or not words[0].startswith("-"):
            return found[0]
        fields = []
        while words:
            flag, _, value = words.pop(0).partition("=")
            if not flag.startswith("-"):
                return found[0]
            name = _SHORT.get(flag, flag.lstrip("-"))
            if name not in is_valued:
                # A value of the data.
                return found[0]
            if is_valued[name]:
                value = value or (words.pop(0) if words else "")
                fields.append(f"{_field(flag)}={value!r}")
            else:
                fields.append(f"{_field(flag)}={name != 'no-header'}")
        return "`" + ", ".join(fields) + "`"

    def of_any(found: re.Match[str]) -> str:
        return _field(found[0]) if found[1] is None else of_code(found)

    return re.sub(r"`([^`]*)`|(?<![\w'=-])(?:--[a-z][a-z-]+|-[Hadjk](?= ))", of_any, text)
