// SPDX-License-Identifier: Apache-2.0
// Reads events with simdjson, a batch of them at once.
#include "sim/observe/profile/event_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <cmath>

#include "sim/base/errors/check.h"

namespace orrery::observe {
namespace {

using simdjson::dom::element;

// Categories, as releases since 1.8 spell them.
enum class Category : std::uint8_t {
  none,
  kernel,
  copy,
  set,
  call,
  operation,
  annotation,
  python,
  overhead,
  memory,
};

Category category_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Category>, 16> names = {
      {{"cpu_op", Category::operation},
       {"kernel", Category::kernel},
       {"cuda_runtime", Category::call},
       {"python_function", Category::python},
       {"gpu_memcpy", Category::copy},
       {"gpu_memset", Category::set},
       {"user_annotation", Category::annotation},
       {"cuda_driver", Category::call},
       {"overhead", Category::overhead},
       {"cpu_instant_event", Category::memory},
       {"Kernel", Category::kernel},
       {"Operator", Category::operation},
       {"Runtime", Category::call},
       {"Memcpy", Category::copy},
       {"Memset", Category::set},
       {"hip_runtime", Category::call}}};
  for (const auto& [name, category] : names)
    if (text == name) return category;
  return Category::none;
}

std::string_view text_of(const element& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

double number_of(const element& value) {
  double number = 0;
  return value.get(number) == simdjson::SUCCESS ? number : std::nan("");
}

// A whole number within +-9e15, or `other`.
std::int64_t whole_of(const element& value, std::int64_t other = -1) {
  const double number = number_of(value);
  if (!(std::abs(number) < 9e15)) return other;
  return static_cast<std::int64_t>(number);
}

std::array<std::int64_t, 3> triple_of(const element& value) {
  std::array<std::int64_t, 3> triple{};
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return triple;
  std::size_t i = 0;
  for (const element item : list)
    if (i < 3) triple[i++] = whole_of(item, 0);
  return triple;
}

// What an event says outside of its arguments.
struct Plain {
  std::string_view phase, category, name;
  double begin_us = std::nan(""), length_us = std::nan("");
  std::int64_t pid = -1, tid = -1;
  element arguments;
  bool has_arguments = false;
};

Plain plain_of(const simdjson::dom::object& event) {
  Plain plain;
  for (const auto [key, value] : event) {
    if (key == "ph")
      plain.phase = text_of(value);
    else if (key == "cat")
      plain.category = text_of(value);
    else if (key == "name")
      plain.name = text_of(value);
    else if (key == "ts")
      plain.begin_us = number_of(value);
    else if (key == "dur")
      plain.length_us = number_of(value);
    else if (key == "pid")
      plain.pid = whole_of(value);
    else if (key == "tid")
      plain.tid = whole_of(value);
    else if (key == "args") {
      plain.arguments = value;
      plain.has_arguments = value.is_object();
    }
  }
  return plain;
}

template <class Take>
void each_argument(const Plain& plain, Take&& take) {
  simdjson::dom::object arguments;
  if (!plain.has_arguments || plain.arguments.get(arguments) != simdjson::SUCCESS) return;
  for (const auto [key, value] : arguments) take(key, value);
}

std::uint32_t small(std::int64_t number) {
  return number > 0 && number < std::int64_t{1} << 32U ? static_cast<std::uint32_t>(number) : 0;
}

}  // namespace

struct EventReader::Parser {
  simdjson::dom::parser json;
  std::string one;  // a single event, when a batch is broken
  Timeline& timeline;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> threads;
  std::pair<std::int64_t, std::int64_t> last_thread{-2, -2};
  std::uint16_t last_number = 0;
  // By the name's number: what a host event of that name is, so that texts are looked at once.
  std::vector<std::uint8_t> call_work, operation_work, product, classes;

  explicit Parser(Timeline& to) : timeline(to) {}

