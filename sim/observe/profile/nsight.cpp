// SPDX-License-Identifier: Apache-2.0
// Reads an SQLite export of Nsight Systems by its documented schema; no real file was there to
// read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/errors/check.h"
#include "sim/observe/input/byte_stream.h"
#include "sim/observe/profile/database.h"
#include "sim/observe/profile/summary.h"

namespace orrery::observe {
namespace {

// The low 24 bits of a thread's number are the thread's own; a process has zeros there.
constexpr std::int64_t process_mask = ~std::int64_t{0xFFFFFF};

class NsightReader {
 public:
  NsightReader(const std::filesystem::path& file, Profile& profile)
      : database_(file), profile_(profile) {
    if (!database_.has("StringIds") || !database_.has("CUPTI_ACTIVITY_KIND_KERNEL"))
      throw Error({.file = profile.file,
                   .found = "a database without the tables StringIds and "
                            "CUPTI_ACTIVITY_KIND_KERNEL",
                   .expected = "an SQLite export of Nsight Systems with kernels "
                               "(nsys profile --trace=cuda, nsys export --type=sqlite)"});
  }
  void read();

 private:
  void choose_process();
  bool is_ours(const std::optional<std::int64_t>& process) const;
  static std::optional<Interval> interval(const DatabaseRow& row);
  std::uint32_t text(const std::optional<std::int64_t>& id);
  static std::uint32_t small(const std::optional<std::int64_t>& number);
  KernelClass class_of(std::uint32_t name);
  void read_kernels();
  void read_copies();
  std::uint16_t thread(const std::optional<std::int64_t>& id);
  std::uint32_t call_name(std::uint32_t name);
  void read_calls();
  void read_ranges();
  void read_device();

