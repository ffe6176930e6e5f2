#include "launch/run/parking/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "launch/process/machine_memory.h"
#include "launch/run/parking/locked_memory.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct HostUseName {
  MemoryKind kind;
  absl::string_view name;
};
constexpr HostUseName kNames[] = {{kParked, "parked tensors"},
                                  {kHostSteps, "optimizer steps"},
                                  {kDriveBuffers, "buffers of drives"},
                                  {kCarried, "state on its way to another plan"}};

// "parked tensors 3.00 MiB, optimizer steps 1.20 MiB"
std::string Taken(const MemoryByKind& used) {
  std::vector<std::string> parts;
  for (const HostUseName& use : kNames) {
    if (used[use.kind] == Bytes(0)) continue;
    parts.push_back(absl::StrCat(use.name, " ", FormatBytes(used[use.kind])));
  }
  return parts.empty() ? "nothing" : absl::StrJoin(parts, ", ");
}

absl::string_view NameOfUse(MemoryKind kind) {
  for (const HostUseName& use : kNames) {
    if (use.kind == kind) return use.name;
  }
  return MemoryKindName(kind);
}

absl::Status Exhausted(Bytes bytes, const MemoryLedger& books, MemoryKind kind) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "host memory exhausted: ", NameOfUse(kind), " need ", FormatBytes(bytes), ", and of ",
      FormatBytes(books.capacity()), " all workers together have taken ", Taken(books.UsedByKind()),
      "; a larger memory.host_capacity, where the machine has it, would do"));
}

absl::Status NotToBeHad(size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("host memory for swapping: ", FormatBytes(Bytes(static_cast<int64_t>(bytes))),
                   " are not to be had: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<HostClaim> HostClaim::Take(Bytes bytes, MemoryLedger* books, MemoryKind kind) {
  HostClaim claim(books, kind);
  SIPHON_RETURN_IF_ERROR(claim.Add(bytes));
  return claim;
}

absl::Status HostClaim::Add(Bytes bytes) {
  if (books_ != nullptr && !books_->Take(bytes, kind_)) return Exhausted(bytes, *books_, kind_);
  bytes_ += bytes;
  return absl::OkStatus();
}

void HostClaim::Remove(Bytes bytes) {
  if (books_ != nullptr) books_->Give(bytes, kind_);
  bytes_ -= bytes;
}

HostClaim::HostClaim(HostClaim&& other) noexcept
    : books_(other.books_), kind_(other.kind_), bytes_(std::exchange(other.bytes_, Bytes(0))) {}

HostClaim& HostClaim::operator=(HostClaim&& other) noexcept {
  std::swap(books_, other.books_);
  std::swap(kind_, other.kind_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostClaim::~HostClaim() {
  if (books_ != nullptr) books_->Give(bytes_, kind_);
}

absl::StatusOr<HostMapping> HostMapping::Make(Bytes bytes) {
  return Make(bytes, /*books=*/nullptr, kParked);
}

absl::StatusOr<HostMapping> HostMapping::Make(Bytes bytes, MemoryLedger* books, MemoryKind kind,
                                              const NumaPlace* place, const CudaModule* locks) {
  HostMapping mapping;
  mapping.place_ = place;
  mapping.locks_ = locks;
  SIPHON_ASSIGN_OR_RETURN(mapping.claim_, HostClaim::Take(Bytes(0), books, kind));
  SIPHON_RETURN_IF_ERROR(mapping.Grow(bytes));
  return mapping;
}

absl::StatusOr<HostMapping> HostMapping::MakeOnDrive(Bytes bytes, NvmeFileOptions file,
                                                     const NumaPlace* place) {
  HostMapping mapping;
  mapping.place_ = place;
  mapping.drive_ = std::move(file);
  SIPHON_RETURN_IF_ERROR(mapping.Grow(bytes));
  return mapping;
}

absl::Status HostMapping::Grow(Bytes bytes) {
  const Bytes before(static_cast<int64_t>(bytes_.size()));
  if (bytes <= before) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(claim_.Add(bytes - before));
  const auto size = static_cast<size_t>(bytes.value);
  const absl::Status mapped = locks_ != nullptr    ? LockMore(bytes)
                              : drive_.has_value() ? MapFile(size)
                                                   : MapMore(size);
  if (!mapped.ok()) claim_.Remove(bytes - before);
  return mapped;
}

absl::Status HostMapping::MapMore(size_t size) {
  const size_t before = bytes_.size();
  void* const begin =
      before == 0 ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  : mremap(bytes_.data(), before, size, MREMAP_MAYMOVE);
  if (begin == MAP_FAILED) return NotToBeHad(size);
  bytes_ = absl::Span<std::byte>(static_cast<std::byte*>(begin), size);
  const absl::Span<std::byte> more = bytes_.subspan(before);
  if (place_ != nullptr) place_->Place(more);
  // There from now on, and not only when it is first used.
  std::memset(more.data(), 0, more.size());
  return absl::OkStatus();
}

// Into a file of its own, since one file does not grow where its drive has no room for more.
absl::Status HostMapping::MapFile(size_t size) {
  NvmeFileOptions options = *drive_;
  options.bytes = Bytes(static_cast<int64_t>(size));
  options.direct = NvmeFileOptions::Direct::kNever;
  // The mapping keeps it.
  SIPHON_ASSIGN_OR_RETURN(const NvmeFile file, NvmeFile::Make(options));
  void* const begin = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (begin == MAP_FAILED) return NotToBeHad(size);
  const absl::Span<std::byte> mapped(static_cast<std::byte*>(begin), size);
  if (place_ != nullptr) place_->Place(mapped);
  if (!bytes_.empty()) {
    std::memcpy(mapped.data(), bytes_.data(), bytes_.size());
    munmap(bytes_.data(), bytes_.size());
  }
  bytes_ = mapped;
  return absl::OkStatus();
}

absl::Status HostMapping::LockMore(Bytes bytes) {
  if (pool_ != nullptr) {
    SIPHON_ASSIGN_OR_RETURN(bytes_, pool_->Enlarge(bytes));
    return absl::OkStatus();
  }
  const Bytes on_books = claim_.capacity();
  const Bytes most = LockedAtMost(MachineMemory());
  SIPHON_ASSIGN_OR_RETURN(
      pool_,
      locks_->MakePinnedPool({.bytes = bytes,
                              .cap = on_books > Bytes(0) ? std::min(on_books, most) : most,
                              .numa_node = place_ != nullptr ? place_->node() : std::nullopt}));
  SIPHON_ASSIGN_OR_RETURN(bytes_, pool_->Take(bytes));
  return absl::OkStatus();
}

HostMapping::HostMapping(HostMapping&& other) noexcept
    : claim_(std::move(other.claim_)),
      place_(other.place_),
      locks_(other.locks_),
      drive_(std::move(other.drive_)),
      pool_(std::move(other.pool_)),
      bytes_(std::exchange(other.bytes_, absl::Span<std::byte>())) {}

HostMapping& HostMapping::operator=(HostMapping&& other) noexcept {
  std::swap(claim_, other.claim_);
  std::swap(place_, other.place_);
  std::swap(locks_, other.locks_);
  std::swap(drive_, other.drive_);
  std::swap(pool_, other.pool_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void HostMapping::Leave() {
  static_cast<void>(pool_.release());
  bytes_ = {};
}

HostMapping::~HostMapping() {
  if (!bytes_.empty() && pool_ == nullptr) munmap(bytes_.data(), bytes_.size());
}

}  // namespace siphon
