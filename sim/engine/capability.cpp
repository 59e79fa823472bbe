// SPDX-License-Identifier: Apache-2.0
// Holds what stacks and devices state of themselves against each other.
#include "sim/engine/capability.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

template <class T>
bool lists(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string named(const Stack& stack) { return stack.name + " " + stack.release; }

std::filesystem::path stack_folder() { return data_root() / "workloads/catalog/stacks"; }

}  // namespace

std::vector<std::string> stacks_of_platform(const std::string& platform) {
  std::vector<std::string> names;
  for (const std::string& name : stack_names(stack_folder())) {
    const Stack stack = load_stack(name, {}, stack_folder());
    if (lists(stack.platforms, platform) && !stack.serving.engine) names.push_back(name);
  }
  return names;
}

std::string cannot_run(const Stack& stack, const Device& device, PrecisionRecipe precision) {
  if (!device.software) return "";
  const DeviceSoftware& software = *device.software;
  if (!stack.platforms.empty() && !lists(stack.platforms, software.platform))
    return fmt::format(
        "{} is a program for {}, and {} is a device of {}. Most run {} there; these "
        "run too: {}",
        named(stack), joined(stack.platforms, ", "), device.title, software.platform,
        software.training_stack, joined(stacks_of_platform(software.platform), ", "));
  const std::string name(to_text(precision));
  if (is_weight_only(precision)) {
    if (stack.serving.engine) return "";
    return fmt::format("{} is a format of served checkpoints (orrery serve): {} computes in {}",
                       name, named(stack), joined(software.precisions, ", "));
  }
  if (!lists(software.precisions, name))
    return fmt::format("{} does not train in {}: {}. It has {}", device.title, name,
                       software.reason, joined(software.precisions, ", "));
  if (is_sixteen_bit(precision) || StackChoices::allows(stack.choices.precisions, precision))
    return "";
  std::vector<std::string> known;
  for (const PrecisionRecipe p : stack.choices.precisions) known.emplace_back(to_text(p));
  return fmt::format("{} has no recipe for {}: it has {}", named(stack), name, joined(known, ", "));
}

std::vector<PrecisionRecipe> device_precisions(const Device& device) {
  std::vector<PrecisionRecipe> all;
  if (!device.software) {
    const ResolvedDevice d = device.resolved();
    for (const PrecisionRecipe p : {PrecisionRecipe::bf16, PrecisionRecipe::fp16})
      if (d.tensor_rate[static_cast<std::size_t>(linear_format(p))] > FlopPerSecond(0))
        all.push_back(p);
    return all;
  }
  for (int p = 0; p <= static_cast<int>(PrecisionRecipe::nvfp4); ++p)
    if (lists(device.software->precisions, std::string(to_text(static_cast<PrecisionRecipe>(p)))))
      all.push_back(static_cast<PrecisionRecipe>(p));
  return all;
}

std::string usual_stack(const Device& device, Task task) {
  if (!device.software) return "";
  return is_training(task) ? device.software->training_stack : device.software->inference_stack;
}

}  // namespace orrery
