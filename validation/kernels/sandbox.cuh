// SPDX-License-Identifier: Apache-2.0
// Takes from a process what a candidate has no use for: other processes, the network, files outside
// its folder. It stops what is careless or curious, and is no wall against an attack on the kernel.
#pragma once

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sandbox {

inline void limit(int what, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(static_cast<__rlimit_resource>(what), &both);
}

// Of a process that has no threads yet: a user and a network of its own. False: the host's kernel
// does not allow it.
inline bool leave_network() { return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0; }

inline void set_limits(long seconds) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 64u << 20);
  limit(RLIMIT_NOFILE, 1024);
  limit(RLIMIT_CPU, static_cast<rlim_t>(seconds));
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

// Capabilities of root, where root runs it.
inline bool drop_capabilities() {
  struct {
    std::uint32_t version;
    int process;
  } header{0x20080522, 0};  // _LINUX_CAPABILITY_VERSION_3
  struct {
    std::uint32_t effective, permitted, inheritable;
  } none[2]{};
  return syscall(SYS_capset, &header, none) == 0;
}

// Landlock, since Linux 5.13: writing is left in `folder` and to devices that exist.
inline bool keep_files(const std::string& folder) {
  constexpr int create = 444, add_rule = 445, restrict_self = 446;  // the same on all machines
  constexpr std::uint64_t write_file = 1u << 1, all_writing = write_file | (0x1ffull << 4);
  const long version = syscall(create, nullptr, 0, 1u);
  if (version < 1) return false;
  const std::uint64_t handled = all_writing | (version >= 3 ? 1ull << 14 : 0);  // and truncation
  const int rules = static_cast<int>(syscall(create, &handled, sizeof handled, 0u));
  if (rules < 0) return false;
  struct __attribute__((packed)) {
    std::uint64_t allowed;
    std::int32_t parent;
  } rule{};
  bool whole = true;
  for (const bool own : {true, false}) {
    rule.allowed = own ? handled : write_file;
    rule.parent = open(own ? folder.c_str() : "/dev", O_PATH | O_CLOEXEC);
    whole = rule.parent >= 0 && syscall(add_rule, rules, 1, &rule, 0u) == 0 && whole;
    if (rule.parent >= 0) close(rule.parent);
  }
  const bool held = whole && syscall(restrict_self, rules, 0u) == 0;
  close(rules);
  return held;
}

// Calls that are refused from now on. `alone`: no new process either; Triton and PyTorch start
// compilers.
inline bool filter_calls(bool alone) {
#if defined(__x86_64__)
  constexpr std::uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr std::uint32_t machine = AUDIT_ARCH_AARCH64;
#else
  return false;
#endif
  const auto own = static_cast<std::uint32_t>(getpid());
  constexpr auto no = SECCOMP_RET_ERRNO | 1u;        // EPERM
  constexpr auto unknown = SECCOMP_RET_ERRNO | 38u;  // ENOSYS: libraries take the older call
  constexpr auto call = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto first = static_cast<std::uint32_t>(offsetof(seccomp_data, args));
  std::vector<sock_filter> code;
  const auto load = [&](std::uint32_t at) { code.push_back({BPF_LD | BPF_W | BPF_ABS, 0, 0, at}); };
  const auto skip_unless = [&](std::uint32_t value, unsigned char count) {
    code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, count, value});
  };
  const auto end = [&](std::uint32_t with) { code.push_back({BPF_RET | BPF_K, 0, 0, with}); };
  load(offsetof(seccomp_data, arch));
  code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, machine});
  end(SECCOMP_RET_KILL_PROCESS);
  load(call);
  code.push_back({BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000});  // x32
  end(no);
  std::vector<long> refused = {SYS_ptrace,
                               SYS_process_vm_readv,
                               SYS_process_vm_writev,
                               SYS_tkill,
                               SYS_rt_sigqueueinfo,
                               SYS_rt_tgsigqueueinfo,
                               SYS_socket,
                               SYS_connect,
                               SYS_bind,
                               SYS_unshare,
                               SYS_setns,
                               SYS_mount,
                               SYS_umount2,
                               SYS_pivot_root,
                               SYS_chroot,
                               SYS_bpf,
                               SYS_perf_event_open,
                               SYS_keyctl,
                               SYS_add_key,
                               SYS_request_key,
                               SYS_userfaultfd,
                               SYS_setpgid,
                               SYS_setsid,
                               SYS_setrlimit,
                               SYS_init_module,
                               SYS_finit_module,
                               SYS_delete_module,
                               SYS_reboot,
                               424,
                               425,
                               434,
                               438};
  // The last four, the same on all machines: pidfd_send_signal, io_uring_setup, pidfd_open,
  // pidfd_getfd.
  if (alone) {
    refused.push_back(SYS_execve);
    refused.push_back(SYS_execveat);
#ifdef SYS_fork
    refused.push_back(SYS_fork);
    refused.push_back(SYS_vfork);
#endif
  }
  for (const long number : refused) {
    skip_unless(static_cast<std::uint32_t>(number), 1);
    end(no);
  }
  // Signals: to itself alone.
  for (const long number : {static_cast<long>(SYS_kill), static_cast<long>(SYS_tgkill)}) {
    skip_unless(static_cast<std::uint32_t>(number), 4);
    load(first);
    code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, own});
    end(no);
    end(SECCOMP_RET_ALLOW);
  }
  // Limits: read, not set (the third argument is null).
  skip_unless(static_cast<std::uint32_t>(SYS_prlimit64), 6);
  load(first + 16);
  skip_unless(0, 3);
  load(first + 20);
  skip_unless(0, 1);
  end(SECCOMP_RET_ALLOW);
  end(no);
  if (alone) {  // threads, no processes; the flags of clone3 lie in memory, where no filter looks
    skip_unless(435, 1);
    end(unknown);
    skip_unless(static_cast<std::uint32_t>(SYS_clone), 4);
    load(first);
    code.push_back({BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD});
    end(no);
    end(SECCOMP_RET_ALLOW);
  }
  end(SECCOMP_RET_ALLOW);
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace sandbox
