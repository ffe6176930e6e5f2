#include "launch/process/line_socket.h"

#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanos kLong(5'000'000'000);

// Both ends of a connection over the loopback.
struct Connection {
  std::unique_ptr<LineListener> listener = *LineListener::Open();
  std::unique_ptr<LineSocket> from = *LineSocket::Connect(listener->Addresses().back(), kLong);
  std::unique_ptr<LineSocket> to = listener->Accept();
};

TEST(LineSocket, BringsLinesWholeAndInOrder) {
  Connection connection;
  ASSERT_NE(connection.to, nullptr);
  EXPECT_THAT(connection.to->Receive(), IsEmpty());
  connection.from->Send("first");
  connection.from->Send("");
  connection.from->Send("third");
  EXPECT_TRUE(connection.from->Flush());
  EXPECT_THAT(connection.to->Receive(kLong), ElementsAre("first", "", "third"));
  EXPECT_FALSE(connection.to->ended());
}

TEST(LineSocket, TakesMoreThanTheConnectionHolds) {
  Connection connection;
  const std::string line(12 << 20, 'x');
  connection.from->Send(line);
  connection.from->Flush();  // nobody reads yet, so that it may not take all
  std::vector<std::string> lines;
  while (lines.empty() && !connection.to->ended()) {
    connection.from->Flush();
    lines = connection.to->Receive();
  }
  EXPECT_THAT(lines, ElementsAre(line));
}

TEST(LineSocket, GivesWhatCameBeforeTheEnd) {
  Connection connection;
  connection.from->Send("last words");
  EXPECT_TRUE(connection.from->Flush());
  connection.from.reset();
  EXPECT_THAT(connection.to->Receive(kLong), ElementsAre("last words"));
  while (!connection.to->ended()) connection.to->Receive(kLong);
  EXPECT_THAT(connection.to->Receive(), IsEmpty());
  connection.to->Send("too late");
  connection.to->Flush();
  EXPECT_TRUE(connection.to->ended());
}

// As where both sides end at once. The closed side had something left to read: a reset follows.
TEST(LineSocket, GivesWhatCameThoughItCanSendNoMore) {
  Connection connection;
  connection.to->Send("never read");
  EXPECT_TRUE(connection.to->Flush());
  connection.from->Send("last words");
  EXPECT_TRUE(connection.from->Flush());
  connection.from.reset();
  do {
    connection.to->Send("too late");
  } while (connection.to->Flush());
  EXPECT_THAT(connection.to->Receive(kLong), ElementsAre("last words"));
  EXPECT_THAT(connection.to->Receive(kLong), IsEmpty());
  EXPECT_TRUE(connection.to->ended());
}

TEST(LineSocket, AwaitsTheEndOfTheOtherSide) {
  Connection connection;
  connection.to->Send("in between");
  EXPECT_TRUE(connection.to->Flush());
  connection.from->Send("last words");
  EXPECT_TRUE(connection.from->Flush());
  connection.from->EndSending();
  connection.from->AwaitEnd(Nanos(1'000'000));
  EXPECT_FALSE(connection.from->ended());
  EXPECT_THAT(connection.to->Receive(kLong), ElementsAre("last words"));
  connection.to.reset();
  connection.from->AwaitEnd(kLong);
  EXPECT_TRUE(connection.from->ended());
  connection.from->Send("too late");
  EXPECT_FALSE(connection.from->Flush());
}

TEST(LineSocket, SaysWhereNobodyAnswers) {
  std::string address;
  {
    const auto listener = *LineListener::Open();
    address = listener->Addresses().back();
    EXPECT_TRUE(absl::StartsWith(address, "127.")) << address;
    EXPECT_EQ(listener->Accept(), nullptr);
  }
  const auto refused = LineSocket::Connect(address, kLong);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(refused.status().message(), address + ": Connection refused");
  for (const char* wrong : {"", "127.0.0.1", "localhost:80", "127.0.0.1:", "127.0.0.1:65536"}) {
    EXPECT_THAT(std::string(LineSocket::Connect(wrong, kLong).status().message()),
                HasSubstr("is no address and port"));
  }
}

}  // namespace
}  // namespace siphon
