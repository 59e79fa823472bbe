// SPDX-License-Identifier: Apache-2.0
// Tests laws of launch scripts: of random layouts on all models and programs.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/engine/placement.h"
#include "sim/launch/script/host_plan.h"
#include "sim/launch/script/program.h"
#include "sim/launch/script/shape.h"
#include "tests/launch/script_cases.h"

namespace orrery::test {
namespace {

struct Started {
  const char *stack, *cluster;
  std::int64_t gpus;
};
const std::vector<Started> starts = {
    {"megatron-core", "dgx-h100", 128},
    {"megatron-core@0.6", "dgx-a100", 64},
    {"megatron-lm-rocm", "mi300x-8", 64},
    {"nemo", "gb200-nvl72", 576},
    {"nemo", "dgx-b200", 64},
    {"nemo@25.05", "dgx-h100", 64},
    {"pytorch-fsdp2", "dgx-h200", 128},
    {"pytorch-fsdp2@0.1", "h100-4-ndr", 32},
    {"deepspeed-zero", "l40s-8", 16},
    {"maxtext", "dgx-h100", 64},
    {"maxtext", "tpu-v5p", 64},
};

// Text that fmt left as it was, or that a shell would.
void check_text(const std::string& text) {
  INFO(text);
  CHECK_FALSE(holds(text, "{}"));
  CHECK_FALSE(holds(text, "{0}"));
  CHECK_FALSE(holds(text, "\t"));
  CHECK_FALSE(holds(text, " \n"));
  CHECK(text.ends_with('\n'));
  for (std::size_t at = text.find("#"); at != std::string::npos; at = text.find("\n#", at + 1))
    CHECK(text.find('\n', at + 1) - at <= 101 + (text[at] == '\n'));
  for (const std::string& name : unset_variables(text)) FAIL_CHECK(name << " is set by nobody");
}

// A layout of so many ranks, or none: some models lie on few.
std::optional<Layout> drawn(RandomStream& random, const Scenario& s) {
  const auto power = [&](std::uint64_t most) { return std::int64_t{1} << random.below(most + 1); };
  for (int i = 0; i < 200; ++i) {
    Layout l;
    l.tp = power(3);
    l.pp = power(3);
    l.cp = power(1);
    if (s.cluster.gpus % (l.tp * l.pp * l.cp) != 0) continue;
    l.dp = s.cluster.gpus / (l.tp * l.pp * l.cp);
    l.micro_batch = power(1);
    l.zero_stage = static_cast<int>(random.below(4));
    l.recompute = static_cast<Recompute>(random.below(3));
    l.sequence_parallel = random.below(2) == 0;
    if (random.below(3) == 0 && l.pp > 1) {
      l.vpp = 2;
      l.schedule = Schedule::interleaved;
    }
    if (random.below(4) == 0) l.per_domain = 1 + static_cast<std::int64_t>(random.below(8));
    if (s.model.has_experts()) l.ep = power(3);
    l.precision = random.below(2) == 0 ? PrecisionRecipe::bf16 : PrecisionRecipe::fp8_current;
    if (!invalid_reason(l, s.model, s.job, s.cluster.gpus) &&
        !unplaceable_reason(l, s.cluster.fabric))
      return l;
  }
  return std::nullopt;
}

TEST_CASE("law of scripts: a random layout of any model gives whole scripts of its ranks") {
  const std::vector<std::string> models = model_names(data_root() / "workloads/catalog/models");
  int seen = 0;
  rc::check("scripts are whole", [&] {
    const Started start = *rc::gen::elementOf(starts);
    const Model model = model_of(*rc::gen::elementOf(models));
    Scenario s =
        scenario_of(start.stack, start.cluster, start.gpus, model, {}, 4096, 8 * start.gpus);
    RandomStream random(*rc::gen::arbitrary<std::uint64_t>(), 0);
    const std::optional<Layout> layout = drawn(random, s);
    if (!layout) return;
    ++seen;
    s.layout = *layout;
    s.stack = catalogue_stack(start.stack, s.cluster, s.model, s.job, s.layout.precision);
    const HostPlan plan = host_plan(s);
    RC_ASSERT((plan.hosts - 1) * plan.ranks + plan.last_ranks == s.layout.gpus());
    RC_ASSERT(plan.ranks <= plan.accelerators);
    RC_ASSERT(plan.last_ranks >= 1);
    if (no_slurm_reason(s).empty()) {
      const std::string slurm = slurm_of(s);
      check_text(slurm);
      RC_ASSERT(holds(slurm, "--nodes=" + std::to_string(plan.hosts) + "\n"));
    }
    check_text(kubernetes_of(s));
  });
  CHECK(seen > 50);  // of a hundred
}

// The model that Megatron-LM would build of the flags, by its number of parameters.
class BuiltOf {
 public:
  explicit BuiltOf(const ShapeFlags& shape) {
    for (const LaunchFlag& flag : shape.flags) flags_[flag.name] = flag.value;
  }
  double parameters(double vocabulary) const {
    const double h = size("--hidden-size"), norm = has_bias_norms() ? 2 * h : h;
    const std::string experts = flags_.contains("--moe-layer-freq") ? flags_.at("--moe-layer-freq")
                                : size("--num-experts") > 0         ? "all"
                                                                    : "none";
    const double layers = size("--num-layers");
    double routed = experts == "all" ? layers : 0;
    if (experts.starts_with("'(")) routed = runs_of_one(experts);
    double total = layers * (attention(h) + 2 * norm) + norm;
    total +=
        routed * expert_layer(h) + (layers - routed) * feed_forward(h, size("--ffn-hidden-size"));
    if (flags_.at("--position-embedding-type") == "learned_absolute")
      total += size("--max-position-embeddings") * h;
    return total +
           vocabulary * h * (flags_.contains("--untie-embeddings-and-output-weights") ? 2 : 1);
  }

