// SPDX-License-Identifier: Apache-2.0
// Resolves names of parts of a cluster to hosts.
#include "sim/question/losses/incidents_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "sim/base/text/words.h"
#include "sim/question/losses/entry_time.h"

namespace orrery {
namespace {

constexpr std::size_t most_incidents = 100'000;

FleetTime time_of(const JsonValue& at) {
  return read_fleet_time(at, Seconds{}, "a time from 0 to 1,000 years, such as \"100 h\"");
}

FleetTime time_in(const JsonValue& entry, const char* key) {
  const auto at = entry.find(key);
  return at ? time_of(*at) : FleetTime{};
}

// A kind of part, as `what` names it, and the level of switches that it stands for.
struct PartName {
  const char* what;
  const char* level;
};
constexpr PartName part_names[] = {
    {"domain", "domain"}, {"leaf", "leaf group"}, {"pod", "pod"}, {"core", "core group"}};

struct Part {
  std::string name;    // "leaf group"
  std::int32_t reach;  // hosts
};

std::vector<std::pair<std::string, Part>> parts_of(const SlotShape& shape) {
  std::vector<std::pair<std::string, Part>> parts = {{"host", {"host", 1}}};
  for (const SlotLevel& level : shape.levels)
    for (const PartName& part : part_names)
      if (level.name == part.level) parts.emplace_back(part.what, Part{level.name, level.reach});
  parts.emplace_back("cluster", Part{"cluster", shape.hosts});
  return parts;
}

std::int32_t groups_of(const SlotShape& shape, const Part& part) {
  return (shape.hosts + part.reach - 1) / part.reach;
}

// "16-23" or "16-23,30", ascending, each once.
std::vector<std::int32_t> listed_hosts(const JsonValue& at, const SlotShape& shape) {
  const std::string text = at.is_number() ? fmt::format("{}", at.integer()) : at.text();
  const auto fail = [&] {
    at.fail(fmt::format("hosts from 0 to {}, such as \"16-23\" or \"2,5\"", shape.hosts - 1));
  };
  std::vector<std::int32_t> hosts;
  const char* from = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int32_t first = 0, last = 0;
    auto read = std::from_chars(from, end, first);
    if (read.ec != std::errc{}) fail();
    last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || first < 0 || last < first || last >= shape.hosts) fail();
    for (std::int32_t host = first; host <= last; ++host) hosts.push_back(host);
    if (read.ptr == end) break;
    if (*read.ptr != ',') fail();
    from = read.ptr + 1;
  }
  std::sort(hosts.begin(), hosts.end());
  if (std::adjacent_find(hosts.begin(), hosts.end()) != hosts.end()) at.fail("each host once");
  return hosts;
}

std::size_t feed_called(const JsonValue& at, const std::vector<PowerFeed>& all) {
  const auto feed = std::find_if(all.begin(), all.end(),
                                 [&](const PowerFeed& one) { return one.name == at.text(); });
  if (feed == all.end())
    at.fail(fmt::format("a feed, from {} to {}", all.front().name, all.back().name));
  return static_cast<std::size_t>(feed - all.begin());
}

// Its hosts go out, or its limit falls where a supply is left.
void read_feed(const JsonValue& entry, const SlotShape& shape, const FeedTree& feeds,
               Incident& out) {
  if (feeds.empty()) entry.at("what").fail("another part: the question has no feeds of power");
  const std::vector<PowerFeed> all = feeds_of(feeds, shape.hosts);
  const std::size_t number = feed_called(entry.at("which"), all);
  const PowerFeed& feed = all[number];
  out.name = "feed of " + feed.name;
  std::size_t level = 0, first = 0;
  const auto of_level = [&] {
    return static_cast<std::size_t>((shape.hosts + feeds[level].reach - 1) / feeds[level].reach);
  };
  while (number >= first + of_level()) first += of_level(), ++level;
  if (feeds[level].share_left > 0) {
    out.feed = static_cast<std::int32_t>(number);
    out.limit_left = std::llround(static_cast<double>(feed.limit) * feeds[level].share_left);
    for (const char* key : {"drain", "latency"})
      if (const auto v = entry.find(key))
        v->fail("nothing where a supply is left: no host goes out");
    return;
  }
  for (std::int32_t host = feed.from; host < feed.to; ++host) out.hosts.push_back(host);
}

