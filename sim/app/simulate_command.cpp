// Runs the command `simulate`.
#include "sim/app/simulate_command.h"

#include "hw_models/catalog.h"
#include "sim/app/report.h"
#include "sim/app/result.h"
#include "sim/app/setting_flags.h"
#include "sim/app/trace.h"
#include "sim/base/cannot_exist.h"
#include "sim/base/machine_failed.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

ExitCode predict(const JsonValue& settings, const CommonFlags& common) {
  Scenario scenario = read_scenario(settings);
  if (scenario.network == NetworkMode::ideal)
    refuse_seed(common, "nothing without --network flow, which draws hashes");
  scenario.conditions.seed = common.seed.value_or(scenario.conditions.seed);
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  SimulateOptions options = read_simulate_options(settings);
  options.model_error = &error;
  const auto trace = settings.find("trace");
  if (trace) check_writable_file(trace->text());
  const Prediction prediction = simulate(scenario, options);
  if (trace) write_file(trace->text(), trace_json(scenario, prediction));
  const Reasons reasons = reasons_for(scenario, {.memory_reserve = read_memory_reserve(settings)});
  write_result(common.json ? prediction_json(scenario, prediction, reasons)
                           : page(prediction_document(scenario, prediction, reasons,
                                                      common.markdown, terminal_width()),
                                  common));
  return verdict_of(prediction.memory).exists() ? ExitCode::answer : ExitCode::cannot_exist;
}

ExitCode run(const Given& given) {
  const CommonFlags common = common_of(given);
  const GivenSettings settings = settings_of(given);
  try {
    return predict(settings.merged(), common);
  } catch (const CannotExist&) {
    throw;
  } catch (const MachineFailed&) {
    throw;
  } catch (const Error& error) {
    throw named_by_flag(error, settings.file, settings.flags);
  }
}

}  // namespace

Command simulate_command() {
  std::vector<Flag> flags = setting_flags(SettingOf::simulate);
  flags.push_back(markdown_flag());
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
          .run = run};
}

}  // namespace orrery
