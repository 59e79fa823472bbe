# SPDX-License-Identifier: Apache-2.0
"""Makes a function of each command: a keyword for each flag, typed and explained."""
import keyword
import textwrap

ASKED_BY_SETTINGS = ["simulate", "advise", "plan", "serve", "schedule"]
ASKED_BY_LINE = ["validate", "topology"]
# What only the command line has: forms of output, files of rows, tables that people read.
LEFT_OUT = {"--jsonl", "--csv", "--markdown", "--seed", "--no-sequence-parallel", "--requests-out", "--jobs-out",
            "--rows", "--details", "--regions", "--advise", "--html", "--plots", "--gates", "--write-gates", "--fit",
            "--results", "--shard", "--slurm-array", "--kubernetes-job", "--shards", "--slurm", "--kubernetes",
            "--kubernetes-as", "--commands", "--events-out"}
LEFT_OUT_OF = {"serve": {"--trace-out"}, "schedule": {"--trace-out", "--trace-from", "--trace-to"}}
# What stands after a flag, and the type of its keyword.
TYPES = {"": "bool", "N": "Count", "X": "float", "X|VALUE": "float | str", "true|false": "bool", "A,B": "str | Sequence[Any]",
         "FILE": "Path", "DIR": "Path", "JSON": "Any", "FILE|JSON": "Settings", "VALUES": "Value",
         "NAME": "Name"}
# Flags whose value may be a list.
SEVERAL = {"serve": {"NAME", "N", "X"}, "schedule": {"NAME", "N", "X", "X|VALUE"}}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The commands as functions, generated from the table of commands: a keyword is a flag."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orrery.answers import (AdviseAnswer, PlanAnswer, ScheduleAnswer, ServeAnswer, SimulateAnswer,
                            TopologyAnswer, ValidateAnswer)
from orrery.ask import Count, Name, Path, Progress, Settings, Value, ask, ask_line
'''


def key_of(flag):
    key = flag["name"][2:].replace("-", "_")
    return key + "_" if keyword.iskeyword(key) else key


def flags_of(command):
    left = LEFT_OUT | LEFT_OUT_OF.get(command["name"], set())
    return [flag for flag in command["flags"] if flag["name"] not in left]


def type_of(flag, command):
    if flag["value"] in SEVERAL.get(command["name"], ()):
        return "Value"
    return TYPES.get(flag["value"], "str")


def optional(flag, command):
    kind = type_of(flag, command)
    return kind if kind == "Any" else kind + " | None"


def wrapped(text, indent):
    # A backslash and quotes are no marks of the docstring's own.
    plain = text.replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.fill(plain, 110, initial_indent=indent, subsequent_indent=indent)


def documented(command, flags, first):
    lines = [f'    """{command["summary"][0].upper()}{command["summary"][1:]}.', "", "    Parameters",
             "    ----------"]
    lines += first
    for flag in flags:
        lines += [f"    {key_of(flag)} : {type_of(flag, command)}", wrapped(flag["help"], "        ")]
    return lines + ['    """']


def keywords_of(flags):
    return "{" + ", ".join(f'"{key_of(flag).removesuffix("_")}": {key_of(flag)}' for flag in flags) + "}"


def by_settings(command):
    name, flags = command["name"], flags_of(command)
    answer = name.capitalize() + "Answer"
    seeded = any(flag["name"] == "--seed" for flag in command["flags"])
    lines = [f"def {name}(", "    settings: Settings | None = None, /, *,"]
    lines += [f"    {key_of(flag)}: {optional(flag, command)} = None," for flag in flags]
    if seeded:
        lines.append("    seed: int | None = None,")
    lines += ["    threads: int = 0,", "    progress: Progress = None,", f") -> {answer}:"]
    first = ["    settings : file or mapping", wrapped(command["arguments"][0]["help"], "        ")]
    lines += documented(command, flags, first)
    seed = "seed=seed, " if seeded else ""
    lines += [f"    answer = ask({answer}, {name!r}, settings,",
              textwrap.indent(textwrap.fill(keywords_of(flags), 100), " " * 17).rstrip() + ",",
              f"                 {seed}threads=threads, progress=progress)"]
    if name == "advise":
        lines.append("    answer.require()")
    lines.append("    return answer")
    return "\n".join(lines)


def by_line(command):
    name, flags = command["name"], flags_of(command)
    answer = name.capitalize() + "Answer"
    many = name == "validate"
    word = "files" if many else "name"
    lines = [f"def {name}(", f"    {'*files: Path' if many else 'name: Path, /, *'},"]
    lines += [f"    {key_of(flag)}: {optional(flag, command)} = None," for flag in flags]
    lines += ["    threads: int | None = None,"] if many else []
    lines += [f") -> {answer}:"]
    first = [f"    {'*' if many else ''}{word} : text or path", wrapped(command["arguments"][0]["help"], "        ")]
    lines += documented(command, flags, first)
    keywords = keywords_of(flags)[:-1] + (', "threads": threads}' if many else "}")
    words = "files" if many else "[name]"
    lines += [f"    return ask_line({answer}, {name!r}, {words}, {keywords})"]
    return "\n".join(lines)


def commands_text(interface):
    known = {command["name"]: command for command in interface["commands"]}
    functions = [by_settings(known[name]) for name in ASKED_BY_SETTINGS]
    functions += [by_line(known[name]) for name in ASKED_BY_LINE]
    return HEAD + "".join(f"\n\n{text}\n" for text in functions)
