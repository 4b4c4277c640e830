// A launcher's scalars of narrow dtypes, which a caller gives as any number. run.sh writes narrow_scalars.cu.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "narrow_scalars.cu"

static int failed;

template <typename T>
static T *on_device(const std::vector<T> &from) {
    void *to = nullptr;
    cudaMalloc(&to, from.size() * sizeof(T));
    cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
    return (T *)to;
}

static void says(const char *what, int error, double worst, double most) {
    if (!error) error = cudaDeviceSynchronize();
    const bool right = !error && worst <= most;
    std::printf("%s: error %d, largest difference %g: %s\n", what, error, worst, right ? "right" : "FAILED");
    failed += !right;
}

struct Narrow {
    float f, a, h;
    int64_t k, u, m, l, t;
};

static std::vector<float> launch_narrow(const std::vector<float> &x, int64_t rows, const Narrow &s, int *error) {
    std::vector<float> result(x.size() + rows + 40);
    float *in = on_device(x), *out = on_device(result);
    const size_t bytes = narrow_scalars_workspace_bytes(rows);
    char *workspace = on_device(std::vector<char>(bytes + 1));
    *error = narrow_scalars_launch(in, out, out + x.size(), out + x.size() + rows, rows, s.f, s.a, s.h, s.k, s.u, s.m, s.l,
                                   s.t, workspace, bytes, nullptr);
    if (!*error) *error = cudaMemcpy(result.data(), out, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
    return result;
}

static void narrow() {
    const int64_t rows = 37;
    std::vector<float> x(rows * 40);
    for (size_t i = 0; i < x.size(); i++) x[i] = float(i * 7919 % 1000) / 500 - 1;
    const Narrow given = {0.3f, 0.1f, 0.1f, 300, -1, ((int64_t)1 << 32) - 5, 9, 1};
    const Narrow taken = {0.3f, 0.10009765625f, 0.0999755859375f, 44, 255, -5, 9, 1};
    int error, other;
    const std::vector<float> a = launch_narrow(x, rows, given, &error), b = launch_narrow(x, rows, taken, &other);
    double worst = std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) ? INFINITY : 0;
    says("narrow scalars as rounded before", error ? error : other, worst, 0);
    worst = 0;
    for (size_t i = 0; i < x.size(); i++)
        worst = std::fmax(worst, std::fabs(a[i] - (x[i] * 0.10009765625 + 44 - 5 * (double)0.3f)));
    says("narrow scalars as written out", error, worst, 1e-5);
}

int main() {
    narrow();
    return failed != 0;
}
