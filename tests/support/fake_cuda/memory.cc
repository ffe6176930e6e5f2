#include "tests/support/fake_cuda/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "tests/support/fake_cuda/board.h"
#include "tests/support/fake_cuda/state.h"

namespace siphon::fake_cuda {
namespace {

constexpr char kHandleMagic[8] = {'f', 'a', 'k', 'e', 'I', 'P', 'C', '1'};

// The bytes of an IPC handle.
struct HandleText {
  char magic[8];
  int64_t serial;
  int64_t bytes;
  int32_t pid;
  int32_t device;
  uint64_t host;
  char unused[24];
};
static_assert(sizeof(HandleText) == sizeof(cudaIpcMemHandle_t));

}  // namespace

AddressBook& AddressBook::The() {
  static auto* const book = new AddressBook();
  return *book;
}

char* AddressBook::Map(int64_t serial, size_t bytes) {
  const int file = open(Board::The().FileOf(serial).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const real = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return real == MAP_FAILED ? nullptr : static_cast<char*>(real);
}

void* AddressBook::Reserve(size_t bytes) {
  void* const reserved =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return reserved == MAP_FAILED ? nullptr : reserved;
}

cudaError_t AddressBook::Take(int device, size_t bytes, void** address) {
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::optional<Board::Entry> entry = Board::The().Take(device, bytes, Board::Use::kData);
  if (!entry.has_value()) return cudaErrorMemoryAllocation;
  char* const real = Map(entry->serial, bytes);
  void* const reserved = Reserve(bytes);
  if (real == nullptr || reserved == nullptr) return cudaErrorMemoryAllocation;
  const std::lock_guard lock(mutex_);
  devices_[reinterpret_cast<uintptr_t>(reserved)] = {
      .bytes = bytes, .device = device, .serial = entry->serial, .real = real};
  ++TheState().allocations;
  *address = reserved;
  return cudaSuccess;
}

cudaError_t AddressBook::Free(void* address) {
  if (address == nullptr) return cudaSuccess;
  const std::lock_guard lock(mutex_);
  const auto found = devices_.find(reinterpret_cast<uintptr_t>(address));
  if (found == devices_.end() || found->second.origin != Origin::kOwn) return cudaErrorInvalidValue;
  Range& range = found->second;
  range.origin = Origin::kGone;
  munmap(range.real, range.bytes);
  --TheState().allocations;
  const int64_t openers = Board::The().GiveBack(range.serial);
  if (openers > 0) {
    ++TheState().freed_while_opened;
    std::fprintf(stderr, "fake CUDA: %zu bytes of device %d are freed while %ld have them open\n",
                 range.bytes, range.device, static_cast<long>(openers));
  }
  return cudaSuccess;
}

cudaError_t AddressBook::Export(cudaIpcMemHandle_t* handle, const void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = Holder(address);
  if (found == devices_.end() || found->second.origin != Origin::kOwn) return cudaErrorInvalidValue;
  // Of the whole allocation, wherever in it the address is.
  HandleText text = {};
  std::memcpy(text.magic, kHandleMagic, sizeof(kHandleMagic));
  text.serial = found->second.serial;
  text.bytes = static_cast<int64_t>(found->second.bytes);
  text.pid = getpid();
  text.device = found->second.device;
  text.host = Board::Host();
  std::memcpy(handle, &text, sizeof(text));
  return cudaSuccess;
}

cudaError_t AddressBook::Open(const cudaIpcMemHandle_t& handle, void** address) {
  HandleText text;
  std::memcpy(&text, &handle, sizeof(text));
  const bool is_handle = std::memcmp(text.magic, kHandleMagic, sizeof(kHandleMagic)) == 0;
  if (!is_handle || text.host != Board::Host()) return cudaErrorInvalidValue;
  // Nobody opens what is his own: "invalid device context".
  if (text.pid == getpid()) return cudaErrorDeviceUninitialized;
  if (!AreTogether(CurrentDevice(), text.device)) return cudaErrorPeerAccessUnsupported;
  const std::lock_guard lock(mutex_);
  for (auto& [begin, range] : devices_) {
    if (range.origin != Origin::kOpened || range.serial != text.serial) continue;
    ++range.opened;
    *address = reinterpret_cast<void*>(begin);
    return cudaSuccess;
  }
  if (!Board::The().ChangeOpeners(text.serial, 1)) return cudaErrorInvalidValue;
  const auto bytes = static_cast<size_t>(text.bytes);
  char* const real = Map(text.serial, bytes);
  void* const reserved = Reserve(bytes);
  if (real == nullptr || reserved == nullptr) return cudaErrorMapBufferObjectFailed;
  devices_[reinterpret_cast<uintptr_t>(reserved)] = {.bytes = bytes,
                                                     .origin = Origin::kOpened,
                                                     .device = text.device,
                                                     .serial = text.serial,
                                                     .real = real,
                                                     .opened = 1};
  ++TheState().opened;
  *address = reserved;
  return cudaSuccess;
}

cudaError_t AddressBook::Close(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = devices_.find(reinterpret_cast<uintptr_t>(address));
  if (found == devices_.end() || found->second.origin != Origin::kOpened) {
    return cudaErrorInvalidValue;
  }
  Range& range = found->second;
  if (--range.opened > 0) return cudaSuccess;
  range.origin = Origin::kGone;
  munmap(range.real, range.bytes);
  --TheState().opened;
  Board::The().ChangeOpeners(range.serial, -1);
  return cudaSuccess;
}

cudaError_t AddressBook::Lock(void* address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (address == nullptr || bytes == 0) return cudaErrorInvalidValue;
  for (const auto& [other, length] : locked_) {
    if (begin < other + length && other < begin + bytes) {
      return cudaErrorHostMemoryAlreadyRegistered;
    }
  }
  locked_[begin] = bytes;
  const int64_t locked = TheState().locked += static_cast<int64_t>(bytes);
  TheState().most_locked = std::max(TheState().most_locked.load(), locked);
  return cudaSuccess;
}

cudaError_t AddressBook::Unlock(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = locked_.find(reinterpret_cast<uintptr_t>(address));
  if (found == locked_.end()) return cudaErrorHostMemoryNotRegistered;
  TheState().locked -= static_cast<int64_t>(found->second);
  locked_.erase(found);
  return cudaSuccess;
}

AddressBook::Ranges::const_iterator AddressBook::Holder(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto behind = devices_.upper_bound(at);
  if (behind == devices_.begin()) return devices_.end();
  const auto holder = std::prev(behind);
  return at < holder->first + holder->second.bytes ? holder : devices_.end();
}

Place AddressBook::Find(const void* address, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<uintptr_t>(address);
  Place place{.real = const_cast<char*>(static_cast<const char*>(address))};
  const auto holder = Holder(address);
  if (holder == devices_.end()) {
    const auto behind = locked_.upper_bound(at);
    const bool locked = behind != locked_.begin() &&
                        at + bytes <= std::prev(behind)->first + std::prev(behind)->second;
    if (locked) place.kind = Place::Kind::kLocked;
    return place;
  }
  const Range& range = holder->second;
  place.kind = Place::Kind::kDevice;
  place.device = range.device;
  place.real = range.real + (at - holder->first);
  place.serial = range.serial;
  place.offset = static_cast<int64_t>(at - holder->first);
  if (range.origin == Origin::kGone) {
    place.error = cudaErrorIllegalAddress;
  } else if (at + bytes > holder->first + range.bytes) {
    place.error = cudaErrorInvalidValue;
  }
  return place;
}

}  // namespace siphon::fake_cuda
