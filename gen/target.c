/* In: an architecture's number. Out: the numbers of the device that normgen plans for by default on it.
 * Left alone: the device that is present; a cuda device fills a Target of its own. */
#include "gen/gen.h"

/* H200: measured copy and capacities (reference device of every default). Others: the vendor's published numbers, the
 * copy rate at 89 % of the data sheet's, as it is on H200. L2 rates are for the cost model only: bytes an SM a clock
 * (64 on sm_8x consumer parts, 128 elsewhere would be the ports' limit; about half of it is reached). */
static const Target targets[] = {
    {80, 108, 164 * 1024, 163 * 1024, 65536, (int64_t)40 << 20, 1800, 4800, "NVIDIA A100"},
    {86, 84, 100 * 1024, 99 * 1024, 65536, (int64_t)6 << 20, 830, 2500, "NVIDIA A10"},
    {89, 142, 100 * 1024, 99 * 1024, 65536, (int64_t)96 << 20, 770, 4500, "NVIDIA L40S"},
    {90, 132, 228 * 1024, 227 * 1024, 65536, (int64_t)60 << 20, 4270, 7500, "NVIDIA H200"},
    {100, 148, 228 * 1024, 227 * 1024, 65536, (int64_t)126 << 20, 7000, 12000, "NVIDIA B200"},
    {120, 188, 100 * 1024, 99 * 1024, 65536, (int64_t)128 << 20, 1590, 9000, "NVIDIA RTX PRO 6000"},
};

const Target *gen_target(int arch) {
    for (uint32_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (targets[i].arch == arch) return &targets[i];
    return NULL;
}
