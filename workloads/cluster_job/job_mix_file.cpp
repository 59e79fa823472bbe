// SPDX-License-Identifier: Apache-2.0
// Reads and writes mixes of jobs as JSON, strictly.
#include "workloads/cluster_job/job_mix_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/base/entry_file.h"
#include "sim/base/errors/check.h"
#include "workloads/cluster_job/job_cells.h"
#include "workloads/cluster_job/job_summary.h"

namespace orrery {
namespace {

constexpr double most_seconds = 31'536'000'000;  // most_fleet_time

double number_in(const JsonValue& at, double low, double high) {
  const double number = at.number();
  if (!(number >= low && number <= high)) at.fail(fmt::format("a number from {} to {}", low, high));
  return number;
}

// Of the sum of those beside it.
double share_in(const JsonValue& at) {
  const double share = at.number();
  if (!(share >= 0)) at.fail("a share of 0 or more");
  return share;
}

// One of which is not 0.
std::vector<double> shares_in(const JsonValue& at) {
  std::vector<double> shares;
  for (const JsonValue& item : at.items()) shares.push_back(share_in(item));
  if (std::all_of(shares.begin(), shares.end(), [](double s) { return s == 0; }))
    at.fail("shares of which one is above 0");
  return shares;
}

template <std::size_t n>
void read_shares(const JsonValue& at, std::array<double, n>& shares) {
  const std::vector<double> given = shares_in(at);
  if (given.size() != n) at.fail(fmt::format("{} shares", n), fmt::format("{}", given.size()));
  std::copy(given.begin(), given.end(), shares.begin());
}

std::vector<double> numbers_in(const JsonValue& at, double low, double high) {
  std::vector<double> numbers;
  for (const JsonValue& item : at.items()) numbers.push_back(number_in(item, low, high));
  return numbers;
}

// Edges, shares and perhaps means, of values between the two; a number alone is all values.
QuantileTable read_table(const JsonValue& at, double low, double high) {
  if (at.is_number()) return QuantileTable::constant(number_in(at, low, high));
  at.expect_only({"edges", "shares", "means"});
  std::vector<double> edges = numbers_in(at.at("edges"), low, high);
  const std::vector<double> shares = shares_in(at.at("shares"));
  if (edges.size() != shares.size() + 1)
    at.fail("one edge more than shares",
            fmt::format("{} edges and {} shares", edges.size(), shares.size()));
  if (!std::is_sorted(edges.begin(), edges.end())) at.at("edges").fail("edges that do not fall");
  std::vector<double> means;
  if (const auto given = at.find("means"))
    means = numbers_in(*given, low, high);
  else
    for (std::size_t i = 0; i < shares.size(); ++i) means.push_back((edges[i] + edges[i + 1]) / 2);
  if (means.size() != shares.size())
    at.at("means").fail("one for each share", fmt::format("{}", means.size()));
  for (std::size_t i = 0; i < means.size(); ++i)
    if (means[i] < edges[i] || means[i] > edges[i + 1])
      at.at("means").items()[i].fail(fmt::format("a mean from {} to {}", edges[i], edges[i + 1]));
  return {std::move(edges), shares, std::move(means)};
}

// A table, or mean, median and largest of a lognormal.
QuantileTable read_lengths(const JsonValue& at) {
  if (!at.is_object() || !at.has("median")) return read_table(at, 0, most_seconds);
  at.expect_only({"mean", "median", "largest"});
  const auto of = [&](const char* key) { return number_in(at.at(key), 0, most_seconds); };
  return lognormal_lengths({of("mean"), of("median"), of("largest")}, at.file(), at.path());
}

QuantileTable read_swing(const JsonValue& at) {
  constexpr double most = 1e6;
  QuantileTable table = read_table(at, 0, most);
  if (!(table.mean() > 0)) at.fail("factors with a mean above 0");
  return table;
}

void read_arrivals(const JsonValue& at, JobArrivals& arrivals) {
  at.expect_only({"jobs_per_day", "by_hour", "by_weekday", "day_swing", "hour_swing"});
  if (const auto shares = at.find("by_hour")) read_shares(*shares, arrivals.by_hour);
  if (const auto shares = at.find("by_weekday")) read_shares(*shares, arrivals.by_weekday);
  if (const auto table = at.find("day_swing")) arrivals.day_swing = read_swing(*table);
  if (const auto table = at.find("hour_swing")) arrivals.hour_swing = read_swing(*table);
}

// Above 0, and at most as many a day as can be drawn.
double jobs_per_day_in(const JsonValue& at) {
  const double number = at.number();
  if (!(number > 0 && number <= static_cast<double>(most_drawn_jobs)))
    at.fail("a number above 0, up to 10^8");
  return number;
}

double gpus_in(const JsonValue& at) {
  const double gpus = at.number();
  const bool whole = std::trunc(gpus) == gpus;
  if (!(gpus > 0 && gpus <= static_cast<double>(most_job_gpus)) || (gpus > 1 && !whole))
    at.fail("whole GPUs between 1 and 10^7, or a part of one");
  return gpus;
}

// "gpus": 8, or [[8, 0.9], [16, 0.1]].
std::vector<SizeShare> read_sizes(const JsonValue& at) {
  if (at.is_number()) return {{gpus_in(at), 1}};
  std::vector<SizeShare> sizes;
  double sum = 0;
  for (const JsonValue& pair : at.items()) {
    const std::vector<JsonValue> both = pair.items();
    if (both.size() != 2) pair.fail("a number of GPUs and its share");
    sizes.push_back({gpus_in(both[0]), share_in(both[1])});
    sum += sizes.back().share;
  }
  if (!(sum > 0)) at.fail("shares of which one is above 0");
  return sizes;
}

JobMixPart read_part(const JsonValue& at, const JobMix& mix) {
  at.expect_only({"share", "fate", "gpus", "length_s", "queues"});
  JobMixPart part;
  if (const auto share = at.find("share")) part.share = share_in(*share);
  if (const auto fate = at.find("fate")) part.fate = job_fate_text.from(*fate);
  part.sizes = read_sizes(at.at("gpus"));
  part.length_s = read_lengths(at.at("length_s"));
  if (const auto queues = at.find("queues")) {
    part.queues = shares_in(*queues);
    if (part.queues.size() != mix.queues.size())
      queues->fail(fmt::format("a share for each of the {} queues", mix.queues.size()),
                   fmt::format("{}", part.queues.size()));
  }
  return part;
}

std::vector<JobLimits> read_limits(const JsonValue& at) {
  constexpr double most_factor = 1e9;
  std::vector<JobLimits> all;
  double before = -1;
  const std::vector<JsonValue> items = at.items();
  for (const JsonValue& item : items) {
    item.expect_only({"up_to_s", "factor"});
    JobLimits& limits = all.emplace_back();
    limits.factor = read_table(item.at("factor"), 1, most_factor);
    if (const auto end = item.find("up_to_s")) limits.up_to_s = number_in(*end, 0, most_seconds);
    const bool last = all.size() == items.size();
    if (last != std::isinf(limits.up_to_s) || limits.up_to_s <= before)
      item.fail("\"up_to_s\" that rises, and none in the last item");
    before = limits.up_to_s;
  }
  return all;
}

void read_queues(const JsonValue& at, JobMix& mix) {
  mix.queues.clear();
  for (const JsonValue& queue : at.items()) mix.queues.push_back(queue.text());
  if (mix.queues.empty()) at.fail("at least one queue");
}

// Mean, median and largest, each a fact.
template <class Value, class Convert>
SpreadFigures read_spread(const JsonValue& at, const Convert& convert,
                          std::initializer_list<std::string_view> keys) {
  at.expect_only(keys);
  const auto of = [&](const char* key) {
    const Sourced<Value> fact = read_sourced<Value>(at.at(key));
    if (!fact.known()) at.at(key).fail("a known value");
    return convert(fact.get());
  };
  return {of("mean"), of("median"), of("largest")};
}

double in_seconds(Seconds s) { return s.si(); }
double as_it_is(double number) { return number; }

void read_fates(const JsonValue& at, JobSummary& summary, double jobs) {
  at.expect_only({"completed", "failed", "cancelled"});
  summary.jobs = {};
  for (const auto& [name, fate] : at.members()) {
    fate.expect_only({"jobs", "gpu_time"});
    const auto place = static_cast<std::size_t>(*job_fate_text.find(name));
    summary.jobs[place] = read_share(fate.at("jobs")).value.value_or(0);
    if (const auto time = fate.find("gpu_time"))
      summary.gpu_time[place] = read_sourced<Seconds>(*time).value.value_or(Seconds(0)).si();
  }
  double sum = 0;
  for (const double time : summary.gpu_time) sum += time;
  if (sum > 0) summary.gpu_seconds = sum / jobs;
}

JobSummary read_summary(const JsonValue& at) {
  at.expect_only({"jobs", "days", "length", "gpus", "gpu_time", "fates"});
  JobSummary summary{.name = at.file()};
  const auto count = [&](const char* key) {
    const Sourced<double> fact = read_sourced<double>(at.at(key));
    if (!fact.known() || !(fact.get() > 0)) at.at(key).fail("a number above 0");
    return fact.get();
  };
  const double jobs = count("jobs");
  summary.jobs_per_day = jobs / count("days");
  summary.length_s =
      read_spread<Seconds>(at.at("length"), in_seconds, {"mean", "median", "largest"});
  summary.gpus =
      read_spread<double>(at.at("gpus"), as_it_is, {"mean", "median", "largest", "up_to_median"});
  if (const auto share = at.at("gpus").find("up_to_median"))
    summary.up_to_median = read_share(*share).value.value_or(summary.up_to_median);
  if (const auto fates = at.find("fates")) read_fates(*fates, summary, jobs);
  const auto time = at.find("gpu_time");
  if (time && summary.gpu_seconds > 0) time->fail("no sum beside the GPU-time of fates");
  if (time)
    summary.gpu_seconds = read_sourced<Seconds>(*time).value.value_or(Seconds(0)).si() / jobs;
  return summary;
}

// Lists on one line.
void append_numbers(std::string& out, const char* key, const auto& numbers) {
  fmt::format_to(std::back_inserter(out), "\"{}\": {}", key, Json(numbers).dump());
}

std::string table_text(const QuantileTable& table) {
  std::string out = "{";
  append_numbers(out, "edges", table.edges());
  append_numbers(out += ", ", "shares", table.shares());
  append_numbers(out += ", ", "means", table.means());
  return out + "}";
}

std::string arrivals_text(const JobArrivals& arrivals) {
  std::string out = "{";
  append_numbers(out, "jobs_per_day", arrivals.jobs_per_day);
  append_numbers(out += ",\n    ", "by_hour", arrivals.by_hour);
  append_numbers(out += ",\n    ", "by_weekday", arrivals.by_weekday);
  if (!arrivals.day_swing.empty()) out += ",\n    \"day_swing\": " + table_text(arrivals.day_swing);
  if (!arrivals.hour_swing.empty())
    out += ",\n    \"hour_swing\": " + table_text(arrivals.hour_swing);
  return out + "}";
}

std::string part_text(const JobMixPart& part) {
  std::string out = "{";
  append_numbers(out, "share", part.share);
  out += fmt::format(", \"fate\": \"{}\", \"gpus\": [", job_fate_text[part.fate]);
  for (const SizeShare& size : part.sizes) {
    if (&size != &part.sizes.front()) out += ", ";
    out += Json::array({size.gpus, size.share}).dump();
  }
  out += "], \"length_s\": " + table_text(part.length_s);
  if (!part.queues.empty()) append_numbers(out += ", ", "queues", part.queues);
  return out + "}";
}

std::string limits_text(const JobLimits& limits) {
  std::string out = "{";
  if (std::isfinite(limits.up_to_s)) {
    append_numbers(out, "up_to_s", limits.up_to_s);
    out += ", ";
  }
  return out + "\"factor\": " + table_text(limits.factor) + "}";
}

// A list with an item a line.
template <class List, class Text>
std::string lines(const char* key, const List& list, const Text& text_of) {
  std::string out = fmt::format(",\n  \"{}\": [", key);
  for (const auto& item : list) {
    out += &item == &list.front() ? "\n    " : ",\n    ";
    out += text_of(item);
  }
  return out + "\n  ]";
}

}  // namespace

JobMix read_job_mix(const JsonValue& at, const std::string& name) {
  at.expect_only({"title", "source", "summary", "arrivals", "queues", "users", "limits", "parts"});
  JobMix mix;
  if (const auto summary = at.find("summary")) {
    for (const char* other : {"parts", "queues"})
      if (const auto both = at.find(other)) both->fail("no such key beside \"summary\"");
    mix = job_mix_of(read_summary(*summary));
  } else {
    mix.arrivals.jobs_per_day = jobs_per_day_in(at.at("arrivals").at("jobs_per_day"));
    if (const auto queues = at.find("queues")) read_queues(*queues, mix);
    double sum = 0;
    for (const JsonValue& part : at.at("parts").items()) {
      mix.parts.push_back(read_part(part, mix));
      sum += mix.parts.back().share;
    }
    if (!(sum > 0)) at.at("parts").fail("parts of which one has a share above 0");
  }
  mix.name = name;
  if (const auto title = at.find("title")) mix.title = title->text();
  if (const auto arrivals = at.find("arrivals")) {
    read_arrivals(*arrivals, mix.arrivals);
    if (const auto rate = arrivals->find("jobs_per_day"))
      mix.arrivals.jobs_per_day = jobs_per_day_in(*rate);
  }
  if (const auto users = at.find("users")) mix.users = shares_in(*users);
  if (const auto limits = at.find("limits")) mix.limits = read_limits(*limits);
  return mix;
}

std::string job_mix_text(const JobMix& mix, const std::string& source) {
  std::string out = "{\n";
  if (!mix.title.empty()) out += "  \"title\": " + Json(mix.title).dump() + ",\n";
  out += "  \"source\": " + Json(source).dump();
  out += ",\n  \"arrivals\": " + arrivals_text(mix.arrivals);
  out += ",\n  \"queues\": " + Json(mix.queues).dump();
  if (!mix.users.empty()) append_numbers(out += ",\n  ", "users", mix.users);
  if (!mix.limits.empty()) out += lines("limits", mix.limits, limits_text);
  return out + lines("parts", mix.parts, part_text) + "\n}\n";
}

std::vector<JobMixEntry> job_mix_entries(const std::filesystem::path& catalog_folder) {
  const JsonValue index = JsonValue::load(catalog_folder / "job_mixes" / "index.json");
  std::vector<JobMixEntry> entries;
  for (const JsonValue& at : index.at("job_mixes").items()) {
    at.expect_only({"name", "title", "file", "source"});
    entries.push_back({.name = at.at("name").text(),
                       .title = at.at("title").text(),
                       .file = at.at("file").text(),
                       .source = at.at("source").text()});
  }
  return entries;
}

JobMix load_job_mix(const std::string& name_or_path, const std::filesystem::path& catalog_folder) {
  if (is_inline_entry(name_or_path)) {
    JobMix mix = read_job_mix(JsonValue::parse(name_or_path, "mix"), "mix");
    if (!mix.title.empty()) mix.name = mix.title;
    return mix;
  }
  const std::filesystem::path file =
      entry_file(job_mix_entries(catalog_folder), catalog_folder / "job_mixes", name_or_path,
                 {.file = "mix", .expected = "a file or a mix of jobs of the catalogue"});
  return read_job_mix(JsonValue::load(file), name_or_path);
}

}  // namespace orrery
