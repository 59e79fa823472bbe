// SPDX-License-Identifier: Apache-2.0
// Reads the recipes of serving runs, and says which of them hold for a row.
#include "sim/validate/serving/serving_recipes.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <tuple>

#include "sim/base/json/json.h"
#include "sim/base/text/lower_case.h"

namespace orrery {
namespace {

bool listed(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

bool equal_or_open(const std::string& wanted, const std::string& actual) {
  return wanted.empty() || wanted == actual;
}

std::vector<std::string> texts_at(const JsonValue& at, std::string_view key) {
  std::vector<std::string> texts;
  if (const auto list = at.find(key))
    for (const JsonValue& item : list->items()) texts.push_back(item.text());
  return texts;
}

std::string text_at(const JsonValue& at, std::string_view key) {
  const auto value = at.find(key);
  return value ? value->text() : "";
}

bool flag_at(const JsonValue& at, std::string_view key) {
  const auto value = at.find(key);
  return value && value->boolean();
}

double number_at(const JsonValue& at, std::string_view key, double other) {
  const auto value = at.find(key);
  return value ? value->number() : other;
}

std::optional<std::int64_t> integer_at(const JsonValue& at, std::string_view key) {
  const auto value = at.find(key);
  return value ? std::optional(value->integer()) : std::nullopt;
}

ServingWhen read_when(const JsonValue& entry) {
  ServingWhen when;
  const auto at = entry.find("when");
  if (!at) return when;
  at->expect_only({"engine", "gpu", "family", "model", "precision", "campaign", "mode", "role",
                   "speculation", "checkpoint", "release", "from", "to", "attention_dp", "tp",
                   "isl", "osl", "concurrency_from", "concurrency_to"});
  when.engines = texts_at(*at, "engine");
  when.accelerators = texts_at(*at, "gpu");
  when.families = texts_at(*at, "family");
  when.models = texts_at(*at, "model");
  when.precisions = texts_at(*at, "precision");
  when.campaigns = texts_at(*at, "campaign");
  when.mode = text_at(*at, "mode");
  when.role = text_at(*at, "role");
  when.speculation = text_at(*at, "speculation");
  when.owners = texts_at(*at, "checkpoint");
  when.releases = texts_at(*at, "release");
  when.from = text_at(*at, "from");
  when.to = text_at(*at, "to");
  if (at->has("attention_dp")) when.attention_dp = flag_at(*at, "attention_dp");
  when.tp = integer_at(*at, "tp");
  when.isl = integer_at(*at, "isl");
  when.osl = integer_at(*at, "osl");
  when.concurrency_from = number_at(*at, "concurrency_from", when.concurrency_from);
  when.concurrency_to = number_at(*at, "concurrency_to", when.concurrency_to);
  return when;
}

ServingNumber read_number(const JsonValue& at) {
  ServingNumber number;
  if (at.is_number()) {
    number.plus = at.number();
    return number;
  }
  at.expect_only(
      {"plus", "per_sequence", "per_prompt_token", "multiple", "least", "with_drafts", "shared"});
  number.plus = number_at(at, "plus", 0);
  number.per_sequence = number_at(at, "per_sequence", 0);
  number.per_prompt_token = number_at(at, "per_prompt_token", 0);
  number.multiple = number_at(at, "multiple", 1);
  number.least = number_at(at, "least", 1);
  number.with_drafts = flag_at(at, "with_drafts");
  number.shared = flag_at(at, "shared");
  if (number.multiple <= 0) at.at("multiple").fail("a number above 0");
  return number;
}

std::vector<GraphSizes> read_graphs(const JsonValue& at) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  std::vector<GraphSizes> graphs;
  for (const JsonValue& sizes : at.items())
    graphs.push_back(
        {.to = sizes.at("to").integer(1, most), .by = sizes.at("by").integer(1, most)});
  return graphs;
}

ServingSettings read_settings(const JsonValue& at) {
  at.expect_only(
      {"cache",        "gemm",          "grouped_gemm",     "frontend",          "token_budget",
       "chunk",        "max_sequences", "receive_interval", "stream_interval",   "drafts",
       "waves",        "balance_steps", "batch_wait_steps", "batch_wait_tokens", "mixed_graph_rows",
       "accept",       "guesses_ahead", "gathers_rows",     "memory_share",      "eager",
       "prefix_cache", "graphs"});
  ServingSettings set;
  if (const auto cache = at.find("cache")) {
    set.cache = format_text.find(cache->text());
    if (!set.cache) cache->fail("a number format");
  }
  if (const auto library = at.find("gemm")) set.gemm = library_text.from(*library);
  if (const auto library = at.find("grouped_gemm")) set.grouped_gemm = library_text.from(*library);
  if (const auto frontend = at.find("frontend")) set.frontend = frontend_text.from(*frontend);
  const auto read = [&at](std::string_view key, std::optional<ServingNumber>& into) {
    if (const auto value = at.find(key)) into = read_number(*value);
  };
  read("token_budget", set.token_budget);
  read("chunk", set.chunk);
  read("max_sequences", set.max_sequences);
  read("receive_interval", set.receive_interval);
  read("stream_interval", set.stream_interval);
  read("drafts", set.drafts);
  read("waves", set.waves);
  read("balance_steps", set.balance_steps);
  read("batch_wait_steps", set.batch_wait_steps);
  read("mixed_graph_rows", set.mixed_graph_rows);
  if (const auto enough = at.find("batch_wait_tokens")) {
    set.batch_wait_tokens = enough->share();
  }
  if (const auto accept = at.find("accept")) set.accept = accept->text();
  if (const auto share = at.find("memory_share")) {
    set.memory_share = share->number();
    if (*set.memory_share <= 0 || *set.memory_share > 1) share->fail("a share above 0, up to 1");
  }
  set.gathers_rows = flag_at(at, "gathers_rows");
  set.eager = flag_at(at, "eager");
  set.prefix_cache = flag_at(at, "prefix_cache");
  if (const auto graphs = at.find("graphs")) set.graphs = read_graphs(*graphs);
  if (at.find("guesses_ahead")) set.guesses_ahead = flag_at(at, "guesses_ahead");
  return set;
}

// "repository path" of the source that an entry names.
std::string read_citation(const JsonValue& entry, const JsonValue& sources) {
  const auto cited = entry.find("citation");
  if (!cited) return "";
  const JsonValue source = sources.at(cited->text());
  return source.at("repository").text() + " " + source.at("path").text();
}

std::vector<ServingRecipe> read_recipes(const JsonValue& list, const JsonValue& sources) {
  std::vector<ServingRecipe> recipes;
  for (const JsonValue& entry : list.items()) {
    entry.expect_only({"when", "set", "citation"});
    entry.at("citation");
    recipes.push_back({.when = read_when(entry),
                       .set = read_settings(entry.at("set")),
                       .citation = read_citation(entry, sources)});
  }
  return recipes;
}

ServingLayout read_layout(const JsonValue& entry, const JsonValue& sources) {
  entry.expect_only({"when", "attention_dp", "expert_tp", "citation"});
  entry.at("citation");
  return {.when = read_when(entry),
          .attention_dp = flag_at(entry, "attention_dp"),
          .expert_tp = flag_at(entry, "expert_tp"),
          .citation = read_citation(entry, sources)};
}

// "gb200-fp4/1k8k/stp/ctx1_gen15_tep4_batch8_eplb0_mtp0", perhaps with clients behind.
ServingDeployment deployment_from(const JsonValue& name) {
  static const std::regex form(
      R"(([a-z]+\d+)-(fp\d)/(\d)k(\d)k/(stp|mtp)/)"
      R"(ctx(\d+)_gen(\d+)_(tp|tep|dep)(\d+)_batch(\d+)_eplb(\d+)_mtp\d+(?:_(\d+))?)");
  std::smatch found;
  const std::string text = name.text();
  if (!std::regex_match(text, found, form)) name.fail("the name of a deployment's file");
  const auto number = [&found](std::size_t i) {
    return found[i].matched ? static_cast<std::int64_t>(std::stoll(found[i])) : 0;
  };
  constexpr std::int64_t thousand = 1024;
  return {.gpu = found[1],
          .precision = found[2],
          .isl = thousand * number(3),
          .osl = thousand * number(4),
          .guesses = found[5] == "mtp",
          .prefill = number(6),
          .decode = number(7),
          .attention_dp = found[8] == "dep",
          .gpus = number(9),
          .batch = number(10),
          .expert_places = number(11),
          .clients = number(12)};
}

ServingDeployments read_deployments(const JsonValue& at, const JsonValue& sources) {
  at.expect_only({"engine", "family", "citation", "names"});
  ServingDeployments deployments{.engine = at.at("engine").text(),
                                 .family = at.at("family").text(),
                                 .citation = read_citation(at, sources),
                                 .all = {}};
  for (const JsonValue& name : at.at("names").items())
    deployments.all.push_back(deployment_from(name));
  return deployments;
}

OfflineBench read_bench(const JsonValue& at) {
  at.expect_only({"requests", "memory_share", "graphs", "most_sequences", "most_tokens"});
  constexpr std::int64_t most = std::int64_t{1} << 30;
  OfflineBench bench{.requests = {},
                     .memory_share = at.at("memory_share").number(),
                     .graphs = {},
                     .most_sequences = at.at("most_sequences").integer(1, most),
                     .most_tokens = at.at("most_tokens").integer(1, most)};
  for (const JsonValue& run : at.at("requests").items())
    bench.requests.push_back({.prompt = run.at("prompt").integer(1, most),
                              .output = run.at("output").integer(1, most),
                              .count = run.at("count").integer(1, most)});
  bench.graphs = read_graphs(at.at("graphs"));
  return bench;
}

ServingPrecision read_precision(const JsonValue& entry) {
  entry.expect_only({"told", "when", "recipe", "skipped", "why", "citation"});
  ServingPrecision precision{.told = texts_at(entry, "told"),
                             .when = read_when(entry),
                             .recipe = std::nullopt,
                             .skipped = text_at(entry, "skipped"),
                             .why = text_at(entry, "why")};
  if (precision.skipped.empty()) precision.recipe = precision_from(entry.at("recipe"));
  return precision;
}

void read_names(ServingRecipes& recipes, const JsonValue& file) {
  for (const JsonValue& entry : file.at("engines").items()) {
    entry.expect_only({"told", "stack", "expert_groups_as_tp", "foreign_releases", "foreign"});
    recipes.engines.push_back({.told = texts_at(entry, "told"),
                               .stack = entry.at("stack").text(),
                               .expert_groups_as_tp = flag_at(entry, "expert_groups_as_tp"),
                               .foreign_releases = texts_at(entry, "foreign_releases"),
                               .foreign = text_at(entry, "foreign")});
  }
  for (const JsonValue& entry : file.at("campaigns").items()) {
    entry.expect_only({"source", "campaign", "shortest", "waves", "analysed", "warmed",
                       "warmed_apart", "warmed_from", "citation", "warmed_citation"});
    recipes.campaigns.push_back({.source = entry.at("source").text(),
                                 .campaign = entry.at("campaign").text(),
                                 .shortest = entry.at("shortest").number(),
                                 .waves = entry.at("waves").number(),
                                 .analysed = flag_at(entry, "analysed"),
                                 .warmed = flag_at(entry, "warmed"),
                                 .warmed_apart = flag_at(entry, "warmed_apart"),
                                 .warmed_from = text_at(entry, "warmed_from")});
  }
  for (const auto& [kind, entry] : file.at("tables").members()) {
    entry.expect_only({"engine", "release", "gpu", "precision", "campaign", "drafts", "bench",
                       "why", "citation"});
    ServingTableFacts& facts = recipes.tables[kind];
    facts = {.engine = text_at(entry, "engine"),
             .release = text_at(entry, "release"),
             .gpu = text_at(entry, "gpu"),
             .precision = text_at(entry, "precision"),
             .campaign = entry.at("campaign").text(),
             .why = text_at(entry, "why"),
             .drafts = integer_at(entry, "drafts").value_or(0),
             .bench = {},
             .bench_citation = read_citation(entry, file.at("sources"))};
    if (const auto bench = entry.find("bench")) facts.bench = read_bench(*bench);
  }
  for (const JsonValue& entry : file.at("names").items()) {
    entry.expect_only({"told", "family", "model", "speculation", "why", "citation"});
    ServingModelName name{.told = {},
                          .family = entry.at("family").text(),
                          .model = text_at(entry, "model"),
                          .speculation = text_at(entry, "speculation"),
                          .why = text_at(entry, "why")};
    for (const std::string& told : texts_at(entry, "told"))
      name.told.push_back(plain_model_name(told));
    recipes.names.push_back(std::move(name));
  }
}

double number_above(const JsonValue& at, double least) {
  if (!(at.number() > least)) at.fail(fmt::format("a number above {}", least));
  return at.number();
}

LongerPrompts read_longer_prompts(const JsonValue& entry) {
  entry.expect_only({"when", "times", "plus", "sentence", "citation"});
  LongerPrompts longer{.sentence = entry.at("sentence").text(), .when = read_when(entry)};
  const auto plus = entry.find("plus");
  if (plus) longer.plus = number_above(*plus, 0);
  if (!plus || entry.has("times")) longer.times = number_above(entry.at("times"), 1);
  return longer;
}

}  // namespace

bool starts_with_any(const std::string& text, const std::vector<std::string>& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&text](const std::string& start) { return text.starts_with(start); });
}

