// SPDX-License-Identifier: Apache-2.0
// Writes a network as a graph of bundles for Graphviz.
#include <fmt/format.h>

#include <algorithm>

#include "sim/app/report/parts.h"
#include "sim/app/topology/picture.h"
#include "sim/app/topology/report.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

// More siblings than this are one node: Graphviz and its readers lose patience with hundreds.
constexpr std::int64_t most_siblings = 24;

std::string quoted(const std::string& words) {
  std::string out = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

class DotWriter {
 public:
  DotWriter(const Fabric& fabric, const FabricParts& parts) : fabric_(fabric), parts_(parts) {
    if (fabric.scale_out.kind != ScaleOutKind::none)
      shape_ = bought_shape(fabric, parts.accelerators);
  }

  std::string write() {
    out_ = "graph " + quoted(fabric_.name) + " {\n  label=" + quoted(fabric_.title) +
           ";\n  rankdir=BT;\n  ranksep=1.2;\n  node [shape=box, fontname=\"Helvetica\"];\n"
           "  edge [fontname=\"Helvetica\", fontsize=10];\n";
    write_domain();
    const int tiers = static_cast<int>(shape_.tiers.size());
    for (int t = tiers - 1; t >= -1; --t) write_row(t);
    if (tiers > 0) write_peers();
    return out_ + "}\n";
  }

 private:
  const ClosTier& tier(int t) const { return shape_.tiers[static_cast<std::size_t>(t)]; }
  std::int64_t groups(int t) const { return t < 0 ? parts_.domains : tier(t).groups; }
  std::int64_t reach(int t) const { return t < 0 ? fabric_.scale_up.domain : tier(t).reach; }
  static std::string name(int t, std::int64_t group) {
    return t < 0 ? fmt::format("domain_{}", group)
                 : fmt::format("{}_{}", tier_role(static_cast<std::size_t>(t)), group);
  }

  void node(const std::string& id, const std::string& words, const char* more = "") {
    out_ += fmt::format("  {} [label={}{}];\n", quoted(id), quoted(words), more);
  }
  void edge(const std::string& from, const std::string& to, const std::string& words,
            const char* more = "") {
    out_ +=
        fmt::format("  {} -- {} [label={}{}];\n", quoted(from), quoted(to), quoted(words), more);
  }

  // The inside of one domain: its switches and one bundle of links.
  void write_domain() {
    const std::int64_t domains = std::max<std::int64_t>(1, parts_.domains);
    const std::int64_t members = std::min(parts_.accelerators, fabric_.scale_up.domain);
    out_ += "  subgraph cluster_domain {\n  label=\"inside every domain\";\n";
    node("accelerators", fmt::format("{} accelerators", grouped(members)));
    for (const SwitchCount& s : parts_.switches)
      if (!is_scale_out_role(s.role))
        node(s.role, fmt::format("{} {}", grouped(std::max<std::int64_t>(1, s.count / domains)),
                                 s.part.empty() ? s.role : s.part));
    for (const CableRun& run : parts_.cables)
      if (is_scale_up_run(run))
        edge(run.from == "accelerator" ? "accelerators" : run.from,
             run.to == "accelerator" ? "accelerators" : run.to,
             fmt::format("{} x {} {}", grouped(std::max<std::int64_t>(1, run.cables / domains)),
                         gigabits_text(run.rate), to_text(run.medium)));
    out_ += "  }\n";
  }

  void write_row(int t) {
    const std::int64_t all = groups(t), drawn = std::min(all, most_siblings);
    const int tiers = static_cast<int>(shape_.tiers.size());
    if (t < 0 && tiers == 0) return;
    for (std::int64_t g = 0; g < drawn; ++g) {
      const bool rest = g + 1 == drawn && all > drawn;
      std::string words;
      if (rest)
        words = fmt::format("{} more", grouped(all - drawn + 1));
      else if (t < 0)
        words = fmt::format("domain {}", g + 1);
      else
        words = fmt::format("{} {}\n{} planes", grouped(tier(t).switches),
                            tier_role(static_cast<std::size_t>(t)), shape_.planes);
      node(name(t, g), words, rest ? ", style=dashed" : t < 0 ? ", style=rounded" : "");
      if (t + 1 < tiers) write_up(t, g, rest);
    }
  }

  // One edge for everything between a group and the group that holds it.
  void write_up(int t, std::int64_t g, bool rest) {
    const std::int64_t above = std::min(g * reach(t) / std::max<std::int64_t>(1, reach(t + 1)),
                                        std::min(groups(t + 1), most_siblings) - 1);
    std::string words;
    if (t < 0 && !rest) {
      const std::int64_t first = g * reach(t);
      const std::int64_t members = std::min(reach(t), parts_.accelerators - first);
      words = fmt::format("{} x {}", grouped(shape_.planes * ports_of(shape_, members)),
                          gigabits_text(link_below(fabric_.scale_out, 0)));
    } else if (t >= 0 && !rest) {
      words = fmt::format(
          "{} x {}", grouped(shape_.planes * tier(t).switches * tier(t).up),
          gigabits_text(link_below(fabric_.scale_out, static_cast<std::size_t>(t) + 1)));
    }
    edge(name(t, g), name(t + 1, above), words, rest ? ", style=dashed" : "");
  }

  // Groups of the last tier that are joined pairwise.
  void write_peers() {
    const int last = static_cast<int>(shape_.tiers.size()) - 1;
    const std::int64_t drawn = std::min(groups(last), most_siblings);
    for (std::int64_t a = 0; a < drawn; ++a)
      for (std::int64_t b = a + 1; b < drawn; ++b)
        edge(name(last, a), name(last, b),
             shape_.direct ? fmt::format("{} links", grouped(tier(last).parallel)) : "long-haul",
             ", constraint=false, color=\"#c2347a\"");
  }

  const Fabric& fabric_;
  const FabricParts& parts_;
  ClosShape shape_;
  std::string out_;
};

}  // namespace

std::string topology_dot(const Fabric& fabric, const FabricParts& parts) {
  return DotWriter(fabric, parts).write();
}

}  // namespace orrery
