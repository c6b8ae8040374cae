//! Divides a partial into shards, in one pass.

use ringfold_read::{Error, Result};

use crate::partial::merge::batch::Batch;
use crate::partial::merge::gather;
use crate::partial::merge::order::Row;
use crate::partial::reader::{Cursor, Reader};
use crate::partial::shard::{Shard, Shards};
use crate::partial::writer::Writer;

/// The shards of a partial that isn't one, each a partial with the whole one's counts and receipt.
///
/// # Errors
/// A block can't be read or is damaged.
pub(crate) fn split(reader: &Reader, shards: impl Iterator<Item = Shard>) -> Result<Vec<Vec<u8>>> {
    let unwritten = |error| Error::output(&error);
    let writers = shards.map(|shard| {
        let mut description = reader.description.clone();
        shard.mark(&mut description);
        Writer::new(Vec::new(), &description).map_err(unwritten)
    });
    let mut writers: Vec<Writer<Vec<u8>>> = writers.collect::<Result<_>>()?;
    let shards = Shards::new(writers.len() as u32, &reader.description);
    let sources: Vec<u32> = (0..reader.description.sources.len() as u32).collect();
    let mut batches: Vec<Batch> = writers.iter().map(|_| Batch::default()).collect();
    let (mut cursor, mut buffer) = (Cursor::new(reader), Vec::new());
    while let Some(loaded) = cursor.next_block(buffer)? {
        batches.iter_mut().for_each(|batch| batch.firsts.clear());
        let keys = loaded.keys();
        for row in 0..loaded.groups() {
            let number = shards
                .number(keys.get(row))
                .ok_or_else(|| loaded.damaged("a key has other parts"))?;
            let batch = &mut batches[number as usize - 1];
            batch.firsts.push(Row::new(0, row as u32));
        }
        for (writer, batch) in writers.iter_mut().zip(&batches) {
            gather(batch, &[&loaded], &[&sources], writer.gathered());
            writer.write_full().map_err(unwritten)?;
        }
        buffer = loaded.into_buffer();
    }
    let written = writers.into_iter().map(Writer::finish);
    written.map(|bytes| bytes.map_err(unwritten)).collect()
}
