// Knows where the constants of a generation's collective library are, and how their file reads.
#include "sim/engine/collective_costs.h"

#include <string_view>

#include "hw_models/catalog.h"

namespace orrery {
namespace {

template <class T>
void read_optional(const JsonValue& at, std::string_view key, Sourced<T>& into) {
  if (const auto value = at.find(key))
    into = read_sourced<T>(*value);
  else
    into.reason = "not a term of this algorithm";
}

StepCosts read_step(const JsonValue& at) {
  at.expect_only({"base", "hop", "network_hop", "share", "network_share", "window", "copy",
                  "largest", "least_ranks", "rank_exponent"});
  StepCosts step;
  step.present = true;
  step.base = read_sourced<Seconds>(at.at("base"));
  if (!step.base.known()) at.at("base").fail("a value");
  read_optional(at, "hop", step.hop);
  read_optional(at, "network_hop", step.network_hop);
  read_optional(at, "share", step.share);
  read_optional(at, "network_share", step.network_share);
  read_optional(at, "window", step.window);
  read_optional(at, "copy", step.copy);
  read_optional(at, "largest", step.largest);
  read_optional(at, "least_ranks", step.least_ranks);
  read_optional(at, "rank_exponent", step.rank_exponent);
  return step;
}

void read_protocols(const JsonValue& at, StepCosts (&into)[collective_protocol_count]) {
  at.expect_only({"ll", "ll128", "simple"});
  for (const auto& [name, value] : at.members())
    into[static_cast<int>(*collective_protocol_from(name))] = read_step(value);
}

// Generations with the same library constants share a file.
std::string_view file_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::volta:
      return "volta";
    case Architecture::ampere:
      return "ampere";
    case Architecture::ada:
      return "ada";
    case Architecture::hopper:
      return "hopper";
    case Architecture::blackwell:
    case Architecture::blackwell_ultra:
      return "blackwell";
    case Architecture::rubin:
    case Architecture::rubin_ultra:
    case Architecture::feynman:
      return "rubin";
    case Architecture::cdna2:
    case Architecture::cdna3:
    case Architecture::cdna4:
    case Architecture::cdna5:
      return "cdna";
    case Architecture::tpu:
      return "tpu";
    case Architecture::trainium:
      return "trainium";
    case Architecture::gaudi:
      return "gaudi";
    case Architecture::other:
      return "other";
  }
  return "other";
}

}  // namespace

CollectiveCosts read_collective_costs(const JsonValue& file) {
  CollectiveCosts costs;
  costs.name = file.at("name").text();
  costs.title = file.at("title").text();
  const auto algorithms = collective_algorithm_names();
  for (const auto& [key, value] : file.members()) {
    if (key == "name" || key == "title" || key == "based_on") continue;
    if (key == "send") {
      read_protocols(value, costs.send);
    } else if (key == "network_ranks") {
      costs.network_ranks = read_sourced<double>(value);
    } else if (const auto algorithm = collective_algorithm_from(key)) {
      read_protocols(value, costs.steps[static_cast<int>(*algorithm)]);
    } else {
      throw Error({.file = file.file(),
                   .path = key,
                   .found = "an unknown key",
                   .expected = "an algorithm, send or network_ranks",
                   .nearest = nearest_name(key, algorithms)});
    }
  }
  if (!costs.network_ranks.known()) costs.network_ranks.reason = "no limit is known";
  if (!costs.of(CollectiveAlgorithm::ring, CollectiveProtocol::simple).present)
    file.fail("\"ring\" with \"simple\": every library has it");
  if (!costs.of(CollectiveAlgorithm::direct, CollectiveProtocol::simple).present)
    file.fail("\"direct\" with \"simple\": all-to-all needs it");
  if (!costs.send[static_cast<int>(CollectiveProtocol::simple)].present)
    file.fail("\"send\" with \"simple\": pipelines need it");
  return costs;
}

CollectiveCosts load_collective_costs(Architecture architecture) {
  return read_collective_costs(load_catalog_entry(
      "hw_models/calibration/collectives", "collective costs", std::string(file_of(architecture))));
}

CollectiveCosts load_collective_costs(const Device& device) {
  return load_collective_costs(device.architecture);
}

}  // namespace orrery
