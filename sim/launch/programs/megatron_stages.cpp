// SPDX-License-Identifier: Apache-2.0
// Settles stages, experts, batch and overlap of Megatron-LM and NeMo.
#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/programs/megatron_reader.h"
#include "workloads/layout/layout.h"

namespace orrery {

using namespace megatron_names;
using Dialect = MegatronDialect;

namespace {

constexpr std::size_t most_positions = 65'536;

// A pipeline's layout, "Et*3|(t*2|)*6mL": the layers of each position.
class LayoutText {
 public:
  LayoutText(const Said& said, std::string text) : said_(said), text_(std::move(text)) {}
  std::vector<std::int64_t> positions() {
    std::vector<std::string> parts(1);
    run(parts, 0);
    if (at_ != text_.size()) refuse();
    std::vector<std::int64_t> layers;
    for (const std::string& part : parts)
      layers.push_back(std::count(part.begin(), part.end(), 't'));
    return layers;
  }

 private:
  [[noreturn]] void refuse() const {
    fail(said_, "positions of a pipeline such as Et*2|(t*3|)*6t*2mL");
  }
  std::int64_t times() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    std::int64_t count = 0;
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 &&
           count < 1'000'000)
      count = 10 * count + (text_[at_++] - '0');
    if (at_ == begin) refuse();
    return count;
  }
  // Adds to the last part, and begins others.
  void run(std::vector<std::string>& parts, int depth) {
    if (depth > 8) refuse();
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_];
      if (c == '|') {
        ++at_;
        parts.emplace_back();
      } else if (c == '(') {
        ++at_;
        std::vector<std::string> inner(1);
        run(inner, depth + 1);
        if (at_ >= text_.size()) refuse();
        ++at_;
        for (std::int64_t n = times(); n > 0; --n) {
          parts.back() += inner.front();
          parts.insert(parts.end(), inner.begin() + 1, inner.end());
          limit(parts);
        }
      } else if (std::string_view("EtmL").find(c) != std::string_view::npos) {
        ++at_;
        const std::int64_t n = times();
        if (n > static_cast<std::int64_t>(most_positions)) refuse();
        parts.back() += std::string(static_cast<std::size_t>(n), c);
        limit(parts);
      } else {
        refuse();
      }
    }
  }
  void limit(const std::vector<std::string>& parts) const {
    std::size_t all = parts.size();
    for (const std::string& part : parts) all += part.size();
    if (all > most_positions) refuse();
  }

  const Said& said_;
  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::int64_t> MegatronReader::stages_of_layout(const Said& said) {
  if (!said.value.is_array()) {
    std::string text = value_text(said.value);
    std::erase_if(text, [](char c) { return c == ' ' || c == ',' || c == '\'' || c == '"'; });
    return LayoutText(said, text).positions();
  }
  // A recipe's list of lists: [["embedding", "decoder"], ["decoder"], ...].
  std::vector<std::int64_t> layers;
  for (const SortedJson& part : said.value) {
    std::int64_t count = 0;
    if (!part.is_array()) fail(said, "a list of positions, each a list of layers");
    for (const SortedJson& layer : part) count += value_text(layer) == "decoder" ? 1 : 0;
    layers.push_back(count);
  }
  return layers;
}

void MegatronReader::settle_chunks(const Model* model) {
  const Said* each = kept(layers_a_chunk);
  if (each == nullptr || is_nothing(*each)) return;
  const std::int64_t layers = whole_of(*each), pp = reading_.size_or_one("pp");
  if (model == nullptr)
    return reading_.not_understood(*each,
                                   "how many chunks a stage has follows from the model's "
                                   "layers, which are not said");
  if (model->layer_count() % (pp * layers) != 0)
    fail(*each, fmt::format("a divisor of {} layers over {} stages", model->layer_count(), pp));
  reading_.set(*each, "vpp", model->layer_count() / (pp * layers));
}

void MegatronReader::set_stages(const Said& said, std::vector<std::int64_t> layers,
                                const Model& model) {
  const std::int64_t all = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (all != model.layer_count())
    fail(said, fmt::format("stages of {} layers, as the model has; these have {}",
                           model.layer_count(), all));
  reading_.set(said, "stage_layers", SortedJson(layers));
}

