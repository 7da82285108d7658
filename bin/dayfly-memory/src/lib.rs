//! A library that is loaded into an engine before its own, and maps memory layers over the image
//! that the engine maps as guest memory.
//!
//! An engine can map one file as guest memory. A snapshot's memory is several: the template's
//! image, which all sandboxes of the template share, and above it layers with the pages that
//! differ. This library waits for the one mapping of guest memory and lays the layers over it,
//! privately, so that the engine sees one piece of memory and nothing has to be copied.
//!
//! It fails closed. When anything is not as the map says, the process ends before a guest
//! instruction has run; and when the library itself is missing, the driver finds in
//! `/proc/PID/maps` that the layers are, and ends the engine.
//!
//! It also opens, and leaves open, what the node borrows to have the kernel note the guest's writes
//! while a capture copies memory ahead; see [`sys::tracking`]. And it has a thread that discards
//! pages which the guest has freed, when the node orders it; see [`sys::discarding`].
//!
//! Start reading at [`map`], the text that it is told what to do with.
#![deny(unsafe_code)]

mod map;
mod order;
mod sys;
