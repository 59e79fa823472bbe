// SPDX-License-Identifier: Apache-2.0
// Marks steps by the median and the median absolute deviation of the run.
#include "sim/observe/log/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/statistics.h"

namespace orrery::observe {
namespace {

struct Middle {
  double median = 0, deviation = 0;
  bool is_far(double time) const {
    return std::abs(time - median) > std::max(4 * deviation, 0.1 * median);
  }
};

Middle middle_of(const std::vector<double>& times) {
  Middle middle{.median = median(times)};
  std::vector<double> away;
  away.reserve(times.size());
  for (const double time : times) away.push_back(std::abs(time - middle.median));
  middle.deviation = deviation_of_mad * median(away);
  return middle;
}

// A save is printed behind the line of its step and falls into the step that is logged next.
void mark_events(RunLog& run) {
  std::size_t next = 0;
  for (const LoggedEvent& event : run.events) {
    while (next < run.steps.size() && run.steps[next].line < event.line) ++next;
    if (next == run.steps.size() || event.kind == LoggedEvent::Kind::restart) continue;
    LoggedStep& step = run.steps[next];
    if (step.mark != StepMark::usual) continue;
    step.mark =
        event.kind == LoggedEvent::Kind::checkpoint ? StepMark::checkpoint : StepMark::evaluation;
  }
}

// From `begin` on: a start of the program.
void mark_warm_up(std::vector<LoggedStep>& steps, std::size_t begin, const Middle& middle) {
  const std::size_t count = steps.size() - begin;
  const std::size_t looked =
      std::min<std::size_t>({20, std::max<std::size_t>(1, count / 10 + 2), count});
  std::size_t last = begin;
  for (std::size_t i = begin; i < begin + looked; ++i)
    if (steps[i].time && middle.is_far(steps[i].time->si())) last = i + 1;
  for (std::size_t i = begin; i < last; ++i)
    if (steps[i].mark == StepMark::usual) steps[i].mark = StepMark::warm_up;
}

std::string list_of(const std::vector<std::int64_t>& steps) {
  std::string text;
  for (std::size_t i = 0; i < steps.size() && i < 8; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(steps[i]);
  return steps.size() > 8 ? text + ", ..." : text;
}

void note_marks(RunLog& run) {
  std::map<StepMark, std::vector<std::int64_t>> by_mark;
  for (const LoggedStep& step : run.steps)
    if (step.mark != StepMark::usual) by_mark[step.mark].push_back(step.step);
  for (const auto& [mark, steps] : by_mark)
    run.notes.push_back(fmt::format("Statistics leave out {} of {} logged steps ({}): {}.",
                                    steps.size(), run.steps.size(), step_mark_text[mark],
                                    list_of(steps)));
}

}  // namespace

void mark_steps(RunLog& run) {
  for (LoggedStep& step : run.steps) step.mark = step.time ? StepMark::usual : StepMark::no_time;
  mark_events(run);
  const auto usual_times = [&run] {
    std::vector<double> times;
    for (const LoggedStep& step : run.steps)
      if (step.mark == StepMark::usual) times.push_back(step.time->si());
    return times;
  };
  std::vector<double> times = usual_times();
  // Every step may touch a save, where one is logged in many.
  if (times.empty()) {
    for (LoggedStep& step : run.steps)
      if (step.time) step.mark = StepMark::usual;
    times = usual_times();
  }
  if (!times.empty()) {
    Middle middle = middle_of(times);
    mark_warm_up(run.steps, 0, middle);
    for (const LoggedEvent& event : run.events) {
      if (event.kind != LoggedEvent::Kind::restart) continue;
      const auto first =
          std::find_if(run.steps.begin(), run.steps.end(),
                       [&](const LoggedStep& step) { return step.line >= event.line; });
      if (first != run.steps.end())
        mark_warm_up(run.steps, static_cast<std::size_t>(first - run.steps.begin()), middle);
    }
    if (const std::vector<double> warm = usual_times(); !warm.empty()) middle = middle_of(warm);
    for (LoggedStep& step : run.steps)
      if (step.mark == StepMark::usual && middle.is_far(step.time->si()))
        step.mark = StepMark::outlier;
    times = usual_times();
  }
  if (!times.empty()) {
    const Middle middle = middle_of(times);
    run.usual = {.steps = times.size(),
                 .median = seconds(middle.median),
                 .deviation = seconds(middle.deviation),
                 .p90 = seconds(percentile(times, 90)),
                 .least = seconds(*std::min_element(times.begin(), times.end())),
                 .most = seconds(*std::max_element(times.begin(), times.end()))};
  }
  note_marks(run);
}

}  // namespace orrery::observe
