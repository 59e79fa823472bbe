// SPDX-License-Identifier: Apache-2.0
// Holds what a step's timeline means to a person: speed, utilisation, memory, energy, money,
// reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hw_models/region.h"
#include "sim/base/text/enum_names.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/scenario.h"
#include "sim/engine/step/result.h"

namespace orrery {

// A value that is not a fact and that this prediction depends on (law 12).
struct Assumption {
  std::string path;              // "accelerator h100-sxm: power.idle", "stack nemo@26.02: dispatch"
  std::string value, low, high;  // text with units
  Evidence evidence = Evidence::assumed;
  std::string source;
  double effect_low = 0, effect_high = 0;  // relative change of the step time at low and at high
};

// A curve that a prediction uses for shapes outside the region in which it was measured, or for
// another library's kernels.
struct Extrapolation {
  std::string curve;  // "gemm.bf16.cublas"
  std::string
      stands_in_for;  // the library that has no curve here, "flash3"; empty: the curve's own
  // Where the kernel lies that contributes most (by time and distance), on each axis outside.
  struct Side {
    Axis axis = Axis::m;
    double used = 0, low = 0, high = 0;  // elements or bytes; measured from low to high
  };
  std::vector<Side> sides;
  double octaves = 0;     // that this kernel lies outside
  double share = 0;       // of the curve's time in the step that is spent outside
  double per_octave = 0;  // relative error per octave, as the fit measured it
  double growth = 0;      // relative error that the curve's whole time in the step gets from it
};

// What one side of a 90% range of a step time is joined of, in quadrature: half-widths as
// logarithms of ratios of times.
struct RangeParts {
  double parameters = 0;     // ranges of the values that are not facts
  double model = 0;          // how far blind predictions of measured runs were off beyond that
  double run_to_run = 0;     // between runs that are alike in every setting
  double extrapolation = 0;  // kernels outside measured shapes, machines, stacks, precisions and
                             // sizes that no measured run had, settings that had to be assumed
  double total() const;
};

// Steps lie between exp(-below) and exp(above) times the predicted one, nine times of ten.
struct PredictionRange {
  RangeParts below, above;
  std::string region;                // of the model's error: "nemo, dense, hopper"; "": none known
  std::vector<std::string> widened;  // sentences: what the run leaves of all that was measured
};

// How much of the device's products a step uses. FP8 and FP4 jobs too count by the dense peak of
// BF16: the convention that published figures follow.
struct Utilisation {
  Flop model_flop_per_token;  // 6 N_active + attention, causal, no recompute
  FlopPerSecond peak;         // that utilisation refers to: dense BF16 (FP16 without BF16)
  Format peak_format = Format::bf16;
  double mfu = 0;
};

// What a step costs to rent; 0 where no price is known.
struct StepPrice {
  Dollars per_step, per_million_tokens;
  DollarsPerSecond rental_per_gpu;
  std::string contract;  // of that price: "on demand", or "as given"
};

// What training and inference do not share.
struct TrainingStep {
  double hfu = 0;  // as MFU, with recompute counted
};
enum class Latency : std::uint8_t {
  ttft,  // of the first token: a prefill
  tpot,  // of each token after it: a decode step
};
inline constexpr auto latency_text = enum_names<Latency>({"TTFT", "TPOT"});
constexpr std::string_view to_text(Latency latency) { return latency_text[latency]; }
struct InferenceStep {
  Latency latency = Latency::ttft;  // which of the two its time is
};

struct Prediction {
  std::variant<TrainingStep, InferenceStep> kind;
  Seconds step_time;
  Seconds low, high;                     // 90% range of the step time; else step_time
  std::optional<PredictionRange> range;  // what it is made of, where it was asked for
  double tokens_per_second = 0;          // whole job
  double tokens_per_second_per_gpu = 0;
  Utilisation utilisation;
  std::vector<StageBreakdown> stages;
  std::int64_t bottleneck_stage = 0;
  std::string bottleneck;  // one sentence: what limits the step
  MemoryVerdict memory;
  Joules energy_per_step, energy_per_token;  // whole job
  Watts mean_power_per_gpu;
  double throttle = 1;
  Bytes scale_up_bytes, scale_out_bytes;  // sent by one GPU of the busiest stage per step
  StepPrice price;
  std::vector<Assumption> assumptions;        // empty unless asked for
  std::vector<Extrapolation> extrapolations;  // the most growth first
  // Flow network only: the collectives of the stage that sends most, by time, and the step without
  // shared links, faults and other traffic.
  std::vector<NetworkUse> network;
  Seconds undisturbed;

  const TrainingStep* training() const { return std::get_if<TrainingStep>(&kind); }
  const InferenceStep* inference() const { return std::get_if<InferenceStep>(&kind); }
  double hfu() const { return training() ? training()->hfu : utilisation.mfu; }
};

}  // namespace orrery
