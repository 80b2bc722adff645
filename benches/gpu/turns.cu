// Three kernels of different watts, alone and in turns, with what NVML's energy counter says of them.
//
//   turns alone KERNEL SECONDS [TURN_MS]     one kernel (products, stream, chase; idle: none): watts by the counter
//   turns turns TURN_MS SECONDS              all three in turns: seconds of each, joules of all by the counter
//   turns square PERIOD_MS,... SECONDS       load switched on and off, each period for so many seconds (REST=SECONDS between)
//   turns kinds SECONDS                      the ways to launch: runtime, cudaLaunchKernelEx, graph, cooperative, streams
//
// TRACE=FILE writes what NVML's four sensors said, each millisecond; STEPS=FILE when the load was switched.
// Times are microseconds of CLOCK_REALTIME. Nothing of the card is set.

#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        cudaError_t status_ = (call);                                                                \
        if (status_ != cudaSuccess) {                                                                \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status_));                         \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

static double seconds(clockid_t clock = CLOCK_MONOTONIC) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

// ---------------------------------------------------------------------------------------------- NVML

struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency;
    int type, status;
    union {
        double f64;
        unsigned u32;
        unsigned long long u64;
    } value;
};

struct Nvml {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    void *device = nullptr;
    int (*energy)(void *, unsigned long long *) = nullptr;
    int (*power)(void *, unsigned *) = nullptr;
    int (*fields)(void *, int, FieldValue *) = nullptr;
    int (*clock)(void *, int, unsigned *) = nullptr;
    int (*temperature)(void *, int, unsigned *) = nullptr;

    template <typename F> void find(F &function, const char *name) {
        function = reinterpret_cast<F>(dlsym(library, name));
        if (!function) {
            fprintf(stderr, "NVML has no %s\n", name);
            exit(1);
        }
    }

    Nvml() {
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        int (*init)();
        int (*handle)(unsigned, void **);
        find(init, "nvmlInit_v2");
        find(handle, "nvmlDeviceGetHandleByIndex_v2");
        find(energy, "nvmlDeviceGetTotalEnergyConsumption");
        find(power, "nvmlDeviceGetPowerUsage");
        find(fields, "nvmlDeviceGetFieldValues");
        find(clock, "nvmlDeviceGetClockInfo");
        find(temperature, "nvmlDeviceGetTemperature");
        if (init() || handle(0, &device)) {
            fprintf(stderr, "NVML does not start\n");
            exit(1);
        }
    }

    double joules() {
        unsigned long long millijoules = 0;
        energy(device, &millijoules);
        return millijoules * 1e-3;
    }

    // The counter's next move: when, and what it says then.
    void move(double &time, double &joule) {
        double first = joules(), limit = seconds() + 0.5;
        do {
            time = seconds();
            joule = joules();
        } while (joule == first && time < limit);
    }

    void state(unsigned &megahertz, unsigned &celsius) {
        megahertz = celsius = 0;
        clock(device, 1, &megahertz);
        temperature(device, 0, &celsius);
    }
};

static Nvml *nvml;

struct Reading {
    double time[5];
    unsigned power, instant, average;
    int status[2];
    long long instant_time, average_time;
    unsigned long long energy;
};

static std::atomic<bool> stop_polling{false};
static std::vector<Reading> readings;

static unsigned field(unsigned id, int &status, long long &timestamp) {
    FieldValue value{};
    value.field = id;
    status = nvml->fields(nvml->device, 1, &value);
    if (!status) status = value.status;
    timestamp = value.timestamp;
    return value.value.u32;
}

static void poll() {
    readings.reserve(60000);
    while (!stop_polling) {
        Reading now{};
        now.time[0] = seconds(CLOCK_REALTIME);
        nvml->power(nvml->device, &now.power);
        now.time[1] = seconds(CLOCK_REALTIME);
        now.instant = field(186, now.status[0], now.instant_time);
        now.time[2] = seconds(CLOCK_REALTIME);
        now.average = field(185, now.status[1], now.average_time);
        now.time[3] = seconds(CLOCK_REALTIME);
        // The counter takes milliseconds to answer where the others take microseconds.
        if (readings.size() % 4 == 0) {
            nvml->energy(nvml->device, &now.energy);
        } else {
            now.energy = readings.back().energy;
        }
        now.time[4] = seconds(CLOCK_REALTIME);
        readings.push_back(now);
        usleep(700);
    }
}

