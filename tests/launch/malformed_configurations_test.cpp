// SPDX-License-Identifier: Apache-2.0
// Three hundred malformed files of each kind, made of valid ones with a fixed seed: each is refused
// in one line that names the file.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "sim/base/errors/check.h"
#include "sim/base/input_file.h"
#include "sim/base/random.h"
#include "sim/launch/configurations/configuration.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/scratch_folder.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr int of_each_kind = 300;

std::string text_of(const std::string& name) {
  return content_of(fs::path(ORRERY_SOURCE_DIR) / "tests/launch/configurations" / name);
}

std::size_t below(RandomStream& random, std::size_t count) {
  return static_cast<std::size_t>(random.below(count));
}
template <class T>
const T& one_of(RandomStream& random, const std::vector<T>& all) {
  return all[below(random, all.size())];
}

// A valid file with names of settings whose values are whole numbers, as they stand before them.
struct Kind {
  const char *name, *file, *extension;
  std::vector<std::string> counts;
  // What makes any text of this form none.
  std::vector<std::function<std::string(const std::string&, RandomStream&)>> breaks;
};

using Break = std::function<std::string(const std::string&, RandomStream&)>;

Break ending_with(const std::string& end) {
  return [end](const std::string& text, RandomStream&) { return text + end; };
}
Break beginning_with(const std::string& begin) {
  return [begin](const std::string& text, RandomStream&) { return begin + text; };
}
// A sign that no text has, anywhere.
Break with_control_sign() {
  return [](const std::string& text, RandomStream& random) {
    std::string broken = text;
    broken.insert(below(random, text.size()), 1, static_cast<char>(1 + random.below(8)));
    return broken;
  };
}
Break with_stray_byte() {
  return [](const std::string& text, RandomStream& random) {
    std::string broken = text;
    broken.insert(below(random, text.size()), 1, static_cast<char>(0xf8 + random.below(8)));
    return broken;
  };
}
Break deep(const std::string& begin, const std::string& sign) {
  return [begin, sign](const std::string& text, RandomStream& random) {
    std::string nested = begin;
    for (std::size_t n = 300 + below(random, 20'000); n > 0; --n) nested += sign;
    return text + nested + "\n";
  };
}

std::vector<Break> with_all(std::vector<Break> own) {
  own.push_back(with_control_sign());
  own.push_back(with_stray_byte());
  own.push_back([](const std::string&, RandomStream&) { return std::string(" \n\t\n"); });
  own.push_back([](const std::string&, RandomStream& random) {
    return std::string(1, '\0') + std::string(below(random, 100), '\xff');
  });
  return own;
}

std::vector<Break> of_shell() {
  return with_all({ending_with("\nX='never ends\n"), ending_with("\necho \"${HOME\n"),
                   ending_with("\ncat <<END\nnever\n"), ending_with("\nif true; then echo\n"),
                   ending_with("\nA=(1 2 3\n"), ending_with("\nfi\n"), ending_with("\nB=`date\n"),
                   ending_with("\nfor i in 1 2; do echo $i\n"), ending_with("\n)\n"),
                   ending_with("\nC=$((1 + 2\n"), ending_with("\ncase x in\n"),
                   deep("\nD=", "${D:-"), deep("\n", "if true; then ")});
}
std::vector<Break> of_yaml() {
  return with_all(
      {ending_with("\nlist: [1, 2\n"), ending_with("\nkey: {a: 1\n"), ending_with("\nq: \"open\n"),
       ending_with("\n\tindented: by a tab\n"), beginning_with("- a list\n"),
       ending_with("\n--- \nsecond: document\n"), ending_with("\nalias: *nobody\n"),
       ending_with("\ntwice: 1\ntwice: 2\n"), deep("\nnested: ", "["), deep("\nnested: ", "{a: "),
       [](const std::string& text, RandomStream&) {
         std::string bomb = text + "\na0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
         for (int i = 1; i < 9; ++i)
           bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                               i - 1);
         return bomb;
       }});
}
std::vector<Break> of_toml() {
  return with_all({ending_with("\nkey\n"), ending_with("\nkey = \n"), ending_with("\n[open\n"),
                   ending_with("\nq = \"open\n"), ending_with("\ntwice = 1\ntwice = 2\n"),
                   ending_with("\n[training]\n"), ending_with("\nx = 0123\n"),
                   ending_with("\ny = [1, 2\n"), deep("\nz = ", "["), deep("\nz = ", "{a = ")});
}
std::vector<Break> of_json() {
  return with_all({ending_with("}"), ending_with(" // no"), beginning_with("{"),
                   [](const std::string& text, RandomStream& random) {
                     return text.substr(0, 1 + below(random, text.size() - 3));
                   },
                   [](const std::string& text, RandomStream&) {
                     return "{\"bf16\": {}, \"bf16\": {}," + text.substr(1);
                   },
                   [](const std::string&, RandomStream&) {
                     return "{\"zero_optimization\": " + std::string(9000, '[');
                   }});
}
std::vector<Break> of_python() {
  return with_all({ending_with("\nrecipe.trainer.strategy.context_parallel_size =\n")});
}

std::vector<Kind> kinds_around_megatron() {
  return {
      {"Megatron-LM",
       "megatron_deepseek.sh",
       ".sh",
       {"--num-layers ", "--hidden-size ", "--num-experts ", "--micro-batch-size ",
        "--global-batch-size ", "--tensor-model-parallel-size ", "--seq-length ", "--nnodes="},
       of_shell()},
      {"Megatron-DeepSpeed",
       "megatron_deepspeed_bloom.slurm",
       ".slurm",
       {"--num-layers ", "--micro-batch-size ", "--pipeline-model-parallel-size ",
        "--tensor-model-parallel-size ", "\"stage\": "},
       of_shell()},
      {"Megatron-Bridge overrides",
       "bridge_overrides.sh",
       ".sh",
       {"model.tensor_model_parallel_size=", "train.micro_batch_size=", "model.seq_length=",
        "model.expert_model_parallel_size="},
       of_shell()},
      {"Megatron-Bridge YAML",
       "bridge.yaml",
       ".yaml",
       {"tensor_model_parallel_size: ", "micro_batch_size: ", "num_layers: ", "hidden_size: "},
       of_yaml()},
      {"NeMo 1",
       "nemo_gpt.yaml",
       ".yaml",
       {"devices: ", "micro_batch_size: ", "num_layers: ", "encoder_seq_length: "},
       of_yaml()},
      {"NeMo 2",
       "nemo2_recipe.py",
       ".py",
       {"strategy.tensor_model_parallel_size = ", "data.micro_batch_size = ", "data.seq_length = "},
       of_python()}};
}
std::vector<Kind> kinds_of_files() {
  return {{"TorchTitan",
           "torchtitan.toml",
           ".toml",
           {"seq_len = ", "tensor_parallel_degree = ", "local_batch_size = ",
            "pipeline_parallel_layers_per_stage = "},
           of_toml()},
          {"AutoModel",
           "automodel.yaml",
           ".yaml",
           {"global_batch_size: ", "local_batch_size: ", "seq_len: ", "ep_size: "},
           of_yaml()},
          {"nanotron",
           "nanotron.yaml",
           ".yaml",
           {"  dp: ", "  tp: ", "micro_batch_size: ", "hidden_size: ", "zero_stage: "},
           of_yaml()},
          {"DeepSpeed",
           "deepspeed_zero3.json",
           ".json",
           {"\"train_batch_size\": ", "\"stage\": ", "\"train_micro_batch_size_per_gpu\": "},
           of_json()},
          {"TrainingArguments",
           "trainer.json",
           ".json",
           {"\"per_device_train_batch_size\": ", "\"gradient_accumulation_steps\": ",
            "\"max_seq_length\": "},
           of_json()},
          {"MaxText",
           "maxtext.yml",
           ".yml",
           {"max_target_length: ", "ici_fsdp_parallelism: ", "gradient_accumulation_steps: "},
           of_yaml()},
          {"NeuronX",
           "neuronx.yaml",
           ".yaml",
           {"  tensor_model_parallel_size: ", "micro_batch_size: ", "num_layers: "},
           of_yaml()},
          {"Primus",
           "primus.yaml",
           ".yaml",
           {"micro_batch_size: ", "seq_length: ", "recompute_num_layers: "},
           of_yaml()}};
}
std::vector<Kind> kinds_of_scripts() {
  return {{"Gaudi", "gaudi.sh", ".sh", {"HL_TP=", "HL_GBS=", "HL_SEQ_LEN="}, of_shell()},
          {"vLLM",
           "vllm.sh",
           ".sh",
           {"--tensor-parallel-size ", "--max-num-seqs ", "--max-num-batched-tokens "},
           of_shell()},
          {"SGLang",
           "sglang.sh",
           ".sh",
           {"--tp ", "--dp-size ", "--max-running-requests ", "--mem-fraction-static "},
           of_shell()},
          {"TensorRT-LLM",
           "trtllm.sh",
           ".sh",
           {"--tp_size ", "--max_batch_size ", "--max_seq_len ", "free_gpu_memory_fraction: "},
           of_shell()}};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> some = kinds_around_megatron();
    for (const auto& more : {kinds_of_files(), kinds_of_scripts()})
      some.insert(some.end(), more.begin(), more.end());
    return some;
  }();
  return all;
}

