# SPDX-License-Identifier: Apache-2.0
"""Writes the package's answers.py (from the JSON Schemas) and commands.py (from the table of commands).

Usage: generate.py SCHEMA_FOLDER PACKAGE_FOLDER, where the package's extension lies already.
"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import sys

from generate_answers import answers_text
from generate_commands import commands_text


def interface_of(package):
    """The table of commands, told by the extension itself; the package around it is not there yet."""
    file = next(package.glob("_core.*.so"))
    loader = importlib.machinery.ExtensionFileLoader("_core", str(file))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_core", loader))
    loader.exec_module(module)
    return json.loads(module.interface())


def write(file, text):
    beside = file.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, file)


def main():
    schemas, package = map(pathlib.Path, sys.argv[1:3])
    write(package / "answers.py", answers_text(schemas))
    write(package / "commands.py", commands_text(interface_of(package)))


main()
