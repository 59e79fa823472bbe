// SPDX-License-Identifier: Apache-2.0
// Resolves the names of a serving row, and completes it with what its recipe says.
#include "sim/validate/serving/serving_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <utility>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/text/lower_case.h"
#include "sim/base/text/words.h"
#include "workloads/model/model_catalog.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::filesystem::path model_folder() { return data_root() / "workloads/catalog/models"; }
std::filesystem::path stack_folder() { return data_root() / "workloads/catalog/stacks"; }

// "0.16" of "v0.16.0", "0.5.6" of "0.5.6.post2"; empty: no release.
std::string numbers_of(const std::string& release) {
  static const std::regex form(R"(^v?(\d+\.\d+)(\.[1-9]\d*)?)");
  std::smatch found;
  if (!std::regex_search(release, found, form)) return "";
  return found[1].str() + found[2].str();
}

EngineLayout layout_of(const ToldWorkers& told, bool experts) {
  EngineLayout layout{.tp = told.tp, .pp = told.pp, .attention_dp = told.attention_dp};
  if (!experts) return layout;
  layout.ep = std::max<std::int64_t>(1, told.moe_ep);
  layout.etp = std::max<std::int64_t>(1, told.tp * told.attention_dp / layout.ep);
  return layout;
}

// Settings of `set` that are still open, and sentences that say which.
struct OpenSettings {
  const ServingCase& c;
  ServingWorkers& workers;
  double sequences = 1;  // of a rank
  std::vector<std::string> taken;

  void number(const char* what, const std::optional<ServingNumber>& from,
              std::optional<std::int64_t>& into) {
    if (!from || into) return;
    into = from->at(sequences, c.row.load.prompt_tokens, c.row.software.drafts);
    if (from->shared) into = std::max<std::int64_t>(1, *into / workers.layout.attention_dp);
    taken.push_back(fmt::format("{} {}", what, *into));
  }
  void numbers(const ServingSettings& set) {
    ServingLimits& limits = workers.limits;
    number("token budget", set.token_budget, limits.token_budget);
    number("chunks of", set.chunk, limits.chunk);
    number("sequences at once", set.max_sequences, limits.max_sequences);
    number("tokens handed out", set.stream_interval, limits.stream_interval);
    number("receive interval", set.receive_interval, limits.receive_interval);
    number("steps of balance", set.balance_steps, limits.balance_steps);
    if (set.batch_wait_steps && !limits.batch_wait_steps)
      limits.batch_wait_tokens = set.batch_wait_tokens;
    number("steps of batch wait", set.batch_wait_steps, limits.batch_wait_steps);
    number("graphs of prompts up to", set.mixed_graph_rows, limits.mixed_graph_rows);
  }
};

// What a recipe says of the program itself, where nothing else did.
void take_software(const ServingSettings& set, ServingSoftware& software,
                   std::vector<std::string>& taken) {
  if (set.drafts && software.drafts == 0) software.drafts = set.drafts->at(1, 0, 0);
  if (!software.guesses_ahead && set.guesses_ahead) {
    software.guesses_ahead = set.guesses_ahead;
    taken.push_back(*set.guesses_ahead ? "guesses planned ahead" : "guesses not planned ahead");
  }
  if (!software.gemm && set.gemm) {
    software.gemm = set.gemm;
    taken.push_back(fmt::format("products by {}", library_text[*set.gemm]));
  }
  if (software.accept.empty() && !set.accept.empty()) {
    software.accept = set.accept;
    taken.push_back(fmt::format("guesses as right as in {}", set.accept));
  }
}

}  // namespace

ServingCatalogue::ServingCatalogue(Aliases aliases, ServingRecipes recipes)
    : aliases_(std::move(aliases)),
      recipes_(std::move(recipes)),
      model_names_(orrery::model_names(model_folder())) {
  for (const std::string& name : model_names_) {
    const JsonValue entry = load_model_entry(name, model_folder());
    if (const auto list = entry.find("aliases"))
      for (const JsonValue& alias : list->items()) {
        model_aliases_.emplace(lower_case(alias.text()), name);
        model_aliases_.emplace(plain_model_name(alias.text()), name);
      }
  }
}