  Database database_;
  Profile& profile_;
  Timeline timeline_;
  std::map<std::int64_t, std::uint32_t> texts_;
  std::map<std::uint32_t, KernelClass> classes_;
  std::map<std::int64_t, std::uint16_t> threads_;
  std::int64_t process_ = 0;
};

void NsightReader::read() {
  database_.each("StringIds", {"id", "value"}, "", [&](const DatabaseRow& row) {
    if (const auto id = row.number(0)) texts_[*id] = timeline_.names.of(row.text(1).value_or(""));
  });
  choose_process();
  read_kernels();
  read_copies();
  read_calls();
  read_ranges();
  summarise(timeline_, profile_.file, profile_);
  read_device();
}

// Of several processes the one whose kernels took longest: each numbers its devices and its
// calls on its own.
void NsightReader::choose_process() {
  std::map<std::int64_t, double> work;
  database_.each("CUPTI_ACTIVITY_KIND_KERNEL", {"globalPid", "start", "end"}, "",
                 [&](const DatabaseRow& row) {
                   const auto begin = row.number(1), end = row.number(2);
                   if (begin && end && *end > *begin)
                     work[row.number(0).value_or(0) & process_mask] +=
                         static_cast<double>(*end) - static_cast<double>(*begin);
                 });
  if (work.empty()) return;
  const auto most = std::max_element(
      work.begin(), work.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  process_ = most->first;
  if (work.size() > 1)
    profile_.notes.push_back(fmt::format(
        "Kernels of {} processes are in the file: the one that worked most is read.", work.size()));
}

bool NsightReader::is_ours(const std::optional<std::int64_t>& process) const {
  return !process || (*process & process_mask) == process_;
}

// The interval of two columns, where it is one.
std::optional<Interval> NsightReader::interval(const DatabaseRow& row) {
  constexpr std::int64_t latest = std::int64_t{1} << 61U;
  const auto begin = row.number(0), end = row.number(1);
  if (!begin || !end || *begin < 0 || *end < *begin || *end > latest) return std::nullopt;
  return Interval{*begin, *end};
}

std::uint32_t NsightReader::text(const std::optional<std::int64_t>& id) {
  const auto found = id ? texts_.find(*id) : texts_.end();
  return found == texts_.end() ? timeline_.names.of("unknown") : found->second;
}

std::uint32_t NsightReader::small(const std::optional<std::int64_t>& number) {
  return number && *number > 0 && *number < std::int64_t{1} << 32U
             ? static_cast<std::uint32_t>(*number)
             : 0;
}

KernelClass NsightReader::class_of(std::uint32_t name) {
  const auto [at, is_new] = classes_.try_emplace(name);
  if (is_new) at->second = kernel_class(timeline_.names[name]);
  return at->second;
}

void NsightReader::read_kernels() {
  const std::vector<std::string> columns = {"start",
                                            "end",
                                            "globalPid",
                                            "deviceId",
                                            "streamId",
                                            "correlationId",
                                            "demangledName",
                                            "shortName",
                                            "gridX",
                                            "gridY",
                                            "gridZ",
                                            "blockX",
                                            "blockY",
                                            "blockZ",
                                            "staticSharedMemory",
                                            "dynamicSharedMemory",
                                            "registersPerThread"};
  database_.each("CUPTI_ACTIVITY_KIND_KERNEL", columns, "", [&](const DatabaseRow& row) {
    ++timeline_.events;
    const auto time = interval(row);
    if (!time || !is_ours(row.number(2))) return;
    DeviceEvent event{.begin = time->begin, .end = time->end};
    event.device = static_cast<std::uint8_t>(row.number(3).value_or(0));
    event.stream = static_cast<std::uint16_t>(row.number(4).value_or(0));
    event.correlation = small(row.number(5));
    event.name = text(row.number(6) ? row.number(6) : row.number(7));
    event.what = class_of(event.name);
    LaunchShape shape;
    for (int i = 0; i < 3; ++i) {
      shape.grid[static_cast<std::size_t>(i)] = row.number(8 + i).value_or(0);
      shape.block[static_cast<std::size_t>(i)] = row.number(11 + i).value_or(0);
    }
    const auto fixed = row.number(14), asked = row.number(15);
    constexpr std::int64_t most = std::int64_t{1} << 40U;
    if (fixed && asked && *fixed >= 0 && *asked >= 0 && *fixed < most && *asked < most)
      shape.shared_bytes = *fixed + *asked;
    shape.registers = row.number(16);
    if (event.what != KernelClass::communication && row.number(8))
      event.detail = timeline_.shape_number(shape);
    timeline_.add(event);
  });
}

void NsightReader::read_copies() {
  // CUpti_ActivityMemcpyKind.
  const auto of_kind = [](std::int64_t kind) -> std::pair<KernelClass, std::string_view> {
    switch (kind) {
      case 1:
        return {KernelClass::copy_to_device, "Memcpy HtoD"};
      case 2:
        return {KernelClass::copy_to_host, "Memcpy DtoH"};
      case 10:
        return {KernelClass::copy_peer, "Memcpy PtoP"};
      default:
        return {KernelClass::copy_on_device, "Memcpy DtoD"};
    }
  };
  const auto add = [&](const DatabaseRow& row, KernelClass what, std::string_view name) {
    ++timeline_.events;
    const auto time = interval(row);
    if (!time || !is_ours(row.number(2))) return;
    DeviceEvent event{.begin = time->begin, .end = time->end, .what = what};
    event.device = static_cast<std::uint8_t>(row.number(3).value_or(0));
    event.stream = static_cast<std::uint16_t>(row.number(4).value_or(0));
    event.correlation = small(row.number(5));
    event.name = timeline_.names.of(name);
    timeline_.add(event);
  };
  const std::vector<std::string> columns = {"start",    "end",           "globalPid", "deviceId",
                                            "streamId", "correlationId", "copyKind"};
  database_.each("CUPTI_ACTIVITY_KIND_MEMCPY", columns, "", [&](const DatabaseRow& row) {
    const auto [what, name] = of_kind(row.number(6).value_or(0));
    add(row, what, name);
  });
  database_.each("CUPTI_ACTIVITY_KIND_MEMSET", columns, "",
                 [&](const DatabaseRow& row) { add(row, KernelClass::set, "Memset (Device)"); });
}

std::uint16_t NsightReader::thread(const std::optional<std::int64_t>& id) {
  const auto next = static_cast<std::uint16_t>(std::min<std::size_t>(threads_.size(), 65535));
  return threads_.try_emplace(id.value_or(0), next).first->second;
}

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel".
std::uint32_t NsightReader::call_name(std::uint32_t name) {
  const std::string& full = timeline_.names[name];
  const std::size_t version = full.rfind("_v");
  const bool versioned = version != std::string::npos && version + 2 < full.size() &&
                         full.find_first_not_of("0123456789", version + 2) == std::string::npos;
  return versioned ? timeline_.names.of(std::string(full.substr(0, version))) : name;
}

void NsightReader::read_calls() {
  database_.each("CUPTI_ACTIVITY_KIND_RUNTIME",
                 {"start", "end", "globalTid", "correlationId", "nameId"}, "",
                 [&](const DatabaseRow& row) {
                   ++timeline_.events;
                   const auto time = interval(row);
                   if (!time || !is_ours(row.number(2))) return;
                   HostEvent event{.begin = time->begin, .end = time->end};
                   event.name = call_name(text(row.number(4)));
                   event.thread = thread(row.number(2));
                   event.work = work_of_call(timeline_.names[event.name]);
                   HostTotal& total = timeline_.runtime[event.name];
                   ++total.count;
                   total.total += static_cast<double>(event.end - event.begin);
                   if (const std::uint32_t correlation = small(row.number(3));
                       correlation != 0 && event.work == HostWork::launch)
                     timeline_.add(Launch{correlation, event.thread, event.begin});
                   timeline_.add(event);
                 });
}

void NsightReader::read_ranges() {
  database_.each("NVTX_EVENTS", {"start", "end", "globalTid", "text", "textId"}, "",
                 [&](const DatabaseRow& row) {
                   ++timeline_.events;
                   const auto time = interval(row);
                   if (!time || !is_ours(row.number(2))) return;
                   const auto own = row.text(3);
                   const std::uint32_t name = own ? timeline_.names.of(*own) : text(row.number(4));
                   timeline_.add(Annotation{time->begin, time->end, name});
                   if (work_of_operation(timeline_.names[name]) == HostWork::data_loader)
                     timeline_.add(HostEvent{.begin = time->begin,
                                             .end = time->end,
                                             .name = name,
                                             .thread = thread(row.number(2)),
                                             .work = HostWork::data_loader});
                 });
}

void NsightReader::read_device() {
  database_.each("TARGET_INFO_GPU",
                 {"id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"}, "",
                 [&](const DatabaseRow& row) {
                   if (row.number(0) != profile_.device.index) return;
                   profile_.device.name = row.text(1);
                   if (const auto held = row.number(2); held && *held > 0)
                     profile_.device.memory = bytes(static_cast<double>(*held));
                   const auto small_int = [&](int column) -> std::optional<int> {
                     const auto value = row.number(column);
                     if (!value || *value < 0 || *value > 1 << 20) return std::nullopt;
                     return static_cast<int>(*value);
                   };
                   profile_.device.multiprocessors = small_int(3);
                   profile_.device.compute_major = small_int(4);
                   profile_.device.compute_minor = small_int(5);
                 });
  database_.each("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, "", [&](const DatabaseRow& row) {
    if (row.text(0) == "Hostname") profile_.rank.host = row.text(1);
  });
  profile_.notes.push_back(
      "Exports of Nsight Systems are read by their documented schema; no real file was there to "
      "test with.");
}

}  // namespace

Profile read_nsight(const std::filesystem::path& file) {
  Profile profile{.file = file.string(), .source = ProfileSource::nsight};
  if (ByteStream(file).is_packed())
    throw Error({.file = profile.file,
                 .found = "a packed database",
                 .expected = "an SQLite export of Nsight Systems that is not packed"});
  NsightReader(file, profile).read();
  return profile;
}

bool is_database(std::string_view first_bytes) {
  return first_bytes.starts_with("SQLite format 3");
}

}  // namespace orrery::observe