  std::uint16_t thread(const Plain& plain) {
    const std::pair key(plain.pid, plain.tid);
    if (key == last_thread) return last_number;
    const auto next = static_cast<std::uint16_t>(std::min<std::size_t>(threads.size(), 65535));
    last_number = threads.try_emplace(key, next).first->second;
    last_thread = key;
    return last_number;
  }

  // The value kept for a name, made on its first use.
  template <class Make>
  static std::uint8_t known(std::vector<std::uint8_t>& list, std::uint32_t name, Make&& make) {
    constexpr std::uint8_t open = 255;
    if (name >= list.size()) list.resize(name + 1024, open);
    if (list[name] == open) list[name] = static_cast<std::uint8_t>(make());
    return list[name];
  }

  void take_device(const Plain& plain, Category category, Nanoseconds begin, Nanoseconds end);
  void take_host(const Plain& plain, Category category, Nanoseconds begin, Nanoseconds end);
  void take_product(const Plain& plain, std::uint32_t name);
  void take_memory(const Plain& plain);
  void take(const element& event);
};

void EventReader::Parser::take_device(const Plain& plain, Category category, Nanoseconds begin,
                                      Nanoseconds end) {
  DeviceEvent event{.begin = begin, .end = end, .name = timeline.names.of(plain.name)};
  event.what = category == Category::set ? KernelClass::set
                                         : static_cast<KernelClass>(known(classes, event.name, [&] {
                                             return kernel_class(plain.name);
                                           }));
  LaunchShape shape;
  CollectiveCall call;
  bool has_shape = false;
  std::int64_t stream = plain.tid;
  each_argument(plain, [&](std::string_view key, const element& value) {
    if (key == "stream") {
      stream = whole_of(value);
    } else if (key == "correlation") {
      event.correlation = small(whole_of(value));
    } else if (key == "External id" || key == "external id") {
      event.operation = small(whole_of(value));
    } else if (key == "device") {
      event.device = static_cast<std::uint8_t>(whole_of(value, 0));
    } else if (key == "grid") {
      shape.grid = triple_of(value);
      has_shape = true;
    } else if (key == "block") {
      shape.block = triple_of(value);
    } else if (key == "shared memory") {
      if (const auto held = whole_of(value); held >= 0) shape.shared_bytes = held;
    } else if (key == "registers per thread") {
      if (const auto held = whole_of(value); held >= 0) shape.registers = held;
    } else if (key == "est. achieved occupancy %") {
      if (const double share = number_of(value); share >= 0) shape.occupancy = share / 100;
    } else if (key == "Collective name") {
      call.name = text_of(value);
    } else if (key == "In msg nelems") {
      call.sent = whole_of(value);
    } else if (key == "Out msg nelems") {
      call.received = whole_of(value);
    } else if (key == "Group size") {
      call.ranks = static_cast<int>(std::min<std::int64_t>(whole_of(value), 1 << 30));
    } else if (key == "dtype") {
      call.type = text_of(value);
    } else if (key == "Process Group Name") {
      call.group = text_of(value);
    } else if (key == "Process Group Description") {
      call.group_name = text_of(value);
    }
  });
  event.stream = static_cast<std::uint16_t>(stream);
  if (event.what == KernelClass::communication) {
    if (!call.name.empty()) event.detail = timeline.collective_number(call);
  } else if (has_shape) {
    event.detail = timeline.shape_number(shape);
  }
  timeline.add(event);
}

void EventReader::Parser::take_host(const Plain& plain, Category category, Nanoseconds begin,
                                    Nanoseconds end) {
  HostEvent event{.begin = begin, .end = end, .name = timeline.names.of(plain.name)};
  event.thread = thread(plain);
  const auto count = [&](std::map<std::uint32_t, HostTotal>& to) {
    HostTotal& total = to[event.name];
    ++total.count;
    total.total += static_cast<double>(end - begin);
  };
  if (category == Category::call) {
    event.work = static_cast<HostWork>(
        known(call_work, event.name, [&] { return work_of_call(plain.name); }));
    count(timeline.runtime);
    std::int64_t correlation = -1;
    if (event.work == HostWork::launch)
      each_argument(plain, [&](std::string_view key, const element& value) {
        if (key == "correlation") correlation = whole_of(value);
      });
    if (small(correlation) != 0)
      timeline.add(
          Launch{.correlation = small(correlation), .thread = event.thread, .begin = begin});
  } else if (category == Category::operation) {
    event.work = static_cast<HostWork>(
        known(operation_work, event.name, [&] { return work_of_operation(plain.name); }));
    count(timeline.operations);
    if (known(product, event.name, [&] { return is_product_operation(plain.name); }) != 0)
      take_product(plain, event.name);
  } else if (category == Category::annotation) {
    event.work = work_of_operation(plain.name) == HostWork::data_loader ? HostWork::data_loader
                                                                        : HostWork::unknown;
    timeline.add(Annotation{.begin = begin, .end = end, .name = event.name});
  } else if (category == Category::python) {
    event.work = HostWork::python;
  } else {
    event.work = HostWork::profiler;
  }
  if (event.work != HostWork::unknown) timeline.add(event);
}

// Shapes and type of a product's operands: the second is a factor in each of the operations.
void EventReader::Parser::take_product(const Plain& plain, std::uint32_t name) {
  std::string type, shapes;
  std::uint32_t number = 0;
  each_argument(plain, [&](std::string_view key, const element& value) {
    if (key == "External id" || key == "external id") number = small(whole_of(value));
    if (key == "Input Dims") shapes = simdjson::minify(value);
    simdjson::dom::array types;
    if (key == "Input type" && value.get(types) == simdjson::SUCCESS) {
      std::size_t place = 0;
      for (const element operand : types)
        if (place++ == 1) type = text_of(operand);
    }
  });
  if (type.empty()) return;
  const std::uint32_t type_name = timeline.names.of(type);
  if (number != 0 && timeline.product_types.size() < Timeline::most_device)
    timeline.product_types.try_emplace(number, type_name);
  constexpr std::size_t most_shapes = 20'000, longest = 300;
  if (timeline.product_shapes.size() < most_shapes && shapes.size() < longest)
    ++timeline.product_shapes[{name, type_name, timeline.names.of(shapes)}];
}

// "[memory]": what the caching allocator of a device (type 1) holds.
void EventReader::Parser::take_memory(const Plain& plain) {
  std::int64_t allocated = -1, reserved = -1, kind = -1;
  each_argument(plain, [&](std::string_view key, const element& value) {
    if (key == "Total Allocated") allocated = whole_of(value);
    if (key == "Total Reserved") reserved = whole_of(value);
    if (key == "Device Type") kind = whole_of(value);
  });
  if (kind != 1) return;
  timeline.most_allocated = std::max(timeline.most_allocated, allocated);
  timeline.most_reserved = std::max(timeline.most_reserved, reserved);
}

void EventReader::Parser::take(const element& event) {
  simdjson::dom::object object;
  if (event.get(object) != simdjson::SUCCESS) return;
  const Plain plain = plain_of(object);
  const Category category = category_of(plain.category);
  if (category == Category::none) return;
  if (category == Category::memory) {
    if (plain.name == "[memory]") take_memory(plain);
    return;
  }
  if (plain.phase != "X") return;
  // Clocks begin at a boot or in 1970; differences of such times fit into 64 bits of nanoseconds.
  constexpr double latest_us = 3e15, longest_us = 1e12;
  if (!(std::abs(plain.begin_us) < latest_us) || !(plain.length_us >= 0) ||
      plain.length_us >= longest_us)
    return;
  const Nanoseconds begin = std::llround(plain.begin_us * 1e3);
  const Nanoseconds end = begin + std::llround(plain.length_us * 1e3);
  if (category == Category::kernel || category == Category::copy || category == Category::set)
    take_device(plain, category, begin, end);
  else
    take_host(plain, category, begin, end);
}

EventReader::EventReader(std::string file, Timeline& timeline)
    : parser_(std::make_unique<Parser>(timeline)), file_(std::move(file)) {}
EventReader::~EventReader() = default;

void EventReader::take(const EventBatch& batch) {
  Parser& parser = *parser_;
  simdjson::dom::array events;
  taken_ += batch.begins.size();
  parser.timeline.events += batch.begins.size();
  // The library pads what it copies; it reads a few bytes beyond a text.
  if (parser.json.parse(batch.text).get(events) == simdjson::SUCCESS) {
    for (const element event : events) parser.take(event);
    return;
  }
  for (std::size_t i = 0; i < batch.begins.size(); ++i) {
    const std::size_t begin = batch.begins[i];
    const std::size_t end =
        i + 1 < batch.begins.size() ? batch.begins[i + 1] - 1 : batch.text.size() - 1;
    parser.one.assign(batch.text, begin, end - begin);
    element event;
    if (const auto problem = parser.json.parse(parser.one).get(event);
        problem == simdjson::SUCCESS) {
      parser.take(event);
    } else if (++broken_; broken_ * 100 > std::max<std::uint64_t>(taken_, 100)) {
      throw Error({.file = file_,
                   .path = fmt::format("byte {}", batch.offsets[i]),
                   .found = in_quotes(parser.one) + ": " + simdjson::error_message(problem),
                   .expected = "an event in JSON"});
    }
  }
}

void read_head(const std::map<std::string, std::string>& head, Profile& profile) {
  simdjson::dom::parser json;
  const auto value_of = [&](const std::string& key, element& value) {
    const auto found = head.find(key);
    return found != head.end() && json.parse(found->second).get(value) == simdjson::SUCCESS;
  };
  element value;
  const auto flag = [&](const std::string& key) {
    return value_of(key, value) && number_of(value) > 0;
  };
  profile.recorded.shapes = flag("record_shapes");
  profile.recorded.stacks = flag("with_stack");
  profile.recorded.memory = flag("profile_memory");
  const auto small_int = [](const element& one) -> std::optional<int> {
    const std::int64_t number = whole_of(one);
    if (number < 0 || number > 1 << 30) return std::nullopt;
    return static_cast<int>(number);
  };
  simdjson::dom::object about;
  if (value_of("distributedInfo", value) && value.get(about) == simdjson::SUCCESS)
    for (const auto [key, one] : about) {
      if (key == "rank") profile.rank.rank = small_int(one);
      if (key == "world_size") profile.rank.world_size = small_int(one);
      if (key == "backend" && one.is_string()) profile.rank.backend = std::string(text_of(one));
      if (key == "nccl_version" && one.is_string())
        profile.rank.nccl_version = std::string(text_of(one));
    }
  simdjson::dom::array devices;
  if (value_of("deviceProperties", value) && value.get(devices) == simdjson::SUCCESS)
    for (const element device : devices) {
      simdjson::dom::object object;
      element id;
      if (device.get(object) != simdjson::SUCCESS || object["id"].get(id) != simdjson::SUCCESS ||
          whole_of(id) != profile.device.index)
        continue;
      for (const auto [key, one] : object) {
        if (key == "name" && one.is_string()) profile.device.name = std::string(text_of(one));
        if (key == "numSms") profile.device.multiprocessors = small_int(one);
        if (key == "computeMajor") profile.device.compute_major = small_int(one);
        if (key == "computeMinor") profile.device.compute_minor = small_int(one);
        if (key == "totalGlobalMem")
          if (const double memory = number_of(one); memory > 0)
            profile.device.memory = bytes(memory);
      }
    }
}

}  // namespace orrery::observe