bool ServingWhen::holds(const ServingFacts& f) const {
  const auto same = [](const std::optional<std::int64_t>& wanted, double actual) {
    return !wanted || static_cast<double>(*wanted) == actual;
  };
  return listed(engines, f.engine) && listed(accelerators, f.accelerator) &&
         listed(families, f.family) && listed(models, f.model) && listed(precisions, f.precision) &&
         listed(campaigns, f.campaign) && equal_or_open(mode, f.mode) &&
         equal_or_open(role, f.role) && equal_or_open(speculation, f.speculation) &&
         listed(owners, f.owner) && (releases.empty() || starts_with_any(f.release, releases)) &&
         (from.empty() || (!f.date.empty() && f.date >= from)) &&
         (to.empty() || (!f.date.empty() && f.date <= to)) &&
         (!attention_dp || *attention_dp == f.attention_dp) &&
         same(tp, static_cast<double>(f.tp)) && same(isl, f.isl) && same(osl, f.osl) &&
         f.concurrency >= concurrency_from && f.concurrency <= concurrency_to;
}

std::int64_t ServingNumber::at(double sequences, double prompt_tokens, std::int64_t drafts) const {
  const double each = with_drafts ? 1 + static_cast<double>(drafts) : 1;
  const double sum = plus + per_sequence * each * sequences + per_prompt_token * prompt_tokens;
  return static_cast<std::int64_t>(std::max(least, std::ceil(sum / multiple) * multiple));
}

