// SPDX-License-Identifier: Apache-2.0
// Reads questions of served models, and serves each of their points.
#include "sim/question/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw_models/catalog.h"
#include "hw_models/catalogue_hash.h"
#include "sim/base/errors/check.h"
#include "sim/engine/capability.h"
#include "sim/question/serve/engine_text.h"
#include "sim/question/serve/guessing.h"
#include "sim/question/settings/inline_files.h"
#include "workloads/traffic/trace.h"

namespace orrery {
namespace {

constexpr std::size_t most_points = 10'000;
constexpr std::int64_t most_requests = 100'000'000;

std::filesystem::path catalog_folder() { return data_root() / "workloads/catalog"; }

void check_keys(const JsonValue& settings) {
  std::vector<std::string> keys;
  for (const Setting& s : serve_settings()) keys.emplace_back(s.key);
  settings.expect_only(keys, "a setting of serve");
}

std::string text_of(const JsonValue& at) {
  return at.is_number() ? fmt::format("{}", at.integer(1, most_request_tokens)) : at.text();
}

Length length_of(const JsonValue& s, const char* key) {
  return parse_length(text_of(s.at(key)), flag_of(key));
}

// Lengths and arrivals. A trace brings both, unless others are given.
Traffic read_traffic(const JsonValue& s) {
  Traffic traffic;
  const auto concurrency = s.find("concurrency");
  const auto arrivals = s.find("arrivals");
  const auto trace = s.find("trace");
  if (concurrency && arrivals) arrivals->fail("nothing beside concurrency: clients say when");
  if (trace)
    traffic.trace =
        std::make_shared<const RequestList>(load_trace(trace->text(), catalog_folder()));
  for (const char* key : {"isl", "osl"}) {
    if (trace && s.has(key)) s.at(key).fail("nothing: the trace has its own lengths");
    if (!trace)
      (key == std::string("isl") ? traffic.classes.front().prompt
                                 : traffic.classes.front().output) = length_of(s, key);
  }
  if (concurrency)
    traffic.arrivals = ClosedLoop{concurrency->integer(1, most_requests)};
  else if (arrivals)
    traffic.arrivals = parse_arrivals(arrivals->text(), "--arrivals");
  else if (trace)
    traffic.arrivals = TraceArrivals{};
  else
    refuse_missing(s, {"concurrency"});
  const bool replayed = std::holds_alternative<TraceArrivals>(traffic.arrivals);
  if (replayed && !trace) arrivals->fail("a trace to replay (--trace)");
  std::int64_t count = replayed ? 0 : 1000;
  if (concurrency) count = 10 * concurrency->integer();
  if (const auto requests = s.find("requests")) count = requests->integer(1, most_requests);
  traffic.requests = count;
  if (const auto warmup = s.find("warmup")) traffic.warmup = warmup->integer(0, most_requests);
  if (traffic.warmup > 0 && traffic.warmup >= count && count > 0)
    s.at("warmup").fail(fmt::format("fewer than the {} requests", count));
  return traffic;
}

// What the question says of an engine's limits, over its defaults.
void read_limits(const JsonValue& s, StackServing& serving, std::int64_t drafts) {
  EnginePolicy& policy = serving.policy;
  const auto whole = [&](const char* key, std::int64_t& target, std::int64_t low) {
    if (const auto v = s.find(key)) target = v->integer(low, std::int64_t{1} << 20);
  };
  whole("token_budget", policy.token_budget, 1);
  whole("max_sequences", policy.max_sequences, 1);
  whole("chunk", policy.chunk, 0);
  whole("block_tokens", policy.block_tokens, 1);
  if (const auto v = s.find("prefix_cache")) policy.prefix_cache = v->boolean();
  if (const auto v = s.find("memory_share")) {
    serving.memory_share = v->number();
    if (serving.memory_share <= 0 || serving.memory_share > 1) v->fail("above 0, at most 1");
  }
  policy.front = to_ticks(serving.request_front.get());
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
}

// Error at `flag` where the model's heads, experts or layers cannot be split so.
void check_split(const Model& model, const EngineLayout& l, const std::string& flag) {
  const auto want = [&](bool holds, const std::string& found, const std::string& expected) {
    if (!holds) throw Error({.file = flag, .path = "", .found = found, .expected = expected});
  };
  want(l.pp <= model.layer_count(), fmt::format("PP{}", l.pp),
       fmt::format("at most {}, the layers of {}", model.layer_count(), model.name));
  for (const LayerClass& layer : model.classes) {
    want(layer.mixer.heads % l.tp == 0, fmt::format("TP{}", l.tp),
         fmt::format("a divisor of {}, the heads of {}", layer.mixer.heads, model.name));
    const Ffn& ffn = layer.ffn;
    if (ffn.kind != FfnKind::moe) {
      want(ffn.width % l.tp == 0, fmt::format("TP{}", l.tp),
           fmt::format("a divisor of {}, the feed-forward width of {}", ffn.width, model.name));
      continue;
    }
    want(ffn.experts % l.ep == 0, fmt::format("EP{}", l.ep),
         fmt::format("a divisor of {}, the experts of {}", ffn.experts, model.name));
    want(ffn.width % l.etp == 0, fmt::format("experts cut {} ways", l.etp),
         fmt::format("a divisor of {}, the width of an expert of {}", ffn.width, model.name));
  }
  want(model.has_experts() || l.ep == 1, fmt::format("EP{}", l.ep),
       fmt::format("none: {} has no experts", model.name));
}

Format cache_format(const JsonValue& s) {
  const auto v = s.find("cache");
  if (!v) return Format::bf16;
  return v->one_of({"bf16", "fp8"}) == "fp8" ? Format::fp8 : Format::bf16;
}

}  // namespace

ServiceCase read_service(const JsonValue& s, Catalogues& catalogues, std::uint64_t seed) {
  check_keys(s);
  ServiceCase out;
  out.seed = seed;
  EngineLayout formats;
  if (const auto v = s.find("precision")) formats.precision = precision_from(*v);
  formats.cache = cache_format(s);
  read_groups(s, out, formats);
  const std::int64_t used = out.gpus();
  if (const auto gpus = s.find("gpus"))
    if (gpus->integer(1, std::int64_t{1} << 30) < used)
      gpus->fail(fmt::format("at least the {} GPUs of the engines", used));
  for (const char* key : {"model", "cluster"})
    if (!s.has(key)) refuse_missing(s, {key});
  out.model = catalogues.model(s.at("model").reference());
  check_split(out.model, out.engines.layout, out.decode ? "--prefill" : "--engines");
  if (out.decode) check_split(out.model, out.decode->layout, "--decode");
  out.cluster = catalogues.cluster(s.at("cluster").reference(), used);
  const auto stack = s.find("stack");
  if (!stack) refuse_missing(s, {"stack"});
  const Job job{.task = Task::decode, .batch = 1, .context = 1};
  out.stack = catalogues.stack(stack->reference(),
                               stack_context(out.cluster, out.model, job, formats.precision));
  if (!out.stack.serving.engine) stack->fail("a serving engine (serve --help lists them)");
  if (const std::string why = cannot_run(out.stack, out.cluster.device, formats.precision);
      !why.empty())
    throw Error({.file = "--stack", .path = "", .found = out.stack.name, .expected = why});
  out.guessing = read_guessing(s, out.model, out.engines.layout, catalogues);
  read_limits(s, out.stack.serving, out.guessing ? out.guessing->drafter.drafts : 0);
  if (const auto v = s.find("router")) out.router.kind = router_kind_text.from(*v);
  out.traffic = read_traffic(s);
  if (const auto v = s.find("slo")) out.target = parse_target(v->text(), "--slo");
  return out;
}

namespace {

// Every combination of the lists, as settings of one point with what tells it from others.
std::vector<std::pair<std::string, JsonValue>> points_of(const JsonValue& settings) {
  std::vector<std::pair<std::string, SortedJson>> points{{"", settings.raw()}};
  for (const Setting& setting : serve_settings()) {
    const auto value = settings.find(setting.key);
    if (!value || !value->is_array()) continue;
    std::vector<std::pair<std::string, SortedJson>> grown;
    const std::vector<JsonValue> items = value->items();
    if (items.empty()) value->fail("at least one value");
    if (points.size() * items.size() > most_points)
      value->fail(fmt::format("at most {} combinations", most_points));
    for (const auto& [words, point] : points)
      for (const JsonValue& item : items) {
        SortedJson one = point;
        one[setting.key] = item.raw();
        const std::string shown =
            item.is_number() ? fmt::format("{:g}", item.number()) : item.reference();
        grown.emplace_back(
            fmt::format("{}{}{} {}", words, words.empty() ? "" : ", ", setting.key, shown), one);
      }
    points = std::move(grown);
  }
  std::vector<std::pair<std::string, JsonValue>> out;
  for (auto& [words, point] : points)
    out.emplace_back(words, JsonValue::from(std::move(point), settings.file()));
  return out;
}

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
  return std::any_of(points.begin(), points.end(),
                     [](const ServedPoint& p) { return p.prediction.refusal.empty(); });
}

Served serve_settings(const JsonValue& settings, const ServeWith& with) {
  Served out{.settings = with_files_inline(settings).value_or(settings),
             .catalogue = with.catalogues.version()};
  const auto points = points_of(settings);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (with.stop != nullptr && with.stop->load()) {
      out.stopped = true;
      break;
    }
    out.points.emplace_back();
    ServedPoint& point = out.points.back();
    point.varied = points[i].first;
    point.asked = read_service(points[i].second, with.catalogues, with.seed);
    point.prediction = predict_service(
        point.asked,
        {.threads = with.threads, .stop = with.stop, .progress = [&](std::int64_t done) {
           if (with.progress) with.progress(i, points.size(), done);
         }});
    out.stopped = out.stopped || point.prediction.timeline.stopped;
  }
  mark_best(out.points);
  return out;
}

}  // namespace orrery
