// SPDX-License-Identifier: Apache-2.0
// Holds readers of configurations to law 15: what launch flags say is read back as it was.
#include <algorithm>
#include <map>
#include <set>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/base/random.h"
#include "sim/engine/placement.h"
#include "sim/launch/configurations/configuration.h"
#include "sim/launch/flags.h"
#include "sim/launch/serving/engine.h"
#include "sim/launch/serving/yaml.h"
#include "sim/question/serve/engine_text.h"
#include "sim/question/settings/settings.h"
#include "tests/launch/script_cases.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

struct Started {
  const char *stack, *cluster;
  std::int64_t gpus;
};
const std::vector<Started> starts = {
    {"megatron-core", "dgx-h100", 128},
    {"megatron-core@0.6", "dgx-a100", 64},
    {"megatron-core@0.2", "dgx-a100", 64},
    {"megatron-core@0.12", "dgx-h100", 64},
    {"megatron-lm-rocm", "mi300x-8", 64},
    {"nemo", "gb200-nvl72", 576},
    {"nemo", "dgx-b200", 64},
    {"nemo@25.05", "dgx-h100", 64},
    {"nemo@23.04", "dgx-a100", 64},
    {"pytorch-fsdp2", "dgx-h200", 128},
    {"pytorch-fsdp2@0.1", "h100-4-ndr", 32},
    {"automodel", "dgx-h100", 64},
    {"nanotron", "dgx-h100", 64},
    {"megatron-deepspeed", "dgx-a100", 64},
    {"deepspeed-zero", "l40s-8", 16},
    {"primus", "mi300x-8", 64},
    {"maxtext", "dgx-h100", 64},
    {"megatron-lm-gaudi", "gaudi2-8", 64},
};

const char* extension(const std::string& language) {
  return language == "python" ? ".py"
         : language == "yaml" ? ".yaml"
         : language == "toml" ? ".toml"
         : language == "json" ? ".json"
                              : ".sh";
}

class DrawnLayout {
 public:
  DrawnLayout(RandomStream& random, const Scenario& s) : random_(random), s_(s) {}

  std::optional<Layout> valid() {
    for (int i = 0; i < 300; ++i) {
      Layout l;
      sizes(l);
      if (s_.cluster.gpus % (l.tp * l.pp * l.cp) != 0) continue;
      l.dp = s_.cluster.gpus / (l.tp * l.pp * l.cp);
      states(l);
      if (s_.model.has_experts()) {
        l.ep = power(3);
        l.etp = one_in(2) ? l.tp : 1;
      }
      if (!invalid_reason(l, s_.model, s_.job, s_.cluster.gpus) &&
          !unplaceable_reason(l, s_.cluster.fabric))
        return l;
    }
    return std::nullopt;
  }

 private:
  std::int64_t power(std::uint64_t most) { return std::int64_t{1} << random_.below(most + 1); }
  bool one_in(std::uint64_t many) { return random_.below(many) == 0; }

  void sizes(Layout& l) {
    l.tp = power(3);
    l.pp = power(3);
    l.cp = one_in(3) ? power(2) : 1;
    if (s_.stack.launcher == Launcher::deepspeed) l.tp = l.pp = l.cp = 1;
    l.micro_batch = power(2);
    l.sequence_parallel = !one_in(3);
    if (l.cp > 1) l.context = static_cast<ContextKind>(random_.below(4));
    if (l.context == ContextKind::hierarchical && l.cp > 1) l.context_inner = 2;
    if (l.pp > 1 && one_in(3)) {
      l.vpp = power(2);
      if (l.vpp > 1) l.schedule = Schedule::interleaved;
    }
    if (l.pp > 1 && one_in(6)) {
      l.schedule = static_cast<Schedule>(random_.below(8));
      l.vpp = is_v_shaped(l.schedule) ? 2 : l.vpp;
    }
    if (l.pp > 1 && l.vpp == 1 && one_in(6)) uneven(l);
    if (l.pp > 1 && one_in(8))
      l.rank_order = RankOrder({Parallel::tp, Parallel::cp, Parallel::pp, Parallel::dp});
  }
  void uneven(Layout& l) {
    const std::int64_t each = s_.model.layer_count() / l.pp;
    if (each < 2) return;
    l.stage_layers.assign(static_cast<std::size_t>(l.pp), each);
    l.stage_layers.front() += s_.model.layer_count() - each * l.pp + 1;
    l.stage_layers.back() -= 1;
  }
  void states(Layout& l) {
    l.zero_stage = static_cast<int>(random_.below(4));
    if (l.zero_stage == 3 && l.dp > 2 && one_in(4)) l.shard_group = l.dp * l.cp / 2;
    l.recompute = static_cast<Recompute>(random_.below(3));
    if (l.recompute == Recompute::selective && one_in(2))
      l.recompute_modules = {RecomputeModule::core_attn, RecomputeModule::layernorm};
    if (l.recompute == Recompute::full && one_in(3)) l.recompute_layers = 1;
    if (one_in(3)) l.precision = static_cast<PrecisionRecipe>(random_.below(7));
    if (one_in(4)) l.optimizer = static_cast<Optimizer>(random_.below(8));
    if (one_in(4)) l.offload_optimizer = true;
    if (l.offload_optimizer && one_in(2)) l.optimizer_offload_fraction = 0.5;
    if (l.pp == 1 && one_in(8)) l.offload_activations = true;
    if (l.zero_stage == 3 && one_in(8)) l.offload_weights = true;
  }

