// SPDX-License-Identifier: Apache-2.0
// Draws a whole network: one domain on the left, the tiers between domains on the right.
#include "sim/app/topology/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/app/report/parts.h"
#include "sim/app/topology/domain_picture.h"
#include "sim/app/topology/report.h"
#include "sim/base/text/words.h"
#include "sim/base/whole.h"
#include "topologies/clos.h"

namespace orrery {
namespace {

constexpr double page_across = 1600, page_down = 900;
constexpr const char* grey = "#7a8694";
constexpr const char* long_haul_colour = "#c2347a";

// One drawn switch, with the colour of its rail.
struct DrawnSwitch {
  Box at;
  const char* colour = grey;
};
// A group of a tier (or a domain, tier -1) and what is drawn of it.
struct Node {
  int tier = 0;
  std::int64_t index = 0;  // among its siblings
  double x = 0, width = 0;
  std::vector<DrawnSwitch> switches;
  std::vector<Node> children;
  double ellipsis_x = -1;  // where children are left out
  double cut_x = -1;       // where switches are
};

class NetworkPicture {
 public:
  NetworkPicture(Svg& svg, const Box& area, const Fabric& fabric, const FabricParts& parts,
                 const ClosShape& shape)
      : svg_(svg), area_(area), fabric_(fabric), parts_(parts), shape_(shape) {
    tiers_ = static_cast<int>(shape.tiers.size());
    peers_ = !shape.tiers.empty() && shape.tiers.back().groups > 1;
    const double top = area.y + (peers_ ? 150 : 105), foot = area.bottom() - 150;
    for (int tier = -1; tier < tiers_; ++tier)
      rows_.push_back(foot - (foot - top) * (tier + 1) / tiers_);
    canvas_ = {area.x + 225, area.y, area.width - 245, area.height};
  }

  void draw() {
    svg_.box(area_, {.fill = "#fbfbfc", .stroke = "#c9d1d9", .width = 1.2, .corner = 10});
    svg_.text({area_.x + 20, area_.y + 32}, "Between domains", {.size = 20, .bold = true}, 190);
    Node root = lay_out();
    draw_frames(root, 0);
    if (peers_) draw_peers(root);
    draw_wires(root);
    draw_boxes(root);
    draw_labels();
  }

 private:
  double row(int tier) const { return rows_[static_cast<std::size_t>(tier + 1)]; }
  const ClosTier& tier(int t) const { return shape_.tiers[static_cast<std::size_t>(t)]; }

  Node lay_out() {
    Node root{.tier = tiers_, .x = canvas_.x, .width = canvas_.width};
    if (peers_) {
      spread(root, tier(tiers_ - 1).groups, shape_.accelerators);
    } else {
      root = group(tiers_ - 1, 0, shape_.accelerators, canvas_.x, canvas_.width);
    }
    return root;
  }

  // How many of a node's children are drawn: fewer where there are more levels.
  std::int64_t most_children(int tier) const {
    const int levels = tiers_ + (peers_ ? 1 : 0);
    if (shape_.direct && peers_ && tiers_ == 2) return tier == tiers_ ? 3 : tier == 0 ? 1 : 2;
    if (tier == 0) return levels == 1 ? 4 : levels == 4 ? 1 : 2;
    if (tier == tiers_) return levels >= 3 ? 2 : 3;
    return levels == 2 ? 3 : levels == 4 && tier == tiers_ - 1 ? 1 : 2;
  }

  Node group(int t, std::int64_t index, std::int64_t members, double x, double width) {
    Node node{.tier = t, .index = index, .x = x, .width = width};
    if (t < 0) return node;
    const std::int64_t below = t == 0 ? fabric_.scale_up.domain : tier(t - 1).reach;
    const std::int64_t children =
        std::max<std::int64_t>(1, (members + below - 1) / std::max<std::int64_t>(1, below));
    spread(node, children, members);
    place_switches(node);
    return node;
  }

