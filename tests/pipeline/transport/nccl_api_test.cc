#include "pipeline/transport/nccl_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace siphon {
namespace {

using testing::HasSubstr;

TEST(NcclVersionText, IsWhatPeopleWrite) {
  EXPECT_EQ(NcclVersionText(22809), "2.28.9");
  EXPECT_EQ(NcclVersionText(21800), "2.18.0");
}

TEST(LoadNccl, SaysInOneLineThatThereIsNone) {
  const auto none = LoadNccl("/no/such/libnccl.so.2");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.status().message(), HasSubstr("no NCCL: /no/such/libnccl.so.2"));
  EXPECT_THAT(none.status().message(), HasSubstr("it comes with LibTorch for CUDA"));
}

TEST(LoadNccl, SaysWhatALibraryLacks) {
  const auto other = LoadNccl("libm.so.6");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.status().message(), HasSubstr("ncclGetVersion"));
}

// Of the real one, as much as works without a device.
TEST(LoadNccl, FindsEveryFunctionInTheRealLibrary) {
#ifdef SIPHON_NCCL_LIBRARY
  const auto api = LoadNccl(SIPHON_NCCL_LIBRARY);
  ASSERT_TRUE(api.ok()) << api.status();
  EXPECT_GE((*api)->version, kNcclLeastVersion);
  EXPECT_EQ(LoadNccl(SIPHON_NCCL_LIBRARY).value(), *api);  // once
  EXPECT_STREQ((*api)->error_text(kNcclInvalidUsage),
               "invalid usage (run with NCCL_DEBUG=WARN for details)");
#else
  GTEST_SKIP() << "skipped, because this machine has no libnccl.so.2";
#endif
}

const char* NoText(NcclHandle) { return ""; }
const char* Text(NcclHandle) { return "socket closed"; }
const char* Name(NcclResult) { return "some error"; }

TEST(NcclStatus, NamesTheErrorAndWhatWasDone) {
  NcclApi api{};
  api.error_text = Name;
  api.last_error = NoText;
  EXPECT_TRUE(NcclStatus(api, kNcclSuccess, nullptr, "sending").ok());
  EXPECT_TRUE(NcclStatus(api, kNcclInProgress, nullptr, "sending").ok());
  EXPECT_EQ(NcclStatus(api, kNcclInternalError, nullptr, "sending"),
            absl::InternalError("sending: NCCL: some error (3)"));
  api.last_error = Text;
  EXPECT_EQ(NcclStatus(api, kNcclRemoteError, nullptr, "sending"),
            absl::UnavailableError("sending: NCCL: some error (6): socket closed"));
}

}  // namespace
}  // namespace siphon
