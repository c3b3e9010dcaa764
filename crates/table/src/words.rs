//! Arrays of integers in pages, so that they can be frozen like rows.

use crate::page::PageTable;
use crate::row_id::PageNumber;

/// An integer that is kept in its little-endian bytes.
pub(crate) trait Word: Copy {
    const BYTES: usize;

    fn load(bytes: &[u8]) -> Self;

    fn store(self, bytes: &mut [u8]);
}

macro_rules! word {
    ($($type:ty),*) => {$(
        impl Word for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline]
            fn load(bytes: &[u8]) -> $type {
                <$type>::from_le_bytes(bytes.try_into().expect("a word has its length"))
            }

            #[inline]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
word!(u32, u64);

/// Pages of `1 << page_bits` words each. New ones are zero.
pub(crate) struct Words<W> {
    pages: PageTable,
    page_bits: u32,
    word: std::marker::PhantomData<W>,
}

impl<W: Word> Words<W> {
    pub fn new(page_bits: u32) -> Words<W> {
        Words::with(PageTable::default(), page_bits)
    }

    fn with(pages: PageTable, page_bits: u32) -> Words<W> {
        Words {
            pages,
            page_bits,
            word: std::marker::PhantomData,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.pages.len() << self.page_bits
    }

    /// Adds a page of zeros, and gives its number.
    pub fn push_page(&mut self) -> usize {
        self.pages.push_zeroed(W::BYTES << self.page_bits).index()
    }

    /// # Panics
    /// If there is no such word.
    #[inline]
    pub fn get(&self, index: usize) -> W {
        let (page, start) = self.place(index);
        // SAFETY: `slice` checks the page. Every page has `1 << page_bits` words, and `start` is that of one of them.
        W::load(unsafe { self.pages.slice(page, start, W::BYTES) })
    }

    /// # Panics
    /// If there is no such word.
    #[inline]
    pub fn set(&mut self, index: usize, word: W) {
        let (page, start) = self.place(index);
        word.store(&mut self.pages.bytes_mut(page)[start..start + W::BYTES]);
    }

    #[inline]
    fn place(&self, index: usize) -> (PageNumber, usize) {
        let in_page = index & ((1 << self.page_bits) - 1);
        (PageNumber::new(index >> self.page_bits), in_page * W::BYTES)
    }

    /// The empty successor of these words, with pages of another size, before all words are moved.
    pub fn emptied(&self, page_bits: u32) -> Words<W> {
        Words::with(self.pages.emptied(), page_bits)
    }

    /// Removes all words, and changes how many a page has.
    pub fn reset(&mut self, page_bits: u32) {
        self.pages.clear();
        self.page_bits = page_bits;
    }

    /// The words as they are now.
    pub fn freeze(&mut self) -> Words<W> {
        Words::with(self.pages.freeze(), self.page_bits)
    }

    /// As [`PageTable::released_bytes`].
    pub fn released_bytes(&self) -> u64 {
        self.pages.released_bytes()
    }

    pub fn heap_bytes(&self) -> usize {
        self.pages.heap_bytes()
    }
}
