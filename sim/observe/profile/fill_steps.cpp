// SPDX-License-Identifier: Apache-2.0
// Sums what the device did in each step, and tells what the host did while it was idle.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "sim/observe/profile/summary.h"

namespace orrery::observe {
namespace {

bool is_copy_or_set(KernelClass what) {
  return what >= KernelClass::copy_to_device && what <= KernelClass::set;
}

// What the host did, by kind: instants in which some thread that launches did it.
struct HostTime {
  std::array<Intervals, host_works> by_work;
};

// Threads that start work of the device, or that do so once in a while: others (watchdogs, loaders)
// tell nothing of why the device waits.
std::set<std::uint16_t> launching_threads(const Timeline& timeline) {
  std::set<std::uint16_t> threads;
  for (const Launch& launch : timeline.launches) threads.insert(launch.thread);
  for (const HostEvent& event : timeline.host)
    if (event.work == HostWork::launch) threads.insert(event.thread);
  return threads;
}

HostTime host_time(const Timeline& timeline) {
  HostTime time;
  const std::set<std::uint16_t> threads = launching_threads(timeline);
  for (const HostEvent& event : timeline.host) {
    const bool of_profiler = event.work == HostWork::profiler;
    if (!of_profiler && !threads.empty() && !threads.contains(event.thread)) continue;
    time.by_work[static_cast<std::size_t>(event.work)].push_back({event.begin, event.end});
  }
  for (Intervals& set : time.by_work) set = joined(std::move(set));
  return time;
}

// The device's work as sets of instants.
struct DeviceTime {
  Intervals busy, compute, communication;
};

DeviceTime device_time(const Timeline& timeline) {
  DeviceTime time;
  for (const DeviceEvent& event : timeline.device) {
    const Interval interval{event.begin, event.end};
    time.busy.push_back(interval);
    if (event.what == KernelClass::communication)
      time.communication.push_back(interval);
    else if (!is_copy_or_set(event.what))
      time.compute.push_back(interval);
  }
  for (Intervals* set : {&time.busy, &time.compute, &time.communication})
    *set = joined(std::move(*set));
  return time;
}

class StepFiller {
 public:
  StepFiller(const Timeline& timeline, const StepWindows& windows, Profile& profile)
      : timeline_(timeline), windows_(windows), profile_(profile) {}
  void fill();

 private:
  static constexpr std::size_t most_gaps = 200;
  ProfiledStep step_of(const StepWindow& window);
  void take_gap(const Interval& interval, ProfiledStep& step);
  void keep(const IdleGap& gap);
  ProfiledStep* step_at(Nanoseconds time);
  void count_events();
  ProfiledStep* step_of_host(Nanoseconds time);
  Interval interval_of(const IdleGap& gap) const;
  void name_gaps();
  void fill_mean();

