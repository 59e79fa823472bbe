// SPDX-License-Identifier: Apache-2.0
// Builds the tree of feeds, the innermost level first.
#include "sim/question/losses/feeds_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/text/words.h"

namespace orrery {
namespace {

struct LevelName {
  const char* key;
  const char* name;
};
// From the inside out.
constexpr std::array<LevelName, 4> level_names = {
    {{"racks", "rack"}, {"rows", "row"}, {"halls", "hall"}, {"facility", "facility"}}};

constexpr double most_watts = 1e12;  // so that sums of milliwatts fit

// Hosts beneath one feed.
std::int32_t read_reach(const JsonValue& level, const SlotShape& shape) {
  const auto count = level.find("count"), hosts = level.find("hosts");
  if (count && hosts) hosts->fail("one of count and hosts");
  if (hosts) return static_cast<std::int32_t>(hosts->integer(1, shape.hosts));
  const auto many = static_cast<std::int32_t>(level.at("count").integer(1, shape.hosts));
  const std::int32_t reach = (shape.hosts + many - 1) / many;
  if ((shape.hosts + reach - 1) / reach != many)
    count->fail(fmt::format("as many as {} can stand under, {} each, or hosts in place of it",
                            plural(shape.hosts, "host"), reach));
  return reach;
}

// Of the limit while a supply is lost: all where one is in reserve.
double read_share_left(const JsonValue& level) {
  const auto redundancy = level.find("redundancy"), share = level.find("share_left");
  if (redundancy && share) share->fail("one of redundancy and share_left");
  if (share) {
    if (!(share->number() > 0 && share->number() <= 1)) share->fail("a share above 0, at most 1");
    return share->number();
  }
  return redundancy && redundancy->one_of({"none", "2N", "N+1"}) != "none" ? 1 : 0;
}

FeedLevel read_level(const JsonValue& at, const char* name, std::int32_t reach,
                     const SlotShape& shape, std::int64_t idle_milliwatts) {
  FeedLevel level{.name = name, .reach = reach, .share_left = read_share_left(at)};
  const auto limit = at.find("limit");
  if (!limit) {
    for (const char* key : {"redundancy", "share_left"})
      if (const auto v = at.find(key)) v->fail("a limit beside it");
    return level;
  }
  const double watts = limit->quantity<Watts>().si();
  if (!(watts < most_watts)) limit->fail("less than 1 TW");
  level.limit = std::llround(1e3 * watts);
  const std::int64_t idle =
      idle_milliwatts * shape.gpus_per_host * std::min<std::int64_t>(reach, shape.hosts);
  const auto check = [&](const JsonValue& of, double left) {
    if (!(static_cast<double>(level.limit) * left > static_cast<double>(idle)))
      of.fail(fmt::format("more than the {:.4g} kW that the idle hosts of a {} draw",
                          1e-6 * static_cast<double>(idle), name));
  };
  check(*limit, 1);
  if (const auto share = at.find("share_left")) check(*share, level.share_left);
  return level;
}

}  // namespace

FeedTree read_feeds(const JsonValue& at, const SlotShape& shape, std::int64_t idle_milliwatts) {
  at.expect_only({"facility", "halls", "rows", "racks"});
  FeedTree tree;
  for (const LevelName& one : level_names) {
    const auto level = at.find(one.key);
    if (!level) continue;
    const bool all = std::string(one.name) == "facility";
    if (all)
      level->expect_only({"limit", "redundancy", "share_left"});
    else
      level->expect_only({"count", "hosts", "limit", "redundancy", "share_left"});
    const std::int32_t reach = all ? shape.hosts : read_reach(*level, shape);
    if (!tree.empty() && !all && reach % tree.back().reach != 0)
      level->fail(fmt::format("feeds of whole {}s: a multiple of {}", tree.back().name,
                              plural(tree.back().reach, "host")),
                  plural(reach, "host"));
    tree.push_back(read_level(*level, one.name, reach, shape, idle_milliwatts));
  }
  if (tree.empty()) at.fail("facility, halls, rows or racks with a limit");
  return tree;
}

}  // namespace orrery
