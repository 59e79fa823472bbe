# SPDX-License-Identifier: Apache-2.0
"""A table of typed columns that pandas, polars, pyarrow and DuckDB take without a copy."""
from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

_SHOWN_ROWS = 20


class Table:
    """Rows in the order of their questions. polars.DataFrame(table), pandas.DataFrame.from_arrow(table),
    pyarrow.table(table) and SQL of DuckDB read it through Arrow's C stream."""

    def __init__(self, swept: Any) -> None:
        self._swept = swept
        self._table = swept.table
        self._names: list[str] = self._table.names()

    @property
    def stopped_early(self) -> bool:
        """Whether Ctrl-C ended the sweep: rows from there on have an error that says so."""
        stopped: bool = self._swept.stopped
        return stopped

    @property
    def columns(self) -> list[str]:
        return list(self._names)

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        """A column: numbers as float64 with NaN where there is none, text and truths as objects."""
        if name not in self._names:
            raise KeyError(f"no column {name!r}: there are {', '.join(self._names)}")
        values = self._table.values(self._names.index(name))
        return values if isinstance(values, np.ndarray) else np.array(values, dtype=object)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._swept.stream()

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: self[name] for name in self._names}

    def to_pandas(self) -> Any:
        import pandas  # type: ignore[import-untyped,unused-ignore]

        if hasattr(pandas.DataFrame, "from_arrow"):
            return pandas.DataFrame.from_arrow(self)
        return pandas.DataFrame(self.to_dict())

    def __repr__(self) -> str:
        return f"<Table of {len(self):,} rows: {', '.join(self._names)}>"

    def _repr_html_(self) -> str:
        # Columns that say nothing, as those of errors where there are none, are left out.
        told = {name: self[name][:_SHOWN_ROWS] for name in self._names}
        told = {name: some for name, some in told.items() if any(_said(value) for value in some)}
        head = "".join(f"<th>{escape(name)}</th>" for name in told)
        rows = "".join("<tr>" + "".join(f"<td>{escape(_text(some[i]))}</td>" for some in told.values()) + "</tr>"
                       for i in range(min(len(self), _SHOWN_ROWS)))
        more = f"<p>{len(self):,} rows</p>" if len(self) > _SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _said(value: Any) -> bool:
    return value is not None and value == value and value != ""


def _text(value: Any) -> str:
    if not _said(value):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
