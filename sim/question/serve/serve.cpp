// SPDX-License-Identifier: Apache-2.0
// Reads questions of served models, and serves each of their points.
#include "sim/question/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "sim/base/content_hash.h"
#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/engine/capability.h"
#include "sim/question/serve/engine_text.h"
#include "sim/question/serve/guessing.h"
#include "sim/question/serve/kept_point.h"
#include "sim/question/serve/load.h"
#include "sim/question/serve/points.h"
#include "sim/question/serve/policy.h"
#include "sim/question/serve/split_check.h"
#include "sim/question/serve/traffic.h"
#include "sim/question/settings/given_file.h"
#include "sim/question/settings/inline_files.h"

namespace orrery {
namespace {

void check_keys(const JsonValue& settings) {
  std::vector<std::string> keys;
  for (const Setting& s : serve_settings()) keys.emplace_back(s.key);
  keys.emplace_back(read_from_key);
  settings.expect_only(keys, "a setting of serve");
}

// What the question says of an engine's limits, over its defaults.
void read_limits(const JsonValue& s, StackServing& serving, std::int64_t drafts) {
  EnginePolicy& policy = serving.policy;
  const auto whole = [&](const char* key, std::int64_t& target, std::int64_t low) {
    if (const auto v = s.find(key)) target = v->integer(low, std::int64_t{1} << 20);
  };
  whole("token_budget", policy.token_budget, 1);
  whole("max_sequences", policy.max_sequences, 1);
  whole("block_tokens", policy.block_tokens, 1);
  if (const auto v = s.find("prefix_cache")) policy.prefix_cache = v->boolean();
  if (const auto v = s.find("memory_share")) {
    serving.memory.share = v->number();
    if (serving.memory.share <= 0 || serving.memory.share > 1) v->fail("above 0, at most 1");
  }
  read_policy(s, policy);
  const auto frontend = s.find("frontend");
  set_front(policy, serving.host, frontend ? frontend_text.from(*frontend) : Frontend::engine);
  policy.max_sequences = std::min(policy.max_sequences, policy.token_budget / (1 + drafts));
  if (policy.max_sequences < 1)
    throw Error({.file = "--spec",
                 .path = "",
                 .found = fmt::format("{} tokens guessed a step", drafts),
                 .expected = fmt::format("fewer than the {} rows of a step (--token-budget)",
                                         policy.token_budget)});
  check_policy(policy, "serve");
}

void read_groups(const JsonValue& s, ServiceCase& out, const EngineLayout& formats) {
  const auto engines = s.find("engines"), prefill = s.find("prefill"), decode = s.find("decode");
  if (engines && (prefill || decode))
    engines->fail("either engines that do all, or prefill and decode");
  if (prefill.has_value() != decode.has_value())
    refuse_missing(s, {prefill ? "decode" : "prefill"});
  const auto group = [&](const JsonValue& at, const char* flag) {
    EngineGroup g = parse_engines(at.text(), flag);
    g.layout.precision = formats.precision;
    g.layout.cache = formats.cache;
    return g;
  };
  if (prefill) {
    out.engines = group(*prefill, "--prefill");
    out.decode = group(*decode, "--decode");
  } else {
    if (!engines) refuse_missing(s, {"engines"});
    out.engines = group(*engines, "--engines");
  }
  const auto eager = s.find("eager");
  const std::string which = eager ? eager->one_of({"none", "prompts", "all"}) : "none";
  if (which == "prompts" && !out.decode)
    eager->fail("none or all: \"prompts\" needs engines of prompts alone (--prefill)");
  out.engines.eager = which != "none";
  if (out.decode) out.decode->eager = which == "all";
}

Format cache_format(const JsonValue& s) {
  const auto v = s.find("cache");
  if (!v) return Format::bf16;
  const std::string name = v->one_of({"bf16", "fp8", "nvfp4"});
  return name == "fp8" ? Format::fp8 : name == "nvfp4" ? Format::fp4 : Format::bf16;
}

// Error at what the stack or the device cannot do.
void check_formats(const JsonValue& s, const ServiceCase& c) {
  const Device& device = c.cluster.device;
  if (const std::string why = wrong_platform(c.stack, device); !why.empty())
    s.at("stack").fail("a device that it serves on: " + why);
  if (const std::string why = cannot_compute(c.stack, device, c.engines.layout.precision);
      !why.empty()) {
    const std::string expected = "another format of the checkpoint: " + why;
    if (const auto v = s.find("precision")) v->fail(expected);
    throw Error({.file = "--precision", .found = "nothing, which is bf16", .expected = expected});
  }
  if (const std::string why = cannot_cache(device, c.engines.layout.cache); !why.empty())
    s.at("cache").fail("bf16 or fp8: " + why);
}

}  // namespace

JsonValue merge_serve_settings(const std::string& file, const SortedJson& flags) {
  if (!file.empty())
    if (const auto read = settings_of_configuration(file, flags, GivenFor::serving))
      return merge_serve_settings(JsonValue::from(*read, file), flags);
  return merge_serve_settings(file.empty()
                                  ? JsonValue::from(SortedJson::object(), command_line_place)
                                  : JsonValue::load(file),
                              flags);
}

JsonValue merge_serve_settings(const JsonValue& document, const SortedJson& flags) {
  check_keys(document);
  SortedJson merged = document.raw();
  merged.update(flags);
  return with_input_inline(JsonValue::from(without_nulls(merged), document.file()));
}

ServiceCase read_service(const JsonValue& s, Catalogues& catalogues, std::uint64_t seed) {
  check_keys(s);
  ServiceCase out;
  out.seed = seed;
  EngineLayout formats;
  if (const auto v = s.find("precision")) formats.precision = precision_from(*v);
  formats.cache = cache_format(s);
  read_groups(s, out, formats);
  const std::int64_t used = out.gpus();
  if (const auto gpus = s.find("gpus")) {
    out.offered = gpus->integer(1, std::int64_t{1} << 30);
    if (out.offered < used) gpus->fail(fmt::format("at least the {} GPUs of the engines", used));
  }
  for (const char* key : {"model", "cluster"})
    if (!s.has(key)) refuse_missing(s, {key});
  out.model = catalogues.model(s.at("model").reference());
  check_split(out.model, out.engines.layout, out.decode ? "--prefill" : "--engines");
  if (out.decode) check_split(out.model, out.decode->layout, "--decode");
  out.cluster = catalogues.cluster(s.at("cluster").reference(), used);
  const auto stack = s.find("stack");
  if (!stack) refuse_missing(s, {"stack"});
  const Job job{.task = Task::decode, .batch = 1, .context = 1};
  out.stack = catalogues.stack(stack_reference(*stack, catalogues),
                               stack_context(out.cluster, out.model, job, formats.precision));
  if (!out.stack.serving.engine) stack->fail("a serving engine (serve --help lists them)");
  check_formats(s, out);
  out.guessing = read_guessing(s, out.model, out.engines.layout, catalogues);
  read_limits(s, out.stack.serving, out.guessing ? out.guessing->drafter.drafts : 0);
  out.needs_all_sequences = s.has("max_sequences");
  if (const auto v = s.find("router")) out.router.kind = router_kind_text.from(*v);
  out.traffic = read_traffic(s, out.stack.serving.policy);
  check_units(s, out.traffic, out.stack.serving.policy);
  out.longest = out.model.max_context;
  if (const auto v = s.find("max_context")) out.longest = v->integer(1, most_request_tokens);
  if (const auto v = s.find("gpu_hour_price")) {
    if (!(v->number() > 0)) v->fail("dollars above 0");
    out.rental = DollarsPerSecond(v->number() / seconds_per_hour);
  }
  if (const auto v = s.find("slo"))
    out.target = parse_target(v->text(), "--slo", class_names(out.traffic));
  return out;
}

namespace {

// Marks the points that no other beats both in tokens a GPU and in time a token.
void mark_best(std::vector<ServedPoint>& points) {
  const auto served = [](const ServedPoint& p) { return p.prediction.summary.requests > 0; };
  for (ServedPoint& p : points)
    p.best =
        served(p) && std::none_of(points.begin(), points.end(), [&](const ServedPoint& o) {
          const ServicePrediction &a = o.prediction, &b = p.prediction;
          return served(o) && a.tokens_per_gpu >= b.tokens_per_gpu &&
                 a.summary.tpot.mean <= b.summary.tpot.mean &&
                 (a.tokens_per_gpu > b.tokens_per_gpu || a.summary.tpot.mean < b.summary.tpot.mean);
        });
}

}  // namespace

bool Served::exists() const {
  if (load) return chosen.has_value();
  return std::any_of(points.begin(), points.end(),
                     [](const ServedPoint& p) { return p.prediction.refusal.empty(); });
}

namespace {

// Several points run beside each other, each on one thread; what a single one keeps of each request
// they do not.
void serve_point(ServedPoint& out, const JsonValue& settings, const ServeWith& with, bool alone,
                 const std::function<void(std::int64_t)>& progress) {
  const auto run = [&] {
    const std::int64_t engines =
        out.asked.engines.replicas + (out.asked.decode ? out.asked.decode->replicas : 0);
    StepLog* log = alone ? with.log : nullptr;
    if (log)
      *log = {.most =
                  std::max<std::size_t>(1, with.most_records / static_cast<std::size_t>(engines))};
    out.prediction = predict_service(
        out.asked,
        {.threads = alone ? with.threads : 1, .stop = with.stop, .progress = progress, .log = log});
  };
  run();
  if (settings.has("for")) {
    while (!settings.has("requests") && lengthen(out)) run();
    out.load = judge(out);
  }
  out.ranges = served_ranges(out.asked, out.prediction.request, with.catalogues.served_error());
  if (alone) return;
  out.prediction.timeline.requests = {};
  out.prediction.timeline.gaps = {};
  out.asked.cluster.calibration = {};
  out.prediction.requests.requests = {};
  out.prediction.requests.hashes = {};
}

KeptPoint kept_of(const ServedPoint& point) {
  return {.prediction = point.prediction,
          .ranges = point.ranges,
          .load = point.load,
          .requests = point.asked.traffic.requests};
}

void take_kept(const KeptPoint& kept, ServedPoint& point) {
  point.prediction = kept.prediction;
  point.ranges = kept.ranges;
  point.load = kept.load;
  point.asked.traffic.requests = kept.requests;
  point.asked.cluster.calibration = {};
}

// Settings that no point of a question uses.
class UnusedByAll {
 public:
  void add(const JsonValue& settings, const ServiceCase& asked) {
    const std::vector<UnusedSetting> own = unused_settings(settings, asked);
    if (!first_) {
      first_ = settings;
      unused_ = own;
      return;
    }
    std::erase_if(unused_, [&](const UnusedSetting& one) {
      return std::none_of(own.begin(), own.end(),
                          [&](const UnusedSetting& other) { return other.key == one.key; });
    });
  }
  // Error at the first of them.
  void check() const {
    if (unused_.empty()) return;
    first_->at(unused_.front().key).fail(unused_.front().expected);
  }

