#include "launch/process/line_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace siphon {
namespace {

constexpr size_t kLongestLine = 16 << 20;
constexpr int kWaiting = 128;  // connections before Accept

absl::Status SocketError(absl::string_view doing) {
  return absl::UnavailableError(absl::StrCat(doing, ": ", std::strerror(errno)));
}

absl::StatusOr<sockaddr_in> ParseAddress(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, ':');
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  int port = 0;
  if (inet_pton(AF_INET, parts.first.c_str(), &address.sin_addr) != 1 ||
      !absl::SimpleAtoi(parts.second, &port) || port < 1 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(text, " is no address and port"));
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineSocket>> LineSocket::Connect(const std::string& address,
                                                                Nanos timeout) {
  const auto parsed = ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return SocketError("making a socket");
  auto line = std::make_unique<LineSocket>(socket);
  const auto* const to = reinterpret_cast<const sockaddr*>(&*parsed);
  if (connect(socket, to, sizeof *parsed) != 0) {
    if (errno != EINPROGRESS) return SocketError(address);
    if (!line->WaitFor(POLLOUT, timeout)) {
      return absl::UnavailableError(
          absl::StrCat(address, ": no answer within ", FormatNanos(timeout)));
    }
    socklen_t size = sizeof errno;
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &errno, &size);
    if (errno != 0) return SocketError(address);
  }
  return line;
}

LineSocket::~LineSocket() { close(socket_); }

bool LineSocket::WaitFor(short events, Nanos timeout) const {
  pollfd wanted = {.fd = socket_, .events = events, .revents = 0};
  return poll(&wanted, 1, static_cast<int>(timeout.value / 1'000'000)) > 0;
}

void LineSocket::Send(absl::string_view line) { absl::StrAppend(&sending_, line, "\n"); }

bool LineSocket::Flush(Nanos timeout) {
  while (!sending_.empty() && takes_lines_) {
    const ssize_t sent =
        send(socket_, sending_.data(), sending_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      sending_.erase(0, static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(POLLOUT, timeout)) return false;
    } else if (errno != EINTR) {
      takes_lines_ = false;
    }
  }
  return sending_.empty();
}

void LineSocket::EndSending() {
  takes_lines_ = false;
  shutdown(socket_, SHUT_WR);
}

void LineSocket::AwaitEnd(Nanos timeout) {
  const auto begin = std::chrono::steady_clock::now();
  for (Nanos left = timeout; !ended_ && left > Nanos(0);) {
    Receive(left);
    const std::chrono::nanoseconds gone = std::chrono::steady_clock::now() - begin;
    left = timeout - Nanos(gone.count());
  }
}

void LineSocket::ReadWhatThereIs() {
  char bytes[16 << 10];
  while (!ended_) {
    const ssize_t count = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count > 0) {
      received_.append(bytes, static_cast<size_t>(count));
      // What has come is still good.
      ended_ = received_.size() > kLongestLine && !absl::StrContains(received_, '\n');
    } else if (count == 0) {
      ended_ = true;
    } else if (errno != EINTR) {
      ended_ = errno != EAGAIN && errno != EWOULDBLOCK;
      return;
    }
  }
}

std::vector<std::string> LineSocket::Receive(Nanos timeout) {
  if (timeout > Nanos(0)) WaitFor(POLLIN, timeout);
  ReadWhatThereIs();
  const size_t end = received_.rfind('\n');
  if (end == std::string::npos) return {};
  std::vector<std::string> lines =
      absl::StrSplit(absl::string_view(received_).substr(0, end), '\n');
  received_.erase(0, end + 1);
  return lines;
}

absl::StatusOr<std::unique_ptr<LineListener>> LineListener::Open() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return SocketError("making a socket");
  std::unique_ptr<LineListener> listener(new LineListener(socket, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket, place, size) != 0 || listen(socket, kWaiting) != 0 ||
      getsockname(socket, place, &size) != 0) {
    return SocketError("taking connections");
  }
  listener->port_ = ntohs(address.sin_port);
  return listener;
}

LineListener::~LineListener() { close(socket_); }

std::vector<std::string> LineListener::Addresses() const {
  std::vector<std::string> addresses, loopback;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {absl::StrCat("127.0.0.1:", port_)};
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text,
              sizeof text);
    const bool is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    (is_loopback ? loopback : addresses).push_back(absl::StrCat(text, ":", port_));
  }
  freeifaddrs(all);
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

std::unique_ptr<LineSocket> LineListener::Accept() {
  const int socket = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return socket < 0 ? nullptr : std::make_unique<LineSocket>(socket);
}

}  // namespace siphon