 private:
  bool is(const char* name) const { return flags_.contains(name); }
  double size(const char* name) const { return is(name) ? std::stod(flags_.at(name)) : 0; }
  bool has_bias_norms() const { return flags_.at("--normalization") == "LayerNorm"; }
  bool biases() const { return !is("--disable-bias-linear"); }

  static double runs_of_one(const std::string& pattern) {
    double count = 0;
    const std::size_t times = pattern.find(")*");
    for (std::size_t at = pattern.find("[1]*"); at != std::string::npos;
         at = pattern.find("[1]*", at + 1))
      count += std::stod(pattern.substr(at + 4));
    return times == std::string::npos ? count : count * std::stod(pattern.substr(times + 2));
  }

  double attention(double h) const {
    const double heads = size("--num-attention-heads");
    if (is("--multi-latent-attention")) {
      const double q = size("--q-lora-rank"), kv = size("--kv-lora-rank");
      const double width = size("--qk-head-dim") + size("--qk-pos-emb-head-dim");
      const double queries = q > 0 ? h * q + q + q * heads * width : h * heads * width;
      const double keys = h * (kv + size("--qk-pos-emb-head-dim")) + kv +
                          kv * heads * (size("--qk-head-dim") + size("--v-head-dim"));
      return queries + keys + heads * size("--v-head-dim") * h;
    }
    const double groups = is("--num-query-groups") ? size("--num-query-groups") : heads;
    const double width = size("--kv-channels"), out = (heads + 2 * groups) * width;
    double count = h * out + heads * width * h;
    if (biases() || is("--add-qkv-bias")) count += out;
    if (biases()) count += h;
    if (is("--qk-layernorm")) count += 2 * width;
    if (is("--softmax-type")) count += heads;
    return count;
  }
  double feed_forward(double h, double width) const {
    const double in = is("--swiglu") ? 2 * width : width;
    return h * in + width * h + (biases() ? in + h : 0);
  }
  double expert_layer(double h) const {
    const double experts = size("--num-experts");
    double count = experts * feed_forward(h, size("--moe-ffn-hidden-size")) + experts * h;
    if (is("--moe-shared-expert-intermediate-size"))
      count += feed_forward(h, size("--moe-shared-expert-intermediate-size"));
    return count;
  }

  std::map<std::string, std::string> flags_;
};

TEST_CASE("law of shapes: Megatron-LM's flags build a model of as many parameters") {
  int built = 0;
  const Stack stack = load_stack("megatron-core", {.architecture = "hopper"},
                                 data_root() / "workloads/catalog/stacks");
  for (const std::string& name : model_names(data_root() / "workloads/catalog/models")) {
    const Model model = model_of(name);
    Job job;
    job.sequence = 2048;
    const ShapeFlags shape = megatron_shape(model, job, stack);
    // Those that Megatron-LM cannot build are told so, which the sentences do; Mamba is not
    // counted.
    const bool whole = std::all_of(shape.missing.begin(), shape.missing.end(), [](const auto& m) {
      return holds(m, "balancing without a loss");
    });
    if (!whole || model.has_scans()) continue;
    ++built;
    const double is = BuiltOf(shape).parameters(static_cast<double>(model.vocab));
    const auto counted = static_cast<double>(count_parameters(model).total);
    INFO(name << ": " << is << " of " << counted);
    CHECK(std::abs(is / counted - 1) < 1e-3);
  }
  CHECK(built > 60);
}

}  // namespace
}  // namespace orrery::test
