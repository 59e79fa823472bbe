// SPDX-License-Identifier: Apache-2.0
// Answers questions about a served model: JSON in, values out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/tasks/tasks.h"
#include "sim/outcome/serving/served_error.h"
#include "sim/outcome/serving/service.h"
#include "sim/question/settings/settings.h"

namespace orrery {

// Every setting of serve, in the order of the help text.
const std::vector<Setting>& serve_settings();

// The settings of a file (may be "") with `flags` on top. Error: a key that serve does not know.
JsonValue merge_serve_settings(const std::string& file, const SortedJson& flags);
JsonValue merge_serve_settings(const JsonValue& document, const SortedJson& flags);

struct ServeWith {
  Catalogues& catalogues;
  std::uint64_t seed = 1;
  int threads = 0;  // 0: all cores
  const std::atomic<bool>* stop = nullptr;
  // Called before each point too, with 0 done.
  std::function<void(std::size_t point, std::size_t points, std::int64_t done)> progress = {};
  StepLog* log = nullptr;        // takes the steps, where there is one point
  std::size_t most_records = 0;  // of it, over all engines
  // Where processes share the points of a question that has several: each is a task, and points of
  // others are left out. A single one is nothing to share: an Error.
  Tasks* tasks = nullptr;
};

// How a point bore the load that was asked for, in the second half of the arrivals.
struct LoadResult {
  double offered = 0, served = 0;  // requests a second that arrived, that ended
  bool long_enough = false;        // that half is longer than a request takes
  bool keeps_up = false;  // no more wait and run at its end than at its start, within noise
  bool meets = false;     // it keeps up, rejects none and keeps all promises
};

// One deployment under one traffic, or the reason why it cannot be.
struct ServedPoint {
  std::string varied;  // "concurrency 64", where the question lists several
  ServiceCase asked;
  ServicePrediction prediction;
  ServedRanges ranges = {};  // of nine in ten measurements
  bool best = false;         // no other point has more tokens a GPU and less time a token
  std::optional<LoadResult> load = {};
};

// Any value of the settings may be a list or a range: every combination is a point.
struct Served {
  JsonValue settings;
  std::vector<ServedPoint> points;
  std::string catalogue;                   // its hash
  bool stopped = false;                    // before all points were served
  std::optional<Hertz> load = {};          // that was asked for
  std::optional<std::size_t> chosen = {};  // the point of the least GPUs that meets it
  bool exists() const;                     // some point serves; of a load: some point meets it
};
Served serve_settings(const JsonValue& settings, const ServeWith& with);

// The question of one point.
ServiceCase read_service(const JsonValue& settings, Catalogues& catalogues, std::uint64_t seed);

}  // namespace orrery
