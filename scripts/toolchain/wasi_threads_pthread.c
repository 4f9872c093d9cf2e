/* A pthread layer over wasi-threads, as much as Rust's std needs on wasm32-wasip1-threads.

   The ABI is wasi-threads': the module imports "wasi"."thread-spawn" (i32) -> i32 and exports
   "wasi_thread_start" (i32 tid, i32 argument).

   Limits: the stack of a detached thread is not freed; realpath does not follow links. */

typedef unsigned long size_t;

enum { EAGAIN = 6, EINVAL = 28, ENAMETOOLONG = 37, ENOENT = 44, ENOMEM = 48, ENOSYS = 52 }; /* WASI's numbers */

typedef struct {
    size_t stack_size;
    int detached;
} attributes; /* pthread_attr_t has more room than this */

struct thread {
    void *stack_top; /* first: wasi_thread_start loads it from the argument */
    void *tls;
    void *(*function)(void *);
    void *argument;
    void *result;
    int done;
    void *memory;
};

void *malloc(size_t);
void *calloc(size_t, size_t);
void free(void *);
extern void __wasm_init_tls(void *);
__attribute__((import_module("wasi"), import_name("thread-spawn"))) int wasi_thread_spawn(void *);

/* ---- attributes and identity ---- */

static struct thread main_thread;
static _Thread_local struct thread *self;

struct thread *pthread_self(void) { return self ? self : &main_thread; }
int pthread_equal(struct thread *a, struct thread *b) { return a == b; }

int pthread_attr_init(attributes *a) {
    a->stack_size = 0;
    a->detached = 0;
    return 0;
}
int pthread_attr_destroy(attributes *a) { return 0; }
int pthread_attr_setstacksize(attributes *a, size_t bytes) {
    if (bytes < 2048)
        return EINVAL;
    a->stack_size = bytes;
    return 0;
}
int pthread_attr_setdetachstate(attributes *a, int detached) {
    a->detached = detached;
    return 0;
}

/* ---- threads ---- */

static size_t round_up(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }

int pthread_create(struct thread **out, const attributes *a, void *(*function)(void *), void *argument) {
    size_t stack = round_up(a && a->stack_size ? a->stack_size : 1 << 20, 16);
    size_t tls = __builtin_wasm_tls_size();
    size_t align = __builtin_wasm_tls_align() < 16 ? 16 : __builtin_wasm_tls_align();
    char *memory = malloc(stack + tls + align + 32);
    struct thread *t = calloc(1, sizeof *t);
    if (!memory || !t) {
        free(memory);
        free(t);
        return EAGAIN;
    }
    t->memory = memory;
    t->stack_top = (void *)round_up((size_t)memory + stack, 16);
    t->tls = (void *)round_up((size_t)t->stack_top, align);
    t->function = function;
    t->argument = argument;
    *out = t;
    if (wasi_thread_spawn(t) < 0) {
        free(memory);
        free(t);
        return EAGAIN;
    }
    return 0;
}

static void run_key_destructors(void);

__attribute__((visibility("hidden"))) void thread_main(int tid, struct thread *t) {
    __wasm_init_tls(t->tls);
    self = t;
    t->result = t->function(t->argument);
    run_key_destructors();
    /* The stack in use cannot be freed here: join does it, so a detached thread keeps it. */
    __atomic_store_n(&t->done, 1, __ATOMIC_SEQ_CST);
    __builtin_wasm_memory_atomic_notify(&t->done, 0x7fffffff);
}

/* The new thread's stack pointer must be set before any C code runs. */
__asm__(".globaltype __stack_pointer, i32\n"
        ".functype thread_main (i32, i32) -> ()\n"
        ".section .text.wasi_thread_start,\"\",@\n"
        ".globl wasi_thread_start\n"
        ".type wasi_thread_start,@function\n"
        ".export_name wasi_thread_start, wasi_thread_start\n"
        "wasi_thread_start:\n"
        "  .functype wasi_thread_start (i32, i32) -> ()\n"
        "  local.get 1\n"
        "  i32.load 0\n"
        "  global.set __stack_pointer\n"
        "  local.get 0\n"
        "  local.get 1\n"
        "  call thread_main\n"
        "  end_function\n");
