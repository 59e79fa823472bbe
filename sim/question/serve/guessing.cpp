// SPDX-License-Identifier: Apache-2.0
// Reads drafters and the chances of their tokens.
#include "sim/question/serve/guessing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr const char* guessing_form =
    "mtp:2, eagle3:3, draft:MODEL:4 or ngram:4 (kind and tokens guessed a step), or none";
constexpr std::int64_t most_drafts = 64;

struct Spec {
  DraftKind kind;
  std::string guesser;  // of kind draft
  std::int64_t drafts;
};

// Nothing: no tokens are guessed.
std::optional<Spec> parse_spec(const JsonValue& at) {
  const std::string text = at.text();
  if (text == "none") return std::nullopt;
  const std::size_t first = text.find(':'), last = text.rfind(':');
  const auto kind = draft_kind_text.find(text.substr(0, first));
  if (!kind || first == std::string::npos) at.fail(guessing_form);
  const bool named = *kind == DraftKind::draft;
  if (named != (last > first + 1)) at.fail(guessing_form);
  std::int64_t drafts = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data() + last + 1, end, drafts);
  if (failed != std::errc() || stop != end) at.fail(guessing_form);
  if (drafts < 0 || drafts > most_drafts)
    at.fail(fmt::format("from 1 to {} tokens guessed a step (0: none)", most_drafts));
  if (drafts == 0) return std::nullopt;
  return Spec{.kind = *kind,
              .guesser = named ? text.substr(first + 1, last - first - 1) : "",
              .drafts = drafts};
}

Model guesser_of(const std::string& name, Catalogues& catalogues) {
  try {
    return catalogues.model(name);
  } catch (const Error& error) {
    ErrorInfo named = error.info();
    named.file = "--spec";
    throw Error(named);
  }
}

Drafter drafter_of(const JsonValue& at, const Spec& spec, const Model& model,
                   const EngineLayout& layout, Catalogues& catalogues) {
  switch (spec.kind) {
    case DraftKind::mtp:
      if (model.mtp_layers == 0)
        at.fail(fmt::format("another kind: {} has no multi-token prediction modules", model.name));
      return mtp_drafter(model, layout, spec.drafts);
    case DraftKind::eagle3:
      return eagle3_drafter(model, spec.drafts);
    case DraftKind::ngram:
      return ngram_drafter(spec.drafts);
    case DraftKind::draft:
      break;
  }
  // A question stands alone for `rerun`, which knows files by their own settings only.
  if (spec.guesser.find_first_of("/{") != std::string::npos || spec.guesser.ends_with(".json"))
    at.fail("a draft model by its name in the catalogue");
  const Model guesser = guesser_of(spec.guesser, catalogues);
  for (const LayerClass& layer : guesser.classes)
    if (layer.mixer.heads % layout.tp != 0)
      at.fail(fmt::format("a draft model whose heads {} ranks split: {} has {}", layout.tp,
                          guesser.name, layer.mixer.heads));
  return model_drafter(guesser, spec.drafts);
}

Acceptance known_acceptance(const JsonValue& at, const Spec& spec, const Model& model) {
  const auto measured = measured_acceptance(catalogue_acceptance(), model, spec.kind, spec.drafts);
  if (!measured)
    at.fail(fmt::format("--accept beside it: nobody measured how many of {} {} tokens {} accepts",
                        spec.drafts, to_text(spec.kind), model.name));
  return *measured;
}

// Chances, or the label of a text of which they were measured.
Acceptance given_acceptance(const JsonValue& at, const Spec& spec, const Model& model) {
  const std::string text = at.is_number() ? fmt::format("{}", at.number()) : at.text();
  const auto& all = catalogue_acceptance();
  const auto labels = acceptance_labels(all, model, spec.kind, spec.drafts);
  if (std::ranges::find(labels, text) != labels.end())
    return *measured_acceptance(all, model, spec.kind, spec.drafts, text);
  return {.survival = parse_acceptance(text, spec.drafts, "--accept", labels), .from = "as given"};
}

}  // namespace

std::optional<Guessing> read_guessing(const JsonValue& s, const Model& model,
                                      const EngineLayout& layout, Catalogues& catalogues) {
  const auto at = s.find("spec");
  const auto accept = s.find("accept");
  if (accept && !at) accept->fail("nothing: no tokens are guessed (--spec)");
  const auto spec = at ? parse_spec(*at) : std::nullopt;
  if (!spec) return std::nullopt;
  return Guessing{.drafter = drafter_of(*at, *spec, model, layout, catalogues),
                  .acceptance = accept ? given_acceptance(*accept, *spec, model)
                                       : known_acceptance(*at, *spec, model)};
}

}  // namespace orrery