std::string ServingCatalogue::plain_gpu(const std::string& told) const {
  static const std::regex form(R"([-_](?:sxm|80gb|pcap)\b)", std::regex::icase);
  std::string plain = lower_case(told);
  for (std::string shorter = std::regex_replace(plain, form, ""); shorter != plain;
       shorter = std::regex_replace(plain, form, ""))
    plain = shorter;
  return plain;
}

std::string ServingCatalogue::catalogued_model(const std::string& told) const {
  for (const std::string& name : {lower_case(told), plain_model_name(told)})
    if (const auto found = model_aliases_.find(name); found != model_aliases_.end())
      return found->second;
  const ModelChoice choice = choose_model(aliases_, told, model_names_);
  return choice.is_template ? "" : choice.name;
}

void ServingCatalogue::find_model(ServingCase& c) {
  ServingRow& row = c.row;
  row.model = catalogued_model(row.model_told);
  const ServingModelName* name = recipes_.name(row.model_told);
  if (name) {
    c.name_speculation = name->speculation;
    if (row.model.empty() && !name->model.empty()) {
      row.model = name->model;
      if (name->model != name->family && !name->why.empty()) row.assumed.push_back(name->why);
    }
  }
  row.family = name                 ? name->family
               : !row.model.empty() ? row.model
                                    : plain_model_name(row.model_told);
  if (row.model.empty()) return;
  auto& model = models_[row.model];
  if (!model) model = std::make_unique<Model>(load_model(row.model, model_folder()));
  c.model = model.get();
  if (c.model->has_experts()) return;
  for (ToldWorkers* w : {&c.engine, &c.prefill}) w->moe_tp = w->moe_ep = 0;
}

void ServingCatalogue::find_machine(ServingCase& c) {
  ServingRow& row = c.row;
  const std::string alias = accelerator_name(aliases_, row.gpu);
  row.gpu = plain_gpu(row.gpu);
  const auto choice = choose_cluster(aliases_, wirings_, alias, "", "", c.gpus());
  if (!choice) return;
  row.accelerator = choice->accelerator;
  row.cluster = choice->cluster;
  row.assumed.insert(row.assumed.end(), choice->assumed.begin(), choice->assumed.end());
  c.domain = wirings_.at(row.cluster).domain;
  auto& device = devices_[row.accelerator];
  if (!device) device = std::make_unique<ResolvedDevice>(load_device(row.accelerator).resolved());
  c.device = device.get();
}

// A11: before experts' ranks and attention DP were recorded, tables print tensor parallelism alone.
void ServingCatalogue::restore_layout(ServingCase& c) {
  ToldWorkers& w = c.engine;
  if (c.row.disaggregated || w.tp <= 1 || w.attention_dp != 1 || w.moe_ep != 1) return;
  const ServingFacts f = facts(c, "");
  const auto layout = std::find_if(recipes_.layouts.begin(), recipes_.layouts.end(),
                                   [&f](const ServingLayout& l) { return l.when.holds(f); });
  if (layout == recipes_.layouts.end()) return;
  w.moe_ep = w.tp;
  w.moe_tp = 1;
  if (layout->attention_dp) std::swap(w.tp, w.attention_dp);
  c.row.assumed.push_back(fmt::format("EP {}{}, which was not recorded yet, by {}", w.moe_ep,
                                      layout->attention_dp ? " with attention DP" : "",
                                      layout->citation));
}

// A13: the table says of engines that compute prompts, or that decode, what the file that launched
// them contradicts.
void ServingCatalogue::correct_label(ServingCase& c, ToldWorkers& w, const std::string& role) {
  const ServingFacts f = facts(c, role);
  const auto layout =
      std::find_if(recipes_.layouts.begin(), recipes_.layouts.end(),
                   [&](const ServingLayout& l) { return l.when.role == role && l.when.holds(f); });
  if (layout == recipes_.layouts.end()) return;
  const ToldWorkers told = w;
  const std::int64_t gpus = told.tp * told.attention_dp;
  w.tp = layout->attention_dp ? 1 : gpus;
  w.attention_dp = layout->attention_dp ? gpus : 1;
  w.moe_ep = layout->expert_tp ? 1 : gpus;
  w.moe_tp = gpus / w.moe_ep;
  if (w.tp == told.tp && w.moe_ep == told.moe_ep) return;
  c.row.assumed.push_back(fmt::format(
      "engines of {}: TP {}, attention DP {}, EP {} by {}, where the table says otherwise", role,
      w.tp, w.attention_dp, w.moe_ep, layout->citation));
}

