// SPDX-License-Identifier: Apache-2.0
// Knows colour refinement: how classes of flows and links split until nothing tells members apart.
#include "sim/engine/flows/symmetry.h"

#include <algorithm>
#include <bit>
#include <span>

#include "sim/base/errors/check.h"

namespace orrery {

namespace {

__extension__ using Wide = unsigned __int128;

// The finaliser of splitmix64 (Steele et al., OOPSLA 2014): a bijection that spreads every bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

constexpr std::uint32_t no_class = 0xffffffff;

// Uses in whole units and both directions, without those of weight 0.
struct Incidence {
  std::vector<std::uint32_t> first_use;  // of every flow, and the end
  std::vector<LinkIndex> link;           // of every use, by flow
  std::vector<std::int64_t> units;
  std::vector<std::uint32_t> first_back;  // of every link, and the end
  std::vector<FlowIndex> flow;            // by link
  std::vector<std::int64_t> back_units;

  explicit Incidence(const FlowTable& table);
};

Incidence::Incidence(const FlowTable& table) {
  first_use.reserve(table.flows.size() + 1);
  link.reserve(table.uses.size());
  units.reserve(table.uses.size());
  first_back.assign(table.links.size() + 2, 0);
  for (const FlowEntry& entry : table.flows) {
    first_use.push_back(static_cast<std::uint32_t>(link.size()));
    for (const FlowUse& use : table.uses_of(entry)) {
      CHECK_THAT(use.link < table.links.size(), "a flow uses a link that the table lacks");
      const std::int64_t whole = weight_units(use.weight);
      if (whole == 0) continue;
      link.push_back(use.link);
      units.push_back(whole);
      ++first_back[use.link + 2];
    }
  }
  first_use.push_back(static_cast<std::uint32_t>(link.size()));
  for (std::size_t l = 2; l < first_back.size(); ++l) first_back[l] += first_back[l - 1];
  flow.resize(link.size());
  back_units.resize(link.size());
  for (FlowIndex f = 0; f + 1 < first_use.size(); ++f)
    for (std::uint32_t u = first_use[f]; u < first_use[f + 1]; ++u) {
      const std::uint32_t place = first_back[link[u] + 1]++;
      flow[place] = f;
      back_units[place] = units[u];
    }
  first_back.pop_back();
}

// Classes of flows, or of links. What a round touches is split by signature; what it does not
// touch keeps its class, whose other members it stays equal to: their neighbours' classes are the
// same as before.
class Partition {
 public:
  explicit Partition(std::size_t members) : class_of_(members, 0), signature_(members, 0) {
    if (members > 0) size_.push_back(static_cast<std::uint32_t>(members));
  }
  std::uint32_t of(std::uint32_t member) const { return class_of_[member]; }
  std::span<const std::uint32_t> classes() const { return class_of_; }
  std::size_t count() const { return size_.size(); }
  std::uint64_t& signature(std::uint32_t member) { return signature_[member]; }
  // Splits classes by signature() of `touched` members, appends those that moved.
  void split(std::span<const std::uint32_t> touched, std::vector<std::uint32_t>& moved);

 private:
  struct Group {
    std::uint64_t signature;
    std::uint32_t in, becomes, members;
  };
  std::uint32_t group_of(std::uint32_t member, std::size_t mask);
  void name_groups();

  std::vector<std::uint32_t> class_of_, size_;
  std::vector<std::uint64_t> signature_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_, buckets_;       // of every touched member; open addressing
  std::vector<std::uint32_t> touched_in_, largest_;  // of every class, all 0 between splits
};

std::uint32_t Partition::group_of(std::uint32_t member, std::size_t mask) {
  const std::uint32_t in = class_of_[member];
  const std::uint64_t signature = signature_[member];
  for (std::size_t b = mix(signature + in) & mask;; b = (b + 1) & mask) {
    const std::uint32_t g = buckets_[b];
    if (g == no_class) {
      buckets_[b] = static_cast<std::uint32_t>(groups_.size());
      groups_.push_back({.signature = signature, .in = in, .becomes = in, .members = 0});
      return buckets_[b];
    }
    if (groups_[g].signature == signature && groups_[g].in == in) return g;
  }
}

// The largest group of a class keeps its name, so that the fewest neighbours have to look again;
// but not where some members were not touched: those keep it.
void Partition::name_groups() {
  touched_in_.resize(size_.size(), 0);
  largest_.resize(size_.size(), no_class);
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    touched_in_[group.in] += group.members;
    std::uint32_t& best = largest_[group.in];
    if (best == no_class || groups_[best].members < group.members) best = g;
  }
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    if (touched_in_[group.in] == size_[group.in] && largest_[group.in] == g) continue;
    group.becomes = static_cast<std::uint32_t>(size_.size());
    size_.push_back(group.members);
  }
  for (const Group& group : groups_) {
    touched_in_[group.in] = 0;
    largest_[group.in] = no_class;
  }
  for (const Group& group : groups_)
    if (group.becomes != group.in) size_[group.in] -= group.members;
}

