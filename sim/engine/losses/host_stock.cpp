// SPDX-License-Identifier: Apache-2.0
// Counts reasons host by host, and exchanges hosts for spare ones.
#include "sim/engine/losses/host_stock.h"

#include <algorithm>

namespace orrery {

HostStock::HostStock(FleetState& state, const FleetQuestion& question)
    : state_(state),
      tell_(question.tell),
      away_(may_lose_hosts(question) ? static_cast<std::size_t>(question.shape.hosts) : 0),
      drains_(away_.size()) {
  for (std::int32_t i = 0; i < question.breakdowns.spare_hosts; ++i) {
    const std::int32_t host = question.shape.hosts - 1 - i;
    spares_.insert(host);
    spare_gpus_ += question.shape.gpus_of(host);
    state_.slots().set_out(host, true);
  }
  most_gpus_ = state_.slots().total() - spare_gpus_;
}

void HostStock::set(std::int32_t host) {
  const auto at = static_cast<std::size_t>(host);
  const bool out = away_[at] > 0 || drains_[at] > 0 || spares_.contains(host);
  if (state_.slots().is_out(host) != out) state_.slots().set_out(host, out);
}

std::vector<std::int32_t> HostStock::leave(std::span<const std::int32_t> hosts) {
  std::vector<std::int32_t> worked;
  for (const std::int32_t host : hosts) {
    if (++away_[static_cast<std::size_t>(host)] > 1) continue;
    if (spares_.erase(host) > 0) {
      spare_gpus_ -= state_.slots().shape().gpus_of(host);
      continue;
    }
    worked.push_back(host);
    set(host);
  }
  return worked;
}

std::vector<std::uint32_t> HostStock::jobs_on(std::span<const std::int32_t> hosts) const {
  std::vector<std::uint32_t> jobs;
  for (const std::int32_t host : hosts)
    jobs.insert(jobs.end(), state_.jobs_on(host).begin(), state_.jobs_on(host).end());
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  return jobs;
}

void HostStock::stand_in(FleetTime now, std::span<const std::int32_t> hosts,
                         std::string_view cause) {
  tell(FleetEventKind::out, now, hosts, cause);
  told_out_.insert(hosts.begin(), hosts.end());
  for (std::size_t i = 0; i < hosts.size(); ++i) stand_in(now);
}

// A spare host that is to be drained does not begin to work.
void HostStock::stand_in(FleetTime now) {
  const auto spare = std::find_if(spares_.begin(), spares_.end(), [&](std::int32_t host) {
    return drains_[static_cast<std::size_t>(host)] == 0;
  });
  if (spare == spares_.end()) {
    ++lacking_;
    return;
  }
  const std::int32_t host = *spare;
  spares_.erase(spare);
  spare_gpus_ -= state_.slots().shape().gpus_of(host);
  set(host);
  tell(FleetEventKind::in, now, {&host, 1});
}

bool HostStock::come_back(FleetTime now, std::span<const std::int32_t> hosts) {
  std::vector<std::int32_t> back;
  for (const std::int32_t host : hosts)
    if (--away_[static_cast<std::size_t>(host)] == 0) back.push_back(host);
  // Whoever stood by when it went away was not missed.
  std::vector<std::int32_t> told;
  for (const std::int32_t host : back)
    if (told_out_.erase(host) > 0) told.push_back(host);
  tell(FleetEventKind::repaired, now, told);
  for (const std::int32_t host : back) {
    if (lacking_ > 0) {
      --lacking_;
      set(host);
      tell(FleetEventKind::in, now, {&host, 1});
    } else {
      spares_.insert(host);
      spare_gpus_ += state_.slots().shape().gpus_of(host);
    }
  }
  return !back.empty();
}

void HostStock::drain(std::span<const std::int32_t> hosts) {
  for (const std::int32_t host : hosts) {
    ++drains_[static_cast<std::size_t>(host)];
    set(host);
  }
}

void HostStock::end_drain(std::span<const std::int32_t> hosts) {
  for (const std::int32_t host : hosts) {
    --drains_[static_cast<std::size_t>(host)];
    set(host);
  }
}

void HostStock::tell(FleetEventKind kind, FleetTime at, std::span<const std::int32_t> hosts,
                     std::string_view cause) const {
  if (!tell_ || hosts.empty()) return;
  const SlotShape& shape = state_.slots().shape();
  Grants place;
  for (const std::int32_t host : hosts)
    place.push_back({.host = host, .hosts = 1, .gpus = shape.gpus_of(host)});
  tell_({.at = at, .kind = kind, .gpus = gpus_of_place(place), .cause = cause, .place = &place});
}

}  // namespace orrery
