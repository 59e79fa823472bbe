// SPDX-License-Identifier: Apache-2.0
// Reads what-if conditions.
#include "sim/question/settings/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/text/enum_names.h"
#include "sim/base/text/words.h"
#include "sim/engine/collectives/domain_edges.h"

namespace orrery {
namespace {

constexpr std::int64_t many = INT64_C(1) << 40;
constexpr std::int64_t most_messages = INT64_C(1) << 20;  // of other traffic: 4.5 GB of flows

double share(const JsonValue& at, bool may_be_zero) {
  const double v = at.number();
  if (v < 0 || v > 1 || (v == 0 && !may_be_zero))
    at.fail(may_be_zero ? "a share from 0 to 1" : "a share above 0, at most 1");
  return v;
}

std::int64_t gpu_of(const JsonValue& at, const Cluster& cluster) {
  const std::int64_t gpu = at.integer(0, many);
  if (gpu >= cluster.gpus)
    at.fail(fmt::format("an accelerator of the {} in use, counted from 0", cluster.gpus));
  return gpu;
}

// Keys that say where a fault of each kind is, beside kind, remaining and plane.
struct KindKeys {
  const char* name;
  FaultKind kind;
  std::array<const char*, 3> keys;
};
constexpr std::array<KindKeys, 6> kinds = {{
    {"nic", FaultKind::nic, {"gpu", nullptr, nullptr}},
    {"leaf-spine", FaultKind::leaf_spine, {"leaf", "spine", nullptr}},
    {"spine-core", FaultKind::spine_core, {"pod", "spine", "core"}},
    {"leaf", FaultKind::leaf, {"leaf", nullptr, nullptr}},
    {"spine", FaultKind::spine, {"pod", "spine", nullptr}},
    {"plane", FaultKind::plane, {nullptr, nullptr, nullptr}},
}};

void check_keys(const JsonValue& at, const KindKeys& kind) {
  for (const auto& [key, value] : at.members()) {
    bool known = key == "kind" || key == "remaining" || key == "plane";
    for (const char* other : kind.keys) known = known || (other && key == other);
    if (!known) value.fail(fmt::format("no such key: a fault of kind \"{}\"", kind.name), key);
  }
}

NetworkFault read_fault(const JsonValue& at, const KindKeys& kind, const Cluster& cluster) {
  check_keys(at, kind);
  NetworkFault fault{.kind = kind.kind};
  const auto number = [&](const char* key, std::int64_t otherwise) {
    const auto v = at.find(key);
    return v ? v->integer(0, many) : otherwise;
  };
  if (kind.kind == FaultKind::nic) fault.accelerator = gpu_of(at.at("gpu"), cluster);
  for (const char* key : kind.keys)
    if (key && std::string_view(key) != "gpu" && std::string_view(key) != "pod") at.at(key);
  fault.leaf = number("leaf", 0);
  fault.spine = number("spine", 0);
  fault.pod = number("pod", 0);
  fault.core = number("core", 0);
  fault.plane = number("plane", kind.kind == FaultKind::nic ? -1 : 0);
  if (const auto v = at.find("remaining")) fault.remaining = share(*v, true);
  return fault;
}

void read_faults(const JsonValue& list, const Cluster& cluster, Conditions& conditions) {
  for (const JsonValue& at : list.items()) {
    std::vector<std::string> names = {"scale-up"};
    for (const KindKeys& k : kinds) names.emplace_back(k.name);
    const std::string name = at.at("kind").one_of(names);
    if (name == "scale-up") {
      at.expect_only({"kind", "gpu", "remaining"});
      conditions.scale_up_faults.push_back(
          {.gpu = gpu_of(at.at("gpu"), cluster), .remaining = share(at.at("remaining"), false)});
    } else {
      for (const KindKeys& k : kinds)
        if (name == k.name) conditions.faults.push_back(read_fault(at, k, cluster));
    }
  }
}

constexpr auto background_pattern_text =
    enum_names<BackgroundTraffic::Pattern>({"ring", "all-to-all"});

BackgroundTraffic read_background(const JsonValue& at, const Cluster& cluster) {
  at.expect_only({"pattern", "first_gpu", "gpus", "load"});
  BackgroundTraffic traffic;
  traffic.pattern = background_pattern_text.from(at.at("pattern"));
  const std::int64_t domain = cluster.fabric.scale_up.domain;
  traffic.first_gpu = at.at("first_gpu").integer(0, many);
  traffic.gpus = at.at("gpus").integer(1, many);
  if (traffic.first_gpu % domain != 0 || traffic.gpus % domain != 0 || traffic.gpus < 2 * domain)
    at.fail(fmt::format("whole scale-up domains of {} accelerators, two or more", domain));
  try {
    clos_shape(cluster.fabric, traffic.first_gpu + traffic.gpus);
  } catch (const Error&) {
    at.fail("accelerators that the wiring reaches",
            fmt::format("accelerators up to {}", traffic.first_gpu + traffic.gpus - 1));
  }
  traffic.load = share(at.at("load"), false);
  return traffic;
}

// Messages that it has under way at a time, each a flow of its own: every accelerator to the next
// domain, or to as many others as an all-to-all stands for.
std::int64_t messages_of(const BackgroundTraffic& traffic, const Cluster& cluster) {
  const bool ring = traffic.pattern == BackgroundTraffic::Pattern::ring;
  const std::int64_t others = traffic.gpus / cluster.fabric.scale_up.domain - 1;
  return traffic.gpus * (ring ? 1 : std::min(others, EdgeOptions{}.most_peers));
}

}  // namespace

NetworkMode read_network(const JsonValue& settings) {
  const auto v = settings.find("network");
  return v ? network_mode_text.from(*v) : NetworkMode::ideal;
}

Conditions read_conditions(const JsonValue& settings, const Cluster& cluster) {
  Conditions conditions;
  const bool flow = read_network(settings) == NetworkMode::flow;
  for (const char* key : {"faults", "background"})
    if (const auto v = settings.find(key); v && !flow)
      v->fail("network flow beside it: the ideal network has no links that could fail or be shared",
              fmt::format("{} on the ideal network", key));
  if (const auto v = settings.find("faults")) read_faults(*v, cluster, conditions);
  if (const auto v = settings.find("background")) {
    if (cluster.fabric.scale_out.kind == ScaleOutKind::none)
      v->fail("a fabric with a scale-out network");
    std::int64_t messages = 0;
    for (const JsonValue& at : v->items()) {
      conditions.background.push_back(read_background(at, cluster));
      messages += messages_of(conditions.background.back(), cluster);
      if (messages > most_messages)
        at.fail(
            fmt::format("other traffic of at most {} messages at a time, as many as {} "
                        "accelerators send in an all-to-all",
                        grouped(most_messages), grouped(most_messages / EdgeOptions{}.most_peers)),
            fmt::format("{} messages", grouped(messages)));
    }
  }
  if (const auto v = settings.find("slow_gpus"))
    for (const JsonValue& at : v->items()) {
      at.expect_only({"gpu", "speed"});
      conditions.slow_gpus.push_back(
          {.gpu = gpu_of(at.at("gpu"), cluster), .speed = share(at.at("speed"), false)});
    }
  return conditions;
}

}  // namespace orrery
