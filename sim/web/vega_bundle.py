# SPDX-License-Identifier: Apache-2.0
"""Writes Vega, Vega-Lite and vega-embed, as vl-convert-python ships them, into one script for pages.

Usage: vega_bundle.py FILE
"""
import pathlib
import sys

import vl_convert

VEGA_LITE = "6.1"  # the grammar that sim/app/charts writes

# What a page finds on `window`; the expression interpreter comes with vega-embed (its option `ast`).
SNIPPET = "window.vegaEmbed = vegaEmbed;"


def main(file):
    script = vl_convert.javascript_bundle(SNIPPET, vl_version=VEGA_LITE)
    head = (f"/* vega {vl_convert.get_vega_version()}, vega-lite {VEGA_LITE}, vega-embed "
            f"{vl_convert.get_vega_embed_version()}: BSD-3-Clause, University of Washington "
            "Interactive Data Lab and others; from vl-convert-python */\n")
    # Within a page nothing may look like the end of its script.
    pathlib.Path(file).write_text(head + script.replace("</script", "<\\/script"), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
