// SPDX-License-Identifier: Apache-2.0
// Finds what rows of serving tables name in the catalogues: machine, model, software, format.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hw_models/device.h"
#include "sim/validate/rows/aliases.h"
#include "sim/validate/serving/serving_case.h"
#include "sim/validate/serving/serving_recipes.h"

namespace orrery {

// Loads every model, device and stack once; cases point into it.
class ServingCatalogue {
 public:
  ServingCatalogue(Aliases aliases, ServingRecipes recipes);
  const ServingRecipes& recipes() const { return recipes_; }

  // Before rules: names, family, model, machine and group. What is not known stays empty.
  void resolve(ServingCase& c);
  // After them: layout, formats, limits and stack of a row that no rule left out, or the reason
  // why it cannot be predicted.
  void complete(ServingCase& c);
  // The accelerator's name in aliases.json, or small letters where it has none.
  std::string plain_gpu(const std::string& told) const;
  ServingFacts facts(const ServingCase& c, const std::string& role) const;

 private:
  void find_machine(ServingCase& c);
  void find_model(ServingCase& c);
  void restore_layout(ServingCase& c);
  void correct_label(ServingCase& c, ToldWorkers& workers, const std::string& role);
  std::string missing(const ServingCase& c) const;
  bool set_precision(ServingCase& c);
  void set_stack(ServingCase& c);
  void set_bench(ServingCase& c) const;
  void set_deployment(ServingCase& c) const;
  void lengthen_prompts(ServingCase& c) const;
  std::string release_at(const std::string& stack, const std::string& date);
  void set_limits(ServingCase& c, ServingWorkers& workers, const std::string& role);
  std::string catalogued_model(const std::string& told) const;

  Aliases aliases_;
  ServingRecipes recipes_;
  WiringTable wirings_;
  std::vector<std::string> model_names_;
  std::map<std::string, std::string> model_aliases_;  // small: the name in the catalogue
  std::map<std::string, std::unique_ptr<Model>> models_;
  std::map<std::string, std::unique_ptr<ResolvedDevice>> devices_;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> releases_;  // date, name
};

}  // namespace orrery
