// SPDX-License-Identifier: Apache-2.0
// Reads the flags of a shared question and begins the work.
#include "sim/app/shards/sharing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "sim/app/line/result.h"
#include "sim/app/shards/jobs.h"
#include "sim/base/errors/check.h"
#include "sim/base/errors/interrupt.h"

namespace orrery {
namespace {

// One line that is rewritten on a terminal.
void show_progress(SharedWork& work, const Given& given, const Shard& shard) {
  if (given.has("--quiet") || isatty(STDERR_FILENO) == 0) return;
  work.when_done([shard](std::int64_t done) {
    std::fprintf(stderr, "\rshard %s: %lld points done ", to_text(shard).c_str(),
                 static_cast<long long>(done));
  });
}

}  // namespace

std::vector<Flag> shard_flags() {
  std::vector<Flag> flags = {
      {results_flag, "DIR", share_group,
       "keep the result of each point in this folder, and take those that are there; `orrery "
       "merge DIR` prints the answer",
       "folder"},
      {shard_flag, "I/N", share_group,
       "with --results: only every Nth point by its hash, I from 0; print no answer"}};
  for (Flag& flag : job_flags()) flags.push_back(std::move(flag));
  return flags;
}

bool is_shared(const Given& given) {
  if (given.has(shard_flag) && !given.has(results_flag))
    throw Error({.file = shard_flag,
                 .found = "no --results",
                 .expected = "both: a shard leaves its results in a folder"});
  if (asks_for_jobs(given)) {
    if (given.has(shard_flag))
      throw Error({.file = shard_flag,
                   .found = "a file that runs all shards too",
                   .expected = "one of the two"});
    return true;
  }
  if (!given.has(results_flag)) return false;
  for (const char* flag :
       {"--json", "--markdown", "--html", "--plots", "--trace-out", "--chakra-out",
        "--requests-out", "--jobs-out", "--events-out", "--commands", "--slurm", "--kubernetes"})
    if (given.has(shard_flag) && given.has(flag))
      throw Error({.file = flag,
                   .found = "--shard too",
                   .expected = fmt::format("`orrery merge {} {}`: a shard prints no answer",
                                           given.text(results_flag), flag)});
  return true;
}

ExitCode begin_shared(const Given& given, const SharedRun& run, const std::string& lines,
                      const std::function<ExitCode(SharedWork&)>& share) {
  install_interrupt_handler();
  if (asks_for_jobs(given)) return write_jobs(given, run, lines, share);
  const std::string folder = given.place(results_flag);
  const bool part = given.has(shard_flag);
  const Shard shard = part ? parse_shard(given.text(shard_flag)) : Shard{};
  const SharedRun known = begin_run(folder, run, lines);
  SharedWork work(folder, known, part ? SharedWork::Mode::part : SharedWork::Mode::whole, shard);
  if (part) show_progress(work, given, shard);
  const ExitCode code = share(work);
  work.flush();
  return code;
}

ExitCode end_part(SharedWork& work, const CommonFlags& common) {
  work.flush();
  if (!common.quiet && work.does_part()) {
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
    fmt::print(stderr, "orrery: {}: {}\n", work.folder().string(), work.summary());
  }
  return unless_stopped(ExitCode::answer);
}

}  // namespace orrery
