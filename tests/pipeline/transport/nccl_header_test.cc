// Our declarations of NCCL beside its own, where nccl.h is installed.

#include <gtest/gtest.h>
#include <nccl.h>

#include <cstddef>

#include "pipeline/transport/nccl_api.h"

namespace siphon {
namespace {

static_assert(int{kNcclSuccess} == ncclSuccess);
static_assert(int{kNcclUnhandledCudaError} == ncclUnhandledCudaError);
static_assert(int{kNcclSystemError} == ncclSystemError);
static_assert(int{kNcclInternalError} == ncclInternalError);
static_assert(int{kNcclInvalidArgument} == ncclInvalidArgument);
static_assert(int{kNcclInvalidUsage} == ncclInvalidUsage);
static_assert(int{kNcclRemoteError} == ncclRemoteError);
static_assert(int{kNcclInProgress} == ncclInProgress);
static_assert(kNcclBytes == int{ncclInt8});
static_assert(kNcclUndefined == NCCL_CONFIG_UNDEF_INT);
static_assert(kNcclLeastVersion == NCCL_VERSION(2, 18, 0));
static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));

static_assert(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(NcclConfig, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(NcclConfig, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, network) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));

TEST(NcclHeader, BeginsAConfigurationAsWeDo) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const NcclConfig ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_LE(ours.version, theirs.version);
  EXPECT_EQ(ours.min_ctas, theirs.minCTAs);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
}

}  // namespace
}  // namespace siphon