void ServingCatalogue::resolve(ServingCase& c) {
  find_model(c);
  find_machine(c);
  restore_layout(c);
  if (c.row.disaggregated) {
    correct_label(c, c.prefill, "prefill");
    correct_label(c, c.engine, "decode");
  }
  c.row.group =
      fmt::format("{} x {}@{}/{}", c.row.family, c.engine_name, c.row.gpu, c.row.campaign);
}

ServingFacts ServingCatalogue::facts(const ServingCase& c, const std::string& role) const {
  const ServingRow& row = c.row;
  const ToldWorkers& workers = role == "prefill" ? c.prefill : c.engine;
  const std::size_t slash = row.model_told.find('/');
  return {.engine = c.engine_name,
          .accelerator = row.accelerator,
          .family = row.family,
          .model = row.model,
          .owner = slash == std::string::npos ? "" : lower_case(row.model_told.substr(0, slash)),
          .precision = row.precision,
          .campaign = row.campaign,
          .mode = row.disaggregated ? "disagg" : "agg",
          .role = role,
          .speculation = std::string(serving_speculation_text[row.software.speculation]),
          .date = row.date,
          .release = row.software.release,
          .attention_dp = workers.attention_dp > 1,
          .tp = workers.tp,
          .isl = row.load.prompt_tokens,
          .osl = row.load.output_tokens,
          .concurrency = c.concurrency()};
}

std::string ServingCatalogue::missing(const ServingCase& c) const {
  const ServingRow& row = c.row;
  const auto& engines = recipes_.engines;
  if (std::none_of(engines.begin(), engines.end(),
                   [&c](const auto& e) { return e.stack == c.engine_name; })) {
    std::vector<std::string> known;
    for (const auto& e : engines) known.push_back(e.stack);
    return fmt::format("no serving engine {} in the catalogue (there are {})",
                       in_quotes(row.software.framework), enumeration(known));
  }
  if (row.accelerator.empty())
    return fmt::format("accelerator {} is not in aliases.json", in_quotes(row.gpu));
  if (row.model.empty())
    return fmt::format("no model {} in the catalogue", in_quotes(row.model_told));
  if (c.engine.ranks() == 0) return "tensor parallelism is not told";
  if (!row.measured.ttft && !row.measured.tpot && !row.measured.tokens_s_gpu)
    return "the table tells no latency and no throughput";
  return "";
}

bool ServingCatalogue::set_precision(ServingCase& c) {
  const ServingFacts f = facts(c, "");
  for (const auto& p : recipes_.precisions) {
    const bool told = std::find(p.told.begin(), p.told.end(), f.precision) != p.told.end();
    if (!told || !p.when.holds(f)) continue;
    c.row.skipped = p.skipped;
    if (!p.recipe) return false;
    c.row.engine.layout.precision = c.row.prefill.layout.precision = *p.recipe;
    if (!p.why.empty()) c.row.assumed.push_back(p.why);
    return true;
  }
  c.row.skipped = fmt::format("no format {} of weights is known", in_quotes(c.row.precision));
  return false;
}

std::string ServingCatalogue::release_at(const std::string& stack, const std::string& date) {
  auto& known = releases_[stack];
  if (known.empty())
    for (const Stack& s : load_releases(stack, {}, stack_folder()))
      known.emplace_back(s.date, s.release);
  std::string best = known.front().second;
  for (const auto& [from, name] : known)
    if (date.empty() || from <= date) best = name;
  return best;
}

