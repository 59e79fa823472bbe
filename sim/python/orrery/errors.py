# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, each by its own name."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orrery import _core

if TYPE_CHECKING:
    from orrery.record import Answer


class OrreryError(Exception):
    """Everything that Orrery raises."""


class InputError(OrreryError, ValueError):
    """A question that is no good: where it is wrong, what stands there, what is expected."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.file: str | None = error.get("file")
        # A file's path in it; of a keyword or a name its own.
        self.path: str | None = error.get("path") or error.get("file")
        self.found: str | None = error.get("found")
        self.expected: str | None = error.get("expected")
        self.nearest: str | None = error.get("nearest")
        super().__init__(sentence(error))


class MachineFailed(OrreryError, OSError):
    """Not the question's fault: a full disk, too little memory."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(sentence(error))


class DoesNotFit(OrreryError):
    """What was asked for cannot exist. `answer` says all that is known."""

    def __init__(self, why: str, answer: Answer | None = None, fits_from_gpus: int | None = None) -> None:
        self.why = why
        self.answer = answer
        self.fits_from_gpus = fits_from_gpus
        more = f"; it fits from {fits_from_gpus:,} accelerators" if fits_from_gpus else ""
        super().__init__((why or "it does not fit") + more)


class StoppedEarly(UserWarning):
    """Ctrl-C ended the work: the answer is what was known by then."""


def sentence(error: dict[str, Any]) -> str:
    """The error as the command line says it."""
    return _core.error_sentence(*(error.get(key) or "" for key in ("file", "path", "found", "expected", "nearest")))


def raised(error: dict[str, Any]) -> OrreryError:
    """The exception of an {"error": ...} answer."""
    kind = error.get("kind")
    if kind == "cannot_exist":
        return DoesNotFit(sentence(error))
    return MachineFailed(error) if kind == "machine_failed" else InputError(error)
