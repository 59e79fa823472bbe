// SPDX-License-Identifier: Apache-2.0
// Starts Megatron-LM, Megatron-Bridge and NeMo 2.0.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "sim/base/text/words.h"
#include "sim/launch/flag_writer.h"
#include "sim/launch/script/program.h"
#include "sim/launch/script/shape.h"

namespace orrery {
namespace {

// Bridge reads overrides as Hydra does: text with other signs than those of names is quoted for it
// too, and lists stay lists.
std::string override_item(const LaunchFlag& flag) {
  const std::string value = bare_value(flag.value);
  const bool text = value != flag.value && !value.starts_with('[');
  return quoted_word(flag.name + "=" + (text ? "\"" + value + "\"" : value));
}

// Recipes cut pipelines in ways of their own, which stay where the layout's flags say nothing.
std::vector<LaunchFlag> undone_of(const LaunchFlags& flags, const std::vector<LaunchFlag>& cuts) {
  std::vector<LaunchFlag> undone;
  for (const LaunchFlag& cut : cuts)
    if (std::none_of(flags.flags.begin(), flags.flags.end(),
                     [&](const LaunchFlag& flag) { return flag.name == cut.name; }))
      undone.push_back(cut);
  return undone;
}
const std::vector<LaunchFlag> bridge_cuts = {
    {"model.virtual_pipeline_model_parallel_size", "null", ""},
    {"model.pipeline_model_parallel_layout", "null", ""},
    {"model.num_layers_in_first_pipeline_stage", "null", ""},
    {"model.num_layers_in_last_pipeline_stage", "null", ""},
    {"model.account_for_embedding_in_pipeline_split", "false", ""},
    {"model.account_for_loss_in_pipeline_split", "false", ""},
};
const std::vector<LaunchFlag> nemo2_cuts = {
    {"recipe.trainer.strategy.virtual_pipeline_model_parallel_size", "None", ""},
};

std::string recipe_meaning(const char* where, const Model& model) {
  return fmt::format("a recipe of {} for this model: {}", where, shape_in_words(model));
}

}  // namespace

LaunchProgram megatron_program(const Scenario& s, const LaunchFlags& flags) {
  LaunchProgram out{.mocks = true};
  const ShapeFlags shape = megatron_shape(s.model, s.job, s.stack);
  const bool rotary = s.model.position == PositionKind::rotary;
  out.needs = {{"MEGATRON_PATH", "the folder of Megatron-LM, the same on every host"},
               train_steps,
               {"LR", "the highest learning rate"}};
  if (rotary)
    out.needs.push_back(
        {"ROTARY_BASE", "the base of rotary positions (rope_theta in config.json)"});
  out.needs.push_back(
      {"DATA_PATH", "the prefix of the tokenised data, or weights and prefixes", true});
  out.needs.push_back({"TOKENIZER_TYPE", "a type that --tokenizer-type takes", true});
  out.needs.push_back({"TOKENIZER_MODEL", "the file, folder or name of the tokenizer", true});
  // NullTokenizer adds a token of its own, which ends documents.
  out.train = fmt::format(R"(if [ "${{MOCK_DATA:-0}}" = 1 ]; then
  data=(--mock-data --tokenizer-type NullTokenizer --vocab-size {})
else
  read -ra prefixes <<<"$DATA_PATH"
  data=(--data-path "${{prefixes[@]}}")
  data+=(--tokenizer-type "$TOKENIZER_TYPE" --tokenizer-model "$TOKENIZER_MODEL")
fi
)",
                          s.model.vocab - 1);
  std::vector<std::string> items = {
      fmt::format(R"("$MEGATRON_PATH/pretrain_{}.py")", s.model.has_scans() ? "mamba" : "gpt"),
      "# the layout"};
  for (const LaunchFlag& flag : flags.flags) items.push_back(flag_item(flag));
  items.emplace_back("# the model");
  for (const LaunchFlag& flag : shape.flags) items.push_back(flag_item(flag));
  items.emplace_back("# yours");
  items.emplace_back(R"(--train-iters "$TRAIN_STEPS" --lr "$LR")");
  if (rotary) items.emplace_back(R"(--rotary-base "$ROTARY_BASE")");
  items.emplace_back(R"("${data[@]}")");
  items.emplace_back(R"("$@")");
  out.train += shell_array("train", items);
  out.left = shape.missing;
  out.left.push_back(fmt::format(
      "The model has {} tokens in its vocabulary: the tokenizer's must agree.", s.model.vocab));
  if (s.model.has_experts())
    out.left.emplace_back(
        "The router's score function, groups, scaling and balancing loss are not of the shape: add "
        "them as further words (--moe-router-score-function, ...).");
  if (s.job.task != Task::pretrain)
    out.left.emplace_back(
        "It is a fine-tuning: add --load and what reads its prompts as further words.");
  out.sources = {"megatron-lm-arguments"};
  return out;
}