void MegatronReader::settle_stages(const Model* model) {
  const std::int64_t pp = reading_.size_or_one("pp");
  const Said* text = kept(stage_layout);
  if (text != nullptr && !is_nothing(*text)) {
    std::vector<std::int64_t> layers = stages_of_layout(*text);
    const auto positions = static_cast<std::int64_t>(layers.size());
    if (positions % pp != 0) fail(*text, fmt::format("a multiple of {} positions, the stages", pp));
    if (!reading_.has("vpp") && positions > pp) reading_.follow("vpp", positions / pp);
    if (model == nullptr) return reading_.set(*text, "stage_layers", SortedJson(layers));
    return set_stages(*text, std::move(layers), *model);
  }
  const Said* first = kept(first_stage);
  const Said* last = kept(last_stage);
  if (first == nullptr) first = kept("--num-layers-in-first-pipeline-stage");
  if (last == nullptr) last = kept("--num-layers-in-last-pipeline-stage");
  const Said* embedding = kept(count_embedding);
  const Said* loss = kept(count_loss);
  const auto each_of = [&](const std::function<void(const Said&)>& run) {
    for (const Said* said : {first, last, embedding, loss})
      if (said != nullptr) run(*said);
  };
  const bool sizes =
      (first != nullptr && !is_nothing(*first)) || (last != nullptr && !is_nothing(*last));
  const bool blocks = is_on(embedding) || is_on(loss);
  if (!sizes && !blocks)
    return each_of([&](const Said& said) { reading_.without_effect(said, "it is not set"); });
  if (model == nullptr || pp < 2)
    return each_of([&](const Said& said) {
      reading_.not_understood(said, "sizes of stages follow from the model's layers and pp");
    });
  const std::int64_t vpp = reading_.size_or_one("vpp"), all = model->layer_count();
  std::vector<std::int64_t> layers;
  const Said& named =
      sizes ? (first != nullptr ? *first : *last) : (embedding != nullptr ? *embedding : *loss);
  if (blocks) {
    const std::int64_t count = all + (is_on(embedding) ? 1 : 0) + (is_on(loss) ? 1 : 0);
    if (count % (pp * vpp) != 0)
      fail(named, fmt::format("stages that divide {} layers, embedding and loss counted", count));
    layers.assign(static_cast<std::size_t>(pp * vpp), count / (pp * vpp));
    if (is_on(embedding)) --layers.front();
    if (is_on(loss)) --layers.back();
  } else {
    const std::int64_t begin = first != nullptr ? whole_of(*first, 0) : 0;
    const std::int64_t end = last != nullptr ? whole_of(*last, 0) : 0;
    const std::int64_t middle = pp - (first != nullptr ? 1 : 0) - (last != nullptr ? 1 : 0);
    const std::int64_t left = all - begin - end;
    if (left < 0 || (middle > 0 && left % middle != 0) || (middle == 0 && left != 0))
      fail(named,
           fmt::format("sizes that leave {} layers to the other {} stages evenly", all, middle));
    std::vector<std::int64_t> stages(static_cast<std::size_t>(pp), middle > 0 ? left / middle : 0);
    if (first != nullptr) stages.front() = begin;
    if (last != nullptr) stages.back() = end;
    for (std::int64_t chunk = 0; chunk < vpp; ++chunk)
      for (const std::int64_t stage : stages) {
        if (stage % vpp != 0)
          fail(named, fmt::format("layers of a stage that {} chunks share", vpp));
        layers.push_back(stage / vpp);
      }
  }
  set_stages(named, std::move(layers), *model);
  each_of([&](const Said& said) {
    if (&said != &named) reading_.part_of(said, "stage_layers");
  });
}

void MegatronReader::settle_experts(const Model* model) {
  if (model == nullptr || !model->has_experts()) {
    if (model != nullptr) {
      if (reading_.size_or_one("ep") == 1) reading_.forget("ep");
      reading_.forget("etp");
    }
  } else if (!reading_.has("etp") && !reading_.asked().contains("etp")) {
    reading_.assume(
        dialect_ == Dialect::megatron ? expert_tensor.megatron : "expert tensor parallelism", "etp",
        reading_.size_or_one("tp"), "as many as tp, in every release");
  }
  const bool modules_of_model = model != nullptr && model->mtp_layers > 0;
  if (!modules_of_model && model != nullptr) reading_.forget("mtp");
  if (modules_of_model && !reading_.has("mtp") && dialect_ == Dialect::megatron)
    reading_.assume(mtp_layers.megatron, "mtp", false, "no modules are trained, in every release");
}

void MegatronReader::settle_batch() {
  if (!reading_.has("micro_batch") && !recipes())
    reading_.missing(micro_batch.megatron, "the program wants it: 1 is predicted");
  const auto ranks = replicas();
  if (reading_.has("global_batch") || reading_.asked().contains("global_batch") || !ranks) return;
  const std::int64_t cp = reading_.size_or_one("cp");
  if (!recipes() && *ranks % cp == 0 && reading_.has("micro_batch"))
    reading_.assume(global_batch.megatron, "global_batch",
                    *ranks / cp * reading_.size_or_one("micro_batch"),
                    "one microbatch on each replica, in every release");
}

void MegatronReader::settle_overlap() {
  const Said* gradients = kept(overlap_gradients);
  const Said* parameters = kept(overlap_parameters);
  for (const Said* said : {gradients, parameters})
    if (said != nullptr) reading_.without_effect(*said, "predicted as the stack's release does it");
  const auto ranks = replicas();
  const std::string& plain = reading_.facts().stack_without_overlap;
  if (plain.empty() || recipes() || gradients != nullptr || parameters != nullptr) return;
  if (!ranks || *ranks < 2 || reading_.asked().contains("stack")) return;
  reading_.assume(overlap_gradients.megatron, "stack", plain,
                  "nothing overlaps with the backward unless a flag says so, in every release");
}

}  // namespace orrery
