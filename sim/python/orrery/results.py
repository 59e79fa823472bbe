# SPDX-License-Identifier: Apache-2.0
"""Reads a folder of results: Parquet files of points in order."""
from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from orrery.ask import Path
from orrery.batches import Run, needed
from orrery.errors import InputError
from orrery.table import Table

_NAME = re.compile(r"part-(\d+)-(\d+)-([0-9a-f]{16})\.parquet")
KEY = b"orrery"  # of a file's metadata


class Part(NamedTuple):
    """Points begin to end, counted from 0; names of files count from 1, as the column `point` does."""

    begin: int
    end: int
    hash: str
    file: pathlib.Path


def parts_in(folder: pathlib.Path) -> list[Part]:
    """Those that say something new, in the order of points."""
    found = []
    for file in folder.iterdir():
        if match := _NAME.fullmatch(file.name):
            found.append(Part(int(match[1]) - 1, int(match[2]), match[3], file))
    found.sort(key=lambda part: (part.begin, -part.end, part.file.name))
    parts: list[Part] = []
    for part in found:
        if not parts or part.end > parts[-1].end:
            parts.append(part)
    return parts


def gaps(parts: list[Part], count: int | None) -> Iterator[tuple[int, int | None]]:
    """What no part holds, in order; the last one has no end where nobody knows the count."""
    at = 0
    for part in parts:
        if part.begin > at:
            yield at, part.begin
        at = max(at, part.end)
    if count is None or at < count:
        yield at, count


def rows_in(parts: list[Part]) -> int:
    """Points that are there; one that two parts hold counts once."""
    at = rows = 0
    for part in parts:
        rows += part.end - max(at, part.begin)
        at = part.end
    return rows


def told(file: pathlib.Path) -> dict[str, Any]:
    """What a part says of itself."""
    pyarrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    try:
        metadata = parquet.read_schema(file).metadata or {}
        found: dict[str, Any] = json.loads(metadata[KEY])
    except (KeyError, ValueError, pyarrow.ArrowException) as error:
        raise InputError({"file": str(file), "found": f"no part of a sweep ({str(error).splitlines()[0]})",
                          "expected": "one; without the file its points are run again"}) from None
    return found


def fitted(table: Any, schema: Any) -> Any:
    """The table with the columns of an iterator's later rows."""
    pyarrow = needed("pyarrow")
    if table.schema.equals(schema):
        return table
    columns = [table[field.name].cast(field.type) if field.name in table.schema.names
               else pyarrow.nulls(len(table), field.type) for field in schema]
    return pyarrow.table(columns, schema=schema)


def read_run(folder: pathlib.Path) -> dict[str, Any]:
    """run.json of a folder that a sweep began."""
    file = folder / "run.json"
    try:
        head = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise InputError({"file": str(file), "found": str(error), "expected": "a folder that a sweep began"}) from None
    if not isinstance(head, dict) or head.get("form") != "parquet":
        found = str(head.get("form", "none")) if isinstance(head, dict) else "no object"
        raise InputError({"file": str(file), "path": "form", "found": found,
                          "expected": "parquet: a folder that a sweep began"})
    return {**head, **head["orrery"]}


def check_same(file: str, found: dict[str, Any], run: Run) -> None:
    """Results of two versions, catalogues or questions are not mixed."""
    for key in ("version", "catalogue", "command", "question"):
        if found.get(key) != getattr(run, key):
            raise InputError({"file": file, "path": key, "found": str(found.get(key)),
                              "expected": f"{getattr(run, key)}, which runs here; results of two are not mixed: "
                                          "take another folder"})


