# SPDX-License-Identifier: Apache-2.0
"""Answers as objects: each value is an attribute of the name that it has in the JSON."""
from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from orrery import _core
from orrery.errors import DoesNotFit, InputError, raised


class Record:
    """A part of an answer. `orrery.answers` says which attributes each has, with units."""

    # How members become records: a class, or a list or dict (of one item) of what its items become.
    _parts: ClassVar[Mapping[str, Any]] = {}
    # Members that an answer may leave out: None then.
    _optional: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    if not TYPE_CHECKING:  # the generated classes declare what there is

        def __getattr__(self, name: str) -> Any:
            key = name.removesuffix("_")
            if name.startswith("__") or name == "_values":
                raise AttributeError(name)
            if key in self._values:
                return _made(self._values[key], self._parts.get(key))
            if key in self._optional:
                return None
            raise AttributeError(f"{type(self).__name__} has no {name!r}: it has {', '.join(self._values)}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values, *self._optional})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={_short(value)}" for key, value in self._values.items())
        return f"{type(self).__name__}({inside})"

    def to_dict(self) -> dict[str, Any]:
        """The JSON that it was made of."""
        return self._values


class Answer(Record):
    """A whole answer. `json` is the text that the command line prints with --json."""

    def __init__(self, values: dict[str, Any], json: str, html: str = "", code: int = 0) -> None:
        super().__init__(values)
        self.json = json
        self.exit_code = code
        self._html = html

    @property
    def fits(self) -> bool | None:
        """Whether what was asked for fits and runs; None where nothing was judged."""
        verdict = self._values["verdict"]
        if verdict["runs"] is False:
            return False
        fits: bool | None = verdict["fits"]
        return fits

    def require(self) -> None:
        """Raises DoesNotFit where what was asked for cannot exist."""
        if self.fits is False:
            raise DoesNotFit(self._values["verdict"]["why"], self, self._values.get("fits_from_gpus"))

    def charts(self) -> dict[str, dict[str, Any]]:
        """Vega-Lite specifications by name, in the order in which they are read; each holds its data."""
        charts = json_module.loads(_core.charts(self.json).json)
        if isinstance(charts, dict):
            raise raised(charts["error"])
        return {chart["name"]: chart["spec"] for chart in charts}

    def chart(self, name: str | None = None) -> Any:
        """One of charts(), the first by default, as a chart of Altair: `pip install orrery[plots]`."""
        specs = self.charts()
        if not specs or (name is not None and name not in specs):
            raise InputError({"file": "chart()", "found": f'"{name}"' if name else "no chart of this answer",
                              "expected": ", ".join(specs) or "an answer of simulate, advise, plan, serve, "
                                                              "schedule or validate"})
        import altair  # type: ignore[import-untyped,unused-ignore]

        return altair.Chart.from_dict(specs[name or next(iter(specs))])

    def __repr__(self) -> str:
        verdict = self._values["verdict"]
        told = "" if verdict["fits"] is None else f", fits={self.fits}"
        return f"<{type(self).__name__}{told}: {', '.join(self._values)}>"

    def _repr_html_(self) -> str:
        return self._html or f"<pre>{escape(self.json)}</pre>"


def _made(value: Any, part: Any) -> Any:
    if value is None or part is None:
        return value
    if isinstance(part, list):
        return [_made(item, part[0]) for item in value]
    if isinstance(part, dict):
        return {key: _made(item, part["*"]) for key, item in value.items()}
    return part(value)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "{...}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)} items]" if value else "[]"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
