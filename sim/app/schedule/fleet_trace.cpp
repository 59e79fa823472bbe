// SPDX-License-Identifier: Apache-2.0
// Keeps what has begun and not ended, and writes it as slices.
#include "sim/app/schedule/fleet_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/schedule/event_rows.h"

namespace orrery {
namespace {

// Processes of the trace.
constexpr std::int64_t cluster = 0, queue = 1, repair = 2, first_group = 3;

// Hosts that are drawn together: of the innermost level of switches, or all.
std::int32_t hosts_of_group(const SlotShape& shape) {
  return shape.levels.empty() ? shape.hosts : shape.levels.front().reach;
}

}  // namespace

std::int64_t TraceLanes::take() {
  if (free_.empty()) return all_++;
  const std::int64_t lane = *free_.begin();
  free_.erase(free_.begin());
  return lane;
}

void FleetTrace::begin(const Scheduled& asked) {
  asked_ = &asked;
  const FleetQuestion& question = asked.points.front().asked.question;
  shape_ = question.shape;
  const std::int32_t reach = hosts_of_group(shape_);
  lanes_.resize(static_cast<std::size_t>((shape_.hosts + reach - 1) / reach));
  events_.name_process(cluster, "cluster");
  events_.name_process(queue, "jobs that wait");
  events_.name_process(repair, "hosts under repair");
  const std::string name = shape_.levels.empty() ? "hosts" : shape_.levels.front().name;
  for (std::size_t group = 0; group < lanes_.size(); ++group)
    events_.name_process(first_group + static_cast<std::int64_t>(group),
                         lanes_.size() == 1 ? name : fmt::format("{} {}", name, group));
  levels_.milliwatts = question.idle_milliwatts * shape_.gpus();
  for (std::int32_t i = 0; i < question.breakdowns.spare_hosts; ++i)
    levels_.out += shape_.gpus_of(shape_.hosts - 1 - i);
  written_levels_.held = -1;  // none
}

void FleetTrace::take(const FleetEvent& event) {
  if (ended_early_) return;
  if (event.at != now_) {
    write_levels();
    now_ = event.at;
  }
  if (written_ >= most_) {
    end_all();
    ended_early_ = now_;
    return;
  }
  using enum FleetEventKind;
  if (event.kind == eligible || (event.kind == submit && event.cause.empty())) wait(event);
  if (event.kind == start) start_of(event);
  if (event.kind == restart) {
    Running& running = running_.at(event.job);
    close(event.job, running, event.at, std::string(event.cause));
    running.since = event.at;
  }
  if (event.kind == stop || event.kind == end || event.kind == cut) leave(event);
  if (event.kind == stop) wait(event);
  if (event.kind == power) levels_.milliwatts = event.milliwatts;
  if (event.kind == out || event.kind == in || event.kind == repaired) hosts_changed(event);
}

void FleetTrace::wait(const FleetEvent& event) {
  waiting_[event.job] = {event.at, waiting_lanes_.take(), std::string(event.cause)};
  ++levels_.waiting;
}

std::vector<FleetTrace::Part> FleetTrace::parts_of(const FleetEvent& event) {
  std::map<std::int64_t, std::int64_t> milli;  // by group
  if (event.place == nullptr) milli[0] = milli_gpus(event);
  const std::int32_t reach = hosts_of_group(shape_);
  if (event.place != nullptr && event.milli > 0) {
    milli[event.place->front().host / reach] = event.milli;
  } else if (event.place != nullptr) {
    for (const HostGrant& grant : *event.place)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts;) {
        const std::int32_t next = std::min(grant.host + grant.hosts, (host / reach + 1) * reach);
        milli[host / reach] += std::int64_t{next - host} * grant.gpus * whole_gpu;
        host = next;
      }
  }
  std::vector<Part> parts;
  for (const auto& [group, number] : milli)
    parts.push_back({group, lanes_[static_cast<std::size_t>(group)].take(), number});
  return parts;
}

