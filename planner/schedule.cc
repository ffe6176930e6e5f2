#include "planner/schedule.h"
