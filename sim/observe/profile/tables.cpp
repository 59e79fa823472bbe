// SPDX-License-Identifier: Apache-2.0
// Makes tables of a timeline: kernels, collectives, formats of products, calls and operations.
#include <algorithm>
#include <map>
#include <optional>

#include "sim/observe/profile/summary.h"

namespace orrery::observe {
namespace {

// Times of events that belong together.
struct Times {
  std::vector<double> each;
  double total = 0;
  void add(Nanoseconds time) {
    each.push_back(static_cast<double>(time));
    total += each.back();
  }
  // Sorts once, so that each percentile looks at two values.
  void sort() { std::sort(each.begin(), each.end()); }
  Seconds at(double percent) const {
    const double place = percent / 100 * static_cast<double>(each.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, each.size() - 1);
    const double share = place - static_cast<double>(low);
    return nanoseconds(each[low] + share * (each[high] - each[low]));
  }
};

template <class Row, class Amount>
void sort_down(std::vector<Row>& rows, Amount&& amount) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return amount(a) > amount(b); });
}

// The format of a kernel of products: what its name says, else what its operation multiplies.
std::optional<Format> format_of(const Timeline& timeline, const DeviceEvent& event,
                                const std::optional<Format>& by_name) {
  if (by_name) return by_name;
  const auto operation = timeline.product_types.find(event.operation);
  if (event.operation == 0 || operation == timeline.product_types.end()) return std::nullopt;
  return format_of_type(timeline.names[operation->second]);
}

void fill_kernels(const Timeline& timeline, Profile& profile) {
  // Events by name, so that one name's times are in memory at a time.
  std::vector<std::uint32_t> order(timeline.device.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return timeline.device[a].name < timeline.device[b].name;
  });
  std::map<std::optional<Format>, ProductFormat> formats;
  for (std::size_t i = 0; i < order.size();) {
    const DeviceEvent& first = timeline.device[order[i]];
    KernelRow row{.name = timeline.names[first.name], .what = first.what};
    const bool multiplies = row.what == KernelClass::product || row.what == KernelClass::attention;
    const std::optional<Format> by_name =
        multiplies ? product_format(row.name) : std::optional<Format>();
    row.format = by_name;
    Times times;
    std::map<std::uint32_t, double> shapes;
    for (; i < order.size() && timeline.device[order[i]].name == first.name; ++i) {
      const DeviceEvent& event = timeline.device[order[i]];
      times.add(event.end - event.begin);
      if (row.what != KernelClass::communication) shapes[event.detail] += times.each.back();
      if (row.what != KernelClass::product) continue;
      const auto format = format_of(timeline, event, by_name);
      if (!row.format) row.format = format;
      ProductFormat& part = formats[format];
      part.format = format;
      part.time += in_seconds(event.end - event.begin);
      ++part.kernels;
    }
    times.sort();
    row.count = times.each.size();
    row.total = nanoseconds(times.total);
    row.median = times.at(50);
    row.p90 = times.at(90);
    row.least = times.at(0);
    row.most = times.at(100);
    const auto most =
        std::max_element(shapes.begin(), shapes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != shapes.end()) {
      row.shape = timeline.shapes[most->first];
      row.shapes = shapes.size();
    }
    profile.kernels.push_back(std::move(row));
  }
  sort_down(profile.kernels, [](const KernelRow& row) { return row.total; });
  for (const auto& [format, part] : formats) profile.product_formats.push_back(part);
  sort_down(profile.product_formats, [](const ProductFormat& part) { return part.time; });
}

std::optional<Bytes> size_of(std::int64_t elements, std::string_view type) {
  const int each = bytes_of_type(type);
  if (elements < 0 || each == 0) return std::nullopt;
  return bytes(static_cast<double>(elements) * each);
}

void fill_collectives(const Timeline& timeline, Profile& profile) {
  // By the call where it is known, else by the kernel.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Times> found;
  for (const DeviceEvent& event : timeline.device)
    if (event.what == KernelClass::communication)
      found[{event.detail, event.detail == 0 ? event.name : 0}].add(event.end - event.begin);
  for (auto& [key, times] : found) {
    std::vector<Seconds> each;
    for (const double time : times.each) each.push_back(nanoseconds(time));
    times.sort();
    const CollectiveCall& call = timeline.collectives[key.first];
    CollectiveRecord record{.name = key.first == 0 ? timeline.names[key.second] : call.name};
    record.kind = collective_kind(record.name);
    record.group = call.group;
    record.group_name = call.group_name;
    if (call.ranks > 0) record.ranks = call.ranks;
    record.type = call.type;
    record.sent = size_of(call.sent, call.type);
    record.received = size_of(call.received, call.type);
    record.count = times.each.size();
    record.total = nanoseconds(times.total);
    record.median = times.at(50);
    record.p90 = times.at(90);
    record.least = times.at(0);
    record.each = std::move(each);
    profile.collectives.push_back(std::move(record));
  }
  sort_down(profile.collectives, [](const CollectiveRecord& record) { return record.total; });
}

std::vector<HostRow> rows_of(const Timeline& timeline,
                             const std::map<std::uint32_t, HostTotal>& totals) {
  std::vector<HostRow> rows;
  for (const auto& [name, total] : totals)
    rows.push_back({timeline.names[name], total.count, nanoseconds(total.total)});
  sort_down(rows, [](const HostRow& row) { return row.total; });
  return rows;
}

}  // namespace

void fill_tables(const Timeline& timeline, Profile& profile) {
  fill_kernels(timeline, profile);
  fill_collectives(timeline, profile);
  profile.runtime_calls = rows_of(timeline, timeline.runtime);
  profile.operations = rows_of(timeline, timeline.operations);
  std::map<std::uint32_t, HostTotal> annotations;
  for (const Annotation& annotation : timeline.annotations) {
    HostTotal& total = annotations[annotation.name];
    ++total.count;
    total.total += static_cast<double>(annotation.end - annotation.begin);
  }
  profile.annotations = rows_of(timeline, annotations);
  for (const auto& [key, count] : timeline.product_shapes)
    profile.product_shapes.push_back(
        {timeline.names[key[0]], timeline.names[key[1]], timeline.names[key[2]], count});
  sort_down(profile.product_shapes, [](const ProductShape& shape) { return shape.count; });
}

}  // namespace orrery::observe
