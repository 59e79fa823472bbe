// SPDX-License-Identifier: Apache-2.0
// Finds what others did on the device: slices of time that another process had, kernels that run
// through steps.
#include <algorithm>
#include <map>

#include "sim/base/statistics.h"
#include "sim/observe/profile/summary.h"

namespace orrery::observe {
namespace {

// Processes that share a device without MPS have it in turn. A kernel that loses its turn takes a
// slice longer, however short it is; between two kernels the device does nothing. Slices were 1.0
// to 2.9 ms on H100 and H200 (validation/faults), and several may follow one another.
constexpr double least_slice = 0.9e6, most_slice = 2e7;  // nanoseconds
// Kernels of one name and grid take the same time each; fewer do not tell what is usual.
constexpr std::size_t enough = 8;
// A kernel that runs through so much of a step is no part of it.
constexpr double through_the_step = 0.5;

bool is_product(KernelClass what) {
  return what == KernelClass::product || what == KernelClass::convolution;
}
bool computes(KernelClass what) {
  return what != KernelClass::communication &&
         (what < KernelClass::copy_to_device || what > KernelClass::set);
}

struct Event {
  std::size_t step = 0;
  double time = 0;
};

// Whether nine of ten take about the median time.
bool is_even(const std::vector<Event>& events) {
  std::vector<double> times;
  for (const Event& event : events) times.push_back(event.time);
  return percentile(times, 90) < 1.2 * percentile(times, 50);
}

std::vector<double> usual_times(const std::vector<Event>& events) {
  if (events.size() < enough) return {};
  std::vector<double> times;
  for (const Event& event : events) times.push_back(event.time);
  return std::vector<double>(events.size(), median(times));
}

// One persistent kernel runs with several depths, so that products are held against those of the
// same place in other steps; where other kernels say that slices were lost, and they may fall on
// the same place in every step, also against those of one name that take one time each.
std::vector<double> usual_products(const std::vector<Event>& events, std::size_t steps,
                                   bool slices) {
  if (steps < 2) return {};
  if (slices && is_even(events)) return usual_times(events);
  std::vector<std::vector<double>> by_step(steps);
  for (const Event& event : events) by_step[event.step].push_back(event.time);
  std::vector<double> usual;
  for (std::size_t i = 0; i < by_step.front().size(); ++i) {
    double least = by_step.front()[i];
    for (const auto& times : by_step) {
      if (times.size() != by_step.front().size()) return {};
      least = std::min(least, times[i]);
    }
    usual.push_back(least);
  }
  std::vector<double> all;
  for (std::size_t step = 0; step < steps; ++step)
    all.insert(all.end(), usual.begin(), usual.end());
  return all;
}

class ForeignFiller {
 public:
  ForeignFiller(const Timeline& timeline, const StepWindows& windows, Profile& profile)
      : timeline_(timeline), out_(profile.foreign) {
    const bool whole = std::any_of(windows.steps.begin(), windows.steps.end(),
                                   [](const StepWindow& step) { return step.whole; });
    for (const StepWindow& step : windows.steps)
      if (step.whole || !whole) steps_.push_back(step.device);
    for (const HostEvent& event : timeline.host) {
      if (event.work == HostWork::synchronise) waits_.push_back({event.begin, event.end});
      if (event.work == HostWork::launch) launched_.push_back({event.begin, event.end});
    }
    waits_ = joined(std::move(waits_));
    std::sort(launched_.begin(), launched_.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  }
  void fill() {
    if (steps_.empty()) return;
    for (std::size_t i = 0; i < steps_.size(); ++i) take_step(i);
    for (const bool products : {false, true})
      for (const auto& [kernel, alike] : alike_)
        if (is_product(alike.what) == products) take_alike(alike);
    const double each = 1.0 / static_cast<double>(steps_.size());
    for (std::size_t c = 0; c < kernel_classes; ++c) out_.lost[c] = nanoseconds(lost_[c] * each);
    out_.usual = nanoseconds(usual_ * each);
    out_.kept_waiting = nanoseconds(kept_waiting_ * each);
    out_.alone = nanoseconds(alone_ * each);
  }

 private:
  struct Alike {
    KernelClass what = KernelClass::other;
    std::vector<Event> events;
  };
  void take_step(std::size_t step);
  void take_alike(const Alike& alike);
  double waited_in(const Interval& gap) const;

  const Timeline& timeline_;
  ForeignWork& out_;
  std::vector<Interval> steps_;
  Intervals waits_;                 // of hosts for the device
  std::vector<Interval> launched_;  // calls that launch, by their begin
  std::map<std::pair<std::uint32_t, std::uint32_t>, Alike> alike_;
  std::array<double, kernel_classes> lost_{};
  double usual_ = 0, kept_waiting_ = 0, alone_ = 0;
};

void ForeignFiller::take_step(std::size_t step) {
  const Interval window = steps_[step];
  const auto first = std::lower_bound(
      timeline_.device.begin(), timeline_.device.end(), window.begin,
      [](const DeviceEvent& event, Nanoseconds time) { return event.begin < time; });
  Intervals through, own;
  for (auto event = first; event != timeline_.device.end() && event->begin < window.end; ++event) {
    const auto time = static_cast<double>(event->end - event->begin);
    const bool long_one = event->what == KernelClass::other &&
                          time > through_the_step * static_cast<double>(window.length());
    (long_one ? through : own).push_back({event->begin, event->end});
    if (!long_one && computes(event->what)) {
      Alike& alike = alike_[{event->name, event->detail}];
      alike.what = event->what;
      alike.events.push_back({step, time});
    }
  }
  own = joined(std::move(own));
  through = within(joined(std::move(through)), window);
  alone_ += static_cast<double>(length_of(without(through, own)));
  if (!through.empty())
    own = joined([&] {
      Intervals both = own;
      both.insert(both.end(), through.begin(), through.end());
      return both;
    }());
  for (const Interval& gap : without({window}, own)) {
    const double waited = waited_in(gap);
    if (waited < least_slice || waited > most_slice) continue;
    kept_waiting_ += waited;
    ++out_.slices;
  }
}

// For how long of a gap the device had work: since a launch that began in it returned, or since the
// host waits for the device, which goes on beyond the gap.
double ForeignFiller::waited_in(const Interval& gap) const {
  Nanoseconds since = gap.end;
  // What was launched before the gap may be what ran before it.
  const auto launch =
      std::lower_bound(launched_.begin(), launched_.end(), gap.begin,
                       [](const Interval& one, Nanoseconds time) { return one.begin < time; });
  if (launch != launched_.end()) since = std::min(since, launch->end);
  const auto wait =
      std::lower_bound(waits_.begin(), waits_.end(), gap.end,
                       [](const Interval& one, Nanoseconds time) { return one.end <= time; });
  if (wait != waits_.end() && wait->begin < gap.end)
    since = std::min(since, std::max(gap.begin, wait->begin));
  return static_cast<double>(gap.end - since);
}

void ForeignFiller::take_alike(const Alike& alike) {
  const bool product = is_product(alike.what);
  const std::vector<double> usual =
      product ? usual_products(alike.events, steps_.size(), out_.slices > 0)
              : usual_times(alike.events);
  for (std::size_t i = 0; i < usual.size(); ++i) {
    const double time = alike.events[i].time, beyond = time - usual[i];
    const bool suspended = beyond > least_slice && beyond < most_slice && time > 2 * usual[i];
    usual_ += suspended ? usual[i] : time;
    if (!suspended) continue;
    lost_[static_cast<std::size_t>(alike.what)] += beyond;
    ++out_.slices;
  }
  out_.products |= product && !usual.empty();
}

}  // namespace

void fill_foreign_work(const Timeline& timeline, const StepWindows& windows, Profile& profile) {
  ForeignFiller(timeline, windows, profile).fill();
}

}  // namespace orrery::observe
