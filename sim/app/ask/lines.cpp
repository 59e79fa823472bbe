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
#include "sim/app/answer/columns.h"
#include "sim/app/answer/failure.h"
#include "sim/app/line/result.h"
#include "sim/base/content_hash.h"
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

  void add(std::int64_t line, std::string sentence) {
    const std::scoped_lock lock(mutex);
    if (count++ > 0 && line > first) return;
    first = line;
    why = std::move(sentence);
  }
};

// An error as it is kept: where it stands at the line itself, true in place of the file, since a
// text may stand in several lines.
Json error_without_line(const Error& error, const std::string& place) {
  Json json = error_json(error.info(), kind_of(error));
  if (error.info().file == place) json["error"]["file"] = true;
  return json;
}

class Lines {
 public:
  Lines(const LinesOptions& options, const AnswerLine& answer, const LineForm& form)
      : options_(options),
        answer_(answer),
        form_(form),
        source_(options.file),
        name_(options.name.empty() ? source_.name() : options.name) {}

  ExitCode run() {
    install_interrupt_handler();
    while (!interrupted() && fill()) {
      InOrder order(batch_.size());
      parallel_for(batch_.size(), options_.threads, [&](std::size_t i) {
        if (interrupted()) return;
        std::string one = answered(batch_[i]);
        // What Ctrl-C cut short is not the line's answer.
        if (!interrupted()) order.put(i, std::move(one));
      });
    }
    if (interrupted()) return unless_stopped(ExitCode::answer);
    if (bad_.count == 0) return ExitCode::answer;
    fmt::print(stderr, "orrery: {}: {} bad line{} of {}, the others are answered; the first: {}\n",
               name_, bad_.count, bad_.count == 1 ? "" : "s", read_, bad_.why);
    return ExitCode::check_failed;
  }

 private:
  struct Numbered {
    std::int64_t number = 0;
    std::string text;
  };

  // The next lines that this process is to answer; false at the end.
  bool fill() {
    batch_.clear();
    while (batch_.size() < options_.at_once) {
      std::vector<std::string> lines = source_.next(options_.at_once - batch_.size());
      if (lines.empty()) break;
      for (std::string& line : lines) {
        ++read_;
        if (options_.tasks == nullptr || options_.tasks->wants(content_hash(line)))
          batch_.push_back({read_, std::move(line)});
      }
      // What a program writes one by one is answered so.
      if (options_.tasks == nullptr) break;
    }
    return !batch_.empty();
  }

  // As it is kept; nothing where the process was interrupted.
  std::optional<std::string> make(const Numbered& line) {
    const std::string place = fmt::format("{}:{}", name_, line.number);
    try {
      const JsonValue question = JsonValue::parse(line.text, place);
      if (!question.is_object()) question.fail("an object of settings");
      if (const auto model = question.find("model"); model && model->raw() == "-")
        model->fail("a model that does not stand where the lines may stand");
      const Json answer = answer_(question);
      if (interrupted()) return std::nullopt;
      return form_.kept(answer);
    } catch (const Error& error) {
      if (options_.tasks != nullptr && exit_code_of(error) == ExitCode::machine_failed) throw;
      return error_without_line(error, place).dump();
    }
  }

  // As it is written; empty where another process has the line.
  std::string answered(const Numbered& line) {
    const auto kept =
        task_result(options_.tasks, content_hash(line.text), [&] { return make(line); });
    if (!kept || !goes_on(options_.tasks)) return "";
    if (!is_error_text(*kept)) return form_.shown(line.number, *kept);
    Json json = Json::parse(*kept);
    Json& error = json["error"];
    if (error.at("file").is_boolean()) error["file"] = fmt::format("{}:{}", name_, line.number);
    error["line"] = line.number;
    if (error.at("kind") == "bad_input") bad_.add(line.number, error_sentence(json));
    return form_.error(line.number, json);
  }

  const LinesOptions& options_;
  const AnswerLine& answer_;
  const LineForm& form_;
  LineSource source_;
  std::string name_;
  BadLines bad_;
  std::int64_t read_ = 0;  // lines
  std::vector<Numbered> batch_;
};

}  // namespace

ExitCode answer_lines(const LinesOptions& options, const AnswerLine& answer, const LineForm& form) {
  return Lines(options, answer, form).run();
}

}  // namespace orrery
