// SPDX-License-Identifier: Apache-2.0
// Makes a stack's values of host times, kernels of a layer and memory that PyTorch showed.
#include "sim/calibrate/fit/software_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "hw_models/kernel/kernel_time.h"
#include "sim/base/json/tree.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/fit/overlap_fit.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

using Samples = std::vector<const Sample*>;

Samples named(const MeasuredLog& log, const std::string& variant) {
  Samples found;
  for (const Sample& s : log.samples)
    if (s.kind == "software" && s.variant == variant) found.push_back(&s);
  return found;
}

// A number with its spread; arithmetic takes the corner that lies farthest out.
struct Range {
  double value = 0, low = 0, high = 0;
  int samples = 0;
};

// Median of the samples' values; the spread holds those of their repeats too.
std::optional<Range> range_of(const Samples& samples, double unit = 1) {
  if (samples.empty()) return std::nullopt;
  std::vector<double> values;
  Range range{.samples = static_cast<int>(samples.size())};
  for (const Sample* s : samples) {
    const double value = s->number("value") * unit;
    const auto other = [&](const char* key) {
      const auto at = s->numbers.find(key);
      return at == s->numbers.end() ? value : at->second * unit;
    };
    range.low = values.empty() ? other("low") : std::min(range.low, other("low"));
    range.high = values.empty() ? other("high") : std::max(range.high, other("high"));
    values.push_back(value);
  }
  range.value = median(values);
  range.low = std::min(range.low, range.value);
  range.high = std::max(range.high, range.value);
  return range;
}

// a - b where both can be as far apart or as near as their spreads allow; never below zero.
Range less(const Range& a, const Range& b) {
  return {std::max(0.0, a.value - b.value), std::max(0.0, a.low - b.high),
          std::max(0.0, a.high - b.low), std::min(a.samples, b.samples)};
}

Range spread_of(const std::vector<double>& values) {
  return {.value = median(values),
          .low = *std::min_element(values.begin(), values.end()),
          .high = *std::max_element(values.begin(), values.end()),
          .samples = static_cast<int>(values.size())};
}

// Whether two samples speak of the same layer.
bool same_case(const Sample& a, const Sample& b) {
  constexpr std::array keys = {"tokens", "length", "hidden",  "heads", "kv_heads",
                               "head",   "ffn",    "experts", "topk",  "vocab"};
  return std::all_of(keys.begin(), keys.end(), [&](const char* key) {
    const auto x = a.numbers.find(key), y = b.numbers.find(key);
    const bool none = x == a.numbers.end();
    return none == (y == b.numbers.end()) && (none || x->second == y->second);
  });
}

// The layer that a sample of llama_layer.py ran, as a model of one layer.
Model layer_model(const Sample& s) {
  const auto extent = [&](const char* key) { return static_cast<std::int64_t>(s.number(key)); };
  const bool moe = s.numbers.contains("experts");
  const LayerClass layer{.mixer = {.kind = MixerKind::attention,
                                   .heads = extent("heads"),
                                   .kv_heads = extent("kv_heads"),
                                   .qk_dim = extent("head"),
                                   .v_dim = extent("head")},
                         .ffn = {.kind = moe ? FfnKind::moe : FfnKind::dense,
                                 .activation = Activation::swiglu,
                                 .width = extent("ffn"),
                                 .experts = moe ? extent("experts") : 0,
                                 .topk = moe ? extent("topk") : 0}};
  Model model{.name = "layer", .hidden = extent("hidden"), .vocab = extent("hidden")};
  append_layer(model, layer);
  return model;
}

// The traffic at which `expected(passes)`, which grows with it, takes `seconds`: kernels' starts do
// not grow, so that the ratio of times alone is not the answer. 0 where the starts alone take
// longer.
double traffic_for(double seconds, const std::function<double(double)>& expected) {
  double low = 0, high = 1;
  while (expected(high) < seconds && high < 1e6) high *= 2;
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    (expected(middle) < seconds ? low : high) = middle;
  }
  return (low + high) / 2;
}

