// SPDX-License-Identifier: Apache-2.0
// Asks the command that a question is for.
#include "sim/app/questions/question.h"

#include <atomic>

#include "sim/app/ask/answers.h"
#include "sim/app/schedule/command.h"
#include "sim/app/serve/command.h"
#include "sim/base/errors/interrupt.h"
#include "sim/question/plan/question.h"

namespace orrery {
namespace {

WholeAnswer served(const JsonValue& settings, const QuestionHow& how) {
  std::atomic<bool> stop{false};
  const ServeWith with{.catalogues = how.catalogues,
                       .seed = how.seed.value_or(default_serve_seed),
                       .threads = how.threads,
                       .stop = &stop,
                       .progress = [&](std::size_t point, std::size_t points, std::int64_t done) {
                         if (interrupted()) stop = true;
                         if (how.progress)
                           how.progress(static_cast<double>(point) / static_cast<double>(points),
                                        done);
                       }};
  return whole_answer(serve_settings(settings, with), with.seed);
}

WholeAnswer scheduled(const JsonValue& settings, const QuestionHow& how) {
  return schedule_answer(settings, {.catalogues = how.catalogues,
                                    .seed = how.seed,
                                    .threads = how.threads,
                                    .progress = [&](const ScheduleProgress& now) {
                                      if (how.progress) how.progress(now.share(), now.done);
                                    }});
}

}  // namespace

const std::vector<std::string>& settings_commands() {
  static const std::vector<std::string> names = {"simulate", "advise", "plan", "serve", "schedule"};
  return names;
}

WholeAnswer answer_question(const std::string& command, const JsonValue& base,
                            const SortedJson& settings, const QuestionHow& how) {
  if (command == "serve") return served(merge_serve_settings(base, settings), how);
  if (command == "schedule") return scheduled(merge_schedule_settings(base, settings), how);
  const AskedWith with{.catalogues = how.catalogues,
                       .seed = how.seed,
                       .threads = how.threads,
                       .progress = how.progress};
  return whole_answer(
      command,
      command == "plan" ? merge_plan_flags(base, settings) : merge_line(base, settings, {}, {}),
      with);
}

}  // namespace orrery
