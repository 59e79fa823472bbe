# SPDX-License-Identifier: Apache-2.0
"""Orrery: predicts training steps, served models and queues of jobs on AI clusters, and finds best layouts.

    import orrery
    step = orrery.simulate(model="llama3.1-405b", cluster="dgx-h100", gpus=1024, seq=8192,
                           global_batch=512, tp=8, pp=8, zero=1, recompute="selective")
    step.prediction.step_time_s, step.fits

Keywords are the flags of the command line with "_" in place of "-"; answers are what --json prints.
"""
from typing import TYPE_CHECKING, Any

from orrery import _core, catalog
from orrery.answers import (AdviseAnswer, CalibrateAnswer, CatalogAnswer, PlanAnswer, ScheduleAnswer,
                            ServeAnswer, SimulateAnswer, TopologyAnswer, ValidateAnswer)
from orrery.ask import from_json
from orrery.calibration import Calibration
from orrery.commands import advise, plan, schedule, serve, simulate, topology, validate
from orrery.errors import (DoesNotFit, InputError, MachineFailed, OrreryError, StoppedEarly)
from orrery.record import Answer, Record
from orrery.sweeps import sweep
from orrery.table import Table

if TYPE_CHECKING:
    from orrery import distributed

__version__ = _core.version()
__all__ = [
    "AdviseAnswer", "Answer", "CalibrateAnswer", "Calibration", "CatalogAnswer", "DoesNotFit",
    "InputError", "MachineFailed", "OrreryError", "PlanAnswer", "Record", "ScheduleAnswer",
    "ServeAnswer", "SimulateAnswer", "StoppedEarly", "Table", "TopologyAnswer", "ValidateAnswer", "__version__",
    "advise", "catalog", "distributed", "from_json", "plan", "schedule", "serve", "simulate", "sweep",
    "topology", "validate",
]


def __getattr__(name: str) -> Any:
    """orrery.distributed needs nothing before somebody asks for it."""
    if name == "distributed":
        import importlib

        return importlib.import_module("orrery.distributed")
    raise AttributeError(f"module 'orrery' has no attribute {name!r}")
