# SPDX-License-Identifier: Apache-2.0
"""Writes different questions for `orrery simulate --jsonl`, one a line, no two alike.

Usage: generate.py [COUNT [SEED]]. Models, clusters and layouts of the catalogue, drawn at random
among those that are valid; the same count and seed give the same lines.
"""

import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Whole hosts of eight accelerators on a scale-out network.
CLUSTERS = """dgx-a100 a100-efa dgx-h100 dgx-h100-sharp h100-roce h100-spectrum-x h100-efa dgx-h200
 h200-efa h800-roce dgx-h20 dgx-b200 b200-efa dgx-b300 mi300x-8 mi325x-8""".split()

MOST = 8192  # accelerators that the switches of each of them join


def read_models():
    """Models whose layers are all alike: any number of stages that divides them is valid."""
    models = []
    for path in sorted((ROOT / "workloads/catalog/models").glob("*.json")):
        model = json.loads(path.read_text())
        layers = model.get("layers", [])
        if len(layers) != 1 or layers[0].get("mixer", {}).get("kind") != "attention":
            continue
        if "heads" not in layers[0]["mixer"] or "window" in layers[0]["mixer"]:
            continue
        ffn = layers[0]["ffn"]
        if ffn["kind"] not in ("dense", "moe"):
            continue
        models.append({"name": path.stem, "layers": layers[0]["count"],
                       "kv_heads": layers[0]["mixer"].get("kv_heads", layers[0]["mixer"]["heads"]),
                       "heads": layers[0]["mixer"]["heads"], "width": ffn["width"],
                       "hidden": model["hidden"], "experts": ffn.get("experts", 0),
                       "context": model.get("positions") or model.get("max_context") or 2048})
    return models


def some(draw, values, fits):
    return draw.choice([v for v in values if fits(v)])


def layout(draw, model):
    """Sizes that divide what they split."""
    tp = some(draw, (1, 2, 4, 8), lambda n: model["kv_heads"] % n == 0 and
              model["width"] % (16 * n) == 0 and model["hidden"] % n == 0)
    pp = some(draw, (1, 2, 4, 8, 16), lambda n: model["layers"] % n == 0)
    cp = draw.choice((1, 1, 1, 2))
    dp = some(draw, (1, 2, 4, 8, 16, 32, 64, 128), lambda n: tp * pp * cp * n % 8 == 0)
    chosen = {"tp": tp, "pp": pp, "cp": cp, "micro_batch": draw.choice((1, 1, 2))}
    if pp > 1 and model["layers"] % (2 * pp) == 0 and draw.random() < 0.5:
        chosen["vpp"] = 2
    if model["experts"]:
        chosen["ep"] = some(draw, (1, 2, 4, 8, 16), lambda n: model["experts"] % n == 0 and
                            dp % n == 0)
    if draw.random() < 0.5:
        chosen["recompute"] = draw.choice(("none", "selective", "full"))
    return chosen, dp


def training(draw, model):
    chosen, dp = layout(draw, model)
    if chosen["tp"] * chosen["pp"] * chosen["cp"] * dp > MOST:
        raise IndexError
    rounds = chosen["micro_batch"] * chosen["pp"] * draw.choice((1, 2, 3, 4, 6, 8))
    return {"gpus": chosen["tp"] * chosen["pp"] * chosen["cp"] * dp,
            "seq": some(draw, (1024, 2048, 4096, 8192), lambda n: n <= model["context"]),
            "global_batch": dp * rounds, **chosen}


def inference(draw, model):
    tp = some(draw, (1, 2, 4, 8), lambda n: model["kv_heads"] % n == 0 and
              model["width"] % (16 * n) == 0)
    context = min(model["context"], 8192)
    if draw.random() < 0.5:
        job = {"phase": "prefill", "seq": draw.randrange(16, context + 1, 16)}
    else:
        job = {"phase": "decode", "context": draw.randrange(16, context, 16)}
    return {"gpus": 8, "tp": tp, "batch": draw.choice((1, 2, 4, 8, 16, 32, 64)), **job}


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    models, seen = read_models(), set()
    while len(seen) < count:
        model = draw.choice(models)
        kind = inference if draw.random() < 0.1 else training
        try:
            question = kind(draw, model)
        except IndexError:  # nothing divides, or too many
            continue
        line = json.dumps({"model": model["name"], "cluster": draw.choice(CLUSTERS), **question})
        if line not in seen:
            seen.add(line)
            print(line)


main()
