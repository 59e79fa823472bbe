// SPDX-License-Identifier: Apache-2.0
// Runs the command `simulate`.
#include "sim/app/ask/simulate_command.h"

#include "sim/app/answer/failure.h"
#include "sim/app/ask/answers.h"
#include "sim/app/ask/launch_files.h"
#include "sim/app/ask/lines_command.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/page/outputs.h"
#include "sim/app/report/refusal.h"
#include "sim/app/report/report.h"

namespace orrery {
namespace {

ExitCode predict(const JsonValue& asked, const Given& given, const CommonFlags& common) {
  const JsonValue settings = asks_to_look(given) ? with_timeline(asked) : asked;
  Catalogues catalogues;
  check_looks(given);
  check_launch_files(given);
  const Simulated s = simulate_settings(settings, {.catalogues = catalogues, .seed = common.seed});
  write_launch_files(given, s);
  write_looks(given, [&] { return whole_answer(s); });
  if (const auto text = text_for_machines("simulate", given, [&] { return to_json(s); }))
    write_result(*text);
  else
    write_result(page(document_of(s, common.markdown, terminal_width()), common));
  return code_of(s.exists());
}

JsonValue question_of_line(const JsonValue& line, const SortedJson& flags) {
  return merge_line(line, flags, {"trace_out", "chakra_out"}, {{"reasons", false}});
}

ExitCode share(const SharedRun& run, SharedWork& work, const Given& given) {
  return share_lines(run, work, given, question_of_line);
}

ExitCode run(const Given& given) {
  const CommonFlags common = common_of(given);
  const GivenSettings settings = settings_of(given);
  if (given.has(lines_flag)) refuse_launch_files(given, lines_flag);
  if (given.has(lines_flag))
    return answer_lines_of("simulate", given, common, settings.flags, question_of_line);
  if (is_shared(given))
    throw Error({.file = results_flag,
                 .found = "one question",
                 .expected = "many (--jsonl): one has nothing to share"});
  return naming_flags(
      [&] { return predict(settings.merged(), given, common); },
      [&](const Error& error) { return named_by_flag(error, settings.file, settings.flags); });
}

}  // namespace

Command simulate_command() {
  std::vector<Flag> flags = setting_flags(SettingOf::simulate);
  for (Flag& flag : machine_flags()) flags.push_back(std::move(flag));
  for (Flag& flag : shard_flags()) flags.push_back(std::move(flag));
  flags.push_back(markdown_flag());
  for (Flag& flag : look_flags()) flags.push_back(std::move(flag));
  for (Flag& flag : launch_file_flags()) flags.push_back(std::move(flag));
  flags.push_back(seed_flag());
  return {.name = "simulate",
          .summary = "predict one layout, explained",
          .arguments = {settings_file()},
          .flags = std::move(flags),
          .examples = {{"orrery simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --seq 8192 "
                        "--global-batch 64 --tp 2",
                        "a training step of 16 accelerators"},
                       {"orrery simulate --model llama3-70b --cluster dgx-h200 --gpus 8 --tp 8 "
                        "--phase decode --batch 64 --context 4096",
                        "one decode step"}},
          .renamed = {{"--trace", "--trace-out"}},
          .run = run,
          .share = share};
}

}  // namespace orrery
