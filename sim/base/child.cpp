// SPDX-License-Identifier: Apache-2.0
// Starts programs, with pipes and files in memory that no other program inherits.
#include "sim/base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "sim/base/errors/machine_failed.h"

extern char** environ;  // NOLINT: POSIX's name

namespace orrery {
namespace {

[[noreturn]] void fail(const std::string& program, int error) {
  throw MachineFailed({.file = program,
                       .found = std::strerror(error),
                       .expected = "a program that can be started"});
}

// A file in memory that holds the text, to be read from its start.
int file_of(std::string_view text, const std::string& program) {
  const int file = memfd_create("orrery", MFD_CLOEXEC);
  if (file < 0) fail(program, errno);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t some = write(file, text.data() + at, text.size() - at);
    if (some < 0 && errno != EINTR) {
      const int error = errno;
      close(file);
      fail(program, error);
    }
    if (some > 0) at += static_cast<std::size_t>(some);
  }
  lseek(file, 0, SEEK_SET);
  return file;
}

void close_if_open(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

}  // namespace

Child::Child(const std::vector<std::string>& words, std::string_view input) {
  int told = file_of(input, words.front());
  errors_ = file_of("", words.front());
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    close_if_open(told);
    close_if_open(errors_);
    fail(words.front(), error);
  }
  output_ = pipe_ends[0];
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, told, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors_, STDERR_FILENO);
  // Signals that this program ignores or handles mean to the other one what they always do.
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t usual;
  sigemptyset(&usual);
  posix_spawnattr_setsigmask(&how, &usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&how, &usual);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0], &files, &how, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  close_if_open(told);
  close_if_open(pipe_ends[1]);
  if (error != 0) {
    close_if_open(output_);
    close_if_open(errors_);
    fail(words.front(), error);
  }
  process_ = process;
}

Child::~Child() {
  if (code_ < 0) {
    send(SIGKILL);
    wait();
  }
  close_if_open(output_);
  close_if_open(errors_);
}

bool Child::read(std::string& printed, int milliseconds) {
  pollfd watched{.fd = output_, .events = POLLIN, .revents = 0};
  const int ready = poll(&watched, 1, milliseconds);
  if (ready <= 0) return true;
  std::array<char, 65536> some{};
  const ssize_t got = ::read(output_, some.data(), some.size());
  if (got < 0) return errno == EINTR;
  printed.append(some.data(), static_cast<std::size_t>(got));
  return got > 0;
}

void Child::send(int signal) const {
  if (code_ < 0) kill(process_, signal);
}

int Child::wait() {
  int status = 0;
  while (code_ < 0) {
    if (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    constexpr int ended_by_signal = 128;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : ended_by_signal + WTERMSIG(status);
  }
  return code_;
}

std::string Child::errors() const {
  std::string text;
  std::array<char, 4096> some{};
  off_t at = 0;
  for (ssize_t got = 0; (got = pread(errors_, some.data(), some.size(), at)) > 0; at += got)
    text.append(some.data(), static_cast<std::size_t>(got));
  return text;
}

ChildResult run_child(const std::vector<std::string>& words, std::string_view input) {
  Child child(words, input);
  ChildResult result;
  constexpr int a_while = 1000;
  while (child.read(result.printed, a_while)) {
  }
  result.code = child.wait();
  result.errors = child.errors();
  return result;
}

}  // namespace orrery
