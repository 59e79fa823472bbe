// SPDX-License-Identifier: Apache-2.0
// Chooses among facts by release, device and precision.
#include "workloads/release/facts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/base/text/lower_case.h"
#include "workloads/release/release.h"

namespace orrery {
namespace {

bool names(const JsonValue& list, std::string_view wanted) {
  const auto items = list.items();
  return std::any_of(items.begin(), items.end(),
                     [wanted](const JsonValue& item) { return item.text() == wanted; });
}

// Facts stand in order of releases.
std::optional<JsonValue> last_of(const JsonValue& facts, const StackContext& context,
                                 const std::vector<long>& limit) {
  std::optional<JsonValue> exact, of_device;
  for (const JsonValue& block : facts.items()) {
    block.expect_only({"release", "task", "device", "precision", "use", "set", "address"});
    if (release_parts(block.at("release").text()) > limit) break;
    const auto task = block.find("task");
    if ((task ? task->text() : to_text(Task::pretrain)) != to_text(context.task)) continue;
    if (!names(block.at("device"), context.device)) continue;
    if (names(block.at("precision"), to_text(context.precision))) exact = block;
    of_device = block;
  }
  return exact ? exact : of_device;
}

// What most families set; for a model of which no script is to be known, without its family's vote.
JsonValue votes_for(const JsonValue& file, const StackContext& context) {
  const char* kind = context.moe ? "experts" : "dense";
  if (!context.scripted)
    if (const auto without = file.find("without"))
      if (const auto others = without->find(context.family))
        if (const auto votes = others->find(kind)) return *votes;
  return file.at(kind);
}

}  // namespace

std::optional<RecipeFacts> recipe_facts(const JsonValue& file, const StackContext& context,
                                        const std::string& release) {
  file.expect_only({"stack", "models", "experts", "dense", "without"});
  const auto limit = release_parts(release);
  // As launch programs spell models: "Qwen3-235B-A22B" of a table is qwen3-235b-a22b there.
  const std::string model = lower_case(context.model);
  std::optional<JsonValue> own, of_family;
  for (const JsonValue& entry : file.at("models").items()) {
    entry.expect_only({"model", "family", "facts"});
    if (!context.scripted) break;
    const bool same = names(entry.at("model"), model);
    if (!same && entry.at("family").text() != context.family) continue;
    std::optional<JsonValue>& found = same ? own : of_family;
    if (!found) found = last_of(entry.at("facts"), context, limit);
  }
  if (!own) own = of_family;
  if (own) return RecipeFacts{.block = *own};
  const auto most = last_of(votes_for(file, context), context, limit);
  if (most) return RecipeFacts{.block = *most, .of_most = true};
  // Too few families have scripts for a vote: nothing is set.
  if (file.at("experts").items().empty() && file.at("dense").items().empty())
    return RecipeFacts{.block = JsonValue::parse("{}", file.file()), .of_most = true};
  return std::nullopt;
}

}  // namespace orrery
