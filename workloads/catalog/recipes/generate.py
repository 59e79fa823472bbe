#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of this folder from settings that were read from launch programs' own scripts.

Usage: generate.py FOLDER [ROOT]. FOLDER holds recipes.csv, sources.csv and defaults.csv; ROOT is the
repository. What a program names and the catalogue spells otherwise stands in spellings.py.
"""
import csv
import json
import pathlib
import re
import sys

import spellings

REPOSITORY = "https://github.com/"
RECOMPUTE_ORDER = ["core_attn", "mlp", "moe", "moe_act", "layernorm", "mla_up_proj",
                   "shared_experts"]
PLAIN = {"1": "on", "0": "off"}


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def switch(text):
    return PLAIN.get(text, text)


def number(text):
    """A degree; -1 is the rest, which the script leaves open."""
    return "" if text in ("", "-1") else text.removesuffix(".0")


def recompute(row):
    kind, modules = row["recompute"], re.split(r"[+,]", row["recompute_modules"])
    modules = [m for m in modules if m and m != "op"]
    if kind == "none" or not kind:
        return kind
    if kind == "policy" and modules == ["full"]:
        return "full"
    if kind == "policy":
        return "keeps " + " ".join(modules) if modules else "policy"
    if row["recompute_modules"] == "op":
        return "by operation"
    if kind == "selective" and not modules and "Megatron-Bridge" in row["program"]:
        return "none"  # an empty list; Megatron-Core's own default, core_attn, would be no list
    if kind == "selective":
        order = {name: i for i, name in enumerate(RECOMPUTE_ORDER)}
        modules.sort(key=lambda m: order.get(m, 99))
        return "selective" if modules == ["core_attn"] else ",".join(modules) or "selective"
    if row["recompute_layers"]:
        return f"full ({row['recompute_method']} {row['recompute_layers']})"
    return "full"


def graphs(row):
    impl, scope = row["graph_impl"], row["graph_scope"]
    if impl in ("", "none", "full_iteration"):
        return impl
    if "enable_cuda_graph" in impl:
        return "layers"
    return "full_iteration" if scope == "full_iteration" else scope or "layers"


def dispatcher(row):
    kind = row["dispatcher"].lower()
    return "all-to-all" if kind in ("alltoall", "torch all-to-all") else kind


def activations(row):
    if row["offload_layers"]:
        return row["offload_layers"] + " layers"
    return row["offload_modules"] or ""


def stages(row):
    """In Megatron-Core's letters: E embedding, t a layer, m a prediction module, L loss, | between
    stages; what repeats stands once, with how often."""
    text = row["pp_layout"]
    for word, letter in (("embedding", "E"), ("decoder", "t"), ("mtp", "m"), ("loss", "L")):
        text = text.replace(word, letter)
    text = re.sub(r"t{2,}", lambda run: f"t*{len(run.group())}", text.replace("+", ""))
    runs = re.sub(r"(?<=\|)([^|(]+\|)\1+",
                  lambda run: f"({run.group(1)})*{len(run.group()) // len(run.group(1))}", text)
    return runs


def sharding(row):
    text = row["fsdp"].replace("megatron-fsdp:optim_grads_params", "megatron-fsdp zero-3")
    return text.replace("fsdp:FULL_SHARD mixed PURE", "fsdp1 full shard, pure")


def fusion(row):
    if row["ce_fusion"] != "1":
        return switch(row["ce_fusion"])
    return "on" + (f" ({row['ce_impl']})" if row["ce_impl"] else "")


def adapters(row):
    return " ".join(x for x in (row["peft"], row["peft_targets"]) if x)


def dtype(name):
    names = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
    return lambda row: names.get(row[name], row[name])


def degree(name):
    return lambda row: number(row[name])


def flag(name):
    return lambda row: switch(row[name])


def text(name):
    return lambda row: row[name]


# Settings in the order of the page, with what gives each from a row. ../README.md says what each
# means.
SETTINGS = {
    "tp": degree("tp"), "pp": degree("pp"), "vpp": degree("vpp"), "cp": degree("cp"),
    "ep": degree("ep"), "etp": degree("etp"), "micro_batch": degree("mbs"),
    "sequence_parallel": flag("seqpar"), "stages": stages,
    "loss_in_split": flag("embed_loss_in_split"), "recompute": recompute,
    "offload_activations": activations, "offload_optimizer": degree("optimizer_offload"),
    "sharding": sharding, "distributed_optimizer": flag("dist_optimizer"),
    "optimizer_instances": degree("dist_opt_instances"), "optimizer": text("optimizer"),
    "precision_aware_optimizer": flag("precision_aware_optimizer"),
    "master_format": dtype("master_dtype"), "moment_format": dtype("moment_dtype"),
    "gradient_format": dtype("main_grad_dtype"), "reduce_format": dtype("grad_reduce_dtype"),
    "overlap_gradients": flag("overlap_grad_reduce"),
    "overlap_parameters": flag("overlap_param_gather"),
    "gather_with_step": flag("param_gather_with_step"),
    "average_in_collective": flag("average_in_collective"), "nccl_buffers": flag("nccl_ub"),
    "tensor_overlap": flag("tp_overlap"), "pipeline_overlap": flag("p2p_overlap"),
    "deferred_embedding": flag("defer_embed_wgrad"), "context_exchange": text("cp_comm"),
    "dispatcher": dispatcher, "dispatcher_sms": degree("dispatcher_sms"),
    "expert_overlap": flag("ep_overlap"), "delayed_weight_gradient": flag("delay_wgrad"),
    "shared_expert_overlap": flag("shared_expert_overlap"), "grouped_gemm": flag("grouped_gemm"),
    "permute_fusion": flag("permute_fusion"), "router_fusion": flag("router_fusion"),
    "router_padding": flag("router_padding"), "balanced_routing": flag("force_balance"),
    "capacity_factor": degree("capacity_factor"), "pad_to_capacity": flag("pad_to_capacity"),
    "paged_stash": flag("paged_stash"), "rank_capacity": degree("expert_rank_capacity"),
    "fused_expert_mlp": flag("op_fuser"), "graphs": graphs, "fp8_format": text("fp8_format"),
    "fp8_recipe": text("fp8_recipe"), "fp8_gather": flag("fp8_param_gather"),
    "fp8_attention": flag("fp8_attention"), "fp4": text("fp4"),
    "bf16_layers_first": degree("bf16_layers_first"),
    "bf16_layers_last": degree("bf16_layers_last"), "loss_fusion": fusion,
    "attention": text("attention"), "rope_fusion": flag("rope_fusion"),
    "accumulation_fusion": flag("grad_accum_fusion"), "hidden_dropout": text("hidden_dropout"),
    "attention_dropout": text("attention_dropout"), "mtp_layers": degree("mtp_layers"),
    "adapters": adapters,
}
# Settings of the table of defaults that are settings here.
DEFAULT_SETTINGS = {
    "expert_tensor_parallel": "etp", "moe_token_dispatcher_type": "dispatcher",
    "moe_grouped_gemm": "grouped_gemm", "moe_expert_capacity_factor": "capacity_factor",
    "hidden_dropout": "hidden_dropout", "attention_dropout": "attention_dropout",
    "gradient_accumulation_fusion": "accumulation_fusion", "cross_entropy_fusion_impl": "loss_fusion",
    "cross_entropy_loss_fusion": "loss_fusion", "cuda_graph_impl": "graphs",
    "grad_reduce_in_fp32 (DDP)": "reduce_format", "grad_sync_dtype": "reduce_format",
    "overlap_grad_reduce, overlap_param_gather (DDP)": "overlap_gradients",
    "optimizer dtypes": "moment_format", "data_parallel_sharding_strategy": "sharding",
    "num_distributed_optimizer_instances": "optimizer_instances",
    "CommOverlapConfig: tensor parallel": "tensor_overlap",
    "CommOverlapConfig: pipeline": "pipeline_overlap",
    "CommOverlapConfig: data parallel": "overlap_gradients", "HybridEP": "dispatcher_sms",
    "remat_policy": "recompute", "fsdp mixed_precision": "sharding",
    "gradient reduction": "reduce_format", "bf16 optimizer": "distributed_optimizer",
}
# A program's own words for what one of ours says; the rest of a note is left out.
NOTES = [
    ("no implementation: no graph", "a graph scope without an implementation captures nothing"),
    ("set without granularity", "recompute modules without a granularity are not applied"),
    ("the listed commit is not stored", "what its base script sets is that of 2025-09-20"),
    ("base script is not stored", "what its base script sets is not known"),
    ("launch script only", "what its base script sets is not known"),
    ("te_quant.cfg", "precision by module: te_quant.cfg"),
    ("split into pipeline microbatches", "the batch of a rank is split into microbatches"),
]


def calendar(program, release):
    """The stack's name of a program's release: 26.06 of v26.06.00, 25.02 of "v2.2.0 (25.02)"."""
    known = spellings.RELEASES.get((program, release))
    if known:
        return known
    inside = re.search(r"\((\d\d\.\d\d)\)", release)
    name = inside.group(1) if inside else release.removeprefix("v")
    if program == "DGX Cloud / MaxText":
        name = "20" + name
    if program.startswith("DGX"):
        return name.removesuffix(".00")
    parts = name.split(".")
    return name if inside else ".".join(parts[:2] if parts[-1] == "0" else parts)


def address_of(repo, commit, path):
    return f"{REPOSITORY}{repo}/blob/{commit}/{path}"


def source_of(entry, releases):
    program = entry["program"]
    stack, origin, base_repo = spellings.PROGRAMS[program]
    base = ""
    if re.search(r"\.(py|yaml|yml|toml)$", entry["base_path"]):
        own = base_repo == entry["repo"] or "torchtitan" in entry["base_path"]
        commit = entry["commit"] if own or not entry["base_commit"] else entry["base_commit"]
        base = address_of(entry["repo"] if own else base_repo, commit, entry["base_path"])
    if program == "DGX Cloud / TorchTitan":
        names = {spellings.RELEASES[(program, releases[0])]}
    else:
        names = [calendar(program, release) for release in releases]
    return (stack, ";".join(dict.fromkeys(names)), program, ";".join(releases), entry["date"],
            address_of(entry["repo"], entry["commit"], entry["path"]), base, origin)


def note_of(row):
    found = [ours for theirs, ours in NOTES if theirs in row["notes"]]
    return found[0] if found else ""


def precision_of(row):
    if row["precision"] == "FP8" and row["program"] in spellings.FP8_OF:
        return spellings.FP8_OF[row["program"]]
    return spellings.PRECISIONS[row["precision"]]


def dropped(row):
    return (row["model"] not in spellings.MODELS or row["device"] not in spellings.DEVICES
            or row["dp"] == "0")


class Tables:
    """Rows of the files that are written, each once."""

    def __init__(self):
        self.sources, self.settings, self.recipes = {}, {}, {}
        self.seen, self.dropped = set(), 0

    def is_known(self, source, key, size):
        """Whether a script of the same program and stack's release was read to set the same."""
        stack, releases, program = source[:3]
        known = (stack, releases, program, key, size)
        if known in self.seen:
            return True
        self.seen.add(known)
        return False

    def add(self, row, entry):
        if dropped(row):
            self.dropped += 1
            return
        source = source_of(entry, row["release"].split(";"))
        values = tuple(read_value(row) for read_value in SETTINGS.values())
        settings_id = self.settings.setdefault(values, len(self.settings) + 1)
        variant = row["variant"] if "fp8_recipe" not in row["variant"] else ""
        key = (spellings.MODELS[row["model"]], spellings.TASKS[row["task"]],
               spellings.DEVICES[row["device"]], precision_of(row), variant,
               row["seq"], settings_id, note_of(row))
        size = (int(row["gpus"] or 0), row["gbs"])
        if self.is_known(source, key, size):
            return
        source_id = self.sources.setdefault(source, len(self.sources) + 1)
        self.recipes.setdefault((source_id, *key), []).append(size)

    def recipe_rows(self):
        for key, sizes in self.recipes.items():
            sizes.sort(key=lambda size: size[0])
            gpus = ";".join(str(n) if n else "" for n, _ in sizes)
            yield (*key[:6], gpus, ";".join(batch for _, batch in sizes), *key[6:])


