// SPDX-License-Identifier: Apache-2.0
// Draws the schedule of a pipeline: a row for each stage, a bar for each pass.
#include <fmt/format.h>

#include "sim/app/charts/charts.h"
#include "sim/app/charts/spec.h"
#include "sim/base/text/words.h"

namespace orrery {

Chart timeline_chart(const std::string& of, const JsonValue& timeline) {
  constexpr double per_second = 1000;
  Json values = Json::array();
  std::int64_t stages = 0;
  for (const JsonValue& pass : timeline.at("passes").items()) {
    const std::int64_t stage = pass.at("stage").integer();
    stages = std::max(stages, stage + 1);
    values.push_back({{"stage", stage},
                      {"pass", key_words(pass.at("kind").text())},
                      {"microbatch", pass.at("microbatch").integer()},
                      {"chunk", pass.at("chunk").integer()},
                      {"from", per_second * pass.at("start_s").number()},
                      {"to", per_second * pass.at("end_s").number()}});
  }
  const std::int64_t drawn = timeline.at("microbatches").integer(),
                     all = timeline.at("of").integer();
  const std::string cut = drawn < all ? fmt::format(", {} of its {} microbatches", drawn, all) : "";
  const std::string title = "The pipeline in time";
  constexpr int row_height = 16;
  return {"timeline", title,
          wide(framed(title,
                      fmt::format("{}{}: over the whole step stages wait {} of the time", of, cut,
                                  percent(timeline.at("idle").number())),
                      std::move(values),
                      {{"mark", {{"type", "bar"}, {"stroke", "white"}, {"strokeWidth", 0.3}}},
                       {"encoding",
                        {{"y", {{"field", "stage"}, {"type", "ordinal"}, {"title", "stage"}}},
                         {"x", quantity("from", "ms from the begin of the step")},
                         {"x2", {{"field", "to"}}},
                         {"color", category("pass", "", legend_below())},
                         {"opacity",
                          {{"field", "chunk"},
                           {"type", "ordinal"},
                           {"legend", nullptr},
                           {"scale", {{"range", Json::array({1, 0.55})}}}}},
                         {"tooltip", tooltip({{"stage", "stage"},
                                              {"pass", "pass"},
                                              {"microbatch", "microbatch"},
                                              {"chunk", "chunk"},
                                              {"from", "from, ms"},
                                              {"to", "to, ms"}})}}}},
                      static_cast<int>(row_height * stages)))};
}

}  // namespace orrery
