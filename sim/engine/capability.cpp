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

// Of a platform those that serve, or those that do not.
std::vector<std::string> stacks_of(const std::string& platform, bool serve) {
  std::vector<std::string> names;
  for (const std::string& name : stack_names(stack_folder())) {
    const Stack stack = load_stack(name, {}, stack_folder());
    if (lists(stack.platforms, platform) && stack.serving.engine == serve) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string wrong_platform(const Stack& stack, const Device& device) {
  if (!device.software) return "";
  const DeviceSoftware& software = *device.software;
  if (stack.platforms.empty() || lists(stack.platforms, software.platform)) return "";
  const bool serves = stack.serving.engine;
  const std::string there = fmt::format("{} is a program for {}{}, and {} is a device of {}",
                                        named(stack), joined(stack.platforms, ", "),
                                        serves ? " here" : "", device.title, software.platform);
  const std::vector<std::string> others = stacks_of(software.platform, serves);
  if (!serves)
    return fmt::format("{}. Most run {} there; these run too: {}", there, software.training_stack,
                       joined(others, ", "));
  return others.empty() ? there + ", whose serving engines are not modelled"
                        : fmt::format("{}. These serve there: {}", there, joined(others, ", "));
}

std::string cannot_run(const Stack& stack, const Device& device, PrecisionRecipe precision) {
  const std::string why = wrong_platform(stack, device);
  return why.empty() ? cannot_compute(stack, device, precision) : why;
}

std::string cannot_cache(const Device& device, Format cache) {
  if (cache != Format::fp4 || !device.software) return "";
  const std::string name(to_text(PrecisionRecipe::nvfp4));
  if (lists(device.software->precisions, name)) return "";
  return fmt::format("{} has no {}: {}", device.title, name, device.software->reason);
}

std::string cannot_compute(const Stack& stack, const Device& device, PrecisionRecipe precision) {
  if (!device.software) return "";
  const DeviceSoftware& software = *device.software;
  const std::string name(to_text(precision));
  if (is_weight_only(precision)) {
    if (stack.serving.engine) return "";
    return fmt::format("{} is a format of served checkpoints (orrery serve): {} computes in {}",
                       name, named(stack), joined(software.precisions, ", "));
  }
  if (!lists(software.precisions, name))
    return fmt::format("{} does not {} in {}: {}. It has {}", device.title,
                       stack.serving.engine ? "serve" : "train", name, software.reason,
                       joined(software.precisions, ", "));
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
