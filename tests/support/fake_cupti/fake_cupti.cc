#include "tests/support/fake_cupti/fake_cupti.h"

#include <cupti.h>

#include <cstring>
#include <deque>
#include <set>
#include <vector>

namespace {

// In a buffer each record stands behind its length.
constexpr size_t kAlignment = 8;

struct Fake {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::set<int> enabled;
  std::deque<std::vector<uint8_t>> records;
  size_t most = 0;
};
Fake& TheFake() {
  static auto* const fake = new Fake();
  return *fake;
}

size_t RoundedUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// What is wanted goes into the buffer, as far as it fits.
size_t Fill(uint8_t* buffer, size_t size) {
  Fake& fake = TheFake();
  size_t filled = 0;
  for (size_t count = 0; !fake.records.empty() && (fake.most == 0 || count < fake.most); ++count) {
    const std::vector<uint8_t>& record = fake.records.front();
    const uint64_t length = RoundedUp(record.size());
    if (filled + sizeof(length) + length > size) break;
    std::memcpy(buffer + filled, &length, sizeof(length));
    std::memcpy(buffer + filled + sizeof(length), record.data(), record.size());
    filled += sizeof(length) + length;
    fake.records.pop_front();
  }
  return filled;
}

}  // namespace

extern "C" {

void siphon_fake_cupti_add(const void* record, size_t bytes) {
  const auto* const begin = static_cast<const uint8_t*>(record);
  TheFake().records.emplace_back(begin, begin + bytes);
}
int siphon_fake_cupti_enabled(int kind) { return TheFake().enabled.count(kind) > 0 ? 1 : 0; }
void siphon_fake_cupti_limit(size_t records) { TheFake().most = records; }

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  Fake& fake = TheFake();
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (fake.request != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  fake.request = request;
  fake.complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  TheFake().enabled.insert(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "the fake's";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
  Fake& fake = TheFake();
  while (!fake.records.empty()) {
    uint8_t* buffer = nullptr;
    size_t size = 0;
    size_t most = 0;
    fake.request(&buffer, &size, &most);
    if (buffer == nullptr) return CUPTI_ERROR_OUT_OF_MEMORY;
    const size_t filled = Fill(buffer, size);
    fake.complete(nullptr, 0, buffer, size, filled);
    if (filled == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* next = buffer;
  if (*record != nullptr) {
    uint8_t* const last = reinterpret_cast<uint8_t*>(*record);
    uint64_t length = 0;
    std::memcpy(&length, last - sizeof(length), sizeof(length));
    next = last + length;
  }
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next + sizeof(uint64_t));
  return CUPTI_SUCCESS;
}

}  // extern "C"