 private:
  std::optional<JsonValue> first_;
  std::vector<UnusedSetting> unused_;
};

// The points of a question, each served on a thread, or taken from another process.
class PointsToServe {
 public:
  PointsToServe(const JsonValue& settings, const ServeWith& with)
      : with_(with), points_(points_of(settings)), all_(points_.size()), begun_(all_.size(), 0) {
    if (alone() && with.tasks != nullptr)
      throw Error({.file = "--results",
                   .found = "one point",
                   .expected = "lists or ranges: one point has nothing to share"});
  }

  // Every point is read before the first is served: an error comes at once. A case is large, so
  // that it is read again when its turn comes.
  void check() {
    UnusedByAll unused;
    for (std::size_t i = 0; i < all_.size() && !stopped(); ++i) {
      if (with_.progress) with_.progress(0, all_.size(), 0);
      unused.add(points_[i].settings, read(i));
    }
    if (!stopped()) unused.check();
  }

  void serve_all() {
    parallel_for(all_.size(), alone() ? 1 : with_.threads, [&](std::size_t i) {
      tell(0);
      if (stopped()) return;
      answer(i);
      ++served_;
    });
  }

  // Those that were begun; `stopped`: not all were served to their end.
  std::vector<ServedPoint> take(bool& stopped) {
    std::vector<ServedPoint> points;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      stopped = stopped || begun_[i] == 0 || all_[i].prediction.timeline.stopped;
      if (begun_[i] != 0) points.push_back(std::move(all_[i]));
    }
    return points;
  }

