// SPDX-License-Identifier: Apache-2.0
// Runs the command `schedule`.
#include "sim/app/schedule/command.h"

#include "sim/app/answer/answer.h"
#include "sim/app/line/result.h"
#include "sim/app/line/setting_flags.h"
#include "sim/app/schedule/report.h"
#include "sim/base/errors/check.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

constexpr const char *cluster_flag = "--cluster", *gpus_flag = "--gpus", *trace_flag = "--trace",
                     *policy_flag = "--policy", *place_flag = "--place", *days_flag = "--days",
                     *job_flag = "--job", *rows_flag = "--jobs-out";

ScheduleWords words_of(const Given& given) {
  ScheduleWords words;
  words.cluster = given.needed(cluster_flag, "the cluster that runs the jobs");
  words.gpus = given.needed(gpus_flag, "how many accelerators it has");
  words.trace = given.needed(trace_flag, "the jobs: a trace of the catalogue, or a file");
  if (given.has(policy_flag)) words.policies = given.text(policy_flag);
  if (given.has(place_flag)) words.places = given.text(place_flag);
  words.days = given.text(days_flag);
  words.job = given.text(job_flag);
  return words;
}

Printed answer(const Given& given) {
  install_interrupt_handler();  // what was simulated by then is printed
  const CommonFlags common = common_of(given);
  const ScheduleWords words = words_of(given);
  if (given.has(rows_flag)) check_writable_file(given.place(rows_flag));
  const bool draws = words.places.find(job_place_text[JobPlace::random]) != std::string::npos;
  if (!draws) refuse_seed(common, "a seed beside --place random alone, which draws");
  const std::uint64_t seed = common.seed.value_or(0);
  const Scheduled scheduled = schedule_jobs(words, seed, common.threads);
  if (given.has(rows_flag)) write_file(given.place(rows_flag), schedule_rows(scheduled));
  const ExitCode code = unless_stopped(ExitCode::answer);
  if (common.json)
    return {answer_text({.command = "schedule",
                         .question = question_of_flags(
                             given, {cluster_flag, gpus_flag, trace_flag, policy_flag, place_flag,
                                     days_flag, job_flag, "--seed"}),
                         .seed = draws ? std::optional(seed) : std::nullopt},
                        {}, schedule_json(scheduled)),
            code};
  return {page(schedule_document(scheduled, common.markdown, terminal_width()), common), code};
}

}  // namespace

Command schedule_command() {
  return {
      .name = "schedule",
      .summary = "run the jobs of months on one cluster, by one policy or several",
      .flags = {{cluster_flag, "NAME", "Machine", "cluster of the catalogue, or a file",
                 "catalog cluster"},
                {gpus_flag, "N", "Machine", "accelerators of it"},
                {trace_flag, "NAME|FILE", "Jobs",
                 "a trace of the catalogue (philly), or a file: sacct -P, the Standard Workload "
                 "Format, Philly's columns, or submit_s, length_s, gpus",
                 "file"},
                {days_flag, "N", "Jobs", "those submitted in the first so many days"},
                {policy_flag, "LIST", "Policy",
                 "who is next and who may pass: fifo, sjf, easy, sjf-easy (fifo)",
                 "fifo sjf easy sjf-easy"},
                {place_flag, "LIST", "Policy",
                 "where a gang goes: pool, pack, spread, least-level, random (pack)",
                 "pool pack spread least-level random"},
                {job_flag, "ID", output_group, "why this job waited"},
                {rows_flag, "FILE", output_group, "a row for each job, as CSV", "file"},
                seed_flag(),
                markdown_flag()},
      .examples = {{"orrery schedule --cluster dgx-h100 --gpus 640 --trace philly "
                    "--policy fifo,easy --place pack,spread",
                    "what order and placement do to waits"},
                   {"orrery schedule --cluster dgx-h100 --gpus 768 --trace jobs.csv --job 417",
                    "why job 417 waited"}},
      .answer = answer};
}

}  // namespace orrery
