#include "tests/test_headers.h"
