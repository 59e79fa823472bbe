// Runs the command `plan`.
#include "sim/app/plan_command.h"

#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "hw_models/catalog.h"
#include "sim/app/plan_keys.h"
#include "sim/app/plan_question.h"
#include "sim/app/plan_report.h"
#include "sim/app/result.h"
#include "sim/base/interrupt.h"
#include "sim/outcome/model_error.h"

namespace orrery {

namespace {

PlanFile read_command(const PlanCommand& command) {
  const JsonValue question = merge_plan_flags(command.question, command.flags);
  try {
    return read_plan(question);
  } catch (const Error& error) {
    const std::string file = question.file() == plan_command_line ? "" : question.file();
    throw named_by_plan_flag(error, file, command.flags);
  }
}

}  // namespace

PlanAnswer plan_answer(const PlanCommand& command) {
  install_interrupt_handler();
  PlanFile file = read_command(command);
  file.plan.seed = command.seed.value_or(file.plan.seed);
  const bool tell = !command.quiet && isatty(STDERR_FILENO) != 0;
  std::mutex mutex;
  PlanOptions options{.threads = command.threads};
  if (tell)
    options.progress = [&](std::int64_t done, std::int64_t all) {
      const std::scoped_lock lock(mutex);
      std::fprintf(stderr, "\rplanning: %lld of %lld steps searched ", static_cast<long long>(done),
                   static_cast<long long>(all));
      std::fflush(stderr);
    };
  const PlanResult result = plan(file.plan, options);
  if (tell) std::fprintf(stderr, "\r\033[K");
  std::optional<PlanDetail> detail;
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  if (const auto point = detailed_point(result))
    detail = plan_detail(file.plan, result.points[*point], &error);
  const bool found = result.best || result.stopped_early;
  PlanAnswer answer{.code = found ? ExitCode::answer : ExitCode::cannot_exist};
  if (command.json) {
    answer.text = plan_json(file, result, detail);
  } else {
    const Document document = plan_document(file, result, detail, terminal_width());
    answer.text = command.markdown ? document.markdown() : document.text();
  }
  return answer;
}

namespace {

ExitCode run(const Given& given) {
  const CommonFlags common = common_of(given);
  PlanCommand command{.question = given.word(0),
                      .json = common.json,
                      .markdown = common.markdown,
                      .quiet = common.quiet,
                      .threads = common.threads,
                      .seed = common.seed};
  for (const PlanKey& key : plan_keys())
    if (given.has(key.flag()))
      command.flags[key.key] = plan_flag_value(key, given.text(key.flag()));
  const PlanAnswer answer = plan_answer(command);
  write_result(answer.text);
  return unless_stopped(answer.code);
}

}  // namespace

Command plan_command() {
  std::vector<Flag> flags;
  for (const PlanKey& key : plan_keys())
    flags.push_back({key.flag(), key.text == PlanText::json ? "JSON" : "VALUES", key.group,
                     key.help, key.completes});
  flags.push_back(markdown_flag());
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
          .run = run};
}

}  // namespace orrery
