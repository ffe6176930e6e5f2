#include "tests/support/fake_cuda/other_fakes.h"

#include "tests/support/fake_cuda/board.h"
#include "tests/support/fake_cuda/memory.h"

using siphon::fake_cuda::AddressBook;
using siphon::fake_cuda::Board;
using siphon::fake_cuda::Place;

extern "C" {

int siphon_fake_cuda_find(const void* address, size_t bytes, siphon_fake_cuda_place* place) {
  const Place found = AddressBook::The().Find(address, bytes);
  if (found.kind != Place::Kind::kDevice || found.error != cudaSuccess) return -1;
  *place = {
      .device = found.device, .serial = found.serial, .offset = found.offset, .real = found.real};
  return 0;
}

int64_t siphon_fake_cuda_take(int device, int64_t bytes) {
  const auto entry = Board::The().Take(device, static_cast<size_t>(bytes), Board::Use::kNothing);
  return entry.has_value() ? entry->serial : 0;
}

void siphon_fake_cuda_give_back(int64_t serial) { Board::The().GiveBack(serial); }

uint64_t siphon_fake_cuda_host() { return Board::Host(); }

}  // extern "C"
