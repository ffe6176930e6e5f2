// Programs that a worker cannot run: each error names the worker, the action and its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/stage_worker.h"
#include "tests/pipeline/fake_job.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

TEST(StageWorker, NamesWhatIsWrongWithASwap) {
  const Schedule shape = ParsedSchedule("0F0 0F1 0B1 0B0 1F0 1F1 1B1 1B0\n");
  const std::string whole =
      "0F0 1F0 0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_IN0.0 1B0 0B0";  // nothing is wrong with it
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"0F0 0SWAP_OUT_END0.0 0SWAP_OUT0.0", "worker 0 action 1 0SWAP_OUT_END0.0: "},
      {"0F0 0SWAP_OUT0.0 0SWAP_OUT0.0", "worker 0 action 2 0SWAP_OUT0.0: "},
      {"0F0 0SWAP_OUT0.0 0SWAP_IN0.0", "worker 0 action 2 0SWAP_IN0.0: "},
      {"0F0 0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_IN_END0.0", "worker 0 action 3 0SWAP_IN_END0.0: "},
      {"0F0 1F0 0SWAP_OUT0.0 1B0 0B0", "worker 0 action 4 0B0: "},
      {"0F0 1F0 0SWAP_OUT0.0 0SWAP_OUT_END0.0 1B0", "worker 0 after its last action: "},
      {"0F0 0SWAP_IN0.0",
       "worker 0 action 1 0SWAP_IN0.0: no SWAP_OUT of stage 0, group 0, microbatch 0 stands in "
       "this "
       "program"},
      {"0F0 0SWAP_OUT0.2",
       "worker 0 begin of the step: group 2 of stage 0 holds parameters, the action is for "
       "activations"},
      {"0F0 0SWAP_OUT0",
       "worker 0 begin of the step: workers move, drop and compute again the activations of a "
       "group, "
       "not of a whole stage"}};
  const Schedule lowered = ParsedSchedule(whole + "\n");
  FakeJob good(shape, {}, JobTransport::kInProcess, &lowered);
  EXPECT_TRUE(good.Run(lowered, StepMode::kTrain, {})[0].ok());
  for (const auto& [program, message] : cases) {
    FakeJob job(shape, {}, JobTransport::kInProcess, &lowered);
    const auto result = job.Run(ParsedSchedule(program + "\n"), StepMode::kTrain, {})[0];
    EXPECT_THAT(std::string(result.status().message()), testing::StartsWith(message)) << program;
  }
}

struct BadProgram {
  std::string name;
  std::string programs;  // one worker and two stages, or two workers
  std::string message;
};

TEST(StageWorker, NamesWhatIsWrongWithAProgram) {
  const Schedule shape = ParsedSchedule("0F0 0B0 1F0 1B0\n");
  const std::vector<BadProgram> cases = {
      {"backward first", "0B0", "worker 0 action 0 0B0: there is nothing to send yet"},
      {"no forward of the stage before", "1F0",
       "worker 0 action 0 1F0: there is nothing to send yet"},
      {"stage of another worker", "7F0",
       "worker 0 action 0 7F0: stage 7 is not on this worker, which holds stages 0, 1"},
      {"send to itself", "0F0 0SEND_F0",
       "worker 0 action 1 0SEND_F0: stage 1 is not on another worker: there is nothing to send"},
      {"receive from itself", "0F0 1RECV_F0",
       "worker 0 action 1 1RECV_F0: stage 0 is not on another worker: there is nothing to receive"},
      {"receive before the first stage", "0RECV_F0",
       "worker 0 action 0 0RECV_F0: stage -1 is not on another worker: there is nothing to "
       "receive"},
      {"weights before the input", "0F0 1F0 1W0", "worker 0 action 2 1W0: no input half yet"},
      {"no weights", "0F0 1F0 1B0 0I0",
       "worker 0 after its last action: left over at the end of the step: 1 live microbatches of "
       "stage 0"},
      {"asynchronous", "0F0 1F0 1B0 1UPDATE0",
       "worker 0 action 3 1UPDATE0: the program changes weights in the middle of a step, which "
       "needs weight versions; workers hold one version of their weights"},
      {"swapping", "0F0 0SWAP_OUT0.0",
       "worker 0 begin of the step: the program moves tensors, and this worker was given no place "
       "to "
       "park them"},
      {"dropped late", "0F0 0DROP0.0", "worker 0 action 1 0DROP0.0: forward is done"},
      {"a whole stage", "0F0 0DROP0",
       "worker 0 action 1 0DROP0: workers move, drop and compute again the activations of a group, "
       "not of a whole stage"},
      {"computed again", "0F0 0RECOMPUTE0.1",
       "worker 0 action 1 0RECOMPUTE0.1: nothing was dropped"},
      {"unknown group", "0DROP0.3",
       "worker 0 action 0 0DROP0.3: the memory plan has no group 3 of stage 0"},
      {"parameters", "0DROP0.2",
       "worker 0 action 0 0DROP0.2: group 2 of stage 0 holds parameters, the action is for "
       "activations"},
      {"nothing shared", "0F0 1F0 1B0 0B0 0REDUCE_GRAD",
       "worker 0 action 4 0REDUCE_GRAD: stage 0 shares no parameter, or its shared gradients were "
       "added already"},
      {"no norm", "0F0 1F0 1B0 0B0 0STEP",
       "worker 0 action 4 0STEP: the optimizer step needs REDUCE_GRAD of all stages that share "
       "parameters, and REDUCE_NORM when gradients are clipped or may overflow"},
      {"backward left out", "0F0 1F0 1B0",
       "worker 0 after its last action: left over at the end of the step: 1 live microbatches of "
       "stage 0"}};
  for (const BadProgram& bad : cases) {
    SCOPED_TRACE(bad.name);
    Schedule program = shape;
    program.programs[0].clear();
    for (size_t begin = 0; begin < bad.programs.size();) {
      const size_t end = std::min(bad.programs.find(' ', begin), bad.programs.size());
      const auto action = ParseAction(bad.programs.substr(begin, end - begin));
      ASSERT_TRUE(action.ok()) << action.status();
      program.programs[0].push_back(*action);
      begin = end + 1;
    }
    FakeJob job(shape, {}, JobTransport::kInProcess);
    const auto results = job.Run(program, StepMode::kTrain, {.clip_norm = 1});
    EXPECT_EQ(results[0].status().message(), bad.message);
  }
}

