// SPDX-License-Identifier: Apache-2.0
// Holds which rows are scored, and in which group of family and source: the list may only grow.
// UPDATE_EXPECTED=1 adds the rows of new tables to it (tests/README.md).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/json/json.h"
#include "sim/base/json/tree.h"
#include "sim/base/output_file.h"
#include "sim/validate/rows/rows.h"
#include "sim/validate/score/odd_rows.h"
#include "tests/validate/training_rows.h"

using namespace orrery;

namespace {

using Groups = std::map<std::string, std::set<std::string>>;  // "family, source": ids

bool speed_is_scored(const PreparedRow& row) {
  return row.skipped.empty() && row.unfit_for_time.empty() && row.full_config &&
         row.measured.tokens_per_second_per_gpu && is_training(row.job.task);
}

Groups scored_groups() {
  RowReader reader(load_aliases(data_root() / "validation/aliases.json"));
  const std::vector<PreparedRow> rows = test::training_rows(reader, "training");
  Groups groups;
  for (const PreparedRow& row : rows)
    if (speed_is_scored(row)) groups[row.family + ", " + row.source].insert(row.id);
  return groups;
}

Groups listed_groups(const std::filesystem::path& file) {
  Groups groups;
  const JsonValue list = JsonValue::load(file);
  for (const auto& [group, ids] : list.members())
    for (const JsonValue& id : ids.items()) groups[group].insert(id.text());
  return groups;
}

}  // namespace

TEST_CASE("rows that are scored stay scored, in their groups") {
  const auto file = data_root() / "validation/scored_rows.json";
  const Groups scored = scored_groups();
  Groups listed;
  if (std::filesystem::exists(file)) listed = listed_groups(file);
  std::size_t lost = 0, added = 0;
  for (const auto& [group, ids] : listed)
    for (const std::string& id : ids) {
      const auto found = scored.find(group);
      if (found != scored.end() && found->second.contains(id)) continue;
      ++lost;
      UNSCOPED_INFO(group << ": " << id << " is scored no longer");
    }
  for (const auto& [group, ids] : scored)
    for (const std::string& id : ids) added += listed[group].insert(id).second ? 1 : 0;
  CHECK(lost == 0);
  const char* update = std::getenv("UPDATE_EXPECTED");
  if (update != nullptr && *update != '\0' && added > 0) {
    SortedJson out = SortedJson::object();
    for (const auto& [group, ids] : listed) {
      SortedJson list = SortedJson::array();
      for (const std::string& id : ids) list.push_back(id);
      out[group] = list;
    }
    write_file(file, out.dump() + "\n");
    added = 0;
  }
  INFO("UPDATE_EXPECTED=1 adds them to " << file);
  CHECK(added == 0);
}