// The value behind one of the counts becomes something that is no count.
std::string with_bad_value(const Kind& kind, const std::string& text, RandomStream& random) {
  static const std::vector<std::string> bad = {
      "eight", "-8", "1e300", "3.5", "nan", "1e", "0x10", "--5", "12a", "99999999999999999999"};
  const std::string& count = one_of(random, kind.counts);
  const std::size_t at = text.find(count);
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + count.size();
  const std::size_t end = std::min(text.find_first_of(" \n,}\\", begin), text.size());
  const bool json = std::string_view(kind.extension) == ".json";
  const bool toml = std::string_view(kind.extension) == ".toml";
  std::string value = one_of(random, bad);
  // A bare word of Python may be a variable, which is told apart from a value.
  const bool python = std::string_view(kind.extension) == ".py";
  if (python && std::isalpha(static_cast<unsigned char>(value[0])) != 0) value = "3.5";
  return text.substr(0, begin) + (json || toml ? "\"" + value + "\"" : value) + text.substr(end);
}

TEST_CASE("three hundred malformed configurations of each kind are refused in a line each") {
  const ScratchFolder scratch("malformed_configurations");
  RandomStream random(fresh(15), 0);
  for (const Kind& kind : kinds()) {
    const std::string text = text_of(kind.file);
    REQUIRE(text.size() > 100);
    REQUIRE(read_configuration_text(text, std::string("x") + kind.extension, SortedJson::object()));
    for (int i = 0; i < of_each_kind; ++i) {
      const std::string broken = i % 2 == 0 ? with_bad_value(kind, text, random)
                                            : one_of(random, kind.breaks)(text, random);
      const fs::path file = scratch.add(std::string("broken") + kind.extension, broken);
      INFO(kind.name << " " << i << ":\n" << broken.substr(0, 4000));
      try {
        const auto read = read_configuration(file, SortedJson::object());
        FAIL_CHECK("it was read" << (read ? " as " + read->settings.dump() : ""));
      } catch (const Error& error) {
        CHECK(error.message().find('\n') == std::string::npos);
        CHECK(error.message().size() < 1000);
        // A document of a script is named by its own name.
        const bool names = error.message().find("broken") != std::string::npos ||
                           error.message().find("ds_config") != std::string::npos;
        CHECK(names);
      }
    }
  }
}

TEST_CASE("cut and damaged configurations are read or refused, never worse") {
  RandomStream random(fresh(16), 0);
  int read = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const Kind& kind = one_of(random, kinds());
    std::string text = text_of(kind.file);
    switch (random.below(3)) {
      case 0:
        text.resize(below(random, text.size()));
        break;
      case 1:
        text.insert(below(random, text.size()), text.substr(below(random, text.size()), 40));
        break;
      default:
        for (int n = 0; n < 3; ++n)
          text[below(random, text.size())] = "'\"(){}[]$`\\:=#\n "[below(random, 17)];
    }
    INFO(kind.name << ":\n" << text);
    try {
      read_configuration_text(text, std::string("x") + kind.extension, SortedJson::object());
      ++read;
    } catch (const Error& error) {
      ++refused;
      CHECK(error.message().find('\n') == std::string::npos);
    }
  }
  CHECK(read > 300);
  CHECK(refused > 300);
}

}  // namespace
}  // namespace orrery
