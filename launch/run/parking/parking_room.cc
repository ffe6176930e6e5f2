#include "launch/run/parking/parking_room.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "launch/output/start_log.h"
#include "launch/plan_job/parking_region.h"
#include "launch/process/machine_memory.h"
#include "launch/profile/host_use.h"
#include "launch/run/parking/locked_memory.h"
#include "launch/run/parking/parking_routes.h"
#include "launch/run/parking/topology_ways.h"
#include "pipeline/transport/paced_transport.h"
#include "planner/round_up.h"
#include "planner/status.h"
#include "swap/device/cpu_backend.h"

namespace siphon {
namespace {

constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};
constexpr char kDriveRefuses[] = "siphon/drive_refuses";
constexpr ParkingPlace kDrive{Placement::kNvmeSwap, DeviceId(0)};

Bytes AtCacheLine(Bytes bytes) { return RoundUp(bytes, kCacheLine); }

// What its files on a drive begin with, while they have names.
std::string FileNameOf(WorkerId me) {
  return absl::StrCat("siphon-", getpid(), "-worker-", me.value);
}

DeviceId DeviceOf(const PreparedJob& prepared, WorkerId worker) {
  const std::vector<DeviceId>& devices = prepared.plan_text.mapping.device_of_worker;
  return devices.empty() ? DeviceId(worker.value) : devices[worker.value];
}

const std::vector<WorkerParking>& ParkingAtMost(const PreparedJob& prepared) {
  return prepared.second.stripes.empty() ? prepared.parking : prepared.second.at_most;
}

// The places of a worker, the host first, which has a link even where nothing goes there.
std::vector<ParkingPlace> PlacesOf(const WorkerParking& parking) {
  std::vector<ParkingPlace> places = {kHost};
  for (const auto& [place, bytes] : parking.bytes) {
    if (place != kHost) places.push_back(place);
  }
  return places;
}

// By whose rates the links of workers are planned: those that they are held to, or those of the
// devices. Null: nothing is known of them, as of devices that several workers share.
const Topology* RatesOf(const PreparedJob& prepared) {
  if (prepared.throttled.has_value()) return &*prepared.throttled;
  const Topology& devices = prepared.plan_text.topology;
  if (prepared.job.pipeline.backend != "cuda" || prepared.share_gpu) return nullptr;
  return devices.devices.empty() ? nullptr : &devices;
}

// The links of a worker, with what they share where `shared` has memory for that.
struct OwnLinks {
  std::vector<LinkState> links;
  CpuBackendOptions options;
};

OwnLinks LinksOf(const PreparedJob& prepared, DeviceId owner, const WorkerParking& parking,
                 absl::Span<std::byte> shared) {
  OwnLinks own;
  for (const ParkingPlace& place : PlacesOf(parking)) own.links.push_back({.place = place});
  own.options.links.resize(own.links.size());
  own.options.chunk = prepared.job.memory.chunk;
  const Topology* const rates = RatesOf(prepared);
  if (rates == nullptr) return own;
  const TopologyWays ways(*rates);
  std::vector<TwoRoutes> routes(own.links.size());
  for (size_t link = 0; link < own.links.size(); ++link) {
    const std::optional<TwoRoutes> found = RoutesTo(ways, owner, own.links[link].place);
    if (!found.has_value()) continue;
    routes[link] = *found;
    own.links[link].planned = PlannedRate(ways, owner, own.links[link].place, *found,
                                          static_cast<int>(own.links.size()) - 1);
    if (!prepared.throttled.has_value()) continue;  // a device's links are as fast as they are
    // Without the ways, one rate for both directions.
    const BytesPerSecond rate = shared.empty()
                                    ? SlowerRate(found->out.speed.rate, found->in.speed.rate)
                                    : std::max(found->out.speed.rate, found->in.speed.rate);
    own.options.links[link] = {rate, own.links[link].planned.latency};
  }
  if (shared.empty()) return own;
  own.options.book = [routes, taken = SharedWays(ways.ways(), shared)](
                         CopyLane lane, CopyLinkId link, Bytes bytes, Nanos begin) {
    const TwoRoutes& both = routes[static_cast<size_t>(link.value)];
    return taken.Book(lane == CopyLane::kOut ? both.out.over : both.in.over, bytes, begin);
  };
  return own;
}

std::map<ParkingPlace, ParkingMemory> WithHostMemory(std::map<ParkingPlace, ParkingMemory> memory,
                                                     const HostMapping& host) {
  if (!host.bytes().empty()) memory[kHost] = {host.bytes(), CopyLinkId(0)};
  return memory;
}

CopyLinkId LinkOf(const std::vector<LinkState>& links, const ParkingPlace& place) {
  const auto found = std::find_if(links.begin(), links.end(),
                                  [&](const LinkState& link) { return link.place == place; });
  return CopyLinkId(static_cast<int>(found - links.begin()));
}

bool IsFirstOnDrive(const std::vector<WorkerParking>& workers, WorkerId me) {
  for (int worker = 0; worker < me.value; ++worker) {
    if (workers[worker].bytes.contains(kDrive)) return false;
  }
  return true;
}

// A worker's place on its drive, and the buffers that it has on the host for that.
struct DriveRoom {
  std::unique_ptr<HostMapping> buffers;
  std::unique_ptr<NvmeParking> drive;  // null: it parks nothing there
};

// Of all workers the first says what is worth saying.
absl::StatusOr<DriveRoom> MakeDrive(const PreparedJob& prepared, const WorkerParking& parking,
                                    const RoomRegion& region, WorkerId me) {
  DriveRoom room;
  const auto bytes = parking.bytes.find(kDrive);
  if (bytes == parking.bytes.end()) return room;
  SIPHON_ASSIGN_OR_RETURN(HostMapping buffers,
                          HostMapping::Make(NvmeBufferBytes(bytes->second), region.host,
                                            kDriveBuffers, region.numa, LocksOf(region.device)));
  room.buffers = std::make_unique<HostMapping>(std::move(buffers));
  NvmeMoverOptions mover = MoverFor(bytes->second);
  mover.memory = room.buffers->bytes();
  mover.keep_memory = [kept = room.buffers.get()] { kept->Leave(); };
  if (region.device != nullptr) {
    mover.copy = [cuda = region.device->cuda, device = region.device->torch->device().index](
                     void* to, const void* from, size_t size) {
      return cuda->CopyNow(device, to, from, size);
    };
  }
  const std::string directory = DriveDirectory(prepared.job);
  absl::StatusOr<std::unique_ptr<NvmeParking>> made = NvmeParking::Make(
      {.file = {.directory = directory, .name = FileNameOf(me), .bytes = bytes->second},
       .mover = std::move(mover)});
  if (!made.ok()) return RefusedByDrive(made.status());
  room.drive = *std::move(made);
  if (!room.drive->file().direct() && IsFirstOnDrive(region.parking, me)) {
    LogWarning(absl::StrCat(directory,
                            " has no O_DIRECT: what is parked there takes memory of the machine as "
                            "well, in its page cache"));
  }
  return room;
}

SwapCheck CheckOf(const JobConfig& job) {
  if (job.memory.check == "off") return SwapCheck::kOff;
  return job.memory.check == "full" ? SwapCheck::kFull : SwapCheck::kCheap;
}

// Of a CUDA worker: streams on its device, in the order of what it computes.
absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeDeviceBackend(const PreparedJob& prepared,
                                                                 const WorkerDevice& device,
                                                                 OwnLinks own) {
  const bool each = prepared.plan_text.topology.copy_engines == CopyEngines::kOnePerPeer;
  const bool drives = own.options.drive.has_value();
  const int lenders = static_cast<int>(own.links.size()) - (drives ? 2 : 1);
  CudaBackendOptions options =
      OptionsForLenders(device.torch->device().index, lenders,
                        each ? PeerEngines::kOneEach : PeerEngines::kOneForAll);
  if (drives) {  // has no way
    const int link = own.options.drive->link.value;
    options.way_of_link.insert(options.way_of_link.begin() + link, -1);
  }
  options.drive = std::move(own.options.drive);
  options.before_chunk = std::move(own.options.before_chunk);
  options.work_stream = device.torch->work_stream();
  options.checksums = CheckOf(prepared.job) == SwapCheck::kFull;
  return device.cuda->MakeBackend(options);
}

}  // namespace