void Partition::split(std::span<const std::uint32_t> touched, std::vector<std::uint32_t>& moved) {
  const std::size_t mask = std::bit_ceil(2 * touched.size() + 1) - 1;
  buckets_.assign(mask + 1, no_class);
  groups_.clear();
  group_.resize(touched.size());
  for (std::size_t i = 0; i < touched.size(); ++i) {
    group_[i] = group_of(touched[i], mask);
    ++groups_[group_[i]].members;
  }
  name_groups();
  for (std::size_t i = 0; i < touched.size(); ++i) {
    const Group& group = groups_[group_[i]];
    if (group.becomes == group.in) continue;
    moved.push_back(touched[i]);
    class_of_[touched[i]] = group.becomes;
  }
}

// Names of classes as random-looking numbers; another salt gives others.
class Refinement {
 public:
  Refinement(const FlowTable& table, const Incidence& uses, std::uint64_t salt);
  int run();  // number of rounds
  const Partition& flows() const { return flows_; }
  const Partition& links() const { return links_; }

 private:
  void colour_members(const FlowTable& table);
  void touch_flows();
  void sign_flow(FlowIndex flow);
  void sign_links();
  std::uint64_t name(std::uint32_t class_index) const { return mix(class_index ^ salt_); }

  const Incidence& uses_;
  std::uint64_t salt_;
  Partition flows_, links_;
  std::vector<std::uint32_t> moved_flows_, moved_links_;
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint64_t>
      seen_;  // by class of links: in which call of sign_flow it was seen last
  std::uint64_t calls_ = 0;
  std::vector<std::uint8_t> is_touched_flow_, is_touched_link_;
  // Sum over a link's uses by moved flows of class name times weight, in 128 bits: weights are
  // multiples of high powers of two, which a sum of 64 bits would lose to collisions.
  std::vector<Wide> sums_;
};

Refinement::Refinement(const FlowTable& table, const Incidence& uses, std::uint64_t salt)
    : uses_(uses),
      salt_(mix(salt)),
      flows_(table.flows.size()),
      links_(table.links.size()),
      is_touched_flow_(table.flows.size(), 0),
      is_touched_link_(table.links.size(), 0),
      sums_(table.links.size(), 0) {
  colour_members(table);
}

// First classes are what members say of themselves. Then all count as moved.
void Refinement::colour_members(const FlowTable& table) {
  std::vector<std::uint32_t> unused;
  for (std::uint32_t f = 0; f < table.flows.size(); ++f) {
    const FlowEntry& flow = table.flows[f];
    std::uint64_t own = mix(bits(flow.bytes) + salt_);
    own = mix(own ^ bits(flow.cap));
    own = mix(own ^ static_cast<std::uint32_t>(flow.priority));
    flows_.signature(f) = mix(own ^ flow.colour);
    touched_.push_back(f);
  }
  flows_.split(touched_, unused);
  touched_.clear();
  for (std::uint32_t l = 0; l < table.links.size(); ++l) {
    const LinkEntry& link = table.links[l];
    links_.signature(l) = mix(mix(bits(link.capacity) + salt_) ^ link.colour);
    touched_.push_back(l);
  }
  links_.split(touched_, unused);
  for (std::uint32_t l = 0; l < table.links.size(); ++l) moved_links_.push_back(l);
}

int Refinement::run() {
  for (int rounds = 1;; ++rounds) {
    touch_flows();
    moved_flows_.clear();
    if (rounds == 1) {
      touched_.clear();
      for (FlowIndex f = 0; f < is_touched_flow_.size(); ++f) touched_.push_back(f);
    }
    seen_.resize(links_.count(), 0);
    for (const FlowIndex f : touched_) {
      is_touched_flow_[f] = 0;
      sign_flow(f);
    }
    flows_.split(touched_, moved_flows_);
    if (rounds == 1) moved_flows_ = touched_;  // links have seen none yet
    sign_links();
    moved_links_.clear();
    links_.split(touched_, moved_links_);
    if (moved_links_.empty()) return rounds;
  }
}

