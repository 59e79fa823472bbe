// SPDX-License-Identifier: Apache-2.0
// Knows the worker as the judge sees it: a process that is started, stopped, asked, watched and
// ended.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "channel.cuh"

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Worker {
 public:
  struct Limits {
    double seconds = 30;       // that one answer may take
    std::size_t bytes = 0;     // of resident memory; 0: any
    std::string folder = ".";  // its working folder; what it prints lands there
  };
  // `words`: the program and its arguments; "SOCKET" among them becomes the number of its socket.
  Worker(std::vector<std::string> words, const Limits& limits) : limits_(limits), channel_(-1) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::exit(4);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    for (std::string& word : words)
      if (word == "SOCKET") word = std::to_string(ends[1]);
    process_ = fork();
    if (process_ < 0) std::exit(4);
    if (process_ == 0) become(words, limits.folder);
    close(ends[1]);
    channel_ = Channel(ends[0]);
  }
  Worker(const Worker&) = delete;
  ~Worker() {
    end();
    close(channel_.file());
  }

  bool alive() const { return why_.empty(); }
  const std::string& why() const { return why_; }  // it no longer answers
  void stop() const { kill(-process_, SIGSTOP); }
  void go_on() const { kill(-process_, SIGCONT); }
  void send(const std::string& line) {
    if (alive() && !channel_.send(line)) gone();
  }
  // The next line; empty where it ended, took too long or too much memory.
  std::string answer() {
    const double until = now() + limits_.seconds;
    std::string line;
    while (alive()) {
      constexpr int a_while = 50;
      switch (channel_.receive(line, a_while)) {
        case Channel::Got::line:
          return line;
        case Channel::Got::closed:
          gone();
          break;
        case Channel::Got::nothing:
          if (now() > until)
            give_up("it took longer than its limit of " + seconds_text());
          else if (limits_.bytes > 0 && resident() > limits_.bytes)
            give_up("it took more memory than its limit");
      }
    }
    return "";
  }
  // All that it started ends with it: what has left its group became a child of this process.
  void end() {
    if (process_ > 0) {
      kill(-process_, SIGKILL);
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
      process_ = 0;
    }
    for (const int child : children()) kill(child, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  void give_up(const std::string& why) {
    if (why_.empty()) why_ = why;
    end();
  }

 private:
  [[noreturn]] static void become(const std::vector<std::string>& words,
                                  const std::string& folder) {
    setpgid(0, 0);
    for (int number = 1; number < 32; ++number) signal(number, SIG_DFL);  // what others ignored
    if (chdir(folder.c_str()) != 0) _exit(126);
    const int nothing = open("/dev/null", O_RDWR);
    const int errors = open("worker.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(nothing, 0);
    dup2(nothing, 1);
    dup2(errors >= 0 ? errors : nothing, 2);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<std::string> kept = {"HOME=" + folder,
                                     "TMPDIR=" + folder,
                                     "TRITON_CACHE_DIR=" + folder + "/triton",
                                     "TORCHINDUCTOR_CACHE_DIR=" + folder + "/inductor",
                                     "USER=candidate",
                                     "LC_ALL=C",
                                     "CUDA_CACHE_DISABLE=1"};
    for (const char* name : {"PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME"})
      if (const char* value = std::getenv(name)) kept.push_back(std::string(name) + "=" + value);
    std::vector<char*> environment;
    for (const std::string& word : kept) environment.push_back(const_cast<char*>(word.c_str()));
    environment.push_back(nullptr);
    execve(arguments[0], arguments.data(), environment.data());
    _exit(127);
  }
  std::string seconds_text() const {
    char text[32];
    std::snprintf(text, sizeof text, "%g s", limits_.seconds);
    return text;
  }
  std::size_t resident() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/statm");
    std::size_t all = 0, pages = 0;
    file >> all >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }
  static std::vector<int> children() {
    std::vector<int> out;
    std::ifstream file("/proc/self/task/" + std::to_string(getpid()) + "/children");
    for (int child = 0; file >> child;) out.push_back(child);
    return out;
  }
  void gone() {
    if (!why_.empty()) return;
    int status = 0;
    kill(process_, SIGCONT);
    for (int tries = 0; tries < 100; ++tries) {
      if (waitpid(process_, &status, WNOHANG) == process_) {
        const bool signal = WIFSIGNALED(status);
        why_ = signal ? "the worker was ended by signal " + std::to_string(WTERMSIG(status))
                      : "the worker left with code " + std::to_string(WEXITSTATUS(status));
        kill(-process_, SIGKILL);
        process_ = 0;
        end();
        return;
      }
      usleep(10000);
    }
    give_up("the worker closed its socket");
  }

  Limits limits_;
  Channel channel_;
  pid_t process_ = 0;
  std::string why_;
};
