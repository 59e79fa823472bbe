// Reads what runs now, over the settings of a question.
#include <algorithm>

#include <fmt/format.h>

#include "sim/app/settings.h"

namespace orrery {
namespace {

// The question's settings without its layout, which is a limit of the search.
nlohmann::json subject_of(const JsonValue& question) {
  nlohmann::json subject = question.raw();
  for (const std::string& key : layout_keys()) subject.erase(key);
  for (const char* key :
       {"like", "top", "variants", "pareto", "time_limit", "memory_reserve", "changes"})
    subject.erase(key);
  return subject;
}

void check_same_subject(const JsonValue& like, const JsonValue& question) {
  for (const char* key : {"model", "cluster", "gpus", "seq", "global_batch", "task", "lora_rank",
                          "mean_document", "mtp"}) {
    const auto now = like.find(key), asked = question.find(key);
    if (now && asked && now->raw() != asked->raw())
      now->fail(fmt::format("the question's {} or none: layouts are compared on one job",
                            asked->raw().dump()));
  }
}

}  // namespace

std::optional<Scenario> read_like(const JsonValue& question) {
  const auto given = question.find("like");
  if (!given) return std::nullopt;
  const JsonValue like =
      given->is_string() ? JsonValue::load(given->text()) : JsonValue::from(given->raw(), "--like");
  std::vector<std::string> keys;
  for (const Setting& s : settings())
    if (std::string_view(s.key) != "like") keys.emplace_back(s.key);
  like.expect_only(keys, "a setting");
  check_same_subject(like, question);
  nlohmann::json merged = subject_of(question);
  // A precision or optimizer that the question fixes is the machine's as it runs.
  for (const char* key : {"precision", "optimizer"})
    if (const auto v = question.find(key);
        v && v->is_string() && v->text().find(',') == std::string::npos && v->text() != "any")
      merged[key] = v->text();
  for (const auto& [key, value] : like.members()) merged[key] = value.raw();
  for (const char* key : {"network", "faults", "slow_gpus", "background", "launch", "trace"})
    merged.erase(key);
  return read_scenario(JsonValue::from(merged, like.file()));
}

}  // namespace orrery
