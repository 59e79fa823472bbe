// SPDX-License-Identifier: Apache-2.0
// Runs the command `advise`.
#include "sim/app/ask/advise_command.h"

#include <unistd.h>

#include <cstdio>

#include "sim/app/answer/failure.h"
#include "sim/app/ask/advise_machines.h"
#include "sim/app/ask/answers.h"
#include "sim/app/ask/launch_files.h"
#include "sim/app/ask/lines_command.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/page/outputs.h"
#include "sim/app/report/refusal.h"
#include "sim/app/report/report.h"
#include "sim/base/errors/interrupt.h"
#include "sim/question/machines.h"
#include "sim/question/settings/inline_files.h"

namespace orrery {
namespace {

// One line that is rewritten on a terminal; nothing elsewhere.
std::function<void(double, std::int64_t)> progress_line(const CommonFlags& common) {
  if (common.quiet || isatty(STDERR_FILENO) == 0) return {};
  return [](double share, std::int64_t simulated) {
    std::fprintf(stderr, "\rsearching: %3.0f%%, %lld layouts simulated ", 100 * share,
                 static_cast<long long>(simulated));
    if (share >= 1) std::fprintf(stderr, "\r\033[K");
    std::fflush(stderr);
  };
}

ExitCode search(const JsonValue& settings, const Given& given, const CommonFlags& common,
                SharedWork* shared = nullptr) {
  if (!several_clusters(settings).empty()) {
    if (shared != nullptr)
      throw Error({.file = results_flag,
                   .found = "several clusters",
                   .expected = "one search, or a line of --jsonl for each cluster"});
    if (given.has("--csv"))
      throw Error({.file = "--csv",
                   .found = "several clusters",
                   .expected = "one: of several --json holds the best of each"});
    refuse_launch_files(given, "several clusters");
    return advise_machines(settings, given, common);
  }
  check_looks(given);
  check_launch_files(given);
  Catalogues catalogues;
  const AskedWith with{.catalogues = catalogues,
                       .threads = common.threads,
                       .progress = goes_on(shared) ? progress_line(common) : nullptr,
                       .tasks = shared};
  const Advised a = advise_settings(settings, with);
  if (!goes_on(shared)) return end_part(*shared, common);
  if (with.progress) std::fprintf(stderr, "\r\033[K");
  write_launch_files(given, a);
  write_looks(given, [&] { return whole_answer(a); });
  if (const auto text = text_for_machines("advise", given, [&] { return to_json(a); }))
    write_result(*text);
  else
    write_result(page(document_of(a, common.markdown, terminal_width()), common));
  return unless_stopped(code_of(a.exists()));
}

JsonValue question_of_line(const JsonValue& line, const SortedJson& flags) {
  return merge_line(line, flags, {}, {});
}

ExitCode share(const SharedRun& run, SharedWork& work, const Given& given) {
  if (run.form != ResultForm::answer) return share_lines(run, work, given, question_of_line);
  return search(run.settings(), given, common_of(given), &work);
}

ExitCode answer(const JsonValue& asked, const Given& given, const CommonFlags& common) {
  if (!is_shared(given)) return search(asked, given, common);
  const JsonValue settings = with_input_inline(asked);
  const SharedRun run{.command = "advise",
                      .name = settings.file(),
                      .question = with_files_inline(settings).value_or(settings).raw()};
  return begin_shared(given, run, "", [&](SharedWork& work) { return share(run, work, given); });
}

ExitCode run(const Given& given) {
  install_interrupt_handler();  // from the start: what is known by then is printed
  const CommonFlags common = common_of(given);
  const GivenSettings settings = settings_of(given);
  if (given.has(lines_flag)) refuse_launch_files(given, lines_flag);
  if (given.has(lines_flag))
    return answer_lines_of("advise", given, common, settings.flags, question_of_line);
  return naming_flags(
      [&] { return answer(settings.merged(), given, common); },
      [&](const Error& error) { return named_by_flag(error, settings.file, settings.flags); });
}

}  // namespace

Command advise_command() {
  std::vector<Flag> flags = setting_flags(SettingOf::advise);
  for (Flag& flag : machine_flags()) flags.push_back(std::move(flag));
  for (Flag& flag : shard_flags()) flags.push_back(std::move(flag));
  flags.push_back(markdown_flag());
  for (Flag& flag : look_flags()) flags.push_back(std::move(flag));
  for (Flag& flag : launch_file_flags()) flags.push_back(std::move(flag));
  return {.name = "advise",
          .summary = "find the best layouts of a training job",
          .arguments = {settings_file()},
          .flags = std::move(flags),
          .examples = {{"orrery advise --model llama3.1-405b --cluster dgx-h100 --gpus 1024 --seq "
                        "8192 --global-batch 512",
                        "the fastest layouts of a pretraining job"},
                       {"orrery advise --model llama3-70b --cluster all --gpus 512 --seq 8k "
                        "--global-batch 4M --objective cost",
                        "the cheapest of all machines that are known"},
                       {"orrery advise job.json --like running.json --changes 2",
                        "what two changes to the layout that runs now would gain"}},
          .run = run,
          .share = share};
}

}  // namespace orrery
