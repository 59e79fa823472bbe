// SPDX-License-Identifier: Apache-2.0
// Holds tables of nccl-tests against the fabric that is predicted.
#include "sim/diagnose/observed/tested_links.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/base/text/words.h"
#include "sim/diagnose/observed/observations.h"
#include "sim/diagnose/observed/ratios.h"
#include "sim/engine/collectives/collectives.h"

namespace orrery {
namespace {

using observe::CollectiveRow;
using observe::CollectiveTable;
using observe::TimedCollective;

bool is_priced(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
}

GroupShape group_of(int gpus, int hosts, const Scenario& s) {
  const std::int64_t on_host = std::max(1, gpus / std::max(1, hosts));
  // Racks are domains of several hosts.
  const std::int64_t domain = s.cluster.fabric.scale_up.domain;
  const std::int64_t per_domain = std::clamp<std::int64_t>(gpus <= domain ? gpus : on_host, 1,
                                                           std::max<std::int64_t>(1, domain));
  return {.size = gpus,
          .per_domain = per_domain,
          .domains = std::max<std::int64_t>(1, gpus / per_domain),
          .span = gpus};
}

int hosts_of(const CollectiveTable& table) {
  std::set<std::string> hosts;
  for (const observe::TestedRank& rank : table.ranks) hosts.insert(rank.host);
  return static_cast<int>(hosts.size());
}

// The better of a row's sides: buffers apart, or the same.
const TimedCollective* best_of(const CollectiveRow& row) {
  const TimedCollective* best = nullptr;
  for (const auto* side : {&row.out_of_place, &row.in_place})
    if (*side && (*side)->time > Seconds{} && (best == nullptr || (*side)->time < best->time))
      best = &**side;
  return best;
}

// Why a table says nothing of links; empty: it does.
std::string refusal_of(const CollectiveTable& table, const Scenario& scenario) {
  if (!table.kind || !is_priced(*table.kind)) return "its collective is none that is predicted";
  if (table.ranks.size() < 2) return "it does not list its GPUs";
  if (static_cast<std::int64_t>(table.ranks.size()) > scenario.cluster.gpus)
    return "it has more GPUs than the run";
  return "";
}

std::optional<TestedLinks> read_table(const CollectiveTable& table, const Scenario& scenario) {
  TestedLinks out{.test = table.program.value_or("nccl-tests"),
                  .gpus = static_cast<int>(table.ranks.size()),
                  .hosts = hosts_of(table)};
  const GroupShape group = group_of(out.gpus, out.hosts, scenario);
  out.leaves_domain = group.domains > 1;
  Ratios ratios;
  for (const CollectiveRow& row : table.rows) {
    const TimedCollective* timed = best_of(row);
    if (timed == nullptr || row.size.si() < large_collective) continue;
    const Collective call{.kind = *table.kind, .group = group, .bytes = row.size};
    const double predicted =
        collective_time(call, scenario.cluster.fabric, scenario.cluster.collective_costs).time.si();
    if (predicted <= 0) continue;
    const double ratio = timed->time.si() / predicted;
    ratios.add(ratio, predicted);
    if (row.size < out.message) continue;
    out.message = row.size;
    out.measured_bus = timed->bus;
    out.predicted_bus = timed->bus * ratio;
  }
  const auto middle = ratios.middle();
  if (!middle) return std::nullopt;
  out.ratio = *middle;
  return out;
}

}  // namespace

std::vector<TestedLinks> tested_links(const std::vector<observe::CollectiveTests>& tests,
                                      const Scenario& scenario, std::vector<std::string>& notes) {
  std::vector<TestedLinks> out;
  for (const observe::CollectiveTests& file : tests)
    for (const CollectiveTable& table : file.tables) {
      std::string refused = refusal_of(table, scenario);
      const auto read = refused.empty() ? read_table(table, scenario) : std::nullopt;
      if (refused.empty() && !read) refused = "it has no message of a megabyte or more";
      if (read)
        out.push_back(*read);
      else
        notes.push_back(fmt::format("The table in line {} of {} says nothing of links: {}.",
                                    table.line, file.file, refused));
    }
  return out;
}

void read_tested_links(const std::vector<TestedLinks>& tests, Readings& readings) {
  for (const bool leaves : {false, true}) {
    const Symptom symptom = leaves ? Symptom::network : Symptom::link;
    if (std::any_of(readings.begin(), readings.end(),
                    [&](const Reading& r) { return r.symptom == symptom; }))
      continue;
    // Of several tests the slowest: one over all hosts may pass links that one over two does not.
    double slowest = 0;
    for (const TestedLinks& test : tests)
      if (test.leaves_domain == leaves) slowest = std::max(slowest, test.ratio);
    if (slowest > 0) readings.push_back({.symptom = symptom, .value = std::log(slowest)});
  }
}

}  // namespace orrery
