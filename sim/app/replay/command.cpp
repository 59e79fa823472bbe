// SPDX-License-Identifier: Apache-2.0
// Runs the command `replay`.
#include "sim/app/replay/command.h"

#include <fmt/format.h>

#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/replay/report.h"
#include "sim/base/errors/check.h"
#include "sim/chakra/trace_file.h"
#include "sim/question/settings/conditions.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr const char *cluster_flag = "--cluster", *gpus_flag = "--gpus",
                     *groups_flag = "--comm-group";
constexpr std::int64_t most_gpus = INT64_C(1) << 20;

// Settings of simulate that say what network it is, and what differs from a healthy one.
std::vector<Setting> network_settings() {
  std::vector<Setting> own;
  for (const Setting& setting : settings())
    for (const char* key : {"network", "faults", "slow_gpus", "background"})
      if (setting.key == key) own.push_back(setting);
  return own;
}

SortedJson network_of(const Given& given) {
  SortedJson own = SortedJson::object();
  for (const Setting& setting : network_settings())
    if (given.has(setting.flag()))
      own[setting.key] = setting_value(setting, given.text(setting.flag()));
  return own;
}

ReplayOptions options_of(const Given& given, const CommonFlags& common, const Cluster& cluster) {
  const JsonValue own = JsonValue::from(network_of(given), "replay");
  ReplayOptions options{.network = read_network(own), .conditions = read_conditions(own, cluster)};
  if (options.network != NetworkMode::flow)
    refuse_seed(common, "nothing without --network flow, which draws hashes");
  options.conditions.seed = common.seed.value_or(options.conditions.seed);
  return options;
}

SortedJson question_of(const Given& given) {
  SortedJson question = question_of_flags(given, {cluster_flag, gpus_flag, groups_flag});
  question["files"] = given.words;
  question.update(network_of(given));
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
  const ReplayOptions options = options_of(given, common, cluster);
  const ReplayResult result = replay(traces, cluster, options);
  const bool flow = options.network == NetworkMode::flow;
  AnswerHead head{.command = "replay", .question = question_of(given)};
  if (flow) head.seed = options.conditions.seed;
  if (common.json) return {answer_text(head, {}, replay_json(result, cluster, options.network))};
  return {page(replay_document(result, cluster, options.network, common.markdown, terminal_width()),
               common)};
}

}  // namespace

Command replay_command() {
  std::vector<Flag> flags{
      {cluster_flag, "NAME", "Machine", "cluster of the catalogue, or a file", "catalog cluster"},
      {gpus_flag, "N", "Machine", "accelerators of it (default: one for each rank)"},
      {groups_flag, "FILE", "Machine",
       "groups of ranks, {\"NAME\": [ranks]} (default: comm_group.json beside the traces)",
       "file"}};
  for (const Flag& flag : flags_of(network_settings())) flags.push_back(flag);
  flags.push_back(markdown_flag());
  flags.push_back(seed_flag());
  return {.name = "replay",
          .summary = "run execution traces (Chakra) of all ranks on a cluster",
          .arguments = {{"traces", "a folder of traces, or its files: NAME.RANK.et for every rank",
                         "file", true}},
          .flags = flags,
          .examples = {{"orrery replay traces --cluster dgx-h100",
                        "how long a step takes, and where each rank's time goes"},
                       {"orrery replay et/AllReduce_1MB.*.et --cluster dgx-h100",
                        "a trace made for another simulator"},
                       {"orrery replay traces --cluster dgx-h100 --network flow --faults "
                        "'[{\"kind\": \"nic\", \"gpu\": 3, \"remaining\": 0.5}]'",
                        "the same where a NIC has half of its rate"}},
          .answer = answer};
}

}  // namespace orrery
