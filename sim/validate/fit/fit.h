// SPDX-License-Identifier: Apache-2.0
// Knows how step-level values are fitted to measured runs, with a group of them left out.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/base/tasks/tasks.h"
#include "sim/validate/score/report.h"

namespace orrery {

// What may be left out: "source", "model" (family) or "release" in turn; "blind": a whole source
// where its stack and device also occur in another source, else one (source, model, number of GPUs)
// at a time; "nested": a family with all its sources' rows and a source with all its families', to
// predict what both have.
const std::vector<std::string>& leave_out_kinds();

// How fits are run.
struct FitRun {
  int threads = 0;     // 0: all cores
  bool quiet = false;  // no progress on stderr
  // Folds to predict, by name ("llama3, SOURCE" of "nested"); nullptr: all.
  const std::set<std::string>* only = nullptr;
  // Where processes share the fits: each is a task. Rows whose fit another process makes have no
  // error of their own (0).
  Tasks* tasks = nullptr;
};

// A row that a fit predicted which never saw it.
struct BlindRow {
  const ScoredRow* row = nullptr;
  std::string fold;          // what was left out with it: "source S", "S, llama3-8b, 64 GPUs"
  bool whole_source = true;  // "blind": which of the two rules it got
  double speed_error = 0;    // predicted / measured - 1, of the speed
};

// Rows of which nothing odd is known: what a source or a release did once is not the model's error.
std::vector<BlindRow> ordinary(const std::vector<BlindRow>& rows);

// Fits of stacks to what the folds of a kind (leave_out_kinds()) leave of `rows`, which must
// outlive them. predict_blind() makes each when a row first needs it, and keeps it for later calls.
class FoldFits {
 public:
  FoldFits(const std::vector<ScoredRow>& rows, const std::string& kind);
  ~FoldFits();

 private:
  struct Kept;
  std::unique_ptr<Kept> kept_;
  friend std::vector<BlindRow> predict_blind(FoldFits&, const FitRun&,
                                             const std::vector<ScoredRow>*,
                                             const std::vector<ScoredRow>*);
};

// Every scored row of a training run whose whole layout is known, in their order; those of stacks
// that no other row uses are predicted from what is known without steps. Stops early when
// interrupted. `unseen`: the same rows as runs of models that no stack knows (Unknown::model);
// where it is given, these are predicted in place of the rows that fits learn from, by the fit of
// their own stack. `settings`: the same rows again; where they are given, they are predicted, with
// their own settings and the values that `unseen`'s stack has and its fit moves.
std::vector<BlindRow> predict_blind(FoldFits& fits, const FitRun& run,
                                    const std::vector<ScoredRow>* unseen = nullptr,
                                    const std::vector<ScoredRow>* settings = nullptr);

// Rows of one kind predicted by fits, stack by stack, that learn from another kind alone; stacks
// without a row to learn from are left out. The name stands in BlindRow::fold.
struct Transfer {
  std::string name;  // "Blackwell from the generations before"
  bool (*learns)(const PreparedRow& row) = nullptr;
  bool (*target)(const PreparedRow& row) = nullptr;
};
std::vector<BlindRow> predict_transfer(const std::vector<ScoredRow>& rows, const Transfer& transfer,
                                       const FitRun& run);

// Error by group of `kind` ("blind": by source) as shipped and left out, the last a subtotal of the
// rows of models with experts; for "blind" the rule of each source.
std::vector<LeftOut> left_out_groups(const std::vector<BlindRow>& rows, const std::string& kind);
std::string blind_rules_text(const std::vector<BlindRow>& rows);

// A fit to all scored rows of a stack: how many deviations the values that it may move lie from the
// middles of their priors.
struct StackValues {
  std::string stack;
  std::vector<std::string> names;
  std::vector<double> deviations;
};
std::vector<StackValues> fit_stacks(const std::vector<ScoredRow>& rows, const FitRun& run);

// Fitted values per stack, as text for a person who moves them into the catalogue.
std::string fit_text(const std::vector<ScoredRow>& rows, const FitRun& run);

}  // namespace orrery
