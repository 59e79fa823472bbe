// SPDX-License-Identifier: Apache-2.0
// Lets usage decay, and ranks accounts and users by it.
#include "sim/engine/slurm/multifactor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace orrery {
namespace {

constexpr double unused = std::numeric_limits<double>::infinity();

}  // namespace

void Multifactor::know(std::int32_t queue, std::int32_t user) { accounts_[queue][user]; }

// What is held while usage decays: the integral of 2^(-t / half_life).
double Multifactor::decayed(User& user, double now) const {
  const double left = std::exp2(-(now - user.at) / settings_.half_life);
  user.used =
      user.used * left + user.held * (1 - left) * settings_.half_life / std::numbers::ln2_v<double>;
  user.at = now;
  return user.used;
}

void Multifactor::begin(const MultifactorJob& job, double now) {
  User& user = accounts_.at(job.queue).at(job.user);
  decayed(user, now);
  user.held += job.gpus;
}

void Multifactor::end(const MultifactorJob& job, double now) {
  User& user = accounts_.at(job.queue).at(job.user);
  decayed(user, now);
  user.held -= job.gpus;
}

double Multifactor::usage(std::int32_t queue, std::int32_t user, double now) {
  return decayed(accounts_.at(queue).at(user), now);
}

std::vector<Multifactor::Ranked> Multifactor::users_of(std::map<std::int32_t, User>& users,
                                                       double now) const {
  std::vector<Ranked> out;
  double all = 0;
  for (auto& [number, user] : users) all += decayed(user, now);
  for (auto& [number, user] : users) {
    const double share = 1 / static_cast<double>(users.size());
    out.push_back({user.used > 0 ? share / (user.used / all) : unused, &user});
  }
  return out;
}

void Multifactor::rank(double now) {
  // By share over usage, the highest first; those of equal accounts come together.
  std::map<double, std::vector<Ranked>, std::greater<>> accounts;
  std::size_t count = 0;
  for (auto& [queue, users] : accounts_) {
    std::vector<Ranked> ranked = users_of(users, now);
    double used = 0;
    for (const auto& [number, user] : users) used += user.used;
    std::vector<Ranked>& level = accounts[used > 0 ? 1 / used : unused];
    level.insert(level.end(), ranked.begin(), ranked.end());
    count += users.size();
  }
  std::size_t place = 0;
  for (auto& [level, users] : accounts) {
    std::stable_sort(users.begin(), users.end(),
                     [](const Ranked& a, const Ranked& b) { return a.level > b.level; });
    std::size_t rank = place;
    for (std::size_t i = 0; i < users.size(); ++i, ++place) {
      if (i == 0 || users[i].level != users[i - 1].level) rank = place;
      users[i].user->fairshare = static_cast<double>(count - rank) / static_cast<double>(count);
    }
  }
}

double Multifactor::fairshare(std::int32_t queue, std::int32_t user) const {
  return accounts_.at(queue).at(user).fairshare;
}

std::int64_t Multifactor::priority(const MultifactorJob& job, double now) const {
  const double age = std::min(1.0, (now - job.submit) / settings_.max_age);
  const double sum = settings_.age * age + settings_.fairshare * fairshare(job.queue, job.user) +
                     settings_.jobsize * job.gpus / cluster_gpus_ + settings_.qos * job.qos;
  return static_cast<std::int64_t>(sum);
}

}  // namespace orrery
