// SPDX-License-Identifier: Apache-2.0
// Says what a scenario takes for granted.
#include "sim/outcome/notes.h"

#include <algorithm>

#include <fmt/format.h>

namespace orrery {

std::string release_note(const Stack& stack) {
  if (stack.asked.empty()) return "";
  return fmt::format(
      "Release {} of {} is not known: it is predicted as {}, the last known one before it{}.",
      stack.asked, stack.name, stack.release, stack.asked_is_later ? ", with a wider range" : "");
}

std::vector<std::string> notes_of(const Scenario& s) {
  std::vector<std::string> notes;
  if (std::string note = release_note(s.stack); !note.empty()) notes.push_back(std::move(note));
  notes.insert(notes.end(), s.cluster.changes.begin(), s.cluster.changes.end());
  const std::int64_t tokens = std::max(s.job.sequence, s.job.context);
  if (s.model.max_context > 0 && tokens > s.model.max_context)
    notes.push_back(
        fmt::format("{} was trained for sequences of {} tokens at most, and these "
                    "have {}.",
                    s.model.title, s.model.max_context, tokens));
  return notes;
}

}  // namespace orrery