// What the memory-bound operations of that layer should take, forward and backward.
struct LayerTimes {
  double streams = 0, permutes = 0;  // seconds
};
LayerProgram layer_program(const Sample& s, const Stack& stack) {
  const Model model = layer_model(s);
  const auto length = static_cast<std::int64_t>(s.number("length"));
  const auto sequences = static_cast<std::int64_t>(s.number("tokens")) / length;
  const Job job{.sequence = length, .global_batch = sequences};
  const Layout layout{.micro_batch = sequences, .sequence_parallel = false, .zero_stage = 0};
  return LayerOperations(model, job, layout, stack).layer(model.classes.front());
}

double listed_kernels(const Segment& segment) {
  double count = 0;
  for (const Operation& o : segment.operations)
    if (o.kernel()) count += o.count;
  return count;
}

LayerTimes expected_layer(const Sample& s, const ResolvedDevice& device,
                          const Calibration& calibration, const Stack& stack) {
  const LayerProgram program = layer_program(s, stack);
  LayerTimes times;
  for (const Segment* segment : {&program.forward, &program.backward})
    for (const Operation& o : segment->operations) {
      const Kernel* kernel = o.kernel();
      if (!kernel) continue;
      const WorkKind kind = kernel->work.kind;
      if (is_product(kind) || is_attention(kind)) continue;
      const double time = o.count * kernel_time(*kernel, device, calibration).time.si();
      (kind == WorkKind::permute ? times.permutes : times.streams) += time;
    }
  return times;
}

class SoftwareFitter {
 public:
  SoftwareFitter(const MeasuredLog& log, const ResolvedDevice& device,
                 const Calibration& calibration, const Stack& base)
      : log_(log), device_(device), calibration_(calibration), stack_(base) {}

  SoftwareFit fit() {
    small_kernels();
    traffic();
    host();
    overlap();
    memory();
    for (const Sample* s : named(log_, "attention-default-training"))
      if (const auto text = s->texts.find("name"); text != s->texts.end())
        if (const auto library = library_text.find(text->second)) out_.attention = *library;
    for (const RunConditions& c : log_.conditions) {
      if (const auto torch = c.libraries.find("torch"); torch != c.libraries.end())
        out_.torch = torch->second;
      out_.date = std::max(out_.date, c.date);
    }
    order();
    return out_;
  }

 private:
  void put(const std::string& name, const Range& r, const std::string& reason) {
    out_.values.push_back({.name = name,
                           .value = r.value,
                           .low = r.low,
                           .high = r.high,
                           .samples = r.samples,
                           .reason = reason});
  }

  void order() {
    std::vector<std::string> names;
    Stack any;
    visit_stack_values(any, [&](const std::string& name, auto&) { names.push_back(name); });
    const auto rank = [&](const SoftwareValue& v) {
      return std::find(names.begin(), names.end(), v.name) - names.begin();
    };
    std::sort(out_.values.begin(), out_.values.end(),
              [&](const SoftwareValue& a, const SoftwareValue& b) { return rank(a) < rank(b); });
  }

  // Device time of the memory-bound kernels, fused or not, of one layer in both directions.
  std::optional<double> streamed(const std::string& phase, const Sample& of) const {
    double sum = 0;
    for (const char* direction : {"-forward", "-backward"})
      for (const char* label : {"-fused-time", "-eager-time"}) {
        bool found = false;
        for (const Sample* s : named(log_, phase + direction + label))
          if (!found && same_case(*s, of)) {
            sum += s->number("value") * 1e-6;
            found = true;
          }
        if (!found) return std::nullopt;
      }
    return sum;
  }

  // Kernels that a layer launched beyond those that its model lists; attention counts as one.
  void small_kernels() {
    count_small("small_kernels_forward", "layer-forward", stack_.kernels.small_kernels_forward,
                &LayerProgram::forward);
    count_small("small_kernels_backward", "layer-backward", stack_.kernels.small_kernels_backward,
                &LayerProgram::backward);
  }

