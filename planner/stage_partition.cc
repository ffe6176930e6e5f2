#include "planner/stage_partition.h"
