# SPDX-License-Identifier: Apache-2.0
"""Points of a sweep by their numbers, without holding them all: grids, frames, iterators, questions of plan."""
from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orrery import _core
from orrery.ask import said
from orrery.errors import InputError, raised
from orrery.sweeps import AskedColumns, json_values, line_of, no_rows, rows_of

Row = dict[str, Any]
Columns = tuple[tuple[str, str], ...]
_AT_ONCE = 8192  # rows that are looked at together
_LARGEST_SENT = 64 * 1024  # bytes of a grid that goes to workers with each batch


class Points:
    """Points 0, 1, ... of a run. `count` is None where nobody knows before the end."""

    command = "simulate"

    def __init__(self, common: Row) -> None:
        self.common = common
        self.count: int | None = None
        self.asked: Any = None  # what run.json says of them
        self.columns: Columns = ()  # settings that answers do not repeat

    def rows(self, begin: int, end: int) -> list[Row] | None:
        """Questions of these points, fewer at the end. None: workers make them of `shared()`."""
        raise NotImplementedError

    def shared(self) -> Any:
        return None

    def one(self, point: int) -> Row:
        """A point's question, where workers make it."""
        return {}

    def identity(self) -> Any:
        """All that tells this run from another; rows of frames are told apart part by part."""
        return self.asked

    def failed_row(self, point: int, rows: list[Row] | None, columns: Columns) -> Any:
        """The table of a point that nobody could run, before an error is put into it."""
        row = self.one(point) if rows is None else rows[0]
        # A key that nobody knows: the point is refused before anything is computed.
        line = line_of({**self.common, **said(row), "not run": True})
        return _core.sweep([line], list(columns), None, 1, False, None, point + 1)


class Grid(Points):
    """All combinations of a dict of lists; the last key varies fastest."""

    def __init__(self, grid: Mapping[str, Any], common: Row) -> None:
        super().__init__(common)
        self._lists = {key: _listed(value) for key, value in grid.items()}
        self.count = math.prod(len(values) for values in self._lists.values())
        self.columns = self._asked_columns() if self.count else ()
        # numpy's values and the like are told by what JSON makes of them
        self.asked = {key: json_values(list(values)) for key, values in self._lists.items()}
        self._small = _pickled_size(self._lists) <= _LARGEST_SENT

    def _asked_columns(self) -> Columns:
        """In the order in which rows name them first: a None says nothing in its rows."""
        first: list[tuple[int, int, str]] = []
        stride = self.count or 0
        for place, (key, values) in enumerate(self._lists.items()):
            stride //= len(values)
            at = next((i for i, value in enumerate(values) if value is not None), None)
            if at is not None:
                first.append((at * stride, place, key))
        kinds = AskedColumns()
        kinds.add(self.common)
        for _, _, key in sorted(first):
            for value in self._lists[key]:
                kinds.add(said({key: value}))
        return tuple(kinds.columns())

    def rows(self, begin: int, end: int) -> list[Row] | None:
        if self._small:
            return None
        return list(combinations(self._lists, begin, min(end, self.count or 0)))

    def shared(self) -> Any:
        return self._lists if self._small else None

    def one(self, point: int) -> Row:
        return next(combinations(self._lists, point, point + 1))


class Frame(Points):
    """A frame that is there whole; rows are made of it some at a time."""

    def __init__(self, frame: Any, common: Row) -> None:
        super().__init__(common)
        self._frame = frame
        self.count = len(frame)
        self.asked = "rows"
        known = set(_core.answer_columns())
        unknown = [name for name in _names(frame) if name not in known]
        kinds = AskedColumns()
        kinds.add(common)
        if isinstance(frame, list) or unknown:
            looked_at = _only(frame, unknown)
            for begin in range(0, self.count, _AT_ONCE):
                for row in _slice(looked_at, begin, begin + _AT_ONCE):
                    kinds.add(said(row))
        self.columns = tuple(kinds.columns()) if self.count else ()

    def rows(self, begin: int, end: int) -> list[Row]:
        return _slice(self._frame, begin, end)


class Stream(Points):
    """An iterator's rows, each taken once and forgotten; columns are those of the rows so far."""

    def __init__(self, rows: Iterator[Any], common: Row) -> None:
        super().__init__(common)
        self._rows = rows
        self._at = 0
        self._kinds = AskedColumns()
        self._kinds.add(common)
        self.asked = "rows"

    def rows(self, begin: int, end: int) -> list[Row]:
        assert begin == self._at, "an iterator's rows are taken in order"
        taken = list(itertools.islice(self._rows, end - begin))
        for row in taken:
            self._at += 1
            if not isinstance(row, Mapping):
                raise no_rows(f"{type(row).__name__} as row {self._at}")
            self._kinds.add(said(row))
        self._check(tuple(self._kinds.columns()))
        if len(taken) < end - begin:
            self.count = self._at
        return taken

    def _check(self, columns: Columns) -> None:
        """A column's kind is in files already: whole numbers may become numbers, nothing else changes."""
        now = dict(columns)
        for key, kind in self.columns:
            if now[key] != kind and (kind, now[key]) != ("whole", "number"):
                raise InputError({"file": f"row {self._at} or before", "path": key, "found": "a value of another kind",
                                  "expected": f"{_KINDS[kind]}, as in the rows before; or a list or a frame, which is "
                                              "looked at whole first"})
        self.columns = columns


