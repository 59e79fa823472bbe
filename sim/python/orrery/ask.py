# SPDX-License-Identifier: Apache-2.0
"""How a question in Python becomes JSON, and what comes back an answer."""
from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from orrery import _core, answers
from orrery.errors import InputError, StoppedEarly, raised
from orrery.record import Answer

Path = str | os.PathLike[str]
Name = str | Sequence[Any] | Mapping[str, Any]  # of an entry; several in a list; an entry itself
Count = int | str  # "4M" too
Value = str | float | Sequence[Any] | Mapping[str, Any]  # several in a list or a range: "1..64"
Settings = Path | Mapping[str, Any]
Progress = bool | Callable[[float, int], None] | None

A = TypeVar("A", bound=Answer)


def plain(value: Any) -> Any:
    """The value as JSON has it: paths as text, numbers of numpy as numbers, NaN as nothing said."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item") and callable(value.item):  # a scalar of numpy
        value = value.item()
    return None if isinstance(value, float) and value != value else value


def said(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Those that say something."""
    return {key: plain(value) for key, value in keywords.items() if value is not None}


def dumped(settings: Mapping[str, Any], place: str) -> str:
    try:
        return json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError({"file": place, "found": str(error), "expected": "values that JSON has"}) from None


def check_run(place: str, seed: int | None, threads: int) -> None:
    """As --seed and --threads are checked."""
    for key, value, most in (("seed", seed, 2**63 - 1), ("threads", threads, 4096)):
        if value is not None and (not isinstance(value, int) or not 0 <= value <= most):
            raise InputError({"file": place, "path": key, "found": repr(value),
                              "expected": f"a whole number from 0 to {most}"})


def on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def shown(progress: Progress, verb: str) -> Callable[[float, int], None] | None:
    """A line that is rewritten on a terminal, or the caller's own function."""
    if callable(progress):
        return progress
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return None

    def line(share: float, count: int) -> None:
        ended = share >= 1
        sys.stderr.write("\r\033[K" if ended else f"\r{verb}: {100 * share:3.0f}%, {count:,} done ")
        sys.stderr.flush()

    return line


def ask(kind: type[A], command: str, settings: Settings | None, keywords: Mapping[str, Any], *,
        seed: int | None = None, threads: int = 0, progress: Progress = False) -> A:
    """Asks one question. `settings`: a file of them or a mapping; keywords win over it."""
    place = f"orrery.{command}()"
    check_run(place, seed, threads)
    if settings is not None and not isinstance(settings, (Mapping, str, os.PathLike)):
        raise InputError({"file": place, "found": type(settings).__name__, "expected": "a file or a mapping of settings"})
    mapping = settings if isinstance(settings, Mapping) else {}
    file = os.fspath(settings) if isinstance(settings, (str, os.PathLike)) else ""
    asked = _core.answer(command, [file, dumped(said(mapping), place), dumped(said(keywords), place), place],
                         seed, threads, on_main_thread(), shown(progress, command))
    if asked.stopped:
        warnings.warn(f"{command} was stopped: this is what was known by then", StoppedEarly, stacklevel=3)
    return made(kind, asked)


def ask_line(kind: type[A], command: str, words: Sequence[Path], keywords: Mapping[str, Any]) -> A:
    """Asks a command that takes words and flags. A flag without a value is True."""
    flags = {"--" + key.removesuffix("_").replace("_", "-"): "" if value is True else str(plain(value))
             for key, value in keywords.items() if value is not None and value is not False}
    return made(kind, _core.answer_line(command, [os.fspath(word) for word in words], flags))


def made(kind: type[A], asked: Any) -> A:
    values = json.loads(asked.json)
    if "error" in values:
        raise raised(values["error"])
    return kind(values, asked.json, asked.html, asked.code)


def from_json(answer: str | Mapping[str, Any]) -> Answer:
    """The answer that --json printed, a line of --jsonl, or what to_dict() gave, as an object again."""
    try:
        values = dict(answer) if isinstance(answer, Mapping) else json.loads(answer)
    except ValueError as error:
        raise InputError({"file": "orrery.from_json()", "found": str(error), "expected": "JSON"}) from None
    if isinstance(values, dict) and isinstance(values.get("error"), dict):
        raise raised(values["error"])
    head = values.get("orrery") if isinstance(values, dict) else None
    kinds: dict[str, type[Answer]] = answers.KINDS
    if not isinstance(head, dict) or head.get("command") not in kinds:
        raise InputError({"file": "orrery.from_json()", "found": "no answer of Orrery",
                          "expected": 'JSON that --json printed: one with "orrery" and "question"'})
    text = answer if isinstance(answer, str) else json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    return kinds[head["command"]](values, text)
