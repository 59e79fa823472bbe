// SPDX-License-Identifier: Apache-2.0
// Writes the parts that reports share: numbers for people, the subject, one prediction in detail.
#pragma once

#include <optional>
#include <string>

#include "sim/base/json/tree.h"
#include "sim/base/text/words.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/prediction.h"
#include "sim/outcome/verdict.h"
#include "sim/paper/document.h"

namespace orrery {

std::string significant(double v);   // three digits, or grouped from a thousand on
std::string dollars_text(double v);  // three digits with trailing zeros: "3.30"

// The unit that suits a step: its name, how many of them a second holds, decimals.
struct TimeUnit {
  const char* name;
  double per_second;
  int decimals;
};
TimeUnit unit_for(Seconds step);

// Model, cluster, job and stack, a line each.
void add_subject(Document& document, const Scenario& scenario);

// Headline, where the time goes, memory, and what it rests on.
void add_prediction(Document& document, const Scenario& scenario, const Prediction& prediction);

// How far products run at the peak of the format that they are in, where it is not the one that MFU
// counts by: 0.42 of 17,500 TFLOP/s in FP8.
struct ProductUse {
  Format format = Format::bf16;
  FlopPerSecond peak;
  double utilisation = 0;
};
// nullopt: products run in the format that MFU counts by, or the device has no peak of theirs.
std::optional<ProductUse> product_use(const Device& device, PrecisionRecipe precision,
                                      const Prediction& prediction);
std::string format_name(Format format);  // "FP8"

// "It fits: 61.2 of 79.6 GiB, 18.4 GiB to spare. It needs 58.0 to 66.1 GiB (90% range)."
std::string memory_sentence(const MemoryVerdict& memory);

// A curve used outside its region, with the keys of every report's JSON.
Json extrapolation_json(const Extrapolation& extrapolation);

}  // namespace orrery
