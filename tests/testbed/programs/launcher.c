/* Launches kernels and waits for them: `launcher LIBCUDA driver|thread|runtime|handles|batch|streams|killed|storm|two|forever PAUSE_MS`. The "assembler"
   of the fake driver counts the instructions between LOOP: and the branch. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*load)(void **, const char *, unsigned, int *, void **);
static int (*get)(void **, void *, const char *);
static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                     void **, void **);
static int (*synchronize)(void);
static int (*synchronize_context)(void *);
static uint64_t results[2];

static void *kernel(const char *name, int divisions) {
  char program[2000] = ".version 6.4\n.entry k\nLOOP:\n";
  for (int i = 0; i < divisions; i++) strcat(program, "div.u32 %r1;\n");
  strcat(program, "@%more bra LOOP;\n");
  void *module, *function;
  load(&module, program, 0, 0, 0);
  get(&function, module, name);
  return function;
}

static void *stream;

static void start(void *function, unsigned turns) {
  void *address = results;
  unsigned seed = 1;
  void *parameters[] = {&address, &turns, &seed};
  launch(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, 0);
}

static void pause_ms(unsigned ms) { usleep(ms * 1000); }

/* What nvcc makes of kernels and of calls to a runtime that is linked in. */
__attribute__((noinline)) void device_heat(void) { asm volatile("# heat"); }
__attribute__((noinline)) void device_cool(void) { asm volatile("# cool"); }
static void *heat_handle, *cool_handle;

__attribute__((noinline)) int cudaLaunchKernel(const void *stub, unsigned turns) {
  int is_heat = stub == (const void *)device_heat || stub == heat_handle;
  start(is_heat ? heat_handle : cool_handle, turns);
  return 0;
}

__attribute__((noinline)) int cudaDeviceSynchronize(void) { return synchronize(); }

/* As programs built by CUDA 13 do it: the runtime is given the driver's handle, and waits by another function. */
static void launch_by_handle(void *handle, unsigned turns) {
  cudaLaunchKernel(handle, turns);
  synchronize_context(0);
}

__attribute__((noinline)) void train(unsigned turns, int runtime) {
  if (runtime == 2) {
    launch_by_handle(heat_handle, turns);
  } else if (runtime) {
    cudaLaunchKernel((const void *)device_heat, turns);
    cudaDeviceSynchronize();
  } else {
    start(heat_handle, turns);
    synchronize();
  }
  asm volatile("# after");
}

__attribute__((noinline)) void infer(unsigned turns, int runtime) {
  if (runtime == 2) {
    launch_by_handle(cool_handle, turns);
  } else if (runtime) {
    cudaLaunchKernel((const void *)device_cool, turns);
    cudaDeviceSynchronize();
  } else {
    start(cool_handle, turns);
    synchronize();
  }
  asm volatile("# after");
}

/* Both kernels are queued, and waited for once. */
__attribute__((noinline)) void batch(unsigned pause) {
  for (int round = 0; round < 3; round++) {
    start(heat_handle, 500000);
    start(cool_handle, 500000);
    synchronize();
    pause_ms(2 * pause);
  }
}

/* Both kernels at once, in streams of their own; the short one is waited for first, once by its stream and
   then by an event behind it. */
__attribute__((noinline)) void streams(void *library, unsigned pause) {
  int (*wait)(void *) = (int (*)(void *))dlsym(library, "cuStreamSynchronize");
  int (*mark)(void *, void *) = (int (*)(void *, void *))dlsym(library, "cuEventRecord");
  int (*wait_event)(void *) = (int (*)(void *))dlsym(library, "cuEventSynchronize");
  void *one = (void *)0x5100, *two = (void *)0x5200, *event = (void *)0xe000;
  for (int round = 0; round < 3; round++) {
    stream = one;
    start(heat_handle, 500000);
    stream = two;
    start(cool_handle, 250000);
    if (round % 2) {
      mark(event, two);
      wait_event(event);
    } else {
      wait(two);
    }
    wait(one);
    pause_ms(2 * pause);
  }
}

/* More launches than are worth watching, then some more. */
__attribute__((noinline)) void storm(unsigned pause) {
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 1500; i++) start(cool_handle, 1);
    synchronize();
    pause_ms(3 * pause);
  }
}

/* Both kernels at once, each on a GPU of its own. */
__attribute__((noinline)) void two(void *library, unsigned pause) {
  int (*retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
  int (*use)(void *) = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
  void *contexts[2];
  for (int gpu = 0; gpu < 2; gpu++) retain(&contexts[gpu], gpu);
  for (int round = 0; round < 3; round++) {
    use(contexts[0]);
    start(heat_handle, 500000);
    use(contexts[1]);
    start(cool_handle, 500000);
    synchronize();
    use(contexts[0]);
    synchronize();
    pause_ms(2 * pause);
  }
}

static void *train_in_thread(void *turns) {
  for (int round = 0; round < 3; round++) train((unsigned)(uintptr_t)turns, 0);
  return 0;
}

int main(int argc, char **argv) {
  void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW) : 0;
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
  load = dlsym(library, "cuModuleLoadDataEx");
  get = dlsym(library, "cuModuleGetFunction");
  launch = dlsym(library, "cuLaunchKernel");
  synchronize = dlsym(library, "cuCtxSynchronize");
  synchronize_context = dlsym(library, "cuCtxSynchronize_v2");
  unsigned pause = atoi(argv[3]);
  heat_handle = kernel("_Z4heatPf", 10);
  cool_handle = kernel("_Z4coolPf", 1);
  pause_ms(pause);
  if (!strcmp(argv[2], "batch") || !strcmp(argv[2], "killed")) {
    batch(pause);
    if (!strcmp(argv[2], "killed")) raise(SIGKILL);
    return 0;
  }
  while (!strcmp(argv[2], "forever")) {
    train(500000, 0);
    pause_ms(pause);
  }
  if (!strcmp(argv[2], "streams")) {
    streams(library, pause);
    return 0;
  }
  if (!strcmp(argv[2], "two")) {
    two(library, pause);
    return 0;
  }
  if (!strcmp(argv[2], "thread")) {
    pthread_t thread;
    int failure = pthread_create(&thread, 0, train_in_thread, (void *)(uintptr_t)500000);
    if (failure) return fprintf(stderr, "pthread_create: %s\n", strerror(failure)), 3;
    pthread_join(thread, 0);
    pause_ms(pause);
    return 0;
  }
  if (!strcmp(argv[2], "storm")) {
    storm(pause);
    return 0;
  }
  int runtime = !strcmp(argv[2], "handles") ? 2 : !strcmp(argv[2], "runtime");
  for (int round = 0; round < 3; round++) {
    train(500000, runtime);
    pause_ms(pause);
    infer(500000, runtime);
    pause_ms(pause);
  }
  return 0;
}
