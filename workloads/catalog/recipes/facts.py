#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what launch programs set for a model into a file that predictions read.

Usage: facts.py [--check]. It reads this folder's tables and writes nemo.json beside them; --check
writes nothing and fails where the file is not what the tables say. ../README.md, "Recipes", says
what is taken of several recipes and what of models that no script names.
"""
import collections
import json
import pathlib
import re
import sys

import generate

HERE = pathlib.Path(__file__).resolve().parent
STACK = "nemo"
# Machines without scripts of their own are set as those that share their accelerators' programs.
ALSO = {"h100-sxm": ["h200-sxm", "h800-sxm", "gh200"], "rubin": ["rubin-ultra"]}
PARTS_OF_DISPATCHER = {"all-to-all": "all-to-all", "deepep": "deepep", "hybridep": "hybrid-ep"}
# Of several recipes for one model, device and precision the first counts: of the program that the
# releases are named after, for the newest and largest job.
PROGRAMS = ["Megatron-Bridge", "DGX Cloud / Megatron-Bridge", "DGX Cloud / NeMo 2",
            "DGX Cloud / NeMo 1 (hydra)", "NeMo"]
VARIANTS = ["", "v3", "v2", "v1", "large_scale", "gbs15360"]
LEAST_FAMILIES = 3  # a majority needs as many


def release_key(release):
    return [int(part) for part in release.split(".")]


def launch(recipe, moe):
    """The nearest of the ways that a stack knows. A graph of the router alone leaves all else to the
    host, as the stack's graphs do where attention is run again in part; graphs of whole layers hold
    experts only where their tokens are padded to a capacity."""
    graphs = recipe["graphs"]
    if graphs == "full_iteration" or graphs == "layers" and moe and is_padded(recipe):
        return "full-graph"
    refused = {"core_attn", "mla_up_proj"} & set(recipe["recompute"].split(","))
    if graphs in ("", "none") or graphs.startswith("moe_router") and not refused:
        return "eager"
    return "scoped-graph"


def is_padded(recipe):
    return recipe["pad_to_capacity"] == "on"


def recompute(text):
    """None where the setting has no name here: some layers of a stage."""
    if text in ("none", "selective", "full"):
        return text
    modules = text.split(",") if text else []
    return modules if modules and set(modules) <= set(generate.RECOMPUTE_ORDER) else None


# As many layers in each stage but the last, which has the loss and what is left.
REST_LAST = re.compile(r"Et(\*\d+)?\|\(t(\*\d+)?\|\)\*\d+(t(\*\d+)?)?m?L")


def facts_of(recipe, moe):
    """The parts and settings of a stack that a recipe's settings are, each with a name to vote on."""
    facts = {}
    way = launch(recipe, moe)
    if moe:
        facts["launch"] = {"use": "eager"}
        if recipe["dispatcher"] in PARTS_OF_DISPATCHER:
            facts["dispatcher"] = {"use": PARTS_OF_DISPATCHER[recipe["dispatcher"]]}
        if way == "scoped-graph":
            facts["launch"] = {"use": "scoped-graphs"}
        if recipe["graphs"] == "full_iteration":
            facts["graph"] = {"use": "full-graph"}
            if recipe["fused_expert_mlp"] != "on":
                facts["fused"] = {"set": {"fused_expert_mlp": False}}
        elif way == "full-graph":
            facts["graph"] = {"set": {"launch": way}}
        if recipe["expert_overlap"] == "on":
            facts["exchange"] = {"use": "overlapped-exchange"}
        if is_padded(recipe):
            facts["capacity"] = {"use": "token-drop"}
    else:
        facts["launch"] = {"set": {"launch": way}}
    if recipe["tp"] not in ("", "1") and recipe["tensor_overlap"]:
        facts["tensor"] = {"use": "userbuffers" if recipe["tensor_overlap"] == "on"
                           else "no-userbuffers"}
    if recipe["nccl_buffers"] == "on":
        facts["buffers"] = {"use": "registered-buffers"}
    if recipe["fp8_attention"] == "on":
        facts["attention"] = {"set": {"attention_format": "fp8"}}
    if recipe["overlap_parameters"] == "off" and recipe["overlap_gradients"] == "on":
        facts["parameters"] = {"set": {"parameter_overlap": False}}
    again = recompute(recipe["recompute"])
    if again is not None and moe:
        facts["recompute"] = {"set": {"default_recompute": again, "recompute_known": True}}
    for kind in ("attention_dropout", "hidden_dropout"):
        if recipe[kind] not in ("", "0"):
            facts[kind] = {"set": {f"default_{kind}": float(recipe[kind])}}
    if recipe["mtp_layers"] not in ("", "0"):
        facts["mtp"] = {"set": {"default_mtp": True}}
    if recipe["precision_aware_optimizer"] == "on" and recipe["moment_format"] == "bf16":
        facts["optimizer"] = {"set": {"default_optimizer": "adam-bf16-moments",
                                      "master_remainders": True}}
    if recipe["context_exchange"] == "a2a" and recipe["cp"] not in ("", "1"):
        facts["context"] = {"set": {"default_context": "all-to-all"}}
    if REST_LAST.fullmatch(recipe["stages"]):
        facts["partition"] = {"set": {"partition": "rest-last"}}
    elif recipe["loss_in_split"] == "on":
        facts["partition"] = {"set": {"partition": "head-as-layer"}}
    return facts


