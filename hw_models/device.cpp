// SPDX-License-Identifier: Apache-2.0
// Reads an accelerator's catalogue file, and tells when its figures suffice to predict.
#include "hw_models/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "sim/base/errors/check.h"
#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

constexpr auto architecture_text = enum_names<Architecture>(
    {"volta", "ampere", "ada", "hopper", "blackwell", "blackwell-ultra", "rubin", "rubin-ultra",
     "feynman", "cdna2", "cdna3", "cdna4", "cdna5", "tpu", "trainium", "gaudi", "other"});

Architecture read_architecture(const JsonValue& at) { return architecture_text.from(at); }

std::vector<std::string> read_names(const JsonValue& at) {
  std::vector<std::string> names;
  for (const JsonValue& item : at.items()) names.push_back(item.text());
  return names;
}

ScheduledAs read_scheduled_as(const JsonValue& at) {
  at.expect_only({"slurm", "kubernetes", "evidence", "source"});
  const auto slurm = at.find("slurm");
  return {.slurm = slurm ? slurm->text() : "",
          .kubernetes = at.at("kubernetes").text(),
          .source = at.at("source").text()};
}

DeviceSoftware read_software(const JsonValue& at) {
  at.expect_only({"platform", "precisions", "dispatchers", "one_queue", "training_stack",
                  "inference_stack", "scheduled_as", "evidence", "source", "reason"});
  std::optional<ScheduledAs> scheduled_as;
  if (const auto names = at.find("scheduled_as")) scheduled_as = read_scheduled_as(*names);
  return {.platform = at.at("platform").text(),
          .precisions = read_names(at.at("precisions")),
          .dispatchers = read_names(at.at("dispatchers")),
          .one_queue = at.at("one_queue").boolean(),
          .training_stack = at.at("training_stack").text(),
          .inference_stack = at.at("inference_stack").text(),
          .scheduled_as = std::move(scheduled_as),
          .source = at.at("source").text(),
          .reason = at.at("reason").text()};
}

void read_compute(const JsonValue& at, Device& device) {
  at.expect_only({"sm_count", "clock", "tensor", "vector_fp32", "special_function"});
  device.sm_count = read_sourced<double>(at.at("sm_count"));
  device.clock = read_sourced<Hertz>(at.at("clock"));
  const JsonValue tensor = at.at("tensor");
  tensor.expect_only({"fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8"});
  for (int f = 0; f < format_count; ++f)
    device.tensor_rate[static_cast<std::size_t>(f)] =
        read_sourced<FlopPerSecond>(tensor.at(to_text(static_cast<Format>(f))));
  device.vector_rate = read_sourced<FlopPerSecond>(at.at("vector_fp32"));
  device.special_function_per_second = read_sourced<double>(at.at("special_function"));
}

void read_memories(const JsonValue& file, Device& device) {
  const JsonValue cache = file.at("cache");
  cache.expect_only({"l2_capacity", "l2_bandwidth"});
  device.l2_capacity = read_sourced<Bytes>(cache.at("l2_capacity"));
  device.l2_bandwidth = read_sourced<BytesPerSecond>(cache.at("l2_bandwidth"));
  const JsonValue memory = file.at("memory");
  memory.expect_only({"type", "capacity", "usable", "bandwidth"});
  device.memory_type = memory.at("type").text();
  device.memory_capacity = read_sourced<Bytes>(memory.at("capacity"));
  device.memory_usable = read_sourced<Bytes>(memory.at("usable"));
  device.memory_bandwidth = read_sourced<BytesPerSecond>(memory.at("bandwidth"));
  // Vendors round what they sell, by a part in a thousand; more is a mistaken unit.
  if (device.memory_usable.known() && device.memory_capacity.known() &&
      device.memory_usable.get() > device.memory_capacity.get() * 1.01)
    memory.at("usable").fail(
        fmt::format("at most the capacity sold, {}", to_text(device.memory_capacity.get())));
}

