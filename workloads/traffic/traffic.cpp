// SPDX-License-Identifier: Apache-2.0
// Draws requests: when they arrive, how long they are, and which texts they share.
#include "workloads/traffic/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// Streams of one seed: what is drawn for a request does not depend on any other request.
enum class Draw : std::uint64_t { gaps, lengths, classes, trace, thinking };

RandomStream stream_of(std::uint64_t seed, Draw what, std::uint64_t number) {
  return {seed, static_cast<std::uint64_t>(what) << 56U | number};
}

[[noreturn]] void fail(const std::string& flag, const std::string& path, const std::string& found,
                       const std::string& expected) {
  throw Error({.file = flag, .path = path, .found = found, .expected = expected});
}

double positive(double value, const std::string& flag, const std::string& path) {
  if (!(value > 0) || !std::isfinite(value))
    fail(flag, path, fmt::format("{}", value), "a number above 0");
  return value;
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), mean 1; a shape
// below 1 by their power of a uniform.
double gamma_of_mean_one(double shape, RandomStream& random) {
  const double above = shape < 1 ? shape + 1 : shape;
  const double d = above - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double drawn = 0;
  while (drawn == 0) {
    const double x = random.normal(0, 1), cube = std::pow(1 + c * x, 3);
    const double u = 1 - random.uniform();
    if (cube > 0 && std::log(u) < 0.5 * x * x + d - d * cube + d * std::log(cube)) drawn = d * cube;
  }
  if (shape < 1) drawn *= std::pow(1 - random.uniform(), 1 / shape);
  return drawn / shape;
}

// Times of one arrival after another, in seconds.
class Clock {
 public:
  Clock(const Traffic& traffic, std::uint64_t seed, const std::string& flag)
      : traffic_(traffic), seed_(seed) {
    if (const auto* poisson = std::get_if<PoissonArrivals>(&traffic.arrivals))
      positive(poisson->rate.si(), flag, "rate");
    if (const auto* gamma = std::get_if<GammaArrivals>(&traffic.arrivals)) {
      positive(gamma->rate.si(), flag, "rate");
      positive(gamma->variation, flag, "variation");
    }
    if (const auto* daily = std::get_if<DailyArrivals>(&traffic.arrivals)) check(*daily, flag);
  }

  Ticks next(std::size_t number) {
    RandomStream random = stream_of(seed_, Draw::gaps, number);
    now_ +=
        std::visit([&](const auto& arrivals) { return gap(arrivals, random); }, traffic_.arrivals);
    return to_ticks(Seconds(now_));
  }

 private:
  static void check(const DailyArrivals& daily, const std::string& flag) {
    double requests = 0;
    for (std::size_t i = 0; i < daily.pieces.size(); ++i) {
      positive(daily.pieces[i].length.si(), flag, fmt::format("pieces[{}].length", i));
      const double rate = daily.pieces[i].rate.si();
      if (!(rate >= 0) || !std::isfinite(rate))
        fail(flag, fmt::format("pieces[{}].rate", i), fmt::format("{}", rate), "no negative rate");
      requests += rate;
    }
    if (requests <= 0) fail(flag, "pieces", "no requests", "a piece with a rate above 0");
  }

  double gap(const PoissonArrivals& a, RandomStream& random) const {
    return random.exponential(1 / a.rate.si());
  }
  double gap(const GammaArrivals& a, RandomStream& random) const {
    return gamma_of_mean_one(1 / (a.variation * a.variation), random) / a.rate.si();
  }
  // What is exponential is the number of requests that are expected until the next.
  double gap(const DailyArrivals& a, RandomStream& random) {
    const double before = now_;
    double expected = random.exponential(1), at = now_;
    for (;;) {
      const RatePiece& piece = a.pieces[piece_ % a.pieces.size()];
      const double left = piece_end(a) - at, of_piece = left * piece.rate.si();
      if (expected < of_piece) return at + expected / piece.rate.si() - before;
      expected -= of_piece;
      at = piece_end(a);
      piece_start_ = at;
      ++piece_;
    }
  }
  double gap(const ClosedLoop&, RandomStream&) const { return 0; }
  double gap(const OfflineArrivals&, RandomStream&) const { return 0; }
  double gap(const TraceArrivals&, RandomStream&) const { return 0; }

  double piece_end(const DailyArrivals& a) const {
    return piece_start_ + a.pieces[piece_ % a.pieces.size()].length.si();
  }

  const Traffic& traffic_;
  std::uint64_t seed_;
  double now_ = 0, piece_start_ = 0;
  std::size_t piece_ = 0;
};

std::int32_t checked(std::int64_t tokens, const std::string& flag) {
  if (tokens < 1 || tokens > most_request_tokens)
    fail(flag, "", fmt::format("{} tokens in a request", tokens), "between 1 and 10^9");
  return static_cast<std::int32_t>(tokens);
}

