// SPDX-License-Identifier: Apache-2.0
// Knows lines between judge and worker, over a pair of sockets that nothing else writes to.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string>

class Channel {
 public:
  explicit Channel(int file) : file_(file) {}
  int file() const { return file_; }
  bool send(const std::string& text) const {
    const std::string line = text + "\n";
    for (std::size_t at = 0; at < line.size();) {
      const ssize_t some = write(file_, line.data() + at, line.size() - at);
      if (some < 0 && errno == EINTR) continue;
      if (some <= 0) return false;
      at += static_cast<std::size_t>(some);
    }
    return true;
  }
  enum class Got { line, nothing, closed };
  // Waits so long at most; below 0: for ever.
  Got receive(std::string& line, int milliseconds) {
    for (;;) {
      const std::size_t end = kept_.find('\n');
      if (end != std::string::npos) {
        line = kept_.substr(0, end);
        kept_.erase(0, end + 1);
        return Got::line;
      }
      constexpr std::size_t most = 1 << 20;  // a candidate may write here too
      if (kept_.size() > most) return Got::closed;
      pollfd watched{file_, POLLIN, 0};
      const int ready = poll(&watched, 1, milliseconds);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return Got::nothing;
      char some[4096];
      const ssize_t got = read(file_, some, sizeof some);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Got::closed;
      kept_.append(some, static_cast<std::size_t>(got));
    }
  }

 private:
  int file_;
  std::string kept_;
};
