// SPDX-License-Identifier: Apache-2.0
// Answers questions about a served model: JSON in, values out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/outcome/serving/service.h"
#include "sim/question/settings/settings.h"

namespace orrery {

// Every setting of serve, in the order of the help text.
const std::vector<Setting>& serve_settings();

struct ServeWith {
  Catalogues& catalogues;
  std::uint64_t seed = 1;
  int threads = 0;  // 0: all cores
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t point, std::size_t points, std::int64_t done)> progress = {};
};

// One deployment under one traffic, or the reason why it cannot be.
struct ServedPoint {
  std::string varied;  // "concurrency 64", where the question lists several
  ServiceCase asked;
  ServicePrediction prediction;
  bool best = false;  // no other point has more tokens a GPU and less time a token
};

// Any value of the settings may be a list: every combination is a point.
struct Served {
  JsonValue settings;
  std::vector<ServedPoint> points;
  std::string catalogue;  // its hash
  bool stopped = false;   // before all points were served
  bool exists() const;    // some point serves
};
Served serve_settings(const JsonValue& settings, const ServeWith& with);

// The question of one point.
ServiceCase read_service(const JsonValue& settings, Catalogues& catalogues, std::uint64_t seed);

}  // namespace orrery
