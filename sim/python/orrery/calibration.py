# SPDX-License-Identifier: Apache-2.0
"""Curves of a device: fitted to measurements, as shipped, and held against one another."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from orrery.answers import CalibrateAnswer
from orrery.ask import Path, ask_line


class Calibration:
    """What a device's kernels, links and power were fitted to be."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    @classmethod
    def fit(cls, files: Path | Sequence[Path], *, device: str | None = None,
            based_on: str | None = None) -> Calibration:
        """Fits curves to lines that `orrery calibrate measure` wrote (a folder, *.jsonl), or to operator
        tables (then `device` names their accelerator). `based_on`: calibration whose curves stand where
        no table is given."""
        several = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        answer = ask_line(CalibrateAnswer, "calibrate", ["fit", *several], {"device": device, "based_on": based_on})
        return cls(answer.to_dict()["calibration"])

    @classmethod
    def shipped(cls, device: str) -> Calibration:
        """That of an accelerator of the catalogue, with its errors on shapes that no fit saw."""
        answer = ask_line(CalibrateAnswer, "calibrate", ["show"], {"device": device})
        return cls(answer.to_dict()["calibration"])

    @staticmethod
    def compare(measured: Path, against: Path | None = None) -> CalibrateAnswer:
        """Is this GPU healthy? A measured folder, a calibration file or a device against another (default:
        the calibration of its device); exit_code is 1 for a suspect GPU, `findings` say why."""
        words = [measured] if against is None else [measured, against]
        return ask_line(CalibrateAnswer, "calibrate", ["compare", *words], {})

    def to_dict(self) -> dict[str, Any]:
        return self._values

    def save(self, file: Path) -> None:
        """Writes a calibration file as `calibrate fit --output` does, beside and then in its place."""
        place = os.path.abspath(os.fspath(file))
        handle, beside = tempfile.mkstemp(dir=os.path.dirname(place), suffix=".json")
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(json.dumps(self._values, indent=2, ensure_ascii=False) + "\n")
        os.replace(beside, place)

    def __repr__(self) -> str:
        return f"<Calibration of {self._values.get('device', 'a device')}: {', '.join(self._values)}>"