LaunchProgram bridge_program(const Scenario& s, const LaunchFlags& flags) {
  const bool pretrains = s.job.task == Task::pretrain;
  LaunchProgram out{.mocks = pretrains};
  out.needs = {{"MEGATRON_BRIDGE_PATH", "the folder of Megatron-Bridge, the same on every host"},
               {"RECIPE", recipe_meaning("megatron.bridge.recipes", s.model)},
               train_steps};
  std::vector<std::string> items = {R"("$MEGATRON_BRIDGE_PATH/scripts/training/run_recipe.py")",
                                    R"(--recipe "$RECIPE")"};
  if (s.job.task == Task::lora) items.emplace_back("--peft_scheme lora");
  items.emplace_back("# the layout");
  for (const LaunchFlag& flag : flags.flags) items.push_back(override_item(flag));
  items.emplace_back("# not the recipe's own cuts of the pipeline");
  for (const LaunchFlag& flag : undone_of(flags, bridge_cuts)) items.push_back(override_item(flag));
  items.emplace_back("# yours");
  items.emplace_back(R"("train.train_iters=$TRAIN_STEPS")");
  if (pretrains) {
    out.needs.push_back({"DATA_PATH", "the prefix of the tokenised data", true});
    out.train = R"(data=()  # the recipe's own, which are random tokens
if [ "${MOCK_DATA:-0}" != 1 ]; then
  data=("dataset.blend=[[\"$DATA_PATH\"],null]")
fi
)";
    items.emplace_back(R"("${data[@]}")");
  }
  items.emplace_back(R"("$@")");
  out.train += shell_array("train", items);
  out.left.emplace_back(
      "Shape, tokenizer, learning rates and settings that are not listed stay the recipe's.");
  if (release_number(s.stack.flags_release) < std::pair(26, 2))
    out.left.emplace_back(
        "scripts/training/run_recipe.py was read in a later release: find what starts recipes in "
        "this one.");
  if (!pretrains)
    out.left.emplace_back(
        "Data and the checkpoint to start from stay the recipe's, or are further words "
        "(dataset.dataset_root=..., checkpoint.pretrained_checkpoint=...).");
  out.sources = {"megatron-bridge-run-recipe"};
  return out;
}

LaunchProgram nemo2_program(const Scenario& s, const LaunchFlags& flags, const HostPlan& plan) {
  const bool pretrains = s.job.task == Task::pretrain;
  LaunchProgram out{.mocks = pretrains, .file_name = "layout.py"};
  out.needs = {{"RECIPE", recipe_meaning("nemo.collections.llm", s.model)}, train_steps};
  std::set<std::string> presets;
  for (const LaunchFlag& flag : flags.flags)
    if (flag.name == "recipe.trainer.plugins")
      presets.insert(flag.value.substr(0, flag.value.find('(')));
  out.file = "import os\n\nimport nemo_run as run\nimport torch  # noqa: F401\n";
  if (pretrains) out.file += "from nemo.collections.common.tokenizers import AutoTokenizer\n";
  out.file += "from nemo.collections import llm\n";
  for (const std::string& preset : presets)
    out.file += fmt::format(
        "from nemo.collections.llm.recipes.precision.mixed_precision import {}\n", preset);
  out.file += fmt::format(
      "\nrecipe = getattr(llm, os.environ[\"RECIPE\"]).{}_recipe(\n"
      "    name=os.environ[\"RUN_NAME\"],\n    dir=os.environ[\"RUN_DIR\"],\n    num_nodes={},\n"
      "    num_gpus_per_node={},\n{})\n",
      pretrains ? "pretrain" : "finetune", plan.hosts, plan.ranks,
      pretrains                  ? ""
      : s.job.task == Task::lora ? "    peft_scheme=\"lora\",\n"
                                 : "    peft_scheme=None,\n");
  if (pretrains) {
    out.needs.push_back({"DATA_PATH", "the prefix of the tokenised data", true});
    out.needs.push_back({"TOKENIZER_MODEL", "the name or folder of the tokenizer", true});
    out.file += R"(if os.environ.get("MOCK_DATA") != "1":  # else random tokens, the recipe's own
    recipe.data = run.Config(
        llm.PreTrainingDataModule,
        paths=os.environ["DATA_PATH"].split(),
        tokenizer=run.Config(AutoTokenizer, pretrained_model_name=os.environ["TOKENIZER_MODEL"]),
    )
)";
  }
  for (const std::vector<LaunchFlag>& some : {undone_of(flags, nemo2_cuts), flags.flags})
    for (const LaunchFlag& flag : some) out.file += fmt::format("{} = {}\n", flag.name, flag.value);
  out.file += "recipe.trainer.max_steps = int(os.environ[\"TRAIN_STEPS\"])\n\n";
  out.file += "if __name__ == \"__main__\":\n    run.run(recipe, direct=True)\n";
  out.train = R"(export RECIPE TRAIN_STEPS RUN_DIR RUN_NAME
)";
  if (pretrains)
    out.train +=
        "export DATA_PATH=${DATA_PATH:-} TOKENIZER_MODEL=${TOKENIZER_MODEL:-}\n"
        "export MOCK_DATA=${MOCK_DATA:-0}\n";
  out.train += shell_array("train", {R"("$LAYOUT_FILE")", R"("$@")"});
  out.left.emplace_back(
      "Shape, learning rates and settings that are not listed stay the recipe's; others are lines "
      "of Python below.");
  if (!pretrains) out.left.emplace_back("Data and the checkpoint to start from stay the recipe's.");
  if (plan.last_ranks != plan.ranks)
    out.left.emplace_back("The last host has fewer ranks, which a recipe cannot say.");
  out.sources = {"nemo2-recipes"};
  return out;
}

}  // namespace orrery
