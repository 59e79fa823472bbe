// SPDX-License-Identifier: Apache-2.0
// Starts TorchTitan, DeepSpeed and MaxText.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "sim/launch/flag_writer.h"
#include "sim/launch/script/program.h"
#include "sim/launch/script/shape.h"

namespace orrery {
namespace {

// MaxText's mesh has two layers of axes: inside a slice, which is a host of GPUs, and between
// slices. Inner axes are filled first, as ranks count.
struct Mesh {
  std::vector<std::string> settings;
  bool fills = true;  // whole hosts
};

Mesh split_mesh(const std::vector<LaunchFlag>& axes, std::int64_t host) {
  const auto place = [](const std::string& name) {
    constexpr const char* inner_first[] = {"tensor", "context", "expert"};
    int at = 0;
    for (const char* axis : inner_first) {
      if (name.find(axis) != std::string::npos) return at;
      ++at;
    }
    return at;
  };
  std::vector<LaunchFlag> order = axes;
  std::stable_sort(order.begin(), order.end(), [&](const LaunchFlag& a, const LaunchFlag& b) {
    return place(a.name) < place(b.name);
  });
  Mesh mesh;
  std::int64_t free = host;
  for (const LaunchFlag& axis : order) {
    const std::int64_t size = std::stoll(axis.value), inside = std::gcd(size, free);
    free /= inside;
    mesh.settings.push_back(fmt::format("{}={}", axis.name, inside));
    mesh.settings.push_back(fmt::format("dcn_{}={}", axis.name.substr(4), size / inside));
  }
  mesh.fills = free == 1;
  return mesh;
}

bool is_axis(const LaunchFlag& flag) { return flag.name.starts_with("ici_"); }

// All settings of the layout, its axes first.
Mesh mesh_of(const LaunchFlags& flags, const HostPlan& plan, bool tpu) {
  std::vector<LaunchFlag> axes;
  for (const LaunchFlag& flag : flags.flags)
    if (is_axis(flag)) axes.push_back(flag);
  Mesh mesh;
  if (!tpu && plan.hosts > 1)
    mesh = split_mesh(axes, plan.ranks);
  else
    for (const LaunchFlag& axis : axes) mesh.settings.push_back(axis.name + "=" + axis.value);
  for (const LaunchFlag& flag : flags.flags)
    if (!is_axis(flag)) mesh.settings.push_back(flag.name + "=" + bare_value(flag.value));
  return mesh;
}

std::vector<std::string> maxtext_left(const Scenario& s, const HostPlan& plan, const Mesh& mesh,
                                      bool tpu) {
  std::vector<std::string> left;
  if (release_number(s.stack.release) < std::pair(2025, 0))
    left.emplace_back(
        "Names of modules and of base.yml are those of 2026: this release has MaxText/train.py and "
        "MaxText/configs/base.yml.");
  if (!mesh.fills)
    left.emplace_back("The axes do not fill hosts: check the ici_ and dcn_ sizes below.");
  if (!tpu)
    left.emplace_back(
        "XLA_FLAGS (overlap of collectives, sizes that join them) and the attention kernel "
        "(attention=cudnn_flash_te) are the program's to tune: set them in the environment and "
        "as further words.");
  if (!tpu && plan.hosts_per_domain > 1)
    left.emplace_back(
        "A slice is taken to be a host; where JAX counts a whole scale-up domain as one slice, "
        "multiply the ici_ sizes and divide the dcn_ sizes by its hosts.");
  if (plan.ranks < plan.accelerators)
    left.emplace_back(
        "Hosts are not filled: let each process see only as many accelerators as it has ranks.");
  if (s.job.task != Task::pretrain)
    left.emplace_back("It is a fine-tuning: add load_parameters_path and its data.");
  return left;
}

std::vector<std::string> quoted(const std::vector<std::string>& items) {
  std::vector<std::string> words;
  for (const std::string& item : items) words.push_back(quoted_word(item));
  return words;
}

}  // namespace

LaunchProgram torchtitan_program(const Scenario& s, const LaunchFlags& flags) {
  LaunchProgram out{.file_name = "layout.toml", .file = flags.text};
  out.needs = {{"TORCHTITAN_PATH", "the folder of TorchTitan, the same on every host"},
               {"MODEL_NAME", "the folder of the model in torchtitan/models"},
               {"MODEL_FLAVOR", "its flavor with this shape: " + shape_in_words(s.model)},
               {"TOKENIZER_PATH", "the folder of the tokenizer"},
               {"DATASET", "a data set that TorchTitan knows (c4; c4_test for a first run)"},
               train_steps,
               {"LR", "the highest learning rate"}};
  // The tokenizer's key was renamed when its folder came to hold weights too.
  const bool assets = release_number(s.stack.flags_release) >= std::pair(0, 2);
  out.train = R"(export PYTHONPATH="$TORCHTITAN_PATH${PYTHONPATH:+:$PYTHONPATH}"
)" + shell_array("train", {
                              "-m torchtitan.train",
                              R"(--job.config_file "$LAYOUT_FILE")",
                              R"(--job.dump_folder "$RUN_DIR")",
                              R"(--model.name "$MODEL_NAME" --model.flavor "$MODEL_FLAVOR")",
                              fmt::format(R"(--model.{} "$TOKENIZER_PATH")",
                                          assets ? "hf_assets_path" : "tokenizer_path"),
                              R"(--training.dataset "$DATASET")",
                              R"(--training.steps "$TRAIN_STEPS" --optimizer.lr "$LR")",
                              R"("$@")",
                          });
  out.left.emplace_back(
      "Shape and what the model's own file of train_configs sets beside the layout (warm-up, "
      "converters' filters, data) are not in this file: add them as further words "
      "(--lr_scheduler.warmup_steps ...).");
  if (s.job.task != Task::pretrain)
    out.left.emplace_back("It is a fine-tuning: add --checkpoint.initial_load_path and its data.");
  out.sources = {"torchtitan-launch", "torchtitan-job-config"};
  return out;
}

