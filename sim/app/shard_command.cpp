// SPDX-License-Identifier: Apache-2.0
// Does one shard of a shared question, which needs no more than its folder.
#include "sim/app/shard_command.h"

#include <filesystem>

#include "sim/app/answer/failure.h"
#include "sim/app/shards/sharing.h"
#include "sim/app/shared_command.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

ExitCode run(const Given& given) {
  const std::string from = given.word(0), shard = given.word(1);
  if (from.empty() || shard.empty())
    throw Error({.file = "shard",
                 .found = from.empty() ? "nothing" : "no shard",
                 .expected = "a folder that holds a question, and which shard: results 3/8"});
  const SharedRun run = load_run(from);
  const Command command = shared_command(run, from);
  Given part;
  part.flags = given.flags;
  part.flags[shard_flag] = shard;
  if (!given.has(results_flag)) part.flags[results_flag] = from;
  std::error_code status;
  const fs::path lines = lines_file(from);
  return begin_shared(part, run, fs::exists(lines, status) ? lines.string() : "",
                      [&](SharedWork& work) { return command.share(run, work, part); });
}

}  // namespace

Command shard_command() {
  return {
      .name = "shard",
      .summary = "one shard of the question that a folder holds",
      .arguments = {{"folder", "of --results, or of --slurm-array and --kubernetes-job", "folder"},
                    {"shard", "I/N: which of how many, from 0"}},
      .flags = {{results_flag, "DIR", output_group,
                 "keep the results in this folder (default: where the question is)", "folder"}},
      .examples = {{"orrery shard results 0/8", "the first of eight parts"},
                   {"orrery shard question 3/200 --results results --threads 1",
                    "a part on one thread, with the question in a folder of its own"}},
      .run = run};
}

}  // namespace orrery
