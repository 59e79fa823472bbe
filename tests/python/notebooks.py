# SPDX-License-Identifier: Apache-2.0
"""Runs the notebooks from a clean kernel and holds what they print to what is committed, or renews it.

Usage: PYTHONPATH=$PWD/build/python notebooks.py [--write] [NAME...]
"""
import os
import pathlib
import sys

import nbformat
from nbclient import NotebookClient

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "notebooks"


def run(file):
    """The notebook as it comes out, without what differs from run to run."""
    notebook = nbformat.read(file, as_version=4)
    # How many pieces a cell's prints come in depends on time.
    NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True,
                   resources={"metadata": {"path": str(FOLDER)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}}
    return notebook


def texts(notebook):
    """What each cell prints; a picture counts by its being there."""
    return [[output.get("text", "") or ("picture" if "image/svg+xml" in output.get("data", {})
                                        else output.get("data", {}).get("text/plain", ""))
             for output in cell.get("outputs", [])] for cell in notebook.cells]


def main():
    names = [word for word in sys.argv[1:] if word != "--write"]
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    failures = 0
    for file in sorted(FOLDER.glob("*.ipynb")):
        if names and not any(name in file.name for name in names):
            continue
        known, done = nbformat.read(file, as_version=4), run(file)
        same = texts(known) == texts(done)
        if "--write" in sys.argv:
            nbformat.write(done, file)
        elif not same:
            failures += 1
            for before, after in zip(texts(known), texts(done)):
                if before != after:
                    print(f"{file.name}: committed {before}\n  now {after}", file=sys.stderr)
        print(f"{file.name}: {'as committed' if same else 'renewed' if '--write' in sys.argv else 'differs'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
