//! The formats that ringfold's is compared with: each with what its users would write.

use columnar::bytes::indexed;
use columnar::{Borrow, BorrowedOf, ContainerOf, FromBytes, Index, Push};
use rkyv::rancor::Error as RkyvError;
use rkyv::util::AlignedVec;
use rkyv::vec::ArchivedVec;

use crate::groups::{ArchivedGroup, Group, View};

/// A way to keep groups as bytes.
#[allow(clippy::ptr_arg, reason = "rkyv's archive is of a vector")]
pub trait Format {
    const NAME: &'static str;
    /// Memory for an encoding, which is used again.
    type Bytes: Default;
    /// What is read: in place, or decoded without copies of keys.
    type Opened<'a>: Rows<'a>;
    /// Groups that come one by one, to be encoded.
    type Builder<'a>: Default;

    fn encode(groups: &Vec<Group>, to: &mut Self::Bytes);
    /// Checks all that the format checks.
    fn open(bytes: &Self::Bytes) -> Self::Opened<'_>;
    fn push<'a>(builder: &mut Self::Builder<'a>, row: View<'a>);
    fn finish(builder: Self::Builder<'_>, to: &mut Self::Bytes);
    fn len(bytes: &Self::Bytes) -> usize;
}

/// Groups that can be read.
pub trait Rows<'a> {
    fn len(&self) -> usize;
    fn row(&self, at: usize) -> View<'a>;
}

impl<'a> Rows<'a> for Vec<View<'a>> {
    fn len(&self) -> usize {
        self.len()
    }

    fn row(&self, at: usize) -> View<'a> {
        self[at]
    }
}

pub struct Rkyv;

impl Format for Rkyv {
    const NAME: &'static str = "rkyv";
    type Bytes = AlignedVec;
    type Opened<'a> = &'a ArchivedVec<ArchivedGroup>;
    // Only what owns its keys has an archive of this type.
    type Builder<'a> = Vec<Group>;

    fn encode(groups: &Vec<Group>, to: &mut AlignedVec) {
        let mut own = std::mem::take(to);
        own.clear();
        *to = rkyv::api::high::to_bytes_in::<_, RkyvError>(groups, own).expect("it has no limit");
    }

    fn open(bytes: &AlignedVec) -> &ArchivedVec<ArchivedGroup> {
        rkyv::access::<ArchivedVec<ArchivedGroup>, RkyvError>(bytes).expect("it was just made")
    }

    fn push(builder: &mut Vec<Group>, row: View<'_>) {
        builder.push(row.owned());
    }

    fn finish(builder: Vec<Group>, to: &mut AlignedVec) {
        Self::encode(&builder, to);
    }

    fn len(bytes: &AlignedVec) -> usize {
        bytes.len()
    }
}

impl<'a> Rows<'a> for &'a ArchivedVec<ArchivedGroup> {
    fn len(&self) -> usize {
        ArchivedVec::len(self)
    }

    fn row(&self, at: usize) -> View<'a> {
        let group = &self.as_slice()[at];
        View {
            key: &group.key,
            count: group.count.into(),
            sum: group.sum.into(),
            min: group.min.into(),
            max: group.max.into(),
        }
    }
}

pub struct ColumnarCrate;

impl Format for ColumnarCrate {
    const NAME: &'static str = "columnar";
    type Bytes = Vec<u64>;
    type Opened<'a> = BorrowedOf<'a, Group>;
    type Builder<'a> = ContainerOf<Group>;

    fn encode(groups: &Vec<Group>, to: &mut Vec<u64>) {
        let mut columns = ContainerOf::<Group>::default();
        groups.iter().for_each(|group| columns.push(group));
        Self::finish(columns, to);
    }

    fn open(bytes: &Vec<u64>) -> BorrowedOf<'_, Group> {
        indexed::validate::<BorrowedOf<'_, Group>>(bytes).expect("it was just made");
        let opened = BorrowedOf::<Group>::from_bytes(&mut indexed::decode(bytes));
        // It checks neither offsets nor texts before they are used.
        let keys = (0..Rows::len(&opened)).map(|at| Rows::row(&opened, at).key.len());
        std::hint::black_box(keys.sum::<usize>());
        opened
    }

    fn push(builder: &mut ContainerOf<Group>, row: View<'_>) {
        builder.key.push(row.key);
        builder.count.push(row.count);
        builder.sum.push(row.sum);
        builder.min.push(row.min);
        builder.max.push(row.max);
    }

    fn finish(builder: ContainerOf<Group>, to: &mut Vec<u64>) {
        to.clear();
        indexed::encode(to, &builder.borrow());
    }

    fn len(bytes: &Vec<u64>) -> usize {
        8 * bytes.len()
    }
}

impl<'a> Rows<'a> for BorrowedOf<'a, Group> {
    fn len(&self) -> usize {
        self.count.len()
    }

    fn row(&self, at: usize) -> View<'a> {
        View {
            key: std::str::from_utf8(self.key.get(at)).expect("it was just made"),
            count: self.count[at],
            sum: self.sum[at],
            min: self.min[at],
            max: self.max[at],
        }
    }
}

pub struct Bitcode;

impl Format for Bitcode {
    const NAME: &'static str = "bitcode";
    type Bytes = Vec<u8>;
    type Opened<'a> = Vec<View<'a>>;
    type Builder<'a> = Vec<View<'a>>;

    fn encode(groups: &Vec<Group>, to: &mut Vec<u8>) {
        *to = bitcode::encode(groups);
    }

    fn open(bytes: &Vec<u8>) -> Vec<View<'_>> {
        bitcode::decode(bytes).expect("it was just made")
    }

    fn push<'a>(builder: &mut Vec<View<'a>>, row: View<'a>) {
        builder.push(row);
    }

    fn finish(builder: Vec<View<'_>>, to: &mut Vec<u8>) {
        *to = bitcode::encode(&builder);
    }

    fn len(bytes: &Vec<u8>) -> usize {
        bytes.len()
    }
}

pub struct Postcard;

/// Memory whose first bytes are used.
#[derive(Default)]
pub struct Used {
    memory: Vec<u8>,
    len: usize,
}

/// No group takes more than this beside its key.
const GROUP_BYTES_MAX: usize = 40;

impl Used {
    fn encode<T: serde::Serialize>(&mut self, groups: &T, keys: usize, count: usize) {
        let needed = keys + (count + 1) * GROUP_BYTES_MAX;
        if self.memory.len() < needed {
            self.memory.resize(needed, 0);
        }
        let written = postcard::to_slice(groups, &mut self.memory);
        self.len = written.expect("there is enough").len();
    }
}

impl Format for Postcard {
    const NAME: &'static str = "postcard";
    type Bytes = Used;
    type Opened<'a> = Vec<View<'a>>;
    type Builder<'a> = Vec<View<'a>>;

    fn encode(groups: &Vec<Group>, to: &mut Used) {
        let keys = groups.iter().map(|group| group.key.len()).sum();
        to.encode(groups, keys, groups.len());
    }

    fn open(bytes: &Used) -> Vec<View<'_>> {
        postcard::from_bytes(&bytes.memory[..bytes.len]).expect("it was just made")
    }

    fn push<'a>(builder: &mut Vec<View<'a>>, row: View<'a>) {
        builder.push(row);
    }

    fn finish(builder: Vec<View<'_>>, to: &mut Used) {
        let keys = builder.iter().map(|group| group.key.len()).sum();
        to.encode(&builder, keys, builder.len());
    }

    fn len(bytes: &Used) -> usize {
        bytes.len
    }
}
