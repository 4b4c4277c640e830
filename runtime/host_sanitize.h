/* Which sanitizer this library is built with, and AddressSanitizer's poison. */
#ifndef RUNTIME_HOST_SANITIZE_H
#define RUNTIME_HOST_SANITIZE_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RT_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define RT_THREAD_SANITIZER 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define RT_ADDRESS_SANITIZER 1
#endif
#ifdef __SANITIZE_THREAD__
#define RT_THREAD_SANITIZER 1
#endif
#ifndef RT_ADDRESS_SANITIZER
#define RT_ADDRESS_SANITIZER 0
#endif
#ifndef RT_THREAD_SANITIZER
#define RT_THREAD_SANITIZER 0
#endif

#if RT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
static inline void rt_poison(void *memory, size_t bytes) { __asan_poison_memory_region(memory, bytes); }
static inline void rt_unpoison(void *memory, size_t bytes) { __asan_unpoison_memory_region(memory, bytes); }
#else
static inline void rt_poison(void *memory, size_t bytes) { (void)memory, (void)bytes; }
static inline void rt_unpoison(void *memory, size_t bytes) { (void)memory, (void)bytes; }
#endif

#endif
