// SPDX-License-Identifier: Apache-2.0
// Says what a served model takes for granted.
#include "sim/outcome/serving/service_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text/words.h"
#include "sim/outcome/notes.h"

namespace orrery {
namespace {

void add_sequences(std::vector<std::string>& notes, const char* what, const EngineGroup& group,
                   const ServiceCase& asked, const EngineMemory& memory) {
  const std::int64_t wanted =
      (group.policy ? *group.policy : asked.stack.serving.policy).max_sequences;
  if (!memory.refusal.empty() || memory.sequences >= wanted) return;
  notes.push_back(fmt::format(
      "At most {} run at once on a rank{}, in place of {}: their states fill the memory "
      "for keys and values (--max-sequences).",
      plural(memory.sequences, "sequence"), what, grouped(wanted)));
}

// A prompt that fills a step shares none with decodes: it waits until nobody decodes.
void add_whole_prompts(std::vector<std::string>& notes, const ServiceCase& asked,
                       const ServicePrediction& found) {
  const EnginePolicy& policy =
      asked.engines.policy ? *asked.engines.policy : asked.stack.serving.policy;
  if (policy.chunked_prefill || asked.decode) return;
  std::int64_t longest = 0;
  for (const Request& request : found.requests.requests)
    longest = std::max<std::int64_t>(longest, request.prompt);
  if (longest < policy.token_budget) return;
  notes.push_back(
      fmt::format("Prompts of up to {} tokens fill a step of {} rows, and the engine does not cut "
                  "them: such a prompt waits until nobody decodes, so that few run side by side "
                  "(--token-budget).",
                  grouped(longest), grouped(policy.token_budget)));
}

}  // namespace

std::vector<std::string> service_notes(const ServiceCase& asked, const ServicePrediction& found) {
  std::vector<std::string> notes;
  if (std::string note = release_note(asked.stack); !note.empty()) notes.push_back(std::move(note));
  if (asked.offered > asked.gpus())
    notes.push_back(fmt::format("The engines use {} of {} GPUs (--gpus).", grouped(asked.gpus()),
                                grouped(asked.offered)));
  add_whole_prompts(notes, asked, found);
  add_sequences(notes, asked.decode ? " that computes prompts" : "", asked.engines, asked,
                found.memory);
  if (asked.decode && found.decode_memory)
    add_sequences(notes, " that decodes", *asked.decode, asked, *found.decode_memory);
  return notes;
}

}  // namespace orrery