  const Timeline& timeline_;
  const StepWindows& windows_;
  Profile& profile_;
  HostTime host_;
  DeviceTime device_;
  Nanoseconds origin_ = 0;
  Seconds shortest_;  // of gaps that are kept, once there are many
};

void StepFiller::fill() {
  host_ = host_time(timeline_);
  device_ = device_time(timeline_);
  origin_ = timeline_.device.front().begin;
  for (const StepWindow& window : windows_.steps) profile_.steps.push_back(step_of(window));
  count_events();
  std::stable_sort(profile_.gaps.begin(), profile_.gaps.end(),
                   [](const IdleGap& a, const IdleGap& b) { return a.length > b.length; });
  if (profile_.gaps.size() > most_gaps) profile_.gaps.resize(most_gaps);
  name_gaps();
  fill_mean();
}

ProfiledStep StepFiller::step_of(const StepWindow& window) {
  ProfiledStep step{.number = window.number,
                    .begin = in_seconds(window.device.begin - origin_),
                    .end = in_seconds(window.device.end - origin_),
                    .whole = window.whole};
  if (window.period) step.host_time = in_seconds(*window.period);
  const Intervals busy = within(device_.busy, window.device);
  const Intervals compute = within(device_.compute, window.device);
  const Intervals communication = within(device_.communication, window.device);
  step.busy = in_seconds(length_of(busy));
  step.compute = in_seconds(length_of(compute));
  step.communication = in_seconds(length_of(communication));
  step.exposed_communication = in_seconds(length_of(without(communication, compute)));
  step.uncovered_compute = in_seconds(length_of(without(compute, communication)));
  const Intervals idle = without({window.device}, busy);
  step.idle = in_seconds(length_of(idle));
  step.gaps = idle.size();
  for (const Interval& gap : idle) take_gap(gap, step);
  return step;
}

void StepFiller::take_gap(const Interval& interval, ProfiledStep& step) {
  IdleGap gap{.step = step.number,
              .begin = in_seconds(interval.begin - origin_),
              .length = in_seconds(interval.length())};
  Intervals rest = {interval};
  const auto unknown = static_cast<std::size_t>(HostWork::unknown);
  for (std::size_t work = 0; work < unknown && !rest.empty(); ++work) {
    const Intervals part = within(host_.by_work[work], interval);
    if (part.empty()) continue;
    const Intervals left = without(rest, part);
    gap.by_host[work] = in_seconds(length_of(rest) - length_of(left));
    rest = left;
  }
  gap.by_host[unknown] = in_seconds(length_of(rest));
  gap.host = static_cast<HostWork>(std::max_element(gap.by_host.begin(), gap.by_host.end()) -
                                   gap.by_host.begin());
  // A wait that goes on when the device stops, ends because it stopped.
  const auto waits = static_cast<std::size_t>(HostWork::synchronise);
  const Intervals& waiting = host_.by_work[waits];
  const auto at = std::partition_point(waiting.begin(), waiting.end(), [&](const Interval& wait) {
    return wait.end < interval.begin;
  });
  gap.after_wait = at != waiting.end() && at->begin <= interval.begin;
  if (gap.after_wait) step.idle_after_wait += gap.length;
  for (std::size_t work = 0; work < host_works; ++work)
    step.idle_by_host[work] += gap.by_host[work];
  keep(gap);
}

// Only the longest are wanted: shorter ones go as the list grows.
void StepFiller::keep(const IdleGap& gap) {
  constexpr std::size_t most_held = 20 * most_gaps;
  if (gap.length < shortest_) return;
  profile_.gaps.push_back(gap);
  if (profile_.gaps.size() < most_held) return;
  std::nth_element(profile_.gaps.begin(), profile_.gaps.begin() + most_gaps, profile_.gaps.end(),
                   [](const IdleGap& a, const IdleGap& b) { return a.length > b.length; });
  profile_.gaps.resize(most_gaps);
  shortest_ = profile_.gaps.front().length;
  for (const IdleGap& kept : profile_.gaps) shortest_ = std::min(shortest_, kept.length);
}

// The step in whose window an instant lies.
ProfiledStep* StepFiller::step_at(Nanoseconds time) {
  const auto after = std::partition_point(
      windows_.steps.begin(), windows_.steps.end(),
      [time](const StepWindow& window) { return window.device.begin <= time; });
  if (after == windows_.steps.begin()) return nullptr;
  const auto place = static_cast<std::size_t>(after - windows_.steps.begin() - 1);
  return time < windows_.steps[place].device.end ? &profile_.steps[place] : nullptr;
}

void StepFiller::count_events() {
  for (const DeviceEvent& event : timeline_.device) {
    ProfiledStep* step = step_at(event.begin);
    if (step == nullptr) continue;
    const Seconds time = in_seconds(event.end - event.begin);
    step->by_class[static_cast<std::size_t>(event.what)] += time;
    ++step->count_by_class[static_cast<std::size_t>(event.what)];
    if (!is_copy_or_set(event.what)) ++step->kernels;
    if (event.what != KernelClass::communication) continue;
    const CollectiveCall& call = timeline_.collectives[event.detail];
    const auto kind = collective_kind(event.detail != 0 ? call.name : timeline_.names[event.name]);
    if (kind) step->by_collective[static_cast<std::size_t>(*kind)] += time;
  }
  for (const HostEvent& event : timeline_.host) {
    if (event.work != HostWork::launch && event.work != HostWork::synchronise &&
        event.work != HostWork::allocate)
      continue;
    ProfiledStep* step = step_of_host(event.begin);
    if (step == nullptr) continue;
    if (event.work == HostWork::launch) ++step->launches;
    if (event.work == HostWork::synchronise) ++step->waits;
    if (event.work == HostWork::allocate) ++step->allocations;
  }
}

// The host runs ahead of the device: its own bounds count where they are known.
ProfiledStep* StepFiller::step_of_host(Nanoseconds time) {
  if (windows_.steps.front().host.length() <= 0) return step_at(time);
  const auto after =
      std::partition_point(windows_.steps.begin(), windows_.steps.end(),
                           [time](const StepWindow& window) { return window.host.begin <= time; });
  if (after == windows_.steps.begin()) return nullptr;
  const auto place = static_cast<std::size_t>(after - windows_.steps.begin() - 1);
  return time < windows_.steps[place].host.end ? &profile_.steps[place] : nullptr;
}

Interval StepFiller::interval_of(const IdleGap& gap) const {
  const auto whole = [](Seconds time) { return std::llround(time.si() * 1e9); };
  return {origin_ + whole(gap.begin), origin_ + whole(gap.begin) + whole(gap.length)};
}

// What the host recorded in each gap: of events that fill half of it the shortest, so that the
// innermost tells; else the one that fills most. And the kernels around.
void StepFiller::name_gaps() {
  struct Best {
    Nanoseconds overlap = 0, length = 0;
  };
  std::vector<std::size_t> order(profile_.gaps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return profile_.gaps[a].begin < profile_.gaps[b].begin;
  });
  std::vector<Interval> gaps;
  for (const std::size_t i : order) gaps.push_back(interval_of(profile_.gaps[i]));
  std::vector<Best> best(gaps.size());
  for (const HostEvent& event : timeline_.host) {
    auto at = std::partition_point(gaps.begin(), gaps.end(),
                                   [&](const Interval& gap) { return gap.end <= event.begin; });
    for (; at != gaps.end() && at->begin < event.end; ++at) {
      const auto place = static_cast<std::size_t>(at - gaps.begin());
      IdleGap& gap = profile_.gaps[order[place]];
      if (event.work != gap.host) continue;
      const Nanoseconds overlap = std::min(at->end, event.end) - std::max(at->begin, event.begin);
      const Nanoseconds length = event.end - event.begin;
      Best& held = best[place];
      const bool fills = 2 * overlap >= at->length(), held_fills = 2 * held.overlap >= at->length();
      const bool better = fills && held_fills ? length < held.length : overlap > held.overlap;
      if (!better) continue;
      held = {overlap, length};
      gap.host_event = timeline_.names[event.name];
    }
  }
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const auto next =
        std::partition_point(timeline_.device.begin(), timeline_.device.end(),
                             [&](const DeviceEvent& event) { return event.begin < gaps[i].end; });
    IdleGap& gap = profile_.gaps[order[i]];
    if (next != timeline_.device.end()) gap.after = timeline_.names[next->name];
    if (next != timeline_.device.begin()) gap.before = timeline_.names[std::prev(next)->name];
  }
}

