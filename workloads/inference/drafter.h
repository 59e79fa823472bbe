// SPDX-License-Identifier: Apache-2.0
// Describes how an engine guesses tokens ahead, and the network that guesses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/inference/engine_layout.h"
#include "workloads/model/model.h"

namespace orrery {

// mtp: the model's own prediction module, run again for each token ahead. eagle3: one dense layer
// that reads features of three layers of the model. draft: a smaller model. ngram: a look-up.
enum class DraftKind : std::uint8_t { mtp, eagle3, draft, ngram };
inline constexpr auto draft_kind_text = enum_names<DraftKind>({"mtp", "eagle3", "draft", "ngram"});
constexpr std::string_view to_text(DraftKind k) { return draft_kind_text[k]; }

// A product in 16 bits that makes the network's input of several vectors: rows x inner times
// inner x columns.
struct JoinedInput {
  std::int64_t columns = 0, inner = 0;
  bool split = false;       // its columns over tensor-parallel ranks, as a layer's products are
  bool first_only = false;  // features of the model are there for its own rows alone
};

// A step with k drafts verifies 1 + k rows of each sequence. Then the network reads all of the
// step's rows in a first pass, which gives the first draft, and a row of each sequence in k - 1
// more (vLLM v1/spec_decode/eagle.py; TensorRT-LLM tech blog 2).
struct Drafter {
  DraftKind kind = DraftKind::ngram;
  std::int64_t drafts = 0;  // tokens that are guessed of each sequence in a step
  std::optional<Model> network;
  std::vector<JoinedInput> joined;
  std::int64_t modules = 1;  // copies of the layers that are kept, of which one runs in a pass
  bool own_embedding = true, own_head = true;        // or those of the model
  std::optional<PrecisionRecipe> precision;          // where it is not the engine's
  EngineLayout layout(const EngineLayout& l) const;  // of the network, whose stages are one
};

// Module of a layer of the model's last class; it joins hidden state and embedding. The model has
// prediction modules. Of checkpoints in 4 bits the module stays in 16 (read: SGLang
// models/deepseek_nextn.py, TensorRT-LLM's DeepSeek-R1 FP4 checkpoints).
Drafter mtp_drafter(const Model& model, const EngineLayout& layout, std::int64_t drafts);
// A layer of the model's width with a head of 32,000 words, in 16 bits. Read: heads that are
// published for Llama 3.3 70B (config.json: draft_vocab_size). Estimated where the model has no
// dense layer: as wide as the experts that a token reaches; where it has latent attention: heads of
// 128 with 8 of keys and values.
Drafter eagle3_drafter(const Model& model, std::int64_t drafts);
// A whole model, in the engine's formats.
Drafter model_drafter(const Model& guesser, std::int64_t drafts);
Drafter ngram_drafter(std::int64_t drafts);

}  // namespace orrery
