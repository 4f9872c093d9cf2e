//! What commands and mappers are given alike.

/// The methods of a builder with the fields `module`, `wasi`, `provided`, `max_memory`, `backtrace` and `interrupt`.
macro_rules! given {
    () => {
        /// Sets what each instance is given, in place of what was set before. The instances of a mapper have standard streams of their own.
        pub fn wasi(mut self, wasi: $crate::Wasi) -> Self {
            self.wasi = wasi;
            self
        }

        /// Adds an argument. The first is the program's name.
        pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
            self.wasi = self.wasi.arg(arg);
            self
        }

        pub fn env(mut self, name: impl AsRef<std::ffi::OsStr>, value: impl AsRef<std::ffi::OsStr>) -> Self {
            self.wasi = self.wasi.env(name, value);
            self
        }

        /// Lets the program import functions. They see what `data` returns for the number of the instance, or of the record.
        pub fn functions<T: Send + 'static>(
            mut self,
            linker: &$crate::Linker<T>,
            data: impl Fn(u64) -> T + Send + Sync + 'static,
        ) -> Self {
            self.provided = $crate::command::Provided::new(&self.module, linker, data);
            self
        }

        /// Has programs note their calls, so that [`Status::backtrace`]($crate::Status::backtrace) can say which functions and lines led to a trap. They
        /// are slower for it.
        pub fn backtrace(mut self, is_wanted: bool) -> Self {
            self.backtrace = is_wanted;
            self
        }

        /// The most bytes that the memories and tables of an instance may have together.
        pub fn max_memory(mut self, bytes: u64) -> Self {
            self.max_memory = Some(bytes);
            self
        }

        /// Ends the instances when the interrupt is raised.
        pub fn interrupt(mut self, interrupt: &$crate::Interrupt) -> Self {
            self.interrupt = Some(interrupt.clone());
            self
        }
    };
}

pub(crate) use given;
