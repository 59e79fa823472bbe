// SPDX-License-Identifier: Apache-2.0
// Makes rows of a fit of the samples of our own microbenchmarks.
#include "sim/calibrate/log/measured_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "hw_models/catalog.h"
#include "hw_models/kernel/l2.h"
#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"

namespace orrery {

namespace {

// Launches of one sustained sample are without pause for so long that the power limit has settled.
constexpr int endless_replays = 1000000000;

bool is_stream(WorkKind kind) {
  return !is_product(kind) && !is_attention(kind) && kind != WorkKind::host_copy;
}

// Share of the operands that a stream of calls finds in the L2 when their turn comes again. Calls
// rotate over memory unless they ask about the cache, but 400 calls of a few kilobytes stay within
// it. Random replacement: a line is still there after the misses of one round with the probability
// h = exp(-(1 - h) footprint / capacity).
double cached_share(const Sample& sample, Bytes capacity) {
  if (!is_stream(sample.kernel.work.kind)) return 0;
  const bool asked = is_cached(sample);
  const double footprint = minimum_bytes(sample.kernel.work) * (asked ? 1 : sample.calls);
  const double rounds = footprint / (l2_for_streams * capacity.si());
  if (rounds <= 1) return 1;
  if (rounds > 4) return 0;
  double share = 0;
  for (int i = 0; i < 60; ++i) share = std::exp(-(1 - share) * rounds);
  return share;
}

// Absorbed latents, which hold keys and values in one row, are read by a kernel of its own whatever
// the pages are: its rows would bend the curve of all others.
std::string separate_kernel(const Sample& sample) {
  const Work& work = sample.kernel.work;
  const bool latent = work.kind == WorkKind::attention_decode && work.kv_heads == 1 &&
                      work.qk_dim > work.v_dim && work.v_dim > 0;
  return latent ? "latent" : "";
}

// Why a sample is not fitted; empty where it is.
std::string left_out(const Sample& sample, const ResolvedDevice& device) {
  const Work& work = sample.kernel.work;
  const bool copies = work.kind == WorkKind::copy;
  // Streams that only read, only write or go both ways at once say what the memory or the link can
  // do; a copy in a step is a copy.
  if ((copies && (sample.variant.starts_with("read") || sample.variant.starts_with("write") ||
                  sample.variant.starts_with("triad"))) ||
      (work.kind == WorkKind::host_copy && sample.variant == "both"))
    return "of one direction or of both at once";
  // H200: 4.25 TB/s to 0.25 GiB and at 0.75, 2.75 at 0.5 and from 1 GiB on, three times over.
  if (copies && sample.kernel.library == Library::eager && minimum_bytes(work) > 1e9)
    return "of the driver's copies of half a gigabyte and more, which change between two speeds";
  const bool cold = is_stream(work.kind) && cached_share(sample, device.l2_capacity) == 0;
  if (cold && minimum_bytes(work) / sample.time.si() > device.memory_bandwidth.si())
    return "faster than the memory, which did not move what it names";
  return "";
}

// Blocks of a kernel of our own: a row each, or so many numbers; 0 where the line does not say.
std::int64_t blocks_of(const Sample& sample) {
  const auto rows = sample.numbers.find("rows"), count = sample.numbers.find("count");
  if (sample.kind == "router") return 0;  // many tokens a block, bound by instructions
  if (rows != sample.numbers.end()) return static_cast<std::int64_t>(rows->second);
  if (count == sample.numbers.end() || sample.part != "elementwise") return 0;
  // validation/microbench/elementwise_kernels.cuh: two vectors of four numbers a thread, four of
  // four, a token of 40 heads a block, or four vectors of eight.
  const double each = sample.variant.starts_with("adamw")  ? 2048
                      : sample.variant.starts_with("cast") ? 4096
                      : sample.kind == "rotary"            ? 5120
                                                           : 8192;
  return static_cast<std::int64_t>(std::ceil(count->second / each));
}

// Some samples are of several kernels in a row, each with a share of the traffic.
void set_kernels(OperatorRow& row, const Sample& sample) {
  const auto count = sample.numbers.find("kernels");
  const double wanted = count == sample.numbers.end() ? 1 : count->second;
  row.count = static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(row.kernels.size())));
  Kernel part = sample.kernel;
  if (is_stream(part.work.kind)) part.work.m = blocks_of(sample);
  part.work.bytes_read /= row.count;
  part.work.bytes_written /= row.count;
  part.work.vector_flop /= row.count;
  std::fill_n(row.kernels.begin(), row.count, part);
}

// Products and prefill are told apart by their shapes, other kernels by their names. What is in the
// cache is the same kernel.
std::string named_kernel(const Sample& sample) {
  const WorkKind kind = sample.kernel.work.kind;
  if (is_product(kind) || (is_attention(kind) && kind != WorkKind::attention_decode)) return "";
  const std::string separate = separate_kernel(sample);
  return separate.empty() ? bare_variant(sample) : separate;
}

