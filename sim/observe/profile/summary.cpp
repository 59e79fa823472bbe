// SPDX-License-Identifier: Apache-2.0
// Chooses the device of a timeline, sorts its events and fills the profile part by part.
#include "sim/observe/profile/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "sim/base/errors/check.h"
#include "sim/base/statistics.h"

namespace orrery::observe {
namespace {

bool is_kernel(KernelClass what) {
  return what < KernelClass::copy_to_device || what > KernelClass::set;
}

// Keeps the device with most time of kernels. One rank drives one device.
void keep_one_device(Timeline& timeline, const std::string& file, Profile& profile) {
  std::array<double, 256> work{};
  std::size_t kernels = 0;
  for (const DeviceEvent& event : timeline.device)
    if (is_kernel(event.what)) {
      work[event.device] += static_cast<double>(event.end - event.begin);
      ++kernels;
    }
  if (kernels == 0)
    throw Error({.file = file,
                 .found = "a trace without kernels of a GPU",
                 .expected = "a profile that was recorded with the device's activities "
                             "(ProfilerActivity.CUDA, nsys --trace=cuda)"});
  const auto most =
      static_cast<std::size_t>(std::max_element(work.begin(), work.end()) - work.begin());
  const auto others = std::count_if(work.begin(), work.end(), [](double time) { return time > 0; });
  if (others > 1) {
    profile.notes.push_back(
        fmt::format("Kernels of {} devices are in the file: device {}, which worked most, is read.",
                    others, most));
    std::erase_if(timeline.device,
                  [most](const DeviceEvent& event) { return event.device != most; });
  }
  profile.device.index = static_cast<int>(most);
}

std::optional<Seconds> launch_delay(const Timeline& timeline) {
  std::vector<double> delays;
  std::size_t next = 0;
  std::vector<std::pair<std::uint32_t, Nanoseconds>> starts;
  for (const DeviceEvent& event : timeline.device)
    if (event.correlation != 0 && is_kernel(event.what))
      starts.emplace_back(event.correlation, event.begin);
  std::sort(starts.begin(), starts.end());
  for (const auto& [correlation, begin] : starts) {
    while (next < timeline.launches.size() && timeline.launches[next].correlation < correlation)
      ++next;
    if (next == timeline.launches.size()) break;
    const Launch& launch = timeline.launches[next];
    if (launch.correlation == correlation && begin >= launch.begin)
      delays.push_back(static_cast<double>(begin - launch.begin));
  }
  if (delays.empty()) return std::nullopt;
  return nanoseconds(median(delays));
}

}  // namespace

void summarise(Timeline& timeline, const std::string& file, Profile& profile) {
  profile.events = timeline.events;
  keep_one_device(timeline, file, profile);
  std::stable_sort(timeline.device.begin(), timeline.device.end(),
                   [](const DeviceEvent& a, const DeviceEvent& b) { return a.begin < b.begin; });
  std::sort(timeline.launches.begin(), timeline.launches.end(),
            [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
  profile.recorded.launches = !timeline.launches.empty();
  std::set<std::uint16_t> streams;
  Nanoseconds end = timeline.device.front().end;
  for (const DeviceEvent& event : timeline.device) {
    streams.insert(event.stream);
    end = std::max(end, event.end);
  }
  profile.streams = streams.size();
  profile.span = nanoseconds(static_cast<double>(end - timeline.device.front().begin));
  profile.launch_delay = launch_delay(timeline);
  if (timeline.most_allocated >= 0)
    profile.most_allocated = bytes(static_cast<double>(timeline.most_allocated));
  if (timeline.most_reserved >= 0)
    profile.most_reserved = bytes(static_cast<double>(timeline.most_reserved));
  if (timeline.left_out > 0)
    profile.notes.push_back(fmt::format(
        "{} events beyond the first {} million of the device and {} million of the "
        "host were left out.",
        timeline.left_out, Timeline::most_device / 1'000'000, Timeline::most_host / 1'000'000));
  fill_tables(timeline, profile);
  const StepWindows windows = find_steps(timeline);
  profile.step_source = windows.source;
  profile.notes.insert(profile.notes.end(), windows.notes.begin(), windows.notes.end());
  fill_steps(timeline, windows, profile);
  fill_foreign_work(timeline, windows, profile);
  if (profile.steps.size() > 1 && !profile.steps.back().whole)
    profile.notes.push_back(
        "The last step ends with its last kernel, since none follows: means leave it out.");
}

}  // namespace orrery::observe
