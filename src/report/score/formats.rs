//! The formats of a report. Each is a function from the report or the scored models to text, returned or written while
//! it is made. Each format escapes untrusted names and messages in its own way.

pub mod csv;
pub mod html;
pub mod instances;
pub mod junit;
pub mod markdown;
pub mod notes;
pub mod table;
