// SPDX-License-Identifier: Apache-2.0
// Reads what runs now, over the settings of a question.
#include <algorithm>

#include <fmt/format.h>

#include "sim/question/settings/counts.h"
#include "sim/question/settings/given_file.h"
#include "sim/question/settings/job.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

// The question's settings without its layout, which is a limit of the search.
SortedJson subject_of(const JsonValue& question) {
  SortedJson subject = question.raw();
  for (const std::string& key : layout_keys()) subject.erase(key);
  for (const char* key :
       {"like", "top", "variants", "pareto", "time_limit", "memory_reserve", "changes"})
    subject.erase(key);
  return subject;
}

void check_same_subject(const JsonValue& like, const JsonValue& question, const Job& asked) {
  for (const char* key : {"model", "cluster", "gpus"}) {
    const auto now = like.find(key), wanted = question.find(key);
    if (now && wanted && now->raw() != wanted->raw())
      now->fail(fmt::format("the question's {} or none: layouts are compared on one job",
                            wanted->raw().dump()));
  }
  for (const char* key : {"task", "phase"})
    if (const auto now = like.find(key); now && now->text() != to_text(asked.task))
      now->fail(fmt::format("{} as in the question, or nothing", to_text(asked.task)));
}

// What is advised is predicted on a healthy machine and an ideal network: to hold something else
// against it would blame the layout for the difference.
void check_same_conditions(const JsonValue& like) {
  if (const auto v = like.find("network"); v && network_mode_text.from(*v) == NetworkMode::flow)
    v->fail("ideal or nothing: layouts are compared there, simulate has flows");
  for (const char* key : {"faults", "slow_gpus", "background"})
    if (const auto v = like.find(key))
      v->fail("nothing: layouts are compared on a healthy machine, simulate has it");
}

}  // namespace

std::optional<Scenario> read_like(const JsonValue& question, const Job& asked) {
  const auto given = question.find("like");
  if (!given) return std::nullopt;
  const JsonValue like =
      given->is_string() ? JsonValue::load(given->text()) : JsonValue::from(given->raw(), "--like");
  std::vector<std::string> keys;
  for (const Setting& s : settings())
    if (std::string_view(s.key) != "like") keys.emplace_back(s.key);
  keys.emplace_back(read_from_key);
  like.expect_only(keys, "a setting");
  check_same_subject(like, question, asked);
  check_same_conditions(like);
  SortedJson merged = subject_of(question);
  // A precision or optimizer that the question fixes is the machine's as it runs.
  for (const char* key : {"precision", "optimizer"})
    if (const auto v = question.find(key);
        v && v->is_string() && v->text().find(',') == std::string::npos && v->text() != "any")
      merged[key] = v->text();
  merged["mtp"] = asked.mtp;  // a release's default is the question's
  merged["attention_dropout"] = asked.attention_dropout;
  merged["hidden_dropout"] = asked.hidden_dropout;
  merged.update(without_nulls(like.raw()));
  for (const char* key : {"trace_out", "chakra_out"})
    merged.erase(key);  // where simulate would write
  merged.erase(read_from_key);
  Scenario now = read_scenario(JsonValue::from(with_counts(merged, like.file()), like.file()));
  check_same_job(like, now.job, asked);
  return now;
}

}  // namespace orrery
