// SPDX-License-Identifier: Apache-2.0
// Holds the spread of reruns and the memory model's error against the data that they stand for.
#include "sim/outcome/noise.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "hw_models/catalog.h"
#include "sim/engine/memory_fit.h"
#include "sim/outcome/model_error.h"

namespace orrery {
namespace {

ModelError shipped() { return load_model_error(data_root() / "validation/model_error.json"); }

TEST_CASE("the spread of reruns is the measured one in whole percent") {
  CHECK(std::round(100 * shipped().run_to_run) == Approx(100 * rerun_spread));
  CHECK(rerun_spread_text() == "2%");
  CHECK(rerun_range_text() == "0.5 to 2%");
}

TEST_CASE("thresholds stand in their order below the spread") {
  CHECK(least_effect < least_gain);
  CHECK(least_gain < tie_tolerance);
  CHECK(tie_tolerance < least_rerun_spread);
  CHECK(least_rerun_spread < same_speed);
  CHECK(same_speed < rerun_spread);
}

TEST_CASE("the memory model's error is one figure") { CHECK(shipped().memory == peak_error); }

}  // namespace
}  // namespace orrery
