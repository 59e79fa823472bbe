// SPDX-License-Identifier: Apache-2.0
// Holds a stack's settings against those of recipes, device by device and precision by precision.
#include "sim/app/catalog/recipe_differences.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "hw_models/catalog.h"
#include "sim/base/json/json.h"
#include "workloads/recipes/varies.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::string on_or_off(bool on) { return on ? "on" : "off"; }
std::string format_text(Format format) { return std::string(to_text(format)); }

std::string dispatcher_text(const StackCommunication& c) {
  if (c.expert_library == CollectiveLibrary::deepep) return "deepep";
  return c.expert_deduplicated ? "hybridep" : "all-to-all";
}

// How the graphs of a recipe reach the device, in a stack's words.
std::string launch_of(const std::string& graphs) {
  if (graphs == "none") return std::string(to_text(LaunchMode::eager));
  return std::string(
      to_text(graphs == "full_iteration" ? LaunchMode::full_graph : LaunchMode::scoped_graph));
}

// A stack's settings by the names of recipes'; those that it leaves open are missing.
std::map<std::string, std::string> settings_of(const Stack& s, bool moe, bool eight_bits) {
  std::map<std::string, std::string> settings = {
      {"graphs", std::string(to_text(s.host.launch))},
      {"overlap_gradients", on_or_off(s.communication.gradient_overlap)},
      {"overlap_parameters", on_or_off(s.communication.parameter_overlap)},
      {"accumulation_fusion", on_or_off(s.kernels.fused_gradient_accumulation)},
      {"reduce_format", format_text(s.sharding.gradient_format)},
      {"mtp_layers", on_or_off(s.defaults.mtp)}};
  if (s.defaults.recompute_known) settings["recompute"] = to_text(s.defaults.recompute);
  if (s.defaults.optimizer == Optimizer::adam_fp32) settings["moment_format"] = "fp32";
  if (s.defaults.optimizer == Optimizer::adam_bf16 ||
      s.defaults.optimizer == Optimizer::adam_bf16_moments)
    settings["moment_format"] = "bf16";
  if (eight_bits) {
    settings["fp8_gather"] = on_or_off(s.sharding.parameter_gather_format == Format::fp8);
    settings["fp8_attention"] = on_or_off(s.kernels.attention_format == Format::fp8);
  }
  if (moe) {
    settings["dispatcher"] = dispatcher_text(s.communication);
    settings["expert_overlap"] = on_or_off(s.communication.exchange_beside_passes);
    settings["fused_expert_mlp"] = on_or_off(s.kernels.fused_expert_mlp);
  }
  return settings;
}

// What a recipe sets, in the words of the table above.
std::string comparable(const std::string& setting, const std::string& value) {
  if (setting == "graphs") return launch_of(value);
  if (setting == "mtp_layers") return on_or_off(value != "0");
  if (setting == "recompute") return value.substr(0, value.find(" ("));
  return value;
}

// Loads a stack once for each device, precision, model and task.
class StackSettings {
 public:
  explicit StackSettings(std::string stack) : stack_(std::move(stack)) {}

  const std::map<std::string, std::string>& of(const RecipeModel& model, const Recipe& recipe) {
    StackContext context{
        .device = recipe.device, .model = model.name, .family = model.family, .moe = model.moe};
    if (!recipe.device.empty())
      context.architecture = std::string(to_text(load_device(recipe.device).architecture));
    context.precision =
        precision_from(JsonValue::parse("\"" + recipe.precision + "\"", "recipes.csv"));
    context.task = task_text.from(JsonValue::parse("\"" + recipe.task + "\"", "recipes.csv"));
    const auto [at, is_new] = known_.try_emplace(context);
    if (is_new)
      at->second = settings_of(load_stack(stack_, context, folder_), model.moe,
                               linear_format(context.precision) == Format::fp8);
    return at->second;
  }

 private:
  std::string stack_;
  std::filesystem::path folder_ = data_root() / "workloads/catalog/stacks";
  std::map<StackContext, std::map<std::string, std::string>> known_;
};

}  // namespace

std::vector<RecipeDifference> recipe_differences(const RecipeBook& book, const FoundRecipes& found,
                                                 const std::string& stack) {
  StackSettings settings(stack);
  std::vector<RecipeDifference> differences;
  for (std::size_t s = 0; s < book.setting_names.size(); ++s) {
    const std::string& name = book.setting_names[s];
    std::vector<RecipeDifference> here;
    for (const std::size_t place : found.recipes) {
      const Recipe& recipe = book.recipes[place];
      const std::string& value = book.value(recipe, s);
      const auto& own = settings.of(book.model_of(recipe), recipe);
      const auto held = own.find(name);
      if (value.empty() || held == own.end() || held->second == comparable(name, value)) continue;
      auto at = std::find_if(here.begin(), here.end(), [&](const RecipeDifference& d) {
        return d.stack == held->second && d.recipe == value;
      });
      if (at == here.end()) at = here.insert(at, {name, held->second, value, {}, {}});
      at->recipes.push_back(place);
    }
    for (RecipeDifference& difference : here) {
      std::vector<std::size_t> value_of;
      for (const std::size_t place : found.recipes)
        value_of.push_back(std::ranges::count(difference.recipes, place) > 0 ? 1 : 0);
      if (difference.recipes.size() < found.recipes.size())
        difference.where = where_values_hold(book, found.recipes, value_of, 2).back();
      differences.push_back(std::move(difference));
    }
  }
  return differences;
}

}  // namespace orrery