const ServingEngine* ServingRecipes::engine(const std::string& told) const {
  const std::string wanted = lower_case(told);
  for (const ServingEngine& e : engines)
    if (std::find(e.told.begin(), e.told.end(), wanted) != e.told.end()) return &e;
  return nullptr;
}

const ServingModelName* ServingRecipes::name(const std::string& told) const {
  const std::string wanted = plain_model_name(told);
  for (const ServingModelName& n : names)
    if (std::find(n.told.begin(), n.told.end(), wanted) != n.told.end()) return &n;
  return nullptr;
}

const ServingDeployment* ServingDeployments::find(const ServingDeployment& asked,
                                                  std::int64_t clients) const {
  const ServingDeployment* best = nullptr;
  for (const ServingDeployment& d : all) {
    if (std::tie(d.gpu, d.precision, d.isl, d.osl, d.guesses, d.prefill, d.decode, d.attention_dp,
                 d.gpus) != std::tie(asked.gpu, asked.precision, asked.isl, asked.osl,
                                     asked.guesses, asked.prefill, asked.decode, asked.attention_dp,
                                     asked.gpus))
      continue;
    if (d.clients == clients) return &d;
    const bool holds = 3 * d.slots() >= 2 * clients;
    if (holds && (!best || d.batch < best->batch)) best = &d;
  }
  return best;
}

