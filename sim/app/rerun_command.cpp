// SPDX-License-Identifier: Apache-2.0
// Repeats an answer from its own question.
#include "sim/app/rerun_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "sim/app/answer/version.h"
#include "sim/app/ask/answers.h"
#include "sim/app/line/result.h"
#include "sim/app/rerun_line.h"
#include "sim/app/schedule/command.h"
#include "sim/app/serve/command.h"
#include "sim/app/topology/command.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/json/leaves.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

// Where an answer says how far each part of the work came.
constexpr const char* stopped_key = "stopped_after";

// An answer of before, as it stands in its file.
struct Before {
  std::string file;
  JsonValue answer;
  std::string command;
  JsonValue question;
  std::optional<std::uint64_t> seed;
  bool one_line = false;
};

const std::vector<std::string>& repeatable() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"simulate", "advise", "plan", "serve", "schedule", "topology"};
    for (std::string& name : line_commands()) all.push_back(std::move(name));
    return all;
  }();
  return names;
}

// Whether the answer is a line of many (--jsonl) or has lines of its own.
bool is_one_line(const std::string& file) {
  std::ifstream in(file);
  std::string first, second;
  std::getline(in, first);
  return !std::getline(in, second) || second.empty();
}

Before read_before(const std::string& file) {
  if (file.empty())
    throw Error({.file = "rerun", .found = "nothing", .expected = "a file with an answer"});
  const JsonValue answer = JsonValue::load(file);
  if (!answer.is_object() || !answer.has("orrery") || !answer.has("question"))
    answer.fail("an answer that --json printed: one with \"orrery\" and \"question\"");
  const JsonValue head = answer.at("orrery");
  Before before{.file = file,
                .answer = answer,
                .command = head.at("command").one_of(repeatable()),
                .question = JsonValue::from(answer.at("question").raw(), file + ": question")};
  if (const auto seed = head.find("seed"))
    before.seed = static_cast<std::uint64_t>(seed->integer());
  before.one_line = is_one_line(file);
  return before;
}

// Error where another program or catalogue would answer.
void check_same(const Before& before) {
  const JsonValue head = before.answer.at("orrery");
  const auto same = [&](const char* key, const std::string& now) {
    const JsonValue was = head.at(key);
    if (was.text() != now)
      was.fail(fmt::format("{}, what answers here; --anyway shows both answers", now));
  };
  same("version", program_version());
  same("catalogue", catalogue_version());
}

// As far as a search went that Ctrl-C or its time limit ended.
void stop_as_before(const Before& before, AskedWith& with) {
  const auto stopped = before.answer.find("stopped_early");
  if (stopped && stopped->boolean() && before.answer.has("batches"))
    with.most_batches = before.answer.at("batches").integer(1, INT64_MAX);
  const auto parts = before.answer.find(stopped_key);
  if (!parts) return;
  with.stop_after.emplace();
  for (const JsonValue& part : parts->items())
    with.stop_after->push_back(part.raw().is_null() ? std::nullopt
                                                    : std::optional(part.integer(0, INT64_MAX)));
}

MachineAnswer answer_again(const Before& before, int threads) {
  if (before.command == "topology") return {.json = topology_again(before.question, before.seed)};
  if (before.command == "serve") return serve_again(before.question, before.seed, threads);
  if (before.command == "schedule") return schedule_again(before.question, before.seed, threads);
  Catalogues catalogues;
  AskedWith with{.catalogues = catalogues, .seed = before.seed, .threads = threads};
  stop_as_before(before, with);
  try {
    return answer_for_machines(before.command, before.question, with);
  } catch (const Error& error) {
    // A plan has its own parts; the file that says otherwise is this one.
    if (error.info().file != stopped_key) throw;
    ErrorInfo info = error.info();
    info.file = before.file;
    info.path = stopped_key;
    throw Error(std::move(info));
  }
}

Json differences(const SortedJson& was, const SortedJson& is) {
  const auto before = leaves_of(was), now = leaves_of(is);
  Json list = Json::array();
  for (const auto& [path, value] : before) {
    const auto same = now.find(path);
    if (same == now.end() || same->second != value)
      list.push_back({{"path", path},
                      {"before", value},
                      {"now", same == now.end() ? SortedJson() : same->second}});
  }
  for (const auto& [path, value] : now)
    if (!before.contains(path))
      list.push_back({{"path", path}, {"before", nullptr}, {"now", value}});
  return list;
}

ExitCode run(const Given& given) {
  install_interrupt_handler();
  const CommonFlags common = common_of(given);
  const Before before = read_before(given.word(0));
  const bool anyway = given.has("--anyway");
  if (!anyway) check_same(before);
  if (const auto lines = line_commands();
      std::find(lines.begin(), lines.end(), before.command) != lines.end()) {
    if (anyway)
      throw Error({.file = "--anyway",
                   .found = before.command,
                   .expected = "an answer of simulate, advise, plan or topology"});
    return write_result(repeat_line(before.command, before.question, before.seed, common.threads));
  }
  const MachineAnswer now = answer_again(before, common.threads);
  const Json changed = differences(before.answer.raw(), SortedJson(now.json));
  if (anyway) {
    write_result(indented_text(
        {{"before", before.answer.raw()}, {"now", now.json}, {"differences", changed}}));
    return now.code;
  }
  write_result(before.one_line ? json_line(now.json) : indented_text(now.json));
  if (changed.empty()) return unless_stopped(now.code);
  fmt::print(stderr, "orrery: {}: the answer is another: {}, the first at {}\n", before.file,
             plural(changed.size(), "value"), changed.front().at("path").get<std::string>());
  return unless_stopped(ExitCode::check_failed);
}

}  // namespace

Command rerun_command() {
  return {
      .name = "rerun",
      .summary = "repeat an answer of --json from the question that it carries",
      .arguments = {{"answer", "JSON file that --json, or a line that --jsonl printed", "file"}},
      .flags = {{"--anyway", "", output_group,
                 "with another version or catalogue too: both answers and what differs"}},
      .examples = {{"orrery rerun answer.json", "the same bytes again"},
                   {"orrery rerun answer.json --anyway",
                    "what a later version says, beside what was said"}},
      .run = run};
}

}  // namespace orrery
