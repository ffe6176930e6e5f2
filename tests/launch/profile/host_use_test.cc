#include "launch/profile/host_use.h"

#include <gtest/gtest.h>

#include "swap/device/nvme_io.h"
#include "swap/device/nvme_parking.h"

namespace siphon {
namespace {

constexpr ParkingPlace kHost{.tier = Placement::kHostSwap};
constexpr ParkingPlace kDrive{.tier = Placement::kNvmeSwap};
constexpr ParkingPlace kPeer{Placement::kPeerSwap, DeviceId(1)};

// Sixteen buffers, a quarter of what is parked there; 1 MiB each at most and a block at least.
TEST(NvmeBufferBytes, AreAQuarterOfTheFile) {
  EXPECT_EQ(NvmeBufferBytes(Bytes(0)), Bytes(0));
  EXPECT_EQ(NvmeBufferBytes(Bytes(kNvmeBlock)), Bytes(16 * kNvmeBlock));
  EXPECT_EQ(NvmeBufferBytes(Bytes(8 << 20)), Bytes(2 << 20));
  EXPECT_EQ(MoverFor(Bytes(8 << 20)).buffer, Bytes(128 << 10));
  EXPECT_EQ(NvmeBufferBytes(Bytes(64 << 20)), Bytes(16 << 20));
  EXPECT_EQ(NvmeBufferBytes(Bytes(int64_t{1} << 40)), Bytes(16 << 20));
  for (int64_t bytes = kNvmeBlock; bytes < 80 << 20; bytes += 37 * kNvmeBlock) {
    EXPECT_EQ(MoverFor(Bytes(bytes)).buffer.value % kNvmeBlock, 0) << bytes;
  }
}

// 2 MiB and 64 KiB are 2.06 MiB, and so are these with the 1,364 bytes besides.
TEST(HostUse, AddsUpWhatAllWorkersTake) {
  std::vector<WorkerParking> parking(3);
  parking[0].bytes = {{kHost, Bytes(1000)}, {kPeer, Bytes(5000)}};
  parking[1].bytes = {{kHost, Bytes(24)}, {kDrive, Bytes(8 << 20)}};
  parking[2].bytes = {{kDrive, Bytes(4096)}};
  const HostUse use = HostUseOf(parking, {Bytes(0), Bytes(300), Bytes(40)});
  EXPECT_EQ(use, (HostUse{Bytes(1024), Bytes(340), Bytes((2 << 20) + (64 << 10))}));
  EXPECT_EQ(use.total(), Bytes(1024 + 340 + (2 << 20) + (64 << 10)));
  EXPECT_EQ(ToString(use),
            "2.06 MiB (parked 1.00 KiB, for optimizer steps 340 B, buffers of drives 2.06 MiB)");
  EXPECT_EQ(ToString(HostUse{.parked = Bytes(7)}), "7 B");
  EXPECT_EQ(HostUseOf({}, {}), HostUse());
}

TEST(HostUse, IsOfEachServerByItself) {
  std::vector<WorkerParking> parking(3);
  parking[0].bytes = {{kHost, Bytes(1000)}};
  parking[1].bytes = {{kHost, Bytes(24)}};
  parking[2].bytes = {{kHost, Bytes(100)}};
  const std::vector<Bytes> steps = {Bytes(0), Bytes(300), Bytes(950)};
  const Topology two = SeveralServers(UniformTopology(2, BytesPerSecond(1), Nanos(0)), 2, {});
  const DeviceMapping mapping = {{DeviceId(0), DeviceId(3), DeviceId(2)}};
  const std::vector<HostUse> uses = HostUseOfServers(parking, steps, two, mapping);
  EXPECT_EQ(uses, (std::vector<HostUse>{{.parked = Bytes(1000)},
                                        {.parked = Bytes(124), .steps = Bytes(1250)}}));
  EXPECT_EQ(FullestHost(uses), uses[1]);
  // Without a map workers are on devices by their numbers.
  EXPECT_EQ(HostUseOfServers(parking, steps, two, {})[0],
            (HostUse{.parked = Bytes(1024), .steps = Bytes(300)}));
  // Of one machine it is all.
  EXPECT_EQ(HostUseOfServers(parking, steps, {}, mapping), std::vector{HostUseOf(parking, steps)});
}

}  // namespace
}  // namespace siphon