bool ServingCampaign::warms(bool disaggregated, const std::string& date) const {
  if (warmed || (warmed_apart && disaggregated)) return true;
  return !warmed_from.empty() && (date.empty() || date >= warmed_from);
}

const ServingCampaign& ServingRecipes::campaign(const std::string& source) const {
  return *std::find_if(campaigns.begin(), campaigns.end(), [&source](const ServingCampaign& c) {
    return source.starts_with(c.source);
  });
}

ServingRecipes load_serving_recipes(const std::filesystem::path& path) {
  const JsonValue file = JsonValue::load(path);
  file.expect_only({"sources", "engines", "campaigns", "tables", "names", "precisions", "recipes",
                    "defaults", "deployments", "layouts", "longer_prompts", "known"});
  ServingRecipes recipes;
  read_names(recipes, file);
  if (recipes.campaigns.empty() || !recipes.campaigns.back().source.empty())
    file.at("campaigns").fail("a last campaign of any source (\"\")");
  for (const JsonValue& entry : file.at("precisions").items())
    recipes.precisions.push_back(read_precision(entry));
  recipes.recipes = read_recipes(file.at("recipes"), file.at("sources"));
  recipes.defaults = read_recipes(file.at("defaults"), file.at("sources"));
  if (const auto deployments = file.find("deployments"))
    for (const JsonValue& of : deployments->items())
      recipes.deployments.push_back(read_deployments(of, file.at("sources")));
  if (const auto layouts = file.find("layouts"))
    for (const JsonValue& entry : layouts->items())
      recipes.layouts.push_back(read_layout(entry, file.at("sources")));
  for (const JsonValue& entry : file.at("longer_prompts").items()) {
    recipes.longer_prompts.push_back(read_longer_prompts(entry));
  }
  for (const JsonValue& entry : file.at("known").items()) {
    entry.expect_only({"rule", "when", "quantity", "sentence", "citation"});
    recipes.known.push_back({.rule = entry.at("rule").text(),
                             .sentence = entry.at("sentence").text(),
                             .when = read_when(entry),
                             .ttft_only = entry.at("quantity").one_of({"all", "ttft"}) == "ttft"});
  }
  return recipes;
}

std::string plain_model_name(const std::string& told) {
  std::string name = lower_case(told.substr(told.rfind('/') + 1));
  static const std::regex variant(R"(-(?:instruct|chat|bf16|fp8|nvfp4|fp4|mxfp4|int4|v2|\d{4})$)");
  for (std::string shorter = std::regex_replace(name, variant, ""); shorter != name;
       shorter = std::regex_replace(name, variant, ""))
    name = shorter;
  return name;
}

}  // namespace orrery
