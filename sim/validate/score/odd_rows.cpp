// SPDX-License-Identifier: Apache-2.0
// Reads odd_rows.json, marks rows with it and prints what it knows of them.
#include "sim/validate/score/odd_rows.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/base/json/json.h"
#include "sim/paper/tables.h"

namespace orrery {

std::vector<OddRows> load_odd_rows(const std::filesystem::path& path) {
  const JsonValue file = JsonValue::load(path);
  file.expect_only({"rows"});
  std::vector<OddRows> all;
  for (const JsonValue& at : file.at("rows").items()) {
    at.expect_only({"source", "ids", "outside", "reason"});
    OddRows odd{.source = at.at("source").text(),
                .ids = {},
                .outside = at.at("outside").boolean(),
                .reason = at.at("reason").text()};
    for (const JsonValue& id : at.at("ids").items()) odd.ids.push_back(id.text());
    all.push_back(std::move(odd));
  }
  return all;
}

void mark_odd_rows(std::vector<PreparedRow>& rows, const std::vector<OddRows>& all) {
  for (PreparedRow& row : rows)
    for (const OddRows& odd : all) {
      if (row.source != odd.source) continue;
      if (std::find(odd.ids.begin(), odd.ids.end(), row.id) == odd.ids.end()) continue;
      std::string& reason = odd.outside ? row.outside : row.remark;
      if (reason.empty()) reason = odd.reason;
    }
}

std::string odd_rows_text(const std::vector<ScoredRow>& rows) {
  struct Known {
    std::string reason, ids;
    bool outside;
  };
  std::vector<Known> all;
  const auto add = [&](const std::string& reason, const std::string& id, bool outside) {
    if (reason.empty()) return;
    const auto same = [&](const Known& k) { return k.outside == outside && k.reason == reason; };
    const auto found = std::find_if(all.begin(), all.end(), same);
    if (found == all.end())
      all.push_back({reason, id, outside});
    else
      found->ids += ", " + id;
  };
  for (const ScoredRow& s : rows) {
    if (!s.speed_error) continue;
    add(s.row->outside, s.row->id, true);
    add(s.row->remark, s.row->id, false);
  }
  std::string out;
  for (const bool outside : {true, false}) {
    std::string part;
    for (const Known& k : all)
      if (k.outside == outside)
        part += wrap(fmt::format("{}: {}", k.ids, k.reason), page_width, "  ", "    ");
    if (part.empty()) continue;
    out += outside ? "\nOdd rows, outside the 90th percentile and the order of layouts\n"
                   : "\nOdd rows, scored as all others\n";
    out += part;
  }
  return out;
}

}  // namespace orrery