void ServingCatalogue::set_stack(ServingCase& c) {
  ServingSoftware& software = c.row.software;
  const ServingEngine* engine = recipes_.engine(software.framework);
  const bool foreign =
      c.row.disaggregated && starts_with_any(software.release, engine->foreign_releases);
  std::string release = foreign ? "" : numbers_of(software.release);
  if (release.empty()) {
    release = release_at(engine->stack, c.row.date);
    const std::string why =
        foreign ? fmt::format("{} is {}'s release", software.release, engine->foreign)
        : software.release.empty()
            ? std::string("release not stated")
            : fmt::format("{} names no release", in_quotes(software.release));
    c.row.assumed.push_back(fmt::format("{}: {} by the date", why, release));
  }
  software.stack = engine->stack + "@" + release;
}

// Runs of TensorRT-LLM's own benchmark.
void ServingCatalogue::set_bench(ServingCase& c) const {
  const auto table = recipes_.tables.find("overview");
  if (!c.of(ServingTable::overview) || table == recipes_.tables.end()) return;
  const OfflineBench& bench = table->second.bench;
  if (bench.empty() || !c.model || !c.device) return;
  ServingLoad& load = c.row.load;
  load.prompts = static_cast<double>(bench.count_of(load.prompt_tokens, load.output_tokens));
  const double weight_bytes = c.row.precision == "fp4" ? 0.5 : c.row.precision == "fp8" ? 1 : 2;
  const OfflineLimits chosen = offline_limits(bench, *c.model, c.device->memory_capacity,
                                              c.row.engine.layout.gpus(), weight_bytes, load);
  ServingLimits& limits = c.row.engine.limits;
  limits.max_sequences = chosen.sequences;
  limits.token_budget = chosen.tokens;
  limits.memory_share = bench.memory_share;
  limits.graphs = graphs_up_to(bench.graphs, chosen.sequences);
  c.row.assumed.push_back(fmt::format("{} requests, sequences at once {}, token budget {} by {}",
                                      load.prompts, chosen.sequences, chosen.tokens,
                                      table->second.bench_citation));
}

// How many sequences a rank that decodes takes: clients beyond them wait for their first token.
void ServingCatalogue::set_deployment(ServingCase& c) const {
  ServingRow& row = c.row;
  if (!row.disaggregated || !row.load.concurrency) return;
  const auto known = std::find_if(recipes_.deployments.begin(), recipes_.deployments.end(),
                                  [&](const ServingDeployments& of) {
                                    return of.engine == c.engine_name && of.family == row.family;
                                  });
  if (known == recipes_.deployments.end()) return;
  const ServingDeployment asked{.gpu = row.gpu,
                                .precision = row.precision,
                                .isl = std::llround(row.load.prompt_tokens),
                                .osl = std::llround(row.load.output_tokens),
                                .guesses = row.software.speculation == ServingSpeculation::mtp,
                                .prefill = row.prefill.count,
                                .decode = row.engine.count,
                                .attention_dp = row.engine.layout.attention_dp > 1,
                                .gpus = row.engine.layout.gpus()};
  const ServingDeployment* found = known->find(asked, std::llround(*row.load.concurrency));
  if (!found) return;
  row.engine.limits.max_sequences = found->batch;
  row.assumed.push_back(fmt::format("sequences at once {} of a rank that decodes by {}",
                                    found->batch, known->citation));
  const std::int64_t experts = c.model->max_experts();
  if (found->expert_places < experts || experts == 0) return;
  row.engine.layout.expert_copies = found->expert_places - experts;
  row.assumed.push_back(
      fmt::format("ranks that decode evened out, with {} copies of experts, by {}",
                  *row.engine.layout.expert_copies, known->citation));
}

