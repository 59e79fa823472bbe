// SPDX-License-Identifier: Apache-2.0
// Plays jobs on one link out, phase by phase.
#include "sim/engine/jobs/link_sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "topologies/routing/hashing.h"

namespace orrery {
namespace {

constexpr int phases = 16;
constexpr int settling_steps = 2, counted_steps = 8;
constexpr double nothing = 1e-12;

struct Player {
  LinkUser user;
  double volume = 0;  // that a step sends
  bool sending = false;
  double left = 0;  // of the volume, or of the time that it computes
  double rate = 0;
  int steps = 0;
  double first = 0, last = 0;  // ends of its steps: after settling, so far

  void begin_step() {
    sending = false;
    left = (1 - user.busy) * user.step;
  }
};

// Shares of what is left of the link, by need; in order of the list, or all alike.
void share(std::vector<Player>& players, double capacity, bool in_order) {
  if (in_order) {
    for (Player& p : players) {
      if (!p.sending) continue;
      p.rate = std::min(p.user.load, capacity);
      capacity -= p.rate;
    }
    return;
  }
  std::vector<Player*> open;
  for (Player& p : players)
    if (p.sending) open.push_back(&p);
  std::sort(open.begin(), open.end(),
            [](const Player* a, const Player* b) { return a->user.load < b->user.load; });
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i]->rate = std::min(open[i]->user.load, capacity / static_cast<double>(open.size() - i));
    capacity -= open[i]->rate;
  }
}

double time_left(const Player& p) {
  if (!p.sending) return p.left;
  return p.rate > nothing ? p.left / p.rate : std::numeric_limits<double>::infinity();
}

// Ends what is over by now, whatever it is; nothing that takes time.
void go_on(Player& p, double now) {
  for (int turn = 0; turn < 2 && p.left <= nothing * std::max(1.0, p.user.step); ++turn) {
    if (!p.sending && p.volume > 0) {
      p.sending = true;
      p.left = p.volume;
      continue;
    }
    ++p.steps;
    if (p.steps == settling_steps) p.first = now;
    p.last = now;
    p.begin_step();
  }
}

double parts_of(const LinkUser& user) { return user.load * user.uplinks * user.paths; }

double parts_now(const Player& p) {
  return (p.user.hidden + (p.sending ? p.user.load : 0)) * p.user.uplinks * p.user.paths;
}

// Who sends at a time slows the others by chance: their queue pairs meet on links. In order, flows
// in front are not slowed, and leave what they do not use.
class HashedRates {
 public:
  void share(std::vector<Player>& players, bool in_order) {
    double in_front = 0, all = 0;
    for (const Player& p : players) all += parts_now(p);
    for (Player& p : players) {
      const double own = parts_now(p);
      if (p.sending && in_order)
        p.rate = p.user.load * std::max(0.0, 2 - slowdown(p.user, in_front));
      if (p.sending && !in_order) p.rate = p.user.load / slowdown(p.user, all - own);
      in_front += own;
    }
  }

 private:
  double slowdown(const LinkUser& user, double others) {
    const std::tuple key{user.load, user.leaves, std::llround(others)};
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_.emplace(key, hashed_slowdown(user, others)).first->second;
  }
  std::map<std::tuple<double, std::int32_t, long long>, double> known_;
};

// Shares of a link of this capacity, or of hashed ones.
struct RateRule {
  double capacity = 1;
  bool in_order = false;
  HashedRates* hashed = nullptr;
  void share_out(std::vector<Player>& players) const {
    if (hashed != nullptr)
      hashed->share(players, in_order);
    else
      share(players, capacity, in_order);
  }
};

