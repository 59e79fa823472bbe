// SPDX-License-Identifier: Apache-2.0
// Runs the command `replay`.
#include "sim/app/replay/command.h"

#include <fmt/format.h>

#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/app/replay/report.h"
#include "sim/base/errors/check.h"
#include "sim/chakra/trace_file.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr const char *cluster_flag = "--cluster", *gpus_flag = "--gpus",
                     *groups_flag = "--comm-group";
constexpr std::int64_t most_gpus = INT64_C(1) << 20;

SortedJson question_of(const Given& given) {
  SortedJson question = question_of_flags(given, {cluster_flag, gpus_flag, groups_flag});
  question["files"] = given.words;
  return question;
}

Printed answer(const Given& given) {
  const CommonFlags common = common_of(given);
  given.needed(cluster_flag, "the cluster on which the traces run");
  std::optional<std::int64_t> gpus;
  if (given.has(gpus_flag)) gpus = whole_number(gpus_flag, given.text(gpus_flag), 1, most_gpus);
  const Traces traces = read_traces({given.words.begin(), given.words.end()},
                                    given.has(groups_flag) ? given.place(groups_flag) : "");
  const auto ranks = static_cast<std::int64_t>(traces.ranks.size());
  if (gpus.value_or(ranks) < ranks)
    throw Error({.file = gpus_flag,
                 .found = fmt::format("{}", *gpus),
                 .expected = fmt::format("at least {}, one for each rank", ranks)});
  const Cluster cluster = load_cluster(given.place(cluster_flag), gpus.value_or(ranks));
  const ReplayResult result = replay(traces, cluster);
  if (common.json)
    return {answer_text({.command = "replay", .question = question_of(given)}, {},
                        replay_json(result, cluster))};
  return {page(replay_document(result, cluster, common.markdown, terminal_width()), common)};
}

}  // namespace

Command replay_command() {
  return {.name = "replay",
          .summary = "run execution traces (Chakra) of all ranks on a cluster",
          .arguments = {{"traces", "a folder of traces, or its files: NAME.RANK.et for every rank",
                         "file", true}},
          .flags = {{cluster_flag, "NAME", "Machine", "cluster of the catalogue, or a file",
                     "catalog cluster"},
                    {gpus_flag, "N", "Machine", "accelerators of it (default: one for each rank)"},
                    {groups_flag, "FILE", "Machine",
                     "groups of ranks, {\"NAME\": [ranks]} (default: comm_group.json beside the "
                     "traces)",
                     "file"},
                    markdown_flag()},
          .examples = {{"orrery replay traces --cluster dgx-h100",
                        "how long a step takes, and where each rank's time goes"},
                       {"orrery replay et/AllReduce_1MB.*.et --cluster dgx-h100",
                        "a trace made for another simulator"}},
          .answer = answer};
}

}  // namespace orrery
