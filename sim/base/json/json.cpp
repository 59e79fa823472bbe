// SPDX-License-Identifier: Apache-2.0
// Takes values out of a JSON document, and says what is wrong with one.
#include "sim/base/json/json.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <mutex>
#include <system_error>

#include "sim/base/errors/check.h"
#include "sim/base/errors/file_guard.h"
#include "sim/base/json/parser.h"
#include "sim/base/text/lines.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

// What stands there, for a message.
std::string describe(const SortedJson& value) {
  if (value.is_object())
    return value.empty() ? "an empty object" : fmt::format("an object of {}", value.size());
  if (value.is_array())
    return value.empty() ? "an empty list" : fmt::format("a list of {}", value.size());
  if (value.is_string()) return in_quotes(value.text());
  return value.dump();
}

std::string member_path(const std::string& path, std::string_view key) {
  const std::string name(key.substr(0, 60));
  return path.empty() ? name : path + "." + name;
}

// The path from `from` to the value that lies at `wanted`; none where it is not in there.
std::optional<std::string> path_between(const SortedJson& from, const SortedJson* wanted,
                                        const std::string& path) {
  if (&from == wanted) return path;
  if (from.is_object())
    for (const auto& [key, value] : from.items())
      if (auto found = path_between(value, wanted, member_path(path, key))) return found;
  if (from.is_array())
    for (std::size_t i = 0; i < from.size(); ++i)
      if (auto found = path_between(from[i], wanted, fmt::format("{}[{}]", path, i))) return found;
  return std::nullopt;
}

}  // namespace

struct JsonValue::Document {
  std::string file;
  SortedJson root;
};

namespace {

// What says that a file is still the one that was read: where it lies, how long it is and when it
// last changed.
struct Stamp {
  dev_t device = 0;
  ino_t node = 0;
  off_t size = 0;
  std::int64_t changed = 0;  // ns
  bool operator==(const Stamp&) const = default;
};

std::int64_t in_nanoseconds(const timespec& time) {
  return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// None for what is no file (a pipe gives its text once), and for a file of the last second: clocks
// of file systems are coarse, and it could change again without another time.
std::optional<Stamp> settled_stamp(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t changed = in_nanoseconds(status.st_mtim);
  if (changed > in_nanoseconds(now) - 1'000'000'000) return std::nullopt;
  return Stamp{status.st_dev, status.st_ino, status.st_size, changed};
}

// The documents that this process has read. A catalogue's file is asked for again and again (each
// release of a stack, each scenario of a list), and reading it is most of a short command's time.
// Nobody can tell a document from the one before: values are read only, and a file that changed is
// read again.
class ReadDocuments {
 public:
  std::optional<JsonValue> find(const std::string& file, const Stamp& stamp) const {
    const std::lock_guard lock(mutex_);
    const auto known = documents_.find(file);
    if (known == documents_.end() || known->second.first != stamp) return std::nullopt;
    return known->second.second;
  }
  void keep(const std::string& file, const Stamp& stamp, const JsonValue& document) {
    const std::lock_guard lock(mutex_);
    documents_.insert_or_assign(file, std::pair(stamp, document));
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<Stamp, JsonValue>> documents_;
};

ReadDocuments& read_documents() {
  // Never destroyed: at the end of the process that would only take time.
  static ReadDocuments& documents = *new ReadDocuments;
  return documents;
}

}  // namespace

JsonValue JsonValue::load(const std::filesystem::path& file) {
  check_file_allowed(file);
  const std::string name = file.string();
  const std::optional<Stamp> stamp = settled_stamp(name);
  if (!stamp) return read(file);
  if (auto known = read_documents().find(name, *stamp)) return *known;
  JsonValue document = read(file);
  // A file that changed while it was read is not kept.
  if (settled_stamp(name) == stamp) read_documents().keep(name, *stamp, document);
  return document;
}

JsonValue JsonValue::read(const std::filesystem::path& file) {
  const auto fail = [&file](std::string found) {
    throw Error({.file = file.string(), .found = std::move(found), .expected = "a JSON file"});
  };
  check_file_allowed(file);
  std::error_code status;
  if (std::filesystem::is_directory(file, status)) fail("a directory");
  if (!std::filesystem::exists(file, status)) fail("no such file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail("a file that cannot be read");
  std::string text;
  // Read in pieces: a pipe has no size, and an endless one must end at the limit.
  std::vector<char> piece(std::size_t{1} << 16U);
  while (stream && text.size() <= json_size_limit) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) fail("a file that cannot be read");
  return parse(text, file.string());
}

JsonValue JsonValue::parse(std::string_view text, std::string file) {
  SortedJson root = parse_json(text, file);
  return from(std::move(root), std::move(file));
}

JsonValue JsonValue::from(SortedJson value, std::string file) {
  JsonValue root;
  auto document = std::make_shared<Document>(Document{std::move(file), std::move(value)});
  root.value_ = &document->root;
  root.document_ = std::move(document);
  return root;
}

bool JsonValue::is_null() const { return value_->is_null(); }
bool JsonValue::is_object() const { return value_->is_object(); }
bool JsonValue::is_array() const { return value_->is_array(); }
bool JsonValue::is_string() const { return value_->is_string(); }
bool JsonValue::is_number() const { return value_->is_number(); }

const std::string& JsonValue::file() const { return document_->file; }

std::string JsonValue::path() const {
  const auto path = path_between(document_->root, value_, "");
  CHECK_THAT(path.has_value(), "a value lies in its document");
  return *path;
}

void JsonValue::fail(const std::string& expected, std::string found) const {
  if (found.empty()) found = describe(*value_);
  throw Error({.file = file(), .path = path(), .found = std::move(found), .expected = expected});
}

bool JsonValue::has(std::string_view key) const {
  return value_->is_object() && value_->contains(key);
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!value_->is_object()) fail(fmt::format("an object with {}", in_quotes(key)));
  const auto member = value_->find(key);
  if (member == value_->end() || member->is_null()) return std::nullopt;
  JsonValue found = *this;
  found.value_ = &*member;
  return found;
}

JsonValue JsonValue::at(std::string_view key) const {
  if (!value_->is_object()) fail(fmt::format("an object with {}", in_quotes(key)));
  const auto member = value_->find(key);
  if (member == value_->end()) {
    std::vector<std::string> keys;
    for (const auto& [known, value] : value_->items()) keys.push_back(known);
    const std::string nearest = nearest_name(key, keys);
    throw Error(
        {.file = file(),
         .path = member_path(path(), key),
         .found = nearest.empty() ? "nothing" : fmt::format("nothing (but {})", in_quotes(nearest)),
         .expected = "this key"});
  }
  JsonValue found = *this;
  found.value_ = &*member;
  return found;
}

std::vector<JsonValue> JsonValue::items() const {
  if (!value_->is_array()) fail("a list");
  std::vector<JsonValue> result(value_->size(), *this);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].value_ = &(*value_)[i];
  }
  return result;
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  if (!value_->is_object()) fail("an object");
  std::vector<std::pair<std::string, JsonValue>> result;
  for (const auto& [key, value] : value_->items()) {
    JsonValue member = *this;
    member.value_ = &value;
    result.emplace_back(key, std::move(member));
  }
  return result;
}