  RandomStream& random_;
  const Scenario& s_;
};

// Keys that say nothing of this layout, or for which the program has no words.
std::set<std::string> open_keys(const Scenario& s, const LaunchFlags& flags) {
  const Layout& l = s.layout;
  std::set<std::string> open = {"expert_replicas", "per_domain"};
  for (const FlagNote& note : flags.missing) open.insert(note.key);
  if (open.contains("recompute")) open.insert("recompute_layers");
  if (open.contains("schedule")) open.insert("vpp");
  if (open.contains("vpp")) open.insert("schedule");
  if (l.tp == 1) open.insert("sequence_parallel");
  if (l.pp == 1) open.insert("schedule");
  if (l.cp == 1 || open.contains("cp")) open.insert({"context_parallel", "context_inner"});
  if (open.contains("context_parallel")) open.insert("context_inner");
  if (!s.model.has_experts() || open.contains("ep")) open.insert({"ep", "etp"});
  if (l.dense_replicas() == 1) open.insert({"zero", "shard_group"});
  if (!l.offload_optimizer || open.contains("offload")) open.insert("optimizer_offload_fraction");
  // Beside pipelines both mean one gather of a stage's parameters a step.
  if (l.pp > 1 && l.zero_stage >= 2) open.insert("zero");
  // One setting says both there.
  if (s.stack.launcher == Launcher::automodel && l.zero_stage == 2) open.insert("zero");
  return open;
}

void check_same(const Scenario& s, const Scenario& read, const LaunchFlags& flags) {
  const std::set<std::string> open = open_keys(s, flags);
  const SortedJson was = to_json(s.layout), is = to_json(read.layout);
  for (const std::string& key : layout_keys()) {
    if (open.contains(key) || key == "stage_layers") continue;
    const SortedJson before = was.contains(key) ? was.at(key) : SortedJson();
    const SortedJson after = is.contains(key) ? is.at(key) : SortedJson();
    INFO(key << ": " << before.dump() << " became " << after.dump());
    CHECK(before == after);
  }
  if (open.contains("stage_layers") || open.contains("vpp")) return;
  const auto placed = partition_layers(s.model, s.layout, s.stack.sharding.partition);
  const auto again = partition_layers(read.model, read.layout, read.stack.sharding.partition);
  REQUIRE(placed.size() == again.size());
  for (std::size_t i = 0; i < placed.size(); ++i) CHECK(placed[i].layers == again[i].layers);
}

// Reads text that starts the scenario, and holds what it says against it.
void check_read_back(const Scenario& s, const LaunchFlags& flags, const std::string& text,
                     const std::string& file, const SortedJson& asked, const std::string& stack) {
  INFO(text);
  const auto run = read_configuration_text(text, file, asked);
  REQUIRE(run);
  // A script leaves values to its user.
  const bool bare = file != "run.sbatch";
  for (const GivenItem& item : run->not_understood)
    if (flags.missing.empty() && bare)
      FAIL_CHECK("not understood: " << item.name << " " << item.value << " " << item.note);
  SortedJson settings = run->settings;
  // The program is the one that was asked for; the release is not said.
  const Stack of_program =
      load_stack(settings.at("stack").text(), {}, data_root() / "workloads/catalog/stacks");
  CHECK(of_program.launcher == s.stack.launcher);
  settings.update(asked);
  settings["stack"] = stack;
  if (!settings.contains("seq")) settings["seq"] = s.job.sequence;  // deepspeed: of its data
  const Scenario read = read_scenario(JsonValue::from(settings, file));
  CHECK(read.job.sequence == s.job.sequence);
  CHECK(read.job.global_batch == s.job.global_batch);
  check_same(s, read, flags);
}

