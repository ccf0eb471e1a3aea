// All nodes besides the AGP.

#pragma once

#include "anchored.hpp"
#include "around.hpp"
#include "bank.hpp"
#include "bounded.hpp"
#include "calibrated.hpp"
#include "credible.hpp"
#include "gaps.hpp"
#include "guarded.hpp"
#include "lagged.hpp"
#include "members.hpp"
#include "standardize.hpp"
#include "watched.hpp"
#include "within.hpp"