std::string JsonValue::reference() const { return is_object() ? raw().dump() : text(); }

std::string JsonValue::text() const {
  if (!value_->is_string()) fail("text");
  return value_->get<std::string>();
}

double JsonValue::number() const {
  if (!value_->is_number()) fail("a number");
  const double number = value_->get<double>();
  if (!std::isfinite(number)) fail("a finite number");
  return number;
}

double JsonValue::share() const {
  const double share = number();
  if (!(share >= 0 && share <= 1)) fail("a share from 0 to 1");
  return share;
}

std::int64_t JsonValue::integer() const {
  constexpr std::string_view expected = "a whole number";
  if (value_->is_number_unsigned()) {
    const auto number = value_->get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) fail("a whole number below 2^63");
    return static_cast<std::int64_t>(number);
  }
  if (value_->is_number_integer()) return value_->get<std::int64_t>();
  if (!value_->is_number_float()) fail(std::string(expected));
  // 1e12 is a whole number too, as far as a double counts without gaps.
  const double number = value_->get<double>();
  if (!(std::abs(number) <= 0x1p53) || std::trunc(number) != number) fail(std::string(expected));
  return static_cast<std::int64_t>(number);
}

std::int64_t JsonValue::integer(std::int64_t low, std::int64_t high) const {
  const std::int64_t number = integer();
  if (number < low || number > high) {
    // Beyond a trillion the upper end is our own, not one that a person could mean.
    constexpr std::int64_t trillion = INT64_C(1) << 40;
    fail(number < low && high >= trillion ? fmt::format("a whole number of at least {}", low)
                                          : fmt::format("a whole number from {} to {}", low, high));
  }
  return number;
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

double JsonValue::si(Dimension wanted) const {
  try {
    if (value_->is_string()) return parse_si(value_->text(), wanted);
    // An empty text's error says what was expected.
    parse_si("", wanted);
  } catch (const Error& error) {
    std::string found = error.info().found;
    if (value_->is_number())
      found = describe(*value_) + ", a number without a unit";
    else if (!value_->is_string())
      found = describe(*value_);
    throw Error({.file = file(),
                 .path = path(),
                 .found = std::move(found),
                 .expected = error.info().expected,
                 .nearest = error.info().nearest});
  }
  return 0;
}

void JsonValue::expect_only(std::initializer_list<std::string_view> keys) const {
  if (!value_->is_object()) fail("an object");
  for (const auto& [key, value] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    throw Error({.file = file(),
                 .path = member_path(path(), key),
                 .found = "an unknown key",
                 .expected = fmt::format("one of {}", joined({keys.begin(), keys.size()}, ", ")),
                 .nearest = nearest_name(key, {keys.begin(), keys.end()})});
  }
}

void JsonValue::expect_only(const std::vector<std::string>& keys,
                            const std::string& expected) const {
  for (const auto& [key, value] : members())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw Error({.file = file(),
                   .path = member_path(path(), key),
                   .found = "unknown key",
                   .expected = expected,
                   .nearest = nearest_name(key, keys)});
}

std::vector<JsonValue> JsonValue::listed() const {
  if (!is_string()) return items();
  std::vector<JsonValue> parts;
  const std::string all = text(), place = path();
  if (all.empty()) return parts;
  for (const std::string_view field : fields_of(all, ',')) {
    std::string part(field);
    part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(from({{place, std::move(part)}}, file()).at(place));
  }
  return parts;
}

std::string JsonValue::one_of(const std::vector<std::string>& names) const {
  return names[index_in(names)];
}

std::size_t JsonValue::index_in(const std::vector<std::string>& names) const {
  const std::string name = text();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw Error({.file = file(),
               .path = path(),
               .found = in_quotes(name),
               .expected = fmt::format("one of {}", joined(names, ", ")),
               .nearest = nearest_name(name, names)});
}

RawSourced read_raw_sourced(const JsonValue& at, std::optional<Dimension> dimension, bool integer) {
  at.expect_only({"value", "low", "high", "evidence", "source", "reason"});
  const auto read = [&](std::string_view key) -> std::optional<double> {
    const std::optional<JsonValue> member = at.find(key);
    if (!member) return std::nullopt;
    const double number = dimension ? member->si(*dimension)
                          : integer ? static_cast<double>(member->integer())
                                    : member->number();
    if (number < 0) member->fail("a value of at least 0");
    return number;
  };
  RawSourced raw;
  (void)at.at("value");  // absent values are written down as null, with the reason
  raw.value = read("value");
  raw.low = read("low");
  raw.high = read("high");
  if (const auto source = at.find("source")) raw.source = source->text();
  if (const auto reason = at.find("reason")) raw.reason = reason->text();
  if (!raw.value) {
    if (raw.reason.empty()) at.fail("\"reason\": why the value is not known", "null");
    if (raw.low || raw.high) at.fail("no range", "a range of an absent value");
    return raw;
  }
  const JsonValue evidence = at.at("evidence");
  raw.evidence = evidence_text.from(evidence);
  if (raw.low.has_value() != raw.high.has_value())
    at.fail("\"low\" and \"high\"", "one end of a range");
  if (is_uncertain(raw.evidence) && !raw.low)
    at.fail(fmt::format("\"low\" and \"high\", since the value is {}", to_text(raw.evidence)),
            "no range");
  if (raw.low && !(*raw.low <= *raw.value && *raw.value <= *raw.high))
    at.fail("low <= value <= high", "a range that does not hold its value");
  // Only what nobody has written down may do with a reason in place of a source.
  const bool own_judgement =
      raw.evidence == Evidence::estimated || raw.evidence == Evidence::assumed;
  if (raw.source.empty() && !(own_judgement && !raw.reason.empty()))
    at.fail(own_judgement ? "\"source\" or \"reason\"" : "\"source\"", "no source");
  return raw;
}

Sourced<double> read_share(const JsonValue& at) {
  Sourced<double> share = read_sourced<double>(at);
  for (const auto& end : {share.value, share.low, share.high})
    if (end && *end > 1) at.fail("a share from 0 to 1");
  return share;
}

}  // namespace orrery
