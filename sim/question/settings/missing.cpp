// SPDX-License-Identifier: Apache-2.0
// Tells all that is missing in a question at once.
#include <fmt/format.h>

#include "sim/question/settings/settings.h"

namespace orrery {

void refuse_missing(const JsonValue& s, const std::vector<std::string>& keys) {
  const bool flags = s.file() == command_line_place;
  std::string names;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    names += i == 0 ? "no " : i + 1 == keys.size() ? " and " : ", ";
    names += flags ? flag_of(keys[i]) : keys[i];
  }
  const std::string wanted = keys.size() == 1 ? "it" : "all of them";
  const char* held = keys.size() == 1 ? "it" : "them";
  throw Error(
      {.file = s.file(),
       .found = names,
       .expected = flags ? fmt::format("{}, or a file that holds {}", wanted, held) : wanted});
}

void check_complete(const JsonValue& s) {
  std::vector<std::string> needed = {"model", "cluster", "gpus"}, missing;
  const auto text = [&](const char* key) {
    const auto v = s.find(key);
    return v && v->is_string() ? v->text() : "";
  };
  const std::string phase = text("phase").empty() ? text("task") : text("phase");
  if (phase == "prefill")
    needed.insert(needed.end(), {"batch", "seq"});
  else if (phase == "decode")
    needed.insert(needed.end(), {"batch", "context"});
  else
    needed.insert(needed.end(), {"seq", "global_batch"});
  for (const std::string& key : needed)
    if (!s.has(key)) missing.push_back(key);
  if (missing.size() > 1) refuse_missing(s, missing);
}

}  // namespace orrery