def text_of(fact):
    return json.dumps(fact, sort_keys=True)


def joined(facts):
    """Facts in the order in which they were named, as one condition's parts and settings."""
    block = {"use": [], "set": {}}
    for fact in facts.values():
        if "use" in fact:
            block["use"].append(fact["use"])
        block["set"].update(fact.get("set", {}))
    return {key: value for key, value in block.items() if value}


class Recipes:
    """The recipes of the stack, the one that counts first."""

    def __init__(self):
        sources = {row["id"]: row for row in generate.read(HERE / "sources.csv") if row["stack"] == STACK}
        settings = {row["id"]: row for row in generate.read(HERE / "settings.csv")}
        self.models = {row["model"]: row for row in generate.read(HERE / "models.csv")}
        self.by_release = collections.defaultdict(list)
        for row in generate.read(HERE / "recipes.csv"):
            source = sources.get(row["source"])
            if source is None or row["variant"] not in VARIANTS:
                continue
            recipe = settings[row["settings"]] | row
            recipe["rank"] = (PROGRAMS.index(source["program"]), VARIANTS.index(row["variant"]))
            recipe["date"] = source["date"]
            for release in source["releases"].split(";"):
                self.by_release[release].append(recipe)
        self.releases = sorted(self.by_release, key=release_key)

    def is_moe(self, model):
        return self.models[model]["moe"] == "1"

    def first_of(self, release, task):
        """{(model, device, precision): facts} of the recipes that count first."""
        groups = collections.defaultdict(list)
        for recipe in self.by_release[release]:
            if recipe["task"] == task:
                groups[recipe["model"], recipe["device"], recipe["precision"]].append(recipe)
        for group in groups.values():
            group.sort(key=lambda r: r["date"], reverse=True)
            group.sort(key=lambda r: r["rank"])
        return {key: facts_of(group[0], self.is_moe(key[0]))
                for key, group in groups.items()}


def condensed(found):
    """[(devices, precisions, facts)] from {(device, precision): facts}."""
    precisions = collections.defaultdict(list)
    for (device, precision), facts in sorted(found.items()):
        precisions[device, text_of(joined(facts))].append(precision)
    devices = collections.defaultdict(list)
    for (device, text), names in precisions.items():
        devices[tuple(names), text].append(device)
    return [(names, list(of), json.loads(text)) for (of, text), names in devices.items()]


def with_likes(devices):
    return [name for device in devices for name in [device, *ALSO.get(device, [])]]


def with_task(task):
    return {} if task == "pretrain" else {"task": task}


def of_models(recipes, task):
    """{model: facts from release to release}, where they are not those of the release before."""
    known, blocks = {}, collections.defaultdict(list)
    for release in recipes.releases:
        now = collections.defaultdict(dict)
        for (model, *where), facts in recipes.first_of(release, task).items():
            if known.get((model, *where)) != facts:
                now[model][tuple(where)] = facts
            known[model, *where] = facts
        for model, found in now.items():
            for devices, precisions, block in condensed(found):
                blocks[model].append({"release": release, **with_task(task),
                                      "device": with_likes(devices), "precision": precisions,
                                      **block})
    return blocks


