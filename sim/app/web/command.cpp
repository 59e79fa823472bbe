// SPDX-License-Identifier: Apache-2.0
// Runs the command `web`.
#include "sim/app/web/command.h"

#include <fmt/format.h>

#include <cstdio>

#include "sim/app/line/result.h"
#include "sim/app/web/server.h"
#include "sim/base/errors/check.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr int usual_port = 8123, most_of_a_port = 65'535;

ExitCode run(const Given& given) {
  const CommonFlags common = common_of(given);
  for (const char* flag : {"--json", "--threads"})
    if (given.has(flag))
      throw Error({.file = flag, .found = "it", .expected = "nothing: the page asks for itself"});
  const auto port =
      given.has("--port")
          ? static_cast<int>(whole_number("--port", given.text("--port"), 0, most_of_a_port))
          : usual_port;
  // Nothing that a question asks for may wait for this terminal.
  if (std::freopen("/dev/null", "r", stdin) == nullptr)
    throw MachineFailed({.file = "/dev/null", .found = "nothing", .expected = "a device"});
  serve_web(port, [&](int at) {
    write_result(fmt::format("http://127.0.0.1:{}/\n", at));
    if (!common.quiet)
      std::fprintf(stderr, "orrery: open this address in a browser; Ctrl-C ends it\n");
  });
  return ExitCode::answer;
}

}  // namespace

Command web_command() {
  return {.name = "web",
          .summary = "a page to ask on, served to this machine alone",
          .flags = {{"--port", "N", "Server", "port on 127.0.0.1 (default 8123; 0: any)"}},
          .examples = {{"orrery web", "open http://127.0.0.1:8123/ and play"},
                       {"orrery web --port 0", "on a port that is free, which it prints"}},
          .run = run};
}

}  // namespace orrery