// Notes how many boundary buffers its worker's stage has when each message begins.
class NotingTransport final : public Transport {
 public:
  NotingTransport(const FakeStage& stage, bool busy) : stage_(stage), busy_(busy) {}
  absl::StatusOr<TransferId> StartSend(const Channel&, std::vector<ConstPart>) override {
    notes_.push_back(absl::StrCat("send beside ", stage_.buffers()));
    return TransferId{++id_};
  }
  absl::StatusOr<TransferId> StartReceive(const Channel&, std::vector<MutablePart>) override {
    notes_.push_back(absl::StrCat("receive beside ", stage_.buffers()));
    return TransferId{++id_};
  }
  absl::StatusOr<bool> Test(TransferId) override { return true; }
  absl::Status Wait(TransferId) override { return absl::OkStatus(); }
  bool SendsKeepDeviceBusy() const override { return busy_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  const FakeStage& stage_;
  const bool busy_;
  int64_t id_ = 0;
  std::vector<std::string> notes_;
};

// Of two outputs: a message that is sent is gone at once here.
TEST(StageWorker, TakesMemoryToReceiveBeforeASendKeepsTheDeviceBusy) {
  std::vector<Action> program;
  for (const char* action : {"0F0", "0F1", "0SEND_F0", "0SEND_F1", "0RECV_B0", "0RECV_B1"}) {
    program.push_back(ParseAction(action).value());
  }
  const auto run = [&program](bool busy) {
    FakeStage stage(StageId(0), 2, {});
    NotingTransport transport(stage, busy);
    StageWorker worker(WorkerId(0),
                       {.worker_of_stage = {WorkerId(0), WorkerId(1)}, .owned_parameters = {1, 1}},
                       {{StageId(0), &stage}}, &transport, nullptr, nullptr);
    EXPECT_FALSE(worker.RunStep(program, {.mode = StepMode::kTrain}, {}).ok()) << "no backward";
    return transport.notes();
  };
  using Notes = std::vector<std::string>;
  EXPECT_EQ(run(false),
            (Notes{"send beside 2", "send beside 1", "receive beside 1", "receive beside 2"}));
  EXPECT_EQ(run(true),
            (Notes{"send beside 4", "send beside 3", "receive beside 2", "receive beside 2"}));
}

TEST(StageWorker, AReceiveThatNobodyUsesIsLeftOver) {
  const Schedule shape = ParsedSchedule("0F0 0B0\n1F0 1B0\n");
  Schedule program = shape;
  program.programs = {{ParseAction("0F0").value(), ParseAction("0SEND_F0").value()},
                      {ParseAction("1RECV_F0").value()}};
  FakeJob job(shape, {}, JobTransport::kInProcess);
  const auto results = job.Run(program, StepMode::kEvaluate, {});
  EXPECT_TRUE(results[0].ok()) << results[0].status();
  EXPECT_EQ(results[1].status(),
            absl::InternalError("worker 1 after its last action: left over at the end of the step: "
                                "the received input of stage 1, microbatch 0"));
}

}  // namespace
}  // namespace siphon
