// SPDX-License-Identifier: Apache-2.0
// Turns what a serving engine is told into the settings of one step.
#include "sim/launch/configurations/one_step.h"

#include <string_view>
#include <utility>

namespace orrery {
namespace {

constexpr std::string_view layout = "tp, pp, dp, ep";

// What becomes of a setting of serve in one step.
void move_item(GivenItem item, GivenRun& out) {
  if (item.key == "model" || item.key == "stack" || item.key == "precision") {
    out.understood.push_back(std::move(item));
  } else if (item.key == "engines") {
    item.key = layout;
    out.understood.push_back(std::move(item));
  } else if (item.key == "eager" && item.becomes == "all") {
    item.key = "launch";
    item.becomes = "eager";
    out.understood.push_back(std::move(item));
  } else if (item.key == "spec" || item.key == "cache" || item.key == "eager") {
    item.note = "one step is predicted without it: orrery serve has it";
    item.key = item.becomes = "";
    out.not_understood.push_back(std::move(item));
  } else {
    item.note = "of the engine's requests: orrery serve has it";
    item.key = item.becomes = "";
    out.without_effect.push_back(std::move(item));
  }
}

void assume(GivenRun& out, const char* key, const std::string& value, const char* name,
            const char* note) {
  out.settings[key] = value;
  out.defaulted.push_back({.name = name, .key = key, .becomes = value, .note = note});
}

}  // namespace

GivenRun one_step_of(const GivenRun& engine, const SortedJson& asked) {
  GivenRun out = engine;
  out.settings = SortedJson::object();
  out.understood.clear();
  out.defaulted.clear();
  for (const GivenItem& item : engine.understood) move_item(item, out);
  for (const GivenItem& item : engine.defaulted) {
    GivenItem own = item;
    if (own.key == "engines") own.key = layout;
    if (own.key == layout || own.key == "stack" || own.key == "precision")
      out.defaulted.push_back(std::move(own));
  }
  for (const char* key : {"model", "stack", "precision"})
    if (const auto at = engine.settings.find(key); at != engine.settings.end())
      out.settings[key] = *at;
  if (const auto at = engine.settings.find("eager"); at != engine.settings.end() && *at == "all")
    out.settings["launch"] = "eager";
  const GivenEngine& e = engine.engine;
  const std::int64_t ranks = e.tp * e.attention_dp;
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"tp", e.tp}, {"pp", e.pp}, {"dp", e.attention_dp}, {"gpus", ranks * e.pp}};
  for (const auto& [key, size] : sizes) out.settings[key] = size;
  if (e.experts && ranks > 1) {  // ranks that do not spread experts split their width
    out.settings["ep"] = e.ep;
    out.settings["etp"] = ranks / e.ep;
  }
  if (e.copies > 0) out.settings["expert_replicas"] = e.copies;
  if (!asked.contains("phase"))
    assume(out, "phase", "decode", "the steps that engines have most of",
           "--phase prefill predicts a prompt's");
  for (const char* key : {"tp", "pp", "gpus"})
    if (asked.contains(key)) out.settings.erase("dp");
  for (const auto& [key, value] : asked.items()) out.settings.erase(key);
  return out;
}

}  // namespace orrery