LaunchProgram deepspeed_program(const Scenario& s, const LaunchFlags& flags) {
  LaunchProgram out{.file_name = "layout.json", .file = flags.text};
  out.needs = {{"TRAIN_SCRIPT", "your training script, which calls deepspeed.initialize"}};
  out.train = shell_array("train", {R"("$TRAIN_SCRIPT")", "--deepspeed",
                                    R"(--deepspeed_config "$LAYOUT_FILE")", R"("$@")"});
  out.left.emplace_back(fmt::format(
      "Your script builds the model ({}), takes the two flags of deepspeed.add_config_arguments, "
      "and reads data of {} tokens a sequence; its own arguments are further words.",
      shape_in_words(s.model), s.job.sequence));
  out.sources = {"deepspeed-arguments"};
  return out;
}

LaunchProgram maxtext_program(const Scenario& s, const LaunchFlags& flags, const HostPlan& plan) {
  LaunchProgram out{.mocks = true, .torchrun = false};
  const bool tpu = s.cluster.device.architecture == Architecture::tpu;
  const ShapeFlags shape = maxtext_shape(s.model);
  out.needs = {{"MAXTEXT_PATH", "the folder of MaxText, the same on every host"},
               {"OUTPUT_DIR", "a folder that all hosts share, or a bucket"},
               train_steps,
               {"LR", "the highest learning rate"}};
  if (shape.flags.empty())
    out.needs.push_back({"MODEL_NAME", "the name of the model in src/maxtext/configs/models: " +
                                           shape_in_words(s.model)});
  out.needs.push_back({"DATASET_TYPE", "a value that dataset_type takes (tfds, grain, hf)", true});
  out.needs.push_back({"DATASET_PATH", "the folder or bucket of the data", true});
  out.needs.push_back({"TOKENIZER_PATH", "the file or name of the tokenizer", true});
  const Mesh mesh = mesh_of(flags, plan, tpu);
  std::vector<std::string> settings;
  for (const LaunchFlag& flag : shape.flags) settings.push_back(flag.name + "=" + flag.value);
  out.train = R"(export PYTHONPATH="$MAXTEXT_PATH/src${PYTHONPATH:+:$PYTHONPATH}"
if [ "${MOCK_DATA:-0}" = 1 ]; then
  data=("dataset_type=synthetic")
else
  data=("dataset_type=$DATASET_TYPE" "dataset_path=$DATASET_PATH")
  data+=("tokenizer_path=$TOKENIZER_PATH")
fi
)";
  const std::string named = R"(model=("model_name=$MODEL_NAME")
)";
  if (settings.empty())
    out.train += named;
  else
    out.train += shell_array("model", quoted(settings)) +
                 "if [ -n \"${MODEL_NAME:-}\" ]; then  # a file of src/maxtext/configs/models\n  " +
                 named + "fi\n";
  std::vector<std::string> items = {"python3 -m maxtext.trainers.pre_train.train",
                                    R"("$MAXTEXT_PATH/src/maxtext/configs/base.yml")",
                                    R"("run_name=$RUN_NAME" "base_output_directory=$OUTPUT_DIR")",
                                    tpu ? "'hardware=tpu'" : "'hardware=gpu'", "# the layout"};
  for (const std::string& word : quoted(mesh.settings)) items.push_back(word);
  items.emplace_back("# the model");
  items.emplace_back(R"("${model[@]}")");
  items.emplace_back("# yours");
  items.emplace_back(R"("steps=$TRAIN_STEPS" "learning_rate=$LR")");
  items.emplace_back(R"("${data[@]}")");
  items.emplace_back(R"("$@")");
  out.train += shell_array("train", items);
  out.left = maxtext_left(s, plan, mesh, tpu);
  out.sources = {"maxtext-gpu-start", "maxtext-gpu-configs"};
  return out;
}

}  // namespace orrery
