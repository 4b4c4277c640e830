// Calls the launcher that stands at the end of a generated file. From the repository's root:
//
//     build/normgen gen examples/rms_norm.yaml -D N=1024 -D E=f32 -o build/rms_norm.cu
//     nvcc -fmad=false -arch=native -Ibuild examples/launch.cu -o build/launch && build/launch
#include <cmath>
#include <cstdio>
#include <vector>

#include "rms_norm.cu"

int main() {
    const int64_t rows = 37, columns = 1024;
    std::vector<float> x(rows * columns), w(columns, 2.0f), y(rows * columns);
    for (size_t i = 0; i < x.size(); i++) x[i] = float(i * 7919 % 1000) / 500 - 1;
    float *buffers[3];
    const size_t bytes[3] = {x.size() * sizeof(float), w.size() * sizeof(float), y.size() * sizeof(float)};
    for (int i = 0; i < 3; i++) cudaMalloc((void **)&buffers[i], bytes[i]);
    cudaMemcpy(buffers[0], x.data(), bytes[0], cudaMemcpyHostToDevice);
    cudaMemcpy(buffers[1], w.data(), bytes[1], cudaMemcpyHostToDevice);
    int error = rms_norm_launch(buffers[0], buffers[1], buffers[2], rows, 1e-6f, nullptr, 0, nullptr);
    if (!error) error = cudaMemcpy(y.data(), buffers[2], bytes[2], cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t c = 0; c < columns; c++) squares += double(x[r * columns + c]) * x[r * columns + c];
        double scale = 2 / std::sqrt(squares / columns + 1e-6);
        for (int64_t c = 0; c < columns; c++)
            worst = std::fmax(worst, std::fabs(y[r * columns + c] - x[r * columns + c] * scale));
    }
    std::printf("launch: error %d, largest difference %g\n", error, worst);
    return error || !(worst < 1e-5);
}
