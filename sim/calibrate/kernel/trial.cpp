// SPDX-License-Identifier: Apache-2.0
// Tells the judge what to ask of a candidate and reads what it found.
#include "sim/calibrate/kernel/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "hw_models/catalog.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/json/json.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string sizes_text(const Sizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += fmt::format(" {}", size);
  return text + "\n";
}

std::string questions(const KernelSpec& spec, const KernelShapes& shapes,
                      const TrialOptions& options) {
  std::string text;
  if (options.check) {
    std::vector<Sizes> all = shapes.check;
    for (std::int64_t i = 0; i < shapes.drawn; ++i)
      all.push_back(drawn_shape(spec, shapes, options.seed, static_cast<std::uint64_t>(i)));
    for (const Sizes& shape : all)
      for (const std::string& kind : spec.data)
        text += fmt::format("case {} {}", spec.operation, kind) + sizes_text(shape);
  }
  for (const Sizes& shape : shapes.time) text += "time " + spec.operation + sizes_text(shape);
  return text;
}

Sizes sizes_of(const JsonValue& line) {
  Sizes out;
  for (const JsonValue& item : line.at("shape").items()) out.push_back(item.integer());
  return out;
}
std::vector<double> numbers_of(const JsonValue& at) {
  std::vector<double> out;
  for (const JsonValue& item : at.items()) out.push_back(item.number());
  return out;
}

// "sandbox network 1 files 1 ...".
KernelSandbox sandbox_of(const std::string& said) {
  const auto has = [&](const char* what) {
    return said.find(std::string(what) + " 1") != std::string::npos;
  };
  return {has("network"), has("files"), has("capabilities"), has("calls")};
}

void read_event(const JsonValue& line, KernelTrial& trial, bool& ended) {
  const std::string event = line.at("event").text();
  if (event == "no-device") trial.no_device = true;
  if (event == "end") ended = true;
  if (event == "failed") {
    trial.failure = line.at("failure").text();
    // It is the machine that lacks something, not the candidate.
    trial.no_device = trial.failure.starts_with("no torch") ||
                      trial.failure.starts_with("no device") || trial.failure.starts_with("memory");
  }
  if (event == "sandbox") trial.sandbox = sandbox_of(line.at("said").text());
  if (event == "device") {
    KernelDevice device{.name = line.at("name").text()};
    if (const auto processors = line.find("processors")) device.processors = processors->integer();
    if (const auto l2 = line.find("l2")) device.l2_bytes = l2->number();
    trial.device = std::move(device);
  }
  if (event == "case")
    trial.cases.push_back({.shape = sizes_of(line),
                           .data = line.at("data").text(),
                           .failure = line.at("failure").text(),
                           .worst = line.at("worst").number(),
                           .ok = line.at("ok").boolean()});
  if (event == "timed")
    trial.timed.push_back({.shape = sizes_of(line),
                           .failure = line.at("failure").text(),
                           .worst = line.at("worst").number(),
                           .cold = numbers_of(line.at("cold")),
                           .warm = numbers_of(line.at("warm")),
                           .launches = line.at("launches").integer(),
                           .round_trip = line.at("round_trip").number(),
                           .mhz = line.at("mhz").number(),
                           .ok = line.at("ok").boolean()});
}

}  // namespace

bool KernelTrial::right() const {
  const auto ok = [](const auto& one) { return one.ok; };
  return failure.empty() && !no_device && !timed.empty() &&
         std::all_of(cases.begin(), cases.end(), ok) && std::all_of(timed.begin(), timed.end(), ok);
}

double KernelTrial::worst() const {
  double most = 0;
  for (const KernelCase& one : cases) most = std::max(most, one.worst);
  for (const KernelTiming& one : timed) most = std::max(most, one.worst);
  return most;
}

KernelTrial read_trial(const std::string& printed) {
  KernelTrial trial;
  bool ended = false;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) read_event(JsonValue::parse(line, "the judge"), trial, ended);
  if (!ended && trial.failure.empty() && !trial.no_device) {
    trial.failure = "it ended before all was asked";
    for (const KernelCase& one : trial.cases)
      if (!one.ok) trial.failure = one.failure;
    for (const KernelTiming& one : trial.timed)
      if (!one.ok) trial.failure = one.failure;
  }
  return trial;
}

KernelTrial run_trial(const KernelTools& tools, const JudgePrograms& programs,
                      const BuiltKernel& kernel, const KernelSpec& spec, const fs::path& folder,
                      const TrialOptions& options) {
  make_folder(folder);
  std::vector<std::string> words = {programs.judge.string(), fs::absolute(folder).string(),
                                    fmt::format("{}", options.seconds),
                                    fmt::format("{:.0f}", options.memory)};
  if (kernel.script) {
    for (const std::string& word : {std::string("/usr/bin/env"), tools.python,
                                    (data_root() / "validation/kernels/worker.py").string()})
      words.push_back(word);
    words.push_back(fs::absolute(kernel.program).string());
  } else {
    words.push_back(fs::absolute(programs.worker).string());
    words.push_back(fs::absolute(kernel.program).string());
  }
  const KernelShapes& shapes = tools.host ? spec.host : spec.gpu;
  const std::string asked = questions(spec, shapes, options);
  const auto count = static_cast<double>(std::count(asked.begin(), asked.end(), '\n'));
  const LimitedResult ran = run_limited(words, asked, 120 + (count + 20) * options.seconds);
  constexpr int no_device = 3, ended_early = 1;
  const int code = ran.child.code;
  if (!ran.in_time || (code != 0 && code != ended_early && code != no_device))
    throw MachineFailed(
        {.file = programs.judge.string(),
         .found = ran.in_time ? fmt::format("exit code {} {}", code, in_quotes(ran.child.errors))
                              : "no end",
         .expected = "a judge that runs to its end"});
  return read_trial(ran.child.printed);
}

}  // namespace orrery