void check(const Sessions& s, const std::string& flag) {
  if (s.unit_tokens < 1) fail(flag, "unit_tokens", fmt::format("{}", s.unit_tokens), "at least 1");
  if (s.shared < 0) fail(flag, "shared", fmt::format("{}", s.shared), "no negative number");
  if (!(s.think.si() >= 0))
    fail(flag, "think", fmt::format("{}", s.think.si()), "no negative time");
}

class Maker {
 public:
  Maker(const Traffic& traffic, std::uint64_t seed, const std::string& flag)
      : traffic_(traffic), seed_(seed), flag_(flag), clock_(traffic, seed, flag) {
    if (traffic.trace && traffic.sessions)
      fail(flag, "sessions", "sessions and a trace", "one of the two");
    if (traffic.sessions && std::holds_alternative<ClosedLoop>(traffic.arrivals))
      fail(flag, "sessions", "sessions in a closed loop", "arrivals of sessions at a rate");
    double sum = 0;
    for (const TrafficClass& c : traffic.classes)
      bounds_.push_back(sum += positive(c.share, flag, "share"));
    if (bounds_.empty()) fail(flag, "classes", "none", "at least one");
  }

  RequestList made() {
    if (traffic_.trace)
      take_trace();
    else
      draw_all();
    if (list_.requests.empty()) fail(flag_, "requests", "no requests", "at least one");
    list_.hashes = std::make_shared<const std::vector<std::uint32_t>>(std::move(hashes_));
    if (shared_hashes_) list_.hashes = shared_hashes_;
    list_.warmup = traffic_.warmup;
    if (list_.warmup < 0 || list_.warmup >= static_cast<std::int64_t>(list_.requests.size()))
      fail(flag_, "warmup", fmt::format("{} of {} requests", list_.warmup, list_.requests.size()),
           "fewer than there are");
    if (const auto* loop = std::get_if<ClosedLoop>(&traffic_.arrivals)) {
      if (loop->concurrency < 1)
        fail(flag_, "concurrency", fmt::format("{}", loop->concurrency), "at least 1");
      list_.concurrency = loop->concurrency;
    }
    return std::move(list_);
  }

 private:
  void take_trace() {
    const RequestList& trace = *traffic_.trace;
    const auto* replay = std::get_if<TraceArrivals>(&traffic_.arrivals);
    const std::size_t all = trace.requests.size(),
                      asked =
                          static_cast<std::size_t>(std::max<std::int64_t>(traffic_.requests, 0)),
                      count = replay && (asked == 0 || asked > all) ? all : asked;
    const double speed = replay ? positive(replay->speed, flag_, "speed") : 1;
    for (std::size_t i = 0; i < count; ++i) {
      RandomStream random = stream_of(seed_, Draw::trace, i);
      Request r = trace.requests[replay ? i : random.below(all)];
      r.arrival = replay ? to_ticks(to_seconds(r.arrival) / speed) : clock_.next(i);
      list_.requests.push_back(r);
    }
    shared_hashes_ = trace.hashes;
    list_.hash_tokens = trace.hash_tokens;
    list_.classes = trace.classes;
  }

  void draw_all() {
    if (std::holds_alternative<TraceArrivals>(traffic_.arrivals))
      fail(flag_, "arrivals", "arrivals of a trace", "a trace beside them");
    list_.classes.clear();
    for (const TrafficClass& c : traffic_.classes) list_.classes.push_back(c.name);
    if (traffic_.sessions) {
      check(*traffic_.sessions, flag_);
      list_.hash_tokens = traffic_.sessions->unit_tokens;
      next_hash_ = static_cast<std::uint32_t>(traffic_.sessions->shared / list_.hash_tokens);
    }
    for (std::int64_t i = 0; i < traffic_.requests; ++i) {
      const auto number = static_cast<std::size_t>(i);
      const std::size_t kind = class_of(number);
      RandomStream random = stream_of(seed_, Draw::lengths, number);
      Request first{.arrival = clock_.next(number), .class_index = static_cast<std::int32_t>(kind)};
      const TrafficClass& c = traffic_.classes[kind];
      if (traffic_.sessions) {
        add_turns(first, c, *traffic_.sessions, number, random);
        continue;
      }
      first.prompt = checked(draw(c.prompt, random), flag_);
      first.output = checked(draw(c.output, random), flag_);
      list_.requests.push_back(first);
    }
    if (list_.requests.size() > 0x7FFFFFFFU)
      fail(flag_, "requests", "more than 2^31 requests", "fewer");
  }

  std::size_t class_of(std::size_t number) const {
    if (bounds_.size() == 1) return 0;
    const double at = stream_of(seed_, Draw::classes, number).uniform() * bounds_.back();
    const auto bound = std::upper_bound(bounds_.begin(), bounds_.end(), at);
    return std::min(static_cast<std::size_t>(bound - bounds_.begin()), bounds_.size() - 1);
  }