  void count_small(const std::string& name, const std::string& phase, Sourced<double>& small,
                   const Segment LayerProgram::*segment) {
    Stack listed = stack_;
    listed.kernels.small_kernels_forward = listed.kernels.small_kernels_backward = unstated(0.0);
    std::vector<double> counts;
    for (const Sample* all : named(log_, phase + "-kernels"))
      for (const Sample* attention : named(log_, phase + "-attention-time"))
        if (same_case(*all, *attention)) {
          const auto of_attention = attention->numbers.find("kernels");
          const double parts = of_attention == attention->numbers.end() ? 1 : of_attention->second;
          const double known = listed_kernels(layer_program(*all, listed).*segment);
          counts.push_back(std::max(0.0, all->number("value") - (parts - 1) - known));
          break;
        }
    if (counts.empty()) return;
    put(name, spread_of(counts), "kernels of a compiled layer beyond those that move its data");
    small.value = median(counts);
  }

  void traffic() {
    std::vector<double> passes;
    for (const Sample* s : named(log_, "layer-forward-fused-time"))
      if (const auto measured = streamed("layer", *s))
        passes.push_back(traffic_for(*measured, [&](double each) {
          stack_.kernels.elementwise_passes.value = each;
          return expected_layer(*s, device_, calibration_, stack_).streams;
        }));
    if (!passes.empty()) {
      put("elementwise_passes", spread_of(passes),
          "traffic that explains the time of all fused and eager kernels of a compiled layer, "
          "over one pass each");
      stack_.kernels.elementwise_passes.value = median(passes);
    }
    std::vector<double> permutes;
    for (const Sample* s : named(log_, "expert-layer-forward-eager-time"))
      if (const auto measured = streamed("expert-layer", *s))
        permutes.push_back(traffic_for(*measured, [&](double each) {
          stack_.kernels.permute_passes.value = each;
          const LayerTimes times = expected_layer(*s, device_, calibration_, stack_);
          return times.streams + times.permutes;
        }));
    if (!permutes.empty())
      put("permute_passes", spread_of(permutes),
          "traffic that explains the time of an eager expert layer beyond its dense part, over one "
          "pass a permutation");
    loss();
    optimizer();
  }

  // Bytes a logit, forward and backward together: from whole heads, else from the loss alone.
  void loss() {
    std::vector<double> bytes;
    for (const Sample* forward : named(log_, "head-forward-eager-time"))
      for (const Sample* backward : named(log_, "head-backward-eager-time"))
        if (same_case(*forward, *backward))
          bytes.push_back(loss_bytes(
              forward->number("tokens"), forward->number("hidden"), forward->number("vocab"),
              1e-6 * (forward->number("value") + backward->number("value"))));
    if (!bytes.empty())
      put("loss_bytes_per_logit", spread_of(bytes),
          "traffic that explains the time of a head beyond its products, forward and backward");
  }

  double loss_bytes(double tokens, double hidden, double vocab, double seconds) const {
    const Model model{.hidden = static_cast<std::int64_t>(hidden),
                      .vocab = static_cast<std::int64_t>(vocab)};
    const Job job{.sequence = static_cast<std::int64_t>(tokens)};
    const Layout layout{.sequence_parallel = false, .zero_stage = 0};
    Stack stack = stack_;
    return traffic_for(seconds, [&](double each) {
      stack.kernels.loss_bytes_per_logit.value = each;
      const LayerProgram head = LayerOperations(model, job, layout, stack).head();
      return streams_of(head.forward) + streams_of(head.backward);
    });
  }

  double streams_of(const Segment& segment) const {
    double sum = 0;
    for (const Operation& o : segment.operations)
      if (const Kernel* kernel = o.kernel(); kernel && !is_product(kernel->work.kind))
        sum += o.count * kernel_time(*kernel, device_, calibration_).time.si();
    return sum;
  }

