# SPDX-License-Identifier: Apache-2.0
"""What is known, with sources: orrery.catalog.show("accelerator", "h100-sxm")."""
from __future__ import annotations

import builtins
from typing import Any

from orrery.answers import CatalogAnswer
from orrery.ask import Path, ask_line


def list(kind: str | None = None, *, search: str | None = None, device: str | None = None) -> builtins.list[Any]:
    """Entries of a kind ("model", "cluster", ...), or the kinds.

    search: entries whose names or title hold all these words. device: clusters of this accelerator.
    """
    words = ["list"] if kind is None else ["list", kind]
    answer = ask_line(CatalogAnswer, "catalog", words, {"search": search, "device": device}).to_dict()
    found: builtins.list[Any] = answer["kinds" if kind is None else "entries"]
    return found


def show(kind: str, name: str) -> dict[str, Any]:
    """An entry whole, with the evidence and source of each value."""
    entry: dict[str, Any] = ask_line(CatalogAnswer, "catalog", ["show", kind, name], {}).to_dict()["entry"]
    return entry


def recipe(stack: str, model: str, *, device: str | None = None, precision: str | None = None,
           task: str | None = None) -> dict[str, Any]:
    """What launch scripts of the stack's program set for a model or a family, and from where."""
    asked = {"recipe": model, "device": device, "precision": precision, "task": task}
    found: dict[str, Any] = ask_line(CatalogAnswer, "catalog", ["show", "stack", stack], asked).to_dict()["recipe"]
    return found


def check(file: Path | None = None) -> CatalogAnswer:
    """Whether a file of your own, or the whole catalogue, is in order: its `faults`."""
    return ask_line(CatalogAnswer, "catalog", ["check"] if file is None else ["check", file], {})