TEST_CASE("law 15: launch flags that are read back are the layout that they say") {
  const std::vector<std::string> models = {"llama3-8b",    "llama3-70b",    "gpt3-175b",
                                           "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3",
                                           "llama2-13b",   "qwen2.5-7b",    "mistral-7b"};
  std::map<std::string, int> seen;
  const auto once = [&](RandomStream& random, const Started& start) {
    const std::string& name = models[random.below(models.size())];
    Scenario s{.cluster = load_cluster(start.cluster, start.gpus)};
    s.model = load_model(name, data_root() / "workloads/catalog/models");
    s.job.sequence = 2048;
    s.job.global_batch = 8 * start.gpus;
    s.stack = catalogue_stack(start.stack, s.cluster, s.model, s.job, s.layout.precision);
    const std::optional<Layout> layout = DrawnLayout(random, s).valid();
    if (!layout) return;
    s.layout = *layout;
    s.stack = catalogue_stack(start.stack, s.cluster, s.model, s.job, s.layout.precision);
    const LaunchFlags flags = launch_flags(s);
    // What no flag says of sizes stands in the model's code.
    const auto is_size = [](const FlagNote& note) {
      return note.key == "tp" || note.key == "pp" || note.key == "cp";
    };
    if (std::any_of(flags.missing.begin(), flags.missing.end(), is_size)) return;
    INFO(start.stack << " " << name << ": " << to_text(s.layout) << "\n" << flags.text);
    const SortedJson asked = {{"model", name}, {"gpus", start.gpus}, {"cluster", start.cluster}};
    check_read_back(s, flags, flags.text, std::string("flags") + extension(flags.language), asked,
                    start.stack);
    // The script around them counts its ranks itself, and names the model by its shape or not.
    if (random.below(4) == 0 && no_slurm_reason(s).empty())
      check_read_back(s, flags, test::slurm_of(s), "run.sbatch",
                      {{"model", name}, {"cluster", start.cluster}}, start.stack);
    ++seen[start.stack];
  };
  rc::check("flags are read back", [&] {
    RandomStream random(*rc::gen::arbitrary<std::uint64_t>(), 0);
    for (const Started& start : starts) once(random, start);
  });
  for (const Started& start : starts) {
    INFO(start.stack);
    CHECK(seen[start.stack] > 10);
  }
}

// A server's command as it stands in a script, its file beside it.
std::string served_text(const EngineCommand& command, const std::string& start) {
  std::string text;
  if (command.file.is_object() && !command.file.empty())
    text += "cat > extra.yaml <<'END'\n" + to_yaml(command.file) + "END\n";
  text += start;
  for (const LaunchFlag& flag : command.flags)
    text += " " + flag.name + (flag.value.empty() ? "" : " '" + flag.value + "'");
  if (command.file.is_object() && !command.file.empty())
    text += " --extra_llm_api_options extra.yaml";
  return text + "\n";
}

struct ServedProgram {
  const char *stack, *start;
};

EngineLayout drawn_engine(RandomStream& random, const Model& model, bool trtllm) {
  EngineLayout l;
  const auto power = [&](std::uint64_t most) { return std::int64_t{1} << random.below(most + 1); };
  l.tp = power(3);
  l.pp = power(1);
  l.etp = l.tp;
  if (model.has_experts()) {
    l.attention_dp = power(3);
    if (trtllm && l.attention_dp > 1) l.tp = 1;  // it has no ranks that share attention there
    const std::int64_t ranks = l.tp * l.attention_dp;
    l.ep = random.below(2) == 0 ? ranks : 1;
    l.etp = ranks / l.ep;
    if (l.ep > 1 && random.below(2) == 0)
      l.expert_copies = l.ep * static_cast<std::int64_t>(random.below(3));
  }
  if (random.below(2) == 0) l.cache = Format::fp8;
  if (random.below(2) == 0 && !trtllm) l.precision = PrecisionRecipe::fp8_current;
  return l;
}