extern void wasi_thread_start(int, void *);
__attribute__((used)) static void (*const linked_with_pthread_create)(int, void *) = wasi_thread_start;

int pthread_join(struct thread *t, void **result) {
    while (!__atomic_load_n(&t->done, __ATOMIC_SEQ_CST))
        __builtin_wasm_memory_atomic_wait32(&t->done, 0, -1ll);
    if (result)
        *result = t->result;
    free(t->memory); /* the finished thread has left its stack: after `done` it only notifies and returns */
    free(t);
    return 0;
}
int pthread_detach(struct thread *t) { return 0; }

/* ---- thread-specific keys ---- */

enum { KEYS = 64 };
static int key_used[KEYS];
static void (*key_destructor[KEYS])(void *);
static _Thread_local void *key_value[KEYS];

int pthread_key_create(unsigned *key, void (*destructor)(void *)) {
    for (unsigned i = 0; i < KEYS; i++) {
        int unused = 0;
        if (__atomic_compare_exchange_n(&key_used[i], &unused, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            key_destructor[i] = destructor;
            *key = i;
            return 0;
        }
    }
    return EAGAIN;
}
int pthread_key_delete(unsigned key) {
    key_destructor[key] = 0;
    __atomic_store_n(&key_used[key], 0, __ATOMIC_SEQ_CST);
    return 0;
}
int pthread_setspecific(unsigned key, const void *value) {
    key_value[key] = (void *)value;
    return 0;
}
void *pthread_getspecific(unsigned key) { return key_value[key]; }

/* A destructor may set values again: POSIX asks for a few rounds, not for all it takes. */
static void run_key_destructors(void) {
    for (int round = 0, again = 1; again && round < 4; round++) {
        again = 0;
        for (int i = 0; i < KEYS; i++) {
            void *value = key_value[i];
            if (value && key_destructor[i]) {
                key_value[i] = 0;
                again = 1;
                key_destructor[i](value);
            }
        }
    }
}

/* ---- what std names and a wasi-libc of 2022 lacks: fs::canonicalize and fs::set_permissions ---- */

extern _Thread_local int errno;
size_t strlen(const char *);
void *memcpy(void *, const void *, size_t);
char *getcwd(char *, size_t);
int access(const char *, int);

static int fails(int code) {
    errno = code;
    return -1;
}
int chmod(const char *path, unsigned mode) { return fails(ENOSYS); }
int fchmod(int fd, unsigned mode) { return fails(ENOSYS); }

/* Lexical: resolves ".", ".." and "//", and follows no links. */
char *realpath(const char *path, char *out) {
    char absolute[8192];
    size_t length = 0, written = 0;
    if (!path || !*path)
        return fails(path ? ENOENT : EINVAL), (char *)0;
    if (*path != '/') {
        if (!getcwd(absolute, 4096))
            return 0;
        length = strlen(absolute);
        absolute[length++] = '/';
    }
    if (strlen(path) > 4000)
        return fails(ENAMETOOLONG), (char *)0;
    memcpy(absolute + length, path, strlen(path) + 1);
    length += strlen(path);

    char *resolved = out ? out : malloc(length + 2);
    if (!resolved)
        return fails(ENOMEM), (char *)0;
    for (size_t i = 0; i < length;) {
        while (absolute[i] == '/')
            i++;
        size_t begin = i;
        while (absolute[i] && absolute[i] != '/')
            i++;
        size_t size = i - begin;
        if (size == 0 || (size == 1 && absolute[begin] == '.'))
            continue;
        if (size == 2 && absolute[begin] == '.' && absolute[begin + 1] == '.') {
            while (written && resolved[--written] != '/')
                ;
            continue;
        }
        resolved[written++] = '/';
        memcpy(resolved + written, absolute + begin, size);
        written += size;
    }
    if (!written)
        resolved[written++] = '/';
    resolved[written] = 0;
    if (access(resolved, 0)) {
        int code = errno;
        if (!out)
            free(resolved);
        errno = code;
        return 0;
    }
    return resolved;
}