SharedRegion LayOutShared(const PreparedJob& prepared) {
  // CUDA workers lend memory of their devices (DeviceLending).
  const bool on_devices = prepared.job.pipeline.backend == "cuda";
  const Bytes lent = on_devices ? Bytes(0) : LayOutRegion(ParkingAtMost(prepared)).bytes;
  SharedRegion region{.lent = lent, .bytes = lent};
  if (prepared.throttled.has_value()) {
    region.ways = AtCacheLine(lent);
    region.ways_bytes = SharedWays::BytesFor(TopologyWays(*prepared.throttled).ways().size());
    region.posts = region.ways + region.ways_bytes;
    region.bytes = region.posts + MessagePosts::BytesFor(WorkerCount(prepared.plan.training));
  }
  if (prepared.plan.memory.stages.empty()) return region;
  region.books = AtCacheLine(region.bytes);
  region.books_bytes = MemoryLedger::SharedBytes();
  region.bytes = region.books + region.books_bytes;
  return region;
}

Bytes ParkingRegionBytes(const PreparedJob& prepared) { return LayOutShared(prepared).bytes; }

Bytes LentByWorker(const PreparedJob& prepared, WorkerId worker) {
  return LentBytes(prepared.parking, DeviceOf(prepared, worker));
}

Bytes HostCapacityOf(const PreparedJob& prepared) {
  const Bytes planned = prepared.plan_text.topology.host_memory;
  const Bytes of_job = planned > Bytes(0) ? planned : prepared.job.memory.host_capacity;
  if (prepared.job.pipeline.backend != "cuda") return of_job;
  // All of it is locked.
  const Bytes lockable = LockedAtMost(MachineMemory());
  return of_job > Bytes(0) ? std::min(of_job, lockable) : lockable;
}

