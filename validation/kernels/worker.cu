// SPDX-License-Identifier: Apache-2.0
// Loads a candidate and launches it when the judge says so. It knows no reference, clock or
// verdict: whatever a candidate does to this process, the judge looks at the tensors alone.
//
// Usage: worker CANDIDATE.so SOCKET MEMORY BYTES FOLDER SECONDS [own-network]
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "backend.cuh"
#include "channel.cuh"
#include "sandbox.cuh"

namespace {

using Launch = int (*)(const void* const*, void* const*, const long long*, void*);

// What `plan` said: sizes, and where the tensors of each set lie.
struct Plan {
  std::vector<long long> size;
  std::size_t in = 0, out = 0, sets = 0;
  std::vector<long long> offsets;
};

Plan read_plan(std::istringstream& words) {
  Plan plan;
  std::size_t sizes = 0;
  std::string operation;  // its tensors are where `offsets` say
  words >> operation >> sizes;
  plan.size.resize(8);
  for (std::size_t i = 0; i < sizes && i < 8; ++i) words >> plan.size[i];
  words >> plan.in >> plan.out >> plan.sets;
  plan.offsets.resize(plan.sets * (plan.in + plan.out));
  for (long long& offset : plan.offsets) words >> offset;
  return plan;
}

// Launches each set from `first` on, once.
int run(const Plan& plan, Launch launch, unsigned char* memory, std::size_t first,
        std::size_t count) {
  int status = 0;
  for (std::size_t i = 0; i < count && status == 0; ++i) {
    const long long* offset = plan.offsets.data() + (first + i) % plan.sets * (plan.in + plan.out);
    const void* in[4] = {};
    void* out[4] = {};
    for (std::size_t t = 0; t < plan.in; ++t) in[t] = memory + offset[t];
    for (std::size_t t = 0; t < plan.out; ++t) out[t] = memory + offset[plan.in + t];
    status = launch(in, out, plan.size.data(), nullptr);
  }
  if (!device::synchronised() && status == 0) status = 1;
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  Channel judge(std::atoi(argv[2]));
  const std::string folder = argv[5];
  sandbox::set_limits(std::atol(argv[6]));
  const bool network = argc > 7 && sandbox::leave_network();
  if (!device::present()) return judge.send("failed no device"), 3;
  unsigned char* memory = device::open_shared(argv[3], std::strtoull(argv[4], nullptr, 10));
  if (memory == nullptr) return judge.send("failed memory"), 3;
  const bool files = sandbox::keep_files(folder);
  const bool capabilities = sandbox::drop_capabilities();
  const bool calls = sandbox::filter_calls(true);
  judge.send("sandbox network " + std::to_string(network) + " files " + std::to_string(files) +
             " capabilities " + std::to_string(capabilities) + " calls " + std::to_string(calls));
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return judge.send(std::string("failed load ") + dlerror()), 3;
  const auto launch = reinterpret_cast<Launch>(dlsym(library, "launch"));
  if (launch == nullptr) return judge.send("failed load it defines no extern \"C\" launch"), 3;
  judge.send("ready");
  Plan plan;
  for (std::string line; judge.receive(line, -1) == Channel::Got::line;) {
    std::istringstream words(line);
    std::string word, nonce;
    words >> word >> nonce;
    if (word == "end") break;
    if (word == "plan") {
      plan = read_plan(words);
      judge.send("planned " + nonce);
    }
    if (word == "go") {
      std::size_t first = 0, count = 0;
      words >> first >> count;
      const int status = run(plan, launch, memory, first, count);
      judge.send("done " + nonce + " " + std::to_string(status));
    }
  }
  std::_Exit(0);  // no destructor of a candidate's runs
}