static void write_trace(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return perror(path);
    fprintf(file, "power_us,power_mw,instant_us,instant_mw,instant_status,instant_stamp,average_us,average_mw,"
                  "average_status,average_stamp,energy_us,energy_mj,end_us\n");
    for (const Reading &at : readings)
        fprintf(file, "%.0f,%u,%.0f,%u,%d,%lld,%.0f,%u,%d,%lld,%.0f,%llu,%.0f\n", at.time[0] * 1e6, at.power,
                at.time[1] * 1e6, at.instant, at.status[0], at.instant_time, at.time[2] * 1e6, at.average,
                at.status[1], at.average_time, at.time[3] * 1e6, at.energy, at.time[4] * 1e6);
    fclose(file);
}

// ------------------------------------------------------------------------------------------- kernels

// Eight chains of multiplications and additions a thread: all that the arithmetic can take.
__global__ void products(float *out, unsigned turns) {
    float a = threadIdx.x * 1e-6f, chain[8];
    for (int i = 0; i < 8; i++) chain[i] = i + a;
    for (unsigned turn = 0; turn < turns; turn++)
        for (int i = 0; i < 8; i++) chain[i] = fmaf(chain[i], 0.999f, a);
    float sum = 0;
    for (int i = 0; i < 8; i++) sum += chain[i];
    if (sum == 123.456f) *out = sum;
}

// All of the memory's bandwidth, and hardly any arithmetic.
__global__ void stream(float4 *to, const float4 *from, size_t length, unsigned turns) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (unsigned turn = 0; turn < turns; turn++)
        for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < length; i += step) {
            float4 value = from[i];
            value.x += 1.0f;
            to[i] = value;
        }
}

// A warp a multiprocessor, each load needs the one before: nothing but waiting.
__global__ void chase(const unsigned *next, unsigned *out, unsigned turns) {
    unsigned at = (blockIdx.x * 32 + threadIdx.x) * 1021 & 0xffffff;
    for (unsigned turn = 0; turn < turns; turn++) at = next[at];
    if (at == 0xffffffff) *out = at;
}

static const size_t LENGTH = 32u << 20; // float4: half a gigabyte
static float4 *to, *from;
static unsigned *links;
static float *out;
static int multiprocessors;
// Turns of each kernel's loop that take a millisecond.
static unsigned millisecond[3] = {1000, 1, 1000};
static cudaStream_t in_stream = nullptr;
enum { PRODUCTS, STREAM, CHASE, IDLE };
static const char *NAMES[] = {"products", "stream", "chase", "idle"};

__attribute__((noinline)) static void launch(int kernel, unsigned turns) {
    switch (kernel) {
    case PRODUCTS:
        products<<<multiprocessors * 8, 256, 0, in_stream>>>(out, turns);
        break;
    case STREAM:
        stream<<<multiprocessors * 8, 256, 0, in_stream>>>(to, from, LENGTH, turns);
        break;
    case CHASE:
        chase<<<multiprocessors, 32, 0, in_stream>>>(links, (unsigned *)out, turns);
        break;
    }
}

// One turn: launches of a millisecond each, waited for together. Host functions of their own, so that call paths differ.
#define TURN(name, kernel)                                                                           \
    extern "C" __attribute__((noinline)) void name(int launches) {                                    \
        for (int i = 0; i < launches; i++) launch(kernel, millisecond[kernel]);                       \
        CHECK(cudaDeviceSynchronize());                                                               \
        asm volatile("");                                                                            \
    }
TURN(turn_products, PRODUCTS)
TURN(turn_stream, STREAM)
TURN(turn_chase, CHASE)

static void turn(int kernel, int launches) {
    switch (kernel) {
    case PRODUCTS: turn_products(launches); break;
    case STREAM: turn_stream(launches); break;
    case CHASE: turn_chase(launches); break;
    case IDLE: usleep(launches * 1000); break;
    }
}