std::string DriveDirectory(const JobConfig& job) {
  return job.memory.nvme_directory.empty() ? job.output.directory : job.memory.nvme_directory;
}

absl::Status CheckDriveRoom(const PreparedJob& prepared) {
  const Bytes bytes = DriveBytes(prepared.parking);
  const Bytes second =
      absl::c_accumulate(HostRoomsForDrives({prepared.plan.memory, prepared.plan.training},
                                            prepared.parking, prepared.host_steps),
                         Bytes(0));
  const std::string directory = DriveDirectory(prepared.job);
  if (bytes > Bytes(0)) {
    const absl::Status room = CheckRoomOnDrive(directory, bytes);
    if (absl::IsResourceExhausted(room)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("memory.strategy ", prepared.job.memory.strategy, ": ", room.message(),
                       "; free some, or name another drive in memory.nvme_directory"));
    }
    SIPHON_RETURN_IF_ERROR(room);
  }
  if (second == Bytes(0)) return absl::OkStatus();
  const absl::Status room = CheckRoomOnDrive(directory, bytes + second);
  if (!absl::IsResourceExhausted(room)) return room;
  LogWarning(
      absl::StrCat("the second choice of optimizer steps on the host, should it be full, is a "
                   "drive: ",
                   room.message()));
  return absl::OkStatus();
}

absl::StatusOr<HostMapping> MakeHostRoomOnDrive(const PreparedJob& prepared, WorkerId me,
                                                Bytes bytes, const NumaPlace* numa) {
  auto made = HostMapping::MakeOnDrive(
      bytes, {.directory = DriveDirectory(prepared.job), .name = FileNameOf(me), .bytes = bytes},
      numa);
  if (!made.ok()) return RefusedByDrive(made.status());
  return made;
}

absl::Status RefusedByDrive(absl::Status status) {
  if (!status.ok()) status.SetPayload(kDriveRefuses, absl::Cord());
  return status;
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || status.GetPayload(kDriveRefuses).has_value();
}

Placement RefusingTier(const absl::Status& status) {
  return status.GetPayload(kDriveRefuses).has_value() ? Placement::kNvmeSwap : Placement::kHostSwap;
}

RoomRegion RegionOf(const PreparedJob& prepared, absl::Span<std::byte> shared) {
  const SharedRegion layout = LayOutShared(prepared);
  RoomRegion region{.parking = ParkingAtMost(prepared)};
  if (shared.empty()) return region;
  region.lent = shared.first(layout.lent.value);
  region.ways = shared.subspan(layout.ways.value, layout.ways_bytes.value);
  return region;
}

absl::Span<std::byte> HostBooksIn(const PreparedJob& prepared, absl::Span<std::byte> shared) {
  const SharedRegion layout = LayOutShared(prepared);
  if (shared.empty()) return {};
  return shared.subspan(layout.books.value, layout.books_bytes.value);
}

