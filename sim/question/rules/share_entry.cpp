// SPDX-License-Identifier: Apache-2.0
// Refuses to share GPUs beside rules that do not know what is left of one.
#include "sim/question/rules/share_entry.h"

#include <fmt/format.h>

#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

constexpr auto device_share_text = enum_names<DeviceShare>({"time-slices", "mps", "mps-limits"});

// The setting that knows whole GPUs alone; nullptr: none does.
const char* knows_whole_gpus(const FleetQuestion& q) {
  const bool at_any_time =
      q.policy.fit == JobFit::block || q.policy.fit == JobFit::easy || q.policy.fit == JobFit::any;
  if (!at_any_time) return "policy";
  if (q.policy.place == JobPlace::pool) return "place";
  if (q.policy.defragments) return "defragment";
  if (!q.feeds.empty()) return "feeds";
  if (q.power_limit_milliwatts > 0 && q.power_policy != PowerPolicy::admit) return "power_policy";
  return nullptr;
}

}  // namespace

GpuShare read_share(const JsonValue& settings, bool parts, const FleetQuestion& question) {
  const auto share = settings.find("share");
  if (!parts) {
    if (share) share->fail("nothing here: no job asks for a part of a GPU");
    return GpuShare::never;
  }
  const GpuShare how = share ? gpu_share_text.from(*share) : GpuShare::best_fit;
  const char* what = knows_whole_gpus(question);
  if (how == GpuShare::never || what == nullptr) return how;
  if (share) share->fail(fmt::format("never: this {} knows whole GPUs alone", what));
  settings.at(what).fail(
      "share never beside it, since jobs ask for parts of a GPU: it knows whole GPUs alone");
}

DeviceShare read_sharing(const JsonValue& settings, bool uses) {
  const auto sharing = settings.find("sharing");
  if (!sharing) return DeviceShare::time_slices;
  if (!uses) sharing->fail("nothing without uses in an entry of jobs that ask for parts of a GPU");
  return device_share_text.from(*sharing);
}

DeviceUse read_gpu_use(const JsonValue& at) {
  at.expect_only({"busy", "kernel"}, "what a job asks of a GPU");
  DeviceUse use{.busy = at.at("busy").number(), .kernel = at.at("kernel").quantity<Seconds>()};
  if (!(use.busy > 0 && use.busy <= 1)) at.at("busy").fail("a share of time above 0, up to 1");
  if (!(use.kernel > Seconds{})) at.at("kernel").fail("a time above 0, such as \"40 us\"");
  return use;
}

}  // namespace orrery
