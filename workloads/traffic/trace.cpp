// SPDX-License-Identifier: Apache-2.0
// Reads traces of requests, each line strictly.
#include "workloads/traffic/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>

#include "sim/base/date.h"
#include "sim/base/entry_file.h"
#include "sim/base/errors/check.h"
#include "sim/base/input_file.h"
#include "sim/base/json/json.h"
#include "sim/base/text/csv.h"
#include "sim/base/text/lines.h"

namespace orrery {
namespace {

constexpr std::int64_t mooncake_unit = 512;

// Requests one after another, and the hashes of all.
class TraceMaker {
 public:
  explicit TraceMaker(const std::string& file) : file_(file) {}

  [[noreturn]] void fail(std::size_t line, const std::string& where, const std::string& found,
                         const std::string& expected) const {
    const std::string path =
        where.empty() ? fmt::format("line {}", line) : fmt::format("line {}, {}", line, where);
    throw Error({.file = file_, .path = path, .found = found, .expected = expected});
  }

  std::int32_t tokens(std::size_t line, const std::string& where, std::int64_t value) const {
    if (value < 1 || value > most_request_tokens)
      fail(line, where, fmt::format("{}", value), "whole tokens between 1 and 10^9");
    return static_cast<std::int32_t>(value);
  }

  // Of a whole number of picoseconds since an origin that all lines share.
  void add(std::size_t line, const std::string& where, Request request) {
    if (list_.requests.empty()) {
      first_ = request.arrival;
    } else if (request.arrival < last_) {
      fail(line, where, "an arrival before that of the line above", "arrivals in order");
    }
    last_ = request.arrival;
    request.arrival = request.arrival - first_;
    list_.requests.push_back(request);
  }

  // Numbers of the file become 0, 1, 2, ... in order of appearance.
  void add_hash(std::int64_t id) {
    const auto next = static_cast<std::uint32_t>(known_.size());
    hashes_.push_back(known_.try_emplace(id, next).first->second);
  }
  std::size_t hashes() const { return hashes_.size(); }

  std::int32_t class_named(const std::string& name) {
    auto& names = list_.classes;
    const auto index = std::find(names.begin(), names.end(), name) - names.begin();
    if (index == static_cast<std::ptrdiff_t>(names.size())) names.push_back(name);
    return static_cast<std::int32_t>(index);
  }
  void forget_classes() { list_.classes.clear(); }

  RequestList made(std::int64_t hash_tokens) {
    if (list_.requests.empty())
      throw Error({.file = file_, .found = "no requests", .expected = "at least one"});
    list_.hash_tokens = hash_tokens;
    list_.hashes = std::make_shared<const std::vector<std::uint32_t>>(std::move(hashes_));
    return std::move(list_);
  }

 private:
  const std::string& file_;
  RequestList list_;
  std::vector<std::uint32_t> hashes_;
  std::unordered_map<std::int64_t, std::uint32_t> known_;
  Ticks first_, last_;
};

// The full units of a prompt; the file's last hash may be of a part.
void take_hashes(const JsonValue& ids, std::int64_t prompt, Request& request, TraceMaker& maker) {
  const auto parts = static_cast<std::int64_t>(ids.raw().size());
  const std::int64_t full = prompt / mooncake_unit,
                     all = (prompt + mooncake_unit - 1) / mooncake_unit;
  if (!ids.is_array() || parts < full || parts > all)
    ids.fail(fmt::format("a list of {} numbers, one for every {} tokens", all, mooncake_unit));
  request.first_hash = static_cast<std::uint32_t>(maker.hashes());
  request.hashes = static_cast<std::uint32_t>(full);
  for (std::int64_t i = 0; i < full; ++i) {
    const SortedJson& id = ids.raw()[i];
    if (!id.is_number_integer()) ids.fail("whole numbers");
    maker.add_hash(id.get<std::int64_t>());
  }
}

RequestList parse_mooncake(std::string_view text, const std::string& file) {
  constexpr std::int64_t picoseconds = 1'000'000'000, most = 106LL * 24 * 3600 * 1000;
  TraceMaker maker(file);
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(text, number);
    if (is_blank(line)) continue;
    const JsonValue at = JsonValue::parse(line, fmt::format("{}: line {}", file, number));
    Request request{.arrival = Ticks{at.at("timestamp").integer(0, most) * picoseconds}};
    const std::int64_t prompt = at.at("input_length").integer(1, most_request_tokens);
    request.prompt = static_cast<std::int32_t>(prompt);
    request.output =
        static_cast<std::int32_t>(at.at("output_length").integer(1, most_request_tokens));
    if (const auto ids = at.find("hash_ids")) take_hashes(*ids, prompt, request, maker);
    maker.add(number, "timestamp", request);
  }
  return maker.made(mooncake_unit);
}

// Hundreds of nanoseconds of "2023-11-16 18:15:46.6805900", with or without a fraction.
std::optional<std::int64_t> azure_time(const std::string& text) {
  constexpr std::string_view form = "dddd-dd-dd dd:dd:dd";
  if (text.size() < form.size() || text.size() > form.size() + 8) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (i == form.size()                    ? text[i] != '.'
        : i < form.size() && form[i] != 'd' ? text[i] != form[i]
                                            : !digit)
      return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    std::int64_t value = 0;
    std::from_chars(text.data() + at, text.data() + at + length, value);
    return value;
  };
  const auto date = date_from_text(text.substr(0, 10));
  const std::int64_t hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!date || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  std::string fraction = text.size() > form.size() ? text.substr(form.size() + 1) : "";
  fraction.resize(7, '0');
  return (((date->days * 24 + hour) * 60 + minute) * 60 + second) * 10'000'000 +
         std::stoll(fraction);
}