  // Children beside each other, an ellipsis before the last where some are left out.
  void spread(Node& node, std::int64_t children, std::int64_t members) {
    const std::int64_t most = most_children(node.tier);
    const std::int64_t shown = std::min(children, most);
    const double slot = children > most ? 34 : 0, gap = 10;
    const double each = (node.width - slot - gap * to_double(shown + 1)) / to_double(shown);
    const std::int64_t size = std::max<std::int64_t>(1, (members + children - 1) / children);
    double x = node.x + gap;
    for (std::int64_t i = 0; i < shown; ++i) {
      const bool last = i + 1 == shown;
      if (children > most && last && shown > 1) {
        node.ellipsis_x = x + slot / 2 - gap / 2;
        x += slot;
      }
      const std::int64_t index = last && shown > 1 ? children - 1 : i;
      const std::int64_t reach = node.tier > 0 && node.tier <= tiers_ ? tier(node.tier - 1).reach
                                                                      : fabric_.scale_up.domain;
      const std::int64_t inside =
          std::clamp<std::int64_t>(reach, 1, std::max<std::int64_t>(size, 1));
      node.children.push_back(group(node.tier - 1, index, inside, x, each));
      x += each + gap;
    }
    if (children > most && shown == 1) node.ellipsis_x = x + slot / 2 - gap / 2;
  }

  bool by_rail(int t) const {
    return shape_.rails > 1 && (t == 0 || fabric_.scale_out.kind == ScaleOutKind::rail_only);
  }

  void place_switches(Node& node) const {
    const std::int64_t real = tier(node.tier).switches;
    const bool rails = by_rail(node.tier) && real >= shape_.rails;
    const std::int64_t most = rails ? 8 : node.tier == 0 ? 4 : 6;
    const std::int64_t shown =
        std::max<std::int64_t>(1, std::min(rails ? shape_.rails : real, most));
    const bool cut = shown < real && !rails && shown > 1;  // an ellipsis before the last
    const double step =
        std::min((node.width - 12) / to_double(shown + (cut ? 1 : 0)), rails ? 54.0 : 84.0);
    const double start = node.x + node.width / 2 - step * to_double(shown + (cut ? 1 : 0)) / 2;
    const double height = std::min(34.0, std::max(16.0, step));
    for (std::int64_t i = 0; i < shown; ++i) {
      const std::int64_t place = cut && i + 1 == shown ? i + 1 : i;
      node.switches.push_back({{start + step * (to_double(place) + 0.16),
                                row(node.tier) - height / 2, step * 0.68, height},
                               rails ? rail_colour(i) : grey});
    }
    if (cut) node.cut_x = start + step * (to_double(shown) - 0.5);
  }

  void draw_frames(const Node& node, int depth) {
    for (const Node& child : node.children) {
      if (child.tier < 0) continue;
      const int level = child.tier;  // frames of higher tiers reach farther
      const double top = row(level) - 36, foot = row(-1) + 66 + 24 * level;
      svg_.box({child.x, top, child.width, foot - top},
               {.fill = depth % 2 == 0 ? "#f1f4f7" : "#e9edf2",
                .stroke = "#c9d1d9",
                .width = 1,
                .corner = 8});
      const char* name = shape_.sites && level == tiers_ - 1 ? "site"
                         : level == 0                        ? "group"
                         : shape_.direct                     ? "dragonfly group"
                                                             : "pod";
      svg_.text({child.x + child.width / 2, foot - 7},
                fmt::format("{} {}", name, grouped(child.index + 1)),
                {.size = 14, .anchor = Anchor::middle, .fill = "#40505f"}, child.width - 12);
      draw_frames(child, depth + 1);
    }
    if (node.ellipsis_x > 0 && node.tier > 0)
      svg_.text({node.ellipsis_x, (row(node.tier - 1) + row(-1)) / 2 + 8}, "…",
                {.size = 26, .anchor = Anchor::middle, .bold = true, .fill = "#40505f"}, 34);
  }

