// SPDX-License-Identifier: Apache-2.0
// Turns settings into traffic.
#include "sim/question/serve/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "hw_models/catalog.h"
#include "sim/base/errors/file_guard.h"
#include "sim/base/input_file.h"
#include "sim/question/settings/settings.h"
#include "workloads/traffic/trace.h"

namespace orrery {
namespace {

constexpr std::int64_t most_requests = 100'000'000;
constexpr std::int64_t least_unit = 64;  // tokens by which drawn texts are compared, at least

std::filesystem::path catalog_folder() { return data_root() / "workloads/catalog"; }

constexpr std::uintmax_t most_inline = std::uintmax_t{16} << 20;

bool is_small_file(const std::string& name) {
  std::error_code failed;
  return std::filesystem::is_regular_file(name, failed) &&
         std::filesystem::file_size(name, failed) <= most_inline && !failed;
}

// By its name, or what a file held.
RequestList trace_of(const JsonValue& at) {
  try {
    if (!at.is_object()) return load_trace(at.text(), catalog_folder());
  } catch (const Error& error) {
    ErrorInfo info = error.info();
    if (info.file != "trace") throw;  // of a line of it
    info.file = at.file();
    info.path = at.path();
    throw Error(std::move(info));
  }
  at.expect_only({"name", "text"});
  const std::string text = at.at("text").text();
  return parse_trace(text, format_of(text), at.at("name").text());
}

std::string text_of(const JsonValue& at) {
  return at.is_number() ? fmt::format("{}", at.integer(1, most_request_tokens)) : at.text();
}

Length length_of(const JsonValue& at, const std::string& flag) {
  return parse_length(text_of(at), flag);
}

// Kinds of requests: of a trace by their names, else with shares and lengths of their own.
void read_classes(const JsonValue& s, Traffic& traffic, EnginePolicy& policy) {
  const auto classes = s.find("classes");
  if (!classes) return;
  const std::vector<std::string> known =
      traffic.trace ? traffic.trace->classes : std::vector<std::string>{};
  std::vector<TrafficClass> all;
  policy.priorities.assign(known.size(), 0);
  for (const JsonValue& item : classes->items()) {
    item.expect_only({"name", "share", "isl", "osl", "priority"});
    const std::int64_t priority =
        item.has("priority") ? item.at("priority").integer(0, 1000) : std::int64_t{0};
    if (traffic.trace) {
      for (const char* key : {"share", "isl", "osl"})
        if (item.has(key)) item.at(key).fail("nothing: the trace has its own");
      policy.priorities[item.at("name").index_in(known)] = static_cast<std::int32_t>(priority);
      continue;
    }
    TrafficClass one{.name = item.at("name").text()};
    if (one.name.empty() || one.name.find_first_of(".,=") != std::string::npos)
      item.at("name").fail("a name without '.', ',' and '='");
    if (item.has("share")) one.share = item.at("share").number();
    if (!(one.share > 0)) item.at("share").fail("a share above 0");
    for (const char* key : {"isl", "osl"}) {
      const bool own = item.has(key);
      if (!own && !s.has(key)) item.at(key);  // says what is missing
      (key == std::string("isl") ? one.prompt : one.output) =
          length_of(own ? item.at(key) : s.at(key), own ? "--classes" : flag_of(key));
    }
    all.push_back(one);
    policy.priorities.push_back(static_cast<std::int32_t>(priority));
  }
  if (traffic.trace) return;
  if (all.empty()) classes->fail("at least one class");
  traffic.classes = std::move(all);
}

// Turns of conversations, and a beginning that all have in common.
void read_sessions(const JsonValue& s, Traffic& traffic, const EnginePolicy& policy) {
  const auto turns = s.find("turns"), added = s.find("turn_tokens"), think = s.find("think_time"),
             shared = s.find("shared_prefix");
  for (const auto& later : {added, think})
    if (later && !turns) later->fail("turns beside it");
  if (!turns && !shared) return;
  if (traffic.trace) (turns ? *turns : *shared).fail("nothing: the trace has its own prefixes");
  Sessions sessions;
  if (turns) {
    sessions.turns = length_of(*turns, "--turns");
    if (!added) refuse_missing(s, {"turn_tokens"});
    sessions.added = length_of(*added, "--turn-tokens");
  }
  if (think) sessions.think = think->quantity<Seconds>();
  if (shared) sessions.shared = shared->integer(0, most_request_tokens);
  // Texts are compared in whole blocks.
  sessions.unit_tokens =
      policy.block_tokens * std::max<std::int64_t>(1, least_unit / policy.block_tokens);
  traffic.sessions = sessions;
}

// Nothing says when requests come.
[[noreturn]] void refuse_silence(const JsonValue& s) {
  const std::vector<std::string> keys = {"concurrency", "arrivals", "trace", "for"};
  const bool flags = s.file() == command_line_place;
  std::string all;
  for (std::size_t i = 0; i < keys.size(); ++i)
    all += (i == 0                 ? ""
            : i + 1 == keys.size() ? " or "
                                   : ", ") +
           (flags ? flag_of(keys[i]) : keys[i]);
  throw Error({.file = s.file(),
               .found = "nothing that says when requests come",
               .expected = "one of " + all});
}

void read_arrivals(const JsonValue& s, Traffic& traffic) {
  const auto concurrency = s.find("concurrency"), arrivals = s.find("arrivals"),
             load = s.find("for");
  if (concurrency && arrivals) arrivals->fail("nothing beside concurrency: clients say when");
  for (const auto& other : {concurrency, arrivals})
    if (load && other) load->fail("nothing beside concurrency or arrivals: the load says when");
  if (load)
    traffic.arrivals = load_arrivals(*load);
  else if (concurrency)
    traffic.arrivals = ClosedLoop{concurrency->integer(1, most_requests)};
  else if (arrivals)
    traffic.arrivals = parse_arrivals(arrivals->text(), "--arrivals");
  else if (traffic.trace)
    traffic.arrivals = TraceArrivals{};
  else
    refuse_silence(s);
  if (std::holds_alternative<TraceArrivals>(traffic.arrivals) && !traffic.trace)
    arrivals->fail("a trace to replay (--trace)");
}

}  // namespace

Arrivals load_arrivals(const JsonValue& at) {
  const std::string text = at.text();
  const bool plain = text.find(':') == std::string::npos;
  constexpr const char* form = "requests a second such as 50/s or gamma:50/s:3";
  try {
    const Arrivals load = parse_arrivals(plain ? "poisson:" + text : text, "--for");
    if (std::holds_alternative<PoissonArrivals>(load) ||
        std::holds_alternative<GammaArrivals>(load))
      return load;
  } catch (const Error&) {
    at.fail(form);
  }
  at.fail(form);
}

Traffic read_traffic(const JsonValue& s, EnginePolicy& policy) {
  Traffic traffic;
  if (const auto trace = s.find("trace"))
    traffic.trace = std::make_shared<const RequestList>(trace_of(*trace));
  const bool of_classes = s.has("classes");
  for (const char* key : {"isl", "osl"}) {
    if (traffic.trace && s.has(key)) s.at(key).fail("nothing: the trace has its own lengths");
    if (traffic.trace || of_classes) continue;
    Length& length =
        key == std::string("isl") ? traffic.classes.front().prompt : traffic.classes.front().output;
    length = length_of(s.at(key), flag_of(key));
  }
  read_arrivals(s, traffic);
  read_classes(s, traffic, policy);
  read_sessions(s, traffic, policy);
  if (const auto ignored = s.find("ignore_eos")) policy.new_tokens.known_ends = ignored->boolean();
  if (traffic.sessions && std::holds_alternative<ClosedLoop>(traffic.arrivals))
    s.at(s.has("turns") ? "turns" : "shared_prefix")
        .fail("arrivals at a rate, no clients in a loop");
  const bool replayed = std::holds_alternative<TraceArrivals>(traffic.arrivals);
  const auto* loop = std::get_if<ClosedLoop>(&traffic.arrivals);
  std::int64_t count = replayed ? 0 : loop ? 10 * loop->concurrency : s.has("for") ? 2000 : 1000;
  if (const auto requests = s.find("requests")) count = requests->integer(1, most_requests);
  traffic.requests = count;
  if (const auto warmup = s.find("warmup")) traffic.warmup = warmup->integer(0, most_requests);
  if (traffic.warmup > 0 && traffic.warmup >= count && count > 0)
    s.at("warmup").fail(fmt::format("fewer than the {} requests", count));
  return traffic;
}

JsonValue with_traces_inline(const JsonValue& settings) {
  const auto trace = settings.find("trace");
  if (!trace) return settings;
  bool replaced = false;
  const auto inlined = [&](const SortedJson& value) {
    if (!value.is_string() || !is_small_file(value.get<std::string>())) return value;
    const std::string name = value.get<std::string>();
    for (const TraceEntry& entry : trace_entries(catalog_folder()))
      if (entry.name == name) return value;
    check_file_allowed(name);
    replaced = true;
    return SortedJson{{"name", name}, {"text", content_of(name)}};
  };
  SortedJson whole = settings.raw();
  SortedJson& at = whole["trace"];
  if (at.is_array())
    for (SortedJson& item : at) item = inlined(item);
  else
    at = inlined(at);
  return replaced ? JsonValue::from(std::move(whole), settings.file()) : settings;
}

std::vector<std::string> class_names(const Traffic& traffic) {
  if (traffic.trace) return traffic.trace->classes;
  std::vector<std::string> names;
  for (const TrafficClass& one : traffic.classes) names.push_back(one.name);
  return names;
}

}  // namespace orrery
