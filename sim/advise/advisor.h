// Knows how to find the best layouts: a finite grid, rejected by memory first, then simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/advise/search_space.h"
#include "sim/outcome/simulate.h"

namespace orrery {

enum class Objective : std::uint8_t { time, cost, energy };

struct Question {
  Cluster cluster;
  Model model;
  Job job;
  std::string stack_name;  // loaded per precision by the advisor
  SearchLimits limits;
  Objective objective = Objective::time;
};
struct AdviseOptions {
  int top = 10;
  int threads = 0;            // 0: all cores
  bool pareto = false;        // also the front of speed against memory
  bool prune = true;          // false: simulate every layout that fits (the same advice, slower)
  double memory_reserve = 0;  // share of the device's memory that a layout must leave free
  double rental_per_gpu_hour = 0;  // USD; 0: the accelerator's own
  // Joins the winner's range; it must outlive the call. nullptr: ranges of values alone.
  const ModelError* model_error = nullptr;
  // Called now and then from the calling thread; may be empty.
  std::function<void(double share, std::int64_t simulated)> progress;
};
struct Candidate {
  Layout layout;
  Seconds step_time;
  Joules energy_per_step;
  Bytes peak_memory;
  double tokens_per_second_per_gpu = 0;
};
struct Rejection {
  std::string family;  // "TP1 PP1": dimensions shared by the group
  std::int64_t layouts = 0;
  double margin = 0;   // of its nearest miss: capacity over need less one, below zero
  std::string reason;  // one sentence of its nearest miss
};
struct Advice {
  std::vector<Candidate> best;    // by objective, ties in grid order
  std::vector<Candidate> pareto;  // fastest first, each with less memory than all before it
  Prediction winner;              // full prediction with assumptions; empty stages when none fits
  std::string why;                // what limits the winner; what is missing when none fits
  // Per runner-up: what it does differently and where the time goes.
  std::vector<std::string> differences;
  std::vector<Rejection> rejections;  // memory rejections by family, largest first
  // considered = rejected_for_memory + pruned + simulated, unless stopped early.
  std::int64_t considered = 0, invalid = 0, rejected_for_memory = 0, simulated = 0;
  std::int64_t pruned = 0;     // not simulated: their bound lies above the last of `best`
  double memory_reserve = 0;   // as asked for
  bool stopped_early = false;  // Ctrl-C: best so far
  Stack stack;
};

// Same question, same advice, on any number of threads, pruned or not.
Advice advise(const Question& question, const AdviseOptions& options);

}  // namespace orrery
