// SPDX-License-Identifier: Apache-2.0
// Knows how far blind predictions were from measured runs, by region: validation/model_error.json.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/outcome/prediction.h"

namespace orrery {

class JsonValue;
struct Scenario;
struct Stack;
struct Model;
struct Job;
struct Layout;
struct Device;
struct RunKind;

// Half-widths of a 90% range that ranges of values do not explain, as logarithms of ratios of step
// times: measured steps lie between exp(-below) and exp(above) times the predicted one.
struct ErrorRegion {
  double below = 0, above = 0;
  int rows = 0, sources = 0;  // that it was measured on
};

// What was measured, and so what a prediction may leave.
struct SeenRuns {
  std::set<std::string> devices, stacks, precisions;
  std::set<std::string> families;  // of models, each with its stack: "nemo, llama3"
  double most_gpus = 0;
  bool empty() const { return devices.empty(); }
};

// Half-widths that leaving it adds, joined in quadrature: how much more blind predictions of one
// device, stack or precision differ from those of others than their rows do among themselves.
struct UnseenError {
  double device = 0, stack = 0, precision = 0;
  double doubling = 0;  // of the number of accelerators beyond the most seen; added, not joined
};

// How errors grow with what makes a step hard to predict, over all regions: so many times larger
// for a run in which nothing else differs.
struct Difficulty {
  struct Trait {
    double slope = 0;   // of the logarithm of the error; never below 0
    double centre = 0;  // where a region's own width holds: the mean of the measured runs
  };
  Trait exposed;     // share of the step in which the pacing stage waits for communication
  Trait near_limit;  // 0 with a fifth of the memory free, 1 with none
  Trait waits;       // share of a served request's time to its first token that it waits for a step
};

// The model's own error. Written by `validate --leave-out nested --model-error FILE`.
struct ModelError {
  ErrorRegion whole;
  // error_regions() and measured_regions() name them.
  std::map<std::string, ErrorRegion> regions;
  Difficulty difficulty;
  // Of the stated ranges of values, what counts: of runs whose stack, family and device were
  // measured, and of others. On a device that no run was on all of it counts.
  double stated_share = 1, new_share = 1;
  double run_to_run = 0;  // half-width between runs that are alike in every column
  double blank = 0;       // half-width of each setting that had to be assumed
  UnseenError unseen;
  SeenRuns seen;
  // Of the time of one collective: "library, reach, size" ("nccl, one domain, from 1 MiB").
  struct Range {
    double below = 0, above = 0;  // shares of the predicted speed
  };
  std::map<std::string, Range> collectives;
  double memory = 0;  // share by which the memory model may overstate what a run needs

  // What a region's widths are multiplied with for a run.
  double scale(const RunKind& run) const;
  // Whether runs of its stack and family, and runs on its device, were measured.
  bool has_measured(const RunKind& run) const;
  // The regions that it lies in, the narrowest first.
  std::vector<std::string> regions_of(const RunKind& run) const;
  // The share of the stated ranges that counts for a run.
  double stated_share_of(const RunKind& run) const;
  // Half-width of what the run leaves of all that was measured: device, stack, precision, size. A
  // sentence for each goes to `widened` unless it is nullptr.
  double beyond_seen(const RunKind& run, std::vector<std::string>* widened) const;
  // The narrowest region of a kind of run that was measured; `whole` where none was.
  const ErrorRegion& region(const std::vector<std::string>& names) const;
  // The range of a collective's region; the widest of all where its library has none.
  Range collective(const std::string& library, bool crosses_domains, bool large) const;
};

// "nccl, one domain, from 1 MiB": a row's region in model_error.json and in reports.
std::string collective_region(const std::string& library, bool crosses_domains, bool large);

// Error when the file is missing or not of this form.
ModelError load_model_error(const std::filesystem::path& file);
std::string to_json_text(const ModelError& error);
// The same as a part of a file.
ModelError read_model_error(const JsonValue& part);
Json model_error_json(const ModelError& error);

// What of a run says how well it is predicted.
struct RunKind {
  std::string stack;         // name without release
  std::string program;       // that the stack stands in for; empty: the stack is its own
  bool unscripted = false;   // Stack::unscripted
  std::string family;        // of the model
  std::string kind;          // "dense", "experts", "tuning" (SFT, LoRA) or "inference"
  std::string architecture;  // of the device: "hopper"
  std::string device;        // catalogue name
  std::string precision;
  double gpus = 1;
  int blanks = 0;               // settings that had to be assumed
  std::string unknown_release;  // of the stack, that was asked for; empty: it is known
  // Of the prediction itself (add_step):
  double exposed = 0;  // share of the step in which the pacing stage waits for communication
  double filled = 0;   // of the device's memory: 1 at its capacity
  double waits = 0;    // of a served request's time to its first token: for a place in a step
  Seconds step;        // 0: not known
};
// Without what only the prediction tells.
RunKind run_kind(const Scenario& scenario);
RunKind run_kind(const Stack& stack, const Model& model, const Job& job, const Layout& layout,
                 const Device& device);
void add_step(RunKind& run, const StageBreakdown& pacing, const MemoryVerdict& memory);

// The traits that Difficulty's slopes refer to; they end where nearly all measured runs do.
struct DifficultyTraits {
  double exposed = 0, near_limit = 0, waits = 0;
};
// Each trait: its name in files, its slope, its value for a run.
struct DifficultyPart {
  const char* name;
  Difficulty::Trait Difficulty::*trait;
  double DifficultyTraits::*value;
};
inline constexpr std::array<DifficultyPart, 3> difficulty_parts = {
    {{"exposed", &Difficulty::exposed, &DifficultyTraits::exposed},
     {"near_limit", &Difficulty::near_limit, &DifficultyTraits::near_limit},
     {"waits", &Difficulty::waits, &DifficultyTraits::waits}}};
DifficultyTraits difficulty_traits(const RunKind& run);

// Regions that a run lies in, the narrowest first: "nemo, experts, hopper", "nemo, experts",
// "experts".
std::vector<std::string> error_regions(const RunKind& run);
// The same of runs whose stack has run their family of models, as measured: "nemo, experts, hopper,
// family measured", ... Fits that leave out runs alone err less there.
std::vector<std::string> measured_regions(const RunKind& run);
// How SeenRuns names the run's family.
std::string family_of(const RunKind& run);

// The 90% range of a prediction: the assumptions' effects (those of curves outside of their region
// count as extrapolation), the model's error, run to run, and what was never measured. Without an
// error (nullptr) the range is that of the assumptions alone.
PredictionRange prediction_range(const RunKind& run, const std::vector<Assumption>& assumptions,
                                 const std::vector<Extrapolation>& extrapolations,
                                 const ModelError* error);

}  // namespace orrery
