// SPDX-License-Identifier: Apache-2.0
// Tells steps of replayed traces by rank; ranks that are alike share a line.
#include "sim/app/replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/base/text/words.h"

namespace orrery {
namespace {

constexpr std::size_t most_lines = 16;  // of a terminal's table

double seconds(Ticks t) { return to_seconds(t).si(); }

bool alike(const RankReplay& a, const RankReplay& b) {
  return a.end == b.end && a.compute == b.compute && a.communication == b.communication &&
         a.exposed == b.exposed;
}

// "0-3, 8", at most `most` runs of ranks.
std::string ranks_text(const std::vector<std::int64_t>& ranks, std::size_t most) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    runs.push_back(end == i + 1 ? fmt::format("{}", ranks[i])
                                : fmt::format("{}-{}", ranks[i], ranks[end - 1]));
    i = end;
  }
  if (runs.size() > most) {
    runs.resize(most);
    runs.push_back("...");
  }
  return joined(runs, ", ");
}

struct Line {
  const RankReplay* rank;
  std::vector<std::int64_t> ranks;
};

// The ranks that compute for longest first.
std::vector<Line> lines_of(const ReplayResult& result) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < result.ranks.size(); ++i) {
    const RankReplay& rank = result.ranks[i];
    const auto known = std::find_if(lines.begin(), lines.end(),
                                    [&](const Line& l) { return alike(*l.rank, rank); });
    Line& line = known == lines.end() ? lines.emplace_back(Line{&rank, {}}) : *known;
    line.ranks.push_back(static_cast<std::int64_t>(i));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.rank->compute > b.rank->compute; });
  return lines;
}

}  // namespace

Document replay_document(const ReplayResult& r, const Cluster& cluster, NetworkMode network,
                         bool full, std::size_t width) {
  Document document(full, width);
  const RankReplay& slowest = r.ranks[static_cast<std::size_t>(r.slowest)];
  document.title(fmt::format("A step of {} on {}", to_text(to_seconds(r.step)), cluster.name));
  std::string text =
      fmt::format("{} run {}, {} and {}.", plural(r.ranks.size(), "rank"), plural(r.nodes, "node"),
                  plural(r.collectives, "collective"), plural(r.messages, "message"));
  if (network == NetworkMode::flow) text += " Transfers share the links that they cross.";
  if (r.modelled > 0)
    text += fmt::format(" {} without a duration took what the peaks of {} allow.",
                        plural(r.modelled, "node"), cluster.device.name);
  if (slowest.compute > Ticks{})
    text += fmt::format(" Rank {} computes for longest: {} of the step.", r.slowest,
                        percent(seconds(slowest.compute) / seconds(r.step)));
  document.paragraph(text);
  const std::vector<Line> lines = lines_of(r);
  Table table({"ranks", "compute", "communication", "exposed", "idle", "ends at"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  const std::size_t shown = full ? lines.size() : std::min(lines.size(), most_lines);
  for (std::size_t i = 0; i < shown; ++i) {
    const RankReplay& rank = *lines[i].rank;
    const auto in_words = [](Ticks t) { return to_text(to_seconds(t)); };
    table.add({ranks_text(lines[i].ranks, full ? lines[i].ranks.size() : 4), in_words(rank.compute),
               in_words(rank.communication), in_words(rank.exposed), in_words(rank.idle),
               in_words(rank.end)});
  }
  document.gap();
  document.table(table);
  if (shown < lines.size())
    document.note(fmt::format("{} more; --markdown shows all", lines.size() - shown));
  return document;
}

Json replay_json(const ReplayResult& r, const Cluster& cluster, NetworkMode network) {
  Json ranks = Json::array();
  for (std::size_t i = 0; i < r.ranks.size(); ++i) {
    const RankReplay& rank = r.ranks[i];
    ranks.push_back({{"rank", i},
                     {"compute_s", seconds(rank.compute)},
                     {"communication_s", seconds(rank.communication)},
                     {"exposed_s", seconds(rank.exposed)},
                     {"idle_s", seconds(rank.idle)},
                     {"end_s", seconds(rank.end)}});
  }
  return {{"cluster", cluster.name},
          {"network", network_mode_text[network]},
          {"step_time_s", seconds(r.step)},
          {"slowest_rank", r.slowest},
          {"nodes", r.nodes},
          {"modelled_nodes", r.modelled},
          {"collectives", r.collectives},
          {"messages", r.messages},
          {"ranks", ranks}};
}

}  // namespace orrery
