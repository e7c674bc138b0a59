/* Binds functions that moved into libc.so in glibc 2.34 to their versions before that.

   Newer glibc has these versions, too. Without this, a core compiled on a newer system needs glibc
   2.34, while jaxlib does not: on older systems pip would install the wheel without the core, and
   JAX would find no device. setup.py includes this file in each source. */
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
#ifndef DEFINES_DLSYM /* the tracer defines its own */
AS_BEFORE(dlsym);
#endif
AS_BEFORE(dlvsym);
AS_BEFORE(pthread_create);
AS_BEFORE(pthread_detach);
AS_BEFORE(pthread_once);
#undef AS_BEFORE
#endif
#endif
