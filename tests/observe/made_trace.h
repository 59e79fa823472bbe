// SPDX-License-Identifier: Apache-2.0
// Makes small traces of PyTorch's profiler, event by event.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace orrery::observe {

// Events in microseconds, as JSON.
class MadeTrace {
 public:
  // A kernel on a stream; correlation 0: nobody launched it.
  MadeTrace& kernel(const std::string& name, double begin, double length, int stream = 7,
                    int correlation = 0, const std::string& more = "") {
    return event("kernel", name, 0, stream, begin, length,
                 fmt::format(R"("device": 0, "stream": {}, "correlation": {}{})", stream,
                             correlation, more));
  }
  MadeTrace& call(const std::string& name, double begin, double length, int correlation = 0,
                  int thread = 1) {
    return event("cuda_runtime", name, 100, thread, begin, length,
                 fmt::format(R"("correlation": {})", correlation));
  }
  MadeTrace& host(const std::string& category, const std::string& name, double begin, double length,
                  const std::string& arguments = "", int thread = 1) {
    return event(category, name, 100, thread, begin, length, arguments);
  }
  MadeTrace& event(const std::string& category, const std::string& name, int pid, int tid,
                   double begin, double length, const std::string& arguments) {
    events.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}, )"
        R"("args": {{{}}}}})",
        category, name, pid, tid, begin, length, arguments));
    return *this;
  }
  std::string list() const {
    std::string text;
    for (const std::string& one : events) text += (text.empty() ? "" : ",\n") + one;
    return "[" + text + "]";
  }
  std::string text() const { return "{\"traceEvents\": " + list() + "}"; }

  std::vector<std::string> events;
};

}  // namespace orrery::observe