  // The update of parameters, gradients and moments in bf16 by the framework's fused kernel.
  void optimizer() {
    std::vector<double> passes;
    for (const Sample& s : log_.samples) {
      if (s.kind != "optimizer" || s.part != "framework" || s.library != "fused") continue;
      passes.push_back(traffic_for(s.time.si(), [&](double each) {
        const Work& one = s.kernel.work;
        const double half = each * (one.bytes_read + one.bytes_written) / 2;
        const Kernel update{.work = {.kind = WorkKind::optimizer,
                                     .input = Format::fp32,
                                     .output = Format::fp32,
                                     .bytes_read = half,
                                     .bytes_written = half},
                            .library = stack_.kernels.update_library()};
        return kernel_time(update, device_, calibration_).time.si();
      }));
    }
    if (passes.empty()) return;
    put("optimizer_passes_16_bit", spread_of(passes),
        "traffic that explains the time of the fused AdamW of one tensor, over one pass");
  }

  // Host times, counted in dispatches of the same run: hosts differ twofold in speed, counts do
  // not. Each run gives one count, of which the median is taken: what else a host does only adds
  // time.
  using Count = std::function<std::optional<Range>(int run)>;

  std::optional<Range> host_time(const std::string& variant, int run) const {
    Samples found;
    for (const Sample* s : named(log_, variant))
      if (s->conditions == run) found.push_back(s);
    return range_of(found, 1e-6);
  }

  void counted(const std::string& name, const Count& time, const std::string& reason) {
    std::vector<double> counts;
    Range all;
    int last = 0;
    for (const Sample& s : log_.samples) last = std::max(last, s.conditions);
    for (int run = 0; run <= last; ++run) {
      const auto one = host_time("dispatch-autograd-add", run);
      const auto seconds = one ? time(run) : std::nullopt;
      if (!seconds) continue;
      const double low = std::max(0.0, seconds->low / one->value);
      const double high = seconds->high / one->value;
      all.low = counts.empty() ? low : std::min(all.low, low);
      all.high = counts.empty() ? high : std::max(all.high, high);
      counts.push_back(std::max(0.0, seconds->value / one->value));
    }
    if (counts.empty()) return;
    all.value = median(counts);
    all.samples = static_cast<int>(counts.size());
    put("operations." + name, all, reason);
  }

  void host() {
    const auto dispatch = range_of(named(log_, "dispatch-autograd-add"), 1e-6);
    if (!dispatch) return;
    put("dispatch", *dispatch, "host time of one small operation that autograd records");
    const std::string slope = "host time of one more layer of a tiny model, in dispatches";
    for (const std::string phase : {"forward", "backward"}) {
      const std::string dense = "host-layer-" + phase, experts = "host-expert-layer-" + phase;
      counted(
          "layer_" + phase, [&](int run) { return host_time(dense, run); }, slope);
      counted(
          "moe_" + phase,
          [&](int run) -> std::optional<Range> {
            const auto whole = host_time(experts, run), part = host_time(dense, run);
            if (!whole || !part) return std::nullopt;
            return less(*whole, *part);
          },
          slope + ", over a dense one");
    }
    counted(
        "head",
        [&](int run) -> std::optional<Range> {
          const auto ahead = host_time("host-layer-head-forward", run);
          const auto back = host_time("host-layer-head-backward", run);
          if (!ahead || !back) return std::nullopt;
          return Range{(ahead->value + back->value) / 2, std::min(ahead->low, back->low),
                       std::max(ahead->high, back->high), 2};
        },
        "host time of a step that does not grow with layers, mean of both directions");
    counted(
        "collective", [&](int run) { return host_time("dispatch-all-reduce", run); },
        "host time of one NCCL call, in dispatches");
    if (const auto barrier = range_of(named(log_, "barrier"), 1e-6))
      put("step_overhead", *barrier, "a barrier with a wait for the device at the end of a step");
  }