def majority(recipes, moe, without=None):
    """What most families set whose recipes a release renews. Each has one vote; `without`: that one
    has none."""
    last, blocks = {}, []
    for release in recipes.releases:
        votes = collections.defaultdict(lambda: collections.defaultdict(list))
        for (model, *where), facts in recipes.first_of(release, "pretrain").items():
            family = recipes.models[model]["family"]
            if recipes.is_moe(model) == moe:
                votes[tuple(where)][family].append(facts)
        found = {}
        for where, families in votes.items():
            if len(families) >= LEAST_FAMILIES:
                facts = elected([own for family, own in families.items() if family != without])
                if last.get(where) != facts:
                    found[where] = last[where] = facts
        for devices, precisions, block in condensed(found):
            blocks.append({"release": release, "device": with_likes(devices),
                           "precision": precisions, **block})
    return blocks


# What follows from a model's size, memory or modules is not carried to others.
OF_A_MODEL = {"recompute", "context", "attention_dropout", "hidden_dropout", "mtp", "optimizer",
              "partition", "parameters", "attention", "fused"}


# A recipe that leaves them open does not vote.
MAY_BE_BLANK = {"dispatcher", "tensor"}

GRAPHS = ("launch", "graph")  # names of facts that one vote decides


def graphs_of(facts):
    """How much of a step a program's graphs hold: nothing (0), parts of layers (1), all (2)."""
    ways = [facts.get(name, {}) for name in GRAPHS]
    words = {way.get("use") or way.get("set", {}).get("launch") for way in ways}
    return 2 if "full-graph" in words else 1 if words & {"scoped-graph", "scoped-graphs"} else 0


def middle(ordered):
    return ordered[(len(ordered) - 1) // 2]


def elected_graphs(families):
    """The middle of the families, and how most of those that have as much write it."""
    chosen = middle(sorted(middle(sorted(map(graphs_of, family))) for family in families))
    ways = collections.Counter(
        text_of({name: facts[name] for name in GRAPHS if name in facts})
        for family in families for facts in family if graphs_of(facts) == chosen)
    return json.loads(max(sorted(ways.items()), key=lambda item: item[1])[0])


def elected(families):
    names = [name for family in families for facts in family for name in facts]
    graphs = elected_graphs(families)
    chosen = {name: graphs[name] for name in graphs if name == "launch"}
    for name in dict.fromkeys(names):
        if name in OF_A_MODEL or name in GRAPHS:
            continue
        votes = collections.Counter()
        for family in families:
            own = collections.Counter(text_of(facts.get(name, {})) for facts in family
                                      if name in facts or name not in MAY_BE_BLANK)
            if own:
                votes[own.most_common(1)[0][0]] += 1
        winner, _ = max(sorted(votes.items()), key=lambda item: (item[1], item[0] == "{}"))
        if json.loads(winner):
            chosen[name] = json.loads(winner)
    return chosen | graphs


def without_each(recipes):
    """{family: {kind: what is elected without its vote}}, where that is something else."""
    entries = {}
    for moe, kind in ((True, "experts"), (False, "dense")):
        of_all = majority(recipes, moe)
        for family in dict.fromkeys(row["family"] for row in recipes.models.values()):
            blocks = majority(recipes, moe, family)
            if blocks != of_all:
                entries.setdefault(family, {})[kind] = blocks
    return entries


def lines_of(blocks):
    return ",\n".join(json.dumps(block) for block in blocks)


def text():
    recipes = Recipes()
    tasks = [of_models(recipes, task) for task in ("pretrain", "sft", "lora")]
    entries = []
    for model, row in recipes.models.items():
        blocks = [block for task in tasks for block in task.get(model, [])]
        if blocks:
            blocks.sort(key=lambda block: release_key(block["release"]))
            names = json.dumps([model, *row["same_shape"].split()])
            entries.append(f'{{"model": {names}, "family": "{row["family"]}", '
                           f'"facts": [\n{lines_of(blocks)}\n]}}')
    return (f'{{"stack": "{STACK}", "models": [\n' + ",\n".join(entries)
            + f'\n], "experts": [\n{lines_of(majority(recipes, True))}'
            + f'\n], "dense": [\n{lines_of(majority(recipes, False))}\n], "without": {{\n'
            + ",\n".join(f'"{family}": {{' + ", ".join(
                f'"{kind}": [\n{lines_of(blocks)}\n]' for kind, blocks in kinds.items()) + "}"
                for family, kinds in without_each(recipes).items()) + "\n}}\n")


def main():
    path = HERE / f"{STACK}.json"
    if sys.argv[1:] == ["--check"]:
        if path.read_text() != text():
            sys.exit(f"{path} is not what the tables say: run {pathlib.Path(__file__).name}")
        return
    path.write_text(text())
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
