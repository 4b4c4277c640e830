// The launcher at the end of a generated file, without CUDA: what it would launch is printed. test_launcher.sh turns
// each KERNEL<<<...>>>(...) into LAUNCH("KERNEL", ...) and gives the text as LAUNCHER_TEXT.
#include <cstddef>
#include <cstdint>
#include <cstdio>

struct ng_bf16 {
    uint16_t bits;
};
typedef long long ng_i64;
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorInvalidConfiguration = 9 };
static cudaError_t cudaGetLastError() { return cudaSuccess; }

static char *base() { return (char *)4096; }
static void show(ng_i64 size) { std::printf(" %lld", size); }
static void show(float scalar) { std::printf(" %g", (double)scalar); }
static void show(const void *pointer) { std::printf(" +%d", (int)((const char *)pointer - base())); }

template <typename... Arguments>
static void LAUNCH(const char *kernel, unsigned blocks, int threads, int shared, cudaStream_t stream,
                   Arguments... arguments) {
    std::printf("%s %u %d %d %s:", kernel, blocks, threads, shared, stream == base() ? "stream" : "?");
    (show(arguments), ...);
    std::printf("\n");
}

namespace sample_kernels {}
#include LAUNCHER_TEXT

// y = x * rsqrt(mean(x * x) + eps) * w + r over M rows, h in place of r
static void launch(int64_t rows, int x, int r, int w, int y, int h) {
    const int status = sample_launch(base() + x, base() + r, base() + w, base() + y, base() + h, rows, 0.5f, nullptr, 0,
                                     base());
    if (status != cudaSuccess) std::printf("status %d\n", status);
}

int main() {
    std::printf("workspace %zu\n", sample_workspace_bytes(5));
    launch(17, 0, 64, 128, 192, 256);
    launch(16, 0, 64, 128, 192, 256);
    launch(1, 8, 64, 128, 192, 256);
    launch(1, 0, 72, 128, 192, 256);
    launch(1, 0, 64, 136, 192, 256);
    launch(1, 0, 64, 128, 200, 256);
    launch(1, 0, 64, 128, 192, 264);
    launch(0, 0, 64, 128, 192, 256);
    launch(-1, 0, 64, 128, 192, 256);
    launch((int64_t)1 << 40, 0, 64, 128, 192, 256);
    return 0;
}
