// SPDX-License-Identifier: Apache-2.0
// Runs the command `plan`.
#include "sim/app/ask/plan_command.h"
#include "sim/base/json/tree.h"

#include <unistd.h>

#include <cstdio>

#include "sim/app/answer/failure.h"
#include "sim/app/ask/answers.h"
#include "sim/app/ask/lines_command.h"
#include "sim/app/line/result.h"
#include "sim/app/page/outputs.h"
#include "sim/app/plan/report.h"
#include "sim/base/errors/interrupt.h"
#include "sim/question/plan/keys.h"
#include "sim/question/plan/question.h"
#include "sim/question/settings/inline_files.h"
#include "sim/question/settings/settings.h"

namespace orrery {

namespace {

// One line that is rewritten on a terminal; nothing elsewhere.
std::function<void(double, std::int64_t)> progress_line(const CommonFlags& common) {
  if (common.quiet || isatty(STDERR_FILENO) == 0) return {};
  return [](double share, std::int64_t done) {
    std::fprintf(stderr, "\rplanning: %3.0f%%, %lld steps searched ", 100 * share,
                 static_cast<long long>(done));
    std::fflush(stderr);
  };
}

SortedJson given_keys(const Given& given) {
  SortedJson flags = SortedJson::object();
  for (const PlanKey& key : plan_keys())
    if (given.has(key.flag())) flags[key.key] = plan_flag_value(key, given.text(key.flag()));
  return flags;
}

ExitCode answer_one(const JsonValue& question, const Given& given, const CommonFlags& common,
                    SharedWork* shared = nullptr) {
  check_looks(given);
  Catalogues catalogues;
  const AskedWith with{.catalogues = catalogues,
                       .seed = common.seed,
                       .threads = common.threads,
                       .progress = goes_on(shared) ? progress_line(common) : nullptr,
                       .tasks = shared};
  const Planned planned = plan_settings(question, with);
  if (!goes_on(shared)) return end_part(*shared, common);
  if (with.progress) std::fprintf(stderr, "\r\033[K");
  write_looks(given, [&] { return whole_answer(planned); });
  if (const auto text = text_for_machines("plan", given, [&] { return to_json(planned); }))
    write_result(*text);
  else
    write_result(page(plan_document(planned.file, planned.result, planned.detail, terminal_width()),
                      common));
  return unless_stopped(code_of(planned.exists()));
}

JsonValue question_of_line(const JsonValue& line, const SortedJson& flags) {
  return merge_plan_flags(line, flags);
}

ExitCode share(const SharedRun& run, SharedWork& work, const Given& given) {
  if (run.form != ResultForm::answer) return share_lines(run, work, given, question_of_line);
  CommonFlags common = common_of(given);
  common.seed = run.seed;
  return answer_one(run.settings(), given, common, &work);
}

ExitCode answer(const JsonValue& asked, const Given& given, const CommonFlags& common) {
  if (!is_shared(given)) return answer_one(asked, given, common);
  const JsonValue question = with_input_inline(asked);
  const SharedRun run{.command = "plan",
                      .name = question.file(),
                      .seed = common.seed,
                      .question = with_files_inline(question).value_or(question).raw()};
  return begin_shared(given, run, "", [&](SharedWork& work) { return share(run, work, given); });
}

ExitCode run(const Given& given) {
  install_interrupt_handler();
  const CommonFlags common = common_of(given);
  const SortedJson flags = given_keys(given);
  if (given.has(lines_flag)) return answer_lines_of("plan", given, common, flags, question_of_line);
  const JsonValue question = merge_plan_flags(given.word(0), flags);
  const std::string file = question.file() == command_line_place ? "" : question.file();
  return naming_flags([&] { return answer(question, given, common); },
                      [&](const Error& error) { return named_by_plan_flag(error, file, flags); });
}

}  // namespace

Command plan_command() {
  std::vector<Flag> flags;
  for (const PlanKey& key : plan_keys())
    flags.push_back({key.flag(), key.text == PlanText::json ? "JSON" : "VALUES", key.group,
                     key.help, key.completes});
  for (Flag& flag : machine_flags()) flags.push_back(std::move(flag));
  for (Flag& flag : shard_flags()) flags.push_back(std::move(flag));
  flags.push_back(markdown_flag());
  for (Flag& flag : look_flags()) flags.push_back(std::move(flag));
  flags.push_back(seed_flag());
  return {.name = "plan",
          .summary = "which machine, and how many, trains a model by a date or budget",
          .arguments = {{"question",
                         "JSON file, or a name that `orrery catalog list question` prints; flags "
                         "win over it. VALUES are one value, a list (a,b) or a range: 1024..16384 "
                         "(each twice the last), 1024..16384x4, \"10 MW..50 MW+20 MW\"",
                         "catalog question"}},
          .flags = std::move(flags),
          .examples = {{"orrery plan --model llama3-70b --tokens 2T --cluster dgx-h100,dgx-b200 "
                        "--seq 8192 --global-batch 1024 --deadline \"60 days\"",
                        "how many of which machine end in time"},
                       {"orrery plan --model llama3-70b --tokens 2T --cluster dgx-h100 --seq 8192 "
                        "--global-batch 1024 --gpus 256..2048",
                        "days, money and energy at 256, 512, 1,024 and 2,048 accelerators"}},
          .run = run,
          .share = share};
}

}  // namespace orrery