  // Groups joined pairwise: arcs between all that are drawn.
  void draw_peers(const Node& root) {
    for (std::size_t i = 0; i < root.children.size(); ++i)
      for (std::size_t j = i + 1; j < root.children.size(); ++j) {
        const Node &a = root.children[i], &b = root.children[j];
        const double y = row(tiers_ - 1) - 36, lift = j == i + 1 ? 70 : 120;
        svg_.curve({a.x + a.width / 2, y}, {(a.x + b.x + b.width) / 2, y - lift},
                   {b.x + b.width / 2, y},
                   {.stroke = long_haul_colour, .width = 2.4, .opacity = 0.9});
      }
  }

  void draw_wires(const Node& node) {
    for (const Node& child : node.children) draw_wires(child);
    if (node.switches.empty()) return;
    if (node.tier == 0) return draw_nic_wires(node);
    for (const Node& child : node.children)
      for (std::size_t i = 0; i < child.switches.size(); ++i)
        for (std::size_t j = 0; j < node.switches.size(); ++j)
          if (joined(node, i, child.switches.size(), j))
            svg_.line({child.switches[i].at.centre(), child.switches[i].at.y},
                      {node.switches[j].at.centre(), node.switches[j].at.bottom()},
                      {.stroke = child.switches[i].colour, .width = 1, .opacity = 0.6});
  }

  // Whether drawn switch i of `lowers` has a link to drawn switch j above.
  bool joined(const Node& above, std::size_t i, std::size_t lowers, std::size_t j) const {
    const std::size_t uppers = above.switches.size();
    if (fabric_.scale_out.kind == ScaleOutKind::rail_only && uppers == lowers) return i == j;
    if (above.tier == 1) return true;
    return uppers >= lowers ? j * lowers / uppers == i : i * uppers / lowers == j;
  }

  // Accelerators drawn in a domain of this width, and where the i-th stands.
  std::int64_t drawn_accelerators() const {
    return std::min<std::int64_t>({8, fabric_.scale_up.domain, shape_.accelerators});
  }
  Box accelerator_box(const Node& domain, std::int64_t i) const {
    const double n = to_double(drawn_accelerators());
    const double step = std::min(26.0, (domain.width - 8) / n);
    const double start = domain.x + domain.width / 2 - step * n / 2;
    return {start + step * (to_double(i) + 0.12), row(-1) - 12, step * 0.76,
            std::min(step * 0.76, 20.0)};
  }

  void draw_nic_wires(const Node& leaf) {
    const std::int64_t drawn = drawn_accelerators();
    for (std::size_t d = 0; d < leaf.children.size(); ++d)
      for (std::int64_t i = 0; i < drawn; ++i) {
        const std::size_t all = leaf.switches.size();
        const std::size_t to = by_rail(0)
                                   ? static_cast<std::size_t>(i) % all
                                   : d * all / std::max<std::size_t>(1, leaf.children.size());
        const Box from = accelerator_box(leaf.children[d], i);
        svg_.line({from.centre(), from.y},
                  {leaf.switches[to].at.centre(), leaf.switches[to].at.bottom()},
                  {.stroke = leaf.switches[to].colour, .width = 1.3, .opacity = 0.85});
      }
  }

  void draw_boxes(const Node& node) {
    for (const Node& child : node.children) {
      if (child.tier >= 0)
        draw_boxes(child);
      else
        draw_domain_box(child);
    }
    if (node.ellipsis_x > 0 && node.tier == 0)
      svg_.text({node.ellipsis_x, row(-1) + 12}, "…",
                {.size = 22, .anchor = Anchor::middle, .bold = true, .fill = "#40505f"}, 34);
    if (node.cut_x > 0)
      svg_.text({node.cut_x, row(node.tier) + 6}, "…",
                {.size = 20, .anchor = Anchor::middle, .bold = true, .fill = "#40505f"}, 34);
    const std::int64_t shadows = std::min<std::int64_t>(shape_.planes - 1, 3);
    for (const DrawnSwitch& s : node.switches) {
      for (std::int64_t p = shadows; p > 0; --p) {
        const double off = 4.0 * to_double(p);
        svg_.box({s.at.x + off, s.at.y - off, s.at.width, s.at.height},
                 {.fill = "#ffffff", .stroke = s.colour, .width = 1, .corner = 4});
      }
      svg_.box(s.at, {.fill = s.colour == grey ? "#dfe5ec" : s.colour,
                      .stroke = "#30404f",
                      .width = 1.2,
                      .corner = 4});
    }
  }