static double time_of(int kernel, unsigned turns) {
    double start = seconds();
    launch(kernel, turns);
    CHECK(cudaDeviceSynchronize());
    return seconds() - start;
}

static void prepare() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    multiprocessors = properties.multiProcessorCount;
    CHECK(cudaMalloc(&to, LENGTH * sizeof *to));
    CHECK(cudaMalloc(&from, LENGTH * sizeof *from));
    CHECK(cudaMalloc(&out, 4096));
    CHECK(cudaMemset(from, 0, LENGTH * sizeof *from));
    // A walk over all of 64 MiB, more than the caches hold, in leaps.
    std::vector<unsigned> next(1u << 24);
    for (size_t i = 0; i < next.size(); i++) next[i] = (i * 1664525 + 1013904223) & 0xffffff;
    CHECK(cudaMalloc(&links, next.size() * sizeof(unsigned)));
    CHECK(cudaMemcpy(links, next.data(), next.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    for (int kernel = 0; kernel < 3; kernel++) {
        for (int i = 0; i < 3; i++) time_of(kernel, millisecond[kernel]);
        unsigned probe = kernel == STREAM ? 8 : 20000;
        double each = (time_of(kernel, probe) - 8e-6) / probe;
        unsigned turns = (unsigned)(1e-3 / each + 0.5);
        millisecond[kernel] = turns ? turns : 1;
    }
}

// --------------------------------------------------------------------------------------------- modes

static int kernel_named(const char *name) {
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, NAMES[i])) return i;
    fprintf(stderr, "no kernel %s\n", name);
    exit(2);
}

static void alone(int kernel, double length, int turn_ms) {
    double start = seconds();
    while (seconds() < start + 0.6) turn(kernel, turn_ms);
    double time[2], joule[2], busy = 0;
    std::atomic<bool> done{false};
    std::thread load([&] {
        while (!done) {
            double before = seconds();
            turn(kernel, turn_ms);
            busy += seconds() - before;
        }
    });
    nvml->move(time[0], joule[0]);
    usleep((useconds_t)(length * 1e6));
    nvml->move(time[1], joule[1]);
    unsigned megahertz, celsius;
    nvml->state(megahertz, celsius);
    done = true;
    load.join();
    printf("alone %-9s %8.2f W  %.4f s %.3f J  %u MHz %u C\n", NAMES[kernel],
           (joule[1] - joule[0]) / (time[1] - time[0]), time[1] - time[0], joule[1] - joule[0], megahertz, celsius);
}

static void turns(int turn_ms, double length) {
    usleep(1000000);
    double time[2], joule[2], busy[3] = {};
    long count = 0;
    nvml->move(time[0], joule[0]);
    double start = seconds();
    while (seconds() < start + length || count % 3) {
        double before = seconds();
        turn(count % 3, turn_ms);
        busy[count++ % 3] += seconds() - before;
    }
    double end = seconds();
    usleep(1000000);
    nvml->move(time[1], joule[1]);
    printf("turns of %d ms: %ld turns in %.4f s; the counter %.3f J in %.4f s\n", turn_ms, count, end - start,
           joule[1] - joule[0], time[1] - time[0]);
    for (int kernel = 0; kernel < 3; kernel++) printf("busy %-9s %.4f s\n", NAMES[kernel], busy[kernel]);
}

static void square(char *periods, double length) {
    const char *path = getenv("STEPS");
    FILE *steps = path ? fopen(path, "w") : nullptr;
    const char *given = getenv("REST");
    useconds_t rest = (useconds_t)((given ? atof(given) : 0.7) * 1e6);
    usleep(rest + 800000);
    for (char *period = strtok(periods, ","); period; period = strtok(nullptr, ",")) {
        double half = atof(period) * 0.5e-3, start = seconds(), next = start;
        while (seconds() < start + length) {
            double on = seconds(CLOCK_REALTIME);
            // Launches of a millisecond until the half is over, two of them ahead.
            double until = next + half;
            while (seconds() < until - 0.5e-3) turn(PRODUCTS, seconds() < until - 4e-3 ? 3 : 1);
            double off = seconds(CLOCK_REALTIME);
            if (steps) fprintf(steps, "%.0f\n%.0f\n", on * 1e6, off * 1e6);
            next += 2 * half;
            while (seconds() < next) usleep(200);
        }
        usleep(rest);
    }
    usleep(800000);
    if (steps) fclose(steps);
}

