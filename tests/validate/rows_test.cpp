// SPDX-License-Identifier: Apache-2.0
// Tests what the words of a measured run's row become.
#include <catch2/catch.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/validate/rows/rows.h"
#include "sim/validate/score/predict.h"

namespace orrery {

TEST_CASE("watts in an accelerator's name slow it down, and impossible ones are refused") {
  RowReader reader(load_aliases(data_root() / "validation/aliases.json"));
  std::string table = "model,gpu,n_gpus,seq,global_batch,tp,pp,tokens_s_gpu\n";
  for (const char* gpu : {"H100 10W", "H100 200W", "H100 350W", "H100 500W", "H100 700 W", "H100",
                          "H100 99999W", "H100 1234567W"})
    table += fmt::format("Llama3-8B,{},16,8192,128,2,1,9000\n", gpu);
  const auto rows = reader.read_training(parse_csv(table, "t.csv"));
  REQUIRE(rows.size() == 8);
  CHECK(rows[0].skipped.find("power limit of 10 W") != std::string::npos);
  CHECK(rows[6].skipped.find("99999 W") != std::string::npos);
  CHECK_FALSE(rows[7].skipped.empty());
  std::vector<double> steps;
  for (std::size_t i = 1; i <= 5; ++i) {
    REQUIRE(rows[i].skipped.empty());
    steps.push_back(predict_step(rows[i], rows[i].stack));
  }
  CHECK(std::is_sorted(steps.rbegin(), steps.rend()));
  CHECK(steps[0] > 1.5 * steps[3]);
  CHECK(steps[3] == steps[4]);
}

}  // namespace orrery