  void draw_domain_box(const Node& domain) {
    const Box frame = {domain.x, row(-1) - 20, domain.width, 60};
    svg_.box(frame, {.fill = "#ffffff", .stroke = "#8f9cab", .width = 1.2, .corner = 6});
    for (std::int64_t i = 0; i < drawn_accelerators(); ++i)
      svg_.box(accelerator_box(domain, i), {.fill = shape_.rails > 1 ? rail_colour(i) : "#5b7fa6",
                                            .stroke = "#30404f",
                                            .width = 0.7,
                                            .corner = 2});
    svg_.text({frame.centre(), frame.bottom() - 9},
              fmt::format("{}{}", frame.width < 78 ? "" : "domain of ",
                          grouped(std::min(fabric_.scale_up.domain, shape_.accelerators))),
              {.size = 13, .anchor = Anchor::middle, .fill = "#40505f"}, frame.width - 8);
  }

  const SwitchCount* switches_of(const std::string& role) const {
    for (const SwitchCount& s : parts_.switches)
      if (s.role == role) return &s;
    return nullptr;
  }

  // The runs of cables above a row: from its switches (or NICs) upwards.
  std::string cables_text(int t) const {
    static const std::vector<std::string> roles = {"leaf", "spine", "core"};
    const auto role_index = [&](const std::string& role) {
      const auto place = std::find(roles.begin(), roles.end(), role);
      return place == roles.end() ? -1 : static_cast<int>(place - roles.begin());
    };
    for (const CableRun& run : parts_.cables) {
      if (is_scale_up_run(run)) continue;
      const int low = std::min(role_index(run.from), role_index(run.to));
      const int high = std::max(role_index(run.from), role_index(run.to));
      if (low != t || high != t + 1) continue;
      return fmt::format("{} × {} {}", grouped(run.cables), gigabits_text(run.rate),
                         to_text(run.medium));
    }
    return "";
  }

  // What joins the groups of the last tier: cables that end at one role twice, or at "long-haul".
  std::vector<std::string> peers_text() const {
    std::vector<std::string> lines;
    for (const CableRun& run : parts_.cables)
      if (!is_scale_up_run(run) &&
          (run.from == run.to || run.to == "long-haul" || run.from == "long-haul"))
        lines.push_back(fmt::format("{} × {} {}", grouped(run.cables), gigabits_text(run.rate),
                                    to_text(run.medium)));
    if (shape_.sites && fabric_.sites.kilometres.known())
      lines.push_back(fmt::format("{:g} km apart", fabric_.sites.kilometres.get()));
    return lines;
  }

  void label(double y, const std::string& head, const std::vector<std::string>& more) {
    const double x = area_.x + 20, room = 195;
    const double tall = 20 + 18 * static_cast<double>(more.size());
    y += 14 - tall / 2;
    svg_.text({x, y}, head, {.size = 17, .bold = true}, room);
    for (const std::string& line : more) svg_.text({x, y += 19}, line, {.size = 14.5}, room);
  }
  void cable_label(double y, const std::string& words) {
    if (words.empty()) return;
    svg_.paragraph({area_.x + 20, y - 4}, words, {.size = 14.5, .fill = "#8a5a2b"}, 195, 2);
  }

  void draw_labels() {
    static const std::vector<std::pair<std::string, std::string>> names = {
        {"leaf", "leaves"}, {"spine", "spines"}, {"core", "cores"}};
    for (int t = 0; t < tiers_ && t < static_cast<int>(names.size()); ++t) {
      const auto& [role, plural] = names[static_cast<std::size_t>(t)];
      const SwitchCount* s = switches_of(role);
      if (s == nullptr) continue;
      std::vector<std::string> more = {s->part.empty() ? "not named" : s->part};
      if (s->ports > 0)
        more.push_back(fmt::format("{} of {} ports", grouped(s->ports_used), grouped(s->ports)));
      label(row(t), fmt::format("{} {}", grouped(s->count), s->count == 1 ? role : plural), more);
      if (t + 1 < tiers_) cable_label((row(t) + row(t + 1)) / 2, cables_text(t));
    }
    cable_label((row(-1) + row(0)) / 2, cables_text(-1));
    label(row(-1) + 12, plural(parts_.domains, "domain"),
          {fmt::format("of {} accelerators", grouped(fabric_.scale_up.domain)),
           fmt::format("{} NICs {}", grouped(parts_.nics), fabric_.scale_out.nic)});
    if (peers_) {
      const std::int64_t groups = tier(tiers_ - 1).groups;
      label(area_.y + 84,
            shape_.sites ? fmt::format("{} sites", grouped(groups))
                         : fmt::format("{} groups, all pairs", grouped(groups)),
            peers_text());
    }
  }

