// SPDX-License-Identifier: Apache-2.0
// Tells how far a shared question is, and answers it once every point has a result.
#include "sim/app/merge_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/app/page/outputs.h"
#include "sim/app/shards/sharing.h"
#include "sim/app/shared_command.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/text/words.h"
#include "sim/paper/document.h"

namespace orrery {
namespace {

constexpr const char* status_flag = "--status";
constexpr std::size_t most_listed = 20;  // shards with something missing

// Which shards have something missing: "3 and 7 of 8"; empty where files do not say it.
std::string missing_shards(const SharedStatus& status) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const SharedStatus::Of& of : status.by_shard)
    if (of.missing() > 0 && (names.size() < most_listed || ++more == 0))
      names.push_back(fmt::format("{}", of.shard));
  if (names.empty()) return "";
  if (more > 0) names.push_back(fmt::format("{} more", grouped(more)));
  return fmt::format("shard{} {} of {}", names.size() == 1 ? "" : "s", enumeration(names),
                     grouped(status.shards));
}

void add_counts(Json& json, const SharedStatus::Of& of) {
  json["points"] = of.points;
  json["done"] = of.done;
  json["failed"] = of.failed;
  json["missing"] = of.missing();
}

Json status_json(const SharedRun& run, const SharedStatus& status) {
  Json json = {{"command", run.command}, {"question", run.name}};
  add_counts(json, status.all);
  json["seconds"] = status.seconds;
  json["shards"] = Json::array();
  for (const SharedStatus::Of& of : status.by_shard) {
    Json one = {{"shard", of.shard}};
    add_counts(one, of);
    json["shards"].push_back(std::move(one));
  }
  return json;
}

std::string status_text(const SharedRun& run, const SharedStatus& status) {
  std::string text = fmt::format("{}{}{}: {}: {} done, {} failed, {} missing\n", run.command,
                                 run.name.empty() ? "" : " of ", run.name,
                                 plural(status.all.points, "point"), grouped(status.all.done),
                                 grouped(status.all.failed), grouped(status.all.missing()));
  const std::int64_t with_result = status.all.done + status.all.failed;
  if (with_result > 0)
    text += fmt::format("a point took {:.3g} s of one process, all {:.3g} s\n",
                        status.seconds / static_cast<double>(with_result), status.seconds);
  if (const std::string shards = missing_shards(status); !shards.empty())
    text += fmt::format("missing: {}\n", shards);
  return text;
}

// Asks for the tasks without doing any.
SharedStatus status_of(const Command& command, const SharedRun& run, SharedWork& work) {
  Given silent;
  silent.flags["--quiet"] = "";
  static_cast<void>(command.share(run, work, silent));
  return work.status();
}

ExitCode run(const Given& given) {
  install_interrupt_handler();
  const CommonFlags common = common_of(given);
  const std::string folder = given.word(0);
  if (folder.empty())
    throw Error({.file = "merge", .found = "nothing", .expected = "a folder of --results"});
  const SharedRun run = load_run(folder);
  const Command command = shared_command(run, folder);
  SharedWork work(folder, run, SharedWork::Mode::list);
  const SharedStatus status = status_of(command, run, work);
  if (interrupted()) return unless_stopped(ExitCode::answer);
  if (given.has(status_flag)) {
    write_result(common.json ? indented_text(status_json(run, status)) : status_text(run, status));
    return status.all.missing() == 0 ? ExitCode::answer : ExitCode::check_failed;
  }
  if (status.all.missing() > 0) {
    const std::string shards = missing_shards(status);
    fmt::print(stderr, "orrery: {}: {} of {} missing{}; run {} again and merge then\n", folder,
               grouped(status.all.missing()), plural(status.all.points, "point"),
               shards.empty() ? "" : ": " + shards, shards.empty() ? "the shards" : "these");
    return ExitCode::check_failed;
  }
  work.take_all();
  const ExitCode code = command.share(run, work, given);
  work.flush();
  return code;
}

}  // namespace

Command merge_command() {
  std::vector<Flag> flags = {
      {status_flag, "", output_group,
       "only how many points are done, failed and missing; exit code 1 if some are missing"}};
  flags.push_back(markdown_flag());
  for (Flag& flag : look_flags()) flags.push_back(std::move(flag));
  return {.name = "merge",
          .summary = "one answer of what many processes found (--results)",
          .arguments = {{"folder", "that --results named", "folder"}},
          .flags = std::move(flags),
          .examples = {{"orrery merge results --status", "how far all shards are"},
                       {"orrery merge results --json",
                        "what one machine would have printed, byte for byte"}},
          .run = run};
}

}  // namespace orrery
