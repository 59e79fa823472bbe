// Runs the command `advise`.
#include "sim/app/advise_command.h"

#include <unistd.h>

#include <cstdio>

#include "hw_models/catalog.h"
#include "sim/app/advise_machines.h"
#include "sim/app/report.h"
#include "sim/app/result.h"
#include "sim/app/setting_flags.h"
#include "sim/base/cannot_exist.h"
#include "sim/base/interrupt.h"
#include "sim/base/machine_failed.h"

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

ExitCode search(const JsonValue& settings, const CommonFlags& common) {
  if (const auto clusters = several_clusters(settings); !clusters.empty())
    return advise_machines(settings, clusters, common);
  const Question question = read_question(settings);
  check_wiring(question.cluster);
  AdviseOptions options = read_advise_options(settings);
  options.like = read_like(settings, question.job);
  options.threads = common.threads;
  options.progress = progress_line(common);
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  options.model_error = &error;
  const Advice advice = advise(question, options);
  if (options.progress) std::fprintf(stderr, "\r\033[K");
  // Nothing to advise, whatever the memory.
  if (advice.best.empty() && advice.considered == 0 && !advice.stopped_early)
    throw CannotExist({.file = "advise",
                       .found = "no layout to search: " + advice.why,
                       .expected = "limits that leave at least one layout"});
  write_result(
      common.json
          ? advice_json(question, advice)
          : page(advice_document(question, advice, common.markdown, terminal_width()), common));
  const bool found = !advice.best.empty() || advice.stopped_early;
  return unless_stopped(found ? ExitCode::answer : ExitCode::cannot_exist);
}

ExitCode run(const Given& given) {
  install_interrupt_handler();  // from the start: what is known by then is printed
  const CommonFlags common = common_of(given);
  const GivenSettings settings = settings_of(given);
  try {
    return search(settings.merged(), common);
  } catch (const CannotExist&) {
    throw;
  } catch (const MachineFailed&) {
    throw;
  } catch (const Error& error) {
    throw named_by_flag(error, settings.file, settings.flags);
  }
}

}  // namespace

Command advise_command() {
  std::vector<Flag> flags = setting_flags(SettingOf::advise);
  flags.push_back(markdown_flag());
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
          .run = run};
}

}  // namespace orrery
