// SPDX-License-Identifier: Apache-2.0
// Runs the command `schedule`.
#include "sim/app/schedule/command.h"

#include <unistd.h>

#include <cstdio>

#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/page/outputs.h"
#include "sim/app/schedule/report.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

constexpr const char* rows_flag = "--jobs-out";

ExitCode code_of(const Scheduled& scheduled) {
  return scheduled.exists() ? ExitCode::answer : ExitCode::cannot_exist;
}

Json to_json(const Scheduled& scheduled) {
  const std::string why = scheduled.exists() ? "" : "no point keeps all limits";
  return answer_json(
      {.command = "schedule",
       .question = scheduled.settings.raw(),
       .seed = scheduled.draws ? std::optional(scheduled.seed) : std::nullopt,
       .catalogue = scheduled.catalogue},
      {.fits = scheduled.settings.has("limits") ? std::optional(scheduled.exists()) : std::nullopt,
       .runs = {},
       .why = why},
      schedule_json(scheduled));
}

// One line that is rewritten on a terminal; nothing elsewhere.
std::function<void(std::int64_t, std::int64_t)> progress_line(const CommonFlags& common) {
  if (common.quiet || isatty(STDERR_FILENO) == 0) return {};
  return [](std::int64_t done, std::int64_t most) {
    std::fprintf(stderr, "\rscheduling: %lld of %lld runs ", static_cast<long long>(done),
                 static_cast<long long>(most));
    std::fflush(stderr);
  };
}

Printed answer_to(const JsonValue& settings, const Given& given) {
  const CommonFlags common = common_of(given);
  if (given.has(rows_flag)) check_writable_file(given.place(rows_flag));
  check_looks(given);
  Catalogues catalogues;
  const ScheduleWith with{.catalogues = catalogues,
                          .seed = common.seed,
                          .threads = common.threads,
                          .progress = progress_line(common)};
  const Scheduled scheduled = schedule_jobs(settings, with);
  if (with.progress) std::fprintf(stderr, "\r\033[K");
  if (given.has(rows_flag)) write_file(given.place(rows_flag), schedule_rows(scheduled));
  write_looks(given, [&] { return whole_answer(scheduled); });
  const ExitCode code = unless_stopped(code_of(scheduled));
  if (!common.json)
    return {page(schedule_document(scheduled, common.markdown, terminal_width()), common), code};
  return {indented_text(to_json(scheduled)), code};
}

Printed answer(const Given& given) {
  install_interrupt_handler();  // what was simulated by then is printed
  const GivenSettings settings =
      listed_settings_of(given, schedule_settings(), is_one_value_of_schedule);
  try {
    return answer_to(merge_schedule_settings(settings.file, settings.flags), given);
  } catch (const CannotExist&) {
    throw;
  } catch (const MachineFailed&) {
    throw;
  } catch (const Error& error) {
    if (error.info().path == "seed")  // a flag that is no setting
      throw Error(
          {.file = "--seed", .found = error.info().found, .expected = error.info().expected});
    throw named_by_flag(error, settings.file, settings.flags, schedule_settings());
  }
}

}  // namespace

MachineAnswer schedule_again(const JsonValue& question, std::optional<std::uint64_t> seed,
                             int threads) {
  Catalogues catalogues;
  const Scheduled scheduled =
      schedule_jobs(question, {.catalogues = catalogues, .seed = seed, .threads = threads});
  return {.json = to_json(scheduled), .code = code_of(scheduled)};
}

WholeAnswer schedule_answer(const JsonValue& settings, const ScheduleWith& with) {
  return whole_answer(schedule_jobs(settings, with));
}

WholeAnswer whole_answer(const Scheduled& scheduled) {
  return {{.json = to_json(scheduled), .code = code_of(scheduled)},
          schedule_document(scheduled, true, page_width)};
}

Command schedule_command() {
  std::vector<Flag> flags = flags_of(schedule_settings());
  flags.push_back({rows_flag, "FILE", output_group, "a row for each job, as CSV", "file"});
  flags.push_back(seed_flag());
  flags.push_back(markdown_flag());
  for (Flag& flag : look_flags()) flags.push_back(std::move(flag));
  return {.name = "schedule",
          .summary = "run the jobs of months on one cluster, by one policy or several",
          .arguments = {settings_file()},
          .flags = std::move(flags),
          .examples = {{"orrery schedule --cluster dgx-h100 --gpus 640 --trace philly "
                        "--policy fifo,easy --place pack,spread",
                        "what order and placement do to waits"},
                       {"orrery schedule --cluster dgx-h100 --gpus 768 --trace jobs.csv --job 417",
                        "why job 417 waited"},
                       {"orrery schedule lab.json --policy fifo,easy --seeds 10",
                        "trainings and research on one cluster that breaks"}},
          .answer = answer};
}

}  // namespace orrery
