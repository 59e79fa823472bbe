// SPDX-License-Identifier: Apache-2.0
// Builds kernels with compilers that run as programs of their own.
#include "sim/calibrate/kernel/build.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <thread>

#include "hw_models/catalog.h"
#include "sim/base/content_hash.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/input_file.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

bool runs(const std::string& program) {
  try {
    return run_child({program, "--version"}, "").code == 0;
  } catch (const MachineFailed&) {
    return false;
  }
}

// Where a shell finds a program; as it is, where it is a path or none finds it.
std::string on_path(const std::string& program) {
  const char* folders = std::getenv("PATH");
  if (program.find('/') != std::string::npos || folders == nullptr) return program;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');)
    if (access((fs::path(folder) / program).c_str(), X_OK) == 0)
      return (fs::path(folder) / program).string();
  return program;
}

// The compiler that PyPI's nvidia-cuda-nvcc brings, where the interpreter has it.
std::string packaged_nvcc(const std::string& python) {
  try {
    const ChildResult found = run_child({python, "-c",
                                         "import sys,glob\nfor p in sys.path:\n for f in "
                                         "glob.glob(p+'/nvidia/*/bin/nvcc'): print(f)"},
                                        "");
    return found.printed.substr(0, found.printed.find('\n'));
  } catch (const MachineFailed&) {
    return "";
  }
}

fs::path kernels_folder() { return data_root() / "validation/kernels"; }

// The first lines in which a compiler complains, without its notes.
std::string complaint_of(const LimitedResult& result) {
  if (!result.in_time) return "the compiler took longer than it may";
  const std::string said = result.child.errors + result.child.printed;
  std::istringstream lines(said);
  std::string found, first;
  int count = 0;
  constexpr int most = 3;
  for (std::string line; std::getline(lines, line);) {
    if (first.empty() && !line.empty()) first = line;
    if (line.find("error") == std::string::npos || ++count > most) continue;
    found += (found.empty() ? "" : " / ") + line;
  }
  return found.empty() ? first : found;
}

std::vector<std::string> compile_words(const KernelTools& tools, const fs::path& source,
                                       const fs::path& to, bool library) {
  std::vector<std::string> words = {tools.compiler, "-std=c++17", "-O2",
                                    "-o",           to.string(),  "-I" + kernels_folder().string()};
  const auto add = [&](std::initializer_list<const char*> more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  if (tools.host) {
    add({"-pthread", "-ffp-contract=off"});
    if (library) add({"-shared", "-fPIC"});
    add({"-x", "c++"});
    words.push_back(source.string());
    add({"-x", "none", "-ldl"});
    return words;
  }
  words.push_back("-arch=" + tools.architecture);
  add({"--extended-lambda", "-Xptxas", "-v", "-Xcompiler", "-pthread"});
  if (library) add({"-shared", "-Xcompiler", "-fPIC"});
  words.push_back(source.string());
  add({"-ldl"});
  // A candidate may say which libraries it stands on.
  if (library) {
    static const std::regex asks(R"(// links: ([a-zA-Z0-9_ ]+))");
    const std::string text = content_of(source);
    std::smatch found;
    if (std::regex_search(text, found, asks)) {
      std::istringstream names(found[1].str());
      for (std::string name; names >> name;) words.push_back("-l" + name);
      const fs::path libraries = fs::path(tools.compiler).parent_path().parent_path() / "lib64";
      words.push_back("-Xlinker=-rpath=" + libraries.string());
    }
  }
  return words;
}

}  // namespace

LimitedResult run_limited(const std::vector<std::string>& words, std::string_view input,
                          double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  Child child(words, input);
  LimitedResult out;
  constexpr int a_while = 100;
  while (child.read(out.child.printed, a_while)) {
    if (interrupted()) {
      // Compilers take their files away; what does not end by itself is ended with `child`.
      child.send(SIGTERM);
      constexpr int patience = 20;
      for (int i = 0; i < patience && child.read(out.child.printed, a_while); ++i) {
      }
      throw KernelInterrupted{};
    }
    out.in_time = out.in_time && Clock::now() < until;
    if (!out.in_time) {
      child.send(SIGKILL);
      break;
    }
  }
  out.child.code = child.wait();
  out.child.errors = child.errors();
  // A terminal sends its signal to both; the other one may die of it first.
  constexpr int interrupted_code = 128 + SIGINT, terminated_code = 128 + SIGTERM;
  if (out.child.code == interrupted_code || out.child.code == terminated_code)
    std::this_thread::sleep_for(std::chrono::milliseconds(a_while));
  if (interrupted()) throw KernelInterrupted{};
  return out;
}

