// SPDX-License-Identifier: Apache-2.0
// Bins errors by what a run was.
#include "sim/validate/score/residuals.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "sim/paper/tables.h"

namespace orrery {
namespace {

// Where a row belongs: bins are sorted by `order`, then by label.
struct Place {
  std::int64_t order = 0;
  std::string label;
};

// "512", "16Ki", "4Mi".
std::string in_binary(std::int64_t value) {
  constexpr std::int64_t kibi = 1024;
  return value >= kibi * kibi ? fmt::format("{}Mi", value / kibi / kibi)
         : value >= 16 * kibi ? fmt::format("{}Ki", value / kibi)
                              : fmt::format("{}", value);
}

// "65 to 256" for 100 with the edges {8, 64, 256}: upper ends, counted in.
Place between(std::int64_t value, std::initializer_list<std::int64_t> edges) {
  std::int64_t low = 0, order = 0;
  for (const std::int64_t edge : edges) {
    if (value <= edge)
      return {order, low + 1 == edge
                         ? in_binary(edge)
                         : fmt::format("{} to {}", in_binary(low + 1), in_binary(edge))};
    low = edge;
    ++order;
  }
  return {order, "over " + in_binary(low)};
}

using Placing = std::function<Place(const PreparedRow&)>;

const std::vector<std::pair<const char*, Placing>>& quantities() {
  static const std::vector<std::pair<const char*, Placing>> all = {
      {"GPUs",
       [](const PreparedRow& r) {
         return between(r.layout.gpus(), {1, 8, 64, 256, 1023, 4096});
       }},
      {"global batch, sequences",
       [](const PreparedRow& r) {
         return between(r.job.global_batch, {32, 128, 512, 2048});
       }},
      {"microbatch, sequences",
       [](const PreparedRow& r) {
         return between(r.layout.micro_batch, {1, 2, 4, 8});
       }},
      {"sequence, tokens",
       [](const PreparedRow& r) {
         return between(r.job.sequence, {1024, 2048, 4096, 8192, 32768});
       }},
      {"GPU",
       [](const PreparedRow& r) {
         return Place{0, r.gpu};
       }},
      {"release",
       [](const PreparedRow& r) {
         return Place{0, r.release};
       }},
      {"precision",
       [](const PreparedRow& r) {
         return Place{0, std::string(to_text(r.layout.precision))};
       }},
      {"layers",
       [](const PreparedRow& r) {
         return r.model.has_experts() ? Place{1, "with experts"} : Place{0, "dense"};
       }},
      {"task",
       [](const PreparedRow& r) {
         return Place{0, std::string(to_text(r.job.task))};
       }},
      {"tensor parallel",
       [](const PreparedRow& r) {
         return between(r.layout.tp, {1, 2, 4, 8});
       }},
      {"pipeline", [](const PreparedRow& r) {
         return between(r.layout.pp, {1, 2, 4, 8, 16});
       }}};
  return all;
}

}  // namespace

std::vector<ResidualTable> residual_tables(const std::vector<ScoredRow>& rows, bool sweeps) {
  std::vector<ResidualTable> tables;
  for (const auto& [quantity, place] : quantities()) {
    std::map<std::pair<std::int64_t, std::string>, std::vector<double>> bins;
    for (const ScoredRow& s : rows) {
      const PreparedRow& row = *s.row;
      if (!is_scored(s) || row.sweep != sweeps) continue;
      const Place at = place(row);
      bins[{at.order, at.label}].push_back(*s.speed_error);
    }
    ResidualTable table{.quantity = quantity, .bins = {}};
    for (auto& [at, errors] : bins) table.bins.push_back({at.second, std::move(errors)});
    // A quantity that is one and the same in all rows tells nothing.
    if (table.bins.size() > 1) tables.push_back(std::move(table));
  }
  return tables;
}

std::string residuals_text(const std::vector<ResidualTable>& tables) {
  std::string out;
  for (const ResidualTable& table : tables) {
    Table text({table.quantity, "rows", "median", "p90", "bias"}, {Align::left});
    for (const ResidualBin& bin : table.bins) {
      const auto n = numbers(bin.errors);
      text.add({bin.label, fmt::format("{}", bin.errors.size()),
                fmt::format("{:.1f}", 100 * n->median), fmt::format("{:.1f}", 100 * n->p90),
                fmt::format("{:+.1f}", 100 * n->bias)});
    }
    out += "\n" + text.text();
  }
  return out;
}

}  // namespace orrery
