#include "planner/common_headers.h"
