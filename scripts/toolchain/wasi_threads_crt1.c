/* The entry of wasm32-wasip1-threads commands. It calls __wasm_call_ctors by hand: otherwise wasm-ld would wrap
   every export, wasi_thread_start included, in a call of the constructors and destructors. */

extern void __wasm_call_ctors(void);
extern void __wasm_call_dtors(void);
extern int __main_void(void);
extern _Noreturn void exit(int);

__attribute__((export_name("_start"))) void _start(void) {
    __wasm_call_ctors();
    int code = __main_void();
    __wasm_call_dtors();
    if (code != 0)
        exit(code);
}