  // What the compute loses to the collectives that it hides.
  void overlap() {
    for (const OverlapCost& cost : overlap_costs(overlap_pairs(log_)))
      if (cost.group == "all")
        put("overlap_cost",
            {.value = cost.median, .low = cost.low, .high = cost.high, .samples = cost.pairs},
            "time that products lost to collectives beside them, over the collectives' alone");
  }

  void memory() {
    // What an earlier use left reserved can hold the loop's blocks: a share below one says nothing.
    Samples whole;
    for (const Sample* s : named(log_, "allocator-rounding"))
      if (s->number("value") >= 1) whole.push_back(s);
    if (const auto rounding = range_of(whole))
      put("allocator_rounding", *rounding, "peaks of reserved over allocated in a training loop");
    if (const auto context = range_of(named(log_, "context")))
      put("context", *context, "memory in use beyond the allocator's at the end of the program");
  }

  const MeasuredLog& log_;
  const ResolvedDevice& device_;
  const Calibration& calibration_;
  Stack stack_;
  SoftwareFit out_;
};

// How the catalogue writes a value of this name.
enum class Writing { number, time, bytes };

Writing writing_of(const std::string& name) {
  if (name == "dispatch" || name == "step_overhead") return Writing::time;
  return name == "context" ? Writing::bytes : Writing::number;
}

std::string digits(double value) { return fmt::format("{:.4g}", value); }

Json leaf_number(double value, Writing writing) {
  if (writing == Writing::time) return digits(value * 1e6) + " us";
  if (writing == Writing::bytes) return digits(value / (1 << 20)) + " MiB";
  return std::stod(digits(value));
}

}  // namespace

const SoftwareValue* SoftwareFit::find(const std::string& name) const {
  const auto at = std::find_if(values.begin(), values.end(),
                               [&](const SoftwareValue& v) { return v.name == name; });
  return at == values.end() ? nullptr : &*at;
}

SoftwareFit fit_software(const MeasuredLog& log, const ResolvedDevice& device,
                         const Calibration& calibration, const Stack& base) {
  return SoftwareFitter(log, device, calibration, base).fit();
}

std::string stack_overlay_json(const SoftwareFit& fit, const std::string& source) {
  Json base = Json::object();
  if (fit.attention) base["attention"] = std::string(to_text(*fit.attention));
  for (const SoftwareValue& v : fit.values) {
    const Writing writing = writing_of(v.name);
    const Json leaf = {{"value", leaf_number(v.value, writing)},
                       {"low", leaf_number(v.low, writing)},
                       {"high", leaf_number(v.high, writing)},
                       {"evidence", "measured"},
                       {"source", source},
                       {"reason", v.reason}};
    const std::string group = "operations.";
    if (v.name.starts_with(group))
      base["operations"][v.name.substr(group.size())] = leaf;
    else
      base[v.name] = leaf;
  }
  const Json file = {{"name", "pytorch-measured"},
                     {"title", fmt::format("plain PyTorch {}, measured {}", fit.torch, fit.date)},
                     {"framework", "PyTorch"},
                     {"based_on", measured_stack},
                     {"base", base},
                     {"releases", Json::array()}};
  return file.dump(2) + "\n";
}

std::string software_text(const SoftwareFit& fit) {
  std::string text;
  if (fit.attention) text += fmt::format("  {:<28} {}\n", "attention", to_text(*fit.attention));
  for (const SoftwareValue& v : fit.values) {
    const double unit = writing_of(v.name) == Writing::time    ? 1e6
                        : writing_of(v.name) == Writing::bytes ? 1.0 / (1 << 20)
                                                               : 1;
    const char* name = unit > 1 ? " us" : unit < 1 ? " MiB" : "";
    text += fmt::format("  {:<28} {}{}  ({} to {})\n", v.name, digits(v.value * unit), name,
                        digits(v.low * unit), digits(v.high * unit));
  }
  return text;
}

}  // namespace orrery