_KINDS = {"truth": "True or False", "whole": "a number", "number": "a number", "text": "a text"}


class PlanPoints(Points):
    """What the lists and ranges of a capacity question make."""

    command = "plan"

    def __init__(self, question: Row) -> None:
        super().__init__({})
        self._text = line_of(question)
        told = json.loads(_core.plan_points(self._text))
        if "error" in told:
            raise raised(told["error"])
        self.count = int(told["points"])
        self.asked = question

    def rows(self, begin: int, end: int) -> None:
        return None

    def shared(self) -> Any:
        return self._text

    def failed_row(self, point: int, rows: list[Row] | None, columns: Columns) -> Any:
        return _core.sweep_plan(self._text, 0, 0, None, 1, False)


def points_of(questions: Any, settings: Row) -> Points:
    """What orrery.sweep() takes, and iterators."""
    common = json_values({"ranges": False, **said(settings)})
    if isinstance(questions, Mapping):
        return Grid(questions, common)
    sliced = any(hasattr(questions, name) for name in ("to_dicts", "to_pylist"))
    if sliced or (hasattr(questions, "to_dict") and hasattr(questions, "columns")):
        return Frame(questions, common)
    if hasattr(questions, "fetchall") and hasattr(questions, "columns"):  # DuckDB
        return Frame(list(rows_of(questions)), common)
    if isinstance(questions, Sequence) and not isinstance(questions, (str, bytes)):
        return Frame(list(rows_of(questions)), common)
    if isinstance(questions, Iterator):
        return Stream(questions, common)
    return Frame(list(rows_of(questions)), common)


def _listed(value: Any) -> Sequence[Any]:
    if hasattr(value, "tolist"):
        found = value.tolist()
        return found if isinstance(found, list) else [found]
    if isinstance(value, range):
        return value
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _names(frame: Any) -> list[str]:
    """Of a frame's columns; what is known by its name needs no look."""
    if isinstance(frame, list):
        return []
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def _only(frame: Any, names: list[str]) -> Any:
    if isinstance(frame, list):
        return frame
    return frame.select(names) if hasattr(frame, "select") else frame[names]


def _slice(frame: Any, begin: int, end: int) -> list[Row]:
    if isinstance(frame, list):
        return frame[begin:end]
    if hasattr(frame, "iloc"):
        return list(rows_of(frame.iloc[begin:end]))  # type: ignore[arg-type]
    return list(rows_of(frame.slice(begin, end - begin)))  # type: ignore[arg-type]


def combinations(lists: Mapping[str, Sequence[Any]], begin: int, end: int) -> Iterator[Row]:
    """Numbers begin to end of the product of lists, as itertools.product orders it."""
    keys = list(lists)
    for number in range(begin, end):
        values = []
        for key in reversed(keys):
            number, at = divmod(number, len(lists[key]))
            values.append(lists[key][at])
        yield dict(zip(keys, reversed(values)))


def packed(rows: list[Row]) -> bytes:
    """Rows as bytes; a value that does not travel goes as the text that a sweep makes of it."""
    try:
        return pickle.dumps(rows, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - a value's own __reduce__ may raise anything
        return pickle.dumps([json_values(said(row)) for row in rows], pickle.HIGHEST_PROTOCOL)


def _pickled_size(value: Any) -> int:
    try:
        return len(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    except Exception:  # noqa: BLE001
        return _LARGEST_SENT + 1


def lines_of(common: Row, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Each question whole, as JSON."""
    return [line_of({**common, **said(row)}) for row in rows]


def lines_hash(lines: Iterable[str], begin: int) -> int:
    """Tells rows of questions apart. Hashes of ranges that follow one another add up, modulo 2**64."""
    total = 0
    for number, line in enumerate(lines, begin):
        digest = hashlib.blake2b(f"{number} {line}".encode(), digest_size=8).digest()
        total += int.from_bytes(digest, "little")
    return total % 2**64


def files_in(value: Any) -> Iterator[tuple[str, str]]:
    """Files that values name, each with a hash of its bytes."""
    if isinstance(value, str):
        if len(value) < 4096 and "\0" not in value and os.path.isfile(value):
            with open(value, "rb") as file:
                yield value, hashlib.file_digest(file, "blake2b").hexdigest()[:16]
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from files_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from files_in(item)
