// SPDX-License-Identifier: Apache-2.0
// Moves every numeric key of accelerators, wirings and hosts through a cluster's overrides: some
// answer changes, or the key is refused, or it stands here with the reason why nothing does.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

#include "hw_models/catalog.h"
#include "hw_models/reliability.h"
#include "sim/base/json/tree.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/money/bill.h"
#include "sim/outcome/months/job.h"
#include "tests/explain/whole_scenarios.h"
#include "topologies/parts.h"

using namespace orrery;

namespace {

// What no prediction, bill, count of failures or count of parts of a training run depends on.
const std::map<std::string, std::string>& without_effect() {
  static const std::map<std::string, std::string> keys = {
      {"accelerator.available", "a date; plan waits for it, which tests/app/plan_test.cpp holds"},
      {"accelerator.compute.tensor.fp32", "of devices without narrower formats alone"},
      {"accelerator.compute.tensor.fp16", "of FP16 recipes alone, which a V100 below runs"},
      {"accelerator.compute.tensor.fp6", "of FP6 recipes alone, of which no stack has one"},
      {"accelerator.compute.tensor.fp4", "of FP4 recipes alone"},
      {"accelerator.compute.tensor.fp8", "of FP8 recipes alone, which an H100 below runs"},
      {"accelerator.memory.capacity", "of devices whose driver's figure (usable) is not known"},
      {"accelerator.host_link.pcie", "where nothing is offloaded, or there is a C2C link"},
      {"fabric.scale_out.reserved_hosts", "counts of a full wiring alone: `topology` tells them"},
      {"fabric.scale_out.paths_per_flow", "of hashed routing alone"},
      {"fabric.scale_out.tiers.2.oversubscription", "nothing lies above the last tier"},
      {"fabric.scale_up.latency",
       "`topology` tells it; inside a domain libraries start as fast as they were measured to"},
      {"accelerator.compute.vector_fp32",
       "no operation of a layer states element-wise FLOP: all of these wait for memory"},
      {"host.hosts_per_rack", "where racks are not bought with the accelerators"},
      {"host.launch_time",
       "of serving engines alone; tests/engine/engine_prices_test.cpp holds it"},
      {"host.memory", "what this small model offloads fits into a hundredth of it"},
  };
  return keys;
}

struct Leaf {
  std::string at = "";  // keys and indices with '/' between
  std::vector<std::string> path;
  double number = 0;
  std::string unit;  // with its blank; plain numbers: "-"
  bool sourced = false, whole = false, in_list = false;
};

void collect(const SortedJson& at, const Leaf& here, std::vector<Leaf>& leaves) {
  Leaf leaf = here;
  const SortedJson& value = at.is_object() && at.contains("value") ? at["value"] : at;
  leaf.sourced = &value != &at;
  if (value.is_number()) {
    leaf.number = value.get<double>();
    leaf.unit = "-";
    leaf.whole = value.is_number_integer();
    leaves.push_back(leaf);
  } else if (leaf.sourced && value.is_string()) {
    const std::string text = value.get<std::string>();
    char* end = nullptr;
    leaf.number = std::strtod(text.c_str(), &end);
    leaf.unit = end;
    if (end != text.c_str() && !leaf.unit.starts_with("-")) leaves.push_back(leaf);  // no date
  } else if (!leaf.sourced && at.is_object()) {
    for (const auto& [key, inner] : at.items()) {
      Leaf next = here;
      next.at += (here.at.empty() ? "" : "/") + key;
      next.path.push_back(key);
      collect(inner, next, leaves);
    }
  } else if (!leaf.sourced && at.is_array()) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      Leaf next = here;
      next.at += (here.at.empty() ? "" : "/") + std::to_string(i);
      next.path.push_back(std::to_string(i));
      next.in_list = true;
      collect(at[i], next, leaves);
    }
  }
}

// The overlay that changes the leaf alone; a list can be replaced as a whole only.
SortedJson overlay_of(const SortedJson& entry, const Leaf& leaf, double factor) {
  SortedJson value;
  const double number = leaf.number * factor;
  if (leaf.unit != "-")
    value = fmt::format("{:.10g}{}", number, leaf.unit);
  else
    value = leaf.whole ? SortedJson(static_cast<std::int64_t>(std::max(1.0, number)))
                       : SortedJson(number);
  if (leaf.sourced)
    value = {{"value", value},
             {"low", value},
             {"high", value},
             {"evidence", "assumed"},
             {"source", "orrery-estimate"},
             {"reason", "moved"}};
  SortedJson overlay = SortedJson::object();
  if (leaf.in_list) overlay[leaf.path[0]][leaf.path[1]] = entry[leaf.path[0]][leaf.path[1]];
  overlay.at_path(leaf.at) = value;
  return overlay;
}

struct Machine {
  const char* cluster;
  std::vector<Layout> layouts;
  std::int64_t gpus;
};

