// SPDX-License-Identifier: Apache-2.0
// Knows how many guessed tokens a model accepts: measured by others, or as a user says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/inference/drafter.h"

namespace orrery {

// Mean tokens that a step gives with 1, 2, ... drafts, the model's own among them.
struct MeasuredAcceptance {
  std::string model, family;
  DraftKind kind = DraftKind::mtp;
  std::vector<double> tokens;
  // Of a text that is taken where it is asked for; empty: of the one that is taken else.
  std::string label;
  std::string text, source;  // what was generated; of the catalogue
};

struct Acceptance {
  std::vector<double> survival;  // by j: that the first j + 1 drafts are all accepted; falling
  std::string from;              // a phrase: "measured for deepseek-r1 on ..."
  double tokens() const;         // of a step in the mean
};

// workloads/catalog/acceptance.json.
std::vector<MeasuredAcceptance> load_acceptance(const std::filesystem::path& file);

// Of the model itself, else of its family. Where neither was measured with this label, but another
// model was, with and without it: their own of the usual text, times what the label changes there
// draft by draft. Nothing where none was measured with this label, or not with so many drafts.
std::optional<Acceptance> measured_acceptance(const std::vector<MeasuredAcceptance>& all,
                                              const Model& model, DraftKind kind,
                                              std::int64_t drafts, std::string_view label = "");

// Of the texts that were measured for the model or its family, sorted.
std::vector<std::string> acceptance_labels(const std::vector<MeasuredAcceptance>& all,
                                           const Model& model, DraftKind kind, std::int64_t drafts);

// Differences along the drafts. Noise that lets one rise above the one before, or fall below 0, is
// averaged over both, so that the mean of so many drafts stays what was measured.
std::vector<double> survival_of(const std::vector<double>& tokens, std::int64_t drafts);

// "0.8", or "0.9:0.8:0.6" by position: the chance of a draft whose predecessors were accepted. The
// last one holds for all that follow. Error at `flag`: no number from 0 to 1, more than drafts; it
// names the labels that could stand there too.
std::vector<double> parse_acceptance(std::string_view text, std::int64_t drafts,
                                     const std::string& flag,
                                     const std::vector<std::string>& labels = {});

}  // namespace orrery
