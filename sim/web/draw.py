# SPDX-License-Identifier: Apache-2.0
"""Draws charts: reads [{"name", "spec"}] on stdin, writes NAME.vl.json, NAME.svg and NAME.png.

Usage: draw.py FOLDER
"""
import json
import os
import pathlib
import sys

import vl_convert

VEGA_LITE = "6.1"  # the grammar that sim/app/charts writes
DOTS = 2  # of a PNG for each pixel of the chart


def put(file, content):
    """The file is there whole, or as it was."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_bytes(content)
    os.replace(beside, file)


def main(folder):
    for chart in json.load(sys.stdin):
        base, spec = pathlib.Path(folder) / chart["name"], chart["spec"]
        put(base.with_suffix(".vl.json"), (json.dumps(spec, indent=2) + "\n").encode())
        put(base.with_suffix(".svg"), vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE).encode())
        put(base.with_suffix(".png"), vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=DOTS))


if __name__ == "__main__":
    main(sys.argv[1])