def models(root, used):
    folder = root / "workloads/catalog/models"
    for name in sorted(used):
        if name in spellings.OTHER_MODELS:
            family, moe = spellings.OTHER_MODELS[name]
        else:
            entry = json.loads((folder / f"{name}.json").read_text())
            whole = entry
            while "based_on" in whole:
                whole = json.loads((folder / f"{whole['based_on']}.json").read_text())
                entry = whole | entry
            family, moe = entry["family"], int('"moe"' in json.dumps(entry))
        yield name, family, moe, spellings.SAME_SHAPE.get(name, "")


def defaults(rows):
    for row in rows:
        setting = DEFAULT_SETTINGS.get(row["setting"])
        if setting is None or row["program"] not in spellings.DEFAULT_OF:
            continue
        path, _, rest = row["path"].partition(":")
        line = re.match(r"\d+", rest)
        path = re.sub(r" \(.*", "", path)
        if "*" in path:
            continue
        yield (spellings.DEFAULT_OF[row["program"]], setting, row["default"],
               f"{row['program']} {row['releases']}",
               address_of(row["repo"], row["tag"], path) + (f"#L{line.group()}" if line else ""))


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    print(f"{path.name}: {path.stat().st_size} bytes")


def main():
    folder = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).resolve().parent
    root = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else here.parents[2]
    entries = {row["source"]: row for row in read(folder / "sources.csv")}
    tables = Tables()
    rows = read(folder / "recipes.csv")
    rows.sort(key=lambda row: entries[row["source"]]["date"])
    for row in rows:
        tables.add(row, entries[row["source"]])
    write(here / "sources.csv", ["id", "stack", "releases", "program", "program_releases", "date",
                                 "address", "base_address", "origin"],
          [(n, *source) for source, n in tables.sources.items()])
    write(here / "settings.csv", ["id", *SETTINGS],
          [(n, *values) for values, n in tables.settings.items()])
    rows = list(tables.recipe_rows())
    write(here / "recipes.csv", ["source", "model", "task", "device", "precision", "variant",
                                 "gpus", "global_batch", "sequence", "settings", "note"], rows)
    write(here / "models.csv", ["model", "family", "moe", "same_shape"],
          models(root, {row[1] for row in rows}))
    write(here / "defaults.csv", ["programs", "setting", "default", "holds_for", "address"],
          defaults(read(folder / "defaults.csv")))
    print(f"{tables.dropped} rows left out: models and devices that have no name here")


if __name__ == "__main__":
    main()
