// All nodes besides the AGP.

#pragma once

#include "anchored.hpp"
#include "around.hpp"
#include "bank.hpp"
#include "bounded.hpp"
#include "calibrated.hpp"
#include "carry.hpp"
#include "credible.hpp"
#include "guarded.hpp"
#include "lagged.hpp"
#include "members.hpp"
#include "standardize.hpp"
#include "watched.hpp"
#include "within.hpp"
