// SPDX-License-Identifier: Apache-2.0
// Knows how published runs name machines, software and models, and what the catalogues call them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/cluster.h"
#include "topologies/fabric.h"
#include "workloads/layout/layout.h"
#include "workloads/stack/stack.h"

namespace orrery {

// What tables of timed training steps leave out: the machine and the program that ran them.
struct TrainingStepSource {
  std::string source, gpu, interconnect, framework;
};

// Cells that a table filled in for a source and that the source's own program contradicts.
struct CellCorrection {
  std::string source;
  std::optional<std::int64_t> vocab;
  std::optional<std::string> recompute;
  std::string reason;
};

// validation/aliases.json, as validation/README.md documents it.
struct Aliases {
  struct Accelerator {
    std::string name;                   // of the catalogue
    std::vector<std::string> clusters;  // that it comes in; the first is the usual one
  };
  struct ClusterRule {
    std::string gpu, interconnect, system;  // equal to the row's; empty: any
    std::string cluster;
  };
  struct StackRule {
    std::string framework, version, notes, gpu;  // contained in the row's, whatever the case
    std::string stack;
    // Fixed; "calendar": 24.07 in the row; "number": 0.8 in the row; "date", and where the row has
    // no such number: the last release of the row's month or year; empty: the last of all.
    std::string release;
    std::optional<Optimizer> optimizer;
    std::optional<Schedule> schedule;
    bool stand_in = false;  // the stack is another program's
    std::string assumed;
  };
  struct Prefix {
    std::string prefix, model;
  };
  struct UnfitVersion {
    std::string version, reason;
  };
  std::map<std::string, Accelerator> accelerators;
  std::map<std::string, std::string> accelerator_names;  // other names: "H100" is "H100-SXM5-80GB"
  std::vector<ClusterRule> clusters;
  std::vector<StackRule> stacks;
  std::map<std::string, std::string> rounds;     // of a benchmark: the release that it ran
  std::string nearest_stack;                     // for frameworks without a rule
  std::map<std::string, std::string> stand_ins;  // for a stack's program, were it not known
  std::map<std::string, std::string> models;
  std::vector<Prefix> model_templates;  // shapes whose dimensions the row gives
  std::vector<std::string> sweeps;      // sources that are not published results
  std::vector<UnfitVersion> unfit_for_time;
  std::vector<CellCorrection> corrections;
  Sourced<double> packed_document;  // tokens
  TrainingStepSource training_steps;
  std::string inference_cluster, inference_stack;
  LaunchMode inference_launch = LaunchMode::eager;
};

Aliases load_aliases(const std::filesystem::path& file);

// What a row says about its scale-out network; empty parts are not stated.
struct InterconnectText {
  std::vector<FabricTechnology> technologies;  // any of them ("IB/RoCE")
  std::optional<double> gigabits_per_gpu;
  bool bare_rate = false;  // the text does not tell whether a GPU's or a host's
};
// Grammar: "400G/GPU", "EFA 3200G/node", "3.2 Tbps", "1600Gbps RoCE", "4x HDR200", "8x CX7 400G
// IB/node", "4 NDR200 NICs", "IB NDR". A rate without "/GPU" or "/node" is a node's when it is at
// least 1200.
InterconnectText parse_interconnect(const std::string& text, double gpus_per_host);

// The name in aliases.json that a source's name of an accelerator stands for: equal to it but for
// case, spaces and hyphens, else the longest that it contains ("NVIDIA H100 80GB HBM3"). The name
// itself where none does.
std::string accelerator_name(const Aliases& aliases, const std::string& gpu);

struct ClusterChoice {
  std::string cluster, accelerator;
  double network_factor = 1;         // rate of the stated network over that of the cluster's
  std::vector<std::string> assumed;  // sentences, one for each fallback
};
// The cluster at the stated rate, with as many accelerators.
Cluster load_cluster(const ClusterChoice& choice, std::int64_t gpus);

// Wiring of the clusters that an alias names, loaded when first asked for.
class WiringTable {
 public:
  struct Wiring {
    std::string accelerator;
    FabricTechnology technology = FabricTechnology::infiniband;
    double gigabits_per_gpu = 0;
    double gpus_per_host = 8;
    std::int64_t domain = 8;
  };
  const Wiring& at(const std::string& cluster);

 private:
  std::map<std::string, Wiring> known_;
};
// nullopt: no alias for this accelerator.
std::optional<ClusterChoice> choose_cluster(const Aliases& aliases, WiringTable& wirings,
                                            const std::string& gpu, const std::string& interconnect,
                                            const std::string& system, std::int64_t gpus);

struct StackChoice {
  std::string name;  // "nemo@24.07"
  std::optional<Optimizer> optimizer;
  std::optional<Schedule> schedule;
  std::string program;  // that the stack stands in for; empty: the stack is its own
  std::vector<std::string> assumed;
};
// What a row says about its software: `year` is of the source, `gpu` as in aliases.json.
struct SoftwareWords {
  std::string framework, version, notes, gpu, year;
};
StackChoice choose_stack(const Aliases& aliases, const SoftwareWords& row);
// What would stand in for the chosen stack, by its date; nullopt: nothing is said of that.
std::optional<StackChoice> stand_in_for(const Aliases& aliases, const StackChoice& choice);

struct ModelChoice {
  std::string name;          // of the catalogue; empty: unknown
  bool is_template = false;  // the shape only: dimensions come from the row
};
ModelChoice choose_model(const Aliases& aliases, const std::string& model,
                         const std::vector<std::string>& catalog_models);

}  // namespace orrery
