// SPDX-License-Identifier: Apache-2.0
// Runs the command `schedule`.
#include "sim/app/schedule/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "sim/app/answer/answer.h"
#include "sim/app/answer/failure.h"
#include "sim/app/ask/lines_command.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/page/outputs.h"
#include "sim/app/schedule/report.h"
#include "sim/app/schedule/run_files.h"
#include "sim/app/shards/sharing.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/output_file.h"
#include "sim/base/text/words.h"
#include "sim/question/schedule/inline_jobs.h"

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

void refuse_beside_lines(const Given& given) {
  if (given.has(rows_flag))
    throw Error({.file = lines_flag,
                 .found = std::string(rows_flag) + " too",
                 .expected = "one of the two: what is written is of one question"});
  RunFiles::refuse_beside_lines(given);
}

std::string progress_text(const ScheduleProgress& now) {
  std::string text = fmt::format("scheduling: {} of {} runs", grouped(now.done), grouped(now.most));
  if (now.end.us == 0) return text;
  const std::int64_t day = to_fleet_time(seconds(seconds_per_day)).us;
  return text + fmt::format(", day {} of {}, {} wait{}", grouped(now.reached.us / day),
                            grouped((now.end.us + day - 1) / day), plural(now.waiting, "job"),
                            now.waiting == 1 ? "s" : "");
}

// One line that is rewritten on a terminal, a few times a second; nothing elsewhere.
std::function<void(const ScheduleProgress&)> progress_line(const CommonFlags& common) {
  if (common.quiet || isatty(STDERR_FILENO) == 0) return {};
  return [shown = std::chrono::steady_clock::time_point{}](const ScheduleProgress& now) mutable {
    constexpr std::chrono::milliseconds pause{200};
    const auto time = std::chrono::steady_clock::now();
    if (time - shown < pause && now.done < now.most) return;
    shown = time;
    fmt::print(stderr, "\r\033[K{}", progress_text(now));
    std::fflush(stderr);
  };
}

ExitCode schedule_and_print(const JsonValue& settings, const Given& given,
                            const CommonFlags& common, SharedWork* shared = nullptr) {
  if (given.has(rows_flag)) check_writable_file(given.place(rows_flag));
  check_looks(given);
  std::optional<RunFiles> files;  // a part of a shared question writes none
  if (goes_on(shared)) files.emplace(given);
  Catalogues catalogues;
  const ScheduleWith with{.catalogues = catalogues,
                          .seed = common.seed,
                          .threads = common.threads,
                          .progress = goes_on(shared) ? progress_line(common) : nullptr,
                          .tasks = shared,
                          .needs_jobs = given.has(rows_flag),
                          .listener = files && files->any() ? &*files : nullptr};
  const Scheduled scheduled = schedule_jobs(settings, with);
  if (!goes_on(shared)) return end_part(*shared, common);
  if (with.progress) std::fprintf(stderr, "\r\033[K");
  if (given.has(rows_flag)) write_file(given.place(rows_flag), schedule_rows(scheduled));
  files->finish(common.quiet);
  write_looks(given, [&] { return whole_answer(scheduled); });
  write_result(common.json
                   ? indented_text(to_json(scheduled))
                   : page(schedule_document(scheduled, common.markdown, terminal_width()), common));
  return unless_stopped(code_of(scheduled));
}

JsonValue question_of_line(const JsonValue& line, const SortedJson& flags) {
  return merge_schedule_settings(line, flags);
}

Json answer_of_line(const JsonValue& question, const AskedWith& with) {
  return to_json(schedule_jobs(
      question, {.catalogues = with.catalogues, .seed = with.seed, .threads = with.threads}));
}

// Which seed of which point is next depends on all results: nobody could do a part of it.
void refuse_parts_of_race(const JsonValue& question) {
  if (question.find("confidence") || question.find("search"))
    throw Error({.file = shard_flag,
                 .found = "a race of points (confidence, search)",
                 .expected = "--results alone, which keeps each run, or neither: all seeds"});
}

ExitCode share(const SharedRun& run, SharedWork& work, const Given& given) {
  if (run.form != ResultForm::answer)
    return share_lines(run, work, given, question_of_line, answer_of_line);
  if (work.does_part()) refuse_parts_of_race(run.settings());
  CommonFlags common = common_of(given);
  common.seed = run.seed;
  return schedule_and_print(run.settings(), given, common, &work);
}

ExitCode answer(const JsonValue& asked, const Given& given, const CommonFlags& common) {
  if (!is_shared(given)) return schedule_and_print(asked, given, common);
  if (!given.has(results_flag)) refuse_parts_of_race(asked);
  const SharedRun run{.command = "schedule",
                      .name = asked.file(),
                      .seed = common.seed,
                      .question = with_jobs_inline(asked).raw()};
  return begin_shared(given, run, "", [&](SharedWork& work) { return share(run, work, given); });
}

ExitCode run(const Given& given) {
  install_interrupt_handler();  // what was simulated by then is printed
  const CommonFlags common = common_of(given);
  const GivenSettings settings =
      listed_settings_of(given, schedule_settings(), is_one_value_of_schedule);
  if (given.has(lines_flag)) {
    refuse_beside_lines(given);
    return answer_lines_of("schedule", given, common, settings.flags, question_of_line,
                           answer_of_line);
  }
  return naming_flags(
      [&] { return answer(merge_schedule_settings(settings.file, settings.flags), given, common); },
      [&](const Error& error) {
        if (error.info().path == "seed")  // a flag that is no setting
          return Error(
              {.file = "--seed", .found = error.info().found, .expected = error.info().expected});
        return named_by_flag(error, settings.file, settings.flags, schedule_settings());
      });
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
  for (Flag& flag : run_file_flags()) flags.push_back(std::move(flag));
  flags.push_back(lines_flag_of());
  for (Flag& flag : shard_flags()) flags.push_back(std::move(flag));
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
          .run = run,
          .share = share};
}

}  // namespace orrery