// Losses of each when they begin so far into the step of the first.
std::vector<double> play(std::span<const LinkUser> users, std::span<const double> begins,
                         const RateRule& rule) {
  std::vector<Player> players;
  for (std::size_t i = 0; i < users.size(); ++i) {
    Player p{.user = users[i], .volume = users[i].busy * users[i].step * users[i].load};
    p.begin_step();
    p.left += begins[i];
    players.push_back(p);
  }
  double now = 0;
  const auto done = [](const Player& p) { return p.steps >= settling_steps + counted_steps; };
  // A job of short steps beside one of long ones is not played out for ever.
  constexpr int most_events = 4000;
  for (int event = 0; event < most_events; ++event) {
    if (std::all_of(players.begin(), players.end(), done)) break;
    rule.share_out(players);
    double next = std::numeric_limits<double>::infinity();
    for (const Player& p : players) next = std::min(next, time_left(p));
    now += next;
    for (Player& p : players) {
      p.left = std::max(0.0, p.left - next * (p.sending ? p.rate : 1.0));
      go_on(p, now);
    }
  }
  std::vector<double> losses;
  for (const Player& p : players) {
    const int counted = p.steps - settling_steps;
    losses.push_back(counted > 0 ? std::max(0.0, (p.last - p.first) / counted / p.user.step - 1)
                                 : 0);
  }
  return losses;
}

// Where each job begins, of one of the 16 ways. Steps of the golden ratio spread several jobs
// evenly; the second one of a pair takes each sixteenth once.
std::vector<double> begins_of(std::span<const LinkUser> users, int phase) {
  constexpr double golden = 0.6180339887498949;
  std::vector<double> begins = {0};
  double way = static_cast<double>(phase) / phases;
  for (std::size_t i = 1; i < users.size(); ++i) {
    begins.push_back(way * users[i].step);
    way = std::fmod(way * phases * golden + static_cast<double>(i) * golden, 1.0);
  }
  return begins;
}

}  // namespace

std::vector<double> mean_losses(std::span<const LinkUser> users) {
  std::vector<double> losses;
  for (std::size_t i = 0; i < users.size(); ++i) {
    double others = 0;
    for (std::size_t k = 0; k < users.size(); ++k)
      others += users[k].hidden + (k == i ? 0 : users[k].busy * users[k].load);
    if (users[i].uplinks > 0) {
      const double parts = others * users[i].uplinks * users[i].paths;
      losses.push_back(users[i].busy * (hashed_slowdown(users[i], parts) - 1));
      continue;
    }
    const double left = std::max(1 - others, 1 / static_cast<double>(users.size()));
    losses.push_back(users[i].busy * std::max(0.0, users[i].load / left - 1));
  }
  return losses;
}

double hashed_slowdown(const LinkUser& user, double others) {
  const double own = std::max(1.0, parts_of(user)), paths = user.paths;
  const double alone = ecmp_worst_met(own, 0, user.uplinks, user.leaves);
  const double met = ecmp_worst_met(own, std::max(0.0, others), user.uplinks, user.leaves);
  // Neither is below the time of a flow alone.
  return std::max(paths, met) / std::max(paths, alone);
}

std::vector<double> sharing_losses(std::span<const LinkUser> users, LinkMeeting how) {
  double peak = 0, hidden = 0;
  for (const LinkUser& user : users) {
    peak += user.load + user.hidden;
    hidden += user.hidden;
  }
  const bool hashed = !users.empty() && users.front().uplinks > 0;
  if (users.size() < 2 || (!hashed && peak <= 1 + nothing))
    return std::vector<double>(users.size(), 0.0);
  if (users.size() > most_met) return mean_losses(users);
  const double capacity = std::max(1 - hidden, 1 / static_cast<double>(users.size() + 1));
  HashedRates hashed_rates;
  const RateRule rule{.capacity = capacity,
                      .in_order = how == LinkMeeting::priority,
                      .hashed = hashed ? &hashed_rates : nullptr};
  std::vector<double> mean(users.size(), 0.0), best, worst;
  double least = std::numeric_limits<double>::infinity(), most = -1;
  for (int phase = 0; phase < phases; ++phase) {
    const std::vector<double> losses = play(users, begins_of(users, phase), rule);
    const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    if (sum < least) best = losses;
    if (sum > most) worst = losses;
    least = std::min(least, sum);
    most = std::max(most, sum);
    for (std::size_t i = 0; i < losses.size(); ++i) mean[i] += losses[i] / phases;
  }
  if (how == LinkMeeting::aligned) return worst;
  return how == LinkMeeting::shifted ? best : mean;
}

}  // namespace orrery