OperatorRow row_of(const Sample& sample, int replays, Bytes capacity) {
  const double cached = cached_share(sample, capacity);
  OperatorRow row{.kernels = {},
                  .count = 1,
                  .measured = sample.time,
                  .replays = replays,
                  .family = sample.family,
                  .shape = sample.shape,
                  .cold = cached == 0,
                  .cached = cached,
                  .variant = named_kernel(sample),
                  .run = sample.conditions};
  set_kernels(row, sample);
  if (!sample.variant.empty()) row.shape = sample.variant + " " + row.shape;
  return row;
}

std::vector<OperatorTable> tables_of(const MeasuredLog& log, bool sustained) {
  std::vector<OperatorTable> tables;
  if (log.samples.empty()) return tables;
  const std::string device = measured_device(log);
  const ResolvedDevice known = load_device(device).resolved();
  std::vector<std::map<std::string, int>> dropped;
  for (const Sample& sample : log.samples) {
    if (!sample.is_work || (sample.mode == "sustained") != sustained) continue;
    const Kernel& kernel = sample.kernel;
    const std::string separate = separate_kernel(sample);
    const auto same = std::find_if(tables.begin(), tables.end(), [&](const OperatorTable& t) {
      return t.kind == kernel.work.kind && t.format == kernel.work.input &&
             t.library == kernel.library && t.variant == separate;
    });
    auto place = static_cast<std::size_t>(same - tables.begin());
    if (same == tables.end()) {
      tables.push_back({.device = device,
                        .kind = kernel.work.kind,
                        .format = kernel.work.input,
                        .library = kernel.library,
                        .variant = separate,
                        .note = "",
                        .source = measured_source(device),
                        .rows = {}});
      dropped.emplace_back();
    }
    if (const std::string why = left_out(sample, known); !why.empty()) {
      ++dropped[place][why];
      continue;
    }
    tables[place].rows.push_back(
        row_of(sample, sustained ? endless_replays : 0, known.l2_capacity));
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    OperatorTable& table = tables[i];
    table.twin =
        table.kind == WorkKind::gemm && table.format == Format::fp16 &&
        std::any_of(tables.begin(), tables.end(), [&](const OperatorTable& t) {
          return t.kind == table.kind && t.format == Format::bf16 && t.library == table.library;
        });
    for (const auto& [why, count] : dropped[i])
      table.note += fmt::format("{}not fitted: {} sample{} {}", table.note.empty() ? "" : "; ",
                                count, count == 1 ? "" : "s", why);
  }
  std::erase_if(tables, [](const OperatorTable& t) { return t.rows.empty(); });
  return tables;
}

}  // namespace

std::string measured_device(const MeasuredLog& log) {
  std::string device;
  for (const RunConditions& c : log.conditions) {
    const std::string name = catalogue_device(c.device);
    if (!device.empty() && name != device)
      throw Error({.file = c.file,
                   .path = "device",
                   .found = in_quotes(c.device),
                   .expected = "samples of one device, " + device});
    device = name;
  }
  if (device.empty())
    throw Error({.file = "measured samples",
                 .found = "no conditions",
                 .expected = "lines that say on which device they were taken"});
  return device;
}

std::string measured_source(const std::string& device) { return "orrery-measured-" + device; }

OperatorRow measured_row(const Sample& sample, Bytes l2_capacity) {
  return row_of(sample, sample.mode == "sustained" ? endless_replays : 0, l2_capacity);
}

std::vector<OperatorTable> measured_tables(const MeasuredLog& log) { return tables_of(log, false); }

std::vector<OperatorTable> sustained_tables(const MeasuredLog& log) { return tables_of(log, true); }

std::vector<OperatorTable> variant_tables(std::vector<OperatorTable>& tables) {
  constexpr std::size_t fewest_shapes = 3;  // fewer cannot tell a rate and a start
  std::vector<OperatorTable> parts, kept;
  std::vector<std::string> too_few;
  for (OperatorTable& table : tables) {
    // One name for many of a framework's operations, each of one or several kernels.
    const bool mixed = (table.library == Library::eager || table.library == Library::inductor) &&
                       is_stream(table.kind);
    std::map<std::string, std::vector<OperatorRow>> by_variant;
    for (const OperatorRow& row : table.rows) by_variant[row.variant].push_back(row);
    const bool one = by_variant.size() < 2;
    if (one || !mixed) kept.push_back(table);
    if (one) continue;
    for (auto& [variant, rows] : by_variant) {
      if (variant.empty()) continue;
      std::set<std::string> shapes;
      for (const OperatorRow& row : rows) shapes.insert(row.shape);
      if (shapes.size() < fewest_shapes) {
        too_few.push_back(
            fmt::format("{} {} of {}", to_text(table.kind), variant, to_text(table.library)));
        continue;
      }
      OperatorTable part = table;
      part.variant = variant;
      if (!mixed) part.note.clear();
      part.rows = std::move(rows);
      parts.push_back(std::move(part));
      table.note.clear();  // said once
    }
  }
  tables = std::move(kept);
  if (!too_few.empty() && !tables.empty())
    tables.back().note +=
        (tables.back().note.empty() ? "" : "; ") +
        fmt::format("{} kernels of under three shapes have no curve of their own{}{}",
                    too_few.size(), too_few.size() > 8 ? "" : ": ",
                    too_few.size() > 8 ? "" : joined(too_few, ", "));
  return parts;
}

}  // namespace orrery