// Its name and hosts.
void read_part(const JsonValue& entry, const SlotShape& shape, const FeedTree& feeds,
               Incident& out) {
  if (const auto hosts = entry.find("hosts")) {
    for (const char* key : {"what", "which"})
      if (const auto v = entry.find(key))
        if (std::string(key) == "which" || v->text() != "host") v->fail("nothing beside hosts");
    out.hosts = listed_hosts(*hosts, shape);
    out.name =
        "hosts " + (hosts->is_number() ? fmt::format("{}", hosts->integer()) : hosts->text());
    return;
  }
  const auto parts = parts_of(shape);
  std::vector<std::string> names;
  for (const auto& [what, part] : parts) names.push_back(what);
  const JsonValue what = entry.at("what");
  if (what.text() == "feed") {
    read_feed(entry, shape, feeds, out);
    return;
  }
  if (!feeds.empty()) names.emplace_back("feed");
  if (std::find(names.begin(), names.end(), what.text()) == names.end())
    what.fail("a part that this cluster has: " + joined(names, ", "));
  const Part& part = parts[what.index_in(names)].second;
  std::int64_t number = 0;
  if (part.name == "cluster") {
    if (const auto which = entry.find("which")) which->fail("nothing beside the whole cluster");
    out.name = "cluster";
  } else {
    const std::int32_t all = groups_of(shape, part);
    const JsonValue which = entry.at("which");
    number = which.integer();
    if (number < 0 || number >= all)
      which.fail(fmt::format("a {} from 0 to {}: this cluster has {}", part.name, all - 1,
                             plural(all, part.name)));
    out.name = fmt::format("{} {}", part.name, number);
  }
  const auto first = static_cast<std::int32_t>(number) * part.reach;
  for (std::int32_t host = first; host < std::min(shape.hosts, first + part.reach); ++host)
    out.hosts.push_back(host);
}

Incident read_incident(const JsonValue& entry, const SlotShape& shape, const FeedTree& feeds) {
  entry.expect_only(
      {"name", "at", "for", "what", "which", "hosts", "latency", "drain", "announced"});
  Incident out{.name = "", .at = time_of(entry.at("at")), .length = time_of(entry.at("for"))};
  read_part(entry, shape, feeds, out);
  if (const auto drain = entry.find("drain")) out.drain = drain->boolean();
  if (out.drain) out.name += ", drained";
  if (const auto name = entry.find("name")) out.name = name->text();
  out.latency = time_in(entry, "latency");
  out.announced = time_in(entry, "announced");
  if (out.drain && entry.has("latency"))
    entry.at("latency").fail("nothing beside drain: what is planned is known at once");
  if (!out.drain && entry.has("announced"))
    entry.at("announced").fail("nothing without drain: only what is planned is announced");
  if (out.latency.us > 0 && out.latency >= out.length)
    entry.at("latency").fail("less than it lasts (for)");
  return out;
}

}  // namespace

JsonValue held_list(const JsonValue& at) {
  if (at.is_string()) return JsonValue::load(at.text());
  if (!at.is_object() || !at.has("text")) return at;
  at.expect_only({"name", "text"});
  return JsonValue::parse(at.at("text").text(), at.at("name").text());
}

std::vector<Incident> read_incidents(const JsonValue& at, const SlotShape& shape,
                                     const FeedTree& feeds) {
  const JsonValue list = held_list(at);
  if (!list.is_array()) list.fail("a list of incidents: [{\"at\": .., \"for\": .., \"what\": ..}]");
  std::vector<Incident> out;
  for (const JsonValue& entry : list.items()) {
    if (out.size() == most_incidents) list.fail(fmt::format("at most {} of them", most_incidents));
    out.push_back(read_incident(entry, shape, feeds));
  }
  return out;
}

}  // namespace orrery
