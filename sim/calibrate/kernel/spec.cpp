// SPDX-License-Identifier: Apache-2.0
// Reads specifications of kernels and counts their work.
#include "sim/calibrate/kernel/spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/base/random.h"

namespace orrery {
namespace {

constexpr std::int64_t most_of_a_size = 1 << 24;

Sizes read_sizes(const JsonValue& at, std::size_t count, std::int64_t least) {
  Sizes out;
  for (const JsonValue& item : at.items()) out.push_back(item.integer(least, most_of_a_size));
  if (out.size() != count) at.fail(fmt::format("{} sizes", count));
  return out;
}

// Sizes that the operation can have.
void check_shape(const KernelSpec& spec, const JsonValue& at, const Sizes& s) {
  for (std::size_t i = 0; i < s.size(); ++i)
    if (s[i] < 1 && spec.sizes[i] != "causal") at.fail("sizes from 1 on");
  if (spec.operation == "attention") {
    if (s[1] % s[2] != 0) at.fail("heads that are a multiple of kv_heads");
    if (s[6] != 0 && s[4] < s[3]) at.fail("no fewer keys than queries where it is causal");
    if (s[6] > 1) at.fail("causal as 0 or 1");
  }
  if (spec.operation == "top-k" && s[2] > s[1]) at.fail("a k within the width");
}

KernelShapes read_shapes(const KernelSpec& spec, const JsonValue& at) {
  KernelShapes out;
  const std::size_t count = spec.sizes.size();
  for (const auto& [key, list] : {std::pair{"check", &out.check}, {"time", &out.time}}) {
    for (const JsonValue& item : at.at(key).items()) {
      list->push_back(read_sizes(item, count, 0));
      check_shape(spec, item, list->back());
    }
    if (list->empty()) at.at(key).fail("at least one shape");
  }
  if (const auto drawn = at.find("drawn")) {
    drawn->expect_only({"count", "low", "high"});
    constexpr std::int64_t most_drawn = 100;
    out.drawn = drawn->at("count").integer(0, most_drawn);
    out.low = read_sizes(drawn->at("low"), count, 0);
    out.high = read_sizes(drawn->at("high"), count, 0);
    for (std::size_t i = 0; i < count; ++i)
      if (out.low[i] > out.high[i]) drawn->at("high").fail("no size below that of low");
  }
  return out;
}

std::vector<std::string> names_of_operations() {
  std::vector<std::string> names;
  for (const KernelOperation& operation : kernel_operations()) names.emplace_back(operation.name);
  return names;
}

}  // namespace

const std::vector<KernelOperation>& kernel_operations() {
  static const std::vector<KernelOperation> known = {
      {"product", {"m", "n", "k"}},
      {"grouped-product", {"rows", "n", "k", "groups"}},
      {"attention", {"batch", "heads", "kv_heads", "queries", "keys", "dim", "causal"}},
      {"rms-norm", {"rows", "width"}},
      {"softmax", {"rows", "width"}},
      {"top-k", {"rows", "width", "k"}},
      {"quantise", {"rows", "width"}},
  };
  return known;
}

KernelSpec load_kernel_spec(const std::string& file_or_name) {
  const bool is_file = file_or_name.find('/') != std::string::npos ||
                       file_or_name.ends_with(".json") || file_or_name.empty();
  const std::filesystem::path folder = data_root() / "validation/kernels/specs";
  if (is_file) return read_kernel_spec(JsonValue::load(file_or_name));
  const std::filesystem::path file = folder / (file_or_name + ".json");
  if (std::filesystem::exists(file)) return read_kernel_spec(JsonValue::load(file));
  const std::vector<std::string> names = catalog_names("validation/kernels/specs");
  throw Error({.file = "calibrate kernel",
               .found = in_quotes(file_or_name),
               .expected = "a file, or a specification that ships",
               .nearest = nearest_name(file_or_name, names)});
}

KernelSpec read_kernel_spec(const JsonValue& file) {
  file.expect_only({"title", "operation", "sizes", "data", "check", "drawn", "time", "host",
                    "replaces", "present"});
  KernelSpec spec{.title = file.at("title").text(), .text = file.raw()};
  const std::size_t which = file.at("operation").index_in(names_of_operations());
  spec.operation = kernel_operations()[which].name;
  spec.sizes = kernel_operations()[which].sizes;
  if (const auto sizes = file.find("sizes"))
    for (std::size_t i = 0; i < sizes->items().size(); ++i)
      if (i >= spec.sizes.size() || sizes->items()[i].text() != spec.sizes[i])
        sizes->fail("the sizes of the operation, in their order");
  const std::vector<std::string> kinds = {"random",  "wide",  "cancelling", "denormal",
                                          "outlier", "equal", "masked"};
  for (const JsonValue& kind : file.at("data").items()) {
    spec.data.push_back(kind.one_of(kinds));
    if (spec.data.back() == "masked" && spec.operation != "softmax")
      kind.fail("a kind without infinities: softmax alone takes them");
  }
  if (std::find(spec.data.begin(), spec.data.end(), "random") == spec.data.end())
    file.at("data").fail("random among the kinds");
  spec.gpu = read_shapes(spec, file);
  spec.host = read_shapes(spec, file.at("host"));
  const JsonValue replaces = file.at("replaces");
  replaces.expect_only({"kind", "roles"});
  std::vector<std::string> works, roles;
  for (int i = 0; i < work_kind_count; ++i) works.emplace_back(to_text(static_cast<WorkKind>(i)));
  for (int i = 0; i < gemm_role_text.count; ++i)
    roles.emplace_back(gemm_role_text[static_cast<GemmRole>(i)]);
  spec.kind = static_cast<WorkKind>(replaces.at("kind").index_in(works));
  if (const auto list = replaces.find("roles"))
    for (const JsonValue& role : list->items())
      spec.roles.push_back(static_cast<GemmRole>(role.index_in(roles)));
  if (const auto present = file.find("present"))
    for (const JsonValue& one : present->items()) {
      one.expect_only({"name", "file", "host"});
      const auto host = one.find("host");
      std::filesystem::path path = one.at("file").text();
      if (path.is_relative()) path = data_root() / "validation/kernels" / path;
      spec.present.push_back({one.at("name").text(), std::move(path), host && host->boolean()});
    }
  return spec;
}

Sizes drawn_shape(const KernelSpec& spec, const KernelShapes& shapes, std::uint64_t seed,
                  std::uint64_t number) {
  Sizes out;
  RandomStream stream(seed, number);
  for (std::size_t i = 0; i < shapes.low.size(); ++i) {
    const auto span = static_cast<std::uint64_t>(shapes.high[i] - shapes.low[i] + 1);
    out.push_back(shapes.low[i] + static_cast<std::int64_t>(stream.below(span)));
  }
  if (spec.operation == "attention") {
    out[1] *= out[2];
    out[4] += out[3];
  }
  if (spec.operation == "top-k") out[2] = std::min(out[2], out[1]);
  return out;
}

std::string shape_text(const KernelSpec& spec, const Sizes& shape) {
  std::string text;
  for (std::size_t i = 0; i < shape.size() && i < spec.sizes.size(); ++i)
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", spec.sizes[i], shape[i]);
  return text;
}

Work work_of(const KernelSpec& spec, const Sizes& s) {
  Work work{.kind = spec.kind};
  const std::string& op = spec.operation;
  const auto real = [](std::int64_t a) { return static_cast<double>(a); };
  if (op == "product") {
    work.m = s[0], work.n = s[1], work.k = s[2];
    if (!spec.roles.empty()) work.role = spec.roles.front();
  } else if (op == "grouped-product") {
    work.m = std::max<std::int64_t>(1, s[0] / s[3]), work.n = s[1], work.k = s[2];
    work.groups = s[3];
  } else if (op == "attention") {
    work.batch = s[0], work.heads = s[1], work.kv_heads = s[2];
    work.q_length = s[3], work.kv_length = s[4];
    work.qk_dim = work.v_dim = s[5];
    work.causal = s[6] != 0;
  } else {
    // 16-bit rows in and out, but for fp32 rows of top-k and bytes that are quantised.
    const double rows = real(s[0]), all = rows * real(s[1]);
    constexpr double block = 128;
    work.m = s[0];
    work.bytes_read = op == "top-k" ? 4 * all : 2 * all;
    if (op == "rms-norm") work.bytes_read += 2 * real(s[1]);
    work.bytes_written = op == "top-k"      ? 8 * rows * real(s[2])
                         : op == "quantise" ? all + 4 * rows * std::ceil(real(s[1]) / block)
                                            : 2 * all;
  }
  return work;
}

KernelLimit limit_of(const Work& work, const ResolvedDevice& device) {
  KernelLimit limit{.flop = tensor_flop(work), .bytes = minimum_bytes(work)};
  const double tensor = limit.flop / device.tensor_rate[static_cast<std::size_t>(work.input)].si();
  const double memory = limit.bytes / device.memory_bandwidth.si();
  limit.memory = !(tensor > memory);
  limit.seconds = limit.memory ? memory : tensor;
  return limit;
}

}  // namespace orrery