class Results:
    """What a folder holds, whether the run ended or not. Rows stand in the order of points."""

    def __init__(self, folder: Path, stopped_early: bool = False) -> None:
        self.folder = pathlib.Path(folder)
        self.stopped_early = stopped_early
        self.run = read_run(self.folder)
        self.points: int | None = self.run["points"]  # None: an iterator whose end was not reached
        self._parts = parts_in(self.folder)
        self._told: dict[pathlib.Path, dict[str, Any]] = {}

    def __len__(self) -> int:
        """Rows that are there."""
        return rows_in(self._parts)

    @property
    def missing(self) -> list[range]:
        """Numbers of points that are not there, counted from 1."""
        count = self.points if self.points is not None else max((part.end for part in self._parts), default=0)
        return [range(begin + 1, end + 1) for begin, end in gaps(self._parts, count) if end is not None]

    @property
    def errors(self) -> int:
        """Rows with an error."""
        return int(self._sum("errors"))

    @property
    def seconds(self) -> float:
        """What workers spent on it, of one thread."""
        return self._sum("seconds")

    def _sum(self, key: str) -> float:
        for part in self._parts:
            if part.file not in self._told:
                self._told[part.file] = told(part.file)
        return float(sum(self._told[part.file][key] for part in self._parts))

    @property
    def schema(self) -> Any:
        """Of all rows: an iterator's later rows may have more columns."""
        pyarrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
        if not self._parts:
            return pyarrow.schema([])
        return parquet.read_schema(self._parts[-1].file).remove_metadata()

    def __iter__(self) -> Iterator[Any]:
        """Tables of pyarrow, some ten thousand rows each."""
        return self._tables(None)

    def _tables(self, columns: list[str] | None) -> Iterator[Any]:
        pyarrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
        schema, at = self.schema, 0
        if columns is not None:
            schema = pyarrow.schema([schema.field(name) for name in columns])
        for part in self._parts:
            skip, at = max(0, at - part.begin), part.end
            with parquet.ParquetFile(part.file) as file:
                there = [name for name in schema.names if name in file.schema_arrow.names]
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group, columns=there).replace_schema_metadata(None)
                    dropped, skip = min(skip, len(table)), max(0, skip - len(table))
                    if dropped < len(table):
                        yield fitted(table.slice(dropped), schema)

    def table(self, columns: list[str] | None = None) -> Any:
        """All rows as one table of pyarrow."""
        pyarrow = needed("pyarrow")
        tables = list(self._tables(columns))
        return pyarrow.concat_tables(tables) if tables else self.schema.empty_table()

    def dataset(self) -> Any:
        """A dataset of pyarrow over the files: filters and columns are read without the rest."""
        for before, part in zip(self._parts, self._parts[1:]):
            if part.begin < before.end:
                raise InputError({"file": str(part.file), "found": "points that another part holds too",
                                  "expected": "parts of one run; table() and iteration take each point once"})
        files = [str(part.file) for part in self._parts]
        return needed("pyarrow.dataset").dataset(files, schema=self.schema, format="parquet")

    def to_pandas(self) -> Any:
        return self.table().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        pyarrow = needed("pyarrow")
        batches = (batch for table in self for batch in table.to_batches())
        reader = pyarrow.RecordBatchReader.from_batches(self.schema, batches)
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream

    def __repr__(self) -> str:
        of = "" if self.points in (None, len(self)) else f" of {self.points:,}"
        return f"<Results of {self.run['command']}: {len(self):,}{of} points in {self.folder}>"

    def _repr_html_(self) -> str:
        first = next(iter(self), None)
        told_of = f"<p>{escape(repr(self)[1:-1])}; {self.errors:,} with an error</p>"
        return told_of if first is None else told_of + Table(_Shown(first.slice(0, 20)))._repr_html_()


class _Shown:
    """A table of pyarrow where Table expects what a sweep gives."""

    stopped = False

    def __init__(self, table: Any) -> None:
        self._arrow = table
        self.table = self

    def names(self) -> list[str]:
        return list(self._arrow.schema.names)

    def values(self, column: int) -> list[Any]:
        values: list[Any] = self._arrow.column(column).to_pylist()
        return values

    def __len__(self) -> int:
        return len(self._arrow)

    def stream(self) -> object:
        return self._arrow.__arrow_c_stream__()
