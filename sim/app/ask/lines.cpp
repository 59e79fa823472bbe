// SPDX-License-Identifier: Apache-2.0
// Reads questions line by line and writes their answers in order.
#include "sim/app/ask/lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/app/answer/answer.h"
#include "sim/app/answer/failure.h"
#include "sim/app/line/result.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"

namespace orrery {
namespace {

constexpr std::size_t longest_line = std::size_t{64} << 20U;  // as JsonValue takes

// Lines of a file or of stdin, as they come: what a program writes one by one is answered so.
class LineSource {
 public:
  explicit LineSource(const std::string& file) : name_(file == "-" ? "stdin" : file) {
    if (file == "-") return;
    descriptor_ = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(std::strerror(errno));
  }
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
  ~LineSource() {
    if (descriptor_ != STDIN_FILENO) close(descriptor_);
  }
  const std::string& name() const { return name_; }

  // The next lines, at least one and at most so many; none at the end.
  std::vector<std::string> next(std::size_t most) {
    while (!ended_ && rest_.find('\n', from_) == std::string::npos) read_more();
    std::vector<std::string> lines;
    while (lines.size() < most) {
      const std::size_t end = rest_.find('\n', from_);
      if (end == std::string::npos) break;
      lines.push_back(rest_.substr(from_, end - from_));
      from_ = end + 1;
    }
    if (lines.empty() && ended_ && from_ < rest_.size() && !interrupted()) {
      lines.push_back(rest_.substr(from_));
      from_ = rest_.size();
    }
    return lines;
  }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw Error({.file = name_, .found = found, .expected = "lines of JSON"});
  }

  void read_more() {
    constexpr std::size_t piece = std::size_t{1} << 18U;
    rest_.erase(0, from_);
    from_ = 0;
    if (rest_.size() > longest_line) fail("a line of more than 64 MiB");
    const std::size_t old = rest_.size();
    rest_.resize(old + piece);
    const ssize_t got = read(descriptor_, rest_.data() + old, piece);
    rest_.resize(old + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) fail(std::strerror(errno));
    ended_ = got == 0 || interrupted();
  }

  std::string name_, rest_;
  std::size_t from_ = 0;  // where the next line begins in `rest_`
  int descriptor_ = STDIN_FILENO;
  bool ended_ = false;
};

// Writes what lines come to: answers wait for those before them.
class InOrder {
 public:
  explicit InOrder(std::size_t count) : answers_(count) {}

  void put(std::size_t index, std::string answer) {
    const std::scoped_lock lock(mutex_);
    answers_[index] = std::move(answer);
    for (; written_ < answers_.size() && answers_[written_]; ++written_) {
      write_result(*answers_[written_]);
      answers_[written_]->clear();
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::optional<std::string>> answers_;
  std::size_t written_ = 0;
};

// Lines that are no questions.
struct BadLines {
  std::mutex mutex;
  std::int64_t count = 0, first = 0;
  std::string why;

  void add(std::int64_t line, const Error& error) {
    const std::scoped_lock lock(mutex);
    if (count++ > 0 && line > first) return;
    first = line;
    why = error.message();
  }
};

Json error_of_line(const Error& error, std::int64_t line) {
  Json json = error_json(error.info(), kind_of(error));
  json["error"]["line"] = line;
  return json;
}

Json answer_one(const std::string& text, const std::string& file, std::int64_t line,
                const AnswerLine& answer, BadLines& bad) {
  try {
    const JsonValue question = JsonValue::parse(text, fmt::format("{}:{}", file, line));
    if (!question.is_object()) question.fail("an object of settings");
    if (const auto model = question.find("model"); model && model->raw() == "-")
      model->fail("a model that does not stand where the lines may stand");
    return answer(question);
  } catch (const Error& error) {
    if (exit_code_of(error) == ExitCode::bad_input) bad.add(line, error);
    return error_of_line(error, line);
  }
}

}  // namespace

ExitCode answer_lines(const LinesOptions& options, const AnswerLine& answer, const LineText& text) {
  install_interrupt_handler();
  LineSource source(options.file);
  BadLines bad;
  std::int64_t before = 0;
  while (!interrupted()) {
    const std::vector<std::string> lines = source.next(options.at_once);
    if (lines.empty()) break;
    InOrder order(lines.size());
    parallel_for(lines.size(), options.threads, [&](std::size_t i) {
      if (interrupted()) return;
      const std::int64_t number = before + static_cast<std::int64_t>(i) + 1;
      std::string one = text(number, answer_one(lines[i], source.name(), number, answer, bad));
      // What Ctrl-C cut short is not the line's answer.
      if (!interrupted()) order.put(i, std::move(one));
    });
    before += static_cast<std::int64_t>(lines.size());
  }
  if (interrupted()) return unless_stopped(ExitCode::answer);
  if (bad.count == 0) return ExitCode::answer;
  fmt::print(stderr, "orrery: {}: {} bad line{} of {}, the others are answered; the first: {}\n",
             source.name(), bad.count, bad.count == 1 ? "" : "s", before, bad.why);
  return ExitCode::check_failed;
}

}  // namespace orrery
