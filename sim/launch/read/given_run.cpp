// SPDX-License-Identifier: Apache-2.0
// Keeps what was read of a configuration beside the question that it became.
#include "sim/launch/read/given_run.h"

namespace orrery {
namespace {

SortedJson items_json(const std::vector<GivenItem>& items) {
  SortedJson all = SortedJson::array();
  for (const GivenItem& item : items)
    all.push_back({{"place", item.place},
                   {"name", item.name},
                   {"value", item.value},
                   {"key", item.key},
                   {"becomes", item.becomes},
                   {"note", item.note}});
  return all;
}

std::vector<GivenItem> items_of(const JsonValue& at) {
  std::vector<GivenItem> items;
  for (const JsonValue& one : at.items()) {
    one.expect_only({"place", "name", "value", "key", "becomes", "note"});
    items.push_back({.place = one.at("place").text(),
                     .name = one.at("name").text(),
                     .value = one.at("value").text(),
                     .key = one.at("key").text(),
                     .becomes = one.at("becomes").text(),
                     .note = one.at("note").text()});
  }
  return items;
}

}  // namespace

SortedJson to_json(const GivenRun& run) {
  return {{"file", run.file},
          {"also", run.also},
          {"program", run.program},
          {"understood", items_json(run.understood)},
          {"defaulted", items_json(run.defaulted)},
          {"without_effect", items_json(run.without_effect)},
          {"not_understood", items_json(run.not_understood)}};
}

GivenRun given_run_of(const JsonValue& at) {
  at.expect_only(
      {"file", "also", "program", "understood", "defaulted", "without_effect", "not_understood"});
  GivenRun run;
  run.file = at.at("file").text();
  run.program = at.at("program").text();
  for (const JsonValue& file : at.at("also").items()) run.also.push_back(file.text());
  run.understood = items_of(at.at("understood"));
  run.defaulted = items_of(at.at("defaulted"));
  run.without_effect = items_of(at.at("without_effect"));
  run.not_understood = items_of(at.at("not_understood"));
  return run;
}

}  // namespace orrery