void ServingCatalogue::set_limits(ServingCase& c, ServingWorkers& workers,
                                  const std::string& role) {
  const ServingFacts f = facts(c, role);
  const auto ranks = static_cast<double>(workers.count * workers.layout.attention_dp);
  OpenSettings open{.c = c, .workers = workers, .taken = {}};
  open.sequences = std::max(1.0, std::ceil(c.concurrency() / ranks));
  bool cache = false, waves = role == "prefill";
  const auto take = [&](const ServingRecipe& recipe, const char* from) {
    if (!recipe.when.holds(f)) return;
    open.taken.clear();
    take_software(recipe.set, c.row.software, open.taken);
    if (recipe.set.cache && !cache) {
      cache = true;
      workers.layout.cache = *recipe.set.cache;
      open.taken.push_back(fmt::format("KV cache in {}", to_text(workers.layout.cache)));
    }
    if (recipe.set.gathers_rows && !workers.layout.gathers_rows) {
      workers.layout.gathers_rows = true;
      open.taken.push_back("rows of experts gathered on all ranks");
    }
    if (recipe.set.grouped_gemm && !workers.limits.grouped_gemm) {
      workers.limits.grouped_gemm = *recipe.set.grouped_gemm;
      open.taken.push_back(fmt::format("experts by {}", library_text[*recipe.set.grouped_gemm]));
    }
    if (recipe.set.frontend && !workers.limits.frontend) {
      workers.limits.frontend = *recipe.set.frontend;
      open.taken.push_back(
          fmt::format("requests by {}'s server", frontend_text[*recipe.set.frontend]));
    }
    if (recipe.set.eager && !workers.limits.eager) {
      workers.limits.eager = true;
      open.taken.push_back("neither graphs nor a compiler");
    }
    if (!recipe.set.graphs.empty() && workers.limits.graphs.empty()) {
      workers.limits.graphs = recipe.set.graphs;
      open.taken.push_back(fmt::format("graphs of up to {} rows", recipe.set.graphs.back().to));
    }
    if (recipe.set.prefix_cache && !workers.limits.prefix_cache) {
      workers.limits.prefix_cache = true;
      open.taken.emplace_back("a prefix cache");
    }
    if (recipe.set.memory_share && !workers.limits.memory_share) {
      workers.limits.memory_share = recipe.set.memory_share;
      open.taken.push_back(fmt::format("{} of the memory", *recipe.set.memory_share));
    }
    open.numbers(recipe.set);
    if (recipe.set.waves && !waves) {
      waves = true;
      c.row.load.prompts = recipe.set.waves->plus * c.concurrency();
    }
    if (open.taken.empty()) return;
    const std::string of = role.empty() ? "" : " of " + role;
    c.row.assumed.push_back(
        fmt::format("{}{} by {} {}", joined(open.taken, ", "), of, from, recipe.citation));
  };
  for (const auto& recipe : recipes_.recipes) take(recipe, "recipe");
  for (const auto& recipe : recipes_.defaults) take(recipe, "default");
  if (cache) return;
  workers.layout.cache = Format::bf16;
  c.row.assumed.emplace_back("KV cache in bf16: not stated");
}

void ServingCatalogue::complete(ServingCase& c) {
  ServingRow& row = c.row;
  const bool experts = c.model && c.model->has_experts();
  row.engine.count = std::max<std::int64_t>(1, c.engine.count);
  row.engine.layout = layout_of(c.engine, experts);
  row.prefill.count = std::max<std::int64_t>(1, c.prefill.count);
  row.prefill.layout = layout_of(c.prefill, experts);
  if (!c.live()) return;
  row.skipped = missing(c);
  if (!row.skipped.empty() || !set_precision(c)) return;
  set_stack(c);
  set_bench(c);
  set_deployment(c);
  set_limits(c, row.engine, row.disaggregated ? "decode" : "");
  if (row.disaggregated) set_limits(c, row.prefill, "prefill");
  lengthen_prompts(c);
}

// A12, after the limits: those follow from what the client thought it sent.
void ServingCatalogue::lengthen_prompts(ServingCase& c) const {
  const ServingFacts f = facts(c, c.row.disaggregated ? "decode" : "");
  for (const LongerPrompts& longer : recipes_.longer_prompts) {
    if (!longer.when.holds(f)) continue;
    c.row.load.prompt_tokens = std::round(c.row.load.prompt_tokens * longer.times + longer.plus);
    c.row.assumed.push_back(longer.sentence);
  }
}

}  // namespace orrery