  Svg& svg_;
  Box area_, canvas_;
  const Fabric& fabric_;
  const FabricParts& parts_;
  const ClosShape& shape_;
  int tiers_ = 0;
  bool peers_ = false;
  std::vector<double> rows_;  // y of the domains, then of each tier's switches
};

void draw_legend(Svg& svg, const Fabric& fabric, const FabricParts& parts, bool network) {
  double x = 40;
  const double y = 874;
  if (parts.rails > 1) {
    const std::int64_t shown = std::min<std::int64_t>(parts.rails, 8);
    svg.text({x, y}, "rails", {.size = 15}, 60);
    x += 50;
    for (std::int64_t i = 0; i < shown; ++i, x += 44) {
      svg.box({x, y - 13, 16, 16}, {.fill = rail_colour(i), .stroke = "#30404f", .corner = 3});
      svg.text({x + 20, y}, fmt::format("{}", i + 1), {.size = 14}, 22);
    }
    x += 24;
  }
  std::string words;
  if (parts.planes > 1)
    words = fmt::format("{} planes, drawn as shadows: each NIC has a port on every plane.  ",
                        parts.planes);
  if (network) words += fmt::format("Routing {}. ", to_text(fabric.scale_out.routing));
  words += "Repeated parts are drawn once or twice; counts are exact.";
  svg.text({x, y}, words, {.size = 15, .fill = "#40505f"}, page_across - 40 - x);
}

}  // namespace

std::string topology_svg(const Fabric& fabric, const FabricParts& parts, const std::string& title) {
  Svg svg(page_across, page_down);
  svg.box({0, 0, page_across, page_down}, {.fill = "#ffffff"});
  svg.text({40, 52}, title, {.size = 30, .bold = true}, page_across - 80);
  std::string line = fmt::format("{} accelerators in {}", grouped(parts.accelerators),
                                 plural(parts.domains, "domain"));
  if (parts.nics > 0 && parts.domains == 1)
    line += fmt::format(", {} NICs of {}, {}", grouped(parts.nics),
                        gigabits_text(fabric.scale_out.nic_bandwidth.get()),
                        to_text(fabric.scale_out.kind));
  else if (parts.nics > 0)
    line += fmt::format(", {} NICs of {}, {}, bisection {} an accelerator", grouped(parts.nics),
                        gigabits_text(fabric.scale_out.nic_bandwidth.get()),
                        to_text(fabric.scale_out.kind),
                        to_text(parts.scale_out_bisection / to_double(parts.accelerators)));
  svg.text({40, 84}, line, {.size = 18, .fill = "#40505f"}, page_across - 80);
  ClosShape shape;
  if (fabric.scale_out.kind != ScaleOutKind::none) shape = bought_shape(fabric, parts.accelerators);
  const bool network = !shape.tiers.empty() && parts.nics > 0;
  const Box whole = {40, 104, page_across - 80, 740};
  if (network) {
    draw_domain(svg, {whole.x, whole.y, 450, whole.height}, fabric, parts);
    NetworkPicture(svg, {whole.x + 470, whole.y, whole.width - 470, whole.height}, fabric, parts,
                   shape)
        .draw();
  } else {
    draw_domain(svg, {whole.centre() - 480, whole.y, 960, whole.height}, fabric, parts);
  }
  draw_legend(svg, fabric, parts, network);
  return svg.finish();
}

}  // namespace orrery