std::int32_t tokens_in(const CsvTable& table, std::size_t i, const std::string& column,
                       const TraceMaker& maker) {
  const CsvRow row(table, i);
  const auto value = row.integer(column);
  if (!value) row.fail(column, "whole tokens between 1 and 10^9");
  return maker.tokens(table.lines[i], "column " + column, *value);
}

RequestList parse_azure(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  require_columns(table, {"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
                  "workloads/catalog/traces/README.md");
  TraceMaker maker(file);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const auto time = azure_time(row.text("TIMESTAMP"));
    if (!time) row.fail("TIMESTAMP", "a time such as 2023-11-16 18:15:46.6805900");
    if (i == 0) first = *time;
    // 100 ns each; a century would not fit picoseconds.
    if (*time < first || *time - first > std::int64_t{90} * 86400 * 10'000'000)
      row.fail("TIMESTAMP", "arrivals in order, within 90 days of the first");
    maker.add(table.lines[i], "column TIMESTAMP",
              {.arrival = Ticks{(*time - first) * 100'000},
               .prompt = tokens_in(table, i, "ContextTokens", maker),
               .output = tokens_in(table, i, "GeneratedTokens", maker)});
  }
  return maker.made(0);
}

RequestList parse_own(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  require_columns(table, {"arrival_s", "prompt", "output"}, "workloads/catalog/traces/README.md");
  TraceMaker maker(file);
  if (table.has("class")) maker.forget_classes();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const auto arrival = row.number("arrival_s");
    constexpr double most = 90.0 * 86400;
    if (!arrival || *arrival < 0 || *arrival > most)
      row.fail("arrival_s", "seconds between 0 and 90 days");
    Request request{.arrival = to_ticks(Seconds(*arrival)),
                    .prompt = tokens_in(table, i, "prompt", maker),
                    .output = tokens_in(table, i, "output", maker)};
    if (const auto session = row.integer("session")) {
      if (*session < 0 || *session > 0x7FFFFFFF) row.fail("session", "a number from 0 on");
      request.session = static_cast<std::int32_t>(*session);
    }
    if (table.has("class")) request.class_index = maker.class_named(row.text("class"));
    maker.add(table.lines[i], "column arrival_s", request);
  }
  return maker.made(0);
}

}  // namespace

TraceFormat format_of(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('{')) return TraceFormat::mooncake;
  return text.starts_with("TIMESTAMP,") ? TraceFormat::azure : TraceFormat::orrery;
}

RequestList parse_trace(std::string_view text, TraceFormat format, const std::string& file) {
  if (is_blank(text))
    throw Error({.file = file, .found = "an empty file", .expected = "a trace of requests"});
  switch (format) {
    case TraceFormat::mooncake:
      return parse_mooncake(text, file);
    case TraceFormat::azure:
      return parse_azure(text, file);
    case TraceFormat::orrery:
      break;
  }
  return parse_own(text, file);
}

RequestList read_trace(const std::filesystem::path& file) {
  constexpr std::size_t limit = std::size_t{1} << 30U;
  const std::string text = bounded_content(file, limit, "a trace of requests");
  return parse_trace(text, format_of(text), file.string());
}

std::vector<TraceEntry> trace_entries(const std::filesystem::path& catalog_folder) {
  const JsonValue index = JsonValue::load(catalog_folder / "traces" / "index.json");
  std::vector<TraceEntry> entries;
  for (const JsonValue& at : index.at("traces").items()) {
    at.expect_only({"name", "title", "file", "format", "source"});
    entries.push_back({.name = at.at("name").text(),
                       .title = at.at("title").text(),
                       .file = at.at("file").text(),
                       .source = at.at("source").text(),
                       .format = trace_format_text.from(at.at("format"))});
  }
  return entries;
}

RequestList load_trace(const std::string& name, const std::filesystem::path& catalog_folder) {
  return read_trace(
      entry_file(trace_entries(catalog_folder), catalog_folder / "traces", name,
                 {.file = "trace", .expected = "a file or a trace of the catalogue"}));
}

}  // namespace orrery
