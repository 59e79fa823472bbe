// SPDX-License-Identifier: Apache-2.0
// Finds steps by annotations, by the optimizer, or by kernels that come back evenly.
#include "sim/observe/profile/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/base/text/lower_case.h"
#include "sim/observe/input/words.h"

namespace orrery::observe {
namespace {

struct Mark {
  std::int64_t number = 0;
  Interval host;
};

// The step that an annotation counts: "ProfilerStep#7", "step 7", "iteration_7", "Iteration: 7".
std::optional<std::int64_t> step_number(std::string_view name) {
  constexpr std::string_view profiler = "ProfilerStep#";
  if (name.starts_with(profiler)) return whole_number_in(name.substr(profiler.size()));
  const std::string small = lower_case(std::string(name));
  for (const std::string_view word :
       {"training_step", "train_step", "training step", "iteration", "iter", "step"}) {
    if (!small.starts_with(word)) continue;
    std::string_view rest = std::string_view(small).substr(word.size());
    while (!rest.empty() &&
           (rest[0] == ' ' || rest[0] == '_' || rest[0] == ':' || rest[0] == '#' || rest[0] == '='))
      rest.remove_prefix(1);
    if (const auto number = whole_number_in(rest); number && *number >= 0) return number;
  }
  return std::nullopt;
}

std::vector<Mark> annotated(const Timeline& timeline) {
  std::map<std::int64_t, Interval> profiler, counted;
  for (const Annotation& annotation : timeline.annotations) {
    const std::string& name = timeline.names[annotation.name];
    const auto number = step_number(name);
    if (!number || annotation.end <= annotation.begin) continue;
    auto& marks = name.starts_with("ProfilerStep#") ? profiler : counted;
    marks.try_emplace(*number, Interval{annotation.begin, annotation.end});
  }
  // Ranges of NVTX may be nested; one alone is no series.
  const auto& chosen = !profiler.empty() || counted.size() < 2 ? profiler : counted;
  std::vector<Mark> marks;
  for (const auto& [number, interval] : chosen) marks.push_back({number, interval});
  std::sort(marks.begin(), marks.end(),
            [](const Mark& a, const Mark& b) { return a.host.begin < b.host.begin; });
  return marks;
}

// From one end of the optimizer to the next.
std::vector<Mark> by_optimizer(const Timeline& timeline) {
  std::vector<Interval> found;
  for (const Annotation& annotation : timeline.annotations)
    if (timeline.names[annotation.name].starts_with("Optimizer.step#"))
      found.push_back({annotation.begin, annotation.end});
  std::sort(found.begin(), found.end(),
            [](const Interval& a, const Interval& b) { return a.end < b.end; });
  std::vector<Mark> marks;
  for (std::size_t i = 0; i + 1 < found.size(); ++i)
    marks.push_back({static_cast<std::int64_t>(i), {found[i].end, found[i + 1].end}});
  return marks;
}

// When the host launched the work, or nothing.
std::optional<Nanoseconds> launch_of(const Timeline& timeline, const DeviceEvent& event) {
  if (event.correlation == 0) return std::nullopt;
  const auto at = std::lower_bound(
      timeline.launches.begin(), timeline.launches.end(), event.correlation,
      [](const Launch& launch, std::uint32_t wanted) { return launch.correlation < wanted; });
  if (at == timeline.launches.end() || at->correlation != event.correlation) return std::nullopt;
  return at->begin;
}

// Bounds on the device, of marks of the host.
std::vector<StepWindow> on_device(const Timeline& timeline, const std::vector<Mark>& marks) {
  constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
  std::vector<Nanoseconds> first(marks.size(), never), last(marks.size(), 0);
  for (const DeviceEvent& event : timeline.device) {
    const auto launched = launch_of(timeline, event);
    if (!launched) continue;
    const auto after = std::partition_point(
        marks.begin(), marks.end(), [&](const Mark& mark) { return mark.host.begin <= *launched; });
    if (after == marks.begin()) continue;
    const auto place = static_cast<std::size_t>(after - marks.begin() - 1);
    if (*launched >= marks[place].host.end) continue;
    first[place] = std::min(first[place], event.begin);
    last[place] = std::max(last[place], event.end);
  }
  bool usable = !marks.empty();
  for (std::size_t i = 0; i < marks.size(); ++i)
    usable = usable && first[i] != never && (i == 0 || first[i] > first[i - 1]);
  std::vector<StepWindow> windows;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    StepWindow window{.number = marks[i].number, .device = marks[i].host, .host = marks[i].host};
    if (i + 1 < marks.size()) window.period = marks[i + 1].host.begin - marks[i].host.begin;
    window.whole = !usable || i + 1 < marks.size();
    if (usable)
      window.device = {first[i], i + 1 < marks.size() ? first[i + 1] : last[i]};
    else if (i + 1 < marks.size())
      window.device.end = marks[i + 1].host.begin;
    windows.push_back(window);
  }
  return windows;
}

// Starts of a kernel that come back evenly, and how evenly: deviation over mean of the distances.
struct Rhythm {
  std::vector<Nanoseconds> begins;
  double unevenness = 1;
};

std::vector<Mark> by_repetition(const Timeline& timeline) {
  std::map<std::uint32_t, std::vector<Nanoseconds>> begins;
  for (const DeviceEvent& event : timeline.device)
    if (event.what < KernelClass::copy_to_device) begins[event.name].push_back(event.begin);
  constexpr double even = 0.2;
  std::map<std::size_t, std::vector<Rhythm>> by_count;
  for (auto& [name, times] : begins) {
    constexpr std::size_t least = 3, most = 1000;
    if (times.size() < least || times.size() > most) continue;
    double sum = 0, squares = 0;
    for (std::size_t i = 1; i < times.size(); ++i) {
      const auto distance = static_cast<double>(times[i] - times[i - 1]);
      sum += distance;
      squares += distance * distance;
    }
    const double count = static_cast<double>(times.size() - 1), mean = sum / count;
    const double variance = std::max(squares / count - mean * mean, 0.0);
    const double unevenness = mean > 0 ? std::sqrt(variance) / mean : 1;
    if (unevenness >= even) continue;
    std::vector<Rhythm>& alike = by_count[times.size()];
    alike.push_back({std::move(times), unevenness});
  }
  // Kernels of a layer come in bursts; those of a step come evenly, and several as often as each
  // other: the fewest repetitions that two kernels share.
  for (auto& [count, rhythms] : by_count) {
    if (rhythms.size() < 2) continue;
    const auto earliest = std::min_element(
        rhythms.begin(), rhythms.end(),
        [](const Rhythm& a, const Rhythm& b) { return a.begins.front() < b.begins.front(); });
    std::vector<Mark> marks;
    for (std::size_t i = 0; i + 1 < count; ++i)
      marks.push_back(
          {static_cast<std::int64_t>(i), {earliest->begins[i], earliest->begins[i + 1]}});
    return marks;
  }
  return {};
}

}  // namespace