void read_links(const JsonValue& file, Device& device) {
  const JsonValue scale_up = file.at("scale_up");
  scale_up.expect_only({"link", "bandwidth"});
  device.scale_up_link = scale_up.at("link").text();
  device.scale_up_bandwidth = read_sourced<BytesPerSecond>(scale_up.at("bandwidth"));
  const JsonValue host_link = file.at("host_link");
  host_link.expect_only({"pcie", "c2c"});
  device.pcie_bandwidth = read_sourced<BytesPerSecond>(host_link.at("pcie"));
  device.c2c_bandwidth = read_sourced<BytesPerSecond>(host_link.at("c2c"));
}

// The slowest of a billion boards is six of these below the mean: beyond a tenth it would have half
// the speed or less, which no healthy board has.
Sourced<double> read_board_spread(const JsonValue& at) {
  constexpr double most = 0.1;
  Sourced<double> spread = read_sourced<double>(at);
  for (const std::optional<double>& value : {spread.value, spread.low, spread.high})
    if (value && !(*value >= 0 && *value <= most))
      at.fail(fmt::format("a standard deviation of speed from 0 to {}", most),
              fmt::format("{}", *value));
  return spread;
}

void read_operation(const JsonValue& file, Device& device) {
  const JsonValue power = file.at("power");
  power.expect_only({"limit", "idle"});
  device.power_limit = read_sourced<Watts>(power.at("limit"));
  device.idle_power = read_sourced<Watts>(power.at("idle"));
  if (device.power_limit.known() && device.idle_power.known() &&
      device.idle_power.get() >= device.power_limit.get())
    power.at("idle").fail(
        fmt::format("less than the limit, {}", to_text(device.power_limit.get())));
  const JsonValue reliability = file.at("reliability");
  reliability.expect_only({"failure_rate", "board_spread"});
  device.failure_rate = read_sourced<Hertz>(reliability.at("failure_rate"));
  if (const auto spread = reliability.find("board_spread"))
    device.board_spread = read_board_spread(*spread);
  const JsonValue price = file.at("price");
  price.expect_only({"purchase", "rental", "includes"});
  device.price = read_sourced<Dollars>(price.at("purchase"));
  device.rental = read_sourced<DollarsPerSecond>(price.at("rental"));
  device.price_includes = read_parts_included(price, "includes");
}

void read_carbon(const JsonValue& file, Device& device) {
  device.embodied_carbon.reason = "not published";
  const auto carbon = file.find("carbon");
  if (!carbon) return;
  carbon->expect_only({"embodied"});
  device.embodied_carbon = read_sourced<Carbon>(carbon->at("embodied"));
  if (device.embodied_carbon.known() && !(device.embodied_carbon.get() > Carbon(0)))
    carbon->at("embodied").fail("a mass above 0");
}

void expect_positive(const JsonValue& file, const Device& device) {
  visit_device_values(device, [&](const std::string& path, const auto& sourced) {
    const auto positive = [](const auto& v) { return !v || in_si(*v) > 0; };
    if (positive(sourced.value) && positive(sourced.low)) return;
    throw Error({.file = file.file(),
                 .path = path,
                 .found = "a value that is not positive",
                 .expected = "a positive value, or null with a reason"});
  });
}

template <class T>
T value_or_zero(const Sourced<T>& sourced) {
  return sourced.value.value_or(T{});
}

[[noreturn]] void refuse(const Device& device, const std::string& path, const std::string& reason,
                         const std::string& needed) {
  throw Error({.file = fmt::format("accelerator \"{}\"", device.name),
               .path = path,
               .found = reason.empty() ? "no value" : fmt::format("no value ({})", reason),
               .expected = fmt::format("{}; a file with \"based_on\": \"{}\" can supply it", needed,
                                       device.name)});
}

}  // namespace

Device::Device() = default;
Device::Device(const Device&) = default;
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(const Device&) = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::~Device() = default;

std::string_view to_text(Architecture a) { return architecture_text[a]; }

bool has_tile_model(Architecture a) {
  switch (a) {
    case Architecture::volta:
    case Architecture::ampere:
    case Architecture::ada:
    case Architecture::hopper:
    case Architecture::blackwell:
    case Architecture::blackwell_ultra:
    case Architecture::rubin:
    case Architecture::rubin_ultra:
    case Architecture::feynman:
      return true;
    case Architecture::cdna2:
    case Architecture::cdna3:
    case Architecture::cdna4:
    case Architecture::cdna5:
    case Architecture::tpu:
    case Architecture::trainium:
    case Architecture::gaudi:
    case Architecture::other:
      return false;
  }
  return false;
}

