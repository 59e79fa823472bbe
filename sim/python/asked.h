// SPDX-License-Identifier: Apache-2.0
// Answers what Python asks: JSON in, JSON out, the bytes of the command line.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace orrery {

// What a question came to.
struct Asked {
  std::string json;      // of --json; {"error": ...} where the question is no good
  std::string html;      // the report, without a page around it; "" for commands that print tables
  int code = 0;          // exit_code.h
  bool stopped = false;  // by Ctrl-C: what is known by then
};

// How a question is answered. `watch`: Ctrl-C stops it (on the main thread alone).
struct AskedHow {
  std::optional<std::uint64_t> seed = {};
  int threads = 0;  // 0: all cores
  bool watch = false;
  std::function<void(double share, std::int64_t count)> progress = {};
};

// Where the settings of a question come from; what stands later wins.
struct AskedSettings {
  std::string file;      // a file of settings; "": `base` takes its place
  std::string base;      // JSON of an object
  std::string keywords;  // the same
  std::string place;     // what errors call what stands in no file
};

// One question to simulate, advise, plan, serve or schedule.
Asked ask_settings(const std::string& command, const AskedSettings& settings, const AskedHow& how);

// One line of a command that takes words and flags ("--device": "h100-sxm").
Asked ask_line(const std::string& command, const std::vector<std::string>& words,
               const std::map<std::string, std::string>& flags);

// Charts of an answer: [{"name", "title", "spec"}], or the error of one that was changed by hand.
Asked ask_charts(const std::string& answer);

// {"commands": [{name, summary, arguments, flags: [{name, value, group,
// help}]}]}: what the package's functions are made of.
std::string interface_json();

}  // namespace orrery
