// SPDX-License-Identifier: Apache-2.0
// Finds and reads the constants of a generation's collective library.
#include "sim/engine/collective_costs.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "hw_models/catalog.h"
#include "sim/base/json/tree.h"

namespace orrery {
namespace {

template <class T>
void read_optional(const JsonValue& at, std::string_view key, Sourced<T>& into) {
  if (const auto value = at.find(key))
    into = read_sourced<T>(*value);
  else if (!into.known())
    into.reason = "not a term of this algorithm";
}

// `step` is what holds where the file says nothing.
StepCosts read_step(const JsonValue& at, StepCosts step = {}) {
  at.expect_only({"base", "hop", "far_hop", "network_hop", "share", "network_share", "window",
                  "copy", "largest", "least_ranks", "rank_exponent", "token", "row", "sm_rate",
                  "network_sm_rate", "channels", "channel", "pass", "sms"});
  step.present = true;
  read_optional(at, "base", step.base);
  if (!step.base.known()) at.at("base").fail("a value");
  read_optional(at, "hop", step.hop);
  read_optional(at, "far_hop", step.far_hop);
  read_optional(at, "network_hop", step.network_hop);
  read_optional(at, "share", step.share);
  read_optional(at, "network_share", step.network_share);
  read_optional(at, "window", step.window);
  read_optional(at, "copy", step.copy);
  read_optional(at, "largest", step.largest);
  read_optional(at, "least_ranks", step.least_ranks);
  read_optional(at, "rank_exponent", step.rank_exponent);
  read_optional(at, "token", step.token);
  read_optional(at, "row", step.row);
  read_optional(at, "sm_rate", step.sm_rate);
  read_optional(at, "network_sm_rate", step.network_sm_rate);
  read_optional(at, "channels", step.channels);
  read_optional(at, "channel", step.channel);
  read_optional(at, "pass", step.pass);
  read_optional(at, "sms", step.sms);
  return step;
}

void read_protocols(const JsonValue& at, StepCosts (&into)[collective_protocol_count]) {
  at.expect_only({"ll", "ll128", "simple"});
  for (const auto& [name, value] : at.members())
    into[static_cast<int>(*collective_protocol_text.find(name))] = read_step(value);
}

constexpr auto phase_text = enum_names<ExchangePhase>({"dispatch", "combine", "prepare"});

// {"direct": {"simple": {...}}, "combine": {"direct": {...}}}: algorithms stand for dispatch and
// for everything that has no phases.
void read_algorithms(const JsonValue& at, LibraryStep step, CollectiveCosts& into) {
  for (const auto& [key, value] : at.members()) {
    if (const auto algorithm = collective_algorithm_text.find(key)) {
      step.algorithm = *algorithm;
      value.expect_only({"ll", "ll128", "simple"});
      for (const auto& [protocol, costs] : value.members()) {
        step.protocol = *collective_protocol_text.find(protocol);
        into.libraries[step] = read_step(costs);
      }
    } else if (const auto phase = phase_text.find(key); phase > ExchangePhase::dispatch) {
      LibraryStep of_phase = step;
      of_phase.phase = *phase;
      read_algorithms(value, of_phase, into);
    } else {
      at.fail("an algorithm, combine or prepare; not \"" + key + '"');
    }
  }
}

// {"broadcast": {"ring": {"ll": {...}}}}.
void read_kinds(const JsonValue& at, CollectiveCosts& into) {
  for (const auto& [name, algorithms] : at.members()) {
    KindStep step;
    const auto kind = collective_kind_text.find(name);
    if (!kind) algorithms.fail("kinds of collectives; not \"" + name + '"');
    step.kind = *kind;
    for (const auto& [key, protocols] : algorithms.members()) {
      const auto algorithm = collective_algorithm_text.find(key);
      if (!algorithm) protocols.fail("algorithms; not \"" + key + '"');
      step.algorithm = *algorithm;
      protocols.expect_only({"ll", "ll128", "simple"});
      for (const auto& [protocol, costs] : protocols.members()) {
        step.protocol = *collective_protocol_text.find(protocol);
        into.kinds[step] = read_step(costs, into.of(step.algorithm, step.protocol));
      }
    }
  }
}

}  // namespace

StepCosts::StepCosts() = default;
StepCosts::StepCosts(const StepCosts&) = default;
StepCosts::StepCosts(StepCosts&&) noexcept = default;
StepCosts& StepCosts::operator=(const StepCosts&) = default;
StepCosts& StepCosts::operator=(StepCosts&&) noexcept = default;
StepCosts::~StepCosts() = default;

std::string to_text(const LibraryStep& step) {
  std::string text = "libraries." + std::string(to_text(step.library)) + ".";
  if (step.phase != ExchangePhase::dispatch) text += std::string(phase_text[step.phase]) + ".";
  return text + std::string(to_text(step.algorithm)) + "." + std::string(to_text(step.protocol));
}

std::string to_text(const KindStep& step) {
  return "kinds." + std::string(to_text(step.kind)) + "." + std::string(to_text(step.algorithm)) +
         "." + std::string(to_text(step.protocol));
}

CollectiveCosts read_collective_costs(const JsonValue& file) {
  CollectiveCosts costs;
  costs.name = file.at("name").text();
  costs.title = file.at("title").text();
  const auto algorithms = collective_algorithm_text.names();
  for (const auto& [key, value] : file.members()) {
    if (key == "name" || key == "title" || key == "based_on" || key == "kinds") continue;
    if (key == "send") {
      read_protocols(value, costs.send);
    } else if (key == "network_ranks") {
      costs.network_ranks = read_sourced<double>(value);
    } else if (key == "efa_hop") {
      costs.efa_hop = read_sourced<Seconds>(value);
    } else if (key == "libraries") {
      for (const auto& [name, algorithms_of] : value.members()) {
        const auto library = collective_library_text.find(name);
        if (!library) value.fail("collective libraries; not \"" + name + '"');
        read_algorithms(algorithms_of, {.library = *library}, costs);
      }
    } else if (const auto algorithm = collective_algorithm_text.find(key)) {
      read_protocols(value, costs.steps[static_cast<int>(*algorithm)]);
    } else {
      throw Error({.file = file.file(),
                   .path = key,
                   .found = "an unknown key",
                   .expected = "an algorithm, send, kinds, libraries, network_ranks or efa_hop",
                   .nearest = nearest_name(key, algorithms)});
    }
  }
  // Last: they stand on the algorithms' own constants.
  if (const auto kinds = file.find("kinds")) read_kinds(*kinds, costs);
  if (!costs.network_ranks.known()) costs.network_ranks.reason = "no limit is known";
  if (!costs.efa_hop.known()) costs.efa_hop.reason = "nothing is known of this library on EFA";
  if (!costs.of(CollectiveAlgorithm::ring, CollectiveProtocol::simple).present)
    file.fail("\"ring\" with \"simple\": every library has it");
  if (!costs.of(CollectiveAlgorithm::direct, CollectiveProtocol::simple).present)
    file.fail("\"direct\" with \"simple\": all-to-all needs it");
  if (!costs.send[static_cast<int>(CollectiveProtocol::simple)].present)
    file.fail("\"send\" with \"simple\": pipelines need it");
  return costs;
}

namespace {

JsonValue generation_file(Architecture architecture) {
  return load_catalog_entry("hw_models/calibration/collectives", "collective costs",
                            std::string(to_text(architecture)));
}

}  // namespace

CollectiveCosts load_collective_costs(Architecture architecture) {
  return read_collective_costs(generation_file(architecture));
}

std::optional<CollectiveCosts> read_fitted_costs(Architecture architecture,
                                                 const JsonValue& calibration) {
  const auto section = calibration.find("collectives");
  if (!section) return std::nullopt;
  SortedJson merged = generation_file(architecture).raw();
  merge_overlay(merged, section->raw());
  return read_collective_costs(JsonValue::from(std::move(merged), calibration.file()));
}

CollectiveCosts load_collective_costs(const Device& device) {
  const auto own = data_root() / "hw_models" / "calibration" / device.name / "fit.json";
  std::error_code unnameable;  // a name may be longer than a file's can be
  if (std::filesystem::exists(own, unnameable))
    if (auto fitted = read_fitted_costs(device.architecture, JsonValue::load(own))) return *fitted;
  return load_collective_costs(device.architecture);
}

}  // namespace orrery
