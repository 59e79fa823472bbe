// SPDX-License-Identifier: Apache-2.0
// Reads the model's error, finds a run's region and joins the parts of a prediction's range.
#include "sim/outcome/model_error.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/json/json.h"
#include "sim/base/text/words.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/assumptions.h"

namespace orrery {
namespace {

ErrorRegion read_region(const JsonValue& at) {
  at.expect_only({"below", "above", "rows", "sources"});
  return {.below = at.at("below").number(),
          .above = at.at("above").number(),
          .rows = static_cast<int>(at.at("rows").integer()),
          .sources = static_cast<int>(at.at("sources").integer())};
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Json region_json(const ErrorRegion& region) {
  return {{"below", rounded(region.below)},
          {"above", rounded(region.above)},
          {"rows", region.rows},
          {"sources", region.sources}};
}

std::set<std::string> read_names(const JsonValue& at) {
  std::set<std::string> names;
  for (const JsonValue& item : at.items()) names.insert(item.text());
  return names;
}

bool is_extrapolated(const Assumption& a, const std::vector<Extrapolation>& extrapolations) {
  return std::any_of(extrapolations.begin(), extrapolations.end(), [&](const Extrapolation& e) {
    return e.growth > 0 && a.path.ends_with("calibration." + e.curve);
  });
}

double joined(double a, double b) { return std::sqrt(a * a + b * b); }

Difficulty::Trait read_trait(const JsonValue& at) {
  at.expect_only({"slope", "centre"});
  return {.slope = at.at("slope").number(), .centre = at.at("centre").number()};
}

Json trait_json(const Difficulty::Trait& trait) {
  return {{"slope", rounded(trait.slope)}, {"centre", rounded(trait.centre)}};
}

}  // namespace

double RangeParts::total() const {
  return std::sqrt(parameters * parameters + model * model + run_to_run * run_to_run +
                   extrapolation * extrapolation);
}

DifficultyTraits difficulty_traits(const RunKind& run) {
  return {.exposed = std::clamp(run.exposed, 0.0, 0.5),
          .near_limit = std::clamp((run.filled - 0.8) / 0.2, 0.0, 1.0),
          .waits = std::clamp(run.waits, 0.0, 1.0)};
}

double ModelError::scale(const RunKind& run) const {
  const DifficultyTraits traits = difficulty_traits(run);
  double log_scale = 0;
  for (const DifficultyPart& part : difficulty_parts) {
    const Difficulty::Trait& trait = difficulty.*part.trait;
    log_scale += trait.slope * (traits.*part.value - trait.centre);
  }
  return std::exp(log_scale);
}

bool ModelError::has_measured(const RunKind& run) const {
  return run.program.empty() && seen.devices.contains(run.device) &&
         seen.families.contains(family_of(run));
}

std::vector<std::string> ModelError::regions_of(const RunKind& run) const {
  std::vector<std::string> names = error_regions(run);
  if (!has_measured(run)) return names;
  const std::vector<std::string> measured = measured_regions(run);
  names.insert(names.begin(), measured.begin(), measured.end());
  return names;
}

double ModelError::stated_share_of(const RunKind& run) const {
  if (seen.empty() || has_measured(run)) return stated_share;
  return seen.devices.contains(run.device) ? new_share : 1;
}

double ModelError::beyond_seen(const RunKind& run, std::vector<std::string>* widened) const {
  if (seen.empty()) return 0;
  double width = 0;
  const auto leave = [&](const std::set<std::string>& known, const std::string& name, double by,
                         const char* what) {
    if (known.contains(name)) return;
    width = joined(width, by);
    if (widened != nullptr) widened->push_back(fmt::format("no measured run {} {}", what, name));
  };
  leave(seen.devices, run.device, unseen.device, "on");
  // Stand-ins have regions of their own.
  if (run.program.empty()) leave(seen.stacks, run.stack, unseen.stack, "of");
  leave(seen.precisions, run.precision, unseen.precision, "in");
  if (run.gpus > seen.most_gpus && seen.most_gpus > 0) {
    const double doublings = std::log2(run.gpus / seen.most_gpus);
    width = joined(width, unseen.doubling * doublings);
    // A few percent more are no other size.
    if (widened != nullptr && doublings > 0.1)
      widened->push_back(
          fmt::format("{:.2g} times the largest measured run", std::exp2(doublings)));
  }
  return width;
}

const ErrorRegion& ModelError::region(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (const auto found = regions.find(name); found != regions.end()) return found->second;
  return whole;
}

ModelError::Range ModelError::collective(const std::string& library, bool crosses_domains,
                                         bool large) const {
  const auto found = collectives.find(collective_region(library, crosses_domains, large));
  if (found != collectives.end()) return found->second;
  Range widest{.below = 1 - std::exp(-whole.above), .above = std::expm1(whole.below)};
  for (const auto& [name, range] : collectives) {
    widest.below = std::max(widest.below, range.below);
    widest.above = std::max(widest.above, range.above);
  }
  return widest;
}

std::string collective_region(const std::string& library, bool crosses_domains, bool large) {
  return fmt::format("{}, {}, {} 1 MiB", library, crosses_domains ? "across" : "one domain",
                     large ? "from" : "below");
}

ModelError load_model_error(const std::filesystem::path& path) {
  return read_model_error(JsonValue::load(path));
}

ModelError read_model_error(const JsonValue& file) {
  file.expect_only({"written_by", "whole", "regions", "difficulty", "stated_share", "new_share",
                    "run_to_run", "blank", "unseen", "seen", "collectives", "memory"});
  ModelError error;
  error.whole = read_region(file.at("whole"));
  for (const auto& [name, region] : file.at("regions").members())
    error.regions[name] = read_region(region);
  const JsonValue difficulty = file.at("difficulty");
  difficulty.expect_only({"exposed", "near_limit", "waits"});
  for (const DifficultyPart& part : difficulty_parts)
    error.difficulty.*part.trait = read_trait(difficulty.at(part.name));
  error.stated_share = file.at("stated_share").number();
  error.new_share = file.at("new_share").number();
  error.run_to_run = file.at("run_to_run").number();
  error.blank = file.at("blank").number();
  const JsonValue unseen = file.at("unseen");
  unseen.expect_only({"device", "stack", "precision", "doubling"});
  error.unseen = {.device = unseen.at("device").number(),
                  .stack = unseen.at("stack").number(),
                  .precision = unseen.at("precision").number(),
                  .doubling = unseen.at("doubling").number()};
  const JsonValue seen = file.at("seen");
  seen.expect_only({"devices", "stacks", "precisions", "families", "most_gpus"});
  error.seen = {.devices = read_names(seen.at("devices")),
                .stacks = read_names(seen.at("stacks")),
                .precisions = read_names(seen.at("precisions")),
                .families = read_names(seen.at("families")),
                .most_gpus = seen.at("most_gpus").number()};
  for (const auto& [name, range] : file.at("collectives").members()) {
    range.expect_only({"below", "above"});
    error.collectives[name] = {.below = range.at("below").number(),
                               .above = range.at("above").number()};
  }
  error.memory = file.at("memory").number();
  return error;
}

std::string to_json_text(const ModelError& error) {
  Json file = {{"written_by", "orrery validate --leave-out nested --model-error FILE"}};
  file.update(model_error_json(error));
  return file.dump(2) + '\n';
}

Json model_error_json(const ModelError& error) {
  Json regions = Json::object(), collectives = Json::object(), difficulty = Json::object();
  for (const auto& [name, region] : error.regions) regions[name] = region_json(region);
  for (const auto& [name, range] : error.collectives)
    collectives[name] = {{"below", range.below}, {"above", range.above}};
  for (const DifficultyPart& part : difficulty_parts)
    difficulty[part.name] = trait_json(error.difficulty.*part.trait);
  return {{"whole", region_json(error.whole)},
          {"regions", regions},
          {"difficulty", difficulty},
          {"stated_share", rounded(error.stated_share)},
          {"new_share", rounded(error.new_share)},
          {"run_to_run", rounded(error.run_to_run)},
          {"blank", rounded(error.blank)},
          {"unseen",
           {{"device", rounded(error.unseen.device)},
            {"stack", rounded(error.unseen.stack)},
            {"precision", rounded(error.unseen.precision)},
            {"doubling", rounded(error.unseen.doubling)}}},
          {"seen",
           {{"devices", error.seen.devices},
            {"stacks", error.seen.stacks},
            {"precisions", error.seen.precisions},
            {"families", error.seen.families},
            {"most_gpus", error.seen.most_gpus}}},
          {"collectives", collectives},
          {"memory", error.memory}};
}

RunKind run_kind(const Stack& stack, const Model& model, const Job& job, const Layout& layout,
                 const Device& device) {
  const bool tuning = job.task == Task::sft || job.task == Task::lora;
  const char* kind = tuning ? "tuning" : model.has_experts() ? "experts" : "dense";
  return {.stack = stack.name,
          .program = stack.stands_in,
          .unscripted = stack.unscripted,
          .family = model.family,
          .kind = is_training(job.task) ? kind : "inference",
          .architecture = std::string(to_text(device.architecture)),
          .device = device.name,
          .precision = std::string(to_text(layout.precision)),
          .gpus = static_cast<double>(layout.gpus()),
          .unknown_release = stack.asked_is_later ? stack.asked : ""};
}

RunKind run_kind(const Scenario& s) {
  return run_kind(s.stack, s.model, s.job, s.layout, s.cluster.device);
}

void add_step(RunKind& run, const StageBreakdown& pacing, const MemoryVerdict& memory) {
  double all = 0, waits = 0;
  for (int i = 0; i < label_count; ++i) {
    const auto label = static_cast<Label>(i);
    const auto time = static_cast<double>(pacing[label].ps);
    all += time;
    if (is_communication(label)) waits += time;
  }
  run.exposed = all > 0 ? waits / all : 0;
  run.step = to_seconds(Ticks{static_cast<std::int64_t>(all)});
  run.filled = 1 / (1 + memory.margin);
}

std::vector<std::string> error_regions(const RunKind& run) {
  if (!run.program.empty()) return {"stand-in, " + run.kind, "stand-in"};
  if (run.unscripted) return {"no script, " + run.kind, "no script"};
  return {run.kind};
}

std::vector<std::string> measured_regions(const RunKind& run) {
  return {fmt::format("{}, {}, {}, family measured", run.stack, run.kind, run.architecture),
          fmt::format("{}, {}, family measured", run.stack, run.kind),
          fmt::format("{}, family measured", run.kind)};
}

std::string family_of(const RunKind& run) { return run.stack + ", " + run.family; }

// What hosts do around a short step (optimizer, reducer, loader, synchronisation) is more than one
// constant: training steps below 50 ms of small models on one and two accelerators, as users of 0.5
// measured them, took 10% (at 50 ms) to 60% (the shortest) longer than predicted.
static double short_step_above(const RunKind& run) {
  constexpr double short_seconds = 0.05, at_most = 0.10, at_least = 0.60;
  if (run.kind == "inference" || run.step.si() <= 0 || run.step.si() >= short_seconds) return 0;
  const double shorter = 1 - run.step.si() / short_seconds;
  return std::log1p(at_most + (at_least - at_most) * shorter);
}

PredictionRange prediction_range(const RunKind& run, const std::vector<Assumption>& assumptions,
                                 const std::vector<Extrapolation>& extrapolations,
                                 const ModelError* error) {
  std::vector<Assumption> inside, outside;
  for (const Assumption& a : assumptions)
    (is_extrapolated(a, extrapolations) ? outside : inside).push_back(a);
  const double share = error != nullptr ? error->stated_share_of(run) : 1;
  const LogRange values = join_effects(inside), grown = join_effects(outside);
  PredictionRange range;
  // The share is what measured training runs bear out of stated ranges, of growth outside of
  // measured shapes too: many of them lie there. Inference has no such runs: all of its growth
  // counts.
  const double of_growth = run.kind == "inference" ? 1 : share;
  range.below = {.parameters = share * values.below, .extrapolation = of_growth * grown.below};
  range.above = {.parameters = share * values.above, .extrapolation = of_growth * grown.above};
  if (error == nullptr) return range;
  const std::vector<std::string> names = error->regions_of(run);
  const ErrorRegion& region = error->region(names);
  range.region = "all";
  for (const std::string& name : names)
    if (error->regions.contains(name)) {
      range.region = name;
      break;
    }
  double beyond = error->beyond_seen(run, &range.widened);
  if (!run.program.empty())
    range.widened.push_back(fmt::format("{} stands in for {}", run.stack, run.program));
  if (run.blanks > 0) {
    beyond = joined(beyond, error->blank * std::sqrt(static_cast<double>(run.blanks)));
    range.widened.push_back(plural(run.blanks, "setting") + " assumed");
  }
  if (!run.unknown_release.empty()) {
    beyond = joined(beyond, error->unseen.stack);
    range.widened.push_back(
        fmt::format("release {} of {}, of which nothing is known", run.unknown_release, run.stack));
  }
  const double short_step = short_step_above(run);
  if (short_step > 0)
    range.widened.push_back(
        "a step below 50 ms: measured ones took 10 to 60% longer than predicted");
  const double scale = error->scale(run);
  for (RangeParts* side : {&range.below, &range.above}) {
    side->model = scale * (side == &range.below ? region.below : region.above);
    side->run_to_run = error->run_to_run;
    side->extrapolation = joined(side->extrapolation, beyond);
  }
  range.above.extrapolation = joined(range.above.extrapolation, short_step);
  return range;
}

}  // namespace orrery