 private:
  bool alone() const { return all_.size() == 1; }
  bool stopped() const { return with_.stop != nullptr && with_.stop->load(); }
  ServiceCase read(std::size_t i) const {
    return read_service(points_[i].settings, with_.catalogues, with_.seed);
  }
  void tell(std::int64_t done) {
    const std::scoped_lock lock(speaking_);
    if (with_.progress) with_.progress(served_.load(), all_.size(), done);
  }
  void begin(std::size_t i) {
    begun_[i] = 1;
    all_[i].varied = points_[i].varied;
    const std::scoped_lock lock(reading_);
    all_[i].asked = read(i);
  }
  void serve(std::size_t i) {
    begin(i);
    serve_point(all_[i], points_[i].settings, with_, alone(),
                [this](std::int64_t done) { tell(done); });
  }
  void answer(std::size_t i) {
    if (with_.tasks == nullptr) return serve(i);
    const auto make = [&]() -> std::optional<KeptPoint> {
      serve(i);
      if (all_[i].prediction.timeline.stopped) return std::nullopt;
      return kept_of(all_[i]);
    };
    const auto kept = kept_point(with_.tasks, content_hash(points_[i].settings.raw().dump()), make);
    if (!kept || begun_[i] != 0) return;
    begin(i);
    take_kept(*kept, all_[i]);
  }

  const ServeWith& with_;
  std::vector<QuestionPoint> points_;
  std::vector<ServedPoint> all_;
  std::vector<char> begun_;
  std::mutex reading_, speaking_;
  std::atomic<std::size_t> served_{0};
};

}  // namespace

Served serve_settings(const JsonValue& settings, const ServeWith& with) {
  Served out{.settings = with_traces_inline(with_files_inline(settings).value_or(settings)),
             .catalogue = with.catalogues.version()};
  check_keys(settings);
  PointsToServe points(settings, with);
  points.check();
  points.serve_all();
  out.points = points.take(out.stopped);
  mark_best(out.points);
  if (const auto load = settings.find("for")) {
    out.load = load_rate(load_arrivals(*load));
    out.chosen = least_that_meets(out.points);
  }
  return out;
}

}  // namespace orrery
