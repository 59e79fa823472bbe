// SPDX-License-Identifier: Apache-2.0
// Puts what traces and mixes hold into a question, and reads it from there.
#include "sim/question/schedule/inline_jobs.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "hw_models/catalog.h"
#include "sim/base/content_hash.h"
#include "sim/base/errors/file_guard.h"
#include "sim/base/input_file.h"
#include "sim/question/settings/inline_files.h"
#include "workloads/cluster_job/job_mix_file.h"
#include "workloads/job_traces/job_trace.h"

namespace orrery {
namespace {

constexpr std::uintmax_t most_inline = std::uintmax_t{16} << 20U;  // as traces of serve

constexpr std::array<std::string_view, 2> job_keys = {"trace", "jobs"};

std::filesystem::path catalog_folder() { return data_root() / "workloads/catalog"; }

bool is_held_text(const JsonValue& at) { return at.is_object() && at.has("text"); }

// What takes the place of a value that names a file and no entry.
template <class Entries>
SortedJson inlined(const SortedJson& value, const Entries& entries) {
  if (!value.is_string()) return value;
  const std::string name = value.get<std::string>();
  std::error_code failed;
  const bool known = std::any_of(entries.begin(), entries.end(),
                                 [&](const auto& entry) { return entry.name == name; });
  if (known || !std::filesystem::is_regular_file(name, failed)) return value;
  check_file_allowed(name);
  const std::string text = content_of(name);
  if (text.size() <= most_inline) return SortedJson{{"name", name}, {"text", text}};
  return SortedJson{{"file", name}, {"hash", hash_text(content_hash(text))}};
}

// Of a training: its model and whatever else settings of simulate name.
SortedJson training_inline(const JsonValue& entry, const JsonValue& settings) {
  SortedJson asked = entry.raw();
  const auto cluster = settings.find("cluster");
  const bool one_cluster = cluster && !cluster->is_array() && !asked.contains("cluster");
  if (one_cluster) asked["cluster"] = cluster->raw();
  JsonValue question = JsonValue::from(std::move(asked), entry.file());
  if (one_cluster) question = with_input_inline(question);
  SortedJson out = with_files_inline(question).value_or(question).raw();
  if (one_cluster) out.erase("cluster");
  return out;
}

// Of a training, or of a served model, requests that wait or RL, whose settings stand one deeper.
SortedJson entry_inline(const JsonValue& entry, const JsonValue& question) {
  SortedJson one = training_inline(entry, question);
  for (const char* key : {"serve", "batch", "rl"})
    if (const auto part = entry.find(key); part && part->is_object())
      one[key] = training_inline(*part, question);
  if (const auto rl = entry.find("rl"); rl && rl->is_array()) {
    one["rl"] = SortedJson::array();
    for (const JsonValue& part : rl->items())
      one["rl"].push_back(part.is_object() ? training_inline(part, question) : part.raw());
  }
  if (const auto load = entry.find("load"); load && load->is_object() && load->has("like"))
    one["load"]["like"] = inlined(one["load"]["like"], job_mix_entries(catalog_folder()));
  return one;
}

}  // namespace

ClusterJobs traced_jobs(const JsonValue& at) {
  if (!at.is_object()) return load_jobs(at.text(), catalog_folder());
  if (is_held_text(at)) {
    at.expect_only({"name", "text"});
    const std::string text = at.at("text").text(), name = at.at("name").text();
    return parse_jobs(text, job_format_of(text), name);
  }
  at.expect_only({"file", "hash"});
  const std::string file = at.at("file").text();
  check_file_allowed(file);
  if (const std::string hash = hash_text(content_hash(content_of(file)));
      hash != at.at("hash").text())
    at.fail("the file as it was when the question was asked: its hash was " + at.at("hash").text(),
            "a file whose hash is " + hash);
  return load_jobs(file, catalog_folder());
}

JobMix mix_of_jobs(const JsonValue& at) {
  if (!is_held_text(at)) return load_job_mix(at.reference(), catalog_folder());
  at.expect_only({"name", "text"});
  const std::string name = at.at("name").text();
  return read_job_mix(JsonValue::parse(at.at("text").text(), name), name);
}

GridSeries grid_of(const JsonValue& at) {
  if (is_held_text(at)) {
    at.expect_only({"name", "text"});
    return parse_grid(at.at("text").text(), at.at("name").text());
  }
  return parse_grid(
      bounded_content(at.text(), most_inline, "hours with what electricity costs and emits"),
      at.text());
}

JsonValue with_jobs_inline(const JsonValue& settings) {
  const JsonValue question = with_files_inline(settings).value_or(settings);
  SortedJson whole = question.raw();
  if (const auto trace = whole.find("trace"); trace != whole.end())
    *trace = inlined(*trace, job_trace_entries(catalog_folder()));
  for (const char* key : {"grid", "incidents"})
    if (const auto at = whole.find(key); at != whole.end())
      *at = inlined(*at, std::vector<JobTraceEntry>{});
  const auto jobs = question.find("jobs");
  if (!jobs || !jobs->is_array()) return JsonValue::from(std::move(whole), settings.file());
  SortedJson list = SortedJson::array();
  for (const JsonValue& entry : jobs->items()) {
    if (!entry.is_object()) {
      list.push_back(entry.raw());
      continue;
    }
    SortedJson one = entry.raw();
    if (entry.has("trace"))
      one["trace"] = inlined(one["trace"], job_trace_entries(catalog_folder()));
    else if (entry.has("mix"))
      one["mix"] = inlined(one["mix"], job_mix_entries(catalog_folder()));
    else
      one = entry_inline(entry, question);
    list.push_back(std::move(one));
  }
  whole["jobs"] = std::move(list);
  return JsonValue::from(std::move(whole), settings.file());
}

JsonValue without_jobs(const JsonValue& settings) {
  SortedJson rest = SortedJson::object();
  for (const auto& [key, value] : settings.raw().items())
    if (std::find(job_keys.begin(), job_keys.end(), key) == job_keys.end()) rest[key] = value;
  return JsonValue::from(std::move(rest), settings.file());
}

JsonValue with_jobs_of(const JsonValue& question, const JsonValue& settings) {
  SortedJson whole = settings.raw();
  for (const std::string_view key : job_keys)
    if (const auto jobs = question.find(key)) whole[key] = jobs->raw();
  return JsonValue::from(std::move(whole), settings.file());
}

}  // namespace orrery
