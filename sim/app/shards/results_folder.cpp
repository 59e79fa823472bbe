// SPDX-License-Identifier: Apache-2.0
// Reads and appends lines of results.
#include "sim/app/shards/results_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>

#include "sim/base/content_hash.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/json/json.h"
#include "sim/question/settings/counts.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view begin = "{\"point\":\"";
constexpr std::string_view seconds_key = ",\"seconds\":";
constexpr std::string_view result_key = ",\"result\":", error_key = ",\"error\":";
constexpr std::size_t hash_digits = 16;
// Lines wait for others so that small results do not cost a write each; a process that is killed
// outright loses no more than this, or what it did in a second.
constexpr std::size_t most_waiting = std::size_t{256} << 10U;
constexpr std::chrono::seconds longest_wait{1};

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  gethostname(name.data(), name.size() - 1);
  std::string text = name.data();
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '.';
  return text;
}

bool is_results(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("part-") && name.ends_with(".jsonl");
}

// Which shard a file's name says: "part-3-of-8-HOST-..."; none of a process that did all.
std::optional<Shard> shard_of(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::size_t of = name.find("-of-", 5);
  if (of == std::string::npos) return std::nullopt;
  const auto index = whole_in(name.substr(5, of - 5));
  const auto count = whole_in(name.substr(of + 4, name.find('-', of + 4) - of - 4));
  if (!index || !count || *count < 1) return std::nullopt;
  return Shard{.index = *index, .count = *count};
}

std::vector<fs::path> result_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure))
    if (is_results(entry.path())) files.push_back(entry.path());
  if (failure)
    throw Error({.file = folder.string(),
                 .found = failure.message(),
                 .expected = "a folder of results that can be read"});
  std::sort(files.begin(), files.end());
  return files;
}

// Takes the prefix off; false where it is not there.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <class Number, class... Base>
std::optional<Number> take_number(std::string_view& text, Base... base) {
  Number number{};
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

ResultsFolder::ResultsFolder(fs::path folder, ResultKey key, std::optional<Shard> shard)
    : folder_(std::move(folder)),
      key_(std::move(key)),
      shard_(shard),
      middle_(fmt::format("\",\"question\":\"{}\",\"version\":\"{}\",\"catalogue\":\"{}\"",
                          key_.question, key_.version, key_.catalogue)),
      last_(std::chrono::steady_clock::now()) {}

ResultsFolder::~ResultsFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ResultsFolder::read(bool own) {
  const std::vector<fs::path> files = result_files(folder_);
  const bool as_many = shard_ && std::all_of(files.begin(), files.end(), [&](const fs::path& file) {
                         const auto of = shard_of(file);
                         return !of || of->count == shard_->count;
                       });
  for (const fs::path& file : files) {
    const auto of = shard_of(file);
    if (!own || !as_many || !of || of->index == shard_->index) read_file(file);
  }
}

void ResultsFolder::read_file(const fs::path& file) {
  files_.emplace_back(file);
  std::string_view rest = files_.back().text();
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;
       rest.remove_prefix(end + 1))
    take_line(rest.substr(0, end), file);
}

void ResultsFolder::take_line(std::string_view line, const fs::path& file) {
  std::string_view rest = line;
  const auto fail = [&] {
    // The slow way, which says what is wrong.
    const JsonValue json = JsonValue::parse(line, file.string());
    const auto same = [&](const char* key, const std::string& now) {
      if (json.at(key).text() != now)
        json.at(key).fail(now + ": results of two are not mixed in one folder");
    };
    same("version", key_.version);
    same("catalogue", key_.catalogue);
    same("question", key_.question);
    json.fail("a line that --results wrote", "another line");
  };
  std::optional<std::uint64_t> task;
  if (take(rest, begin) && rest.size() > hash_digits) {
    std::string_view digits = rest.substr(0, hash_digits);
    task = take_number<std::uint64_t>(digits, 16);
    if (!digits.empty()) task.reset();
    rest.remove_prefix(hash_digits);
  }
  if (!task || !take(rest, middle_) || !take(rest, seconds_key)) return fail();
  const auto seconds = take_number<double>(rest);
  const bool failed = rest.starts_with(error_key);
  if (!seconds || !take(rest, failed ? error_key : result_key) || !rest.ends_with('}'))
    return fail();
  rest.remove_suffix(1);
  const auto [at, added] = known_.try_emplace(*task, Kept{rest, failed, *seconds});
  if (added || at->second.text == rest) return;
  throw Error({.file = file.string(),
               .path = "point " + hash_text(*task),
               .found = "a second result that differs from the first",
               .expected = "one: the same point has the same result anywhere"});
}

std::optional<ResultsFolder::Kept> ResultsFolder::find(std::uint64_t task) const {
  if (const auto at = known_.find(task); at != known_.end()) return at->second;
  return std::nullopt;
}

void ResultsFolder::keep(std::uint64_t task, const std::string& text, bool failed, double seconds) {
  const std::scoped_lock lock(mutex_);
  if (known_.contains(task) || !new_.insert(task).second) return;
  waiting_ += fmt::format("{}{}{}{}{:.6g}{}{}}}\n", begin, hash_text(task), middle_, seconds_key,
                          seconds, failed ? error_key : result_key, text);
  if (waiting_.size() >= most_waiting || std::chrono::steady_clock::now() - last_ >= longest_wait)
    write_out();
}

void ResultsFolder::flush() {
  const std::scoped_lock lock(mutex_);
  write_out();
}

void ResultsFolder::open_own() {
  // Two processes never share a file, also where machines count their processes alike.
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    const std::string part = shard_ ? fmt::format("{}-of-{}", shard_->index, shard_->count) : "all";
    own_ = folder_ / fmt::format("part-{}-{}-{}-{}.jsonl", part, host_name(), getpid(), attempt);
    descriptor_ = open(own_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ >= 0 || errno == EEXIST) continue;
    const ErrorInfo why{.file = own_.string(),
                        .found = std::strerror(errno),
                        .expected = "a folder that results can be written into"};
    if (errno == EACCES || errno == EROFS || errno == ENOENT) throw Error(why);
    throw MachineFailed(why);
  }
}

void ResultsFolder::write_out() {
  last_ = std::chrono::steady_clock::now();
  if (waiting_.empty()) return;
  if (descriptor_ < 0) open_own();
  std::size_t at = 0;
  while (at < waiting_.size()) {
    const ssize_t some = write(descriptor_, waiting_.data() + at, waiting_.size() - at);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) break;
    at += static_cast<std::size_t>(some);
  }
  if (at == waiting_.size()) {
    written_ += static_cast<std::int64_t>(at);
    waiting_.clear();
    return;
  }
  const ErrorInfo why{.file = own_.string(),
                      .found = std::strerror(errno),
                      .expected = "room for results; those before are kept"};
  // Whole lines alone stay. Readers skip a part of one as well.
  const std::size_t whole = waiting_.substr(0, at).rfind('\n');
  const std::int64_t good =
      written_ + (whole == std::string::npos ? 0 : static_cast<std::int64_t>(whole) + 1);
  if (ftruncate(descriptor_, good) == 0) written_ = good;
  waiting_.clear();
  throw MachineFailed(why);
}

std::vector<std::int64_t> ResultsFolder::shard_counts() const {
  std::vector<std::int64_t> counts;
  for (const fs::path& file : result_files(folder_))
    if (const auto of = shard_of(file)) counts.push_back(of->count);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace orrery
