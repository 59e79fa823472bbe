// SPDX-License-Identifier: Apache-2.0
// Refuses engines that a model's layers, heads or experts do not divide among.
#include "sim/question/serve/split_check.h"

#include <fmt/format.h>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

struct SplitCheck {
  const Model& model;
  const EngineLayout& engine;
  const std::string& flag;

  void want(bool holds, const std::string& found, const std::string& expected) const {
    if (!holds) throw Error({.file = flag, .path = "", .found = found, .expected = expected});
  }

  // Every rank holds as many experts, copies included.
  void experts(std::int64_t all) const {
    const std::int64_t missing = (engine.ep - all % engine.ep) % engine.ep;
    if (!engine.expert_copies) {
      want(missing == 0, fmt::format("EP{}", engine.ep),
           fmt::format("a divisor of {}, the experts of {}, or with copies that fill its ranks: "
                       "EP{}+{}",
                       all, model.name, engine.ep, missing));
      return;
    }
    const std::int64_t copies = *engine.expert_copies, most = all * (engine.ep - 1);
    const std::string found = fmt::format("EP{}+{}", engine.ep, copies);
    want(engine.ep > 1, found, "several ranks of experts to even out");
    std::string expected = fmt::format("copies in multiples of {} ranks", engine.ep);
    if (missing > 0)
      expected = fmt::format("copies that fill {} ranks with the {} experts: {}, {}, and so on",
                             engine.ep, all, missing, missing + engine.ep);
    want(copies % engine.ep == missing && copies <= most, found,
         fmt::format("{}, at most one of each expert on every rank: {}", expected, most));
  }

  void layer(const LayerClass& l) const {
    want(l.mixer.heads % engine.tp == 0, fmt::format("TP{}", engine.tp),
         fmt::format("a divisor of {}, the heads of {}", l.mixer.heads, model.name));
    if (l.ffn.kind != FfnKind::moe) {
      want(l.ffn.width % engine.tp == 0, fmt::format("TP{}", engine.tp),
           fmt::format("a divisor of {}, the feed-forward width of {}", l.ffn.width, model.name));
      return;
    }
    experts(l.ffn.experts);
    want(l.ffn.width % engine.etp == 0, fmt::format("experts cut {} ways", engine.etp),
         fmt::format("a divisor of {}, the width of an expert of {}", l.ffn.width, model.name));
  }
};

}  // namespace

void check_split(const Model& model, const EngineLayout& engine, const std::string& flag) {
  const SplitCheck check{.model = model, .engine = engine, .flag = flag};
  check.want(engine.pp <= model.layer_count(), fmt::format("PP{}", engine.pp),
             fmt::format("at most {}, the layers of {}", model.layer_count(), model.name));
  for (const LayerClass& l : model.classes) check.layer(l);
  check.want(model.has_experts() || engine.ep == 1, fmt::format("EP{}", engine.ep),
             fmt::format("none: {} has no experts", model.name));
}

}  // namespace orrery