KernelTools find_tools(bool host, const std::string& nvcc, const std::string& python) {
  KernelTools tools{.host = host};
  if (!python.empty()) tools.python = python;
  const char* home = std::getenv("CUDA_HOME");
  std::vector<std::string> candidates = {"c++", "g++", "clang++"};
  if (!host) {
    candidates = {"nvcc", "/usr/local/cuda/bin/nvcc"};
    if (home != nullptr) candidates.insert(candidates.begin(), std::string(home) + "/bin/nvcc");
    if (!nvcc.empty()) candidates = {nvcc};
  }
  for (const std::string& candidate : candidates)
    if (tools.compiler.empty() && runs(candidate)) tools.compiler = on_path(candidate);
  if (tools.compiler.empty() && !host && nvcc.empty()) {
    const std::string packaged = packaged_nvcc(tools.python);
    if (!packaged.empty() && runs(packaged)) tools.compiler = packaged;
  }
  if (tools.compiler.empty())
    throw CannotExist(
        {.file = "calibrate kernel",
         .found = host           ? "no C++ compiler"
                  : nvcc.empty() ? "no nvcc"
                                 : "no compiler at " + nvcc,
         .expected = host ? "c++ on the PATH: apt-get install g++"
                          : "nvcc on the PATH, or --nvcc FILE, or pip install nvidia-cuda-nvcc "
                            "nvidia-cuda-runtime nvidia-cuda-cccl; or --host, which needs no GPU"});
  return tools;
}

int KernelResources::warps() const {
  // Registers of a processor and what they are handed out by, since compute capability 3.5 (CUDA
  // C++ Programming Guide, table of technical specifications): 65,536, to warps in pieces of 256.
  constexpr int all = 65536, warp = 32, piece = 256, most = 64;
  if (registers <= 0) return most;
  const int each = (registers * warp + piece - 1) / piece * piece;
  return std::min(most, all / each);
}

KernelResources resources_of(const std::string& ptxas) {
  static const std::regex used(R"(Used (\d+) registers)"), shared(R"((\d+) bytes smem)"),
      spilled(R"((\d+) bytes spill stores)");
  KernelResources out;
  std::istringstream lines(ptxas);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, used)) {
      out.registers = std::max(out.registers, std::stoi(found[1]));
      ++out.kernels;
    }
    if (std::regex_search(line, found, shared))
      out.shared_bytes = std::max(out.shared_bytes, std::stoi(found[1]));
    if (std::regex_search(line, found, spilled))
      out.spilled_bytes = std::max(out.spilled_bytes, std::stoi(found[1]));
  }
  return out;
}

BuiltKernel build_kernel(const KernelTools& tools, const fs::path& file, const fs::path& folder,
                         double seconds) {
  BuiltKernel out{.script = file.extension() == ".py"};
  if (out.script) {
    out.program = folder / file.filename();
    fs::copy_file(file, out.program, fs::copy_options::overwrite_existing);
    const LimitedResult checked = run_limited(
        {tools.python, "-c", "import ast,sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])",
         out.program.string()},
        "", seconds);
    out.compiled = checked.child.code == 0 && checked.in_time;
    const std::string& said = checked.child.errors;
    const std::size_t end = said.find_last_not_of('\n');
    const std::size_t line = said.find_last_of('\n', end);
    if (!out.compiled && end != std::string::npos)
      out.complaint = said.substr(line == std::string::npos ? 0 : line + 1, end - line);
    return out;
  }
  out.program = folder / "candidate.so";
  const LimitedResult built =
      run_limited(compile_words(tools, file, out.program, true), "", seconds);
  out.compiled = built.in_time && built.child.code == 0;
  if (!out.compiled) out.complaint = complaint_of(built);
  if (!tools.host) out.resources = resources_of(built.child.errors + built.child.printed);
  return out;
}

std::string missing_torch(const std::string& python) {
  // It is looked for and not loaded, which takes seconds.
  const ChildResult found =
      run_child({python, "-c",
                 "import importlib.util,sys; sys.exit(importlib.util.find_spec('torch') is None)"},
                "");
  if (found.code == 0) return "";
  return fmt::format("no torch for {}: pip install torch, or --python FILE", python);
}

JudgePrograms build_judge(const KernelTools& tools, const fs::path& folder) {
  make_folder(folder);
  const std::string kind = tools.host ? "host" : "cuda";
  JudgePrograms out{folder / ("judge-" + kind), folder / ("worker-" + kind)};
  std::string sources = tools.compiler + tools.architecture;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kernels_folder()))
    if (entry.path().extension() == ".cuh" || entry.path().extension() == ".cu")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) sources += content_of(file);
  const std::string stamp = hash_text(content_hash(sources));
  const fs::path stamp_file = folder / ("stamp-" + kind);
  if (content_of(stamp_file) == stamp) return out;
  for (const bool judge : {true, false}) {
    const fs::path source = kernels_folder() / (judge ? "judge.cu" : "worker.cu");
    constexpr double long_enough = 300;
    const LimitedResult built = run_limited(
        compile_words(tools, source, judge ? out.judge : out.worker, false), "", long_enough);
    if (!built.in_time || built.child.code != 0)
      throw MachineFailed({.file = source.string(),
                           .found = complaint_of(built),
                           .expected = "a compiler that takes it: " + tools.compiler});
  }
  write_file(stamp_file, stamp);
  return out;
}

}  // namespace orrery
