// Reads the model's error, finds a run's region and joins the parts of a prediction's range.
#include "sim/outcome/model_error.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/json.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/assumptions.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

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

// Measured runs bear out the stated ranges of what they ran on; elsewhere all of a range counts.
bool is_measured(const RunKind& run, const ModelError& error) {
  return error.seen.empty() || error.seen.devices.contains(run.device);
}

double joined(double a, double b) { return std::sqrt(a * a + b * b); }

// Half-width of what the run leaves of all that was measured, with a sentence for each.
double beyond_seen(const RunKind& run, const ModelError& error, std::vector<std::string>& widened) {
  if (error.seen.empty()) return 0;
  double width = 0;
  const auto leave = [&](const std::set<std::string>& seen, const std::string& name, double by,
                         const char* what) {
    if (seen.contains(name)) return;
    width = joined(width, by);
    widened.push_back(fmt::format("no measured run {} {}", what, name));
  };
  leave(error.seen.devices, run.device, error.unseen.device, "on");
  leave(error.seen.stacks, run.stack, error.unseen.stack, "of");
  leave(error.seen.precisions, run.precision, error.unseen.precision, "in");
  if (run.gpus > error.seen.most_gpus && error.seen.most_gpus > 0) {
    const double doublings = std::log2(run.gpus / error.seen.most_gpus);
    width = joined(width, error.unseen.doubling * doublings);
    widened.push_back(fmt::format("{:.0f} times the largest measured run", std::exp2(doublings)));
  }
  if (run.blanks > 0) {
    width = joined(width, error.blank * std::sqrt(static_cast<double>(run.blanks)));
    widened.push_back(fmt::format("{} setting{} assumed", run.blanks, run.blanks == 1 ? "" : "s"));
  }
  return width;
}

}  // namespace

double RangeParts::total() const {
  return std::sqrt(parameters * parameters + model * model + run_to_run * run_to_run +
                   extrapolation * extrapolation);
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
  const JsonValue file = JsonValue::load(path);
  file.expect_only({"written_by", "whole", "regions", "stated_share", "run_to_run", "blank",
                    "unseen", "seen", "collectives", "memory"});
  ModelError error;
  error.whole = read_region(file.at("whole"));
  for (const auto& [name, region] : file.at("regions").members())
    error.regions[name] = read_region(region);
  error.stated_share = file.at("stated_share").number();
  error.run_to_run = file.at("run_to_run").number();
  error.blank = file.at("blank").number();
  const JsonValue unseen = file.at("unseen");
  unseen.expect_only({"device", "stack", "precision", "doubling"});
  error.unseen = {.device = unseen.at("device").number(),
                  .stack = unseen.at("stack").number(),
                  .precision = unseen.at("precision").number(),
                  .doubling = unseen.at("doubling").number()};
  const JsonValue seen = file.at("seen");
  seen.expect_only({"devices", "stacks", "precisions", "most_gpus"});
  error.seen = {.devices = read_names(seen.at("devices")),
                .stacks = read_names(seen.at("stacks")),
                .precisions = read_names(seen.at("precisions")),
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
  Json regions = Json::object(), collectives = Json::object();
  for (const auto& [name, region] : error.regions) regions[name] = region_json(region);
  for (const auto& [name, range] : error.collectives)
    collectives[name] = {{"below", range.below}, {"above", range.above}};
  const Json file = {{"written_by", "orrery validate --leave-out blind --model-error FILE"},
                     {"whole", region_json(error.whole)},
                     {"regions", regions},
                     {"stated_share", rounded(error.stated_share)},
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
                       {"most_gpus", error.seen.most_gpus}}},
                     {"collectives", collectives},
                     {"memory", error.memory}};
  return file.dump(2) + '\n';
}

RunKind run_kind(const Stack& stack, const Model& model, const Job& job, const Layout& layout,
                 const Device& device) {
  const bool tuning = job.task == Task::sft || job.task == Task::lora;
  const char* kind = tuning ? "tuning" : model.has_experts() ? "experts" : "dense";
  return {.stack = stack.name,
          .kind = is_training(job.task) ? kind : "inference",
          .architecture = std::string(to_text(device.architecture)),
          .device = device.name,
          .precision = std::string(to_text(layout.precision)),
          .gpus = static_cast<double>(layout.gpus())};
}

RunKind run_kind(const Scenario& s) {
  return run_kind(s.stack, s.model, s.job, s.layout, s.cluster.device);
}

std::vector<std::string> error_regions(const RunKind& run) {
  return {fmt::format("{}, {}, {}", run.stack, run.kind, run.architecture),
          fmt::format("{}, {}", run.stack, run.kind), run.kind};
}

PredictionRange prediction_range(const RunKind& run, const std::vector<Assumption>& assumptions,
                                 const std::vector<Extrapolation>& extrapolations,
                                 const ModelError* error) {
  std::vector<Assumption> inside, outside;
  for (const Assumption& a : assumptions)
    (is_extrapolated(a, extrapolations) ? outside : inside).push_back(a);
  const double share = error != nullptr && is_measured(run, *error) ? error->stated_share : 1;
  const LogRange values = join_effects(inside), grown = join_effects(outside);
  PredictionRange range;
  range.below = {.parameters = share * values.below, .extrapolation = share * grown.below};
  range.above = {.parameters = share * values.above, .extrapolation = share * grown.above};
  if (error == nullptr) return range;
  const auto names = error_regions(run);
  const ErrorRegion& region = error->region(names);
  range.region = "all";
  for (const std::string& name : names)
    if (error->regions.contains(name)) {
      range.region = name;
      break;
    }
  const double beyond = beyond_seen(run, *error, range.widened);
  for (RangeParts* side : {&range.below, &range.above}) {
    side->model = side == &range.below ? region.below : region.above;
    side->run_to_run = error->run_to_run;
    side->extrapolation = joined(side->extrapolation, beyond);
  }
  return range;
}

}  // namespace orrery
