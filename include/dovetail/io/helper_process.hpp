// SPDX-License-Identifier: MIT
// A program that is asked one line at a time over a socket and answers one line: started with the object, ended with
// it. Its death, its silence and its endless talk each become an IoError; no signal reaches this process, no zombie
// stays, and an interrupt typed at the terminal does not reach the program. Needs POSIX. `Tokenizer` is its caller.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <dovetail/io/error.hpp>
#include <thread>
#include <vector>

extern char** environ;

namespace dovetail {

/// A child process that speaks in lines; neither copied nor moved. One caller at a time.
class HelperProcess {
 public:
  using Clock = std::chrono::steady_clock;

  /// Longest answer that is read, in bytes.
  static constexpr std::size_t answer_limit = std::size_t{64} << 20;

  /// Starts `command`, whose first word is a program's path or a name found in PATH.
  /// @param patience  longest wait for one answer
  /// @throws IoError where it cannot be started
  explicit HelperProcess(std::vector<std::string> command, std::chrono::milliseconds patience = std::chrono::minutes(1))
      : name_(command.at(0)), patience_(patience) {
    int ends[2];
#ifdef SOCK_CLOEXEC
    constexpr int kind = SOCK_STREAM | SOCK_CLOEXEC;  // no child that another thread starts meanwhile inherits it
#else
    constexpr int kind = SOCK_STREAM;
#endif
    if (::socketpair(AF_UNIX, kind, 0, ends)) throw io_error(name_, ": no socket to talk over: ", reason(errno));
    socket_ = ends[0];
    for (int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
    int const on = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    std::vector<char*> words;
    for (auto& word : command) words.push_back(word.data());
    words.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, ends[1], 0);
    ::posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own: an interrupt at the terminal passes it by
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&usual, signal);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int const failed = ::posix_spawnp(&child_, words[0], &files, &attributes, words.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    ::close(ends[1]);
    if (failed) {
      child_ = -1;
      ::close(socket_);
      throw io_error(name_, ": cannot be started: ", reason(failed));
    }
  }

  HelperProcess(HelperProcess const&) = delete;
  HelperProcess& operator=(HelperProcess const&) = delete;
  ~HelperProcess() {
    ::close(socket_);  // the program reads the end of its input and ends
    if (child_ < 0 || ended(std::chrono::seconds(broken_ ? 0 : 1))) return;
    ::kill(child_, SIGKILL);
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {}
  }

  /// Sends `line` and returns the answer, both without their newline.
  /// @throws IoError where the program has ended, stays silent, or answers without end; it cannot be asked again then
  std::string ask(std::string line) {
    if (broken_) throw io_error(name_, ": cannot be asked again after it failed");
    broken_ = true;
    if (!received_.empty()) throw io_error(name_, ": speaks without being asked: ", in_quotes(received_));
    line += '\n';
    send(line);
    std::string answer = receive();
    broken_ = false;
    return answer;
  }

  /// The next line without a question: what a program says when it has started.
  std::string receive() {
    auto const until = Clock::now() + patience_;
    for (std::size_t searched = 0;;) {
      if (std::size_t const end = received_.find('\n', searched); end != std::string::npos) {
        std::string const line = received_.substr(0, end);
        received_.erase(0, end + 1);
        return line;
      }
      searched = received_.size();
      if (searched > answer_limit) throw io_error(name_, ": answers with more than ", answer_limit, " bytes");
      wait(POLLIN, until);
      char chunk[65536];
      ssize_t const count = ::recv(socket_, chunk, sizeof chunk, MSG_DONTWAIT);
      if (count > 0) received_.append(chunk, static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && !passing(errno))) throw gone();
    }
  }

 private:
  static bool passing(int error) { return error == EINTR || error == EAGAIN || error == EWOULDBLOCK; }

  void send(std::string_view text) {
    int flags = MSG_DONTWAIT;
#ifdef MSG_NOSIGNAL
    flags |= MSG_NOSIGNAL;
#endif
    auto const until = Clock::now() + patience_;
    while (!text.empty()) {
      wait(POLLOUT, until);
      ssize_t const count = ::send(socket_, text.data(), text.size(), flags);
      if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
      if (count < 0 && !passing(errno)) throw gone();
    }
  }

  /// Waits for the socket to be ready, or to be closed by the other side.
  void wait(short event, Clock::time_point until) {
    for (;;) {
      auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0)
        throw io_error(name_, ": has not answered for ",
                       std::chrono::duration_cast<std::chrono::duration<double>>(patience_).count(), " s");
      pollfd watched{socket_, event, 0};
      int const ready = ::poll(&watched, 1, left > 1000 ? 1000 : static_cast<int>(left));
      if (ready > 0) return;
      if (ready < 0 && errno != EINTR) throw io_error(name_, ": cannot be waited for: ", reason(errno));
    }
  }

  /// True where the child has ended within `grace`, and is no zombie.
  bool ended(std::chrono::milliseconds grace) {
    for (auto const until = Clock::now() + grace;;) {
      pid_t const found = child_ < 0 ? child_ : ::waitpid(child_, &status_, WNOHANG);
      if (found == child_ || (found < 0 && errno != EINTR)) {
        child_ = -1;
        return true;
      }
      if (Clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  IoError gone() {
    if (!ended(std::chrono::seconds(1))) return io_error(name_, ": has closed its connection");
    if (WIFSIGNALED(status_)) return io_error(name_, ": was ended by signal ", WTERMSIG(status_));
    return io_error(name_, ": has ended with status ", WEXITSTATUS(status_));
  }

  std::string name_;
  std::chrono::milliseconds patience_;
  int socket_ = -1;
  pid_t child_ = -1;  // -1 once it has been waited for
  int status_ = 0;
  bool broken_ = false;
  std::string received_;
};

}  // namespace dovetail
