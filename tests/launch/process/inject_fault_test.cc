#include "launch/process/inject_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "planner/ids.h"

namespace siphon {
namespace {

constexpr char kVariable[] = "SIPHON_INJECT_FAULT";
constexpr char kKnownPlaces[] =
    "is neither an action, such as 1F0, nor known; known: validation, lending memory; with fail: "
    "chunk N";

// Two workers with a stage each, and three microbatches.
class InjectedFaults : public testing::Test {
 protected:
  InjectedFaults() {
    schedule_.microbatches = 3;
    schedule_.programs.resize(2);
    schedule_.worker_of_stage = {WorkerId(0), WorkerId(1)};
  }
  ~InjectedFaults() override { unsetenv(kVariable); }

  // The message with which it is refused, without its beginning.
  std::string Refusal(const std::string& fault) {
    setenv(kVariable, fault.c_str(), /*overwrite=*/1);
    const absl::Status status =
        CheckInjectedFault({.schedule = schedule_, .phases = {"validation", "lending memory"}});
    if (status.ok()) return "accepted";
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::string begin = std::string(kVariable) + "=" + fault + ": ";
    EXPECT_TRUE(absl::StartsWith(status.message(), begin)) << status;
    return std::string(status.message().substr(begin.size()));
  }

  Schedule schedule_;
};

TEST_F(InjectedFaults, AreAcceptedWhereTheyCanHappen) {
  for (const char* fault :
       {"0:5:0F2:kill", "1:0:1SEND_B0:stop", "1:3:1STEP:fail", "0:2:0SWAP_OUT1.3:stop_request",
        "0:6:validation:kill", "0:0:lending memory:refuse", "1:5:the host:slow",
        "1:5:worker 0:slow", "0:5:the drives:slow", "0:0:device 3:slow", "0:0:the host:full",
        "0:0:chunk 17:fail", "0:0:memory.capacity:overlook"}) {
    EXPECT_EQ(Refusal(fault), "accepted") << fault;
  }
  unsetenv(kVariable);
  EXPECT_TRUE(CheckInjectedFault({.schedule = schedule_}).ok());
}

TEST_F(InjectedFaults, AreRefusedWhereTheyAreWrittenOtherwise) {
  for (const char* fault : {"1", "1:2:3", "1:2:1F0:kill:now", "one:2:1F0:kill", "1:-2:1F0:kill"}) {
    EXPECT_EQ(Refusal(fault), "write RANK:STEP:PLACE:KIND") << fault;
  }
  EXPECT_EQ(Refusal("2:0:1F0:kill"), "rank 2 is none of the job's 2");
  EXPECT_EQ(Refusal("1:0:1F0:kil"),
            "kind 'kil' is not known; known: fail, full, hang, kill, overlook, refuse, slow, stop, "
            "stop_request");
}

TEST_F(InjectedFaults, AreRefusedWithPlacesThatNobodyComesTo) {
  EXPECT_EQ(Refusal("1:0:validaton:kill"), std::string("place 'validaton' ") + kKnownPlaces);
  EXPECT_EQ(Refusal("1:0:1FF0:kill"), std::string("place '1FF0' ") + kKnownPlaces);
  EXPECT_EQ(Refusal("1:0:1F00:kill"), std::string("place '1F00' ") + kKnownPlaces);
  EXPECT_EQ(Refusal("1:0:chunk 17:kill"), std::string("place 'chunk 17' ") + kKnownPlaces);
  EXPECT_EQ(Refusal("1:0:0F0:kill"), "place '0F0' is of stage 0, which rank 1 does not have");
  EXPECT_EQ(Refusal("1:0:2F0:kill"), "place '2F0' is of stage 2, which rank 1 does not have");
  EXPECT_EQ(Refusal("1:0:1F3:kill"), "place '1F3' is of microbatch 3, and a step has 3");
  EXPECT_EQ(Refusal("1:0:worker 1:slow"),
            "place 'worker 1' is no link of rank 1; known: the host, the drives, worker N of "
            "another one of 2, device N");
  EXPECT_EQ(Refusal("1:0:host:full"), "place 'host' is not known; with full: the host");
  EXPECT_EQ(Refusal("1:0:capacity:overlook"),
            "place 'capacity' is not known; with overlook: memory.capacity");
}

}  // namespace
}  // namespace siphon