void Refinement::touch_flows() {
  touched_.clear();
  for (const LinkIndex link : moved_links_)
    for (std::uint32_t b = uses_.first_back[link]; b < uses_.first_back[link + 1]; ++b) {
      const FlowIndex flow = uses_.flow[b];
      if (is_touched_flow_[flow]) continue;
      is_touched_flow_[flow] = 1;
      touched_.push_back(flow);
    }
}

// The set of link classes, each once, in a sum that no order changes.
void Refinement::sign_flow(FlowIndex flow) {
  std::uint64_t sum = 0;
  ++calls_;
  for (std::uint32_t u = uses_.first_use[flow]; u < uses_.first_use[flow + 1]; ++u) {
    const std::uint32_t link_class = links_.of(uses_.link[u]);
    if (seen_[link_class] == calls_) continue;
    seen_[link_class] = calls_;
    sum += name(link_class);
  }
  flows_.signature(flow) = sum;
}

// By the weights from new classes alone: links of a class had equal weights from each old one, so
// that what a split leaves under the old name is equal where the rest is.
void Refinement::sign_links() {
  touched_.clear();
  for (const FlowIndex flow : moved_flows_) {
    const Wide own = name(flows_.of(flow));
    for (std::uint32_t u = uses_.first_use[flow]; u < uses_.first_use[flow + 1]; ++u) {
      const LinkIndex link = uses_.link[u];
      sums_[link] += own * static_cast<std::uint64_t>(uses_.units[u]);
      if (is_touched_link_[link]) continue;
      is_touched_link_[link] = 1;
      touched_.push_back(link);
    }
  }
  for (const LinkIndex link : touched_) {
    is_touched_link_[link] = 0;
    links_.signature(link) = mix(static_cast<std::uint64_t>(sums_[link] >> 64)) ^
                             mix(static_cast<std::uint64_t>(sums_[link]) + salt_);
    sums_[link] = 0;
  }
}

// Renumbers classes by their first members; returns these.
std::vector<std::uint32_t> first_members(std::span<const std::uint32_t> classes, std::size_t count,
                                         std::vector<std::uint32_t>& renamed) {
  std::vector<std::uint32_t> first, name(count, no_class);
  renamed.reserve(classes.size());
  for (std::uint32_t m = 0; m < classes.size(); ++m) {
    std::uint32_t& to = name[classes[m]];
    if (to == no_class) {
      to = static_cast<std::uint32_t>(first.size());
      first.push_back(m);
    }
    renamed.push_back(to);
  }
  return first;
}

double exact_weight(std::int64_t units) {
  CHECK_THAT(units <= INT64_C(1) << 52, "weights of a folded link add up beyond 2^22");
  return static_cast<double>(units) * weight_unit;
}

// Units that one link takes from every flow class.
class ClassWeights {
 public:
  explicit ClassWeights(std::size_t flow_classes) : units_(flow_classes, 0) {}
  void gather(const Incidence& uses, std::span<const FlowIndex> flow_class, LinkIndex link) {
    for (const FlowIndex c : present_) units_[c] = 0;
    present_.clear();
    for (std::uint32_t b = uses.first_back[link]; b < uses.first_back[link + 1]; ++b) {
      const FlowIndex c = flow_class[uses.flow[b]];
      if (units_[c] == 0) present_.push_back(c);
      units_[c] += uses.back_units[b];
    }
  }
  std::span<const FlowIndex> present() const { return present_; }  // flow classes with weight
  std::int64_t units(FlowIndex flow_class) const { return units_[flow_class]; }

 private:
  std::vector<std::int64_t> units_;
  std::vector<FlowIndex> present_;
};

void build_table(const FlowTable& table, const Incidence& uses,
                 std::span<const LinkIndex> link_representative, Folded& folded) {
  FlowTable& quotient = folded.table;
  for (const FlowIndex f : folded.representative) {
    quotient.flows.push_back(table.flows[f]);
    quotient.flows.back().count = 0;
    quotient.flows.back().uses = 0;
  }
  for (std::size_t f = 0; f < table.flows.size(); ++f)
    quotient.flows[folded.flow_class[f]].count += table.flows[f].count;
  for (const LinkIndex l : link_representative) {
    quotient.links.push_back(table.links[l]);
    quotient.links.back().count = 0;
  }
  for (std::size_t l = 0; l < table.links.size(); ++l)
    quotient.links[folded.link_class[l]].count += table.links[l].count;

  ClassWeights weights(quotient.flows.size());
  for (const LinkIndex l : link_representative) {
    weights.gather(uses, folded.flow_class, l);
    for (const FlowIndex c : weights.present()) ++quotient.flows[c].uses;
  }
  std::uint32_t next = 0;
  for (FlowEntry& flow : quotient.flows) {
    flow.first_use = next;
    next += flow.uses;
    flow.uses = 0;
  }
  quotient.uses.resize(next);
  for (LinkIndex k = 0; k < link_representative.size(); ++k) {
    weights.gather(uses, folded.flow_class, link_representative[k]);
    for (const FlowIndex c : weights.present()) {
      FlowEntry& flow = quotient.flows[c];
      quotient.uses[flow.first_use + flow.uses++] = {k, exact_weight(weights.units(c))};
    }
  }
}