absl::StatusOr<std::unique_ptr<ParkingRoom>> ParkingRoom::Make(
    const PreparedJob& prepared, WorkerId me, const WorkerParking& parking,
    const RoomRegion& region, const std::function<absl::Status()>& at_chunk) {
  // Of the plan, so that there is a link to each place that any second choice may be at.
  const WorkerParking& planned = region.parking[me.value];
  OwnLinks own = LinksOf(prepared, DeviceOf(prepared, me), planned, region.ways);
  if (at_chunk != nullptr) {
    own.options.before_chunk = [at_chunk](const CopyChunk&) { return at_chunk(); };
  }
  std::map<ParkingPlace, ParkingMemory> memory;
  HostMapping host;
  if (const auto on_host = parking.bytes.find(kHost); on_host != parking.bytes.end()) {
    SIPHON_ASSIGN_OR_RETURN(
        host, parking.host_on_drive
                  ? MakeHostRoomOnDrive(prepared, me, on_host->second, region.numa)
                  : HostMapping::Make(on_host->second, region.host, kParked, region.numa,
                                      LocksOf(region.device)));
  }
  for (const ParkingRegion::Part& part : LayOutRegion(region.parking).parts) {
    if (part.owner != me) continue;
    const ParkingPlace place{Placement::kPeerSwap, part.lender};
    const absl::Span<std::byte> there =
        region.lending != nullptr ? region.lending->PartAt(part.lender)
                                  : region.lent.subspan(part.offset.value, part.bytes.value);
    memory[place] = {there, LinkOf(own.links, place)};
  }
  SIPHON_ASSIGN_OR_RETURN(DriveRoom on_drive, MakeDrive(prepared, parking, region, me));
  if (on_drive.drive != nullptr) {
    memory[kDrive] = {on_drive.drive->bytes(), LinkOf(own.links, kDrive)};
    const auto move = [to = on_drive.drive.get()](CopyLane lane, absl::Span<const CopyPart> parts) {
      return to->Move(lane, parts);
    };
    own.options.drive = DriveLink{memory[kDrive].link, move};
  }
  std::vector<LinkState> links = own.links;
  std::unique_ptr<DeviceBackend> backend;
  if (region.device != nullptr) {
    SIPHON_ASSIGN_OR_RETURN(backend, MakeDeviceBackend(prepared, *region.device, std::move(own)));
  } else {
    backend = std::make_unique<CpuBackend>(std::move(own.options));
  }
  return std::unique_ptr<ParkingRoom>(new ParkingRoom(
      std::move(host), std::move(on_drive.buffers), std::move(on_drive.drive), std::move(links),
      std::move(backend), parking, std::move(memory), CheckOf(prepared.job)));
}

ParkingRoom::ParkingRoom(HostMapping host, std::unique_ptr<HostMapping> buffers,
                         std::unique_ptr<NvmeParking> drive, std::vector<LinkState> links,
                         std::unique_ptr<DeviceBackend> backend, const WorkerParking& parking,
                         std::map<ParkingPlace, ParkingMemory> memory, SwapCheck check)
    : host_(std::move(host)),
      buffers_(std::move(buffers)),
      drive_(std::move(drive)),
      links_(std::move(links)),
      memory_(std::move(memory)),
      backend_(std::move(backend)),
      engine_(backend_.get(), parking, WithHostMemory(memory_, host_), check) {}

absl::Status ParkingRoom::Rehouse(const WorkerParking& parking) {
  const auto on_host = parking.bytes.find(kHost);
  if (on_host != parking.bytes.end()) SIPHON_RETURN_IF_ERROR(host_.Grow(on_host->second));
  return engine_.Rehouse(parking, WithHostMemory(memory_, host_));
}

std::vector<LinkState> ParkingRoom::TakeLinkUse() {
  std::vector<LinkState> links = links_;
  const std::vector<CopyLinkUse> uses = backend_->TakeUse();
  for (size_t link = 0; link < links.size(); ++link) links[link].use = uses[link];
  return links;
}

void ParkingRoom::SlowDown(const ParkingPlace& place, double factor) {
  for (size_t link = 0; link < links_.size(); ++link) {
    if (links_[link].place != place) continue;
    backend_->SlowDown(CopyLinkId(static_cast<int>(link)), factor);
  }
}

}  // namespace siphon