void StepFiller::fill_mean() {
  ProfiledStep& mean = profile_.mean;
  const auto whole =
      static_cast<std::size_t>(std::count_if(profile_.steps.begin(), profile_.steps.end(),
                                             [](const ProfiledStep& step) { return step.whole; }));
  const std::size_t count = whole > 0 ? whole : profile_.steps.size();
  const auto steps = static_cast<double>(count);
  mean.number = static_cast<std::int64_t>(count);
  mean.whole = whole > 0;
  std::size_t timed = 0;
  Seconds host_time;
  for (const ProfiledStep& step : profile_.steps) {
    if (whole > 0 && !step.whole) continue;
    for (const auto member :
         {&ProfiledStep::busy, &ProfiledStep::idle, &ProfiledStep::communication,
          &ProfiledStep::exposed_communication, &ProfiledStep::compute,
          &ProfiledStep::uncovered_compute, &ProfiledStep::idle_after_wait})
      mean.*member += step.*member / steps;
    mean.end += (step.end - step.begin) / steps;
    for (std::size_t i = 0; i < kernel_classes; ++i) {
      mean.by_class[i] += step.by_class[i] / steps;
      mean.count_by_class[i] += step.count_by_class[i];
    }
    for (std::size_t i = 0; i < collective_kinds; ++i)
      mean.by_collective[i] += step.by_collective[i] / steps;
    for (std::size_t i = 0; i < host_works; ++i)
      mean.idle_by_host[i] += step.idle_by_host[i] / steps;
    for (const auto member : {&ProfiledStep::kernels, &ProfiledStep::launches, &ProfiledStep::gaps,
                              &ProfiledStep::waits, &ProfiledStep::allocations})
      mean.*member += step.*member;
    if (step.host_time) {
      host_time += *step.host_time;
      ++timed;
    }
  }
  for (const auto member : {&ProfiledStep::kernels, &ProfiledStep::launches, &ProfiledStep::gaps,
                            &ProfiledStep::waits, &ProfiledStep::allocations})
    mean.*member = (mean.*member + count / 2) / count;
  for (std::size_t& number : mean.count_by_class) number = (number + count / 2) / count;
  if (timed > 0) mean.host_time = host_time / static_cast<double>(timed);
}

}  // namespace

void fill_steps(const Timeline& timeline, const StepWindows& windows, Profile& profile) {
  StepFiller(timeline, windows, profile).fill();
}

}  // namespace orrery::observe
