// SPDX-License-Identifier: Apache-2.0
// Writes launch scripts of the layout that was predicted, or that was found to be best.
#include "sim/app/ask/launch_files.h"

#include "sim/app/answer/version.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/output_file.h"
#include "sim/launch/script/script.h"

namespace orrery {
namespace {

constexpr const char *slurm_flag = "--slurm", *kubernetes_flag = "--kubernetes";
constexpr const char* expected_layout = "a layout that fits and runs, to start it";

bool asks_to_launch(const Given& given) {
  return given.has(slurm_flag) || given.has(kubernetes_flag);
}

std::string first_flag(const Given& given) {
  return given.has(slurm_flag) ? slurm_flag : kubernetes_flag;
}

void refuse(const std::string& flag, const std::string& reason) {
  if (reason.empty()) return;
  throw Error({.file = flag,
               .found = reason,
               .expected = "training with Megatron-LM, Megatron-Bridge, NeMo 2.0, TorchTitan, "
                           "DeepSpeed or MaxText on accelerators that the scheduler gives out"});
}

void write_scripts(const Given& given, const Scenario& scenario, const Prediction& prediction) {
  if (given.has(slurm_flag)) refuse(slurm_flag, no_slurm_reason(scenario));
  if (given.has(kubernetes_flag)) refuse(kubernetes_flag, no_kubernetes_reason(scenario));
  const LaunchFlags flags = launch_flags(scenario);
  const ScriptNote note{.made_by = "orrery " + program_version(),
                        .step_time = prediction.step_time,
                        .low = prediction.low,
                        .high = prediction.high,
                        .tokens_per_second_per_gpu = prediction.tokens_per_second_per_gpu};
  if (given.has(slurm_flag))
    write_file(given.place(slurm_flag), slurm_script(scenario, flags, note));
  if (given.has(kubernetes_flag))
    write_file(given.place(kubernetes_flag), kubernetes_manifest(scenario, flags, note));
}

}  // namespace

std::vector<Flag> launch_file_flags() {
  return {
      {slurm_flag, "FILE", output_group,
       "write a script for sbatch that starts the layout, complete but for your data", "file"},
      {kubernetes_flag, "FILE", output_group,
       "write a manifest for Kubernetes that starts it: a Job, a Service, a ConfigMap", "file"}};
}

void refuse_launch_files(const Given& given, const std::string& found) {
  if (!asks_to_launch(given)) return;
  throw Error(
      {.file = first_flag(given), .found = found, .expected = "one question of one cluster"});
}

void check_launch_files(const Given& given) {
  for (const char* flag : {slurm_flag, kubernetes_flag})
    if (given.has(flag)) check_writable_file(given.place(flag));
}

void write_launch_files(const Given& given, const Simulated& s) {
  if (!asks_to_launch(given)) return;
  const Verdict verdict = s.refused ? s.refused->verdict : verdict_of(s.prediction.memory);
  if (!verdict.exists())
    throw CannotExist(
        {.file = first_flag(given), .found = verdict.why, .expected = expected_layout});
  write_scripts(given, s.scenario, s.prediction);
}

void write_launch_files(const Given& given, const Advised& a) {
  if (!asks_to_launch(given)) return;
  if (a.refused || a.advice.best.empty())
    throw CannotExist(
        {.file = first_flag(given),
         .found = a.refused ? a.refused->verdict.why : "no layout that fits: " + a.advice.why,
         .expected = expected_layout});
  write_scripts(given,
                {.cluster = a.question.cluster,
                 .model = a.question.model,
                 .job = a.question.job,
                 .layout = a.advice.best.front().layout,
                 .stack = a.advice.stack},
                a.advice.winner);
}

}  // namespace orrery