void FleetTrace::start_of(const FleetEvent& event) {
  const auto waited = waiting_.find(event.job);
  const Alone from = waited->second;
  waiting_.erase(waited);
  waiting_lanes_.give(from.lane);
  --levels_.waiting;
  Running running{.since = event.at,
                  .parts = parts_of(event),
                  .milli = milli_gpus(event),
                  .hosts = event.place != nullptr ? hosts_text(event) : ""};
  levels_.held += running.milli;
  const auto [begin, end] = shown(from.since, event.at);
  if (begin < end) {
    Json details = {{"gpus", gpus_json(running.milli)}};
    if (!from.why.empty()) details["stopped by"] = from.why;
    slice(asked_->jobs.id_of(event.job), "wait", queue, from.lane, from.since, event.at, details);
    if (event.at < to_) {
      events_.arrow_from(++arrows_, queue, from.lane, begin);
      events_.arrow_to(arrows_, first_group + running.parts.front().group,
                       running.parts.front().lane, event.at);
    }
  }
  running_[event.job] = std::move(running);
}

void FleetTrace::leave(const FleetEvent& event) {
  const auto at = running_.find(event.job);
  Running& running = at->second;
  close(event.job, running, event.at,
        event.kind == FleetEventKind::end   ? ""
        : event.kind == FleetEventKind::cut ? "the run ends"
                                            : std::string(event.cause));
  for (const Part& part : running.parts)
    lanes_[static_cast<std::size_t>(part.group)].give(part.lane);
  levels_.held -= running.milli;
  running_.erase(at);
}

void FleetTrace::hosts_changed(const FleetEvent& event) {
  if (event.kind == FleetEventKind::in) levels_.out -= event.gpus;
  if (event.kind == FleetEventKind::out) levels_.out += event.gpus;
  if (event.kind == FleetEventKind::in) return;
  for (const HostGrant& grant : *event.place) {
    if (event.kind == FleetEventKind::out) {
      repaired_[grant.host] = {event.at, repair_lanes_.take(), std::string(event.cause)};
      continue;
    }
    const Alone& from = repaired_.at(grant.host);
    slice(fmt::format("host {}", grant.host), "repair", repair, from.lane, from.since, event.at,
          {{"broke", from.why}});
    repair_lanes_.give(from.lane);
    repaired_.erase(grant.host);
  }
}

// A slice in each group that it has hosts in.
void FleetTrace::close(std::uint32_t job, Running& running, FleetTime at, const std::string& why) {
  const std::string queue_name =
      asked_->jobs.queues[static_cast<std::size_t>(asked_->jobs.jobs[job].queue)];
  for (const Part& part : running.parts) {
    Json details = {{"gpus here", gpus_json(part.milli)}, {"gpus", gpus_json(running.milli)}};
    if (!running.hosts.empty()) details["hosts"] = running.hosts;
    if (!why.empty()) details["stopped by"] = why;
    slice(asked_->jobs.id_of(job), queue_name, first_group + part.group, part.lane, running.since,
          at, details);
  }
}

std::pair<FleetTime, FleetTime> FleetTrace::shown(FleetTime from, FleetTime to) const {
  return {std::max(from, from_), std::min(to, to_)};
}

void FleetTrace::slice(const std::string& name, const std::string& category, std::int64_t process,
                       std::int64_t lane, FleetTime from, FleetTime to, const Json& details) {
  const auto [begin, end] = shown(from, to);
  if (!(begin < end)) return;
  events_.slice(name, category, process, lane, begin, end - begin, details);
  ++written_;
}

// What held until the last event; it begins then.
void FleetTrace::write_levels() {
  if (levels_ == written_levels_ || now_ >= to_) return;
  if (now_ < from_) return;
  written_levels_ = levels_;
  ++written_;
  const std::int64_t free = (shape_.gpus() - levels_.out) * whole_gpu - levels_.held;
  events_.counter("GPUs", cluster, now_,
                  {{"held", gpus_json(levels_.held)},
                   {"free", gpus_json(free)},
                   {"out of order", levels_.out}});
  events_.counter("jobs that wait", cluster, now_, {{"jobs", levels_.waiting}});
  events_.counter("MW", cluster, now_, {{"MW", static_cast<double>(levels_.milliwatts) * 1e-9}});
}

void FleetTrace::end_all() {
  write_levels();
  for (auto& [job, running] : running_) close(job, running, now_, "the trace ends");
  for (const auto& [job, from] : waiting_)
    slice(asked_->jobs.id_of(job), "wait", queue, from.lane, from.since, now_, nullptr);
  for (const auto& [host, from] : repaired_)
    slice(fmt::format("host {}", host), "repair", repair, from.lane, from.since, now_,
          {{"broke", from.why}});
  running_.clear();
  waiting_.clear();
  repaired_.clear();
}

std::string FleetTrace::text() {
  if (!ended_early_) end_all();
  return events_.text();
}

}  // namespace orrery