TEST_CASE("law 15: commands of serving engines that are read back are the engine that they say") {
  const std::vector<ServedProgram> programs = {
      {"vllm", "vllm serve"},
      {"sglang", "python3 -m sglang.launch_server --model-path"},
      {"trtllm", "trtllm-serve"}};
  int seen = 0;
  rc::check("engines are read back", [&] {
    const ServedProgram program = *rc::gen::elementOf(programs);
    const std::string name =
        *rc::gen::element(std::string("deepseek-v3"), std::string("llama3.3-70b"));
    RandomStream random(*rc::gen::arbitrary<std::uint64_t>(), 0);
    ServedDeployment d{.name = name};
    const Model model = load_model(name, data_root() / "workloads/catalog/models");
    d.experts = model.max_experts();
    d.dense = true;
    d.context = d.longest = model.max_context;
    d.stack = load_stack(program.stack, {.architecture = "hopper", .task = Task::decode},
                         data_root() / "workloads/catalog/stacks");
    ServedEngine e{.layout = drawn_engine(random, model, std::string(program.stack) == "trtllm"),
                   .policy = d.stack.serving.policy};
    e.policy.token_budget = 1024 * static_cast<std::int64_t>(1 + random.below(16));
    e.policy.max_sequences = 16 * static_cast<std::int64_t>(1 + random.below(32));
    e.policy.prefix_cache = random.below(2) == 0;
    d.engines = {e};
    const EngineCommand command = engine_command(d, e);
    const std::string start = std::string(program.start) + " " + name;
    const std::string text = served_text(command, start);
    INFO(text);
    const auto run = read_configuration_text(text, "serve.sh", SortedJson::object());
    REQUIRE(run);
    CHECK(run->serves);
    const SortedJson& s = run->settings;
    CHECK(s.at("stack").text() == program.stack);
    CHECK(s.at("model").text() == name);
    const EngineLayout read = parse_engines(s.at("engines").text(), "engines").layout;
    const auto lacks = [&](const char* key) {
      return std::any_of(command.missing.begin(), command.missing.end(),
                         [&](const FlagNote& note) { return note.key == key; });
    };
    CHECK(read.tp == e.layout.tp);
    CHECK(read.pp == e.layout.pp);
    CHECK(read.attention_dp == e.layout.attention_dp);
    if (!lacks("ep") && model.has_experts()) {
      CHECK(read.ep == e.layout.ep);
      CHECK(read.expert_copies == e.layout.expert_copies);
    }
    CHECK(s.at("cache").text() == (e.layout.cache == Format::fp8 ? "fp8" : "bf16"));
    CHECK(s.at("precision").text() == to_text(e.layout.precision));
    CHECK(s.at("token_budget") == SortedJson(e.policy.token_budget));
    CHECK(s.at("max_sequences") == SortedJson(e.policy.max_sequences));
    const auto cached = s.find("prefix_cache");
    CHECK((cached == s.end() || cached->get<bool>()) == e.policy.prefix_cache);
    CHECK(s.at("memory_share").get<double>() == Approx(d.stack.serving.memory.share));
    ++seen;
  });
  CHECK(seen == 100);
}

TEST_CASE("copies of experts count where somebody counts how often they are chosen") {
  const auto engines = [](const std::string& flags) {
    const auto run = read_configuration_text(
        "python3 -m sglang.launch_server --model-path deepseek-v3 --tp-size 32 --dp-size 32 "
        "--enable-dp-attention --moe-a2a-backend deepep " +
            flags + "\n",
        "serve.sh", SortedJson::object());
    REQUIRE(run);
    return run->settings.at("engines").text();
  };
  CHECK(engines("") == "TP1DP32EP32");
  CHECK(engines("--ep-num-redundant-experts 32") == "TP1DP32EP32");
  CHECK(engines("--enable-eplb") == "TP1DP32EP32+0");
  CHECK(engines("--enable-eplb --ep-num-redundant-experts 32") == "TP1DP32EP32+32");
  CHECK(engines("--init-expert-location counts.json --ep-num-redundant-experts 32") ==
        "TP1DP32EP32+32");
  CHECK(engines("--init-expert-location trivial --ep-num-redundant-experts 32") == "TP1DP32EP32");
}

}  // namespace
}  // namespace orrery
