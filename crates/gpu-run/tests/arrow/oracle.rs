//! Wasmtime, the judge: arrow-udf's protocol, spoken with the same module.

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use std::io::Cursor;
use std::path::Path;
use std::sync::LazyLock;
use wasmtime::{Engine, Instance, Linker, Memory, Module, Store};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p1::{self, WasiP1Ctx};

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

pub(crate) struct Oracle(Module);

/// One instance. After a trap, nobody may use it again.
struct Guest {
    store: Store<WasiP1Ctx>,
    instance: Instance,
    memory: Memory,
}

type Result<T, E = wasmtime::Error> = std::result::Result<T, E>;

impl Oracle {
    pub(crate) fn new(wasm: &Path) -> Self {
        Self(Module::from_file(&ENGINE, wasm).unwrap())
    }

    /// Calls the function that is exported under this name. A table function returns any number of batches.
    pub(crate) fn call(&self, export: &str, is_table: bool, rows: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let mut linker: Linker<WasiP1Ctx> = Linker::new(&ENGINE);
        p1::add_to_linker_sync(&mut linker, |context| context)?;
        let mut store = Store::new(&ENGINE, WasiCtxBuilder::new().build_p1());
        let instance = linker.instantiate(&mut store, &self.0)?;
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        Guest { store, instance, memory }.call(export, is_table, rows)
    }
}

impl Guest {
    fn call(&mut self, export: &str, is_table: bool, rows: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let mut bytes = Vec::new();
        let mut writer = FileWriter::try_new(&mut bytes, &rows.schema())?;
        writer.write(rows)?;
        writer.finish()?;
        drop(writer);
        let alloc = self.instance.get_typed_func::<(u32, u32), u32>(&mut self.store, "alloc")?;
        let count = bytes.len() as u32;
        let (input, slice) = (alloc.call(&mut self.store, (count, 8))?, alloc.call(&mut self.store, (8, 4))?);
        self.memory.write(&mut self.store, input as usize, &bytes)?;
        let function = self.instance.get_typed_func::<(u32, u32, u32), i32>(&mut self.store, export)?;
        match function.call(&mut self.store, (input, count, slice))? {
            0 if is_table => {
                let (iterator, mut batches) = (self.slice(slice)?.0, Vec::new());
                let next =
                    self.instance.get_typed_func::<(u32, u32), ()>(&mut self.store, "record_batch_iterator_next")?;
                loop {
                    next.call(&mut self.store, (iterator, slice))?;
                    match self.slice(slice)? {
                        (0, _) => return Ok(batches),
                        (at, count) => batches.push(self.batch(at, count)?),
                    }
                }
            }
            0 => {
                let (at, count) = self.slice(slice)?;
                Ok(vec![self.batch(at, count)?])
            }
            _ => {
                let (at, count) = self.slice(slice)?;
                Err(wasmtime::Error::msg(String::from_utf8(self.bytes(at, count)?)?))
            }
        }
    }

    fn bytes(&self, at: u32, count: u32) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count as usize];
        self.memory.read(&self.store, at as usize, &mut bytes)?;
        Ok(bytes)
    }

    fn slice(&self, at: u32) -> Result<(u32, u32)> {
        let word = |bytes: Vec<u8>| u32::from_le_bytes(bytes.try_into().unwrap());
        Ok((word(self.bytes(at, 4)?), word(self.bytes(at + 4, 4)?)))
    }

    fn batch(&self, at: u32, count: u32) -> Result<RecordBatch> {
        let mut reader = FileReader::try_new(Cursor::new(self.bytes(at, count)?), None)?;
        Ok(reader.next().unwrap()?)
    }
}
