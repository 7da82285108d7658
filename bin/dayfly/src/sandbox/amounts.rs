//! What a sandbox used, as cells of a table. What is not known is `-`.

const MIB: u64 = 1 << 20;

pub(super) fn percent(percent: Option<f64>) -> String {
    percent.map_or_else(|| "-".to_owned(), |it| format!("{it:.1}%"))
}

pub(super) fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |it| format!("{} MiB", it / MIB))
}

pub(super) fn kibibytes(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1 << 10))
}
