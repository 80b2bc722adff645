//! Reading recordings: made here byte by byte, found in the wild, damaged on purpose.

mod compressed;
mod damage;
mod decode;
mod folders;
mod foreign;
mod kinds;
