// SPDX-License-Identifier: Apache-2.0
// Reads PyTorch's schedules.
#include "sim/launch/programs/torch_schedule.h"

#include <cctype>

#include "workloads/layout/layout.h"

namespace orrery {

static std::string schedule_of(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "gpipe") return std::string(to_text(Schedule::gpipe));
  if (name == "1f1b") return std::string(to_text(Schedule::one_f_one_b));
  if (name == "interleaved1f1b") return std::string(to_text(Schedule::interleaved));
  if (name == "zbvzerobubble") return std::string(to_text(Schedule::zero_bubble_v));
  if (name == "dualpipev") return std::string(to_text(Schedule::dual_pipe_v));
  if (name == "interleavedzerobubble")
    return std::string(to_text(Schedule::interleaved_zero_bubble));
  return "";
}

void read_schedule(GivenReading& reading, const Said* said) {
  if (said == nullptr) return;
  const std::string schedule = schedule_of(text_of(*said));
  if (reading.size_or_one("pp") == 1)
    reading.without_effect(*said, "there is one stage");
  else if (schedule.empty())
    reading.not_understood(*said, "a schedule that is not predicted: the stack's is");
  else
    reading.set(*said, "schedule", schedule);
}

}  // namespace orrery
