// SPDX-License-Identifier: Apache-2.0
// Knows the programs that serve: how each is called, where its image is, what it listens on.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/serving/engine.h"

namespace orrery {

struct EngineProgram {
  std::vector<std::string> start;  // words before the model's name
  std::string model_flag;          // before it; empty: it stands alone
  std::string file_flag;           // before the file of settings; empty: it reads none
  std::string image;               // the project's own, of the release that was predicted
  std::vector<std::string> sources;
};

// Its own server, or Dynamo's worker around it.
EngineProgram engine_program(const ServedDeployment& deployment, EngineDialect dialect);

inline constexpr int engine_port = 8000;
// The release of Dynamo whose images are named and whose flags were read.
inline constexpr const char* dynamo_release = "1.6.1";
std::string dynamo_image(const ServedDeployment& deployment);

// "vllm", "sglang", "trtllm".
std::string engine_name(const ServedDeployment& deployment);

// Words of one command, flag by flag: {"--tp-size 8", ..} come as {"--tp-size", "8", ..}. The model
// is `model`, the file of settings `file`.
std::vector<std::string> command_words(const EngineProgram& program, const EngineCommand& command,
                                       const std::string& model, const std::string& file);

// For names of objects and jobs: small letters, digits and hyphens, at most `most` of them.
std::string object_name(const std::string& text, std::size_t most = 40);
// "llama3-3-70b-vllm".
std::string deployment_name(const ServedDeployment& deployment);

// What whoever starts it must know, a sentence each: what was predicted, what no flag says, what
// flags leave unsaid, the checkpoint.
std::vector<std::string> deployment_notes(const ServedDeployment& deployment,
                                          const std::vector<EngineCommand>& commands);
// The same as lines that begin with "# ", at most 100 columns wide.
std::string as_comment(const std::vector<std::string>& sentences);

}  // namespace orrery
