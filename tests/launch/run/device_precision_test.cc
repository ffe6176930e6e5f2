// Jobs in 16 bits on devices, whose norms take vectors of their input's type: what one process
// makes of the same numbers, they make, bit for bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pipeline/torch/graphs/saved_tensors.h"
#include "tests/conformance/job_runs.h"
#include "tests/launch/run/device_job.h"
#include "tests/launch/run/device_workers.h"

namespace siphon {
namespace {

class DevicePrecision : public DeviceWorkers, public testing::WithParamInterface<std::string> {
 protected:
  // As a checkpoint has it.
  static Bits BitsOf(const JobResult& result) {
    Bits bits;
    const auto add = [&bits](const reference::NamedValues& tensors, const std::string& suffix) {
      for (const auto& [name, values] : tensors) {
        bits[name + suffix].assign(reinterpret_cast<const char*>(values.data()),
                                   values.size() * sizeof(float));
      }
    };
    add(result.parameters, "");
    add(result.first_moments, ".exp_avg");
    add(result.second_moments, ".exp_avg_sq");
    return bits;
  }
  // Names of what one has otherwise, or not at all.
  static std::vector<std::string> Differing(const Bits& bits, const Bits& expected) {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : expected) {
      const auto found = bits.find(name);
      if (found == bits.end() || found->second != bytes) names.push_back(name);
    }
    return names;
  }
};

TEST_P(DevicePrecision, HasTheReferencesBits) {
  const ScratchFolder scratch;
  JobConfig text = Job(4);
  text.model.hidden = 96;  // so that layers have more to give than the output layer takes
  text.data = SmallTextJob(scratch, "device", "gpt").data;
  JobConfig plain = siphon::PlainJob(text, "cuda", scratch.path());
  plain.train.precision = GetParam();
  UseEngineWithSinks();  // the reference goes backward first
  const auto reference = ReferenceResult(plain);
  ASSERT_TRUE(reference.ok()) << reference.status();
  const Bits expected = BitsOf(*reference);
  EXPECT_GT(expected.size(), 100u);
  using Percent = std::pair<std::string, int64_t>;
  for (const auto& [strategy, percent] : {Percent("keep", 100),
                                          {"recompute", 99},
                                          {"host_swap", 98},
                                          {"d2d_swap", 99},
                                          {"auto", 98}}) {
    SCOPED_TRACE(strategy);
    const bool keeps = strategy == "keep";
    const auto prepared = PrepareJob(Tight(plain, strategy, percent), {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_NE(prepared->kept_whole.has_value(), keeps) << "it would fit anyway";
    EXPECT_THAT(Differing(Train(*prepared).bits, expected), testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Narrow, DevicePrecision, testing::Values("bf16", "fp16"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace siphon
