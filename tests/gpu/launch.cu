// Launchers whose kernels ask for more than pointers and sizes: scalars of narrow dtypes, which a caller gives as any
// number, and more shared memory than a launch has without asking. run.sh writes both files.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "narrow_scalars.cu"
#include "shared.cu"

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

static void shared() { // y: the sum of the variances of x * 2.5, x * 3.5, ...
    const int64_t rows = 3, columns = 5000;
    std::vector<double> x(rows * columns), y(rows);
    for (size_t i = 0; i < x.size(); i++) x[i] = double(i * 7919 % 1000) / 500 - 1;
    double *in = on_device(x), *out = on_device(y), worst = 0;
    int error = shared_launch(in, out, rows, columns, nullptr, 0, nullptr);
    if (!error) error = cudaMemcpy(y.data(), out, rows * sizeof(double), cudaMemcpyDeviceToHost);
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, squares = 0, factors = 0;
        for (int64_t c = 0; c < columns; c++) mean += x[r * columns + c] / columns;
        for (int64_t c = 0; c < columns; c++) squares += std::pow(x[r * columns + c] - mean, 2);
        for (int i = 0; i < 45; i++) factors += (i + 2.5) * (i + 2.5);
        worst = std::fmax(worst, std::fabs(y[r] / (squares / (columns - 1) * factors) - 1));
    }
    says("57600 bytes of shared memory", error, worst, 1e-12);
}

int main() {
    narrow();
    shared();
    return failed != 0;
}
