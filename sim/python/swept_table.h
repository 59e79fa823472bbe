// SPDX-License-Identifier: Apache-2.0
// Makes one table of many answers: what was asked, what was found, and what was wrong.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/answer/columns.h"
#include "sim/python/sweep.h"
#include "sim/python/table.h"

namespace orrery {

// One question, and its answer (a row of for_each_row) or error.
struct SweptRow {
  Json question = nullptr, answer = nullptr;
};

class TableOfAnswers {
 public:
  // `left_out`: columns of the command's answers that the table does not have.
  TableOfAnswers(const std::string& command, const std::vector<AskedColumn>& asked,
                 const std::vector<std::string>& left_out = {});
  void add(const SweptRow& row);
  std::shared_ptr<const AnswerTable> take() {
    return std::make_shared<const AnswerTable>(std::move(table_));
  }

 private:
  std::vector<FlatColumn> asked_, answers_;
  AnswerTable table_;
};

}  // namespace orrery
