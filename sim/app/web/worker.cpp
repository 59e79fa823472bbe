// SPDX-License-Identifier: Apache-2.0
// Answers one question for the server, and reads what such a worker says.
#include "sim/app/web/worker.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <mutex>

#include "hw_models/catalog.h"
#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/base/errors/file_guard.h"
#include "sim/base/errors/interrupt.h"

namespace orrery {
namespace {

constexpr const char* worker_words[] = {"web", "--worker"};

// This program again: itself, or the interpreter and module that it runs in.
std::vector<std::string> own_words() {
  std::vector<std::string> words;
  const char* named = std::getenv("ORRERY_COMMAND");
  if (named != nullptr && *named != '\0')
    for (const JsonValue& word : JsonValue::parse(named, "ORRERY_COMMAND").items())
      words.push_back(word.text());
  if (words.empty()) words = {"/proc/self/exe"};
  words.insert(words.end(), std::begin(worker_words), std::end(worker_words));
  return words;
}

std::string input_of(const ViewAsked& asked) {
  return Json({{"command", asked.command},
               {"question", asked.question.raw()},
               {"parts", asked.parts}})
      .dump();
}

// One line each; a search reports from many threads and more often than anyone reads.
class Reporter {
 public:
  void operator()(double share, std::int64_t count) {
    const std::scoped_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    write_result(json_line({{"share", share}, {"count", count}}));
  }

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_;
};

std::string answered(const std::string& input) {
  const JsonValue told = JsonValue::parse(input, "worker");
  std::vector<std::string> parts;
  for (const JsonValue& part : told.at("parts").items()) parts.push_back(part.text());
  const ViewAsked asked =
      read_view(told.at("command").text(), told.at("question").raw().dump(), parts);
  Catalogues catalogues;
  Reporter report;
  return view_text(asked, catalogues, 0,
                   [&](double share, std::int64_t count) { report(share, count); });
}

}  // namespace

bool is_worker_line(const std::vector<std::string>& words) {
  return std::equal(words.begin(), words.end(), std::begin(worker_words), std::end(worker_words));
}

ExitCode run_worker() {
  // It does not outlive the server.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  install_interrupt_handler();
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  allow_files_only_below(data_root());
  const WebReply reply = reply_with([&] { return answered(input); });
  write_result(json_line({{"status", reply.status}, {"body", reply.body}}));
  return ExitCode::answer;
}

Search::Search(const ViewAsked& asked) : child_(own_words(), input_of(asked)) {}

void Search::stop() { child_.send(SIGINT); }

void Search::take(const std::string& line) {
  const JsonValue said = JsonValue::parse(line, "worker");
  if (said.has("status"))
    reply_ = WebReply{.status = static_cast<unsigned>(said.at("status").integer(100, 599)),
                      .body = said.at("body").text()};
  else
    latest_ = {said.at("share").number(), said.at("count").integer()};
}

std::optional<Search::Progress> Search::progress() {
  latest_.reset();
  bool more = true;
  for (std::size_t before = printed_.size() + 1; more && !reply_ && before != printed_.size();) {
    before = printed_.size();
    more = child_.read(printed_, 0);
  }
  std::size_t from = 0;
  for (std::size_t end = 0; (end = printed_.find('\n', from)) != std::string::npos; from = end + 1)
    take(printed_.substr(from, end - from));
  printed_.erase(0, from);
  if (!more && !reply_) {
    child_.wait();
    reply_ = refusal_reply(500, "search", "an end without an answer: " + child_.errors(),
                           "an answer; please report this question");
  }
  return latest_;
}

}  // namespace orrery