void add_step(std::vector<double>& all, const Cluster& cluster, const Layout& layout) {
  Scenario s = whole_scenario({.layout = layout, .batch = std::max<std::int64_t>(256, layout.dp)});
  s.cluster = cluster;
  s.cluster.gpus = layout.gpus();
  const StepContext context = step_context(s);
  const StepResult result = step(context, s.model, s.job, s.layout, s.stack);
  all.push_back(static_cast<double>(result.step.ps));
  all.push_back(result.energy_per_gpu.si());
  const MemoryVerdict memory = memory_fit(s.model, s.job, s.layout, s.stack, context.device);
  all.push_back(memory.margin);
  all.push_back(memory.fits ? 1 : 0);
}

// Every answer about the machine, as numbers.
std::vector<double> answers(const Machine& machine, const Cluster& cluster) {
  std::vector<double> all;
  for (const Layout& layout : machine.layouts) add_step(all, cluster, layout);
  Cluster whole = cluster;
  whole.gpus = machine.gpus;
  for (const Ownership how : {Ownership::buy, Ownership::rent}) {
    const BillFacts facts = load_bill_facts(whole, {}, how);
    const Bill b = bill(whole, facts,
                        {.accelerators = machine.gpus,
                         .duration = {.value = Seconds(1e6), .evidence = Evidence::measured},
                         .ownership = how,
                         .ranges = false});
    for (const double v :
         {b.capital_total.value.si(), b.it_peak.value.si(), b.it_mean.value.si(),
          b.floor.racks.value, b.job->cost.value.si(), b.job->embodied_carbon.value.si()})
      all.push_back(v);
  }
  const GoodputJob job{.tokens = 1e12, .checkpoint = Bytes(1e12)};
  const ReliabilityProfile profile = load_reliability("llama3-h100");
  all.push_back(goodput(goodput_case(whole, profile, job)).effective);
  const FabricParts parts = fabric_parts(whole.fabric, machine.gpus);
  for (const SwitchCount& s : parts.switches) {
    all.push_back(static_cast<double>(s.count));
    all.push_back(static_cast<double>(s.ports_used));
  }
  for (const CableRun& run : parts.cables)
    all.push_back(run.rate.si() * static_cast<double>(run.cables));
  all.push_back(parts.scale_out_bisection.si());
  all.push_back(static_cast<double>(most_joined(whole.fabric, 1 << 20)));
  return all;
}

std::vector<Machine> machines() {
  const Layout fp8{.tp = 2, .dp = 32, .precision = PrecisionRecipe::fp8_delayed};
  const Layout dense{.tp = 4, .pp = 2, .dp = 16}, sharded{.dp = 64, .cp = 2, .zero_stage = 3};
  const Layout kept{.tp = 4, .pp = 2, .dp = 16, .offload_optimizer = true};
  return {{"dgx-h100", {dense, sharded, fp8, kept}, 1024},
          {"gb200-nvl72", {dense, sharded, kept}, 1152},
          {"h100-two-sites", {{.tp = 8, .dp = 4096}, kept}, 32768},
          {"h100-roce", {dense, sharded, kept}, 4096},
          {"tpu-v4", {dense, sharded, kept}, 4096}};
}

}  // namespace

TEST_CASE(
    "every numeric key of an accelerator, a wiring and a host changes an answer or says why not") {
  std::map<std::string, bool> moved;  // on any of the machines
  for (const Machine& machine : machines()) {
    const SortedJson file =
        load_catalog_entry("sim/engine/catalog/clusters", "cluster", machine.cluster).raw();
    const std::vector<double> today = answers(machine, load_cluster(machine.cluster, machine.gpus));
    const std::vector<std::pair<std::string, std::string>> parts = {
        {"accelerator", "hw_models/catalog/accelerators"},
        {"fabric", "topologies/catalog"},
        {"host", "hw_models/catalog/hosts"}};
    for (const auto& [part, folder] : parts) {
      std::vector<Leaf> leaves;
      const SortedJson entry =
          load_catalog_entry(folder, part, file.at(part).get<std::string>()).raw();
      collect(entry, {}, leaves);
      REQUIRE(leaves.size() > 3);
      for (const Leaf& leaf : leaves) {
        std::string name = part;
        for (const std::string& key : leaf.path) name += "." + key;
        if (without_effect().contains(name) || leaf.number == 0) continue;
        if (moved[name]) continue;
        bool moves = false;
        for (const double factor : {0.5, 2.0, 0.01, 50.0}) {
          SortedJson overlay = file;
          if (!overlay.contains("overrides")) overlay["overrides"] = SortedJson::object();
          merge_overlay(overlay["overrides"][part], overlay_of(entry, leaf, factor));
          try {
            const Cluster other = read_cluster(JsonValue::from(overlay, "overlay"), machine.gpus);
            moves = answers(machine, other) != today;
          } catch (const Error&) {
            moves = true;  // refused, or beyond what can be
          }
          if (moves) break;
        }
        moved[name] = moved[name] || moves;
      }
    }
  }
  for (const auto& [name, anywhere] : moved) {
    INFO(name);
    CHECK(anywhere);
  }
}
