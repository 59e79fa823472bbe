# SPDX-License-Identifier: Apache-2.0
"""Many scenarios at once: a frame or a grid in, a table in the same order out."""
from __future__ import annotations

import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from orrery import _core
from orrery.ask import check_run, on_main_thread, said
from orrery.errors import InputError, StoppedEarly
from orrery.table import Table


def sweep(questions: Any, *, threads: int = 0, seed: int | None = None,
          progress: bool | Callable[[int], None] | None = None, **settings: Any) -> Table:
    """Predicts every scenario as orrery.simulate does; a bad one is a row whose `error` says why.

    Parameters
    ----------
    questions : frame or grid
        A frame has a row for each scenario: a DataFrame of pandas or polars, a table of pyarrow, a
        relation of DuckDB, or a list of dicts. A grid is a dict of lists: all combinations, the last key
        varies fastest.
    threads : int
        Threads to use (0: all cores).
    progress : bool or function of the rows done
        None: a bar on a terminal and in a notebook, by tqdm where it is installed.
    **settings
        What holds for all rows that do not say otherwise: model="llama3-8b", ranges=False, ...

    Without ranges=True or a column of that name ranges are left out: they take five times as long.
    Ctrl-C keeps what is done: `stopped_early`, and an error in each row that was not run.
    """
    check_run("orrery.sweep()", seed, threads)
    rows = list(rows_of(questions))
    common = {"ranges": False, **said(settings)}
    merged = [{**common, **said(row)} for row in rows]
    asked = AskedColumns()
    for row in merged:
        asked.add(row)
    with Bar(progress, len(rows)) as bar:
        swept = _core.sweep([line_of(row) for row in merged], asked.columns(), seed, threads, on_main_thread(),
                            bar.update)
    if swept.stopped:
        warnings.warn("the sweep was stopped: rows that were not run say so", StoppedEarly, stacklevel=2)
    return Table(swept)


def rows_of(questions: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(questions, Mapping):
        lists = {key: list(value) if isinstance(value, (list, tuple, range)) or hasattr(value, "tolist")
                 else [value] for key, value in questions.items()}
        return (dict(zip(lists, values)) for values in itertools.product(*lists.values()))
    if hasattr(questions, "to_dicts"):  # polars
        return questions.to_dicts()  # type: ignore[no-any-return]
    if hasattr(questions, "to_pylist"):  # pyarrow
        return questions.to_pylist()  # type: ignore[no-any-return]
    if hasattr(questions, "to_dict") and hasattr(questions, "columns"):  # pandas
        return questions.to_dict("records")  # type: ignore[no-any-return]
    if hasattr(questions, "fetchall") and hasattr(questions, "columns"):  # DuckDB
        return (dict(zip(questions.columns, row)) for row in questions.fetchall())
    if isinstance(questions, Iterable) and not isinstance(questions, (str, bytes)):
        rows = list(questions)
        for number, row in enumerate(rows, 1):
            if not isinstance(row, Mapping):
                raise no_rows(f"{type(row).__name__} as row {number}")
        return rows
    raise no_rows(type(questions).__name__)


def no_rows(found: str) -> InputError:
    return InputError({"file": "orrery.sweep()", "found": found,
                       "expected": "a frame (pandas, polars, pyarrow, DuckDB, a list of dicts) or a dict of lists"})


def line_of(row: dict[str, Any]) -> str:
    try:
        return json.dumps(row, allow_nan=False)
    except (TypeError, ValueError):
        return json.dumps(json_values(row))


def json_values(values: Any) -> Any:
    """Values of a dict or a list, those that JSON does not have as text."""
    if isinstance(values, dict):
        return {key: value if _is_json(value) else repr(value) for key, value in values.items()}
    return [value if _is_json(value) else repr(value) for value in values]


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
        return True
    except (TypeError, ValueError):
        return False


class AskedColumns:
    """Settings that answers do not repeat, each with what all its values are."""

    def __init__(self) -> None:
        self._known = set(_core.answer_columns())
        self._kinds: dict[str, set[type]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        for key, value in row.items():
            if key not in self._known:
                self._kinds.setdefault(key, set()).add(type(value))

    def columns(self) -> list[tuple[str, str]]:
        return [(key, _kind_of(types)) for key, types in self._kinds.items()]


def _kind_of(types: set[type]) -> str:
    if types == {bool}:
        return "truth"
    if types == {int}:
        return "whole"
    return "number" if types <= {int, float} else "text"


class Bar:
    """tqdm's bar where it is installed, a plain line elsewhere, nothing where nobody looks."""

    def __init__(self, progress: bool | Callable[[int], None] | None, total: int | None) -> None:
        self.update: Callable[[int], None] | None = None
        self._bar: Any = None
        if callable(progress):
            self.update = progress
        elif progress or (progress is None and (sys.stderr.isatty() or "ipykernel" in sys.modules)):
            self._open(total)

    def _open(self, total: int | None) -> None:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            def line(done: int) -> None:
                of = "" if total is None else f" of {total:,}"
                sys.stderr.write(f"\rsweep: {done:,}{of} rows" + ("\n" if done == total else ""))
                sys.stderr.flush()

            self.update = line
            return
        bar = tqdm(total=total, unit="row", unit_scale=True)
        self._bar = bar
        self.update = lambda done: bar.update(done - bar.n)

    def tell(self, done: int) -> None:
        if self.update is not None:
            self.update(done)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