__global__ void cooperative(float *out, unsigned turns) {
    float a = threadIdx.x * 1e-6f, b = a;
    for (unsigned turn = 0; turn < turns; turn++) b = fmaf(b, 0.999f, a);
    cooperative_groups::this_grid().sync();
    if (b == 123.456f) *out = b;
}

static void kinds(double length) {
    unsigned turns = millisecond[PRODUCTS];
    long counts[5] = {};
    double start = seconds();
    while (seconds() < start + length) turn_products(5), counts[0] += 5;
    start = seconds();
    while (seconds() < start + length) {
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(multiprocessors * 8);
        config.blockDim = dim3(256);
        CHECK(cudaLaunchKernelEx(&config, products, out, turns));
        CHECK(cudaStreamSynchronize(nullptr));
        counts[1]++;
    }
    cudaStream_t streams[2];
    for (cudaStream_t &each : streams) CHECK(cudaStreamCreate(&each));
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    in_stream = streams[0];
    launch(PRODUCTS, turns), launch(STREAM, millisecond[STREAM]);
    cudaGraph_t graph;
    cudaGraphExec_t runnable;
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&runnable, graph, 0));
    start = seconds();
    while (seconds() < start + length) {
        CHECK(cudaGraphLaunch(runnable, streams[0]));
        CHECK(cudaStreamSynchronize(streams[0]));
        counts[2]++;
    }
    start = seconds();
    while (seconds() < start + length) {
        void *arguments[] = {&out, &turns};
        CHECK(cudaLaunchCooperativeKernel((void *)cooperative, dim3(multiprocessors), dim3(256), arguments, 0, streams[0]));
        CHECK(cudaStreamSynchronize(streams[0]));
        counts[3]++;
    }
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    start = seconds();
    while (seconds() < start + length) {
        in_stream = streams[0], launch(CHASE, millisecond[CHASE]);
        CHECK(cudaEventRecord(event, streams[0]));
        in_stream = streams[1], launch(STREAM, millisecond[STREAM]);
        CHECK(cudaEventSynchronize(event));
        CHECK(cudaStreamSynchronize(streams[1]));
        counts[4] += 2;
    }
    printf("launched: runtime %ld, Ex %ld, graphs %ld, cooperative %ld, in two streams %ld\n", counts[0], counts[1],
           counts[2], counts[3], counts[4]);
}

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (argc < 3) return fprintf(stderr, "how: see the beginning of turns.cu\n"), 2;
    nvml = new Nvml;
    if (!strcmp(argv[1], "move")) { // the counter alone, before any context
        double time[2], joule[2];
        nvml->move(time[0], joule[0]);
        usleep((useconds_t)(atof(argv[2]) * 1e6));
        nvml->move(time[1], joule[1]);
        printf("counter %.3f J in %.4f s: %.3f W\n", joule[1] - joule[0], time[1] - time[0],
               (joule[1] - joule[0]) / (time[1] - time[0]));
        return 0;
    }
    prepare();
    fprintf(stderr, "a millisecond: %u, %u, %u turns\n", millisecond[0], millisecond[1], millisecond[2]);
    const char *trace = getenv("TRACE");
    std::thread poller;
    if (trace) poller = std::thread(poll);
    if (!strcmp(argv[1], "alone") && argc > 3)
        alone(kernel_named(argv[2]), atof(argv[3]), argc > 4 ? atoi(argv[4]) : 5);
    else if (!strcmp(argv[1], "turns") && argc > 3)
        turns(atoi(argv[2]), atof(argv[3]));
    else if (!strcmp(argv[1], "square") && argc > 3)
        square(argv[2], atof(argv[3]));
    else if (!strcmp(argv[1], "kinds"))
        kinds(atof(argv[2]));
    else
        return 2;
    if (trace) stop_polling = true, poller.join(), write_trace(trace);
    return 0;
}
