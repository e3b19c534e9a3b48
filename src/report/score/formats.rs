//! The forms that a report takes. Each is a function of the report or of the scored models to text, returned or written as
//! it is made; names and messages of strangers are escaped as the form asks.

pub mod csv;
pub mod html;
pub mod junit;
pub mod markdown;
pub mod notes;
pub mod table;