StepWindows find_steps(const Timeline& timeline) {
  StepWindows found;
  const auto use = [&](StepSource source, const std::vector<Mark>& marks) {
    found.source = source;
    found.steps = on_device(timeline, marks);
    return !marks.empty();
  };
  if (use(StepSource::annotated, annotated(timeline))) return found;
  if (use(StepSource::optimizer, by_optimizer(timeline))) {
    found.notes.push_back(
        "No annotation counts steps: a step is taken from one end of the optimizer to the next.");
    return found;
  }
  if (const std::vector<Mark> marks = by_repetition(timeline); !marks.empty()) {
    found.source = StepSource::repetition;
    for (const Mark& mark : marks)
      found.steps.push_back({.number = mark.number, .device = mark.host, .host = {}, .period = {}});
    found.notes.push_back(fmt::format(
        "No annotation counts steps: {} steps are guessed from kernels that come back evenly.",
        marks.size()));
    return found;
  }
  found.source = StepSource::whole;
  Nanoseconds end = timeline.device.front().end;
  for (const DeviceEvent& event : timeline.device) end = std::max(end, event.end);
  found.steps = {
      {.number = 0, .device = {timeline.device.front().begin, end}, .host = {}, .period = {}}};
  found.notes.push_back("No steps were found: the whole profile counts as one step.");
  return found;
}

}  // namespace orrery::observe
