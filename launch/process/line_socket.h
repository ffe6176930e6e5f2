#ifndef SIPHON_LAUNCH_PROCESS_LINE_SOCKET_H_
#define SIPHON_LAUNCH_PROCESS_LINE_SOCKET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

// Lines of text over a TCP connection. Calls wait only for as long as they are told.
//
// Thread-safety: one thread at a time.
class LineSocket {
 public:
  // To "10.0.0.3:4567". Errors: Unavailable, with what was tried and why it failed.
  static absl::StatusOr<std::unique_ptr<LineSocket>> Connect(const std::string& address,
                                                             Nanos timeout);
  // Of a connected socket, which it closes.
  explicit LineSocket(int socket) : socket_(socket) {}
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  // Without its newline, behind what is still to be sent.
  void Send(absl::string_view line);
  // Sends what the other side takes, for up to `timeout`; whether all of it is sent.
  bool Flush(Nanos timeout = Nanos(0));
  // The complete lines that have come, for up to `timeout` until there is one.
  std::vector<std::string> Receive(Nanos timeout = Nanos(0));
  // Nothing is sent behind what is. The other side sees the end once it has received all.
  void EndSending();
  // Receives, and forgets, until the other side has ended too, for up to `timeout`. A socket that
  // is closed before may take with it what was sent last.
  void AwaitEnd(Nanos timeout);
  // The other side has closed and all that came from it is received, or a line is longer than any
  // of ours.
  bool ended() const { return ended_; }

 private:
  bool WaitFor(short events, Nanos timeout) const;
  void ReadWhatThereIs();

  int socket_;
  std::string sending_;
  std::string received_;
  bool takes_lines_ = true;  // false: sending has failed or ended; lines may still be received
  bool ended_ = false;
};

// Takes connections on a port of this machine that was free.
//
// Thread-safety: one thread.
class LineListener {
 public:
  static absl::StatusOr<std::unique_ptr<LineListener>> Open();
  ~LineListener();
  LineListener(const LineListener&) = delete;
  LineListener& operator=(const LineListener&) = delete;

  // "10.0.0.3:4567": one for each IPv4 address of this machine, its loopback last.
  std::vector<std::string> Addresses() const;
  // Null when nobody is waiting.
  std::unique_ptr<LineSocket> Accept();

 private:
  LineListener(int socket, int port) : socket_(socket), port_(port) {}
  int socket_;
  int port_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_LINE_SOCKET_H_
