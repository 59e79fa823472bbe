// SPDX-License-Identifier: Apache-2.0
// Knows how flows' bytes settle over time, and in which order an instant's ends and changes count.
#include "sim/engine/flows/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/errors/check.h"

namespace orrery {

namespace {

enum Kind : std::uint32_t { end_kind, start_kind, stop_kind, capacity_kind };

// A flow is through when less than this share of its bytes is missing: what rounding leaves of a
// whole number of picoseconds must not cost one more.
constexpr double rounding_share = 0x1.0p-50;
constexpr double longest = 9.2e18;  // ps: just under the 106 days of int64

// Picoseconds until what is left of so many bytes has passed.
double span_of(double bytes, double moved, double rate) {
  const double left = bytes - moved - bytes * rounding_share;
  return std::max(1.0, std::ceil(left / rate * 1e12));
}

double as_double(std::int64_t bits) { return std::bit_cast<double>(bits); }
std::int64_t as_operand(double value) { return std::bit_cast<std::int64_t>(value); }

}  // namespace

FlowClock::FlowClock(const FlowTable& table) : solver_(table), flows_(table.flows.size()) {
  for (const FlowEntry& flow : table.flows) table_bytes_.push_back(flow.bytes);
}

void FlowClock::start(FlowIndex flow, double bytes, Ticks time) {
  CHECK_THAT(bytes >= 0, "a flow has a negative number of bytes, or none that is a number");
  change(time, {start_kind, flow, as_operand(bytes)});
}

void FlowClock::stop(FlowIndex flow, Ticks time) { change(time, {stop_kind, flow, 0}); }

void FlowClock::set_capacity(LinkIndex link, double bytes_per_second, Ticks time) {
  change(time, {capacity_kind, link, as_operand(bytes_per_second)});
}

// Whatever the queue holds lies after now(): changes of this instant need not pass through it.
void FlowClock::change(Ticks time, const Event& event) {
  CHECK_THAT(time >= now_, "a flow's change lies in the past");
  if (time == now_)
    apply(event);
  else
    queue_.push(time, event);
}

void FlowClock::apply(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.a);
  switch (event.kind) {
    case start_kind:
      return apply_start(index, as_double(event.b));
    case stop_kind:
      return apply_stop(index);
    default:
      solver_.set_capacity(index, as_double(event.b));
      dirty_ = true;
  }
}

void FlowClock::apply_start(FlowIndex index, double bytes) {
  Flow& flow = flows_[index];
  CHECK_THAT(flow.state != State::running, "a flow starts that runs already");
  flow = {.bytes = bytes, .most = flow.most, .settled = now_, .state = State::running};
  if (bytes == 0) {
    flow.state = State::ended;
    ready_.push_back(index);
    return;
  }
  if (std::isfinite(bytes)) ++finite_running_;
  solver_.start(index);
  dirty_ = true;
}

void FlowClock::apply_stop(FlowIndex index) {
  Flow& flow = flows_[index];
  CHECK_THAT(flow.state != State::never_started, "a flow stops that never started");
  if (flow.state == State::ended) return;
  settle(flow);
  flow.state = State::ended;
  queue_.cancel(flow.end);
  if (std::isfinite(flow.bytes)) --finite_running_;
  solver_.stop(index);
  dirty_ = true;
}

void FlowClock::settle(Flow& flow) const {
  const double seconds = static_cast<double>((now_ - flow.settled).ps) * 1e-12;
  flow.moved = std::min(flow.bytes, flow.moved + flow.rate * seconds);
  flow.settled = now_;
}

void FlowClock::solve() {
  for (const FlowIndex index : solver_.solve()) {
    Flow& flow = flows_[index];
    settle(flow);
    flow.rate = solver_.rate(index);
    flow.most = std::max(flow.most, flow.rate);
    queue_.cancel(flow.end);
    flow.end = {};
    if (flow.rate > 0 && std::isfinite(flow.bytes)) schedule_end(index);
  }
  dirty_ = false;
  ++solves_;
}

void FlowClock::schedule_end(FlowIndex index) {
  Flow& flow = flows_[index];
  const double span = span_of(flow.bytes, flow.moved, flow.rate);
  // Beyond engine time there is no end yet: the rate may still rise.
  if (span > longest - static_cast<double>(now_.ps)) return;
  flow.end = queue_.push(now_ + Ticks{static_cast<std::int64_t>(span)}, {end_kind, index, 0});
}

std::optional<Ticks> FlowClock::end_alone(double bytes, double rate) {
  const double span = span_of(bytes, 0, rate);
  if (!(span <= longest)) return std::nullopt;
  return Ticks{static_cast<std::int64_t>(span)};
}

// All of one instant: ends leave before its changes apply, however they were pushed.
void FlowClock::drain(Ticks time) {
  now_ = time;
  changes_.clear();
  ready_.clear();
  next_ready_ = 0;
  Event event;
  for (Ticks at; queue_.peek(at) && at == time;) {
    queue_.pop(at, event);
    if (event.kind != end_kind) {
      changes_.push_back(event);
      continue;
    }
    const auto index = static_cast<FlowIndex>(event.a);
    Flow& flow = flows_[index];
    flow.moved = flow.bytes;
    flow.settled = now_;
    flow.rate = 0;
    flow.state = State::ended;
    --finite_running_;
    solver_.stop(index);
    ready_.push_back(index);
    dirty_ = true;
  }
  for (const Event& changed : changes_) apply(changed);
  std::sort(ready_.begin(), ready_.end());
}

std::optional<FlowClock::End> FlowClock::advance(Ticks until) {
  while (true) {
    if (next_ready_ < ready_.size()) return End{ready_[next_ready_++], now_};
    if (dirty_) solve();
    Ticks at;
    if (!queue_.peek(at) || at > until) return std::nullopt;
    drain(at);
  }
}

std::optional<FlowClock::End> FlowClock::next() {
  const auto end = advance({std::numeric_limits<std::int64_t>::max()});
  if (!end && finite_running_ > 0) fail_cut_off();
  return end;
}

std::optional<FlowClock::End> FlowClock::next_until(Ticks until) {
  CHECK_THAT(until >= now_, "time would go back");
  const auto end = advance(until);
  if (!end) now_ = until;
  return end;
}

double FlowClock::bytes_moved(FlowIndex flow) const {
  Flow settled = flows_[flow];
  if (settled.state == State::running) settle(settled);
  return settled.moved;
}

void FlowClock::fail_cut_off() const {
  throw Error({.path = "network",
               .found = fmt::format("{} flows that no link carries any more", finite_running_),
               .expected = "a path with capacity for every flow, or an end within 106 days"});
}

}  // namespace orrery
