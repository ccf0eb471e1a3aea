// Which of the builds this processor can run, asked by the instruction cpuid: what the compilers have for it differs.

#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace driftgp {

struct Processor {
    bool x86_v3 = false, x86_v4 = false;  // x86-64-v3: AVX2, FMA and their kin; x86-64-v4: AVX-512 F, BW, CD, DQ and VL
};

#if defined(__x86_64__)
inline Processor this_processor() {
    Processor found;
    unsigned a = 0, b = 0, c = 0, d = 0, basic = 0, more = 0, bits = 0, saved = 0;
    auto has = [](unsigned word, unsigned wanted) { return (word & wanted) == wanted; };
    if (!__get_cpuid(1, &a, &b, &basic, &d)) return found;
    if (!has(basic, bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C)) return found;
    if (!__get_cpuid(0x80000001, &a, &b, &more, &d) || !has(more, bit_LZCNT)) return found;
    if (!__get_cpuid_count(7, 0, &a, &bits, &c, &d)) return found;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));  // registers that the system keeps for each thread
    found.x86_v3 = has(saved, 0x06) && has(bits, bit_BMI | bit_AVX2 | bit_BMI2);
    found.x86_v4 = found.x86_v3 && has(saved, 0xe6) &&
                   has(bits, bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL);
    return found;
}
#else
inline Processor this_processor() { return {}; }
#endif

}  // namespace driftgp