PartsIncluded read_parts_included(const JsonValue& parent, std::string_view key) {
  PartsIncluded parts;
  const auto list = parent.find(key);
  if (!list) return parts;
  for (const JsonValue& item : list->items()) {
    const std::string name = item.one_of({"host", "scale_up", "nic"});
    (name == "host" ? parts.host : name == "nic" ? parts.nic : parts.scale_up) = true;
  }
  return parts;
}

Device read_device(const JsonValue& file) {
  file.expect_only({"name", "title", "driver_names", "vendor", "architecture", "status",
                    "available", "software", "compute", "cache", "memory", "scale_up", "host_link",
                    "power", "reliability", "price", "carbon"});
  Device device;
  // Measurements read them (driver_names_of); a list of anything else is refused here.
  if (const auto names = file.find("driver_names"))
    for (const JsonValue& name : names->items()) name.text();
  device.name = file.at("name").text();
  device.title = file.at("title").text();
  device.vendor = file.at("vendor").text();
  device.status = file.at("status").one_of({"shipped", "announced", "cancelled"});
  device.architecture = read_architecture(file.at("architecture"));
  if (const auto available = file.find("available"))
    device.available = read_sourced_date(*available);
  if (const auto software = file.find("software")) device.software = read_software(*software);
  read_compute(file.at("compute"), device);
  read_memories(file, device);
  read_links(file, device);
  read_operation(file, device);
  read_carbon(file, device);
  expect_positive(file, device);
  return device;
}

ResolvedDevice Device::resolved() const {
  const bool any_rate = std::any_of(tensor_rate.begin(), tensor_rate.end(),
                                    [](const auto& rate) { return rate.known(); });
  const auto bf16 = static_cast<std::size_t>(Format::bf16);
  if (!any_rate)
    refuse(*this, "compute.tensor", tensor_rate[bf16].reason, "FLOP/s of at least one format");
  if (!memory_capacity.known() && !memory_usable.known())
    refuse(*this, "memory.capacity", memory_capacity.reason, "a capacity such as \"80 GiB\"");
  if (!memory_bandwidth.known())
    refuse(*this, "memory.bandwidth", memory_bandwidth.reason, "a bandwidth such as \"4.8 TB/s\"");

  ResolvedDevice plain_device;
  plain_device.name = name;
  plain_device.architecture = architecture;
  plain_device.sm_count = value_or_zero(sm_count);
  plain_device.clock = value_or_zero(clock);
  for (std::size_t f = 0; f < tensor_rate.size(); ++f)
    plain_device.tensor_rate[f] = value_or_zero(tensor_rate[f]);
  plain_device.vector_rate = value_or_zero(vector_rate);
  plain_device.special_function_per_second = value_or_zero(special_function_per_second);
  plain_device.l2_capacity = value_or_zero(l2_capacity);
  plain_device.l2_bandwidth = value_or_zero(l2_bandwidth);
  plain_device.memory_capacity =
      memory_usable.known() ? memory_usable.get() : memory_capacity.get();
  plain_device.memory_bandwidth = memory_bandwidth.get();
  plain_device.scale_up_bandwidth = value_or_zero(scale_up_bandwidth);
  plain_device.host_bandwidth =
      value_or_zero(c2c_bandwidth.known() ? c2c_bandwidth : pcie_bandwidth);
  plain_device.power_limit = value_or_zero(power_limit);
  plain_device.idle_power = value_or_zero(idle_power);
  plain_device.board_spread = value_or_zero(board_spread);
  plain_device.failure_rate = value_or_zero(failure_rate);
  plain_device.price = value_or_zero(price);
  plain_device.rental = value_or_zero(rental);
  plain_device.tile_model = has_tile_model(architecture) && plain_device.sm_count > 0;
  return plain_device;
}

}  // namespace orrery
