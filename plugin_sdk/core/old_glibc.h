/* Names the versions before glibc 2.34 of the functions that moved into its libc.so then.

   They are there in newer ones, too. Without this, what is compiled on a newer system runs on none
   that is older than 2.34, while jaxlib does: pip would install the wheel without the core there,
   and JAX would find no device. setup.py includes it in each file. */
#ifndef PLUGRT_OLD_GLIBC_H
#define PLUGRT_OLD_GLIBC_H
#include <features.h>
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
#if defined(__x86_64__)
#define OLD_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLD_VERSION "GLIBC_2.17"
#endif
#endif
#endif
#ifdef OLD_VERSION
#define AS_BEFORE(name) __asm__(".symver " #name "," #name "@" OLD_VERSION)
AS_BEFORE(dladdr);
AS_BEFORE(dlerror);
AS_BEFORE(dlopen);
#ifndef DEFINES_DLSYM /* the tracer has one of its own */
AS_BEFORE(dlsym);
#endif
AS_BEFORE(dlvsym);
AS_BEFORE(pthread_create);
AS_BEFORE(pthread_detach);
AS_BEFORE(pthread_once);
#undef AS_BEFORE
#endif
#endif