bool equal_entries(const FlowTable& table, const Folded& folded) {
  for (std::size_t f = 0; f < table.flows.size(); ++f) {
    const FlowEntry &a = table.flows[f], &b = folded.table.flows[folded.flow_class[f]];
    if (bits(a.bytes) != bits(b.bytes) || bits(a.cap) != bits(b.cap) || a.priority != b.priority ||
        a.colour != b.colour)
      return false;
  }
  for (std::size_t l = 0; l < table.links.size(); ++l) {
    const LinkEntry &a = table.links[l], &b = folded.table.links[folded.link_class[l]];
    if (bits(a.capacity) != bits(b.capacity) || a.colour != b.colour) return false;
  }
  return true;
}

// Every flow uses exactly the link classes that its class's entry lists.
bool equal_sets(const Incidence& uses, const Folded& folded) {
  const FlowTable& quotient = folded.table;
  std::vector<std::uint32_t> seen(quotient.links.size(), 0);
  for (FlowIndex f = 0; f < folded.flow_class.size(); ++f) {
    const FlowEntry& entry = quotient.flows[folded.flow_class[f]];
    const std::span<const FlowUse> listed = quotient.uses_of(entry);
    const auto lists = [&](LinkIndex link_class) {
      const auto at =
          std::lower_bound(listed.begin(), listed.end(), link_class,
                           [](const FlowUse& use, LinkIndex wanted) { return use.link < wanted; });
      return at != listed.end() && at->link == link_class;
    };
    std::uint32_t different = 0;
    for (std::uint32_t u = uses.first_use[f]; u < uses.first_use[f + 1]; ++u) {
      const LinkIndex link_class = folded.link_class[uses.link[u]];
      if (seen[link_class] == f + 1) continue;
      seen[link_class] = f + 1;
      ++different;
      if (!lists(link_class)) return false;
    }
    if (different != entry.uses) return false;
  }
  return true;
}

// Every link takes from every flow class exactly what the entry of its class says.
bool equal_weights(const Incidence& uses, const Folded& folded) {
  const Incidence quotient(folded.table);
  ClassWeights weights(folded.table.flows.size());
  for (LinkIndex l = 0; l < folded.link_class.size(); ++l) {
    const LinkIndex c = folded.link_class[l];
    weights.gather(uses, folded.flow_class, l);
    const std::uint32_t first = quotient.first_back[c], last = quotient.first_back[c + 1];
    if (weights.present().size() != last - first) return false;
    for (std::uint32_t b = first; b < last; ++b)
      if (weights.units(quotient.flow[b]) != quotient.back_units[b]) return false;
  }
  return true;
}

bool is_quotient(const FlowTable& table, const Incidence& uses, const Folded& folded) {
  return equal_entries(table, folded) && equal_sets(uses, folded) && equal_weights(uses, folded);
}

}  // namespace

bool is_quotient(const FlowTable& table, const Folded& folded) {
  return is_quotient(table, Incidence(table), folded);
}

Folded fold(const FlowTable& table) {
  const Incidence uses(table);
  // A hash that takes two signatures for one shows in the verification; another salt then helps.
  for (std::uint64_t salt = 0; salt < 4; ++salt) {
    Refinement refinement(table, uses, salt);
    Folded folded;
    folded.rounds = refinement.run();
    const auto& flows = refinement.flows();
    const auto& links = refinement.links();
    folded.representative = first_members(flows.classes(), flows.count(), folded.flow_class);
    const std::vector<LinkIndex> link_representative =
        first_members(links.classes(), links.count(), folded.link_class);
    build_table(table, uses, link_representative, folded);
    if (is_quotient(table, uses, folded)) return folded;
  }
  CHECK_THAT(false, "colour refinement does not hold up to its verification");
}

}  // namespace orrery