  // All turns of a session share one part of the hashes: each covers its first so many.
  void add_turns(Request turn, const TrafficClass& c, const Sessions& s, std::size_t number,
                 RandomStream& random) {
    const std::int64_t turns = draw(s.turns, random), unit = s.unit_tokens;
    RandomStream thinking = stream_of(seed_, Draw::thinking, number);
    turn.session = static_cast<std::int32_t>(number);
    turn.first_hash = static_cast<std::uint32_t>(hashes_.size());
    std::int64_t text = s.shared;
    for (std::int64_t i = 0; i < turns; ++i) {
      text += draw(i == 0 ? c.prompt : s.added, random);
      const std::int64_t output = draw(c.output, random);
      turn.prompt = checked(text, flag_);
      turn.output = checked(output, flag_);
      text += output;
      turn.hashes = static_cast<std::uint32_t>(text / unit);
      if (i > 0) {
        turn.after = static_cast<std::int32_t>(list_.requests.size()) - 1;
        turn.arrival = to_ticks(Seconds(thinking.exponential(s.think.si())));
      }
      list_.requests.push_back(turn);
    }
    const auto shared = static_cast<std::int64_t>(s.shared / unit);
    for (std::int64_t u = 0; u < text / unit; ++u)
      hashes_.push_back(u < shared ? static_cast<std::uint32_t>(u) : next_hash_++);
    if (hashes_.size() > 0xFFFFFFFFU)
      fail(flag_, "sessions", "more than 2^32 units of text", "fewer");
  }

  const Traffic& traffic_;
  std::uint64_t seed_;
  const std::string& flag_;
  Clock clock_;
  std::vector<double> bounds_;
  std::vector<std::uint32_t> hashes_;
  std::shared_ptr<const std::vector<std::uint32_t>> shared_hashes_;
  std::uint32_t next_hash_ = 0;
  RequestList list_;
};

double number_in(std::string_view text, std::string_view whole, const std::string& flag) {
  try {
    std::size_t read = 0;
    const double value = std::stod(std::string(text), &read);
    if (read == text.size() && std::isfinite(value) && value > 0) return value;
  } catch (const std::exception&) {
  }
  fail(flag, "", in_quotes(whole), "a number above 0 in it");
}

}  // namespace

RequestList make_requests(const Traffic& traffic, std::uint64_t seed, const std::string& flag) {
  return Maker(traffic, seed, flag).made();
}

namespace {

// "8h:2/s:16h:12/s".
DailyArrivals daily_of(std::string_view rest, std::string_view text, const std::string& flag) {
  constexpr const char* form = "times and rates in turn, such as daily:8h:2/s:16h:12/s";
  DailyArrivals daily;
  for (;;) {
    const std::size_t middle = rest.find(':');
    if (middle == std::string_view::npos) fail(flag, "", in_quotes(text), form);
    const std::size_t end = std::min(rest.find(':', middle + 1), rest.size());
    std::string_view rate = rest.substr(middle + 1, end - middle - 1);
    if (!rate.ends_with("/s")) fail(flag, "", in_quotes(text), form);
    rate.remove_suffix(2);
    RatePiece piece{.rate = Hertz(rate == "0" ? 0 : number_in(rate, text, flag))};
    try {
      piece.length = parse<Seconds>(rest.substr(0, middle));
    } catch (const Error&) {
      fail(flag, "", in_quotes(text), form);
    }
    if (!(piece.length.si() > 0)) fail(flag, "", in_quotes(text), "times above 0");
    daily.pieces.push_back(piece);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  const bool some = std::any_of(daily.pieces.begin(), daily.pieces.end(),
                                [](const RatePiece& piece) { return piece.rate.si() > 0; });
  if (!some) fail(flag, "", in_quotes(text), "a rate above 0");
  return daily;
}

}  // namespace

Arrivals parse_arrivals(std::string_view text, const std::string& flag) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto rate = [&] {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    std::string_view number = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!number.ends_with("/s")) fail(flag, "", in_quotes(text), "a rate such as 12/s");
    number.remove_suffix(2);
    return Hertz(number_in(number, text, flag));
  };
  if (kind == "poisson") return PoissonArrivals{rate()};
  if (kind == "gamma") {
    const Hertz of = rate();
    return GammaArrivals{of, number_in(rest, text, flag)};
  }
  if (kind == "daily") return daily_of(rest, text, flag);
  if (kind == "closed") {
    const double clients = number_in(rest, text, flag);
    if (clients != std::floor(clients)) fail(flag, "", in_quotes(text), "whole clients");
    return ClosedLoop{static_cast<std::int64_t>(clients)};
  }
  if (text == "offline") return OfflineArrivals{};
  if (kind == "trace") return TraceArrivals{rest.empty() ? 1 : number_in(rest, text, flag)};
  fail(flag, "", in_quotes(text),
       "poisson:RATE/s, gamma:RATE/s:VARIATION, daily:TIME:RATE/s:..., closed:CLIENTS, offline or "
       "trace[:SPEED]");
}

}  // namespace orrery
