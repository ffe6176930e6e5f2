#include "launch/mpi_world.h"
